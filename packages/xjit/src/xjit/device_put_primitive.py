"""The primitive `device_put`: a traced value, and where it is to be.

Evaluated it moves the array, so a function that is differentiated or batched outside of `jit` may
go from one device or mesh to another. In a compiled program, which runs on its devices, it says how
the value lies. Params: `sharding`, and `source`, where the operand is as far as that is known: its
cotangent goes back there. None for a sharding stands for data that nobody put anywhere.

Neighbours: `transfer` binds it, `eager_backend` evaluates it; `sharding_constraint` never moves
anything to other devices.
"""

from __future__ import annotations

from typing import Any

from xjit.named_shardings import NamedSharding
from xjit.partition_specs import PartitionSpec
from xjit.sharding_constraint import (
    asked_for_always,
    constraint_text,
    of_examples,
    sharding_constraint_p,
)
from xjit.shardings import Sharding, TiledSharding
from xprim import (
    LINEAR,
    STRUCTURAL,
    Primitive,
    ShapedArray,
    dimension_names,
    not_mapped,
)
from xprim.contracts import BatchAxis, Builder
from xprim.sharded_types import cotangent, spread_as

__all__ = ["UNKNOWN", "device_put_p"]

__dir__ = __all__.copy

UNKNOWN = "unknown"
"""The `source` of a value of which nothing is known but its type."""


def _shape(
    aval: ShapedArray, *, sharding: Sharding | None, source: Any
) -> tuple[ShapedArray, ...]:  # fmt: skip
    return (aval.update(sharding=sharding if isinstance(sharding, NamedSharding) else None),)


def _numpy(x: Any, *, sharding: Sharding | None, source: Any) -> Any:
    return (x,)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
               sharding: Sharding | None, source: Any) -> Any:  # fmt: skip
    if isinstance(sharding, NamedSharding | TiledSharding):
        return constraint_text(b, operands, avals_in, avals_out, sharding=sharding)
    spread = avals_in[0].spread
    if spread is None:
        return operands
    whole = spread.update(spec=PartitionSpec())
    return constraint_text(b, operands, avals_in, avals_out, sharding=whole)


def _transpose(cts: Any, x: Any, *, sharding: Sharding | None, source: Any) -> Any:
    if source is not UNKNOWN:
        return device_put_p.bind(cts[0], sharding=source, source=sharding)
    if cts[0].aval.spread is not None or x.aval.spread is not None:
        return (spread_as(cts[0], cotangent(x.aval)),)
    if isinstance(sharding, NamedSharding | TiledSharding):  # in a program, on its devices
        return sharding_constraint_p.bind(cts[0], sharding=sharding)
    return cts


def _batch(
    axis: BatchAxis, operands: Any, dims: Any, *, sharding: Sharding | None, source: Any
) -> Any:  # fmt: skip
    (x,), (dim,) = operands, dims
    if dim is not not_mapped:
        if isinstance(sharding, TiledSharding) or isinstance(source, TiledSharding):
            x, dim = axis.move(x, dim, x.aval.ndim - 1), x.aval.ndim - 1
        sharding, source = [
            of_examples(axis, dim, s) if isinstance(s, NamedSharding) else s
            for s in (sharding, source)
        ]
    return device_put_p.bind(x, sharding=sharding, source=source), (dim,)


device_put_p: Primitive = Primitive(
    "device_put",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=LINEAR,
    transpose=_transpose,
    batch=_batch,
    physical=STRUCTURAL,
    cost=asked_for_always,
    dimensions=dimension_names.AS_SAID,
)
