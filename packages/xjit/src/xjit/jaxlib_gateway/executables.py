"""Compile StableHLO text and run it; foreign functions, partitioners and probes in programs."""

from __future__ import annotations

import contextlib
import enum
import functools
import importlib.machinery
import importlib.util
import itertools
import math
import os
import re
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeAlias

import numpy as np
from jaxlib import _hlo

from xjit import byte_formats
from xjit.jaxlib_gateway import runtime
from xjit.jaxlib_gateway.array_types import (
    SUB_BYTE_DTYPES,
    ArrayType,
    Tiles,
    array_type,
    element_type,
    hlo_sharding,
    tiles_of,
    whole,
)
from xjit.jaxlib_gateway.buffers import Buffer, assemble, placement, shards
from xjit.jaxlib_gateway.clients import canonical_platform, client, explain_failure, startable
from xjit.jaxlib_gateway.host_kernels import await_at_exit
from xjit.jaxlib_gateway.runtime import RuntimeFailure, _jax, fail, programs_of_size, xla_client
from xprim.errors import message
from xprim.memory import in_bytes
from xtree.interning import forkable_lock
from xtree.namespaces import late_import

__all__ = ()

_mlir_modules = late_import("xjit.jaxlib_gateway.mlir_modules", "MLIR takes 30 ms")
_lapack_handlers = late_import("jaxlib.lapack", "it loads the libraries of SciPy")


# --------------------------------------------------------------------------------- program forms
# The forms of a program before it is compiled: XLA's own notation, and a module of MLIR.
#
# What: `hlo_computation`, `hlo_text`, `stablehlo_module` and `estimate_cost`; `portable`, which
# later releases read, and `text_of_portable`, its way back. Idea: the portable form is written as
# of a version of StableHLO that is twelve weeks old, so that a jaxlib of that age reads it, too,
# and later ones do for years
# (https://github.com/openxla/stablehlo/blob/main/docs/compatibility.md). The runtime compiles it
# as it is. What Shardy says of several devices stands in it unchanged.


def hlo_computation(text: str) -> Any:
    """Return the program of a StableHLO text as XLA reads it, before any optimisation.

    Returns:
        jaxlib's `XlaComputation`, which has `as_hlo_text` and `as_serialized_hlo_module_proto`.

    Raises:
        XlaError: it is not StableHLO.
    """
    try:
        return _jax.mlir.mlir_module_to_xla_computation(text, False, False)
    except (RuntimeFailure, ValueError) as error:
        fail("hlo_computation", "XLA refused the program", error)


def hlo_text(text: str, *, with_metadata: bool) -> str:
    """Return the program of a StableHLO text in XLA's notation.

    Args:
        text: the program.
        with_metadata: whether operations are shown with their names and lines, where it has such.
    """
    computation = hlo_computation(text)
    if not with_metadata:
        return str(computation.as_hlo_text())
    options = _hlo.HloPrintOptions()
    options.print_metadata = True
    return str(computation.get_hlo_module().to_string(options))


def stablehlo_module(text: str) -> Any:
    """Return the MLIR module of a StableHLO text, with a context of its own.

    Raises:
        XlaError: it is not StableHLO.
    """
    return _mlir_modules.parse_module(text)


def print_stablehlo(text: str, debug_info: bool) -> str:
    """Return a StableHLO text as MLIR prints it.

    Raises:
        XlaError: it is not StableHLO.
    """
    return str(_mlir_modules.print_stablehlo(text, debug_info))


def portable(text: str) -> bytes:
    """Return the program of a StableHLO text in the portable form.

    Raises:
        XlaError: it is not StableHLO.
    """
    try:
        version = _mlir_modules.twelve_weeks_old()
        return bytes(_jax.mlir.serialize_portable_artifact(text, version, True))
    except (RuntimeFailure, ValueError) as error:
        fail("export", "the program has no portable form", error)


def text_of_portable(data: bytes) -> str:
    """Return the StableHLO text of a program in the portable form.

    Raises:
        XlaError: this jaxlib does not read it.
    """
    try:
        with _mlir_modules.new_context() as context:
            return str(_jax.mlir.deserialize_portable_artifact(data, context))
    except (RuntimeFailure, ValueError) as error:
        fail("export", "this jaxlib does not read the program", error)


def estimate_cost(text: str, platform: str) -> dict[str, float]:
    """Return XLA's estimates for a program before it is compiled, by name, such as `flops`."""
    module = hlo_computation(text).get_hlo_module()
    own = client("cpu" if platform in ("rocm", "tpu") else platform)  # without a client here
    return dict(_jax.hlo_module_cost_analysis(own, module))


# ---------------------------------------------------------------------------------- partitioners
# Let Python say how an operation is split over devices, while XLA splits the program around it.
#
# What: `ask_partitioner`, which makes a partitioner known and returns what its custom call carries.
# Idea: for a custom call of a target that is made known, XLA's partitioner calls back with how
# operands and results lie; the answer is their shardings, and what each device computes. The
# `backend_config` of the call is a number, by which the one who answers is found.

PARTITIONER_TARGET = "xstack.custom_partitioning"
"""The name by which XLA knows the custom call."""


class Partitioner(Protocol):
    """Who says how an operation is split.

    Attributes:
      count: the number of devices.
      in_ndims: the number of dimensions of each operand.
      out_ndims: that of each result.
    """

    count: int
    in_ndims: list[int]
    out_ndims: list[int]

    def split(
        self, operands: Sequence[Tiles], results: Sequence[Tiles]
    ) -> tuple[str, Sequence[Tiles], Sequence[Tiles]]:
        """Return what each device computes of its pieces, and how operands and results shall lie.

        Args:
          operands: how XLA would have them lie.
          results: likewise.

        Returns:
          A module of StableHLO, and the tiles that it is written for.
        """


# By the numbers in programs; each lives as long as its program.
_known: weakref.WeakValueDictionary[int, Partitioner] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)
_lock = threading.Lock()
_registered: list[bool] = []


def ask_partitioner(partitioner: Partitioner) -> str:
    """Have XLA ask a partitioner, which must live until its program is compiled.

    Returns:
      The `backend_config` of its custom call.
    """
    with _lock:
        if not _registered:
            xla_client.register_custom_call_partitioner(
                PARTITIONER_TARGET,
                _as_its_user_has_it,
                _split,
                _whole,
                can_side_effecting_have_replicated_sharding=True,
            )
            _registered.append(True)
        number = next(_numbers)
        _known[number] = partitioner
    return str(number)


def _as_its_user_has_it(sharding: Any, _shape: Any, _config: Any) -> Any:
    return sharding


def _whole(_arg_shapes: Any, _arg_shardings: Any, _shape: Any, _config: Any) -> Any:
    return xla_client.HloSharding.replicate()  # which the rule in the text of the program precedes


def _split(
    _arg_shapes: Any, arg_shardings: Sequence[Any], result_shape: Any, result_sharding: Any,
    config: Any,
) -> tuple[bytes, list[Any], Any]:  # fmt: skip
    partitioner = _known[int(config)]
    parts = result_sharding.tuple_elements() if result_shape.is_tuple() else [result_sharding]
    sides = (arg_shardings, partitioner.in_ndims), (parts, partitioner.out_ndims)
    tiles = [[tiles_of(s.to_proto(), partitioner.count, ndim)
              for s, ndim in zip(side, ndims, strict=True)] for side, ndims in sides]  # fmt: skip
    text, operands, results = partitioner.split(*tiles)
    found = [hlo_sharding(t) for t in results]
    packed = found[0]
    if result_shape.is_tuple():
        packed = xla_client.HloSharding.tuple_sharding(result_shape, found)
    return text.encode(), [hlo_sharding(t) for t in operands], packed


# ---------------------------------------------------------------------------------------- probes
# Find the sharding that XLA has given a value inside a program that it splits.
#
# What: `ShardingProbe`, which XLA calls while the program is compiled. Idea: XLA's partitioner
# calls back at a custom call of a target of its own, whose `backend_config` is the address of a
# function. The address is written just before the program is compiled, so texts stay equal from
# process to process.


class ShardingProbe:
    """What one custom call of a program learns; it must live until the program is compiled."""

    __slots__ = ("_found", "_heard")

    target = "InspectSharding"
    """The name that XLA knows of the custom call, which returns its operand."""

    def __init__(self) -> None:
        self._found: list[Any] = []
        self._heard = self._found.append  # the address is of this object

    def config(self) -> str:
        """Return the `backend_config` of the custom call, as MLIR writes a string of bytes."""
        address: bytes = xla_client.encode_inspect_sharding_callback(self._heard)
        return "".join([f"\\{byte:02X}" for byte in address])

    def tiles(self, members: np.ndarray[Any, Any], ndim: int) -> Tiles | None:
        """Return how the value is sharded over devices; None where XLA left the call out.

        Args:
          members: the numbers of the devices: a row for each of those that XLA splits the value
            over, with a column for each of those that run the code by themselves.
          ndim: the number of dimensions of the value.
        """
        if not self._found:
            return None
        proto = self._found[-1].to_proto()
        counted = math.prod(proto.tile_assignment_dimensions)
        if len(members) < counted:  # XLA counts all of them
            return tiles_of(proto, counted, ndim)
        tiles = tiles_of(proto, len(members), ndim)
        return Tiles(tiles.counts, members[tiles.devices])


# --------------------------------------------------------------------------------------- foreign
# What a compiled program may call: libraries of C code, and Python.
#
# What: `register_ffi_target`, `register_lapack` and `python_callback`. Idea: a custom call names
# its target, and the runtime finds the target in a table for each platform. Python functions are
# not in that table: a program is compiled with its list of callbacks, and the target
# `CALLBACK_TARGET[platform]` calls the one with the index in its `backend_config`:
#
#     %1 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%0) {
#         api_version = 4 : i32, has_side_effect = true, backend_config = {index = 0 : ui64},
#         operand_layouts = [dense<0> : tensor<1xindex>],
#         result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<3xf32>) -> tensor<3xf32>

CALLBACK_TARGET = {"cpu": "xla_ffi_python_cpu_callback", "gpu": "xla_ffi_python_gpu_callback"}
# The same, called by each device that a program is split over, with its own pieces.
PIECES_TARGET = {
    "cpu": "xla_ffi_partitioned_python_cpu_callback",
    "gpu": "xla_ffi_partitioned_python_gpu_callback",
}

_XLA_NAME_BY_PLATFORM = {"cpu": "cpu", "gpu": "CUDA"}
_lapack_lock = threading.Lock()
_lapack_is_registered = threading.Event()


def register_ffi_target(
    name: str, target: Any, platform: str = "cpu", *, api_version: int = 1, **more: Any
) -> None:
    """Let programs of `platform` call the C function in the capsule `target` by `name`.

    Args:
        name: what stands after `stablehlo.custom_call @`.
        target: a `PyCapsule` of the function, or a dictionary of capsules by stage.
        platform: `"cpu"` or `"gpu"`.
        api_version: 1 for the typed interface of `xla/ffi/api/ffi.h` (a program then says
            `api_version = 4 : i32`), 0 for the untyped one.
        **more: further arguments of jaxlib's.
    """
    if api_version not in (0, 1):
        raise ValueError(message(
            "register_ffi_target", "there are two versions of the interface.",
            got=f"{api_version!r}", expected="1 (typed) or 0 (untyped)",
        ))  # fmt: skip
    xla_platform = _XLA_NAME_BY_PLATFORM[canonical_platform(platform.lower())]
    try:
        xla_client.register_custom_call_target(
            name, target, platform=xla_platform, api_version=api_version, **more
        )
    except RuntimeFailure as error:
        fail("register_ffi_target", f"{name!r} could not be registered", error)


def register_ffi_type(name: str, registration: Any, platform: str = "cpu") -> None:
    """Let functions of `platform` keep states of a type; `registration` has its capsules."""
    xla_platform = _XLA_NAME_BY_PLATFORM[canonical_platform(platform.lower())]
    try:
        xla_client.register_custom_type(name, registration, platform=xla_platform)
    except RuntimeFailure as error:
        fail("register_ffi_type", f"{name!r} could not be registered", error)


def register_batch_partitionable(name: str) -> None:
    """Say that a registered function does with each part of a batch what it does with the whole."""
    try:
        xla_client.register_custom_call_as_batch_partitionable(name)
    except RuntimeFailure as error:
        fail("register_batch_partitionable", f"{name!r} could not be registered", error)


def include_dir() -> str:
    """Return the folder of the headers for functions that programs call."""
    return str(Path(xla_client.__file__).parent / "include")


def register_lapack() -> None:
    """Let CPU programs call LAPACK, as `@lapack_spotrf_ffi` and the like; once is enough.

    The routines are those of SciPy, which this loads.
    """
    if _lapack_is_registered.is_set():
        return
    with _lapack_lock:
        if _lapack_is_registered.is_set():
            return
        with _lapack_of_scipy():
            _lapack_handlers._lapack.initialize()
        for name, target, api_version in _lapack_handlers.registrations()["cpu"]:
            register_ffi_target(name, target, "cpu", api_version=api_version)
        _lapack_is_registered.set()


@contextlib.contextmanager
def _lapack_of_scipy() -> Iterator[None]:
    """Have the two modules that jaxlib imports there, without `scipy.linalg` around them.

    That package takes 170 ms of a first program; the modules alone take 9. They leave
    `sys.modules` again, so that an import of the user's sets them as attributes of their package.
    Where they are not found by name, jaxlib imports the package.
    """
    scipy = importlib.util.find_spec("scipy")
    if "scipy.linalg" in sys.modules or scipy is None:
        yield
        return
    folders = [os.path.join(f, "linalg") for f in scipy.submodule_search_locations or ()]
    alone: dict[str, ModuleType] = {}
    for name in ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"):
        spec = importlib.machinery.PathFinder.find_spec(name, folders)
        if spec is not None and spec.loader is not None:
            alone[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(alone[name])
            sys.modules.setdefault(name, alone[name])
    try:
        yield
    finally:
        for name, module in alone.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


def python_callback(
    function: Callable[..., Any], outputs: Sequence[Any]
) -> Callable[..., tuple[np.ndarray[Any, Any], ...]]:
    """Return `function` as the runtime wants it among the `host_callbacks` of a program.

    Args:
        function: takes one read-only NumPy array for each operand, which it may keep, and returns
            a sequence of array-likes, one for each of `outputs`. It runs on a thread of the
            runtime; its exception becomes the failure of the program.
        outputs: objects with `shape` and `dtype`, as the program's text says.

    Example:
        >>> callback = python_callback(lambda x: (x + 1,), [np.zeros(2)])
        >>> callback(np.array([1.0, 2.0]))
        (array([2., 3.]),)
    """
    expected = [(tuple(o.shape), np.dtype(o.dtype)) for o in outputs]

    def call(*operands: Any) -> tuple[np.ndarray[Any, Any], ...]:
        results = function(*operands)
        if len(results) != len(expected):
            raise ValueError(message(
                "python_callback", "the function returned another number of results.",
                got=f"{len(results)}", expected=f"{len(expected)}",
            ))  # fmt: skip
        return tuple(
            _check(position, result, shape, dtype)
            for position, (result, (shape, dtype)) in enumerate(zip(results, expected, strict=True))
        )

    return call


def _check(
    position: int, result: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    array = np.asarray(result)
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(message(
            "python_callback", f"result {position} does not have the declared type.",
            got=f"{array.dtype}{list(array.shape)}", expected=f"{dtype}{list(shape)}",
        ))  # fmt: skip
    return np.ascontiguousarray(array).reshape(shape)


# ----------------------------------------------------------------------------------- executables
# Compile StableHLO text and run it.
#
# What: `compile_program`, `deserialize_program` and the `Executable` they return. Idea: XLA
# parses the text itself, so no MLIR is imported (but for programs that call Python). A result
# handler for each output, made once, turns what the runtime returns into buffers; a call is then
# two calls into C++. Donation is written in the text: an argument with the attribute
# `tf.aliasing_output = 0 : i32` (its memory becomes that output) or `jax.buffer_donor = true` is
# deleted by the call, unless somebody still looks at its memory, who then keeps it. Collectives
# between replicas name no channel, those between partitions name one: the runtime ends the
# process where a `collective_permute` of replicas has a channel.

# Before the bytes of a serialised executable: a mark, and the number of Python callbacks, without
# which the runtime would look for them in an empty table and crash. The highest bit of the number
# says that the program is short.
_ENVELOPE = struct.Struct("<6sH")
_MARK = b"xjit\x00\x01"
_SHORT = 1 << 15

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


class _Cell:
    """What starts a program at the time, and what loads it once more for its caller's thread."""

    __slots__ = ("__weakref__", "load", "run")

    def __init__(self, run: Callable[..., Any], load: Callable[[bytes], Any] | None = None) -> None:
        self.run, self.load = run, load

    def move(self, loaded: Any, elsewhere: Callable[..., Any]) -> None:
        """Start a program from its code loaded once more, unless it has become another one."""
        load, self.load = self.load, None
        if load is None:
            return
        self.run = elsewhere
        with contextlib.suppress(RuntimeFailure):
            code = loaded.serialize()
            if len(code) <= _MOST_CODE_TO_RELOAD:
                here = load(code).execute_sharded
                if self.run is elsewhere:
                    self.run = here


class Executable:
    """A compiled program, loaded on its devices."""

    __slots__ = ("__weakref__", "_current", "_handlers", "_loaded", "callbacks", "devices",
                 "from_bytes", "is_short", "outputs", "pending", "start")  # fmt: skip

    pending: Callable[[], None] | None
    """What replaces the code by a better one, where that is still to come."""

    def __init__(
        self,
        loaded: Any,
        devices: tuple[Any, ...],
        outputs: Sequence[Any] | None,
        callbacks: tuple[Callable[..., Any], ...],
        from_bytes: bool = False,
        is_awaited: bool = False,
    ) -> None:
        self._loaded = loaded
        start: Callable[..., Any] = loaded.execute_sharded
        self.start = await_at_exit(start) if is_awaited else start
        startable(self)
        self.devices = devices
        self.callbacks = callbacks
        self.from_bytes = from_bytes  # then the CPU's runtime does not give its code again
        self.is_short = False
        self.pending = None
        types = _output_types(loaded) if outputs is None else _array_types(outputs)
        self.outputs: tuple[ArrayType, ...] = types
        self._handlers = self.handlers(placement(devices))

    def be_replaceable(self) -> None:
        """Start by way of a cell, so that `become` reaches all who have requested `start`."""
        if not self.is_short:  # which starts so already
            self._start_by(_Cell(self.start))

    def become(self, other: Executable) -> None:
        """Take the code of another executable of the same program, from the next start on."""
        self._current.load, self._current.run = None, other.start
        self._loaded, self.callbacks = other._loaded, other.callbacks
        self.is_short = other.is_short

    def run_in_caller(self, load: Callable[[bytes], Any]) -> None:
        """Run in the thread of the caller from start number `_STARTS_ELSEWHERE` on.

        Args:
            load: loads code so that it runs there.
        """
        self.is_short = True
        loaded, elsewhere = self._loaded, self.start
        left = itertools.count(_STARTS_ELSEWHERE - 1, -1)

        def count(buffers: Sequence[Buffer], **options: Any) -> Any:
            if next(left) == 0 and (cell := known()) is not None:  # in one thread alone
                cell.move(loaded, elsewhere)
            return elsewhere(buffers, **options)

        cell = _Cell(count, load)
        known = weakref.ref(cell)  # a cycle would keep the code until it is collected
        self._start_by(cell)

    def _start_by(self, cell: _Cell) -> None:
        """Start by what a cell has at the time."""

        def start(buffers: Sequence[Buffer], **options: Any) -> Any:
            return cell.run(buffers, **options)

        self._current, self.start = cell, start

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
        if name:
            with _names_lock:
                _names.setdefault(self, set()).add(name)
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
        """Return how the outputs of a program that XLA has split are sharded over its devices."""
        count = len(self.devices)
        if count == 1 or not self.outputs:  # XLA names a sharding for no output as well
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
                for a program on several devices, sharded over them (`assemble`).

        Raises:
            XlaError: the buffers do not fit the program. A failure while it runs is raised by
                whoever reads an output.
        """
        try:
            outputs: list[Buffer] = self.start(buffers).consume_with_handlers(self._handlers)
            return outputs
        except RuntimeFailure as error:
            explain_failure(error)
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
        count = len(self.callbacks) | (_SHORT if self.is_short else 0)
        return _ENVELOPE.pack(_MARK, count) + code

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


# The names that errors have for the programs that are loaded; no program lives by it.
_names: weakref.WeakKeyDictionary[Executable, set[str]] = weakref.WeakKeyDictionary()
_names_lock = forkable_lock()


def _describe_memory(name: str) -> str:
    """Say what the largest program of a name takes, "" where none is known or it takes nothing."""
    with _names_lock:
        found = [program for program, names in _names.items() if name in names]
    sizes = [program.memory_analysis() for program in found]
    if not sizes:
        return ""
    of = max(sizes, key=lambda size: sum(size.get(key, 0) for key in _PARTS))
    parts = [f"{word} {in_bytes(of[key])}" for key, word in _PARTS.items() if of.get(key)]
    return f"the program takes for {', for '.join(parts)}" if parts else ""


_PARTS = {
    "temp_size_in_bytes": "XLA's temporaries", "argument_size_in_bytes": "arguments",
    "output_size_in_bytes": "results",
}  # fmt: skip
runtime.memory_of_program.append(_describe_memory)


def _names_of_size(is_size: Callable[[int], bool]) -> set[str]:
    """Return the names of programs that allocate so much for a result or for their temporaries."""
    with _names_lock:
        loaded = [(program, set(names)) for program, names in _names.items()]
    found: set[str] = set()
    for program, names in loaded:
        pieces = [_bytes_of_piece(kind, tiles) for kind, tiles in
                  zip(program.outputs, program.tiles_of_outputs(), strict=True)]  # fmt: skip
        if any(map(is_size, [*pieces, program.memory_analysis().get("temp_size_in_bytes", 0)])):
            found |= names
    return found


def _bytes_of_piece(kind: ArrayType, tiles: Tiles) -> int:
    return math.prod(tiles.piece_shape(kind.shape)) * kind.dtype.itemsize


programs_of_size.append(_names_of_size)


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
    is_awaited: bool = False,
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
        free_outputs: for each output, whether XLA may choose its sharding.
        options: settings of XLA by name, such as `xla_backend_optimization_level`;
            `xla_backend_extra_options` is `name=value,name=value`, as in `XLA_FLAGS`. XLA's own
            defaults are used otherwise: lower optimisation was measured to compile 10-28% faster
            and to run matrix products 20% slower.
        host_callbacks: what `@xla_ffi_python_cpu_callback` with `index = i` calls
            (see `python_callback`).
        outputs: objects with `shape` and `dtype`, one for each output on one device; read from
            XLA when not given (12 us and more).
        is_awaited: whether the interpreter ends only when the program does, which calls Python.

    Raises:
        XlaError: XLA cannot parse or compile the program, or does not know an option.

    Example:
        >>> one = compile_program(
        ...     "func.func public @main() -> tensor<f32> {"
        ...     " %0 = stablehlo.constant dense<1.0> : tensor<f32> return %0 : tensor<f32> }")
        >>> one.execute([])[0].aval
        float32[]
    """
    chosen = _choose_devices("compile_program", devices, num_replicas * num_partitions)
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
    found = Executable(loaded, chosen, outputs, callbacks, is_awaited=is_awaited)
    if not callbacks and not is_awaited and _is_short(text, loaded, found):
        load = chosen[0].client.deserialize_executable
        found.run_in_caller(lambda code: load(code, where, settings, (_call_nothing,)))
    return found


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
    is_awaited: bool = False,
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
    packed: int = _ENVELOPE.unpack_from(data)[1]
    is_short, callback_count = bool(packed & _SHORT), packed & ~_SHORT
    callbacks = tuple(host_callbacks)
    if callback_count != len(callbacks):
        raise ValueError(message(
            "deserialize_program", "the number of Python callbacks differs.",
            got=f"{len(callbacks)}", expected=f"{callback_count}",
        ))  # fmt: skip
    chosen = _choose_devices("deserialize_program", devices, num_replicas * num_partitions)
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
        called = (_call_nothing,) if is_short else callbacks
        loaded = load(code, where, settings, called) if called else load(code, where, settings)
    except RuntimeFailure as error:
        fail("deserialize_program", "the runtime did not take the program", error)
    return Executable(loaded, chosen, outputs, callbacks, from_bytes=True, is_awaited=is_awaited)


# ---------------------------------------------------------------------------------- short programs
# Short programs run in the thread of their caller.
#
# The CPU's runtime gives a program of 1,000 operations and more to a thread of its own: 20 us until
# that has come and the caller has heard of the end, and the operands are in the cache of another
# core. The negation of 10,000 numbers takes 25 us so, and 5.5 in the caller's thread; the sum of a
# million 73 and 27. A caller with work of its own waits as long as the program takes, which is made
# up for by what is saved up to some 80 us; the estimate is above that, as a rule.
#
# The runtime does not let a caller of Python choose. But it runs programs with Python callbacks in
# the caller's thread, whether or not they call one, unless an operand is still to be computed
# (`execution_mode` in `pjrt_executable.cc` of IFRT; measured with jaxlib 0.10.2, 0.12.0.1; should
# it change, programs run as others do). So a short program that was started some times is
# loaded once more from its own code, 2 ms, with a callback that nothing calls; what comes from the
# disk is loaded so at once. Scatters, calls of foreign code and loops take a time that no estimate
# knows of: programs with these stay, but for loops whose text says that they are short, and so do
# long texts, whose code takes longer to load.

_STARTS_ELSEWHERE = 64  # these pay for the second loading
_MOST_TEXT, _MOST_CODE_TO_RELOAD = 1 << 14, 1 << 15
_MOST_MICROSECONDS = 100.0
_LEAST_OPERATIONS = 1000  # with fewer the runtime does so by itself
# in a microsecond: read, computed, functions evaluated; pages of results are written anew
_BYTES, _FLOPS, _FUNCTIONS, _WRITTEN_BYTES = 150e3, 60e3, 4e3, 30e3
_UNKNOWN_TIME = re.compile(
    r"stablehlo\.(?:custom_call|scatter|sort|reduce_window|select_and_scatter|convolution|fft"
    r"|rng|triangular_solve|cholesky)"
)
_SHORT_LOOP = '{is_short = "true"}'  # which ends soon, as who wrote it knows


def _is_short(text: str, loaded: Any, executable: Executable) -> bool:
    """Return whether a program on one CPU device is estimated to take less than it costs to wait.

    Args:
        text: of the program.
        loaded: what the runtime has of it.
        executable: the same, of ours.
    """
    (device, *others) = executable.devices
    if others or device.platform != "cpu" or len(text) > _MOST_TEXT or _UNKNOWN_TIME.search(text):
        return False
    if text.count("stablehlo.while") > text.count(_SHORT_LOOP):
        return False
    cost = loaded.cost_analysis()
    flops, functions = cost.get("flops", 0.0), cost.get("transcendentals", 0.0)
    if flops + functions < _LEAST_OPERATIONS:
        return False
    written = sum([math.prod(kind.shape) * kind.dtype.itemsize for kind in executable.outputs])
    moved = max(cost.get("bytes accessed", 0.0) / _BYTES, flops / _FLOPS)
    return bool(moved + functions / _FUNCTIONS + written / _WRITTEN_BYTES <= _MOST_MICROSECONDS)


def _call_nothing() -> tuple[()]:
    """Stand for a callback in a program that calls none."""
    return ()


def _choose_devices(operation: str, devices: Sequence[Any] | None, count: int) -> tuple[Any, ...]:
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
    for name in EFFORTS & options.keys():
        setattr(build, name, _effort(name, options[name]))
    single = {k: v for k, v in options.items() if k != EXTRA_OPTIONS and k not in EFFORTS}
    if single:
        result.env_option_overrides = list(single.items())
    if EXTRA_OPTIONS in options:
        result = _with_extra_options(result, str(options[EXTRA_OPTIONS]))
    return result


EFFORTS = frozenset(["optimization_level", "memory_fitting_level"])


class CompilerEffortLevel(enum.IntEnum):
    """How much XLA does for the speed or the memory of a program, on platforms that look at it.

    The options `optimization_level` and `memory_fitting_level` of a compilation take one, or its
    name.

    Example:
        >>> CompilerEffortLevel["O2"]
        <CompilerEffortLevel.O2: 29>
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


def _effort(name: str, value: OptionValue) -> int:
    levels = CompilerEffortLevel.__members__
    if isinstance(value, str) and value in levels:
        return int(levels[value])
    if not isinstance(value, int) or value not in levels.values():
        raise ValueError(message(
            "compile_program", f"the option {name} does not have this level.", got=repr(value),
            expected=", ".join(map(repr, levels)),
        ))  # fmt: skip
    return int(value)


# The options that only one back end of XLA knows are a map in its settings, which the interface for
# Python does not show. A message of Protocol Buffers is merged with one whose bytes follow its own,
# so an entry of the map is appended. Numbers of fields: `compile_options.proto` and `xla.proto`.

EXTRA_OPTIONS = "xla_backend_extra_options"
_BUILD_OPTIONS, _DEBUG_OPTIONS, _EXTRA_ENTRIES = 3, 3, 500


def _with_extra_options(result: Any, text: str) -> Any:
    """Add options `name=value`, joined by commas as in `XLA_FLAGS`."""
    assert result.executable_build_options.debug_options  # read once, they are those of `XLA_FLAGS`
    data, field = result.SerializeAsString(), byte_formats.bytes_field
    for item in text.split(","):
        name, _, value = item.partition("=")
        entry = field(1, name.encode()) + field(2, value.encode())
        data += field(_BUILD_OPTIONS, field(_DEBUG_OPTIONS, field(_EXTRA_ENTRIES, entry)))
    return _jax.CompileOptions.ParseFromString(data)


def _array_types(outputs: Sequence[Any]) -> tuple[ArrayType, ...]:
    return tuple(array_type(tuple(o.shape), np.dtype(o.dtype)) for o in outputs)


def _output_types(loaded: Any) -> tuple[ArrayType, ...]:
    """Ask the compiled program for the types of its outputs on one device."""
    module = loaded.hlo_modules()[0].as_serialized_hlo_module_proto()
    result = xla_client.XlaComputation(module).program_shape().result_shape()
    pieces = result.tuple_shapes() if result.is_tuple() else [result]
    return tuple(array_type(tuple(p.dimensions()), p.numpy_dtype()) for p in pieces)


# ---------------------------------------------------------------------------------------- orders
# The order of dimensions in the memory of buffers, where it is not that of NumPy.
#
# The elements of a buffer may lie in any order of its dimensions, the slowest first: (1, 0) has
# the columns of a matrix one after another. Programs are compiled for the orders of their
# arguments and results, which their text names (`layout_mode`), and the runtime does not look
# whether buffers fit: one in another order would be misread. So the order is a part of the
# sharding object of a buffer (`sharded_buffers.sharding_with_layouts`), by which all that is given
# to programs is compared.
#
# `reorder` brings a buffer into another order, by a program on its devices; `lies_in` reads one.

Order: TypeAlias = tuple[int, ...] | None

orders_used = [False]
"""Whether anything was ever in another order than that of NumPy; until then none is looked up."""


def layout_mode(order: Order | str) -> str:
    """Return the attribute of an argument or a result that lies in an order.

    "auto" leaves it to the compiler.
    """
    if order is None or isinstance(order, str):
        return f'mhlo.layout_mode = "{order or "default"}"'
    return f'mhlo.layout_mode = "{{{",".join(map(str, reversed(order)))}}}"'


def orders_of(layouts: Sequence[Any]) -> list[Order]:
    """Return the orders that the runtime's layouts of arguments or results name."""
    orders = [tuple(layout._xla_layout().minor_to_major())[::-1] for layout in layouts]
    return [None if order == tuple(range(len(order))) else order for order in orders]


def reorder(buffer: Any, before: Order, where: Any, after: Order, devices: tuple[Any, ...]) -> Any:
    """Return a buffer of the same pieces on the same devices, in another order.

    Args:
      buffer: the buffer.
      before: the order in which it lies.
      where: the sharding object of the other one.
      after: the order in which that one lies.
      devices: which they are.
    """
    kind = buffer.aval
    shape = where.shard_shape(kind.shape)
    program = _turning(shape, kind.dtype, before, after, devices)
    handler = result_handler(array_type(kind.shape, kind.dtype), where)
    return program.start([buffer]).consume_with_handlers([handler])[0]


@functools.lru_cache(maxsize=256)
def _turning(
    shape: tuple[int, ...], dtype: np.dtype[Any], before: Order, after: Order,
    devices: tuple[Any, ...],
) -> Executable:  # fmt: skip
    """Return the program that brings pieces of a type from one order to another."""
    kind = f"tensor<{''.join([f'{n}x' for n in shape])}{element_type(dtype)}>"
    text = (
        "module @turned { func.func public @main("
        f"%0: {kind} {{{layout_mode(before)}}}) -> ({kind} {{{layout_mode(after)}}}) "
        f"{{ return %0 : {kind} }} }}"
    )
    return compile_program(
        text, devices, num_replicas=len(devices), outputs=[array_type(shape, dtype)]
    )


def lies_in(order: Order, host: np.ndarray[Any, Any], platform: str) -> np.ndarray[Any, Any]:
    """Return what was read of a piece as an array with its elements where they belong.

    Memory of the CPU is shown as it is: with the strides of the order by jaxlib 0.12, and as if it
    lay in the order of NumPy by those before, which know no other.

    Args:
      order: in which the piece lies.
      host: what was read.
      platform: of its device.
    """
    if order is None or platform != "cpu" or host.dtype in SUB_BYTE_DTYPES:  # read as values
        return host
    if not host.flags.c_contiguous:
        return host
    raw = host.reshape([host.shape[d] for d in order])
    seen = raw.transpose(np.argsort(order))
    seen.flags.writeable = False
    return seen
