"""Metadata of operations, which XLA passes on."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xjit.lowering.operation_metadata import (
        fuse_limit as fuse_limit, must_fuse_call as must_fuse_call,
        set_xla_metadata as set_xla_metadata, xla_metadata_call as xla_metadata_call,
        xla_metadata_call2 as xla_metadata_call2,
    )  # fmt: skip
