"""householder_product: the columns of Q, the product of the reflectors that `geqrf` leaves.

Of matrices (..., m, n) with m >= n it gives the first n columns of Q. It is differentiable in both
operands: `reflectors` has the formula.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.lapack_text import reflectors_call
from xnp.primitives.matrices import checked, eye, matrix_batch
from xnp.primitives.reflectors import check_taus, host_product, product_tangent
from xprim import Primitive, ShapedArray, Zero, dimension_names, undefined
from xprim.contracts import Builder
from xprim.errors import message
from xprim.platform_rules import by_platform

__all__ = ()


def _shape(a: ShapedArray, taus: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, m, n = checked("householder_product", a)
    check_taus("householder_product", batch, a, taus)
    if m < n:
        raise ValueError(message(
            "householder_product", "there are more columns than rows.", got=f"a: {a.str_long()}",
            expected="a.shape[-2] >= a.shape[-1]",
        ))  # fmt: skip
    return (a.strong(),)


def _numpy(a: Any, taus: Any) -> Any:
    columns = np.broadcast_to(np.eye(*a.shape[-2:], dtype=a.dtype), a.shape)
    return (host_product(a, taus, columns, transpose=False),)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    (_, taus), (out,) = avals_in, avals_out
    if out.size == 0 or taus.size == 0:
        columns = np.broadcast_to(np.eye(*out.shape[-2:], dtype=out.dtype), out.shape)
        return [b.constant(columns if out.size else 0, out)]
    return reflectors_call(b, "orgqr", operands, avals_in, [out])


def _jvp(primals: Any, tangents: Any) -> Any:
    outs = householder_product_p.bind(*primals)
    if all(type(t) is Zero for t in tangents):
        return outs, (Zero(outs[0].aval),)
    aval = outs[0].aval
    columns = eye(aval.shape, aval.dtype)
    everything = (*primals, columns), (*tangents, Zero(aval))
    return outs, (product_tangent(*everything, transpose=False),)


householder_product_p: Primitive = Primitive(
    "householder_product",
    shape=_shape,
    numpy=_numpy,
    stablehlo=by_platform("householder_product", cpu=_stablehlo, gpu=_stablehlo),
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: householder_product_p),
    dimensions=dimension_names.of_last(2),
)
