"""Where a batch dimension is, and how it is moved: what batch rules of ordinary primitives need.

`xbatch.axis` adds what transforms functions and programs, for the rules of calls; `extended` maps
over the dimensions of an element with this part alone.
"""

from __future__ import annotations

from typing import Any

from xprim.primitive import get_primitive
from xprim.rules import not_mapped

__all__ = ["BatchDimension", "bind_one"]

__dir__ = __all__.copy


class BatchDimension:
    """An axis that is mapped over, as far as it concerns where its dimension is.

    Attributes:
      size: how many examples there are.
      name: the axis name that collectives use, or None.
      mesh_axes: the axes of a mesh that cut the dimension, where a program says how values lie.
      spread: the sharding of the dimension alone along explicit axes of a mesh, or None.
    """

    __slots__ = ("mesh_axes", "name", "size", "spread")

    def __init__(
        self, size: int, name: Any = None, mesh_axes: tuple[Any, ...] = (), spread: Any = None
    ) -> None:
        self.size = size
        self.name = name
        self.mesh_axes = mesh_axes
        self.spread = spread

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, name={self.name!r})"

    def to_front(self, x: Any, dim: Any) -> Any:
        """Return an operand with its batch dimension first; one that is not mapped is repeated."""
        if dim is not_mapped:
            return self.broadcast(x, 0)
        return self.move(x, dim, 0) if dim else x

    def to_back(self, x: Any, dim: Any) -> Any:
        """Return an operand with its batch dimension last; one that is not mapped is repeated."""
        if dim is not_mapped:
            return self.broadcast(x, x.aval.ndim)
        return self.move(x, dim, x.aval.ndim - 1)

    def move(self, x: Any, source: int, destination: int) -> Any:
        """Move a dimension of an array, the others staying in order."""
        if source == destination:
            return x
        order = [i for i in range(x.aval.ndim) if i != source]
        order.insert(destination, source)
        return bind_one("transpose", x, permutation=tuple(order))

    def broadcast(self, x: Any, dim: int = 0) -> Any:
        """Repeat an array that is not mapped along a new batch dimension at position `dim`."""
        shape = x.aval.shape
        kept = tuple([i for i in range(len(shape) + 1) if i != dim])
        whole = (*shape[:dim], self.size, *shape[dim:])
        return bind_one("broadcast_in_dim", x, shape=whole, broadcast_dimensions=kept)


def bind_one(name: str, x: Any, **params: Any) -> Any:
    """Apply the primitive of that name to one operand and return its one result."""
    return get_primitive(name).bind(x, **params)[0]
