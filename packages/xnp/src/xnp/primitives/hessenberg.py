"""hessenberg: A = Q H Q^H with zeros below the first subdiagonal of H, and unitary Q.

The results are H, with the vectors of the reflectors below its subdiagonal, and their factors;
`householder_product` of the rows from the second on gives Q beside a first row and column of the
identity. Source: LAPACK Users' Guide, `gehrd`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.finite_matrices import host_results, written_results
from xnp.primitives.lapack_text import info_aval, lapack_call, on_host
from xnp.primitives.matrices import checked, matrix_batch
from xnp.primitives.reflectors import reflector
from xprim import Primitive, ShapedArray, dimension_names, shaped_array, undefined
from xprim.contracts import Builder
from xprim.platform_rules import by_platform

__all__ = ()


def _shape(aval: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, n, _ = checked("hessenberg", aval, square=True)
    return aval.strong(), shaped_array((*batch, max(n - 1, 0)), aval.dtype)


def _numpy(a: Any) -> Any:
    out = np.array(a)
    taus = np.zeros((*a.shape[:-2], max(a.shape[-1] - 1, 0)), a.dtype)
    for i in np.ndindex(a.shape[:-2]):
        reduce_in_place(out[i], taus[i], 0, a.shape[-1] - 1)
    return host_results(a, (out, taus)) if a.shape[-1] > 1 else (out, taus)


def reduce_in_place(a: Any, taus: Any, low: int, high: int) -> None:
    """Reduce rows and columns `low` to `high` of one matrix, the rest being triangular already."""
    for i in range(low, high):
        v, tau = reflector(a[i + 1 : high + 1, i])
        beta, v[0], taus[i] = v[0], 1, tau
        block = a[: high + 1, i + 1 : high + 1]
        block -= tau * np.outer(block @ v, v.conj())
        block = a[i + 1 : high + 1, i + 1 :]
        block -= np.conj(tau) * np.outer(v, v.conj() @ block)
        a[i + 1 : high + 1, i] = v
        a[i + 1, i] = beta


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    (aval,) = avals_in
    batch, n = aval.shape[:-2], aval.shape[-1]
    if aval.size == 0 or n == 1:
        return [operands[0], b.constant(0, avals_out[1])]
    config = f"low = 1 : i32, high = {n} : i32"
    *found, info = lapack_call(b, "gehrd", aval.dtype, operands, avals_in,
                               [*avals_out, info_aval(batch)], config)  # fmt: skip
    return written_results(b, operands[0], aval, info, found, avals_out)


_host = on_host(lambda: hessenberg_p)


def _gpu(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    if avals_out[1].size == 0:
        return [operands[0], b.constant(0, avals_out[1])]
    return _host(b, operands, avals_in, avals_out)


hessenberg_p: Primitive = Primitive(
    "hessenberg",
    shape=_shape,
    numpy=_numpy,
    stablehlo=by_platform("hessenberg", cpu=_stablehlo, gpu=_gpu),
    jvp=undefined("the signs of the reflectors are a convention, and break where columns vanish"),
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: hessenberg_p),
    dimensions=dimension_names.of_last(2),
)
