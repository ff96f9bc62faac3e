"""Reductions that leave NaN out: nansum, nanmean, nanmax, nanargmax, nancumsum, ..."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.docstrings import complete
from xnp.docstrings.array_reductions import NAN_REDUCTIONS
from xnp.numpy import averages, reductions as r, running_totals
from xnp.numpy.indexing import no_out
from xnp.numpy.promoting import (
    array_of,
    bind,
    broadcasted,
    cast,
    converted,
    elements_now,
    inexact,
    promoted,
    scalar_like,
    selected,
    wide,
)
from xprim import Array, ConcreteArray, dtypes
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Axis, DTypeLike

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar",
]  # fmt: skip

__dir__ = __all__.copy


_LARGE = 1 << 14  # elements: where it pays to look whether there is a NaN


def _mask(a: Any) -> Any:
    return bind("ne", a, a)


def _without_nan(a: Any, operation: str, neutral: float) -> Any:
    a = array_of(a, operation)
    if not dtypes.is_inexact(a.aval.dtype):
        return a
    hosts = elements_now(a) if a.aval.size >= _LARGE else None
    if hosts is None:
        return selected(_mask(a), scalar_like(a, neutral), a)
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
    """Return the sum over axes of what is not NaN. Arguments as of `sum`."""
    return r.sum(_without_nan(a, "nansum", 0), axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None,
    keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the product over axes of what is not NaN. Arguments as of `prod`."""
    return r.prod(_without_nan(a, "nanprod", 1), axis, dtype, out, keepdims, initial, where)


def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """Return running sums along an axis, NaN counting as 0."""
    return running_totals.cumsum(_without_nan(a, "nancumsum", 0), axis, dtype, out)


def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """Return running products along an axis, NaN counting as 1."""
    return running_totals.cumprod(_without_nan(a, "nancumprod", 1), axis, dtype, out)


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
        return selected(none_left, scalar_like(result, math.nan), result)

    return reduce


_nanmax = _extremum("nanmax", r.max, -math.inf)
_nanmin = _extremum("nanmin", r.min, math.inf)


def nanmax(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the greatest element over axes that is not NaN; NaN where all are."""
    return _nanmax(a, axis, out, keepdims, initial, where)  # type: ignore[no-any-return]


def nanmin(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the least element over axes that is not NaN; NaN where all are."""
    return _nanmin(a, axis, out, keepdims, initial, where)  # type: ignore[no-any-return]


def _is_known_full(a: Any) -> bool:
    """Whether many elements can be looked at, and none is NaN."""
    hosts = elements_now(a) if a.aval.size >= _LARGE else None
    return hosts is not None and not np.isnan(hosts[0]).any()


def _counts(a: Any, axis: Any, keepdims: bool, where: Any, dtype: Any) -> Any:
    """Return how many elements are not NaN."""
    numbers = bind("not", _mask(a))
    if where is not None:
        mask = broadcasted(r.mask_of(where, "nanmean"), a.aval.shape)
        numbers = bind("and", numbers, mask)
    return r.sum(numbers, axis, dtype, keepdims=keepdims)


def nanmean(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None,
    keepdims: bool = False, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the mean over axes of what is not NaN; NaN where nothing is left."""
    no_out("nanmean", out)
    a = array_of(a, "nanmean")
    if not dtypes.is_inexact(a.aval.dtype):
        return averages.mean(a, axis, dtype, out, keepdims, where=where)
    total = nansum(wide(a), axis, dtype, None, keepdims, None, where)
    result = _over(total, _counts(a, axis, keepdims, where, total.dtype))
    return result if dtype is not None else converted(result, a.aval.dtype, a.aval.weak_type)


def nanvar(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, ddof: float = 0,
    keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the variance over axes of what is not NaN; NaN where too little is left."""
    (a,) = inexact("nanvar", a)
    result = _nanvar(wide(a), axis, out, ddof, keepdims, where, mean, correction)
    return _in_dtype(result, a, dtype)


def _nanvar(a: Any, axis: Any, out: Any, ddof: Any, keepdims: bool, where: Any, mean: Any,
            correction: Any, *, root: bool = False) -> Array:  # fmt: skip
    no_out("nanvar", out)
    ddof = ddof if correction is None else correction
    center = nanmean(a, axis, None, None, True, where) if mean is None else (
        wide(array_of(mean, "nanvar")))  # fmt: skip
    a, center = promoted("nanvar", a, center)
    # where NaN is left out the distance is 0, and so are its derivatives
    numbers = a if _is_known_full(a) else selected(_mask(a), broadcasted(center, a.aval.shape), a)
    squares = averages.squared_distance(numbers, center)
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
    total, divisor = [selected(enough, x, scalar_like(x, 1)) for x in (total, divisor)]
    quotient = bind("div", total, divisor)
    result = bind("sqrt", quotient) if root else quotient
    nothing = complex(math.nan, math.nan) if is_complex else math.nan
    return selected(enough, result, scalar_like(result, nothing))


def _in_dtype(result: Any, a: Any, dtype: Any) -> Array:
    """Return a spread of the elements of `a` in the dtype asked for, or in their own real one."""
    if dtype is not None:
        return cast(result, dtypes.requested_dtype(dtype, "nanvar"))
    return converted(result, dtypes.to_floating_dtype(a.aval.dtype), a.aval.weak_type)


def nanstd(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, ddof: float = 0,
    keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the standard deviation over axes of what is not NaN."""
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
        return selected(none_left, scalar_like(result, -1), result)

    return find


_nanargmax = _position("nanargmax", r.argmax, -math.inf)
_nanargmin = _position("nanargmin", r.argmin, math.inf)


def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the position of the greatest element that is not NaN; -1 where all are."""
    return _nanargmax(a, axis, out, keepdims)  # type: ignore[no-any-return]


def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the position of the least element that is not NaN; -1 where all are."""
    return _nanargmin(a, axis, out, keepdims)  # type: ignore[no-any-return]


complete(globals(), NAN_REDUCTIONS)


boundaries(globals())
