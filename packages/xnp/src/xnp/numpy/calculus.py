"""Differences, integrals and interpolation: diff, gradient, trapezoid, interp, convolve, unwrap."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, overload

from xnp import lax
from xnp.numpy import dispatch
from xnp.numpy.creation import asarray
from xnp.numpy.dispatch import array_of, axis_of, broadcast_all, cast, convert_to, inexact, wide
from xnp.numpy.indexing import read
from xnp.numpy.reductions import sum as summed
from xnp.numpy.selection import searchsorted
from xnp.numpy.shaping import concatenate, moveaxis
from xnp.primitives.precision import PrecisionLike
from xnp.primitives.table import bind, broadcast_to, reshape, scalar_like, select
from xprim import Array, ConcreteArray, dtypes
from xprim.avals import size_of
from xprim.errors import ArgumentError
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Axis, DTypeLike

__all__ = [
    "convolve", "correlate", "cross", "diff", "ediff1d", "gradient", "interp", "trapezoid",
    "unwrap",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------ trapezoids
# Sums of trapezoids, of which `trapezoid` is made.


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

    Raises:
        TypeError: an operand is not an array.
    """
    if widths.aval.shape[-1:] == (1,) and 1 in (widths.aval.ndim, both.aval.ndim):
        return
    dispatch.check_ranks("trapezoid", y, x)


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


# -------------------------------------------------------------------------------------- calculus
# Differences, integrals and interpolation: diff, gradient, trapezoid, interp, convolve, unwrap.

_FEW = 16  # products that are written out; more are a convolution


def _along(x: Any, axis: int, start: int | None, stop: int | None) -> Array:
    return read(x, (*[slice(None)] * axis, slice(start, stop)))


def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return differences of neighbours along an axis, `n` times; of booleans, whether they differ.

    Args:
      a: an array.
      n: how many times.
      axis: the axis.
      prepend: values to put in front before.
      append: values to put behind before.

    Returns:
      An array that is smaller by `n` along the axis, of the dtype of `a`.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `n` is negative; `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.diff(xnp.array([1, 4, 9, 16]), n=2)
      Array([2, 2], dtype=int32)
    """
    a = array_of(a, "diff")
    require(n >= 0, "diff", "n must not be negative, got {}.", n)
    require(a.aval.ndim, "diff", "takes arrays of one dimension and more.")
    axis = axis_of(axis, a.aval.ndim, "diff")
    if n == 0:
        return a
    ends = [_end_of_diff(value, a, axis) for value in (prepend, append)]
    a = concatenate([*ends[0], a, *ends[1]], axis) if ends != [[], []] else a
    primitive = "ne" if dtypes.is_bool(a.aval.dtype) else "sub"
    size = a.shape[axis]
    for _ in range(min(n, size) if type(size) is int else n):  # then there is no difference left
        a = bind(primitive, _along(a, axis, 1, None), _along(a, axis, None, -1))
    return a


def _end_of_diff(value: Any, a: Array, axis: int) -> list[Array]:
    """Return what is put before or behind the array: a number is broadcast over a slice of it."""
    if value is None:
        return []
    value, shape = dispatch.as_array_like(value, a, "diff"), a.aval.shape
    return [
        value if value.aval.ndim else broadcast_to(value, (*shape[:axis], 1, *shape[axis + 1 :]))
    ]


def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Return differences of neighbours in the flattened array, with values in front and behind.

    Args:
      ary: an array; it is flattened.
      to_end: values to put behind, or None.
      to_begin: values to put in front, or None.

    Returns:
      A vector of the dtype of `ary`.

    Example:
      >>> import xnp
      >>> xnp.ediff1d(xnp.array([1, 4, 9]), to_end=xnp.array([0]))
      Array([3, 5, 0], dtype=int32)
    """
    ary = array_of(ary, "ediff1d")
    require(
        not dtypes.is_bool(ary.aval.dtype), "ediff1d", "takes numbers, got booleans.",
        hint="diff takes them", error=TypeError,
    )  # fmt: skip
    flat = reshape(ary, (ary.aval.size,))
    parts = [diff(flat)]
    for value, place in ((to_begin, 0), (to_end, 2)):
        if value is not None:
            value = cast(asarray(value), ary.aval.dtype)
            parts.insert(place, reshape(value, (value.aval.size,)))
    return concatenate(parts)


@overload
def gradient(f: ArrayLike, *varargs: Any, axis: int, edge_order: int | None = ...) -> Array: ...
@overload
def gradient(
    f: ArrayLike, *varargs: Any, axis: Sequence[int], edge_order: int | None = ...
) -> list[Array]: ...
@overload
def gradient(
    f: ArrayLike, *varargs: Any, axis: None = ..., edge_order: int | None = ...
) -> Any: ...
def gradient(
    f: ArrayLike, *varargs: Any, axis: Axis = None, edge_order: int | None = None
) -> Array | list[Array]:
    """Return derivatives by central differences inside, one-sided ones at the ends.

    Args:
      f: values on a grid.
      *varargs: the distance of grid points, one for all axes or one for each; or coordinates.
      axis: the axes; None for all.
      edge_order: 1 for differences of two elements at the ends, 2 for parabolas through three.

    Returns:
      An array for one axis, else a list of them.

    Raises:
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.gradient(xnp.array([0., 1., 4., 9.]))
      Array([1., 2., 4., 5.], dtype=float32)
    """
    order = 1 if edge_order is None else size_of(edge_order)
    require(order in (1, 2), "gradient", "edge_order must be 1 or 2, got {!r}.", edge_order)
    (f,) = inexact("gradient", f)
    axes = dispatch.axes_of(axis, f.aval.ndim, "gradient")
    require(
        len(varargs) in (0, 1, len(axes)), "gradient", "{} distances do not go with {} axes.",
        len(varargs), len(axes), error=TypeError,
    )  # fmt: skip
    steps = list(varargs) * len(axes) if len(varargs) == 1 else list(varargs) or [1.0] * len(axes)
    results = [_slope(f, d, h, order) for d, h in zip(axes, steps, strict=True)]
    return results[0] if len(axes) == 1 else results


def _slope(f: Any, d: int, step: Any, order: int) -> Array:
    size = f.aval.shape[d]
    if size <= order:
        raise ValueError(f"gradient: axis {d} must have {order + 1} elements at least, got {size}.")
    h = cast(array_of(step, "gradient"), f.aval.dtype)
    if h.aval.ndim:
        return _slope_of_coordinates(f, d, h, order)
    ahead, behind = (
        diff(_along(f, d, 0, order + 1), axis=d),
        diff(_along(f, d, -1 - order, None), axis=d),
    )
    first, last = _along(ahead, d, 0, 1), _along(behind, d, order - 1, order)
    if order == 2:
        first = _at_end(first, _along(ahead, d, 1, 2), 0.5)
        last = _at_end(last, _along(behind, d, 0, 1), 0.5)
    middle = bind("mul", bind("sub", _along(f, d, 2, None), _along(f, d, None, -2)),
                  scalar_like(f, 0.5))  # fmt: skip
    return bind("div", bind("concatenate", first, middle, last, dimension=d), h)


def _at_end(near: Any, far: Any, share: Any) -> Array:
    """Return the derivative of a parabola at its end, from the two derivatives next to it.

    Args:
      near: the derivative of the line through the end and its neighbour.
      far: the derivative of the line through the next two points.
      share: the distance that `near` spans, as a part of the sum of both.
    """
    result: Array = near + share * (near - far)
    return result


def _slope_of_coordinates(f: Any, d: int, x: Any, order: int) -> Array:
    """Return the derivative of the parabola through three neighbours."""
    rank = f.aval.ndim
    h = diff(x)
    shape = tuple([-1 if i == d else 1 for i in range(rank)])
    h = h.reshape(shape)
    low, high = _along(h, d, None, -1), _along(h, d, 1, None)
    before, here, after = _along(f, d, None, -2), _along(f, d, 1, -1), _along(f, d, 2, None)
    total = low + high
    middle = (before * (-high / (low * total)) + here * ((high - low) / (low * high))
              + after * (low / (high * total)))  # fmt: skip
    quotients, size = diff(f, axis=d) / h, h.shape[d]
    first, last = _along(quotients, d, 0, 1), _along(quotients, d, size - 1, size)
    if order == 2:
        share = _along(h, d, 0, 1) / _along(total, d, 0, 1)
        first = _at_end(first, _along(quotients, d, 1, 2), share)
        share = _along(h, d, size - 1, size) / _along(total, d, size - 2, size - 1)
        last = _at_end(last, _along(quotients, d, size - 2, size - 1), share)
    return concatenate([first, middle, last], d)


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Return the integral of values along an axis by the trapezoidal rule.

    Integers become floats first, where NumPy's differences of small ones wrap around.

    Args:
      y: values.
      x: their places; None for equal distances.
      dx: the distance, or an array of distances that broadcasts with the sums of neighbours.
      axis: the axis.

    Returns:
      A floating array without the axis.

    Raises:
        TypeError: an operand is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.trapezoid(xnp.array([0., 1., 4.]), dx=0.5)
      Array(1.5, dtype=float32)
    """
    if x is None:
        y, step = dispatch.promote("trapezoid", *inexact("trapezoid", y), dx)
        step = wide(step)
    else:
        y, x = inexact("trapezoid", y, x)
        x = wide(x)
        step = diff(x) if x.aval.ndim == 1 else diff(moveaxis(x, axis, -1))
    own, given = y.aval, (y, step if x is None else x)
    if x is None and step.aval.ndim:
        return convert_to(trapezoids_of_widths(wide(y), step, axis), own.dtype)
    axis = axis_of(axis, own.ndim, "trapezoid")
    if not step.aval.ndim and own.shape[axis] > 1:
        return convert_to(even_trapezoids(wide(y), step, axis), own.dtype)
    y = array_of(moveaxis(wide(y), axis, -1), "trapezoid")
    both = bind("add", read(y, (..., slice(1, None))), read(y, (..., slice(None, -1))))
    step = array_of(step, "trapezoid")
    check_ranks_of_widths(both, step, *given)
    both, step = broadcast_all("trapezoid", both, step)
    result = bind("mul", summed(bind("mul", both, step), -1), scalar_like(both, 0.5))
    return convert_to(result, own.dtype)


def interp(
    x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None, period: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return values of the piecewise linear function through points.

    Args:
      x: where to evaluate.
      xp: places of the points, ascending (of any order with `period`).
      fp: values at the points.
      left: the value before the first point; None for the first, "extrapolate" for a line. An
        array broadcasts with `x`.
      right: the value behind the last point; None for the last, "extrapolate" for a line.
      period: after which the function repeats; of either sign.

    Returns:
      A floating array of the shape of `x`, and of what it broadcasts with. That the places ascend
      is not checked.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import xnp
      >>> xnp.interp(xnp.array([0.5, 9.0]), xnp.array([0., 1., 2.]), xnp.array([0., 10., 40.]))
      Array([ 5., 40.], dtype=float32)
    """
    x, xp = _real_places(*inexact("interp", x, xp))
    fp, _ = inexact("interp", *inexact("interp", fp), x)  # integers become floats without a warning
    require(
        xp.aval.ndim == 1 and xp.aval.shape == fp.aval.shape, "interp",
        "xp and fp must be one-dimensional arrays of equal size, got {} and {}.", xp, fp,
    )  # fmt: skip
    size = xp.aval.shape[0]
    if not size:
        require(not x.aval.size, "interp", "xp and fp have no points to interpolate between.")
        return cast(x, fp.aval.dtype)
    if period is not None:
        x, xp, fp = _one_period(x, xp, fp, period)
        size += 2  # a point of the period before, and of that after
    place = searchsorted(xp, x, side="right").clip(1, max(size - 1, 1))
    x0, x1 = read(xp, place - 1), read(xp, place)
    f0, f1 = read(fp, place - 1), read(fp, place)
    width = bind("sub", x1, x0)
    # the slope of a width below the normal numbers would be infinite, and so NaN where values agree
    least = float(dtypes.finfo(width.aval.dtype).smallest_normal)
    flat = bind("lt", bind("abs", width), scalar_like(width, least))
    share = cast(bind("div", bind("sub", x, x0), select(flat, scalar_like(width, 1), width)),
                 f0.aval.dtype)  # fmt: skip
    result = select(flat, f0, bind("add", f0, bind("mul", share, bind("sub", f1, f0))))
    if period is not None:
        return result
    for value, end, is_beyond in ((left, 0, "lt"), (right, size - 1, "gt")):
        result = _with_value_beyond(result, x, xp, fp, value, end, is_beyond)
    return result


def _with_value_beyond(
    result: Array, x: Array, xp: Array, fp: Array, value: Any, end: int, is_beyond: str
) -> Array:
    """Return the results with a value where x is beyond an end of the points."""
    if isinstance(value, str):
        require(
            value == "extrapolate", "interp",
            "the only valid string value of `{}` is 'extrapolate', but got: {!r}.",
            "left" if is_beyond == "lt" else "right", value,
        )  # fmt: skip
        return result
    outer = read(fp, end) if value is None else array_of(value, "interp")
    if dtypes.is_complex(outer.aval.dtype):
        outer, result = dispatch.promote("interp", outer, result)
    outer = cast(outer, result.aval.dtype)
    beyond = bind(is_beyond, x, broadcast_to(read(xp, end), x.aval.shape))
    return dispatch.choose("interp", beyond, outer, result)


def _real_places(x: Any, xp: Any) -> tuple[Array, Array]:
    require(
        not dtypes.is_complex(x.aval.dtype), "interp",
        "complex x values not supported: x and xp must be real.",
        error=ArgumentError,
    )  # fmt: skip
    return x, xp


def _one_period(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Array, Array, Array]:
    period = cast(array_of(period, "interp"), x.aval.dtype)
    require(not period.aval.ndim, "interp", "period must be a scalar; got {}.", period)
    require(
        not isinstance(period, ConcreteArray) or period.to_host(), "interp",
        "period must not be 0.",
    )  # fmt: skip
    period = bind("abs", period)
    x, xp = asarray(x) % period, asarray(xp) % period
    order = xp.argsort()
    xp, fp = xp[order], asarray(fp)[order]
    xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return x, xp, concatenate([fp[-1:], fp, fp[:1]])


def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi
) -> Array:
    """Return angles with multiples of the period added, so that neighbours are near each other.

    Integers become floats first, where NumPy's differences of small ones wrap around.

    Args:
      p: angles, or other values that count up to whole periods.
      discont: the least jump that is taken for one of a period; None, and all below half a period,
        mean half a period.
      axis: the axis along which neighbours lie.
      period: the period; an integer keeps integers.

    Returns:
      An array of the shape of `p`, floating, but of integers with an integer period.

    Raises:
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.unwrap(xnp.array([0, 3, 1, 3]), period=4)
      Array([ 0, -1, -3, -1], dtype=int32)
    """
    p = array_of(p, "unwrap")
    if not dtypes.is_inexact(p.aval.dtype) and not isinstance(period, int):
        p = cast(p, dtypes.python_scalar_dtype(float))
    axis = axis_of(axis, p.aval.ndim, "unwrap")
    step = diff(p, axis=axis)
    period = cast(array_of(period, "unwrap"), p.aval.dtype)
    half = period / 2 if dtypes.is_inexact(p.aval.dtype) else period // 2
    moved = (step + half) % period - half
    boundary = (moved == -half) & (step > 0)
    moved = select(boundary, broadcast_to(half, moved.shape), moved)
    correction = moved - step
    limit = half if discont is None else discont
    small = abs(step) < limit
    correction = select(array_of(small, "unwrap"), scalar_like(correction, 0), correction)
    rest = array_of(_along(p, axis, 1, None) + correction.cumsum(axis), "unwrap")
    return concatenate([_along(p, axis, 0, 1), rest], axis)


def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1,
    axis: int | None = None,
) -> Array:  # fmt: skip
    """Return the vector products of vectors of three (or two) elements along an axis.

    Args:
      a: an array of vectors.
      b: an array of vectors; the other dimensions of the two broadcast.
      axisa: the dimension of the vectors of `a`.
      axisb: the dimension of the vectors of `b`.
      axisc: the dimension of the vectors of the result.
      axis: one dimension for all three, which then stands for them.

    Returns:
      An array of vectors of three elements; of two vectors of two elements each, the third
      component alone.

    Raises:
        TypeError: an operand is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.cross(xnp.array([1, 0, 0]), xnp.array([0, 1, 0]))
      Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = size_of(axis)
    a, b = dispatch.promote("cross", a, b)
    dispatch.check_ranks("cross", a, b, core=(1, 1))
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    sizes = a.shape[-1], b.shape[-1]
    if not {*sizes} <= {2, 3}:
        raise ValueError(
            f"cross: vectors must have 2 or 3 elements, got {sizes[0]} and {sizes[1]}."
        )
    a1, a2, b1, b2 = a[..., 0], a[..., 1], b[..., 0], b[..., 1]
    third = a1 * b2 - a2 * b1
    if sizes == (2, 2):
        return third
    zero = scalar_like(a, 0)
    a3 = a[..., 2] if sizes[0] == 3 else broadcast_to(zero, a1.shape)
    b3 = b[..., 2] if sizes[1] == 3 else broadcast_to(zero, b1.shape)
    parts = broadcast_all("cross", a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, third)
    # in front, where each is written in one piece; beside each other they are written in threes
    joined = bind("concatenate", *[reshape(v, (1, *v.aval.shape)) for v in parts], dimension=0)
    return moveaxis(joined, 0, axisc)


# --- convolution ----------------------------------------------------------------------------------


def _convolve(operation: str, a: Any, v: Any, mode: str, precision: Any, preferred: Any) -> Array:
    """Sum products of `a` with `v` running backwards."""
    a, v = inexact(operation, a, v)
    _check_vectors(operation, a, v)
    require(
        mode in ("full", "same", "valid"), operation,
        "mode must be one of ['full', 'same', 'valid'], got {!r}.", mode,
    )  # fmt: skip
    if a.aval.size < v.aval.size:
        a, v = v, a
    m = v.aval.size
    low, high = {"full": (m - 1, m - 1), "valid": (0, 0),
                 "same": (m - 1 - (m - 1) // 2, (m - 1) // 2)}[mode]  # fmt: skip
    backwards = bind("rev", v, dimensions=(0,))
    add_up = _windows_times if m > _FEW else _shift_products
    result = add_up(a, backwards, (low, high), precision)
    return result if preferred is None else cast(result, dtypes.requested_dtype(preferred))


def _shift_products(a: Any, kernel: Any, padding: tuple[int, int], precision: Any) -> Any:
    """Add a vector times each element of a kernel, moved: no element meets one beyond the ends."""
    del precision  # of no product of matrices
    return _move_and_add(a, kernel, padding)


@dispatch.dispatch_on(2)
def _move_and_add(a: Any, kernel: Any, padding: tuple[int, int]) -> Any:
    low, high = padding
    zero, last = scalar_like(a, 0), kernel.aval.size - 1
    terms = []
    for k in range(last + 1):
        ends = (low - k, high - last + k, 0)  # a negative one takes away
        product = bind("mul", a, read(kernel, k))
        terms.append(bind("pad", product, zero, padding_config=(ends,)))
    return functools.reduce(lambda total, term: bind("add", total, term), terms)


def _windows_times(a: Any, kernel: Any, padding: tuple[int, int], precision: Any) -> Any:
    """Multiply every window of a padded vector by a kernel: a convolution of one feature.

    An infinity of the kernel, which is the shorter one, times the padding is NaN.
    """
    x, y = [reshape(v, (1, 1, v.aval.size)) for v in (a, kernel)]
    result = lax.conv_general_dilated(x, y, (1,), [padding], precision=precision)
    return reshape(result, (result.aval.size,))


def _check_vectors(operation: str, a: Array, v: Array) -> None:
    require(a.aval.ndim == 1 and v.aval.ndim == 1, operation, "takes vectors, got {} and {}.", a, v)
    require(a.aval.size and v.aval.size, operation, "the vectors must not be empty.")


def convolve(
    a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Array:  # fmt: skip
    """Return the convolution of two vectors: sums of a[k] v[n - k].

    Where both have more than 16 elements, infinities of the shorter one give NaN towards the ends:
    XLA multiplies them with the zeros beyond.

    Booleans are counted as floats, where NumPy's products and sums of them are booleans.

    Args:
        a: a vector.
        v: a vector.
        mode: "full" for all sums, "same" for as many as the longer vector has
            elements, "valid" for those where the two overlap in full.
        precision: how exactly hardware with a choice computes.
        preferred_element_type: the dtype of the result; None for the one that the
            vectors promote to.

    Returns:
        A vector. Integers are summed in their own dtype.

    Raises:
        TypeError: an operand is not an array; `preferred_element_type` names no dtype.
        ValueError: unknown `mode`.

    Example:
        >>> import xnp
        >>> xnp.convolve(xnp.array([1, 2, 3]), xnp.array([0, 1]))
        Array([0., 1., 2., 3.], dtype=float32)
    """
    return _convolve("convolve", a, v, mode, precision, preferred_element_type)


def correlate(
    a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Array:  # fmt: skip
    """Return the correlation of two vectors: sums of a[n + k] conj(v[k]). See `convolve`.

    Booleans are counted as floats, where NumPy's products and sums of them are booleans.

    Args:
        a: a vector.
        v: a vector.
        mode: "full" for all sums, "same" for as many as the longer vector has
            elements, "valid" for those where the two overlap in full.
        precision: how exactly hardware with a choice computes.
        preferred_element_type: the dtype of the result; None for the one that the
            vectors promote to.

    Returns:
        A vector. Integers are summed in their own dtype.

    Raises:
        TypeError: an operand is not an array; `preferred_element_type` names no dtype.
        ValueError: unknown `mode`.

    Example:
        >>> import xnp
        >>> xnp.correlate(xnp.array([1, 2, 3]), xnp.array([0, 1]), mode="full")
        Array([1., 2., 3., 0.], dtype=float32)
    """
    v = asarray(v)
    backwards = bind("rev", v.conj(), dimensions=(0,))
    if mode == "same" and asarray(a).shape[0] < v.shape[0]:
        full = convolve(a, backwards, "full", precision=precision)
        n, m = v.shape[0], asarray(a).shape[0]
        start = m // 2
        return full[start : start + n]
    return convolve(a, backwards, mode, precision=precision,
                    preferred_element_type=preferred_element_type)  # fmt: skip


boundaries(globals())
