"""Run a program once on each of several devices: what `pmap` compiles to.

A `ReplicatedProgram` is compiled for as many replicas as there are devices. Each argument is one
buffer spread over the devices, a piece for each; results stay spread, so a loop of updates never
gathers them. A piece of a host array is a view of it; a result of an earlier program that is cut
along the same axis passes as it is.

Neighbours: `pmap` takes calls apart, `pmap_primitive` has the rules of a call.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xjit import jaxlib_gateway as gateway
from xjit.lowering import lower
from xjit.placement import Gone, give_up, raise_gone
from xprim import ClosedJaxpr, ConcreteArray, ShapedArray, shaped_array
from xtree.locks import forkable_lock

Devices = tuple[Any, ...]
Axis = int | None


def with_axis(aval: ShapedArray, axis: Axis, size: int) -> ShapedArray:
    """Return the type of an array whose pieces along `axis` have the type `aval`."""
    if axis is None:
        return aval
    return shaped_array((*aval.shape[:axis], size, *aval.shape[axis:]), aval.dtype, aval.weak_type)


def without_axis(aval: ShapedArray, axis: Axis) -> ShapedArray:
    """Return the type of a piece of an array along `axis`."""
    if axis is None:
        return aval
    shape = aval.shape[:axis] + aval.shape[axis + 1 :]
    return shaped_array(shape, aval.dtype, aval.weak_type)


_COLLECTIVE = re.compile(r"stablehlo\.(all_|collective_|reduce_scatter)")


class _Turns:
    """Has programs with collectives run one after another on the virtual devices of a CPU.

    The runtime has one thread for each device. A replica that waits for the others keeps its
    thread, so two such programs at once can each hold threads that the other needs, for good.
    """

    __slots__ = ("_last", "_lock")

    def __init__(self) -> None:
        self._lock = forkable_lock()
        self._last: Any = None  # one result of the last program, spread over all its devices

    def take(self, start: Callable[[], list[Any]], kept: int) -> list[Any]:
        """Start a program when the last one has ended; `kept` is the result to wait for next."""
        with self._lock:
            if self._last is not None:
                with contextlib.suppress(RuntimeError):  # how it ended is told by its results
                    self._last.block_until_ready()
            outs = start()
            self._last = outs[kept] if outs else None
        return outs


_turns = _Turns()


class ReplicatedProgram:
    """A closed jaxpr, compiled for one replica on each device.

    Args:
      closed: the program of one replica.
      name: of the function it comes from.
      axis_sizes: the named axis and its size, the number of devices.
      devices: where the replicas run.
      in_axes: for each argument, the axis it is cut along, or None where all get the whole.
      out_axes: for each result, the axis its pieces are stacked along; None takes the first piece.
      donated: for each argument, whether its memory may be reused.
    """

    __slots__ = (
        "_cells", "_constants", "_donated", "_executable", "_handlers", "_has_cell", "_in_axes",
        "_kept", "_out_avals", "_out_axes", "_smallest", "_takes_turns", "devices", "name",
    )  # fmt: skip

    def __init__(
        self,
        closed: ClosedJaxpr,
        name: str,
        axis_sizes: dict[Any, int],
        devices: Devices,
        in_axes: Sequence[Axis],
        out_axes: Sequence[Axis],
        donated: Sequence[bool],
    ) -> None:
        lowered = lower(
            closed, name=name, donated=donated, platform=devices[0].platform, axis_sizes=axis_sizes
        )
        self.name = name
        self.devices = devices
        self._kept = lowered.kept
        self._in_axes = in_axes
        self._out_axes = out_axes
        self._donated = [i for i, d in enumerate(donated) if d]
        self._out_avals = [
            with_axis(a, axis, len(devices))
            for a, axis in zip(closed.out_avals, out_axes, strict=True)
        ]
        self._executable = gateway.compile_program(
            lowered.text, devices, num_replicas=len(devices), outputs=lowered.out_avals
        )
        # For arguments from the host, by position: memory, the buffer that shows it, and a result
        # of the program that read it last. A call takes a cell out, and puts it back.
        self._cells: dict[int, tuple[Any, Any, Any]] = {}
        self._has_cell = [bool(self._out_avals) and not d for d in donated]
        sizes = [a.size for a in self._out_avals]
        self._smallest = sizes.index(min(sizes)) if sizes else 0
        self._takes_turns = (
            devices[0].platform == "cpu" and _COLLECTIVE.search(lowered.text) is not None
        )
        self._handlers = self._executable.handlers_at(
            [gateway.stacked(devices, axis or 0) for axis in out_axes], name
        )
        self._constants = [self._repeated(c.to_host()) for c in lowered.constants]

    def __call__(self, arrays: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        """Start the program and return its results, which may still be in the making."""
        written: dict[int, Any] = {}
        buffers = [self._spread(i, arrays[i], written) for i in self._kept]
        if self._takes_turns:
            outs = _turns.take(lambda: self._start(buffers), self._smallest)
        else:
            outs = self._start(buffers)
        for i, cell in written.items():
            self._cells[i] = (*cell, outs[self._smallest])
        for i in self._donated:
            give_up(arrays[i], Gone(f"was donated to {self.name}"))
        return [
            ConcreteArray(None, aval, out) if axis is not None else self._first(out, aval)
            for out, aval, axis in zip(outs, self._out_avals, self._out_axes, strict=True)
        ]

    def _start(self, buffers: Sequence[Any]) -> list[Any]:
        try:
            outs: list[Any] = self._executable.starter(
                [*self._constants, *buffers]
            ).consume_with_handlers(self._handlers)
        except gateway.RuntimeFailure as error:
            gateway.fail(self.name, "the program could not be started", error)
        return outs

    def hlo_text(self) -> str:
        """Return the optimised program in XLA's own notation."""
        return self._executable.hlo_text()

    def _first(self, out: Any, aval: ShapedArray) -> ConcreteArray:
        return ConcreteArray(None, aval, gateway.shards(out)[0])

    def _spread(self, i: int, x: ConcreteArray, written: dict[int, Any]) -> Any:
        """Return the buffer of an argument; cells that were written for it are added."""
        buffer, axis = x._buffer, self._in_axes[i]
        if type(buffer) is Gone:
            raise_gone(x.aval.str_long(), buffer)
        if axis is None:
            return self._repeated(x.to_host())
        if buffer is not None and buffer._sharding is gateway.stacked(self.devices, axis):
            return buffer
        pieces = list(np.moveaxis(x.to_host(), axis, 0))
        cell = self._free_cell(i, pieces[0])
        if cell is None:
            return gateway.put_pieces(pieces, self.devices)
        written[i] = memory, buffer = cell
        for place, piece in zip(memory, pieces, strict=True):
            place[...] = piece
        return buffer

    def _free_cell(self, i: int, piece: np.ndarray[Any, Any]) -> Any:
        """Return a cell for an argument that no program reads, or None: the pieces are copied."""
        if not self._has_cell[i]:
            return None
        cell = self._cells.pop(i, None)
        if cell is None:
            found = gateway.pieces_cell(piece.shape, piece.dtype, self.devices)
            self._has_cell[i] = found is not None
            return found
        memory, buffer, reader = cell
        if gateway.is_deleted(reader):  # nobody can tell any more whether the program is over
            self._has_cell[i] = False
        elif gateway.is_ready(reader):
            return memory, buffer
        else:
            self._cells[i] = cell
        return None

    def _repeated(self, host: np.ndarray[Any, Any]) -> Any:
        return gateway.put_everywhere(host, self.devices)
