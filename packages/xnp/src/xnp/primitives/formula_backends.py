"""Formulas written once for the host and for compiled programs.

A function `formula(m, *values)` uses the operators of its values and the functions of `m`. Given
`HostMath()` and ndarrays it computes; given a `TextMath(builder, aval)` and `Text` values it writes
the same formula as StableHLO, loops included. `numpy_rule` and `stablehlo_rule` make a primitive's
rules of it. Both compute in float64, whatever the operands' dtype, but for the loops of compiled
programs, which run in float32 where the result is no wider: what a formula takes into a loop must
be in its range, and what cancels stands outside of loops. So what is evaluated and what is compiled
agree to a few units in the last place.

Neighbours: `special_gamma`, `special_incomplete`, `special_beta` have the formulas; `text_values`
has the values of a program's text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp.primitives.chebyshev import chebyshev
from xnp.primitives.text_values import Text
from xprim import ShapedArray, dtypes, shaped_array
from xprim.contracts import Builder

__all__ = ()

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

    def narrowed(self, formula: Formula, *values: Any) -> Any:
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
        u, v = self._value(x), self._value(y)
        (name,) = mask.builder.op(
            "stablehlo.select", [mask.name, u.name, v.name], [mask.aval, u.aval, u.aval], [u.aval]
        )
        return Text(mask.builder, name, u.aval)

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

    def narrowed(self, formula: Formula, *values: Text) -> Text:
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
        (name,) = b.op("stablehlo.if", [_any(b, mask)], [flag], [aval], "", regions)
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
            any_active = _any(b, unfinished(inner, *texts(b, names[1:])))
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


def _any(b: Builder, mask: Text) -> str:
    """Write whether any element of a mask holds."""
    if not mask.aval.shape:
        return mask.name
    flag = shaped_array((), dtypes.bool_)
    dims = ", ".join(map(str, range(mask.aval.ndim)))
    (name,) = b.op(
        "stablehlo.reduce", [mask.name, b.scalar(False, flag.dtype)], [mask.aval, flag], [flag],
        f"dimensions = array<i64: {dims}>", b.reducer("stablehlo.or", flag.dtype),
    )  # fmt: skip
    return name


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


def _flushed(m: TextMath, x: Text) -> Text:
    """Write 0 for denormal numbers of float32, which some operations take for 0 and some do not."""
    if m.precision is Precision:
        return x
    return m.where(m.abs(x) < float(np.finfo(np.float32).tiny), 0.0 * x, x)


def stablehlo_rule(formula: Formula, *, narrow: bool = False) -> Callable[..., list[str]]:
    """Return a `stablehlo` rule that writes a formula in float64, and rounds once.

    Args:
      formula: takes the functions and the operands, and returns one result.
      narrow: whether float32 is enough for results of float32 and narrower.
    """

    def rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
        (out,) = avals_out
        precision = Precision if out.dtype == dtypes.float64 else NarrowPrecision
        enough = narrow and precision is NarrowPrecision
        wide = shaped_array(out.shape, dtypes.float32 if enough else dtypes.float64)
        values, m = [], TextMath(b, wide, precision)
        for x, aval in zip(operands, avals_in, strict=True):
            name = b.convert(x, aval, wide.dtype)
            name = b.broadcast(name, shaped_array(aval.shape, wide.dtype), out.shape)
            values.append(_flushed(m, Text(b, name, wide)))
        result = formula(m, *values)
        return [b.convert(result.name, wide, out.dtype)]

    return rule
