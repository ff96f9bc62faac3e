"""The attributes of StableHLO's operations on windows, and the shape their results have.

A window of `window_dimensions`, its elements `window_dilation` apart, moves in steps of
`window_strides` over the operand whose elements are `base_dilation` apart, with `padding`
(low, high) around. Semantics: StableHLO specification, section reduce_window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ()


def window_attributes(
    dimensions: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[Sequence[int]],
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> str:
    """Return the inside of the attribute dictionary of a window operation."""
    fields = [_array("window_dimensions", dimensions), _array("window_strides", strides)]
    if any(d != 1 for d in base_dilation):
        fields.append(_array("base_dilations", base_dilation))
    if any(d != 1 for d in window_dilation):
        fields.append(_array("window_dilations", window_dilation))
    fields.append(_padding(padding))
    return ", ".join(fields)


def scatter_attributes(
    dimensions: Sequence[int], strides: Sequence[int], padding: Sequence[Sequence[int]]
) -> str:
    """Return the inside of the attribute dictionary of select_and_scatter."""
    return ", ".join(
        [_array("window_dimensions", dimensions), _array("window_strides", strides),
         _padding(padding)]
    )  # fmt: skip


def _array(name: str, values: Sequence[int]) -> str:
    return f"{name} = array<i64: {', '.join(map(str, values))}>"


def _padding(padding: Sequence[Sequence[int]]) -> str:
    rows = ", ".join([f"[{low}, {high}]" for low, high in padding])
    return f"padding = dense<[{rows}]> : tensor<{len(padding)}x2xi64>"


def dilated(size: int, dilation: int) -> int:
    """Return the size of a dimension whose elements are `dilation` apart."""
    return (size - 1) * dilation + 1 if size else 0


def window_shape(shape: Sequence[int], params: Any) -> tuple[int, ...]:
    """Return how many places a window has in each dimension."""
    places = []
    for n, w, stride, (low, high), base, dilation in zip(
        shape, params["window_dimensions"], params["window_strides"], params["padding"],
        params["base_dilation"], params["window_dilation"], strict=True,
    ):  # fmt: skip
        covered = dilated(n, base) + low + high
        extent = dilated(w, dilation)
        places.append((covered - extent) // stride + 1 if covered >= extent else 0)
    return tuple(places)
