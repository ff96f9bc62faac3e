"""Derivatives of the functions of `xnp.lax` at kinks, and their compilation with params."""

from __future__ import annotations

import numpy as np
import pytest

import xad
import xjit
import xnp
from xnp import lax
from xprim import config

F32 = np.float32


KINKS = {
    "abs at zero": (lambda lx, x: lx.abs(x), (0.0,)),
    "max of equal operands": (lambda lx, x, y: lx.max(x, y), (1.0, 1.0)),
    "max": (lambda lx, x, y: lx.max(x, y), (1.0, 2.0)),
    "min of equal operands": (lambda lx, x, y: lx.min(x, y), (1.0, 1.0)),
    "sign at zero": (lambda lx, x: lx.sign(x), (0.0,)),
    "pow of zero": (lambda lx, x, y: lx.pow(x, y), (0.0, 2.0)),
    "integer_pow of zero": (lambda lx, x: lx.integer_pow(x, 0), (0.0,)),
    "clamp at the lower bound": (lambda lx, a, x, b: lx.clamp(a, x, b), (0.0, 0.0, 1.0)),
    "clamp at the upper bound": (lambda lx, a, x, b: lx.clamp(a, x, b), (0.0, 1.0, 1.0)),
    "clamp below": (lambda lx, a, x, b: lx.clamp(a, x, b), (0.0, -1.0, 1.0)),
    "clamp above": (lambda lx, a, x, b: lx.clamp(a, x, b), (0.0, 2.0, 1.0)),
    "rem": (lambda lx, x, y: lx.rem(x, y), (7.5, -2.0)),
    "sqrt at zero": (lambda lx, x: lx.sqrt(x), (0.0,)),
    "tanh far out": (lambda lx, x: lx.tanh(x), (30.0,)),
    "logistic far out": (lambda lx, x: lx.logistic(x), (-30.0,)),
    "bessel_i1e at zero": (lambda lx, x: lx.bessel_i1e(x), (0.0,)),
    "floor": (lambda lx, x: lx.floor(x), (1.5,)),
    "stop_gradient": (lambda lx, x: lx.mul(lx.stop_gradient(x), x), (3.0,)),
}


@pytest.mark.parametrize("case", KINKS)
def test_derivative_at_a_kink_is_that_of_the_oracle(case):
    jax = pytest.importorskip("jax")
    function, operands = KINKS[case]
    argnums = tuple(range(len(operands)))
    operands = [F32(x) for x in operands]
    expected = jax.grad(lambda *xs: function(jax.lax, *xs), argnums)(*operands)
    found = xad.grad(lambda *xs: function(lax, *xs), argnums)(*operands)
    np.testing.assert_allclose(np.array(found), np.array(expected), rtol=1e-5)


@pytest.mark.parametrize("x", [-1.0, 0.7, 1.2, 3.0])
def test_the_derivative_of_clamp_between_crossed_bounds_is_that_of_the_upper_one(x):
    """It was 0 for all three unless x was above: the value is min(max(low, x), high) = high."""
    found = xad.grad(lax.clamp, (0, 1, 2))(F32(1.5), F32(x), F32(1.0))
    np.testing.assert_array_equal(np.array(found), [0, 0, 1])


def test_the_derivative_of_a_power_to_zero_is_zero_also_at_zero():
    found = xad.grad(lax.pow, (0, 1))(F32(0), F32(0))
    np.testing.assert_array_equal(np.array(found), [0, 0])


COMPLEX = {
    "abs": lambda lx, z: lx.abs(z),
    "abs of the square": lambda lx, z: lx.abs(lx.mul(z, z)),
    "real": lambda lx, z: lx.real(lx.exp(z)),
    "imag": lambda lx, z: lx.imag(lx.sin(z)),
    "conj": lambda lx, z: lx.real(lx.mul(lx.conj(z), lx.exp(z))),
    "complex": lambda lx, z: lx.abs(lx.complex(lx.imag(z), lx.real(z))),
    "convert": lambda lx, z: lx.real(lx.convert_element_type(lx.real(z), "complex64")),
}


@pytest.mark.parametrize("case", COMPLEX)
@pytest.mark.parametrize("z", [1 + 2j, -0.5j, 0j])
def test_gradient_of_a_complex_operand_follows_the_convention_of_the_oracle(case, z):
    jax = pytest.importorskip("jax")
    z = np.complex64(z)
    expected = jax.grad(lambda v: COMPLEX[case](jax.lax, v))(z)
    found = xad.grad(lambda v: COMPLEX[case](lax, v))(z)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5, atol=1e-6)


def test_accuracy_reaches_the_compiled_operation():

    def text(**options):
        return xjit.jit(lambda x: lax.exp(x, **options)).lower(F32(1)).as_text()

    assert "result_accuracy" not in text()
    assert "result_accuracy_mode<HIGHEST>" in text(accuracy=lax.AccuracyMode.HIGHEST)
    assert "mode = #stablehlo.result_accuracy_mode<TOLERANCE>" in text(
        accuracy=lax.Tolerance(ulps=4)
    )
    result = xjit.jit(lambda x: lax.tanh(x, accuracy=lax.Tolerance(rtol=1e-4)))(F32(1))
    np.testing.assert_allclose(np.asarray(result), np.tanh(1.0), rtol=1e-4)


def test_accuracy_is_no_obstacle_to_derivatives():
    found = xad.grad(lambda x: lax.sin(x, accuracy=lax.AccuracyMode.HIGHEST))(F32(1))
    np.testing.assert_allclose(np.asarray(found), np.cos(1.0), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_compiled_derivative_of_digamma_is_right_on_both_sides(dtype):
    mp = pytest.importorskip("mpmath")
    rng = np.random.default_rng(0)
    x = np.concatenate([10 ** rng.uniform(-12, 9, 200), -rng.uniform(0, 30, 200)]).astype(dtype)
    ends = np.array([0.0, -0.0, -1.0, np.inf, -np.inf, np.nan], dtype)
    derivative = xjit.jit(xad.grad(lambda x: lax.digamma(x).sum()))
    with config.enable_x64(dtype == "float64"), mp.workdps(30):
        found, at_ends = [np.asarray(derivative(xnp.asarray(v))) for v in (x, ends)]
        expected = np.array([float(mp.polygamma(1, mp.mpf(float(v)))) for v in x])
    # half a unit of the last place of float32; a few operations of float64
    rtol = {"float32": 0.6, "float64": 4}[dtype] * np.finfo(dtype).eps
    np.testing.assert_allclose(found.astype(float), expected, rtol=rtol)
    np.testing.assert_array_equal(at_ends, [np.inf, np.inf, np.inf, 0.0, np.inf, np.nan])


def test_a_derivative_that_is_not_known_says_so():
    with pytest.raises(ValueError, match="polygamma: the derivative with respect to m is not"):
        xad.grad(lambda m: lax.polygamma(m, 1.0))(2.0)


def test_the_derivative_of_a_product_with_zeros_is_right():
    gradient = xad.grad(lambda v: lax.reduce_prod(v, (0,)))
    np.testing.assert_array_equal(np.asarray(gradient(np.float32([0, 2, 3]))), [6, 0, 0])
    np.testing.assert_array_equal(np.asarray(gradient(np.float32([0, 2, 0]))), [0, 0, 0])


def test_elements_that_tie_for_the_maximum_share_the_gradient():
    gradient = xad.grad(lambda v: lax.reduce_max(v, (0,)))(np.float32([3, 1, 3]))
    np.testing.assert_array_equal(np.asarray(gradient), [0.5, 0, 0.5])


def test_reduce_by_a_program_is_differentiable():

    def joined(a, b):
        return lax.add(lax.add(a, b), lax.mul(a, b))

    x = np.float32([1, 2, 3])
    gradient = xad.grad(lambda v: lax.reduce(v, 0.0, joined, (0,)))(x)
    np.testing.assert_allclose(np.asarray(gradient), [12, 8, 6], rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"left": 0.0}, {"period": 0.5}])
def test_interpolation_between_points_that_nearly_coincide_has_finite_derivatives(options):
    x = np.exp(np.linspace(-90, -20, 300)).astype(F32)  # the first are subnormal
    ones = xnp.ones(300)
    slopes = xad.grad(lambda z: xnp.interp(z, z, ones, **options).sum())(xnp.asarray(x))
    assert np.isfinite(np.asarray(slopes)).all()
    assert xnp.interp(x[200], x, x).item() == x[200]
