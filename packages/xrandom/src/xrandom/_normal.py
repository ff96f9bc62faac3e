"""Normal samples and what is made of them.

A uniform number in (-1, 1) goes through the inverse of the distribution function:
`sqrt(2) erf_inv(u)`. So one word gives one sample, and a sample depends on its own word alone.

Far out erf is nearly 1, where its numbers are too far apart to tell samples apart: between bounds
out there a sample is found by its distance from the nearer one (see `_in_tail`).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from xnp import lax
from xnp.docstrings import complete
from xnp.placing import placed
from xprim import Array, ConcreteArray, dtypes, get_primitive
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from xrandom.arguments import (
    Shape,
    broadcasted,
    checked_shape,
    floating_dtype,
    parameter,
    sample_shape,
)
from xrandom.docstrings import NORMAL
from xrandom.keys import raw_split, words_of
from xrandom.standard_distributions import raw_normal, raw_uniform


@boundary
def normal(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    r"""Draw from the standard normal distribution, of density `exp(-x^2 / 2) / sqrt(2 pi)`.

    Args:
      key: a single random key, of either form.
      shape: the shape of the result.
      dtype: a floating or complex dtype; None takes float32, or float64 with `enable_x64`. Complex
        samples have independent parts, each of variance 1/2.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      Samples; in float32 their magnitude is below 5.42, as 23 random bits make each.

    Example:
      >>> from xrandom import key, normal
      >>> normal(key(0), (2, 3)).shape
      (2, 3)
    """
    words = words_of(key, "normal")
    found = drawn_normal(words, checked_shape(shape, "normal"), dtype, "normal")
    return placed(found, out_sharding, "normal")


def drawn_normal(words: Any, shape: Shape, dtype: Any, operation: str) -> Array:
    """Draw from the words of a key what `normal` returns."""
    if dtype is not None:
        exact = dtypes.requested_dtype(dtype, operation)
        if dtypes.is_complex(exact):
            return _complex_normal(words, shape, exact)
    return raw_normal(words, shape, floating_dtype(dtype, operation))


def _complex_normal(words: Any, shape: Shape, dtype: np.dtype[Any]) -> Array:
    part = dtypes.float32 if dtype == dtypes.complex64 else dtypes.float64
    re, im = [raw_normal(w, shape, part) for w in raw_split(words, 2)]
    return lax.div(lax.complex(re, im), complex(math.sqrt(2)))


@boundary
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
    """
    words = words_of(key, "lognormal")
    exact = floating_dtype(dtype, "lognormal")
    scale = parameter(sigma, exact, "lognormal: sigma")
    sizes = sample_shape(shape, "lognormal", scale)
    sample = lax.exp(lax.mul(raw_normal(words, sizes, exact), broadcasted(scale, sizes)))
    return placed(sample, out_sharding, "lognormal")


@boundary
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
    exact = floating_dtype(dtype, "truncated_normal")
    low = parameter(lower, exact, "truncated_normal: lower")
    high = parameter(upper, exact, "truncated_normal: upper")
    sizes = sample_shape(shape, "truncated_normal", low, high)
    low, high = broadcasted(low, sizes), broadcasted(high, sizes)
    u = raw_uniform(words, sizes, exact)
    x = _between(u, low, high, _mask_of_tails(low, high))
    inside_low, inside_high = [
        lax.nextafter(lax.stop_gradient(bound), lax.full_like(bound, infinity))
        for bound, infinity in ((low, math.inf), (high, -math.inf))
    ]
    return placed(lax.min(lax.max(x, inside_low), inside_high), out_sharding, "truncated_normal")


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
        # At -1 and 1 the inverse is infinite, or the bound: those are no samples.
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
    `H(d) = E`; its slope is the hazard `sqrt(2 / pi) / erfcx((n + d) / sqrt(2))`.

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
        slope = lax.add(lax.div(math.sqrt(2 / math.pi), e), lax.sub(near, bent))
        return lax.sub(total, lax.log(lax.div(e, start))), slope

    longest = hazards(lax.min(lax.sub(far, near), _LONGEST))[0]
    hazard = lax.neg(lax.log1p(lax.mul(u, lax.expm1(lax.neg(longest)))))
    twice = lax.mul(lax.stop_gradient(hazard), 2.0)
    n = lax.stop_gradient(near)
    d = lax.div(twice, lax.add(n, lax.sqrt(lax.add(lax.square(n), twice))))
    for _ in range(_STEPS):
        total, slope = hazards(lax.stop_gradient(d))
        d = lax.sub(lax.stop_gradient(d), lax.div(lax.sub(total, hazard), slope))
    x = lax.add(near, d)
    x = _where(above, x, lax.neg(x))
    return x if x.dtype == dtype else lax.convert_element_type(x, dtype)


def _erfcx(x: Any) -> Any:
    (y,) = get_primitive("erfcx").bind(lax.mul(x, math.sqrt(0.5)))
    return y


complete(globals(), NORMAL)
