"""The compilation cache on disk, where code of JAX looks for it; its home is `xjit.cache`."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xstack.experimental.compilation_cache import compilation_cache as compilation_cache
