"""What errors say about names that the modules here do not have."""

import importlib

__all__ = ()


def hint_for(module: str, name: str, hint: str) -> str:
    """Return what an error about an unknown name suggests.

    Args:
      module: the module that was asked.
      name: what it does not have.
      hint: the name that is spelt nearly alike, in words, or nothing.
    """
    found: str = importlib.import_module("xstack.unknown_names").hint(module, name, hint)
    return found
