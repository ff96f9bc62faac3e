"""Orders and subsets: `permutation`, `choice`.

A shuffle sorts by random bits, often enough that equal bits do no harm: each round of 32 bits
leaves ties in about `n^2 / 2^33` pairs, and the next rounds break them.
"""

from __future__ import annotations

import math
from typing import Any

from xnp import lax
from xnp.numpy.indexing import take
from xnp.placing import placed
from xprim import Array, ConcreteArray, as_array, dtypes
from xprim.descriptions import described
from xprim.errors import message
from xprim.static_sizes import static_int
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, ShapeLike, ShardingLike
from xrandom._bits import raw_bits
from xrandom._categorical import checked_mode, raw_gumbel
from xrandom.arguments import checked_shape
from xrandom.integers import randint
from xrandom.keys import raw_split, words_of
from xrandom.standard_distributions import raw_uniform

__all__ = ()


@boundary
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
        count = _known_integer(x, array, "permutation: x")
        _checked_axis(axis, 1, "permutation")
        sample = _shuffled(words, lax.iota(dtypes.python_scalar_dtype(int), count), 0)
        return placed(sample, out_sharding, "permutation")
    axis = _checked_axis(axis, array.ndim, "permutation")
    if independent or array.ndim == 1:
        return placed(_shuffled(words, array, axis), out_sharding, "permutation")
    order = _shuffled(words, lax.iota(dtypes.python_scalar_dtype(int), array.shape[axis]), 0)
    return placed(take(array, order, axis), out_sharding, "permutation")


def _known_integer(x: Any, array: Any, what: str) -> int:
    if not dtypes.is_integer(array.dtype):
        raise TypeError(
            f"{what} must be an integer or an array of at least one dimension."
            f"\n  got       {array.aval.str_long()}"
        )
    if type(array) is ConcreteArray:
        return x if type(x) is int else int(array.to_host())
    return static_int(array, what.split(":", 1)[0], "how many numbers there are")


def _checked_axis(axis: int, ndim: int, operation: str) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"{operation}: axis {axis} is out of range for an array of {ndim} dimensions."
        )
    return axis % ndim


def _shuffled(words: Any, x: Any, axis: int) -> Array:
    """Sort by random bits, in as many rounds as make ties unlikely: 3 log n / log 2^32."""
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        words, own = raw_split(words, 2)
        _, x = lax.sort_key_val(raw_bits(own, 32, x.shape), x, axis)
    return x  # type: ignore[no-any-return]


@boundary
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
    sizes = checked_shape(shape, "choice")
    array = as_array(a, what="choice: a")
    if array.ndim:
        axis = _checked_axis(axis, array.ndim, "choice")
        count = array.shape[axis]
    else:
        count = _known_integer(a, array, "choice: a")
    draws = math.prod(sizes)
    if not draws:
        rest = array.shape[axis + 1 :] if array.ndim else ()
        return lax.full((*array.shape[:axis], *sizes, *rest), 0, array.dtype)
    _check_draws(draws, count, replace)
    if p is None and not replace:
        order = permutation(words, count if not array.ndim else array, axis if array.ndim else 0)
        result = lax.slice_in_dim(order, 0, draws, axis=axis if array.ndim else 0)
    else:
        indices = _drawn_indices(words, count, sizes, replace, p, mode)
        result = indices if not array.ndim else take(array, indices, axis)
    if not array.ndim:
        return lax.reshape(result, sizes)
    return lax.reshape(result, (*array.shape[:axis], *sizes, *array.shape[axis + 1 :]))


def _check_draws(draws: int, count: int, replace: bool) -> None:
    if count <= 0:
        raise ValueError("choice: there is nothing to choose from, a is empty.")
    if not replace and draws > count:
        raise ValueError(message(
            "choice", "more elements are to be drawn without replacement than there are.",
            got=f"{draws} draws of {count} elements",
        ))  # fmt: skip


def _drawn_indices(
    words: Any, count: int, sizes: tuple[int, ...], replace: bool, p: Any, mode: str | None
) -> Array:
    if p is None:
        return randint(words, sizes, 0, count)
    chances = as_array(p, what="choice: p")
    if not dtypes.is_floating(chances.dtype):
        chances = lax.convert_element_type(chances, dtypes.python_scalar_dtype(float))
    if chances.shape != (count,):
        raise ValueError(message(
            "choice", "p must have one probability for each element.",
            got=f"p: {chances.aval.str_long()}", expected=f"shape ({count},)",
        ))  # fmt: skip
    index_dtype = dtypes.python_scalar_dtype(int)
    if not replace:
        noise = raw_gumbel(words, (count,), chances.dtype, checked_mode(mode, "choice"))
        order = lax.top_k(lax.add(noise, lax.log(chances)), math.prod(sizes))[1]
        return lax.convert_element_type(order, index_dtype)
    sums = lax.cumsum(chances, 0)
    total = lax.index_in_dim(sums, -1, 0, keepdims=False)
    u = raw_uniform(words, sizes, chances.dtype)
    targets = lax.mul(lax.sub(lax.full_like(u, 1.0), u), total)
    return lax.convert_element_type(_places(sums, targets, count), index_dtype)


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
