"""Several processes that work together: find each other, wait for each other, part."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xpar.distributed import (
        barrier as barrier, initialize as initialize, is_initialized as is_initialized,
        shutdown as shutdown,
    )  # fmt: skip
