"""Batching and devices: vmap of the documents' functions, pmap over every device."""

import numpy as np
import pytest

import xstack.numpy as xnp
from xstack import device_count, jit, lax, pmap, vmap


def convolve(x, w):
    output = []
    for i in range(1, len(x) - 1):
        output.append(xnp.dot(x[i - 1 : i + 2], w))
    return xnp.array(output)


@pytest.fixture
def signals():
    x, w = np.arange(5.0, dtype=np.float32), np.array([2.0, 3.0, 4.0], np.float32)
    return np.stack([x, 2 * x]), np.stack([w, w + 1])


def expected(xs, ws):
    return np.stack([np.correlate(x, w, "valid") for x, w in zip(xs, ws, strict=True)])


def test_convolve_alone():
    np.testing.assert_array_equal(
        convolve(xnp.arange(5.0), xnp.array([2.0, 3.0, 4.0])), [11.0, 20.0, 29.0]
    )


def test_convolve_batched(signals):
    xs, ws = signals
    np.testing.assert_array_equal(vmap(convolve)(xs, ws), expected(xs, ws))
    np.testing.assert_array_equal(jit(vmap(convolve))(xs, ws), expected(xs, ws))
    np.testing.assert_array_equal(vmap(jit(convolve))(xs, ws), expected(xs, ws))


def test_convolve_batched_along_other_axes(signals):
    xs, ws = signals
    result = vmap(convolve, in_axes=1, out_axes=1)(xs.T, ws.T)
    np.testing.assert_array_equal(result, expected(xs, ws).T)


def test_convolve_with_one_shared_kernel(signals):
    xs, ws = signals
    result = vmap(convolve, in_axes=[0, None])(xs, ws[0])
    np.testing.assert_array_equal(result, expected(xs, [ws[0], ws[0]]))


def test_apply_matrix():
    rng = np.random.default_rng(0)
    mat = xnp.array(rng.normal(size=(15, 10)).astype(np.float32))
    batch = xnp.array(rng.normal(size=(5, 10)).astype(np.float32))

    def apply_matrix(v):
        return xnp.dot(mat, v)

    assert apply_matrix(batch[0]).shape == (15,)
    result = vmap(apply_matrix)(batch)
    assert result.shape == (5, 15)
    # a matrix product sums in another order than fifteen inner products: 10 terms of float32
    np.testing.assert_allclose(result, np.asarray(batch) @ np.asarray(mat).T, rtol=1e-5, atol=1e-6)


def test_absolute_difference_with_one_mapped_argument():
    result = vmap(lambda a, b: xnp.abs(a - b), (0, None))(xnp.arange(4.0), 2.0)
    np.testing.assert_array_equal(result, [2.0, 1.0, 0.0, 1.0])


def test_pmap_over_every_device_with_collectives_inside():
    n = device_count()
    x = np.arange(n, dtype=np.float32)

    def share(v):
        return v / lax.psum(v, "i")

    result = pmap(share, axis_name="i")(x)
    np.testing.assert_allclose(result, x / x.sum(), rtol=1e-6)
    total = pmap(lambda v: lax.psum(v * v, "i"), axis_name="i")(x)
    np.testing.assert_allclose(total, np.full(n, (x * x).sum()), rtol=1e-6)
