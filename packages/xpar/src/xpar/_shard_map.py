"""`shard_map`: run a function on each device of a mesh, on its pieces of the data."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

import numpy as np

import xprim
import xtree
from xjit.dispatch.calls import Arguments, Calls, FlatFunction, Signature, Traced
from xjit.dispatch.program import Program
from xjit.lowering.stablehlo_text import Port, manual_computation
from xjit.sharding import meshes, shardings
from xjit.sharding.meshes import AbstractMesh, Mesh, abstract_mesh_now, current_abstract_mesh
from xjit.sharding.partial_sums import sums_of
from xjit.sharding.rules import axis_uses, recast
from xjit.sharding.shardings import NamedSharding, PartitionSpec, axes_of, check_axis_names
from xjit.sharding.typed import typed_as
from xnp import lax
from xnp.primitives.table import fill, mul, scalar_like
from xpar import collectives
from xpar.collectives import axes_brought, axis_names as names_in, checked_axes, type_of_members
from xprim import Array, ClosedJaxpr, Primitive, ShapedArray, Tracer, config, source, state
from xprim.calls import all_to_front, call_rules, front_dims
from xprim.contracts import BatchAxis, Builder, ChecksHandle, TransposeHandle
from xprim.errors import message
from xprim.refs import BaseRef
from xprim.requirements import require
from xprim.sharded_types import ShardingTypeError, reshard_as, whole
from xprim.static_keys import static_key
from xprim.tracebacks import boundaries
from xprim.transformed import check_function, transformed
from xprim.typing import AxisName, PyTree
from xtree.interning import remember

__all__ = ["pcast", "pvary", "shard_map"]

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------ member values
# What members hold of a value while a function of `shard_map` is traced outside of `jit`.
#
# The function is traced once, for all members, as it is under `jit`, so its types, and with them
# its derivatives, are the same. But its arguments are known: what somebody looks at (`print`, `if`,
# a debugger, `float`) is computed then, by the program up to there. A function that was looked into
# is traced anew by each call, since what it does may depend on what it saw.

_MOST_SHOWN = 16
"""Members whose blocks are shown; of a larger mesh the first ones are."""


class MemberValues:
    """The values of a function's trace, computed when somebody looks.

    Args:
      trace: of the function of one member.
      operands: the arguments of the call, whole arrays or tracers of derivatives.
      mesh: the mesh.
      manual: the axes that have members.
      evaluate: runs a program of one member: `(closed, arrays, axes of the result) -> result`, with
        the members of the axes stacked in front.

    Attributes:
      were_seen: whether anybody has looked.
    """

    __slots__ = ("_evaluate", "_found", "_manual", "_mesh", "_operands", "_trace", "were_seen")

    def __init__(
        self, trace: Any, operands: Sequence[Any], mesh: Any, manual: Sequence[Any],
        evaluate: Callable[..., Any],
    ) -> None:  # fmt: skip
        self._trace = trace
        self._operands = operands
        self._mesh = mesh
        self._manual = tuple(manual)
        self._evaluate = evaluate
        self._found: dict[Any, Any] = {}
        self.were_seen = False

    def value(self, x: Tracer) -> Array | None:
        """Return the one value that all members hold, None where it is not known.

        Raises:
          ValueError: members hold values of their own.
        """
        axes = self._axes(x)
        if not axes:
            return self._blocks(x)
        blocks = self._blocks(x)
        if blocks is None:
            return None
        shown = "\n".join(
            [f"{place}: {block}" for place, block in self._format_blocks(blocks, axes)]
        )
        raise ValueError(message(
            "shard_map", "one value is required, but each member holds its own.",
            got=f"{x.aval.str_long()}\n{shown}",
            hint="psum, pmax or all_gather make one of them; xnp.where chooses for each member",
        ))  # fmt: skip

    def varies(self) -> bool:
        """Return whether a derivative is being taken by an argument."""
        return any(isinstance(x, Tracer) and x.varies() for x in self._operands)

    def description(self, x: Tracer) -> str | None:
        """Return what members hold, with where they are; None where it is not known."""
        blocks = self._blocks(x)
        if blocks is None:
            return None
        axes = self._axes(x)
        if not axes:
            return f"{x.aval.str_long()}, the same at all mesh coordinates:\n{_text(blocks)}"
        names = ", ".join(map(str, axes))
        lines = [f"{x.aval.str_long()} at mesh coordinates ({names}):"]
        lines += [f"{place}:\n{block}" if "\n" in block else f"{place}: {block}"
                  for place, block in self._format_blocks(blocks, axes)]  # fmt: skip
        return "\n".join(lines)

    def _axes(self, x: Tracer) -> tuple[Any, ...]:
        """Return the axes whose members may hold different values."""
        held = x.aval.mat
        return tuple([
            name for name in self._manual
            if name in held.varying or name in held.unreduced or not self._is_typed(name)
        ])  # fmt: skip

    def _is_typed(self, name: Any) -> bool:
        return name in self._evaluate.checked  # type: ignore[attr-defined]

    def _format_blocks(self, blocks: Array, axes: tuple[Any, ...]) -> list[tuple[str, str]]:
        sizes = [self._mesh.shape[name] for name in axes]
        places = list(itertools.product(*map(range, sizes)))
        with xprim.use_trace(xprim.EAGER):  # not in the function that is being traced
            texts = [_text(blocks[i]) for i in range(min(len(places), _MOST_SHOWN))]
        found = [
            (f"({', '.join(map(str, place))}{',' * (len(place) == 1)})", text)
            for place, text in zip(places, texts, strict=False)
        ]
        if len(places) > _MOST_SHOWN:
            found.append(("...", f"{len(places) - _MOST_SHOWN} more"))
        return found

    def _blocks(self, x: Tracer) -> Array | None:
        """Return the value, stacked where members hold different ones; None if not known."""
        variable: Any = x.variable
        if variable not in self._found:
            self._found[variable] = self._compute_value(variable, self._axes(x))
        return self._found[variable]  # type: ignore[no-any-return]

    def _compute_value(self, variable: Any, axes: tuple[Any, ...]) -> Array | None:
        trace = self._trace
        arrays = [_array_if_known(x) for x in self._operands]
        consts = [_array_if_known(c) for c in trace.consts]
        if trace.refs or any(a is None for a in (*arrays, *consts)):
            return None
        needed, eqns = {variable}, []
        for eqn in reversed(trace.eqns):
            if needed.isdisjoint(eqn.outputs):
                continue
            if "effects" in eqn.primitive.rules:  # which must not happen twice
                return None
            eqns.append(eqn)
            needed.update([v for v in eqn.inputs if v is not None])
        self.were_seen = True
        jaxpr = xprim.Jaxpr(trace.constvars, trace.invars, [variable], eqns[::-1], trace.fun_name)
        found: Array = self._evaluate(ClosedJaxpr(jaxpr, consts), arrays, axes)
        return found


def _array_if_known(x: Any) -> Any:
    """Return an array, what a tracer of a derivative holds, or None."""
    if isinstance(x, Tracer):
        return x.concrete()
    return x if type(x) is xprim.ConcreteArray else xprim.as_array(x)


def _text(x: Any) -> str:
    try:
        return str(np.asarray(x))
    except TypeError:  # random keys and other elements that NumPy has not
        return str(x)


# ------------------------------------------------------------------------------------- handed on
# What the spec None hands on as it is: arguments of `shard_map` that are not arrays.
#
#     shard_map(f, in_specs=(P("x"), None), ...)(x, "sum")        f gets "sum" itself
#
# A function is made for each set of such values, of the other leaves alone.


class SplitCall(NamedTuple):
    """A call, divided into static values and arrays.

    Attributes:
      tree: that of all arguments.
      values: of those that are passed on, with their places among the leaves.
      rest: the other leaves.
      specs: of these.
    """

    tree: Any
    values: tuple[tuple[int, Any], ...]
    rest: list[Any]
    specs: tuple[PartitionSpec | None, ...]

    def key(self) -> Any:
        """Return what the function of the other leaves depends on; None if it cannot be kept."""
        try:
            found = (self.tree, self.specs, tuple([(i, static_key(x)) for i, x in self.values]))
            hash(found)
        except Exception:  # whatever the hash of a user's object raises
            return None
        return found

    def function(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function of the other leaves."""
        count, tree, fixed = len(self.values) + len(self.rest), self.tree, dict(self.values)

        def of_the_rest(*rest: Any) -> Any:
            others = iter(rest)
            leaves = [fixed[i] if i in fixed else next(others) for i in range(count)]
            return fun(*tree.unflatten(leaves))

        return of_the_rest


def static_args(in_specs: Any, args: Sequence[Any], is_spec: Callable[[Any], bool]) -> (
    SplitCall | None
):  # fmt: skip
    """Return what a call hands on as it is; None for nothing, or where specs do not fit."""
    leaves, tree = xtree.flatten(tuple(args))
    if all(isinstance(x, _OPERANDS) for x in leaves):
        return None
    specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
    try:
        found = xtree.broadcast_prefix(specs, tuple(args), is_leaf=is_spec)
    except (ValueError, TypeError):
        return None  # the usual way says what is wrong
    fixed = {i for i, (x, spec) in enumerate(zip(leaves, found, strict=True))
             if spec is None and not isinstance(x, _OPERANDS)}  # fmt: skip
    if not fixed:
        return None
    rest = sorted(set(range(len(leaves))) - fixed)
    values = tuple([(i, leaves[i]) for i in sorted(fixed)])
    return SplitCall(tree, values, [leaves[i] for i in rest], tuple([found[i] for i in rest]))


_OPERANDS = (Array, np.ndarray, np.generic, BaseRef)


# --------------------------------------------------------------------------- shard map primitive
# The primitive `shard_map`: a program that each device of a mesh runs, with all of its rules.
#
# Params: `jaxpr` is the program of one device; `mesh`; `manual`, the axes whose members run by
# themselves; `active`, those of them along which any value varies; `in_lays` and `out_lays` say
# how each operand is cut and each result joined; `check_vma`, whether types say what varies.
# Evaluated it is a program of one equation over the mesh. Under a transformation the program of
# the device is transformed and `shard_map` is bound again, by the rules that `xprim.calls` gives
# all calls.
#
# Where types say what varies, the program of a member has for what all members share one
# cotangent, the sum over members (`varying_axes`). Without types, what all members get whole,
# each gives a cotangent of its own, and these are summed here; what they agree on is one value,
# of which each has a share, so its cotangent is divided among them. Along an axis that is not
# active all members do the same, so one of them stands for all.

_NONE: frozenset[Any] = frozenset()


class BlockSpec(NamedTuple):
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
        return xprim.shaped_array(tuple(shape), local.dtype, local.weak_type)

    def type_whole(self, local: ShapedArray, mesh: Any, manual: Sequence[Any]) -> ShapedArray:
        """Return the abstract value of the whole, with what types say of it outside.

        Args:
          local: the abstract value of a piece.
          mesh: the mesh.
          manual: the axes whose pieces make up the whole; along others it may vary.
        """
        whole = self.whole(local, dict(mesh.shape))
        sharding = self.sharding(mesh, whole.ndim)
        if local.type_sharding is not None:  # along axes that are not manual
            parts = list(local.type_sharding.spec)
            if self.dim is not None:
                parts.insert(self.dim, None)
            parts += [None] * (whole.ndim - len(parts))
            outer = [*sharding.spec, *[None] * (len(parts) - len(sharding.spec))]
            inner = _sums_outside(local.type_sharding.spec, manual)
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
            ), memory_kind=local.type_sharding.memory)  # fmt: skip
        found = typed_as(whole, sharding)
        if not shardings.says_of_manual_axes(local.type_sharding):
            return found
        return type_of_members(found, local.type_sharding.mesh, **{
            state: axes.difference(manual) for state, axes in local.mat._asdict().items()
        })  # fmt: skip

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
        local = xprim.shaped_array(tuple(shape), whole.dtype, whole.weak_type)
        if whole.type_sharding is not None:
            spec = _sums_outside(whole.type_sharding.spec, [*self.spec.names(), *self.spec.sums])
            local = typed_as(local, whole.type_sharding.update(mesh=mesh, spec=spec))
        spec = self.spec
        if varying.isdisjoint([*spec.names(), *spec.sums]):
            return local
        return type_of_members(
            local, mesh, varying=varying.intersection(spec.names()),
            unreduced=varying & spec.unreduced, reduced=varying & spec.reduced,
        )  # fmt: skip

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
        block = xprim.shaped_array((*shape, *[1] * bool(self.last)), local.dtype)
        whole = self.whole(local, dict(mesh.shape)).strong()
        return Port(self.sharding(mesh, whole.ndim), whole, block, local.strong())

    def stack(self, mesh: Any) -> BlockSpec:
        """Return how the parts of a sum lie, stacked along a last dimension."""
        axes = tuple([name for name in mesh.axis_names if name in self.spec.unreduced])
        return self._replace(spec=self.spec.update(unreduced=frozenset()), last=axes)

    def batch(self, along: tuple[Any, ...] = ()) -> BlockSpec:
        """Return the spec of a value that gets a batch dimension in front, along these axes."""
        dim = None if self.dim is None else self.dim + 1
        return BlockSpec(self.spec.update(partitions=(along or None, *self.spec)), dim, self.axes)

    def dual(self) -> BlockSpec:
        """Return the shardings of cotangents: unreduced where the value is reduced, and back."""
        spec = self.spec
        return BlockSpec(
            spec.update(unreduced=spec.reduced, reduced=spec.unreduced), self.dim, self.axes
        )

    def axes_shared(self, active: Sequence[Any]) -> tuple[Any, ...]:
        """Return the axes whose members all have the same piece."""
        used = {*self.spec.names(), *self.spec.sums, *self.axes}
        return tuple([name for name in active if name not in used])


def _sums_outside(spec: PartitionSpec, axes: Sequence[Any]) -> PartitionSpec:
    """Return a spec that says nothing of sums along some axes."""
    return spec.update(
        unreduced=spec.unreduced.difference(axes), reduced=spec.reduced.difference(axes)
    )


def _shape(*avals: Any, jaxpr: ClosedJaxpr, mesh: Any, manual: Any, out_lays: Any, **_: Any) -> Any:
    return tuple([
        lay.type_whole(a, mesh, manual) for a, lay in zip(jaxpr.out_avals, out_lays, strict=True)
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
    sides = [[xprim.Var(lay.type_whole(a, mesh, params["manual"]))
              for a, lay in zip(avals, lays, strict=True)]
             for avals, lays in ((jaxpr.in_avals, params["in_lays"]),
                                 (jaxpr.out_avals, params["out_lays"]))]  # fmt: skip
    equation = xprim.Equation(shard_map_p, sides[0], sides[1], params)
    closed = ClosedJaxpr(xprim.Jaxpr([], sides[0], sides[1], [equation], params["name"]))
    if len(params["manual"]) < len(mesh.axis_names):  # the other axes follow the data
        return Program(closed, params["name"], donated=donated)
    return Program(
        closed, params["name"], donated=donated,
        in_shardings=tuple([lay.sharding(mesh) for lay in params["in_lays"]]),
        out_shardings=tuple([lay.sharding(mesh) for lay in params["out_lays"]]),
    )  # fmt: skip


def _numpy(*operands: Any, **params: Any) -> Any:
    if state.trace is xprim.EAGER_ON_HOST:
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


def _derive_specs(kind: str, params: dict[str, Any], entries: Any) -> dict[str, Any]:
    """Return how the values of a derived call lie: what stands for a value, as that value does."""
    active = params["active"]
    residual = BlockSpec(PartitionSpec(), 0, active)
    outs = params["out_lays"]
    if kind == "logs":  # further results, each concatenated along its first dimension
        specs = [_log_spec(aval, params) for aval in params["jaxpr"].out_avals[len(outs) :]]
        return {
            "out_lays": (*outs, *specs),
            "active": active if params["check_vma"] else params["manual"],
        }  # fmt: skip
    if kind == "transpose":
        outs = tuple([lay.dual() for lay in outs])
    in_lays, out_lays = entries(params["in_lays"], outs, residual, BlockSpec.batch)
    if kind == "transpose":
        out_lays = [lay.dual() for lay in out_lays]
        if not params["check_vma"]:
            out_lays = [_sum(lay, active) for lay in out_lays]
    name = params["name"] if kind in ("primal", "dce") else f"{kind}_{params['name']}"
    return {"in_lays": tuple(in_lays), "out_lays": tuple(out_lays), "name": name}


def _log_spec(aval: ShapedArray, params: dict[str, Any]) -> BlockSpec:
    """Return how a logged value is joined: along the axes on which it may vary."""
    axes = params["manual"]
    if params["check_vma"]:
        axes = [name for name in axes if name in aval.mat.varying]
    return BlockSpec(PartitionSpec(tuple(axes)) if axes else PartitionSpec())


def _sum(lay: BlockSpec, active: Sequence[Any]) -> BlockSpec:
    """Return how the cotangents lie of a value that some members share: stacked, to be summed."""
    shared = lay.axes_shared(active)
    return BlockSpec(lay.spec, 0, shared) if shared else lay


@contextmanager
def member_scope(mesh: Any, manual: Sequence[Any], check_vma: bool) -> Iterator[None]:
    """Bind the axes that a member has a place along, which are of type Manual there."""
    checked = checked_axes.value.difference(manual).union(manual if check_vma else ())
    with (
        xprim.extended_axes({name: mesh.shape[name] for name in manual}),
        current_abstract_mesh(mesh_inside(mesh, manual)),
        checked_axes(checked),
    ):
        yield


@contextmanager
def outside_of_members() -> Iterator[None]:
    """Be where the call of a function of members is, for what is computed while it is traced."""
    sizes, state.axis_sizes = state.axis_sizes, {}
    try:
        with current_abstract_mesh(None), checked_axes(_NONE):
            yield
    finally:
        state.axis_sizes = sizes


def mesh_inside(mesh: Any, manual: Sequence[Any]) -> AbstractMesh:
    """Return the mesh as a member sees it."""
    types = dict.fromkeys(manual, meshes.AxisType.Manual)
    outside = abstract_mesh_now()
    if outside is not None and outside.axis_names == mesh.axis_names:
        types |= dict.fromkeys(outside.manual_axes, meshes.AxisType.Manual)
    found: AbstractMesh = mesh.abstract_mesh.update_axis_types(types)
    return found


def _scope(params: dict[str, Any]) -> Any:
    if params["check_vma"]:
        return member_scope(params["mesh"], params["manual"], True)
    sizes = params["mesh"].shape
    return xprim.extended_axes({name: sizes[name] for name in params["manual"]})


_RULES = call_rules("shard_map", derived=_derive_specs, scope=_scope)


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
        kind: tuple([lay.batch(along) if m else lay for lay, m in zip(lays, mask, strict=True)])
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
    requested = axis.mesh_axes
    if axis.sharding is None:
        check_axis_names(f"vmap of shard_map({params['name']}): spmd_axis_name", params["mesh"],
                         PartitionSpec(requested))  # fmt: skip
    if not requested or not set(requested) <= set(params["manual"]) or _is_named(jaxpr, axis.name):
        return ()
    lays = (*params["in_lays"], *params["out_lays"])
    used = set(params["active"]).union(*[lay.spec.names() for lay in lays], _axes_in(jaxpr))
    taken = [name for name in requested if name in used]
    if not taken:
        return requested
    if axis.sharding is None:  # requested by name
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
        collectives.varying_type(a, frozenset(along), mesh) if m else a
        for a, m in zip(batched.in_avals, mapped, strict=True)
    ]

    def member(*pieces: Any) -> list[Any]:
        outs = xprim.eval_closed(batched, *pieces)
        return [
            collectives.varying_over(y, along) if m else y
            for y, m in zip(outs, mapped_out, strict=True)
        ]

    return ClosedJaxpr(*xprim.trace_to_jaxpr(member, avals, name=batched.jaxpr.name))


def _check_count(axis: BatchAxis, count: int, params: Any) -> None:
    if axis.size % count:
        raise ValueError(message(
            f"vmap of shard_map({params['name']})",
            f"{axis.size} examples do not divide evenly along spmd_axis_name {axis.mesh_axes!r}.",
            expected=f"a multiple of {count}", hint="pad the batch, or leave spmd_axis_name out",
        ))  # fmt: skip


def _is_named(jaxpr: ClosedJaxpr, name: Any) -> bool:
    return name is not None and name in _axes_in(jaxpr)


def _axes_in(jaxpr: ClosedJaxpr) -> set[Any]:
    return {axis for _, axis in axis_uses(jaxpr)}


def _transpose(handle: TransposeHandle, cts: Any, *operands: Any, **params: Any) -> Any:
    if params["check_vma"]:
        return _RULES["transpose"](handle, cts, *operands, **params)
    active, sizes = params["active"], dict(params["mesh"].shape)
    shares = []
    for ct, lay in zip(cts, params["out_lays"], strict=True):
        count = math.prod([sizes[name] for name in lay.axes_shared(active)])
        one = type(ct) is xprim.Zero or count == 1
        shares.append(ct if one else mul(ct, scalar_like(ct, 1 / count)))
    found = _RULES["transpose"](handle, shares, *operands, **params)
    return [
        ct if type(ct) is xprim.Zero or not lay.axes_shared(active) else lax.reduce_sum(ct, (0,))
        for ct, lay in zip(found, params["in_lays"], strict=True)
    ]


def _stack_specs(*, mesh: Any, in_lays: Any, out_lays: Any, **_params: Any) -> dict[str, Any]:
    return {
        name: tuple([lay.stack(mesh) for lay in lays])
        for name, lays in (("in_lays", in_lays), ("out_lays", out_lays))
    }


def check_member(handle: ChecksHandle, jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program of a member with checks, which begins with none that failed."""

    def member(*pieces: Any) -> Any:
        nothing = [fill(a.shape, 0, a.dtype) for a in handle.avals]
        after, outs = handle.run(jaxpr, nothing, pieces)
        return [*after, *outs]

    return ClosedJaxpr(*xprim.trace_to_jaxpr(member, jaxpr.in_avals, name=jaxpr.jaxpr.name))


def _check(
    handle: ChecksHandle, before: Any, operands: Any, *, jaxpr: ClosedJaxpr, **params: Any
) -> Any:
    """Run it with checks; the states of the members are stacked."""
    with _scope(params):
        checked = check_member(handle, jaxpr)
    stacked = BlockSpec(PartitionSpec(), 0, params["active"])
    lays = (*[stacked] * len(before), *params["out_lays"])
    results = shard_map_p.bind(*operands, jaxpr=checked, **params | {"out_lays": lays})
    states = [reshard_as(x, whole(x.aval)) for x in results[: len(before)]]
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
        "stacked": _stack_specs,
        "checked": _check,
    },
)


# ------------------------------------------------------------------------------------- shard map
# `shard_map`: run a function on each device of a mesh, on its pieces of the data.

P = ParamSpec("P")
AnyMesh = Mesh | AbstractMesh
R = TypeVar("R")


class _Infer:
    """Stands for specs that are found in types."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Infer"


INFER = _Infer()

_MOST_HANDED_ON = 64  # sets of values: enough for options, and they stay alive


@overload
def shard_map(
    f: Callable[P, R], *, mesh: AnyMesh | None = ..., in_specs: PyTree = ..., out_specs: PyTree,
    axis_names: Iterable[Any] = ..., check_vma: bool = ...,
) -> Callable[P, R]: ...  # fmt: skip


@overload
def shard_map(
    f: None = None, *, mesh: AnyMesh | None = ..., in_specs: PyTree = ..., out_specs: PyTree,
    axis_names: Iterable[Any] = ..., check_vma: bool = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...  # fmt: skip


def shard_map(
    f: Callable[..., Any] | None = None, *, mesh: Mesh | AbstractMesh | None = None,
    in_specs: PyTree = INFER, out_specs: PyTree, axis_names: Iterable[Any] = frozenset(),
    check_vma: bool = True,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that runs `f` on each device of a mesh, on its pieces of the arguments.

    Where `jit` takes a program for whole arrays and splits it, here the program of one device is
    written, and collectives (`psum`, `all_gather`, `ppermute`, ...) say what devices exchange.

    Args:
      f: a function of pytrees of arrays, which it gets as pieces; without it, a decorator.
      mesh: the devices; by default the context mesh (`set_mesh`). An `AbstractMesh` will do:
        its devices are those of the context mesh, or on which the arguments lie.
      in_specs: how the arguments are cut: a partition spec for all, or a tree prefix of the tuple
        of arguments. An axis that a spec does not name has the same piece for all its members.
        Of None arrays are whole, and other leaves (numbers, strings, functions) are passed on as
        they are: the function is traced again for each set of them.
        By default they are found in the types of the arguments: as these lie along the explicit
        axes of the mesh.
      out_specs: how the pieces of the results are joined, likewise.
      axis_names: the axes of the mesh over which `f` is written by hand; over the others XLA
        splits it. None at all stands for all of them.
      check_vma: whether types say along which axes values vary (`typeof(x).vma`). They are checked
        against `out_specs`, and derivatives, inside and outside of `f`, are those of the whole
        program. Without them the value of one member is taken where a spec does not name an axis,
        and derivatives inside of `f` are of each member's own part.

    Returns:
      A function of whole arrays, to be called as it is or inside `jit`, `grad`, `vmap`, `scan`.

    Raises:
      ValueError: a spec names an axis that is not among `axis_names`, has more entries than a
        value has dimensions, or does not divide one evenly; a result varies over an axis that its
        spec does not name; the mesh has no devices, and is not of the shape of the one that is set.
      TypeError: it is called with keyword arguments.

    Differentiable. The cotangent of what all members get is the sum of theirs.

    Example:
      >>> import numpy as np
      >>> from xjit import devices
      >>> from xjit.sharding.shardings import P
      >>> from xpar import psum
      >>> mesh = Mesh(np.array(devices("cpu")[:1]), ("x",))
      >>> total = shard_map(lambda v: psum(v.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
      >>> float(total(np.ones(4, np.float32)))
      4.0
    """
    options = {"mesh": mesh, "in_specs": in_specs, "out_specs": out_specs,
               "axis_names": axis_names, "check_vma": check_vma}  # fmt: skip
    if f is None:
        return functools.partial(shard_map, **options)
    check_function(f, "shard_map")
    calls = _ShardMapCalls(f, options)
    front = calls.dispatcher.function(calls.__call__, None)  # specs are of positions
    mapped: Any = transformed(front, f, "shard_map", updated=())
    calls.give_methods(mapped)
    return mapped  # type: ignore[no-any-return]


def pvary(x: PyTree, axis_name: AxisName) -> PyTree:
    """Return values that count as varying over the named axes: the same values.

    Operations do this by themselves where a value that all members share meets one that varies; a
    carry of a loop that begins shared and goes on varying needs it. Its transpose is `psum`.

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names.

    Returns:
      A tree of the same values; in a function of `shard_map` their types say that they vary.

    Raises:
      NameError: when a name is not bound.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: pvary(x, "i"), axis_name="i")(np.int32([1, 2])))
      [1 2]
    """
    require(
        not isinstance(axis_name, set | frozenset), "pvary", "the names come in a tuple.",
        got=axis_name, expected="a name, or a tuple of names", error=TypeError,
    )  # fmt: skip
    return pcast(x, axis_name, to="varying")


def pcast(x: PyTree, axis_name: AxisName, *, to: str) -> PyTree:
    """Return values that count as others along named axes, in the types of a `shard_map`.

    | from | to | members hold | the transpose |
    |---|---|---|---|
    | `"invarying"`, one value for all | `"varying"` | equal values of their own | `psum` |
    | `"varying"`, values of their own | `"unreduced"` | the parts of a sum | reduced to varying |
    | `"invarying"` | `"reduced"` | the value, and parts of its cotangent | `psum` of the parts |
    | `"reduced"` | `"varying"` | equal values of their own | varying to unreduced |
    | `"invarying"` or `"reduced"` | `"unreduced"` | the first member the value, others zeros | |

    Where types do not say what varies (`vmap`, `check_vma=False`), nothing changes.

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names.
      to: `"varying"`, `"unreduced"` or `"reduced"`. What varies, or is in parts, becomes the same
        by a collective.

    Returns:
      A tree of the same values.

    Raises:
      NameError: when a name is not bound.
      TypeError: the names come in a set, which has no order.
      ValueError: `to` is something else, values cannot become that without a collective, or along
        several axes they count differently now.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: pcast(x, "i", to="varying"), axis_name="i")(np.int32([1, 2])))
      [1 2]
    """
    require(
        not isinstance(axis_name, set | frozenset), "pcast", "the names come in a tuple.",
        got=axis_name, expected="a name, or a tuple of names", error=TypeError,
    )  # fmt: skip
    require(
        to in ("varying", "unreduced", "reduced"), "pcast",
        "values can only be cast to varying, unreduced or reduced ones.", got={"to": to},
        hint="psum, pmax or all_gather(..., to='invarying') make values the same",
    )  # fmt: skip
    names = names_in(axis_name)
    collectives.total_size(names, "pcast")
    axes = checked_axes.value.intersection(names)
    mesh = abstract_mesh_now()
    if not axes or mesh is None:
        return x
    in_order = tuple([name for name in mesh.axis_names if name in axes])
    return xtree.map(lambda leaf: _cast(xprim.as_array(leaf, what="pcast"), in_order, to, mesh), x)


def _cast(x: Array, axes: tuple[Any, ...], to: str, mesh: Any) -> Array:
    held = x.aval.mat
    states = {held.state(name) for name in axes} - {to}
    if not states:
        return x
    if len(states) > 1:
        raise ValueError(message(
            "pcast", "along the axes members hold different things.",
            got=f"{x.aval.str_long()}, "
            + ", ".join([f"{name!r}: {held.state(name)}" for name in axes]),
            expected="axes of one kind", hint="one pcast for each kind",
        ))  # fmt: skip
    (old,) = states
    require(
        old != "unreduced" and (old, to) != ("varying", "reduced"), "pcast",
        "what is {} becomes {} by a collective.", old, to, got=x,
        hint="psum adds up, and pcast(..., to='reduced') counts the sum as reduced",
    )  # fmt: skip
    rest = tuple([name for name in axes if held.state(name) == old])
    found: Array = recast(x, rest, old, to, mesh)
    return found


class _ShardMapCalls(Calls):
    """The calls of one function that runs on each device of a mesh."""

    obeys_disable_jit = False  # collectives need their devices

    def __init__(self, fun: Callable[..., Any], options: dict[str, Any]) -> None:
        self.options = options
        for name in ("in_specs", "out_specs"):
            _check_specs(name, options[name])
        requested = options["axis_names"]
        options["axis_names"] = (requested,) if isinstance(requested, str) else tuple(requested)
        own = (options["mesh"], _key(options["in_specs"]), _key(options["out_specs"]),
               options["axis_names"], bool(options["check_vma"]))  # fmt: skip
        plain = dict.fromkeys(
            ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames"))  # fmt: skip
        super().__init__(fun, Signature(fun, plain, "shard_map"), own)
        requested = options["in_specs"]
        leaves = () if requested is INFER else xtree.leaves(requested, is_leaf=_is_spec)
        self._hands_on = any(spec is None for spec in leaves)
        self._of_the_rest: dict[Any, Any] = {}  # at most `_MOST_HANDED_ON`, by what is passed on

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function; what is not an array and has the spec None, it gets as it is."""
        if self._hands_on and not kwargs:
            call = static_args(self.options["in_specs"], args, _is_spec)
            if call is not None:
                return self._function_of_the_rest(call)(*call.rest)
        return super().__call__(args, kwargs)

    def _function_of_the_rest(self, call: SplitCall) -> Callable[..., Any]:
        key = call.key()
        found = self._of_the_rest.get(key)
        if found is None:
            fun = functools.wraps(self.fun, updated=())(call.function(self.fun))
            del fun.__wrapped__  # its parameters are others
            found = shard_map(fun, **self.options | {"in_specs": call.specs})
            if key is not None:
                remember(self._of_the_rest, key, found, _MOST_HANDED_ON)
        return found

    def mesh(self) -> Mesh | AbstractMesh:
        """Return the mesh of a call, with devices where they are known."""
        requested, known = self.options["mesh"], meshes.current_mesh.value
        found = known or current_abstract_mesh.value if requested is None else requested
        if found is not None and not isinstance(found, Mesh | AbstractMesh):
            raise TypeError(message(
                f"shard_map({self.name})", "mesh= is a mesh.", got=repr(found),
                expected="a Mesh or an AbstractMesh",
            ))  # fmt: skip
        if found is None:
            raise ValueError(message(
                f"shard_map({self.name})", "there is no mesh of devices.", got=repr(found),
                hint="give mesh=, or call it inside `with set_mesh(mesh):`",
            ))  # fmt: skip
        if isinstance(found, Mesh) or known is None:
            return found
        if found.shape_tuple != known.shape_tuple:
            raise ValueError(message(
                f"shard_map({self.name})", "the context mesh has other axes.",
                got=f"mesh={found!r}\nset: {known!r}",
                hint="make the abstract mesh of it, mesh.abstract_mesh, or set another mesh",
            ))  # fmt: skip
        return known

    def flat_function(self, arguments: Arguments, avals: Sequence[ShapedArray]) -> FlatFunction:
        """Return what is traced: a function of the pieces of the arguments."""
        return _Member(self, arguments, avals)

    def placement_of(self, traced: Traced) -> None:
        """Return None: the program names its mesh."""

    def program(self, traced: Traced, arguments: Arguments) -> Program:
        """Return the program over the whole mesh."""
        if traced.program is None:
            traced.program = program_over_mesh({"jaxpr": traced.closed, **traced.params})
            traced.program.arg_names = arguments.without_leaves().names
        return traced.program

    def bind(self, traced: Traced, operands: Sequence[Any]) -> Sequence[Any]:
        """Make a call one equation of the current trace."""
        return shard_map_p.bind(*operands, jaxpr=traced.closed, **traced.params)


class _Member(FlatFunction):
    """A function of the pieces of one member, to be traced."""

    __slots__ = ("calls", "lays", "manual", "mesh")

    def __init__(
        self, calls: _ShardMapCalls, arguments: Arguments, avals: Sequence[ShapedArray]
    ) -> None:
        self.calls = calls
        self.mesh = calls.mesh()
        self.manual = _manual_axes(calls, self.mesh)
        if state.trace is xprim.EAGER and isinstance(self.mesh, AbstractMesh):
            for x in arguments.leaves:
                if isinstance(x, Array):
                    shardings.check_same_axes(f"shard_map({calls.name})", self.mesh, x.sharding)
        self.lays = _argument_lays(calls, self.mesh, self.manual, arguments, avals)
        inside = mesh_inside(self.mesh, self.manual)
        axes = frozenset(self.manual if calls.options["check_vma"] else ())
        pieces = [lay.piece(a, inside, axes) for a, lay in zip(avals, self.lays, strict=True)]
        super().__init__(calls.fun, arguments, pieces)

    def scope(self) -> AbstractContextManager[Any]:
        """Return the context that binds the axes."""
        return member_scope(self.mesh, self.manual, self.calls.options["check_vma"])

    def run(self, *leaves: Any) -> list[Any]:
        """Return the leaves of the result, which vary over all axes that their specs name."""
        trace: Any = xprim.current_trace()
        values = trace.values = self._values(trace)
        try:
            results = super().run(*leaves)
        except Exception as error:
            if values is not None:  # outside of `jit`
                error.add_note(f"while {self.calls.name} ran, once for all members of {self.mesh}")
            raise
        self.saw_values = values is not None and values.were_seen
        if self.calls.options["check_vma"]:
            count = self.out_tree.num_leaves
            lays = _result_lays(self.calls, self.mesh, self.manual, self.out_tree,
                                [x.aval for x in results[:count]])  # fmt: skip
            for i, lay in enumerate(lays):
                results[i] = self._as_said(results[i], lay.spec)
        return results

    def _values(self, trace: Any) -> MemberValues | None:
        """Return what members hold, where the arguments are arrays and not only types of such."""
        operands = self.arguments.leaves
        if any(isinstance(x, xprim.ShapeDtypeStruct | BaseRef) for x in operands):
            return None
        if any(isinstance(x, Tracer) and x.concrete() is None for x in operands):
            return None
        options = self.calls.options
        run = _RunsMembers(self.mesh, self.manual, self.lays, bool(options["check_vma"]))
        return MemberValues(trace, operands, self.mesh, self.manual, run)

    def _as_said(self, x: Array, spec: PartitionSpec) -> Array:
        """Return a result of which members hold what its spec says, as far as a cast can do it."""
        held = x.aval.mat
        wanted = xprim.ManualAxisType(frozenset(spec.names()), spec.unreduced, spec.reduced)
        for name in self.manual:
            old, new = held.state(name), wanted.state(name)
            if (old, new) in _CASTS_OF_RESULTS:
                x = recast(x, (name,), old, new, mesh_inside(self.mesh, self.manual))
        return x

    def params(self, closed: ClosedJaxpr, num_captured: int) -> dict[str, Any]:
        """Return the params of `shard_map_p` but for the program."""
        whole = BlockSpec(PartitionSpec())
        count = len(closed.in_avals) - num_captured - len(self.lays)  # outer references
        in_lays = (*[whole] * num_captured, *self.lays, *[whole] * count)
        out_lays = (
            *_result_lays(
                self.calls,
                self.mesh,
                self.manual,
                self.out_tree,
                closed.out_avals[: self.out_tree.num_leaves],
            ),  # those of references follow
            *[self.lays[i] for i in self.written],
        )
        if self.calls.options["check_vma"]:
            _check_varying(self.calls.name, closed, out_lays, self.manual)
        lays = (*in_lays, *out_lays)
        varying = axes_brought(closed).union(*[[*x.spec.names(), *x.spec.sums] for x in lays])
        return {"mesh": self.mesh, "manual": self.manual, "in_lays": in_lays,
                "out_lays": out_lays, "name": self.calls.name,
                "check_vma": bool(self.calls.options["check_vma"]),
                "active": tuple([a for a in self.manual if a in varying])}  # fmt: skip


class _RunsMembers:
    """Runs a program of one member on all members of a mesh.

    Args:
      mesh: with devices.
      manual: the axes that have members.
      lays: of the arguments.
      check_vma: whether types say what varies.
    """

    def __init__(
        self, mesh: AnyMesh, manual: tuple[Any, ...], lays: Sequence[BlockSpec], check_vma: bool
    ) -> None:
        self.mesh, self.manual, self.lays, self.check_vma = mesh, manual, lays, check_vma
        self.checked = manual if check_vma else ()

    def __call__(self, closed: ClosedJaxpr, arrays: Sequence[Any], axes: tuple[Any, ...]) -> Any:
        """Return a result: one value, or those of the members of some axes, stacked."""
        lay = BlockSpec(PartitionSpec(), 0, axes) if axes else BlockSpec(PartitionSpec())
        varying = axes_brought(closed).union(axes, *[[*x.spec.names(), *x.spec.sums]
                                                     for x in self.lays])  # fmt: skip
        params = {"jaxpr": closed, "mesh": self.mesh, "manual": self.manual,
                  "in_lays": tuple(self.lays), "out_lays": (lay,), "name": closed.jaxpr.name,
                  "check_vma": self.check_vma,
                  "active": tuple([a for a in self.manual if a in varying])}  # fmt: skip
        with xprim.use_trace(xprim.EAGER), outside_of_members():
            return program_over_mesh(params).call(arrays)[0]


_CASTS_OF_RESULTS = frozenset([
    ("invarying", "varying"), ("reduced", "varying"), ("invarying", "reduced"),
    ("reduced", "invarying"), ("varying", "unreduced"),
])  # fmt: skip


def _is_spec(value: Any) -> bool:
    return value is None or isinstance(value, PartitionSpec)


def _check_specs(what: str, specs: Any) -> None:
    if specs is INFER:
        return
    for leaf in xtree.leaves(specs, is_leaf=_is_spec):
        require(
            _is_spec(leaf), "shard_map", "{} holds something that is not a partition spec.", what,
            got=leaf,
            hint="P('x') shards the first dimension along the axis x, P() replicates",
            error=TypeError,
        )  # fmt: skip
        require(
            leaf is None or shardings.UNCONSTRAINED not in leaf, "shard_map",
            "{} leaves a dimension unconstrained.", what, got=leaf,
            expected="for each dimension the axes of the mesh, or None",
        )  # fmt: skip


def _key(specs: Any) -> Any:
    leaves, tree = xtree.flatten(specs, is_leaf=_is_spec)
    return (tree, *leaves)


def _manual_axes(calls: _ShardMapCalls, mesh: AnyMesh) -> tuple[Any, ...]:
    requested = calls.options["axis_names"]
    outside = abstract_mesh_now()
    taken = () if outside is None else outside.manual_axes  # by a shard_map around this one
    if not requested:
        return tuple([name for name in mesh.axis_names if name not in taken])
    again = [name for name in requested if name in taken]
    if again:
        raise ValueError(message(
            f"shard_map({calls.name})", f"the axis {again[0]!r} is of type Manual already, inside "
            "of another shard_map.", got=f"axis_names={tuple(requested)}",
        ))  # fmt: skip
    check_axis_names(f"shard_map({calls.name}): axis_names", mesh, PartitionSpec(*requested))
    return tuple([name for name in mesh.axis_names if name in requested])


def _argument_lays(
    calls: _ShardMapCalls, mesh: AnyMesh, manual: Sequence[Any], arguments: Arguments,
    avals: Sequence[ShapedArray],
) -> list[BlockSpec]:  # fmt: skip
    args_tree, kwargs_tree = arguments.tree.children()
    if kwargs_tree.num_leaves:
        raise TypeError(message(
            f"shard_map({calls.name})", "it takes positional arguments alone.",
            got=f"keyword arguments {list(kwargs_tree.node_data()[1])}",
        ))  # fmt: skip
    requested = calls.options["in_specs"]
    requested = tuple(requested) if isinstance(requested, list) else requested
    template = args_tree.unflatten(range(len(avals)))
    if requested is INFER:
        requested = args_tree.unflatten(_specs_in_types(calls.name, mesh, manual, avals))
    if isinstance(requested, tuple) and len(requested) != len(template):
        raise ValueError(message(
            f"shard_map({calls.name})", f"in_specs must have an entry for each of {len(template)} "
            "arguments.", got=f"{len(requested)} entries",
        ))  # fmt: skip
    names = [f"in_specs of {name}" for name in arguments.names()]
    return _lays(calls, mesh, manual, requested, template, names, avals)


def _specs_in_types(
    name: str, mesh: AnyMesh, manual: Sequence[Any], avals: Sequence[ShapedArray]
) -> list[PartitionSpec]:
    unknown = [axis for axis in manual if axis not in mesh.explicit_axes]
    if unknown:
        raise TypeError(message(
            f"shard_map({name})", f"types do not say how arguments are sharded along the axis "
            f"{unknown[0]!r}.", got=repr(mesh), expected="in_specs, or axes of type Explicit",
        ))  # fmt: skip
    specs = [PartitionSpec() if a.type_sharding is None else a.type_sharding.spec for a in avals]
    return [_along(spec, manual) for spec in specs]


def _along(spec: PartitionSpec, manual: Sequence[Any]) -> PartitionSpec:
    """Return what a spec says of some axes."""
    return PartitionSpec(
        *[tuple([n for n in axes_of(part) if n in manual]) for part in spec],
        unreduced=spec.unreduced.intersection(manual), reduced=spec.reduced.intersection(manual),
    )  # fmt: skip


def _result_lays(
    calls: _ShardMapCalls, mesh: AnyMesh, manual: Sequence[Any], out_tree: Any,
    avals: Sequence[ShapedArray],
) -> tuple[BlockSpec, ...]:  # fmt: skip
    names = [f"out_specs of result {i}" for i in range(len(avals))]
    template = out_tree.unflatten(range(len(avals)))
    lays = _lays(calls, mesh, manual, calls.options["out_specs"], template, names, avals,
                 are_pieces=True)  # fmt: skip
    return tuple(lays)


def _lays(
    calls: _ShardMapCalls, mesh: AnyMesh, manual: Sequence[Any], specs: Any, template: Any,
    names: Sequence[str], avals: Sequence[ShapedArray], are_pieces: bool = False,
) -> list[BlockSpec]:  # fmt: skip
    """Return the shardings of values, after a look at their shapes."""
    operation = f"shard_map({calls.name})"
    try:
        found = xtree.broadcast_prefix(specs, template, is_leaf=_is_spec)
    except (ValueError, TypeError) as error:
        raise ValueError(message(
            operation, f"{names[0].split()[0] if names else 'a spec'} is not a tree prefix of its "
            "values.", got=str(error),
        )) from None  # fmt: skip
    lays = []
    for spec, name, aval in zip(found, names, avals, strict=True):
        spec = PartitionSpec() if spec is None else spec
        check_axis_names(f"{operation}: {name}", mesh, spec)
        unmanaged = [n for n in (*spec.names(), *spec.sums) if n not in manual]
        if unmanaged:
            raise ValueError(message(
                f"{operation}: {name}", f"the axis {unmanaged[0]!r} is not among axis_names.",
                got=f"{spec}, axis_names={tuple(manual)}",
            ))  # fmt: skip
        lay = BlockSpec(spec)
        whole = aval
        if not are_pieces:
            _check_sums(f"{operation}: {name}", spec, aval, manual)
        if are_pieces and len(spec) <= aval.ndim:
            whole = lay.whole(aval, dict(mesh.shape))
        NamedSharding(mesh, spec).check_shape(whole.shape, f"{operation}: {name}")
        lays.append(lay)
    return lays


def _check_sums(
    operation: str, spec: PartitionSpec, aval: ShapedArray, manual: Sequence[Any]
) -> None:
    """Raise where types and specs differ in what is unreduced: nothing says to add these up."""
    require(
        sums_of(aval).unreduced.intersection(manual) == spec.unreduced, operation,
        "the argument is in parts of sums along other axes than the spec says.",
        got={"spec": spec, "operand": aval}, hint="reshard(x, P(...)) brings it there",
    )  # fmt: skip


def _check_varying(
    name: str, closed: ClosedJaxpr, out_lays: Sequence[BlockSpec], manual: Sequence[Any]
) -> None:
    """Raise for a result that varies over an axis that its spec does not name."""
    said = [frozenset(x.spec.names()) for x in out_lays]
    for i, out in enumerate(closed.out_avals[: len(out_lays)]):
        more = out.mat.unreduced.intersection(manual) - out_lays[i].spec.unreduced
        for axis in sorted(more, key=str):
            raise ValueError(message(
                f"shard_map({name})", f"result {i} is unreduced along the axis {axis!r}, "
                "and its spec does not say so.",
                got=f"out_specs {out_lays[i].spec} for {out.str_long()} on each device",
                hint=f"psum over {axis!r} adds the parts up;\n"
                f"P(..., unreduced={{{axis!r}}}) passes them on",
            ))  # fmt: skip
    for i, axis in collectives.alike_in_parts(closed, [x.spec.unreduced for x in out_lays]):
        raise ValueError(message(
            f"shard_map({name})", f"result {i} is the same for all members of the axis {axis!r}, "
            "whose values its spec says are parts of a sum.",
            got=f"out_specs {out_lays[i].spec} for {closed.out_avals[i].str_long()} on each device",
            hint=f"leave {axis!r} out of unreduced; check_vma=False adds them up all the same",
        ))  # fmt: skip
    for i, axes, eqn in collectives.unsaid(closed, said, manual):
        axis = next(name for name in manual if name in axes)
        raise ValueError(message(
            f"shard_map({name})",
            f"result {i} varies over the axis {axis!r}, but out_specs require replication.",
            got=f"out_specs {out_lays[i].spec} for {closed.out_avals[i].str_long()} on each "
            "device, statically inferred",
            where=source.describe(eqn.source) if eqn is not None else "",
            hint=f"psum, pmean or pmax over {axis!r} makes it the same for all;\nall_gather does "
            "with to='invarying'; or name the axis in out_specs;\ncheck_vma=False takes the value "
            "of one member",
        ))  # fmt: skip


boundaries(globals())
