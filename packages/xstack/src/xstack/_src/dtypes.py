"""Names that equinox and flax import from `jax._src.dtypes`."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xprim.dtypes import *  # noqa: F403 - the names of that module
    from xprim.errors import TypePromotionError as TypePromotionError
