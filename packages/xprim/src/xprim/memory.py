"""Memory: out-of-memory errors that name the operation; what NumPy may see of host memory."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from xprim import dtypes
from xprim.errors import ArgumentError, OutOfMemoryError
from xtree.errors import message

if TYPE_CHECKING:
    from xprim.avals import ShapedArray

__all__ = ["MOST_BYTES", "bytes_of", "in_bytes", "out_of_memory", "refuse_masked"]

__dir__ = __all__.copy


# ---------------------------------------------------------------------------------------- memory
# Say which operation requested more memory than there is, and for how many bytes.
#
# `out_of_memory` makes the error for whoever knows both. `out_of_memory_error` reads the bytes from
# what NumPy raised, and from the types of the results where no array can be so large; `allocate` is
# a copy that NumPy makes, with that error.

T = TypeVar("T")

# The bytes of an array are counted in 64 bits, with a sign.
MOST_BYTES = 2**63 - 1


def out_of_memory(
    operation: str, nbytes: int | str | None, got: str = "", hint: str = ""
) -> OutOfMemoryError:
    """Return the error for an operation that requested so many bytes.

    A text is a number with its unit, as whoever rounded it has said it; None: unknown.
    """
    size = in_bytes(nbytes) if isinstance(nbytes, int) else nbytes
    requested = "more than there is was" if size is None else f"{size} were"
    return OutOfMemoryError(
        message(operation, f"out of memory: {requested} requested.", got=got, hint=hint)
    )


def out_of_memory_error(
    operation: str, error: Exception, results: Sequence[ShapedArray] = (),
    others: Callable[[], str] = str,
) -> Exception:  # fmt: skip
    """Return the error for an operation that NumPy refused: `error` itself if memory was enough.

    Args:
      operation: what was to be done.
      error: what NumPy raised: a `MemoryError`, or a `ValueError` for what cannot be counted.
      results: the types of the operation's results.
      others: returns a sentence about the arrays that fill the memory.
    """
    got = ", ".join([aval.str_long() for aval in results])
    if isinstance(error, MemoryError):
        numpys: Any = error if hasattr(error, "shape") else None  # Python's own does not tell
        nbytes = numpys and math.prod(numpys.shape) * numpys.dtype.itemsize
        return out_of_memory(operation, nbytes, got, others())
    largest = max([bytes_of(aval) for aval in results], default=0)
    return out_of_memory(operation, largest, got) if largest > MOST_BYTES else error


def allocate(operation: str, make: Callable[..., T], *args: Any) -> T:
    """Return a copy that NumPy makes, or raise that it did not fit."""
    try:
        return make(*args)
    except MemoryError as error:
        raise out_of_memory_error(operation, error) from None


def bytes_of(aval: ShapedArray) -> int:
    """Return the bytes of an array as its strides count them: dimensions of size 0 as 1."""
    return math.prod([n or 1 for n in aval.shape]) * aval.dtype.itemsize


def in_bytes(nbytes: int) -> str:
    """Return a number of bytes as people read it.

    Example:
      >>> in_bytes(400_000_000_000_000)
      '400,000,000,000,000 bytes (364 TiB)'
    """
    text, size = f"{nbytes:,} bytes", float(nbytes)
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        size /= 1024
        if 1 <= size < 1024:
            return f"{text} ({size:.3g} {unit})"
    return text


# ----------------------------------------------------------------------------------- host memory
# Host memory at the border: what NumPy may look at, and what NumPy's subclasses mean.
#
# An array never changes, so the views of its memory that go out must not be made writeable.
# `flags.writeable = False` is a wish that its owner can take back; a view through a read-only
# `memoryview` cannot be, nor can a view of that. `seal` makes such views; an array keeps the
# one it made, so that the next costs nothing.
#
# NumPy asks an array for its buffer first, forgets whatever that raises, and then asks
# `__array__`. No interrupt may be lost so: `forgotten` keeps what `__buffer__` raised, for
# `__array__` to raise. Repeated elements are lent only where a copy of them fits: if not,
# `__array__` names the error.
#
# What comes in as a subclass of `np.ndarray` counts as its elements. A masked array
# raises: its elements without the mask are other numbers.

STRIDES = 0x18
"""PyBUF_STRIDES: whoever asks for a buffer with this flag takes elements that lie apart."""


def seal(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a view of an array's memory that cannot be made writeable.

    An array that is such a view already is returned itself.

    Example:
      >>> seal(np.arange(3)).flags.writeable = True
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


def lend(host: np.ndarray[Any, Any], flags: int) -> memoryview:
    """Return the memory of a sealed array as the buffer protocol asks for it with `flags`."""
    base: Any = host.base
    if type(base) is memoryview and base.c_contiguous and base.format == host.dtype.char:
        return base  # what `seal` looks through: the same elements, ready
    if not dtypes.is_numpys(host.dtype):
        raise BufferError(message(
            "memoryview", f"Python's buffer protocol has no {host.dtype.name} elements.",
            hint="np.asarray(x) shows them, x.view('uint8') has their bytes",
        ))  # fmt: skip
    if 0 in host.strides:  # repeated elements; whoever copies them needs room for all
        allocate("memoryview", np.empty, host.shape, host.dtype)
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
            what, "numpy masked arrays are not supported: the mask would be lost.",
            got=f"a masked array {value.dtype.name}[{','.join(map(str, value.shape))}], {count} of "
            f"{value.size} elements masked",
            hint="x.filled(0) puts numbers in their places; x.data and x.mask are arrays",
        ))  # fmt: skip
