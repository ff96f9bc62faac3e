"""Symbolic dimensions: sizes that are not known while a program is traced."""

from __future__ import annotations

import math
import operator
import re
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from xprim import polynomials as poly, source
from xprim.avals import SymbolicSize
from xprim.errors import InconclusiveDimensionOperation
from xprim.primitive import get_primitive
from xtree.boundaries import boundary
from xtree.errors import message

__all__ = [
    "SymbolicDimension", "SymbolicScope", "dimension_text", "is_symbolic", "substituted_text",
    "value_of", "written_for_programs",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------- stand ins
# The numbers by which the library decides what the variables leave open.
#
# What is decided by them is noted as an assumption, and calls are checked against it. No program
# has such a number: symbolic dimensions are no integers. Primes are unlike common sizes.

_USUAL = [53, 59, 61, 67, 71, 73, 79]


def candidates(now: Collection[int]) -> Iterator[Sequence[int]]:
    """Return numbers to try: those that the variables have, and small ones."""
    count = len(now)
    yield list(now)
    for attempt in range(1, 400):
        yield [1 + (attempt * (2 * k + 1) + 5 * k) % 400 for k in range(count)]


# --------------------------------------------------------------------------- symbolic dimensions
# Symbolic dimensions: sizes that are not known while a program is traced.
#
# A `SymbolicDimension` is computed with by the operators of integers, which give others, whose
# text says what they are (`2*b + 1`), so shapes, and all code that computes with shapes, work as
# they are. With other numbers it is an array. It has no `__index__`: code that takes the number
# itself (`range`, C code) gets an error where it does so. A comparison is decided by what is known
# of the variables. Where it cannot be, the user's code gets an error that teaches; the library
# takes what holds for the stand-ins, and the scope notes it as an assumption that calls are
# checked against.

_INEXACT = (float, complex, np.inexact, np.ndarray)
_SIGNS = {">=": [("+", "-")], "<=": [("-", "+")], "==": [("+", "-"), ("-", "+")]}
_writing = threading.local()


class SymbolicScope:
    """The variables of symbolic dimensions, and what is known of them: each is at least 1.

    Args:
      constraints_str: such as `"a >= b"`, `"n <= 1024"`, `"mod(n, 8) == 0"`.

    Attributes:
      assumptions: what the library took to hold: what is not negative, and where.
      facts: the same of the constraints, with their text.

    Example:
      >>> scope = SymbolicScope(["n >= 4"])
      >>> scope.dimension("2*n") >= 8
      True
    """

    @boundary
    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        self.constraints = tuple(constraints_str)
        self.assumptions: dict[str, str] = {}
        self.facts: dict[str, str] = {}
        self.stand_ins: dict[str, int] = {}
        self._known: list[poly.Polynomial] = []
        self._rewritten: dict[poly.Monomial, poly.Polynomial] = {}
        for each in self.constraints:
            self._learn(each)

    def dimension(self, text: str) -> Any:
        """Return the dimension that an expression stands for.

        Raises:
          ValueError: it is no expression in `+ - * ^ floordiv mod max min`.
        """
        try:
            return poly.computed(text, self._variable)
        except (ValueError, ZeroDivisionError) as error:
            reason = "" if str(error) in ("", text) else f": {error}"
            raise ValueError(message(
                "symbolic_shape", "a dimension is not understood.", got=f"{text!r}{reason}",
                expected="names and numbers with + - * ^ floordiv mod max min",
            )) from None  # fmt: skip

    def _choose(self) -> None:
        """Find stand-ins that keep to what is known, if there are such."""
        for candidate in candidates(self.stand_ins.values()):
            found = dict(zip(self.stand_ins, candidate, strict=True))
            if all(poly.evaluated(poly.frozen(p), found) >= 0 for p in self._known):
                self.stand_ins = found
                return

    def _variable(self, name: str) -> Any:
        if name not in self.stand_ins:
            self.stand_ins[name] = _USUAL[len(self.stand_ins) % len(_USUAL)]
        return self.made({(name,): 1})

    def _learn(self, constraint: str) -> None:
        found = re.fullmatch(r"(.+?)(==|>=|<=)(.+)", constraint)
        if found is None:
            raise ValueError(message(
                "symbolic_shape", "a constraint is not understood.", got=repr(constraint),
                expected="two expressions joined by ==, >= or <=",
            ))  # fmt: skip
        left, right = self.dimension(found[1]), self.dimension(found[3])
        for first, second in _SIGNS[found[2]]:
            self.facts[f"{first}({found[1].strip()}) {second} ({found[3].strip()})"] = constraint
        if found[2] == "==":
            sides = [_polynomial(x) for x in (left, right)]
            if len(sides[0]) != 1 or next(iter(sides[0].values())) != 1:
                raise ValueError(message(
                    "symbolic_shape", "an equality says what one variable or function is.",
                    got=repr(constraint), expected="such as a == 2*b, or mod(b, 4) == 0",
                ))  # fmt: skip
            self._rewritten[next(iter(sides[0]))] = sides[1]
            self._known[:] = [_polynomial(self.made(p)) for p in self._known]
        else:
            more, less = (left, right) if found[2] == ">=" else (right, left)
            self._known.append(poly.added(_polynomial(more), _polynomial(less), -1))
        self._choose()

    def made(self, p: poly.Polynomial) -> Any:
        """Return the dimension of a polynomial: a plain int where it is one."""
        for monomial, value in self._rewritten.items():
            if monomial in p:
                p = poly.added({m: c for m, c in p.items() if m != monomial}, value, p[monomial])
        if not p or set(p) == {()}:
            return p.get((), 0)
        return SymbolicDimension(self, poly.frozen(p))

    def bounds(self, p: poly.Polynomial) -> tuple[float, float]:
        """Return numbers between which a polynomial lies."""
        return poly.bounds(p, self._known, lambda name: (1.0, float("inf")))

    def decide(self, p: poly.Polynomial, comparison: Callable[[], str]) -> bool:
        """Return whether a polynomial is not negative.

        Raises:
          InconclusiveDimensionOperation: that depends on the variables, and a user asks.
        """
        low, high = self.bounds(p)
        if low >= 0 or high < 0:
            return low >= 0
        place = source.capture(3)
        frame = sys._getframe(3 if sys._getframe(2).f_code.co_filename == __file__ else 2)
        if not source.is_hidden(frame.f_code.co_filename):
            raise InconclusiveDimensionOperation(message(
                "comparison", f"whether {comparison()} depends on the symbolic dimensions.",
                got=f"{', '.join(sorted(poly.variables(poly.frozen(p))))} of at least 1"
                + (f"; {', '.join(self.constraints)}" if self.constraints else ""),
                where=source.describe(place),
                hint="symbolic_shape(..., constraints=[...]) says what is known of them",
            ))  # fmt: skip
        holds: bool = poly.evaluated(poly.frozen(p), self.stand_ins) >= 0
        fact = p if holds else poly.added(poly.constant(-1), p, -1)
        self._known.append(fact)
        self.assumptions[poly.text(poly.frozen(fact))] = source.describe(place)
        return holds

    def __repr__(self) -> str:
        return f"SymbolicScope({', '.join(map(repr, self.constraints))})"


class SymbolicDimension(SymbolicSize):
    """A size that is not known yet; see the module.

    Example:
      >>> b = SymbolicScope().dimension("b")
      >>> 2 * b + b, (4 * b) // 2, b == 3, b >= 1
      (3*b, 2*b, False, True)
    """

    __slots__ = ("scope", "terms")

    scope: SymbolicScope
    terms: poly.Frozen

    def __new__(cls, scope: SymbolicScope, terms: poly.Frozen) -> SymbolicDimension:
        """Return the dimension of a polynomial in a scope."""
        self = object.__new__(cls)
        self.scope = scope
        self.terms = terms
        return self

    @property
    def variables(self) -> set[str]:
        """The names of its variables."""
        return poly.variables(self.terms)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Take the operators of NumPy's scalars and arrays, which would ask for the number."""
        operation = _OPERATORS.get(ufunc.__name__)
        if operation is None or method != "__call__" or options:
            raise self._not_a_number(f"numpy.{ufunc.__name__}")
        if all(isinstance(x, SymbolicSize | int | np.integer) for x in inputs):
            return operation(*[x.item() if isinstance(x, np.integer) else x for x in inputs])
        arrays = [x._as_array() if isinstance(x, SymbolicDimension) else x for x in inputs]
        return operation(*arrays)

    def extreme(self, name: str, other: Any) -> Any:
        """Return the larger or the smaller of this and another size, named `max` or `min`."""
        p, q = dict(self.terms), self._other(other)
        assert q is not None
        low, high = self.scope.bounds(poly.added(p, q, -1))
        if low >= 0 or high <= 0:
            return self.scope.made(p if (low >= 0) == (name == "max") else q)
        first, second = sorted((poly.frozen(p), poly.frozen(q)), key=repr)
        return self.scope.made({((name, first, second),): 1})

    def _with(
        self, other: Any, combine: Callable[[Any, Any], Any], array: Callable[[Any, Any], Any]
    ) -> Any:
        """Return a polynomial of this and an integer, or an array of this and other numbers."""
        p = self._other(other)
        if p is not None:
            return self.scope.made(combine(dict(self.terms), p))
        is_number = isinstance(other, _INEXACT)
        return array(self._as_array(), other) if is_number else NotImplemented

    def _other(self, other: Any) -> poly.Polynomial | None:
        if isinstance(other, SymbolicDimension):
            if other.scope is not self.scope:
                raise ValueError(message(
                    "symbolic_shape", "two dimensions are of different scopes.",
                    got=f"{self} and {other}",
                    hint="make them together, or symbolic_shape(..., scope=) for the second",
                ))  # fmt: skip
            return dict(other.terms)
        return poly.constant(int(other)) if isinstance(other, int | np.integer) else None

    def __add__(self, other: Any) -> Any:
        return self._with(other, poly.added, operator.add)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda p, q: poly.added(p, q, -1), operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda p, q: poly.added(q, p, -1), lambda x, y: y - x)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, poly.multiplied, operator.mul)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        if type(exponent) is not int or not 0 <= exponent <= 16 or modulus is not None:
            return self._as_array() ** exponent
        result: Any = 1
        for _ in range(exponent):
            result = self * result
        return result

    def _divided(
        self, other: Any, divide: Callable[..., Any], array: Callable[[Any, Any], Any],
        swapped: bool = False,
    ) -> Any:  # fmt: skip
        """Return what a division by, or of, an integer gives; an array for other numbers."""
        p = self._other(other)
        if p is not None:
            mine = dict(self.terms)
            return divide(self.scope, p, mine) if swapped else divide(self.scope, mine, p)
        if not isinstance(other, _INEXACT):
            return NotImplemented
        return array(other, self._as_array()) if swapped else array(self._as_array(), other)

    def __floordiv__(self, other: Any) -> Any:
        return self._divided(other, _floordiv, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._divided(other, _floordiv, operator.floordiv, swapped=True)

    def __mod__(self, other: Any) -> Any:
        return self._divided(other, _mod, operator.mod)

    def __rmod__(self, other: Any) -> Any:
        return self._divided(other, _mod, operator.mod, swapped=True)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return self._as_array() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self._as_array()

    def _as_array(self) -> Any:
        return get_primitive("dimension_value").bind(dimension=self)[0]

    __xstack_array__ = __jax_array__ = _as_array

    def _less(self, other: Any, comparison: Callable[[], str], sign: int, plus: int) -> Any:
        """Decide sign * (other - self) + plus >= 0."""
        is_integer = isinstance(other, SymbolicSize | int | np.integer)
        if (
            not is_integer and hasattr(other, "__ceil__") and math.isfinite(other)
        ):  # the integer that decides the same
            other = (math.ceil if (sign > 0) == (plus < 0) else math.floor)(other)
        q = self._other(other)
        if q is None:
            return NotImplemented
        p = poly.added(q, dict(self.terms), -1)
        p = poly.added({m: sign * c for m, c in p.items()}, poly.constant(plus))
        return self.scope.decide(p, comparison)

    def __lt__(self, other: Any) -> Any:
        return self._less(other, lambda: f"{self} < {other}", 1, -1)

    def __le__(self, other: Any) -> Any:
        return self._less(other, lambda: f"{self} <= {other}", 1, 0)

    def __gt__(self, other: Any) -> Any:
        return self._less(other, lambda: f"{self} > {other}", -1, -1)

    def __ge__(self, other: Any) -> Any:
        return self._less(other, lambda: f"{self} >= {other}", -1, 0)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SymbolicDimension):
            return self is other or (self.scope is other.scope and self.terms == other.terms)
        return False  # of an int: what is always the same number is a plain one

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((id(self.scope), self.terms))

    def __bool__(self) -> bool:
        return True

    def _refuse(kind: str) -> Callable[..., Any]:  # noqa: N805 - of the class body
        """Return the method of a protocol that needs the number."""

        def method(self: SymbolicDimension, *_args: Any) -> Any:
            raise self._not_a_number(kind)

        return method

    __index__, __int__, __float__ = _refuse("index"), _refuse("int"), _refuse("float")
    __round__, __trunc__ = _refuse("round"), _refuse("trunc")
    __floor__, __ceil__, __invert__ = _refuse("floor"), _refuse("ceil"), _refuse("invert")
    __and__ = __rand__ = _refuse("and")
    __or__ = __ror__ = _refuse("or")
    __xor__ = __rxor__ = _refuse("xor")
    __lshift__ = __rlshift__ = _refuse("shift")
    __rshift__ = __rrshift__ = _refuse("shift")
    __rpow__ = _refuse("power")
    del _refuse

    def _not_a_number(self, kind: str) -> InconclusiveDimensionOperation:
        return InconclusiveDimensionOperation(message(
            kind, f"the symbolic dimension {self} has no number while the program is made.",
            hint="compute with the dimension itself, or with xnp.asarray(dimension): range(n) and\n"
            "numpy.zeros(n) take the number; loops of lax, xnp.zeros(n) and n * 1.5 do not",
        ))  # fmt: skip

    def __copy__(self) -> SymbolicDimension:
        return self

    def __deepcopy__(self, _memo: Any) -> SymbolicDimension:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(f"pickle: the symbolic dimension {self} belongs to its scope.")

    def __repr__(self) -> str:
        inside = poly.text(self.terms)
        return f"$[{inside}]" if getattr(_writing, "on", False) else inside

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod,
}  # fmt: skip


def _polynomial(x: Any) -> poly.Polynomial:
    return dict(x.terms) if isinstance(x, SymbolicDimension) else poly.constant(int(x))


def _floordiv(scope: SymbolicScope, p: poly.Polynomial, q: poly.Polynomial) -> Any:
    _check_divisor(q)
    quotient, rest = _divide(scope, p, q)
    if rest and not _is_remainder(scope, rest, q):
        atom = ("floordiv", poly.frozen(rest), poly.frozen(q))
        quotient = poly.added(quotient, {(atom,): 1})
    return scope.made(quotient)


def _divide(
    scope: SymbolicScope, p: poly.Polynomial, q: poly.Polynomial
) -> tuple[poly.Polynomial, poly.Polynomial]:
    """Return quotient and rest, with a rest from -q to -1 brought into the range of remainders."""
    quotient, rest = poly.divided(p, q)
    if rest and scope.bounds(rest)[1] < 0 and scope.bounds(poly.added(rest, q))[0] >= 0:
        return poly.added(quotient, poly.constant(-1)), poly.added(rest, q)
    return quotient, rest


def _check_divisor(q: poly.Polynomial) -> None:
    if not q:
        raise ZeroDivisionError("division of a symbolic dimension by zero")


def _mod(scope: SymbolicScope, p: poly.Polynomial, q: poly.Polynomial) -> Any:
    _check_divisor(q)
    _, rest = _divide(scope, p, q)
    if not rest or _is_remainder(scope, rest, q):
        return scope.made(rest)
    return scope.made({(("mod", poly.frozen(rest), poly.frozen(q)),): 1})


def _is_remainder(scope: SymbolicScope, rest: poly.Polynomial, q: poly.Polynomial) -> bool:
    """Return whether 0 <= rest < q for sure."""
    return scope.bounds(rest)[0] >= 0 and scope.bounds(poly.added(q, rest, -1))[0] > 0


def is_symbolic(p: Any) -> bool:
    """Return whether a size is a symbolic dimension."""
    return isinstance(p, SymbolicDimension)


def dimension_text(d: Any) -> str:
    """Return a size as text: a number, or the expression."""
    return poly.text(d.terms) if isinstance(d, SymbolicDimension) else str(d)


@contextmanager
def written_for_programs() -> Iterator[None]:
    """Let dimensions write themselves as `$[expression]`, which `substituted_text` finds."""
    previous = getattr(_writing, "on", False)
    _writing.on = True
    try:
        yield
    finally:
        _writing.on = previous


_PLACE = re.compile(r"\$\[([^\]]*)\]")


def substituted_text(text: str, value_by_name: Mapping[str, Any]) -> str:
    """Return the text of a program with its dimensions replaced by numbers.

    Example:
      >>> substituted_text("tensor<$[2*b + 1]xf32>", {"b": 3})
      'tensor<7xf32>'
    """
    return _PLACE.sub(lambda m: str(value_of(m[1], value_by_name)), text)


def value_of(expression: str, value_by_name: Mapping[str, Any]) -> Any:
    """Return the value of an expression for values of its variables."""
    return poly.computed(expression, value_by_name.__getitem__)
