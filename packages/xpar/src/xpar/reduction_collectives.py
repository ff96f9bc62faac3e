"""The collectives that combine values: psum, pmax, pmin, reduce_scatter.

    psum            every member gets the sum over the members of the axes
    pmax, pmin      ... the largest, the smallest
    reduce_scatter  the sum is cut along a dimension, and every member gets its piece

Each member's tangent is its own, so the transpose of `psum` is `psum`: all results depend on every
operand. Semantics: StableHLO specification, sections all_reduce and reduce_scatter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xnp.primitives.operations import bind, converted, div, mul, reshaped, scalar_like
from xpar.named_axes import (
    collective_attributes,
    collective_batch,
    gathers_members,
    is_mapped,
    scatters_members,
    unbound,
)
from xpar.varying_axes import varying_over
from xprim import (
    LINEAR,
    Primitive,
    ShapedArray,
    dimension_names,
    dtypes,
    not_mapped,
    primitive_maker,
    shaped_array,
    undefined,
)
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()


def _all_reduce(op: str) -> Callable[..., Any]:
    def stablehlo_rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axes: Any,
                       axis_index_groups: Any) -> Any:  # fmt: skip
        return b.op("stablehlo.all_reduce", operands, avals_in, avals_out,
                    collective_attributes(b, axes, axis_index_groups),
                    b.reducer(op, avals_in[0].dtype))  # fmt: skip

    return stablehlo_rule


def _reduced_numpy(x: Any, *, axes: Any, axis_index_groups: Any) -> Any:
    unbound(axes)


# --- psum --------------------------------------------------------------------------------------


def _sum_shape(aval: ShapedArray, *, axes: Any, axis_index_groups: Any) -> tuple[ShapedArray, ...]:
    if dtypes.is_bool(aval.dtype):
        raise TypeError("psum: does not take operands of dtype bool.")
    return (aval,)


def _sum_on_axis(axis: BatchAxis, x: Any, dim: Any, params: Any) -> tuple[Any, Any]:
    if is_mapped(dim):
        return bind("reduce_sum", x, axes=(dim,)), not_mapped
    return mul(x, scalar_like(x, axis.size)), not_mapped


def _sum_transpose(cts: Any, x: Any, *, axes: Any, axis_index_groups: Any) -> Any:
    """Give each member the cotangent of the sum: as it is, where types say that all share it."""
    ct = varying_over(cts[0], axes)
    shared = x.aval.vma.intersection(axes) if axis_index_groups is None else frozenset()
    rest = tuple([name for name in axes if name not in shared])
    return psum_p.bind(ct, axes=rest, axis_index_groups=axis_index_groups) if rest else (ct,)


psum_p: Primitive = Primitive(
    "psum",
    shape=_sum_shape,
    numpy=_reduced_numpy,
    stablehlo=_all_reduce("stablehlo.add"),
    jvp=LINEAR,
    transpose=_sum_transpose,
    batch=collective_batch(lambda: psum_p, _sum_on_axis),
    dimensions=dimension_names.alike,
    shard=gathers_members("axes"),
    axis_param="axes",
)


# --- pmax, pmin --------------------------------------------------------------------------------


@primitive_maker
def _chooser(name: str, op: str, reduce: str) -> Primitive:
    """Define the primitive that chooses one of the members' values."""

    def shape_rule(aval: ShapedArray, *, axes: Any, axis_index_groups: Any) -> Any:
        if dtypes.is_complex(aval.dtype):
            raise TypeError(f"{name}: complex numbers have no order.")
        return (aval,)

    def jvp_rule(primals: Any, tangents: Any, **params: Any) -> Any:
        (x,), (x_dot,) = primals, tangents
        (y,) = primitive.bind(x, **params)
        chosen = converted(bind("eq", x, y), x.aval.dtype)
        # members that tie share the derivative, as in reduce_max
        (total,) = psum_p.bind(mul(chosen, x_dot), **params)
        (count,) = psum_p.bind(chosen, **params)
        return (y,), (div(total, count),)

    def on_axis(axis: BatchAxis, x: Any, dim: Any, params: Any) -> tuple[Any, Any]:
        return (bind(reduce, x, axes=(dim,)) if is_mapped(dim) else x), not_mapped

    primitive = Primitive(
        name,
        shape=shape_rule,
        numpy=_reduced_numpy,
        stablehlo=_all_reduce(op),
        jvp=jvp_rule,
        transpose=undefined("it is not linear"),
        batch=collective_batch(lambda: primitive, on_axis),
        dimensions=dimension_names.alike,
        shard=gathers_members("axes"),
        axis_param="axes",
    )
    return primitive


pmax_p = _chooser("pmax", "stablehlo.maximum", "reduce_max")
pmin_p = _chooser("pmin", "stablehlo.minimum", "reduce_min")


# --- reduce_scatter ----------------------------------------------------------------------------


def _scatter_shape(
    aval: ShapedArray, *, axis_name: Any, axis_size: int, scatter_dimension: int,
    axis_index_groups: Any,
) -> tuple[ShapedArray, ...]:  # fmt: skip
    shape = list(aval.shape)
    if not 0 <= scatter_dimension < len(shape) or shape[scatter_dimension] % axis_size:
        raise ValueError(message(
            "psum_scatter", "the scattered dimension must be a multiple of the number of members.",
            got=f"dimension {scatter_dimension} of {aval.str_long()}, {axis_size} members",
        ))  # fmt: skip
    shape[scatter_dimension] //= axis_size
    return (shaped_array(tuple(shape), aval.dtype, aval.weak_type),)


def _scatter_numpy(x: Any, *, axis_name: Any, **_params: Any) -> Any:
    unbound(axis_name)


def _scatter_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axis_name: Any,
                       axis_size: int, scatter_dimension: int,
                       axis_index_groups: Any) -> Any:  # fmt: skip
    members = collective_attributes(b, axis_name, axis_index_groups)
    return b.op("stablehlo.reduce_scatter", operands, avals_in, avals_out,
                f"{members}, scatter_dimension = {scatter_dimension} : i64",
                b.reducer("stablehlo.add", avals_in[0].dtype))  # fmt: skip


def _scatter_on_axis(axis: BatchAxis, x: Any, dim: Any, params: Any) -> tuple[Any, Any]:
    total, _ = _sum_on_axis(axis, x, dim, params)
    place = params["scatter_dimension"]
    shape = total.aval.shape
    pieces = (axis.size, shape[place] // axis.size)
    return reshaped(total, (*shape[:place], *pieces, *shape[place + 1 :])), place


def _scatter_transpose(cts: Any, x: Any, *, scatter_dimension: int, **params: Any) -> Any:
    ct = varying_over(cts[0], params["axis_name"])
    return (bind("all_gather", ct, all_gather_dimension=scatter_dimension, **params),)


reduce_scatter_p: Primitive = Primitive(
    "reduce_scatter",
    shape=_scatter_shape,
    numpy=_scatter_numpy,
    stablehlo=_scatter_stablehlo,
    jvp=LINEAR,
    transpose=_scatter_transpose,
    batch=collective_batch(lambda: reduce_scatter_p, _scatter_on_axis, ("scatter_dimension",)),
    dimensions=dimension_names.whole_along("scatter_dimension"),
    shard=scatters_members,
    axis_param="axis_name",
)
