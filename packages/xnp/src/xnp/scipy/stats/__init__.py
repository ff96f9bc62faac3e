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
    from xnp.scipy.stats.distributions import *  # noqa: F403

as_modules(__name__, [value for value in globals().values() if isinstance(value, Distribution)])
