"""triangular_solve: solve op(A) X = B, or X op(A) = B, for a triangular A.

op(A) is A, its transpose, its conjugate or its adjoint; only the named triangle of A is read, and
with `unit_diagonal` its diagonal is taken for ones. With NumPy, every case is brought to a lower
triangular A on the left, by transposing and by reversing the order of rows and columns, and that is
solved by halves: X1 = A11^-1 B1, X2 = A22^-1 (B2 - A21 X1), so that matrix products do the work.

Semantics: StableHLO specification, section triangular_solve.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.lapack_text import lapack_call
from xnp.primitives.matrices import checked, conj, matmul, mt, tril, triu
from xnp.primitives.operations import add, neg
from xnp.primitives.upcast_lowering import upcast
from xprim import Linear, Primitive, ShapedArray, Zero, dimension_names, dtypes, shaped_array
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()

HALVES = (dtypes.float16, dtypes.bfloat16)  # no kernel has them: they are solved in float32
_SMALL = 16  # rows below which a loop over rows beats splitting further


def solved(
    a: Any, b: Any, *, lower: bool, left_side: bool = True, transpose_a: bool = False,
    conjugate_a: bool = False, unit_diagonal: bool = False,
) -> Any:  # fmt: skip
    """Bind the primitive; for rules."""
    return triangular_solve_p.bind(
        a, b, left_side=left_side, lower=lower, transpose_a=transpose_a, conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
    )[0]  # fmt: skip


def _shape(a: ShapedArray, b: ShapedArray, *, left_side: bool, **_: Any) -> (
    tuple[ShapedArray, ...]
):  # fmt: skip
    batch, n, _n = checked("triangular_solve", a, square=True, narrow=HALVES)
    b_batch, rows, columns = checked("triangular_solve", b, narrow=HALVES)
    if a.dtype != b.dtype:
        raise TypeError(
            "lax.triangular_solve requires operands of equal dtypes, got "
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


def _numpy(a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool,
           unit_diagonal: bool) -> Any:  # fmt: skip
    if a.dtype in HALVES:
        options = {"left_side": left_side, "lower": lower, "transpose_a": transpose_a,
                   "conjugate_a": conjugate_a, "unit_diagonal": unit_diagonal}  # fmt: skip
        (x,) = _numpy(a.astype(np.float32), b.astype(np.float32), **options)
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


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, left_side: bool, lower: bool,
    transpose_a: bool, conjugate_a: bool, unit_diagonal: bool,
) -> Any:  # fmt: skip
    (out,) = avals_out
    a, right = operands
    if out.size == 0:
        return [b.constant(0, out)]
    is_complex = dtypes.is_complex(out.dtype)
    if is_complex and conjugate_a and not transpose_a:
        a = _conjugated(b, a, avals_in[0])
    adjoint = is_complex and conjugate_a and transpose_a
    if b.platform == "cpu":
        letters = {"diag": "UN"[not unit_diagonal], "side": "LR"[not left_side],
                   "trans_x": "C" if adjoint else "T" if transpose_a else "N",
                   "uplo": "LU"[not lower]}  # fmt: skip
        config = ", ".join([f"{k} = {ord(v)} : ui8" for k, v in letters.items()])
        return lapack_call(b, "trsm", out.dtype, [a, right], avals_in, avals_out, config)
    form = "ADJOINT" if adjoint else "TRANSPOSE" if transpose_a else "NO_TRANSPOSE"
    flags = {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal}
    attributes = [f"{name} = {str(flag).lower()}" for name, flag in flags.items()]
    attributes.append(f"transpose_a = #stablehlo<transpose {form}>")
    return b.op("stablehlo.triangular_solve", [a, right], avals_in, avals_out,
                ", ".join(attributes))  # fmt: skip


def _conjugated(b: Builder, x: str, aval: ShapedArray) -> str:
    part = shaped_array(aval.shape, np.zeros((), aval.dtype).real.dtype)
    (re,) = b.op("stablehlo.real", [x], [aval], [part])
    (im,) = b.op("stablehlo.imag", [x], [aval], [part])
    minus = b.same_type_op("stablehlo.negate", [im], part)
    result: str = b.op("stablehlo.complex", [re, minus], [part, part], [aval])[0]
    return result


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
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


def _transpose(cts: Any, a: Any, b: Any, *, transpose_a: bool, **params: Any) -> Any:
    assert type(b) is Linear
    outs = triangular_solve_p.bind(a, cts[0], transpose_a=not transpose_a, **params)
    return Zero(a.aval), outs[0]


def _batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    a, b = [axis.to_front(x, d) for x, d in zip(operands, dims, strict=True)]
    return triangular_solve_p.bind(a, b, **params), (0,)


triangular_solve_p: Primitive = Primitive(
    "triangular_solve",
    shape=_shape,
    numpy=_numpy,
    stablehlo=upcast(_stablehlo, HALVES, np.float32),
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    dimensions=dimension_names.of_last(2),
)
