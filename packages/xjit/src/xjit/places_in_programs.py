"""What the equations of a program name that says where they run: meshes, shardings, programs.

One walk over a program finds all of it and is kept with the program, for whoever asks for a mesh
or for the dimensions that are cut.

Neighbours: `places_of_calls` asks for meshes, `cut_dimensions` for dimensions.
"""

from __future__ import annotations

from types import NoneType
from typing import Any

from xjit import jaxlib_gateway as gateway
from xjit.meshes import AbstractMesh, Mesh
from xjit.named_shardings import NamedSharding
from xjit.shardings import Sharding
from xprim import ClosedJaxpr, Equation

__all__ = ["abstract_mesh_within", "mesh_within", "places_in"]

__dir__ = __all__.copy

_KINDS = (ClosedJaxpr, Sharding, Mesh, AbstractMesh)
_OTHERS = frozenset((int, bool, float, str, NoneType))  # most params: told by a look-up


def places_in(closed: ClosedJaxpr) -> tuple[tuple[Equation, Any], ...]:
    """Return each program, sharding and mesh that a param of an equation is or holds."""
    return closed.derived(_places)


def _places(closed: ClosedJaxpr) -> tuple[tuple[Equation, Any], ...]:
    found: list[tuple[Equation, Any]] = []
    for eqn in [eqn for eqn in closed.jaxpr.eqns if eqn.params]:
        for value in eqn.params.values():
            kind = type(value)
            if kind in _OTHERS:
                continue
            found += [
                (eqn, item)
                for item in (value if kind is tuple else (value,))
                if type(item) not in _OTHERS and isinstance(item, _KINDS)
            ]
    return tuple(found)


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


def abstract_mesh_within(closed: ClosedJaxpr) -> AbstractMesh | None:
    """Return a mesh without devices over which an equation of a program runs; None for none."""
    return closed.derived(_abstract_mesh_within)


def _abstract_mesh_within(closed: ClosedJaxpr) -> AbstractMesh | None:
    for _, place in places_in(closed):
        mesh = abstract_mesh_within(place) if isinstance(place, ClosedJaxpr) else place
        if isinstance(mesh, AbstractMesh):
            return mesh
    return None
