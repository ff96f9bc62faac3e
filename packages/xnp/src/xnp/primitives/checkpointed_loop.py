"""loop_tangents: the derivative of a loop of known length, transposed by binomial checkpointing.

A `while` with a `Schedule` has a bound on its steps. Its derivative is one equation of the tape:

    dots' = loop_tangents[step linear pullback ...] n consts carry const_dots dots

    step      consts, carry -> carry
    linear    consts, carry, const_dots, dots -> dots
    pullback  consts, carry, cts -> const_cts, cts

The loop makes `n` steps. Evaluated, the tangents go along with the carry. Transposed (`transposed`,
the linear operands are `cts` then), the steps are pulled back from the last to the first. Each
needs the carry before it, which is computed again from the nearest *checkpoint*, an earlier carry
that was stored. With room for s checkpoints, steps that are computed at most t times more reach

    beta(s, t) = (s + t)! / (s! t!)

so s ~ sqrt(2 N) checkpoints compute a step twice, and s ~ log N about log N / 2 times.

Where both this and its transpose must be differentiated again (`_by_scans`), two nested scans do
the same: the outer one stores sqrt(N) carries, the inner one those of sqrt(N) steps.

Source: Griewank and Walther, "Algorithm 799: revolve", ACM TOMS 26, 2000.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import xprim
from xnp.primitives.control_flow import derive, grow_mask, split_at, trace_fun
from xnp.primitives.table import (
    add,
    bind,
    broadcast_to,
    convert,
    counting,
    fill,
    reshape,
    select,
    sub,
)
from xprim import Array, ClosedJaxpr, Linear, Zero, dtypes, eval_closed, get_primitive, scalar_array
from xprim.calls import nonzero, where_true, with_zeros
from xprim.contracts import BatchAxis, Builder, JVPHandle, LinearizeHandle, TransposeHandle
from xprim.derived_refs import derive_with_refs
from xprim.errors import UndefinedRuleError, message
from xprim.sharded_types import cotangent_as, reshard_as, without_dimension

__all__ = ()

_I32 = dtypes.int32


@dataclass(frozen=True, slots=True)
class Schedule:
    """A bound on the steps of a loop, and how many of its carries reverse mode may store.

    Attributes:
      max_steps: the loop stops after so many steps.
      checkpoints: how many carries are stored at a time.
      counter: which part of the carry counts the steps, from 0.
    """

    max_steps: int
    checkpoints: int
    counter: int = 0

    def __repr__(self) -> str:
        return f"{self.max_steps} steps, {self.checkpoints} checkpoints"


def steps_taken(outs: Sequence[Any], schedule: Schedule) -> Any:
    """Return how many steps a loop took, by its results: of a batch the most of any example."""
    counter = outs[schedule.counter]
    return _largest(counter)


def _largest(x: Any) -> Any:
    return bind("reduce_max", x, axes=tuple(range(x.aval.ndim))) if x.aval.ndim else x


# ------------------------------------------------------------------------------- on to the tape


@dataclass(frozen=True, slots=True)
class _Steps:
    """The params of the equation: what one step does, forward, linear and backward."""

    step: ClosedJaxpr
    linear: ClosedJaxpr
    pullback: ClosedJaxpr | None
    num_consts: int
    num_const_dots: int
    schedule: Schedule

    @property
    def num_carry(self) -> int:
        return len(self.step.out_avals)

    def split(self, operands: Sequence[Any]) -> list[list[Any]]:
        """Return n (as a list), the consts, the carry, and the linear operands."""
        return split_at(operands, 1, self.num_consts, self.num_carry)


def record_tangents(
    handle: LinearizeHandle, n: Any, body: ClosedJaxpr, consts: Sequence[Any],
    carry: Sequence[Any], const_dots: Sequence[Any], carry_dots: Sequence[Any], schedule: Schedule,
) -> tuple[list[Any], list[bool]]:  # fmt: skip
    """Leave the derivative of a loop on the tape.

    Args:
      handle: splits the body.
      n: how many steps the loop took.
      body: consts, carry -> carry.
      consts: the constants of the body.
      carry: the first carry.
      const_dots: the tangents of the constants.
      carry_dots: those of the carry.
      schedule: of the loop.

    Returns:
      The nonzero tangents of the last carry, and for each part of it whether it has one.
    """
    const_mask = nonzero(const_dots)

    def linearize(mask: list[bool]) -> Any:
        split, refs = derive_with_refs(handle.linearize_jaxpr, body, [*const_mask, *mask], mask)
        if refs:
            raise UndefinedRuleError(message(
                "while_loop", "a loop whose derivative rules write references has no reverse mode.",
                hint="scan, or fori_loop with bounds that are Python integers",
            ))  # fmt: skip
        return split, split.nonzero_out

    split, mask, _ = grow_mask(linearize, nonzero(carry_dots))
    if not any(mask):
        return [], mask
    linear = derive(split.primal, ("loop tangents", split.linear), lambda: _joint(split, body))
    dots = [handle.instantiate(t) for t in where_true(carry_dots, mask)]
    given = where_true(const_dots, const_mask)
    steps = _Steps(body, linear, None, len(consts), len(given), schedule)
    return list(_bind(steps, False, [n, *consts, *carry, *given, *dots])), mask


def _joint(split: Any, body: ClosedJaxpr) -> ClosedJaxpr:
    """Return the linear part of a step as a program of the primals and the tangents."""
    count = len(body.in_avals)

    def linear(*args: Any) -> list[Any]:
        primals = args[:count]
        residuals = split.residuals(primals, eval_closed(split.primal, *primals))
        return eval_closed(split.linear, *residuals, *args[count:])

    dots = split.linear.in_avals[len(split.forwarded) :]
    return trace_fun(linear, [*body.in_avals, *dots], body.jaxpr.name)


def _bind(steps: _Steps, transposed: bool, operands: Sequence[Any]) -> Any:
    params = {f.name: getattr(steps, f.name) for f in fields(steps)}
    return loop_tangents_p.bind(*operands, transposed=transposed, **params)


# ----------------------------------------------------------------------------------- evaluation


def _shape(*avals: xprim.ShapedArray, transposed: bool, **params: Any) -> Any:
    steps = _Steps(**params)
    return _pullback_of(steps).out_avals if transposed else steps.linear.out_avals


def _program(steps: _Steps, transposed: bool) -> ClosedJaxpr:
    """Return the program that is run."""
    return _linear_program(_pull_back if transposed else _push_forward, steps, transposed)


def _formula(steps: _Steps, transposed: bool) -> ClosedJaxpr:
    """Return the program of scans, which is differentiated."""
    fun = _pull_back_by_scans if transposed else _push_forward_by_scans
    return _linear_program(fun, steps, transposed)


def _linear_program(fun: Any, steps: _Steps, transposed: bool) -> ClosedJaxpr:
    closed = _pullback_of(steps) if transposed else steps.linear  # both take the primals first
    avals = [xprim.shaped_array((), _I32), *[a.strong() for a in closed.in_avals]]
    return derive(steps.linear, (fun, steps), lambda: trace_fun(lambda *xs: fun(steps, xs), avals))


def _numpy(*operands: Any, transposed: bool, **params: Any) -> Any:
    return tuple(eval_closed(_program(_Steps(**params), transposed), *operands))


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, transposed: bool, **params: Any
) -> Any:
    return b.inline(_program(_Steps(**params), transposed), operands)


def _push_forward(steps: _Steps, operands: Sequence[Any]) -> Sequence[Any]:
    """Carry the tangents along for n steps."""
    (n,), consts, carry, linear = steps.split(operands)
    const_dots, dots = split_at(linear, steps.num_const_dots)
    given = [n, *consts, *const_dots]

    def going(i: Any, n: Any, *_: Any) -> Any:
        return bind("lt", i, n)

    def step(i: Any, *args: Any) -> list[Any]:
        (n,), consts, const_dots, carry, dots = split_at(
            args, 1, steps.num_consts, steps.num_const_dots, steps.num_carry
        )
        new = eval_closed(steps.step, *consts, *carry)
        new_dots = eval_closed(steps.linear, *consts, *carry, *const_dots, *dots)
        return [_plus(i, 1), n, *consts, *const_dots, *new, *new_dots]

    results = _loop(going, step, [_int(0), *given, *carry, *dots])
    return results[len(results) - len(dots) :]


def _loop(test: Any, step: Any, carry: Sequence[Any]) -> Sequence[Any]:
    """Bind a `while` without constants."""
    avals = [x.aval.strong() for x in carry]
    cond = trace_fun(lambda *xs: [test(*xs)], avals)
    body = trace_fun(step, avals)
    results: Sequence[Any] = get_primitive("while").bind(
        *carry, cond_jaxpr=cond, body_jaxpr=body, cond_nconsts=0, body_nconsts=0
    )
    return results


def _int(value: int) -> Any:
    return scalar_array(value, _I32)


def _plus(x: Any, value: int) -> Any:
    return bind("add", x, scalar_array(value, x.aval.dtype))


# --- binomial checkpointing --------------------------------------------------------------------
#
# `table[j]` is the number of the step before which the carry in row j of the buffers was stored, -1
# where the row is free. The last row is written when nothing is to be stored. For each step, from
# the last one to the first: take the latest checkpoint, compute from it the carry of the step, and
# store checkpoints on the way in the free rows, at distances that are best for those that are left.


def _pull_back(steps: _Steps, operands: Sequence[Any]) -> Sequence[Any]:
    """Pull cotangents back through n steps, with some checkpoints."""
    (n,), consts, carry, cts = steps.split(operands)
    rows, count = steps.schedule.checkpoints, steps.num_carry
    numbers = counting(rows, _I32)
    table = select(bind("eq", numbers, fill((rows,), 0, _I32)),
                     fill((rows,), 0, _I32), fill((rows,), -1, _I32))  # fmt: skip
    buffers = [broadcast_to(x, (rows + 1, *x.aval.shape)) for x in carry]
    pullback = _pullback_of(steps)
    sums = _zeros(pullback.out_avals[: steps.num_const_dots])
    num_consts, num_sums = len(consts), len(sums)

    def remain(end: Any, *_: Any) -> Any:
        return bind("gt", end, _int(0))

    def pull(end: Any, table: Any, *args: Any) -> list[Any]:
        consts, buffers, sums, cts = split_at(args, num_consts, count, num_sums)
        latest = bind("argmax", table, axes=(0,), index_dtype=_I32)
        position = bind("reduce_max", table, axes=(0,))
        carry = [_row(b, latest) for b in buffers]
        table, consts, carry, buffers = _go_on(steps, end, position, table, consts, carry, buffers)
        const_cts, cts = split_at(eval_closed(pullback, *consts, *carry, *cts), num_sums)
        sums = [add(a, b) for a, b in zip(sums, const_cts, strict=True)]
        end = _plus(end, -1)
        done = bind("eq", table, broadcast_to(end, (rows,), ()))
        table = select(done, fill((rows,), -1, _I32), table)
        return [end, table, *consts, *buffers, *sums, *cts]

    first = [convert(n, _I32), table, *consts, *buffers, *sums, *cts]
    results = _loop(remain, pull, first)
    return results[len(results) - num_sums - len(cts) :]


def _go_on(
    steps: _Steps, end: Any, position: Any, table: Any, consts: Sequence[Any],
    carry: Sequence[Any], buffers: Sequence[Any],
) -> tuple[Any, list[Any], list[Any], list[Any]]:  # fmt: skip
    """Compute the carry before step `end - 1` from a checkpoint; store others on the way."""
    rows, count, num_consts = steps.schedule.checkpoints, steps.num_carry, len(consts)

    def is_before(position: Any, end: Any, *_: Any) -> Any:
        return bind("lt", position, _plus(end, -1))

    def move(position: Any, end: Any, table: Any, *args: Any) -> list[Any]:
        consts, carry, buffers = split_at(args, num_consts, count)
        is_free = bind("lt", table, fill((rows,), 0, _I32))
        free = bind("reduce_sum", convert(is_free, _I32), axes=(0,))
        distance = best_distance(sub(end, position), _plus(free, 1))
        target = add(position, distance)
        consts, carry = _advance(steps, position, target, consts, carry)
        slot = bind("argmin", table, axes=(0,), index_dtype=_I32)
        is_stored = bind("lt", target, _plus(end, -1))
        slot = select(is_stored, slot, _int(rows))
        here = bind("eq", counting(rows, _I32), broadcast_to(slot, (rows,), ()))
        table = select(here, broadcast_to(target, (rows,), ()), table)
        buffers = [_with_row(b, x, slot) for b, x in zip(buffers, carry, strict=True)]
        return [target, end, table, *consts, *carry, *buffers]

    results = _loop(is_before, move, [position, end, table, *consts, *carry, *buffers])
    _, (table,), consts, carry, buffers = split_at(results, 2, 1, num_consts, count)
    return table, consts, carry, buffers


def _advance(
    steps: _Steps, start: Any, stop: Any, consts: Sequence[Any], carry: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Compute a carry from an earlier one."""

    def step(i: Any, stop: Any, *args: Any) -> list[Any]:
        consts, carry = split_at(args, steps.num_consts)
        return [_plus(i, 1), stop, *consts, *eval_closed(steps.step, *consts, *carry)]

    first = [start, stop, *consts, *carry]
    results = _loop(lambda i, stop, *_: bind("lt", i, stop), step, first)
    _, consts, carry = split_at(results, 2, steps.num_consts)
    return consts, carry


def best_distance(length: Any, checkpoints: Any) -> Any:
    """Return how far to go before the next checkpoint is stored.

    Args:
      length: how many steps are to be pulled back, at least 2; int32.
      checkpoints: how many carries can be stored, with the one that is; int32.

    Returns:
      With t the least number such that `length <= beta(s, t)`: the largest m such that what
      remains, `length - m` steps with one checkpoint less, is in the range where t is least for it.
    """
    f32 = dtypes.float32
    one = scalar_array(1.0, f32)
    s, steps = convert(checkpoints, f32), convert(length, f32)

    def is_short(t: Any, low: Any, high: Any, s: Any, steps: Any) -> Any:
        return bind("and", bind("lt", high, steps), bind("gt", s, one))

    def repeat_once_more(t: Any, low: Any, high: Any, s: Any, steps: Any) -> list[Any]:
        t = add(t, one)
        return [t, high, bind("div", bind("mul", high, add(s, t)), t), s, steps]

    # low = beta(s, t - 1), high = beta(s, t); beta(s - 1, t - 1) = low s / (s + t - 1)
    t, low, *_ = _loop(is_short, repeat_once_more, [one, one, add(s, one), s, steps])
    rest = bind("div", bind("mul", low, s), sub(add(s, t), one))
    distance = bind("min", low, sub(steps, rest))
    distance = select(bind("gt", s, one), distance, steps)
    largest = sub(steps, one)
    return convert(bind("clamp", one, bind("round", distance, rounding_method=0), largest), _I32)


def _row(buffer: Any, i: Any) -> Any:
    shape = buffer.aval.shape
    sizes = (1, *shape[1:])
    row = bind("dynamic_slice", buffer, i, *[_int(0)] * (len(shape) - 1), slice_sizes=sizes)
    return reshape(row, shape[1:])


def _with_row(buffer: Any, x: Any, i: Any) -> Any:
    zeros = [_int(0)] * x.aval.ndim
    return bind("dynamic_update_slice", buffer, reshape(x, (1, *x.aval.shape)), i, *zeros)


# --- nested scans ------------------------------------------------------------------------------


def _sizes(schedule: Schedule) -> tuple[int, int]:
    """Return how many blocks there are, and of how many steps."""
    steps = max(1, math.isqrt(max(schedule.max_steps - 1, 0)) + 1)
    return -(-schedule.max_steps // steps), steps


def _scan(step: Any, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], length: int,
          reverse: bool = False) -> Any:  # fmt: skip
    """Bind a `scan` of a function of flat lists: consts, carry, x -> carry, ys."""
    elements = [without_dimension(x.aval.strong(), 0) for x in xs]
    avals = [*[x.aval.strong() for x in (*consts, *carry)], *elements]
    body = trace_fun(step, avals)
    return get_primitive("scan").bind(
        *consts, *carry, *xs, jaxpr=body, length=length, reverse=reverse, unroll=1,
        num_consts=len(consts), num_carry=len(carry),
    )  # fmt: skip


def _if(pred: Any, on_true: Any, on_false: Any, operands: Sequence[Any]) -> Sequence[Any]:
    avals = [x.aval.strong() for x in operands]
    branches = (trace_fun(on_false, avals), trace_fun(on_true, avals))
    index = convert(pred, _I32)
    results: Sequence[Any] = get_primitive("cond").bind(index, *operands, branches=branches)
    return results


def _push_forward_by_scans(steps: _Steps, operands: Sequence[Any]) -> Sequence[Any]:
    (n,), consts, carry, linear = steps.split(operands)
    const_dots, dots = split_at(linear, steps.num_const_dots)
    given = [n, *consts, *const_dots]
    blocks, length = _sizes(steps.schedule)

    def split(args: Sequence[Any]) -> Any:
        return split_at(args, steps.num_consts, steps.num_const_dots, steps.num_carry)

    def move(*args: Any) -> list[Any]:
        consts, const_dots, carry, dots = split(args)
        new = eval_closed(steps.step, *consts, *carry)
        return [*new, *eval_closed(steps.linear, *consts, *carry, *const_dots, *dots)]

    def stay(*args: Any) -> list[Any]:
        _, _, carry, dots = split(args)
        return [*carry, *dots]

    def step(n: Any, *args: Any) -> list[Any]:
        given, (i, *state) = split_at(args, len(consts) + len(const_dots))
        return [_plus(i, 1), *_if(bind("lt", i, n), move, stay, [*given, *state])]

    def block(*args: Any) -> list[Any]:
        own, state = split_at(args, len(given))
        return list(_scan(step, own, state, (), length))

    results = _scan(block, given, [_zero_like(n), *carry, *dots], (), blocks)
    return list(results[1 + steps.num_carry :])


def _zeros(avals: Sequence[xprim.ShapedArray]) -> list[Array]:
    return [reshard_as(fill(a.shape, 0, a.dtype), a) for a in avals]


def _zero_like(n: Any) -> Any:
    return scalar_array(0, n.aval.dtype)


def _pull_back_by_scans(steps: _Steps, operands: Sequence[Any]) -> Sequence[Any]:
    (n,), consts, carry, cts = steps.split(operands)
    blocks, length = _sizes(steps.schedule)
    pullback = _pullback_of(steps)
    count, num_consts, num_sums = steps.num_carry, len(consts), steps.num_const_dots
    sums = _zeros(pullback.out_avals[:num_sums])

    def move(*args: Any) -> list[Any]:
        return eval_closed(steps.step, *args)

    def step(n: Any, *args: Any) -> list[Any]:
        consts, (i, *carry) = split_at(args, num_consts)
        new = _if(bind("lt", i, n), move, lambda *a: a[num_consts:], [*consts, *carry])
        return [_plus(i, 1), *new, i, *carry]

    def block(*args: Any) -> list[Any]:
        own, state = split_at(args, 1 + num_consts)
        return [*_scan(step, own, state, (), length)[: 1 + count], *state]

    def pull(*args: Any) -> list[Any]:
        consts, carry, sums, cts = split_at(args, num_consts, count, num_sums)
        const_cts, cts = split_at(eval_closed(pullback, *consts, *carry, *cts), num_sums)
        return [*[add(a, b) for a, b in zip(sums, const_cts, strict=True)], *cts]

    def step_back(n: Any, *args: Any) -> list[Any]:
        consts, state, (i, *carry) = split_at(args, num_consts, num_sums + len(cts))
        operands = [*consts, *carry, *state]
        stay = num_consts + count
        return list(_if(bind("lt", i, n), pull, lambda *a: a[stay:], operands))

    def block_back(*args: Any) -> list[Any]:
        own, state, start = split_at(args, 1 + num_consts, num_sums + len(cts))
        before = _scan(step, own, start, (), length)[1 + count :]
        return list(_scan(step_back, own, state, before, length, reverse=True))

    own = [n, *consts]
    starts = _scan(block, own, [_zero_like(n), *carry], (), blocks)[1 + count :]
    return list(_scan(block_back, own, [*sums, *cts], starts, blocks, reverse=True))


# ---------------------------------------------------------------------------------- derivatives


def _pullback_of(steps: _Steps) -> ClosedJaxpr:
    if steps.pullback is None:
        raise AssertionError("the equation was not transposed")
    return steps.pullback


def _jvp(handle: JVPHandle, primals: Any, tangents: Any, *, transposed: bool, **params: Any) -> Any:
    steps = _Steps(**params)
    formula = _formula(steps, transposed)
    mask = nonzero(tangents)
    forward, mask_out = handle.jvp_jaxpr(formula, mask)
    results = eval_closed(forward, *primals, *where_true(tangents, mask))
    outs = results[: len(mask_out)]
    return outs, with_zeros(handle, outs, results[len(mask_out) :], mask_out)


def _linearize(
    handle: LinearizeHandle, primals: Any, tangents: Any, *, transposed: bool, **params: Any
) -> Any:
    steps = _Steps(**params)
    formula = _formula(steps, transposed)
    mask = nonzero(tangents)
    split = handle.linearize_jaxpr(formula, mask)
    results = eval_closed(split.primal, *primals)
    outs, dots = results[: split.num_results], []
    if any(split.nonzero_out):
        residuals = split.residuals(primals, results)
        dots = eval_closed(split.linear, *residuals, *where_true(tangents, mask))
    return outs, with_zeros(handle, outs, dots, split.nonzero_out)


def _transpose(
    handle: TransposeHandle, cts: Any, *operands: Any, transposed: bool, **params: Any
) -> Any:
    """Bind the same equation in the other direction."""
    steps = _Steps(**params)
    known = 1 + steps.num_consts + steps.num_carry
    if any(type(x) is Linear for x in operands[:known]):
        raise UndefinedRuleError(message(
            "linear_transpose", "the program is not linear in the carry of a loop.",
        ))  # fmt: skip
    given = [handle.instantiate(ct) for ct in cts]
    if transposed:
        results = _bind(steps, False, [*operands[:known], *given])
    else:
        num_dots = len(operands) - known
        linear = [False] * (known - 1) + [True] * num_dots
        pullback, _ = handle.transpose_jaxpr(steps.linear, linear, [True] * len(given), True)
        pullback = _with_carried_types(pullback, steps)
        results = _bind(replace(steps, pullback=pullback), True, [*operands[:known], *given])
    return (
        *[Zero(x.aval) for x in operands[:known]],
        *[r if type(x) is Linear else Zero(x.aval)
          for x, r in zip(operands[known:], results, strict=True)],
    )  # fmt: skip


def _with_carried_types(pullback: ClosedJaxpr, steps: _Steps) -> ClosedJaxpr:
    """Return a pullback whose cotangents of the carry are of the types that it takes.

    Those of the constants are left to members of a mesh: their sum follows the loop, once.
    """
    if not any(a.vma for a in pullback.out_avals):
        return pullback

    def pull(*args: Any) -> list[Any]:
        const_cts, cts = split_at(eval_closed(pullback, *args), steps.num_const_dots)
        avals = steps.linear.out_avals
        return [*const_cts, *[cotangent_as(ct, a) for ct, a in zip(cts, avals, strict=True)]]

    return derive(pullback, "carried types", lambda: trace_fun(
        pull, pullback.in_avals, pullback.jaxpr.name))  # fmt: skip


# ------------------------------------------------------------------------------------- batching


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, transposed: bool, **params: Any) -> Any:
    """Batch each program; examples of fewer steps than others keep their values in the later ones.

    The number of steps of each example is a constant more of the programs then.
    """
    steps = _Steps(**params)
    mapped = [d is not xprim.not_mapped for d in dims]
    (is_own,), consts_mapped, carry_mapped, _ = steps.split(mapped)
    if is_own:
        steps, consts_mapped = _guard_steps(steps), [True, *consts_mapped]
        carry_mapped = [True] * len(carry_mapped)
    step, carry_mapped, _ = grow_mask(
        lambda mask: axis.batch_jaxpr(steps.step, (*consts_mapped, *mask), mask), carry_mapped
    )
    lead = (*consts_mapped, *carry_mapped)

    def batch(closed: ClosedJaxpr) -> ClosedJaxpr:
        rest = len(closed.in_avals) - len(lead)
        return axis.batch_jaxpr(closed, (*lead, *[True] * rest), True)[0]

    linear = batch(steps.linear)
    pullback = None if steps.pullback is None else batch(steps.pullback)
    new = replace(steps, step=step, linear=linear, pullback=pullback)
    n, *rest = [
        axis.to_front(x, d) if m else x for x, d, m in zip(operands, dims, mapped, strict=True)
    ]
    if is_own:
        rest = [n, *rest]
    wanted = [*lead, *[True] * (len(rest) - len(lead))]
    own_dims = [
        *([0] if is_own else []),
        *[0 if m else d for m, d in zip(mapped[1:], dims[1:], strict=True)],
    ]
    rest = [axis.to_front(x, d) if w and d is xprim.not_mapped else x
            for x, d, w in zip(rest, own_dims, wanted, strict=True)]  # fmt: skip
    results = _bind(new, transposed, [_largest(n), *rest])
    return results, (0,) * len(results)


def _guard_steps(steps: _Steps) -> _Steps:
    """Return programs that do nothing once the counter has come to their first constant."""
    return derive(steps.linear, ("guarded", steps), lambda: _guard(steps))


def _guard(steps: _Steps) -> _Steps:
    num_consts, count = steps.num_consts, steps.num_carry
    counter = steps.step.in_avals[num_consts + steps.schedule.counter]
    number = xprim.shaped_array((), counter.dtype)

    def choose(n: Any, args: Sequence[Any], news: Sequence[Any], olds: Sequence[Any]) -> list[Any]:
        goes_on = bind("lt", _largest(args[num_consts + steps.schedule.counter]), n)
        return [_where(goes_on, a, b) for a, b in zip(news, olds, strict=True)]

    def step(n: Any, *args: Any) -> list[Any]:
        return choose(n, args, eval_closed(steps.step, *args), args[num_consts:])

    def linear(n: Any, *args: Any) -> list[Any]:
        olds = args[num_consts + count + steps.num_const_dots :]
        return choose(n, args, eval_closed(steps.linear, *args), olds)

    def pull(n: Any, *args: Any) -> list[Any]:
        news = eval_closed(_pullback_of(steps), *args)
        zeros = _zeros([x.aval for x in news[: steps.num_const_dots]])
        return choose(n, args, news, [*zeros, *args[num_consts + count :]])

    def of(fun: Any, closed: ClosedJaxpr) -> ClosedJaxpr:
        return trace_fun(fun, [number, *closed.in_avals], closed.jaxpr.name)

    pullback = None if steps.pullback is None else of(pull, steps.pullback)
    return replace(
        steps, step=of(step, steps.step), linear=of(linear, steps.linear), pullback=pullback,
        num_consts=num_consts + 1,
    )  # fmt: skip


def _where(pred: Any, x: Any, y: Any) -> Any:
    return select(broadcast_to(pred, x.aval.shape, ()), x, y)


loop_tangents_p: xprim.Primitive = xprim.Primitive(
    "loop_tangents",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    sums_later=True,
)
