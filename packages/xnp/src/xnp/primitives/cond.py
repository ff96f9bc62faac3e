"""cond: run one of several programs, chosen by an integer; branch_operands."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import xprim
from xnp.primitives import table
from xnp.primitives.control_flow import derive, only_checks, split_at, trace_fun, with_guard
from xnp.primitives.index_modes import PROMISE_IN_BOUNDS, GatherDimensionNumbers
from xnp.primitives.lowering_text import known_scalar, write_branch, write_in_order
from xnp.primitives.sort import take_along
from xnp.primitives.table import bind, broadcast_to, fill, reshape, scalar_like, select_rows
from xprim import ClosedJaxpr, Equation, Primitive, ShapedArray, dimension_names, dtypes
from xprim.calls import Programs, all_to_front, front_dims, nonzero, where_true, with_zeros
from xprim.contracts import BatchAxis, Builder, JVPHandle, LinearizeHandle, TransposeHandle
from xprim.derived_refs import UsedRef, derive_with_refs, read_refs, write_back_refs
from xprim.eager_costs import count_operations
from xprim.errors import UndefinedRuleError, message
from xprim.key_uses import count_staged
from xprim.requirements import require
from xprim.rules import BRANCH
from xprim.sharded_types import cotangent, cotangent_as, reshard_as, whole, without_dimension
from xprim.source import describe, describe_full
from xprim.transformed import find

__all__ = ()


# ------------------------------------------------------------------------------- branch operands
# branch_operands: the operands of one branch of a `cond` whose index has batch dimensions.
#
#     outs = branch_operands[branch=k leading=(...)] index operands...
#
# There every branch runs for all examples, and `select_n` drops the results of the branches that an
# example does not take. They must not reach a derivative: 0 times an infinite derivative of such a
# branch is NaN. Evaluated, this primitive is the identity and costs nothing. Differentiated, an
# example that does not take the branch gets the operands of one that does, so that its derivative
# is one that the program has, and its tangents are zero. (Where no example takes the branch,
# no tangent is left to be multiplied, and the zeros are selected after the product in reverse
# mode.)
#
# `index` has the batch dimensions; operand i has the first `leading[i]` of them in front.


def _masks(index: Any, branch: int) -> list[Any]:
    """Return who takes the branch: by the number of batch dimensions, in those that follow any."""
    masks = [bind("eq", index, broadcast_to(xprim.scalar_array(branch, index.aval.dtype),
                                           index.aval.shape))]  # fmt: skip
    for axis in reversed(range(index.aval.ndim)):
        masks.insert(0, bind("reduce_or", masks[0], axes=(axis,)))
    return masks


def _zero(mask: Any, x: Any) -> Any:
    if type(x) is xprim.Zero:
        return x
    return select_rows(mask, x, fill(x.aval.shape, 0, x.aval.dtype))


def _from_takers(masks: Sequence[Any], operands: Sequence[Any], leading: Sequence[int]) -> Any:
    """Return the operands with those of the first that takes the branch in place of the others'."""
    xs = list(operands)
    for axis in reversed(range(len(masks) - 1)):
        mask = masks[axis + 1]
        first = bind("argmax", table.convert(mask, dtypes.int32), axes=(axis,),
                     index_dtype=dtypes.int32)  # fmt: skip
        for i, x in enumerate(xs):
            if leading[i] > axis and x.aval.size:
                xs[i] = select_rows(mask, x, bind("stop_gradient", _repeat(x, first, axis)))
    return xs


def _repeat(x: Any, place: Any, axis: int) -> Any:
    """Return x with its element at a place along an axis in all of them."""
    shape = x.aval.shape
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    found = take_along(x, broadcast_to(place, one, tuple(range(axis))), axis)
    rest = (*shape[:axis], *shape[axis + 1 :])
    kept = tuple([d for d in range(len(shape)) if d != axis])
    return broadcast_to(reshape(found, rest), shape, kept)


def _branch_operands_jvp(
    primals: Any, tangents: Any, *, branch: int, leading: tuple[int, ...]
) -> Any:
    (index, *xs), (_, *dots) = primals, tangents
    if all(type(dot) is xprim.Zero for dot in dots):
        outs = branch_operands_p.bind(index, *xs, branch=branch, leading=leading)
        return outs, tuple(dots)
    masks = _masks(index, branch)
    outs = tuple(_from_takers(masks, xs, leading))
    return outs, tuple([_zero(masks[n], dot) for n, dot in zip(leading, dots, strict=True)])


def _branch_operands_transpose(
    cts: Any, index: Any, *xs: Any, branch: int, leading: tuple[int, ...]
) -> Any:
    masks = _masks(index, branch)
    bars = [
        _zero(masks[n], ct) if type(x) is xprim.Linear else xprim.Zero(x.aval)
        for ct, x, n in zip(cts, xs, leading, strict=True)
    ]
    return (xprim.Zero(index.aval), *bars)


def _branch_operands_batch(
    axis: BatchAxis, operands: Any, dims: Any, *, branch: int, leading: tuple[int, ...]
) -> Any:
    (index, *xs), (index_dim, *xs_dims) = operands, dims
    index = axis.to_front(index, index_dim)
    fronts, depths = [], []
    for x, d, n in zip(xs, xs_dims, leading, strict=True):
        shared = d is xprim.not_mapped and not n
        fronts.append(x if shared else axis.to_front(x, d))
        depths.append(0 if shared else n + 1)
    outs = branch_operands_p.bind(index, *fronts, branch=branch, leading=tuple(depths))
    return outs, tuple([0 if n else xprim.not_mapped for n in depths])


def _branch_operands_dce(used: Sequence[bool], eqn: Equation) -> Equation:
    """Keep the operands that are requested: each result is one of them."""
    index, *xs = eqn.inputs
    leading = tuple(where_true(eqn.params["leading"], used))
    return eqn.replace(
        inputs=[index, *where_true(xs, used)],
        outputs=where_true(eqn.outputs, used),
        params=eqn.params | {"leading": leading},
    )


def _physical(_trailing: int, *operands: Any, **params: Any) -> Any:
    # Each result is the operand itself. The dimensions of an element come last: to map over them
    # would give the index, and the operands that hold numbers, batch dimensions that are not there.
    return branch_operands_p.bind(*operands, **params)


branch_operands_p: Primitive = Primitive(
    "branch_operands",
    shape=lambda index, *avals, **_: avals,
    numpy=lambda index, *xs, **_: xs,
    stablehlo=lambda b, operands, avals_in, avals_out, **_: list(operands[1:]),
    jvp=_branch_operands_jvp,
    transpose=_branch_operands_transpose,
    batch=_branch_operands_batch,
    programs=Programs({}, dce=_branch_operands_dce),
    physical=_physical,
    sharding=dimension_names.AS_SAID,
)


# ------------------------------------------------------------------------------------------ cond
# cond: run one of several programs, chosen by an integer.
#
#     outs = cond[branches=(p0, p1, ...)] index operands...
#
# The index is an int32 scalar and is clamped into range; all branches take the same operands and
# give results of the same types. Under `vmap` with a mapped index every branch runs and the
# results are selected.
#
# `batching`, where it is a param, says what happens under `vmap` with a mapped index instead:
#
#     loop       a scan over the examples, each of which runs its branch
#     partition  the examples are sorted by branch and run in blocks; one of a single branch runs
#                that alone, and at most one less than there are branches are of more than one
#     error      refused
#
# Derivatives: in reverse mode a branch leaves its residuals in slots that the branches share,
# those of another branch being zero; the linear program is a `cond` again. With a concrete index,
# only the branch that is taken is differentiated.
#
# Semantics: StableHLO specification, section case.

Branches = tuple[ClosedJaxpr, ...]


def _shape(index: ShapedArray, *avals: ShapedArray, branches: Branches, **_: Any) -> Any:
    require(
        not index.shape and index.dtype == dtypes.int32, "cond",
        "the index must be an int32 scalar.", got=index, error=TypeError,
    )  # fmt: skip
    expected = [whole(a.strong()) for a in branches[0].in_avals]
    if [whole(a.strong()) for a in avals] != expected:
        raise TypeError(message(
            "cond", "the operands do not have the types that the branches take.",
            got=", ".join(a.str_long() for a in avals),
            expected=", ".join(a.str_long() for a in expected),
        ))  # fmt: skip
    return branches[0].out_avals


def choose_branch(index: Any, branches: Branches) -> ClosedJaxpr:
    """Return the branch that a concrete index chooses."""
    return branches[max(0, min(int(index.to_host()), len(branches) - 1))]


def _numpy(index: Any, *operands: Any, branches: Branches, **_: Any) -> Any:
    return tuple(xprim.eval_closed(choose_branch(index, branches), *operands))


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, branches: Branches, **_: Any
) -> Any:
    index, *rest = operands
    known = known_scalar(b, index)
    if known is not None:  # the others may be of another platform, with no text for this one
        return b.inline(branches[min(max(int(known), 0), len(branches) - 1)], rest)
    scalar = avals_in[0].strong()
    # stablehlo.case runs the last branch for every index that is out of range
    low, high = b.scalar(0, scalar.dtype), b.scalar(len(branches) - 1, scalar.dtype)
    (clamped,) = b.op("stablehlo.clamp", [low, index, high], [scalar] * 3, [scalar])
    if not any(xprim.ordered_effects(branch.effects) for branch in branches):
        regions = [
            b.region([], partial(write_branch, branch, rest), avals_out) for branch in branches
        ]
        return b.op("stablehlo.case", [clamped], [scalar], avals_out, regions=b.regions(*regions))
    before, avals = b.order, [*avals_out, xprim.ORDER]
    regions = [
        b.region([], partial(write_in_order, branch, rest, before), avals) for branch in branches
    ]
    *results, b.order = b.op(
        "stablehlo.case", [clamped], [scalar], avals, regions=b.regions(*regions)
    )
    return results


# --- derivatives -------------------------------------------------------------------------------


def _cond_jvp(
    handle: JVPHandle, primals: Any, tangents: Any, *, branches: Branches, **batching: Any
) -> Any:
    (index, *operands), (_, *dots) = primals, tangents
    mask = nonzero(dots)
    given = where_true(dots, mask)
    if type(index) is xprim.ConcreteArray:
        nonzero_out: Sequence[bool]
        forward, nonzero_out = handle.jvp_jaxpr(choose_branch(index, branches), mask)
        results: Sequence[Any] = xprim.eval_closed(forward, *operands, *given)
    else:
        forwards, nonzero_out = _joint_jvp(handle, branches, mask)
        results = cond_p.bind(index, *operands, *given, branches=forwards, **batching)
    outs = results[: len(nonzero_out)]
    return outs, with_zeros(handle, outs, results[len(nonzero_out) :], nonzero_out)


def _joint_jvp(
    handle: JVPHandle, branches: Branches, mask: list[bool]
) -> tuple[Branches, list[bool]]:
    """Return the derivatives of all branches, with the same nonzero tangents in each."""
    each = [handle.jvp_jaxpr(br, mask)[1] for br in branches]
    joint = [any(flags) for flags in zip(*each, strict=True)]
    return tuple([handle.jvp_jaxpr(br, mask, joint)[0] for br in branches]), joint


def _linearize(
    handle: LinearizeHandle, primals: Any, tangents: Any, *, branches: Branches, **batching: Any
) -> Any:
    (index, *operands), (_, *dots) = primals, tangents
    mask = nonzero(dots)
    given = where_true(dots, mask)
    out_dots: Sequence[Any] = ()
    if type(index) is xprim.ConcreteArray:
        split, refs = derive_with_refs(handle.linearize_jaxpr, choose_branch(index, branches), mask)
        operands += read_refs(refs)
        results: Sequence[Any] = write_back_refs(refs, xprim.eval_closed(split.primal, *operands))
        residuals = split.residuals(operands, results)
        count, nonzero_out = split.num_results, split.nonzero_out
        if any(nonzero_out):
            out_dots = xprim.eval_closed(split.linear, *residuals, *given)
    else:
        each = _linearize_branches(handle, branches, mask)
        first, *others = [split.primal for split, _ in each]
        joint, refs = _with_joint_refs([(split.primal, own) for split, own in each])
        primal, linear, forwarded = derive(
            first, ("cond linearize", *others, *mask),
            lambda: _split_branches(each, joint, refs, mask),
        )  # fmt: skip
        operands += read_refs(refs)
        bound = cond_p.bind(index, *operands, branches=primal, **batching)
        results = write_back_refs(refs, bound)
        count, nonzero_out = each[0][0].num_results, each[0][0].nonzero_out
        residuals = [*[operands[k] for k in forwarded], *results[count:]]
        if any(nonzero_out):
            out_dots = cond_p.bind(index, *residuals, *given, branches=linear, **batching)
    outs = results[:count]
    return outs, with_zeros(handle, outs, out_dots, nonzero_out)


def _linearize_branches(
    handle: LinearizeHandle, branches: Branches, mask: list[bool]
) -> list[tuple[Any, Sequence[UsedRef]]]:
    """Return each branch in two parts with the same nonzero tangents, and its references."""
    found = [derive_with_refs(handle.linearize_jaxpr, br, mask)[0] for br in branches]
    joint = _joint([split.nonzero_out for split in found])
    return [derive_with_refs(handle.linearize_jaxpr, br, mask, joint) for br in branches]


def _split_branches(
    each: Sequence[tuple[Any, Sequence[UsedRef]]], primals: Branches, refs: Sequence[UsedRef],
    mask: list[bool],
) -> Any:  # fmt: skip
    """Return primal and linear branches, and the operands that are residuals.

    Residuals of equal type share a slot among the branches, as only one of them runs.

    Args:
      each: the branches in two parts, and the references that each uses.
      primals: the first parts, with the values of all references.
      refs: all of them.
      mask: which operands have tangents.
    """
    splits = [split for split, _ in each]
    count, ends = len(splits[0].nonzero_out), sum(used.is_written for used in refs)
    num_operands = len(primals[0].in_avals) - len(refs)
    slots: list[ShapedArray] = []
    places = [_take_slots(slots, p.out_avals[count : len(p.out_avals) - ends]) for p in primals]
    used_operands, forwarded = _residual_operands(each, refs, num_operands)
    primal = tuple([
        _primal_branch(p, count, slots, own) for p, own in zip(primals, places, strict=True)
    ])  # fmt: skip
    lead = [primals[0].in_avals[k] for k in forwarded] + slots
    tangent_avals = [a.strong() for a in where_true(primals[0].in_avals, mask)]
    linear = tuple([
        _linear_branch(s, operands, lead + tangent_avals, forwarded, own, len(lead))
        for s, operands, own in zip(splits, used_operands, places, strict=True)
    ])  # fmt: skip
    return primal, linear, forwarded


def _residual_operands(
    each: Sequence[tuple[Any, Sequence[UsedRef]]], refs: Sequence[UsedRef], num_operands: int
) -> tuple[list[list[int]], list[int]]:
    """Return the numbers of the residuals of each branch among operands and references; and all."""
    number = {used.ref: num_operands + i for i, used in enumerate(refs)}
    found = [
        [number[own[k - num_operands].ref] if k >= num_operands else k for k in split.forwarded]
        for split, own in each
    ]
    return found, sorted({k for numbers in found for k in numbers if k >= 0})


def _joint(masks: Sequence[Sequence[bool]]) -> list[bool]:
    """Return for each result whether it is marked in any branch."""
    return [any(flags) for flags in zip(*masks, strict=True)]


def _take_slots(slots: list[ShapedArray], avals: Sequence[ShapedArray]) -> list[int]:
    """Return a slot of its type for each residual of a branch; new ones are added to `slots`."""
    free = list(range(len(slots)))
    own = []
    for aval in avals:
        slot = next((s for s in free if slots[s] is aval.strong()), len(slots))
        if slot == len(slots):
            slots.append(aval.strong())
        else:
            free.remove(slot)
        own.append(slot)
    return own


def _primal_branch(
    primal: ClosedJaxpr, count: int, slots: list[ShapedArray], own: list[int]
) -> ClosedJaxpr:
    def run(*operands: Any) -> list[Any]:
        results = xprim.eval_closed(primal, *operands)
        outs, extra, ends = split_at(results, count, len(own))
        there = dict(zip(own, extra, strict=True))
        filling = [there[i] if i in there else reshard_as(fill(a.shape, 0, a.dtype), a)
                   for i, a in enumerate(slots)]  # fmt: skip
        return [*outs, *filling, *ends]

    return trace_fun(run, primal.in_avals, primal.jaxpr.name)


def _linear_branch(
    split: Any, operands: list[int], avals: list[ShapedArray], forwarded: list[int],
    own: list[int], lead: int,
) -> ClosedJaxpr:  # fmt: skip
    def linear(*args: Any) -> list[Any]:
        operand = dict(zip(forwarded, args, strict=False))
        slots = args[len(forwarded) : lead]
        extra = iter([slots[i] for i in own])
        residuals = [operand[k] if k >= 0 else next(extra) for k in operands]
        return xprim.eval_closed(split.linear, *residuals, *args[lead:])

    return trace_fun(linear, avals, split.linear.jaxpr.name)


def _cond_transpose(
    handle: TransposeHandle, cts: Any, index: Any, *operands: Any, branches: Branches,
    **batching: Any,
) -> Any:  # fmt: skip
    if type(index) is xprim.Linear:
        raise UndefinedRuleError(message(
            "linear_transpose", "the program is not linear: which branch of a cond runs depends on "
            "its arguments.",
        ))  # fmt: skip
    linear = [type(x) is xprim.Linear for x in operands]
    mask = nonzero(cts)
    known = [x for x in operands if type(x) is not xprim.Linear]
    given = where_true(cts, mask)
    each = [derive_with_refs(handle.transpose_jaxpr, br, linear, mask) for br in branches]
    backward, refs = _with_joint_refs([(program, own) for (program, _), own in each])
    masks = [nonzero_out for (_, nonzero_out), _ in each]
    backward = _with_equal_results(backward, where_true(branches[0].in_avals, linear), masks)
    values = read_refs(refs)
    if type(index) is xprim.ConcreteArray:
        results: Sequence[Any] = xprim.eval_closed(
            choose_branch(index, backward), *known, *given, *values
        )
    else:
        results = cond_p.bind(index, *known, *given, *values, branches=backward, **batching)
    found = iter(write_back_refs(refs, results))
    given_by_any = iter([any(mask) for mask in zip(*masks, strict=True)])
    return (
        xprim.Zero(index.aval),
        *[next(found) if lin and next(given_by_any) else xprim.Zero(x.aval)
          for x, lin in zip(operands, linear, strict=True)],
    )  # fmt: skip


def _with_equal_results(
    backward: Branches, avals: Sequence[ShapedArray], masks: Sequence[Sequence[bool]]
) -> Branches:
    """Return transposed branches that all give the cotangents that one of them gives, of one type.

    Where every branch leaves a sum over members to the caller, or gives zero, all leave it; else
    each branch sums.

    Args:
      backward: the transposed branches, which give nonzero cotangents alone.
      avals: the types of the linear operands.
      masks: for each branch, which of these have a cotangent that is not zero.
    """
    each = [dict(zip(where_true(range(len(avals)), mask), p.out_avals, strict=False))
            for p, mask in zip(backward, masks, strict=True)]  # fmt: skip
    wanted = {}
    for k in sorted(set().union(*each)):
        kinds = {found[k].strong() for found in each if k in found}
        wanted[k] = kinds.pop() if len(kinds) == 1 else None

    def of_branch(program: ClosedJaxpr, found: dict[int, ShapedArray]) -> ClosedJaxpr:
        if found.keys() == wanted.keys() and None not in wanted.values():
            return program

        def run(*operands: Any) -> list[Any]:
            results = xprim.eval_closed(program, *operands)
            cts, ends = split_at(results, len(found))
            there = dict(zip(found, cts, strict=True))
            filling = {k: cotangent(avals[k]) if a is None else a for k, a in wanted.items()}
            for k, a in filling.items():
                if k not in there:
                    there[k] = reshard_as(fill(a.shape, 0, a.dtype), a)
                elif wanted[k] is None:
                    there[k] = cotangent_as(there[k], avals[k])
            return [*[there[k] for k in wanted], *ends]

        return trace_fun(run, program.in_avals, program.jaxpr.name)

    return tuple([of_branch(p, found) for p, found in zip(backward, each, strict=True)])


def _with_joint_refs(
    each: Sequence[tuple[ClosedJaxpr, Sequence[UsedRef]]],
) -> tuple[Branches, Sequence[UsedRef]]:
    """Return branches that get the values of all references which some branch uses, and these.

    Args:
      each: the branches, and the references whose values are the last arguments of each.
    """
    writes: dict[Any, bool] = {}
    for used in [used for _, own in each for used in own]:
        writes[used.ref] = writes.get(used.ref, False) or used.is_written
    refs = [UsedRef(ref, is_written) for ref, is_written in writes.items()]
    return tuple([_add_refs(br, own, refs) for br, own in each]), refs


def _add_refs(branch: ClosedJaxpr, own: Sequence[UsedRef], refs: Sequence[UsedRef]) -> ClosedJaxpr:
    """Give a branch the values of more references, which it gives on where another writes them."""
    if not refs:
        return branch
    jaxpr, count = branch.jaxpr, len(branch.in_avals) - len(own)
    end = len(jaxpr.outvars) - sum(used.is_written for used in own)
    variables = {u.ref: v for u, v in zip(own, jaxpr.invars[count:], strict=True)}
    ends = dict(zip([u.ref for u in own if u.is_written], jaxpr.outvars[end:], strict=True))
    invars = [variables.get(u.ref) or xprim.Var(u.ref.aval) for u in refs]
    outvars = [ends.get(u.ref, v) for u, v in zip(refs, invars, strict=True) if u.is_written]
    return ClosedJaxpr(
        jaxpr.replace(
            invars=[*jaxpr.invars[:count], *invars], outvars=[*jaxpr.outvars[:end], *outvars]
        ),
        branch.consts,
    )


# --- batching ----------------------------------------------------------------------------------

BATCHINGS = ("select", "loop", "partition", "error")


def _cond_batch(
    axis: BatchAxis, operands: Any, dims: Any, *, branches: Branches, **batching: str
) -> Any:
    (index, *rest), (index_dim, *rest_dims) = operands, dims
    values, mapped = all_to_front(axis, rest, rest_dims)
    if index_dim is not xprim.not_mapped:
        if not batching:
            _warn_of_cheaper_ways(axis, values, branches)
        way = _BATCH_BY[batching.get("batching", "select")]
        return way(axis, axis.to_front(index, index_dim), values, mapped, branches)
    joint = tuple(_joint([axis.batch_jaxpr(br, mapped, False)[1] for br in branches]))
    batched = tuple([axis.batch_jaxpr(br, mapped, joint)[0] for br in branches])
    return cond_p.bind(index, *values, branches=batched, **batching), front_dims(joint)


def _batch_by_selection(
    axis: BatchAxis, index: Any, operands: list[Any], mapped: list[bool], branches: Branches
) -> Any:
    _refuse_effects(branches)
    number = count_staged()
    cases = [
        _for_all_examples(axis, f"{k} of {number}", br, mapped,
                          bind("eq", index, scalar_like(index, k)),
                          operands_of_takers(k, index, operands, mapped))
        for k, br in enumerate(branches)
    ]  # fmt: skip
    outs, mapped_out = [], []
    for k, values in zip(_find_forwarded(branches), zip(*cases, strict=True), strict=True):
        if k is None:
            which = broadcast_to(index, values[0].aval.shape, (0,))
            outs.append(xprim.get_primitive("select_n").bind(which, *values)[0])
        else:
            outs.append(operands[k])
        mapped_out.append(k is None or mapped[k])
    return tuple(outs), front_dims(mapped_out)


def _refuse_effects(branches: Branches) -> None:
    if not all(map(only_checks, branches)):
        raise UndefinedRuleError(message(
            "cond", "branches with side effects cannot run for a batch of predicates.",
            hint="under vmap every branch runs, and its results are selected; batching='loop' runs "
            "the branch of each example",
        ))  # fmt: skip


def _batch_by_loop(
    axis: BatchAxis, index: Any, operands: list[Any], mapped: list[bool], branches: Branches
) -> Any:
    """Run the branch of each example, one after the other."""

    def run(index: Any, *operands: Any) -> Sequence[Any]:
        return cond_p.bind(index, *operands, branches=branches, batching="loop")

    outs = _scan_over(run, axis.size, [index, *operands], [True, *mapped])
    return tuple(outs), front_dims([True] * len(outs))


def _scan_over(
    fun: Any, length: int, operands: Sequence[Any], mapped: Sequence[bool]
) -> Sequence[Any]:
    """Run a function of flat lists for each element along the leading axes of those mapped."""
    consts, xs = [where_true(operands, [m == is_x for m in mapped]) for is_x in (False, True)]
    avals = [
        *[x.aval.strong() for x in consts],
        *[without_dimension(x.aval.strong(), 0) for x in xs],
    ]

    def step(*args: Any) -> Sequence[Any]:
        given = (iter(args[: len(consts)]), iter(args[len(consts) :]))
        return fun(*[next(given[m]) for m in mapped])  # type: ignore[no-any-return]

    outs: Sequence[Any] = xprim.get_primitive("scan").bind(
        *consts, *xs, jaxpr=trace_fun(step, avals), length=length, reverse=False, unroll=1,
        num_consts=len(consts), num_carry=0,
    )  # fmt: skip
    return outs


def _batch_by_partition(
    axis: BatchAxis, index: Any, operands: list[Any], mapped: list[bool], branches: Branches
) -> Any:
    """Run blocks of examples that are sorted by branch."""
    _refuse_effects(branches)
    vmap = find("vmap")
    if vmap is None:
        raise AssertionError("a batch without the package that batches")
    size, count = axis.size, len(branches)
    if not size:  # nothing to sort, and no block
        return _batch_by_selection(axis, index, operands, mapped, branches)
    block = -(-size // max(1, min(size, _BLOCKS_PER_BRANCH * (count - 1))))
    blocks = -(-size // block)
    order = _sort_places(index)
    places = bind("min", table.counting(blocks * block, dtypes.int32),
                  fill((blocks * block,), size - 1, dtypes.int32))  # fmt: skip
    padded = _rows(order, places)

    def in_blocks(x: Any) -> Any:
        rows = _rows(x, padded)
        return reshape(rows, (blocks, block, *x.aval.shape[1:]))

    def run(numbers: Any, *operands: Any) -> Sequence[Any]:
        first, last = [table.item(numbers, i) for i in (0, block - 1)]
        is_one = bind("eq", first, last)
        chosen = table.select(is_one, first, scalar_like(first, count))
        avals = [numbers.aval, *[x.aval for x in operands]]
        in_axes = [0 if m else None for m in mapped]
        whole = [trace_fun(_of_block(vmap, br, in_axes), avals) for br in branches]

        def run_each(numbers: Any, *operands: Any) -> Any:
            def one(i: Any, *xs: Any) -> Any:
                return cond_p.bind(i, *xs, branches=branches)

            return vmap(one, in_axes=(0, *in_axes), axis_size=block)(numbers, *operands)

        programs = (*whole, trace_fun(run_each, avals))
        return cond_p.bind(chosen, numbers, *operands, branches=programs, batching="loop")

    blocked = [in_blocks(x) if m else x for x, m in zip(operands, mapped, strict=True)]
    outs = _scan_over(run, blocks, [in_blocks(index), *blocked], [True, *mapped])
    ranks = _sort_places(order)
    flat = [reshape(y, (blocks * block, *y.aval.shape[2:])) for y in outs]
    return tuple([_rows(y, ranks) for y in flat]), front_dims([True] * len(outs))


# A block of several branches runs all of them: there is one for each branch but the last, at most.
_BLOCKS_PER_BRANCH = 8


def _of_block(vmap: Any, branch: ClosedJaxpr, in_axes: list[Any]) -> Any:
    def run(numbers: Any, *operands: Any) -> Any:
        def one(_: Any, *xs: Any) -> Any:
            return tuple(xprim.eval_closed(branch, *xs))

        return vmap(one, in_axes=(0, *in_axes))(numbers, *operands)

    return run


def _sort_places(keys: Any) -> Any:
    """Return the numbers of the elements of a vector in ascending order, equal ones as they are."""
    numbers = table.counting(keys.aval.shape[0], dtypes.int32)
    return xprim.get_primitive("sort").bind(keys, numbers, dimension=0, is_stable=True, num_keys=1)[
        1
    ]


def _rows(x: Any, places: Any) -> Any:
    """Return the rows of an array at places that are in bounds."""
    rest = x.aval.shape[1:]
    count = places.aval.shape[0]
    numbers = GatherDimensionNumbers(tuple(range(1, len(rest) + 1)), (0,), (0,))
    return bind(
        "gather", x, reshape(places, (count, 1)), dimension_numbers=numbers,
        slice_sizes=(1, *rest), indices_are_sorted=False, unique_indices=False,
        mode=PROMISE_IN_BOUNDS, fill_value=None,
    )  # fmt: skip


def _refuse_a_batch(axis: Any, index: Any, operands: Any, mapped: Any, branches: Branches) -> Any:
    place = describe(_source_of(branches))
    raise UndefinedRuleError(message(
        "cond", "vmap maps over the predicate, which batching='error' forbids.",
        where=f"the branches at {place}" if place else "",
        hint="batching='select' runs every branch, 'loop' and 'partition' those that are taken",
    ))  # fmt: skip


_BATCH_BY = {
    "select": _batch_by_selection, "loop": _batch_by_loop, "partition": _batch_by_partition,
    "error": _refuse_a_batch,
}  # fmt: skip


def _source_of(branches: Branches) -> Any:
    """Return where the first equation of a branch was written, if that is known."""
    return next((e.source for br in branches for e in br.jaxpr.eqns if e.source is not None), None)


# Fewer operations are over before blocks are sorted and loops have begun.
_WORTH_A_WARNING = 1e7
# To move a row to its place and back counts so many operations for each element.
_PER_ELEMENT_MOVED = 8
# Blocks have fewer examples than the batch: their products run at half the speed (measured).
_SLOWER_IN_BLOCKS = 2


def _warn_of_cheaper_ways(axis: BatchAxis, operands: Sequence[Any], branches: Branches) -> None:
    """Warn, once per line, where another way would be more than twice as fast.

    The estimate takes the branches for equally likely. All of them cost the sum of their
    operations for each example, blocks of one branch the mean, and at most one block for each
    branch but the last the sum. With fewer than five branches nothing is twice as fast.
    """
    size: Any = axis.size
    if not isinstance(size, int):  # a symbolic dimension
        return
    each = [count_operations(br) for br in branches]
    total, count = sum(each), len(each)
    if size * total < _WORTH_A_WARNING:
        return
    elements = sum([x.aval.size for x in operands])
    elements += size * sum([a.size for a in branches[0].out_avals])
    mixed = 1 / _BLOCKS_PER_BRANCH
    partition = size * (_SLOWER_IN_BLOCKS * total / count * (1 - mixed) + total * mixed)
    partition += _PER_ELEMENT_MOVED * elements
    source = _source_of(branches)
    if size * total > 2 * partition and source is not None:
        ratio = size * total / partition
        warnings.warn_explicit(message(
            "switch", f"vmap maps over the index, so all {count} branches run for each example.",
            hint=f"batching='partition' runs those that are taken, about {ratio:.1f} times as fast "
            "if they are equally likely; batching='select' says that all are to run",
        ), UserWarning, *describe_full(source)[:2])  # fmt: skip


def _for_all_examples(
    axis: BatchAxis, name: str, branch: ClosedJaxpr, mapped: list[bool], taken_by: Any,
    operands: Any,
) -> list[Any]:  # fmt: skip
    """Run a branch, whose checks count for the examples that take it."""
    if xprim.exact_effects(branch.effects):
        branch, mapped, operands = with_guard(branch), [True, *mapped], [taken_by, *operands]
    with xprim.named_scope(f"{BRANCH} {name})"):
        return xprim.eval_closed(axis.batch_jaxpr(branch, mapped, True)[0], *operands)


def _find_forwarded(branches: Branches) -> list[int | None]:
    """Return for each result the number of the operand that it is in every branch, or None."""
    number = [{v: k for k, v in enumerate(br.jaxpr.invars)} for br in branches]
    each = [[n.get(v) if type(v) is xprim.Var else None for v in br.jaxpr.outvars]
            for n, br in zip(number, branches, strict=True)]  # fmt: skip
    return [same[0] if len(set(same)) == 1 else None for same in zip(*each, strict=True)]


def operands_of_takers(
    branch: int, index: Any, operands: list[Any], leading: Iterable[int]
) -> Sequence[Any]:
    """Return the operands for a branch, whose derivatives see only examples that take it.

    Args:
      branch: its number.
      index: the number of the branch that each example takes.
      operands: those of all examples.
      leading: for each operand, how many of the dimensions of `index` it has in front.
    """
    if 0 in index.aval.shape or not any(dtypes.is_inexact(x.aval.dtype) for x in operands):
        return operands
    depths = tuple(map(int, leading))
    return branch_operands_p.bind(index, *operands, branch=branch, leading=depths)


cond_p = Primitive(
    "cond",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_cond_jvp,
    linearize=_linearize,
    transpose=_cond_transpose,
    batch=_cond_batch,
    programs=Programs(
        {"branches": ("operands",)}, operands={"index": 1, "operands": None}, sums_later=True
    ),
)
