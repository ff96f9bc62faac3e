"""Samples with a matrix structure: `multivariate_normal`, `orthogonal`."""

from __future__ import annotations

import operator
from typing import Any

from xnp import lax
from xnp.docstrings import complete
from xnp.placing import placed
from xprim import Array, as_array, dtypes
from xprim.errors import message
from xprim.promotion import result_type
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from xrandom._normal import drawn_normal
from xrandom.arguments import checked_shape, floating_dtype, repeated, sample_shape
from xrandom.docstrings import MULTIVARIATE
from xrandom.keys import words_of
from xrandom.standard_distributions import raw_normal

__all__ = ()

_METHODS = ("cholesky", "eigh", "svd")


@boundary
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    method: str = "cholesky",
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from a normal distribution of given mean and covariance: `mean + L z`, `L L^T = cov`.

    Args:
      key: a single random key, of either form.
      mean: of shape `(..., n)`.
      cov: symmetric, positive semidefinite, of shape `(..., n, n)`.
      shape: the shape of the result without its last dimension; None takes that to which the
        leading dimensions of `mean` and `cov` broadcast.
      dtype: a real floating dtype; None takes that of `mean` and `cov`.
      method: how `L` is found: "cholesky" (for positive definite matrices), "eigh" or "svd".
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      Samples of shape `(*shape, n)`.

    Differentiable in: `mean` and `cov`.
    """
    if method not in _METHODS:
        raise ValueError(message(
            "multivariate_normal", "there is no such method.", got=f"{method!r}",
            expected=f"one of {', '.join(map(repr, _METHODS))}",
        ))  # fmt: skip
    words = words_of(key, "multivariate_normal")
    centre = as_array(mean, what="multivariate_normal: mean")
    covariance = as_array(cov, what="multivariate_normal: cov")
    own = result_type(centre, covariance)
    if not dtypes.is_floating(own):
        own = dtypes.python_scalar_dtype(float)
    exact = own if dtype is None else floating_dtype(dtype, "multivariate_normal")
    centre, covariance = [lax.convert_element_type(x, exact) for x in (centre, covariance)]
    n = centre.shape[-1] if centre.ndim else -1
    if covariance.shape[-2:] != (n, n):
        raise ValueError(message(
            "multivariate_normal", "mean must be a vector and cov a square matrix of its size.",
            got=f"mean: {centre.aval.str_long()}, cov: {covariance.aval.str_long()}",
        ))  # fmt: skip
    lead = sample_shape(
        shape, "multivariate_normal", _Leading(centre.shape[:-1]), _Leading(covariance.shape[:-2])
    )
    factor = repeated(_factor(covariance, method), (*lead, n, n))
    z = raw_normal(words, (*lead, n), exact)
    row = repeated(lax.reshape(z, (*lead, 1, n)), (*lead, n, n))
    noise = lax.reduce_sum(lax.mul(factor, row), (len(lead) + 1,))
    return placed(lax.add(repeated(centre, (*lead, n)), noise), out_sharding, "multivariate_normal")


class _Leading:
    """The leading dimensions of a parameter."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


def _factor(covariance: Any, method: str) -> Any:
    """Return a matrix L with `L L^T = covariance`."""
    if method == "cholesky":
        return lax.linalg.cholesky(covariance)
    if method == "eigh":
        vectors, values = lax.linalg.eigh(covariance)
    else:
        vectors, values, _ = lax.linalg.svd(covariance)
    scale = lax.sqrt(values)
    row = lax.reshape(scale, (*scale.shape[:-1], 1, scale.shape[-1]))
    return lax.mul(vectors, repeated(row, vectors.shape))


@boundary
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    m: int | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw orthogonal matrices, uniformly (by the Haar measure).

    Args:
      key: a single random key, of either form.
      n: the number of rows.
      shape: the leading dimensions of the result.
      dtype: a floating or complex dtype; None takes the default. Complex matrices are unitary.
      m: the number of columns; None takes `n`. Of a matrix that is not square, the rows or columns
        (the fewer of them) are orthonormal.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Source: Mezzadri, "How to generate random matrices from the classical compact groups" (2007).
    """
    words = words_of(key, "orthogonal")
    rows = operator.index(n)
    columns = rows if m is None else operator.index(m)
    lead = checked_shape(shape, "orthogonal")
    tall, narrow = max(rows, columns), min(rows, columns)
    gaussian = drawn_normal(words, (*lead, tall, narrow), dtype, "orthogonal")
    q, r = lax.linalg.qr(gaussian, full_matrices=False)
    eye = lax.eq(*[lax.broadcasted_iota(dtypes.int32, (narrow, narrow), d) for d in (0, 1)])
    on_diagonal = lax.select(repeated(eye, r.shape), r, lax.full_like(r, 0))
    signs = lax.sign(lax.reduce_sum(on_diagonal, (len(lead),)))
    x = lax.mul(q, repeated(lax.reshape(signs, (*lead, 1, narrow)), q.shape))
    if rows < columns:
        x = lax.transpose(x, (*range(len(lead)), len(lead) + 1, len(lead)))
    return placed(x, out_sharding, "orthogonal")


complete(globals(), MULTIVARIATE)
