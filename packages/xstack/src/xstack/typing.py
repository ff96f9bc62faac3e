"""Types for annotations: what array functions take, and what shapes, axes and dtypes may be."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xprim.typing import *  # noqa: F403 - the whole public namespace
