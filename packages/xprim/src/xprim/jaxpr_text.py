"""Jaxprs as text, in the form that JAX's users know.

    { lambda ; a:f32[2]. let b:f32[2] = integer_pow[y=2] a in (b,) }

Variables are named a, b, ..., z, ba, bb, ... in order of appearance, through all jaxprs inside; one
that nothing uses is `_`. A primitive's `print` rule may leave out params that say nothing new.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from xprim import dtypes
from xprim.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var, subjaxprs
from xprim.source import describe

__all__ = ()

_WIDTH = 80


def format_jaxpr(
    jaxpr: Jaxpr | Equation, *, source_info: bool = False, name_stack: bool = False
) -> str:
    """Return a jaxpr, or one of its equations, as text.

    Args:
      jaxpr: the program, or an equation, whose variables are named anew, its operands first.
      source_info: whether each equation is followed by the user's line it came from.
      name_stack: whether each equation is followed by its named scopes.
    """
    if isinstance(jaxpr, Equation):
        alone = _Printer(Jaxpr((), (), jaxpr.outputs, [jaxpr]), source_info, name_stack)
        return "\n".join(alone.named_from_operands(jaxpr))
    return "\n".join(_Printer(jaxpr, source_info, name_stack).jaxpr(jaxpr, 0))


class _Printer:
    """Prints jaxprs as lists of lines; `column` is where the first line begins."""

    def __init__(self, jaxpr: Jaxpr, source_info: bool, name_stack: bool) -> None:
        self._source_info = source_info
        self._name_stack = name_stack
        self._used = set(_variables_used(jaxpr))
        self._names: dict[Var, str] = {}
        self._fresh = _letters()

    def jaxpr(self, jaxpr: Jaxpr, column: int) -> list[str]:
        consts = "".join([" " + self._binder(v) for v in jaxpr.constvars])
        head = f"{{ lambda{consts or ' '}; {self._binders(jaxpr.invars)}. let"
        body = [self.equation(eqn, column + 4) for eqn in jaxpr.eqns]
        tail = f"in {_in_parentheses([self._atom(x) for x in jaxpr.outvars])} }}"
        return self._laid_out(head, body, tail, column)

    def named_from_operands(self, eqn: Equation) -> list[str]:
        """Return an equation that stands for itself."""
        for x in eqn.inputs:
            self._atom(x)
        return self.equation(eqn, 0)

    def _laid_out(self, head: str, body: list[list[str]], tail: str, column: int) -> list[str]:
        """Return a jaxpr on one line where it fits."""
        if not body:
            return [f"{head}  {tail}"]
        if all(len(lines) == 1 for lines in body):
            line = f"{head} {'; '.join([lines[0] for lines in body])} {tail}"
            if column + len(line) <= _WIDTH:
                return [line]
        return [head, *("    " + line for lines in body for line in lines), "  " + tail]

    def equation(self, eqn: Equation, column: int) -> list[str]:
        left = self._result_binders(eqn.outputs)
        right = "".join([" " + self._atom(x) for x in eqn.inputs]) + self._notes(eqn)
        start = f"{left} = {eqn.primitive.name}"
        shown = _shown_params(eqn)
        if not shown:
            return [start + right]
        params = [self._param(name, value, column + 2) for name, value in shown]
        flat = f"{start}[{' '.join([lines[0] for lines in params])}]{right}"
        if all(len(lines) == 1 for lines in params) and column + len(flat) <= _WIDTH:
            return [flat]
        return [start + "[", *("  " + line for lines in params for line in lines), "]" + right]

    def _notes(self, eqn: Equation) -> str:
        notes = [describe(eqn.source)] if self._source_info else []
        if self._name_stack:
            notes.append("/".join(eqn.name_stack))
        text = " ".join([note for note in notes if note])
        return f"  # {text}" if text else ""

    def _param(self, name: str, value: Any, column: int) -> list[str]:
        if isinstance(value, ClosedJaxpr | Jaxpr):
            first, *rest = self.jaxpr(_open(value), column)
            return [f"{name}={first}", *rest]
        if isinstance(value, tuple) and value and isinstance(value[0], ClosedJaxpr | Jaxpr):
            inner = [line for item in value for line in self.jaxpr(_open(item), column + 2)]
            return [f"{name}=(", *("  " + line for line in inner), ")"]
        return [f"{name}={_value(value)}"]

    def _result_binders(self, variables: Sequence[Var]) -> str:
        shown = [self._binder(v) if v in self._used else f"_:{v.aval.str_short()}"
                 for v in variables]  # fmt: skip
        return " ".join(shown) or "_"

    def _binders(self, variables: Sequence[Var]) -> str:
        return " ".join([self._binder(v) for v in variables])

    def _binder(self, v: Var) -> str:
        return f"{self._name(v)}:{v.aval.str_short()}"

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Literal):
            value = atom.val
            text = value.item() if isinstance(value, np.generic) else value
            return f"{text}:{atom.aval.str_short()}"
        return self._name(atom)

    def _name(self, v: Var) -> str:
        name = self._names.get(v)
        if name is None:
            name = self._names[v] = next(self._fresh)
        return name


def _open(jaxpr: ClosedJaxpr | Jaxpr) -> Jaxpr:
    return jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr


def _variables_used(jaxpr: Jaxpr) -> Iterator[Atom]:
    yield from jaxpr.outvars
    for eqn in jaxpr.eqns:
        yield from eqn.inputs
        for inner in subjaxprs(eqn.params):
            yield from _variables_used(inner)


def _shown_params(eqn: Equation) -> list[tuple[str, Any]]:
    rule = eqn.primitive.rules.get("print")
    params = eqn.params if rule is None else rule(**eqn.params)
    return sorted(params.items(), key=lambda item: (item[0] != "name", item[0]))


def _letters() -> Iterator[str]:
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    yield from alphabet
    for length in itertools.count(2):
        for word in itertools.product(alphabet, repeat=length):
            if word[0] != "a":
                yield "".join(word)


def _value(value: Any) -> str:
    if isinstance(value, np.dtype | dtypes.ExtendedDType):
        return str(value.name)
    if callable(value) and isinstance(getattr(value, "__name__", None), str):
        return str(value.__name__)
    if isinstance(value, tuple) and type(value) is tuple:
        return _in_parentheses([_value(item) for item in value])
    return str(value)


def _in_parentheses(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
