"""Shapes: reshape, transpose, broadcast_to, ...; concatenate, stack, split, ..."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from xnp.numpy import dispatch
from xnp.numpy.creation import asarray
from xnp.numpy.dispatch import array_of, axes_of, axis_of, copy_if_aliased, dispatch_on, host_aval
from xnp.numpy.indexing import no_out
from xnp.placing import compute_as, on_device, place
from xnp.primitives import table
from xnp.primitives.table import bind
from xprim import Array, ConcreteArray, dtypes, state
from xprim.avals import size_of
from xprim.eager import EAGER
from xprim.eager_costs import READ_AT_ONCE
from xprim.errors import ArgumentError, ShapeError, described, message
from xprim.kernels import numpy_operand
from xprim.requirements import check_sizes, static_int, static_shape as checked_shape
from xprim.tracebacks import boundaries, shorten
from xprim.typing import (
    ArrayLike,
    Arrays,
    Axis,
    DeviceLike,
    DimSize,
    DTypeLike,
    NestedArrays,
    ShapeLike,
    ShardingLike,
)

__all__ = [
    "astype", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "expand_dims", "matrix_transpose", "moveaxis", "ndim", "permute_dims",
    "ravel", "reshape", "rollaxis", "shape", "size", "squeeze", "swapaxes", "transpose",
    "append", "array_split", "block", "column_stack", "concat", "concatenate", "dsplit",
    "dstack", "hsplit", "hstack", "split", "stack", "unstack", "vsplit", "vstack",
]  # fmt: skip

__dir__ = __all__.copy


# --------------------------------------------------------------------------------------- shaping
# Other shapes of the same elements: reshape, transpose, expand_dims, broadcast_to, ...
#
# Nothing here changes an element.

# --- reshape --------------------------------------------------------------------------------------


def reshape(
    a: ArrayLike, shape: ShapeLike, order: str = "C", *, copy: bool | None = None,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Return the elements of `a` in another shape.

    Args:
      a: an array.
      shape: an int or a sequence of ints; one may be -1 and is found from the number of elements.
      order: "C" runs through the last dimension first, "F" through the first.
      copy: whether the result must not share memory with `a`.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array of the shape, of the dtype of `a`.

    Raises:
      TypeError: when the number of elements differs.
      ConcretizationTypeError: when the shape is a traced value.

    Example:
      >>> import xnp
      >>> xnp.reshape(xnp.arange(6), (2, -1)).shape
      (2, 3)
    """
    try:
        if out_sharding is not None:
            return compute_as(out_sharding, reshape, a, shape, order, copy=copy)
        if copy and isinstance(a, Array):
            a = bind("copy", a)
        if type(a) is ConcreteArray and order == "C" and state.__dict__["trace"] is EAGER:
            host = a.host
            if host is None or a.buffer is not None:
                host = numpy_operand(a)
            if host is not None:
                try:
                    result = host.reshape(shape)
                except (TypeError, ValueError):
                    result = None
                # NumPy accepts any negative size as -1; `_reshape` raises for those below
                if result is not None and (
                    (type(shape) is tuple and result.shape == shape) or _has_sizes(shape)
                ):
                    aval = a.aval
                    return ConcreteArray(
                        result, host_aval(result.shape, aval.dtype, aval.weak_type)
                    )
        return copy_if_aliased(_reshape(a, shape, order), a)  # type: ignore[no-any-return]
    except Exception as error:
        shorten(error)
        raise


def _has_sizes(shape: Any) -> bool:
    """Return whether no size, of an integer or a sequence or array of them, is below -1."""
    if type(shape) is int:
        return shape >= -1
    sizes = shape if type(shape) is tuple else np.ravel(np.asarray(shape))
    return bool(min(sizes, default=0) >= -1)


def _reshape(a: Any, shape: Any, order: str) -> Array:
    a = array_of(a, "reshape")
    sizes = static_shape(shape, "reshape", a.aval)
    if order == "F":
        turned = table.reshape(_reverse_dims(a), sizes[::-1])
        return _reverse_dims(turned)
    if order not in ("C", "A"):
        raise ValueError(f"reshape: order must be 'C', 'F' or 'A', got {order!r}.")
    return table.reshape(a, sizes)


def _reverse_dims(x: Any) -> Array:
    return permute(x, tuple(range(x.aval.ndim))[::-1])


def static_shape(shape: Any, operation: str, aval: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of ints, with -1 replaced by what is left of the elements."""
    sizes = _static_sizes(shape, operation)
    if sizes.count(-1) > 1:
        raise ShapeError(f"{operation}: one dimension can be -1, got the shape {tuple(sizes)}.")
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = _size_left(sizes, operation, aval)
    if math.prod(sizes) != aval.size or (sizes and min(sizes) < 0):
        raise ShapeError(message(
            operation,
            f"cannot reshape array of size {aval.size} into shape {tuple(sizes)}, "
            f"of size {math.prod(sizes)}.",
            got=aval.str_long(),
            expected=f"a shape of {aval.size} elements; -1 is the size that is left over",
        ))  # fmt: skip
    return tuple(sizes)


def _static_sizes(shape: Any, operation: str) -> list[int]:
    parts = shape if isinstance(shape, tuple | list) else checked_shape(shape, operation)
    return [static_int(n, operation) for n in parts]


def _size_left(sizes: list[int], operation: str, aval: Any) -> int:
    """Return the size that -1 stands for."""
    rest = math.prod([n for n in sizes if n != -1])
    if rest == 0 and aval.size == 0:
        return 0
    if rest <= 0 or aval.size % rest:
        raise ShapeError(message(
            operation, f"cannot reshape array of size {aval.size} into shape {tuple(sizes)}.",
            got=aval.str_long(), expected=f"a multiple of {rest} elements",
        ))  # fmt: skip
    left: int = aval.size // rest
    return left


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: ShardingLike = None) -> Array:
    """Return the elements of `a` in one dimension; `order` as of `reshape`.

    Args:
      a: an array or a number.
      order: "C" runs through the last dimension first, "F" through the first; "K" and "A" are "C".
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      A vector.

    Raises:
        TypeError: `a` is not an array; `out_sharding` is not a sharding.
        ValueError: unknown `order`.

    Example:
      >>> import xnp
      >>> xnp.ravel(xnp.array([[1, 2], [3, 4]]), order="F")
      Array([1, 3, 2, 4], dtype=int32)
    """
    shape = -1 if getattr(a, "size", 1) else (0,)
    return reshape(a, shape, "C" if order in "KA" else order, out_sharding=out_sharding)


# --- transpose ------------------------------------------------------------------------------------


def permute(x: Array, permutation: tuple[int, ...]) -> Array:
    """Bind `transpose`, but for the identity."""
    if permutation == tuple(range(len(permutation))):
        return x
    return bind("transpose", x, permutation=permutation)


@dispatch_on(1)
def _transpose(a: Any, axes: Any) -> Array:
    a = array_of(a, "transpose")
    rank = a.aval.ndim
    if axes is None:
        return permute(a, tuple(range(rank))[::-1])
    order = axes_of(axes, rank, "transpose")
    if len(order) != rank:
        raise ArgumentError(
            f"transpose: axes must name all {rank} dimensions of the array, got {axes}."
        )
    return permute(a, order)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Return `a` with its dimensions in another order.

    Args:
      a: an array.
      axes: the dimensions of `a` in the order of the result; None reverses them.

    Returns:
      An array of the same elements.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axes` are out of bounds.

    Example:
      >>> import xnp
      >>> xnp.transpose(xnp.ones((2, 3, 4)), (2, 0, 1)).shape
      (4, 2, 3)
    """
    return _transpose(a, None if axes is None else tuple(axes))


permute_dims = transpose


@dispatch_on(1)
def matrix_transpose(x: ArrayLike, /) -> Array:
    """Return `x` with its last two dimensions exchanged.

    Args:
      x: an array of two dimensions at least.

    Returns:
      An array of the dtype of `x`.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import xnp
      >>> xnp.matrix_transpose(xnp.array([[1, 2], [3, 4]]))
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    x = array_of(x, "matrix_transpose")
    rank = x.aval.ndim
    if rank < 2:
        raise ValueError(
            f"matrix_transpose: takes arrays of 2 dimensions and more, got {x.aval.str_long()}."
        )
    return permute(x, (*range(rank - 2), rank - 1, rank - 2))


@dispatch_on(1)
def _swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    a = array_of(a, "swapaxes")
    order = list(range(a.aval.ndim))
    i, j = axis_of(axis1, len(order), "swapaxes"), axis_of(axis2, len(order), "swapaxes")
    order[i], order[j] = order[j], order[i]
    return permute(a, tuple(order))


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Return `a` with two dimensions exchanged.

    Args:
      a: an array.
      axis1: a dimension.
      axis2: another one.

    Returns:
      An array of the same elements.

    Raises:
        TypeError: `a` is not an array.

    Example:
      >>> import xnp
      >>> xnp.swapaxes(xnp.ones((2, 3, 4)), 0, 2).shape
      (4, 3, 2)
    """
    axes = [static_int(axis, "swapaxes", "an axis") for axis in (axis1, axis2)]
    return _swapaxes(a, *axes)


@dispatch_on(1)
def _moveaxis(a: Any, source: Any, destination: Any) -> Array:
    a = array_of(a, "moveaxis")
    rank = a.aval.ndim
    sources = axes_of(source, rank, "moveaxis: source")
    targets = axes_of(destination, rank, "moveaxis: destination")
    if len(sources) != len(targets):
        raise ValueError(
            "moveaxis: source and destination must be of equal length, got "
            f"{len(sources)} and {len(targets)}."
        )
    order = [d for d in range(rank) if d not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return permute(a, tuple(order))


def moveaxis(
    a: ArrayLike, source: DimSize | Sequence[DimSize], destination: DimSize | Sequence[DimSize]
) -> Array:
    """Return `a` with dimensions moved to other places; the others keep their order.

    Args:
      a: an array.
      source: the dimensions to move, an int or a sequence of ints.
      destination: where they stand in the result, as many.

    Returns:
      An array of the same elements.

    Raises:
        TypeError: `a` is not an array.

    Example:
      >>> import xnp
      >>> xnp.moveaxis(xnp.ones((2, 3, 4)), 0, -1).shape
      (3, 4, 2)
    """
    return _moveaxis(a, _static(source), _static(destination))


def _static(axis: Any) -> Any:
    return tuple(axis) if dispatch.several_axes(axis) else static_int(axis, "axis", "the axis")


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Return `a` with one dimension moved to stand before dimension `start`.

    Args:
      a: an array.
      axis: the dimension to move.
      start: before which dimension it shall stand.

    Returns:
      An array of the same elements.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.rollaxis(xnp.ones((2, 3, 4)), 2).shape
      (4, 2, 3)
    """
    a = array_of(a, "rollaxis")
    rank = a.aval.ndim
    axis = axis_of(axis, rank, "rollaxis")
    start = start + rank if start < 0 else start
    if not 0 <= start <= rank:
        raise ValueError(f"rollaxis: start {start} is out of bounds for {rank} dimensions.")
    return moveaxis(a, axis, start - (axis < start))


# --- dimensions of size 1 -------------------------------------------------------------------------


@dispatch_on(1)
def _expand_dims(a: Any, axis: Any) -> Array:
    a = array_of(a, "expand_dims")
    axes = axis if isinstance(axis, tuple) else (axis,)
    rank = a.aval.ndim + len(axes)
    new = axes_of(axes, rank, "expand_dims")
    sizes = iter(a.aval.shape)
    shape = tuple([1 if d in new else next(sizes) for d in range(rank)])
    kept = tuple([d for d in range(rank) if d not in new])
    return bind("broadcast_in_dim", a, shape=shape, broadcast_dimensions=kept)


def expand_dims(a: ArrayLike, axis: Axis) -> Array:
    """Return `a` with dimensions of size 1 at the places that `axis` names in the result.

    Args:
      a: an array.
      axis: an int or a sequence of ints.

    Returns:
      An array of the same elements.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.expand_dims(xnp.ones(3), (0, 2)).shape
      (1, 3, 1)
    """
    return _expand_dims(a, _static(axis))


@dispatch_on(1)
def _squeeze(a: Any, axis: Any) -> Array:
    a = array_of(a, "squeeze")
    if axis is None:
        dims = tuple([d for d, n in enumerate(a.aval.shape) if n == 1])
    else:
        dims = axes_of(axis, a.aval.ndim, "squeeze")
    return bind("squeeze", a, dimensions=tuple(sorted(dims))) if dims else a


def squeeze(a: ArrayLike, axis: Axis = None) -> Array:
    """Return `a` without dimensions of size 1: all of them, or those of `axis`.

    Args:
      a: an array.
      axis: an int or a sequence of ints, dimensions of size 1; None for all of these.

    Returns:
      An array of the same elements.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.squeeze(xnp.ones((1, 3, 1))).shape
      (3,)
    """
    return _squeeze(a, None if axis is None else _static(axis))


def _at_least(rank: int, arys: Any) -> Array | tuple[Array, ...]:
    results = []
    for x in arys:
        x = array_of(x, f"atleast_{rank}d")
        shape = x.aval.shape
        if len(shape) < rank:
            front = rank - len(shape)
            if rank == 3:
                shape = {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)]
            else:
                shape = (*(1,) * front, *shape)
            x = table.reshape(x, shape)
        results.append(copy_if_aliased(x, *arys))
    return results[0] if len(results) == 1 else tuple(results)


@overload
def atleast_1d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(*arys: ArrayLike) -> Any: ...
def atleast_1d(*arys: ArrayLike) -> Array | tuple[Array, ...]:
    """Return each array with one dimension at least.

    Args:
        *arys: arrays or numbers.

    Returns:
        An array, or for several a list of arrays.

    Example:
        >>> import xnp
        >>> xnp.atleast_1d(3)
        Array([3], dtype=int32, weak_type=True)
    """
    return _at_least(1, arys)


@overload
def atleast_2d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(*arys: ArrayLike) -> Any: ...
def atleast_2d(*arys: ArrayLike) -> Array | tuple[Array, ...]:
    """Return each array with two dimensions at least, new ones in front.

    Args:
        *arys: arrays or numbers.

    Returns:
        An array, or for several a list of arrays.

    Example:
        >>> import xnp
        >>> xnp.atleast_2d(xnp.array([1, 2]))
        Array([[1, 2]], dtype=int32)
    """
    return _at_least(2, arys)


@overload
def atleast_3d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(*arys: ArrayLike) -> Any: ...
def atleast_3d(*arys: ArrayLike) -> Array | tuple[Array, ...]:
    """Return each array with three dimensions at least.

    Args:
        *arys: arrays or numbers.

    Returns:
        An array, or for several a list of arrays.

    Example:
        >>> import xnp
        >>> xnp.atleast_3d(xnp.array([1, 2])).shape
        (1, 2, 1)
    """
    return _at_least(3, arys)


# --- broadcasting ---------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to.

    Args:
      *shapes: shapes, each a sequence of ints.

    Returns:
      A tuple of ints.

    Example:
      >>> broadcast_shapes((2, 1), (3,))
      (2, 3)
    """
    known = [checked_shape(shape, "broadcast_shapes") for shape in shapes]
    check_sizes("broadcast_shapes", known)
    try:
        return np.broadcast_shapes(*known)
    except ValueError:
        raise ValueError(message(
            "broadcast_shapes", f"incompatible shapes: {', '.join(map(str, shapes))}.",
            expected="sizes that are equal or 1, counted from the last dimension",
        )) from None  # fmt: skip


@dispatch_on(1)
def _broadcast_to(array: Any, shape: tuple[int, ...]) -> Array:
    x = array_of(array, "broadcast_to")
    own = x.aval.shape
    pairs = zip(reversed(own), reversed(shape), strict=False)
    if len(own) > len(shape) or any(n not in (1, m) for n, m in pairs):
        raise ValueError(message(
            "broadcast_to", "Cannot broadcast to shape with fewer dimensions."
            if len(own) > len(shape) else "Incompatible shapes for broadcasting: "
            f"{own} and requested shape {shape}.",
        ))  # fmt: skip
    return table.broadcast_to(x, shape)


def broadcast_to(array: ArrayLike, shape: ShapeLike, *, out_sharding: ShardingLike = None) -> Array:
    """Return `array` repeated to a shape by NumPy's rules.

    Args:
      array: an array or a number.
      shape: an int or a sequence of ints.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array of the shape.

    Raises:
        TypeError: `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative.

    Example:
      >>> import xnp
      >>> xnp.broadcast_to(xnp.array([1, 2]), (2, 2))
      Array([[1, 2],
             [1, 2]], dtype=int32)
    """
    sizes = checked_shape(shape, "broadcast_to")
    return place(_broadcast_to(array, sizes), out_sharding, "broadcast_to")


def broadcast_arrays(*args: Any) -> tuple[Array, ...]:
    """Return the arrays, all in their common shape.

    Args:
      *args: arrays or numbers.

    Returns:
      A tuple of arrays.

    Example:
      >>> import xnp
      >>> [x.shape for x in xnp.broadcast_arrays(xnp.ones((2, 1)), xnp.ones(3))]
      [(2, 3), (2, 3)]
    """
    arrays = [array_of(a, "broadcast_arrays") for a in args]
    common = broadcast_shapes(*[a.aval.shape for a in arrays]) if arrays else ()
    return tuple([broadcast_to(a, common) for a in arrays])


# --- what an array is -----------------------------------------------------------------------------


def shape(a: ArrayLike) -> tuple[int, ...]:
    """Return the shape of an array.

    Args:
        a: an array or a number.

    Returns:
        An int, or for `shape` a tuple of ints, also of a tracer.

    Example:
        >>> import xnp
        >>> xnp.shape(xnp.ones((2, 3)))
        (2, 3)
    """
    return tuple(a.shape) if hasattr(a, "shape") else tuple(np.shape(a))


def ndim(a: ArrayLike) -> int:
    """Return the number of dimensions of an array.

    Args:
        a: an array or a number.

    Returns:
        An int, or for `shape` a tuple of ints, also of a tracer.

    Example:
        >>> import xnp
        >>> xnp.ndim(xnp.ones((2, 3)))
        2
    """
    return len(shape(a))


def size(a: ArrayLike, axis: Axis = None) -> int:
    """Return the number of elements of an array, or its size along axes.

    Args:
      a: an array or a number.
      axis: an int or a sequence of ints; None counts all elements.

    Returns:
      An int.

    Raises:
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.size(xnp.ones((2, 3)), axis=1)
      3
    """
    own = shape(a)
    if axis is None:
        return math.prod(own)
    return math.prod([own[d] for d in axes_of(axis, len(own), "size")])


def astype(
    x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: DeviceLike = None
) -> Array:
    """Return the elements of `x` in another dtype.

    A float beyond an integer dtype becomes its nearest bound, NaN 0; NumPy's are undefined.

    Args:
      x: an array.
      dtype: the dtype; None for the default floating one. Complex numbers lose their imaginary
        part, floats become integers by rounding towards zero, anything but zero is True.
      copy: whether the result must not share memory with `x`; without it, an array that has the
        dtype is returned as it is.
      device: where the result shall be; None leaves it where it is.

    Returns:
      An array of the shape of `x`.

    Raises:
        TypeError: `x` is not an array; `dtype` names no dtype.

    Example:
      >>> import xnp
      >>> xnp.astype(xnp.array([1.7, -1.7]), int)
      Array([ 1, -1], dtype=int32)
    """
    wanted = dtypes.requested_dtype(dtype, "astype")
    result = x if isinstance(x, Array) and x.aval.dtype == wanted else None
    if result is None or result.aval.weak_type:
        result = _astype(x, wanted)
    elif copy:
        result = bind("copy", result)
    return on_device(result, device, "astype")


@dispatch_on(1)
def _astype(x: Any, dtype: Any) -> Array:
    return dispatch.cast(array_of(x, "astype"), dtype)


# --------------------------------------------------------------------------------------- joining
# Putting arrays together and taking them apart: concatenate, stack, split, block, ...


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
        if host is None or aval.size > READ_AT_ONCE:
            return None
        hosts.append(host)
    return None if first is None else (hosts, first)


def concatenate(arrays: Arrays, axis: int | None = 0, dtype: DTypeLike = None) -> Array:
    """Return arrays joined along an axis that they have.

    NumPy's takes `out` as well.

    Args:
      arrays: a sequence of arrays of one shape but for the axis, or an array of one more dimension.
      axis: the axis; None joins the flattened arrays.
      dtype: of the result; None for the one the arrays promote to.

    Returns:
      An array of the dtype that the arrays promote to.

    Raises:
        TypeError: `dtype` names no dtype.
        ValueError: `axis` is out of bounds.

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
    return copy_if_aliased(_concatenate(parts, axis, dtype), *parts)  # type: ignore[no-any-return]


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
    xs = dispatch.promote("concatenate", *parts)
    if dtype is not None:
        wanted = dtypes.requested_dtype(dtype, "concatenate")
        xs = [dispatch.cast(x, wanted) for x in xs]
    if axis is None:
        xs, axis = [table.reshape(x, (x.aval.size,)) for x in xs], 0
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

    NumPy's takes `out` and `dtype` as well.

    Args:
      arrays: as of `concatenate`.
      axis: the axis; None joins the flattened arrays.

    Returns:
      An array of the dtype that the arrays promote to.

    Raises:
        ValueError: `axis` is out of bounds.

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

    Raises:
        TypeError: `out` is given; `dtype` names no dtype.
        ValueError: `axis` is out of bounds.

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
    xs = dispatch.promote("stack", *parts)
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

    Raises:
        TypeError: `x` is not an array.
        ValueError: `axis` is out of bounds.

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
    """Return arrays joined along the first axis; vectors are rows.

    Args:
        tup: a sequence of arrays, or an array whose first dimension is taken for
            one.
        dtype: of the result; None for the one the arrays promote to.

    Returns:
        An array.

    Raises:
        TypeError: `dtype` names no dtype.

    Example:
        >>> import xnp
        >>> xnp.vstack([xnp.array([1, 2]), xnp.array([3, 4])])
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
    return concatenate([atleast_2d(x) for x in tup], 0, dtype)


def hstack(tup: Arrays, dtype: DTypeLike = None) -> Array:
    """Return arrays joined along the second axis; vectors along their only one.

    Args:
        tup: a sequence of arrays, or an array whose first dimension is taken for
            one.
        dtype: of the result; None for the one the arrays promote to.

    Returns:
        An array.

    Raises:
        TypeError: `dtype` names no dtype.

    Example:
        >>> import xnp
        >>> xnp.hstack([xnp.array([1, 2]), xnp.array([3])])
        Array([1, 2, 3], dtype=int32)
    """
    columns = [atleast_1d(x) for x in tup]
    return concatenate(columns, 0 if not columns or columns[0].ndim == 1 else 1, dtype)


def dstack(tup: Arrays, dtype: DTypeLike = None) -> Array:
    """Return arrays joined along the third axis.

    Args:
        tup: a sequence of arrays, or an array whose first dimension is taken for
            one.
        dtype: of the result; None for the one the arrays promote to.

    Returns:
        An array.

    Raises:
        TypeError: `dtype` names no dtype.

    Example:
        >>> import xnp
        >>> xnp.dstack([xnp.array([1, 2]), xnp.array([3, 4])]).shape
        (1, 2, 2)
    """
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
    columns = [table.reshape(x, (x.aval.size, 1)) if x.aval.ndim < 2 else x for x in parts]
    return concatenate(columns, 1)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Return `arr` with `values` joined to its end along an axis; None flattens both.

    Args:
      arr: an array.
      values: an array of its shape but for the axis.
      axis: along which; None flattens both.

    Returns:
      A new array, of the dtype that the two promote to.

    Raises:
        TypeError: `arr` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.append(xnp.array([1, 2]), xnp.array([3]))
      Array([1, 2, 3], dtype=int32)
    """
    arr = asarray(arr)
    values = (
        dispatch.as_array_like(values, arr, "append") if type(values) is float else asarray(values)
    )
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
        return table.reshape(x, (*(1,) * (rank - x.ndim), *x.shape))
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
        sizes = [part + 1] * rest + [part] * (count - rest)
        bounds = list(itertools.accumulate(sizes[:-1]))
    starts, stops = [0, *bounds], [*bounds, size]
    lead = (slice(None),) * axis
    return [
        copy_if_aliased(x[(*lead, slice(a, max(a, b)))], x)
        for a, b in zip(starts, stops, strict=True)
    ]


def split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Return an array taken apart along an axis, in a number of equal parts or before indices.

    Args:
        ary: an array.
        indices_or_sections: a number of parts, or the places before which to cut.
        axis: along which.

    Returns:
        A list of arrays.

    Raises:
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.split(xnp.arange(4), 2)
        [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis, True)


def array_split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Return an array taken apart along an axis; the first parts may be larger by one.

    Args:
        ary: an array.
        indices_or_sections: a number of parts, or the places before which to cut.
        axis: along which.

    Returns:
        A list of arrays.

    Raises:
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.array_split(xnp.arange(3), 2)
        [Array([0, 1], dtype=int32), Array([2], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis, False)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Return an array taken apart along its first axis.

    Args:
        ary: an array.
        indices_or_sections: a number of equal parts, or the places before which to
            cut.

    Returns:
        A list of arrays.

    Example:
        >>> import xnp
        >>> xnp.vsplit(xnp.ones((4, 2)), 2)[0].shape
        (2, 2)
    """
    return _split("vsplit", ary, indices_or_sections, 0, True)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Return an array taken apart along its second axis; a vector along its only one.

    Args:
        ary: an array.
        indices_or_sections: a number of equal parts, or the places before which to
            cut.

    Returns:
        A list of arrays.

    Example:
        >>> import xnp
        >>> xnp.hsplit(xnp.arange(4), 2)
        [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    axis = 0 if array_of(ary, "hsplit").ndim == 1 else 1
    return _split("hsplit", ary, indices_or_sections, axis, True)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Return an array taken apart along its third axis.

    Args:
        ary: an array.
        indices_or_sections: a number of equal parts, or the places before which to
            cut.

    Returns:
        A list of arrays.

    Example:
        >>> import xnp
        >>> xnp.dsplit(xnp.ones((1, 2, 4)), 2)[0].shape
        (1, 2, 2)
    """
    return _split("dsplit", ary, indices_or_sections, 2, True)


boundaries(globals(), written=True)
