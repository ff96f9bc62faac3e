"""Loops on scalars that a CPU's program runs in turns of several steps."""

from __future__ import annotations

import numpy as np
import pytest

import xnp
from xjit import callbacks, jit
from xnp import lax

pytestmark = pytest.mark.of_the_cpu

TABLE = np.arange(12, dtype=np.float32)


def _counted(n):
    def step(s):
        return s[0] + 1, s[1] * np.uint32(1664525) + s[0].astype("uint32")

    return lax.while_loop(lambda s: s[0] < n, step, (xnp.int32(0), xnp.uint32(1)))


def _by_python(n):
    i, x = 0, 1
    while i < n:
        i, x = i + 1, (x * 1664525 + i) % 2**32
    return i, x


@pytest.mark.parametrize("n", [-1, *range(12), 1001])
def test_a_loop_ends_after_as_many_steps_as_its_condition_says(n):
    assert tuple(map(int, jit(_counted)(n))) == _by_python(n)


def test_what_is_computed_after_the_last_step_leaves_no_trace():
    # a step more overflows, is NaN, and reads beyond the table
    def grow(s):
        return s[0] * s[0], xnp.float32(0) * s[0] * s[0] + 1, s[2] + 1

    squares = lax.while_loop(lambda s: s[0] < 1e30, grow, (xnp.float32(10), xnp.float32(1), 0))
    compiled = jit(lambda x: lax.while_loop(lambda s: s[0] < 1e30, grow, (x, xnp.float32(1), 0)))
    found = compiled(xnp.float32(10))
    assert [x.item() for x in found] == [x.item() for x in squares]
    assert found[0] == np.float32(1e32) and found[1] == 1 and found[2] == 5

    table = xnp.asarray(TABLE)
    search = jit(lambda x: lax.while_loop(lambda i: table[i] < x, lambda i: i + 1, 0))
    assert [int(search(x)) for x in TABLE] == list(range(12))


def test_divisors_that_become_zero_after_the_end_are_never_divided_by():
    def halve(s):
        return s[0] // 2, s[1] + s[0] % 3

    loop = jit(lambda n: lax.while_loop(lambda s: s[0] > 0, halve, (n, 0)))
    for n in (0, 1, 2, 7, 1000, 2**31 - 1):
        m, total = n, 0
        while m > 0:
            m, total = m // 2, total + m % 3
        assert tuple(map(int, loop(n))) == (m, total)


def _until_large(step):
    return lambda x: lax.while_loop(lambda y: xnp.greater(100, y).all(), step, x)


LOOPS = {
    "scalars": (_until_large(lambda y: y * 3 + 1), 1.0, 5),
    "a quotient": (_until_large(lambda y: y * 3 + 1 / y), 1.0, 1),
    "a sine": (_until_large(lambda y: y * 3 + xnp.sin(y)), 1.0, 1),
    "an array": (_until_large(lambda y: y * 3), [1.0, 1.0], 1),
    "a loop inside": (_until_large(lambda y: lax.fori_loop(0, 3, lambda _, z: z + y, y)), 1.0, 1),
    "many operations": (_until_large(lambda y: _chain(y * 3)), 1.0, 1),
}  # fmt: skip


def _chain(y):
    for _ in range(20):
        y = abs(y) + y
    return y


@pytest.mark.parametrize("name", LOOPS)
def test_turns_of_cheap_scalar_loops_hold_several_steps_and_others_one(name):
    loop, x, steps = LOOPS[name]
    text = jit(loop).lower(xnp.asarray(x)).as_text()
    assert text.count("comparison_direction GT") == steps  # the condition's, before each step


def test_a_step_that_calls_python_runs_as_often_as_the_condition_says():
    seen = []

    def step(i):
        callbacks.io_callback(lambda i: seen.append(int(i)), None, i)
        return i + 1

    jit(lambda n: lax.while_loop(lambda i: i < n, step, 0))(7).block_until_ready()
    assert sorted(seen) == list(range(7))
