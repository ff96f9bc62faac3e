"""Stored programs of several devices: how their arguments and results lie.

What: `StoredSharding`, a sharding without devices; `Spread`, those of one program.
Idea: a program counts its devices from 0, and the one that calls it has as many, in an order of its
own. So what is stored names axes and numbers; a mesh of the caller gives them devices.

Neighbours: `_export` finds these, `files` stores them, `exported_calls` has arguments lie so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xjit import jaxlib_gateway as gateway
from xjit.mesh_placement import OverMesh
from xjit.meshes import AbstractMesh, AxisType, Mesh
from xjit.named_shardings import NamedSharding, named_as
from xjit.partition_specs import PartitionSpec, axes_of
from xjit.placement import Placement
from xjit.places_in_programs import mesh_within
from xjit.shardings import Sharding
from xprim.errors import message

__all__ = [
    "Devices", "Spread", "StoredSharding", "devices_of", "sharding_of_form", "spread_form",
    "spread_of_form", "type_form",
]  # fmt: skip

__dir__ = __all__.copy


@dataclass(frozen=True)
class StoredSharding:
    """How an array lies on a mesh whose devices are numbers.

    Attributes:
      axes: the names of the axes and their sizes.
      parts: for each dimension, the axes that it is cut along.
      order: the numbers of the devices, row by row over the axes.
    """

    axes: tuple[tuple[str, int], ...]
    parts: tuple[tuple[str, ...], ...]
    order: tuple[int, ...]

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec."""
        short = [p[0] if len(p) == 1 else p or None for p in self.parts]
        return PartitionSpec(*short)

    @property
    def abstract(self) -> NamedSharding:
        """The sharding over a mesh without devices."""
        names, sizes = [name for name, _ in self.axes], [size for _, size in self.axes]
        mesh = AbstractMesh(sizes, names, AxisType.Auto)
        return NamedSharding(mesh, self.spec)

    def tiles(self, ndim: int) -> gateway.Tiles:
        """Return which device, by its number, holds which piece."""
        tiles = self.abstract.tiles(ndim)
        return gateway.Tiles(tiles.counts, np.array(self.order)[tiles.devices])

    def on(self, devices: Sequence[Any]) -> NamedSharding:
        """Return the sharding over these devices, which the program counts in their order."""
        grid = np.empty(len(self.order), object)
        grid[:] = [devices[i] for i in self.order]
        sizes = [size for _, size in self.axes]
        mesh = Mesh(grid.reshape(sizes), tuple([name for name, _ in self.axes]))
        return NamedSharding(mesh, self.spec)

    def over(self, mesh: Mesh | AbstractMesh | None, ndim: int) -> Sharding:
        """Return the sharding over a mesh of a caller, in the words of that mesh."""
        if mesh is None:
            return self.abstract
        is_in_order = self.order == tuple(range(len(self.order)))
        if is_in_order and mesh.shape_tuple == self.abstract.mesh.shape_tuple:
            return NamedSharding(mesh, self.spec)
        if not isinstance(mesh, Mesh):
            raise ValueError(message(
                "in_shardings_jax", "the mesh has other axes than the program was exported for.",
                got=repr(mesh), expected=repr(self.abstract.mesh),
            ))  # fmt: skip
        return named_as(mesh, mesh.devices_in_order, self.tiles(ndim))


@dataclass(frozen=True)
class Spread:
    """How the arguments and results of a program of several devices lie.

    Attributes:
      nr_devices: how many devices there are.
      arguments: for each leaf of the arguments, None for one that may lie anyhow.
      results: for each leaf of the result.
    """

    nr_devices: int
    arguments: tuple[StoredSharding | None, ...]
    results: tuple[StoredSharding | None, ...]


@dataclass(frozen=True)
class Devices:
    """The devices of a program that is to be exported, and how its values lie on them.

    Attributes:
      devices: those that it is split over; numbers, where it was traced for meshes without.
      arguments: for each leaf of the arguments; nothing at all where there is one device.
      results: likewise.
    """

    devices: tuple[Any, ...] = ()
    arguments: tuple[Sharding | None, ...] = ()
    results: tuple[Sharding | None, ...] = ()

    def spread(self) -> Spread | None:
        """Return what is stored of it, None for a program of one device."""
        if not self.devices:
            return None
        stored = [tuple([_stored(s, self.devices) for s in side])
                  for side in (self.arguments, self.results)]  # fmt: skip
        return Spread(len(self.devices), *stored)


def devices_of(traced: Any) -> Devices:
    """Return on which devices a traced function runs.

    Raises:
      ValueError: its replicas each run a copy of the program.
    """
    program = traced._program
    asked = [*program.in_shardings, *traced._shardings, *program.out_shardings]
    meshes = [s.mesh for s in asked if isinstance(s, NamedSharding)]
    if meshes and not any(isinstance(m, Mesh) for m in [*meshes, mesh_within(program.closed)]):
        return _without_devices(traced, meshes[0])
    placement: Placement = program.placement_ahead(traced._shardings)
    if len(placement.devices) == 1:
        return Devices()
    if not isinstance(placement, OverMesh):
        raise ValueError(message(
            "export", f"{traced.fun_name} runs as copies on several devices.",
            got=", ".join(map(str, placement.devices)), hint="export jit(shard_map(...))",
        ))  # fmt: skip
    count = len(program.closed.out_avals)
    return Devices(placement.devices, tuple(placement.in_shardings),
                   tuple(placement.out_shardings) or (None,) * count)  # fmt: skip


def _without_devices(traced: Any, mesh: Mesh | AbstractMesh) -> Devices:
    """Return the devices of a function that is asked for meshes without devices: numbers."""
    if mesh.size == 1:
        return Devices()
    program = traced._program
    everywhere = NamedSharding(mesh, PartitionSpec())
    asked = program.in_shardings or [None] * len(traced._shardings)
    pairs = zip(asked, traced._shardings, strict=True)
    arguments: list[Sharding | None] = [
        next((s for s in pair if isinstance(s, NamedSharding)), everywhere) for pair in pairs
    ]
    count = len(program.closed.out_avals)
    return Devices(tuple(range(mesh.size)), tuple(arguments),
                   tuple(program.out_shardings) or (None,) * count)  # fmt: skip


def _stored(sharding: Sharding | None, devices: Sequence[Any]) -> StoredSharding | None:
    if sharding is None:
        return None
    if not isinstance(sharding, NamedSharding):
        return _stored_tiles(sharding, devices)
    if sharding.spec.unreduced:
        raise ValueError(message(
            "export", "arguments and results of an exported program are whole values or pieces.",
            got=repr(sharding.spec), hint="reshard(x, P(...)) inside adds up parts of sums",
        ))  # fmt: skip
    mesh = sharding.mesh
    names = [str(name) for name in mesh.axis_names]
    name_of = dict(zip(mesh.axis_names, names, strict=True))
    order = tuple(range(mesh.size))
    if isinstance(mesh, Mesh):
        order = tuple([devices.index(d) for d in mesh.devices_in_order])
    return StoredSharding(
        tuple([(name_of[name], size) for name, size in mesh.shape_tuple]),
        tuple([tuple([name_of[n] for n in axes_of(part)]) for part in sharding.spec]), order,
    )  # fmt: skip


def _stored_tiles(sharding: Sharding, devices: Sequence[Any]) -> StoredSharding:
    """Return pieces without names as ones over a mesh with an axis for each dimension."""
    tiles = sharding.tiles(0)
    copies = len(devices) // math.prod(tiles.counts)
    axes = [(f"d{i}", size) for i, size in enumerate((*tiles.counts, copies))]
    own = sharding.devices_in_order
    order = [devices.index(own[i]) for i in tiles.devices.reshape(-1).tolist()]
    parts = [(name,) if size > 1 else () for name, size in axes[:-1]]
    return StoredSharding(tuple(axes), tuple(parts), tuple(order))


def spread_form(spread: Spread | None) -> Any:
    """Return how values lie as JSON's values, each mesh once; None for one device."""
    if spread is None:
        return None
    meshes: dict[Any, int] = {}

    def form(sharding: StoredSharding | None) -> Any:
        if sharding is None:
            return None
        place = meshes.setdefault((sharding.axes, sharding.order), len(meshes))
        return [place, sharding.parts]

    sides = [[form(s) for s in side] for side in (spread.arguments, spread.results)]
    return {"count": spread.nr_devices, "meshes": list(meshes), "arguments": sides[0],
            "results": sides[1]}  # fmt: skip


def spread_of_form(form: Any) -> Spread | None:
    """Return what `spread_form` gave a form of."""
    if form is None:
        return None
    meshes = [(tuple([(name, size) for name, size in axes]), tuple(order))
              for axes, order in form["meshes"]]  # fmt: skip
    sides = [
        tuple([s and StoredSharding(meshes[s[0]][0], tuple(map(tuple, s[1])), meshes[s[0]][1])
               for s in form[side]])
        for side in ("arguments", "results")
    ]  # fmt: skip
    return Spread(form["count"], *sides)


def type_form(spread: Any) -> Any:
    """Return as JSON's values how a type says that an array is cut along explicit axes, or None."""
    if spread is None:
        return None
    mesh, spec = spread.mesh, spread.spec
    axes = [
        [str(name), size, kind.name]
        for (name, size), kind in zip(mesh.shape_tuple, mesh.axis_types, strict=True)
    ]
    sums = [sorted(map(str, names)) for names in (spec.unreduced, spec.reduced)]
    return [axes, [[str(name) for name in axes_of(part)] for part in spec], *sums]


def sharding_of_form(form: Any) -> NamedSharding:
    """Return the sharding, over a mesh without devices, of which `type_form` gave a form."""
    axes, parts, unreduced, reduced = form
    names, sizes, kinds = zip(*axes, strict=True)
    mesh = AbstractMesh(sizes, names, [AxisType[kind] for kind in kinds])
    return NamedSharding(
        mesh, PartitionSpec(*map(tuple, parts), unreduced=set(unreduced), reduced=set(reduced))
    )
