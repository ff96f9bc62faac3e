"""SciPy's functions, each module imported when it is first used."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xstack.scipy import (
        cluster as cluster, fft as fft, integrate as integrate, interpolate as interpolate,
        linalg as linalg, ndimage as ndimage, optimize as optimize, signal as signal,
        sparse as sparse, spatial as spatial, special as special, stats as stats,
    )  # fmt: skip
