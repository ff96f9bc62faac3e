"""Linear systems: lu, solve, triangular and tridiagonal systems, determinants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp.primitives import lowering_text, matrices, solvers
from xnp.primitives.control_flow import split_at, trace_fun
from xnp.primitives.lowering_text import choose, is_split, of_parts, parts_of, upcast
from xnp.primitives.matrices import (
    LETTER,
    adjoint,
    as_columns,
    as_rows,
    check_matrix,
    conj,
    diagonal,
    eye,
    matmul,
    matrix_batch,
    matrix_batch_of_sides,
    mt,
    tril,
    triu,
)
from xnp.primitives.sort import rows_along
from xnp.primitives.svd import svd_p
from xnp.primitives.table import (
    add,
    bind,
    broadcast_to,
    convert,
    div,
    fill,
    iota,
    join,
    mul,
    neg,
    reshape,
    scale_by,
    select,
    slice_dim,
    sub,
    sum_axes,
)
from xprim import (
    ZERO,
    ClosedJaxpr,
    Linear,
    Primitive,
    ShapedArray,
    Zero,
    dimension_names,
    dtypes,
    eval_closed,
    from_numpy,
    not_mapped,
    shaped_array,
    state,
    undefined,
)
from xprim.calls import all_to_front, nonzero, where_true, with_zeros
from xprim.contracts import BatchAxis, Builder, JVPHandle, TransposeHandle, by_platform, is_gpu
from xprim.dimension_names import Names
from xprim.errors import message
from xprim.requirements import require, require_equal_dtypes

__all__ = ()


# ------------------------------------------------------------------------------ triangular solve
# triangular_solve: solve op(A) X = B, or X op(A) = B, for a triangular A.
#
# op(A) is A, its transpose, its conjugate or its adjoint; only the named triangle of A is read,
# and with `unit_diagonal` its diagonal is taken for ones. With NumPy, every case is brought to a
# lower triangular A on the left, by transposing and by reversing the order of rows and columns,
# and that is solved by halves: X1 = A11^-1 B1, X2 = A22^-1 (B2 - A21 X1), so that matrix products
# do the work.
#
# Semantics: StableHLO specification, section triangular_solve.

HALVES = (dtypes.float16, dtypes.bfloat16)  # no kernel has them: they are solved in float32
_SMALL = 16  # rows below which a loop over rows beats splitting further


def solve_triangle(
    a: Any, b: Any, *, lower: bool, left_side: bool = True, transpose_a: bool = False,
    conjugate_a: bool = False, unit_diagonal: bool = False,
) -> Any:  # fmt: skip
    """Bind the primitive; for rules."""
    return triangular_solve_p.bind(
        a, b, left_side=left_side, lower=lower, transpose_a=transpose_a, conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
    )[0]  # fmt: skip


def _triangular_solve_shape(a: ShapedArray, b: ShapedArray, *, left_side: bool, **_: Any) -> (
    tuple[ShapedArray, ...]
):  # fmt: skip
    batch, n, _n = check_matrix("triangular_solve", a, square=True, narrow=HALVES)
    b_batch, rows, columns = check_matrix("triangular_solve", b, narrow=HALVES)
    if a.dtype != b.dtype:
        raise TypeError(
            "lax.triangular_solve requires arguments to have the same dtypes, got "
            f"{a.dtype.name}, {b.dtype.name}."
        )
    if batch != b_batch or (rows if left_side else columns) != n:
        side = "b.shape[-2]" if left_side else "b.shape[-1]"
        raise ValueError(message(
            "triangular_solve", "the operands do not fit.",
            got=f"a: {a.str_long()}, b: {b.str_long()}",
            expected=f"a.shape[-1] == {side}, and equal batch dimensions",
        ))  # fmt: skip
    return (shaped_array(b.shape, b.dtype),)


def _triangular_solve_numpy(
    a: Any,
    b: Any,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Any:
    if a.dtype in HALVES:
        options = {"left_side": left_side, "lower": lower, "transpose_a": transpose_a,
                   "conjugate_a": conjugate_a, "unit_diagonal": unit_diagonal}  # fmt: skip
        (x,) = _triangular_solve_numpy(a.astype(np.float32), b.astype(np.float32), **options)
        return (x.astype(a.dtype),)
    if conjugate_a and a.dtype.kind == "c":
        a = np.conj(a)
    if transpose_a == left_side:  # X op(A) = B is op(A)^T X^T = B^T
        a, lower = a.swapaxes(-1, -2), not lower
    if not left_side:
        b = b.swapaxes(-1, -2)
    if not lower:
        a, b = a[..., ::-1, ::-1], b[..., ::-1, :]
    x = np.empty(b.shape, b.dtype)
    solve_lower(np.ascontiguousarray(a), b, x, unit_diagonal)
    if not lower:
        x = x[..., ::-1, :]
    return (x if left_side else x.swapaxes(-1, -2),)


def solve_lower(a: Any, b: Any, x: Any, unit_diagonal: bool) -> None:
    """Write the solution of A x = b, for a lower triangular A, to `x`."""
    n = a.shape[-1]
    if n <= _SMALL:
        for i in range(n):
            row = b[..., i, :]
            if i:
                row = row - np.matmul(a[..., i : i + 1, :i], x[..., :i, :])[..., 0, :]
            x[..., i, :] = row if unit_diagonal else row / a[..., i, i, None]
        return
    half = n // 2
    solve_lower(a[..., :half, :half], b[..., :half, :], x[..., :half, :], unit_diagonal)
    rest = b[..., half:, :] - np.matmul(a[..., half:, :half], x[..., :half, :])
    solve_lower(a[..., half:, half:], rest, x[..., half:, :], unit_diagonal)


def _triangular_solve_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, left_side: bool, lower: bool,
    transpose_a: bool, conjugate_a: bool, unit_diagonal: bool,
) -> Any:  # fmt: skip
    (out,) = avals_out
    a, right = operands
    if out.size == 0:
        return [b.constant(0, out)]
    is_complex = dtypes.is_complex(out.dtype)
    if is_complex and conjugate_a and not transpose_a:
        a = _conjugate(b, a, avals_in[0])
    adjoint = is_complex and conjugate_a and transpose_a
    if b.platform == "cpu":
        letters = {"diag": "UN"[not unit_diagonal], "side": "LR"[not left_side],
                   "trans_x": "C" if adjoint else "T" if transpose_a else "N",
                   "uplo": "LU"[not lower]}  # fmt: skip
        config = ", ".join([f"{k} = {ord(v)} : ui8" for k, v in letters.items()])
        return solvers.lapack_call(b, "trsm", out.dtype, [a, right], avals_in, avals_out, config)
    form = "ADJOINT" if adjoint else "TRANSPOSE" if transpose_a else "NO_TRANSPOSE"
    flags = {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal}
    attributes = [f"{name} = {str(flag).lower()}" for name, flag in flags.items()]
    attributes.append(f"transpose_a = #stablehlo<transpose {form}>")
    return b.op("stablehlo.triangular_solve", [a, right], avals_in, avals_out,
                ", ".join(attributes))  # fmt: skip


def _conjugate(b: Builder, x: str, aval: ShapedArray) -> str:
    real, imag = parts_of(b, x, aval)
    return of_parts(aval, real, -imag)


def _triangular_solve_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    # op(A) X = B gives op(A) dX = dB - op(dA) X, dA within the triangle that is read
    (a, b), (a_dot, b_dot) = primals, tangents
    outs = triangular_solve_p.bind(a, b, **params)
    x = outs[0]
    right = None if type(b_dot) is Zero else b_dot
    if type(a_dot) is not Zero:
        skip = 1 if params["unit_diagonal"] else 0
        a_dot = tril(a_dot, -skip) if params["lower"] else triu(a_dot, skip)
        if params["conjugate_a"]:
            a_dot = conj(a_dot)
        if params["transpose_a"]:
            a_dot = mt(a_dot)
        change = neg(matmul(a_dot, x) if params["left_side"] else matmul(x, a_dot))
        right = change if right is None else add(right, change)
    if right is None:
        return outs, (Zero(x.aval),)
    return outs, triangular_solve_p.bind(a, right, **params)


def _triangular_solve_transpose(
    cts: Any, a: Any, b: Any, *, transpose_a: bool, **params: Any
) -> Any:
    assert type(b) is Linear
    outs = triangular_solve_p.bind(a, cts[0], transpose_a=not transpose_a, **params)
    return Zero(a.aval), outs[0]


def _triangular_solve_dimensions(avals: Any, out: Any, params: dict[str, Any]) -> Names:
    """The right hand sides and unknowns may be cut, but not what the product op(A) X sums over."""
    batch = tuple(range(avals[0].ndim - 2))
    free_first = params["left_side"] != params["transpose_a"]
    of_a = (*batch, "solved", None) if free_first else (*batch, None, "solved")
    if params["left_side"]:
        x = (*batch, "solved", "sides")
    else:
        x = (*batch, "sides", "solved")
    return Names([of_a, x], [x])


triangular_solve_p: Primitive = Primitive(
    "triangular_solve",
    shape=_triangular_solve_shape,
    numpy=_triangular_solve_numpy,
    stablehlo=upcast(
        matrices.formula_rule(matrices.triangular_solve, _triangular_solve_stablehlo),
        HALVES,
        np.float32,
    ),
    jvp=_triangular_solve_jvp,
    transpose=_triangular_solve_transpose,
    batch=matrix_batch_of_sides(lambda: triangular_solve_p),
    sharding=_triangular_solve_dimensions,
)


# ----------------------------------------------------------------------------- tridiagonal solve
# tridiagonal_solve: the solution X of A X = B for a tridiagonal A, given by its three diagonals.
#
# Row i of A is dl[i], d[i], du[i] in the columns i - 1, i, i + 1; dl[0] and du[-1] are not read.
# The method is elimination with exchanges of neighbouring rows. Where A is singular X is NaN;
# with `perturb_singular` pivots that are next to nothing are moved away from zero by eps times
# the greatest element of the triangular factor, so that X is finite. Source: LAPACK Users' Guide,
# `gtsv`; for the perturbation `lagts`.


def _tridiagonal_solve_shape(
    dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *, perturb_singular: bool
) -> tuple[ShapedArray, ...]:
    if d.dtype not in LETTER or {dl.dtype, du.dtype, b.dtype} != {d.dtype}:
        found = ", ".join([x.dtype.name for x in (dl, d, du, b)])
        raise TypeError(message(
            "tridiagonal_solve", "does not take operands of such dtypes.", got=f"{found}",
            expected="one of float32, float64, complex64 and complex128 for all of them",
        ))  # fmt: skip
    if not dl.shape == d.shape == du.shape == b.shape[:-1] or d.ndim < 1:
        texts = [f"{n}: {x.str_long()}" for n, x in zip("dl d du b".split(), (dl, d, du, b),
                                                        strict=True)]  # fmt: skip
        raise ValueError(message(
            "tridiagonal_solve", "the operands do not fit.", got=", ".join(texts),
            expected="diagonals of one shape (..., m), and b of shape (..., m, n)",
        ))  # fmt: skip
    require(
        not perturb_singular or not dtypes.is_complex(d.dtype), "tridiagonal_solve",
        "perturb_singular goes with real operands.", error=TypeError,
    )  # fmt: skip
    return (b.strong(),)


def _tridiagonal_solve_numpy(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool) -> Any:
    m = d.shape[-1]
    if not b.size:
        return (b,)
    diagonal, above, x = np.array(d), np.array(du), np.array(b)
    second = np.zeros_like(above)  # the second diagonal above, which exchanges of rows fill
    below = np.concatenate([dl[..., 1:], np.zeros_like(dl[..., :1])], -1)
    for i in range(m - 1):
        _eliminate(diagonal, above, second, below, x, i)
    if perturb_singular:
        _perturb(diagonal, above, second)
    else:
        singular = np.any(diagonal == 0, -1)
        x[singular] = np.nan
    for i in range(m - 1, -1, -1):
        rest = x[..., i, :]
        if i + 1 < m:
            rest = rest - above[..., i, None] * x[..., i + 1, :]
        if i + 2 < m:
            rest = rest - second[..., i, None] * x[..., i + 2, :]
        x[..., i, :] = rest / diagonal[..., i, None]
    return (x,)


def _eliminate(diagonal: Any, above: Any, second: Any, below: Any, x: Any, i: int) -> None:
    """Clear the element below row i of all matrices, exchanging the rows where it is greater."""
    p, q = diagonal[..., i].copy(), below[..., i].copy()
    swap = _size(p) < _size(q)
    beside, next_own = above[..., i].copy(), diagonal[..., i + 1].copy()
    next_above = above[..., i + 1].copy() if i + 2 < diagonal.shape[-1] else np.zeros_like(p)
    pivot = np.where(swap, q, p)
    factor = np.where(pivot == 0, 0, np.where(swap, p, q) / np.where(pivot == 0, 1, pivot))
    diagonal[..., i] = pivot
    above[..., i] = np.where(swap, next_own, beside)
    second[..., i] = np.where(swap, next_above, 0)
    diagonal[..., i + 1] = np.where(swap, beside - factor * next_own, next_own - factor * beside)
    if i + 2 < diagonal.shape[-1]:
        above[..., i + 1] = np.where(swap, -factor * next_above, next_above)
    row, rest = x[..., i, :].copy(), x[..., i + 1, :].copy()
    mask, factor = swap[..., None], factor[..., None]
    x[..., i, :] = np.where(mask, rest, row)
    x[..., i + 1, :] = np.where(mask, row - factor * rest, rest - factor * row)


def _size(x: Any) -> Any:
    return np.abs(x.real) + np.abs(x.imag)


def _perturb(diagonal: Any, above: Any, second: Any) -> None:
    parts = [np.abs(diagonal).max(-1), np.abs(above[..., :-1]).max(-1, initial=0),
             np.abs(second).max(-1)]  # fmt: skip
    least = np.finfo(diagonal.dtype).eps * np.maximum.reduce(parts)
    least = np.where(least == 0, np.finfo(diagonal.dtype).eps, least)[..., None]
    moved = np.copysign(least, diagonal)
    diagonal[...] = np.where(np.abs(diagonal) < least, moved, diagonal)


def _tridiagonal_solve_lapack(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, perturb_singular: bool
) -> Any:
    (out,) = avals_out
    if out.size == 0:
        return [operands[3]]
    if perturb_singular:
        return solvers.lapack_call(b, "", out.dtype, operands, avals_in, avals_out,
                           target="tridiagonal_solve_perturbed_ffi")  # fmt: skip
    batch = out.shape[:-2]
    results = [*avals_in, solvers.info_aval(batch)]
    *_, x, info = solvers.lapack_call(b, "gtsv", out.dtype, operands, avals_in, results)
    return [solvers.nan_on_failure(b, info, batch, x, out)]


def _tridiagonal_solve_gpu(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, perturb_singular: bool
) -> Any:
    (out,) = avals_out
    if out.size == 0:
        return [operands[3]]
    if perturb_singular:
        return solvers.gpu_call(b, "_tridiagonal_solve_perturbed", operands, avals_in, avals_out)
    if out.shape[-2] < 3:  # cuSPARSE wants three rows
        return b.traced(_of_few_rows, operands, avals_in, key="tridiagonal_solve of few rows")
    return solvers.gpu_call(b, "sparse_gtsv2_ffi", operands, avals_in, avals_out, aliases={3: 0})


def _of_few_rows(dl: Any, d: Any, du: Any, b: Any) -> list[Any]:
    """Return the solution for one row or two, by elimination as for more."""
    last, count = d.aval.ndim - 1, b.aval.shape[-1]
    if d.aval.shape[-1] == 1:
        return [_divide(b, d)]
    d0, d1 = [slice_dim(d, last, i, i + 1) for i in (0, 1)]
    above, below = slice_dim(du, last, 0, 1), slice_dim(dl, last, 1, 2)
    b0, b1 = [slice_dim(b, last, i, i + 1) for i in (0, 1)]
    swap = bind("lt", bind("abs", d0), bind("abs", below))
    wide = as_columns(swap, count)
    pivot, rest = select(swap, below, d0), select(swap, d0, below)
    beside, corner = select(swap, d1, above), select(swap, above, d1)
    b0, b1 = select(wide, b1, b0), select(wide, b0, b1)
    factor = div(rest, pivot)
    x1 = _divide(sub(b1, mul(as_columns(factor, count), b0)), sub(corner, mul(factor, beside)))
    x0 = _divide(sub(b0, mul(as_columns(beside, count), x1)), pivot)
    return [join([x0, x1], last)]


def _divide(x: Any, pivot: Any) -> Any:
    """Return x / pivot, and NaN where the pivot is zero."""
    regular = bind("ne", pivot, fill(pivot.aval.shape, 0, pivot.aval.dtype))
    pivot = select(regular, pivot, fill(pivot.aval.shape, np.nan, pivot.aval.dtype))
    return div(x, as_columns(pivot, x.aval.shape[-1]))


def _tridiagonal_solve_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    # A X = B gives A dX = dB - dA X
    *diagonals, _ = primals
    *diagonals_dot, b_dot = tangents
    outs = tridiagonal_solve_p.bind(*primals, **params)
    terms = [] if type(b_dot) is Zero else [b_dot]
    terms += [neg(x) for x in tridiagonal_products(diagonals_dot, outs[0])]
    if not terms:
        return outs, (Zero(outs[0].aval),)
    right = terms[0]
    for term in terms[1:]:
        right = add(right, term)
    return outs, tridiagonal_solve_p.bind(*diagonals, right, **params)


def tridiagonal_products(diagonals: Any, x: Any) -> list[Any]:
    """Return the products with X of each diagonal that is not Zero."""
    found = []
    for v, step in zip(diagonals, (-1, 0, 1), strict=True):
        if type(v) is not Zero:
            repeated = as_columns(v, x.aval.shape[-1])
            found.append(mul(repeated, _move(x, step, x.aval.ndim - 2)))
    return found


def _move(x: Any, step: int, dim: int) -> Any:
    """Return x[i + step] at i, and zero past the end."""
    if not step:
        return x
    n = x.aval.shape[dim]
    shape = list(x.aval.shape)
    shape[dim] = min(1, n)
    none = fill(shape, 0, x.aval.dtype)
    if step > 0:
        return join([slice_dim(x, dim, min(1, n), n), none], dim)
    return join([none, slice_dim(x, dim, 0, max(n - 1, 0))], dim)


def _tridiagonal_solve_transpose(cts: Any, dl: Any, d: Any, du: Any, b: Any, **params: Any) -> Any:
    assert type(b) is Linear
    last = d.aval.ndim - 1
    (found,) = tridiagonal_solve_p.bind(
        _move(du, -1, last), d, _move(dl, 1, last), cts[0], **params
    )
    return Zero(dl.aval), Zero(d.aval), Zero(du.aval), found


def _dimensions(avals: Any, out: Any, params: dict[str, Any]) -> Names:
    """Systems may be cut; their equations and right hand sides are whole."""
    batch = tuple(range(avals[1].ndim - 1))
    return Names([(*batch, *[None] * (a.ndim - len(batch))) for a in avals],
                 [(*batch, None, None) for _ in out])  # fmt: skip


tridiagonal_solve_p: Primitive = Primitive(
    "tridiagonal_solve",
    shape=_tridiagonal_solve_shape,
    numpy=_tridiagonal_solve_numpy,
    stablehlo=by_platform(
        "tridiagonal_solve", cpu=_tridiagonal_solve_lapack, gpu=_tridiagonal_solve_gpu
    ),
    jvp=_tridiagonal_solve_jvp,
    transpose=_tridiagonal_solve_transpose,
    batch=matrix_batch_of_sides(lambda: tridiagonal_solve_p),
    sharding=_dimensions,
)


# ---------------------------------------------------------------------- lu pivots to permutation
# lu_pivots_to_permutation: the row order that a sequence of row exchanges leads to.
#
# Row i is exchanged with row pivots[i], for i = 0, 1, ...; the result p says that row i of the
# permuted matrix is row p[i] of the first one. A negative pivot counts from the end, and one out
# of range stands for the nearest row, so that the result is a permutation, always.


def _lu_pivots_to_permutation_shape(
    aval: ShapedArray, *, permutation_size: int
) -> tuple[ShapedArray, ...]:
    require(
        aval.dtype == dtypes.int32 and aval.ndim >= 1, "lu_pivots_to_permutation",
        "the pivots must be vectors of int32.", got=aval, error=TypeError,
    )  # fmt: skip
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


def _lu_pivots_to_permutation_numpy(pivots: Any, *, permutation_size: int) -> Any:
    positions = np.where(pivots < 0, pivots + permutation_size, pivots)
    return (permutation_of(np.clip(positions, 0, permutation_size - 1), permutation_size),)


def _lu_pivots_to_permutation_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
               permutation_size: int) -> Any:  # fmt: skip
    rows = _rows_named(b, operands[0], avals_in[0], permutation_size)
    return [permutation_text(b, rows, avals_in[0], avals_out[0])]


def _rows_named(b: Builder, pivots: str, aval: Any, size: int) -> str:
    """Write the rows that pivots stand for, from 0 to size - 1."""
    zero, count, last = [b.full_like(n, aval) for n in (0, size, size - 1)]
    from_end = b.same_type_op("stablehlo.add", [pivots, count], aval)
    rows = choose(b, lowering_text.compare(b, "LT", pivots, zero, aval), from_end, pivots, aval)
    return b.same_type_op("stablehlo.clamp", [zero, rows, last], aval)


def permutation_text(b: Builder, pivots: str, pivots_aval: Any, out: Any) -> str:
    """Write a loop over the pivots that exchanges entries of the permutation.

    For GPUs there is a kernel that does the same. The pivots are rows: it checks none of them.
    """
    last = out.ndim - 1
    count = pivots_aval.shape[-1]
    if out.size == 0 or count == 0:
        return solvers.count(b, out.shape, last)
    if is_gpu(b.platform):
        return solvers.gpu_call(b, "_lu_pivots_to_permutation", [pivots], [pivots_aval], [out],
                        column_major=False, cells=1)[0]  # fmt: skip
    order = solvers.count(b, out.shape, last)
    index, truth = shaped_array((), dtypes.int32), shaped_array((), dtypes.bool_)
    zero, one, stop = [b.scalar(v, dtypes.int32) for v in (0, 1, count)]
    carried = [index, out]

    def condition(inner: Builder, names: Any) -> Any:
        return [lowering_text.compare(inner, "LT", names[0], stop, index)]

    def body(inner: Builder, names: Any) -> Any:
        i, permutation = names
        if not last and not is_split(inner):
            swapped = _swap_in_vector(inner, permutation, out, pivots, pivots_aval, i)
            return [inner.same_type_op("stablehlo.add", [i, one], index), swapped]
        starts = [*([zero] * last), i]
        # `order`, the index along the last dimension, also is the first permutation
        swapped = _swap(inner, permutation, order, out, pivots, pivots_aval, starts)
        return [inner.same_type_op("stablehlo.add", [i, one], index), swapped]

    regions = b.regions(b.region(carried, condition, [truth]), b.region(carried, body, carried))
    result: str = b.op("stablehlo.while", [zero, order], carried, carried, regions=regions)[1]
    return result


def _swap_in_vector(
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


def _swap(b: Builder, permutation: str, positions: str, out: Any, pivots: str, pivots_aval: Any,
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
    hit = lowering_text.compare(b, "EQ", positions, target, out)
    masked = choose(b, hit, permutation, b.full_like(0, out), out)
    (moved,) = b.op(
        "stablehlo.reduce", [masked, b.scalar(0, dtypes.int32)], [out, index], [rows],
        f"dimensions = array<i64: {out.ndim - 1}>", b.reducer("stablehlo.add", dtypes.int32),
    )  # fmt: skip
    (moved,) = b.op("stablehlo.reshape", [moved], [rows], [column])
    first = b.broadcast(entry(permutation, out), column, out.shape, wide)
    (swapped,) = b.op(
        "stablehlo.dynamic_update_slice", [choose(b, hit, first, permutation, out), moved, *starts],
        [out, column, *start_avals], [out],
    )  # fmt: skip
    return swapped


def _lu_pivots_to_permutation_batch(
    axis: BatchAxis, operands: Any, dims: Any, *, permutation_size: int
) -> Any:
    pivots = axis.to_front(operands[0], dims[0])
    outs = lu_pivots_to_permutation_p.bind(pivots, permutation_size=permutation_size)
    return outs, (0,)


lu_pivots_to_permutation_p: Primitive = Primitive(
    "lu_pivots_to_permutation",
    shape=_lu_pivots_to_permutation_shape,
    numpy=_lu_pivots_to_permutation_numpy,
    stablehlo=_lu_pivots_to_permutation_stablehlo,
    jvp=ZERO,
    transpose=undefined("integers have no cotangents"),
    batch=_lu_pivots_to_permutation_batch,
    sharding=dimension_names.of_last(1),
)


# -------------------------------------------------------------------------------------------- lu
# lu: L U = P A with row interchanges, for matrices of any shape.
#
# The results are L and U in one matrix (L unit lower triangular, its ones not stored), the pivots
# (row i was exchanged with row pivots[i]), and the permutation: `A[permutation] = L U`. Where a
# pivot is zero its column of L is left as it is, as LAPACK does.
#
# With NumPy, panels of columns are factored one column at a time, for all matrices of a batch at
# once, and the rest of the matrix is updated by one product for each panel.

_PANEL = 32


def _lu_shape(aval: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, m, n = check_matrix("lu", aval)
    return (
        shaped_array(aval.shape, aval.dtype),
        shaped_array((*batch, min(m, n)), dtypes.int32),
        shaped_array((*batch, m), dtypes.int32),
    )


def _lu_numpy(a: Any) -> Any:
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


def _lu_lapack(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    aval = avals_out[0]
    return _factors(b, avals_out, lambda avals: solvers.lapack_call(
        b, "getrf", aval.dtype, operands, [aval], avals))  # fmt: skip


def _lu_gpu(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    aval = avals_out[0]
    return _factors(b, avals_out, lambda avals: solvers.gpu_call(
        b, "solver_getrf_ffi", operands, [aval], avals, aliases={0: 0}))  # fmt: skip


def _factors(b: Builder, avals_out: Any, call: Callable[[Any], list[str]]) -> list[str]:
    """Write the results of a call, whose pivots count from 1, in the form of ours."""
    aval, pivots_aval, permutation_aval = avals_out
    batch = aval.shape[:-2]
    if aval.size == 0:
        order = np.broadcast_to(np.arange(aval.shape[-2], dtype=np.int32), permutation_aval.shape)
        return [b.constant(0, aval), b.constant(0, pivots_aval),
                b.constant(order, permutation_aval)]  # fmt: skip
    found, pivots, info = call([aval, pivots_aval, solvers.info_aval(batch)])
    one = b.full_like(1, pivots_aval)
    pivots = b.same_type_op("stablehlo.subtract", [pivots, one], pivots_aval)
    result = solvers.nan_on_failure(b, info, batch, found, aval, "GE")
    return [result, pivots, permutation_text(b, pivots, pivots_aval, permutation_aval)]


def _lu_jvp(primals: Any, tangents: Any) -> Any:
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
    lower = add(_pad_zeros(tril(slice_dim(factors, last, 0, k), -1), last, m),
                eye((*batch, m, m), dtype))  # fmt: skip
    upper = _pad_zeros(triu(slice_dim(factors, last - 1, 0, k)), last - 1, n)
    if n > k:
        corner = triu(eye((*batch, n, n), dtype))
        upper = add(upper, _pad_zeros(slice_dim(corner, last - 1, k, n), last - 1, n, front=True))
    x = solve_triangle(lower, matmul(row_selector(permutation, dtype), a_dot), lower=True,
               unit_diagonal=True)  # fmt: skip
    # upper(X) U = upper(L^-1 P dA - strictly-lower(X) U); where m <= n, the strictly lower part of
    # X has no column of the last pivot, which may be zero
    if k == m:
        upper = add(upper, _ones_for_zero_pivots(upper, k))
    below = tril(solve_triangle(upper, x, lower=False, left_side=False), -1)
    return outs, (add(matmul(lower, below), triu(sub(x, matmul(below, upper)))), *zeros[1:])


def _ones_for_zero_pivots(upper: Any, k: int) -> Any:
    """Return a matrix that adds one to the k-th pivot of U where it is zero."""
    shape, last = upper.aval.shape, upper.aval.ndim - 1
    is_last = bind("eq", iota(shape, last), fill(shape, k - 1, np.dtype("int32")))
    here = bind("and", bind("and", matrices.compare_positions(shape, "eq"), is_last),
                bind("eq", upper, fill(shape, 0, upper.aval.dtype)))  # fmt: skip
    return convert(here, upper.aval.dtype)


def _pad_zeros(x: Any, dim: int, size: int, *, front: bool = False) -> Any:
    """Append zeros along a dimension up to a size, or put them before."""
    missing = size - x.aval.shape[dim]
    if not missing:
        return x
    shape = list(x.aval.shape)
    shape[dim] = missing
    zeros = fill(shape, 0, x.aval.dtype)
    return join([zeros, x] if front else [x, zeros], dim)


def row_selector(permutation: Any, dtype: Any) -> Any:
    """Return the matrices P with (P A)[i] = A[permutation[i]]."""
    n = permutation.aval.ndim
    m = permutation.aval.shape[-1]
    shape = (*permutation.aval.shape, m)
    rows = broadcast_to(permutation, shape, tuple(range(n)))
    return convert(bind("eq", rows, iota(shape, n)), dtype)


lu_p: Primitive = Primitive(
    "lu",
    shape=_lu_shape,
    numpy=_lu_numpy,
    stablehlo=by_platform(
        "lu",
        cpu=matrices.formula_rule(matrices.lu, _lu_lapack),
        gpu=_lu_gpu,
    ),
    jvp=_lu_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: lu_p),
    sharding=dimension_names.of_last(2),
)


# ----------------------------------------------------------------------------------------- solve
# solve: the solution X of A X = B for square matrices A.
#
# It is a primitive, not a formula of `lu` and `triangular_solve`, for its derivative's sake: A dX
# = dB - dA X needs one more solution with the same matrix and no derivative of the factorisation.
# Compiled, it is that formula. Where A is singular, the result holds inf or NaN.


def solve_system(a: Any, b: Any) -> Any:
    """Return A^-1 B for batches of square matrices A and of matrices B; for rules."""
    return solve_p.bind(a, b)[0]


def _solve_shape(a: ShapedArray, b: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, n, _ = check_matrix("solve", a, square=True)
    b_batch, rows, _ = check_matrix("solve", b)
    require_equal_dtypes("solve", a, b)
    require(
        batch == b_batch and rows == n, "solve", "the operands do not fit.", got={"a": a, "b": b},
        expected="a.shape[-1] == b.shape[-2], and equal batch dimensions",
    )  # fmt: skip
    return (shaped_array(b.shape, b.dtype),)


def _solve_numpy(a: Any, b: Any) -> Any:
    try:
        return (np.linalg.solve(a, b),)
    except np.linalg.LinAlgError:
        pass
    factors, _, permutation = lu_p.rule("numpy")(a)
    permuted = np.take_along_axis(b, permutation[..., None], axis=-2)
    triangular = triangular_solve_p.rule("numpy")
    sides = {"left_side": True, "transpose_a": False, "conjugate_a": False}
    (lower,) = triangular(factors, permuted, lower=True, unit_diagonal=True, **sides)
    return triangular(factors, lower, lower=False, unit_diagonal=False, **sides)


def _by_factors(a: Any, b: Any) -> Any:
    factors, _, permutation = lu_p.bind(a)
    permuted = rows_along(b, permutation)
    lower = solve_triangle(factors, permuted, lower=True, unit_diagonal=True)
    return [solve_triangle(factors, lower, lower=False)]


def _solve_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    return b.traced(_by_factors, operands, avals_in, key="solve")


def _solve_jvp(primals: Any, tangents: Any) -> Any:
    (a, b), (a_dot, b_dot) = primals, tangents
    outs = solve_p.bind(a, b)
    if type(a_dot) is Zero:
        if type(b_dot) is Zero:
            return outs, (Zero(outs[0].aval),)
        return outs, solve_p.bind(a, b_dot)
    change = matmul(a_dot, outs[0])
    right = neg(change) if type(b_dot) is Zero else sub(b_dot, change)
    return outs, solve_p.bind(a, right)


def _solve_transpose(cts: Any, a: Any, b: Any) -> Any:
    assert type(b) is Linear
    return Zero(a.aval), solve_system(mt(a), cts[0])


def _solve_dimensions(avals: Any, out: Any, params: dict[str, Any]) -> Names:
    """Systems and right hand sides may be cut; their equations are whole."""
    batch = tuple(range(avals[0].ndim - 2))
    sides = (*batch, None, "sides")
    return Names([(*batch, None, None), sides], [sides])


solve_p: Primitive = Primitive(
    "solve",
    shape=_solve_shape,
    numpy=_solve_numpy,
    stablehlo=matrices.formula_rule(matrices.solve, _solve_stablehlo, rows_alone=3),
    jvp=_solve_jvp,
    transpose=_solve_transpose,
    batch=matrix_batch_of_sides(lambda: solve_p),
    sharding=_solve_dimensions,
)


# ------------------------------------------------------------------------------------------- det
# det: determinants, and `cofactors`, their derivative, at regular and singular matrices alike.
#
# det A is the product of the pivots of LU, with the sign of the row exchanges. That has no
# derivative where a pivot is 0; the determinant, a polynomial, has. With A = U S V^H, of singular
# values s:
#
#     d det A = sum_ij C_ij dA_ij,  the cofactors C = det(U V^H) conj(U diag(prod_{k != i} s_k)
#     V^H)
#
# where the product needs no division, so that it is right for every rank. The cofactors are
# differentiated as those of B = U^H A V, of constant U and V, in a form that is smooth at every
# rank. Let P project on the last singular values, those that are small, at most four; R is B
# outside of their rows and columns, N its inverse there, and X = P (B - B N B) P the complement of
# Schur, which is zero up to what is small. With r small values, det B = det R e_r(X), where e_k are
# the elementary symmetric functions of the eigenvalues of X, and
#
#     adj B = det R (e_r N + (1 - N B) P Y_r P (1 - B N)),    Y_k = e_{k-1} P - X Y_{k-1},
#     e_k = tr(X Y_k) / k,    Y_0 = 0,    e_0 = 1            (Newton's identities)
#
# Its tangent along F = U^H dA V, with Q = P (1 - B N), T = (1 - N B) P:
#
#     dN = -N F N,   dQ = -Q F N,   dT = -N F T,   dX = Q F T,   d det R = det R tr(N F)
#
# All are products of matrices and one inverse of a regular matrix, so that further derivatives are
# right, too. Of matrices with five and more vanishing values, they are 0 up to the fourth.
#
# The value of that tangent, `cofactors_tangent`, needs none of this: B is diag(s) at the point, so
#
#     (adj B)_dot = diag(M diag F) - M * F,    M_ij = prod_{k != i, j} s_k, M_ii = 0
#
# again without a division. It is linear in dA, and symmetric, being the second derivative of det;
# only its derivative by A is that of the smooth form.


def pivots_of(x: Any) -> tuple[Any, Any]:
    """Return the sign of the row exchanges and the diagonal of U of the LU factorisation."""
    factors, pivots, _ = lu_p.bind(x)
    shape, last, dtype = pivots.aval.shape, pivots.aval.ndim - 1, x.aval.dtype
    exchanged = bind("ne", pivots, iota(shape, last))
    signs = sub(fill(shape, 1, dtype), scale_by(convert(exchanged, dtype), 2))
    return _product(signs), diagonal(factors)


def _product(x: Any) -> Any:
    return bind("reduce_prod", x, axes=(x.aval.ndim - 1,))


def _by_pivots(x: Any) -> Any:
    sign, values = pivots_of(x)
    return mul(sign, _product(values))


# --- det ----------------------------------------------------------------------------------------


def _det_shape(aval: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, _, _ = check_matrix("det", aval, square=True)
    return (shaped_array(batch, aval.dtype),)


def _det_numpy(a: Any) -> Any:
    factors, pivots, _ = lu_p.rule("numpy")(a)
    exchanges = np.sum(pivots != np.arange(pivots.shape[-1]), axis=-1)
    values = np.prod(np.diagonal(factors, axis1=-2, axis2=-1), axis=-1)
    return (np.where(exchanges % 2, -values, values).astype(a.dtype, copy=False),)


def _det_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    return b.traced(lambda a: [_by_pivots(a)], operands, avals_in, key="det")


def _det_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (a_dot,) = primals, tangents
    outs = det_p.bind(a)
    if type(a_dot) is Zero:
        return outs, (Zero(outs[0].aval),)
    return outs, (_inner(cofactors_p.bind(a)[0], a_dot),)


def _inner(x: Any, y: Any) -> Any:
    n = x.aval.ndim
    return sum_axes(mul(x, y), (n - 2, n - 1))


det_p: Primitive = Primitive(
    "det",
    shape=_det_shape,
    numpy=_det_numpy,
    stablehlo=_det_stablehlo,
    jvp=_det_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: det_p),
    sharding=dimension_names.of_last(2),
)


# --- cofactors ----------------------------------------------------------------------------------


def _same_shape(aval: ShapedArray) -> tuple[ShapedArray, ...]:
    check_matrix("cofactors", aval, square=True)
    return (shaped_array(aval.shape, aval.dtype),)


def _numpy_cofactors(a: Any) -> Any:
    if a.size == 0:
        return (np.zeros(a.shape, a.dtype),)
    s, u, vh = svd_p.rule("numpy")(a, full_matrices=False, compute_uv=True)
    (sign,) = _det_numpy(np.matmul(u, vh))
    before, after = _numpy_before_and_after(s)
    found = np.matmul(u * (before * after)[..., None, :], vh).conj() * sign[..., None, None]
    return (found.astype(a.dtype, copy=False),)


def _numpy_before_and_after(s: Any) -> tuple[Any, Any]:
    """Return for each i the products of all s_k with k < i, and of those with k > i."""
    ones = np.ones((*s.shape[:-1], 1), s.dtype)
    before = np.cumprod(np.concatenate([ones, s[..., :-1]], -1), -1)
    after = np.cumprod(np.concatenate([s[..., 1:], ones], -1)[..., ::-1], -1)[..., ::-1]
    return before, after


def _stablehlo_cofactors(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    if avals_out[0].size == 0:
        return list(operands)
    return b.traced(lambda a: [_by_values(a)], operands, avals_in, key="cofactors")


def _by_values(a: Any) -> Any:
    s, u, vh = _decompose(a)
    before, after = _before_and_after(s)
    rows = as_rows(convert(mul(before, after), a.aval.dtype), s.aval.shape[-1])
    return _turn(mul(u, rows), vh, det_p.bind(matmul(u, vh))[0])


def _decompose(a: Any) -> Any:
    return svd_p.bind(a, full_matrices=False, compute_uv=True)


def _turn(x: Any, vh: Any, sign: Any) -> Any:
    """Return the conjugate of x V^H, times a sign (a phase) for each matrix."""
    found = conj(matmul(x, vh))
    shape = found.aval.shape
    return mul(found, broadcast_to(sign, shape, tuple(range(len(shape) - 2))))


def _before_and_after(s: Any) -> tuple[Any, Any]:
    """Return for each i the products of all s_k with k < i, and of those with k > i."""
    last, n = s.aval.ndim - 1, s.aval.shape[-1]
    ones = fill((*s.aval.shape[:-1], 1), 1, s.aval.dtype)
    before = join([ones, slice_dim(s, last, 0, n - 1)], last)
    after = join([slice_dim(s, last, 1, n), ones], last)
    return (bind("cumprod", before, axis=last, reverse=False),
            bind("cumprod", after, axis=last, reverse=True))  # fmt: skip


_SMALL_VALUES = 4  # at most so many are taken for small


def _cofactors_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (a_dot,) = primals, tangents
    outs = cofactors_p.bind(a)
    if type(a_dot) is Zero:
        return outs, (Zero(outs[0].aval),)
    return outs, cofactors_tangent_p.bind(a, a_dot)


def _smooth_tangent(a: Any, a_dot: Any) -> list[Any]:
    """Return the tangent of the cofactors in a form whose derivatives are right, too."""
    a = broadcast_to(a, a_dot.aval.shape, range(a_dot.aval.ndim - a.aval.ndim, a_dot.aval.ndim))
    s, u, vh = _decompose(bind("stop_gradient", a))
    b, f = [_rotate(x, u, vh) for x in (a, a_dot)]
    return [_rotate_back(_adjugate_dot(b, f, s), u, vh)]


def _rotate(x: Any, u: Any, vh: Any) -> Any:
    return mt(_by_shared(mt(_by_shared(x, adjoint(vh))), conj(u)))


def _rotate_back(adjugate: Any, u: Any, vh: Any) -> Any:
    """Return the cofactors of A from the adjugate of B: tr(V adj(B) U^H dA) det(U V^H)."""
    found = _by_shared(mt(_by_shared(adjugate, adjoint(u))), conj(vh))
    sign = det_p.bind(matmul(u, vh))[0]
    shape = found.aval.shape
    last = len(shape) - 2
    return mul(found, broadcast_to(sign, shape, range(last - sign.aval.ndim, last)))


def _by_shared(x: Any, y: Any) -> Any:
    """Return x y, where all matrices before those of `y` share these: as rows of one product."""
    shape, shared = x.aval.shape, y.aval.shape
    if len(shape) == len(shared):
        return matmul(x, y)
    if len(shared) == 2:
        rows = reshape(x, (math.prod(shape[:-1]), shape[-1]))
        return reshape(matmul(rows, y), shape)
    return matmul(x, broadcast_to(y, shape, range(len(shape) - len(shared), len(shape))))


def _adjugate_dot(b: Any, f: Any, s: Any) -> Any:
    """Return the tangent of adj(B) along F, for B that is diag(s) at this point."""
    shape, dtype = b.aval.shape, b.aval.dtype
    count, n = min(_SMALL_VALUES, shape[-1]), shape[-1]
    small, vanishes = _small_values(s, count)
    p, one = [convert(x, dtype) for x in (small, fill(small.aval.shape, 1, small.aval.dtype))]
    rest = sub(one, p)
    regular = mul(as_columns(rest, n), as_rows(rest, n))
    unit = eye(shape, dtype)
    filler = mul(unit, as_rows(add(p, convert(vanishes, dtype)), n))
    r = add(mul(regular, b), filler)
    inverse = mul(regular, solve_system(r, unit))
    q = mul(as_columns(p, n), sub(unit, matmul(b, inverse)))
    t = mul(sub(unit, matmul(inverse, b)), as_rows(p, n))
    qf, nf = matmul(q, f), matmul(inverse, f)
    x, x_dot = matmul(q, mul(b, as_rows(p, n))), matmul(qf, t)
    e, e_dot, y, y_dot = _symmetric_functions(x, x_dot, p, small, count)
    # of det R (e N + T Y Q); det R is 0 where more values vanish than are taken for small
    alive = sub(fill(s.aval.shape[:-1], 1, s.aval.dtype),
                bind("reduce_max", vanishes, axes=(s.aval.ndim - 1,)))  # fmt: skip
    det = mul(det_p.bind(r)[0], convert(alive, dtype))
    inner = matmul(t, matmul(y, q))
    total = _times(e_dot, inverse)
    total = sub(total, _times(e, matmul(nf, inverse)))
    total = add(total, matmul(t, matmul(y_dot, q)))
    total = sub(total, add(matmul(nf, inner), matmul(inner, matmul(f, inverse))))
    value = add(_times(e, inverse), inner)
    return _times(det, add(total, _times(_trace(nf), value)))


def _small_values(s: Any, count: int) -> tuple[Any, Any]:
    """Return which of the last singular values are small, and which before them vanish."""
    shape, n, last = s.aval.shape, s.aval.shape[-1], s.aval.ndim - 1
    unit = float(dtypes.finfo(s.aval.dtype).eps)
    largest = bind("reduce_max", s, axes=(last,))
    masks = []
    for bound, compare in ((unit**0.2, "ge"), (8 * n * unit, "lt")):
        least = broadcast_to(scale_by(largest, bound), shape, tuple(range(last)))
        place = bind(compare, iota(shape, last), fill(shape, n - count, dtypes.int32))
        masks.append(convert(bind("and", bind("le", s, least), place), s.aval.dtype))
    return masks[0], masks[1]


def _symmetric_functions(
    x: Any, x_dot: Any, p: Any, small: Any, count: int
) -> tuple[Any, Any, Any, Any]:
    """Return e_r, its tangent, Y_r and its tangent, for r the number of small values."""
    shape, dtype = x.aval.shape, x.aval.dtype
    rank = sum_axes(small, (small.aval.ndim - 1,))
    project = mul(eye(shape, dtype), as_rows(p, shape[-1]))
    e, e_dot = fill(rank.aval.shape, 1, dtype), fill(rank.aval.shape, 0, dtype)
    y = y_dot = fill(shape, 0, dtype)
    results: list[Any] = []
    for k in range(count + 1):
        if k:
            y, y_dot = (
                sub(_times(e, project), matmul(x, y)),
                sub(_times(e_dot, project), add(matmul(x_dot, y), matmul(x, y_dot))),
            )
            e, e_dot = scale_by(_trace(matmul(x, y)), 1 / k), _trace(matmul(x_dot, y))
        chosen = convert(bind("eq", rank, fill(rank.aval.shape, k, rank.aval.dtype)), dtype)
        terms = [mul(chosen, e), mul(chosen, e_dot), _times(chosen, y), _times(chosen, y_dot)]
        results = [add(*pair) for pair in zip(results, terms, strict=True)] if k else terms
    return results[0], results[1], results[2], results[3]


def _times(number: Any, x: Any) -> Any:
    """Return matrices times a number for each."""
    return mul(broadcast_to(number, x.aval.shape, tuple(range(number.aval.ndim))), x)


def _trace(x: Any) -> Any:
    return sum_axes(diagonal(x), (x.aval.ndim - 2,))


cofactors_p: Primitive = Primitive(
    "cofactors",
    shape=_same_shape,
    numpy=_numpy_cofactors,
    stablehlo=_stablehlo_cofactors,
    jvp=_cofactors_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: cofactors_p),
    sharding=dimension_names.of_last(2),
)


# --- tangent of cofactors -----------------------------------------------------------------------


def _tangent_shape(aval: ShapedArray, tangent: ShapedArray) -> tuple[ShapedArray, ...]:
    matrices.check_matrix("cofactors_tangent", aval, square=True)
    require_equal_dtypes("cofactors_tangent", aval, tangent)
    require(
        tangent.shape[tangent.ndim - aval.ndim :] == aval.shape, "cofactors_tangent",
        "the tangents must have the matrix's shape, or dimensions in front, got {}.", tangent,
    )  # fmt: skip
    return (shaped_array(tangent.shape, aval.dtype),)


def _numpy_tangent(a: Any, a_dot: Any) -> Any:
    found = state.run_quietly(_tangent_of_hosts, a.to_host(), a_dot.to_host())
    return (from_numpy(found, canonical=False),)


def _tangent_of_hosts(a: Any, a_dot: Any) -> Any:
    if a_dot.size == 0:
        return np.zeros(a_dot.shape, a.dtype)
    s, u, vh = svd_p.rule("numpy")(a, full_matrices=False, compute_uv=True)
    left, right = u.conj().swapaxes(-1, -2), vh.conj().swapaxes(-1, -2)
    f, m = np.matmul(left, np.matmul(a_dot, right)), _numpy_products_but_two(s)
    found = -m * f
    k = np.arange(s.shape[-1])
    found[..., k, k] = np.matmul(m, f[..., k, k, None])[..., 0]
    (sign,) = _det_numpy(np.matmul(u, vh))
    dot = np.matmul(right, np.matmul(found, left)).swapaxes(-1, -2)
    return (dot * sign[..., None, None]).astype(a.dtype, copy=False)


def _numpy_products_but_two(s: Any) -> Any:
    """Return for i, j the product of all s_k but s_i and s_j; the diagonal is zero."""
    n = s.shape[-1]
    above = np.triu(np.ones((n, n), s.dtype), 1)
    before, after = _numpy_before_and_after(s)
    rows = s[..., None, :] * above + (1 - above)
    first = np.ones((*rows.shape[:-1], 1), s.dtype)
    between = np.cumprod(np.concatenate([first, rows[..., :-1]], -1), -1)
    upper = before[..., :, None] * between * after[..., None, :] * above
    return upper + upper.swapaxes(-1, -2)


def _stablehlo_tangent(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    if avals_out[0].size == 0:
        return [operands[1]]
    return b.traced(
        lambda a, a_dot: [_tangent_by_values(a, a_dot)], operands, avals_in,
        key="cofactors_tangent",
    )  # fmt: skip


def _tangent_by_values(a: Any, a_dot: Any) -> Any:
    s, u, vh = _decompose(a)
    shape = a_dot.aval.shape
    m = convert(_products_but_two(s), a.aval.dtype)
    m = broadcast_to(m, shape, range(len(shape) - m.aval.ndim, len(shape)))
    f = _rotate(a_dot, u, vh)
    rows = as_rows(diagonal(f), shape[-1])
    sums = sum_axes(mul(m, rows), (len(shape) - 1,))
    found = sub(mul(eye(shape, a.aval.dtype), as_rows(sums, shape[-1])), mul(m, f))
    return _rotate_back(found, u, vh)


def _products_but_two(s: Any) -> Any:
    last, n, dtype = s.aval.ndim - 1, s.aval.shape[-1], s.aval.dtype
    before, after = _before_and_after(s)
    above = triu(fill((*s.aval.shape, n), 1, dtype), 1)
    rows = add(mul(as_rows(s, n), above), sub(fill(above.aval.shape, 1, dtype), above))
    first = fill((*s.aval.shape, 1), 1, dtype)
    between = bind("cumprod", join([first, slice_dim(rows, last + 1, 0, n - 1)], last + 1),
                   axis=last + 1, reverse=False)  # fmt: skip
    upper = mul(mul(as_columns(before, n), as_rows(after, n)), mul(between, above))
    return add(upper, mt(upper))


def _tangent_jvp(handle: JVPHandle, primals: Any, tangents: Any) -> Any:
    a, f = primals
    outs = cofactors_tangent_p.bind(a, f)
    if type(tangents[0]) is Zero:
        if type(tangents[1]) is Zero:
            return outs, (Zero(outs[0].aval),)
        return outs, cofactors_tangent_p.bind(a, tangents[1])
    if f.aval.size == 0:
        return outs, (Zero(outs[0].aval),)
    smooth = nonzero(tangents)
    program = trace_fun(_smooth_tangent, [x.aval for x in primals], "cofactors_tangent")
    forward, _ = handle.jvp_jaxpr(program, smooth, True)
    return outs, eval_closed(forward, *primals, *where_true(tangents, smooth))[1:]


def _tangent_transpose(handle: TransposeHandle, cts: Any, a: Any, a_dot: Any) -> Any:
    assert type(a_dot) is Linear
    (found,) = cofactors_tangent_p.bind(a, handle.instantiate(cts[0]))
    return Zero(a.aval), found


def _tangent_batch(axis: BatchAxis, operands: Any, dims: Any) -> Any:
    (a, f), (a_dim, f_dim) = operands, dims
    if a_dim is not_mapped:  # one factorisation for all tangents
        return cofactors_tangent_p.bind(a, axis.to_front(f, f_dim)), (0,)
    at = (f.aval.ndim - (f_dim is not not_mapped)) - (a.aval.ndim - 1)
    f = axis.broadcast(f, at) if f_dim is not_mapped else axis.move(f, f_dim, at)
    return cofactors_tangent_p.bind(axis.to_front(a, a_dim), f), (at,)


cofactors_tangent_p: Primitive = Primitive(
    "cofactors_tangent",
    shape=_tangent_shape,
    numpy=_numpy_tangent,
    stablehlo=_stablehlo_tangent,
    jvp=_tangent_jvp,
    transpose=_tangent_transpose,
    batch=_tangent_batch,
    call_like=True,
    sharding=dimension_names.of_last(2),
)


# ---------------------------------------------------------------------------------- linear solve
# custom_linear_solve: solve a linear system by a program of the user's, differentiated
# implicitly.
#
#
# The operands begin with what the four programs captured, as many for each as `counts` says; then
# comes b. Evaluated, the primitive is `solve`. From A x = b follows
#
#     x_dot = A^-1 (b_dot - A_dot x)              one more solve, and the derivative of `matvec`
#     b_bar = A^-T x_bar                          a solve by the programs of the transposed system
#
# so no derivative is ever taken of `solve` itself, which may be a loop with an end known only at
# run time. The transposed system is this primitive with its programs in pairs exchanged; `vecmat`
# and `transpose_solve` are None where the user gave no way to solve it. `aux` counts as constant.

PROGRAMS = ("matvec", "vecmat", "solve", "transpose_solve")
_SOLVE = PROGRAMS.index("solve")
_EXCHANGED = (1, 0, 3, 2)


def _linear_solve_shape(*avals: Any, solve: ClosedJaxpr, **_rest: Any) -> Any:
    return solve.out_avals


def _linear_solve_numpy(
    *operands: Any, solve: ClosedJaxpr, counts: Sequence[int], **_rest: Any
) -> Any:
    *consts, b = split_at(operands, *counts)
    return tuple(eval_closed(solve, *consts[_SOLVE], *b))


def _linear_solve_stablehlo(builder: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
               solve: ClosedJaxpr, counts: Sequence[int], **_rest: Any) -> Any:  # fmt: skip
    *consts, b = split_at(operands, *counts)
    return builder.inline(solve, [*consts[_SOLVE], *b])


def _effects(*, solve: ClosedJaxpr, **_rest: Any) -> Any:
    return solve.effects


def _linear_solve_jvp(handle: JVPHandle, primals: Any, tangents: Any, **params: Any) -> Any:
    outs = linear_solve_p.bind(*primals, **params)
    *consts, b = split_at(primals, *params["counts"])
    *const_dots, rhs = split_at(tangents, *params["counts"])
    x = outs[: len(b)]
    mask = nonzero(const_dots[0])
    if any(mask):  # A_dot x
        matvec = params["matvec"]
        forward, mask_out = handle.jvp_jaxpr(matvec, [*mask, *[False] * len(b)])
        results = eval_closed(forward, *consts[0], *x, *where_true(const_dots[0], mask))
        changes = with_zeros(handle, x, results[len(b) :], mask_out)
        rhs = [_difference(b_dot, change) for b_dot, change in zip(rhs, changes, strict=True)]
    dots: Sequence[Any] = [Zero(handle.tangent_aval(out)) for out in outs]
    if any(nonzero(rhs)):
        known = primals[: len(primals) - len(b)]
        solved = linear_solve_p.bind(*known, *[handle.instantiate(r) for r in rhs], **params)
        dots = [*solved[: len(b)], *dots[len(b) :]]
    return outs, dots


def _difference(x: Any, y: Any) -> Any:
    if type(y) is Zero:
        return x
    return neg(y) if type(x) is Zero else sub(x, y)


def _linear_solve_transpose(
    handle: TransposeHandle, cts: Any, *operands: Any, **params: Any
) -> Any:
    *consts, b = split_at(operands, *params["counts"])
    _check_transposable(consts, params)
    exchanged = {name: params[PROGRAMS[k]] for name, k in zip(PROGRAMS, _EXCHANGED, strict=True)}
    results = linear_solve_p.bind(
        *[x for k in _EXCHANGED for x in consts[k]],
        *[handle.instantiate(ct) for ct in cts[: len(b)]],
        counts=tuple([params["counts"][k] for k in _EXCHANGED]),
        **exchanged,
    )
    given = [r if type(x) is Linear else Zero(x.aval) for x, r in zip(b, results, strict=False)]
    return (*[Zero(x.aval) for group in consts for x in group], *given)


def _check_transposable(consts: Any, params: Any) -> None:
    require(
        all(type(x) is not Linear for group in consts for x in group), "custom_linear_solve",
        "the solution is not linear in what matvec and solve captured.",
        hint="it is linear in b alone; grad differentiates it in both", error=TypeError,
    )  # fmt: skip
    if params["transpose_solve"] is None:
        raise TypeError(message(
            "custom_linear_solve",
            "transpose_solve required: reverse mode needs the transposed system to be solved.",
            got="neither transpose_solve nor symmetric=True",
            hint="custom_linear_solve(..., transpose_solve=lambda vecmat, b: ...)",
        ))  # fmt: skip


def _linear_solve_batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    counts = params["counts"]
    *consts, b = split_at(operands, *counts)
    *const_dims, b_dims = split_at(dims, *counts)
    values: list[Any] = []
    batched: dict[str, Any] = {}
    for name, group, group_dims in zip(PROGRAMS, consts, const_dims, strict=True):
        moved, mapped = all_to_front(axis, group, group_dims)
        values += moved
        program = params[name]
        if program is not None:  # unknowns and right-hand sides are batches in all of them
            program = axis.batch_jaxpr(program, [*mapped, *[True] * len(b)], True)[0]
        batched[name] = program
    values += [axis.to_front(x, d) for x, d in zip(b, b_dims, strict=True)]
    outs = linear_solve_p.bind(*values, counts=counts, **batched)
    return outs, (0,) * len(outs)


linear_solve_p = Primitive(
    "custom_linear_solve",
    call_like=True,
    shape=_linear_solve_shape,
    numpy=_linear_solve_numpy,
    stablehlo=_linear_solve_stablehlo,
    jvp=_linear_solve_jvp,
    transpose=_linear_solve_transpose,
    batch=_linear_solve_batch,
    effects=_effects,
)
