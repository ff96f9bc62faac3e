"""solve: the solution X of A X = B for square matrices A.

It is a primitive, not a formula of `lu` and `triangular_solve`, for its derivative's sake:
A dX = dB - dA X needs one more solution with the same matrix and no derivative of the
factorisation. Compiled, it is that formula. Where A is singular, the result holds inf or NaN.

Neighbours: `lu`, `triangular_solve`; `xnp.linalg.solve` is the public function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.along_axis import rows_along
from xnp.primitives.lu import lu_p
from xnp.primitives.matrices import checked, matmul, matrix_batch, mt
from xnp.primitives.operations import neg, sub
from xnp.primitives.triangular_solve import solved, triangular_solve_p
from xprim import Linear, Primitive, ShapedArray, Zero, dimension_names, shaped_array
from xprim.contracts import Builder
from xprim.errors import message

__all__ = ()


def solved_system(a: Any, b: Any) -> Any:
    """Return A^-1 B for batches of square matrices A and of matrices B; for rules."""
    return solve_p.bind(a, b)[0]


def _shape(a: ShapedArray, b: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, n, _ = checked("solve", a, square=True)
    b_batch, rows, _ = checked("solve", b)
    if a.dtype != b.dtype:
        raise TypeError(
            f"solve: requires operands of equal dtypes, got {a.dtype.name}, {b.dtype.name}."
        )
    if batch != b_batch or rows != n:
        raise ValueError(message(
            "solve", "the operands do not fit.", got=f"a: {a.str_long()}, b: {b.str_long()}",
            expected="a.shape[-1] == b.shape[-2], and equal batch dimensions",
        ))  # fmt: skip
    return (shaped_array(b.shape, b.dtype),)


def _numpy(a: Any, b: Any) -> Any:
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
    lower = solved(factors, permuted, lower=True, unit_diagonal=True)
    return [solved(factors, lower, lower=False)]


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    return b.traced(_by_factors, operands, avals_in, key="solve")


def _jvp(primals: Any, tangents: Any) -> Any:
    (a, b), (a_dot, b_dot) = primals, tangents
    outs = solve_p.bind(a, b)
    if type(a_dot) is Zero:
        if type(b_dot) is Zero:
            return outs, (Zero(outs[0].aval),)
        return outs, solve_p.bind(a, b_dot)
    change = matmul(a_dot, outs[0])
    right = neg(change) if type(b_dot) is Zero else sub(b_dot, change)
    return outs, solve_p.bind(a, right)


def _transpose(cts: Any, a: Any, b: Any) -> Any:
    assert type(b) is Linear
    return Zero(a.aval), solved_system(mt(a), cts[0])


solve_p: Primitive = Primitive(
    "solve",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=_transpose,
    batch=matrix_batch(lambda: solve_p),
    dimensions=dimension_names.of_last(2),
)
