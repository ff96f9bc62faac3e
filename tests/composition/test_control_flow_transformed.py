"""Control flow under jvp, grad, vmap and jit, in composition, against jax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xad
import xbatch
import xjit
import xtree
from xnp import lax
from xprim import make_jaxpr
from xprim.errors import MissingRuleError

jax = pytest.importorskip("jax")

X = np.linspace(0.1, 1.0, 6).astype(np.float32).reshape(3, 2)
W = np.array([[0.5, -0.3], [0.2, 0.8]], np.float32)
Program = Callable[[Any, Any, Any], Any]


def recurrent(L: Any, x: Any, w: Any) -> Any:
    def step(c: Any, xi: Any) -> Any:
        c = L.tanh(c @ w + xi)
        return c, c * c

    c, ys = L.scan(step, np.full(2, 0.1, np.float32) * x[0, 0], x)
    return ys.sum() + c.sum()


def backwards_in_pairs(L: Any, x: Any, w: Any) -> Any:
    def step(c: Any, xi: Any) -> Any:
        a, b = c
        return (a * L.sin(b), b + L.exp(w[0, 0])), xi * a

    start = (np.float32(1), np.float32(0.5))
    (a, _), ys = L.scan(step, start, x, reverse=True, unroll=2)
    return ys.sum() + a


def branches(L: Any, x: Any, w: Any) -> Any:
    return L.cond(
        x.sum() > 1,
        lambda a, b: L.sin(a * a).sum(),
        lambda a, b: (L.exp(b) * b).sum() + a.sum(),
        x,
        w,
    )


def branches_in_a_scan(L: Any, x: Any, w: Any) -> Any:
    def step(c: Any, xi: Any) -> Any:
        i, total = c
        v = L.switch(i, [L.sin, lambda a: a * L.exp(a), lambda a: a @ w], xi)
        return (i + 1, total + v * total), v

    (_, total), ys = L.scan(step, (np.int32(0), np.ones(2, np.float32)), x)
    return ys.sum() + total.sum()


def counted(L: Any, x: Any, w: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        return (c + L.convert_element_type(i, np.float32)) * L.sin(c)

    return L.fori_loop(0, 4, step, x @ w).sum()


def scan_in_a_scan(L: Any, x: Any, w: Any) -> Any:
    def row(c: Any, xi: Any) -> Any:
        return L.scan(lambda d, v: (L.sin(d * v + w[1, 0]), d), c, xi)

    c, ys = L.scan(row, np.float32(0.3), x)
    return (ys * ys).sum() + c


PROGRAMS = [recurrent, backwards_in_pairs, branches, branches_in_a_scan, counted, scan_in_a_scan]
programs = pytest.mark.parametrize("program", PROGRAMS, ids=[p.__name__ for p in PROGRAMS])


def _pair(program: Program) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return a program of ours, and one of the oracle that it compiles as a whole."""
    return (lambda x, w: program(lax, x, w)), jax.jit(lambda x, w: program(_Jax(), x, w))


class _Jax:
    """`jax.lax`, on arrays of jax."""

    def __getattr__(self, name: str) -> Any:
        return getattr(jax.lax, name)


def _close(ours: Any, theirs: Any, tolerance: float = 1e-4) -> None:
    a = [np.asarray(x) for x in xtree.leaves(ours)]
    b = [np.asarray(x) for x in jax.tree.leaves(theirs)]
    assert [x.dtype for x in a] == [x.dtype for x in b]
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.sampled(every=4)
@programs
def test_values_and_first_derivatives(program: Program) -> None:
    f, g = _pair(program)
    x, w = jax.numpy.asarray(X), jax.numpy.asarray(W)
    expected = jax.jit(jax.grad(g, argnums=(0, 1)))(x, w)
    _close(f(xarray(X), xarray(W)), g(x, w), 1e-5)
    _close(xjit.jit(f)(X, W), g(x, w), 1e-5)
    _close(xad.grad(f, argnums=(0, 1))(X, W), expected)
    _close(xjit.jit(xad.grad(f, argnums=(0, 1)))(X, W), expected)
    _close(xad.grad(xjit.jit(f), argnums=(0, 1))(X, W), expected)
    tangents = jax.jit(lambda x, w: jax.jvp(g, (x, w), (2 * x, w)))(x, w)
    _close(xad.jvp(f, (X, W), (2 * X, W)), tangents)
    _, linear = xad.linearize(f, X, W)
    _close(linear(2 * X, W), tangents[1])


@pytest.mark.sampled(every=6)
@programs
def test_second_derivatives(program: Program) -> None:
    f, g = _pair(program)
    x, w = jax.numpy.asarray(X), jax.numpy.asarray(W)
    expected = jax.jit(jax.hessian(g))(x, w)
    _close(xad.hessian(f)(X, W), expected, 1e-3)
    _close(xjit.jit(xad.jacrev(xad.grad(f)))(X, W), expected, 1e-3)


@pytest.mark.sampled(every=4)
@programs
def test_batches(program: Program) -> None:
    f, g = _pair(program)
    w = jax.numpy.asarray(W)
    xs = np.stack([X, 2 * X, -X])
    rows = jax.numpy.asarray(xs)
    batch = jax.jit(jax.vmap(g, (0, None)))(rows, w)
    _close(xbatch.vmap(f, (0, None))(xs, W), batch)
    expected = jax.jit(jax.vmap(jax.grad(g, argnums=1), (0, None)))(rows, w)
    gradient = xad.grad(f, argnums=1)
    _close(xbatch.vmap(gradient, (0, None))(xs, W), expected)
    _close(xjit.jit(xbatch.vmap(gradient, (0, None)))(xs, W), expected)
    moved = xbatch.vmap(f, (2, None))(np.moveaxis(xs, 0, 2).copy(), W)
    _close(moved, batch)
    weights = xbatch.vmap(f, (None, 0))(X, np.stack([W, -W]))
    _close(weights, jax.jit(jax.vmap(g, (None, 0)))(X, np.stack([W, -W])))


def xarray(x: Any) -> Any:
    return lax.full_like(x, 0) + x


def _grown(L: Any, x: Any, n: Any) -> Any:
    return L.while_loop(
        lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * L.sin(s[1] + x)), (np.int32(0), x)
    )[1]


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_while_loops_have_forward_derivatives(steps: int) -> None:
    n, x, dx = np.int32(steps), np.float32(0.7), np.float32(2.0)
    expected = jax.jit(lambda x: jax.jvp(lambda x: _grown(_Jax(), x, n), (x,), (dx,)))(x)
    _close(xad.jvp(lambda x: _grown(lax, x, n), (x,), (dx,)), expected, 1e-5)
    value, linear = xad.linearize(lambda x: _grown(lax, x, n), x)
    _close((value, linear(dx)), expected, 1e-5)
    both = xjit.jit(lambda x, n, dx: xad.jvp(lambda x: _grown(lax, x, n), (x,), (dx,)))
    _close(both(x, n, dx), expected, 1e-5)


def test_a_batch_of_while_loops_runs_until_all_are_done() -> None:
    ns = np.array([0, 3, 1, 7], np.int32)
    xs = np.array([0.1, 0.5, 0.7, 1.0], np.float32)
    f, g = (lambda x, n: _grown(lax, x, n)), jax.jit(lambda x, n: _grown(_Jax(), x, n))
    _close(xbatch.vmap(f)(xs, ns), jax.vmap(g)(xs, ns), 1e-5)
    _close(xjit.jit(xbatch.vmap(f))(xs, ns), jax.vmap(g)(xs, ns), 1e-5)
    _close(xbatch.vmap(f, (0, None))(xs, ns[1]), jax.vmap(g, (0, None))(xs, ns[1]), 1e-5)
    _close(xbatch.vmap(f, (None, 0))(xs[1], ns), jax.vmap(g, (None, 0))(xs[1], ns), 1e-5)


def test_reverse_mode_of_a_while_loop_says_what_to_use_instead() -> None:
    with pytest.raises(MissingRuleError, match="max_steps=N bounds it; or use scan"):
        xad.grad(lambda x: _grown(lax, x, np.int32(3)))(np.float32(1))


def test_fori_loop_with_a_traced_bound_is_a_while_loop() -> None:
    def power(x: Any, n: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, c: c * x, np.float32(1))

    assert make_jaxpr(power)(2.0, 3).eqns[-1].primitive.name == "while"
    assert float(xjit.jit(power)(2.0, 5)) == 32.0
    assert make_jaxpr(lambda x: power(x, 3))(2.0).eqns[-1].primitive.name == "scan"


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 5])
def test_a_compiled_switch_clamps_its_index(index: int) -> None:
    f = xjit.jit(lambda i, x: lax.switch(i, [lax.sin, lambda x: x * x, lax.exp], x))
    expected = [np.sin, np.square, np.exp][min(max(index, 0), 2)](np.float32(0.5))
    np.testing.assert_allclose(np.asarray(f(np.int32(index), np.float32(0.5))), expected, rtol=1e-6)


def test_a_batch_of_predicates_selects_and_differentiates() -> None:
    p = np.array([True, False, True])
    x = np.array([0.1, 0.5, 0.7], np.float32)
    f = lambda p, x: lax.cond(p, lax.sin, lambda x: x * x, x)  # noqa: E731
    mapped = np.asarray(xbatch.vmap(f)(p, x))
    np.testing.assert_allclose(mapped, np.where(p, np.sin(x), x * x), rtol=1e-6)
    found = xbatch.vmap(xad.grad(f, argnums=1))(p, x)
    np.testing.assert_allclose(np.asarray(found), np.where(p, np.cos(x), 2 * x), rtol=1e-6)


def test_a_linear_loop_with_a_counter_transposes() -> None:
    def scaled(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, c: c * lax.convert_element_type(i + 2, np.float32), x)

    (found,) = xad.linear_transpose(scaled, np.float32(1))(np.float32(1))
    assert float(found) == 24.0


def test_residuals_that_all_steps_share_are_not_stacked() -> None:
    def f(w: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: (c * lax.exp(w) + x, None), np.float32(1), xs)[0]

    jaxpr = make_jaxpr(lambda w, xs: xad.grad(f)(w, xs))(np.float32(0.5), np.ones(9, np.float32))
    primal, linear = [e for e in jaxpr.eqns if e.primitive.name == "scan"]
    # of each step only the carry is kept: exp(w) is one number for all of them
    assert [v.aval.shape for v in primal.outputs] == [(), (9,)]
    assert sum([v.aval.shape == (9,) for v in linear.inputs]) == 1


@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_differentiates(reverse: bool) -> None:
    x = np.linspace(0.5, 1.5, 5).astype(np.float32)
    f = lambda x: (lax.associative_scan(lax.mul, x, reverse=reverse) ** 2).sum()  # noqa: E731
    theirs = jax.lax.associative_scan
    g = lambda x: (theirs(jax.lax.mul, x, reverse=reverse) ** 2).sum()  # noqa: E731
    _close(xad.grad(f)(x), jax.jit(jax.grad(g))(x))


def test_a_long_loop_is_compiled_and_right() -> None:
    total = lax.fori_loop(0, 20_000, lambda i, c: c + i, 0)
    assert int(total) == sum(range(20_000))
    assert int(lax.while_loop(lambda c: c < 50_000, lambda c: c + 3, 0)) == 50_001


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20])
def test_map_in_batches_applies_a_function_to_each_element(size) -> None:
    x = np.arange(7, dtype=np.float32)
    found = lax.map(lambda v: {"y": v * v}, x, batch_size=size)["y"]
    np.testing.assert_array_equal(np.asarray(found), x * x)
