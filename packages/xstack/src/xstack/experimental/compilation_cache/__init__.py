"""The compilation cache on disk, where code of JAX looks for it; its home is `xjit.cache`."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xstack.experimental.compilation_cache import compilation_cache as compilation_cache
