"""Formulas written once, evaluated by NumPy on the host and written as StableHLO in programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp.primitives.lowering_text import Text, any_element, known_scalar, where
from xprim import ShapedArray, dtypes, shaped_array
from xprim.contracts import Builder, outline

__all__ = ()


# ------------------------------------------------------------------------------------- chebyshev
# Coefficients of Chebyshev series of special functions, and their summation.
#
# f(t) = sum_k c_k T_k(t) for -1 <= t <= 1. The coefficients were computed with mpmath in 50
# digits from the values at the Chebyshev points of a higher degree, and cut where they fall below
# 1e-17 of the largest, or at the digits that a series says.


def chebyshev(t: Any, coefficients: Sequence[float]) -> Any:
    """Return sum_k c_k T_k(t) by Clenshaw's recurrence."""
    after = 0.0
    result = coefficients[-1] + 0.0 * t
    twice = 2.0 * t
    for c in coefficients[-2:0:-1]:
        result, after = c + twice * result - after, result
    return coefficients[0] + t * result - after


# The positive zero of digamma, as the sum of three floats, the first of which is a float32.
DIGAMMA_ROOT = (1.4616321325302124, 1.2438149938918909e-08, 4.341643069426251e-25)

# erf(x) / x for 0 <= x <= 1, in t = 2 x^2 - 1
ERF_SMALL = (
    0.9754769393826541, -0.14226120510371365, 0.010035582187599796,
    -0.0005768764699767485, 2.741993125219606e-05, -1.1043175507344507e-06,
    3.8488755420345036e-08, -1.1808582533875466e-09, 3.2334215826050907e-11,
    -7.991015947004549e-13, 1.7990725113961456e-14, -3.718635487818693e-16,
)  # fmt: skip

# x exp(x^2) erfc(x) for x >= 1, in t with (t + 1) / 2 = ((x - 3) / (x + 3) + 1/2) / (3/2)
ERFC_LARGE = (
    0.5270327699645345, 0.058438373634075017, -0.028760006767845146,
    0.00942338429719674, -0.0023281563723139085, 0.00043730093384926333,
    -5.8303544643230866e-05, 4.043114560930834e-06, 2.708980727716429e-07,
    -9.965420547129152e-08, 5.899419235826729e-09, 1.3859802863799126e-09,
    -2.315633327108165e-10, -1.5604196874820857e-11, 6.283638983835496e-12,
    1.2178727075033521e-13, -1.6752992523503284e-13, 3.1333383410426097e-16,
    4.754422988978545e-15, -2.4580082368610404e-17, -1.4571147674518834e-16,
)  # fmt: skip

# (x + 3) exp(x^2 / 2) ndtr(-x) for x >= 0, in t = (x - 3) / (x + 3)
NORMAL_TAIL = (
    0.8404353962874314, -0.5409240715702923, 0.11017245558058097,
    -0.009934157346829514, -0.0011569946200460548, 0.0003406778683506651,
    2.1199923552120967e-05, -1.1731870545504309e-05, -9.816473283712346e-07,
    4.3772170554232097e-07, 6.923952786021176e-08, -1.4847151143520454e-08,
    -4.840543545392167e-09, 2.2032325616937364e-10, 2.89918829510017e-10,
    2.8735035408937967e-11, -1.2515838476164997e-11, -3.837129636127235e-12,
    9.698397468875745e-14, 2.661874424812623e-13, 4.693637981711292e-14,
    -8.280861963702384e-15, -5.1057332238952654e-15, -5.764466406205153e-16,
    2.3704892654611775e-16, 1.0150651235512869e-16,
)  # fmt: skip

# ndtri(1/2 + z) / z for |z| <= 2/5, in t = z^2 / 0.08 - 1, to 10 digits
NDTRI_CENTRE = (
    2.808303930992849, 0.34073359030995626, 0.04547601513627183,
    0.00759914770624584, 0.0014131804234639737, 0.0002797264040748304,
    5.767675634442744e-05, 1.2239372419747194e-05, 2.6532949133515887e-06,
    5.847340921308528e-07, 1.3055934501992069e-07, 2.9462819420951114e-08,
    6.707617753609062e-09, 1.5384618598464293e-09,
)  # fmt: skip

# -ndtri(q) - r with r = sqrt(-2 log q) from 2.14 to 38.7, in t linear in (r - 4) / (r + 4), to 9
# digits
NDTRI_TAIL = (
    -0.45876240751422104, 0.365374984106465, -0.032556309014637734,
    0.00800933381778824, -0.0007175460316061951, 0.0003037269345382051,
    -4.5904337999296335e-06, 1.7978983585683407e-05, 2.139615017753153e-06,
    1.5794456296980944e-06, 3.9768103853075837e-07, 1.835762790314752e-07,
    6.117884602876164e-08, 2.502579981021622e-08, 9.303776170770087e-09,
    3.7126861535978907e-09, 1.4462056451666296e-09, 5.786019026356395e-10,
)  # fmt: skip

# lgamma(x) / ((x - 1) (x - 2)) for 3/4 <= x <= 9/4, in t = (x - 3/2) / (3/4)
LGAMMA = (
    0.5031836568008651, -0.12106206737250128, 0.02091042535855246,
    -0.00417799298931635, 0.0009002630239208576, -0.00020287927285893477,
    4.707206618277412e-05, -1.1145551722345647e-05, 2.6786471398085193e-06,
    -6.511750867977598e-07, 1.597447652327773e-07, -3.948017821331452e-08,
    9.81802693196162e-09, -2.4544790124852744e-09, 6.164112849015011e-10,
    -1.5542026666279419e-10, 3.932483431425504e-11, -9.981136019707806e-12,
    2.540421235872442e-12, -6.482230781256436e-13, 1.6578060134627766e-13,
    -4.248589986683655e-14, 1.0908893848029689e-14, -2.805910611186575e-15,
    7.228773472698542e-16, -1.8650921549196397e-16, 4.818744278140676e-17,
    -1.2465891424215387e-17,
)  # fmt: skip

# digamma(x) / (x - DIGAMMA_ROOT) for 1 <= x <= 2, in t = 2 x - 3
DIGAMMA = (
    0.983570260441567, -0.2270640863346444, 0.03336889902393011,
    -0.005320077271596548, 0.0008788656937820505, -0.00014773492650606044,
    2.5060543468359146e-05, -4.2721034029993324e-06, 7.302769272465923e-07,
    -1.2502886813559594e-07, 2.1425009322359472e-08, -3.673295918565179e-09,
    6.299717236108931e-10, -1.080593028883266e-10, 1.853735192053638e-11,
    -3.18023536582553e-12, 5.456147570322795e-13, -9.360993131036438e-14,
    1.606064636295075e-14, -2.7555431377438815e-15, 4.727736178601912e-16,
    -8.11148420346509e-17, 1.391707769474154e-17,
)  # fmt: skip

# exp(-x) I0(x) for 0 <= x <= 8, in t = x / 4 - 1
I0E_SMALL = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877,
    -0.09490109704804764, 0.04930528423967071, -0.02373741480589947,
    0.010546460394594998, -0.004324309995050576, 0.0016394756169413357,
    -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06,
    -2.670793853940612e-07, 6.046995022541919e-08, -1.300025009986248e-08,
    2.6598237246823866e-09, -5.189795601635263e-10, 9.675809035373237e-11,
    -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13,
    7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15,
    -2.431279846547955e-16, 3.3307945188222384e-17, -4.4153416464793395e-18,
)  # fmt: skip

# sqrt(x) exp(-x) I0(x) for x >= 8, in t = 16 / x - 1
I0E_LARGE = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05,
    2.8913705208347567e-06, 2.0489185894690638e-07, 2.266668990498178e-08,
    3.3962320257083865e-09, 4.94060238822497e-10, 1.1889147107846439e-11,
    -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14,
    -4.150569347287222e-14, -9.554846698828307e-15, 3.8116806693526224e-15,
    1.7725601330565263e-15, -3.425485619677219e-16, -2.8276239805165836e-16,
    3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944182e-18,
    -7.233180487874754e-18,
)  # fmt: skip

# exp(-x) I1(x) / x for 0 <= x <= 8, in t = x / 4 - 1
I1E_SMALL = (
    0.12629359322181682, -0.17641651835783406, 0.1026436586898471,
    -0.05294598120809499, 0.024726449030626516, -0.010564084894626197,
    0.004156422944312888, -0.0015135724506312532, 0.0005122859561685758,
    -0.00016176081582589674, 4.781565107550054e-05, -1.3273163656039436e-05,
    3.4702513081376785e-06, -8.568720264695455e-07, 2.0032947535521353e-07,
    -4.445059128796328e-08, 9.381537386495773e-09, -1.8872497517228294e-09,
    3.625590281552117e-10, -6.663489723502027e-11, 1.1736186298890901e-11,
    -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14,
    7.600684294735408e-15, -1.1055969477353862e-15, 1.5536319577362005e-16,
    -2.111421214358166e-17, 2.7779141127610464e-18,
)  # fmt: skip

# sqrt(x) exp(-x) I1(x) for x >= 8, in t = 16 / x - 1
I1E_LARGE = (
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371,
    -3.882564808877691e-06, -2.512236237870209e-07, -2.6314688468895196e-08,
    -3.835380385964237e-09, -5.589743462196584e-10, -1.8974958123505413e-11,
    3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
    -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14,
    4.272440016711951e-14, 1.0420276984128802e-14, -3.8144030724370075e-15,
    -1.8803547755107825e-15, 3.3082023109209285e-16, 2.96262899764595e-16,
    -3.209525921993424e-17, -4.650305368489358e-17, 4.414348323071708e-18,
    7.517296310842104e-18,
)  # fmt: skip


# ------------------------------------------------------------------------------ formula backends
# Formulas written once for the host and for compiled programs.
#
# A function `formula(m, *values)` uses the operators of its values and the functions of `m`.
# Given `HostMath()` and ndarrays it computes; given a `TextMath(builder, aval)` and `Text` values
# it writes the same formula as StableHLO, loops included. `numpy_rule` and `stablehlo_rule` make
# a primitive's rules of it. Both compute in float64, whatever the operands' dtype, but for the
# loops of compiled programs, which run in float32 where the result is no wider: what a formula
# takes into a loop must be in its range, and what cancels stands outside of loops. So what is
# evaluated and what is compiled agree to a few units in the last place.

Formula = Callable[..., Any]
Condition = Callable[..., Any] | None
Step = Callable[..., tuple[Any, ...]]


class Precision:
    """How far loops go, for results of float64.

    Attributes:
      eps: what relative to a sum is not worth adding; more than the rounding of one operation.
      tiny: stands for a divisor of 0.
      far: the exponent below which e to its power is not worth adding.
      points: how many an integral takes.
      zeta_terms: from which w on the expansion of zeta(s, w) is right.
      stirling_start: from where on Stirling's series is right.
      stirling_terms: of how many terms.
    """

    eps = 1.5 * float(np.finfo(np.float64).eps)
    tiny = 1e-300
    far = -38.0
    points = 28
    zeta_terms = 16
    stirling_start = 8.0
    stirling_terms = 10


class NarrowPrecision(Precision):
    """How far loops go, for results of float32 and narrower."""

    eps = 1.5 * float(np.finfo(np.float32).eps)
    tiny = 1e-30
    far = -19.0
    points = 14
    zeta_terms = 8
    stirling_start = 4.0
    stirling_terms = 5


class HostMath:
    """The functions of formulas on float64 ndarrays."""

    precision = Precision

    where = staticmethod(np.where)
    exp = staticmethod(np.exp)
    expm1 = staticmethod(np.expm1)
    log = staticmethod(np.log)
    log1p = staticmethod(np.log1p)
    sqrt = staticmethod(np.sqrt)
    sin = staticmethod(np.sin)
    cos = staticmethod(np.cos)
    abs = staticmethod(np.abs)
    floor = staticmethod(np.floor)
    pow = staticmethod(np.power)
    minimum = staticmethod(np.minimum)
    maximum = staticmethod(np.maximum)

    def chebyshev(self, t: Any, coefficients: Sequence[float]) -> Any:
        """Return sum_k c_k T_k(t)."""
        return chebyshev(t, coefficients)

    def varies(self, x: Any) -> bool:
        """Return whether a value is differentiated: see `formula_derivatives`."""
        return False

    def matters(self, term: Any, total: Any, eps: float) -> Any:
        """Return where a term is more than `eps` of a total."""
        return np.abs(term) > eps * np.abs(total)

    def narrow(self, formula: Formula, *values: Any) -> Any:
        """Return `formula(m, *values)`, which is precise enough as loops are."""
        return formula(self, *values)

    def if_any(self, mask: Any, formula: Formula, values: Sequence[Any]) -> Any:
        """Return `formula(m, *values)` where a mask holds, 0 elsewhere."""
        result = np.zeros(mask.shape)
        if mask.any():
            result[mask] = formula(self, *[v[mask] for v in values])
        return result

    def loop(
        self,
        unfinished: Condition,
        step: Step,
        values: Sequence[Any],
        limit: int,
        tables: Sequence[Sequence[float]] = (),
        *,
        wide: bool = False,
    ) -> list[Any]:
        """Apply `values = step(n, *values)` for n = 1, 2, ... while any element is unfinished.

        Steps after an element is finished must leave its values as they are, but for rounding.

        Args:
          unfinished: from the functions (`m`) and the values to a mask; None for as many steps as
            the limit says.
          step: from the functions, the number of the step, an entry of each table, and the values
            to new values.
          values: to begin with.
          limit: the greatest number of steps.
          tables: numbers for the steps 1, 2, ..., `limit`.
          wide: whether compiled programs compute the steps in float64 too, for what cancels.
        """
        state = list(values)
        for n in range(1, limit + 1):
            if unfinished is not None and not unfinished(self, *state).any():
                break
            state = list(step(self, float(n), *[t[n - 1] for t in tables], *state))
        return state


class TextMath:
    """The functions of formulas on `Text` values of one float type, in programs of a precision."""

    def __init__(self, builder: Builder, aval: ShapedArray, precision: type[Precision]) -> None:
        self.builder = builder
        self.aval = aval
        self.precision = precision

    def _value(self, x: Any) -> Text:
        if isinstance(x, Text):
            return x
        return Text(self.builder, self.builder.constant(x, self.aval), self.aval)

    def where(self, mask: Text, x: Any, y: Any) -> Text:
        """Return x where the mask holds, else y."""
        return where(mask, self._value(x), y)

    def exp(self, x: Text) -> Text:
        """Return e^x."""
        return x.op("exponential")

    def expm1(self, x: Text) -> Text:
        """Return e^x - 1."""
        return x.op("exponential_minus_one")

    def log(self, x: Text) -> Text:
        """Return log x."""
        return x.op("log")

    def log1p(self, x: Text) -> Text:
        """Return log(1 + x)."""
        return x.op("log_plus_one")

    def sqrt(self, x: Text) -> Text:
        """Return the square root."""
        return x.op("sqrt")

    def sin(self, x: Text) -> Text:
        """Return sin x."""
        return x.op("sine")

    def cos(self, x: Text) -> Text:
        """Return cos x."""
        return x.op("cosine")

    def abs(self, x: Text) -> Text:
        """Return |x|."""
        return x.op("abs")

    def floor(self, x: Text) -> Text:
        """Return the greatest whole number that is not above x."""
        return x.op("floor")

    def pow(self, x: Text, y: Text) -> Text:
        """Return x to the power y."""
        return x.op("power", y)

    def minimum(self, x: Text, y: Any) -> Text:
        """Return the lesser."""
        return x.op("minimum", y)

    def maximum(self, x: Text, y: Any) -> Text:
        """Return the greater."""
        return x.op("maximum", y)

    def chebyshev(self, t: Text, coefficients: Sequence[float]) -> Text:
        """Return sum_k c_k T_k(t), of the terms that count in the dtype."""
        least = float(dtypes.finfo(self.aval.dtype).eps) / 16
        kept = [c for c in coefficients if abs(c) > least * abs(coefficients[0])]
        return chebyshev(t, kept)  # type: ignore[no-any-return]

    def varies(self, x: Any) -> bool:
        """Return whether a value is differentiated: see `formula_derivatives`."""
        return False

    def matters(self, term: Text, total: Any, eps: float) -> Text:
        """Return where a term is more than `eps` of a total."""
        bound = eps * self.abs(total) if isinstance(total, Text) else eps * abs(total)
        return self.abs(term) > bound

    def narrow(self, formula: Formula, *values: Text) -> Text:
        """Write a formula as loops are: in float32, for results that are no wider."""
        if self.precision is Precision:
            return formula(self, *values)  # type: ignore[no-any-return]
        b, wide = self.builder, self.aval.dtype
        inner = TextMath(b, shaped_array(self.aval.shape, dtypes.float32), self.precision)
        names = [b.convert(v.name, self.aval, dtypes.float32) for v in values]
        result = formula(inner, *[Text(b, name, inner.aval) for name in names])
        return Text(b, b.convert(result.name, inner.aval, wide), self.aval)

    def if_any(self, mask: Text, formula: Formula, values: Sequence[Text]) -> Text:
        """Write a `stablehlo.if` of the formula if a mask holds anywhere, and select it there."""
        b, aval = self.builder, self.aval

        def body(b: Builder, _: Sequence[str]) -> list[str]:
            return [formula(TextMath(b, aval, self.precision), *values_in(b)).name]

        def values_in(b: Any) -> list[Text]:
            return [Text(b, v.name, aval) for v in values]

        def zero(b: Builder, _: Sequence[str]) -> list[str]:
            return [b.constant(0.0, aval)]

        regions = b.regions(b.region([], body, [aval]), b.region([], zero, [aval]))
        flag = shaped_array((), dtypes.bool_)
        (name,) = b.op("stablehlo.if", [any_element(b, mask)], [flag], [aval], "", regions)
        return self.where(mask, Text(b, name, aval), 0.0)

    def loop(
        self,
        unfinished: Condition,
        step: Step,
        values: Sequence[Any],
        limit: int,
        tables: Sequence[Sequence[float]] = (),
        *,
        wide: bool = False,
    ) -> list[Any]:
        """Write a `stablehlo.while` that does as `HostMath.loop`; a float counts the steps."""
        narrow = self.precision is NarrowPrecision and not wide
        dtype = dtypes.float32 if narrow else self.aval.dtype
        aval, scalar = shaped_array(self.aval.shape, dtype), shaped_array((), dtype)
        flag = shaped_array((), dtypes.bool_)
        b = self.builder
        state = [b.convert(self._value(v).name, self.aval, dtype) for v in values]
        avals = [scalar, *[aval] * len(state)]

        def texts(b: Builder, names: Sequence[str]) -> list[Text]:
            return [Text(b, n, aval) for n in names]

        def condition(b: Builder, names: Sequence[str]) -> list[str]:
            within = Text(b, names[0], scalar) <= float(limit)
            if unfinished is None:
                return [within.name]
            inner = TextMath(b, aval, self.precision)
            any_active = any_element(b, unfinished(inner, *texts(b, names[1:])))
            return [(within & Text(b, any_active, flag)).name]

        def body(b: Builder, names: Sequence[str]) -> list[str]:
            old, n = texts(b, names[1:]), Text(b, names[0], scalar)
            count, *entries = [Text(b, b.broadcast(v, scalar, aval.shape), aval)
                               for v in (n.name, *[_entry(b, t, n) for t in tables])]  # fmt: skip
            new = step(TextMath(b, aval, self.precision), count, *entries, *old)
            return [(n + 1.0).name, *[v.name for v in new]]

        regions = b.regions(b.region(avals, condition, [flag]), b.region(avals, body, avals))
        results = b.op("stablehlo.while", [b.scalar(1.0, dtype), *state], avals, avals, "", regions)
        return [Text(b, b.convert(v, aval, self.aval.dtype), self.aval) for v in results[1:]]


def _entry(b: Builder, table: Sequence[float], n: Text) -> str:
    """Write the n-th entry of a table, counted from 1."""
    whole, one = shaped_array((len(table) + 1,), n.aval.dtype), shaped_array((1,), n.aval.dtype)
    position = b.convert(n.name, n.aval, dtypes.int32)
    padded = np.array([0.0, *table], n.aval.dtype)
    (name,) = b.op(
        "stablehlo.dynamic_slice", [b.constant(padded, whole), position],
        [whole, shaped_array((), dtypes.int32)], [one], "slice_sizes = array<i64: 1>",
    )  # fmt: skip
    (name,) = b.op("stablehlo.reshape", [name], [one], [n.aval])
    return name


def numpy_rule(formula: Formula) -> Callable[..., Any]:
    """Return a NumPy rule that computes a formula in float64, and rounds once."""

    def rule(*operands: Any) -> Any:
        values = np.broadcast_arrays(*[x.astype(np.float64) for x in operands])
        return formula(HostMath(), *values).astype(operands[0].dtype)

    return rule


def _flush(m: TextMath, x: Text) -> Text:
    """Write 0 for denormal numbers of float32, which some operations take for 0 and some do not."""
    if m.precision is Precision:
        return x
    return m.where(m.abs(x) < float(np.finfo(np.float32).tiny), 0.0 * x, x)


def stablehlo_rule(formula: Formula, *, narrow: bool = False) -> Callable[..., list[str]]:
    """Return a `stablehlo` rule that writes a formula in float64, and rounds once.

    That of one operand is a function of its own: fused with what uses it, it would be computed for
    each use, and so would all those that its operand comes from. Operands that are constants of the
    program are written into it, so that XLA computes with them; one of several others may become
    known when XLA inlines, so a formula of these stands in place.

    Args:
      formula: takes the functions and the operands, and returns one result.
      narrow: whether float32 is enough for results of float32 and narrower.
    """
    title = getattr(formula, "__name__", "formula").strip("_<>")

    def rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
        constants = [known_scalar(b, x) for x in operands]
        unknown = [i for i, value in enumerate(constants) if value is None]
        if len(unknown) != 1:
            return body(b, operands, avals_in, avals_out)
        (place,) = unknown

        def function(inner: Builder, names: Any) -> list[str]:
            xs = [names[0] if value is None else inner.constant(value, aval)
                  for value, aval in zip(constants, avals_in, strict=True)]  # fmt: skip
            return body(inner, xs, avals_in, avals_out)

        values = [None if value is None else value.tobytes() for value in constants]
        key = ("formula", formula, narrow, tuple(avals_in), *values)
        variable = [operands[place]], [avals_in[place]]
        return outline(b, function, *variable, avals_out, key, title)

    def body(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
        (out,) = avals_out
        precision = Precision if out.dtype == dtypes.float64 else NarrowPrecision
        enough = narrow and precision is NarrowPrecision
        wide = shaped_array(out.shape, dtypes.float32 if enough else dtypes.float64)
        values, m = [], TextMath(b, wide, precision)
        for x, aval in zip(operands, avals_in, strict=True):
            name = b.convert(x, aval, wide.dtype)
            name = b.broadcast(name, shaped_array(aval.shape, wide.dtype), out.shape)
            values.append(_flush(m, Text(b, name, wide)))
        result = formula(m, *values)
        return [b.convert(result.name, wide, out.dtype)]

    return rule
