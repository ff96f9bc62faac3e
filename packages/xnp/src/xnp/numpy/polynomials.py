"""Polynomials as vectors of coefficients, the highest power first: polyval, polyfit, roots, ..."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from xnp.numpy.calculus import convolve
from xnp.numpy.contraction import outer
from xnp.numpy.creation import asarray, eye, ones, zeros_like
from xnp.numpy.dispatch import array_of, broadcast_all, common_shape, inexact, promote
from xnp.numpy.indexing import read
from xnp.numpy.ranges import arange, vander
from xnp.numpy.rearranging import roll
from xnp.numpy.reductions import argmax, square_distance
from xnp.numpy.selection import argsort, flatten_elements, where
from xnp.numpy.shaping import atleast_1d, concatenate
from xnp.primitives.table import bind, broadcast_to, fill, reshape, scalar_like, select
from xprim import Array, ConcreteArray, dtypes, get_primitive, shaped_array
from xprim.avals import size_of
from xprim.errors import ConcretizationTypeError, message
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval",
    "roots",
]  # fmt: skip

__dir__ = __all__.copy


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = None) -> Array:
    """Return the values of a polynomial at places, by Horner's scheme.

    Args:
      p: the coefficients, the highest power first.
      x: the places.
      unroll: how many steps a compiled loop takes at once, a positive number or None; here there
        is no loop: all are written out.

    Returns:
      An array of the shape of `x`.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import xnp
      >>> xnp.polyval(xnp.array([1, 0, 2]), xnp.array([1, 3]))
      Array([ 3, 11], dtype=int32)
    """
    require(
        unroll is None or size_of(unroll) >= 1, "polyval", "unroll must be positive, got {}.",
        unroll,
    )  # fmt: skip
    p = asarray(p)
    x, p = promote("polyval", asarray(x), p)
    require(p.aval.ndim, "polyval", "the coefficients must have a dimension, got a scalar.")
    row = shaped_array(p.aval.shape[1:], p.aval.dtype)
    shape = common_shape("polyval", [x.aval, row])
    x, result = broadcast_to(x, shape), fill(shape, 0, x.aval.dtype)
    for k in range(p.aval.shape[0]):
        result = bind("add", bind("mul", result, x), broadcast_to(read(p, k), shape))
    return result


def _of_one_length(a1: Any, a2: Any) -> Any:
    """Return polynomials with as many coefficients as the longer one, which broadcast.

    Coefficients stand along the first dimension; each may be an array.
    """
    pair = [atleast_1d(a) for a in promote("polyadd", asarray(a1), asarray(a2))]
    size = max(a.aval.shape[0] for a in pair)
    rank = max(a.aval.ndim for a in pair)
    same = []
    for a in pair:
        first, *rest = a.aval.shape
        edges = ((size - first, 0, 0), *[(0, 0, 0)] * len(rest))
        longer = bind("pad", a, scalar_like(a, 0), padding_config=edges)
        same.append(reshape(longer, (size, *[1] * (rank - 1 - len(rest)), *rest)))
    return broadcast_all("polyadd", *same)


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return the sum of two polynomials.

    Args:
        a1: the coefficients of a polynomial, a vector, the highest power first.
        a2: those of another one.

    Returns:
        The coefficients, a vector, the highest power first; zeros in front stay.

    Example:
        >>> import xnp
        >>> xnp.polyadd(xnp.array([1, 2]), xnp.array([1, 0, 3]))
        Array([1, 1, 5], dtype=int32)
    """
    return bind("add", *_of_one_length(a1, a2))


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return the difference of two polynomials.

    Args:
        a1: the coefficients of a polynomial, a vector, the highest power first.
        a2: those of another one.

    Returns:
        The coefficients, a vector, the highest power first; zeros in front stay.

    Example:
        >>> import xnp
        >>> xnp.polysub(xnp.array([1, 2]), xnp.array([1, 0, 3]))
        Array([-1,  1, -1], dtype=int32)
    """
    return bind("sub", *_of_one_length(a1, a2))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Return the product of two polynomials; one without coefficients is 0, a scalar is constant.

    Booleans are counted as floats, where NumPy's products and sums of them are booleans.

    Args:
      a1: the coefficients of a polynomial, a vector, the highest power first.
      a2: those of another one.
      trim_leading_zeros: whether to drop zeros in front of the factors, which needs concrete ones.

    Returns:
      The coefficients, a vector, the highest power first.

    Example:
      >>> import xnp
      >>> xnp.polymul(xnp.array([1, 1]), xnp.array([1, -1]))
      Array([ 1.,  0., -1.], dtype=float32)
    """
    a1, a2 = [atleast_1d(array_of(a, "polymul"))
              for a in inexact("polymul", asarray(a1), asarray(a2))]  # fmt: skip
    if trim_leading_zeros and (a1.aval.size > 1 or a2.aval.size > 1):
        a1, a2 = [asarray(np.trim_zeros(np.asarray(a), "f")) for a in (a1, a2)]
    a1, a2 = [a if a.aval.size else fill((1,), 0, a.aval.dtype) for a in (a1, a2)]
    return convolve(a1, a2)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Return quotient and remainder of two polynomials.

    Args:
      u: the coefficients of the dividend, a vector, the highest power first.
      v: those of the divisor.
      trim_leading_zeros: whether to drop zeros in front of the remainder, which needs concrete
        ones. NumPy always does.

    Returns:
      The coefficients of quotient and remainder, a pair of vectors.

    Raises:
        TypeError: `v` is not an array.

    Example:
      >>> import xnp
      >>> xnp.polydiv(xnp.array([1., 0., -1.]), xnp.array([1., 1.]))
      (Array([ 1., -1.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    rest, divisor = map(atleast_1d, inexact("polydiv", asarray(u), asarray(v)))
    m, n = rest.aval.size - 1, divisor.aval.size - 1
    quotients = []
    scale = 1 / divisor[0]
    for k in range(m - n + 1):
        d = scale * rest[k]
        quotients.append(d.reshape(1))
        rest = rest.at[k : k + n + 1].add(-d * divisor)
    if trim_leading_zeros:  # what rounding leaves of a zero counts as one
        host, least = np.asarray(rest), float(dtypes.finfo(rest.dtype).eps) ** 0.5
        counts = ~(np.abs(host) <= least)  # NaN too
        rest = asarray(host[np.argmax([*counts[:-1], True]) :])
    return concatenate(quotients or [fill((1,), 0, rest.aval.dtype)]), rest


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Return the `m`-th derivative of a polynomial.

    Integers become the default float, where NumPy keeps integers.

    Args:
      p: the coefficients, a vector, the highest power first.
      m: how many times to differentiate, a Python int.

    Returns:
      The coefficients, a vector.

    Example:
      >>> import xnp
      >>> xnp.polyder(xnp.array([1, 2, 3]))
      Array([2., 2.], dtype=float32)
    """
    m = operator.index(m)
    require(m >= 0, "polyder", "m must not be negative, got {}.", m)
    found = _coefficients("polyder", p)
    for _ in range(m):
        count = found.shape[0] - 1
        if count <= 0:
            return found[:0]
        found = found[:-1] * asarray(np.arange(count, 0, -1), found.dtype)
    return found


def _coefficients(name: str, p: Any) -> Array:
    """Return a floating array of at least one dimension, or raise a ValueError."""
    found: Array = inexact(name, asarray(p))[0]
    require(found.aval.ndim, name, "takes vectors, got {}.", found)
    return found


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | Sequence[ArrayLike] | None = None) -> Array:
    """Return the `m`-th integral of a polynomial, with constants `k` of integration.

    Args:
      p: the coefficients, a vector, the highest power first.
      m: how many times to integrate, a Python int.
      k: the constants of integration, one for all or one for each time; None for 0.

    Returns:
      The coefficients, a vector.

    Example:
      >>> import xnp
      >>> xnp.polyint(xnp.array([2, 2]))
      Array([1., 2., 0.], dtype=float32)
    """
    m = operator.index(m)
    require(m >= 0, "polyint", "m must not be negative, got {}.", m)
    found = _coefficients("polyint", p)
    constants = asarray(0.0 if k is None else k).reshape(-1)
    require(
        constants.size in (1, m), "polyint", "k must be a number or {} numbers, got {}.", m,
        constants.size,
    )  # fmt: skip
    np.empty(found.shape[0] + m)  # raises where so many coefficients are more than memory holds
    for i in range(m):
        count = found.shape[0]
        divisors = asarray(np.arange(count, 0, -1), found.dtype)
        constant = constants[i if constants.size > 1 else 0].astype(found.dtype)
        found = concatenate([found / divisors, constant.reshape(1)])
    return found


def poly(seq_of_zeros: ArrayLike) -> Array:
    """Return the polynomial with given roots, or the characteristic one of a matrix.

    Args:
      seq_of_zeros: the roots, a vector; or a square matrix, whose eigenvalues they are.

    Returns:
      The coefficients, a vector, the highest power first. Of complex roots it stays complex, where
      NumPy returns real numbers if all roots come in pairs.

    Example:
      >>> import xnp
      >>> xnp.poly(xnp.array([1., 2.]))
      Array([ 1., -3.,  2.], dtype=float32)
    """
    (zeros,) = inexact("poly", asarray(seq_of_zeros))
    if zeros.ndim == 2:
        zeros = _eigenvalues(zeros)
    if zeros.ndim == 1 and not zeros.size:
        return scalar_like(zeros, 1)  # as in NumPy
    zeros, result = flatten_elements(zeros), fill((1,), 1, zeros.dtype)
    for k in range(zeros.size):
        factor = concatenate([fill((1,), 1, zeros.dtype), -zeros[k].reshape(1)])
        result = convolve(result, factor)
    return result


def _eigenvalues(matrix: Any) -> Any:
    return bind(
        "eig",
        matrix,
        compute_left_eigenvectors=False,
        compute_right_eigenvectors=False,
        enable_eigvec_derivs=False,
    )


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Return the roots of a polynomial, as the eigenvalues of its companion matrix.

    Args:
      p: the coefficients, the highest power first.
      strip_zeros: whether to drop zeros in front and at the end, which needs concrete ones. If not,
        there is a NaN behind the roots for each zero in front.

    Returns:
      The roots, a complex vector, where NumPy returns a real one if all are real.

    Example:
      >>> import xnp
      >>> xnp.sort(xnp.roots(xnp.array([1., -3., 2.])).real).round(3)
      Array([1., 2.], dtype=float32)
    """
    p = asarray(p)
    require(p.ndim <= 1, "roots", "the coefficients must be a vector, got {}.", p)
    p = flatten_elements(p)
    if strip_zeros:
        if not isinstance(p, ConcreteArray):
            raise ConcretizationTypeError(
                p, "roots", "which coefficients are zero depends on values; pass strip_zeros=False."
            )
        host = np.asarray(p)
        nonzero = np.flatnonzero(host)
        if not len(nonzero):
            return fill((0,), 0, dtypes.to_complex_dtype(p.dtype))
        trailing = len(host) - 1 - int(nonzero[-1])
        p = p[int(nonzero[0]) : int(nonzero[-1]) + 1]
    else:
        trailing = 0
    (p,) = inexact("roots", p)
    complex_dtype = dtypes.to_complex_dtype(p.dtype)
    count = p.shape[0] - 1
    if count < 1:
        return fill((trailing,), 0, complex_dtype)
    found = (_roots_at_most if not strip_zeros else _roots_of_all)(p).astype(complex_dtype)
    return concatenate([found, fill((trailing,), 0, complex_dtype)])


def _roots_of_all(p: Any) -> Array:
    """Return the roots of a polynomial whose first coefficient is not zero."""
    companion = eye(p.shape[0] - 1, k=-1, dtype=p.dtype).at[0].set(-p[1:] / p[0])
    result: Array = _eigenvalues(companion)
    return result


def _roots_at_most(p: Any) -> Array:
    """Return the roots of a polynomial of any degree up to its size, NaN behind them."""
    # z zeros that are moved from the front to the end add z roots that are 0, which go last
    lacking = argmax(concatenate([p != 0, ones(1, bool)]))
    # all zero: no roots to move, and derivatives of roots of unity, which are numbers, are left out
    p = where((p != 0).any(), roll(p, -lacking), zeros_like(p).at[0].set(1).at[-1].set(-1))
    found = _roots_of_all(p)
    found = found[argsort((found == 0) & (lacking > 0), stable=True)]
    places = arange(found.shape[0])
    result: Array = where(places < found.shape[0] - lacking, found, complex(math.nan, math.nan))
    return result


@overload
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = ..., full: Literal[False] = ...,
    w: ArrayLike | None = ..., cov: Literal[False] = ...,
) -> Array: ...  # fmt: skip
@overload
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = ..., full: Literal[False] = ...,
    w: ArrayLike | None = ..., cov: Literal[True, 'unscaled'] = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = ..., full: Literal[True] = ...,
    w: ArrayLike | None = ..., cov: bool | str = ...,
) -> tuple[Array, ...]: ...  # fmt: skip
@overload
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = ..., full: bool = ...,
    w: ArrayLike | None = ..., cov: bool | str = ...,
) -> Array | tuple[Array, ...]: ...  # fmt: skip
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False,
    w: ArrayLike | None = None, cov: bool | str = False,
) -> Array | tuple[Array, ...]:  # fmt: skip
    """Return the polynomial of a degree that fits points best in the sense of least squares.

    Args:
      x: places, a vector.
      y: values, a vector or a column for each polynomial.
      deg: the degree.
      rcond: singular values below this part of the largest count as zero.
      full: whether to return residuals, rank, singular values and rcond as well.
      w: weights of the points.
      cov: whether to return the covariance matrix of the coefficients, for several polynomials
        along the last dimension; "unscaled" does not scale. It is real where the places are, and
        that of complex places A is (A^H A)^-1 times the mean of squared sizes of residuals.

    Returns:
      The coefficients, the highest power first, in a column for each polynomial; with `full` or
      `cov` a tuple that begins with them.

    Raises:
        TypeError: an operand is not an array.

    Example:
      >>> import xnp
      >>> xnp.polyfit(xnp.array([0., 1., 2.]), xnp.array([1., 3., 5.]), 1).round(3)
      Array([2., 1.], dtype=float32)
    """
    x, y = asarray(x), asarray(y)
    has_real_places = not dtypes.is_complex(x.dtype)
    x, y = inexact("polyfit", x, y)
    order = operator.index(deg) + 1
    require(order >= 1, "polyfit", "deg must not be negative, got {}.", deg)
    require(
        x.ndim == 1 and x.size and y.ndim in (1, 2) and x.shape[0] == y.shape[0], "polyfit",
        "takes a vector of places and as many values, got {} and {}.", x, y, error=TypeError,
    )  # fmt: skip
    rcond = x.size * float(dtypes.finfo(x.dtype).eps) if rcond is None else rcond
    lhs, rhs = vander(x, order), y
    if w is not None:
        w = asarray(w, x.dtype)
        lhs = lhs * w[:, None]
        rhs = rhs * (w[:, None] if rhs.ndim == 2 else w)
    scale = ((lhs * lhs).sum(0)) ** 0.5
    u, s, vt, rank = _singular(lhs / scale[None], rcond)
    projected = u.conj().T @ rhs
    inverse = select(array_of(s > rcond * s[0], "polyfit"), 1 / s, scalar_like(s, 0))
    coefficients = vt.conj().T @ (projected * (inverse[:, None] if rhs.ndim == 2 else inverse))
    coefficients = (coefficients.T / scale.reshape(*[1] * (rhs.ndim - 1), order)).T
    if full:
        residuals = square_distance(lhs @ coefficients, rhs).sum(0).reshape(-1)
        return coefficients, residuals, rank, s, asarray(rcond)
    if not cov:
        return array_of(coefficients, "polyfit")
    base = (vt.conj().T * inverse[None] ** 2) @ vt / outer(scale, scale.conj())
    if has_real_places:
        base = base.real
    base = base.reshape(order, order, *[1] * (rhs.ndim - 1))  # the last counts polynomials
    if cov == "unscaled":
        return coefficients, base
    variance = square_distance(lhs @ coefficients, rhs).sum(0) / _freedom(x.size, order)
    return coefficients, base * variance.reshape(base.shape[2:] and (1, 1, -1))


def _freedom(count: int, order: int) -> int:
    """Return how many points more there are than coefficients, or raise: they give the scale."""
    if count <= order:
        raise ValueError(message(
            "polyfit", "so few points say nothing of the covariance's scale.",
            got=f"{count} points, deg={order - 1}", expected="more points than deg + 1",
            hint="cov='unscaled' leaves the scale out",
        ))  # fmt: skip
    return count - order


def _singular(matrix: Any, rcond: float) -> Any:
    svd = get_primitive("svd")
    s, u, vt = svd.bind(array_of(matrix, "polyfit"), full_matrices=False, compute_uv=True)
    return u, s, vt, (s > rcond * s[0]).sum()


boundaries(globals())
