"""Pieces for rules that move tangents along one dimension: by given indices, or by a recurrence.

`take_along` reads at indices that differ for every element of the other dimensions, `rows_along`
whole rows;
`linear_recurrence` solves y[i] = a[i] y[i-1] + b[i] in a logarithmic number of steps. Both are
linear (in `x`, and in `b`), so rules written with them can be transposed.
Neighbours: `sort`, `top_k` and the cumulative operations use them.
"""

from __future__ import annotations

from typing import Any

from xnp.primitives.dimensions import without
from xnp.primitives.index_modes import PROMISE_IN_BOUNDS, GatherDimensionNumbers
from xnp.primitives.operations import bind, filled, reshaped

__all__ = ()


def take_along(x: Any, indices: Any, axis: int) -> Any:
    """Return `x` read along an axis at indices that are in bounds, one for each element."""
    shape = indices.aval.shape
    if not indices.aval.size:
        return filled(shape, 0, x.aval.dtype)
    others = without(tuple(range(len(shape))), axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return bind(
        "gather", x, reshaped(indices, (*shape, 1)), dimension_numbers=numbers,
        slice_sizes=(1,) * len(shape), indices_are_sorted=False, unique_indices=False,
        mode=PROMISE_IN_BOUNDS, fill_value=None,
    )  # fmt: skip


def rows_along(x: Any, indices: Any) -> Any:
    """Return the rows of matrices at indices that are in bounds, a vector of them for each."""
    shape = x.aval.shape
    last = len(shape) - 1
    if not x.aval.size:
        return filled((*indices.aval.shape, shape[last]), 0, x.aval.dtype)
    batch = tuple(range(last - 1))
    numbers = GatherDimensionNumbers((last,), (last - 1,), (last - 1,), batch, batch)
    return bind(
        "gather", x, reshaped(indices, (*indices.aval.shape, 1)), dimension_numbers=numbers,
        slice_sizes=(*[1] * last, shape[last]), indices_are_sorted=False, unique_indices=False,
        mode=PROMISE_IN_BOUNDS, fill_value=None,
    )  # fmt: skip


def linear_recurrence(a: Any, b: Any, axis: int) -> Any:
    """Return y with y[0] = b[0] and y[i] = a[i] y[i-1] + b[i] along an axis.

    Neighbouring steps are joined to one, the recurrence of half the length is solved, and the
    elements between follow from it.
    """
    size = b.aval.shape[axis]
    if size < 2:
        return b
    a_odd, b_odd = _part(a, axis, 1, size, 2), _part(b, axis, 1, size, 2)
    a_even, b_even = (_part(v, axis, 0, size - 1, 2) for v in (a, b))
    joined = bind("add", bind("mul", a_odd, b_even), b_odd)
    y_odd = linear_recurrence(bind("mul", a_odd, a_even), joined, axis)
    first = _part(b, axis, 0, 1, 1)
    y_even = first
    if size > 2:
        a_rest, b_rest = _part(a, axis, 2, size, 2), _part(b, axis, 2, size, 2)
        before = _part(y_odd, axis, 0, b_rest.aval.shape[axis], 1)
        rest = bind("add", bind("mul", a_rest, before), b_rest)
        y_even = bind("concatenate", first, rest, dimension=axis)
    return bind("add", _interleaved(y_even, axis, 0, size), _interleaved(y_odd, axis, 1, size))


def shifted(x: Any, axis: int, value: Any) -> Any:
    """Return `x` moved by one place along an axis: a value first, the last element dropped."""
    config = [(0, 0, 0)] * x.aval.ndim
    config[axis] = (1, -1, 0)
    return bind("pad", x, filled((), value, x.aval.dtype), padding_config=tuple(config))


def _part(x: Any, axis: int, start: int, stop: int, step: int) -> Any:
    ndim = x.aval.ndim
    low, high, strides = [0] * ndim, list(x.aval.shape), [1] * ndim
    low[axis], high[axis], strides[axis] = start, stop, step
    return bind("slice", x, start_indices=tuple(low), limit_indices=tuple(high),
                strides=tuple(strides))  # fmt: skip


def _interleaved(x: Any, axis: int, start: int, size: int) -> Any:
    """Spread the elements to every second place from `start`, with zeros between."""
    config = [(0, 0, 0)] * x.aval.ndim
    covered = 2 * x.aval.shape[axis] - 1
    config[axis] = (start, size - start - covered, 1)
    return bind("pad", x, filled((), 0, x.aval.dtype), padding_config=tuple(config))
