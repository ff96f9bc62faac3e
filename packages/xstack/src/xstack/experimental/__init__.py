"""What peers call experimental, under their names: `checkify`, `multihost_utils`, `ode`, ..."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.experimental import (
        checkify as checkify,
        mesh_utils as mesh_utils,
        multihost_utils as multihost_utils,
        ode as ode,
    )
