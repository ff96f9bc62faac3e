"""The distributions of vectors: dirichlet, multinomial, multivariate_normal.

Sources: S. Kotz, N. Balakrishnan, N. Johnson, Continuous multivariate distributions (2000), and
Discrete multivariate distributions (1997).
"""

from __future__ import annotations

import math
from typing import Any

import xnp.numpy as xn
from xnp import lax, linalg
from xnp.numpy.dispatch import array_of, converted, inexact
from xnp.scipy import special
from xnp.scipy.stats.distribution import Distribution
from xprim import Array, dtypes
from xprim.requirements import require
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike

__all__ = ["dirichlet", "multinomial", "multivariate_normal"]

__dir__ = __all__.copy


# --- dirichlet ------------------------------------------------------------------------------------


@boundary
def _dirichlet_logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Return the logarithm of the density of the dirichlet distribution.

        Gamma(sum alpha_i) prod x_i^(alpha_i - 1) / Gamma(alpha_i)

    Args:
      x: points of the simplex, of shape (k,) or (k, n); or (k - 1, ...) without the last
        coordinate, which is one less their sum.
      alpha: positive numbers, of shape (k,).

    Returns:
      An array of shape () or (n,); -inf outside of the simplex, NaN where alpha is not positive.
    """
    x, alpha = inexact("dirichlet.logpdf", x, alpha)
    require(
        alpha.ndim == 1 and x.ndim >= 1 and x.shape[0] in (alpha.size, alpha.size - 1), "dirichlet",
        "the points do not fit the parameters.", got={"x": x, "alpha": alpha},
        expected="alpha of shape (k,), x of shape (k, ...) or (k - 1, ...)",
    )  # fmt: skip
    if x.shape[0] == alpha.size - 1:
        x = xn.concatenate([x, 1 - x.sum(0, keepdims=True)])
    a = alpha.reshape((-1,) + (1,) * (x.ndim - 1))
    total = x.sum(0)
    tolerance = 10 * x.shape[0] * float(dtypes.finfo(x.dtype).eps)
    inside = ((x >= 0) & (x <= 1)).all(0) & (abs(total - 1) <= tolerance)
    safe = xn.where(inside, x, 0.5)
    terms = special.xlogy(a - 1, safe) - special.gammaln(a)
    value = xn.where(inside, terms.sum(0) + special.gammaln(alpha.sum()), -math.inf)
    result: Array = xn.where((alpha > 0).all() & ~xn.isnan(total), value, math.nan)
    return result


@boundary
def _dirichlet_pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Return the density of the dirichlet distribution; arguments as of `logpdf`."""
    return xn.exp(_dirichlet_logpdf(x, alpha))


# --- multinomial ----------------------------------------------------------------------------------


@boundary
def _multinomial_logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Return the logarithm of the probability n! prod p_i^x_i / x_i! of counts x.

    Args:
      x: counts, of shape (..., k).
      n: their sum, broadcast with the leading dimensions.
      p: probabilities, of shape (..., k).

    Returns:
      An array of the leading dimensions; -inf where the counts do not sum to n, or are not whole.
    """
    (p,) = inexact("multinomial.logpmf", p)
    x, n = [_as_numbers(array_of(count, "multinomial.logpmf"), p) for count in (x, n)]
    x, n, p = inexact("multinomial.logpmf", x, n, p)
    inside = (x.sum(-1) == n) & ((x >= 0) & (xn.floor(x) == x)).all(-1)
    safe = xn.where(inside[..., None], x, 0)
    terms = special.xlogy(safe, p) - special.gammaln(safe + 1)
    value = special.gammaln(n + 1) + terms.sum(-1)
    result: Array = xn.where(inside, value, -math.inf)
    return result


def _as_numbers(counts: Array, p: Array) -> Array:
    """Return counts, which may be integers where probabilities are not, as numbers like these."""
    return counts if dtypes.is_inexact(counts.aval.dtype) else converted(counts, p.aval.dtype)


@boundary
def _multinomial_pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Return the probability of counts; arguments as of `logpmf`."""
    return xn.exp(_multinomial_logpmf(x, n, p))


# --- multivariate_normal --------------------------------------------------------------------------


def _normal_logpdf(
    x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: bool | None = None
) -> Array:
    """Return the logarithm of the density of the multivariate normal distribution.

        exp(-(x - mean)^T cov^-1 (x - mean) / 2) / sqrt((2 pi)^k det(cov))

    Args:
      x: points, of shape (..., k); of any shape where mean and cov have no dimensions.
      mean: of shape (..., k), or a number.
      cov: positive definite matrices of shape (..., k, k), or a number, a variance.
      allow_singular: whether cov may be singular; the density is then that on its range, points
        beside which have the density 0, and the matrix is not batched.

    Returns:
      An array of the leading dimensions; NaN where cov is not positive definite.
    """
    x, mean, cov = inexact("multivariate_normal.logpdf", x, mean, cov)
    if not mean.ndim and not cov.ndim:
        result: Array = -((x - mean) ** 2) / (2 * cov) - xn.log(2 * math.pi * cov) / 2
        return result
    mean = mean if mean.ndim else xn.broadcast_to(mean, cov.shape[:1])
    size = mean.shape[-1]
    cov = cov if cov.ndim else xn.eye(size, dtype=cov.dtype) * cov
    require(
        cov.ndim >= 2 and cov.shape[-2:] == (size, size), "multivariate_normal",
        "the covariance does not fit the mean.", got={"mean": mean, "cov": cov},
        expected="mean of shape (..., k), cov of shape (..., k, k)",
    )  # fmt: skip
    difference = (x if x.ndim else xn.broadcast_to(x, (size,))) - mean
    return (_on_the_range if allow_singular else _of_full_rank)(difference, cov)


def _of_full_rank(y: Array, cov: Array) -> Array:
    """Return the logarithm by Cholesky's factor L of cov: |L^-1 y|^2 and the sum of log L_ii."""
    factor = lax.linalg.cholesky(cov)
    shape = xn.broadcast_shapes(y.shape[:-1], cov.shape[:-2])
    y = xn.broadcast_to(y, (*shape, y.shape[-1]))
    factor = xn.broadcast_to(factor, (*shape, *cov.shape[-2:]))
    z = lax.linalg.triangular_solve(factor, y[..., None], left_side=True, lower=True)[..., 0]
    logs = xn.log(xn.diagonal(factor, axis1=-1, axis2=-2)).sum(-1)
    size = y.shape[-1]
    result: Array = -(z * z).sum(-1) / 2 - logs - size / 2 * math.log(2 * math.pi)
    return result


def _on_the_range(y: Array, cov: Array) -> Array:
    """Return the logarithm by the eigenvalues that are not negligible (SciPy's 1e6 eps)."""
    values, vectors = linalg.eigh(cov)
    cut = 1e6 * float(dtypes.finfo(cov.dtype).eps) * abs(values).max(-1, keepdims=True)
    kept = values > cut
    safe = xn.where(kept, values, 1)
    z = xn.matvec(vectors.mT, y)
    distance = xn.where(kept, z * z / safe, 0).sum(-1)
    beside = (xn.where(kept, 0, z) ** 2).sum(-1) > cut[..., 0]
    rank = kept.sum(-1)
    value = -(distance + xn.log(safe).sum(-1) + rank * math.log(2 * math.pi)) / 2
    result: Array = xn.where(beside, -math.inf, value)
    return result


def _normal_pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Return the density of the multivariate normal distribution; arguments as of `logpdf`."""
    return xn.exp(_normal_logpdf(x, mean, cov))


def _made(name: str, **functions: Any) -> Distribution:
    made = Distribution(name, f"The {name} distribution, of vectors.")
    for kind, function in functions.items():
        function.__name__, function.__qualname__ = kind, f"{name}.{kind}"
        function.__module__ = "xnp.scipy.stats"
        setattr(made, kind, function)
    return made


dirichlet = _made("dirichlet", logpdf=_dirichlet_logpdf, pdf=_dirichlet_pdf)
multinomial = _made("multinomial", logpmf=_multinomial_logpmf, pmf=_multinomial_pmf)
multivariate_normal = _made("multivariate_normal", logpdf=_normal_logpdf, pdf=_normal_pdf)
