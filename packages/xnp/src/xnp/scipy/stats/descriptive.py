"""What samples tell: mode, rankdata, sem, and kernel density estimates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import xnp.numpy as xn
import xtree
from xnp import lax, linalg
from xnp.numpy.dispatch import array_of, axis_of, inexact
from xnp.scipy import special
from xprim import Array, dtypes, get_primitive
from xprim.errors import message
from xprim.extended import unwrap
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundaries, boundary
from xprim.typing import ArrayLike
from xtree.boundaries import boundary_methods

__all__ = ["ModeResult", "mode", "rankdata", "sem", "gaussian_kde"]

__dir__ = __all__.copy


# ----------------------------------------------------------------------------------- descriptive
# What samples tell: mode, rankdata, sem.


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Array
    count: Array  # type: ignore[assignment]  # as SciPy has it, in place of the method of tuples


def _check_nan_policy(operation: str, policy: str) -> None:
    require_choice(operation, "nan_policy", policy, ("propagate", "omit", "raise"))
    require(
        policy == "propagate", operation,
        "results whose shape or error depends on values are not for arrays.",
        got={"nan_policy": policy}, expected="'propagate'",
    )  # fmt: skip


def _along(x: Array, axis: int | None, operation: str) -> tuple[Array, int]:
    """Return an array that has an axis, and its number; without an axis all is one vector."""
    if axis is None or not x.ndim:
        return x.reshape((-1,)), 0
    return x, axis_of(axis, x.ndim, operation)


def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """Return the most frequent value along an axis, the least of several, and its count.

    Args:
      a: an array.
      axis: None for all elements.
      nan_policy: must be "propagate": NaN counts as a value.
      keepdims: whether the axis stays, with size 1.

    Returns:
      A named tuple of `mode`, of the dtype of `a`, and `count`, whole numbers; of
      nothing NaN and 0.
    """
    _check_nan_policy("mode", nan_policy)
    x = array_of(a, "mode")
    rank = x.ndim
    x, dim = _along(x, axis, "mode")
    x = xn.moveaxis(x, dim, -1)
    if not x.shape[-1]:
        x = inexact("mode", x)[0]
        value = xn.full(x.shape[:-1], math.nan, x.dtype)
        count = xn.zeros(x.shape[:-1], dtypes.canonicalize_dtype(int))
    else:
        ordered = xn.sort(x, axis=-1)
        same = ordered[..., :, None] == ordered[..., None, :]
        if dtypes.is_inexact(x.dtype):
            missing = xn.isnan(ordered)
            same = same | (missing[..., :, None] & missing[..., None, :])
        counts = same.sum(-1)
        best = counts.argmax(-1)[..., None]  # the first, so the least of equals
        value = xn.take_along_axis(ordered, best, -1)[..., 0]
        count = xn.take_along_axis(counts, best, -1)[..., 0]
    if keepdims:
        shape = (1,) * rank if axis is None else None
        value, count = (
            v.reshape(shape) if shape is not None else xn.expand_dims(v, dim)
            for v in (value, count)
        )
    return ModeResult(value, count)


def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """Return the ranks of elements, from 1 on.

    Args:
      a: an array.
      method: what equal elements get: the "average" of their places, their "min" or "max", places
        counted without gaps ("dense"), or each its own ("ordinal").
      axis: None for all elements in one order, which gives a vector.
      nan_policy: must be "propagate": where there is a NaN, all ranks are NaN.

    Returns:
      Floats.

    Example:
      >>> import numpy as np
      >>> rankdata(np.array([3.0, 1.0, 3.0])).tolist()
      [2.5, 1.0, 2.5]
    """
    _check_nan_policy("rankdata", nan_policy)
    require_choice("rankdata", "method", method, ("average", "min", "max", "dense", "ordinal"))
    x, dim = _along(array_of(a, "rankdata"), axis, "rankdata")
    x = xn.moveaxis(x, dim, -1)
    dtype = dtypes.canonicalize_dtype(float)
    order = xn.argsort(x, axis=-1, stable=True)
    places = xn.argsort(order, axis=-1, stable=True)
    ordered = xn.take_along_axis(x, order, -1)
    size = x.shape[-1]
    index = xn.broadcast_to(xn.arange(size), x.shape)
    if method == "ordinal" or not size:
        ranks = (index + 1).astype(dtype)
    else:
        starts = xn.concatenate(
            [xn.ones((*x.shape[:-1], 1), bool), ordered[..., 1:] != ordered[..., :-1]], -1
        )
        ranks = _ranks_of_runs(method, starts, index).astype(dtype)
    ranks = xn.take_along_axis(ranks, places, -1)
    if dtypes.is_inexact(x.dtype):
        ranks = xn.where(xn.isnan(x).any(-1, keepdims=True), math.nan, ranks)
    return xn.moveaxis(ranks, -1, dim)


def _ranks_of_runs(method: str, starts: Any, index: Any) -> Any:
    """Return ranks in sorted order, given where runs of equal elements start."""
    if method == "dense":
        return xn.cumsum(starts, axis=-1)
    size = index.shape[-1]
    first = lax.cummax(xn.where(starts, index, 0), axis=index.ndim - 1)
    ends = xn.concatenate([starts[..., 1:], xn.ones((*starts.shape[:-1], 1), bool)], -1)
    backwards = xn.where(ends, index, size)[..., ::-1]
    last = lax.cummin(backwards, axis=index.ndim - 1)[..., ::-1]
    return {"min": first + 1, "max": last + 1, "average": (first + last) / 2 + 1}[method]


def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """Return the standard error of the mean, std(a, ddof) / sqrt(n).

    Args:
      a: an array.
      axis: None for all elements.
      ddof: what is taken off the number of elements in the standard deviation.
      nan_policy: "propagate", or "omit" to leave NaN out.
      keepdims: whether the axis stays, with size 1.
    """
    (x,) = inexact("sem", a)
    if nan_policy == "omit":
        count = (~xn.isnan(x)).sum(axis, keepdims=keepdims)
        result: Array = xn.nanstd(x, axis, ddof=ddof, keepdims=keepdims) / xn.sqrt(
            count.astype(x.dtype)
        )
        return result
    _check_nan_policy("sem", nan_policy)
    size = x.size if axis is None else x.shape[axis_of(axis, x.ndim, "sem")]
    deviation = xn.std(x, axis, ddof=ddof, keepdims=keepdims)
    return _scale(deviation, math.sqrt(size) if size else 1)


def _scale(x: Any, divisor: float) -> Array:
    result: Array = x / divisor
    return result


# -------------------------------------------------------------------------------- kernel density
# The estimate of a density by Gaussian kernels: `gaussian_kde`.
#
#     p(x) = sum_i w_i N(x; x_i, C),   C = factor^2 cov(dataset)
#
# All sums are of logarithms of kernels, whitened by Cholesky's factor of C. Source: D. Scott,
# Multivariate density estimation (1992); B. Silverman, Density estimation (1986).


@boundary_methods
class gaussian_kde:  # noqa: N801 - SciPy's name
    """An estimate of the density that samples come from, a sum of Gaussian kernels.

    Args:
      dataset: samples, of shape (n,), or (d, n) of d dimensions.
      bw_method: the factor by which the samples' standard deviation is narrowed to that of a
        kernel: "scott" (also None) or "silverman", a number, or a function of this object.
      weights: of the samples, of shape (n,), not negative; None for equal ones.

    Attributes:
      dataset: the samples, of shape (d, n).
      weights: with the sum 1.
      covariance: of a kernel.
      inv_cov: its inverse.
      d, n, neff: the dimensions, the number of samples, and the number that counts by their
        weights, 1 / sum w^2.

    It is a pytree, so functions that are transformed take and return it.

    Example:
      >>> import numpy as np
      >>> kde = gaussian_kde(np.array([-1.0, 0.0, 1.0]))
      >>> round(float(kde(0.0)[0]), 3)
      0.318
    """

    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any
    __slots__ = ("covariance", "dataset", "inv_cov", "weights")

    @boundary
    def __init__(
        self,
        dataset: ArrayLike,
        bw_method: str | Any | Callable[[Any], Any] = None,
        weights: ArrayLike | None = None,
    ) -> None:
        (data,) = inexact("gaussian_kde", dataset)
        data = xn.atleast_2d(data)
        require(
            not dtypes.is_complex(data.aval.dtype) and data.ndim == 2 and data.size >= 2,
            "gaussian_kde", "the dataset must be two or more real samples.", got=data,
            expected="shape (n,) or (d, n)",
        )  # fmt: skip
        count = data.shape[1]
        if weights is None:
            w = xn.full((count,), 1 / count, data.dtype)
        else:
            w = array_of(weights, "gaussian_kde").astype(data.dtype)
            if w.shape != (count,):
                raise ValueError(message(
                    "gaussian_kde", "there must be a weight for each sample.",
                    got=w.aval.str_long(), expected=f"shape ({count},)",
                ))  # fmt: skip
            w = w / w.sum()
        self.dataset, self.weights = data, w
        centred = data - (data * w[None]).sum(1, keepdims=True)
        spread = (centred * w[None]) @ centred.T / (1 - (w * w).sum())
        self.covariance = spread * self._factor(bw_method) ** 2
        self.inv_cov = linalg.inv(self.covariance)

    def _factor(self, method: Any) -> Any:
        if method is None or method == "scott":
            return self.neff ** (-1.0 / (self.d + 4))
        if isinstance(method, str):
            require_choice("gaussian_kde", "bw_method", method, ("scott", "silverman"))
            return (self.neff * (self.d + 2) / 4.0) ** (-1.0 / (self.d + 4))
        return method(self) if callable(method) else method

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return int(self.dataset.shape[0])

    @property
    def n(self) -> int:
        """The number of samples."""
        return int(self.dataset.shape[1])

    @property
    def neff(self) -> Any:
        """The number of samples that counts, 1 / sum w^2."""
        return 1 / (self.weights * self.weights).sum()

    def evaluate(self, points: Any) -> Array:
        """Return the density at points of shape (m,) or (d, m), or at one of shape (d,)."""
        return xn.exp(self.logpdf(points))

    def __call__(self, points: Any) -> Array:
        """Return the density; see `evaluate`."""
        return self.evaluate(points)

    def pdf(self, x: Any) -> Array:
        """Return the density; see `evaluate`."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Array:
        """Return the logarithm of the density at points."""
        result: Array = self._log_sum(self._points(x), self.covariance)
        return result

    def _points(self, points: Any) -> Any:
        (x,) = inexact("gaussian_kde", points)
        x = xn.atleast_2d(x)
        if x.ndim == 2 and x.shape[0] != self.d and x.shape[0] == 1 and x.shape[1] == self.d:
            x = x.T
        if x.ndim != 2 or x.shape[0] != self.d:
            raise ValueError(message(
                "gaussian_kde", "the points have another dimension than the samples.",
                got=x.aval.str_long(), expected=f"shape ({self.d}, m)",
            ))  # fmt: skip
        return x

    def _log_sum(self, points: Any, covariance: Any) -> Any:
        """Return log sum_i w_i N(x; x_i, covariance) at points."""
        factor = lax.linalg.cholesky(covariance)

        def white(y: Any) -> Any:
            return lax.linalg.triangular_solve(factor, y, left_side=True, lower=True)

        gap = white(points)[:, :, None] - white(self.dataset)[:, None, :]
        logs = xn.log(xn.diagonal(factor)).sum() + self.d / 2 * math.log(2 * math.pi)
        exponents = -(gap * gap).sum(0) / 2 - logs
        return special.logsumexp(exponents, axis=1, b=self.weights)

    def integrate_gaussian(self, mean: Any, cov: Any) -> Array:
        """Return the integral of the estimate times the density of a normal distribution."""
        mean, cov = inexact("gaussian_kde.integrate_gaussian", mean, cov)
        mean, cov = xn.atleast_1d(xn.squeeze(mean)), xn.atleast_2d(cov)
        if mean.shape != (self.d,) or cov.shape != (self.d, self.d):
            raise ValueError(message(
                "gaussian_kde", "the normal distribution has another dimension than the samples.",
                got=f"{mean.aval.str_long()}, {cov.aval.str_long()}",
                expected=f"shapes ({self.d},) and ({self.d}, {self.d})",
            ))  # fmt: skip
        result: Array = xn.exp(self._log_sum(mean[:, None], self.covariance + cov))[0]
        return result

    def integrate_box_1d(self, low: Any, high: Any) -> Array:
        """Return the integral of an estimate of one dimension between two limits."""
        if self.d != 1:
            raise ValueError(message(
                "gaussian_kde", "integrate_box_1d is for one dimension.", got=f"{self.d}",
            ))  # fmt: skip
        deviation = xn.sqrt(self.covariance[0, 0])
        upper = special.ndtr((high - self.dataset[0]) / deviation)
        lower = special.ndtr((low - self.dataset[0]) / deviation)
        result: Array = (self.weights * (upper - lower)).sum()
        return result

    def integrate_kde(self, other: Any) -> Array:
        """Return the integral of the product of two estimates."""
        require(
            isinstance(other, gaussian_kde) and other.d == self.d, "gaussian_kde",
            "integrate_kde takes an estimate of as many dimensions.",
        )  # fmt: skip
        logs = self._log_sum(other.dataset, self.covariance + other.covariance)
        result: Array = (other.weights * xn.exp(logs)).sum()
        return result

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Array:
        """Refuse: in several dimensions there is no closed form. See `integrate_box_1d`."""
        raise ValueError(message(
            "gaussian_kde", "the integral over a box of several dimensions has no closed form.",
            hint="integrate_box_1d for one dimension",
        ))  # fmt: skip

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Refuse: objects do not change. Make another one."""
        raise ValueError(message(
            "gaussian_kde", "an estimate does not change.",
            hint="gaussian_kde(dataset, bw_method=...) makes another one",
        ))  # fmt: skip

    def resample(self, key: Any, shape: tuple[int, ...] = ()) -> Array:
        """Draw samples of the estimate.

        Args:
          key: a random key.
          shape: of the batch.

        Returns:
          An array of shape (d, *shape).
        """
        drawn = uniform(key, (self.d + 1, math.prod(shape)), self.dataset.dtype)
        steps = xn.cumsum(self.weights)
        chosen = xn.searchsorted(steps, drawn[0] * steps[-1], side="right")
        chosen = xn.minimum(chosen, self.n - 1)
        noise = lax.linalg.cholesky(self.covariance) @ special.ndtri(drawn[1:])
        result: Array = (self.dataset[:, chosen] + noise).reshape((self.d, *shape))
        return result

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Return the arrays that the estimate is made of."""
        return (self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> gaussian_kde:
        """Return the estimate that arrays make."""
        made = object.__new__(cls)
        made.dataset, made.weights, made.covariance, made.inv_cov = children
        return made


xtree.register_pytree_node_class(gaussian_kde)


# --------------------------------------------------------------------------------------- uniform
# Uniform numbers of a random key, for what draws samples here.
#
# The primitive is looked up by its name: whoever has a key has loaded its owner.


def uniform(key: Any, shape: tuple[int, ...], dtype: Any = None) -> Array:
    """Return the middles of 2^32 equal parts of [0, 1]: neither 0 nor 1, of which no quantile is.

    Args:
      key: a random key, of either form.
      shape: of the result.
      dtype: a floating dtype; None for the default one.
    """
    dtype = dtypes.canonicalize_dtype(float) if dtype is None else dtype
    words = unwrap(key) if dtypes.is_extended(key.dtype) else key
    (bits,) = get_primitive("random_bits").bind(
        words, bit_width=32, shape=shape, partitionable=True
    )
    limit = 1 - float(dtypes.finfo(dtype).eps)
    return xn.minimum((bits.astype(dtype) + 0.5) * 2.0**-32, limit)


boundaries(globals())
