"""eig: eigenvalues and eigenvectors of square matrices, A V = V diag(w), U^H A = diag(w) U^H.

The results are complex: w, then the left vectors U, then the right vectors V, as far as asked for.
Vectors have length one, and their largest component is real where LAPACK's is. Where LAPACK fails,
or where the matrix holds infinities or NaN, the results are NaN.
Source of the derivative: M. Giles, An extended collection of matrix derivative results (2008),
section 3.1: dw = diag(V^-1 dA V), and, where it is enabled, dV = V C with
C_ij = (V^-1 dA V)_ij / (w_j - w_i), up to a change of each vector along itself. That one keeps its
length one and its largest component real, as LAPACK's normalisation does. The left vectors are the
right ones of A^H.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.factorisation_choices import (
    EigImplementation,
    by_compiler,
    check_choice,
    is_for_compiler,
)
from xnp.primitives.lapack_text import gpu_call, info_aval, lapack_call, nan_on_failure
from xnp.primitives.matrices import (
    adjoint,
    as_columns,
    as_rows,
    checked,
    compared,
    complex_dtype,
    conj,
    diagonal,
    matmul,
    matrix_batch,
    real,
)
from xnp.primitives.operations import (
    bind,
    concatenated,
    converted,
    div,
    filled,
    mul,
    scalar_like,
    selected,
    sliced,
    sub,
    summed,
)
from xnp.primitives.solve import solved_system
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import Builder
from xprim.errors import MissingRuleError, message
from xprim.platform_rules import by_platform

__all__ = ()


def _shape(aval: ShapedArray, *, compute_left_eigenvectors: bool,
           compute_right_eigenvectors: bool,
           enable_eigvec_derivs: bool,
           implementation: EigImplementation | None = None) -> tuple[ShapedArray, ...]:  # fmt: skip
    batch, n, _ = checked("eig", aval, square=True)
    dtype = complex_dtype(aval.dtype)
    vectors = shaped_array(aval.shape, dtype)
    count = int(compute_left_eigenvectors) + int(compute_right_eigenvectors)
    return (shaped_array((*batch, n), dtype), *[vectors] * count)


def _numpy(a: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
           enable_eigvec_derivs: bool, implementation: EigImplementation | None = None,
           ) -> Any:  # fmt: skip
    if is_for_compiler(implementation, EigImplementation.LAPACK):
        params = {
            "compute_left_eigenvectors": compute_left_eigenvectors,
            "compute_right_eigenvectors": compute_right_eigenvectors,
            "enable_eigvec_derivs": enable_eigvec_derivs,
            "implementation": implementation,
        }
        return by_compiler(eig_p, a, params)  # fmt: skip
    check_choice("eig", "implementation", implementation, EigImplementation.LAPACK)
    dtype = complex_dtype(a.dtype)
    w = np.full(a.shape[:-1], complex(np.nan, np.nan), dtype)
    left, right = np.full(a.shape, complex(np.nan, np.nan), dtype), None
    right = left.copy()
    for i in np.ndindex(a.shape[:-2]):
        if not (a.shape[-1] and np.isfinite(a[i]).all()):
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


def _lapack(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool, enable_eigvec_derivs: bool,
    implementation: EigImplementation | None = None,
) -> Any:  # fmt: skip
    check_choice("eig", "implementation", implementation, EigImplementation.LAPACK)
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, x) for x in avals_out]
    wanted = compute_left_eigenvectors, compute_right_eigenvectors
    config = ", ".join([
        f"compute_{side} = {ord('V' if asked else 'N')} : ui8"
        for side, asked in zip(("left", "right"), wanted, strict=True)
    ])  # fmt: skip
    found = lapack_call(b, "geev", aval.dtype, operands, [aval], _call_results(aval), config)
    return _results(b, found, aval, wanted, avals_out)


def _call_results(aval: ShapedArray) -> list[ShapedArray]:
    """Return the results of a call: the values (real and imaginary parts of a real matrix)."""
    values = shaped_array(aval.shape[:-1], aval.dtype)
    vectors = shaped_array(aval.shape, complex_dtype(aval.dtype))
    parts = [values] if dtypes.is_complex(aval.dtype) else [values, values]
    return [*parts, vectors, vectors, info_aval(aval.shape[:-2])]


def _results(
    b: Builder, found: list[str], aval: ShapedArray, wanted: tuple[bool, bool], avals_out: Any
) -> list[str]:
    """Write the results of ours from those of a call."""
    *w, left, right, info = found
    if len(w) == 2:
        part = shaped_array(aval.shape[:-1], aval.dtype)
        w = b.op("stablehlo.complex", w, [part, part], avals_out[:1])
    chosen = [*w, *[v for v, asked in zip((left, right), wanted, strict=True) if asked]]
    batch = aval.shape[:-2]
    return [nan_on_failure(b, info, batch, x, y) for x, y in zip(chosen, avals_out, strict=True)]


def _gpu(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool, enable_eigvec_derivs: bool,
    implementation: EigImplementation | None = None,
) -> Any:  # fmt: skip
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, x) for x in avals_out]
    wanted = compute_left_eigenvectors, compute_right_eigenvectors
    if implementation is EigImplementation.CUSOLVER:
        return _cusolver(b, operands, aval, avals_out, wanted)
    # a routine of the plugin's that has LAPACK on the host, or MAGMA, do it
    magma = {None: "auto", EigImplementation.MAGMA: "on"}.get(implementation, "off")
    left, right = [str(asked).lower() for asked in wanted]
    config = f'left = {left}, magma = "{magma}", right = {right}'
    target = f"hybrid_eig_{'comp' if dtypes.is_complex(aval.dtype) else 'real'}"
    found = gpu_call(b, target, operands, [aval], _call_results(aval), config)
    return _results(b, found, aval, wanted, avals_out)


def _cusolver(
    b: Builder, operands: Any, aval: ShapedArray, avals_out: Any, wanted: tuple[bool, bool]
) -> list[str]:
    """Write the call of cuSOLVER's routine, which knows no left vectors."""
    if b.platform == "rocm" or wanted[0]:
        raise ValueError(message(
            "eig", f"{EigImplementation.CUSOLVER} is not available here.",
            got=f"a program for {b.platform}, compute_left_eigenvectors={wanted[0]}",
            expected="a program for cuda without left eigenvectors",
        ))  # fmt: skip
    batch, values = aval.shape[:-2], avals_out[0]
    config = f"left = false, right = {str(wanted[1]).lower()}"
    results = [aval, values, aval, aval, info_aval(batch)]
    _, w, _, right, info = gpu_call(b, "solver_geev_ffi", operands, [aval], results, config)
    found = [w]
    if wanted[1] and dtypes.is_complex(aval.dtype):
        found.append(right)
    elif wanted[1]:
        found += b.traced(_vectors_of_pairs, [w, right], [values, aval], key="vectors of geev")
    return [nan_on_failure(b, info, batch, x, y) for x, y in zip(found, avals_out, strict=True)]


def _vectors_of_pairs(w: Any, packed: Any) -> list[Any]:
    """Return complex vectors of real matrices, as LAPACK's `geev` packs them.

    The two columns of a pair of conjugate values hold the real and the imaginary part of the vector
    of the first of them, whose imaginary part is positive.
    """
    n, last = packed.aval.shape[-1], packed.aval.ndim - 1
    sizes = bind("imag", w)
    none = filled(sizes.aval.shape, 0, sizes.aval.dtype)
    first, second = [as_rows(bind(name, sizes, none), n) for name in ("gt", "lt")]
    zeros = filled(packed.aval.shape, 0, packed.aval.dtype)
    border = sliced(zeros, last, 0, 1)
    after = concatenated([sliced(packed, last, 1, n), border], last)
    before = concatenated([border, sliced(packed, last, 0, n - 1)], last)
    re = selected(second, before, packed)
    im = selected(first, after, selected(second, bind("neg", packed), zeros))
    return [bind("complex", re, im)]


def _jvp(primals: Any, tangents: Any, *, compute_left_eigenvectors: bool,
         compute_right_eigenvectors: bool, enable_eigvec_derivs: bool, **chosen: Any,
         ) -> Any:  # fmt: skip
    (a,), (a_dot,) = primals, tangents
    params = {"compute_left_eigenvectors": compute_left_eigenvectors,
              "compute_right_eigenvectors": compute_right_eigenvectors,
              "enable_eigvec_derivs": enable_eigvec_derivs, **chosen}  # fmt: skip
    if type(a_dot) is Zero:
        known = eig_p.bind(a, **params)
        return known, tuple([Zero(y.aval) for y in known])
    vectors = compute_left_eigenvectors or compute_right_eigenvectors
    if vectors and not enable_eigvec_derivs:
        raise MissingRuleError(message(
            "eig",
            "the eigenvectors of a general matrix have no derivative: their scale is a convention.",
            hint="enable_eigvec_derivs=True takes LAPACK's; eigvals has one, and eigh for "
            "symmetric matrices",
        ))  # fmt: skip
    everything = {**params, "compute_left_eigenvectors": compute_left_eigenvectors,
                  "compute_right_eigenvectors": True}  # fmt: skip
    w, *left, v = eig_p.bind(a, **everything)
    a_dot = converted(a_dot, v.aval.dtype)
    change = solved_system(v, matmul(a_dot, v))
    outs, dots = [w], [diagonal(change)]
    if compute_left_eigenvectors:
        (u,) = left
        outs.append(u)
        dots.append(_vectors_dot(u, conj(w), solved_system(u, matmul(adjoint(a_dot), u))))
    if compute_right_eigenvectors:
        outs.append(v)
        dots.append(_vectors_dot(v, w, change))
    return tuple(outs), tuple(dots)


def _vectors_dot(v: Any, w: Any, change: Any) -> Any:
    """Return the derivative of vectors V, from V^-1 dA V, that keeps their normalisation."""
    n = v.aval.shape[-1]
    gaps = sub(as_rows(w, n), as_columns(w, n))  # w_j - w_i
    own = compared(gaps.aval.shape, "eq")
    zeros, ones = scalar_like(gaps, 0), scalar_like(gaps, 1)
    turned = matmul(v, selected(own, zeros, div(change, selected(own, ones, gaps))))
    rows = (v.aval.ndim - 2,)
    along = real(summed(mul(conj(v), turned), rows))
    sizes = real(mul(v, conj(v)))
    largest = bind("eq", sizes, as_rows(bind("reduce_max", sizes, axes=rows), n))
    phases = summed(selected(largest, div(turned, selected(largest, v, ones)), zeros), rows)
    shift = bind("complex", along, bind("imag", phases))
    return sub(turned, mul(v, as_rows(shift, n)))


eig_p: Primitive = Primitive(
    "eig",
    shape=_shape,
    numpy=_numpy,
    stablehlo=by_platform("eig", cpu=_lapack, gpu=_gpu),
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: eig_p),
    dimensions=dimension_names.of_last(2),
)
