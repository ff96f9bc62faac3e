"""Namespaces of this package: their errors say where a name of another library is here."""

from __future__ import annotations

from xtree.namespaces import late_import, namespace as namespace_of_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from xtree.namespaces import Namespace

__all__ = ()

_unknown_names = late_import("xstack.unknown_names", "what errors suggest, when there is one")


def namespace(module_globals: dict[str, Any], **options: Any) -> Namespace:
    """Return `xtree.namespaces.namespace` of a module, with the hints of this package."""
    return namespace_of_names(module_globals, hint=hint_for, **options)


def hint_for(module: str, name: str, hint: str) -> str:
    """Return what an error about an unknown name suggests.

    Args:
      module: the module.
      name: what it does not have.
      hint: the name that is spelt nearly alike, in words, or nothing.
    """
    found: str = _unknown_names.hint(module, name, hint)
    return found
