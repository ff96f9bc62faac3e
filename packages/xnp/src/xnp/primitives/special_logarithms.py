"""Logarithms with a limit or a difference of their own: xlogy, xlog1py, logit.

    xlogy(x, y) = x log(y), 0 where x = 0;   logit(p) = log(p / (1 - p))

The derivative of xlogy in y is x / y, 0 where both are 0; in x it is log(y) everywhere, so that
entropies have their infinite slopes at 0. The mixed second derivative is 1 / y in both orders.
logit is 2 atanh(2 p - 1) near 1/2, where the quotient would be near 1: in float32 by a polynomial,
in float64 as log(1 + (2 p - 1) / (1 - p)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.formula_backends import NarrowPrecision, numpy_rule, stablehlo_rule
from xnp.primitives.operations import bind, div, filled, mul, scalar_like, selected, sub
from xnp.primitives.table import FLOATING, INEXACT, binary, unary
from xprim.contracts import Builder

__all__ = ()


def _product_numpy(log: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def rule(x: Any, y: Any) -> Any:
        zero = (x == 0) & (y == y)
        return np.where(zero, np.zeros((), x.dtype), x * log(np.where(zero, 1, y).astype(y.dtype)))

    return rule


def _product_stablehlo(log: str) -> Callable[..., Any]:
    def product(x: Any, y: Any) -> list[Any]:
        zero = bind("and", bind("eq", x, scalar_like(x, 0)), bind("eq", y, y))
        value = mul(x, bind(log, selected(zero, filled(y.aval.shape, 1, y.aval.dtype), y)))
        return [selected(zero, filled(value.aval.shape, 0, value.aval.dtype), value)]

    def stablehlo_rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
        (out,) = avals_out
        names = [b.broadcast(name, aval, out.shape)
                 for name, aval in zip(operands, avals_in, strict=True)]  # fmt: skip
        wide = [aval.update(shape=out.shape) for aval in avals_in]
        return b.traced(product, names, wide, key=f"product with {log}")

    return stablehlo_rule


# 2 (atanh(s) / s - 1) / s^2 by powers of s^2 for |s| <= 1/2, least squares at 200 points of
# Chebyshev's: 2 atanh(s) is right to 5e-9 of it, a twelfth of a unit of the last place of float32.
_ATANH = (
    0.6666666269302368, 0.4000099301338196, 0.28526484966278076, 0.22956450283527374,
    0.12910006940364838, 0.31627508997917175,
)  # fmt: skip


def logit(m: Any, p: Any) -> Any:
    """Return log(p / (1 - p)); infinite at 0 and 1, NaN outside.

    Nothing cancels: 2 p - 1 is exact near 1/2, as is 1 - p above it.
    """
    return m.narrowed(_logit, p)


def _logit(m: Any, p: Any) -> Any:
    s, rest = 2.0 * p - 1.0, 1.0 - p
    near, far = m.abs(s) < 0.5, m.log(p / rest)
    if m.precision is not NarrowPrecision:
        return m.where(near, m.log1p(m.where(near, s, 0.0) / rest), far)
    square, series = s * s, _ATANH[-1]
    for c in _ATANH[-2::-1]:
        series = series * square + c
    return m.where(near, 2.0 * s + s * square * series, far)


xlogy_p = binary(
    "xlogy", INEXACT, numpy=_product_numpy(np.log), stablehlo=_product_stablehlo("log"),
    jvp=(lambda x_dot, z, x, y: mul(x_dot, bind("log", y)),
         lambda y_dot, z, x, y: mul(y_dot, bind("zero_quotient", x, y))),
    cost=costs.special,
)  # fmt: skip

xlog1py_p = binary(
    "xlog1py", INEXACT, numpy=_product_numpy(np.log1p), stablehlo=_product_stablehlo("log1p"),
    jvp=(lambda x_dot, z, x, y: mul(x_dot, bind("log1p", y)),
         lambda y_dot, z, x, y: mul(
             y_dot, bind("zero_quotient", x, bind("add", y, scalar_like(y, 1))))),
    cost=costs.special,
)  # fmt: skip

logit_p = unary(
    "logit", FLOATING, numpy=numpy_rule(logit), stablehlo=stablehlo_rule(logit),
    jvp=lambda x_dot, y, x: div(x_dot, mul(x, sub(scalar_like(x, 1), x))), cost=costs.special,
)  # fmt: skip
