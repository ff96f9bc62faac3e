"""Traces of jitted functions: how they are made, and where they are kept.

What: `Flat`, a function as the tracer calls it; `Traced`, what comes out; `FunctionCache`, all
traces of one function.
Idea: the cache belongs to the function's key, so another `jit` of an equal function finds it.
Neighbours: `calls` fills and asks it, `program` runs what was traced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xtree
from xjit.arguments import Arguments, LazyNames
from xjit.cache_memory import Bounded
from xjit.program import Program
from xprim import ClosedJaxpr, as_array

# Functions whose programs are kept although nobody holds the jitted function any more; a function
# that captured arrays weighs one more for each MiB of them.
_MAX_FUNCTIONS = 512
MAX_PROGRAMS = 2048


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


class FunctionCache:
    """What has been traced and compiled of one function with certain options."""

    __slots__ = ("__weakref__", "key", "last_key", "traced")

    def __init__(self, key: Any) -> None:
        self.key = key
        self.traced: dict[Any, Traced] = {}
        self.last_key: Any = None

    def weight(self) -> float:
        """Return 1, and 1 more for each MiB of captured arrays."""
        sizes = [c.nbytes for traced in self.traced.values() for c in traced.closed.consts]
        return 1.0 + float(sum(sizes)) / 2**20

    def add(self, key: Any, traced: Traced) -> None:
        """Keep a trace."""
        if len(self.traced) >= MAX_PROGRAMS:
            self.traced.pop(next(iter(self.traced)))
        self.traced[key] = traced
        if traced.closed.consts:
            functions.reweigh(self.key)


functions: Bounded[FunctionCache] = Bounded(_MAX_FUNCTIONS, FunctionCache.weight)


def clear_functions() -> None:
    """Forget the programs of all functions but those that a jitted function still holds."""
    functions.clear()
