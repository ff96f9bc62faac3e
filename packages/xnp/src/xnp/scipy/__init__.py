"""SciPy's functions on arrays, to evaluate, differentiate, batch and compile: `xnp.scipy`.

    import xnp.scipy.special as special

    special.logsumexp(x), special.ndtr(x), ...

Each module is imported when it is requested. What needs derivatives to do its work (minimisation)
is in `xad`; `xstack.scipy` shows both.
"""

from xtree.namespaces import namespace

with namespace(globals()):
    from xnp.scipy import (
        cluster as cluster, fft as fft, integrate as integrate, interpolate as interpolate,
        linalg as linalg, ndimage as ndimage, signal as signal, sparse as sparse,
        spatial as spatial, special as special, stats as stats,
    )  # fmt: skip
