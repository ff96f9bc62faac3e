"""The integral of values by the trapezoidal rule: trapezoid.

Neighbours: `calculus` has differences, `reductions` the sums.
"""

from __future__ import annotations

from typing import Any

from xnp import lax
from xnp.docstrings import complete
from xnp.numpy.calculus import diff
from xnp.numpy.indexing import read
from xnp.numpy.promoting import (
    array_of,
    axis_of,
    bind,
    broadcast_all,
    check_ranks,
    converted,
    inexact,
    promoted,
    scalar_like,
    wide,
)
from xnp.numpy.reductions import sum as summed
from xnp.numpy.shaping import moveaxis
from xprim import Array, JaxprTracer, Zero, custom_jvp_call_p, dtypes
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["trapezoid"]

__dir__ = __all__.copy

_MANY = 1 << 13  # values whose sum takes longer than a branch


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Return the integral of values along an axis by the trapezoidal rule.

    Args:
      y: values.
      x: their places; None for equal distances.
      dx: the distance, or an array of distances that broadcasts with the sums of neighbours.
      axis: the axis.

    Returns:
      A floating array without the axis.

    Example:
      >>> import xnp
      >>> xnp.trapezoid(xnp.array([0., 1., 4.]), dx=0.5)
      Array(1.5, dtype=float32)
    """
    if x is None:
        y, step = promoted("trapezoid", *inexact("trapezoid", y), dx)
        step = wide(step)
    else:
        y, x = inexact("trapezoid", y, x)
        x = wide(x)
        step = diff(x) if x.aval.ndim == 1 else diff(moveaxis(x, axis, -1))
    own = y.aval
    if x is None and step.aval.ndim:
        return converted(_trapezoids_of_widths(wide(y), step, axis), own.dtype)
    axis = axis_of(axis, own.ndim, "trapezoid")
    if not step.aval.ndim and own.shape[axis] > 1:
        return converted(_even_trapezoids(wide(y), step, axis), own.dtype)
    y = array_of(moveaxis(wide(y), axis, -1), "trapezoid")
    both = bind("add", read(y, (..., slice(1, None))), read(y, (..., slice(None, -1))))
    step = array_of(step, "trapezoid")
    _check_ranks_of_widths(both, step)
    both, step = broadcast_all("trapezoid", both, step)
    result = bind("mul", summed(bind("mul", both, step), -1), scalar_like(both, 0.5))
    return converted(result, own.dtype)


def _trapezoids_of_widths(y: Any, widths: Any, axis: int) -> Any:
    """Return the sum of trapezoids whose widths are an array, which broadcasts as it stands."""
    axis = axis_of(axis, y.aval.ndim, "trapezoid")
    lead = (slice(None),) * axis
    ends = [read(y, (*lead, part)) for part in (slice(1, None), slice(None, -1))]
    both = bind("add", *ends)
    _check_ranks_of_widths(both, widths)
    both, widths = broadcast_all("trapezoid", both, widths)
    behind = y.aval.ndim - axis  # the widths may have further dimensions in front
    areas = summed(bind("mul", both, widths), -behind)
    return bind("mul", areas, scalar_like(areas, 0.5))


def _check_ranks_of_widths(both: Any, widths: Any) -> None:
    """Hold values and widths to one rank; a single width counts as the number that it is."""
    if widths.aval.shape[-1:] == (1,) and 1 in (widths.aval.ndim, both.aval.ndim):
        return
    check_ranks("trapezoid", both, widths)


def _even_trapezoids(y: Any, step: Any, axis: int) -> Any:
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


complete(globals())

boundaries(globals())
