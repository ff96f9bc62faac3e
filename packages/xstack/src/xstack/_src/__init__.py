"""Names that libraries take from private modules of JAX, where they look for them.

Each is a public thing of this family under the path that a library imports it from. Nothing of the
family imports a module of this folder, and only what some published library needs is here.
"""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xstack._src import (
        ad_util as ad_util,
        checkify as checkify,
        compiler as compiler,
        core as core,
        dispatch as dispatch,
        dtypes as dtypes,
        flatten_util as flatten_util,
        traceback_util as traceback_util,
        tree_util as tree_util,
        xla_bridge as xla_bridge,
    )
