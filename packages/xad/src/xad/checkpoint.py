"""Rematerialization: keep less of the forward pass, compute it again in the backward pass.

`checkpoint(f)` stages `f` and binds the primitive `checkpoint`. Evaluated, it is a plain call. In
reverse mode its derivative goes onto the tape as one equation, whose residuals are the arguments of
`f` and whatever the policy lets it save; transposing that equation computes the rest again. So
nothing of the inside of `f` is kept between the passes but what the policy names.

Neighbours: `checkpoint_policies` has the policies and the names they speak of, `saved_values` the
programs that make and use what is saved, `residuals` shows what is kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import xtree
from xad.arguments import as_arrays, check_callable
from xad.checkpoint_policies import Policy
from xad.jvp import JVPHandle
from xad.linearize import LinearizeHandle
from xad.saved_values import derivative_given, saved_values, with_calls_inlined, with_results
from xad.transpose import TransposeHandle
from xprim import (
    ClosedJaxpr,
    Linear,
    Primitive,
    Zero,
    call_without_dead_code,
    close_over,
    closed_without_dead_code,
    eval_closed,
    not_mapped,
    stage,
    static_positions,
)


def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    concrete: bool = False,
) -> Callable[..., Any]:
    """Return `fun` with its intermediate values recomputed, not stored, when differentiated.

    Args:
      fun: a function of pytrees of arrays; without it, a decorator is returned.
      prevent_cse: whether the compiler is kept from merging the recomputation with the forward
        pass (which would undo the saving); False is safe inside `scan`.
      policy: which intermediate results may be kept: a function `(primitive, *avals, **params) ->
        bool`, such as those in `checkpoint_policies`; None keeps none.
      static_argnums: positions of arguments that are passed to `fun` as they are.
      concrete: must be False (JAX's removed option).

    Example:
      >>> from xad import checkpoint, grad
      >>> float(grad(checkpoint(lambda x: x * x * x))(2.0))
      12.0
    """
    if concrete:
        raise ValueError("checkpoint: concrete=True is not supported; name static_argnums instead.")
    if fun is None:
        return functools.partial(
            checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums
        )
    check_callable(fun, "checkpoint")
    if not (policy is None or callable(policy)):
        raise TypeError(
            f"checkpoint: the policy must be a function, got a {type(policy).__name__}."
            "\n  hint      checkpoint_policies has the common ones"
        )
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @functools.wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        fixed = static_positions(static, len(args), "checkpoint")
        closed, out_tree = stage(fun, args, kwargs, fixed, operation="checkpoint")
        closed, captured = close_over(closed.jaxpr, closed.consts)
        dynamic = [a for i, a in enumerate(args) if i not in fixed]
        leaves = as_arrays(xtree.leaves((dynamic, kwargs)), "checkpoint")
        outs = checkpoint_p.bind(
            *captured, *leaves, jaxpr=closed, prevent_cse=prevent_cse, policy=policy
        )
        return xtree.unflatten(out_tree, outs)

    return checkpointed


remat = checkpoint


def _shape(*avals: Any, jaxpr: ClosedJaxpr, **_: Any) -> Any:
    return jaxpr.out_avals


def _numpy(*operands: Any, jaxpr: ClosedJaxpr, **_: Any) -> Any:
    return tuple(eval_closed(jaxpr, *operands))


def _stablehlo(b: Any, operands: Any, avals_in: Any, avals_out: Any, *, jaxpr: ClosedJaxpr,
               prevent_cse: bool, policy: Any) -> Any:  # fmt: skip
    if prevent_cse and _is_backward(jaxpr):
        operands = b.op("stablehlo.optimization_barrier", operands, avals_in, avals_in)
    return b.inline(jaxpr, operands)


def _is_backward(jaxpr: ClosedJaxpr) -> bool:
    return jaxpr.jaxpr.name.startswith("transpose")


def _jvp(handle: JVPHandle, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr,
         **params: Any) -> Any:  # fmt: skip
    nonzero = tuple([type(t) is not Zero for t in tangents])
    derived, nonzero_out = handle.jvp_jaxpr(jaxpr, nonzero)
    dots = [t for t in tangents if type(t) is not Zero]
    results = checkpoint_p.bind(*primals, *dots, jaxpr=derived, **params)
    count = len(nonzero_out)
    return results[:count], _spread(results[count:], nonzero_out, results[:count])


def _spread(dots: Sequence[Any], nonzero: Sequence[bool], primals: Sequence[Any]) -> list[Any]:
    rest = iter(dots)
    return [next(rest) if nz else Zero(p.aval)
            for p, nz in zip(primals, nonzero, strict=True)]  # fmt: skip


def _linearize(handle: LinearizeHandle, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr,
               policy: Policy | None, prevent_cse: bool) -> Any:  # fmt: skip
    nonzero = tuple([type(t) is not Zero for t in tangents])
    jaxpr = with_calls_inlined(jaxpr) if policy is not None else jaxpr
    count = len(jaxpr.out_avals)
    saved = saved_values(jaxpr, policy)
    derived, nonzero_out = derivative_given(handle, jaxpr, saved, nonzero)
    tangents_only, needed = closed_without_dead_code(
        derived, (False,) * count + (True,) * sum(nonzero_out)
    )
    params = {"prevent_cse": prevent_cse, "policy": policy}
    forward = with_results(jaxpr, [v for v, n in zip(saved, needed, strict=False) if n])
    results = checkpoint_p.bind(*primals, jaxpr=forward, **params)
    outs, kept = results[:count], results[count:]
    dots = [t for t in tangents if type(t) is not Zero]
    rest = [x for x, n in zip((*primals, *dots), needed[len(saved) :], strict=True) if n]
    out_dots = checkpoint_p.bind(*kept, *rest, jaxpr=tangents_only, **params)
    return outs, _spread(out_dots, nonzero_out, outs)


def _transpose(handle: TransposeHandle, cts: Any, *operands: Any, jaxpr: ClosedJaxpr,
               **params: Any) -> Any:  # fmt: skip
    linear = tuple([type(x) is Linear for x in operands])
    nonzero = tuple([type(ct) is not Zero for ct in cts])
    derived, nonzero_out = handle.transpose_jaxpr(jaxpr, linear, nonzero)
    named = derived.memo.get("named")
    if named is None:
        named = derived.memo["named"] = ClosedJaxpr(
            derived.jaxpr.replace(name=f"transpose_{jaxpr.jaxpr.name}"), derived.consts
        )
    known = [x for x in operands if type(x) is not Linear]
    given = [ct for ct in cts if type(ct) is not Zero]
    results = iter(checkpoint_p.bind(*known, *given, jaxpr=named, **params))
    flags = iter(nonzero_out)
    return [next(results) if lin and next(flags) else Zero(x.aval)
            for x, lin in zip(operands, linear, strict=True)]  # fmt: skip


def _batch(axis: Any, operands: Any, dims: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    mapped = tuple([d is not not_mapped for d in dims])
    fronts = [axis.to_front(x, d) if m else x
              for x, d, m in zip(operands, dims, mapped, strict=True)]  # fmt: skip
    batched, mapped_out = axis.batch_jaxpr(jaxpr, mapped, False)
    outs = checkpoint_p.bind(*fronts, jaxpr=batched, **params)
    return outs, [0 if m else not_mapped for m in mapped_out]


def _effects(*, jaxpr: ClosedJaxpr, **_: Any) -> Any:
    return jaxpr.effects


checkpoint_p = Primitive(
    "checkpoint",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    effects=_effects,
    dce=call_without_dead_code,
)
