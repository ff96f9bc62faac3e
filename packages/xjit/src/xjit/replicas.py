"""The placement of programs that run once on each of several devices, as those of `pmap` do.

Each argument is one buffer spread over the devices, a piece for each; results stay spread, so a
loop of updates never gathers them. A piece of a host array is a view of it; a result of an earlier
program that is cut along the same axis passes as it is.

Neighbours: `placement` says what a placement is, `program` runs; `xpar.pmap` asks for this one.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from xjit import jaxlib_gateway as gateway
from xjit.argument_memory import ArgumentMemory, Written, smallest_result
from xjit.callback_runs import wait_for_callbacks
from xjit.deleted import DeletedBuffer, raise_deleted
from xjit.lowering import LoweredProgram
from xjit.placement import Bring, Placement
from xprim import ConcreteArray, ShapedArray, shaped_array
from xtree.locks import forkable_lock

__all__ = [
    "Axis",
    "Replicas",
    "finish_programs",
    "in_turns",
    "replicas",
    "with_axis",
    "without_axis",
]

__dir__ = __all__.copy

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


class Replicas(Placement):
    """One replica of a program on each device.

    Args:
      axis_name: the name of the axis that runs over the replicas.
      devices: where the replicas run.
      in_axes: for each argument, the axis it is cut along, or None where all get the whole.
      out_axes: for each result, the axis its pieces are stacked along; None takes the first piece.
    """

    __slots__ = ("in_axes", "out_axes")

    def __init__(
        self, axis_name: Hashable, devices: tuple[Any, ...], in_axes: tuple[Axis, ...],
        out_axes: tuple[Axis, ...],
    ) -> None:  # fmt: skip
        super().__init__(devices, {axis_name: len(devices)})
        self.in_axes = in_axes
        self.out_axes = out_axes

    def starter(self, executable: gateway.Executable, lowered: LoweredProgram) -> Any:
        """Return what starts a program; on a CPU, those with collectives take turns."""
        if self.platform != "cpu" or not _COLLECTIVE.search(lowered.body):
            return executable.starter
        return in_turns(executable.starter, lowered)

    def bring(self, lowered: LoweredProgram) -> Bring:
        """Return what brings the arguments of a program to the devices."""
        return _Spread(self, lowered)

    def shardings_of_arguments(self) -> Any:
        """Return the sharding objects of the arguments, where all are cut and results stacked."""
        if None in self.in_axes or None in self.out_axes:
            return None
        return [gateway.stacked(self.devices, axis or 0) for axis in self.in_axes]

    def with_result(self) -> Placement:
        """Return the placement whose programs have one more result first, a scalar of each."""
        ((axis_name, _),) = self.axis_sizes.items()
        return replicas(axis_name, self.devices, self.in_axes, (0, *self.out_axes))

    def constants(self, constants: Sequence[ConcreteArray]) -> list[Any]:
        """Return buffers of what every replica reads."""
        return [gateway.put_replicated(c.to_host(), self.devices) for c in constants]

    def avals(self, of_results: Sequence[ShapedArray]) -> tuple[ShapedArray, ...]:
        """Return the abstract values of whole results, from those of one replica."""
        size = len(self.devices)
        return tuple([
            with_axis(a, axis, size) for a, axis in zip(of_results, self.out_axes, strict=True)
        ])  # fmt: skip

    def shardings(self, avals: Sequence[ShapedArray], executable: gateway.Executable) -> list[Any]:
        """Return the sharding objects of the results."""
        return [gateway.stacked(self.devices, axis or 0) for axis in self.out_axes]

    def results(self, outs: list[Any], avals: Sequence[ShapedArray]) -> list[ConcreteArray]:
        """Return the results of a program as arrays."""
        return [
            ConcreteArray(None, a, gateway.shards(out)[0] if axis is None else out)
            for out, a, axis in zip(outs, avals, self.out_axes, strict=True)
        ]


# One object for each placement, which look-ups compare by identity.
replicas = functools.lru_cache(maxsize=4096)(Replicas)
"""`Replicas`, one object for each placement of the last 4096."""


class _Spread:
    """Spreads the arguments of one program over the devices of its replicas.

    Small host arrays are written to memory that the devices have already.
    """

    __slots__ = ("_axes", "_devices", "_memory", "_stacked")

    def __init__(self, placement: Replicas, lowered: LoweredProgram) -> None:
        devices = self._devices = placement.devices
        self._axes = [placement.in_axes[i] for i in lowered.kept]
        self._stacked = [None if a is None else gateway.stacked(devices, a) for a in self._axes]
        self._memory = ArgumentMemory(lowered, devices)

    def __call__(
        self, arrays: Sequence[ConcreteArray]
    ) -> tuple[list[Any], Callable[[list[Any]], None] | None]:
        """Return the buffers of the arguments, and what notes who reads the memory of theirs."""
        written: Written = {}
        buffers = [self._spread(i, x, written) for i, x in enumerate(arrays)]
        return buffers, self._memory.noting(written)

    def _spread(self, i: int, x: ConcreteArray, written: Written) -> Any:
        """Return the buffer of an argument; memory that is written for it is added."""
        buffer, axis = x.buffer, self._axes[i]
        if type(buffer) is DeletedBuffer:
            raise_deleted(x.aval.str_long(), buffer)
        if axis is None:
            return gateway.put_replicated(x.to_stored(), self._devices)
        if buffer is not None and buffer._sharding is self._stacked[i]:
            return buffer
        pieces = list(np.moveaxis(x.to_stored(), axis, 0))
        found = self._memory.write(i, pieces, written)
        return gateway.put_shards(pieces, self._devices) if found is None else found


_COLLECTIVE = re.compile(r"stablehlo\.(all_|collective_|reduce_scatter)")


class _Turns:
    """Has programs with collectives run one after another on the virtual devices of a CPU.

    The runtime has one thread for each device. A replica that waits for the others keeps its
    thread, so two such programs at once can each hold threads that the other needs, for good.
    """

    __slots__ = ("_calls_python", "_last", "_lock")

    def __init__(self) -> None:
        self._lock = forkable_lock()
        self._last: Any = None  # one result of the last program, spread over all its devices
        self._calls_python = False

    def take(
        self, start: Any, buffers: Any, handlers: Any, kept: int, calls_python: bool
    ) -> list[Any]:
        """Start a program when the last one has ended.

        Args:
          start: starts it.
          buffers: its arguments.
          handlers: of its results.
          kept: the result that the next one waits for.
          calls_python: whether it waits for Python functions.
        """
        with self._lock:
            last = self._last
            if last is not None and (last.is_deleted() or not last.is_ready()):
                if self._calls_python and not last.is_deleted():
                    wait_for_callbacks(last.is_ready)
                with contextlib.suppress(RuntimeError):  # how it ended is told by its results
                    gateway.until_ready(last)
            outs: list[Any] = start(buffers).consume_with_handlers(handlers)
            self._last, self._calls_python = (outs[kept] if outs else None), calls_python
        return outs

    def finish(self) -> None:
        """Wait until the last program has ended."""
        with self._lock:
            if self._last is not None and not gateway.is_deleted(self._last):
                with contextlib.suppress(gateway.RuntimeFailure):
                    gateway.until_ready(self._last)


_turns = _Turns()


def finish_programs() -> None:
    """Wait until the programs that exchange values between virtual devices have ended."""
    _turns.finish()


def in_turns(start: Callable[..., Any], lowered: LoweredProgram) -> Callable[..., Any]:
    """Return what starts a program on the virtual devices of a CPU when the one before is over."""
    smallest, calls_python = smallest_result(lowered), bool(lowered.callbacks)
    return lambda buffers: _Turn(start, buffers, smallest, calls_python)


class _Turn:
    """A program that starts when it is its turn."""

    __slots__ = ("_buffers", "_calls_python", "_smallest", "_start")

    def __init__(
        self, start: Callable[..., Any], buffers: Sequence[Any], smallest: int, calls_python: bool
    ) -> None:
        self._start = start
        self._buffers = buffers
        self._smallest = smallest
        self._calls_python = calls_python

    def consume_with_handlers(self, handlers: Sequence[Any]) -> list[Any]:
        """Start it and return its results.

        The runtime would start it on the devices whose pieces are there: these wait for the others
        for good, and keep their threads from all later programs.
        """
        gateway.check_all_kept(self._buffers)
        return _turns.take(self._start, self._buffers, handlers, self._smallest, self._calls_python)
