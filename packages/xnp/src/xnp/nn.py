"""Functions of neural networks, from activations to attention.

Their formulas have the right derivatives also where a branch is chosen: what a `where` discards is
computed on harmless values (relu and its kin have the derivative 0 at 0).

Activations: relu, relu6, leaky_relu, elu, celu, selu, gelu, glu, silu,
swish, mish, sigmoid, hard_sigmoid, hard_silu, hard_swish, hard_tanh,
log_sigmoid, soft_sign, softplus, sparse_plus, sparse_sigmoid, squareplus,
tanh, identity.

Softmax, normalisation, attention: softmax, log_softmax, logsumexp,
logmeanexp, log1mexp, standardize, one_hot, dot_product_attention,
scaled_matmul.

`help(nn.softmax)` says what a name does.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np

import xnp.numpy as xn
from xnp import lax
from xnp.numpy import dispatch
from xnp.numpy.creation import asarray
from xnp.numpy.dispatch import array_of, axis_of, cast, dispatch_on, inexact, promote, wide
from xnp.numpy.reductions import mask_of, static_axis
from xnp.placing import place
from xnp.primitives.table import bind, broadcast_to, scalar_like, select
from xprim import Array, axis_size, dtypes, get_primitive, promotion
from xprim.errors import message
from xprim.requirements import require, require_choice, static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Axis, DTypeLike, ShardingLike
from xtree.namespaces import late_import, namespace

__all__ = [
    "dot_product_attention", "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu",
    "hard_swish", "hard_tanh", "identity", "leaky_relu", "log1mexp", "log_sigmoid",
    "log_softmax", "logmeanexp", "logsumexp", "mish", "one_hot", "relu", "relu6",
    "scaled_matmul", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip


# ----------------------------------------------------------------------------------- activations

tanh = xn.tanh


def _where(condition: Any, x: Any, y: Any) -> Array:
    result: Array = xn.where(condition, x, y)
    return result


_FAR = 1000.0  # where the tails of e^-x, tanh and erfc are 0 or 1 in all formats


def _linear_beyond(far: float, x: Any, f: Callable[[Any], Array]) -> Array:
    """Return f(x) for an f that is x far above 0 and constant far below: so at infinities, too.

    There a formula has products of infinities and zeros, in its derivatives if not in its value.
    """
    if dtypes.is_complex(x.dtype):
        return f(x)
    far = min(far, float(dtypes.finfo(x.dtype).max))
    # "ge": at the bound itself half the derivative is that of the bound, which is constant
    return _where(bind("ge", x, scalar_like(x, far)), x, f(_between(far, x)))


def _round_once(f: Callable[[Any], Array], x: Any) -> Array:
    """Return f(x), for floats of fewer than 32 bits in float32 until the result is rounded."""
    return dispatch.convert_to(f(wide(x)), x.aval.dtype, x.aval.weak_type)


def _between(far: float, x: Any) -> Any:
    """Return x moved into [-far, far]; NaN stays, and so does its derivative."""
    return bind("min", bind("max", x, scalar_like(x, -far)), scalar_like(x, far))


def _check_ordered(name: str, x: Any, floating: bool = True) -> Array:
    """Return the operand of a function that compares: an array, which is not complex.

    Args:
      name: the function that errors name.
      x: the operand.
      floating: whether integers become the default float dtype.
    """
    (found,) = inexact(name, x) if floating else promote(name, x)
    require(
        not dtypes.is_complex(found.aval.dtype), name,
        "compares numbers, and complex ones have no order.", got=found, error=TypeError,
    )  # fmt: skip
    return found


def identity(x: ArrayLike) -> Array:
    """Return x.

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.identity(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([-1.,  0.,  2.], dtype=float32)
    """
    return array_of(x, "identity")


@dispatch_on(1)
def relu(x: ArrayLike) -> Array:
    """Return max(x, 0); the derivative at 0 is 0, and that at NaN too.

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.relu(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([0., 0., 2.], dtype=float32)
    """
    x = _check_ordered("relu", x, floating=False)
    if dtypes.is_floating(x.aval.dtype):
        return bind("relu", x)
    zero = scalar_like(x, 0)
    return select(bind("gt", x, zero), x, bind("max", bind("stop_gradient", x), zero))


@dispatch_on(1)
def relu6(x: ArrayLike) -> Array:
    """Return min(max(x, 0), 6).

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.relu6(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([0., 0., 2.], dtype=float32)
    """
    x = _check_ordered("relu6", x)
    six = scalar_like(x, 6)
    return select(bind("ge", x, six), six, relu(x))


@dispatch_on(1)
def sigmoid(x: ArrayLike) -> Array:
    """Return 1 / (1 + e^-x).

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.sigmoid(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([0.269, 0.5  , 0.881], dtype=float32)
    """
    return bind("logistic", *inexact("sigmoid", x))


@dispatch_on(1)
def softplus(x: ArrayLike) -> Array:
    """Return log(1 + e^x).

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.softplus(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([0.313, 0.693, 2.127], dtype=float32)
    """
    return xn.logaddexp(x, 0)


@dispatch_on(1)
def log_sigmoid(x: ArrayLike) -> Array:
    """Return log(sigmoid(x)) = -softplus(-x).

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.log_sigmoid(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([-1.313, -0.693, -0.127], dtype=float32)
    """
    (x,) = inexact("log_sigmoid", x)
    return -softplus(-array_of(x, "log_sigmoid"))


@dispatch_on(1)
def silu(x: ArrayLike) -> Array:
    """Return x sigmoid(x).

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.silu(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([-0.269,  0.   ,  1.762], dtype=float32)
    """
    (x,) = inexact("silu", x)
    if dtypes.is_complex(x.dtype):
        return bind("mul", x, bind("logistic", x))
    return bind("silu", x)


swish = silu


@dispatch_on(1)
def mish(x: ArrayLike) -> Array:
    """Return x tanh(softplus(x)).

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.mish(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([-0.303,  0.   ,  1.944], dtype=float32)
    """
    (x,) = inexact("mish", x)
    return _round_once(lambda x: _linear_beyond(_FAR, x, _mish), x)


def _mish(near: Array) -> Array:
    result: Array = near * xn.tanh(softplus(near))
    return result


@dispatch_on(1)
def soft_sign(x: ArrayLike) -> Array:
    """Return x / (1 + |x|).

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.soft_sign(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([-0.5  ,  0.   ,  0.667], dtype=float32)
    """
    return _round_once(_soft_sign, *inexact("soft_sign", x))


def _soft_sign(x: Any) -> Array:
    # the largest number stands for infinity: both give 1
    if dtypes.is_complex(x.dtype):
        quotient: Array = x / (abs(x) + 1)
        return quotient
    near = _between(float(dtypes.finfo(x.dtype).max), x)
    size = abs(near)
    rest = 1 / (size + 1)
    # 1 - rest beyond 1, whose derivative rest^2 is not a difference
    return _where(size > 1, _where(near < 0, rest - 1, 1 - rest), near * rest)


@dispatch_on(1)
def hard_tanh(x: ArrayLike) -> Array:
    """Return x moved into [-1, 1].

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.hard_tanh(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([-1.,  0.,  1.], dtype=float32)
    """
    x = _check_ordered("hard_tanh", x, floating=False)
    below = x if dtypes.is_unsigned_integer(x.dtype) else xn.where(x < -1, -1, x)
    return _where(x > 1, 1, below)


@dispatch_on(1)
def hard_sigmoid(x: ArrayLike) -> Array:
    """Return relu6(x + 3) / 6.

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.hard_sigmoid(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([0.333, 0.5  , 0.833], dtype=float32)
    """
    return _round_once(lambda x: relu6(x + 3) / 6, _check_ordered("hard_sigmoid", x))


@dispatch_on(1)
def hard_silu(x: ArrayLike) -> Array:
    """Return x hard_sigmoid(x).

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.hard_silu(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([-0.333,  0.   ,  1.667], dtype=float32)
    """
    return _round_once(_hard_silu, _check_ordered("hard_silu", x))


def _hard_silu(x: Any) -> Array:
    inner = bind("lt", bind("abs", x), scalar_like(x, 3))
    middle = select(inner, x, scalar_like(x, 0))  # which has no products of infinities and zeros
    return select(inner, middle * hard_sigmoid(middle), relu(x))


hard_swish = hard_silu


def _expm1_below_zero(x: Any) -> Array:
    """Return e^x - 1 for x < 0; where x is above zero, the value at 0, so that none overflows."""
    return bind("expm1", select(bind("gt", x, scalar_like(x, 0)), scalar_like(x, 0), x))


@dispatch_on(2)
def _elu(x: Any, alpha: Any) -> Array:
    x = _check_ordered("elu", x)
    return _where(x > 0, x, alpha * _expm1_below_zero(x))


def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Return x above 0 and alpha (e^x - 1) below.

    Args:
        x: an array of any shape, or a number.
        alpha: how far down the result goes: a number, or an array that broadcasts.

    Returns:
        An array of the shape of x, floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.elu(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([-0.632,  0.   ,  2.   ], dtype=float32)
    """
    return _elu(x, alpha)


def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Return x above 0 and alpha (e^(x / alpha) - 1) below.

    Args:
        x: an array of any shape, or a number.
        alpha: how far down the result goes: a number, or an array that broadcasts.

    Returns:
        An array of the shape of x, floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.celu(xnp.array([-1.0, 0.0, 2.0]), alpha=2.0).round(3)
        Array([-0.787,  0.   ,  2.   ], dtype=float32)
    """
    x, alpha = inexact("celu", _check_ordered("celu", x), alpha)
    dispatch.check_ranks("celu", x, alpha)
    above = x > 0
    scale = xn.where(above, 1, alpha)  # of any value, NaN too, it has no part in what is above 0
    return _where(above, x, scale * xn.expm1(xn.where(above, 0, x) / scale))


@dispatch_on(1)
def selu(x: ArrayLike) -> Array:
    """Return scale elu(x, alpha) with the constants that keep mean and variance.

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017.

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.selu(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([-1.111,  0.   ,  2.101], dtype=float32)
    """
    return _round_once(_selu, _check_ordered("selu", x))


def _selu(x: Any) -> Array:
    return 1.0507009873554804934193349852946 * _elu(x, 1.6732632423543772848170429916717)


@dispatch_on(2)
def _leaky_relu(x: Any, factor: Any) -> Array:
    x = _check_ordered("leaky_relu", x)
    return _where(x >= 0, x, factor * x)


def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """Return x above 0 and negative_slope x below.

    Args:
        x: an array of any shape, or a number.
        negative_slope: the derivative below 0.

    Returns:
        An array of the shape of x, floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.leaky_relu(xnp.array([-1.0, 0.0, 2.0]), 0.1).round(3)
        Array([-0.1,  0. ,  2. ], dtype=float32)
    """
    return _leaky_relu(x, negative_slope)


@dispatch_on(1)
def _gelu(x: Any, approximate: bool) -> Array:
    (x,) = inexact("gelu", x)
    if not approximate:
        return _round_once(lambda x: _linear_beyond(_FAR, x, _gelu_by_erfc), x)
    if not dtypes.is_complex(x.dtype):
        return bind("gelu_by_tanh", x)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x**3))
    return bind("mul", x, 0.5 * (1.0 + xn.tanh(inner)))


def _gelu_by_erfc(x: Array) -> Array:
    half: Array = 0.5 * x
    return half * bind("erfc", -x * math.sqrt(0.5))


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Return x times the normal distribution function of x, or its approximation by tanh.

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.

    Args:
        x: an array of any shape, or a number; integers become the default float.
        approximate: whether the tanh stands for the distribution function.

    Returns:
        An array of the shape of x, floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.gelu(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([-0.159,  0.   ,  1.955], dtype=float32)
    """
    return _gelu(x, bool(approximate))


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Return the first half along an axis times the sigmoid of the second.

    Args:
        x: an array whose size along the axis is even.
        axis: the axis that is halved.

    Returns:
        An array of half the size along the axis.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.glu(xnp.array([1.0, 2.0, 0.0, 0.0]))
        Array([0.5, 1. ], dtype=float32)
    """
    x = array_of(x, "glu")
    axis = axis_of(axis, x.aval.ndim, "glu")
    if x.aval.shape[axis] % 2:
        raise ValueError(f"glu: axis {axis} must be of even size, got {x.aval.shape[axis]}.")
    first, second = xn.split(x, 2, axis)
    return first * sigmoid(second)


@dispatch_on(2)
def _squareplus(x: Any, b: Any) -> Array:
    x, b = inexact("squareplus", x, b)
    return _round_once(lambda x: _squareplus_beyond(x, wide(b)), x)


def _squareplus_beyond(x: Any, b: Any) -> Array:
    if dtypes.is_complex(x.dtype):
        return _squareplus_formula(x, b)
    far = math.sqrt(float(dtypes.finfo(x.dtype).max)) / 2  # beyond, the square may overflow
    is_plain = xn.isfinite(b)
    near = _where(is_plain, _between(far, x), x)
    is_far, is_low = is_plain & (x >= far), is_plain & (x <= -far)
    low = -b / 4 / _where(is_low, x, -1.0)
    return _where(is_far, x, _where(is_low, low, _squareplus_formula(near, b)))


def _squareplus_formula(x: Any, b: Any) -> Array:
    """Return (x + r) / 2 with r = sqrt(x^2 + b), and b / (2 (r - x)) where x + r would cancel."""
    r = xn.sqrt(xn.square(x) + b)
    if dtypes.is_complex(x.dtype):
        total: Array = x + r
        return total / 2
    twice: Array = r + xn.abs(x)
    is_below = x < 0
    return _where(is_below, b / 2 / _where(is_below, twice, 1.0), twice / 2)


def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Return (x + sqrt(x^2 + b)) / 2.

    Args:
        x: an array of any shape, or a number.
        b: how round the corner is; 0 makes it `relu`.

    Returns:
        An array of the shape of x, floating.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.squareplus(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([0.618, 1.   , 2.414], dtype=float32)
    """
    if isinstance(b, int | float) and b == 0 and not np.iscomplexobj(x):
        return relu(inexact("squareplus", x)[0])
    return _squareplus(x, b)


@dispatch_on(1)
def sparse_plus(x: ArrayLike) -> Array:
    """Return 0 below -1, x above 1, and (x + 1)^2 / 4 between.

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.sparse_plus(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    x = _check_ordered("sparse_plus", x)
    middle = xn.where(abs(x) >= 1, 0, x)  # NaN stays
    return _where(x <= -1, 0, xn.where(x >= 1, x, (middle + 1) ** 2 / 4))


@dispatch_on(1)
def sparse_sigmoid(x: ArrayLike) -> Array:
    """Return (x + 1) / 2 moved into [0, 1].

    Args:
        x: an array of any shape, or a number; integers become the default float where
            the result is not whole.

    Returns:
        An array of the shape of x, and of its dtype where that is floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.sparse_sigmoid(xnp.array([-1.0, 0.0, 2.0])).round(3)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    x = _check_ordered("sparse_sigmoid", x)
    return 0.5 * xn.clip(x + 1, 0, 2)


@dispatch_on(1)
def log1mexp(x: ArrayLike) -> Array:
    """Return log(1 - e^-x) for x > 0, by the form that is exact on either side of log 2.

    Source: Maechler, Accurately computing log(1 - exp(-|a|)), 2012.

    Args:
        x: a positive array, or a number.

    Returns:
        An array of the shape of x, floating.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.log1mexp(xnp.array([1.0, 2.0])).round(3)
        Array([-0.459, -0.145], dtype=float32)
    """
    (x,) = inexact("log1mexp", x)
    small = x < math.log(2)
    low = xn.log(-xn.expm1(-xn.where(small, x, 1)))
    high = xn.log1p(-xn.exp(-xn.where(small, 1, x)))
    return _where(small, low, high)


# --- data ---------------------------------------------------------------------------------------


def standardize(
    x: ArrayLike, axis: Axis = -1, mean: ArrayLike | None = None, variance: ArrayLike | None = None,
    epsilon: float | Array = 1e-5, where: ArrayLike | None = None, *, algorithm: str = "stable",
) -> Array:  # fmt: skip
    """Return (x - mean) / sqrt(variance + epsilon) over axes.

    Mean and variance are taken in float32 at least. Where they are not given, the result for
    `x + c` is that for `x` up to the rounding of the sum itself: constants give exactly 0.

    Args:
      x: an array.
      axis: the axes of mean and variance.
      mean: the mean, if known.
      variance: the variance, if known.
      epsilon: what keeps the divisor from zero.
      where: a mask of the elements that mean and variance are taken over.
      algorithm: of the variance: "stable" takes mean((x - mean)^2); "fast" takes mean(x^2) -
        mean(x)^2, but at least 0, which reads `x` once less, and loses all digits where the mean is
        a few thousand times the standard deviation (JAX's default).

    Returns:
        An array of the shape of x, floating.

    Raises:
        TypeError: `x` is not an array; `where` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.standardize(xnp.array([1.0, 3.0])).round(3)
        Array([-1.,  1.], dtype=float32)
    """
    require(
        algorithm in ("fast", "stable"), "standardize",
        "algorithm must be 'fast' or 'stable', got {!r}.", algorithm,
    )  # fmt: skip
    (x,) = inexact("standardize", x)
    axis, aval = static_axis(axis, "standardize"), x.aval
    x = wide(x)

    def average_over(values: Any) -> Array:
        return xn.mean(values, axis, keepdims=True, where=where)

    average: Any = mean
    axes = dispatch.dims_and_names(axis, aval.ndim, "standardize")
    # maybe along the axes, where `center` takes none
    is_cut = aval.type_sharding is not None or (axes and type(axes[-1]) is str)
    if mean is None and where is None and algorithm == "stable" and not is_cut:
        distance = bind("center", x, axes=axes)
    elif mean is None:
        average = average_over(x)
        distance = x - average
        # What the rounding of the mean left. It is 0 but for that, and so are its derivatives.
        distance = distance - bind("stop_gradient", average_over(distance))
    else:
        distance = x - average
    if variance is None and algorithm == "stable":
        variance = average_over(xn.square(abs(distance)))
    elif variance is None:
        variance = xn.maximum(average_over(xn.square(abs(x))) - xn.square(xn.abs(average)), 0)
    factor = bind("rsqrt", array_of(xn.add(variance, epsilon), "standardize"))
    result: Array = distance * factor
    return dispatch.convert_to(result, aval.dtype, aval.weak_type)


def one_hot(
    x: ArrayLike, num_classes: int, *, dtype: DTypeLike = None, axis: int | str = -1,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Return a vector for each number in `x` that is 1 at that position and 0 elsewhere.

    Args:
      x: integers; those outside of the classes give zeros.
      num_classes: the size of the vectors.
      dtype: of the result; None for the default floating dtype.
      axis: where the new dimension stands in the result; or the name of a mapped axis of
        `num_classes` members, of which each gets its own number.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
        An array with one dimension more than x; of the shape of x over a named axis.

    Raises:
        TypeError: `x` is not an array; `dtype` names no dtype; `out_sharding` is not a sharding.
        ValueError: `num_classes` is negative; `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import nn
        >>> nn.one_hot(xnp.array([0, 2]), 3)
        Array([[1., 0., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    x = asarray(x)
    wanted = dtypes.python_scalar_dtype(float) if dtype is None else (
        dtypes.requested_dtype(dtype, "one_hot"))  # fmt: skip
    count = static_int(num_classes, "one_hot", "num_classes")
    if type(axis) is str:
        size = axis_size(axis, "one_hot")
        require(size == count, "one_hot", "the axis {!r} has {} members for {} classes.", axis,
                size, count)  # fmt: skip
        member = dispatch.collective("axis_index", "one_hot")(axis)
        return place(cast(xn.equal(x, member), wanted), out_sharding, "one_hot")
    axis = axis_of(axis, x.aval.ndim + 1, "one_hot")
    shape = (*x.aval.shape[:axis], count, *x.aval.shape[axis:])
    kept = tuple([d for d in range(len(shape)) if d != axis])
    x = bind("broadcast_in_dim", x, shape=shape, broadcast_dimensions=kept)
    classes = bind("iota", dtype=x.aval.dtype, shape=shape, dimension=axis)
    return place(cast(bind("eq", x, classes), wanted), out_sharding, "one_hot")


def scaled_matmul(
    lhs: ArrayLike, rhs: ArrayLike, lhs_scales: ArrayLike, rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:  # fmt: skip
    """Return the products of matrices in narrow formats whose blocks have scales.

    Args:
      lhs: elements of shape (b, m, k).
      rhs: elements of shape (b, n, k): the last dimension is contracted.
      lhs_scales: scales of shape (b, m, s), each for k // s elements in a row.
      rhs_scales: scales of shape (b, n, s).
      preferred_element_type: the dtype of the work and of the result.

    Returns:
      An array of shape (b, m, n).

    Raises:
        TypeError: an operand is not an array; `preferred_element_type` names no dtype.

    Example:
      >>> import xnp
      >>> x, scales = xnp.ones((1, 1, 4)), xnp.array([[[0.5, 2.0]]])
      >>> scaled_matmul(x, x, scales, scales).tolist()
      [[[8.5]]]

    Differentiable in: lhs, rhs and their scales, where these are of a floating dtype.
    """
    named = {"lhs": lhs, "rhs": rhs, "lhs_scales": lhs_scales, "rhs_scales": rhs_scales}
    x, y, s, t = [array_of(value, f"scaled_matmul: {name}") for name, value in named.items()]
    if any(a.ndim != 3 for a in (x, y, s, t)) or s.shape[-1] != t.shape[-1]:
        got = ", ".join([f"{n}: {a.aval.str_long()}" for n, a in zip(named, (x, y, s, t),
                                                                     strict=True)])  # fmt: skip
        raise ValueError(message(
            "scaled_matmul", "the operands do not fit.", got=got,
            expected="shapes (b, m, k), (b, n, k), (b, m, s) and (b, n, s)",
        ))  # fmt: skip
    return lax.scaled_dot(
        x, y, lhs_scale=s, rhs_scale=t, dimension_numbers=(((2,), (2,)), ((0,), (0,))),
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


# --------------------------------------------------------------------------------------- softmax
# Softmax and kin, without overflow.
#
# The greatest element is subtracted before exponentials are computed; it is a constant of the
# derivative, for the result does not depend on it.


def _constant_of(x: Any) -> Array:
    return bind("stop_gradient", array_of(x, "stop_gradient"))


def _mask(x: Array, where: Any, value: float) -> Array:
    return x if where is None else _where(mask_of(where, "softmax"), x, scalar_like(x, value))


@dispatch_on(1)
def _softmax(x: Any, axis: Any) -> Array:
    (x,) = inexact("softmax", x)
    shifted = xn.exp(x - xn.max(_constant_of(x), axis, keepdims=True, initial=-math.inf))
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


@dispatch_on(1)
def _log_softmax(x: Any, axis: Any) -> Array:
    (x,) = inexact("log_softmax", x)
    shifted: Array = x - xn.max(_constant_of(x), axis, keepdims=True, initial=-math.inf)
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

    def add_offset_to_log(self, total: Array) -> Array:
        """Return log(total) plus the offset: -inf where it is low, with derivative 0, not 0 / 0."""
        finite, is_low = [x.reshape(total.shape) for x in self]
        log = xn.log(_where(is_low, 1, total))
        return _where(is_low, -math.inf, log + finite)


def _offset(x: Array, axis: Any) -> _Offset:
    high = xn.max(_constant_of(x), axis, keepdims=True, initial=-math.inf)
    return _Offset(_where(xn.isfinite(high), high, 0), xn.equal(high, -math.inf))


@dispatch_on(1)
def _logsumexp(a: Any, axis: Any, keepdims: bool) -> Array:
    (a,) = inexact("logsumexp", a)
    real = a.real if dtypes.is_complex(a.dtype) else a
    high = _offset(real, axis)
    total = xn.exp(a - high.finite).sum(axis, keepdims=keepdims)
    return high.add_offset_to_log(total)


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
        return high.add_offset_to_log(total)
    return high.add_offset_to_log(abs(total)), xn.sign(total)


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
    count = xn.sum(broadcast_to(mask, x.aval.shape), axis, x.dtype, keepdims=keepdims)
    total: Array = logsumexp(x, axis, keepdims=keepdims, where=where)
    return total - xn.log(count)


# ------------------------------------------------------------------------------------- attention
# Attention, of one or several heads, with masks of the usual kinds.
#
# It is written in array functions, so it differentiates, batches and compiles as they do; scores
# and their softmax are computed in float32 at least. In programs for CUDA it is cuDNN's, where that
# is requested or fits (`xnp.primitives.attention`).

_cudnn = late_import("xnp.primitives.attention", "few programs are for CUDA")
_logger = logging.getLogger("xnp")

# Nearly the least float32: no infinity, whose softmax is NaN.
_HIDDEN = -0.7 * 3.4028234663852886e38


@overload
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = ...,
    mask: ArrayLike | None = ..., *, scale: float | None = ..., is_causal: bool = ...,
    query_seq_lengths: ArrayLike | None = ..., key_value_seq_lengths: ArrayLike | None = ...,
    local_window_size: int | tuple[int, int] | None = ..., implementation: str | None = ...,
    dropout_rate: float = ..., dropout_seed: int = ..., return_residual: Literal[False] = ...,
) -> Array: ...  # fmt: skip
@overload
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = ...,
    mask: ArrayLike | None = ..., *, scale: float | None = ..., is_causal: bool = ...,
    query_seq_lengths: ArrayLike | None = ..., key_value_seq_lengths: ArrayLike | None = ...,
    local_window_size: int | tuple[int, int] | None = ..., implementation: str | None = ...,
    dropout_rate: float = ..., dropout_seed: int = ..., return_residual: Literal[True],
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = ...,
    mask: ArrayLike | None = ..., *, scale: float | None = ..., is_causal: bool = ...,
    query_seq_lengths: ArrayLike | None = ..., key_value_seq_lengths: ArrayLike | None = ...,
    local_window_size: int | tuple[int, int] | None = ..., implementation: str | None = ...,
    dropout_rate: float = ..., dropout_seed: int = ..., return_residual: bool,
) -> Array | tuple[Array, Array]: ...  # fmt: skip
def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None,
    mask: ArrayLike | None = None, *, scale: float | None = None, is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None, key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None, implementation: str | None = None,
    dropout_rate: float = 0.0, dropout_seed: int = 42, return_residual: bool = False,
) -> Array | tuple[Array, Array]:  # fmt: skip
    """Return the averages of values, weighted by softmax(scale query . key + bias).

    Args:
      query: an array (B, T, N, H) of T queries for each of N heads; B may be left out everywhere.
      key: an array (B, S, K, H) of S keys; each of the K heads serves N / K heads of queries.
      value: an array (B, S, K, H).
      bias: what is added to the scores, of a shape that broadcasts to (B, N, T, S).
      mask: which keys a query sees, booleans that broadcast to (B, N, T, S).
      scale: the factor of the scores; None for 1 / sqrt(H).
      is_causal: whether query t sees the keys up to t only.
      query_seq_lengths: integers (B,), how many queries count; the results of others are 0.
      key_value_seq_lengths: integers (B,), how many keys are seen.
      local_window_size: how many keys before and behind its own place a query sees: an int or two.
      implementation: "xla" for XLA's operations; "cudnn" for cuDNN's attention, which there is in
        programs for CUDA alone, for float16 and bfloat16; None for cuDNN's in programs for CUDA
        where it serves, and XLA's operations elsewhere. `explain` says why it does not serve.
      dropout_rate: which share of the weights cuDNN sets to zero, the others being enlarged; with
        "cudnn" alone, as the random numbers are its own, and in reverse mode alone.
      dropout_seed: of these random numbers; a part of the program.
      return_residual: whether to return as well the logarithms of the sums of e^score, (B, T, N).

    Returns:
      An array of the shape and dtype of `query`, with the residual if it is requested.

    Raises:
      TypeError: `mask` is not boolean; the dtypes are none of cuDNN's.
      ValueError: the shapes do not go together; unknown implementation, or it lacks an
        option that is set.
      MissingRuleError: a program with "cudnn" is compiled for another platform than CUDA.

    Example:
      >>> import xnp
      >>> query, keys = xnp.ones((1, 2, 1, 4)), xnp.ones((1, 3, 1, 4))
      >>> dot_product_attention(query, keys, keys).shape
      (1, 2, 1, 4)

    Source: Vaswani et al., Attention Is All You Need, 2017.
    """
    require_choice(
        "dot_product_attention", "implementation", implementation, (None, "xla", "cudnn")
    )
    dropout_seed = static_int(dropout_seed, "dot_product_attention: dropout_seed")
    q, k, v = inexact("dot_product_attention", query, key, value)
    _check_shapes(q, k, v)
    shape = q.shape
    if q.ndim == 3:
        q, k, v = [x[None] for x in (q, k, v)]
    if mask is not None:
        mask = array_of(mask, "dot_product_attention")
        require(
            dtypes.is_bool(mask.dtype), "dot_product_attention", "a mask is boolean.",
            got={"mask": mask}, hint="what is added to the scores is bias", error=TypeError,
        )  # fmt: skip
    window = _both_sides(local_window_size)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    counts = (query_seq_lengths, key_value_seq_lengths)

    def of_operations(q: Any, k: Any, v: Any) -> tuple[Array, ...]:
        """Return averages and perhaps the residual by XLA's operations."""
        scores = _scores(q, k, bias, mask, scale, is_causal, window, counts)
        values = xn.repeat(v, q.shape[2] // v.shape[2], axis=2)
        met = xn.einsum("bnts,bsnh->btnh", softmax(scores).astype(k.dtype), values)
        if not return_residual:
            return (met,)
        return met, xn.moveaxis(logsumexp(scores, axis=-1), 1, 2)

    def of_cudnn(q: Any, k: Any, v: Any) -> tuple[Array, ...]:
        """Return the same by cuDNN."""
        inputs, options = _cudnn_call(
            q, k, v, _bias_of(q, k, bias, mask), scale, is_causal, window, counts,
            dropout_rate, dropout_seed,
        )  # fmt: skip
        met, *residual = get_primitive("attention").bind(
            *inputs, options=options, residual=return_residual
        )
        return met, *[xn.moveaxis(x, 1, 2) for x in residual]

    if implementation == "cudnn":
        _check_cudnn(q, k, v, scale, is_causal, window)
        met, *residual = of_cudnn(q, k, v)
    elif dropout_rate:
        raise ValueError(message(
            "dot_product_attention", "dropout is a part of cuDNN's attention alone.",
            got=f"dropout_rate={dropout_rate!r}, implementation={implementation!r}",
            expected="implementation='cudnn'",
        ))  # fmt: skip
    elif implementation is None and _serves(
        q, k, v, scale, is_causal, window, (bias, mask, *counts)
    ):
        met, *residual = lax.platform_dependent(q, k, v, cuda=of_cudnn, default=of_operations)
    else:
        met, *residual = of_operations(q, k, v)
    result: Array = _without_padding(met, query_seq_lengths).reshape(shape)
    if not return_residual:
        return result
    return result, residual[0].astype(q.dtype).reshape(shape[:-1])


def _scores(
    q: Array, k: Array, bias: Any, mask: Any, scale: Any, is_causal: bool, window: Any,
    counts: tuple[Any, Any],
) -> Any:  # fmt: skip
    """Return the scores (B, N, T, S), those of keys that are not seen far below all others."""
    wide = promotion.result_type(q.dtype, dtypes.float32)
    keys = xn.repeat(k, q.shape[2] // k.shape[2], axis=2)
    scores = xn.einsum("btnh,bsnh->bnts", q, keys, preferred_element_type=wide)
    scores = scores * scale
    if bias is not None:
        scores = (scores + array_of(bias, "dot_product_attention")).astype(wide)
    for seen in (mask, *_visibility_masks(q.shape[1], k.shape[1], is_causal, window, *counts)):
        scores = scores if seen is None else xn.where(seen, scores, _HIDDEN)
    return scores


# ----------------------------------------------------------------------------------------- cudnn

_FORMATS = (dtypes.float16, dtypes.bfloat16)
# Added to the score of a key that is not seen; the greater ones cuDNN subtracts wrongly, says JAX.
_UNSEEN = {dtypes.bfloat16: -(2.0**41), dtypes.float16: -(2.0**15)}
_LONGEST = 256  # elements of a vector, on an H100 and newer
_LONGEST_OF_ALL = 128  # on what is older, too
_SHORTEST = 128  # queries and keys: what is shorter fills no tile of cuDNN's


def _cudnn_call(
    q: Array, k: Array, v: Array, added: Array | None, scale: Any, is_causal: bool, window: Any,
    counts: tuple[Any, Any], dropout_rate: float, seed: int,
) -> tuple[list[Array], Any]:  # fmt: skip
    """Return the inputs and the options of the primitive `attention`."""
    has_counts = any(count is not None for count in counts)
    # a window that ends at the place of a query is causal, whether that was said or not
    is_causal = is_causal or (window is not None and window[1] == 0)
    options = _cudnn.Options(
        scale=float(scale),
        mask="_".join(["PADDING"] * has_counts + ["CAUSAL"] * is_causal) or "NO_MASK",
        window=0 if window is None else window[0] + 1,
        has_bias=added is not None, dropout_rate=float(dropout_rate), seed=int(seed),
    )  # fmt: skip
    inputs = [q, k, v, *([] if added is None else [added])]
    if has_counts:
        inputs += [
            xn.full((q.shape[0],), x.shape[1], dtype=dtypes.int32)
            if count is None
            else xn.asarray(count).astype(dtypes.int32)
            for count, x in zip(counts, (q, k), strict=True)
        ]
    return inputs, options


def _bias_of(q: Array, k: Array, bias: Any, mask: Any) -> Array | None:
    """Return what is added to the scores, (B or 1, N or 1, T, S), or None."""
    added = None if bias is None else array_of(bias, "dot_product_attention")
    if added is not None and not dtypes.is_floating(added.dtype):
        added = added.astype(q.dtype)
    if mask is not None:
        unseen = xn.where(mask, 0, _UNSEEN[q.dtype]).astype(q.dtype)
        added = unseen if added is None else added + unseen
    if added is None:
        return None
    added = added.reshape((1,) * (4 - added.ndim) + added.shape)
    return xn.broadcast_to(added, (*added.shape[:2], q.shape[1], k.shape[1]))


def _describe_unsuited(
    q: Array, k: Array, v: Array, scale: Any, is_causal: bool, window: Any, longest: int
) -> str:
    """Say what of the operands cuDNN has not, or nothing."""
    formats = {x.dtype for x in (q, k, v)}
    if len(formats) > 1 or q.dtype not in _FORMATS:
        names = ", ".join(sorted([x.name for x in formats]))
        return f"cuDNN has it for float16 or bfloat16, not for {names}"
    if isinstance(scale, Array):
        return "its scale is a part of the program, not an array"
    if q.shape[-1] % 8 or q.shape[-1] > longest:
        return f"vectors of {q.shape[-1]} elements are not a multiple of 8 up to {longest}"
    if window is not None and window[1] and not is_causal:
        return f"cuDNN has no window that reaches {window[1]} keys behind a query"
    return ""


def _check_cudnn(q: Array, k: Array, v: Array, scale: Any, is_causal: bool, window: Any) -> None:
    reason = _describe_unsuited(q, k, v, scale, is_causal, window, _LONGEST)
    if reason:
        error = TypeError if reason.startswith("cuDNN has it for") else ValueError
        raise error(message(
            "dot_product_attention", f"{reason}.", got="implementation='cudnn'",
            hint="implementation=None leaves such programs to XLA's operations",
        ))  # fmt: skip


def _serves(
    q: Array, k: Array, v: Array, scale: Any, is_causal: bool, window: Any, others: tuple[Any, ...]
) -> bool:
    """Return whether programs for CUDA call cuDNN where nothing is said; log why they do not."""
    sizes = (*q.shape, *k.shape)
    reason = _describe_unsuited(q, k, v, scale, is_causal, window, _LONGEST_OF_ALL)
    if reason:
        pass
    elif any(x is not None for x in others):
        reason = "a bias, a mask or lengths are there, and rows that see nothing would differ"
    elif not all(type(size) is int for size in sizes):
        reason = "sizes are not known"
    elif min(q.shape[1], k.shape[1]) < _SHORTEST or 0 in sizes:
        reason = f"there are fewer than {_SHORTEST} queries or keys"
    elif q.shape[1] != k.shape[1] and (is_causal or window is not None):
        reason = "the place of a query among the keys is not sure: their numbers differ"
    if reason:
        _logger.info("dot_product_attention: programs for CUDA do not call cuDNN: %s", reason)
    return not reason


# ----------------------------------------------------------------------------------------- masks


def _check_shapes(q: Array, k: Array, v: Array) -> None:
    is_fitting = (
        q.ndim in (3, 4)
        and q.ndim == k.ndim
        and k.shape == v.shape
        and (*q.shape[:-3], q.shape[-1]) == (*k.shape[:-3], k.shape[-1])
        and k.shape[-2] != 0
        and q.shape[-2] % k.shape[-2] == 0
    )
    require(
        is_fitting, "dot_product_attention", "the shapes do not go together.",
        got={"query": q, "key": k, "value": v},
        expected="(B, T, N, H), (B, S, K, H), (B, S, K, H), where K divides N, or all without B",
    )  # fmt: skip


def _both_sides(size: Any) -> tuple[int, int] | None:
    """Return how many keys before and behind its own place a query sees, None for all."""
    if size is None:
        return None
    sides = tuple(size) if isinstance(size, Sequence) else (size, size)
    require(
        len(sides) == 2 and all(isinstance(n, int | np.integer) and n >= 0 for n in sides),
        "dot_product_attention", "a window has a size, or one for each side.",
        got={"local_window_size": size}, expected="integers from 0",
    )  # fmt: skip
    return int(sides[0]), int(sides[1])


def _visibility_masks(
    queries: int, keys: int, is_causal: bool, window: Any, query_counts: Any, key_counts: Any
) -> list[Any]:
    """Return masks of what queries see, that broadcast to (B, N, T, S)."""
    t, s = xn.arange(queries)[:, None], xn.arange(keys)
    masks = [t >= s] if is_causal else []
    if window is not None:
        before, behind = window
        masks.append((t <= s + before) & (t >= s - behind))
    if query_counts is not None:
        masks.append(t < xn.asarray(query_counts).reshape(-1, 1, 1, 1))
    if key_counts is not None:
        masks.append(s < xn.asarray(key_counts).reshape(-1, 1, 1, 1))
    return masks


def _without_padding(x: Array, counts: Any) -> Any:
    if counts is None:
        return x
    places = xn.arange(x.shape[1])[:, None, None]
    return xn.where(places < xn.asarray(counts).reshape(-1, 1, 1, 1), x, 0)


namespace(globals(), overview=True).close()

boundaries(globals())
