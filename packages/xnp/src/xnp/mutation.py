"""Sequences of updates written as assignments: `mutable`.

Neighbours: `refs`, which holds the array meanwhile; `xnp.numpy.index_update` has `x.at[i].set(v)`.
"""

from __future__ import annotations

from typing import Any

from xnp.refs import Ref, freeze, new_ref
from xprim import Array
from xprim.errors import message

__all__ = ["mutable"]

__dir__ = __all__.copy


class mutable:  # noqa: N801 - read as a verb: `with mutable(x) as y`
    """Write elements of an array by assignments, within a `with` block.

    The array that was given does not change. The block works on a reference to its elements, so
    updates of a large array use the memory of the one before, also in programs that are traced, and
    derivatives go through them.

    Args:
      x: an array, or what can be made one.

    Attributes:
      array: after the block, the array with all updates.

    Example:
      >>> import xnp
      >>> with mutable(xnp.zeros(4)) as y:
      ...     y[0] = 1.0
      ...     y[1:3] += 2.0
      >>> y.array
      Array([1., 2., 2., 0.], dtype=float32)
    """

    __slots__ = ("_array", "_given", "_ref")

    def __init__(self, x: Any) -> None:
        self._given = x
        self._ref: Ref | None = None
        self._array: Array | None = None

    def __enter__(self) -> mutable:
        if self._ref is not None or self._array is not None:
            raise RuntimeError("mutable: a block is entered once; make another mutable(x).")
        self._ref = new_ref(self._given)
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._array = freeze(self._inside())
        self._ref = None

    @property
    def array(self) -> Array:
        """The array with all updates."""
        if self._array is None:
            raise RuntimeError(message(
                "mutable", "the array is there after the block.",
                hint="y[...] reads the elements within it",
            ))  # fmt: skip
        return self._array

    def __getitem__(self, index: Any) -> Array:
        return self._inside()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._inside()[index] = value

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array, which updates keep."""
        found: tuple[int, ...] = self._any().shape
        return found

    @property
    def dtype(self) -> Any:
        """The dtype of the array, which updates keep."""
        return self._any().dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"mutable({self._any()[...]!r})"

    def _inside(self) -> Ref:
        if self._ref is None:
            raise RuntimeError(message(
                "mutable", "elements are read and written within the block.",
                hint="with mutable(x) as y: y[0] = 1.0, and y.array after it",
            ))  # fmt: skip
        return self._ref

    def _any(self) -> Any:
        return self._array if self._ref is None and self._array is not None else self._inside()
