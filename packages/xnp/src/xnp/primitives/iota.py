"""iota: an array that counts 0, 1, 2, ... along one dimension.

Semantics: StableHLO specification, section iota; counts that the dtype cannot hold wrap around.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.table import NUMBER
from xprim import ZERO, Primitive, ShapedArray, shaped_array, undefined
from xprim.contracts import Builder
from xprim.errors import message

__all__ = ()


def _shape(*, dtype: Any, shape: Any, dimension: int) -> tuple[ShapedArray, ...]:
    if dtype not in NUMBER:
        raise TypeError(f"iota: needs a number dtype, got {dtype}.")
    if not 0 <= dimension < len(shape):
        raise ValueError(message(
            "iota", f"dimension {dimension} does not exist in the shape {shape}.",
            expected=f"0 <= dimension < {len(shape)}",
        ))  # fmt: skip
    return (shaped_array(shape, dtype),)


def _numpy(*, dtype: Any, shape: Any, dimension: int) -> Any:
    counts = np.arange(shape[dimension]).astype(dtype)
    if len(shape) == 1:
        return (counts,)
    ones = [1] * len(shape)
    ones[dimension] = -1
    return (np.broadcast_to(counts.reshape(ones), shape),)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, dimension: int,
               **_: Any) -> Any:  # fmt: skip
    return b.op("stablehlo.iota", [], [], avals_out, f"iota_dimension = {dimension} : i64")


iota_p: Primitive = Primitive(
    "iota",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=ZERO,
    transpose=undefined("it has no operands"),
    batch=undefined("it has no operands"),
)
