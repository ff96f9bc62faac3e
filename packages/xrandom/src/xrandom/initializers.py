"""Initial weights of neural networks: functions `init(key, shape, dtype) -> Array`.

The scaled ones keep the variance of signals from layer to layer: a weight has the variance
`scale / fan`, where the fan counts the units that a unit reads from (`fan_in`), feeds
(`fan_out`), or a mean of both (`fan_avg`, and `fan_geo_avg`, the
geometric one).

Sources: Glorot and Bengio, AISTATS 2010 (`glorot`, also `xavier`); LeCun et al., Efficient
BackProp, 1998 (`lecun`); He et al., ICCV 2015 (`he`, also `kaiming`); Saxe et al., ICLR 2014
(`orthogonal`); Xiao et al., ICML 2018 (`delta_orthogonal`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import xnp
from xnp import lax
from xnp.placing import place
from xprim import Array, dtypes
from xprim.avals import size_of
from xprim.errors import message
from xprim.requirements import require
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from xrandom.arguments import check_shape, floating_dtype
from xrandom.continuous import orthogonal as random_orthogonal
from xrandom.keys import split
from xrandom.samplers import (
    normal as random_normal,
    truncated_normal as random_truncated_normal,
    uniform as random_uniform,
)
from xtree.namespaces import namespace

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal",
    "ones", "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]  # fmt: skip

Axes = int | Sequence[int]
Mode = Literal["fan_in", "fan_out", "fan_avg", "fan_geo_avg"]
Distribution = Literal["truncated_normal", "normal", "uniform"]

# The standard deviation of the standard normal distribution cut at -2 and 2:
# sqrt(1 - 4 phi(2) / (2 Phi(2) - 1)).
_STDDEV_CUT_AT_2 = 0.87962566103423978
# That of the complex one whose modulus is cut at 2: |z|^2 is exponential, cut at 4, with the mean
# 1 - 4 / (e^4 - 1).
_COMPLEX_STDDEV_CUT_AT_2 = math.sqrt(1 - 4 / math.expm1(4))


class Initializer(Protocol):
    """A function that makes initial weights from a key, a shape and a dtype."""

    def __call__(
        self, key: Any, shape: Any, dtype: Any = None, out_sharding: ShardingLike = None
    ) -> Array:
        """Return an array of the shape that lies so; without a dtype, of the initializer's own."""
        ...


def _placing(draw: Callable[[Any, Any, Any], Array]) -> Initializer:
    """Return an initializer that also takes the sharding of its result."""

    @boundary
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: ShardingLike = None) -> Array:
        return place(draw(key, shape, dtype), out_sharding, "initializer")

    return init


@boundary
def zeros(
    key: ArrayLike, shape: ShapeLike, dtype: DTypeLike = None, out_sharding: ShardingLike = None
) -> Array:
    """Return zeros; the key is not used.

    Args:
        key: a random key, which is not looked at.
        shape: of the result.
        dtype: of the result; None takes the default.
        out_sharding: where the result is placed; None for the default device.

    Returns:
        An array of that shape and dtype.

    Example:
        >>> import xrandom
        >>> from xrandom import initializers
        >>> initializers.zeros(xrandom.key(0), (2,))
        Array([0., 0.], dtype=float32)
    """
    return place(xnp.zeros(shape, dtype), out_sharding, "zeros")


@boundary
def ones(
    key: ArrayLike, shape: ShapeLike, dtype: DTypeLike = None, out_sharding: ShardingLike = None
) -> Array:
    """Return ones; the key is not used.

    Args:
        key: a random key, which is not looked at.
        shape: of the result.
        dtype: of the result; None takes the default.
        out_sharding: where the result is placed; None for the default device.

    Returns:
        An array of that shape and dtype.

    Example:
        >>> import xrandom
        >>> from xrandom import initializers
        >>> initializers.ones(xrandom.key(0), (2,))
        Array([1., 1.], dtype=float32)
    """
    return place(xnp.ones(shape, dtype), out_sharding, "ones")


@boundary
def constant(value: ArrayLike, dtype: DTypeLike = None) -> Initializer:
    """Return an initializer that fills arrays with a value, or one that broadcasts to the shape.

    Without a dtype integers become floating.

    Args:
        value: a number, or an array that broadcasts to the shape.
        dtype: where the call names none; None takes the default.

    Returns:
        A function `init(key, shape, dtype=..., out_sharding=None)` that draws an
        array.

    Example:
        >>> import xrandom
        >>> from xrandom import initializers
        >>> initializers.constant(2.0)(xrandom.key(0), (2,))
        Array([2., 2.], dtype=float32)
    """
    own = dtype if dtype is not None else xnp.result_type(value, float)

    @_placing
    def init(key: Any, shape: Any, dtype: Any = None) -> Array:
        return xnp.full(shape, value, own if dtype is None else dtype)

    return init


@boundary
def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike = None) -> Initializer:
    """Return an initializer that draws uniformly from `[0, scale)`.

    Args:
        scale: the numbers lie in [0, scale).
        dtype: where the call names none; None takes the default.

    Returns:
        A function `init(key, shape, dtype=..., out_sharding=None)` that draws an
        array.

    Example:
        >>> import xrandom
        >>> from xrandom import initializers
        >>> initializers.uniform(0.1)(xrandom.key(0), (3, 4)).shape
        (3, 4)
    """
    own = dtype

    @_placing
    def init(key: Any, shape: Any, dtype: Any = None) -> Array:
        kind = floating_dtype(own if dtype is None else dtype, "initializers.uniform")
        return random_uniform(key, shape, kind) * xnp.asarray(scale, kind)

    return init


@boundary
def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike = None) -> Initializer:
    """Return an initializer that draws normally, with mean 0 and a standard deviation.

    Args:
        stddev: the standard deviation.
        dtype: where the call names none; None takes the default.

    Returns:
        A function `init(key, shape, dtype=..., out_sharding=None)` that draws an
        array.

    Example:
        >>> import xrandom
        >>> from xrandom import initializers
        >>> initializers.normal(0.1)(xrandom.key(0), (3, 4)).shape
        (3, 4)
    """
    own = dtype

    @_placing
    def init(key: Any, shape: Any, dtype: Any = None) -> Array:
        sample = random_normal(key, shape, own if dtype is None else dtype)
        return sample * xnp.asarray(stddev, sample.dtype)

    return init


@boundary
def truncated_normal(
    stddev: ArrayLike = 1e-2, dtype: DTypeLike = None, lower: ArrayLike = -2.0,
    upper: ArrayLike = 2.0,
) -> Initializer:  # fmt: skip
    """Return an initializer that draws normally, cut at `lower * stddev` and `upper * stddev`.

    Args:
      stddev: the standard deviation before the cut.
      dtype: a real floating dtype, used where the call names none.
      lower: the lower end, in standard deviations.
      upper: the upper end, in standard deviations.

    Returns:
        A function `init(key, shape, dtype=..., out_sharding=None)` that draws an
        array.

    Example:
        >>> import xrandom
        >>> from xrandom import initializers
        >>> initializers.truncated_normal(0.1)(xrandom.key(0), (3, 4)).shape
        (3, 4)
    """
    own = dtype

    @_placing
    def init(key: Any, shape: Any, dtype: Any = None) -> Array:
        kind = floating_dtype(own if dtype is None else dtype, "initializers.truncated_normal")
        sample = random_truncated_normal(key, lower, upper, shape, kind)
        return sample * xnp.asarray(stddev, kind)

    return init


@boundary
def variance_scaling(
    scale: ArrayLike, mode: Mode, distribution: Distribution, in_axis: Axes = -2,
    out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike = None,
) -> Initializer:  # fmt: skip
    """Return an initializer whose weights have mean 0 and the variance `scale / fan`.

    Args:
      scale: the factor of the variance.
      mode: `"fan_in"`, `"fan_out"`, `"fan_avg"` or `"fan_geo_avg"`: which units are counted. Axes
        that are neither input, output nor batch belong to a receptive field and count for both.
      distribution: `"truncated_normal"` (cut at two standard deviations of the normal that is cut),
        `"normal"` or `"uniform"`.
      in_axis: the axis or axes of the units that are read.
      out_axis: the axis or axes of the units that are fed.
      batch_axis: axes over which independent weights lie side by side.
      dtype: a floating or complex dtype, used where the call names none. The modulus of complex
        weights is what is cut; the uniform ones fill a disk.

    Returns:
      A function `init(key, shape, dtype=..., out_sharding=None)` that draws an array.

    Raises:
      ValueError: for an unknown mode or distribution, a shape that lacks the axes.

    Example:
      >>> from xrandom import initializers, key
      >>> init = initializers.variance_scaling(1.0, "fan_in", "uniform")
      >>> weights = init(key(0), (300, 100))
      >>> bool(abs(weights).max() <= (3 / 300) ** 0.5)
      True
    """
    _one_of("mode", mode, ("fan_in", "fan_out", "fan_avg", "fan_geo_avg"))
    _one_of("distribution", distribution, ("truncated_normal", "normal", "uniform"))
    own = dtype

    @_placing
    def init(key: Any, shape: Any, dtype: Any = None) -> Array:
        kind = _inexact_dtype(own if dtype is None else dtype)
        sizes = check_shape(shape, "initializers.variance_scaling")
        fan_in, fan_out = _fans(sizes, in_axis, out_axis, batch_axis)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2,
               "fan_geo_avg": math.sqrt(fan_in * fan_out)}[mode]  # fmt: skip
        if 0 in sizes:
            return xnp.zeros(sizes, kind)
        draw = _scale_complex if dtypes.is_complex(kind) else _scale_real
        return draw(distribution, key, sizes, kind, scale / fan)

    return init


def _inexact_dtype(dtype: Any) -> Any:
    operation = "initializers.variance_scaling"
    if dtype is not None and dtypes.is_complex(dtypes.requested_dtype(dtype, operation)):
        return dtypes.requested_dtype(dtype, operation)
    return floating_dtype(dtype, operation)


def _scale_real(
    distribution: Distribution, key: Any, shape: Any, dtype: Any, variance: Any
) -> Array:
    """Draw real weights of a variance."""
    variance = xnp.asarray(variance, dtype)
    if distribution == "normal":
        return random_normal(key, shape, dtype) * xnp.sqrt(variance)
    if distribution == "uniform":
        return random_uniform(key, shape, dtype, -1) * xnp.sqrt(3 * variance)
    stddev = xnp.sqrt(variance) / xnp.asarray(_STDDEV_CUT_AT_2, dtype)
    return random_truncated_normal(key, -2, 2, shape, dtype) * stddev


def _scale_complex(
    distribution: Distribution, key: Any, shape: Any, dtype: Any, variance: Any
) -> Array:
    """Draw complex weights with `E |w|^2` equal to a variance, their angle uniform.

    `"uniform"` is that on a disk, where `|w|^2` is uniform; the square of the modulus of a normal
    one is exponential, and is drawn by the inverse of its distribution, cut at 4.
    """
    if distribution == "normal":
        return random_normal(key, shape, dtype) * xnp.sqrt(xnp.asarray(variance, dtype))
    part = dtypes.to_floating_dtype(dtype)
    for_modulus, for_angle = split(key)
    u, turns = random_uniform(for_modulus, shape, part), random_uniform(for_angle, shape, part)
    if distribution == "uniform":
        modulus = xnp.sqrt(2 * u)
    else:
        modulus = xnp.sqrt(-xnp.log1p(math.expm1(-4) * u)) / _COMPLEX_STDDEV_CUT_AT_2
    modulus = modulus * xnp.sqrt(xnp.asarray(variance, part))
    angle = 2 * math.pi * turns
    return lax.complex(modulus * xnp.cos(angle), modulus * xnp.sin(angle))


@boundary
def glorot_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike = None
) -> Initializer:
    """Return `variance_scaling(1, "fan_avg", "uniform")`; also called `xavier_uniform`.

    Args:
        in_axis: the axis or axes of the inputs.
        out_axis: the axis or axes of the outputs.
        batch_axis: the axes that are neither, and do not count.
        dtype: a floating or complex dtype, where the call names none; None takes the
            default.

    Returns:
        A function `init(key, shape, dtype=..., out_sharding=None)` that draws an
        array.

    Example:
        >>> import xrandom
        >>> from xrandom import initializers
        >>> initializers.glorot_uniform()(xrandom.key(0), (3, 4)).shape
        (3, 4)
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


@boundary
def glorot_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike = None
) -> Initializer:
    """Return `variance_scaling(1, "fan_avg", "truncated_normal")`; also called `xavier_normal`.

    Args:
        in_axis: the axis or axes of the inputs.
        out_axis: the axis or axes of the outputs.
        batch_axis: the axes that are neither, and do not count.
        dtype: a floating or complex dtype, where the call names none; None takes the
            default.

    Returns:
        A function `init(key, shape, dtype=..., out_sharding=None)` that draws an
        array.

    Example:
        >>> import xrandom
        >>> from xrandom import initializers
        >>> initializers.glorot_normal()(xrandom.key(0), (3, 4)).shape
        (3, 4)
    """
    return variance_scaling(
        1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype
    )


@boundary
def lecun_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike = None
) -> Initializer:
    """Return `variance_scaling(1, "fan_in", "uniform")`.

    Args:
        in_axis: the axis or axes of the inputs.
        out_axis: the axis or axes of the outputs.
        batch_axis: the axes that are neither, and do not count.
        dtype: a floating or complex dtype, where the call names none; None takes the
            default.

    Returns:
        A function `init(key, shape, dtype=..., out_sharding=None)` that draws an
        array.

    Example:
        >>> import xrandom
        >>> from xrandom import initializers
        >>> initializers.lecun_uniform()(xrandom.key(0), (3, 4)).shape
        (3, 4)
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


@boundary
def lecun_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike = None
) -> Initializer:
    """Return `variance_scaling(1, "fan_in", "truncated_normal")`.

    Args:
        in_axis: the axis or axes of the inputs.
        out_axis: the axis or axes of the outputs.
        batch_axis: the axes that are neither, and do not count.
        dtype: a floating or complex dtype, where the call names none; None takes the
            default.

    Returns:
        A function `init(key, shape, dtype=..., out_sharding=None)` that draws an
        array.

    Example:
        >>> import xrandom
        >>> from xrandom import initializers
        >>> initializers.lecun_normal()(xrandom.key(0), (3, 4)).shape
        (3, 4)
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


@boundary
def he_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike = None
) -> Initializer:
    """Return `variance_scaling(2, "fan_in", "uniform")`; also called `kaiming_uniform`.

    Args:
        in_axis: the axis or axes of the inputs.
        out_axis: the axis or axes of the outputs.
        batch_axis: the axes that are neither, and do not count.
        dtype: a floating or complex dtype, where the call names none; None takes the
            default.

    Returns:
        A function `init(key, shape, dtype=..., out_sharding=None)` that draws an
        array.

    Example:
        >>> import xrandom
        >>> from xrandom import initializers
        >>> initializers.he_uniform()(xrandom.key(0), (3, 4)).shape
        (3, 4)
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


@boundary
def he_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike = None
) -> Initializer:
    """Return `variance_scaling(2, "fan_in", "truncated_normal")`; also called `kaiming_normal`.

    Args:
        in_axis: the axis or axes of the inputs.
        out_axis: the axis or axes of the outputs.
        batch_axis: the axes that are neither, and do not count.
        dtype: a floating or complex dtype, where the call names none; None takes the
            default.

    Returns:
        A function `init(key, shape, dtype=..., out_sharding=None)` that draws an
        array.

    Example:
        >>> import xrandom
        >>> from xrandom import initializers
        >>> initializers.he_normal()(xrandom.key(0), (3, 4)).shape
        (3, 4)
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform = glorot_uniform
xavier_normal = glorot_normal
kaiming_uniform = he_uniform
kaiming_normal = he_normal


@boundary
def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike = None
) -> Initializer:
    """Return an initializer of matrices with orthonormal rows or columns, whichever are fewer.

    Args:
      scale: a factor.
      column_axis: the axis of the columns; all the others together are the rows.
      dtype: a floating or complex dtype, used where the call names none.

    Returns:
      A function `init(key, shape, dtype=..., out_sharding=None)` that draws an array.

    Example:
      >>> import numpy as np
      >>> from xrandom import initializers, key
      >>> q = np.asarray(initializers.orthogonal()(key(0), (2, 3, 4)).reshape(6, 4))
      >>> bool(np.allclose(q.T @ q, np.eye(4), atol=1e-5))
      True
    """
    own, column_axis = dtype, size_of(column_axis)

    @_placing
    def init(key: Any, shape: Any, dtype: Any = None) -> Array:
        sizes = check_shape(shape, "initializers.orthogonal")
        require(
            len(sizes) >= 2, "initializers.orthogonal",
            "the shape must have two axes or more, got {}.", sizes,
        )  # fmt: skip
        require(
            -len(sizes) <= column_axis < len(sizes), "initializers.orthogonal",
            "column_axis={} is out of bounds of the shape {}.", column_axis, sizes,
        )  # fmt: skip
        columns = sizes[column_axis]
        others = sizes[:column_axis] + sizes[column_axis:][1:]
        kind = own if dtype is None else dtype
        matrix = random_orthogonal(key, math.prod(others), (), kind, columns)
        moved = xnp.moveaxis(matrix.reshape(*others, columns), -1, column_axis)
        return moved * xnp.asarray(scale, matrix.dtype)

    return init


@boundary
def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike = None
) -> Initializer:
    """Return an initializer of kernels that are zero but for an orthogonal matrix in the middle.

    The shape is `(*window, inputs, outputs)` with a window of one to three axes and no more inputs
    than outputs, so that the convolution keeps the norm of what goes through it.

    Args:
      scale: a factor.
      column_axis: the axis of the columns of the matrix.
      dtype: a floating or complex dtype, used where the call names none.

    Returns:
        A function `init(key, shape, dtype=..., out_sharding=None)` that draws an
        array.

    Example:
        >>> import xrandom
        >>> from xrandom import initializers
        >>> initializers.delta_orthogonal()(xrandom.key(0), (3, 3, 2, 4)).shape
        (3, 3, 2, 4)
    """
    own, column_axis = dtype, size_of(column_axis)

    @_placing
    def init(key: Any, shape: Any, dtype: Any = None) -> Array:
        sizes = check_shape(shape, "initializers.delta_orthogonal")
        require(
            len(sizes) in (3, 4, 5) and sizes[-2] <= sizes[-1], "initializers.delta_orthogonal",
            "the shape cannot hold an orthogonal kernel.", got=sizes,
            expected="three to five axes, the last of them at least as long as the one before",
        )  # fmt: skip
        kind = own if dtype is None else dtype
        matrix = orthogonal(scale, column_axis, kind)(key, sizes[-2:])
        middle = tuple([(n - 1) // 2 for n in sizes[:-2]])
        kernel: Array = xnp.zeros(sizes, matrix.dtype).at[middle].set(matrix)
        return kernel

    return init


def _fans(shape: tuple[int, ...], in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> Any:
    """Return how many units a unit reads from, and how many it feeds."""
    require(
        len(shape) >= 2, "initializers.variance_scaling",
        "the shape must have two axes or more, got {}.", shape,
        hint="biases are usually zeros, or normal(stddev)",
    )  # fmt: skip
    inputs, outputs, batch = [_product(shape, axes) for axes in (in_axis, out_axis, batch_axis)]
    total = math.prod(shape)
    if total == 0:
        return 0, 0
    field = total / (inputs * outputs * batch)
    return inputs * field, outputs * field


def _product(shape: tuple[int, ...], axes: Axes) -> int:
    chosen = (axes,) if isinstance(axes, int) else axes
    for axis in chosen:
        require(
            -len(shape) <= axis < len(shape), "initializers.variance_scaling",
            "the shape {} has no axis {}.", shape, axis,
        )  # fmt: skip
    return math.prod([shape[axis] for axis in chosen])


def _one_of(what: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(message(
            "initializers.variance_scaling", f"unknown {what} {value!r}.",
            expected=f"one of {', '.join(known)}",
        ))  # fmt: skip


namespace(globals()).close()
