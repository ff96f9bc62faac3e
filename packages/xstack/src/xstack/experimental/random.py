"""Generators of random numbers that remember how often they were asked."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xrandom.stateful import *  # noqa: F403 - the whole public namespace
