"""The primitive `inspect_sharding`: tells a Python function the sharding of a value in a program.

XLA decides that while it compiles, so the function is called once for each compilation, when that
is over; the program that runs does nothing for it. Params: `callback`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xjit.callbacks.primitive import DEBUG
from xjit.jaxlib_gateway import ShardingProbe
from xprim import Array, ConcreteArray, Primitive, dimension_names, undefined
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message
from xtree.records import Record

__all__ = ["inspect_sharding_p", "inspect_value"]

__dir__ = __all__.copy


class Inspection(Record):
    """Who asks how a value of a program lies.

    Attributes:
      callback: takes the sharding.
      ndim: the number of dimensions of the value.
      mark: what stands in the text for the custom call that XLA answers; empty where one device has
        everything.
      members: the numbers of the devices: a row for each of those that XLA splits the value over,
        a column for each of those that run the code by themselves.
    """

    callback: Callable[[Any], Any]
    ndim: int
    mark: str
    members: np.ndarray[Any, Any]

    def tiles(self, probe: ShardingProbe) -> Any:
        """Return what a probe found, now that the program is compiled."""
        return probe.tiles(self.members, self.ndim)


def inspect_value(x: Array, callback: Callable[[Any], Any]) -> None:
    """Call a function with the sharding of an array, now or when its program is compiled.

    Args:
      x: an array.
      callback: takes its sharding.
    """
    if isinstance(x, ConcreteArray):
        callback(x.sharding)
    else:
        inspect_sharding_p.bind(x, callback=callback)


def with_probes(text: str, inspections: Sequence[Inspection]) -> tuple[str, list[ShardingProbe]]:
    """Return the text of a program with the addresses of probes in it, and the probes."""
    probes = [ShardingProbe() for _ in inspections]
    for inspection, probe in zip(inspections, probes, strict=True):
        if inspection.mark:
            requested = f'"{ShardingProbe.target}", backend_config = "{probe.config()}"'
            text = text.replace(inspection.mark, requested)
    return text, probes


def _shape(aval: Any, *, callback: Any) -> tuple[()]:
    return ()


def _effects(*, callback: Any) -> frozenset[Any]:
    return frozenset([DEBUG])


def _numpy(x: Any, *, callback: Callable[[Any], Any]) -> tuple[()]:
    callback(x.sharding)
    return ()


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
               callback: Callable[[Any], Any]) -> Any:  # fmt: skip
    module = b.module  # type: ignore[attr-defined]
    members = _members(b, len(module.devices))
    mark = f'"inspect_sharding.{len(module.inspections)}"' if members.size > 1 else ""
    module.inspections.append(Inspection(callback, avals_in[0].ndim, mark, members))
    if mark:
        b.op(
            "stablehlo.custom_call",
            operands,
            avals_in,
            avals_in,
            f"call_target_name = {mark}, has_side_effect = true, api_version = 1 : i32",
        )
    return ()


def _members(b: Builder, count: int) -> np.ndarray[Any, Any]:
    if b.members is None:
        return np.arange(count).reshape(-1, 1)
    mesh, manual, numbers = b.members
    shared = [i for i, name in enumerate(mesh.axis_names) if name not in manual]
    if manual and len([i for i in shared if numbers.shape[i] > 1]) > 1:
        raise ValueError(message(
            "inspect_array_sharding", "XLA does not say along which of several axes it cuts a "
            "value where another axis is manual.",
            got=f"the manual axes {', '.join(map(repr, manual))} of {mesh!r}",
            hint="look at the value outside of shard_map, or name all axes but one in axis_names",
        ))  # fmt: skip
    alone = [i for i in range(numbers.ndim) if i not in shared]
    rows: int = math.prod([numbers.shape[i] for i in shared])
    return np.array(numbers).transpose(*shared, *alone).reshape(rows, -1)


def _jvp(primals: Any, tangents: Any, *, callback: Any) -> Any:
    inspect_value(primals[0], callback)
    return (), []


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, callback: Any) -> Any:
    """Tell how the whole batch lies."""
    inspect_value(operands[0], callback)
    return (), ()


inspect_sharding_p = Primitive(
    "inspect_sharding",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("the sharding of a value is not a linear function of it"),
    batch=_batch,
    sharding=dimension_names.alike,
    effects=_effects,
)
