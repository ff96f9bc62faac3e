"""Continuous distributions: formulas of uniform or normal samples, gamma, multivariate."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xprim
from xnp import lax
from xnp.placing import place
from xprim import Array, Primitive, ShapedArray, Zero, as_array, config, dimension_names, dtypes
from xprim.contracts import BatchAxis, JVPHandle
from xprim.errors import message
from xprim.promotion import result_type
from xprim.requirements import require, require_choice
from xprim.sharded_types import reshard_as, whole
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from xrandom import arguments
from xrandom.arguments import Shape, check_shape, floating_dtype, parameter, repeat_to, sample_shape
from xrandom.key_primitives import check_key, in_programs, random_split_p, raw_normal, raw_uniform
from xrandom.keys import raw_split, words_of
from xrandom.samplers import draw, draw_normal, rademacher, raw_positive, uniform_between

__all__ = ()


# ------------------------------------------------------------------------------------ continuous
# Distributions whose samples are a formula of uniform or normal ones.
#
# Where there is one, the formula is the inverse of the distribution function, so a sample depends
# on one random number alone.


@boundary
def exponential(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the exponential distribution, of density `exp(-x)` for x >= 0.

    Args:
        key: a single random key, of either form.
        shape: the shape of the result.
        dtype: a real floating dtype; None takes the default.
        out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
        An array of `shape` and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.exponential(xrandom.key(0), (2, 3)).shape
        (2, 3)
    """
    words = words_of(key, "exponential")
    sizes = check_shape(shape, "exponential")
    sample = draw(raw_exponential, (words,), sizes, floating_dtype(dtype, "exponential"))
    return place(sample, out_sharding, "exponential")


def raw_exponential(words: Any, shape: Shape, dtype: Any) -> Array:
    """Draw `-log(1 - u)` from the words of a key."""
    return lax.neg(lax.log1p(lax.neg(raw_uniform(words, shape, dtype))))


@boundary
def laplace(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the Laplace distribution, of density `exp(-|x|) / 2`.

    Args:
        key: a single random key, of either form.
        shape: the shape of the result.
        dtype: a real floating dtype; None takes the default.
        out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
        An array of `shape` and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.laplace(xrandom.key(0), (2, 3)).shape
        (2, 3)
    """
    words = words_of(key, "laplace")
    exact = floating_dtype(dtype, "laplace")
    sizes = check_shape(shape, "laplace")
    return place(draw(_laplace, (words,), sizes, exact), out_sharding, "laplace")


def _laplace(words: Any, shape: Shape, dtype: Any) -> Any:
    u = uniform_between(words, shape, dtype, -1.0 + float(dtypes.finfo(dtype).epsneg), 1.0)
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


@boundary
def logistic(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the logistic distribution, of distribution function `1 / (1 + exp(-x))`.

    Args:
        key: a single random key, of either form.
        shape: the shape of the result.
        dtype: a real floating dtype; None takes the default.
        out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
        An array of `shape` and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.logistic(xrandom.key(0), (2, 3)).shape
        (2, 3)
    """
    words = words_of(key, "logistic")
    exact = floating_dtype(dtype, "logistic")
    sizes = check_shape(shape, "logistic")
    return place(draw(_logistic, (words,), sizes, exact), out_sharding, "logistic")


def _logistic(words: Any, shape: Shape, dtype: Any) -> Any:
    u = raw_positive(words, shape, dtype)
    return lax.sub(lax.log(u), lax.log1p(lax.neg(u)))


@boundary
def cauchy(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the Cauchy distribution, of density `1 / (pi (1 + x^2))`.

    Args:
        key: a single random key, of either form.
        shape: the shape of the result.
        dtype: a real floating dtype; None takes the default.
        out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
        An array of `shape` and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.cauchy(xrandom.key(0), (2, 3)).shape
        (2, 3)
    """
    words = words_of(key, "cauchy")
    exact = floating_dtype(dtype, "cauchy")
    sizes = check_shape(shape, "cauchy")
    return place(draw(_cauchy, (words,), sizes, exact), out_sharding, "cauchy")


def _cauchy(words: Any, shape: Shape, dtype: Any) -> Any:
    u = uniform_between(words, shape, dtype, float(dtypes.finfo(dtype).eps), 1.0)
    return lax.tan(lax.mul(lax.sub(u, 0.5), math.pi))


@boundary
def pareto(
    key: ArrayLike, b: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None, *,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Draw from the Pareto distribution, of density `b / x^(b + 1)` for x >= 1.

    Args:
      key: a single random key, of either form.
      b: the exponent, positive.
      shape: the shape of the result; None takes that of `b`.
      dtype: a real floating dtype; None takes the default.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
        An array of `shape` (where that is None, of the shape that the parameters
        broadcast to) and of the dtype requested.

    Raises:
        TypeError: `b` is not an array;
            `key` is not a random key;
            `dtype` names no dtype;
            `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xnp
        >>> import xrandom
        >>> xrandom.pareto(xrandom.key(0), xnp.array([1.0, 2.0])).shape
        (2,)
    """
    words = words_of(key, "pareto")
    exact = floating_dtype(dtype, "pareto")
    exponent = parameter(b, exact, "pareto: b")
    sizes = sample_shape(shape, "pareto", exponent)
    return place(draw(_pareto, (words, exponent), sizes), out_sharding, "pareto")


def _pareto(words: Any, exponent: Any, shape: Shape) -> Any:
    exponential_sample = raw_exponential(words, shape, exponent.dtype)
    return lax.exp(lax.div(exponential_sample, arguments.broadcast_to(exponent, shape)))


@boundary
def rayleigh(
    key: ArrayLike, scale: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None, *,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Draw from the Rayleigh distribution, of density `x / s^2 exp(-x^2 / (2 s^2))` for x >= 0.

    Args:
      key: a single random key, of either form.
      scale: the parameter s, positive.
      shape: the shape of the result; None takes that of `scale`.
      dtype: a real floating dtype; None takes the default.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
        An array of `shape` (where that is None, of the shape that the parameters
        broadcast to) and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.rayleigh(xrandom.key(0), 2.0, (3,)).shape
        (3,)
    """
    words = words_of(key, "rayleigh")
    exact = floating_dtype(dtype, "rayleigh")
    s = parameter(scale, exact, "rayleigh: scale")
    sizes = sample_shape(shape, "rayleigh", s)
    return place(draw(_rayleigh, (words, s), sizes), out_sharding, "rayleigh")


def _rayleigh(words: Any, s: Any, shape: Shape) -> Any:
    u = raw_positive(words, shape, s.dtype)
    return lax.mul(arguments.broadcast_to(s, shape), lax.sqrt(lax.mul(lax.log(u), -2.0)))


@boundary
def weibull_min(
    key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: ShapeLike = (),
    dtype: DTypeLike = None,
) -> Array:  # fmt: skip
    """Draw from the Weibull distribution, of survival function `exp(-(x / scale)^concentration)`.

    Args:
      key: a single random key, of either form.
      scale: the scale, positive.
      concentration: the exponent, positive. Both broadcast against `shape`.
      shape: the shape of the uniform samples behind the result.
      dtype: a real floating dtype; None takes the default.

    Returns:
        An array of `shape` and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.weibull_min(xrandom.key(0), 1.0, 2.0, (2,)).shape
        (2,)
    """
    words = words_of(key, "weibull_min")
    exact = floating_dtype(dtype, "weibull_min")
    s = parameter(scale, exact, "weibull_min: scale")
    k = parameter(concentration, exact, "weibull_min: concentration")
    drawn = check_shape(shape, "weibull_min")
    sizes = lax.broadcast_shapes(drawn, s.shape, k.shape)
    return draw(_weibull_min, (words, s, k), drawn, sizes)  # type: ignore[no-any-return]


def _weibull_min(words: Any, s: Any, k: Any, drawn: Shape, shape: Shape) -> Any:
    # its least value stands for all of [0, epsilon): a root of 0 would be far from all others
    e = lax.max(raw_exponential(words, drawn, s.dtype), float(dtypes.finfo(s.dtype).eps) / 2)
    e, s, k = [repeat_to(x, shape) for x in (e, s, k)]
    return lax.mul(lax.pow(e, lax.div(lax.full_like(k, 1.0), k)), s)


@boundary
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the triangular distribution on [left, right] with its peak at `mode`.

    Args:
      key: a single random key, of either form.
      left: the left end.
      mode: where the peak is, between the ends.
      right: the right end.
      shape: the shape of the result; None takes that to which the corners broadcast.
      dtype: a real floating dtype; None takes the default.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
        An array of `shape` (where that is None, of the shape that the parameters
        broadcast to) and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.triangular(xrandom.key(0), 0.0, 0.5, 1.0, (3,)).shape
        (3,)
    """
    words = words_of(key, "triangular")
    exact = floating_dtype(dtype, "triangular")
    corners = [parameter(x, exact, f"triangular: {name}")
               for x, name in ((left, "left"), (mode, "mode"), (right, "right"))]  # fmt: skip
    sizes = sample_shape(shape, "triangular", *corners)
    return place(draw(_triangular, (words, *corners), sizes), out_sharding, "triangular")


def _triangular(words: Any, a: Any, c: Any, b: Any, shape: Shape) -> Any:
    a, c, b = [repeat_to(x, shape) for x in (a, c, b)]
    u = raw_uniform(words, shape, a.dtype)
    scale, back = _scale_of_squares(lax.max(lax.abs(a), lax.abs(b)))
    a, c, b = [lax.mul(x, scale) for x in (a, c, b)]
    width = lax.sub(b, a)
    rising = lax.add(a, lax.sqrt(lax.mul(lax.mul(u, width), lax.sub(c, a))))
    rest = lax.sub(lax.full_like(u, 1.0), u)
    falling = lax.sub(b, lax.sqrt(lax.mul(lax.mul(rest, width), lax.sub(b, c))))
    sample = lax.select(lax.lt(u, lax.div(lax.sub(c, a), width)), rising, falling)
    return lax.mul(sample, back)


def _scale_of_squares(x: Any) -> tuple[Any, Any]:
    """Return a power of two for each number, and its inverse: 1 where the square is in range.

    Numbers times a power of two have the digits that they had.
    """
    most = int(dtypes.finfo(x.dtype).maxexp)  # 16, 128, 1024: a number below 2^most
    quarter, half = most // 4, most // 2
    x = lax.stop_gradient(x)
    exponents = [lax.full_like(x, 2.0**e) for e in (-half - 2, 0, half + 1)]
    inverses = [lax.full_like(x, 2.0**-e) for e in (-half - 2, 0, half + 1)]
    low, high = lax.lt(x, 2.0**-quarter), lax.gt(x, 2.0 ** (half - 2))
    return tuple([lax.select(high, large, lax.select(low, small, same))  # type: ignore[return-value]
                  for large, same, small in (exponents, inverses)])  # fmt: skip


@boundary
def wald(
    key: ArrayLike, mean: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None, *,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Draw from the Wald (inverse Gaussian) distribution of scale 1.

    Args:
      key: a single random key, of either form.
      mean: the mean, positive.
      shape: the shape of the result; None takes that of `mean`.
      dtype: a real floating dtype; None takes the default.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Source: Michael, Schucany, Haas, "Generating random variates using transformations with multiple
    roots", The American Statistician 30 (1976).

    Returns:
        An array of `shape` (where that is None, of the shape that the parameters
        broadcast to) and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.wald(xrandom.key(0), 1.0, (3,)).shape
        (3,)
    """
    words = words_of(key, "wald")
    exact = floating_dtype(dtype, "wald")
    m = parameter(mean, exact, "wald: mean")
    sizes = sample_shape(shape, "wald", m)
    return place(draw(_wald, (words, repeat_to(m, sizes))), out_sharding, "wald")


def _wald(words: Any, m: Any) -> Any:
    normal_words, uniform_words = raw_split(words, 2)
    y = lax.square(raw_normal(normal_words, m.shape, m.dtype))
    z = raw_uniform(uniform_words, m.shape, m.dtype)
    # x and m^2 / x are the roots of the transformed equation. Where t is large the smaller one is a
    # difference of numbers that agree, so there the larger one, a sum, comes first.
    square, half = lax.square(m), lax.mul(y, 0.5)
    root = lax.sqrt(lax.add(lax.mul(lax.mul(m, 4.0), y), lax.mul(square, lax.square(y))))
    x = lax.sub(lax.add(m, lax.div(lax.mul(square, y), 2.0)), lax.mul(lax.div(m, 2.0), root))
    inverse = lax.div(1.0, m)
    turned = lax.mul(lax.sqrt(half), lax.sqrt(lax.add(half, lax.mul(inverse, 2.0))))
    factor = lax.add(lax.add(inverse, half), turned)  # the larger one over m^2
    info = dtypes.finfo(m.dtype)
    near = lax.lt(lax.mul(m, half), math.sqrt(2.5e-4 / float(info.eps)))
    for in_range in (lax.gt(square, float(info.tiny) / float(info.eps)), lax.lt(square, math.inf)):
        near = lax.bitwise_and(near, in_range)
    other = lax.select(near, lax.div(square, x), lax.mul(lax.mul(m, factor), m))
    x = lax.select(near, x, lax.div(1.0, factor))
    smaller = lax.le(z, lax.div(m, lax.add(m, x)))
    return lax.select(smaller, x, other)


@boundary
def maxwell(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the Maxwell distribution: the length of a vector of three normal samples.

    Args:
        key: a single random key, of either form.
        shape: the shape of the result.
        dtype: a real floating dtype; None takes the default.
        out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
        An array of `shape` and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.maxwell(xrandom.key(0), (2, 3)).shape
        (2, 3)
    """
    words = words_of(key, "maxwell")
    exact = floating_dtype(dtype, "maxwell")
    sample = draw(_raw_maxwell, (words,), check_shape(shape, "maxwell"), exact)
    return place(sample, out_sharding, "maxwell")


def _raw_maxwell(words: Any, shape: Shape, dtype: Any) -> Array:
    z = raw_normal(words, (*shape, 3), dtype)
    return lax.sqrt(lax.reduce_sum(lax.mul(z, z), (len(shape),)))


@boundary
def double_sided_maxwell(
    key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike = None
) -> Array:
    """Draw from the double-sided Maxwell distribution: `loc + scale * sign * maxwell`.

    Args:
      key: a single random key, of either form.
      loc: the centre.
      scale: the scale, positive.
      shape: the dimensions that go before those to which `loc` and `scale` broadcast; with `()`,
        these are taken twice.
      dtype: a real floating dtype; None takes the default.

    Returns:
        An array of `shape` and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.double_sided_maxwell(xrandom.key(0), 0.0, 1.0, (2,)).shape
        (2,)
    """
    words = words_of(key, "double_sided_maxwell")
    exact = floating_dtype(dtype, "double_sided_maxwell")
    centre = parameter(loc, exact, "double_sided_maxwell: loc")
    width = parameter(scale, exact, "double_sided_maxwell: scale")
    own = sample_shape(None, "double_sided_maxwell", centre, width)
    sizes = (check_shape(shape, "double_sided_maxwell") or own) + own
    length_words, sign_words = raw_split(words, 2)
    signs = rademacher(sign_words, sizes, exact)
    lengths = _raw_maxwell(length_words, sizes, exact)
    scaled = lax.mul(lax.mul(signs, lengths), arguments.broadcast_to(width, sizes))
    return lax.add(scaled, arguments.broadcast_to(centre, sizes))


# ---------------------------------------------------------------------------------- gamma family
# The gamma distribution, and what is made of gamma samples.
#
# A sample is drawn by rejection from a transformed normal one, each with a key of its own, all of
# an array at once: those that are accepted wait for the others. For an exponent below 1 the
# sample of `a + 1` is scaled by `u^(1 / a)`.
#
# For great exponents the cube is written as a sum that begins with the mean, and what is made of
# samples takes them, not their logarithms, which have no digits left for what differs.
#
# The derivative with respect to `a` is the implicit one, of the sample with its quantile held
# fixed. Source: Marsaglia, Tsang, "A simple method for generating gamma variables", ACM TOMS 26
# (2000).

# The constant of the quick acceptance test in section 4 of the paper.
_SQUEEZE = 0.0331

# What a call of the primitive gives: samples, their logarithms, or both.
_SAMPLES, _LOGARITHMS, _BOTH = False, True, None


def _shape(key: ShapedArray, a: ShapedArray, *, log_space: bool | None, partitionable: bool) -> Any:
    lead = key.shape[:-1]
    check_key("random_gamma", key)
    if a.shape[: len(lead)] != lead:
        raise TypeError(message(
            "random_gamma", "the leading dimensions of a must be those of the keys.",
            got=f"keys {key.str_long()}, a: {a.str_long()}",
        ))  # fmt: skip
    out = xprim.shaped_array(a.shape, a.dtype)
    return (out, out) if log_space is _BOTH else (out,)


def _samples(key: Any, a: Any, log_space: bool | None, partitionable: bool) -> list[Any]:
    """Draw a sample for each element of `a`, with the layout of when the call was traced."""
    with config.threefry_partitionable(partitionable):
        lead = key.shape[:-1]
        count = math.prod(a.shape[len(lead) :])
        (keys,) = random_split_p.bind(key, shape=(count,), partitionable=partitionable)
        flat = _draw(
            lax.reshape(keys, (a.size, key.shape[-1])), lax.reshape(a, (a.size,)), log_space
        )
        return [lax.reshape(x, a.shape) for x in flat]


def _draw(keys: Any, a: Any, log_space: bool | None) -> list[Any]:
    """Draw `d v boost`, the logarithm before it or alone, for vectors of keys and exponents."""
    one = lax.full_like(a, 1.0)
    large = lax.ge(a, 1.0)
    d = lax.sub(lax.select(large, a, lax.add(a, 1.0)), 1.0 / 3.0)
    keys, boost_keys = _split_each(keys, 2)
    great = lax.gt(d, (0.008 / float(dtypes.finfo(a.dtype).eps)) ** 2)
    x, v = _accept(keys, d, lax.div(1.0 / 3.0, lax.sqrt(d)), great)
    found = []
    if log_space is not _SAMPLES:
        log_u = lax.neg(raw_exponential(boost_keys, (), a.dtype))
        zero = lax.full_like(a, 0.0)
        unscaled = lax.bitwise_or(large, lax.eq(log_u, 0.0))
        boost = lax.select(unscaled, zero, lax.mul(log_u, lax.div(one, a)))
        found.append(lax.add(lax.add(lax.log(d), lax.log(v)), boost))
    if log_space is not _LOGARITHMS:
        u = lax.sub(one, raw_uniform(boost_keys, (), a.dtype))
        boost = lax.select(large, one, lax.pow(u, lax.div(one, a)))
        scaled = lax.select(great, _of_great(x, d), lax.mul(d, v))
        found.append(lax.mul(scaled, boost))
    return found


def _of_great(x: Any, d: Any) -> Any:
    """Return `d (1 + x / sqrt(9 d))^3` as a sum, `d + sqrt(d) x + x^2 / 3 + x^3 / (27 sqrt(d))`."""
    root, square = lax.sqrt(d), lax.mul(x, x)
    rest = lax.div(lax.mul(square, x), lax.mul(root, 27.0))
    found = lax.add(d, lax.add(lax.mul(root, x), lax.add(lax.div(square, 3.0), rest)))
    return _unless_infinite(d, found)


def _unless_infinite(a: Any, x: Any) -> Any:
    """Return infinity where an exponent is, whose samples are sums of infinities of both signs."""
    return lax.select(lax.eq(a, math.inf), a, x)


def _accept(keys: Any, d: Any, c: Any, great: Any) -> tuple[Any, Any]:
    """Return the accepted normal samples z, and `v = (1 + c z)^3`.

    Those of great exponents are accepted at once: the acceptance, 1 but for some z^3 / sqrt(d), is
    nothing but rounding there.
    """

    def waiting(x: Any, v: Any, u: Any) -> Any:
        x_square = lax.mul(x, x)
        not_quick = lax.ge(u, lax.sub(1.0, lax.mul(lax.mul(x_square, x_square), _SQUEEZE)))
        bound = lax.add(lax.mul(x_square, 0.5), lax.mul(d, lax.add(lax.sub(1.0, v), lax.log(v))))
        bound = lax.select(great, lax.full_like(bound, 0.0), bound)
        return lax.bitwise_and(not_quick, lax.ge(lax.log(u), bound))

    def propose(state: Any) -> Any:
        todo = waiting(*state[1:])
        next_keys, x_keys, u_keys = _split_each(state[0], 3)
        x, cube_root = _positive(x_keys, c, todo)
        new = (
            next_keys,
            x,
            lax.mul(lax.mul(cube_root, cube_root), cube_root),
            raw_uniform(u_keys, (), d.dtype),
        )
        return tuple([_where(todo, y, old) for y, old in zip(new, state, strict=True)])

    start = (keys, lax.full_like(d, 0.0), lax.full_like(d, 1.0), lax.full_like(d, 2.0))
    _, x, v, _ = lax.while_loop(lambda state: _any(waiting(*state[1:])), propose, start)
    return x, v


def _positive(keys: Any, c: Any, todo: Any) -> tuple[Any, Any]:
    """Draw normal z until `1 + c z` is positive; return both."""

    def draw(state: Any) -> Any:
        again = lax.le(state[2], 0.0)
        next_keys, own = _split_each(state[0], 2)
        z = raw_normal(own, (), c.dtype)
        new = (next_keys, z, lax.add(lax.mul(z, c), 1.0))
        return tuple([_where(again, y, old) for y, old in zip(new, state, strict=True)])

    one = lax.full_like(c, 1.0)
    start = (keys, lax.full_like(c, 0.0), lax.select(todo, lax.neg(one), one))
    x, v = lax.while_loop(lambda state: _any(lax.le(state[2], 0.0)), draw, start)[1:]
    return x, v


def _any(mask: Any) -> Any:
    return lax.reduce_or(mask, (0,))


def _where(mask: Any, x: Any, y: Any) -> Any:
    if type(y) is float:  # what is not chosen has no part in derivatives
        return lax.select(mask, x, lax.full_like(x, y))
    if x.ndim > 1:
        mask = lax.broadcast_in_dim(mask, x.shape, (0,))
    return lax.select(mask, x, y)


def _split_each(keys: Any, num: int) -> list[Any]:
    """Split each key of a vector of keys; return vectors of keys."""
    (out,) = random_split_p.bind(
        keys, shape=(num,), partitionable=config.values.threefry_partitionable
    )
    return [lax.index_in_dim(out, i, 1, keepdims=False) for i in range(num)]


def _numpy(key: Any, a: Any, **params: Any) -> Any:
    if key.aval.type_sharding is None and a.aval.type_sharding is None:
        return tuple(draw(_samples, (key, a), params["log_space"], params["partitionable"]))
    # One vector is drawn: explicit axes of a mesh may cut what it has merged.
    avals_out = random_gamma_p.infer((key.aval, a.aval), params)
    outs = _samples(*[reshard_as(x, whole(x.aval)) for x in (key, a)], **params)
    return tuple([reshard_as(x, aval) for x, aval in zip(outs, avals_out, strict=True)])


def _jvp(
    handle: JVPHandle, primals: Any, tangents: Any, *, log_space: bool | None, **params: Any
) -> Any:
    outs = random_gamma_p.bind(*primals, log_space=log_space, **params)
    a, a_dot = primals[1], tangents[1]
    if type(a_dot) is Zero:
        return outs, tuple([Zero(handle.tangent_aval(out)) for out in outs])
    derivatives = []
    if log_space is not _SAMPLES:
        # a logarithm of 0 stands for what is below the range of the dtype
        tiny = lax.full_like(a, float(dtypes.finfo(a.dtype).tiny))
        sample = lax.exp(outs[0])
        sample = lax.select(lax.eq(sample, 0.0), tiny, sample)
        derivatives.append(lax.div(lax.random_gamma_grad(a, sample), sample))
    if log_space is not _LOGARITHMS:
        derivatives.append(lax.random_gamma_grad(a, outs[-1]))
    return outs, tuple([lax.mul(a_dot, d) for d in derivatives])


def _batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    fronts = [axis.to_front(x, d) for x, d in zip(operands, dims, strict=True)]
    outs = random_gamma_p.bind(*fronts, **params)
    return outs, (0,) * len(outs)


def _dimensions(avals: Any, out: Any, params: Any) -> dimension_names.Names:
    """Return how dimensions correspond: those of several keys are the first of the exponents."""
    key, a = avals
    keys = (*range(key.ndim - 1), None)
    return dimension_names.Names([keys, tuple(range(a.ndim))], [tuple(range(a.ndim)) for _ in out])


random_gamma_p = Primitive(
    "random_gamma",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=in_programs("random_gamma", _samples, several=True),
    jvp=_jvp,
    transpose=xprim.undefined("it is not linear"),
    batch=_batch,
    draws=True,
    sharding=_dimensions,
)


@boundary
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the gamma distribution, of density proportional to `x^(a - 1) exp(-x)`.

    Args:
      key: a single random key, of either form.
      a: the exponent, positive; of an infinite one samples are infinite.
      shape: the shape of the result; None takes that of `a`.
      dtype: a real floating dtype; None takes the default.
      method: "exact", by rejection; or "approximate", without a loop: the distribution function is
        off by at most 2e-4.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      Samples; for small `a` many of them are below the range of the dtype and 0: see `loggamma`.

    Differentiable in: `a`.

    Raises:
        TypeError: `a` is not an array;
            `key` is not a random key;
            `dtype` names no dtype;
            `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative; unknown `method`.

    Example:
      >>> from xrandom import gamma, key
      >>> gamma(key(0), 2.0, (3,)).shape
      (3,)
    """
    return place(_gamma(key, a, shape, dtype, method, False, "gamma"), out_sharding, "gamma")


@boundary
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw logarithms of gamma samples, which keep their precision for small `a`.

    Args:
      key: a single random key, of either form.
      a: the exponent, positive.
      shape: the shape of the result; None takes that of `a`.
      dtype: a real floating dtype; None takes the default.
      method: "exact", by rejection; or "approximate", without a loop: the distribution function is
        off by at most 2e-4.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Differentiable in: `a`.

    Returns:
        An array of `shape` (where that is None, of the shape that the parameters
        broadcast to) and of the dtype requested.

    Raises:
        TypeError: `a` is not an array;
            `key` is not a random key;
            `dtype` names no dtype;
            `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative; unknown `method`.

    Example:
        >>> import xnp
        >>> import xrandom
        >>> xrandom.loggamma(xrandom.key(0), xnp.array([0.1, 1.0])).shape
        (2,)
    """
    return place(_gamma(key, a, shape, dtype, method, True, "loggamma"), out_sharding, "loggamma")


def _gamma(
    key: Any, a: Any, shape: Any, dtype: Any, method: str, log_space: bool, operation: str
) -> Array:
    approximate = arguments.is_approximate(method, operation)
    words = words_of(key, operation)
    exact = floating_dtype(dtype, operation)
    exponent = parameter(a, exact, f"{operation}: a")
    sizes = sample_shape(shape, operation, exponent)
    if approximate:
        return _approximate(words, exponent, sizes)[1 - log_space]
    return raw_gamma(words, exponent, sizes, log_space)


# The coefficients of z^0, z^1, ... for each power of s = a^(-1/2) in the expansion of the cube root
# of gamma quantiles over a, in normal quantiles z: the cube root of the series of quantiles of
# Goldberg and Levine, Ann. Math. Stat. 17 (1946), whose first terms are Wilson's and Hilferty's.
_CUBE_ROOT = (
    (0, 1 / 3),
    (-1 / 9,),
    (0, 1 / 108, 0, -1 / 324),
    (-7 / 1215, 0, 4 / 1215, 0, 1 / 1215),
    (0, -5 / 2592, 0, -5 / 2916, 0, -1 / 7776),
)
_STEPS_UP = 4  # from 4 on the distribution function of the expansion is off by 1.2e-4


def _approximate(words: Any, a: Any, shape: Shape) -> tuple[Array, Array]:
    """Draw logarithms of gamma samples and the samples, from one normal sample each.

    A sample for `a + 4`, by the expansion of its quantile, times `u_i^(1 / (a + i))` of uniform
    u_0, ..., u_3, which leads down to `a`.
    """
    dtype = a.dtype
    exponent = _wide(repeat_to(a, shape))
    keys = raw_split(words, _STEPS_UP + 1)
    z = raw_normal(keys[0], shape, exponent.dtype)
    lowered = lax.full_like(exponent, 0.0)
    for i in range(_STEPS_UP):
        drawn = raw_exponential(keys[i + 1], shape, exponent.dtype)
        lowered = lax.add(lowered, lax.div(drawn, lax.add(exponent, float(i))))
    above = lax.add(exponent, float(_STEPS_UP))
    s = lax.rsqrt(above)
    root = lax.full_like(z, 0.0)
    for coefficients in reversed(_CUBE_ROOT):
        root = lax.mul(lax.add(root, _polynomial(coefficients, z)), s)
    root = lax.max(root, lax.full_like(root, -0.999))  # so far down there are no normal samples
    cubed = lax.mul(root, lax.add(lax.mul(root, lax.add(root, 3.0)), 3.0))
    sample = _unless_infinite(above, lax.add(above, lax.mul(above, cubed)))
    sample = lax.mul(sample, lax.exp(lax.neg(lowered)))
    logs = lax.sub(lax.add(lax.log(above), lax.mul(lax.log1p(root), 3.0)), lowered)
    return lax.convert_element_type(logs, dtype), lax.convert_element_type(sample, dtype)


def _polynomial(coefficients: Sequence[float], z: Any) -> Any:
    value = lax.full_like(z, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = lax.add(lax.mul(value, z), float(c))
    return value


def raw_gamma(words: Any, a: Any, shape: Shape, log_space: bool) -> Array:
    """Draw gamma samples, or their logarithms, from the words of a key."""
    return _raw(words, a, shape, log_space)[0]  # type: ignore[no-any-return]


def _raw(words: Any, a: Any, shape: Shape, log_space: bool | None = _BOTH) -> Any:
    """Draw logarithms of gamma samples and the samples, or one of them, from the words of a key."""
    return random_gamma_p.bind(
        words, repeat_to(a, shape), log_space=log_space,
        partitionable=config.values.threefry_partitionable,
    )  # fmt: skip


def _is_great(a: Any) -> Any:
    """Whether a sample varies, by a^-1/2, so little that its logarithm has too few digits."""
    bound = max(16.0, (7e-5 / float(dtypes.finfo(a.dtype).eps)) ** 2)
    return lax.gt(a, min(bound, float(dtypes.finfo(a.dtype).max) / 2))


def _wide(x: Any) -> Any:
    is_narrow = dtypes.finfo(x.dtype).bits < 32
    return lax.convert_element_type(x, dtypes.float32) if is_narrow else x


@boundary
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the beta distribution, of density proportional to `x^(a - 1) (1 - x)^(b - 1)`.

    Args:
      key: a single random key, of either form.
      a: the exponent of x, positive.
      b: the exponent of 1 - x, positive.
      shape: the shape of the result; None takes that to which `a` and `b` broadcast.
      dtype: a real floating dtype; None takes the default.
      method: "exact", by rejection; or "approximate", without a loop: the distribution function is
        off by at most 2e-4.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Differentiable in: `a` and `b`.

    Returns:
        An array of `shape` (where that is None, of the shape that the parameters
        broadcast to) and of the dtype requested.

    Raises:
        TypeError: an operand is not an array;
            `key` is not a random key;
            `dtype` names no dtype;
            `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative; unknown `method`.

    Example:
        >>> import xrandom
        >>> xrandom.beta(xrandom.key(0), 1.0, 2.0, (3,)).shape
        (3,)
    """
    draw = _approximate if arguments.is_approximate(method, "beta") else _raw
    words = words_of(key, "beta")
    exact = floating_dtype(dtype, "beta")
    params = [parameter(x, exact, f"beta: {name}") for x, name in ((a, "a"), (b, "b"))]
    sizes = sample_shape(shape, "beta", *params)
    drawn = [draw(w, p, sizes) for w, p in zip(raw_split(words, 2), params, strict=True)]
    largest = lax.max(drawn[0][0], drawn[1][0])
    x, y = [lax.exp(lax.sub(logs, largest)) for logs, _ in drawn]
    sample = lax.div(x, lax.add(x, y))
    great = _is_great(lax.min(*[repeat_to(p, sizes) for p in params]))
    g, h = [_where(great, _wide(samples), 1.0) for _, samples in drawn]
    direct = lax.convert_element_type(lax.div(g, lax.add(g, h)), exact)
    return place(lax.select(great, direct, sample), out_sharding, "beta")


@boundary
def dirichlet(
    key: ArrayLike, alpha: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None, *,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Draw from the Dirichlet distribution: positive numbers that sum to 1 along the last axis.

    Args:
      key: a single random key, of either form.
      alpha: the exponents, positive, of shape `(..., n)`.
      shape: the shape of the result without its last dimension; None takes that of `alpha`.
      dtype: a real floating dtype; None takes the default.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Differentiable in: `alpha`.

    Returns:
        An array of `shape` with the size of alpha behind it; along that axis the
        numbers sum to 1.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xnp
        >>> import xrandom
        >>> xrandom.dirichlet(xrandom.key(0), xnp.ones(4)).sum().round(3)
        Array(1., dtype=float32)
    """
    words = words_of(key, "dirichlet")
    exact = floating_dtype(dtype, "dirichlet")
    exponents = parameter(alpha, exact, "dirichlet: alpha")
    require(exponents.ndim, "dirichlet", "alpha must have at least one dimension.")
    lead = exponents.shape[:-1] if shape is None else check_shape(shape, "dirichlet")
    sizes = sample_shape((*lead, exponents.shape[-1]), "dirichlet", exponents)
    logs, samples = _raw(words, exponents, sizes)
    last = (len(sizes) - 1,)
    kept = tuple(range(len(sizes) - 1))
    largest = lax.stop_gradient(lax.reduce_max(logs, last))
    parts = lax.exp(lax.sub(logs, lax.broadcast_in_dim(largest, sizes, kept)))
    total = lax.reduce_sum(parts, last)
    sample = lax.div(parts, lax.broadcast_in_dim(total, sizes, kept))
    great = _is_great(lax.reduce_min(repeat_to(exponents, sizes), last))
    great = lax.broadcast_in_dim(great, sizes, kept)
    g = _where(great, _wide(samples), 1.0)
    total = lax.broadcast_in_dim(lax.reduce_sum(g, last), sizes, kept)
    direct = lax.convert_element_type(lax.div(g, total), exact)
    return place(lax.select(great, direct, sample), out_sharding, "dirichlet")


@boundary
def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    method: str = "exact",
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the chi-square distribution: sums of `df` squared normal samples.

    Args:
      key: a single random key, of either form.
      df: the degrees of freedom, positive.
      shape: the shape of the result; None takes that of `df`.
      dtype: a real floating dtype; None takes the default.
      method: "exact", by rejection; or "approximate", without a loop: the distribution function is
        off by at most 2e-4.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
        An array of `shape` (where that is None, of the shape that the parameters
        broadcast to) and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative; unknown `method`.

    Example:
        >>> import xrandom
        >>> xrandom.chisquare(xrandom.key(0), 3.0, (3,)).shape
        (3,)
    """
    draw = _approximate if arguments.is_approximate(method, "chisquare") else _raw
    words = words_of(key, "chisquare")
    exact = floating_dtype(dtype, "chisquare")
    degrees = parameter(df, exact, "chisquare: df")
    sample = _chisquare(words, degrees, sample_shape(shape, "chisquare", degrees), draw)
    return place(sample, out_sharding, "chisquare")


def _chisquare(words: Any, df: Any, shape: Shape, draw: Callable[..., Any] | None = None) -> Array:
    half = repeat_to(lax.div(df, 2.0), shape)
    logs, samples = (draw or _raw)(words, half, shape)
    return lax.mul(lax.select(_is_great(half), samples, lax.exp(logs)), 2.0)


def _of_half_degrees(words: Any, df: Any, shape: Shape) -> tuple[Any, Any, Any]:
    """Return half the degrees of freedom, logarithms of gamma samples of so many, and the samples.

    Of infinite ones, whose samples over them are 1, these are 1, 0 and 1.
    """
    half = repeat_to(lax.div(df, 2.0), shape)
    is_finite = lax.ne(half, math.inf)
    half = _where(is_finite, half, 1.0)
    logs, samples = _raw(words, half, shape)
    return half, _where(is_finite, logs, 0.0), _where(is_finite, samples, 1.0)


@boundary
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the F distribution: the quotient of two chi-square samples, each over its degrees.

    Args:
      key: a single random key, of either form.
      dfnum: the degrees of freedom of the numerator, positive; infinity makes it 1.
      dfden: those of the denominator, likewise.
      shape: the shape of the result; None takes that to which they broadcast.
      dtype: a real floating dtype; None takes the default.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
        An array of `shape` (where that is None, of the shape that the parameters
        broadcast to) and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.f(xrandom.key(0), 3.0, 4.0, (3,)).shape
        (3,)
    """
    words = words_of(key, "f")
    exact = floating_dtype(dtype, "f")
    above, below = parameter(dfnum, exact, "f: dfnum"), parameter(dfden, exact, "f: dfden")
    sizes = sample_shape(shape, "f", above, below)
    below_words, above_words = raw_split(words, 2)
    drawn = [_of_half_degrees(w, df, sizes)
             for w, df in ((above_words, above), (below_words, below))]  # fmt: skip
    # Where a sample is out of range, the logarithm of the quotient may be in it.
    logs = lax.sub(drawn[0][1], drawn[1][1])
    logs = lax.add(logs, lax.sub(*[lax.log(half) for half, _, _ in drawn[::-1]]))
    parts = [lax.div(lax.select(_is_great(half), sample, lax.exp(log)), half)
             for half, log, sample in drawn]  # fmt: skip
    info = dtypes.finfo(exact)
    in_range = lax.bitwise_and(lax.gt(lax.min(*parts), float(info.tiny)),
                               lax.lt(lax.max(*parts), float(info.max)))  # fmt: skip
    quotient = lax.div(*[_where(in_range, part, 1.0) for part in parts])
    sample = lax.select(in_range, quotient, lax.exp(logs))
    return place(sample, out_sharding, "f")


@boundary
def t(
    key: ArrayLike, df: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None, *,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Draw from Student's t distribution.

    Args:
      key: a single random key, of either form.
      df: the degrees of freedom, positive; infinity gives the normal distribution.
      shape: the shape of the result; None takes that of `df`.
      dtype: a real floating dtype; None takes the default.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
        An array of `shape` (where that is None, of the shape that the parameters
        broadcast to) and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.t(xrandom.key(0), 3.0, (3,)).shape
        (3,)
    """
    words = words_of(key, "t")
    exact = floating_dtype(dtype, "t")
    degrees = parameter(df, exact, "t: df")
    sizes = sample_shape(shape, "t", degrees)
    normal_words, gamma_words = raw_split(words, 2)
    z = raw_normal(normal_words, sizes, exact)
    half, logs, g = _of_half_degrees(gamma_words, degrees, sizes)
    # The root of a sample below the range of the dtype may be in it.
    in_range = lax.gt(g, float(dtypes.finfo(exact).tiny) / float(dtypes.finfo(exact).eps))
    scale = lax.sqrt(lax.div(half, _where(in_range, g, 1.0)))
    far = lax.exp(lax.mul(lax.sub(lax.log(half), logs), 0.5))
    return place(lax.mul(z, lax.select(in_range, scale, far)), out_sharding, "t")


@boundary
def generalized_normal(
    key: ArrayLike, p: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike = None, *,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Draw from the generalised normal distribution, of density proportional to `exp(-|x|^p)`.

    Args:
      key: a single random key, of either form.
      p: the exponent, a positive number.
      shape: the shape of the result.
      dtype: a real floating dtype; None takes the default.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
        An array of `shape` and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.generalized_normal(xrandom.key(0), 1.5, (3,)).shape
        (3,)
    """
    words = words_of(key, "generalized_normal")
    exact = floating_dtype(dtype, "generalized_normal")
    exponent = _finite(parameter(p, exact, "generalized_normal: p"))
    sizes = sample_shape(check_shape(shape, "generalized_normal"), "generalized_normal", exponent)
    sample = _generalized_normal(words, exponent, sizes, exact)
    return place(sample, out_sharding, "generalized_normal")


def _finite(exponent: Array) -> Array:
    """Return an exponent, of great ones one with the samples of an infinite one in the dtype."""
    most: Array = lax.min(exponent, 1.0 / float(dtypes.finfo(exponent.dtype).eps))
    return most


def _generalized_normal(words: Any, p: Any, shape: Shape, dtype: np.dtype[Any]) -> Array:
    gamma_words, sign_words = raw_split(words, 2)
    inverse = lax.div(lax.full_like(p, 1.0), p)
    logs, g = _raw(gamma_words, inverse, shape)
    inverse = repeat_to(inverse, shape)
    # The power of a sample below the range of the dtype may be near 1.
    in_range = lax.gt(g, float(dtypes.finfo(dtype).tiny) / float(dtypes.finfo(dtype).eps))
    power = lax.pow(_where(in_range, g, 1.0), inverse)
    size = lax.select(in_range, power, lax.exp(lax.mul(logs, inverse)))
    return lax.mul(rademacher(sign_words, shape, dtype), size)


@boundary
def ball(
    key: ArrayLike, d: int, p: ArrayLike = 2, shape: ShapeLike = (), dtype: DTypeLike = None, *,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Draw uniformly from the unit ball of the p-norm in d dimensions.

    Args:
      key: a single random key, of either form.
      d: the dimension, a Python integer.
      p: the exponent of the norm, a positive number.
      shape: the shape of the result without its last dimension, which is `d`.
      dtype: a real floating dtype; None takes the default.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Source: Barthe, Guedon, Mendelson, Naor, "A probabilistic approach to the geometry of the l_p^n
    ball", Annals of Probability 33 (2005).

    Returns:
        An array of `shape` with d behind it: points of the ball of radius 1.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.ball(xrandom.key(0), 3, shape=(5,)).shape
        (5, 3)
    """
    words = words_of(key, "ball")
    exact = floating_dtype(dtype, "ball")
    exponent = _finite(parameter(p, exact, "ball: p"))
    sizes = check_shape(shape, "ball")
    full = (*sizes, *check_shape((d,), "ball"))
    normal_words, exponential_words = raw_split(words, 2)
    g = _generalized_normal(normal_words, exponent, full, exact)
    e = raw_exponential(exponential_words, sizes, exact)
    e = lax.max(e, float(dtypes.finfo(exact).eps) / 2)  # the powers may all be below the range
    powers = lax.pow(lax.abs(g), repeat_to(exponent, full))
    total = lax.add(lax.reduce_sum(powers, (len(sizes),)), e)
    inverse = lax.div(lax.full_like(exponent, 1.0), exponent)
    length = lax.pow(total, repeat_to(inverse, sizes))
    sample = lax.div(g, lax.broadcast_in_dim(length, full, tuple(range(len(sizes)))))
    return place(sample, out_sharding, "ball")


# ---------------------------------------------------------------------------------- multivariate
# Samples with a matrix structure: `multivariate_normal`, `orthogonal`.

_METHODS = ("cholesky", "eigh", "svd")


@boundary
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    method: str = "cholesky",
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from a normal distribution of given mean and covariance: `mean + L z`, `L L^T = cov`.

    Args:
      key: a single random key, of either form.
      mean: of shape `(..., n)`.
      cov: symmetric, positive semidefinite, of shape `(..., n, n)`.
      shape: the shape of the result without its last dimension; None takes that to which the
        leading dimensions of `mean` and `cov` broadcast.
      dtype: a real floating dtype; None takes that of `mean` and `cov`.
      method: how `L` is found: "cholesky" (for positive definite matrices), "eigh" or "svd".
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      Samples of shape `(*shape, n)`.

    Differentiable in: `mean` and `cov`.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative; unknown `method`.

    Example:
        >>> import xnp
        >>> import xrandom
        >>> xrandom.multivariate_normal(xrandom.key(0), xnp.zeros(2), xnp.eye(2), (5,)).shape
        (5, 2)
    """
    require_choice("multivariate_normal", "method", method, _METHODS)
    words = words_of(key, "multivariate_normal")
    centre = as_array(mean, what="multivariate_normal: mean")
    covariance = as_array(cov, what="multivariate_normal: cov")
    own = result_type(centre, covariance)
    if not dtypes.is_floating(own):
        own = dtypes.python_scalar_dtype(float)
    exact = own if dtype is None else floating_dtype(dtype, "multivariate_normal")
    centre, covariance = [lax.convert_element_type(x, exact) for x in (centre, covariance)]
    n = centre.shape[-1] if centre.ndim else -1
    require(
        covariance.shape[-2:] == (n, n), "multivariate_normal",
        "mean must be a vector and cov a square matrix of its size.",
        got={"mean": centre, "cov": covariance},
    )  # fmt: skip
    lead = sample_shape(
        shape, "multivariate_normal", _Leading(centre.shape[:-1]), _Leading(covariance.shape[:-2])
    )
    factor = repeat_to(_factor(covariance, method), (*lead, n, n))
    z = raw_normal(words, (*lead, n), exact)
    row = repeat_to(lax.reshape(z, (*lead, 1, n)), (*lead, n, n))
    noise = lax.reduce_sum(lax.mul(factor, row), (len(lead) + 1,))
    return place(lax.add(repeat_to(centre, (*lead, n)), noise), out_sharding, "multivariate_normal")


class _Leading:
    """The leading dimensions of a parameter."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


def _factor(covariance: Any, method: str) -> Any:
    """Return a matrix L with `L L^T = covariance`."""
    if method == "cholesky":
        return lax.linalg.cholesky(covariance)
    if method == "eigh":
        vectors, values = lax.linalg.eigh(covariance)
    else:
        vectors, values, _ = lax.linalg.svd(covariance)
    scale = lax.sqrt(values)
    row = lax.reshape(scale, (*scale.shape[:-1], 1, scale.shape[-1]))
    return lax.mul(vectors, repeat_to(row, vectors.shape))


@boundary
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    m: int | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw orthogonal matrices, uniformly (by the Haar measure).

    Args:
      key: a single random key, of either form.
      n: the number of rows.
      shape: the leading dimensions of the result.
      dtype: a floating or complex dtype; None takes the default. Complex matrices are unitary.
      m: the number of columns; None takes `n`. Of a matrix that is not square, the rows or columns
        (the fewer of them) are orthonormal.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Source: Mezzadri, "How to generate random matrices from the classical compact groups" (2007).

    Returns:
        An array of `shape` with the two dimensions of a matrix behind it.

    Raises:
        TypeError: `m` is not an array;
            `key` is not a random key;
            `dtype` names no dtype;
            `out_sharding` is not a sharding.
        ValueError: `n` is negative; a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.orthogonal(xrandom.key(0), 3).shape
        (3, 3)
    """
    words = words_of(key, "orthogonal")
    rows = operator.index(n)
    columns = rows if m is None else operator.index(m)
    lead = check_shape(shape, "orthogonal")
    tall, narrow = max(rows, columns), min(rows, columns)
    gaussian = draw_normal(words, (*lead, tall, narrow), dtype, "orthogonal")
    q, r = lax.linalg.qr(gaussian, full_matrices=False)
    eye = lax.eq(*[lax.broadcasted_iota(dtypes.int32, (narrow, narrow), d) for d in (0, 1)])
    on_diagonal = lax.select(repeat_to(eye, r.shape), r, lax.full_like(r, 0))
    signs = lax.sign(lax.reduce_sum(on_diagonal, (len(lead),)))
    x = lax.mul(q, repeat_to(lax.reshape(signs, (*lead, 1, narrow)), q.shape))
    if rows < columns:
        x = lax.transpose(x, (*range(len(lead)), len(lead) + 1, len(lead)))
    return place(x, out_sharding, "orthogonal")
