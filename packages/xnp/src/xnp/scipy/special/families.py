"""Families of functions with orders: Bessel, hypergeometric, spherical harmonics, Bernoulli.

Neighbours: `xnp.primitives.special_bessel` and `special_hypergeometric` have the formulas.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import xnp.numpy as xn
from xnp import lax
from xnp.numpy.promoting import array_of, bind, broadcast_checked, inexact
from xnp.scipy.elementwise import applied
from xprim import Array, dtypes
from xprim.errors import ConcretizationTypeError, message
from xprim.static_sizes import static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "bernoulli", "bessel_jn", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e", "sph_harm_y",
]  # fmt: skip

__dir__ = __all__.copy


def i0(x: ArrayLike) -> Array:
    """Return the modified Bessel function I_0(x)."""
    return applied("bessel_i0", "i0", x)


def i0e(x: ArrayLike) -> Array:
    """Return exp(-|x|) I_0(x)."""
    return applied("bessel_i0e", "i0e", x)


def i1(x: ArrayLike) -> Array:
    """Return the modified Bessel function I_1(x)."""
    return applied("bessel_i1", "i1", x)


def i1e(x: ArrayLike) -> Array:
    """Return exp(-|x|) I_1(x)."""
    return applied("bessel_i1e", "i1e", x)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Return the Bessel functions J_0(z), ..., J_v(z).

    Miller's algorithm: the recurrence J_{n-1} = 2n/z J_n - J_{n+1} downwards from order `n_iter`,
    where J is taken for 0, then scaled by J_0 + 2 J_2 + 2 J_4 + ... = 1 (DLMF 3.6, 10.12.4).

    Args:
      z: numbers, of size well below `n_iter`.
      v: the greatest order.
      n_iter: where the recurrence begins, at least `v + 1`.

    Returns:
      An array of shape (v + 1, *z.shape).
    """
    order, start = static_int(v, "bessel_jn", "v"), static_int(n_iter, "bessel_jn", "n_iter")
    if not 0 <= order < start:
        raise ValueError(message(
            "bessel_jn", "the recurrence must begin above the orders that it gives.",
            got=f"v={v}, n_iter={n_iter}", expected="0 <= v < n_iter",
        ))  # fmt: skip
    (z,) = inexact("bessel_jn", z)
    zero = z == 0
    safe = xn.where(zero, 1, z)
    orders = xn.arange(start, 0, -1).astype(z.dtype)

    def step(carry: Any, n: Any) -> Any:
        upper, current, total = carry
        lower = 2 * n / safe * current - upper
        # a common factor keeps the growing numbers in range
        factor = xn.where(abs(lower) > 1e10, 1e-10, 1).astype(z.dtype)
        even = bind("rem", n, xn.asarray(2, z.dtype)) == 1  # the order of `lower` is n - 1
        total = (total + xn.where(even & (n > 1), 2 * lower, 0)) * factor
        return (current * factor, lower * factor, total), (lower * factor, factor)

    first = (xn.zeros_like(z), xn.full_like(z, 1e-25), xn.zeros_like(z))
    (_, last, total), (values, factors) = lax.scan(step, first, orders)
    # values[i] is of order start - 1 - i, and was not scaled by the factors that came after it
    later = xn.concatenate([xn.cumprod(factors[::-1], axis=0)[::-1][1:], xn.ones_like(z)[None]])
    scaled = (values * later)[::-1][: order + 1] / (total + last)
    at_zero = xn.zeros_like(scaled).at[0].set(1)
    result: Array = xn.where(zero, at_zero, scaled)
    return result


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return Kummer's confluent hypergeometric function M(a, b, x) = sum (a)_k/(b)_k x^k/k!.

    Accuracy: as of other functions for positive a, b and b - a; parameters of different signs may
    make terms of the series cancel. Differentiable in: a, b, x. Infinite where b = 0, -1, ...,
    unless the series ends before. Source: DLMF 13.2.2.
    """
    return applied("hyp1f1", "hyp1f1", a, b, x)


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Return Gauss's hypergeometric function F(a, b; c; x) = sum (a)_k (b)_k/(c)_k x^k/k!, x <= 1.

    Beyond 1 it is infinite, as in SciPy, but where it is real: where a, b, c - a or c - b is 0, -1,
    ... It is infinite where c = 0, -1, ..., too, unless the series ends before.

    Accuracy: as of other functions for positive a, b, c; parameters of different signs may cost
    digits. Differentiable in: a, b, c, x. Source: DLMF 15.2.1.
    """
    return bind("hyp2f1", *broadcast_checked("hyp2f1", *inexact("hyp2f1", a, b, c, x)))


def bernoulli(n: int) -> Array:
    """Return Bernoulli's numbers B_0, ..., B_n, with B_1 = -1/2.

    Args:
      n: the last index, a Python int.

    Returns:
      An array of shape (n + 1,) and the default float dtype, infinite where numbers are too large.

    Example:
      >>> bernoulli(4).tolist()[:3]
      [1.0, -0.5, 0.1666666716337204]
    """
    last = static_int(n, "bernoulli", "n")
    if last < 0:
        raise ValueError(message("bernoulli", "n is negative.", got=f"{n}", expected="0 or more"))
    numbers = np.zeros(last + 1)
    even = np.asarray(_even_bernoulli()[: last // 2 + 1])
    numbers[: 2 * even.size : 2] = even
    if last >= 2 * even.size:  # beyond the range of float64
        orders = np.arange(even.size, last // 2 + 1)
        numbers[2 * even.size :: 2] = np.where(orders % 2 == 0, -np.inf, np.inf)
    if last >= 1:
        numbers[1] = -0.5
    return xn.asarray(numbers, dtypes.canonicalize_dtype(np.float64))


_MOST = 130  # B_260 is infinite in float64


@functools.cache
def _even_bernoulli() -> tuple[float, ...]:
    """Return B_0, B_2, ... by the tangent numbers T_k: B_2k = (-1)^(k-1) 2k T_k / (4^k (4^k - 1)).

    Source: R. Brent and D. Harvey, Fast computation of Bernoulli, tangent and secant numbers
    (2013).
    """
    tangents = [0, 1]
    for k in range(2, _MOST):
        tangents.append((k - 1) * tangents[k - 1])
    for k in range(2, _MOST):
        for j in range(k, _MOST):
            tangents[j] = (j - k) * tangents[j - 1] + (j - k + 2) * tangents[j]
    result = [1.0]
    for k in range(1, _MOST):
        sign = 1 if k % 2 else -1
        result.append(sign * 2 * k * tangents[k] / (4**k * (4**k - 1)))
    return tuple(result)


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """Return the spherical harmonics Y_n^m(theta, phi), with the phase (-1)^m.

        Y_n^m = sqrt((2n + 1)/(4 pi) (n - m)!/(n + m)!) P_n^m(cos theta) e^(i m phi)

    Args:
      n: degrees, whole numbers 0 <= n.
      m: orders, whole numbers |m| <= n.
      theta: polar angles in radians, from 0 to pi; beyond, P is that of their cosine.
      phi: azimuths in radians.
      diff_n: must be None: derivatives are taken by transformations.
      n_max: the greatest degree, a Python int; greater ones are taken for it. None for that of `n`,
        which must then be concrete.

    Returns:
      A complex array of the broadcast shape.

    Differentiable in: theta, phi. Source: DLMF 14.30.1; the recurrence of the normalized functions
    is W. Press et al., Numerical Recipes, 3rd edition, 6.7.
    """
    if diff_n is not None:
        raise ValueError(message(
            "sph_harm_y", "has no derivatives of its own.", got=f"diff_n={diff_n}", expected="None",
            hint="differentiate the function",
        ))  # fmt: skip
    n, m = array_of(n, "sph_harm_y"), array_of(m, "sph_harm_y")
    theta, phi = inexact("sph_harm_y", theta, phi)
    most = _greatest_degree(n) if n_max is None else static_int(n_max, "sph_harm_y", "n_max")
    n, m, theta, phi = xn.broadcast_arrays(xn.minimum(n, most), m, theta, phi)
    size = xn.abs(m)
    legendre = _normalized_legendre(n, size, theta, most)
    odd = (m < 0) & (size % 2 == 1)
    legendre = xn.where(odd, -legendre, legendre)
    angle = m.astype(phi.dtype) * phi
    return bind("complex", legendre * xn.cos(angle), legendre * xn.sin(angle))


def _greatest_degree(n: Array) -> int:
    try:
        return int(np.max(np.asarray(n), initial=0))
    except TypeError:
        raise ConcretizationTypeError(message(
            "sph_harm_y", "the greatest degree is not known while tracing.",
            expected="n_max=, a Python int",
        )) from None  # fmt: skip


def _normalized_legendre(n: Any, m: Any, theta: Any, most: int) -> Array:
    """Return P_n^m(cos theta) with its normalization, for m >= 0, up from n = m."""
    # where the sine is negative, P has that of -theta, as |sin| = sqrt(1 - cos^2)
    x, sine = xn.cos(theta), xn.sin(theta)
    sine = xn.where(sine < 0, -sine, sine)
    m = m.astype(x.dtype)
    n = n.astype(x.dtype)

    def diagonal(value: Any, k: Any) -> Any:
        """Go from P_{k-1}^{k-1} to P_k^k = -sqrt((2k + 1) / (2k)) sin(theta) P_{k-1}^{k-1}."""
        return xn.where(k <= m, -xn.sqrt((2 * k + 1) / (2 * k)) * sine * value, value), None

    def upwards(carry: Any, k: Any) -> Any:
        """Go from the degrees k - 1, k - 2 to k, where k is above m and not above n."""
        last, before = carry
        active = (k > m) & (k <= n)
        square, below = k * k - m * m, (k - 1) * (k - 1) - m * m
        square = xn.where(active, square, 1)
        factor = xn.sqrt((4 * k * k - 1) / square)
        shrink = xn.sqrt(xn.where(active & (below > 0), below / (4 * (k - 1) * (k - 1) - 1), 1))
        shrink = xn.where(below > 0, shrink, 0)
        value = factor * (x * last - shrink * before)
        return (xn.where(active, value, last), xn.where(active, last, before)), None

    degrees = xn.arange(1, most + 1).astype(x.dtype)
    start = xn.full_like(x, math.sqrt(0.25 / math.pi))
    first, _ = lax.scan(diagonal, start, degrees)
    (value, _), _ = lax.scan(upwards, (first, xn.zeros_like(first)), degrees)
    result: Array = value
    return result


boundaries(globals())
