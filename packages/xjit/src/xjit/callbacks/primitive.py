"""The primitive `callback`: a Python function that a program calls, with all of its rules."""

from __future__ import annotations

import itertools
import queue
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xprim
from xjit.jaxlib_gateway import CALLBACK_TARGET, PIECES_TARGET, RuntimeFailure
from xjit.lowering.stablehlo_text import Builder, by_one_member, everywhere_text, once_text
from xprim import ORDER, Effect, Primitive, ShapedArray, Zero, config, dtypes, not_mapped, state
from xprim.contracts import BatchAxis, JVPHandle, is_gpu
from xprim.errors import MissingRuleError, message
from xprim.requirements import require
from xtree.interning import forkable_lock
from xtree.records import Record

__all__ = [
    "CompiledCallback", "effects_barrier", "run_and_wait", "DEBUG", "EACH", "DebugEffect",
    "HostFunction", "IO", "ORDERED_DEBUG", "ORDERED_IO", "OrderedDebugEffect", "VMAP_METHODS",
    "callback_p",
]  # fmt: skip

__dir__ = __all__.copy


# --------------------------------------------------------------------------------- callback runs
# Programs that call Python, while they run.
#
# What: `CompiledCallback`, which the runtime calls; `run_and_wait`, which starts a program with
# such functions; `effects_barrier`. Idea: a call of a program that calls Python is over when the
# program is. So what a program prints is there when its call returns, calls of one thread have
# their effects in order, and the exception of a function is raised where the program was called,
# as the object that it is. The runtime passes on nothing but a text, so the exception waits here
# under a number that stands in the text. A program waits for its functions, on a thread that
# other programs may need, so what a function of Python computes with compiled functions is
# computed by NumPy: it never waits for the runtime.

_MAX_KEPT = 64  # exceptions of replicas that failed together: one of them is raised
_numbers = itertools.count()
# Errors of callbacks on their way through the runtime, which carries numbers alone.
_raised: dict[int, BaseException] = {}
_lock = forkable_lock()
_MARK = "the exception of a Python function, number "
_NUMBER = re.compile(re.escape(_MARK) + r"(\d+)")


class CompiledCallback:
    """What the runtime calls: a host function, seen from inside a program.

    Args:
      host: the function.
      avals: the abstract values of the results, that of the order first if there is one.
      ordered: whether the first operand and result only keep the order.
    """

    __slots__ = ("avals", "host", "ordered")

    def __init__(self, host: Any, avals: tuple[ShapedArray, ...], ordered: bool) -> None:
        self.host = host
        self.avals = avals[1:] if ordered else avals
        self.ordered = ordered

    def __call__(self, *operands: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
        """Call the function, whatever thread this is; keep its exception for the one that waits."""
        previous, state.trace = state.trace, xprim.EAGER_ON_HOST
        outer, _thread.is_callback = _thread.is_callback, True
        me = threading.get_ident()
        _in_python.add(me)
        try:
            order, rest = (operands[:1], operands[1:]) if self.ordered else ((), operands)
            results = self.host(rest, self.avals)
        except BaseException as error:
            raise RuntimeError(f"{_MARK}{_keep(error)}") from None
        finally:
            state.trace = previous
            _thread.is_callback = outer
            if not outer:
                _in_python.discard(me)
        return (*order, *[np.asarray(x, order="C") for x in results])


_in_python: set[int] = set()
"""The threads that run a Python function of a program now."""


class _Thread(threading.local):
    is_callback = False


_thread = _Thread()


def _keep(error: BaseException) -> int:
    with _lock:
        number = next(_numbers)
        _raised[number] = error
        if len(_raised) > _MAX_KEPT:
            del _raised[next(iter(_raised))]
    return number


_running: set[threading.Event] = set()


def run_and_wait(
    start: Callable[..., Any], buffers: Sequence[Any], handlers: Sequence[Any]
) -> list[Any]:
    """Start a program that calls Python, wait until it is over, and return its results.

    Raises:
      RuntimeFailure: the program failed.
      BaseException: what a Python function of it raised.
    """
    over = threading.Event()
    _running.add(over)
    try:
        if not handlers:
            start(buffers, with_tokens=True).consume_token().block_until_ready()
            return []
        outs: list[Any] = start(buffers).consume_with_handlers(handlers)
        for out in outs:
            out.block_until_ready()
        return outs
    except RuntimeFailure as failure:
        found = _NUMBER.search(str(failure))
        error = _raised.pop(int(found.group(1)), None) if found else None
        if error is None:
            raise
    finally:
        _running.discard(over)
        over.set()
    raise error


callback_deadlock_seconds = config.define(
    config.Option[int](
        "callback_deadlock_seconds",
        30,
        "A program that waits for another one, whose Python function waits for a thread for so "
        "many seconds, raises; 0 has it wait for ever.",
        kind=int,
    )
)

_PAUSE = 0.001  # between two looks, in seconds
_WAITING = frozenset([threading.__file__, queue.__file__])


def wait_for_callbacks(is_over: Callable[[], bool]) -> None:
    """Wait until a program that calls Python is over.

    Its function may wait for a thread that waits here, which would never end: that cannot be
    known for certain, but a function that only waits for other threads, for long, is suspicious.

    Raises:
      RuntimeError: that is so for `callback_deadlock_seconds`.
    """
    limit = callback_deadlock_seconds.value
    since, seen = time.monotonic(), None
    while not is_over():
        now = time.monotonic()
        places = _where_functions_wait()
        if places is None or places != seen:
            since, seen = now, places
        elif limit and now - since > limit:
            raise RuntimeError(message(
                "callback", "a program waits for another one, whose Python function waits for a "
                "thread.", got=f"{len(places)} functions that have waited for over {limit} s",
                hint="start no program over several devices in a thread that a callback waits for; "
                "config.callback_deadlock_seconds says how long may be waited",
            ))  # fmt: skip
        time.sleep(_PAUSE)


def _where_functions_wait() -> list[tuple[int, int]] | None:
    """Return where each running function waits for other threads, None if one does anything."""
    frames = sys._current_frames()
    found = [frames[ident] for ident in list(_in_python) if ident in frames]
    if not found or any(frame.f_code.co_filename not in _WAITING for frame in found):
        return None
    return [(id(frame), frame.f_lasti) for frame in found]


def effects_barrier() -> None:
    """Wait until the effects of all programs that run are done, those of other threads included.

    A call of a program with callbacks or prints returns when the program is over, so a thread has
    nothing of its own to wait for.

    Raises:
      RuntimeError: it is called by a callback, which would wait for itself.

    Example:
      >>> effects_barrier()
    """
    if _thread.is_callback:
        raise RuntimeError(message(
            "effects_barrier", "a callback cannot wait for the program that calls it.",
            hint="call it where the compiled function is called",
        ))  # fmt: skip
    for over in list(_running):
        over.wait()


# ---------------------------------------------------------------------------- callback primitive
# The primitive `callback`: a Python function that a program calls, with all of its rules.
#
# Params: `host`, what is called with ndarrays; `avals`, the abstract values of the results;
# `effect`, an `Effect` or None where the function is pure; `vmap_method`, what a batch does with
# it; `device`, whose part of a program over several calls it, None for the first one, `EACH` for
# all of them, each with the pieces that it has (which is for functions without results).
# Evaluated, the function is called; compiled, the program calls it by its number among the
# program's functions. In a batch the function is called for each example in turn, by Python,
# unless it takes batches.

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

    host: HostFunction
    mapped: tuple[bool, ...]
    size: int

    def __call__(
        self, operands: Sequence[np.ndarray[Any, Any]], avals: Sequence[ShapedArray]
    ) -> Sequence[np.ndarray[Any, Any]]:
        """Return the results of all examples, each along the first dimension."""
        examples = [xprim.shaped_array(a.shape[1:], a.dtype) for a in avals]
        outs = [np.empty(a.shape, a.dtype) for a in avals]
        for i in range(self.size):
            own = [x[i, ...] if m else x for x, m in zip(operands, self.mapped, strict=True)]
            for out, result in zip(outs, self.host(own, examples), strict=True):
                out[i] = result
        return outs


def through_bytes(
    host: HostFunction, dtypes: Sequence[np.dtype[Any]], avals: Sequence[ShapedArray]
) -> HostFunction:
    """Return a function of numbers of less than a byte as one of numbers in wider types.

    On GPUs the runtime hands the third of three int4 numbers to the host as another number
    (jaxlib 0.11.2), so there each travels in a wider type.

    Args:
      host: the function.
      dtypes: the types of its operands.
      avals: its results.
    """

    def run(operands: Sequence[np.ndarray[Any, Any]], wide: Sequence[ShapedArray]) -> list[Any]:
        own = [x.astype(d, copy=False) for x, d in zip(operands, dtypes, strict=True)]
        return [np.asarray(x).astype(a.dtype, copy=False)
                for x, a in zip(host(own, avals), wide, strict=True)]  # fmt: skip

    return run


def _in_bytes(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of at least a byte that has all numbers of a type."""
    if dtypes.is_bool(dtype) or dtypes.itemsize_bits(dtype) >= 8:
        return dtype
    if not dtypes.is_integer(dtype):
        return dtypes.float32
    return dtypes.int8 if dtypes.is_signed_integer(dtype) else dtypes.uint8


def _shape(*operands: Any, avals: tuple[ShapedArray, ...], **_: Any) -> Any:
    return avals


def _numpy(*operands: Any, host: HostFunction, avals: tuple[ShapedArray, ...], **_: Any) -> Any:
    results = host([x.to_host() for x in operands], avals)
    return tuple(map(xprim.ConcreteArray, results, avals))


def _effects(*, effect: Effect | None, **_: Any) -> frozenset[Any]:
    return frozenset() if effect is None else frozenset([effect])


def _print(*, host: Any, effect: Effect | None, avals: Any, vmap_method: str | None,
             device: Any = None) -> Any:  # fmt: skip
    shown: dict[str, Any] = {"callback": host}
    if effect is not None:
        shown["effect"] = effect
    others = {"vmap_method": vmap_method, "device": device}
    return shown | {k: v for k, v in others.items() if v is not None}


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, host: HostFunction,
               effect: Effect | None, device: Any = None, **_: Any) -> Any:  # fmt: skip
    if not is_gpu(b.platform):
        return _write_call(b, operands, avals_in, avals_out, host, effect, device)
    wide_in, wide_out = [
        [a.update(dtype=_in_bytes(a.dtype)) for a in avals] for avals in (avals_in, avals_out)
    ]
    if wide_in != list(avals_in) or wide_out != list(avals_out):
        host = through_bytes(host, [a.dtype for a in avals_in], avals_out)
    operands = [b.convert(x, a, w.dtype)
                for x, a, w in zip(operands, avals_in, wide_in, strict=True)]  # fmt: skip
    results = _write_call(b, operands, wide_in, wide_out, host, effect, device)
    return [b.convert(x, w, a.dtype)
            for x, w, a in zip(results, wide_out, avals_out, strict=True)]  # fmt: skip


def _write_call(b: Builder, operands: Any, avals_in: Any, avals_out: Any, host: HostFunction,
                effect: Effect | None, device: Any) -> Any:  # fmt: skip
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
            what, f"{'Pure' if effect is None else 'IO'} callbacks do not support JVP: the "
            "derivative of a Python function is not known.",
            got=str(params["host"]),
            hint="give the function that calls it its own rule: custom_jvp or custom_vjp",
        ))  # fmt: skip
    outs = callback_p.bind(*primals, **params)
    return outs, [Zero(handle.tangent_aval(out)) for out in outs]


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, host: HostFunction, effect: Effect | None,
           avals: tuple[ShapedArray, ...], vmap_method: str | None,
           device: Any = None) -> Any:  # fmt: skip
    mapped = tuple([d is not not_mapped for d in dims])
    if device is EACH:  # a piece may have some of the examples of one operand, all of another
        device = None
    require(
        effect is not ORDERED_IO, "vmap",
        "Cannot `vmap` ordered IO callbacks: the examples of a batch have no order.", got=host,
        hint="leave out ordered=True: each example's call happens, in turn",
    )  # fmt: skip
    if vmap_method is None and effect is None:
        raise MissingRuleError(message(
            "vmap", "vmap is only supported for a pure_callback that says by vmap_method what its "
            "function does with a batch.",
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
    return xprim.get_primitive("reshape").bind(x, new_sizes=shape, dimensions=None)[0]


callback_p = Primitive(
    "callback",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=xprim.undefined("what Python computes is not known to be linear"),
    batch=_batch,
    effects=_effects,
    print=_print,
)
