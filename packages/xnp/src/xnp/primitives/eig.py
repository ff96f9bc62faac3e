"""eig: eigenvalues and eigenvectors of square matrices, A V = V diag(w), U^H A = diag(w) U^H.

The results are complex: w, then the left vectors U, then the right vectors V, as far as asked for.
Vectors have length one, and their largest component is real where LAPACK's is. Where LAPACK fails,
or where the matrix holds infinities or NaN, the results are NaN.
Source of the derivative: M. Giles, An extended collection of matrix derivative results (2008),
section 3.1: dw = diag(V^-1 dA V). The vectors' scale is a convention, so they have none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.lapack_text import info_aval, lapack_call, nan_on_failure
from xnp.primitives.matrices import (
    checked,
    complex_dtype,
    diagonal,
    matmul,
    matrix_batch,
    real_dtype,
)
from xnp.primitives.shorthand import converted
from xnp.primitives.solve import solved_system
from xprim import Primitive, ShapedArray, Zero, dtypes, shaped_array, undefined
from xprim.errors import MissingRuleError


def _shape(aval: ShapedArray, *, compute_left_eigenvectors: bool,
           compute_right_eigenvectors: bool) -> tuple[ShapedArray, ...]:  # fmt: skip
    batch, n, _ = checked("eig", aval, square=True)
    dtype = complex_dtype(aval.dtype)
    vectors = shaped_array(aval.shape, dtype)
    count = int(compute_left_eigenvectors) + int(compute_right_eigenvectors)
    return (shaped_array((*batch, n), dtype), *[vectors] * count)


def _numpy(a: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool) -> Any:
    dtype = complex_dtype(a.dtype)
    w = np.full(a.shape[:-1], complex(np.nan, np.nan), dtype)
    left, right = np.full(a.shape, complex(np.nan, np.nan), dtype), None
    right = left.copy()
    for i in np.ndindex(a.shape[:-2]):
        if not np.isfinite(a[i]).all():
            continue  # stays NaN
        try:
            if not (compute_left_eigenvectors or compute_right_eigenvectors):
                w[i] = np.linalg.eigvals(a[i])
                continue
            w[i], right[i] = np.linalg.eig(a[i])
            if compute_left_eigenvectors:
                left[i] = _left_vectors(right[i])
        except np.linalg.LinAlgError:
            continue  # stays NaN
    wanted = [(left, compute_left_eigenvectors), (right, compute_right_eigenvectors)]
    return (w, *[v for v, asked in wanted if asked])


def _left_vectors(right: Any) -> Any:
    """Return the left vectors: the columns of V^-H, of length one, largest component real."""
    left = np.linalg.inv(right).conj().T
    left = left / np.linalg.norm(left, axis=0)
    largest = left[np.argmax(np.abs(left), axis=0), np.arange(left.shape[1])]
    return left * (np.abs(largest) / largest)


def _stablehlo(
    b: Any, operands: Any, avals_in: Any, avals_out: Any, *, compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
) -> Any:  # fmt: skip
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, x) for x in avals_out]
    batch, values = aval.shape[:-2], avals_out[0]
    vectors = shaped_array(aval.shape, complex_dtype(aval.dtype))
    config = ", ".join([
        f"compute_{side} = {ord('V' if asked else 'N')} : ui8"
        for side, asked in (("left", compute_left_eigenvectors),
                            ("right", compute_right_eigenvectors))
    ])  # fmt: skip
    if dtypes.is_complex(aval.dtype):
        found = lapack_call(b, "eig", "geev", aval.dtype, operands, [aval],
                            [values, vectors, vectors, info_aval(batch)], config)  # fmt: skip
        w = found[0]
    else:
        part = shaped_array(values.shape, real_dtype(values.dtype))
        found = lapack_call(b, "eig", "geev", aval.dtype, operands, [aval],
                            [part, part, vectors, vectors, info_aval(batch)], config)  # fmt: skip
        (w,) = b.op("stablehlo.complex", found[:2], [part, part], [values])
    left, right, info = found[-3:]
    wanted = [w, *[v for v, asked in ((left, compute_left_eigenvectors),
                                      (right, compute_right_eigenvectors)) if asked]]  # fmt: skip
    return [nan_on_failure(b, info, batch, x, y) for x, y in zip(wanted, avals_out, strict=True)]


def _jvp(primals: Any, tangents: Any, *, compute_left_eigenvectors: bool,
         compute_right_eigenvectors: bool) -> Any:  # fmt: skip
    (a,), (a_dot,) = primals, tangents
    params = {"compute_left_eigenvectors": compute_left_eigenvectors,
              "compute_right_eigenvectors": compute_right_eigenvectors}  # fmt: skip
    if type(a_dot) is Zero:
        outs = eig_p.bind(a, **params)
        return outs, tuple([Zero(y.aval) for y in outs])
    if compute_left_eigenvectors or compute_right_eigenvectors:
        raise MissingRuleError(
            "eig: the eigenvectors of a general matrix have no derivative: their scale is a "
            "convention.\n  hint      eigvals has one; eigh has one for symmetric matrices"
        )
    w, v = eig_p.bind(a, compute_left_eigenvectors=False, compute_right_eigenvectors=True)
    change = matmul(converted(a_dot, v.aval.dtype), v)
    return (w,), (diagonal(solved_system(v, change)),)


eig_p: Primitive = Primitive(
    "eig",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: eig_p),
)
