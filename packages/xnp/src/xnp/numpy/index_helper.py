"""What `x.at` is: the object that takes the index in brackets.

Neighbour: `index_update` has what `x.at[index]` is, and its methods.
"""

from __future__ import annotations

from typing import Any, NoReturn

from xnp.numpy.index_update import IndexUpdateRef
from xprim.errors import message
from xprim.tracebacks import boundary

__all__ = ()

_HINT = "x = x.at[index].set(value) makes a new array"


class IndexUpdateHelper:
    """What `x.at` is: `x.at[index]` names elements to update."""

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self._array, index)

    @boundary
    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        del index, value
        raise TypeError(message(
            "at[]", "arrays do not change, so elements cannot be assigned.", hint=_HINT,
        ))  # fmt: skip

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        del args, kwargs
        raise TypeError(message("at[]", "takes the index in brackets.", hint=_HINT))

    @boundary
    def __getattr__(self, name: str) -> NoReturn:
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name.startswith("_") or not hasattr(IndexUpdateRef, name):
            raise AttributeError(text, name=name, obj=self)
        raise AttributeError(f"{text}: the index in brackets goes before it.\n  hint      {_HINT}")

    def __repr__(self) -> str:
        return f"<at of {self._array!r}>"
