"""The estimate of a density by Gaussian kernels: `gaussian_kde`.

    p(x) = sum_i w_i N(x; x_i, C),   C = factor^2 cov(dataset)

All sums are of logarithms of kernels, whitened by Cholesky's factor of C. Source: D. Scott,
Multivariate density estimation (1992); B. Silverman, Density estimation (1986).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import xnp.numpy as xn
import xtree
from xnp import lax, linalg
from xnp.numpy.promoting import array_of, inexact
from xnp.scipy import special
from xnp.scipy.uniform import uniform
from xprim import Array, dtypes
from xprim.errors import message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike
from xtree.boundaries import boundary_methods

__all__ = ["gaussian_kde"]

__dir__ = __all__.copy


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
        if dtypes.is_complex(data.aval.dtype) or data.ndim != 2 or data.size < 2:
            raise ValueError(message(
                "gaussian_kde", "the dataset must be two or more real samples.",
                got=data.aval.str_long(), expected="shape (n,) or (d, n)",
            ))  # fmt: skip
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
        centred = data - (data * w).sum(1, keepdims=True)
        spread = (centred * w) @ centred.T / (1 - (w * w).sum())
        self.covariance = spread * self._factor(bw_method) ** 2
        self.inv_cov = linalg.inv(self.covariance)

    def _factor(self, method: Any) -> Any:
        if method is None or method == "scott":
            return self.neff ** (-1.0 / (self.d + 4))
        if isinstance(method, str):
            if method != "silverman":
                raise ValueError(message(
                    "gaussian_kde", "there is no such bw_method.", got=f"{method!r}",
                    expected="'scott', 'silverman', a number or a function",
                ))  # fmt: skip
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
        if not isinstance(other, gaussian_kde) or other.d != self.d:
            raise ValueError("gaussian_kde: integrate_kde takes an estimate of as many dimensions.")
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
