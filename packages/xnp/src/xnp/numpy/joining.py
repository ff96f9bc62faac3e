"""Putting arrays together and taking them apart: concatenate, stack, split, block, ...

Neighbours: `shaping` changes shapes, `rearranging` moves elements within one array.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.docstrings import complete
from xnp.docstrings.array_making import JOINING
from xnp.numpy.creation import asarray
from xnp.numpy.dispatch import host_aval
from xnp.numpy.indexing import no_out
from xnp.numpy.promoting import apart, array_of, axis_of, beside, bind, cast, promoted, reshaped
from xnp.numpy.shaping import atleast_1d, atleast_2d, atleast_3d, moveaxis
from xprim import Array, ConcreteArray, dtypes, state
from xprim.descriptions import described
from xprim.eager import EAGER
from xprim.errors import ShapeError, message
from xprim.kernels import numpy_operand
from xprim.sizes import size_of
from xprim.static_sizes import static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Arrays, DTypeLike, NestedArrays

__all__ = [
    "append", "array_split", "block", "column_stack", "concat", "concatenate", "dsplit", "dstack",
    "hsplit", "hstack", "split", "stack", "unstack", "vsplit", "vstack",
]  # fmt: skip

__dir__ = __all__.copy


def _host_parts(arrays: Any) -> Any:
    """Return host arrays and the aval they share but for the shape, or None."""
    if state.trace is not EAGER:
        return None
    hosts = []
    first = None
    for x in arrays:
        if type(x) is not ConcreteArray:
            return None
        host = x.host
        if host is None or x.buffer is not None:
            host = numpy_operand(x)
        aval = x.aval
        if first is None:
            first = aval
        elif aval.dtype is not first.dtype or aval.weak_type != first.weak_type:
            return None
        if host is None or aval.size > _SMALL:
            return None
        hosts.append(host)
    return None if first is None else (hosts, first)


_SMALL = 4096  # elements; joining is exact, so that the way taken cannot be told by its result


def concatenate(arrays: Arrays, axis: int | None = 0, dtype: DTypeLike = None) -> Array:
    """Return arrays joined along an axis that they have.

    Args:
      arrays: a sequence of arrays of one shape but for the axis, or an array of one more dimension.
      axis: the axis; None joins the flattened arrays.
      dtype: of the result; None for the one the arrays promote to.

    Returns:
      An array of the dtype that the arrays promote to.

    Example:
      >>> import xnp
      >>> xnp.concatenate([xnp.zeros(1), xnp.ones(2)])
      Array([0., 1., 1.], dtype=float32)
    """
    if dtype is None and type(axis) is int and type(arrays) in (list, tuple):
        found = _host_parts(arrays)
        if found is not None:
            hosts, first = found
            try:
                result = np.concatenate(hosts, axis)
            except (ValueError, np.exceptions.AxisError):
                pass  # below is said what is wrong
            else:
                return ConcreteArray(result, host_aval(result.shape, first.dtype, first.weak_type))
    parts = _parts_of(arrays, "concatenate", axis)
    return apart(_concatenate(parts, axis, dtype), *parts)  # type: ignore[no-any-return]


def _parts_of(arrays: Any, operation: str, axis: Any) -> list[Any]:
    """Return the arrays to join; an error says what was given in place of a sequence."""
    if not hasattr(arrays, "__iter__") or getattr(arrays, "shape", (1,)) == ():
        raise TypeError(f"{operation}: takes a sequence of arrays, got {described(arrays)}.")
    if getattr(axis, "shape", ()):
        raise TypeError(message(
            operation, f"the axis must be an integer, got {described(axis)}.",
            hint=f"the arrays go in one sequence: {operation}([x, y])",
        ))  # fmt: skip
    return list(arrays)


def _concatenate(parts: list[Any], axis: Any, dtype: Any) -> Array:
    if not parts:
        raise ValueError("concatenate: needs one array at least.")
    xs = promoted("concatenate", *parts)
    if dtype is not None:
        wanted = dtypes.requested_dtype(dtype, "concatenate")
        xs = [cast(x, wanted) for x in xs]
    if axis is None:
        xs, axis = [reshaped(x, (x.aval.size,)) for x in xs], 0
    for x in xs:
        if not x.aval.ndim:
            raise ValueError(message(
                "concatenate", "arrays of rank 0 cannot be joined.",
                hint="xnp.stack gives them a new axis",
            ))  # fmt: skip
    axis = axis_of(axis, xs[0].aval.ndim, "concatenate")
    _check_alike(xs, axis)
    return bind("concatenate", *xs, dimension=axis) if len(xs) > 1 else xs[0]


def _check_alike(xs: Any, axis: int) -> None:
    first = xs[0].aval.shape
    for i, x in enumerate(xs):
        shape = x.aval.shape
        rest = (*shape[:axis], *shape[axis + 1 :])
        if len(shape) != len(first) or rest != (*first[:axis], *first[axis + 1 :]):
            raise ShapeError(message(
                "concatenate", f"array {i} does not fit the first one along axis {axis}.",
                got=f"{xs[0].aval.str_long()} and {x.aval.str_long()}",
                expected=f"equal shapes but for axis {axis}",
            ))  # fmt: skip


def concat(arrays: Arrays, /, *, axis: int | None = 0) -> Array:
    """Return arrays joined along an axis, as `concatenate`.

    Args:
      arrays: as of `concatenate`.
      axis: the axis; None joins the flattened arrays.

    Returns:
      An array of the dtype that the arrays promote to.

    Example:
      >>> import xnp
      >>> xnp.concat([xnp.array([1]), xnp.array([2, 3])])
      Array([1, 2, 3], dtype=int32)
    """
    return concatenate(arrays, axis)


def stack(arrays: Arrays, axis: int = 0, out: None = None, dtype: DTypeLike = None) -> Array:
    """Return arrays of one shape joined along a new axis.

    Args:
      arrays: a sequence of arrays, or an array whose first dimension is taken for one.
      axis: where the new axis stands in the result.
      out: not supported, must be None.
      dtype: of the result; None for the one the arrays promote to.

    Returns:
      An array of one more dimension.

    Example:
      >>> import xnp
      >>> xnp.stack([xnp.array([1, 2]), xnp.array([3, 4])], axis=1)
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    no_out("stack", out)
    axis = size_of(axis)
    parts = _parts_of(arrays, "stack", axis)
    if not parts:
        raise ValueError("stack: needs one array at least.")
    found = _host_parts(parts) if dtype is None else None
    if found is not None and len({h.shape for h in found[0]}) == 1:
        hosts, first = found
        if -hosts[0].ndim - 1 <= axis <= hosts[0].ndim:
            result = np.stack(hosts, axis)
            return ConcreteArray(result, host_aval(result.shape, first.dtype, first.weak_type))
    xs = promoted("stack", *parts)
    shape = _one_shape(xs)
    axis = axis_of(axis, len(shape) + 1, "stack")
    kept = tuple([d for d in range(len(shape) + 1) if d != axis])
    wide = (*shape[:axis], 1, *shape[axis:])
    xs = [bind("broadcast_in_dim", x, shape=wide, broadcast_dimensions=kept) for x in xs]
    return _concatenate(xs, axis, dtype)


def _one_shape(xs: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape that all arrays to be stacked have."""
    shapes: set[tuple[int, ...]] = {x.aval.shape for x in xs}
    if len(shapes) > 1:
        raise ShapeError(message(
            "stack", "all arrays must have one shape.",
            got=", ".join([x.aval.str_long() for x in xs[:8]]),
            hint="concatenate joins arrays of different lengths along an axis they have",
        ))  # fmt: skip
    (shape,) = shapes
    return shape


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the arrays that `stack` along the axis would join to `x`.

    Args:
      x: an array of one dimension or more.
      axis: the dimension that is taken apart.

    Returns:
      A tuple of arrays without the axis.

    Example:
      >>> import xnp
      >>> xnp.unstack(xnp.array([[1, 2], [3, 4]]))
      (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = array_of(x, "unstack")
    if not x.aval.ndim:
        raise ValueError("unstack: an array of rank 0 has no axis to take apart.")
    x = moveaxis(x, axis, 0)
    return tuple([x[i] for i in range(x.shape[0])])


def vstack(tup: Arrays, dtype: DTypeLike = None) -> Array:
    """Return arrays joined along the first axis; vectors are rows."""
    return concatenate([atleast_2d(x) for x in tup], 0, dtype)


def hstack(tup: Arrays, dtype: DTypeLike = None) -> Array:
    """Return arrays joined along the second axis; vectors along their only one."""
    columns = [atleast_1d(x) for x in tup]
    return concatenate(columns, 0 if not columns or columns[0].ndim == 1 else 1, dtype)


def dstack(tup: Arrays, dtype: DTypeLike = None) -> Array:
    """Return arrays joined along the third axis."""
    return concatenate([atleast_3d(x) for x in tup], 2, dtype)


def column_stack(tup: Arrays) -> Array:
    """Return arrays joined along the second axis; vectors are columns.

    Args:
      tup: a sequence of vectors and matrices of as many rows, or an array whose first dimension is
        taken for one.

    Returns:
      An array of two dimensions or more.

    Example:
      >>> import xnp
      >>> xnp.column_stack([xnp.array([1, 2]), xnp.array([3, 4])])
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    parts = [array_of(x, "column_stack") for x in tup]
    return concatenate([reshaped(x, (x.aval.size, 1)) if x.aval.ndim < 2 else x for x in parts], 1)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Return `arr` with `values` joined to its end along an axis; None flattens both.

    Args:
      arr: an array.
      values: an array of its shape but for the axis.
      axis: along which; None flattens both.

    Returns:
      A new array, of the dtype that the two promote to.

    Example:
      >>> import xnp
      >>> xnp.append(xnp.array([1, 2]), xnp.array([3]))
      Array([1, 2, 3], dtype=int32)
    """
    arr = asarray(arr)
    values = beside(values, arr, "append") if type(values) is float else asarray(values)
    return concatenate([arr, values], axis)


def block(arrays: NestedArrays) -> Array:
    """Return an array put together from nested lists of blocks, the innermost along the last axis.

    Args:
      arrays: nested lists of arrays; all lists of one level have the same depth.

    Returns:
      An array of at least as many dimensions as there are levels.

    Example:
      >>> import xnp
      >>> xnp.block([[xnp.ones((1, 1)), xnp.zeros((1, 2))]]).shape
      (1, 3)
    """
    depth = _depth(arrays)
    leaves = _leaves(arrays)
    rank = max([depth, *[asarray(x).ndim for x in leaves]])
    return _block(arrays, depth, rank)  # type: ignore[no-any-return]


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError("block: a list of blocks must not be empty.")
    depths = {_depth(x) for x in arrays}
    if len(depths) > 1:
        raise ValueError("block: the lists must all be nested to one depth.")
    return depths.pop() + 1


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for x in arrays for leaf in _leaves(x)] if isinstance(arrays, list) else [arrays]


def _block(arrays: Any, depth: int, rank: int) -> Any:
    if not isinstance(arrays, list):
        x = asarray(arrays)
        return reshaped(x, (*(1,) * (rank - x.ndim), *x.shape))
    return concatenate([_block(x, depth - 1, rank) for x in arrays], -depth)


# --- taking apart ---------------------------------------------------------------------------------


def _split(
    operation: str, ary: Any, indices_or_sections: Any, axis: int, equal: bool
) -> list[Array]:
    x = array_of(ary, operation)
    axis = axis_of(axis, x.aval.ndim, operation)
    size = x.aval.shape[axis]
    if isinstance(indices_or_sections, Sequence) or np.ndim(indices_or_sections):
        bounds = [static_int(i, operation, "an index") for i in indices_or_sections]
        bounds = [min(max(i + size if i < 0 else i, 0), size) for i in bounds]
    else:
        count = static_int(indices_or_sections, operation, "the number of parts")
        if count <= 0:
            raise ValueError(f"{operation}: the number of parts must be positive, got {count}.")
        part, rest = divmod(size, count)
        if rest and equal:
            raise ValueError(message(
                operation, f"an axis of size {size} does not divide into {count} equal parts.",
                hint="xnp.array_split allows parts of different sizes",
            ))  # fmt: skip
        sizes = [part + (i < rest) for i in range(count)]
        bounds = list(itertools.accumulate(sizes[:-1]))
    starts, stops = [0, *bounds], [*bounds, size]
    lead = (slice(None),) * axis
    return [apart(x[(*lead, slice(a, max(a, b)))], x) for a, b in zip(starts, stops, strict=True)]


def split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Return an array taken apart along an axis, in a number of equal parts or before indices."""
    return _split("split", ary, indices_or_sections, axis, True)


def array_split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Return an array taken apart along an axis; the first parts may be larger by one."""
    return _split("array_split", ary, indices_or_sections, axis, False)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Return an array taken apart along its first axis."""
    return _split("vsplit", ary, indices_or_sections, 0, True)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Return an array taken apart along its second axis; a vector along its only one."""
    axis = 0 if array_of(ary, "hsplit").ndim == 1 else 1
    return _split("hsplit", ary, indices_or_sections, axis, True)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Return an array taken apart along its third axis."""
    return _split("dsplit", ary, indices_or_sections, 2, True)


complete(globals(), JOINING)

boundaries(globals())
