"""`xnp.lax`: special functions. Operands are floats of one dtype.

They are right to a few ulp of float32, and to about 1e-13 of float64, evaluated and compiled alike;
at poles and at the ends of their domains they have the limits that SciPy has.
"""

from __future__ import annotations

from xnp.docstrings import complete
from xnp.docstrings.late_operations import SPECIAL
from xnp.lax.elementwise_arithmetic import apply
from xnp.lax.operands import leveled, pair, several
from xnp.primitives.accuracy import Accuracy
from xnp.primitives.special_bessel import bessel_i0e_p, bessel_i1e_p
from xnp.primitives.special_beta import regularized_incomplete_beta_p
from xnp.primitives.special_error import erf_inv_p, erf_p, erfc_p
from xnp.primitives.special_gamma import digamma_p, lgamma_p, polygamma_p, zeta_p
from xnp.primitives.special_incomplete import (
    igamma_grad_a_p,
    igamma_p,
    igammac_p,
    random_gamma_grad_p,
)
from xprim import Array
from xprim.errors import message
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike


def erf(x: ArrayLike) -> Array:
    """Return the error function, 2/sqrt(pi) int_0^x exp(-t^2) dt."""
    return apply(erf_p, x)


def erfc(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return 1 - erf(x), accurate for large x.

    There is one algorithm for it, so that an `accuracy` is checked but chooses nothing.
    """
    if not isinstance(accuracy, Accuracy):
        raise TypeError(message(
            "erfc", f"{accuracy!r} is no accuracy.",
            expected="None, an AccuracyMode or a Tolerance",
        ))  # fmt: skip
    return apply(erfc_p, x)


def erf_inv(x: ArrayLike) -> Array:
    """Return y with erf(y) = x; infinite at -1 and 1, NaN outside."""
    return apply(erf_inv_p, x)


def lgamma(x: ArrayLike) -> Array:
    """Return log |Gamma(x)|; infinite at 0, -1, -2, ..."""
    return apply(lgamma_p, x)


def digamma(x: ArrayLike) -> Array:
    """Return the derivative of lgamma; NaN at 0, -1, -2, ..."""
    return apply(digamma_p, x)


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """Return the m-th derivative of digamma, for a whole number m given as a float.

    Differentiable in x.
    """
    return polygamma_p.bind(*pair(m, x))[0]  # type: ignore[no-any-return]


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Return the Hurwitz zeta function, sum_{k >= 0} (q + k)^-x for x > 1. Differentiable in q."""
    return zeta_p.bind(*pair(x, q))[0]  # type: ignore[no-any-return]


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized lower incomplete gamma function P(a, x), for a > 0 and x >= 0."""
    return igamma_p.bind(*pair(a, x))[0]  # type: ignore[no-any-return]


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x)."""
    return igammac_p.bind(*pair(a, x))[0]  # type: ignore[no-any-return]


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the derivative of `igamma(a, x)` with respect to a."""
    return igamma_grad_a_p.bind(*pair(a, x))[0]  # type: ignore[no-any-return]


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """Return dx/da of a sample x of the gamma distribution of shape a, its quantile held fixed."""
    return random_gamma_grad_p.bind(*pair(a, x))[0]  # type: ignore[no-any-return]


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized incomplete beta function I_x(a, b), for a, b > 0 and 0 <= x <= 1.

    Differentiable in x.
    """
    operands = leveled(*several(a, b, x))
    return regularized_incomplete_beta_p.bind(*operands)[0]  # type: ignore[no-any-return]


def bessel_i0e(x: ArrayLike) -> Array:
    """Return exp(-|x|) I0(x), the modified Bessel function of order 0, scaled."""
    return apply(bessel_i0e_p, x)


def bessel_i1e(x: ArrayLike) -> Array:
    """Return exp(-|x|) I1(x), the modified Bessel function of order 1, scaled."""
    return apply(bessel_i1e_p, x)


__all__ = [
    "bessel_i0e", "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p", "betainc", "digamma", "digamma_p",
    "erf", "erf_inv", "erf_inv_p", "erf_p", "erfc", "erfc_p", "igamma", "igamma_grad_a",
    "igamma_grad_a_p", "igamma_p", "igammac", "igammac_p", "lgamma", "lgamma_p", "polygamma",
    "polygamma_p", "random_gamma_grad", "regularized_incomplete_beta_p", "zeta", "zeta_p",
]  # fmt: skip

__dir__ = __all__.copy

complete(globals(), SPECIAL)


boundaries(globals(), written=True)
