"""`xnp.lax`: gather and scatter, which read and write many windows of an array at once.

These are XLA's general operations with its dimension numbers; array indexing, `take` and `.at[]`
are built on them. Neighbours: `slicing` for single windows, `xnp.primitives.index_modes` explains
dimension numbers and modes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp.docstrings import complete
from xnp.docstrings.shape_operations import INDEXED
from xnp.lax.repeated_places import applied_in_turn, may_repeat
from xnp.lax.shape import concatenate, ints, reshape
from xnp.lax.slicing import slice_in_dim
from xnp.primitives.gather import gather_p
from xnp.primitives.index_checks import check_if_asked
from xnp.primitives.index_modes import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from xnp.primitives.operations import bind, filled, selected
from xnp.primitives.scatter import scatter_p
from xnp.primitives.scatter_add import scatter_add_p
from xnp.primitives.scatter_family import window_sizes
from xnp.primitives.scatter_max import scatter_max_p
from xnp.primitives.scatter_min import scatter_min_p
from xnp.primitives.scatter_mul import scatter_mul_p
from xprim import Array, Primitive, as_array, dtypes
from xprim.config import values as options
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers", "gather",
    "index_take", "scatter", "scatter_add", "scatter_apply", "scatter_max", "scatter_min",
    "scatter_mul", "scatter_sub",
]  # fmt: skip

__dir__ = __all__.copy

Mode = str | GatherScatterMode | None


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Mode = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Read a window of the operand at each of many index vectors.

    Args:
      operand: any array.
      start_indices: integers; the last dimension holds index vectors.
      dimension_numbers: what each dimension is, see `GatherDimensionNumbers`.
      slice_sizes: the size of a window in each operand dimension.
      unique_indices: a promise that no element is read twice, which makes the gradient faster.
      indices_are_sorted: a promise that index vectors ascend.
      mode: for windows that do not fit: 'clip' moves them inside, 'fill' reads `fill_value` for all
        of the window, 'promise_in_bounds' says there are none, and so does None, unless there is a
        fill value: then `config.index_checks("raise")` makes an error of one that is known.
      fill_value: a scalar; None for NaN, the least signed, greatest unsigned integer, or True.

    Returns:
      An array with the batch dimensions of the indices, and the window dimensions at `offset_dims`.

    Differentiable in `operand`. Source: StableHLO, section gather.

    Example:
      >>> numbers = GatherDimensionNumbers((), (0,), (0,))
      >>> np.asarray(gather(np.arange(4) * 10, np.array([[3], [0]]), numbers, (1,))).tolist()
      [30, 0]
    """
    x = as_array(operand, what="gather")
    indices = as_array(start_indices, what="gather: start_indices")
    if mode is None and fill_value is None:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
        _check_windows(gather_p, x, indices, dimension_numbers, slice_sizes=slice_sizes)
    chosen = GatherScatterMode.from_any(mode)
    if chosen is not GatherScatterMode.FILL_OR_DROP:
        fill_value = None
    elif fill_value is not None:
        fill_value = _scalar(fill_value)
    return gather_p.bind(  # type: ignore[no-any-return]
        x,
        indices,
        dimension_numbers=dimension_numbers,
        slice_sizes=ints(slice_sizes, "gather: slice_sizes"),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=chosen,
        fill_value=fill_value,
    )[0]


def _check_windows(primitive: Primitive, *operands: Any, **params: Any) -> None:
    """Check that windows fit where programs are to raise; there no mode says what is to happen."""
    if options.index_checks != "raise":
        return
    *arrays, numbers = operands
    indices, axes, sizes = primitive.rule("windows")(*arrays, dimension_numbers=numbers, **params)
    for k, (axis, size) in enumerate(zip(axes, sizes, strict=True)):
        starts = slice_in_dim(indices, k, k + 1, axis=-1)
        check_if_asked(starts, axis, arrays[0].aval.shape, size, wraps=False)


def _scalar(value: Any) -> Any:
    """Return a fill value as a Python scalar, NaN always the same object, as params must hash."""
    plain = np.asarray(value)
    if plain.ndim:
        raise ValueError(f"gather: fill_value must be a scalar, got shape {plain.shape}.")
    scalar = plain.item()
    return None if isinstance(scalar, float) and scalar != scalar else scalar


def _scatter(
    primitive: Primitive, operand: Any, indices: Any, updates: Any, numbers: Any,
    are_sorted: bool, unique: bool, mode: Mode,
) -> Array:  # fmt: skip
    x = as_array(operand, what=primitive.name)
    indices = as_array(indices, what=f"{primitive.name}: scatter_indices")
    updates = as_array(updates, x.aval.dtype, what=f"{primitive.name}: updates")
    if mode is None:
        _check_windows(primitive, x, indices, updates, numbers)
    return primitive.bind(  # type: ignore[no-any-return]
        x,
        indices,
        updates,
        dimension_numbers=numbers,
        indices_are_sorted=bool(are_sorted),
        unique_indices=bool(unique),
        mode=GatherScatterMode.from_any(mode),
    )[0]


def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """Replace a window of the operand at each of many index vectors.

    Args:
      operand: any array.
      scatter_indices: integers; the last dimension holds index vectors.
      updates: the windows, of the operand's dtype.
      dimension_numbers: what each dimension is, see `ScatterDimensionNumbers`.
      indices_are_sorted: a promise that index vectors ascend.
      unique_indices: a promise that windows do not overlap; a broken one gives undefined results.
      mode: for windows that do not fit: 'drop' (the default) leaves them out, 'clip' moves them
        inside, 'promise_in_bounds' says there are none. Without a mode,
        `config.index_checks("raise")` makes an error of it.

    Returns:
      An array like the operand. Where windows overlap, one of the updates wins.

    Differentiable in `operand` and `updates`. Source: StableHLO, section scatter.

    Example:
      >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
      >>> np.asarray(scatter(np.zeros(3), np.array([[1]]), np.array([5.0]), numbers)).tolist()
      [0.0, 5.0, 0.0]
    """
    return _scatter(scatter_p, operand, scatter_indices, updates, dimension_numbers,
                    indices_are_sorted, unique_indices, mode)  # fmt: skip


def scatter_add(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """Add updates to windows of the operand; all are added where they overlap. See `scatter`."""
    return _scatter(scatter_add_p, operand, scatter_indices, updates, dimension_numbers,
                    indices_are_sorted, unique_indices, mode)  # fmt: skip


def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """Subtract updates from windows of the operand. See `scatter`."""
    x = as_array(operand, what="scatter_sub")
    negated = bind("neg", as_array(updates, x.aval.dtype, what="scatter_sub: updates"))
    return _scatter(scatter_add_p, x, scatter_indices, negated, dimension_numbers,
                    indices_are_sorted, unique_indices, mode)  # fmt: skip


def scatter_mul(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """Multiply windows of the operand by updates, repeatedly where they overlap. See `scatter`."""
    return _scatter(scatter_mul_p, operand, scatter_indices, updates, dimension_numbers,
                    indices_are_sorted, unique_indices, mode)  # fmt: skip


def scatter_min(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """Take the smaller of windows of the operand and updates; NaN wins. See `scatter`."""
    return _scatter(scatter_min_p, operand, scatter_indices, updates, dimension_numbers,
                    indices_are_sorted, unique_indices, mode)  # fmt: skip


def scatter_max(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """Take the greater of windows of the operand and updates; NaN wins. See `scatter`."""
    return _scatter(scatter_max_p, operand, scatter_indices, updates, dimension_numbers,
                    indices_are_sorted, unique_indices, mode)  # fmt: skip


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """Replace windows of the operand by an elementwise function of them.

    Where windows overlap, the function is applied to an element as often as it is in a window.
    Traced indices are taken one after the other, unless `unique_indices` promises that none do.

    Args:
      operand: any array.
      scatter_indices: as for `scatter`.
      func: from an array to an array of its shape and dtype.
      dimension_numbers: as for `scatter`.
      update_shape: the shape that updates would have.
      indices_are_sorted: as for `scatter`.
      unique_indices: as for `scatter`.
      mode: as for `scatter`.

    Returns:
      An array of the shape and dtype of the operand.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
      >>> lax.scatter_apply(np.int32([1, 2, 3]), np.int32([[1]]), lax.neg, numbers)
      Array([ 1, -2,  3], dtype=int32)
    """
    x = as_array(operand, what="scatter_apply")
    indices = as_array(scatter_indices, what="scatter_apply: scatter_indices")
    sizes = window_sizes(x.aval.shape, ints(update_shape, "scatter_apply: update_shape"),
                         dimension_numbers)  # fmt: skip
    chosen = GatherScatterMode.from_any(mode)
    if mode is None:
        _check_windows(gather_p, x, indices, GatherDimensionNumbers(*dimension_numbers),
                       slice_sizes=sizes)  # fmt: skip

    def read(source: Any, fill: int) -> Array:
        return gather(
            source, indices, GatherDimensionNumbers(*dimension_numbers), sizes,
            unique_indices=unique_indices, indices_are_sorted=indices_are_sorted, mode=chosen,
            fill_value=fill,
        )  # fmt: skip

    if not unique_indices:
        dtype = dtypes.int32 if x.aval.size < 1 << 31 else dtypes.int64
        counts = bind("iota", dtype=dtype, shape=(x.aval.size,), dimension=0)
        places = read(reshape(counts, x.aval.shape), x.aval.size)
        if may_repeat(places):
            return applied_in_turn(x, places, func)
    windows = read(x, 0)
    return scatter(
        x, indices, func(windows), dimension_numbers, indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices, mode=chosen,
    )  # fmt: skip


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """Read elements (whole along all other dimensions) at indices into some dimensions.

    Args:
      src: any array.
      idxs: an integer array of rank 1 for each of `axes`, all of one size.
      axes: the dimensions that are indexed. Indices count modulo their sizes, so negative ones
        from the end.

    Returns:
      An array with the dimension of the indices first, then the other dimensions of `src`.

    Example:
      >>> np.asarray(index_take(np.eye(3), (np.array([0, 2]), np.array([0, 1])), (0, 1))).tolist()
      [1.0, 0.0]
    """
    x = as_array(src, what="index_take")
    dims = ints(axes, "index_take: axes")
    columns = []
    for given, d in zip(idxs, dims, strict=True):
        column = as_array(given, what="index_take: idxs")
        column = _modulo(column, x.aval.shape[d])
        columns.append(reshape(column, (column.aval.size, 1)))
    sizes = tuple([1 if d in dims else n for d, n in enumerate(x.aval.shape)])
    offset = tuple(range(1, 1 + x.aval.ndim - len(dims)))
    numbers = GatherDimensionNumbers(offset, tuple(sorted(dims)), dims)
    return gather(x, concatenate(columns, 1), numbers, sizes, mode="clip")


def _modulo(indices: Array, size: int) -> Array:
    if not size:
        return indices
    period = filled(indices.aval.shape, size, indices.aval.dtype)
    rest = bind("rem", indices, period)
    if not dtypes.is_signed_integer(indices.aval.dtype):
        return rest
    below = bind("lt", rest, filled(rest.aval.shape, 0, rest.aval.dtype))
    result: Array = selected(below, bind("add", rest, period), rest)
    return result


complete(globals(), INDEXED)


boundaries(globals())
