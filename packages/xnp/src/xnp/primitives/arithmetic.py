"""Elementwise arithmetic: neg, add, sub, mul, div, rem, max, min, abs, sign.

Semantics: StableHLO specification, sections of these names. Integers wrap around; division rounds
towards zero, division by zero gives -1 (all bits set) and a remainder by zero the dividend; max and
min propagate NaN, and order complex numbers by their real, then their imaginary parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.choice_text import chosen, compared
from xnp.primitives.complex_division import div_stablehlo, divided
from xnp.primitives.complex_edges import in_range
from xnp.primitives.complex_text import magnitude
from xnp.primitives.narrow_dtypes import in_bytes, same_dtype
from xnp.primitives.operations import bind, filled, in_dtype, scalar_like, selected
from xnp.primitives.table import (
    ANY,
    COMPLEX,
    FLOATING,
    INEXACT,
    INTEGER,
    NATIVE,
    NUMBER,
    SIGNED,
    binary,
    elementwise_stablehlo,
    repeated,
    retyped_stablehlo,
    unary,
)
from xprim import (
    LINEAR,
    Linear,
    Operand,
    Primitive,
    Zero,
    dtypes,
    linear_in,
    multilinear,
    shaped_array,
)
from xprim.contracts import Builder

__all__ = ()

# --- linear operations --------------------------------------------------------------------------


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


neg_p: Primitive = unary(
    "neg", NUMBER, numpy=same_dtype(np.negative), stablehlo="stablehlo.negate",
    jvp=lambda x_dot, y, x: neg_p.bind(x_dot)[0],
    linear=lambda ct: neg_p.bind(ct)[0], ufunc=np.negative, cost=costs.arithmetic,
)  # fmt: skip

# XLA folds the sum of two constant masks as that of one-bit integers, so True + True is False.
add_p: Primitive = binary(
    "add", ANY, numpy=np.add, stablehlo=elementwise_stablehlo("stablehlo.add", "stablehlo.or"),
    jvp=(lambda x_dot, z, x, y: x_dot, lambda y_dot, z, x, y: y_dot),
    transpose=_add_transpose, cost=costs.arithmetic, linearity=LINEAR,
)  # fmt: skip

sub_p: Primitive = binary(
    "sub", NUMBER, numpy=np.subtract, stablehlo="stablehlo.subtract",
    jvp=(lambda x_dot, z, x, y: x_dot, lambda y_dot, z, x, y: neg_p.bind(y_dot)[0]),
    transpose=_sub_transpose, cost=costs.arithmetic, linearity=LINEAR,
)  # fmt: skip

mul_p: Primitive = binary(
    "mul", ANY, numpy=np.multiply,
    stablehlo=elementwise_stablehlo("stablehlo.multiply", "stablehlo.and"),
    jvp=(lambda x_dot, z, x, y: mul_p.bind(x_dot, y)[0],
         lambda y_dot, z, x, y: mul_p.bind(x, y_dot)[0]),
    transpose=_mul_transpose, cost=costs.arithmetic, linearity=multilinear(0, 1),
)  # fmt: skip


# --- division -----------------------------------------------------------------------------------


def _div_numpy(x: Any, y: Any) -> Any:
    if x.dtype in COMPLEX:
        return divided(x, y)
    return np.true_divide(x, y) if x.dtype in FLOATING else _integer_div(x, y)


@in_bytes
def _integer_div(x: Any, y: Any) -> Any:
    """Round towards zero; by zero gives all bits set, INT_MIN / -1 gives INT_MIN."""
    by_zero = y == 0
    y = np.where(by_zero, np.ones((), y.dtype), y)
    quotient, remainder = np.floor_divide(x, y), np.remainder(x, y)
    if x.dtype.kind == "i":
        quotient = quotient + ((remainder != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
    return np.where(by_zero, np.invert(np.zeros((), x.dtype)), quotient)


def _div_transpose(ct: Any, x: Any, y: Any) -> Any:
    return div_p.bind(ct, y)[0], Zero(y.aval)


def _div_jvp(primals: Any, tangents: Any) -> Any:
    x, y = primals
    x_dot, y_dot = tangents
    outs = div_p.bind(x, y)
    z = outs[0]
    if type(y_dot) is Zero:
        dot = Zero(z.aval) if type(x_dot) is Zero else div_p.bind(x_dot, y)[0]
    elif type(x_dot) is Zero:  # d(x/y) = -(x/y)/y dy, the factor computed once for all dy
        dot = mul_p.bind(y_dot, neg_p.bind(div_p.bind(z, y)[0])[0])[0]
    else:  # d(x/y) = (dx - (x/y) dy)/y: in reverse mode one division serves both
        dot = div_p.bind(sub_p.bind(x_dot, mul_p.bind(z, y_dot)[0])[0], y)[0]
    return outs, (dot if type(dot) is Zero else repeated(dot, z.aval.shape),)


def _div_linearity(avals: Any, params: Any) -> Any:
    """Quotients of integers are rounded."""
    return linear_in(0) if dtypes.is_inexact(avals[0].dtype) else None


div_p: Primitive = binary(
    "div", NUMBER, numpy=_div_numpy, stablehlo=div_stablehlo, jvp=_div_jvp,
    transpose=_div_transpose, ufunc=np.true_divide, ufunc_kinds=FLOATING & NATIVE,
    cost=costs.division, divisor=Operand(1), linearity=_div_linearity,
)  # fmt: skip


# --- a quotient that is 0 where both operands are -------------------------------------------------

# For terms of a derivative that vanish with their denominators, as x / y of x log y at (0, 0), or
# the share of two equal eigenvalues in what does not depend on the basis of their space.


def _both_zero(x: Any, y: Any) -> Any:
    return bind("and", bind("eq", x, scalar_like(x, 0)), bind("eq", y, scalar_like(y, 0)))


def _zero_quotient_numpy(x: Any, y: Any) -> Any:
    vanishes = (x == 0) & (y == 0)
    return _div_numpy(x, np.where(vanishes, np.ones((), y.dtype), y))


def _zero_quotient_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (out,) = avals_out
    names = [b.broadcast(name, aval, out.shape)
             for name, aval in zip(operands, avals_in, strict=True)]  # fmt: skip

    def quotient(x: Any, y: Any) -> list[Any]:
        return [div_p.bind(x, selected(_both_zero(x, y), filled(out.shape, 1, out.dtype), y))[0]]

    return b.traced(quotient, names, [out, out], key="zero_quotient")


def _zero_quotient_transpose(ct: Any, x: Any, y: Any) -> Any:
    return zero_quotient_p.bind(ct, y)[0], Zero(y.aval)


zero_quotient_p: Primitive = binary(
    "zero_quotient", INEXACT, numpy=_zero_quotient_numpy, stablehlo=_zero_quotient_stablehlo,
    jvp=(lambda x_dot, z, x, y: zero_quotient_p.bind(x_dot, y)[0],
         # d(x/y) = -(x/y)/y dy, whose numerator is 0 where both are
         lambda y_dot, z, x, y: neg_p.bind(mul_p.bind(zero_quotient_p.bind(z, y)[0], y_dot)[0])[0]),
    transpose=_zero_quotient_transpose, cost=costs.division, linearity=linear_in(0),
)  # fmt: skip


# --- products and quotients that are 0 where their first operand is -------------------------------

# What `config.zero_absorbing` records in place of mul and div: tangents that are zero stay so
# through factors that are infinite or NaN.


def _factor_numpy(x: Any, y: Any) -> Any:
    return np.where(x == 0, np.ones((), y.dtype), y)


def _absorbing_stablehlo(name: str) -> Callable[..., Any]:
    def absorbing(x: Any, y: Any) -> list[Any]:
        zero = bind("eq", x, scalar_like(x, 0))
        return [bind(name, x, selected(zero, filled(y.aval.shape, 1, y.aval.dtype), y))]

    def rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
        (out,) = avals_out
        names = [b.broadcast(x, aval, out.shape)
                 for x, aval in zip(operands, avals_in, strict=True)]  # fmt: skip
        return b.traced(absorbing, names, [out, out], key=f"absorbing {name}")

    return rule


def _absorbing_product_transpose(ct: Any, x: Any, y: Any) -> Any:
    if type(x) is Linear:
        return absorbing_product_p.bind(ct, y)[0], Zero(y.aval)
    return Zero(x.aval), absorbing_product_p.bind(x, ct)[0]


def _absorbing_quotient_transpose(ct: Any, x: Any, y: Any) -> Any:
    return absorbing_quotient_p.bind(ct, y)[0], Zero(y.aval)


def _quotient_by_divisor(y_dot: Any, z: Any, x: Any, y: Any) -> Any:
    slope = absorbing_quotient_p.bind(z, y)[0]
    return neg_p.bind(absorbing_product_p.bind(slope, y_dot)[0])[0]


absorbing_product_p: Primitive = binary(
    "absorbing_product", INEXACT, numpy=lambda x, y: np.multiply(x, _factor_numpy(x, y)),
    stablehlo=_absorbing_stablehlo("mul"),
    jvp=(lambda x_dot, z, x, y: absorbing_product_p.bind(x_dot, y)[0],
         lambda y_dot, z, x, y: absorbing_product_p.bind(x, y_dot)[0]),
    transpose=_absorbing_product_transpose, cost=costs.arithmetic, linearity=multilinear(0, 1),
)  # fmt: skip

absorbing_quotient_p: Primitive = binary(
    "absorbing_quotient", INEXACT, numpy=lambda x, y: _div_numpy(x, _factor_numpy(x, y)),
    stablehlo=_absorbing_stablehlo("div"),
    jvp=(lambda x_dot, z, x, y: absorbing_quotient_p.bind(x_dot, y)[0], _quotient_by_divisor),
    transpose=_absorbing_quotient_transpose, cost=costs.division, linearity=linear_in(0),
)  # fmt: skip


def _rem_numpy(x: Any, y: Any) -> Any:
    return np.fmod(x, y) if x.dtype in FLOATING else _integer_rem(x, y)


@in_bytes
def _integer_rem(x: Any, y: Any) -> Any:
    by_zero = y == 0
    return np.where(by_zero, x, np.fmod(x, np.where(by_zero, np.ones((), y.dtype), y)))


def _rem_wrt_y(y_dot: Any, z: Any, x: Any, y: Any) -> Any:
    # x rem y = x - y trunc(x / y), where trunc is piecewise constant
    quotient = div_p.bind(x, y)[0]
    whole = mul_p.bind(sign_p.bind(quotient)[0], bind("floor", abs_p.bind(quotient)[0]))[0]
    return mul_p.bind(y_dot, neg_p.bind(whole)[0])[0]


rem_p: Primitive = binary(
    "rem", INTEGER | FLOATING, numpy=_rem_numpy, stablehlo="stablehlo.remainder",
    jvp=(lambda x_dot, z, x, y: x_dot, _rem_wrt_y), cost=costs.division, divisor=Operand(1),
)  # fmt: skip


# --- max and min --------------------------------------------------------------------------------


def _chosen(x_dot: Any, x: Any, y: Any, better: str) -> Any:
    """Return the part of x_dot in the derivative: all, none, or half where x and y are equal."""
    one, half, zero = scalar_like(x_dot, 1.0), scalar_like(x_dot, 0.5), scalar_like(x_dot, 0.0)
    weight = selected(bind("eq", x, y), half, selected(_ordered(better, x, y), one, zero))
    return mul_p.bind(x_dot, weight)[0]


def _ordered(better: str, x: Any, y: Any) -> Any:
    if x.aval.dtype not in COMPLEX:
        return bind(better, x, y)
    (re_x, re_y), (im_x, im_y) = [[bind(part, v) for v in (x, y)] for part in ("real", "imag")]
    return selected(bind("eq", re_x, re_y), bind(better, im_x, im_y), bind(better, re_x, re_y))


def _extremum_numpy(ufunc: Any, compare: Any) -> Callable[..., Any]:
    def rule(x: Any, y: Any) -> Any:
        if x.dtype in COMPLEX:
            better = np.where(x.real == y.real, compare(x.imag, y.imag), compare(x.real, y.real))
            return np.where(better, x, y)
        out = ufunc(x, y)
        return out if out.dtype is x.dtype else out.astype(x.dtype)

    return rule


def _extremum_stablehlo(op: str, direction: str) -> Callable[..., list[str]]:
    elementwise = elementwise_stablehlo(op)

    def rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
        (out,) = avals_out
        if out.dtype not in COMPLEX:
            return elementwise(b, operands, avals_in, avals_out)
        x, y = [b.broadcast(v, a, out.shape) for v, a in zip(operands, avals_in, strict=True)]
        part = shaped_array(out.shape, dtypes.float32 if out.dtype.itemsize == 8 else (
            dtypes.float64))  # fmt: skip
        mask = shaped_array(out.shape, dtypes.bool_)
        re_x, re_y, im_x, im_y = [
            b.op(f"stablehlo.{name}", [v], [out], [part])[0]
            for name in ("real", "imag") for v in (x, y)
        ]  # fmt: skip

        ties = [compared(b, how, u, v, part) for how, u, v in (
            ("EQ", re_x, re_y), (direction, im_x, im_y), (direction, re_x, re_y))]  # fmt: skip
        better = b.op("stablehlo.select", ties, [mask] * 3, [mask])[0]
        return [chosen(b, better, x, y, out)]

    return rule


max_p: Primitive = binary(
    "max", ANY, numpy=_extremum_numpy(np.maximum, np.greater),
    ufunc=np.maximum, ufunc_kinds=NATIVE - COMPLEX,
    stablehlo=_extremum_stablehlo("stablehlo.maximum", "GT"),
    jvp=(lambda x_dot, z, x, y: _chosen(x_dot, x, y, "gt"),
         lambda y_dot, z, x, y: _chosen(y_dot, y, x, "gt")),
    cost=costs.arithmetic,
)  # fmt: skip

min_p: Primitive = binary(
    "min", ANY, numpy=_extremum_numpy(np.minimum, np.less),
    ufunc=np.minimum, ufunc_kinds=NATIVE - COMPLEX,
    stablehlo=_extremum_stablehlo("stablehlo.minimum", "LT"),
    jvp=(lambda x_dot, z, x, y: _chosen(x_dot, x, y, "lt"),
         lambda y_dot, z, x, y: _chosen(y_dot, y, x, "lt")),
    cost=costs.arithmetic,
)  # fmt: skip


# --- magnitude and sign -------------------------------------------------------------------------


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the parts of a complex dtype; other dtypes are their own."""
    if dtype not in COMPLEX:
        return dtype
    return dtypes.float32 if dtype.itemsize == 8 else dtypes.float64


def _abs_numpy(x: Any) -> Any:
    out = np.absolute(x)
    return out if out.dtype is x.dtype or x.dtype in COMPLEX else out.astype(x.dtype)


def _abs_jvp(x_dot: Any, y: Any, x: Any) -> Any:
    if x.aval.dtype not in COMPLEX:
        # the derivative from the right at zero
        return selected(bind("ge", x, scalar_like(x, 0.0)), x_dot, neg_p.bind(x_dot)[0])
    # |x| = sqrt(x conj(x)), so d|x| = Re(conj(x) dx) / |x|; zero at zero
    size = selected(bind("eq", y, scalar_like(y, 0.0)), scalar_like(y, 1.0), y)
    conjugate = bind("conj", x, input_dtype=x.aval.dtype)
    direction = div_p.bind(conjugate, in_dtype(size, x.aval.dtype))[0]
    return bind("real", mul_p.bind(x_dot, direction)[0])


_size_stablehlo = retyped_stablehlo("stablehlo.abs")


def _abs_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (x,), (aval,) = operands, avals_in
    if aval.dtype in COMPLEX:
        # XLA's own has NaN for an infinity beside a NaN, and 2 units of error
        return [magnitude(b, x, aval)]
    if aval.dtype not in SIGNED:
        return _size_stablehlo(b, operands, avals_in, avals_out)
    # XLA takes abs for a number that is not negative, which that of the least integer is, and
    # leaves out the bound of an index by it: a gather then read before the array.
    negated = b.same_type_op("stablehlo.negate", [x], aval)
    return [b.same_type_op("stablehlo.maximum", [x, negated], aval)]


abs_p: Primitive = unary(
    "abs", SIGNED | INEXACT, numpy=_abs_numpy, stablehlo=_abs_stablehlo,
    jvp=_abs_jvp, out_dtype=lambda dtype: real_dtype(dtype) if dtype in COMPLEX else None,
    cost=costs.arithmetic,
)  # fmt: skip


def _sign_numpy(x: Any) -> Any:
    if x.dtype in FLOATING:
        out = np.asarray(np.sign(x))
        zeros = x == 0
        if zeros.any():
            np.copyto(out, x, where=zeros)  # NumPy's own makes 0.0 of -0.0
        return out
    if x.dtype in COMPLEX:  # a quarter of it has a size that is not infinite
        x = np.where(np.isinf(np.absolute(x)), x * x.dtype.type(0.25), x)
    out = np.sign(x)
    return out if out.dtype is x.dtype else out.astype(x.dtype)


def _sign_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (x,), (aval,) = operands, avals_in
    if aval.dtype in COMPLEX:
        x = in_range(b, x, aval)
    if aval.dtype not in dtypes.UNSIGNED:
        return [b.same_type_op("stablehlo.sign", [x], aval)]
    # stablehlo.sign takes no unsigned integers: 0 or 1 is the lesser of x and 1
    return [b.same_type_op("stablehlo.minimum", [x, b.constant(1, aval)], aval)]


def _sign_jvp(x_dot: Any, y: Any, x: Any) -> Any:
    if x.aval.dtype not in COMPLEX:
        return Zero(y.aval)
    # s = x / |x|: ds = (dx - s Re(conj(s) dx)) / |x| = i s Im(conj(s) dx) / |x|
    size = abs_p.bind(x)[0]
    size = selected(bind("eq", size, scalar_like(size, 0.0)), scalar_like(size, 1.0), size)
    turned = mul_p.bind(bind("conj", y, input_dtype=y.aval.dtype), x_dot)[0]
    angle = div_p.bind(bind("imag", turned), size)[0]
    return mul_p.bind(y, bind("complex", scalar_like(angle, 0.0), angle))[0]


sign_p: Primitive = unary(
    "sign", NUMBER, numpy=_sign_numpy, stablehlo=_sign_stablehlo, jvp=_sign_jvp
)
