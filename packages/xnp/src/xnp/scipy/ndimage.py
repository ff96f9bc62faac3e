"""Images between their points: `xnp.scipy.ndimage`."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import xnp.numpy as xn
from xnp.numpy.dispatch import array_of, inexact
from xprim import Array, dtypes
from xprim.errors import message
from xprim.requirements import require_choice
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["map_coordinates"]

__dir__ = __all__.copy


def _turn(place: Any, period: Any) -> Any:
    """Take off whole periods, towards 0."""
    return place - period * xn.trunc(place / period)


def _mirror(place: Any, size: int) -> Any:
    """Return places turned back at the centres of the outer points."""
    period = 2 * max(size - 1, 1)
    low = _turn(place, period)
    low = xn.where(low <= 1 - size, low + period, -low)
    high = _turn(place, period)
    high = xn.where(high >= size, period - high, high)
    return xn.where(place < 0, low, xn.where(place > size - 1, high, place))


def _reflect(place: Any, size: int) -> Any:
    """Return places turned back at the outer edges of the outer points."""
    low = _turn(place, 2 * size)
    low = xn.where(low < -size, low + 2 * size, -low - 1)
    high = _turn(place, 2 * size)
    high = xn.where(high >= size, 2 * size - high - 1, high)
    return xn.where(place < 0, low, xn.where(place > size - 1, high, place))


def _wrap(place: Any, size: int, period: int) -> Any:
    """Return places moved by whole periods to where the array has points."""
    low = place + period * (xn.trunc(-place / period) + 1)
    high = _turn(place, period)
    return xn.where(place < 0, low, xn.where(place > size - 1, high, place))


def _clip(place: Any, size: int) -> Any:
    """Return places and indices moved to the outermost points."""
    return xn.clip(place, 0, size - 1)


# how a place outside is brought inside, and then the index of a point beside it
_PLACES: dict[str, Callable[[Any, int], Any]] = {
    "constant": _clip,
    "grid-constant": lambda place, size: xn.clip(place, -2, size + 1),
    "nearest": _clip,
    "wrap": lambda place, size: _wrap(place, size, max(size - 1, 1)),
    "grid-wrap": lambda place, size: _wrap(place, size, size),
    "mirror": _mirror,
    "reflect": _reflect,
    "grid-mirror": _reflect,
}
_INDICES: dict[str, Callable[[Any, int], Any]] = {
    "grid-wrap": lambda index, size: index % size,
    "mirror": lambda index, size: xn.minimum(
        abs(index), abs(2 * (size - 1) - index) if size > 1 else 0
    ),
    "reflect": lambda index, size: xn.clip(
        xn.where(index < 0, -index - 1, xn.where(index < size, index, 2 * size - 1 - index)),
        0, size - 1,
    ),
}  # fmt: skip
_INDICES["grid-mirror"] = _INDICES["reflect"]


def map_coordinates(
    input: ArrayLike, coordinates: Sequence[Any], order: int, mode: str = "constant",  # noqa: A002
    cval: ArrayLike = 0.0,
) -> Array:  # fmt: skip
    """Return the values of an array at coordinates between its points.

    Args:
      input: an array of d dimensions.
      coordinates: d arrays that broadcast, or one array whose first dimension is d: a place in each
        dimension, in points.
      order: 0 for the nearest point, the upper one of two, 1 for linear interpolation.
      mode: what lies outside, as in SciPy: "constant" for `cval` right behind the outermost points,
        "grid-constant" for points of `cval`, towards which `order` 1 interpolates; "nearest" for
        the outermost points; "grid-wrap" for the array again, "wrap" for the same where the last
        point is the first one of the next array; "mirror", and "reflect" or "grid-mirror", for its
        reflection at the centres, or at the edges, of the outermost points.
      cval: see `mode`.

    Returns:
      An array of the shape of the coordinates and the dtype of `input`; whole numbers are rounded.

    Differentiable in: input; coordinates, where they are not whole numbers and `order` is 1.
    """
    x = array_of(input, "map_coordinates")
    places = [inexact("map_coordinates", c)[0] for c in coordinates]
    if len(places) != x.ndim:
        raise ValueError(message(
            "map_coordinates", "there must be coordinates for each dimension.",
            got=f"{len(places)} for {x.aval.str_long()}", expected=f"{x.ndim}",
        ))  # fmt: skip
    require_choice("map_coordinates", "mode", mode, _PLACES)
    require_choice("map_coordinates", "order", order, (0, 1))
    places = list(xn.broadcast_arrays(*places))
    nodes = [_nodes(p, n, order, mode) for p, n in zip(places, x.shape, strict=True)]
    dtype = dtypes.to_inexact_dtype(x.dtype)
    outside = xn.asarray(cval).astype(dtype) if mode == "grid-constant" else None
    total: Any = 0
    for corner in itertools.product(*nodes):
        total = total + _weigh(x, corner, outside, dtype)
    if mode == "constant":
        within = functools.reduce(
            lambda a, b: a & b,
            [~((p < 0) | (p > n - 1)) for p, n in zip(places, x.shape, strict=True)],
        )
        total = xn.where(within, total, xn.asarray(cval).astype(dtype))
    rounded = xn.rint(total) if not dtypes.is_inexact(x.dtype) else total
    result: Array = xn.asarray(rounded).astype(x.dtype)
    return result


def _weigh(x: Array, corner: Any, outside: Any, dtype: Any) -> Any:
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
    place = _PLACES[mode](place, size)
    if order == 0:
        found = [(xn.floor(place + 0.5).astype(dtypes.int32), 1)]
    else:
        below = xn.floor(place)
        fraction = place - below
        lower = below.astype(dtypes.int32)
        found = [(lower, 1 - fraction), (lower + 1, fraction)]
    index = _INDICES.get(mode, _clip)
    return [(index(i, size), w, (i >= 0) & (i < size)) for i, w in found]


boundaries(globals())
