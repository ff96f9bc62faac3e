"""geqrf: the QR factorisation as LAPACK keeps it, as Householder reflectors.

The result is A with R on and above the diagonal and, below it, the vectors v of the reflectors
I - tau v v^H (their first elements, 1, left out), and the k factors tau; Q is the product of the
reflectors. `qr` forms Q and R of it. Source: LAPACK Users' Guide, section on QR factorisation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.lapack_text import reflectors_call
from xnp.primitives.matrices import checked, matrix_batch
from xprim import Primitive, ShapedArray, dimension_names, shaped_array, undefined
from xprim.contracts import Builder
from xprim.platform_rules import by_platform

__all__ = ()


def _shape(aval: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, m, n = checked("geqrf", aval)
    return aval.strong(), shaped_array((*batch, min(m, n)), aval.dtype)


def _numpy(a: Any) -> Any:
    if a.size == 0:
        return a, np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    packed, taus = np.linalg.qr(a, mode="raw")
    return np.swapaxes(packed, -1, -2), taus


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    (aval,), (packed, taus) = avals_in, avals_out
    if aval.size == 0:
        return [operands[0], b.constant(0, taus)]
    return reflectors_call(b, "geqrf", operands, [packed], [packed, taus])


geqrf_p: Primitive = Primitive(
    "geqrf",
    shape=_shape,
    numpy=_numpy,
    stablehlo=by_platform("geqrf", cpu=_stablehlo, gpu=_stablehlo),
    jvp=undefined("Q and R have derivatives, but not the reflectors: use qr"),
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: geqrf_p),
    dimensions=dimension_names.of_last(2),
)
