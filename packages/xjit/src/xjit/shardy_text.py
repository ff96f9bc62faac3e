"""Shardings in the text of programs: the meshes and attributes of the Shardy dialect.

A program counts its devices from 0; a mesh with another order of the same devices says so. Source:
the documentation of Shardy, "Sharding representation".

Neighbours: `lowering` writes these at arguments and results, `sharding_constraint` in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xjit.meshes import Mesh
from xjit.named_shardings import NamedSharding
from xjit.partition_specs import UNCONSTRAINED, axes_of
from xjit.shardings import Sharding

__all__ = [
    "axis_texts",
    "declared",
    "everywhere_text",
    "held_text",
    "mesh_symbol",
    "once_text",
    "sharding_text",
]

__dir__ = __all__.copy


def axis_texts(mesh: Any) -> dict[Any, str]:
    """Return how the axes of a mesh are called in a program: their names, where these differ."""
    names = [str(name).replace("\\", "_").replace('"', "_") for name in mesh.axis_names]
    if len(set(names)) < len(names):
        names = [f"{i}_{name}" for i, name in enumerate(names)]
    return {name: f'"{text}"' for name, text in zip(mesh.axis_names, names, strict=True)}


def mesh_symbol(module: Any, mesh: Any) -> str:
    """Return the symbol of a mesh in a program, which is declared when it is first asked for.

    Args:
      module: the `Module` under construction.
      mesh: a mesh over its devices, or an abstract one.
    """
    order = list(range(mesh.size))
    if isinstance(mesh, Mesh) and module.devices:
        order = [module.devices.index(device) for device in mesh.devices_in_order]
    texts = axis_texts(mesh)
    axes = [f"{texts[name]}={size}" for name, size in mesh.shape_tuple]
    return _declared(module, axes, order)


def _declared(module: Any, axes: list[str], order: list[int]) -> str:
    ids = "" if order == sorted(order) else f", device_ids={order}"
    return declared(module, f"<[{', '.join(axes)}]{ids}>")


def declared(module: Any, text: str, name: str = "mesh") -> str:
    """Return the symbol of a mesh of this text, which is declared when it is first asked for."""
    found = module.meshes.get(text)
    if found is None:
        found = module.meshes[text] = module.symbol(name)
    return str(found)


def sharding_text(module: Any, sharding: Sharding, ndim: int, *, is_open: bool = False) -> str:
    """Return the inside of a sharding attribute, `<@mesh, [{"x"}, {}]>`.

    Args:
      module: the `Module` under construction.
      sharding: what is written.
      ndim: the number of dimensions of the array.
      is_open: whether XLA may cut the pieces further, along other axes.
    """
    if not isinstance(sharding, NamedSharding):
        return _tiled_text(module, sharding, ndim)
    texts = axis_texts(sharding.mesh)
    entries = [*sharding.spec, *[None] * (ndim - len(sharding.spec))]
    parts = []
    for entry in entries:
        names = [texts[name] for name in axes_of(entry)]
        names += ["?"] if is_open or entry is UNCONSTRAINED else []
        parts.append(f"{{{', '.join(names)}}}")
    return f"<@{mesh_symbol(module, sharding.mesh)}, [{', '.join(parts)}]>"


def _tiled_text(module: Any, sharding: Sharding, ndim: int) -> str:
    """Return the attribute of pieces without names: over a mesh with an axis for each dimension."""
    tiles = sharding.tiles(ndim)
    sizes = [*tiles.counts, tiles.devices.shape[-1]]
    devices = sharding.devices_in_order
    order = [module.devices.index(devices[i]) for i in tiles.devices.reshape(-1).tolist()]
    axes = [f'"d{i}"={size}' for i, size in enumerate(sizes) if size > 1]
    parts = [f'{{"d{i}"}}' if count > 1 else "{}" for i, count in enumerate(tiles.counts)]
    return f"<@{_declared(module, axes, order)}, [{', '.join(parts)}]>"


def held_text(module: Any, ndim: int, dims: Sequence[int] | None = None) -> str:
    """Return what a constraint says of a value that no device has only a piece of.

    Args:
      module: the `Module` under construction.
      ndim: the number of dimensions of the value.
      dims: those along which it is whole, the others being left to the compiler; None for all.
    """
    mesh = module.mesh if module.members is None else module.members.mesh
    parts = ["{}" if dims is None or d in dims else "{?}" for d in range(ndim)]
    whole = f"[{', '.join(parts)}]"
    where = (
        everywhere_text(module, ndim)
        if mesh is None
        else f"<@{mesh_symbol(module, mesh)}, {whole}>"
    )
    return f"sharding = #sdy.sharding{where}"


def once_text(module: Any, count: int, device: Any = None) -> str:
    """Return the attribute of an operation of `count` results that one device runs for all.

    It is the first one unless a device is named. Operations with effects need it where XLA splits
    a program; in a manual computation each device runs its own.
    """
    if len(module.devices) < 2 or module.members is not None:
        return ""
    index = 0 if device is None else module.devices.index(device)
    symbol = declared(module, f"<[], device_ids=[{index}]>", f"maximal_mesh_{index}")
    per_value = ", ".join([f"<@{symbol}, []>"] * max(count, 1))
    return f", sdy.sharding = #sdy.sharding_per_value<[{per_value}]>"


def everywhere_text(module: Any, ndim: int) -> str:
    """Return the inside of the attribute of a value that all devices of a program have whole."""
    count = len(module.devices)
    symbol = _declared(module, [f'"d0"={count}'], list(range(count)))
    return f"<@{symbol}, [{', '.join(['{}'] * ndim)}]>"
