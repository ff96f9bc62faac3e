"""Samplers with the method "approximate", which have no loop."""

import numpy as np
import pytest

import xrandom
from xprim import make_jaxpr

KEY = xrandom.key(3)
COUNT = 40_000
# At a level of 1e-5 the Kolmogorov-Smirnov statistic of n samples is below 2.47 / sqrt(n); the
# approximation adds 2e-4 at most.
BOUND = 2.47 / COUNT**0.5 + 2e-4


@pytest.mark.parametrize("a", [0.3, 1.0, 2.5, 30.0, 1e4, 1e8])
def test_gamma_samples_are_distributed_as_they_should_be(a):
    stats = pytest.importorskip("scipy.stats")
    found = np.asarray(xrandom.gamma(KEY, a, (COUNT,), method="approximate"), np.float64)
    assert stats.kstest(found, stats.gamma(a).cdf).statistic < BOUND
    logs = np.asarray(xrandom.loggamma(KEY, a, (COUNT,), method="approximate"), np.float64)
    np.testing.assert_allclose(np.exp(logs), found, rtol=2e-5)  # of a logarithm of 30 in float32


def test_logarithms_of_gamma_samples_have_no_lower_bound():
    stats = pytest.importorskip("scipy.stats")
    found = np.asarray(xrandom.loggamma(KEY, 1e-3, (COUNT,), method="approximate"), np.float64)
    assert np.isfinite(found).all()
    assert stats.kstest(-1e-3 * found, stats.expon.cdf).statistic < BOUND  # a log(x) as a goes to 0


def test_samples_made_of_gamma_samples_are_distributed_as_they_should_be():
    stats = pytest.importorskip("scipy.stats")
    for a, b in ((0.3, 2.0), (5.0, 7.0), (1e4, 1e4)):
        found = np.asarray(xrandom.beta(KEY, a, b, (COUNT,), method="approximate"), np.float64)
        assert stats.kstest(found, stats.beta(a, b).cdf).statistic < BOUND
    found = np.asarray(xrandom.chisquare(KEY, 3.0, (COUNT,), method="approximate"), np.float64)
    assert stats.kstest(found, stats.chi2(3).cdf).statistic < BOUND


@pytest.mark.parametrize("rate", [0.1, 3.0, 11.9, 12.1, 100.0])
def test_poisson_counts_are_distributed_as_they_should_be(rate):
    stats = pytest.importorskip("scipy.stats")
    found = np.asarray(xrandom.poisson(KEY, rate, (COUNT,), method="approximate"))
    shares = np.bincount(found) / COUNT
    expected = stats.poisson.pmf(np.arange(len(shares)), rate)
    assert np.abs(np.cumsum(shares) - np.cumsum(expected)).max() < BOUND


@pytest.mark.parametrize("method", ["exact", "approximate"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_means_that_are_no_numbers_or_beyond_the_counts_have_counts_that_say_so(method, dtype):
    # many infinite ones: of some the rejection used to compute infinity less infinity
    rates = np.array([0.0, np.nan, -1.0, *[np.inf] * 20], dtype)
    counts = xrandom.poisson(KEY, rates, method=method)
    assert counts.tolist() == [0, -1, -1, *[2**31 - 1] * 20]
    assert int(xrandom.poisson(KEY, np.float32(3e9), method=method)) == 2**31 - 1


def test_there_is_no_loop():
    def draw(a):
        return [getattr(xrandom, name)(KEY, a, method="approximate")
                for name in ("gamma", "loggamma", "chisquare", "poisson")]  # fmt: skip

    assert "while" not in str(make_jaxpr(draw)(2.0))
    assert "while" in str(make_jaxpr(lambda a: xrandom.poisson(KEY, a))(2.0))


def test_the_dtype_is_the_one_asked_for():
    for dtype in ("bfloat16", "float16", "float32"):
        assert xrandom.gamma(KEY, 2.0, (3,), dtype, method="approximate").dtype == dtype


@pytest.mark.parametrize("name", ["gamma", "loggamma", "chisquare", "poisson"])
def test_there_is_no_third_method(name):
    with pytest.raises(ValueError, match=f"{name}: unknown method 'quick'"):
        getattr(xrandom, name)(KEY, 2.0, method="quick")
