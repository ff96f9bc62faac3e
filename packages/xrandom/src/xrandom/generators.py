"""The generators of random numbers, by their names, and the dtypes of their keys.

    threefry2x32   key<fry>    two words    each number is the hash of its place
    rbg            key<rbg>    four words   Philox: fewer operations for each number
    unsafe_rbg     key<urbg>   four words   the same, and keys are split by it, too

All give the same bits on every platform, uncompiled, compiled and mapped over keys. Of
"unsafe_rbg", that the keys that `split` and `fold_in` make are independent is not shown.

Neighbours: `keys` makes and takes apart keys, `bit_generator` draws bits.
"""

from __future__ import annotations

from typing import Any, Final

from xprim import config, dtypes
from xprim.descriptions import described
from xprim.errors import message
from xrandom.bit_generator import WIDE_KEY

__all__ = ()

THREEFRY: Final = "threefry2x32"
UNSAFE: Final = "unsafe_rbg"


class KeyDType(dtypes.ExtendedDType):
    """The dtype of keys of a generator, a subtype of `dtypes.prng_key`; one object for each."""

    __slots__ = ("_home", "element_shape", "impl", "name")
    type = dtypes.prng_key
    base = dtypes.uint32
    elements = "random keys"
    hint = "key_data(key) gives the words of a key, which are numbers"

    def __init__(self, impl: str, name: str, words: int, home: str) -> None:
        self.impl, self.name, self.element_shape, self._home = impl, name, (words,), home

    def __reduce__(self) -> str:
        return self._home  # the name in this module, which exported programs have, too


KEY_DTYPE: Final[Any] = KeyDType(THREEFRY, "key<fry>", 2, "KEY_DTYPE")
WIDE_KEY_DTYPE: Final[Any] = KeyDType("rbg", "key<rbg>", WIDE_KEY, "WIDE_KEY_DTYPE")
UNSAFE_KEY_DTYPE: Final[Any] = KeyDType(UNSAFE, "key<urbg>", WIDE_KEY, "UNSAFE_KEY_DTYPE")

_DTYPES: Final[dict[str, Any]] = {
    dtype.impl: dtype for dtype in (KEY_DTYPE, WIDE_KEY_DTYPE, UNSAFE_KEY_DTYPE)
}


def asked_dtype(operation: str, impl: Any = None, dtype: Any = None) -> Any:
    """Return the dtype of keys that the arguments `impl` and `dtype` of a function ask for."""
    if impl is not None and dtype is not None:
        raise ValueError(f"{operation}: give one of impl and dtype, not both.")
    wanted = impl if dtype is None else dtype
    if wanted is None:
        wanted = config.values.default_prng_impl
    if isinstance(wanted, KeyDType):
        return wanted
    if not isinstance(wanted, str):
        raise TypeError(message(
            operation, "the generator must be given by its name.", got=described(wanted),
            expected=", ".join(map(repr, _DTYPES)),
        ))  # fmt: skip
    if wanted not in _DTYPES:
        raise ValueError(message(
            operation, f"there is no generator {wanted!r}.",
            expected=", ".join(map(repr, _DTYPES)),
            hint="" if impl or dtype else "config.default_prng_impl names the generator",
        ))  # fmt: skip
    return _DTYPES[wanted]
