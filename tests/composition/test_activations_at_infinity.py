"""Activations and their derivatives at infinity are what they are far out, in every dtype."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import xstack
from xstack import nn

# What f(x), f'(x) and f''(x) are at minus infinity, and at infinity.
LIMITS = {
    "celu": ((-1, 0, 0), (np.inf, 1, 0)), "elu": ((-1, 0, 0), (np.inf, 1, 0)),
    "gelu": ((0, 0, 0), (np.inf, 1, 0)), "hard_sigmoid": ((0, 0, 0), (1, 0, 0)),
    "hard_silu": ((0, 0, 0), (np.inf, 1, 0)), "hard_tanh": ((-1, 0, 0), (1, 0, 0)),
    "log_sigmoid": ((-np.inf, 1, 0), (0, 0, 0)), "mish": ((0, 0, 0), (np.inf, 1, 0)),
    "relu": ((0, 0, 0), (np.inf, 1, 0)), "relu6": ((0, 0, 0), (6, 0, 0)),
    "sigmoid": ((0, 0, 0), (1, 0, 0)), "silu": ((0, 0, 0), (np.inf, 1, 0)),
    "soft_sign": ((-1, 0, 0), (1, 0, 0)), "softplus": ((0, 0, 0), (np.inf, 1, 0)),
    "sparse_plus": ((0, 0, 0), (np.inf, 1, 0)), "sparse_sigmoid": ((0, 0, 0), (1, 0, 0)),
    "squareplus": ((0, 0, 0), (np.inf, 1, 0)), "tanh": ((-1, 0, 0), (1, 0, 0)),
}  # fmt: skip
FUNCTIONS = {name: getattr(nn, name) for name in LIMITS} | {
    "gelu by erf": lambda x: nn.gelu(x, approximate=False)
}
DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}


def slope(f):
    """Return the derivative of an activation, number by number."""
    return lambda x: xstack.jvp(f, (x,), (xstack.numpy.ones_like(x),))[1]


def slopes(x):
    """Return the values, slopes and second slopes of all activations, number by number."""
    found = {}
    for name, f in FUNCTIONS.items():
        (reverse,) = xstack.vjp(f, x)[1](xstack.numpy.ones_like(x))
        found[name] = (f(x), slope(f)(x), slope(slope(f))(x), reverse)
    return found


@pytest.mark.parametrize(
    ("dtype", "how"), [*[(dtype, "eager") for dtype in DTYPES], ("float32", "compiled")]
)
def test_activations_have_their_limits_at_infinity_and_at_the_largest_numbers(dtype, how):
    largest = float(ml_dtypes.finfo(DTYPES[dtype]).max)
    ends = np.array([-np.inf, -largest, largest, np.inf]).astype(DTYPES[dtype])
    found = (xstack.jit(slopes) if how == "compiled" else slopes)(xstack.numpy.asarray(ends))
    for name, (value, first, second, reverse) in found.items():
        left, right = LIMITS[name.split()[0]]
        expected = np.array([left, left, right, right], np.float64)
        for k in (1, 2):  # what is infinite at infinity is as large as its operand before
            if np.isinf(expected[k, 0]):
                expected[k, 0] = ends[k]
        for got, wanted in ((value, 0), (first, 1), (second, 2), (reverse, 1)):
            np.testing.assert_allclose(  # at -x squareplus is still 1 / x
                np.asarray(got, np.float64), expected[:, wanted], rtol=0, atol=1 / largest,
                err_msg=f"{name} {wanted}",
            )  # fmt: skip


@pytest.mark.parametrize("name", ["gelu", "gelu by erf", "mish", "silu", "squareplus"])
def test_the_slope_is_one_where_a_formula_gives_way_to_the_line(name):
    f = FUNCTIONS[name]
    for bound in (10.0, 40.0, 1000.0, float(np.sqrt(np.finfo(np.float32).max)) / 2):
        beside = np.float32([np.nextafter(np.float32(bound), np.float32(0)), bound])
        for x in beside:
            expected = 1.0 if name != "squareplus" else (1 + x / np.hypot(x, 2, dtype=float)) / 2
            np.testing.assert_allclose(xstack.grad(f)(x), expected, rtol=1e-3, err_msg=f"{x}")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gelu_has_three_derivatives_at_every_number_of_few_bits(dtype):
    numbers = np.arange(1 << 16, dtype=np.uint16).view(DTYPES[dtype])
    numbers = numbers[np.isfinite(numbers.astype(np.float32))]
    # one rounding: all three are below 2
    bound = float(ml_dtypes.finfo(DTYPES[dtype]).eps)
    f = FUNCTIONS["gelu"]
    for _ in range(3):
        f = slope(f)
        got = np.asarray(f(xstack.numpy.asarray(numbers)), np.float32)
        expected = f(xstack.numpy.asarray(numbers.astype(np.float32)))
        np.testing.assert_allclose(got, expected, rtol=0, atol=bound)


def test_an_activation_of_nan_is_nan_and_takes_complex_numbers():
    for name in FUNCTIONS:
        assert np.isnan(FUNCTIONS[name](np.float32(np.nan))), name
    z = np.complex64(0.5 + 2j)
    np.testing.assert_allclose(nn.silu(z), z / (1 + np.exp(-z)), rtol=1e-6)
    np.testing.assert_allclose(nn.squareplus(z), (z + np.sqrt(z * z + 4)) / 2, rtol=1e-6)


@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_squareplus_of_negative_numbers_does_not_cancel(how):
    x = -np.geomspace(1e-3, 1e15, 60).astype(np.float32)
    r = np.sqrt(x.astype(np.longdouble) ** 2 + 4)
    f = xstack.jit(nn.squareplus) if how == "compiled" else nn.squareplus
    # some five operations, each rounded once; their derivative has about twice as many
    np.testing.assert_allclose(f(x), 2 / (r - x), rtol=3e-7)
    np.testing.assert_allclose(slope(f)(x), 2 / (r * (r - x)), rtol=6e-7)


def test_squareplus_broadcasts_what_it_is_given():
    b = np.float32([[0.0], [4.0]])
    x = np.float32([-2.0, 0.0, 1e30])
    expected = (x.astype(float) + np.sqrt(x.astype(float) ** 2 + b)) / 2
    np.testing.assert_allclose(nn.squareplus(x, b), expected, rtol=1e-6, atol=1e-6)


def test_the_slope_of_the_logistic_function_keeps_its_digits_far_from_zero():
    x = np.linspace(-60, 60, 49).astype(np.float32)
    exact = np.exp(-np.abs(x.astype(np.float64))) / (1 + np.exp(-np.abs(x.astype(np.float64)))) ** 2
    for way in (xstack.grad, lambda f: xstack.jit(xstack.grad(f))):
        found = way(lambda x: nn.sigmoid(x).sum())(x)
        np.testing.assert_allclose(found, exact, rtol=1e-5)  # e^x of x = 60 to a few ulp of x


def test_gelu_by_tanh_keeps_its_digits_far_below_zero():
    x = np.linspace(-9, -1, 33).astype(np.float32)
    u = 2 * np.sqrt(2 / np.pi) * x * (1 + 0.044715 * x.astype(np.float64) ** 2)
    for f in (nn.gelu, xstack.jit(nn.gelu)):
        # e^u of u = -66 to a few ulp of u, where 1 + tanh(u / 2) has no digit
        np.testing.assert_allclose(f(x), x / (1 + np.exp(-u)), rtol=2e-5)
