"""tridiagonal_solve: the solution X of A X = B for a tridiagonal A, given by its three diagonals.

Row i of A is dl[i], d[i], du[i] in the columns i - 1, i, i + 1; dl[0] and du[-1] are not read. The
method is elimination with exchanges of neighbouring rows. Where A is singular X is NaN; with
`perturb_singular` pivots that are next to nothing are moved away from zero by eps times the
greatest element of the triangular factor, so that X is finite. Source: LAPACK Users' Guide, `gtsv`;
for the perturbation `lagts`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.lapack_text import gpu_call, info_aval, lapack_call, nan_on_failure
from xnp.primitives.matrices import LETTER, as_columns, matrix_batch
from xnp.primitives.operations import (
    add,
    bind,
    concatenated,
    div,
    filled,
    mul,
    neg,
    selected,
    sliced,
    sub,
)
from xprim import Linear, Primitive, ShapedArray, Zero, dtypes
from xprim.contracts import Builder
from xprim.dimension_names import Names
from xprim.errors import message
from xprim.platform_rules import by_platform

__all__ = ()


def _shape(
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
    if perturb_singular and dtypes.is_complex(d.dtype):
        raise TypeError("tridiagonal_solve: perturb_singular goes with real operands.")
    return (b.strong(),)


def _numpy(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool) -> Any:
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


def _lapack(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, perturb_singular: bool
) -> Any:
    (out,) = avals_out
    if out.size == 0:
        return [operands[3]]
    if perturb_singular:
        return lapack_call(b, "", out.dtype, operands, avals_in, avals_out,
                           target="tridiagonal_solve_perturbed_ffi")  # fmt: skip
    batch = out.shape[:-2]
    results = [*avals_in, info_aval(batch)]
    *_, x, info = lapack_call(b, "gtsv", out.dtype, operands, avals_in, results)
    return [nan_on_failure(b, info, batch, x, out)]


def _gpu(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, perturb_singular: bool
) -> Any:
    (out,) = avals_out
    if out.size == 0:
        return [operands[3]]
    if perturb_singular:
        return gpu_call(b, "_tridiagonal_solve_perturbed", operands, avals_in, avals_out)
    if out.shape[-2] < 3:  # cuSPARSE wants three rows
        return b.traced(_of_few_rows, operands, avals_in, key="tridiagonal_solve of few rows")
    return gpu_call(b, "sparse_gtsv2_ffi", operands, avals_in, avals_out, aliases={3: 0})


def _of_few_rows(dl: Any, d: Any, du: Any, b: Any) -> list[Any]:
    """Return the solution for one row or two, by elimination as for more."""
    last, count = d.aval.ndim - 1, b.aval.shape[-1]
    if d.aval.shape[-1] == 1:
        return [_divided(b, d)]
    d0, d1 = [sliced(d, last, i, i + 1) for i in (0, 1)]
    above, below = sliced(du, last, 0, 1), sliced(dl, last, 1, 2)
    b0, b1 = [sliced(b, last, i, i + 1) for i in (0, 1)]
    swap = bind("lt", bind("abs", d0), bind("abs", below))
    wide = as_columns(swap, count)
    pivot, rest = selected(swap, below, d0), selected(swap, d0, below)
    beside, corner = selected(swap, d1, above), selected(swap, above, d1)
    b0, b1 = selected(wide, b1, b0), selected(wide, b0, b1)
    factor = div(rest, pivot)
    x1 = _divided(sub(b1, mul(as_columns(factor, count), b0)), sub(corner, mul(factor, beside)))
    x0 = _divided(sub(b0, mul(as_columns(beside, count), x1)), pivot)
    return [concatenated([x0, x1], last)]


def _divided(x: Any, pivot: Any) -> Any:
    """Return x / pivot, and NaN where the pivot is zero."""
    regular = bind("ne", pivot, filled(pivot.aval.shape, 0, pivot.aval.dtype))
    pivot = selected(regular, pivot, filled(pivot.aval.shape, np.nan, pivot.aval.dtype))
    return div(x, as_columns(pivot, x.aval.shape[-1]))


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    # A X = B gives A dX = dB - dA X
    *diagonals, _ = primals
    *diagonals_dot, b_dot = tangents
    outs = tridiagonal_solve_p.bind(*primals, **params)
    terms = [] if type(b_dot) is Zero else [b_dot]
    terms += [neg(x) for x in _products(diagonals_dot, outs[0])]
    if not terms:
        return outs, (Zero(outs[0].aval),)
    right = terms[0]
    for term in terms[1:]:
        right = add(right, term)
    return outs, tridiagonal_solve_p.bind(*diagonals, right, **params)


def _products(diagonals: Any, x: Any) -> list[Any]:
    """Return the products with X of each diagonal that is not Zero."""
    found = []
    for v, step in zip(diagonals, (-1, 0, 1), strict=True):
        if type(v) is not Zero:
            repeated = as_columns(v, x.aval.shape[-1])
            found.append(mul(repeated, _moved(x, step, x.aval.ndim - 2)))
    return found


def _moved(x: Any, step: int, dim: int) -> Any:
    """Return x[i + step] at i, and zero where there is no such element."""
    if not step:
        return x
    n = x.aval.shape[dim]
    shape = list(x.aval.shape)
    shape[dim] = min(1, n)
    none = filled(shape, 0, x.aval.dtype)
    if step > 0:
        return concatenated([sliced(x, dim, min(1, n), n), none], dim)
    return concatenated([none, sliced(x, dim, 0, max(n - 1, 0))], dim)


def _transpose(cts: Any, dl: Any, d: Any, du: Any, b: Any, **params: Any) -> Any:
    assert type(b) is Linear
    last = d.aval.ndim - 1
    (found,) = tridiagonal_solve_p.bind(
        _moved(du, -1, last), d, _moved(dl, 1, last), cts[0], **params
    )
    return Zero(dl.aval), Zero(d.aval), Zero(du.aval), found


def _dimensions(avals: Any, out: Any, params: dict[str, Any]) -> Names:
    """Systems may be cut; their equations and right hand sides are whole."""
    batch = tuple(range(avals[1].ndim - 1))
    return Names([(*batch, *[None] * (a.ndim - len(batch))) for a in avals],
                 [(*batch, None, None) for _ in out])  # fmt: skip


tridiagonal_solve_p: Primitive = Primitive(
    "tridiagonal_solve",
    shape=_shape,
    numpy=_numpy,
    stablehlo=by_platform("tridiagonal_solve", cpu=_lapack, gpu=_gpu),
    jvp=_jvp,
    transpose=_transpose,
    batch=matrix_batch(lambda: tridiagonal_solve_p),
    dimensions=_dimensions,
)
