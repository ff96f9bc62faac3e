"""Which arrays fill the memory, and which lines made them, for the error that it is full.

What a compiled program made has a buffer that knows the line: the program says it once, whatever
the number of its calls. Of other arrays Python's own `tracemalloc` knows it, where it runs.

Neighbours: `memory` makes that error, a compiler asks here what to add to it.
"""

from __future__ import annotations

import _tracemalloc  # `tracemalloc` itself imports pickle
import gc
from collections import Counter

from xprim.array import ConcreteArray
from xprim.memory import bytes_of, in_bytes
from xprim.source import file_name, is_hidden

__all__ = ["SMALL", "largest_arrays"]

__dir__ = __all__.copy

_SHOWN = 5
_FRAMES = 32  # of this library's and NumPy's between an array and the user
SMALL = 1 << 20
"""Arrays of fewer bytes are not named."""


def largest_arrays() -> str:
    """Return a sentence about the arrays that take most memory; "" where all are small.

    It looks at all objects of Python, which takes milliseconds or more.

    Example:
      >>> import numpy as np
      >>> from xprim import from_numpy
      >>> x = from_numpy(np.zeros((1 << 28, 1), np.int8))
      >>> largest_arrays().splitlines()[0].split(";")[0]
      'of the arrays that exist these take most: int8[268435456,1], 268,435,456 bytes (256 MiB)'
    """
    arrays = [x for x in gc.get_objects() if type(x) is ConcreteArray]
    counts = Counter(
        (x.aval.strong(), _line_of(x)) for x in arrays if bytes_of(x.aval) >= SMALL and _is_held(x)
    )
    order = sorted(counts, key=lambda kind: -bytes_of(kind[0]) * counts[kind])[:_SHOWN]
    texts = [
        f"{f'{counts[aval, line]} of ' if counts[aval, line] > 1 else ''}{aval.str_long()}, "
        f"{in_bytes(bytes_of(aval) * counts[aval, line])}{line and f', made at {line}'}"
        for aval, line in order
    ]
    if not texts:
        return ""
    has_all = _tracemalloc.is_tracing() or all(line for _, line in order)
    return f"of the arrays that exist these take most: {'; '.join(texts)}" + (
        "" if has_all else f"\n(python -X tracemalloc={_FRAMES} also shows the other lines)"
    )


def _line_of(x: ConcreteArray) -> str:
    """Return the user's line that made an array, "" where nobody knows."""
    line: str = getattr(getattr(x.buffer, "aval", None), "made_at", "")
    if line or not _tracemalloc.is_tracing():
        return line
    frames = _tracemalloc._get_object_traceback(x)  # (name of the file, line), innermost first
    users = ((name, number) for name, number in frames or () if not is_hidden(name))
    return next((f"{file_name(name)}:{number}" for name, number in users), "")


def _is_held(x: ConcreteArray) -> bool:
    """Whether an array has memory: it is computed, and neither deleted nor failed."""
    if x.host is not None:
        return True
    buffer = x.buffer
    try:
        if buffer is None or buffer.is_deleted() or not buffer.is_ready():
            return False
        buffer.block_until_ready()
    except Exception:  # what stands for a buffer that is gone, or one that failed
        return False
    return True
