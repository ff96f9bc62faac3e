"""Checks of values in programs, and their failures as values."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xjit.checkify import *  # noqa: F403 - the whole public namespace
