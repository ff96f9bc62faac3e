"""Images between their points: `xnp.scipy.ndimage`."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import xnp.numpy as xn
from xnp.numpy.promoting import array_of, inexact
from xprim import Array, dtypes
from xprim.errors import message
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["map_coordinates"]

__dir__ = __all__.copy


def _mirrored(index: Any, size: int) -> Any:
    """Return indices turned back at the centres of the outer points."""
    period = max(2 * (size - 1), 1)
    index = index % period
    return xn.minimum(index, period - index) if size > 1 else 0 * index


def _reflected(index: Any, size: int) -> Any:
    """Return indices turned back at the outer edges of the outer points."""
    index = index % (2 * size)
    return xn.minimum(index, 2 * size - 1 - index)


# how an index outside is brought inside; "constant" is put in its place afterwards
_INSIDE: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda index, size: xn.clip(index, 0, size - 1),
    "nearest": lambda index, size: xn.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirrored,
    "reflect": _reflected,
}


def map_coordinates(
    input: ArrayLike, coordinates: Sequence[Any], order: int, mode: str = "constant",  # noqa: A002
    cval: ArrayLike = 0.0,
) -> Array:  # fmt: skip
    """Return the values of an array at coordinates between its points.

    Args:
      input: an array of d dimensions.
      coordinates: d arrays that broadcast, or one array whose first dimension is d: a place in each
        dimension, in points.
      order: 0 for the nearest point, 1 for linear interpolation.
      mode: what lies outside: "constant" for `cval`, "nearest" for the outermost points, "wrap" for
        the array again (SciPy's "grid-wrap"), "mirror" and "reflect" for its reflection at the
        centres, or at the edges, of the outermost points.
      cval: see `mode`.

    Returns:
      An array of the shape of the coordinates and the dtype of `input`; whole numbers are rounded.

    Differentiable in: input; coordinates, where they are no whole numbers and `order` is 1.
    """
    x = array_of(input, "map_coordinates")
    places = [inexact("map_coordinates", c)[0] for c in coordinates]
    if len(places) != x.ndim:
        raise ValueError(message(
            "map_coordinates", "there must be coordinates for each dimension.",
            got=f"{len(places)} for {x.aval.str_long()}", expected=f"{x.ndim}",
        ))  # fmt: skip
    if mode not in _INSIDE or order not in (0, 1):
        raise ValueError(message(
            "map_coordinates", "there is no such mode or order.", got=f"{mode!r}, {order!r}",
            expected=f"one of {tuple(_INSIDE)}, and 0 or 1",
        ))  # fmt: skip
    places = list(xn.broadcast_arrays(*places))
    nodes = [_nodes(p, n, order, mode) for p, n in zip(places, x.shape, strict=True)]
    dtype = dtypes.to_inexact_dtype(x.dtype)
    outside = xn.asarray(cval).astype(dtype) if mode == "constant" else None
    total: Any = 0
    for corner in itertools.product(*nodes):
        total = total + _weighted(x, corner, outside, dtype)
    rounded = xn.rint(total) if not dtypes.is_inexact(x.dtype) else total
    result: Array = xn.asarray(rounded).astype(x.dtype)
    return result


def _weighted(x: Array, corner: Any, outside: Any, dtype: Any) -> Any:
    """Return a point's value times its weights, given its index, weight and place by dimension."""
    value: Any = x[tuple([i for i, _, _ in corner])].astype(dtype)
    if outside is not None:
        inside = functools.reduce(lambda a, b: a & b, [valid for _, _, valid in corner])
        value = xn.where(inside, value, outside)
    for _, weight, _ in corner:
        value = value * weight
    return value


def _nodes(place: Any, size: int, order: int, mode: str) -> list[tuple[Any, Any, Any]]:
    """Return (index, weight, whether it is inside) of the points that a place is made of."""
    if order == 0:
        # halves go away from 0, but on a circle, which has no 0: up, as for SciPy
        lower = xn.floor(place + 0.5)
        if mode != "wrap":
            lower = xn.where(place < 0, xn.ceil(place - 0.5), lower)
        lower = lower.astype(dtypes.int32)
        found = [(lower, 1)]
    else:
        below = xn.floor(place)
        fraction = place - below
        lower = below.astype(dtypes.int32)
        found = [(lower, 1 - fraction), (lower + 1, fraction)]
    inside = _INSIDE[mode]
    return [(inside(i, size), w, (i >= 0) & (i < size)) for i, w in found]


boundaries(globals())
