"""The primitive `call_exported`: a call of a stored program, with all of its rules.

The param `exported` is the `Exported`. Nothing of the program is known but its text, so a
derivative is asked of the `Exported`, and a batch calls it for each example in turn. Compiled, the
functions of the stored program become functions of the one that calls it.

Neighbours: `exported` binds this, `modules` writes texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xtree
from xjit.export.symbolic_shapes import check_facts, sizes_in, solved
from xjit.program import program_of
from xjit.shardy_text import sharding_text
from xjit.stablehlo_text import Builder
from xnp import lax
from xprim import (
    ClosedJaxpr,
    Primitive,
    ShapedArray,
    Zero,
    custom_vjp_call_p,
    dtypes,
    not_mapped,
    trace_to_jaxpr,
    undefined,
)
from xprim.contracts import BatchAxis
from xprim.errors import message
from xprim.extended import unwrap, wrap
from xprim.sharded_types import whole
from xprim.symbolic_dimensions import dimension_text, is_symbolic, value_of

__all__ = ["call_exported_p", "call_flat"]

__dir__ = __all__.copy


def call_flat(exported: Any, arrays: Sequence[Any]) -> Sequence[Any]:
    """Call a stored program with the leaves of its arguments, so that it can be differentiated."""
    _check_arguments(exported, [x.aval for x in arrays])

    def call(*operands: Any) -> Sequence[Any]:
        results = call_exported_p.bind(*map(_numbers, operands), exported=exported)
        return [wrap(r, a.dtype) if dtypes.is_extended(a.dtype) else r
                for r, a in zip(results, exported.out_avals, strict=True)]  # fmt: skip

    def backward(residuals: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
        derivative = exported.vjp()
        avals = derivative.in_avals[len(residuals) :]
        given = [_cotangent(ct, a) for ct, a in zip(cotangents, avals, strict=True)]
        results = call_flat(derivative, [*residuals, *given])
        return [Zero(r.aval) if r.aval.dtype == dtypes.float0 else r for r in results]

    def forward(perturbed: Any) -> Any:
        return lambda *operands: (*call_flat(exported, operands), *operands)

    return custom_vjp_call_p.bind(
        *arrays, call=call, fwd=forward, bwd=backward, count_outs=lambda: len(exported.out_avals)
    )


def _cotangent(ct: Any, aval: ShapedArray) -> Any:
    if type(ct) is Zero:
        return lax.full(ct.aval.shape, 0, aval.dtype)
    return ct


def _numbers(x: Any) -> Any:
    return unwrap(x) if dtypes.is_extended(x.aval.dtype) else x


def _check_arguments(exported: Any, avals: Sequence[ShapedArray]) -> None:
    for i, (given, expected) in enumerate(zip(avals, exported.in_avals, strict=True)):
        if given.dtype != expected.dtype or not _fits(given.shape, expected.shape):
            raise ValueError(message(
                "call", f"{exported.fun_name} was exported for other arguments.",
                got=f"{_name_of(exported, i)}: {given.str_long()}", expected=expected.str_long(),
            ))  # fmt: skip


def _fits(given: Sequence[Any], expected: Sequence[Any]) -> bool:
    return len(given) == len(expected) and all(
        is_symbolic(e) or g == e for g, e in zip(given, expected, strict=True)
    )


def _values_of_variables(exported: Any, avals: Sequence[ShapedArray]) -> dict[str, Any]:
    """Return the values of the symbolic dimensions in a call, which keep to what is known."""
    expected = [a.stored for a in exported.in_avals]
    if not sizes_in(expected):
        return {}
    names = [_name_of(exported, i) for i in range(len(expected))]
    values = solved(expected, avals, names)
    check_facts(exported.symbolic_facts, values, exported.fun_name)
    return values


def _shape(*avals: ShapedArray, exported: Any) -> Any:
    values = _values_of_variables(exported, avals)
    meshes = [a.spread.mesh for a in avals if a.spread is not None]
    outs = [a.stored if dtypes.is_extended(a.dtype) else a for a in exported.out_avals]
    # Types say it over the axes that cut the arguments; over other meshes results are whole.
    outs = [a if a.spread is None or a.spread.mesh in meshes else whole(a) for a in outs]
    return [_with_sizes(a, values) for a in outs]


def _with_sizes(aval: ShapedArray, values: dict[str, Any]) -> ShapedArray:
    if not any(map(is_symbolic, aval.shape)):
        return aval
    shape = [value_of(dimension_text(d), values) if is_symbolic(d) else d for d in aval.shape]
    return aval.update(shape=shape, sharding=aval.spread)


def _name_of(exported: Any, i: int) -> str:
    tree = exported.in_tree.unflatten(range(len(exported.in_avals)))
    (half, place, *rest), _ = xtree.leaves_with_path(tree)[i]
    where = xtree.keystr(tuple(rest))
    if half == xtree.SequenceKey(0):
        return f"argument {xtree.keystr((place,)).strip('[]')}{where}"
    return f"{xtree.keystr((place,))[2:-2]}{where}"


def _numpy(*operands: Any, exported: Any) -> Any:
    avals = tuple([x.aval for x in operands])
    jaxpr, consts = trace_to_jaxpr(lambda *xs: call_exported_p.bind(*xs, exported=exported), avals)
    return tuple(program_of(ClosedJaxpr(jaxpr, consts), exported.fun_name).call(operands))


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, exported: Any) -> Any:
    kept, spread = exported.module_kept_var_idx, exported.spread
    if spread is not None:
        _check_devices(b.module, exported)
        operands = _lying_as(b, operands, avals_in, spread.arguments)
    results = exported.module_for(b.platform).write_call(
        b, [operands[i] for i in kept], [avals_in[i] for i in kept], avals_out,
        _values_of_variables(exported, avals_in),
    )  # fmt: skip
    return results if spread is None else _lying_as(b, results, avals_out, spread.results)


def _check_devices(module: Any, exported: Any) -> None:
    """Raise where a program of several devices is called on another number of them."""
    count = 1 if module.members is not None else max(len(module.devices), 1)
    if count != exported.nr_devices:
        raise ValueError(message(
            "call", f"{exported.fun_name} was exported for {exported.nr_devices} devices and is "
            f"called on {count}.",
            hint="put its arguments on a mesh of so many: device_put(args, s) with s of\n"
            "exported.in_shardings_jax(mesh)",
        ))  # fmt: skip


def _lying_as(b: Builder, names: Any, avals: Any, places: Any) -> list[Any]:
    """Have values lie as a stored program says."""
    found = []
    for name, aval, place in zip(names, avals, places, strict=True):
        if place is not None:
            text = sharding_text(b.module, place.on(b.module.devices), aval.ndim)
            (name,) = b.op("sdy.sharding_constraint", [name], [aval], [aval],
                           f"sharding = #sdy.sharding{text}")  # fmt: skip
        found.append(name)
    return found


def _effects(*, exported: Any) -> frozenset[Any]:
    return frozenset(exported.unordered_effects)


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, exported: Any) -> Any:
    mapped = [d is not not_mapped for d in dims]
    fronts = [axis.to_front(x, d) for x, d, m in zip(operands, dims, mapped, strict=True) if m]

    def one(examples: Sequence[Any]) -> Sequence[Any]:
        given = iter(examples)
        own = [next(given) if m else x for x, m in zip(operands, mapped, strict=True)]
        return call_exported_p.bind(*own, exported=exported)

    outs = lax.map(one, tuple(fronts))
    return outs, (0,) * len(outs)


def _printed(*, exported: Any) -> dict[str, Any]:
    return {"name": exported.fun_name}


call_exported_p = Primitive(
    "call_exported",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=undefined(
        "of a stored program only the reverse derivative is known",
        "grad and vjp work where serialize(vjp_order=1) stored it",
    ),
    transpose=undefined("a stored program is not known to be linear"),
    batch=_batch,
    effects=_effects,
    print=_printed,
)
