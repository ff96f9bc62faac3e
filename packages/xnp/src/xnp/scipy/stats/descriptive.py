"""What samples tell: mode, rankdata, sem."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import xnp.numpy as xn
from xnp import lax
from xnp.numpy.promoting import array_of, axis_of, inexact
from xprim import Array, dtypes
from xprim.errors import message
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["ModeResult", "mode", "rankdata", "sem"]

__dir__ = __all__.copy


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Array
    count: Array  # type: ignore[assignment]  # as SciPy has it, in place of the method of tuples


def _check_nan_policy(operation: str, policy: str) -> None:
    if policy not in ("propagate", "omit", "raise"):
        raise ValueError(message(
            operation, "there is no such nan_policy.", got=f"{policy!r}", expected="'propagate'",
        ))  # fmt: skip
    if policy != "propagate":
        raise ValueError(message(
            operation, "results whose shape or error depends on values are not for arrays.",
            got=f"nan_policy={policy!r}", expected="'propagate'",
        ))  # fmt: skip


def _along(x: Array, axis: int | None, operation: str) -> tuple[Array, int]:
    """Return an array that has an axis, and its number; without an axis all is one vector."""
    if axis is None or not x.ndim:
        return x.reshape((-1,)), 0
    return x, axis_of(axis, x.ndim, operation)


def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """Return the most frequent value along an axis, the least of several, and its count.

    Args:
      a: an array.
      axis: None for all elements.
      nan_policy: must be "propagate": NaN counts as a value.
      keepdims: whether the axis stays, with size 1.

    Returns:
      A named tuple of `mode`, of the dtype of `a`, and `count`, whole numbers; of
      nothing NaN and 0.
    """
    _check_nan_policy("mode", nan_policy)
    x = array_of(a, "mode")
    rank = x.ndim
    x, dim = _along(x, axis, "mode")
    x = xn.moveaxis(x, dim, -1)
    if not x.shape[-1]:
        x = inexact("mode", x)[0]
        value = xn.full(x.shape[:-1], math.nan, x.dtype)
        count = xn.zeros(x.shape[:-1], dtypes.canonicalize_dtype(int))
    else:
        ordered = xn.sort(x, axis=-1)
        same = ordered[..., :, None] == ordered[..., None, :]
        if dtypes.is_inexact(x.dtype):
            missing = xn.isnan(ordered)
            same = same | (missing[..., :, None] & missing[..., None, :])
        counts = same.sum(-1)
        best = counts.argmax(-1)[..., None]  # the first, so the least of equals
        value = xn.take_along_axis(ordered, best, -1)[..., 0]
        count = xn.take_along_axis(counts, best, -1)[..., 0]
    if keepdims:
        shape = (1,) * rank if axis is None else None
        value, count = (
            v.reshape(shape) if shape is not None else xn.expand_dims(v, dim)
            for v in (value, count)
        )
    return ModeResult(value, count)


def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """Return the ranks of elements, from 1 on.

    Args:
      a: an array.
      method: what equal elements get: the "average" of their places, their "min" or "max", places
        counted without gaps ("dense"), or each its own ("ordinal").
      axis: None for all elements in one order, which gives a vector.
      nan_policy: must be "propagate": where there is a NaN, all ranks are NaN.

    Returns:
      Floats.

    Example:
      >>> import numpy as np
      >>> rankdata(np.array([3.0, 1.0, 3.0])).tolist()
      [2.5, 1.0, 2.5]
    """
    _check_nan_policy("rankdata", nan_policy)
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(message(
            "rankdata", "there is no such method.", got=f"{method!r}",
            expected="'average', 'min', 'max', 'dense' or 'ordinal'",
        ))  # fmt: skip
    x, dim = _along(array_of(a, "rankdata"), axis, "rankdata")
    x = xn.moveaxis(x, dim, -1)
    dtype = dtypes.canonicalize_dtype(float)
    order = xn.argsort(x, axis=-1, stable=True)
    places = xn.argsort(order, axis=-1, stable=True)
    ordered = xn.take_along_axis(x, order, -1)
    size = x.shape[-1]
    index = xn.broadcast_to(xn.arange(size), x.shape)
    if method == "ordinal" or not size:
        ranks = (index + 1).astype(dtype)
    else:
        starts = xn.concatenate(
            [xn.ones((*x.shape[:-1], 1), bool), ordered[..., 1:] != ordered[..., :-1]], -1
        )
        ranks = _ranks_of_runs(method, starts, index).astype(dtype)
    ranks = xn.take_along_axis(ranks, places, -1)
    if dtypes.is_inexact(x.dtype):
        ranks = xn.where(xn.isnan(x).any(-1, keepdims=True), math.nan, ranks)
    return xn.moveaxis(ranks, -1, dim)


def _ranks_of_runs(method: str, starts: Any, index: Any) -> Any:
    """Return ranks in sorted order, given where runs of equal elements start."""
    if method == "dense":
        return xn.cumsum(starts, axis=-1)
    size = index.shape[-1]
    first = lax.cummax(xn.where(starts, index, 0), axis=index.ndim - 1)
    ends = xn.concatenate([starts[..., 1:], xn.ones((*starts.shape[:-1], 1), bool)], -1)
    backwards = xn.where(ends, index, size)[..., ::-1]
    last = lax.cummin(backwards, axis=index.ndim - 1)[..., ::-1]
    return {"min": first + 1, "max": last + 1, "average": (first + last) / 2 + 1}[method]


def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """Return the standard error of the mean, std(a, ddof) / sqrt(n).

    Args:
      a: an array.
      axis: None for all elements.
      ddof: what is taken off the number of elements in the standard deviation.
      nan_policy: "propagate", or "omit" to leave NaN out.
      keepdims: whether the axis stays, with size 1.
    """
    (x,) = inexact("sem", a)
    if nan_policy == "omit":
        count = (~xn.isnan(x)).sum(axis, keepdims=keepdims)
        result: Array = xn.nanstd(x, axis, ddof=ddof, keepdims=keepdims) / xn.sqrt(
            count.astype(x.dtype)
        )
        return result
    _check_nan_policy("sem", nan_policy)
    size = x.size if axis is None else x.shape[axis_of(axis, x.ndim, "sem")]
    deviation = xn.std(x, axis, ddof=ddof, keepdims=keepdims)
    return _scaled(deviation, math.sqrt(size) if size else 1)


def _scaled(x: Any, divisor: float) -> Array:
    result: Array = x / divisor
    return result


boundaries(globals())
