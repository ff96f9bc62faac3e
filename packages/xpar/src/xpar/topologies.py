"""Topologies: which devices there are, described for a compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xjit import Device, devices
from xjit.sharding.meshes import Mesh
from xpar.mesh_utils import create_device_mesh
from xprim.errors import message
from xprim.tracebacks import boundaries

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]

__dir__ = __all__.copy


class TopologyDescription:
    """The devices of a topology.

    Args:
      devices: in order.
    """

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = list(devices)


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """Return the topology of the devices that there are.

    Args:
      platform: `"cpu"` or `"gpu"`; by default the default backend.

    Example:
      >>> len(get_attached_topology("cpu").devices) >= 1
      True
    """
    return TopologyDescription(devices(platform))


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **kwargs: Any
) -> TopologyDescription:
    """Refuse: topologies of devices that are not there are described by plug-ins of other makers.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(message(
        "get_topology_desc", "no plug-in here describes devices that are not there.",
        got=f"{topology_name!r} of {platform or 'the default platform'}",
        hint="export(f, platforms=...) writes programs for devices elsewhere, over an\n"
        "AbstractMesh of any size",
    ))  # fmt: skip


def make_mesh(
    topo: TopologyDescription, mesh_shape: Sequence[int], axis_names: Sequence[Any], *,
    contiguous_submeshes: bool = False,
) -> Mesh:  # fmt: skip
    """Return a mesh of all devices of a topology.

    Args:
      topo: the topology.
      mesh_shape: the sizes of the axes.
      axis_names: their names.
      contiguous_submeshes: whether parts of the mesh are neighbours, as for `create_device_mesh`.

    Example:
      >>> topology = get_attached_topology("cpu")
      >>> make_mesh(topology, (len(topology.devices),), ("x",)).axis_names
      ('x',)
    """
    grid = create_device_mesh(mesh_shape, topo.devices, contiguous_submeshes=contiguous_submeshes)
    return Mesh(grid, tuple(axis_names))


boundaries(globals())
