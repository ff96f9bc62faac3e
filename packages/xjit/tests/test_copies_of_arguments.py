"""Donated arguments, updated in place: XLA copies fewer of them, and reads none too late."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

import xnp
from xjit import callbacks, jit
from xjit.lowering.compile import with_suited_options
from xnp import lax

pytestmark = pytest.mark.of_the_cpu

OPTION = "xla_cpu_copy_insertion_use_region_analysis"
PROGRAMS = min(int(os.environ.get("FUZZ_PROGRAMS", "4")), 400)


@pytest.fixture(autouse=True)
def no_flags(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)


def _copies(executable):
    return executable.as_text().count(" copy(")


def _chain_of_updates(weights, x):
    """The product reads a matrix that the next result takes the memory of."""
    new = []
    for w in weights:
        new.append(w - 0.01 * (x.T @ x))
        x = xnp.tanh(x @ w)
    return new, x


def _arrays(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def test_a_step_of_donated_weights_copies_none_of_them():
    weights, x = [_arrays(64, 64) for _ in range(4)], _arrays(64, 64)
    lowered = jit(_chain_of_updates, donate_argnums=0).lower(weights, x)
    ours, plain = lowered.compile(), lowered.compile({OPTION: False})
    assert _copies(ours) == 0 < _copies(plain)
    found, expected = [f(list(map(xnp.array, weights)), xnp.asarray(x)) for f in (ours, plain)]
    for a, b in zip((*found[0], found[1]), (*expected[0], expected[1]), strict=True):
        np.testing.assert_array_equal(a, b)


def _options(fun, *args, donated=(0,), options=None, platform="cpu"):
    text = jit(fun, donate_argnums=donated).lower(*args).as_text()
    return (with_suited_options(options, text, platform) or {}).get(OPTION)


LOOPS = {
    "a loop": lambda x: lax.fori_loop(0, 3, lambda _, y: y + x, x),
    "a branch": lambda x: lax.cond(x[0, 0] > 0, lambda y: y + 1, lambda y: y * 2, x),
    "a scatter": lambda x: x.at[xnp.arange(3)].add(1),
    "a sort": lambda x: xnp.sort(x, 0),
    "a factorization": lambda x: xnp.linalg.cholesky(x),
    "a callback": lambda x: callbacks.pure_callback(np.sin, x, x),
}


def test_programs_that_donate_and_have_no_loop_get_the_option():
    x = _arrays(8, 8)
    assert _options(lambda x: x + 1, x) is True
    assert _options(lambda x: x + 1, x, donated=()) is None
    assert _options(lambda x: x + 1, x, platform="cuda") is None
    assert _options(lambda x: x + 1, x, options={OPTION: False}) is False


@pytest.mark.parametrize("name", LOOPS)
def test_what_may_become_a_loop_or_holds_programs_goes_without(name):
    assert _options(LOOPS[name], _arrays(8, 8)) is None


# ------------------------------------------------------------------------------ random programs

STEPS = {
    "add": lambda x, y, s, k: x + y * s,
    "multiply": lambda x, y, s, k: x * y / (1 + abs(x * y).max()) - s,
    "product": lambda x, y, s, k: x @ y / (k + abs(x @ y).max()),
    "transpose": lambda x, y, s, k: x.T * s,
    "relu": lambda x, y, s, k: xnp.maximum(x, y * s),
    "center": lambda x, y, s, k: x - x.sum(0) / k,
    "shift": lambda x, y, s, k: xnp.concatenate([x[1:], y[:1]]),
    "choose": lambda x, y, s, k: xnp.where(x > s, y, x),
    "flip": lambda x, y, s, k: xnp.flip(x, 0) + y,
}


def _program(rng):
    """Return a program that updates arrays and reads them in any order, and its arguments."""
    count, size = rng.randint(2, 12), rng.choice([3, 16, 200])
    numbers = [rng.randrange(10**6) for _ in range(3)]
    steps = [
        (rng.choice(sorted(STEPS)), rng.randrange(10**6), rng.randrange(10**6), rng.random())
        for _ in range(rng.randint(3, 25))
    ]

    def fun(*args):
        values = list(args)
        for name, i, j, s in steps:
            x, y = values[i % len(values)], values[j % len(values)]
            values.append(STEPS[name](x, y, s, size))
        outs = values[-count:]
        if numbers[0] % 2:
            outs.reverse()
        if numbers[1] % 3 == 0:
            outs[0] = args[numbers[1] % count] * 0.5 + outs[0]
        if numbers[2] % 2:  # with momenta: functions of one kernel
            half = count // 2
            momenta = [0.9 * args[half + i] + outs[i] for i in range(half)]
            new = [args[i] - 0.01 * momenta[i] for i in range(half)]
            outs = [*new, *momenta, *outs[2 * half :]]
        return (*outs, values[count].sum())

    source = np.random.default_rng(rng.randrange(10**9))
    return fun, [source.normal(size=(size, size)).astype(np.float32) for _ in range(count)]


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_program_that_donates_has_the_results_of_one_that_does_not(seed):
    rng = random.Random(seed + int(os.environ.get("FUZZ_SEED", "0")))
    fun, args = _program(rng)
    donated = tuple(i for i in range(len(args)) if rng.random() < 0.8) or (0,)
    expected = jit(fun)(*args)
    step = jit(fun, donate_argnums=donated).lower(*args).compile({OPTION: True})
    for _ in range(2):
        found = step(*[xnp.array(x) for x in args])
        for a, b in zip(found, expected, strict=True):  # fused otherwise: a few roundings
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------------------- the fault of XLA


def _distances(a, b):
    """The edit distance of two sequences: an inner loop whose bounds are those of the outer."""
    one = np.uint32(1)

    def row(i, d):
        def cell(j, d):
            def read(p, q):
                return lax.dynamic_slice(d, (p, q), (1, 1))[0, 0]

            def element(x, p):
                return lax.dynamic_index_in_dim(x, p, 0, keepdims=False)

            cost = xnp.where(element(a, i - one) == element(b, j - one), 0, 1)
            v = xnp.minimum(read(i - one, j), read(i, j - one)) + 1
            v = xnp.minimum(v, read(i - one, j - one) + cost)
            return lax.dynamic_update_slice(d, v[None, None], (i, j))

        return lax.fori_loop(one, np.uint32(101), cell, d)

    edge = xnp.arange(101, dtype="int32")
    d = xnp.zeros((101, 101), "int32").at[0].set(edge).at[:, 0].set(edge)
    return lax.fori_loop(one, np.uint32(101), row, d)[100, 100]


def test_xla_still_reads_in_an_inner_loop_what_the_option_has_overwritten():
    a = np.random.default_rng(0).integers(0, 4, 100).astype(np.int32)
    assert int(jit(_distances)(a, a)) == 0
    wrong = jit(_distances).lower(a, a).compile({OPTION: True})
    assert int(wrong(a, a)) != 0, "XLA is repaired: loops may have the option, too"
