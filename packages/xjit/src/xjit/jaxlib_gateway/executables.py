"""Compile StableHLO text and run it.

What: `compile_program`, `deserialize_program` and the `Executable` they return.
Idea: XLA parses the text itself, so no MLIR is imported (but for programs that call Python). A
result handler for each output, made once, turns what the runtime returns into buffers; a call
is then two calls into C++. Donation is written in the text: an argument with the attribute
`tf.aliasing_output = 0 : i32` (its memory becomes that output) or `jax.buffer_donor = true`
is deleted by the call, unless somebody still looks at its memory, who then keeps it.
Collectives between replicas name no channel, those between partitions name one: the runtime ends
the process where a `collective_permute` of replicas has a channel.
Neighbours: `buffers` for what goes in and comes out, `foreign` for what a program may call.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xprim.errors import message

from .array_types import ArrayType, array_type
from .buffers import Buffer, assemble, placement, shards
from .clients import client
from .forks import startable
from .runtime import RuntimeFailure, _jax, fail, xla_client
from .tiles import Tiles, tiles_of, whole

__all__ = ()

# Before the bytes of a serialised executable: a mark, and the number of Python callbacks, without
# which the runtime would look for them in an empty table and crash.
_ENVELOPE = struct.Struct("<6sH")
_MARK = b"xjit\x00\x01"

# jaxlib 0.10 checks each result against its handler unless told not to; 0.11 never does.
_HANDLER_OPTIONS: dict[str, bool] = (
    {"_skip_checks": True} if "_skip_checks" in (_jax.array_result_handler.__doc__ or "") else {}
)

# How the names of XLA's operations begin in which devices wait for one another.
_EXCHANGES = ("All", "Collective", "ReduceScatter", "Ragged", "Send", "Recv", "Async")

OptionValue = bool | int | float | str


class MemoryAnalysis(dict[str, int]):
    """Sizes in bytes by name, which are attributes, too.

    Example:
      >>> MemoryAnalysis(output_size_in_bytes=24).output_size_in_bytes
      24
    """

    def __getattr__(self, name: str) -> int:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name, name=name, obj=self) from None


class Executable:
    """A compiled program, loaded on its devices."""

    __slots__ = ("__weakref__", "_current", "_handlers", "_loaded", "callbacks", "devices",
                 "from_bytes", "outputs", "pending", "start")  # fmt: skip

    pending: Callable[[], None] | None
    """What replaces the code by a better one, where that is still to come."""

    def __init__(
        self,
        loaded: Any,
        devices: tuple[Any, ...],
        outputs: Sequence[Any] | None,
        callbacks: tuple[Callable[..., Any], ...],
        from_bytes: bool = False,
    ) -> None:
        self._loaded = loaded
        self.start: Callable[[Sequence[Buffer]], Any] = loaded.execute_sharded
        startable(self)
        self.devices = devices
        self.callbacks = callbacks
        self.from_bytes = from_bytes  # then the CPU's runtime does not give its code again
        self.pending = None
        types = _output_types(loaded) if outputs is None else _array_types(outputs)
        self.outputs: tuple[ArrayType, ...] = types
        self._handlers = self.handlers(placement(devices))

    def be_replaceable(self) -> None:
        """Start by way of a cell, so that `become` reaches all who have asked for `start`."""
        current: list[Any] = [self._loaded.execute_sharded]

        def start(buffers: Sequence[Buffer], **options: bool) -> Any:
            return current[0](buffers, **options)

        self._current, self.start = current, start

    def become(self, other: Executable) -> None:
        """Take the code of another executable of the same program, from the next start on."""
        self._current[0] = other._loaded.execute_sharded
        self._loaded, self.callbacks = other._loaded, other.callbacks

    def handlers(self, where: Any, name: str = "") -> list[Any]:
        """Return what makes buffers with the sharding object `where` of the program's outputs.

        Args:
            where: the placement of all outputs.
            name: of the program, for the error of an output that could not be computed.
        """
        return self.handlers_at([where] * len(self.outputs), name)

    def handlers_at(
        self, places: Sequence[Any], name: str = "", lines: Sequence[str] = ()
    ) -> list[Any]:
        """Return what makes buffers of the outputs, each with a sharding object of its own.

        Args:
            places: those objects.
            name: as for `handlers`.
            lines: of the user's program that make the outputs; none at all where they are unknown.
        """
        lines = lines or [""] * len(self.outputs)
        kinds = [
            array_type(kind.shape, kind.dtype, name, line)
            for kind, line in zip(self.outputs, lines, strict=True)
        ]
        return [result_handler(kind, where) for kind, where in zip(kinds, places, strict=True)]

    def layouts_of_arguments(self) -> list[Any]:
        """Return how the runtime wants each argument in memory: see `orders.orders_of`."""
        return list(self._loaded.get_parameter_layouts())

    def layouts_of_outputs(self) -> list[Any]:
        """Return how each output lies in memory: see `orders.orders_of`."""
        return list(self._loaded.get_output_layouts())

    def tiles_of_outputs(self) -> list[Tiles]:
        """Return how the outputs of a program that XLA has split are spread over its devices."""
        count = len(self.devices)
        if count == 1:
            return [whole(1, kind.ndim) for kind in self.outputs]
        return [
            tiles_of(proto, count, kind.ndim)
            for proto, kind in zip(self._loaded.get_output_shardings(), self.outputs, strict=True)
        ]

    def exchanges_values(self) -> bool:
        """Say whether devices wait for one another within the program."""
        return any(
            str(instruction.opcode).removeprefix("HloOpcode.k").startswith(_EXCHANGES)
            for module in self._loaded.hlo_modules()
            for computation in module.computations()
            for instruction in computation.instructions()
        )

    @property
    def starter(self) -> Callable[[Sequence[Buffer]], Any]:
        """The runtime's own function that starts the program, for callers that count nanoseconds.

        `starter(buffers).consume_with_handlers(handlers)` is `execute` without its errors.
        """
        return self.start

    def execute(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Start the program and return its outputs, which may still be in the making.

        Args:
            buffers: one for each argument, of its shape and dtype; on the program's device, or,
                for a program on several devices, spread over them (`assemble`).

        Raises:
            XlaError: the buffers do not fit the program. A failure while it runs is raised by
                whoever reads an output.
        """
        try:
            outputs: list[Buffer] = self.start(buffers).consume_with_handlers(self._handlers)
            return outputs
        except RuntimeFailure as error:
            fail("execute", "the program could not be started", error)

    def execute_replicated(self, arguments: Sequence[Sequence[Buffer]]) -> list[list[Buffer]]:
        """Start the program on all its devices and return, for each output, one buffer per device.

        Args:
            arguments: for each argument, one buffer for each of `devices` that belongs to this
                process, in their order.

        A pipeline of such programs is faster with `execute` on assembled buffers: it takes the
        outputs of one as the arguments of the next without taking them apart (see `shards`).
        """
        outputs = self.execute([assemble(pieces, self.devices) for pieces in arguments])
        return [shards(output) for output in outputs]

    def serialize(self) -> bytes:
        """Return the compiled code as bytes for `deserialize_program`.

        They are code for this machine: accept them only from whom you trust.
        """
        try:
            code: bytes = self._loaded.serialize()
        except RuntimeFailure as error:
            fail("serialize", "the program cannot be serialised", error)
        return _ENVELOPE.pack(_MARK, len(self.callbacks)) + code

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimates by name, such as `flops` and `bytes accessed`."""
        return dict(self._loaded.cost_analysis())

    def memory_analysis(self) -> MemoryAnalysis:
        """Return sizes in bytes by name: of the code, arguments, outputs and temporaries."""
        stats = self._loaded.get_compiled_memory_stats()
        names = [name for name in dir(stats) if name.endswith("_in_bytes")]
        return MemoryAnalysis({name: int(getattr(stats, name)) for name in names})

    def hlo_modules(self) -> list[Any]:
        """Return the optimised programs as XLA has them: `to_string()` gives their text."""
        return list(self._loaded.hlo_modules())

    def hlo_text(self) -> str:
        """Return the optimised program in XLA's own notation."""
        return "\n\n".join(module.to_string() for module in self.hlo_modules())


def result_handler(kind: ArrayType, where: Any) -> Any:
    """Return what makes buffers of an output: of a type, with the sharding object `where`."""
    return _jax.array_result_handler(kind, where, True, **_HANDLER_OPTIONS)


def compile_program(
    text: str,
    devices: Sequence[Any] | None = None,
    *,
    num_replicas: int = 1,
    num_partitions: int = 1,
    use_spmd: bool = False,
    use_shardy: bool = False,
    free_outputs: Sequence[bool] = (),
    options: Mapping[str, OptionValue] | None = None,
    host_callbacks: Sequence[Callable[..., Any]] = (),
    outputs: Sequence[Any] | None = None,
) -> Executable:
    """Compile a StableHLO module for `devices`.

    Args:
        text: the module, whose entry is `func.func public @main`.
        devices: `num_replicas * num_partitions` devices, replica by replica; by default the
            first ones of the default backend.
        num_replicas: how many copies run the same program on their own arguments.
        num_partitions: over how many devices one copy is split.
        use_spmd: let XLA split the program by its sharding annotations.
        use_shardy: those annotations are Shardy's (`sdy.mesh`, `sdy.sharding`).
        free_outputs: for each output, whether XLA may choose how it is spread.
        options: settings of XLA by name, such as `xla_backend_optimization_level`. XLA's own
            defaults are used otherwise: lower optimisation was measured to compile 10-28% faster
            and to run matrix products 20% slower.
        host_callbacks: what `@xla_ffi_python_cpu_callback` with `index = i` calls
            (see `python_callback`).
        outputs: objects with `shape` and `dtype`, one for each output on one device; asked of
            XLA when not given (12 us and more).

    Raises:
        XlaError: XLA cannot parse or compile the program, or does not know an option.

    Example:
        >>> one = compile_program(
        ...     "func.func public @main() -> tensor<f32> {"
        ...     " %0 = stablehlo.constant dense<1.0> : tensor<f32> return %0 : tensor<f32> }")
        >>> one.execute([])[0].aval
        float32[]
    """
    chosen = _chosen_devices("compile_program", devices, num_replicas * num_partitions)
    settings = _compile_options(
        chosen, num_replicas, num_partitions, use_spmd, use_shardy, options or {}
    )
    if free_outputs:
        build = settings.executable_build_options
        build.allow_spmd_sharding_propagation_to_output = list(free_outputs)
    where = _jax.DeviceList(chosen)
    callbacks = tuple(host_callbacks)
    try:
        if callbacks:
            from .mlir_modules import parse_module  # MLIR costs 30 ms; only callbacks need it

            module = parse_module(text)
            loaded = chosen[0].client.compile_and_load(
                module, where, settings, host_callbacks=callbacks
            )
        else:
            loaded = chosen[0].client.compile_and_load(text.encode(), where, settings)
    except RuntimeFailure as error:
        fail("compile_program", "XLA refused the program", error)
    return Executable(loaded, chosen, outputs, callbacks)


def deserialize_program(
    data: bytes,
    devices: Sequence[Any] | None = None,
    *,
    num_replicas: int = 1,
    num_partitions: int = 1,
    use_spmd: bool = False,
    use_shardy: bool = False,
    free_outputs: Sequence[bool] = (),
    options: Mapping[str, OptionValue] | None = None,
    host_callbacks: Sequence[Callable[..., Any]] = (),
    outputs: Sequence[Any] | None = None,
) -> Executable:
    """Load what `Executable.serialize` returned, with the arguments it was compiled with.

    Running bytes from elsewhere is running somebody's code: only load what you wrote, on the
    machine and jaxlib that `device_fingerprint` named.

    Raises:
        ValueError: the bytes are not from `serialize`, or the number of callbacks differs.
        XlaError: the runtime does not take them.
    """
    if len(data) < _ENVELOPE.size or not data.startswith(_MARK):
        raise ValueError("deserialize_program: these are not the bytes of a serialised program.")
    callback_count = _ENVELOPE.unpack_from(data)[1]
    callbacks = tuple(host_callbacks)
    if callback_count != len(callbacks):
        raise ValueError(message(
            "deserialize_program", "the number of Python callbacks differs.",
            got=f"{len(callbacks)}", expected=f"{callback_count}",
        ))  # fmt: skip
    chosen = _chosen_devices("deserialize_program", devices, num_replicas * num_partitions)
    settings = _compile_options(
        chosen, num_replicas, num_partitions, use_spmd, use_shardy, options or {}
    )
    if free_outputs:
        build = settings.executable_build_options
        build.allow_spmd_sharding_propagation_to_output = list(free_outputs)
    code = data[_ENVELOPE.size :]
    where = _jax.DeviceList(chosen)
    try:
        load = chosen[0].client.deserialize_executable
        arguments = (code, where, settings, callbacks) if callbacks else (code, where, settings)
        loaded = load(*arguments)
    except RuntimeFailure as error:
        fail("deserialize_program", "the runtime did not take the program", error)
    return Executable(loaded, chosen, outputs, callbacks, from_bytes=True)


def _chosen_devices(operation: str, devices: Sequence[Any] | None, count: int) -> tuple[Any, ...]:
    chosen = tuple(client().local_devices()[:count] if devices is None else devices)
    if len(chosen) != count or len(set(chosen)) != count:
        raise ValueError(message(
            operation, "the devices do not match the replicas and partitions.",
            got=f"{len(set(chosen))} different devices",
            expected=f"{count} (replicas times partitions)",
        ))  # fmt: skip
    return chosen


def _compile_options(
    devices: tuple[Any, ...],
    num_replicas: int,
    num_partitions: int,
    use_spmd: bool,
    use_shardy: bool,
    options: Mapping[str, OptionValue],
) -> Any:
    result = _jax.CompileOptions()
    ids = np.array([device.id for device in devices]).reshape(num_replicas, num_partitions)
    assignment = _jax.DeviceAssignment.create(ids)
    build = result.executable_build_options
    for target in (result, build):
        target.num_replicas = num_replicas
        target.num_partitions = num_partitions
        target.device_assignment = assignment
    build.use_spmd_partitioning = use_spmd
    build.use_shardy_partitioner = use_shardy
    if options:
        result.env_option_overrides = list(options.items())
    return result


def _array_types(outputs: Sequence[Any]) -> tuple[ArrayType, ...]:
    return tuple(array_type(tuple(o.shape), np.dtype(o.dtype)) for o in outputs)


def _output_types(loaded: Any) -> tuple[ArrayType, ...]:
    """Ask the compiled program for the types of its outputs on one device."""
    module = loaded.hlo_modules()[0].as_serialized_hlo_module_proto()
    result = xla_client.XlaComputation(module).program_shape().result_shape()
    pieces = result.tuple_shapes() if result.is_tuple() else [result]
    return tuple(array_type(tuple(p.dimensions()), p.numpy_dtype()) for p in pieces)
