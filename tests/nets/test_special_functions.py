"""The net of special functions: at special values, in digits over their domains, differentiated.

A grid of special values is compared with SciPy's limits, in all four dtypes, evaluated and
compiled; numbers of the domain, ordinary and hard ones, with mpmath in many digits. `ACCURACY` says
what is reached, in units of the last place of float32 and relatively in float64.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import xad
import xjit
import xnp
from tests.nets.cells import COMPILER_OPTIONS, IN_FULL, drawn
from xnp import lax
from xprim import config, dtypes

pytestmark = [pytest.mark.fuzz, pytest.mark.filterwarnings("ignore")]

pytest.importorskip("mpmath")
pytest.importorskip("scipy")
references = pytest.importorskip("tests.nets.special_references")

NUMBER_OF_OPERANDS = {
    "lgamma": 1, "digamma": 1, "polygamma": 2, "zeta": 2, "igamma": 2, "igammac": 2,
    "igamma_grad_a": 2, "random_gamma_grad": 2, "betainc": 3,
}  # fmt: skip

# Units in the last place of float32: evaluated, compiled; relative error in float64. Where an
# exponential is far below 1, its exponent's rounding counts, for each e-fold 5e-16; and in betainc
# that of the distance from the mean, in float64 4e-16 times the root of the lesser parameter.
ACCURACY: dict[str, tuple[float, float, float]] = {
    "lgamma": (1, 4, 2e-15), "digamma": (1, 8, 4e-15), "polygamma": (1, 6, 2e-14),
    "zeta": (1, 8, 2e-15), "igamma": (1, 6, 2e-14), "igammac": (1, 6, 2e-14),
    "igamma_grad_a": (1, 6, 2e-14), "random_gamma_grad": (1, 6, 2e-14),
    "betainc": (1, 6, 2e-14),
}  # fmt: skip

_SPECIAL = [0, -0.0, 1, -1, 2, -2, 0.5, -0.5, -2.5, 3, 1e-30, 1.2e-38, 1e10, 3e38, -3e38, 1e-7,
            np.inf, -np.inf, np.nan]  # fmt: skip
DTYPES = {"float32": np.float32, "float64": np.float64, "float16": np.float16,
          "bfloat16": dtypes.bfloat16}  # fmt: skip


def special_operands(name: str, dtype: str) -> list[np.ndarray]:
    """Return all combinations of special values of a dtype, as float64."""
    values = np.array(_SPECIAL).astype(DTYPES[dtype]).astype(float)
    least = float(dtypes.finfo(DTYPES[dtype]).tiny)
    values = np.where(np.abs(values) < least, np.copysign(0.0, values), values)
    # one of each, -0.0 and 0.0 apart
    kept = np.unique(np.where(np.isnan(values), np.nan, values).view(np.int64)).view(float)
    rows = np.array(list(itertools.product(kept, repeat=NUMBER_OF_OPERANDS[name])))
    return list(rows.T)


def staged(function: Any) -> Any:
    return xjit.jit(function, compiler_options=COMPILER_OPTIONS)


def run(name: str, operands: list[np.ndarray], dtype: str, compiled: bool) -> np.ndarray:
    """Return what a function of `xnp.lax` gives, as float64."""
    function = getattr(lax, name)
    with config.enable_x64(dtype == "float64"):
        arrays = [xnp.asarray(x.astype(DTYPES[dtype])) for x in operands]
        return np.asarray((staged(function) if compiled else function)(*arrays)).astype(float)


def errors(found: np.ndarray, expected: np.ndarray, dtype: str) -> np.ndarray:
    """Return the errors in units of the last place, of float64 in relative ones."""
    info = dtypes.finfo(DTYPES[dtype])
    rounded = expected.astype(DTYPES[dtype]).astype(float)
    size = np.maximum(np.abs(rounded), float(info.tiny))
    unit = size if dtype == "float64" else 2.0 ** np.floor(np.log2(size)) * float(info.eps)
    wrong = np.abs(found - expected) / unit
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    # what is denormal may be 0, and what is next to infinity may be either
    same |= (np.abs(expected) < float(info.tiny)) & (np.abs(found) <= float(info.tiny))
    same |= (np.abs(expected) > 0.999 * float(info.max)) & (np.abs(found) >= 0.999 * info.max)
    return np.where(same, 0.0, np.where(np.isnan(wrong), np.inf, wrong))


def report(wrong: np.ndarray, operands: list[np.ndarray], *columns: np.ndarray) -> str:
    """Return the operands that are wrong, what was found and expected, and the error."""
    rows = np.array([*operands, *columns])[:, wrong].T
    return "\n  " + "\n  ".join(" ".join(f"{v:.9g}" for v in row) for row in rows[:12])


# --- special values -----------------------------------------------------------------------------

SPECIAL_CELLS = list(itertools.product(NUMBER_OF_OPERANDS, DTYPES, [False, True]))


@pytest.mark.parametrize(("name", "dtype", "compiled"), drawn(SPECIAL_CELLS, 5))
def test_special_values_have_their_limits(name, dtype, compiled):
    operands = special_operands(name, dtype)
    found, expected = run(name, operands, dtype, compiled), references.LIMITS[name](*operands)
    wrong = errors(found, expected, dtype)
    # SciPy's own error counts in float64
    bound = 2e-11 if dtype == "float64" else ACCURACY[name][int(compiled)]
    bad = (wrong > bound) & ~_cancels(name, operands, found - expected, dtype)
    assert not bad.any(), report(bad, operands, found, expected, wrong)


def _cancels(name: str, operands: list[np.ndarray], error: np.ndarray, dtype: str) -> np.ndarray:
    """Return where a result is a difference by reflection: right to units of the last place of 1.

    And of huge orders at negative operands, where infinite parts have different signs.
    """
    if name not in ("lgamma", "digamma", "polygamma"):
        return np.zeros(error.shape, bool)
    near = np.abs(error) <= 4 * float(dtypes.finfo(DTYPES[dtype]).eps)
    return (operands[-1] < 0) & (near | (operands[0] > 1e9))


# --- in digits ----------------------------------------------------------------------------------


def _spread(rng: Any, low: float, high: float, count: int) -> np.ndarray:
    return 10.0 ** rng.uniform(low, high, count)


def _gamma_operands(rng: Any, count: int) -> list[np.ndarray]:
    """Return operands of all branches: tiny and large a, x near it, far below, far above."""
    a = np.concatenate([_spread(rng, -7, 4, 3 * count), _spread(rng, 4, 8, count)])
    x = np.abs(a * (1 + rng.normal(size=a.size) / np.sqrt(a)))
    far = slice(0, 3 * count // 2)
    x[far] = a[far] * _spread(rng, -0.5, 0.5, 3 * count // 2)
    x[:count] = _spread(rng, -5, 1.5, count)
    return [a, np.maximum(x, 1e-9)]


def _beta_operands(rng: Any, count: int) -> list[np.ndarray]:
    a, b = _spread(rng, -6, 6, 4 * count), _spread(rng, -6, 6, 4 * count)
    mean, deviation = a / (a + b), np.sqrt(a / (a + b) * b / (a + b) / (a + b + 1))
    x = mean + deviation * rng.normal(size=a.size)
    x[:count] = rng.uniform(0, 1, count)
    return [a, b, np.clip(x, 1e-9, 1 - 1e-6)]


def _digit_operands(name: str, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(NUMBER_OF_OPERANDS[name])
    if name == "betainc":
        return _beta_operands(rng, count)
    if "gamma_" in name or name.startswith("igamma"):
        return _gamma_operands(rng, count)
    positive = np.concatenate([_spread(rng, -9, 9, 2 * count), rng.uniform(0.1, 12, 2 * count)])
    if name in ("lgamma", "digamma"):
        return [np.concatenate([positive, 1 + 1e-5 * positive, 2 - 1e-5 * positive])]
    if name == "zeta":
        return [1 + _spread(rng, -4, 2, 4 * count), positive]
    return [rng.integers(0, 9, 4 * count).astype(float), positive]


def digit_operands(name: str, dtype: str, count: int) -> list[np.ndarray]:
    """Return operands that the dtype has, at which the result is a normal number."""
    return [x.astype(DTYPES[dtype]).astype(float) for x in _digit_operands(name, count)]


COUNT = 60 if IN_FULL else 5


DIGIT_CELLS = list(itertools.product(NUMBER_OF_OPERANDS, ["float32", "float64"]))


@pytest.mark.parametrize(("name", "dtype"), drawn(DIGIT_CELLS, 4))
def test_all_digits_are_right(name, dtype):
    operands = digit_operands(name, dtype, COUNT)
    expected = references.in_digits(name, *operands)
    for compiled in (False, True):
        found = run(name, operands, dtype, compiled)
        wrong = errors(found, expected, dtype)
        bound = np.full(wrong.shape, ACCURACY[name][2 if dtype == "float64" else int(compiled)])
        if dtype == "float64":  # the exponent's rounding
            bound += 5e-16 * np.abs(np.log(np.maximum(np.abs(expected), 1e-308)))
        if dtype == "float64" and name == "betainc":
            bound += 4e-16 * np.sqrt(np.minimum(*operands[:2]))
        bad = wrong > bound
        print(f"{name} {dtype} {'compiled' if compiled else 'evaluated'}: {wrong.max():.3g}")
        assert not bad.any(), report(bad, operands, found, expected, wrong)


def test_the_size_of_the_net():
    points = sum(special_operands(n, d)[0].size for n, d, _ in SPECIAL_CELLS)
    digits = sum(digit_operands(n, "float64", 60)[0].size for n in NUMBER_OF_OPERANDS)
    slopes = len(SLOPES)
    print(f"{points} special points in {len(SPECIAL_CELLS)} cells; {digits} points in digits, four "
          f"ways; {slopes} derivatives")  # fmt: skip
    assert points >= 50_000
    assert digits >= 2_000
    assert slopes >= 60


# --- orders that a program knows ----------------------------------------------------------------

# A number as order is a constant of the program: whole ones have a formula of their own to s = 19.
KNOWN_ORDERS = [*range(1, 21), 1.5, 60]
KNOWN_CELLS = list(itertools.product(["zeta", "polygamma"], KNOWN_ORDERS, ["float32", "float64"]))


def _of_order(name: str, order: float, q: float) -> Any:
    if name == "polygamma":
        return references.mp.polygamma(int(order), q)
    if q > 0:
        return references.IN_DIGITS["zeta"](order, q)
    n = int(order) - 1
    return references.mp.polygamma(n, q) * (-1) ** (n + 1) / references.mp.factorial(n)


@pytest.mark.parametrize(("name", "order", "dtype"), drawn(KNOWN_CELLS, 8))
def test_a_known_order_gives_all_digits(name, order, dtype):
    if name == "polygamma" and order == 1.5:
        order = 0
    function = staged(lambda x: getattr(lax, name)(x.dtype.type(order), x))
    count = COUNT if IN_FULL else 12
    rng = np.random.default_rng(int(order))
    positive = np.concatenate([_spread(rng, -4, 4, count), rng.uniform(0, 12, count)])
    negative = -np.concatenate([rng.uniform(0, 9, count), _spread(rng, -4, 2, count)])
    x = np.concatenate([positive, negative if order != 1.5 else []]).astype(dtype).astype(float)
    with references.mp.workdps(60):
        exact = np.array([float(_of_order(name, order, references.mp.mpf(v))) for v in x])
    with config.enable_x64(dtype == "float64"):
        found = np.asarray(function(xnp.asarray(x.astype(dtype)))).astype(float)
    if name == "zeta" and order == 1:
        assert np.isposinf(found).all()
        return
    # where terms of different signs cancel, near zeros and at odd orders near -1/2, -3/2, ...
    near = np.abs(x - np.round(x)) > 0.2 if (order + (name == "polygamma")) % 2 else x > np.inf
    wrong = np.where((x < 0) & near, 0.0, errors(found, exact, dtype))
    eps = np.finfo(float).eps
    in_general = 8e-13 + 64 * eps * np.abs(np.log(np.abs(exact)))  # the exponent's rounding
    bound = (
        ACCURACY[name][1] if dtype == "float32" else np.where(2 <= order < 19, 2e-14, in_general)
    )
    bad = wrong > bound
    assert not bad.any(), report(bad, [x], found, exact, wrong)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["zeta", "polygamma"])
def test_a_known_order_has_the_limits(name, dtype):
    x = np.unique(special_operands("lgamma", dtype)[0])
    for order in (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, np.inf, np.nan):
        function = staged(lambda v, s=order: getattr(lax, name)(v.dtype.type(s), v))
        with config.enable_x64(dtype == "float64"):
            found = np.asarray(function(xnp.asarray(x.astype(DTYPES[dtype])))).astype(float)
        expected = references.LIMITS[name](np.full(x.shape, order), x)
        wrong = errors(found, expected, dtype)
        bad = (wrong > 8 if dtype != "float64" else wrong > 2e-11) & ~(
            _cancels(name, [np.full(x.shape, order), x], found - expected, dtype))  # fmt: skip
        assert not bad.any(), (order, report(bad, [x], found, expected, wrong))


def test_derivatives_of_known_orders_hold_no_loop():
    for function in (lambda x: lax.zeta(3.0, x), lambda x: lax.polygamma(1.0, x), lax.digamma):
        for _ in range(4):
            text = staged(lambda x, f=function: f(x)).lower(xnp.float32(0.5)).as_text()
            assert "stablehlo.while" not in text
            function = xad.grad(function)


# --- derivatives --------------------------------------------------------------------------------

# A function, its operands, the positions differentiated in, and the derivative.
_P = references.Gamma
_INF, _NAN = np.inf, np.nan
SLOPES: list[tuple[str, tuple[float, ...], tuple[int, ...], Any]] = [
    *[("igamma", (a, x), (1,), lambda a=a, x=x: _P(a, x).density())
      for a, x in [(0.5, 0.25), (2.0, 3.0), (1e5, 1e5), (1e-6, 0.5), (40.0, 20.0)]],
    *[("igamma", (a, x), (0,), lambda a=a, x=x: _P(a, x).slope())
      for a, x in [(0.5, 0.25), (2.0, 3.0), (1e4, 1e4), (1e-6, 0.5), (40.0, 20.0)]],
    *[("igammac", (a, x), (0,), lambda a=a, x=x: -_P(a, x).slope())
      for a, x in [(0.5, 0.25), (2.0, 3.0), (40.0, 60.0)]],
    *[("igamma", (a, x), (1, 1), lambda a=a, x=x: _P(a, x).density() * ((a - 1) / x - 1))
      for a, x in [(0.5, 0.25), (2.0, 3.0), (40.0, 20.0)]],
    *[("igamma", (a, x), order, lambda a=a, x=x: _P(a, x).mixed())
      for a, x in [(0.5, 0.25), (2.0, 3.0), (40.0, 20.0)] for order in [(0, 1), (1, 0)]],
    # at the ends
    ("igamma", (0.5, 0.0), (1,), _INF), ("igamma", (1.0, 0.0), (1,), 1.0),
    ("igamma", (2.0, 0.0), (1,), 0.0), ("igamma", (2.0, _INF), (1,), 0.0),
    ("igamma", (0.5, _INF), (1,), 0.0), ("igammac", (1.0, 0.0), (1,), -1.0),
    ("igamma", (2.0, 0.0), (0,), 0.0), ("igamma", (2.0, _INF), (0,), 0.0),
    ("igamma", (-1.0, 1.0), (1,), _NAN), ("igamma", (1.0, -1.0), (1,), _NAN),
    ("igamma", (_INF, 1.0), (1,), 0.0), ("igamma", (_INF, 1.0), (0,), 0.0),
    ("igamma", (0.5, 0.0), (1, 1), -_INF), ("igamma", (1.0, 0.0), (1, 1), -1.0),
    ("igamma", (1.5, 0.0), (1, 1), _INF), ("igamma", (2.0, 0.0), (1, 1), 1.0),
    ("igamma", (3.0, 0.0), (1, 1), 0.0), ("igamma", (2.0, 0.0), (1, 0), 0.0),
    ("igamma", (2.0, _INF), (1, 0), 0.0),
    # beta
    *[("betainc", row, (2,), lambda row=row: references.beta_density(*row))
      for row in [(0.5, 0.5, 0.25), (2.0, 3.0, 0.5), (1e4, 2e4, 0.3337), (1e-5, 1.0, 0.5)]],
    *[("betainc", (a, b, x), (2, 2), lambda a=a, b=b, x=x:
       references.beta_density(a, b, x) * ((a - 1) / x - (b - 1) / (1 - x)))
      for a, b, x in [(0.5, 0.5, 0.25), (2.0, 3.0, 0.75), (30.0, 40.0, 0.375)]],
    ("betainc", (0.5, 2.0, 0.0), (2,), _INF), ("betainc", (1.0, 3.0, 0.0), (2,), 3.0),
    ("betainc", (2.0, 3.0, 0.0), (2,), 0.0), ("betainc", (3.0, 0.5, 1.0), (2,), _INF),
    ("betainc", (3.0, 1.0, 1.0), (2,), 3.0), ("betainc", (3.0, 2.0, 1.0), (2,), 0.0),
    ("betainc", (0.0, 1.0, 0.5), (2,), 0.0), ("betainc", (1.0, 0.0, 0.5), (2,), 0.0),
    ("betainc", (_INF, 1.0, 0.5), (2,), 0.0), ("betainc", (-1.0, 1.0, 0.5), (2,), _NAN),
    ("betainc", (2.0, 3.0, 0.0), (2, 2), 12.0), ("betainc", (1.0, 3.0, 0.0), (2, 2), -6.0),
    ("betainc", (3.0, 2.0, 1.0), (2, 2), -12.0), ("betainc", (3.0, 1.0, 1.0), (2, 2), 6.0),
    ("betainc", (1.5, 3.0, 0.0), (2, 2), _INF), ("betainc", (3.0, 3.0, 0.0), (2, 2), 0.0),
    # sums and logarithms
    *[("zeta", (s, q), (1,), lambda s=s, q=q: -s * references.mp.zeta(s + 1, q))
      for s, q in [(1.5, 0.5), (3.0, 40.0), (2.0, 1e-3)]],
    ("zeta", (2.0, _INF), (1,), 0.0), ("polygamma", (1.0, _INF), (1,), 0.0),
    *[("polygamma", (n, x), (1,), lambda n=n, x=x: references.mp.polygamma(int(n) + 1, x))
      for n, x in [(0.0, 0.5), (1.0, -1.25), (2.0, 30.0)]],
    *[("lgamma", (x,), (0,), lambda x=x: references.mp.digamma(x)) for x in (0.5, 1.0, 1e6, -1.5)],
    *[("digamma", (x,), (0, 0), lambda x=x: references.mp.polygamma(2, x)) for x in (0.5, 2.0)],
    ("lgamma", (_INF,), (0,), _INF), ("digamma", (_INF,), (0,), 0.0),
]  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_are_the_limits(compiled):
    wrong = []
    for name, operands, positions, expected in drawn(SLOPES, 16 if compiled else len(SLOPES)):
        function = getattr(lax, name)
        for position in positions:
            function = xad.grad(function, position)
        found = float((staged(function) if compiled else function)(*map(np.float32, operands)))
        with references.mp.workdps(40):
            exact = float(expected() if callable(expected) else expected)
        if not np.allclose(found, exact, rtol=2e-5 if len(positions) > 1 else 2e-6, atol=1e-30,
                           equal_nan=True):  # fmt: skip
            wrong.append(f"{name}{operands} in {positions}: {found}, expected {exact}")
    assert wrong == []


@pytest.mark.parametrize("compiled", [False, True])
def test_the_greatest_float64_is_an_order(compiled):
    most = np.finfo(np.float64).max
    operands = [np.full(3, most), np.array([0.5, 40.0, most])]
    found = run("polygamma", operands, "float64", compiled)
    np.testing.assert_array_equal(found, [-np.inf, -np.inf, 0.0])


def test_what_has_no_derivative_says_so():
    for name in ("igamma_grad_a", "polygamma"):
        with pytest.raises(ValueError, match=r"the derivative with respect to .* is not available"):
            xad.grad(getattr(lax, name))(1.0, 2.0)
