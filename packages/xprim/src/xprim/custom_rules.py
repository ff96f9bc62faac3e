"""Functions with derivative rules of their own, as two primitives every transformation knows.

`custom_jvp_call` and `custom_vjp_call` hold a function of flat lists of arrays and its rule. While
evaluating, the function simply runs, so Python control flow on values works in it; when staged, it
becomes a jaxpr (the param `call` then holds a `ClosedJaxpr`), and the rule stays the Python function
that it is, to be run if somebody differentiates the jaxpr.

    custom_jvp_call   call(*primals) -> outs,  jvp(primals, tangents) -> (outs, tangents_out)
    custom_vjp_call   call(*primals) -> outs,  fwd(*primals) -> (*outs, *residuals),
                      bwd(residuals, cotangents) -> cotangents of the primals (either may be
                      `Zero`), count_outs() -> how many results `fwd` gave before the residuals

Under reverse mode, `custom_vjp_call` runs `fwd` and leaves one equation on the tape,
`custom_vjp_linear`, whose transpose is `bwd`. Users meet these as `xad.custom_jvp`, `xad.custom_vjp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xprim.jaxpr import ClosedJaxpr, eval_closed
from xprim.primitive import Primitive
from xprim.rules import Zero, undefined
from xprim.staging import JaxprTrace, close_over, trace_to_jaxpr

FlatFunction = Callable[..., Sequence[Any]]


def run(call: FlatFunction | ClosedJaxpr, *args: Any) -> tuple[Any, ...]:
    """Run what a `call` param holds, a function or a closed jaxpr."""
    if isinstance(call, ClosedJaxpr):
        return tuple(eval_closed(call, *args))
    return tuple(call(*args))


def _shape(*avals: Any, call: ClosedJaxpr, **_rules: Any) -> Any:
    return call.out_avals


def _numpy(*operands: Any, call: Any, **_rules: Any) -> Any:
    return run(call, *operands)


def _stablehlo(builder: Any, operands: Any, avals_in: Any, avals_out: Any, *, call: ClosedJaxpr,
               **_rules: Any) -> Any:  # fmt: skip
    return builder.inline(call, operands)


def _effects(*, call: Any, **_rules: Any) -> Any:
    return call.effects if isinstance(call, ClosedJaxpr) else frozenset()


def _staged_call(call: Any, operands: Any, name: str) -> tuple[ClosedJaxpr, list[Any]]:
    """Stage a call; the tracers that it captures become leading operands."""
    if isinstance(call, ClosedJaxpr):
        return call, []
    jaxpr, consts = trace_to_jaxpr(call, [x.aval for x in operands], name=name)
    return close_over(jaxpr, consts)


# --- custom_jvp_call ---------------------------------------------------------------------------


def _stage_jvp(trace: JaxprTrace, operands: Any, params: dict[str, Any]) -> Any:
    closed, captured = _staged_call(params["call"], operands, "custom_jvp")
    jvp, count = params["jvp"], len(captured)

    def jvp_without_captured(primals: Any, tangents: Any) -> Any:
        return jvp(primals[count:], tangents[count:])

    rule = jvp_without_captured if count else jvp
    return trace.append(custom_jvp_call_p, (*captured, *operands), params | {"call": closed, "jvp": rule})


def _jvp_of_jvp(handle: Any, primals: Any, tangents: Any, *, call: Any, jvp: Any) -> Any:
    return jvp(primals, tangents)


def _batch_jvp(axis: Any, operands: Any, dims: Any, *, call: Any, jvp: Any) -> Any:
    def batched_rule(primals: Any, tangents: Any) -> Any:
        def flat(*both: Any) -> Any:
            outs, out_dots = jvp(both[: len(primals)], both[len(primals) :])
            tangent_arrays = [axis.instantiate(t) for t in out_dots]
            return (*outs, *tangent_arrays)

        arrays = [axis.instantiate_like(t, p) for t, p in zip(tangents, primals, strict=True)]
        both = axis.batched(flat, (*dims, *dims))(*primals, *arrays)
        return both[: len(both) // 2], both[len(both) // 2 :]

    batched_call = axis.batched(lambda *args: run(call, *args), dims)
    outs = custom_jvp_call_p.bind(*operands, call=batched_call, jvp=batched_rule)
    return outs, (0,) * len(outs)


custom_jvp_call_p = Primitive(
    "custom_jvp_call",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp_of_jvp,
    transpose=undefined("it is never linear: differentiating it runs its jvp rule"),
    batch=_batch_jvp,
    stage=_stage_jvp,
    effects=_effects,
)


# --- custom_vjp_call ---------------------------------------------------------------------------


def _stage_vjp(trace: JaxprTrace, operands: Any, params: dict[str, Any]) -> Any:
    closed, captured = _staged_call(params["call"], operands, "custom_vjp")
    fwd, bwd, count = params["fwd"], params["bwd"], len(captured)
    if count:
        zeros = [Zero(c.aval) for c in captured]
        params = params | {
            "fwd": lambda *args: fwd(*args[count:]),
            "bwd": lambda residuals, cts: (*zeros, *bwd(residuals, cts)),
        }
    return trace.append(custom_vjp_call_p, (*captured, *operands), params | {"call": closed})


def _linearize_vjp(handle: Any, primals: Any, tangents: Any, *, call: Any, fwd: Any, bwd: Any,
                   count_outs: Callable[[], int]) -> Any:  # fmt: skip
    results = fwd(*primals)
    num_outs = count_outs()
    outs, residuals = results[:num_outs], results[num_outs:]
    arrays = [handle.instantiate(t) for t in tangents]
    outs_dot = custom_vjp_linear_p.bind(
        *residuals,
        *arrays,
        bwd=bwd,
        num_residuals=len(residuals),
        out_avals=tuple([handle.tangent_aval(x) for x in outs]),
    )
    return tuple(outs), outs_dot


def _batch_vjp(axis: Any, operands: Any, dims: Any, *, call: Any, fwd: Any, bwd: Any,
               count_outs: Callable[[], int]) -> Any:  # fmt: skip
    outs = custom_vjp_call_p.bind(
        *operands,
        call=axis.batched(lambda *args: run(call, *args), dims),
        fwd=axis.batched(fwd, dims),
        bwd=_batched_bwd(axis, bwd, dims),
        count_outs=count_outs,
    )
    return outs, (0,) * len(outs)


def _batched_bwd(axis: Any, bwd: Any, dims: Any) -> Any:
    """Return `bwd` on residuals and cotangents that all have their batch axis in front."""

    def batched(residuals: Any, cotangents: Any) -> Any:
        def flat(*both: Any) -> Any:
            cts = bwd(both[: len(residuals)], both[len(residuals) :])
            return [axis.instantiate(ct) for ct in cts]

        fronts = (0,) * (len(residuals) + len(cotangents))
        arrays = [axis.instantiate(ct) for ct in cotangents]
        cts = axis.batched(flat, fronts)(*residuals, *arrays)
        return [axis.cotangent_for(ct, dim) for ct, dim in zip(cts, dims, strict=True)]

    return batched


custom_vjp_call_p = Primitive(
    "custom_vjp_call",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=undefined(
        "a function with a custom_vjp rule has no forward-mode derivative; give it a "
        "custom_jvp rule, which serves both modes"
    ),
    linearize=_linearize_vjp,
    transpose=undefined("it is never linear: differentiating it runs its fwd and bwd rules"),
    batch=_batch_vjp,
    stage=_stage_vjp,
    effects=_effects,
)


# --- custom_vjp_linear -------------------------------------------------------------------------

_FORWARD = "it is known by its transpose alone: a custom_vjp function has no forward-mode derivative"


def _linear_shape(*avals: Any, out_avals: Any, **_rest: Any) -> Any:
    return out_avals


def _linear_transpose(handle: Any, cotangents: Any, *operands: Any, bwd: Any, num_residuals: int,
                      out_avals: Any) -> Any:  # fmt: skip
    residuals = operands[:num_residuals]
    cts = bwd(residuals, cotangents)
    return (*[Zero(r.aval) for r in residuals], *cts)


def _linear_batch(axis: Any, operands: Any, dims: Any, *, bwd: Any, num_residuals: int,
                  out_avals: Any) -> Any:  # fmt: skip
    fronts = [axis.to_front(x, d) for x, d in zip(operands, dims, strict=True)]
    tangent_dims = (0,) * (len(operands) - num_residuals)
    outs = custom_vjp_linear_p.bind(
        *fronts,
        bwd=_batched_bwd(axis, bwd, tangent_dims),
        num_residuals=num_residuals,
        out_avals=tuple([axis.batched_aval(a) for a in out_avals]),
    )
    return outs, (0,) * len(outs)


custom_vjp_linear_p = Primitive(
    "custom_vjp_linear",
    call_like=True,
    shape=_linear_shape,
    numpy=undefined(_FORWARD),
    stablehlo=undefined(_FORWARD),
    jvp=undefined(_FORWARD),
    transpose=_linear_transpose,
    batch=_linear_batch,
)


