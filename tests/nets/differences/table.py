"""Pairs of functions that differ in one reachable thing: what `test_functions_that_differ` draws.

A kind is a generator. It yields a function that makes a fresh user function, changes one thing that
this function reaches, and yields again; the plain results before and after must differ. Each user
function is of one number `x` and gives `x` times a number, so its derivative shows the thing, too.

Kinds in `NOT_SEEN_IN_ONE_OBJECT` change what no look at a function can see: fresh functions are
traced anew, but a function object that was traced already keeps its program (as in JAX).
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import xstack.numpy as xnp

Function = Callable[[Any], Any]
Maker = Callable[[], Function]
Kind = Callable[[], Iterator[Maker]]

KINDS: dict[str, Kind] = {}
NOT_SEEN_IN_ONE_OBJECT: set[str] = set()


def kind(of: Kind) -> Kind:
    """Add a kind to the table."""
    KINDS[of.__name__] = of
    return of


def unseen(of: Kind) -> Kind:
    """Add a kind of which one function object does not show that it changed."""
    NOT_SEEN_IN_ONE_OBJECT.add(of.__name__)
    return kind(of)


def defined(source: str, name: str = "f", **namespace: Any) -> Any:
    """Run source in a namespace of its own and return what it defines, with the namespace."""
    space = {"__name__": "user_module", "xnp": xnp, "np": np, **namespace}
    exec(source, space)
    return space[name], space


def remade(f: Function) -> Maker:
    """Return what makes new function objects of the same code and the same globals."""

    def make() -> Function:
        if not isinstance(f, types.FunctionType):
            return f
        copy = types.FunctionType(
            f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__
        )
        copy.__kwdefaults__ = f.__kwdefaults__
        copy.__dict__.update(f.__dict__)
        return copy

    return make


def changed_in(space: Any, source: str, **changes: Any) -> Iterator[Maker]:
    """Yield the function `f` of a source before and after changes to its globals."""
    f, space = defined(source, **space)
    yield remade(f)
    space.update(changes)
    yield remade(f)


def with_attribute(thing: Any, source: str, name: str = "scale", to: Any = 3.0) -> Iterator[Maker]:
    """Yield the function `f` of a source before and after a change to an attribute of `thing`."""
    f, _ = defined(source, thing=thing)
    yield remade(f)
    setattr(thing, name, to)
    yield remade(f)


def pair(make: Callable[[Any], Function], first: Any = 2.0, second: Any = 3.0) -> Iterator[Maker]:
    """Yield makers of functions of one code for two values."""
    yield lambda: make(first)
    yield lambda: make(second)
