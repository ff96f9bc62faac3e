"""schur: A = Z T Z^H with unitary Z and an upper triangular T.

Of a real matrix T is real, and has blocks of two rows on its diagonal, with equal diagonal
elements, for each pair of complex eigenvalues. With `compute_schur_vectors` the results are T and
Z, else T. Where the iteration fails, or where the matrix holds infinities or NaN, they are NaN.

A Schur form is not unique. The host takes LAPACK's steps, so its eigenvalues come in LAPACK's
order, as far as rounding errors leave it (for more than 75 rows, where LAPACK shifts by many
eigenvalues at once, it may be another one). What LAPACK leaves to rounding errors is chosen: see
`schur_choices`. Neighbours: `schur_real`, `schur_complex` are the iterations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import schur_complex, schur_real
from xnp.primitives.finite_matrices import written_results
from xnp.primitives.hessenberg import reduce_in_place
from xnp.primitives.lapack_text import info_aval, lapack_call, on_host
from xnp.primitives.matrices import checked, matrix_batch
from xnp.primitives.reflectors import host_product
from xnp.primitives.schur_choices import choice, host_choice
from xnp.primitives.schur_steps import isolated
from xprim import Primitive, ShapedArray, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import Builder
from xprim.platform_rules import by_platform

__all__ = ()


def _shape(aval: ShapedArray, *, compute_schur_vectors: bool) -> tuple[ShapedArray, ...]:
    checked("schur", aval, square=True)
    return (aval.strong(),) * (1 + compute_schur_vectors)


def _numpy(a: Any, *, compute_schur_vectors: bool) -> Any:
    forms, vectors = np.array(a), np.empty_like(a)
    for i in np.ndindex(a.shape[:-2]):
        vectors[i] = np.eye(a.shape[-1])
        if not (np.isfinite(a[i]).all() and _decompose(forms[i], vectors[i])):
            forms[i] = vectors[i] = np.nan
    found = host_choice(forms, vectors)
    return found if compute_schur_vectors else found[:1]


def _decompose(t: Any, z: Any) -> bool:
    """Overwrite a matrix by its Schur form, and `z` by the vectors."""
    n = t.shape[0]
    if n == 0:
        return True
    scale = _scale(t)
    t *= scale
    low, high, order = isolated(t)
    taus = np.zeros(n - 1, t.dtype)
    reduce_in_place(t, taus, low, high)
    z[1:, 1:] = host_product(t[1:, :-1], taus, z[1:, 1:], transpose=False)
    t[...] = np.triu(t, -1)
    rounds = schur_complex if dtypes.is_complex(t.dtype) else schur_real
    done: bool = rounds.iterate(t, z, low, high)
    z[...] = order @ z
    t /= scale
    return done


def _scale(t: Any) -> Any:
    """Return what brings the greatest element to 1 where products would vanish or overflow."""
    info, greatest = np.finfo(t.dtype), np.max(np.abs(t))
    small = np.sqrt(info.tiny) / info.eps
    return 1 / greatest if 0 < greatest < small or greatest > 1 / small else greatest.dtype.type(1)


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, compute_schur_vectors: bool
) -> Any:
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, x) for x in avals_out]
    batch = aval.shape[:-2]
    values = shaped_array(aval.shape[:-1], aval.dtype)
    parts = [values] if dtypes.is_complex(aval.dtype) else [values, values]
    config = f"mode = {ord('V')} : ui8, sort = {ord('N')} : ui8"
    found = lapack_call(
        b, "gees", aval.dtype, operands, avals_in,
        [aval, aval, *parts, info_aval(batch), info_aval(batch)], config,
    )  # fmt: skip
    both = b.traced(choice, found[:2], [aval, aval], key="schur")
    wanted = both[: len(avals_out)]
    return written_results(b, operands[0], aval, found[-1], wanted, avals_out)


def _cost(avals_in: Any, avals_out: Any, **_params: Any) -> float:
    # some 15 microseconds for each of about 3 n steps in each of about 2 n sweeps
    return float(avals_in[0].size * 90_000)


schur_p: Primitive = Primitive(
    "schur",
    shape=_shape,
    numpy=_numpy,
    stablehlo=by_platform("schur", cpu=_stablehlo, gpu=on_host(lambda: schur_p)),
    jvp=undefined("its vectors have phases, or rotations of blocks, that nothing determines; what "
                  "is made of it, such as scipy.linalg.sqrtm and solve_sylvester, has derivatives"),
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: schur_p),
    cost=_cost,
    dimensions=dimension_names.of_last(2),
)  # fmt: skip
