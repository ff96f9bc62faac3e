"""Distributions and statistics, compared with SciPy's."""

import inspect
import pickle

import numpy as np
import pytest

import xnp
import xnp.scipy.stats as stats
from xprim import config, make_jaxpr

scipy_stats = pytest.importorskip("scipy.stats")

CONTINUOUS = {
    "beta": (2.0, 0.5), "cauchy": (), "chi2": (3.0,), "expon": (), "gamma": (2.5,),
    "gennorm": (1.5,), "gumbel_l": (), "gumbel_r": (), "laplace": (), "logistic": (), "norm": (),
    "pareto": (2.5,), "t": (3.0,), "truncnorm": (-1.0, 2.0), "uniform": (), "vonmises": (2.0,),
    "wrapcauchy": (0.4,),
}  # fmt: skip
DISCRETE = {
    "bernoulli": (0.3,), "betabinom": (9, 2.0, 3.0), "binom": (9, 0.3), "geom": (0.3,),
    "nbinom": (2.5, 0.4), "poisson": (3.5,),
}  # fmt: skip
INVALID = {
    "beta": (-1.0, 2.0), "chi2": (0.0,), "gamma": (0.0,), "gennorm": (-1.0,), "pareto": (-2.0,),
    "t": (0.0,), "truncnorm": (2.0, 1.0), "wrapcauchy": (1.5,), "bernoulli": (1.5,),
    "betabinom": (9, -1.0, 2.0), "binom": (9.5, 0.3), "geom": (0.0,), "nbinom": (0.0, 0.5),
    "poisson": (-1.0,),
}  # fmt: skip
POINTS = np.array([-np.inf, -50, -2, -1, -0.5, 0, -0.0, 0.25, 1, 1.5, 2, 3, 6.2, 10, 60, np.inf,
                   np.nan])  # fmt: skip
COUNTS = np.array([-np.inf, -1, 0, 0.5, 1, 2, 3, 9, 10, 50, np.inf, np.nan])
QUANTILES = np.array([0, 1e-9, 0.1, 0.5, 0.9, 1, -0.1, 1.1, np.nan])


def functions(name):
    """Return the functions of a distribution by their names."""
    made = getattr(stats, name)
    return {k: v for k, v in vars(made).items() if callable(v) and k != "entropy"}


def points_of(name, kind):
    if kind in ("ppf", "isf"):
        return QUANTILES
    return COUNTS if name in DISCRETE else POINTS


def locations(name, function, shapes):
    """Return the locations and scales that a function is tried with, edges among them."""
    if len(inspect.signature(function).parameters) == 1 + len(shapes):
        return [()]
    return [(), (1,)] if name in DISCRETE else [(), (0.5, 2.0), (0.0, -1.0), (0, 0.0)]


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_every_function_is_that_of_scipy_also_at_edges(name):
    shapes = (CONTINUOUS | DISCRETE)[name]
    for kind, function in functions(name).items():
        x = points_of(name, kind)
        for rest in locations(name, function, shapes):
            with config.enable_x64(True), np.errstate(all="ignore"):
                found = np.asarray(function(x, *shapes, *rest))
                expected = getattr(getattr(scipy_stats, name), kind)(x, *shapes, *rest)
            # where SciPy takes infinity from infinity, the limit is 0
            limit = np.isinf(x) & np.isnan(expected) & np.isin(found, [0, -np.inf])
            expected = np.where(limit, found, expected)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300, err_msg=kind)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_single_precision_is_near_double_precision(name):
    shapes = (CONTINUOUS | DISCRETE)[name]
    for kind, function in functions(name).items():
        x = points_of(name, kind)
        x = x[np.isfinite(x) & (abs(x) < 20)].astype(np.float32)
        found = function(x, *map(np.float32, shapes))
        assert found.dtype == np.float32
        with config.enable_x64(True):
            expected = np.asarray(function(x.astype(float), *shapes))
        # the logarithms of densities are rounded before powers are taken of them
        np.testing.assert_allclose(found, expected, rtol=3e-5, atol=1e-6, err_msg=kind)


@pytest.mark.parametrize("name", INVALID)
def test_parameters_that_are_not_valid_give_nan(name):
    for function in functions(name).values():
        assert np.isnan(function(0.5 if name in CONTINUOUS else 1, *INVALID[name]))


def test_distributions_take_arguments_by_name_and_refuse_others():
    assert stats.norm.logpdf(x=1.0, scale=2.0, loc=1.0) == stats.norm.logpdf(1.0, 1.0, 2.0)
    with pytest.raises(TypeError, match="missing a required argument: 'a'"):
        stats.gamma.pdf(1.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'mean'"):
        stats.norm.pdf(1.0, mean=2.0)
    assert [*inspect.signature(stats.logistic.ppf).parameters] == ["x", "loc", "scale"]


def test_a_distribution_is_found_as_a_module():
    import xnp.scipy.stats.norm as norm
    from xnp.scipy.stats.poisson import logpmf

    assert norm is stats.norm and logpmf is stats.poisson.logpmf
    again = pickle.loads(pickle.dumps((stats.norm, stats.norm.logpdf, stats.dirichlet.pdf)))
    assert again == (stats.norm, stats.norm.logpdf, stats.dirichlet.pdf)
    assert repr(norm) == "<distribution xnp.scipy.stats.norm>"


def test_locations_that_are_not_given_leave_few_operations():
    program = str(make_jaxpr(stats.norm.logpdf)(1.0))
    assert program.count("=") < 25


def test_the_entropy_of_poisson_is_that_of_scipy_and_its_series():
    mu = np.array([0.0, 0.1, 1.0, 10.0, 59.0, 61.0, 400.0])
    with config.enable_x64(True):
        found = stats.poisson.entropy(mu)
    # SciPy sums; the series is cut at mu^-5
    np.testing.assert_allclose(found, scipy_stats.poisson.entropy(mu), rtol=1e-7)
    assert np.isnan(stats.poisson.entropy(-1.0))


@pytest.mark.parametrize("mu", [0.5, 3.0, 19.0, 20.0, 21.0, 49.0, 60.0, 100.0])
def test_the_entropy_of_poisson_is_right_in_single_precision(mu):
    # of the sum of exp(k log(mu) - mu - log(k!)) the logarithms have some ulp of their largest term
    expected = scipy_stats.poisson.entropy(mu)
    np.testing.assert_allclose(stats.poisson.entropy(np.float32(mu)), expected, rtol=1e-6)


def test_vectors_have_the_densities_of_scipy():
    rng = np.random.default_rng(0)
    mean, root = rng.normal(size=3), rng.normal(size=(3, 3))
    cov, x = root @ root.T, rng.normal(size=(5, 3))
    theirs = scipy_stats.multivariate_normal
    with config.enable_x64(True):
        for singular in (None, True):
            ours = stats.multivariate_normal.logpdf(x, mean, cov, allow_singular=singular)
            np.testing.assert_allclose(ours, theirs.logpdf(x, mean, cov), rtol=1e-10)
        np.testing.assert_allclose(stats.multivariate_normal.pdf(0.3, 0.1, 2.0),
                                   theirs.pdf(0.3, 0.1, 2.0))  # fmt: skip
        singular = np.diag([2.0, 0.0, 1.0])
        inside = np.array([[0.5, 0.0, 1.0], [0.5, 1.0, 1.0]])
        np.testing.assert_allclose(
            stats.multivariate_normal.logpdf(inside, np.zeros(3), singular, allow_singular=True),
            theirs.logpdf(inside, np.zeros(3), singular, allow_singular=True))  # fmt: skip
        alpha = np.array([0.5, 2.0, 3.0])
        points = np.array([[0.2, 0.1], [0.3, 0.9], [0.5, 0.0]])
        np.testing.assert_allclose(stats.dirichlet.logpdf(points, alpha),
                                   scipy_stats.dirichlet.logpdf(points, alpha))  # fmt: skip
        np.testing.assert_allclose(stats.dirichlet.pdf(points[:2], alpha),
                                   scipy_stats.dirichlet.pdf(points[:2], alpha))  # fmt: skip
        assert stats.dirichlet.logpdf(np.array([0.5, 0.5, 0.5]), alpha) == -np.inf
        counts, p = np.array([[1, 2, 3], [0, 6, 0], [1, 1, 1]]), np.array([0.2, 0.5, 0.3])
        np.testing.assert_allclose(stats.multinomial.logpmf(counts, 6, p),
                                   scipy_stats.multinomial.logpmf(counts, 6, p))  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1, None, -1])
def test_statistics_of_samples_are_those_of_scipy(axis):
    a = np.array([[3, 1, 3, 2], [1, 1, 5, 2], [3, 4, 5, 2]])
    for keepdims in (False, True):
        found = stats.mode(a, axis=axis, keepdims=keepdims)
        expected = scipy_stats.mode(a, axis=axis, keepdims=keepdims)
        np.testing.assert_array_equal(found.mode, expected.mode)
        np.testing.assert_array_equal(found.count, expected.count)
        error = scipy_stats.sem(a, axis, keepdims=keepdims)
        np.testing.assert_allclose(stats.sem(a, axis, keepdims=keepdims), error, rtol=1e-6)
    for method in ("average", "min", "max", "dense", "ordinal"):
        found = stats.rankdata(a, method, axis=axis)
        np.testing.assert_array_equal(found, scipy_stats.rankdata(a, method, axis=axis))
    with_nan = np.where(a == 4, np.nan, a.astype(float))
    np.testing.assert_array_equal(stats.rankdata(with_nan, axis=axis),
                                  scipy_stats.rankdata(with_nan, axis=axis))  # fmt: skip
    error = scipy_stats.sem(with_nan, axis, nan_policy="omit")
    np.testing.assert_allclose(stats.sem(with_nan, axis, nan_policy="omit"), error, rtol=1e-6)


def test_an_estimate_of_a_density_is_that_of_scipy():
    rng = np.random.default_rng(1)
    data, weights, points = rng.normal(size=(2, 12)), rng.uniform(size=12), rng.normal(size=(2, 4))
    with config.enable_x64(True):
        for bw in (None, "silverman", 0.3, lambda kde: kde.neff**-0.1):
            ours = stats.gaussian_kde(data, bw, weights)
            theirs = scipy_stats.gaussian_kde(data, bw, weights)
            np.testing.assert_allclose(ours(points), theirs(points), rtol=1e-10)
            np.testing.assert_allclose(ours.logpdf(points), theirs.logpdf(points), rtol=1e-10)
        mean, cov = np.array([0.1, 0.2]), np.array([[1.0, 0.2], [0.2, 2.0]])
        np.testing.assert_allclose(ours.integrate_gaussian(mean, cov),
                                   theirs.integrate_gaussian(mean, cov))  # fmt: skip
        np.testing.assert_allclose(ours.integrate_kde(ours), theirs.integrate_kde(theirs))
        line, other = stats.gaussian_kde(data[0]), scipy_stats.gaussian_kde(data[0])
        np.testing.assert_allclose(line.integrate_box_1d(-1, 0.5), other.integrate_box_1d(-1, 0.5))
        assert (line.d, line.n) == (1, 12) and np.isclose(line.neff, 12)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: stats.gaussian_kde(np.zeros(1)), "must be two or more real samples"),
        (lambda: stats.gaussian_kde(np.zeros(3), "best"), "unknown bw_method"),
        (lambda: stats.gaussian_kde(np.zeros(3), weights=np.ones(2)), "a weight for each sample"),
        (lambda: stats.rankdata(np.zeros(3), "least"), "rankdata: unknown method"),
        (lambda: stats.mode(np.zeros(3), nan_policy="omit"), "whose shape or error depends"),
        (lambda: stats.mode(np.zeros(3), nan_policy="no"), "unknown nan_policy"),
        (lambda: stats.dirichlet.pdf(np.zeros(5), np.ones(3)), "points do not fit"),
        (lambda: stats.multivariate_normal.pdf(np.zeros(3), np.zeros(3), np.eye(2)),
         "covariance does not fit"),
    ],
)  # fmt: skip
def test_what_is_refused_says_why(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_shapes_broadcast():
    x, loc = np.zeros((4, 1), np.float32), np.zeros(3, np.float32)
    assert stats.norm.cdf(x, loc).shape == (4, 3)
    assert stats.binom.pmf(xnp.arange(3), 2, 0.5).shape == (3,)
    assert stats.gamma.logpdf(np.zeros((0,), np.float32), 2.0).shape == (0,)
