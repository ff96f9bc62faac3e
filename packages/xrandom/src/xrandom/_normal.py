"""Normal samples and what is made of them.

A uniform number in (-1, 1) goes through the inverse of the distribution function:
`sqrt(2) erf_inv(u)`. So one word gives one sample, and a sample depends on its own word alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xnp import lax
from xnp.docstrings import complete
from xnp.placing import placed
from xprim import Array, dtypes
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
      Values strictly between the bounds.

    Example:
      >>> from xrandom import key, truncated_normal
      >>> x = truncated_normal(key(0), -1.0, 2.0, (100,))
      >>> bool((x > -1).all() and (x < 2).all())
      True
    """
    words = words_of(key, "truncated_normal")
    exact = floating_dtype(dtype, "truncated_normal")
    low = parameter(lower, exact, "truncated_normal: lower")
    high = parameter(upper, exact, "truncated_normal: upper")
    sizes = sample_shape(shape, "truncated_normal", low, high)
    root = math.sqrt(2)
    a, b = [broadcasted(lax.erf(lax.div(x, root)), sizes) for x in (low, high)]
    # The same rounding as a draw between bounds that are arrays.
    u = raw_uniform(words, sizes, exact)
    u = lax.max(a, lax.add(lax.mul(u, lax.sub(b, a)), a))
    x = lax.mul(lax.erf_inv(u), root)
    inside_low, inside_high = [
        broadcasted(lax.nextafter(lax.stop_gradient(bound), lax.full_like(bound, infinity)), sizes)
        for bound, infinity in ((low, math.inf), (high, -math.inf))
    ]
    return placed(lax.min(lax.max(x, inside_low), inside_high), out_sharding, "truncated_normal")


complete(globals(), NORMAL)
