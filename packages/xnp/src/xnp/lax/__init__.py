"""`xnp.lax`: the primitives as functions, strict about dtypes."""

from xnp.lax import linalg as linalg
from xnp.lax.contractions import *  # noqa: F403
from xnp.lax.control_flow_branches import *  # noqa: F403
from xnp.lax.control_flow_loops import *  # noqa: F403
from xnp.lax.control_flow_scan import *  # noqa: F403
from xnp.lax.convolution import *  # noqa: F403
from xnp.lax.elementwise_arithmetic import *  # noqa: F403
from xnp.lax.elementwise_conversion import *  # noqa: F403
from xnp.lax.elementwise_functions import *  # noqa: F403
from xnp.lax.elementwise_logic import *  # noqa: F403
from xnp.lax.fourier import *  # noqa: F403
from xnp.lax.indexed import *  # noqa: F403
from xnp.lax.ordering import *  # noqa: F403
from xnp.lax.reductions import *  # noqa: F403
from xnp.lax.shape import *  # noqa: F403
from xnp.lax.slicing import *  # noqa: F403
from xnp.lax.special import *  # noqa: F403
from xnp.lax.windows import *  # noqa: F403
