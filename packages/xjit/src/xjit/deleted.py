"""Arrays whose memory was given up: what stands in their place, and the error of using one.

Neighbours: `placement` and `transfer` ask before they read a buffer; `dispatch_code` and `program`
give up what is donated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from xprim import ConcreteArray
from xprim.array import is_shared
from xprim.errors import message

__all__ = ()


class DeletedBuffer:
    """Stands for the buffer of an array that was donated or deleted; says so when it is read."""

    __slots__ = ("why",)
    committed = False
    _sharding = None  # no placement: the front of a compiled function turns to the long way

    def __init__(self, why: str) -> None:
        self.why = why


def raise_deleted(array_text: str, buffer: DeletedBuffer) -> NoReturn:
    """Raise the error for an array whose memory was given up."""
    hint = "use what the call returns, x = f(x), or leave the argument out of donate_argnums"
    raise RuntimeError(message(
        "Array", f"this {array_text} {buffer.why} and has no value any more.",
        hint=hint if "donated" in buffer.why else "",
    ))  # fmt: skip


def give_up(x: ConcreteArray, deleted: DeletedBuffer) -> None:
    """Take an array's value away, but not from one that stands for a number everywhere."""
    if is_shared(x):
        x.buffer = None
    else:
        x.host, x.buffer = None, deleted


def give_up_all(arrays: Sequence[Any], deleted: DeletedBuffer) -> None:
    """Take the values from arrays that were donated; NumPy arrays among them were copied."""
    for x in arrays:
        if type(x) is ConcreteArray:
            give_up(x, deleted)
