"""The primitive `ffi_call`: a call of a registered function, with all of its rules.

Params: `target`, the name of the function; `result_avals`; `layouts` of the operands and results;
`aliases`, pairs of an operand and the result that is the same memory; `version` of the interface;
`config`, the attributes as text; `has_side_effect`; `vmap_method`.

Neighbours: `ffi` binds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xjit.callback_primitive import VMAP_METHODS
from xjit.eager_backend import compile_and_run
from xjit.ffi_attributes import layouts_text, spread_layout
from xjit.manual_text import by_one_member
from xjit.shardy_text import once_text
from xjit.stablehlo_text import Builder
from xnp import lax
from xprim import (
    EAGER_ON_HOST,
    Effect,
    Primitive,
    ShapedArray,
    from_numpy,
    not_mapped,
    state,
    undefined,
)
from xprim.contracts import BatchAxis
from xprim.errors import MissingRuleError, message

__all__ = ["VMAP_METHODS"]

__dir__ = __all__.copy

_EFFECTS = frozenset([Effect("foreign function", ordered=False)])


def _shape(*_: Any, result_avals: tuple[ShapedArray, ...], **_params: Any) -> Any:
    return result_avals


def _numpy(*operands: Any, **params: Any) -> Any:
    """Run a program of the one call."""
    if state.trace is EAGER_ON_HOST:
        raise RuntimeError(message(
            "ffi_call",
            f"{params['target']!r} cannot be called in a callback, which a program waits for.",
            hint="call it outside of the callback",
        ))  # fmt: skip
    arrays = [from_numpy(x, copy=False, canonical=False) for x in operands]
    return tuple([x.to_host() for x in compile_and_run(ffi_call_p, tuple(arrays), params)])


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, target: str,
               layouts: Any, aliases: Any, version: int, config: str, has_side_effect: bool,
               **_: Any) -> Any:  # fmt: skip
    texts = [layouts_text(orders) for orders in layouts]
    return custom_call_text(
        b, operands, avals_in, avals_out, target, config, version, texts, aliases, has_side_effect
    )


def custom_call_text(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, target: str, config: str,
    version: int, layouts: Sequence[str] | None, aliases: Sequence[tuple[int, int]],
    has_side_effect: bool,
) -> list[str]:  # fmt: skip
    """Write a call of a registered function and return the names of its results."""
    several = len(avals_out) > 1
    parts = [
        f'call_target_name = "{target}"', f"api_version = {version} : i32",
        f"has_side_effect = {str(has_side_effect).lower()}", f"backend_config = {config}",
    ]  # fmt: skip
    if layouts is not None:
        parts += [f"operand_layouts = {layouts[0]}", f"result_layouts = {layouts[1]}"]
    if aliases:
        texts = [
            "#stablehlo.output_operand_alias<output_tuple_indices = "
            f"[{o if several else ''}], operand_index = {i}, operand_tuple_indices = []>"
            for i, o in aliases
        ]
        parts.append(f"output_operand_aliases = [{', '.join(texts)}]")
    once = once_text(b.module, len(avals_out)) if has_side_effect else ""

    def write(b: Builder, operands: Any) -> Any:
        return b.op("stablehlo.custom_call", operands, avals_in, avals_out, ", ".join(parts) + once)

    if has_side_effect:
        return by_one_member(b, operands, avals_in, avals_out, write)
    return list(write(b, operands))


def _jvp(_primals: Any, _tangents: Any, *, target: str, **_: Any) -> Any:
    raise ValueError(message(
        "ffi_call", f"the derivative of the function {target!r} is not known.",
        hint="give the function that calls it a rule of its own: custom_jvp or custom_vjp",
    ))  # fmt: skip


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, vmap_method: str | None, **params: Any
           ) -> Any:  # fmt: skip
    if vmap_method is None:
        raise MissingRuleError(message(
            "vmap", "ffi_call does not know what its function does with a batch.",
            got=f"{params['target']!r}, vmap_method=None",
            expected=f"vmap_method= one of {VMAP_METHODS}",
            hint="vmap_method='sequential' is right for every function",
        ))  # fmt: skip
    mapped = [d is not not_mapped for d in dims]
    moved = [axis.to_front(x, d) if m else x
             for x, d, m in zip(operands, dims, mapped, strict=True)]  # fmt: skip
    if vmap_method.startswith("sequential"):
        outs: Any = _one_by_one(moved, mapped, vmap_method, params)
    else:
        outs = _at_once(axis, moved, mapped, vmap_method, params)
    return outs, (0,) * len(outs)


def _one_by_one(
    operands: Sequence[Any], mapped: Sequence[bool], vmap_method: str, params: dict[str, Any]
) -> Any:
    def step(carry: Any, elements: Any) -> Any:
        rest = iter(elements)
        own = [next(rest) if m else x for x, m in zip(operands, mapped, strict=True)]
        return carry, list(ffi_call_p.bind(*own, vmap_method=vmap_method, **params))

    xs = [x for x, m in zip(operands, mapped, strict=True) if m]
    return lax.scan(step, (), xs, unroll=vmap_method == "sequential_unrolled")[1]


def _at_once(
    axis: BatchAxis, operands: Sequence[Any], mapped: Sequence[bool], vmap_method: str,
    params: dict[str, Any],
) -> Any:  # fmt: skip
    """Call the function once; what is not mapped is repeated, has a size of 1, or is as it was."""
    sizes = {"broadcast_all": axis.size, "expand_dims": 1}
    if vmap_method in sizes:
        size = sizes[vmap_method]
        operands = [x if m else lax.broadcast(x, (size,))
                    for x, m in zip(operands, mapped, strict=True)]  # fmt: skip
        mapped = [True] * len(operands)
    orders_in, orders_out = params["layouts"]
    avals = tuple([axis.batched_aval(a) for a in params["result_avals"]])
    layouts = (
        tuple([spread_layout(o) if m else o for o, m in zip(orders_in, mapped, strict=True)]),
        tuple([spread_layout(o) for o in orders_out]),
    )
    same = [(i, o) for i, o in params["aliases"] if operands[i].aval.strong() is avals[o].strong()]
    changed = {"layouts": layouts, "result_avals": avals, "aliases": tuple(same)}
    return ffi_call_p.bind(*operands, vmap_method=vmap_method, **(params | changed))


def _effects(*, has_side_effect: bool, **_: Any) -> Any:
    return _EFFECTS if has_side_effect else frozenset()


ffi_call_p = Primitive(
    "ffi_call",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("what a foreign function computes is not known to be linear"),
    batch=_batch,
    effects=_effects,
)
