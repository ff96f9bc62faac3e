"""Memory on several devices for small host arguments of a program, written at each call.

To place pieces on eight devices costs the runtime more than a small program does. So for each
argument of a program there is memory that its devices read in place, the buffer that shows it, and
a result of the call that read it last: a call takes these out, and puts them back. Where that call
is not over yet, the runtime places the pieces.

Neighbours: `replicas` and `mesh_placement` bring arguments to devices and ask for this.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xjit import jaxlib_gateway as gateway
from xjit.lowering import LoweredProgram

__all__ = ()

Written = dict[int, tuple[Any, Any]]
"""By the number of an argument: its memory on each device, and the buffer that shows it."""


class ArgumentMemory:
    """The memory of the arguments of one program.

    Args:
      lowered: the program.
      devices: where it runs.
    """

    __slots__ = ("_devices", "_has_memory", "_known", "_smallest")

    def __init__(self, lowered: LoweredProgram, devices: tuple[Any, ...]) -> None:
        self._devices = devices
        self._known: dict[int, tuple[Any, Any, Any]] = {}
        donated = (*lowered.donated, *lowered.useless)
        here = devices[0].client.process_index()
        is_seen = bool(lowered.out_avals) and all(d.process_index == here for d in devices)
        self._has_memory = [is_seen and i not in donated for i in lowered.kept]
        self._smallest = smallest_result(lowered)

    def write(self, i: int, pieces: Sequence[np.ndarray[Any, Any]], written: Written) -> Any:
        """Return a buffer of an argument's pieces, noted in `written`; None where there is none."""
        free = self._free(i, pieces[0])
        if free is None:
            return None
        written[i] = memory, buffer = free
        for place, piece in zip(memory, pieces, strict=True):
            place[...] = piece
        return buffer

    def noting(self, written: Written) -> Callable[[list[Any]], None] | None:
        """Return what is to see the results of the call that reads this, None for no reader."""
        return functools.partial(self._note_reader, written) if written else None

    def _note_reader(self, written: Written, outs: list[Any]) -> None:
        for i, (memory, buffer) in written.items():
            self._known[i] = memory, buffer, outs[self._smallest]

    def _free(self, i: int, piece: np.ndarray[Any, Any]) -> Any:
        """Return memory that no program reads and its buffer, or None: the pieces are copied."""
        if not self._has_memory[i]:
            return None
        known = self._known.pop(i, None)
        if known is None:
            found = gateway.pooled_shards(piece.shape, piece.dtype, self._devices)
            self._has_memory[i] = found is not None
            return found
        memory, buffer, reader = known
        if gateway.is_deleted(reader):  # nobody can tell any more whether the program is over
            self._has_memory[i] = False
        elif gateway.is_ready(reader):
            return memory, buffer
        else:
            self._known[i] = known
        return None


def smallest_result(lowered: LoweredProgram) -> int:
    """Return the number of the smallest result of a program, which is the cheapest to keep."""
    sizes = [a.size for a in lowered.out_avals]
    return sizes.index(min(sizes)) if sizes else 0
