"""Programs that outlive the process: exported as bytes, and read back."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xjit.export import *  # noqa: F403 - the whole public namespace
