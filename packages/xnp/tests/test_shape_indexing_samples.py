"""Samples of shape, indexing, ordering and window primitives, and their public functions."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import xnp.lax as lax
from tests.nets.cells import IN_FULL, spread
from xnp.testing.samples import ordering, shape, slicing, windows
from xprim import as_array, get_primitive, make_jaxpr, state
from xprim.testing import Sample, check_shape

TABLE = {**shape.TABLE, **slicing.TABLE, **ordering.TABLE, **windows.TABLE}


@pytest.mark.parametrize("name", sorted(TABLE))
def test_numpy_rules_give_what_shape_rules_say(name: str) -> None:
    for sample in TABLE[name]:
        check_shape(name, sample)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_numpy_rules_leave_their_operands_alone(name: str) -> None:
    primitive = get_primitive(name)
    for sample in TABLE[name]:
        before = [np.array(x) for x in sample.operands]
        given = [np.array(x) for x in sample.operands]
        state.run_quietly(primitive.rule("numpy"), *given, **sample.params)
        for a, b in zip(before, given, strict=True):
            assert a.tobytes() == b.tobytes()


def _f32(*values: Any) -> Any:
    return np.float32(values)


def _jax_results(sample: Sample, function: Any) -> Any:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        return [np.asarray(y) for y in jax.tree.leaves(function(*sample.operands))]


def _comparable(x: Any) -> Any:
    return x.astype(np.float32) if x.dtype.kind == "V" else x


def _bound(name: str, sample: Sample) -> list[Any]:
    outs = get_primitive(name).bind(*sample.arrays(), **sample.params)
    return [np.asarray(y) for y in outs]


_PARAMS = {
    "pad": lambda j, x, v, padding_config: j.pad(x, v, padding_config),
    "rev": lambda j, x, dimensions: j.rev(x, dimensions),
    "slice": lambda j, x, **p: j.slice(x, **p),
    "dynamic_slice": lambda j, x, *s, slice_sizes: j.dynamic_slice(
        x, s, slice_sizes, allow_negative_indices=False),
    "dynamic_update_slice": lambda j, x, u, *s: j.dynamic_update_slice(
        x, u, s, allow_negative_indices=False),
    "sort": lambda j, *xs, dimension, is_stable, num_keys: j.sort(
        xs, dimension, is_stable, num_keys),
    "argmax": lambda j, x, axes, index_dtype: j.argmax(x, axes[0], index_dtype),
    "argmin": lambda j, x, axes, index_dtype: j.argmin(x, axes[0], index_dtype),
    "cumsum": lambda j, x, **p: j.cumsum(x, **p),
    "cumprod": lambda j, x, **p: j.cumprod(x, **p),
    "cumlogsumexp": lambda j, x, **p: j.cumlogsumexp(x, **p),
}  # fmt: skip


@pytest.mark.fuzz
@pytest.mark.parametrize("name", sorted(_PARAMS))
def test_numpy_rules_agree_with_jax(name: str) -> None:
    jax_lax = pytest.importorskip("jax.lax")
    chosen = [s for s in TABLE[name] if np.dtype(s.operands[0].dtype).kind in "fiuc"]
    first = chosen[:16]  # the shapes and edge cases come first; an ordinary run tries a third
    for sample in first if IN_FULL else [first[k] for k in spread(name, [0] * len(first), 3)]:
        if not all(x.ndim for x in sample.operands[:1]):
            continue  # JAX takes no rank 0 in some of these
        function = functools.partial(_PARAMS[name], jax_lax, **sample.params)
        want = _jax_results(sample, function)
        for a, b in zip(_bound(name, sample), want, strict=True):
            tolerance = 1e-3 if a.dtype.itemsize < 4 else 1e-5 if a.dtype.itemsize == 4 else 1e-12
            exact = a.dtype.kind not in "fc"
            np.testing.assert_allclose(
                _comparable(a), _comparable(b), rtol=0 if exact else tolerance,
                atol=0 if exact else tolerance, err_msg=sample.label(),
            )  # fmt: skip


def test_sort_puts_nan_last_and_keeps_the_order_of_zeros() -> None:
    x = _f32(np.nan, 0.0, -0.0, -np.inf, np.inf, -1.0)
    got = np.asarray(lax.sort(x))
    np.testing.assert_array_equal(got, _f32(-np.inf, -1, 0, 0, np.inf, np.nan))
    assert np.signbit(got).tolist()[2:4] == [False, True]


def test_argmax_takes_the_first_nan_as_numpy_does() -> None:
    x = _f32(1, np.nan, 5, np.nan)
    assert int(lax.argmax(x, 0, "int32")) == int(lax.argmin(x, 0, "int32")) == 1


def test_top_k_orders_equals_by_index() -> None:
    values, places = lax.top_k(np.int32([3, 7, 7, 1]), 3)
    assert np.asarray(values).tolist() == [7, 7, 3]
    assert np.asarray(places).tolist() == [1, 2, 0]


def test_dynamic_slice_counts_negative_starts_from_the_end_only_when_allowed() -> None:
    x = np.arange(6, dtype=np.float32)
    assert np.asarray(lax.dynamic_slice(x, (-2,), (2,))).tolist() == [4, 5]
    with pytest.raises(ValueError, match="the start -2 of dimension 0 is negative"):
        lax.dynamic_slice(x, (-2,), (2,), allow_negative_indices=False)


def test_dynamic_slice_of_traced_starts_counts_from_the_end() -> None:
    x = np.arange(6, dtype=np.float32)
    closed = make_jaxpr(lambda i: lax.dynamic_slice(x, (i,), (2,)))(np.int32(0))
    names = [eqn.primitive.name for eqn in closed.jaxpr.eqns]
    assert names[-1] == "dynamic_slice" and "select_n" in names


@pytest.mark.parametrize(
    ("wrong", "kind", "text"),
    [
        (lambda x: lax.reshape(x, (4, 2)), TypeError, "number of elements changes from 6 to 8"),
        (lambda x: lax.reshape(x, (-1,)), ValueError, "must not be negative"),
        (lambda x: lax.transpose(x, (0, 0)), TypeError, "name each dimension of the operand once"),
        (lambda x: lax.squeeze(x, (0,)), ValueError, "cannot select an axis to squeeze out"),
        (lambda x: lax.squeeze(x, (5,)), ValueError, "axis 5 is out of bounds"),
        (lambda x: lax.concatenate([x, lax.reshape(x, (6,))], 0), TypeError,
         "may differ only in dimension 0"),
        (lambda x: lax.concatenate([], 0), ValueError, "needs at least one array"),
        (lambda x: lax.pad(x, 0, [(1, 1, 0)]), ValueError, "one .low, high, interior. for each"),
        (lambda x: lax.pad(x, 0, [(-9, 0, 0), (0, 0, 0)]), ValueError, "after padding is not at"),
        (lambda x: lax.slice(x, (0, 0), (3, 3)), TypeError, "bounds must be within the operand"),
        (lambda x: lax.split(x, (1, 2)), ValueError, "a sum of 2, not 3"),
        (lambda x: lax.index_in_dim(x, 2), IndexError, "index 2 is out of bounds for axis 0"),
        (lambda x: lax.dynamic_slice(x, (0,), (1, 1)), TypeError, "a start for each dimension"),
        (lambda x: lax.dynamic_slice(x, (0, 0), (3, 1)), TypeError, "does not fit into the op"),
        (lambda x: lax.argmax(np.zeros((0, 2), np.float32),
                              0, "int32"), ValueError, "require non-empty reduced dimension"),
        (lambda x: lax.top_k(x, 4), ValueError, "from 0 to the size of the axis, 3"),
        (lambda x: lax.sort(x, 2), ValueError, "axis 2 is out of bounds"),
        (lambda x: lax.sort([x, lax.reshape(x, (3, 2))]), TypeError, "must have one shape"),
        (lambda x: lax.iota("bool", 3), TypeError, "needs a number dtype"),
        (lambda x: lax.broadcast_shapes((2,), (3,)), ValueError, "Incompatible shapes for"),
        (lambda x: lax.broadcast_shapes((-1,)), ValueError, "a size must not be negative"),
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (2,)), TypeError | ValueError, "each"),
    ],
)  # fmt: skip
def test_errors_say_what_is_wrong(wrong: Any, kind: Any, text: str) -> None:
    x = as_array(np.zeros((2, 3), np.float32))
    kinds = tuple(getattr(kind, "__args__", (kind,)))
    with pytest.raises(kinds, match=text):
        wrong(x)


@pytest.mark.parametrize("padding", ["SAME", "VALID", "SAME_LOWER", ((1, 0), (0, 2))])
@pytest.mark.parametrize(("name", "init"), [("add", 0.0), ("max", -np.inf), ("mul", 1.0)])
def test_reduce_window_agrees_with_jax(name: str, init: float, padding: Any) -> None:
    jax_lax = pytest.importorskip("jax.lax")
    x = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    how = {"window_dimensions": (2, 3), "window_strides": (2, 1), "padding": padding,
           "window_dilation": (1, 2)}  # fmt: skip
    want = jax_lax.reduce_window(x, np.float32(init), getattr(jax_lax, name), **how)
    got = lax.reduce_window(x, np.float32(init), getattr(lax, name), **how)
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5)


def test_reduce_window_takes_pairs() -> None:
    def later_maximum(a: Any, b: Any) -> Any:
        keep = lax.gt(a[0], b[0])
        return lax.select(keep, a[0], b[0]), lax.select(keep, a[1], b[1])

    x, tags = _f32(1, 5, 2, 4), np.int32([0, 1, 2, 3])
    best, where = lax.reduce_window(
        (x, tags), (np.float32(-np.inf), np.int32(-1)), later_maximum, (2,)
    )
    assert np.asarray(best).tolist() == [5, 5, 4]
    assert np.asarray(where).tolist() == [1, 1, 3]


def test_shape_functions_agree_with_numpy() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    pairs = [
        (lax.expand_dims(x, (0, -1)), x[None, ..., None]),
        (lax.stack([x, x], 1), np.stack([x, x], 1)),
        (lax.tile(x, (2, 3)), np.tile(x, (2, 3))),
        (lax.unstack(x, 1)[2], x[:, 2]),
        (lax.collapse(x, 0), x.reshape(-1)),
        (lax.broadcast(x, (2,)), np.broadcast_to(x, (2, 2, 3))),
        (lax.broadcasted_iota("float32", (2, 3), 1), np.indices((2, 3), np.float32)[1]),
        (lax.slice_in_dim(x, 0, -1, 2, axis=1), x[:, 0:-1:2]),
        (lax.index_in_dim(x, -1, 1, keepdims=False), x[:, -1]),
        (lax.reshape(x, (3, 2), (1, 0)), x.T.reshape(3, 2)),
        (lax.dynamic_index_in_dim(x, 1, 1, keepdims=False), x[:, 1]),
    ]
    for got, want in pairs:
        np.testing.assert_array_equal(np.asarray(got), want)


def test_updates_in_one_dimension_agree_with_numpy() -> None:
    x, column = np.zeros((2, 3), np.float32), _f32(7, 8)
    want = x.copy()
    want[:, 1] = column
    narrow = lax.dynamic_update_index_in_dim(x, column, 1, 1)
    np.testing.assert_array_equal(np.asarray(narrow), want)
    wide = lax.dynamic_update_slice_in_dim(x, column[:, None], -2, 1)
    np.testing.assert_array_equal(np.asarray(wide), want)
