"""The stages of compiling ahead of time: `Traced`, `Lowered`, `Compiled`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import (
    Any,
    Concatenate,
    NoReturn,
    ParamSpec,
    Protocol,
    TypeVar,
    overload,
    runtime_checkable,
)

import xtree
from xjit import jaxlib_gateway as gateway
from xjit.cache.functions import RefsOfProgram, one_at_a_time
from xjit.checks import call_and_check, look_at_results
from xjit.dispatch.arguments import Arguments, parameters_named
from xjit.dispatch.fast_path import DeletedBuffer, Dispatcher
from xjit.dispatch.placement import (
    Bring,
    OneDevice,
    Placement,
    base_of,
    check_orders,
    committed_to,
    in_orders_ahead,
    in_orders_of,
    move_results,
    orders_in,
    orders_out,
)
from xjit.dispatch.placement_inference import common_placement
from xjit.dispatch.program import DeviceKernel, Program
from xjit.lowering.modules import LoweredProgram, program_text, source_locations
from xjit.sharding.layouts import format_of
from xjit.sharding.meshes import AbstractMesh, Mesh, ProgramOfThisProcess, stage_html
from xjit.sharding.shardings import (
    NamedSharding,
    NoMeshError,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    abstract_mesh_within,
)
from xjit.sharding.typed import describe_results
from xprim import ClosedJaxpr, ConcreteArray, ShapedArray, Tracer, config
from xprim.errors import message
from xprim.key_uses import Used, note_call
from xprim.requirements import require
from xprim.sharded_types import whole
from xprim.strict_options import results_are_checked
from xprim.tracebacks import shorten
from xprim.typing import PyTree
from xtree.namespaces import late_import
from xtree.records import Record

__all__ = [
    "Unplaced", "place_ahead", "Wrapped", "ArgInfo", "TracedFunction", "Traced", "Lowered",
    "Compiled", "CompilerOptions", "MemoryAnalysis",
]  # fmt: skip

__dir__ = __all__.copy

_stored_programs = late_import("xjit.stored_programs", "few programs are stored by the user")


# -------------------------------------------------------------------------------------- unplaced
# The placement of programs that are only written: over meshes without devices here.
#
# Devices are numbers there, as in stored programs, so the text is that for any devices of the
# mesh.


class Unplaced(Placement):
    """A program over a mesh without devices.

    Args:
      mesh: the mesh.
      in_shardings: for each argument, its sharding; None has it whole on each device.
      out_shardings: for each result, its sharding; None leaves that to XLA.
    """

    __slots__ = ("_mesh",)
    is_split = True

    def __init__(
        self, mesh: Mesh | AbstractMesh, in_shardings: Sequence[Sharding | None],
        out_shardings: Sequence[Sharding | None],
    ) -> None:  # fmt: skip
        super().__init__(tuple(range(mesh.size)), num_partitions=mesh.size)
        self._mesh = mesh
        everywhere = NamedSharding(mesh, PartitionSpec())
        self.in_shardings = tuple([s or everywhere for s in in_shardings])
        self.out_shardings = tuple(out_shardings)

    def _refuse(self) -> NoReturn:
        raise NoMeshError(message(
            "compile", "the program is over a mesh without devices.", got=repr(self._mesh),
            hint="lower and compile it inside `with set_mesh(mesh):`; export stores it as it is",
        ))  # fmt: skip

    @property
    def platform(self) -> str:
        """Raise: nothing is known of the devices."""
        self._refuse()

    def bring(self, lowered: LoweredProgram) -> Bring:
        """Raise: there are no devices."""
        self._refuse()

    def constants(self, constants: Sequence[ConcreteArray]) -> list[Any]:
        """Raise: there are no devices."""
        self._refuse()

    def shardings(self, avals: Sequence[ShapedArray], executable: gateway.Executable) -> list[Any]:
        """Raise: there are no devices."""
        self._refuse()


def place_ahead(
    program: Program, shardings: Sequence[Sharding | None], platform: str | None,
    orders: Sequence[gateway.Order] = (), devices: Sequence[Any] = (),
) -> tuple[Placement, str]:  # fmt: skip
    """Return the placement of a program that is lowered, and the platform it is written for.

    Args:
      program: the program.
      shardings: for each argument, how its description says that it lies, or None.
      platform: the one that was requested; without it, that on which the program will run.
      orders: for each argument, in which order its description says that it lies, or None.
      devices: for each argument, the one device that it was put on, or None.

    Raises:
      ValueError: arguments were put on different devices.
      NoMeshError: it is over a mesh without devices, and no platform was requested.
    """
    placement: Placement
    try:
        base = _on_device_chosen(program, program.placement_ahead(shardings), devices)
        placement = in_orders_ahead(program, base, orders)
    except NoMeshError:
        mesh, given = _mesh_of(program, shardings)
        if platform is None or mesh is None:
            raise
        placement = Unplaced(mesh, given, program.out_shardings)
        return placement, gateway.lowering_platform(platform)
    if platform is None:
        return placement, gateway.lowering_platform(placement.platform)
    return placement, gateway.lowering_platform(platform)


def _on_device_chosen(program: Program, base: Placement, devices: Sequence[Any]) -> Placement:
    """Return the placement of a program that may be anywhere: the device of its arguments."""
    is_free = program.placement is None and isinstance(base, OneDevice)
    chosen = dict.fromkeys([d for d in devices if d is not None]) if is_free else {}
    if len(chosen) > 1:
        raise ValueError(message(
            "Received incompatible devices for jitted computation",
            f"those of the arguments of {program.name}.",
            got=", ".join(map(str, chosen)), hint="bring them together with device_put(x, device)",
        ))  # fmt: skip
    return committed_to(next(iter(chosen))) if chosen else base


def _mesh_of(program: Program, shardings: Sequence[Sharding | None]) -> Any:
    """Return the mesh that a program names, None for none, and the shardings of its arguments."""
    requested = program.in_shardings or [None] * len(shardings)
    given = [a or s for a, s in zip(requested, shardings, strict=True)]
    named = [s.mesh for s in (*given, *program.out_shardings) if isinstance(s, NamedSharding)]
    return abstract_mesh_within(program.closed) or next(iter(named), None), given


# ---------------------------------------------------------------------------------------- stages
# The stages of compiling ahead of time: `Traced`, `Lowered`, `Compiled`.
#
#     jit(f).trace(*args)   the jaxpr           .lower()
#           .lower(*args)   the StableHLO text  .compile()
#                           the executable      called with arguments of those shapes
#
# Arguments may be arrays or anything with a shape and a dtype. `Wrapped` is the type of what
# `jit` returns.

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R", covariant=True)
S = TypeVar("S")


@runtime_checkable
class Wrapped(Protocol[P, R]):
    """A function that `jit` returned, with the parameters and the result of the one it was given.

    The stages take shapes and dtypes in place of arrays, so their arguments may be of any type.
    """

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the compiled function."""

    @overload
    def __get__(self, instance: None, owner: type) -> Wrapped[P, R]: ...

    @overload
    def __get__(
        self: Wrapped[Concatenate[S, Q], R], instance: S, owner: type | None = None
    ) -> Callable[Q, R]: ...

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind it, as a method of a class."""

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower it for arguments."""

    def trace(self, *args: Any, **kwargs: Any) -> TracedFunction:
        """Trace it for arguments."""

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the tree of shapes and dtypes of its result."""

    def clear_cache(self) -> None:
        """Forget what was traced and compiled of it."""

    def stats(self) -> dict[str, Any]:
        """Return what was traced and compiled of it.

        Returns:
          `name`, `traces` (how many), and `programs`: for each its `arguments`, as text,
          `seconds_to_trace`, and how often it is `compiled`, once for each place.
        """


class ArgInfo(Record):
    """What is known of an argument ahead of time.

    Attributes:
      shape: of the array.
      dtype: of its elements.
      donated: whether a result may take its memory.
    """

    shape: tuple[int, ...]
    dtype: Any
    donated: bool


CompilerOptions = dict[str, Any]
"""Settings of XLA by name."""


class TracedFunction(ProgramOfThisProcess):
    """A function traced for certain arguments.

    Attributes:
      jaxpr: the program.
      fun_name: of the function.
      in_tree: structure of (args, kwargs) without static arguments.
      out_tree: structure of the result.
      refs: the references that it gets or closes over; None for none.
    """

    def __init__(
        self, *, jaxpr: ClosedJaxpr, arguments: Arguments, avals: Sequence[ShapedArray],
        out_tree: PyTree, program: Program, out_placement: OneDevice | None,
        shardings: Sequence[Sharding | None] = (), refs: RefsOfProgram | None = None,
        described: tuple[Sequence[Any], ...] = (), keys: Used = (),
    ) -> None:  # fmt: skip
        self.jaxpr = jaxpr
        self._keys = keys
        self.refs = refs
        self.fun_name = arguments.signature.name
        self.in_tree = arguments.tree
        self.out_tree = out_tree
        self._arguments = arguments
        self._avals = avals
        self._program = program
        self._out_placement = out_placement
        self._shardings, self._described = shardings or [None] * len(avals), described

    @property
    def in_avals(self) -> Any:
        """The tree (args, kwargs) of abstract values."""
        return self.in_tree.unflatten(self._avals)

    @property
    def args_info(self) -> Any:
        """The tree (args, kwargs) of `ArgInfo`."""
        donated = self._program.donated
        return self.in_tree.unflatten(
            [ArgInfo(a.shape, a.dtype, i in donated) for i, a in enumerate(self._avals)]
        )

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The numbers of the donated leaves."""
        return self._program.donated

    @property
    def effects(self) -> frozenset[Any]:
        """The side effects of the program."""
        return self.jaxpr.effects

    @property
    def out_info(self) -> Any:
        """The tree of shapes and dtypes of the result, and of a requested sharding."""
        leaves, tree = xtree.flatten(self.out_avals)
        put = self._out_placement
        there = None if put is None else SingleDeviceSharding(put.device)
        return describe_results(tree, leaves, self._program.out_shardings or (there,) * len(leaves))

    @property
    def out_avals(self) -> Any:
        """The tree of abstract values of the result."""
        avals, placement = self._program.closed.out_avals, self._program.placement
        return self.out_tree.unflatten(avals if placement is None else placement.avals(avals))

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None) -> Lowered:
        """Write the program as StableHLO.

        Args:
          lowering_platforms: the one platform it is written for, whether it is there or not: `cpu`,
            `cuda`, `rocm` or `tpu`; by default the one it will run on.
            A program over a mesh without devices, of which no argument says more, needs it.

        Raises:
          NoMeshError: it is over a mesh without devices, and no platform is named.
        """
        require(
            lowering_platforms is None or len(lowering_platforms) == 1, "lower",
            "a program is written for one platform at a time.",
            got={"lowering_platforms": lowering_platforms},
        )  # fmt: skip
        requested = lowering_platforms[0] if lowering_platforms else None
        placement, platform = place_ahead(
            self._program, self._shardings, requested, *self._described
        )
        return Lowered(self, self._program.lower(placement, platform), placement)


Traced = TracedFunction
MemoryAnalysis = gateway.MemoryAnalysis


class _Stage(ProgramOfThisProcess):
    """What is known of a function from its trace on."""

    _traced: TracedFunction

    in_tree = property(lambda self: self._traced.in_tree)
    out_tree = property(lambda self: self._traced.out_tree)
    in_avals = property(lambda self: self._traced.in_avals)
    out_info = property(lambda self: self._traced.out_info)
    args_info = property(lambda self: self._traced.args_info)
    donate_argnums = property(lambda self: self._traced.donate_argnums)
    _repr_html_ = stage_html


class Lowered(_Stage):
    """A program as StableHLO text."""

    def __init__(
        self, traced: TracedFunction, lowered: LoweredProgram, placement: Placement
    ) -> None:
        self._traced = traced
        self._lowered = lowered
        self._placement = placement

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """Return the program as text.

        Args:
          dialect: "stablehlo", as None, or "hlo", XLA's own notation before it is optimised.
          debug_info: whether operations name the scopes, the user's file and line.

        With the option `program_text` "mlir", StableHLO is printed as MLIR prints it.
        """
        text, program = self._lowered.text, self._traced._program
        if debug_info:
            with source_locations(True):
                program = program.with_options(program.options or {})
                text = program.lower(self._placement, self._lowered.platform).text
        in_hlo = _check_dialect("as_text", dialect) == "hlo"
        if in_hlo:
            return gateway.hlo_text(text, with_metadata=debug_info)
        return gateway.print_stablehlo(text, debug_info) if program_text.value == "mlir" else text

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """Return the program as an object of jaxlib's.

        Args:
          dialect: "stablehlo", as None, for a module of `jaxlib.mlir`; "hlo" for an
            `XlaComputation`.
        """
        if _check_dialect("compiler_ir", dialect) == "hlo":
            return gateway.hlo_computation(self._lowered.text)
        return gateway.stablehlo_module(self._lowered.text)

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimates for the program as it is, by name, such as `flops`."""
        return gateway.estimate_cost(self._lowered.text, self._lowered.platform)

    def compile(self, compiler_options: dict[str, Any] | None = None) -> Compiled:
        """Compile the program, with settings of XLA by name."""
        program = self._traced._program
        if compiler_options:
            program = program.with_options({**(program.options or {}), **compiler_options})
        kernel = program.kernel(self._placement, self._lowered, in_full=True)
        return Compiled(self._traced, program, kernel)

    def __repr__(self) -> str:
        return f"Lowered({self._traced.fun_name}, {len(self._lowered.text)} characters)"


def _check_dialect(operation: str, dialect: str | None) -> str:
    require(
        dialect in (None, "stablehlo", "hlo"), operation, "unknown dialect {!r}.", dialect,
        expected="'stablehlo' or 'hlo'",
        hint="lower(...).compile().as_text() is XLA's optimised program",
    )  # fmt: skip
    return dialect or "stablehlo"


class Compiled(_Stage):
    """A compiled program, to be called with arguments of the shapes it was made for."""

    def __init__(self, traced: TracedFunction, program: Program, kernel: DeviceKernel) -> None:
        self._traced = traced
        self._program = program
        self._kernel = kernel
        self._refs = [] if traced.refs is None else traced.refs.refs_alive()
        self._dispatcher = Dispatcher(
            traced._arguments.signature_without_static(),
            DeletedBuffer(f"was donated to {traced.fun_name}"),
        )
        args_tree, kwargs_tree = traced.in_tree.children()
        self._num_args, self._names = len(args_tree.children()), set(kwargs_tree.node_data()[1])
        parameters = parameters_named(self._num_args, self._names)
        self._dispatch = self._dispatcher.function(self._call_and_check, parameters)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program; static arguments are left out.

        Raises:
          TypeError: the arguments have another structure, shape or dtype, or a transformation is
            applied to this call.
        """
        try:
            if len(args) == self._num_args and not (
                kwargs.keys() != self._names if kwargs else self._names
            ):
                return self._dispatch(*args, **kwargs)
            return self._call_and_check(args, kwargs)
        except Exception as error:
            shorten(error)
            raise

    def _call_and_check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call it the long way: compare the arguments with what it was compiled for."""
        traced = self._traced
        leaves, tree = xtree.flatten((args, kwargs))
        if tree != traced.in_tree:
            raise TypeError(message(
                traced.fun_name,
                "the arguments have another structure than it was compiled for.", got=f"{tree}",
                expected=f"{traced.in_tree}",
            ))  # fmt: skip
        arrays = self._arrays(leaves)
        if traced._keys:
            note_call(traced._keys, arrays)
        if traced.refs is not None:
            return self._call_with_refs(traced.refs, leaves, arrays)
        kernel = self._kernel_for(arrays)
        is_checked = results_are_checked()
        if is_checked:
            results = self._run_with_checks(kernel, leaves, arrays)
        else:
            results = kernel.call_for_user(leaves, arrays)
        if traced._out_placement is not None:
            results = move_results(results, traced._out_placement)
        elif kernel.donated == traced._program.donated and not is_checked:
            entry = kernel.entry(traced.out_tree, traced._keys)
            if entry is not None:
                avals, context = [x.aval for x in arrays], config.trace_context()
                self._dispatcher.add(args, kwargs, avals, context, entry)
        return traced.out_tree.unflatten(results)

    def _call_with_refs(self, refs: RefsOfProgram, leaves: list[Any], arrays: list[Any]) -> Any:
        """Call it with the values of references, and write what it gives for them."""
        traced = self._traced
        arguments = traced._arguments.with_leaves(leaves)
        used = refs.of_call(arguments.signature.api, traced.fun_name, arguments)
        with one_at_a_time:
            operands = used.take(arrays)
            kernel = self._kernel_for(operands)
            if results_are_checked():
                results = self._run_with_checks(kernel, operands, operands)
            else:
                results = kernel.call_for_user(operands, operands)
            if traced._out_placement is not None:
                results = move_results(results, traced._out_placement)
            return traced.out_tree.unflatten(used.write(results, fresh=True))

    def _run_with_checks(
        self, kernel: DeviceKernel, leaves: list[Any], arrays: list[Any]
    ) -> list[Any]:
        """Run the program with a check of each equation, or look at the results of a stored one."""
        name, program = self._traced.fun_name, self._program
        if program.is_loaded:
            return look_at_results(name, kernel.call_for_user(leaves, arrays))
        is_of_device = program.placement is None and isinstance(kernel.placement, OneDevice)

        def call(run: Program) -> Sequence[Any]:
            if run is program:
                own = kernel
            else:
                own = run.kernel(kernel.placement) if is_of_device else run.kernel_for(arrays)
            return own.call_for_user(leaves, arrays)

        return call_and_check(name, program, call)

    def _kernel_for(self, arrays: list[Any]) -> DeviceKernel:
        """Return the kernel for arguments that may be committed to its device."""
        traced, placement = self._traced, base_of(self._kernel.placement)
        if gateway.orders_used[0]:
            check_orders(self._kernel, arrays, traced._arguments.names)
        if traced._program.placement is not None or not isinstance(placement, OneDevice):
            return self._kernel
        found = common_placement(arrays, traced.fun_name, traced._arguments.names)
        if found is placement or (isinstance(found, OneDevice) and not found.committed):
            return self._kernel
        if not isinstance(found, OneDevice) or found.device is not placement.device:
            raise ValueError(message(
                traced.fun_name, "it was compiled for another device than its arguments are on.",
                got=f"arguments that were put on {', '.join(map(str, found.devices))}",
                expected=f"{placement.device}",
                hint="jit(f, device=...) compiles for a device; device_put moves arguments",
            ))  # fmt: skip
        there = in_orders_of(self._kernel.placement, found)
        return self._program.kernel(there, in_full=True)  # the same code; results are committed

    def _arrays(self, leaves: list[Any]) -> list[Any]:
        """Return the leaves as the arrays that the program takes."""
        traced, arguments = self._traced, self._traced._arguments
        arrays = arguments.with_leaves(leaves).arrays()
        for i, (x, aval) in enumerate(zip(arrays, traced._avals, strict=True)):
            if isinstance(x, Tracer):
                raise TypeError(message(
                    f"{traced.fun_name}", "a compiled program cannot be transformed.",
                    got=f"{arguments.names()[i]}: a tracer of {x.aval.str_long()}",
                    hint=f"transform jit({traced.fun_name}) itself",
                ))  # fmt: skip
            if x.aval is not aval and whole(x.aval.strong()) is not whole(aval.strong()):
                raise TypeError(message(
                    f"{traced.fun_name}", "it was compiled for other arguments.",
                    got=f"{arguments.names()[i]}: {x.aval.str_long()}", expected=aval.str_long(),
                ))  # fmt: skip
        return arrays

    def parts(self) -> dict[str, Any]:
        """Return what it is made of, for `stored_programs`.

        Raises:
          ValueError: it uses references, which are places in this process.
        """
        if self._traced.refs is not None:
            raise ValueError(message(
                "serialize", "a program that uses references cannot be stored.",
                got=self._traced.fun_name,
                hint="pass values, return the next ones, and write them to the references outside",
            ))  # fmt: skip
        traced, program, placement = self._traced, self._program, self._kernel.placement
        arguments = traced._arguments
        return {
            "signature": arguments.signature_without_static(), "names": list(arguments.names()),
            "in_avals": tuple(traced._avals), "out_avals": program.closed.out_avals,
            "donated": program.donation, "keep_unused": program.keep_unused,
            "is_placed": program.placement is not None, "placement": placement,
            "out_placement": traced._out_placement, "options": program.options,
            "lowered": program.lower(placement), "executable": self._kernel.executable,
        }  # fmt: skip

    def __reduce__(self) -> Any:
        return _stored_programs.deserialize_and_load, _stored_programs.serialize(self)

    @property
    def out_info(self) -> Any:
        """The tree of shapes and dtypes of the result, and of its sharding."""
        return describe_results(self.out_tree, self._kernel.avals_out, self._ways_out())

    @property
    def input_shardings(self) -> Any:
        """The tree (args, kwargs) of the shardings that arguments have when it starts.

        None stands for an argument that nothing needs.
        """
        return self.in_tree.unflatten(self._ways_in())

    @property
    def output_shardings(self) -> Any:
        """The tree of the shardings that results have."""
        return self.out_tree.unflatten(self._ways_out())

    @property
    def input_formats(self) -> Any:
        """The tree (args, kwargs) of how arguments lie on devices and in memory."""
        orders = orders_in(self._kernel.placement, len(self._traced._avals))
        return self.in_tree.unflatten(map(format_of, self._traced._avals, self._ways_in(), orders))

    @property
    def output_formats(self) -> Any:
        """The tree of the shardings of results on devices and in memory."""
        kernel = self._kernel
        orders = orders_out(kernel.placement, len(kernel.avals_out))
        return self.out_tree.unflatten(map(format_of, kernel.avals_out, self._ways_out(), orders))

    def _ways_in(self) -> list[Sharding | None]:
        count, kept = len(self._traced._avals), self._kernel.kept
        ways = self._kernel.placement.ways_of_arguments(count)
        return [way if i in kept else None for i, way in enumerate(ways)]

    def _ways_out(self) -> list[Sharding | None]:
        kernel, requested = self._kernel, self._traced._out_placement
        count = len(kernel.avals_out)
        if requested is not None:
            return requested.ways_of_arguments(count)
        return kernel.placement.ways_of_results(kernel.avals_out, kernel.executable)

    def as_text(self) -> str:
        """Return the optimised program in XLA's own notation."""
        return self._kernel.executable.hlo_text()

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimates by name, such as `flops`."""
        return self._kernel.executable.cost_analysis()

    def memory_analysis(self) -> MemoryAnalysis:
        """Return sizes in bytes by name, of code, arguments, results and temporaries."""
        return self._kernel.executable.memory_analysis()

    def runtime_executable(self) -> Any:
        """Return the gateway's executable."""
        return self._kernel.executable

    def __repr__(self) -> str:
        return f"Compiled({self._traced.fun_name})"
