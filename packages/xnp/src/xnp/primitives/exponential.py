"""Exponentials and logarithms: exp, exp2, expm1, log, log2, log1p, logistic.

Semantics: StableHLO specification, sections exponential, exponential_minus_one, log, log_plus_one,
logistic. Accuracy: a few ulp; of the host rules as NumPy's, of compiled programs as XLA's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xnp.primitives import complex_text
from xnp.primitives.accuracy import Accuracy, accuracy_attribute
from xnp.primitives.arithmetic import div_p, mul_p
from xnp.primitives.complex_edges import above_minus_one, corrected
from xnp.primitives.narrow_dtypes import in_wider
from xnp.primitives.operations import add, bind, div, mul, neg, scalar_like, scaled
from xnp.primitives.table import INEXACT, tunable_stablehlo, unary
from xprim.contracts import Builder

__all__ = ()

exp_p = unary(
    "exp", INEXACT, numpy=np.exp, stablehlo="stablehlo.exponential", tunable=True,
    jvp=lambda x_dot, y, x: mul_p.bind(x_dot, y)[0],
)  # fmt: skip


def _exp2_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, accuracy: Accuracy = None
) -> list[str]:
    (x,), (aval,) = operands, avals_in
    x = complex_text.scaled(b, x, math.log(2), aval)
    attribute = accuracy_attribute(accuracy)
    results: list[str] = b.op("stablehlo.exponential", [x], [aval], [aval], attribute)
    return results


exp2_p = unary(
    "exp2", INEXACT, numpy=np.exp2, stablehlo=_exp2_stablehlo, tunable=True,
    jvp=lambda x_dot, y, x: mul(x_dot, scaled(y, math.log(2))),
)  # fmt: skip


def _expm1_numpy(x: Any) -> Any:
    result = np.expm1(x)
    if x.dtype.kind != "c":
        return result
    return np.where(x.imag == 0, result.real + x.imag * 1j, result).astype(x.dtype)


expm1_p = unary(
    "expm1", INEXACT, numpy=_expm1_numpy, stablehlo="stablehlo.exponential_minus_one", tunable=True,
    jvp=lambda x_dot, y, x: mul(x_dot, bind("exp", x)),  # y + 1 cancels far below zero
)  # fmt: skip

log_p = unary(
    "log", INEXACT, numpy=np.log, stablehlo="stablehlo.log", tunable=True,
    jvp=lambda x_dot, y, x: div_p.bind(x_dot, x)[0],
)  # fmt: skip


def _log2_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, accuracy: Accuracy = None
) -> list[str]:
    aval = avals_in[0]
    (y,) = b.op("stablehlo.log", operands, [aval], [aval], accuracy_attribute(accuracy))
    return [complex_text.scaled(b, y, 1 / math.log(2), aval)]


log2_p = unary(
    "log2", INEXACT, numpy=np.log2, stablehlo=_log2_stablehlo, tunable=True,
    jvp=lambda x_dot, y, x: div(x_dot, scaled(x, math.log(2))),
)  # fmt: skip


def _log1p_numpy(x: Any) -> Any:
    if x.dtype.kind != "c":
        return np.log1p(x)
    # log(1 + z) = log(|1 + z|^2) / 2 + i angle, and |1 + z|^2 = 1 + (2 x + x^2 + y^2), whose sum
    # cancels near the circle around -1: it is taken with the errors of its terms.
    re, im = x.real.astype(np.float64), x.imag.astype(np.float64)
    with_one = re + 1
    excess = _sum_of_squares_more_than_one(re, im)
    near = np.abs(excess) < 0.5
    size = np.where(
        near, np.log1p(np.where(near, excess, 0)) / 2, np.log(np.hypot(with_one, im))
    )  # fmt: skip
    result = np.empty(x.shape, x.dtype)
    result.real, result.imag = size, np.arctan2(im, with_one)
    return result


def _sum_of_squares_more_than_one(x: Any, y: Any) -> Any:
    """Return 2 x + x^2 + y^2 with the rounding errors of the products and sums added."""
    (xx, xx_error), (yy, yy_error) = _exact_square(x), _exact_square(y)
    first, first_error = _exact_sum(2 * x, yy)
    total, total_error = _exact_sum(first, xx)
    return total + (first_error + total_error + xx_error + yy_error)


def _exact_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return a + b rounded, and its error. Source: Knuth's TwoSum."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _exact_square(a: Any) -> tuple[Any, Any]:
    """Return a^2 rounded, and its error. Source: Dekker's product with Veltkamp's splitting."""
    scaled_up = a * (2.0**27 + 1)
    high = scaled_up - (scaled_up - a)
    low = a - high
    square = a * a
    return square, ((high * high - square) + 2 * high * low) + low * low


log1p_p = unary(
    "log1p", INEXACT, numpy=_log1p_numpy, tunable=True,
    stablehlo=corrected(tunable_stablehlo("stablehlo.log_plus_one"), above_minus_one),
    jvp=lambda x_dot, y, x: div(x_dot, add(x, scalar_like(x, 1))),
)  # fmt: skip


@in_wider
def _logistic_numpy(x: Any) -> Any:
    one = np.ones((), x.dtype)
    if x.dtype.kind != "c":
        return one / (one + np.exp(-x))
    # of complex numbers NumPy divides one by an infinity to NaN: the power that cannot overflow
    is_left = x.real < 0
    power = np.exp(np.where(is_left, x, -x))
    return np.where(is_left, power, one) / (one + power)


def _logistic_jvp(x_dot: Any, y: Any, x: Any) -> Any:
    # 1 / (1 + e^-x) has the derivative y (1 - y), where 1 - y is logistic(-x) with all digits
    return mul(x_dot, mul(y, bind("logistic", neg(x))))


logistic_p = unary(
    "logistic", INEXACT, numpy=_logistic_numpy, stablehlo="stablehlo.logistic", tunable=True,
    jvp=_logistic_jvp,
)  # fmt: skip
