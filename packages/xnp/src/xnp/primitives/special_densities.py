"""What the incomplete gamma and beta functions share: logarithms without cancellation, and tails.

For large parameters the densities x^a e^-x / Gamma(a + 1) and x^a (1 - x)^b / B(a, b) are near
normal; their logarithms are sums of large terms that cancel, unless they are taken about the mode.
The tail of such a density is an integral of exp(-g(t)) with g convex, which `tail` takes by the
Gauss-Legendre rule over the stretch where the integrand is worth adding: 28 points are enough for
float64, 14 for float32 (Press et al., Numerical Recipes, 3rd edition, 6.2, do so with 18).

Neighbours: `special_incomplete`, `special_beta` use them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives.formula_backends import Precision

__all__ = ()

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@functools.cache
def _rule(points: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return nodes and weights of the Gauss-Legendre rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return tuple((0.5 + 0.5 * nodes).tolist()), tuple((0.5 * weights).tolist())


def bend(m: Any, x: Any, log: Any) -> Any:
    """Return (log(1 + x) - x) / x^2; its operands are those of `log1p_less`."""
    near, inner, outer = _near_and_far(m, x)
    return m.where(near, _bend_near(m, inner), (log - outer) / outer / outer)


def log1p_less(m: Any, x: Any, log: Any) -> Any:
    """Return log(1 + x) - x.

    Args:
      m: the functions of formulas.
      x: the operand.
      log: log(1 + x), as well as it is known; only used beyond 0.4.
    """
    near, inner, outer = _near_and_far(m, x)
    return m.where(near, inner * inner * _bend_near(m, inner), log - outer)


def _near_and_far(m: Any, x: Any) -> tuple[Any, Any, Any]:
    near = m.abs(x) < 0.4
    return near, m.where(near, x, 0.0), m.where(near, 1.0, x)


def _bend_near(m: Any, x: Any) -> Any:
    """Return (log(1 + x) - x) / x^2 by log(1 + x) = 2 artanh(r), r = x / (2 + x)."""
    inverse = 1.0 / (2.0 + x)
    r = x * inverse
    square = r * r
    last = 27 if m.precision is Precision else 11
    series = 1 / last + 0.0 * square
    for k in range(last - 2, 1, -2):
        series = series * square + 1 / k
    return (2.0 * r * inverse * series - 1.0) * inverse


def stirling_error(a: Any) -> Any:
    """Return lgamma(a) - ((a - 1/2) log a - a + log(2 pi) / 2) for a >= 10 (DLMF 5.11.1)."""
    z = 1.0 / (a * a)
    series = 1 / 156 + 0.0 * z  # B_2k / (2k (2k - 1)), k = 7 ... 1
    for c in (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        series = series * z + c
    return series / a


def log_less_digamma(a: Any) -> Any:
    """Return log(a) - digamma(a) for a >= 10 (DLMF 5.11.2)."""
    z = 1.0 / (a * a)
    series = -1 / 12 + 0.0 * z  # B_2k / 2k, k = 7 ... 1
    for c in (691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12):
        series = series * z + c
    return 0.5 / a - series * z


def gamma_shifted(m: Any, a: Any) -> tuple[Any, Any]:
    """Return lgamma(1 + a) and digamma(1 + a) for 0 <= a <= 31, to rounding at a + 10."""
    product, slope = a + 1.0, 1.0
    for k in range(2, 10):
        factor = a + float(k)
        product, slope = product * factor, slope * factor + product
    z = a + 10.0
    log_z = m.log(z)
    value = (z - 0.5) * log_z - z + HALF_LOG_2PI + stirling_error(z) - m.log(product)
    return value, log_z - log_less_digamma(z) - slope / product


def reach(m: Any, slope: Any, curvature: Any, upwards: Any) -> Any:
    """Return the d from where e^-(slope d + curvature (d - log(1 + d))) is not worth adding.

    Args:
      m: the functions of formulas.
      slope: at d = 0; not below -1.
      curvature: positive.
      upwards: whether d is positive; else it is -d of the formula, where the curve is steeper.
    """
    # d - log(1 + d) is more than d^2 / (2 + 4 d / 3) for positive d, than d^2 / 2 for negative d
    far = -m.precision.far
    third = m.where(upwards, 2 / 3, 0.0)
    b, c = slope - far * third, m.sqrt(4.0 * far * (slope * third + 0.5 * curvature))
    ratio = b / c
    return 2.0 * far / (c * (ratio + m.sqrt(ratio * ratio + 1.0)))


def tail(
    m: Any, integrand: Callable[..., tuple[Any, ...]], needed: Any, values: tuple[Any, ...],
    integrals: int,
) -> list[Any]:  # fmt: skip
    """Return the integrals of functions of t from 0 to 1.

    Args:
      m: the functions of formulas.
      integrand: from these, t and the values to the functions there.
      needed: a mask.
      values: what the functions depend on; in the range of float32.
      integrals: the number of functions.
    """

    def unfinished(m: Any, needed: Any, *_: Any) -> Any:
        return needed > 0.0

    def step(m: Any, n: Any, node: Any, weight: Any, needed: Any, *state: Any) -> Any:
        values = state[integrals:]
        found = integrand(m, node, *values)
        sums = [s + weight * f for s, f in zip(state, found, strict=False)]
        return needed, *sums, *values

    zero = 0.0 * values[0]
    start = (m.where(needed, 1.0, zero), *[zero] * integrals, *values)
    points = m.precision.points
    results: list[Any] = m.loop(unfinished, step, start, points, _rule(points))
    return results[1 : 1 + integrals]
