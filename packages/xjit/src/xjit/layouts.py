"""The order of the dimensions of arrays in memory.

    Layout    an order, the slowest dimension first
    Format    a layout and a sharding: what `x.format` is

Arrays lie in the order of NumPy, the last dimension the nearest: that is what they are given to
programs and come out in, and another `Format` of an argument, a result or in `device_put` is
refused. What a program computes in between may lie in any order.

Neighbours: `layout_constraint` says it in programs, `ffi` takes layouts of operands, `stages` shows
the formats of programs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import xtree
from xjit.shardings import Sharding
from xprim import ShapedArray
from xprim.descriptions import described
from xprim.errors import message
from xprim.tracebacks import boundaries, boundary

__all__ = ["Format", "Layout", "format_of", "shardings_in"]

__dir__ = __all__.copy


T = TypeVar("T")


def _bounded(cls: type[T]) -> type[T]:
    """Let the errors of the `__init__` that `dataclass` writes end in the user's line."""
    cls.__init__ = boundary(cls.__init__)  # type: ignore[method-assign]
    return cls


class _Auto:
    """The layout that the compiler likes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "AutoLayout"


@_bounded
@dataclass(frozen=True, slots=True)
class Layout:
    """An order of the dimensions in memory.

    Attributes:
      major_to_minor: the numbers of the dimensions, the slowest first.
      tiling: tiles of accelerators; None or empty for none.
      sub_byte_element_size_in_bits: of elements that are packed, else 0.

    Example:
      >>> Layout((1, 0))
      Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)
    """

    AUTO: ClassVar[Any] = _Auto()

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))
        if self.tiling is not None:
            object.__setattr__(self, "tiling", tuple(map(tuple, self.tiling)))

    @property
    def is_of_numpy(self) -> bool:
        """Whether the last dimension is the nearest, and there are no tiles."""
        return self.major_to_minor == tuple(range(len(self.major_to_minor))) and not self.tiling


@_bounded
@dataclass(frozen=True, slots=True)
class Format:
    """How an array lies on its devices, and in the memory of each.

    Attributes:
      layout: a `Layout`; `Layout.AUTO` or None for what the compiler likes.
      sharding: over which devices, None for any.

    Raises:
      ValueError: a layout is given without a sharding.
      TypeError: they are something else.

    Example:
      >>> Format(Layout.AUTO)
      Format(layout=AutoLayout, sharding=None)
    """

    layout: Layout | _Auto | None = None
    sharding: Sharding | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.layout, Layout | _Auto | None):
            raise TypeError(message(
                "Format", "this is no layout.", got=described(self.layout),
                expected="a Layout, Layout.AUTO or None",
            ))  # fmt: skip
        if not isinstance(self.sharding, Sharding | None):
            raise TypeError(message(
                "Format", "this is no sharding.", got=described(self.sharding),
                expected="a NamedSharding, a SingleDeviceSharding or None",
            ))  # fmt: skip
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise ValueError(message(
                "Format", "a layout is of an array on certain devices.", got=repr(self.layout),
                hint="Format(layout, sharding)",
            ))  # fmt: skip


def format_of(aval: ShapedArray, sharding: Sharding | None) -> Format:
    """Return the format of an array that lies so on devices."""
    layout = Layout(tuple(range(aval.ndim)), ())
    return Format(None if sharding is None else layout, sharding)


def shardings_in(places: Any, operation: str) -> Any:
    """Return a tree of places with the sharding of each format in its place.

    Args:
      places: a tree of shardings, formats, ...
      operation: what errors call the public function.

    Raises:
      ValueError: a format has a layout that arrays cannot have.
    """
    if places is None or not any(isinstance(leaf, Format) for leaf in xtree.leaves(places)):
        return places
    return xtree.map(lambda place: _sharding_of(place, operation), places)


def _sharding_of(place: Any, operation: str) -> Any:
    if not isinstance(place, Format):
        return place
    if isinstance(place.layout, Layout) and not place.layout.is_of_numpy:
        raise ValueError(message(
            operation, "arrays lie in the order of NumPy, the last dimension the nearest.",
            got=repr(place.layout),
            hint="transpose the array; with_layout_constraint is about values inside of a program",
        ))  # fmt: skip
    return place.sharding


boundaries(globals())
