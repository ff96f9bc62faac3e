"""The elementwise primitives: arithmetic, bits, comparisons, exponentials, powers, ...

Each primitive is a row: the constructor from `table`, the dtypes it accepts, its NumPy function,
its StableHLO operation and the formula of its derivative. Semantics are those of the StableHLO
specification, the section of the same name.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import xprim
from xnp.primitives import costs, lowering_text, vector_functions as vector
from xnp.primitives.lowering_text import BYTES, WIDER, Text, choose, in_wider, same_dtype
from xnp.primitives.table import (
    ANY,
    BITS,
    COMPLEX,
    FLOATING,
    INEXACT,
    INTEGER,
    NATIVE,
    NUMBER,
    SIGNED,
    UNSIGNED,
    Accuracy,
    Kinds,
    accuracy_attribute,
    add,
    binary,
    bind,
    common_dtype,
    div,
    elementwise_shape,
    elementwise_stablehlo,
    equal_shape,
    fill,
    in_dtype,
    mul,
    neg,
    repeat_scalar,
    retype_stablehlo,
    scalar_like,
    scale_by as table_scaled,
    select,
    sub,
    tunable_stablehlo,
    unary,
)
from xnp.primitives.vector_functions import REACH, vectorise
from xprim import ZERO, Linear, Operand, Primitive, ShapedArray, Zero, dtypes, shaped_array, state
from xprim.contracts import Builder
from xprim.errors import message
from xprim.requirements import require
from xtree.namespaces import late_import

__all__ = ()


# --------------------------------------------------------------------------------- complex parts
# Complex numbers and their parts: complex, real, imag, conj.
#
# Semantics: StableHLO specification, sections complex, real, imag. Derivatives are linear over
# the reals: the transposes use that real and imaginary parts are separate real outputs.

_F32_F64: Kinds = frozenset([dtypes.float32, dtypes.float64])


def complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the complex dtype whose parts have this dtype."""
    return dtypes.complex64 if dtype == dtypes.float32 else dtypes.complex128


def part_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the parts of complex numbers of this dtype."""
    return dtypes.float32 if dtype == dtypes.complex64 else dtypes.float64


def _complex_numpy(x: Any, y: Any) -> Any:
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), complex_dtype(x.dtype))
    out.real, out.imag = x, y
    return out


def _complex_transpose(ct: Any, x: Any, y: Any) -> Any:
    # <ct, x + iy> is the real part of ct (x + iy): Re(ct) x - Im(ct) y
    return (
        bind("real", ct) if type(x) is Linear else Zero(x.aval),
        bind("neg", bind("imag", ct)) if type(y) is Linear else Zero(y.aval),
    )


def _with_zero(part: Any) -> Any:
    return xprim.scalar_array(0.0, part.aval.dtype)


complex_p = binary(
    "complex", _F32_F64, numpy=_complex_numpy, stablehlo=retype_stablehlo("stablehlo.complex"),
    jvp=(lambda x_dot, z, x, y: bind("complex", x_dot, _with_zero(x_dot)),
         lambda y_dot, z, x, y: bind("complex", _with_zero(y_dot), y_dot)),
    transpose=_complex_transpose, out_dtype=complex_dtype, linearity=xprim.LINEAR,
)  # fmt: skip

real_p = unary(
    "real", COMPLEX, numpy=np.real, stablehlo=retype_stablehlo("stablehlo.real"),
    jvp=lambda x_dot, y, x: bind("real", x_dot),
    linear=lambda ct: bind("complex", ct, _with_zero(ct)), out_dtype=part_dtype,
    cost=costs.view,
)  # fmt: skip

imag_p = unary(
    "imag", COMPLEX, numpy=np.imag, stablehlo=retype_stablehlo("stablehlo.imag"),
    jvp=lambda x_dot, y, x: bind("imag", x_dot),
    linear=lambda ct: bind("complex", _with_zero(ct), bind("neg", ct)), out_dtype=part_dtype,
    cost=costs.view,
)  # fmt: skip


# --- conj ---------------------------------------------------------------------------------------

_conj_kinds = elementwise_shape("conj", COMPLEX | _F32_F64)


def _conj_shape(x: ShapedArray, *, input_dtype: Any) -> tuple[ShapedArray, ...]:
    (out,) = _conj_kinds(x)
    if out.dtype in FLOATING:
        out = shaped_array(out.shape, complex_dtype(out.dtype), out.weak_type)
    return (out,)


def _conj_numpy(x: Any, *, input_dtype: Any) -> Any:
    out = np.conjugate(x)
    return out if out.dtype in COMPLEX else out.astype(complex_dtype(out.dtype))


def _conj_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, input_dtype: Any
) -> list[str]:
    (x,), (aval,), (out,) = operands, avals_in, avals_out
    if aval.dtype in FLOATING:
        real = Text(b, x, aval)
        return [lowering_text.of_parts(out, real, real.like(0))]
    real, imag = lowering_text.parts_of(b, x, aval)
    return [lowering_text.of_parts(out, real, -imag)]


def _conj_transpose(ct: Any, *, input_dtype: Any) -> Any:
    out = bind("conj", ct, input_dtype=ct.aval.dtype)
    return out if input_dtype in COMPLEX else bind("real", out)


conj_p = unary(
    "conj", COMPLEX | _F32_F64, shape=_conj_shape, numpy=_conj_numpy, stablehlo=_conj_stablehlo,
    jvp=lambda x_dot, y, x, *, input_dtype: bind("conj", x_dot, input_dtype=input_dtype),
    linear=_conj_transpose, has_params=True,
)  # fmt: skip


# The rules of complex numbers, which few programs have, are in `complex_functions`.

_complex_functions = late_import("xnp.primitives.complex_functions", "few programs are complex")


def _or_complex(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule of an operation, which writes complex results by that of `complex_functions`.

    Args:
      name: of the operation, in the table there.
      rule: the `stablehlo` rule for other dtypes.
    """

    def write(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any) -> Any:
        if dtypes.is_complex(avals_in[0].dtype):
            rule_of_complex = _complex_functions.RULES[name]
            return rule_of_complex(b, operands, avals_in, avals_out, **params)
        return rule(b, operands, avals_in, avals_out, **params)

    return write


# ------------------------------------------------------------------------------------ arithmetic
# Elementwise arithmetic: neg, add, sub, mul, div, rem, max, min, abs, sign.
#
# Semantics: StableHLO specification, sections of these names. Integers wrap around; division
# rounds towards zero, division by zero gives -1 (all bits set) and a remainder by zero the
# dividend; max and min propagate NaN, and order complex numbers by their real, then their
# imaginary parts.

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
    transpose=_add_transpose, cost=costs.arithmetic, linearity=xprim.LINEAR,
)  # fmt: skip

sub_p: Primitive = binary(
    "sub", NUMBER, numpy=np.subtract, stablehlo="stablehlo.subtract",
    jvp=(lambda x_dot, z, x, y: x_dot, lambda y_dot, z, x, y: neg_p.bind(y_dot)[0]),
    transpose=_sub_transpose, cost=costs.arithmetic, linearity=xprim.LINEAR,
)  # fmt: skip

mul_p: Primitive = binary(
    "mul", ANY, numpy=np.multiply,
    stablehlo=elementwise_stablehlo("stablehlo.multiply", "stablehlo.and"),
    jvp=(lambda x_dot, z, x, y: mul_p.bind(x_dot, y)[0],
         lambda y_dot, z, x, y: mul_p.bind(x, y_dot)[0]),
    transpose=_mul_transpose, cost=costs.arithmetic, linearity=xprim.multilinear(0, 1),
)  # fmt: skip


# --- division -----------------------------------------------------------------------------------


def _div_numpy(x: Any, y: Any) -> Any:
    if x.dtype in COMPLEX:
        return _complex_functions.divide(x, y)
    return np.true_divide(x, y) if x.dtype in FLOATING else _integer_div(x, y)


@lowering_text.in_bytes
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
        dot = mul_p.bind(y_dot, neg_p.bind(repeated_quotient_p.bind(z, y)[0])[0])[0]
    elif y.aval.shape != z.aval.shape:
        # d(x/y) = dx/y - (x/y) (dy/y): in reverse mode the second sum is divided, not its terms
        part = mul_p.bind(z, div_p.bind(y_dot, y)[0])[0]
        dot = sub_p.bind(div_p.bind(x_dot, y)[0], part)[0]
    else:  # d(x/y) = (dx - (x/y) dy)/y: in reverse mode one division serves both
        dot = div_p.bind(sub_p.bind(x_dot, mul_p.bind(z, y_dot)[0])[0], y)[0]
    return outs, (dot if type(dot) is Zero else repeat_scalar(dot, z.aval.shape),)


def _div_linearity(avals: Any, params: Any) -> Any:
    """Quotients of integers are rounded."""
    return xprim.linear_in(0) if dtypes.is_inexact(avals[0].dtype) else None


_div_stablehlo = _or_complex("div", elementwise_stablehlo("stablehlo.divide"))

div_p: Primitive = binary(
    "div", NUMBER, numpy=_div_numpy, jvp=_div_jvp,
    stablehlo=_div_stablehlo,
    transpose=_div_transpose, ufunc=np.true_divide, ufunc_kinds=FLOATING & NATIVE,
    cost=costs.division, divisor=Operand(1), linearity=_div_linearity,
)  # fmt: skip


# --- the second of two quotients by one divisor -------------------------------------------------

# (x / y) / y as XLA leaves it, -(-(x / y) / y): of quotients alone it makes x / (y y), whose
# divisor may be 0 or infinite where neither quotient is.


def _repeated_quotient_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any
) -> list[str]:
    (out,) = avals_out
    if out.dtype in COMPLEX:
        return list(_div_stablehlo(b, operands, avals_in, avals_out))
    names = [b.broadcast(name, aval, out.shape)
             for name, aval in zip(operands, avals_in, strict=True)]  # fmt: skip
    negative = b.same_type_op("stablehlo.negate", names[:1], out)
    quotient = b.same_type_op("stablehlo.divide", [negative, names[1]], out)
    return [b.same_type_op("stablehlo.negate", [quotient], out)]


repeated_quotient_p: Primitive = binary(
    "repeated_quotient", INEXACT, numpy=_div_numpy,
    stablehlo=lowering_text.upcast(_repeated_quotient_stablehlo, WIDER, np.float32),
    jvp=(lambda x_dot, z, x, y: div_p.bind(x_dot, y)[0],
         lambda y_dot, z, x, y: neg_p.bind(
             mul_p.bind(repeated_quotient_p.bind(z, y)[0], y_dot)[0])[0]),
    transpose=lambda ct, x, y: (div_p.bind(ct, y)[0], Zero(y.aval)),
    ufunc=np.true_divide, ufunc_kinds=FLOATING & NATIVE,
    cost=costs.division, linearity=xprim.linear_in(0),
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
        return [div_p.bind(x, select(_both_zero(x, y), fill(out.shape, 1, out.dtype), y))[0]]

    return b.traced(quotient, names, [out, out], key="zero_quotient")


def _repeat_zero_quotient(x: Any, y: Any) -> Any:
    one = fill(y.aval.shape, 1, y.aval.dtype)
    return repeated_quotient_p.bind(x, select(_both_zero(x, y), one, y))[0]


def _zero_quotient_transpose(ct: Any, x: Any, y: Any) -> Any:
    return zero_quotient_p.bind(ct, y)[0], Zero(y.aval)


zero_quotient_p: Primitive = binary(
    "zero_quotient", INEXACT, numpy=_zero_quotient_numpy, stablehlo=_zero_quotient_stablehlo,
    jvp=(lambda x_dot, z, x, y: zero_quotient_p.bind(x_dot, y)[0],
         # d(x/y) = -(x/y)/y dy, whose numerator is 0 where both are
         lambda y_dot, z, x, y: neg_p.bind(mul_p.bind(_repeat_zero_quotient(z, y), y_dot)[0])[0]),
    transpose=_zero_quotient_transpose, cost=costs.division, linearity=xprim.linear_in(0),
)  # fmt: skip


# --- products and quotients that are 0 where their first operand is -------------------------------

# What `config.zero_absorbing` records in place of mul and div: tangents that are zero stay so
# through factors that are infinite or NaN.


def _factor_numpy(x: Any, y: Any) -> Any:
    return np.where(x == 0, np.ones((), y.dtype), y)


def _absorbing_stablehlo(name: str) -> Callable[..., Any]:
    def absorbing(x: Any, y: Any) -> list[Any]:
        zero = bind("eq", x, scalar_like(x, 0))
        return [bind(name, x, select(zero, fill(y.aval.shape, 1, y.aval.dtype), y))]

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
    ratio = absorbing_quotient_p.bind(z, y)[0]
    return neg_p.bind(absorbing_product_p.bind(ratio, y_dot)[0])[0]


absorbing_product_p: Primitive = binary(
    "absorbing_product", INEXACT, numpy=lambda x, y: np.multiply(x, _factor_numpy(x, y)),
    stablehlo=_absorbing_stablehlo("mul"),
    jvp=(lambda x_dot, z, x, y: absorbing_product_p.bind(x_dot, y)[0],
         lambda y_dot, z, x, y: absorbing_product_p.bind(x, y_dot)[0]),
    transpose=_absorbing_product_transpose, cost=costs.arithmetic,
    linearity=xprim.multilinear(0, 1),
)  # fmt: skip

absorbing_quotient_p: Primitive = binary(
    "absorbing_quotient", INEXACT, numpy=lambda x, y: _div_numpy(x, _factor_numpy(x, y)),
    stablehlo=_absorbing_stablehlo("div"),
    jvp=(lambda x_dot, z, x, y: absorbing_quotient_p.bind(x_dot, y)[0], _quotient_by_divisor),
    transpose=_absorbing_quotient_transpose, cost=costs.division, linearity=xprim.linear_in(0),
)  # fmt: skip


def _rem_numpy(x: Any, y: Any) -> Any:
    return np.fmod(x, y) if x.dtype in FLOATING else _integer_rem(x, y)


@lowering_text.in_bytes
def _integer_rem(x: Any, y: Any) -> Any:
    by_zero = y == 0
    return np.where(by_zero, x, np.fmod(x, np.where(by_zero, np.ones((), y.dtype), y)))


def _rem_wrt_y(y_dot: Any, z: Any, x: Any, y: Any) -> Any:
    # x rem y = x - y trunc(x / y), where trunc is piecewise constant
    quotient = div_p.bind(x, y)[0]
    whole = mul_p.bind(sign_p.bind(quotient)[0], bind("floor", abs_p.bind(quotient)[0]))[0]
    return mul_p.bind(y_dot, neg_p.bind(whole)[0])[0]


rem_p: Primitive = binary(
    "rem", INTEGER | FLOATING, numpy=_rem_numpy,
    stablehlo=vector.vectorise_remainder(elementwise_stablehlo("stablehlo.remainder")),
    jvp=(lambda x_dot, z, x, y: x_dot, _rem_wrt_y), cost=costs.division, divisor=Operand(1),
)  # fmt: skip


# --- max and min --------------------------------------------------------------------------------


def _choose(x_dot: Any, x: Any, y: Any, better: str) -> Any:
    """Return the part of x_dot in the derivative: all, none, or half where x and y are equal."""
    zero, half, one = [scalar_like(x_dot, v) for v in (0.0, 0.5, 1.0)]
    # Selected, not only weighted by zero: an infinite tangent of a worse operand leaves no NaN.
    # Beside NaN none is worse, and a tangent that is NaN stays.
    chosen = select(_order(better, y, x), zero, x_dot)
    weight = select(bind("eq", x, y), half, select(_order(better, x, y), one, zero))
    return mul_p.bind(chosen, weight)[0]


def _order(better: str, x: Any, y: Any) -> Any:
    if x.aval.dtype not in COMPLEX:
        return bind(better, x, y)
    (re_x, re_y), (im_x, im_y) = [[bind(part, v) for v in (x, y)] for part in ("real", "imag")]
    return select(bind("eq", re_x, re_y), bind(better, im_x, im_y), bind(better, re_x, re_y))


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

        ties = [lowering_text.compare(b, how, u, v, part) for how, u, v in (
            ("EQ", re_x, re_y), (direction, im_x, im_y), (direction, re_x, re_y))]  # fmt: skip
        better = b.op("stablehlo.select", ties, [mask] * 3, [mask])[0]
        return [choose(b, better, x, y, out)]

    return rule


max_p: Primitive = binary(
    "max", ANY, numpy=_extremum_numpy(np.maximum, np.greater),
    ufunc=np.maximum, ufunc_kinds=NATIVE - COMPLEX,
    stablehlo=_extremum_stablehlo("stablehlo.maximum", "GT"),
    jvp=(lambda x_dot, z, x, y: _choose(x_dot, x, y, "gt"),
         lambda y_dot, z, x, y: _choose(y_dot, y, x, "gt")),
    cost=costs.arithmetic,
)  # fmt: skip

min_p: Primitive = binary(
    "min", ANY, numpy=_extremum_numpy(np.minimum, np.less),
    ufunc=np.minimum, ufunc_kinds=NATIVE - COMPLEX,
    stablehlo=_extremum_stablehlo("stablehlo.minimum", "LT"),
    jvp=(lambda x_dot, z, x, y: _choose(x_dot, x, y, "lt"),
         lambda y_dot, z, x, y: _choose(y_dot, y, x, "lt")),
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
        return select(bind("ge", x, scalar_like(x, 0.0)), x_dot, neg_p.bind(x_dot)[0])
    # by real parts, since a complex product with an infinity is NaN; zero at zero
    parts = bind("real", x), bind("imag", x)
    dots = bind("real", x_dot), bind("imag", x_dot)
    partials = [bind("hypot_derivative", *parts, orders=orders) for orders in ((1, 0), (0, 1))]
    terms = [bind("absorbing_product", *pair) for pair in zip(dots, partials, strict=True)]
    return add(*terms)


_size_stablehlo = retype_stablehlo("stablehlo.abs")


def _abs_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (x,), (aval,) = operands, avals_in
    if aval.dtype not in SIGNED:
        return _size_stablehlo(b, operands, avals_in, avals_out)
    # XLA takes abs for a number that is not negative, which that of the least integer is, and
    # leaves out the bound of an index by it: a gather then read before the array.
    negated = b.same_type_op("stablehlo.negate", [x], aval)
    return [b.same_type_op("stablehlo.maximum", [x, negated], aval)]


abs_p: Primitive = unary(
    "abs", SIGNED | INEXACT, numpy=_abs_numpy, stablehlo=_or_complex("abs", _abs_stablehlo),
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
    if x.dtype in COMPLEX:
        size, info = np.absolute(x), dtypes.finfo(x.dtype)
        factor = np.where(size == np.inf, info.dtype.type(0.25), info.dtype.type(1))
        np.copyto(factor, 1 / info.tiny, where=size < info.tiny / info.eps)
        np.copyto(factor, np.nan, where=np.isnan(x))
        if (factor != 1).any():  # whose sizes are beyond all numbers, have few digits, or are none
            scaled = np.empty_like(x)
            scaled.real, scaled.imag = x.real * factor, x.imag * factor
            x = scaled
    out = np.sign(x)
    return out if out.dtype is x.dtype else out.astype(x.dtype)


def _sign_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (x,), (aval,) = operands, avals_in
    if aval.dtype not in dtypes.UNSIGNED:
        return [b.same_type_op("stablehlo.sign", [x], aval)]
    # stablehlo.sign takes no unsigned integers: 0 or 1 is the lesser of x and 1
    return [b.same_type_op("stablehlo.minimum", [x, b.constant(1, aval)], aval)]


def _sign_jvp(x_dot: Any, y: Any, x: Any) -> Any:
    if x.aval.dtype not in COMPLEX:
        return Zero(y.aval)
    # s = x / |x|: ds = (dx - s Re(conj(s) dx)) / |x| = i s Im(conj(s) dx) / |x|
    size = abs_p.bind(x)[0]
    size = select(bind("eq", size, scalar_like(size, 0.0)), scalar_like(size, 1.0), size)
    turned = mul_p.bind(bind("conj", y, input_dtype=y.aval.dtype), x_dot)[0]
    angle = div_p.bind(bind("imag", turned), size)[0]
    return mul_p.bind(y, bind("complex", scalar_like(angle, 0.0), angle))[0]


sign_p: Primitive = unary(
    "sign",
    NUMBER,
    numpy=_sign_numpy,
    stablehlo=_or_complex("sign", _sign_stablehlo),
    jvp=_sign_jvp,
)


# --------------------------------------------------------------------------------------- bitwise
# Operations on bits: and, or, xor, not, shifts, population_count, clz, mulhi.
#
# Semantics: StableHLO specification, sections of these names. A shift by the width of the dtype
# or more gives 0, or all sign bits for the arithmetic one; shift counts are read as unsigned.

and_p = binary(
    "and", BITS, numpy=same_dtype(np.bitwise_and), stablehlo="stablehlo.and", jvp=ZERO,
    ufunc=np.bitwise_and, cost=costs.arithmetic,
)  # fmt: skip
or_p = binary(
    "or", BITS, numpy=same_dtype(np.bitwise_or), stablehlo="stablehlo.or", jvp=ZERO,
    ufunc=np.bitwise_or, cost=costs.arithmetic,
)  # fmt: skip
xor_p = binary(
    "xor", BITS, numpy=same_dtype(np.bitwise_xor), stablehlo="stablehlo.xor", jvp=ZERO,
    ufunc=np.bitwise_xor, cost=costs.arithmetic,
)  # fmt: skip
not_p = unary(
    "not",
    BITS,
    numpy=same_dtype(np.invert),
    stablehlo="stablehlo.not",
    jvp=ZERO,
    ufunc=np.invert,
    cost=costs.arithmetic,
)


# --- shifts -------------------------------------------------------------------------------------


def _as_unsigned(x: Any) -> Any:
    """Return the bits of integers of 8 bits or more as unsigned integers."""
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "i" else x


def _shift(function: Callable[[Any, Any, Any, int], Any]) -> Callable[[Any, Any], Any]:
    """Return a NumPy rule; `function` gets values, counts below the width, overflow mask, width.

    The mask is None where nothing is over.
    """

    def rule(x: Any, y: Any) -> Any:
        width = dtypes.itemsize_bits(x.dtype)
        dtype, wide = x.dtype, BYTES.get(x.dtype)
        if wide is not None:
            x, y = x.astype(wide), y.astype(wide)
        count = _as_unsigned(y)
        over = count >= width  # a negative count reads as a large one
        if not over.any():
            over = None
        else:
            count = np.where(over, np.zeros((), count.dtype), count)
        shifted = function(x, count, over, width)
        return shifted.astype(dtype) if wide is not None else shifted.view(dtype)

    return rule


def _shift_left(x: Any, count: Any, over: Any, width: int) -> Any:
    bits = _as_unsigned(x)
    return _zero_where(over, np.left_shift(bits, count))


def _right_arithmetic(x: Any, count: Any, over: Any, width: int) -> Any:
    shifted = np.right_shift(x, count.astype(x.dtype))
    if x.dtype.kind == "i":
        return (
            shifted
            if over is None
            else np.where(
                over, np.where(x < 0, -np.ones((), x.dtype), np.zeros((), x.dtype)), shifted
            )
        )
    # unsigned: the top bit is the sign that is repeated
    signed = x.view(f"i{x.dtype.itemsize}") if width == 8 * x.dtype.itemsize else (
        (x.astype(np.int8) << (8 - width)) >> (8 - width))  # fmt: skip
    most = count.astype(signed.dtype)
    if over is not None:
        most = np.where(over, np.asarray(width - 1, signed.dtype), most)
    return np.right_shift(signed, most)


def _right_logical(x: Any, count: Any, over: Any, width: int) -> Any:
    bits = _as_unsigned(x)
    if width < 8:  # widened with its sign, which is not a bit of it
        bits = bits & np.uint8((1 << width) - 1)
    return _zero_where(over, np.right_shift(bits, count))


def _zero_where(over: Any, shifted: Any) -> Any:
    return shifted if over is None else np.where(over, np.zeros((), shifted.dtype), shifted)


shift_left_p = binary(
    "shift_left", INTEGER, numpy=_shift(_shift_left), stablehlo="stablehlo.shift_left", jvp=ZERO,
)  # fmt: skip
shift_right_arithmetic_p = binary(
    "shift_right_arithmetic", INTEGER, numpy=_shift(_right_arithmetic),
    stablehlo="stablehlo.shift_right_arithmetic", jvp=ZERO,
)  # fmt: skip
shift_right_logical_p = binary(
    "shift_right_logical", INTEGER, numpy=_shift(_right_logical),
    stablehlo="stablehlo.shift_right_logical", jvp=ZERO,
)  # fmt: skip


# --- counts -------------------------------------------------------------------------------------


def _own_bits(x: Any) -> tuple[Any, int]:
    """Return the bits as unsigned integers of 8 bits or more, and how many of them count."""
    width = dtypes.itemsize_bits(x.dtype)
    wide = BYTES.get(x.dtype)
    if wide is None:
        return _as_unsigned(x), width
    return _as_unsigned(x.astype(wide)) & np.uint8((1 << width) - 1), width


def _population_count_numpy(x: Any) -> Any:
    return np.bitwise_count(_own_bits(x)[0]).astype(x.dtype)


def _clz_numpy(x: Any) -> Any:
    bits, width = _own_bits(x)
    # smear the highest set bit downwards; the zeros above it are what is left to count
    shift = 1
    while shift < width:
        bits = bits | (bits >> np.asarray(shift, bits.dtype))
        shift *= 2
    return (np.uint8(width) - np.bitwise_count(bits)).astype(x.dtype)


def _population_count_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any
) -> list[str]:
    (x,), (aval,) = operands, avals_in
    wide = BYTES.get(aval.dtype)
    if wide is None:
        return [b.same_type_op("stablehlo.popcnt", [x], aval)]
    wide_aval = aval.update(dtype=wide)  # XLA counts the copies of the sign bit, too
    mask = b.constant((1 << dtypes.itemsize_bits(aval.dtype)) - 1, wide_aval)
    bits = b.same_type_op("stablehlo.and", [b.convert(x, aval, wide), mask], wide_aval)
    return [b.convert(b.same_type_op("stablehlo.popcnt", [bits], wide_aval), wide_aval, aval.dtype)]


population_count_p = unary(
    "population_count", INTEGER, numpy=_population_count_numpy,
    stablehlo=_population_count_stablehlo, jvp=ZERO,
)  # fmt: skip
clz_p = unary(
    "clz", INTEGER, numpy=_clz_numpy, stablehlo="stablehlo.count_leading_zeros", jvp=ZERO,
)  # fmt: skip


# --- mulhi --------------------------------------------------------------------------------------


def _mulhi_numpy(x: Any, y: Any) -> Any:
    """Return the upper half of the bits of the exact product."""
    width = dtypes.itemsize_bits(x.dtype)
    if width < 64:
        wide = np.int64 if x.dtype in dtypes.SIGNED else np.uint64
        product = x.astype(wide) * y.astype(wide)
        return (product >> wide(width)).astype(x.dtype)
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    u, v = x.astype(np.uint64), y.astype(np.uint64)
    u0, u1, v0, v1 = u & low, u >> half, v & low, v >> half
    middle = u1 * v0 + ((u0 * v0) >> half)
    other = u0 * v1 + (middle & low)
    high = u1 * v1 + (middle >> half) + (other >> half)
    if x.dtype.kind == "i":  # of two's complement: take away what the signs added
        zero = np.uint64(0)
        high = high - np.where(x < 0, v, zero) - np.where(y < 0, u, zero)
    return high.astype(x.dtype)


_plain_mulhi = retype_stablehlo("chlo.mulhi")


def _mulhi_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (out,) = avals_out
    wide = BYTES.get(out.dtype)
    if wide is None:
        return _plain_mulhi(b, operands, avals_in, avals_out)
    aval = out.update(dtype=wide)  # 8 bits hold the whole product of 4
    factors = [b.broadcast(b.convert(x, a, wide), a.update(dtype=wide), out.shape)
               for x, a in zip(operands, avals_in, strict=True)]  # fmt: skip
    product = b.same_type_op("stablehlo.multiply", factors, aval)
    shift = "arithmetic" if out.dtype in dtypes.SIGNED else "logical"
    width = b.constant(dtypes.itemsize_bits(out.dtype), aval)
    high = b.same_type_op(f"stablehlo.shift_right_{shift}", [product, width], aval)
    return [b.convert(high, aval, out.dtype)]


mulhi_p = binary(
    "mulhi", INTEGER, numpy=_mulhi_numpy, stablehlo=_mulhi_stablehlo, jvp=ZERO,
)  # fmt: skip


# ------------------------------------------------------------------------------------ comparison
# Comparisons: eq, ne, lt, le, gt, ge, and the total order of floats: eq_to, lt_to, le_to.
#
# Results are booleans. Semantics: StableHLO specification, section compare. NaN is unordered and
# unequal to itself; in the total order -NaN < -inf < ... < -0.0 < 0.0 < ... < inf < NaN.


def _compare_stablehlo(direction: str, *, total_order: bool = False) -> Callable[..., list[str]]:
    def rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
        (out,) = avals_out
        dtype = avals_in[0].dtype
        names = [b.broadcast(x, a, out.shape) for x, a in zip(operands, avals_in, strict=True)]
        types = [shaped_array(out.shape, dtype)] * 2
        kind = "TOTALORDER" if total_order else _comparison_type(dtype)
        return b.op(
            "stablehlo.compare", names, types, avals_out,
            f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
            f"compare_type = #stablehlo<comparison_type {kind}>",
        )  # fmt: skip

    return rule


def _comparison_type(dtype: np.dtype[Any]) -> str:
    if dtype in FLOATING or dtype in COMPLEX:
        return "FLOAT"
    return "UNSIGNED" if dtype in UNSIGNED or dtype == dtypes.bool_ else "SIGNED"


@xprim.primitive_maker
def _comparison(name: str, kinds: Kinds, ufunc: Any, direction: str, **more: Any) -> Primitive:
    return binary(
        name, kinds, numpy=ufunc, stablehlo=_compare_stablehlo(direction), jvp=ZERO,
        out_dtype=dtypes.bool_, cost=costs.arithmetic, **more,
    )  # fmt: skip


def _of_elements(name: str, reduction: str) -> Callable[..., Any]:
    """Return the rule for extended dtypes: elements are equal where all of their numbers are."""

    def rule(trailing: int, x: Any, y: Any) -> Any:
        found = bind(name, x, y)
        axes = tuple(range(found.aval.ndim - trailing, found.aval.ndim))
        return (bind(reduction, found, axes=axes) if axes else found,)

    return rule


eq_p = _comparison("eq", ANY, np.equal, "EQ", physical=_of_elements("eq", "reduce_and"))
ne_p = _comparison("ne", ANY, np.not_equal, "NE", physical=_of_elements("ne", "reduce_or"))
lt_p = _comparison("lt", ANY - COMPLEX, np.less, "LT")
le_p = _comparison("le", ANY - COMPLEX, np.less_equal, "LE")
gt_p = _comparison("gt", ANY - COMPLEX, np.greater, "GT")
ge_p = _comparison("ge", ANY - COMPLEX, np.greater_equal, "GE")


def total_order_key(x: Any) -> Any:
    """Return signed integers that are ordered as the floats are in the total order.

    The bits of a float, read as an integer, order positive floats; negative ones the other way.
    """
    bits = x.view(f"i{x.dtype.itemsize}")
    if x.dtype.itemsize == 1 and dtypes.itemsize_bits(x.dtype) < 8:  # stored in a byte
        bits = bits << (8 - dtypes.itemsize_bits(x.dtype))
    lowest = np.iinfo(bits.dtype).min
    return np.where(bits < 0, np.invert(bits) ^ lowest, bits)


@xprim.primitive_maker
def _total_order(name: str, ufunc: Any, direction: str) -> Primitive:
    return binary(
        name, FLOATING, numpy=lambda x, y: ufunc(total_order_key(x), total_order_key(y)),
        stablehlo=_compare_stablehlo(direction, total_order=True), jvp=ZERO, out_dtype=dtypes.bool_,
    )  # fmt: skip


eq_to_p = _total_order("eq_to", np.equal, "EQ")
lt_to_p = _total_order("lt_to", np.less, "LT")
le_to_p = _total_order("le_to", np.less_equal, "LE")


# ----------------------------------------------------------------------------------- exponential
# Exponentials and logarithms: exp, exp2, expm1, log, log2, log1p, logistic.
#
# Semantics: StableHLO specification, sections exponential, exponential_minus_one, log,
# log_plus_one, logistic. Accuracy: a few ulp; of the host rules as NumPy's, of compiled programs
# as XLA's.

exp_p = unary(
    "exp", INEXACT, numpy=np.exp, tunable=True,
    stablehlo=_or_complex("exp", tunable_stablehlo("stablehlo.exponential")),
    jvp=lambda x_dot, y, x: mul_p.bind(x_dot, y)[0],
)  # fmt: skip


def _exp2_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, accuracy: Accuracy = None
) -> list[str]:
    (x,), (aval,) = operands, avals_in
    if accuracy is None:
        return list(_exp2_of_real(b, operands, avals_in, avals_out))
    attribute = accuracy_attribute(accuracy)
    power = (Text(b, x, aval) * math.log(2)).name
    results: list[str] = b.op("stablehlo.exponential", [power], [aval], [aval], attribute)
    return results


_exp2_of_real = lowering_text.upcast(
    lambda b, operands, avals_in, avals_out: [
        vector.exponential_of_two(Text(b, operands[0], avals_out[0])).name
    ],
    WIDER, np.float32,
)  # fmt: skip

exp2_p = unary(
    "exp2", INEXACT, numpy=np.exp2, tunable=True,
    stablehlo=_or_complex("exp2", vectorise(
        vector.single_exponential_of_two, _exp2_stablehlo, wide=vector.wide_exponential_of_two,
        in_single=True,
    )),
    jvp=lambda x_dot, y, x: mul(x_dot, table_scaled(y, math.log(2))),
)  # fmt: skip


def _expm1_numpy(x: Any) -> Any:
    result = np.expm1(x)
    if x.dtype.kind != "c":
        return result
    result = np.asarray(result)
    if not np.isfinite(result).all():  # NumPy's own overflows, and is NaN beside an infinity
        with np.errstate(all="ignore"):
            result = np.where(np.isfinite(result), result, np.exp(x) - x.dtype.type(1))
    np.copyto(result.imag, x.imag, where=x.imag == 0)
    return result


expm1_p = unary(
    "expm1", INEXACT, numpy=_expm1_numpy, tunable=True,
    stablehlo=_or_complex("expm1", vectorise(
        vector.single_exponential_less_one, tunable_stablehlo("stablehlo.exponential_minus_one"),
        in_single=True,
    )),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("exp", x)),  # y + 1 cancels far below zero
)  # fmt: skip

log_p = unary(
    "log", INEXACT, numpy=np.log, tunable=True,
    stablehlo=_or_complex(
        "log", vectorise(None, tunable_stablehlo("stablehlo.log"), wide=vector.wide_logarithm)
    ),
    jvp=lambda x_dot, y, x: div_p.bind(x_dot, x)[0],
)  # fmt: skip


_NARROW = frozenset([*dtypes.SMALL_FLOATS, dtypes.bfloat16, dtypes.float16])


def _in_single(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule of several operations, which for narrow floats are rounded once, at the end.

    XLA rounds after each of them: 1 / (1 + exp(11.1)) is 0 in float16, for the power overflows.
    """
    return lowering_text.upcast(rule, _NARROW, np.float32)


def _log2_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, accuracy: Accuracy = None
) -> list[str]:
    aval = avals_in[0]
    (y,) = b.op("stablehlo.log", operands, [aval], [aval], accuracy_attribute(accuracy))
    result = Text(b, y, aval) * (1 / math.log(2))
    if aval.dtype in dtypes.SMALL_FLOATS:
        return [result.name]
    # of powers of two, whose mantissa has no bit set, the logarithm is an integer
    bits = vector.bits_of(Text(b, operands[0], aval))
    fraction = bits.op("and", (1 << dtypes.finfo(aval.dtype).nmant) - 1)
    return [lowering_text.where(fraction == 0, result.op("round_nearest_even"), result).name]


def _cosh_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    """Write cosh(x) of float32 as e k + 1 / (4 k e), e = exp(|x| - 11/16), k = exp(11/16) / 2.

    The difference is exact where its error would count, and e is finite where cosh(x) is. XLA
    subtracts log(2), which is not exact: at 80 that is an error of 24 units of the last place.
    """
    (x,), (aval,) = operands, avals_in
    if aval.dtype != dtypes.float32:
        return list(_formula("chlo.cosh")(b, operands, avals_in, avals_out))
    e = (Text(b, x, aval).op("abs") - 0.6875).op("exponential")
    half = math.exp(0.6875) / 2
    return [(e * half + (0.25 / half) / e).name]


log2_p = unary(
    "log2", INEXACT, numpy=np.log2, tunable=True,
    stablehlo=_or_complex(
        "log2", vectorise(None, _in_single(_log2_stablehlo), wide=vector.wide_binary_logarithm)
    ),
    jvp=lambda x_dot, y, x: div(x_dot, table_scaled(x, math.log(2))),
)  # fmt: skip


def log1p_numpy(x: Any) -> Any:
    """Return log(1 + x) of ndarrays."""
    if x.dtype.kind != "c":
        return np.log1p(x)
    # log(1 + z) = log(|1 + z|^2) / 2 + i angle, and |1 + z|^2 = 1 + (2 x + x^2 + y^2), whose sum
    # cancels near the circle around -1: it is taken with the errors of its terms.
    re, im = x.real.astype(np.float64), x.imag.astype(np.float64)
    with_one = re + 1
    excess = _sum_of_squares_more_than_one(re, im)
    near = np.abs(excess) < 0.5
    result = np.empty(x.shape, x.dtype)
    far = np.log(_complex_numpy(with_one, im)).real
    result.real = np.where(near, np.log1p(np.where(near, excess, 0)) / 2, far)
    result.imag = np.arctan2(im, with_one)
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
    "log1p", INEXACT, numpy=log1p_numpy, tunable=True,
    stablehlo=_or_complex("log1p", vectorise(
        vector.single_logarithm_plus_one, tunable_stablehlo("stablehlo.log_plus_one"),
        wide=vector.wide_logarithm_plus_one, in_single=True,
    )),
    jvp=lambda x_dot, y, x: div(x_dot, add(x, scalar_like(x, 1))),
)  # fmt: skip


@in_wider
def _logistic_numpy(x: Any) -> Any:
    one = np.ones((), x.dtype)
    if x.dtype.kind != "c":
        return one / (one + np.exp(-x))
    # the power p that cannot overflow: p / (1 + p) or 1 / (1 + p)
    is_left = x.real < 0
    power = np.exp(np.where(is_left, x, -x))
    a, b = power.real, power.imag
    length = (1 + a) ** 2 + b**2
    result = np.empty(x.shape, x.dtype)
    result.real = np.where(is_left, a + (a**2 + b**2), 1 + a) / length
    result.imag = np.where(is_left, b, -b) / length
    return result


def _logistic_jvp(x_dot: Any, y: Any, x: Any) -> Any:
    return mul(x_dot, mul(y, _logistic_rest(x)))


def _logistic_rest(x: Any) -> Any:
    """Return 1 - logistic(x) with all digits."""
    if dtypes.is_complex(x.aval.dtype):
        return bind("logistic", neg(x))
    return logistic_rest_p.bind(x)[0]


def _logistic_rest_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    """Write 1 - logistic(x) below 0, else e^-x logistic(x), whose power that computes already."""
    x = Text(b, operands[0], avals_out[0])
    y = x.op("logistic")
    above = (-x).op("exponential") * y
    return [choose(b, (x < 0.0).name, (1.0 - y).name, above.name, avals_out[0])]


logistic_p = unary(
    "logistic", INEXACT, numpy=_logistic_numpy, tunable=True, jvp=_logistic_jvp,
    stablehlo=_or_complex("logistic", _in_single(tunable_stablehlo("stablehlo.logistic"))),
)  # fmt: skip
# A primitive, whose derivative is not a sum of terms e^-x y^2 that cancel, and underflow in reverse
logistic_rest_p = unary(
    "logistic_rest", FLOATING, numpy=lambda x: _logistic_numpy(-x),
    stablehlo=_in_single(_logistic_rest_stablehlo),
    jvp=lambda x_dot, y, x: mul(x_dot, neg(mul(y, bind("logistic", x)))),
)  # fmt: skip


# silu(x) = x / (1 + e^-x), which at -inf would be NaN: beyond these the logistic is 0 or 1.
_LOGISTIC_ENDS = 1000.0


def _ends(dtype: np.dtype[Any]) -> float:
    return min(_LOGISTIC_ENDS, float(dtypes.finfo(dtype).max))


@in_wider
def _silu_numpy(x: Any) -> Any:
    one = np.ones((), x.dtype)
    return np.maximum(x, np.asarray(-_LOGISTIC_ENDS, x.dtype)) / (one + np.exp(-x))


def _silu_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    # by negative numbers, as the derivative writes the logistic by positive ones: if both read one,
    # XLA would write it to memory by a kernel of its own
    x = Text(b, operands[0], avals_out[0])
    logistic = x.like(-1.0) / (-1.0 - (-x).op("exponential"))
    return [(x.op("maximum", -_ends(x.aval.dtype)) * logistic).name]


def _silu_jvp(x_dot: Any, y: Any, x: Any) -> Any:
    # s (1 + x (1 - s)) for s = logistic(x)
    end = _ends(x.aval.dtype)
    near = bind("clamp", scalar_like(x, -end), x, scalar_like(x, end))
    s = bind("logistic", x)
    rest = mul(near, _logistic_rest(x))
    return mul(x_dot, mul(s, add(rest, scalar_like(x, 1))))


silu_p = unary(
    "silu", FLOATING, numpy=_silu_numpy, stablehlo=_in_single(_silu_stablehlo), jvp=_silu_jvp,
    cost=costs.choice,
)  # fmt: skip


# relu(x) = x above 0, else 0, and NaN of NaN. A primitive, whose derivative reads the result: what
# leads to it, a product and a bias, need not be in memory until the derivative is computed.
def _relu_numpy(x: Any) -> Any:
    zero = x.dtype.type(0)
    return np.maximum(x, zero) + zero  # which is 0.0 of -0.0


def _relu_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    x = Text(b, operands[0], avals_out[0])
    return [choose(b, (x <= 0.0).name, x.like(0).name, x.name, x.aval)]


def _relu_jvp(x_dot: Any, y: Any, x: Any) -> Any:
    return select(bind("gt", y, scalar_like(y, 0)), x_dot, scalar_like(y, 0))


relu_p = unary(
    "relu", FLOATING, numpy=_relu_numpy, stablehlo=_in_single(_relu_stablehlo), jvp=_relu_jvp,
    cost=costs.choice,
)  # fmt: skip


# gelu(x) by tanh, x (1 + tanh(u / 2)) / 2, is x logistic(u) for u = x (a + b x^2), which keeps its
# digits far below zero. Beyond +-40 the logistic is 0 or 1 in all formats.
_GELU_END = 40.0
_GELU_LINEAR = 2 * math.sqrt(2 / math.pi)
_GELU_CUBIC = 0.044715 * _GELU_LINEAR


@in_wider
def _gelu_by_tanh_numpy(x: Any) -> Any:
    near = np.clip(x, np.asarray(-_GELU_END, x.dtype), np.asarray(_GELU_END, x.dtype))
    inner = near * (_GELU_LINEAR + _GELU_CUBIC * (near * near))
    return np.maximum(x, near) * _logistic_numpy(inner)


def _gelu_by_tanh_text(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    x = Text(b, operands[0], avals_out[0])
    inner = x * (x * x * _GELU_CUBIC + _GELU_LINEAR)
    return [(x.op("maximum", -_GELU_END) * inner.op("logistic")).name]


def _gelu_by_tanh_jvp(x_dot: Any, y: Any, x: Any) -> Any:
    # s (1 + x u' (1 - s)) for s = logistic(u), where 1 - s is logistic(-u) with all digits; floats
    # of few bits have no numbers for the polynomials
    dtype = x.aval.dtype
    x = in_dtype(x, WIDER.get(dtype, dtype))
    # not "clamp", whose derivative is 0 at NaN
    near = bind("min", bind("max", x, scalar_like(x, -_GELU_END)), scalar_like(x, _GELU_END))
    square = mul(near, near)
    linear, cubic = scalar_like(x, _GELU_LINEAR), scalar_like(x, _GELU_CUBIC)
    inner = mul(near, add(mul(square, cubic), linear))
    steep = mul(near, add(mul(square, scalar_like(x, 3 * _GELU_CUBIC)), linear))
    factor = add(mul(steep, bind("logistic", neg(inner))), scalar_like(x, 1))
    return mul(x_dot, in_dtype(mul(bind("logistic", inner), factor), dtype))


gelu_by_tanh_p = unary(
    "gelu_by_tanh", FLOATING, numpy=_gelu_by_tanh_numpy,
    stablehlo=lowering_text.upcast(_gelu_by_tanh_text, WIDER, np.float32), jvp=_gelu_by_tanh_jvp,
    cost=costs.choice,
)  # fmt: skip


# --------------------------------------------------------------------------------- trigonometric
# Circular and hyperbolic functions and their inverses; angles are in radians.
#
# Semantics: StableHLO and CHLO specifications, sections of these names; branch cuts of the
# complex functions as in C99. Accuracy: a few ulp; of the host rules as NumPy's, of compiled
# programs as XLA's.


def _formula(op: str) -> Callable[..., Any]:
    """Return the rule of an operation that is a formula, with numbers beyond the 8-bit floats.

    XLA's compiler does not end on asinh of some of these.
    """
    return lowering_text.upcast(retype_stablehlo(op), dtypes.SMALL_FLOATS, np.float32)


def _square(x: Any) -> Any:
    return bind("square", x)


def _one_plus_square(x: Any) -> Any:
    return add(_square(x), scalar_like(x, 1))


sin_p = unary(
    "sin", INEXACT, numpy=np.sin, tunable=True,
    stablehlo=_or_complex("sin", vectorise(
        vector.single_sine, tunable_stablehlo("stablehlo.sine"), REACH, vector.wide_sine,
        in_single=True, near=vector.near_sine,
    )),
    jvp=lambda x_dot, y, x: mul_p.bind(x_dot, cos_p.bind(x)[0])[0], cost=costs.nothing,
)  # fmt: skip
cos_p: Primitive = unary(
    "cos", INEXACT, numpy=np.cos, tunable=True,
    stablehlo=_or_complex("cos", vectorise(
        vector.single_cosine, tunable_stablehlo("stablehlo.cosine"), REACH, vector.wide_cosine,
        in_single=True, near=vector.near_cosine,
    )),
    jvp=lambda x_dot, y, x: neg_p.bind(mul_p.bind(x_dot, sin_p.bind(x)[0])[0])[0],
    cost=costs.nothing,
)  # fmt: skip
tan_p = unary(
    "tan", INEXACT, numpy=np.tan, tunable=True,
    stablehlo=_or_complex("tan", vectorise(
        vector.single_tangent, tunable_stablehlo("stablehlo.tan"), REACH, vector.wide_tangent,
        in_single=True, near=vector.near_tangent,
    )),
    jvp=lambda x_dot, y, x: mul(x_dot, _one_plus_square(y)), cost=costs.nothing,
)  # fmt: skip
asin_p = unary(
    "asin", INEXACT, numpy=np.arcsin,
    stablehlo=_or_complex("asin", vectorise(
        vector.single_arcsine, _formula("chlo.asin"), wide=vector.wide_arcsine, in_single=True
    )),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("rsqrt", bind("one_minus_square", x))),
)  # fmt: skip
acos_p = unary(
    "acos", INEXACT, numpy=np.arccos,
    stablehlo=_or_complex("acos", vectorise(
        vector.single_arccosine, _formula("chlo.acos"), wide=vector.wide_arccosine, in_single=True
    )),
    jvp=lambda x_dot, y, x: mul(x_dot, neg(bind("rsqrt", bind("one_minus_square", x)))),
)  # fmt: skip
atan_p = unary(
    "atan", INEXACT, numpy=np.arctan,
    stablehlo=_or_complex("atan", vectorise(
        vector.single_arctangent, _formula("chlo.atan"), wide=vector.wide_arctangent, in_single=True
    )),
    jvp=lambda x_dot, y, x: div(x_dot, _one_plus_square(x)),
)  # fmt: skip


def _first_without_subnormals(name: str) -> Any:
    """Return the rule of an operation of XLA whose CPU code is wrong for a subnormal first one."""
    usual = elementwise_stablehlo(name)

    def stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
        if b.platform == "cpu" and avals_out[0].dtype in _F32_F64:
            first, second = operands
            first = lowering_text.without_subnormals(Text(b, first, avals_in[0])).name
            operands = [first, second]
        return usual(b, operands, avals_in, avals_out)

    return stablehlo


# XLA's own divides them, which is NaN of two subnormal numbers; one that is 0 it looks for
_atan2_stablehlo = _first_without_subnormals("stablehlo.atan2")

# the angle of the point (y, x): d atan2(x, y) = (y dx - x dy) / (x^2 + y^2), without squares
atan2_p = binary(
    "atan2", FLOATING, numpy=np.arctan2,
    stablehlo=vectorise(
        vector.single_angle, _atan2_stablehlo, wide=vector.wide_angle, in_single=True
    ),
    jvp=(lambda x_dot, z, x, y: mul(x_dot, bind("angle_derivative", x, y, orders=(1, 0))),
         lambda y_dot, z, x, y: mul(y_dot, bind("angle_derivative", x, y, orders=(0, 1)))),
    cost=costs.nothing,
)  # fmt: skip

sinh_p = unary(
    "sinh", INEXACT, numpy=np.sinh,
    stablehlo=_or_complex("sinh", vectorise(
        vector.single_hyperbolic_sine, _formula("chlo.sinh"), wide=vector.wide_hyperbolic_sine,
        in_single=True,
    )),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("cosh", x)),
)  # fmt: skip
cosh_p = unary(
    "cosh", INEXACT, numpy=np.cosh,
    stablehlo=_or_complex(
        "cosh", vectorise(None, _cosh_stablehlo, wide=vector.wide_hyperbolic_cosine)
    ),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("sinh", x)),
)  # fmt: skip
# (1 - y)(1 + y) and not 1 - y^2: y is near 1 for most large x
tanh_p = unary(
    "tanh", INEXACT, numpy=np.tanh, tunable=True,
    stablehlo=_or_complex("tanh", vectorise(
        None, tunable_stablehlo("stablehlo.tanh"), wide=vector.wide_hyperbolic_tangent
    )),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("one_minus_square", y)),
)  # fmt: skip


def _asinh_jvp(x_dot: Any, y: Any, x: Any) -> Any:
    if x.aval.dtype in COMPLEX:
        return mul(x_dot, bind("rsqrt", _one_plus_square(x)))
    # 1 / |x| of large numbers, whose squares are infinite
    size, one = bind("abs", x), scalar_like(x, 1)
    is_far = bind("gt", size, scalar_like(x, 2.0 ** (dtypes.finfo(x.aval.dtype).maxexp // 2 - 1)))
    near = bind("rsqrt", _one_plus_square(select(is_far, one, x)))
    return mul(x_dot, select(is_far, div(one, select(is_far, size, one)), near))


asinh_p = unary(
    "asinh", INEXACT, numpy=np.arcsinh,
    stablehlo=_or_complex("asinh", vectorise(
        vector.single_inverse_hyperbolic_sine, _in_single(_formula("chlo.asinh")),
        wide=vector.wide_inverse_hyperbolic_sine, in_single=True,
    )),
    jvp=_asinh_jvp,
)  # fmt: skip
# sqrt(x - 1) sqrt(x + 1) has the branch cuts of acosh, sqrt(x^2 - 1) has not
acosh_p = unary(
    "acosh", INEXACT, numpy=np.arccosh,
    stablehlo=_or_complex("acosh", vectorise(
        vector.single_inverse_hyperbolic_cosine, _in_single(_formula("chlo.acosh")),
        wide=vector.wide_inverse_hyperbolic_cosine, in_single=True,
    )),
    jvp=lambda x_dot, y, x: mul(x_dot, mul(bind("rsqrt", sub(x, scalar_like(x, 1))),
                                           bind("rsqrt", add(x, scalar_like(x, 1))))),
)  # fmt: skip
atanh_p = unary(
    "atanh", INEXACT, numpy=np.arctanh,
    stablehlo=_or_complex("atanh", vectorise(
        None, _in_single(_formula("chlo.atanh")), wide=vector.wide_inverse_hyperbolic_tangent
    )),
    jvp=lambda x_dot, y, x: div(x_dot, bind("one_minus_square", x)),
)  # fmt: skip


# ---------------------------------------------------------------------------------------- powers
# Powers and roots: pow, integer_pow, square, sqrt, rsqrt, cbrt, one_minus_square, polynomial.
#
# Semantics: StableHLO specification, sections power, sqrt, rsqrt, cbrt. `pow` takes an exponent
# of the base's dtype or an integer one; `integer_pow[y]` has its exponent as a param and
# multiplies by repeated squaring; `polynomial x c0 c1 ...` is c0 + c1 x + c2 x^2 + ... by
# Horner's scheme.

# --- pow ----------------------------------------------------------------------------------------


def _pow_shape(x: ShapedArray, y: ShapedArray) -> tuple[ShapedArray, ...]:
    require(
        x.dtype in INEXACT, "pow", "does not take a base of dtype {}.", x.dtype,
        expected="a floating or complex dtype",
        hint="integer_pow takes integers, and so does xnp.power", error=TypeError,
    )  # fmt: skip
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
    power = np.asarray(np.power(x, y))
    is_spoilt = ~(np.isfinite(power) & np.isfinite(x) & np.isfinite(y))
    if is_spoilt.any():
        logarithm, angle = np.log(x).real, np.arctan2(x.imag, x.real)
        by_exponent = np.empty(is_spoilt.shape, wide)
        turned = y.imag * angle
        by_exponent.real = y.real * logarithm - np.where(np.isnan(turned), 0, turned)
        by_exponent.imag = y.real * angle + y.imag * logarithm
        power = np.where(is_spoilt, np.exp(by_exponent), power)
        power = np.where((x == 1) | (y == 0), 1, power)
    return power


def _pow_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (x, y), (x_aval, y_aval), (out,) = operands, avals_in, avals_out
    y = b.convert(y, y_aval, x_aval.dtype)
    y = b.broadcast(y, shaped_array(y_aval.shape, x_aval.dtype), out.shape)
    x = b.broadcast(x, x_aval, out.shape)
    return list(_same_type_power(b, [x, y], [out, out], [out]))


# XLA's own takes a subnormal base for one number between 0 and the least of them
_real_power = _first_without_subnormals("stablehlo.power")
_same_type_power = _or_complex("pow", vectorise(
    vector.single_power, _real_power, wide=vector.wide_power, in_single=True,
))  # fmt: skip


def _pow_jvp(primals: Any, tangents: Any) -> Any:
    """d(x^y) = y x^(y-1) dx + log(x) x^y dy, with log(0) as 0.

    Where y = 0 and x^-1 is not a number, the first factor 0 wins: x^0 is 1 for every x.
    """
    (x, y), (x_dot, y_dot) = primals, tangents
    (z,) = state.trace.process(pow_p, (x, y), {})
    total = None
    if type(x_dot) is not Zero:
        less = _lower_power(x, y, z.aval.shape)
        total = repeat_scalar(mul(x_dot, mul(in_dtype(y, x.aval.dtype), less)), z.aval.shape)
    if type(y_dot) is not Zero and y.aval.dtype in INEXACT:
        base = select(bind("eq", x, scalar_like(x, 0)), scalar_like(x, 1), x)
        term = repeat_scalar(mul(y_dot, mul(bind("log", base), z)), z.aval.shape)
        total = term if total is None else add(total, term)
    return (z,), (Zero(z.aval) if total is None else total,)


def _lower_power(x: Any, y: Any, shape: tuple[int, ...]) -> Any:
    """Return x^(y-1); where y = 0, and 1 / x is infinite or NaN, a 1.

    Where y = 0, and 1 / x^2 is infinite or NaN, it depends on neither: 0 times that is 0.
    """
    at_zero, one = bind("eq", y, scalar_like(y, 0)), scalar_like(x, 1)
    inverse = div(one, x)
    is_tame, is_smooth = [bind("is_finite", bind("abs", v)) for v in (inverse, div(inverse, x))]
    usual = repeat_scalar(bind("or", bind("not", at_zero), is_smooth), shape)
    fixed = bind("stop_gradient", select(is_tame, inverse, one))
    base = select(usual, repeat_scalar(x, shape), one)
    power = repeat_scalar(bind("pow", base, sub(y, scalar_like(y, 1))), shape)
    return select(usual, power, repeat_scalar(fixed, shape))


pow_p = Primitive(
    "pow",
    shape=_pow_shape,
    numpy=_pow_numpy,
    stablehlo=_pow_stablehlo,
    jvp=_pow_jvp,
    transpose=xprim.undefined("it is not linear"),
    batch=xprim.ELEMENTWISE,
    eager=costs.nothing,
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
    return power if y > 0 else _div_numpy(np.ones((), x.dtype), np.asarray(power))


def _square_ufunc(avals_in: Any, avals_out: Any, *, y: int = 2) -> xprim.NumpyCall | None:
    if y != 2 or avals_in[0].dtype not in NATIVE:
        return None
    return xprim.NumpyCall(np.multiply, (Operand(0), Operand(0)))


def _integer_pow_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, y: int
) -> list[str]:
    (x,), (aval,) = operands, avals_in
    if y == 0:
        return [b.constant(1, aval)]
    if aval.dtype in _NARROW and not -1 <= y <= 2:  # more than one operation
        return list(_powers_in_single(b, operands, avals_in, avals_out, y=y))
    power = by_squaring(x, abs(y), lambda u, v: b.same_type_op("stablehlo.multiply", [u, v], aval))
    if y < 0:
        (power,) = _div_stablehlo(b, [b.constant(1, aval), power], [aval, aval], [aval])
    return [power]


_powers_in_single = lowering_text.upcast(_integer_pow_stablehlo, _NARROW, np.float32)


def _integer_pow_jvp(x_dot: Any, z: Any, x: Any, *, y: int) -> Any:
    if y == 0:
        return Zero(z.aval)
    less = x if y == 2 else bind("integer_pow", x, y=y - 1)  # d(x^y) = y x^(y-1) dx
    return mul(x_dot, table_scaled(less, y))


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
    return [b.same_type_op("stablehlo.multiply", [x, x], aval)]


def _real_square_ufunc(avals_in: Any, avals_out: Any) -> xprim.NumpyCall | None:
    return None if dtypes.is_complex(avals_in[0].dtype) else _square_ufunc(avals_in, avals_out)


square_p = unary(
    "square", NUMBER, numpy=_square_numpy, stablehlo=_or_complex("square", _square_stablehlo),
    jvp=lambda x_dot, y, x: mul(x_dot, table_scaled(x, 2)), ufunc=_real_square_ufunc,
    cost=costs.arithmetic,
)  # fmt: skip

sqrt_p = unary(
    "sqrt", INEXACT, numpy=np.sqrt, tunable=True,
    stablehlo=_or_complex("sqrt", tunable_stablehlo("stablehlo.sqrt")),
    jvp=lambda x_dot, y, x: mul_p.bind(x_dot, div_p.bind(scalar_like(x, 0.5), y)[0])[0],
)  # fmt: skip


@in_wider
def _rsqrt_numpy(x: Any) -> Any:
    root = np.sqrt(x)
    if x.dtype.kind != "c":
        return np.divide(np.ones((), x.dtype), root)
    inverse = _complex_functions.divide(np.ones((), x.dtype), np.asarray(root))
    # a real number over r has the sign of conj(r), 1 + 0j loses it
    return _complex_numpy(
        np.copysign(inverse.real, root.real), np.copysign(inverse.imag, -root.imag)
    )


rsqrt_p = unary(
    "rsqrt", INEXACT, numpy=_rsqrt_numpy, tunable=True,
    stablehlo=_or_complex("rsqrt", tunable_stablehlo("stablehlo.rsqrt")),
    # d x^(-1/2) = -1/2 x^(-1/2) / x dx
    jvp=lambda x_dot, y, x: mul(x_dot, table_scaled(div(y, x), -0.5)),
)  # fmt: skip

_cbrt_operation = tunable_stablehlo("stablehlo.cbrt")


def _cbrt_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, accuracy: Accuracy = None
) -> list[str]:
    """Write XLA's operation; of subnormal numbers, which it loses, multiplied by a power of 2."""
    (aval,) = avals_out
    if aval.dtype not in _F32_F64:  # computed in float32, where subnormal numbers are normal
        return _cbrt_operation(b, operands, avals_in, avals_out, accuracy)
    x, exponent = Text(b, operands[0], aval), -int(dtypes.finfo(aval.dtype).minexp)
    size, rest = x.op("abs"), -exponent % 3  # exponent + rest is three times that of the root
    is_subnormal, fraction = vector.over_least_normal(size)
    scaled = lowering_text.where(is_subnormal, fraction * 2.0**rest, size)
    (name,) = _cbrt_operation(b, [scaled.name], avals_in, avals_out, accuracy)
    power = lowering_text.where(is_subnormal, x.like(2.0 ** (-(exponent + rest) // 3)), 1.0)
    root = Text(b, name, aval) * power
    return [lowering_text.where(vector.bits_of(x) < 0, -root, root).name]


cbrt_p = unary(
    "cbrt", FLOATING, numpy=np.cbrt, tunable=True,
    stablehlo=vectorise(
        vector.single_cube_root,
        lowering_text.upcast(_cbrt_stablehlo, [dtypes.bfloat16], np.float32),
        wide=vector.wide_cube_root,
        in_single=True,
    ),
    jvp=lambda x_dot, y, x: mul(x_dot, table_scaled(bind("integer_pow", y, y=-2), 1 / 3)),
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
    jvp=lambda x_dot, y, x: mul(x_dot, table_scaled(x, -2)),
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
        factors = [table_scaled(c, i) for i, c in enumerate(cs) if i]
        terms.append(mul(x_dot, bind("polynomial", x, *factors)))
    for i, c_dot in enumerate(c_dots):
        if type(c_dot) is not Zero:
            terms.append(mul(c_dot, bind("integer_pow", x, y=i)) if i else c_dot)
    total = None
    for term in terms:
        term = repeat_scalar(term, z.aval.shape)
        total = term if total is None else add(total, term)
    return (z,), (Zero(z.aval) if total is None else total,)


polynomial_p = Primitive(
    "polynomial",
    shape=elementwise_shape("polynomial", NUMBER),
    numpy=_polynomial_numpy,
    stablehlo=_polynomial_stablehlo,
    jvp=_polynomial_jvp,
    transpose=xprim.undefined("it is not linear"),
    batch=xprim.ELEMENTWISE,
)


# -------------------------------------------------------------------------------------- rounding
# Rounding and steps between floats: floor, ceil, round, is_finite, nextafter.
#
# `round[rounding_method]`: 0 rounds halves away from zero, 1 to even. Semantics: StableHLO
# specification, sections floor, ceil, round_nearest_afz, round_nearest_even, is_finite; for
# nextafter, IEEE 754.


class RoundingMethod(enum.IntEnum):
    """Where numbers half way between two integers go."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


floor_p = unary("floor", FLOATING, numpy=np.floor, stablehlo="stablehlo.floor", jvp=ZERO)
ceil_p = unary("ceil", FLOATING, numpy=np.ceil, stablehlo="stablehlo.ceil", jvp=ZERO)


def _round_numpy(x: Any, *, rounding_method: int) -> Any:
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x)
    # what is half or more reaches the next integer: the sum of 0.5 and the greatest float below
    # half rounds to 1; numbers without a fraction stay, since less than half of a unit is added
    wide = x if x.dtype in (dtypes.float32, dtypes.float64) else x.astype(np.float32)
    below = np.nextafter(wide.dtype.type(0.5), wide.dtype.type(0))
    return np.trunc(wide + np.copysign(below, wide)).astype(x.dtype)


def _round_cost(avals_in: Any, avals_out: Any, *, rounding_method: int) -> float | None:
    even = rounding_method == RoundingMethod.TO_NEAREST_EVEN
    return (costs.nothing if even else _PASSES)(avals_in, avals_out)


_PASSES = costs.per_result(1.0)  # four passes of NumPy's


def _round_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, rounding_method: int
) -> list[str]:
    even = rounding_method == RoundingMethod.TO_NEAREST_EVEN
    op = "stablehlo.round_nearest_even" if even else "stablehlo.round_nearest_afz"
    return [b.same_type_op(op, operands, avals_out[0])]


round_p = unary(
    "round",
    FLOATING,
    numpy=_round_numpy,
    stablehlo=_round_stablehlo,
    jvp=ZERO,
    has_params=True,
    cost=_round_cost,
)

is_finite_p = unary(
    "is_finite", FLOATING, numpy=np.isfinite, stablehlo=retype_stablehlo("stablehlo.is_finite"),
    jvp=ZERO, out_dtype=dtypes.bool_,
)  # fmt: skip

nextafter_p = binary(
    "nextafter", FLOATING, numpy=np.nextafter, stablehlo=retype_stablehlo("chlo.next_after"),
    jvp=(lambda x_dot, z, x, y: x_dot, None),  # it moves with x, whatever the direction y
)  # fmt: skip
