"""A check in a program: what it says when it fails, and where it stands.

The primitive `check` holds a `CheckSite`. Evaluated, it raises its text; `checkify` makes a value
of the failure, and the text when somebody asks for it.

Neighbours: `errors` has `CheckError`, `xnp.primitives.check` the primitive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import xtree
from xprim.errors import CheckError
from xtree.records import Record, set_once

__all__ = ["CheckSite"]

__dir__ = __all__.copy


class CheckSite(Record):
    """What a check says.

    Attributes:
      kind: what is checked: `user`, `nan`, `div` or `index`.
      text: a format of `str.format`.
      tree: the structure of the arguments (args, kwargs) of the format; None for no arguments.
      where: the user's line, as errors show it.
      is_debug: whether it is only made where `checkify` asks for it.

    Example:
      >>> site = CheckSite("user", "x is {x}", xtree.structure(((), {"x": 0})), "train.py:3")
      >>> print(site.error([-1.0]))
      x is -1.0 (`check` failed)
        where     train.py:3
    """

    __slots__ = __match_args__ = ("kind", "text", "tree", "where", "is_debug")
    kind: str
    text: str
    tree: xtree.PyTreeDef
    where: str
    is_debug: bool

    def __init__(
        self, kind: str, text: str, tree: xtree.PyTreeDef | None = None, where: str = "",
        is_debug: bool = False,
    ) -> None:  # fmt: skip
        set_once(self, "kind", kind)
        set_once(self, "text", text)
        set_once(self, "tree", xtree.structure(((), {})) if tree is None else tree)
        set_once(self, "where", where)
        set_once(self, "is_debug", is_debug)

    def message(
        self, values: Sequence[Any], index: tuple[int, ...] | None = None,
        outer: tuple[int, ...] | None = None,
    ) -> str:  # fmt: skip
        """Return what it says of values.

        Args:
          values: the arrays that its text shows.
          index: the example of a batch that failed.
          outer: that of a batch of calls.
        """
        args, kwargs = self.tree.unflatten([_scalar(x) for x in values])
        text = self.text.format(*args, **kwargs)
        if index:
            first, newline, rest = text.partition("\n")
            text = f"{first} (at mapped index {', '.join(map(str, index))}){newline}{rest}"
        if self.kind == "user":
            text += " (`check` failed)"
        if outer:
            text = f"at mapped index {', '.join(map(str, outer))}: {text}"
        return text + (f"\n  where     {self.where}" if self.where else "")

    def error(self, values: Sequence[Any], index: tuple[int, ...] | None = None) -> CheckError:
        """Return the exception for values."""
        return CheckError(self.message(values, index))


def _scalar(value: Any) -> Any:
    """Return an array as it is shown: a scalar as a number."""
    host = np.asarray(value)
    return host[()] if host.ndim == 0 else host
