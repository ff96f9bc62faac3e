"""Places in order are those of NumPy's stable sort, however they are found."""

import numpy as np
import pytest

from xnp import lax
from xnp.primitives.sort import stable_order

SPECIAL = np.float32([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 1e-45, -1e-45, 3.4e38, -3.4e38])
N = 6000


def _elements(kind):
    draw = np.random.default_rng(0)
    if kind == "special":
        return draw.choice(SPECIAL, N)
    if kind == "float32":
        return draw.normal(size=N).astype(np.float32)
    if kind == "float64 with ties":
        return np.concatenate([SPECIAL.astype(np.float64), np.round(draw.normal(size=N - 10) * 9)])
    if kind == "few":  # ties in the upper half of the bits, and in all
        return draw.integers(-3, 3, N, np.int32)
    limits = np.iinfo(kind)
    return draw.integers(limits.min, limits.max, N, kind, endpoint=True)


@pytest.mark.parametrize("layout", ["vector", "rows", "columns", "strided", "sorted"])
@pytest.mark.parametrize("kind", ["special", "float32", "few", "int32", "uint32", "int64",
                                  "float64 with ties"])  # fmt: skip
def test_order_is_that_of_the_stable_sort(kind, layout):
    x, axis = _elements(kind), 0
    if layout == "rows":
        x, axis = np.stack([x, x[::-1]]), 1
    elif layout == "columns":
        x = np.stack([x, x[::-1]], 1)
    elif layout == "strided":
        x = np.repeat(x, 2)[::2]
    elif layout == "sorted":
        x = np.sort(x)
    assert (stable_order(x, axis) == np.argsort(x, axis=axis, kind="stable")).all()


@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("kind", ["few", "int32", "uint32", "float32", "sorted"])
def test_what_follows_keys_goes_where_the_stable_order_says(kind, dimension):
    keys = np.sort(_elements("int32")) if kind == "sorted" else _elements(kind)
    keys = np.stack([keys, keys[::-1]], 1 - dimension)
    others = [np.arange(keys.size, dtype=d).reshape(keys.shape) for d in (np.int32, np.float32)]
    found = lax.sort((keys, *others), dimension=dimension, num_keys=1, is_stable=True)
    order = np.argsort(keys, axis=dimension, kind="stable")
    for x, y in zip((keys, *others), found, strict=True):
        np.testing.assert_array_equal(y, np.take_along_axis(x, order, dimension), strict=True)


def test_what_is_in_no_order_is_sorted_by_vector_loops(monkeypatch):
    merged, argsort = [], np.argsort

    def noted(x, **options):
        if options.get("kind") == "stable":
            merged.append(x.dtype.name)
        return argsort(x, **options)

    monkeypatch.setattr(np, "argsort", noted)
    for kind in ("int32", "int64"):
        x = _elements(kind)
        stable_order(x, 0)
        assert merged == []
        stable_order(np.sort(x), 0)
        stable_order(x[:100], 0)
        assert merged == [kind, kind]
        merged.clear()
