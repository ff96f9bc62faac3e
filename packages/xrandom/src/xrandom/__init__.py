"""Splittable random keys and samplers: the same key gives the same numbers everywhere.

A key is never changed by drawing from it: it is split, and each part is used once.

    k1, k2 = split(key(0))
    x, y = normal(k1, (3,)), uniform(k2)

Families that few programs need are imported when one of their names is first used.
"""

import importlib
from typing import Any

from xprim import source
from xrandom.bits import bits
from xrandom.categorical import categorical, gumbel
from xrandom.integers import bernoulli, geometric, rademacher, randint
from xrandom.keys import (
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
from xrandom.normal import lognormal, normal, truncated_normal
from xrandom.shuffling import choice, permutation
from xrandom.uniform import uniform

_LATE = {
    "continuous": (
        "cauchy", "double_sided_maxwell", "exponential", "laplace", "logistic", "maxwell",
        "pareto", "rayleigh", "triangular", "wald", "weibull_min",
    ),
    "counts": ("binomial", "multinomial", "poisson"),
    "gamma_family": (
        "ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma",
        "random_gamma_p", "t",
    ),
    "multivariate": ("multivariate_normal", "orthogonal"),
}  # fmt: skip
_MODULE_BY_NAME = {name: module for module, names in _LATE.items() for name in names}

__version__ = "0.1.0"

__all__ = [
    "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy",
    "chisquare", "choice", "clone", "dirichlet", "double_sided_maxwell", "exponential", "f",
    "fold_in", "gamma", "generalized_normal", "geometric", "gumbel", "key", "key_data",
    "key_dtype", "key_impl", "laplace", "loggamma", "logistic", "lognormal", "maxwell",
    "multinomial", "multivariate_normal", "normal", "orthogonal", "pareto", "permutation",
    "poisson", "rademacher", "randint", "random_gamma_p", "rayleigh", "split", "t", "triangular",
    "truncated_normal", "uniform", "wald", "weibull_min", "wrap_key_data",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    module = _MODULE_BY_NAME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    family = importlib.import_module(f"{__name__}.{module}")
    for each in _LATE[module]:
        globals()[each] = getattr(family, each)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


source.hide(__file__)  # errors and equations show the user's lines, not ours
