"""Integer and boolean samples: `randint`, `bernoulli`, `rademacher`, `geometric`."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp import lax
from xnp.docstrings import complete
from xnp.placing import placed
from xprim import Array, as_array, dtypes, scalar_array
from xprim.errors import message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from xrandom._bits import raw_bits
from xrandom._uniform import raw_positive
from xrandom.arguments import (
    Shape,
    broadcasted,
    checked_shape,
    integer_dtype,
    repeated,
    sample_shape,
)
from xrandom.bit_generator import UINT_BY_WIDTH
from xrandom.docstrings import INTEGERS
from xrandom.keys import raw_split, words_of
from xrandom.standard_distributions import raw_uniform

__all__ = ()


@boundary
def randint(
    key: ArrayLike, shape: ShapeLike, minval: ArrayLike, maxval: ArrayLike,
    dtype: DTypeLike = None, *, out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Draw integers uniformly from [minval, maxval).

    The remainder of twice as many random bits as the dtype has: where `maxval - minval` is no power
    of two, some values are more likely than others by a factor of up to `1 + (maxval - minval) /
    2**32` (2**64 for 64-bit dtypes).

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
    exact = integer_dtype(dtype, "randint")
    sizes = checked_shape(shape, "randint")
    bits = int(dtypes.iinfo(exact).bits)
    drawn = exact if bits >= 32 else dtypes.int32
    if type(minval) is int and type(maxval) is int:
        out = _between_numbers(words, sizes, drawn, minval, maxval, dtypes.iinfo(exact))
    else:
        out = _between_arrays(words, sizes, drawn, minval, maxval, exact)
    sample = out if drawn == exact else lax.convert_element_type(out, exact)
    return placed(sample, out_sharding, "randint")


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
        if not dtypes.is_integer(bound.dtype):
            bound = lax.convert_element_type(bound, dtypes.python_scalar_dtype(int))
        bounds.append(bound)
    sample_shape(shape, "randint", *bounds)
    narrow = exact if exact != dtype else dtype
    info = dtypes.iinfo(narrow)
    above = lax.gt(bounds[1], _limit(int(info.max), bounds[1].dtype))
    if narrow != dtype:  # drawn in int32, where the bound above the greatest value has a place
        low, high = _clipped(bounds[0], dtype, info, 0), _clipped(bounds[1], dtype, info, 1)
        above = lax.full_like(above, False)
    else:
        low, high = [_clipped(b, dtype, info, 0) for b in bounds]
    unsigned = UINT_BY_WIDTH[int(dtypes.iinfo(dtype).bits)]
    low, high, above = [repeated(x, shape) for x in (low, high, above)]
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


def _clipped(x: Any, dtype: np.dtype[Any], info: Any, beyond: int) -> Any:
    """Clip integers to a range and convert them, without wrapping around on the way."""
    low, high = _limit(int(info.min), x.dtype), _limit(int(info.max) + beyond, x.dtype)
    return lax.convert_element_type(lax.clamp(low, x, high), dtype)


@boundary
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

    Example:
      >>> from xrandom import bernoulli, key
      >>> bernoulli(key(0), 0.5, (3,)).dtype
      dtype('bool')
    """
    if mode not in ("high", "low"):
        raise ValueError(f"bernoulli: mode must be 'high' or 'low', got {mode!r}.")
    words = words_of(key, "bernoulli")
    chance = as_array(p, what="bernoulli: p")
    if not dtypes.is_floating(chance.dtype):
        raise TypeError(message(
            "bernoulli", "p must be of a floating dtype.", got=chance.aval.str_long(),
        ))  # fmt: skip
    sizes = sample_shape(shape, "bernoulli", chance)
    dtype = chance.dtype
    chance = broadcasted(lax.convert_element_type(chance, dtype), sizes)
    if mode == "low":
        return placed(lax.lt(raw_uniform(words, sizes, dtype), chance), out_sharding, "bernoulli")
    both = raw_uniform(words, (2, *sizes), dtype)
    coarse, fine = [lax.index_in_dim(both, i, 0, keepdims=False) for i in (0, 1)]
    fine = lax.mul(fine, 2.0 ** -int(dtypes.finfo(dtype).nmant))
    return placed(lax.lt(fine, lax.sub(chance, coarse)), out_sharding, "bernoulli")


@boundary
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
    """
    words = words_of(key, "rademacher")
    if dtype is None:
        exact = dtypes.python_scalar_dtype(int)
    else:
        exact = dtypes.requested_dtype(dtype, "rademacher")
    sizes = checked_shape(shape, "rademacher")
    heads = lax.lt(raw_uniform(words, sizes, dtypes.python_scalar_dtype(float)), 0.5)
    one, minus_one = [
        repeated(lax.convert_element_type(as_array(v), exact), sizes) for v in (1, -1)
    ]
    return placed(lax.select(heads, one, minus_one), out_sharding, "rademacher")


@boundary
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
    """
    words = words_of(key, "geometric")
    exact = integer_dtype(dtype, "geometric")
    chance = as_array(p, what="geometric: p")
    if not dtypes.is_floating(chance.dtype):
        chance = lax.convert_element_type(chance, dtypes.python_scalar_dtype(float))
    chance = lax.convert_element_type(chance, chance.dtype)
    sizes = sample_shape(shape, "geometric", chance)
    u = raw_positive(words, sizes, chance.dtype)
    if dtypes.finfo(chance.dtype).bits < 32:  # which have no great quotients
        u, chance = [lax.convert_element_type(x, dtypes.float32) for x in (u, chance)]
    tails = broadcasted(lax.log1p(lax.neg(chance)), sizes)
    trials = lax.add(lax.floor(lax.div(lax.log(u), tails)), 1.0)
    return placed(lax.convert_element_type(trials, exact), out_sharding, "geometric")


complete(globals(), INTEGERS)
