"""Loops with a bound on their steps, scans in blocks and scans that end early, differentiated.

The reference is the loop written out: a `fori_loop` of as many steps, whose bounds are known.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest

import xad
import xbatch
import xjit
import xnp
import xrandom
from xnp import lax
from xnp.primitives.checkpointed_loop import best_distance
from xprim import config, make_jaxpr, scalar_array

MOST = 40


def bounded(x: Any, w: Any, n: Any, **options: Any) -> Any:
    def body(carry: Any) -> Any:
        i, y, total = carry
        return i + 1, xnp.sin(y * w) + 0.3 * y, total + y * w

    options = {"max_steps": MOST} | options
    return lax.while_loop(lambda c: c[0] < n, body, (0, x, 0.0 * x), **options)[1:]


def unrolled(x: Any, w: Any, n: int) -> Any:
    def body(i: Any, carry: Any) -> Any:
        y, total = carry
        return xnp.sin(y * w) + 0.3 * y, total + y * w

    return lax.fori_loop(0, int(n), body, (x, 0.0 * x))


def loss(f: Any) -> Any:
    def of(x: Any, w: Any, n: Any, **options: Any) -> Any:
        y, total = f(x, w, n, **options)
        return y * total

    return of


def close(found: Any, expected: Any) -> None:
    """Compare to float32: the same operations in the same order, fused otherwise when compiled."""
    for a, b in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=3e-5, atol=1e-6)


@pytest.mark.parametrize("checkpoints", [1, 3, "sqrt", "log"])
def test_a_bounded_loop_has_the_gradient_of_its_steps(checkpoints: Any) -> None:
    gradient = xjit.jit(xad.grad(
        lambda x, w, n: loss(bounded)(x, w, n, checkpoints=checkpoints), (0, 1)
    ))  # fmt: skip
    for n in (0, 1, 2, 5, 17, MOST):
        close(gradient(1.3, 0.8, n), xad.grad(loss(unrolled), (0, 1))(1.3, 0.8, n))
    close(xad.grad(loss(bounded))(1.3, 0.8, 6, checkpoints=checkpoints),
          xad.grad(loss(unrolled))(1.3, 0.8, 6))  # fmt: skip


def test_a_bounded_loop_stops_after_its_bound() -> None:
    close(bounded(1.3, 0.8, 10**6), unrolled(1.3, 0.8, MOST))
    close(xad.grad(loss(bounded))(1.3, 0.8, 10**6), xad.grad(loss(unrolled))(1.3, 0.8, MOST))
    assert lax.while_loop(lambda x: True, lambda x: x + 1, 0, max_steps=0) == 0
    with config.disable_jit(True):
        assert lax.while_loop(lambda x: True, lambda x: x + 1, 0, max_steps=3) == 3
        assert lax.fori_loop(2, 9, lambda i, x: x + i, 0, max_steps=3) == 9


def test_fori_loop_counts_up_to_traced_bounds_and_its_own() -> None:
    def powers(x: Any, low: Any, high: Any) -> Any:
        return lax.fori_loop(low, high, lambda i, y: y * x + i, x, max_steps=5)

    def written_out(x: Any, low: int, high: int) -> Any:
        y = x
        for i in range(low, min(high, low + 5)):
            y = y * x + i
        return y

    for bounds in ((0, 3), (2, 4), (3, 3), (4, 1), (0, 9)):
        expected = xad.grad(written_out)(1.1, *bounds)
        close(xjit.jit(xad.grad(powers))(1.1, *bounds), expected)
        close(xad.grad(lambda x, b=bounds: powers(x, *b))(1.1), expected)


NESTS = {
    "grad": xad.grad,
    "jvp": lambda f: lambda x: xad.jvp(f, (x,), (1.0,))[1],
    "vmap": lambda f: lambda x: xbatch.vmap(f)(xnp.array([x, 0.5 * x])).sum(),
    "jit": xjit.jit,
    "checkpoint": xad.checkpoint,
}


@pytest.mark.sampled(every=3, per="outer")
@pytest.mark.parametrize("outer", NESTS)
@pytest.mark.parametrize("inner", NESTS)
def test_transformations_of_transformed_bounded_loops(inner: str, outer: str) -> None:
    def both(f: Any) -> Any:
        return NESTS[outer](NESTS[inner](f))(1.3)

    close(both(lambda x: loss(bounded)(x, x, 7)), both(lambda x: loss(unrolled)(x, x, 7)))


def test_a_third_derivative_in_reverse_mode() -> None:
    def third(f: Any) -> Any:
        return xad.grad(xad.grad(xad.grad(lambda x: loss(f)(x, x, 5))))

    close(xjit.jit(third(bounded))(0.9), third(unrolled)(0.9))


@pytest.mark.parametrize("order", [1, 2])
def test_examples_of_a_batch_take_numbers_of_steps_of_their_own(order: int) -> None:
    xs, ns = xnp.array([0.3, 1.3, 0.7, 2.0]), xnp.array([7, 3, 0, MOST])

    def gradient(f: Any) -> Any:
        return functools.reduce(lambda g, _: xad.grad(g), range(order), loss(f))

    expected = [gradient(unrolled)(x, 0.8, n) for x, n in zip(xs, ns, strict=True)]
    batched = xbatch.vmap(gradient(bounded), (0, None, 0))
    close(batched(xs, 0.8, ns), expected)
    close(xjit.jit(batched)(xs, 0.8, ns), expected)

    def total(xs: Any) -> Any:
        return xbatch.vmap(loss(bounded), (0, None, 0))(xs, 0.8, ns).sum()

    if order == 1:
        close(xjit.jit(xad.grad(total))(xs), expected)
        twice = xbatch.vmap(lambda w: batched(xs, w, ns))(xnp.array([0.8, 0.1]))
        close(twice[0], expected)


def test_a_linearized_bounded_loop_can_be_batched_and_transposed() -> None:
    _, push = xad.linearize(lambda x: loss(bounded)(x, 0.8, 7), 1.3)
    expected = xad.grad(loss(unrolled))(1.3, 0.8, 7)
    close(xbatch.vmap(push)(xnp.array([1.0, 2.0])), [expected, 2 * expected])
    (pulled,) = xad.linear_transpose(push, 1.0)(3.0)
    close(pulled, 3 * expected)
    back = xad.linear_transpose(lambda ct: xad.linear_transpose(push, 1.0)(ct)[0], 1.0)
    close(back(1.0)[0], expected)


def test_carries_of_many_types_are_stored() -> None:
    def walk(x: Any) -> Any:
        def body(carry: Any) -> Any:
            key, x, flags = carry
            key, now = xrandom.split(key)
            return key, x * (1 + 0.1 * xrandom.uniform(now, x.shape)), ~flags

        start = (xrandom.key(0), x, xnp.array([True, False]))
        return lax.while_loop(lambda c: c[1].sum() < 30, body, start, max_steps=100)[1].sum()

    x = xnp.array([1.0, 2.0, 3.0])
    step = 1e-2  # the function is a product: central differences are exact to step^2 of a factor
    found = xjit.jit(xad.grad(walk))(x)
    for i in range(3):
        shift = xnp.zeros(3).at[i].set(step)
        difference = (walk(x + shift) - walk(x - shift)) / (2 * step)
        np.testing.assert_allclose(found[i], difference, rtol=2e-3)


def test_reverse_mode_stores_as_many_carries_as_it_says() -> None:
    size, most = 5000, 400
    x = xnp.full(size, 0.5)

    def memory(**options: Any) -> float:
        def f(x: Any, n: Any) -> Any:
            return lax.fori_loop(0, n, lambda i, y: xnp.tanh(y * x) + x, x, **options).sum()

        compiled = xjit.jit(xad.grad(f)).lower(x, most).compile()
        return compiled.memory_analysis().temp_size_in_bytes / (4 * size)

    root, logarithm = math.isqrt(2 * most) + 2, most.bit_length() + 1
    few = 12  # the carry, its cotangents, residuals of a step, and what a step computes
    assert root <= memory(max_steps=most) <= root + few
    assert logarithm <= memory(max_steps=most, checkpoints="log") <= logarithm + few
    assert 3 <= memory(max_steps=most, checkpoints=2) <= 3 + few


def test_checkpoints_are_at_the_distances_that_cost_least() -> None:
    @functools.cache
    def least(length: int, rows: int) -> int:
        if length == 1:
            return 0
        if rows == 1:
            return length * (length - 1) // 2
        return min(m + least(length - m, rows - 1) + least(m, rows) for m in range(1, length))

    @functools.cache
    def distance(length: int, rows: int) -> int:
        return int(best_distance(scalar_array(length, np.int32), scalar_array(rows, np.int32)))

    @functools.cache
    def cost(length: int, rows: int) -> int:
        if length == 1:
            return 0
        m = distance(length, rows)
        rest = 0 if m == length - 1 else cost(length - m, rows - 1)
        return m + rest + cost(m, rows)

    for length, rows in itertools.product((2, 3, 7, 20, 36), (1, 2, 3, 6, 40)):
        assert cost(length, rows) == least(length, rows), (length, rows)


@pytest.mark.parametrize(("options", "text"), [
    ({"max_steps": -1}, "max_steps must not be negative"),
    ({"max_steps": 3, "checkpoints": 0}, "checkpoints must be a positive number"),
    ({"max_steps": 3, "checkpoints": "many"}, "'sqrt' or 'log'"),
])  # fmt: skip
def test_bounds_that_are_none(options: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        lax.while_loop(lambda x: x < 3, lambda x: x + 1, 0, **options)
    with pytest.raises(ValueError, match=text):
        lax.fori_loop(0, 3, lambda i, x: x + 1, 0, **options)


def test_a_bounded_loop_refuses_a_condition_that_is_no_boolean() -> None:
    with pytest.raises(TypeError, match="cond_fun must return a boolean scalar"):
        lax.while_loop(lambda x: x, lambda x: x + 1, 0, max_steps=3)
    with pytest.raises(TypeError, match="cond_fun must return a boolean scalar"):
        lax.while_loop(lambda x: (x < 3, x < 4), lambda x: x + 1, 0, max_steps=3)


# ------------------------------------------------------------------------------ scans in blocks

XS = xnp.array([0.4, -1.0, 0.7, 0.2, 1.1, -0.3, 0.9])


def scanned(w: Any, xs: Any, **options: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        return xnp.sin(carry * w) + x, {"y": carry * x}

    last, ys = lax.scan(step, 0, xs, **options)
    return last + (ys["y"] ** 2 * xnp.arange(7)).sum()


@pytest.mark.sampled(every=6, per="reverse")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("every", [1, 3, 7, 20])
def test_a_scan_in_blocks_is_the_scan(every: int, reverse: bool) -> None:
    def both(transform: Any) -> None:
        plain = transform(lambda w, xs: scanned(w, xs, reverse=reverse))(1.2, XS)
        blocks = transform(
            lambda w, xs: scanned(w, xs, reverse=reverse, checkpoint_every=every)
        )(1.2, XS)  # fmt: skip
        close(blocks, plain)

    both(lambda f: f)
    both(lambda f: xjit.jit(xad.grad(f)))
    both(lambda f: lambda w, xs: xad.grad(f, 1)(w, xs))
    both(lambda f: xad.grad(xad.grad(f)))
    both(lambda f: lambda w, xs: xbatch.vmap(xad.grad(f), (0, None))(xnp.array([w, 0.3]), xs))


def test_a_scan_in_blocks_stores_less() -> None:
    x = xnp.full(1000, 0.5)

    def memory(**options: Any) -> float:
        def f(x: Any) -> Any:
            return lax.scan(lambda y, _: (xnp.tanh(y * x), None), x, None, 400, **options)[0].sum()

        compiled = xjit.jit(xad.grad(f)).lower(x).compile()
        return compiled.memory_analysis().temp_size_in_bytes / x.nbytes

    assert memory() > 400
    assert memory(checkpoint_every=20) < 20 + 2 * 20 + 12


def test_checkpoint_every_must_be_positive() -> None:
    with pytest.raises(ValueError, match="checkpoint_every must be positive"):
        scanned(1.2, XS, checkpoint_every=0)


# -------------------------------------------------------------------------- scans that end early


def ending(w: Any, **options: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        return carry + w * x * x, (carry, xnp.sqrt(carry - 10))  # NaN in every step that is run

    start = 0.0 if config.disable_jit.value else 0
    return lax.scan(step, start, XS, until=lambda c: c > 1.5, **options)


def written_out(w: Any, reverse: bool = False) -> Any:
    carry, ys = 0.0, [0.0] * 7
    for i in range(6, -1, -1) if reverse else range(7):
        ys[i], carry = carry, carry + w * XS[i] * XS[i]
        if carry > 1.5:
            break
    return carry, ys


@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"checkpoint_every": 2}])
def test_a_scan_ends_after_the_step_that_says_so(options: Any) -> None:
    reverse = options.get("reverse", False)
    for w in (0.01, 0.8, 1.3, 9.0):
        carry, (ys, roots) = ending(w, **options)
        expected, rows = written_out(w, reverse)
        close(carry, expected)
        close(ys, rows)
        ran = np.isnan(np.asarray(roots))
        assert (np.asarray(roots)[~ran] == 0).all()
        slope = xad.grad(lambda w: written_out(w, reverse)[0])(w)
        close(xjit.jit(xad.grad(lambda w: ending(w, **options)[0]))(w), slope)
        with config.disable_jit(True):
            close(ending(w, **options)[0], expected)
    ws = xnp.array([0.01, 0.8, 1.3, 9.0])
    close(xbatch.vmap(lambda w: ending(w, **options)[0])(ws),
          [written_out(w, reverse)[0] for w in ws])  # fmt: skip
    close(xbatch.vmap(xad.grad(lambda w: ending(w, **options)[1][0].sum()))(ws),
          [xad.grad(lambda w: sum(written_out(w, reverse)[1]))(w) for w in ws])  # fmt: skip


def test_until_must_give_a_boolean() -> None:
    with pytest.raises(TypeError, match="until must return a boolean scalar"):
        lax.scan(lambda c, x: (c + x, None), 0.0, XS, until=lambda c: c)
    with pytest.raises(TypeError, match="until must be a function"):
        lax.scan(lambda c, x: (c + x, None), 0.0, XS, until=3)


def test_a_plain_loop_has_no_schedule_in_its_equation() -> None:
    plain = make_jaxpr(lambda n: lax.while_loop(lambda x: x < n, lambda x: x + 1, 0))(3)
    assert "schedule" not in plain.eqns[-1].params
