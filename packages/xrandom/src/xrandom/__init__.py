"""Splittable random keys and samplers: the same key gives the same numbers everywhere.

A key is never changed by drawing from it: it is split, and each part is used once.

    k1, k2 = split(key(0))
    x, y = normal(k1, (3,)), uniform(k2)
"""

from xprim.source import hide

hide(__file__)

from xrandom.keys import (  # noqa: E402 - frames of this package are hidden first
    Key,
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)
from xrandom.bits import bits  # noqa: E402
from xrandom.uniform import uniform  # noqa: E402
from xrandom.normal import lognormal, normal, truncated_normal  # noqa: E402
from xrandom.integers import bernoulli, geometric, rademacher, randint  # noqa: E402
from xrandom.continuous import (  # noqa: E402
    cauchy,
    double_sided_maxwell,
    exponential,
    laplace,
    logistic,
    maxwell,
    pareto,
    rayleigh,
    triangular,
    wald,
    weibull_min,
)
from xrandom.categorical import categorical, gumbel  # noqa: E402
from xrandom.shuffling import choice, permutation  # noqa: E402
from xrandom.gamma import (  # noqa: E402
    ball,
    beta,
    chisquare,
    dirichlet,
    f,
    gamma,
    generalized_normal,
    loggamma,
    random_gamma_p,
    t,
)
from xrandom.counts import binomial, multinomial, poisson  # noqa: E402
from xrandom.multivariate import multivariate_normal, orthogonal  # noqa: E402

__version__ = "0.1.0"
