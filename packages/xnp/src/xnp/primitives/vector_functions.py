"""Elementary functions for CPUs, as operations that become vector code.

XLA calls a scalar function of the C library for each element of `sine`, `cosine`, `tan`, `atan2`
(which `asin` and `acos` are made of) and `cbrt` on a CPU: 10 to 40 ns; for others it computes a
logarithm or an exponential and repairs it. Here they are written as arithmetic, which every CPU
of ours has as vector instructions. Formulas whose names begin with `single` are given float32:
sine, cosine and tangent compute in float64 and round once, as powers do, and are within 0.51 ulp;
the others compute in float32, within 2 ulp in a third of the time. Those whose names begin with
`wide` are for float64 itself, within 2.5 ulp, and those with `near` for arrays of float32 of 65,536
elements and more, all between -800 and 800, within 2 ulp.

What: `vectorise`, which puts a formula in the place of an operation: on a CPU, from `_LEAST`
elements on. A formula is a function of the program that XLA does not
inline: fused with several users it would be computed once for each.

The polynomials are of `tools/minimax.py`. Sources: range reduction of float32, M. Payne and R.
Hanek, Radian Reduction for Trigonometric Functions, 1983, and of float64, W. J. Cody and W. Waite,
Software Manual for the Elementary Functions, 1980; the first guess of a cube root, W. Kahan,
Computing a Real Cube Root, 1991; its refinement by Halley's method; the sum that makes a logarithm
exact to less than an ulp, K. C. Ng, Argument Reduction for Logarithms, in FDLIBM, 1993; powers by
a logarithm in two parts, e_pow.c of FDLIBM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp.primitives.lowering_text import Text, any_element, is_split, where
from xprim import ShapedArray, dtypes, shaped_array
from xprim.contracts import Builder, outline

__all__ = ()

_LEAST = 1024  # elements: fewer take as long as the call
_MANY = 1 << 16  # of fewer, two formulas and the choice compile for longer than they save

# The quotient of the arc tangent and r for 0 <= r <= 1, in r^2; that of the arc sine up to 9/16.
_ATAN_SINGLE = (
    0.9999999971605454, -0.3333327629198255, 0.19998075281148714, -0.14260016082820906,
    0.10932341501303093, -0.08349724968301601, 0.05708955593030619, -0.030351864785781172,
    0.010487649254949306, -0.0017011700640685973,
)  # fmt: skip
_ASIN_SINGLE = (
    0.9999999998805134, 0.1666667148867963, 0.07499683531649157, 0.04472117103629027,
    0.02944351427063015, 0.028343936439240745, -0.0028234038046636833, 0.045842573502243536,
)  # fmt: skip
# The quotient of the sine and r for 0 <= r <= pi / 2, in r^2; that of the tangent up to pi / 4.
_SIN = (
    0.999999999982817, -0.16666666616567571, 0.008333330964838084, -0.0001984085996542722,
    2.752520661631257e-06, -2.3888080388298648e-08,
)  # fmt: skip
_TAN = (
    0.9999999999940312, 0.33333333526420944, 0.1333332307925913, 0.05397035428634902,
    0.021847792496401883, 0.008990767871056826, 0.0031420384551937223, 0.002416469477934677,
    -0.0005941540916260852, 0.0009584142644754295,
)  # fmt: skip
# f with tan(r) = r + r t f(t), t = r^2, of float32 up to pi / 4.
_TAN_NEAR = (
    0.33333333984697283, 0.13333230217458134, 0.05399462416667326, 0.021619872776148154,
    0.009966544602536997, 0.0011782998551862955, 0.003847304292382261,
)  # fmt: skip
# The first for float64, 0 <= r <= 1/2.
_ATAN_WIDE = (
    1.0, -0.3333333333333333, 0.19999999999999396, -0.14285714285642884, 0.11111111106676229,
    -0.0909090892459431, 0.0769230360866171, -0.0666659763438319, 0.05881523847883739,
    -0.05255951820054856, 0.04716207948630676, -0.041365831858098286, 0.03294889024511551,
    -0.020329512254261873, 0.0068702280293702804,
)  # fmt: skip
# f with log((1 + s) / (1 - s)) = 2 s + s t f(t), t = s^2, for float64.
_LOG_WIDE = (
    0.6666666666666666, 0.40000000000000885, 0.28571428570799784, 0.22222222392581045,
    0.18181795547521137, 0.15386244737621665, 0.13268638369266825, 0.13088034850927555,
)  # fmt: skip
# f with sin(r) = r + r t f(t), t = r^2, and cos(r) = 1 - t / 2 + t^2 f(t), for float64.
_SIN_WIDE = (
    -0.16666666666666666, 0.008333333333330936, -0.00019841269836740532, 2.7557316093198404e-06,
    -2.5051129896450185e-08, 1.5917988979397435e-10,
)  # fmt: skip
_COS_WIDE = (
    0.041666666666666664, -0.0013888888888887389, 2.48015872987544e-05, -2.755731726587808e-07,
    2.087614504941318e-09, -1.138254464534925e-11,
)  # fmt: skip
# f with sinh(r) = r + r t f(t) and cosh(r) = 1 + t / 2 + t^2 f(t), |r| <= log(2) / 2, for float64.
_SINH_WIDE = (
    0.16666666666666669, 0.008333333333330051, 0.00019841269863105952, 2.7557268378709608e-06,
    2.5100424144926963e-08,
)  # fmt: skip
_COSH_WIDE = (
    0.041666666666666664, 0.0013888888888886545, 2.4801587317181873e-05, 2.755728291150083e-07,
    2.0911264230570877e-09,
)  # fmt: skip
# Powers of float32: f with log2((1 + s) / (1 - s)) = s f(t), t = s^2, and 2^r for |r| <= 1/2.
_BINARY_LOG = (
    2.885390081790048, 0.9617966733682309, 0.5770835830070087, 0.41167268734376855,
    0.3407329932424559,
)  # fmt: skip
_EXP_2 = (
    0.9999999999592369, 0.6931471805568075, 0.24022651216614133, 0.055504109065657,
    0.009618025198219938, 0.0013333478154201467, 0.00015469861921601935, 1.530380284962428e-05,
)  # fmt: skip
# The same to 28 bits, exact for r = 0.
_EXP_2_SINGLE = (
    1.0, 0.6931472068602362, 0.24022650923651495, 0.055503268911533885, 0.009618056388057775,
    0.0013400562264223321, 0.00015461560778872135,
)  # fmt: skip
# That of _LOG_WIDE for float32.
_LOG_SINGLE = (0.6666668509542907, 0.39988757716604845, 0.29580985929974424)
# f with log((1 + s) / (1 - s)) = (2 / 3) s (3 + t + t^2 f(t)), t = s^2, for float64.
_LOG_REST = (
    0.6, 0.4285714285714406, 0.3333333333247915, 0.2727272750414977, 0.2307689233051077,
    0.20002213198218508, 0.17559189696845096, 0.1758649059127012,
)  # fmt: skip

# The bits of 2 / pi: it is this over 2^218.
_TWO_OVER_PI = 0x28BE60DB9391054A7F09D5F47D4D377036D8A5664F10E4107F9458E
# pi / 2 as the sum of three numbers of 33 bits, whose products with those of 20 are exact, and a
# rest.
_HALF_PI_WIDE = (
    1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.478427660348229e-32,
)  # fmt: skip
_MOST_QUARTERS = 1 << 20
# The same for float32, as the sum of three numbers of 15 bits, whose products with 512 are exact,
# and a rest.
_HALF_PI_PARTS = (
    1.57073974609375, 5.657970905303955e-05, 9.920881893776823e-10, 5.390302953474238e-15,
)  # fmt: skip
_MOST_NEAR = 800.0

# log 2, 1 / log 2 and 2 / (3 log 2) as the sum of a number of 26 bits and a rest; and the last two.
_LOG_2_HALVES = (0.6931471675634384, 1.2996506893889889e-08)
_LOG2_E = (1.4426950216293335, 1.9259629911266175e-08, 1.4426950408889634)
_TWO_THIRDS = (0.9617966860532761, 7.872699542894897e-09, 0.9617966939259756)

Formula = Callable[..., Text]
"""From values of float64 and the signs of those they were, masks where set, to the result."""


def vectorise(
    formula: Formula | None,
    rule: Callable[..., list[str]],
    limit: float | None = None,
    wide: Formula | None = None,
    *,
    in_single: bool = False,
    near: Formula | None = None,
) -> Callable[..., list[str]]:
    """Return a `stablehlo` rule that writes a formula where that is faster than an operation.

    Args:
      formula: what is written for float32 and narrower dtypes; None has the operation written.
      rule: of the operation, for other dtypes, platforms and sizes, and where an accuracy is given.
      limit: where the magnitude of any float64 is above, the operation computes all elements.
      wide: what is written for float64; None has the operation written.
      in_single: whether the formula is given float32, and not float64 whose result is rounded.
      near: what is written for many elements of float32 and narrower dtypes in the place of the
        first formula, if no magnitude is above 800.
    """

    def write(
        b: Builder, operands: Any, avals_in: Any, avals_out: Any, accuracy: Any = None
    ) -> list[str]:
        params = {} if accuracy is None else {"accuracy": accuracy}
        (out,) = avals_out
        is_large = type(out.size) is int and out.size >= _LEAST
        found = formula if out.dtype in _NARROW else wide if out.dtype == dtypes.float64 else None
        is_ours = b.platform == "cpu" and is_large and not params
        if found is None or not is_ours or is_split(b):  # the compiler cuts operations itself
            return rule(b, operands, avals_in, avals_out, **params)

        operands = [b.broadcast(x, a, out.shape) for x, a in zip(operands, avals_in, strict=True)]
        avals_in = [a.update(shape=out.shape) for a in avals_in]

        def write_formula(
            inner: Builder, names: Sequence[str], avals_in: Any, avals_out: Any
        ) -> list[str]:
            return [_write(inner, found, names, avals_in, out, in_single)]

        is_wide = out.dtype == dtypes.float64

        def body(inner: Builder, names: list[str]) -> list[str]:
            if limit is not None and is_wide:
                return _either(inner, found, rule, limit, names, avals_in, avals_out)
            if near is not None and not is_wide and out.size >= _MANY:
                return _either(inner, near, write_formula, _MOST_NEAR, names, avals_in, avals_out)
            return write_formula(inner, names, avals_in, avals_out)

        name = found.__name__.strip("_")
        return outline(b, body, operands, avals_in, avals_out, f"vector {name}", name)

    return write


_NARROW = frozenset([dtypes.float32, dtypes.float16, dtypes.bfloat16])


def _write(
    b: Builder, formula: Formula, names: Sequence[str], avals: Sequence[ShapedArray],
    out: ShapedArray, in_single: bool = False,
) -> str:  # fmt: skip
    if out.dtype == dtypes.float64:
        return formula(*[Text(b, x, a) for x, a in zip(names, avals, strict=True)]).name
    single = shaped_array(out.shape, dtypes.float32)
    values = [Text(b, b.convert(x, a, dtypes.float32), single)
              for x, a in zip(names, avals, strict=True)]  # fmt: skip
    found = formula(*values) if in_single else _narrow(formula(*map(_widen, values)))
    return b.convert(found.name, single, out.dtype)


# The runtime has the processor take subnormal numbers of float32 for zeros, and make none.
_SUBNORMAL = 1 << 23  # the bits of the least normal number
_MAGNITUDE = (1 << 31) - 1
_SIGN = -1 - _MAGNITUDE
_TINY_SINGLE = 2.0**-13
_EXPONENT_OF_TINY = 127 - 13
_UNITS = 2.0**149


def _widen(x: Text) -> Text:
    """Write float32 as float64, subnormal numbers by their bits, which count units of 2^-149."""
    bits = bits_of(x)
    size = bits.op("and", _MAGNITUDE)
    tiny = _convert(size, dtypes.float64) * (1 / _UNITS)
    usual = _convert(x, dtypes.float64)
    return where(size < _SUBNORMAL, where(bits < 0, -tiny, tiny), usual)


def _narrow(x: Text) -> Text:
    """Write float64 as float32, subnormal numbers by their bits."""
    units = abs_(x * _UNITS)
    is_tiny = units < float(_SUBNORMAL)
    count = _convert(where(is_tiny, units, 0.0).op("round_nearest_even"), np.dtype(np.int32))
    sign = _convert(bits_of(x).op("shift_right_logical", 32), np.dtype(np.int32))
    tiny = floats(count.op("or", sign.op("and", _SIGN)))
    return where(is_tiny, tiny, _convert(x, dtypes.float32))


def _either(
    b: Builder, formula: Formula, rule: Callable[..., list[str]], limit: float,
    names: list[str], avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray],
) -> list[str]:  # fmt: skip
    """Write a formula, and by a rule what is for arrays with an element above its limit."""
    (x,), (aval,) = names, avals_in
    is_beyond = abs_(Text(b, x, aval)) > limit  # NaN is not: its results are NaN
    is_far = any_element(b, is_beyond, by_library=True)

    def operation(inner: Builder, _: list[str]) -> list[str]:
        # without the barrier the compiler computes both and selects
        (kept,) = inner.op("stablehlo.optimization_barrier", [x], [aval], [aval])
        return rule(inner, [kept], avals_in, avals_out)

    far = b.region([], operation, avals_out)
    near = b.region([], lambda inner, _: [
        _write(inner, formula, [x], avals_in, avals_out[0], in_single=True)
    ], avals_out)  # fmt: skip
    truth = shaped_array((), dtypes.bool_)
    return b.op("stablehlo.if", [is_far], [truth], avals_out, "", b.regions(far, near))


def vectorise_remainder(rule: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Return a rule that writes remainders of many float32 as arithmetic of float64.

    XLA calls `fmod` for each element: 2 to 13 ns. With |x / y| below 2^28 the product of y and the
    integer below it is exact in float64, and so is the difference; where an element is beyond, all
    are computed by the operation in float64, which has the subnormal numbers of float32 as normal
    ones: as a divisor they are not taken for zero.

    Args:
      rule: writes the operation, for other dtypes, platforms and sizes.
    """

    def write(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any) -> list[str]:
        (out,) = avals_out
        is_many = type(out.size) is int and out.size >= _MANY
        is_one = not avals_in[1].shape  # remainders by a power of two are cheap operations
        is_ours = out.dtype in _NARROW and is_many and not is_one and b.platform == "cpu"
        if not is_ours or is_split(b):
            return rule(b, operands, avals_in, avals_out, **params)
        operands = [b.broadcast(x, a, out.shape) for x, a in zip(operands, avals_in, strict=True)]
        avals = [out, out]

        def body(inner: Builder, names: list[str]) -> list[str]:
            single = shaped_array(out.shape, dtypes.float32)
            x, y = [Text(inner, inner.convert(n, out, dtypes.float32), single) for n in names]
            is_far = any_element(inner, _has_far_quotient(x, y), by_library=True)

            def operation(far: Builder, _: list[str]) -> list[str]:
                # without the barrier the compiler computes both and selects
                kept = far.op("stablehlo.optimization_barrier", names, avals, avals)
                return [_write(far, _remainder_by_operation, kept, avals, out)]

            def arithmetic(near: Builder, _: list[str]) -> list[str]:
                return [_write(near, _remainder, names, avals, out)]

            regions = inner.regions(
                inner.region([], operation, avals_out), inner.region([], arithmetic, avals_out)
            )
            truth = shaped_array((), dtypes.bool_)
            return inner.op("stablehlo.if", [is_far], [truth], avals_out, "", regions)

        return outline(b, body, operands, avals, avals_out, "vector remainder", "remainder")

    return write


_MOST_QUOTIENT = 2.0**28


def _has_far_quotient(x: Text, y: Text) -> Text:
    """Write where |x / y| may be 2^28 or more, of float32 whose products flush subnormal numbers.

    A divisor is compared by its bits less one: LLVM makes of a comparison of the bits with 0 one
    of the float, for which a subnormal number is zero.
    """
    a, size = abs_(x), bits_of(y).op("and", _MAGNITUDE)
    is_tiny = (size - 1).op("and", _MAGNITUDE) < _SUBNORMAL - 1
    is_far = (a > abs_(y) * _MOST_QUOTIENT) & (size >= _SUBNORMAL)
    return (is_far | is_tiny & (a > _MOST_QUOTIENT / _UNITS)) & (a < np.inf)


def _remainder_by_operation(x: Text, y: Text) -> Text:
    return x.op("remainder", y)


def _remainder(x: Text, y: Text) -> Text:
    """Write x - y trunc(x / y) of float64 that were float32, with the sign of x.

    With x = n y - d, d is an ulp of y at least, and n y fewer than 2^52 of these: no quotient is
    rounded up to an integer.
    """
    a, p = abs_(x), abs_(y)
    rest = where(a < p, a, a - (a / p).op("floor") * p)
    return where(bits_of(x) < 0, -rest, rest)


def bits_of(x: Text) -> Text:
    """Write the bits of floats as integers."""
    return _reinterpret(x, np.dtype(f"i{x.aval.dtype.itemsize}"))


def bits_of_one(dtype: np.dtype[Any]) -> int:
    """Return the bits of 1.0 in a floating dtype."""
    info = dtypes.finfo(dtype)
    return (1 << info.nexp - 1) - 1 << info.nmant


def over_least_normal(size: Text) -> tuple[Text, Text]:
    """Write which magnitudes are subnormal, and those over the least normal number, by their bits.

    Of other magnitudes the second result is some number between 0 and 1.
    """
    dtype, bits = size.aval.dtype, bits_of(size)
    is_subnormal = bits < 1 << dtypes.finfo(dtype).nmant
    return is_subnormal, floats(bits.op("or", bits_of_one(dtype))) - 1.0


def floats(x: Text) -> Text:
    """Write the floats that have such bits."""
    return _reinterpret(x, np.dtype(f"f{x.aval.dtype.itemsize}"))


def _reinterpret(x: Text, dtype: np.dtype[Any]) -> Text:
    aval = shaped_array(x.aval.shape, dtype)
    (name,) = x.builder.op("stablehlo.bitcast_convert", [x.name], [x.aval], [aval])
    return Text(x.builder, name, aval)


def _convert(x: Text, dtype: np.dtype[Any]) -> Text:
    aval = shaped_array(x.aval.shape, dtype)
    return Text(x.builder, x.builder.convert(x.name, x.aval, dtype), aval)


def _polynomial(t: Text, coefficients: Sequence[float]) -> Text:
    """Write sum_k c_k t^k by Estrin's scheme: a program waits for fewer products than Horner's."""
    terms: list[Any] = [t.like(c) for c in coefficients]
    while len(terms) > 1:
        pairs = [low + high * t for low, high in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[2 * len(pairs) :]
        t = t * t
    return terms[0]  # type: ignore[no-any-return]


_TINY = 2.0**-30


def _like_tiny(x: Text, result: Text) -> Text:
    """Write tiny arguments themselves for functions that begin with x + O(x^3)."""
    return where(abs_(x) < _TINY, x, result)


def _upper(x: Text) -> Text:
    """Write float64 cut to 26 bits: products of two such numbers are exact."""
    return floats(bits_of(x).op("and", -(1 << 27)))


def _power_of_two(n: Text) -> Text:
    """Write 2^n of a whole n, for normal numbers: its last bits are those of a sum of 1.5 2^52."""
    form = dtypes.finfo(n.aval.dtype)
    bits = n + (1.5 * 2.0**form.nmant + form.maxexp - 1)
    return floats(bits_of(bits).op("shift_left", form.nmant))


# --------------------------------------------------------------------------------- trigonometric


def _quarters(x: Text) -> Text:
    """Write |x| / (pi / 2) mod 4, in units of 2^-62, of finite float32 from 2^-13 on.

    It is the product of the mantissa and of those 96 bits of 2 / pi that its exponent leaves.
    """
    integer, size = np.dtype(np.int64), bits_of(x).op("and", _MAGNITUDE)
    mantissa = _convert(size.op("and", _SUBNORMAL - 1).op("or", _SUBNORMAL), integer)
    exponent = size.op("shift_right_logical", 23) - _EXPONENT_OF_TINY
    high, low = [mantissa.like(_bits_of_two_over_pi(at)) for at in (0, 64)]
    for at in range(32, 160, 32):
        is_beyond = exponent >= at
        high = where(is_beyond, high.like(_bits_of_two_over_pi(at)), high)
        low = where(is_beyond, low.like(_bits_of_two_over_pi(at + 64)), low)
    left = _convert(exponent.op("and", 31), integer)
    window = high.op("shift_left", left).op("or", low.op("shift_right_logical", 64 - left))
    rest = low.op("shift_left", left).op("shift_right_logical", 32)
    return mantissa * window + (mantissa * rest).op("shift_right_logical", 32)


def _bits_of_two_over_pi(at: int) -> int:
    """Return 64 bits as a signed integer; those at 0 are the quarters of 2^-13, in 2^-62."""
    bits = _TWO_OVER_PI >> (192 - at) & ((1 << 64) - 1)
    return bits - (bits >> 63 << 64)


def _fold(part: Text) -> tuple[Text, Text]:
    """Write where a signed integer is beyond half of its range, and there half of it less that."""
    is_beyond = part.op("xor", part.op("shift_left", 1)) < 0
    return is_beyond, where(is_beyond, -(1 << 63) - part, part)


def _radians(quarters: Text, unit: float) -> Text:
    return _convert(quarters, dtypes.float64) * (np.pi / 2 * unit)


def _odd(x: Text, size: Text) -> Text:
    """Write what belongs to |x| for x, NaN beyond the finite numbers, and tiny numbers as such."""
    single = bits_of(_convert(size, dtypes.float32))
    result = floats(single.op("xor", bits_of(x).op("and", _SIGN)))
    a = abs_(x)
    return where(a < _TINY_SINGLE, x, where(a < np.inf, result, np.nan))


def _sine_of(quarters: Text) -> Text:
    """Write the sine, of numbers between -1 and 1 quarters by its symmetry."""
    r = _radians(_fold(quarters)[1], 2.0**-62)
    return r * _polynomial(r * r, _SIN)


def single_sine(x: Text) -> Text:
    """Write sin(x) of float32."""
    return _odd(x, _sine_of(_quarters(x)))


def single_cosine(x: Text) -> Text:
    """Write cos(x) = sin(|x| + pi / 2) of float32."""
    a = abs_(x)
    result = _convert(_sine_of(_quarters(x) + (1 << 62)), dtypes.float32)
    return where(a < _TINY_SINGLE, x.like(1.0), where(a < np.inf, result, np.nan))


def single_tangent(x: Text) -> Text:
    """Write tan(x) of float32, beyond pi / 4 as 1 / tan(pi / 2 - x)."""
    is_steep, part = _fold(_quarters(x).op("shift_left", 1))
    r = _radians(part, 2.0**-63)
    result = r * _polynomial(r * r, _TAN)
    return _odd(x, where(is_steep, 1.0 / result, result))


def _reduce_near(x: Text) -> tuple[Text, Text, Text]:
    """Write r, what r leaves of it, and n as bits with x = r + rest + n pi / 2, of |x| <= 800."""
    n = (x * (2 / np.pi)).op("round_nearest_even")
    first, second, third, last = [n * part for part in _HALF_PI_PARTS]  # all but the last exact
    start = x - first
    less = start - second
    r = less - third
    rest = (((start - less) - second) + ((less - r) - third)) - last
    return r, rest, bits_of(n + 1.5 * 2.0**23)


def _sine_near(x: Text, quarters: int) -> Text:
    """Write sin(x + quarters pi / 2) of float32 and |x| <= 800, within 2 ulp."""
    r, rest, bits = _reduce_near(x)
    if quarters:
        bits = bits + quarters
    t = r * r
    half = t * 0.5
    sine = r + (r * (t * _polynomial(t, _SIN_WIDE[:4])) + rest)
    cosine = 1.0 - (half - (t * t * _polynomial(t, _COS_WIDE[:4]) - r * rest))
    result = where(bits.op("and", 1) == 0, sine, cosine)
    sign = bits.op("and", 2).op("shift_left", 30)
    return floats(bits_of(result).op("xor", sign))


def near_sine(x: Text) -> Text:
    """Write sin(x) of float32 and |x| <= 800."""
    return where(abs_(x) < _TINY_SINGLE, x, _sine_near(x, 0))


def near_cosine(x: Text) -> Text:
    """Write cos(x) of float32 and |x| <= 800."""
    return _sine_near(x, 1)


def near_tangent(x: Text) -> Text:
    """Write tan(x) of float32 and |x| <= 800, as tan(r) or -1 / tan(r)."""
    r, rest, bits = _reduce_near(x)
    t = r * r
    more = r * (t * _polynomial(t, _TAN_NEAR)) + (rest + rest * t)
    result = r + more
    result = where(bits.op("and", 1) == 0, result, -1.0 / result)
    return where(abs_(x) < _TINY_SINGLE, x, result)


def _at_quarter(sine: Text, cosine: Text, n: Text) -> Text:
    """Write sin(r + n pi / 2)."""
    result = where(n.op("and", 1) == 0, sine, cosine)
    return where(n.op("and", 2) == 0, result, -result)


def _quotient(sine: Text, cosine: Text, n: Text) -> Text:
    """Write tan(r + n pi / 2): sin(r) / cos(r), or -cos(r) / sin(r)."""
    is_even = n.op("and", 1) == 0
    return where(is_even, sine, -cosine) / where(is_even, cosine, sine)


def _reduce_wide(x: Text) -> tuple[Text, Text, Text]:
    """Write sin(r) and cos(r) with x = r + n pi / 2, |r| <= pi / 4, and n as an integer."""
    n = (x * (2 / np.pi)).op("round_nearest_even")
    r, rest = x - n * _HALF_PI_WIDE[0], x.like(0.0)
    for part in _HALF_PI_WIDE[1:3]:
        product = n * part  # exact
        less = r - product
        rest = rest + ((r - less) - product)
        r = less
    rest = rest - n * _HALF_PI_WIDE[3]
    total = r + rest
    rest = (r - total) + rest
    r = where(n == 0.0, x, total)
    t = r * r
    half = t * 0.5
    sine = r + (r * (t * _polynomial(t, _SIN_WIDE)) + rest * (1.0 - half))
    near = 1.0 - half
    cosine = near + (((1.0 - near) - half) + (t * t * _polynomial(t, _COS_WIDE) - r * rest))
    return sine, cosine, _convert(n, np.dtype(np.int32))


def wide_sine(x: Text) -> Text:
    """Write sin(x) of float64."""
    return _like_tiny(x, _at_quarter(*_reduce_wide(x)))


def wide_cosine(x: Text) -> Text:
    """Write cos(x) of float64."""
    sine, cosine, n = _reduce_wide(x)
    return _at_quarter(sine, cosine, n + 1)


def wide_tangent(x: Text) -> Text:
    """Write tan(x) of float64."""
    return _like_tiny(x, _quotient(*_reduce_wide(x)))


REACH = float(np.float32(_MOST_QUARTERS * np.pi / 2 - 2))
"""Up to this magnitude arguments are reduced exactly enough."""


# ------------------------------------------------------------------------- inverse trigonometric


# What float32 leaves of pi / 2, and that.
_HALF_PI_SINGLE = (1.5707963705062866, -4.371139006309477e-08)


def _with_sign_of(size: Text, x: Text) -> Text:
    """Write float32 with the sign of another one."""
    return floats(bits_of(size).op("or", bits_of(x).op("and", _SIGN)))


def single_arctangent(x: Text) -> Text:
    """Write atan(x) of float32, from 1 on as pi / 2 - atan(1 / x)."""
    a = abs_(x)
    is_steep = a >= 1.0
    r = where(is_steep, 1.0 / a, a)
    t = r * r
    rest = r * (t * _polynomial(t, _ATAN_SINGLE[1:]))
    high, low = _HALF_PI_SINGLE
    result = where(is_steep, (high - r) - (rest - low), r + rest)
    return where(a < _TINY_SINGLE, x, _with_sign_of(result, x))  # subnormal numbers as they are


# As bits: 2^-60, and infinity.
_BITS_OF_SMALL, _INFINITY = 67 << 23, 255 << 23


def single_angle(y: Text, x: Text) -> Text:
    """Write atan2(y, x) of float32, by the smaller over the larger magnitude.

    Where both are small, both are 2^88 times as large, subnormal numbers by their bits. Where the
    angle may be subnormal, a quotient 2^124 times as large is rounded to its bits.
    """
    bits_y, bits_x = bits_of(y).op("and", _MAGNITUDE), bits_of(x).op("and", _MAGNITUDE)
    is_steep, is_behind = (bits_y >= bits_x) & (bits_y > 0), bits_of(x) < 0
    low, high = bits_y.op("minimum", bits_x), bits_y.op("maximum", bits_x)
    less, more = floats(low), floats(high)
    is_small = high < _BITS_OF_SMALL
    less_up, more_up = [
        where(bits < _SUBNORMAL, _convert(bits, dtypes.float32) * 2.0**-61, size * 2.0**88)
        for bits, size in ((low, less), (high, more))
    ]
    is_far = (less_up < more * 2.0**24) & ~is_small
    numerator = where(is_small | is_far, less_up, less)
    ratio = numerator / where(is_small, more_up, where(is_far, more * 2.0**-36, more))
    # 0 / 0 is 0 here, and inf / inf is 1; a quotient of several users is a kernel of its own
    ratio = where(high == 0, ratio.like(0.0), where(low == _INFINITY, ratio.like(1.0), ratio))
    units = (ratio * 2.0**25).op("minimum", 2.0**24).op("round_nearest_even")
    tiny = floats(_convert(units, np.dtype(np.int32)))
    tiny = where(ratio < 0.25, tiny, ratio * 2.0**-124)
    ratio = where(is_far, ratio.like(0.0), where(is_steep.op("xor", is_behind), -ratio, ratio))
    t = ratio * ratio
    rest = ratio * (t * _polynomial(t, _ATAN_SINGLE[1:]))
    start, start_rest = [
        where(is_steep, x.like(part), where(is_behind, x.like(2 * part), 0.0))
        for part in _HALF_PI_SINGLE
    ]
    result = (start + ratio) + (rest + start_rest)
    result = where(is_far & ~is_steep & ~is_behind, tiny, result)
    result = where(high > _INFINITY, x + y, result)
    return _with_sign_of(result, y)


def _arcsine_parts(a: Text) -> tuple[Text, Text]:
    """Write where a > 9/16, and asin(a) or, there, asin(sqrt((1 - a) / 2)) = acos(a) / 2 < 1/2."""
    is_far = a > 0.5625
    t = where(is_far, (1.0 - a) * 0.5, a * a)
    r = where(is_far, t.op("sqrt"), a)
    return is_far, r + r * (t * _polynomial(t, _ASIN_SINGLE[1:]))


def single_arcsine(x: Text) -> Text:
    """Write asin(x) of float32."""
    a = abs_(x)
    is_far, part = _arcsine_parts(a)
    high, low = _HALF_PI_SINGLE
    result = where(is_far, (high - (part + part)) + low, part)
    return where(a < _TINY_SINGLE, x, _with_sign_of(result, x))


def single_arccosine(x: Text) -> Text:
    """Write acos(x) of float32."""
    is_far, part = _arcsine_parts(abs_(x))
    is_below = bits_of(x) < 0
    high, low = _HALF_PI_SINGLE
    near = (high - _with_sign_of(part, x)) + low
    far = part + part
    return where(is_far, where(is_below, (2 * high - far) + 2 * low, far), near)


# What float64 leaves of pi.
_PI_REST = 1.2246467991473532e-16
_HUGE = 2.0**1000


def wide_angle(y: Text, x: Text) -> Text:
    """Write atan2(y, x) of float64: above 1/2, where less - more is exact, beside the diagonal."""
    less, more = abs_(y), abs_(x)
    is_steep = less > more
    less, more = less.op("minimum", more), less.op("maximum", more)
    scale = where(more > _HUGE, more.like(0.25), 1.0)
    low, high = less * scale, more * scale
    are_infinite = less == np.inf
    is_far = (low > high * 0.5) | are_infinite
    ratio = where(is_far, low - high, low) / where(is_far, low + high, high)
    ratio = where(more == 0.0, more, where(are_infinite, more.like(0.0), ratio))
    t = ratio * ratio
    result = ratio + ratio * (t * _polynomial(t, _ATAN_WIDE[1:]))
    result = where(is_far, np.pi / 4 + (result + _PI_REST / 4), result)
    result = where(is_steep, np.pi / 2 - (result - _PI_REST / 2), result)
    result = where(bits_of(x) < 0, np.pi - (result - _PI_REST), result)
    return where(bits_of(y) < 0, -result, result)


def wide_arctangent(x: Text) -> Text:
    """Write atan(x) of float64."""
    return _like_tiny(x, wide_angle(x, x.like(1.0)))


def wide_arcsine(x: Text) -> Text:
    """Write asin(x) of float64, the angle of (sqrt(1 - x^2), x)."""
    return _like_tiny(x, wide_angle(x, _cofunction(x)))


def wide_arccosine(x: Text) -> Text:
    """Write acos(x) of float64, the angle of (x, sqrt(1 - x^2))."""
    return wide_angle(_cofunction(x), x)


def _cofunction(x: Text) -> Text:
    """Write sqrt(1 - x^2), near 1 by factors, of which one is exact."""
    factored = (1.0 - x) * (1.0 + x)
    return where(abs_(x) < 0.5, 1.0 - x * x, factored).op("sqrt")


def abs_(x: Text) -> Text:
    """Write |x|."""
    return x.op("abs")


# ------------------------------------------------------------------------------------ cube roots

_CBRT_BIAS = 715094163  # a third of the bits of 1.0, for the upper 32 bits of float64


_CBRT_BIAS_SINGLE = 709958130  # the same of float32


def single_cube_root(x: Text) -> Text:
    """Write the cube root of float32: a third of the exponent, then Halley's correction twice."""
    bits, a = bits_of(x).op("and", _MAGNITUDE), abs_(x)
    is_subnormal = bits < _SUBNORMAL  # counts units of 2^-149
    is_huge, is_tiny = a > 2.0**99, a < 2.0**-99  # their sums overflow, their differences vanish
    powers = [where(is_huge, a.like(high), where(is_tiny, a.like(low), 1.0))
              for high, low in ((2.0**-75, 2.0**75), (2.0**25, 2.0**-25))]  # fmt: skip
    scaled = where(is_subnormal, _convert(bits + bits, dtypes.float32), a * powers[0])
    y = floats(bits_of(scaled) / 3 + _CBRT_BIAS_SINGLE)
    for _ in range(2):
        cube = y * y * y
        y = y - y * ((cube - scaled) / (cube + cube + scaled))
    y = y * where(is_subnormal, y.like(2.0**-50), powers[1])
    y = where((bits == 0).op("or", _not_finite(a)), a, y)
    return _with_sign_of(y, x)


def _cube_root(x: Text) -> Text:
    """Write the cube root: a third of the exponent, then y (y^3 + 2 a) / (2 y^3 + a) twice."""
    a = abs_(x)
    upper = _convert(bits_of(a).op("shift_right_logical", 32), np.dtype(np.int32))
    guess = upper / 3 + _CBRT_BIAS
    y = floats(_convert(guess, np.dtype(np.int64)).op("shift_left", 32))
    for _ in range(2):
        cube = y * y * y
        y = y * (cube + a + a) * (1.0 / (cube + cube + a))
    y = where((a == 0.0).op("or", _not_finite(a)), a, y)
    return where(bits_of(x) < 0, -y, y)


_LEAST_NORMAL = 1 << 52  # as bits; subnormal numbers count units of 2^-1074


def wide_cube_root(x: Text) -> Text:
    """Write the cube root of float64, by one step of Newton's more; subnormal numbers by bits."""
    bits = bits_of(x).op("and", (1 << 63) - 1)
    is_subnormal, a = bits < _LEAST_NORMAL, floats(bits)
    # y^4 must neither overflow nor vanish
    is_huge, is_tiny = a > 2.0**600, a < 2.0**-600
    powers = [where(is_huge, a.like(high), where(is_tiny, a.like(low), 1.0))
              for high, low in ((2.0**-600, 2.0**600), (2.0**200, 2.0**-200))]  # fmt: skip
    scaled = where(is_subnormal, _convert(bits, dtypes.float64), a * powers[0])
    y = _cube_root(scaled)
    y = y + (scaled / (y * y) - y) * (1 / 3)
    y = y * where(is_subnormal, y.like(2.0**-358), powers[1])
    y = where((bits == 0).op("or", _not_finite(a)), a, y)
    return where(bits_of(x) < 0, -y, y)


# ------------------------------------------------------------------------------------ logarithms

_LOG_2 = (0.6931471803691238, 1.9082149292705877e-10)  # the first has 33 bits


def _mantissa(x: Text) -> tuple[Text, Text]:
    """Write m between sqrt(1/2) and sqrt(2) and k with x = 2^k m, of positive numbers."""
    bits, integer = bits_of(x), np.dtype(np.int32)
    is_tiny = bits < _LEAST_NORMAL
    bits = bits_of(where(is_tiny, _convert(bits, dtypes.float64), x))
    exponent = _convert(bits.op("shift_right_logical", 52), integer) - 1023
    m = floats(bits.op("and", _LEAST_NORMAL - 1).op("or", 1023 << 52))
    is_high = m > 2**0.5
    k = _convert(exponent + _convert(is_high, integer), dtypes.float64)
    return where(is_high, m * 0.5, m), k + where(is_tiny, k.like(-1074.0), 0.0)


def _log_terms(f: Text) -> tuple[Text, Text]:
    """Write h = f^2 / 2 and r with log(1 + f) = f - (h - r)."""
    s = f * (1.0 / (f + 2.0))  # a quotient of several users is a kernel of its own
    t = s * s
    half = f * f * 0.5
    return half, s * (half + t * _polynomial(t, _LOG_WIDE))


def _is_zero(x: Text) -> Text:
    # a comparison of the bits with zero is made one of the number, which takes 1e-310 for zero
    bits = bits_of(x).op("and", (1 << 63) - 1)
    is_one = floats(bits.op("or", 1023 << 52)).compare("EQ", 1.0)
    return (bits < _LEAST_NORMAL) & is_one


def _at_ends(x: Text, result: Text) -> Text:
    """Write the logarithm of zeros, infinities and NaN, and of negative numbers NaN."""
    bits = bits_of(x)
    result = where(x < np.inf, result, x)
    result = where(_is_zero(x), x.like(-np.inf), result)
    is_below_zero = bits > -(1 << 63)
    return where(bits < 0, where(is_below_zero, x.like(np.nan), -np.inf), result)


def wide_logarithm(x: Text) -> Text:
    """Write log(x) = k log 2 + log(1 + f) of float64."""
    m, k = _mantissa(x)
    f = m - 1.0
    half, rest = _log_terms(f)
    return _at_ends(x, k * _LOG_2[0] - ((half - (rest + k * _LOG_2[1])) - f))


def wide_binary_logarithm(x: Text) -> Text:
    """Write log2(x) = k + log(1 + f) / log 2 of float64, the logarithm in two parts."""
    m, k = _mantissa(x)
    f = m - 1.0
    half, rest = _log_terms(f)
    high = _upper(f - half)
    low = ((f - high) - half) + rest
    upper = high * _LOG2_E[0]
    lower = (low + high) * _LOG2_E[1] + low * _LOG2_E[0]
    total = k + upper
    return _at_ends(x, (lower + ((k - total) + upper)) + total)


def wide_logarithm_plus_one(x: Text) -> Text:
    """Write log(1 + x) of float64."""
    return where(abs_(x) < _TINY * _TINY, x, _logarithm_of_sum(x, x.like(0.0)))


def _logarithm_of_sum(x: Text, rest: Text) -> Text:
    """Write log(1 + x + rest) by the sum of two and what that drops, but log(1 + f) near zero."""
    total = 1.0 + x
    m, k = _mantissa(total)
    is_near = k == 0.0
    dropped = where(k > 0.0, 1.0 - (total - x), x - (total - 1.0))
    dropped = (where(is_near, x.like(0.0), dropped) + rest) / total
    f = where(is_near, x, m - 1.0)
    half, terms = _log_terms(f)
    return _at_ends(total, k * _LOG_2[0] - ((half - (terms + (k * _LOG_2[1] + dropped))) - f))


def single_logarithm_plus_one(x: Text) -> Text:
    """Write log(1 + x) of float32."""
    result = _logarithm_of_single_sum(x, x.like(0.0))
    result = where(x < np.inf, where(x == -1.0, x.like(-np.inf), result), x)
    result = where(x < -1.0, x.like(np.nan), result)
    return where(abs_(x) < _TINY_SINGLE * _TINY_SINGLE, x, result)


_SQUARE_ROOT_OF_HALF = 0x3F3504F3  # as bits


def _logarithm_of_single_sum(x: Text, rest: Text) -> Text:
    """Write log(1 + x + rest) = k log 2 + log(1 + f) of float32, finite and above -1.

    With c = 2^-k, f is the sum of c x and c - 1, of which the first is exact, and the second as
    exact as counts.
    """
    exponent = (bits_of(1.0 + x) - _SQUARE_ROOT_OF_HALF).op("shift_right_arithmetic", 23)
    k = _convert(exponent, dtypes.float32)
    # four times c, which may be less than the least normal number
    scale = floats((129 - exponent).op("shift_left", 23))
    f = (x * 0.25) * scale + (scale * 0.25 - 1.0)
    s = f * (1.0 / (f + 2.0))
    t, half = s * s, f * f * 0.5
    terms = s * (half + t * _polynomial(t, _LOG_SINGLE))
    less = terms + (k * _LOG_2_SINGLE[1] + (rest * 0.25) * scale)  # log(1 + r) of such a rest is r
    return k * _LOG_2_SINGLE[0] - ((half - less) - f)


def _not_finite(a: Text) -> Text:
    return ~(a < np.inf)


# -------------------------------------------------------------------------- hyperbolic functions


def _hyperbolic(x: Text) -> tuple[Text, Text, Text, Text]:
    """Write sinh(r) and cosh(r) - 1 with x = n log 2 + r, and 2^(n - 2) and 2^(-n - 2)."""
    n = (x * (1 / np.log(2))).op("round_nearest_even")
    exact = x - n * _LOG_2[0]
    r = exact - n * _LOG_2[1]
    sine, cosine = _exponential_parts(r, (exact - r) - n * _LOG_2[1])
    n = n.op("minimum", 1025.0)
    return sine, cosine, _power_of_two(n - 2.0), _power_of_two(-2.0 - n.op("minimum", 1000.0))


def _exponential_parts(r: Text, rest: Text) -> tuple[Text, Text]:
    """Write sinh(r + rest) and cosh(r + rest) - 1 for |r| <= log(2) / 2 and a rest below an ulp."""
    t = r * r
    return (r + (r * (t * _polynomial(t, _SINH_WIDE)) + rest),
            t * 0.5 + (t * t * _polynomial(t, _COSH_WIDE) + r * rest))  # fmt: skip


def wide_hyperbolic_sine(x: Text) -> Text:
    """Write sinh(x) of float64 by the theorem of addition."""
    a = abs_(x)
    sine, cosine, up, down = _hyperbolic(a)
    less = up - down
    result = (sine * (up + down) + (cosine * less + less)) * 2.0
    result = where(a < 710.5, result, a * np.inf)
    return _like_tiny(x, where(bits_of(x) < 0, -result, result))


def wide_hyperbolic_cosine(x: Text) -> Text:
    """Write cosh(x) of float64 by the theorem of addition."""
    a = abs_(x)
    sine, cosine, up, down = _hyperbolic(a)
    more = up + down
    result = (more + (cosine * more + sine * (up - down))) * 2.0
    return where(a < 710.5, result, a.op("maximum", 1.0) * np.inf)


def wide_hyperbolic_tangent(x: Text) -> Text:
    """Write tanh(x) of float64, as y / (y + 2) of y = exp(2 |x|) - 1."""
    a = abs_(x).op("minimum", 22.0)
    sine, cosine, up, _ = _hyperbolic(a + a)
    quarter = (sine + cosine) * up + (up - 0.25)
    result = quarter / (quarter + 0.5)
    return _like_tiny(x, where(bits_of(x) < 0, -result, result))


# log 2 as the sum of a number of 15 bits, whose products with exponents are exact, and a rest.
_LOG_2_SINGLE = (0.693145751953125, 1.4286068203094172e-06)


def single_exponential_less_one(x: Text) -> Text:
    """Write exp(x) - 1 of float32 as 2^n (r + c) + (2^n - 1), with x = n log 2 + r + rest."""
    n, r, rest, odd, even = _single_parts(x.op("minimum", 89.0).op("maximum", -18.0))
    power = _power_of_two(n - 1.0)  # half of it: 2^128 is none of float32
    half = (power * r + (power - 0.5)) + power * ((odd + rest) + even)
    return where(abs_(x) < _TINY_SINGLE * _TINY_SINGLE, x, half + half)


def _single_parts(x: Text) -> tuple[Text, Text, Text, Text, Text]:
    """Write n, r, rest, sinh(r) - r and cosh(r) - 1 with x = n log 2 + r + rest, of float32."""
    n = (x * float(1 / np.log(2))).op("round_nearest_even")
    exact = x - n * _LOG_2_SINGLE[0]
    r = exact - n * _LOG_2_SINGLE[1]
    rest = (exact - r) - n * _LOG_2_SINGLE[1]
    t = r * r
    odd = r * (t * _polynomial(t, _SINH_WIDE[:3]))
    even = t * 0.5 + t * t * _polynomial(t, _COSH_WIDE[:3])
    return n, r, rest, odd, even


def single_hyperbolic_sine(x: Text) -> Text:
    """Write sinh(x) of float32 by the theorem of addition."""
    a = abs_(x)
    n, r, rest, odd, even = _single_parts(a.op("minimum", 90.0))
    up, down = _power_of_two(n - 2.0), _power_of_two(-2.0 - n.op("minimum", 100.0))
    more, less = up + down, up - down
    half = (less + r * more) + (even * less + (odd + rest) * more)
    result = where(a < 89.5, half + half, a * np.inf)
    return where(a < _TINY_SINGLE, x, _with_sign_of(result, x))


# exp(x^2) erfc(x) (x + k) in t = (x - k) / (x + k) for 0 <= x <= 10.1 and k = 1, and for float64
# for 0 <= x <= 27.3 and k = 2; beyond, erfc is 0.
_ERFC_SINGLE = (
    0.8551671535806359, -0.23768089689170938, -0.09555658212207273, 0.01390828958967602,
    0.025398372474664907, 0.0095538638070201, -0.0012396138032098195, -0.0037120744901420117,
    -0.002307503066784434, -0.000421923380507742, 0.00052124323536464, 0.000455896857792008,
    0.0001200861383530843,
)  # fmt: skip
_ERFC_WIDE = (
    1.021582705242023, -0.6871606844138107, 0.2794720925560551, -0.03644223150686653,
    -0.021510661889505175, 0.006479185067224512, 0.003090612059619391, -0.0008372960525566662,
    -0.0006630735099608614, 3.437132827841658e-05, 0.00014447077014474884, 3.414961962082508e-05,
    -2.1696188180113063e-05, -1.612404176535002e-05, -1.1264619816394563e-06, 3.652653951273225e-06,
    2.006658729733532e-06, -1.4396370397472251e-08, -5.841353342745599e-07, -3.051009797000878e-07,
    1.7320311003509213e-08, 9.74199235772727e-08, 3.8310731008226267e-08, -6.8959257349905155e-09,
    -8.961272592219717e-09, -1.9093442555635606e-09,
)  # fmt: skip


def complementary_error(x: Text) -> Text:
    """Write erfc(x) of float32 or float64, exp(-a^2) f(t) / (a + k) of a = |x|, and 2 less that.

    The exponential takes a^2 rounded to s, and what is lost of a^2, 50 ulp of float32 at 9, is a
    factor 1 - (a^2 - s), as is what is lost of a + k and of its inverse. The upper half of `a` has
    an exact square. One formula for all x, as M. Shepherd and J. Laframboise, Chebyshev
    Approximation of (1 + 2x) exp(x^2) erfc(x) in 0 <= x < infinity, 1981, have it.
    """
    is_single = x.aval.dtype == dtypes.float32
    k, coefficients = (1.0, _ERFC_SINGLE) if is_single else (2.0, _ERFC_WIDE)
    a = abs_(x).op("minimum", 10.1 if is_single else 27.3)
    upper = floats(bits_of(a).op("and", -(1 << 12))) if is_single else _upper(a)
    square, total = a * a, a + k
    lost = (upper * upper - square) + (a - upper) * (a + upper)
    inverse = 1.0 / total
    less = (1.0 - inverse * total) - ((a - (total - k)) * inverse + lost)
    t, (first, *others) = (a - k) * inverse, coefficients
    terms = t * _polynomial(t, others) + first  # so that the first one is rounded once
    result = (inverse * (-square).op("exponential")) * (terms + terms * less)
    return where(x < 0.0, 2.0 - result, result)


_LARGE_SINGLE = 2.0**28  # above it x^2 + 1 is x^2, and x + 1 is x


def single_inverse_hyperbolic_sine(x: Text) -> Text:
    """Write asinh(x) of float32, log(1 + a + a^2 / (1 + sqrt(1 + a^2))) of a = |x|."""
    a = abs_(x)
    near = where(a > _LARGE_SINGLE, a.like(0.0), a)
    square = near * near
    result = _log_of_single_terms(a, near, square * (1.0 / (1.0 + (1.0 + square).op("sqrt"))))
    return where(a < _TINY_SINGLE, x, _with_sign_of(result, x))


def single_inverse_hyperbolic_cosine(x: Text) -> Text:
    """Write acosh(x) of float32, log(1 + t + sqrt(2 t + t^2)) of t = x - 1."""
    t = where(x > _LARGE_SINGLE, x.like(1.0), x) - 1.0
    result = _log_of_single_terms(x, (t + t + t * t).op("sqrt"), t)
    return where(x < 1.0, x.like(np.nan), result)


def _log_of_single_terms(a: Text, more: Text, less: Text) -> Text:
    """Write log(1 + more + less), or log(2 a) where `a` is large."""
    is_large = a > _LARGE_SINGLE
    total = where(is_large, a, more + less)
    result = _logarithm_of_single_sum(total, where(is_large, a.like(0.0), (more - total) + less))
    result = where(is_large, result + float(np.log(2)), result)
    return where(a < np.inf, result, a)


_LARGE = 2.0**54  # above it x^2 + 1 is x^2


def wide_inverse_hyperbolic_sine(x: Text) -> Text:
    """Write asinh(x) of float64, log(1 + a + a^2 / (1 + sqrt(1 + a^2))) of a = |x|."""
    a = abs_(x)
    near = where(a > _LARGE, a.like(0.0), a)
    square = near * near
    result = _log_of_terms(a, near, square / (1.0 + (1.0 + square).op("sqrt")))
    return _like_tiny(x, where(bits_of(x) < 0, -result, result))


def wide_inverse_hyperbolic_cosine(x: Text) -> Text:
    """Write acosh(x) of float64, log(1 + t + sqrt(2 t + t^2)) of t = x - 1."""
    t = where(x > _LARGE, x.like(1.0), x) - 1.0
    return where(x < 1.0, x.like(np.nan), _log_of_terms(x, (t + t + t * t).op("sqrt"), t))


def _log_of_terms(a: Text, more: Text, less: Text) -> Text:
    """Write log(1 + more + less), or log(2 a) where `a` is large."""
    is_large = a > _LARGE
    total = where(is_large, a, more + less)
    result = _logarithm_of_sum(total, where(is_large, a.like(0.0), (more - total) + less))
    return where(is_large, result + float(np.log(2)), result)


def wide_inverse_hyperbolic_tangent(x: Text) -> Text:
    """Write atanh(x) of float64, k log(2) / 2 + atanh(s) with (1 + s) / (1 - s) below sqrt(2).

    The quotient is c (1 + a) / (1 - a) of a = |x| and c = 2^-k.
    """
    a = abs_(x)
    _, k = _mantissa((1.0 + a) / (1.0 - a))
    c = _power_of_two(-k)
    less = 1.0 - c  # exact but for the least c
    s = ((a - less) + (a * c + (c - (1.0 - less)))) * (1.0 / ((1.0 - a) + c * (1.0 + a)))
    half, t = k * 0.5, s * s
    result = half * _LOG_2[0] + (s + (s * (t * _polynomial(t, _LOG_WIDE)) * 0.5 + half * _LOG_2[1]))
    result = where(a < 1.0, result, where(a == 1.0, x.like(np.inf), np.nan))
    return _like_tiny(x, where(bits_of(x) < 0, -result, result))


# ----------------------------------------------------------------------------------------- powers


def single_power(x: Text, y: Text) -> Text:
    """Write x^y = 2^(y log2 |x|) of float32, with the logarithm and 2^r in float64.

    What is scaled, chosen and signed is float32, half as many registers as float64.
    """
    a, wide = abs_(x), dtypes.float64
    size, exponent = bits_of(a), bits_of(y)
    is_subnormal = size < _SUBNORMAL
    bits = bits_of(where(is_subnormal, _convert(size, dtypes.float32), a))
    k = (bits - _SQUARE_ROOT_OF_HALF).op("shift_right_arithmetic", 23)
    m = _convert(floats(bits - k.op("shift_left", 23)), wide)
    k = _convert(where(is_subnormal, k - 149, k), dtypes.float32)
    k = where(size < _INFINITY, where(size == 0, a.like(-np.inf), k), a)  # log2 of 0, inf and NaN
    s = (m - 1.0) * (1.0 / (m + 1.0))
    logarithm = _convert(k, wide) + s * _polynomial(s * s, _BINARY_LOG)
    # so little is added that it counts where y is zero or subnormal alone: 0^0 is chosen below
    least = floats(exponent.op("and", _SIGN).op("or", _BITS_OF_LEAST))
    z = _convert(y + least, wide) * logarithm
    z = where(z > _MOST_OF_SINGLE, z.like(_MOST_OF_SINGLE), z)  # NaN stays
    z = where(z < -_MOST_OF_SINGLE, z.like(-_MOST_OF_SINGLE), z)
    n = z.op("round_nearest_even")
    value = _convert(_polynomial(z - n, _EXP_2), dtypes.float32)
    result = _times_single_power(value, _convert(n, dtypes.float32))

    is_even, is_whole = ((v.op("floor") == v) for v in (y * 0.5, y))
    at_ends = (size == 0) | (size == _INFINITY)
    signed = where(is_whole, -result, where(at_ends, result, np.nan))
    result = where((bits_of(x) < 0) & ~is_even, signed, result)
    y_size = exponent.op("and", _MAGNITUDE)
    # of -1, too, where the product of 0 and inf is NaN
    is_one = (x == 1.0) | (y_size == 0) | ((a == 1.0) & (y_size == _INFINITY))
    return where(is_one, x.like(1.0), result)


_INFINITY = 255 << 23  # the bits of it
_MOST_OF_SINGLE = 252.0  # halves of such exponents are those of normal numbers
_NEAR = 2.0**-100
_BITS_OF_LEAST = (127 - 100) << 23  # those of 2^-100


def _times_single_power(x: Text, n: Text) -> Text:
    """Write 2^n x of float32 for 1/2 < x < 2, subnormal numbers by their bits."""
    half = (n * 0.5).op("floor")
    part, rest = x * _power_of_two(half), n - half
    usual = part * _power_of_two(rest)
    units = part * _power_of_two(rest + 149.0)
    tiny = floats(bits_of(units + 2.0**23) - (127 + 23 << 23))
    return where(usual < 2.0**-126, tiny, usual)


_MOST_POWER = {dtypes.float32: 152.0, dtypes.float64: 1080.0}  # beyond, powers of 2 are inf or 0


def exponential_of_two(x: Text) -> Text:
    """Write 2^x of float32 or float64 as 2^n exp(r log 2), with x = n + r and |r| <= 1/2."""
    n = _clamp(x.op("round_nearest_even"), _MOST_POWER[x.aval.dtype])
    r = _clamp(x - n, 1.0)
    value = (r * float(np.log(2))).op("exponential")
    return _times_normal_power(value, n)


# So great an exponent overflows each power but that of 1, and one of `_NEAR`, which stands for
# subnormal numbers, makes 1 of each.
_FAR = 2.0**70


def wide_power(x: Text, y: Text) -> Text:
    """Write x^y of float64: the logarithm and its product in two parts."""
    least = abs_(y).op("maximum", _NEAR)
    y = where(_is_zero(y), y, where(bits_of(y) < 0, -least, least))
    high, low = _binary_logarithm_in_two(abs_(x))
    y_clamped = _clamp(y, _FAR)
    y_high = _upper(y_clamped)
    rest = (y_clamped - y_high) * high + y_clamped * low
    product = y_high * high  # exact
    z = product + rest
    n = _clamp(z.op("round_nearest_even"), 1080.0)
    return _sign_power(x, y, _exponential_of_sum(n, product - n, rest, z))


def single_exponential_of_two(x: Text) -> Text:
    """Write 2^x of float32 as 2^n 2^r with x = n + r and |r| <= 1/2."""
    most = _MOST_POWER[dtypes.float32]
    x = where(x > most, x.like(most), x)  # NaN stays
    x = where(x < -most, x.like(-most), x)
    n = x.op("round_nearest_even")
    r, (first, *others) = x - n, _EXP_2_SINGLE
    return _times_normal_power(r * _polynomial(r, others) + first, n)


def wide_exponential_of_two(x: Text) -> Text:
    """Write 2^x of float64 as 2^n exp(r log 2) with x = n + r and |r| <= 1/2."""
    n = _clamp(x.op("round_nearest_even"), 1080.0)
    return _exponential_of_sum(n, x - n, x.like(0.0), x)


def _exponential_of_sum(n: Text, r: Text, rest: Text, x: Text) -> Text:
    """Write 2^(n + r + rest) for a whole n; where the sum x is out of range, its limit."""
    upper = _upper(r + rest)
    rest = (rest - (upper - r)) * float(np.log(2)) + upper * _LOG_2_HALVES[1]
    upper = upper * _LOG_2_HALVES[0]
    total = upper + rest
    sine, cosine = _exponential_parts(total, rest - (total - upper))
    value = _times_power_of_two(1.0 + (sine + cosine), n)
    return where(x > 1024.5, x.like(np.inf), where(x < -1076.0, x.like(0.0), value))


def _clamp(x: Text, limit: float) -> Text:
    return x.op("minimum", limit).op("maximum", -limit)


def _binary_logarithm_in_two(x: Text) -> tuple[Text, Text]:
    """Write log2(x) of positive float64 as a number of 26 bits and a rest, to 65 bits.

    It is k + (2 / (3 log 2)) s (3 + s^2 + s^4 f(s^2)) with s = (m - 1) / (m + 1); numbers with an
    upper part have 26 bits, so that products of these are exact.
    """
    m, k = _mantissa(x)
    total = m + 1.0
    high = _upper(total)
    inverse = 1.0 / total
    s = (m - 1.0) * inverse
    s_high = _upper(s)
    s_low = (((m - 1.0) - s_high * high) - s_high * (m - (high - 1.0))) * inverse
    t, square = s * s, s_high * s_high
    rest = t * t * _polynomial(t, _LOG_REST) + s_low * (s_high + s)
    sum_high = _upper((square + 3.0) + rest)
    sum_low = rest - ((sum_high - 3.0) - square)
    product = s_high * sum_high
    rest = s_low * sum_high + sum_low * s
    upper = _upper(product + rest)
    rest = _TWO_THIRDS[1] * upper + (rest - (upper - product)) * _TWO_THIRDS[2]
    upper = upper * _TWO_THIRDS[0]
    high = _upper((upper + rest) + k)
    return high, rest - ((high - k) - upper)


def _times_normal_power(x: Text, n: Text) -> Text:
    """Write 2^n x for an integer n, whose halves are exponents of normal numbers."""
    half = (n * 0.5).op("floor")
    return (x * _power_of_two(half)) * _power_of_two(n - half)


def _times_power_of_two(x: Text, n: Text) -> Text:
    """Write 2^n x for 1/2 < x < 2 and -1080 <= n <= 1080, subnormal numbers by their bits."""
    usual = _times_normal_power(x, n)
    units = x * _power_of_two((n + 1074.0).op("minimum", 60.0))
    tiny = floats(bits_of(units + 2.0**52) - bits_of(x.like(2.0**52)))
    return where((n <= -1022.0) & (units < 2.0**52), tiny, usual)


def _sign_power(x: Text, y: Text, result: Text) -> Text:
    """Write x^y from |x|^y of finite x that is not 0, as C99 has its special values."""
    a, bits = abs_(x), bits_of(x)
    is_zero = _is_zero(x)
    is_edge = is_zero | (a == np.inf)
    grows = (y > 0.0).op("xor", is_zero)
    result = where(is_edge, where(grows, x.like(np.inf), 0.0), result)
    is_even = (y * 0.5).op("floor") * 2.0 == y
    is_whole = y.op("floor") == y
    signed = where(is_even, result, where(is_whole | is_edge, -result, np.nan))
    signed = where(is_edge & ~is_whole, result, signed)
    result = where(bits < 0, signed, result)
    result = where((a == a) & (y == y), result, x + y)
    # of -1, too, as no product with 0 is inf
    is_one = (x == 1.0) | ((a == 1.0) & (abs_(y) == np.inf)) | (y == 0.0)
    return where(is_one, x.like(1.0), result)
