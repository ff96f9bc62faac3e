"""Activations, initial weights and other functions of neural networks.

Narrow formats: scaled_dot_general, get_scaled_dot_general_config. Module initializers.
"""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.nn import *  # noqa: F403 - the whole public namespace

with namespace(globals(), hint=hint_for, overview="xnp.nn"):
    # the first use imports derivatives, or random numbers
    from xad.scaled_products import (
        get_scaled_dot_general_config as get_scaled_dot_general_config,
        scaled_dot_general as scaled_dot_general,
    )
    from xstack.nn import initializers as initializers
