"""Where the net of derivatives lets results differ, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tests.nets.special_operands import NON_FINITE

Points = Callable[..., np.ndarray]


def ties(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return where the operands are equal."""
    return x == y


def infinite(*xs: np.ndarray) -> np.ndarray:
    """Return where an operand is infinite."""
    return np.any([np.isinf(x) for x in xs], axis=0)


def nan(*xs: np.ndarray) -> np.ndarray:
    """Return where an operand is NaN."""
    return np.any([np.isnan(x) for x in xs], axis=0)


def zero(*xs: np.ndarray) -> np.ndarray:
    """Return where an operand is zero."""
    return np.any([x == 0 for x in xs], axis=0)


def not_finite(*xs: np.ndarray) -> np.ndarray:
    """Return where an operand is infinite or NaN."""
    return infinite(*xs) | nan(*xs)


def zero_exponent(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return where x is zero, infinite or NaN, and y such that x^y is constant or x itself."""
    return ((y == 0) | (y == 1)) & ((x == 0) | ~np.isfinite(x))


def _small(x: np.ndarray) -> np.ndarray:
    return np.abs(x) < 1e-3


def _far(x: np.ndarray) -> np.ndarray:
    return np.abs(x) > 80


_NO_CONTAGION = "a number, where the oracle multiplies 0 by infinity"
_SHARES = "equal operands share the derivative, as they do in maximum and max"

# (elementwise expressions as a pattern, the points, why ours is better)
NUMBERS_BETTER_THAN_THE_ORACLE: list[tuple[str, Points, str]] = [
    (r"np\.angle\(x\)", _small, "no overflow of 1 / x^2"),
    (r"np\.i0\(x\)", lambda x: _far(x) | infinite(x), "its product with e^x overflows later"),
    (r"np\.i0\(x\)", zero, "the second derivative is a half, not 0"),
    (r"lax\.igammac?\(\d\., x\)", zero, "the slopes of a polynomial, where the oracle has NaN"),
    (r"lax\.(lgamma|digamma|polygamma|igammac?)\(.*", infinite, "the limits at infinity"),
    (r"lax\.betainc\(.*", lambda x: (x == 0) | (x == 1), "the limits at both ends"),
    (r"np\.modf\(x\)", not_finite, "the fractional part of infinity is the constant 0"),
    (r"(np|lax)\.a(rc)?tanh\(x\)", infinite, "the value is NaN there, and so is the slope"),
    (
        r"np\.ldexp\(x, -?\d+\)",
        lambda x: zero(x) | infinite(x),
        "the same power of 2 as elsewhere, not 1",
    ),
    (r"np\.sinc\(x\)", infinite, "NaN or the limit 0, as the value is"),
    (r"np\.sinc\(x\)", _small, "no cancellation of sin(x) / x^2 and cos(x) / x"),
    (
        r"(np|lax)\.a(rc)?cosh\(x\)",
        lambda x: (x < -1) | infinite(x),
        "NaN where the value is, and the limit 0 at infinity",
    ),
    (r"lax\.erfc?\(x\).*", lambda x, y=0.0: infinite(x), "the limit 0 at infinity"),
    (r"lax\.bessel_i1e\(x\)", nan, "the derivative at NaN is NaN"),
    (r"lax\.bessel_i1e\(x\)", _small, "digits beside 0, and there the limit of one side"),
    (r"nn\.celu\(x.*\)", lambda x: x == 0, "the second derivative from below, not a quarter of it"),
    (r"nn\.hard_(silu|swish)\(x\)", not_finite, _NO_CONTAGION),
    (r"nn\.(gelu|mish|silu|soft_sign|swish)\(.*\)", infinite, "the limits at infinity"),
    (r"nn\.squareplus\(x(, 0)?\)", infinite, "the limits at infinity"),
    (r"nn\.squareplus\(x, y\)", lambda x, y: infinite(x), "the limits at infinity"),
    (r"nn\.sparse_plus\(x\)", not_finite, _NO_CONTAGION),
    (
        r"nn\.log1mexp\(x\)",
        lambda x: (x < 0) | _far(x),
        "of a negative x the value is NaN, and so is the slope; far above 0 there is no overflow",
    ),
    (r"np\.f(max|min)\(x, y\)", ties, _SHARES),
    (r"np\.hypot\(x, y\)", lambda x, y: not_finite(x, y) | (x == 0) & (y == 0), _NO_CONTAGION),
    (
        r"np\.hypot\(x, y\)",
        lambda x, y: np.abs(x) == np.abs(y),
        "the second derivative along x of equal sizes, which the oracle before 0.12 has as 0",
    ),
    (r"np\.hypot\(x, y\)", zero, "the second derivative at (x, 0) is 1 / |x|, without overflow"),
    (
        r"np\.hypot\(x, y\)",
        lambda x, y: ties(abs(x), abs(y)),
        "the second derivative is y^2 / r^3 at equal operands, too, which the oracle orders",
    ),
    (r"np\.logaddexp2?\(x, y\)", infinite, _NO_CONTAGION),
    (
        r"(np\.(float_power|pow|power)|lax\.pow)\(x, y\)",
        zero_exponent,
        "x^0 is 1 for every x, and x^1 has no curvature",
    ),
    (r"np\.power\(x, 0\.\)", lambda x: zero(x) | nan(x), "x^0 is 1 for every x"),
    (r"nn\.squareplus\(x, 0\)", _small, "the second derivative of |x| is 0, not rounding"),
]

_EQUAL = {"ties", "equal", "zeros", "negative zeros", "two zeros", "equal operands", "a NaN",
          "NaNs", "zero operands", "two infinities", "negative infinities"}  # fmt: skip
_ZEROS = {"zeros", "negative zeros", "zero operands", "a zero", "two zeros"}
_EVERYWHERE = {"*"}
_SINGULAR = {"identity", "zeros", "rank 3", "rank 3 by equal rows", "rank 2", "ones",
             "repeated eigenvalues"}  # fmt: skip

# (expressions of arrays as a pattern, the names of points, why ours is better)
ARRAYS_BETTER_THAN_THE_ORACLE: list[tuple[str, set[str], str]] = [
    (r"np\.var\(v, ddof=4\)", _EVERYWHERE, "where the value is NaN the slope is NaN, not 0"),
    (r"np\.partition\(v, 2\)", _EQUAL, "which of equal elements stands first is open"),
    (r"np\.corrcoef\(.*\)", _EQUAL, "1 is reached, not limited: a half of the curvature is lost"),
    (r"laxlinalg\.lu\(s\)", {"rank 3"}, "the last pivot may be zero, where the oracle has NaN"),
    (r"np\.vander\(v\)", _ZEROS | {"a NaN", "NaNs"}, "x^0 is 1 for every x"),
    (r"linalg\.(vector_|matrix_)?norm\(.*\)", _ZEROS, "the slope of |x| at 0 is 0, not NaN"),
    (r"lax\.cum(max|min)\(.*\)", _EQUAL, "all equal elements share alike, as in max"),
    (
        r"(np\.(nan)?|lax\.)c?u?m?l?o?g?.*(max|min)\(.*\)",
        {"a NaN", "NaNs"},
        "the NaN that is the result has the slope",
    ),
    (
        r".*(ptp|norm|pad|reduce_window|\.max|\.min).*",
        {"a NaN", "NaNs"},
        "the NaN that is the result has the slope",
    ),
    (
        r"np\.(nan)?(quantile|percentile)\(.*\)",
        {"negative infinities", "two infinities"},
        "of equal infinities, which cannot be interpolated, the lower one has the slope",
    ),
    (r"lax\.cumlogsumexp\(.*\)", set(NON_FINITE), "shares of infinities, not NaN or more than 1"),
    (
        r"lax\.reduce\(v, -np.inf, lax.max, .*\)",
        {"negative infinities"},
        "the start shares a tie as an element does",
    ),
    (r"lax\.reduce_window\(v, .*\)", set(NON_FINITE), "padding takes no slope from an element"),
    (r"linalg\.det\(.*\)", _SINGULAR | {"a NaN", "an infinity"}, "cofactors and theirs"),
    (
        r"laxlinalg\.lu\(s\)",
        {"rank 3 by equal rows"},
        "the last pivot, which vanishes, divides nothing: differences agree",
    ),
    (r"nn\.logsumexp\(.*\)", {"zero operands"}, "nothing to sum: no slopes, where it has NaN"),
    (
        r"np\.roots\(.*\)",
        {"zeros", "negative zeros", "zero operands"},
        "the polynomial 0 has no roots to move",
    ),
    (r"linalg\.lstsq\(.*\)\[0\]", _SINGULAR, "of equal singular values, too, where it has NaN"),
    (r"lax\.approx_m(ax|in)_k\(.*\)", _EQUAL, "which of equal elements comes first is open"),
    (r"linalg\.cond\(t\)", {"an infinity"}, "the oracle's program of singular values never ends"),
    (r"np\.minmax\(.*\)", _EQUAL, "all equal elements share alike, as in max"),
    (
        r"ops\.segment_(max|min)\(.*\)",
        {"a NaN", "NaNs"},
        "the NaN that is the result has the slope",
    ),
    (
        r"(linalg|laxlinalg)\.(qr|svd(vals)?|cond|cholesky|eig.*|(matrix_)?norm)\(.*\)",
        _SINGULAR,
        "no derivative: which vectors belong to equal values is open",
    ),
    (
        r"nn\.dot_product_attention\(.*\)",
        {"plain", "ordered"},
        "rounding of second derivatives that cancel",
    ),
    (
        r"nn\.standardize\(m, 0\)",
        {"equal operands", "equal", "ties"},
        "the oracle's rounding, of a difference of squares",
    ),
]

# (expressions as a pattern, the names of points, why the modes differ there)
UNLIKE_IN_OTHER_MODES: list[tuple[str, set[str], str]] = [
    (
        r"(linalg|laxlinalg)\.(svd(vals)?|cond|(matrix_)?norm)\([rst](, .*)?\)",
        _SINGULAR,
        "no derivative, which reverse mode knows, and forward over forward mode in part; the net "
        "of second order has the points where there is one",
    ),
    (
        r"eigh|eigh_tridiagonal|svd",
        {"zeros", "negative zeros", "ones"},
        "vectors of equal values have no derivative, as reverse mode says; forward mode has the "
        "part that leaves their space, of which functions of the space alone consist",
    ),
]

_LIBRARIES = "NumPy's LAPACK and that of the compiler choose other vectors for equal values"

# (expressions as a pattern, the names of points, why compiled derivatives are others than eager)
UNLIKE_COMPILED: list[tuple[str, set[str], str]] = [
    (r"np\.corrcoef\(.*\)", _EVERYWHERE, "perfect correlation is 1 to rounding: clipped, or not"),
    (r"nn\.standardize\(m, 0\)", {"equal operands"}, "rounding, of a variance of 0"),
    (r"(linalg|laxlinalg)\.(qr|svd(vals)?|cond|cholesky|eig.*|(matrix_)?norm)\(.*\)", _SINGULAR,
     _LIBRARIES),
    (r"lax\.reduce_window\(v, -?np.inf, .*\)", {"a NaN", "NaNs", "negative infinities"},
     "NaN, and padding that equals an element, are neither selected nor passed over"),
    (r"np\.angle\(x\)", _EVERYWHERE, "1 / x^2 overflows in another order"),
    (r"nn\.squareplus\(x, 0\)", _EVERYWHERE, "the second derivative of |x| is rounding near 0"),
]  # fmt: skip


def left_out(table: list[tuple[str, set[str], str]], text: str) -> set[str]:
    """Return the points at which a table leaves an expression out; "*" for all."""
    return {point for pattern, points, _reason in table if re.fullmatch(pattern, text)
            for point in points}  # fmt: skip


# Cells whose derivatives are rounding times a large number.
ILL_CONDITIONED: dict[tuple[str, str], str] = {
    ("linalg.det(s)", "rank 2"): "cofactors that are zero, to rounding",
    (
        "nn.dot_product_attention(m[None, :, None], m[None, :, None] * 2, m[None, :, None])",
        "two zeros",
    ): "second slopes that are small differences of large ones",
    ("linalg.cond(t, 1)", "rank 2"): "the inverse of a matrix that is singular to rounding",
    ("linalg.eigh(s + s.T)", "ones"): "eigenvectors of eigenvalues that are equal to rounding",
    ("laxlinalg.eigh(s + s.T)", "ones"): "eigenvectors of eigenvalues that are equal to rounding",
    ("qr", "ones"): "of rank 1, whose Q is not determined: rounding divided by rounding",
    ("tridiagonal_solve", "a subnormal"): "singular: each mode moves another pivot from zero",
}
