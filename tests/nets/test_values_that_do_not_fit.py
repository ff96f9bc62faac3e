"""Values written into arrays of a narrower kind: never cut off without a word.

A row is a function that writes a value into an array of integers, or fills one with it. It raises a
TypeError for 1.5 and for 1j, or its result is of a wider dtype and has the value; what converts as
NumPy's function of the name does is in a table of its own, and has NumPy's value.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import lax

X = np.arange(6, dtype=np.int32)
M = X.reshape(2, 3)
OUT = np.array([9])
SCATTERED = lax.ScatterDimensionNumbers((), (0,), (0,))

Row = Callable[[Any, Any], Any]
WRITTEN: dict[str, Row] = {
    "place": lambda x, v: xnp.place(x, x > 2, v, inplace=False),
    "put": lambda x, v: xnp.put(x, np.array([1]), v, inplace=False),
    "put_along_axis": lambda x, v: xnp.put_along_axis(
        x.reshape(2, 3), np.array([[1], [0]]), v, 1, inplace=False
    ),
    "fill_diagonal": lambda x, v: xnp.fill_diagonal(x.reshape(2, 3), v, inplace=False),
    **{
        f"at[].{method}": lambda x, v, method=method: getattr(x.at[1], method)(v)
        for method in ("set", "add", "subtract", "multiply", "divide", "min", "max")
    },
    "at[mask].set": lambda x, v: x.at[x > 2].set(v),
    "at[].get": lambda x, v: x.at[OUT].get(mode="fill", fill_value=v),
    "take": lambda x, v: xnp.take(x, OUT, mode="fill", fill_value=v),
    "take_along_axis": lambda x, v: xnp.take_along_axis(x, OUT, 0, mode="fill", fill_value=v),
    "compress": lambda x, v: xnp.compress(x > 2, x, size=4, fill_value=v),
    "extract": lambda x, v: xnp.extract(x > 2, x, size=4, fill_value=v),
    "nonzero": lambda x, v: xnp.nonzero(x > 9, size=2, fill_value=v)[0],
    "flatnonzero": lambda x, v: xnp.flatnonzero(x > 9, size=2, fill_value=v),
    "argwhere": lambda x, v: xnp.argwhere(x > 9, size=2, fill_value=v),
    "where of one": lambda x, v: xnp.where(x > 9, size=2, fill_value=v)[0],
    "unique": lambda x, v: xnp.unique(x, size=9, fill_value=v),
    "unique of nothing": lambda x, v: xnp.unique(x[:0], size=2, fill_value=v),
    "union1d": lambda x, v: xnp.union1d(x, x, size=9, fill_value=v),
    "setdiff1d": lambda x, v: xnp.setdiff1d(x, x, size=3, fill_value=v),
    "intersect1d": lambda x, v: xnp.intersect1d(x, x, size=9, fill_value=v),
    "setxor1d": lambda x, v: xnp.setxor1d(x, x, size=3, fill_value=v),
    "where": lambda x, v: xnp.where(x > 2, x, v),
    "select": lambda x, v: xnp.select([x > 2], [x], v),
    "choose": lambda x, v: xnp.choose(np.array([0, 1]), [np.array([1, 2]), v]),
    "clip": lambda x, v: xnp.clip(x, v, None),
    "append": lambda x, v: xnp.append(x, v),
    "diff": lambda x, v: xnp.diff(x, prepend=v),
    "interp": lambda x, v: xnp.interp(x - 1.0, x, x, left=v),
    "lax.pad": lambda x, v: lax.pad(x, v, [(1, 1, 0)]),
    "lax.reduce": lambda x, v: lax.reduce(x, v, lax.add, (0,)),
    "lax.reduce_window": lambda x, v: lax.reduce_window(x, v, lax.add, (2,)),
    "lax.dynamic_update_slice": lambda x, v: lax.dynamic_update_slice(x, xnp.array([v]), (0,)),
    "lax.dynamic_update_index_in_dim": lambda x, v: lax.dynamic_update_index_in_dim(x, v, 0, 0),
    "lax.scatter": lambda x, v: lax.scatter(x, np.array([1]), v, SCATTERED),
    "lax.scatter_add": lambda x, v: lax.scatter_add(x, np.array([1]), v, SCATTERED),
    "lax.scatter_sub": lambda x, v: lax.scatter_sub(x, np.array([1]), v, SCATTERED),
    "lax.select": lambda x, v: lax.select(x > 2, x, xnp.full(6, v)),
    "lax.clamp": lambda x, v: lax.clamp(v, x, v),
    "fori_loop": lambda x, v: lax.fori_loop(0, v, lambda i, c: c + 1, x),
    "scan": lambda x, v: lax.scan(lambda c, _: (c, v), x, None, length=2)[1],
    "a reference": lambda x, v: _write(xstack.new_ref(x), v),
}  # fmt: skip

AS_NUMPY: dict[str, tuple[Row, Row]] = {
    "insert": (lambda x, v: xnp.insert(x, 1, v), lambda x, v: np.insert(x, 1, v)),
    "pad": (
        lambda x, v: xnp.pad(x, 1, constant_values=v),
        lambda x, v: np.pad(x, 1, constant_values=v),
    ),
    "piecewise": (
        lambda x, v: xnp.piecewise(x, [x > 2], [v, 1]),
        lambda x, v: np.piecewise(x, [x > 2], [v, 1]),
    ),
    "full_like": (lambda x, v: xnp.full_like(x, v), lambda x, v: np.full_like(x, v)),
    "full": (lambda x, v: xnp.full(3, v, x.dtype), lambda x, v: np.full(3, v, x.dtype)),
    "astype": (
        lambda x, v: xnp.asarray(v).astype(x.dtype), lambda x, v: np.asarray(v).astype(x.dtype)
    ),
    "cumsum": (
        lambda x, v: xnp.cumsum(xnp.array([v, v]), dtype=x.dtype),
        lambda x, v: np.cumsum(np.array([v, v]).astype(x.dtype)),
    ),
}  # fmt: skip


def _write(ref: Any, value: Any) -> Any:
    ref[1] = value
    return ref[...]


@pytest.mark.parametrize("form", ["a number", "an array"])
@pytest.mark.parametrize("value", [1.5, 1j, 0.5 + 2j])
@pytest.mark.parametrize("name", WRITTEN)
def test_a_value_that_does_not_fit_is_refused_or_widens_the_result(
    name: str, value: complex, form: str
) -> None:
    """`place` wrote 1 for 1.5, `lax.pad` 0 for 1j, and `interp` left out imaginary parts."""
    given = value if form == "a number" else xnp.asarray(value)
    try:
        found = np.asarray(WRITTEN[name](xnp.asarray(X), given))
    except (TypeError, ValueError):
        return
    if name == "clip":
        assert found.min() == value
    elif name == "diff":
        assert found[0] == -value
    else:
        assert value in found


@pytest.mark.parametrize("name", WRITTEN)
def test_a_value_that_fits_is_written(name: str) -> None:
    """An integer as a number of Python: no row above passes since it refuses everything."""
    np.testing.assert_equal(np.asarray(WRITTEN[name](xnp.asarray(X), 2)).dtype.kind in "if", True)


@pytest.mark.parametrize("value", [1.5, -2.7])
@pytest.mark.parametrize("name", AS_NUMPY)
def test_what_converts_as_in_numpy_has_its_value(name: str, value: float) -> None:
    ours, theirs = AS_NUMPY[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(np.asarray(ours(xnp.asarray(X), value)), theirs(X, value))


FILLED = ["at[].get", "take", "take_along_axis", "compress", "extract", "unique", "union1d",
          "setdiff1d", "intersect1d", "setxor1d", "unique of nothing"]  # fmt: skip


@pytest.mark.parametrize("name", FILLED)
def test_a_float_that_is_an_integer_fills_what_is_missing(name: str) -> None:
    found = np.asarray(WRITTEN[name](xnp.asarray(X), 2.0))
    assert found.dtype == np.int32 and 2 in found
