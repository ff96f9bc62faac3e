"""Asked for by lineax."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.extend.core.types import stop_gradient_p as stop_gradient_p
