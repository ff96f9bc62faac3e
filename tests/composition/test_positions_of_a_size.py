"""Positions and distinct elements of a size: computed at once by NumPy, and compiled."""

import numpy as np
import pytest

import xnp
from xjit import jit

MASKS = [np.array(m) for m in ([False], [True], [True, False, True, True], [[0, 2, 0], [3, 0, 4]])]


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("fill_value", [None, -1, 2.0])
def test_positions_of_a_size_are_the_same_at_once_and_compiled(mask, size, fill_value):
    def find(x):
        return xnp.nonzero(x, size=size, fill_value=fill_value)

    found, expected = find(xnp.asarray(mask)), jit(find)(xnp.asarray(mask))
    exact = [np.resize(np.append(p[:size], np.full(size, fill_value or 0)), size)
             for p in np.nonzero(mask)]  # fmt: skip
    for a, b, c in zip(found, expected, exact, strict=True):
        assert a.aval is b.aval
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, c)


@pytest.mark.sampled(every=4, per="count")
@pytest.mark.parametrize("count", [1, 40, 5000])
@pytest.mark.parametrize("kind", ["floats", "with_nan", "weak", "truths"])
def test_distinct_elements_are_the_same_at_once_and_of_their_number(count, kind):
    x = xnp.asarray(np.random.default_rng(count).integers(0, 9, count).astype("f4"))
    x = {"floats": x, "with_nan": xnp.where(x == 3, xnp.nan, x), "truths": x > 4,
         "weak": xnp.full((count,), 2.0)}[kind]  # fmt: skip
    for equal_nan in (True, False):
        values, counts = xnp.unique(x, return_counts=True, equal_nan=equal_nan)
        exact = np.unique(np.asarray(x), return_counts=True, equal_nan=equal_nan)
        np.testing.assert_array_equal(values, exact[0])
        np.testing.assert_array_equal(counts, exact[1])
        same = jit(lambda v, n=values.size, e=equal_nan: xnp.unique(v, size=n, equal_nan=e))(x)
        assert same.aval is values.aval
