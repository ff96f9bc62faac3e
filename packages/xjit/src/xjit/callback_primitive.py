"""The primitive `callback`: a Python function that a program calls, with all of its rules.

Params: `host`, what is called with ndarrays; `avals`, the abstract values of the results; `effect`,
an `Effect` or None where the function is pure; `vmap_method`, what a batch does with it; `device`,
whose part of a program over several calls it, None for the first one, `EACH` for all of them, each
with the pieces that it has (which is for functions without results). Evaluated,
the function is called; compiled, the program calls it by its number among the program's functions.
In a batch the function is called for each example in turn, by Python, unless it takes batches.

Neighbours: `callbacks` and `debug` bind it; `callback_runs` is what runtimes call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xjit.callback_runs import CompiledCallback
from xjit.jaxlib_gateway import CALLBACK_TARGET, PIECES_TARGET
from xjit.manual_text import by_one_member
from xjit.shardy_text import everywhere_text, once_text
from xjit.stablehlo_text import Builder
from xprim import (
    ORDER,
    ConcreteArray,
    Effect,
    Primitive,
    ShapedArray,
    Zero,
    dtypes,
    get_primitive,
    not_mapped,
    shaped_array,
    undefined,
)
from xprim.contracts import BatchAxis, JVPHandle
from xprim.errors import MissingRuleError, message
from xtree.records import Record, set_once

__all__ = [
    "DEBUG", "EACH", "DebugEffect", "HostFunction", "IO", "ORDERED_DEBUG", "ORDERED_IO",
    "OrderedDebugEffect", "VMAP_METHODS", "callback_p",
]  # fmt: skip

__dir__ = __all__.copy

HostFunction = Callable[[Sequence[np.ndarray[Any, Any]], Sequence[ShapedArray]], Sequence[Any]]
"""From the operands, which it may keep, and the abstract values of the results to ndarrays."""


class DebugEffect(Effect):
    """The effect of what looks at a program, in any order."""

    __slots__ = ()

    def __init__(
        self, name: str = "debug callback", ordered: bool = False, exact: bool = False,
        repeatable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(name, ordered, exact, repeatable)


class OrderedDebugEffect(Effect):
    """The effect of what looks at a program in the order of it."""

    __slots__ = ()

    def __init__(
        self, name: str = "ordered debug callback", ordered: bool = True, exact: bool = False,
        repeatable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(name, ordered, exact, repeatable)


DEBUG = DebugEffect()
ORDERED_DEBUG = OrderedDebugEffect()
IO = Effect("io_callback", ordered=False)
ORDERED_IO = Effect("ordered io_callback")

EACH = "each"
"""The `device` of a function that each device calls with its own pieces."""

VMAP_METHODS = (
    "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized",
)  # fmt: skip


class ForEachExample(Record):
    """Calls a function for each example of a batch in turn, and stacks the results."""

    __slots__ = __match_args__ = ("host", "mapped", "size")
    host: HostFunction
    mapped: tuple[bool, ...]
    size: int

    def __init__(self, host: HostFunction, mapped: tuple[bool, ...], size: int) -> None:
        set_once(self, "host", host)
        set_once(self, "mapped", mapped)
        set_once(self, "size", size)

    def __call__(
        self, operands: Sequence[np.ndarray[Any, Any]], avals: Sequence[ShapedArray]
    ) -> Sequence[np.ndarray[Any, Any]]:
        """Return the results of all examples, each along the first dimension."""
        examples = [shaped_array(a.shape[1:], a.dtype) for a in avals]
        outs = [np.empty(a.shape, a.dtype) for a in avals]
        for i in range(self.size):
            own = [x[i, ...] if m else x for x, m in zip(operands, self.mapped, strict=True)]
            for out, result in zip(outs, self.host(own, examples), strict=True):
                out[i] = result
        return outs


def _shape(*operands: Any, avals: tuple[ShapedArray, ...], **_: Any) -> Any:
    return avals


def _numpy(*operands: Any, host: HostFunction, avals: tuple[ShapedArray, ...], **_: Any) -> Any:
    results = host([x.to_host() for x in operands], avals)
    return tuple(map(ConcreteArray, results, avals))


def _effects(*, effect: Effect | None, **_: Any) -> frozenset[Any]:
    return frozenset() if effect is None else frozenset([effect])


def _printed(*, host: Any, effect: Effect | None, avals: Any, vmap_method: str | None,
             device: Any = None) -> Any:  # fmt: skip
    shown: dict[str, Any] = {"callback": host}
    if effect is not None:
        shown["effect"] = effect
    others = {"vmap_method": vmap_method, "device": device}
    return shown | {k: v for k, v in others.items() if v is not None}


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, host: HostFunction,
               effect: Effect | None, device: Any = None, **_: Any) -> Any:  # fmt: skip
    ordered = effect is not None and effect.ordered
    targets, device = _targets(b, effect, device)
    if ordered:
        operands, avals_in = [b.order, *operands], [ORDER, *avals_in]
        avals_out = [ORDER, *avals_out]
    functions = b.module.callbacks
    functions.append(CompiledCallback(host, tuple(avals_out), ordered))
    layouts = [f"[{', '.join(map(_layout, avals))}]" for avals in (avals_in, avals_out)]
    side_effect = "false" if effect is None else "true"
    attributes = (
        f'call_target_name = "{targets.get(b.platform, targets["gpu"])}", '
        f"api_version = 4 : i32, has_side_effect = {side_effect}, "
        f"backend_config = {{index = {len(functions) - 1} : ui64}}, "
        f"operand_layouts = {layouts[0]}, result_layouts = {layouts[1]}"
        + once_text(b.module, len(avals_out), device)
    )  # fmt: skip

    def write(b: Builder, operands: Any) -> Any:
        return b.op("stablehlo.custom_call", operands, avals_in, avals_out, attributes)

    if effect is None:
        results = write(b, operands)
    else:
        results = by_one_member(b, operands, avals_in, avals_out, write)
    if ordered:
        b.order, *results = results
        avals_out = avals_out[1:]
    return results if device is None else _everywhere(b, results, avals_out)


def _targets(b: Builder, effect: Any, device: Any) -> tuple[dict[str, str], Any]:
    """Return what the program calls, and the device whose part of it does."""
    if device is not EACH:
        return CALLBACK_TARGET, device
    if len(b.module.devices) < 2 or b.module.members is not None:
        return CALLBACK_TARGET, None  # all is on one device, or is a piece already
    if effect is not None and effect.ordered:
        raise ValueError(message(
            "callback", "devices run at the same time, so what they do with pieces has no order.",
            got=f"ordered=True and partitioned=True, in a program over {len(b.module.devices)} "
            "devices", hint="leave out one of them",
        ))  # fmt: skip
    return PIECES_TARGET, None


def _everywhere(b: Builder, results: Any, avals: Any) -> Any:
    """Give all devices of a program the results that one of them has."""
    if len(b.module.devices) < 2 or b.module.members is not None:
        return results
    return [
        b.op("sdy.sharding_constraint", [name], [aval], [aval],
             f"sharding = #sdy.sharding{everywhere_text(b.module, aval.ndim)}")[0]
        for name, aval in zip(results, avals, strict=True)
    ]  # fmt: skip


def _layout(aval: ShapedArray) -> str:
    """Return the layout of an array as NumPy has it: the last dimension is the nearest."""
    order = ", ".join(map(str, reversed(range(aval.ndim))))
    return f"dense<{f'[{order}]' if aval.ndim else ''}> : tensor<{aval.ndim}xindex>"


def _jvp(handle: JVPHandle, primals: Any, tangents: Any, **params: Any) -> Any:
    """Call it with the primals; what it computes from them has no derivative."""
    effect, avals = params["effect"], params["avals"]
    given = any(type(t) is not Zero for t in tangents)
    if given and any(dtypes.is_inexact(a.dtype) for a in avals):
        what = "pure_callback" if effect is None else "io_callback"
        raise ValueError(message(
            what, "the derivative of a Python function is not known.",
            got=str(params["host"]),
            hint="give the function that calls it a rule of its own: custom_jvp or custom_vjp",
        ))  # fmt: skip
    outs = callback_p.bind(*primals, **params)
    return outs, [Zero(handle.tangent_aval(out)) for out in outs]


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, host: HostFunction, effect: Effect | None,
           avals: tuple[ShapedArray, ...], vmap_method: str | None,
           device: Any = None) -> Any:  # fmt: skip
    mapped = tuple([d is not not_mapped for d in dims])
    if device is EACH:  # a piece may have some of the examples of one operand, all of another
        device = None
    if effect is ORDERED_IO:
        raise ValueError(message(
            "vmap", "ordered io_callbacks have no order among the examples of a batch.",
            got=str(host), hint="leave out ordered=True: each example's call happens, in turn",
        ))  # fmt: skip
    if vmap_method is None and effect is None:
        raise MissingRuleError(message(
            "vmap", "pure_callback does not know what its function does with a batch.",
            got=f"{host}, vmap_method=None", expected=f"vmap_method= one of {VMAP_METHODS}",
            hint="vmap_method='sequential' is right for every function",
        ))  # fmt: skip
    if vmap_method in ("expand_dims", "broadcast_all", "legacy_vectorized"):
        operands = [_as_batch(axis, x, d, vmap_method) for x, d in zip(operands, dims, strict=True)]
    else:
        operands = [axis.to_front(x, d) if m else x
                    for x, d, m in zip(operands, dims, mapped, strict=True)]  # fmt: skip
        host = ForEachExample(host, mapped, axis.size)
    outs = callback_p.bind(
        *operands, host=host, effect=effect, vmap_method=vmap_method, device=device,
        avals=tuple([axis.batched_aval(a) for a in avals]),
    )  # fmt: skip
    return outs, (0,) * len(outs)


def _as_batch(axis: BatchAxis, x: Any, dim: Any, vmap_method: str) -> Any:
    """Return an operand for a function that takes batches."""
    if dim is not not_mapped or vmap_method == "broadcast_all":
        return axis.to_front(x, dim)
    if vmap_method == "legacy_vectorized":
        return x
    shape = (1, *x.aval.shape)
    return get_primitive("reshape").bind(x, new_sizes=shape, dimensions=None)[0]


callback_p = Primitive(
    "callback",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("what Python computes is not known to be linear"),
    batch=_batch,
    effects=_effects,
    print=_printed,
)
