"""The primitive `pmap`: one program on every device, with all of its rules.

Params: `jaxpr` is the program of one replica; `axis_name`, `axis_size`; `in_axes` and `out_axes`
say along which axis each argument is cut and each result stacked, None where it is not. Evaluated,
it is a program over a mesh of one axis, as `shard_map` has them. Under a transformation the program
of the replica is transformed, and `pmap` is bound again, by the rules that `xprim.calls` gives all
calls. Inside `jit`, which runs on one device, the replicas become a batch axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xbatch import BatchAxis
from xjit.meshes import Mesh
from xjit.partition_specs import PartitionSpec
from xjit.program import Program
from xjit.replicas import Axis, with_axis
from xnp import lax
from xpar.shard_map_primitive import Lay, checked_member, program_over_mesh
from xprim import (
    EAGER_ON_HOST,
    ClosedJaxpr,
    Primitive,
    Zero,
    eval_closed,
    extended_axes,
    state,
    trace_to_jaxpr,
)
from xprim.calls import call_rules
from xprim.contracts import Builder, ChecksHandle, TransposeHandle

__all__ = ()


def _shape(*avals: Any, jaxpr: ClosedJaxpr, axis_size: int, out_axes: Any, **_: Any) -> Any:
    return tuple([
        with_axis(a, axis, axis_size) for a, axis in zip(jaxpr.out_avals, out_axes, strict=True)
    ])  # fmt: skip


def _numpy(*operands: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    if state.trace is EAGER_ON_HOST:
        return tuple(on_batch(operands, jaxpr, **params))
    program = program_over_devices({"jaxpr": jaxpr, **params})
    return tuple(program.call(operands))


def program_over_devices(params: dict[str, Any]) -> Program:
    """Return the program of a call with these params: that of `shard_map` over its devices."""
    name = params["axis_name"]
    mesh = Mesh(np.array(params["devices"]), (name,))
    return program_over_mesh({
        "jaxpr": params["jaxpr"], "mesh": mesh, "manual": (name,), "active": (name,),
        "check_vma": False,
        "in_lays": tuple([_lay(name, axis) for axis in params["in_axes"]]),
        "out_lays": tuple([_lay(name, axis) for axis in params["out_axes"]]),
        "name": params["name"],
    }, params["donated"])  # fmt: skip


def _lay(name: Any, axis: Axis) -> Lay:
    """Return how a value lies whose pieces are stacked along an axis; None: all have the whole."""
    return Lay(PartitionSpec()) if axis is None else Lay(PartitionSpec(), axis, (name,))


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, jaxpr: ClosedJaxpr,
               **params: Any) -> Any:  # fmt: skip
    key = ("on batch", *params.values())
    found = jaxpr.memo.get(key)
    if found is None:
        inner, consts = trace_to_jaxpr(lambda *xs: on_batch(xs, jaxpr, **params), avals_in)
        found = jaxpr.memo[key] = ClosedJaxpr(inner, consts)
    return b.inline(found, operands)


def on_batch(
    xs: Sequence[Any], jaxpr: ClosedJaxpr, *, axis_name: Any, axis_size: int,
    in_axes: Sequence[Axis], out_axes: Sequence[Axis], **_: Any,
) -> list[Any]:  # fmt: skip
    """Compute what `pmap` would with the replicas as a batch axis of one device."""
    axis = BatchAxis(axis_size, axis_name)
    mapped = tuple([a is not None for a in in_axes])
    with extended_axes({axis_name: axis_size}):
        batched, _mapped_out = axis.batch_jaxpr(jaxpr, mapped, True)
        leading = [
            x if a is None else axis.to_front(x, a) for x, a in zip(xs, in_axes, strict=True)
        ]
        outs = eval_closed(batched, *leading)
    return [
        lax.index_in_dim(o, 0, 0, keepdims=False) if a is None else axis.move(o, 0, a)
        for o, a in zip(outs, out_axes, strict=True)
    ]


def _derived(kind: str, params: dict[str, Any], entries: Any) -> dict[str, Any]:
    """Return what changes for a derived call: what stands for a value is cut and stacked as it."""
    in_axes, out_axes = entries(
        params["in_axes"], params["out_axes"], 0, lambda axis: None if axis is None else axis + 1
    )
    if kind == "transpose":  # what all replicas get whole, each gives a cotangent of its own
        out_axes = [0 if axis is None else axis for axis in out_axes]
    donated: Sequence[bool] = (False,) * len(in_axes)
    if kind == "dce":
        donated, _ = entries(params["donated"], params["out_axes"], False, bool)
    return {"in_axes": tuple(in_axes), "out_axes": tuple(out_axes), "donated": tuple(donated)}


def _scope(params: dict[str, Any]) -> Any:
    return extended_axes({params["axis_name"]: params["axis_size"]})


_RULES = call_rules("pmap", derived=_derived, scope=_scope)


def _transpose(handle: TransposeHandle, cts: Any, *operands: Any, **params: Any) -> Any:
    found = _RULES["transpose"](handle, cts, *operands, **params)
    return [
        lax.reduce_sum(ct, (0,)) if axis is None and type(ct) is not Zero else ct
        for ct, axis in zip(found, params["in_axes"], strict=True)
    ]


def _checked(
    handle: ChecksHandle, before: Any, operands: Any, *, jaxpr: ClosedJaxpr, **params: Any
) -> Any:
    """Run it with checks; the states of the replicas are stacked."""
    with _scope(params):
        checked = checked_member(handle, jaxpr)
    out_axes = (*[0] * len(before), *params["out_axes"])
    results = pmap_p.bind(*operands, jaxpr=checked, **params | {"out_axes": out_axes})
    return handle.first(before, results[: len(before)]), results[len(before) :]


pmap_p = Primitive(
    "pmap",
    call_like=True,
    **_RULES
    | {
        "shape": _shape,
        "numpy": _numpy,
        "stablehlo": _stablehlo,
        "transpose": _transpose,
        "checked": _checked,
    },
)
