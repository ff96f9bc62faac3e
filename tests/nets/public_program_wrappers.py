"""Ways to write a call inside of something else that leaves its values and derivatives as they are.

Each takes a function of arrays to a tuple of arrays and returns one that must be the same to every
transformation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import xnp
from xad import checkpoint, custom_gradient, custom_jvp, custom_vjp, jvp, vjp
from xbatch import custom_vmap, vmap
from xjit import jit
from xnp import lax

Function = Callable[..., tuple[Any, ...]]


def _vmap_of_one(f: Function) -> Function:
    def mapped(*xs: Any) -> tuple[Any, ...]:
        if not xs:
            return f()
        found = vmap(lambda *ys: f(*ys))(*[x[None] for x in xs])
        return tuple([y[0] for y in found])

    return mapped


def _scan_of_one(f: Function) -> Function:
    def scanned(*xs: Any) -> tuple[Any, ...]:
        _, found = lax.scan(lambda c, _: (c, f(*xs)), None, None, length=1)
        return tuple([y[0] for y in found])

    return scanned


def _map_of_one(f: Function) -> Function:
    def mapped(*xs: Any) -> tuple[Any, ...]:
        if not xs:
            return f()
        found = lax.map(lambda ys: f(*ys), tuple([x[None] for x in xs]))
        return tuple([y[0] for y in found])

    return mapped


def _while_of_one(f: Function) -> Function:
    """A branch that is taken, chosen by a loop that cannot be differentiated in reverse."""

    def branched(*xs: Any) -> tuple[Any, ...]:
        once = lax.while_loop(lambda n: n < 1, lambda n: n + 1, 0)
        return lax.cond(once == 1, lambda: f(*xs), lambda: f(*xs))

    return branched


def _cond(f: Function) -> Function:
    return lambda *xs: lax.cond(xnp.asarray(True), f, lambda *ys: f(*ys), *xs)


def _custom_jvp(inner: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """A rule that takes primal and tangent through one call."""

    def with_rule(f: Function) -> Function:
        ruled = custom_jvp(lambda *xs: f(*xs))
        ruled.defjvp(lambda xs, ts: inner(lambda xs, ts: jvp(f, xs, ts))(xs, ts))
        return ruled

    return with_rule


def _custom_vjp(f: Function) -> Function:
    ruled = custom_vjp(lambda *xs: f(*xs))
    ruled.defvjp(lambda *xs: vjp(f, *xs), lambda pullback, bars: pullback(bars))
    return ruled


def _custom_gradient(f: Function) -> Function:
    return custom_gradient(lambda *xs: vjp(f, *xs))


def _custom_vmap(f: Function) -> Function:
    ruled = custom_vmap(lambda *xs: f(*xs))

    @ruled.def_vmap
    def rule(size: int, mapped: Any, *xs: Any) -> Any:
        del size
        found = vmap(lambda *ys: f(*ys), tuple([0 if m else None for m in mapped]))(*xs)
        return found, tuple([True] * len(found))

    return ruled


def _closure(f: Function) -> Function:
    """A fresh function that captures its operands: equal code, other values, at each call."""
    return lambda *xs: jit(lambda: f(*xs))()


def _wrapped(f: Function) -> Function:
    @functools.wraps(f.__call__)
    def outer(*xs: Any) -> tuple[Any, ...]:
        return f(*xs)

    return jit(outer)


class _Callable:
    def __init__(self, f: Function) -> None:
        self.f = f

    def __call__(self, *xs: Any) -> tuple[Any, ...]:
        return self.f(*xs)


WRAPPERS: dict[str, Callable[[Function], Function]] = {
    "plain": lambda f: f,
    "jit": lambda f: jit(f),
    "fresh jit": lambda f: jit(lambda *xs: f(*xs)),
    "jit of a partial": lambda f: jit(functools.partial(f)),
    "jit of an object": lambda f: jit(_Callable(f)),
    "jit of a wrapper": _wrapped,
    "jit of a closure": _closure,
    "checkpoint": lambda f: checkpoint(f),
    "checkpoint of jit": lambda f: checkpoint(jit(f)),
    "vmap": _vmap_of_one,
    "scan": _scan_of_one,
    "map": _map_of_one,
    "cond": _cond,
    "branch chosen by a loop": _while_of_one,
    "custom_jvp": _custom_jvp(lambda f: f),
    "custom_jvp through jit": _custom_jvp(lambda f: jit(f)),
    "custom_jvp through checkpoint": _custom_jvp(lambda f: checkpoint(f)),
    "custom_vjp": _custom_vjp,
    "custom_gradient": _custom_gradient,
    "custom_vmap": _custom_vmap,
}
