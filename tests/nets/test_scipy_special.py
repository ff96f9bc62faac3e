"""The net of `scipy.special`: in digits over the domains, at special values, differentiated.

A row of `ROWS` has a function's reference in mpmath and numbers of its domain, ordinary and hard
ones. Results must be within 4 units in the last place in float32 and 1e-13 in float64, or what
`LESS` says with its reason, evaluated and compiled. Values at edges are SciPy's; derivatives,
forward and reverse, are those that mpmath takes of the reference.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xad
import xjit
import xnp
import xnp.scipy.special as special
from tests.nets.cells import IN_FULL, drawn
from xprim import config, dtypes

pytestmark = [pytest.mark.fuzz, pytest.mark.filterwarnings("ignore")]

mp = pytest.importorskip("mpmath").mp
scipy_special = pytest.importorskip("scipy.special")

COUNT = 30 if IN_FULL else 5
_random = np.random.default_rng(7)
Operands = Callable[[int], list[np.ndarray]]


def spread(low: float, high: float) -> Callable[[int], np.ndarray]:
    """Return numbers of each size between powers of ten."""
    return lambda n: 10.0 ** _random.uniform(low, high, n)


def within(low: float, high: float) -> Callable[[int], np.ndarray]:
    """Return numbers of a range."""
    return lambda n: _random.uniform(low, high, n)


def mixed(*kinds: Callable[[int], np.ndarray]) -> Callable[[int], np.ndarray]:
    """Return numbers of several kinds."""
    return lambda n: np.concatenate([kind(n) for kind in kinds])


def whole(low: int, high: int) -> Callable[[int], np.ndarray]:
    """Return whole numbers, below the upper one."""
    return lambda n: _random.integers(low, high, n).astype(float)


def _ndtr(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _ndtri(p: Any) -> Any:
    y = mp.mpf(float(scipy_special.ndtri(float(p))))
    for _ in range(4):
        y -= (_ndtr(y) - p) / mp.npdf(y)
    return y


def _owens_t(h: Any, a: Any) -> Any:
    stops = sorted({min(a, s) for s in (mp.mpf(0), 0.1 / h, 1 / h, 8 / h, mp.mpf(1), a)})
    integral = mp.quad(lambda x: mp.exp(-h * h * (1 + x * x) / 2) / (1 + x * x), stops)
    return integral / (2 * mp.pi)


def _boxcox(log: Any) -> Any:
    return lambda x, power: mp.expm1(power * log(x)) / power


_TAILS = mixed(within(-37, 5), spread(-5, 1))
_PAIR = mixed(spread(-5, 3), within(0, 30))
_UNIT = mixed(within(0, 1), lambda n: 0.5 + 1e-4 * _random.normal(size=n))

# name -> reference in mpmath, numbers for each operand
ROWS: dict[str, tuple[Callable[..., Any], list[Callable[[int], np.ndarray]]]] = {
    "beta": (mp.beta, [mixed(spread(-5, 2), within(0, 30))] * 2),
    "betaln": (lambda a, b: mp.log(mp.beta(a, b)), [_PAIR] * 2),
    "boxcox": (_boxcox(mp.log), [mixed(spread(-2, 2), within(0.5, 2)), within(-2, 2)]),
    "boxcox1p": (_boxcox(mp.log1p), [mixed(spread(-5, 2), within(-0.5, 2)), within(-2, 2)]),
    "comb": (mp.binomial, [whole(12, 40), whole(0, 12)]),
    "dawsn": (lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
              [mixed(spread(-9, 1.5), within(-20, 20))]),
    "digamma": (mp.digamma, [mixed(spread(-5, 5), within(0, 30))]),
    "entr": (lambda x: -x * mp.log(x), [spread(-9, 9)]),
    "erf": (mp.erf, [mixed(spread(-5, 1), within(-4, 4))]),
    "erfc": (mp.erfc, [mixed(within(-3, 8), spread(-5, 0))]),
    "erfcinv": (lambda y: -_ndtri(y / 2) / mp.sqrt(2), [mixed(within(0, 2), spread(-30, 0))]),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [mixed(within(-9, 5), spread(-5, 5))]),
    "erfinv": (mp.erfinv, [mixed(within(-1, 1), spread(-9, -1))]),
    "exp1": (mp.e1, [mixed(spread(-9, 1.5), within(0, 40))]),
    "expi": (mp.ei, [mixed(within(-30, 60), within(0.01, 1), spread(-9, 1.9))]),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), [within(-30, 6)]),
    "expn": (lambda n, x: mp.expint(int(n), x),
             [whole(0, 12), mixed(spread(-9, 0.3), within(0, 40))]),
    "factorial": (mp.factorial, [whole(0, 33)]),
    "fresnel sine": (mp.fresnels, [mixed(spread(-4, 4), within(-6, 6))]),
    "fresnel cosine": (mp.fresnelc, [mixed(spread(-4, 4), within(-6, 6))]),
    "gamma": (mp.gamma, [mixed(within(-20, 33), spread(-9, 0))]),
    "gammaln": (lambda x: mp.log(abs(mp.gamma(x))), [mixed(spread(-5, 5), within(0, 30))]),
    "hyp1f1": (mp.hyp1f1, [spread(-2, 0), within(1, 20), mixed(spread(-2, 1.5), within(-50, 0))]),
    "hyp2f1": (mp.hyp2f1, [spread(-2, 0), spread(-2, 0), within(1, 20),
                           mixed(within(0, 0.99), within(-20, 0))]),
    "i0": (lambda x: mp.besseli(0, x), [within(-40, 40)]),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), [mixed(within(-40, 40), spread(-5, 4))]),
    "i1": (lambda x: mp.besseli(1, x), [within(-40, 40)]),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), [mixed(within(-40, 40), spread(-5, 4))]),
    "kl_div": (lambda p, q: p * mp.log(p / q) - p + q, [spread(-3, 0), spread(0.5, 3)]),
    "log_ndtr": (lambda x: mp.log1p(-_ndtr(-x)) if x > 0 else mp.log(_ndtr(x)), [_TAILS]),
    "loggamma": (mp.loggamma, [mixed(spread(-5, 5), within(0, 30))]),
    "logit": (lambda p: mp.log(p / (1 - p)), [_UNIT]),
    "ndtr": (_ndtr, [_TAILS]),
    "ndtri": (_ndtri, [mixed(within(0, 1), spread(-36, 0), lambda n: 0.5 + spread(-6, -1)(n))]),
    "owens_t": (_owens_t, [spread(-3, 0.7), spread(-2, 1)]),
    "poch": (mp.rf, [mixed(spread(-5, 1), within(0, 9)), mixed(spread(-5, 1), within(0, 9))]),
    "polygamma": (lambda n, x: mp.polygamma(int(n), x), [whole(0, 6), spread(-2, 2)]),
    "rel_entr": (lambda p, q: p * mp.log(p / q), [spread(-3, 0), spread(0.5, 3)]),
    "sici sine": (mp.si, [mixed(spread(-9, 4), within(-30, 30))]),
    "sici cosine": (mp.ci, [mixed(spread(-9, 2), within(0, 30))]),
    "spence": (lambda x: mp.polylog(2, 1 - x).real, [mixed(spread(-9, 9), within(0, 3))]),
    "xlog1py": (lambda x, y: x * mp.log1p(y),
                [spread(-9, 9), mixed(spread(-9, 9), within(-0.9, 1))]),
    "xlogy": (lambda x, y: x * mp.log(y), [spread(-9, 9), spread(-9, 9)]),
    "zeta": (mp.zeta, [within(1.1, 12), spread(-2, 2)]),
}  # fmt: skip

# Units in the last place of float32, relative error in float64, and why.
_STEPS = "it is composed of several rounded steps in the dtype of its operands"
_ROOT = "near its zeros the error is one of the last place of 1"
_XLA = "the compiler's own operation"
LESS: dict[str, tuple[float, float, str]] = {
    "boxcox": (40, 1e-13, _STEPS + ", whose logarithm may be near 0"),
    "boxcox1p": (40, 1e-13, _STEPS + ", whose logarithm may be near 0"),
    "comb": (4, 1e-13, _STEPS),
    "digamma": (8, 1e-13, _ROOT),
    "erfinv": (8, 1e-13, _XLA),
    "i0": (40, 1e-13, "the exponential of x in float32, whose exponent is rounded"),
    "i1": (40, 1e-13, "the exponential of x in float32, whose exponent is rounded"),
    "i0e": (8, 1e-13, _XLA),
    "i1e": (8, 1e-13, _XLA),
    "kl_div": (16, 1e-13, _STEPS),
    "rel_entr": (8, 1e-13, _STEPS),
    "gammaln": (8, 1e-13, _ROOT),
    "loggamma": (8, 1e-13, _ROOT),
    "polygamma": (6, 1e-13, "its loops are in float32"),
    "zeta": (8, 1e-13, "its loops are in float32"),
}

# What has another net, or no numbers for operands, or a test of its own in the package.
ELSEWHERE = {
    **dict.fromkeys(("gammainc", "gammaincc", "betainc"), "tests/nets/test_special_functions.py"),
    **dict.fromkeys(
        ("bernoulli", "bessel_jn", "gammasgn", "log_softmax", "logsumexp", "multigammaln",
         "softmax", "sph_harm_y", "wofz"), "packages/xnp/tests/test_scipy_special.py"),
}  # fmt: skip


def function_of(row: str) -> Callable[..., Any]:
    """Return the function of a row; of two results, one."""
    name, _, part = row.partition(" ")
    function = getattr(special, name)
    if not part:
        return function  # type: ignore[no-any-return]
    return lambda x: function(x)[part == "cosine"]


def operands_of(row: str, dtype: str, count: int) -> list[np.ndarray]:
    """Return numbers that the dtype has."""
    columns = [kind(count) for kind in ROWS[row][1]]
    size = max(c.size for c in columns)
    return [np.resize(c, size).astype(dtype).astype(float) for c in columns]


def in_digits(row: str, columns: list[np.ndarray]) -> np.ndarray:
    """Return a reference at columns of numbers."""
    with mp.workdps(40):
        rows = zip(*[c.tolist() for c in columns], strict=True)
        return np.array([float(ROWS[row][0](*map(mp.mpf, r))) for r in rows])


def run(row: str, columns: list[np.ndarray], dtype: str, compiled: bool) -> np.ndarray:
    """Return what a function gives, as float64."""
    function = function_of(row)
    with config.enable_x64(dtype == "float64"):
        arrays = [xnp.asarray(c.astype(dtype)) for c in columns]
        result = (xjit.jit(function) if compiled else function)(*arrays)
        assert result.dtype == dtype
        return np.asarray(result).astype(float)


def units_of(expected: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return which results are normal numbers, and the unit of their errors.

    It is one of the last place in float32, and the result itself in float64.
    """
    info = np.finfo(dtype)
    normal = (np.abs(expected) < info.max) & (np.abs(expected) > info.tiny)
    size = np.abs(np.where(normal, expected, 1.0))
    last = 2.0 ** np.floor(np.log2(size)) * float(info.eps)
    return normal, size if dtype == "float64" else last


def test_each_public_function_has_a_row():
    names = {row.partition(" ")[0] for row in ROWS}
    assert names | set(ELSEWHERE) == set(special.__all__)
    assert not names & set(ELSEWHERE)


CELLS = list(itertools.product(ROWS, ["float32", "float64"]))


@pytest.mark.parametrize(("row", "dtype"), drawn(CELLS, 8))
def test_all_digits_are_right(row, dtype):
    columns = operands_of(row, dtype, COUNT)
    expected = in_digits(row, columns)
    normal, unit = units_of(expected, dtype)
    assert normal.sum() >= COUNT // 2
    bound = LESS.get(row, (4, 1e-13, ""))[dtype == "float64"]
    for compiled in (False, True):
        error = np.abs(run(row, columns, dtype, compiled) - expected) / unit / bound
        wrong = normal & ~(error <= 1)
        shown = [*[c[wrong][:5] for c in columns], expected[wrong][:5], error[wrong][:5]]
        print(f"{row} {dtype} {compiled}: {error[normal].max():.3g} of the bound")
        assert not wrong.any(), np.array(shown).T


# --- edges ----------------------------------------------------------------------------------------

_EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 2.0, 40.0, np.inf, -np.inf, np.nan]
# where SciPy has another value: complex results that are cut, or a limit that it does not take
_OTHERWISE = {
    "boxcox": "where x is infinite or below 0", "boxcox1p": "where x is infinite or below -1",
    "comb": "for N, k that are not whole, SciPy rounds neither", "hyp1f1": "at its poles",
    "hyp2f1": "at its poles", "polygamma": "it is in the net of the primitives",
    "zeta": "it is in the net of the primitives", "expn": "its order is whole",
    "owens_t": "at infinite operands", "poch": "at infinite operands", "betaln": "at its poles",
    "beta": "at its poles", "factorial": "at -1", "i0": "at infinity", "i1": "at infinity",
    "gammaln": "at -inf", "spence": "at infinity",
    "kl_div": "at infinite operands, where it is infinite",
}  # fmt: skip
EDGE_ROWS = [row for row in ROWS if row not in _OTHERWISE]


@pytest.mark.parametrize("row", drawn(EDGE_ROWS, 5))
def test_edges_have_the_values_of_scipy(row):
    name, _, part = row.partition(" ")
    columns = [c.ravel() for c in np.meshgrid(*[_EDGES] * len(ROWS[row][1]))]
    expected = getattr(scipy_special, name)(*columns)
    expected = expected[part == "cosine"] if part else expected
    for compiled in (False, True):
        found = run(row, columns, "float64", compiled)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14, err_msg=row)


# --- derivatives ----------------------------------------------------------------------------------

_CONSTANT = {"expn": (0,), "polygamma": (0,), "comb": (0, 1), "factorial": (0,)}
SLOPES = [(row, i) for row, (_, columns) in ROWS.items() for i in range(len(columns))
          if i not in _CONSTANT.get(row, ())]  # fmt: skip


def slopes_in_digits(row: str, position: int, columns: list[np.ndarray]) -> np.ndarray:
    """Return the derivatives of a reference by one operand, as differences in 50 digits."""
    reference, expected = ROWS[row][0], []
    with mp.workdps(50):
        for row_values in zip(*[c.tolist() for c in columns], strict=True):
            values = [mp.mpf(v) for v in row_values]
            step = abs(values[position]) * mp.mpf(10) ** -15
            up, down = ([*values[:position], values[position] + s, *values[position + 1 :]]
                        for s in (step, -step))  # fmt: skip
            expected.append(float((reference(*up) - reference(*down)) / (2 * step)))
    return np.array(expected)


@pytest.mark.parametrize(("row", "position"), drawn(SLOPES, 6))
def test_derivatives_are_those_of_the_reference(row, position):
    columns = [c[:3] for c in operands_of(row, "float64", 1)]
    expected = slopes_in_digits(row, position, columns)
    function = function_of(row)
    with config.enable_x64(True):
        x = [xnp.asarray(c) for c in columns]
        held = [*x]

        def of_one(v: Any) -> Any:
            held[position] = v
            return function(*held)

        forward = xad.jvp(of_one, [x[position]], [xnp.ones_like(x[position])])[1]
        reverse = xjit.jit(xad.grad(lambda v: of_one(v).sum()))(x[position])
        rounding = 4 * np.finfo(float).eps * np.abs(function(*x))
    # the difference quotient in 50 digits is right to 1e-15; a small slope is a difference of terms
    # of the size of the value
    for found in map(np.asarray, (forward, reverse)):
        assert (np.abs(found - expected) <= 1e-11 * np.abs(expected) + rounding).all()


@pytest.mark.parametrize("function", [special.xlogy, special.xlog1py])
@pytest.mark.parametrize("x", [0.0, 1.5])
@pytest.mark.parametrize("modes", ["ff", "fr", "rf", "rr"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 0), (1, 1)])
def test_second_derivatives_of_a_product_with_a_logarithm(function, x, modes, order):
    def derivative(fun, mode, k):
        if mode == "r":
            return xad.grad(fun, k)
        ones = [1.0 if i == k else 0.0 for i in range(2)]
        return lambda *xs: xad.jvp(fun, xs, tuple(map(xnp.float32, ones)))[1]

    y = 2.0
    fun = derivative(derivative(function, modes[0], order[0]), modes[1], order[1])
    log = y + 1 if function is special.xlog1py else y
    expected = {(0, 0): 0.0, (1, 1): -x / log**2}.get(order, 1 / log)
    np.testing.assert_allclose(fun(xnp.float32(x), xnp.float32(y)), expected, rtol=1e-6)


BESIDE_ZERO = {
    "i1e": (special.i1e, lambda x: mp.exp(-abs(x)) * mp.besseli(1, x)),
    "poch of 2": (lambda x: special.poch(x, 2.0), lambda x: mp.rf(x, 2)),
    "poch of 1/2": (lambda x: special.poch(x, 0.5), lambda x: mp.rf(x, mp.mpf(1) / 2)),
}


@pytest.mark.parametrize("name", BESIDE_ZERO)
@pytest.mark.parametrize("wide", [False, True])
def test_second_derivatives_beside_zero_have_digits(name, wide):
    function, exact = BESIDE_ZERO[name]
    with config.enable_x64(wide), mp.workdps(60):
        for x in (1e-30, 1e-15, 1e-8, -1e-6, 1e-4, -0.01, 0.2, 0.45, 0.55):
            x = np.float64(x) if wide else np.float32(x)
            at = mp.mpf(float(x))
            expected = mp.diff(exact, at, 2, h=abs(at) * mp.mpf(10) ** -15)
            slope = xad.grad(function)
            found = [xad.grad(slope)(x), xad.jvp(slope, (x,), (x * 0 + 1,))[1]]
            # a difference of terms of 1 / x^2, from x = 1/4 on: 16 times four or five ulp
            np.testing.assert_allclose(found, float(expected), rtol=1e-14 if wide else 1e-5)


@pytest.mark.parametrize("h", [0.0, 1e-30, 0.5])
def test_slopes_of_owens_function_vanish_where_squares_overflow(h):
    for run in (lambda f: f, xjit.jit):
        slope = xad.grad(special.owens_t, 1)
        for derivative in (slope, xad.grad(slope, 0), xad.grad(slope, 1)):
            assert abs(run(derivative)(np.float32(h), np.float32(1e25))) < 1e-37


@pytest.mark.parametrize("compiled", [False, True])
def test_zeros_between_poles_have_all_digits(compiled):
    def run(function, *operands):
        return float((xjit.jit(function) if compiled else function)(*operands))

    with config.enable_x64(True):
        with mp.workdps(40):
            roots = {x: float(mp.digamma(mp.mpf(x))) for x in (1.46164, 1.4616321449683622)}
            middle = float(mp.polygamma(12, mp.mpf(-7.5)))
        for x, expected in roots.items():  # 4 roundings of the series
            np.testing.assert_allclose(run(special.digamma, x), expected, rtol=1e-15)
        np.testing.assert_allclose(run(special.polygamma, 12.0, -7.5), middle, rtol=1e-13)


@pytest.mark.parametrize("function", [special.boxcox, special.boxcox1p])
def test_derivatives_of_powers_are_limits_at_both_ends(function):
    zero = 0.0 if function is special.boxcox else -1.0
    expected_by_power = {
        0.3: (np.inf, 0.0),
        1.0: (1.0, 1.0),
        2.0: (0.0, np.inf),
        0.0: (np.inf, 0.0),
    }
    for power, expected in expected_by_power.items():
        found = [float(xad.grad(function)(x, power)) for x in (zero, np.inf)]
        assert found == list(expected)
    # of -1 / power
    assert float(xad.grad(function, 1)(zero, 2.0)) == 0.25


# --- over the whole domain ------------------------------------------------------------------------

domains = pytest.importorskip("tests.nets.special_domains")
WIDE_DTYPES = ("float16", "bfloat16", "float32", "float64")
# Relative errors: of float16 and bfloat16 the rounding of the result; of the others some hundred
# roundings, for what cancels at parameters of both signs. What is held to 4 units is above.
DIGITS = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 3e-5, "float64": 2e-11}
# Near zeros of a function the error is one of this size.
FLOOR = {"float16": 2e-4, "bfloat16": 2e-3, "float32": 1e-6, "float64": 1e-14}
# Sums whose terms cancel: by so much is the error larger than their result's.
CANCELLING = {"hyp1f1": 1e3, "hyp2f1": 1e3, "poch": 10.0, "beta": 10.0}
DOMAIN_CELLS = [(r, d, c) for r in ROWS for d in WIDE_DTYPES for c in (False, True)]


def domain_of(row: str, dtype: str) -> list[np.ndarray]:
    """Return the points of a row's grid as the dtype has them; subnormal operands are left out."""
    kind = getattr(dtypes, dtype)
    columns = [c.astype(kind).astype(float) for c in domains.grid(row, len(ROWS[row][1]))]
    tiny = float(dtypes.finfo(kind).tiny)
    whole = np.flatnonzero(np.all([(c == 0) | ~(np.abs(c) < tiny) for c in columns], 0))
    if not IN_FULL:
        whole = np.random.default_rng(len(row)).permutation(whole)[:60]
    return [c[whole] for c in columns]


@functools.cache
def _values_of_domain(row: str, dtype: str) -> np.ndarray:
    values: np.ndarray = domains.expected(row, ROWS[row][0], domain_of(row, dtype))
    return values


def faults_in_domain(row: str, dtype: str, compiled: bool) -> list[str]:
    """Return the points of a row's grid at which its value is not the expected one."""
    columns, exact = domain_of(row, dtype), _values_of_domain(row, dtype)
    kind, function = getattr(dtypes, dtype), function_of(row)
    with config.enable_x64(dtype == "float64"):
        arrays = [xnp.asarray(c.astype(kind)) for c in columns]
        found = np.asarray((xjit.jit(function) if compiled else function)(*arrays)).astype(float)
    info, scale = dtypes.finfo(kind), CANCELLING.get(row, 1.0)
    least, most = float(info.tiny), float(info.max)
    rounded = exact.astype(kind).astype(float)
    near = np.abs(found - exact) <= scale * (DIGITS[dtype] * np.abs(exact) + FLOOR[dtype] / 100)
    if row in LESS or row in CANCELLING or np.abs(exact[np.isfinite(exact)]).min() == 0:
        near |= np.abs(found - exact) <= scale * FLOOR[dtype]
    near |= (found == rounded) | (np.isnan(found) & np.isnan(exact))
    near |= (np.abs(exact) < least) & (np.abs(found) <= least)  # subnormal
    near |= (np.abs(exact) > 0.99 * most) & (np.abs(found) > 0.99 * most) & (exact * found > 0)
    wrong = np.flatnonzero(~near & domains.is_held(row, columns, exact))
    return [f"{row}{tuple(float(c[k]) for c in columns)} {dtype}: {found[k]} for {exact[k]}"
            for k in wrong]  # fmt: skip


@pytest.mark.parametrize(("row", "dtype", "compiled"), drawn(DOMAIN_CELLS, 4))
def test_values_over_the_whole_domain(row, dtype, compiled):
    assert faults_in_domain(row, dtype, compiled) == []


SLOPE_COUNT = 100 if IN_FULL else 8


def inside(row: str) -> list[np.ndarray]:
    """Return points of a row's grid at which its derivatives exist, some of them."""
    columns = domains.grid(row, len(ROWS[row][1]))
    usual = np.all([np.abs(c) <= 1e5 for c in columns], 0)
    if row in domains.BY_SCIPY:
        usual &= ~domains.BY_SCIPY[row](*columns)
    chosen = np.random.default_rng(3).permutation(np.flatnonzero(usual))[: 4 * SLOPE_COUNT]
    columns = [c[chosen] for c in columns]
    exact = domains.expected(row, ROWS[row][0], columns)
    usual = (np.abs(exact) > 1e-150) | (exact == 0)
    kept = np.flatnonzero(np.isfinite(exact) & usual)[:SLOPE_COUNT]
    return [c[kept] for c in columns]


def slope_in_digits(row: str, position: int, point: Sequence[float]) -> float:
    """Return a derivative by differences of both sides in 60 digits, NaN where they differ."""
    reference = domains.REFERENCES.get(row, ROWS[row][0])
    with mp.workdps(60):
        values, step = [mp.mpf(v) for v in point], mp.mpf(10) ** -20
        found = []
        for k in (-1, 0, 1):
            moved = [v + k * step * (i == position) for i, v in enumerate(values)]
            try:
                found.append(mp.mpmathify(reference(*moved)))
            except (ValueError, ArithmeticError, TypeError, mp.NoConvergence):
                return float("nan")
        left, right = (found[1] - found[0]) / step, (found[2] - found[1]) / step
        if any(mp.im(v) for v in found) or abs(left - right) > 1e-12 * (abs(left) + abs(right)):
            return float("nan")
        return float(mp.re(left + right) / 2)


@pytest.mark.parametrize(("row", "position"), drawn(SLOPES, 3))
def test_derivatives_over_the_whole_domain(row, position):
    columns = inside(row)
    exact = np.array([slope_in_digits(row, position, p) for p in zip(*columns, strict=True)])
    function = function_of(row)
    with config.enable_x64(True):
        x = [xnp.asarray(c) for c in columns]

        def of_one(v: Any) -> Any:
            return function(*x[:position], v, *x[position + 1 :])

        found = np.asarray(xad.jvp(of_one, [x[position]], [xnp.ones_like(x[position])])[1])
    bound = 1e-10 * CANCELLING.get(row, 1.0)
    wrong = ~(np.abs(found - exact) <= bound * np.abs(exact) + 1e-13) & np.isfinite(exact)
    assert np.isfinite(exact).any()
    shown = [f"{tuple(float(c[k]) for c in columns)}: {found[k]} for {exact[k]}"
             for k in np.flatnonzero(wrong)]  # fmt: skip
    assert shown == []


LINEAR = {"xlogy": 0, "xlog1py": 0}  # in an operand, of which the derivative does not depend on it


@pytest.mark.parametrize(("row", "position"), drawn(SLOPES, 6))
def test_values_and_derivatives_of_nan_are_nan(row, position):
    function, columns = function_of(row), domains.grid(row, len(ROWS[row][1]))
    chosen = np.random.default_rng(4).permutation(columns[0].size)[:SLOPE_COUNT]
    columns = [c[chosen] for c in columns]
    for broken in range(len(columns)):
        if broken == position == LINEAR.get(row):
            continue
        points = [np.full_like(c, np.nan) if k == broken else c for k, c in enumerate(columns)]
        with config.enable_x64(True):
            x = [xnp.asarray(c) for c in points]

            def of_one(v: Any, x: Any = x) -> Any:
                return function(*x[:position], v, *x[position + 1 :])

            found = xad.jvp(of_one, [x[position]], [xnp.ones_like(x[position])])
        for what, values in zip(("value", "derivative"), map(np.asarray, found), strict=True):
            shown = [f"{what} {tuple(float(c[k]) for c in points)}: {values[k]}"
                     for k in np.flatnonzero(~np.isnan(values))]  # fmt: skip
            assert shown == []


_PARTS = [-30.0, -6.5, -2.5, -1.0, -0.5, -1e-3, 0.0, 0.3, 1.0, 2.0, 5.9, 6.1, 20.0]
PLANE = np.array([complex(x, y) for x in _PARTS for y in _PARTS])
# functions of complex numbers, and the numbers that their branch cuts or poles leave out
OF_COMPLEX = {
    "erfcx": (lambda z: mp.exp(z * z) * mp.erfc(z), PLANE.real > -1e9),
    "wofz": (lambda z: mp.exp(-z * z) * mp.erfc(-1j * z), PLANE.real > -1e9),
    "gamma": (mp.gamma, (PLANE.imag != 0) | (PLANE.real > 0)),
    "loggamma": (mp.loggamma, (PLANE.imag != 0) | (PLANE.real > 0)),
}  # fmt: skip


COMPLEX_CELLS = list(itertools.product(OF_COMPLEX, ["complex64", "complex128"], [False, True]))


@pytest.mark.parametrize(("name", "dtype", "compiled"), drawn(COMPLEX_CELLS, 3))
def test_values_over_the_complex_plane(name, dtype, compiled):
    reference, kept = OF_COMPLEX[name]
    z = PLANE[kept].astype(dtype)
    with mp.workdps(60):
        exact = np.array([complex(reference(mp.mpc(complex(v)))) for v in z])
    function = getattr(special, name)
    with config.enable_x64(dtype == "complex128"):
        found = np.asarray((xjit.jit(function) if compiled else function)(xnp.asarray(z)))
    assert found.dtype == dtype
    # the exponential's argument is rounded: of e^1300 to some hundred units; `wofz` has zeros below
    bound, most = (2e-4, 1e38) if dtype == "complex64" else (1e-11, 1e300)
    # near its zeros the error of `loggamma` is one of the last place of 1
    floor = bound / 100 if name == "loggamma" else 0.0
    wrong = ~(np.abs(found - exact) <= bound * np.abs(exact) + floor) & (np.abs(exact) < most)
    wrong &= np.abs(exact) > 1e-37
    assert [(z[k], found[k], exact[k]) for k in np.flatnonzero(wrong)] == []


ANGLES = np.array([-7.0, -3.5, -np.pi / 2, -0.5, 0.0, 1e-3, 0.7, 1.5, 3.0, 3.5, 5.0, 40.0])


HARMONICS = [("float32", False), ("float32", True), ("float64", False), ("float64", True)]


@pytest.mark.parametrize(("dtype", "compiled"), drawn(HARMONICS, 2))
def test_spherical_harmonics_of_all_degrees_orders_and_angles(dtype, compiled):
    orders = [(n, m) for n in range(7) for m in range(-n, n + 1)]
    n, m = (np.repeat([o[k] for o in orders], ANGLES.size) for k in (0, 1))
    theta = np.tile(ANGLES, len(orders)).astype(dtype)
    phi = np.linspace(-4, 4, theta.size).astype(dtype)
    exact = scipy_special.sph_harm_y(n, m, theta.astype(float), phi.astype(float))
    with config.enable_x64(dtype == "float64"):
        arguments = [xnp.asarray(v) for v in (n, m, theta, phi)]
        function = functools.partial(special.sph_harm_y, n_max=6)
        found = np.asarray((xjit.jit(function) if compiled else function)(*arguments))
        slope = xad.jvp(lambda t: function(*arguments[:2], t, arguments[3]),
                        arguments[2:3], [xnp.ones_like(arguments[2])])[1]  # fmt: skip
    atol = 2e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(found, exact, rtol=0, atol=atol)
    if dtype == "float64":
        smooth = np.abs(np.sin(theta)) > 1e-2  # |sin| has a kink
        step = 1e-6
        up, down = (scipy_special.sph_harm_y(n, m, theta + s, phi) for s in (step, -step))
        exact = (up - down) / (2 * step)
        np.testing.assert_allclose(np.asarray(slope)[smooth], exact[smooth], rtol=0, atol=1e-7)


def test_the_size_of_the_net_of_domains():
    points = sum(domains.grid(row, len(kinds))[0].size for row, (_, kinds) in ROWS.items())
    total = points * 2 * len(WIDE_DTYPES)
    print(f"{points} points of {len(ROWS)} functions, {total} values in {len(DOMAIN_CELLS)} cells")
    print(f"{len(SLOPES)} derivatives at {SLOPE_COUNT} points; {PLANE.size} complex points")
    assert points >= 9_000
    assert len(SLOPES) >= 55


@pytest.mark.parametrize(
    ("function", "x", "slope"),
    [
        (lambda x: special.xlogy(x, 2.0), 0.0, np.log(2.0)),
        (lambda y: special.xlogy(0.0, y), 0.0, 0.0),
        (lambda y: special.xlog1py(0.0, y), -1.0, 0.0),
        (special.entr, 0.0, np.inf),
        (special.entr, -1.5, 0.0),
        (lambda p: special.rel_entr(p, 1e-38), -np.inf, 0.0),
        (lambda q: special.rel_entr(-np.inf, q), 1e-38, 0.0),
        (lambda p: special.kl_div(p, 1.0), np.inf, 0.0),
        (lambda q: special.kl_div(np.inf, q), 1.0, 0.0),
        (lambda q: special.rel_entr(0.0, q), 0.5, 0.0),
        (special.log_ndtr, -1e4, 1e4),
        (special.log_ndtr, -np.inf, np.inf),
        (special.log_ndtr, 40.0, 0.0),
        (special.ndtri, 0.0, np.inf),
        (special.ndtri, 1.0, np.inf),
        (special.spence, 0.0, -np.inf),
        (special.spence, 1.0, -1.0),
        # of polynomials in the operand, by hand
        (lambda a: special.beta(a, 2.0), -3.0, 5 / 36),
        (lambda a: special.betaln(a, 2.0), -3.0, 5 / 6),
        (lambda a: special.beta(a, -2.5), -2.5, -107.23303),  # at a zero, by mpmath
        (lambda z: special.poch(z, 2.0), -3.0, -5.0),
        (lambda z: special.poch(z, 5.0), -3.0, -6.0),  # at a zero
        (lambda x: special.hyp1f1(0.0, -2.0, x), 2.0, 0.0),
        (lambda x: special.hyp2f1(0.0, 0.7, -3.0, x), 1.5, 0.0),
        (lambda m: special.boxcox(3.0, m), 0.0, np.log(3.0) ** 2 / 2),
        (lambda x: special.sici(x)[0], 0.0, 1.0),
        (special.dawsn, 1e4, -0.5e-8),
        (special.erfcx, 1e4, -5.6418958e-9),
        (special.expit, 200.0, 0.0),
    ],
)
def test_slopes_at_special_points_are_the_limits(function, x, slope):
    x = np.float32(x)
    forward = xad.jvp(function, (x,), (np.float32(1),))[1]
    np.testing.assert_allclose([forward, xad.grad(function)(x)], [slope] * 2, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_series_of_one_term_is_1_at_infinite_operands():
    values = [-np.inf, -2.5, 0.0, 0.5, np.inf]
    b, c, x = [v.ravel() for v in np.meshgrid(values, [-np.inf, 0.7, 2.0, np.inf], values)]
    zero = np.zeros_like(b)
    for run in (lambda f: f, xjit.jit):
        np.testing.assert_array_equal(run(special.hyp2f1)(zero, b, c, x), 1)
        np.testing.assert_array_equal(run(special.hyp2f1)(b, zero, c, x), 1)
        np.testing.assert_array_equal(run(special.hyp1f1)(zero, c, x), 1)


def test_the_signatures_take_what_scipys_users_write():
    assert [*inspect.signature(special.logsumexp).parameters][:3] == ["a", "axis", "b"]
    assert xnp.allclose(special.comb(5, k=2), 10.0)


@pytest.mark.parametrize("compiled", [False, True])
def test_large_numbers_of_combinations_are_finite_wherever_they_are_representable(compiled):
    many = [(10**20, 1), (3 * 10**38, 1), (34 * 10**37, 0), (10**14, 2), (8_000_000, 5),
            (5_000_000, 5), (10**14, 10**14), (100, 40), (10**9, 4)]  # fmt: skip
    n, k = [np.array(column, np.float32) for column in zip(*many, strict=True)]
    wanted = [math.comb(int(a), int(b)) for a, b in zip(n, k, strict=True)]
    found = (xjit.jit(special.comb) if compiled else special.comb)(n, k)
    np.testing.assert_allclose(found, np.array(wanted, float), rtol=2e-4)
    assert special.comb(np.float32(np.inf), 1.0) == np.inf


def test_the_page_of_accuracy_has_every_row():
    text = (Path(__file__).resolve().parents[2] / "docs/reference/accuracy.md").read_text()
    names = {row.partition(" ")[0] for row in ROWS} | {"gammainc", "gammaincc", "betainc"}
    names |= {"sin", "cos", "tan", "arcsin", "arccos", "arctan2", "cbrt"}  # vector code of ours
    assert not [name for name in names if f"| `{name}` " not in text]
