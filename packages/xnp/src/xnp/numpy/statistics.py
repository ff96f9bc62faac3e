"""Statistics: quantiles, histograms, correlation; reductions that ignore NaN."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp import placing
from xnp.numpy import dispatch, reductions, reductions as r
from xnp.numpy.contraction import dot
from xnp.numpy.creation import asarray
from xnp.numpy.dispatch import array_of, cast, convert_to, elements_now, inexact, promote, wide
from xnp.numpy.indexing import no_out, read, take_along_axis
from xnp.numpy.ranges import linspace
from xnp.numpy.reductions import any as any_, max as max_, mean, min as min_, sum as summed
from xnp.numpy.selection import argsort, searchsorted, sort
from xnp.numpy.shaping import concatenate, moveaxis, unstack
from xnp.primitives.table import bind, broadcast_to, fill, reshape, scalar_like, select
from xprim import Array, ConcreteArray, config, dtypes, from_numpy, scalar_array
from xprim.avals import size_of
from xprim.errors import ConcretizationTypeError, ShapeError, message
from xprim.requirements import require, static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Axis, DTypeLike, ShardingLike

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin",
    "nanprod", "nanstd", "nansum", "nanvar", "bincount", "corrcoef", "cov", "histogram",
    "histogram2d", "histogram_bin_edges", "histogramdd", "median", "nanmedian", "nanpercentile",
    "nanquantile", "percentile", "quantile",
]  # fmt: skip

__dir__ = __all__.copy


# -------------------------------------------------------------------------------- nan reductions
# Reductions that leave NaN out: nansum, nanmean, nanmax, nanargmax, nancumsum, ...

_LARGE = 1 << 14  # elements: where it pays to look whether there is a NaN


def _mask(a: Any) -> Any:
    return bind("ne", a, a)


def _without_nan(a: Any, operation: str, neutral: float) -> Any:
    a = array_of(a, operation)
    if not dtypes.is_inexact(a.aval.dtype):
        return a
    hosts = elements_now(a) if a.aval.size >= _LARGE else None
    if hosts is None:
        return select(_mask(a), scalar_like(a, neutral), a)
    (host,) = hosts
    mask = host != host
    if not mask.any():
        return a
    kept = host.copy()
    kept[mask] = neutral
    return ConcreteArray(kept, a.aval)


def nansum(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the sum over axes of what is not NaN. Arguments as of `sum`.

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

    Returns:
        An array without the axes; 0 (of products 1) where all elements are NaN.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given; `where` is not an
            array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.nansum(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)
        Array([1., 6.], dtype=float32)
    """
    return r.sum(_without_nan(a, "nansum", 0), axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the product over axes of what is not NaN. Arguments as of `prod`.

    Args:
        a: an array.
        axis: the axis or axes that go away; None for all.
        dtype: of the result; None for that of the elements, where narrow integers and
            booleans widen to int32.
        out: must be None: arrays do not change, so nothing is written into one.
        keepdims: whether they stay, with size 1.
        initial: the value to begin with; None for none.
        where: booleans that say which elements count; None for all.

    Returns:
        An array without the axes; 0 (of products 1) where all elements are NaN.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given; `where` is not an
            array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.nanprod(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)
        Array([1., 8.], dtype=float32)
    """
    return r.prod(_without_nan(a, "nanprod", 1), axis, dtype, out, keepdims, initial, where)


def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """Return running sums along an axis, NaN counting as 0.

    Small integers keep their dtype and wrap around, where NumPy widens them to 64 bits.

    Args:
        a: an array.
        axis: the axis to go along; None for `a.ravel()`.
        dtype: of the result; None for that of the elements, int32 for booleans.
        out: must be None: arrays do not change, so nothing is written into one.

    Returns:
        An array of the shape of a; NaN counts as 0 (in products 1).

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.nancumsum(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)
        Array([[1., 1.],
               [2., 6.]], dtype=float32)
    """
    return r.cumsum(_without_nan(a, "nancumsum", 0), axis, dtype, out)


def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """Return running products along an axis, NaN counting as 1.

    Small integers keep their dtype and wrap around, where NumPy widens them to 64 bits.

    Args:
        a: an array.
        axis: the axis to go along; None for `a.ravel()`.
        dtype: of the result; None for that of the elements, int32 for booleans.
        out: must be None: arrays do not change, so nothing is written into one.

    Returns:
        An array of the shape of a; NaN counts as 0 (in products 1).

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.nancumprod(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)
        Array([[1., 1.],
               [2., 8.]], dtype=float32)
    """
    return r.cumprod(_without_nan(a, "nancumprod", 1), axis, dtype, out)


def _extremum(operation: str, function: Callable[..., Any], neutral: float) -> Callable[..., Any]:
    def reduce(a: Any, axis: Any, out: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        no_out(operation, out)
        a = array_of(a, operation)
        if a.aval.size >= _LARGE and elements_now(a) is not None:
            result = function(a, axis, None, keepdims, initial, where)
            if not np.isnan(np.asarray(result)).any():  # a NaN comes through: there is none
                return result
        result = function(_without_nan(a, operation, neutral), axis, None, keepdims, initial, where)
        if not dtypes.is_inexact(a.aval.dtype) or initial is not None:
            return result
        none_left = r.all(_mask(a), axis, keepdims=keepdims, where=where)
        return select(none_left, scalar_like(result, math.nan), result)

    return reduce


_nanmax = _extremum("nanmax", r.max, -math.inf)
_nanmin = _extremum("nanmin", r.min, math.inf)


def nanmax(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the greatest element over axes that is not NaN; NaN where all are.

    Args:
        a: an array.
        axis: the axis or axes that go away; None for all.
        out: must be None: arrays do not change, so nothing is written into one.
        keepdims: whether they stay, with size 1.
        initial: the value to begin with; None for none.
        where: booleans that say which elements count; None for all.

    Returns:
        An array without the axes; NaN where all elements are NaN.

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.nanmax(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)
        Array([1., 4.], dtype=float32)
    """
    return _nanmax(a, axis, out, keepdims, initial, where)  # type: ignore[no-any-return]


def nanmin(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the least element over axes that is not NaN; NaN where all are.

    Args:
        a: an array.
        axis: the axis or axes that go away; None for all.
        out: must be None: arrays do not change, so nothing is written into one.
        keepdims: whether they stay, with size 1.
        initial: the value to begin with; None for none.
        where: booleans that say which elements count; None for all.

    Returns:
        An array without the axes; NaN where all elements are NaN.

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.nanmin(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)
        Array([1., 2.], dtype=float32)
    """
    return _nanmin(a, axis, out, keepdims, initial, where)  # type: ignore[no-any-return]


def _is_known_full(a: Any) -> bool:
    """Whether many elements can be looked at, and none is NaN."""
    hosts = elements_now(a) if a.aval.size >= _LARGE else None
    return hosts is not None and not np.isnan(hosts[0]).any()


def _counts(a: Any, axis: Any, keepdims: bool, where: Any, dtype: Any) -> Any:
    """Return how many elements are not NaN."""
    numbers = bind("not", _mask(a))
    if where is not None:
        mask = broadcast_to(r.mask_of(where, "nanmean"), a.aval.shape)
        numbers = bind("and", numbers, mask)
    return r.sum(numbers, axis, dtype, keepdims=keepdims)


def nanmean(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None,
    keepdims: bool = False, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the mean over axes of what is not NaN; NaN where nothing is left.

    Args:
        a: an array.
        axis: the axis or axes that go away; None for all.
        dtype: of the result; None for that of the elements, where narrow integers and
            booleans widen to int32.
        out: must be None: arrays do not change, so nothing is written into one.
        keepdims: whether they stay, with size 1.
        where: booleans that say which elements count; None for all.

    Returns:
        A floating array without the axes; NaN where all elements are NaN.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given; `where` is not an
            array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.nanmean(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)
        Array([1., 3.], dtype=float32)
    """
    no_out("nanmean", out)
    a = array_of(a, "nanmean")
    if not dtypes.is_inexact(a.aval.dtype):
        return r.mean(a, axis, dtype, out, keepdims, where=where)
    total = nansum(wide(a), axis, dtype, None, keepdims, None, where)
    result = _over(total, _counts(a, axis, keepdims, where, total.dtype))
    return result if dtype is not None else convert_to(result, a.aval.dtype, a.aval.weak_type)


def nanvar(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, ddof: float = 0,
    keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the variance over axes of what is not NaN; NaN where too little is left.

    Args:
        a: an array.
        axis: the axis or axes that go away; None for all.
        dtype: of the result; None for that of the elements, where narrow integers and
            booleans widen to int32.
        out: must be None: arrays do not change, so nothing is written into one.
        ddof: the divisor is the number of elements that count less this.
        keepdims: whether they stay, with size 1.
        where: booleans that say which elements count; None for all.
        mean: the mean, where it is known already.
        correction: another name of `ddof`.

    Returns:
        A floating array without the axes; NaN where no more elements count than
        `ddof`.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given; `where` is not an
            array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.nanvar(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)
        Array([0., 1.], dtype=float32)
    """
    (a,) = inexact("nanvar", a)
    result = _nanvar(wide(a), axis, out, ddof, keepdims, where, mean, correction)
    return _in_dtype(result, a, dtype)


def _nanvar(a: Any, axis: Any, out: Any, ddof: Any, keepdims: bool, where: Any, mean: Any,
            correction: Any, *, root: bool = False) -> Array:  # fmt: skip
    no_out("nanvar", out)
    ddof = ddof if correction is None else correction
    center = nanmean(a, axis, None, None, True, where) if mean is None else (
        wide(array_of(mean, "nanvar")))  # fmt: skip
    a, center = promote("nanvar", a, center)
    # where NaN is left out the distance is 0, and so are its derivatives
    numbers = a if _is_known_full(a) else select(_mask(a), broadcast_to(center, a.aval.shape), a)
    squares = r.square_distance(numbers, center)
    total = r.sum(squares, axis, None, None, keepdims, None, where)
    count = _counts(a, axis, keepdims, where, total.dtype)
    divisor = bind("sub", count, cast(array_of(ddof, "nanvar"), count.dtype))
    return _over(total, divisor, root=root)


def _over(total: Any, divisor: Any, *, root: bool = False) -> Array:
    """Return the quotient, or its square root; NaN where the divisor is not positive.

    There the derivatives are zero: what they would be computed from is replaced by 1 beforehand.
    """
    is_complex = dtypes.is_complex(divisor.dtype)
    size = bind("real", divisor) if is_complex else divisor
    enough = bind("gt", size, scalar_like(size, 0))
    total, divisor = [select(enough, x, scalar_like(x, 1)) for x in (total, divisor)]
    quotient = bind("div", total, divisor)
    result = bind("sqrt", quotient) if root else quotient
    nothing = complex(math.nan, math.nan) if is_complex else math.nan
    return select(enough, result, scalar_like(result, nothing))


def _in_dtype(result: Any, a: Any, dtype: Any) -> Array:
    """Return a spread of the elements of `a` in the dtype requested, or in their own real one."""
    if dtype is not None:
        return cast(result, dtypes.requested_dtype(dtype, "nanvar"))
    return convert_to(result, dtypes.to_floating_dtype(a.aval.dtype), a.aval.weak_type)


def nanstd(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, ddof: float = 0,
    keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the standard deviation over axes of what is not NaN.

    Args:
        a: an array.
        axis: the axis or axes that go away; None for all.
        dtype: of the result; None for that of the elements, where narrow integers and
            booleans widen to int32.
        out: must be None: arrays do not change, so nothing is written into one.
        ddof: the divisor is the number of elements that count less this.
        keepdims: whether they stay, with size 1.
        where: booleans that say which elements count; None for all.
        mean: the mean, where it is known already.
        correction: another name of `ddof`.

    Returns:
        A floating array without the axes; NaN where no more elements count than
        `ddof`.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype; `out` is given; `where` is not an
            array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.nanstd(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)
        Array([0., 1.], dtype=float32)
    """
    (a,) = inexact("nanstd", a)
    result = _nanvar(wide(a), axis, out, ddof, keepdims, where, mean, correction, root=True)
    return _in_dtype(result, a, dtype)


def _position(operation: str, function: Callable[..., Any], neutral: float) -> Callable[..., Any]:
    def find(a: Any, axis: Any, out: Any, keepdims: bool) -> Any:
        a = array_of(a, operation)
        result = function(_without_nan(a, operation, neutral), axis, out, keepdims)
        if not dtypes.is_inexact(a.aval.dtype):
            return result
        none_left = r.all(_mask(a), axis, keepdims=keepdims)
        return select(none_left, scalar_like(result, -1), result)

    return find


_nanargmax = _position("nanargmax", r.argmax, -math.inf)
_nanargmin = _position("nanargmin", r.argmin, math.inf)


def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the position of the greatest element that is not NaN; -1 where all are.

    Complex numbers have no order and raise an error; NumPy compares real parts first.

    Args:
        a: an array.
        axis: the axis that goes away; None for the position in `a.ravel()`.
        out: must be None: arrays do not change, so nothing is written into one.
        keepdims: whether they stay, with size 1.

    Returns:
        An int32 array of positions without the axis; -1 where all elements are NaN
        (NumPy raises).

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.nanargmax(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)
        Array([0, 1], dtype=int32)
    """
    return _nanargmax(a, axis, out, keepdims)  # type: ignore[no-any-return]


def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the position of the least element that is not NaN; -1 where all are.

    Complex numbers have no order and raise an error; NumPy compares real parts first.

    Args:
        a: an array.
        axis: the axis that goes away; None for the position in `a.ravel()`.
        out: must be None: arrays do not change, so nothing is written into one.
        keepdims: whether they stay, with size 1.

    Returns:
        An int32 array of positions without the axis; -1 where all elements are NaN
        (NumPy raises).

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.nanargmin(xnp.array([[1.0, xnp.nan], [2.0, 4.0]]), axis=1)
        Array([0, 0], dtype=int32)
    """
    return _nanargmin(a, axis, out, keepdims)  # type: ignore[no-any-return]


# ------------------------------------------------------------------------ interpolated quantiles
# One quantile of sorted lines: between the two elements next to its place.
#
# Where a line has a NaN, or nothing but NaN, the result is NaN and has no derivatives.


def interpolate_lines(lines: Any, q: Any, count: int, method: str, skip_nan: bool) -> Array:
    """Return one quantile of sorted lines, which NaN stands at the ends of.

    Args:
      lines: arrays of shape (..., count), ascending.
      q: the quantile, from 0 to 1.
      count: how many elements a line has.
      method: which of the two elements next to the place, or what between them.
      skip_nan: whether NaN is left out; otherwise it makes the result NaN.

    Raises:
        ValueError: unknown `method`.
    """
    dtype, outer = lines.aval.dtype, lines.aval.shape[:-1]
    is_nan = bind("ne", lines, lines)
    numbers = summed(bind("not", is_nan), -1, dtype) if skip_nan else fill(outer, count, dtype)
    last = bind("sub", array_of(numbers, "quantile"), scalar_like(lines, 1))
    place = bind("mul", broadcast_to(cast(q, dtype), outer), last)
    zero = scalar_like(place, 0)
    low, high = bind("floor", place), bind("ceil", place)
    weight = bind("sub", place, low)
    low, high = [bind("max", bind("min", v, last), zero) for v in (low, high)]
    spoiled = bind("lt", last, zero) if skip_nan else any_(is_nan, -1)
    # what is spoiled has no derivatives: no product with NaN may reach the operands
    below, above = [select(spoiled, zero, _pick(lines, v)) for v in (low, high)]
    if method == "linear":
        result = _between(below, above, weight)
    elif method == "midpoint":
        result = bind("mul", bind("add", below, above), scalar_like(below, 0.5))
    elif method == "nearest":
        nearer = bind("le", weight, scalar_like(weight, 0.5))
        result = select(nearer, below, above)
    else:
        result = below if method == "lower" else above
    return select(spoiled, scalar_like(result, math.nan), result)


def _between(below: Array, above: Array, weight: Array) -> Array:
    """Return a point of the line from one number to another; of equal infinities, the infinity."""
    infinite = bind("and", bind("eq", below, above), bind("not", bind("is_finite", below)))
    zero, one = scalar_like(below, 0), scalar_like(weight, 1)
    low, high = [select(infinite, zero, x) for x in (below, above)]
    point = bind("add", bind("mul", low, bind("sub", one, weight)), bind("mul", high, weight))
    return select(infinite, below, point)


def _pick(lines: Any, place: Any) -> Array:
    """Return the element of each line at a whole number."""
    number = reshape(cast(place, dtypes.int32), (*place.aval.shape, 1))
    return reshape(take_along_axis(lines, number, -1, mode="clip"), place.aval.shape)


# ---------------------------------------------------------------------------- weighted quantiles
# Quantiles by the inverse of the distribution function, in which elements may have weights.
#
# The quantile q is the least element up to which the weights sum to q of their total (method
# "inverted_cdf"; NumPy allows weights for this one alone). An element of weight 0 is never it.


def invert_cdf(
    operation: str, a: Any, q: Any, axis: Any, weights: Any, keepdims: bool, skip_nan: bool
) -> Array:
    """Return the quantiles `q` of the elements of `a` over axes.

    Args:
      operation: what errors call the public function.
      a: a real array.
      q: a number from 0 to 1 or a vector of such, which comes first in the result.
      axis: the axes; None for all.
      weights: None, or numbers that are not negative, of the shape of `a` or of its axes.
      keepdims: whether reduced axes stay with size 1.
      skip_nan: whether NaN elements are left out; else a line that has one gives NaN.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axis` is out of bounds.
    """
    a, q = inexact(operation, a, q)
    shape = a.aval.shape
    axes = dispatch.axes_of(axis, len(shape), operation)
    values, masses = _lines(a, axes), _line_weights(operation, a, axis, axes, weights)
    order = argsort(values, -1)
    values, masses = take_along_axis(values, order, -1), take_along_axis(masses, order, -1)
    is_nan = bind("ne", values, values)
    zero = scalar_like(masses, 0)
    bad = bind("not", bind("ge", masses, zero))  # negative, or NaN
    sums = reductions.cumsum(select(bind("or", is_nan, bad), zero, masses), -1)
    spoiled = bind("or", any_(bad, -1), _no_mass(sums))
    if not skip_nan:
        spoiled = bind("or", spoiled, any_(is_nan, -1))
    qs = [q[i] for i in range(q.aval.shape[0])] if q.aval.ndim else [q]
    results = [_select_at_weight(values, sums, q) for q in qs]
    results = [select(spoiled, scalar_like(x, math.nan), x) for x in results]
    results = [r.keep_dims(x, shape, axes, keepdims) for x in results]
    if not q.aval.ndim:
        return results[0]
    return bind("concatenate", *[reshape(x, (1, *x.aval.shape)) for x in results], dimension=0)


def _line_weights(operation: str, a: Array, axis: Any, axes: Any, weights: Any) -> Array:
    """Return the weights of the lines of `a`, in a dtype in which they may be summed."""
    shape = a.aval.shape
    reduced = tuple([shape[d] for d in axes])
    weights = 1.0 if weights is None else weights
    (weights,) = inexact(operation, weights)
    require(not dtypes.is_complex(weights.aval.dtype), operation, "weights must not be complex.")
    own = weights.aval.shape
    if own and own != shape and (axis is None or own != reduced):
        raise ValueError(message(
            operation, "the weights have another shape than what they weigh.",
            got=f"weights: {weights.aval.str_long()}, a: {a.aval.str_long()}",
            expected=f"the shape {shape}"
            + ("" if axis is None else f", or that of the axes, {reduced}"),
        ))  # fmt: skip
    if dtypes.itemsize_bits(weights.aval.dtype) < 32:
        weights = cast(weights, dtypes.float32)
    if own and own == shape:
        return _lines(weights, axes)
    outer = [n for d, n in enumerate(shape) if d not in axes]
    line = reshape(weights, (math.prod(own),)) if own else weights
    return broadcast_to(line, (*outer, math.prod(reduced)))


def _lines(x: Array, axes: tuple[int, ...]) -> Array:
    """Return an array whose last dimension runs over some axes together."""
    shape = x.aval.shape
    outer = tuple([n for d, n in enumerate(shape) if d not in axes])
    moved = moveaxis(x, axes, tuple(range(len(outer), len(shape))))
    return reshape(moved, (*outer, math.prod([shape[d] for d in axes])))


def _no_mass(sums: Array) -> Array:
    total = sums[..., -1] if sums.aval.shape[-1] else summed(sums, -1)
    return bind("eq", total, scalar_like(total, 0))


def _select_at_weight(values: Array, sums: Array, q: Any) -> Array:
    """Return the first element of each line at which the sum of weights reaches its part `q`."""
    if not values.aval.shape[-1]:
        return summed(values, -1)
    total = sums[..., -1:]
    target = broadcast_to(bind("mul", cast(q, total.aval.dtype), total), sums.aval.shape)
    before = bind("or", bind("lt", sums, target), bind("eq", sums, scalar_like(sums, 0)))
    place = summed(before, -1, dtypes.int32, keepdims=True)
    last = scalar_like(place, max(values.aval.shape[-1] - 1, 0))
    return take_along_axis(values, bind("min", place, last), -1)[..., 0]


# ------------------------------------------------------------------------------------ statistics
# Statistics: quantiles, histograms, correlation.
#
# Quantiles interpolate between the two elements next to the place requested; a NaN makes the
# result NaN, but for the `nan...` functions, which leave NaN out.

Bins = Any  # a number of bins, their bounds, or for more dimensions a sequence of either

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def _quantile(
    operation: str, a: Any, q: Any, axis: Any, out: Any, method: str, keepdims: bool,
    skip_nan: bool, weights: Any = None,
) -> Array:  # fmt: skip
    no_out(operation, out)
    (a,) = inexact(operation, a)
    dtype, a, q = a.aval.dtype, wide(a), wide(dispatch.as_array_like(q, a, operation))
    _check_quantile(operation, a, q, method, weights)
    if method == "inverted_cdf":
        return cast(invert_cdf(operation, a, q, axis, weights, keepdims, skip_nan), dtype)
    shape = a.aval.shape
    axes = dispatch.axes_of(axis, len(shape), operation)
    outer = tuple([n for d, n in enumerate(shape) if d not in axes])
    count = math.prod([shape[d] for d in axes])
    lines = reshape(moveaxis(a, axes, tuple(range(len(outer), len(shape)))), (*outer, count))
    if not count:
        lines, count = _line_of_nothing(operation, a, lines), 1
    lines = sort(lines, -1)
    places = reshape(q, (q.aval.size,))
    results = [
        interpolate_lines(lines, read(places, i), count, method, skip_nan)
        for i in range(places.aval.shape[0])
    ]
    results = [r.keep_dims(x, shape, axes, keepdims) for x in results]
    results = [cast(x, dtype) for x in results]
    if not q.aval.ndim:
        return results[0]
    return bind("concatenate", *[reshape(x, (1, *x.aval.shape)) for x in results], dimension=0)


def _line_of_nothing(operation: str, a: Array, lines: Any) -> Array:
    """Return what stands for lines without elements: the median of nothing is NaN, as its mean."""
    require(
        operation != "quantile", "quantile", "there is no quantile of no elements.", got=a,
        hint="nanquantile and median give NaN",
    )  # fmt: skip
    return fill((*lines.aval.shape[:-1], 1), math.nan, lines.aval.dtype)


def _check_quantile(operation: str, a: Array, q: Array, method: str, weights: Any) -> None:
    if method not in _METHODS:
        raise ValueError(
            f"{operation}: method must be one of {', '.join(_METHODS)}, got {method!r}."
        )
    require(
        weights is None or method == "inverted_cdf", operation,
        "weights are for the method 'inverted_cdf' alone, got {!r}.", method,
    )  # fmt: skip
    require(not dtypes.is_complex(a.aval.dtype), operation, "complex numbers have no order.")
    require(q.aval.ndim <= 1, operation, "q must be a number or a vector, got {}.", q)


def quantile(
    a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return quantiles of the elements over axes.

    Args:
        a: a real array.
        q: numbers from 0 to 1, one or a vector; its dimension comes first in the result.
        axis: the axes; None for all.
        out: not supported, must be None.
        overwrite_input: has no effect.
        method: "linear", "lower", "higher", "midpoint" or "nearest", between two
            elements; "inverted_cdf" takes the least element up to which there is the
            part `q` of all.
        keepdims: whether reduced axes stay with size 1.
        weights: how much each element counts, with the method "inverted_cdf": numbers
            that are not negative, of the shape of `a` or of its axes.

    Returns:
        A floating array: the dimension of `q`, then those of `a` without the reduced axes.

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds; unknown `method`.

    Example:
      >>> import xnp
      >>> xnp.quantile(xnp.array([1., 2., 3.]), 0.5, method="inverted_cdf",
      ...              weights=xnp.array([1., 1., 3.]))
      Array(3., dtype=float32)
    """
    del overwrite_input
    return _quantile("quantile", a, q, axis, out, method, keepdims, False, weights)


def nanquantile(
    a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return quantiles of the elements that are not NaN.

    Of no elements there are as many quantiles as are requested, where NumPy has one.

    Args:
        a: a real array.
        q: numbers from 0 to 1, one or a vector; its dimension comes first in the result.
        axis: the axes; None for all.
        out: not supported, must be None.
        overwrite_input: has no effect.
        method: "linear", "lower", "higher", "midpoint" or "nearest", between two
            elements; "inverted_cdf" takes the least element up to which there is the
            part `q` of all.
        keepdims: whether reduced axes stay with size 1.
        weights: how much each element counts, with the method "inverted_cdf": numbers
            that are not negative, of the shape of `a` or of its axes.

    Returns:
        A floating array: the dimension of `q`, then those of `a` without the reduced axes;
        NaN where all elements are.

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds; unknown `method`.

    Example:
      >>> import xnp
      >>> xnp.nanquantile(xnp.array([1., xnp.nan, 2., 9.]), 0.5)
      Array(2., dtype=float32)
    """
    del overwrite_input
    return _quantile("nanquantile", a, q, axis, out, method, keepdims, True, weights)


def _of_percent(a: Any, q: Any) -> Any:
    (q,) = inexact("percentile", dispatch.as_array_like(q, array_of(a, "percentile"), "percentile"))
    return bind("div", q, scalar_like(q, 100))


def percentile(
    a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Return quantiles with `q` from 0 to 100.

    Args:
        a: a real array.
        q: numbers from 0 to 100, one or a vector; its dimension comes first in the result.
        axis: the axes; None for all.
        out: not supported, must be None.
        overwrite_input: has no effect.
        method: "linear", "lower", "higher", "midpoint" or "nearest", between two
            elements; "inverted_cdf" takes the least element up to which there is the
            part `q` of all.
        keepdims: whether reduced axes stay with size 1.
        weights: how much each element counts, with the method "inverted_cdf": numbers
            that are not negative, of the shape of `a` or of its axes.
        out_sharding: a sharding of the result, or a partition spec over the
            context mesh.

    Returns:
        A floating array: the dimension of `q`, then those of `a` without the reduced axes.

    Raises:
        TypeError: `a` is not an array; `out` is given; `out_sharding` is not a sharding.
        ValueError: `axis` is out of bounds; unknown `method`.

    Example:
      >>> import xnp
      >>> xnp.percentile(xnp.array([1., 2., 9.]), 50)
      Array(2., dtype=float32)
    """
    q = _of_percent(a, q)
    result = quantile(a, q, axis, out, overwrite_input, method, keepdims, weights=weights)
    return placing.place(result, out_sharding, "percentile")


def nanpercentile(
    a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return quantiles of what is not NaN with `q` from 0 to 100.

    Args:
        a: a real array.
        q: numbers from 0 to 100, one or a vector; its dimension comes first in the result.
        axis: the axes; None for all.
        out: not supported, must be None.
        overwrite_input: has no effect.
        method: "linear", "lower", "higher", "midpoint" or "nearest", between two
            elements; "inverted_cdf" takes the least element up to which there is the
            part `q` of all.
        keepdims: whether reduced axes stay with size 1.
        weights: how much each element counts, with the method "inverted_cdf": numbers
            that are not negative, of the shape of `a` or of its axes.

    Returns:
        A floating array: the dimension of `q`, then those of `a` without the reduced axes;
        NaN where all elements are.

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds; unknown `method`.

    Example:
      >>> import xnp
      >>> xnp.nanpercentile(xnp.array([1., xnp.nan, 2., 9.]), 50)
      Array(2., dtype=float32)
    """
    q = _of_percent(a, q)
    return nanquantile(a, q, axis, out, overwrite_input, method, keepdims, weights=weights)


def median(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """Return the middle element in order over axes, the mean of the two middle ones if even.

    Complex numbers have no order and raise an error; NumPy compares real parts first.

    Args:
        a: a real array.
        axis: the axes; None for all.
        out: not supported, must be None.
        overwrite_input: has no effect.
        keepdims: whether reduced axes stay with size 1.

    Returns:
        A floating array without the reduced axes: of integers float32, where NumPy
        has float64.

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.median(xnp.array([1, 9, 2, 4]))
        Array(3., dtype=float32)
    """
    del overwrite_input
    return _quantile("median", a, 0.5, axis, out, "midpoint", keepdims, skip_nan=False)


def nanmedian(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """Return the median of the elements that are not NaN.

    Complex numbers have no order and raise an error; NumPy compares real parts first.

    Args:
        a: a real array.
        axis: the axes; None for all.
        out: not supported, must be None.
        overwrite_input: has no effect.
        keepdims: whether reduced axes stay with size 1.

    Returns:
        A floating array without the reduced axes: of integers float32, where NumPy
        has float64.

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.nanmedian(xnp.array([1., xnp.nan, 2., 9.]))
        Array(2., dtype=float32)
    """
    del overwrite_input
    return _quantile("nanmedian", a, 0.5, axis, out, "midpoint", keepdims, skip_nan=True)


# --- counts ---------------------------------------------------------------------------------------


def bincount(
    x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *,
    length: int | None = None, out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Return how often each number from 0 occurs, or the sum of the weights of its occurrences.

    Args:
      x: integers in one dimension; negative ones count as 0.
      weights: a weight for each.
      minlength: the least size of the result.
      length: the size of the result, which a traced `x` needs; larger numbers are left out.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      A vector: of integers, or of the dtype of the weights. Negative numbers count as 0, where
      NumPy raises an error.

    Raises:
        TypeError: `x` is not an array; `out_sharding` is not a sharding.
        ValueError: `length` is negative.

    Example:
      >>> import xnp
      >>> xnp.bincount(xnp.array([0, 1, 1, 3]))
      Array([1, 2, 0, 1], dtype=int32)
    """
    x = array_of(x, "bincount")
    if dtypes.is_bool(x.aval.dtype):
        x = cast(x, dtypes.int32)
    require(
        dtypes.is_integer(x.aval.dtype) and x.aval.ndim == 1, "bincount",
        "takes integers in one dimension, got {}.", x, error=TypeError,
    )  # fmt: skip
    least = size_of(minlength)
    if length is None:
        if not isinstance(x, ConcreteArray):
            raise ConcretizationTypeError(
                x,
                "bincount",
                "the size of the result depends on traced values.",
                "give length=, the number of bins",
            )
        host = x.to_host()
        length = max(int(host.max()) + 1 if host.size else 0, least, 0)
    is_weighted = weights is not None
    if weights is None:
        weights = scalar_array(1, dtypes.python_scalar_dtype(int))
    weights = array_of(weights, "bincount")
    counts = fill((length,), 0, weights.aval.dtype)
    hosts = None if is_weighted else elements_now(x)
    if hosts is not None:
        counts = _count(hosts[0], length)
    elif length:
        places = bind("max", x, scalar_like(x, 0))
        counts = counts.at[places].add(broadcast_to(weights, x.aval.shape), mode="drop")
    return placing.place(counts, out_sharding, "bincount")


def _count(numbers: np.ndarray[Any, Any], length: int) -> Array:
    """Return how often each number below `length` occurs, negative ones counted as 0."""
    if numbers.size and numbers.min() < 0:
        numbers = np.maximum(numbers, 0)
    if numbers.size and numbers.max() >= length:
        numbers = numbers[numbers < length]
    counts = np.bincount(numbers.astype(np.intp, copy=False), minlength=length)
    return from_numpy(counts.astype(dtypes.python_scalar_dtype(int)), copy=False)


def histogram_bin_edges(
    a: ArrayLike,
    bins: Bins = 10,
    range: Sequence[Any] | None = None,  # noqa: A002 - NumPy's name
    weights: ArrayLike | None = None,
) -> Array:
    """Return the bounds of bins of equal width: `bins` of them over a range, or those given.

    Values that are not finite give edges that are NaN, where NumPy raises an error.

    Args:
      a: an array; it is flattened.
      bins: a number of bins, or their bounds, which are returned.
      range: the bounds of all; None for the least and greatest element.
      weights: has no effect.

    Returns:
      A vector, of one more element than there are bins.

    Raises:
        TypeError: `a` is not an array.

    Example:
      >>> import xnp
      >>> xnp.histogram_bin_edges(xnp.array([0., 1., 4.]), bins=2)
      Array([0., 2., 4.], dtype=float32)
    """
    del weights
    require(
        not isinstance(bins, str), "histogram_bin_edges",
        "bins must be a number or bounds, not a name.",
    )  # fmt: skip
    bounds = asarray(bins)
    if bounds.ndim:
        return bounds
    number = static_int(bins, "histogram_bin_edges", "bins")
    require(
        number >= 1, "histogram_bin_edges", "there must be at least one bin.", got={"bins": number}
    )
    (a,) = inexact("histogram_bin_edges", a)
    if range is None:
        low, high = (min_(a), max_(a)) if a.aval.size else (scalar_like(a, 0), scalar_like(a, 1))
    else:
        low, high = [cast(array_of(v, "histogram_bin_edges"), a.aval.dtype) for v in range]
    low, high = [array_of(v, "histogram_bin_edges") for v in (low, high)]
    half = scalar_like(low, 0.5)
    same = bind("eq", low, high)
    low, high = (select(same, bind("sub", low, half), low),
                 select(same, bind("add", high, half), high))  # fmt: skip
    return linspace(low, high, number + 1)


def _bin_numbers(a: Any, edges: Any) -> Any:
    """Return the bin of each element; the last bin holds its upper bound; outside is -1."""
    count = edges.shape[0] - 1
    numbers = searchsorted(edges, a, side="right") - 1
    at_end = a == edges[-1]
    numbers = select(array_of(at_end, "histogram"), scalar_like(numbers, count - 1), numbers)
    outside = (a < edges[0]) | (a > edges[-1]) | (a != a)
    return select(outside, scalar_like(numbers, count), numbers)


def histogram(
    a: ArrayLike,
    bins: Bins = 10,
    range: Sequence[Any] | None = None,  # noqa: A002 - NumPy's name
    weights: ArrayLike | None = None,
    density: bool | None = None,
    out_sharding: ShardingLike = None,
) -> tuple[Array, Array]:
    """Return how many elements lie in each bin, and the bounds of the bins.

    Args:
      a: an array; it is flattened.
      bins: the number of bins, or their bounds.
      range: the bounds of all; None for the least and greatest element.
      weights: of the elements; then their sums are returned.
      density: whether to return a density, whose integral is 1.
      out_sharding: where the counts are placed: None, or a sharding of one device.

    Returns:
      Counts, in float32 where NumPy has integers, or sums of weights; and the bounds, one more.

    Raises:
        TypeError: `a` is not an array; `out_sharding` is not a sharding.

    Example:
      >>> import xnp
      >>> xnp.histogram(xnp.array([0., 1., 1., 2.]), bins=2)
      (Array([1., 3.], dtype=float32), Array([0., 1., 2.], dtype=float32))
    """
    (a,) = inexact("histogram", a)
    edges = histogram_bin_edges(a, bins, range, weights)
    with config.numpy_dtype_promotion("standard"):  # elements and bounds are compared, not joined
        a, edges = promote("histogram", reshape(a, (a.aval.size,)), edges)
    numbers, count = _bin_numbers(a, edges), edges.shape[0] - 1
    if weights is None:
        counts = cast(array_of(bincount(numbers, length=count), "histogram"), a.aval.dtype)
    else:
        weights = array_of(weights, "histogram")
        require(
            weights.aval.size == a.aval.size, "histogram",
            "the weights have another shape than the array.", got={"weights": weights, "a": a},
            error=ShapeError,
        )  # fmt: skip
        weights = reshape(weights, a.aval.shape)
        counts = fill((count,), 0, weights.aval.dtype).at[numbers].add(weights, mode="drop")
    if density:
        widths = edges[1:] - edges[:-1]
        counts = counts / widths / counts.sum()
    return placing.place(counts, out_sharding, "histogram"), edges


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Bins = 10,
    range: Sequence[Any] | None = None,  # noqa: A002 - NumPy's name
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Return how many points (x, y) lie in each bin of a grid, and the bounds in x and y.

    Counts are integers unless `weights` or `density` is given, where NumPy's are floats.

    Args:
      x: a vector.
      y: a vector of as many elements.
      bins: a number of bins or bounds for both, or a pair of either.
      range: the bounds of all, ((x_min, x_max), (y_min, y_max)); None for the least and greatest
        element.
      weights: of the points; then their sums are returned.
      density: whether to return a density, whose integral is 1.

    Returns:
      Counts, a matrix with a row for each bin in x; the bounds in x; the bounds in y.

    Raises:
        TypeError: an operand is not an array.

    Example:
      >>> import xnp
      >>> xnp.histogram2d(xnp.array([0., 1., 1.]), xnp.array([0., 1., 0.]), bins=2)[0]
      Array([[1, 0],
             [1, 1]], dtype=int32)
    """
    counts = bins if isinstance(bins, list | tuple) and len(bins) == 2 else [bins, bins]
    x, y = promote("histogram2d", x, y)
    require(
        x.aval.ndim == 1 and x.aval.shape == y.aval.shape, "histogram2d",
        "x and y must be vectors of one length.", got={"x": x, "y": y},
    )  # fmt: skip
    sample = bind("concatenate", reshape(x, (x.aval.size, 1)), reshape(y, (y.aval.size, 1)),
                  dimension=1)  # fmt: skip
    result, edges = histogramdd(sample, counts, range, weights, density)
    return result, edges[0], edges[1]


def histogramdd(
    sample: ArrayLike | Sequence[ArrayLike],
    bins: Bins = 10,
    range: Sequence[Any] | None = None,  # noqa: A002 - NumPy's name
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Return how many points lie in each bin of a grid, and the bounds in each dimension.

    Counts are integers unless `weights` or `density` is given, where NumPy's are floats.

    Args:
      sample: points, one in each row, or a sequence of coordinates.
      bins: the number of bins, or numbers or bounds for each dimension.
      range: a pair of bounds for each dimension, or None.
      weights: of the points.
      density: whether to return a density, whose integral is 1.

    Returns:
      Counts, an array of as many dimensions as the points have; and a list of bounds in each.

    Example:
      >>> import xnp
      >>> xnp.histogramdd(xnp.array([[0., 0.], [1., 1.], [1., 0.]]), bins=2)[0]
      Array([[1, 0],
             [1, 1]], dtype=int32)
    """
    if isinstance(sample, list | tuple):
        sample = concatenate([reshape(asarray(s), (len(s), 1)) for s in sample], 1)
    (sample,) = inexact("histogramdd", sample)
    count, rank = sample.aval.shape
    each = list(bins) if isinstance(bins, list | tuple) else [bins] * rank
    ranges = [None] * rank if range is None else list(range)
    columns = unstack(sample, axis=1)
    edges = [histogram_bin_edges(c, b, g) for c, b, g in zip(columns, each, ranges, strict=True)]
    shape = tuple([e.shape[0] - 1 for e in edges])
    numbers = tuple([_bin_numbers(c, e) for c, e in zip(columns, edges, strict=True)])
    if weights is None:
        weights = fill((count,), 1, dtypes.python_scalar_dtype(int))
    weights = array_of(weights, "histogramdd")
    result = fill(shape, 0, weights.aval.dtype).at[numbers].add(weights, mode="drop")
    return (_density(result, edges) if density else result), edges


def _density(counts: Any, edges: list[Array]) -> Any:
    """Divide counts in a grid by their sum and the volumes of the bins."""
    result = counts / counts.sum()
    for d, e in enumerate(edges):
        width = e[1:] - e[:-1]
        result = result / width.reshape(-1, *(1,) * (len(edges) - 1 - d))
    return result


# --- correlation ----------------------------------------------------------------------------------


def cov(
    m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False,
    ddof: int | None = None, fweights: ArrayLike | None = None, aweights: ArrayLike | None = None,
    dtype: DTypeLike = None,
) -> Array:  # fmt: skip
    """Return the covariance matrix of variables.

    Args:
      m: observations of variables, a variable in each row.
      y: further variables.
      rowvar: whether rows are variables; else columns are.
      bias: whether to divide by the number of observations, not by one less.
      ddof: what is taken from the number of observations in the divisor.
      fweights: how often each observation is counted.
      aweights: how much each observation weighs.
      dtype: in which it is computed, floating or complex; None for that of the variables.

    Returns:
      A matrix with a row for each variable; a number for one variable.

    Raises:
        TypeError: an operand is not an array; `dtype` names no dtype.

    Example:
      >>> import xnp
      >>> xnp.cov(xnp.array([[1., 2., 3.], [3., 2., 1.]]))
      Array([[ 1., -1.],
             [-1.,  1.]], dtype=float32)
    """
    given = inexact("cov", m) if y is None else inexact("cov", m, y)
    dispatch.check_ranks("cov", *given)
    if dtype is not None:
        given = [cast(v, _inexact_dtype("cov", dtype)) for v in given]
    x = concatenate([_variables(v, rowvar) for v in given], 0)
    aval, x = x.aval, wide(x)
    ddof = int(not bias) if ddof is None else ddof
    weights = reductions.weights_of_observations(fweights, aweights, x.aval.shape[1])
    if weights is None:
        center = mean(x, axis=1)
        divisor = max(x.aval.shape[1] - ddof, 0)  # 0 / 0: NaN where there are too few
        scaled = centered = x - center[:, None]
    else:
        center, totals = reductions.average(x, axis=1, weights=weights, returned=True)
        divisor = (totals[0] - ddof * _mean_weight(weights, aweights, totals[0])).clip(0)
        centered = x - center[:, None]
        scaled = centered * weights[None]
    other = centered.conj() if dtypes.is_complex(x.aval.dtype) else centered
    result = array_of(dot(scaled, other.T) / divisor, "cov").squeeze()
    return convert_to(result, aval.dtype, aval.weak_type)


def _inexact_dtype(operation: str, dtype: Any) -> Any:
    exact = dtypes.requested_dtype(dtype, operation)
    require(
        dtypes.is_inexact(exact), operation,
        "dtype must be a subclass of float or complex, got {}.", exact.name,
    )  # fmt: skip
    return exact


def _variables(x: Array, rowvar: bool) -> Array:
    """Return a matrix with a variable in each row."""
    require(x.aval.ndim <= 2, "cov", "takes vectors and matrices, got {}.", x)
    if x.aval.ndim < 2:
        return reshape(x, (1, x.aval.size))
    return x if rowvar else x.T


def _mean_weight(weights: Any, aweights: Any, total: Any) -> Any:
    """Return the mean of `aweights`, each counted as often as it weighs."""
    return 1 if aweights is None else (weights * asarray(aweights)).sum() / total


def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike = None
) -> Array:
    """Return the matrix of correlation coefficients of variables. Arguments as of `cov`.

    Args:
      x: observations of variables, a variable in each row.
      y: further variables.
      rowvar: whether rows are variables; else columns are.
      dtype: in which it is computed, floating or complex; None for that of the variables.

    Returns:
      A matrix with a row for each variable; a number for one variable.

    Raises:
        TypeError: an operand is not an array; `dtype` names no dtype.

    Example:
      >>> import xnp
      >>> xnp.corrcoef(xnp.array([[1., 2., 3.], [3., 2., 1.]])).round(3)
      Array([[ 1., -1.],
             [-1.,  1.]], dtype=float32)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    scale = asarray(c.diagonal().real ** 0.5, c.dtype)
    c = c / scale[:, None] / scale[None, :]
    limited = _within_one(c.real)
    if not dtypes.is_complex(c.dtype):
        return limited  # type: ignore[no-any-return]
    return bind("complex", limited, _within_one(c.imag))


def _within_one(x: Any) -> Any:
    """Cut off what rounding has put beyond 1, where the derivative stays that of x."""
    limited = bind("max", bind("min", x, scalar_like(x, 1)), scalar_like(x, -1))
    return bind("sub", x, bind("stop_gradient", bind("sub", x, limited)))


boundaries(globals())
