"""The types of buffers: what jaxlib asks of an abstract value, and which dtypes XLA has.

Neighbour: `buffers` makes and reads what is of these types.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from xprim import dtypes
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


_ELEMENT_TYPES = {
    "bool": "i1", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "int4": "i4",
    "int2": "i2", "int1": "i1", "uint64": "ui64", "uint32": "ui32", "uint16": "ui16",
    "uint8": "ui8", "uint4": "ui4", "uint2": "ui2", "uint1": "ui1", "float64": "f64",
    "float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex64": "complex<f32>",
    "complex128": "complex<f64>", "float8_e3m4": "f8E3M4", "float8_e4m3": "f8E4M3",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ", "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2": "f8E5M2", "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU", "float4_e2m1fn": "f4E2M1FN", "float6_e2m3fn": "f6E2M3FN",
    "float6_e3m2fn": "f6E3M2FN", dtypes.float0.name: "i1",
}  # fmt: skip


def element_type(dtype: np.dtype[Any]) -> str:
    """Return the name of an element type in programs."""
    try:
        return _ELEMENT_TYPES[dtype.name]
    except KeyError:
        raise TypeError(f"stablehlo: there is no element type for dtype {dtype}.") from None


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
