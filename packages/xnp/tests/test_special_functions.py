"""Special functions against SciPy and mpmath, which computes them in more digits."""

from __future__ import annotations

import numpy as np
import pytest

from xnp.primitives.special_error import erf_inv_p, erf_p, erfc_p
from xnp.primitives.special_functions import bessel_i0e_p, bessel_i1e_p
from xnp.primitives.special_gamma import (
    digamma_p,
    igamma_grad_a_p,
    igamma_p,
    igammac_p,
    lgamma_p,
    polygamma_p,
    random_gamma_grad_p,
    regularized_incomplete_beta_p,
    zeta_p,
)
from xprim import state


def host(primitive, *operands):
    return state.run_quietly(primitive.rule("numpy"), *[np.asarray(x) for x in operands])[0]


def points(seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(size=100) * s for s in (1e-8, 0.1, 1, 3, 10, 30)])


def positive_points(seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.uniform(0, 3, 200), rng.uniform(0, 200, 100),
                           10.0 ** rng.uniform(-15, 15, 100)])  # fmt: skip


def reference(function, *operands):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(30):
        rows = zip(*[np.asarray(x, float).tolist() for x in operands], strict=True)
        return np.array([float(mpmath.re(function(mpmath, *map(mpmath.mpf, row)))) for row in rows])


def test_erf_and_erfc_are_right_to_a_few_ulp():
    x = np.concatenate([points(), [1.0, -1.0, 26.5]])
    expected = reference(lambda m, v: m.erf(v), x)
    np.testing.assert_allclose(host(erf_p, x), expected, rtol=1e-15)
    expected = reference(lambda m, v: m.erfc(v), x)
    np.testing.assert_allclose(host(erfc_p, x), expected, rtol=4e-15, atol=1e-305)


def test_erf_inv_is_right_to_a_few_ulp():
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(-1, 1, 100), rng.uniform(-1, 1, 20) * 1e-9,
                        1 - 10.0 ** -np.arange(1, 16)])  # fmt: skip
    expected = reference(lambda m, v: m.erfinv(v), p)
    np.testing.assert_allclose(host(erf_inv_p, p), expected, rtol=2e-15)


def test_lgamma_is_right_near_its_zeros_and_far_out():
    x = np.concatenate([positive_points(), [1 + 1e-9, 2 - 1e-9, 1.0, 2.0]])
    expected = reference(lambda m, v: m.loggamma(v), x)
    np.testing.assert_allclose(host(lgamma_p, x), expected, rtol=2e-15)


def test_lgamma_of_negative_numbers():
    x = -np.abs(points(1)) - 0.01
    expected = reference(lambda m, v: m.log(abs(m.gamma(v))), x)
    np.testing.assert_allclose(host(lgamma_p, x), expected, rtol=1e-12, atol=1e-13)


def test_digamma_is_right_near_its_zero_and_far_out():
    x = np.concatenate([positive_points(), 1.4616321449683622 + np.linspace(-1e-9, 1e-9, 5)])
    expected = reference(lambda m, v: m.digamma(v), x)
    np.testing.assert_allclose(host(digamma_p, x), expected, rtol=4e-15)
    x = -np.abs(points(2)) - 0.01
    expected = reference(lambda m, v: m.digamma(v), x)
    np.testing.assert_allclose(host(digamma_p, x), expected, rtol=1e-11, atol=1e-11)


def test_zeta_for_large_and_small_exponents():
    rng = np.random.default_rng(0)
    s = np.concatenate([rng.uniform(1.01, 12, 60), rng.uniform(12, 60, 20)])
    q = 10.0 ** rng.uniform(-2, 1, 80)
    expected = reference(lambda m, u, v: m.zeta(u, v), s, q)
    np.testing.assert_allclose(host(zeta_p, s, q), expected, rtol=1e-13)


def test_polygamma_agrees_with_mpmath():
    rng = np.random.default_rng(0)
    m, x = rng.integers(0, 8, 60).astype(float), rng.uniform(0.01, 50, 60)
    expected = reference(lambda mp, k, v: mp.polygamma(int(k), v), m, x)
    np.testing.assert_allclose(host(polygamma_p, m, x), expected, rtol=1e-13)


def test_incomplete_gamma_functions_agree_with_scipy():
    special = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(0)
    a = 10.0 ** rng.uniform(-3, 3, 300)
    x = a * 10.0 ** rng.uniform(-1.5, 1.5, 300)
    tolerance = {"rtol": 3e-12, "atol": 1e-290}
    np.testing.assert_allclose(host(igamma_p, a, x), special.gammainc(a, x), **tolerance)
    np.testing.assert_allclose(host(igammac_p, a, x), special.gammaincc(a, x), **tolerance)
    a = 10.0 ** rng.uniform(3, 6, 20)
    x = a * (1 + rng.normal(size=20) / np.sqrt(a))
    np.testing.assert_allclose(host(igamma_p, a, x), special.gammainc(a, x), rtol=1e-11)


def test_incomplete_gamma_functions_at_the_edges_of_their_domain():
    a = np.array([1, 0, 0, -1, 1, 1, np.inf, np.inf, np.nan, 1.0])
    x = np.array([0, 1, 0, 1, -1, np.inf, 1, np.inf, 1, np.nan])
    nan = np.nan
    lower = [0, 1, nan, nan, nan, 1, 0, nan, nan, nan]
    np.testing.assert_array_equal(host(igamma_p, a, x), lower)
    np.testing.assert_array_equal(host(igammac_p, a, x), 1 - np.array(lower, float))


def test_derivatives_of_incomplete_gamma_functions_in_their_shape():
    rng = np.random.default_rng(1)
    a = 10.0 ** rng.uniform(-2, 2, 25)
    x = rng.gamma(a) + 1e-6

    def slope(m, u, v):
        h = u * m.mpf("1e-10")
        ends = [m.gammainc(u + s * h, 0, v, regularized=True) for s in (1, -1)]
        return (ends[0] - ends[1]) / (2 * h)

    expected = reference(slope, a, x)
    np.testing.assert_allclose(host(igamma_grad_a_p, a, x), expected, rtol=1e-11, atol=1e-14)

    def sample_slope(m, u, v):
        return -slope(m, u, v) / (v ** (u - 1) * m.exp(-v) / m.gamma(u))

    expected = reference(sample_slope, a, x)
    np.testing.assert_allclose(host(random_gamma_grad_p, a, x), expected, rtol=1e-11, atol=1e-14)


def test_incomplete_beta_agrees_with_scipy():
    special = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(0)
    a, b = 10.0 ** rng.uniform(-2, 3, (2, 300))
    x = rng.uniform(0, 1, 300)
    expected = special.betainc(a, b, x)
    found = host(regularized_incomplete_beta_p, a, b, x)
    np.testing.assert_allclose(found, expected, rtol=5e-11, atol=1e-290)


def test_scaled_bessel_functions_agree_with_scipy():
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([points(), [8.0, -8.0, 1e6]])
    np.testing.assert_allclose(host(bessel_i0e_p, x), special.i0e(x), rtol=2e-15)
    np.testing.assert_allclose(host(bessel_i1e_p, x), special.i1e(x), rtol=4e-15)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_results_in_few_bits_are_rounded_once(dtype):
    x = points()[200:400].astype(dtype)
    for primitive in (erf_p, lgamma_p, digamma_p, bessel_i0e_p):
        with np.errstate(over="ignore"):
            expected = host(primitive, x.astype(np.float64)).astype(dtype)
        np.testing.assert_array_equal(host(primitive, x), expected)
