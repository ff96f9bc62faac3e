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
from xrandom._uniform import uniform_between
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
    u = uniform_between(words, sizes, exact, float(dtypes.finfo(exact).tiny), 1.0)
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
    u = raw_uniform(words, sizes, exact)
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
    e = raw_exponential(words, drawn, exact)
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
    width = lax.sub(b, a)
    rising = lax.add(a, lax.sqrt(lax.mul(lax.mul(u, width), lax.sub(c, a))))
    rest = lax.sub(lax.full_like(u, 1.0), u)
    falling = lax.sub(b, lax.sqrt(lax.mul(lax.mul(rest, width), lax.sub(b, c))))
    sample = lax.select(lax.lt(u, lax.div(lax.sub(c, a), width)), rising, falling)
    return placed(sample, out_sharding, "triangular")


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
    square = lax.square(m)
    root = lax.sqrt(lax.add(lax.mul(lax.mul(m, 4.0), y), lax.mul(square, lax.square(y))))
    x = lax.sub(lax.add(m, lax.div(lax.mul(square, y), 2.0)), lax.mul(lax.div(m, 2.0), root))
    smaller = lax.le(z, lax.div(m, lax.add(m, x)))
    return placed(lax.select(smaller, x, lax.div(square, x)), out_sharding, "wald")


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
