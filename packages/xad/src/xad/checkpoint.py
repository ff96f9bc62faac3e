"""Rematerialization: keep less of the forward pass, compute it again in the backward pass.

`checkpoint(f)` stages `f` and binds the primitive `checkpoint`. Evaluated, it is a plain call. In
reverse mode its derivative goes onto the tape as one equation, whose residuals are the arguments of
`f` and whatever the policy lets it save; transposing that equation computes the rest again. So
nothing of the inside of `f` is kept between the passes but what the policy names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import xtree
from xad.jvp import JVPHandle
from xad.linearize import LinearizeHandle
from xad.transpose import TransposeHandle
from xprim import (
    ELEMENTWISE,
    LINEAR,
    ClosedJaxpr,
    Equation,
    Linear,
    Primitive,
    Var,
    Zero,
    as_array,
    close_over,
    closed_without_dead_code,
    eval_closed,
    not_mapped,
    stage,
    undefined,
)

Policy = Callable[..., bool]


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
    static = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums)

    @functools.wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        closed, out_tree = stage(fun, args, kwargs, static, operation="checkpoint")
        closed, captured = close_over(closed.jaxpr, closed.consts)
        fixed = {i % len(args) for i in static}
        dynamic = [a for i, a in enumerate(args) if i not in fixed]
        leaves = [as_array(x) for x in xtree.leaves((dynamic, kwargs))]
        outs = checkpoint_p.bind(
            *captured, *leaves, jaxpr=closed, prevent_cse=prevent_cse, policy=policy
        )
        return xtree.unflatten(out_tree, outs)

    return checkpointed


remat = checkpoint


def checkpoint_name(value: Any, name: str) -> Any:
    """Give a value a name that policies such as `save_only_these_names` can refer to.

    Args:
      value: a pytree of arrays.
      name: the name.
    """
    return xtree.map(lambda x: name_p.bind(as_array(x), name=name)[0], value)


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


def _jvp(handle: JVPHandle, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    nonzero = tuple([type(t) is not Zero for t in tangents])
    derived, nonzero_out = handle.jvp_jaxpr(jaxpr, nonzero)
    dots = [t for t in tangents if type(t) is not Zero]
    results = checkpoint_p.bind(*primals, *dots, jaxpr=derived, **params)
    count = len(nonzero_out)
    return results[:count], _spread(results[count:], nonzero_out, results)


def _spread(dots: Sequence[Any], nonzero: Sequence[bool], primals: Sequence[Any]) -> list[Any]:
    rest = iter(dots)
    return [next(rest) if nz else Zero(p.aval)
            for p, nz in zip(primals, nonzero, strict=False)]  # fmt: skip


def _linearize(handle: LinearizeHandle, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr,
               policy: Policy | None, prevent_cse: bool) -> Any:  # fmt: skip
    nonzero = tuple([type(t) is not Zero for t in tangents])
    saved = _saved_values(jaxpr, policy)
    forward = _with_results(jaxpr, saved)
    results = checkpoint_p.bind(*primals, jaxpr=forward, prevent_cse=prevent_cse, policy=policy)
    count = len(jaxpr.out_avals)
    outs, kept = results[:count], results[count:]
    again = _given_values(jaxpr, saved)
    derived, nonzero_out = handle.jvp_jaxpr(again, (False,) * len(saved) + nonzero)
    tangents_only, needed = closed_without_dead_code(
        derived, (False,) * count + (True,) * sum(nonzero_out), keep_arguments=True
    )
    dots = [t for t in tangents if type(t) is not Zero]
    out_dots = checkpoint_p.bind(
        *kept, *primals, *dots, jaxpr=tangents_only, prevent_cse=prevent_cse, policy=policy
    )
    return outs, _spread(out_dots, nonzero_out, outs)


def _saved_values(jaxpr: ClosedJaxpr, policy: Policy | None) -> list[Var]:
    """Return the variables of a program that the policy lets the forward pass keep."""
    if policy is None:
        return []
    saved: list[Var] = []
    for eqn in jaxpr.eqns:
        verdict = policy(eqn.primitive, *[x.aval for x in eqn.inputs], **eqn.params)
        if verdict:
            saved += eqn.outputs
    return saved


def _with_results(jaxpr: ClosedJaxpr, extra: Sequence[Var]) -> ClosedJaxpr:
    if not extra:
        return jaxpr
    inner = jaxpr.jaxpr
    return ClosedJaxpr(inner.replace(outvars=[*inner.outvars, *extra]), jaxpr.consts)


def _given_values(jaxpr: ClosedJaxpr, saved: Sequence[Var]) -> ClosedJaxpr:
    """Return the program whose saved values are leading arguments that it need not compute.

    The equations stay, for their tangents; their primal results are taken from the arguments.
    """
    if not saved:
        return jaxpr
    key = ("given", tuple(saved))
    if key not in jaxpr.memo:
        inner = jaxpr.jaxpr
        renamed = {v: Var(v.aval) for v in saved}
        given = [Var(v.aval) for v in saved]
        given_by_var = dict(zip(saved, given, strict=True))
        eqns: list[Equation] = []
        current: dict[Any, Any] = {}
        for eqn in inner.eqns:
            inputs = [current.get(x, x) for x in eqn.inputs]
            outputs = [renamed.get(v, v) for v in eqn.outputs]
            eqns.append(eqn.replace(inputs=inputs, outputs=outputs))
            for v in eqn.outputs:
                if v in given_by_var:
                    joined = Var(v.aval)
                    eqns.append(Equation(saved_value_p, [given_by_var[v], renamed[v]], [joined], {},
                                         eqn.source))  # fmt: skip
                    current[v] = joined
        outvars = [current.get(x, x) for x in inner.outvars]
        jaxpr.memo[key] = ClosedJaxpr(
            inner.replace(invars=[*given, *inner.invars], eqns=eqns, outvars=outvars), jaxpr.consts
        )
    return jaxpr.memo[key]  # type: ignore[no-any-return]


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


def _dce(used: Sequence[bool], eqn: Equation) -> Equation:
    closed, needed = closed_without_dead_code(eqn.params["jaxpr"], used)
    return eqn.replace(
        inputs=[x for x, n in zip(eqn.inputs, needed, strict=True) if n],
        outputs=[v for v, u in zip(eqn.outputs, used, strict=True) if u],
        params=eqn.params | {"jaxpr": closed},
    )


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
    dce=_dce,
)


# --- what policies speak of --------------------------------------------------------------------


def _same(x: Any, *_rest: Any, **_params: Any) -> Any:
    return (x,)


name_p = Primitive(
    "name",
    shape=_same,
    numpy=_same,
    stablehlo=lambda b, operands, avals_in, avals_out, *, name: operands,
    jvp=LINEAR,
    transpose=lambda cts, x, *, name: cts,
    batch=ELEMENTWISE,
)


def _saved_jvp(primals: Any, tangents: Any) -> Any:
    return (primals[0],), (tangents[1],)


# The value that was saved, with the tangent of the value that would be computed again; the
# equation that would compute the latter's primal is then dead code.
saved_value_p = Primitive(
    "saved_value",
    shape=_same,
    numpy=_same,
    stablehlo=lambda b, operands, avals_in, avals_out: operands[:1],
    jvp=_saved_jvp,
    transpose=undefined("it disappears when it is differentiated"),
    batch=ELEMENTWISE,
)


class checkpoint_policies:  # noqa: N801 - a namespace, named as users know it
    """Policies for `checkpoint`: which intermediate results the forward pass may keep."""

    @staticmethod
    def everything_saveable(primitive: Primitive, *_avals: Any, **_params: Any) -> bool:
        """Keep everything."""
        return True

    @staticmethod
    def nothing_saveable(primitive: Primitive, *_avals: Any, **_params: Any) -> bool:
        """Keep nothing but the arguments."""
        return False

    @staticmethod
    def dots_saveable(primitive: Primitive, *_avals: Any, **_params: Any) -> bool:
        """Keep the results of contractions, which are dear to compute again."""
        return primitive.name in _CONTRACTIONS

    checkpoint_dots = dots_saveable

    @staticmethod
    def dots_with_no_batch_dims_saveable(
        primitive: Primitive, *_avals: Any, **params: Any
    ) -> bool:
        """Keep the results of contractions without batch dimensions, such as weights times data."""
        if primitive.name != "dot_general":
            return False
        _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
        return not lhs_batch and not rhs_batch

    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable

    @staticmethod
    def save_only_these_names(*names: str) -> Policy:
        """Keep the values that `checkpoint_name` gave one of these names."""

        def policy(primitive: Primitive, *_avals: Any, **params: Any) -> bool:
            return primitive is name_p and params["name"] in names

        return policy

    @staticmethod
    def save_anything_except_these_names(*names: str) -> Policy:
        """Keep everything but the values with these names."""

        def policy(primitive: Primitive, *_avals: Any, **params: Any) -> bool:
            return not (primitive is name_p and params["name"] in names)

        return policy

    @staticmethod
    def save_any_names_but_these(*names: str) -> Policy:
        """Keep the values that `checkpoint_name` gave any other name."""

        def policy(primitive: Primitive, *_avals: Any, **params: Any) -> bool:
            return primitive is name_p and params["name"] not in names

        return policy

    @staticmethod
    def save_from_both_policies(first: Policy, second: Policy) -> Policy:
        """Keep what either policy keeps."""

        def policy(primitive: Primitive, *avals: Any, **params: Any) -> bool:
            return first(primitive, *avals, **params) or second(primitive, *avals, **params)

        return policy


_CONTRACTIONS = ("dot_general", "conv_general_dilated", "ragged_dot_general")
