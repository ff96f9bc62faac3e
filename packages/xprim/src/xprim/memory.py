"""Say which operation asked for more memory than there is, and for how many bytes.

`out_of_memory` makes the error for whoever knows both. `refused` reads the bytes from what NumPy
raised, and from the types of the results where no array can be so large; `allocated` is a copy that
NumPy makes, with that error.
Neighbours: `eager` asks about NumPy's failures, a compiler about those of its devices.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from xprim.errors import OutOfMemoryError, message

if TYPE_CHECKING:
    from xprim.avals import ShapedArray

__all__ = ["MOST_BYTES", "bytes_of", "in_bytes", "out_of_memory"]

__dir__ = __all__.copy

T = TypeVar("T")

# The bytes of an array are counted in 64 bits, with a sign.
MOST_BYTES = 2**63 - 1


def out_of_memory(
    operation: str, nbytes: int | str | None, got: str = "", hint: str = ""
) -> OutOfMemoryError:
    """Return the error for an operation that asked for so many bytes.

    A text is a number with its unit, as whoever rounded it has said it; None: nobody knows.
    """
    size = in_bytes(nbytes) if isinstance(nbytes, int) else nbytes
    asked = "more than there is was" if size is None else f"{size} were"
    return OutOfMemoryError(
        message(operation, f"out of memory: {asked} asked for.", got=got, hint=hint)
    )


def refused(
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
        nbytes: int | None = None  # Python's own error does not tell
        with contextlib.suppress(AttributeError):
            asked: Any = error
            nbytes = math.prod(asked.shape) * asked.dtype.itemsize
        return out_of_memory(operation, nbytes, got, others())
    largest = max([bytes_of(aval) for aval in results], default=0)
    return out_of_memory(operation, largest, got) if largest > MOST_BYTES else error


def allocated(operation: str, make: Callable[..., T], *args: Any) -> T:
    """Return a copy that NumPy makes, or raise that it did not fit."""
    try:
        return make(*args)
    except MemoryError as error:
        raise refused(operation, error) from None


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
