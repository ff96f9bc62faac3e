"""Where the compilation cache is."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xjit.cache.inspection import reset_cache as reset_cache, set_cache_dir as set_cache_dir
