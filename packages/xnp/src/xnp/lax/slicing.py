"""`xnp.lax`: functions that read and replace windows of an array.

`slice` and its kin take static bounds; the `dynamic_` ones take starts that may be traced, and move
windows that do not fit inside. Neighbours: `indexed` reads and writes many windows at once.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.docstrings import complete
from xnp.docstrings.shape_operations import SLICING
from xnp.lax.shape import dimension_of, ints, reshape, squeeze
from xnp.primitives.dynamic_slice import dynamic_slice_p
from xnp.primitives.dynamic_update_slice import dynamic_update_slice_p
from xnp.primitives.index_checks import check_if_asked
from xnp.primitives.operations import bind, filled, selected
from xnp.primitives.slice import slice_p
from xprim import Array, ConcreteArray, as_array, dtypes, scalar_array
from xprim.errors import ShapeError, message
from xprim.promotion import is_weakly_typed
from xprim.sizes import size_of, slice_indices
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim",
    "dynamic_update_slice", "dynamic_update_slice_in_dim", "index_in_dim", "slice", "slice_in_dim",
]  # fmt: skip

__dir__ = __all__.copy

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

    Raises:
      IndexError: when there is no such position.

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
    """Return a window along one dimension, all of the others; see `dynamic_slice`."""
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
    """Return one position of a dimension, which may be traced; see `dynamic_slice`."""
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

    Example:
      >>> np.asarray(dynamic_update_slice(np.zeros(4), np.ones(2), (1,))).tolist()
      [0.0, 1.0, 1.0, 0.0]
    """
    x = as_array(operand, what="dynamic_update_slice")
    new = as_array(update, x.aval.dtype, what="dynamic_update_slice: update")
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
    """Return the array with a window along one dimension replaced; see `dynamic_update_slice`."""
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
    """Return the array with one position of a dimension replaced; see `dynamic_update_slice`."""
    x = as_array(operand, what="dynamic_update_index_in_dim")
    new = as_array(update, x.aval.dtype, what="dynamic_update_index_in_dim: update")
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
    known = [_known(p) for p in parts]
    dtype = _start_dtype(parts, known, shape)
    starts: list[Array] = []
    for k, (part, value, size) in enumerate(zip(parts, known, shape, strict=True)):
        counts = negative if isinstance(negative, bool) else negative[k]
        if len(sizes) == len(shape):
            check_if_asked(part, k, shape, sizes[k], counts)
        if value is not None:
            value += size if value < 0 and counts else 0
            info = dtypes.iinfo(dtype)
            starts.append(scalar_array(min(max(value, int(info.min)), int(info.max)), dtype))
        else:
            starts.append(_traced_start(part, size, dtype, counts))
    return starts


def _check_one_dtype(name: str, starts: Sequence[Any]) -> None:
    """Raise unless all starts that have a dtype have the same; Python integers take any."""
    found = {dtypes.dtype(x) for x in starts if hasattr(x, "dtype") and not is_weakly_typed(x)}
    if len(found) > 1 and all(map(dtypes.is_integer, found)):
        raise TypeError(message(
            name, f"the starts have several dtypes: {', '.join(sorted(d.name for d in found))}.",
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


def _known(part: Any) -> int | None:
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


def _start_dtype(parts: Any, known: Any, shape: Any) -> Any:
    """Return the dtype that all starts can have: that of the traced ones, or int32."""
    found = [as_array(p).aval.dtype for p, k in zip(parts, known, strict=True) if k is None]
    if not found:
        return _INT32 if max(shape, default=0) <= _MOST_INT32 else dtypes.int64
    if all(d == found[0] for d in found):
        return found[0]
    wide = [d for d in found if d in (dtypes.int64, dtypes.uint64, dtypes.uint32)]
    return dtypes.int64 if wide else _INT32


def _traced_start(part: Any, size: int, dtype: Any, counts: bool) -> Array:
    start = as_array(part, what="start index")
    if start.aval.dtype != dtype and dtypes.is_integer(start.aval.dtype):
        start = bind("convert_element_type", start, new_dtype=dtype, weak_type=False)
    if not counts or not dtypes.is_signed_integer(dtype) or start.aval.ndim:
        return start
    most = int(dtypes.iinfo(dtype).max)
    from_end = bind("add", start, filled((), min(size, most), dtype))
    result: Array = selected(bind("lt", start, filled((), 0, dtype)), from_end, start)
    return result


complete(globals(), SLICING)

boundaries(globals())
