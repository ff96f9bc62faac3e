"""Names that lineax imports from `jax._src.ad_util`."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.extend.core.types import stop_gradient_p as stop_gradient_p
