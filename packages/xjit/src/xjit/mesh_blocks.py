"""Blocks of meshes: the devices of one process among those of all.

Neighbours: `meshes` has the meshes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xprim.errors import message

__all__ = ()


def block_of(devices: np.ndarray[Any, Any], own: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Return the part of an array of devices that holds some of them and no other.

    Raises:
      ValueError: they are no block of it.
    """
    is_own = np.reshape([d in own for d in devices.flat], devices.shape).astype(bool)
    if is_own.all() or not devices.ndim:
        return devices
    block = tuple([slice(min(places), max(places) + 1) for places in np.nonzero(is_own)
                   if len(places)])  # fmt: skip
    if not is_own.any() or not is_own[block].all():
        raise ValueError(message(
            "Mesh.local_mesh", "the devices of this process are no block of the mesh.",
            got=f"{[d.id for d in own]} of {[d.id for d in devices.flat]}, shape {devices.shape}",
            hint="mesh.local_devices lists them",
        ))  # fmt: skip
    return devices[block]
