"""The gamma function and what is made of it: beta, binomials, incomplete integrals, zeta.

Neighbours: `xnp.primitives.special_gamma`, `special_products`, `special_incomplete` and
`special_beta` have the formulas.
"""

from __future__ import annotations

import math
from typing import Any

import xnp.numpy as xn
from xnp.numpy.promoting import bind, broadcast_checked, cast, inexact
from xnp.scipy.elementwise import applied
from xprim import Array, dtypes
from xprim.errors import message
from xprim.static_sizes import static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "beta", "betainc", "betaln", "comb", "digamma", "factorial", "gamma", "gammainc", "gammaincc",
    "gammaln", "gammasgn", "loggamma", "multigammaln", "poch", "polygamma", "zeta",
]  # fmt: skip

__dir__ = __all__.copy


def gamma(x: ArrayLike) -> Array:
    """Return Gamma(x) = int_0^inf t^(x-1) e^-t dt, continued to negative x.

    It is infinite at 0, of the sign of the zero, and NaN at -1, -2, ... Of complex x it is
    exp(loggamma(x)), NaN at 0, -1, -2, ...

    Example:
      >>> float(gamma(5.0))
      24.0

    Source: DLMF 5.2.1.
    """
    (x,) = inexact("gamma", x)
    if dtypes.is_complex(x.aval.dtype):
        return _complex_gamma(x)
    return applied("gamma", "gamma", x)


def _complex_gamma(z: Any) -> Array:
    real = xn.real(z)
    is_pole = (xn.imag(z) == 0) & (real <= 0) & (real == xn.floor(real))
    found = xn.exp(_complex_loggamma(xn.where(is_pole, 1, z)))
    result: Array = xn.where(is_pole, complex(math.nan, math.nan), found)
    return result


def gammaln(x: ArrayLike) -> Array:
    """Return log |Gamma(x)|; infinite at 0, -1, -2, ..."""
    return applied("lgamma", "gammaln", x)


def loggamma(x: ArrayLike) -> Array:
    """Return the principal branch of log Gamma(x), for real or complex x.

    Real operands below 0 give NaN: there the branch is complex. Complex ones are computed by
    Stirling's series (DLMF 5.11.1) after recurrence, with a cut along the negative real axis.
    """
    (x,) = inexact("loggamma", x)
    if dtypes.is_complex(x.aval.dtype):
        return _complex_loggamma(x)
    result: Array = xn.where(x < 0, math.nan, bind("lgamma", x))
    return result


# B_2k / (2k (2k - 1))
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def _complex_loggamma(z: Array) -> Array:
    """Return log Gamma by recurrence to Re z > 9; for Re z < 0 by reflection (DLMF 5.5.3)."""
    low = z.real < 0
    y = xn.where(low, 1 - z, z)
    shift: Any = 0
    for k in range(9):
        shift = shift + xn.log(y + k)  # no product: its logarithm might be of another branch
    w = y + 9
    square, series = 1 / (w * w), _STIRLING[-1] + 0 * w
    for c in _STIRLING[-2::-1]:
        series = series * square + c
    value = (w - 0.5) * xn.log(w) - w + 0.5 * math.log(2 * math.pi) + series / w - shift
    # log(pi / sin(pi z)), its branch continuous in each half plane (Hare, 1997)
    upper = z.imag >= 0
    phase = xn.where(upper, 1j, -1j).astype(z.dtype) * math.pi
    s = xn.where(low, z, 0.25)
    reflected = math.log(2 * math.pi) + phase * (s - 0.5) - xn.log1p(-xn.exp(2 * phase * s)) - value
    result: Array = xn.where(low, reflected, value)
    return result


def gammasgn(x: ArrayLike) -> Array:
    """Return the sign of Gamma(x): 1 or -1; at 0 that of the zero, at -1, -2, ... NaN."""
    (x,) = inexact("gammasgn", x)
    whole = xn.floor(x)
    odd = xn.floor(whole * 0.5) * 2 != whole
    sign = xn.where((x < 0) & odd, -1.0, xn.where(x == 0, xn.copysign(xn.ones_like(x), x), 1.0))
    undefined = xn.isnan(x) | ((x < 0) & (whole == x))
    result: Array = xn.where(undefined, math.nan, sign).astype(x.dtype)
    return result


def digamma(x: ArrayLike) -> Array:
    """Return the derivative of gammaln; NaN at -1, -2, ..., infinite at 0."""
    return applied("digamma", "digamma", x)


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Return the n-th derivative of digamma at x, for whole n >= 0. Differentiable in x."""
    return applied("polygamma", "polygamma", n, x)


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Return the Hurwitz zeta function sum_{k >= 0} (k + q)^-x for x > 1.

    Args:
      x: the exponent; NaN where it is less than 1, infinite where it is 1.
      q: the offset; None for 1, which gives Riemann's zeta function for x >= 1.

    Differentiable in: x, for q > 0; q.
    """
    return applied("zeta", "zeta", x, 1 if q is None else q)


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Return B(a, b) = Gamma(a) Gamma(b) / Gamma(a + b)."""
    return applied("beta", "beta", a, b)


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Return log |B(a, b)|, also where a or b is large."""
    return applied("betaln", "betaln", a, b)


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized lower incomplete gamma function P(a, x), for a > 0 and x >= 0."""
    return applied("igamma", "gammainc", a, x)


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x)."""
    return applied("igammac", "gammaincc", a, x)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized incomplete beta function I_x(a, b). Differentiable in a, b, x."""
    return applied("regularized_incomplete_beta", "betainc", a, b, x)


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Return n! = Gamma(n + 1) as a float; 0 for n < 0.

    Args:
      n: numbers, whole or not.
      exact: must be False: whole numbers of any size are no elements of arrays.
    """
    if exact:
        raise ValueError(message(
            "factorial", "exact=True has no arrays.", got="exact=True",
            expected="exact=False, a float result",
            hint="math.factorial gives whole numbers of any size",
        ))  # fmt: skip
    (n,) = inexact("factorial", n)
    found = xn.where(n < 0, 0, bind("gamma", xn.where(n < 0, 0, n) + 1))
    return cast(found, n.dtype, n.aval.weak_type)


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Return Pochhammer's symbol (z)_m = Gamma(z + m) / Gamma(z), the rising factorial."""
    return applied("poch", "poch", z, m)


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """Return the number of ways to take k of N things, as a float.

    Args:
      N: the number of things.
      k: how many are taken; the result is 0 for k < 0, k > N and N < 0.
      repetition: whether a thing may be taken more than once.

    Returns:
      N! / (k! (N - k)!); of whole operands exact up to 10^6 in float32 and 10^13 in float64.
    """
    n, k = broadcast_checked("comb", *inexact("comb", N, k))
    if dtypes.is_complex(n.dtype):
        raise TypeError(f"comb: takes real numbers, got {n.aval.str_long()}.")
    if repetition:
        repeated = comb(n + k - 1, k)
        return _choice((n == 0) & (k == 0), xn.ones_like(repeated), repeated)
    valid = (n >= 0) & (k >= 0) & (k <= n)
    n, k = xn.where(valid, n, 1), xn.where(valid, k, 0)
    value = _binomial(n, k)
    # rounding is no step of the derivative
    whole = (xn.floor(n) == n) & (xn.floor(k) == k)
    rest = bind("stop_gradient", _choice(whole & xn.isfinite(value), xn.rint(value) - value, 0))
    return _choice(valid, value + rest, 0)


def _binomial(n: Any, k: Any) -> Any:
    """Return 1 / ((n + 1) B(n - k + 1, k + 1)), with m for the less of k and n - k.

    Where m is 1 or more, it is 1 / (m B(n - m + 1, m)), which underflows as late as the result
    overflows. For n beyond all digits it is n^m / m! (1 - m (m - 1) / (2 n) + ...), finite for no
    more than 20 things.
    """
    m = xn.minimum(k, n - k)
    is_far = n > 1 / float(dtypes.finfo(n.dtype).eps)
    most, few = xn.where(is_far, n, 1), xn.where(is_far, xn.minimum(m, 30), 0)
    half = xn.sqrt(most) ** few
    many = half / gamma(few + 1) * (half * (1 - few * (few - 1) / most / 2))
    n, m = xn.where(is_far, 1, n), xn.where(is_far, 0, m)
    last, factor = xn.where(m < 1, m + 1, m), xn.where(m < 1, n + 1, m)
    return xn.where(is_far, many, 1 / (factor * beta(n - m + 1, last)))


def _choice(mask: Any, x: Any, y: Any) -> Array:
    result: Array = xn.where(mask, x, y)
    return result


def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """Return the logarithm of the multivariate gamma function of dimension d.

        log Gamma_d(a) = d (d - 1) / 4 log(pi) + sum_{j < d} log Gamma(a - j / 2)

    Args:
      a: numbers above (d - 1) / 2.
      d: a Python int.
    """
    size = static_int(d, "multigammaln", "d")
    (a,) = inexact("multigammaln", a)
    halves = xn.arange(size, dtype=a.dtype) / 2
    total = xn.sum(bind("lgamma", xn.expand_dims(a, -1) - halves), axis=-1)
    return total + size * (size - 1) / 4 * math.log(math.pi)


boundaries(globals())
