"""Functions that transformations returned. (See `table`.)"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import xstack
import xstack.numpy as xnp
from tests.nets.differences.table import (
    Function,
    Maker,
    defined,
    kind,
    pair,
)
from xstack import custom_jvp, custom_vjp, grad, jit, lax, tree_util, vmap


def _transformed(transform: Callable[[Function], Function]) -> Iterator[Maker]:
    source = "def f(x): return inner(x)"
    for scale in (2.0, 3.0):
        g, _ = defined("def g(x): return x * scale", "g", scale=scale)

        def make(g=g):
            return defined(source, inner=transform(g))[0]

        yield make


@kind
def a_jitted_function_inside():
    return _transformed(jit)


@kind
def a_mapped_function_inside():
    return _transformed(lambda g: lambda x: vmap(g)(xnp.asarray(x)[None])[0])


@kind
def a_mapped_function_by_name():
    return _transformed(lambda g: vmap(g, in_axes=None, axis_size=1, out_axes=None))


@kind
def a_derivative_inside():
    return _transformed(lambda g: lambda x: x * grad(g)(1.0))


@kind
def a_checkpoint_inside():
    return _transformed(xstack.checkpoint)


@kind
def a_custom_jvp_inside():
    def transform(g):
        inner = custom_jvp(g)
        inner.defjvp(lambda p, t: (g(*p), g(*t)))
        return inner

    return _transformed(transform)


@kind
def a_rule_of_a_custom_jvp():
    def make(c):
        inner = custom_jvp(lambda x: x * c)
        inner.defjvp(lambda p, t: (inner(*p), t[0] * c))
        return lambda x: inner(x)

    return pair(make)


@kind
def a_custom_vjp_inside():
    def transform(g):
        inner = custom_vjp(g)
        inner.defvjp(lambda x: (g(x), None), lambda _, ct: (g(ct),))
        return inner

    return _transformed(transform)


@kind
def a_scan_inside():
    return _transformed(lambda g: lambda x: lax.scan(lambda c, _: (g(c), None), x, None, 1)[0])


@kind
def a_partial_of_the_trees():
    return _transformed(lambda g: tree_util.Partial(g))


@kind
def the_axis_of_a_mapped_function():
    table = xnp.arange(4.0).reshape(2, 2)

    def make(axis):
        rows = vmap(lambda r: r[1], in_axes=axis)
        return lambda x: x * rows(table)[0]

    return pair(make, 0, 1)
