"""What errors of gather and scatter say: which of the dimension numbers is wrong, and how."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xnp
from xnp import lax

OPERAND = xnp.zeros((5, 4, 3))
INDICES = xnp.zeros((6, 2), dtype="int32")
READS: dict[str, Any] = {
    "offset_dims": (1,), "collapsed_slice_dims": (0, 1), "start_index_map": (0, 1),
}  # fmt: skip
WRITES: dict[str, Any] = {
    "update_window_dims": (1,), "inserted_window_dims": (0, 1),
    "scatter_dims_to_operand_dims": (0, 1),
}  # fmt: skip
READS_OF_A_BATCH: dict[str, Any] = {
    "offset_dims": (1,), "collapsed_slice_dims": (1,), "start_index_map": (1,),
    "operand_batching_dims": (0,), "start_indices_batching_dims": (0,),
}  # fmt: skip


def read(sizes: Any = (1, 1, 3), **changed: Any) -> Any:
    numbers = lax.GatherDimensionNumbers(**{**READS, **changed})
    return lax.gather(OPERAND, INDICES, numbers, sizes)


def read_batch(places: int = 5, **changed: Any) -> Any:
    numbers = lax.GatherDimensionNumbers(**{**READS_OF_A_BATCH, **changed})
    return lax.gather(OPERAND, np.zeros((places, 1), np.int32), numbers, (1, 1, 3))


def write(updates: Any = (6, 3), **changed: Any) -> Any:
    numbers = lax.ScatterDimensionNumbers(**{**WRITES, **changed})
    return lax.scatter_add(OPERAND, INDICES, xnp.ones(updates), numbers)


def test_the_numbers_that_the_others_differ_from_are_right():
    assert read().shape == (6, 3) and read_batch().shape == (5, 3)
    assert write().sum().item() == 18.0


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"offset_dims": (1, 0), "collapsed_slice_dims": (0,)}, "offset_dims in gather op must be "
         r"sorted, got \(1, 0\)"),
        ({"offset_dims": (1, 1)}, "offset_dims in gather op must not repeat"),
        ({"offset_dims": (2,)}, "Offset dimension 0 in gather op is out of bounds: 2 of 2"),
        ({"offset_dims": (0, 1)}, "All components of the offset index"),
        ({"start_index_map": (0, 3)}, "Invalid start_index_map: 3 is not a dimension of 3"),
        ({"start_index_map": (1, 1)}, "start_index_map in gather op must not repeat"),
        ({"start_index_map": (0,)}, "has 1 elements in start_index_map and .* of indices is 2"),
        ({"collapsed_slice_dims": (1, 0)}, "collapsed_slice_dims in gather op must be sorted"),
        ({"collapsed_slice_dims": (0, 0)}, "collapsed_slice_dims in gather op must not repeat"),
        ({"collapsed_slice_dims": (0, 7)}, r"collapsed_slice_dims set .* \[0, 3\), got 7"),
        ({"sizes": (1, 3)}, "one slice size for every input dimension: 3, not 2"),
        ({"sizes": (1, 1, 4)}, "Slice size at index 2 .* out of range: 4, not from 0 to 3"),
        ({"sizes": (1, 2, 3)}, "collapse slice dims .* bound is 2 for index 1 at position 1"),
    ],
)  # fmt: skip
def test_an_error_of_gather_names_the_dimension_numbers_at_fault(changed, text):
    with pytest.raises(TypeError, match=f"gather: .*{text}"):
        read(**changed)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"operand_batching_dims": (1,)}, "collapsed_slice_dims and operand_batching_dims in"),
        ({"start_index_map": (0,)}, "start_index_map and operand_batching_dims in gather op"),
        ({"operand_batching_dims": (0, 0)}, "operand_batching_dims in gather op must not repeat"),
        ({"start_indices_batching_dims": (3,)}, r"Invalid start_indices_.* \[0, 2\), got 3"),
        ({"start_indices_batching_dims": (1,)}, "cannot have the index vector dimension"),
        ({"start_indices_batching_dims": ()}, "equal numbers of operand_batching_dims and"),
        ({"places": 4}, "operand batching dimensions and indices batching dimensions"),
    ],
)  # fmt: skip
def test_an_error_of_a_batched_gather_names_the_dimension_numbers_at_fault(changed, text):
    with pytest.raises(TypeError, match=f"gather: .*{text}"):
        read_batch(**changed)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"updates": (6, 3, 1)}, "Updates tensor must be of rank 2; got 3"),
        ({"update_window_dims": (4,)}, r"Invalid update_window_dims .* \[0, 2\), got 4"),
        ({"inserted_window_dims": (0,)}, "window of size 2; doesn't match operand of rank 3"),
        ({"inserted_window_dims": (1, 0)}, "inserted_window_dims in scatter op must be sorted"),
        ({"scatter_dims_to_operand_dims": (0, 9)}, "Invalid scatter_dims_.* mapping: 9"),
        ({"updates": (6, 4)}, r"Bounds of the window dimensions .* \(4,\) in \(3,\)"),
        ({"updates": (5, 3)}, r"Bounds of the scatter dimensions .* \(5,\) and \(6,\)"),
    ],
)  # fmt: skip
def test_an_error_of_scatter_names_the_dimension_numbers_at_fault(changed, text):
    with pytest.raises(TypeError, match=f"scatter.add: .*{text}"):
        write(**changed)
