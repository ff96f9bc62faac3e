"""Derivatives of expectations: of samples by their parameters, and by the score function."""

import numpy as np
import pytest

import xnp
import xrandom
from xad import grad, jacobian
from xnp.scipy import stats
from xprim import config
from xprim.config import enable_x64

COUNT = 2000


def five_errors(samples):
    """Return five standard errors of the mean: a fair key is outside once in 1.7 million."""
    return 5 * float(np.std(samples)) / np.sqrt(len(samples))


# sampler of (key, parameter), f of a sample, and the derivative of E f by the parameter
PATHWISE = {
    "gamma": (lambda k, a: xrandom.gamma(k, a), lambda x: x**2, lambda a: 2 * a + 1, 1.7),
    "gamma below one": (lambda k, a: xrandom.gamma(k, a), lambda x: x, lambda a: 1.0, 0.3),
    "beta": (lambda k, a: xrandom.beta(k, a, 2.0), lambda x: x, lambda a: 2 / (a + 2) ** 2, 1.3),
    "dirichlet": (
        lambda k, a: xrandom.dirichlet(k, xnp.stack([a, 1.0 + 0 * a, 2.0 + 0 * a], -1)),
        lambda x: x[..., 0], lambda a: 3 / (a + 3) ** 2, 0.8,
    ),
    "chisquare": (lambda k, d: xrandom.chisquare(k, d), lambda x: x, lambda d: 1.0, 3.0),
    "normal": (lambda k, s: s * xrandom.normal(k, s.shape), lambda x: x**2, lambda s: 2 * s, 1.5),
}  # fmt: skip


@pytest.mark.parametrize("name", PATHWISE)
def test_derivatives_of_samples_have_the_mean_of_the_closed_form(name):
    draw, f, derivative, parameter = PATHWISE[name]
    parameters = xnp.full(COUNT, parameter)  # one for each sample
    found = np.asarray(grad(lambda a: f(draw(xrandom.key(0), a)).sum())(parameters))
    assert abs(found.mean() - derivative(parameter)) < five_errors(found)


# of x with log density log p(x, a), the mean of f(x) d/da log p(x, a) is the derivative of E f
SCORES = {
    "gamma": (lambda k, a: xrandom.gamma(k, a), stats.gamma.logpdf, lambda x: x,
              lambda a: 1.0, 1.7),
    "beta": (lambda k, a: xrandom.beta(k, a, 2.0), lambda x, a: stats.beta.logpdf(x, a, 2.0),
             lambda x: x, lambda a: 2 / (a + 2) ** 2, 1.3),
    "poisson": (lambda k, rate: xrandom.poisson(k, rate), stats.poisson.logpmf,
                lambda x: x**2, lambda rate: 2 * rate + 1, 2.5),
    "bernoulli": (lambda k, p: xrandom.bernoulli(k, p).astype(int), stats.bernoulli.logpmf,
                  lambda x: 3 * x, lambda p: 3.0, 0.3),
}  # fmt: skip


@pytest.mark.parametrize("name", SCORES)
def test_the_score_function_has_the_derivative_of_the_expectation(name):
    draw, log_density, f, derivative, parameter = SCORES[name]
    parameters = xnp.full(COUNT, parameter)
    x = draw(xrandom.key(1), parameters)
    terms = f(x) * grad(lambda a: log_density(x, a).sum())(parameters)
    assert abs(float(terms.mean()) - derivative(parameter)) < five_errors(terms)


@pytest.mark.parametrize("a", [0.2, 1.0, 3.5, 40.0])
def test_the_derivative_of_a_gamma_sample_keeps_its_probability(a):
    scipy_stats = pytest.importorskip("scipy.stats")
    with enable_x64():
        x = np.asarray(xrandom.gamma(xrandom.key(2), a, (50,)))
        found = np.asarray(jacobian(lambda a: xrandom.gamma(xrandom.key(2), a, (50,)))(a))
    step = 1e-5 * a
    by_shape = (scipy_stats.gamma.cdf(x, a + step) - scipy_stats.gamma.cdf(x, a - step)) / 2 / step
    # F(x(a), a) is constant: dx/da = -(dF/da) / p(x); central differences of 1e-5 are right to 1e-7
    np.testing.assert_allclose(found, -by_shape / scipy_stats.gamma.pdf(x, a), rtol=1e-5, atol=1e-9)


def test_counts_do_not_move_with_their_parameters():
    for draw in (lambda r: xrandom.poisson(xrandom.key(0), r), lambda p: xrandom.bernoulli(
            xrandom.key(0), p), lambda p: xrandom.binomial(xrandom.key(0), 9, p)):  # fmt: skip
        with config.discrete_derivatives("allow"):
            assert float(grad(lambda a, draw=draw: draw(a).astype("float32") * 1.0)(0.5)) == 0
