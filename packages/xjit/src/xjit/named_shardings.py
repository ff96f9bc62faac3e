"""`NamedSharding`: how an array lies on a mesh, by the names of the mesh's axes.

What XLA chose for a result is read back into one (`named_as`), so that users see their own names.

Neighbours: `meshes`, `partition_specs`; `shardy_text` writes these for the compiler.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from xjit import jaxlib_gateway as gateway
from xjit.meshes import AbstractMesh, Mesh, mesh_now
from xjit.notebooks import sharding_html
from xjit.partition_specs import UNCONSTRAINED, PartitionSpec, axes_of
from xjit.shardings import (
    Sharding,
    SingleDeviceSharding,
    TiledSharding,
    checked_memory,
    memory_text,
)
from xprim.errors import message
from xprim.tracebacks import boundary

__all__ = [
    "NamedSharding", "NoMeshError", "VaryingSharding", "check_axis_names", "in_types", "resolved",
    "says_of_explicit_axes", "sharding_named_by", "with_varying",
]  # fmt: skip

__dir__ = __all__.copy


class NoMeshError(ValueError, RuntimeError):
    """A partition spec is given where no mesh is set.

    The mesh says which devices a spec is about::

        jit(f, in_shardings=P("x"))(x)                  # which devices?
        with set_mesh(mesh):
            jit(f, in_shardings=P("x"))(x)              # those of the mesh
        jit(f, in_shardings=NamedSharding(mesh, P("x")))(x)
    """


class NamedSharding(Sharding):
    """How an array lies on a mesh.

    Args:
      mesh: a `Mesh`, or an `AbstractMesh` where a program says on which devices it runs.
      spec: for each dimension, the axes of the mesh that it is cut along.
      memory_kind: the kind of memory: `"device"`, as None, or `"pinned_host"` and
        `"unpinned_host"` where the devices have them. What is there a program brings to the
        devices when it computes with it.

    Raises:
      ValueError: the spec names an axis that the mesh does not have, or leaves a dimension to the
        compiler where all axes are explicit.

    Example:
      >>> from xjit import devices
      >>> mesh = Mesh(np.array(devices("cpu")[:1]), ("x",))
      >>> NamedSharding(mesh, PartitionSpec("x")).shard_shape((4, 2))
      (4, 2)
    """

    __slots__ = ("_hash", "memory", "mesh", "spec")

    varying: frozenset[Any] = frozenset()
    """In a type: the manual axes along which the value varies (see `VaryingSharding`)."""

    @boundary
    def __init__(
        self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None
    ) -> None:
        if not isinstance(mesh, Mesh | AbstractMesh):
            raise TypeError(message(
                "NamedSharding", "its first argument is a mesh.", got=repr(mesh),
                expected="a Mesh or an AbstractMesh",
            ))  # fmt: skip
        if not isinstance(spec, PartitionSpec):
            raise TypeError(message(
                "NamedSharding", "its second argument is a partition spec.", got=repr(spec),
                hint="NamedSharding(mesh, P('x')) cuts the first dimension along the axis x",
            ))  # fmt: skip
        some = mesh.devices_in_order[:1] if isinstance(mesh, Mesh) else ()
        self.memory = checked_memory("NamedSharding", memory_kind, *some)
        check_axis_names("NamedSharding", mesh, spec)
        if mesh.are_all_axes_explicit and UNCONSTRAINED in spec:
            raise ValueError(message(
                "NamedSharding", "no compiler chooses how arrays lie along explicit axes.",
                got=repr(spec), expected="for each dimension the axes of the mesh, or None",
            ))  # fmt: skip
        self.mesh = mesh
        self.spec = spec
        self._hash = hash((mesh, spec, self.memory))

    @boundary
    def update(self, **changes: Any) -> NamedSharding:
        """Return the same sharding with another `mesh`, `spec` or `memory_kind`.

        A spec that is a sequence of entries says nothing of sums: these stay as they are.
        """
        spec = changes.pop("spec", self.spec)
        mesh = changes.pop("mesh", self.mesh)
        kind = changes.pop("memory_kind", self.memory)
        if changes:
            raise TypeError(message(
                "NamedSharding.update", f"there is no attribute {min(changes)!r}.",
                expected="mesh, spec, memory_kind",
            ))  # fmt: skip
        spec = spec if isinstance(spec, PartitionSpec) else self.spec.update(partitions=spec)
        return NamedSharding(mesh, spec, memory_kind=kind)

    @boundary
    def with_memory_kind(self, kind: str | None) -> NamedSharding:
        """Return the same sharding in another kind of memory."""
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    @property
    def devices_in_order(self) -> tuple[Any, ...]:
        """The devices of the mesh, row by row."""
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError(message(
                "NamedSharding", "an abstract mesh has no devices.", got=repr(self),
                hint="make it of a Mesh, or use it inside a program that runs on one",
            ))  # fmt: skip
        return self.mesh.devices_in_order

    @property
    def has_devices(self) -> bool:
        """Whether the mesh has devices: an `AbstractMesh` has none."""
        return not isinstance(self.mesh, AbstractMesh)

    def tiles(self, ndim: int) -> gateway.Tiles:
        """Return which device holds which piece of an array of so many dimensions."""
        return _tiles(self.mesh.shape_tuple, self.spec, ndim)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device has all elements."""
        sizes = self.mesh.shape
        apart = (*self.spec.names(), *self.spec.unreduced)
        return math.prod([sizes[name] for name in apart]) == 1

    def check_rank(self, shape: tuple[int, ...], operation: str) -> None:
        """Raise where the spec is of more dimensions than an array has."""
        if len(self.spec) > len(shape):
            raise ValueError(message(
                operation, "the partition spec has more entries than the array has dimensions.",
                got=f"{self.spec} for the shape {shape}",
                expected=f"at most {len(shape)} entries",
            ))  # fmt: skip

    def check_shape(self, shape: tuple[int, ...], operation: str = "sharding") -> None:
        """Raise where an array of this shape cannot be spread so."""
        self.check_rank(shape, operation)
        sizes = self.mesh.shape
        for dim, part in enumerate(self.spec):
            count = math.prod([sizes[name] for name in axes_of(part)])
            if shape[dim] % count:
                names = " and ".join(map(repr, axes_of(part)))
                more = -shape[dim] % count
                raise ValueError(message(
                    operation, f"dimension {dim} does not divide evenly over the mesh.",
                    got=f"size {shape[dim]} of the shape {shape}, cut along {names}",
                    expected=f"a multiple of {count}",
                    hint=f"pad it by {more}: xpar.pad_for_sharding(x, sharding) does, and cut the "
                    "result again",
                ))  # fmt: skip

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, NamedSharding):
            return NotImplemented
        return (self._hash == other._hash and self.spec == other.spec
                and self.mesh == other.mesh and self.memory == other.memory
                and self.varying == other.varying)  # fmt: skip

    def __hash__(self) -> int:
        return self._hash

    def _repr_html_(self) -> str:
        return sharding_html(self)

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh!r}, spec={self.spec!r}{memory_text(self)})"


class VaryingSharding(NamedSharding):
    """What the type of a value says inside manual axes of a mesh along which it varies.

    Args:
      sharding: how it lies along explicit axes, with an entry for each dimension.
      varying: the manual axes along which members hold values of their own.
    """

    __slots__ = ("varying",)

    def __init__(self, sharding: NamedSharding, varying: frozenset[Any]) -> None:
        self.mesh, self.spec, self.memory = sharding.mesh, sharding.spec, sharding.memory
        self.varying = varying
        self._hash = hash((self.mesh, self.spec, self.memory, varying))

    def update(self, **changes: Any) -> VaryingSharding:
        """Return the same with another `mesh`, `spec` or `memory_kind`."""
        return VaryingSharding(NamedSharding.update(self, **changes), self.varying)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        said = NamedSharding(self.mesh, self.spec, memory_kind=self.memory)
        return VaryingSharding, (said, self.varying)

    def __repr__(self) -> str:
        axes = ", ".join(sorted(map(repr, self.varying)))
        return f"{super().__repr__()[:-1]}, varying={{{axes}}})"


def says_of_explicit_axes(spread: NamedSharding | None) -> bool:
    """Return whether a type says more than along which manual axes a value varies."""
    return spread is not None and bool(spread.spec.sums or spread.spec.names())


@functools.lru_cache(maxsize=4096)
def with_varying(
    spread: NamedSharding | None, axes: frozenset[Any], mesh: AbstractMesh, ndim: int
) -> NamedSharding | None:
    """Return what a type says that varies over these manual axes, and over no others.

    Args:
      spread: what it says of explicit axes; None for nothing.
      axes: manual axes of the mesh.
      mesh: where `spread` names none.
      ndim: the number of dimensions.
    """
    if spread is None:
        if not axes:
            return None
        return VaryingSharding(NamedSharding(mesh, PartitionSpec(*[None] * ndim)), axes)
    if axes:
        return VaryingSharding(spread, axes)
    if not says_of_explicit_axes(spread):
        return None
    return NamedSharding(spread.mesh, spread.spec, memory_kind=spread.memory)


@functools.lru_cache(maxsize=4096)
def in_types(sharding: Any, ndim: int) -> NamedSharding | None:
    """Return what the type of an array of so many dimensions keeps of how it lies."""
    if not isinstance(sharding, NamedSharding):
        return None
    mesh = sharding.mesh
    explicit = mesh.explicit_axes
    parts = [tuple([n for n in axes_of(part) if n in explicit]) for part in sharding.spec]
    sums = {name: axes.intersection(explicit) for name, axes in (
        ("unreduced", sharding.spec.unreduced), ("reduced", sharding.spec.reduced))}  # fmt: skip
    kept = None
    if any(parts) or any(sums.values()):
        parts += [()] * (ndim - len(parts))
        kept = NamedSharding(mesh.abstract_mesh, PartitionSpec(*parts, **sums))
    axes = sharding.varying.intersection(mesh.manual_axes)
    return with_varying(kept, axes, mesh.abstract_mesh, ndim) if axes else kept


def check_axis_names(operation: str, mesh: Any, spec: PartitionSpec) -> None:
    """Raise where a spec names an axis that a mesh does not have, or has sums unknown to types."""
    _check_sums(operation, mesh, spec)
    for name in (*spec.names(), *spec.sums):
        if name not in mesh.axis_names:
            raise ValueError(message(
                operation, f"the mesh has no axis {name!r}.", got=f"{spec} for {mesh!r}",
                expected=f"names among {', '.join(map(repr, mesh.axis_names))}",
            ))  # fmt: skip


def _check_sums(operation: str, mesh: Any, spec: PartitionSpec) -> None:
    for name in spec.sums.intersection(mesh.auto_axes):
        raise ValueError(message(
            operation, f"the axis {name!r} is of type Auto, and only types say what is a part of a "
            "sum.", got=f"{spec} for {mesh!r}",
            hint="make_mesh(..., axis_types=AxisType.Explicit)",
        ))  # fmt: skip


@functools.lru_cache(maxsize=4096)
def _tiles(shape: tuple[tuple[Any, int], ...], spec: PartitionSpec, ndim: int) -> gateway.Tiles:
    """Return the tiles into which a partition spec cuts an array of so many dimensions."""
    names, sizes = [name for name, _ in shape], [size for _, size in shape]
    parts = [*map(axes_of, spec), *[()] * (ndim - len(spec))]
    used = [names.index(name) for part in parts for name in part]
    summed = [i for i, name in enumerate(names) if name in spec.unreduced]
    rest = [i for i in range(len(names)) if i not in (*used, *summed)]
    numbers = np.arange(math.prod(sizes)).reshape(sizes).transpose([*used, *summed, *rest])
    counts = tuple([math.prod([sizes[names.index(n)] for n in part]) for part in parts])
    return gateway.Tiles(counts, numbers, math.prod([sizes[i] for i in summed]))


def named_as(mesh: Mesh, devices: tuple[Any, ...], tiles: gateway.Tiles) -> Sharding:
    """Return the sharding over a mesh that is meant by tiles, or one without names.

    Args:
      mesh: whose names are wanted; of the same devices in the same order.
      devices: that the numbers of `tiles` count.
      tiles: which device holds which piece.
    """
    if mesh.devices_in_order != devices:
        return TiledSharding(devices, tiles)
    return _named_as(mesh, tiles) or TiledSharding(devices, tiles)


@functools.lru_cache(maxsize=4096)
def _named_as(mesh: Mesh, tiles: gateway.Tiles) -> NamedSharding | None:
    """Return the sharding over a mesh that cuts an array into these tiles, or None."""
    places = np.empty((mesh.size, len(tiles.counts)), int)
    for place in np.ndindex(*tiles.counts):
        places[tiles.devices[place]] = place
    grid = places.reshape(*mesh.axis_sizes, len(tiles.counts))
    spec = [_axes_along(mesh, grid[..., dim]) for dim in range(len(tiles.counts))]
    while spec and not spec[-1]:
        spec.pop()
    names = [name for part in spec for name in part]
    if len(set(names)) != len(names):
        return None
    found = NamedSharding(mesh, PartitionSpec(*spec))
    return found if found.tiles(len(tiles.counts)) == tiles else None


def _axes_along(mesh: Mesh, places: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """Return the axes along which the places in one dimension grow, the slowest first."""
    steps = []
    for axis, name in enumerate(mesh.axis_names):
        line = np.moveaxis(places, axis, 0).reshape(places.shape[axis], -1)[:, 0]
        if len(line) > 1 and line[1] != line[0]:
            steps.append((-int(line[1] - line[0]), name))
    return tuple([name for _, name in sorted(steps, key=lambda step: step[0])])


def resolved(value: Any, operation: str) -> Any:
    """Return what a user gave for a sharding, with the mesh of now for a partition spec.

    Raises:
      NoMeshError: a partition spec, and no mesh is set.
    """
    if not isinstance(value, PartitionSpec):
        return value
    mesh = mesh_now()
    if mesh is None:
        raise NoMeshError(message(
            operation, "a partition spec needs a mesh, and none is set.", got=repr(value),
            hint="give NamedSharding(mesh, spec), or call it inside `with set_mesh(mesh):`",
        ))  # fmt: skip
    return NamedSharding(mesh, value)


def sharding_named_by(value: Any, operation: str) -> Sharding | None:
    """Return the sharding over a mesh that a user named, or None where it is something else.

    Memory beside that of a single device is such a place, too.

    Args:
      value: a sharding, a partition spec, a device, ...
      operation: what errors call the public function.
    """
    found = resolved(value, operation)
    if isinstance(found, SingleDeviceSharding) and found.memory is not None:
        return found
    return found if isinstance(found, NamedSharding | TiledSharding) else None
