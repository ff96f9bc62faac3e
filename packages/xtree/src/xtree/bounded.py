"""Tables that do not grow without end: what is kept in them is found again, or made again."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["remember"]
__dir__ = __all__.copy

_K = TypeVar("_K")
_V = TypeVar("_V")


def remember(table: dict[_K, _V], key: _K, value: _V, limit: int) -> _V:
    """Keep a value in a table, which is emptied when it would hold more than `limit`; return it.

    A hot path looks into the table itself. Two threads that find nothing both make a value, and the
    later one stays: values of one key are equal.

    Args:
      table: a dictionary of the asker's.
      key: what determines the value.
      value: what was made for it.
      limit: how many are kept.

    Example:
      >>> squares = {}
      >>> [remember(squares, x, x * x, limit=2) for x in (1, 2, 3)], squares
      ([1, 4, 9], {3: 9})
    """
    if len(table) >= limit:
        table.clear()
    table[key] = value
    return value
