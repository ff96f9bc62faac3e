"""Net: derivatives to third order of every differentiable public function, in all eight orders.

The rows are the expressions of `derivative_rows`, which has one for each public function that has a
derivative. Each is evaluated in float64 at regular and special points: zeros, ones, ties, equal and
sorted operands, singular matrices, repeated eigenvalues. A derivative along a direction is taken
forward or reverse, in turn for each order, so that the third has eight ways. It is compared with
differences of the derivative one order below, whose values come from points beside the point alone:
where these converge, and agree from both sides, the derivative exists. A NaN there, or another
number, is a failure. First derivatives are compared with differences of the function, so that the
chain begins at values.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import xstack
from tests.nets import derivative_rows, derivatives, special_operands
from tests.nets.cells import drawn
from xad import jvp, vjp
from xprim import config

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning"),
]

ORDERS = {k: ["".join(m) for m in itertools.product("fr", repeat=k)] for k in (1, 2, 3)}

# Expressions whose derivative is not that of their values: rounded on the way, or stopped.
UNLIKE_DIFFERENCES = {
    "np.astype(x, 'float32')", "lax.reduce_precision(x, 8, 7)",
    "lax.convert_element_type(x, 'float16')", "lax.stop_gradient(x)",
}  # fmt: skip

_REGULAR = [0.3, -0.7, 0.85, 1.3, -1.6, 2.7, 5.2]
_SPECIAL = [0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 20.0, -20.0]
_PAIRS = [(0.3, 0.8), (1.7, -0.6), (-0.4, 2.3), (2.2, 1.4), (-1.3, -0.9)]
_SPECIAL_PAIRS = list(itertools.product([0.0, 1.0, -1.0, 2.0, 0.5], repeat=2))


def numbers(text: str) -> dict[str, np.ndarray]:
    """Return the points of an elementwise expression: regular numbers, then special ones."""
    names = derivatives.used(text, special_operands.numbers("xy"))
    if names == ["x"]:
        return {"x": np.array(_REGULAR + _SPECIAL)}
    both = np.array(_PAIRS + _SPECIAL_PAIRS)
    return {"x": both[:, 0].copy(), "y": both[:, 1].copy()}


_NOT_NEAR = {"subnormal", "huge", *special_operands.NON_FINITE, "an infinity"}


def arrays(text: str) -> dict[str, dict[str, np.ndarray]]:
    """Return the points of an expression of arrays by name, in float64."""
    names = derivatives.used(text, special_operands.empties())
    points = special_operands.of_arrays(set(names))
    return {
        point: {name: np.float64(found[name]) for name in names}
        for point, found in points.items()
        if point not in _NOT_NEAR
    }


# --- derivatives and differences ------------------------------------------------------------------

Function = Callable[..., Any]  # of the operands, to numbers


def along(function: Function, mode: str, direction: Sequence[np.ndarray], each: bool) -> Function:
    """Return the derivative along a direction: of each number by itself, or of one number."""

    def forward(*xs: Any) -> Any:
        return jvp(function, xs, tuple(direction))[1]

    def reverse(*xs: Any) -> Any:
        out, pull_back = vjp(function, *xs)
        products = [c * d for c, d in zip(pull_back(xstack.numpy.ones_like(out)), direction,
                                          strict=True)]  # fmt: skip
        return functools.reduce(lambda a, b: a + b, products if each else [p.sum() for p in
                                                                           products])  # fmt: skip

    return forward if mode == "f" else reverse


def derivative(function: Function, modes: str, directions: Any, each: bool) -> Function:
    """Return the derivative along one direction for each of the modes, innermost first."""
    for mode, direction in zip(modes, directions, strict=False):
        function = along(function, mode, direction, each)
    return function


_STEP = 1.0 / 512  # exact, so that points beside 0 and 1 are, too


def line(function: Function, xs: Sequence[np.ndarray], direction: Any) -> dict[str, Any]:
    """Return the derivative along a line by differences, where there is one, and both limits."""

    def at(k: float) -> np.ndarray:
        moved = [x + k * _STEP * d for x, d in zip(xs, direction, strict=True)]
        return np.asarray(function(*map(xstack.numpy.asarray, moved)))

    values = {k: at(k) for k in (-3, -2, -1, -0.5, 0.5, 1, 2, 3)}
    with np.errstate(all="ignore"):
        centred = {k: (values[k] - values[-k]) / (2 * k * _STEP) for k in (0.5, 1, 2)}
        once, twice = [(4 * centred[k / 2] - centred[k]) / 3 for k in (1, 2)]
        found = (16 * once - twice) / 15  # Richardson: the error is of order step^6
        right, left = [
            (-5 * values[s] + 8 * values[2 * s] - 3 * values[3 * s]) / (2 * s * _STEP)
            for s in (1, -1)
        ]
        limits = [3 * values[s] - 3 * values[2 * s] + values[3 * s] for s in (1, -1)]
        # two steps of the rule agree, and the derivatives of both sides
        exists = np.isfinite(found) & (np.abs(found - once) <= 1e-6 * (1 + np.abs(found)))
        exists &= np.abs(right - left) <= 2e-2 * (1 + np.abs(found))
    return {"derivative": found, "exists": exists, "limits": limits}


def differences(
    function: Function, value: Any, xs: Sequence[np.ndarray], direction: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivative along a direction, and where the function has one that is linear.

    Order statistics have a derivative along each line through a tie, but not a linear one.
    """
    rng = np.random.default_rng(8)
    first = line(function, xs, direction)
    found, exists = first["derivative"], first["exists"]
    # others: elements that are equal part in another order, and in the opposite one
    for other in ([d * rng.permutation(d.size).reshape(d.shape) for d in direction],
                  [1.5 - d for d in direction]):  # fmt: skip
        both = [d + e for d, e in zip(direction, other, strict=True)]
        second, third = [line(function, xs, d) for d in (other, both)]
        exists = exists & second["exists"] & third["exists"]
        with np.errstate(all="ignore"):
            gap = third["derivative"] - found - second["derivative"]
            exists &= np.abs(gap) <= 1e-4 * (1 + np.abs(found) + np.abs(second["derivative"]))
    with np.errstate(all="ignore"):
        for limit in first["limits"]:
            exists &= np.abs(limit - value) <= 1e-4 * (1 + np.abs(value))
    return found, exists


def check(
    function: Function, xs: Sequence[np.ndarray], modes: Sequence[str], each: bool, what: str
) -> int:
    """Compare derivatives with differences of those one order below; return how many exist."""
    rng = np.random.default_rng(3)
    shape = (lambda x: ()) if each else np.shape
    directions = [[np.broadcast_to(rng.uniform(0.4, 1.1, shape(x)), x.shape) for x in xs]
                  for _ in range(3)]  # fmt: skip
    # what the next derivative is compared with is known to be right
    count, value = 0, np.asarray(function(*map(xstack.numpy.asarray, xs)))
    smooth = np.isfinite(value)
    for order in sorted({len(m) for m in modes}):
        below = derivative(function, "rf"[: order - 1], directions, each)
        expected, exists = differences(below, value, xs, directions[order - 1])
        value, smooth = expected, exists & smooth
        exists = smooth
        for mode in [m for m in modes if len(m) == order]:
            found = np.asarray(
                derivative(function, mode, directions, each)(*map(xstack.numpy.asarray, xs))
            )
            with np.errstate(all="ignore"):
                # rounding of about 1e-15 of a derivative over the step is 1e-12; a step of the
                # next derivative but one, where both sides differ, is seen at 1e-5
                right = np.abs(found - expected) <= 1e-4 * (1 + np.abs(expected))
            wrong = exists & ~right
            points = [x[wrong] if each else x for x in xs]
            assert not wrong.any(), (
                f"{what}: {mode} at {points}: found {found[wrong]}, expected {expected[wrong]}"
            )
        count += int(np.sum(exists)) * sum(len(m) == order for m in modes)
    return count


# --- the net --------------------------------------------------------------------------------------

# Of x and y, beside the rows of `derivative_rows`: `scipy.special` and densities of `scipy.stats`.
SPECIAL = """
special.betainc(.7, 1.5, x); special.betainc(2.5, .5, x); special.beta(x, y); special.betaln(x, y)
special.boxcox(x, y); special.boxcox(x, 0.); special.boxcox1p(x, y); special.boxcox1p(x, 0.)
special.dawsn(x); special.digamma(x); special.entr(x); special.erf(x); special.erfc(x)
special.erfcinv(x); special.erfcx(x); special.erfinv(x); special.exp1(x); special.expi(x)
special.expit(x); special.expn(2, x); special.expn(3, x); special.fresnel(x); special.gamma(x)
special.gammainc(2.5, x); special.gammaincc(2.5, x); special.gammainc(1., x); special.gammaln(x)
special.gammainc(.5, x); special.gammaincc(.5, x); special.gammainc(2., x)
special.hyp1f1(.5, 1.5, x); special.hyp1f1(2., 3., x); special.hyp2f1(.5, 1., 1.5, x)
special.i0(x); special.i0e(x); special.i1(x); special.i1e(x); special.kl_div(x, y)
special.log_ndtr(x); special.loggamma(x); special.logit(x); special.multigammaln(x, 2)
special.ndtr(x); special.ndtri(x); special.owens_t(x, y); special.poch(x, y); special.poch(x, 2.)
special.polygamma(0, x); special.polygamma(1, x); special.polygamma(2, x); special.rel_entr(x, y)
special.sici(x); special.spence(x); special.xlog1py(x, y); special.xlogy(x, y); special.zeta(3., x)
special.bessel_jn(x, v=3)[1]; special.bessel_jn(x, v=3)[3]
stats.norm.logpdf(x, y, 2.); stats.norm.logcdf(x); stats.norm.logsf(x); stats.norm.pdf(x)
stats.norm.cdf(x, 1., 2.); stats.norm.ppf(x); stats.norm.isf(x); stats.beta.logpdf(x, 2., 3.)
stats.beta.logpdf(x, 1., 1.); stats.beta.cdf(x, 2., 1.5); stats.gamma.logpdf(x, 2.)
stats.gamma.logpdf(x, 1.); stats.gamma.cdf(x, 2.5); stats.gamma.logsf(x, 1.5); stats.t.logpdf(x, 3.)
stats.cauchy.logpdf(x, y); stats.cauchy.cdf(x); stats.chi2.logpdf(x, 3.); stats.chi2.cdf(x, 3.)
stats.expon.logpdf(x); stats.gennorm.logpdf(x, 2.); stats.gennorm.cdf(x, 2.)
stats.gumbel_l.logpdf(x); stats.gumbel_r.logpdf(x); stats.gumbel_r.cdf(x); stats.laplace.logpdf(x)
stats.laplace.cdf(x); stats.logistic.logpdf(x); stats.logistic.cdf(x); stats.pareto.logpdf(x, 2.)
stats.truncnorm.logpdf(x, -1.5, 2.5); stats.truncnorm.cdf(x, -1.5, 2.5)
stats.vonmises.logpdf(x, 2.); stats.wrapcauchy.logpdf(x, .5); stats.poisson.logpmf(3, x)
stats.poisson.cdf(3, x); stats.binom.logpmf(2, 5, x)
stats.nbinom.logpmf(2, 5, x); stats.geom.logpmf(2, x)
stats.bernoulli.logpmf(1, x); stats.betabinom.logpmf(2, 5, x, y)
"""

# Of v, w, m and s, t, r, as of `derivative_rows`: functions of matrices, signals, grids.
OF_SCIPY = """
slinalg.expm(s); slinalg.expm(t); slinalg.sqrtm(s @ s.T + 2 * np.eye(4)); slinalg.inv(s)
slinalg.expm_frechet(t, t @ t)[1]; slinalg.solve_sylvester(s, s + 9 * np.eye(4), s)
slinalg.polar(s)[0]; slinalg.polar(r)[0]; slinalg.cho_factor(s @ s.T + np.eye(4))[0]
slinalg.solve_triangular(s, s, lower=True); slinalg.toeplitz(v); slinalg.hankel(v)
slinalg.block_diag(s, s); slinalg.circulant(v); slinalg.companion(v); slinalg.fiedler(v)
slinalg.lu(t)[1]; slinalg.lu(t)[2]; slinalg.lu_solve(slinalg.lu_factor(s), v)
slinalg.cho_solve((slinalg.cholesky(s @ s.T + np.eye(4)), False), v)
slinalg.eigh(s @ s.T, s.T @ s + np.eye(4), eigvals_only=True)
slinalg.eigh_tridiagonal(v, v[:3] + 1, eigvals_only=True)
signal.convolve(v, w); signal.correlate(v, w); signal.fftconvolve(v, w); signal.detrend(v)
signal.convolve2d(m, m); fftpack.dct(v); fftpack.idct(v); fftpack.dctn(m)
fftpack.dct(v, norm='ortho'); integrate.trapezoid(v, w)
interpolate.RegularGridInterpolator((np.arange(4.),), v)(w[:1] + .3)
ndimage.map_coordinates(m, [w[:2] + .2, v[:2] + .3], order=1)
stats.multivariate_normal.logpdf(v, w, 2 * np.eye(4))
stats.dirichlet.logpdf(np.ones(4) / 4, np.exp(v))
stats.sem(v); stats.gaussian_kde(m)(m[:, :1])
nn.dot_product_attention(m[None, :, None], m[None, :, None], m[None, :, None], is_causal=True)
linalg.eigh(s + s.T)[0]; (lambda u, q, vh: u @ vh)(*linalg.svd(s))
"""


def _spaces() -> dict[str, Any]:
    scipy = xstack.scipy
    return derivatives.namespaces(xstack) | {
        "special": scipy.special, "stats": scipy.stats, "slinalg": scipy.linalg,
        "signal": scipy.signal, "fftpack": scipy.fft, "integrate": scipy.integrate,
        "interpolate": scipy.interpolate, "ndimage": scipy.ndimage,
    }  # fmt: skip


def _texts(block: str) -> list[str]:
    return [text for text_line in block.strip().splitlines() for text in text_line.split("; ")]


ELEMENTWISE = [
    *(t for t in derivative_rows.elementwise() if t not in UNLIKE_DIFFERENCES), *_texts(SPECIAL)
]  # fmt: skip
ARRAYS = derivative_rows.of_arrays() + _texts(OF_SCIPY)
CELLS = [(text, point) for text in ARRAYS for point in arrays(text)]
REGULAR = ("plain", "ordered")


# {expression: (the order up to which it is compared, at these points, why)}
OPEN: dict[str, tuple[int, set[str], str]] = {
    "slinalg.eigh(s @ s.T, s.T @ s + np.eye(4), eigvals_only=True)": (
        1, {"zeros", "rank 2", "ones"}, "eigenvalues that are equal, each with another weight"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _double():
    with config.enable_x64(True):
        yield


def function_of(text: str, names: Sequence[str]) -> Function:
    """Return an expression as a function of its operands, to its results of floating dtype."""
    code, spaces = compile(text, f"<{text}>", "eval"), _spaces()

    def function(*operands: Any) -> list[Any]:
        found = eval(code, {**spaces, **dict(zip(names, operands, strict=True))})
        parts = []
        for leaf in xstack.tree.leaves(found):
            kind = np.dtype(leaf.dtype).kind if hasattr(leaf, "dtype") else "O"
            parts += [leaf.real, leaf.imag] if kind == "c" else [leaf] if kind == "f" else []
        return parts

    return function


def of_numbers(text: str, names: Sequence[str]) -> Function:
    """Return a function of numbers, each by itself, to the sum of its results."""
    function = function_of(text, names)
    return lambda *xs: functools.reduce(lambda a, b: a + b, function(*xs))


def weighted_sum(text: str, names: Sequence[str]) -> Function:
    """Return a function of arrays to one number, in which no two results can cancel."""
    function = function_of(text, names)

    def total(*xs: Any) -> Any:
        flat = xstack.numpy.concatenate([out.reshape(-1) for out in function(*xs)])
        return (flat * (1 + xstack.numpy.arange(flat.size) / 4)).sum()

    return total


def modes_of(number: int, point: str) -> list[str]:
    """Return all ways at a regular point; elsewhere two of each order, others in each cell."""
    if point in REGULAR:
        return [m for modes in ORDERS.values() for m in modes]
    return [*ORDERS[1], *[ms[(number + k) % len(ms)] for ms in (ORDERS[2], ORDERS[3])
                          for k in (0, 3)]]  # fmt: skip


def check_cell(number: int) -> int:
    """Check an expression of arrays at a point."""
    text, point = CELLS[number]
    operands, modes = arrays(text)[point], modes_of(number, point)
    highest, points, _reason = OPEN.get(text, (3, set(), ""))
    if point in points:
        modes = [m for m in modes if len(m) <= highest]
    return check(weighted_sum(text, list(operands)), list(operands.values()), modes, False,
                 f"{text} at {point}")  # fmt: skip


def test_the_size_of_the_net():
    points = sum(next(iter(numbers(t).values())).size for t in ELEMENTWISE)
    regular = sum(point in REGULAR for _, point in CELLS)
    print(f"{len(ELEMENTWISE)} expressions of numbers at {points} points, each in 14 ways to third "
          f"order; {len(ARRAYS)} of arrays in {len(CELLS)} cells, {regular} of them in 14 ways and "
          "the others in 6")  # fmt: skip
    assert len(ELEMENTWISE) >= 300 and len(ARRAYS) >= 350 and len(CELLS) >= 3000


@pytest.mark.parametrize("text", drawn(ELEMENTWISE, 20))
def test_elementwise_derivatives_to_third_order_are_those_of_differences(text):
    operands = numbers(text)
    every = [m for modes in ORDERS.values() for m in modes]
    check(of_numbers(text, list(operands)), list(operands.values()), every, True, text)


@pytest.mark.parametrize("number", drawn(range(len(CELLS)), 24))
def test_derivatives_of_arrays_to_third_order_are_those_of_differences(number):
    check_cell(number)


# ------------------------------------------------------------------ the check finds what it shall


def planted(order: int, bad: float) -> Function:
    """Return the cube of numbers, whose derivative of one order is wrong by a factor at 1."""

    def function_of_order(k: int) -> Any:
        factors = {0: lambda x: x**3, 1: lambda x: 3 * x**2, 2: lambda x: 6 * x,
                   3: lambda x: 6 + 0 * x}  # fmt: skip

        @xstack.custom_jvp
        def function(x: Any) -> Any:
            factor = xstack.numpy.where(x == 1.0, bad if k == order else 1.0, 1.0)
            return factors[k](x) * factor

        def rule(primals: Any, tangents: Any) -> Any:
            return function(*primals), function_of_order(k + 1)(*primals) * tangents[0]

        function.defjvp(rule)
        return function

    found: Function = function_of_order(0)
    return found


@pytest.mark.parametrize("bad", [1.01, float("nan")])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_derivative_that_is_wrong_at_one_point_is_found(order, bad):
    every = [m for modes in ORDERS.values() for m in modes]
    point = [np.array([0.3, 1.0])]
    assert check(planted(9, bad), point, every, True, "cube") == 2 * len(every)
    with pytest.raises(AssertionError, match=rf"cube: {'f' * order} at \[array\(\[1\.\]\)\]"):
        check(planted(order, bad), point, every, True, "cube")
