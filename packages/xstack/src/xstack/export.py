"""Programs that outlive the process: exported as bytes, and read back."""

from xstack.absences import ABSENCES
from xtree.namespaces import namespace

with namespace(globals(), hint=ABSENCES):
    from xjit.export import *  # noqa: F403 - the whole public namespace
