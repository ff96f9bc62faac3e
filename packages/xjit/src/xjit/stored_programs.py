"""Compiled programs as bytes, for `pickle` and `serialize_executable`."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from xjit._devices import Device, devices as devices_of
from xjit.dispatch.arguments import Signature
from xjit.dispatch.placement import (
    LayoutPlacement,
    OneDevice,
    OverMesh,
    Placement,
    Replicas,
    laid,
    one_device,
    over_mesh,
    replicas,
)
from xjit.dispatch.program import Program
from xjit.lowering.compile import code_of, load
from xjit.lowering.modules import LoweredProgram
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import NamedSharding
from xjit.stages import Compiled, Lowered, TracedFunction
from xprim import ClosedJaxpr, Jaxpr, Var
from xprim.errors import described, message
from xprim.requirements import require_type
from xprim.tracebacks import boundary
from xprim.typing import PyTree

__all__ = ["compile_all", "deserialize_and_load", "serialize"]

__dir__ = __all__.copy


# -------------------------------------------------------------------------- parallel compilation
# Compile several programs at the same time.


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


# ------------------------------------------------------------------------------- stored programs
# Compiled programs as bytes: for `pickle`, and for `experimental.serialize_executable`.
#
#     serialize(compiled)                         -> bytes, structure of arguments, of the result
#     deserialize_and_load(bytes, in_tree, out_tree) -> Compiled
#
# Stored are the machine code, what it depends on (see `cache_disk.facts_of`), and the text of the
# program. Where a reader's machine, jaxlib or devices are others, the text is compiled anew; so
# what was stored runs wherever its platform is. Nothing is traced, and no Python code is stored.

_MARK: Final = b"xstack compiled 1\n"
_DEVICE: type[Any] = Device


@boundary
def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """Return a compiled program as bytes, and the structures of its arguments and its result.

    The bytes are code: load only what you, or somebody you trust, stored.

    Args:
      compiled: what `jit(f).lower(...).compile()` returned.

    Returns:
      The bytes; the structure of (args, kwargs); the structure of the result. The structures go
      into bytes by `pickle`, where the classes in them do.

    Raises:
      ValueError: the program calls Python functions.

    Example:
      >>> import numpy as np
      >>> from xjit import jit
      >>> compiled = jit(lambda x: x + 1).lower(np.float32(0)).compile()
      >>> deserialize_and_load(*serialize(compiled))(np.float32(2))
      Array(3., dtype=float32)
    """
    require_type(
        "serialize", compiled, Compiled, "this is not a compiled program.",
        expected="what jit(f).lower(...).compile() returns"
    )  # fmt: skip
    parts = compiled.parts()
    lowered: LoweredProgram = parts["lowered"]
    if lowered.python_functions:
        raise ValueError(message(
            "serialize", "a program that calls Python functions cannot be stored.",
            got=f"{parts['signature'].name}, with {len(lowered.python_functions)} callbacks",
            hint="ffi.register_ffi_target names a function that each process registers",
        ))  # fmt: skip
    parts["code"], parts["facts"] = code_of(
        parts.pop("executable"), lowered, parts["placement"], parts["options"]
    )
    file = io.BytesIO()
    file.write(_MARK)
    _Pickler(file, protocol=5).dump(parts)
    return file.getvalue(), compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes, in_tree: PyTree, out_tree: PyTree, backend: Any = None,
    execution_devices: Sequence[Any] | None = None,
) -> Compiled:  # fmt: skip
    """Return the compiled program that `serialize` stored; nothing is traced.

    Code of another machine or jaxlib is not used: its program is compiled anew.

    Args:
      serialized: the bytes. They are code: load only what you, or somebody you trust, stored.
      in_tree: the structure of (args, kwargs).
      out_tree: the structure of the result.
      backend: the platform whose devices run it; None for the default one.
      execution_devices: the devices that run it, in the order of those it was compiled for; by
        default those of the same ids.

    Raises:
      ValueError: the bytes are not such a program, or the devices that it needs are not there.
    """
    if not serialized.startswith(_MARK):
        raise ValueError(message(
            "deserialize_and_load", "these bytes are not a compiled program.",
            got=f"{len(serialized)} bytes that begin with {bytes(serialized[:12])!r}",
            expected="what serialize(compiled) returned",
        ))  # fmt: skip
    file = io.BytesIO(serialized)
    file.seek(len(_MARK))
    parts = _Unpickler(file, backend, execution_devices).load()
    lowered, placement = parts["lowered"], parts["placement"]
    inputs, outputs = [[Var(a) for a in parts[name]] for name in ("in_avals", "out_avals")]
    signature = parts["signature"]
    closed = ClosedJaxpr(Jaxpr([], inputs, outputs, [], signature.name))
    names = parts["names"]
    program = Program(
        closed, signature.name, donated=parts["donated"], keep_unused=parts["keep_unused"],
        placement=placement if parts["is_placed"] else None, arg_names=lambda: names,
        options=parts["options"],
    )  # fmt: skip
    program.hold(lowered, placement)
    load(parts["code"], parts["facts"], lowered, placement, parts["options"])
    args, kwargs = in_tree.unflatten(parts["in_avals"])
    traced = TracedFunction(
        jaxpr=closed, arguments=signature.split(args, kwargs).without_leaves(),
        avals=parts["in_avals"], out_tree=out_tree, program=program,
        out_placement=parts["out_placement"],
    )  # fmt: skip
    return Compiled(traced, program, program.kernel(placement, lowered, in_full=True))


class _Pickler(pickle.Pickler):
    """Stores devices by their ids, and what holds devices by what it was made of."""

    def persistent_id(self, obj: Any) -> Any:
        """Return what stands for a device."""
        return (obj.platform, obj.id) if isinstance(obj, _DEVICE) else None

    def reducer_override(self, obj: Any) -> Any:
        """Return how an object is made again."""
        make = _MAKERS.get(type(obj))
        return NotImplemented if make is None else make(obj)


_MAKERS: Final[dict[type, Any]] = {
    OneDevice: lambda x: (_placement, ("one", x.device, x.committed)),
    Replicas: lambda x: (_placement, ("each", *x.axis_sizes, x.devices, x.in_axes, x.out_axes)),
    OverMesh: lambda x: (_placement, ("split", x.devices, x.mesh, x.in_shardings, x.out_shardings)),
    LayoutPlacement: lambda x: (laid, (x.base, x.in_layouts, x.out_layouts)),
    Mesh: lambda x: (Mesh, (x.devices, x.axis_names, x.axis_types)),
    NamedSharding: lambda x: (NamedSharding, (x.mesh, x.spec)),
    Signature: lambda x: (Signature.of_parts, (x.parts(),)),
}


def _placement(kind: str, *parts: Any) -> Placement:
    return {"one": one_device, "each": replicas, "split": over_mesh}[kind](*parts)


class _Unpickler(pickle.Unpickler):
    """Finds devices by their ids, or takes those given in the order in which they are met."""

    def __init__(self, file: Any, backend: Any, devices: Sequence[Any] | None) -> None:
        super().__init__(file)
        self._given = None if devices is None else list(devices)
        self._backend = backend
        self._found: dict[Any, Any] = {}

    def persistent_load(self, pid: Any) -> Any:
        """Return the device that an id stands for."""
        if pid not in self._found:
            self._found[pid] = self._device(*pid)
        return self._found[pid]

    def _device(self, platform: str, number: int) -> Any:
        if self._given is None:
            known = {d.id: d for d in devices_of(self._backend or platform)}
        else:
            known = dict(enumerate(self._given))
            number = len(self._found)
        if number not in known:
            raise ValueError(message(
                "deserialize_and_load", "a device that the program was compiled for is not here.",
                got=f"the device {number} of {platform}", expected=f"one of {list(known.values())}",
                hint="execution_devices names those to run on",
            ))  # fmt: skip
        return known[number]
