"""Questions about programs: which meshes, shardings and devices their equations name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any

from xjit import jaxlib_gateway as gateway
from xjit.sharding.meshes import AbstractMesh, Mesh
from xjit.sharding.shardings import NamedSharding, Sharding, SingleDeviceSharding, axes_of
from xprim import ClosedJaxpr, Equation, ShapedArray

__all__ = ["abstract_mesh_within", "devices_within", "mesh_within", "places_in"]

__dir__ = __all__.copy


# ---------------------------------------------------------------------------- places in programs
# What the equations of a program name that says where they run: meshes, shardings, programs.
#
# One walk over a program finds all of it and is kept with the program, for whoever asks for a
# mesh or for the dimensions that are cut.

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


# -------------------------------------------------------------------------------- cut dimensions
# Which dimensions of arrays a program has cut over devices, as far as it says so.
#
# The compiler decides how values in between lie, from what is said of arguments, of results and
# by constraints. So rules of text that must know can ask only whether something may be cut.

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
