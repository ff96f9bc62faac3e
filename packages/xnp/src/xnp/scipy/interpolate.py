"""Interpolation on grids: `xnp.scipy.interpolate`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import xnp.numpy as xn
import xtree
from xnp.numpy.dispatch import array_of, inexact
from xprim import Array, ConcreteArray, dtypes
from xprim.errors import message
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike
from xtree.boundaries import boundary_methods

__all__ = ["RegularGridInterpolator"]

__dir__ = __all__.copy

_METHODS = ("linear", "nearest")


@boundary_methods
class RegularGridInterpolator:
    """A function given by its values on a grid.

    Args:
      points: for each of d dimensions a vector of places, of two or more, that ascend; or descend,
        where they are known.
      values: an array whose first d dimensions go with the places.
      method: "linear" or "nearest".
      bounds_error: whether a point outside of the grid is an error; points that are traced have
        no values to look at, and raise a `ConcretizationTypeError` then.
      fill_value: what stands for the function outside; None to extrapolate.

    It is a pytree, so functions that are transformed take and return it.

    Example:
      >>> import numpy as np
      >>> f = RegularGridInterpolator((np.array([0.0, 1.0, 3.0]),), np.array([0.0, 2.0, 4.0]))
      >>> f(np.array([[0.5], [2.0]])).tolist()
      [1.0, 3.0]
    """

    grid: Any
    values: Any
    fill_value: Any
    method: str
    bounds_error: bool
    __slots__ = ("bounds_error", "fill_value", "grid", "method", "values")

    @boundary
    def __init__(
        self, points: Sequence[Any], values: ArrayLike, method: str = "linear",
        bounds_error: bool = False, fill_value: ArrayLike | None = math.nan,
    ) -> None:  # fmt: skip
        _check_method(method)
        (v,) = inexact("RegularGridInterpolator", values)
        grid = tuple([array_of(p, "RegularGridInterpolator").astype(_real(v)) for p in points])
        if len(grid) > v.ndim:
            raise ValueError(message(
                "RegularGridInterpolator", "there are more vectors of places than dimensions.",
                got=f"{len(grid)} for {v.aval.str_long()}",
            ))  # fmt: skip
        for i, p in enumerate(grid):
            if p.shape != v.shape[i : i + 1] or p.size < 2:
                raise ValueError(message(
                    "RegularGridInterpolator",
                    f"the places of dimension {i} do not fit the values.",
                    got=f"{p.aval.str_long()}, values: {v.aval.str_long()}",
                    expected=f"shape ({v.shape[i]},), of two or more",
                ))  # fmt: skip
        self.grid, self.values = _ascending(grid, v)
        self.method = method
        self.bounds_error = bool(bounds_error)
        self.fill_value = fill_value

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """Return the function at points.

        Args:
          xi: points, of shape (..., d), or d arrays that broadcast.
          method: None for that of the object.
        """
        method = self.method if method is None else method
        _check_method(method)
        if isinstance(xi, tuple | list):
            arrays = [inexact("RegularGridInterpolator", x)[0] for x in xi]
            xi = xn.stack(xn.broadcast_arrays(*arrays), axis=-1)
        (points,) = inexact("RegularGridInterpolator", xi)
        count = len(self.grid)
        points = points[:, None] if points.ndim == 1 and count == 1 else points
        if not points.ndim or points.shape[-1] != count:
            raise ValueError(message(
                "RegularGridInterpolator", "the points have another dimension than the grid.",
                got=points.aval.str_long(), expected=f"shape (..., {count})",
            ))  # fmt: skip
        flat = points.reshape((-1, count))
        found = self._fill_outside(self._at(flat, method), flat)
        result: Array = found.reshape((*points.shape[:-1], *self.values.shape[count:]))
        return result

    def _at(self, points: Any, method: str) -> Any:
        places = [_place(g, points[:, i]) for i, g in enumerate(self.grid)]
        if method == "nearest":
            return self.values[tuple([xn.where(f <= 0.5, i, i + 1) for i, f in places])]
        total: Any = 0
        extra = (1,) * (self.values.ndim - len(self.grid))
        for steps in itertools.product((0, 1), repeat=len(places)):
            weight: Any = 1
            for step, (_, fraction) in zip(steps, places, strict=True):
                weight = weight * (fraction if step else 1 - fraction)
            index = tuple([i + s for s, (i, _) in zip(steps, places, strict=True)])
            total = total + self.values[index] * weight.reshape((-1, *extra))
        return total

    def _fill_outside(self, result: Any, points: Any) -> Any:
        """Return the result with the value that stands for the function outside of the grid."""
        low = xn.stack([g[0] for g in self.grid])
        high = xn.stack([g[-1] for g in self.grid])
        outside = ((points < low) | (points > high)).any(-1)
        require(
            not self.bounds_error or not bool(outside.any()), "RegularGridInterpolator",
            "a point is outside of the grid.",
        )  # fmt: skip
        missing = xn.isnan(points).any(-1)
        shape = (-1,) + (1,) * (result.ndim - 1)
        if self.fill_value is not None:
            result = xn.where(outside.reshape(shape), self.fill_value, result).astype(result.dtype)
        return xn.where(missing.reshape(shape), math.nan, result)

    def tree_flatten(self) -> Any:
        """Return the arrays that the function is made of, and what is static."""
        if self.fill_value is None:
            return (self.grid, self.values), (self.method, self.bounds_error, False)
        return (self.grid, self.values, self.fill_value), (self.method, self.bounds_error, True)

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> RegularGridInterpolator:
        """Return the object that arrays make."""
        made = object.__new__(cls)
        made.method, made.bounds_error, is_filled = aux_data
        made.grid, made.values = children[:2]
        made.fill_value = children[2] if is_filled else None
        return made


xtree.register_pytree_node_class(RegularGridInterpolator)


def _real(v: Array) -> Any:
    return v.real.dtype if dtypes.is_complex(v.dtype) else v.dtype


def _ascending(grid: Sequence[Any], values: Any) -> tuple[Any, Any]:
    """Turn dimensions whose places descend around; places that are traced must ascend."""
    turned = []
    for i, p in enumerate(grid):
        steps = np.diff(np.asarray(p)) if isinstance(p, ConcreteArray) else np.ones(1)
        descends = bool((steps < 0).all())
        require(
            descends or (steps > 0).all(), "RegularGridInterpolator",
            "the places of dimension {} must ascend.", i, got=p,
        )  # fmt: skip
        turned.append(p[::-1] if descends else p)
        values = xn.flip(values, i) if descends else values
    return tuple(turned), values


def _check_method(method: str) -> None:
    require_choice("RegularGridInterpolator", "method", method, _METHODS)


def _place(grid: Any, x: Any) -> tuple[Any, Any]:
    """Return the index of the place below, and how far x is from it to the next one."""
    index = xn.clip(xn.searchsorted(grid, x, side="right") - 1, 0, grid.size - 2)
    low, high = grid[index], grid[index + 1]
    return index, (x - low) / (high - low)
