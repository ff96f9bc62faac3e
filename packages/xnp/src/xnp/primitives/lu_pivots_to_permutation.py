"""lu_pivots_to_permutation: the row order that a sequence of row exchanges leads to.

Row i is exchanged with row pivots[i], for i = 0, 1, ...; the result p says that row i of the
permuted matrix is row p[i] of the first one. A negative pivot counts from the end, and one out of
range stands for the nearest row, so that the result is a permutation, always.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.choice_text import chosen, compared
from xnp.primitives.lapack_text import counted, gpu_call
from xprim import (
    ZERO,
    Primitive,
    ShapedArray,
    dimension_names,
    dtypes,
    shaped_array,
    undefined,
)
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message
from xprim.platform_rules import is_gpu

__all__ = ()


def _shape(aval: ShapedArray, *, permutation_size: int) -> tuple[ShapedArray, ...]:
    if aval.dtype != dtypes.int32 or aval.ndim < 1:
        raise TypeError(message(
            "lu_pivots_to_permutation", "the pivots must be vectors of int32.", got=aval.str_long(),
        ))  # fmt: skip
    if aval.shape[-1] > permutation_size:
        raise ValueError(message(
            "lu_pivots_to_permutation", "there are more pivots than rows.",
            got=f"{aval.shape[-1]} pivots, permutation_size={permutation_size}",
        ))  # fmt: skip
    return (shaped_array((*aval.shape[:-1], permutation_size), dtypes.int32),)


def permutation_of(pivots: Any, size: int) -> Any:
    """Return the permutations of NumPy pivots."""
    flat = pivots.reshape((-1, pivots.shape[-1])) if pivots.size else np.zeros((0, 0), np.int32)
    shape = (*pivots.shape[:-1], size)
    result = np.array(np.broadcast_to(np.arange(size, dtype=np.int32), shape))
    rows = result.reshape((-1, size)) if size else result
    members = np.arange(len(flat))
    for i in range(flat.shape[1]):
        j = flat[:, i]
        first = rows[members, i].copy()
        rows[members, i] = rows[members, j]
        rows[members, j] = first
    return result


def _numpy(pivots: Any, *, permutation_size: int) -> Any:
    positions = np.where(pivots < 0, pivots + permutation_size, pivots)
    return (permutation_of(np.clip(positions, 0, permutation_size - 1), permutation_size),)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
               permutation_size: int) -> Any:  # fmt: skip
    rows = _rows_named(b, operands[0], avals_in[0], permutation_size)
    return [permutation_text(b, rows, avals_in[0], avals_out[0])]


def _rows_named(b: Builder, pivots: str, aval: Any, size: int) -> str:
    """Write the rows that pivots stand for, from 0 to size - 1."""
    zero, count, last = [b.full_like(n, aval) for n in (0, size, size - 1)]
    from_end = b.same_type_op("stablehlo.add", [pivots, count], aval)
    rows = chosen(b, compared(b, "LT", pivots, zero, aval), from_end, pivots, aval)
    return b.same_type_op("stablehlo.clamp", [zero, rows, last], aval)


def permutation_text(b: Builder, pivots: str, pivots_aval: Any, out: Any) -> str:
    """Write a loop over the pivots that exchanges entries of the permutation.

    For GPUs there is a kernel that does the same. The pivots are rows: it checks none of them.
    """
    last = out.ndim - 1
    count = pivots_aval.shape[-1]
    if out.size == 0 or count == 0:
        return counted(b, out.shape, last)
    if is_gpu(b.platform):
        return gpu_call(b, "_lu_pivots_to_permutation", [pivots], [pivots_aval], [out],
                        column_major=False, cells=1)[0]  # fmt: skip
    order = counted(b, out.shape, last)
    index, truth = shaped_array((), dtypes.int32), shaped_array((), dtypes.bool_)
    zero, one, stop = [b.scalar(v, dtypes.int32) for v in (0, 1, count)]
    carried = [index, out]

    def condition(inner: Builder, names: Any) -> Any:
        return [compared(inner, "LT", names[0], stop, index)]

    def body(inner: Builder, names: Any) -> Any:
        i, permutation = names
        if not last and not inner.is_split:
            swapped = _swapped_in_vector(inner, permutation, out, pivots, pivots_aval, i)
            return [inner.same_type_op("stablehlo.add", [i, one], index), swapped]
        starts = [*([zero] * last), i]
        # `order`, the index along the last dimension, also is the first permutation
        swapped = _swapped(inner, permutation, order, out, pivots, pivots_aval, starts)
        return [inner.same_type_op("stablehlo.add", [i, one], index), swapped]

    regions = b.regions(b.region(carried, condition, [truth]), b.region(carried, body, carried))
    result: str = b.op("stablehlo.while", [zero, order], carried, carried, regions=regions)[1]
    return result


def _swapped_in_vector(
    b: Builder, permutation: str, out: Any, pivots: str, pivots_aval: Any, i: str
) -> str:
    """Write the exchange of entry i and the entry that pivot i names, in a single permutation."""
    index, one = shaped_array((), dtypes.int32), shaped_array((1,), dtypes.int32)

    def entry(x: str, aval: Any, place: str) -> str:
        (found,) = b.op("stablehlo.dynamic_slice", [x, place], [aval, index], [one],
                        "slice_sizes = array<i64: 1>")  # fmt: skip
        return found

    def put(x: str, value: str, place: str) -> str:
        avals = [out, one, index]
        return b.op("stablehlo.dynamic_update_slice", [x, value, place], avals, [out])[0]

    (other,) = b.op("stablehlo.reshape", [entry(pivots, pivots_aval, i)], [one], [index])
    first, second = entry(permutation, out, i), entry(permutation, out, other)
    return put(put(permutation, second, i), first, other)


def _swapped(b: Builder, permutation: str, positions: str, out: Any, pivots: str, pivots_aval: Any,
             starts: list[str]) -> str:  # fmt: skip
    """Write the exchange of entry i, where `starts` is, and the entry that pivot i names."""
    column = shaped_array((*out.shape[:-1], 1), dtypes.int32)
    rows = shaped_array(out.shape[:-1], dtypes.int32)
    index = shaped_array((), dtypes.int32)
    start_avals = [index] * out.ndim
    wide = tuple(range(out.ndim))

    def entry(x: str, aval: Any) -> Any:
        sizes = f"slice_sizes = array<i64: {', '.join(map(str, column.shape))}>"
        operands, avals = [x, *starts], [aval, *start_avals]
        return b.op("stablehlo.dynamic_slice", operands, avals, [column], sizes)[0]

    target = b.broadcast(entry(pivots, pivots_aval), column, out.shape, wide)
    hit = compared(b, "EQ", positions, target, out)
    masked = chosen(b, hit, permutation, b.full_like(0, out), out)
    (moved,) = b.op(
        "stablehlo.reduce", [masked, b.scalar(0, dtypes.int32)], [out, index], [rows],
        f"dimensions = array<i64: {out.ndim - 1}>", b.reducer("stablehlo.add", dtypes.int32),
    )  # fmt: skip
    (moved,) = b.op("stablehlo.reshape", [moved], [rows], [column])
    first = b.broadcast(entry(permutation, out), column, out.shape, wide)
    (swapped,) = b.op(
        "stablehlo.dynamic_update_slice", [chosen(b, hit, first, permutation, out), moved, *starts],
        [out, column, *start_avals], [out],
    )  # fmt: skip
    return swapped


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, permutation_size: int) -> Any:
    pivots = axis.to_front(operands[0], dims[0])
    outs = lu_pivots_to_permutation_p.bind(pivots, permutation_size=permutation_size)
    return outs, (0,)


lu_pivots_to_permutation_p: Primitive = Primitive(
    "lu_pivots_to_permutation",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=ZERO,
    transpose=undefined("integers have no cotangents"),
    batch=_batch,
    dimensions=dimension_names.of_last(1),
)
