"""The types of buffers: what jaxlib asks of an abstract value, and which dtypes XLA has.

Neighbour: `buffers` makes and reads what is of these types.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from xprim.errors import message

__all__ = ()

# What Python's buffer protocol knows, so that NumPy can look at the memory of a CPU buffer.
_PLAIN_DTYPES = frozenset(map(np.dtype, "?bhilqBHILQefdFD"))
SUB_BYTE_DTYPES = frozenset(
    np.dtype(scalar)
    for scalar in (
        ml_dtypes.int2,
        ml_dtypes.int4,
        ml_dtypes.uint2,
        ml_dtypes.uint4,
        ml_dtypes.float4_e2m1fn,
    )
)
_EXTENDED_DTYPES = SUB_BYTE_DTYPES | frozenset(
    np.dtype(scalar)
    for scalar in (
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e3m4,
        ml_dtypes.float8_e4m3,
        ml_dtypes.float8_e4m3b11fnuz,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e5m2fnuz,
        ml_dtypes.float8_e8m0fnu,
    )
)


class ArrayType:
    """The shape and dtype of a buffer: what jaxlib asks of an abstract value, and no more.

    `made_by` names the program whose result the buffer is, for the error of one that failed, and
    `made_at` the user's line in it, for the error that large buffers fill the memory.
    """

    __slots__ = ("dtype", "made_at", "made_by", "ndim", "plain", "shape", "weak_type")

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], made_by: str, made_at: str
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)
        self.weak_type = False
        self.plain = dtype in _PLAIN_DTYPES
        self.made_by = made_by
        self.made_at = made_at

    def __repr__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


@functools.lru_cache(maxsize=8192)
def array_type(
    shape: tuple[int, ...], dtype: np.dtype[Any], made_by: str = "", made_at: str = ""
) -> ArrayType:
    """Return the interned `ArrayType`; raise `TypeError` for a dtype that XLA does not have."""
    if dtype not in _PLAIN_DTYPES and dtype not in _EXTENDED_DTYPES:
        raise TypeError(message(
            "put", f"XLA has no arrays of dtype {dtype}.",
            expected="a boolean, integer, floating or complex dtype of NumPy or ml_dtypes",
        ))  # fmt: skip
    return ArrayType(shape, dtype, made_by, made_at)
