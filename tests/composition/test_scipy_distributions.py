"""Distributions compiled, in batches and differentiated, forward and reverse."""

import inspect
import itertools

import numpy as np
import pytest

import xad
import xbatch
import xjit
import xrandom
from tests.nets.cells import COMPILER_OPTIONS, drawn
from xnp.scipy import stats
from xprim import ShapeDtypeStruct, config, dtypes, eval_shape

# A point inside, and parameters.
INSIDE = {
    "beta": (0.3, 2.0, 0.5), "cauchy": (0.7,), "chi2": (1.2, 3.0), "expon": (0.5,),
    "gamma": (1.5, 2.5), "gennorm": (0.6, 1.5), "gumbel_l": (0.3,), "gumbel_r": (0.3,),
    "laplace": (-0.4,), "logistic": (0.6,), "norm": (0.4,), "pareto": (1.7, 2.5), "t": (0.8, 3.0),
    "truncnorm": (0.5, -1.0, 2.0), "uniform": (0.4,), "vonmises": (0.5, 2.0),
    "wrapcauchy": (0.7, 0.4),
}  # fmt: skip
NO_SLOPE = {"beta": (1, 2)}  # betainc has a derivative in its last operand alone
CELLS = [(name, kind) for name in INSIDE for kind, f in sorted(vars(getattr(stats, name)).items())
         if callable(f)]  # fmt: skip


def staged(function):
    return xjit.jit(function, compiler_options=COMPILER_OPTIONS)


@pytest.mark.parametrize(("name", "kind"), drawn(CELLS, 4))
def test_functions_are_differentiated_forward_reverse_and_compiled(name, kind):
    function, args = getattr(getattr(stats, name), kind), list(INSIDE[name])
    if kind in ("ppf", "isf"):
        args[0] = 0.3
    if len(inspect.signature(function).parameters) > len(args):
        args += [0.05, 1.1]
    with config.enable_x64(True):
        args = [np.float64(a) for a in args]
        np.testing.assert_allclose(staged(function)(*args), function(*args), rtol=1e-12)
        batch = xbatch.vmap(function)(*[np.full(2, a) for a in args])
        np.testing.assert_allclose(batch, [function(*args)] * 2, rtol=1e-12)
        skipped = NO_SLOPE.get(name, ()) if kind not in ("logpdf", "pdf") else ()
        for i in [i for i in range(len(args)) if i not in skipped]:

            def of_one(v, i=i):
                return function(*args[:i], v, *args[i + 1 :])

            step = 1e-5
            # a difference of the second order: its error is the step squared
            expected = float(of_one(args[i] + step) - of_one(args[i] - step)) / (2 * step)
            forward = xad.jvp(of_one, (args[i],), (np.float64(1),))[1]
            reverse = staged(xad.grad(of_one))(args[i])
            np.testing.assert_allclose([forward, reverse], [expected] * 2, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("function", "x", "slope"),
    [
        (stats.expon.logpdf, -1.0, 0.0),  # outside of the support
        (stats.uniform.cdf, 2.0, 0.0),
        (lambda p: stats.binom.logpmf(0, 5, p), 0.0, -5.0),
        (lambda mu: stats.poisson.logpmf(0, mu), 0.0, -1.0),
        (lambda a: stats.gamma.logpdf(2.0, a), 1.0, np.log(2.0) + np.euler_gamma),
        (stats.norm.logcdf, -30.0, 30.03321),
        (stats.norm.logsf, 30.0, -30.03321),
        (lambda s: stats.norm.logpdf(0.5, 0.0, s), 1.0, -0.75),
    ],
)
def test_slopes_at_edges_are_right(function, x, slope):
    x = np.float32(x)
    forward = xad.jvp(function, (x,), (np.float32(1),))[1]
    np.testing.assert_allclose([forward, xad.grad(function)(x)], [slope] * 2, rtol=1e-5)


@pytest.mark.parametrize(("name", "kind"), [c for c in CELLS if c[1] not in ("ppf", "isf")])
def test_slopes_far_away_are_numbers_where_the_values_are(name, kind):
    function, shapes = getattr(getattr(stats, name), kind), INSIDE[name][1:]
    located = len(inspect.signature(function).parameters) > len(shapes) + 1
    x = np.array([-np.inf, -3e38, -1e20, 1e20, 3e38, np.inf], np.float32)
    tail = [np.zeros_like(x), np.full_like(x, 0.5)] if located else []
    values, pull = xad.vjp(lambda x, *tail: function(x, *shapes, *tail), x, *tail)
    values = np.asarray(values)
    for slopes in pull(np.ones_like(x)):
        slopes = np.asarray(slopes)
        assert not np.isnan(slopes[np.isfinite(values)]).any(), (values, slopes)


@pytest.mark.parametrize(("name", "kind"), CELLS)
def test_slopes_are_not_numbers_where_the_values_are_not(name, kind):
    function, shapes = getattr(getattr(stats, name), kind), INSIDE[name][1:]
    located = len(inspect.signature(function).parameters) > len(shapes) + 1
    x = np.array([np.nan, 0.5], np.float32)
    tail = [np.zeros_like(x), np.ones_like(x)] if located else []
    values, pull = xad.vjp(lambda *args: function(args[0], *shapes, *args[1:]), x, *tail)
    forward = xad.jvp(lambda x: function(x, *shapes, *tail), (x,), (np.ones_like(x),))[1]
    for found in (values, forward, *pull(np.ones_like(x))):
        np.testing.assert_array_equal(np.isnan(found), [True, False])
    second = xad.grad(xad.grad(lambda x: function(x, *shapes)))
    assert np.isnan(second(np.float32(np.nan)))


@pytest.mark.parametrize(("name", "kind"), [c for c in CELLS if c[1] in ("ppf", "isf")])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_slopes_of_quantiles_in_narrow_dtypes_are_those_of_double_precision(name, kind, dtype):
    function, shapes = getattr(getattr(stats, name), kind), INSIDE[name][1:]
    dtype = dtypes.as_dtype(dtype)
    epsilon = float(dtypes.finfo(dtype).eps)
    x = np.array([0, 0.125, 0.25, 0.375, 0.5, 0.75, 0.875, 1]).astype(dtype)

    def slopes(x):
        _, pull = xad.vjp(lambda x: function(x, *shapes), x)
        forward = xad.jvp(lambda x: function(x, *shapes), (x,), (np.ones_like(x),))[1]
        return [np.asarray(s).astype(np.float64) for s in (forward, pull(np.ones_like(x))[0])]

    with config.enable_x64(True):
        expected, _ = slopes(x.astype(np.float64))
    with np.errstate(all="ignore"):
        for found in slopes(x):
            assert (np.isnan(found) == np.isnan(expected)).all(), (found, expected)
            # a few operations of the density, of which each rounds once
            np.testing.assert_allclose(found[1:-1], expected[1:-1], rtol=30 * epsilon)


_VECTORS = {"dirichlet", "multinomial", "multivariate_normal"}
UNIVARIATE = sorted({n for n in stats.distributions.__all__ if hasattr(stats, n)} - _VECTORS)
EVERY = CELLS + [
    (name, kind) for name in UNIVARIATE
    for kind, f in sorted(vars(getattr(stats, name)).items())
    if "pmf" in vars(getattr(stats, name)) and kind != "ppf" and callable(f)
]  # fmt: skip
SPECIAL = [-1.0, 0.0, 0.5, 1.0, 3.0, np.inf, -np.inf, np.nan]
FEWER = [0.0, 1.0, 3.0, np.inf, -np.inf, np.nan]


def slopes_of(function, args, i):
    """Return the slopes of a function by argument i, forward and reverse."""
    ones = np.ones_like(args[i])

    def of_one(x):
        return function(*args[:i], x, *args[i + 1 :])

    forward, pull = xad.jvp(of_one, (args[i],), (ones,))[1], xad.vjp(of_one, args[i])[1]
    return np.asarray(forward), np.asarray(pull(ones)[0])


@pytest.mark.fuzz
@pytest.mark.parametrize(("name", "kind"), drawn(EVERY, 50))
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_slopes_by_parameters_at_special_points(name, kind):
    function = getattr(getattr(stats, name), kind)
    given = [p for p in inspect.signature(function).parameters if p not in ("loc", "scale")]
    grid = itertools.product(SPECIAL if len(given) < 3 else FEWER, repeat=len(given))
    args = list(np.array([*grid], np.float32).T.copy())
    value = np.asarray(function(*args))
    for i in range(len(args)):
        if kind not in ("logpdf", "pdf") and i in NO_SLOPE.get(name, ()):
            continue
        forward, reverse = slopes_of(function, args, i)
        apart = np.isfinite(forward) != np.isfinite(reverse)
        assert not apart.any(), f"by {given[i]} {[list(a[apart]) for a in args]}: one is a number"
        known = np.isfinite(forward)
        np.testing.assert_allclose(reverse[known], forward[known], rtol=1e-3, atol=1e-5)
        assert np.isnan(forward[np.isnan(value)]).all()
        lost = np.isnan(forward) & np.isfinite(value)
        if name == "beta":  # all mass in one point: at the step there is no slope
            lost &= ~(np.isin(args[0], (0, 1)) & np.any([np.isinf(a) for a in args[1:]], axis=0))
        assert not lost.any(), f"by {given[i]} {[list(a[lost]) for a in args]}: no slope"


@pytest.mark.parametrize(
    ("function", "x", "slope"),
    [
        (lambda x: stats.gamma.pdf(x, 3.0), 0.0, 0.0),
        (lambda x: stats.gamma.pdf(x, 2.0), 0.0, 1.0),
        (lambda x: stats.chi2.pdf(x, 4.0), 0.0, 0.25),
        (lambda x: stats.beta.pdf(x, 2.0, 2.0), 0.0, 6.0),
        (lambda x: stats.beta.pdf(x, 2.0, 2.0), 1.0, -6.0),
        (lambda p: stats.bernoulli.pmf(0, p), 1.0, -1.0),
        (lambda p: stats.binom.pmf(2, 3, p), 1.0, -3.0),
        (lambda p: stats.binom.pmf(1, 3, p), 0.0, 3.0),
        (lambda p: stats.geom.pmf(2, p), 1.0, -1.0),
        (lambda p: stats.nbinom.pmf(1, 3, p), 1.0, -3.0),
        (lambda mu: stats.poisson.pmf(1, mu), 0.0, 1.0),
        (lambda x: stats.gennorm.cdf(x, 2.0), 0.0, 1 / np.sqrt(np.pi)),
        (lambda x: stats.truncnorm.cdf(x, 0.0, np.inf), 0.0, np.sqrt(2 / np.pi)),
        (lambda a: stats.truncnorm.logpdf(1.0, a, np.inf), 0.0, np.sqrt(2 / np.pi)),
    ],
)
def test_slopes_of_densities_at_their_zeros_are_right(function, x, slope):
    forward, reverse = slopes_of(function, [np.float32(x)], 0)
    np.testing.assert_allclose([forward, reverse], [slope] * 2, rtol=1e-5, atol=1e-6)


WITH_QUANTILES = EVERY + [(n, "ppf") for n in ("bernoulli",)]


@pytest.mark.parametrize("number", [0.5, 1])
def test_functions_of_python_numbers_alone_have_a_weak_type(number):
    for name, kind in WITH_QUANTILES:
        if (name, kind) == ("poisson", "entropy"):
            continue  # the entropy of the oracle has a strong type
        function = getattr(getattr(stats, name), kind)
        count = len([p for p in inspect.signature(function).parameters.values()
                     if p.default is p.empty])  # fmt: skip
        numbers = [number] * count
        found = eval_shape(function, *numbers)
        assert (found.dtype, found.weak_type) == (np.float32, True), (name, kind)
        for k in range(count):
            array = ShapeDtypeStruct((2,), dtypes.bfloat16)
            found = eval_shape(function, *numbers[:k], array, *numbers[k + 1 :])
            assert (found.dtype, found.weak_type) == (dtypes.bfloat16, False), (name, kind, k)


def test_samples_of_an_estimate_have_its_mean_and_spread():
    data = np.random.default_rng(0).normal(size=(2, 50)).astype(np.float32)
    kde = stats.gaussian_kde(data)
    for key in (xrandom.key(0), xrandom.PRNGKey(0)):
        sample = kde.resample(key, (20, 100))
        assert sample.shape == (2, 20, 100)
        flat = np.asarray(sample).reshape(2, -1)
        # five standard errors of 2000 samples
        np.testing.assert_allclose(flat.mean(1), data.mean(1), atol=0.12)
        expected = np.cov(data) * (1 - 1 / 50) + np.asarray(kde.covariance)
        np.testing.assert_allclose(np.cov(flat), expected, atol=0.2)
    compiled = xjit.jit(lambda k: k.logpdf(data))(kde)
    np.testing.assert_allclose(compiled, kde.logpdf(data), rtol=1e-5)


@pytest.mark.parametrize(("name", "kind"), CELLS)
def test_complex_numbers_have_no_distribution(name, kind):
    function, shapes = getattr(getattr(stats, name), kind), INSIDE[name][1:]
    with pytest.raises(TypeError, match=f"{name}.{kind}: distributions are those of real numbers"):
        function(np.complex64(0.3 + 0.2j), *shapes)
