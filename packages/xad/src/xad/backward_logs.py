"""Values that rules log out of the backward pass, for `pull_back.with_logs`.

    log({"norm": ...})        in a backward rule: an equation without results
    collect(fun, *args)       the result of a function, and what was logged while it ran

Without `collect` what is logged is ignored, and a compiled program leaves it out. `collect`
runs the function under a trace that hands every primitive to its parent, but notes the operands of
these equations. Programs inside have them as further results: a call is run equation by equation, a
scan stacks what its steps log, a compiled `cond` gives a `CondSum`, and what the devices of a
`shard_map` or `pmap` log is concatenated along the first dimension, a scalar as one of size 1.
Inside of `while_loop` nothing is collected: `collect` raises for rules that log there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import xtree
from xad.custom_rules import SymbolicZero
from xad.tangents import add_tangents, instantiate
from xnp import lax
from xnp.lax import convert_element_type
from xnp.refs import Ref
from xprim import (
    ClosedJaxpr,
    Effect,
    Primitive,
    ShapedArray,
    Trace,
    Zero,
    as_array,
    dtypes,
    eval_closed,
    eval_shape,
    trace_to_jaxpr,
    typeof,
    undefined,
)
from xprim.calls import all_to_front
from xprim.config import state
from xprim.contracts import BatchAxis
from xprim.errors import message
from xprim.high_types import HiType
from xprim.requirements import require_type
from xprim.trace import use_trace
from xprim.transformed import flat_arrays

__all__ = [
    "CondSum", "collect", "log", "GradAccum", "NullAccum", "RefAccum", "ValAccum", "accumulator",
]  # fmt: skip

__dir__ = __all__.copy


@xtree.register_dataclass
@dataclass(frozen=True)
class CondSum:
    """What the branches of a compiled `cond` logged under one name.

    While a function is evaluated, only the branch that runs is seen: it logs as other operations.

    Attributes:
      index: the number of the branch that ran.
      branches: for each branch what it logged: zeros for one that did not run, None for one that
        logs nothing under the key.
    """

    index: Any
    branches: list[Any]


def log(entries: dict[Hashable, Any] | None) -> None:
    """Log values from a backward rule.

    Args:
      entries: by name, trees of arrays; None logs nothing.

    Raises:
      TypeError: it is not a dictionary, or a leaf is not an array.

    Example:
      >>> from xad import custom_vjp, vjp
      >>> @custom_vjp
      ... def watched(x):
      ...     return x
      >>> def backward(_, ct):
      ...     log({"cotangent": ct})
      ...     return (ct,)
      >>> watched.defvjp(lambda x: (x, None), backward)
      >>> _, pull_back = vjp(lambda x: 3 * watched(x), 2.0)
      >>> (x_bar,), logs = pull_back.with_logs(1.0)
      >>> float(x_bar), float(logs["cotangent"])
      (3.0, 3.0)
    """
    if entries is None:
        return
    require_type(
        "backward_logs.log", entries, dict, "a backward rule logs a dictionary.",
        expected="a dictionary of trees of arrays, or None"
    )  # fmt: skip
    for key, value in entries.items():
        value = xtree.map(lambda x: instantiate(x) if type(x) is Zero else x, value)
        leaves, tree = flat_arrays(value, "backward_logs.log")
        log_p.bind(*leaves, key=key, tree=tree)


def collect(fun: Callable[..., Any], *args: Any) -> tuple[Any, dict[Hashable, Any]]:
    """Return the result of a function, and what was logged while it ran.

    Args:
      fun: a function, as a pull-back.
      *args: its arguments.

    Raises:
      ValueError: two rules, or two calls of one, logged under one name.
      NotImplementedError: a rule logs inside of `while_loop`.
    """
    trace = LogTrace(state.trace)
    try:
        with use_trace(trace):
            result = fun(*args)
    finally:
        trace.close()
    return result, trace.logs


# -------------------------------------------------------------------------------------- primitive

# XLA leaves out what only such an equation reads, so it may be computed more or less often.
_LOG = Effect("backward log", ordered=False, exact=False, repeatable=True)


def _jvp(primals: Any, _tangents: Any, **params: Any) -> Any:
    log_p.bind(*primals, **params)
    return (), ()


def _batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    log_p.bind(*all_to_front(axis, operands, dims)[0], **params)
    return (), ()


log_p: Primitive = Primitive(
    "backward_log",
    shape=lambda *_, **__: (),
    numpy=lambda *_, **__: (),
    stablehlo=lambda *_, **__: [],
    jvp=_jvp,
    transpose=undefined("it has no results"),
    batch=_batch,
    effects=lambda **_: frozenset([_LOG]),
)


# ------------------------------------------------------------------------------------------ trace


class LogTrace(Trace):
    """Hands every primitive to its parent, and notes what is logged.

    Attributes:
      logs: by name, what was logged.
    """

    __slots__ = ("logs",)

    name = "with_logs"

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.logs: dict[Hashable, Any] = {}

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Apply a primitive, or note what it logs."""
        assert self.parent is not None
        if primitive is log_p:
            self._note({params["key"]: xtree.unflatten(params["tree"], operands)})
            return ()
        if _LOG in primitive.effects(params):
            inline = primitive.rules.get("inline")
            if inline is not None:
                return tuple(inline(*operands, **params))
            run = _COLLECTED.get(primitive.name) or _run_of_call(primitive)
            if run is not None:
                results, logs = run(*operands, **params)
                self._note(logs)
                return tuple(results)
            raise NotImplementedError(message(
                "with_logs", f"what rules log inside of {primitive.name} is not collected.",
                got=f"{primitive.name}, with a rule that logs",
                hint="pull_back(cotangent) runs without logs; log outside, or return the value",
            ))  # fmt: skip
        return self.parent.process(primitive, operands, params)

    def _note(self, logs: dict[Hashable, Any]) -> None:
        twice = [key for key in logs if key in self.logs]
        if twice:
            raise ValueError(message(
                "with_logs", f"{twice[0]!r} is logged twice in a backward pass.",
                hint="let each call of a rule log under its own name",
            ))  # fmt: skip
        self.logs |= logs


def _checkpoint(*operands: Any, jaxpr: ClosedJaxpr, **_: Any) -> Any:
    return collect(eval_closed, jaxpr, *operands)


def _scan(*operands: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, length: int,
          reverse: bool, unroll: Any, num_stops: int = 0) -> Any:  # fmt: skip
    num_fixed = num_stops + num_consts
    stops, consts = operands[:num_stops], operands[num_stops:num_fixed]
    first, xs = operands[num_fixed : num_fixed + num_carry], operands[num_fixed + num_carry :]

    def step(carry: Any, x: Any) -> Any:
        results, logs = collect(eval_closed, jaxpr, *consts, *carry, *x)
        return tuple(results[:num_carry]), (results[num_carry:], logs)

    carry, (ys, logs) = lax.scan(
        step, first, xs, length, reverse, unroll, lengths=stops[0] if stops else None
    )
    return [*carry, *ys], logs


def _cond(index: Any, *operands: Any, branches: Sequence[ClosedJaxpr], batching: Any = None,
          **_: Any) -> Any:  # fmt: skip
    logged = [eval_shape(lambda *xs, b=b: collect(eval_closed, b, *xs), *operands)[1]
              for b in branches]  # fmt: skip
    keys = dict.fromkeys(key for logs in logged for key in logs)

    def with_zeros(number: int) -> Callable[..., Any]:
        def run(*xs: Any) -> Any:
            results, logs = collect(eval_closed, branches[number], *xs)
            slots = {key: [None if key not in other else logs[key] if k == number
                           else xtree.map(lambda a: lax.full(a.shape, 0, a.dtype), other[key])
                           for k, other in enumerate(logged)] for key in keys}  # fmt: skip
            return results, slots

        return run

    functions = [with_zeros(number) for number in range(len(branches))]
    results, slots = lax.switch(index, functions, *operands, batching=batching)
    return results, {key: CondSum(index, values) for key, values in slots.items()}


def _run_of_call(primitive: Primitive) -> Callable[..., Any] | None:
    """Return what runs a call on several devices and collects their logs; None for another."""
    programs = primitive.rules.get("programs")
    if programs is None or programs.derived is None or tuple(programs.takes) != ("jaxpr",):
        return None
    if programs.carry or programs.unbounded:
        return None
    return partial(_on_devices, primitive, programs)


def _on_devices(
    primitive: Primitive, programs: Any, *operands: Any, jaxpr: ClosedJaxpr, **params: Any
) -> Any:
    trees: list[Any] = []

    def with_logs(*xs: Any) -> list[Any]:
        results, logs = collect(eval_closed, jaxpr, *xs)
        leaves, tree = xtree.flatten(logs)
        trees[:] = [tree]
        leaves = [x if x.aval.ndim else lax.expand_dims(x, (0,)) for x in map(as_array, leaves)]
        return [*results, *leaves]

    with programs.scope(params):
        traced, consts = trace_to_jaxpr(with_logs, jaxpr.in_avals, name=jaxpr.jaxpr.name)
        closed = ClosedJaxpr(traced, consts)
    own = len(jaxpr.out_avals)
    logged = closed.out_avals[own:]
    changed = programs.derived(
        "logs", {"jaxpr": closed, **params},
        lambda ins, outs, new, _: ([*ins], [*outs, *[new] * len(logged)]),
    )  # fmt: skip
    found = primitive.bind(*operands, **{"jaxpr": closed, **params, **changed})
    leaves = [_concatenate(x, a) for x, a in zip(found[own:], logged, strict=True)]
    return found[:own], xtree.unflatten(trees[0], leaves)


def _concatenate(x: Any, on_one_device: ShapedArray) -> Any:
    """Return what devices log along the first dimension; some calls stack it in front of that."""
    if x.aval.ndim == on_one_device.ndim:
        return x
    return lax.reshape(x, (x.aval.shape[0] * x.aval.shape[1], *x.aval.shape[2:]))


# What runs programs that log, by name -> results and logs.
_COLLECTED: dict[str, Callable[..., Any]] = {
    "checkpoint": _checkpoint, "scan": _scan, "cond": _cond
}  # fmt: skip


# ------------------------------------------------------------------------------------- accumulators
# What backward rules add cotangents to, where they do not return them.
#
# `custom_vjp.defvjp_with_accums` hands the backward rule one for each leaf of the arguments: a
# `ValAccum`, or a `NullAccum` where no cotangent is needed.


class GradAccum(ABC):
    """The base of what a backward rule adds the cotangent of an array to.

    Attributes:
      aval: the abstract value of the cotangent.
    """

    def __init__(self, aval: ShapedArray | HiType) -> None:
        self.aval: Any = aval

    @abstractmethod
    def accum(self, ct: Any) -> None:
        """Add a cotangent; `Zero` and None add nothing.

        Args:
          ct: an array of the shape of `aval`.
        """

    @abstractmethod
    def freeze(self) -> Any:
        """Return what was added, a `Zero` where nothing was."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval.str_short()})"


def _check_cotangent(ct: Any, expected: ShapedArray, name: str) -> None:
    aval = typeof(ct)
    if aval.shape != expected.shape:
        raise ValueError(message(
            f"{name}.accum", "the cotangent has another shape than its primal.",
            got=aval.str_long(), expected=expected.str_long(),
        ))  # fmt: skip
    if dtypes.is_complex(aval.dtype) and not dtypes.is_complex(expected.dtype):
        raise TypeError(message(
            f"{name}.accum", "the cotangent of a real primal is complex.",
            got=aval.str_long(), expected=expected.str_long(), hint="ct.real is its real part",
        ))  # fmt: skip


class ValAccum(GradAccum):
    """Holds the sum of what was added.

    Example:
      >>> from xprim import ShapedArray
      >>> total = ValAccum(ShapedArray((), "float32"))
      >>> total.accum(1.0)
      >>> total.accum(2.0)
      >>> float(total.freeze())
      3.0
    """

    def __init__(self, aval: ShapedArray | HiType) -> None:
        super().__init__(aval)
        self._value: Any = Zero(self.aval)

    def accum(self, ct: Any) -> None:
        """Add a cotangent; `Zero` and None add nothing.

        Args:
          ct: an array of the shape of `aval`.

        Raises:
          ValueError: the shape is another one.
          TypeError: the cotangent is complex, and the primal is not.
        """
        if ct is None or isinstance(ct, Zero | SymbolicZero):
            return
        if isinstance(self.aval, HiType):
            is_first = isinstance(self._value, Zero)
            self._value = ct if is_first else self.aval.vspace_add(self._value, ct)
            return
        _check_cotangent(ct, self.aval, "ValAccum")
        self._value = add_tangents(self._value, convert_element_type(ct, self.aval.dtype))

    def freeze(self) -> Any:
        """Return the sum, a `Zero` where nothing was added."""
        return self._value


class RefAccum(GradAccum):
    """Adds to a reference. Rules get a `ValAccum`, whose sum `with_refs` adds to its reference.

    Args:
      aval: the abstract value of the cotangent.
      ref: the reference.

    Example:
      >>> from xnp.refs import new_ref
      >>> from xprim import ShapedArray
      >>> total = RefAccum(ShapedArray((), "float32"), new_ref(1.0))
      >>> total.accum(2.0)
      >>> float(total.freeze())
      3.0
    """

    def __init__(self, aval: ShapedArray, ref: Ref) -> None:
        super().__init__(aval)
        self.ref = ref

    def accum(self, ct: Any) -> None:
        """Add a cotangent to the reference; `Zero` and None add nothing.

        Args:
          ct: an array of the shape of `aval`.

        Raises:
          ValueError: the shape is another one.
          TypeError: the cotangent is complex, and the primal is not.
        """
        if ct is not None and not isinstance(ct, Zero | SymbolicZero):
            _check_cotangent(ct, self.aval, "RefAccum")
            self.ref[...] += ct

    def freeze(self) -> Any:
        """Return the value of the reference."""
        value: Any = self.ref[...]
        return value


class NullAccum(GradAccum):
    """Ignores what is added: its cotangent is not needed."""

    def accum(self, ct: Any) -> None:
        """Ignore a cotangent.

        Args:
          ct: anything.
        """

    def freeze(self) -> Zero:
        """Return a `Zero`."""
        return Zero(self.aval)


def accumulator(aval: ShapedArray | HiType, is_needed: bool) -> GradAccum:
    """Return what collects the cotangent of an array.

    Args:
      aval: the type of the array, or value of a `HiType`.
      is_needed: whether a cotangent is used.

    Example:
      >>> from xprim import ShapedArray
      >>> accumulator(ShapedArray((2,), "float32"), is_needed=False)
      NullAccum(f32[2])
    """
    of_cotangents = aval.to_ct_aval()
    if isinstance(of_cotangents, ShapedArray):
        of_cotangents = of_cotangents.strong()
    return (ValAccum if is_needed else NullAccum)(of_cotangents)
