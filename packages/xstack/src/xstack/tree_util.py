"""Pytrees by their long names, key paths and registration."""

from xtree.tree_util import *  # noqa: F403 - the whole public namespace, by its __all__
from xtree.tree_util import __all__ as __all__
