"""Softmax and kin: softmax, log_softmax, logsumexp, logmeanexp, without overflow.

The greatest element is taken off before powers are taken; it is a constant of the derivative, for
the result does not depend on it.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, overload

import xnp.numpy as xn
from xnp.numpy.dispatch import array_of, cast, dispatched, inexact
from xnp.numpy.reductions import mask_of, static_axis
from xnp.primitives.table import bind, broadcasted, scalar_like
from xprim import Array, dtypes
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Axis

__all__ = ["log_softmax", "logmeanexp", "logsumexp", "softmax"]

__dir__ = __all__.copy


def _where(condition: Any, x: Any, y: Any) -> Array:
    result: Array = xn.where(condition, x, y)
    return result


def _constant_of(x: Any) -> Array:
    return bind("stop_gradient", array_of(x, "stop_gradient"))


def _mask(x: Array, where: Any, value: float) -> Array:
    return x if where is None else _where(mask_of(where, "softmax"), x, scalar_like(x, value))


@dispatched(1)
def _softmax(x: Any, axis: Any) -> Array:
    (x,) = inexact("softmax", x)
    shifted = xn.exp(x - _constant_of(xn.max(x, axis, keepdims=True, initial=-math.inf)))
    return shifted / shifted.sum(axis, keepdims=True)


def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """Return e^x divided by its sum along an axis.

    Args:
      x: an array.
      axis: the axes to sum over.
      where: a mask of the elements that take part; the others are 0.

    Returns:
        An array of the shape of x, floating; 0 where an element is left out.

    Raises:
        TypeError: `x` is not an array; `where` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.softmax(xnp.array([0.0, 0.0]))
        Array([0.5, 0.5], dtype=float32)
    """
    if where is None:
        return _softmax(x, static_axis(axis, "softmax"))
    (x,) = inexact("softmax", x)
    result = _softmax(_mask(x, where, -math.inf), static_axis(axis, "softmax"))
    return _where(where, result, 0)


@dispatched(1)
def _log_softmax(x: Any, axis: Any) -> Array:
    (x,) = inexact("log_softmax", x)
    shifted: Array = x - _constant_of(xn.max(x, axis, keepdims=True, initial=-math.inf))
    return shifted - xn.log(xn.exp(shifted).sum(axis, keepdims=True))


def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """Return the logarithm of `softmax`. Arguments as of `softmax`; left out elements are -inf.

    Args:
        x: an array.
        axis: the axis or axes over which the exponentials sum to 1.
        where: booleans that say which elements count; None for all.

    Returns:
        An array of the shape of x, floating.

    Raises:
        TypeError: `x` is not an array; `where` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.log_softmax(xnp.array([0.0, 0.0])).round(3)
        Array([-0.693, -0.693], dtype=float32)
    """
    if where is None:
        return _log_softmax(x, static_axis(axis, "log_softmax"))
    (x,) = inexact("log_softmax", x)
    result = _log_softmax(_mask(x, where, -math.inf), static_axis(axis, "log_softmax"))
    return _where(where, result, -math.inf)


class _Offset(NamedTuple):
    """What is taken off before powers are taken.

    Attributes:
      finite: the greatest element along the axes, 0 where that is infinite or NaN.
      is_low: where no element is above -inf, so that the sum of the powers is 0.
    """

    finite: Array
    is_low: Array

    def added_to_log(self, total: Array) -> Array:
        """Return log(total) plus the offset: -inf where it is low, with derivative 0, not 0 / 0."""
        finite, is_low = [x.reshape(total.shape) for x in self]
        log = xn.log(_where(is_low, 1, total))
        return _where(is_low, -math.inf, log + finite)


def _offset(x: Array, axis: Any) -> _Offset:
    high = _constant_of(xn.max(x, axis, keepdims=True, initial=-math.inf))
    return _Offset(_where(xn.isfinite(high), high, 0), xn.equal(high, -math.inf))


@dispatched(1)
def _logsumexp(a: Any, axis: Any, keepdims: bool) -> Array:
    (a,) = inexact("logsumexp", a)
    real = a.real if dtypes.is_complex(a.dtype) else a
    high = _offset(real, axis)
    total = xn.exp(a - high.finite).sum(axis, keepdims=keepdims)
    return high.added_to_log(total)


@overload
def logsumexp(
    a: ArrayLike, axis: Axis = ..., b: ArrayLike | None = ..., keepdims: bool = ...,
    return_sign: Literal[False] = ..., where: ArrayLike | None = ...,
) -> Array: ...  # fmt: skip
@overload
def logsumexp(
    a: ArrayLike, axis: Axis = ..., b: ArrayLike | None = ..., keepdims: bool = ...,
    return_sign: Literal[True] = ..., where: ArrayLike | None = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def logsumexp(
    a: ArrayLike, axis: Axis = ..., b: ArrayLike | None = ..., keepdims: bool = ...,
    return_sign: bool = ..., where: ArrayLike | None = ...,
) -> Array | tuple[Array, Array]: ...  # fmt: skip
def logsumexp(
    a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False,
    return_sign: bool = False, where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:  # fmt: skip
    """Return log(sum(b e^a)) over axes, without overflow.

    Args:
      a: an array.
      axis: the axes to sum over; None for all.
      b: factors.
      keepdims: whether reduced axes stay with size 1.
      return_sign: whether to return the logarithm of the size of the sum, and its sign.
      where: a mask of the elements to take.

    Returns:
      An array of the floating dtype of the operands; -inf where there is no element but -inf,
      with the derivative 0.

    Raises:
        TypeError: an operand is not an array; `where` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.logsumexp(xnp.array([1000.0, 1000.0])).round(3)
        Array(1000.693, dtype=float32)
    """
    if b is None and where is None and not return_sign:
        return _logsumexp(a, static_axis(axis, "logsumexp"), keepdims)
    if b is None:
        (a,) = inexact("logsumexp", a)
        factors = scalar_like(a, 1)
    else:
        a, factors = inexact("logsumexp", a, b)
    a, factors = xn.broadcast_arrays(_mask(a, where, -math.inf), factors)
    kept: Array = xn.where(factors == 0, -math.inf, a)
    axis = static_axis(axis, "logsumexp")
    real = kept.real if dtypes.is_complex(kept.dtype) else kept
    high = _offset(real, axis)
    total = (factors * xn.exp(kept - high.finite)).sum(axis, keepdims=keepdims)
    if not return_sign:
        return high.added_to_log(total)
    return high.added_to_log(abs(total)), xn.sign(total)


def logmeanexp(
    x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """Return log(mean(e^x)) over axes, without overflow.

    Args:
        x: an array.
        axis: the axis or axes that go away; None for all.
        where: booleans that say which elements count; None for all.
        keepdims: whether they stay, with size 1.

    Returns:
        An array without the axes, floating.

    Raises:
        TypeError: `x` is not an array; `where` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.logmeanexp(xnp.array([1000.0, 1000.0]))
        Array(1000., dtype=float32)
    """
    (x,) = inexact("logmeanexp", x)
    mask = cast(array_of(True if where is None else where, "logmeanexp"), dtypes.bool_)
    count = xn.sum(broadcasted(mask, x.aval.shape), axis, x.dtype, keepdims=keepdims)
    total: Array = logsumexp(x, axis, keepdims=keepdims, where=where)
    return total - xn.log(count)


boundaries(globals())
