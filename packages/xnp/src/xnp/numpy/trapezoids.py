"""Sums of trapezoids, of which `trapezoid` is made.

Neighbours: `calculus` has the function, `reductions` the sums.
"""

from __future__ import annotations

from typing import Any

from xnp.numpy.indexing import read
from xnp.numpy.promoting import (
    axis_of,
    bind,
    broadcast_all,
    check_ranks,
    scalar_like,
)
from xnp.numpy.reductions import sum as summed
from xprim import dtypes

__all__ = ()


def trapezoids_of_widths(y: Any, widths: Any, axis: int) -> Any:
    """Return the sum of trapezoids whose widths are an array, which broadcasts as it stands."""
    axis = axis_of(axis, y.aval.ndim, "trapezoid")
    lead = (slice(None),) * axis
    ends = [read(y, (*lead, part)) for part in (slice(1, None), slice(None, -1))]
    both = bind("add", *ends)
    check_ranks_of_widths(both, widths, y, widths)
    both, widths = broadcast_all("trapezoid", both, widths)
    behind = y.aval.ndim - axis  # the widths may have further dimensions in front
    areas = summed(bind("mul", both, widths), -behind)
    return bind("mul", areas, scalar_like(areas, 0.5))


def check_ranks_of_widths(both: Any, widths: Any, y: Any, x: Any) -> None:
    """Hold values and widths to one rank; a single width counts as the number that it is.

    Args:
      both: sums of neighbours.
      widths: their distances.
      y: the values that the caller has passed.
      x: the places or distances that the caller has passed.
    """
    if widths.aval.shape[-1:] == (1,) and 1 in (widths.aval.ndim, both.aval.ndim):
        return
    check_ranks("trapezoid", y, x)


def even_trapezoids(y: Any, step: Any, axis: int) -> Any:
    """Return the sum of halves of both ends and all values between, times the step."""
    lead = (slice(None),) * axis
    ends = [_half(read(y, (*lead, i))) for i in (0, -1)]
    between = summed(read(y, (*lead, slice(1, -1))), axis)
    total = bind("add", between, bind("add", *ends))
    return bind("mul", *broadcast_all("trapezoid", total, step))


def _half(x: Any) -> Any:
    if dtypes.is_complex(x.aval.dtype):  # by parts: 0.5 + 0j times infinity has a NaN
        return bind("complex", *[_half(bind(part, x)) for part in ("real", "imag")])
    return bind("mul", x, scalar_like(x, 0.5))
