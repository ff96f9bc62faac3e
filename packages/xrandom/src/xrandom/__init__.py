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
from xtree.namespaces import namespace

__version__ = "0.2.1"

with namespace(globals(), at_once=True):
    from xrandom._bits import bits as bits
    from xrandom._categorical import (
        categorical as categorical,
        gumbel as gumbel,
    )
    from xrandom._normal import (
        lognormal as lognormal,
        normal as normal,
        truncated_normal as truncated_normal,
    )
    from xrandom._uniform import uniform as uniform
    from xrandom.integers import (
        bernoulli as bernoulli,
        geometric as geometric,
        rademacher as rademacher,
        randint as randint,
    )
    from xrandom.keys import (
        Key as Key,
        PRNGKey as PRNGKey,
        clone as clone,
        fold_in as fold_in,
        key as key,
        key_data as key_data,
        key_dtype as key_dtype,
        key_impl as key_impl,
        split as split,
        wrap_key_data as wrap_key_data,
    )
    from xrandom.shuffling import (
        choice as choice,
        permutation as permutation,
    )

with namespace(globals(), overview=True):  # families that few programs need
    from xrandom.continuous import (
        cauchy as cauchy,
        double_sided_maxwell as double_sided_maxwell,
        exponential as exponential,
        laplace as laplace,
        logistic as logistic,
        maxwell as maxwell,
        pareto as pareto,
        rayleigh as rayleigh,
        triangular as triangular,
        wald as wald,
        weibull_min as weibull_min,
    )
    from xrandom.counts import (
        binomial as binomial,
        multinomial as multinomial,
        poisson as poisson,
    )
    from xrandom.gamma_family import (
        ball as ball,
        beta as beta,
        chisquare as chisquare,
        dirichlet as dirichlet,
        f as f,
        gamma as gamma,
        generalized_normal as generalized_normal,
        loggamma as loggamma,
        random_gamma_p as random_gamma_p,
        t as t,
    )
    from xrandom.multivariate import (
        multivariate_normal as multivariate_normal,
        orthogonal as orthogonal,
    )

source.hide(__file__)  # errors and equations show the user's lines, not ours
