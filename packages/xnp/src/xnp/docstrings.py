"""What release 0.2 of `xrandom` asks for: docstrings stand at their functions now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

__all__ = ["Family", "complete"]

__dir__ = __all__.copy


class Family(NamedTuple):
    """Functions of the same arguments, as release 0.2 lists them.

    Attributes:
      args: what each argument is.
      returns: what comes back.
      examples: for each function an expression and what it prints.
    """

    args: tuple[str, ...]
    returns: str
    examples: Mapping[str, tuple[str, str] | None]


def complete(functions: Mapping[str, Any], families: Iterable[Family] = ()) -> None:
    """Leave docstrings as they are written; sections of a family that they lack are not added.

    Example:
      >>> complete({"twice": lambda x: 2 * x})
    """
    del functions, families
