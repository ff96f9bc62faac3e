"""Elements in other places: repeat, tile, roll, flip, rot90, diagonals, triangles, bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.numpy import dispatch
from xnp.numpy.creation import counting, eye
from xnp.numpy.dispatch import array_of, axes_of, axis_of, cast, dispatch_on, several_axes
from xnp.numpy.indexing import read
from xnp.numpy.reductions import static_axis, sum as summed
from xnp.numpy.shaping import moveaxis, permute
from xnp.placing import compute_as
from xnp.primitives.table import bind, broadcast_to, fill, reshape, scalar_like, select
from xprim import Array, ConcreteArray, Tracer, dtypes, scalar_array, shaped_array
from xprim.avals import size_of
from xprim.eager_costs import HUGE
from xprim.errors import ConcretizationTypeError, ShapeError, described, message
from xprim.requirements import require, static_int, static_shape
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Axis, DimSize, DTypeLike, ShapeLike, ShardingLike

__all__ = [
    "diag", "diagflat", "diagonal", "flip", "fliplr", "flipud", "repeat", "resize",
    "roll", "rot90", "tile", "trace",
]  # fmt: skip

__dir__ = __all__.copy


# --- repeat ---------------------------------------------------------------------------------------


def repeat(
    a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *,
    total_repeat_length: int | None = None, out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Return `a` with each element along an axis repeated.

    Args:
      a: an array.
      repeats: how often: an int, or one for each element along the axis.
      axis: the axis; None repeats the flattened elements.
      total_repeat_length: the size of the result along the axis, which a traced `repeats` needs;
        elements beyond it are left out, missing ones are the last again.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array of the dtype of `a`.

    Raises:
        TypeError: `a` is not an array; `out_sharding` is not a sharding.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.repeat(xnp.array([1, 2]), 2)
      Array([1, 1, 2, 2], dtype=int32)
    """
    if out_sharding is not None:
        return compute_as(out_sharding, repeat, a, repeats, axis,
                           total_repeat_length=total_repeat_length)  # fmt: skip
    return _repeat(array_of(a, "repeat"), repeats, axis, total_repeat_length)


def _repeat(a: Any, repeats: Any, axis: int | None, total_repeat_length: int | None) -> Array:
    a, axis = dispatch.along_axis(a, axis, "repeat")
    require(
        total_repeat_length is None or static_int(total_repeat_length, "repeat") >= 0, "repeat",
        "total_repeat_length is negative: {}.", total_repeat_length,
    )  # fmt: skip
    if isinstance(repeats, int) and total_repeat_length is None:
        hosts = dispatch.elements_now(a) if 0 <= repeats * a.aval.size < HUGE else None
        if hosts is not None:
            repeated = np.repeat(hosts[0], repeats, axis)
            aval = shaped_array(repeated.shape, a.aval.dtype, a.aval.weak_type)
            return ConcreteArray(repeated, aval)
        return _repeat_each(a, repeats, axis)
    if isinstance(repeats, Array) and not isinstance(repeats, ConcreteArray):
        if total_repeat_length is None:
            raise ConcretizationTypeError(
                repeats,
                "repeat",
                "the size of the result depends on traced repeats.",
                "give total_repeat_length=, the size of the result",
            )
        return _repeat_traced(a, repeats, axis, total_repeat_length)  # type: ignore[no-any-return]
    size = a.aval.shape[axis]
    counts = _counts(repeats, size)
    places = np.repeat(np.arange(size), counts)
    if total_repeat_length is not None:
        missing = max(total_repeat_length - len(places), 0)
        places = np.concatenate([places, np.full(missing, max(size - 1, 0))])[:total_repeat_length]
    return read(a, (*[slice(None)] * axis, places.astype(np.int32)))


def _counts(repeats: Any, size: int) -> np.ndarray[Any, Any]:
    """Return how often each of `size` elements stands in the result."""
    host = np.asarray(repeats)
    if host.ndim > 1 or host.size not in (1, size):
        raise ShapeError(message(
            "repeat", f"repeats must be a number, or one for each of {size} elements.",
            got=f"repeats of shape {host.shape}",
        ))  # fmt: skip
    if size and host.dtype.kind not in "biu":
        raise _not_counts(repeats)
    return np.broadcast_to(host, (size,))


def _not_counts(repeats: Any) -> TypeError:
    return TypeError(f"repeat: repeats must be integers, got {described(repeats)}.")


@dispatch_on(1)
def _repeat_each(a: Any, repeats: int, axis: int) -> Array:
    a = array_of(a, "repeat")
    shape = a.aval.shape
    wide = (*shape[: axis + 1], repeats, *shape[axis + 1 :])
    dims = tuple([d for d in range(len(wide)) if d != axis + 1])
    a = bind("broadcast_in_dim", a, shape=wide, broadcast_dimensions=dims)
    return reshape(a, (*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]))


def _repeat_traced(a: Any, repeats: Any, axis: int, total: int) -> Any:
    size = a.aval.shape[axis]
    if not (dtypes.is_integer(repeats.aval.dtype) or dtypes.is_bool(repeats.aval.dtype)):
        raise _not_counts(repeats)
    counts = broadcast_to(reshape(repeats, (repeats.aval.size,)), (size,))
    ends = bind("cumsum", cast(counts, dtypes.int32), axis=0, reverse=False)
    positions = counting((total, size), 0, dtypes.int32)
    passed = bind("ge", positions, broadcast_to(ends, (total, size)))
    places = summed(passed, 1, dtypes.int32)
    places = bind("min", places, scalar_like(places, max(size - 1, 0)))
    return read(a, (*[slice(None)] * axis, places))


@dispatch_on(1)
def _tile(a: Any, reps: tuple[int, ...]) -> Array:
    a = array_of(a, "tile")
    rank = max(len(reps), a.aval.ndim)
    reps = (*(1,) * (rank - len(reps)), *reps)
    shape = (*(1,) * (rank - a.aval.ndim), *a.aval.shape)
    wide = tuple([n for pair in zip(reps, shape, strict=True) for n in pair])
    a = bind("broadcast_in_dim", reshape(a, shape), shape=wide,
             broadcast_dimensions=tuple(range(1, 2 * rank, 2))) if rank else a  # fmt: skip
    return reshape(a, tuple([r * n for r, n in zip(reps, shape, strict=True)]))


def tile(A: ArrayLike, reps: DimSize | Sequence[DimSize]) -> Array:
    """Return `A` repeated as a whole, `reps` times along each axis (counted from the last).

    Args:
      A: an array.
      reps: how often, an int or one for each axis.

    Returns:
      An array of the dtype of `A`.

    Example:
      >>> import xnp
      >>> xnp.tile(xnp.array([1, 2]), 2)
      Array([1, 2, 1, 2], dtype=int32)
    """
    several = isinstance(reps, Sequence) or np.ndim(reps)  # type: ignore[arg-type]
    given: Any = reps if several else (reps,)
    return _tile(A, tuple([static_int(r, "tile", "a number of repetitions") for r in given]))


def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """Return the elements of `a`, over and over again, in a new shape.

    Args:
      a: an array.
      new_shape: an int or a sequence of ints.

    Returns:
      An array of the new shape; zeros where `a` has no elements.

    Raises:
        TypeError: `a` is not an array.

    Example:
      >>> import xnp
      >>> xnp.resize(xnp.array([1, 2, 3]), (2, 2))
      Array([[1, 2],
             [3, 1]], dtype=int32)
    """
    a = array_of(a, "resize")
    shape = static_shape(new_shape, "resize")
    size = math.prod(shape)
    require(
        all(n >= 0 for n in shape), "resize", "dimensions must not be negative, got {}.", shape,
        error=ShapeError,
    )  # fmt: skip
    if not size or not a.aval.size:
        return fill(shape, 0, a.aval.dtype)
    flat = tile(reshape(a, (a.aval.size,)), -(-size // a.aval.size))
    return reshape(flat[:size], shape)


# --- roll, flip -----------------------------------------------------------------------------------


def roll(a: ArrayLike, shift: ArrayLike | Sequence[ArrayLike], axis: Axis = None) -> Array:
    """Return `a` with elements moved along axes; those that leave at the end come in at the start.

    Args:
      a: an array.
      shift: how far, a number for all axes or one for each, without its fraction; may be traced.
      axis: the axes; None moves through the flattened array.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.roll(xnp.array([1, 2, 3]), 1)
      Array([3, 1, 2], dtype=int32)
    """
    original = a = array_of(a, "roll")
    if axis is None:
        return reshape(roll(reshape(a, (a.aval.size,)), shift, 0), a.aval.shape)
    given = axis if several_axes(axis) else (axis,)
    axes = tuple([axis_of(d, a.aval.ndim, "roll") for d in given])
    one = shift.aval.ndim == 0 if isinstance(shift, Array) else not several_axes(shift)
    if one:
        shifts = [shift] * len(axes)
    else:
        shifts = list(shift)  # type: ignore[arg-type]
        axes = axes * len(shifts) if len(axes) == 1 else axes
        shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    require(
        len(shifts) == len(axes), "roll", "{} shifts do not go with {} axes.", len(shifts),
        len(axes),
    )  # fmt: skip
    for by, d in zip(shifts, axes, strict=True):
        a = _roll(a, by, d)
    return dispatch.copy_if_aliased(a, original)  # type: ignore[no-any-return]


def _roll(a: Any, by: Any, d: int) -> Any:
    size = a.aval.shape[d]
    if not size:
        return a
    if not isinstance(by, int | np.integer):
        by = cast(array_of(by, "roll"), dtypes.int32)
    if isinstance(by, int | np.integer | ConcreteArray):
        start = -int(by) % size
        return _roll_static(a, start, d) if start else a
    start = bind("rem", by, scalar_array(size, dtypes.int32))
    start = bind("sub", scalar_array(size, dtypes.int32), start)
    start = bind("rem", start, scalar_array(size, dtypes.int32))
    double = bind("concatenate", a, a, dimension=d)
    zero = scalar_array(0, dtypes.int32)
    starts = [start if i == d else zero for i in range(a.aval.ndim)]
    return bind("dynamic_slice", double, *starts, slice_sizes=a.aval.shape)


@dispatch_on(1)
def _roll_static(a: Any, start: int, d: int) -> Array:
    lead = (slice(None),) * d
    tail, head = read(a, (*lead, slice(start, None))), read(a, (*lead, slice(None, start)))
    return bind("concatenate", tail, head, dimension=d)


@dispatch_on(1)
def _flip(m: Any, axis: Any) -> Array:
    m = array_of(m, "flip")
    return bind("rev", m, dimensions=axes_of(axis, m.aval.ndim, "flip"))


def flip(m: ArrayLike, axis: Axis = None) -> Array:
    """Return `m` with the order of elements reversed along axes; None reverses all.

    Args:
      m: an array.
      axis: the axes, an int or a tuple of ints; None for all.

    Returns:
      An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.flip(xnp.array([1, 2, 3]))
      Array([3, 2, 1], dtype=int32)
    """
    return _flip(m, static_axis(axis, "flip"))


def fliplr(m: ArrayLike) -> Array:
    """Return `m` with its columns reversed.

    Args:
        m: an array; of two dimensions at least for `fliplr`.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is not an array.

    Example:
        >>> import xnp
        >>> xnp.fliplr(xnp.array([[1, 2], [3, 4]]))
        Array([[2, 1],
               [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """Return `m` with its rows reversed.

    Args:
        m: an array; of two dimensions at least for `fliplr`.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is not an array.

    Example:
        >>> import xnp
        >>> xnp.flipud(xnp.array([[1, 2], [3, 4]]))
        Array([[3, 4],
               [1, 2]], dtype=int32)
    """
    return flip(m, 0)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Return `m` turned by `k` quarters in the plane of two axes, from the first to the second.

    Args:
      m: an array of two dimensions at least.
      k: how many quarters, a Python int.
      axes: the plane, two different axes.

    Returns:
      An array of the dtype of `m`; the sizes of the two axes are exchanged for odd `k`.

    Raises:
        TypeError: `m` is not an array.
        ValueError: `axes` are out of bounds.

    Example:
      >>> import xnp
      >>> xnp.rot90(xnp.array([[1, 2], [3, 4]]))
      Array([[2, 4],
             [1, 3]], dtype=int32)
    """
    m = array_of(m, "rot90")
    require(
        m.aval.ndim >= 2, "rot90",
        "rot90 requires its first argument to have ndim at least two, "
        "but got first argument of {}.", m,
    )  # fmt: skip
    first, second = axes_of(tuple(axes), m.aval.ndim, "rot90")
    k = size_of(k) % 4
    if k == 0:
        return m
    if k == 2:
        return flip(flip(m, first), second)
    order = list(range(m.aval.ndim))
    order[first], order[second] = second, first
    if k == 1:
        return permute(flip(m, second), tuple(order))
    return flip(permute(m, tuple(order)), second)


# --- diagonals and triangles ----------------------------------------------------------------------


@dispatch_on(1)
def _diagonal(a: Any, offset: int, axis1: int, axis2: int) -> Array:
    a = array_of(a, "diagonal")
    first, second = axes_of((axis1, axis2), a.aval.ndim, "diagonal")
    a = moveaxis(a, (first, second), (-2, -1))
    rows, columns = a.shape[-2:]
    size = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    places = np.arange(size, dtype=np.int32)
    return read(a, (..., places + max(-offset, 0), places + max(offset, 0)))


def diagonal(a: ArrayLike, offset: DimSize = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return the diagonals of the matrices in two axes, as the last dimension.

    Args:
      a: an array.
      offset: 0 for the main diagonal, positive for one above it.
      axis1: the axis of rows.
      axis2: the axis of columns.

    Returns:
      An array of one dimension less; an array of its own, where NumPy returns a view.

    Raises:
        TypeError: `a` is not an array.

    Example:
      >>> import xnp
      >>> xnp.diagonal(xnp.array([[1, 2], [3, 4]]))
      Array([1, 4], dtype=int32)
    """
    sizes = size_of(offset), size_of(axis1), size_of(axis2)
    a = array_of(a, "diagonal")
    hosts = dispatch.elements_now(a) if {*map(type, sizes)} == {int} and a.aval.ndim == 2 else None
    if hosts is None or {*sizes[1:]} != {0, 1}:
        return _diagonal(a, *sizes)
    host = np.ascontiguousarray(np.diagonal(hosts[0], *sizes))
    return ConcreteArray(host, shaped_array(host.shape, a.aval.dtype, a.aval.weak_type))


def trace(
    a: ArrayLike, offset: DimSize = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike = None,
    out: None = None,
) -> Array:  # fmt: skip
    """Return the sum of the diagonal, see `diagonal`; the offset may be a traced integer.

    Args:
      a: an array of two dimensions at least.
      offset: the diagonal: 0 for the main one, positive for one above it.
      axis1: the axis of rows.
      axis2: the axis of columns.
      dtype: in which to sum; None for that of `a`, at least the default integer dtype.
      out: not supported, must be None.

    Returns:
      An array without the two axes.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given.

    Example:
      >>> import xnp
      >>> xnp.trace(xnp.array([[1, 2], [3, 4]]))
      Array(5, dtype=int32)
    """
    dispatch.no_out("trace", out)
    if isinstance(offset, Tracer) and offset.concrete() is None:
        a = moveaxis(a, (axis1, axis2), (-2, -1))
        rows, columns = a.aval.shape[-2:]
        on_diagonal = broadcast_to(eye(rows, columns, offset, bool), a.aval.shape)
        return summed(select(on_diagonal, a, scalar_like(a, 0)), (-2, -1), dtype)
    return summed(diagonal(a, offset, axis1, axis2), -1, dtype)


def diag(v: ArrayLike, k: int = 0) -> Array:
    """Return the diagonal `k` of a matrix, or the matrix that has a vector as diagonal `k`.

    Args:
        v: an array; of `diag` a vector or a matrix.
        k: the diagonal: 0 for the main one, positive for one above it, a Python
            int.

    Returns:
        A matrix with zeros elsewhere, or of a matrix the vector. Where NumPy's
        `diag` may return a view, this is an array of its own.

    Raises:
        TypeError: `v` is not an array.

    Example:
        >>> import xnp
        >>> xnp.diag(xnp.array([1, 2]))
        Array([[1, 0],
               [0, 2]], dtype=int32)
    """
    v = array_of(v, "diag")
    if v.aval.ndim == 2:
        return diagonal(v, k)
    require(v.aval.ndim == 1, "diag", "takes a vector or a matrix, got {}.", v)
    return _diag(v, size_of(k))


@dispatch_on(1)
def _diag(v: Any, k: int) -> Array:
    size = v.aval.shape[0] + abs(k)
    zero = scalar_like(v, 0)
    padded = bind("pad", v, zero, padding_config=((max(-k, 0), max(k, 0), 0),))
    rows, columns = counting((size, size), 0, dtypes.int32), counting((size, size), 1, dtypes.int32)
    on = bind("eq", bind("add", rows, scalar_array(k, dtypes.int32)), columns)
    return select(on, broadcast_to(padded, (size, size), (0,)), zero)


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Return the matrix that has the flattened elements as diagonal `k`.

    Args:
        v: an array; of `diag` a vector or a matrix.
        k: the diagonal: 0 for the main one, positive for one above it, a Python
            int.

    Returns:
        A matrix with zeros elsewhere, or of a matrix the vector. Where NumPy's
        `diag` may return a view, this is an array of its own.

    Raises:
        TypeError: `v` is not an array.

    Example:
        >>> import xnp
        >>> xnp.diagflat(xnp.array([[1, 2]]))
        Array([[1, 0],
               [0, 2]], dtype=int32)
    """
    v = array_of(v, "diagflat")
    return diag(reshape(v, (v.aval.size,)), k)


# --- bits -----------------------------------------------------------------------------------------


def bits_as(x: Any, dtype: Any) -> Any:
    """Return the bits of `x` read as another dtype: what the method `view` does."""
    x = array_of(x, "view")
    if dtype is None:
        return x
    wanted = dtypes.requested_dtype(dtype, "view")
    own = x.aval.dtype
    if wanted == own:
        return x
    wide, narrow = dtypes.itemsize_bits(own), dtypes.itemsize_bits(wanted)
    if not x.aval.ndim:
        require(
            wide == narrow, "view", "an array of rank 0 cannot become elements of another size."
        )
        return reshape(bits_as(reshape(x, (1,)), wanted), ())
    if dtypes.is_bool(own):
        return bits_as(cast(x, dtypes.uint8), wanted)
    if dtypes.is_complex(own):
        parts = [reshape(bind(part, x), (*x.aval.shape, 1)) for part in ("real", "imag")]
        pairs = bind("concatenate", *parts, dimension=x.aval.ndim)
        return bits_as(reshape(pairs, (*x.aval.shape[:-1], x.aval.shape[-1] * 2)), wanted)
    if dtypes.is_bool(wanted):
        return cast(bits_as(x, dtypes.uint8), wanted)
    if dtypes.is_complex(wanted):
        numbers = bits_as(x, np.zeros((), wanted).real.dtype)
        _check_divides(numbers.aval.shape[-1], 2)
        return bind("complex", numbers[..., ::2], numbers[..., 1::2])
    return _bits_of_numbers(x, wanted, wide, narrow)


def _bits_of_numbers(x: Any, wanted: Any, wide: int, narrow: int) -> Any:
    shape = x.aval.shape
    if wide < narrow:
        _check_divides(shape[-1], narrow // wide)
        x = reshape(x, (*shape[:-1], shape[-1] // (narrow // wide), narrow // wide))
    x = bind("bitcast_convert_type", x, new_dtype=wanted)
    return reshape(x, (*shape[:-1], shape[-1] * (wide // narrow))) if wide > narrow else x


def _check_divides(size: int, count: int) -> None:
    if size % count:
        raise ValueError(
            f"view: the last dimension, {size}, does not divide into elements of {count}."
        )


boundaries(globals())
