"""Exponentials and logarithms: exp, exp2, expm1, log, log2, log1p, logistic.

Semantics: StableHLO specification, sections exponential, exponential_minus_one, log, log_plus_one,
logistic. Accuracy: a few ulp; of the host rules as NumPy's, of compiled programs as XLA's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xnp.primitives.accuracy import Accuracy, accuracy_attribute
from xnp.primitives.arithmetic import div_p, mul_p
from xnp.primitives.narrow_dtypes import in_wider
from xnp.primitives.shorthand import add, bind, div, mul, scalar_like, scaled, sub
from xnp.primitives.table import INEXACT, unary

exp_p = unary(
    "exp", INEXACT, numpy=np.exp, stablehlo="stablehlo.exponential", tunable=True,
    jvp=lambda x_dot, y, x: mul_p.bind(x_dot, y)[0],
)  # fmt: skip


def _exp2_stablehlo(
    b: Any, operands: Any, avals_in: Any, avals_out: Any, accuracy: Accuracy = None
) -> list[str]:
    (x,), (aval,) = operands, avals_in
    x = b.same_type_op("stablehlo.multiply", [x, b.constant(math.log(2), aval)], aval)
    attribute = accuracy_attribute(accuracy)
    results: list[str] = b.op("stablehlo.exponential", [x], [aval], [aval], attribute)
    return results


exp2_p = unary(
    "exp2", INEXACT, numpy=np.exp2, stablehlo=_exp2_stablehlo, tunable=True,
    jvp=lambda x_dot, y, x: mul(x_dot, scaled(y, math.log(2))),
)  # fmt: skip

expm1_p = unary(
    "expm1", INEXACT, numpy=np.expm1, stablehlo="stablehlo.exponential_minus_one", tunable=True,
    jvp=lambda x_dot, y, x: mul(x_dot, bind("exp", x)),  # y + 1 cancels far below zero
)  # fmt: skip

log_p = unary(
    "log", INEXACT, numpy=np.log, stablehlo="stablehlo.log", tunable=True,
    jvp=lambda x_dot, y, x: div_p.bind(x_dot, x)[0],
)  # fmt: skip


def _log2_stablehlo(
    b: Any, operands: Any, avals_in: Any, avals_out: Any, accuracy: Accuracy = None
) -> list[str]:
    aval = avals_in[0]
    (y,) = b.op("stablehlo.log", operands, [aval], [aval], accuracy_attribute(accuracy))
    return [b.same_type_op("stablehlo.multiply", [y, b.constant(1 / math.log(2), aval)], aval)]


log2_p = unary(
    "log2", INEXACT, numpy=np.log2, stablehlo=_log2_stablehlo, tunable=True,
    jvp=lambda x_dot, y, x: div(x_dot, scaled(x, math.log(2))),
)  # fmt: skip

log1p_p = unary(
    "log1p", INEXACT, numpy=np.log1p, stablehlo="stablehlo.log_plus_one", tunable=True,
    jvp=lambda x_dot, y, x: div(x_dot, add(x, scalar_like(x, 1))),
)  # fmt: skip


@in_wider
def _logistic_numpy(x: Any) -> Any:
    one = np.ones((), x.dtype)
    return one / (one + np.exp(-x))


def _logistic_jvp(x_dot: Any, y: Any, x: Any) -> Any:
    # 1 / (1 + e^-x) has the derivative y (1 - y)
    return mul(x_dot, mul(y, sub(scalar_like(y, 1), y)))


logistic_p = unary(
    "logistic", INEXACT, numpy=_logistic_numpy, stablehlo="stablehlo.logistic", tunable=True,
    jvp=_logistic_jvp,
)  # fmt: skip
