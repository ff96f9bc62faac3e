"""scan: run a program for each element along the leading axis of arrays, with a carry."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import xprim
from xnp.primitives import control_flow
from xnp.primitives.control_flow import derive, grow_mask, rearrange, split_at, trace_fun
from xnp.primitives.table import add, bind, broadcast_to, convert, counting
from xprim import (
    ClosedJaxpr,
    Linear,
    ShapedArray,
    Zero,
    contracts,
    dtypes,
    not_mapped,
    shaped_array,
    sharded_types,
    state,
)
from xprim.calls import Programs, narrow_program, nonzero, where_true, with_zeros
from xprim.contracts import BatchAxis, Builder, JVPHandle, LinearizeHandle, TransposeHandle
from xprim.derived_refs import derive_with_refs, read_refs, write_back_refs
from xprim.errors import message
from xprim.jaxpr import held_programs
from xprim.kernels import Refusal
from xprim.requirements import require
from xprim.sharded_types import cotangent, reshard_as, whole, with_dimension, without_dimension

__all__ = ()


# ------------------------------------------------------------------------------ scan derivatives
# The derivatives of scan: forward along the loop, linearized with stacked residuals, transposed.
#
#     jvp        a scan over (carry, carry_dot); the body is the derivative of the body
#     linearize  the primal scan gives the residuals of each step as extra ys; the linear scan
#     takes
#                them as xs. Residuals that all steps share are computed once and are consts; one
#                that
#                is an element of an xs is that xs.
#     transpose  a scan in the other direction, which carries the cotangents of consts and carry
#
# A tangent of the carry that is zero at first may become nonzero by a step, so the mask of
# nonzero ones grows until a step does not change it.


def _bind(*operands: Any, **params: Any) -> tuple[Any, ...]:
    return xprim.get_primitive("scan").bind(*operands, **params)


# --- forward mode ------------------------------------------------------------------------------


def jvp_rule(handle: JVPHandle, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, num_consts: int,
             num_carry: int, **options: Any) -> Any:  # fmt: skip
    """Scan over values and tangents together."""
    stops = options.get("num_stops", 0)
    stop, consts, carry, xs = split_at(primals, stops, num_consts, num_carry)
    _, const_dots, carry_dots, x_dots = split_at(tangents, stops, num_consts, num_carry)
    const_mask, x_mask = nonzero(const_dots), nonzero(x_dots)
    num_ys = len(jaxpr.out_avals) - num_carry

    def body_jvp(mask: list[bool]) -> Any:
        wanted = [*mask, *[False] * num_ys]
        return handle.jvp_jaxpr(jaxpr, [*const_mask, *mask, *x_mask], wanted)

    forward, mask, y_mask = grow_mask(body_jvp, nonzero(carry_dots))
    counts = (sum(const_mask), sum(mask))
    body = derive(
        forward, ("scan", num_consts, num_carry),
        lambda: _interleave(forward, num_consts, num_carry, len(xs), num_ys, counts),
    )  # fmt: skip
    dots = [handle.instantiate(t) for t in where_true(carry_dots, mask)]
    results = _bind(
        *stop, *consts, *where_true(const_dots, const_mask), *carry, *dots,
        *xs, *where_true(x_dots, x_mask),
        jaxpr=body, num_consts=num_consts + counts[0], num_carry=num_carry + counts[1], **options,
    )  # fmt: skip
    carry_out, dots_out, ys, y_dots = split_at(results, num_carry, counts[1], num_ys)
    outs = [*carry_out, *ys]
    return outs, with_zeros(handle, outs, [*dots_out, *y_dots], [*mask, *y_mask])


def _interleave(
    forward: ClosedJaxpr, num_consts: int, num_carry: int, num_xs: int, num_ys: int,
    counts: tuple[int, int],
) -> ClosedJaxpr:  # fmt: skip
    """Bring the derivative of a body into the order of a body: consts, carry, xs; carry, ys."""
    consts, carry, xs, const_dots, dots, x_dots = split_at(
        range(len(forward.in_avals)), num_consts, num_carry, num_xs, *counts
    )
    carry_out, ys, dots_out, y_dots = split_at(
        range(len(forward.out_avals)), num_carry, num_ys, counts[1]
    )
    return rearrange(
        forward,
        [*consts, *const_dots, *carry, *dots, *xs, *x_dots],
        [*carry_out, *dots_out, *ys, *y_dots],
    )


# --- linearization -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Split:
    """A body split into a primal and a linear one.

    Rules inside may use references. The values of those that they write are carried behind the
    carry, the values of others are consts behind the consts.

    Attributes:
      primal: consts, carry, x -> carry, y, residuals of the step.
      shared: from the consts to the residuals that all steps share.
      linear: residual consts, const tangents, carry tangents, residual xs, x tangents -> carry
        tangents, y tangents.
      const_args: the consts that are residuals.
      x_args: the xs that are residuals.
    """

    primal: ClosedJaxpr
    shared: ClosedJaxpr
    linear: ClosedJaxpr
    const_args: list[int]
    x_args: list[int]


def linearize_rule(handle: LinearizeHandle, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr,
                   num_consts: int, num_carry: int, **options: Any) -> Any:  # fmt: skip
    """Run the primal scan, which also stacks residuals; leave a linear scan on the tape."""
    stops = options.get("num_stops", 0)
    stop, consts, carry, xs = split_at(primals, stops, num_consts, num_carry)
    _, const_dots, carry_dots, x_dots = split_at(tangents, stops, num_consts, num_carry)
    const_mask, x_mask = nonzero(const_dots), nonzero(x_dots)
    num_ys = len(jaxpr.out_avals) - num_carry

    def linearize(mask: list[bool]) -> Any:
        wanted = [*mask, *[False] * num_ys]
        found = derive_with_refs(
            handle.linearize_jaxpr, jaxpr, [*const_mask, *mask, *x_mask], wanted
        )
        return found, found[0].nonzero_out

    (whole, refs), carry_mask, y_mask = grow_mask(linearize, nonzero(carry_dots))
    written = [used.is_written for used in refs]
    counts = (num_consts, num_carry, len(xs), sum(const_mask))
    split: _Split = derive(
        whole.primal, ("scan linearize", counts, tuple(carry_mask), tuple(written)),
        lambda: _split_body(whole, counts, carry_mask, written),
    )  # fmt: skip
    consts, carry = _with_values(consts, carry, read_refs(refs), written)
    results = _bind(
        *stop, *consts, *carry, *xs, jaxpr=split.primal, num_consts=len(consts),
        num_carry=len(carry), **options,
    )  # fmt: skip
    carry_out, ends, ys, stacked = split_at(results, num_carry, written.count(True), num_ys)
    outs = write_back_refs(refs, [*carry_out, *ys, *ends])
    mask = [*carry_mask, *y_mask]
    if not any(mask):
        return outs, with_zeros(handle, outs, (), mask)
    shared = xprim.eval_closed(split.shared, *consts)
    residual_consts = [*[consts[i] for i in split.const_args], *shared]
    dots_in = where_true(const_dots, const_mask)
    dots = [handle.instantiate(t) for t in where_true(carry_dots, carry_mask)]
    out_dots = _bind(
        *stop, *residual_consts, *dots_in, *dots, *[xs[i] for i in split.x_args], *stacked,
        *where_true(x_dots, x_mask), jaxpr=split.linear, num_carry=len(dots),
        num_consts=len(residual_consts) + len(dots_in), **options,
    )  # fmt: skip
    return outs, with_zeros(handle, outs, out_dots, mask)


def _split_body(
    split: Any, counts: tuple[int, int, int, int], carry_mask: list[bool], written: list[bool]
) -> _Split:
    """Return the two bodies of a linearized one.

    Args:
      split: the linearized body. The values of references are its last arguments, and those that it
        writes its last results.
      counts: of the consts, the carry, the xs, and the consts with a tangent.
      carry_mask: which parts of the carry have one.
      written: for each reference, whether it is written.
    """
    num_consts, num_carry, num_xs, num_const_dots = counts
    primal = split.primal.jaxpr
    end = len(primal.outvars) - written.count(True)
    extra = iter(primal.outvars[split.num_results : end])
    atoms = [primal.invars[k] if k >= 0 else next(extra) for k in split.forwarded]
    atoms, linear = _before_repeats(primal, atoms, split.linear)
    consts, carry, xs, refs = split_at(primal.invars, num_consts, num_carry, num_xs)
    consts, carry = _with_values(consts, carry, refs, written)
    body = ClosedJaxpr(primal.replace(invars=[*consts, *carry, *xs]), split.primal.consts)
    const_place, x_place = [{v: i for i, v in enumerate(part)} for part in (consts, xs)]
    known = _find_variables_of_consts(body.jaxpr, len(consts))
    kinds = _kinds_of_residuals(atoms, const_place, x_place, known)
    # the linear body takes the residuals in front, in the order of their atoms
    const_dots, dots, x_dots = split_at(
        range(len(atoms), len(linear.in_avals)), num_const_dots, sum(carry_mask)
    )
    order = [*kinds.const, *kinds.shared, *const_dots, *dots, *kinds.x, *kinds.stacked, *x_dots]
    carry_out, ys = split_at(primal.outvars[: split.num_results], num_carry)
    results = [*carry_out, *primal.outvars[end:], *ys, *[atoms[r] for r in kinds.stacked]]
    return _Split(
        primal=_with_results(body, results),
        shared=_extract_shared_program(body, [atoms[r] for r in kinds.shared], consts),
        linear=rearrange(linear, order),
        const_args=[const_place[atoms[r]] for r in kinds.const],
        x_args=[x_place[atoms[r]] for r in kinds.x],
    )


def _before_repeats(
    primal: xprim.Jaxpr, atoms: Sequence[Any], linear: ClosedJaxpr
) -> tuple[list[Any], ClosedJaxpr]:
    """Return residuals before they are repeated along dimensions, which the linear body does.

    A mask of examples, for instance, is stored in place of one of the shape of each operand.

    Args:
      primal: the primal body.
      atoms: the residuals in it.
      linear: the linear body, which takes them first.
    """
    repeats = {v: eqn for eqn in primal.eqns if eqn.primitive.name == "broadcast_in_dim"
               for v in eqn.outputs}  # fmt: skip
    found, invars, eqns = list(atoms), list(linear.jaxpr.invars), []
    for r, atom in enumerate(atoms):
        if atom in repeats:
            eqn = repeats[atom]
            found[r] = eqn.inputs[0]
            smaller = xprim.Var(found[r].aval)
            eqns.append(eqn.with_inputs([smaller]).replace(outputs=[invars[r]]))
            invars[r] = smaller
    if not eqns:
        return found, linear
    jaxpr = linear.jaxpr.replace(invars=invars, eqns=[*eqns, *linear.eqns])
    return found, ClosedJaxpr(jaxpr, linear.consts)


def _with_values(
    consts: list[Any], carry: list[Any], values: Sequence[Any], written: list[bool]
) -> tuple[list[Any], list[Any]]:
    """Return the consts and the carry with the values of references behind them."""
    return [*consts, *_others(values, written)], [*carry, *where_true(values, written)]


@dataclass(frozen=True, slots=True)
class _Kinds:
    """The numbers of the residuals of a body, by where they come from."""

    const: list[int]
    shared: list[int]
    x: list[int]
    stacked: list[int]


def _kinds_of_residuals(
    atoms: Sequence[Any], consts: Container[Any], xs: Container[Any], known: set[Any]
) -> _Kinds:
    """Sort residuals: a const, known from consts, an element of an xs, or new with each step."""
    kinds = _Kinds([], [], [], [])
    for r, atom in enumerate(atoms):
        if atom in consts:
            kinds.const.append(r)
        elif atom in xs:
            kinds.x.append(r)
        elif type(atom) is xprim.Literal or atom in known:
            kinds.shared.append(r)
        else:
            kinds.stacked.append(r)
    return kinds


def _with_results(closed: ClosedJaxpr, results: Sequence[Any]) -> ClosedJaxpr:
    jaxpr = closed.jaxpr.replace(outvars=list(results))
    return xprim.prune_dead_code(ClosedJaxpr(jaxpr, closed.consts), keep_arguments=True)[0]


def _find_variables_of_consts(jaxpr: xprim.Jaxpr, num_consts: int) -> set[Any]:
    """Return the variables of a body that depend on its consts alone."""
    known: set[Any] = {*jaxpr.constvars, *jaxpr.invars[:num_consts]}
    for eqn in jaxpr.eqns:
        if all(type(x) is xprim.Literal or x in known for x in eqn.inputs) and not eqn.effects:
            known.update(eqn.outputs)
    return known


def _extract_shared_program(
    closed: ClosedJaxpr, atoms: Sequence[Any], invars: Sequence[Any]
) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    if jaxpr.effects:  # they happen in the steps; what is shared depends on none
        jaxpr = jaxpr.replace(eqns=[eqn for eqn in jaxpr.eqns if not eqn.effects])
    small = _with_results(ClosedJaxpr(jaxpr, closed.consts), atoms)
    return ClosedJaxpr(small.jaxpr.replace(invars=list(invars)), small.consts)


# --- transposition -----------------------------------------------------------------------------


def transpose_rule(
    handle: TransposeHandle, cts: Any, *operands: Any, jaxpr: ClosedJaxpr, length: int,
    reverse: bool, num_consts: int, num_carry: int, **options: Any,
) -> Any:  # fmt: skip
    """Scan backwards with the transposed body; a known part of the carry is run forward first."""
    stop, rest = split_at(operands, options.get("num_stops", 0))
    linear = split_at([type(x) is Linear for x in rest], num_consts, num_carry)
    carry_linear = _carry_that_becomes_linear(jaxpr, *linear)
    options |= {"length": length, "reverse": reverse}
    if all(carry_linear):
        results = _transpose(handle, cts, stop, rest, jaxpr, num_consts, num_carry, options)
        return (*[Zero(x.aval) for x in stop], *results)
    _, carry, xs = split_at(rest, num_consts, num_carry)
    others, jaxpr, num_consts, num_carry, cts = _carry_made_linear(
        stop, rest, cts, carry_linear, jaxpr, num_consts, num_carry, options
    )
    results = transpose_rule(
        handle, cts, *stop, *others, jaxpr=jaxpr, num_consts=num_consts, num_carry=num_carry,
        **options,
    )  # fmt: skip
    ends, found = split_at(results, len(stop))
    return (*ends, *_with_carry_zeros(found, carry, carry_linear, num_consts, len(xs)))


def _transpose(
    handle: TransposeHandle, cts: Any, stop: Sequence[Any], operands: Sequence[Any],
    jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, options: dict[str, Any],
) -> Any:  # fmt: skip
    """Transpose a scan whose carry is linear throughout."""
    consts, _, xs = split_at(operands, num_consts, num_carry)
    const_linear, x_linear = [[type(x) is Linear for x in part] for part in (consts, xs)]
    carry_cts, y_cts = split_at(cts, num_carry)
    y_mask = nonzero(y_cts)
    masks = (tuple(const_linear), tuple(x_linear), tuple(y_mask))
    (body, _), refs = derive_with_refs(
        handle.transpose_jaxpr, jaxpr, [*const_linear, *[True] * num_carry, *x_linear],
        [*[True] * num_carry, *y_mask], True,
    )  # fmt: skip
    written = [used.is_written for used in refs]
    backward = derive(
        body, ("scan transpose", num_carry, num_consts, *masks),
        lambda: _backward_body(body, jaxpr, const_linear, num_carry, x_linear, y_mask, written),
    )  # fmt: skip
    values = read_refs(refs)
    sums = body.out_avals[: const_linear.count(True)]  # each in the type of its terms
    results = _bind(
        *stop,
        *_others(consts, const_linear),
        *_others(values, written),
        *[handle.instantiate(Zero(a)) for a in sums],
        *[handle.instantiate(ct) for ct in carry_cts],
        *where_true(values, written),
        *_others(xs, x_linear),
        *where_true(y_cts, y_mask),
        jaxpr=backward, num_consts=num_consts - len(sums) + written.count(False),
        num_carry=len(sums) + num_carry + written.count(True),
        **options | {"reverse": not options["reverse"]},
    )  # fmt: skip
    cts_there, ends, x_cts = split_at(results, len(sums) + num_carry, written.count(True))
    # a cotangent of each part of the carry is there, but that of a known one is not requested
    found = iter(write_back_refs(refs, [*cts_there, *x_cts, *ends]))
    there = [*const_linear, *[True] * num_carry, *x_linear]
    return _where_linear(operands, [next(found) if t else None for t in there])


def _where_linear(operands: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([
        ct if type(x) is Linear else Zero(x.aval)
        for x, ct in zip(operands, cotangents, strict=True)
    ])  # fmt: skip


def _carry_that_becomes_linear(
    jaxpr: ClosedJaxpr, consts: list[bool], carry: list[bool], xs: list[bool]
) -> list[bool]:
    """Return which parts of the carry depend on linear operands, at the start or after a step."""
    while True:
        linear = set(where_true(jaxpr.jaxpr.invars, [*consts, *carry, *xs]))
        for eqn in jaxpr.eqns:
            marked = {k for k, x in enumerate(eqn.inputs) if x in linear}
            if marked:  # of a call that mixes primals and tangents, some results may need none
                needs = zip(eqn.outputs, xprim.operands_of_results(eqn), strict=True)
                linear.update([v for v, operands in needs if not marked.isdisjoint(operands)])
        out = [v in linear for v in jaxpr.jaxpr.outvars[: len(carry)]]
        joint = [a or b for a, b in zip(carry, out, strict=True)]
        if joint == carry:
            return carry
        carry = joint


def _backward_body(
    body: ClosedJaxpr, jaxpr: ClosedJaxpr, const_linear: list[bool], num_carry: int,
    x_linear: list[bool], y_mask: list[bool], written: list[bool],
) -> ClosedJaxpr:  # fmt: skip
    """Return (residual consts), (const cts, carry cts), (residual xs, y cts) -> cts, x cts.

    `body` is the transpose of `jaxpr`, and `written` says of each reference that it uses whether it
    writes it. The values of those that it does are in the carry behind the cotangents, those of the
    others are consts.
    """
    num_written, num_read = written.count(True), written.count(False)
    num_consts = len(const_linear)
    known_consts, num_sums = const_linear.count(False), const_linear.count(True)
    known_xs = x_linear.count(False)

    def backward(*args: Any) -> list[Any]:
        consts, read, sums, carry_cts, now, xs, y_cts = split_at(
            args, known_consts, num_read, num_sums, num_carry, num_written, known_xs
        )
        ends, others = iter(now), iter(read)
        values = [next(ends) if w else next(others) for w in written]
        results = xprim.eval_closed(body, *consts, *xs, *carry_cts, *y_cts, *values)
        totals = [add(a, b) for a, b in zip(sums, results[:num_sums], strict=True)]
        cts, x_cts, nexts = split_at(
            results[num_sums:], num_carry, len(results) - num_sums - num_carry - num_written
        )
        cts = [sharded_types.cotangent_as(ct, a) for ct, a in zip(cts, carry, strict=True)]
        return [*totals, *cts, *nexts, *x_cts]

    consts, carry, xs = split_at(jaxpr.in_avals, num_consts, num_carry)
    ys = jaxpr.out_avals[num_carry:]
    sum_avals = body.out_avals[: const_linear.count(True)]
    refs = body.in_avals[len(body.in_avals) - len(written) :]
    avals = [
        *_others(consts, const_linear), *_others(refs, written), *sum_avals,
        *[cotangent(a.strong()) for a in carry], *where_true(refs, written),
        *_others(xs, x_linear),
        *[cotangent(a.strong()) for a in where_true(ys, y_mask)],
    ]  # fmt: skip
    return trace_fun(backward, avals, jaxpr.jaxpr.name)


def _others(values: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    return [x for x, m in zip(values, mask, strict=True) if not m]


def _carry_made_linear(
    stop: Sequence[Any], operands: Sequence[Any], cts: Sequence[Any], carry_linear: list[bool],
    jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, options: dict[str, Any],
) -> tuple[list[Any], ClosedJaxpr, int, int, list[Any]]:  # fmt: skip
    """Make the known part of the carry (a loop counter) xs: run it forward and stack its values."""
    consts, carry, xs = split_at(operands, num_consts, num_carry)
    known = [not lin for lin in carry_linear]
    known_args = [
        *[type(x) is not Linear for x in consts], *known, *[type(x) is not Linear for x in xs]
    ]  # fmt: skip
    num_ys = len(jaxpr.out_avals) - num_carry
    forward = narrow_program(jaxpr, [*known, *[False] * num_ys], known_args)
    known_consts = known_args[:num_consts].count(True)
    inputs = forward.jaxpr.invars[known_consts : known_consts + sum(known)]
    stacking = ClosedJaxpr(
        forward.jaxpr.replace(outvars=[*forward.jaxpr.outvars, *inputs]), forward.consts
    )
    results = _bind(
        *stop, *where_true(operands, known_args), jaxpr=stacking, num_consts=known_consts,
        num_carry=sum(known), **options,
    )  # fmt: skip
    counters = results[sum(known) :]
    numbers = list(range(len(jaxpr.in_avals)))
    const_ids, carry_ids, x_ids = split_at(numbers, num_consts, num_carry)
    body = rearrange(
        jaxpr,
        [*const_ids, *where_true(carry_ids, carry_linear), *where_true(carry_ids, known), *x_ids],
        [*where_true(range(num_carry), carry_linear), *range(num_carry, num_carry + num_ys)],
    )
    operands = [*consts, *where_true(carry, carry_linear), *counters, *xs]
    kept_cts = [*where_true(cts[:num_carry], carry_linear), *cts[num_carry:]]
    return operands, body, num_consts, sum(carry_linear), kept_cts


def _with_carry_zeros(
    results: Sequence[Any], carry: Sequence[Any], carry_linear: list[bool], num_consts: int,
    num_xs: int,
) -> tuple[Any, ...]:  # fmt: skip
    """Put zeros for the known part of the carry among the cotangents."""
    const_cts = results[:num_consts]
    found = iter(results[num_consts : num_consts + sum(carry_linear)])
    x_cts = results[len(results) - num_xs :] if num_xs else ()
    carry_cts = [next(found) if lin else Zero(x.aval)
                 for x, lin in zip(carry, carry_linear, strict=True)]  # fmt: skip
    return (*const_cts, *carry_cts, *x_cts)


# ------------------------------------------------------------------------------------------ scan
# scan: run a program for each element along the leading axes of arrays, with a carry.
#
#     carry, ys = scan[jaxpr length reverse num_consts num_carry unroll] consts carry xs
#     carry, ys = scan[num_stops=1 ...] stop consts carry xs
#
#     jaxpr       consts, carry, x -> carry, y
#
# The second form runs the steps of the elements before the int32 scalar `stop` alone, and the ys of
# the others are zeros: its derivatives and transpose stop likewise. A batch of stops runs to the
# largest; an example that has had its own keeps its carry.
#
# The xs have a leading dimension of `length`, of which each step sees one element; the ys of all
# steps are stacked. `reverse` takes the elements from last to first (ys keep the places of their
# xs); `unroll` writes that many steps into one turn of the compiled loop, or, where it is "auto",
# as many as are the fastest for the body and the platform.


def _shape(*avals: ShapedArray, jaxpr: ClosedJaxpr, length: int, num_consts: int, num_carry: int,
           num_stops: int = 0, **_options: Any) -> Any:  # fmt: skip
    stops, consts, carry, xs = split_at(avals, num_stops, num_consts, num_carry)
    for stop in stops:
        require(
            not stop.shape and stop.dtype == dtypes.int32, "scan",
            "the number of steps must be an int32 scalar.", got=stop, error=TypeError,
        )  # fmt: skip
    for x in xs:
        require(
            x.shape and x.shape[0] == length, "scan",
            "every xs must have a leading dimension of size {}.", length, got=x,
        )  # fmt: skip
    elements = [without_dimension(x, 0) for x in xs]
    found = [whole(a.strong()) for a in (*consts, *carry, *elements)]
    expected = [whole(a.strong()) for a in jaxpr.in_avals]
    if found != expected:
        raise TypeError(message(
            "scan", "the operands do not have the types that the body takes.",
            got=", ".join(a.str_long() for a in found),
            expected=", ".join(a.str_long() for a in expected),
        ))  # fmt: skip
    carry_out, ys = split_at(jaxpr.out_avals, num_carry)
    return (*carry_out, *[stack_aval(y, length) for y in ys])


def stack_aval(aval: ShapedArray, length: int) -> ShapedArray:
    """Return the abstract value of `length` such values, stacked."""
    return with_dimension(aval, 0, length)


def _numpy(*operands: Any, jaxpr: ClosedJaxpr, length: int, reverse: bool, num_consts: int,
           num_carry: int, unroll: Any, num_stops: int = 0) -> Any:  # fmt: skip
    if length > control_flow.steps_before_compiling([jaxpr], operands):
        params = {"jaxpr": jaxpr, "length": length, "reverse": reverse, "num_consts": num_consts,
                  "num_carry": num_carry, "unroll": unroll}  # fmt: skip
        params |= {"num_stops": num_stops} if num_stops else {}
        return control_flow.run_compiled(scan_p, operands, jaxpr, params)
    stops, operands = operands[:num_stops], operands[num_stops:]
    steps = max(0, min([length, *[int(x.to_host()) for x in stops]]))
    order = range(steps - 1, -1, -1) if reverse else range(steps)
    y_avals = [stack_aval(a, length) for a in jaxpr.out_avals[num_carry:]]
    stacks = [np.empty(a.stored.shape, a.stored.dtype) for a in y_avals]
    for stack in stacks:
        stack[steps:] = 0
    step = control_flow.numpy_step(jaxpr, operands, length)
    if step is None:
        carry = _steps_by_rules(jaxpr, operands, num_consts, num_carry, order, stacks)
    else:
        hosts = split_at([x.to_host() for x in operands], num_consts, num_carry)
        results = state.run_quietly(_steps_by_kernel, step, hosts, order, stacks)
        carry = list(map(xprim.ConcreteArray, results, jaxpr.out_avals))
    return (*carry, *map(xprim.from_stored, stacks, y_avals))


def _steps_by_rules(
    jaxpr: ClosedJaxpr, operands: Sequence[Any], num_consts: int, num_carry: int, order: range,
    stacks: list[Any],
) -> list[Any]:  # fmt: skip
    """Run the steps, put their ys into the stacks, and return the last carry."""
    consts, carry, xs = split_at(operands, num_consts, num_carry)
    hosts = [x.to_stored() for x in xs]
    x_avals = jaxpr.in_avals[num_consts + num_carry :]
    for i in order:
        elements = [
            xprim.from_stored(np.asarray(h[i]), a) for h, a in zip(hosts, x_avals, strict=True)
        ]
        results = xprim.eval_closed(jaxpr, *consts, *carry, *elements)
        carry = results[:num_carry]
        for stack, y in zip(stacks, results[num_carry:], strict=True):
            stack[i] = y.to_stored()
    return carry


def _steps_by_kernel(step: Any, hosts: Any, order: range, stacks: list[Any]) -> Any:
    """Do the same with a function of ndarrays, on ndarrays."""
    consts, carry, xs = hosts
    count = len(carry)
    for i in order:
        results = step(*consts, *carry, *[x[i, ...] for x in xs])
        carry = results[:count]
        for stack, y in zip(stacks, results[count:], strict=True):
            stack[i] = y
    return carry


def _kernel(
    write: Callable[[ClosedJaxpr], Callable[..., Any]], avals_in: Sequence[xprim.ShapedArray], *,
    jaxpr: ClosedJaxpr, length: int, reverse: bool, num_consts: int, num_carry: int, unroll: Any,
    num_stops: int = 0,
) -> Callable[..., Any]:  # fmt: skip
    """Return the loop as a function of ndarrays, where NumPy runs it and it takes all steps."""
    if num_stops or length > control_flow.steps_before_compiling([jaxpr], ()):
        raise Refusal("it holds a scan that is compiled, or ends early")
    step, order = write(jaxpr), range(length - 1, -1, -1) if reverse else range(length)
    y_avals = [stack_aval(a, length) for a in jaxpr.out_avals[num_carry:]]

    def run(*operands: Any) -> Sequence[Any]:
        stacks = [np.empty(a.shape, a.dtype) for a in y_avals]
        carry = _steps_by_kernel(step, split_at(operands, num_consts, num_carry), order, stacks)
        return (*carry, *stacks)

    return run


# --- lowering ----------------------------------------------------------------------------------


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, jaxpr: ClosedJaxpr,
               length: int, reverse: bool, num_consts: int, num_carry: int,
               unroll: Any, num_stops: int = 0) -> Any:  # fmt: skip
    """Write a while loop over (counter, carry, ys); the steps that `unroll` leaves over come after.

    The consts and xs are not carried: the regions see them as they are.
    """
    stops, consts, carry, xs = split_at(operands, num_stops, num_consts, num_carry)
    x_avals = avals_in[num_stops + num_consts + num_carry :]
    step = _Step(jaxpr, length, reverse, consts, xs, x_avals, num_carry, avals_out)
    ys = [b.full_like(0, a.strong()) for a in avals_out[num_carry:]]
    values, start = [*carry, *ys], b.scalar(0, dtypes.int32)
    unroll = unroll_by_cost(jaxpr, b.platform) if unroll == "auto" else unroll
    unroll = max(1, min(unroll, length))
    if stops:
        return _steps_to_stop(b, step, values, start, stops[0], unroll)
    turns = length // unroll if length > unroll else 0
    written = turns * unroll
    if turns:
        values = _loop(b, step, values, start, lambda b: b.scalar(written, dtypes.int32), unroll)[1]
    for i in range(length - written):  # no step where the length is symbolic
        values = step.write(b, b.scalar(written + i, dtypes.int32), values)
    return values


def unroll_by_cost(jaxpr: ClosedJaxpr, platform: str) -> int:
    """Return how many steps one turn of a loop holds where that is to be the fastest.

    On a CPU a step of scalars takes about 10 ns, a third of which belongs to the turn. The compiler
    fuses the steps of a turn, but for arrays it computes values again for each that reads them: two
    steps of small arrays are faster, more are slower. On other platforms a turn starts kernels,
    and so it holds several steps of any small body.

    Source: docs/benchmarks/notes.md, "Loops".
    """
    eqns = jaxpr.jaxpr.eqns
    if len(eqns) > _EQUATIONS_UNROLLED or any(map(held_programs, [eqn.params for eqn in eqns])):
        return 1
    if platform != "cpu":
        return 4
    sizes = [a.size for a in jaxpr.in_avals] + [v.aval.size for e in eqns for v in e.outputs]
    largest = max(sizes, default=0)
    return 4 if largest <= 1 else 2 if largest <= _ELEMENTS_UNROLLED else 1


# Four steps of so many equations compile within a tenth of a second more than one.
_EQUATIONS_UNROLLED = 32
_ELEMENTS_UNROLLED = 256


def _steps_to_stop(
    b: Builder, step: _Step, values: list[str], start: str, stop: str, unroll: int
) -> list[str]:
    """Write a loop that ends at a number, and one of single steps for what `unroll` leaves over."""
    counter = shaped_array((), dtypes.int32)
    bounds = [start, stop, b.scalar(step.length, dtypes.int32)]
    stop = b.same_type_op("stablehlo.clamp", bounds, counter)
    step = replace(step, stop=stop)
    if unroll > 1:
        by = b.scalar(unroll, dtypes.int32)
        rest = b.same_type_op("stablehlo.remainder", [stop, by], counter)
        whole = b.same_type_op("stablehlo.subtract", [stop, rest], counter)
        start, values = _loop(b, step, values, start, lambda _: whole, unroll)
    return _loop(b, step, values, start, lambda _: stop, 1)[1]


def _loop(
    b: Builder, step: _Step, values: list[str], start: str, limit: Callable[[Builder], str],
    unroll: int,
) -> tuple[str, list[str]]:  # fmt: skip
    """Write a loop from `start` that ends at a limit; return the counter and the values."""
    counter = shaped_array((), dtypes.int32)
    ordered = bool(xprim.ordered_effects(step.jaxpr.effects))  # then the order is carried, too
    avals = [counter, *step.avals, *[xprim.ORDER] * ordered]

    def test(inner: Builder, names: list[str]) -> list[str]:
        return inner.op(
            "stablehlo.compare", [names[0], limit(inner)], [counter, counter],
            [shaped_array((), dtypes.bool_)],
            "comparison_direction = #stablehlo<comparison_direction LT>, "
            "compare_type = #stablehlo<comparison_type SIGNED>",
        )  # fmt: skip

    def body(inner: Builder, names: list[str]) -> list[str]:
        i, *state = names
        if ordered:
            inner.order = state.pop()
        one = inner.scalar(1, dtypes.int32)
        for _ in range(unroll):
            state = step.write(inner, i, state)
            i = inner.same_type_op("stablehlo.add", [i, one], counter)
        return [i, *state, *([inner.order] if ordered else [])]

    regions = b.regions(
        b.region(avals, test, [shaped_array((), dtypes.bool_)]),
        contracts.loop_region(b, avals, body, avals),
    )
    before = [b.order] if ordered else []
    end, *results = b.op(
        "stablehlo.while", [start, *values, *before], avals, avals, regions=regions
    )
    if ordered:
        b.order = results.pop()
    return end, results


@dataclass(frozen=True, slots=True)
class _Step:
    """Writes one step of a scan: take the elements, run the body, put the ys in their places.

    Attributes:
      jaxpr: the body.
      length: how many elements there are.
      reverse: whether to go from the last to the first.
      consts: names of the operands that all steps share.
      xs: names of the arrays to go along.
      xs_avals: their types.
      num_carry: how many results are the carry.
      avals_out: the types of the results of the scan.
      stop: the name of the number of leading elements that have a step, or nothing for all.
    """

    jaxpr: ClosedJaxpr
    length: int
    reverse: bool
    consts: list[str]
    xs: list[str]
    xs_avals: Sequence[ShapedArray]
    num_carry: int
    avals_out: Sequence[ShapedArray]
    stop: str = ""

    @property
    def avals(self) -> list[ShapedArray]:
        """The types of the carry and the ys."""
        return [a.strong() for a in self.avals_out]

    def write(self, b: Builder, i: str, values: list[str]) -> list[str]:
        """Write step `i` on the carry and ys so far; return the new ones."""
        carry, ys = split_at(values, self.num_carry)
        if self.reverse:
            counter = shaped_array((), dtypes.int32)
            if self.stop:
                one = b.scalar(1, dtypes.int32)
                last = b.same_type_op("stablehlo.subtract", [self.stop, one], counter)
            else:
                last = b.scalar(self.length - 1, dtypes.int32)
            i = b.same_type_op("stablehlo.subtract", [last, i], counter)
        elements = [self._element(b, x, a.strong(), i)
                    for x, a in zip(self.xs, self.xs_avals, strict=True)]  # fmt: skip
        results = b.inline(self.jaxpr, [*self.consts, *carry, *elements])
        new, new_ys = split_at(results, self.num_carry)
        stacks = zip(ys, new_ys, self.avals[self.num_carry :], strict=True)
        return [*new, *[self._place(b, stack, y, a, i) for stack, y, a in stacks]]

    def _element(self, b: Builder, x: str, aval: ShapedArray, i: str) -> str:
        zero, index = b.scalar(0, dtypes.int32), shaped_array((), dtypes.int32)
        row = shaped_array((1, *aval.shape[1:]), aval.dtype)
        sizes = ", ".join(map(str, row.shape))
        (piece,) = b.op(
            "stablehlo.dynamic_slice", [x, i, *[zero] * (aval.ndim - 1)],
            [aval, *[index] * aval.ndim], [row], f"slice_sizes = array<i64: {sizes}>",
        )  # fmt: skip
        (element,) = b.op(
            "stablehlo.reshape", [piece], [row], [shaped_array(aval.shape[1:], aval.dtype)]
        )
        return element

    def _place(self, b: Builder, stack: str, y: str, aval: ShapedArray, i: str) -> str:
        zero, index = b.scalar(0, dtypes.int32), shaped_array((), dtypes.int32)
        row = shaped_array((1, *aval.shape[1:]), aval.dtype)
        (piece,) = b.op("stablehlo.reshape", [y], [shaped_array(aval.shape[1:], aval.dtype)], [row])
        (out,) = b.op(
            "stablehlo.dynamic_update_slice", [stack, piece, i, *[zero] * (aval.ndim - 1)],
            [aval, row, *[index] * aval.ndim], [aval],
        )  # fmt: skip
        return out


# --- batching ----------------------------------------------------------------------------------


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, jaxpr: ClosedJaxpr, num_consts: int,
           num_carry: int, **options: Any) -> Any:  # fmt: skip
    stops = options.get("num_stops", 0)
    if any(d is not not_mapped for d in dims[:stops]):
        return _batch_of_stops(axis, operands, dims, jaxpr, num_consts, num_carry, options)
    stop, operands = split_at(operands, stops)
    dims = dims[stops:]
    mapped = [d is not not_mapped for d in dims]
    consts_mapped, carry_mapped, xs_mapped = split_at(mapped, num_consts, num_carry)
    num_ys = len(jaxpr.out_avals) - num_carry

    def batch(mask: list[bool]) -> Any:
        return axis.batch_jaxpr(
            jaxpr, (*consts_mapped, *mask, *xs_mapped), [*mask, *[False] * num_ys]
        )

    body, carry_mapped, ys_mapped = grow_mask(batch, carry_mapped)
    lead = [
        axis.to_front(x, d) if m else x
        for x, d, m in zip(operands[: num_consts + num_carry], dims[: num_consts + num_carry],
                           [*consts_mapped, *carry_mapped], strict=True)
    ]  # fmt: skip
    # the leading dimension of xs and ys stays that of the steps
    xs = [axis.move(x, d, 1) if d is not not_mapped else x
          for x, d in zip(operands[len(lead) :], dims[len(lead) :], strict=True)]  # fmt: skip
    outs = scan_p.bind(
        *stop, *lead, *xs, jaxpr=body, num_consts=num_consts, num_carry=num_carry, **options
    )
    carry_dims = [0 if m else not_mapped for m in carry_mapped]
    return outs, (*carry_dims, *[1 if m else not_mapped for m in ys_mapped])


def _batch_of_stops(
    axis: BatchAxis, operands: Any, dims: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int,
    options: dict[str, Any],
) -> Any:  # fmt: skip
    """Run to the largest stop; the body chooses by that of the example, which is one more const.

    Derivatives of the body see only examples that still run, as those of every batched `cond`.
    """
    (stop, *rest), (stop_dim, *rest_dims) = operands, dims
    length = options["length"]
    stop = axis.to_front(stop, stop_dim)
    most = bind("reduce_max", stop, axes=(0,))
    body = derive(jaxpr, ("scan to a stop", num_consts, num_carry),
                   lambda: _choosing(jaxpr, num_consts, num_carry))  # fmt: skip
    lead, lead_dims = rest[: num_consts + num_carry], rest_dims[: num_consts + num_carry]
    return _batch(
        axis, [most, stop, *lead, counting(length, dtypes.int32), *rest[len(lead) :]],
        [not_mapped, 0, *lead_dims, not_mapped, *rest_dims[len(lead) :]],
        jaxpr=body, num_consts=num_consts + 1, num_carry=num_carry, **options,
    )  # fmt: skip


def _choosing(jaxpr: ClosedJaxpr, num_consts: int, num_carry: int) -> ClosedJaxpr:
    """Return the body with a stop before its arguments, and the number of the step before the xs.

    From the stop on it gives the carry as it is, and zeros.
    """
    consts, carry, xs = split_at(jaxpr.in_avals, num_consts, num_carry)

    def stay(*args: Any) -> list[Any]:
        ys = [reshard_as(broadcast_to(xprim.scalar_array(0, a.dtype, a.weak_type), a.shape), a)
              for a in jaxpr.out_avals[num_carry:]]  # fmt: skip
        return [*args[num_consts : num_consts + num_carry], *ys]

    def step(stop: Any, *args: Any) -> Sequence[Any]:
        lead, (i, *elements) = split_at(args, num_consts + num_carry)
        index = convert(bind("lt", i, stop), dtypes.int32)
        branches = (trace_fun(stay, jaxpr.in_avals), jaxpr)
        return xprim.get_primitive("cond").bind(
            index, *lead, *elements, branches=branches, batching="select"
        )

    number = shaped_array((), dtypes.int32)
    return trace_fun(step, [number, *consts, *carry, number, *xs], jaxpr.jaxpr.name)


scan_p = xprim.Primitive(
    "scan",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=jvp_rule,
    linearize=linearize_rule,
    transpose=transpose_rule,
    batch=_batch,
    eager=xprim.Eager(kernel=_kernel),
    programs=Programs(
        {"jaxpr": ("consts", "carry", "xs")},
        operands={"stop": "num_stops", "consts": "num_consts", "carry": "num_carry", "xs": None},
        carry="carry",
        sums_later=True,
    ),
)
