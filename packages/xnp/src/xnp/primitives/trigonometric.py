"""Circular and hyperbolic functions and their inverses; angles are in radians.

Semantics: StableHLO and CHLO specifications, sections of these names; branch cuts of the complex
functions as in C99. Accuracy: a few ulp; of the host rules as NumPy's, of compiled programs as
XLA's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.arithmetic import mul_p, neg_p
from xnp.primitives.complex_edges import beside_a_pole, by_hyperbolic_sine, corrected
from xnp.primitives.complex_text import mirrored
from xnp.primitives.operations import add, bind, div, mul, neg, scalar_like, sub
from xnp.primitives.table import (
    FLOATING,
    INEXACT,
    binary,
    retyped_stablehlo,
    tunable_stablehlo,
    unary,
)
from xnp.primitives.upcast_lowering import upcast
from xprim import Primitive, dtypes

__all__ = ()


def _formula(op: str) -> Callable[..., Any]:
    """Return the rule of an operation that is a formula, with numbers beyond the 8-bit floats.

    XLA's compiler does not end on asinh of some of these.
    """
    return upcast(retyped_stablehlo(op), dtypes.SMALL_FLOATS, np.float32)


def _squared(x: Any) -> Any:
    return bind("square", x)


def _one_plus_square(x: Any) -> Any:
    return add(_squared(x), scalar_like(x, 1))


sin_p = unary(
    "sin", INEXACT, numpy=np.sin, tunable=True,
    stablehlo=corrected(
        tunable_stablehlo("stablehlo.sine"), by_hyperbolic_sine(1, 1, "stablehlo.cosine")
    ),
    jvp=lambda x_dot, y, x: mul_p.bind(x_dot, cos_p.bind(x)[0])[0], cost=costs.nothing,
)  # fmt: skip
cos_p: Primitive = unary(
    "cos", INEXACT, numpy=np.cos, tunable=True,
    stablehlo=corrected(
        tunable_stablehlo("stablehlo.cosine"), by_hyperbolic_sine(1, 1, "stablehlo.sine", -1.0)
    ),
    jvp=lambda x_dot, y, x: neg_p.bind(mul_p.bind(x_dot, sin_p.bind(x)[0])[0])[0],
    cost=costs.nothing,
)  # fmt: skip
tan_p = unary(
    "tan", INEXACT, numpy=np.tan, stablehlo="stablehlo.tan", tunable=True,
    jvp=lambda x_dot, y, x: mul(x_dot, _one_plus_square(y)), cost=costs.nothing,
)  # fmt: skip
asin_p = unary(
    "asin", INEXACT, numpy=np.arcsin, stablehlo=mirrored(_formula("chlo.asin")),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("rsqrt", bind("one_minus_square", x))),
)  # fmt: skip
acos_p = unary(
    "acos", INEXACT, numpy=np.arccos, stablehlo=mirrored(_formula("chlo.acos")),
    jvp=lambda x_dot, y, x: mul(x_dot, neg(bind("rsqrt", bind("one_minus_square", x)))),
)  # fmt: skip
atan_p = unary(
    "atan", INEXACT, numpy=np.arctan,
    stablehlo=corrected(mirrored(_formula("chlo.atan"), "imaginary"), beside_a_pole(1)),
    jvp=lambda x_dot, y, x: div(x_dot, _one_plus_square(x)),
)  # fmt: skip

# the angle of the point (y, x): d atan2(x, y) = (y dx - x dy) / (x^2 + y^2)
atan2_p = binary(
    "atan2", FLOATING, numpy=np.arctan2, stablehlo="stablehlo.atan2",
    jvp=(lambda x_dot, z, x, y: mul(x_dot, div(y, add(_squared(x), _squared(y)))),
         lambda y_dot, z, x, y: mul(y_dot, div(neg(x), add(_squared(x), _squared(y))))),
    cost=costs.nothing,
)  # fmt: skip

sinh_p = unary(
    "sinh", INEXACT, numpy=np.sinh,
    stablehlo=corrected(_formula("chlo.sinh"), by_hyperbolic_sine(0, 0, "stablehlo.cosine")),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("cosh", x)),
)  # fmt: skip
cosh_p = unary(
    "cosh", INEXACT, numpy=np.cosh,
    stablehlo=corrected(_formula("chlo.cosh"), by_hyperbolic_sine(0, 1, "stablehlo.sine")),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("sinh", x)),
)  # fmt: skip
# (1 - y)(1 + y) and not 1 - y^2: y is near 1 for most large x
tanh_p = unary(
    "tanh", INEXACT, numpy=np.tanh, stablehlo="stablehlo.tanh", tunable=True,
    jvp=lambda x_dot, y, x: mul(x_dot, bind("one_minus_square", y)),
)  # fmt: skip
asinh_p = unary(
    "asinh", INEXACT, numpy=np.arcsinh, stablehlo=mirrored(_formula("chlo.asinh"), "imaginary"),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("rsqrt", _one_plus_square(x))),
)  # fmt: skip
# sqrt(x - 1) sqrt(x + 1) has the branch cuts of acosh, sqrt(x^2 - 1) has not
acosh_p = unary(
    "acosh", INEXACT, numpy=np.arccosh, stablehlo=mirrored(_formula("chlo.acosh")),
    jvp=lambda x_dot, y, x: mul(x_dot, mul(bind("rsqrt", sub(x, scalar_like(x, 1))),
                                           bind("rsqrt", add(x, scalar_like(x, 1))))),
)  # fmt: skip
atanh_p = unary(
    "atanh", INEXACT, numpy=np.arctanh,
    stablehlo=corrected(mirrored(_formula("chlo.atanh")), beside_a_pole(0)),
    jvp=lambda x_dot, y, x: div(x_dot, bind("one_minus_square", x)),
)  # fmt: skip
