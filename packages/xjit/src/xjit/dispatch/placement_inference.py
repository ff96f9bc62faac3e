"""Where a call runs: where its committed arguments are, or on the mesh that its program names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from xjit import jaxlib_gateway as gateway
from xjit.dispatch.fast_path import DeletedBuffer, raise_deleted
from xjit.dispatch.placement import (
    Placement,
    committed_to,
    default_placement,
    in_own_memory,
    one_device,
    over_mesh,
)
from xjit.sharding import shardings as sharding_kinds
from xjit.sharding.meshes import Mesh, current_mesh, meshes_shaped
from xjit.sharding.shardings import NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding
from xprim import ClosedJaxpr, ConcreteArray
from xprim.errors import message

__all__ = [
    "common_placement", "device_named_in", "device_put_on", "mesh_named_by", "meshes_near",
    "of_arrays", "placement_for", "with_devices",
]  # fmt: skip

__dir__ = __all__.copy

Names = Callable[[], Sequence[str]]
Requested = Sequence[Sharding | None]


def common_placement(
    arrays: Sequence[ConcreteArray], operation: str, names: Names = tuple
) -> Placement:
    """Return where a call on these arrays runs.

    Raises:
      ValueError: two arrays are committed to different devices.
    """
    first: tuple[int, Any] | None = None
    for i, x in enumerate(arrays):
        where = _where(x)
        if where is None or not where.committed:
            continue
        if first is None:
            first = (i, where)
        if type(where) is gateway.SpreadOver:
            return placement_for(arrays, operation, names)
        if where is not first[1]:
            _raise_conflict(operation, arrays, names, i)
    return default_placement() if first is None else committed_to(first[1]._device)


def device_put_on(x: ConcreteArray) -> Any:
    """Return the device that an array was put on, None where it may go anywhere or is spread."""
    where = _where(x)
    is_put = where is not None and where.committed and type(where) is not gateway.SpreadOver
    return where._device if is_put else None


def placement_for(
    arrays: Sequence[ConcreteArray], operation: str, names: Names = tuple, *,
    in_shardings: Requested = (), out_shardings: Requested = (), mesh: Mesh | None = None,
) -> Placement:  # fmt: skip
    """Return the placement of a call over several devices.

    Args:
      arrays: the arguments.
      operation: what errors call the function.
      names: returns the names of the arguments.
      in_shardings: for each argument its sharding, None leaves it; nothing at all for none.
      out_shardings: likewise for the results.
      mesh: one that the program names.

    Raises:
      ValueError: the arguments, shardings and meshes are over different devices.
    """
    requested = list(in_shardings) or [None] * len(arrays)
    if mesh is None and any(s is not None and _is_abstract(s) for s in requested):
        known = of_arrays(arrays)
        mesh = _mesh_that_fits(requested, known)
        if mesh is None and current_mesh.value is None:
            for a, k in zip(requested, known, strict=True):
                if isinstance(a, NamedSharding):
                    sharding_kinds.check_same_axes(operation, a.mesh, k)
    given = [a or _sharding_if_committed(x) for a, x in zip(requested, arrays, strict=True)]
    return make_mesh_placement(given, out_shardings, mesh, lambda i: _raise_conflict(
        operation, arrays, names, i))  # fmt: skip


def make_mesh_placement(
    in_shardings: Requested,
    out_shardings: Requested,
    mesh: Mesh | None,
    conflict: Callable[[int], Any],
) -> Placement:
    """Return the placement of a program whose arguments and results lie so.

    Args:
      in_shardings: for each argument, None where it may lie anywhere.
      out_shardings: likewise for the results; nothing at all for none.
      mesh: one that the program names.
      conflict: raises for an argument, by its number, or -1 for a result, on other devices.
    """
    everything = [*enumerate(in_shardings), *[(-1, s) for s in out_shardings]]
    named = [s.mesh for _, s in everything if isinstance(s, NamedSharding)]
    mesh = mesh or _choose_mesh(named)
    known = [s for _, s in everything if s is not None and not _is_abstract(s)]
    devices = mesh.devices_in_order if mesh else known[0].devices_in_order
    for i, sharding in everything:
        if sharding is not None and not _is_abstract(sharding) and (
            sharding.device_set != set(devices)
        ):  # fmt: skip
            conflict(i)
    return over_mesh(
        devices, mesh, tuple([s and _over(in_own_memory(s), mesh) for s in in_shardings]),
        tuple([_over(s, mesh) for s in out_shardings]),
    )  # fmt: skip


def _choose_mesh(named: Sequence[Any]) -> Mesh | None:
    """Return the devices for meshes of which some have none.

    They are those of one of that shape, or of the context mesh; where nothing else is known,
    as of a cotangent, of the nearest mesh of primals, or of the one of that shape that anybody
    holds.
    """
    known = [m for m in named if isinstance(m, Mesh)]
    shapes = [m.shape_tuple for m in named if not isinstance(m, Mesh)]
    if shapes and current_mesh.value is not None:
        known.append(current_mesh.value)
    same = [m for m in known if m.shape_tuple in shapes]
    if shapes and not known:
        near = [m for m in _meshes_nearby() if m.shape_tuple == shapes[0]]
        same = near[:1] or meshes_shaped(shapes[0])
        if len(same) != 1:
            raise sharding_kinds.NoMeshError(message(
                "mesh", "values cannot be placed on a mesh without devices.", got=repr(shapes[0]),
                hint="call it inside `with set_mesh(mesh):`",
            ))  # fmt: skip
    return next(iter(same or known), None)


_of_primals = threading.local()


def _meshes_nearby() -> tuple[Mesh, ...]:
    found: tuple[Mesh, ...] = getattr(_of_primals, "meshes", ())
    return found


@contextmanager
def meshes_near(meshes: tuple[Mesh, ...]) -> Iterator[None]:
    """Place values of which only the type is known on the devices of meshes, the first first."""
    outer = _meshes_nearby()
    _of_primals.meshes = (*meshes, *outer)
    try:
        yield
    finally:
        _of_primals.meshes = outer


def _mesh_that_fits(requested: Requested, known: Requested) -> Mesh | None:
    """Return the mesh of an argument that gives devices to one that is requested without them."""
    shapes = [s.mesh.shape_tuple for s in requested if isinstance(s, NamedSharding)]
    meshes = [s.mesh for s in known if isinstance(s, NamedSharding)]
    return next((m for m in meshes if isinstance(m, Mesh) and m.shape_tuple in shapes), None)


def mesh_named_by(closed: ClosedJaxpr, shardings: Callable[[], Requested]) -> Mesh | None:
    """Return the mesh on which a program runs by what its equations name, None for none.

    Args:
      closed: the program.
      shardings: returns those of the arguments, one of which gives devices to an abstract mesh.
    """
    mesh = sharding_kinds.mesh_within(closed)
    if mesh is None:
        abstract = sharding_kinds.abstract_mesh_within(closed, constrains=bool(_meshes_nearby()))
        if abstract is not None and abstract.size > 1:
            wanted = [NamedSharding(abstract, PartitionSpec())]
            mesh = _mesh_that_fits(wanted, shardings()) or _choose_mesh([abstract])
    return mesh


def device_named_in(
    closed: ClosedJaxpr, operation: str, mesh: Mesh | None, shardings: Callable[[], Requested]
) -> Placement | None:
    """Return the device that a program constrains a value to, None where it names none.

    Args:
      closed: the program.
      operation: what errors call it.
      mesh: one that it names, too.
      shardings: returns those of arguments and results, None for what follows.

    Raises:
      ValueError: the program, or a sharding, names other devices.
    """
    named = sharding_kinds.devices_within(closed)
    if not named:
        return None
    others = [named, *[s.device_set for s in shardings() if s is not None and s.has_devices]]
    others += [] if mesh is None else [set(mesh.devices_in_order)]
    device = min(named, key=str)
    if any(devices != {device} for devices in others):
        everything = sorted({str(d) for devices in others for d in devices})
        raise ValueError(message(
            operation, "a constraint names one device, and the program runs on others.",
            got=f"with_sharding_constraint to {device}, and values on {', '.join(everything)}",
            hint=f"device_put(x, {device!r}) before the call, or leave the constraint out",
        ))  # fmt: skip
    return committed_to(device)


def with_devices(sharding: Sharding) -> Sharding:
    """Return a sharding over devices, for one over an abstract mesh; others are what they are."""
    if not isinstance(sharding, NamedSharding) or not _is_abstract(sharding):
        return sharding
    mesh = _choose_mesh([sharding.mesh])
    return NamedSharding(sharding.mesh if mesh is None else mesh.devices_like(sharding.mesh),
                         sharding.spec)  # fmt: skip


def _over(sharding: Sharding | None, mesh: Mesh | None) -> Sharding | None:
    """Return a sharding with devices, where it was abstract."""
    if isinstance(sharding, NamedSharding) and _is_abstract(sharding) and mesh is not None:
        return NamedSharding(mesh.devices_like(sharding.mesh), sharding.spec,
                             memory_kind=sharding.memory)  # fmt: skip
    if isinstance(sharding, SingleDeviceSharding) and sharding.memory is None:
        return None
    return sharding


def _is_abstract(sharding: Sharding) -> bool:
    return isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, Mesh)


def are_concrete(shardings: Requested) -> bool:
    """Return whether all say on which devices of a mesh a value lies, whatever mesh is set."""
    return all(isinstance(s, NamedSharding) and not _is_abstract(s) for s in shardings)


def _where(x: ConcreteArray) -> Any:
    """Return the sharding object of an array's buffer, or None for one on the host."""
    buffer = x.buffer
    if buffer is None:
        return None
    if type(buffer) is DeletedBuffer:
        raise_deleted(x.aval.str_long(), buffer)
    where = gateway.placement_of(buffer)
    if type(where) is gateway.SpreadOver and isinstance(where.spread, SingleDeviceSharding):
        # In the memory of its host, or in an order of its own.
        return one_device(where.devices[0], where.committed).sharding
    return where


def of_arrays(arrays: Sequence[ConcreteArray]) -> list[Sharding | None]:
    """Return the shardings of arrays that were put where they are, None for others."""
    return [_sharding_if_committed(x) for x in arrays]


def _is_spread(x: ConcreteArray) -> bool:
    return type(_where(x)) is gateway.SpreadOver


def _sharding_if_committed(x: ConcreteArray) -> Sharding | None:
    """Return the sharding of an array that was put where it is."""
    where = _where(x)
    if type(where) is gateway.SpreadOver and where.committed:
        spread: Sharding = where.spread
        return spread
    return SingleDeviceSharding(where._device) if where is not None and where.committed else None


def _raise_conflict(
    operation: str, arrays: Sequence[ConcreteArray], names: Names, i: int
) -> NoReturn:
    known = names()

    def describe(i: int) -> str:
        name = known[i] if i < len(known) else f"operand {i}"
        where = gateway.placement_of(arrays[i].buffer)
        devices = gateway.devices_of(arrays[i].buffer)
        count = f"{len(devices)} devices, {devices[0]} to {devices[-1]}"
        if len(devices) == 1:
            return f"{name}: {arrays[i].aval.str_long()} on {devices[0]}"
        return f"{name}: {arrays[i].aval.str_long()} on " + (
            count if hasattr(where, "spread") else str(where._device))  # fmt: skip

    placed = [k for k, x in enumerate(arrays) if _sharding_if_committed(x) is not None]
    others = (
        [
            k
            for k in placed
            if _sharding_if_committed(arrays[k]) != _sharding_if_committed(arrays[i])
        ]
        if i >= 0
        else []
    )
    between = "\n" if any(map(_is_spread, arrays)) else "; "
    shown = [*others[:1], i] if i >= 0 else placed[:2]
    raise ValueError(message(
        "Received incompatible devices for jitted computation",
        f"those of the arguments of {operation}.",
        got=f"{between.join(map(describe, shown))}",
        hint="bring them together with device_put(x, device)",
    ))  # fmt: skip
