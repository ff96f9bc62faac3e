"""Random keys: what they are, and how they are made, split and taken apart.

A key is two 32-bit words, or four (see `generators`). It comes in two forms that mean the same:

    key(seed)        an element of dtype `key<fry>`, which cannot be mistaken for numbers
    PRNGKey(seed)    the bare words, a uint32 array of shape (2,)

Arrays of keys are arrays: they are indexed, reshaped, joined, mapped over, and passed through every
transformation as any; arithmetic on them raises. Every function here and every sampler takes
either form, and gives back the form it was given. A key is used once: `split` makes new ones of it,
`fold_in` makes one of it and a number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Final, NewType

import numpy as np

from xnp import lax
from xprim import EAGER, Array, ConcreteArray, as_array, config, dtypes, shaped_array, state
from xprim.calls import bind_one
from xprim.errors import described, message
from xprim.extended import as_physical, unwrap, wrap, wrap_p, wrapped
from xprim.key_uses import REPORTED, note_use
from xprim.source import capture
from xprim.strict_options import enable_custom_prng
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike
from xrandom.arguments import check_shape
from xrandom.bit_generator import KEY_DTYPE, THREEFRY, UNSAFE, WIDE_KEY, KeyDType, find_key_dtype
from xrandom.key_primitives import random_bits_p, random_fold_in_p, random_split_p

__all__ = ()

Key = NewType("Key", Array)
Key.__doc__ = """The type of a random key, for annotations: an array of dtype `key<fry>`."""


_SINGLE: Final = shaped_array((2,), dtypes.uint32)


def words_of(key: Any, operation: str, uses: bool = True) -> Any:
    """Return the words of a single key in either form; hot in every eager draw.

    Args:
      key: what the user passed.
      operation: the name of the public function.
      uses: whether it uses the key, which another use of it should not do.

    Raises:
      TypeError: for what is not a key, and for an array of keys.
      KeyReuseError: for a key that was used before, where `config.debug_key_reuse` is True.
    """
    if type(key) is not ConcreteArray and not isinstance(key, Array):
        key = _enter(key, operation)
    words = key
    if type(key.aval.dtype) is KeyDType:
        words = as_physical(key) if type(key) is ConcreteArray else unwrap(key)
    if words.aval is not _SINGLE:
        _check_single(words, operation)
    if uses:
        first = getattr(key, "first_use", None)  # xjit 0.2.0 makes arrays without one
        if first is None and state.trace is EAGER and type(key) is ConcreteArray:
            key.first_use = capture(4) or REPORTED
        elif first is None or first or config.values.debug_key_reuse is True:
            note_use(key, operation)
    return words


def keys_like(key: Any, words: Any) -> Array:
    """Return the keys of some words, in the form of another key."""
    if type(key) is ConcreteArray or isinstance(key, Array):
        dtype: Any = key.aval.dtype
        if type(dtype) is KeyDType:
            return _keys(words, dtype)
    if enable_custom_prng.used and enable_custom_prng.value:
        return _keys(words, find_key_dtype("key", None))
    return words  # type: ignore[no-any-return]


def _keys(words: Any, dtype: Any) -> Array:
    """Return the array of keys of a dtype with these words."""
    if type(words) is ConcreteArray:
        return wrapped(words, _keys_aval(words.aval, dtype))
    keys: Array = wrap_p.bind(words, dtype=dtype)[0]
    return keys


@functools.lru_cache(maxsize=4096)  # kept alive: to make an abstract value anew costs 2 us
def _keys_aval(words: Any, dtype: Any) -> Any:
    """Return the abstract value of keys of these words."""
    return shaped_array(words.shape[:-1], dtype)


def _enter(key: Any, operation: str) -> Any:
    try:
        return as_array(key)
    except TypeError:
        raise TypeError(message(
            operation, "the value is not a random key.", got=described(key),
            expected="key<fry>[], or the two words of one: uint32[2]",
            hint=f"{operation}(key, ...) takes the key first, and key(seed) makes one",
        )) from None  # fmt: skip


def _check_single(words: Any, operation: str) -> None:
    _check_words(words, operation)
    shape = words.shape[:-1]
    if shape:
        raise ValueError(message(
            operation, "takes a single key.", got=f"an array of keys of shape {shape}",
            hint="vmap maps over arrays of keys",
        ))  # fmt: skip


def _check_words(words: Any, operation: str, counts: tuple[int, ...] = (2, WIDE_KEY)) -> None:
    aval = words.aval
    if aval.dtype != dtypes.uint32 or not aval.shape or aval.shape[-1] not in counts:
        expected = "key<fry>[], or the two words of one: uint32[2]"
        raise TypeError(message(
            operation, "the value is not a random key.", got=aval.strong().str_long(),
            expected=expected if 2 in counts else f"the words of keys: uint32[..., {WIDE_KEY}]",
            hint="key(seed) makes a key",
        ))  # fmt: skip


def key(seed: ArrayLike, *, impl: Any = None, dtype: DTypeLike = None) -> Array:
    """Make a random key from an integer.

    Args:
      seed: an integer from -2**63 to 2**64 - 1. It keeps its low 32 bits, or all with
        `enable_x64`. As an argument of a function under `jit`, one that does not fit in 32 bits
        raises, as any such argument does; `static_argnums` has it be a constant.
      impl: the generator, "threefry2x32", "rbg" or "unsafe_rbg"; None takes
        `config.default_prng_impl`.
      dtype: the same as `impl`, as `key_dtype` gives it.

    Returns:
      An array of dtype `key<fry>`, `key<rbg>` or `key<urbg>` and shape ().

    Raises:
      TypeError: the seed is not a single integer.
      OverflowError: it does not fit in 64 bits.
      ValueError: unknown generator.

    Example:
      >>> from xrandom import key, key_data
      >>> key_data(key(7)).tolist()
      [0, 7]
    """
    requested = find_key_dtype("key", impl, dtype)
    return _keys(_seed(seed, "key", requested), requested)


def PRNGKey(seed: ArrayLike, *, impl: Any = None) -> Array:
    """Make a random key in its bare form, a uint32 array of shape (2,).

    Args:
      seed: an integer.
      impl: the generator, "threefry2x32", "rbg" or "unsafe_rbg"; None takes
        `config.default_prng_impl`.

    Returns:
      An array of shape (2,) of uint32, the upper and the lower word of the seed; of the other
      generators of shape (4,), these words twice. With `config.enable_custom_prng` what `key`
      returns.

    Example:
      >>> from xrandom import PRNGKey
      >>> PRNGKey(0).tolist()
      [0, 0]
    """
    dtype = find_key_dtype("PRNGKey", impl)
    words = _seed(seed, "PRNGKey", dtype)
    return _keys(words, dtype) if enable_custom_prng.value else words


def _seed(seed: Any, operation: str, dtype: Any) -> Array:
    """Return the words of the key that a seed gives: those of Threefry, for wide keys twice."""
    words = _seed_words(seed, operation)
    return words if dtype is KEY_DTYPE else lax.concatenate([words, words], 0)


def _seed_words(seed: Any, operation: str) -> Array:
    """Return the words `(seed >> 32, seed)`; the first is 0 without `enable_x64`."""
    if type(seed) is not int and _has_64_bits(seed):
        seed = int(seed)  # which would not fit without `enable_x64`
    if type(seed) is int:
        if not -(2**63) <= seed < 2**64:
            raise OverflowError(message(
                operation, f"the seed {seed} does not fit in 64 bits.",
                expected="a value from -2**63 to 2**64 - 1",
            ))  # fmt: skip
        wide = config.values.enable_x64
        words = np.array([seed >> 32 & 0xFFFFFFFF if wide else 0, seed & 0xFFFFFFFF], np.uint32)
        return ConcreteArray(words, _SINGLE)
    array = as_array(seed, what=f"{operation}: the seed")
    if array.ndim or not (dtypes.is_integer(array.dtype) or dtypes.is_bool(array.dtype)):
        raise TypeError(message(
            operation, "the seed must be a single integer.", got=array.aval.str_long(),
            hint="vmap maps over arrays of seeds" if array.ndim else "",
        ))  # fmt: skip
    if dtypes.itemsize_bits(array.dtype) == 64 and config.values.enable_x64:
        high = lax.shift_right_logical(array, 32)
        halves = [lax.convert_element_type(x, dtypes.uint32) for x in (high, array)]
    else:
        halves = [lax.full((), 0, dtypes.uint32), lax.convert_element_type(array, dtypes.uint32)]
    return lax.concatenate([lax.reshape(w, (1,)) for w in halves], 0)


def _has_64_bits(x: Any) -> bool:
    """Return whether a value is a single integer of NumPy of 64 bits."""
    return (isinstance(x, np.ndarray | np.integer) and x.ndim == 0
            and x.dtype.kind in "iu" and x.dtype.itemsize == 8)  # fmt: skip


def key_dtype(impl_spec: Any = None) -> KeyDType:
    """Return the dtype of keys of a generator.

    Args:
      impl_spec: the generator; None takes `config.default_prng_impl`.

    Returns:
      An extended dtype, which `issubdtype(dtype, dtypes.prng_key)` knows.

    Example:
      >>> from xrandom import key, key_dtype
      >>> key(0).dtype == key_dtype()
      True
    """
    dtype: KeyDType = find_key_dtype("key_dtype", impl_spec)
    return dtype


def key_data(keys: ArrayLike) -> Array:
    """Return the words of a key or an array of keys, uint32 of shape `(*keys.shape, 2)`, of rbg 4.

    Args:
      keys: of either form; bare words are returned as they are.

    Returns:
        An array of uint32: the shape of the keys with the words behind it.

    Raises:
      TypeError: the value is not a random key.

    Example:
        >>> import xrandom
        >>> xrandom.key_data(xrandom.key(0))
        Array([0, 0], dtype=uint32)
    """
    array = as_array(keys, what="key_data: the key")
    dtype: Any = array.aval.dtype
    words = unwrap(array) if type(dtype) is KeyDType else array
    _check_words(words, "key_data")
    return words


def key_impl(keys: ArrayLike) -> str:
    """Return the name of the generator of a key, such as "threefry2x32".

    Four bare words are of "rbg", or of "unsafe_rbg" where `config.default_prng_impl` says so.

    Args:
        keys: an array of keys.

    Returns:
        A string.

    Example:
        >>> import xrandom
        >>> xrandom.key_impl(xrandom.key(0))
        'threefry2x32'
    """
    return _impl_of(keys, key_data(keys))


def _impl_of(keys: Any, words: Any) -> str:
    dtype = getattr(keys, "dtype", None)
    if type(dtype) is KeyDType:
        return dtype.impl
    if words.aval.shape[-1] == 2:
        return THREEFRY
    return UNSAFE if config.values.default_prng_impl == UNSAFE else "rbg"


def wrap_key_data(key_bits_array: ArrayLike, *, impl: Any = None, dtype: DTypeLike = None) -> Array:
    """Return the keys of which these are the words; the inverse of `key_data`.

    Args:
      key_bits_array: uint32 of shape `(..., 2)`, of rbg `(..., 4)`.
      impl: the generator, as for `key`.
      dtype: likewise.

    Returns:
      An array of dtype `key<fry>` and shape `(...)`.

    Example:
      >>> from xrandom import key, key_data, wrap_key_data
      >>> bool(wrap_key_data(key_data(key(7))) == key(7))
      True
    """
    requested = find_key_dtype("wrap_key_data", impl, dtype)
    words = as_array(key_bits_array, what="wrap_key_data: the words")
    _check_words(words, "wrap_key_data", requested.element_shape)
    return wrap(words, requested)


def clone(key: ArrayLike) -> Array:
    """Return a copy of a key that counts as unused: where the same numbers are meant.

    Args:
        key: a single random key, of either form.

    Returns:
        A key of the same words.

    Raises:
        TypeError: `key` is not a random key.

    Example:
        >>> import xrandom
        >>> bool((xrandom.clone(xrandom.key(0)) == xrandom.key(0)).all())
        True
    """
    words = bind_one("copy", key_data(key))
    dtype = getattr(key, "dtype", None)
    return wrap(words, dtype) if type(dtype) is KeyDType else words


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """Make new keys of one, which must not be used any more.

    Args:
      key: a single key, of either form.
      num: how many keys, or the shape of an array of them.

    Returns:
      Keys of shape `(num,)` or `num`, of the form of `key` (bare words have one more dimension).

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `num` is negative.

    Example:
      >>> from xrandom import PRNGKey, split
      >>> k1, k2 = split(PRNGKey(0))
      >>> k1.tolist()
      [1797259609, 2579123966]
    """
    words = words_of(key, "split")
    shape = (num,) if type(num) is int else _split_shape(num)
    if words.aval is not _SINGLE and _impl_of(key, words) == UNSAFE:
        return keys_like(key, _unsafe_keys(words, shape))
    (out,) = random_split_p.bind(
        words, shape=shape, partitionable=config.values.threefry_partitionable
    )
    return keys_like(key, out)


def _unsafe_keys(words: Any, shape: tuple[int, ...]) -> Any:
    """Return one in ten of the keys that the bits of a wide key make, as JAX does."""
    (drawn,) = random_bits_p.bind(
        words, bit_width=32, shape=(10 * math.prod(shape), WIDE_KEY), partitionable=True
    )
    return lax.reshape(lax.slice_in_dim(drawn, 0, None, 10), (*shape, WIDE_KEY))


def _unsafe_hash(number: Any) -> Any:
    """Return the tenth key that the bits of the key of a number make."""
    seeded = _seed(number, "fold_in", None)
    (drawn,) = random_bits_p.bind(seeded, bit_width=32, shape=(10, WIDE_KEY), partitionable=True)
    return lax.index_in_dim(drawn, 9, 0, keepdims=False)


def _split_shape(num: Any) -> tuple[int, ...]:
    return check_shape(num, "split")


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """Make a new key of a key and a number; different numbers give independent keys.

    Args:
      key: a single key, of either form.
      data: an integer, of which 32 bits count, or a floating number whose value is one, as a
        counter of steps may be; a traced one (a loop index) will do, of which the fraction is cut
        off.

    Returns:
      A key of the form of `key`.

    Raises:
      TypeError: `data` is not a single number, or is known and has a fraction.
      OverflowError: `data` is a Python integer below 0 or above 2**32 - 1.

    Example:
      >>> from xrandom import PRNGKey, fold_in
      >>> fold_in(PRNGKey(0), 1).shape
      (2,)
    """
    words = words_of(key, "fold_in", uses=False)
    if type(data) is int:
        number: Any = as_array(data, dtypes.uint32)
    else:
        number = as_array(data, what="fold_in: data")
        if number.ndim or not _is_real(number.dtype):
            raise TypeError(message(
                "fold_in", "data must be a single integer.", got=number.aval.str_long(),
                hint="vmap maps over arrays of numbers" if number.ndim else "",
            ))  # fmt: skip
        if type(number) is ConcreteArray and dtypes.is_floating(number.dtype):
            number = as_array(_integer_of(number), dtypes.uint32)
        if number.dtype != dtypes.uint32 or number.weak_type:
            number = lax.convert_element_type(number, dtypes.uint32)
    if words.aval is not _SINGLE and _impl_of(key, words) == UNSAFE:
        return keys_like(key, lax.bitwise_xor(words, _unsafe_hash(number)))
    (out,) = random_fold_in_p.bind(words, number)
    return keys_like(key, out)


def _is_real(dtype: np.dtype[Any]) -> bool:
    return dtypes.is_integer(dtype) or dtypes.is_bool(dtype) or dtypes.is_floating(dtype)


def _integer_of(number: ConcreteArray) -> int:
    """Return the value of a floating number that is an integer, or raise a TypeError."""
    value = float(number.to_host())
    if not value.is_integer():  # nor are infinities and NaN
        raise TypeError(message(
            "fold_in", "data must be a single integer.", got=f"{value}",
            hint="keys of numbers with fractions: fold_in(key, number.view('uint32'))",
        ))  # fmt: skip
    return int(value)


def raw_split(words: Any, num: int) -> list[Any]:
    """Return the words of `num` new keys, one array for each: for use inside samplers."""
    (out,) = random_split_p.bind(
        words, shape=(num,), partitionable=config.values.threefry_partitionable
    )
    return [lax.index_in_dim(out, i, 0, keepdims=False) for i in range(num)]


boundaries(globals(), written=True, names=[
    "key", "PRNGKey", "key_dtype", "key_data", "key_impl", "wrap_key_data", "clone", "split",
    "fold_in",
])  # fmt: skip
