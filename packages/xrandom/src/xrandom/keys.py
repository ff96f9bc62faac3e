"""Random keys: what they are, and how they are made, split and taken apart.

A key is two 32-bit words. It comes in two forms that mean the same:

    key(seed)        a `Key`: a pytree of one leaf, the words, which cannot be mistaken for numbers
    PRNGKey(seed)    the bare words, a uint32 array of shape (2,)

Every function here and every sampler takes either, and gives back the form it was given. A key is
used once: `split` makes new ones of it, `fold_in` makes one of it and a number.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

import xtree
from xnp import lax
from xprim import Array, ConcreteArray, as_array, config, dtypes, shaped_array
from xprim.errors import KeyReuseError, message
from xprim.wording import described
from xrandom.arguments import checked_shape
from xrandom.drawing import random_fold_in_p, random_split_p

THREEFRY: Final = "threefry2x32"


class KeyDType(dtypes.ExtendedDType):
    """The dtype of keys: equal for equal generators, and a subtype of `dtypes.prng_key`."""

    __slots__ = ()
    type = dtypes.prng_key
    name = "key<fry>"
    itemsize = 8
    impl = THREEFRY

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDType)

    def __hash__(self) -> int:
        return hash(KeyDType)

    def __repr__(self) -> str:
        return self.name


_KEY_DTYPE: Final = KeyDType()


class Key:
    """A random key, or an array of keys: a pytree with one leaf, the words of all of them.

    Under `vmap` it maps over the leading dimensions; `len`, iteration and indexing see keys, not
    words. Two keys are equal where their words are.

    Attributes:
      data: the words, uint32 of shape `(*shape, 2)`.

    Example:
      >>> from xrandom import key, split
      >>> keys = split(key(0), 3)
      >>> keys.shape, len(keys), keys[0].shape
      ((3,), 3, ())
    """

    __slots__ = ("_used", "data")

    dtype: Final = _KEY_DTYPE

    def __init__(self, data: Any) -> None:
        self.data = data  # unchecked: pytrees are also made of placeholders
        self._used = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions of the array of keys; `()` for a single key."""
        return self.data.shape[:-1]  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """The number of dimensions of the array of keys."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many keys there are."""
        return int(np.prod(self.shape, dtype=int))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "numpy.asarray: a random key is not an array of numbers."
            "\n  hint      key_data(key) gives the words of a key, which are"
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len: a single key has no length.")
        return self.shape[0]

    def __iter__(self) -> Iterator[Key]:
        if not self.shape:
            raise TypeError(
                "iteration: a single key cannot be iterated over."
                "\n  hint      split(key, n) makes n keys of it"
            )
        return (Key(lax.index_in_dim(self.data, i, 0, keepdims=False)) for i in range(len(self)))

    def __getitem__(self, index: Any) -> Key:
        indices = index if isinstance(index, tuple) else (index,)
        if any(i is Ellipsis for i in indices):
            return Key(self.data[(*indices, slice(None))])
        if len([i for i in indices if i is not None]) > self.ndim:
            raise IndexError(
                message("index", "there are more indices than dimensions.", got=f"{index!r}",
                        expected=f"at most {self.ndim} for an array of keys of shape {self.shape}")
            )  # fmt: skip
        return Key(self.data[indices])

    def reshape(self, *shape: Any) -> Key:
        """Return the keys in another shape."""
        new = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        wanted = [operator.index(n) for n in new]
        if -1 in wanted:
            known = -int(np.prod(wanted, dtype=int))
            wanted[wanted.index(-1)] = self.size // known if known > 0 else 0
        return Key(lax.reshape(self.data, (*wanted, 2)))

    def ravel(self) -> Key:
        """Return the keys in one dimension."""
        return self.reshape(-1)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Key):
            return NotImplemented
        same = lax.eq(self.data, other.data)
        return lax.bitwise_and(*[lax.index_in_dim(same, i, -1, keepdims=False) for i in (0, 1)])

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        words = self.data
        shown = np.asarray(words) if type(words) is ConcreteArray else words
        return f"Key{list(getattr(words, 'shape', (2,))[:-1])}({THREEFRY}) of words {shown}"


def _flatten_with_key(key: Key) -> Any:
    return ((xtree.GetAttrKey("data"), key.data),), None


def _unflatten(_: None, children: Any) -> Key:
    (data,) = children
    return Key(data)


xtree.register_pytree_node(Key, lambda key: ((key.data,), None), _unflatten, _flatten_with_key)


def words_of(key: Any, operation: str) -> Any:
    """Return the words of a single key in either form; hot in every eager draw.

    Raises:
      TypeError: for what is no key, and for an array of keys.
      KeyReuseError: for a `Key` that was used before, with `config.debug_key_reuse` set.
    """
    if type(key) is Key:
        words = key.data
        if config.values.debug_key_reuse:
            _mark_used(key, operation)
    elif isinstance(key, Array):
        words = key
    else:
        words = _entered(key, operation)
    if words.aval is not _SINGLE:
        _check_single(words, operation)
    return words


def _entered(key: Any, operation: str) -> Any:
    try:
        return as_array(key)
    except TypeError:
        raise TypeError(
            f"{operation}: the value is not a random key."
            f"\n  got       {described(key)}"
            "\n  expected  a Key, or the two words of one: uint32[2]"
            f"\n  hint      {operation}(key, ...) takes the key first, and key(seed) makes one"
        ) from None


_SINGLE: Final = shaped_array((2,), dtypes.uint32)


def _check_single(words: Any, operation: str) -> None:
    _check_words(words, operation)
    shape = words.shape[:-1]
    if shape:
        raise ValueError(
            f"{operation}: takes a single key."
            f"\n  got       an array of keys of shape {shape}"
            "\n  hint      vmap maps over arrays of keys"
        )


def _check_words(words: Any, operation: str) -> None:
    aval = words.aval
    if aval.dtype != dtypes.uint32 or not aval.shape or aval.shape[-1] != 2:
        raise TypeError(
            f"{operation}: the value is not a random key."
            f"\n  got       {aval.strong().str_long()}"
            "\n  expected  a Key, or the two words of one: uint32[2]"
            "\n  hint      key(seed) makes a key"
        )


def _mark_used(key: Key, operation: str) -> None:
    if key._used:
        raise KeyReuseError(
            f"{operation}: the key was used before."
            f"\n  got       {key!r}"
            "\n  hint      k1, k2 = split(key), and use k1 and k2"
        )
    key._used = True


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Key:
    """Make a random key from an integer.

    Args:
      seed: an integer. Python integers keep their low 32 bits, or 64 with `enable_x64`.
      impl: the generator; None takes `config.default_prng_impl`. Only "threefry2x32" exists.
      dtype: the same as `impl`, as `key_dtype` gives it.

    Returns:
      A `Key` of shape ().

    Raises:
      TypeError: the seed is not a single integer.
      ValueError: there is no such generator.

    Example:
      >>> from xrandom import key, key_data
      >>> key_data(key(7)).tolist()
      [0, 7]
    """
    _check_impl("key", impl, dtype)
    return Key(_seeded(seed, "key"))


def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """Make a random key in its bare form, a uint32 array of shape (2,).

    Args:
      seed: an integer.
      impl: the generator; None takes `config.default_prng_impl`. Only "threefry2x32" exists.

    Example:
      >>> from xrandom import PRNGKey
      >>> PRNGKey(0).tolist()
      [0, 0]
    """
    _check_impl("PRNGKey", impl, None)
    return _seeded(seed, "PRNGKey")


def _seeded(seed: Any, operation: str) -> Array:
    """Return the words `(seed >> 32, seed)`, of a 32-bit seed with a zero in front."""
    if type(seed) is int:
        if not -(2**63) <= seed < 2**64:
            raise OverflowError(
                f"{operation}: the seed {seed} does not fit in 64 bits."
                "\n  expected  a value from -2**63 to 2**64 - 1"
            )
        wide = config.values.enable_x64
        words = np.array([seed >> 32 & 0xFFFFFFFF if wide else 0, seed & 0xFFFFFFFF], np.uint32)
        return ConcreteArray(words, _SINGLE)
    if isinstance(seed, Key):
        raise TypeError(f"{operation}: the seed must be an integer, got a Key.")
    array = as_array(seed, what=f"{operation}: the seed")
    if array.ndim or not dtypes.is_integer(array.dtype):
        raise TypeError(
            f"{operation}: the seed must be a single integer."
            f"\n  got       {array.aval.str_long()}"
            + ("\n  hint      vmap maps over arrays of seeds" if array.ndim else "")
        )
    if dtypes.itemsize_bits(array.dtype) == 64:
        high = lax.shift_right_logical(array, 32)
        halves = [lax.convert_element_type(x, dtypes.uint32) for x in (high, array)]
    else:
        halves = [lax.full((), 0, dtypes.uint32), lax.convert_element_type(array, dtypes.uint32)]
    return lax.concatenate([lax.reshape(w, (1,)) for w in halves], 0)


def _check_impl(operation: str, impl: Any, dtype: Any) -> None:
    if impl is not None and dtype is not None:
        raise ValueError(f"{operation}: give one of impl and dtype, not both.")
    wanted = impl if dtype is None else dtype
    if wanted is None:
        wanted = config.values.default_prng_impl
    if wanted == THREEFRY or isinstance(wanted, KeyDType):
        return
    if not isinstance(wanted, str):
        raise TypeError(
            f"{operation}: the generator must be given by its name."
            f"\n  got       {described(wanted)}\n  expected  {THREEFRY!r}"
        )
    raise ValueError(
        f"{operation}: there is no generator {wanted!r}."
        f"\n  expected  {THREEFRY!r}"
        + ("" if impl or dtype else "\n  hint      config.default_prng_impl names the generator")
    )


def key_dtype(impl_spec: Any = None) -> KeyDType:
    """Return the dtype of keys of a generator.

    Example:
      >>> from xrandom import key, key_dtype
      >>> key(0).dtype == key_dtype()
      True
    """
    _check_impl("key_dtype", impl_spec, None)
    return _KEY_DTYPE


def key_data(keys: Any) -> Array:
    """Return the words of a key or an array of keys, uint32 of shape `(*keys.shape, 2)`."""
    words = keys.data if type(keys) is Key else as_array(keys, what="key_data: the key")
    _check_words(words, "key_data")
    return words


def key_impl(keys: Any) -> str:
    """Return the name of the generator of a key: "threefry2x32"."""
    key_data(keys)
    return THREEFRY


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Key:
    """Return the keys of which these are the words; the inverse of `key_data`.

    Args:
      key_bits_array: uint32 of shape `(..., 2)`.
      impl: the generator, as for `key`.
      dtype: likewise.
    """
    _check_impl("wrap_key_data", impl, dtype)
    words = as_array(key_bits_array, what="wrap_key_data: the words")
    _check_words(words, "wrap_key_data")
    return Key(words)


def clone(key: Any) -> Any:
    """Return the same key again, which `config.debug_key_reuse` then counts as a new one."""
    return Key(key_data(key)) if type(key) is Key else key_data(key)


def split(key: Any, num: int | Sequence[int] = 2) -> Any:
    """Make new keys of one, which must not be used any more.

    Args:
      key: a single key, of either form.
      num: how many keys, or the shape of an array of them.

    Returns:
      Keys of shape `(num,)` or `num`, of the form of `key` (bare words have one more dimension).

    Example:
      >>> from xrandom import PRNGKey, split
      >>> k1, k2 = split(PRNGKey(0))
      >>> k1.tolist()
      [1797259609, 2579123966]
    """
    words = words_of(key, "split")
    shape = (num,) if type(num) is int else _split_shape(num)
    (out,) = random_split_p.bind(
        words, shape=shape, partitionable=config.values.threefry_partitionable
    )
    return Key(out) if type(key) is Key else out


def _split_shape(num: Any) -> tuple[int, ...]:
    return checked_shape(num, "split")


def fold_in(key: Any, data: Any) -> Any:
    """Make a new key of a key and a number; different numbers give independent keys.

    Args:
      key: a single key, of either form.
      data: an integer, of which 32 bits count; a traced one (a loop index) will do.

    Returns:
      A key of the form of `key`.

    Raises:
      TypeError: `data` is not a single integer.
      OverflowError: `data` is a Python integer below 0 or above 2**32 - 1.

    Example:
      >>> from xrandom import PRNGKey, fold_in
      >>> fold_in(PRNGKey(0), 1).shape
      (2,)
    """
    words = words_of(key, "fold_in")
    if type(data) is int:
        number: Any = as_array(data, dtypes.uint32)
    else:
        number = as_array(data, what="fold_in: data")
        if number.ndim or not dtypes.is_integer(number.dtype):
            raise TypeError(
                "fold_in: data must be a single integer."
                f"\n  got       {number.aval.str_long()}"
                + ("\n  hint      vmap maps over arrays of numbers" if number.ndim else "")
            )
        if number.dtype != dtypes.uint32 or number.weak_type:
            number = lax.convert_element_type(number, dtypes.uint32)
    (out,) = random_fold_in_p.bind(words, number)
    return Key(out) if type(key) is Key else out


def raw_split(words: Any, num: int) -> list[Any]:
    """Return the words of `num` new keys, one array for each: for use inside samplers."""
    (out,) = random_split_p.bind(
        words, shape=(num,), partitionable=config.values.threefry_partitionable
    )
    return [lax.index_in_dim(out, i, 0, keepdims=False) for i in range(num)]
