"""Derivatives of float32 over its whole range of exponents, beside those in float64.

What is squared on the way leaves the range of float32 from 1e19 and below 1e-19, where the
derivative does not, and differences of large numbers have no digits left. In float64 neither
happens to numbers of float32, so it is a reference that needs no list of functions.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import xstack
from tests.nets import derivative_rows, derivatives
from tests.nets.cells import COMPILER_OPTIONS, drawn

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Explicitly requested dtype:UserWarning"),
]

_SIZES = [0, 1.2e-38, 1e-36, 3e-30, 1e-22, 1e-12, 1e-4, 0.5, 1, 3, 50, 1e6, 1e13, 2e19, 1e25, 1e37]
_FEWER = [0, 2e-38, 1e-30, 1e-22, 1e-6, 1, 1e6, 2e19, 1e25, 1e37]
_COMPLEX = """
np.angle(lax.complex(x, y)); np.abs(lax.complex(x, y)); np.log(lax.complex(x, y))
np.sqrt(lax.complex(x, y)); np.sign(lax.complex(x, y)); np.real(lax.complex(x, y) ** 2)
"""
ROWS = [
    *derivative_rows.elementwise(),
    *(text for line in _COMPLEX.strip().splitlines() for text in line.split("; ")),
]

# Whose second derivatives lose digits, and why. First ones are held, but of the second table.
SECOND_LOSE_DIGITS = {
    r"(lax\.logistic|nn\.sigmoid)\(x\)": "1 - 2 y of a result y beside 1/2",
    r"nn\.log1mexp\(x\)": "below 0 it has no value",
    r"(np|lax)\.(arc|a)sinh\(x\)": "a factor of 1e-26 is found from one of 1e-39",
    r"(np|lax)\.(arctan2|atan2)\(x, y\)": "the difference of x^2 and y^2 has no digits at x = y",
    r"lax\.igammac?\(.*": "the density of the third order is subnormal below 1e-19",
    r"(np\.(float_)?pow(er)?|lax\.pow)\(x, y\)": "x^(y-2) is infinite where y is about 0",
    r"np\.(sqrt|log|angle|sign)\(lax.*": "a tangent 0 of one part has an infinite factor",
}
LOSE_DIGITS = {
    r"nn\.squareplus\(x(, y)?\)": "b is lost beside the square of x, or that is 0 or infinite",
    r"np\.polyval\(.*": "a power of x is infinite",
}


def is_in(table: dict[str, str], text: str) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in table)


def operands_of(text: str) -> list[np.ndarray]:
    names = derivatives.used(text, {"x": np.zeros(0), "y": np.zeros(0)})
    if len(names) == 1:
        return [np.array([sign * size for size in _SIZES for sign in (1, -1)], np.float32)]
    signed = [*_FEWER, *(-size for size in _FEWER[1::2])]
    return list(np.array(list(itertools.product(signed, signed)), np.float32).T)


def test_the_size_of_the_net() -> None:
    points = sum(operands_of(text)[0].size for text in ROWS)
    print(f"{len(ROWS)} expressions at {points} points")
    assert len(ROWS) >= 215
    assert points >= 15_000


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("text", drawn(ROWS, 4))
def test_derivatives_are_those_in_double_precision(text: str, compiled: bool) -> None:
    operands = operands_of(text)
    names = derivatives.used(text, {"x": np.zeros(0), "y": np.zeros(0)})
    program = derivatives.elementwise(xstack, text, names)
    run = xstack.jit(program, compiler_options=COMPILER_OPTIONS) if compiled else program
    found = derivatives.taken(xstack, run, operands, False)
    with xstack.enable_x64(True):
        wide = derivatives.taken(xstack, program, [x.astype(np.float64) for x in operands], False)
    info = np.finfo(np.float32)
    if is_in(LOSE_DIGITS, text):
        pytest.skip("its digits are lost")
    loses = is_in(SECOND_LOSE_DIGITS, text)
    for key, values in found.items():
        if loses and len(key.split()[0]) > 2:
            continue
        v, expected = values.astype(np.float64), wide[key].astype(np.float64)
        with np.errstate(all="ignore"):
            # what is near the ends of the range may be rounded to 0 or infinity
            held = np.isfinite(expected) & (np.abs(expected) < info.max / 4)
            wrong = held & ~(np.abs(v - expected) <= 1e-3 * np.abs(expected) + 4 * info.tiny)
        assert not wrong.any(), (
            f"{key} at {[x[wrong][:4].tolist() for x in operands]}: "
            f"found {v[wrong][:4]}, expected {expected[wrong][:4]}"
        )


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", ["sigmoid", "silu"])
def test_second_derivatives_of_sigmoids_have_digits_far_below_zero(
    name: str, compiled: bool
) -> None:
    function = getattr(xstack.nn, name)
    x = np.array([-20.0, -44.0, -50.0, -60.0, -80.0])
    # e^x (1 + ...) of both, to e^-20
    expected = np.exp(x) * (1 if name == "sigmoid" else 2 + x)
    reverse, forward = xstack.grad(xstack.grad(function)), xstack.jacfwd(xstack.grad(function))
    for derivative in (reverse, forward, xstack.jacrev(xstack.jacfwd(function))):
        run = xstack.vmap(derivative)
        found = (xstack.jit(run) if compiled else run)(x.astype(np.float32))
        np.testing.assert_allclose(found, expected, rtol=1e-5)  # e^x: 2 ulp of x


def test_the_derivative_of_arcsinh_does_not_overflow_in_narrow_floats() -> None:
    # 1 / sqrt(1 + x^2), whose square is infinite in float16 from 256
    for run in (xstack.grad(xstack.numpy.arcsinh), xstack.jit(xstack.grad(xstack.numpy.arcsinh))):
        found = run(np.float16(300))
        np.testing.assert_allclose(found, 1 / 300, rtol=1e-3)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("text", ["x / y", "entr", "xlogy", "1 / y"])
def test_quotients_by_small_numbers_have_derivatives(text: str, compiled: bool) -> None:
    # XLA makes (x / y) / y a quotient by y y, which is 0
    xnp, special = xstack.numpy, xstack.scipy.special
    y = np.array([1e-30, 1e-20, 1e-4, 3.0, 1e18], np.float32)
    wide = y.astype(np.float64)
    derivative, expected = {
        "x / y": (xstack.grad(lambda y: xnp.float32(0) / y), 0 * wide),
        "entr": (xstack.grad(xstack.grad(special.entr)), -1 / wide),
        "xlogy": (xstack.grad(xstack.grad(lambda x: special.xlogy(x, x))), 1 / wide),
        "1 / y": (xstack.grad(lambda y: xnp.float32(1e-18) / y), -1e-18 / wide / wide),
    }[text]
    run = xstack.vmap(derivative)
    with np.errstate(over="ignore"):
        found = (xstack.jit(run) if compiled else run)(y)
        expected = expected.astype(np.float32)
    np.testing.assert_allclose(found, expected, 1e-5, 1e-38)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_second_derivatives_of_log_ndtr_vanish_far_above_zero(compiled: bool) -> None:
    mp = pytest.importorskip("mpmath")
    x = np.array([-30, -3, 0, 1e-3, 0.5, 3, 9, 20, 100, 1e10, 3e38], np.float32)

    def exact(x: float) -> float:
        x = mp.mpf(x)
        slope = mp.npdf(x) / mp.ncdf(x)
        return float(-slope * (slope + x))

    run = xstack.vmap(xstack.grad(xstack.grad(xstack.scipy.special.log_ndtr)))
    found = (xstack.jit(run) if compiled else run)(x)
    with mp.workdps(600):  # slope + x loses as many digits as x^2 has below 0
        expected = [exact(float(v)) for v in x]
    # rounding of x^2 / 2 in the density, and of a difference of 450 and 449 at -30
    np.testing.assert_allclose(found, expected, 2e-4, 1e-37)
