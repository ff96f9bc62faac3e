"""argmax and argmin: the position of the greatest or least element along an axis.

The first NaN wins, then the first of equal elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import xprim
from xnp.primitives import costs
from xnp.primitives.index_modes import PROMISE_IN_BOUNDS, GatherDimensionNumbers
from xnp.primitives.lowering_text import FOUR_BITS, TWO_BITS, is_split, upcast
from xnp.primitives.reductions import greatest, least
from xnp.primitives.sort import comparable, compare_text
from xnp.primitives.table import (
    BOOL,
    REAL,
    bind,
    broadcast_to,
    fill,
    reshape,
    select,
)
from xprim import ZERO, Primitive, ShapedArray, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import BatchAxis, Builder, by_platform
from xprim.errors import message
from xprim.requirements import require, require_axis, require_dtype

__all__ = ()


# ---------------------------------------------------------------------------------- arg extremal
# What argmin and argmax share: where along an axis the least or greatest element stands.
#
# Of equal elements the first counts; the first NaN wins, as in NumPy. In StableHLO they are a
# reduction of (element, index) pairs; of many elements on a CPU, where XLA does not vectorise that,
# the extreme element and then the least index that holds it (measured: 5 to 14 times faster; the
# pairs of few take a fifth of the time to compile). Along a long last dimension the first pass
# finds the extreme elements of blocks, and the second one reads one block.

_MOST_IN_BLOCK = 1024
_FEW = 1 << 14  # elements, which take 7 us as pairs
_MANY = 1 << 18


def _width_of_blocks(size: int, count: int) -> int:
    """Return a width of blocks that divides a long dimension, else 1.

    Of many rows of 500 and more, blocks of an eighth leave an eighth to compare again, and three
    kernels more to compile.
    """
    if size >= 4 * _MOST_IN_BLOCK:
        widths = range(_MOST_IN_BLOCK, _MOST_IN_BLOCK // 8, -1)
    elif size >= _MOST_IN_BLOCK // 2 and count >= _MANY:
        widths = range(_MOST_IN_BLOCK // 6, _MOST_IN_BLOCK // 12, -1)
    else:
        return 1
    return next((width for width in widths if size % width == 0), 1)


def arg_shape(name: str) -> Callable[..., tuple[ShapedArray, ...]]:
    """Return the shape rule of argmin or argmax."""

    def shape_rule(aval: ShapedArray, *, axes: Any, index_dtype: Any) -> tuple[ShapedArray, ...]:
        require_dtype(name, aval, REAL | BOOL)
        require(
            dtypes.is_integer(index_dtype), name, "index_dtype must be an integer type, got {}.",
            index_dtype, error=TypeError,
        )  # fmt: skip
        (axis,) = axes
        require_axis(name, axis, aval)
        if not aval.shape[axis]:
            raise ValueError(message(
                name, "operations argmin and argmax require non-empty reduced dimension.",
                got=f"axis {axis} of {aval.str_long()}",
            ))  # fmt: skip
        return (shaped_array((*aval.shape[:axis], *aval.shape[axis + 1 :]), index_dtype),)

    return shape_rule


def arg_numpy(find: Callable[..., Any]) -> Callable[..., Any]:
    """Return the NumPy rule from `np.argmin` or `np.argmax`."""

    def numpy_rule(x: Any, *, axes: Any, index_dtype: Any) -> Any:
        (key,) = comparable(x)
        return (np.asarray(find(key, axis=axes[0])).astype(index_dtype),)

    return numpy_rule


_TINY_FLOATS = (dtypes.float4_e2m1fn, dtypes.float6_e2m3fn, dtypes.float6_e3m2fn)


def arg_stablehlo(better: str, worst: Callable[[Any], Any], extreme: str) -> Callable[..., Any]:
    """Return the lowering: on CPUs by the extreme element and its place, else in one reduction.

    Args:
      better: how elements are compared, GT or LT.
      worst: from a dtype to the neutral element.
      extreme: the name of the primitive that finds the element.
    """
    # XLA wants all operands of a reduction in one layout, and elements of less than a byte have
    # layouts of their own (`reduce_decomposer.cc`)
    whole_bytes = upcast(partial(_write_pairs, better, worst), TWO_BITS + FOUR_BITS, np.int8)
    in_pairs = upcast(whole_bytes, _TINY_FLOATS, np.float32)

    def cpu_rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axes: Any,
                 index_dtype: Any) -> Any:  # fmt: skip
        aval = avals_in[0]
        is_known = type(aval.size) is int and not is_split(b)
        if is_known and aval.size < _FEW:
            return in_pairs(b, operands, avals_in, avals_out, axes=axes, index_dtype=index_dtype)
        is_long = is_known and axes[0] == aval.ndim - 1
        is_long = is_long and aval.shape[-1] <= dtypes.iinfo(index_dtype).max
        is_long = is_long and _width_of_blocks(aval.shape[-1], aval.size) > 1
        find = _find_in_blocks if is_long else _find_in_two_passes
        return b.traced(
            lambda x: find(extreme, x, axes=axes, index_dtype=index_dtype), operands, avals_in,
            ("arg", extreme, axes, index_dtype),
        )  # fmt: skip

    return by_platform(extreme.replace("reduce_", "arg"), cpu=cpu_rule, default=in_pairs)


def _find_in_two_passes(extreme: str, x: Any, *, axes: Any, index_dtype: Any) -> Any:
    """Find the extreme element, then the least place where it is."""
    shape, dtype = x.aval.shape, x.aval.dtype
    others = tuple([d for d in range(len(shape)) if d != axes[0]])
    hit = bind("eq", x, broadcast_to(bind(extreme, x, axes=axes), shape, others))
    if dtypes.is_floating(dtype):  # the extreme is NaN where there is one, and equals none
        hit = bind("or", hit, bind("ne", x, x))
    places = bind("iota", dtype=index_dtype, shape=shape, dimension=axes[0])
    behind = fill(shape, int(dtypes.iinfo(index_dtype).max), index_dtype)
    return (bind("reduce_min", select(hit, places, behind), axes=axes),)


def _find_in_blocks(extreme: str, x: Any, *, axes: Any, index_dtype: Any) -> Any:
    """Find the first block of the last dimension with the extreme element, then its place."""
    *ahead, size = x.aval.shape
    rows, width = math.prod(ahead), _width_of_blocks(size, x.aval.size)
    blocks = reshape(x, (rows, size // width, width))
    bests = bind(extreme, blocks, axes=(2,))
    (block,) = _find_in_two_passes(extreme, bests, axes=(1,), index_dtype=index_dtype)
    numbers = GatherDimensionNumbers((1,), (1,), (1,), (0,), (0,))
    found = bind(
        "gather", blocks, reshape(block, (rows, 1)), dimension_numbers=numbers,
        slice_sizes=(1, 1, width), indices_are_sorted=False, unique_indices=False,
        mode=PROMISE_IN_BOUNDS, fill_value=None,
    )  # fmt: skip
    (place,) = _find_in_two_passes(extreme, found, axes=(1,), index_dtype=index_dtype)
    start = bind("mul", block, fill((rows,), width, index_dtype))
    return (reshape(bind("add", start, place), ahead),)


def _write_pairs(
    better: str, worst: Callable[[Any], Any], b: Builder, operands: Any, avals_in: Any,
    avals_out: Any, *, axes: Any, index_dtype: Any,
) -> list[str]:  # fmt: skip
    """Write one reduction of pairs of an element and its place."""
    (x,), (aval,), (out,) = operands, avals_in, avals_out
    places = shaped_array(aval.shape, index_dtype)
    element, place = shaped_array((), aval.dtype), shaped_array((), index_dtype)
    values = shaped_array(out.shape, aval.dtype)
    (counts,) = b.op("stablehlo.iota", [], [], [places], f"iota_dimension = {axes[0]} : i64")
    start = [b.scalar(worst(aval.dtype), aval.dtype), b.scalar(0, index_dtype)]
    region = b.region(
        [element, place, element, place],
        lambda inner, names: _better_pair(inner, names, better, element, place),
        [element, place],
    )
    results = b.op(
        "stablehlo.reduce", [x, counts, *start], [aval, places, element, place],
        [values, out], f"dimensions = array<i64: {axes[0]}>", region,
    )  # fmt: skip
    return [results[1]]


def _better_pair(b: Builder, names: Any, better: str, element: Any, place: Any) -> Any:
    """Pick one of (x, i) and (y, j): by value, NaN before all, then by the smaller index."""
    x, i, y, j = names
    flag = shaped_array((), np.dtype(bool))

    def compare(direction: str, left: str, right: str) -> str:
        how = "FLOAT" if dtypes.is_floating(element.dtype) else ""
        return compare_text(b, direction, left, right, element, how)

    def both(op: str, left: str, right: str) -> str:
        return b.same_type_op(f"stablehlo.{op}", [left, right], flag)

    first, tie = compare(better, x, y), compare("EQ", x, y)
    if dtypes.is_floating(element.dtype):
        x_nan, y_number = compare("NE", x, x), compare("EQ", y, y)
        first = both("or", first, both("and", x_nan, y_number))
        tie = both("or", tie, x_nan)  # where y is a number, x has come first already
    earlier = compare_text(b, "LT", i, j, place)
    first = both("or", first, both("and", tie, earlier))
    return [
        b.op("stablehlo.select", [first, x, y], [flag, element, element], [element])[0],
        b.op("stablehlo.select", [first, i, j], [flag, place, place], [place])[0],
    ]


def arg_batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the batch rule of argmin or argmax."""

    def batch_rule(
        axis: BatchAxis, operands: Any, dims: Any, *, axes: Any, index_dtype: Any
    ) -> Any:
        ((a,), (d,)) = axes, dims
        moved = a + (a >= d)
        outs = primitive().bind(operands[0], axes=(moved,), index_dtype=index_dtype)
        return outs, (d - (moved < d),)

    return batch_rule


# -------------------------------------------------------------------------------- argmax, argmin
# argmax, argmin: where along an axis the greatest or the least element stands.
#
# The first NaN wins, then the first of equals.


@xprim.primitive_maker
def _arg_reduction(
    name: str, numpy: Any, direction: str, init: Callable[[Any], Any], reduction: str
) -> Primitive:
    primitive = Primitive(
        name,
        shape=arg_shape(name),
        numpy=arg_numpy(numpy),
        stablehlo=arg_stablehlo(direction, init, reduction),
        jvp=ZERO,
        transpose=undefined("it is piecewise constant"),
        batch=arg_batch(lambda: primitive),
        eager=costs.reduction,
        sharding=dimension_names.without("axes"),
    )
    return primitive


argmax_p = _arg_reduction("argmax", np.argmax, "GT", least, "reduce_max")
argmin_p = _arg_reduction("argmin", np.argmin, "LT", greatest, "reduce_min")
