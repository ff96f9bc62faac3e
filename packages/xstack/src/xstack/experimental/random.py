"""Generators of random numbers that count their draws."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xrandom.stateful import *  # noqa: F403 - the whole public namespace
