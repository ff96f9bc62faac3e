"""The rich form of meshes, shardings, and stages of compiling in notebooks: small tables.

A mesh is the grid of its devices, with the names of the axes; of more than two axes the first
plane. A sharding is a table of the dimensions, and of the axes that cut them. A program is a table
of what goes in and comes out, and its text, folded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from xtree.notebooks import escaped, preformatted

__all__ = ()

_MOST = 16  # rows and columns of a table


def mesh_html(mesh: Any) -> str:
    """Return a mesh as HTML: its axes, and the grid of its devices where it has any."""
    axes = ", ".join(
        f"{name!r}: {size} ({kind!r})"
        for (name, size), kind in zip(mesh.shape_tuple, mesh.axis_types, strict=True)
    )
    title = f"<code>{type(mesh).__name__}({escaped(axes)})</code>"
    devices = getattr(mesh, "devices", None)
    if devices is None or not devices.size:
        return f"<div>{title}</div>"
    plane = devices.reshape(-1, *devices.shape[-2:])[0] if devices.ndim > 1 else devices[None]
    which = f", the first of {devices.size // plane.size} planes" if devices.ndim > 2 else ""
    names = [escaped(str(name)) for name in mesh.axis_names[-2:]]
    corner = f"{names[0]} &#8595; {names[1]} &#8594;" if devices.ndim > 1 else f"{names[0]} &#8594;"
    columns = _first(list(range(plane.shape[1])))
    head = [corner, *map(str, columns)]
    rows = [
        ["" if devices.ndim == 1 else str(i), *[escaped(str(d)) for d in _first(list(row))]]
        for i, row in zip(_first(list(range(len(plane)))), _first(list(plane)), strict=True)
        if not isinstance(row, str)
    ]
    return f"<div>{title}{which}{_table(head, rows)}</div>"


def sharding_html(sharding: Any) -> str:
    """Return a sharding over a mesh as HTML: what cuts each dimension, and the mesh."""
    sizes = sharding.mesh.shape
    rows = []
    for dim, part in enumerate(sharding.spec):
        names = part if isinstance(part, tuple) else () if part is None else (part,)
        known = [name for name in names if name in sizes]
        pieces = str(math.prod([sizes[name] for name in known])) if known else "1"
        text = ", ".join(map(repr, known)) or ("no axis" if part is None else repr(part))
        rows.append([str(dim), escaped(text), pieces])
    title = f"<code>NamedSharding({escaped(repr(sharding.spec))})</code>"
    table = _table(["dimension", "cut along", "pieces"], rows) if rows else ", whole on each device"
    return f"<div>{title}{table}{mesh_html(sharding.mesh)}</div>"


def stage_html(stage: Any) -> str:
    """Return a lowered or compiled function as HTML."""
    traced = stage._traced
    if hasattr(stage, "memory_analysis"):
        kind, avals_out, fact = "HLO", stage._kernel.avals_out, ("bytes", _bytes(stage))
    else:
        kind, avals_out = "StableHLO", traced._program.closed.out_avals
        fact = ("for", stage._lowered.platform)
    rows = [["takes", _types(traced._avals)], ["returns", _types(avals_out)], fact]
    text = stage.as_text()
    lines = len(text.splitlines())
    title = f"<code>{type(stage).__name__}({escaped(traced.fun_name)})</code>"
    folded = f"<details><summary>{kind}, {lines} lines</summary>{preformatted(text)}</details>"
    return f"<div>{title}{_table((), rows)}{folded}</div>"


def _bytes(compiled: Any) -> str:
    sizes = compiled.memory_analysis().items()
    names = {name: name.removesuffix("_in_bytes").removesuffix("_size") for name, _ in sizes}
    return ", ".join([f"{names[name]} {size:,}" for name, size in sizes if size])


def _types(avals: Iterable[Any]) -> str:
    texts = [f"<code>{escaped(aval.str_long())}</code>" for aval in avals]
    return ", ".join(_first(texts)) or "nothing"


def _first(items: list[Any]) -> list[Any]:
    return items if len(items) <= _MOST else [*items[:_MOST], "&#8230;"]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["<tr>" + "".join(f"<th>{cell}</th>" for cell in head) + "</tr>"] if head else []
    lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return f"<table>{''.join(lines)}</table>"
