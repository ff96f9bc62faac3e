"""The rules of the primitive `jit`, through the transformations that consume them."""

from __future__ import annotations

import numpy as np
import pytest

import xad
import xbatch
from xjit import jit, statistics
from xnp import lax
from xprim import as_array, make_jaxpr, prune_dead_code


def array(*values):
    return as_array(np.array(values, np.float32))


def plain(x, y):
    z = lax.mul(lax.sin(x), y)
    return lax.add(z, lax.mul(x, x))


f = jit(plain)
X, Y = array(0.5, 1.0, 2.0), array(1.0, -2.0, 3.0)


def total(fun):
    return lambda x, y: lax.reduce_sum(fun(x, y), (0,))


def test_forward_derivatives_are_those_of_the_function():
    expected = xad.jvp(plain, (X, Y), (Y, X))
    for got in (xad.jvp(f, (X, Y), (Y, X)), jit(lambda a, b: xad.jvp(f, (a, b), (b, a)))(X, Y)):
        for g, e in zip(got, expected, strict=True):
            np.testing.assert_allclose(g, e, rtol=1e-6)


def test_a_zero_tangent_stays_zero_through_a_call():
    _, out_dot = xad.jvp(lambda x: f(x, Y), (X,), (Y,))
    _, expected = xad.jvp(lambda x: plain(x, Y), (X,), (Y,))
    np.testing.assert_allclose(out_dot, expected, rtol=1e-6)
    shifted = jit(lambda x, n: (lax.mul(x, 2.0), lax.add(n, 1)))
    (_, n), (x_dot, _) = xad.jvp(lambda x: shifted(x, 1), (X,), (Y,))
    assert int(n) == 2
    np.testing.assert_allclose(x_dot, 2 * np.asarray(Y))


@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
def test_gradients_are_those_of_the_function(argnums):
    expected = xad.grad(total(plain), argnums)(X, Y)
    for fun in (total(f), jit(total(f)), jit(total(plain))):
        for got in (xad.grad(fun, argnums)(X, Y), jit(xad.grad(fun, argnums))(X, Y)):
            np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-5)


def test_second_derivatives_go_through_nested_calls():
    g = jit(lambda x: lax.mul(jit(lax.sin)(x), x))
    second = xad.grad(xad.grad(g))
    expected = 2 * np.cos(0.7) - 0.7 * np.sin(0.7)
    assert abs(float(second(0.7)) - expected) < 1e-5
    assert abs(float(jit(second)(0.7)) - expected) < 1e-5


def test_a_gradient_of_a_compiled_function_is_compiled_once():
    loss = total(jit(lambda x, y: lax.mul(lax.mul(x, y), 1.0625)))
    xad.grad(loss)(X, Y)
    before = statistics.compiled
    xad.grad(loss)(Y, X)
    assert statistics.compiled == before


@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 1)])
def test_batching_is_that_of_the_function(in_axes):
    a = as_array(np.arange(12, dtype=np.float32).reshape(3, 4))
    b = as_array(np.arange(12, dtype=np.float32).reshape(4, 3).T / 7)
    arguments = [
        array(1, 2, 3, 4) if ax is None and i == 0 else (array(1, 2, 3, 4) if ax is None else (
            a if i == 0 else b if ax == 0 else as_array(np.asarray(b).T.copy())))
        for i, ax in enumerate(in_axes)
    ]  # fmt: skip
    expected = np.asarray(xbatch.vmap(plain, in_axes)(*arguments))
    np.testing.assert_allclose(xbatch.vmap(f, in_axes)(*arguments), expected, rtol=1e-6)
    np.testing.assert_allclose(jit(xbatch.vmap(f, in_axes))(*arguments), expected, rtol=1e-6)


def test_per_example_gradients_of_a_compiled_function():
    a = as_array(np.arange(12, dtype=np.float32).reshape(4, 3))
    per_example = xbatch.vmap(xad.grad(total(f)), (0, None))
    expected = [np.asarray(xad.grad(total(plain))(as_array(row), Y)) for row in np.asarray(a)]
    np.testing.assert_allclose(per_example(a, Y), expected, rtol=1e-5)
    np.testing.assert_allclose(jit(per_example)(a, Y), expected, rtol=1e-5)


def test_unused_results_of_a_call_are_not_computed():
    inner = jit(lambda x, y: (lax.sin(x), lax.cos(y), lax.add(x, y), lax.sub(x, y)))
    closed = make_jaxpr(lambda x, y: inner(x, y)[0])(1.0, 2.0)
    smaller, needed = prune_dead_code(closed)
    (eqn,) = smaller.eqns
    assert needed == [True, False]
    assert len(eqn.inputs) == 1 and len(eqn.outputs) == 1
    assert [e.primitive.name for e in eqn.params["jaxpr"].eqns] == ["sin"]
