"""Loops without `jit`: which are compiled, how often, and that the results stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from xjit import jit, statistics
from xnp import lax
from xprim import EAGER, HOST, install_backend

LONG, SHORT = 5000, 12


def affine(x):
    return x * np.float32(0.5) + np.float32(1)


def loops(steps):
    """Return calls of each kind of loop, and what NumPy makes of them."""
    xs = np.arange(steps, dtype=np.float32) % 7
    value = np.float32(3)
    for _ in range(steps):
        value = affine(value)
    carry, sums = np.float32(0), []
    for x in xs:
        carry = carry * np.float32(0.5) + x
        sums.append(carry)
    return {
        "fori_loop": (
            lambda: lax.fori_loop(0, steps, lambda i, x: affine(x), np.float32(3)),
            value,
        ),
        "while_loop": (
            lambda: lax.while_loop(
                lambda c: c[0] < steps, lambda c: (c[0] + 1, affine(c[1])), (0, np.float32(3))
            )[1],
            value,
        ),
        "scan": (
            lambda: lax.scan(lambda c, x: (c * 0.5 + x,) * 2, np.float32(0), xs)[1],
            np.array(sums),
        ),
        "map": (lambda: lax.map(affine, xs), affine(xs)),
    }


def compiled_by(call):
    before = statistics.compiled
    result = np.asarray(call())
    return result, statistics.compiled - before


@pytest.mark.parametrize("name", ["fori_loop", "while_loop", "scan", "map"])
def test_a_long_loop_is_compiled_once_and_equals_numpy(name):
    call, expected = loops(LONG)[name]
    result, first = compiled_by(call)
    again, later = compiled_by(call)
    np.testing.assert_allclose(result, expected, rtol=1e-6)  # 0.5 x + 1 is rounded once or twice
    np.testing.assert_array_equal(again, result)
    assert (first, later) == (1, 0)
    other = loops(LONG)[name][0]  # another function with equal code
    assert compiled_by(other)[1] == 0


@pytest.mark.parametrize("name", ["fori_loop", "while_loop", "scan", "map"])
def test_a_short_loop_compiles_nothing_and_is_numpys_to_the_bit(name):
    call, expected = loops(SHORT)[name]
    for _ in range(40):
        result, compiled = compiled_by(call)
        np.testing.assert_array_equal(result, expected)
        assert compiled == 0


def run_while(steps):
    """Repeat what NumPy and XLA round differently."""
    return lax.while_loop(
        lambda c: c[0] < c[2],
        lambda c: (c[0] + 1, lax.sin(c[1] * 1.7) + lax.exp(-c[1]), c[2]),
        (0, np.float32(0.3), steps),
    )[1]  # fmt: skip


def test_the_result_of_a_while_does_not_depend_on_what_ran_before():
    counts = [1, 5, 9, 20, 60, 90, 100, 150, 400, 3000]
    backend = EAGER.backend
    install_backend(HOST)
    try:
        by_numpy = [np.asarray(run_while(n)) for n in counts]
    finally:
        install_backend(backend)
    program = jit(run_while)
    whole = [np.asarray(program(n)) for n in counts]
    first = [np.asarray(run_while(n)) for n in counts]
    later = [np.asarray(run_while(n)) for n in counts]  # the program is there now
    np.testing.assert_array_equal(first, later)
    kinds = []
    for found, numpy_result, xla_result in zip(first, by_numpy, whole, strict=True):
        assert found in (numpy_result, xla_result)  # never a mixture
        kinds.append("numpy" if found == numpy_result else "xla")
    assert kinds[0] == "numpy" and first[-1] == whole[-1]
