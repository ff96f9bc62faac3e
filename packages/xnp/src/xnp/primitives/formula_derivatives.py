"""Derivatives of formulas in their parameters, of any order, by truncated Taylor series.

A formula that is written for `HostMath` and `TextMath` is run on series sum_k c_k t^k in small
parameters t_1, t_2, ..., whose coefficients are the values of those: k! c_k is the partial
derivative of order k. So a function that has a formula has all derivatives in its parameters, too,
where the formula's branches agree on both sides of their borders, as those of analytic functions
do. A branch that is infinite or NaN has no derivative: NaN.

Source: A. Griewank and A. Walther, Evaluating derivatives (2008), chapter 13.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp.primitives import costs, formula_backends
from xnp.primitives.formula_backends import Formula, Step, chebyshev, numpy_rule, stablehlo_rule
from xnp.primitives.lowering_text import Text
from xnp.primitives.table import FLOATING, add, bind, elementwise_shape, mul, repeat_scalar
from xprim import ELEMENTWISE, Primitive, Zero, primitive_maker, state, undefined
from xprim.contracts import Builder

__all__ = ()

Order = tuple[int, ...]


@functools.cache
def derivative_of(formula: Formula, orders: Order) -> Formula:
    """Return the formula of a partial derivative.

    Args:
      formula: of as many operands as there are orders, or more.
      orders: how often to differentiate in each of the first operands.
    """

    def derivative(m: Any, *values: Any) -> Any:
        taylor = TaylorMath(m, orders)
        operands = [taylor.series(v, k) for k, v in enumerate(values)]
        coefficient = formula(taylor, *operands).terms.get(orders)
        if coefficient is None:
            return _zero_like(values[0])
        scale = math.prod(map(math.factorial, orders))
        return coefficient if scale == 1 else float(scale) * coefficient

    return derivative


def _zero_like(value: Any) -> Any:
    return value.like(0.0) if isinstance(value, Text) else np.zeros(np.shape(value))


class Series:
    """A truncated Taylor series: the coefficient of each power; of those that it lacks it is 0."""

    __slots__ = ("highest", "terms")
    __array_ufunc__ = None  # ndarrays leave the operators to the series

    def __init__(self, terms: dict[Order, Any], highest: Order) -> None:
        self.terms = terms
        self.highest = highest

    @property
    def zeroth(self) -> Order:
        """The power of the constant."""
        return (0,) * len(self.highest)

    @property
    def value(self) -> Any:
        """The constant."""
        return self.terms[self.zeroth]

    def _of(self, other: Any) -> Series:
        return other if isinstance(other, Series) else Series({self.zeroth: other}, self.highest)

    def __add__(self, other: Any) -> Series:
        terms = dict(self.terms)
        for k, c in self._of(other).terms.items():
            terms[k] = terms[k] + c if k in terms else c
        return Series(terms, self.highest)

    __radd__ = __add__

    def __neg__(self) -> Series:
        return Series({k: -c for k, c in self.terms.items()}, self.highest)

    def __sub__(self, other: Any) -> Series:
        terms = dict(self.terms)
        for k, c in self._of(other).terms.items():
            terms[k] = terms[k] - c if k in terms else -c
        return Series(terms, self.highest)

    def __rsub__(self, other: Any) -> Series:
        return self._of(other) - self

    def __mul__(self, other: Any) -> Series:
        if not isinstance(other, Series):
            return Series({k: c * other for k, c in self.terms.items()}, self.highest)
        terms: dict[Order, Any] = {}
        for (j, x), (k, y) in itertools.product(self.terms.items(), other.terms.items()):
            power = tuple([a + b for a, b in zip(j, k, strict=True)])
            if all(a <= b for a, b in zip(power, self.highest, strict=True)):
                terms[power] = terms[power] + x * y if power in terms else x * y
        return Series(terms, self.highest)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Series:
        if not isinstance(other, Series):
            return Series({k: c / other for k, c in self.terms.items()}, self.highest)
        divisor, first = other.terms, other.value
        found: dict[Order, Any] = {}
        for k in self.powers():
            rest = self.terms.get(k)
            for j in divisor:
                low = _less(k, j)
                if any(j) and low in found:
                    part = divisor[j] * found[low]
                    rest = -part if rest is None else rest - part
            if rest is not None:
                found[k] = rest / first
        return Series(found, self.highest)

    def __rtruediv__(self, other: Any) -> Series:
        return self._of(other) / self

    def powers(self) -> list[Order]:
        """Return all powers, each after those that it is a multiple of."""
        return sorted(itertools.product(*[range(n + 1) for n in self.highest]), key=sum)

    def __lt__(self, other: Any) -> Any:
        return self.value < _constant(other)

    def __le__(self, other: Any) -> Any:
        return self.value <= _constant(other)

    def __gt__(self, other: Any) -> Any:
        return self.value > _constant(other)

    def __ge__(self, other: Any) -> Any:
        return self.value >= _constant(other)

    def __eq__(self, other: Any) -> Any:
        return self.value == _constant(other)

    __hash__ = None  # type: ignore[assignment]


def _constant(x: Any) -> Any:
    return x.value if isinstance(x, Series) else x


def _less(k: Order, j: Order) -> Order:
    return tuple([a - b for a, b in zip(k, j, strict=True)])


def _integral(x: Series, first: Any, derivative: Callable[[Series], Series]) -> Series:
    """Return f(x), given f of the constant and the derivative f'(x) as a function of f(x).

    By k_i f_k = sum_j j_i x_j f'_(k-j), where k_i is not 0: f' is needed to the lower orders alone.
    """
    found = Series({x.zeroth: first}, x.highest)
    for k in x.powers()[1:]:
        i = next(i for i, n in enumerate(k) if n)
        factors, total = derivative(found).terms, None
        for j, c in x.terms.items():
            low = _less(k, j)
            if j[i] and low in factors:
                part = c * factors[low] * (j[i] / k[i])
                total = part if total is None else total + part
        if total is not None:
            found.terms[k] = total
    return found


class TaylorMath:
    """The functions of formulas on series, by those on their coefficients."""

    def __init__(self, inner: Any, highest: Order) -> None:
        self.inner = inner
        self.highest = highest
        self.precision = inner.precision

    def series(self, value: Any, position: int) -> Series:
        """Return an operand: its value, and its small parameter where it is differentiated."""
        zeroth = (0,) * len(self.highest)
        terms = {zeroth: value}
        if position < len(self.highest) and self.highest[position]:
            one = value.like(1.0) if isinstance(value, Text) else np.ones(np.shape(value))
            terms[tuple([int(k == position) for k in range(len(self.highest))])] = one
        return Series(terms, self.highest)

    def _of(self, x: Any) -> Series:
        return x if isinstance(x, Series) else Series({(0,) * len(self.highest): x}, self.highest)

    def varies(self, x: Any) -> bool:
        """Return whether a value is differentiated."""
        return len(self._of(x).terms) > 1

    def where(self, mask: Any, x: Any, y: Any) -> Series:
        """Return x where the mask holds, else y."""
        options = self._of(x), self._of(y)
        terms = {}
        for k in options[0].terms.keys() | options[1].terms.keys():
            terms[k] = self.inner.where(mask, *[_coefficient(s, k) for s in options])
        return Series(terms, self.highest)

    def exp(self, x: Series) -> Series:
        """Return e^x."""
        return _integral(x, self.inner.exp(x.value), lambda y: y)

    def expm1(self, x: Series) -> Series:
        """Return e^x - 1."""
        return _integral(x, self.inner.expm1(x.value), lambda y: y + 1.0)

    def log(self, x: Series) -> Series:
        """Return log x."""
        derivative = 1.0 / x
        return _integral(x, self.inner.log(x.value), lambda _: derivative)

    def log1p(self, x: Series) -> Series:
        """Return log(1 + x)."""
        derivative = 1.0 / (1.0 + x)
        return _integral(x, self.inner.log1p(x.value), lambda _: derivative)

    def sqrt(self, x: Series) -> Series:
        """Return the square root."""
        return _integral(x, self.inner.sqrt(x.value), lambda y: 0.5 / y)

    def sin(self, x: Series) -> Series:
        """Return sin x."""
        return self._sine_series(x, 0)

    def cos(self, x: Series) -> Series:
        """Return cos x."""
        return self._sine_series(x, 1)

    def _sine_series(self, x: Series, quarter: int) -> Series:
        """Return the sine, or the cosine: f(x0 + h) by Taylor's formula in h."""
        sine, cosine = self.inner.sin(x.value), self.inner.cos(x.value)
        values = [sine, cosine, -sine, -cosine]
        rest = Series({k: c for k, c in x.terms.items() if any(k)}, self.highest)
        found, power = self._of(values[quarter]), self._of(1.0)
        for n in range(1, sum(self.highest) + 1):
            power = rest * power
            found = found + power * values[(quarter + n) % 4] * (1 / math.factorial(n))
        return found

    def abs(self, x: Series) -> Series:
        """Return |x|."""
        return self.where(x.value < 0.0, -x, x) if self.varies(x) else self._apply("abs", x)

    def _apply(self, name: str, x: Series) -> Series:
        return self._of(getattr(self.inner, name)(x.value))

    def floor(self, x: Series) -> Series:
        """Return the greatest whole number that is not above x: a constant."""
        return self._apply("floor", x)

    def pow(self, x: Series, y: Any) -> Series:
        """Return x to the power y, for x > 0."""
        found = self.exp(self._of(y) * self.log(x))
        found.terms[x.zeroth] = self.inner.pow(x.value, _constant(y))
        return found

    def minimum(self, x: Any, y: Any) -> Series:
        """Return the lesser; where they are equal, the one that `maximum` does not return."""
        x, y = self._order(x, y)
        return self.where((x.value <= y.value) | ~(x.value == x.value), x, y)

    def maximum(self, x: Any, y: Any) -> Series:
        """Return the greater."""
        x, y = self._order(x, y)
        return self.where((x.value > y.value) | ~(x.value == x.value), x, y)

    def _order(self, x: Any, y: Any) -> tuple[Series, Series]:
        x, y = self._of(x), self._of(y)
        return (y, x) if _is_number(x) else (x, y)

    def chebyshev(self, t: Series, coefficients: Sequence[float]) -> Series:
        """Return sum_k c_k T_k(t)."""
        return chebyshev(t, coefficients)  # type: ignore[no-any-return]

    def narrow(self, formula: Formula, *values: Any) -> Any:
        """Return `formula(m, *values)`."""
        return formula(self, *values)

    def if_any(self, mask: Any, formula: Formula, values: Sequence[Any]) -> Series:
        """Return `formula(m, *values)` where a mask holds, 0 elsewhere."""
        return self.where(mask, formula(self, *values), 0.0)

    def matters(self, term: Any, total: Any, eps: float) -> Any:
        """Return where any coefficient of a term is more than `eps` of that of the total."""
        term, total, found = self._of(term), self._of(total), None
        for k, c in term.terms.items():
            size = total.terms.get(k)
            size = total.value if size is None or _is_number(total) else size
            mask = self.inner.matters(c, size, eps)
            found = mask if found is None else found | mask
        return found

    def loop(
        self, unfinished: formula_backends.Condition, step: Step, values: Sequence[Any], limit: int,
        tables: Sequence[Sequence[float]] = (), *, wide: bool = False,
    ) -> list[Series]:  # fmt: skip
        """Apply `values = step(n, *values)` as `HostMath.loop` does."""
        del wide  # what is differentiated cancels
        first = [self._of(v) for v in values]
        like = next(v.value for v in first if not _is_number(v))
        kept = _powers_of_loop(step, first, tables, self.highest)

        def flat(state: Sequence[Series]) -> list[Any]:
            found = []
            for series, powers in zip(state, kept, strict=True):
                for k in powers:
                    c = series.terms.get(k, 0.0)
                    found.append(_zero_like(like) + c if type(c) is float else c)
            return found

        def state_of(numbers: Sequence[Any]) -> list[Series]:
            numbers_left = iter(numbers)
            return [
                Series({k: next(numbers_left) for k in powers}, self.highest) for powers in kept
            ]

        def flat_step(m: Any, n: Any, *rest: Any) -> tuple[Any, ...]:
            taylor = TaylorMath(m, self.highest)
            entries = [taylor._of(e) for e in rest[: len(tables)]]
            state = state_of(rest[len(tables) :])
            return tuple(flat([taylor._of(v) for v in
                               step(taylor, taylor._of(n), *entries, *state)]))  # fmt: skip

        def flat_unfinished(m: Any, *numbers: Any) -> Any:
            return unfinished(TaylorMath(m, self.highest), *state_of(numbers))  # type: ignore[misc]

        condition = None if unfinished is None else flat_unfinished
        return state_of(
            self.inner.loop(condition, flat_step, flat(first), limit, tables, wide=True)
        )


def _is_number(x: Series) -> bool:
    return type(x.value) in (float, int)  # a scalar of NumPy is an array


def _coefficient(x: Series, k: Order) -> Any:
    """Return a coefficient; a constant that is not a finite number has no derivative."""
    if k in x.terms:
        return x.terms[k]
    return math.nan if _is_number(x) and not math.isfinite(x.value) else 0.0


def _powers_of_loop(step: Step, first: list[Series], tables: Any, highest: Order) -> list[Any]:
    """Return the powers that each value of a loop has, found by steps on numbers."""
    kept = [list(v.terms) for v in first]
    taylor = TaylorMath(formula_backends.HostMath(), highest)
    while True:
        state = [Series({k: np.ones(()) for k in powers}, highest) for powers in kept]
        entries = [taylor._of(1.0) for _ in tables]
        with np.errstate(all="ignore"):
            found = [taylor._of(v) for v in step(taylor, taylor._of(np.ones(())), *entries, *state)]
        union = [
            [k for k in v.powers() if k in v.terms or k in powers]
            for v, powers in zip(found, kept, strict=True)
        ]
        if union == [sorted(p, key=v.powers().index) for p, v in zip(kept, found, strict=True)]:
            return union
        kept = union


# --- primitives -----------------------------------------------------------------------------------

DerivativeInX = Callable[..., Any]


@primitive_maker
def with_parameters(
    name: str, formula: Formula, count: int, in_x: DerivativeInX, operation: str = "",
    stablehlo: Callable[..., list[str]] | None = None,
) -> Primitive:  # fmt: skip
    """Define a function of some parameters and x.

    Its derivatives in the parameters are those of a primitive that `derivatives_of` defines.

    Args:
      name: of the primitive; that of its derivatives ends in `_derivative`.
      formula: of the parameters and x.
      count: how many parameters there are.
      in_x: the derivative in x of a derivative of some orders: a function of the function from
        orders and operands to a derivative, of the orders, and of the operands.
      operation: what errors call the function; by default the name.
      stablehlo: the rule, by default that of the formula.
    """
    numpy_formula = numpy_rule(formula)

    def jvp(primals: Any, tangents: Any) -> Any:
        outs = state.trace.process(primitive, tuple(primals), {})
        return outs, (_tangent(name, count, in_x, (0,) * count, primals, tangents, outs[0].aval),)

    primitive = _elementwise(
        name, operation or name, lambda *xs: (numpy_formula(*xs),),
        stablehlo or stablehlo_rule(formula), jvp,
    )  # fmt: skip
    return primitive


@primitive_maker
def derivatives_of(
    name: str, formula: Formula, count: int, in_x: DerivativeInX | None = None
) -> Primitive:
    """Define the derivatives of a primitive in its first operands.

    The static parameter `orders` says how often each is differentiated in.

    Args:
      name: that of the primitive and `_derivative`.
      formula: of its value.
      count: how many operands are parameters.
      in_x: see `with_parameters`; None where all operands are parameters.
    """
    function = name.removesuffix("_derivative")

    def numpy(*operands: Any, orders: Order) -> Any:
        return (numpy_rule(derivative_of(formula, orders))(*operands),)

    def stablehlo(
        b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, orders: Order
    ) -> Any:
        return stablehlo_rule(derivative_of(formula, orders))(b, operands, avals_in, avals_out)

    def jvp(primals: Any, tangents: Any, *, orders: Order) -> Any:
        outs = state.trace.process(primitive, tuple(primals), {"orders": orders})
        return outs, (_tangent(function, count, in_x, orders, primals, tangents, outs[0].aval),)

    primitive = _elementwise(name, function, numpy, stablehlo, jvp)
    return primitive


@primitive_maker
def _elementwise(name: str, operation: str, numpy: Any, stablehlo: Any, jvp: Any) -> Primitive:
    return Primitive(
        name,
        shape=elementwise_shape(operation, FLOATING),
        numpy=numpy,
        stablehlo=stablehlo,
        jvp=jvp,
        transpose=undefined("it is not linear"),
        batch=ELEMENTWISE,
        eager=costs.special,
    )


def _tangent(
    name: str, count: int, in_x: Any, orders: Order, primals: Any, tangents: Any, aval: Any
) -> Any:
    """Return the tangent of a derivative: the next derivatives times the tangents of operands."""

    def derivative(orders: Order, operands: Any) -> Any:
        if not any(orders):
            return bind(name, *operands)
        return bind(f"{name}_derivative", *operands, orders=orders)

    total: Any = Zero(aval)
    for k, dot in enumerate(tangents):
        if type(dot) is Zero:
            continue
        if k == count:
            by = in_x(derivative, orders, *primals)
        else:
            by = derivative(tuple([n + (i == k) for i, n in enumerate(orders)]), primals)
        product = mul(dot, repeat_scalar(by, aval.shape))
        total = product if type(total) is Zero else add(total, product)
    return total
