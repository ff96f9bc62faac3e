"""Names that libraries take from private modules of JAX, where they look for them.

Each is a public thing of this family under the path that a library imports it from. Nothing of the
family imports a module of this folder, and only what some published library needs is here.
"""

from xstack.absences import hint_for
from xtree.namespaces import moved_modules, namespace

moved_modules("xstack", """
        experimental.checkify: _src.checkify
        extend.core.types: _src.ad_util
        flatten_util: _src.flatten_util
""")  # fmt: skip

with namespace(globals(), hint=hint_for):
    from xstack import flatten_util as flatten_util
    from xstack._src import (
        api_util as api_util,
        compiler as compiler,
        core as core,
        dispatch as dispatch,
        distributed as distributed,
        dtypes as dtypes,
        traceback_util as traceback_util,
        tree_util as tree_util,
        xla_bridge as xla_bridge,
    )
    from xstack.experimental import checkify as checkify
    from xstack.extend.core import types as ad_util  # noqa: F401 - a public name
