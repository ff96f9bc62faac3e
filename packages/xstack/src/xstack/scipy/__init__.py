"""SciPy's functions, each module imported when it is first used."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xstack.scipy import (
        cluster as cluster, fft as fft, integrate as integrate, interpolate as interpolate,
        linalg as linalg, ndimage as ndimage, optimize as optimize, signal as signal,
        sparse as sparse, spatial as spatial, special as special, stats as stats,
    )  # fmt: skip
