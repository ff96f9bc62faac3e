"""Taylor mode: derivatives of high order along a curve, by power series.

A value is a series x_0 + x_1 t + x_2 t^2 + ...; each primitive makes the series of its results from
those of its operands. What the registry knows of a derivative is enough for that:

    linear          each term by itself                           y_k = f(x_k)
    multilinear     Leibniz' product                              z_k = sum f(x_i, y_(k-i))
    anything else   the `jvp` rule, run on series: y' = f'(x) x'  y_k = (f'(x) x')_(k-1) / k

In the last line the rule is given the series x and x' and makes one of y'. Series are made term by
term, when a term is requested, and an operation that was made of the same series before is that one
(McIlroy, Power series, power serious, 1999). So where a rule names its own result, as that of exp
does (y' = y x'), or its partner's (sin and cos), the recurrence closes by itself: order n costs n^2
operations, where `jvp` of `jvp` costs 2^n.

A `series` rule says what the `jvp` rule cannot: that a formula is linear, or how to divide. Loops
and branches are taken by their `jvp` rules, whose programs double with each order.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import xprim
import xtree
from xad._jvp import JVP_HANDLE
from xad.tangents import (
    add_tangents,
    instantiate,
    is_differentiable,
    jvp_rule,
    retype_as,
    tangent_aval,
)
from xnp.lax import add_p, complex_p, div_p, imag_p, mul_p, neg_p, real_p, sub_p
from xprim import LINEAR, Array, LinearIn, Primitive, Trace, Tracer, Zero, dtypes, state, use_trace
from xprim.errors import message
from xprim.requirements import require
from xprim.static_keys import params_key
from xprim.tracebacks import boundaries
from xprim.transformed import check_function, flat_arrays
from xprim.typing import ArrayLike
from xtree.namespaces import late_import

__all__ = ["ZeroSeries", "fact", "jet", "zero_series"]

__dir__ = __all__.copy

_special = late_import("xnp.scipy.special", "only the factorials of users need it")

Term = Any  # an array, or a Zero

xprim.declare_kind(
    "series",
    signature="(k, operands, results, **params) -> k-th terms; or LINEAR, linear_in, multilinear",
    consumer="xad",
    doc="the terms of the power series of results, from those of the operands (`.term(i)`, i <= k) "
    "and their own (i < k); without a rule, by the jvp rule",
)


class ZeroSeries:
    """The type of `zero_series`, which says that an argument is constant along the curve."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "zero_series"


zero_series = ZeroSeries()
"""The series of an argument that is constant along the curve, of as many terms as the others'."""


def fact(n: ArrayLike) -> Array:
    """Return n!, by which a derivative is n! times the coefficient of t^n.

    Args:
      n: a number or an array of floats, or of integers, not negative.

    Example:
      >>> fact(4)
      Array(24., dtype=float32, weak_type=True)
    """
    return _special.factorial(n)  # type: ignore[no-any-return]


def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any],
    factorial_scaled: bool = True,
) -> tuple[Any, Any]:  # fmt: skip
    """Push a curve through a function: its derivatives of all orders up to the number of terms.

    With x(t) = x_0 + x_1 t + x_2 t^2 / 2! + ... this gives the derivatives of f(x(t)) at t = 0.

    Args:
      fun: a function of pytrees of arrays.
      primals: a tuple or list of the arguments, at t = 0; floating or complex, or booleans.
      series: for each argument the sequence of its derivatives x_1, x_2, ... in t, each like the
        argument, as many for each; or `zero_series` for an argument that is constant. Those of
        booleans are read for their shapes alone: a truth is the same along the curve.
      factorial_scaled: whether terms are derivatives; if not, they are coefficients of powers of
        t, which are derivatives over factorials.

    Returns:
      `(result, terms)`: the result at t = 0; and, in place of each array of it, the list of its
      derivatives in t, as many as the arguments have.

    Raises:
      ValueError: when arguments have different numbers of terms, or terms other shapes.
      TypeError: when an argument is of integers.

    Example:
      >>> import xnp
      >>> y, (y1, y2, y3) = jet(xnp.exp, (0.0,), ([1.0, 0.0, 0.0],))
      >>> float(y), float(y1), float(y2), float(y3)
      (1.0, 1.0, 1.0, 1.0)
    """
    check_function(fun, "jet")
    leaves, tree = flat_arrays(tuple(primals), "jet", "the argument")
    rows = _rows_of(len(primals), _with_zeros(primals, series), tree, leaves)
    factors = [math.factorial(k) if factorial_scaled else 1 for k in range(len(rows) + 1)]
    rows = [[_scale(x, 1 / n) for x in row] for n, row in zip(factors[1:], rows, strict=True)]
    trace = JetTrace(state.trace, len(rows))
    inputs = [_input(trace, terms) for terms in zip(leaves, *rows, strict=True)]
    with use_trace(trace):
        results, out_tree = flat_arrays(fun(*xtree.unflatten(tree, inputs)), "jet")
    trace.close()
    outs = [trace.term(r, 0) for r in results]
    terms = [[_as_array(trace.term(r, k), n, out.aval) for k, n in enumerate(factors) if k > 0]
             for r, out in zip(results, outs, strict=True)]  # fmt: skip
    return xtree.unflatten(out_tree, outs), xtree.unflatten(out_tree, terms)


def _input(trace: JetTrace, terms: Sequence[Any]) -> Array:
    """Return an argument as a series, and a truth as it is."""
    if dtypes.is_bool(terms[0].aval.dtype):
        return terms[0]  # type: ignore[no-any-return]
    return JetTracer(trace, Rows(trace, [[x] for x in terms]), 0)


def _with_zeros(primals: Sequence[Any], series: Sequence[Any]) -> Sequence[Any]:
    """Return the series with zeros in place of each `zero_series`."""
    given = [terms for terms in series if type(terms) is not ZeroSeries]
    if len(given) in (0, len(series)) or len(primals) != len(series):
        return given
    count = len(given[0])
    return [
        [xtree.map(lambda x: instantiate(Zero(xprim.as_array(x).aval)), primal)] * count
        if type(terms) is ZeroSeries else terms
        for primal, terms in zip(primals, series, strict=True)
    ]  # fmt: skip


def _rows_of(count: int, series: Any, tree: Any, leaves: Sequence[Array]) -> list[list[Any]]:
    """Return for each order from 1 on the terms of all leaves."""
    lengths = [len(terms) for terms in series]
    if len(lengths) != count or len({*lengths}) != 1:
        raise ValueError(message(
            "jet", "each argument needs a series, all of the same number of terms.",
            got=f"{count} arguments, series of {lengths} terms",
        ))  # fmt: skip
    by_order = enumerate(zip(*series, strict=True), 1)
    return [_leaves_of(tuple(terms), k, tree, leaves) for k, terms in by_order]


def _leaves_of(terms: Any, k: int, tree: Any, leaves: Sequence[Array]) -> list[Any]:
    """Return the leaves of the k-th terms as arrays of the types of the primals."""
    found, term_tree = xtree.flatten(terms)
    if term_tree != tree:
        raise ValueError(message(
            "jet", f"the terms of order {k} have another structure than the arguments.",
            got=f"{term_tree}", expected=f"{tree}",
        ))  # fmt: skip
    arrays = []
    for x, primal in zip(found, leaves, strict=True):
        is_truth = dtypes.is_bool(primal.aval.dtype)
        require(
            is_truth or is_differentiable(primal.aval), "jet",
            "an argument of dtype {} has no derivatives.", primal.aval.dtype,
            hint="pass 3.0 instead of 3, or close over it", error=TypeError,
        )  # fmt: skip
        array = xprim.as_array(x, what=f"jet: a term of order {k}")
        if array.aval.shape != primal.aval.shape:
            raise ValueError(message(
                "jet", f"a term of order {k} has another shape than its argument.",
                got=f"{array.aval.shape}", expected=f"{primal.aval.shape}",
            ))  # fmt: skip
        arrays.append(array if is_truth else array.astype(primal.aval.dtype))
    return arrays


def _as_array(term: Term, factor: int, aval: xprim.ShapedArray) -> Any:
    """Return a term of a result, weakly typed where the result is."""
    return instantiate(Zero(aval)) if type(term) is Zero else retype_as(_scale(term, factor), aval)


def _scale(x: Any, factor: float) -> Any:
    return x if factor == 1 else mul_p.bind(x, xprim.scalar_array(factor, x.aval.dtype))[0]


class Rows:
    """The terms of the series of the results of an operation, made when they are requested.

    Attributes:
      known: for each order from 0 on, the terms of all results.
    """

    __slots__ = ("_make", "_trace", "known")

    def __init__(
        self, trace: JetTrace, known: list[Sequence[Term]],
        make: Callable[[int], Sequence[Term]] | None = None,
    ) -> None:  # fmt: skip
        self._trace = trace
        self.known = known
        self._make = make

    def row(self, k: int) -> Sequence[Term]:
        """Return the terms of order k."""
        while len(self.known) <= k:
            assert self._make is not None, "no operation needs more than its operands have"
            with use_trace(self._trace.parent):  # type: ignore[arg-type]
                self.known.append(self._make(len(self.known)))
        return self.known[k]


class JetTracer(Tracer):
    """A series: the results of one operation, and which of them this is."""

    __slots__ = ("_number", "_rows")

    def __init__(self, trace: JetTrace, rows: Rows, number: int) -> None:
        self._trace = trace
        self._rows = rows
        self._number = number
        self.aval = rows.known[0][number].aval

    def term(self, k: int) -> Term:
        """Return the coefficient of t^k."""
        return self._rows.row(k)[self._number]

    def concrete(self) -> Array | None:
        """Return the value at t = 0 when it is known."""
        first: Any = self.term(0)
        return first.concrete() if isinstance(first, Tracer) else first

    def varies(self) -> bool:
        """Return whether the series of this value, or of its value at t = 0, is being made."""
        first: Any = self.term(0)
        return not self._trace.closed or (isinstance(first, Tracer) and first.varies())


class JetTrace(Trace):
    """Makes series; values without one go to the parent trace.

    Attributes:
      order: of the last term that is wanted.
    """

    __slots__ = ("_depth", "_made", "order")

    name = "jet"

    def __init__(self, parent: Trace, order: int) -> None:
        super().__init__(parent)
        self.order = order
        self._depth = 0  # of rules that run on series
        self._made: dict[Any, Any] = {}  # by operation: its operands, kept alive, and results

    def primal_of(self, value: Any) -> Any:
        """Return the value at t = 0 of a series of this trace; anything else unchanged."""
        return self.term(value, 0) if self.owns(value) else value

    def owns(self, value: Any) -> bool:
        """Return whether a value is a series of this trace."""
        return type(value) is JetTracer and value._trace is self

    def term(self, value: Any, k: int) -> Term:
        """Return the coefficient of t^k of a series or of a constant."""
        if self.owns(value):
            return value.term(k)
        return value if k == 0 else Zero(tangent_aval(value))

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Make the series of the results; outside of rules, all of its terms at once."""
        if not any(map(self.owns, operands)):
            return self.parent.process(primitive, operands, params)  # type: ignore[union-attr]
        if "inline" in primitive.rules:
            with use_trace(self):
                return tuple(primitive.rules["inline"](*operands, **params))
        if primitive.call_like:
            outs = self._evaluate_series(primitive, operands, params)
        else:
            key = (primitive, *map(id, operands), *params_key(params))
            if key not in self._made:
                self._made[key] = operands, self._evaluate_series(primitive, operands, params)
            outs = self._made[key][1]
        if self._depth == 0:
            for out in filter(self.owns, outs):
                out.term(self.order)
            self._made.clear()
        return outs

    def _evaluate_series(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        with use_trace(self.parent):  # type: ignore[arg-type]
            firsts = primitive.evaluate(list(map(self.primal_of, operands)), params)
        rows = Rows(self, [firsts])
        outs = tuple([JetTracer(self, rows, i) if is_differentiable(first.aval) else first
                      for i, first in enumerate(firsts)])  # fmt: skip
        rows._make = self._maker(primitive, operands, outs, params)
        return outs

    def _maker(
        self, primitive: Primitive, operands: tuple[Any, ...], outs: tuple[Any, ...],
        params: dict[str, Any],
    ) -> Callable[[int], Sequence[Term]]:  # fmt: skip
        """Return the function from k to the k-th terms of the results of an operation."""
        rule = primitive.rules.get("series") or primitive.rules["jvp"]
        if rule is LINEAR:
            rule = LinearIn(tuple(range(len(operands))))
        if isinstance(rule, LinearIn | xprim.MultiLinear):
            # where operands that it is linear in are all constant, there is nothing but zeros
            sums = _compositions if isinstance(rule, xprim.MultiLinear) else _single
            return functools.partial(self._linear, primitive, operands, outs, params, rule, sums)
        if "series" in primitive.rules:
            given = [_Constant(self, x) if not self.owns(x) else x for x in operands]
            return lambda k: rule(k, given, outs, **params)
        dots = functools.cache(lambda: self._derivatives(primitive, operands, params))
        return lambda k: [self._divide(self.term_or_zero(dot, k - 1), k) for dot in dots()]

    def term_or_zero(self, dot: Any, k: int) -> Term:
        """Return a term of a tangent, which may be a `Zero`."""
        return dot if type(dot) is Zero else self.term(dot, k)

    def _divide(self, term: Term, k: int) -> Term:
        if type(term) is Zero or k == 1:
            return term
        return div_p.bind(term, xprim.scalar_array(k, term.aval.dtype))[0]

    def _linear(
        self, primitive: Primitive, operands: Any, outs: Any, params: Any, rule: Any, sums: Any,
        k: int,
    ) -> Sequence[Term]:  # fmt: skip
        """Return the sum of what the primitive makes of terms whose orders add up to k."""
        totals: list[Term] = [Zero(tangent_aval(out)) for out in outs]
        if not outs or not is_differentiable(outs[0].aval):
            return totals
        enough = all if isinstance(rule, LinearIn) else any  # of zeros, for the result to be zero
        for orders in sums(k, len(rule.argnums)):
            values = list(map(self.primal_of, operands))
            terms = [self.term(operands[i], n) for i, n in zip(rule.argnums, orders, strict=True)]
            if enough(type(t) is Zero for t in terms):
                continue
            for i, term in zip(rule.argnums, terms, strict=True):
                values[i] = instantiate(term)
            totals = list(map(add_tangents, totals, primitive.bind(*values, **params)))
        return totals

    def _derivatives(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Return the series of y', by the jvp rule on the series x and x'."""
        dots = [self._derivative(x) if self.owns(x) else Zero(tangent_aval(x)) for x in operands]
        with self._inside_a_rule():
            if primitive.call_like:
                rule = primitive.rule("jvp")
                _, out_dots = rule(JVP_HANDLE, operands, dots, **params)
            else:
                _, out_dots = jvp_rule(primitive)(operands, dots, **params)
        return out_dots  # type: ignore[no-any-return]

    def _derivative(self, x: JetTracer) -> JetTracer:
        """Return the series of x'."""
        first = instantiate(x.term(1))
        return JetTracer(self, Rows(self, [[first]], lambda k: [_times(x.term(k + 1), k + 1)]), 0)

    @contextmanager
    def _inside_a_rule(self) -> Iterator[None]:
        self._depth += 1
        try:
            with use_trace(self):
                yield
        finally:
            self._depth -= 1


class _Constant:
    """An operand that does not change with t."""

    def __init__(self, trace: JetTrace, value: Any) -> None:
        self._trace = trace
        self._value = value

    def term(self, k: int) -> Term:
        return self._trace.term(self._value, k)


def _times(term: Term, k: int) -> Term:
    return term if type(term) is Zero else _scale(term, k)


def _single(k: int, count: int) -> Iterator[tuple[int, ...]]:
    yield (k,) * count


def _compositions(k: int, count: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write k as a sum of some numbers in order, zeros included."""
    for bars in itertools.combinations(range(k + count - 1), count - 1):
        ends = (-1, *bars, k + count - 1)
        yield tuple([b - a - 1 for a, b in itertools.pairwise(ends)])


# --- what the jvp rules of these do not say -------------------------------------------------------


def _div_series(k: int, operands: Any, results: Any) -> Any:
    """Return z_k of z = x / y: x = z y, so z_k = (x_k - sum_(0 < i <= k) z_(k-i) y_i) / y_0."""
    x, y = operands
    (z,) = results
    total = x.term(k)
    for i in range(1, k + 1):
        if type(y.term(i)) is Zero or type(z.term(k - i)) is Zero:
            continue
        product = mul_p.bind(z.term(k - i), y.term(i))[0]
        total = neg_p.bind(product)[0] if type(total) is Zero else sub_p.bind(total, product)[0]
    return [Zero(z.aval) if type(total) is Zero else div_p.bind(total, y.term(0))[0]]


for _primitive in (add_p, sub_p, neg_p, real_p, imag_p, complex_p):
    _primitive.define("series", LINEAR)
mul_p.define("series", xprim.multilinear(0, 1))
div_p.define("series", _div_series)


boundaries(globals())
