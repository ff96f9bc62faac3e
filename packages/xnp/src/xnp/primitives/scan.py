"""scan: run a program for each element along the leading axes of arrays, with a carry.

    carry, ys = scan[jaxpr length reverse num_consts num_carry unroll] consts carry xs

    jaxpr       consts, carry, x -> carry, y

The xs have a leading dimension of `length`, of which each step sees one element; the ys of all
steps are stacked. `reverse` takes the elements from last to first (ys keep the places of their xs);
`unroll` writes that many steps into one turn of the compiled loop.

Neighbours: `scan_derivatives` has the rules of forward and reverse mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.primitives.eager_loops import numpy_step, run_compiled, steps_before_compiling
from xnp.primitives.inner_programs import (
    grown_mask,
    narrowed,
    needed_arguments,
    split_at,
)
from xnp.primitives.scan_derivatives import jvp_rule, linearize_rule, transpose_rule
from xprim import (
    ORDER,
    ClosedJaxpr,
    ConcreteArray,
    Equation,
    Primitive,
    ShapedArray,
    dtypes,
    eval_closed,
    from_stored,
    not_mapped,
    ordered_effects,
    shaped_array,
    state,
)
from xprim.calls import where_true
from xprim.contracts import BatchAxis, Builder, ChecksHandle
from xprim.errors import message
from xprim.sharded_types import whole, with_dimension, without_dimension
from xprim.varying_axes import Axes, grown_axes, varying_results

__all__ = ()


def _shape(*avals: ShapedArray, jaxpr: ClosedJaxpr, length: int, num_consts: int, num_carry: int,
           **_options: Any) -> Any:  # fmt: skip
    consts, carry, xs = split_at(avals, num_consts, num_carry)
    for x in xs:
        if not x.shape or x.shape[0] != length:
            raise ValueError(message(
                "scan", f"every xs must have a leading dimension of size {length}.",
                got=x.str_long(),
            ))  # fmt: skip
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
    return (*carry_out, *[stacked_aval(y, length) for y in ys])


def stacked_aval(aval: ShapedArray, length: int) -> ShapedArray:
    """Return the abstract value of `length` such values, stacked."""
    return with_dimension(aval, 0, length)


def _numpy(*operands: Any, jaxpr: ClosedJaxpr, length: int, reverse: bool, num_consts: int,
           num_carry: int, unroll: int) -> Any:  # fmt: skip
    if length > steps_before_compiling([jaxpr], operands):
        params = {"jaxpr": jaxpr, "length": length, "reverse": reverse, "num_consts": num_consts,
                  "num_carry": num_carry, "unroll": unroll}  # fmt: skip
        return run_compiled(scan_p, operands, jaxpr, params)
    order = range(length - 1, -1, -1) if reverse else range(length)
    y_avals = [stacked_aval(a, length) for a in jaxpr.out_avals[num_carry:]]
    stacks = [np.empty(a.stored.shape, a.stored.dtype) for a in y_avals]
    step = numpy_step(jaxpr, operands, length)
    if step is None:
        carry = _steps_by_rules(jaxpr, operands, num_consts, num_carry, order, stacks)
    else:
        hosts = split_at([x.to_host() for x in operands], num_consts, num_carry)
        results = state.run_quietly(_steps_by_kernel, step, hosts, order, stacks)
        carry = list(map(ConcreteArray, results, jaxpr.out_avals))
    return (*carry, *map(from_stored, stacks, y_avals))


def _steps_by_rules(
    jaxpr: ClosedJaxpr, operands: Sequence[Any], num_consts: int, num_carry: int, order: range,
    stacks: list[Any],
) -> list[Any]:  # fmt: skip
    """Run the steps, put their ys into the stacks, and return the last carry."""
    consts, carry, xs = split_at(operands, num_consts, num_carry)
    hosts = [x.to_stored() for x in xs]
    x_avals = jaxpr.in_avals[num_consts + num_carry :]
    for i in order:
        elements = [from_stored(np.asarray(h[i]), a) for h, a in zip(hosts, x_avals, strict=True)]
        results = eval_closed(jaxpr, *consts, *carry, *elements)
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


def _effects(*, jaxpr: ClosedJaxpr, **_options: Any) -> Any:
    return jaxpr.effects


def _dce(used: Sequence[bool], eqn: Equation) -> Equation:
    """Drop unused ys, and the parts of the carry that no used result depends on."""
    params = eqn.params
    jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    live, used_ys = split_at(used, num_carry)
    while True:
        needed = needed_arguments(jaxpr, [*live, *used_ys])
        carry_needed = needed[num_consts : num_consts + num_carry]
        more = [a or b for a, b in zip(live, carry_needed, strict=True)]
        if more == live:
            break
        live = more
    consts_keep, _, xs_keep = split_at(needed, num_consts, num_carry)
    keep = [*consts_keep, *live, *xs_keep]
    smaller = narrowed(jaxpr, [*live, *used_ys], keep)
    return eqn.replace(
        inputs=where_true(eqn.inputs, keep),
        outputs=where_true(eqn.outputs, [*live, *used_ys]),
        params=params | {"jaxpr": smaller, "num_consts": sum(consts_keep), "num_carry": sum(live)},
    )


# --- lowering ----------------------------------------------------------------------------------


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, jaxpr: ClosedJaxpr,
               length: int, reverse: bool, num_consts: int, num_carry: int,
               unroll: int) -> Any:  # fmt: skip
    """Write a while loop over (counter, carry, ys); the steps that `unroll` leaves over come after.

    The consts and xs are not carried: the regions see them as they are.
    """
    consts, carry, xs = split_at(operands, num_consts, num_carry)
    step = _Step(jaxpr, length, reverse, consts, xs, avals_in[num_consts + num_carry :], num_carry,
                 avals_out)  # fmt: skip
    ys = [b.full_like(0, a.strong()) for a in avals_out[num_carry:]]
    values = [*carry, *ys]
    unroll = max(1, min(unroll, length))
    turns = length // unroll if length > unroll else 0
    if turns:
        values = _loop(b, step, values, turns, unroll)
    for i in range(turns * unroll, length):
        values = step.write(b, b.scalar(i, dtypes.int32), values)
    return values


def _loop(b: Builder, step: _Step, values: list[str], turns: int, unroll: int) -> list[str]:
    counter = shaped_array((), dtypes.int32)
    ordered = bool(ordered_effects(step.jaxpr.effects))  # then the order is carried, too
    avals = [counter, *step.avals, *[ORDER] * ordered]

    def test(inner: Builder, names: list[str]) -> list[str]:
        limit = inner.scalar(turns * unroll, dtypes.int32)
        return inner.op(
            "stablehlo.compare", [names[0], limit], [counter, counter],
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
        b.region(avals, test, [shaped_array((), dtypes.bool_)]), b.region(avals, body, avals)
    )
    start, before = b.scalar(0, dtypes.int32), [b.order] if ordered else []
    _, *results = b.op("stablehlo.while", [start, *values, *before], avals, avals, regions=regions)
    if ordered:
        b.order = results.pop()
    return results


class _Step:
    """Writes one step of a scan: take the elements, run the body, put the ys in their places."""

    def __init__(
        self, jaxpr: ClosedJaxpr, length: int, reverse: bool, consts: list[str], xs: list[str],
        xs_avals: Sequence[ShapedArray], num_carry: int, avals: Sequence[ShapedArray],
    ) -> None:  # fmt: skip
        self.jaxpr = jaxpr
        self.length = length
        self.reverse = reverse
        self.consts = consts
        self.xs = xs
        self.xs_avals = [a.strong() for a in xs_avals]
        self.num_carry = num_carry
        self.avals = [a.strong() for a in avals]

    def write(self, b: Builder, i: str, values: list[str]) -> list[str]:
        """Write step `i` on the carry and ys so far; return the new ones."""
        carry, ys = split_at(values, self.num_carry)
        if self.reverse:
            last = b.scalar(self.length - 1, dtypes.int32)
            i = b.same_type_op("stablehlo.subtract", [last, i], shaped_array((), dtypes.int32))
        elements = [self._element(b, x, a, i) for x, a in zip(self.xs, self.xs_avals, strict=True)]
        results = b.inline(self.jaxpr, [*self.consts, *carry, *elements])
        new, new_ys = split_at(results, self.num_carry)
        stacks = zip(ys, new_ys, self.avals[self.num_carry :], strict=True)
        return [*new, *[self._placed(b, stack, y, a, i) for stack, y, a in stacks]]

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

    def _placed(self, b: Builder, stack: str, y: str, aval: ShapedArray, i: str) -> str:
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
    mapped = [d is not not_mapped for d in dims]
    consts_mapped, carry_mapped, xs_mapped = split_at(mapped, num_consts, num_carry)
    num_ys = len(jaxpr.out_avals) - num_carry

    def batched(mask: list[bool]) -> Any:
        return axis.batch_jaxpr(
            jaxpr, (*consts_mapped, *mask, *xs_mapped), [*mask, *[False] * num_ys]
        )

    body, carry_mapped, ys_mapped = grown_mask(batched, carry_mapped)
    lead = [
        axis.to_front(x, d) if m else x
        for x, d, m in zip(operands[: num_consts + num_carry], dims[: num_consts + num_carry],
                           [*consts_mapped, *carry_mapped], strict=True)
    ]  # fmt: skip
    # the leading dimension of xs and ys stays that of the steps
    xs = [axis.move(x, d, 1) if d is not not_mapped else x
          for x, d in zip(operands[len(lead) :], dims[len(lead) :], strict=True)]  # fmt: skip
    outs = scan_p.bind(
        *lead, *xs, jaxpr=body, num_consts=num_consts, num_carry=num_carry, **options
    )
    carry_dims = [0 if m else not_mapped for m in carry_mapped]
    return outs, (*carry_dims, *[1 if m else not_mapped for m in ys_mapped])


def _shard(*operands: Axes, **params: Any) -> list[Axes]:
    consts, carry, xs = split_at(operands, params["num_consts"], params["num_carry"])

    def step(carry: list[Axes]) -> list[Axes]:
        return varying_results(params["jaxpr"], [*consts, *carry, *xs])

    carry = grown_axes(lambda carry: step(carry)[: len(carry)], carry)
    return [*carry, *step(carry)[len(carry) :]]


def _checked(handle: ChecksHandle, state: Any, operands: Any, **params: Any) -> Any:
    """Carry the state along, in front of the carry."""
    count, new = params["num_consts"], len(state)
    step = handle.program(params["jaxpr"], after=count)
    changes = {"jaxpr": step, "num_carry": params["num_carry"] + new}
    results = scan_p.bind(*operands[:count], *state, *operands[count:], **params | changes)
    return results[:new], results[new:]


scan_p = Primitive(
    "scan",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=jvp_rule,
    linearize=linearize_rule,
    transpose=transpose_rule,
    batch=_batch,
    effects=_effects,
    dce=_dce,
    shard=_shard,
    checked=_checked,
)
