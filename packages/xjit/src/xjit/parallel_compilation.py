"""Compile several programs at the same time.

Neighbours: `stages` compiles one.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from xjit.stages import Compiled, Lowered
from xprim.descriptions import described
from xprim.errors import message
from xprim.tracebacks import boundary

__all__ = ["compile_all"]

__dir__ = __all__.copy


@boundary
def compile_all(lowered: Sequence[Lowered], max_workers: int | None = None) -> list[Compiled]:
    """Compile programs in threads: XLA works without Python's lock.

    Args:
      lowered: what `jit(f).lower(...)` returned, of each program.
      max_workers: how many are compiled at a time; None for as many as Python thinks good.

    Returns:
      The compiled programs, in the same order.

    Raises:
      XlaError: one of them cannot be compiled; the first one in order.

    Example:
      >>> import numpy as np
      >>> from xjit import jit
      >>> programs = [jit(f).lower(np.float32(4)) for f in (lambda x: x + 1, lambda x: x * x)]
      >>> [float(p(np.float32(4))) for p in compile_all(programs)]
      [5.0, 16.0]
    """
    for i, one in enumerate(lowered):
        if not isinstance(one, Lowered):
            raise TypeError(message(
                "compile_all", f"program {i} is not lowered.", got=described(one),
                expected="what jit(f).lower(...) returned",
            ))  # fmt: skip
    if not lowered:
        return []
    with ThreadPoolExecutor(max_workers, thread_name_prefix="compile_all") as pool:
        return list(pool.map(Lowered.compile, lowered))
