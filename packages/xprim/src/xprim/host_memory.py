"""Host memory at the border: what NumPy may look at, and what NumPy's subclasses mean.

An array never changes, so the views of its memory that go out must not be made writeable.
`flags.writeable = False` is a wish that its owner can take back; a view through a read-only
`memoryview` cannot be, nor can a view of that. `sealed` makes such views; an array keeps the one it
made, so that the next costs nothing.

NumPy asks an array for its buffer first, forgets whatever that raises, and then asks `__array__`.
No interrupt may be lost so: `forgotten` keeps what `__buffer__` raised, for `__array__` to raise.
Repeated elements are lent only where a copy of them fits: if not, `__array__` names the error.

What comes in as a subclass of `np.ndarray` is taken for its elements. A masked array is refused:
its elements without the mask are other numbers.

Neighbours: `array` has the doors, out (`__array__`, `__buffer__`) and in (`from_numpy`).
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from xprim import dtypes
from xprim.errors import ArgumentError, message
from xprim.memory import allocated

__all__ = ["refuse_masked"]

__dir__ = __all__.copy

STRIDES = 0x18
"""PyBUF_STRIDES: whoever asks for a buffer with this flag takes elements that lie apart."""


def sealed(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a view of an array's memory that nobody can make writeable.

    An array that is such a view already is returned itself.

    Example:
      >>> sealed(np.arange(3)).flags.writeable = True
      Traceback (most recent call last):
      ValueError: cannot set WRITEABLE flag to True of this array
    """
    base: Any = host.base  # a memoryview too, whatever its stub says
    if type(base) is np.ndarray:
        base = base.base
    if type(base) is memoryview and base.readonly:
        return host
    if dtypes.is_numpys(host.dtype):
        return np.asarray(memory_of(host))
    raw = host.view(f"u{host.dtype.itemsize}")  # the buffer protocol has no bfloat16 and the like
    return np.asarray(memory_of(raw)).view(host.dtype)


def memory_of(host: Any) -> memoryview:
    """Return a view of an ndarray's memory that cannot be written."""
    return memoryview(host).toreadonly()


def lent(host: np.ndarray[Any, Any], flags: int) -> memoryview:
    """Return the memory of a sealed array as the buffer protocol asks for it with `flags`."""
    base: Any = host.base
    if type(base) is memoryview and base.c_contiguous and base.format == host.dtype.char:
        return base  # what `sealed` looks through: the same elements, ready
    if not dtypes.is_numpys(host.dtype):
        raise BufferError(message(
            "memoryview", f"Python's buffer protocol has no {host.dtype.name} elements.",
            hint="np.asarray(x) shows them, x.view('uint8') has their bytes",
        ))  # fmt: skip
    if 0 in host.strides:  # repeated elements; whoever copies them needs room for all
        allocated("memoryview", np.empty, host.shape, host.dtype)
    if flags & STRIDES != STRIDES and not host.flags.c_contiguous:
        host = np.ascontiguousarray(host)
    return memory_of(host)


class Forgotten(threading.local):
    """What a thread was told by the buffer of an array, and NumPy did not pass on."""

    def __init__(self) -> None:
        self.errors: dict[int, BaseException] = {}

    def keep(self, owner: Any, error: BaseException) -> None:
        """Keep the latest error for `raise_of`."""
        self.errors = {id(owner): error}

    def raise_of(self, owner: Any) -> None:
        """Raise what the buffer of this array raised; what another's raised was seen long ago."""
        error, self.errors = self.errors.get(id(owner)), {}
        if error is not None:
            raise error


forgotten = Forgotten()


def refuse_masked(value: Any, what: str) -> None:
    """Raise an ArgumentError for a masked array.

    Args:
      value: a NumPy array or scalar.
      what: how the error names the value.
    """
    masked = sys.modules.get("numpy.ma")  # where it was never imported, none exist
    if masked is not None and isinstance(value, masked.MaskedArray):
        count = int(np.count_nonzero(masked.getmaskarray(value)))
        raise ArgumentError(message(
            what, "a masked array would lose its mask.",
            got=f"a masked array {value.dtype.name}[{','.join(map(str, value.shape))}], {count} of "
            f"{value.size} elements masked",
            hint="x.filled(0) puts numbers in their places; x.data and x.mask are arrays",
        ))  # fmt: skip
