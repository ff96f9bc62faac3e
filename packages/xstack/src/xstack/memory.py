"""Kinds of memory of devices."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xjit.lowering.operation_metadata import Space as Space
