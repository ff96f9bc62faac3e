"""lu_pivots_to_permutation: the row order that a sequence of row exchanges leads to.

Row i is exchanged with row pivots[i], for i = 0, 1, ...; the result p says that row i of the
permuted matrix is row p[i] of the first one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.lapack_text import chosen, compared, counted
from xprim import ZERO, Primitive, ShapedArray, dtypes, shaped_array, undefined


def _shape(aval: ShapedArray, *, permutation_size: int) -> tuple[ShapedArray, ...]:
    if aval.dtype != dtypes.int32 or aval.ndim < 1:
        raise TypeError(
            "lu_pivots_to_permutation: the pivots must be vectors of int32."
            f"\n  got       {aval.str_long()}"
        )
    if aval.shape[-1] > permutation_size:
        raise ValueError(
            "lu_pivots_to_permutation: there are more pivots than rows."
            f"\n  got       {aval.shape[-1]} pivots, permutation_size={permutation_size}"
        )
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
    return (permutation_of(pivots, permutation_size),)


def _stablehlo(b: Any, operands: Any, avals_in: Any, avals_out: Any, *, permutation_size: int) -> (
    Any
):  # fmt: skip
    return [permutation_text(b, operands[0], avals_in[0], avals_out[0])]


def permutation_text(b: Any, pivots: str, pivots_aval: Any, out: Any) -> str:
    """Write a loop over the pivots that exchanges entries of the permutation."""
    last = out.ndim - 1
    order = counted(b, out.shape, last)
    count = pivots_aval.shape[-1]
    if out.size == 0 or count == 0:
        return order
    index = shaped_array((), dtypes.int32)
    column = shaped_array((*out.shape[:-1], 1), dtypes.int32)
    truth = shaped_array((), dtypes.bool_)
    positions = order  # the index along the last dimension: also the first permutation
    zero, one, stop = [b.scalar(v, dtypes.int32) for v in (0, 1, count)]
    carried = [index, out]

    def condition(inner: Any, names: Any) -> Any:
        return [compared(inner, "LT", names[0], stop, index)]

    def body(inner: Any, names: Any) -> Any:
        i, permutation = names
        sizes = f"slice_sizes = array<i64: {', '.join(map(str, column.shape))}>"
        starts = [*([zero] * last), i]
        start_avals = [index] * out.ndim
        wide = tuple(range(out.ndim))

        def entry(x: str, aval: Any) -> str:
            (found,) = inner.op("stablehlo.dynamic_slice", [x, *starts], [aval, *start_avals],
                                [column], sizes)  # fmt: skip
            return found  # type: ignore[no-any-return]

        target = inner.broadcast(entry(pivots, pivots_aval), column, out.shape, wide)
        hit = compared(inner, "EQ", positions, target, out)
        masked = chosen(inner, hit, permutation, inner.full_like(0, out), out)
        (moved,) = inner.op(
            "stablehlo.reduce", [masked, inner.scalar(0, dtypes.int32)], [out, index],
            [shaped_array(out.shape[:-1], dtypes.int32)], f"dimensions = array<i64: {last}>",
            inner.reducer("stablehlo.add", np.dtype(np.int32)),
        )  # fmt: skip
        (moved,) = inner.op("stablehlo.reshape", [moved],
                            [shaped_array(out.shape[:-1], dtypes.int32)], [column])  # fmt: skip
        first = inner.broadcast(entry(permutation, out), column, out.shape, wide)
        swapped = chosen(inner, hit, first, permutation, out)
        (swapped,) = inner.op("stablehlo.dynamic_update_slice", [swapped, moved, *starts],
                              [out, column, *start_avals], [out])  # fmt: skip
        return [inner.same_type_op("stablehlo.add", [i, one], index), swapped]

    regions = b.regions(b.region(carried, condition, [truth]), b.region(carried, body, carried))
    result: str = b.op("stablehlo.while", [zero, order], carried, carried, regions=regions)[1]
    return result


def _batch(axis: Any, operands: Any, dims: Any, *, permutation_size: int) -> Any:
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
)
