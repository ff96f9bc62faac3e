"""Constants of the same bits are one in a program, and so is what is computed from them."""

import numpy as np
import pytest

import xnp
from xjit import jit

SIZE = 24


def _text(f, *args):
    return jit(f).lower(*args).as_text()


def test_what_is_computed_from_equal_constants_is_computed_once():
    def root(x):
        return xnp.linalg.cholesky(x @ x.T + 3 * xnp.eye(SIZE))

    def f(x):
        return root(x) + root(x), root(x)[0]

    x = xnp.asarray(np.random.default_rng(0).normal(size=(SIZE, SIZE)).astype(np.float32))
    assert _text(f, x).count("lapack_spotrf_ffi") == 1
    both, row = jit(f)(x)
    host = np.asarray(x, np.float64)
    exact = np.linalg.cholesky(host @ host.T + 3 * np.eye(SIZE))
    # a factor of condition 100 in float32
    np.testing.assert_allclose(np.asarray(both), 2 * exact, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.asarray(row), exact[0], rtol=1e-4, atol=1e-4)


def test_results_and_inner_programs_use_the_one_constant():
    ones = [xnp.asarray(np.arange(SIZE, dtype=np.float32)) for _ in range(3)]

    @jit
    def inner(x):
        return x * ones[0] + x * ones[1]

    def f(x):
        return inner(x), ones[1], ones[2], x * ones[2]

    x = xnp.full(SIZE, 2.0, np.float32)
    expected = np.arange(SIZE, dtype=np.float32)
    for y, factor in zip(jit(f)(x), (4, 1, 1, 2), strict=True):
        np.testing.assert_array_equal(np.asarray(y), factor * expected)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros(SIZE, np.float32), -np.zeros(SIZE, np.float32)),
        (np.ones(SIZE, np.float32), np.ones(SIZE, np.float32).view(np.int32)),
        (np.ones(SIZE, np.float32), np.ones((4, 6), np.float32)),
        (np.arange(99.0, dtype=np.float32), np.where(np.arange(99) == 50, 7.0, np.arange(99.0))),
    ],
)
def test_constants_of_other_bits_or_types_stay_apart(one, other):
    x, y = xnp.asarray(one), xnp.asarray(other.astype(other.dtype.newbyteorder("=")))
    first, second = jit(lambda: (1 * x, 1 * y))()
    np.testing.assert_array_equal(np.asarray(first), one)
    np.testing.assert_array_equal(np.asarray(second), np.asarray(y))
    assert np.signbit(np.asarray(second)).any() == np.signbit(np.asarray(y)).any()
    assert np.asarray(second).dtype == np.asarray(y).dtype
