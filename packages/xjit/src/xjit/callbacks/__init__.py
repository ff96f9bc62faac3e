"""Calls from compiled programs to Python, and to foreign functions.

primitive    the primitive `callback`, and the programs that call Python while they run
functions    `pure_callback`, `io_callback`
ffi          `ffi_call` and the registration of foreign functions
"""

from xtree.namespaces import namespace

with namespace(globals()):
    from xjit.callbacks.functions import io_callback as io_callback, pure_callback as pure_callback
    from xjit.callbacks.primitive import effects_barrier as effects_barrier
