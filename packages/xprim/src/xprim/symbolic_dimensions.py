"""Symbolic dimensions: sizes that are not known while a program is traced, and their arithmetic."""

from __future__ import annotations

import ast
import math
import operator
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from xprim import source
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
# has such a number: symbolic dimensions are not integers. Primes are unlike common sizes.

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
        self._known: list[Polynomial] = []
        self._rewritten: dict[Monomial, Polynomial] = {}
        for each in self.constraints:
            self._learn(each)

    def dimension(self, text: str) -> Any:
        """Return the dimension that an expression stands for.

        Raises:
          ValueError: it is not an expression in `+ - * ^ floordiv mod max min`.
        """
        try:
            return compute(text, self._variable)
        except (ValueError, ZeroDivisionError) as error:
            reason = "" if str(error) in ("", text) else f": {error}"
            raise ValueError(message(
                "symbolic_shape", f"syntax error in symbolic shape {text!r}{reason}.",
                expected="names and numbers with + - * ^ floordiv mod max min",
            )) from None  # fmt: skip

    def _choose(self) -> None:
        """Find stand-ins that keep to what is known, if there are such."""
        for candidate in candidates(self.stand_ins.values()):
            found = dict(zip(self.stand_ins, candidate, strict=True))
            if all(evaluate(freeze(p), found) >= 0 for p in self._known):
                self.stand_ins = found
                return

    def _variable(self, name: str) -> Any:
        if name not in self.stand_ins:
            self.stand_ins[name] = _USUAL[len(self.stand_ins) % len(_USUAL)]
        return self.make({(name,): 1})

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
            self._known[:] = [_polynomial(self.make(p)) for p in self._known]
        else:
            more, less = (left, right) if found[2] == ">=" else (right, left)
            self._known.append(add(_polynomial(more), _polynomial(less), -1))
        self._choose()

    def make(self, p: Polynomial) -> Any:
        """Return the dimension of a polynomial: a plain int where it is one."""
        for monomial, value in self._rewritten.items():
            if monomial in p:
                p = add({m: c for m, c in p.items() if m != monomial}, value, p[monomial])
        if not p or set(p) == {()}:
            return p.get((), 0)
        return SymbolicDimension(self, freeze(p))

    def bounds(self, p: Polynomial) -> tuple[float, float]:
        """Return numbers between which a polynomial lies."""
        return bounds(p, self._known, lambda name: (1.0, float("inf")))

    def decide(self, p: Polynomial, comparison: Callable[[], str]) -> bool:
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
                "size", f"Symbolic dimension comparison {comparison()} is inconclusive.",
                got=f"{', '.join(sorted(variables(freeze(p))))} of at least 1"
                + (f"; {', '.join(self.constraints)}" if self.constraints else ""),
                where=source.describe(place),
                hint="symbolic_shape(..., constraints=[...]) says what is known of them",
            ))  # fmt: skip
        holds: bool = evaluate(freeze(p), self.stand_ins) >= 0
        fact = p if holds else add(constant(-1), p, -1)
        self._known.append(fact)
        self.assumptions[text(freeze(fact))] = source.describe(place)
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
    terms: Frozen

    def __new__(cls, scope: SymbolicScope, terms: Frozen) -> SymbolicDimension:
        """Return the dimension of a polynomial in a scope."""
        self = object.__new__(cls)
        self.scope = scope
        self.terms = terms
        return self

    @property
    def variables(self) -> set[str]:
        """The names of its variables."""
        return variables(self.terms)

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
        low, high = self.scope.bounds(add(p, q, -1))
        if low >= 0 or high <= 0:
            return self.scope.make(p if (low >= 0) == (name == "max") else q)
        first, second = sorted((freeze(p), freeze(q)), key=repr)
        return self.scope.make({((name, first, second),): 1})

    def _with(
        self, other: Any, combine: Callable[[Any, Any], Any], array: Callable[[Any, Any], Any]
    ) -> Any:
        """Return a polynomial of this and an integer, or an array of this and other numbers."""
        p = self._other(other)
        if p is not None:
            return self.scope.make(combine(dict(self.terms), p))
        is_number = isinstance(other, _INEXACT)
        return array(self._as_array(), other) if is_number else NotImplemented

    def _other(self, other: Any) -> Polynomial | None:
        if isinstance(other, SymbolicDimension):
            if other.scope is not self.scope:
                raise ValueError(message(
                    "symbolic_shape", "two dimensions are of different scopes.",
                    got=f"{self} and {other}",
                    hint="make them together, or symbolic_shape(..., scope=) for the second",
                ))  # fmt: skip
            return dict(other.terms)
        return constant(int(other)) if isinstance(other, int | np.integer) else None

    def __add__(self, other: Any) -> Any:
        return self._with(other, add, operator.add)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda p, q: add(p, q, -1), operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda p, q: add(q, p, -1), lambda x, y: y - x)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, multiply, operator.mul)

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

    def _divide_terms(
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
        return self._divide_terms(other, _floordiv, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._divide_terms(other, _floordiv, operator.floordiv, swapped=True)

    def __mod__(self, other: Any) -> Any:
        return self._divide_terms(other, _mod, operator.mod)

    def __rmod__(self, other: Any) -> Any:
        return self._divide_terms(other, _mod, operator.mod, swapped=True)

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
        p = add(q, dict(self.terms), -1)
        p = add({m: sign * c for m, c in p.items()}, constant(plus))
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
        inside = text(self.terms)
        return f"$[{inside}]" if getattr(_writing, "on", False) else inside

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod,
}  # fmt: skip


def _polynomial(x: Any) -> Polynomial:
    return dict(x.terms) if isinstance(x, SymbolicDimension) else constant(int(x))


def _floordiv(scope: SymbolicScope, p: Polynomial, q: Polynomial) -> Any:
    _check_divisor(q)
    quotient, rest = _divide(scope, p, q)
    if rest and not _is_remainder(scope, rest, q):
        atom = ("floordiv", freeze(rest), freeze(q))
        quotient = add(quotient, {(atom,): 1})
    return scope.make(quotient)


def _divide(scope: SymbolicScope, p: Polynomial, q: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Return quotient and rest, with a rest from -q to -1 brought into the range of remainders."""
    quotient, rest = divide_exactly(p, q)
    if rest and scope.bounds(rest)[1] < 0 and scope.bounds(add(rest, q))[0] >= 0:
        return add(quotient, constant(-1)), add(rest, q)
    return quotient, rest


def _check_divisor(q: Polynomial) -> None:
    if not q:
        raise ZeroDivisionError("division of a symbolic dimension by zero")


def _mod(scope: SymbolicScope, p: Polynomial, q: Polynomial) -> Any:
    _check_divisor(q)
    _, rest = _divide(scope, p, q)
    if not rest or _is_remainder(scope, rest, q):
        return scope.make(rest)
    return scope.make({(("mod", freeze(rest), freeze(q)),): 1})


def _is_remainder(scope: SymbolicScope, rest: Polynomial, q: Polynomial) -> bool:
    """Return whether 0 <= rest < q for sure."""
    return scope.bounds(rest)[0] >= 0 and scope.bounds(add(q, rest, -1))[0] > 0


def is_symbolic(p: Any) -> bool:
    """Return whether a size is a symbolic dimension."""
    return isinstance(p, SymbolicDimension)


def dimension_text(d: Any) -> str:
    """Return a size as text: a number, or the expression."""
    return text(d.terms) if isinstance(d, SymbolicDimension) else str(d)


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
    return compute(expression, value_by_name.__getitem__)


# -------------------------------------------------------------------------------------- polynomials
# Polynomials with integer coefficients, of which symbolic dimensions are made.
#
# A polynomial is a dictionary from monomials to coefficients; a monomial is a sorted tuple of
# atoms, `()` the constant one; an atom is the name of a variable, or a function of polynomials:
# `("floordiv", p, q)`, `("mod", p, q)`, `("max", p, q)`, `("min", p, q)`, each in frozen form.

Monomial = tuple[Any, ...]
Polynomial = dict[Monomial, int]
Frozen = tuple[tuple[Monomial, int], ...]

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda p, q: p // q, "mod": lambda p, q: p % q,
    "max": lambda p, q: _extreme("max", p, q), "min": lambda p, q: _extreme("min", p, q),
}  # fmt: skip


def _extreme(name: str, p: Any, q: Any) -> Any:
    """Return the larger or the smaller of numbers, or of what knows how to make that."""
    for one, other in ((p, q), (q, p)):
        if hasattr(one, "extreme"):
            return one.extreme(name, other)
    return max(p, q) if name == "max" else min(p, q)


def freeze(p: Polynomial) -> Frozen:
    """Return a polynomial as a tuple, terms of many factors first."""
    return tuple(sorted(p.items(), key=lambda term: (-len(term[0]), repr(term[0]))))


def constant(n: int) -> Polynomial:
    """Return the polynomial of a number."""
    return {(): n} if n else {}


def add(p: Polynomial, q: Polynomial, factor: int = 1) -> Polynomial:
    """Return p + factor * q."""
    total = dict(p)
    for monomial, c in q.items():
        total[monomial] = total.get(monomial, 0) + factor * c
    return {m: c for m, c in total.items() if c}


def multiply(p: Polynomial, q: Polynomial) -> Polynomial:
    """Return p * q."""
    total: Polynomial = {}
    for m, c in p.items():
        for n, d in q.items():
            both = tuple(sorted(m + n, key=repr))
            total[both] = total.get(both, 0) + c * d
    return {m: c for m, c in total.items() if c}


def _divide_term(m: Monomial, c: int, n: Monomial, d: int) -> tuple[Monomial, int] | None:
    rest = list(m)
    for atom in n:
        if atom not in rest:
            return None
        rest.remove(atom)
    return None if c % d else (tuple(rest), c // d)


def divide_exactly(p: Polynomial, q: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Return s and r with p = s * q + r, where s takes what q divides exactly."""
    if len(q) == 1:
        ((n, d),) = q.items()
        quotient: Polynomial = {}
        rest: Polynomial = {}
        for m, c in p.items():
            found = _divide_term(m, c, n, d)
            if found is None:
                rest[m] = c
            else:
                quotient[found[0]] = found[1]
        return quotient, rest
    lead, d = freeze(q)[0]
    quotient, rest = {}, dict(p)
    for _ in range(8):
        terms = [_divide_term(m, c, lead, d) for m, c in rest.items()]
        term = next(filter(None, terms), None)
        if term is None:
            break
        quotient = add(quotient, dict([term]))
        rest = add(rest, multiply(dict([term]), q), -1)
    return quotient, rest


def text(p: Frozen) -> str:
    """Return a polynomial as text, which `compute` reads; large terms come first, as in JAX.

    Example:
      >>> text(freeze({("b",): 2, (): -1, ("a", "a"): -1}))
      '- a^2 + 2*b - 1'
    """
    parts: list[str] = []
    for monomial, c in sorted(p, key=lambda term: _order_of_term(term[0]), reverse=True):
        powers = sorted(Counter(monomial).items(), key=lambda power: _order_of_atom(power[0]))
        factors = [_atom_text(atom) + (f"^{n}" if n > 1 else "") for atom, n in powers]
        if abs(c) != 1 or not factors:
            factors.insert(0, str(abs(c)))
        sign = "- " if c < 0 else "+ " if parts else ""
        parts.append(sign + "*".join(factors))
    return " ".join(parts) or "0"


def _order_of_term(monomial: Monomial) -> tuple[Any, ...]:
    """Return what terms are ordered by in texts: the number of symbols, then the largest atom."""
    powers = sorted(((_order_of_atom(a), n) for a, n in Counter(monomial).items()), reverse=True)
    return sum(order[0] * n for order, n in powers), powers


def _order_of_atom(atom: Any) -> tuple[Any, ...]:
    if isinstance(atom, str):
        return 1, atom, []
    name, *sides = atom
    terms = [[(_order_of_term(m), c) for m, c in side] for side in sides]
    return 1 + sum(order[0] for side in terms for order, _ in side), name, terms


def _atom_text(atom: Any) -> str:
    if isinstance(atom, str):
        return atom
    name, p, q = atom
    return f"{name}({text(p)}, {text(q)})"


def evaluate(p: Frozen, value_by_name: Mapping[str, Any]) -> Any:
    """Return the value of a polynomial for values of its variables."""
    total: Any = 0
    for monomial, c in p:
        term: Any = c
        for atom in monomial:
            if isinstance(atom, str):
                term = term * value_by_name[atom]
            else:
                name, left, right = atom
                operands = [evaluate(side, value_by_name) for side in (left, right)]
                term = term * FUNCTIONS[name](*operands)
        total = total + term
    return total


def variables(p: Frozen) -> set[str]:
    """Return the names of the variables of a polynomial."""
    found: set[str] = set()
    for monomial, _ in p:
        for atom in monomial:
            is_name = isinstance(atom, str)
            found |= {atom} if is_name else variables(atom[1]) | variables(atom[2])
    return found


def compute(source: str, value_by_name: Callable[[str], Any]) -> Any:
    """Return the value of an expression in `+ - * ^ floordiv mod max min`, names and numbers.

    Raises:
      ValueError: it is something else.
    """
    try:
        tree = ast.parse(source.strip().replace("^", "**"), mode="eval").body
    except SyntaxError:
        raise ValueError(source) from None
    return _compute(tree, value_by_name)


def _compute(node: ast.AST, value: Callable[[str], Any]) -> Any:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return value(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_compute(operand, value)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _compute(operand, value)
        case ast.BinOp(op=ast.Pow(), right=right) if not _is_exponent(right):
            raise ValueError(f"{ast.unparse(right)} is not an exponent from 0 to 16")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _ARITHMETIC[type(op)](_compute(left, value), _compute(right, value))
        case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in FUNCTIONS:
            return FUNCTIONS[name](_compute(left, value), _compute(right, value))
    raise ValueError(ast.unparse(node))


def _is_exponent(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value <= 16


_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda p, q: p + q, ast.Sub: lambda p, q: p - q, ast.Mult: lambda p, q: p * q,
    ast.FloorDiv: lambda p, q: p // q, ast.Mod: lambda p, q: p % q, ast.Pow: lambda p, q: p**q,
}  # fmt: skip

Bounds = tuple[float, float]


def bounds(
    p: Polynomial, known: list[Polynomial], of_variable: Callable[[str], Bounds], depth: int = 2
) -> Bounds:
    """Return numbers between which a polynomial lies for all values of its variables.

    Args:
      p: the polynomial.
      known: polynomials that are not negative.
      of_variable: the bounds of a variable.
      depth: how many of them may be used at a time.
    """
    low = _lower(p, known, of_variable, depth)
    high = -_lower({m: -c for m, c in p.items()}, known, of_variable, depth)
    return low, high


def _lower(p: Polynomial, known: list[Polynomial], of_variable: Any, depth: int) -> float:
    low = sum([
        min(x * c for x in _of_monomial(m, known, of_variable)) for m, c in p.items()
    ])  # fmt: skip
    if depth == 0 or not any(p):
        return low
    for other in known:
        for m, c in other.items():
            if m and p.get(m, 0) * c > 0 and p[m] % c == 0:
                rest = add(p, other, -(p[m] // c))
                low = max(low, _lower(rest, known, of_variable, depth - 1))
    return low


def _of_monomial(m: Monomial, known: list[Polynomial], of_variable: Any) -> Bounds:
    low, high = 1.0, 1.0
    for atom in m:
        ends = of_variable(atom) if isinstance(atom, str) else _of_atom(atom, known, of_variable)
        products = [_times(x, y) for x in (low, high) for y in ends]
        low, high = min(products), max(products)
    return low, high


def _times(x: float, y: float) -> float:
    return 0.0 if x == 0 or y == 0 else x * y


def _of_atom(atom: Any, known: list[Polynomial], of_variable: Any) -> Bounds:
    name, left, right = atom
    a, b = [bounds(dict(side), [], of_variable) for side in (left, right)]
    if name in ("max", "min"):
        choose = FUNCTIONS[name]
        return choose(a[0], b[0]), choose(a[1], b[1])
    if name == "mod" and b[0] > 0:
        return 0.0, b[1] - 1
    if name == "floordiv" and b[0] > 0:
        ends = [_floor(x, y) for x in a for y in b]
        return min(ends), max(ends)
    return -math.inf, math.inf


def _floor(x: float, y: float) -> float:
    if math.isinf(x):
        return x
    return (0.0 if x >= 0 else -1.0) if math.isinf(y) else float(x // y)
