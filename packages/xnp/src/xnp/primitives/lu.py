"""lu: L U = P A with row interchanges, for matrices of any shape.

The results are L and U in one matrix (L unit lower triangular, its ones not stored), the pivots
(row i was exchanged with row pivots[i]), and the permutation: `A[permutation] = L U`. Where a pivot
is zero its column of L is left as it is, as LAPACK does.

With NumPy, panels of columns are factored one column at a time, for all matrices of a batch at
once, and the rest of the matrix is updated by one product for each panel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives.lapack_text import gpu_call, info_aval, lapack_call, nan_on_failure
from xnp.primitives.lu_pivots_to_permutation import permutation_of, permutation_text
from xnp.primitives.matrices import checked, eye, matmul, matrix_batch, tril, triu
from xnp.primitives.operations import (
    add,
    bind,
    broadcasted,
    concatenated,
    converted,
    filled,
    iota,
    sliced,
)
from xnp.primitives.triangular_solve import solve_lower, solved
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import Builder
from xprim.platform_rules import by_platform

__all__ = ()

_PANEL = 32


def _shape(aval: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, m, n = checked("lu", aval)
    return (
        shaped_array(aval.shape, aval.dtype),
        shaped_array((*batch, min(m, n)), dtypes.int32),
        shaped_array((*batch, m), dtypes.int32),
    )


def _numpy(a: Any) -> Any:
    *batch, m, n = a.shape
    out = np.array(a.reshape((-1, m, n)) if a.size else np.zeros((0, m, n), a.dtype), order="C")
    k = min(m, n)
    pivots = np.zeros((out.shape[0], k), np.int32)
    for start in range(0, k, _PANEL):
        stop = min(start + _PANEL, k)
        _factor_panel(out, pivots, start, stop)
        if stop < n:
            block = out[:, start:stop, start:stop]
            upper = np.empty_like(out[:, start:stop, stop:])
            solve_lower(block, out[:, start:stop, stop:], upper, True)
            out[:, start:stop, stop:] = upper
            out[:, stop:, stop:] -= out[:, stop:, start:stop] @ upper
    pivots = pivots.reshape((*batch, k)) if a.size else np.zeros((*batch, k), np.int32)
    return out.reshape(a.shape), pivots, permutation_of(pivots, m)


def _factor_panel(out: Any, pivots: Any, start: int, stop: int) -> None:
    """Factor columns `start` to `stop` in place, exchanging whole rows."""
    members = np.arange(out.shape[0])
    for j in range(start, stop):
        column = out[:, j:, j]
        sizes = np.abs(column.real) + np.abs(column.imag) if column.dtype.kind == "c" else (
            np.abs(column))  # fmt: skip
        pivot = np.argmax(sizes, axis=1) + j
        pivots[:, j] = pivot
        row = out[members, pivot]
        out[members, pivot] = out[:, j]
        out[:, j] = row
        below, divisor = out[:, j + 1 :, j], row[:, j, None]
        out[:, j + 1 :, j] = np.where(divisor == 0, below, below / divisor)
        out[:, j + 1 :, j + 1 : stop] -= out[:, j + 1 :, j, None] * row[:, None, j + 1 : stop]


def _lapack(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    aval = avals_out[0]
    return _factors(b, avals_out, lambda avals: lapack_call(
        b, "getrf", aval.dtype, operands, [aval], avals))  # fmt: skip


def _gpu(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    aval = avals_out[0]
    return _factors(b, avals_out, lambda avals: gpu_call(
        b, "solver_getrf_ffi", operands, [aval], avals, aliases={0: 0}))  # fmt: skip


def _factors(b: Builder, avals_out: Any, call: Callable[[Any], list[str]]) -> list[str]:
    """Write the results of a call, whose pivots count from 1, in the form of ours."""
    aval, pivots_aval, permutation_aval = avals_out
    batch = aval.shape[:-2]
    if aval.size == 0:
        order = np.broadcast_to(np.arange(aval.shape[-2], dtype=np.int32), permutation_aval.shape)
        return [b.constant(0, aval), b.constant(0, pivots_aval),
                b.constant(order, permutation_aval)]  # fmt: skip
    found, pivots, info = call([aval, pivots_aval, info_aval(batch)])
    one = b.full_like(1, pivots_aval)
    pivots = b.same_type_op("stablehlo.subtract", [pivots, one], pivots_aval)
    result = nan_on_failure(b, info, batch, found, aval, "GE")
    return [result, pivots, permutation_text(b, pivots, pivots_aval, permutation_aval)]


def _jvp(primals: Any, tangents: Any) -> Any:
    # with X = L^-1 P dA U^-1, L and U made square by ones on the diagonal:
    #   dL = L strictly-lower(X),  dU = upper(X) U
    # because L^-1 dL is strictly lower triangular and dU U^-1 is upper triangular
    (a,), (a_dot,) = primals, tangents
    outs = lu_p.bind(a)
    factors, _, permutation = outs
    zeros = tuple([Zero(y.aval) for y in outs])
    if type(a_dot) is Zero:
        return outs, zeros
    *batch, m, n = a.aval.shape
    k, last, dtype = min(m, n), a.aval.ndim - 1, a.aval.dtype
    lower = add(_widened(tril(sliced(factors, last, 0, k), -1), last, m),
                eye((*batch, m, m), dtype))  # fmt: skip
    upper = _widened(triu(sliced(factors, last - 1, 0, k)), last - 1, n)
    if n > k:
        corner = triu(eye((*batch, n, n), dtype))
        upper = add(upper, _widened(sliced(corner, last - 1, k, n), last - 1, n, front=True))
    x = solved(lower, matmul(row_selector(permutation, dtype), a_dot), lower=True,
               unit_diagonal=True)  # fmt: skip
    x = solved(upper, x, lower=False, left_side=False)
    return outs, (add(matmul(lower, tril(x, -1)), matmul(triu(x), upper)), *zeros[1:])


def _widened(x: Any, dim: int, size: int, *, front: bool = False) -> Any:
    """Append zeros along a dimension up to a size, or put them before."""
    missing = size - x.aval.shape[dim]
    if not missing:
        return x
    shape = list(x.aval.shape)
    shape[dim] = missing
    zeros = filled(shape, 0, x.aval.dtype)
    return concatenated([zeros, x] if front else [x, zeros], dim)


def row_selector(permutation: Any, dtype: Any) -> Any:
    """Return the matrices P with (P A)[i] = A[permutation[i]]."""
    n = permutation.aval.ndim
    m = permutation.aval.shape[-1]
    shape = (*permutation.aval.shape, m)
    rows = broadcasted(permutation, shape, tuple(range(n)))
    return converted(bind("eq", rows, iota(shape, n)), dtype)


lu_p: Primitive = Primitive(
    "lu",
    shape=_shape,
    numpy=_numpy,
    stablehlo=by_platform("lu", cpu=_lapack, gpu=_gpu),
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: lu_p),
    dimensions=dimension_names.of_last(2),
)
