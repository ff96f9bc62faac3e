"""The NumPy API: the functions that `import xnp` shows, in modules by subject."""

from xtree.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.numpy._einsum import *  # noqa: F403
    from xnp.numpy.array_api import *  # noqa: F403
    from xnp.numpy.averages import *  # noqa: F403
    from xnp.numpy.bits import *  # noqa: F403
    from xnp.numpy.calculus import *  # noqa: F403
    from xnp.numpy.contraction import *  # noqa: F403
    from xnp.numpy.creation import *  # noqa: F403
    from xnp.numpy.divisors import *  # noqa: F403
    from xnp.numpy.elementary import *  # noqa: F403
    from xnp.numpy.files import *  # noqa: F403
    from xnp.numpy.functional import *  # noqa: F403
    from xnp.numpy.index_tricks import *  # noqa: F403
    from xnp.numpy.indexing import *  # noqa: F403
    from xnp.numpy.insertion import *  # noqa: F403
    from xnp.numpy.joining import *  # noqa: F403
    from xnp.numpy.logic import *  # noqa: F403
    from xnp.numpy.nan_reductions import *  # noqa: F403
    from xnp.numpy.padding import *  # noqa: F403
    from xnp.numpy.polynomials import *  # noqa: F403
    from xnp.numpy.printing import *  # noqa: F403
    from xnp.numpy.ranges import *  # noqa: F403
    from xnp.numpy.rearranging import *  # noqa: F403
    from xnp.numpy.reductions import *  # noqa: F403
    from xnp.numpy.rounding import *  # noqa: F403
    from xnp.numpy.running_totals import *  # noqa: F403
    from xnp.numpy.scalar_types import *  # noqa: F403
    from xnp.numpy.selection import *  # noqa: F403
    from xnp.numpy.sets import *  # noqa: F403
    from xnp.numpy.shaping import *  # noqa: F403
    from xnp.numpy.sorting import *  # noqa: F403
    from xnp.numpy.statistics import *  # noqa: F403
    from xnp.numpy.triangles import *  # noqa: F403
    from xnp.numpy.ufunc_methods import *  # noqa: F403
    from xnp.numpy.ufuncs import *  # noqa: F403
    from xnp.numpy.universal_functions import *  # noqa: F403
