"""Kinds of memory of devices."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xjit.lowering.operation_metadata import Space as Space
