"""Unitary similarities: schur, rsf2csf, hessenberg.

Neighbours: `xnp.lax.linalg` has them as primitives, `matrix_functions` and `sylvester` use them.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import xnp.numpy as xn
from xnp import lax
from xnp.linalg.operands import broadcast_batches, matrix, promoted
from xprim import Array, dtypes
from xprim.errors import message
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["hessenberg", "rsf2csf", "schur"]

__dir__ = __all__.copy


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Return (t, z) with a = z t z^H, unitary z, and a (nearly) upper triangular t.

    Args:
      a: square matrices of shape (..., n, n).
      output: "real" for t and z of the dtype of `a`, where t of a real `a` has blocks of two rows
        for pairs of complex eigenvalues; "complex" for complex ones, with t upper triangular.

    Returns:
      Arrays of the shape of `a`. The first of the large components of each column of z is positive
      (SciPy leaves the phases to rounding errors).

    Example:
      >>> import numpy as np
      >>> t, z = schur(np.array([[2.0, 0.0], [1.0, 3.0]], np.float32))
      >>> t.tolist(), z.tolist()
      ([[3.0, 1.0], [0.0, 2.0]], [[0.0, 1.0], [1.0, 0.0]])
    """
    if output not in ("real", "complex"):
        raise ValueError(message(
            "schur", "there is no such output.", got=f"{output!r}", expected="'real' or 'complex'",
        ))  # fmt: skip
    x = matrix("schur", a, square=True)
    if output == "complex":
        x = x.astype(dtypes.to_complex_dtype(x.dtype))
    t, z = lax.linalg.schur(x)
    return t, z


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Turn a real Schur form into a complex one, with an upper triangular T.

    Args:
      T: real Schur forms of shape (..., n, n).
      Z: their vectors; batches are broadcast.
      check_finite: means nothing here.

    Returns:
      Complex (T, Z), of which Z T Z^H is the same matrix.

    Example:
      >>> import numpy as np
      >>> t = np.array([[0.0, 1.0], [-1.0, 0.0]], np.float32)
      >>> abs(rsf2csf(t, np.eye(2, dtype=np.float32))[0]).round(3).tolist()
      [[1.0, 0.0], [0.0, 1.0]]

    Differentiable in: T, Z, where the eigenvalues of each block are distinct.
    """
    del check_finite
    t, z = promoted("rsf2csf", T, Z, inexact=True)
    t, z = matrix("rsf2csf", t, square=True), matrix("rsf2csf", z, square=True)
    if t.shape[-1] != z.shape[-1]:
        raise ValueError(message(
            "rsf2csf", "the matrices do not fit.",
            got=f"T: {t.aval.str_long()}, Z: {z.aval.str_long()}", expected="equal shapes",
        ))  # fmt: skip
    t, z = broadcast_batches("rsf2csf", t, z, core=(2, 2))
    dtype = dtypes.to_complex_dtype(t.dtype)
    n = t.shape[-1]
    if n < 2:
        return t.astype(dtype), z.astype(dtype)
    turned = lax.fori_loop(1, n, _split_block, (t.astype(dtype), z.astype(dtype)))
    return xn.triu(turned[0]), turned[1]


def _split_block(step: Any, state: Any) -> Any:
    """Make the element below the diagonal of one pair of rows zero, by a rotation of both."""
    t, z = state
    n = t.shape[-1]
    k = n - 1 - step  # the upper row of the pair
    block = lax.dynamic_slice_in_dim(lax.dynamic_slice_in_dim(t, k, 2, -2), k, 2, -1)
    a, b, c, d = block[..., 0, 0], block[..., 0, 1], block[..., 1, 0], block[..., 1, 1]
    half = (a - d) / 2
    mu = half + xn.sqrt(half * half + b * c)  # an eigenvalue less d; the other is half - sqrt
    eps = xn.finfo(t.dtype).eps
    needed = xn.abs(c) > eps * (xn.abs(a) + xn.abs(d))
    size = xn.sqrt((mu * xn.conj(mu)).real + (c * xn.conj(c)).real)
    size = xn.where(needed, size, 1).astype(t.dtype)
    cosine = xn.where(needed, mu / size, 1)
    sine = xn.where(needed, c / size, 0)
    upper = xn.stack([xn.conj(cosine), sine], -1)
    turn = xn.stack([upper, xn.stack([-sine, cosine], -1)], -2)  # of the rows
    back = xn.conj(turn).mT
    rows = lax.dynamic_slice_in_dim(t, k, 2, -2)
    t = lax.dynamic_update_slice_in_dim(t, turn @ rows, k, -2)
    columns = lax.dynamic_slice_in_dim(t, k, 2, -1)
    t = lax.dynamic_update_slice_in_dim(t, columns @ back, k, -1)
    vectors = lax.dynamic_slice_in_dim(z, k, 2, -1)
    return t, lax.dynamic_update_slice_in_dim(z, vectors @ back, k, -1)


@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[False] = ..., overwrite_a: bool = ..., check_finite: bool = ...
) -> Array: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[True], overwrite_a: bool = ..., check_finite: bool = ...
) -> tuple[Array, Array]: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: bool, overwrite_a: bool = ..., check_finite: bool = ...
) -> Array | tuple[Array, Array]: ...
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """Return h, zero below its first subdiagonal, or (h, q), with a = q h q^H and unitary q.

    Args:
      a: square matrices of shape (..., n, n).
      calc_q: whether q is returned, too.
      overwrite_a: means nothing here.
      check_finite: means nothing here.

    Example:
      >>> import numpy as np
      >>> a = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
      >>> hessenberg(a).tolist()
      [[1.0, 2.0], [3.0, 4.0]]
    """
    del overwrite_a, check_finite
    x = matrix("hessenberg", a, square=True)
    packed, taus = lax.linalg.hessenberg(x)
    h = xn.triu(packed, -1)
    if not calc_q:
        return h
    n = x.shape[-1]
    q = xn.broadcast_to(xn.eye(n, dtype=x.dtype), x.shape)
    if n > 1:
        inner = lax.linalg.householder_product(packed[..., 1:, :-1], taus)
        q = q.at[..., 1:, 1:].set(inner)
    return h, q


boundaries(globals())
