"""Traces of jitted functions: `Flat`, a function as the tracer calls it; `Traced`, what comes out.

Neighbours: `function_caches` keeps them, `calls` makes and asks for them, `program` runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xtree
from xjit.arguments import Arguments, LazyNames
from xjit.program import Program
from xprim import ClosedJaxpr, as_array


class Traced:
    """One trace of a function: its program, and how results are put together."""

    __slots__ = ("captured", "closed", "out_tree", "program")

    def __init__(self, closed: ClosedJaxpr, captured: list[Any], out_tree: Any) -> None:
        self.closed = closed
        self.captured = captured
        self.out_tree = out_tree
        self.program: Program | None = None


class Flat:
    """A function of the leaves of its arguments, to be traced."""

    __slots__ = ("arguments", "fun", "out_tree")

    def __init__(self, fun: Callable[..., Any], arguments: Arguments) -> None:
        self.fun = fun
        self.arguments = arguments
        self.out_tree: Any = None

    def run(self, *leaves: Any) -> list[Any]:
        """Call the function and return the leaves of its result."""
        args, kwargs = self.arguments.filled(leaves)
        results, self.out_tree = xtree.flatten(self.fun(*args, **kwargs))
        what = f"jit: a result of {self.arguments.signature.name}"
        return [as_array(r, what=what) for r in results]

    def names(self) -> dict[str, Any]:
        """Return what `trace_to_jaxpr` calls the program and its arguments."""
        name = self.arguments.signature.name
        return {"name": name, "arg_names": LazyNames(self.arguments.names)}
