"""Functions of matrices: expm, expm_frechet.

Source: N. Higham, The scaling and squaring method for the matrix exponential revisited (2005).
"""

from __future__ import annotations

import math
from typing import Any

import xnp.numpy as xn
from xnp import lax, linalg
from xnp.linalg.operands import matrix, promoted
from xprim import Array, dtypes
from xprim.static_sizes import static_int

__all__ = ["expm", "expm_frechet"]

# The degree of Pade's approximant, and the norm up to which it is right to rounding (table 2.3; for
# single precision Higham, Functions of matrices (2008), section 10.3).
_DOUBLE = (13, 5.371920351148152)
_SINGLE = (7, 3.925724783138660)


def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
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
    identity = xn.eye(x.shape[-1], dtype=x.dtype)
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


def expm_frechet(A: Any, E: Any, *, method: str | None = None, compute_expm: bool = True) -> Any:
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
        raise ValueError(
            f"expm_frechet: there is no such method.\n  got       {method!r}"
            "\n  expected  None, 'SPS' or 'blockEnlarge'"
        )
    a, e = promoted("expm_frechet", A, E, inexact=True)
    a = matrix("expm_frechet", a, square=True)
    if a.shape != e.shape:
        raise ValueError(
            f"expm_frechet: the direction has another shape than the matrix."
            f"\n  got       {e.aval.str_long()}\n  expected  {a.aval.str_long()}"
        )
    n = a.shape[-1]
    upper = xn.concatenate([a, e], -1)
    lower = xn.concatenate([xn.zeros_like(a), a], -1)
    whole = expm(xn.concatenate([upper, lower], -2))
    derivative = whole[..., :n, n:]
    return (whole[..., :n, :n], derivative) if compute_expm else derivative
