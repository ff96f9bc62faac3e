"""Extremes of floats on CPUs are plain where a sum brings their NaN to the results."""

from __future__ import annotations

import numpy as np
import pytest

import xnp
from xjit import jit
from xnp import lax

pytestmark = pytest.mark.of_the_cpu

GENERATOR = np.random.default_rng(28)
X = GENERATOR.uniform(-1, 1, (64, 80)).astype(np.float32)
HOLES = X.copy()  # NaN in some rows, and so in some columns
HOLES[3, 7] = HOLES[3, 60] = HOLES[40, 0] = HOLES[63, 79] = np.nan
HOLES[9] = np.nan


def own_softmax(xp, x, axis):
    powers = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
    return powers / xp.sum(powers, axis=axis, keepdims=True)


def own_log_softmax(xp, x, axis):
    shifted = x - xp.max(x, axis=axis, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


def softmin(xp, x, axis):
    powers = xp.exp(xp.min(x, axis=axis, keepdims=True) - x)
    return powers / xp.sum(powers, axis=axis, keepdims=True)


def scaled_after_masks(xp, x, axis):
    p = own_softmax(xp, xp.where(x > 0.9, -1.0, x) * 3.0, axis)
    return xp.where(p > 0.5, p * 2.0, p) + 1.0


SUMMED = [own_softmax, own_log_softmax, softmin, scaled_after_masks]


def has_guard(fun, x):
    text = jit(fun).lower(x).as_text()
    return any(word in text for word in ("stablehlo.if", "optimization_barrier"))


def check(fun, x):
    """Compare a compiled function of the module of arrays and an array with NumPy."""
    with np.errstate(all="ignore"):
        expected = fun(np, x)
    found = np.asarray(jit(lambda x: fun(xnp, x))(x))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    # a few roundings of exp and sums of 80 in float32
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("axis", [1, 0, -1, (0, 1)])
@pytest.mark.parametrize("fun", SUMMED)
def test_softmax_and_its_like_read_the_extreme_as_it_is(fun, axis):
    assert not has_guard(lambda x: fun(xnp, x, axis), X)
    for x in (X, HOLES):
        check(lambda xp, x: fun(xp, x, axis), x)


def differences(xp, x):
    return x - xp.max(x, axis=1, keepdims=True)


def powers(xp, x):
    return xp.exp(differences(xp, x))


def sums_of_other_rows(xp, x):
    return powers(xp, x) / xp.sum(powers(xp, x), axis=0, keepdims=True)


def the_extreme_as_well(xp, x):
    return xp.where(xp.max(x, axis=1, keepdims=True) > 0.0, own_softmax(xp, x, 1), 1.0)


def a_sum_that_is_replaced(xp, x):
    total = xp.sum(powers(xp, x), axis=1, keepdims=True)
    return powers(xp, x) / xp.where(total > 0, total, 1.0)


GUARDED = [differences, powers, sums_of_other_rows, the_extreme_as_well, a_sum_that_is_replaced]


@pytest.mark.parametrize("fun", GUARDED)
def test_extremes_that_show_in_results_keep_their_guard(fun):
    assert has_guard(lambda x: fun(xnp, x), X)
    for x in (X, HOLES):
        check(fun, x)


def random_program(seed):
    """Return a function of an array that reads its greatest elements, by a few random steps."""
    steps = np.random.default_rng(seed).integers(0, 1 << 30, (7, 3))

    def fun(xp, x):
        values = [x, xp.max(x, axis=1, keepdims=True)]
        values.append(values[0] - values[1])
        values.append(xp.exp(values[2]))
        for kind, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            values.append([
                lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - b,
                lambda a, b: a / (b * b + 1.0), lambda a, b: -a, lambda a, b: xp.exp(-(a * a)),
                lambda a, b: xp.sum(a, axis=1, keepdims=True) + b,
                lambda a, b: xp.where(a > b, a, b), lambda a, b: xp.where(a > 0.5, a, 0.5),
                lambda a, b: xp.sum(a, axis=0, keepdims=True) * b,
                lambda a, b: a / xp.sum(values[3], axis=1, keepdims=True),
                lambda a, b: xp.maximum(a, b), lambda a, b: xp.minimum(a, 0.5) + b,
            ][kind % 13](a, b))  # fmt: skip
        return values[-1] + xp.zeros_like(x)

    return fun


@pytest.mark.sampled(every=20)
@pytest.mark.parametrize("seed", range(200))
def test_random_programs_have_the_nan_of_numpy(seed):
    fun = random_program(seed)
    with np.errstate(all="ignore"):
        expected = fun(np, HOLES)
    found = np.asarray(jit(lambda x: fun(xnp, x))(HOLES))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))


SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 1e-3, 3.0], np.float32)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_of_two_have_the_bits_of_short_arrays(name, dtype):
    """Below 4,096 elements they are the operation itself; a sum behind has every NaN."""
    extreme = getattr(xnp, name)
    x, y = np.broadcast_arrays(SPECIAL[:, None], SPECIAL)
    x, y = (xnp.array(v.ravel(), dtype) for v in (x, y))

    def of_all(x, y):
        bounds = [extreme(x, float(bound)) for bound in SPECIAL]
        return xnp.stack([extreme(x, y), *bounds, *[extreme(float(b), y) for b in SPECIAL]])

    short = np.asarray(jit(of_all)(x, y))
    long_x, long_y = (xnp.tile(v, 60) for v in (x, y))
    long = np.asarray(jit(of_all)(long_x, long_y))
    bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[short.itemsize]
    is_nan = np.isnan(short)  # which NaN it is may differ
    expected = np.tile(np.where(is_nan, 0, short.view(bits)), 60)
    np.testing.assert_array_equal(np.where(np.isnan(long), 0, long.view(bits)), expected)
    sums = jit(lambda x, y: of_all(x, y).sum(1))(long_x, long_y)
    assert np.isnan(np.asarray(sums)).all()


ROWS = np.ones((64, 128), np.float32)
ROWS[3, 7] = np.nan


def positive(x):
    return xnp.maximum(x, 0.0)


@pytest.mark.parametrize("fun", [
    lambda x: jit(positive)(x).sum(1),
    lambda x: lax.fori_loop(0, 2, lambda i, total: total + positive(x).sum(1), xnp.zeros(64)),
    lambda x: lax.cond(x[0, 0] > 0, lambda x: positive(x).sum(1), lambda x: x[:, 0], x),
    lambda x: positive(1.0 - x * x.sum(1, keepdims=True))[:, 0],
    lambda x: xnp.minimum(x, x[::-1]).sum(1)[:32],
])  # fmt: skip
def test_programs_within_programs_keep_nan(fun):
    found = np.asarray(jit(fun)(ROWS))
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(found)), [3])


def test_programs_without_reductions_have_the_operation_itself():
    text = jit(lambda x: xnp.maximum(x, 0.0) * x).lower(ROWS).as_text()
    assert "stablehlo.maximum" in text
    assert "stablehlo.select" not in text
