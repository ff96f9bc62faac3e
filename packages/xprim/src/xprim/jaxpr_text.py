"""Jaxprs as text, in the form that JAX's users know.

    { lambda ; a:f32[2]. let b:f32[2] = integer_pow[y=2] a in (b,) }

Variables are named a, b, ..., z, ba, bb, ... in order of appearance, each jaxpr on its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from xprim import dtypes, jaxpr as _jaxpr
from xprim.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var
from xprim.source import describe

_LINE = 80


def format_jaxpr(jaxpr: Jaxpr, *, source_info: bool = False, name_stack: bool = False) -> str:
    """Return a jaxpr as text.

    Args:
      jaxpr: the program.
      source_info: whether each equation is followed by the user's line it came from.
      name_stack: whether each equation is followed by its named scopes.
    """
    return "\n".join(_Printer(source_info, name_stack).jaxpr(jaxpr))


class _Printer:
    def __init__(self, source_info: bool, name_stack: bool) -> None:
        self.source_info = source_info
        self.name_stack = name_stack

    def jaxpr(self, jaxpr: Jaxpr) -> list[str]:
        names = _Names()
        consts = _binders(jaxpr.constvars, names)
        head = f"{{ lambda {consts + ' ' if consts else ''}; {_binders(jaxpr.invars, names)}. let"
        body = [self.equation(eqn, names) for eqn in jaxpr.eqns]
        outs = [_atom(x, names) for x in jaxpr.outvars]
        tail = f"in ({', '.join(outs)}{',' if len(outs) == 1 else ''}) }}"
        if not body:
            return [f"{head} {tail}"]
        if len(body) == 1 and len(body[0]) == 1:
            line = f"{head} {body[0][0]} {tail}"
            if len(line) <= _LINE:
                return [line]
        return [head, *("    " + line for lines in body for line in lines), "  " + tail]

    def equation(self, eqn: Equation, names: _Names) -> list[str]:
        left = _binders(eqn.outputs, names) or "_"
        right = " ".join([""] + [_atom(x, names) for x in eqn.inputs])
        notes = []
        if self.source_info:
            notes.append(describe(eqn.source))
        if self.name_stack:
            notes.append("/".join(eqn.name_stack))
        right += "  # " + " ".join(notes) if any(notes) else ""
        params = [self.param(name, eqn.params[name]) for name in sorted(eqn.params)]
        flat = " ".join(lines[0] for lines in params)
        start = f"{left} = {eqn.primitive.name}"
        if not params:
            return [start + right]
        if all(len(lines) == 1 for lines in params) and len(start + flat + right) <= _LINE:
            return [f"{start}[{flat}]{right}"]
        inner = ["  " + line for lines in params for line in lines]
        return [start + "[", *inner, "]" + right]

    def param(self, name: str, value: Any) -> list[str]:
        if isinstance(value, ClosedJaxpr):
            value = value.jaxpr
        if isinstance(value, Jaxpr):
            first, *rest = self.jaxpr(value)
            return [f"{name}={first}", *rest]
        if isinstance(value, tuple) and value and isinstance(value[0], ClosedJaxpr | Jaxpr):
            lines = [f"{name}=("]
            for item in value:
                lines += ["  " + line for line in self.param("", item)]
            return [line.replace("  =", "  ", 1) for line in lines] + [")"]
        return [f"{name}={_value(value)}"]


class _Names:
    """Gives each variable of one jaxpr its letter."""

    def __init__(self) -> None:
        self._names: dict[Var, str] = {}
        self._fresh = _letters()

    def __getitem__(self, var: Var) -> str:
        name = self._names.get(var)
        if name is None:
            name = self._names[var] = next(self._fresh)
        return name


def _letters() -> Iterator[str]:
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    yield from alphabet
    for length in itertools.count(2):
        for word in itertools.product(alphabet, repeat=length):
            if word[0] != "a":
                yield "".join(word)


def _binders(variables: Sequence[Var], names: _Names) -> str:
    return " ".join(f"{names[v]}:{v.aval.str_short()}" for v in variables)


def _atom(atom: Atom, names: _Names) -> str:
    if isinstance(atom, Literal):
        return f"{_scalar(atom.val)}:{atom.aval.str_short()}"
    return names[atom]


def _scalar(value: Any) -> str:
    return str(value.item()) if isinstance(value, np.generic) else str(value)


def _value(value: Any) -> str:
    if isinstance(value, np.dtype):
        return dtypes.short_name(value)
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    if isinstance(value, tuple):
        return f"({', '.join(map(_value, value))}{',' if len(value) == 1 else ''})"
    return str(value)


_jaxpr._formatter[0] = format_jaxpr
