"""Functions of `xnp.scipy.special` that are not numbers of numbers, and what they refuse."""

import numpy as np
import pytest

import xnp
import xnp.scipy.special as special
from xprim import config, make_jaxpr
from xprim.errors import ConcretizationTypeError

scipy_special = pytest.importorskip("scipy.special")


def near(found, expected, rtol=1e-6):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=1e-7)


def test_bernoullis_numbers_are_those_of_scipy():
    with config.enable_x64(True):
        near(special.bernoulli(60), scipy_special.bernoulli(60), 1e-13)
        assert np.isinf(special.bernoulli(300)[-1]) and special.bernoulli(300)[-1] < 0
    assert special.bernoulli(0).tolist() == [1.0]


@pytest.mark.parametrize("v", [0, 1, 5])
def test_bessel_functions_of_whole_order_are_those_of_scipy(v):
    z = np.array([0.0, 1e-3, 0.5, -2.0, 8.0, 20.0], np.float32)
    found = special.bessel_jn(z, v=v)
    assert found.shape == (v + 1, 6) and found.dtype == np.float32
    near(found, [scipy_special.jv(k, z) for k in range(v + 1)], 1e-5)


def test_spherical_harmonics_are_those_of_scipy():
    n = np.array([0, 1, 1, 2, 3, 5, 5, 8])
    m = np.array([0, 0, -1, 2, -3, 4, -5, 7])
    theta, phi = np.linspace(0.1, 3.0, 8), np.linspace(-1.0, 6.0, 8)
    with config.enable_x64(True):
        near(
            special.sph_harm_y(n, m, theta, phi), scipy_special.sph_harm_y(n, m, theta, phi), 1e-13
        )
    near(special.sph_harm_y(9, 1, 0.3, 0.5, n_max=2), scipy_special.sph_harm_y(2, 1, 0.3, 0.5))
    of_no_degree = np.asarray(special.sph_harm_y(np.array([np.nan, np.inf, 1.0]), 0, 0.3, 0.5))
    assert np.isnan(of_no_degree).tolist() == [True, True, False]


def test_faddeevas_function_is_that_of_scipy():
    x, y = np.meshgrid(np.linspace(-9, 9, 19), np.linspace(-3, 9, 13))
    z = x + 1j * y
    with config.enable_x64(True):
        near(special.wofz(z), scipy_special.wofz(z), 1e-11)
        near(special.wofz(x[0]), scipy_special.wofz(x[0]), 1e-13)
    assert special.wofz(np.float32(1)).dtype == np.complex64


def test_the_complex_logarithm_of_gamma_is_that_of_scipy():
    x, y = np.meshgrid(np.linspace(-6.3, 12, 14), [-20.0, -3.0, -0.1, 0.1, 2.0, 9.0])
    with config.enable_x64(True):
        near(special.loggamma(x + 1j * y), scipy_special.loggamma(x + 1j * y), 1e-12)


def test_signs_of_gamma_and_many_dimensions():
    x = np.array([0.0, -0.0, 1.5, -0.5, -1.5, -2.0, np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(special.gammasgn(x), scipy_special.gammasgn(x))
    a = np.array([3.5, 9.0], np.float32)
    near(special.multigammaln(a, 3), scipy_special.multigammaln(a, 3), 2e-6)


def test_sums_of_exponentials():
    x = np.array([[1.0, 200.0, -np.inf], [0.5, 0.25, 3.0]], np.float32)
    near(special.softmax(x), scipy_special.softmax(x))
    near(special.softmax(x, axis=1), scipy_special.softmax(x, axis=1))
    near(special.log_softmax(x, axis=0)[:, :2], scipy_special.log_softmax(x[:, :2], axis=0))
    b = np.array([1.0, -1.0, 0.0], np.float32)
    value, sign = special.logsumexp(x, axis=1, b=b, return_sign=True)
    expected = scipy_special.logsumexp(x, axis=1, b=b, return_sign=True)
    near(value, expected[0])
    near(sign, expected[1])


def test_binomials_of_whole_numbers_are_exact():
    n, k = np.meshgrid(np.arange(1, 13), np.arange(13))
    for repetition in (False, True):
        expected = scipy_special.comb(n, k, repetition=repetition)
        np.testing.assert_array_equal(special.comb(n, k, repetition=repetition), expected)


def test_operands_are_promoted_and_broadcast():
    assert special.xlogy(xnp.arange(3), xnp.ones((2, 1), xnp.bfloat16)).dtype == xnp.bfloat16
    assert special.betainc(1, 2, np.zeros((2, 3), np.float32)).shape == (2, 3)
    assert special.gammaln(np.zeros((0, 2), np.int32)).shape == (0, 2)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: special.factorial(3, exact=True), "factorial: exact=True has no arrays."),
        (lambda: special.bernoulli(-1), "bernoulli: n is negative."),
        (lambda: special.bessel_jn(1.0, v=5, n_iter=5), "must begin above the orders"),
        (lambda: special.sph_harm_y(1, 0, 0.1, 0.1, diff_n=1), "sph_harm_y: has no derivatives"),
        (lambda: special.log_ndtr(0.0, series_order=-1), "log_ndtr: series_order is negative."),
    ],
)
def test_what_is_refused_says_why(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("numbers", [(1j, 0), (1, 1j), (np.zeros((2, 0), complex), 0)])
def test_complex_degrees_and_orders_are_refused(numbers):
    with pytest.raises(TypeError, match="requires degrees and orders that are integers, got"):
        special.sph_harm_y(*numbers, 0.1, 0.1)


def test_complex_operands_of_real_functions_are_refused():
    with pytest.raises(TypeError, match="expected  a real floating dtype"):
        special.ndtr(1j)


def test_the_greatest_degree_of_traced_degrees_is_asked_for() -> None:
    with pytest.raises(ConcretizationTypeError, match="greatest degree is not known while tracing"):
        make_jaxpr(lambda n: special.sph_harm_y(n, 1, 0.3, 0.5))(2)
    make_jaxpr(lambda n: special.sph_harm_y(n, 1, 0.3, 0.5, n_max=3))(2)


def test_gamma_of_complex_numbers_is_that_of_scipy():
    rng = np.random.default_rng(0)
    z = (rng.normal(size=50) + 1j * rng.normal(size=50)) * 2
    expected = scipy_special.gamma(z)
    # exp of a logarithm of magnitude 10 and below: ten times its rounding
    np.testing.assert_allclose(xnp.scipy.special.gamma(z.astype(np.complex64)), expected, rtol=2e-5)
    poles = np.array([0, -1, -7], np.complex64)
    assert np.isnan(xnp.scipy.special.gamma(poles)).all()
