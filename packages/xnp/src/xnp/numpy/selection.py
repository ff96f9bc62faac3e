"""Choosing, replacing and ordering elements: where, clip, nonzero, put, sort, argsort, ..."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

import xprim
from xnp.numpy import dispatch
from xnp.numpy.creation import array, asarray, counting
from xnp.numpy.dispatch import array_of, axis_of, broadcast, cast, check_ranks, dispatch_on, promote
from xnp.numpy.index_update import check_kind
from xnp.numpy.indexing import no_out, read, take_along_axis
from xnp.numpy.logic import truth_of
from xnp.numpy.rearranging import resize
from xnp.numpy.shaping import broadcast_arrays
from xnp.primitives import table
from xnp.primitives.index_modes import CLIP, GatherDimensionNumbers
from xnp.primitives.table import (
    NATIVE,
    REAL,
    bind,
    broadcast_to,
    fill,
    reshape,
    scalar_like,
    select as chosen,
)
from xprim import (
    Array,
    ConcreteArray,
    Tracer,
    config,
    dtypes,
    from_numpy,
    get_primitive,
    promotion,
    scalar_array,
)  # fmt: skip
from xprim.array import check_numbers
from xprim.avals import size_of
from xprim.errors import ArgumentError, ConcretizationTypeError, message
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Arrays, DTypeLike

__all__ = [
    "argwhere", "choose", "clip", "compress", "extract", "flatnonzero", "nonzero", "piecewise",
    "select", "where", "fill_diagonal", "place", "put", "put_along_axis", "argpartition",
    "argsort", "digitize", "lexsort", "partition", "searchsorted", "sort", "sort_complex",
    "top_k",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------- selection
# Choosing elements by conditions: where, select, clip, nonzero, piecewise, compress, ...
#
# `nonzero` and its kin have results whose size depends on values; under tracing they need
# `size=`.


@dispatch_on(3)
def _where(condition: Any, x: Any, y: Any) -> Array:
    mask = truth_of(condition, "where")
    x, y = promote("where", x, y)
    if mask.aval.ndim and (x.aval.shape not in ((), mask.aval.shape)
                           or y.aval.shape not in ((), mask.aval.shape)):  # fmt: skip
        mask, x, y = dispatch.broadcast_all("where", mask, x, y)
    elif not mask.aval.ndim and x.aval.shape != y.aval.shape:
        x, y = dispatch.broadcast_all("where", x, y)
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

    Raises:
        TypeError: an operand is not an array.
        ValueError: `size` is negative.

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
    *choices, result = promote("select", *choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = where(condition, choice, result)
    return result


@dispatch_on(3)
def _clip_both(x: Any, low: Any, high: Any) -> Array:
    return _least(_greatest(x, low), high)


@dispatch_on(2)
def _greatest(x: Any, low: Any) -> Array:
    return bind("max", *broadcast("clip", *promote("clip", low, x)))


@dispatch_on(2)
def _least(x: Any, high: Any) -> Array:
    return bind("min", *broadcast("clip", *promote("clip", high, x)))


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

    Complex numbers have no order and raise an error; NumPy compares real parts first.
    NumPy's takes `out` as well.

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

    Raises:
        TypeError: `arr` is not an array.

    Example:
      >>> import xnp
      >>> xnp.clip(xnp.array([-1, 2, 9]), 0, 5)
      Array([0, 2, 5], dtype=int32)
    """
    low, high = a_min if min is None else min, a_max if max is None else max
    x = _clippable(a if arr is None else arr, low, high)
    if low is None and high is None:
        return dispatch.copy_if_aliased(x, arr, a)  # type: ignore[no-any-return]
    if low is None:
        return _least(x, high)
    if high is None:
        return _greatest(x, low)
    at_once = _large_clipped(x, low, high) if x.size >= _LARGE else None
    return _clip_both(x, low, high) if at_once is None else at_once


def _clippable(x: Any, *bounds: Any) -> Array:
    if x is None:
        raise ArgumentError("clip: the array to clip is missing: it is the first argument.")
    operand = asarray(x)
    check_numbers(operand.aval, "clip")
    if dtypes.is_complex(promotion.result_type(operand, *[b for b in bounds if b is not None])):
        raise ValueError("clip: Complex values have no ordering and cannot be clipped.")
    return operand


_LARGE = 1 << 14  # elements: where a pass over memory costs more than to promote


def _large_clipped(x: Any, low: Any, high: Any) -> Array | None:
    """Clip by numbers with NumPy's own loop, which is one pass; None for other operands."""
    x, low, high = promote("clip", x, low, high)
    hosts = dispatch.elements_now(x, low, high)
    aval = x.aval
    if hosts is None or low.aval.shape or high.aval.shape or aval.dtype not in NATIVE & REAL:
        return None
    weak_type = aval.weak_type and low.aval.weak_type and high.aval.weak_type
    return ConcreteArray(np.clip(*hosts), xprim.shaped_array(aval.shape, aval.dtype, weak_type))


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
    fill_arrays = [_fill_of_positions(f, dtype) for f in fills]
    if not count or not size:
        return tuple([broadcast_to(f, (size,)) for f in fill_arrays])
    hosts = dispatch.elements_now(mask, *fill_arrays)
    if hosts is not None and not any(f.ndim for f in hosts[1:]):
        return _nonzero_on_host(hosts[0], size, hosts[1:])
    flat = cast(reshape(mask, (count,)), dtype)
    ends = bind("cumsum", flat, axis=0, reverse=False)
    # position k of the result holds how many elements come before the (k+1)-th true one
    counts = bind("min", bind("sub", ends, scalar_like(ends, 0)), scalar_like(ends, size))
    places = array_of(fill((size,), 0, dtype).at[counts].add(
        fill((count,), 1, dtype), mode="drop"), "nonzero")  # fmt: skip
    places = bind("cumsum", places, axis=0, reverse=False)
    total = read(ends, -1)
    valid = bind("lt", counting((size,), 0, dtype), total)
    results = []
    for d, n in enumerate(shape):
        stride = math.prod(shape[d + 1 :])
        along = bind("rem", bind("div", places, scalar_like(places, stride)),
                     scalar_like(places, n))  # fmt: skip
        results.append(chosen(valid, cast(along, fill_arrays[d].aval.dtype), fill_arrays[d]))
    return tuple(results)


def _fill_of_positions(value: Any, dtype: Any) -> Array:
    """Return what stands for missing positions, an integer of their dtype where it is one."""
    fill_array = array_of(0 if value is None else value, "nonzero")
    is_integer = not dtypes.is_inexact(fill_array.aval.dtype)
    return cast(fill_array, dtype if is_integer else fill_array.aval.dtype)


def _nonzero_on_host(
    mask: np.ndarray[Any, Any], size: int, fills: Sequence[np.ndarray[Any, Any]]
) -> tuple[Array, ...]:
    """Return the positions of elements that NumPy has at hand: a tenth of the time."""
    results = []
    for found, fill_value in zip(np.nonzero(mask), fills, strict=True):
        places = np.full(size, fill_value, fill_value.dtype)
        places[: found.size] = found[:size]
        results.append(from_numpy(places, copy=False))
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

    Raises:
        TypeError: `a` is not an array.
        ValueError: `size` is negative.

    Example:
      >>> import xnp
      >>> xnp.flatnonzero(xnp.array([0, 3, 0, 4]))
      Array([1, 3], dtype=int32)
    """
    a = array_of(a, "flatnonzero")
    return nonzero(reshape(a, (a.aval.size,)), size=size, fill_value=fill_value)[0]


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

    Raises:
        TypeError: `a` is not an array.
        ValueError: `size` is negative.

    Example:
      >>> import xnp
      >>> xnp.argwhere(xnp.array([[0, 1], [1, 0]]))
      Array([[0, 1],
             [1, 0]], dtype=int32)
    """
    a = array_of(a, "argwhere")
    if not a.aval.ndim:
        found = nonzero(reshape(a, (1,)), size=size, fill_value=fill_value)[0]
        return fill((found.shape[0], 0), 0, found.dtype)
    columns = nonzero(a, size=size, fill_value=fill_value)
    count = columns[0].shape[0]
    return bind("concatenate", *[reshape(c, (count, 1)) for c in columns], dimension=1)


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

    Raises:
        TypeError: `arr` is not an array.
        ValueError: `size` is negative.

    Example:
      >>> import xnp
      >>> xnp.extract(xnp.array([True, False, True]), xnp.array([1, 2, 3]))
      Array([1, 3], dtype=int32)
    """
    return compress(flatten_elements(condition), arr, size=size, fill_value=fill_value)


def flatten_elements(x: Any) -> Any:
    """Return the elements of `x` in one dimension."""
    x = array_of(x, "ravel") if not isinstance(x, list | tuple) else array(x)
    return reshape(x, (x.aval.size,))


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

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds; `size` is negative.

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
        a, axis = reshape(a, (a.aval.size,)), 0
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

    Raises:
        TypeError: `x` is not an array.

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
    return broadcast_to(result, x.aval.shape)


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

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: unknown `mode`.

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
    which, *arrays = broadcast_arrays(which, *promote("choose", *choices))
    return bind("select_n", cast(which, dtypes.int32), *arrays)


# ----------------------------------------------------------------------------------- replacement
# Copies of arrays with elements replaced: put, put_along_axis, place, fill_diagonal.
#
# NumPy's functions write into their argument. Arrays do not change, so `inplace=False` has to say
# that the result is meant.


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """Return `a` with elements at flat positions replaced; `inplace` must be False.

    Args:
      a: an array.
      ind: integers, positions in the flattened array.
      v: the values, over and over again.
      mode: for positions out of bounds: "clip", "wrap", or None, which is "clip", and an
        `IndexError` for positions that `config.index_checks` looks at.
      inplace: must be False, for arrays do not change.

    Returns:
      A new array of the shape and dtype of `a`. NumPy writes into `a` and returns None.

    Raises:
        TypeError: an operand is not an array.
        ValueError: unknown `mode`.

    Example:
      >>> import xnp
      >>> xnp.put(xnp.array([1, 2, 3]), xnp.array([0, 2]), xnp.array([8, 9]), inplace=False)
      Array([8, 2, 9], dtype=int32)
    """
    _check_not_in_place("put", inplace)
    a = array_of(a, "put")
    positions = flatten_elements(ind)
    values = flatten_elements(v)
    if not positions.aval.size or not values.aval.size:
        return a
    count = positions.aval.size
    places = np.arange(count, dtype=np.int32) % values.aval.size
    flat = flatten_elements(a)
    checks = config.values.index_checks
    traced = isinstance(positions, Tracer) and positions.concrete() is None
    if mode is None and (checks == "allow" or (traced and checks != "raise")):
        mode = "clip"
    if mode == "clip":
        positions = clip(positions, 0, a.aval.size - 1)
    elif mode == "wrap":
        positions = positions % a.aval.size
    elif mode is not None:
        raise ValueError(f"put: mode must be None, 'clip' or 'wrap', got {mode!r}.")
    return reshape(flat.at[positions].set(read(values, places)), a.aval.shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Return `arr` with the elements under a mask replaced by values in turn.

    Args:
      arr: an array.
      mask: booleans of as many elements.
      vals: the values, over and over again; they are flattened.
      inplace: must be False, for arrays do not change.

    Returns:
      A new array of the shape and dtype of `arr`. NumPy writes into `arr` and returns None.

    Raises:
        TypeError: `arr` is not an array, or its dtype is of a narrower kind than that of `vals`.

    Example:
      >>> import xnp
      >>> x = xnp.array([1, 2, 3])
      >>> xnp.place(x, x != 2, xnp.array([8, 9]), inplace=False)
      Array([8, 2, 9], dtype=int32)
    """
    _check_not_in_place("place", inplace)
    arr, values = array_of(arr, "place"), flatten_elements(vals)
    chosen_mask = flatten_elements(truth_of(mask, "place"))
    if chosen_mask.aval.size != arr.aval.size:
        raise ValueError("place: the mask must have as many elements as the array.")
    if not values.aval.size:
        raise ValueError("place: needs a value at least.")
    dispatch.check_written("place", arr, values)
    kind, wider = values.aval.dtype, f"arr.astype('{values.aval.dtype.name}')"
    check_kind("place", kind, arr.aval.dtype, wider)
    order = bind("cumsum", cast(chosen_mask, dtypes.int32), axis=0, reverse=False)
    turn = (order - 1) % values.aval.size
    new = cast(read(values, turn), arr.aval.dtype)
    return reshape(table.select(chosen_mask, new, flatten_elements(arr)), arr.aval.shape)


def put_along_axis(
    arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None, inplace: bool = True,
    *, mode: str | None = None,
) -> Array:  # fmt: skip
    """Return `arr` with elements at positions along each line of an axis replaced.

    Args:
      arr: an array.
      indices: integers, of the rank of `arr`; broadcast against it but for the axis.
      values: what to put there; broadcasts to the shape of `indices`.
      axis: the axis; None for positions in the flattened array.
      inplace: must be False, for arrays do not change.
      mode: for positions out of bounds, as of `x.at[...].set`.

    Returns:
      A new array of the shape and dtype of `arr`. NumPy writes into `arr` and returns None.

    Raises:
        TypeError: `arr` is not an array.
        ValueError: `axis` is out of bounds; unknown `mode`.

    Example:
      >>> import xnp
      >>> xnp.put_along_axis(xnp.array([[1, 2, 3]]), xnp.array([[1]]), 9, axis=1, inplace=False)
      Array([[1, 9, 3]], dtype=int32)
    """
    _check_not_in_place("put_along_axis", inplace)
    arr, positions = array_of(arr, "put_along_axis"), array_of(indices, "put_along_axis")
    if axis is None:
        flat = put_along_axis(flatten_elements(arr), flatten_elements(positions), values, 0, False)
        return reshape(flat, arr.aval.shape)
    axis = axis_of(axis, arr.aval.ndim, "put_along_axis")
    sizes = [1 if d == axis else n for d, n in enumerate(arr.aval.shape)]
    full = np.broadcast_shapes(positions.aval.shape, tuple(sizes))
    positions = broadcast_to(positions, full)
    index = tuple([
        positions if d == axis else counting(full, d, dtypes.int32) for d in range(len(full))
    ])  # fmt: skip
    new = broadcast_to(array_of(values, "put_along_axis"), full)
    return arr.at[index].set(new, mode=mode)


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """Return `a` with its main diagonal replaced; `inplace=False` must say that `a` stays as it is.

    Args:
      a: an array of two dimensions or more, all equal if more than two.
      val: the values, over and over again.
      wrap: whether the diagonal goes on after the last column of a tall matrix.
      inplace: must be False, for arrays do not change.

    Returns:
      A new array of the shape and dtype of `a`. NumPy writes into `a` and returns None.

    Raises:
        TypeError: `a` is not an array.

    Example:
      >>> import xnp
      >>> xnp.fill_diagonal(xnp.zeros((2, 2)), 7, inplace=False)
      Array([[7., 0.],
             [0., 7.]], dtype=float32)
    """
    _check_not_in_place("fill_diagonal", inplace)
    a = array_of(a, "fill_diagonal")
    if a.aval.ndim < 2 or (a.aval.ndim > 2 and len(set(a.aval.shape)) > 1):
        raise ValueError(
            f"fill_diagonal: takes matrices, or arrays of equal sizes, got {a.aval.str_long()}."
        )
    values = array_of(val, "fill_diagonal")
    dispatch.check_written("fill_diagonal", a, values)
    rows, columns = a.aval.shape[:2]
    if wrap and a.aval.ndim == 2:  # a row is left out after each square
        places = [
            p.astype(np.int32) for p in divmod(np.arange(0, a.aval.size, columns + 1), columns)
        ]
    else:
        places = [np.arange(min(rows, columns), dtype=np.int32)] * a.aval.ndim
    if values.aval.ndim:
        values = resize(reshape(values, (values.aval.size,)), len(places[0]))
    result: Array = a.at[tuple(places)].set(values)
    return result


def _check_not_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(f"{name}: arrays do not change; pass inplace=False and use the result.")


# --------------------------------------------------------------------------------------- sorting
# Order: sort, argsort, partition, searchsorted, lexsort, top_k, digitize.
#
# NaN comes last; complex numbers are ordered by real, then imaginary parts. All sorts are stable.


def _check_kind(operation: str, kind: Any, order: Any) -> None:
    if kind not in (None, "stable", "quicksort", "mergesort", "heapsort"):
        raise ValueError(f"{operation}: there is no kind {kind!r}; all sorts are stable.")
    if order is not None:
        raise ValueError(f"{operation}: order= is for arrays with fields.")


@dispatch_on(1)
def _sort(a: Any, axis: Any, descending: bool) -> Array:
    a = array_of(a, "sort")
    if axis is None:
        a, axis = reshape(a, (a.aval.size,)), 0
    axis = axis_of(axis, a.aval.ndim, "sort")
    if not descending:
        return bind("sort", a, dimension=axis, is_stable=True, num_keys=1)
    return bind("rev", bind("sort", a, dimension=axis, is_stable=True, num_keys=1),
                dimensions=(axis,))  # fmt: skip


def sort(
    a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
    stable: bool = True, descending: bool = False,
) -> Array:  # fmt: skip
    """Return elements in order along an axis.

    Args:
        a: an array.
        axis: the axis; None sorts the flattened array.
        kind: any of NumPy's; all sorts are stable.
        order: must be None.
        stable: has no effect: all sorts are stable.
        descending: whether the largest come first (NaN before them).

    Returns:
      An array of the shape and dtype of `a`; NaN come last.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axis` is out of bounds; unknown `order`.

    Example:
      >>> import xnp
      >>> xnp.sort(xnp.array([3, 1, 2]))
      Array([1, 2, 3], dtype=int32)
    """
    del stable
    _check_kind("sort", kind, order)
    return _sort(a, axis, bool(descending))


@dispatch_on(1)
def _argsort(a: Any, axis: Any, descending: bool) -> Array:
    a = array_of(a, "argsort")
    if axis is None:
        a, axis = reshape(a, (a.aval.size,)), 0
    axis = axis_of(axis, a.aval.ndim, "argsort")
    places = counting(a.aval.shape, axis, dtypes.python_scalar_dtype(int))
    if descending:  # equal elements stay in order when the array is sorted backwards
        a = bind("rev", a, dimensions=(axis,))
        places = bind("rev", places, dimensions=(axis,))
    order = get_second(a, places, axis)
    return bind("rev", order, dimensions=(axis,)) if descending else order


def get_second(keys: Any, values: Any, axis: int) -> Any:
    """Return values in the order of keys."""
    return _sort_primitive().bind(keys, values, dimension=axis, is_stable=True, num_keys=1)[1]


def _sort_primitive() -> Any:
    return get_primitive("sort")


def argsort(
    a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
    stable: bool = True, descending: bool = False, dtype: DTypeLike = None,
) -> Array:  # fmt: skip
    """Return the positions of elements in order along an axis.

    Args:
        a: an array.
        axis: the axis; None sorts the flattened array.
        kind: any of NumPy's; all sorts are stable.
        order: must be None.
        stable: has no effect: all sorts are stable.
        descending: whether the largest come first (NaN before them).
        dtype: the integer dtype of the result; None for the default one.

    Returns:
      Integers in the shape of `a`.

    Raises:
        TypeError: `a` is not an array; `dtype` names no dtype.
        ValueError: `axis` is out of bounds; unknown `order`.

    Example:
      >>> import xnp
      >>> xnp.argsort(xnp.array([3, 1, 2]))
      Array([1, 2, 0], dtype=int32)
    """
    del stable
    _check_kind("argsort", kind, order)
    places = _argsort(a, axis, bool(descending))
    return places if dtype is None else cast(places, _index_dtype("argsort", dtype))


def _index_dtype(operation: str, dtype: Any) -> Any:
    exact = dtypes.requested_dtype(dtype, operation)
    if not dtypes.is_integer(exact):
        raise ValueError(f"{operation}: positions need an integer dtype, got {exact.name}.")
    return exact


def sort_complex(a: ArrayLike) -> Array:
    """Return elements in order as complex numbers.

    Args:
      a: an array of one dimension or more; the last one is sorted.

    Returns:
      A complex array, by real parts and, where these are equal, imaginary ones.

    Raises:
        TypeError: `a` is not an array.

    Example:
      >>> import xnp
      >>> xnp.sort_complex(xnp.array([2 + 1j, 1 - 1j, 1 - 2j]))
      Array([1.-2.j, 1.-1.j, 2.+1.j], dtype=complex64)
    """
    a = array_of(a, "sort_complex")  # real numbers are sorted as such, by vector loops
    return cast(sort(a, 0 if a.aval.ndim == 1 else -1), dtypes.to_complex_dtype(a.aval.dtype))


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return elements with the `kth` along an axis where sorting puts it.

    None before it is greater, and none behind it is less.

    Args:
        a: an array.
        kth: a place along the axis, a Python int.
        axis: the axis.

    Returns:
        An array of the shape of `a`. As in NumPy, the order on both sides is not defined: short
        axes are sorted.

    Raises:
        TypeError: `a` is not an array, or `kth` no integer.
        ValueError: `axis` or `kth` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.partition(xnp.array([3, 1, 2]), 1)
        Array([1, 2, 3], dtype=int32)
    """
    return _partition("partition", a, kth, axis, places=False)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return positions of elements with the `kth` along an axis where sorting puts it.

    None before it is greater, and none behind it is less.

    Args:
        a: an array.
        kth: a place along the axis, a Python int.
        axis: the axis.

    Returns:
        Integers, of the shape of `a`. As in NumPy, the order on both sides is not defined: short
        axes are in order.

    Raises:
        TypeError: `a` is not an array, or `kth` no integer.
        ValueError: `axis` or `kth` is out of bounds.

    Example:
        >>> import xnp
        >>> xnp.argpartition(xnp.array([3, 1, 2]), 1)
        Array([1, 2, 0], dtype=int32)
    """
    found = _partition("argpartition", a, kth, axis, places=True)
    return cast(found, dtypes.python_scalar_dtype(int))


def _partition(operation: str, a: Any, kth: int, axis: int, *, places: bool) -> Array:
    a = array_of(a, operation)
    axis, number = axis_of(axis, a.aval.ndim, operation), operator.index(kth)
    size = a.aval.shape[axis]
    if not -size <= number < size:
        raise ValueError(f"{operation}: kth={kth} is out of bounds for an axis of size {size}.")
    number += size if number < 0 else 0
    result: Array = get_primitive("partition").bind(a, kth=number, axis=axis, places=places)[0]
    return result


def lexsort(keys: Arrays, axis: int = -1, *, batch_size: int | None = 16) -> Array:
    """Return the positions of elements in order of several keys, the last key first.

    Args:
      keys: a sequence of arrays of one shape, or an array whose first dimension runs over them.
      axis: the axis to sort along.
      batch_size: how many keys may be compared in one sort, a positive number or None for all;
        sorting by the last ones first and keeping that order for the others gives the same.

    Returns:
      Integers in the shape of a key.

    Raises:
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.lexsort([xnp.array([1, 2, 3]), xnp.array([1, 0, 0])])
      Array([1, 2, 0], dtype=int32)
    """
    arrays = [array_of(k, "lexsort") for k in keys]
    if batch_size is not None and operator.index(batch_size) < 1:
        raise ValueError(f"lexsort: batch_size must be positive, got {batch_size}.")
    if not arrays:
        raise TypeError("lexsort: needs one key at least.")
    shapes = {a.aval.shape for a in arrays}
    if len(shapes) > 1:
        raise ValueError(f"lexsort: all keys must have one shape, got {sorted(shapes)}.")
    if not arrays[0].aval.ndim:
        return scalar_array(0, dtypes.python_scalar_dtype(int))
    axis = axis_of(axis, arrays[0].aval.ndim, "lexsort")
    return _sort_places(arrays, axis, batch_size)


def _sort_places(arrays: list[Array], axis: int, batch_size: int | None) -> Array:
    places: Array = counting(arrays[0].aval.shape, axis, dtypes.python_scalar_dtype(int))
    step = len(arrays) if batch_size is None else batch_size
    for first in range(0, len(arrays), step):
        keys = [k if not first else take_along_axis(k, places, axis)
                for k in arrays[first : first + step]]  # fmt: skip
        *_, places = _sort_primitive().bind(*keys[::-1], places, dimension=axis, is_stable=True,
                                            num_keys=len(keys))  # fmt: skip
    return places


def top_k(
    a: ArrayLike,
    k: int,
    /,
    *,
    axis: int = -1,
    mode: str = "largest",
    sorted: bool = True,  # noqa: A002
) -> tuple[Array, Array]:
    """Return the `k` largest or smallest elements along an axis, and their positions.

    Args:
      a: an array.
      k: how many, at most the size of the axis.
      axis: the axis.
      mode: "largest" or "smallest".
      sorted: whether the most extreme element must come first; here it always does.

    Returns:
      Elements and positions; of equal elements the one with the lower position comes first.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axis` is out of bounds; unknown `mode`.

    Example:
      >>> import xnp
      >>> xnp.top_k(xnp.array([3, 1, 2]), 2, mode="smallest")[0]
      Array([1, 2], dtype=int32)
    """
    del sorted
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', got {mode!r}.")
    x, k = array_of(a, "top_k"), operator.index(k)
    axis = axis_of(axis, x.aval.ndim, "top_k")
    if mode == "largest":
        values, places = get_primitive("top_k").bind(x, k=k, axis=axis)
        return values, places
    if not 0 <= k <= x.aval.shape[axis]:
        raise ValueError(f"top_k: k must be from 0 to {x.aval.shape[axis]}, got {k}.")
    first = (*[slice(None)] * axis, slice(k))
    places = read(_argsort(x, axis, False), first)
    return take_along_axis(x, places, axis), cast(places, dtypes.int32)


# --- searching ------------------------------------------------------------------------------------


def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *,
    method: str = "scan",
) -> Array:  # fmt: skip
    """Return where elements of `v` belong in the sorted array `a`, so that it stays sorted.

    Args:
      a: sorted elements in one dimension.
      v: an array.
      side: "left" before equal elements, "right" behind them.
      sorter: positions that bring `a` in order, if it is not.
      method: "scan", "scan_unrolled", "sort" or "compare_all"; all give the same.

    Returns:
      Integers from 0 to the size of `a`, in the shape of `v`. NaN belongs at the end.

    Raises:
        TypeError: an operand is not an array.
        ValueError: unknown `side`; unknown `method`.

    Example:
      >>> import xnp
      >>> xnp.searchsorted(xnp.array([1, 3, 5]), xnp.array([3, 4]))
      Array([1, 2], dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}.")
    if method not in ("scan", "scan_unrolled", "sort", "compare_all", "default"):
        raise ValueError(f"searchsorted: there is no method {method!r}.")
    a, v = promote("searchsorted", asarray(a), v)
    if a.aval.ndim != 1:
        raise ValueError(f"searchsorted: a must have one dimension, got {a.aval.str_long()}.")
    if sorter is not None:
        a = a[asarray(sorter)]
    return (_compare_all if method == "compare_all" else _count_before)(a, v, side == "right")


@dispatch_on(2)
def _compare_all(a: Any, v: Any, right: bool) -> Array:
    """Count the elements before `v`: over a mesh, each device those that it has."""
    (size,), rank = a.aval.shape, v.aval.ndim
    shape = (size, *v.aval.shape)
    before = _comes_before(
        broadcast_to(a, shape, (0,)), broadcast_to(v, shape, tuple(range(1, rank + 1))), right
    )
    return bind("reduce_sum", cast(before, position_dtype(size)), axes=(0,))


@dispatch_on(2)
def _count_before(a: Any, v: Any, right: bool) -> Array:
    """Find the count of elements before `v` bit by bit, from the highest: one read for each."""
    size = a.aval.shape[0]
    dtype = position_dtype(size)
    shape = v.aval.shape
    count = broadcast_to(scalar_array(0, dtype), shape)
    for bit in range(size.bit_length() - 1, -1, -1):
        more = bind("add", count, scalar_array(1 << bit, dtype))
        last = bind("sub", more, scalar_array(1, dtype))
        beyond = _comes_before(_element_at(a, last), v, right)  # of the last where there is none
        there = bind("lt", last, scalar_array(size, dtype))
        count = table.select(bind("and", there, beyond), more, count)
    return count


def position_dtype(size: int) -> Any:
    """Return the dtype of positions in so many sorted elements: int32 where that suffices."""
    return dtypes.int32 if size < 2**31 else dtypes.int64


def _element_at(a: Any, places: Any) -> Array:
    """Return elements of a vector, places behind the end taken for the last one."""
    shape = places.aval.shape
    numbers = GatherDimensionNumbers((), (0,), (0,))
    return bind(
        "gather", a, reshape(places, (*shape, 1)), dimension_numbers=numbers, slice_sizes=(1,),
        indices_are_sorted=False, unique_indices=False, mode=CLIP, fill_value=None,
    )  # fmt: skip


def _comes_before(element: Any, v: Any, right: bool) -> Any:
    """Whether `v` belongs behind an element; NaN is the largest number."""
    before = _order("le" if right else "lt", element, v)
    if not dtypes.is_inexact(v.aval.dtype):
        return before
    v_nan, element_nan = bind("ne", v, v), bind("ne", element, element)
    if right:
        return bind("or", before, v_nan)
    return bind("or", before, bind("and", v_nan, bind("not", element_nan)))


def _order(primitive: str, x: Any, y: Any) -> Any:
    if not dtypes.is_complex(x.aval.dtype):
        return bind(primitive, x, y)
    (re_x, re_y), (im_x, im_y) = [[bind(p, v) for v in (x, y)] for p in ("real", "imag")]
    of_im, of_re = bind(primitive, im_x, im_y), bind(primitive, re_x, re_y)
    return table.select(bind("eq", re_x, re_y), of_im, of_re)


def digitize(
    x: ArrayLike,
    bins: ArrayLike | Sequence[float] | str,
    right: bool = False,
    *,
    method: str | None = None,
) -> Array:
    """Return the number of the bin of each element: how many bin bounds are below it.

    Args:
      x: an array.
      bins: bounds that ascend or descend.
      right: whether a bin holds its right bound instead of its left one, as in NumPy.
      method: as of `searchsorted`.

    Returns:
      Integers in the shape of `x`, from 0 to the number of bounds.

    Raises:
        TypeError: `x` is not an array.
        ValueError: unknown `method`.

    Example:
      >>> import xnp
      >>> xnp.digitize(xnp.array([0.5, 2.5]), xnp.array([1., 2., 3.]))
      Array([0, 2], dtype=int32)
    """
    x, bins = array_of(x, "digitize"), asarray(bins)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must have one dimension, got {bins.ndim}.")
    method = "scan" if method is None else method
    if not bins.size:
        return broadcast_to(scalar_array(0, position_dtype(0)), x.aval.shape)
    side = "left" if right else "right"
    up = searchsorted(bins, x, side, method=method)
    down = bins.size - searchsorted(bins[::-1], x, side, method=method)
    return table.select(array_of(bins[-1] >= bins[0], "digitize"), up, down)


boundaries(globals())
