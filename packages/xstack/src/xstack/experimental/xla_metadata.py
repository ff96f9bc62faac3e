"""Metadata of operations, which XLA passes on."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xjit.lowering.operation_metadata import (
        set_xla_metadata as set_xla_metadata, xla_metadata_call as xla_metadata_call,
    )  # fmt: skip
