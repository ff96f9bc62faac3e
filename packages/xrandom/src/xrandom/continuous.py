"""Distributions whose samples are a formula of uniform or normal ones.

Where there is one, the formula is the inverse of the distribution function, so a sample depends on
one random number alone.
"""

from __future__ import annotations

import math
from typing import Any

from xnp import lax
from xnp.docstrings import complete
from xnp.placing import placed
from xprim import Array, dtypes
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from xrandom._uniform import raw_positive, uniform_between
from xrandom.arguments import (
    Shape,
    broadcasted,
    checked_shape,
    floating_dtype,
    parameter,
    repeated,
    sample_shape,
)
from xrandom.docstrings import CONTINUOUS
from xrandom.integers import rademacher
from xrandom.keys import raw_split, words_of
from xrandom.standard_distributions import raw_normal, raw_uniform

__all__ = ()


@boundary
def exponential(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the exponential distribution, of density `exp(-x)` for x >= 0."""
    words = words_of(key, "exponential")
    sizes = checked_shape(shape, "exponential")
    sample = raw_exponential(words, sizes, floating_dtype(dtype, "exponential"))
    return placed(sample, out_sharding, "exponential")


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
    """Draw from the Laplace distribution, of density `exp(-|x|) / 2`."""
    words = words_of(key, "laplace")
    exact = floating_dtype(dtype, "laplace")
    sizes = checked_shape(shape, "laplace")
    u = uniform_between(words, sizes, exact, -1.0 + float(dtypes.finfo(exact).epsneg), 1.0)
    return placed(lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u)))), out_sharding, "laplace")


@boundary
def logistic(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the logistic distribution, of distribution function `1 / (1 + exp(-x))`."""
    words = words_of(key, "logistic")
    exact = floating_dtype(dtype, "logistic")
    sizes = checked_shape(shape, "logistic")
    u = raw_positive(words, sizes, exact)
    return placed(lax.sub(lax.log(u), lax.log1p(lax.neg(u))), out_sharding, "logistic")


@boundary
def cauchy(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the Cauchy distribution, of density `1 / (pi (1 + x^2))`."""
    words = words_of(key, "cauchy")
    exact = floating_dtype(dtype, "cauchy")
    sizes = checked_shape(shape, "cauchy")
    u = uniform_between(words, sizes, exact, float(dtypes.finfo(exact).eps), 1.0)
    return placed(lax.tan(lax.mul(lax.sub(u, 0.5), math.pi)), out_sharding, "cauchy")


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
    """
    words = words_of(key, "pareto")
    exact = floating_dtype(dtype, "pareto")
    exponent = parameter(b, exact, "pareto: b")
    sizes = sample_shape(shape, "pareto", exponent)
    sample = lax.exp(lax.div(raw_exponential(words, sizes, exact), broadcasted(exponent, sizes)))
    return placed(sample, out_sharding, "pareto")


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
    """
    words = words_of(key, "rayleigh")
    exact = floating_dtype(dtype, "rayleigh")
    s = parameter(scale, exact, "rayleigh: scale")
    sizes = sample_shape(shape, "rayleigh", s)
    u = raw_positive(words, sizes, exact)
    sample = lax.mul(broadcasted(s, sizes), lax.sqrt(lax.mul(lax.log(u), -2.0)))
    return placed(sample, out_sharding, "rayleigh")


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
    """
    words = words_of(key, "weibull_min")
    exact = floating_dtype(dtype, "weibull_min")
    s = parameter(scale, exact, "weibull_min: scale")
    k = parameter(concentration, exact, "weibull_min: concentration")
    drawn = checked_shape(shape, "weibull_min")
    sizes = lax.broadcast_shapes(drawn, s.shape, k.shape)
    # its least value stands for all of [0, epsilon): a root of 0 would be far from all others
    e = lax.max(raw_exponential(words, drawn, exact), float(dtypes.finfo(exact).eps) / 2)
    e, s, k = [repeated(x, sizes) for x in (e, s, k)]
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
    """
    words = words_of(key, "triangular")
    exact = floating_dtype(dtype, "triangular")
    corners = [parameter(x, exact, f"triangular: {name}")
               for x, name in ((left, "left"), (mode, "mode"), (right, "right"))]  # fmt: skip
    sizes = sample_shape(shape, "triangular", *corners)
    a, c, b = [repeated(x, sizes) for x in corners]
    u = raw_uniform(words, sizes, exact)
    scale, back = _scale_of_squares(lax.max(lax.abs(a), lax.abs(b)))
    a, c, b = [lax.mul(x, scale) for x in (a, c, b)]
    width = lax.sub(b, a)
    rising = lax.add(a, lax.sqrt(lax.mul(lax.mul(u, width), lax.sub(c, a))))
    rest = lax.sub(lax.full_like(u, 1.0), u)
    falling = lax.sub(b, lax.sqrt(lax.mul(lax.mul(rest, width), lax.sub(b, c))))
    sample = lax.select(lax.lt(u, lax.div(lax.sub(c, a), width)), rising, falling)
    return placed(lax.mul(sample, back), out_sharding, "triangular")


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
    """
    words = words_of(key, "wald")
    exact = floating_dtype(dtype, "wald")
    m = parameter(mean, exact, "wald: mean")
    sizes = sample_shape(shape, "wald", m)
    m = repeated(m, sizes)
    normal_words, uniform_words = raw_split(words, 2)
    y = lax.square(raw_normal(normal_words, sizes, exact))
    z = raw_uniform(uniform_words, sizes, exact)
    # x and m^2 / x are the roots of the transformed equation. Where t is large the smaller one is a
    # difference of numbers that agree, so there the larger one, a sum, comes first.
    square, half = lax.square(m), lax.mul(y, 0.5)
    root = lax.sqrt(lax.add(lax.mul(lax.mul(m, 4.0), y), lax.mul(square, lax.square(y))))
    x = lax.sub(lax.add(m, lax.div(lax.mul(square, y), 2.0)), lax.mul(lax.div(m, 2.0), root))
    inverse = lax.div(1.0, m)
    turned = lax.mul(lax.sqrt(half), lax.sqrt(lax.add(half, lax.mul(inverse, 2.0))))
    factor = lax.add(lax.add(inverse, half), turned)  # the larger one over m^2
    info = dtypes.finfo(exact)
    near = lax.lt(lax.mul(m, half), math.sqrt(2.5e-4 / float(info.eps)))
    for in_range in (lax.gt(square, float(info.tiny) / float(info.eps)), lax.lt(square, math.inf)):
        near = lax.bitwise_and(near, in_range)
    other = lax.select(near, lax.div(square, x), lax.mul(lax.mul(m, factor), m))
    x = lax.select(near, x, lax.div(1.0, factor))
    smaller = lax.le(z, lax.div(m, lax.add(m, x)))
    return placed(lax.select(smaller, x, other), out_sharding, "wald")


@boundary
def maxwell(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the Maxwell distribution: the length of a vector of three normal samples."""
    words = words_of(key, "maxwell")
    exact = floating_dtype(dtype, "maxwell")
    sample = _raw_maxwell(words, checked_shape(shape, "maxwell"), exact)
    return placed(sample, out_sharding, "maxwell")


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
    """
    words = words_of(key, "double_sided_maxwell")
    exact = floating_dtype(dtype, "double_sided_maxwell")
    centre = parameter(loc, exact, "double_sided_maxwell: loc")
    width = parameter(scale, exact, "double_sided_maxwell: scale")
    own = sample_shape(None, "double_sided_maxwell", centre, width)
    sizes = (checked_shape(shape, "double_sided_maxwell") or own) + own
    length_words, sign_words = raw_split(words, 2)
    signs = rademacher(sign_words, sizes, exact)
    lengths = _raw_maxwell(length_words, sizes, exact)
    scaled = lax.mul(lax.mul(signs, lengths), broadcasted(width, sizes))
    return lax.add(scaled, broadcasted(centre, sizes))


complete(globals(), CONTINUOUS)
