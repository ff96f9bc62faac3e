"""Special functions with SciPy's names, promoted and broadcast; real unless it is said."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import xnp.numpy as xn
from xnp import lax, nn
from xnp.nn import logsumexp as logsumexp
from xnp.numpy import dispatch
from xnp.numpy.dispatch import broadcast, broadcast_checked, cast, dispatch_on, inexact, wide
from xnp.primitives.table import bind
from xprim import Array, dtypes
from xprim.errors import ConcretizationTypeError, message
from xprim.requirements import require, static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "beta", "betainc", "betaln", "comb", "digamma", "factorial", "gamma", "gammainc",
    "gammaincc", "gammaln", "gammasgn", "loggamma", "multigammaln", "poch", "polygamma", "zeta",
    "dawsn", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "fresnel", "log_ndtr", "ndtr", "ndtri",
    "owens_t", "wofz", "boxcox", "boxcox1p", "entr", "expit", "kl_div", "log_softmax", "logit",
    "logsumexp", "rel_entr", "softmax", "xlog1py", "xlogy", "exp1", "expi", "expn", "sici",
    "spence", "bernoulli", "bessel_jn", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e",
    "sph_harm_y",
]  # fmt: skip

__dir__ = __all__.copy


# ----------------------------------------------------------------------------------- elementwise
# Applying a primitive of real floats to operands as NumPy does: promoted and broadcast.


@dispatch_on(1)
def _of_one(x: Any, primitive: str, operation: str) -> Array:
    return bind(primitive, *inexact(operation, x))


@dispatch_on(2)
def _of_two(x: Any, y: Any, primitive: str, operation: str) -> Array:
    return bind(primitive, *broadcast(operation, *inexact(operation, x, y)))


@dispatch_on(3)
def _of_three(x: Any, y: Any, z: Any, primitive: str, operation: str) -> Array:
    return bind(primitive, *broadcast(operation, *inexact(operation, x, y, z)))


_BY_COUNT: dict[int, Callable[..., Array]] = {1: _of_one, 2: _of_two, 3: _of_three}


def apply(primitive: str, operation: str, *operands: Any) -> Array:
    """Return a primitive's result on one to three operands; errors name the operation."""
    return _BY_COUNT[len(operands)](*operands, primitive, operation)


# ------------------------------------------------------------------------------- gamma functions
# The gamma function and what is made of it: beta, binomials, incomplete integrals, zeta.


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
    return apply("gamma", "gamma", x)


def _complex_gamma(z: Any) -> Array:
    real = xn.real(z)
    is_pole = (xn.imag(z) == 0) & (real <= 0) & (real == xn.floor(real))
    found = xn.exp(_complex_loggamma(xn.where(is_pole, 1, z)))
    result: Array = xn.where(is_pole, complex(math.nan, math.nan), found)
    return result


def gammaln(x: ArrayLike) -> Array:
    """Return log |Gamma(x)|; infinite at 0, -1, -2, ..."""
    return apply("lgamma", "gammaln", x)


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
    return apply("digamma", "digamma", x)


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Return the n-th derivative of digamma at x, for whole n >= 0. Differentiable in x."""
    return apply("polygamma", "polygamma", n, x)


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Return the Hurwitz zeta function sum_{k >= 0} (k + q)^-x for x > 1.

    Args:
      x: the exponent; NaN where it is less than 1, infinite where it is 1.
      q: the offset; None for 1, which gives Riemann's zeta function for x >= 1.

    Differentiable in: x, for q > 0; q.
    """
    return apply("zeta", "zeta", x, 1 if q is None else q)


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Return B(a, b) = Gamma(a) Gamma(b) / Gamma(a + b)."""
    return apply("beta", "beta", a, b)


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Return log |B(a, b)|, also where a or b is large."""
    return apply("betaln", "betaln", a, b)


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized lower incomplete gamma function P(a, x), for a > 0 and x >= 0."""
    return apply("igamma", "gammainc", a, x)


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x)."""
    return apply("igammac", "gammaincc", a, x)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized incomplete beta function I_x(a, b). Differentiable in a, b, x."""
    return apply("regularized_incomplete_beta", "betainc", a, b, x)


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Return n! = Gamma(n + 1) as a float; 0 for n < 0.

    Args:
      n: numbers, whole or not.
      exact: must be False: whole numbers of any size are not elements of arrays.
    """
    if exact:
        raise ValueError(message(
            "factorial", "exact=True has no arrays.", got="exact=True",
            expected="exact=False, a float result",
            hint="math.factorial gives integers of any size",
        ))  # fmt: skip
    (given,) = inexact("factorial", n)
    n = wide(given)
    found = xn.where(n < 0, 0, bind("gamma", xn.where(n < 0, 0, n) + 1))
    return cast(found, given.dtype, given.aval.weak_type)


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Return Pochhammer's symbol (z)_m = Gamma(z + m) / Gamma(z), the rising factorial."""
    return apply("poch", "poch", z, m)


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
    require(
        not dtypes.is_complex(n.dtype), "comb", "takes real numbers, got {}.", n, error=TypeError
    )
    if repetition:
        repeated = comb(n + k - 1, k)
        return _choice((n == 0) & (k == 0), xn.ones_like(repeated), repeated)
    valid = (n >= 0) & (k >= 0) & (k <= n)
    n, k = xn.where(valid, n, 1), xn.where(valid, k, 0)
    value = _binomial(n, k)
    # rounding is not a step of the derivative
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


# ------------------------------------------------------------------------------- error functions
# The error function, the normal distribution and kin, real and complex.


def erf(x: ArrayLike) -> Array:
    """Return the error function, 2/sqrt(pi) int_0^x exp(-t^2) dt."""
    return apply("erf", "erf", x)


def erfc(x: ArrayLike) -> Array:
    """Return 1 - erf(x), accurate for large x."""
    return apply("erfc", "erfc", x)


def erfinv(x: ArrayLike) -> Array:
    """Return y with erf(y) = x; infinite at -1 and 1, NaN outside."""
    return apply("erf_inv", "erfinv", x)


def erfcinv(y: ArrayLike) -> Array:
    """Return x with erfc(x) = y; infinite at 0 and 2, NaN outside."""
    (y,) = inexact("erfcinv", y)
    return bind("ndtri", y * 0.5) * -math.sqrt(0.5)


def erfcx(x: ArrayLike) -> Array:
    """Return exp(x^2) erfc(x), which falls as 1 / (x sqrt(pi)); of complex x it is w(ix).

    Source: DLMF 7.2.3.
    """
    (x,) = inexact("erfcx", x)
    if dtypes.is_complex(x.aval.dtype):
        return wofz(bind("complex", -x.imag, x.real))
    return apply("erfcx", "erfcx", x)


def ndtr(x: ArrayLike) -> Array:
    """Return the distribution function of the standard normal distribution, erfc(-x/sqrt(2)) / 2.

    Example:
      >>> float(ndtr(0.0))
      0.5
    """
    return apply("ndtr", "ndtr", x)


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Return the logarithm of `ndtr`, right in both tails.

    Args:
      x: an array.
      series_order: how many terms an asymptotic series would have, at least 0. It is checked, but
        no such series is used: results have all digits for each order.
    """
    require(
        static_int(series_order, "log_ndtr", "series_order") >= 0, "log_ndtr",
        "series_order is negative.", got=series_order, expected="0 or more",
    )  # fmt: skip
    return apply("log_ndtr", "log_ndtr", x)


def ndtri(p: ArrayLike) -> Array:
    """Return x with ndtr(x) = p, the quantile; infinite at 0 and 1, NaN outside."""
    return apply("ndtri", "ndtri", p)


def dawsn(x: ArrayLike) -> Array:
    """Return Dawson's integral exp(-x^2) int_0^x exp(t^2) dt. Source: DLMF 7.2.5."""
    return apply("dawsn", "dawsn", x)


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Return Owen's T function, 1/(2 pi) int_0^a exp(-h^2 (1 + x^2) / 2) / (1 + x^2) dx.

    Source: D. Owen, Tables for computing bivariate normal probabilities (1956).
    """
    return apply("owens_t", "owens_t", h, a)


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Return Fresnel's integrals (S, C) of sin(pi t^2 / 2) and cos(pi t^2 / 2) from 0 to x."""
    (x,) = inexact("fresnel", x)
    return bind("fresnel_sine", x), bind("fresnel_cosine", x)


# --- Faddeeva's function --------------------------------------------------------------------------


def _weideman(count: int) -> tuple[float, tuple[float, ...]]:
    """Return L and the coefficients of Weideman's expansion of w in powers of (L + iz)/(L - iz).

    Source: J. Weideman, Computation of the complex error function (1994), the program `cef`.
    """
    half = 2 * count
    k = np.arange(-half + 1, half)
    scale = math.sqrt(count / math.sqrt(2))
    t = scale * np.tan(k * (math.pi / half) / 2)
    values = np.concatenate([[0.0], np.exp(-(t**2)) * (scale**2 + t**2)])
    series = np.real(np.fft.fft(np.fft.fftshift(values))) / (2 * half)
    return scale, tuple(series[count:0:-1].tolist())


_SCALE, _COEFFICIENTS = _weideman(44)
_FAR = 6.0  # from where on the continued fraction is right to rounding with its 30 levels


def _upper_w(z: Array) -> Array:
    """Return w(z) for Im z >= 0."""
    far = abs(z) > _FAR
    outer = xn.where(far, z, 10j)
    fraction = outer
    for k in range(30, 0, -1):  # Laplace's: z - (1/2)/(z - 1/(z - (3/2)/(z - ...))), DLMF 7.9.3
        fraction = outer - (0.5 * k) / fraction
    distant = (1j / math.sqrt(math.pi)) / fraction
    inner = xn.where(far, 0, z)
    bottom = _SCALE - 1j * inner
    ratio = (_SCALE + 1j * inner) / bottom
    series = _COEFFICIENTS[0] + 0 * ratio
    for c in _COEFFICIENTS[1:]:
        series = series * ratio + c
    near = 2 * series / (bottom * bottom) + (1 / math.sqrt(math.pi)) / bottom
    result: Array = xn.where(far, distant, near)
    return result


def wofz(z: ArrayLike) -> Array:
    """Return Faddeeva's function w(z) = exp(-z^2) erfc(-iz), complex also for real z.

    Accuracy: about 1e-13 in complex128 and 1e-6 in complex64, relative to |w|, but near zeros of
    w, which are below the real axis. Source: DLMF 7.2.3.
    """
    (z,) = inexact("wofz", z)
    if not dtypes.is_complex(z.aval.dtype):
        size = xn.abs(z)
        gauss = xn.exp(-(xn.minimum(size, 1e3) ** 2))
        return bind("complex", gauss, bind("dawsn", z) * (2 / math.sqrt(math.pi)))
    lower = z.imag < 0
    upper = _upper_w(xn.where(lower, -z, z))
    below = xn.where(lower, z, 0)
    result: Array = xn.where(lower, 2 * xn.exp(-below * below) - upper, upper)
    return result


# ------------------------------------------------------------------------------------ logarithms
# Logarithms, entropies and their inverses: xlogy, entr, kl_div, logit, boxcox, logsumexp,
# softmax.


def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x log(y), 0 where x = 0 (and y is not NaN).

    Differentiable in: x, with log(y) everywhere; y, with x / y, 0 where x = 0.
    """
    return apply("xlogy", "xlogy", x, y)


def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x log(1 + y), 0 where x = 0 (and y is not NaN). Derivatives as of `xlogy`."""
    return apply("xlog1py", "xlog1py", x, y)


def entr(x: ArrayLike) -> Array:
    """Return the entropy -x log(x) for x >= 0, where its derivative at 0 is inf; -inf for x < 0."""
    return _entr(x)


@dispatch_on(1)
def _entr(x: Any) -> Array:
    (x,) = inexact("entr", x)
    below = x < 0
    inside = xn.where(below, 1, x)  # the derivative of the logarithm of what is below is NaN
    result: Array = xn.where(below, -math.inf, -bind("xlogy", inside, inside))
    return result


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Return the relative entropy p log(p / q) for p > 0, q > 0; 0 for p = 0, q >= 0; else inf."""
    return _rel_entr(p, q)


@dispatch_on(2)
def _rel_entr(p: Any, q: Any) -> Array:
    p, q = broadcast_checked("rel_entr", *inexact("rel_entr", p, q))
    both = (p > 0) & (q > 0)
    zero = (p == 0) & (q >= 0)
    # log(p / q) is 2 log(sqrt(p) / sqrt(q)), where p / q or its square would leave the range;
    # operands whose quotient would be 0 or infinite are put out of its way first
    most = 2.0 ** (dtypes.finfo(p.dtype).maxexp // 2 - 4)
    far = both & ((p > most * q) | (q > most * p))
    roots = xn.sqrt(xn.where(far, p, 1)) / xn.sqrt(xn.where(far, q, 1))
    usual = both & ~far
    ratio = xn.where(usual, p, 1) / xn.where(usual, q, 1)
    ratio = xn.where(zero, xn.where(zero, p, 0) / xn.where(zero & (q > 0), q, 1), ratio)
    value = bind("xlogy", xn.where(both | zero, p, 1), xn.where(far, roots, ratio))
    value = xn.where(both | zero, xn.where(far, 2 * value, value), math.inf)
    # 0, and NaN with the derivative NaN where an operand is
    broken = xn.square(xn.where(xn.isnan(p) | xn.isnan(q), p + q, 0))
    result: Array = value + broken
    return result


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Return the Kullback-Leibler term p log(p / q) - p + q; inf where p or q is negative."""
    given = inexact("kl_div", p, q)
    p, q = map(wide, given)
    inside = (p >= 0) & (q >= 0)
    endless = inside & ((p == math.inf) != (q == math.inf))
    p, q = xn.where(endless, 1, p), xn.where(endless, 1, q)  # whose derivatives are numbers
    value = rel_entr(p, q) + xn.where(inside, q - p, 0)
    found: Array = xn.where(endless, math.inf, value)
    return cast(found, given[0].dtype, found.aval.weak_type)


def expit(x: ArrayLike) -> Array:
    """Return the logistic function 1 / (1 + e^-x)."""
    return nn.sigmoid(x)


def logit(x: ArrayLike) -> Array:
    """Return log(x / (1 - x)), the inverse of `expit`; infinite at 0 and 1, NaN outside."""
    return apply("logit", "logit", x)


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Return (x^lmbda - 1) / lmbda, which is log(x) at lmbda = 0.

    Source: G. Box and D. Cox, An analysis of transformations (1964).
    """
    return _boxcox(x, lmbda, "log", "boxcox")


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Return ((1 + x)^lmbda - 1) / lmbda, which is log(1 + x) at lmbda = 0."""
    return _boxcox(x, lmbda, "log1p", "boxcox1p")


@dispatch_on(2)
def _boxcox(x: Any, lmbda: Any, log: str, operation: str) -> Array:
    """Return (e^u - 1) / lmbda with u = lmbda log(x), for small u by its series."""
    given = broadcast_checked(operation, *inexact(operation, x, lmbda))
    x, power = map(wide, given)
    base = x if log == "log" else 1 + x
    at_end = (base == 0) | (base == math.inf)
    logarithm = bind(log, xn.where(at_end, int(log == "log"), x))
    u = power * logarithm
    near = abs(u) < 0.02
    v = xn.where(near, u, 0)
    series = 1 + v / 2 * (1 + v / 3 * (1 + v / 4 * (1 + v / 5 * (1 + v / 6 * (1 + v / 7)))))
    far = xn.expm1(xn.where(near, 1, u)) / xn.where(near, 1, power)
    inside = xn.where(near, logarithm * series, far)
    # at the ends, where the logarithm is infinite, the power has the derivatives
    still = at_end & (power == 0)
    moves = at_end & ~still
    exponent = xn.where(moves, power, 1)
    end = (xn.where(moves, base, 1) ** exponent - 1) / exponent
    # the derivative in the power, log(x)^2 / 2, is infinite where the logarithm is
    logarithm = bind("log", xn.where(still, base, 1)) * xn.exp(xn.where(base == 0, -power, power))
    end = xn.where(still, logarithm, end)
    found: Array = xn.where(at_end, end, inside)
    return cast(found, given[0].dtype, found.aval.weak_type)


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Return e^x divided by its sum over the axes, None for all of them."""
    return nn.softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Return the logarithm of `softmax`."""
    return nn.log_softmax(x, axis=axis)


# ------------------------------------------------------------------------------------- integrals
# Integrals of elementary functions: expi, exp1, expn, sici, spence.


def expi(x: ArrayLike) -> Array:
    """Return the exponential integral Ei(x) = int_-inf^x e^t / t dt.

    For positive x it is the principal value; at 0 it is -inf. Source: DLMF 6.2.5.
    """
    return apply("expi", "expi", x)


def exp1(x: ArrayLike) -> Array:
    """Return the exponential integral E_1(x) = int_x^inf e^-t / t dt; NaN for x < 0."""
    return apply("expn", "exp1", 1.0, x)


def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Return the generalized exponential integral E_n(x) = int_1^inf e^(-x t) / t^n dt.

    Args:
      n: whole numbers, 0 or more.
      x: numbers, 0 or more.

    Differentiable in: x. Source: DLMF 8.19.
    """
    return apply("expn", "expn", n, x)


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Return the integrals of sine and cosine.

        Si(x) = int_0^x sin(t) / t dt,    Ci(x) = -int_x^inf cos(t) / t dt

    Of negative x Ci is that of -x, its real part. Source: DLMF 6.2.9, 6.2.11.
    """
    (x,) = inexact("sici", x)
    return bind("sine_integral", x), bind("cosine_integral", x)


def spence(x: ArrayLike) -> Array:
    """Return Spence's function int_1^x log(t) / (1 - t) dt, the dilogarithm of 1 - x, for x >= 0.

    Example:
      >>> round(float(spence(0.0)), 5)  # pi^2 / 6
      1.64493
    """
    return apply("spence", "spence", x)


# -------------------------------------------------------------------------------------- families
# Families of functions with orders: Bessel, hypergeometric, spherical harmonics, Bernoulli.


def i0(x: ArrayLike) -> Array:
    """Return the modified Bessel function I_0(x)."""
    return apply("bessel_i0", "i0", x)


def i0e(x: ArrayLike) -> Array:
    """Return exp(-|x|) I_0(x)."""
    return apply("bessel_i0e", "i0e", x)


def i1(x: ArrayLike) -> Array:
    """Return the modified Bessel function I_1(x)."""
    return apply("bessel_i1", "i1", x)


def i1e(x: ArrayLike) -> Array:
    """Return exp(-|x|) I_1(x)."""
    return apply("bessel_i1e", "i1e", x)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Return the Bessel functions J_0(z), ..., J_v(z).

    Miller's algorithm: the recurrence J_{n-1} = 2n/z J_n - J_{n+1} downwards from order `n_iter`,
    where J is taken for 0, then scaled by J_0 + 2 J_2 + 2 J_4 + ... = 1 (DLMF 3.6, 10.12.4).
    Near 0, where that has no derivative, it is the power series (DLMF 10.2.2).

    Args:
      z: numbers, of size well below `n_iter`.
      v: the greatest order.
      n_iter: where the recurrence begins, at least `v + 1`.

    Returns:
      An array of shape (v + 1, *z.shape).
    """
    order, start = static_int(v, "bessel_jn", "v"), static_int(n_iter, "bessel_jn", "n_iter")
    require(
        0 <= order < start, "bessel_jn",
        "the recurrence must begin above the orders that it gives.", got={"v": v, "n_iter": n_iter},
        expected="0 <= v < n_iter",
    )  # fmt: skip
    (z,) = inexact("bessel_jn", z)
    near = abs(z) < 0.125
    safe = xn.where(near, 1, z)
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
    result: Array = xn.where(near, _bessel_series(xn.where(near, z, 0), order), scaled)
    return result


def _bessel_series(z: Any, order: int) -> Any:
    """Return J_0, ..., J_v for |z| < 1/8: (z/2)^n / n! sum (-z^2/4)^k / (k! (n + 1)_k)."""
    orders = xn.arange(order + 1, dtype=z.dtype).reshape(-1, *[1] * z.ndim)
    square, series = -z * z / 4, xn.ones_like(z)
    for k in range(6, 0, -1):  # the next term is below 1e-17
        series = 1 + square / (k * (orders + k)) * series
    return (z / 2) ** orders / gamma(orders + 1) * series


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return Kummer's confluent hypergeometric function M(a, b, x) = sum (a)_k/(b)_k x^k/k!.

    Accuracy: as of other functions for positive a, b and b - a; parameters of different signs may
    make terms of the series cancel. Differentiable in: a, b, x. Infinite where b = 0, -1, ...,
    unless the series ends before. Source: DLMF 13.2.2.
    """
    return apply("hyp1f1", "hyp1f1", a, b, x)


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
    require(last >= 0, "bernoulli", "n is negative.", got=n, expected="0 or more")
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
      n: degrees, whole numbers 0 <= n; NaN and infinite ones give NaN.
      m: orders, whole numbers |m| <= n.
      theta: polar angles in radians, from 0 to pi; beyond, P is that of their cosine.
      phi: azimuths in radians.
      diff_n: must be None: derivatives are taken by transformations.
      n_max: the greatest degree, a Python int; greater ones are taken for it. None for that of `n`,
        which must then be concrete.

    Returns:
      A complex array of the broadcast shape.

    Raises:
      TypeError: an operand is complex.

    Differentiable in: theta, phi. Source: DLMF 14.30.1; the recurrence of the normalized functions
    is W. Press et al., Numerical Recipes, 3rd edition, 6.7.
    """
    require(
        diff_n is None, "sph_harm_y", "has no derivatives.", got={"diff_n": diff_n},
        expected="None", hint="differentiate the function",
    )  # fmt: skip
    n, m = dispatch.array_of(n, "sph_harm_y"), dispatch.array_of(m, "sph_harm_y")
    for number in (n, m):
        require(
            not dtypes.is_complex(number.dtype), "sph_harm_y",
            "requires degrees and orders that are integers, got {}.", number, error=TypeError,
        )  # fmt: skip
    theta, phi = inexact("sph_harm_y", theta, phi)
    most = _greatest_degree(n) if n_max is None else static_int(n_max, "sph_harm_y", "n_max")
    has_degree = xn.isfinite(n)
    n, m, theta, phi = xn.broadcast_arrays(xn.minimum(n, most), m, theta, phi)
    size = xn.abs(m)
    legendre = _normalize_legendre(n, size, theta, most)
    odd = (m < 0) & (size % 2 == 1)
    legendre = xn.where(has_degree, xn.where(odd, -legendre, legendre), math.nan)
    angle = m.astype(phi.dtype) * phi
    return bind("complex", legendre * xn.cos(angle), legendre * xn.sin(angle))


def _greatest_degree(n: Array) -> int:
    try:
        degrees = np.asarray(n)
    except TypeError:
        raise ConcretizationTypeError(message(
            "sph_harm_y", "the greatest degree is not known while tracing.",
            expected="n_max=, a Python int",
        )) from None  # fmt: skip
    return int(np.max(degrees, initial=0, where=np.isfinite(degrees)))


def _normalize_legendre(n: Any, m: Any, theta: Any, most: int) -> Array:
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
