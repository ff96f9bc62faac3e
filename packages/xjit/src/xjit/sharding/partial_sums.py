"""Unreduced values, `float32[8,4]{U:x}`, their duals, `{R:x}`, and programs with automatic axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import xprim
from xjit.sharding.shardings import NamedSharding
from xprim import EAGER, Array, ClosedJaxpr, LinearIn, Primitive, ShapedArray, config, dtypes
from xprim.calls import all_to_front, call_rules, front_dims
from xprim.contracts import BatchAxis
from xprim.errors import message
from xprim.jaxpr import held_programs, program_of_equation
from xprim.sharded_types import ShardingTypeError, batched_sharding

__all__ = [
    "auto_axes_p", "called_with", "Sums", "check_call", "check_parts", "sums_kept_apart",
    "linear_operands", "retyped", "sums_of", "sums_of_results",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------- auto axes
# The primitive `auto_axes`: a program in which other axes of the mesh are explicit than outside.
#
# The types of the equation's operands and results have shardings over the explicit axes outside;
# the types of the program inside have fewer, or none, where the compiler chooses shardings, or
# more, where part of a program is explicit. Params: `jaxpr`; `in_shardings` and `out_shardings`,
# the shardings of the operands and of the results outside; `name`.


def called_with(
    fun: Callable[..., Sequence[Array]], operands: Sequence[Any], avals: Sequence[ShapedArray],
    shardings: Sequence[Any] | Callable[[Sequence[ShapedArray]], Sequence[Any]],
    name: str = "auto_axes",
) -> Sequence[Array]:  # fmt: skip
    """Call a function on values that have other types inside.

    Args:
      fun: of flat arrays.
      operands: its arguments.
      avals: their types inside.
      shardings: those of the results outside, or a function from the results' types to them.
      name: what prints call the program.
    """
    jaxpr, consts = xprim.trace_to_jaxpr(fun, avals, name=name)
    closed, captured = xprim.close_over(jaxpr, consts)
    values = (*captured, *operands)
    out_shardings = shardings(closed.out_avals) if callable(shardings) else shardings
    return auto_axes_p.bind(
        *values, jaxpr=closed, name=name, out_shardings=tuple(out_shardings),
        in_shardings=tuple([x.aval.type_sharding for x in values]),
    )  # fmt: skip


def _shape(*avals: Any, jaxpr: ClosedJaxpr, out_shardings: Any, **_: Any) -> Any:
    return tuple([
        xprim.shaped_array(a.shape, a.dtype, a.weak_type, sharding)
        for a, sharding in zip(jaxpr.out_avals, out_shardings, strict=True)
    ])  # fmt: skip


def _numpy(*operands: Any, **params: Any) -> Any:
    """Run a program of this one equation over the mesh."""
    jaxpr: ClosedJaxpr = params["jaxpr"]
    key = ("auto_axes", *[x.aval for x in operands], params["out_shardings"])
    closed = jaxpr.memo.get(key)
    if closed is None:
        closed = jaxpr.memo[key] = program_of_equation(
            auto_axes_p, [x.aval for x in operands], params, params["name"]
        )
    return EAGER.backend.run_program(closed, operands, params["name"])


def _derive(kind: str, params: dict[str, Any], entries: Any) -> dict[str, Any]:
    """Return the shardings of a derived call: each value has that of its original."""
    ins, outs = entries(params["in_shardings"], params["out_shardings"], None, lambda s: s)
    return {"in_shardings": tuple(ins), "out_shardings": tuple(outs)}


def _batch(
    axis: BatchAxis, operands: Any, dims: Any, *, jaxpr: ClosedJaxpr, in_shardings: Any,
    out_shardings: Any, **params: Any,
) -> Any:  # fmt: skip
    """Call the program for batches; types inside of it say nothing of how these are cut."""
    values, mapped = all_to_front(axis, operands, dims)
    batched, mapped_out = axis.with_auto_sharding().batch_jaxpr(jaxpr, mapped)

    def shardings(before: Any, avals: Any, mask: Sequence[bool]) -> tuple[Any, ...]:
        return tuple([
            batched_sharding(sharding, axis.sharding, a.ndim) if m else sharding
            for sharding, a, m in zip(before, avals, mask, strict=True)
        ])  # fmt: skip

    ins = shardings(in_shardings, jaxpr.in_avals, mapped)
    outs = shardings(out_shardings, jaxpr.out_avals, mapped_out)
    results = auto_axes_p.bind(
        *values, jaxpr=batched, in_shardings=ins, out_shardings=outs, **params
    )
    return results, front_dims(mapped_out)


def _print(**params: Any) -> dict[str, Any]:
    """Show the program: how values are spread is in their types."""
    return {key: params[key] for key in ("jaxpr", "name")}


auto_axes_p: Primitive = Primitive(
    "auto_axes",
    call_like=True,
    **call_rules(
        "auto_axes", derived=_derive, shape=_shape, numpy=_numpy, print=_print, batch=_batch
    ),
)


# ---------------------------------------------------------------------------------- partial sums
# Values that are unreduced along axes of a mesh, `float32[8,4]{U:x}`, and their duals, `{R:x}`.
#
# Along an axis of `unreduced` each member holds a part, and the value is what they add up to.
# What is linear works on the parts; all else raises, since only a change of sharding may add
# them up. Along an axis of `reduced` each member has the whole value; it says of the cotangent
# that it is in parts. Whether a primitive is linear its `jvp` rule says, where that is one of the
# symbols `LINEAR`, `linear_in` and `multilinear`, or else its rule of kind `linearity`:
#
#     linear         any operand may be in parts; the others become the part of the first member
#     multilinear    one operand is in parts, the others are reduced, or scalars
#
# Parts come about where a sum over a dimension that an axis cuts is not brought together
# (`sums_kept_apart`), and from whole values, of which the first member keeps what there is.

_NONE: frozenset[Any] = frozenset()

sums_kept_apart: config.Option[frozenset[Any]] = config.define(
    config.Option(
        "sums_kept_apart",
        _NONE,
        "Axes of type Explicit along which sums over sharded dimensions stay unreduced.",
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
    if aval.type_sharding is None:
        return Sums()
    return Sums(aval.type_sharding.spec.unreduced, aval.type_sharding.spec.reduced)


def linear_operands(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]
) -> tuple[frozenset[int], bool]:
    """Return the operands that a primitive is linear in, and whether in all of them together."""
    rule = primitive.rules.get("linearity", primitive.rules.get("jvp"))
    if "linearity" in primitive.rules and callable(rule):
        rule = rule(avals, params)
    if rule is xprim.LINEAR:
        return frozenset(range(len(avals))), True
    if isinstance(rule, LinearIn | xprim.MultiLinear):
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
        _refuse(primitive, avals, f"it is not linear in an operand that is unreduced along "
                f"{shown}", "reshard(x, P(...)) sums it first")  # fmt: skip
    if together:
        return
    if len(apart) > 1:
        _refuse(primitive, avals, "two factors of a product are in parts of sums",
                "reshard(x, P(...)) adds up the parts of one of them first")  # fmt: skip
    for i in argnums.difference(apart):
        if avals[i].ndim and not axes <= sums[i].reduced:
            _refuse(primitive, avals, f"one factor is unreduced along {shown}, and the "
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
                    "reshard(x, P(...)) sums it first")  # fmt: skip


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
            "auto_axes, shard_map", f"a value of outside is unreduced along {axis!r}, "
            "which is of another type inside.", got=repr(spec),
            hint="reshard(x, P(...)) sums it first; shard_map takes them as an argument",
        ))  # fmt: skip
    return sharding.update(mesh=mesh, spec=spec.update(reduced=spec.reduced & known))


def check_parts(aval: ShapedArray, sharding: NamedSharding) -> None:
    """Raise where elements cannot be parts of a sum."""
    if sharding.spec.unreduced and (dtypes.is_extended(aval.dtype) or aval.dtype == dtypes.bool_):
        raise ShardingTypeError(message(
            "reshard", f"elements of dtype {aval.dtype} cannot be parts of a sum.",
            got=f"{aval.str_long()}, {sharding.spec}", expected="numbers",
        ))  # fmt: skip
