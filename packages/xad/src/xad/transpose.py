"""Transposition: run a linear program backwards, from cotangents of results to those of arguments.

`backward_pass` walks the equations of a jaxpr in reverse and gives each primitive's `transpose`
rule the cotangents of its results; operands that the program is linear in are shown to the rule as
`Linear`. Equations that depend on no linear argument (a checkpointed program has them) are
evaluated first. The rules' operations go to the current trace, so reverse mode nests as well.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any

from xad import derivative_kernels
from xad._linearize import TapeTrace
from xad.derivative_kernels import KernelEquation, LinearizedKernel, divide, template_of
from xad.tangents import Tangent, add_tangents, instantiate, retype_as, tangent_aval
from xad.used_elements import Readers, find_used_elements, operands_of
from xnp.lax import add_p
from xprim import (
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Equation,
    EquationTemplate,
    Jaxpr,
    Linear,
    Literal,
    ShapedArray,
    Undefined,
    Var,
    Zero,
    append_template,
    config,
    custom_vjp_call_p,
    custom_vjp_linear_p,
    state,
    trace_to_closed,
    unrepeatable_effects,
)
from xprim.derived_refs import claim_ref_uses
from xprim.jaxpr import held_programs, programs_inside
from xprim.kernels import Kernel, KernelTable, numpy_function, numpy_operand
from xprim.rules import BACKWARD
from xprim.sharded_types import (
    ShardingTypeError,
    as_typed,
    cotangent,
    cotangent_as,
    keep_unreduced,
    near,
    parts_of_cotangents,
    with_auto_sharding,
)

__all__ = ()

_values = config.values
_type_sharding = operator.attrgetter("aval.type_sharding")

Env = dict[Any, Any]


class Cotangents(dict[Any, Any]):
    """The cotangents of variables in a backward pass, as far as they are not zero.

    Attributes:
      zeros: the variables whose cotangent is 0 by what a later rule has said.
    """

    __slots__ = ("zeros",)

    def __init__(self) -> None:
        self.zeros: set[Any] = set()


_NO_MESHES: Mapping[Any, tuple[Any, ...]] = MappingProxyType({})


def backward_pass(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    args: Sequence[Any],
    cotangents: Sequence[Tangent],
    all_linear: bool = False,
    sums_later: bool = False,
    meshes: Mapping[Any, tuple[Any, ...]] = _NO_MESHES,
    unwanted: Collection[Var] = (),
) -> list[Tangent]:
    """Return the cotangents of the arguments that are `Linear`, in their order.

    Args:
      jaxpr: a program that is linear in some arguments.
      consts: the values of its constants.
      args: for each argument its value, or `Linear(aval)`.
      cotangents: for each result its cotangent, an Array or a `Zero`.
      all_linear: whether every equation is known to depend on a linear argument, as on a tape.
      sums_later: whether what members of a mesh give for an argument that they share may stay
        apart, in the type of the result, since the caller adds it up.
      meshes: for variables whose types are over a mesh, the meshes of their primals.
      unwanted: linear arguments whose cotangents are not read: what leads to them alone is not
        transposed.
    """
    env: Env = dict(zip(jaxpr.constvars, consts, strict=True))
    linear_vars: list[Var] = []
    for v, x in zip(jaxpr.invars, args, strict=True):
        if type(x) is Linear:
            linear_vars.append(v)
        else:
            env[v] = x
    cts = Cotangents()
    for out, ct in zip(jaxpr.outvars, cotangents, strict=True):
        if type(out) is Var and out not in env and type(ct) is not Zero:
            cts[out] = _join(cts[out], ct) if out in cts else ct
    eqns = jaxpr.eqns if all_linear else _linear_equations(jaxpr, env)
    if unwanted:
        eqns = _leading_elsewhere(eqns, env, set(unwanted))
    if meshes:
        _run_backwards_near(meshes, eqns, env, cts)
    else:
        _run_backwards(eqns, env, cts, results=jaxpr.outvars)
    results = []
    for v in linear_vars:
        ct = cts.get(v)
        if ct is None:
            ct = Zero(cotangent(v.aval))
        elif not (v.aval.type_sharding is ct.aval.type_sharding is None):
            with near(meshes.get(v, ())):
                ct = _sum_as(v.aval, ct, sums_later)
        results.append(ct)
    return results


# Where types give the shardings of values on a mesh, a cotangent is brought to the type that its
# value wants once, after those of all uses are added up: of a parameter that members share and use
# n times, one sum over the members is a collective, not n.


class _Terms:
    """Cotangents of a value that are of several types, those of each added up.

    Attributes:
      aval: the type of one of them, which gives its sharding on a mesh.
      by_sharding: the sums.
    """

    __slots__ = ("aval", "by_sharding")

    def __init__(self, *terms: Any) -> None:
        self.by_sharding = {ct.aval.type_sharding: ct for ct in terms}
        self.aval = next(ct.aval for ct in terms if ct.aval.type_sharding is not None)


def _join(a: Any, b: Any) -> Any:
    """Return what two uses of a value give, added up where it is of one type."""
    kind = b.aval.type_sharding
    if type(a) is not _Terms:
        same = a.aval.type_sharding is kind or a.aval.type_sharding == kind
        return add_p.bind(a, b)[0] if same else _Terms(a, b)
    term = a.by_sharding.get(kind)
    a.by_sharding[kind] = b if term is None else add_p.bind(term, b)[0]
    return a


def _sum_as(aval: ShapedArray, ct: Any, sums_later: bool = False) -> Any:
    """Return the cotangent of a value of a type, of what its uses gave.

    Args:
      aval: the type.
      ct: a cotangent, or terms of it.
      sums_later: whether what members give may stay apart, if no use gave anything else.
    """
    if type(ct) is _Terms:
        terms = [cotangent_as(x, aval) for x in ct.by_sharding.values()]
        return functools.reduce(add_tangents, terms)
    return ct if sums_later and _waits(aval, ct) else cotangent_as(ct, aval)


def _waits(aval: ShapedArray, ct: Any) -> bool:
    """Return whether members give cotangents for a value that they share: their sum can wait."""
    if aval.type_sharding is not None or type(ct) is _Terms:
        return False
    sharding = ct.aval.type_sharding
    return bool(sharding.varying) and not (sharding.spec.names() or sharding.spec.sums)


def _run_backwards(
    eqns: Sequence[Equation], env: Env, cts: Cotangents, scopes: tuple[str, ...] | None = None,
    results: Sequence[Any] | None = None, later: Readers | None = None,
) -> None:  # fmt: skip
    """Transpose equations from the last to the first; their own operations keep their lines.

    Args:
      eqns: the equations.
      env: the values of what is not linear.
      cts: cotangents by variable, to which those of the operands are added.
      scopes: the name scopes around; one of the backward pass inside of the current ones without.
      results: what the program returns, which says which elements of a value are used; without
        them all may be.
      later: the equations that read results of these.
    """
    now = state.__dict__
    outer, outer_stack = now["source"], now["name_stack"]
    backward = (*outer_stack, BACKWARD) if scopes is None else scopes
    now["name_stack"] = backward
    readers = None if results is None else Readers(eqns, results, later)
    try:
        for eqn in reversed(eqns):
            if type(eqn) is KernelEquation:
                staged = type(eqn.kernel.run) is EquationTemplate
                if staged:
                    now["source"], now["name_stack"] = eqn.source, backward + eqn.name_stack
                run = _run_template_backwards if staged else _run_kernel_backwards
                if _must_expand(eqn, env, cts, readers) or not run(eqn, cts):
                    plain, values = eqn.expand()
                    env.update(values)
                    _run_backwards(plain, env, cts, backward, results, readers)
                continue
            given = _cotangents_of_results(eqn, cts)
            if given is None:
                given = _zeros_by_rule(eqn, env, cts)
                if given is None:
                    continue
            now["name_stack"] = backward + eqn.name_stack
            if eqn.source is not None:
                now["source"] = eqn.source
            if len(given) > 1 and "used" in eqn.primitive.rules:
                _transpose_used(eqn, given, env, cts, readers)
            else:
                _transpose_equation(eqn, given, env, cts)
    finally:
        now["source"], now["name_stack"] = outer, outer_stack


def _must_expand(
    eqn: KernelEquation, env: Env, cts: Cotangents, readers: Readers | None,
) -> bool:  # fmt: skip
    """Return whether the transpose of a kernel depends on more than the cotangents."""
    if _has_zeros_by_rule(eqn, cts):
        return True
    if not eqn.kernel.reads_used or readers is None:
        return False
    used = find_used_elements(eqn.outputs, readers, env)
    return any(x is not None for x in used)


def _transpose_used(
    eqn: Equation, given: Sequence[Tangent], env: Env, cts: Cotangents, readers: Readers | None,
) -> None:  # fmt: skip
    """Transpose an equation whose rule takes which elements of its results are used."""
    used: Sequence[Any] = [None] * len(given)
    if readers is not None:
        used = find_used_elements(eqn.outputs, readers, env)
    operands = operands_of(eqn, env)
    rule = functools.partial(eqn.primitive.rules["used"], given, used)
    if any(map(_type_sharding, (*given, *operands))):
        rule = functools.partial(eqn.primitive.rules["transpose"], given)
    _add_cotangents(eqn, operands, rule(*operands, **eqn.params), cts)


def _run_backwards_near(
    meshes: Mapping[Any, tuple[Any, ...]], eqns: Sequence[Equation], env: Env, cts: Cotangents
) -> None:
    """Transpose equations, with cotangents on the meshes of the primals.

    Those of an equation's operands come first, then those of its results and of what follows it.
    """
    nearest: dict[Any, None] = {}
    for eqn in reversed(eqns):
        own = [mesh for v in (*eqn.inputs, *eqn.outputs) for mesh in meshes.get(v, ())]
        nearest = dict.fromkeys([*own, *nearest])
        with near(tuple(nearest)):
            _run_backwards([eqn], env, cts)


def _leading_elsewhere(
    eqns: Sequence[Equation], env: Env, unwanted: set[Var]
) -> Sequence[Equation]:
    """Return the equations that depend on a linear value beside the unwanted ones.

    Args:
      eqns: they depend on linear values, each.
      env: the values of what is not linear.
      unwanted: linear values; those that depend on these alone are added.
    """
    leading: list[Equation] = []
    for eqn in eqns:
        linear = [x for x in eqn.inputs if type(x) is Var and x not in env]
        if unwanted.issuperset(linear):
            unwanted.update(eqn.outputs)
        elif type(eqn) is KernelEquation and not unwanted.isdisjoint(linear):
            plain, values = eqn.expand()
            env.update(values)
            leading += _leading_elsewhere(plain, env, unwanted)
        else:
            leading.append(eqn)
    return leading


def _linear_equations(jaxpr: Jaxpr, env: Env) -> list[Equation]:
    """Evaluate what does not depend on linear arguments; return the equations that do."""
    linear, outer, outer_stack = [], state.source, state.name_stack
    try:
        for eqn in jaxpr.eqns:
            state.source, state.name_stack = eqn.source, outer_stack + eqn.name_stack
            known = tuple([type(x) is Literal or x in env for x in eqn.inputs])
            if all(known):
                _evaluate(eqn, env)
            elif len(eqn.outputs) > 1 and any(known) and "dce" in eqn.primitive.rules:
                linear += _linear_part(eqn, known, env)
            else:
                linear.append(eqn)
    finally:
        state.source, state.name_stack = outer, outer_stack
    return linear


def _evaluate(eqn: Equation, env: Env) -> None:
    operands = tuple([x.value if type(x) is Literal else env[x] for x in eqn.inputs])
    with as_typed(eqn):
        results = state.trace.process(eqn.primitive, operands, eqn.params)
    env.update(zip(eqn.outputs, results, strict=True))


def _linear_part(eqn: Equation, known: tuple[bool, ...], env: Env) -> list[Equation]:
    """Evaluate the results of a call that need no linear operand; return the call of the others."""
    primitive = eqn.primitive
    now, later = divide(primitive, [x.aval for x in eqn.inputs], known, eqn.params)
    if not now.results or unrepeatable_effects(primitive.effects(eqn.params)):
        return [eqn]
    now_eqn, later_eqn = [
        Equation(primitive, [eqn.inputs[k] for k in part.operands],
                 [eqn.outputs[k] for k in part.results], part.params, eqn.source,
                 eqn.name_stack)
        for part in (now, later)
    ]  # fmt: skip
    _evaluate(now_eqn, env)
    return [later_eqn] if later.results else []


def _cotangents_of_results(eqn: Equation, cts: Cotangents) -> Sequence[Tangent] | None:
    """Take the cotangents of an equation's results; None when all of them are zero."""
    outputs = eqn.outputs
    if len(outputs) == 1:
        ct = cts.pop(outputs[0], None)
        if ct is None:
            return None
        aval = outputs[0].aval
        if aval.type_sharding is not None or ct.aval.type_sharding is not None:
            ct = _sum_as(aval, ct, _leaves_members_apart(eqn))
        return (ct,)
    given = [_sum_as(v.aval, cts.pop(v)) if v in cts else Zero(cotangent(v.aval)) for v in outputs]
    return None if all(type(ct) is Zero for ct in given) else given


def _has_zeros_by_rule(eqn: Equation, cts: Cotangents) -> bool:
    """Return whether a later rule has said of a result that its cotangent is 0."""
    return not cts.zeros.isdisjoint(eqn.outputs)


def _zeros_by_rule(eqn: Equation, env: Env, cts: Cotangents) -> Sequence[Tangent] | None:
    """Return zeros for an equation whose results have no other cotangents, where rules want them.

    A backward rule of `custom_vjp` may return what does not depend on the cotangents that it gets,
    as the next scales of a quantized layer do not. So it runs wherever its function leads to the
    result, also where a later rule returns None for what is computed from it.

    Returns:
      None where no such rule is in the equation: then its operands have zeros, too.
    """
    if not _has_zeros_by_rule(eqn, cts):
        return None
    zeros = [Zero(cotangent(v.aval)) for v in eqn.outputs]
    if eqn.primitive is custom_vjp_linear_p:
        return zeros
    if any(map(_has_backward_rules, held_programs(eqn.params))):
        return [instantiate(zero) if v in cts.zeros else zero
                for v, zero in zip(eqn.outputs, zeros, strict=True)]  # fmt: skip
    cts.zeros.update([x for x in eqn.inputs if type(x) is Var and x not in env])
    return None


def _has_backward_rules(closed: ClosedJaxpr) -> bool:
    return closed.derived(_calls_backward_rules)


def _calls_backward_rules(closed: ClosedJaxpr) -> bool:
    own = any(eqn.primitive in (custom_vjp_call_p, custom_vjp_linear_p) for eqn in closed.eqns)
    return own or any(map(_has_backward_rules, programs_inside(closed)))


def _leaves_members_apart(eqn: Equation) -> bool:
    """Return whether a sum over members may as well follow the transpose of an equation.

    Of all but collectives it may, since what it is multiplied by is one value for all members. It
    does where the operand is no larger, and of no narrower dtype, which would round the terms:
    `broadcast`, a cast of float32 to bfloat16, a transposition of axes.
    """
    primitive, (out,) = eqn.primitive, eqn.outputs
    if primitive.call_like or "shard" in primitive.rules:
        return False
    avals = [x.aval for x in (*eqn.inputs, out) if type(x) is Var]
    if len(avals) != 2 or not all(type(a.size) is int for a in avals):
        return False
    operand, result = avals
    return operand.size <= result.size and operand.dtype.itemsize >= result.dtype.itemsize


def _transpose_equation(eqn: Equation, given: Sequence[Tangent], env: Env, cts: Cotangents) -> None:
    """Add the cotangents of an equation's linear operands to `cts`."""
    primitive = eqn.primitive
    operands = operands_of(eqn, env)
    rule = primitive.rules["transpose"]
    if type(rule) is Undefined:
        rule = primitive.rule("transpose")  # raises with the reason
    if primitive.call_like:
        handle = SUMS_LATER if "sums_later" in primitive.rules else TRANSPOSE_HANDLE
        results = rule(handle, given, *operands, **eqn.params)
    elif any(map(_type_sharding, (*given, *operands))):
        results = _by_rule_over_axes(rule, given, operands, eqn.params)
    else:
        results = rule(given, *operands, **eqn.params)
    _add_cotangents(eqn, operands, results, cts)


def _add_cotangents(
    eqn: Equation, operands: Sequence[Any], results: Sequence[Tangent], cts: Cotangents
) -> None:
    for x, operand, result in zip(eqn.inputs, operands, results, strict=True):
        if type(operand) is not Linear:
            continue
        if type(result) is Zero:
            cts.zeros.add(x)
        else:
            old = cts.get(x)
            cts[x] = result if old is None else _join(old, result)


def _by_rule_over_axes(
    rule: Callable[..., Sequence[Tangent]], given: Sequence[Tangent], operands: Sequence[Any],
    params: dict[str, Any],
) -> Sequence[Tangent]:  # fmt: skip
    """Return the cotangents of operands that are sharded over explicit axes of a mesh.

    They have the operands' shardings. Where the rule's own operations cannot infer them, the
    compiler chooses, without unreduced values.
    """
    linear = [i for i, x in enumerate(operands) if type(x) is Linear]
    apart = parts_of_cotangents([operands[i].aval for i in linear])
    values = [x for x in (*given, *operands) if isinstance(x, Array)]
    try:
        with keep_unreduced(apart) if apart else nullcontext():
            return rule(given, *operands, **params)
    except ShardingTypeError:
        if parts_of_cotangents([cotangent(x.aval) for x in values]):
            raise
    return _with_auto_sharding(rule, given, operands, params, linear, values)


def _with_auto_sharding(
    rule: Callable[..., Sequence[Tangent]], given: Sequence[Tangent], operands: Sequence[Any],
    params: dict[str, Any], linear: Sequence[int], values: Sequence[Any],
) -> Sequence[Tangent]:  # fmt: skip
    def transpose_outside(*arrays: Any) -> list[Any]:
        rest = iter(arrays)
        cts, xs = [[next(rest) if isinstance(x, Array) else x for x in side]
                   for side in (given, operands)]  # fmt: skip
        found = rule(cts, *xs, **params)
        return [instantiate(found[i]) for i in linear]

    results = iter(
        with_auto_sharding(transpose_outside, values, [operands[i].aval for i in linear])
    )
    return [next(results) if type(x) is Linear else Zero(x.aval) for x in operands]


# --- kernels --------------------------------------------------------------------------------------


class _BackwardKernel(Kernel):
    """The way back of a `LinearizedKernel` for some cotangents.

    `run` takes the residuals and the cotangents that are given.

    Attributes:
      numbers: of the arguments whose cotangents are returned.
    """

    __slots__ = ("numbers",)

    def __init__(self, run: Any, program: ClosedJaxpr, numbers: Sequence[int]) -> None:
        super().__init__(run, program.out_avals, (program,))
        self.numbers = numbers


# by the kernel of a primitive, and the abstract values of the cotangents, None for zero
_kernels = KernelTable("transpose", rule_kind="transpose")
# the same while programs are staged: a rule is traced once for all that differentiate by it
_templates = KernelTable(
    "transpose", rule_kind="transpose", uses=derivative_kernels.USES_BEFORE_TEMPLATE
)


def _run_kernel_backwards(eqn: KernelEquation, cts: Cotangents) -> bool:
    """Add the cotangents of an equation's arguments to `cts` by one function, if that may be.

    Returns:
      Whether it was done; else the plain equations are to be transposed.
    """
    values = [*eqn.residuals]
    key: list[Any] = [eqn.primitive, eqn.kernel]
    for v in (*eqn.outputs, *eqn.inputs):
        ct = cts.get(v)
        if ct is None:
            key.append(None)
            continue
        if type(ct) is not ConcreteArray:
            return False
        host = ct.host if ct.buffer is None else numpy_operand(ct)
        if host is None:
            return False
        key.append(ct.aval)
        values.append(host)
    kernel = _kernels.get((*key, state.__dict__["options"]))
    if type(kernel) is not _BackwardKernel:
        kernel = _kernels.use(key, _backward_kernel, eqn.kernel, key[2:])
        if kernel is None:
            return False
    for v in eqn.outputs:
        cts.pop(v, None)
    results = state.run_quietly(kernel.run, *values)
    for k, aval, result in zip(kernel.numbers, kernel.avals_out, results, strict=True):
        cts[eqn.inputs[k]] = ConcreteArray(result, aval)
    if len(kernel.numbers) < len(eqn.inputs):
        _mark_zeros(eqn, cts)
    return True


def _run_template_backwards(eqn: KernelEquation, cts: Cotangents) -> bool:
    """Do what `_run_kernel_backwards` does by a template, at the line and scopes of now."""
    values = [*eqn.residuals]
    key: list[Any] = [eqn.primitive, eqn.kernel]
    for v in (*eqn.outputs, *eqn.inputs):
        ct = cts.get(v)
        if ct is None:
            key.append(None)
            continue
        if ct.aval.type_sharding is not None:
            return False
        key.append(ct.aval)
        values.append(ct)
    kernel = _templates.use(key, _backward_template, eqn.kernel, key[2:])
    if kernel is None:
        return False
    for v in eqn.outputs:
        cts.pop(v, None)
    results = append_template(state.trace, kernel.run, values)
    cts.update(zip([eqn.inputs[k] for k in kernel.numbers], results, strict=True))
    if len(kernel.numbers) < len(eqn.inputs):
        _mark_zeros(eqn, cts)
    return True


def _mark_zeros(eqn: KernelEquation, cts: Cotangents) -> None:
    cts.zeros.update([v for v in eqn.inputs if v not in cts])


def _backward_kernel(
    kernel: LinearizedKernel, key: Sequence[Any], executable: Callable[..., Any] = numpy_function
) -> _BackwardKernel:
    """Return the way back for some cotangents.

    Args:
      kernel: of a primitive.
      key: for each result, then for each argument of `kernel.linear`, the abstract value of its
        cotangent, or None for zero.
      executable: makes of the program what runs it.
    """
    linear = kernel.linear
    count = len(linear.constvars)
    given = [v for v, a in zip((*linear.outvars, *linear.invars), key, strict=True) if a]
    numbers: list[int] = []

    def backward(*values: Any) -> list[Any]:
        env = dict(zip(linear.constvars, values[:count], strict=True))
        cts = Cotangents()
        cts.update(zip(given, values[count:], strict=True))
        _run_backwards(linear.eqns, env, cts, results=linear.outvars)
        numbers.extend([k for k, v in enumerate(linear.invars) if v in cts])
        return [_sum_as(linear.invars[k].aval, cts[linear.invars[k]]) for k in numbers]

    avals = [*[v.aval for v in linear.constvars], *[a for a in key if a]]
    program = trace_to_closed(backward, avals)
    return _BackwardKernel(executable(program), program, numbers)


def _backward_template(kernel: LinearizedKernel, key: Sequence[Any]) -> _BackwardKernel:
    """Return the way back as a template; the arguments are those of `_backward_kernel`."""
    return _backward_kernel(kernel, key, template_of)


def transpose_on_tape(
    fun: Callable[..., Sequence[Tangent]], in_avals: Sequence[ShapedArray]
) -> Callable[[Sequence[Any]], list[Any]]:
    """Return the transpose of a linear function, which is run once, on a tape.

    What does not depend on its arguments is evaluated at once, so that Python may branch on it.

    Args:
      fun: of flat lists, linear in its arguments; it may give `Zero`.
      in_avals: the abstract values of the arguments.
    """
    tape, previous = TapeTrace(state.trace), state.trace
    args = [tape.argument(a) for a in in_avals]
    state.trace = tape
    try:
        results = fun(*args)
    finally:
        state.trace = previous
        tape.closed = True
    owned = [tape.owns(x) for x in results]
    jaxpr, consts = tape.finish([x for x, own in zip(results, owned, strict=True) if own])

    def pull(cotangents: Sequence[Any]) -> list[Any]:
        given = [ct for ct, own in zip(cotangents, owned, strict=True) if own]
        return [
            retype_as(ct, a) for ct, a in
            zip(backward_pass(jaxpr, consts, list(map(Linear, in_avals)), given), in_avals,
                strict=True)
        ]  # fmt: skip

    return pull


class TransposeHandle:
    """Given to the `transpose` rules of call-like primitives.

    Args:
      sums_later: whether results may be cotangents that members of a mesh give for a value that
        they share, which are added up where the call stands.
    """

    __slots__ = ("_sums_later",)

    instantiate = staticmethod(instantiate)
    tangent_aval = staticmethod(tangent_aval)

    def __init__(self, sums_later: bool = False) -> None:
        self._sums_later = sums_later

    def backward_pass(
        self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any],
        cotangents: Sequence[Tangent], all_linear: bool = False,
    ) -> list[Tangent]:  # fmt: skip
        """Return the cotangents of the arguments that are `Linear`, in their order."""
        return backward_pass(jaxpr, consts, args, cotangents, all_linear, self._sums_later)

    def transpose_jaxpr(
        self,
        closed: ClosedJaxpr,
        linear: Sequence[bool],
        nonzero_cts: Sequence[bool],
        instantiate_all: bool = False,
    ) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
        """Return the transpose of a program.

        Args:
          closed: the program.
          linear: for each argument, whether to transpose with respect to it.
          nonzero_cts: for each result, whether its cotangent is given.
          instantiate_all: whether cotangents of linear arguments are results although zero.

        Returns:
          A program from the other arguments followed by the given cotangents to the nonzero
          cotangents of the linear arguments, and for each linear argument whether it is among them.
        """
        return closed.derived(
            _transpose, tuple(linear), tuple(nonzero_cts), instantiate_all, self._sums_later
        )


TRANSPOSE_HANDLE = TransposeHandle()
SUMS_LATER = TransposeHandle(sums_later=True)


def _transpose(
    closed: ClosedJaxpr, linear: Any, nonzero_cts: Any, instantiate_all: bool, sums_later: bool
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    others = [a for a, lin in zip(closed.in_avals, linear, strict=True) if not lin]
    ct_avals = [cotangent(a.strong())
                for a, nz in zip(closed.out_avals, nonzero_cts, strict=True) if nz]  # fmt: skip
    nonzero_out: list[bool] = []

    def backward(*values: Any) -> list[Any]:
        rest = iter(values)
        args = [Linear(a) if lin else next(rest)
                for a, lin in zip(closed.in_avals, linear, strict=True)]  # fmt: skip
        cts = [next(rest) if nz else Zero(cotangent(a))
               for a, nz in zip(closed.out_avals, nonzero_cts, strict=True)]  # fmt: skip
        results = backward_pass(closed.jaxpr, closed.consts, args, cts, sums_later=sums_later)
        nonzero_out.extend(instantiate_all or type(r) is not Zero for r in results)
        return [instantiate(r) for r, nz in zip(results, nonzero_out, strict=True) if nz]

    avals = [*others, *ct_avals]
    program = trace_to_closed(backward, avals, name=closed.jaxpr.name, refs=claim_ref_uses())
    return program, tuple(nonzero_out)
