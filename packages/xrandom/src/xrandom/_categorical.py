"""Choosing among categories of given probabilities: `gumbel`, `categorical`.

The index of the largest of `logits + gumbel noise` is a sample of `softmax(logits)`; those of the k
largest are k samples without replacement.
"""

from __future__ import annotations

import math
from typing import Any

from xnp import lax
from xnp.docstrings import complete
from xnp.placing import placed
from xprim import Array, as_array, dtypes
from xprim.errors import message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from xrandom._uniform import raw_positive
from xrandom.arguments import Shape, checked_shape, floating_dtype, sample_shape
from xrandom.docstrings import CATEGORICAL
from xrandom.keys import words_of
from xrandom.standard_distributions import raw_uniform

_MODES = ("low", "high")


@boundary
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

    Raises:
      ValueError: there is no such mode.
    """
    words = words_of(key, "gumbel")
    exact = floating_dtype(dtype, "gumbel")
    sample = raw_gumbel(words, checked_shape(shape, "gumbel"), exact, checked_mode(mode, "gumbel"))
    return placed(sample, out_sharding, "gumbel")


def checked_mode(mode: str | None, operation: str) -> str:
    """Return the mode of Gumbel samples, "low" for None."""
    if mode is None:
        return "low"
    if mode not in _MODES:
        raise ValueError(message(
            operation, "there is no such mode.", got=f"{mode!r}",
            expected=f"{' or '.join(map(repr, _MODES))}",
        ))  # fmt: skip
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


@boundary
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
    if not dtypes.is_floating(scores.dtype):
        scores = lax.convert_element_type(scores, dtypes.python_scalar_dtype(float))
    ndim = scores.ndim
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"categorical: axis {axis} is out of range for logits of {ndim} dimensions."
        )
    axis %= ndim
    batch = scores.shape[:axis] + scores.shape[axis + 1 :]
    sizes = batch if shape is None else checked_shape(shape, "categorical")
    lead = sizes[: len(sizes) - len(batch)]
    sample_shape(sizes, "categorical", _Shaped(batch))
    exact_mode = checked_mode(mode, "categorical")
    if replace:
        own = list(sizes[len(lead) :])
        own.insert(axis, scores.shape[axis])
        noise = raw_gumbel(words, (*lead, *own), scores.dtype, exact_mode)
        full = lax.broadcast_in_dim(scores, noise.shape, tuple(range(len(lead), noise.ndim)))
        sample = lax.argmax(lax.add(noise, full), len(lead) + axis, dtypes.python_scalar_dtype(int))
        return placed(sample, out_sharding, "categorical")
    sample = _without_replacement(words, scores, axis, lead, sizes, exact_mode)
    return placed(sample, out_sharding, "categorical")


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


complete(globals(), CATEGORICAL)
