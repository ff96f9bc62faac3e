"""The platforms that programs run on, for libraries that extend the family."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xjit.cache.clearing import (
        backends as backends, clear_backends as clear_backends,
        clear_in_memory_compilation_cache as clear_in_memory_compilation_cache,
        get_backend as get_backend, get_default_device as get_default_device,
    )  # fmt: skip
