"""Where the compilation cache is."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xjit.cache.inspection import reset_cache as reset_cache, set_cache_dir as set_cache_dir
