"""Distributions and statistics with SciPy's names: `xnp.scipy.stats`.

    norm, t, gamma, ...     distributions on intervals: norm.logpdf(x, loc, scale), ...
    poisson, binom, ...     distributions on whole numbers
    multivariate_normal     and others of vectors
    mode, rankdata, sem     of samples
    gaussian_kde            an estimate of a density

Outside of its support a density is 0; NaN, scales that are not positive and parameters that are
not valid give NaN.
"""

from xnp.scipy.stats.distributions import Distribution, as_modules
from xtree.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.scipy.stats.descriptive import (
        gaussian_kde as gaussian_kde, mode as mode, rankdata as rankdata, sem as sem,
    )  # fmt: skip
    from xnp.scipy.stats.distributions import (
        bernoulli as bernoulli, beta as beta, betabinom as betabinom, binom as binom,
        cauchy as cauchy, chi2 as chi2, dirichlet as dirichlet, expon as expon, gamma as gamma,
        gennorm as gennorm, geom as geom, gumbel_l as gumbel_l, gumbel_r as gumbel_r,
        laplace as laplace, logistic as logistic, multinomial as multinomial,
        multivariate_normal as multivariate_normal, nbinom as nbinom, norm as norm,
        pareto as pareto, poisson as poisson, t as t, truncnorm as truncnorm, uniform as uniform,
        vonmises as vonmises, wrapcauchy as wrapcauchy,
    )  # fmt: skip

as_modules(__name__, [value for value in globals().values() if isinstance(value, Distribution)])
