"""Partition specs: for each dimension of an array, the mesh axes that it is cut along.

Neighbours: `meshes` has the axes, `named_shardings` puts the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from xprim.errors import message
from xprim.tracebacks import boundary

__all__ = ["UNCONSTRAINED", "P", "PartitionSpec", "axes_of"]

__dir__ = __all__.copy


class _Unconstrained:
    """What stands in a partition spec for a dimension that the compiler may cut as it likes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class PartitionSpec:
    """For each dimension of an array, the mesh axes that it is cut along.

    Args:
      *partitions: for each dimension an axis name, a tuple of them (the first the slowest), None
        where the dimension is whole, or `PartitionSpec.UNCONSTRAINED` where the compiler decides.
        Dimensions that are left out at the end are whole.
      unreduced: only the empty set: sums are added up where they are made.
      reduced: only the empty set, likewise.

    Raises:
      ValueError: an axis name occurs twice; an axis is to be unreduced.

    Example:
      >>> PartitionSpec("x", None, ("y", "z"))
      PartitionSpec('x', None, ('y', 'z'))
      >>> len(PartitionSpec())
      0
    """

    __slots__ = ("_partitions",)
    UNCONSTRAINED = UNCONSTRAINED

    @boundary
    def __init__(
        self, *partitions: Any, unreduced: Iterable[Any] = frozenset(),
        reduced: Iterable[Any] = frozenset(),
    ) -> None:  # fmt: skip
        for keyword, axes in (("unreduced", unreduced), ("reduced", reduced)):
            if tuple(axes):
                raise ValueError(message(
                    "PartitionSpec", "sums are added up where they are made.",
                    got=f"{keyword}={set(axes)!r}",
                    hint="shard_map keeps parts of a sum along a dimension of their own, which is "
                    "added up\nlater: lambda x: f(x)[None] with out_specs=P('x'), then .sum(0)",
                ))  # fmt: skip
        self._partitions = tuple(map(_canonical, partitions))
        names = self.names()
        if len(set(names)) != len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise ValueError(message(
                "PartitionSpec", f"the axis name {twice!r} occurs twice.", got=repr(self),
                expected="each axis of a mesh cuts at most one dimension",
            ))  # fmt: skip

    @property
    def unreduced(self) -> frozenset[Any]:
        """The axes along which devices have parts of a sum: none."""
        return frozenset()

    reduced = unreduced

    def names(self) -> list[Any]:
        """Return all axis names in it, in order."""
        return [name for part in self._partitions for name in axes_of(part)]

    def __getitem__(self, i: Any) -> Any:
        return self._partitions[i]

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __add__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, PartitionSpec | tuple):
            return NotImplemented
        return PartitionSpec(*self, *other)

    def __radd__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        return PartitionSpec(*other, *self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSpec):
            return self._partitions == other._partitions
        if isinstance(other, tuple):
            return self._partitions == tuple(map(_canonical, other))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._partitions)

    def __reduce__(self) -> Any:
        return PartitionSpec, self._partitions

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self._partitions))})"


P = PartitionSpec
"""`PartitionSpec`, by its short name."""


def axes_of(part: Any) -> tuple[Any, ...]:
    """Return the axis names of one dimension."""
    if part is None or part is UNCONSTRAINED:
        return ()
    return part if isinstance(part, tuple) else (part,)


def _canonical(part: Any) -> Any:
    """Return an entry with `("x",)` as `"x"`, and no names at all as None."""
    if not isinstance(part, tuple | list):
        return part
    return part[0] if len(part) == 1 else tuple(part) or None
