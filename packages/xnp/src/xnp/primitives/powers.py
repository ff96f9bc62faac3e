"""Powers and roots: pow, integer_pow, square, sqrt, rsqrt, cbrt, one_minus_square, polynomial.

Semantics: StableHLO specification, sections power, sqrt, rsqrt, cbrt. `pow` takes an exponent of
the base's dtype or an integer one; `integer_pow[y]` has its exponent as a param and multiplies by
repeated squaring; `polynomial x c0 c1 ...` is c0 + c1 x + c2 x^2 + ... by Horner's scheme.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.arithmetic import div_p, mul_p
from xnp.primitives.choice_text import chosen, compared
from xnp.primitives.complex_text import mirrored, of_parts, parts_of
from xnp.primitives.narrow_dtypes import in_wider
from xnp.primitives.operations import (
    add,
    bind,
    div,
    in_dtype,
    mul,
    scalar_like,
    scaled,
    selected,
    sub,
)
from xnp.primitives.table import (
    COMPLEX,
    FLOATING,
    INEXACT,
    INTEGER,
    NATIVE,
    NUMBER,
    common_dtype,
    elementwise_shape,
    equal_shape,
    repeated,
    tunable_stablehlo,
    unary,
)
from xprim import (
    ELEMENTWISE,
    NumpyCall,
    Operand,
    Primitive,
    ShapedArray,
    Zero,
    dtypes,
    shaped_array,
    state,
    undefined,
)
from xprim.contracts import Builder
from xprim.errors import message

__all__ = ()

# --- pow ----------------------------------------------------------------------------------------


def _pow_shape(x: ShapedArray, y: ShapedArray) -> tuple[ShapedArray, ...]:
    if x.dtype not in INEXACT:
        raise TypeError(message(
            "pow", f"does not take a base of dtype {x.dtype.name}.",
            expected="a floating or complex dtype",
            hint="integer_pow takes integers, and so does xnp.power",
        ))  # fmt: skip
    if y.dtype not in INTEGER:
        common_dtype("pow", (x, y))
    weak = x.weak_type and y.weak_type
    return (shaped_array(equal_shape("pow", (x, y)), x.dtype, weak),)


def _pow_numpy(x: Any, y: Any) -> Any:
    dtype = x.dtype
    if dtype in COMPLEX:
        return (_complex_power(x, y).astype(dtype, copy=False),)
    if y.dtype is dtype:
        return (np.power(x, y),)
    if y.dtype in INTEGER:
        wide = dtypes.float64  # holds any int32
        return (np.power(x.astype(wide), y.astype(wide)).astype(dtype),)
    return (np.power(x, y),)


def _complex_power(x: Any, y: Any) -> Any:
    """Return x^y; by its exponent where NumPy has NaN, 1 and what vanishes apart (see below)."""
    wide = dtypes.complex128 if y.dtype in INTEGER else x.dtype
    x, y = x.astype(wide, copy=False), y.astype(wide, copy=False)
    power = np.power(x, y)
    is_spoilt = ~np.isfinite(power) | np.isinf(np.abs(x))
    if is_spoilt.any():
        logarithm, angle = np.log(x).real, np.arctan2(x.imag, x.real)
        turned = y.imag * angle
        exponent = y.real * logarithm - np.where(np.isnan(turned), 0, turned)
        direction = y.real * angle + y.imag * logarithm
        by_exponent = np.exp(exponent) * (np.cos(direction) + 1j * np.sin(direction))
        power = np.where(is_spoilt & np.isfinite(exponent), by_exponent.astype(wide), power)
        power = np.where(x == 1, 1, np.where(exponent == -np.inf, 0, power))
    return power


def _pow_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (x, y), (x_aval, y_aval), (out,) = operands, avals_in, avals_out
    y = b.convert(y, y_aval, x_aval.dtype)
    y = b.broadcast(y, shaped_array(y_aval.shape, x_aval.dtype), out.shape)
    x = b.broadcast(x, x_aval, out.shape)
    power = b.same_type_op("stablehlo.power", [x, y], out)
    return [_with_right_factors(b, power, x, y, out) if dtypes.is_complex(out.dtype) else power]


def _with_right_factors(b: Builder, power: str, x: str, y: str, aval: ShapedArray) -> str:
    """Write |x^y| = exp(Re(y) log|x| - Im(y) arg x) by its exponent where a factor is no number.

    The compiler multiplies |x|^Re(y) by the rest, which is NaN, infinite or 0 where one of the two
    overflows or vanishes alone. Where the exponent is -inf the power is 0: 0 to a power with a
    positive real part, and 1 / inf; the compiler has NaN, the product of 0 with a direction that
    is none. Infinity times the angle 0 turns nothing.
    """
    (real, imag), part = parts_of(b, y, aval)
    (x_real, x_imag), _ = parts_of(b, x, aval)
    angle = b.same_type_op("stablehlo.atan2", [x_imag, x_real], part)
    (logarithm, _), _ = parts_of(b, b.same_type_op("stablehlo.log", [x], aval), aval)
    grown = b.same_type_op("stablehlo.multiply", [real, logarithm], part)
    turned = b.same_type_op("stablehlo.multiply", [imag, angle], part)
    is_turned = compared(b, "EQ", turned, turned, part)
    turned = chosen(b, is_turned, turned, b.constant(0, part), part)
    exponent = b.same_type_op("stablehlo.subtract", [grown, turned], part)
    direction = b.same_type_op(
        "stablehlo.add",
        [b.same_type_op("stablehlo.multiply", [real, angle], part),
         b.same_type_op("stablehlo.multiply", [imag, logarithm], part)],
        part,
    )  # fmt: skip
    by_exponent = of_parts(b, [exponent, direction], part, aval)
    by_exponent = b.same_type_op("stablehlo.exponential", [by_exponent], aval)
    power = chosen(
        b, _spoilt(b, [logarithm, grown, turned], exponent, part), by_exponent, power, aval
    )
    vanishes = compared(b, "EQ", exponent, b.constant(-np.inf, part), part)
    return chosen(b, vanishes, b.constant(0, aval), power, aval)


def _spoilt(b: Builder, logarithms: list[str], exponent: str, part: ShapedArray) -> str:
    """Write where the size of the base or a factor of the power is no number; its exponent is."""
    least = float(np.log(dtypes.finfo(part.dtype).smallest_normal))
    sizes = [b.same_type_op("stablehlo.abs", [x], part) for x in logarithms]
    greatest = sizes[0]
    for size in sizes[1:]:
        greatest = b.same_type_op("stablehlo.maximum", [greatest, size], part)
    truth = shaped_array(part.shape, dtypes.bool_)
    both = [
        compared(b, "GT", greatest, b.constant(-least - 0.5, part), part),
        compared(b, "LT", exponent, b.constant(np.inf, part), part),
    ]
    return b.same_type_op("stablehlo.and", both, truth)


def _pow_jvp(primals: Any, tangents: Any) -> Any:
    """d(x^y) = y x^(y-1) dx + log(x) x^y dy, with log(0) as 0.

    Where y = 0 and x^-1 is no number, the first factor 0 wins: x^0 is 1 for every x.
    """
    (x, y), (x_dot, y_dot) = primals, tangents
    (z,) = state.trace.process(pow_p, (x, y), {})
    total = None
    if type(x_dot) is not Zero:
        less = bind("pow", _powered(x, y, z.aval.shape), sub(y, scalar_like(y, 1)))
        total = repeated(mul(x_dot, mul(in_dtype(y, x.aval.dtype), less)), z.aval.shape)
    if type(y_dot) is not Zero and y.aval.dtype in INEXACT:
        base = selected(bind("eq", x, scalar_like(x, 0)), scalar_like(x, 1), x)
        term = repeated(mul(y_dot, mul(bind("log", base), z)), z.aval.shape)
        total = term if total is None else add(total, term)
    return (z,), (Zero(z.aval) if total is None else total,)


def _powered(x: Any, y: Any, shape: tuple[int, ...]) -> Any:
    """Return the base of x^(y-1): x, but 1 where y = 0 and 1 / x is infinite or NaN."""
    at_zero = bind("eq", y, scalar_like(y, 0))
    tame = bind("is_finite", bind("abs", div(scalar_like(x, 1), x)))
    usual = bind("or", bind("not", at_zero), tame)
    return selected(repeated(usual, shape), repeated(x, shape), scalar_like(x, 1))


pow_p = Primitive(
    "pow",
    shape=_pow_shape,
    numpy=_pow_numpy,
    stablehlo=_pow_stablehlo,
    jvp=_pow_jvp,
    transpose=undefined("it is not linear"),
    batch=ELEMENTWISE,
    cost=costs.nothing,
)


# --- integer_pow --------------------------------------------------------------------------------


def by_squaring(x: Any, y: int, product: Callable[[Any, Any], Any]) -> Any:
    """Return x^y for y > 0 by repeated squaring, with the given product."""
    result = None
    while True:
        if y & 1:
            result = x if result is None else product(result, x)
        y >>= 1
        if y == 0:
            return result
        x = product(x, x)


def _integer_pow_shape(x: ShapedArray, *, y: int) -> tuple[ShapedArray, ...]:
    if y < 0 and x.dtype in INTEGER:
        raise TypeError(message(
            "integer_pow", "an integer cannot be raised to a negative power.",
            got=f"{x.str_long()} to the power {y}",
        ))  # fmt: skip
    return _number_shape(x)


_number_shape = elementwise_shape("integer_pow", NUMBER)


@in_wider
def _integer_pow_numpy(x: Any, *, y: int) -> Any:
    if y == 0:
        return np.ones(x.shape, x.dtype)
    power = by_squaring(x, abs(y), np.multiply)
    return power if y > 0 else np.divide(np.ones((), x.dtype), power)


def _square_ufunc(avals_in: Any, avals_out: Any, *, y: int = 2) -> NumpyCall | None:
    if y != 2 or avals_in[0].dtype not in NATIVE:
        return None
    return NumpyCall(np.multiply, (Operand(0), Operand(0)))


def _integer_pow_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, y: int
) -> list[str]:
    (x,), (aval,) = operands, avals_in
    if y == 0:
        return [b.constant(1, aval)]
    power = by_squaring(x, abs(y), lambda u, v: b.same_type_op("stablehlo.multiply", [u, v], aval))
    if y < 0:
        power = b.same_type_op("stablehlo.divide", [b.constant(1, aval), power], aval)
    return [power]


def _integer_pow_jvp(x_dot: Any, z: Any, x: Any, *, y: int) -> Any:
    if y == 0:
        return Zero(z.aval)
    less = x if y == 2 else bind("integer_pow", x, y=y - 1)  # d(x^y) = y x^(y-1) dx
    return mul(x_dot, scaled(less, y))


integer_pow_p = unary(
    "integer_pow", NUMBER, numpy=_integer_pow_numpy, stablehlo=_integer_pow_stablehlo,
    jvp=_integer_pow_jvp, shape=_integer_pow_shape, has_params=True, ufunc=_square_ufunc,
)  # fmt: skip


# --- squares and roots --------------------------------------------------------------------------


def _square_numpy(x: Any) -> Any:
    if x.dtype.kind != "c":
        return np.multiply(x, x)
    a, b = x.real, x.imag  # (a + ib)^2 = (a - b)(a + b) + 2iab, whose digits do not cancel
    result = np.empty(x.shape, x.dtype)
    is_diagonal = (np.abs(a) == np.abs(b)) & np.isfinite(a)
    result.real = np.where(is_diagonal, np.zeros((), a.dtype), (a - b) * (a + b))
    result.imag = 2 * (a * b)
    return result


def _square_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (x,), (aval,) = operands, avals_in
    if not dtypes.is_complex(aval.dtype):
        return [b.same_type_op("stablehlo.multiply", [x, x], aval)]
    (re, im), part = parts_of(b, x, aval)
    below = b.same_type_op("stablehlo.subtract", [re, im], part)
    above = b.same_type_op("stablehlo.add", [re, im], part)
    product = b.same_type_op("stablehlo.multiply", [below, above], part)
    sizes = [b.same_type_op("stablehlo.abs", [y], part) for y in (re, im)]
    nothing = b.same_type_op("stablehlo.subtract", sizes, part)  # 0, or NaN of infinite parts
    is_diagonal = compared(b, "EQ", sizes[0], sizes[1], part)
    real = chosen(b, is_diagonal, nothing, product, part)
    cross = b.same_type_op("stablehlo.multiply", [re, im], part)
    imag = b.same_type_op("stablehlo.add", [cross, cross], part)
    return [of_parts(b, [real, imag], part, aval)]


def _real_square_ufunc(avals_in: Any, avals_out: Any) -> NumpyCall | None:
    return None if dtypes.is_complex(avals_in[0].dtype) else _square_ufunc(avals_in, avals_out)


square_p = unary(
    "square", NUMBER, numpy=_square_numpy, stablehlo=_square_stablehlo,
    jvp=lambda x_dot, y, x: mul(x_dot, scaled(x, 2)), ufunc=_real_square_ufunc,
    cost=costs.arithmetic,
)  # fmt: skip

sqrt_p = unary(
    "sqrt", INEXACT, numpy=np.sqrt, stablehlo=mirrored(tunable_stablehlo("stablehlo.sqrt")),
    tunable=True,
    jvp=lambda x_dot, y, x: mul_p.bind(x_dot, div_p.bind(scalar_like(x, 0.5), y)[0])[0],
)  # fmt: skip


@in_wider
def _rsqrt_numpy(x: Any) -> Any:
    root = np.sqrt(x)
    inverse = np.divide(np.ones((), x.dtype), root)
    if x.dtype.kind != "c":
        return inverse
    return np.where(np.isinf(root), np.zeros((), x.dtype), inverse)  # where NumPy gives NaN


rsqrt_p = unary(
    "rsqrt", INEXACT, stablehlo=mirrored(tunable_stablehlo("stablehlo.rsqrt")), tunable=True,
    numpy=_rsqrt_numpy,
    # d x^(-1/2) = -1/2 x^(-1/2) / x dx
    jvp=lambda x_dot, y, x: mul(x_dot, scaled(div(y, x), -0.5)),
)  # fmt: skip

cbrt_p = unary(
    "cbrt", FLOATING, numpy=np.cbrt, stablehlo="stablehlo.cbrt", tunable=True,
    jvp=lambda x_dot, y, x: mul(x_dot, scaled(bind("integer_pow", y, y=-2), 1 / 3)),
    cost=costs.nothing,
)  # fmt: skip


def _one_minus_square_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any
) -> list[str]:
    (x,), (aval,) = operands, avals_in
    one = b.constant(1, aval)
    factors = [b.same_type_op(f"stablehlo.{op}", [one, x], aval) for op in ("add", "subtract")]
    return [b.same_type_op("stablehlo.multiply", factors, aval)]


# (1 + x)(1 - x), which is accurate near x = 1 where 1 - x^2 is not
one_minus_square_p = unary(
    "one_minus_square", INEXACT, stablehlo=_one_minus_square_stablehlo,
    numpy=in_wider(lambda x: (1 + x) * (1 - x)),
    jvp=lambda x_dot, y, x: mul(x_dot, scaled(x, -2)),
)  # fmt: skip


# --- polynomial ---------------------------------------------------------------------------------


def _polynomial_numpy(x: Any, *coefficients: Any) -> Any:
    return (_horner(x, *coefficients),)


@in_wider
def _horner(x: Any, *coefficients: Any) -> Any:
    result = np.broadcast_to(coefficients[-1], np.broadcast_shapes(
        x.shape, *[c.shape for c in coefficients]))  # fmt: skip
    for c in coefficients[-2::-1]:
        result = result * x + c
    return result


def _polynomial_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (out,) = avals_out
    x, *cs = [b.broadcast(v, a, out.shape) for v, a in zip(operands, avals_in, strict=True)]
    result = cs[-1]
    for c in cs[-2::-1]:
        product = b.same_type_op("stablehlo.multiply", [result, x], out)
        result = b.same_type_op("stablehlo.add", [product, c], out)
    return [result]


def _polynomial_jvp(primals: Any, tangents: Any) -> Any:
    """D p(x) = p'(x) dx + sum_i x^i dc_i."""
    x, *cs = primals
    x_dot, *c_dots = tangents
    (z,) = state.trace.process(polynomial_p, tuple(primals), {})
    terms = []
    if type(x_dot) is not Zero and len(cs) > 1:
        slopes = [scaled(c, i) for i, c in enumerate(cs) if i]
        terms.append(mul(x_dot, bind("polynomial", x, *slopes)))
    for i, c_dot in enumerate(c_dots):
        if type(c_dot) is not Zero:
            terms.append(mul(c_dot, bind("integer_pow", x, y=i)) if i else c_dot)
    total = None
    for term in terms:
        term = repeated(term, z.aval.shape)
        total = term if total is None else add(total, term)
    return (z,), (Zero(z.aval) if total is None else total,)


polynomial_p = Primitive(
    "polynomial",
    shape=elementwise_shape("polynomial", NUMBER),
    numpy=_polynomial_numpy,
    stablehlo=_polynomial_stablehlo,
    jvp=_polynomial_jvp,
    transpose=undefined("it is not linear"),
    batch=ELEMENTWISE,
)
