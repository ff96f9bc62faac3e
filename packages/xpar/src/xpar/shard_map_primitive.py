"""The primitive `shard_map`: a program that each device of a mesh runs, with all of its rules.

Params: `jaxpr` is the program of one device; `mesh`; `manual`, the axes whose members run by
themselves; `active`, those of them along which any value varies; `in_lays` and `out_lays` say how
each operand is cut and each result joined; `check_vma`, whether types say what varies. Evaluated it
is a program of one equation over the mesh. Under a transformation the program of the device is
transformed and `shard_map` is bound again, by the rules that `xprim.calls` gives all calls.

Where types say what varies, the program of a member has for what all members share one cotangent,
the sum over members (`varying_axes`). Without types, what all members get whole, each gives a
cotangent of its own, and these are summed here; what they agree on is one value, of which each has
a share, so its cotangent is divided among them. Along an axis that is not active all members do the
same, so one of them stands for all.

Neighbours: `shard_map` is the public function, `xjit.manual_text` writes programs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from xjit.manual_text import Port, manual_computation
from xjit.meshes import AbstractMesh, AxisType, abstract_mesh_now, current_abstract_mesh
from xjit.named_shardings import NamedSharding, check_axis_names
from xjit.partition_specs import PartitionSpec, axes_of
from xjit.program import Program
from xjit.typed_shardings import typed_as
from xnp import lax
from xnp.primitives.operations import filled, mul, scalar_like
from xpar.varying_axes import checked_axes, varying_over, varying_type
from xprim import (
    EAGER_ON_HOST,
    ClosedJaxpr,
    Equation,
    Jaxpr,
    Primitive,
    ShapedArray,
    Var,
    Zero,
    config,
    eval_closed,
    extended_axes,
    shaped_array,
    state,
    trace_to_jaxpr,
)
from xprim.calls import all_to_front, call_rules, front_dims
from xprim.contracts import BatchAxis, Builder, ChecksHandle, TransposeHandle
from xprim.errors import message
from xprim.sharded_types import ShardingTypeError, spread_as, whole
from xprim.varying_axes import Axes, varying_results

__all__ = ()

_NONE: frozenset[Any] = frozenset()


class Lay(NamedTuple):
    """How the pieces of a value make up the whole.

    Attributes:
      spec: the axes along which each dimension of a piece is cut.
      dim: where a dimension stands, in the whole, along which pieces are stacked; None for none.
      axes: the axes whose members are stacked there.
      last: the axes whose members have their parts of a sum stacked along a last dimension.
    """

    spec: PartitionSpec
    dim: int | None = None
    axes: tuple[Any, ...] = ()
    last: tuple[Any, ...] = ()

    def whole(self, local: ShapedArray, sizes: dict[Any, int]) -> ShapedArray:
        """Return the abstract value of the whole, from that of a piece."""
        shape = list(local.shape)
        for i, part in enumerate(self.spec):
            shape[i] *= math.prod([sizes[name] for name in axes_of(part)])
        if self.dim is not None:
            shape.insert(self.dim, math.prod([sizes[name] for name in self.axes]))
        if self.last:
            shape.append(math.prod([sizes[name] for name in self.last]))
        return shaped_array(tuple(shape), local.dtype, local.weak_type)

    def typed(self, local: ShapedArray, mesh: Any, manual: Sequence[Any]) -> ShapedArray:
        """Return the abstract value of the whole, with what types say of it outside.

        Args:
          local: the abstract value of a piece.
          mesh: the mesh.
          manual: the axes whose pieces make up the whole; along others it may vary.
        """
        whole = self.whole(local, dict(mesh.shape))
        sharding = self.sharding(mesh, whole.ndim)
        if local.spread is not None:  # along axes that are not manual
            parts = list(local.spread.spec)
            if self.dim is not None:
                parts.insert(self.dim, None)
            parts += [None] * (whole.ndim - len(parts))
            outer = [*sharding.spec, *[None] * (len(parts) - len(sharding.spec))]
            inner = local.spread.spec
            if self.spec.unreduced and inner.unreduced:
                raise ShardingTypeError(message(
                    "shard_map", "a value is in parts of sums inside, and across members.",
                    got=f"{self.spec} for {local.str_long()} on each of them",
                    hint="reshard(x, P(...)) inside adds up the parts there",
                ))  # fmt: skip
            sharding = sharding.update(spec=PartitionSpec(
                *[axes_of(a) + axes_of(b) for a, b in zip(outer, parts, strict=True)],
                unreduced=self.spec.unreduced | inner.unreduced,
                reduced=self.spec.reduced | inner.reduced,
            ))  # fmt: skip
        kept = local.vma.difference(manual)
        found = typed_as(whole, sharding)
        if not kept:
            return found
        return varying_type(found, kept, local.spread.mesh)

    def piece(self, whole: ShapedArray, mesh: Any, varying: frozenset[Any] = _NONE) -> ShapedArray:
        """Return the abstract value of a piece, where none are stacked.

        Args:
          whole: the abstract value of the whole.
          mesh: as it is inside: along axes of type Explicit the piece is still cut.
          varying: the manual axes along which types say what varies.
        """
        shape, sizes = list(whole.shape), mesh.shape
        for i, part in enumerate(self.spec):
            shape[i] //= math.prod([sizes[name] for name in axes_of(part)])
        local = shaped_array(tuple(shape), whole.dtype, whole.weak_type)
        if whole.spread is not None:
            local = typed_as(local, whole.spread.update(mesh=mesh))
        # of what is reduced each member has a copy, whose cotangent is its part of the sum
        axes = varying.intersection([*self.spec.names(), *self.spec.sums])
        if not axes:
            return local
        return varying_type(local, axes, mesh)

    def sharding(self, mesh: Any, ndim: int = 0) -> NamedSharding:
        """Return how the whole, of so many dimensions, lies on a mesh."""
        if self.dim is None and not self.last:
            return NamedSharding(mesh, self.spec)
        parts = list(self.spec)
        if self.dim is not None:
            parts += [None] * (self.dim - len(parts))
            parts.insert(self.dim, self.axes)
        if self.last:
            parts += [*[None] * (ndim - 1 - len(parts)), self.last]
        return NamedSharding(mesh, self.spec.update(partitions=parts))

    def port(self, local: ShapedArray, mesh: Any) -> Port:
        """Return what the text of a program says of the value."""
        shape = list(local.shape)
        if self.dim is not None:
            shape.insert(self.dim, 1)
        block = shaped_array((*shape, *[1] * bool(self.last)), local.dtype)
        whole = self.whole(local, dict(mesh.shape)).strong()
        return Port(self.sharding(mesh, whole.ndim), whole, block, local.strong())

    def stacked(self, mesh: Any) -> Lay:
        """Return how the parts of a sum lie, stacked along a last dimension."""
        axes = tuple([name for name in mesh.axis_names if name in self.spec.unreduced])
        return self._replace(spec=self.spec.update(unreduced=frozenset()), last=axes)

    def batched(self, along: tuple[Any, ...] = ()) -> Lay:
        """Return how a value lies that gets a batch dimension in front, cut along these axes."""
        dim = None if self.dim is None else self.dim + 1
        return Lay(self.spec.update(partitions=(along or None, *self.spec)), dim, self.axes)

    def dual(self) -> Lay:
        """Return how cotangents lie: in parts where the value is reduced, and the other way."""
        spec = self.spec
        return Lay(spec.update(unreduced=spec.reduced, reduced=spec.unreduced), self.dim, self.axes)

    def shared(self, active: Sequence[Any]) -> tuple[Any, ...]:
        """Return the axes whose members all have the same piece."""
        used = {*self.spec.names(), *self.spec.sums, *self.axes}
        return tuple([name for name in active if name not in used])


def _shape(*avals: Any, jaxpr: ClosedJaxpr, mesh: Any, manual: Any, out_lays: Any, **_: Any) -> Any:
    return tuple([
        lay.typed(a, mesh, manual) for a, lay in zip(jaxpr.out_avals, out_lays, strict=True)
    ])  # fmt: skip


def program_over_mesh(params: dict[str, Any], donated: tuple[bool, ...] = ()) -> Program:
    """Return the program of a call with these params, kept in the memo of its jaxpr.

    Args:
      params: as `shard_map_p` has them.
      donated: for each argument, whether a result may take its memory.
    """
    jaxpr: ClosedJaxpr = params["jaxpr"]
    rest = [value for key, value in params.items() if key != "jaxpr"]
    key = ("over mesh", donated, *rest, config.trace_context())
    found = jaxpr.memo.get(key)
    if found is None:
        found = jaxpr.memo[key] = _program(jaxpr, params, donated)
    return found


def _program(jaxpr: ClosedJaxpr, params: dict[str, Any], donated: tuple[bool, ...]) -> Program:
    mesh = params["mesh"]
    sides = [[Var(lay.typed(a, mesh, params["manual"])) for a, lay in zip(avals, lays, strict=True)]
             for avals, lays in ((jaxpr.in_avals, params["in_lays"]),
                                 (jaxpr.out_avals, params["out_lays"]))]  # fmt: skip
    equation = Equation(shard_map_p, sides[0], sides[1], params)
    closed = ClosedJaxpr(Jaxpr([], sides[0], sides[1], [equation], params["name"]))
    if len(params["manual"]) < len(mesh.axis_names):  # the other axes follow the data
        return Program(closed, params["name"], donated=donated)
    return Program(
        closed, params["name"], donated=donated,
        in_shardings=tuple([lay.sharding(mesh) for lay in params["in_lays"]]),
        out_shardings=tuple([lay.sharding(mesh) for lay in params["out_lays"]]),
    )  # fmt: skip


def _numpy(*operands: Any, **params: Any) -> Any:
    if state.trace is EAGER_ON_HOST:
        raise RuntimeError(message(
            "shard_map", "a callback cannot start a program on several devices, whose threads may "
            "wait for the callback.",
            got=str(params["name"]), hint="call it outside of the callback",
        ))  # fmt: skip
    return tuple(program_over_mesh(params).call(operands))


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, jaxpr: ClosedJaxpr,
               mesh: Any, manual: Any, in_lays: Any, out_lays: Any, name: str,
               active: Any, check_vma: bool = False) -> Any:  # fmt: skip
    ports_in = [lay.port(a, mesh) for a, lay in zip(jaxpr.in_avals, in_lays, strict=True)]
    ports_out = [lay.port(a, mesh) for a, lay in zip(jaxpr.out_avals, out_lays, strict=True)]
    return manual_computation(b, jaxpr, operands, ports_in, ports_out, mesh, manual, name)


def _derived(kind: str, params: dict[str, Any], entries: Any) -> dict[str, Any]:
    """Return how the values of a derived call lie: what stands for a value, as that value does."""
    active = params["active"]
    residual = Lay(PartitionSpec(), 0, active)
    outs = params["out_lays"]
    if kind == "transpose":
        outs = tuple([lay.dual() for lay in outs])
    in_lays, out_lays = entries(params["in_lays"], outs, residual, Lay.batched)
    if kind == "transpose":
        out_lays = [lay.dual() for lay in out_lays]
        if not params["check_vma"]:
            out_lays = [_summed(lay, active) for lay in out_lays]
    name = params["name"] if kind in ("primal", "dce") else f"{kind}_{params['name']}"
    return {"in_lays": tuple(in_lays), "out_lays": tuple(out_lays), "name": name}


def _summed(lay: Lay, active: Sequence[Any]) -> Lay:
    """Return how the cotangents lie of a value that some members share: stacked, to be summed."""
    shared = lay.shared(active)
    return Lay(lay.spec, 0, shared) if shared else lay


@contextmanager
def member_scope(mesh: Any, manual: Sequence[Any], check_vma: bool) -> Iterator[None]:
    """Bind the axes that a member has a place along, which are of type Manual there."""
    checked = checked_axes.value.difference(manual).union(manual if check_vma else ())
    with (
        extended_axes({name: mesh.shape[name] for name in manual}),
        current_abstract_mesh(mesh_inside(mesh, manual)),
        checked_axes(checked),
    ):
        yield


def mesh_inside(mesh: Any, manual: Sequence[Any]) -> AbstractMesh:
    """Return the mesh as a member sees it."""
    types = dict.fromkeys(manual, AxisType.Manual)
    outside = abstract_mesh_now()
    if outside is not None and outside.axis_names == mesh.axis_names:
        types |= dict.fromkeys(outside.manual_axes, AxisType.Manual)
    found: AbstractMesh = mesh.abstract_mesh.update_axis_types(types)
    return found


def _scope(params: dict[str, Any]) -> Any:
    if params["check_vma"]:
        return member_scope(params["mesh"], params["manual"], True)
    sizes = params["mesh"].shape
    return extended_axes({name: sizes[name] for name in params["manual"]})


_RULES = call_rules("shard_map", derived=_derived, scope=_scope)


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    """Give each device whole batches of pieces; where axes of the mesh cut them, a part of each."""
    along = _axes_of_examples(axis, jaxpr, params)
    if not along:
        return _RULES["batch"](axis, operands, dims, jaxpr=jaxpr, **params)
    values, mapped = all_to_front(axis, operands, dims)
    count = math.prod([params["mesh"].shape[name] for name in along])
    _check_count(axis, count, params)
    own: Any = type(axis)  # an axis of the members, each of which has its share of the examples
    with _scope(params):
        batched, mapped_out = own(axis.size // count).batch_jaxpr(jaxpr, mapped, False)
        if params["check_vma"]:
            batched = _with_examples_along(batched, mapped, mapped_out, along, params)
    changed = {
        kind: tuple([lay.batched(along) if m else lay for lay, m in zip(lays, mask, strict=True)])
        for kind, lays, mask in (("in_lays", params["in_lays"], mapped),
                                 ("out_lays", params["out_lays"], mapped_out))
    }  # fmt: skip
    active = [n for n in params["manual"] if n in along or n in params["active"]]
    results = shard_map_p.bind(
        *values, jaxpr=batched,
        **params | changed | {"active": tuple(active), "name": f"batched_{params['name']}"},
    )  # fmt: skip
    return results, front_dims(mapped_out)


def _axes_of_examples(axis: BatchAxis, jaxpr: ClosedJaxpr, params: Any) -> tuple[Any, ...]:
    """Return the manual axes that cut the examples; none where members ask for all of these."""
    asked = axis.mesh_axes
    if axis.spread is None:
        check_axis_names(f"vmap of shard_map({params['name']}): spmd_axis_name", params["mesh"],
                         PartitionSpec(asked))  # fmt: skip
    if not asked or not set(asked) <= set(params["manual"]) or _is_named(jaxpr, axis.name):
        return ()
    lays = (*params["in_lays"], *params["out_lays"])
    used = set(params["active"]).union(*[lay.spec.names() for lay in lays], _axes_in(jaxpr))
    taken = [name for name in asked if name in used]
    if not taken:
        return asked
    if axis.spread is None:  # somebody asked for it by name
        raise ValueError(message(
            f"vmap of shard_map({params['name']})",
            f"spmd_axis_name {taken[0]!r} is used by the function already.",
            expected="axes of the mesh that its specs and collectives do not name",
            hint="leave spmd_axis_name out",
        ))  # fmt: skip
    return ()


def _with_examples_along(
    batched: ClosedJaxpr, mapped: Sequence[bool], mapped_out: Sequence[bool],
    along: tuple[Any, ...], params: Any,
) -> ClosedJaxpr:  # fmt: skip
    """Return a program of whole batches in whose types these vary along the axes that cut them."""
    mesh = mesh_inside(params["mesh"], params["manual"])
    avals = [
        varying_type(a, frozenset(along), mesh) if m else a
        for a, m in zip(batched.in_avals, mapped, strict=True)
    ]

    def member(*pieces: Any) -> list[Any]:
        outs = eval_closed(batched, *pieces)
        return [varying_over(y, along) if m else y for y, m in zip(outs, mapped_out, strict=True)]

    return ClosedJaxpr(*trace_to_jaxpr(member, avals, name=batched.jaxpr.name))


def _check_count(axis: BatchAxis, count: int, params: Any) -> None:
    if axis.size % count:
        raise ValueError(message(
            f"vmap of shard_map({params['name']})",
            f"{axis.size} examples do not divide evenly along spmd_axis_name {axis.mesh_axes!r}.",
            expected=f"a multiple of {count}", hint="pad the batch, or leave spmd_axis_name out",
        ))  # fmt: skip


def _is_named(jaxpr: ClosedJaxpr, name: Any) -> bool:
    return name is not None and name in _axes_in(jaxpr)


def _axes_in(jaxpr: ClosedJaxpr) -> frozenset[Any]:
    """Return the names of axes that collectives of a program name."""
    found: set[Any] = set()
    for eqn in jaxpr.jaxpr.eqns:
        if eqn.primitive.axis_param:
            found.update(eqn.params[eqn.primitive.axis_param])
        for value in eqn.params.values():
            items = value if isinstance(value, tuple) else (value,)
            found = found.union(*[_axes_in(x) for x in items if type(x) is ClosedJaxpr])
    return frozenset(found)


def _transpose(handle: TransposeHandle, cts: Any, *operands: Any, **params: Any) -> Any:
    if params["check_vma"]:
        return _RULES["transpose"](handle, cts, *operands, **params)
    active, sizes = params["active"], dict(params["mesh"].shape)
    shares = []
    for ct, lay in zip(cts, params["out_lays"], strict=True):
        count = math.prod([sizes[name] for name in lay.shared(active)])
        one = type(ct) is Zero or count == 1
        shares.append(ct if one else mul(ct, scalar_like(ct, 1 / count)))
    found = _RULES["transpose"](handle, shares, *operands, **params)
    return [
        ct if type(ct) is Zero or not lay.shared(active) else lax.reduce_sum(ct, (0,))
        for ct, lay in zip(found, params["in_lays"], strict=True)
    ]


def _stacked(*, mesh: Any, in_lays: Any, out_lays: Any, **_params: Any) -> dict[str, Any]:
    return {
        name: tuple([lay.stacked(mesh) for lay in lays])
        for name, lays in (("in_lays", in_lays), ("out_lays", out_lays))
    }


def _shard(*operands: Axes, jaxpr: ClosedJaxpr, manual: Any, **_params: Any) -> list[Axes]:
    """Inside of another `shard_map`: along its own axes all of a result is one value."""
    return [axes.difference(manual) for axes in varying_results(jaxpr, operands)]


def checked_member(handle: ChecksHandle, jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program of a member with checks, which begins with none that failed."""

    def member(*pieces: Any) -> Any:
        nothing = [filled(a.shape, 0, a.dtype) for a in handle.avals]
        after, outs = handle.run(jaxpr, nothing, pieces)
        return [*after, *outs]

    return ClosedJaxpr(*trace_to_jaxpr(member, jaxpr.in_avals, name=jaxpr.jaxpr.name))


def _checked(
    handle: ChecksHandle, before: Any, operands: Any, *, jaxpr: ClosedJaxpr, **params: Any
) -> Any:
    """Run it with checks; the states of the members are stacked."""
    with _scope(params):
        checked = checked_member(handle, jaxpr)
    stacked = Lay(PartitionSpec(), 0, params["active"])
    lays = (*[stacked] * len(before), *params["out_lays"])
    results = shard_map_p.bind(*operands, jaxpr=checked, **params | {"out_lays": lays})
    states = [spread_as(x, whole(x.aval)) for x in results[: len(before)]]
    return handle.first(before, states), results[len(before) :]


shard_map_p: Primitive = Primitive(
    "shard_map",
    call_like=True,
    **_RULES
    | {
        "shape": _shape,
        "numpy": _numpy,
        "stablehlo": _stablehlo,
        "transpose": _transpose,
        "batch": _batch,
        "shard": _shard,
        "stacked": _stacked,
        "checked": _checked,
    },
)
