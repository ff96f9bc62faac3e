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

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import xnp.numpy as xn
from xnp import lax
from xnp.attention import dot_product_attention
from xnp.numpy import dispatch
from xnp.numpy.creation import asarray
from xnp.numpy.dispatch import array_of, axis_of, cast, dispatched, inexact, promoted, wide
from xnp.numpy.reductions import static_axis
from xnp.placing import placed
from xnp.primitives.table import bind, scalar_like, selected
from xnp.softmax import log_softmax, logmeanexp, logsumexp, softmax
from xprim import Array, axis_size, dtypes
from xprim.errors import message
from xprim.requirements import require, static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Axis, DTypeLike, ShardingLike
from xtree.namespaces import namespace

__all__ = [
    "dot_product_attention", "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu",
    "hard_swish", "hard_tanh", "identity", "leaky_relu", "log1mexp", "log_sigmoid",
    "log_softmax", "logmeanexp", "logsumexp", "mish", "one_hot", "relu", "relu6",
    "scaled_matmul", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip


# -------------------------------------------------------------------------------------------- nn

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


def _rounded_once(f: Callable[[Any], Array], x: Any) -> Array:
    """Return f(x), for floats of fewer than 32 bits in float32 until the result is rounded."""
    return dispatch.converted(f(wide(x)), x.aval.dtype, x.aval.weak_type)


def _between(far: float, x: Any) -> Any:
    """Return x moved into [-far, far]; NaN stays, and so does its derivative."""
    return bind("min", bind("max", x, scalar_like(x, -far)), scalar_like(x, far))


def _ordered(name: str, x: Any, floating: bool = True) -> Array:
    """Return the operand of a function that compares: an array, which is not complex.

    Args:
      name: the function that errors name.
      x: the operand.
      floating: whether integers become the default float dtype.
    """
    (found,) = inexact(name, x) if floating else promoted(name, x)
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


@dispatched(1)
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
    x = _ordered("relu", x, floating=False)
    zero = scalar_like(x, 0)
    return selected(bind("gt", x, zero), x, bind("max", bind("stop_gradient", x), zero))


@dispatched(1)
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
    x = _ordered("relu6", x)
    six = scalar_like(x, 6)
    return selected(bind("ge", x, six), six, relu(x))


@dispatched(1)
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


@dispatched(1)
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


@dispatched(1)
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


@dispatched(1)
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


@dispatched(1)
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
    return _rounded_once(lambda x: _linear_beyond(_FAR, x, _mish), x)


def _mish(near: Array) -> Array:
    result: Array = near * xn.tanh(softplus(near))
    return result


@dispatched(1)
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
    return _rounded_once(_soft_sign, *inexact("soft_sign", x))


def _soft_sign(x: Any) -> Array:
    # the largest number stands for infinity: both give 1
    near = x if dtypes.is_complex(x.dtype) else _between(float(dtypes.finfo(x.dtype).max), x)
    result: Array = near / (abs(near) + 1)
    return result


@dispatched(1)
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
    x = _ordered("hard_tanh", x, floating=False)
    below = x if dtypes.is_unsigned_integer(x.dtype) else xn.where(x < -1, -1, x)
    return _where(x > 1, 1, below)


@dispatched(1)
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
    return _rounded_once(lambda x: relu6(x + 3) / 6, _ordered("hard_sigmoid", x))


@dispatched(1)
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
    return _rounded_once(_hard_silu, _ordered("hard_silu", x))


def _hard_silu(x: Any) -> Array:
    inner = bind("lt", bind("abs", x), scalar_like(x, 3))
    middle = selected(inner, x, scalar_like(x, 0))  # which has no products of infinities and zeros
    return selected(inner, middle * hard_sigmoid(middle), relu(x))


hard_swish = hard_silu


def _expm1_below_zero(x: Any) -> Array:
    """Return e^x - 1 for x < 0; where x is above zero, the value at 0, so that none overflows."""
    return bind("expm1", selected(bind("gt", x, scalar_like(x, 0)), scalar_like(x, 0), x))


@dispatched(2)
def _elu(x: Any, alpha: Any) -> Array:
    x = _ordered("elu", x)
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
    x, alpha = inexact("celu", _ordered("celu", x), alpha)
    dispatch.check_ranks("celu", x, alpha)
    above = x > 0
    scale = xn.where(above, 1, alpha)  # of any value, NaN too, it has no part in what is above 0
    return _where(above, x, scale * xn.expm1(xn.where(above, 0, x) / scale))


@dispatched(1)
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
    return _rounded_once(_selu, _ordered("selu", x))


def _selu(x: Any) -> Array:
    return 1.0507009873554804934193349852946 * _elu(x, 1.6732632423543772848170429916717)


@dispatched(2)
def _leaky_relu(x: Any, slope: Any) -> Array:
    x = _ordered("leaky_relu", x)
    return _where(x >= 0, x, slope * x)


def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """Return x above 0 and negative_slope x below.

    Args:
        x: an array of any shape, or a number.
        negative_slope: the slope below 0.

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


@dispatched(1)
def _gelu(x: Any, approximate: bool) -> Array:
    (x,) = inexact("gelu", x)
    if not approximate:
        return _rounded_once(lambda x: _linear_beyond(_FAR, x, _gelu_by_erfc), x)
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


@dispatched(2)
def _squareplus(x: Any, b: Any) -> Array:
    x, b = inexact("squareplus", x, b)
    return _rounded_once(lambda x: _squareplus_beyond(x, wide(b)), x)


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
    return _squareplus(x, b)


@dispatched(1)
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
    x = _ordered("sparse_plus", x)
    middle = xn.where(abs(x) >= 1, 0, x)  # NaN stays
    return _where(x <= -1, 0, xn.where(x >= 1, x, (middle + 1) ** 2 / 4))


@dispatched(1)
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
    x = _ordered("sparse_sigmoid", x)
    return 0.5 * xn.clip(x + 1, 0, 2)


@dispatched(1)
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

    def averaged(values: Any) -> Array:
        return xn.mean(values, axis, keepdims=True, where=where)

    average: Any = mean
    axes = dispatch.dims_and_names(axis, aval.ndim, "standardize")
    # maybe along the axes, where `center` takes none
    is_cut = aval.type_sharding is not None or (axes and type(axes[-1]) is str)
    if mean is None and where is None and algorithm == "stable" and not is_cut:
        distance = bind("center", x, axes=axes)
    elif mean is None:
        average = averaged(x)
        distance = x - average
        # What the rounding of the mean left. It is 0 but for that, and so are its derivatives.
        distance = distance - bind("stop_gradient", averaged(distance))
    else:
        distance = x - average
    if variance is None and algorithm == "stable":
        variance = averaged(xn.square(abs(distance)))
    elif variance is None:
        variance = xn.maximum(averaged(xn.square(abs(x))) - xn.square(xn.abs(average)), 0)
    factor = bind("rsqrt", array_of(xn.add(variance, epsilon), "standardize"))
    result: Array = distance * factor
    return dispatch.converted(result, aval.dtype, aval.weak_type)


def one_hot(
    x: ArrayLike, num_classes: int, *, dtype: DTypeLike = None, axis: int | str = -1,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Return a vector for each number in `x` that is 1 at that position and 0 elsewhere.

    Args:
      x: integers; those that are no class give zeros.
      num_classes: the size of the vectors.
      dtype: of the result; None for the default floating dtype.
      axis: where the new dimension stands in the result; or the name of a mapped axis of
        `num_classes` members, of which each gets its own number.
      out_sharding: how the result lies: a sharding, or a partition spec over the mesh set.

    Returns:
        An array with one dimension more than x; of the shape of x over a named axis.

    Raises:
        TypeError: `x` is not an array; `dtype` names no dtype; `out_sharding` is no sharding.
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
        return placed(cast(xn.equal(x, member), wanted), out_sharding, "one_hot")
    axis = axis_of(axis, x.aval.ndim + 1, "one_hot")
    shape = (*x.aval.shape[:axis], count, *x.aval.shape[axis:])
    kept = tuple([d for d in range(len(shape)) if d != axis])
    x = bind("broadcast_in_dim", x, shape=shape, broadcast_dimensions=kept)
    classes = bind("iota", dtype=x.aval.dtype, shape=shape, dimension=axis)
    return placed(cast(bind("eq", x, classes), wanted), out_sharding, "one_hot")


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


namespace(globals(), overview=True).close()

boundaries(globals())
