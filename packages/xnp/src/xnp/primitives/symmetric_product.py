"""symmetric_product: alpha A A^T + beta C, for real matrices A and symmetric C.

Neighbours: `dot_general`, which it is made of in programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.matrices import checked, matmul, matrix_batch, mt
from xnp.primitives.operations import add, scaled
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, undefined
from xprim.contracts import Builder
from xprim.errors import message

__all__ = ()


def _shape(a: ShapedArray, c: ShapedArray, *, alpha: float, beta: float) -> tuple[ShapedArray, ...]:
    batch, m, _ = checked("symmetric_product", a)
    checked("symmetric_product", c, square=True)
    if a.dtype != c.dtype or dtypes.is_complex(a.dtype):
        raise TypeError(
            "symmetric_product: requires real operands of equal dtypes, got "
            f"{a.dtype.name}, {c.dtype.name}."
        )
    if c.shape != (*batch, m, m):
        raise ValueError(message(
            "symmetric_product", "the operands do not fit.",
            got=f"a_matrix: {a.str_long()}, c_matrix: {c.str_long()}",
            expected="shapes (..., m, n) and (..., m, m)",
        ))  # fmt: skip
    return (c.strong(),)


def _numpy(a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    dtype = c.dtype.type
    return (dtype(alpha) * np.matmul(a, a.swapaxes(-1, -2)) + dtype(beta) * c,)


def _formula(a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    return [add(scaled(matmul(a, mt(a)), alpha), scaled(c, beta))]


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, alpha: float, beta: float
) -> Any:
    def formula(a: Any, c: Any) -> Any:
        return _formula(a, c, alpha=alpha, beta=beta)

    return b.traced(formula, operands, avals_in, key=("symmetric_product", alpha, beta))


def _jvp(primals: Any, tangents: Any, *, alpha: float, beta: float) -> Any:
    a, c = primals
    a_dot, c_dot = tangents
    outs = symmetric_product_p.bind(a, c, alpha=alpha, beta=beta)
    terms = [] if type(c_dot) is Zero else [scaled(c_dot, beta)]
    if type(a_dot) is not Zero:
        cross = scaled(matmul(a, mt(a_dot)), alpha)
        terms.append(add(cross, mt(cross)))
    if not terms:
        return outs, (Zero(outs[0].aval),)
    return outs, (terms[0] if len(terms) == 1 else add(*terms),)


symmetric_product_p: Primitive = Primitive(
    "symmetric_product",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: symmetric_product_p),
    dimensions=dimension_names.of_last(2),
)
