"""Where the operations of a function run: on the device, or on the host beside it."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xjit.memories import compute_on as compute_on
