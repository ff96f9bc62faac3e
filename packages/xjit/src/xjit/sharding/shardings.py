"""Shardings: how the elements of an array are split over devices, in the words users know.

`Sharding` and `SingleDeviceSharding`; `PartitionSpec` names for each dimension of an array the
mesh axes along which it is split; `NamedSharding` is a mesh with a spec. `mesh_within` and kin
find the meshes, shardings and devices that a program names.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, Self

import numpy as np

import xtree
from xjit import jaxlib_gateway as gateway
from xjit.sharding.meshes import AbstractMesh, Mesh, OfThisProcess, mesh_now, sharding_html
from xprim import ClosedJaxpr, Equation, ManualAxisType, ShapedArray, config
from xprim.avals import PINNED_HOST
from xprim.errors import ArgumentError, message
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundary
from xprim.typing import DeviceLike
from xtree.records import Immutable, set_once

__all__ = [
    "Sharding", "SingleDeviceSharding", "make_single_device_sharding", "UNCONSTRAINED", "P",
    "PartitionSpec", "axes_of", "NO_MESH", "NamedSharding", "NoMeshError", "UnknownPlatformError",
    "VaryingSharding",
    "along_explicit_axes", "check_axis_names", "check_same_axes", "default_device", "in_types",
    "resolve",
    "says_of_explicit_axes", "says_of_manual_axes", "sharding_named_by",
    "with_manual_axes", "abstract_mesh_within", "cuts_of", "devices_within", "mesh_within",
    "places_in",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------- shardings
# Shardings: how the elements of an array are placed on devices, in the terms of users.
#
# `Sharding` is the base; `SingleDeviceSharding` says that an array is wholly on one device.
# `device_named_by` reads what users pass where one device is requested.

Index = tuple[slice, ...]
NO_MESH = AbstractMesh((), ())
_MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")


class Sharding(Immutable):
    """How the elements of an array are placed on devices.

    A kind of sharding says its `devices_in_order` and its `tiles`; the rest follows.
    """

    __slots__ = ()
    memory: str | None = None
    """The kind of memory, None for that in which the devices compute."""

    def __copy__(self) -> Self:
        return self  # nothing in it changes

    def __deepcopy__(self, _memo: Any) -> Self:
        return self  # devices are those of this process

    @property
    def devices_in_order(self) -> tuple[Any, ...]:
        """The devices, in the order in which programs number them."""
        raise TypeError(f"{type(self).__name__}: must say its devices_in_order.")

    def tiles(self, ndim: int) -> gateway.Tiles:
        """Return which device holds which piece of an array of so many dimensions."""
        raise TypeError(f"{type(self).__name__}: must say its tiles.")

    @property
    def device_set(self) -> set[Any]:
        """The devices that hold pieces of the array."""
        return set(self.devices_in_order)

    @property
    def has_devices(self) -> bool:
        """Whether it says on which devices arrays are."""
        return True

    @property
    def num_devices(self) -> int:
        """The number of devices."""
        return len(self.device_set)

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process."""
        devices = self.devices_in_order
        here = devices[0].client.process_index()
        return {device for device in devices if device.process_index == here}

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        """The devices in order, by the name that libraries written for JAX read."""
        return self.devices_in_order

    @property
    def _addressable_device_assignment(self) -> tuple[Any, ...]:
        """Those of this process, likewise."""
        here = self.addressable_devices
        return tuple([device for device in self.devices_in_order if device in here])

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        """Return XLA's own description, for an array of so many dimensions; likewise."""
        return gateway.hlo_sharding(self.tiles(num_dimensions))

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return len(self.addressable_devices) == self.num_devices

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device has all elements."""
        raise TypeError(f"{type(self).__name__}: must say whether it is_fully_replicated.")

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory: that of the devices, or of their host."""
        return self.memory or _OWN_MEMORY

    @boundary
    def with_memory_kind(self, kind: str | None) -> Sharding:
        """Return the same sharding in another kind of memory.

        Raises:
          ValueError: the devices have no such memory.
        """
        if kind is not None and kind != self.memory_kind:
            raise ValueError(message(
                type(self).__name__, f"pieces without names have no memory of kind {kind!r}.",
                hint="device_put(x, NamedSharding(mesh, spec, memory_kind=...))",
            ))  # fmt: skip
        return self

    def check_rank(self, shape: tuple[int, ...], operation: str) -> None:
        """Raise where no array of so many dimensions can be spread so."""

    def check_shape(self, shape: tuple[int, ...], operation: str = "sharding") -> None:
        """Raise where an array of this shape cannot be spread so."""

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        """Raise ValueError where an array of so many dimensions cannot be sharded so."""
        self.check_rank(tuple(aval_shape), "sharding")

    @boundary
    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the piece on each device of an array of a shape.

        Raises:
          ValueError: the shape cannot be cut so.
        """
        shape = tuple(global_shape)
        self.check_shape(shape)
        return self.tiles(len(shape)).piece_shape(shape)

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> Mapping[Any, Index]:
        """Return for each device the place of its piece in an array of a shape.

        Raises:
          ValueError: the shape cannot be cut so.
        """
        shape = tuple(global_shape)
        self.check_shape(shape)
        indices = self.tiles(len(shape)).indices(shape)
        return dict(zip(self.devices_in_order, indices, strict=True))

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> Mapping[Any, Index]:
        """Return what `devices_indices_map` does, for the devices of this process."""
        here = self.addressable_devices
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if d in here}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether arrays of so many dimensions lie in the same way under both.

        Of two over abstract meshes, whether the pieces have the same places, whatever the axes are
        called. One that has devices is not equivalent to one that has none.
        """
        if self.has_devices != other.has_devices:
            return False
        if self.has_devices and self.devices_in_order != other.devices_in_order:
            return False
        return self.memory == other.memory and self.tiles(ndim) == other.tiles(ndim)


class SingleDeviceSharding(Sharding, OfThisProcess):
    """The whole array is on one device.

    Example:
      >>> from xjit import devices
      >>> SingleDeviceSharding(devices("cpu")[0]).num_devices
      1
    """

    __slots__ = ("_device", "memory")
    _device: DeviceLike
    _holds = "a device"
    _instead = "pickle the number of the device, device.id"

    def __init__(self, device: DeviceLike, *, memory_kind: str | None = None) -> None:
        set_once(self, "memory", check_memory("SingleDeviceSharding", memory_kind, device))
        set_once(self, "_device", device)

    @boundary
    def with_memory_kind(self, kind: str | None) -> SingleDeviceSharding:
        """Return the same sharding in another kind of memory."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    @property
    def devices_in_order(self) -> tuple[Any, ...]:
        """The one device."""
        return (self._device,)

    def tiles(self, ndim: int) -> gateway.Tiles:
        """Return one piece, the whole."""
        return gateway.whole(1, ndim)

    @property
    def is_fully_replicated(self) -> bool:
        """True: the one device has all elements."""
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SingleDeviceSharding):
            return NotImplemented
        return bool(self._device == other._device) and self.memory == other.memory

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self._device, self.memory))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}{memory_text(self)})"


def make_single_device_sharding(
    device: DeviceLike, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """Return the sharding of arrays that are wholly on one device.

    Args:
      device: the device.
      memory_kind: the kind of memory: `"device"`, as None, or `"pinned_host"` and
        `"unpinned_host"` where the device has them.
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


class TiledSharding(Sharding, OfThisProcess):
    """Pieces on devices in a way that no partition spec over a mesh names.

    A compiled program may choose such a one for a result: half of an axis for one dimension.

    Args:
      devices: in order.
      tiles: which device holds which piece.
    """

    __slots__ = ("_devices", "_tiles")
    _devices: tuple[Any, ...]
    _tiles: gateway.Tiles
    _holds = "devices"
    _instead = "pickle a partition spec, and mesh.abstract_mesh"

    def __init__(self, devices: tuple[Any, ...], tiles: gateway.Tiles) -> None:
        set_once(self, "_devices", devices)
        set_once(self, "_tiles", tiles)

    @property
    def devices_in_order(self) -> tuple[Any, ...]:
        """The devices, in the order in which programs number them."""
        return self._devices

    def tiles(self, ndim: int) -> gateway.Tiles:
        """Return which device holds which piece; dimensions at the end are whole."""
        counts = self._tiles.counts
        more = (1,) * (ndim - len(counts))
        own = self._tiles
        return gateway.Tiles(counts + more, own.devices, own.summands) if more else own

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device has all elements."""
        return math.prod(self._tiles.counts) * self._tiles.summands == 1

    def check_shape(self, shape: tuple[int, ...], operation: str = "sharding") -> None:
        """Raise where an array of this shape cannot be spread so."""
        counts = self._tiles.counts
        if len(shape) < len(counts) or any(n % c for n, c in zip(shape, counts, strict=False)):
            raise ValueError(message(
                operation, "an array of this shape cannot be sharded so.", got=f"shape {shape}",
                expected=f"multiples of {counts}",
            ))  # fmt: skip

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TiledSharding):
            return NotImplemented
        return self._devices == other._devices and self._tiles == other._tiles

    def __hash__(self) -> int:
        return hash((self._devices, self._tiles))

    def __repr__(self) -> str:
        return f"TiledSharding(pieces={self._tiles.counts}, devices={self._tiles.devices.tolist()})"


_OWN_MEMORY = "device"


def check_memory(operation: str, kind: str | None, device: Any = None) -> str | None:
    """Return what a sharding keeps of a kind of memory: None for that of the devices.

    Args:
      operation: what errors call the public function.
      kind: the kind that is requested.
      device: one of the devices; without it all kinds are known that any device has.

    Raises:
      ValueError: the device has no such memory.
    """
    if kind is None or kind == _OWN_MEMORY:
        return None
    known: Any = _MEMORY_KINDS
    if isinstance(device, gateway.Device):
        known = sorted({memory.kind for memory in device.addressable_memories()})
    require_choice(operation, "memory kind", kind, known)
    return kind


def memory_text(sharding: Sharding) -> str:
    """Return what representations say of the memory, nothing for that of the devices."""
    return "" if sharding.memory is None else f", memory_kind={sharding.memory!r}"


def device_named_by(value: Any, operation: str) -> Any:
    """Return the device that a user's argument names, or None for None.

    Args:
      value: a device, the name of a platform, a sharding of one device, or None.
      operation: what errors call the public function.

    Raises:
      UnknownPlatformError: unknown platform.
      ValueError: a sharding over several devices.
      TypeError: anything else.
    """
    if value is None or isinstance(value, gateway.Device):
        return value
    if isinstance(value, str):
        return _device_of_platform(value, operation)
    devices = getattr(value, "device_set", None)
    if devices is None:
        raise ArgumentError(message(
            operation, f"{value!r} is not a place.",
            expected="a device, the name of a platform, or a SingleDeviceSharding",
        ))  # fmt: skip
    if len(devices) != 1:
        raise ValueError(message(
            operation, f"a sharding over {len(devices)} devices cannot be used here.",
            expected="a device or a sharding of one device",
            hint="the package xpar spreads arrays over several devices",
        ))  # fmt: skip
    return next(iter(devices))


def default_device() -> Any:
    """Return the device of data that was not put on one."""
    chosen = config.values.default_device
    return gateway.default_device(chosen) if chosen is None or isinstance(chosen, str) else chosen


class UnknownPlatformError(ArgumentError, RuntimeError):
    """A place is named by a string that is the name of no platform of this process.

    Devices have no names::

        device_put(x, "cpu:1")
        device_put(x, devices("cpu")[1])        # the device itself
        device_put(x, "cpu")                    # or the first one of a platform
    """


def _device_of_platform(name: str, operation: str) -> Any:
    try:
        return gateway.default_device(name)
    except gateway.XlaError:  # says itself why no device can be used
        raise
    except RuntimeError as error:
        there = [platform for platform in gateway.platforms() if platform != name]
        raise UnknownPlatformError(message(
            operation, f"unknown platform {name!r}.",
            expected=f"{' or '.join(map(repr, there))}, a device, or a SingleDeviceSharding",
            hint=f"{str(error).splitlines()[0]}",
        )) from None  # fmt: skip


def one_device_in(tree: Any, operation: str) -> Any:
    """Return the one device that all leaves of a tree of places name, or None."""
    found = [device_named_by(leaf, operation) for leaf in xtree.leaves(tree)]
    distinct = list(dict.fromkeys(found))
    if len(distinct) > 1:
        raise ValueError(message(
            operation, "a program runs on one device.", got=", ".join(map(str, distinct)),
            hint="the package xpar spreads programs over several devices",
        ))  # fmt: skip
    return distinct[0] if distinct else None


# ------------------------------------------------------------------------------- partition specs
# Partition specs: for each dimension of an array, the mesh axes that it is cut along.


class _Unconstrained:
    """What stands in a partition spec for a dimension that the compiler may cut as it likes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class PartitionSpec(Immutable):
    """For each dimension of an array, the mesh axes that it is cut along.

    Args:
      *partitions: for each dimension an axis name, a tuple of them (the first the slowest), None
        where the dimension is whole, or `PartitionSpec.UNCONSTRAINED` where the compiler decides.
        Dimensions that are left out at the end are whole.
      unreduced: a set of axes whose members hold parts of a sum: the array is what they add up to.
      reduced: a set of axes whose members all have the array, and its cotangent in parts: the
        derivative by such an array is `unreduced`, and the other way round.

    Raises:
      ValueError: an axis name occurs twice.
      TypeError: the axes do not come in a set.

    Example:
      >>> PartitionSpec("x", None, ("y", "z"))
      PartitionSpec('x', None, ('y', 'z'))
      >>> PartitionSpec("x", unreduced={"y"})
      PartitionSpec('x', unreduced={'y'})
      >>> len(PartitionSpec())
      0
    """

    __slots__ = ("_partitions", "reduced", "unreduced")
    UNCONSTRAINED = UNCONSTRAINED

    unreduced: frozenset[Any]
    reduced: frozenset[Any]
    _partitions: tuple[Any, ...]

    @boundary
    def __init__(
        self, *partitions: Any, unreduced: Iterable[Any] = frozenset(),
        reduced: Iterable[Any] = frozenset(),
    ) -> None:  # fmt: skip
        set_once(self, "unreduced", _axes_in_set("unreduced", unreduced))
        set_once(self, "reduced", _axes_in_set("reduced", reduced))
        set_once(self, "_partitions", tuple(map(_canonical, partitions)))
        names = [*self.names(), *self.unreduced, *self.reduced]
        if len(set(names)) != len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise ValueError(message(
                "PartitionSpec", f"the axis name {twice!r} occurs twice.", got=repr(self),
                expected="each axis of a mesh shards at most one dimension" + (
                    ", or is of one set" if self.sums else ""),
            ))  # fmt: skip

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The entries for the dimensions."""
        return self._partitions

    @property
    def sums(self) -> frozenset[Any]:
        """The axes of both sets: those along which the array or its cotangent is in parts."""
        return self.unreduced | self.reduced

    @boundary
    def update(self, **changes: Any) -> PartitionSpec:
        """Return the same spec with other `partitions`, or another set: `unreduced`, `reduced`."""
        given = {"partitions": self._partitions, "unreduced": self.unreduced,
                 "reduced": self.reduced}  # fmt: skip
        for name in changes.keys() - given.keys():
            raise TypeError(message(
                "PartitionSpec.update", f"unknown attribute {name!r}.",
                expected=", ".join(given),
            ))  # fmt: skip
        given |= changes
        return PartitionSpec(
            *given["partitions"], unreduced=given["unreduced"], reduced=given["reduced"]
        )

    def names(self) -> list[Any]:
        """Return all axis names that cut dimensions, in order."""
        return [name for part in self._partitions for name in axes_of(part)]

    def index(self, part: Any) -> int:
        """Return the first dimension that is cut by these axes; ValueError where none is."""
        return self._partitions.index(_canonical(part))

    def count(self, part: Any) -> int:
        """Return how many dimensions are cut by these axes."""
        return self._partitions.count(_canonical(part))

    def __getitem__(self, i: Any) -> Any:
        return self._partitions[i]

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __add__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, PartitionSpec | tuple):
            return NotImplemented
        return self._join(self, other, other)

    def __radd__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        return self._join(other, self, other)

    def _join(self, first: Iterable[Any], then: Iterable[Any], other: Any) -> PartitionSpec:
        more = other if isinstance(other, PartitionSpec) else PartitionSpec()
        return PartitionSpec(
            *first, *then, unreduced=self.unreduced | more.unreduced,
            reduced=self.reduced | more.reduced,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSpec):
            return (self._partitions == other._partitions and self.unreduced == other.unreduced
                    and self.reduced == other.reduced)  # fmt: skip
        if isinstance(other, tuple):
            return not self.sums and self._partitions == tuple(map(_canonical, other))
        return NotImplemented

    def __hash__(self) -> int:
        if not self.sums:
            return hash(self._partitions)
        return hash((self._partitions, self.unreduced, self.reduced))

    def __reduce__(self) -> Any:
        if not self.sums:
            return PartitionSpec, self._partitions
        return _with_sums, (self._partitions, self.unreduced, self.reduced)

    def __repr__(self) -> str:
        sets = [f"{name}={{{', '.join(sorted(map(repr, axes)))}}}"
                for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced))
                if axes]  # fmt: skip
        return f"PartitionSpec({', '.join([*map(repr, self._partitions), *sets])})"


def _with_sums(partitions: Any, unreduced: Any, reduced: Any) -> PartitionSpec:
    """Return the spec that was pickled."""
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


P = PartitionSpec
"""`PartitionSpec`, by its short name."""


def axes_of(part: Any) -> tuple[Any, ...]:
    """Return the axis names of one dimension."""
    if part is None or part is UNCONSTRAINED:
        return ()
    return part if isinstance(part, tuple) else (part,)


def _canonical(part: Any) -> Any:
    """Return an entry with `("x",)` as `"x"`, and no names at all as None."""
    if not isinstance(part, tuple | list):
        return part
    for name in part:
        if isinstance(name, tuple | list):
            raise ValueError(message(
                "PartitionSpec", "an entry is a name or a tuple of names, and this one has a tuple "
                "in it.", got=repr(part), expected=f"{_flat(part)!r}",
            ))  # fmt: skip
    return part[0] if len(part) == 1 else tuple(part) or None


def _flat(part: Any) -> tuple[Any, ...]:
    """Return the names of an entry in which tuples are nested."""
    return tuple([
        name for item in part
        for name in (_flat(item) if isinstance(item, tuple | list) else (item,))
    ])  # fmt: skip


def _axes_in_set(keyword: str, axes: Any) -> frozenset[Any]:
    """Return the axes of a keyword, which come in a set: a string would be one of letters."""
    if not isinstance(axes, set | frozenset):
        raise TypeError(message(
            "PartitionSpec", f"{keyword} takes a set of axis names.", got=f"{keyword}={axes!r}",
            hint=f"{keyword}={{'x'}}",
        ))  # fmt: skip
    if None in axes or UNCONSTRAINED in axes:
        raise ValueError(message(
            "PartitionSpec", f"{keyword} names axes of a mesh.", got=f"{keyword}={axes!r}",
        ))  # fmt: skip
    return frozenset(axes)


# ------------------------------------------------------------------------------- named shardings
# `NamedSharding`: the sharding of an array on a mesh, by the names of the mesh's axes.
#
# What XLA chose for a result is read back into one (`name_tiles`), so that users see their own
# names.


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

    mesh: Mesh | AbstractMesh
    spec: PartitionSpec
    _hash: int
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
        memory = check_memory("NamedSharding", memory_kind, *some)
        check_axis_names("NamedSharding", mesh, spec)
        if mesh.are_all_axes_explicit and UNCONSTRAINED in spec:
            raise ValueError(message(
                "NamedSharding", "the compiler does not choose shardings along explicit axes.",
                got=repr(spec), expected="for each dimension the axes of the mesh, or None",
            ))  # fmt: skip
        set_once(self, "mesh", mesh)
        set_once(self, "spec", spec)
        set_once(self, "memory", memory)
        set_once(self, "_hash", hash((mesh, spec, memory)))

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
                "NamedSharding.update", f"unknown attribute {min(changes)!r}.",
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
    def memory_kind(self) -> str | None:
        """The kind of memory; None where none is named and the mesh has no devices."""
        return self.memory or (_OWN_MEMORY if self.has_devices else None)

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
                    got=f"size {shape[dim]} of the shape {shape}, sharded along {names}",
                    expected=f"a multiple of {count}",
                    hint=f"pad it by {more}: xpar.pad_for_sharding(x, sharding) does, and slice "
                    "the result",
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

    def __reduce__(self) -> Any:
        return _named_sharding, (self.mesh, self.spec, self.memory)

    def _repr_html_(self) -> str:
        return sharding_html(self)

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh!r}, spec={self.spec!r}{memory_text(self)})"


def _named_sharding(mesh: Any, spec: PartitionSpec, memory_kind: str | None) -> NamedSharding:
    """Return the sharding that was pickled."""
    return NamedSharding(mesh, spec, memory_kind=memory_kind)


class VaryingSharding(NamedSharding):
    """What the type of a value says inside manual axes of a mesh along which it varies.

    Args:
      sharding: its sharding along explicit axes, with an entry for each dimension.
      varying: the manual axes along which members hold values of their own.
    """

    __slots__ = ("varying",)
    varying: frozenset[Any]

    def __init__(self, sharding: NamedSharding, varying: frozenset[Any]) -> None:
        for name in ("mesh", "spec", "memory"):
            set_once(self, name, getattr(sharding, name))
        set_once(self, "varying", varying)
        set_once(self, "_hash", hash((self.mesh, self.spec, self.memory, varying)))

    def update(self, **changes: Any) -> VaryingSharding:
        """Return the same with another `mesh`, `spec` or `memory_kind`."""
        return VaryingSharding(NamedSharding.update(self, **changes), self.varying)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return VaryingSharding, (
            _named_sharding(self.mesh, self.spec, self.memory),
            self.varying,
        )

    def __repr__(self) -> str:
        axes = ", ".join(sorted(map(repr, self.varying)))
        return f"{super().__repr__()[:-1]}, varying={{{axes}}})"


def says_of_explicit_axes(sharding: NamedSharding | None) -> bool:
    """Return whether a type says more than what members of manual axes hold."""
    if sharding is None:
        return False
    spec = sharding.spec
    return bool(spec.names()) or not spec.sums.issubset(sharding.mesh.manual_axes)


def says_of_manual_axes(sharding: NamedSharding | None) -> bool:
    """Return whether a type says what members of manual axes hold, other than one value for all."""
    if sharding is None:
        return False
    return bool(sharding.varying) or not sharding.spec.sums.isdisjoint(sharding.mesh.manual_axes)


@functools.lru_cache(maxsize=4096)
def along_explicit_axes(sharding: NamedSharding | None) -> NamedSharding | None:
    """Return what a type says of explicit axes alone, None for nothing."""
    if sharding is None or not says_of_explicit_axes(sharding):
        return None
    spec, manual = sharding.spec, sharding.mesh.manual_axes
    spec = spec.update(
        unreduced=spec.unreduced.difference(manual), reduced=spec.reduced.difference(manual)
    )
    return NamedSharding(sharding.mesh, spec)


@functools.lru_cache(maxsize=4096)
def with_manual_axes(
    sharding: NamedSharding | None, held: ManualAxisType, mesh: AbstractMesh, ndim: int
) -> NamedSharding | None:
    """Return what a type says of a value, of which the members of manual axes hold this.

    Args:
      sharding: that along explicit axes; None for none.
      held: what members hold.
      mesh: as it is inside.
      ndim: the number of dimensions.
    """
    kept = along_explicit_axes(sharding)
    memory = None if sharding is None else sharding.memory
    if not any(held):
        if memory is None:
            return kept
        return _on_host(ndim) if kept is None else kept.with_memory_kind(memory)
    spec = PartitionSpec(*[None] * ndim) if kept is None else kept.spec
    found = NamedSharding(mesh, spec.update(
        unreduced=spec.unreduced | held.unreduced, reduced=spec.reduced | held.reduced
    ), memory_kind=memory)  # fmt: skip
    return VaryingSharding(found, held.varying) if held.varying else found


@functools.lru_cache(maxsize=4096)
def in_types(sharding: Any, ndim: int) -> NamedSharding | None:
    """Return what the type of an array of so many dimensions keeps of its sharding.

    That is the explicit axes, what members of manual axes hold, and the memory of the host.
    """
    memory = (
        PINNED_HOST if isinstance(sharding, Sharding) and sharding.memory == PINNED_HOST else None
    )
    if not isinstance(sharding, NamedSharding):
        return None if memory is None else _on_host(ndim)
    mesh = sharding.mesh
    explicit = mesh.explicit_axes
    parts = [tuple([n for n in axes_of(part) if n in explicit]) for part in sharding.spec]
    sums = {name: axes.difference(mesh.auto_axes) for name, axes in (
        ("unreduced", sharding.spec.unreduced), ("reduced", sharding.spec.reduced))}  # fmt: skip
    axes = sharding.varying.intersection(mesh.manual_axes)
    if not (any(parts) or any(sums.values()) or axes):
        return None if memory is None else _on_host(ndim)
    parts += [()] * (ndim - len(parts))
    kept = NamedSharding(mesh.abstract_mesh, PartitionSpec(*parts, **sums), memory_kind=memory)
    return VaryingSharding(kept, axes) if axes else kept


def _on_host(ndim: int) -> NamedSharding:
    """Return the sharding in the type of an array in the memory of the host, on no mesh."""
    return NamedSharding(NO_MESH, PartitionSpec(*[None] * ndim), memory_kind=PINNED_HOST)


def check_axis_names(operation: str, mesh: Any, spec: PartitionSpec) -> None:
    """Raise where a spec names an axis that a mesh does not have, or has sums unknown to types."""
    _check_sums(operation, mesh, spec)
    for name in (*spec.names(), *spec.sums):
        if name not in mesh.axis_names:
            raise ValueError(message(
                operation, f"the mesh has no axis {name!r}.", got=f"{spec} for {mesh!r}",
                expected=f"names among {', '.join(map(repr, mesh.axis_names))}",
            ))  # fmt: skip


def check_same_axes(operation: str, mesh: Mesh | AbstractMesh, known: Any) -> None:
    """Raise for a mesh without devices that has other axes than the mesh of an array.

    Args:
      operation: what errors call the public function.
      mesh: of the sharding that is requested; one with devices is not checked.
      known: the sharding of the array.
    """
    if isinstance(mesh, Mesh) or not isinstance(known, NamedSharding):
        return
    other = known.mesh
    require(
        isinstance(other, AbstractMesh) or mesh.size != other.size
        or mesh.shape_tuple == other.shape_tuple,
        operation, "an abstract mesh has other axes than the mesh of an argument.",
        got={"abstract": mesh, "argument": other},
        hint="mesh.abstract_mesh of that mesh has its axes; or give the Mesh that is meant",
    )  # fmt: skip


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


def name_tiles(mesh: Mesh, devices: tuple[Any, ...], tiles: gateway.Tiles) -> Sharding:
    """Return the sharding over a mesh that is meant by tiles, or one without names.

    Args:
      mesh: whose names are wanted; of the same devices in the same order.
      devices: that the numbers of `tiles` count.
      tiles: which device holds which piece.
    """
    if mesh.devices_in_order != devices:
        return TiledSharding(devices, tiles)
    return _sharding_over(mesh, tiles) or TiledSharding(devices, tiles)


@functools.lru_cache(maxsize=4096)
def _sharding_over(mesh: Mesh, tiles: gateway.Tiles) -> NamedSharding | None:
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


def resolve(value: Any, operation: str) -> Any:
    """Return what a user gave for a sharding, over the context mesh where it has no devices.

    That is a partition spec, or a sharding over an abstract mesh that is the context mesh's. That
    of a type outside of all meshes is the memory of the default device.

    Raises:
      NoMeshError: a partition spec, and no mesh is set.
    """
    is_abstract = isinstance(value, NamedSharding) and not value.has_devices
    if not is_abstract and not isinstance(value, PartitionSpec):
        return value
    if is_abstract and not value.mesh.axis_names and value.memory is not None:
        return SingleDeviceSharding(default_device(), memory_kind=value.memory)
    mesh = mesh_now()
    if is_abstract:
        in_context = isinstance(mesh, Mesh) and mesh.abstract_mesh == value.mesh
        return value.update(mesh=mesh) if in_context else value
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
    found = resolve(value, operation)
    if isinstance(found, SingleDeviceSharding) and found.memory is not None:
        return found
    return found if isinstance(found, NamedSharding | TiledSharding) else None


# -------------------------------------------------------------------------- shardings in programs
# The meshes, shardings and inner programs that the equations of a program name.
#
# One walk over a program finds all of them and is memoised with the program.

_KINDS = (ClosedJaxpr, Sharding, Mesh, AbstractMesh)
_OTHERS = frozenset((int, bool, float, str, NoneType))  # most params: told by a look-up


def places_in(closed: ClosedJaxpr) -> tuple[tuple[Equation, Any], ...]:
    """Return each program, sharding and mesh that a param of an equation is or holds."""
    return closed.derived(_places)


def _places(closed: ClosedJaxpr) -> tuple[tuple[Equation, Any], ...]:
    found: list[tuple[Equation, Any]] = []
    by_signature: dict[Any, list[Any]] = {}  # most equations repeat one of the same params
    for eqn in [eqn for eqn in closed.jaxpr.eqns if eqn.params]:
        signature = eqn.signature or eqn
        items = by_signature.get(signature)
        if items is None:
            items = by_signature[signature] = _places_of(eqn.params)
        if items:
            found += [(eqn, item) for item in items]
    return tuple(found)


def _places_of(params: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = []
    for value in params.values():
        kind = type(value)
        if kind not in _OTHERS:
            found += [item for item in (value if kind is tuple else (value,))
                      if type(item) not in _OTHERS and isinstance(item, _KINDS)]  # fmt: skip
    return found


def mesh_within(closed: ClosedJaxpr) -> Mesh | None:
    """Return a mesh that an equation of a program names, or of one it calls; None for none."""
    if not gateway.several_devices[0]:
        return None
    return closed.derived(_mesh_within)


def _mesh_within(closed: ClosedJaxpr) -> Mesh | None:
    for _, place in places_in(closed):
        if isinstance(place, ClosedJaxpr):
            mesh: Any = mesh_within(place)
        else:
            mesh = place.mesh if isinstance(place, NamedSharding) else place
        if isinstance(mesh, Mesh):
            return mesh
    return None


def devices_within(closed: ClosedJaxpr) -> frozenset[Any]:
    """Return the devices to which a program, or one that it calls, constrains values.

    `device_put` of a traced value to one device only says in which memory the value is.
    """
    return closed.derived(_devices_within) if gateway.several_devices[0] else frozenset()


def _devices_within(closed: ClosedJaxpr) -> frozenset[Any]:
    found: set[Any] = set()
    for eqn, place in places_in(closed):
        if isinstance(place, ClosedJaxpr):
            found |= devices_within(place)
        elif isinstance(place, SingleDeviceSharding) and eqn.primitive.name != "device_put":
            found |= place.device_set
    return frozenset(found)


def abstract_mesh_within(closed: ClosedJaxpr, constrains: bool = False) -> AbstractMesh | None:
    """Return a mesh without devices over which an equation of a program runs; None for none.

    Args:
      closed: the program.
      constrains: whether one over which an equation only constrains a value will do.
    """
    return closed.derived(_abstract_mesh_within, constrains)


def _abstract_mesh_within(closed: ClosedJaxpr, constrains: bool) -> AbstractMesh | None:
    for _, place in places_in(closed):
        mesh = place
        if isinstance(place, ClosedJaxpr):
            mesh = abstract_mesh_within(place, constrains)
        elif constrains and isinstance(place, NamedSharding):
            mesh = place.mesh
        if isinstance(mesh, AbstractMesh):
            return mesh
    return None


# ---------------------------------------------------------------------------- sharded dimensions
# Which dimensions of arrays a program shards over devices, as far as it says so.
#
# The compiler chooses the shardings of intermediate values from those of arguments, results and
# constraints. So lowering rules can find out only whether a dimension may be sharded.

Cuts = frozenset[tuple[int, int]]
"""For each dimension that is cut the rank of the array, and the number of the dimension."""


def cuts_of(
    closed: ClosedJaxpr, in_shardings: Sequence[Sharding | None],
    out_shardings: Sequence[Sharding | None],
) -> Cuts:  # fmt: skip
    """Return the dimensions that are cut by what is said of a program and in it."""
    pairs = [*zip(in_shardings, closed.in_avals, strict=False),
             *zip(out_shardings, closed.out_avals, strict=False)]  # fmt: skip
    return frozenset(_cut(pairs)) | cuts_within(closed)


def cuts_within(closed: ClosedJaxpr) -> Cuts:
    """Return the dimensions that equations of a program cut, or those of programs they call."""
    return closed.derived(_cuts_within)


def _cuts_within(closed: ClosedJaxpr) -> Cuts:
    cuts: set[tuple[int, int]] = set()
    for eqn, place in places_in(closed):
        if isinstance(place, ClosedJaxpr):
            cuts |= cuts_within(place)
        elif isinstance(place, Sharding):
            cuts.update(_cut((place, x.aval) for x in eqn.outputs))
    return frozenset(cuts)


def _cut(pairs: Iterable[tuple[Sharding | None, ShapedArray]]) -> Iterator[tuple[int, int]]:
    for sharding, aval in pairs:
        if isinstance(sharding, NamedSharding):
            parts = sharding.spec[: aval.ndim]
            yield from [(aval.ndim, dim) for dim, part in enumerate(parts) if axes_of(part)]
        elif sharding is not None:
            counts = sharding.tiles(aval.ndim).counts
            yield from [(aval.ndim, dim) for dim, count in enumerate(counts) if count > 1]


resolved = resolve  # the name that release 0.2 of xpar imports
