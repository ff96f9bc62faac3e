"""Arrays, and the functions of NumPy on them, for evaluation, differentiation, batching, compiling.

    import xnp

    x = xnp.arange(6.).reshape(2, 3)
    xnp.sin(x).sum(axis=0)

`xnp.lax` has the primitives themselves, strict about dtypes, and control flow.
"""

from xprim import source

source.hide(__file__)

from xnp import lax as lax  # noqa: E402 - frames of this package are hidden first
from xnp import numpy as numpy  # noqa: E402
from xnp.numpy import *  # noqa: E402, F403
from xnp.numpy import array_methods  # noqa: E402
from xnp import nn  # noqa: E402
from xprim import Array  # noqa: E402

ndarray = Array
__version__ = "0.1.0"
__all__ = [name for name in dir() if not name.startswith("_")]

from xnp.primitives import load_all as load_primitives  # noqa: E402, F401 - a hook
