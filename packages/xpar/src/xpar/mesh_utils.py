"""Devices in a grid, so that neighbours on it are near each other.

    create_device_mesh         devices of one network
    create_hybrid_device_mesh  groups of devices, with a slower network between the groups

CPUs and GPUs of a machine are equally far from each other, so what counts is which process a device
belongs to: the last axes stay within processes, the first ones go between them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xjit import devices as all_devices
from xprim.errors import message
from xprim.requirements import require
from xprim.tracebacks import boundaries

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]

__dir__ = __all__.copy


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """Return devices in a grid, those of one process beside each other along the last axes.

    Args:
      mesh_shape: of the grid; the axis with most communication last.
      devices: which; by default all of the default backend.
      contiguous_submeshes: for TPUs in JAX. Here the devices of a process are a block always.
      allow_split_physical_axes: likewise; CPUs and GPUs have no physical axes to split.

    Returns:
      An array of devices, for `Mesh`.

    Raises:
      ValueError: the shape does not take as many devices as there are.

    Example:
      >>> from xjit import devices
      >>> create_device_mesh((1, 1), devices("cpu")[:1]).shape
      (1, 1)
    """
    del contiguous_submeshes, allow_split_physical_axes  # true of every grid of this function
    known = list(all_devices() if devices is None else devices)
    shape = tuple([int(size) for size in mesh_shape])
    if math.prod(shape) != len(known):
        raise ValueError(message(
            "create_device_mesh", "the shape must take all devices.",
            got=f"{len(known)} devices for mesh_shape={shape}",
            expected=f"{math.prod(shape)} devices",
        ))  # fmt: skip
    in_order = sorted(known, key=lambda d: (d.process_index, d.id)) if devices is None else known
    grid = np.empty(len(in_order), object)
    grid[:] = in_order
    return grid.reshape(shape)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """Return devices in a grid of groups, with a fast network within groups, a slow one between.

    Args:
      mesh_shape: of the grid of a group.
      dcn_mesh_shape: of the grid of groups, of as many axes.
      devices: which; by default all of the default backend.
      process_is_granule: whether a group is a process; otherwise a slice, as devices tell it.
      should_sort_granules_by_key: whether the groups are in the order of their numbers, not in
        that in which the devices name them.
      allow_split_physical_axes: as for `create_device_mesh`.

    Returns:
      An array of devices whose shape is the product of both.

    Raises:
      ValueError: groups or devices differ in number from what the shapes take, or the devices have
        no slices.

    Example:
      >>> from xjit import devices
      >>> one = devices("cpu")[:1]
      >>> create_hybrid_device_mesh((1, 1), (1, 1), one, process_is_granule=True).shape
      (1, 1)
    """
    known = list(all_devices() if devices is None else devices)
    inner, outer = tuple(mesh_shape), tuple(dcn_mesh_shape)
    require(
        len(inner) == len(outer), "create_hybrid_device_mesh",
        "the two shapes must have as many axes.",
        got={"mesh_shape": inner, "dcn_mesh_shape": outer},
    )  # fmt: skip
    groups = _groups(known, "process_index" if process_is_granule else "slice_index")
    keys = sorted(groups) if should_sort_granules_by_key else list(groups)
    if math.prod(outer) != len(keys):
        raise ValueError(message(
            "create_hybrid_device_mesh", "dcn_mesh_shape must take all groups of devices.",
            got=f"{len(keys)} groups for dcn_mesh_shape={outer}",
        ))  # fmt: skip
    grids = [
        create_device_mesh(inner, groups[key], allow_split_physical_axes=allow_split_physical_axes)
        for key in keys
    ]
    stacked = np.stack(grids).reshape(*outer, *inner)
    count = len(inner)
    order = [axis for i in range(count) for axis in (i, count + i)]
    return stacked.transpose(order).reshape([a * b for a, b in zip(outer, inner, strict=True)])


def _groups(devices: Sequence[Any], attribute: str) -> dict[int, list[Any]]:
    """Return the devices by what an attribute of theirs says, in the order in which they come."""
    if not all(hasattr(device, attribute) for device in devices):
        raise ValueError(message(
            "create_hybrid_device_mesh", "the devices do not say which slice they belong to.",
            got=str(devices[0]) if devices else "no devices",
            hint="process_is_granule=True takes processes as groups",
        ))  # fmt: skip
    groups: dict[int, list[Any]] = {}
    for device in devices:
        groups.setdefault(getattr(device, attribute), []).append(device)
    return groups


boundaries(globals())
