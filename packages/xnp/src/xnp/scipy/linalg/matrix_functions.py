"""Functions of matrices: expm, expm_frechet, sqrtm, funm.

Source: N. Higham, The scaling and squaring method for the matrix exponential revisited (2005); A.
Bjorck, S. Hammarling, A Schur method for the square root of a matrix (1983); B. Parlett, A
recurrence among the elements of functions of triangular matrices (1976).

Neighbours: `schur_forms` and `sylvester`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

import xnp.numpy as xn
from xnp import lax, linalg
from xnp.linalg.operands import matrix, promoted
from xnp.scipy.linalg.schur_forms import schur
from xnp.scipy.linalg.sylvester import solve_sylvester
from xprim import Array, dtypes
from xprim.errors import message
from xprim.static_sizes import static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["expm", "expm_frechet", "funm", "sqrtm"]

__dir__ = __all__.copy

# The degree of Pade's approximant, and the norm up to which it is right to rounding (table 2.3; for
# single precision Higham, Functions of matrices (2008), section 10.3).
_DOUBLE = (13, 5.371920351148152)
_SINGLE = (7, 3.925724783138660)


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Return the exponentials of matrices, sum A^k / k!.

    Args:
      A: square matrices of shape (..., n, n).
      upper_triangular: whether they are so: systems are then solved by substitution.
      max_squarings: how often a result is squared at most; matrices whose norm is more than
        about 4 times 2^max_squarings give NaN.

    Example:
      >>> import numpy as np
      >>> np.asarray(expm(np.zeros((2, 2), np.float32))).tolist()
      [[1.0, 0.0], [0.0, 1.0]]

    Differentiable in: A.
    """
    x = matrix("expm", A, square=True)
    most = static_int(max_squarings, "expm", "max_squarings")
    single = x.dtype in (dtypes.float32, dtypes.complex64)
    degree, limit = _SINGLE if single else _DOUBLE
    norm = xn.abs(lax.stop_gradient(x)).sum(-2).max(-1, initial=0.0)
    ratio = xn.maximum(norm / limit, 1.0)
    count = xn.where(xn.isfinite(norm), xn.ceil(xn.log2(ratio)), 0)
    x = x * (2.0 ** -xn.minimum(count, most + 1)).astype(x.dtype)[..., None, None]
    result = _pade(x, degree, upper_triangular)

    def step(y: Any, k: Any) -> Any:
        square = lax.cond((k < count).any(), lambda y: y @ y, lambda y: y, y)
        return xn.where((k < count)[..., None, None], square, y), None

    result, _ = lax.scan(step, result, xn.arange(most).astype(norm.dtype))
    exact: Array = xn.where((count > most)[..., None, None], math.nan, result)
    return exact


def _pade(x: Any, degree: int, upper_triangular: bool) -> Any:
    """Return Pade's approximant (V - U)^-1 (V + U), with U odd in x, V even."""
    coefficients = [math.factorial(2 * degree - k) / (
        math.factorial(k) * math.factorial(degree - k)) for k in range(degree + 1)]  # fmt: skip
    scale = coefficients[degree]
    c = [v / scale for v in coefficients]
    n = x.shape[-1]
    identity = xn.eye(n, dtype=x.dtype).reshape(*(1,) * (x.ndim - 2), n, n)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    if degree == 7:
        odd = c[7] * x6 + c[5] * x4 + c[3] * x2 + c[1] * identity
        even = c[6] * x6 + c[4] * x4 + c[2] * x2 + c[0] * identity
    else:
        odd = x6 @ (c[13] * x6 + c[11] * x4 + c[9] * x2)
        odd = odd + c[7] * x6 + c[5] * x4 + c[3] * x2 + c[1] * identity
        even = x6 @ (c[12] * x6 + c[10] * x4 + c[8] * x2)
        even = even + c[6] * x6 + c[4] * x4 + c[2] * x2 + c[0] * identity
    odd = x @ odd
    if upper_triangular:
        return lax.linalg.triangular_solve(even - odd, even + odd, left_side=True)
    return linalg.solve(even - odd, even + odd)


@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = ..., compute_expm: Literal[True] = ...
) -> tuple[Array, Array]: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = ..., compute_expm: Literal[False]
) -> Array: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = ..., compute_expm: bool
) -> Array | tuple[Array, Array]: ...
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]:
    """Return the exponential of A and its derivative in the direction E.

    Both stand in the exponential of the matrix [[A, E], [0, A]].

    Args:
      A: square matrices of shape (..., n, n).
      E: directions, of the same shape.
      method: None, "SPS" or "blockEnlarge"; all give the blocks of that exponential.
      compute_expm: whether the exponential is returned, too.

    Returns:
      (expm(A), derivative), or the derivative alone.

    Source: R. Mathias, A chain rule for matrix functions and applications (1996).
    """
    if method not in (None, "SPS", "blockEnlarge"):
        raise ValueError(message(
            "expm_frechet", "there is no such method.", got=f"{method!r}",
            expected="None, 'SPS' or 'blockEnlarge'",
        ))  # fmt: skip
    a, e = promoted("expm_frechet", A, E, inexact=True)
    a = matrix("expm_frechet", a, square=True)
    if a.shape != e.shape:
        raise ValueError(message(
            "expm_frechet", "the direction has another shape than the matrix.",
            got=e.aval.str_long(), expected=a.aval.str_long(),
        ))  # fmt: skip
    n = a.shape[-1]
    upper = xn.concatenate([a, e], -1)
    lower = xn.concatenate([xn.zeros_like(a), a], -1)
    whole = expm(xn.concatenate([upper, lower], -2))
    derivative = whole[..., :n, n:]
    return (whole[..., :n, :n], derivative) if compute_expm else derivative


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Return the principal square roots of matrices: S with S S = A.

    Args:
      A: square matrices of shape (..., n, n).
      blocksize: must be 1: columns are found one at a time.

    Returns:
      A complex array of the shape of A, whose eigenvalues have no negative real part. Where there
      is no square root, it holds NaN.

    Example:
      >>> import numpy as np
      >>> sqrtm(np.array([[4.0, 0.0], [0.0, 9.0]], np.float32)).real.round(3).tolist()
      [[2.0, 0.0], [0.0, 3.0]]

    Differentiable in: A, where no two eigenvalues of S sum to zero: dS S + S dS = dA.
    """
    if blocksize != 1:
        raise ValueError(message("sqrtm", "the block size must be 1.", got=f"{blocksize!r}"))
    x = matrix("sqrtm", A, square=True)
    x = x.astype(dtypes.to_complex_dtype(x.dtype))
    root = _root(lax.stop_gradient(x))

    def solved(_: Any, guess: Any) -> Any:
        return guess

    def tangent(product: Any, change: Any) -> Any:  # product(dS) = dS S + S dS
        return lax.custom_linear_solve(
            product, change, lambda _, y: solve_sylvester(root, root, y, tol=0.0),
            lambda _, y: solve_sylvester(root.mT, root.mT, y, tol=0.0),
        )  # fmt: skip

    result: Array = lax.custom_root(lambda s: s @ s - x, root, solved, tangent)
    return result


def _root(x: Any) -> Any:
    t, z = schur(x, "complex")
    roots = xn.sqrt(xn.diagonal(t, 0, -2, -1))
    n = x.shape[-1]
    rows = xn.arange(n)[:, None]
    identity = xn.eye(n, dtype=x.dtype)

    def step(j: Any, s: Any) -> Any:
        # above the diagonal of column j:  (S + s_jj) s_j = t_j
        sums = roots + lax.dynamic_slice_in_dim(roots, j, 1, -1)
        none = (sums == 0)[..., None]
        system = s * (1 - identity) + xn.where(none, 1, sums[..., None]) * identity
        right = xn.where(rows < j, lax.dynamic_slice_in_dim(t, j, 1, -1), 0)
        found = lax.linalg.triangular_solve(system, right, left_side=True)
        found = xn.where(none & (rows < j) & (found != 0), math.nan, found)
        return s + xn.where(xn.arange(n)[None] == j, found, 0)

    s = lax.fori_loop(1, n, step, roots[..., None] * identity) if n > 1 else (
        roots[..., None] * identity)  # fmt: skip
    return z @ s @ xn.conj(z).mT


@overload
def funm(A: ArrayLike, func: Callable[[Array], Array], disp: Literal[True] = ...) -> Array: ...
@overload
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: Literal[False] = ...
) -> tuple[Array, Array]: ...
@overload
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: bool = ...
) -> tuple[Array, Array] | Array: ...
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: bool = True
) -> tuple[Array, Array] | Array:
    """Return a function of matrices, by its values at their eigenvalues.

    Args:
      A: square matrices of shape (..., n, n).
      func: takes the eigenvalues, a complex array of shape (..., n), and returns as many values; an
        elementwise function that is analytic there.
      disp: whether the function of A is returned alone; else with an estimate of its relative
        error, of shape (...).

    Returns:
      A complex array of the shape of A. Where eigenvalues are equal it is wrong unless A is normal:
      the estimate is 1 then.

    Example:
      >>> import numpy as np
      >>> import xnp
      >>> funm(np.array([[0.0, 0.0], [0.0, 1.0]], np.float32), xnp.exp).real.round(3).tolist()
      [[1.0, 0.0], [0.0, 2.7179999351501465]]
    """
    x = matrix("funm", A, square=True)
    n = x.shape[-1]
    t, z = schur(x, "complex")
    values = xn.diagonal(t, 0, -2, -1)
    found = xn.asarray(func(values)).astype(t.dtype)
    rows, identity = xn.arange(n)[:, None], xn.eye(n, dtype=t.dtype)

    def step(j: Any, f: Any) -> Any:
        # above the diagonal of column j:  (T - t_jj) f_j = (F - f_jj) t_j,  since F and T commute
        gaps = values - lax.dynamic_slice_in_dim(values, j, 1, -1)
        gaps = xn.where(gaps == 0, 1, gaps)
        system = t * (1 - identity) + gaps[..., None] * identity
        column = xn.where(rows < j, lax.dynamic_slice_in_dim(t, j, 1, -1), 0)
        right = f @ column - column * lax.dynamic_slice_in_dim(found, j, 1, -1)[..., None]
        f_j = lax.linalg.triangular_solve(system, right, left_side=True)
        return f + xn.where((rows < j) & (xn.arange(n)[None] == j), f_j, 0)

    f = found[..., None] * identity
    f = lax.fori_loop(1, n, step, f) if n > 1 else f
    result = z @ f @ xn.conj(z).mT
    return result if disp else (result, _funm_error(t, values, result))


def _funm_error(t: Any, values: Any, result: Any) -> Any:
    """Return eps times the norm of what is above the diagonal, by the least gap of eigenvalues."""
    n = values.shape[-1]
    eps = float(xn.finfo(t.dtype).eps)
    gaps = xn.abs(values[..., :, None] - values[..., None, :])
    gaps = xn.where(xn.eye(n, dtype=bool), math.inf, gaps)
    least = gaps.min((-2, -1), initial=math.inf)
    least = xn.where(least == 0, eps, least)
    norm = xn.abs(xn.triu(t, 1)).sum(-2).max(-1, initial=0.0)
    error = xn.clip(eps / least * norm, eps, 1.0)
    return xn.where(xn.isfinite(result).all((-2, -1)), error, math.inf)


boundaries(globals())
