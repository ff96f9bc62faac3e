"""Polynomials with integer coefficients, of which symbolic dimensions are made.

A polynomial is a dictionary from monomials to coefficients; a monomial is a sorted tuple of atoms,
`()` the constant one; an atom is the name of a variable, or a function of polynomials:
`("floordiv", p, q)`, `("mod", p, q)`, `("max", p, q)`, `("min", p, q)`, each in frozen form.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ()

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


def frozen(p: Polynomial) -> Frozen:
    """Return a polynomial as a tuple, terms of many factors first."""
    return tuple(sorted(p.items(), key=lambda term: (-len(term[0]), repr(term[0]))))


def constant(n: int) -> Polynomial:
    """Return the polynomial of a number."""
    return {(): n} if n else {}


def added(p: Polynomial, q: Polynomial, factor: int = 1) -> Polynomial:
    """Return p + factor * q."""
    total = dict(p)
    for monomial, c in q.items():
        total[monomial] = total.get(monomial, 0) + factor * c
    return {m: c for m, c in total.items() if c}


def multiplied(p: Polynomial, q: Polynomial) -> Polynomial:
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


def divided(p: Polynomial, q: Polynomial) -> tuple[Polynomial, Polynomial]:
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
    lead, d = frozen(q)[0]
    quotient, rest = {}, dict(p)
    for _ in range(8):
        terms = [_divide_term(m, c, lead, d) for m, c in rest.items()]
        term = next(filter(None, terms), None)
        if term is None:
            break
        quotient = added(quotient, dict([term]))
        rest = added(rest, multiplied(dict([term]), q), -1)
    return quotient, rest


def text(p: Frozen) -> str:
    """Return a polynomial as text, which `computed` reads.

    Example:
      >>> text(frozen({("b",): 2, (): -1, ("a", "b"): 1}))
      'a*b + 2*b - 1'
    """
    parts: list[str] = []
    for monomial, c in p:
        factors = [_atom_text(atom) for atom in monomial]
        if abs(c) != 1 or not factors:
            factors.insert(0, str(abs(c)))
        sign = ("- " if c < 0 else "+ ") if parts else ("-" if c < 0 else "")
        parts.append(sign + "*".join(factors))
    return " ".join(parts) or "0"


def _atom_text(atom: Any) -> str:
    if isinstance(atom, str):
        return atom
    name, p, q = atom
    return f"{name}({text(p)}, {text(q)})"


def evaluated(p: Frozen, value_by_name: Mapping[str, Any]) -> Any:
    """Return the value of a polynomial for values of its variables."""
    total: Any = 0
    for monomial, c in p:
        term: Any = c
        for atom in monomial:
            if isinstance(atom, str):
                term = term * value_by_name[atom]
            else:
                name, left, right = atom
                operands = [evaluated(side, value_by_name) for side in (left, right)]
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


def computed(source: str, value_by_name: Callable[[str], Any]) -> Any:
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
            raise ValueError(f"{ast.unparse(right)} is no exponent from 0 to 16")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_compute(left, value), _compute(right, value))
        case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in FUNCTIONS:
            return FUNCTIONS[name](_compute(left, value), _compute(right, value))
    raise ValueError(ast.unparse(node))


def _is_exponent(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value <= 16


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
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
                rest = added(p, other, -(p[m] // c))
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
