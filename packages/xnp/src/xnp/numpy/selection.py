"""Choosing elements by conditions: where, select, clip, nonzero, piecewise, compress, ...

`nonzero` and its kin have results whose size depends on values; under tracing they need `size=`.
Neighbours: `logic` makes conditions, `indexing` reads positions,
`replacement` writes at them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from xnp.docstrings import complete
from xnp.numpy.creation import array, asarray, counting
from xnp.numpy.dispatch import dispatched
from xnp.numpy.indexing import no_out, read
from xnp.numpy.logic import truth_of
from xnp.numpy.promoting import (
    apart,
    array_of,
    axis_of,
    bind,
    broadcast,
    broadcast_all,
    broadcasted,
    cast,
    check_ranks,
    elements_now,
    filled,
    promoted,
    reshaped,
    scalar_like,
    selected as chosen,
)
from xnp.numpy.shaping import broadcast_arrays
from xnp.primitives.table import NATIVE, REAL
from xprim import Array, ConcreteArray, dtypes, from_numpy, promotion, shaped_array
from xprim.array import check_numbers
from xprim.errors import ArgumentError, ConcretizationTypeError, message
from xprim.sizes import size_of
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Arrays

__all__ = [
    "argwhere", "choose", "clip", "compress", "extract", "flatnonzero", "nonzero", "piecewise",
    "select", "where",
]  # fmt: skip

__dir__ = __all__.copy


@dispatched(3)
def _where(condition: Any, x: Any, y: Any) -> Array:
    mask = truth_of(condition, "where")
    x, y = promoted("where", x, y)
    if mask.aval.ndim and (x.aval.shape not in ((), mask.aval.shape)
                           or y.aval.shape not in ((), mask.aval.shape)):  # fmt: skip
        mask, x, y = broadcast_all("where", mask, x, y)
    elif not mask.aval.ndim and x.aval.shape != y.aval.shape:
        x, y = broadcast_all("where", x, y)
    return chosen(mask, x, y)


@overload
def where(
    condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *,
    size: int | None = None, fill_value: ArrayLike | None = None,
) -> Array: ...  # fmt: skip
@overload
def where(
    condition: ArrayLike, x: None = None, y: None = None, /, *,
    size: int | None = None, fill_value: ArrayLike | None = None,
) -> tuple[Array, ...]: ...  # fmt: skip
def where(
    condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /, *,
    size: int | None = None, fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, ...]:  # fmt: skip
    """Return elements of `x` where the condition holds, of `y` elsewhere.

    Args:
      condition: an array; anything but zero holds.
      x: an array; without `x` and `y`, this is `nonzero(condition)`.
      y: an array; the three broadcast.
      size: as of `nonzero`, without `x` and `y` only.
      fill_value: as of `nonzero`, without `x` and `y` only.

    Returns:
      An array of the shape that the three have in common, of the dtype that `x` and `y` promote to;
      without them, as of `nonzero`.

    Example:
      >>> import xnp
      >>> xnp.where(xnp.array([True, False]), 1., 2.)
      Array([1., 2.], dtype=float32, weak_type=True)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("where: give both x and y, or neither.")
    if size is not None or fill_value is not None:
        raise ValueError("where: size= and fill_value= are for where(condition) alone.")
    return _where(condition, x, y)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: ArrayLike = 0) -> Array:
    """Return elements of the first choice whose condition holds, else the default.

    Args:
      condlist: a sequence of boolean arrays.
      choicelist: a sequence of as many arrays; all broadcast with the conditions.
      default: what stands where no condition holds.

    Returns:
      An array of the dtype that the choices and the default promote to.

    Example:
      >>> import xnp
      >>> xnp.select([xnp.array([True, False])], [xnp.array([1, 2])], 9)
      Array([1, 9], dtype=int32)
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(
            f"select: needs one choice for each condition, got {len(condlist)} and "
            f"{len(choicelist)}."
        )
    *choices, result = promoted("select", *choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = where(condition, choice, result)
    return result


@dispatched(3)
def _clip_both(x: Any, low: Any, high: Any) -> Array:
    return _least(_greatest(x, low), high)


@dispatched(2)
def _greatest(x: Any, low: Any) -> Array:
    return bind("max", *broadcast("clip", *promoted("clip", low, x)))


@dispatched(2)
def _least(x: Any, high: Any) -> Array:
    return bind("min", *broadcast("clip", *promoted("clip", high, x)))


def clip(
    arr: ArrayLike | None = None,
    /,
    min: ArrayLike | None = None,  # noqa: A002 - NumPy's names
    max: ArrayLike | None = None,  # noqa: A002
    *,
    a: ArrayLike | None = None,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
) -> Array:
    """Return elements moved into the interval from `min` to `max`.

    Args:
      arr: a real array.
      min: the lower bound, or None.
      max: the upper bound, or None; where it is below `min`, it wins.
      a: another name of `arr`.
      a_min: another name of `min`.
      a_max: another name of `max`.

    Returns:
      An array of the shape that the array and the bounds have in common, of the dtype that they
      promote to.

    Example:
      >>> import xnp
      >>> xnp.clip(xnp.array([-1, 2, 9]), 0, 5)
      Array([0, 2, 5], dtype=int32)
    """
    low, high = a_min if min is None else min, a_max if max is None else max
    x = _clippable(a if arr is None else arr, low, high)
    if low is None and high is None:
        return apart(x, arr, a)  # type: ignore[no-any-return]
    if low is None:
        return _least(x, high)
    if high is None:
        return _greatest(x, low)
    at_once = _large_clipped(x, low, high) if x.size >= _LARGE else None
    return _clip_both(x, low, high) if at_once is None else at_once


def _clippable(x: Any, *bounds: Any) -> Array:
    if x is None:
        raise ArgumentError("clip: there is no array to clip: it is the first argument.")
    operand = asarray(x)
    check_numbers(operand.aval, "clip")
    if dtypes.is_complex(promotion.result_type(operand, *[b for b in bounds if b is not None])):
        raise ValueError("clip: complex numbers have no order.")
    return operand


_LARGE = 1 << 14  # elements: where a pass over memory costs more than to promote


def _large_clipped(x: Any, low: Any, high: Any) -> Array | None:
    """Clip by numbers with NumPy's own loop, which is one pass; None for other operands."""
    x, low, high = promoted("clip", x, low, high)
    hosts = elements_now(x, low, high)
    aval = x.aval
    if hosts is None or low.aval.shape or high.aval.shape or aval.dtype not in NATIVE & REAL:
        return None
    weak_type = aval.weak_type and low.aval.weak_type and high.aval.weak_type
    return ConcreteArray(np.clip(*hosts), shaped_array(aval.shape, aval.dtype, weak_type))


# --- positions of true elements -------------------------------------------------------------------


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> tuple[Array, ...]:
    """Return the positions of the elements that are not zero, an array for each dimension.

    Args:
      a: an array of one dimension at least.
      size: how many positions to return, which a traced `a` needs: surplus ones are left out,
        missing ones are `fill_value`.
      fill_value: a number, or one for each dimension; None for 0.

    Returns:
      A tuple of vectors of the default integer dtype, one for each dimension.

    Raises:
      ConcretizationTypeError: for a traced `a` without `size`.

    Example:
      >>> import xnp
      >>> xnp.nonzero(xnp.array([0, 3, 0, 4]))
      (Array([1, 3], dtype=int32),)
    """
    mask = truth_of(a, "nonzero")
    if not mask.aval.ndim:
        raise ValueError(message(
            "nonzero", "takes arrays of one dimension and more.",
            hint="xnp.atleast_1d(x).nonzero()",
        ))  # fmt: skip
    if isinstance(mask, ConcreteArray) and size is None:
        found = np.nonzero(mask.to_host())
        dtype = dtypes.python_scalar_dtype(int)
        return tuple([from_numpy(p.astype(dtype), copy=False) for p in found])
    if size is None:
        raise ConcretizationTypeError(
            mask,
            "nonzero",
            "the size of the result depends on traced values.",
            "give size=, the number of positions to return; xnp.where(mask, x, y) needs none",
        )
    return _nonzero_of_size(mask, size_of(size), fill_value)


def _nonzero_of_size(mask: Any, size: int, fill_value: Any) -> tuple[Array, ...]:
    shape, count = mask.aval.shape, mask.aval.size
    dtype = dtypes.python_scalar_dtype(int)
    fills = fill_value if isinstance(fill_value, tuple | list) else (fill_value,) * len(shape)
    if len(fills) != len(shape):
        raise ValueError(message(
            "nonzero", "fill_value has another length than the array has dimensions.",
            got=f"fill_value: {fill_value!r}, x: {mask.aval.str_long()}",
            expected=f"a number, or {len(shape)} of them",
        ))  # fmt: skip
    fill_arrays = [cast(array_of(0 if f is None else f, "nonzero"), dtype) for f in fills]
    if not count or not size:
        return tuple([broadcasted(f, (size,)) for f in fill_arrays])
    flat = cast(reshaped(mask, (count,)), dtype)
    ends = bind("cumsum", flat, axis=0, reverse=False)
    # position k of the result holds how many elements come before the (k+1)-th true one
    counts = bind("min", bind("sub", ends, scalar_like(ends, 0)), scalar_like(ends, size))
    places = array_of(filled((size,), 0, dtype).at[counts].add(
        filled((count,), 1, dtype), mode="drop"), "nonzero")  # fmt: skip
    places = bind("cumsum", places, axis=0, reverse=False)
    total = read(ends, -1)
    valid = bind("lt", counting((size,), 0, dtype), total)
    results = []
    for d, n in enumerate(shape):
        stride = math.prod(shape[d + 1 :])
        along = bind("rem", bind("div", places, scalar_like(places, stride)),
                     scalar_like(places, n))  # fmt: skip
        results.append(chosen(valid, along, fill_arrays[d]))
    return tuple(results)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the positions of the elements that are not zero in the flattened array.

    Args:
      a: an array.
      size: how many positions to return, which a traced `a` needs: surplus ones are left out,
        missing ones are `fill_value`.
      fill_value: a number; None for 0.

    Returns:
      A vector of integers.

    Example:
      >>> import xnp
      >>> xnp.flatnonzero(xnp.array([0, 3, 0, 4]))
      Array([1, 3], dtype=int32)
    """
    a = array_of(a, "flatnonzero")
    return nonzero(reshaped(a, (a.aval.size,)), size=size, fill_value=fill_value)[0]


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the positions of the elements that are not zero, one in each row.

    Args:
      a: an array.
      size: how many rows to return, which a traced `a` needs: surplus ones are left out, missing
        ones are `fill_value`.
      fill_value: a number, or one for each column; None for 0.

    Returns:
      A matrix of integers with a column for each dimension of `a`.

    Example:
      >>> import xnp
      >>> xnp.argwhere(xnp.array([[0, 1], [1, 0]]))
      Array([[0, 1],
             [1, 0]], dtype=int32)
    """
    a = array_of(a, "argwhere")
    if not a.aval.ndim:
        found = nonzero(reshaped(a, (1,)), size=size, fill_value=fill_value)[0]
        return filled((found.shape[0], 0), 0, found.dtype)
    columns = nonzero(a, size=size, fill_value=fill_value)
    count = columns[0].shape[0]
    return bind("concatenate", *[reshaped(c, (count, 1)) for c in columns], dimension=1)


def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """Return the elements of `arr` where the condition holds, in one dimension.

    Args:
      condition: an array; what is not 0 holds.
      arr: an array of as many elements.
      size: how many elements to return, which a traced condition needs.
      fill_value: what stands for missing elements.

    Returns:
      A vector of the dtype of `arr`.

    Example:
      >>> import xnp
      >>> xnp.extract(xnp.array([True, False, True]), xnp.array([1, 2, 3]))
      Array([1, 3], dtype=int32)
    """
    return compress(reshaped_flat(condition), arr, size=size, fill_value=fill_value)


def reshaped_flat(x: Any) -> Any:
    """Return the elements of `x` in one dimension."""
    x = array_of(x, "ravel") if not isinstance(x, list | tuple) else array(x)
    return reshaped(x, (x.aval.size,))


def compress(
    condition: ArrayLike | Sequence[bool], a: ArrayLike, axis: int | None = None,
    out: None = None, *,
    size: int | None = None, fill_value: ArrayLike = 0,
) -> Array:  # fmt: skip
    """Return the parts of `a` along an axis for which the condition holds.

    Args:
      condition: booleans in one dimension, not more than `a` has along the axis.
      a: an array.
      axis: the axis; None takes from the flattened array.
      out: not supported, must be None.
      size: how many parts to return, which a traced condition needs.
      fill_value: what missing parts hold.

    Returns:
      An array of the dtype of `a`.

    Example:
      >>> import xnp
      >>> xnp.compress(xnp.array([True, False, True]), xnp.array([1, 2, 3]))
      Array([1, 3], dtype=int32)
    """
    no_out("compress", out)
    mask, a = truth_of(array(condition) if isinstance(condition, list) else condition,
                       "compress"), array_of(a, "compress")  # fmt: skip
    if mask.aval.ndim != 1:
        raise ValueError(f"compress: the condition must have one dimension, got {mask.aval.ndim}.")
    if axis is None:
        a, axis = reshaped(a, (a.aval.size,)), 0
    axis = axis_of(axis, a.aval.ndim, "compress")
    length = a.aval.shape[axis]
    beyond = length + 1
    if isinstance(mask, ConcreteArray) and mask.to_host()[length:].any():
        raise IndexError(
            f"compress: the condition holds beyond the {length} elements along the axis."
        )
    (places,) = nonzero(mask, size=size, fill_value=beyond) if size is not None else nonzero(mask)
    lead = (slice(None),) * axis
    if size is None:
        return read(a, (*lead, places))
    return read(a, (*lead, places), mode="fill", fill_value=fill_value)


# --- choices --------------------------------------------------------------------------------------


def piecewise(
    x: ArrayLike,
    condlist: Arrays,
    funclist: Sequence[Any],
    *args: Any,
    **kw: Any,
) -> Array:
    """Return for each element what the function of the last condition that holds gives.

    Args:
      x: an array.
      condlist: masks of the shape of `x`, or a vector of one truth value a function.
      funclist: functions of `x`, or numbers; one more than conditions gives the default.
      *args: passed to the functions.
      **kw: passed to the functions.

    Returns:
      An array of the shape and dtype of `x`; 0 where no condition holds. Each function is called
      with all elements, where NumPy hands it those of its condition.

    Example:
      >>> import xnp
      >>> x = xnp.array([-1., 2.])
      >>> xnp.piecewise(x, [x < 0], [lambda v: -v, lambda v: v * v])
      Array([1., 4.], dtype=float32)
    """
    x = array_of(x, "piecewise")
    if not isinstance(condlist, list | tuple):
        masks = array_of(condlist, "piecewise")
        shape = masks.aval.shape
        is_one = not shape or (shape == x.aval.shape and len(funclist) <= 2)
        condlist = [masks] if is_one else list(masks)
    count = len(condlist)
    if len(funclist) == count:
        funclist = [*funclist, 0]
    elif len(funclist) != count + 1:
        raise ValueError(
            f"piecewise: {count} conditions need {count} or {count + 1} functions, got "
            f"{len(funclist)}."
        )
    values = [
        cast(array_of(f(x, *args, **kw) if callable(f) else f, "piecewise"), x.aval.dtype)
        for f in funclist
    ]
    check_ranks("piecewise", x, *[array_of(c, "piecewise") for c in condlist])
    result = values[-1]
    for condition, value in zip(condlist, values[:-1], strict=True):
        result = where(condition, value, result)
    return broadcasted(result, x.aval.shape)


def choose(
    a: ArrayLike, choices: Sequence[ArrayLike] | Array, out: None = None, mode: str = "raise"
) -> Array:
    """Return elements of the choices by their number in `a`.

    Args:
      a: integers.
      choices: arrays that broadcast with `a`.
      out: not supported, must be None.
      mode: for numbers that have no choice: "wrap", "clip", or "raise" (of concrete values only).

    Returns:
      An array of the shape that `a` and the choices have in common.

    Example:
      >>> import xnp
      >>> xnp.choose(xnp.array([0, 1, 0]), [xnp.array([1, 2, 3]), xnp.array([10, 20, 30])])
      Array([ 1, 20,  3], dtype=int32)
    """
    no_out("choose", out)
    which = array_of(a, "choose")
    if not dtypes.is_integer(which.aval.dtype):
        raise ValueError(f"choose: takes integers, got {which.aval.str_long()}.")
    count = len(choices)
    if mode == "raise":
        if not isinstance(which, ConcreteArray):
            raise ConcretizationTypeError(
                which, "choose", "mode 'raise' looks at values; use 'wrap' or 'clip'."
            )
        host = which.to_host()
        if host.size and not (host.min() >= 0 and host.max() < count):
            raise ValueError(f"choose: a number in a has no choice among {count}.")
    elif mode == "wrap":
        which = which % count
    elif mode == "clip":
        which = clip(which, 0, count - 1)
    else:
        raise ValueError(f"choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}.")
    which, *arrays = broadcast_arrays(which, *promoted("choose", *choices))
    return bind("select_n", cast(which, dtypes.int32), *arrays)


complete(globals())
boundaries(globals())
