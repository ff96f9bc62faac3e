"""Formulas written once for the host and for compiled programs.

A function `formula(m, *values)` uses the operators of its values and the functions of `m`. Given
`HostMath()` and ndarrays it computes; given a `TextMath(builder)` and `Text` values it writes the
same formula as StableHLO, loops included. For functions that CHLO has no operation for.

Neighbours: `special_incomplete` has the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp.primitives.special_gamma import digamma64, lgamma64
from xprim import ShapedArray, dtypes, shaped_array
from xprim.contracts import Builder

Condition = Callable[..., Any]
Step = Callable[..., tuple[Any, ...]]


class HostMath:
    """The functions of formulas on float64 ndarrays."""

    eps = float(np.finfo(np.float64).eps)
    tiny = 1e-300

    where = staticmethod(np.where)
    exp = staticmethod(np.exp)
    log = staticmethod(np.log)
    log1p = staticmethod(np.log1p)
    sqrt = staticmethod(np.sqrt)
    abs = staticmethod(np.abs)
    minimum = staticmethod(np.minimum)
    maximum = staticmethod(np.maximum)
    lgamma = staticmethod(lgamma64)
    digamma = staticmethod(digamma64)

    def loop(self, unfinished: Condition, step: Step, values: Sequence[Any], limit: int) -> Any:
        """Apply `values = step(n, *values)` for n = 1, 2, ... while any element is unfinished.

        Elements that are finished keep their values.
        """
        state = [np.array(v) for v in np.broadcast_arrays(*values)]
        for n in range(1, limit + 1):
            active = unfinished(*state)
            if not active.any():
                break
            new = step(float(n), *state)
            state = [np.where(active, v, old) for v, old in zip(new, state, strict=True)]
        return state


class Text:
    """An SSA value in a StableHLO program, with operators that write operations."""

    __slots__ = ("aval", "builder", "name")

    def __init__(self, builder: Builder, name: str, aval: ShapedArray) -> None:
        self.builder = builder
        self.name = name
        self.aval = aval

    def op(self, op: str, *others: Any) -> Text:
        """Return the result of an operation on this value and others of its type, or numbers."""
        names = [self.name, *[self.like(v).name for v in others]]
        name = self.builder.same_type_op(f"stablehlo.{op}", names, self.aval)
        return Text(self.builder, name, self.aval)

    def like(self, value: Any) -> Text:
        """Return a number as a value of this type."""
        if isinstance(value, Text):
            return value
        return Text(self.builder, self.builder.constant(value, self.aval), self.aval)

    def compare(self, direction: str, other: Any) -> Text:
        """Return the mask where the comparison holds."""
        mask = shaped_array(self.aval.shape, dtypes.bool_)
        (name,) = self.builder.op(
            "stablehlo.compare", [self.name, self.like(other).name], [self.aval] * 2, [mask],
            f"comparison_direction = #stablehlo<comparison_direction {direction}>",
        )  # fmt: skip
        return Text(self.builder, name, mask)

    def __add__(self, other: Any) -> Text:
        return self.op("add", other)

    def __radd__(self, other: Any) -> Text:
        return self.like(other).op("add", self)

    def __sub__(self, other: Any) -> Text:
        return self.op("subtract", other)

    def __rsub__(self, other: Any) -> Text:
        return self.like(other).op("subtract", self)

    def __mul__(self, other: Any) -> Text:
        return self.op("multiply", other)

    def __rmul__(self, other: Any) -> Text:
        return self.like(other).op("multiply", self)

    def __truediv__(self, other: Any) -> Text:
        return self.op("divide", other)

    def __rtruediv__(self, other: Any) -> Text:
        return self.like(other).op("divide", self)

    def __neg__(self) -> Text:
        return self.op("negate")

    def __and__(self, other: Any) -> Text:
        return self.op("and", other)

    def __or__(self, other: Any) -> Text:
        return self.op("or", other)

    def __invert__(self) -> Text:
        return self.op("not")

    def __lt__(self, other: Any) -> Text:
        return self.compare("LT", other)

    def __le__(self, other: Any) -> Text:
        return self.compare("LE", other)

    def __gt__(self, other: Any) -> Text:
        return self.compare("GT", other)

    def __ge__(self, other: Any) -> Text:
        return self.compare("GE", other)

    def __eq__(self, other: Any) -> Any:
        return self.compare("EQ", other)

    __hash__ = None  # type: ignore[assignment]


class TextMath:
    """The functions of formulas on `Text` values of one float type."""

    def __init__(self, builder: Builder, aval: ShapedArray) -> None:
        self.builder = builder
        self.aval = aval
        info = dtypes.finfo(aval.dtype)
        self.eps = float(info.eps)
        self.tiny = float(info.tiny) * 1e5

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

    def log(self, x: Text) -> Text:
        """Return log x."""
        return x.op("log")

    def log1p(self, x: Text) -> Text:
        """Return log(1 + x)."""
        return x.op("log_plus_one")

    def sqrt(self, x: Text) -> Text:
        """Return the square root."""
        return x.op("sqrt")

    def abs(self, x: Text) -> Text:
        """Return |x|."""
        return x.op("abs")

    def minimum(self, x: Text, y: Any) -> Text:
        """Return the lesser."""
        return x.op("minimum", y)

    def maximum(self, x: Text, y: Any) -> Text:
        """Return the greater."""
        return x.op("maximum", y)

    def lgamma(self, x: Text) -> Text:
        """Return log |Gamma(x)|."""
        return self._chlo("chlo.lgamma", x)

    def digamma(self, x: Text) -> Text:
        """Return lgamma'(x)."""
        return self._chlo("chlo.digamma", x)

    def _chlo(self, op: str, x: Text) -> Text:
        (name,) = x.builder.op(op, [x.name], [x.aval], [x.aval])
        return Text(x.builder, name, x.aval)

    def loop(self, unfinished: Condition, step: Step, values: Sequence[Any], limit: int) -> Any:
        """Write a `stablehlo.while`: as `HostMath.loop`, a float counts the steps."""
        aval = self.aval
        scalar = shaped_array((), aval.dtype)
        flag = shaped_array((), dtypes.bool_)
        state = [self._value(v).name for v in values]
        avals = [scalar, *[aval] * len(state)]

        def texts(b: Builder, names: Sequence[str]) -> list[Text]:
            return [Text(b, n, aval) for n in names]

        def condition(b: Builder, names: Sequence[str]) -> list[str]:
            active = unfinished(*texts(b, names[1:]))
            if aval.shape:
                false = b.scalar(False, flag.dtype)
                dims = ", ".join(map(str, range(len(aval.shape))))
                (any_active,) = b.op(
                    "stablehlo.reduce", [active.name, false], [active.aval, flag], [flag],
                    f"dimensions = array<i64: {dims}>", b.reducer("stablehlo.or", flag.dtype),
                )  # fmt: skip
            else:
                any_active = active.name
            within = Text(b, names[0], scalar) <= float(limit)
            return [(within & Text(b, any_active, flag)).name]

        def body(b: Builder, names: Sequence[str]) -> list[str]:
            old, n = texts(b, names[1:]), Text(b, names[0], scalar)
            count = Text(b, b.broadcast(n.name, scalar, aval.shape), aval)
            active, inner = unfinished(*old), TextMath(b, aval)
            new = step(count, *old)
            kept = [inner.where(active, v, o).name for v, o in zip(new, old, strict=True)]
            return [(n + 1.0).name, *kept]

        b = self.builder
        regions = b.regions(b.region(avals, condition, [flag]), b.region(avals, body, avals))
        first = b.scalar(1.0, aval.dtype)
        results = b.op("stablehlo.while", [first, *state], avals, avals, "", regions)
        return texts(b, results[1:])
