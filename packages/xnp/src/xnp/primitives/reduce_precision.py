"""reduce_precision: round floats to a format of fewer exponent and mantissa bits.

The result keeps its dtype. Semantics: StableHLO specification, section reduce_precision: halves
round to even; what overflows the new exponent range becomes infinite, what falls below its normal
numbers becomes zero of the same sign.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xnp.primitives.table import FLOATING, elementwise_shape, unary
from xprim import ShapedArray, dtypes
from xprim.contracts import Builder
from xprim.errors import message

__all__ = ()

_float_shape = elementwise_shape("reduce_precision", FLOATING)


def _shape(x: ShapedArray, *, exponent_bits: int, mantissa_bits: int) -> tuple[ShapedArray, ...]:
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError(message(
            "reduce_precision", "needs exponent_bits >= 1 and mantissa_bits >= 0.",
            got=f"exponent_bits={exponent_bits}, mantissa_bits={mantissa_bits}",
        ))  # fmt: skip
    return _float_shape(x)


def _numpy(x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    dtype = x.dtype
    if dtype.itemsize == 1:  # exact in float32, whose rounding below is then the only one
        return _reduced(x.astype(np.float32), exponent_bits, mantissa_bits).astype(dtype)
    return _reduced(x, exponent_bits, mantissa_bits)


def _reduced(x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    info = dtypes.finfo(x.dtype)
    full_mantissa = int(info.nmant)
    word = np.dtype(f"u{x.dtype.itemsize}").type
    bits = np.ascontiguousarray(x).reshape(x.shape).view(word)
    dropped = full_mantissa - mantissa_bits
    if dropped > 0:
        lowest_kept = (bits >> word(dropped)) & word(1)
        half = word((1 << (dropped - 1)) - 1)
        bits = (bits + (half + lowest_kept)) & ~word((1 << dropped) - 1)
    rounded = bits.view(x.dtype)
    if exponent_bits < int(info.nexp):
        bias = (1 << (exponent_bits - 1)) - 1  # also the exponent of the largest finite numbers
        size = np.abs(rounded.astype(np.float64))
        infinite, tiny = size >= math.ldexp(1.0, bias + 1), size < math.ldexp(1.0, 1 - bias)
        rounded = np.where(infinite, np.copysign(np.asarray(np.inf, x.dtype), x), rounded)
        rounded = np.where(tiny, np.copysign(np.zeros((), x.dtype), x), rounded)
    return np.where(np.isnan(x), x, rounded)


def _stablehlo(
    b: Builder,
    operands: Any,
    avals_in: Any,
    avals_out: Any,
    *,
    exponent_bits: int,
    mantissa_bits: int,
) -> Any:
    return b.op(
        "stablehlo.reduce_precision", operands, avals_in, avals_out,
        f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32",
    )  # fmt: skip


def _rounded_tangent(x_dot: Any, y: Any = None, x: Any = None, **params: Any) -> Any:
    return reduce_precision_p.bind(x_dot, **params)[0]


# Tangents and cotangents are rounded as values are, as mixed-precision training wants it.
reduce_precision_p = unary(
    "reduce_precision", FLOATING, shape=_shape, numpy=_numpy, stablehlo=_stablehlo,
    jvp=_rounded_tangent, linear=_rounded_tangent, has_params=True,
)  # fmt: skip
