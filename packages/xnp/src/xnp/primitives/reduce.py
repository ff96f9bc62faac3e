"""reduce: combine the elements along dimensions by a program of the user's.

    computation(accumulators..., elements...) -> accumulators...

It is a jaxpr over scalars. A program of elementwise primitives joins the elements in one order,
evaluated or compiled: from the left, starting at `init_values`; where there are more than 32, each
32 neighbours from the left first, and so on with the results, so that many are joined at once. The
derivative's program is reduced in the same way, over pairs (x, x_dot).

Any other program must be associative, and `init_values` neutral: compilers choose the order.

Semantics: StableHLO specification, section reduce.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xnp.primitives import costs
from xnp.primitives.operations import broadcasted, concatenated, reshaped, sliced
from xnp.primitives.reductions import reduced_axis_last
from xprim import (
    ELEMENTWISE,
    ClosedJaxpr,
    Equation,
    Primitive,
    ShapedArray,
    Zero,
    dimension_names,
    dtypes,
    eval_closed,
    not_mapped,
    shaped_array,
    undefined,
)
from xprim.contracts import BatchAxis, Builder, JVPHandle
from xprim.errors import MissingRuleError, message
from xprim.jaxpr import interpret

__all__ = ()


def _shape(*avals: ShapedArray, jaxpr: ClosedJaxpr, dimensions: tuple[int, ...]) -> (
    tuple[ShapedArray, ...]
):  # fmt: skip
    count = len(avals) // 2
    operands = avals[:count]
    shape = operands[0].shape
    if any(a.shape != shape for a in operands):
        raise TypeError(message(
            "reduce", "the operands' shapes differ.", got=", ".join(a.str_long() for a in operands),
        ))  # fmt: skip
    if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < len(shape) for d in dimensions):
        raise ValueError(message(
            "reduce",
            f"dimensions must be distinct and within the operands' {len(shape)} dimensions.",
            got=f"{dimensions}",
        ))  # fmt: skip
    kept = tuple([n for i, n in enumerate(shape) if i not in dimensions])
    return tuple([shaped_array(kept, a.dtype) for a in operands])


def is_elementwise(closed: ClosedJaxpr) -> bool:
    """Return whether a program acts on each element alone, so that arrays can be given to it."""
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive.rules["batch"] is ELEMENTWISE:
            continue
        inner = eqn.params.get("jaxpr")
        if not (eqn.primitive.name == "jit" and isinstance(inner, ClosedJaxpr)
                and is_elementwise(inner)):  # fmt: skip
            return False
    return all(c.aval.ndim == 0 for c in closed.consts)


def _flat(closed: ClosedJaxpr, operands: Any) -> Any:
    """Run an elementwise program on arrays: inner calls are entered, as they hold scalar types."""
    return interpret(closed.jaxpr, closed.consts, operands, _on_arrays)


def _on_arrays(eqn: Equation, operands: Sequence[Any]) -> Any:
    if eqn.primitive.rules["batch"] is ELEMENTWISE:
        return eqn.primitive.bind(*operands, **eqn.params)
    return _flat(eqn.params["jaxpr"], operands)


BLOCK = 32  # elements that are joined from the left before the results are


def reduced_in_order(closed: ClosedJaxpr, operands: Any, inits: Any, dimensions: Any) -> Any:
    """Reduce in terms of the primitives of an elementwise program.

    `inits` may have leading dimensions (of a batch), which are the operands' leading kept ones.
    """
    xs = [reduced_axis_last(x, dimensions) for x in operands]
    shape = xs[0].aval.shape[:-1]
    while xs[0].aval.shape[-1] > BLOCK:
        xs = _joined_blocks(closed, xs)
    starts = [broadcasted(i, shape, tuple(range(i.aval.ndim))) for i in inits]
    return _from_the_left(closed, starts, xs, 0)


def _joined_blocks(closed: ClosedJaxpr, xs: Any) -> Any:
    """Join the elements of each block of the last axis; the last block may be smaller."""
    shape, n = xs[0].aval.shape[:-1], xs[0].aval.shape[-1]
    last = len(shape)
    whole = n - n % BLOCK
    blocks = [reshaped(sliced(x, last, 0, whole), (*shape, whole // BLOCK, BLOCK)) for x in xs]
    joined = [_joined_elements(closed, blocks)]
    if whole < n:
        rest = _joined_elements(closed, [sliced(x, last, whole, n) for x in xs])
        joined.append([reshaped(y, (*shape, 1)) for y in rest])
    return [concatenated(list(parts), last) for parts in zip(*joined, strict=True)]


def _joined_elements(closed: ClosedJaxpr, xs: Any) -> Any:
    return _from_the_left(closed, [_element(x, 0) for x in xs], xs, 1)


def _from_the_left(closed: ClosedJaxpr, totals: Any, xs: Any, first: int) -> Any:
    """Join totals with the elements along the last axis, one after the other."""
    shape = xs[0].aval.shape[:-1]
    for k in range(first, xs[0].aval.shape[-1]):
        totals = _flat(closed, [*totals, *[_element(x, k) for x in xs]])
        totals = [broadcasted(y, shape) for y in totals]
    return totals


def _element(x: Any, k: int) -> Any:
    return reshaped(sliced(x, x.aval.ndim - 1, k, k + 1), x.aval.shape[:-1])


def _numpy(*arrays: Any, jaxpr: ClosedJaxpr, dimensions: Any) -> Any:
    count = len(arrays) // 2
    operands, inits = arrays[:count], arrays[count:]
    if is_elementwise(jaxpr):
        return tuple(reduced_in_order(jaxpr, operands, inits, dimensions))
    return _one_by_one(jaxpr, [reduced_axis_last(x, dimensions) for x in operands], inits)


def _one_by_one(jaxpr: ClosedJaxpr, xs: Any, inits: Any) -> Any:
    """Reduce the last axis element after element, with a program of any kind."""
    shape, n = xs[0].aval.shape[:-1], xs[0].aval.shape[-1]
    size = xs[0].aval.size // n if n else 0
    rows = [reshaped(x, (size * n,)) for x in xs]
    done = []
    for row in range(size):
        totals = list(inits)
        for i in range(row * n, row * n + n):
            elements = [reshaped(sliced(x, 0, i, i + 1), ()) for x in rows]
            totals = eval_closed(jaxpr, *totals, *elements)
        done.append([reshaped(t, (1,)) for t in totals])
    if not done:
        return tuple([broadcasted(i, shape) for i in inits])
    return tuple([reshaped(concatenated(column, 0), shape) for column in zip(*done, strict=True)])


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, jaxpr: ClosedJaxpr,
               dimensions: Any) -> Any:  # fmt: skip
    count = len(operands) // 2
    if is_elementwise(jaxpr):
        return b.traced(
            lambda *xs: reduced_in_order(jaxpr, xs[:count], xs[count:], dimensions),
            operands, avals_in, ("reduce", jaxpr, dimensions),
        )  # fmt: skip
    scalars = [shaped_array((), a.dtype) for a in avals_in[:count]]
    region = b.region(
        [*scalars, *scalars], lambda inner, names: inner.inline(jaxpr, names), scalars
    )
    inside = f": {', '.join(map(str, dimensions))}" if dimensions else ""
    return b.op("stablehlo.reduce", operands, avals_in, avals_out,
                f"dimensions = array<i64{inside}>", region)  # fmt: skip


def _jvp(
    handle: JVPHandle, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, dimensions: Any
) -> Any:
    outs = reduce_p.bind(*primals, jaxpr=jaxpr, dimensions=dimensions)
    out_dots = [Zero(handle.tangent_aval(y)) for y in outs]
    if all(type(t) is Zero for t in tangents):
        return outs, tuple(out_dots)
    count = len(outs)
    smooth = [dtypes.is_inexact(y.aval.dtype) for y in outs]
    program, _ = handle.jvp_jaxpr(jaxpr, [*smooth, *smooth], True)
    if not is_elementwise(program):
        raise MissingRuleError(message(
            "reduce",
            "the derivative of this computation is not a program of elementwise operations.",
            hint="write the reduction with lax.scan or lax.associative_scan",
        ))  # fmt: skip
    kept = [i for i, s in enumerate(smooth) if s]
    dots = [handle.instantiate(tangents[i]) for i in kept]
    init_dots = [handle.instantiate(tangents[count + i]) for i in kept]
    arranged = _dual_program(program, count, len(kept))
    results = reduced_in_order(
        arranged, [*primals[:count], *dots], [*primals[count:], *init_dots], dimensions
    )
    for i, dot in zip(kept, results[count:], strict=True):
        out_dots[i] = dot
    return outs, tuple(out_dots)


def _dual_program(program: ClosedJaxpr, count: int, smooth: int) -> ClosedJaxpr:
    """Reorder a derivative's arguments to (totals, their tangents, elements, their tangents)."""
    v = program.jaxpr.invars
    a, b = v[:count], v[count : 2 * count]
    a_dot, b_dot = v[2 * count : 2 * count + smooth], v[2 * count + smooth :]
    return ClosedJaxpr(program.jaxpr.replace(invars=[*a, *a_dot, *b, *b_dot]), program.consts)


def _batch(
    axis: BatchAxis, operands: Any, dims: Any, *, jaxpr: ClosedJaxpr, dimensions: Any
) -> Any:
    count = len(operands) // 2
    xs = [axis.to_front(x, d) for x, d in zip(operands[:count], dims[:count], strict=True)]
    inits, init_dims = operands[count:], dims[count:]
    shifted = tuple([d + 1 for d in dimensions])
    if all(d is not_mapped for d in init_dims):
        return reduce_p.bind(*xs, *inits, jaxpr=jaxpr, dimensions=shifted), (0,) * count
    if not is_elementwise(jaxpr):
        raise MissingRuleError(message(
            "reduce", "a batch of initial values needs a computation of elementwise operations.",
            hint="write the reduction with lax.scan or lax.associative_scan",
        ))  # fmt: skip
    results = reduced_in_order(jaxpr, xs, inits, shifted)
    return tuple(results), (0,) * count


reduce_p: Primitive = Primitive(
    "reduce",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("a reduction by a program is not linear"),
    batch=_batch,
    call_like=True,
    cost=costs.reduction,
    dimensions=dimension_names.without("dimensions"),
)
