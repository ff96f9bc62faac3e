"""Special functions with SciPy's names: `xnp.scipy.special`.

    gamma_functions    gamma, gammaln, digamma, polygamma, zeta, beta, gammainc, betainc, comb, ...
    error_functions    erf and its relatives, ndtr, log_ndtr, ndtri, dawsn, wofz, owens_t, fresnel
    logarithms         xlogy, entr, kl_div, logit, boxcox, logsumexp, softmax, ...
    integrals          expi, exp1, expn, sici, spence
    families           bessel_jn, i0, i1, hyp1f1, hyp2f1, sph_harm_y, bernoulli

Operands are real unless it is said, of any shapes that broadcast; integers are converted to the
default float dtype. In float32 results are right to a few units in the last place, in float64 to
about 1e-13, evaluated and compiled alike: most are computed in float64 and rounded once.
"""

from xtree.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.scipy.special.functions import *  # noqa: F403  # noqa: F403  # noqa: F403  # noqa: F403  # noqa: F403
