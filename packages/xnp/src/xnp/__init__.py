"""Arrays, and the functions of NumPy on them, for evaluation, differentiation, batching, compiling.

    import xnp

    x = xnp.arange(6.).reshape(2, 3)
    xnp.sin(x).sum(axis=0)

`xnp.lax` has the primitives themselves, strict about dtypes, and control flow; `xnp.nn` functions
of neural networks; `xnp.linalg` linear algebra; `xnp.scipy` the functions of SciPy. These,
`xnp.fft`, `xnp.image`, `xnp.ops` and `xnp.dlpack` are imported when they are first used.
"""

from xnp.numpy import array_methods as _methods  # noqa: F401 - attaches the methods of arrays
from xprim import source
from xtree.namespaces import namespace

__version__ = "0.2.1"

with namespace(globals(), at_once=True):
    from xnp import lax as lax, linalg as linalg, numpy as numpy
    from xnp.numpy import *  # noqa: F403 - the whole NumPy API
    from xprim import Array as Array

with namespace(globals(), overview="xnp.numpy"):  # the first use imports them
    from xnp import (
        dlpack as dlpack,
        fft as fft,
        image as image,
        nn as nn,
        ops as ops,
        refs as refs,
        scipy as scipy,
    )
    from xnp.mutation import mutable as mutable

source.hide(__file__)
