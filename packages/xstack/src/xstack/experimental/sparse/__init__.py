"""Arrays most of whose elements are zero, in coordinates and by rows."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xnp.sparse import *  # noqa: F403 - the whole public namespace
    from xstack.experimental.sparse import linalg as linalg
    from xstack.sparse_derivatives import random_bcoo as random_bcoo
    from xstack.sparse_derivatives import (
        grad as grad, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev,
        value_and_grad as value_and_grad,
    )  # fmt: skip
