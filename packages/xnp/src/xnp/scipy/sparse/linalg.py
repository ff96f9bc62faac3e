"""Linear systems solved by iteration: `xnp.scipy.sparse.linalg`.

The matrix is given by what it does to a vector. Vectors are pytrees, which are made flat at the
door. Solutions are differentiated as solutions, by further systems with the same solver, and not
through the iterations: see `lax.custom_linear_solve`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import xnp.numpy as xn
import xtree
from xnp import lax, linalg
from xnp.flatten_util import ravel_pytree
from xnp.numpy.dispatch import array_of
from xprim import Array, dtypes, promotion
from xprim.errors import message
from xprim.requirements import require_choice, static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, PyTree

__all__ = ["bicgstab", "cg", "gmres"]

__dir__ = __all__.copy

Operator = ArrayLike | Callable[..., Any]  # a matrix, or the function that applies it

Linear = Callable[[Any], Any]


def cg(
    A: Operator,
    b: PyTree,
    x0: PyTree = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> tuple[Any, None]:
    """Solve A x = b by conjugate gradients, for Hermitian positive definite A.

    Args:
      A: a function x -> A x, linear, from pytrees like `b` to such; or a matrix, where `b` is a
        vector.
      b: the right side, a pytree of arrays.
      x0: where to start, like `b`; None for zeros.
      tol: the iteration ends where the norm of the residual is at most `tol` times that of `b`,
      atol: or at most this.
      maxiter: or after so many steps; None for ten times the number of elements.
      M: a function or matrix near the inverse of A, a preconditioner; None for the identity.

    Returns:
      (x, None); None stands for what SciPy says of the end.

    Example:
      >>> import numpy as np
      >>> x, _ = cg(lambda v: 2 * v, np.float32([2.0, 4.0]))
      >>> x.tolist()
      [1.0, 2.0]

    Differentiable in: b, and what A and M capture, forward and reverse, where the iteration ends
    by itself.
    Source: M. Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear systems
    (1952).
    """
    return _solve("cg", _conjugate_gradients, A, b, x0, (tol, atol, maxiter), M, hermitian=True)


def bicgstab(
    A: Operator,
    b: PyTree,
    x0: PyTree = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> tuple[Any, None]:
    """Solve A x = b by stabilised biconjugate gradients; arguments and results as of `cg`.

    Source: H. van der Vorst, Bi-CGSTAB (1992).
    """
    return _solve("bicgstab", _stabilise, A, b, x0, (tol, atol, maxiter), M)


def gmres(
    A: Operator,
    b: PyTree,
    x0: PyTree = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Operator | None = None,
    solve_method: str = "batched",
) -> tuple[Any, Array]:
    """Solve A x = b by generalised minimal residuals.

    Args:
      A: as of `cg`, any matrix.
      b: as of `cg`.
      x0: as of `cg`.
      tol: as of `cg`.
      atol: as of `cg`.
      restart: the dimension of the spaces in which residuals are minimised.
      maxiter: the number of spaces at most.
      M: as of `cg`.
      solve_method: "batched" or "incremental"; both minimise the residual once a space is whole.

    Returns:
      The solution, and 0, or -1 where it has NaN.

    Source: Y. Saad and M. Schultz, GMRES (1986), with the vectors made orthogonal twice.
    """
    require_choice("gmres", "solve_method", solve_method, ("batched", "incremental"))
    size = static_int(restart, "gmres", "restart")

    solver = functools.partial(_minimal_residuals, restart=size)
    x, _ = _solve("gmres", solver, A, b, x0, (tol, atol, maxiter), M)
    failed = functools.reduce(xn.logical_or, [xn.isnan(part).any() for part in xtree.leaves(x)])
    return x, xn.where(failed, -1, 0)


def _linear(operation: str, what: str, A: Any) -> Linear:
    """Return the function of a matrix, or the function that was given."""
    if A is None:
        return lambda x: x
    if callable(A):
        return A  # type: ignore[no-any-return]
    matrix = A if hasattr(A, "todense") else array_of(A, operation)  # a sparse one multiplies, too
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(message(
            operation, f"{what} must be a function or a square matrix.",
            got=f"{matrix.dtype.name}{list(matrix.shape)}",
        ))  # fmt: skip
    return lambda x: matrix @ x


def _solve(
    operation: str, solver: Callable[..., Any], A: Any, b: Any, x0: Any, ends: tuple[Any, Any, Any],
    M: Any, *, hermitian: bool = False,
) -> tuple[Any, None]:  # fmt: skip
    matvec, precondition = _linear(operation, "A", A), _linear(operation, "M", M)
    b = xtree.map(lambda v: array_of(v, operation), b)
    start = xtree.map(xn.zeros_like, b) if x0 is None else x0
    if xtree.structure(start) != xtree.structure(b) or xtree.map(xn.shape, start) != xtree.map(
        xn.shape, b
    ):
        raise ValueError(message(
            operation, "x0 must be a tree like b.", got=f"{xtree.map(xn.shape, start)}",
            expected=f"{xtree.map(xn.shape, b)}",
        ))  # fmt: skip
    dtype, unravel = _unravel_like(b)
    flat_b = ravel_pytree(b)[0].astype(dtype)
    flat_start = lax.stop_gradient(ravel_pytree(start)[0].astype(dtype))

    def flat(function: Linear) -> Linear:
        return lambda v: ravel_pytree(function(unravel(v)))[0].astype(dtype)

    tol, atol, maxiter = ends
    most = 10 * flat_b.size if maxiter is None else maxiter

    def solve(matvec: Linear, v: Any, start: Any = None) -> Any:
        limit = xn.maximum(tol * _norm(v), atol)
        start = xn.zeros_like(v) if start is None else start
        return solver(matvec, v, start, limit, most, flat(precondition))

    x = lax.custom_linear_solve(
        flat(matvec), flat_b, lambda f, v: solve(f, v, flat_start), transpose_solve=solve,
        symmetric=hermitian and not dtypes.is_complex(dtype),
    )  # fmt: skip
    return unravel(x), None


def _unravel_like(tree: Any) -> tuple[Any, Linear]:
    """Return the one inexact dtype of a tree's leaves, and what makes such a tree of a vector."""
    leaves, structure = xtree.flatten(tree)
    own = [dtypes.to_inexact_dtype(leaf.dtype) for leaf in leaves]

    def unravel(v: Any) -> Any:
        parts, place = [], 0
        for leaf, dtype in zip(leaves, own, strict=True):
            parts.append(v[place : place + leaf.size].reshape(leaf.shape).astype(dtype))
            place += leaf.size
        return xtree.unflatten(structure, parts)

    return promotion.result_type(*own), unravel


def _dot(x: Any, y: Any) -> Any:
    return (xn.conj(x) * y).sum()


def _norm(x: Any) -> Any:
    return xn.sqrt(_dot(x, x).real)


def _conjugate_gradients(
    matvec: Linear, b: Any, x: Any, limit: Any, most: Any, precondition: Linear
) -> Any:
    r = b - matvec(x)
    z = precondition(r)

    def is_unfinished(state: Any) -> Any:
        _, r, _, _, k = state
        return (_norm(r) > limit) & (k < most)

    def step(state: Any) -> Any:
        x, r, p, gamma, k = state
        image = matvec(p)
        alpha = gamma / _dot(p, image)
        x, r = x + alpha * p, r - alpha * image
        z = precondition(r)
        new = _dot(r, z)
        return x, r, z + new / gamma * p, new, k + 1

    return lax.while_loop(is_unfinished, step, (x, r, z, _dot(r, z), 0))[0]


def _stabilise(matvec: Linear, b: Any, x: Any, limit: Any, most: Any, precondition: Linear) -> Any:
    r = b - matvec(x)
    one = xn.ones((), b.dtype)

    def is_unfinished(state: Any) -> Any:
        r, k = state[1], state[-1]
        return (_norm(r) > limit) & (k < most) & (k >= 0)

    def step(state: Any) -> Any:
        x, r, shadow, alpha, omega, rho, p, q, k = state
        new = _dot(shadow, r)
        p = r + new / rho * alpha / omega * (p - omega * q)
        direction = precondition(p)
        q = matvec(direction)
        alpha = new / _dot(shadow, q)
        s = r - alpha * q
        early = _norm(s) <= limit
        other = precondition(s)
        t = matvec(other)
        omega = xn.where(early, 0, _dot(t, s) / xn.where(early, 1, _dot(t, t)))
        x = x + alpha * direction + omega * other
        r = s - omega * t
        # where a factor vanishes, the recurrence has no further step
        broken = ((omega == 0) | (alpha == 0)) & ~early
        return x, r, shadow, alpha, omega, new, p, q, xn.where(broken, -1, k + 1)

    zero = xn.zeros_like(b)
    return lax.while_loop(is_unfinished, step, (x, r, r, one, one, one, zero, zero, 0))[0]


def _minimal_residuals(
    matvec: Linear, b: Any, x: Any, limit: Any, most: Any, precondition: Linear, restart: int
) -> Any:
    size = min(restart, b.size)
    limit = limit * _norm(precondition(b)) / xn.maximum(_norm(b), 1e-30)

    def residual(x: Any) -> Any:
        return precondition(b - matvec(x))

    def is_unfinished(state: Any) -> Any:
        _, r, k = state
        return (_norm(r) > limit) & (k < most)

    def step(state: Any) -> Any:
        x, r, k = state
        x = x + _in_space(lambda v: precondition(matvec(v)), r, size)
        return x, residual(x), k + 1

    return lax.while_loop(is_unfinished, step, (x, residual(x), 0))[0]


def _in_space(matvec: Linear, r: Any, size: int) -> Any:
    """Return the vector in the space of r, A r, ... that brings the residual nearest to 0."""
    length = _norm(r)
    eps = float(dtypes.finfo(r.dtype).eps)
    basis = xn.zeros((size + 1, r.size), r.dtype).at[0].set(r / length)

    def arnoldi(basis: Array, k: Any) -> Any:
        w = matvec(basis[k])
        whole = _norm(w)
        first = xn.conj(basis) @ w
        w = w - first @ basis
        second = xn.conj(basis) @ w
        w = w - second @ basis
        rest = _norm(w)
        inside = rest > eps * whole  # else the space has all that it can have
        w = xn.where(inside, w / xn.where(inside, rest, 1), 0)
        column = (first + second).at[k + 1].add(xn.where(inside, rest, 0).astype(w.dtype))
        return basis.at[k + 1].set(w), column

    basis, columns = lax.scan(arnoldi, basis, xn.arange(size))
    target = xn.zeros((size + 1,), r.dtype).at[0].set(length.astype(r.dtype))
    y = linalg.pinv(columns.T) @ target
    return y @ basis[:size]


boundaries(globals())
