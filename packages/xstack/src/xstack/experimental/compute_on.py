"""Where the operations of a function run: on the device, or on the host beside it."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xjit.lowering.operation_metadata import compute_on as compute_on
