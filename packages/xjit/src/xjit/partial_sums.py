"""Values in parts of a sum along axes of a mesh, `float32[8,4]{U:x}`, and their duals, `{R:x}`.

Along an axis of `unreduced` each member holds a part, and the value is what they add up to. What is
linear works on the parts; all else is refused, since only a change of sharding may add them up.
Along an axis of `reduced` each member has the whole value; it says of the cotangent that it is in
parts. Whether a primitive is linear its `jvp` rule says, where that is one of the symbols `LINEAR`,
`linear_in` and `multilinear`, or else its rule of kind `linearity`:

    linear         any operand may be in parts; the others become the part of the first member
    multilinear    one operand is in parts, the others are reduced, or scalars

Parts come about where a sum over a dimension that an axis cuts is not brought together
(`sums_kept_apart`), and from whole values, of which the first member keeps what there is.

Neighbours: `sharding_rules` asks for the types of results; `stacked_parts` has the programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from xjit.named_shardings import NamedSharding
from xprim import (
    LINEAR,
    LinearIn,
    MultiLinear,
    Primitive,
    ShapedArray,
    config,
    dtypes,
)
from xprim.errors import message
from xprim.jaxpr import held_programs
from xprim.sharded_types import ShardingTypeError

__all__ = [
    "Sums", "check_call", "check_parts", "sums_kept_apart", "linear_operands", "retyped", "sums_of",
    "sums_of_results",
]  # fmt: skip

__dir__ = __all__.copy

_NONE: frozenset[Any] = frozenset()

sums_kept_apart: config.Option[frozenset[Any]] = config.define(
    config.Option(
        "sums_kept_apart",
        _NONE,
        "Axes of type Explicit along which sums over cut dimensions stay in parts.",
        kind=frozenset,
        in_cache_key=True,
    )
)


class Sums(NamedTuple):
    """The axes along which a value, or its cotangent, is in parts."""

    unreduced: frozenset[Any] = _NONE
    reduced: frozenset[Any] = _NONE


def sums_of(aval: ShapedArray) -> Sums:
    """Return what a type says of sums."""
    if aval.spread is None:
        return Sums()
    return Sums(aval.spread.spec.unreduced, aval.spread.spec.reduced)


def linear_operands(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]
) -> tuple[frozenset[int], bool]:
    """Return the operands that a primitive is linear in, and whether in all of them together."""
    rule = primitive.rules.get("linearity", primitive.rules.get("jvp"))
    if "linearity" in primitive.rules and callable(rule):
        rule = rule(avals, params)
    if rule is LINEAR:
        return frozenset(range(len(avals))), True
    if isinstance(rule, LinearIn | MultiLinear):
        return frozenset(rule.argnums), isinstance(rule, LinearIn)
    return frozenset(), True


def sums_of_results(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]
) -> Sums:
    """Return the axes along which results are in parts, and those along which cotangents are.

    Raises:
      ShardingTypeError: an operand is in parts, and the primitive is not linear in it.
    """
    sums = [sums_of(a) for a in avals]
    unreduced = _NONE.union(*[s.unreduced for s in sums])
    reduced = _NONE.union(*[s.reduced for s in sums]) - unreduced
    if unreduced:
        _check_linear(primitive, avals, params, sums)
    kept = [
        axis
        for axis in reduced
        if all(axis in s.reduced or not a.ndim for s, a in zip(sums, avals, strict=True))
    ]
    return Sums(unreduced, frozenset(kept))


def _check_linear(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any],
    sums: Sequence[Sums],
) -> None:  # fmt: skip
    argnums, together = linear_operands(primitive, avals, params)
    apart = [i for i, s in enumerate(sums) if s.unreduced]
    axes = _NONE.union(*[s.unreduced for s in sums])
    shown = " and ".join(sorted([repr(axis) for axis in axes]))
    if not argnums.issuperset(apart):
        _refuse(primitive, avals, f"it is not linear in an operand that is in parts of a sum along "
                f"{shown}", "reshard(x, P(...)) adds the parts up first")  # fmt: skip
    if together:
        return
    if len(apart) > 1:
        _refuse(primitive, avals, "two factors of a product are in parts of sums",
                "reshard(x, P(...)) adds up the parts of one of them first")  # fmt: skip
    for i in argnums.difference(apart):
        if avals[i].ndim and not axes <= sums[i].reduced:
            _refuse(primitive, avals, f"one factor is in parts of a sum along {shown}, and the "
                    "other is not reduced there",
                    f"reshard(y, P(reduced={{{', '.join(sorted(map(repr, axes)))}}})) says that "
                    "each member has it")  # fmt: skip


def check_call(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> None:
    """Raise where a call takes values in parts that its program, if any, does not know as such."""
    given = {sums_of(a).unreduced for a in avals} - {_NONE}
    if given and "stacked" not in primitive.rules:
        inside = [a for program in held_programs(params) for a in program.in_avals]
        if not given <= {sums_of(a).unreduced for a in inside}:
            _refuse(primitive, avals, "it would be given parts of a sum",
                    "reshard(x, P(...)) adds the parts up first")  # fmt: skip


def _refuse(
    primitive: Primitive, avals: Sequence[ShapedArray], problem: str, hint: str
) -> NoReturn:
    raise ShardingTypeError(message(
        primitive.name, f"{problem}.", got=", ".join([a.str_long() for a in avals]), hint=hint,
    ))  # fmt: skip


def retyped(sharding: NamedSharding, mesh: Any) -> NamedSharding:
    """Return a sharding over a mesh whose axes are of other types.

    Raises:
      ShardingTypeError: there no type would say that the value is in parts.
    """
    spec, known = sharding.spec, frozenset(mesh.explicit_axes)
    for axis in spec.unreduced - known:
        raise ShardingTypeError(message(
            "auto_axes, shard_map", f"a value of outside is in parts of a sum along {axis!r}, "
            "which is of another type inside.", got=repr(spec),
            hint="reshard(x, P(...)) adds the parts up first; shard_map takes them as an argument",
        ))  # fmt: skip
    return sharding.update(mesh=mesh, spec=spec.update(reduced=spec.reduced & known))


def check_parts(aval: ShapedArray, sharding: NamedSharding) -> None:
    """Raise where elements cannot be parts of a sum."""
    if sharding.spec.unreduced and (dtypes.is_extended(aval.dtype) or aval.dtype == dtypes.bool_):
        raise ShardingTypeError(message(
            "reshard", f"elements of dtype {aval.dtype} cannot be parts of a sum.",
            got=f"{aval.str_long()}, {sharding.spec}", expected="numbers",
        ))  # fmt: skip
