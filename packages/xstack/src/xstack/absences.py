"""What errors say about names that the modules here do not have."""

from xtree.namespaces import late_import

__all__ = ()

_unknown_names = late_import("xstack.unknown_names", "what errors suggest, when there is one")


def hint_for(module: str, name: str, hint: str) -> str:
    """Return what an error about an unknown name suggests.

    Args:
      module: the module that was asked.
      name: what it does not have.
      hint: the name that is spelt nearly alike, in words, or nothing.
    """
    found: str = _unknown_names.hint(module, name, hint)
    return found
