"""Averages over axes: mean, var, std, average.

Those of integers are taken in float32; those of 16-bit floats are computed in float32 and rounded
once. The variance goes over the elements twice: their mean first, then the distances from it.
Neighbours: `reductions` for sums, `nan_reductions` for averages that skip NaN.
"""

from __future__ import annotations

import math
from typing import Any, Literal, overload

from xnp.docstrings import complete
from xnp.docstrings.statistics import AVERAGES
from xnp.numpy.dispatch import dispatched
from xnp.numpy.indexing import no_out
from xnp.numpy.promoting import (
    array_of,
    axes_of,
    bind,
    broadcast_all,
    broadcasted,
    cast,
    computation_dtype,
    converted,
    filled,
    inexact,
    promoted,
    scalar_like,
    wide,
)
from xnp.numpy.reductions import (
    kept,
    mask_of,
    reduced,
    requested,
    static_axis,
    sum as summed,
)
from xprim import Array, Tracer, as_array, dtypes
from xprim.errors import message
from xprim.sizes import SymbolicSize
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Axis, DTypeLike

__all__ = ["average", "mean", "std", "var"]

__dir__ = __all__.copy


def _count(shape: Any, axes: Any) -> int:
    return math.prod([shape[d] for d in axes])


@dispatched(1)
def _mean(a: Any, axis: Any, dtype: Any, keepdims: bool) -> Array:
    a = cast(array_of(a, "mean"), dtype) if dtype is not None else inexact("mean", a)[0]
    axes, aval = axes_of(axis, a.aval.ndim, "mean"), a.aval
    total = kept(reduced("reduce_sum", wide(a), axes), aval.shape, axes, keepdims)
    if not dtypes.is_inexact(aval.dtype):
        total = inexact("mean", total)[0]
    mean = bind("div", total, scalar_like(total, _count(aval.shape, axes)))
    return converted(mean, aval.dtype, aval.weak_type)


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

    Example:
      >>> import xnp
      >>> xnp.mean(xnp.array([[1., 2.], [3., 4.]]), axis=1)
      Array([1.5, 3.5], dtype=float32)
    """
    no_out("mean", out)
    dtype, axis = requested(dtype, "mean"), static_axis(axis, "mean")
    if where is None:
        return _mean(a, axis, dtype, keepdims)
    (a,) = inexact("mean", a)
    total = summed(wide(a), axis, dtype, keepdims=keepdims, where=where)
    mean = bind("div", total, _taken(a, axis, keepdims, where, total.aval.dtype))
    return mean if dtype is not None else converted(mean, a.aval.dtype, a.aval.weak_type)


def _center(a: Array, axis: Any, where: Any) -> Array:
    return mean(a, axis, keepdims=True, where=where)


def _taken(a: Any, axis: Any, keepdims: bool, where: Any, dtype: Any) -> Array:
    mask = broadcasted(mask_of(where, "mean"), a.aval.shape)
    return summed(mask, axis, dtype, keepdims=keepdims)


def _divisor(count: Any, total: Any) -> Any:
    """Return the number of elements that a sum is divided by; NaN where there are none."""
    if isinstance(count, SymbolicSize):
        return scalar_like(total, count)
    return scalar_like(total, float(count) if count > 0 else float("nan"))


@dispatched(1)
def _var(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, root: bool) -> Array:
    (a,) = inexact("var", a)
    aval = a.aval
    axes = axes_of(axis, aval.ndim, "var")
    steps = computation_dtype(aval.dtype if dtype is None else dtype)
    if not dtypes.is_complex(aval.dtype) or dtypes.is_complex(steps):
        a = converted(a, steps, aval.weak_type)
    squares = squared_distance(a, _mean(a, axes, None, True))
    total = kept(reduced("reduce_sum", squares, axes), aval.shape, axes, keepdims)
    count = _count(aval.shape, axes) - ddof
    result = bind("div", total, _divisor(count, total))
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
    dtype, axis = requested(dtype, operation), static_axis(axis, operation)
    if dtype is not None and not dtypes.is_inexact(dtype):
        raise ValueError(f"{operation}: the dtype must hold fractions, got {dtype.name}.")
    traced = isinstance(ddof, Tracer) and ddof.concrete() is None
    if where is None and mean is None and not traced:
        return _var(a, axis, dtype, ddof, keepdims, root)
    (a,) = inexact(operation, a)
    aval, a = a.aval, wide(a)
    center = _center(a, axis, where) if mean is None else wide(array_of(mean, operation))
    squares = squared_distance(*promoted(operation, a, center))
    total = summed(squares, axis, keepdims=keepdims, where=where)
    count = _taken(a, axis, keepdims, True if where is None else where, total.aval.dtype)
    result = bind("div", total, bind("sub", count, cast(as_array(ddof), count.aval.dtype)))
    return _in_result_dtype(bind("sqrt", result) if root else result, aval, dtype)


def var(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, ddof: float = 0,
    keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the variance over axes: the mean of `|a - mean(a)|^2`.

    Returns:
      A real array without the reduced axes (with `keepdims`, of size 1 in them): of integers it is
      float32, where NumPy has float64.

    Accuracy: the root of `var(x + c)` is that of `var(x)` to 8 epsilons of c (of float32 for 16-bit
    floats), beside what the sums `x + c` are rounded.

    Example:
      >>> import xnp
      >>> xnp.var(xnp.array([1., 2., 3., 4.]), ddof=1).round(3)
      Array(1.667, dtype=float32)
    """
    return _spread_measure("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction,
                           False)  # fmt: skip


def std(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, ddof: float = 0,
    keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the standard deviation over axes, the root of `var`.

    Returns:
      As of `var`. Its derivative is NaN where all elements are equal.

    Accuracy: `std(x + c)` is `std(x)` to 8 epsilons of c, as of `var`.

    Example:
      >>> import xnp
      >>> xnp.std(xnp.array([1., 2., 3., 4.])).round(3)
      Array(1.118, dtype=float32)
    """
    return _spread_measure("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction,
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

    Example:
      >>> import xnp
      >>> xnp.average(xnp.array([1., 2., 3.]), weights=xnp.array([1, 0, 3]))
      Array(2.5, dtype=float32)
    """
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        aval = array_of(a, "average").aval
        count = _count(aval.shape, axes_of(static_axis(axis, "average"), aval.ndim, "average"))
        return (result, filled(result.aval.shape, count, result.aval.dtype)) if returned else result
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
    total = summed(weights, axes, keepdims=keepdims)
    result = bind("div", summed(bind("mul", a, weights), axes, keepdims=keepdims), total)
    result, total = [converted(v, aval.dtype, aval.weak_type) for v in (result, total)]
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


complete(globals(), AVERAGES)

boundaries(globals(), written=True)
