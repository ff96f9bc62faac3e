"""Shardings in types, as meshes have them: what `xprim.sharded_types` asks for.

A type keeps of a sharding the axes of type `Explicit`, over the mesh without its devices, with an
entry for each dimension; where none of these axes cuts anything it keeps nothing.

Neighbours: `sharding_rules` finds the types of results, `auto_axes` has the programs whose
shardings are left open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from xjit import partial_sums
from xjit.auto_axes import called_with
from xjit.axis_modes import call_in_mode
from xjit.meshes import (
    AbstractMesh,
    AxisType,
    Mesh,
    abstract_mesh_now,
    current_abstract_mesh,
)
from xjit.named_shardings import NamedSharding, in_types, resolved, says_of_explicit_axes
from xjit.partial_sums import check_parts, retyped
from xjit.partition_specs import PartitionSpec
from xjit.places_of_calls import meshes_near
from xjit.sharding_constraint import sharding_constraint_p
from xjit.sharding_rules import results_of
from xjit.shardings import Sharding
from xprim import (
    ClosedJaxpr,
    ConcreteArray,
    ShapedArray,
    ShapeDtypeStruct,
    Tracer,
    get_primitive,
    shaped_array,
)
from xprim.errors import message
from xprim.sharded_types import ShardingTypeError, install_meshes, whole

__all__ = ["shardings_of_results", "typed_as"]

__dir__ = __all__.copy

_NO_MESH = AbstractMesh((), ())


class _Meshes:
    """The answers of this package."""

    __slots__ = ()

    def whole(self, ndim: int) -> NamedSharding:
        """Return the sharding that types show of an array that no axis cuts."""
        return NamedSharding(abstract_mesh_now() or _NO_MESH, PartitionSpec(*[None] * ndim))

    def in_types(self, sharding: Any, shape: tuple[int, ...]) -> NamedSharding | None:
        """Return what a type keeps of a sharding or partition spec."""
        found = resolved(sharding, "ShapedArray")
        if isinstance(found, NamedSharding):
            found.check_rank(shape, "ShapedArray")
        kept = in_types(found, len(shape))
        if kept is not None:
            kept.check_shape(shape, "ShapedArray")
        return kept

    def captured(self, spread: NamedSharding, shape: tuple[int, ...]) -> NamedSharding | None:
        """Return what a type keeps of a sharding where the axes are of other types."""
        mesh = current_abstract_mesh.value
        if mesh is None or mesh == spread.mesh or mesh.shape_tuple != spread.mesh.shape_tuple:
            return spread
        return in_types(retyped(spread, mesh), len(shape))

    def results(
        self, primitive: Any, avals: Sequence[ShapedArray], params: dict[str, Any],
        out: Sequence[ShapedArray],
    ) -> tuple[ShapedArray, ...]:  # fmt: skip
        """Return the types of a primitive's results."""
        return results_of(primitive, avals, params, out)

    def spread_as(self, x: Any, spread: NamedSharding | None) -> Any:
        """Return a value that is spread so; None has it whole, and the same for all members."""
        have, wanted = x.aval.vma, frozenset() if spread is None else spread.varying
        if have - wanted:
            raise ShardingTypeError(message(
                "shard_map", "a value that varies over manual axes stands where one is expected "
                "that is the same for all members.", got=x.aval.str_long(),
                hint="psum, pmean or pmax makes it the same; pcast(y, axes, to='varying') has the "
                "other vary, too",
            ))  # fmt: skip
        if spread is not None and wanted - have:
            x = self.vary(x, wanted, spread.mesh)
        if x.aval.spread == spread or not (
            says_of_explicit_axes(x.aval.spread) or says_of_explicit_axes(spread)
        ):
            return x
        if spread is None:
            spread = x.aval.spread.update(spec=PartitionSpec(*[None] * x.aval.ndim))
        return sharding_constraint_p.bind(x, sharding=spread)[0]

    def vary(self, x: Any, axes: frozenset[Any], mesh: Any) -> Any:
        """Return a value whose type says that it varies over manual axes, too."""
        more = tuple([name for name in mesh.axis_names if name in axes - x.aval.vma])
        return get_primitive("pvary").bind(x, axes=more, mesh=mesh)[0] if more else x

    def summed_over(self, ct: Any, axes: frozenset[Any]) -> Any:
        """Return the sum of the cotangents of the members of manual axes."""
        names = tuple([name for name in ct.aval.spread.mesh.axis_names if name in axes])
        return get_primitive("psum").bind(ct, axes=names, axis_index_groups=None)[0]

    def meshes_of(self, arrays: Sequence[Any]) -> tuple[Mesh, ...]:
        """Return the meshes, with their devices, over which arrays are spread."""
        held = [_held(x) for x in arrays]
        given = [x.sharding for x in held if isinstance(x, ConcreteArray)]
        meshes = [s.mesh for s in given if isinstance(s, NamedSharding)]
        return tuple(dict.fromkeys([mesh for mesh in meshes if isinstance(mesh, Mesh)]))

    def near(self, meshes: tuple[Mesh, ...]) -> AbstractContextManager[None]:
        """Have values whose types alone say how they are spread lie on the devices of meshes."""
        return meshes_near(meshes)

    def kept_apart(self, axes: frozenset[Any]) -> AbstractContextManager[None]:
        """Have sums over what these axes cut stay in parts."""
        return partial_sums.sums_kept_apart(partial_sums.sums_kept_apart.value | axes)

    def left_open(
        self, fun: Callable[..., Sequence[Any]], operands: Sequence[Any], spreads: Sequence[Any]
    ) -> Sequence[Any]:
        """Run a function of flat arrays without shardings in types; its results are spread so."""
        return called_with(fun, operands, [whole(x.aval) for x in operands], spreads)

    def spread_call(
        self, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        out_sharding: Any, operation: str,
    ) -> Any:  # fmt: skip
        """Call a function whose results lie as a user's sharding, or tree prefix of them, says."""
        return call_in_mode(fun, args, kwargs, operation, out=out_sharding)


def _held(x: Any) -> Any:
    """Return what the tracers of derivatives and batches hold, which may be concrete."""
    while isinstance(x, Tracer):
        x = getattr(x, "primal", None) if hasattr(x, "primal") else getattr(x, "value", None)
    return x


def typed_as(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """Return the type of an array that lies so."""
    spread = in_types(sharding, aval.ndim)
    if spread is aval.spread:
        return aval
    if spread is not None:
        check_parts(aval, spread)
    return shaped_array(aval.shape, aval.dtype, aval.weak_type, spread)


def described(tree: Any, avals: Sequence[ShapedArray], ways: Sequence[Sharding | None]) -> Any:
    """Return the tree of shapes and dtypes of results, and of how they lie as far as it is known.

    Args:
      tree: the structure of the results.
      avals: their types.
      ways: for each how it lies; of None its type may say it.
    """
    return tree.unflatten([
        ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type,
                         sharding=a.spread if where is None else where)
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
    spread = next((a.spread for a in avals if a.spread is not None), None)
    if spread is None:
        return ()
    if set(spread.mesh.axis_types) != {AxisType.Explicit}:
        return _shardings_of_parts(closed)
    return tuple([
        a.spread or NamedSharding(spread.mesh, PartitionSpec(*[None] * a.ndim))
        for a in closed.out_avals
    ])  # fmt: skip


def _shardings_of_parts(closed: ClosedJaxpr) -> tuple[NamedSharding | None, ...]:
    """Return those of results in parts of sums, of which XLA does not tell."""
    found = tuple([
        a.spread if a.spread is not None and a.spread.spec.unreduced else None
        for a in closed.out_avals
    ])  # fmt: skip
    return found if any(found) else ()


install_meshes(_Meshes())
