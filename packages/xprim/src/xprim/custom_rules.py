"""Functions with derivative rules of their own, as two primitives every transformation knows.

`custom_jvp_call` and `custom_vjp_call` hold a function of flat lists of arrays and its rule. While
evaluating, the function simply runs, so Python control flow on values works in it; when staged, it
becomes a jaxpr (the param `call` then holds a `ClosedJaxpr`), and the rule stays the function
that it is, to be run if somebody differentiates the jaxpr.

    custom_jvp_call   call(*primals) -> outs,  jvp(primals, tangents) -> (outs, tangents_out)
    custom_vjp_call   call(*primals) -> outs,
                      fwd(perturbed)(*primals) -> (*outs, *residuals), where `perturbed` says which
                      primals have a tangent,
                      bwd(residuals, cotangents) -> cotangents of the primals (either may be
                      `Zero`), or a `BackwardRule`, whose function depends on `perturbed` as well,
                      count_outs() -> how many results `fwd` gave before the residuals;
                      perhaps remat(policy)(*primals) -> outs, which a checkpoint that is
                      differentiated runs in place of the call

Under reverse mode, `custom_vjp_call` runs `fwd` and leaves one equation on the tape,
`custom_vjp_linear`, whose transpose is `bwd`. Forward mode is derived: where `bwd` is linear in the
cotangents, x_bar = J^T y_bar, its own transpose is y_dot = J x_dot (`_push`). While functions are
evaluated, that is run at once, so that the operations of `bwd` are differentiated in turn. In a
program that is staged `custom_vjp_linear` stands for it, since the program may be transposed yet;
what evaluates, lowers or differentiates the program transposes `bwd` then.

A call that is met on a tape is linear as it stands: it is transposed as the program that it is, and
its rule is not asked. Users meet these as `xad.custom_jvp` and `xad.custom_vjp`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xprim import contracts, dtypes
from xprim.avals import shaped_array
from xprim.calls import nonzero, rules_of_program, run_call, where_true, with_zeros
from xprim.config import state
from xprim.contracts import BatchAxis, Builder, ChecksHandle, JVPHandle, LinearizeHandle
from xprim.errors import MissingRuleError, UndefinedRuleError, message
from xprim.jaxpr import ClosedJaxpr, eval_closed
from xprim.primitive import Primitive
from xprim.rules import Zero, not_mapped
from xprim.staging import JaxprTrace, close_over, trace_to_closed, trace_to_jaxpr
from xprim.transformed import find

__all__ = ()

FlatFunction = Callable[..., Sequence[Any]]


def _print(*, call: Any, **rules: Any) -> dict[str, Any]:
    return {"call_jaxpr": call} | {name: rules[name] for name in ("jvp", "fwd", "bwd")
                                   if name in rules}  # fmt: skip


def _stage_call(call: Any, operands: Any, name: str) -> tuple[ClosedJaxpr, list[Any]]:
    """Stage a call; the tracers that it captures become leading operands."""
    if isinstance(call, ClosedJaxpr):
        return call, []
    jaxpr, consts = trace_to_jaxpr(call, [x.aval for x in operands], name=name)
    return close_over(jaxpr, consts)


# --- batches -----------------------------------------------------------------------------------


class _BatchedCall:
    """A call for a whole batch: its function, and where the batch dimension of its results is.

    Either all results have one, in front, or none: those of a function that nothing of the batch
    enters, neither by its operands nor by what it closes over. Whatever runs first decides, the
    function or a rule of it; when the call is staged, the rules run later, and must agree.
    """

    __slots__ = ("_call", "_dims", "axis", "mapped")

    def __init__(self, axis: BatchAxis, call: Any, dims: Sequence[Any]) -> None:
        self.axis = axis
        self.mapped: bool | None = True if _any_mapped(dims) else None
        self._call = call
        self._dims = dims

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """Run the function on whole batches."""
        call = self._call
        return self.place(*self.axis.run(lambda *xs: run_call(call, *xs), operands, self._dims))

    def place(
        self, values: Sequence[Any], dims: Sequence[Any], more_dims: Sequence[Any] = ()
    ) -> tuple[Any, ...]:
        """Return results as they leave the call; `more_dims` are those of residuals."""
        if self.mapped is None:
            self.mapped = _any_mapped(dims) or _any_mapped(more_dims)
        if self.mapped:
            return tuple([self._front(x, d) for x, d in zip(values, dims, strict=True)])
        if _any_mapped(dims):
            raise _depends_on_the_batch()
        return tuple(values)

    def dims(self, outs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the batch dimensions of results, once something has run."""
        return (0 if self.mapped else not_mapped,) * len(outs)

    def transpose(self, bwd: Any, residual_dims: Sequence[Any]) -> Any:
        """Return `bwd` on the cotangents of results that have left the call."""
        axis, operand_dims = self.axis, self._dims

        def batch_bwd(residuals: Any, cotangents: Any) -> list[Any]:
            def flat(*both: Any) -> Any:
                return bwd(both[: len(residuals)], both[len(residuals) :])

            dims = (*residual_dims, *self.dims(cotangents))
            cts, ct_dims = axis.run(flat, (*residuals, *cotangents), dims)
            placed = self.place(cts, ct_dims)
            if not self.mapped:
                return list(placed)
            return [axis.cotangent_for(ct, d) for ct, d in zip(placed, operand_dims, strict=True)]

        return _display_as(bwd, batch_bwd)

    def _front(self, x: Any, dim: Any) -> Any:
        if type(x) is Zero:
            return Zero(self.axis.batched_aval(x.aval))
        return self.axis.to_front(x, dim)


def _display_as(rule: Any, derived: Any) -> Any:
    """Return a derived rule under the name of the user's, which errors show.

    A backward rule may say what its residuals are: the attribute `residual_tree`, a structure of
    as many leaves. Rules that are derived of it have the same residuals.
    """
    derived.__name__ = _name_of(rule)
    if (tree := getattr(rule, "residual_tree", None)) is not None:
        derived.residual_tree = tree
    return derived


def _name_of(rule: Any) -> str:
    return getattr(rule, "__name__", "bwd")


def _any_mapped(dims: Sequence[Any]) -> bool:
    return any(d is not not_mapped for d in dims)


def _depends_on_the_batch() -> ValueError:
    return ValueError(message(
        "vmap", "a custom derivative rule depends on a value of the batch that does not enter its "
        "function.",
        expected="rules that close over nothing of the batch where the operands are the same for "
        "all examples",
        hint="make the value an argument of the function, outside of nondiff_argnums",
    ))  # fmt: skip


# --- custom_jvp_call ---------------------------------------------------------------------------


def _stage_jvp(trace: JaxprTrace, operands: Any, params: dict[str, Any]) -> Any:
    closed, captured = _stage_call(params["call"], operands, "custom_jvp")
    jvp, count = params["jvp"], len(captured)

    def jvp_without_captured(primals: Any, tangents: Any) -> Any:
        return jvp(primals[count:], tangents[count:])

    rule = jvp_without_captured if count else jvp
    params = {"call": closed, "jvp": rule}
    return trace.append(custom_jvp_call_p, (*captured, *operands), params)


def _jvp_of_jvp(handle: JVPHandle, primals: Any, tangents: Any, *, call: Any, jvp: Any) -> Any:
    return jvp(primals, tangents)


def _linearize_jvp(
    handle: LinearizeHandle, primals: Any, tangents: Any, *, call: Any, jvp: Any
) -> Any:
    return handle.run_rule(jvp, primals, tangents)


def _batch_jvp(axis: BatchAxis, operands: Any, dims: Any, *, call: Any, jvp: Any) -> Any:
    batch = _BatchedCall(axis, call, dims)

    def batch_rule(primals: Any, tangents: Any) -> Any:
        def flat(*both: Any) -> Any:
            outs, out_dots = jvp(both[: len(primals)], both[len(primals) :])
            return (*outs, *out_dots)

        both = batch.place(*axis.run(flat, (*primals, *tangents), (*dims, *dims)))
        return both[: len(both) // 2], both[len(both) // 2 :]

    outs = custom_jvp_call_p.bind(*operands, call=batch, jvp=batch_rule)
    return outs, batch.dims(outs)


def _check_jvp(
    handle: ChecksHandle, before: Any, operands: Any, *, call: ClosedJaxpr, jvp: Any
) -> Any:
    """Give the function the state, which has no tangents, and leave its rule as it is."""
    program, count = handle.program(call), len(before)

    def rule(primals: Any, tangents: Any) -> Any:
        after = eval_closed(program, *primals)[:count]
        outs, dots = jvp(primals[count:], tangents[count:])
        return (*after, *outs), (*_no_tangents(handle), *dots)

    results = custom_jvp_call_p.bind(*before, *operands, call=program, jvp=rule)
    return results[:count], results[count:]


def _no_tangents(handle: ChecksHandle) -> list[Zero]:
    return [Zero(shaped_array(a.shape, dtypes.float0)) for a in handle.avals]


custom_jvp_call_p = Primitive(
    "custom_jvp_call",
    call_like=True,
    **rules_of_program("call", runs="in_parts", stage=_stage_jvp, checked=_check_jvp),
    jvp=_jvp_of_jvp,
    linearize=_linearize_jvp,
    batch=_batch_jvp,
    print=_print,
)


# --- custom_vjp_call ---------------------------------------------------------------------------


class BackwardRule:
    """A `bwd` that depends on which primals had a tangent when `fwd` ran, as its residuals do.

    Args:
      rule: takes what was perturbed, returns `bwd(residuals, cotangents)`.
      name: shown in jaxprs and errors.
    """

    __slots__ = ("__name__", "_rule")

    def __init__(self, rule: Callable[[Sequence[bool]], Any], name: str) -> None:
        self._rule, self.__name__ = rule, name

    def __repr__(self) -> str:
        return self.__name__

    def after(self, perturbed: Sequence[bool]) -> Any:
        """Return `bwd` for the residuals of a run of `fwd(perturbed)`."""
        return _display_as(self, self._rule(perturbed))


def _bwd_after(bwd: Any, perturbed: Sequence[bool]) -> Any:
    return bwd.after(perturbed) if isinstance(bwd, BackwardRule) else bwd


def _stage_vjp(trace: JaxprTrace, operands: Any, params: dict[str, Any]) -> Any:
    closed, captured = _stage_call(params["call"], operands, "custom_vjp")
    fwd, bwd, count = params["fwd"], params["bwd"], len(captured)
    if count:
        zeros = [Zero(c.aval) for c in captured]
        if (remat := params.get("remat")) is not None:
            params = params | {"remat": lambda policy: _without_leading(remat(policy), count)}
        params = params | {
            "fwd": lambda perturbed: _without_leading(fwd(perturbed[count:]), count),
            "bwd": BackwardRule(
                lambda perturbed: _with_leading(_bwd_after(bwd, perturbed[count:]), zeros),
                _name_of(bwd),
            ),
        }
    return trace.append(custom_vjp_call_p, (*captured, *operands), params | {"call": closed})


def _without_leading(fun: FlatFunction, count: int) -> FlatFunction:
    return lambda *args: fun(*args[count:])


def _with_leading(bwd: Any, zeros: Sequence[Zero]) -> Any:
    return _display_as(bwd, lambda residuals, cts: (*zeros, *bwd(residuals, cts)))


def _linearize_vjp(handle: LinearizeHandle, primals: Any, tangents: Any, *, fwd: Any, bwd: Any,
                   count_outs: Callable[[], int], **_rest: Any) -> Any:  # fmt: skip
    return _derivative_of_vjp(handle, primals, tangents, fwd, bwd, count_outs, _record)


def _jvp_of_vjp(handle: JVPHandle, primals: Any, tangents: Any, *, fwd: Any, bwd: Any,
                count_outs: Callable[[], int], **_rest: Any) -> Any:  # fmt: skip
    push = _record if isinstance(state.trace, JaxprTrace) else _push
    return _derivative_of_vjp(handle, primals, tangents, fwd, bwd, count_outs, push)


def _record(*operands: Any, **params: Any) -> Sequence[Any]:
    return custom_vjp_linear_p.bind(*operands, **params)


def _derivative_of_vjp(
    handle: JVPHandle, primals: Any, tangents: Any, fwd: Any, bwd: Any,
    count_outs: Callable[[], int], push: Callable[..., Sequence[Any]],
) -> Any:  # fmt: skip
    """Run `fwd`, and give the tangents to `push`, with the residuals and the rule for cotangents.

    Args:
      handle: of the transformation.
      primals: of the call.
      tangents: of the call.
      fwd: param of the call.
      bwd: param of the call.
      count_outs: param of the call.
      push: takes operands and params as `custom_vjp_linear` does.
    """
    perturbed = tuple([type(t) is not Zero for t in tangents])
    results = fwd(perturbed)(*primals)
    num_outs = count_outs()
    outs, residuals = tuple(results[:num_outs]), results[num_outs:]
    dot_avals = [handle.tangent_aval(x) for x in outs]
    active = [dtypes.is_inexact(a.dtype) for a in dot_avals]
    dots = iter(push(
        *residuals,
        *[t for t in tangents if type(t) is not Zero],
        bwd=_active_bwd(_bwd_after(bwd, perturbed), perturbed, active, dot_avals),
        num_residuals=len(residuals),
        out_avals=tuple([a for a, live in zip(dot_avals, active, strict=True) if live]),
    ))  # fmt: skip
    return outs, [next(dots) if live else Zero(a)
                  for a, live in zip(dot_avals, active, strict=True)]  # fmt: skip


def _active_bwd(bwd: Any, perturbed: Sequence[bool], active: Sequence[bool],
                dot_avals: Sequence[Any]) -> Any:  # fmt: skip
    """Return `bwd` from cotangents of differentiable results to those of perturbed primals."""

    def active_bwd(residuals: Any, cotangents: Any) -> Any:
        given = iter(cotangents)
        full = [next(given) if live else Zero(a)
                for a, live in zip(dot_avals, active, strict=True)]  # fmt: skip
        cts = bwd(residuals, full)
        return [ct for ct, p in zip(cts, perturbed, strict=True) if p]

    return _display_as(bwd, active_bwd)


def _batch_vjp(axis: BatchAxis, operands: Any, dims: Any, *, call: Any, fwd: Any, bwd: Any,
               count_outs: Callable[[], int], **remat: Any) -> Any:  # fmt: skip
    batch = _BatchedCall(axis, call, dims)
    residual_dims: dict[tuple[bool, ...], Sequence[Any]] = {}  # by what was perturbed in a run

    def batch_fwd(perturbed: Sequence[bool]) -> FlatFunction:
        def run_fwd(*primals: Any) -> list[Any]:
            results, out_dims = axis.run(fwd(perturbed), primals, dims)
            count = count_outs()
            residual_dims[tuple(perturbed)] = more_dims = out_dims[count:]
            outs = batch.place(results[:count], out_dims[:count], more_dims)
            return [*outs, *results[count:]]

        return run_fwd

    def batch_bwd(perturbed: Sequence[bool]) -> Any:
        return batch.transpose(_bwd_after(bwd, perturbed), residual_dims[tuple(perturbed)])

    def batch_remat(rule: Any, policy: Any) -> FlatFunction:
        return lambda *primals: batch.place(*axis.run(rule(policy), primals, dims))

    rules = {name: functools.partial(batch_remat, rule) for name, rule in remat.items()}
    outs = custom_vjp_call_p.bind(
        *operands, call=batch, fwd=batch_fwd, bwd=BackwardRule(batch_bwd, _name_of(bwd)),
        count_outs=count_outs, **rules,
    )  # fmt: skip
    return outs, batch.dims(outs)


def _check_vjp(
    handle: ChecksHandle, before: Any, operands: Any, *, call: ClosedJaxpr, fwd: Any, bwd: Any,
    count_outs: Any, **remat: Any,
) -> Any:  # fmt: skip
    """Give the function the state, which has no cotangents, and leave its rule as it is."""
    program, count = handle.program(call), len(before)

    def with_state(own: FlatFunction) -> FlatFunction:
        return lambda *xs: [*eval_closed(program, *xs)[:count], *own(*xs[count:])]

    def forward(perturbed: Sequence[bool]) -> Any:
        return with_state(fwd(perturbed[count:]))

    def rematerialize(rule: Any, policy: Any) -> Any:
        return with_state(rule(policy))

    def backward(perturbed: Sequence[bool]) -> Any:
        own = _bwd_after(bwd, perturbed[count:])
        return _display_as(
            own, lambda residuals, cts: [*_no_tangents(handle), *own(residuals, cts[count:])]
        )

    results = custom_vjp_call_p.bind(
        *before, *operands, call=program, fwd=forward, bwd=BackwardRule(backward, _name_of(bwd)),
        count_outs=lambda: count_outs() + count,
        **{name: functools.partial(rematerialize, rule) for name, rule in remat.items()},
    )  # fmt: skip
    return results[:count], results[count:]


custom_vjp_call_p = Primitive(
    "custom_vjp_call",
    call_like=True,
    **rules_of_program("call", runs="in_parts", stage=_stage_vjp, checked=_check_vjp),
    jvp=_jvp_of_vjp,
    linearize=_linearize_vjp,
    batch=_batch_vjp,
    print=_print,
)


# --- custom_vjp_linear -------------------------------------------------------------------------


def _push(*operands: Any, bwd: Any, num_residuals: int, out_avals: Any) -> Sequence[Any]:
    """Return the tangents of results, from residuals and tangents of primals, by transposing `bwd`.

    Raises:
      UndefinedRuleError: `bwd` is not linear in the cotangents, or a step of it has no transpose;
        or xad is older than this package.
    """
    residuals, dots = operands[:num_residuals], operands[num_residuals:]
    transpose = find("transpose_on_tape")
    if transpose is None:
        raise UndefinedRuleError(message(
            "custom_vjp", "beside this version of xad it has no forward mode.",
            hint="a custom_jvp rule serves both modes, and so does custom_vjp by xstack-xad 0.2.1",
        ))  # fmt: skip
    try:
        pull = transpose(lambda *cts: bwd(residuals, cts), out_avals)
        pushed: Sequence[Any] = pull(dots)
    except MissingRuleError as error:
        raise _has_no_transpose(bwd, error) from error
    return pushed


def _has_no_transpose(bwd: Any, error: MissingRuleError) -> UndefinedRuleError:
    return UndefinedRuleError(message(
        "custom_vjp", f"forward mode needs the transpose of the bwd rule {bwd.__name__}, which has "
        "none: it is not linear in the cotangent.",
        got=str(error).splitlines()[0].removeprefix("linear_transpose: "),
        hint="a custom_jvp rule serves both modes",
    ))  # fmt: skip


def _linear_shape(*avals: Any, out_avals: Any, **_rest: Any) -> Any:
    return out_avals


def _linear_transpose(handle: contracts.TransposeHandle, cotangents: Any, *operands: Any, bwd: Any,
                      num_residuals: int, out_avals: Any) -> Any:  # fmt: skip
    residuals = operands[:num_residuals]
    cts = bwd(residuals, cotangents)
    return (*[Zero(r.aval) for r in residuals], *cts)


def _linear_stablehlo(b: Builder, operands: Any, avals_in: Any, _outs: Any, **params: Any) -> Any:
    program = trace_to_closed(lambda *xs: _push(*xs, **params), avals_in)
    return b.inline(program, operands)


def _linear_jvp(handle: JVPHandle, primals: Any, tangents: Any, **params: Any) -> Any:
    """Push tangents of tangents as they are; differentiate the transposed rule by residuals."""
    count = params["num_residuals"]
    outs: Sequence[Any]
    if not any(nonzero(tangents[:count])):
        outs = custom_vjp_linear_p.bind(*primals, **params)
        dots = [handle.instantiate(t) for t in tangents[count:]]
        return outs, custom_vjp_linear_p.bind(*primals[:count], *dots, **params)
    program, mask = _push_program(primals, params), nonzero(tangents)
    forward, mask_out = handle.jvp_jaxpr(program, mask)
    results = eval_closed(forward, *primals, *where_true(tangents, mask))
    outs = results[: len(mask_out)]
    return outs, with_zeros(handle, outs, results[len(mask_out) :], mask_out)


def _linear_linearize(handle: LinearizeHandle, primals: Any, tangents: Any, **params: Any) -> Any:
    if not any(nonzero(tangents[: params["num_residuals"]])):
        return _linear_jvp(handle, primals, tangents, **params)
    program, mask = _push_program(primals, params), nonzero(tangents)
    split = handle.linearize_jaxpr(program, mask)
    results = eval_closed(split.primal, *primals)
    outs = results[: split.num_results]
    residuals = split.residuals(primals, results)
    dots = eval_closed(split.linear, *residuals, *where_true(tangents, mask))
    return outs, with_zeros(handle, outs, dots, split.nonzero_out)


def _push_program(operands: Any, params: dict[str, Any]) -> ClosedJaxpr:
    return trace_to_closed(lambda *xs: _push(*xs, **params), [x.aval for x in operands])


def _linear_batch(axis: BatchAxis, operands: Any, dims: Any, *, bwd: Any, num_residuals: int,
                  out_avals: Any) -> Any:  # fmt: skip
    dots = [axis.to_front(x, d) for x, d in zip(operands[num_residuals:], dims[num_residuals:],
                                                strict=True)]  # fmt: skip
    batch = _BatchedCall(axis, None, (0,) * len(dots))
    outs = custom_vjp_linear_p.bind(
        *operands[:num_residuals],
        *dots,
        bwd=batch.transpose(bwd, dims[:num_residuals]),
        num_residuals=num_residuals,
        out_avals=tuple([axis.batched_aval(a) for a in out_avals]),
    )
    return outs, (0,) * len(outs)


custom_vjp_linear_p = Primitive(
    "custom_vjp_linear",
    call_like=True,
    shape=_linear_shape,
    numpy=lambda *operands, **params: tuple(_push(*operands, **params)),
    stablehlo=_linear_stablehlo,
    jvp=_linear_jvp,
    linearize=_linear_linearize,
    transpose=_linear_transpose,
    batch=_linear_batch,
)
