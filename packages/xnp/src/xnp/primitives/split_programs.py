"""Whether a program is cut over devices by the compiler, which rules of text may ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xprim import ShapedArray, shaped_array
from xprim.contracts import Builder

__all__ = ()


def may_be_cut(b: Builder, aval: ShapedArray, dims: Sequence[int]) -> bool:
    """Return whether the program cuts such arrays there; builders of 0.2.0 cannot tell."""
    asked = getattr(b, "may_be_cut", None)
    return asked is not None and is_split(b) and asked(aval, dims)


def held_whole(b: Builder, names: Sequence[str], avals: Sequence[ShapedArray]) -> list[str]:
    """Return values that the compiler leaves whole; builders of 0.2.0 cannot ask for it."""
    hold = getattr(b, "held_whole", None)
    if hold is None or not is_split(b):
        return list(names)
    return [hold(name, aval) for name, aval in zip(names, avals, strict=True)]


def held_along(b: Builder, name: str, aval: ShapedArray, dims: Sequence[int]) -> str:
    """Return a value that the compiler leaves whole along dimensions, and may cut along others."""
    hold = getattr(b, "held_whole", None)
    return name if hold is None or not is_split(b) else hold(name, aval, dims)


def product_text(
    b: Builder, operands: Sequence[str], avals: Sequence[ShapedArray], out: ShapedArray,
    dimension_numbers: Any, attributes: str,
) -> str:  # fmt: skip
    """Write a product; in a split program that of a vector as that of a matrix of one column.

    And what contracts nothing as products of elements: XLA (jaxlib 0.12.0.1) ends the process for
    some products of both kinds, where a vector is cut.
    """
    if not is_split(b):
        return b.op("stablehlo.dot_general", operands, avals, [out], attributes)[0]
    contracted, batch = dimension_numbers
    is_plain = avals[0].dtype == avals[1].dtype == out.dtype and "algorithm" not in attributes
    if not contracted[0] and is_plain:
        return _outer_text(b, operands, avals, out, batch)
    has_free = [a.ndim > len(c) + len(d) for a, c, d in zip(avals, contracted, batch, strict=True)]
    names, avals, wide = list(operands), list(avals), out
    if any(has_free) and not all(has_free):
        i = has_free.index(False)
        column = shaped_array((*avals[i].shape, 1), avals[i].dtype)
        (names[i],) = b.op("stablehlo.reshape", [names[i]], [avals[i]], [column])
        avals[i], place = column, out.ndim if i else len(batch[0])
        wide = shaped_array((*out.shape[:place], 1, *out.shape[place:]), out.dtype)
    (result,) = b.op("stablehlo.dot_general", names, avals, [wide], attributes)
    return result if wide is out else b.op("stablehlo.reshape", [result], [wide], [out])[0]


def _outer_text(
    b: Builder, operands: Sequence[str], avals: Sequence[ShapedArray], out: ShapedArray,
    batch: Sequence[Sequence[int]],
) -> str:  # fmt: skip
    """Write the products of all elements of two operands, for each of a batch of its own."""
    names, before = [], len(batch[0])
    for x, aval, along in zip(operands, avals, batch, strict=True):
        free = [d for d in range(aval.ndim) if d not in along]
        places = {**{d: k for k, d in enumerate(along)},
                  **{d: before + k for k, d in enumerate(free)}}  # fmt: skip
        dims = [places[d] for d in range(aval.ndim)]
        names += b.op("stablehlo.broadcast_in_dim", [x], [aval], [out],
                      f"broadcast_dimensions = array<i64{_listed(dims)}>")  # fmt: skip
        before += len(free)
    return b.same_type_op("stablehlo.multiply", names, out)


def _listed(numbers: Sequence[int]) -> str:
    return f": {', '.join(map(str, numbers))}" if numbers else ""


def is_split(b: Builder) -> bool:
    """Return whether the compiler cuts values of the program; builders of 0.2.0 cannot tell."""
    return bool(getattr(b, "is_split", False))
