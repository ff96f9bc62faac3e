"""Elementwise arithmetic: addition, subtraction, multiplication, negation.

Semantics: StableHLO specification, sections add, subtract, multiply, negate; integers wrap around.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.table import ANY, NUMBER, binary, unary
from xprim import Linear, Zero


def _add_transpose(ct: Any, x: Any, y: Any) -> Any:
    return tuple([ct if type(v) is Linear else Zero(v.aval) for v in (x, y)])


def _sub_transpose(ct: Any, x: Any, y: Any) -> Any:
    return (
        ct if type(x) is Linear else Zero(x.aval),
        neg_p.bind(ct)[0] if type(y) is Linear else Zero(y.aval),
    )


def _mul_transpose(ct: Any, x: Any, y: Any) -> Any:
    if type(x) is Linear:
        return mul_p.bind(ct, y)[0], Zero(y.aval)
    return Zero(x.aval), mul_p.bind(x, ct)[0]


neg_p = unary(
    "neg", NUMBER, numpy=np.negative, stablehlo="stablehlo.negate",
    jvp=lambda x_dot, y, x: neg_p.bind(x_dot)[0],
    linear=lambda ct: neg_p.bind(ct)[0],
)  # fmt: skip

add_p = binary(
    "add", ANY, numpy=np.add, stablehlo="stablehlo.add",
    jvp=(lambda x_dot, z, x, y: x_dot, lambda y_dot, z, x, y: y_dot),
    transpose=_add_transpose,
)  # fmt: skip

sub_p = binary(
    "sub", NUMBER, numpy=np.subtract, stablehlo="stablehlo.subtract",
    jvp=(lambda x_dot, z, x, y: x_dot, lambda y_dot, z, x, y: neg_p.bind(y_dot)[0]),
    transpose=_sub_transpose,
)  # fmt: skip

mul_p = binary(
    "mul", ANY, numpy=np.multiply, stablehlo="stablehlo.multiply",
    jvp=(lambda x_dot, z, x, y: mul_p.bind(x_dot, y)[0],
         lambda y_dot, z, x, y: mul_p.bind(x, y_dot)[0]),
    transpose=_mul_transpose,
)  # fmt: skip
