"""Where the operations of a function run: on the device, or on the host beside it."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xjit.lowering.operation_metadata import compute_on as compute_on
