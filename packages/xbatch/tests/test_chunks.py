"""Batches that are run a few examples at a time."""

import numpy as np
import pytest

import xnp
from xbatch import vmap

X = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
Y = np.float32([1, 2, 3])


def several(x, y):
    return {"rows": xnp.sin(x) * y, "shared": y * 2, "sum": x.sum()}


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 6, 7, 100])
@pytest.mark.parametrize("in_axis", [0, 1])
def test_results_in_chunks_are_those_of_the_whole_batch(chunk_size, in_axis):
    out_axes = {"rows": 1, "shared": None, "sum": 0}
    x = X if in_axis == 0 else X.T
    found = vmap(several, (in_axis, None), out_axes, chunk_size=chunk_size)(x, Y)
    assert found["rows"].shape == (3, 7)
    np.testing.assert_allclose(found["rows"], (np.sin(X) * Y).T, rtol=1e-6)
    np.testing.assert_allclose(found["shared"], 2 * Y)
    np.testing.assert_allclose(found["sum"], X.sum(1), rtol=1e-5)


def test_a_chunk_is_what_the_function_sees_at_once():
    sizes = []

    def noted(x):
        sizes.append(x.shape)
        return x @ x

    inner = vmap(vmap(noted, chunk_size=2), chunk_size=3)
    x = np.ones((5, 4, 3), np.float32)
    np.testing.assert_allclose(inner(x), np.full((5, 4), 3.0))
    assert set(sizes) == {(3,)}


def test_a_chunk_size_that_means_nothing_is_refused():
    with pytest.raises(ValueError, match="vmap: chunk_size must be at least 1"):
        vmap(several, chunk_size=0)
    with pytest.raises(TypeError, match="vmap: chunk_size must be an int or None"):
        vmap(several, chunk_size=2.5)
    with pytest.raises(ValueError, match="chunk_size does not go with axis_name"):
        vmap(several, axis_name="i", chunk_size=2)
