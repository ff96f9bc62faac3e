"""Arrays, and the functions of NumPy on them, for evaluation, differentiation, batching, compiling.

    import xnp

    x = xnp.arange(6.).reshape(2, 3)
    xnp.sin(x).sum(axis=0)

`xnp.lax` has the primitives themselves, strict about dtypes, and control flow; `xnp.nn` functions of
neural networks; `xnp.linalg` linear algebra.
"""

from xprim import source

source.hide(__file__)

from xnp import lax, linalg, nn, numpy  # noqa: E402, F401 - frames here are hidden first
from xnp.numpy import *  # noqa: E402, F403
from xnp.numpy import array_methods as _methods  # noqa: E402, F401 - attaches the methods of arrays
from xprim import Array  # noqa: E402

ndarray = Array
__version__ = "0.1.0"

_OWN = ("Array", "lax", "linalg", "ndarray", "nn", "numpy")
__all__ = sorted({*_OWN, *numpy.public_names()})  # noqa: PLE0605 - a list of names
