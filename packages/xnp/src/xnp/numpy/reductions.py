"""Reductions over axes: sum, prod, max, ..., mean, var, ..., cumsum, cumprod."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from xnp.numpy.dispatch import (
    along_axis,
    array_of,
    as_array_like,
    axes_of,
    axis_of,
    broadcast,
    broadcast_all,
    cast,
    collective,
    computation_dtype,
    convert_to,
    dims_and_names,
    dispatch_on,
    elements_now,
    inexact,
    promote,
    several_axes,
    wide,
)
from xnp.numpy.indexing import no_out
from xnp.primitives.table import bind, broadcast_to, fill, reshape, scalar_like, select
from xprim import (
    Array,
    ConcreteArray,
    Tracer,
    Zero,
    as_array,
    axis_size,
    dtypes,
    get_primitive,
    scalar_array,
    state,
)  # fmt: skip
from xprim.array import check_numbers
from xprim.avals import SymbolicSize
from xprim.errors import message
from xprim.requirements import static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Axis, DTypeLike

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "max", "min", "minmax",
    "prod", "ptp", "sum", "average", "mean", "std", "var", "cumprod", "cumsum",
    "cumulative_prod", "cumulative_sum",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------ reductions
# Reductions over axes: sum, prod, max, min, all, any, argmax, ...
#
# Each takes `axis` (an int, a tuple, or None for all), `keepdims`, and where NumPy has them
# `dtype`, `initial` and `where`. An axis may be the name of one that `vmap`, `pmap` or `shard_map`
# binds: what is reduced over it is equal for all members. Sums and products of integers of fewer
# than 32 bits (and of booleans) are taken in the default integer dtype.


def static_axis(axis: Any, operation: str) -> Any:
    """Return the axes of an operation as something hashable: one as it is, several as a tuple."""
    if axis is None or type(axis) is int or type(axis) is tuple:
        return axis
    if type(axis) is str:
        return (axis,)
    # a float equals an int, and would find what is known of that
    return tuple(axis) if several_axes(axis) else static_int(axis, operation, "the axis")


def check_requested(dtype: Any, operation: str) -> Any:
    """Return the dtype that a caller asks for, if any."""
    return None if dtype is None else dtypes.requested_dtype(dtype, operation)


def keep_dims(x: Array, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Array:
    """Put reduced dimensions back with size 1 if they are to be kept."""
    if not keepdims:
        return x
    return reshape(x, tuple([1 if d in axes else n for d, n in enumerate(shape)]))


_COLLECTIVES = {"reduce_sum": "psum", "reduce_max": "pmax", "reduce_min": "pmin"}


def _reduce_across_axes(primitive: str, x: Array, axes: tuple[Any, ...]) -> Array:
    """Reduce over dimensions, and then over axes by their names, by collectives."""
    dims = tuple([d for d in axes if type(d) is not str])
    x, names = bind_reduction(primitive, x, dims), axes[len(dims) :]
    name = _COLLECTIVES.get(primitive)
    operation = primitive.removeprefix("reduce_")
    result: Array
    if name is not None and not dtypes.is_complex(x.aval.dtype if name != "psum" else np.float32):
        result = collective(name, operation)(x, names)
        return result
    for axis in names:  # a reduction with no collective: of the values of all members
        members = collective("all_gather", operation)(x, axis)
        x = bind(primitive, members, axes=(0,))
    return x


def bind_reduction(primitive: str, x: Array, axes: tuple[Any, ...]) -> Array:
    """Bind a reduction, or return `x` when there is nothing to reduce.

    Args:
      primitive: the reduction.
      x: its operand.
      axes: dimensions, and then names of axes, as of `dims_and_names`.
    """
    if axes and type(axes[-1]) is str:
        return _reduce_across_axes(primitive, x, axes)
    if axes:
        return bind(primitive, x, axes=tuple(sorted(axes)))
    check_numbers(x.aval, primitive)
    return x


def mask_of(where: Any, operation: str) -> Array:
    """Return a mask of elements as an Array; numbers raise, for they could be weights."""
    mask = array_of(where, operation)
    if not dtypes.is_bool(mask.aval.dtype):
        raise ValueError(message(
            operation, "where must be a mask of booleans.", got=mask.aval.str_long(),
            hint="where=mask != 0, or a product where numbers are weights",
        ))  # fmt: skip
    return mask


def _with_where(operation: str, x: Any, where: Any, neutral: Any) -> Array:
    """Put the neutral element where the mask does not hold."""
    x, mask = broadcast_all(operation, x, mask_of(where, operation))
    return select(mask, x, scalar_like(x, neutral))


# --- sum and prod ---------------------------------------------------------------------------------


def accumulation_dtype(dtype: Any) -> Any:
    """Return the dtype in which elements of an integer dtype are added and multiplied."""
    if dtypes.is_inexact(dtype):
        return dtype
    wide = dtypes.python_scalar_dtype(int)
    if dtype.itemsize > wide.itemsize or (dtypes.is_integer(dtype) and dtype.itemsize >= 4
                                          and wide.itemsize == 4):  # fmt: skip
        return dtype
    if dtypes.is_unsigned_integer(dtype):
        return dtypes.uint32 if wide == dtypes.int32 else dtypes.uint64
    return wide


def _start(initial: Any, operation: str) -> Array:
    """Return the scalar that a reduction starts from."""
    start = array_of(initial, operation)
    if start.aval.shape:
        raise ValueError(
            f"{operation}: initial value must be a scalar. Got array of shape {start.aval.shape}."
        )
    return start


_OF_BOOLEANS = {"reduce_sum": "reduce_or", "reduce_prod": "reduce_and"}


def _accumulate(primitive: str, operation: str) -> Callable[..., Array]:
    @dispatch_on(1)
    def reduce(a: Any, axis: Any, dtype: Any, keepdims: bool, promotes: bool) -> Array:
        a = array_of(a, operation)
        axes = dims_and_names(axis, a.aval.ndim, operation)
        if dtype is not None:
            a = cast(a, dtype)
            if dtypes.is_bool(a.aval.dtype):
                bits = bind_reduction(_OF_BOOLEANS[primitive], a, axes)
                return keep_dims(bits, a.aval.shape, axes, keepdims)
        elif promotes or dtypes.is_bool(a.aval.dtype):
            a = convert_to(a, accumulation_dtype(a.aval.dtype), a.aval.weak_type)
        return keep_dims(bind_reduction(primitive, a, axes), a.aval.shape, axes, keepdims)

    return reduce


_sum, _prod = _accumulate("reduce_sum", "sum"), _accumulate("reduce_prod", "prod")


def sum(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:  # fmt: skip
    """Return the sum of elements over axes; 0 for none.

    A mask `where` may have more dimensions than the array, or longer ones, which NumPy refuses.

    Args:
      a: an array.
      axis: the axes to sum over; None for all.
      dtype: in which to sum; None for that of `a`, at least the default integer dtype.
      out: not supported, must be None.
      keepdims: whether reduced axes stay with size 1.
      initial: a number to start from.
      where: a mask of the elements to take.
      promote_integers: whether small integers are summed in the default integer dtype.

    Returns:
      An array without the reduced axes (with `keepdims`, of size 1 in them). Integers are summed in
      int32, where NumPy has int64.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given; `where` is not an
            array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.sum(xnp.array([[1, 2], [3, 4]]), axis=0)
      Array([4, 6], dtype=int32)
    """
    no_out("sum", out)
    if where is not None:
        a = _with_where("sum", array_of(a, "sum"), where, 0)
    axes, dtype = static_axis(axis, "sum"), check_requested(dtype, "sum")
    if initial is None:
        return _sum(a, axes, dtype, keepdims, promote_integers)
    return _join("sum", "add", _sum, a, (axes, dtype, keepdims, promote_integers), initial)


def prod(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:  # fmt: skip
    """Return the product of elements over axes; 1 for none. Arguments as of `sum`.

    A mask `where` may have more dimensions than the array, or longer ones, which NumPy refuses.

    Args:
        a: an array.
        axis: the axis or axes that go away; None for all.
        dtype: of the result; None for that of the elements, where narrow integers and
            booleans widen to int32.
        out: must be None: arrays do not change, so nothing is written into one.
        keepdims: whether they stay, with size 1.
        initial: the value to begin with; None for none.
        where: booleans that say which elements count; None for all.
        promote_integers: whether narrow integers widen.

    Returns:
        An array without the axes; 1 of no elements.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given; `where` is not an
            array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.prod(xnp.array([[3, 1], [2, 4]]), axis=1)
        Array([3, 8], dtype=int32)
    """
    no_out("prod", out)
    if where is not None:
        a = _with_where("prod", array_of(a, "prod"), where, 1)
    axes, dtype = static_axis(axis, "prod"), check_requested(dtype, "prod")
    if initial is None:
        return _prod(a, axes, dtype, keepdims, promote_integers)
    return _join("prod", "mul", _prod, a, (axes, dtype, keepdims, promote_integers), initial)


def _join(
    operation: str, primitive: str, total: Callable[..., Array], a: Any,
    arguments: tuple[Any, ...], initial: Any,
) -> Array:  # fmt: skip
    """Join a total with an initial value; floats of fewer than 32 bits are rounded after that."""
    axes, dtype, *rest = arguments
    a = array_of(a, operation)
    start = _start(as_array_like(initial, a, operation), operation)
    kind = a.aval.dtype if dtype is None else dtype
    is_narrow = computation_dtype(kind) != kind
    if is_narrow:
        a, dtype = wide(a if dtype is None else cast(a, dtype)), None
    result = total(a, axes, dtype, *rest)
    result = bind(primitive, result, cast(start, result.aval.dtype))
    return cast(result, kind) if is_narrow else result


# --- max and min ----------------------------------------------------------------------------------


def _extremum(primitive: str, operation: str) -> Callable[..., Array]:
    @dispatch_on(1)
    def reduce(a: Any, axis: Any, keepdims: bool, may_be_empty: bool) -> Array:
        a = array_of(a, operation)
        axes = dims_and_names(axis, a.aval.ndim, operation)
        if not may_be_empty and 0 in [a.aval.shape[d] for d in axes if type(d) is not str]:
            raise ValueError(message(
                operation, f"zero-size array to reduction operation {operation} which has no "
                "identity.",
                got=f"{a.aval.str_long()} over axes {axes}",
                hint="give initial= a value to start from",
            ))  # fmt: skip
        return keep_dims(bind_reduction(primitive, a, axes), a.aval.shape, axes, keepdims)

    return reduce


_max, _min = _extremum("reduce_max", "max"), _extremum("reduce_min", "min")


def _extreme(which: str, a: Any, axis: Any, keepdims: Any, initial: Any, where: Any) -> Array:
    if initial is not None:
        _start(initial, which)
    if where is not None:
        if initial is None:
            raise ValueError(
                f"{which}: reduction operation {which} does not have an identity, so to use a "
                "where mask one has to specify 'initial'."
            )
        a, mask = array_of(a, which), mask_of(where, which)
        start = _as_initial(initial, a, which)
        a, mask = broadcast_all(which, a, mask)
        a = select(mask, a, start)
    front, primitive = (_max, "max") if which == "max" else (_min, "min")
    result = front(a, static_axis(axis, which), keepdims, initial is not None)
    if initial is None:
        return result
    return bind(primitive, *broadcast(which, result, _as_initial(initial, result, which)))


def _as_initial(initial: Any, a: Array, operation: str) -> Array:
    """Return what a reduction starts from in the dtype of the elements, which is the result's."""
    if type(initial) is int:
        return scalar_array(initial, a.aval.dtype)  # or raise
    return cast(array_of(initial, operation), a.aval.dtype)


def max(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the greatest element over axes; NaN if one is.

    A mask `where` may have more dimensions than the array, or longer ones, which NumPy refuses.

    Args:
      a: an array; without `initial` the axes must not be empty.
      axis: the axes to reduce; None for all.
      out: not supported, must be None.
      keepdims: whether reduced axes stay with size 1.
      initial: a number that the result is not below.
      where: a mask of the elements to take; needs `initial`.

    Returns:
      An array of the dtype of `a` without the reduced axes (with `keepdims`, of size 1 in them).

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.max(xnp.array([[1, 5], [7, 2]]), axis=0)
      Array([7, 5], dtype=int32)
    """
    no_out("max", out)
    return _extreme("max", a, axis, keepdims, initial, where)


def min(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the least element over axes; NaN if one is. Arguments as of `max`.

    A mask `where` may have more dimensions than the array, or longer ones, which NumPy refuses.

    Args:
        a: an array.
        axis: the axis or axes that go away; None for all.
        out: must be None: arrays do not change, so nothing is written into one.
        keepdims: whether they stay, with size 1.
        initial: the value to begin with; None for none.
        where: booleans that say which elements count; None for all.

    Returns:
        An array without the axes, of the dtype of a; NaN where one is. Of no elements
        it is an error without `initial`.

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.min(xnp.array([[3, 1], [2, 4]]), axis=1)
        Array([1, 2], dtype=int32)
    """
    no_out("min", out)
    return _extreme("min", a, axis, keepdims, initial, where)


amax, amin = max, min


def minmax(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    where: ArrayLike | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the least and the greatest element over axes.

    The arguments are those of `max`; `initial` may be a pair, for the least and for the greatest.

    Args:
      a: an array; without `initial` the axes must not be empty.
      axis: the axes to reduce; None for all.
      out: not supported, must be None.
      keepdims: whether reduced axes stay with size 1.
      initial: a number, or a pair, that the results are not above and not below.
      where: a mask of the elements to take; needs `initial`.

    Returns:
      A pair of arrays of the dtype of `a` without the reduced axes.

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> [int(v) for v in xnp.minmax(xnp.array([3, 1, 2]))]
      [1, 3]
    """
    no_out("minmax", out)
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    return (
        _extreme("min", a, axis, keepdims, low, where),
        _extreme("max", a, axis, keepdims, high, where),
    )


def _ptp(a: Any, axis: Any, keepdims: bool) -> Array:
    return bind("sub", max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the difference of the greatest and the least element over axes.

    Args:
        a: an array.
        axis: the axis or axes that go away; None for all.
        out: must be None: arrays do not change, so nothing is written into one.
        keepdims: whether they stay, with size 1.

    Returns:
        An array without the axes, of the dtype of a.

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.ptp(xnp.array([[1, 5], [2, 3]]), axis=1)
        Array([4, 1], dtype=int32)
    """
    no_out("ptp", out)
    return _ptp(a, static_axis(axis, "ptp"), keepdims)


# --- all and any ----------------------------------------------------------------------------------


def _truth(primitive: str, operation: str) -> Callable[..., Array]:
    @dispatch_on(1)
    def reduce(a: Any, axis: Any, keepdims: bool) -> Array:
        a = cast(array_of(a, operation), dtypes.bool_)
        axes = dims_and_names(axis, a.aval.ndim, operation)
        return keep_dims(bind_reduction(primitive, a, axes), a.aval.shape, axes, keepdims)

    return reduce


_all, _any = _truth("reduce_and", "all"), _truth("reduce_or", "any")


def all(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
    where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return whether all elements over axes are true (not zero); True for none.

    A mask `where` may have more dimensions than the array, or longer ones, which NumPy refuses.

    Args:
        a: an array.
        axis: the axis or axes that go away; None for all.
        out: must be None: arrays do not change, so nothing is written into one.
        keepdims: whether they stay, with size 1.
        where: booleans that say which elements count; None for all.

    Returns:
        A boolean array without the axes; of no elements `all` is True and `any` False.

    Raises:
        TypeError: `a` is not an array; `out` is given; `where` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.all(xnp.array([[1, 0], [2, 3]]), axis=1)
        Array([False,  True], dtype=bool)
    """
    no_out("all", out)
    if where is not None:
        a = _with_where("all", cast(array_of(a, "all"), dtypes.bool_), where, True)
    return _all(a, static_axis(axis, "all"), keepdims)


def any(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
    where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return whether an element over axes is true (not zero); False for none.

    A mask `where` may have more dimensions than the array, or longer ones, which NumPy refuses.

    Args:
        a: an array.
        axis: the axis or axes that go away; None for all.
        out: must be None: arrays do not change, so nothing is written into one.
        keepdims: whether they stay, with size 1.
        where: booleans that say which elements count; None for all.

    Returns:
        A boolean array without the axes; of no elements `all` is True and `any` False.

    Raises:
        TypeError: `a` is not an array; `out` is given; `where` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.any(xnp.array([[0, 0], [2, 3]]), axis=1)
        Array([False,  True], dtype=bool)
    """
    no_out("any", out)
    if where is not None:
        a = _with_where("any", cast(array_of(a, "any"), dtypes.bool_), where, False)
    return _any(a, static_axis(axis, "any"), keepdims)


@dispatch_on(1)
def _count_nonzero(a: Any, axis: Any, keepdims: bool) -> Array:
    truth = cast(array_of(a, "count_nonzero"), dtypes.bool_)
    return _sum(truth, axis, dtypes.python_scalar_dtype(int), keepdims, True)


def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return how many elements over axes are not zero.

    Args:
        a: an array.
        axis: the axis or axes that go away; None for all.
        keepdims: whether they stay, with size 1.

    Returns:
        An int32 array without the axes.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.count_nonzero(xnp.array([[3, 0], [2, 4]]), axis=1)
        Array([1, 2], dtype=int32)
    """
    if axis is None and not keepdims and type(a) is ConcreteArray and a.dtype == dtypes.bool_:
        hosts = elements_now(a)
        if hosts is not None:
            return scalar_array(np.count_nonzero(hosts[0]), dtypes.python_scalar_dtype(int))
    return _count_nonzero(a, static_axis(axis, "count_nonzero"), keepdims)


# --- positions ------------------------------------------------------------------------------------


def _position(primitive: str, operation: str) -> Callable[..., Array]:
    @dispatch_on(1)
    def find(a: Any, axis: Any, keepdims: bool) -> Array:
        a = array_of(a, operation)
        shape = a.aval.shape
        if axis is None:
            a, dim = reshape(a, (a.aval.size,)), 0
        else:
            dim = axis_of(axis, a.aval.ndim, operation)
        if not a.aval.shape[dim]:
            raise ValueError(f"{operation}: attempt to get {operation} of an empty sequence.")
        index_dtype = dtypes.python_scalar_dtype(int)
        result = bind(primitive, a, axes=(dim,), index_dtype=index_dtype)
        axes = tuple(range(len(shape))) if axis is None else (dim,)
        return keep_dims(result, shape, axes, keepdims)

    return find


_argmax, _argmin = _position("argmax", "argmax"), _position("argmin", "argmin")


def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the position of the first greatest element along an axis; that of a NaN if there is.

    Complex numbers have no order and raise an error; NumPy compares real parts first.

    Args:
      a: an array.
      axis: the axis; None counts in the flattened array.
      out: not supported, must be None.
      keepdims: whether the reduced axis stays with size 1; None for no.

    Returns:
      An array of the default integer dtype (int32, where NumPy has int64) without the axis.

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.argmax(xnp.array([3, 9, 9]))
      Array(1, dtype=int32)
    """
    no_out("argmax", out)
    return _argmax(a, static_axis(axis, "argmax"), bool(keepdims))


def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the position of the first least element along an axis; that of a NaN if there is.

    Complex numbers have no order and raise an error; NumPy compares real parts first.

    Args:
        a: an array.
        axis: the axis that goes away; None for the position in `a.ravel()`.
        out: must be None: arrays do not change, so nothing is written into one.
        keepdims: whether they stay, with size 1.

    Returns:
        An int32 array of positions without the axis; the first of equals and of NaNs.

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.argmin(xnp.array([[3, 1], [2, 4]]), axis=1)
        Array([1, 0], dtype=int32)
    """
    no_out("argmin", out)
    return _argmin(a, static_axis(axis, "argmin"), bool(keepdims))


# -------------------------------------------------------------------------------------- averages
# Averages over axes: mean, var, std, average.
#
# Those of integers are taken in float32; those of 16-bit floats are computed in float32 and
# rounded once. The variance goes over the elements twice: their mean first, then the distances
# from it.


def _count(shape: Any, axes: Any) -> int:
    return math.prod([axis_size(d) if type(d) is str else shape[d] for d in axes])


@dispatch_on(1)
def _mean(a: Any, axis: Any, dtype: Any, keepdims: bool) -> Array:
    a = cast(array_of(a, "mean"), dtype) if dtype is not None else inexact("mean", a)[0]
    axes, aval = dims_and_names(axis, a.aval.ndim, "mean"), a.aval
    total = keep_dims(bind_reduction("reduce_sum", wide(a), axes), aval.shape, axes, keepdims)
    if not dtypes.is_inexact(aval.dtype):
        total = inexact("mean", total)[0]
    mean = bind("div", total, scalar_like(total, _count(aval.shape, axes)))
    return convert_to(mean, aval.dtype, aval.weak_type)


def mean(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None,
    keepdims: bool = False, *, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the mean over axes; NaN for no elements.

    Args:
      a: an array.
      axis: the axes to average over; None for all.
      dtype: of the result; None for that of `a`, float32 for integers.
      out: not supported, must be None.
      keepdims: whether reduced axes stay with size 1.
      where: a mask of the elements to take.

    Returns:
      An array without the reduced axes (with `keepdims`, of size 1 in them), floating: of integers
      it is float32, where NumPy has float64.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given; `where` is not an
            array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.mean(xnp.array([[1., 2.], [3., 4.]]), axis=1)
      Array([1.5, 3.5], dtype=float32)
    """
    no_out("mean", out)
    dtype, axis = check_requested(dtype, "mean"), static_axis(axis, "mean")
    if where is None:
        return _mean(a, axis, dtype, keepdims)
    (a,) = inexact("mean", a)
    total = sum(wide(a), axis, dtype, keepdims=keepdims, where=where)
    mean = bind("div", total, _subtract_mean(a, axis, keepdims, where, total.aval.dtype))
    return mean if dtype is not None else convert_to(mean, a.aval.dtype, a.aval.weak_type)


def _center(a: Array, axis: Any, where: Any) -> Array:
    return mean(a, axis, keepdims=True, where=where)


def _subtract_mean(a: Any, axis: Any, keepdims: bool, where: Any, dtype: Any) -> Array:
    mask = broadcast_to(mask_of(where, "mean"), a.aval.shape)
    return sum(mask, axis, dtype, keepdims=keepdims)


def _divisor(count: Any, total: Any) -> Any:
    """Return the number of elements that a sum is divided by; NaN where there are none."""
    if isinstance(count, SymbolicSize):
        return scalar_like(total, count)
    return scalar_like(total, float(count) if count > 0 else float("nan"))


@dispatch_on(1)
def _var(
    a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, root: bool, is_staged: bool
) -> Array:
    (a,) = inexact("var", a)
    aval = a.aval
    axes = dims_and_names(axis, aval.ndim, "var")
    steps = computation_dtype(aval.dtype if dtype is None else dtype)
    if not dtypes.is_complex(aval.dtype) or dtypes.is_complex(steps):
        a = convert_to(a, steps, aval.weak_type)
    center = _mean(a, axes, None, True)
    if is_staged and not dtypes.is_complex(a.aval.dtype):
        operands = broadcast_all("var", a, center)
        (squares,) = _bind_squares(*operands)
    else:
        squares = square_distance(a, center)
    total = keep_dims(bind_reduction("reduce_sum", squares, axes), aval.shape, axes, keepdims)
    count = _count(aval.shape, axes) - ddof
    result = bind("div", total, _divisor(count, total))
    if root:
        result = bind("sqrt", result)
    return _in_result_dtype(result, aval, dtype)


# The sum of the squared distances from the mean does not depend on the mean, to first order:
# d sum (x - m)^2 = 2 sum (x - m) x_dot - 2 m_dot sum (x - m), and the last sum is 0. So programs
# leave it out: a sum over all elements less in each backward pass. The distances in what is left
# have the mean's derivative, so the second derivatives are right. Eager functions have kernels that
# a call inside would slow.


def _bind_squares(x: Any, center: Any) -> Any:
    call = get_primitive("custom_jvp_call")  # by its name: few imports of this module need it
    return call.bind(x, center, call=_squares, jvp=_squares_jvp)


def _squares(x: Any, center: Any) -> tuple[Any, ...]:
    return (bind("integer_pow", bind("sub", x, center), y=2),)


def _squares_jvp(primals: Any, tangents: Any) -> Any:
    outs = _bind_squares(*primals)
    if type(tangents[0]) is Zero:
        return outs, (Zero(outs[0].aval.to_tangent_aval()),)
    distance = bind("sub", *primals)
    return outs, (bind("mul", tangents[0], bind("add", distance, distance)),)


def _in_result_dtype(x: Any, aval: Any, dtype: Any) -> Array:
    if dtype is None:
        real = dtypes.to_floating_dtype(aval.dtype)
        return convert_to(x, real, aval.weak_type)
    return cast(x, dtype)


def square_distance(a: Any, center: Any) -> Array:
    """Return |a - center|^2, real."""
    centered = bind("sub", *broadcast_all("var", a, center))
    if not dtypes.is_complex(a.aval.dtype):
        return bind("integer_pow", centered, y=2)
    re, im = bind("real", centered), bind("imag", centered)
    return bind("add", bind("mul", re, re), bind("mul", im, im))


def _measure_spread(
    operation: str, a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: bool, where: Any,
    mean: Any, correction: Any, root: bool,
) -> Array:  # fmt: skip
    no_out(operation, out)
    if correction is not None:
        if ddof:
            raise ValueError(
                f"{operation}: give ddof or correction, which mean the same, not both."
            )
        ddof = correction
    dtype, axis = check_requested(dtype, operation), static_axis(axis, operation)
    if dtype is not None and not dtypes.is_inexact(dtype):
        raise ValueError(f"{operation}: the dtype must hold fractions, got {dtype.name}.")
    traced = isinstance(ddof, Tracer) and ddof.concrete() is None
    if where is None and mean is None and not traced:
        is_staged = state.trace.keeps_sources
        return _var(a, axis, dtype, ddof, keepdims, root, is_staged)
    (a,) = inexact(operation, a)
    aval, a = a.aval, wide(a)
    center = _center(a, axis, where) if mean is None else wide(array_of(mean, operation))
    squares = square_distance(*promote(operation, a, center))
    total = sum(squares, axis, keepdims=keepdims, where=where)
    count = _subtract_mean(a, axis, keepdims, True if where is None else where, total.aval.dtype)
    result = bind("div", total, bind("sub", count, cast(as_array(ddof), count.aval.dtype)))
    return _in_result_dtype(bind("sqrt", result) if root else result, aval, dtype)


def var(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, ddof: float = 0,
    keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the variance over axes: the mean of `|a - mean(a)|^2`.

    Args:
        a: an array.
        axis: the axes to reduce; None for all.
        dtype: of the result; None for the real dtype of `a`, float32 for integers.
        out: not supported, must be None.
        ddof: what is taken from the number of elements in the divisor; NaN where none
            are left.
        keepdims: whether reduced axes stay with size 1.
        where: a mask of the elements to take.
        mean: the mean, if it is known already, with its axes kept.
        correction: another name of `ddof`.

    Returns:
      A real array without the reduced axes (with `keepdims`, of size 1 in them): of integers it is
      float32, where NumPy has float64.

    Accuracy: the root of `var(x + c)` is that of `var(x)` to 8 epsilons of c (of float32 for 16-bit
    floats), beside what the sums `x + c` are rounded.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given; `where` is not an
            array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.var(xnp.array([1., 2., 3., 4.]), ddof=1).round(3)
      Array(1.667, dtype=float32)
    """
    return _measure_spread("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction,
                           False)  # fmt: skip


def std(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, ddof: float = 0,
    keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the standard deviation over axes, the root of `var`.

    Args:
        a: an array.
        axis: the axes to reduce; None for all.
        dtype: of the result; None for the real dtype of `a`, float32 for integers.
        out: not supported, must be None.
        ddof: what is taken from the number of elements in the divisor; NaN where none
            are left.
        keepdims: whether reduced axes stay with size 1.
        where: a mask of the elements to take.
        mean: the mean, if it is known already, with its axes kept.
        correction: another name of `ddof`.

    Returns:
      As of `var`. Its derivative is NaN where all elements are equal.

    Accuracy: `std(x + c)` is `std(x)` to 8 epsilons of c, as of `var`.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given; `where` is not an
            array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.std(xnp.array([1., 2., 3., 4.])).round(3)
      Array(1.118, dtype=float32)
    """
    return _measure_spread("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction,
                           True)  # fmt: skip


@overload
def average(
    a: ArrayLike, axis: Axis = ..., weights: ArrayLike | None = ..., returned: Literal[False] = ...,
    keepdims: bool = ...,
) -> Array: ...  # fmt: skip
@overload
def average(
    a: ArrayLike, axis: Axis = ..., weights: ArrayLike | None = ..., returned: Literal[True] = ...,
    keepdims: bool = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def average(
    a: ArrayLike, axis: Axis = ..., weights: ArrayLike | None = ..., returned: bool = ...,
    keepdims: bool = ...,
) -> Array | tuple[Array, Array]: ...  # fmt: skip
def average(
    a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:  # fmt: skip
    """Return the weighted mean over axes.

    Args:
      a: an array.
      axis: the axes to average over; None for all.
      weights: of the shape of `a`, or of its shape in the axes; None weighs all alike.
      returned: whether to return the sum of weights as well.
      keepdims: whether reduced axes stay with size 1.

    Returns:
      An array without the reduced axes, floating, or a pair with the sum of weights in its shape.
      Where the weights sum to 0 it is NaN or infinite, and nothing is raised as NumPy does.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.average(xnp.array([1., 2., 3.]), weights=xnp.array([1, 0, 3]))
      Array(2.5, dtype=float32)
    """
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        aval = array_of(a, "average").aval
        count = _count(aval.shape, axes_of(static_axis(axis, "average"), aval.ndim, "average"))
        return (result, fill(result.aval.shape, count, result.aval.dtype)) if returned else result
    a, weights = inexact("average", a, weights)
    axes = axes_of(static_axis(axis, "average"), a.aval.ndim, "average")
    if weights.aval.shape != a.aval.shape:
        expected = tuple([a.aval.shape[d] for d in axes])
        if weights.aval.shape != expected:
            raise ValueError(message(
                "average", "the weights must have the shape of the array, or of its axes.",
                got=f"a: {a.aval.str_long()}, weights: {weights.aval.str_long()}",
            ))  # fmt: skip
        order = sorted(range(len(axes)), key=axes.__getitem__)
        weights = bind("transpose", weights, permutation=tuple(order))
        weights = bind("broadcast_in_dim", weights, shape=a.aval.shape,
                       broadcast_dimensions=tuple(sorted(axes)))  # fmt: skip
    aval = a.aval
    a, weights = wide(a), wide(weights)
    total = sum(weights, axes, keepdims=keepdims)
    result = bind("div", sum(bind("mul", a, weights), axes, keepdims=keepdims), total)
    result, total = [convert_to(v, aval.dtype, aval.weak_type) for v in (result, total)]
    return (result, total) if returned else result


def weights_of_observations(fweights: Any, aweights: Any, count: int) -> Any:
    """Return the products of the weights that `cov` is given, or None."""
    result = None
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if w is not None:
            w = array_of(w, "cov")
            if w.aval.shape != (count,):
                raise ValueError(f"cov: {name} must be of shape {(count,)}, got {w.aval.shape}.")
            if name == "fweights" and dtypes.is_inexact(w.aval.dtype):
                raise TypeError(f"cov: fweights are counts, integers, got {w.aval.dtype.name}.")
            result = w if result is None else result * w
    return result


# -------------------------------------------------------------------------------- running totals
# Sums and products of all elements up to each: cumsum, cumprod and their newer forms.
#
# Dtypes are chosen as by `reductions`.


def _running(primitive: str, operation: str) -> Callable[..., Array]:
    @dispatch_on(1)
    def accumulate(a: Any, axis: Any, dtype: Any, promotes: bool) -> Array:
        a, dim = along_axis(array_of(a, operation), axis, operation)
        if dtype is not None:
            a = cast(a, dtype)
            if dtypes.is_bool(a.aval.dtype):  # of counts: whether any (sum) or all (prod) hold
                counts = cast(a, dtypes.python_scalar_dtype(int))
                return cast(bind(primitive, counts, axis=dim, reverse=False), dtypes.bool_)
        elif dtypes.is_bool(a.aval.dtype) or promotes:
            a = convert_to(a, accumulation_dtype(a.aval.dtype), a.aval.weak_type)
        return bind(primitive, a, axis=dim, reverse=False)

    return accumulate


_cumsum, _cumprod = _running("cumsum", "cumsum"), _running("cumprod", "cumprod")


def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """Return the sums of all elements up to each along an axis; None runs over all, flattened.

    Small integers keep their dtype and wrap around, where NumPy widens them to 64 bits.

    Args:
        a: an array.
        axis: the axis to go along; None for `a.ravel()`.
        dtype: of the result; None for that of the elements, int32 for booleans.
        out: must be None: arrays do not change, so nothing is written into one.

    Returns:
        An array of the shape of a (of one axis without `axis`).

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.cumsum(xnp.array([1, 2, 3]))
        Array([1, 3, 6], dtype=int32)
    """
    no_out("cumsum", out)
    return _cumsum(a, static_axis(axis, "cumsum"), check_requested(dtype, "cumsum"), False)


def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """Return the products of all elements up to each along an axis; None runs over all.

    Small integers keep their dtype and wrap around, where NumPy widens them to 64 bits.

    Args:
        a: an array.
        axis: the axis to go along; None for `a.ravel()`.
        dtype: of the result; None for that of the elements, int32 for booleans.
        out: must be None: arrays do not change, so nothing is written into one.

    Returns:
        An array of the shape of a (of one axis without `axis`).

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.cumprod(xnp.array([1, 2, 3]))
        Array([1, 2, 6], dtype=int32)
    """
    no_out("cumprod", out)
    return _cumprod(a, static_axis(axis, "cumprod"), check_requested(dtype, "cumprod"), False)


def _cumulative(
    front: Callable[..., Array], x: Any, axis: Any, dtype: Any, include_initial: bool, one: int
) -> Array:
    x = array_of(x, "cumulative_sum")
    if axis is None:
        if not x.aval.ndim:
            raise ValueError("cumulative_sum: The input must be non-scalar to take a sum along it.")
        if x.aval.ndim != 1:
            raise ValueError(
                f"cumulative_sum: The input array has rank {x.aval.ndim}, however axis was not set "
                "to an explicit value."
            )
        axis = 0
    axis = axis_of(axis, x.aval.ndim, "cumulative_sum")
    result = front(x, axis, check_requested(dtype, "cumulative_sum"), True)
    if not include_initial:
        return result
    shape = tuple([1 if d == axis else n for d, n in enumerate(x.aval.shape)])
    first = fill(shape, one, result.aval.dtype)
    return bind("concatenate", first, result, dimension=axis)


def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike = None,
    include_initial: bool = False,
) -> Array:  # fmt: skip
    """Return the sums of all elements up to each along an axis, with a 0 in front if requested.

    NumPy's takes `out` as well.

    Args:
        x: an array.
        axis: the axis to go along; may be left out where there is one.
        dtype: of the result; None for that of the elements, int32 for booleans.
        include_initial: whether 0 (of products 1) stands first.

    Returns:
        An array of the shape of x, one longer along the axis with `include_initial`.

    Raises:
        TypeError: `x` is not an array; `dtype` names no dtype.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.cumulative_sum(xnp.array([1, 2, 3]), include_initial=True)
        Array([0, 1, 3, 6], dtype=int32)
    """
    return _cumulative(_cumsum, x, axis, dtype, include_initial, 0)


def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike = None,
    include_initial: bool = False,
) -> Array:  # fmt: skip
    """Return the products of all elements up to each along an axis, with a 1 in front if requested.

    NumPy's takes `out` as well.

    Args:
        x: an array.
        axis: the axis to go along; may be left out where there is one.
        dtype: of the result; None for that of the elements, int32 for booleans.
        include_initial: whether 0 (of products 1) stands first.

    Returns:
        An array of the shape of x, one longer along the axis with `include_initial`.

    Raises:
        TypeError: `x` is not an array; `dtype` names no dtype.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.cumulative_prod(xnp.array([1, 2, 3]), include_initial=True)
        Array([1, 1, 2, 6], dtype=int32)
    """
    return _cumulative(_cumprod, x, axis, dtype, include_initial, 1)


boundaries(globals(), written=True)
