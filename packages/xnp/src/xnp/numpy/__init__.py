"""The NumPy API: the functions that `import xnp` shows, in modules by subject."""

from xnp.numpy.bits import *  # noqa: F403
from xnp.numpy.contraction import *  # noqa: F403
from xnp.numpy.creation import *  # noqa: F403
from xnp.numpy.einsum import *  # noqa: F403
from xnp.numpy.elementary import *  # noqa: F403
from xnp.numpy.indexing import *  # noqa: F403
from xnp.numpy.joining import *  # noqa: F403
from xnp.numpy.logic import *  # noqa: F403
from xnp.numpy.printing import *  # noqa: F403
from xnp.numpy.ranges import *  # noqa: F403
from xnp.numpy.rearranging import *  # noqa: F403
from xnp.numpy.reductions import *  # noqa: F403
from xnp.numpy.rounding import *  # noqa: F403
from xnp.numpy.scalar_types import *  # noqa: F403
from xnp.numpy.selection import *  # noqa: F403
from xnp.numpy.shaping import *  # noqa: F403
from xnp.numpy.sorting import *  # noqa: F403
from xnp.numpy.ufuncs import *  # noqa: F403
