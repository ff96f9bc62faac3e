"""Activations, initial weights and other functions of neural networks."""

from xtree.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.nn import *  # noqa: F403 - the whole public namespace

with namespace(globals()):  # the first use imports the random numbers
    from xstack.nn import initializers as initializers
