"""Modified Bessel functions, scaled: bessel_i0e = exp(-|x|) I0(x), bessel_i1e = exp(-|x|) I1(x).

Computed by Chebyshev series in x up to 8, in 1/x beyond; on the host in float64. The functions
that are not scaled, bessel_i0 and bessel_i1, are products whose factors have kinks at 0 that
cancel, so they have rules of their own: I0' = I1, I1' = I0 - I1 / x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.chebyshev import I0E_LARGE, I0E_SMALL, I1E_LARGE, I1E_SMALL, chebyshev
from xnp.primitives.choice_text import chosen, compared
from xnp.primitives.operations import (
    add,
    bind,
    div,
    filled,
    in_dtype,
    mul,
    scalar_like,
    scaled,
    selected,
    sub,
)
from xnp.primitives.special_error import in_float32_stablehlo, in_float64
from xnp.primitives.table import FLOATING, unary
from xprim import dtypes
from xprim.contracts import Builder

__all__ = ()


def _i0e64(x: Any) -> Any:
    size = np.abs(x)
    outer = np.maximum(size, 8.0)
    far = chebyshev(16.0 / outer - 1.0, I0E_LARGE) / np.sqrt(outer)
    return np.where(size <= 8, chebyshev(np.minimum(size, 8.0) / 4.0 - 1.0, I0E_SMALL), far)


def _i1e64(x: Any) -> Any:
    size = np.abs(x)
    inner, outer = np.minimum(size, 8.0), np.maximum(size, 8.0)
    near = inner * chebyshev(inner / 4.0 - 1.0, I1E_SMALL)
    far = chebyshev(16.0 / outer - 1.0, I1E_LARGE) / np.sqrt(outer)
    return np.copysign(np.where(size <= 8, near, far), x)


def _i0e_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    """Write the two series out: CHLO has no operation for this function."""
    (x,), (aval,), (out,) = operands, avals_in, avals_out
    wide = aval if out.dtype in (dtypes.float32, dtypes.float64) else (
        aval.update(dtype=dtypes.float32))  # fmt: skip
    precision = 1e-17 if wide.dtype == dtypes.float64 else 1e-9

    def op(name: str, *names: str) -> str:
        return b.same_type_op(f"stablehlo.{name}", names, wide)

    def const(value: float) -> str:
        return b.constant(value, wide)

    def series(t: str, coefficients: Sequence[float]) -> str:
        kept = [c for c in coefficients if abs(c) > precision]
        twice, result, after = op("add", t, t), const(kept[-1]), const(0.0)
        for c in kept[-2:0:-1]:
            step = op("subtract", op("multiply", twice, result), after)
            result, after = op("add", const(c), step), result
        return op("subtract", op("add", const(kept[0]), op("multiply", t, result)), after)

    size = op("abs", b.convert(x, aval, wide.dtype))
    eight, one = const(8.0), const(1.0)
    inner, outer = op("minimum", size, eight), op("maximum", size, eight)
    near = series(op("subtract", op("multiply", inner, const(0.25)), one), I0E_SMALL)
    far = series(op("subtract", op("divide", const(16.0), outer), one), I0E_LARGE)
    far = op("multiply", far, op("rsqrt", outer))
    y = chosen(b, compared(b, "GT", size, eight, wide), far, near, wide)
    return [b.convert(y, wide, out.dtype)]


def _i1e_slope(y: Any, x: Any) -> Any:
    """Return d/dx exp(-|x|) I1(x) = exp(-|x|) I0(x) - y (sign(x) + 1/x), which is 1/2 at 0."""
    tiny = bind("lt", bind("abs", x), scalar_like(x, float(dtypes.finfo(x.aval.dtype).eps)))
    safe = selected(tiny, scalar_like(x, 1), x)
    inverse = div(scalar_like(x, 1), safe)
    slope = sub(bind("bessel_i0e", safe), mul(y, add(bind("sign", safe), inverse)))
    return selected(tiny, scalar_like(x, 0.5), slope)


bessel_i0e_p = unary(
    "bessel_i0e", FLOATING, numpy=in_float64(_i0e64), stablehlo=_i0e_stablehlo,
    # I0' = I1, so d/dx exp(-|x|) I0 = exp(-|x|) I1 - sign(x) y
    jvp=lambda x_dot, y, x: mul(x_dot, sub(bind("bessel_i1e", x), mul(bind("sign", x), y))),
    cost=costs.special,
)  # fmt: skip

bessel_i1e_p = unary(
    "bessel_i1e", FLOATING, numpy=in_float64(_i1e64),
    stablehlo=in_float32_stablehlo("chlo.bessel_i1e"),
    jvp=lambda x_dot, y, x: mul(x_dot, _i1e_slope(y, x)), cost=costs.special,
)  # fmt: skip


# --- not scaled -------------------------------------------------------------------------------


def _unscaled64(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def unscaled(x: Any) -> Any:
        scale = np.exp(np.abs(x) / 2)  # twice: e^|x| overflows before the product does
        value = function(x)
        # infinite where exp is, though the scaled function may be 0 there
        return scale * np.where(np.isinf(scale), np.copysign(1.0, value), value) * scale

    return unscaled


def _unscaled_stablehlo(name: str, sign: Callable[[Any], Any]) -> Callable[..., Any]:
    def unscaled(narrow: Any) -> list[Any]:
        dtype = narrow.aval.dtype
        wide = dtype if dtype in (dtypes.float32, dtypes.float64) else dtypes.float32
        x = in_dtype(narrow, wide)
        # e^|x| in two factors: it overflows before the product with the scaled function does
        scale, value = bind("exp", scaled(bind("abs", x), 0.5)), bind(name, x)
        infinite = bind("eq", scale, scalar_like(x, float("inf")))
        product = mul(mul(scale, selected(infinite, sign(x), value)), scale)
        return [in_dtype(product, dtype)]

    def stablehlo_rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
        return b.traced(unscaled, operands, avals_in, key=name)

    return stablehlo_rule


def _i1_slope(x: Any) -> Any:
    """Return I0(x) - I1(x) / x, which is 1/2 + 3 x^2 / 16 + 5 x^4 / 384 near 0."""
    limit = float(dtypes.finfo(x.aval.dtype).eps) ** 0.25
    near = bind("lt", bind("abs", x), scalar_like(x, limit))
    safe, square = selected(near, scalar_like(x, 1), x), bind("square", x)
    series = scaled(add(scalar_like(x, 1), scaled(square, 3 / 8)), 0.5)
    return selected(near, series, sub(bind("bessel_i0", safe), div(bind("bessel_i1", safe), safe)))


bessel_i0_p = unary(
    "bessel_i0", FLOATING, numpy=in_float64(_unscaled64(_i0e64)),
    stablehlo=_unscaled_stablehlo("bessel_i0e", lambda x: filled(x.aval.shape, 1, x.aval.dtype)),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("bessel_i1", x)), cost=costs.special,
)  # fmt: skip

bessel_i1_p = unary(
    "bessel_i1", FLOATING, numpy=in_float64(_unscaled64(_i1e64)),
    stablehlo=_unscaled_stablehlo("bessel_i1e", lambda x: bind("sign", x)),
    jvp=lambda x_dot, y, x: mul(x_dot, _i1_slope(x)), cost=costs.special,
)  # fmt: skip
