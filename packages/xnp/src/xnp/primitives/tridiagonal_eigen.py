"""eigh_tridiagonal: eigenvalues, and vectors, of real symmetric tridiagonal matrices.

LAPACK has routines for them that take n^2 operations for the values (`sterf`, QR without square
roots) and, by divide and conquer, not many more for the vectors (`stevd`). Neither NumPy nor jaxlib
has a function that calls these, but the library of NumPy's own linear algebra holds them, and
`ctypes` finds them there by name. Where it does not, and in programs for other platforms, the
matrices are those of `eigh`.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import sys
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.eigen import eigh_p
from xnp.primitives.equal_values import block_values, rotations
from xnp.primitives.linear_systems import tridiagonal_products
from xnp.primitives.matrices import adjoint, as_columns, compared, matmul, matrix_batch
from xnp.primitives.table import bind, concatenated, filled, selected
from xprim import (
    Eager,
    Primitive,
    ShapedArray,
    Zero,
    dimension_names,
    dtypes,
    shaped_array,
    undefined,
)
from xprim.contracts import Builder
from xprim.requirements import require

__all__ = ()


# ----------------------------------------------------------------------------------------- lapack
# Integers are passed as numbers of 64 bits. A library whose integers have 32 reads the first half,
# which on processors that store the lowest byte first is the same number.

_NAMES = ("scipy_{}_64_", "{}_64_", "scipy_{}_", "{}_")  # as builds of NumPy name a routine
_LETTERS = {dtypes.float32: "s", dtypes.float64: "d"}
_LEAST_ON_HOST = 64  # rows: `eigh` decomposes fewer in the time that entering Python takes


@functools.lru_cache(maxsize=4)
def _lapack(routine: str) -> Any:
    """Return a routine of the LAPACK that NumPy is linked with, or None where none is found."""
    module = importlib.util.find_spec("numpy.linalg._umath_linalg")
    if module is None or module.origin is None or sys.byteorder != "little":
        return None
    try:
        library = ctypes.CDLL(module.origin)
    except OSError:
        return None
    found = [getattr(library, name.format(routine), None) for name in _NAMES]
    return next((f for f in found if f is not None), None)


def _integer(value: int) -> Any:
    return ctypes.byref(ctypes.c_int64(value))


def _decompose(d: Any, e: Any, w: Any, v: Any) -> bool:
    """Fill the values and, unless v is None, the vectors of a matrix; return whether LAPACK did."""
    n, letter = d.shape[0], _LETTERS[d.dtype]
    info, off = ctypes.c_int64(), np.append(e, d.dtype.type(0))
    w[:] = d
    if v is None:
        _lapack(f"{letter}sterf")(_integer(n), w.ctypes, off.ctypes, ctypes.byref(info))
        return not info.value
    columns = np.empty((n, n), d.dtype)  # one after the other, as Fortran has them
    work = np.empty(1 + 4 * n + n * n, d.dtype)
    integers = np.empty(3 + 5 * n, np.int64)
    _lapack(f"{letter}stevd")(
        ctypes.c_char_p(b"V"), _integer(n), w.ctypes, off.ctypes, columns.ctypes, _integer(n),
        work.ctypes, _integer(work.size), integers.ctypes, _integer(integers.size),
        ctypes.byref(info), ctypes.c_size_t(1),
    )  # fmt: skip
    v[...] = columns.T
    return not info.value


# ------------------------------------------------------------------------------- eigh tridiagonal
# eigh_tridiagonal: ascending eigenvalues w and, with `vectors`, the vectors V before them.
#
# The operands are the diagonal, of n elements, and the one beside it, of n - 1. Matrices that hold
# infinities or NaN have NaN, as `eigh` has. The derivatives are those of `eigh`.


def _shape(d: ShapedArray, e: ShapedArray, *, vectors: bool) -> tuple[ShapedArray, ...]:
    n = d.shape[-1] if d.ndim else 0
    require(
        d.dtype in _LETTERS and e.dtype == d.dtype, "eigh_tridiagonal",
        "the diagonals must be float32 or float64, both alike.", got={"d": d, "e": e},
        error=TypeError,
    )  # fmt: skip
    require(
        n > 0 and e.shape == (*d.shape[:-1], n - 1), "eigh_tridiagonal",
        "the diagonals do not fit.", got={"d": d, "e": e},
        expected="shapes (..., n) and (..., n - 1), n at least 1",
    )  # fmt: skip
    return (*[shaped_array((*d.shape, n), d.dtype)] * vectors, d.strong())


def _numpy(d: Any, e: Any, *, vectors: bool) -> Any:
    w = np.empty(d.shape, d.dtype)
    v = np.empty((*d.shape, d.shape[-1]), d.dtype) if vectors else None
    _fill((d, e), (w,) if v is None else (v, w), vectors=vectors)
    return (w,) if v is None else (v, w)


def _fill(operands: Any, results: Any, *, vectors: bool) -> None:
    (d, e), (*v, w) = operands, results
    if _lapack("dsterf") is None:
        found = eigh_p.rule("numpy")(_dense_numpy(d, e), lower=True)
        for result, value in zip(results, found[-len(results) :], strict=True):
            np.copyto(result, value)
        return
    is_finite = np.isfinite(d).all(-1) & np.isfinite(e).all(-1)
    for i in np.ndindex(d.shape[:-1]):
        done = is_finite[i] and _decompose(d[i], e[i], w[i], v[0][i] if vectors else None)
        if not done:
            for result in results:
                result[i] = np.nan


def _dense_numpy(d: Any, e: Any) -> Any:
    n = d.shape[-1]
    a, places = np.zeros((*d.shape, n), d.dtype), np.arange(n)
    a[..., places, places] = d
    a[..., places[1:], places[:-1]] = e
    return a


def _host(avals_in: Any, avals_out: Any, *, vectors: bool) -> Any:
    d, _ = avals_in
    is_long = d.shape[-1] >= _LEAST_ON_HOST and _lapack("dsterf") is not None
    return tuple(range(d.ndim - 1)) if is_long else None


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, vectors: bool) -> Any:
    def decompose(d: Any, e: Any) -> Any:
        return eigh_p.bind(_dense(d, e), lower=True)[not vectors :]

    return b.traced(decompose, operands, avals_in, key=("eigh_tridiagonal", vectors))


def _dense(d: Any, e: Any) -> Any:
    """Return the matrices of diagonals."""
    n = d.aval.shape[-1]
    below, above = _beside(e)
    matrix = filled((*d.aval.shape, n), 0, d.aval.dtype)
    for k, diagonal in ((-1, below), (0, d), (1, above)):
        at = compared(matrix.aval.shape, "eq", k)
        matrix = selected(at, as_columns(diagonal, n), matrix)
    return matrix


def _beside(e: Any) -> tuple[Any, Any]:
    """Return the diagonals below and above the main one, in each the element of its row."""
    if type(e) is Zero:
        zero = Zero(shaped_array((*e.aval.shape[:-1], e.aval.shape[-1] + 1), e.aval.dtype))
        return zero, zero
    last = e.aval.ndim - 1
    none = filled((*e.aval.shape[:-1], 1), 0, e.aval.dtype)
    return concatenated([none, e], last), concatenated([e, none], last)


def _jvp(primals: Any, tangents: Any, *, vectors: bool) -> Any:
    # with C = V^T dA V:  dw = diag(C),  dV = V X,  X_ij = C_ij / (w_j - w_i)
    (d, e), (d_dot, e_dot) = primals, tangents
    if type(d_dot) is Zero and type(e_dot) is Zero:
        known = eigh_tridiagonal_p.bind(d, e, vectors=vectors)
        return known, tuple([Zero(y.aval) for y in known])
    v, w = eigh_tridiagonal_p.bind(d, e, vectors=True)
    below, above = _beside(e_dot)
    terms = tridiagonal_products((below, d_dot, above), v)
    change = functools.reduce(lambda x, y: bind("add", x, y), terms)
    x, w_dot = rotations(matmul(adjoint(v), change), block_values(w, v, v, _dense(d, e)))
    return (v, w)[not vectors :], (*[matmul(v, x)] * vectors, w_dot)


eigh_tridiagonal_p: Primitive = Primitive(
    "eigh_tridiagonal",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: eigh_tridiagonal_p),
    eager=Eager(costs.nothing, host=_host, fill=_fill),
    sharding=dimension_names.of_last(1),
)
