"""`checkpoint`: keep less of the forward pass, compute it again in the backward pass."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final, TypeVar, overload

import xprim
import xtree
from xad._jvp import tangent_avals
from xad._linearize import LINEARIZE_HANDLE, LinearizeHandle, linearize_and_attribute
from xad.arguments import references_in
from xad.custom_rules import remat_residual_p
from xad.tangents import instantiate, is_differentiable
from xnp import lax
from xprim import ClosedJaxpr, Equation, Jaxpr, Primitive, ShapedArray, Trace, Var, source
from xprim.avals import size_of
from xprim.calls import call_rules, nonzero, where_true, with_zeros
from xprim.contracts import Builder
from xprim.derived_refs import UsedRef, claim_ref_uses, derive_with_refs, read_refs, write_back_refs
from xprim.errors import UndefinedRuleError, argument_names, described, message
from xprim.jaxpr import held_programs, map_programs
from xprim.kept_programs import KeptPrograms, Staged, stage_with_refs
from xprim.memory import bytes_of
from xprim.refs import BaseRef, RefUse
from xprim.requirements import require
from xprim.sharded_types import in_memory_kind, with_dimension
from xprim.tracebacks import boundary, shorten
from xprim.transformed import as_arrays, check_function, transforming
from xprim.typing import PyTree
from xtree.interning import is_hashable
from xtree.namespaces import late_import
from xtree.records import Record

__all__ = ()

_memory_budget = late_import("xad._memory_budget", "only where a checkpoint has a budget")


# --------------------------------------------------------------------------- checkpoint policies
# What `checkpoint` may keep: policies, the names they speak of, and their verdicts.
#
# A policy looks at one equation, `policy(primitive, *avals, **params)`, and says whether its
# results are kept for the backward pass. `checkpoint_name` marks a value for the policies that go
# by name; it is the identity otherwise.


class _Verdict:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __bool__(self) -> bool:
        return self.name == "Saveable"


Saveable: Final = _Verdict("Saveable")
Recompute: Final = _Verdict("Recompute")


class Offloadable(Record):
    """The verdict that a result is kept in another memory until the backward pass.

    A program for a backend with one memory (the CPU, NumPy) keeps it there.

    Attributes:
      src: the kind of memory that the value is in.
      dst: the kind of memory to keep it in.
    """

    src: str
    dst: str


class MemoryBudget(Record):
    """What a checkpoint has in place of a policy that stores what fits into a number of bytes.

    Attributes:
      nbytes: what the gradient may take beyond arguments and results.
      measured: whether the choice is corrected by what the compiler says that it takes.
    """

    nbytes: int
    measured: bool


Verdict = bool | _Verdict | Offloadable
Policy = Callable[..., Verdict]


def is_saved(verdict: Verdict) -> bool:
    """Return whether a policy's verdict keeps the value."""
    return isinstance(verdict, Offloadable) or bool(verdict)


@boundary
def checkpoint_name(x: PyTree, name: str) -> PyTree:
    """Give a value a name that policies such as `save_only_these_names` can refer to.

    Args:
      x: a pytree of arrays.
      name: the name.

    Returns:
      The same tree; its values are what the name stands for.
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name: the name must be a string, got a {type(name).__name__}.")
    return xtree.map(lambda leaf: name_p.bind(xprim.as_array(leaf), name=name)[0], x)


@boundary
def checkpoint_name_fwd(x: PyTree, name: str) -> PyTree:
    """Give a value a name, as `checkpoint_name` does (JAX's name for use in `fwd` rules)."""
    return checkpoint_name(x, name)


def _same(x: Any, **_params: Any) -> Any:
    return (x,)


name_p = Primitive(
    "name",
    shape=_same,
    numpy=_same,
    stablehlo=lambda b, operands, avals_in, avals_out, *, name: operands,
    jvp=xprim.LINEAR,
    transpose=lambda cts, x, *, name: cts,
    batch=xprim.ELEMENTWISE,
)


class checkpoint_policies:  # noqa: N801 - a namespace, named as users know it
    """Policies for `checkpoint`: which intermediate results the forward pass may keep."""

    @staticmethod
    def everything_saveable(*_avals: Any, **_params: Any) -> bool:
        """Keep everything."""
        return True

    @staticmethod
    def nothing_saveable(*_avals: Any, **_params: Any) -> bool:
        """Keep nothing but the arguments."""
        return False

    @staticmethod
    def dots_saveable(prim: Primitive, *_avals: Any, **_params: Any) -> bool:
        """Keep the results of contractions, which are dear to compute again."""
        return prim.name in CONTRACTIONS

    checkpoint_dots = dots_saveable

    @staticmethod
    def dots_with_no_batch_dims_saveable(prim: Primitive, *_avals: Any, **params: Any) -> bool:
        """Keep the results of contractions without batch dimensions, such as weights times data."""
        if prim.name != "dot_general":
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
    def save_and_offload_only_these_names(
        *,
        names_which_can_be_saved: Sequence[str],
        names_which_can_be_offloaded: Sequence[str],
        offload_src: str,
        offload_dst: str,
    ) -> Policy:
        """Keep the values with the first names where they are, those with the others elsewhere."""
        saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
        if saved & offloaded:
            raise ValueError(message(
                "save_and_offload_only_these_names", "a name must be in one of the two lists.",
                got=f"{sorted(saved & offloaded)} in both",
            ))  # fmt: skip

        def policy(primitive: Primitive, *_avals: Any, **params: Any) -> Verdict:
            if primitive is name_p and params["name"] in saved:
                return Saveable
            if primitive is name_p and params["name"] in offloaded:
                return Offloadable(offload_src, offload_dst)
            return Recompute

        return policy

    @staticmethod
    def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
        """Keep the results of contractions without batch dimensions, in another memory."""

        def policy(primitive: Primitive, *avals: Any, **params: Any) -> Verdict:
            if checkpoint_policies.dots_with_no_batch_dims_saveable(primitive, *avals, **params):
                return Offloadable(offload_src, offload_dst)
            return Recompute

        return policy

    @staticmethod
    def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
        """Keep what either policy keeps."""

        def policy(primitive: Primitive, *avals: Any, **params: Any) -> bool:
            return is_saved(policy_1(primitive, *avals, **params)) or is_saved(
                policy_2(primitive, *avals, **params)
            )

        return policy


POLICY_MAKERS: tuple[Any, ...] = (
    checkpoint_policies.save_only_these_names,
    checkpoint_policies.save_anything_except_these_names,
    checkpoint_policies.save_any_names_but_these,
    checkpoint_policies.save_and_offload_only_these_names,
    checkpoint_policies.offload_dot_with_no_batch_dims,
    checkpoint_policies.save_from_both_policies,
)

CONTRACTIONS = ("dot_general", "conv_general_dilated", "ragged_dot_general")


# ---------------------------------------------------------------------------------- saved values
# The programs behind a checkpoint that keeps some values: one makes them, one is given them.
#
# The forward program has the saved values among its results. The derivative is that of the
# program in which each saved value is joined with its computation, `saved_value(given,
# computed)`: both are the same number, the tangent is that of the computation. After
# differentiation every use of the computed value is replaced by the given one, and its
# computation is dead code.


def find_saved_values(jaxpr: ClosedJaxpr, policy: Policy | None) -> dict[Var, Verdict]:
    """Return the variables of a program that the forward pass keeps, with the policy's verdicts."""
    saved: dict[Var, Verdict] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive is remat_residual_p:
            saved[eqn.outputs[0]] = eqn.params.get("verdict", Saveable)
            continue
        if policy is None:
            continue
        verdict = _verdict_of(eqn, policy)
        if is_saved(verdict):
            saved |= dict.fromkeys(eqn.outputs, verdict)
    return saved


def _verdict_of(eqn: Equation, policy: Policy) -> Verdict:
    return policy(eqn.primitive, *[x.aval for x in eqn.inputs], **eqn.params)


def compute_again(jaxpr: ClosedJaxpr, policy: Policy | None) -> ClosedJaxpr:
    """Return the program without what only has effects that the policy keeps from a repeat."""
    if policy is None or not jaxpr.effects:
        return jaxpr
    inner = jaxpr.jaxpr
    eqns = [
        eqn for eqn in inner.eqns
        if eqn.outputs
        or not is_saved(_verdict_of(eqn, policy))
    ]  # fmt: skip
    return ClosedJaxpr(inner.replace(eqns=eqns), jaxpr.consts)


def with_results(jaxpr: ClosedJaxpr, extra: Sequence[Var]) -> ClosedJaxpr:
    """Return the program with more of its variables as results."""
    return jaxpr.derived(_with_results, tuple(extra)) if extra else jaxpr


def _with_results(jaxpr: ClosedJaxpr, extra: Sequence[Var]) -> ClosedJaxpr:
    inner = jaxpr.jaxpr
    return ClosedJaxpr(inner.replace(outvars=[*inner.outvars, *extra]), jaxpr.consts)


def find_saved_residuals(
    linear: ClosedJaxpr, known: int, policy: Policy | None
) -> dict[Var, Verdict]:
    """Return the variables of a derivative, computed of primals alone, that are kept, and verdicts.

    Args:
      linear: the derivative.
      known: how many of its first arguments are primals.
      policy: the checkpoint policy.
    """
    if policy is None:
        return {}
    primal = {*linear.jaxpr.invars[:known], *linear.jaxpr.constvars}
    saved: dict[Var, Verdict] = {}
    for eqn in linear.eqns:
        if eqn.effects:  # is not to happen twice
            continue
        if all(isinstance(x, xprim.Literal) or x in primal for x in eqn.inputs):
            primal.update(eqn.outputs)
            verdict = _verdict_of(eqn, policy)
            if is_saved(verdict):
                saved |= dict.fromkeys(eqn.outputs, verdict)
    return saved


def offload(forward: ClosedJaxpr, first: int, verdicts: Sequence[Verdict]) -> ClosedJaxpr:
    """Return a program whose results from `first` on are kept where the verdicts say."""

    def run(*args: Any) -> list[Any]:
        results = xprim.eval_closed(forward, *args)
        end = first + len(verdicts)
        kept = [
            in_memory(x, v.dst) if isinstance(v, Offloadable) else x
            for x, v in zip(results[first:end], verdicts, strict=True)
        ]
        return [*results[:first], *kept, *results[end:]]

    return xprim.trace_to_closed(run, forward.in_avals, name=forward.jaxpr.name)


def fetch_residuals(linear: ClosedJaxpr, verdicts: Sequence[Verdict]) -> ClosedJaxpr:
    """Return a program whose first arguments come from where the verdicts say."""

    def run(*args: Any) -> list[Any]:
        given = [
            in_memory(x, v.src) if isinstance(v, Offloadable) else x
            for x, v in zip(args, verdicts, strict=False)
        ]
        return list(xprim.eval_closed(linear, *given, *args[len(verdicts) :]))

    avals = list(linear.in_avals)
    for i, v in enumerate(verdicts):
        if isinstance(v, Offloadable):
            avals[i] = in_memory_kind(avals[i], v.dst)
    return xprim.trace_to_closed(run, avals, name=linear.jaxpr.name)


def in_memory(x: Any, kind: str) -> Any:
    """Return a value that programs keep in a kind of memory."""
    return xprim.get_primitive("in_memory").bind(x, kind=kind)[0]


def split_at(
    linear: ClosedJaxpr, known: int, saved: tuple[Var, ...]
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool]]:
    """Return the program of what a derivative needs of some of its variables, and the rest of it.

    Args:
      linear: the derivative.
      known: how many of its first arguments are primals.
      saved: the variables, computed of those alone.

    Returns:
      A program from the primals to the variables that are needed; one from these and some of the
      arguments to the results; and for each of `saved` and of the arguments, whether it takes it.
    """
    inner = linear.jaxpr
    given = frozenset(saved)
    eqns = [eqn for eqn in inner.eqns if given.isdisjoint(eqn.outputs)]
    opened = inner.replace(invars=[*saved, *inner.invars], eqns=eqns)
    rest, taken = xprim.prune_dead_code(ClosedJaxpr(opened, linear.consts))
    wanted = [v for v, is_taken in zip(saved, taken, strict=False) if is_taken]
    silent = [eqn for eqn in inner.eqns if not eqn.effects]
    all_made = inner.replace(invars=inner.invars[:known], eqns=silent, outvars=wanted)
    made = xprim.prune_dead_code(ClosedJaxpr(all_made, linear.consts), keep_arguments=True)[0]
    return made, rest, taken


def derivative_given(
    handle: LinearizeHandle, jaxpr: ClosedJaxpr, saved: Sequence[Var], nonzero: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Return the derivative of a program that is given some of its values.

    Every equation of it either computes with primals alone or is linear in the tangents, those of
    calls inside included; so it can be transposed.

    Args:
      handle: differentiates a program.
      jaxpr: the program.
      saved: the variables whose values are leading arguments of the derivative.
      nonzero: for each argument of the program, whether it has a tangent that is not zero.

    Returns:
      A program from the saved values, the primals, the nonzero tangents and the values of
      references that rules use to the results and their nonzero tangents; and for each result
      whether its tangent is among them.
    """
    if not saved:
        return jaxpr.derived(_join_parts, handle, nonzero)
    return jaxpr.derived(_of_saved_values, handle, tuple(saved), nonzero)


def _of_saved_values(
    jaxpr: ClosedJaxpr, handle: LinearizeHandle, saved: Sequence[Var], nonzero: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    joined = _with_saved_values(jaxpr, saved)
    # Of this program and not of `joined`: its caller gets the references that rules use.
    derived, nonzero_out = _join_parts(joined, handle, (False,) * len(saved) + nonzero)
    return _replace_computations(derived), nonzero_out


def _join_parts(
    closed: ClosedJaxpr, handle: LinearizeHandle, nonzero: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Return the primal program followed by the linear one, as one program."""
    uses = claim_ref_uses()
    split, refs = derive_with_refs(handle.linearize_jaxpr, closed, nonzero)
    count = len(closed.in_avals)

    def both(*args: Any) -> list[Any]:
        primals = [*args[:count], *read_refs(refs)]
        results = xprim.eval_closed(
            split.primal, *primals
        )  # the references were written before: not again
        residuals = split.residuals(primals, results)
        dots = xprim.eval_closed(split.linear, *residuals, *args[count:])
        return [*results[: split.num_results], *dots]

    avals = [*closed.in_avals, *tangent_avals(closed.in_avals, nonzero)]
    return xprim.trace_to_closed(both, avals, name=closed.jaxpr.name, refs=uses), split.nonzero_out


def _with_saved_values(jaxpr: ClosedJaxpr, saved: Sequence[Var]) -> ClosedJaxpr:
    inner = jaxpr.jaxpr
    given = {v: Var(v.aval) for v in saved}
    joined: dict[Any, Var] = {}
    eqns: list[Equation] = []
    for eqn in inner.eqns:
        inputs = [joined.get(x, x) for x in eqn.inputs]
        eqns.append(eqn.replace(inputs=inputs))
        for v in eqn.outputs:
            if v in given:
                joined[v] = Var(v.aval)
                eqns.append(Equation(saved_value_p, [given[v], v], [joined[v]], {}, eqn.source))
    return ClosedJaxpr(
        inner.replace(
            invars=[*given.values(), *inner.invars],
            eqns=eqns,
            outvars=[joined.get(x, x) for x in inner.outvars],
        ),
        jaxpr.consts,
    )


def _replace_computations(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Use the given values where their computations and what joins the two are used.

    Loops and branches inside have such values of their own.
    """
    replacements: dict[Var, Any] = {}
    eqns = []
    for eqn in closed.eqns:
        if eqn.primitive is saved_value_p:
            given, computed = eqn.inputs
            replacements[eqn.outputs[0]] = given
            if isinstance(computed, Var):
                replacements[computed] = given
        elif any(inner.derived(_joins_values) for inner in held_programs(eqn.params)):
            eqns.append(eqn.replace(params=map_programs(eqn.params, _replace_inside)))
        else:
            eqns.append(eqn)
    return ClosedJaxpr(
        xprim.substitute(closed.jaxpr.replace(eqns=eqns), replacements), closed.consts
    )


def _joins_values(closed: ClosedJaxpr) -> bool:
    return any(
        eqn.primitive is saved_value_p
        or any(inner.derived(_joins_values) for inner in held_programs(eqn.params))
        for eqn in closed.eqns
    )


def _replace_inside(closed: ClosedJaxpr) -> ClosedJaxpr:
    replaced = closed.derived(_replace_computations)
    return xprim.prune_dead_code(replaced, keep_arguments=True)[0]


def _first(given: Any, computed: Any) -> Any:
    return (given,)


def _saved_jvp(primals: Any, tangents: Any) -> Any:
    return saved_value_p.bind(*primals), (tangents[1],)


saved_value_p = Primitive(
    "saved_value",
    shape=_first,
    numpy=_first,
    stablehlo=lambda b, operands, avals_in, avals_out: operands[:1],
    jvp=_saved_jvp,
    transpose=xprim.undefined("it disappears when it is differentiated"),
    batch=xprim.ELEMENTWISE,
)


# --- calls inside ------------------------------------------------------------------------------


def with_calls_inlined(jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program with its plain calls written out, so that policies see inside.

    A plain call is a primitive with an `inline` rule, such as `jit`.
    """
    if not any("inline" in eqn.primitive.rules for eqn in jaxpr.eqns):
        return jaxpr
    return jaxpr.derived(_inline)


def _inline(jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    return _trace_by(InliningTrace, jaxpr)


def _trace_by(trace: Callable[[Trace], Trace], jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program that a trace records of another one, on the trace that stages it."""

    def run(*args: Any) -> list[Any]:
        with xprim.use_trace(trace(xprim.state.trace)):
            return xprim.eval_closed(jaxpr, *args)

    return xprim.trace_to_closed(run, jaxpr.in_avals, name=jaxpr.jaxpr.name)


def with_remat_rules(jaxpr: ClosedJaxpr, policy: Policy | None) -> ClosedJaxpr:
    """Return the program with what `defremat` and `custom_remat` give in place of their calls.

    Loops and branches in which these or the policy keep something stand in it twice.
    """
    if not jaxpr.derived(_needs_remat_rules, policy):
        return jaxpr
    return with_calls_inlined(jaxpr).derived(_by_remat_rules, policy)


def _without_marks(jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Return the forward program, whose residuals have the derivatives of what computes them."""
    forward = _with_operands(jaxpr, {remat_residual_p: 0, saved_value_p: 0})
    return xprim.prune_dead_code(forward, keep_arguments=True)[0]


def _run_again(jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program of the backward pass: of loops that ran forward, those that are given."""
    return _with_operands(jaxpr, {saved_value_p: 1})


def _with_operands(jaxpr: ClosedJaxpr, number_by_primitive: dict[Primitive, int]) -> ClosedJaxpr:
    """Return the program with an operand of some primitives in place of their results."""
    replacements: dict[Var, Any] = {}
    eqns = []
    for eqn in jaxpr.eqns:
        number = number_by_primitive.get(eqn.primitive)
        if number is None:
            eqns.append(eqn)
        else:
            operand = eqn.inputs[number]
            replacements[eqn.outputs[0]] = (
                replacements.get(operand, operand) if isinstance(operand, Var) else operand
            )
    if not replacements:
        return jaxpr
    return ClosedJaxpr(xprim.substitute(jaxpr.jaxpr.replace(eqns=eqns), replacements), jaxpr.consts)


def _needs_remat_rules(jaxpr: ClosedJaxpr, policy: Policy | None) -> bool:
    return any(
        "remat" in eqn.params if eqn.primitive is xprim.custom_vjp_call_p
        else any(inner.derived(_needs_remat_rules, policy) for inner in held_programs(eqn.params))
        if "inline" in eqn.primitive.rules
        else _keeps_inside(eqn.primitive, eqn.inputs, eqn.params, policy)
        for eqn in jaxpr.eqns
    )  # fmt: skip


def _keeps_inside(
    primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], policy: Policy | None
) -> bool:
    """Return whether a loop or branch has values that are kept, unless its residuals are."""
    bodies = _bodies_run_twice(primitive, params)
    if not bodies or (
        policy is not None and is_saved(policy(primitive, *[x.aval for x in inputs], **params))
    ):
        return False
    return any(
        body.derived(_needs_remat_rules, policy)
        or (policy is not None and find_saved_values(with_calls_inlined(body), policy))
        for body in bodies
    )


def _by_remat_rules(jaxpr: ClosedJaxpr, policy: Policy | None) -> ClosedJaxpr:
    return _trace_by(lambda parent: RematTrace(parent, policy), jaxpr)


class RematTrace(Trace):
    """Hands every primitive to its parent, but in place of a call what its remat rules give."""

    __slots__ = ("_policy",)

    name = "remat"

    def __init__(self, parent: Trace, policy: Policy | None) -> None:
        super().__init__(parent)
        self._policy = policy

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Apply a primitive, or the rules of a call that has such."""
        assert self.parent is not None
        if primitive is xprim.custom_vjp_call_p and "remat" in params:
            run = params["remat"](self._policy)
        elif _keeps_inside(primitive, operands, params, self._policy):
            run_twice = _run_loop_twice if primitive.name == "while" else _run_twice
            run = functools.partial(run_twice, primitive, params, self._policy)
        else:
            return self.parent.process(primitive, operands, params)
        with xprim.use_trace(self.parent):
            return tuple(run(*operands))


# --- loops and branches with such calls ----------------------------------------------------------
# A loop whose body has values a that are kept, for rules or by the policy, stands twice in the
# program of a checkpoint:
#
#     y, A = loop(body that gives a as well)                  the forward pass
#     M    = remat_residual(A)                                stored
#     z    = loop(body in which a is an element of M)         the backward pass
#     saved_value(y, z)                                       y forward, z backward
#
# Each pass drops the other's loop, which is dead code in it. A branch gives zeros for the values of
# the others. A `while` with a bound on its steps carries A, and takes M as a constant.
#
# Scans, choices and `while` are known here by name: what a result that is added to a body becomes
# among the results of the call is not declared. Loops of other names are computed again as a whole.


def _bodies_run_twice(primitive: Primitive, params: dict[str, Any]) -> tuple[ClosedJaxpr, ...]:
    """Return the body of a loop that can be transposed, or the branches of a choice."""
    if primitive.name == "scan":
        return (params["jaxpr"],)
    if primitive.name == "while" and "schedule" in params:
        return (params["body_jaxpr"],)
    return params["branches"] if primitive.name == "cond" else ()


def _split_bodies(
    bodies: Sequence[ClosedJaxpr], policy: Policy | None
) -> tuple[list[ClosedJaxpr], list[ClosedJaxpr], dict[Var, Verdict]]:
    """Return the bodies of the forward and the backward pass, and what the first ones store."""
    inner = [with_remat_rules(body, policy) for body in bodies]
    if policy is not None:
        inner = list(map(with_calls_inlined, inner))
    kept = [find_saved_values(body, policy) for body in inner]
    verdicts = {v: verdict for own in kept for v, verdict in own.items()}
    avals = tuple([v.aval for v in verdicts])
    forward, again, start = [], [], 0
    for body, own in zip(inner, kept, strict=True):
        forward.append(body.derived(_that_stores, tuple(own), avals, start))
        again.append(body.derived(_pass_values, tuple(own), avals, start))
        start += len(own)
    return forward, again, verdicts


def _run_twice(
    primitive: Primitive, params: dict[str, Any], policy: Policy | None, *operands: Any
) -> list[Any]:
    """Run a scan or a choice, mark what it stores, and run it again given that; join both."""
    forward, again, kept = _split_bodies(_bodies_run_twice(primitive, params), policy)
    name = "jaxpr" if primitive.name == "scan" else "branches"

    def with_bodies(bodies: list[ClosedJaxpr]) -> dict[str, Any]:
        return params | {name: bodies[0] if primitive.name == "scan" else tuple(bodies)}

    results = primitive.bind(*operands, **with_bodies(forward))
    count = len(results) - len(kept)
    stored = _mark(results[count:], kept)
    return _join_halves(results[:count], primitive.bind(*operands, *stored, **with_bodies(again)))


def _run_loop_twice(
    primitive: Primitive, params: dict[str, Any], policy: Policy | None, *operands: Any
) -> list[Any]:
    """Do the same with a `while`: what its steps store is in arrays that it carries."""
    test, schedule = params["cond_jaxpr"], params["schedule"]
    num_test, num_consts = params["cond_nconsts"], params["body_nconsts"]
    (storing,), (given,), kept = _split_bodies((params["body_jaxpr"],), policy)
    count = len(storing.out_avals) - len(kept)
    rows = [with_dimension(v.aval, 0, schedule.max_steps) for v in kept]
    known = num_consts + count

    def number(carry: Sequence[Any]) -> Any:
        counter = carry[schedule.counter]
        return lax.reduce_max_p.bind(counter, axes=tuple(range(counter.ndim)))[0]

    def store(*args: Any) -> list[Any]:
        results = xprim.eval_closed(storing, *args[:known])
        i = number(args[num_consts:known])
        written = [
            lax.dynamic_update_index_in_dim(row, x, i, 0)
            for row, x in zip(args[known:], results[count:], strict=True)
        ]
        return [*results[:count], *written]

    def take(*args: Any) -> list[Any]:
        consts, stored, carry = args[:num_consts], args[num_consts:-count], args[-count:]
        i = number(carry)
        elements = [lax.dynamic_index_in_dim(x, i, 0, keepdims=False) for x in stored]
        return xprim.eval_closed(given, *consts, *carry, *elements)

    def condition(*args: Any) -> list[Any]:
        return xprim.eval_closed(test, *args[: len(test.in_avals)])

    avals = params["body_jaxpr"].in_avals
    results = primitive.bind(
        *operands, *[instantiate(xprim.Zero(a)) for a in rows], **params | {
            "cond_jaxpr": xprim.trace_to_closed(
                condition, [*test.in_avals, *rows], name=test.jaxpr.name),
            "body_jaxpr": xprim.trace_to_closed(store, [*avals, *rows], name=storing.jaxpr.name),
        },
    )  # fmt: skip
    stored = _mark(results[count:], kept)
    first = num_test + num_consts
    body = xprim.trace_to_closed(
        take, [*avals[:num_consts], *rows, *avals[num_consts:]], name=given.jaxpr.name
    )
    others = primitive.bind(
        *operands[:first], *stored, *operands[first:],
        **params | {"body_jaxpr": body, "body_nconsts": num_consts + len(stored)},
    )  # fmt: skip
    return _join_halves(results[:count], others)


def _mark(values: Sequence[Any], kept: dict[Var, Verdict]) -> list[Any]:
    pairs = zip(values, kept.values(), strict=True)
    return [remat_residual_p.bind(x, verdict=verdict)[0] for x, verdict in pairs]


def _join_halves(forward: Sequence[Any], backward: Sequence[Any]) -> list[Any]:
    return [saved_value_p.bind(y, z)[0] for y, z in zip(forward, backward, strict=True)]


def _that_stores(
    body: ClosedJaxpr, own: tuple[Var, ...], avals: tuple[ShapedArray, ...], start: int
) -> ClosedJaxpr:
    """Return a body that gives its values as last results, zeros for those of other branches."""
    inner = _without_marks(with_results(body, own))
    count = len(inner.out_avals) - len(own)

    def run(*args: Any) -> list[Any]:
        results = xprim.eval_closed(inner, *args)
        stored = [instantiate(xprim.Zero(a)) for a in avals]
        stored[start : start + len(own)] = results[count:]
        return [*results[:count], *stored]

    return xprim.trace_to_closed(run, body.in_avals, name=body.jaxpr.name)


def _pass_values(
    body: ClosedJaxpr, own: tuple[Var, ...], avals: tuple[ShapedArray, ...], start: int
) -> ClosedJaxpr:
    """Return a body whose values are among its last arguments."""
    marks = {eqn.outputs[0] for eqn in body.eqns if eqn.primitive is remat_residual_p}
    computed = [v for v in own if v not in marks]
    program = _with_saved_values(_run_again(body), computed).jaxpr
    given_for = dict(zip(computed, program.invars, strict=False))
    given = [Var(a) for a in avals]
    given[start : start + len(own)] = [given_for.get(v, v) for v in own]
    eqns = [eqn for eqn in program.eqns if eqn.primitive is not remat_residual_p]
    program = program.replace(invars=[*program.invars[len(computed) :], *given], eqns=eqns)
    return xprim.prune_dead_code(ClosedJaxpr(program, body.consts), keep_arguments=True)[0]


class InliningTrace(Trace):
    """Hands every primitive to its parent, but the equations of a plain call one by one."""

    __slots__ = ()

    name = "inline"

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Apply a primitive, or the program that a call holds."""
        inline = primitive.rules.get("inline")
        if inline is not None:
            return inline(*operands, **params)  # type: ignore[no-any-return]
        assert self.parent is not None
        return self.parent.process(primitive, operands, params)


# ------------------------------------------------------------------------------------- residuals
# What reverse mode keeps between its passes: `saved_residuals`, `print_saved_residuals`.


class SavedResidual(Record):
    """A value that differentiating a function keeps for the backward pass.

    Attributes:
      aval: its type.
      nbytes: its size in bytes.
      origin: where it comes from: an argument, a constant, or an operation and its line.
      reason: why it is kept: the operation and the line whose derivative reads it, and what a
        checkpoint keeps it by.
    """

    aval: ShapedArray
    nbytes: int
    origin: str
    reason: str

    def __str__(self) -> str:
        return f"{self.aval.str_short()} {self.origin} ({self.nbytes:,} bytes; {self.reason})"


@boundary
def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print the values that differentiating `f` keeps for the backward pass: `saved_residuals`.

    Args:
      f: a function of pytrees of arrays.
      *args: arguments of the shapes and dtypes in question.
      **kwargs: likewise.

    Example:
      >>> from xad import print_saved_residuals
      >>> print_saved_residuals(lambda x: x * x, 3.0)
      f32[] from the argument x (4 bytes; read by the derivative of mul at ...)
    """
    for residual in _list_saved_residuals("print_saved_residuals", f, args, kwargs):
        print(residual)  # noqa: T201 - what the function is for


@boundary
def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[SavedResidual]:
    """Return the values that differentiating `f` keeps for the backward pass.

    Args:
      f: a function of pytrees of arrays.
      *args: arguments of the shapes and dtypes in question, or `ShapeDtypeStruct`.
      **kwargs: likewise.

    Returns:
      A record for each value, arguments first: its type, its bytes, where it comes from, and why
      it is kept.

    Example:
      >>> import xnp
      >>> from xad import saved_residuals
      >>> (found,) = saved_residuals(lambda x: xnp.sin(x).sum(), xnp.ones(3))
      >>> found.nbytes, found.origin.split(" from ")[0], found.reason.split(" at ")[0]
      (12, 'output of cos', 'read by the derivative of sin')
    """
    return _list_saved_residuals("saved_residuals", f, args, kwargs)


def _list_saved_residuals(
    operation: str, fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> list[SavedResidual]:
    closed, _ = xprim.stage(fun, args, kwargs, operation=operation)
    closed = with_calls_inlined(closed)
    nonzero = tuple([is_differentiable(a) for a in closed.in_avals])
    split, rule_of = linearize_and_attribute(closed, nonzero)
    reasons: dict[Any, str] = {}
    for eqn in split.linear.eqns:
        for x in eqn.inputs:
            if isinstance(x, Var) and x not in reasons and eqn.outputs[0] in rule_of:
                reasons[x] = _reason(rule_of[eqn.outputs[0]]) + _reason_inside(eqn, x)
    linear = split.linear.jaxpr
    residuals = list(zip(split.forwarded, linear.invars, strict=False))
    names = argument_names(fun, args, kwargs)
    found: dict[Any, SavedResidual] = {
        k: _residual(x, f"from the argument {names[k]}", reasons) for k, x in residuals if k >= 0
    }
    extra = split.primal.jaxpr.outvars[split.num_results :]
    made = zip(extra, [x for k, x in residuals if k < 0], strict=False)
    for v, x in made:
        origin, kept = _origin(split.primal.jaxpr, v)
        found[v] = _residual(x, origin, reasons, kept)
    constants = [_residual(v, "from a constant", reasons) for v in linear.constvars]
    return [*found.values(), *constants]


def _residual(v: Any, origin: str, reasons: dict[Any, str], kept: str = "") -> SavedResidual:
    reason = reasons.get(v, "a result of the derivative")
    return SavedResidual(v.aval, bytes_of(v.aval), origin, f"{reason}{kept}")


def _reason(eqn: Equation) -> str:
    place = source.describe(eqn.source)
    return f"read by the derivative of {eqn.primitive.name}" + (f" at {place}" if place else "")


def _reason_inside(eqn: Equation, x: Var) -> str:
    """Say which line of a loop or branch has the derivative that reads a value."""
    reader = _reader_inside(eqn, x)
    place = "" if reader is None else source.describe(reader.source)
    return f", inside at {place}" if place else ""


def _reader_inside(eqn: Equation, x: Var) -> Equation | None:
    for program in held_programs(eqn.params):
        inner = program.jaxpr
        first = len(eqn.inputs) - len(inner.invars)  # the index of a branch, a number of steps
        for operand, v in zip(eqn.inputs[max(first, 0) :], inner.invars, strict=False):
            reader = next((e for e in inner.eqns if v in set(e.inputs)), None)
            if operand is x and first in (0, 1) and reader is not None:
                return _reader_inside(reader, v) or reader
    return None


def _origin(jaxpr: Jaxpr, v: Any) -> tuple[str, str]:
    """Return where a value comes from, and what a checkpoint that keeps it does so by."""
    if isinstance(v, xprim.Literal) or v in set(jaxpr.constvars):
        return "from a constant", ""
    eqn = next(e for e in jaxpr.eqns if v in set(e.outputs))
    if eqn.primitive.name == "in_memory" and _eqn_of(jaxpr, eqn.inputs[0]) is not None:
        origin, kept = _origin(jaxpr, eqn.inputs[0])
        return f"{origin}, in {eqn.params['kind']}", kept
    if eqn.primitive is checkpoint_p and isinstance(eqn.params["jaxpr"], ClosedJaxpr):
        inner, policy = eqn.params["jaxpr"].jaxpr, eqn.params["policy"]
        made = inner.outvars[eqn.outputs.index(v)]
        if any(made in set(e.outputs) for e in inner.eqns):
            return _origin(inner, made)[0], f"; kept by {_name_of(policy)}"
    for inner, made in _iterate_results_inside(eqn, eqn.outputs.index(v)):
        maker = _eqn_of(inner, made)
        if maker is not None and any(isinstance(x, Var) for x in maker.inputs):
            return _origin(inner, made)[0] + _describe_repeats(eqn), ""
    return _describe_maker(jaxpr, eqn), ""


def _describe_maker(jaxpr: Jaxpr, eqn: Equation) -> str:
    """Say by name or by operation, and line, what an equation makes."""
    place = source.describe(eqn.source)
    after = f" from {place}" if place else ""
    if eqn.primitive is name_p and eqn.params["name"] != _BY_BUDGET:
        return f"named '{eqn.params['name']}'{after}"
    if eqn.primitive is name_p:
        eqn = _eqn_of(jaxpr, eqn.inputs[0]) or eqn
    return f"output of {eqn.primitive.name}{after}"


def _iterate_results_inside(eqn: Equation, number: int) -> Iterator[tuple[Jaxpr, Any]]:
    """Yield the bodies of a call, and the value of each that is, or is stored in, a result."""
    name = eqn.primitive.name
    if name == "while":
        inner = eqn.params["body_jaxpr"].jaxpr
        made = _eqn_of(inner, inner.outvars[number])
        if made is not None and made.primitive.name == "dynamic_update_slice":
            row = _eqn_of(inner, made.inputs[1])
            yield inner, made.inputs[1] if row is None else row.inputs[0]
    elif name == "cond" or "inline" in eqn.primitive.rules:
        yield from [(p.jaxpr, p.jaxpr.outvars[number]) for p in held_programs(eqn.params)]
    elif name == "scan" and number >= eqn.params["num_carry"]:
        inner = eqn.params["jaxpr"].jaxpr
        yield inner, inner.outvars[number]


def _eqn_of(jaxpr: Jaxpr, v: Any) -> Equation | None:
    return next((e for e in jaxpr.eqns if v in set(e.outputs)), None)


def _describe_repeats(eqn: Equation) -> str:
    """Say how often what is inside is run."""
    declared, params = eqn.primitive.rules.get("programs"), eqn.params
    if declared is not None and declared.carry:
        return f", in each of {params['length']} steps" if "length" in params else ", in each step"
    avals = [x.aval for x in eqn.inputs]
    is_chosen = declared is not None and declared.decision(params, avals) is not None
    return ", in a branch" if is_chosen else ""


def _name_of(policy: Any) -> str:
    if policy is _keeps_marked:
        return "the budget"
    if policy is None:
        return "rules of custom_remat or defremat"
    function = policy.func if isinstance(policy, functools.partial) else policy
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"the policy {name.split('.<locals>')[0]}"


# ------------------------------------------------------------------------------------ checkpoint
# Rematerialization: keep less of the forward pass, compute it again in the backward pass.
#
# `checkpoint(f)` stages `f` and binds the primitive `checkpoint`. Evaluated, it is a plain call.
# In reverse mode its derivative goes onto the tape as one equation, whose residuals are the
# arguments of `f` and whatever the policy lets it save; transposing that equation computes the
# rest again. So nothing of the inside of `f` is kept between the passes but what the policy
# names. The program is kept for the next call of an equal function with equal types.

F = TypeVar("F", bound=Callable[..., Any])


@overload
def checkpoint(
    fun: F, *, prevent_cse: bool = ..., policy: Policy | None = ...,
    static_argnums: int | Sequence[int] = ..., static_argnames: str | Sequence[str] = ...,
    concrete: bool = ..., budget: int | str | None = ..., measured: bool = ...,
) -> F: ...  # fmt: skip
@overload
def checkpoint(
    fun: None = ..., *, prevent_cse: bool = ..., policy: Policy | None = ...,
    static_argnums: int | Sequence[int] = ..., static_argnames: str | Sequence[str] = ...,
    concrete: bool = ..., budget: int | str | None = ..., measured: bool = ...,
) -> Callable[[F], F]: ...  # fmt: skip
@boundary
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: bool = False,
    budget: int | str | None = None,
    measured: bool = False,
) -> Callable[..., Any]:
    """Return `fun` with its intermediate values recomputed, not stored, when differentiated.

    Args:
      fun: a function of pytrees of arrays; without it, a decorator is returned.
      prevent_cse: whether the compiler is kept from merging the recomputation with the forward
        pass (which would undo the saving); False is safe inside `scan`.
      policy: which intermediate results may be kept: a function `(primitive, *avals, **params) ->
        bool`, such as those in `checkpoint_policies`; None keeps none.
      static_argnums: positions of arguments that are passed to `fun` as they are.
      static_argnames: names of such arguments, given by position or by name.
      concrete: must be False (JAX's removed option).
      budget: in place of a policy, how many bytes the gradient may take beside arguments and
        results: a number, or a text such as `"2GB"` or `"512 MiB"`. It counts what is stored
        between the passes and the largest part that is computed again at a time, of a whole batch
        in `grad(vmap(f))` and of one example in `vmap(grad(f))`. What takes most operations a byte
        to compute again is stored; where everything fits, nothing is computed again.
      measured: whether the choice for the budget is corrected by measuring: the gradient is
        compiled with more and more values stored until its temporaries, as the compiler counts
        them, are 95% to 103% of the budget. That takes one to eleven compilations, up to forty
        where a `scan` has to store values in some of its steps. Where no choice comes as near, the
        nearest one below holds. The estimate alone is off by a tenth or so.

    Raises:
      TypeError: `policy` is not a function, `budget` neither a number nor a text.
      ValueError: `budget` is not positive, is given beside a policy, or (when the function is
        differentiated) is less than what the gradient takes at least, which the error says; or
        `measured` is given without a budget.
      ImportError: `measured` needs the package that compiles.

    Example:
      >>> from xad import checkpoint, grad
      >>> float(grad(checkpoint(lambda x: x * x * x))(2.0))
      12.0
      >>> float(grad(checkpoint(lambda x: x * x * x, budget="1MB"))(2.0))
      12.0
    """
    require(
        not concrete, "checkpoint", "concrete=True is not supported; name static_argnums instead."
    )
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy,
                                 static_argnums=static_argnums, static_argnames=static_argnames,
                                 budget=budget, measured=measured)  # fmt: skip
    check_function(fun, "checkpoint")
    _check_policy(policy)
    if budget is not None:
        require(policy is None, "checkpoint", "takes a policy or a budget, not both.")
    require(budget is not None or not measured, "checkpoint", "measured=True needs a budget.")
    chosen: Policy | MemoryBudget | None = policy
    if budget is not None:
        chosen = MemoryBudget(_memory_budget.parse_budget(budget), bool(measured))
    given = (static_argnums,) if isinstance(static_argnums, int) else static_argnums
    static = tuple(map(size_of, given))
    if static_argnames:
        options = {"prevent_cse": prevent_cse, "policy": policy, "budget": budget,
                   "measured": measured}  # fmt: skip
        return _with_static_names(fun, static, static_argnames, options)

    @transforming(fun, "checkpoint")
    def call_checkpointed(*args: Any, **kwargs: Any) -> Any:
        try:
            fixed = xprim.static_positions(static, len(args), "checkpoint")
            return _bind_call(fun, args, kwargs, fixed, prevent_cse, chosen)
        except Exception as error:
            shorten(error)
            raise

    return call_checkpointed


def _bind_call(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], fixed: Sequence[int],
    prevent_cse: Any, policy: Any,
) -> Any:  # fmt: skip
    """Bind the primitive with the program of a function for a call."""
    dynamic = [a for i, a in enumerate(args) if i not in fixed]
    leaves, in_tree = xtree.flatten((dynamic, kwargs))
    if any(isinstance(x, BaseRef) for x in leaves):
        return _with_references(fun, args, kwargs, fixed, prevent_cse, policy)
    operands = as_arrays(leaves, "checkpoint", in_tree)
    program = _program_for(fun, args, kwargs, fixed, in_tree, operands)
    outs = checkpoint_p.bind(
        *program.captured, *operands, *[use.before for use in program.refs], jaxpr=program.closed,
        prevent_cse=prevent_cse, policy=policy, differentiated=False,
    )  # fmt: skip
    count = len(program.out_avals)
    for use, value in zip(program.refs, outs[count:], strict=True):
        use.ref.write(value)
    return xtree.unflatten(program.out_tree, outs[:count])


def _with_references(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], fixed: Sequence[int],
    prevent_cse: Any, policy: Any,
) -> Any:  # fmt: skip
    """Call a checkpointed function of references: one of their values, which gives the next."""
    dynamic = {i: a for i, a in enumerate(args) if i not in fixed}
    leaves, tree = xtree.flatten((dynamic, kwargs))
    references = references_in(leaves, "checkpoint")
    if references is None:
        raise AssertionError("there is a reference among the arguments")

    @functools.wraps(fun)
    def of_values(*values: Any) -> Any:
        entered, named = xtree.unflatten(tree, references.enter(values))
        full = [entered.get(i, a) for i, a in enumerate(args)]
        return fun(*full, **named), references.leave(values)

    values = references.values(leaves)
    result, after = checkpoint(of_values, prevent_cse=prevent_cse, policy=policy)(*values)
    references.write(after)
    return result


def _with_static_names(
    fun: Callable[..., Any], static: Sequence[int], names: str | Sequence[str], options: Any
) -> Callable[..., Any]:
    """Return the checkpointed function of the arguments that are not named."""
    names = (names,) if isinstance(names, str) else tuple(names)
    parameters = list(inspect.signature(fun).parameters)
    unknown = [name for name in names if name not in parameters]
    if unknown:
        raise ValueError(f"checkpoint: the function has no argument {unknown[0]!r}.")
    named = [parameters.index(name) for name in names]

    @transforming(fun, "checkpoint")
    def call_checkpointed(*args: Any, **kwargs: Any) -> Any:
        try:
            fixed = {name: kwargs.pop(name) for name in names if name in kwargs}
            positions = [*static, *[p for p in named if p < len(args)]]
            inner = functools.partial(fun, **fixed) if fixed else fun
            return checkpoint(inner, static_argnums=positions, **options)(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    return call_checkpointed


# --- programs that are kept ----------------------------------------------------------------------

# Functions under `checkpoint`.
_programs = KeptPrograms(limit=1024)


def _program_for(
    fun: Callable[..., Any], args: Any, kwargs: Any, fixed: Sequence[int], in_tree: Any,
    operands: Sequence[Any],
) -> Staged:  # fmt: skip
    """Return the program of a function for a call, traced now unless it is kept."""

    def trace() -> Staged:
        uses: list[RefUse] = []
        closed, out_tree = xprim.stage(fun, args, kwargs, fixed, operation="checkpoint", uses=uses)
        return stage_with_refs(closed.jaxpr, closed.consts, uses, out_tree)

    statics = [(i, args[i]) for i in fixed]
    avals = [x.aval for x in operands]
    return _programs.program_of(fun, in_tree, avals, trace, statics)


def _check_policy(policy: Any) -> None:
    if not (policy is None or callable(policy) or isinstance(policy, MemoryBudget)):
        raise TypeError(message(
            "checkpoint", f"the policy must be a function, got {described(policy)}.",
            hint="checkpoint_policies has the common ones",
        ))  # fmt: skip
    if not is_hashable(policy):
        raise TypeError(message(
            "checkpoint", f"the policy must be hashable, got {described(policy)}.",
            hint="a function, or an object whose class defines __eq__ and __hash__",
        ))  # fmt: skip
    if policy in POLICY_MAKERS:
        raise TypeError(message(
            "checkpoint", f"{policy.__name__} is not a policy but makes one.",
            hint=f"policy=checkpoint_policies.{policy.__name__}(...)",
        ))  # fmt: skip


remat = checkpoint


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, jaxpr: ClosedJaxpr,
               prevent_cse: bool, policy: Any, differentiated: bool) -> Any:  # fmt: skip
    if prevent_cse and differentiated:
        operands = b.op("stablehlo.optimization_barrier", operands, avals_in, avals_in)
    return b.inline(jaxpr, operands)


def _linearize(handle: LinearizeHandle, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr,
               policy: Policy | MemoryBudget | None, **params: Any) -> Any:  # fmt: skip
    """Run the program and keep what the policy lets it; the tape computes the rest again."""
    if xprim.unrepeatable_effects(jaxpr.effects):
        raise _would_repeat_effects(jaxpr)
    mask = nonzero(tangents)
    jaxpr = with_calls_inlined(jaxpr) if policy is not None else jaxpr
    if isinstance(policy, MemoryBudget):
        return _linearize_within(
            handle, primals, tangents, jaxpr, policy, params["prevent_cse"], mask
        )
    # the backward program: the derivative given what the policy saves, without what it never reads
    program, jaxpr = jaxpr, with_remat_rules(jaxpr, policy)
    count = len(jaxpr.out_avals)
    saved = find_saved_values(jaxpr, policy)
    again = compute_again(_run_again(jaxpr), policy)
    (derived, mask_out), refs = derive_with_refs(
        derivative_given, handle, again, tuple(saved), tuple(mask)
    )
    linear, needed = xprim.prune_dead_code(derived, (False,) * count + (True,) * sum(mask_out))
    kept = tuple([v for v, n in zip(saved, needed, strict=False) if n])
    used = tuple(needed[len(saved) : len(saved) + len(primals)])
    known = len(kept) + sum(used)
    rest = [*primals, *where_true(tangents, mask), *read_refs(refs)]  # before they are written
    # the forward program: what the backward one reads of it as further results
    forward = with_results(jaxpr, kept)
    forward = forward if jaxpr is program else forward.derived(_without_marks)
    forward, written = _with_writes(handle, forward, mask, refs)
    # what the derivative computes of primals alone, and the policy saves, moves forward
    made_of_primals = find_saved_residuals(linear, known, policy)
    residuals = tuple(made_of_primals)
    wanted = [True] * len(linear.in_avals)
    if residuals:
        made, linear, is_taken = linear.derived(split_at, known, residuals)
        wanted = is_taken[len(residuals) :]
        forward = forward.derived(_with_residuals, count, used, made, tuple(wanted[: len(kept)]))
    verdicts = (*made_of_primals.values(),
                *[saved[v] for v in where_true(kept, wanted[: len(kept)])])  # fmt: skip
    if any(isinstance(verdict, Offloadable) for verdict in verdicts):
        forward = forward.derived(offload, count, verdicts)
        linear = linear.derived(fetch_residuals, verdicts)
    # both run: the forward one now, the backward one on the tape
    results = write_back_refs(written, checkpoint_p.bind(
        *primals, *read_refs(written), jaxpr=forward, policy=policy, **params
    ))  # fmt: skip
    rest = where_true(rest, needed[len(saved) :])
    operands = [*results[count:], *where_true(rest, wanted[len(kept) :])]
    out_dots = checkpoint_p.bind(*operands, jaxpr=linear, policy=policy, **params)
    return results[:count], with_zeros(handle, results[:count], out_dots, mask_out)


def _linearize_within(
    handle: LinearizeHandle, primals: Any, tangents: Any, jaxpr: ClosedJaxpr,
    budget: MemoryBudget, prevent_cse: bool, mask: Sequence[bool],
) -> Any:  # fmt: skip
    """Run the program as the checkpoints that fit into a budget."""
    split, refs = derive_with_refs(handle.linearize_jaxpr, jaxpr, mask)
    stored = sum(map(bytes_of, split.primal.out_avals[split.num_results :]))
    if budget.measured or stored > budget.nbytes:
        program = jaxpr.derived(
            _memory_budget.plan_checkpoints, tuple(mask), budget.nbytes, _values_read,
            _CALL_THAT_KEEPS[bool(prevent_cse)], budget.measured,
        )  # fmt: skip
        split, refs = derive_with_refs(handle.linearize_jaxpr, program, mask)
    values = [*primals, *read_refs(refs)]
    results = write_back_refs(refs, xprim.eval_closed(split.primal, *values))
    dots: Sequence[Any] = ()
    if any(split.nonzero_out):
        residuals = split.residuals(values, results)
        dots = xprim.eval_closed(split.linear, *residuals, *where_true(tangents, mask))
    outs = results[: split.num_results]
    return outs, with_zeros(handle, outs, dots, split.nonzero_out)


def _values_read(jaxpr: ClosedJaxpr, active: Sequence[bool]) -> set[Var]:
    """Return the values of a program that its derivative reads, were all of them stored."""
    made = [v for eqn in jaxpr.eqns for v in eqn.outputs]
    (derived, mask_out), _ = derive_with_refs(
        derivative_given, LINEARIZE_HANDLE, jaxpr, tuple(made), tuple(active)
    )
    wanted = (False,) * len(jaxpr.out_avals) + (True,) * sum(mask_out)
    _, needed = xprim.prune_dead_code(derived, wanted)
    return {v for v, is_needed in zip(made, needed, strict=False) if is_needed}


def _call_that_keeps(
    jaxpr: ClosedJaxpr, stored: Collection[Var], operands: Sequence[Any], *, prevent_cse: bool
) -> Sequence[Any]:
    """Bind a checkpoint that keeps some values of a program without constants."""
    inner = jaxpr.jaxpr
    eqns = []
    for eqn in inner.eqns:
        new = {v: Var(v.aval) for v in eqn.outputs if v in stored}
        eqns.append(eqn.replace(outputs=[new.get(v, v) for v in eqn.outputs]))
        eqns += [
            Equation(name_p, [computed], [v], {"name": _BY_BUDGET}, eqn.source)
            for v, computed in new.items()
        ]
    marked = ClosedJaxpr(inner.replace(eqns=eqns))
    return checkpoint_p.bind(*operands, jaxpr=marked, policy=_keeps_marked,
                             prevent_cse=prevent_cse, differentiated=False)  # fmt: skip


# one object for each: planned programs are cached by what they were made with
_CALL_THAT_KEEPS = {
    prevents: functools.partial(_call_that_keeps, prevent_cse=prevents)
    for prevents in (False, True)
}

_BY_BUDGET = "within the budget"


def _keeps_marked(primitive: Primitive, *_avals: Any, **params: Any) -> bool:
    """Keep the values that a budget has room for."""
    return primitive is name_p and params["name"] == _BY_BUDGET


def _with_writes(
    handle: LinearizeHandle, forward: ClosedJaxpr, mask: Sequence[bool], refs: Sequence[UsedRef]
) -> tuple[ClosedJaxpr, Sequence[UsedRef]]:
    """Return the forward program, as the rules inside compute it where these write references.

    Args:
      handle: differentiates a program.
      forward: the program, computed without rules.
      mask: for each argument, whether it has a tangent.
      refs: those that its derivative uses.

    Returns:
      The program, and the references whose values are its last arguments; those that are written
      have their next values among its last results.
    """
    if not refs:
        return forward, ()
    split, used = derive_with_refs(handle.linearize_jaxpr, forward, mask)
    count = sum(ref.is_written for ref in used)
    if not count:
        return forward, ()
    return split.primal.derived(_results_and_writes, split.num_results, count), used


def _results_and_writes(primal: ClosedJaxpr, results: int, writes: int) -> ClosedJaxpr:
    """Return a program without the residuals between its results and what it writes."""
    outvars = primal.jaxpr.outvars
    kept = primal.jaxpr.replace(outvars=[*outvars[:results], *outvars[-writes:]])
    return xprim.prune_dead_code(ClosedJaxpr(kept, primal.consts), keep_arguments=True)[0]


def _with_residuals(
    forward: ClosedJaxpr, count: int, used: Sequence[bool], made: ClosedJaxpr,
    wanted: Sequence[bool],
) -> ClosedJaxpr:  # fmt: skip
    """Return the forward program with residuals, and those of the values it keeps that are wanted.

    Args:
      forward: gives the results, the values of it that the derivative is given, and what it writes.
      count: how many results there are.
      used: for each of its first arguments, whether the derivative takes it.
      made: computes the residuals from those values and arguments.
      wanted: for each of the values, whether it is still wanted beside the residuals.
    """
    end = count + len(wanted)

    def run(*args: Any) -> list[Any]:
        results = xprim.eval_closed(forward, *args)
        values = results[count:end]
        residuals = xprim.eval_closed(made, *values, *where_true(args[: len(used)], used))
        return [*results[:count], *residuals, *where_true(values, wanted), *results[end:]]

    return xprim.trace_to_closed(run, forward.in_avals, name=forward.jaxpr.name)


def _would_repeat_effects(jaxpr: ClosedJaxpr) -> UndefinedRuleError:
    return UndefinedRuleError(message(
        "checkpoint", f"{jaxpr.jaxpr.name or 'the function'} has side effects, which computing it "
        "again in the backward pass would repeat.",
        got=f"effects: {xprim.effects_text(xprim.unrepeatable_effects(jaxpr.effects))}",
        hint="leave what has the effects out of the checkpointed function",
    ))  # fmt: skip


def _mark_derived(kind: str, params: dict[str, Any], entries: Any) -> dict[str, Any]:
    """Mark what runs in the backward pass."""
    return {"differentiated": True} if kind == "transpose" else {}


checkpoint_p = Primitive(
    "checkpoint",
    call_like=True,
    **call_rules(
        "checkpoint",
        derived=_mark_derived,
        stablehlo=_stablehlo,
        linearize=_linearize,
        sums_later=True,
    ),
)
