"""Random bits: what every sampler is made of."""

from __future__ import annotations

from typing import Any

from xnp.placing import placed
from xprim import Array, config, dtypes
from xprim.errors import message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from xrandom.arguments import Shape, checked_shape
from xrandom.key_primitives import random_bits_p
from xrandom.keys import words_of


@boundary
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
    sample = raw_bits(words, dtypes.itemsize_bits(exact), checked_shape(shape, "bits"))
    return placed(sample, out_sharding, "bits")


def raw_bits(words: Any, bit_width: int, shape: Shape) -> Array:
    """Draw bits from the words of a key."""
    (out,) = random_bits_p.bind(
        words,
        bit_width=bit_width,
        shape=shape,
        partitionable=config.values.threefry_partitionable,
    )
    return out  # type: ignore[no-any-return]
