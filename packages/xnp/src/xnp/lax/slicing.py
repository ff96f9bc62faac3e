"""Reading and replacing windows of an array: slices, dynamic slices, gather, scatter."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp import lax
from xnp.lax.shape import concatenate, dimension_of, ints, reshape, squeeze
from xnp.primitives import table
from xnp.primitives.gather import gather_p
from xnp.primitives.index_modes import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    check_if_asked,
)
from xnp.primitives.scatter import (
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    window_sizes,
)
from xnp.primitives.slicing import dynamic_slice_p, dynamic_update_slice_p, slice_p
from xnp.primitives.table import bind, scalar_like, select
from xprim import Array, ConcreteArray, Primitive, as_array, dtypes, scalar_array
from xprim.avals import size_of, slice_indices
from xprim.config import values as options
from xprim.errors import ShapeError, message
from xprim.promotion import is_weakly_typed
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim",
    "index_in_dim", "slice", "slice_in_dim", "GatherDimensionNumbers", "GatherScatterMode",
    "ScatterDimensionNumbers", "gather", "index_take", "scatter", "scatter_add", "scatter_apply",
    "scatter_max", "scatter_min", "scatter_mul", "scatter_sub",
]  # fmt: skip

__dir__ = __all__.copy


# --------------------------------------------------------------------------------------- slicing
# `xnp.lax`: functions that read and replace windows of an array.
#
# `slice` and its kin take static bounds; the `dynamic_` ones take starts that may be traced, and
# move windows that do not fit inside.

_INT32 = dtypes.int32
_MOST_INT32 = 2**31 - 1


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """Return the elements from start to limit (excluded) in steps of the stride, per dimension.

    Bounds are static and count from 0. Linear in `operand`. Source: StableHLO, section slice.

    Args:
        operand: an array.
        start_indices: for each dimension where the window begins.
        limit_indices: and where it ends, excluded.
        strides: the steps; None for 1 everywhere.

    Returns:
        An array of the dtype of the operand.

    Raises:
      TypeError: when the bounds do not lie within the operand.

    Example:
      >>> np.asarray(slice(np.arange(10), (2,), (8,), (3,))).tolist()
      [2, 5]
    """
    x = as_array(operand, what="slice")
    return slice_p.bind(  # type: ignore[no-any-return]
        x,
        start_indices=ints(start_indices, "slice: start_indices"),
        limit_indices=ints(limit_indices, "slice: limit_indices"),
        strides=None if strides is None else ints(strides, "slice: strides"),
    )[0]


def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """Slice one dimension, as `x[start:limit:stride]` does, and take the others whole.

    Args:
        operand: an array.
        start_index: where the window begins; None for 0.
        limit_index: where it ends, excluded; None for the end.
        stride: the step.
        axis: a dimension of the operand.

    Returns:
        An array of the dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> np.asarray(slice_in_dim(np.arange(6), 1, -1, 2)).tolist()
      [1, 3]
    """
    x = as_array(operand, what="slice_in_dim")
    shape = x.aval.shape
    d = dimension_of(axis, len(shape), "slice_in_dim")
    step = size_of(stride)
    if step < 1:
        raise ValueError(f"slice_in_dim: the stride must be positive, got {step}.")
    low, high, _ = slice_indices(builtins.slice(start_index, limit_index), shape[d])[:3]
    starts = (*(0,) * d, low, *(0,) * (len(shape) - d - 1))
    limits = (*shape[:d], max(low, high), *shape[d + 1 :])
    strides = None if step == 1 else (*(1,) * d, step, *(1,) * (len(shape) - d - 1))
    result: Array = slice_p.bind(x, start_indices=starts, limit_indices=limits, strides=strides)[0]
    return result


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Return one position of a dimension; a negative index counts from the end.

    Args:
        operand: an array.
        index: a Python integer.
        axis: a dimension of the operand.
        keepdims: whether the dimension stays, with size 1.

    Returns:
        An array of the dtype of the operand.

    Raises:
      IndexError: the position is out of bounds.

    Example:
      >>> np.asarray(index_in_dim(np.arange(6), -1, keepdims=False)).item()
      5
    """
    x = as_array(operand, what="index_in_dim")
    d = dimension_of(axis, x.aval.ndim, "index_in_dim")
    i, size = size_of(index), x.aval.shape[d]
    if not -size <= i < size:
        raise IndexError(f"index_in_dim: index {i} is out of bounds for axis {d} of size {size}.")
    i += size if i < 0 else 0
    window = slice_in_dim(x, i, i + 1, 1, d)
    return window if keepdims else squeeze(window, (d,))


def dynamic_slice(
    operand: ArrayLike,
    start_indices: Sequence[ArrayLike] | Array,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Return a window of static size whose start may be traced.

    Args:
      operand: any array.
      start_indices: an integer scalar for each dimension, or one integer array of rank 1.
      slice_sizes: the shape of the window, static.
      allow_negative_indices: whether negative starts count from the end (for each dimension, or
        for all). Starts are then moved so that the window lies inside.

    Returns:
        An array of shape `slice_sizes`.

    Raises:
        TypeError: `operand` is not an array.

    Example:
      >>> np.asarray(dynamic_slice(np.arange(6), (4,), (3,))).tolist()
      [3, 4, 5]
    """
    x = as_array(operand, what="dynamic_slice")
    sizes = ints(slice_sizes, "dynamic_slice: slice_sizes")
    starts = _starts("dynamic_slice", x.aval.shape, start_indices, allow_negative_indices, sizes)
    return dynamic_slice_p.bind(x, *starts, slice_sizes=sizes)[0]  # type: ignore[no-any-return]


def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return a window along one dimension, all of the others; see `dynamic_slice`.

    Args:
        operand: an array.
        start_index: where the window begins, which may be traced; one that does not
            fit is moved.
        slice_size: the size of the window.
        axis: a dimension of the operand.
        allow_negative_indices: whether an index below 0 counts from the end; if not, a known
            one is an error, and a traced one is clamped.

    Returns:
        An array of that size along the axis.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.dynamic_slice_in_dim(xnp.array([1, 2, 3]), 1, 2)
        Array([2, 3], dtype=int32)
    """
    x = as_array(operand, what="dynamic_slice_in_dim")
    shape = x.aval.shape
    d = dimension_of(axis, len(shape), "dynamic_slice_in_dim")
    starts: list[ArrayLike] = [0] * len(shape)
    starts[d] = start_index
    sizes = (*shape[:d], size_of(slice_size), *shape[d + 1 :])
    return dynamic_slice(x, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return one position of a dimension, which may be traced; see `dynamic_slice`.

    Args:
        operand: an array.
        index: a position, which may be traced.
        axis: a dimension of the operand.
        keepdims: whether the dimension stays, with size 1.
        allow_negative_indices: whether an index below 0 counts from the end; if not, a known
            one is an error, and a traced one is clamped.

    Returns:
        An array of the dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.dynamic_index_in_dim(xnp.array([1, 2, 3]), 1, keepdims=False)
        Array(2, dtype=int32)
    """
    window = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return window if keepdims else squeeze(window, (axis,))


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: Sequence[ArrayLike] | Array,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Return the array with a window replaced, at a start that may be traced.

    Args:
      operand: any array.
      update: the new window, of the operand's dtype and rank.
      start_indices: an integer scalar for each dimension, or one integer array of rank 1.
      allow_negative_indices: as in `dynamic_slice`.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.

    Example:
      >>> np.asarray(dynamic_update_slice(np.zeros(4), np.ones(2), (1,))).tolist()
      [0.0, 1.0, 1.0, 0.0]
    """
    x = as_array(operand, what="dynamic_update_slice")
    new = table.as_array_of(update, x.aval.dtype, "dynamic_update_slice: update")
    starts = _starts(
        "dynamic_update_slice", x.aval.shape, start_indices, allow_negative_indices, new.aval.shape
    )
    return dynamic_update_slice_p.bind(x, new, *starts)[0]  # type: ignore[no-any-return]


def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return the array with a window along one dimension replaced; see `dynamic_update_slice`.

    Args:
        operand: an array.
        update: what is put there, of the dtype of the operand.
        start_index: where the window begins, which may be traced; one that does not
            fit is moved.
        axis: a dimension of the operand.
        allow_negative_indices: whether an index below 0 counts from the end; if not, a known
            one is an error, and a traced one is clamped.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.dynamic_update_slice_in_dim(xnp.array([1, 2, 3]), xnp.array([8, 9]), 1, 0)
        Array([1, 8, 9], dtype=int32)
    """
    x = as_array(operand, what="dynamic_update_slice_in_dim")
    d = dimension_of(axis, x.aval.ndim, "dynamic_update_slice_in_dim")
    starts: list[ArrayLike] = [0] * x.aval.ndim
    starts[d] = start_index
    return dynamic_update_slice(x, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return the array with one position of a dimension replaced; see `dynamic_update_slice`.

    Args:
        operand: an array.
        update: what is put there, with or without the dimension.
        index: a position, which may be traced.
        axis: a dimension of the operand.
        allow_negative_indices: whether an index below 0 counts from the end; if not, a known
            one is an error, and a traced one is clamped.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.dynamic_update_index_in_dim(xnp.array([1, 2, 3]), 9, 1, 0)
        Array([1, 9, 3], dtype=int32)
    """
    x = as_array(operand, what="dynamic_update_index_in_dim")
    new = table.as_array_of(update, x.aval.dtype, "dynamic_update_index_in_dim: update")
    d = dimension_of(axis, x.aval.ndim, "dynamic_update_index_in_dim")
    if new.aval.ndim != x.aval.ndim:
        sizes = new.aval.shape
        new = reshape(new, (*sizes[:d], 1, *sizes[d:]))
    return dynamic_update_slice_in_dim(
        x, new, index, d, allow_negative_indices=allow_negative_indices
    )


def _starts(
    name: str, shape: Any, given: Any, negative: bool | Sequence[bool], sizes: Sequence[int]
) -> list[Array]:
    """Return one scalar for each dimension, all of one integer dtype, negative ones counted."""
    parts = _scalars(name, given)
    if len(parts) != len(shape):
        raise ShapeError(message(
            name, "needs a start for each dimension of the operand.",
            got=f"{len(parts)} starts for shape {shape}",
        ))  # fmt: skip
    if not isinstance(negative, bool) and len(negative) != len(shape):
        raise ValueError(f"{name}: allow_negative_indices must have {len(shape)} elements.")
    _check_one_dtype(name, parts)
    known = [_value_if_known(p) for p in parts]
    dtype = _start_dtype(name, parts, known, shape)
    starts: list[Array] = []
    for k, (part, value, size) in enumerate(zip(parts, known, shape, strict=True)):
        counts = negative if isinstance(negative, bool) else negative[k]
        if len(sizes) == len(shape):
            check_if_asked(part, k, shape, sizes[k], counts)
        if value is not None:
            if value < 0 and not counts:
                raise ValueError(message(
                    name, f"the start {value} of dimension {k} is negative.",
                    got="allow_negative_indices=False", expected=f"0 <= start < {size}",
                ))  # fmt: skip
            value += size if value < 0 else 0
            info = dtypes.iinfo(dtype)
            starts.append(scalar_array(min(max(value, int(info.min)), int(info.max)), dtype))
        else:
            starts.append(_trace_start(part, size, dtype, counts))
    return starts


def _check_one_dtype(name: str, starts: Sequence[Any]) -> None:
    """Raise unless all starts that have a dtype have the same; Python integers take any."""
    found = {dtypes.dtype(x) for x in starts if hasattr(x, "dtype") and not is_weakly_typed(x)}
    if len(found) > 1 and all(map(dtypes.is_integer, found)):
        raise TypeError(message(
            name, f"index arguments to {name} must be integers of the same type.",
            got=", ".join(sorted(d.name for d in found)),
            expected="integers of one dtype; Python's go with any",
            hint="convert them: x.astype('int32')",
        ))  # fmt: skip


def _scalars(name: str, given: Any) -> list[Any]:
    if isinstance(given, Array | np.ndarray):
        array = as_array(given, what=name)
        if array.aval.ndim != 1:
            raise TypeError(message(
                name, "start_indices must be of rank 1.", got=array.aval.str_long(),
            ))  # fmt: skip
        if type(array) is ConcreteArray and array.host is not None:
            return array.host.tolist()  # type: ignore[no-any-return]
        return [squeeze(slice(array, (k,), (k + 1,)), (0,)) for k in range(array.aval.shape[0])]
    return list(given)


def _value_if_known(part: Any) -> int | None:
    """Return a start's value if it is known without waiting for a device."""
    if isinstance(part, ConcreteArray):
        host = part.host
        if host is None or host.ndim or not dtypes.is_integer(host.dtype):
            return None
        return int(host)
    if isinstance(part, Array):
        return None
    try:
        return size_of(part)
    except TypeError:
        return None


def _start_dtype(name: str, parts: Any, known: Any, shape: Any) -> Any:
    """Return the dtype that all starts can have: that of the traced ones, or int32."""
    found = [as_array(p).aval.dtype for p, k in zip(parts, known, strict=True) if k is None]
    for dtype in found:
        if not dtypes.is_integer(dtype):
            raise TypeError(message(name, "a start must be an integer.", got=dtype.name))
    if not found:
        return _INT32 if max(shape, default=0) <= _MOST_INT32 else dtypes.int64
    if all(d == found[0] for d in found):
        return found[0]
    wide = [d for d in found if d in (dtypes.int64, dtypes.uint64, dtypes.uint32)]
    return dtypes.int64 if wide else _INT32


def _trace_start(part: Any, size: int, dtype: Any, counts: bool) -> Array:
    start = as_array(part, what="start index")
    if start.aval.dtype != dtype and dtypes.is_integer(start.aval.dtype):
        start = bind("convert_element_type", start, new_dtype=dtype, weak_type=False)
    if not counts or not dtypes.is_signed_integer(dtype) or start.aval.ndim:
        return start
    most = int(dtypes.iinfo(dtype).max)
    from_end = bind("add", start, table.fill((), min(size, most), dtype))
    result: Array = select(bind("lt", start, table.fill((), 0, dtype)), from_end, start)
    return result


# --------------------------------------------------------------------------------------- indexed
# `xnp.lax`: gather and scatter, which read and write many windows of an array at once.
#
# These are XLA's general operations with its dimension numbers; array indexing, `take` and
# `.at[]` are built on them.

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

    Raises:
        TypeError: `operand` is not an array.
        ValueError: unknown `mode`.

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
    updates = table.as_array_of(updates, x.aval.dtype, f"{primitive.name}: updates")
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

    Raises:
        TypeError: `operand` is not an array.
        ValueError: unknown `mode`.

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
    """Add updates to windows of the operand; all are added where they overlap. See `scatter`.

    Args:
        operand: an array.
        scatter_indices: integers: where windows begin, its last dimension a position.
        updates: what is put into the windows, of the dtype of the operand.
        dimension_numbers: a `ScatterDimensionNumbers`: which dimension is which.
        indices_are_sorted: whether they are, which the compiler may use.
        unique_indices: whether no two windows overlap, which it may use.
        mode: a `GatherScatterMode` or its name: what becomes of windows that do not
            fit.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: unknown `mode`.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.scatter_add(xnp.ones(3), xnp.array([[1]]), xnp.array([5.0]),
        ...     lax.ScatterDimensionNumbers((), (0,), (0,)))
        Array([1., 6., 1.], dtype=float32)
    """
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
    """Subtract updates from windows of the operand. See `scatter`.

    Args:
        operand: an array.
        scatter_indices: integers: where windows begin, its last dimension a position.
        updates: what is put into the windows, of the dtype of the operand.
        dimension_numbers: a `ScatterDimensionNumbers`: which dimension is which.
        indices_are_sorted: whether they are, which the compiler may use.
        unique_indices: whether no two windows overlap, which it may use.
        mode: a `GatherScatterMode` or its name: what becomes of windows that do not
            fit.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: unknown `mode`.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.scatter_sub(xnp.ones(3), xnp.array([[1]]), xnp.array([5.0]),
        ...     lax.ScatterDimensionNumbers((), (0,), (0,)))
        Array([ 1., -4.,  1.], dtype=float32)
    """
    x = as_array(operand, what="scatter_sub")
    negated = bind("neg", table.as_array_of(updates, x.aval.dtype, "scatter_sub: updates"))
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
    """Multiply windows of the operand by updates, repeatedly where they overlap. See `scatter`.

    Args:
        operand: an array.
        scatter_indices: integers: where windows begin, its last dimension a position.
        updates: what is put into the windows, of the dtype of the operand.
        dimension_numbers: a `ScatterDimensionNumbers`: which dimension is which.
        indices_are_sorted: whether they are, which the compiler may use.
        unique_indices: whether no two windows overlap, which it may use.
        mode: a `GatherScatterMode` or its name: what becomes of windows that do not
            fit.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: unknown `mode`.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.scatter_mul(xnp.ones(3), xnp.array([[1]]), xnp.array([5.0]),
        ...     lax.ScatterDimensionNumbers((), (0,), (0,)))
        Array([1., 5., 1.], dtype=float32)
    """
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
    """Take the smaller of windows of the operand and updates; NaN wins. See `scatter`.

    Args:
        operand: an array.
        scatter_indices: integers: where windows begin, its last dimension a position.
        updates: what is put into the windows, of the dtype of the operand.
        dimension_numbers: a `ScatterDimensionNumbers`: which dimension is which.
        indices_are_sorted: whether they are, which the compiler may use.
        unique_indices: whether no two windows overlap, which it may use.
        mode: a `GatherScatterMode` or its name: what becomes of windows that do not
            fit.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: unknown `mode`.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.scatter_min(xnp.ones(3), xnp.array([[1]]), xnp.array([5.0]),
        ...     lax.ScatterDimensionNumbers((), (0,), (0,)))
        Array([1., 1., 1.], dtype=float32)
    """
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
    """Take the greater of windows of the operand and updates; NaN wins. See `scatter`.

    Args:
        operand: an array.
        scatter_indices: integers: where windows begin, its last dimension a position.
        updates: what is put into the windows, of the dtype of the operand.
        dimension_numbers: a `ScatterDimensionNumbers`: which dimension is which.
        indices_are_sorted: whether they are, which the compiler may use.
        unique_indices: whether no two windows overlap, which it may use.
        mode: a `GatherScatterMode` or its name: what becomes of windows that do not
            fit.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: unknown `mode`.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.scatter_max(xnp.ones(3), xnp.array([[1]]), xnp.array([5.0]),
        ...     lax.ScatterDimensionNumbers((), (0,), (0,)))
        Array([1., 5., 1.], dtype=float32)
    """
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

    Raises:
        TypeError: `operand` is not an array.
        ValueError: unknown `mode`.

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
        if positions_may_repeat(places):
            return apply_in_turn(x, places, func)
    windows = read(x, 0)
    return scatter(
        x, indices, func(windows), dimension_numbers, indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices, mode=chosen,
    )  # fmt: skip


def positions_may_repeat(places: Any) -> bool:
    """Return whether places name, or, where they are traced, could name, one more than once."""
    if not isinstance(places, ConcreteArray):
        return True
    host = np.asarray(places).ravel()
    return len(np.unique(host)) < len(host)


def apply_in_turn(x: Any, places: Any, func: Callable[[Any], Any]) -> Array:
    """Return an array with a function applied at one place after the other.

    Args:
      x: an array.
      places: positions in the flattened array; its size where there is no element.
      func: from a scalar to a scalar.
    """
    size = x.aval.size
    if not size:
        return x  # type: ignore[no-any-return]

    def step(flat: Any, place: Any) -> tuple[Any, None]:
        at = bind("min", place, scalar_like(place, size - 1))
        old = dynamic_index_in_dim(flat, at, keepdims=False)
        there = bind("lt", place, scalar_like(place, size))
        new = select(there, as_array(func(old), old.aval.dtype), old)
        return dynamic_update_index_in_dim(flat, new, at, 0), None

    flat, _ = lax.scan(step, reshape(x, (size,)), reshape(places, (places.aval.size,)))
    return reshape(flat, x.aval.shape)


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
    period = table.fill(indices.aval.shape, size, indices.aval.dtype)
    rest = bind("rem", indices, period)
    if not dtypes.is_signed_integer(indices.aval.dtype):
        return rest
    below = bind("lt", rest, table.fill(rest.aval.shape, 0, rest.aval.dtype))
    result: Array = select(below, bind("add", rest, period), rest)
    return result


boundaries(globals())
