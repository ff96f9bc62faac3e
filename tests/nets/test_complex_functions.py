"""Functions of complex numbers near zero, near poles and far out, by both engines.

The reference is NumPy in complex128, whose range and digits leave room for complex64.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import xnp
from xjit import jit
from xnp import lax

PARTS = [0.0, 1.0, -1.0, 0.5, -2.0, 1e-30, -1e-30, 1e-20, 1e-5, -1e-3, 0.1, 30.0, -90.0, 1e15,
         -1e15, 1e20, 1e30, 3e38, -3e38]  # fmt: skip
POINTS = np.array([complex(x, y) for x in PARTS for y in PARTS], np.complex64)
NAMES = """
abs angle exp expm1 log log1p log2 log10 sqrt square reciprocal sin cos tan sinh cosh tanh
arcsin arccos arctan arcsinh arccosh arctanh sign""".split()
# Of these each part by itself has its digits, although the other one may be far larger.
OF_PARTS = ["sin", "cos", "sinh", "cosh", "exp", "log"]


def _log1p(z):
    """Return log(1 + z), where NumPy's own loses small real parts."""
    return np.where(np.abs(z) < 1e-4, z - z * z / 2 + z**3 / 3, np.log(1 + z))


@functools.cache
def _compiled():
    found = jit(lambda z: [getattr(xnp, name)(z) for name in NAMES])(POINTS)
    return dict(zip(NAMES, map(np.asarray, found), strict=True))


def _result(name, compiled):
    return _compiled()[name] if compiled else np.asarray(getattr(xnp, name)(POINTS))


def _expected(name):
    with np.errstate(all="ignore"):
        reference = _log1p if name == "log1p" else getattr(np, name)
        expected = reference(POINTS.astype(np.complex128))
    size = np.abs(expected)
    return expected, np.isfinite(size) & (size < 3e38)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_a_complex_function_has_the_digits_of_float32(name, compiled):
    expected, known = _expected(name)
    found = _result(name, compiled)[known].astype(np.complex128)
    # a few roundings; what is subnormal may be zero
    close = np.abs(found - expected[known]) <= 2e-6 * np.abs(expected[known]) + 2e-38
    rows = zip(POINTS[known], found, expected[known], close, strict=True)
    assert [row[:3] for row in rows if not row[3]] == []


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", OF_PARTS)
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_each_part_of_a_complex_function_has_the_digits_of_float32(name, compiled):
    expected, known = _expected(name)
    found = _result(name, compiled)
    # angles of thousands and more: their remainders by pi have few digits
    known &= np.abs(POINTS.real) + np.abs(POINTS.imag) < 100
    for part in ("real", "imag"):
        ours, theirs = getattr(found, part)[known], getattr(expected, part)[known]
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-38)


def test_sinc_is_1_at_small_numbers():
    x = np.array([1e-30j, 1e-20, 1e-5j, 1e-4 + 1e-4j, 0], np.complex64)
    for sinc in (xnp.sinc, jit(xnp.sinc)):
        np.testing.assert_allclose(sinc(x), np.ones(5), rtol=1e-6)


def test_a_power_has_the_range_of_its_result():
    x = [-2.5 + 0.5j, -3e38 - 3e38j, 1e-3, 0.02 + 0.02j, 0.5 - 1e20j, 3e38 - 3e38j]
    y = [1e3 + 1e3j, 1e-30j, -1e3j, 20 - 40j, -2, -1e-20 - 1e-20j]
    x, y = np.array(x, np.complex64), np.array(y, np.complex64)
    expected = np.power(x.astype(complex), y.astype(complex))
    for power in (lax.pow, jit(lax.pow)):
        np.testing.assert_allclose(power(x, y), expected, rtol=2e-4, atol=1e-38)


def test_a_power_beyond_all_numbers_is_infinite():
    x, y = (
        np.array([1e3 + 1e3j, -2.5 + 0.5j], np.complex64),
        np.array([1e3 + 1e3j, 9e3], np.complex64),
    )
    for power in (lax.pow, jit(lax.pow)):
        assert np.isinf(np.abs(power(x, y))).all() and not np.isnan(power(x, y)).any()


# Both ends of the range, and numbers within a factor of four of the greatest.
ENDS = [0.0, 1.0, -0.5, 3e-38, 8e37, 9e37, -1.7e38, 3.4e38, float(np.finfo(np.float32).max)]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_a_quotient_of_complex_numbers_leaves_the_range_only_where_it_does(compiled):
    numbers = np.array([complex(re, im) for re in ENDS for im in ENDS], np.complex64)
    x, y = [v.ravel() for v in np.meshgrid(numbers, numbers[1:], indexing="ij")]
    divide = jit(lax.div) if compiled else lax.div
    found = np.asarray(divide(x, y)).astype(np.complex128)
    expected = x.astype(np.complex128) / y
    known = np.abs(expected) < 3e38
    # a few roundings; what is subnormal may be zero
    close = np.abs(found - expected) <= 1e-6 * np.abs(expected) + 4e-38
    wrong = known & ~close
    rows = zip(x[wrong], y[wrong], found[wrong], expected[wrong], strict=True)
    assert list(rows) == []
    beyond = np.maximum(np.abs(expected.real), np.abs(expected.imag)) > 3.5e38
    assert beyond.any() and np.isinf(np.abs(found[beyond])).all()


def test_complex_numbers_with_a_nan_come_last_when_compiled():
    parts = [0, 1, -np.inf, np.inf, np.nan]
    x = np.array([complex(re, im) for re in parts for im in parts], np.complex64)
    x = np.random.default_rng(0).permutation(x)
    ordered, places = jit(lambda x: (xnp.sort(x), xnp.argsort(x)))(x)
    np.testing.assert_array_equal(ordered, np.sort(x))
    np.testing.assert_array_equal(places, np.argsort(x, kind="stable"))


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_infinite_logarithms_of_sums_are_the_same_compiled(name):
    parts = [-np.inf, -1, -0.0, 0, 1, np.inf, np.nan]
    numbers = np.array([complex(re, im) for re in parts for im in parts], np.complex64)
    x, y = [v.ravel() for v in np.meshgrid(numbers, numbers)]
    eager, compiled = [np.asarray(f(x, y)) for f in (getattr(xnp, name), jit(getattr(xnp, name)))]
    for part in ("real", "imag"):
        np.testing.assert_allclose(getattr(eager, part), getattr(compiled, part), rtol=2e-6)
    nothing = (x.real == -np.inf) & np.isfinite(y)
    np.testing.assert_array_equal(eager.real[nothing], y.real[nothing])


def test_sinc_is_0_at_the_ends_of_lines_along_the_real_axis():
    x = np.array([complex(np.inf, -2), complex(-np.inf, 3)], np.complex64)
    for sinc in (xnp.sinc, jit(xnp.sinc)):
        assert np.asarray(sinc(x)).tolist() == [0, 0]
