"""Activations, initial weights and other functions of neural networks."""

from xstack.absences import ABSENCES
from xtree.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.nn import *  # noqa: F403 - the whole public namespace

with namespace(globals(), hint=ABSENCES):  # the first use imports the random numbers
    from xstack.nn import initializers as initializers
