"""Reductions over axes: sum, prod, max, min, mean, var, std, all, any, argmax, cumsum, ...

Each takes `axis` (an int, a tuple, or None for all), `keepdims`, and where NumPy has them `dtype`,
`initial` and `where`. Sums and products of integers of fewer than 32 bits (and of booleans) are
taken in the default integer dtype; means of integers in float32; those of 16-bit floats are
computed in float32 and rounded once.
Neighbours: `nan_reductions` for those that skip NaN, `statistics` for quantiles and histograms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xnp.numpy.dispatch import planned
from xnp.numpy.indexing import no_out
from xnp.numpy.promoting import (
    array_of,
    axes_of,
    axis_of,
    bind,
    broadcast,
    broadcast_all,
    cast,
    converted,
    filled,
    inexact,
    promoted,
    reshaped,
    scalar_like,
    select,
    spread,
)
from xprim import Array, dtypes

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod",
    "cumsum", "cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "ptp", "std",
    "sum", "var",
]  # fmt: skip

Axis = int | tuple[int, ...] | None


def _static_axis(axis: Any) -> Any:
    return tuple(axis) if type(axis) is list else axis


def _requested(dtype: Any, operation: str) -> Any:
    return None if dtype is None else dtypes.requested_dtype(dtype, operation)


def kept(x: Array, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Array:
    """Put reduced dimensions back with size 1 if they are to be kept."""
    if not keepdims:
        return x
    return reshaped(x, tuple([1 if d in axes else n for d, n in enumerate(shape)]))


def reduced(primitive: str, x: Array, axes: tuple[int, ...]) -> Array:
    """Bind a reduction, or return `x` when there is nothing to reduce."""
    return bind(primitive, x, axes=tuple(sorted(axes))) if axes else x


def _with_where(operation: str, x: Any, where: Any, neutral: Any) -> Array:
    """Put the neutral element where the mask does not hold."""
    (mask,) = [cast(array_of(where, operation), dtypes.bool_)]
    x, mask = broadcast_all(operation, x, mask)
    return select(mask, x, scalar_like(neutral, x))


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


def _accumulate(primitive: str, operation: str) -> Callable[..., Array]:
    @planned(1)
    def written(a: Any, axis: Any, dtype: Any, keepdims: bool, promotes: bool) -> Array:
        a = array_of(a, operation)
        axes = axes_of(axis, a.aval.ndim, operation)
        if dtype is not None:
            a = cast(a, dtype)
        elif promotes or dtypes.is_bool(a.aval.dtype):
            a = converted(a, accumulation_dtype(a.aval.dtype), a.aval.weak_type)
        return kept(reduced(primitive, a, axes), a.aval.shape, axes, keepdims)

    return written


_sum, _prod = _accumulate("reduce_sum", "sum"), _accumulate("reduce_prod", "prod")


def sum(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False,
    initial: Any = None, where: Any = None, promote_integers: bool = True,
) -> Array:  # fmt: skip
    """Return the sum of elements over axes; 0 for none.

    Args:
      a: an array.
      axis: the axes to sum over; None for all.
      dtype: in which to sum; None for that of `a`, at least the default integer dtype.
      out: not supported, must be None.
      keepdims: whether reduced axes stay with size 1.
      initial: a number to start from.
      where: a mask of the elements to take.
      promote_integers: whether small integers are summed in the default integer dtype.

    Example:
      >>> import xnp
      >>> xnp.sum(xnp.array([[1, 2], [3, 4]]), axis=0)
      Array([4, 6], dtype=int32)
    """
    no_out("sum", out)
    if where is not None:
        a = _with_where("sum", array_of(a, "sum"), where, 0)
    result = _sum(a, _static_axis(axis), _requested(dtype, "sum"), keepdims, promote_integers)
    if initial is None:
        return result
    return bind("add", result, cast(array_of(initial, "sum"), result.aval.dtype))


def prod(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False,
    initial: Any = None, where: Any = None, promote_integers: bool = True,
) -> Array:  # fmt: skip
    """Return the product of elements over axes; 1 for none. Arguments as of `sum`."""
    no_out("prod", out)
    if where is not None:
        a = _with_where("prod", array_of(a, "prod"), where, 1)
    result = _prod(a, _static_axis(axis), _requested(dtype, "prod"), keepdims, promote_integers)
    if initial is None:
        return result
    return bind("mul", result, cast(array_of(initial, "prod"), result.aval.dtype))


# --- max and min ----------------------------------------------------------------------------------


def _extremum(primitive: str, operation: str) -> Callable[..., Array]:
    @planned(1)
    def written(a: Any, axis: Any, keepdims: bool, may_be_empty: bool) -> Array:
        a = array_of(a, operation)
        axes = axes_of(axis, a.aval.ndim, operation)
        if not may_be_empty and 0 in [a.aval.shape[d] for d in axes]:
            raise ValueError(
                f"{operation}: there is no {operation} of no elements."
                f"\n  got       {a.aval.str_long()} over axes {axes}"
                "\n  hint      give initial= a value to start from"
            )
        return kept(reduced(primitive, a, axes), a.aval.shape, axes, keepdims)

    return written


_max, _min = _extremum("reduce_max", "max"), _extremum("reduce_min", "min")


def _extreme(which: str, a: Any, axis: Any, keepdims: Any, initial: Any, where: Any) -> Array:
    if where is not None:
        if initial is None:
            raise ValueError(f"{which}: where= needs initial=, the result where nothing is taken.")
        a = array_of(a, which)
        mask = cast(array_of(where, which), dtypes.bool_)
        (a, start), (mask,) = promoted(which, a, initial), [mask]
        a, mask = broadcast_all(which, a, mask)
        a = select(mask, a, start)
    front, primitive = (_max, "max") if which == "max" else (_min, "min")
    result = front(a, _static_axis(axis), keepdims, initial is not None)
    if initial is None:
        return result
    return bind(primitive, *broadcast(which, *promoted(which, result, initial)))


def max(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None,
) -> Array:  # fmt: skip
    """Return the greatest element over axes; NaN if one is.

    Args:
      a: an array; without `initial` the axes must not be empty.
      axis: the axes to reduce; None for all.
      out: not supported, must be None.
      keepdims: whether reduced axes stay with size 1.
      initial: a number that the result is not below.
      where: a mask of the elements to take; needs `initial`.
    """
    no_out("max", out)
    return _extreme("max", a, axis, keepdims, initial, where)


def min(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None,
) -> Array:  # fmt: skip
    """Return the least element over axes; NaN if one is. Arguments as of `max`."""
    no_out("min", out)
    return _extreme("min", a, axis, keepdims, initial, where)


amax, amin = max, min


@planned(1)
def _ptp(a: Any, axis: Any, keepdims: bool) -> Array:
    return bind("sub", max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


def ptp(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the difference of the greatest and the least element over axes."""
    no_out("ptp", out)
    return _ptp(a, _static_axis(axis), keepdims)


# --- all and any ----------------------------------------------------------------------------------


def _truth(primitive: str, operation: str) -> Callable[..., Array]:
    @planned(1)
    def written(a: Any, axis: Any, keepdims: bool) -> Array:
        a = cast(array_of(a, operation), dtypes.bool_)
        axes = axes_of(axis, a.aval.ndim, operation)
        return kept(reduced(primitive, a, axes), a.aval.shape, axes, keepdims)

    return written


_all, _any = _truth("reduce_and", "all"), _truth("reduce_or", "any")


def all(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Array:
    """Return whether all elements over axes are true (not zero); True for none."""
    no_out("all", out)
    if where is not None:
        a = _with_where("all", cast(array_of(a, "all"), dtypes.bool_), where, True)
    return _all(a, _static_axis(axis), keepdims)


def any(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Array:
    """Return whether an element over axes is true (not zero); False for none."""
    no_out("any", out)
    if where is not None:
        a = _with_where("any", cast(array_of(a, "any"), dtypes.bool_), where, False)
    return _any(a, _static_axis(axis), keepdims)


@planned(1)
def _count_nonzero(a: Any, axis: Any, keepdims: bool) -> Array:
    truth = cast(array_of(a, "count_nonzero"), dtypes.bool_)
    return _sum(truth, axis, dtypes.python_scalar_dtype(int), keepdims, True)


def count_nonzero(a: Any, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return how many elements over axes are not zero."""
    return _count_nonzero(a, _static_axis(axis), keepdims)


# --- mean, var, std -------------------------------------------------------------------------------


def computation_dtype(dtype: Any) -> Any:
    """Return the dtype in which averages of an inexact dtype are computed: float32 at least."""
    return dtypes.float32 if dtypes.is_floating(dtype) and dtype.itemsize < 4 else dtype


def _count(shape: Any, axes: Any) -> int:
    return math.prod([shape[d] for d in axes])


@planned(1)
def _mean(a: Any, axis: Any, dtype: Any, keepdims: bool) -> Array:
    a = cast(array_of(a, "mean"), dtype) if dtype is not None else inexact("mean", a)[0]
    axes, aval = axes_of(axis, a.aval.ndim, "mean"), a.aval
    wide = converted(a, computation_dtype(aval.dtype), aval.weak_type)
    total = kept(reduced("reduce_sum", wide, axes), aval.shape, axes, keepdims)
    if not dtypes.is_inexact(aval.dtype):
        total = inexact("mean", total)[0]
    mean = bind("div", total, scalar_like(_count(aval.shape, axes), total))
    return converted(mean, aval.dtype, aval.weak_type)


def mean(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False,
    *, where: Any = None,
) -> Array:  # fmt: skip
    """Return the mean over axes; NaN for no elements.

    Args:
      a: an array.
      axis: the axes to average over; None for all.
      dtype: of the result; None for that of `a`, float32 for integers.
      out: not supported, must be None.
      keepdims: whether reduced axes stay with size 1.
      where: a mask of the elements to take.

    Example:
      >>> import xnp
      >>> xnp.mean(xnp.array([[1., 2.], [3., 4.]]), axis=1)
      Array([1.5, 3.5], dtype=float32)
    """
    no_out("mean", out)
    dtype, axis = _requested(dtype, "mean"), _static_axis(axis)
    if where is None:
        return _mean(a, axis, dtype, keepdims)
    (a,) = inexact("mean", a)
    total = sum(a, axis, dtype, keepdims=keepdims, where=where)
    return bind("div", total, _taken(a, axis, keepdims, where, total.aval.dtype))


def _taken(a: Any, axis: Any, keepdims: bool, where: Any, dtype: Any) -> Array:
    mask = spread(cast(array_of(where, "where"), dtypes.bool_), a.aval.shape)
    return sum(mask, axis, dtype, keepdims=keepdims)


@planned(1)
def _var(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, root: bool) -> Array:
    (a,) = inexact("var", a)
    aval = a.aval
    axes = axes_of(axis, aval.ndim, "var")
    wide = computation_dtype(aval.dtype if dtype is None else dtype)
    if not dtypes.is_complex(aval.dtype) or dtypes.is_complex(wide):
        a = converted(a, wide, aval.weak_type)
    squares = squared_distance(a, _mean(a, axes, None, True))
    total = kept(reduced("reduce_sum", squares, axes), aval.shape, axes, keepdims)
    count = _count(aval.shape, axes) - ddof
    result = bind("div", total, scalar_like(float(count) if count > 0 else float("nan"), total))
    if root:
        result = bind("sqrt", result)
    return _in_result_dtype(result, aval, dtype)


def _in_result_dtype(x: Any, aval: Any, dtype: Any) -> Array:
    if dtype is None:
        real = dtypes.to_floating_dtype(aval.dtype)
        return converted(x, real, aval.weak_type)
    return cast(x, dtype)


def squared_distance(a: Any, center: Any) -> Array:
    """Return |a - center|^2, real."""
    centered = bind("sub", *broadcast_all("var", a, center))
    if not dtypes.is_complex(a.aval.dtype):
        return bind("integer_pow", centered, y=2)
    re, im = bind("real", centered), bind("imag", centered)
    return bind("add", bind("mul", re, re), bind("mul", im, im))


def _spread_measure(
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
    dtype, axis = _requested(dtype, operation), _static_axis(axis)
    if where is None and mean is None:
        return _var(a, axis, dtype, ddof, keepdims, root)
    (a,) = inexact(operation, a)
    center = globals()["mean"](a, axis, keepdims=True, where=where) if mean is None else mean
    squares = squared_distance(a, *promoted(operation, center))
    total = sum(squares, axis, keepdims=keepdims, where=where)
    count = _taken(a, axis, keepdims, True if where is None else where, total.aval.dtype)
    result = bind("div", total, bind("sub", count, scalar_like(ddof, count)))
    return _in_result_dtype(bind("sqrt", result) if root else result, a.aval, dtype)


def var(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, ddof: float = 0,
    keepdims: bool = False, *, where: Any = None, mean: Any = None, correction: Any = None,
) -> Array:  # fmt: skip
    """Return the variance over axes: the mean of `|a - mean(a)|^2`.

    Args:
      a: an array.
      axis: the axes to reduce; None for all.
      dtype: of the result; None for the real dtype of `a`, float32 for integers.
      out: not supported, must be None.
      ddof: what is taken from the number of elements in the divisor; NaN where none are left.
      keepdims: whether reduced axes stay with size 1.
      where: a mask of the elements to take.
      mean: the mean, if it is known already, with its axes kept.
      correction: another name of `ddof`.
    """
    return _spread_measure("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction,
                           False)  # fmt: skip


def std(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, ddof: float = 0,
    keepdims: bool = False, *, where: Any = None, mean: Any = None, correction: Any = None,
) -> Array:  # fmt: skip
    """Return the standard deviation over axes, the root of `var`. Arguments as of `var`."""
    return _spread_measure("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction,
                           True)  # fmt: skip


def average(
    a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """Return the weighted mean over axes.

    Args:
      a: an array.
      axis: the axes to average over; None for all.
      weights: of the shape of `a`, or of its shape in the axes; None weighs all alike.
      returned: whether to return the sum of weights as well.
      keepdims: whether reduced axes stay with size 1.
    """
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        aval = array_of(a, "average").aval
        count = _count(aval.shape, axes_of(_static_axis(axis), aval.ndim, "average"))
        return (result, filled(count, result.aval.shape, result.aval.dtype)) if returned else result
    a, weights = inexact("average", a, weights)
    axes = axes_of(_static_axis(axis), a.aval.ndim, "average")
    if weights.aval.shape != a.aval.shape:
        expected = tuple([a.aval.shape[d] for d in axes])
        if weights.aval.shape != expected:
            raise ValueError(
                "average: the weights must have the shape of the array, or of its axes."
                f"\n  got       a: {a.aval.str_long()}, weights: {weights.aval.str_long()}"
            )
        weights = bind("broadcast_in_dim", weights, shape=a.aval.shape, broadcast_dimensions=axes)
    total = sum(weights, axes, keepdims=keepdims)
    result = bind("div", sum(bind("mul", a, weights), axes, keepdims=keepdims), total)
    return (result, total) if returned else result


# --- positions ------------------------------------------------------------------------------------


def _position(primitive: str, operation: str) -> Callable[..., Array]:
    @planned(1)
    def written(a: Any, axis: Any, keepdims: bool) -> Array:
        a = array_of(a, operation)
        shape = a.aval.shape
        if axis is None:
            a, dim = reshaped(a, (a.aval.size,)), 0
        else:
            dim = axis_of(axis, a.aval.ndim, operation)
        if not a.aval.shape[dim]:
            raise ValueError(f"{operation}: there is no {operation} of no elements.")
        index_dtype = dtypes.python_scalar_dtype(int)
        result = bind(primitive, a, axes=(dim,), index_dtype=index_dtype)
        axes = tuple(range(len(shape))) if axis is None else (dim,)
        return kept(result, shape, axes, keepdims)

    return written


_argmax, _argmin = _position("argmax", "argmax"), _position("argmin", "argmin")


def argmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the position of the first greatest element along an axis; that of a NaN if there is.

    Args:
      a: an array.
      axis: the axis; None counts in the flattened array.
      out: not supported, must be None.
      keepdims: whether the reduced axis stays with size 1.
    """
    no_out("argmax", out)
    return _argmax(a, axis, keepdims)


def argmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the position of the first least element along an axis; that of a NaN if there is."""
    no_out("argmin", out)
    return _argmin(a, axis, keepdims)


# --- running totals -------------------------------------------------------------------------------


def _running(primitive: str, operation: str) -> Callable[..., Array]:
    @planned(1)
    def written(a: Any, axis: Any, dtype: Any, promotes: bool) -> Array:
        a = array_of(a, operation)
        if axis is None:
            a, dim = reshaped(a, (a.aval.size,)), 0
        else:
            dim = axis_of(axis, a.aval.ndim, operation)
        if dtype is not None:
            a = cast(a, dtype)
        elif dtypes.is_bool(a.aval.dtype) or promotes:
            a = converted(a, accumulation_dtype(a.aval.dtype), a.aval.weak_type)
        return bind(primitive, a, axis=dim, reverse=False)

    return written


_cumsum, _cumprod = _running("cumsum", "cumsum"), _running("cumprod", "cumprod")


def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Return the sums of all elements up to each along an axis; None runs over all, flattened."""
    no_out("cumsum", out)
    return _cumsum(a, axis, _requested(dtype, "cumsum"), False)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Return the products of all elements up to each along an axis; None runs over all."""
    no_out("cumprod", out)
    return _cumprod(a, axis, _requested(dtype, "cumprod"), False)


def _cumulative(
    front: Callable[..., Array], x: Any, axis: Any, dtype: Any, include_initial: bool, one: int
) -> Array:
    x = array_of(x, "cumulative_sum")
    if axis is None:
        if x.aval.ndim != 1:
            raise ValueError(
                f"cumulative_sum: axis must be given for an array of {x.aval.ndim} dimensions."
            )
        axis = 0
    axis = axis_of(axis, x.aval.ndim, "cumulative_sum")
    result = front(x, axis, _requested(dtype, "cumulative_sum"), True)
    if not include_initial:
        return result
    shape = tuple([1 if d == axis else n for d, n in enumerate(x.aval.shape)])
    first = filled(one, shape, result.aval.dtype)
    return bind("concatenate", first, result, dimension=axis)


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Return the sums of all elements up to each along an axis, with a 0 in front if asked for."""
    return _cumulative(_cumsum, x, axis, dtype, include_initial, 0)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Return the products of all elements up to each along an axis, with a 1 in front if asked."""
    return _cumulative(_cumprod, x, axis, dtype, include_initial, 1)
