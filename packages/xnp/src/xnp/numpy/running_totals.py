"""Sums and products of all elements up to each: cumsum, cumprod and their newer forms.

Dtypes are chosen as by `reductions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xnp.docstrings import complete
from xnp.docstrings.array_reductions import RUNNING_TOTALS
from xnp.numpy.dispatch import dispatched
from xnp.numpy.indexing import no_out
from xnp.numpy.promoting import array_of, axis_of, bind, cast, converted, filled, reshaped
from xnp.numpy.reductions import accumulation_dtype, requested, static_axis
from xprim import Array, dtypes
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum"]

__dir__ = __all__.copy


def _running(primitive: str, operation: str) -> Callable[..., Array]:
    @dispatched(1)
    def written(a: Any, axis: Any, dtype: Any, promotes: bool) -> Array:
        a = array_of(a, operation)
        if axis is None:
            a, dim = reshaped(a, (a.aval.size,)), 0
        else:
            dim = axis_of(axis, a.aval.ndim, operation)
        if dtype is not None:
            a = cast(a, dtype)
            if dtypes.is_bool(a.aval.dtype):  # of counts: whether any (sum) or all (prod) hold
                counts = cast(a, dtypes.python_scalar_dtype(int))
                return cast(bind(primitive, counts, axis=dim, reverse=False), dtypes.bool_)
        elif dtypes.is_bool(a.aval.dtype) or promotes:
            a = converted(a, accumulation_dtype(a.aval.dtype), a.aval.weak_type)
        return bind(primitive, a, axis=dim, reverse=False)

    return written


_cumsum, _cumprod = _running("cumsum", "cumsum"), _running("cumprod", "cumprod")


def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """Return the sums of all elements up to each along an axis; None runs over all, flattened."""
    no_out("cumsum", out)
    return _cumsum(a, static_axis(axis, "cumsum"), requested(dtype, "cumsum"), False)


def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """Return the products of all elements up to each along an axis; None runs over all."""
    no_out("cumprod", out)
    return _cumprod(a, static_axis(axis, "cumprod"), requested(dtype, "cumprod"), False)


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
    result = front(x, axis, requested(dtype, "cumulative_sum"), True)
    if not include_initial:
        return result
    shape = tuple([1 if d == axis else n for d, n in enumerate(x.aval.shape)])
    first = filled(shape, one, result.aval.dtype)
    return bind("concatenate", first, result, dimension=axis)


def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike = None,
    include_initial: bool = False,
) -> Array:  # fmt: skip
    """Return the sums of all elements up to each along an axis, with a 0 in front if asked for."""
    return _cumulative(_cumsum, x, axis, dtype, include_initial, 0)


def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike = None,
    include_initial: bool = False,
) -> Array:  # fmt: skip
    """Return the products of all elements up to each along an axis, with a 1 in front if asked."""
    return _cumulative(_cumprod, x, axis, dtype, include_initial, 1)


complete(globals(), RUNNING_TOTALS)


boundaries(globals())
