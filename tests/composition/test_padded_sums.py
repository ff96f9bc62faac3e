"""Sums of padded arrays, which are written as ends and a middle."""

from __future__ import annotations

import numpy as np
import pytest

import xad
import xnp
from xjit import jit
from xjit.xla_workarounds import padded_sums
from xnp import lax
from xprim import make_jaxpr

pytestmark = pytest.mark.of_the_cpu

N = 1 << 16
X = np.random.default_rng(0).integers(-9, 10, N).astype(np.float32)  # whose sums are exact


def _sums(fun, *operands):
    found = padded_sums.find_padded_sums(make_jaxpr(fun)(*operands).jaxpr)
    return sum(type(written) is padded_sums.PaddedSum for written in found.values())


def _pad(x, low, high):
    return lax.pad(x, np.zeros((), x.dtype), [(low, high, 0), *[(0, 0, 0)] * (x.ndim - 1)])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("shape", [(N,), (N // 8, 2, 4)])
def test_random_trees_of_sums_have_the_elements_of_numpy(dtype, shape):
    rng = np.random.default_rng(len(shape))
    for _ in range(4):
        lows = rng.integers(-5, 6, 5).tolist()
        lengths = (len(X[: shape[0]]) - rng.integers(0, 9, 5)).tolist()
        x = xnp.asarray(X.reshape(shape).astype(dtype))

        def tree(x, lows=lows, lengths=lengths):
            a, b, c, d, e = [
                _pad((i + 1) * x[:n], low, len(x) + 3 - n - low)
                for i, (low, n) in enumerate(zip(lows, lengths, strict=True))
            ]
            return (a - b) + ((c + d) - e)

        assert _sums(tree, x) == 1
        np.testing.assert_array_equal(jit(tree)(x), tree(x))


def test_infinities_and_nan_stay_where_they_are():
    x = X.copy()
    x[[0, 3, N - 1]] = np.inf, np.nan, -np.inf
    kernel = np.array([np.inf, 1, 0, 2], np.float32)
    convolve = jit(xnp.convolve)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(convolve(x, kernel), np.convolve(x, kernel))
        np.testing.assert_array_equal(convolve(X, kernel), np.convolve(X, kernel))


@pytest.mark.parametrize("mode", ["full", "same"])
@pytest.mark.parametrize("size", [2, 3, 9, 16])
def test_convolutions_are_those_of_numpy(mode, size):
    kernel = X[:size]
    assert _sums(lambda x: xnp.convolve(x, kernel, mode), X) == 1
    found = jit(xnp.convolve, static_argnums=2)(X, kernel, mode)
    np.testing.assert_array_equal(found, np.convolve(X, kernel, mode))


def test_gradients_of_shifted_slices_are_written_so_too():
    def length(x):
        return ((x[2:] - 2 * x[1:-1] + x[:-2]) ** 2).sum()

    gradient = xad.grad(length)
    assert _sums(gradient, X) == 1
    second = np.convolve(X, [1, -2, 1], "valid")
    np.testing.assert_array_equal(jit(gradient)(X), 2 * np.convolve(second, [1, -2, 1]))


def test_sums_that_are_not_of_ends_alone_are_as_they_were():
    assert _sums(lambda x: _pad(x, 1, 0) + _pad(x, 0, 1), X[:100]) == 0  # few elements
    assert _sums(lambda x: _pad(x, N, 0) + _pad(x, 0, N), X) == 0  # no middle
    assert _sums(lambda x: xnp.pad(x, 1, constant_values=2) + _pad(x, 0, 2), X) == 0
    assert _sums(lambda x: (_pad(x, 1, 0) + _pad(x, 0, 1), _pad(x, 1, 0)), X) == 1
    negative = np.float32(-0.0)
    assert _sums(lambda x: lax.pad(x, negative, [(1, 0, 0)]) + _pad(x, 0, 1), X) == 0
    rows = X.reshape(256, 256)
    assert _sums(lambda x: xnp.pad(x, ((0, 0), (1, 0))) + xnp.pad(x, ((0, 0), (0, 1))), rows) == 0

    def read_twice(x):
        y = _pad(x, 1, 0) + _pad(x, 0, 1)
        return y, _pad(x, 0, 1) + y

    assert _sums(read_twice, X) == 1
    for found, expected in zip(jit(read_twice)(X), read_twice(xnp.asarray(X)), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8", "uint16"])
@pytest.mark.parametrize("config", [((3, 4, 0),) * 2, ((-1, 5, 0), (0, -2, 0)), ((1, 1, 2),) * 2])
def test_arguments_that_are_padded_have_the_bits_of_numpy(dtype, config):
    x = X[:8192].reshape(64, 128).astype(dtype)
    x[0, :2] = -0.0, 5
    value = np.asarray(7, dtype) if dtype == "uint16" else np.asarray(-0.5, dtype)

    def pad(x):
        return lax.pad(x, value, config)

    expected = np.asarray(pad(xnp.asarray(x)))
    program = jit(pad).lower(x)
    assert "bitcast_convert" in program.as_text()
    found = np.asarray(jit(pad)(x))
    assert found.dtype == dtype
    assert found.tobytes() == expected.tobytes()


def test_padding_of_what_is_computed_is_as_it_was():
    def text(fun, x):
        return jit(fun).lower(x).as_text()

    assert "bitcast_convert" in text(lambda x: xnp.pad(x, 1), X)
    assert "bitcast_convert" not in text(lambda x: xnp.pad(x, 1), X[:100])
    assert "bitcast_convert" not in text(lambda x: xnp.pad(2 * x, 1), X)
    assert "bitcast_convert" not in text(lambda x: 2 * xnp.pad(x, 1), X)
    assert "bitcast_convert" not in text(lambda x: xnp.pad(x, 1), X > 0)
