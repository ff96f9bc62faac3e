"""Compiled programs, and their executables at placements.

What: `Program`, a closed jaxpr that is lowered and compiled when it is first called, and
`DeviceKernel`, its executable form at one placement.
Idea: what differs between one device, replicas and shardings is said by the placement alone, so
`jit` and `pmap` run the same program class. `program_of` keeps a jaxpr's program in its memo, where
it dies with the jaxpr.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import xprim
import xtree
from xjit import jaxlib_gateway as gateway
from xjit.callbacks.primitive import run_and_wait
from xjit.debug.monitoring import LOWERED, record_event_duration_secs
from xjit.dispatch.fast_path import DeletedBuffer, finisher, give_up
from xjit.dispatch.placement import (
    OneDevice,
    Placement,
    base_of,
    default_placement,
    orders_at,
    placement_in_orders,
)
from xjit.dispatch.placement_inference import (
    are_concrete,
    common_placement,
    device_named_in,
    make_mesh_placement,
    mesh_named_by,
    of_arrays,
    placement_for,
)
from xjit.dispatch.sharded_arrays import in_typed_memory
from xjit.lowering.compile import Options, executable_for, finish, split_options
from xjit.lowering.modules import LoweredProgram, lower, warn_of_useless_donations
from xjit.sharding.layouts import RequestedOrder
from xjit.sharding.meshes import Mesh, current_mesh
from xjit.sharding.shardings import Sharding
from xjit.sharding.typed import shardings_of_results
from xjit.xla_workarounds.fusion import keep_barriers
from xprim import EAGER_ON_HOST, ClosedJaxpr, ConcreteArray, config, eval_closed, from_stored, state
from xprim.array import is_shared
from xprim.avals import MemorySpace
from xprim.eager import SMALL
from xprim.errors import XStackRuntimeError, message
from xprim.key_uses import Used, marks_of
from xprim.memory import bytes_of
from xprim.source import describe
from xprim.strict_options import execution_refused, no_execution
from xtree.namespaces import CollectorPause

__all__ = ["DeviceKernel", "Program", "program_of"]

__dir__ = __all__.copy

# Bytes of results on one device: more are hardly there, and what uses them would be blamed for it.
_MOST_UNAWAITED = 1 << 37


class DonatedTwiceError(XStackRuntimeError, ValueError):
    """A donated array is passed twice, and one of the two would be read after it is given away."""


class DeviceKernel:
    """The executable form of a program at a placement.

    Args:
      program: what was compiled.
      placement: where it runs.
      lowered: its text.
      in_full: whether it is compiled with all effort at once, whatever the options say.

    Attributes:
      kept: the numbers of the arguments that the executable takes.
      donated: the numbers of the arguments whose memory a result takes.
      avals_out: the abstract values of the results.
    """

    __slots__ = ("__weakref__", "_arg_names", "_bring", "_calls_python", "_closed",
                 "_constants", "_entry", "_is_awaited", "_leaves_on_host", "_num_arguments",
                 "_results", "donated", "executable", "handlers", "kept", "name", "avals_out",
                 "placement", "start")  # fmt: skip

    def __init__(
        self, program: Program, placement: Placement, lowered: LoweredProgram, in_full: bool
    ) -> None:
        self.name = program.name
        self.placement = placement
        self._closed = None if program.is_loaded else program.closed
        self.kept = lowered.kept
        self.donated = lowered.donated
        self.avals_out = placement.avals(program.closed.out_avals)
        self.executable = executable_for(
            lowered,
            placement,
            keep_barriers(program.options, self._closed, lowered.body, placement.platform),
            None if in_full else program.own_options,
            self._closed,
        )
        placement = self.placement = placement.settle(self.executable, lowered)
        self._results = placement.results
        self._leaves_on_host = any(a.memory_space is MemorySpace.Host for a in self.avals_out)
        if self._leaves_on_host:
            self._results = lambda outs, avals: in_typed_memory(placement.results(outs, avals))
        self.handlers = self.executable.handlers_at(
            placement.shardings(self.avals_out, self.executable), program.name,
            () if self._closed is None else _lines_of_results(self._closed, self.avals_out),
        )  # fmt: skip
        self.start: Callable[..., Any] = placement.starter(self.executable, lowered)
        self._calls_python = bool(lowered.callbacks)
        pieces = len(placement.devices) if placement.is_split else 1
        self._is_awaited = sum(map(bytes_of, self.avals_out)) > _MOST_UNAWAITED * pieces
        if self._calls_python and not lowered.out_avals:
            self.start = self.executable.start  # its token tells when it is over
        self._entry: tuple[Any, tuple[Any, ...] | None] | None = None  # of the last tree of results
        self._arg_names = program.arg_names
        self._num_arguments = len(program.closed.in_avals)
        self._bring = placement.bring(lowered)
        self._constants = placement.constants(lowered.constants)
        gateway.startable(self)

    def call(self, arrays: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        """Start the program and return its results, which may still be in the making."""
        if state.trace is EAGER_ON_HOST:
            return self._on_host(arrays)
        if no_execution.used and no_execution.value:
            raise execution_refused(self.name)
        kept = self.kept
        if self.donated:
            self._check_passed_once(arrays)
        used = arrays if len(kept) == len(arrays) else [arrays[i] for i in kept]
        buffers, note_results = self._bring(used)
        operands = [*self._constants, *buffers]
        try:
            if self._calls_python:
                outs = run_and_wait(self.start, operands, self.handlers)
            else:
                outs = self.start(operands).consume_with_handlers(self.handlers)
        except gateway.RuntimeFailure as error:
            _raise_not_started(self.name, buffers, error)
        if self._is_awaited:
            for out in outs:
                gateway.block_until_ready(out)
        if note_results is not None:
            note_results(outs)
        for i in self.donated:
            give_up(arrays[i], DeletedBuffer(f"was donated to {self.name}"))
        return self._results(outs, self.avals_out)

    def _on_host(self, arrays: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        """Compute the results with NumPy, where a callback asks for them."""
        if self._closed is None:
            raise RuntimeError(message(
                self.name, "a callback cannot start a compiled program that was stored.",
                hint="call it outside of the callback",
            ))  # fmt: skip
        if not isinstance(base_of(self.placement), OneDevice):
            raise RuntimeError(message(
                self.name, "a callback cannot start a program on several devices, whose threads "
                "may wait for the callback.", hint="call it outside of the callback",
            ))  # fmt: skip
        return eval_closed(self._closed, *arrays)

    @property
    def starter(self) -> Callable[[Sequence[Any]], Any]:
        """A function from the buffers of all arguments that starts the program."""
        start, constants, kept = self.start, self._constants, self.kept
        if self.donated and not isinstance(base_of(self.placement), OneDevice):
            start = _of_different_buffers(start)
        if len(kept) == self._num_arguments:
            if not constants:
                return start
            return lambda buffers: start([*constants, *buffers])
        return lambda buffers: start([*constants, *[buffers[i] for i in kept]])

    def entry(self, out_tree: Any, keys: Used) -> tuple[Any, ...] | None:
        """Return what a dispatcher keeps to start this by itself, None where it cannot.

        It gives up all leaves of a donated argument.

        Args:
          out_tree: the structure of the result.
          keys: the random keys among the arguments that the program uses.
        """
        known = self._entry
        if known is None or known[0] is not out_tree:
            known = self._entry = (out_tree, self._new_entry(out_tree))
        return None if known[1] is None else (*known[1], marks_of(keys))

    def _new_entry(self, out_tree: Any) -> tuple[Any, ...] | None:
        shardings = self.placement.shardings_of_arguments()
        if shardings is None or self._calls_python or self._is_awaited or self._leaves_on_host:
            # somebody has to wait for its end, or to copy a result
            return None
        out_aval = self.avals_out[0] if out_tree.node_data() is None else None
        return (shardings, self.starter, self.handlers, out_aval,
                finisher(out_tree, self.avals_out))  # fmt: skip

    def call_for_user(self, given: Any, arrays: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        """Start the program, on copies of donated arrays that came from host values or are shared.

        `array(0, "float32")` returns one object for equal numbers (`is_shared`), which two leaves
        of a donated state may hold, and which must not lose its value.

        Args:
          given: a tree of what the user passed.
          arrays: the leaves as arrays.
        """
        if not self.donated:
            return self.call(arrays)
        known = {id(x) for x in xtree.leaves(given)}
        return self.call([
            from_stored(x.to_stored().copy(), x.aval)
            if i in self.donated and (id(x) not in known or is_shared(x))
            else x
            for i, x in enumerate(arrays)
        ])  # fmt: skip

    def _check_passed_once(self, arrays: Sequence[ConcreteArray]) -> None:
        """Raise for a donated array that is passed twice."""
        seen: dict[int, int] = {}
        for i, x in enumerate(arrays):
            first = seen.setdefault(id(x), i)
            if first != i and (i in self.donated or first in self.donated):
                names = self._arg_names()
                one, two = (names[k] if k < len(names) else f"argument {k}" for k in (first, i))
                raise DonatedTwiceError(message(
                    self.name, f"an array is donated and passed twice: as {one} and {two}.",
                    hint="pass a copy, or leave it out of donate_argnums",
                ))  # fmt: skip


def _lines_of_results(closed: ClosedJaxpr, avals: Sequence[xprim.ShapedArray]) -> Sequence[str]:
    """Return the user's lines that make the large results, "" for the others; () for none."""
    if all(bytes_of(aval) < SMALL for aval in avals):
        return ()
    source_by_result: dict[Any, Any] = {
        var: eqn.source for eqn in closed.eqns for var in eqn.outputs
    }
    return [
        "" if bytes_of(aval) < SMALL else describe(source_by_result.get(atom))
        for atom, aval in zip(closed.jaxpr.outvars, avals, strict=True)
    ]


class Program:
    """A closed jaxpr and its executables.

    Args:
      closed: the program; of one replica, where there are several.
      name: of the function it comes from.
      donated: for each argument, whether a result may take its memory.
      keep_unused: whether arguments that nothing needs are passed on.
      placement: where it runs, whatever its arguments say; None asks them.
      arg_names: returns the key paths of the arguments, for errors.
      options: settings of XLA by name, and `first_compile_level`.
      in_shardings: for each argument its sharding, None leaves it; nothing at all for none.
      out_shardings: likewise for the results.
      in_layouts: for each argument the order in which it shall lie, `AUTO`, or None for any;
        nothing at all for none.
      out_layouts: likewise for the results, of which None is for the order of NumPy.
      on_mesh: whether it runs on the context mesh where no argument was put anywhere.
    """

    __slots__ = (
        "_donated", "_donors", "_lowered", "_settled", "arg_names", "checked", "closed",
        "in_layouts", "in_shardings", "is_loaded", "keep_unused", "kernels", "name", "on_mesh",
        "options", "out_layouts", "out_shardings", "own_options", "placement",
    )  # fmt: skip

    def __init__(
        self,
        closed: ClosedJaxpr,
        name: str,
        *,
        donated: Sequence[bool] = (),
        keep_unused: bool = False,
        placement: Placement | None = None,
        arg_names: Callable[[], Sequence[str]] = tuple,
        options: Options | None = None,
        in_shardings: Sequence[Sharding | None] = (),
        out_shardings: Sequence[Sharding | None] = (),
        in_layouts: Sequence[RequestedOrder] = (),
        out_layouts: Sequence[RequestedOrder] = (),
        on_mesh: bool = False,
    ) -> None:
        self.on_mesh = on_mesh
        self.in_layouts = in_layouts
        self.out_layouts = out_layouts
        self.closed = closed
        self.name = name
        self._donated = tuple(donated)
        self._donors: dict[int, weakref.ref[Any]] = {}
        self.keep_unused = keep_unused
        self.placement = placement
        self.arg_names = arg_names
        self.options, self.own_options = split_options(options)
        self.in_shardings = in_shardings
        self.out_shardings = out_shardings
        self.kernels: dict[Placement, DeviceKernel] = {}
        self.checked: dict[Any, Program] = {}  # the same with checks, by what these look for
        self._settled: DeviceKernel | None = None
        self.is_loaded = False
        self._lowered: dict[Any, LoweredProgram] = {}

    @property
    def donation(self) -> tuple[bool, ...]:
        """For each argument, whether a result may take its memory."""
        return self._donated

    @property
    def donated(self) -> tuple[int, ...]:
        """The numbers of the arguments whose memory is offered to the results."""
        return tuple([i for i, donated in enumerate(self._donated) if donated])

    def add_donor(self, fun: Callable[..., Any], name: str) -> None:
        """Warn another function of the same code of donations that no result can use.

        The first one is warned where the program is lowered.

        Args:
          fun: a function whose calls run the program.
          name: of the function.
        """
        known = self._donors.get(id(fun))
        if known is not None and known() is fun:
            return
        donors, key = self._donors, id(fun)
        try:
            donors[key] = weakref.ref(fun, lambda _: donors.pop(key, None))
        except TypeError:  # an object without weak references: it would be warned at each call
            return
        for lowered in self._lowered.values():
            warn_of_useless_donations(name, lowered, self.arg_names)

    def with_options(self, options: Options) -> Program:
        """Return the same program, to be compiled with other settings of XLA."""
        return Program(
            self.closed, self.name, donated=self._donated, keep_unused=self.keep_unused,
            placement=self.placement, arg_names=self.arg_names,
            options={**self.own_options, **options}, in_shardings=self.in_shardings,
            out_shardings=self.out_shardings, in_layouts=self.in_layouts,
            out_layouts=self.out_layouts, on_mesh=self.on_mesh,
        )  # fmt: skip

    def with_result(self, closed: ClosedJaxpr) -> Program:
        """Return the program for a closed jaxpr that differs by one more result, a scalar, first.

        Args:
          closed: the program.
        """
        return Program(
            closed, self.name, donated=self._donated, keep_unused=self.keep_unused,
            placement=self.placement and self.placement.with_result(), arg_names=self.arg_names,
            options={**self.own_options, **self.options}, in_shardings=self.in_shardings,
            out_shardings=(None, *self.out_shardings) if self.out_shardings else (),
            in_layouts=self.in_layouts,
            out_layouts=(None, *self.out_layouts) if self.out_layouts else (),
            on_mesh=self.on_mesh,
        )  # fmt: skip

    def hold(self, lowered: LoweredProgram, placement: Placement) -> None:
        """Take a text that was written in another process, where nothing is known of equations."""
        self.is_loaded = True
        platform = gateway.lowering_platform(lowered.platform)
        self._lowered[self._key_of_text(placement, platform)] = lowered

    def _key_of_text(self, placement: Placement, platform: str) -> tuple[Any, ...]:
        where = base_of(placement) if placement.is_split else None
        return (platform, where, *orders_at(placement), *placement.axis_sizes.items())

    def lower(self, placement: Placement, platform: str | None = None) -> LoweredProgram:
        """Return the text of the program for a placement, or for another platform than it has."""
        platform = gateway.lowering_platform(platform or placement.platform)
        key = self._key_of_text(placement, platform)
        found = self._lowered.get(key)
        if found is None:
            start = time.perf_counter()
            with CollectorPause():
                found = self._lowered[key] = lower(
                    self.closed, name=self.name, donated=self._donated,
                    keep_unused=self.keep_unused, platform=platform,
                    axis_sizes=placement.axis_sizes,
                    devices=placement.devices if placement.is_split else (),
                    in_shardings=placement.in_shardings, out_shardings=placement.out_shardings,
                    layouts=orders_at(placement), is_users=self.on_mesh,
                )  # fmt: skip
            seconds = time.perf_counter() - start
            record_event_duration_secs(LOWERED, seconds, fun_name=self.name)
            warn_of_useless_donations(self.name, found, self.arg_names)
        return found

    def kernel(
        self, placement: Placement, lowered: LoweredProgram | None = None, *, in_full: bool = False
    ) -> DeviceKernel:
        """Return the executable form at a placement, compiled when it is not there yet.

        Args:
          placement: where it runs.
          lowered: its text, where that is written already.
          in_full: whether it is compiled with all effort at once, whatever the options say.
        """
        found = self.kernels.get(placement)
        if found is None:
            platform = gateway.lowering_platform(placement.platform)
            if lowered is None or lowered.platform != platform:
                lowered = self.lower(placement)
            found = self.kernels[placement] = DeviceKernel(self, placement, lowered, in_full)
        if in_full:
            finish(found.executable)
        return found

    def kernel_for(self, arrays: Sequence[ConcreteArray]) -> DeviceKernel:
        """Return the executable form for arguments, at their placement if the program has none."""
        if gateway.orders_used[0]:
            return self.kernel(placement_in_orders(self, self._placement_for(arrays), arrays))
        if self.placement is not None:
            return self.kernel(self.placement)
        if self._settled is not None:
            return self._settled
        found = self.kernel(self._placement_for(arrays))
        requested = self.in_shardings
        if len(requested) == len(arrays) and are_concrete((*requested, *self._out_shardings())):
            self._settled = found  # whatever the arguments are, and whatever mesh is set
        return found

    def _out_shardings(self) -> Sequence[Sharding | None]:
        """Return the shardings of the results, as requested or by their types."""
        return self.out_shardings or shardings_of_results(self.closed)

    def _placement_for(self, arrays: Sequence[ConcreteArray]) -> Placement:
        """Return where a call on these arguments runs."""
        if self.placement is not None:
            return self.placement
        mesh = mesh_named_by(self.closed, lambda: of_arrays(arrays))
        outs = self._out_shardings()
        on_device = device_named_in(
            self.closed, self.name, mesh,
            lambda: [*self.in_shardings, *outs, *of_arrays(arrays)],
        )  # fmt: skip
        if on_device is not None:
            return on_device
        if mesh is None and not any(self.in_shardings) and not any(outs):
            found_by_arguments = common_placement(arrays, self.name, self.arg_names)
            mesh = self._mesh_set()
            if mesh is None or found_by_arguments is not default_placement():
                return found_by_arguments
        return placement_for(
            arrays,
            self.name,
            self.arg_names,
            in_shardings=self.in_shardings,
            out_shardings=outs,
            mesh=mesh,
        )

    def placement_ahead(self, shardings: Sequence[Sharding | None]) -> Placement:
        """Return where a call will run whose arguments lie so, None for those that follow."""
        if self.placement is not None:
            return self.placement
        mesh = mesh_named_by(self.closed, lambda: shardings)
        requested = self.in_shardings or [None] * len(shardings)
        given = [a or s for a, s in zip(requested, shardings, strict=True)]
        outs = self.out_shardings or shardings_of_results(self.closed)
        on_device = device_named_in(self.closed, self.name, mesh, lambda: [*given, *outs])
        if on_device is not None:
            return on_device
        if mesh is None and not any(given) and not any(outs):
            mesh = self._mesh_set()
            if mesh is None:
                return default_placement()
        return make_mesh_placement(given, outs, mesh, self._raise_other_devices)

    def _mesh_set(self) -> Mesh | None:
        """Return the context mesh, where the program runs on it."""
        return current_mesh.value if self.on_mesh else None

    def _raise_other_devices(self, i: int) -> NoReturn:
        names = self.arg_names()
        what = "a result" if i < 0 else names[i] if i < len(names) else f"argument {i}"
        raise ValueError(message(
            self.name, "the shardings are over different devices.", got=f"that of {what}",
        ))  # fmt: skip

    def call(self, arrays: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        """Start the program and return its results, which may still be in the making."""
        if state.trace is EAGER_ON_HOST and isinstance(self.placement, OneDevice | None):
            return eval_closed(self.closed, *arrays)
        return self.kernel_for(arrays).call(arrays)


def _raise_not_started(name: str, buffers: Sequence[Any], error: Exception) -> NoReturn:
    for buffer in buffers:
        gateway.check_kept(buffer)
    gateway.explain_failure(error)
    gateway.fail(name, "the program could not be started", error)


def _of_different_buffers(start: Callable[..., Any]) -> Callable[..., Any]:
    """Return what leaves a buffer that is passed twice to the long way, which says what is wrong.

    Where it is donated to several replicas, the runtime of jaxlib 0.10 would end the process.
    """

    def start_unless_twice(buffers: Sequence[Any]) -> Any:
        if len(set(map(id, buffers))) < len(buffers):
            raise TypeError("a buffer is passed twice")
        return start(buffers)

    return start_unless_twice


def program_of(
    closed: ClosedJaxpr, name: str, placement: Placement | None = None,
    donated: tuple[bool, ...] = (), options: tuple[tuple[str, Any], ...] = (),
) -> Program:  # fmt: skip
    """Return the program of a closed jaxpr, kept in its memo.

    Args:
      closed: the program.
      name: for the errors of the first that asks.
      placement: as for `Program`.
      donated: as for `Program`.
      options: settings of the compiler, by name.
    """
    key = ("program", placement, donated, options, config.trace_context())
    found = closed.memo.get(key)
    if found is None:
        found = closed.memo[key] = Program(
            closed, name, placement=placement, donated=donated, options=dict(options)
        )
    return found
