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
      unreduced: a set of axes whose members hold parts of a sum: the array is what they add up to.
      reduced: a set of axes whose members all have the array, and its cotangent in parts: the
        derivative by such an array is `unreduced`, and the other way round.

    Raises:
      ValueError: an axis name occurs twice.
      TypeError: the axes do not come in a set.

    Example:
      >>> PartitionSpec("x", None, ("y", "z"))
      PartitionSpec('x', None, ('y', 'z'))
      >>> PartitionSpec("x", unreduced={"y"})
      PartitionSpec('x', unreduced={'y'})
      >>> len(PartitionSpec())
      0
    """

    __slots__ = ("_partitions", "reduced", "unreduced")
    UNCONSTRAINED = UNCONSTRAINED

    @boundary
    def __init__(
        self, *partitions: Any, unreduced: Iterable[Any] = frozenset(),
        reduced: Iterable[Any] = frozenset(),
    ) -> None:  # fmt: skip
        self.unreduced = _axes_in_set("unreduced", unreduced)
        self.reduced = _axes_in_set("reduced", reduced)
        self._partitions = tuple(map(_canonical, partitions))
        names = [*self.names(), *self.unreduced, *self.reduced]
        if len(set(names)) != len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise ValueError(message(
                "PartitionSpec", f"the axis name {twice!r} occurs twice.", got=repr(self),
                expected="each axis of a mesh cuts at most one dimension" + (
                    ", or is of one set" if self.sums else ""),
            ))  # fmt: skip

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The entries for the dimensions."""
        return self._partitions

    @property
    def sums(self) -> frozenset[Any]:
        """The axes of both sets: those along which the array or its cotangent is in parts."""
        return self.unreduced | self.reduced

    @boundary
    def update(self, **changes: Any) -> PartitionSpec:
        """Return the same spec with other `partitions`, or another set: `unreduced`, `reduced`."""
        given = {"partitions": self._partitions, "unreduced": self.unreduced,
                 "reduced": self.reduced}  # fmt: skip
        for name in changes.keys() - given.keys():
            raise TypeError(message(
                "PartitionSpec.update", f"there is no attribute {name!r}.",
                expected=", ".join(given),
            ))  # fmt: skip
        given |= changes
        return PartitionSpec(
            *given["partitions"], unreduced=given["unreduced"], reduced=given["reduced"]
        )

    def names(self) -> list[Any]:
        """Return all axis names that cut dimensions, in order."""
        return [name for part in self._partitions for name in axes_of(part)]

    def index(self, part: Any) -> int:
        """Return the first dimension that is cut by these axes; ValueError where none is."""
        return self._partitions.index(_canonical(part))

    def count(self, part: Any) -> int:
        """Return how many dimensions are cut by these axes."""
        return self._partitions.count(_canonical(part))

    def __getitem__(self, i: Any) -> Any:
        return self._partitions[i]

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __add__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, PartitionSpec | tuple):
            return NotImplemented
        return self._joined(self, other, other)

    def __radd__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        return self._joined(other, self, other)

    def _joined(self, first: Iterable[Any], then: Iterable[Any], other: Any) -> PartitionSpec:
        more = other if isinstance(other, PartitionSpec) else PartitionSpec()
        return PartitionSpec(
            *first, *then, unreduced=self.unreduced | more.unreduced,
            reduced=self.reduced | more.reduced,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSpec):
            return (self._partitions == other._partitions and self.unreduced == other.unreduced
                    and self.reduced == other.reduced)  # fmt: skip
        if isinstance(other, tuple):
            return not self.sums and self._partitions == tuple(map(_canonical, other))
        return NotImplemented

    def __hash__(self) -> int:
        if not self.sums:
            return hash(self._partitions)
        return hash((self._partitions, self.unreduced, self.reduced))

    def __reduce__(self) -> Any:
        if not self.sums:
            return PartitionSpec, self._partitions
        return _with_sums, (self._partitions, self.unreduced, self.reduced)

    def __repr__(self) -> str:
        sets = [f"{name}={{{', '.join(sorted(map(repr, axes)))}}}"
                for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced))
                if axes]  # fmt: skip
        return f"PartitionSpec({', '.join([*map(repr, self._partitions), *sets])})"


def _with_sums(partitions: Any, unreduced: Any, reduced: Any) -> PartitionSpec:
    """Return the spec that was pickled."""
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


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
    for name in part:
        if isinstance(name, tuple | list):
            raise ValueError(message(
                "PartitionSpec", "an entry is a name or a tuple of names, and this one has a tuple "
                "in it.", got=repr(part), expected=f"{_flat(part)!r}",
            ))  # fmt: skip
    return part[0] if len(part) == 1 else tuple(part) or None


def _flat(part: Any) -> tuple[Any, ...]:
    """Return the names of an entry in which tuples are nested."""
    return tuple([
        name for item in part
        for name in (_flat(item) if isinstance(item, tuple | list) else (item,))
    ])  # fmt: skip


def _axes_in_set(keyword: str, axes: Any) -> frozenset[Any]:
    """Return the axes of a keyword, which come in a set: a string would be one of letters."""
    if not isinstance(axes, set | frozenset):
        raise TypeError(message(
            "PartitionSpec", f"{keyword} takes a set of axis names.", got=f"{keyword}={axes!r}",
            hint=f"{keyword}={{'x'}}",
        ))  # fmt: skip
    if None in axes or UNCONSTRAINED in axes:
        raise ValueError(message(
            "PartitionSpec", f"{keyword} names axes of a mesh.", got=f"{keyword}={axes!r}",
        ))  # fmt: skip
    return frozenset(axes)
