"""Gather and scatter on random dimension numbers, against the oracle and against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xnp.lax as lax
from xnp.lax import GatherDimensionNumbers, ScatterDimensionNumbers
from xprim import as_array, config, eval_closed, make_jaxpr


def random_case(rng: Any) -> tuple[Any, ...]:
    """Return a shape, indices, dimension numbers and slice sizes that belong together."""
    ndim = int(rng.integers(0, 4))
    shape = tuple(int(v) for v in rng.integers(1, 5, ndim))
    dims = [int(d) for d in rng.permutation(ndim)]
    num_batching = int(rng.integers(0, min(ndim, 2) + 1))
    batching = sorted(dims[:num_batching])
    rest = [d for d in dims if d not in batching]
    mapped = rest[: int(rng.integers(0, len(rest) + 1))]
    collapsed = sorted(d for d in rest if rng.random() < 0.6)
    sizes = tuple(
        1 if d in batching or d in collapsed else int(rng.integers(1, shape[d] + 1))
        for d in range(ndim)
    )
    slots = [("batching", d) for d in batching]
    slots += [("free", int(n)) for n in rng.integers(1, 4, int(rng.integers(0, 3)))]
    slots = [slots[i] for i in rng.permutation(len(slots))]
    batch = [shape[v] if kind == "batching" else v for kind, v in slots]
    places = tuple(slots.index(("batching", d)) for d in batching)
    rank = len(batch) + ndim - len(collapsed) - len(batching)
    offset = sorted(int(d) for d in rng.permutation(rank)[: rank - len(batch)])
    dtype = rng.choice(["int32", "int8", "uint32", "int64", "uint8"])
    low = -2 if dtype[0] == "i" else 0
    indices = rng.integers(low, 6, (*batch, len(mapped))).astype(dtype)
    numbers = (tuple(offset), tuple(collapsed), tuple(mapped), tuple(batching), places)
    return shape, indices, numbers, sizes


def promised(indices: Any, shape: Any, sizes: Any, mapped: Any) -> Any:
    """Return indices that keep the promise to be in bounds."""
    bounds = np.array([shape[d] - sizes[d] for d in mapped], np.int64)
    return np.minimum(np.maximum(indices.astype(np.int64), 0), bounds).astype(indices.dtype)


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
def test_gather_agrees_with_jax_on_random_dimension_numbers(seed: int, mode: str) -> None:
    jax_lax = pytest.importorskip("jax.lax")
    rng = np.random.default_rng(seed)
    for _ in range(8):
        shape, indices, numbers, sizes = random_case(rng)
        if mode == "promise_in_bounds":
            indices = promised(indices, shape, sizes, numbers[2])
        if indices.dtype == np.int64:
            indices = indices.astype(np.int32)
        x = rng.normal(size=shape).astype(np.float32)
        want = jax_lax.gather(
            x, indices, jax_lax.GatherDimensionNumbers(*numbers), sizes, mode=mode
        )
        got = lax.gather(x, indices, GatherDimensionNumbers(*numbers), sizes, mode=mode)
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("mode", ["clip", "drop", "promise_in_bounds"])
@pytest.mark.parametrize(
    "name", ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]
)
def test_scatters_agree_with_jax_on_random_dimension_numbers(name: str, mode: str) -> None:
    jax_lax = pytest.importorskip("jax.lax")
    rng = np.random.default_rng(len(name))
    for _ in range(6):
        shape, indices, numbers, sizes = random_case(rng)
        if indices.shape[-1] == 0:
            continue  # XLA fails to compile some of these
        if mode == "promise_in_bounds":
            indices = promised(indices, shape, sizes, numbers[2])
        if indices.dtype == np.int64:
            indices = indices.astype(np.int32)
        x = rng.normal(size=shape).astype(np.float32)
        windows = lax.gather(x, indices, GatherDimensionNumbers(*numbers), sizes, mode="clip")
        updates = rng.normal(size=windows.shape).astype(np.float32)
        want = getattr(jax_lax, name)(
            x, indices, updates, jax_lax.ScatterDimensionNumbers(*numbers), mode=mode
        )
        got = getattr(lax, name)(x, indices, updates, ScatterDimensionNumbers(*numbers), mode=mode)
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-6)


def test_int64_indices_are_used_in_full() -> None:
    with config.enable_x64(True):
        indices = np.array([[2**40], [1]])
        numbers = GatherDimensionNumbers((), (0,), (0,))
        got = lax.gather(np.float32([1, 2]), indices, numbers, (1,), mode="fill", fill_value=-1)
    np.testing.assert_array_equal(np.asarray(got), [-1, 2])


def test_scatter_apply_changes_only_the_indexed_elements() -> None:
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    got = lax.scatter_apply(
        np.float32([1, 2, 3]), np.array([[2], [0]]), lambda v: lax.mul(v, np.float32([10, 10])),
        numbers, update_shape=(2,),
    )  # fmt: skip
    np.testing.assert_array_equal(np.asarray(got), [10, 2, 30])


def test_index_take_counts_modulo_the_sizes() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    indices = (np.array([-1, 3, 7, -5]), np.array([1, 4, -6, 9]))
    got = lax.index_take(x, indices, (0, 1))
    np.testing.assert_array_equal(np.asarray(got), x[indices[0] % 3, indices[1] % 4])


def test_index_take_counts_negative_indices_from_the_end() -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    got = lax.index_take(x, (np.array([-1, 0]), np.array([1, -2])), (0, 1))
    np.testing.assert_array_equal(np.asarray(got), x[[-1, 0], [1, -2]])


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_wrong_dimension_numbers_are_explained(mode: str) -> None:
    numbers = GatherDimensionNumbers((0,), (0,), (0,))
    with pytest.raises(
        TypeError, match=r"gather: All components of the offset index in a gather op"
    ):
        lax.gather(np.zeros(3, np.float32), np.zeros((2, 1), np.int32), numbers, (1,), mode=mode)


def test_an_unknown_mode_is_refused_by_name() -> None:
    numbers = GatherDimensionNumbers((), (0,), (0,))
    with pytest.raises(ValueError, match="unknown mode 'wrap'"):
        lax.gather(np.zeros(3, np.float32), np.zeros((2, 1), np.int32), numbers, (1,), mode="wrap")


@pytest.mark.parametrize("traced", [False, True])
def test_gather_without_a_mode_moves_windows_inside_as_jax_does(traced: bool) -> None:
    """JAX takes no mode for a promise; NaN would be another answer."""
    jax_lax = pytest.importorskip("jax.lax")
    x, starts = np.arange(10, dtype=np.float32), np.array([[0], [8], [-1], [100]], np.int32)
    theirs = jax_lax.gather(x, starts, jax_lax.GatherDimensionNumbers((1,), (), (0,)), (3,))
    numbers = GatherDimensionNumbers((1,), (), (0,))
    with config.index_checks("allow"):
        ours = lax.gather(x, starts, numbers, (3,))
        if traced:
            closed = make_jaxpr(lambda x, i: lax.gather(x, i, numbers, (3,)))(x, starts)
            (ours,) = eval_closed(closed, as_array(x), as_array(starts))
        filled = lax.gather(x, starts, numbers, (3,), fill_value=-1)
    assert np.array_equal(ours, theirs)
    assert np.asarray(filled)[1].tolist() == [-1, -1, -1]
