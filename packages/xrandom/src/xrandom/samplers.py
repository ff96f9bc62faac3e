"""The basic samplers: bits, uniform, normal, categorical, integers, permutations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import xprim
from xnp import lax
from xnp.numpy.indexing import take
from xnp.placing import place
from xprim import (
    Array,
    ConcreteArray,
    ShapedArray,
    as_array,
    config,
    dtypes,
    get_primitive,
    scalar_array,
    state,
)
from xprim.avals import SymbolicSize
from xprim.eager import EAGER
from xprim.errors import ShapeError, described, message
from xprim.kernels import Kernel, KernelTable, numpy_function, numpy_operand
from xprim.requirements import require, require_choice, static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from xrandom import arguments
from xrandom.arguments import Shape, broadcast_to, check_shape, parameter, repeat_to, sample_shape
from xrandom.bit_generator import UINT_BY_WIDTH
from xrandom.key_primitives import random_bits_p, raw_normal, raw_uniform
from xrandom.keys import raw_split, words_of

__all__ = ()

# ------------------------------------------------------------------------------------------ bits
# Random bits: what every sampler is made of.


def bits(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw uniform random bits.

    Args:
      key: a single random key, of either form.
      shape: the shape of the result.
      dtype: an unsigned integer dtype of 8 to 64 bits; None takes uint32, or uint64 with
        `enable_x64`.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      An array whose every value of the dtype is equally likely.

    Raises:
      ValueError: the dtype is not an unsigned integer one.

    Example:
      >>> from xrandom import bits, key
      >>> bits(key(0), (2,), "uint8").dtype
      dtype('uint8')
    """
    if dtype is None:
        exact = dtypes.uint64 if config.values.enable_x64 else dtypes.uint32
    else:
        exact = dtypes.requested_dtype(dtype, "bits")
    if not dtypes.is_unsigned_integer(exact) or dtypes.itemsize_bits(exact) < 8:
        raise ValueError(message(
            "bits", "the dtype must be an unsigned integer one.", got=f"{dtypes.short_name(exact)}",
            expected="uint8, uint16, uint32 or uint64",
        ))  # fmt: skip
    words = words_of(key, "bits")
    sample = raw_bits(words, dtypes.itemsize_bits(exact), check_shape(shape, "bits"))
    return place(sample, out_sharding, "bits")


def raw_bits(words: Any, bit_width: int, shape: Shape) -> Array:
    """Draw bits from the words of a key."""
    (out,) = random_bits_p.bind(
        words,
        bit_width=bit_width,
        shape=shape,
        partitionable=config.values.threefry_partitionable,
    )
    return out  # type: ignore[no-any-return]


# --------------------------------------------------------------------------------------- uniform
# Uniform samples between bounds.


def uniform(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the uniform distribution on [minval, maxval).

    Args:
      key: a single random key, of either form.
      shape: the shape of the result.
      dtype: a real floating dtype; None takes float32, or float64 with `enable_x64`.
      minval: the lower bound, of a shape that broadcasts to `shape`.
      maxval: the upper bound, likewise.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      Values `minval + u (maxval - minval)` with `u` a multiple of the dtype's epsilon in [0, 1).
      Rounding can give `maxval` itself where the bounds are close together.

    Differentiable in `minval` and `maxval`.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
      >>> from xrandom import key, uniform
      >>> u = uniform(key(0), (3,))
      >>> bool((u >= 0).all() and (u < 1).all())
      True
    """
    words = words_of(key, "uniform")
    exact = arguments.floating_dtype(dtype, "uniform")
    sizes = check_shape(shape, "uniform")
    if type(minval) is float and type(maxval) is float:
        bounds = minval or 0.0, maxval or 0.0  # 0.0 for -0.0, which look-ups do not distinguish
        sample = draw(uniform_between, (words,), sizes, exact, *bounds)
        return place(sample, out_sharding, "uniform")
    low = parameter(minval, exact, "uniform: minval")
    high = parameter(maxval, exact, "uniform: maxval")
    for name, bound in (("minval", low), ("maxval", high)):
        _check_bound(name, bound.shape, sizes)
    low, high = broadcast_to(low, sizes), broadcast_to(high, sizes)
    u = raw_uniform(words, sizes, exact)
    span = lax.sub(high, low)
    sample = lax.max(low, lax.add(lax.mul(u, span), low))
    if _may_be_endless(span):
        endless = repeat_to(lax.bitwise_and(_is_infinite(span), lax.ne(high, math.inf)), sizes)
        sample = lax.select(endless, _between_halves(u, low, high), sample)
    return place(sample, out_sharding, "uniform")


def _is_infinite(x: Any) -> Any:
    return lax.eq(lax.abs(x), math.inf)


def _may_be_endless(span: Any) -> bool:
    """Whether the difference of two bounds is, or may be, above the greatest number."""
    if type(span) is not ConcreteArray or span.host is None:
        return True
    if not span.ndim:
        return math.isinf(float(span.host))
    host = span.host if span.host.dtype.kind == "f" else span.host.astype(np.float32)
    return bool(np.isinf(host).any())


def _between_halves(u: Any, low: Any, high: Any) -> Any:
    """Return `low + u (high - low)` for bounds whose difference is above the greatest number."""
    return lax.add(lax.mul(u, high), lax.mul(lax.sub(1.0, u), low))


def raw_positive(words: Any, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Draw uniformly from (0, 1): multiples of epsilon, and half of it for 0.

    A logarithm, or an inverse, of 0 or of the least number above it is not a sample: in bfloat16
    one of 128 numbers is 0.
    """
    return lax.max(raw_uniform(words, shape, dtype), float(dtypes.finfo(dtype).eps) / 2)


def _check_bound(name: str, shape: Shape, sizes: Shape) -> None:
    try:
        if np.broadcast_shapes(shape, sizes) == sizes:
            return
    except ValueError:
        pass
    raise ShapeError(message(
        "uniform", f"{name} must broadcast to the shape of the sample.",
        got=f"{name} of shape {shape}", expected=f"a shape that broadcasts to {sizes}",
    ))  # fmt: skip


def uniform_between(
    words: Any, shape: Shape, dtype: np.dtype[Any], minval: float, maxval: float
) -> Array:
    """Draw uniformly between two Python numbers."""
    u = raw_uniform(words, shape, dtype)
    if minval == 0.0 and maxval == 1.0:
        return u
    low, span, ordered = _span(dtype, minval, maxval)
    if math.isinf(span) and not math.isinf(low):
        return lax.max(_between_halves(u, low, float(np.array(maxval).astype(dtype))), low)
    if span != 1.0:
        u = lax.mul(u, span)
    u = lax.add(u, low)
    return u if ordered else lax.max(u, low)


@functools.lru_cache(maxsize=256)
def _span(dtype: np.dtype[Any], minval: float, maxval: float) -> tuple[float, float, bool]:
    """Return the bounds' lower one and difference, rounded to the dtype, and whether it is >= 0."""
    with np.errstate(all="ignore"):
        low, high = np.array(minval).astype(dtype), np.array(maxval).astype(dtype)
        span = high - low
    return float(low), float(span), bool(span >= 0)


# ---------------------------------------------------------------------------------------- normal
# Normal samples and what is made of them.
#
# A uniform number in (-1, 1) goes through the inverse of the distribution function: `sqrt(2)
# erf_inv(u)`. So one word gives one sample, and a sample depends on its own word alone.
#
# Far out erf is nearly 1, where its numbers are too far apart to tell samples apart: between
# bounds out there a sample is found by its distance from the nearer one (see `_in_tail`).


def normal(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the standard normal distribution, of density `exp(-x^2 / 2) / sqrt(2 pi)`.

    Args:
      key: a single random key, of either form.
      shape: the shape of the result.
      dtype: a floating or complex dtype; None takes float32, or float64 with `enable_x64`. Complex
        samples have independent parts, each of variance 1/2.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      Samples; in float32 their magnitude is below 5.42, as 23 random bits make each.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
      >>> from xrandom import key, normal
      >>> normal(key(0), (2, 3)).shape
      (2, 3)
    """
    words = words_of(key, "normal")
    found = draw_normal(words, check_shape(shape, "normal"), dtype, "normal")
    return place(found, out_sharding, "normal")


def draw_normal(words: Any, shape: Shape, dtype: Any, operation: str) -> Array:
    """Draw from the words of a key what `normal` returns."""
    if dtype is not None:
        exact = dtypes.requested_dtype(dtype, operation)
        if dtypes.is_complex(exact):
            return _complex_normal(words, shape, exact)
    exact = arguments.floating_dtype(dtype, operation)
    return draw(raw_normal, (words,), shape, exact)  # type: ignore[no-any-return]


def _complex_normal(words: Any, shape: Shape, dtype: np.dtype[Any]) -> Array:
    part = dtypes.float32 if dtype == dtypes.complex64 else dtypes.float64
    re, im = [raw_normal(w, shape, part) for w in raw_split(words, 2)]
    return lax.div(lax.complex(re, im), complex(math.sqrt(2)))


def lognormal(
    key: ArrayLike, sigma: ArrayLike = 1.0, shape: ShapeLike | None = None,
    dtype: DTypeLike = None, *, out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Draw from the log-normal distribution: `exp(sigma z)` with `z` standard normal.

    Args:
      key: a single random key, of either form.
      sigma: the standard deviation of the logarithm.
      shape: the shape of the result; None takes that of `sigma`.
      dtype: a real floating dtype; None takes the default.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Differentiable in `sigma`.

    Returns:
        An array of `shape` (where that is None, of the shape that the parameters
        broadcast to) and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.lognormal(xrandom.key(0), 0.5, (3,)).shape
        (3,)
    """
    words = words_of(key, "lognormal")
    exact = arguments.floating_dtype(dtype, "lognormal")
    scale = parameter(sigma, exact, "lognormal: sigma")
    sizes = sample_shape(shape, "lognormal", scale)
    return place(draw(_lognormal, (words, scale), sizes), out_sharding, "lognormal")


def _lognormal(words: Any, scale: Any, shape: Shape) -> Any:
    return lax.exp(lax.mul(raw_normal(words, shape, scale.dtype), broadcast_to(scale, shape)))


def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the standard normal distribution, restricted to (lower, upper).

    Args:
      key: a single random key, of either form.
      lower: the bound below.
      upper: the bound above.
      shape: the shape of the result; None takes that to which the bounds broadcast.
      dtype: a real floating dtype; None takes the default.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      Values strictly between the bounds; in float32 those of one key and shape between bounds that
      are not both beyond 3 standard deviations are those of JAX.

    Differentiable in `lower` and `upper`.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
      >>> from xrandom import key, truncated_normal
      >>> x = truncated_normal(key(0), -1.0, 2.0, (100,))
      >>> bool((x > -1).all() and (x < 2).all())
      True
      >>> x = truncated_normal(key(0), 20.0, float("inf"), (1000,))
      >>> bool(x.mean().round(2) == 20.05)
      True
    """
    words = words_of(key, "truncated_normal")
    exact = arguments.floating_dtype(dtype, "truncated_normal")
    low = parameter(lower, exact, "truncated_normal: lower")
    high = parameter(upper, exact, "truncated_normal: upper")
    sizes = sample_shape(shape, "truncated_normal", low, high)
    low, high = broadcast_to(low, sizes), broadcast_to(high, sizes)
    mask = _mask_of_tails(low, high)
    if type(mask) is bool:
        sample = draw(_truncate, (words, low, high), sizes, mask)
    else:
        sample = _truncate(words, low, high, sizes, mask)
    return place(sample, out_sharding, "truncated_normal")


def _truncate(words: Any, low: Any, high: Any, shape: Shape, mask: Any) -> Any:
    """Draw between bounds; `mask` is that of `_between`."""
    x = _between(raw_uniform(words, shape, low.dtype), low, high, mask)
    inside_low, inside_high = [
        lax.nextafter(lax.stop_gradient(bound), lax.full_like(bound, infinity))
        for bound, infinity in ((low, math.inf), (high, -math.inf))
    ]
    return lax.min(lax.max(x, inside_low), inside_high)


def _between(u: Any, low: Any, high: Any, mask: Any) -> Array:
    """Return the quantile u between bounds, by the formula of tails where the mask holds.

    Args:
      u: numbers in [0, 1).
      low: the bound below, of the shape of `u` or of rank 0, as are `high` and `mask`.
      high: the bound above.
      mask: booleans, or one for all.
    """
    if mask is True:
        return _in_tail(u, low, high)  # type: ignore[no-any-return]
    if mask is False:
        return _by_erf(u, low, high)
    known = type(mask) is ConcreteArray

    def both(u: Any, low: Any, high: Any, mask: Any) -> Any:
        # what is not chosen is computed between harmless bounds, for the sake of derivatives
        ordinary = [_where(mask, float(k), x) for k, x in enumerate((low, high))]
        tails = [_where(mask, x, float(k)) for k, x in enumerate((low, high), 3)]
        chosen = mask if mask.ndim == u.ndim else lax.broadcast_in_dim(mask, u.shape, ())
        return lax.select(chosen, _in_tail(u, *tails), _by_erf(u, *ordinary))

    if known:
        return both(u, low, high, mask)  # type: ignore[no-any-return]
    any_in_tail = lax.reduce_or(mask, tuple(range(mask.ndim))) if mask.ndim else mask
    return lax.cond(  # type: ignore[no-any-return]
        any_in_tail, both, lambda u, low, high, _: _by_erf(u, low, high), u, low, high, mask
    )


def _where(mask: Any, x: Any, y: Any) -> Any:
    x, y = [lax.full_like(mask, v, (y if x is v else x).dtype) if type(v) is float else v
            for v in (x, y)]  # fmt: skip
    shape = max(mask.shape, x.shape, y.shape, key=len)
    return lax.select(*[v if v.shape == shape else lax.broadcast_in_dim(v, shape, ())
                        for v in (mask, x, y)])  # fmt: skip


def _by_erf(u: Any, low: Any, high: Any) -> Array:
    """Return the quantile u between bounds: `sqrt(2) erf_inv(a + u (b - a))`, a and b their erf."""
    root = math.sqrt(2)
    a, b = lax.erf(lax.div(low, root)), lax.erf(lax.div(high, root))
    # The same rounding as a draw between bounds that are arrays.
    u = lax.max(a, lax.add(lax.mul(u, lax.sub(b, a)), a))
    if not (_is_near(low) and _is_near(high)):
        # At -1 and 1 the inverse is infinite, or the bound: those are not samples.
        inner = 1.0 - float(dtypes.finfo(u.dtype).epsneg)
        u = lax.clamp(-inner, u, inner)
    return lax.mul(lax.erf_inv(u), root)


def _is_near(bound: Any) -> bool:
    """Whether a bound is known to be one whose erf is not 1 in any dtype."""
    is_number = type(bound) is ConcreteArray and bound.host is not None and not bound.ndim
    return is_number and abs(float(bound.host)) <= _NEAR


# --- tails ---------------------------------------------------------------------------------------

_NEAR = 2.0  # erf(2 / sqrt(2)) is 0.954
# From here out bounds may be in a tail. Nearer the mean the numbers of erf are dense enough.
_NEAREST = 1.5
# As many values of erf between bounds are enough to tell samples apart.
_ENOUGH = 32768
# A tail longer than this is as an endless one: no float64 is as small as its probability.
_LONGEST = 40.0
# From here on the logarithm of erfcx changes by less than a rounding of the sample.
_FLAT = 1e6
_STEPS = 3  # of Newton's method; from 1.5 out the error of the last one is below 1e-13


def _mask_of_tails(low: Any, high: Any) -> Any:
    """Return where the formula of tails is needed: a boolean, or an Array of them."""
    if type(low) is ConcreteArray is type(high) and not (low.host is None or high.host is None):
        if low.ndim == high.ndim == 0:
            return _is_tail(float(low.host), float(high.host), low.dtype)
        with np.errstate(all="ignore"):
            x, y = [_elements(v) for v in (low, high)]
            if not (np.minimum(abs(x), abs(y)) >= _NEAREST).any():
                return False
    mask = _tails(low, high)
    if type(mask) is ConcreteArray and mask.host is not None:
        return mask if (some := bool(mask.host.any())) and not mask.host.all() else some
    return mask


def _elements(x: Any) -> Any:
    return x.host if x.host.dtype.kind == "f" else x.host.astype(np.float32)


@functools.lru_cache(maxsize=256)
def _is_tail(low: float, high: float, dtype: Any) -> bool:
    """Return what `_tails` does for two numbers."""
    near, far = sorted((abs(low), abs(high)))
    if not (low > 0 or high < 0) or near < _NEAREST or near == far:
        return False
    eps = float(dtypes.finfo(dtype).eps)
    steps = 2 * abs(math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2)))
    return steps < eps * min(_ENOUGH, 0.25 / eps) and steps < 0.5 * (1 - near / far)


def _tails(low: Any, high: Any) -> Any:
    """Return where erf has too few values between bounds, all far on one side of the mean.

    It has some `2 (b - a) / eps`, spaced as the numbers next to 1. These are enough where they are
    as many as those of u, or half as many as there are numbers between the bounds.
    """
    eps = float(dtypes.finfo(low.dtype).eps)
    low, high = _wide(low), _wide(high)
    a, b = [lax.erf(lax.mul(x, math.sqrt(0.5))) for x in (low, high)]
    near = lax.min(lax.abs(low), lax.abs(high))
    far = lax.max(lax.abs(low), lax.abs(high))
    steps = lax.mul(lax.abs(lax.sub(b, a)), 2.0)
    one_sided = lax.bitwise_or(lax.gt(low, 0.0), lax.lt(high, 0.0))
    few = lax.lt(steps, eps * min(_ENOUGH, 0.25 / eps))
    fewer = lax.lt(steps, lax.mul(lax.sub(1.0, lax.div(near, far)), 0.5))
    for condition in (lax.ge(near, _NEAREST), few, fewer):
        one_sided = lax.bitwise_and(one_sided, condition)
    return one_sided


def _wide(x: Any) -> Any:
    narrow = dtypes.finfo(x.dtype).bits < 32
    return lax.convert_element_type(x, dtypes.float32) if narrow else x


def _in_tail(u: Any, low: Any, high: Any) -> Any:
    """Return the quantile u between bounds on one side of the mean, counted from the nearer one.

    Of the distance d from the bound n the cumulative hazard is

        H(d) = log(Q(n) / Q(n + d)) = d (n + d / 2) - log(erfcx((n + d)/sqrt(2)) / erfcx(n/sqrt(2)))

    with Q the tail of the distribution. It is that of an exponential sample cut at the other bound:
    `E = -log(1 - u (1 - exp(-H(f - n))))`. The first two terms alone, the Rayleigh distribution,
    give a d that is too large, from where Newton's method descends to the root of the convex
    `H(d) = E`; its derivative is the hazard `sqrt(2 / pi) / erfcx((n + d) / sqrt(2))`.

    The derivatives are those of the last step, which are those of the root.

    Sources: Marsaglia, "Generating a variable from the tail of the normal distribution",
    Technometrics 6 (1964), for the Rayleigh one; Abramowitz, Stegun, 7.1.2 and 26.2 for erfc.
    """
    dtype = u.dtype
    u, low, high = _wide(u), _wide(low), _wide(high)
    above = lax.gt(low, 0.0)
    near, far = _where(above, low, lax.neg(high)), _where(above, high, lax.neg(low))
    bent = lax.min(near, _FLAT)
    start = _erfcx(bent)

    def hazards(d: Any) -> tuple[Any, Any]:
        e = _erfcx(lax.add(bent, d))
        total = lax.mul(d, lax.add(near, lax.mul(d, 0.5)))
        derivative = lax.add(lax.div(math.sqrt(2 / math.pi), e), lax.sub(near, bent))
        return lax.sub(total, lax.log(lax.div(e, start))), derivative

    longest = hazards(lax.min(lax.sub(far, near), _LONGEST))[0]
    hazard = lax.neg(lax.log1p(lax.mul(u, lax.expm1(lax.neg(longest)))))
    twice = lax.mul(lax.stop_gradient(hazard), 2.0)
    n = lax.stop_gradient(near)
    d = lax.div(twice, lax.add(n, lax.sqrt(lax.add(lax.square(n), twice))))
    for _ in range(_STEPS):
        total, derivative = hazards(lax.stop_gradient(d))
        d = lax.sub(lax.stop_gradient(d), lax.div(lax.sub(total, hazard), derivative))
    x = lax.add(near, d)
    x = _where(above, x, lax.neg(x))
    return x if x.dtype == dtype else lax.convert_element_type(x, dtype)


def _erfcx(x: Any) -> Any:
    (y,) = get_primitive("erfcx").bind(lax.mul(x, math.sqrt(0.5)))
    return y


# ----------------------------------------------------------------------------------- categorical
# Choosing among categories of given probabilities: `gumbel`, `categorical`.
#
# The index of the largest of `logits + gumbel noise` is a sample of `softmax(logits)`; those of
# the k largest are k samples without replacement.

_MODES = ("low", "high")


def gumbel(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    mode: str | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the Gumbel distribution, of distribution function `exp(-exp(-x))`.

    Args:
      key: a single random key, of either form.
      shape: the shape of the result.
      dtype: a real floating dtype; None takes the default.
      mode: "low" (also None) uses one uniform number, which bounds the samples of float32 to about
        [-2.81, 16.6]; "high" uses two and reaches further at twice the cost.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
        An array of `shape` and of the dtype requested.

    Raises:
      ValueError: unknown mode.

    Example:
        >>> import xrandom
        >>> xrandom.gumbel(xrandom.key(0), (3,)).shape
        (3,)
    """
    words = words_of(key, "gumbel")
    exact = arguments.floating_dtype(dtype, "gumbel")
    sizes = check_shape(shape, "gumbel")
    sample = draw(raw_gumbel, (words,), sizes, exact, check_mode(mode, "gumbel"))
    return place(sample, out_sharding, "gumbel")


def check_mode(mode: str | None, operation: str) -> str:
    """Return the mode of Gumbel samples, "low" for None."""
    if mode is None:
        return "low"
    require_choice(operation, "mode", mode, _MODES)
    return mode


def raw_gumbel(words: Any, shape: Shape, dtype: Any, mode: str) -> Array:
    """Draw `-log(-log(u))` from the words of a key."""
    info = dtypes.finfo(dtype)
    if mode == "low":
        u = raw_positive(words, shape, dtype)
        return lax.neg(lax.log(lax.neg(lax.log(u))))
    both = raw_uniform(words, (2, *shape), dtype)
    high, low = [lax.index_in_dim(both, i, 0, keepdims=False) for i in (0, 1)]
    mantissa = int(info.nmant)
    least = max(2.0 ** -(2 * mantissa + 1), float(info.tiny))
    finer = lax.add(lax.add(high, lax.mul(low, 2.0**-mantissa)), least)
    u = lax.select(lax.ge(high, 0.5), high, finer)
    return lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(u)))))


def categorical(
    key: ArrayLike, logits: ArrayLike, axis: int = -1, shape: ShapeLike | None = None,
    replace: bool = True, mode: str | None = None, *, out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Draw indices with the probabilities `softmax(logits)`.

    Args:
      key: a single random key, of either form.
      logits: unnormalised log probabilities along `axis`.
      axis: the axis of the categories.
      shape: the shape of the result, which ends with that of `logits` without `axis`; None takes
        the latter.
      replace: whether the samples of the leading dimensions of `shape` are independent; without
        replacement they are all different.
      mode: as for `gumbel`.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      Indices along `axis`, of the default integer dtype, int32 without replacement.

    Raises:
      ValueError: the shape does not end as it must, or there are fewer categories than samples
        without replacement.

    Example:
      >>> import numpy as np
      >>> from xrandom import categorical, key
      >>> int(categorical(key(0), np.array([-np.inf, 0.0, -np.inf], np.float32)))
      1
    """
    words = words_of(key, "categorical")
    scores = as_array(logits, what="categorical: logits")
    scores = arguments.discrete_parameter(scores, "categorical", "logits")
    if not dtypes.is_floating(scores.dtype):
        scores = lax.convert_element_type(scores, dtypes.python_scalar_dtype(float))
    ndim = scores.ndim
    require(
        -ndim <= axis < ndim, "categorical", "axis {} is out of range for logits of {} dimensions.",
        axis, ndim,
    )  # fmt: skip
    axis %= ndim
    batch = scores.shape[:axis] + scores.shape[axis + 1 :]
    sizes = batch if shape is None else check_shape(shape, "categorical")
    lead = sizes[: len(sizes) - len(batch)]
    sample_shape(sizes, "categorical", _Shaped(batch))
    exact_mode = check_mode(mode, "categorical")
    if replace:
        own = list(sizes[len(lead) :])
        own.insert(axis, scores.shape[axis])
        noise = raw_gumbel(words, (*lead, *own), scores.dtype, exact_mode)
        full = lax.broadcast_in_dim(scores, noise.shape, tuple(range(len(lead), noise.ndim)))
        sample = lax.argmax(lax.add(noise, full), len(lead) + axis, dtypes.python_scalar_dtype(int))
        return place(sample, out_sharding, "categorical")
    sample = _without_replacement(words, scores, axis, lead, sizes, exact_mode)
    return place(sample, out_sharding, "categorical")


class _Shaped:
    """A shape where a parameter is expected."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape


def _without_replacement(
    words: Any, scores: Any, axis: int, lead: Shape, sizes: Shape, mode: str
) -> Array:
    count = math.prod(lead)
    if count > scores.shape[axis]:
        raise ValueError(message(
            "categorical", "there are fewer categories than samples without replacement.",
            got=f"{count} samples of {scores.shape[axis]} categories",
        ))  # fmt: skip
    noisy = lax.add(scores, raw_gumbel(words, scores.shape, scores.dtype, mode))
    order = [d for d in range(scores.ndim) if d != axis]
    _, indices = lax.top_k(lax.transpose(noisy, (*order, axis)), count)
    last = indices.ndim - 1
    return lax.reshape(lax.transpose(indices, (last, *range(last))), sizes)


# -------------------------------------------------------------------------------------- integers
# Integer and boolean samples: `randint`, `bernoulli`, `rademacher`, `geometric`.


def randint(
    key: ArrayLike, shape: ShapeLike, minval: ArrayLike, maxval: ArrayLike,
    dtype: DTypeLike = None, *, out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Draw integers uniformly from [minval, maxval).

    The remainder of twice as many random bits as the dtype has: where `maxval - minval` is not a
    power of two, some values are more likely than others by a factor of up to `1 + (maxval -
    minval) / 2**32` (2**64 for 64-bit dtypes).

    Args:
      key: a single random key, of either form.
      shape: the shape of the result.
      minval: the least value.
      maxval: the value above the greatest one; where it is not above `minval`, the result is
        `minval`. Both must broadcast to `shape`; they are clipped to the range of the dtype.
      dtype: an integer dtype; None takes int32, or int64 with `enable_x64`.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      An array of `shape` and of the dtype.

    Raises:
      TypeError: the dtype is not an integer one.

    Example:
      >>> from xrandom import key, randint
      >>> x = randint(key(0), (100,), 0, 10)
      >>> int(x.min()), int(x.max())
      (0, 9)
    """
    words = words_of(key, "randint")
    exact = arguments.integer_dtype(dtype, "randint")
    sizes = check_shape(shape, "randint")
    return place(_draw_integers(words, sizes, minval, maxval, exact), out_sharding, "randint")


def _draw_integers(words: Any, sizes: Shape, minval: Any, maxval: Any, exact: Any) -> Array:
    """Draw from the words of a key what `randint` returns."""
    bits = int(dtypes.iinfo(exact).bits)
    drawn = exact if bits >= 32 else dtypes.int32
    if type(minval) is int and type(maxval) is int:
        out = _between_numbers(words, sizes, drawn, minval, maxval, dtypes.iinfo(exact))
    else:
        out = _between_arrays(words, sizes, drawn, minval, maxval, exact)
    return out if drawn == exact else lax.convert_element_type(out, exact)


def _two_draws(words: Any, shape: Shape, dtype: np.dtype[Any]) -> list[Any]:
    """Draw the higher and the lower bits, from a key each.

    Not as one draw from both keys: a program then hashes with keys that vary along an axis, which
    XLA computes element by element (measured: 12 times slower).
    """
    width = int(dtypes.iinfo(dtype).bits)
    return [raw_bits(own, width, shape) for own in raw_split(words, 2)]


def _between_numbers(
    words: Any, shape: Shape, dtype: np.dtype[Any], minval: int, maxval: int, info: Any
) -> Any:
    """Draw between two Python integers, with the arithmetic on them done in advance."""
    width = int(dtypes.iinfo(dtype).bits)
    low = min(max(minval, int(info.min)), int(info.max))
    high = min(max(maxval, int(info.min)), int(info.max) + 1)
    span = max(high - low, 1) % 2**width
    factor = 2 ** (width // 2) % span if span else 0
    factor = factor * factor % 2**width % span if span else 0
    return draw(_remainders, (words,), shape, dtype, low, span, factor)


def _remainders(
    words: Any, shape: Shape, dtype: np.dtype[Any], low: int, span: int, factor: int
) -> Any:
    """Return `low` and the remainder by `span` of two words; `factor` is 2^width modulo `span`."""
    higher, lower = _two_draws(words, shape, dtype)
    if span:
        offset = lax.add(lax.mul(lax.rem(higher, span), factor), lax.rem(lower, span))
        offset = lax.rem(offset, span)
    else:  # every value of the dtype
        offset = lower
    return lax.add(lax.convert_element_type(offset, dtype), low)


def _between_arrays(
    words: Any, shape: Shape, dtype: np.dtype[Any], minval: Any, maxval: Any,
    exact: np.dtype[Any],
) -> Any:  # fmt: skip
    bounds = []
    for value, name in ((minval, "minval"), (maxval, "maxval")):
        bound = as_array(value, what=f"randint: {name}")
        bound = arguments.discrete_parameter(bound, "randint", name)
        if not dtypes.is_integer(bound.dtype):
            bound = lax.convert_element_type(bound, dtypes.python_scalar_dtype(int))
        bounds.append(bound)
    sample_shape(shape, "randint", *bounds)
    narrow = exact if exact != dtype else dtype
    info = dtypes.iinfo(narrow)
    above = lax.gt(bounds[1], _limit(int(info.max), bounds[1].dtype))
    if narrow != dtype:  # drawn in int32, where the bound above the greatest value has a place
        low, high = _clip(bounds[0], dtype, info, 0), _clip(bounds[1], dtype, info, 1)
        above = lax.full_like(above, False)
    else:
        low, high = [_clip(b, dtype, info, 0) for b in bounds]
    unsigned = UINT_BY_WIDTH[int(dtypes.iinfo(dtype).bits)]
    low, high, above = [repeat_to(x, shape) for x in (low, high, above)]
    ordered = lax.gt(high, low)
    span = lax.convert_element_type(lax.sub(high, low), unsigned)
    span = lax.select(ordered, span, lax.full_like(span, 1))
    span = lax.select(lax.bitwise_and(above, ordered), lax.add(span, 1), span)
    higher, lower = _two_draws(words, shape, dtype)
    half = 2 ** (int(dtypes.iinfo(dtype).bits) // 2)
    factor = lax.rem(lax.full_like(span, half), span)
    factor = lax.rem(lax.mul(factor, factor), span)
    offset = lax.add(lax.mul(lax.rem(higher, span), factor), lax.rem(lower, span))
    offset = lax.rem(offset, span)
    return lax.add(low, lax.convert_element_type(offset, dtype))


def _limit(value: int, dtype: np.dtype[Any]) -> Array:
    info = dtypes.iinfo(dtype)
    return scalar_array(max(int(info.min), min(value, int(info.max))), dtype)


def _clip(x: Any, dtype: np.dtype[Any], info: Any, beyond: int) -> Any:
    """Clip integers to a range and convert them, without wrapping around on the way."""
    low, high = _limit(int(info.min), x.dtype), _limit(int(info.max) + beyond, x.dtype)
    return lax.convert_element_type(lax.clamp(low, x, high), dtype)


def bernoulli(
    key: ArrayLike, p: ArrayLike = 0.5, shape: ShapeLike | None = None, mode: str = "low", *,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Draw booleans that are true with a given probability.

    Args:
      key: a single random key, of either form.
      p: the probabilities, a float or an array of floats.
      shape: the shape of the result; None takes that of `p`.
      mode: "low" compares one uniform number with `p`, which is wrong for `p` below 1e-7 (float32);
        "high" compares two, and is right down to 1e-14.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      An array of booleans.

    Raises:
        TypeError: `key` is not a random key; `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative; unknown `mode`.

    Example:
      >>> from xrandom import bernoulli, key
      >>> bernoulli(key(0), 0.5, (3,)).dtype
      dtype('bool')
    """
    require(mode in ("high", "low"), "bernoulli", "mode must be 'high' or 'low', got {!r}.", mode)
    words = words_of(key, "bernoulli")
    chance = as_array(p, what="bernoulli: p")
    chance = arguments.discrete_parameter(chance, "bernoulli", "p")
    require(
        dtypes.is_floating(chance.dtype), "bernoulli", "p must be of a floating dtype.", got=chance,
        error=TypeError,
    )  # fmt: skip
    sizes = sample_shape(shape, "bernoulli", chance)
    dtype = chance.dtype
    chance = broadcast_to(lax.convert_element_type(chance, dtype), sizes)
    if mode == "low":
        return place(lax.lt(raw_uniform(words, sizes, dtype), chance), out_sharding, "bernoulli")
    both = raw_uniform(words, (2, *sizes), dtype)
    coarse, fine = [lax.index_in_dim(both, i, 0, keepdims=False) for i in (0, 1)]
    fine = lax.mul(fine, 2.0 ** -int(dtypes.finfo(dtype).nmant))
    return place(lax.lt(fine, lax.sub(chance, coarse)), out_sharding, "bernoulli")


def rademacher(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw -1 and 1, equally likely.

    Args:
      key: a single random key, of either form.
      shape: the shape of the result.
      dtype: an integer or floating dtype; None takes int32, or int64 with `enable_x64`.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
        An array of `shape` and of the dtype requested.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> abs(xrandom.rademacher(xrandom.key(0), (3,)))
        Array([1, 1, 1], dtype=int32)
    """
    words = words_of(key, "rademacher")
    if dtype is None:
        exact = dtypes.python_scalar_dtype(int)
    else:
        exact = dtypes.requested_dtype(dtype, "rademacher")
    sizes = check_shape(shape, "rademacher")
    return place(draw(_signs, (words,), sizes, exact), out_sharding, "rademacher")


def _signs(words: Any, shape: Shape, dtype: Any) -> Any:
    heads = lax.lt(raw_uniform(words, shape, dtypes.python_scalar_dtype(float)), 0.5)
    one, minus_one = [
        repeat_to(lax.convert_element_type(as_array(v), dtype), shape) for v in (1, -1)
    ]
    return lax.select(heads, one, minus_one)


def geometric(
    key: ArrayLike, p: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None, *,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Draw from the geometric distribution: the number of trials up to the first success.

    Args:
      key: a single random key, of either form.
      p: the probability of a success, in (0, 1].
      shape: the shape of the result; None takes that of `p`.
      dtype: an integer dtype; None takes the default.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      Integers from 1 on: `floor(log u / log(1 - p)) + 1`.

    Raises:
        TypeError: `key` is not a random key; `dtype` names no dtype; `out_sharding` is not a
          sharding.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xrandom
        >>> xrandom.geometric(xrandom.key(0), 0.5, (3,)).shape
        (3,)
    """
    words = words_of(key, "geometric")
    exact = arguments.integer_dtype(dtype, "geometric")
    chance = as_array(p, what="geometric: p")
    chance = arguments.discrete_parameter(chance, "geometric", "p")
    if not dtypes.is_floating(chance.dtype):
        chance = lax.convert_element_type(chance, dtypes.python_scalar_dtype(float))
    chance = lax.convert_element_type(chance, chance.dtype)
    sizes = sample_shape(shape, "geometric", chance)
    if dtypes.finfo(chance.dtype).bits < 32:  # which have few values between 0 and 1
        chance = lax.convert_element_type(chance, dtypes.float32)
    chance = repeat_to(chance, sizes)
    least = 32 * float(dtypes.finfo(chance.dtype).eps)
    small = lax.lt(chance, least) if arguments.may_exceed(lax.neg(chance), -least) else None
    tails = lax.log1p(lax.neg(chance))

    def by_block(u: Any) -> Any:
        # u has multiples of eps, so that -log(u) / p leaves out integers where p is not far above
        # it. Blocks of m trials are counted, and within the last one all are alike, since their
        # probabilities differ by a share of m p at most, which is `least`
        block = lax.clamp(1.0, lax.floor(lax.div(least, chance)), 2.0**22)
        before = lax.floor(lax.div(lax.log(u), lax.mul(block, tails)))
        _, own = raw_split(words, 2)
        within = lax.floor(lax.mul(raw_uniform(own, sizes, u.dtype), block))
        wide = arguments.wide_integer(exact)
        passed = lax.mul(*[lax.convert_element_type(x, wide) for x in (before, block)])
        rest = lax.add(within, 1.0)
        return arguments.sum_of_counts(passed, rest, lax.add(lax.mul(before, block), rest), exact)

    def one_by_one(u: Any) -> Any:
        trials = lax.add(lax.floor(lax.div(lax.log(u), tails)), 1.0)
        return lax.convert_element_type(trials, exact)

    u = raw_positive(words, sizes, chance.dtype)
    trials = arguments.choice_by(small)(by_block, one_by_one, u)
    return place(trials, out_sharding, "geometric")


# ------------------------------------------------------------------------------------- shuffling
# Orders and subsets: `permutation`, `choice`.
#
# A shuffle sorts by random bits, often enough that equal bits do no harm: each round of 32 bits
# leaves ties in about `n^2 / 2^33` pairs, and the next rounds break them.


def permutation(
    key: ArrayLike, x: ArrayLike, axis: int = 0, independent: bool = False, *,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Bring the elements along an axis into a random order.

    Args:
      key: a single random key, of either form.
      x: an array, or an integer n for the numbers 0 .. n-1.
      axis: the axis to shuffle along.
      independent: whether to shuffle each vector along the axis by itself, not all alike.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      An array like `x`, or the n numbers in random order.

    Raises:
      TypeError: `x` is a scalar but no integer.

    Example:
      >>> import numpy as np
      >>> from xrandom import key, permutation
      >>> sorted(np.asarray(permutation(key(0), 4)).tolist())
      [0, 1, 2, 3]
    """
    words = words_of(key, "permutation")
    array = as_array(x, what="permutation: x")
    if not array.ndim:
        count = _require_known_integer(x, array, "permutation: x")
        _check_axis(axis, 1, "permutation")
        return place(_draw_order(words, count), out_sharding, "permutation")
    axis = _check_axis(axis, array.ndim, "permutation")
    if independent:
        return place(_shuffle(words, array, axis), out_sharding, "permutation")
    return place(_permute(words, array, axis), out_sharding, "permutation")


def _draw_order(words: Any, count: Any, draws: int | None = None) -> Array:
    """Draw a permutation of the first numbers, or the first of it."""
    numbers = lax.iota(dtypes.python_scalar_dtype(int), count)
    return draw(_shuffle, (words, numbers), 0, draws)  # type: ignore[no-any-return]


def _permute(words: Any, array: Any, axis: int, draws: int | None = None) -> Array:
    """Permute an array along an axis, all that stands along the others together.

    Returns:
      all, or the first where `draws` says how many.
    """
    if array.ndim == 1:
        return draw(_shuffle, (words, array), axis, draws)  # type: ignore[no-any-return]
    return take(array, _draw_order(words, array.shape[axis], draws), axis)


def _require_known_integer(x: Any, array: Any, what: str) -> int:
    if not dtypes.is_integer(array.dtype):
        raise TypeError(
            f"{what} must be an integer or an array of at least one dimension."
            f"\n  got       {array.aval.str_long()}"
        )
    if type(array) is ConcreteArray:
        return x if type(x) is int else int(array.to_host())
    return static_int(array, what.split(":", 1)[0], "how many numbers there are")


def _check_axis(axis: int, ndim: int, operation: str) -> int:
    require(
        -ndim <= axis < ndim, operation, "axis {} is out of range for an array of {} dimensions.",
        axis, ndim,
    )  # fmt: skip
    return axis % ndim


_SORTED_ONCE = 1625  # 3 log n / log 2^32 is 1 at most


# The first of an order are selected where they are few of many, as selecting is then the faster.
_LEAST_TO_SELECT, _ELEMENTS_A_DRAW = 4096, 4


def _shuffle(words: Any, x: Any, axis: int, draws: int | None = None) -> Array:
    """Sort by random bits, in as many rounds as make ties unlikely: 3 log n / log 2^32.

    Returns:
      all elements, or of a vector the first where `draws` says how many.
    """
    if isinstance(x.size, SymbolicSize):  # decided once; calls are checked against it
        rounds = 1 if x.size <= _SORTED_ONCE else 2
    else:
        rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    few = None
    if draws is not None and not isinstance(x.size, SymbolicSize) and x.size >= _LEAST_TO_SELECT:
        few = draws if draws * _ELEMENTS_A_DRAW <= x.size else None
    for i in range(rounds):
        words, own = raw_split(words, 2)
        bits = raw_bits(own, 32, x.shape)
        if few is not None and i == rounds - 1:  # of equal bits both take the first
            return take(x, lax.top_k(lax.bitwise_not(bits), few)[1], 0)
        _, x = lax.sort_key_val(bits, x, axis)
    if draws is not None:
        x = lax.slice_in_dim(x, 0, draws, axis=axis)
    return x  # type: ignore[no-any-return]


def choice(
    key: ArrayLike, a: ArrayLike, shape: ShapeLike = (), replace: bool = True,
    p: ArrayLike | None = None, axis: int = 0, mode: str | None = None,
) -> Array:  # fmt: skip
    """Draw elements of an array, or slices along an axis.

    Args:
      key: a single random key, of either form.
      a: an array, or an integer n for the numbers 0 .. n-1.
      shape: how many to draw, as a shape.
      replace: whether an element may be drawn more than once.
      p: the probabilities of the elements, of shape `(n,)`; None makes all equally likely.
      axis: the axis along which the elements of `a` lie.
      mode: as for `gumbel`, for draws without replacement of given probabilities.

    Returns:
      An array like `a`, with `shape` in the place of `axis`.

    Raises:
      TypeError: `shape` is a number.
      ValueError: more elements are to be drawn without replacement than there are, or `p` has the
        wrong shape.

    Example:
      >>> import numpy as np
      >>> from xrandom import choice, key
      >>> sorted(np.asarray(choice(key(0), 3, (3,), replace=False)).tolist())
      [0, 1, 2]
    """
    words = words_of(key, "choice")
    if hasattr(shape, "__index__") and not getattr(shape, "shape", ()):  # `replace` is next to it
        raise TypeError(message(
            "choice", "shape must be a sequence of integers.", got=f"shape={described(shape)}",
            expected="shape=() for one element, shape=(n,) for n of them",
        ))  # fmt: skip
    sizes = check_shape(shape, "choice")
    array = as_array(a, what="choice: a")
    if array.ndim:
        axis = _check_axis(axis, array.ndim, "choice")
        count = array.shape[axis]
    else:
        count = _require_known_integer(a, array, "choice: a")
    draws = math.prod(sizes)
    if not draws:
        rest = array.shape[axis + 1 :] if array.ndim else ()
        return lax.full((*array.shape[:axis], *sizes, *rest), 0, array.dtype)
    _check_draws(draws, count, replace)
    if p is None and not replace:
        result = (_permute(words, array, axis, draws) if array.ndim
                  else _draw_order(words, count, draws))  # fmt: skip
    else:
        indices = _draw_indices(words, count, sizes, replace, p, mode)
        result = indices if not array.ndim else take(array, indices, axis)
    if not array.ndim:
        return lax.reshape(result, sizes)
    return lax.reshape(result, (*array.shape[:axis], *sizes, *array.shape[axis + 1 :]))


def _check_draws(draws: int, count: int, replace: bool) -> None:
    require(count > 0, "choice", "there is nothing to choose from, a is empty.")
    if not replace and draws > count:
        raise ValueError(message(
            "choice", "more elements are to be drawn without replacement than there are.",
            got=f"{draws} draws of {count} elements",
        ))  # fmt: skip


def _draw_indices(
    words: Any, count: int, sizes: tuple[int, ...], replace: bool, p: Any, mode: str | None
) -> Array:
    if p is None:
        return _draw_integers(words, sizes, 0, count, arguments.integer_dtype(None, "choice"))
    chances = as_array(p, what="choice: p")
    chances = arguments.discrete_parameter(chances, "choice", "p")
    if not dtypes.is_floating(chances.dtype):
        chances = lax.convert_element_type(chances, dtypes.python_scalar_dtype(float))
    if chances.shape != (count,):
        raise ValueError(message(
            "choice", "p must have one probability for each element.",
            got=f"p: {chances.aval.str_long()}", expected=f"shape ({count},)",
        ))  # fmt: skip
    if not replace:
        noise = raw_gumbel(words, (count,), chances.dtype, check_mode(mode, "choice"))
        order = lax.top_k(lax.add(noise, lax.log(chances)), math.prod(sizes))[1]
        return lax.convert_element_type(order, dtypes.python_scalar_dtype(int))
    return draw(_draw_by_sums, (words, chances), sizes)  # type: ignore[no-any-return]


def _draw_by_sums(words: Any, chances: Any, shape: Shape) -> Any:
    """Draw indices with such chances, by the sums of those before each."""
    sums = lax.cumsum(chances, 0)
    total = lax.index_in_dim(sums, -1, 0, keepdims=False)
    u = raw_uniform(words, shape, chances.dtype)
    targets = lax.mul(lax.sub(lax.full_like(u, 1.0), u), total)
    places = _places(sums, targets, chances.size)
    return lax.convert_element_type(places, dtypes.python_scalar_dtype(int))


def _places(sums: Any, targets: Any, count: int) -> Any:
    """Return for each target how many sums lie below it, by bisection."""
    flat = lax.reshape(targets, (targets.size,))
    low = lax.full((targets.size,), 0, dtypes.int32)
    high = lax.full((targets.size,), count, dtypes.int32)
    for _ in range(count.bit_length()):
        middle = lax.shift_right_logical(lax.add(low, high), 1)
        below = lax.lt(take(sums, lax.min(middle, count - 1), 0), flat)
        unfinished = lax.lt(low, high)
        low = lax.select(lax.bitwise_and(below, unfinished), lax.add(middle, 1), low)
        high = lax.select(lax.bitwise_and(lax.bitwise_not(below), unfinished), middle, high)
    return lax.reshape(low, targets.shape)


# --------------------------------------------------------------------------------- kernels of draws
# Kernels of draws: in eager code a sampler's operations are one function of NumPy arrays.
#
# Of eager draws of few numbers most of the time goes to the operations around NumPy's: types,
# promotion, an array for each result; loops would be traced at each call. The second use of a
# sampler's function with operands of the same types writes it as a kernel, which gives the same
# bits as its operations do one by one. Draws that the compiler takes, or of traced values, have
# none.

_LONGEST_PROGRAM: Final = 512  # operations of a program: `binomial` has some 280

# Kernels by function, static values and abstract values: the second draw of such is worth one.
_kernels = KernelTable("draws", uses=1)


def draw(function: Callable[..., Any], arrays: Sequence[Any], *statics: Any) -> Any:
    """Return `function(*arrays, *statics)`, in eager code by a kernel from the second use on.

    Args:
      function: returns an array, or a list of arrays; what it does depends on the types of the
        arrays, not on their elements.
      arrays: its operands.
      statics: its other arguments, which are hashable: each of one type, numbers but no -0.0.
    """
    now = state.__dict__
    if now["trace"] is not EAGER:
        return function(*arrays, *statics)
    hosts, key = [], [function, *statics]
    for x in arrays:
        host = numpy_operand(x) if type(x) is ConcreteArray else None
        if host is None:
            return function(*arrays, *statics)
        hosts.append(host)
        key.append(x.aval)
    kernel = _kernels.get((*key, now["options"]))
    if type(kernel) is not Kernel:
        kernel = _kernels.use(key, _kernel_of, function, [x.aval for x in arrays], statics)
    if kernel is None or kernel.run is None:
        return function(*arrays, *statics)
    results = now["run_quietly"](kernel.run, *hosts)
    if type(kernel.avals_out) is list:
        return list(map(ConcreteArray, results, kernel.avals_out))
    return ConcreteArray(results[0], kernel.avals_out)


def _kernel_of(
    function: Callable[..., Any], avals: Sequence[ShapedArray], statics: Sequence[Any]
) -> Kernel:
    is_list: list[bool] = []

    def flat(*arrays: Any) -> list[Any]:
        found = function(*arrays, *statics)
        is_list.append(type(found) is list)
        return found if is_list[-1] else [found]

    program = xprim.trace_to_closed(flat, avals)
    run = numpy_function(program, longest=_LONGEST_PROGRAM)
    outs = list(program.out_avals)
    return Kernel(run, outs if is_list[0] else outs[0], (program,))


boundaries(
    globals(),
    written=True,
    names=[
        "bits",
        "uniform",
        "normal",
        "lognormal",
        "truncated_normal",
        "gumbel",
        "categorical",
        "randint",
        "bernoulli",
        "rademacher",
        "geometric",
        "permutation",
        "choice",
    ],
)
