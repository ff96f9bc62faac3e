"""Splittable random keys and samplers: the same key gives the same numbers everywhere.

A key is never changed by drawing from it: it is split, and each part is used once.

    k1, k2 = split(key(0))
    x, y = normal(k1, (3,)), uniform(k2)

Keys: Key, key, PRNGKey, split, fold_in, clone, key_data, wrap_key_data,
key_dtype, key_impl, bits.

Uniform, normal and their kin: uniform, normal, truncated_normal,
multivariate_normal, randint, rademacher, ball, orthogonal, permutation,
choice.

Continuous distributions: exponential, gamma, loggamma, beta, dirichlet,
chisquare, f, t, cauchy, laplace, logistic, lognormal, gumbel, maxwell,
double_sided_maxwell, generalized_normal, pareto, rayleigh, triangular,
wald, weibull_min.

Discrete distributions: bernoulli, binomial, categorical, geometric,
multinomial, poisson.

`help(xrandom.normal)` says what a name does. Families that few programs need are imported when one
of their names is first used.
"""

from xprim import source
from xtree.namespaces import moved_modules, namespace

__version__ = "0.2.1"

# The names that public modules had in release 0.2, by where their contents are now.
moved_modules(__name__, """
        hashing: threefry_hash
""")  # fmt: skip

with namespace(globals(), at_once=True):
    from xrandom.keys import (
        Key as Key, PRNGKey as PRNGKey, clone as clone, fold_in as fold_in, key as key,
        key_data as key_data, key_dtype as key_dtype, key_impl as key_impl, split as split,
        wrap_key_data as wrap_key_data,
    )  # fmt: skip
    from xrandom.samplers import (
        bernoulli as bernoulli, bits as bits, categorical as categorical, choice as choice,
        geometric as geometric, gumbel as gumbel, lognormal as lognormal, normal as normal,
        permutation as permutation, rademacher as rademacher, randint as randint,
        truncated_normal as truncated_normal, uniform as uniform,
    )  # fmt: skip

with namespace(globals(), overview=True):  # families that few programs need
    from xrandom.continuous import (
        ball as ball, beta as beta, cauchy as cauchy, chisquare as chisquare,
        dirichlet as dirichlet, double_sided_maxwell as double_sided_maxwell,
        exponential as exponential, f as f, gamma as gamma,
        generalized_normal as generalized_normal, laplace as laplace, loggamma as loggamma,
        logistic as logistic, maxwell as maxwell, multivariate_normal as multivariate_normal,
        orthogonal as orthogonal, pareto as pareto, random_gamma_p as random_gamma_p,
        rayleigh as rayleigh, t as t, triangular as triangular, wald as wald,
        weibull_min as weibull_min,
    )  # fmt: skip
    from xrandom.counts import binomial as binomial, multinomial as multinomial, poisson as poisson

source.hide(__file__)  # errors and equations show the user's lines, not ours
