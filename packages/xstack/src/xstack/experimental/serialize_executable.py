"""Compiled programs as bytes, to be run by another process of the same machine and jaxlib."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xjit.stored_programs import (
        deserialize_and_load as deserialize_and_load, serialize as serialize,
    )  # fmt: skip
