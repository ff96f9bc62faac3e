"""Sharding rules: how results of primitives are sharded over explicit axes, from their operands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import xprim
from xjit.sharding import shardings
from xjit.sharding.partial_sums import Sums, check_call, sums_kept_apart, sums_of_results
from xjit.sharding.shardings import PartitionSpec, axes_of, says_of_manual_axes, with_manual_axes
from xnp.primitives.table import broadcast_to, fill, select
from xprim import Primitive, ShapedArray, config, dtypes, get_primitive, scalar_array, shaped_array
from xprim.avals import PINNED_HOST, MemorySpace
from xprim.calls import Programs
from xprim.dimension_names import AS_SAID, Names, alike
from xprim.errors import MixedMemoryError, message
from xprim.jaxpr import ClosedJaxpr, held_programs, programs_inside
from xprim.sharded_types import ShardingTypeError, in_memory_kind

__all__ = [
    "AS_SAID", "Names", "alike", "rule_of", "ForbiddenCollectiveError", "no_collectives",
    "results_of", "recast", "axis_uses",
]  # fmt: skip

__dir__ = __all__.copy

# ------------------------------------------------------------------------------- dimension names
# Which dimensions of operands and results of a primitive correspond: how the rules are looked up.
#
# Owners of primitives write them (`xprim.dimension_names`, rule kind `dimensions`); elementwise
# ones need none.


def rule_of(primitive: Primitive) -> Any:
    """Return the rule of a primitive, AS_SAID, or None where nothing is known of its dimensions."""
    found = primitive.rules.get("dimensions")
    if found is None and primitive.rules["batch"] is xprim.ELEMENTWISE:
        return alike
    return found


# -------------------------------------------------------------------------------- sharding rules
# How results of primitives are sharded over explicit axes of a mesh, from how their operands are.
#
# A rule names the dimensions of the operands and the results of a primitive: dimensions of one
# name correspond, and are cut alike (`dimension_names` has the rules). From that follows what all
# types need:
#
#     a dimension of a result   is cut as the operands' dimensions of its name are; None gives way
#     of no result              is summed over, or chosen from: XLA brings the members together
#     None among an operand's   must be whole: sort along it, index it
#
# Where two operands differ, where two dimensions of a result would be cut along one axis, and
# where both sides of a contraction are cut, it is the program that must say what it wants
# (`ShardingTypeError`).

no_collectives: config.Option[frozenset[Any]] = config.define(
    config.Option(
        "no_collectives",
        frozenset(),
        "Axes of type Explicit along which no operation may exchange values.",
        kind=frozenset,
        in_cache_key=True,
    )
)


class ForbiddenCollectiveError(ShardingTypeError):
    """An operation would exchange values along an axis that `no_collectives` names.

    Sums over a dimension that the axis cuts, and changes of what it cuts, need all of its members:

        with no_collectives({"x"}):
            y = x.sum(0)        # x: float32[8@x,4]
            z = x.sum(1)        # of float32[8@x,4] gives float32[8@x]: each device by itself
    """


_SPLIT = frozenset(["dot_general", "reduce_sum"])
"""What can leave a sum in parts: its batch rule serves for a contracted dimension that is split."""

_REMEDY = "auto_axes(f)(..., out_sharding=P(...)) leaves the operation to the compiler"


def results_of(
    primitive: Any, avals: Sequence[ShapedArray], params: dict[str, Any],
    out: Sequence[ShapedArray],
) -> tuple[ShapedArray, ...]:  # fmt: skip
    """Return the types of the results of a primitive, at least one of whose operands is sharded.

    Args:
      primitive: the operation.
      avals: the types of its operands, on a mesh or in the memory of the host.
      params: its params.
      out: the types of its results, by its own rule.

    Raises:
      ShardingTypeError: it is not clear how a result is to be sharded.
      MixedMemoryError: operands are in the memory of the host and in that of the device.
    """
    if all(a.memory_space is MemorySpace.Device for a in avals) or _says_memory(primitive):
        return _results_along_axes(primitive, avals, params, out)
    kind = _common_memory(primitive, avals)
    out = tuple([in_memory_kind(a, None) for a in out])
    avals = [in_memory_kind(a, None) for a in avals]
    if any(a.type_sharding is not None for a in avals):
        out = _results_along_axes(primitive, avals, params, out)
    return tuple([in_memory_kind(a, kind) for a in out])


def _says_memory(primitive: Any) -> bool:
    """Return whether the types of results are those of a program, or as the primitive says."""
    return primitive.call_like or rule_of(primitive) is AS_SAID


def _common_memory(primitive: Any, avals: Sequence[ShapedArray]) -> str | None:
    """Return the memory kind of results: that of the operands; scalars agree with any."""
    which = primitive.rules.get("memory_of")
    operands = avals if which is None else [avals[which]]
    spaces = {a.memory_space for a in operands if a.ndim} or {operands[0].memory_space}
    if len(spaces) > 1:
        raise MixedMemoryError(message(
            primitive.name, "operands are in the memory of the host and in that of the device.",
            got=", ".join([a.str_long() for a in avals]), expected="operands in one memory",
            hint="device_put(x, memory.Space.Device) brings what is on the host to the device",
        ))  # fmt: skip
    return PINNED_HOST if MemorySpace.Host in spaces else None


def _results_along_axes(
    primitive: Any, avals: Sequence[ShapedArray], params: dict[str, Any],
    out: Sequence[ShapedArray],
) -> tuple[ShapedArray, ...]:  # fmt: skip
    """Return the types of results, as far as the axes of a mesh say them."""
    if any(says_of_manual_axes(a.type_sharding) for a in avals):
        return _results_of_members(primitive, avals, params, out)
    rule = rule_of(primitive)
    if rule is None:
        if primitive.call_like:  # the types of its program say it
            check_call(primitive, avals, params)
            return tuple(out)
        _refuse(primitive, avals, "it does not say how its results are sharded", _RESHARD)
    if rule is AS_SAID:
        for before, after in zip(avals, out, strict=False):
            _check_change(primitive, before, after)
        return tuple(out)
    found = rule(avals, out, params)
    mesh = _common_mesh(primitive, avals)
    sums = sums_of_results(primitive, avals, params)
    if isinstance(found, Names):
        apart = sums_kept_apart.value if primitive.name in _SPLIT else frozenset()
        parts, left = _parts_by_name(primitive, avals, found, apart)
        sums = Sums(sums.unreduced | left, sums.reduced - left)
    else:
        if found is None:
            _refuse(primitive, avals, "an axis would shard dimensions that it merges or splits",
                    "pass out_sharding= to say how the result is sharded")  # fmt: skip
        parts = found
    return tuple([_check_result_type(primitive, avals, a, p, mesh, sums)
                  for a, p in zip(out, parts, strict=True)])  # fmt: skip


def _results_of_members(
    primitive: Any, avals: Sequence[ShapedArray], params: dict[str, Any],
    out: Sequence[ShapedArray],
) -> tuple[ShapedArray, ...]:  # fmt: skip
    """Return the types of results where types say what members of manual axes hold.

    Results vary over the axes of any operand, and are in parts of sums where an operand is. A
    collective says by its rules of kind `shard` and `sums` what it changes; the results of a call
    have the types of its program.
    """
    if primitive.call_like and held_programs(params):
        check_call(primitive, avals, params)
        _check_members_meet(primitive, avals, params)
        return tuple(out)
    axes = [a.vma for a in avals]
    mesh = next(a.type_sharding.mesh for a in avals if says_of_manual_axes(a.type_sharding))
    rule = None if primitive.call_like else primitive.rules.get("shard")
    said = rule(*axes, **params) if rule else [frozenset().union(*axes)] * len(out)
    along = [found.intersection(mesh.axis_names) for found in said]  # not of names of vmap
    unreduced, reduced = _sums_of_members(primitive, avals, params, mesh)
    explicit = [_retype_along(a, shardings.along_explicit_axes(a.type_sharding)) for a in avals]
    if any(a.type_sharding is not None for a in explicit):
        out = results_of(primitive, explicit, params, out)
    held = [xprim.ManualAxisType(varying, unreduced, reduced - varying) for varying in along]
    return tuple(
        [
            _retype_along(a, with_manual_axes(a.type_sharding, kind, mesh, a.ndim))
            for a, kind in zip(out, held, strict=True)
        ]
    )


def _check_members_meet(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]
) -> None:
    """Raise where members of an axis decide differently whether they reach a collective over it.

    Those that reach it would wait for the others, until XLA ends the process.
    """
    programs: Programs | None = primitive.rules.get("programs")
    decides = None if programs is None else programs.decision(params, avals)
    if decides is None:
        return
    found = [
        (name, axis) for program in held_programs(params) for name, axis in axis_uses(program)
        if axis in decides.vma and name != "axis_index"
    ]  # fmt: skip
    if found:
        operation, axis = min(found, key=str)
        name = "while_loop" if primitive.name == "while" else primitive.name
        raise ValueError(message(
            name, f"members of the axis {axis!r} would wait for each other: a value that "
            "differs among them decides which reach a collective.",
            got=f"{operation} over {axis!r} inside, decided by {decides.str_long()}",
            expected="a condition that is the same for all members, or collectives outside",
            hint=f"pmax(condition, {axis!r}) is the condition where members agree, and else lets "
            "all continue while one does; where(condition, x, y) chooses among values of all",
        ))  # fmt: skip


def axis_uses(closed: ClosedJaxpr) -> frozenset[tuple[str, Any]]:
    """Return the primitives of a program, and of those inside it, that are over named axes.

    Each is a pair of the name of a primitive and an axis.
    """
    return closed.derived(_axis_uses)


def _axis_uses(closed: ClosedJaxpr) -> frozenset[tuple[str, Any]]:
    found = {
        (eqn.primitive.name, axis)
        for eqn in closed.jaxpr.eqns
        if eqn.primitive.axis_param
        for axis in eqn.params[eqn.primitive.axis_param]
    }
    return frozenset(found.union(*map(axis_uses, programs_inside(closed))))


def _sums_of_members(
    primitive: Any, avals: Sequence[ShapedArray], params: dict[str, Any], mesh: Any
) -> Sums:
    """Return the manual axes along which results, or their cotangents, are in parts of sums."""
    held = [a.mat for a in avals]
    rule = primitive.rules.get("sums")
    if rule is not None:
        return Sums(*rule(held[0].unreduced, held[0].reduced, **params))
    if not any(kind.unreduced or kind.reduced for kind in held):
        return Sums()
    parts = [kind._replace(varying=frozenset()) for kind in held]
    alone = [_retype_along(a, with_manual_axes(None, kind, mesh, a.ndim))
             for a, kind in zip(avals, parts, strict=True)]  # fmt: skip
    sums = sums_of_results(primitive, alone, params)
    varying = frozenset().union(*[a.vma for a in avals])
    for axis in sorted(sums.unreduced & varying, key=str):
        _refuse(primitive, avals, f"one operand is unreduced along {axis!r}, and another "
                "varies over it", f"pcast(x, {axis!r}, to='unreduced') counts as parts what varies;"
                f"\npsum(y, {axis!r}) adds parts up")  # fmt: skip
    return sums


def _retype_along(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """Return a type with another account of how values are spread."""
    if sharding is aval.type_sharding:
        return aval
    return shaped_array(aval.shape, aval.dtype, aval.weak_type, sharding)


_RESHARD = f"reshard(x, P()) replicates an operand; {_REMEDY}"


def _parts_by_name(
    primitive: Any, avals: Sequence[ShapedArray], names: Names, apart: frozenset[Any]
) -> tuple[list[list[Any]], frozenset[Any]]:
    """Return for each result by which axes each dimension is cut, and where sums stay in parts.

    Args:
      primitive: the operation.
      avals: the types of its operands.
      names: those of dimensions.
      apart: axes along which a sum over a dimension that they cut is not brought together.
    """
    in_results = {name for dims in names.results for name in dims}
    parts: dict[Any, Any] = {}
    for name, part in _cut(primitive, avals, names):
        is_clear = name in in_results or not apart.isdisjoint(axes_of(part))
        if name in parts and not (is_clear and parts[name] == part):
            _refuse_pair(primitive, avals, name in in_results)
        parts[name] = part
    summed = [n for name, part in parts.items() if name not in in_results for n in axes_of(part)]
    _check_sums(primitive, avals, [name for name in summed if name not in apart])
    parts[None] = None
    return [[parts.get(n) for n in dims] for dims in names.results], apart.intersection(summed)


def _cut(primitive: Any, avals: Sequence[ShapedArray], names: Names) -> Iterator[tuple[Any, Any]]:
    """Yield the names of the dimensions of operands that are cut, and by what."""
    for aval, dims in zip(avals, names.operands, strict=True):
        spec = () if aval.type_sharding is None else aval.type_sharding.spec
        for dim, (name, part) in enumerate(zip(dims, spec, strict=bool(spec))):
            if part is not None and name is None:
                _refuse(primitive, avals, f"the dimension {dim} of {aval.str_short()} must be "
                        "whole", _RESHARD)  # fmt: skip
            if part is not None:
                yield name, part


def _check_result_type(
    primitive: Any, avals: Sequence[ShapedArray], aval: ShapedArray, parts: Sequence[Any],
    mesh: Any, sums: Sums,
) -> ShapedArray:  # fmt: skip
    """Return the type of a result, after a look at what cuts it."""
    axes = [name for part in parts for name in axes_of(part)]
    sizes = mesh.shape
    if sums.unreduced.intersection(axes):
        _refuse(primitive, avals, "an axis would both shard the result and leave it unreduced",
                f"reshard one operand first; {_REMEDY}")  # fmt: skip
    if len(set(axes)) < len(axes):
        twice = next(name for name in axes if axes.count(name) > 1)
        _refuse(primitive, avals, f"two dimensions of the result would be sharded along the axis "
                f"{twice!r}", f"reshard one operand first; {_REMEDY}")  # fmt: skip
    for n, part in zip(aval.shape, parts, strict=True):
        if n % math.prod([sizes[name] for name in axes_of(part)]):
            _refuse(primitive, avals, f"a dimension of size {n} of the result does not divide "
                    f"over {part!r}", _RESHARD)  # fmt: skip
    reduced, sharding = sums.reduced.difference(axes), None
    if axes or sums.unreduced or reduced:
        spec = PartitionSpec(*parts, unreduced=sums.unreduced, reduced=reduced)
        sharding = shardings.NamedSharding(mesh, spec)
    return shaped_array(aval.shape, aval.dtype, aval.weak_type, sharding)


def _common_mesh(primitive: Any, avals: Sequence[ShapedArray]) -> Any:
    meshes = [a.type_sharding.mesh for a in avals if a.type_sharding is not None]
    for mesh in meshes:
        if mesh.shape_tuple != meshes[0].shape_tuple:
            _refuse(primitive, avals, "the operands are sharded over different meshes",
                    f"{meshes[0]!r} and {mesh!r}: device_put brings them together")  # fmt: skip
    return meshes[0]


def _check_sums(primitive: Any, avals: Sequence[ShapedArray], axes: Sequence[Any]) -> None:
    """Raise where members of a forbidden axis would be brought together."""
    for name in axes:
        if name in no_collectives.value:
            _forbid(primitive, avals, name)


def _check_change(primitive: Any, before: ShapedArray, after: ShapedArray) -> None:
    """Raise where a forbidden axis would no longer cut the dimension that it cuts."""
    if before.type_sharding is None or not no_collectives.value:
        return
    later = (
        PartitionSpec(*[None] * before.ndim)
        if after.type_sharding is None
        else after.type_sharding.spec
    )
    changed = set(before.type_sharding.spec.unreduced - later.unreduced)
    for old, new in zip(before.type_sharding.spec, later, strict=True):
        changed |= set(axes_of(old)) - set(axes_of(new))
    for name in sorted(changed.intersection(no_collectives.value), key=str):
        _forbid(primitive, (before, after), name)


def _forbid(primitive: Any, avals: Sequence[ShapedArray], name: Any) -> NoReturn:
    raise ForbiddenCollectiveError(message(
        primitive.name, f"it would exchange values along the axis {name!r}, which no_collectives "
        "forbids.", got=", ".join([a.str_long() for a in avals]),
    ))  # fmt: skip


def _refuse_pair(primitive: Any, avals: Sequence[ShapedArray], is_kept: bool) -> NoReturn:
    if is_kept:
        _refuse(primitive, avals, "corresponding dimensions are sharded along different axes",
                "reshard(x, ...) makes them agree, or replicates one of them")  # fmt: skip
    _refuse(primitive, avals, "the contracted dimensions of both operands are sharded, so the "
            "sharding of the result is ambiguous",
            "pass out_sharding=, as in einsum(..., out_sharding=P())")  # fmt: skip


def _refuse(primitive: Any, avals: Sequence[ShapedArray], problem: str, hint: str) -> NoReturn:
    raise ShardingTypeError(message(
        primitive.name, f"{problem}.", got=", ".join([a.str_long() for a in avals]), hint=hint,
    ))  # fmt: skip


# --------------------------------------------------------------------------- casts over manual axes
# What members of manual axes hold of a value, and how it becomes something else.
#
# One value for all (`"invarying"`), values of their own (`"varying"`), the parts of a sum
# (`"unreduced"`), or the value while its cotangent is in parts (`"reduced"`): the words of `pcast`.


def recast(x: Any, axes: tuple[Any, ...], old: str, new: str, mesh: Any) -> Any:
    """Return a value of which members of manual axes hold something else.

    The value stays what it is: one for all members, or the sum of their parts; of what varies it is
    the sum, too, as of cotangents.

    Args:
      x: the value.
      axes: of type Manual.
      old: what members hold: `"invarying"`, `"varying"`, `"unreduced"` or `"reduced"`.
      new: what they are to hold.
      mesh: the mesh, as it is inside.
    """
    if not axes or old == new:
        return x
    if old in ("varying", "unreduced") and (old, new) != ("varying", "unreduced"):
        (x,) = get_primitive("psum").bind(x, axes=axes, axis_index_groups=None)
        return recast(x, axes, "invarying", new, mesh)
    if old != "varying" and new == "unreduced":
        x = recast(x, axes, old, "varying", mesh)
        return recast(_of_first_members(x, axes, mesh), axes, "varying", new, mesh)
    if (old, new) == ("invarying", "varying"):
        return get_primitive("pvary").bind(x, axes=axes, mesh=mesh)[0]
    return get_primitive("pcast").bind(x, axes=axes, mesh=mesh, old=old, new=new)[0]


def _of_first_members(x: Any, axes: tuple[Any, ...], mesh: Any) -> Any:
    """Return zeros but for the member that is the first one along each of some axes."""
    zeros = fill(x.aval.shape, 0, x.aval.dtype)
    for axis in axes:
        (number,) = get_primitive("axis_index").bind(axis_name=(axis,))
        number = recast(number, (axis,), number.aval.mat.state(axis), "varying", mesh)
        (is_first,) = get_primitive("eq").bind(number, scalar_array(0, dtypes.int32))
        x = select(broadcast_to(is_first, x.aval.shape), x, zeros)
    return x
