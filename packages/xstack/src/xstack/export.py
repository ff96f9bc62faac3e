"""Programs that outlive the process: exported as bytes, and read back."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xjit.export import *  # noqa: F403 - the whole public namespace
