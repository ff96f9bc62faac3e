"""Which arrays fill the memory, for the error that it is full.

Neighbours: `memory` makes that error, a compiler asks here what to add to it.
"""

from __future__ import annotations

import gc
from collections import Counter

from xprim.array import ConcreteArray
from xprim.memory import bytes_of, in_bytes

__all__ = ["largest_arrays"]

__dir__ = __all__.copy

_SHOWN = 5
_SMALL = 1 << 20


def largest_arrays() -> str:
    """Return a sentence about the arrays that take most memory; "" where all are small.

    It looks at all objects of Python, which takes milliseconds or more.

    Example:
      >>> import numpy as np
      >>> from xprim import from_numpy
      >>> x = from_numpy(np.zeros((1 << 28, 1), np.int8))
      >>> largest_arrays().split(";")[0]
      'of the arrays that exist these take most: int8[268435456,1], 268,435,456 bytes (256 MiB)'
    """
    arrays = [x for x in gc.get_objects() if type(x) is ConcreteArray]
    counts = Counter(x.aval.strong() for x in arrays if bytes_of(x.aval) >= _SMALL and _is_held(x))
    order = sorted(counts, key=lambda aval: -bytes_of(aval) * counts[aval])[:_SHOWN]
    texts = [
        f"{f'{counts[aval]} of ' if counts[aval] > 1 else ''}{aval.str_long()}, "
        f"{in_bytes(bytes_of(aval) * counts[aval])}"
        for aval in order
    ]
    return f"of the arrays that exist these take most: {'; '.join(texts)}" if texts else ""


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
