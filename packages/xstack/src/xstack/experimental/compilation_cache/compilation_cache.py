"""Where the compilation cache is."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xjit.cache import (
        reset_cache as reset_cache,
        set_cache_dir as set_cache_dir,
    )
