"""Kinds of pairs of functions that differ in one reachable thing."""

from tests.nets.differences import (  # noqa: F401 - they fill the table
    callables,
    hidden,
    modules,
    names,
    objects,
    outside,
    transformed,
    values,
)
