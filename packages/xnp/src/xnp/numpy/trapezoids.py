"""Sums of trapezoids, of which `trapezoid` is made.

Neighbours: `calculus` has the function, `reductions` the sums.
"""

from __future__ import annotations

from typing import Any

from xnp import lax
from xnp.numpy.indexing import read
from xnp.numpy.promoting import (
    axis_of,
    bind,
    broadcast_all,
    check_ranks,
    scalar_like,
)
from xnp.numpy.reductions import sum as summed
from xprim import JaxprTracer, Zero, custom_jvp_call_p, dtypes

__all__ = ()

_MANY = 1 << 13  # values whose sum takes longer than a branch


def trapezoids_of_widths(y: Any, widths: Any, axis: int) -> Any:
    """Return the sum of trapezoids whose widths are an array, which broadcasts as it stands."""
    axis = axis_of(axis, y.aval.ndim, "trapezoid")
    lead = (slice(None),) * axis
    ends = [read(y, (*lead, part)) for part in (slice(1, None), slice(None, -1))]
    both = bind("add", *ends)
    check_ranks_of_widths(both, widths)
    both, widths = broadcast_all("trapezoid", both, widths)
    behind = y.aval.ndim - axis  # the widths may have further dimensions in front
    areas = summed(bind("mul", both, widths), -behind)
    return bind("mul", areas, scalar_like(areas, 0.5))


def check_ranks_of_widths(both: Any, widths: Any) -> None:
    """Hold values and widths to one rank; a single width counts as the number that it is."""
    if widths.aval.shape[-1:] == (1,) and 1 in (widths.aval.ndim, both.aval.ndim):
        return
    check_ranks("trapezoid", both, widths)


def even_trapezoids(y: Any, step: Any, axis: int) -> Any:
    """Return the sum of halves of both ends and all values between, times the step."""
    size = y.aval.size
    many = type(y) is JaxprTracer and type(size) is int and size >= _MANY
    whole = many and dtypes.is_floating(y.aval.dtype)
    total = _SumLessHalves(axis).of(y) if whole else _sum_between(y, axis)
    return bind("mul", *broadcast_all("trapezoid", total, step))


def _halves(y: Any, axis: int) -> Any:
    lead = (slice(None),) * axis
    return bind("add", *[_half(read(y, (*lead, i))) for i in (0, -1)])


def _sum_between(y: Any, axis: int) -> Any:
    between = summed(read(y, (*(slice(None),) * axis, slice(1, -1))), axis)
    return bind("add", between, _halves(y, axis))


class _SumLessHalves:
    """The same sum, for which a compiler copies no values: of all, less halves of both ends.

    Where that is no number, since an end is infinite or it overflows, the values between are
    summed. The derivative has no branch: it is the sum of a tangent.
    """

    __slots__ = ("_axis",)

    def __init__(self, axis: int) -> None:
        self._axis = axis

    def of(self, y: Any) -> Any:
        """Return the sum along the axis."""
        return custom_jvp_call_p.bind(y, call=self._call, jvp=self._jvp)[0]

    def _call(self, y: Any) -> list[Any]:
        everything = summed(y, self._axis)
        less = bind("sub", everything, _halves(y, self._axis))
        finite = bind("is_finite", everything)
        every = bind("reduce_and", finite, axes=tuple(range(finite.aval.ndim)))
        return [lax.cond(every, lambda: less, lambda: _sum_between(y, self._axis))]

    def _jvp(self, primals: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        total, (y_dot,) = self.of(*primals), tangents
        zero = type(y_dot) is Zero
        return [total], [Zero(total.aval) if zero else _sum_between(y_dot, self._axis)]


def _half(x: Any) -> Any:
    if dtypes.is_complex(x.aval.dtype):  # by parts: 0.5 + 0j times infinity has a NaN
        return bind("complex", *[_half(bind(part, x)) for part in ("real", "imag")])
    return bind("mul", x, scalar_like(x, 0.5))
