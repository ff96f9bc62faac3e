"""Along which axes of a mesh values vary: the types of values in a function of `shard_map`.

Along the axes that `checked_axes` names, types say which values differ from member to member
(`float32[3]{V:x}`, `typeof(x).vma`): the pieces of an operand that an axis cuts, the number of a
member, and what is computed of these. The results of an operation vary over the axes of all of its
operands. Collectives change what varies, each by its rule of kind `shard`:

    psum, pmax, pmin                    from values that vary over an axis to one value for all
    all_gather, all_to_all, ppermute    from values that vary to values that vary
    pvary                               counts one value as so many, which happen to be equal

`psum` and `pvary` are each other's transpose, so the cotangent of a value that all members share is
the sum of theirs, and that of a result that they share is a copy for each.

Source: the typing rules of `jax.shard_map` with `check_vma=True`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from xjit.meshes import abstract_mesh_now
from xjit.named_shardings import with_varying
from xnp.primitives.operations import bind
from xprim import (
    LINEAR,
    STRUCTURAL,
    Array,
    ClosedJaxpr,
    Equation,
    Primitive,
    ShapedArray,
    config,
    dimension_names,
    shaped_array,
)
from xprim.contracts import BatchAxis, Builder
from xprim.sharded_types import vary
from xprim.varying_axes import Axes

__all__ = ()

_NONE: Axes = frozenset()

checked_axes: config.Option[Axes] = config.define(
    config.Option(
        "checked_axes",
        _NONE,
        "Manual axes of a mesh along which types say what varies; `shard_map` sets it.",
        kind=frozenset,
        in_cache_key=True,
    )
)


def varying_over(x: Array, names: Sequence[Any]) -> Array:
    """Return a value that counts as varying over those of some axes that are checked."""
    axes = checked_axes.value.intersection(names)
    return vary(x, axes, abstract_mesh_now()) if axes else x


def varying_type(aval: ShapedArray, axes: Axes, mesh: Any) -> ShapedArray:
    """Return a type whose values vary over some manual axes of a mesh, beside those it names."""
    spread = with_varying(aval.spread, aval.vma | axes, mesh, aval.ndim)
    return shaped_array(aval.shape, aval.dtype, aval.weak_type, spread)


def _pvary_shape(aval: ShapedArray, *, axes: Any, mesh: Any) -> tuple[ShapedArray, ...]:
    return (varying_type(aval, frozenset(axes), mesh),)


def _pvary_numpy(x: Any, *, axes: Any, mesh: Any) -> Any:
    return (x,)


def _pvary_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axes: Any, mesh: Any
) -> Any:
    return operands


def _pvary_transpose(cts: Any, x: Any, *, axes: Any, mesh: Any) -> Any:
    return (bind("psum", cts[0], axes=axes, axis_index_groups=None) if axes else cts[0],)


def _pvary_batch(axis: BatchAxis, operands: Any, dims: Any, *, axes: Any, mesh: Any) -> Any:
    return pvary_p.bind(*operands, axes=axes, mesh=mesh), dims


pvary_p: Primitive = Primitive(
    "pvary",
    shape=_pvary_shape,
    numpy=_pvary_numpy,
    stablehlo=_pvary_stablehlo,
    jvp=LINEAR,
    transpose=_pvary_transpose,
    batch=_pvary_batch,
    dimensions=dimension_names.alike,
    shard=lambda varying, *, axes, mesh: (varying.union(axes),),
    physical=STRUCTURAL,
)


def axes_brought(closed: ClosedJaxpr) -> Axes:
    """Return the axes over which some value of a program varies although no argument does."""
    found = _NONE
    for eqn in closed.jaxpr.eqns:
        rule = eqn.primitive.rules.get("shard")
        if rule is not None:
            found = found.union(*rule(*[_NONE] * len(eqn.inputs), **eqn.params))
        for param in eqn.params.values():
            inner = param if type(param) is tuple else (param,)
            found = found.union(*[axes_brought(x) for x in inner if type(x) is ClosedJaxpr])
    return found


def unsaid(
    closed: ClosedJaxpr, said: Sequence[Axes], manual: Sequence[Any]
) -> Iterator[tuple[int, Axes, Equation | None]]:
    """Yield the results that vary over axes that are not said, with these and their equation.

    Args:
      closed: the program of one member.
      said: for each result, the axes over which it may vary.
      manual: the axes that are asked about.
    """
    outvars: Sequence[Any] = closed.jaxpr.outvars
    for i, out in enumerate(outvars):
        axes = out.aval.vma.intersection(manual) - said[i]
        if axes:
            makers = {v: eqn for eqn in closed.jaxpr.eqns for v in eqn.outputs}
            yield i, axes, makers.get(out)


def alike_in_parts(closed: ClosedJaxpr, parts: Sequence[Axes]) -> Iterator[tuple[int, Any]]:
    """Yield the results that count as parts of sums along an axis over which they do not vary.

    Args:
      closed: the program of one member.
      parts: for each result, the axes along which its pieces are added up.
    """
    for i, (out, axes) in enumerate(zip(closed.jaxpr.outvars, parts, strict=True)):
        yield from [(i, axis) for axis in sorted(axes - out.aval.vma, key=str)]
