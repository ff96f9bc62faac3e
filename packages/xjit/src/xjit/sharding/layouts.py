"""The order of the dimensions of arrays in memory.

    Layout    an order, the slowest dimension first
    Format    a layout and a sharding: what `x.format` is

Arrays lie in the order of NumPy, the last dimension the nearest, unless a `Format` asks for
another: in `device_put`, or of the arguments and results of a program. Values are the same in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, TypeAlias

import xtree
from xjit import jaxlib_gateway as gateway
from xjit.sharding.shardings import Sharding
from xprim import ShapedArray
from xprim.errors import ArgumentError, message
from xprim.requirements import require, require_type
from xprim.tracebacks import boundaries, boundary
from xtree.records import Record, set_once

__all__ = [
    "AUTO", "Format", "Layout", "RequestedOrder", "check_order", "format_of", "is_layout_request",
    "layout_as", "physical_order", "resolve_layout", "resolve_order", "split_formats",
]  # fmt: skip

__dir__ = __all__.copy

RequestedOrder: TypeAlias = tuple[int, ...] | str | None
"""An order of dimensions, the slowest first; `AUTO`; or None for that of NumPy."""

AUTO = "auto"
"""The order that the compiler chooses."""


class _Auto:
    """The layout that the compiler likes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "AutoLayout"


class Layout(Record):
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
    tiling: tuple[tuple[int, ...], ...] | None
    sub_byte_element_size_in_bits: int

    @boundary
    def __init__(
        self, major_to_minor: Sequence[int], tiling: Sequence[Sequence[int]] | None = None,
        sub_byte_element_size_in_bits: int = 0,
    ) -> None:  # fmt: skip
        require_type(
            "Layout", major_to_minor, Iterable,
            "major_to_minor is a sequence of the numbers of dimensions.",
            hint="Layout((1, 0)) lays columns one by one"
        )  # fmt: skip
        set_once(self, "major_to_minor", tuple(major_to_minor))
        set_once(self, "tiling", None if tiling is None else tuple(map(tuple, tiling)))
        set_once(self, "sub_byte_element_size_in_bits", sub_byte_element_size_in_bits)


class Format(Record):
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

    layout: Layout | _Auto | None
    sharding: Sharding | None

    @boundary
    def __init__(
        self, layout: Layout | _Auto | None = None, sharding: Sharding | None = None
    ) -> None:
        set_once(self, "layout", layout)
        set_once(self, "sharding", sharding)
        require_type(
            "Format", self.layout, Layout | _Auto | None, "this is not a layout.",
            expected="a Layout, Layout.AUTO or None"
        )  # fmt: skip
        require_type(
            "Format", self.sharding, Sharding | None, "this is not a sharding.",
            expected="a NamedSharding, a SingleDeviceSharding or None"
        )  # fmt: skip
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise ValueError(message(
                "Format", "a layout is of an array on certain devices.", got=repr(self.layout),
                hint="Format(layout, sharding)",
            ))  # fmt: skip


def format_of(aval: ShapedArray, sharding: Sharding | None, order: Any = None) -> Format:
    """Return the format of an array that lies so on devices, and so in the memory of each."""
    return Format() if sharding is None else Format(layout_as(aval, order), sharding)


def layout_as(aval: ShapedArray, order: Any) -> Layout:
    """Return the layout of an array whose dimensions lie in an order, None for that of NumPy."""
    dims = range(aval.ndim)  # elements of an extended dtype have dimensions of their own
    return Layout(tuple(dims if order is None else [d for d in order if d in dims]), ())


def split_formats(places: Any, operation: str) -> tuple[Any, Any]:
    """Return a tree of places as one of shardings and one of layouts, which is None for none.

    Args:
      places: a tree of shardings, formats, ...
      operation: what errors call the public function.

    Raises:
      ValueError: a layout stands alone, or has tiles.
    """
    leaves = [] if places is None else xtree.leaves(places)
    if not any(isinstance(leaf, Format | Layout) for leaf in leaves):
        return places, None
    for leaf in leaves:
        _check_place(leaf, operation)
    shardings = xtree.map(lambda p: p.sharding if isinstance(p, Format) else p, places)
    layouts = xtree.map(lambda p: p.layout if isinstance(p, Format) else None, places)
    has_layout = any(isinstance(p, Format) and p.layout is not None for p in leaves)
    return shardings, layouts if has_layout else None


def _check_place(place: Any, operation: str) -> None:
    layout = place.layout if isinstance(place, Format) else place
    require(
        layout is not place or not isinstance(layout, Layout | _Auto), operation,
        "a layout is of an array on certain devices.", got=layout, hint="Format(layout, sharding)",
    )  # fmt: skip
    if not isinstance(layout, Layout):
        return
    require(
        not layout.tiling and not layout.sub_byte_element_size_in_bits, operation,
        "arrays have no tiles here, and no packed elements.", got=layout,
        expected="Layout(major_to_minor)",
    )  # fmt: skip
    if place.sharding.memory is not None:
        raise ValueError(message(
            operation, "in host memory arrays have NumPy's layout.",
            got=repr(place), expected=f"a sharding with memory_kind {'device'!r}",
        ))  # fmt: skip


def check_order(layout: Any, aval: ShapedArray, what: str) -> tuple[int, ...]:
    """Return the order that a layout gives an array.

    Raises:
      ValueError: it is `Layout.AUTO`, or no order of its dimensions.
    """
    if not isinstance(layout, Layout):
        raise ArgumentError(message(
            what, "the order of an array is named.", got=repr(layout),
            expected="Format(Layout(major_to_minor), sharding)",
            hint="Layout.AUTO is for the arguments and results of jit",
        ))  # fmt: skip
    order = layout.major_to_minor
    if sorted(order) != list(range(aval.ndim)):
        raise ValueError(message(
            what, "a layout is an order of the dimensions.", got=repr(layout),
            expected=f"the numbers from 0 to {aval.ndim - 1} for {aval.str_long()}"
            if aval.ndim else f"Layout(()) for {aval.str_long()}",
        ))  # fmt: skip
    return order


def is_layout_request(value: Any) -> bool:
    """Return whether a value is a leaf in a tree of requested layouts."""
    return value is None or isinstance(value, Layout | _Auto)


def resolve_layout(
    layout: Any, aval: ShapedArray, operation: str, label: str
) -> RequestedOrder:  # fmt: skip
    """Return the order, `AUTO` or None that a layout in a tree requests of one array."""
    if isinstance(layout, _Auto):
        return AUTO
    return None if layout is None else check_order(layout, aval, f"{operation} of {label}")


def resolve_order(order: RequestedOrder, aval: ShapedArray) -> RequestedOrder:
    """Return a requested order as programs have it: see `physical_order`."""
    return order if order is None or isinstance(order, str) else physical_order(order, aval)


def physical_order(order: tuple[int, ...], aval: ShapedArray) -> gateway.Order:
    """Return an order of the dimensions of an array as buffers have it, None for NumPy's.

    The dimensions of the elements of an extended dtype are the nearest.
    """
    if order == tuple(range(aval.ndim)):
        return None
    return (*order, *range(aval.ndim, (aval.physical or aval).ndim))


boundaries(globals())
