"""Meshes for users: made of the devices at hand, and set for a stretch of a program.

    make_mesh                      a mesh of the first devices, by shape and names
    set_mesh, use_mesh, get_mesh   the mesh that partition specs refer to
    reshard                        move arrays to another sharding, or say so while tracing

Neighbours: `xjit.meshes` has the classes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xjit import device_put, devices as all_devices
from xjit.meshes import AbstractMesh, AxisType, Mesh, abstract_mesh_now, current_mesh
from xprim import EAGER, state
from xprim.errors import message
from xprim.tracebacks import boundaries
from xprim.typing import PyTree
from xtree.boundaries import boundary_methods

__all__ = ["get_abstract_mesh", "get_mesh", "make_mesh", "reshard", "set_mesh", "use_mesh"]

__dir__ = __all__.copy


def make_mesh(
    axis_sizes: Sequence[int], axis_names: str | Sequence[Any],
    axis_types: AxisType | Sequence[AxisType] | None = None, *,
    devices: Sequence[Any] | None = None,
) -> Mesh:  # fmt: skip
    """Make a mesh of devices, row by row.

    Args:
      axis_sizes: the number of devices along each axis.
      axis_names: the names of the axes.
      axis_types: for each axis, or for all. `AxisType.Explicit` by default: types say how values
        lie, as in `float32[8@x,4]`; with `AxisType.Auto` the compiler chooses.
      devices: which ones; by default the first of the default backend, as many as are needed.

    Raises:
      ValueError: there are not enough devices, or more are given than the shape takes.

    Example:
      >>> make_mesh((1,), ("x",))
      Mesh('x': 1, axis_types=(Explicit,))
    """
    try:
        shape = tuple([operator.index(size) for size in axis_sizes])
    except TypeError:
        raise ValueError(message(
            "make_mesh", "the sizes of the axes are integers.", got=repr(axis_sizes),
        )) from None  # fmt: skip
    count = math.prod(shape)
    if count < 1:
        raise ValueError(message("make_mesh", "each axis must have a device.", got=str(shape)))
    known = list(all_devices()) if devices is None else list(devices)
    if count > len(known) or (devices is not None and count != len(known)):
        raise ValueError(message(
            "make_mesh", f"the shape takes {count} devices.",
            got=f"{len(known)} devices for the shape {shape}",
            hint=f"XSTACK_NUM_CPU_DEVICES={count} in the environment makes as many virtual CPU "
            "devices" if devices is None else f"devices[:{count}]" if count < len(known) else "",
        ))  # fmt: skip
    grid = np.array(known[:count], dtype=object).reshape(shape)
    return Mesh(grid, axis_names, AxisType.Explicit if axis_types is None else axis_types)


@boundary_methods
class set_mesh:  # noqa: N801 - used as a function
    """Set the mesh of this thread, to which partition specs refer from now on.

    As a context manager it sets the mesh for the length of the scope; as a plain call, for good.

    Args:
      mesh: the mesh; None sets none, and so does an empty one.

    Raises:
      TypeError: it is no mesh.
      ValueError: it is called while a function is traced, or an axis is of type Manual.

    Example:
      >>> with set_mesh(make_mesh((1,), ("x",))):
      ...     get_mesh().axis_names
      ('x',)
      >>> get_mesh().empty
      True
    """

    __slots__ = ("_mesh", "_override")

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise TypeError(message("set_mesh", "this is no mesh.", got=repr(mesh),
                                    hint="make_mesh((4, 2), ('x', 'y')) makes one"))  # fmt: skip
        if mesh is not None and mesh.manual_axes:
            raise ValueError(message(
                "set_mesh", "axes of type Manual are those of a function under shard_map.",
                got=repr(mesh), expected="axes of type Auto or Explicit",
            ))  # fmt: skip
        if state.trace is not EAGER:
            raise ValueError(message(
                "set_mesh", "a mesh cannot be set while a function is traced.",
                hint="set it around the call of the function",
            ))  # fmt: skip
        self._mesh = mesh
        self._override = current_mesh(None if mesh is None or mesh.empty else mesh)
        self._override.__enter__()

    def __enter__(self) -> Mesh | None:
        return self._mesh

    def __exit__(self, *exception: object) -> None:
        self._override.__exit__(*exception)


use_mesh = set_mesh
"""The older name of `set_mesh`, for scopes."""


def get_mesh() -> Mesh:
    """Return the mesh that is set in this thread, or one that is `empty`."""
    mesh = current_mesh.value
    return _NO_MESH if mesh is None else mesh


def get_abstract_mesh() -> AbstractMesh:
    """Return the shape of the mesh that is set in this thread, or one that is `empty`.

    Inside `auto_axes` and `explicit_axes` its axes are of the types that they have there.
    """
    mesh = abstract_mesh_now()
    return _NO_ABSTRACT_MESH if mesh is None else mesh


_NO_MESH = Mesh(np.empty((), object), ())
_NO_ABSTRACT_MESH = AbstractMesh((), ())


def reshard(xs: PyTree, out_shardings: PyTree) -> PyTree:
    """Move a tree of arrays to other shardings; while tracing, say that they are to lie so.

    Args:
      xs: a tree of arrays.
      out_shardings: for all, or a tree prefix: shardings, or partition specs over the mesh set.

    Raises:
      ValueError: an array cannot be cut as its sharding says.
    """
    return device_put(xs, out_shardings)


boundaries(globals())
