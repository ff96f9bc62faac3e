"""Shardings in types, as meshes have them, and changes of axis modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import xprim
import xtree
from xjit import jaxlib_gateway as gateway
from xjit.dispatch.placement_inference import meshes_near
from xjit.sharding import constraints, partial_sums
from xjit.sharding.constraints import constrained, has_mixed_axes, in_space, is_place
from xjit.sharding.meshes import (
    AxisType,
    Mesh,
    abstract_mesh_now,
    current_abstract_mesh,
)
from xjit.sharding.partial_sums import called_with, check_parts, retyped, sums_kept_apart
from xjit.sharding.rules import recast, results_of
from xjit.sharding.shardings import (
    NO_MESH,
    UNCONSTRAINED,
    NamedSharding,
    PartitionSpec,
    Sharding,
    along_explicit_axes,
    in_types,
    resolve,
    says_of_manual_axes,
)
from xprim import Array, ClosedJaxpr, ConcreteArray, ShapedArray, Tracer, as_array, shaped_array
from xprim.avals import MemorySpace
from xprim.errors import message
from xprim.sharded_types import ShardingTypeError, install_meshes, whole
from xprim.transformed import flat_arrays

__all__ = ["call_in_mode", "held_value", "places_of_results", "shardings_of_results", "typed_as"]

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------ axis modes
# Parts of a program in which other axes of the mesh are explicit than around it.
#
# `auto_axes` leaves axes to the compiler for the length of a function, `explicit_axes` makes them
# part of types there; the argument `out_sharding` of array functions is the first of these. All
# are `call_in_mode`: one call (`auto_axes_p`) whose values have other types inside.


def call_in_mode(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], operation: str, *,
    out: Any = None, mesh: Any = None, ins: Any = None,
) -> Any:  # fmt: skip
    """Call a function in which the axes of the mesh have other types.

    Args:
      fun: from trees of arrays to one.
      args: its arguments.
      kwargs: likewise.
      operation: what errors call the public function.
      out: the shardings of the results outside, a tree prefix; None leaves that to the compiler.
      mesh: as it is inside; by default that of `out`, without explicit axes.
      ins: the shardings of the arguments inside, a tree prefix of `args`; None as outside.
    """
    outs = xtree.map(lambda place: resolve(place, operation), out, is_leaf=is_place)
    sums = [axis for s in xtree.leaves(outs, is_leaf=is_place) if hasattr(s, "spec")
            for axis in s.spec.unreduced]  # fmt: skip
    if sums and mesh is None:
        return _in_parts(fun, args, kwargs, operation, outs, frozenset(sums))
    if mesh is None:
        found = [s.mesh for s in xtree.leaves(outs, is_leaf=is_place) if hasattr(s, "mesh")]
        if not found:
            return fun(*args, **kwargs)
        mesh = found[0].with_types([AxisType.Auto] * len(found[0].axis_names))
    inner = _InMode(fun, (args, kwargs), operation, outs, mesh)
    operands, avals = inner.operands((ins, None) if ins is not None else None)
    results = called_with(inner.run, operands, avals, inner.shardings, operation)
    return inner.out_tree.unflatten(list(results))


def _in_parts(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], operation: str,
    outs: Any, axes: frozenset[Any],
) -> Any:  # fmt: skip
    """Call a function whose sums stay in parts along axes: only types can say what these are."""
    with sums_kept_apart(sums_kept_apart.value | axes):
        result = fun(*args, **kwargs)
    leaves, tree = flat_arrays(result, operation)
    places = places_of_results(outs, result, operation)
    return tree.unflatten([
        constrained(x, place, operation) for x, place in zip(leaves, places, strict=True)
    ])  # fmt: skip


def places_of_results(outs: Any, result: Any, operation: str) -> list[Sharding | None]:
    """Return for each leaf of a result the leaf of a tree prefix of shardings that stands for it.

    Raises:
      ValueError: it is not a prefix.
    """
    try:
        return list(xtree.broadcast_prefix(outs, result, is_leaf=is_place))
    except (ValueError, TypeError) as error:
        raise ValueError(message(
            operation, "out_sharding is not a tree prefix of the result.", got=str(error)
        )) from None  # fmt: skip


class _InMode:
    """A function, to be traced on other types of its arguments than these have outside."""

    __slots__ = ("_fun", "_leaves", "_mesh", "_numbers", "_operation", "_outs", "_places", "_tree",
                 "out_tree")  # fmt: skip

    def __init__(
        self, fun: Callable[..., Any], given: Any, operation: str, outs: Any, mesh: Any
    ) -> None:
        self._fun = fun
        self._leaves, self._tree = xtree.flatten(given)
        self._operation = operation
        self._outs = outs
        self._mesh = mesh
        self._numbers: list[int] = []
        self._places: list[Sharding | None] = []
        self.out_tree: Any = None

    def operands(self, ins: Any) -> tuple[list[Array], list[ShapedArray]]:
        """Return the arguments, and their types inside."""
        requested: list[Any] = [None] * len(self._leaves)
        if ins is not None:
            requested = xtree.broadcast_prefix(
                ins, self._tree.unflatten(self._leaves), is_leaf=is_place)  # fmt: skip
        self._numbers = [i for i, x in enumerate(self._leaves)
                         if isinstance(x, Array) or requested[i] is not None]  # fmt: skip
        values, avals = [], []
        for i in self._numbers:
            x = as_array(self._leaves[i], what=self._operation)
            place = requested[i] if requested[i] is None else resolve(requested[i], self._operation)
            if place is not None:
                x = constrained(x, self._along_named_axes(place, x.ndim), self._operation)
            values.append(x)
            avals.append(self._inside(x.aval, place or x.aval.type_sharding))
        return values, avals

    def _along_named_axes(self, place: Sharding, ndim: int) -> Sharding:
        """Return the sharding of an argument, left to the compiler along axes of type Auto."""
        if not (isinstance(place, NamedSharding) and has_mixed_axes(self._mesh)):
            return place
        entries = [*place.spec, *[None] * (ndim - len(place.spec))]
        return place.update(spec=[UNCONSTRAINED if e is None else e for e in entries])

    def _inside(self, aval: ShapedArray, sharding: Any) -> ShapedArray:
        kept = None
        if isinstance(sharding, NamedSharding):
            kept = in_types(retyped(sharding, self._mesh), aval.ndim)
        return shaped_array(aval.shape, aval.dtype, aval.weak_type, kept)

    def run(self, *arrays: Any) -> list[Array]:
        """Call the function and return the leaves of its result, in the requested shardings."""
        values = list(self._leaves)
        for i, x in zip(self._numbers, arrays, strict=True):
            values[i] = x
        args, kwargs = self._tree.unflatten(values)
        with current_abstract_mesh(self._mesh.abstract_mesh):
            result = self._fun(*args, **kwargs)
        results, self.out_tree = flat_arrays(result, self._operation)
        self._places = places_of_results(self._outs, result, self._operation)
        return [constrained(x, self._retype(s), self._operation)
                for x, s in zip(results, self._places, strict=True)]  # fmt: skip

    def _retype(self, sharding: Any) -> Any:
        """Return a sharding over the mesh as it is inside."""
        if not isinstance(sharding, NamedSharding):
            return sharding
        return retyped(sharding, sharding.mesh.with_types(self._mesh.axis_types))

    def shardings(self, avals: Sequence[ShapedArray]) -> list[NamedSharding | None]:
        """Return the shardings of the results outside."""
        return [in_types(s, a.ndim) for s, a in zip(self._places, avals, strict=True)]


# ------------------------------------------------------------------------------- typed shardings
# Shardings in types, as meshes have them: what `xprim.sharded_types` asks for.
#
# A type keeps of a sharding the axes of type `Explicit`, over the mesh without its devices, with
# an entry for each dimension; where none of these axes cuts anything it keeps nothing.


class _Meshes:
    """The answers of this package."""

    __slots__ = ()

    def whole(self, ndim: int) -> NamedSharding:
        """Return the sharding that types show of an array that no axis cuts."""
        return NamedSharding(abstract_mesh_now() or NO_MESH, PartitionSpec(*[None] * ndim))

    def in_types(self, sharding: Any, shape: tuple[int, ...]) -> NamedSharding | None:
        """Return what a type keeps of a sharding or partition spec."""
        found = resolve(sharding, "ShapedArray")
        if isinstance(found, NamedSharding):
            found.check_rank(shape, "ShapedArray")
        kept = in_types(found, len(shape))
        if kept is not None:
            kept.check_shape(shape, "ShapedArray")
        return kept

    def captured(self, sharding: NamedSharding, shape: tuple[int, ...]) -> NamedSharding | None:
        """Return what a type keeps of a sharding where the axes are of other types."""
        mesh = current_abstract_mesh.value
        if mesh is None or mesh == sharding.mesh or mesh.shape_tuple != sharding.mesh.shape_tuple:
            return sharding
        return in_types(retyped(sharding, mesh), len(shape))

    def results(
        self, primitive: Any, avals: Sequence[ShapedArray], params: dict[str, Any],
        out: Sequence[ShapedArray],
    ) -> tuple[ShapedArray, ...]:  # fmt: skip
        """Return the types of a primitive's results."""
        return results_of(primitive, avals, params, out)

    def reshard_as(self, x: Any, sharding: NamedSharding | None) -> Any:
        """Reshard a value; None replicates it, over manual axes too."""
        for (old, new), axes in _changes(x.aval, sharding):
            if old == "varying":
                raise ShardingTypeError(message(
                    "shard_map", "a value that varies over manual axes stands where one is "
                    "expected that is the same for all members.", got=x.aval.str_long(),
                    hint="psum, pmean or pmax makes it the same; pcast(y, axes, to='varying') has "
                    "the other vary, too",
                ))  # fmt: skip
            if old == "unreduced":
                raise ShardingTypeError(message(
                    "shard_map", "an unreduced value stands where one is expected that is not.",
                    got=x.aval.str_long(), hint=f"psum(x, {axes!r}) adds the parts up",
                ))  # fmt: skip
            x = recast(x, axes, old, new, (sharding or x.aval.type_sharding).mesh)
        return _in_memory(_along_explicit_axes(x, sharding), sharding)

    def vary(self, x: Any, axes: frozenset[Any], mesh: Any) -> Any:
        """Return a value whose type says that it varies over manual axes, too."""
        held = x.aval.mat
        for old in ("invarying", "reduced"):
            some = tuple([n for n in mesh.axis_names if n in axes and held.state(n) == old])
            x = recast(x, some, old, "varying", mesh)
        return x

    def cotangent_as(self, ct: Any, sharding: NamedSharding | None) -> Any:
        """Reshard a cotangent: the members' contributions are summed, or stay partial sums."""
        for (old, new), axes in _changes(ct.aval, sharding):
            ct = recast(ct, axes, old, new, (sharding or ct.aval.type_sharding).mesh)
        return _in_memory(_along_explicit_axes(ct, sharding), sharding)

    def meshes_of(self, arrays: Sequence[Any]) -> tuple[Mesh, ...]:
        """Return the concrete meshes over which arrays are sharded."""
        if not gateway.several_devices[0]:
            return ()
        held = [held_value(x) for x in arrays]
        given = [x.sharding for x in held if isinstance(x, ConcreteArray)]
        meshes = [s.mesh for s in given if isinstance(s, NamedSharding)]
        return tuple(dict.fromkeys([mesh for mesh in meshes if isinstance(mesh, Mesh)]))

    def is_uncommitted(self, x: Any) -> bool:
        """Return whether a concrete array was put on no device: it goes where others are."""
        buffer = x.buffer if isinstance(x, ConcreteArray) else None
        return isinstance(x, ConcreteArray) and (
            buffer is None or not gateway.placement_of(buffer).committed
        )

    def near(self, meshes: tuple[Mesh, ...]) -> AbstractContextManager[None]:
        """Place values whose sharding only their types hold on the devices of meshes."""
        return meshes_near(meshes)

    def keep_unreduced(self, axes: frozenset[Any]) -> AbstractContextManager[None]:
        """Have sums over what these axes cut stay in parts."""
        return partial_sums.sums_kept_apart(partial_sums.sums_kept_apart.value | axes)

    def with_auto_sharding(
        self, fun: Callable[..., Sequence[Any]], operands: Sequence[Any], shardings: Sequence[Any]
    ) -> Sequence[Any]:
        """Run a function of flat arrays without shardings in types; then reshard its results."""
        return called_with(fun, operands, [whole(x.aval) for x in operands], shardings)

    def call_with_sharding(
        self, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        out_sharding: Any, operation: str,
    ) -> Any:  # fmt: skip
        """Call a function whose results lie as a user's sharding, or tree prefix of them, says."""
        return call_in_mode(fun, args, kwargs, operation, out=out_sharding)


def _changes(
    aval: ShapedArray, sharding: NamedSharding | None
) -> list[tuple[tuple[str, str], tuple[Any, ...]]]:
    """Return how members' shares of a value change by a resharding: along which axes.

    Both are words of `pcast`, what members hold before and what they hold then.
    """
    meshes = [s.mesh for s in (sharding, aval.type_sharding) if s is not None]
    if not (says_of_manual_axes(sharding) or says_of_manual_axes(aval.type_sharding)):
        return []
    wanted = shaped_array(aval.shape, aval.dtype, False, sharding).mat
    held, changes = aval.mat, dict[tuple[str, str], list[Any]]()
    for name in meshes[0].manual_axes:
        pair = held.state(name), wanted.state(name)
        if pair[0] != pair[1]:
            changes.setdefault(pair, []).append(name)
    return [(pair, tuple(names)) for pair, names in changes.items()]


def _along_explicit_axes(x: Any, sharding: NamedSharding | None) -> Any:
    """Return a value that lies so along explicit axes."""
    have, wanted = along_explicit_axes(x.aval.type_sharding), along_explicit_axes(sharding)
    if have == wanted:
        return x
    if wanted is None:
        assert have is not None
        wanted = have.update(spec=PartitionSpec(*[None] * x.aval.ndim))
    return constraints.along_explicit_axes_only(x, wanted)


def _in_memory(x: Any, sharding: NamedSharding | None) -> Any:
    """Return a value in the memory that a type says."""
    space = MemorySpace.Device if sharding is None or sharding.memory is None else MemorySpace.Host
    return in_space(x, space)


def held_value(x: Any) -> Any:
    """Return what the tracers of derivatives and batches hold, which may be concrete."""
    while isinstance(x, Tracer):
        x = getattr(x, "primal", None) if hasattr(x, "primal") else getattr(x, "value", None)
    return x


def typed_as(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """Return the type of an array that lies so."""
    kept = in_types(sharding, aval.ndim)
    if kept is aval.type_sharding:
        return aval
    if kept is not None:
        check_parts(aval, kept)
    return shaped_array(aval.shape, aval.dtype, aval.weak_type, kept)


def describe_results(
    tree: Any, avals: Sequence[ShapedArray], ways: Sequence[Sharding | None]
) -> Any:
    """Return the tree of shapes and dtypes of results, and of how they lie as far as it is known.

    Args:
      tree: the structure of the results.
      avals: their types.
      ways: for each its sharding; of None its type may say it.
    """
    return tree.unflatten([
        xprim.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type,
                         sharding=a.type_sharding if where is None else where)
        for a, where in zip(avals, ways, strict=False)
    ])  # fmt: skip


def shardings_of_results(closed: ClosedJaxpr) -> tuple[NamedSharding | None, ...]:
    """Return how the results of a program shall lie by their types; nothing where these are silent.

    They are silent without explicit axes, and where the mesh has others, too, for the compiler: but
    for parts of sums.
    """
    found = closed.memo.get("shardings of results")
    if found is None:
        found = closed.memo["shardings of results"] = _shardings_of_results(closed)
    return found


def _shardings_of_results(closed: ClosedJaxpr) -> tuple[NamedSharding | None, ...]:
    avals = (*closed.out_avals, *closed.in_avals)
    typed = [a.type_sharding for a in avals if a.type_sharding is not None]
    sharding = next((s for s in typed if s.mesh.axis_names), None)
    if sharding is None:
        return ()
    if set(sharding.mesh.axis_types) != {AxisType.Explicit}:
        return _shardings_of_parts(closed)
    return tuple([
        a.sharding.update(mesh=sharding.mesh) for a in closed.out_avals
    ])  # fmt: skip


def _shardings_of_parts(closed: ClosedJaxpr) -> tuple[NamedSharding | None, ...]:
    """Return those of results in parts of sums, of which XLA does not tell."""
    found = tuple([
        a.type_sharding if a.type_sharding is not None and a.type_sharding.spec.unreduced else None
        for a in closed.out_avals
    ])  # fmt: skip
    return found if any(found) else ()


install_meshes(_Meshes())
