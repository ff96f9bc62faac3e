"""Logarithms of sums of powers, finite where a power is not: logaddexp, logaddexp2.

    log_b(b^x + b^y) = max(x, y) + log_b(1 + b^-|x - y|)

The derivatives are the shares of the two powers in their sum, 1 / (1 + b^(y - x)) and
1 / (1 + b^(x - y)): halves for equal operands, infinities among them. Of complex operands the one
with the greater real part stands for the maximum, and the angle of the sum is in (-pi, pi].
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.primitives import costs, table
from xnp.primitives.elementwise import log1p_numpy
from xnp.primitives.lowering_text import Text, apart_from_uses, in_wider, where
from xnp.primitives.table import INEXACT, NATIVE, add, binary, bind, mul, scalar_like, selected, sub
from xprim import NumpyCall, Primitive, ShapedArray, dtypes, primitive_maker
from xprim.contracts import Builder

__all__ = ()


def log_of_sum(b: Builder, operands: Sequence[str], aval: ShapedArray, factor: float = 1) -> str:
    """Write log(e^(factor x) + e^(factor y)) / factor of two real values of one type."""
    x, y = [Text(b, name, aval) for name in operands]
    gap = x - y
    power = (gap.op("abs") * -factor).op("exponential")
    rest = power.op("log_plus_one") / factor
    if factor != 1:  # of equal operands it is 1 itself: log 2 / log 2 in a fused sum is not
        rest = where(gap.compare("EQ", 0.0), rest.like(1), rest)
    total = x.op("maximum", y) + rest
    return where(gap.compare("EQ", gap), total, x + y).name  # equal infinities have no difference


def _scale(x: Any, factor: float) -> Any:
    """Return x times a real factor: infinity times the imaginary 0 of a complex one is NaN."""
    if not dtypes.is_complex(x.aval.dtype):
        return x if factor == 1 else mul(x, scalar_like(x, factor))
    return bind("complex", *[_scale(bind(part, x), factor) for part in ("real", "imag")])


_NOTHING = complex(-0.0, -0.0)


def _of_complex(x: Any, y: Any, factor: float) -> Any:
    is_first = bind("ge", bind("real", x), bind("real", y))
    gap = sub(selected(is_first, y, x), selected(is_first, x, y))
    equal = bind("eq", x, y)
    gap = selected(equal, scalar_like(x, 0), gap)
    # e^(-inf + i t) is 0 whatever t is; the sum with -0 has the sign of the other zero
    low = bind("real", gap)
    is_nothing = bind("eq", low, scalar_like(low, -math.inf))
    rest = _scale(bind("log1p", bind("exp", _scale(gap, factor))), 1 / factor)
    rest = selected(is_nothing, scalar_like(rest, _NOTHING), rest)
    if factor != 1:  # as of real operands
        rest = selected(equal, scalar_like(rest, 1), rest)
    total = add(selected(is_first, x, y), rest)
    angle = _scale(bind("imag", total), factor)
    angle = _scale(bind("atan2", bind("sin", angle), bind("cos", angle)), 1 / factor)
    return bind("complex", bind("real", total), angle)


# Elements from which several vectorised passes of NumPy's take less time than its `logaddexp`,
# which calls two functions for each element: 4 and 5 us at 1,024, 9 and 35 at 4,096.
_SHORT = 512


def _real_numpy(x: Any, y: Any, factor: float) -> Any:
    gap = x - y
    power = np.exp(np.abs(gap) * np.asarray(-factor, x.dtype))
    total = np.maximum(x, y) + np.log1p(power) * np.asarray(1 / factor, x.dtype)
    return np.where(gap == gap, total, x + y)


def _complex_numpy(x: Any, y: Any, factor: float) -> Any:
    is_first = x.real >= y.real
    high, low = np.where(is_first, x, y), np.where(is_first, y, x)
    gap = np.where(x == y, np.zeros((), x.dtype), low - high)
    gap.real, gap.imag = gap.real * factor, gap.imag * factor
    rest = np.where(gap.real == -math.inf, _NOTHING, log1p_numpy(np.exp(gap)))
    angle = high.imag * factor + rest.imag
    high.real += rest.real / factor
    high.imag = np.arctan2(np.sin(angle), np.cos(angle)) / factor
    return high


@primitive_maker
def _logarithm_of_sum(name: str, ufunc: np.ufunc, base: float) -> Primitive:
    """Define the logarithm to a base of the sum of its powers."""
    factor = math.log(base)

    def numpy(x: Any, y: Any) -> Any:
        if dtypes.is_complex(x.dtype):
            return _complex_numpy(x, y, factor)
        is_short = max(x.size, y.size) < _SHORT
        return ufunc(x, y) if is_short else _real_numpy(x, y, factor)

    def call_of_short(avals_in: Any, avals_out: Any) -> NumpyCall | None:
        (out,) = avals_out
        is_native = out.dtype in table.FLOATING & NATIVE
        return NumpyCall(ufunc) if is_native and out.size < _SHORT else None

    def stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
        (out,) = avals_out
        if not dtypes.is_complex(out.dtype):
            return of_real(b, operands, avals_in, avals_out)
        names = [b.broadcast(v, a, out.shape) for v, a in zip(operands, avals_in, strict=True)]
        return b.traced(lambda x, y: [_of_complex(x, y, factor)], names, [out, out], key=name)

    of_real = apart_from_uses(functools.partial(log_of_sum, factor=factor), name)

    def share(x: Any, y: Any) -> Any:
        """Return the share of b^x in b^x + b^y; equal infinities have no difference."""
        real = bind("real", x) if dtypes.is_complex(x.aval.dtype) else x
        infinite = bind("and", bind("eq", x, y), bind("not", bind("is_finite", real)))
        gap = selected(infinite, scalar_like(x, 0), sub(x, y))
        return bind("logistic", _scale(gap, factor))

    return binary(
        name, INEXACT, numpy=in_wider(numpy), stablehlo=stablehlo,
        jvp=(lambda x_dot, z, x, y: mul(x_dot, share(x, y)),
             lambda y_dot, z, x, y: mul(y_dot, share(y, x))),
        ufunc=call_of_short, cost=costs.choice,
    )  # fmt: skip


logaddexp_p = _logarithm_of_sum("logaddexp", np.logaddexp, math.e)
logaddexp2_p = _logarithm_of_sum("logaddexp2", np.logaddexp2, 2)
