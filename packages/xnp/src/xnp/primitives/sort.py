"""sort, top_k and partition: order elements along one dimension, or take the greatest of them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import xprim
from xnp.primitives import costs
from xnp.primitives.elementwise import total_order_key
from xnp.primitives.index_modes import PROMISE_IN_BOUNDS, GatherDimensionNumbers
from xnp.primitives.lowering_text import (
    FOUR_BITS,
    NAN_AS_NEGATIVE_ZERO,
    TWO_BITS,
    is_split,
    upcast,
)
from xnp.primitives.shapes import index_dtype_for, without
from xnp.primitives.table import BOOL, REAL, bind, convert, fill, reshape, select
from xprim import Eager, Primitive, ShapedArray, Zero, dtypes, not_mapped, shaped_array, undefined
from xprim.contracts import BatchAxis, Builder
from xprim.requirements import require, require_axis

__all__ = ()


# ------------------------------------------------------------------------------------ along axis
# Pieces for rules that move tangents along one dimension: by given indices, or by a recurrence.
#
# `take_along` reads at indices that differ for every element of the other dimensions,
# `rows_along` whole rows; `linear_recurrence` solves y[i] = a[i] y[i-1] + b[i] in a logarithmic
# number of steps. Both are linear (in `x`, and in `b`), so rules written with them can be
# transposed.


def take_along(x: Any, indices: Any, axis: int) -> Any:
    """Return `x` read along an axis at indices that are in bounds, one for each element."""
    shape = indices.aval.shape
    if not indices.aval.size:
        return fill(shape, 0, x.aval.dtype)
    others = without(tuple(range(len(shape))), axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return bind(
        "gather", x, reshape(indices, (*shape, 1)), dimension_numbers=numbers,
        slice_sizes=(1,) * len(shape), indices_are_sorted=False, unique_indices=False,
        mode=PROMISE_IN_BOUNDS, fill_value=None,
    )  # fmt: skip


def rows_along(x: Any, indices: Any) -> Any:
    """Return the rows of matrices at indices that are in bounds, a vector of them for each."""
    shape = x.aval.shape
    last = len(shape) - 1
    if not x.aval.size:
        return fill((*indices.aval.shape, shape[last]), 0, x.aval.dtype)
    batch = tuple(range(last - 1))
    numbers = GatherDimensionNumbers((last,), (last - 1,), (last - 1,), batch, batch)
    return bind(
        "gather", x, reshape(indices, (*indices.aval.shape, 1)), dimension_numbers=numbers,
        slice_sizes=(*[1] * last, shape[last]), indices_are_sorted=False, unique_indices=False,
        mode=PROMISE_IN_BOUNDS, fill_value=None,
    )  # fmt: skip


def linear_recurrence(a: Any, b: Any, axis: int) -> Any:
    """Return y with y[0] = b[0] and y[i] = a[i] y[i-1] + b[i] along an axis.

    Neighbouring steps are joined to one, the recurrence of half the length is solved, and the
    elements between follow from it.
    """
    size = b.aval.shape[axis]
    if size < 2:
        return b
    a_odd, b_odd = _part(a, axis, 1, size, 2), _part(b, axis, 1, size, 2)
    a_even, b_even = (_part(v, axis, 0, size - 1, 2) for v in (a, b))
    joined = bind("add", bind("mul", a_odd, b_even), b_odd)
    y_odd = linear_recurrence(bind("mul", a_odd, a_even), joined, axis)
    first = _part(b, axis, 0, 1, 1)
    y_even = first
    if size > 2:
        a_rest, b_rest = _part(a, axis, 2, size, 2), _part(b, axis, 2, size, 2)
        before = _part(y_odd, axis, 0, b_rest.aval.shape[axis], 1)
        rest = bind("add", bind("mul", a_rest, before), b_rest)
        y_even = bind("concatenate", first, rest, dimension=axis)
    return bind("add", _interleave(y_even, axis, 0, size), _interleave(y_odd, axis, 1, size))


def shift(x: Any, axis: int, value: Any) -> Any:
    """Return `x` moved by one place along an axis: a value first, the last element dropped."""
    config = [(0, 0, 0)] * x.aval.ndim
    config[axis] = (1, -1, 0)
    return bind("pad", x, fill((), value, x.aval.dtype), padding_config=tuple(config))


def _part(x: Any, axis: int, start: int, stop: int, step: int) -> Any:
    ndim = x.aval.ndim
    low, high, strides = [0] * ndim, list(x.aval.shape), [1] * ndim
    low[axis], high[axis], strides[axis] = start, stop, step
    return bind("slice", x, start_indices=tuple(low), limit_indices=tuple(high),
                strides=tuple(strides))  # fmt: skip


def _interleave(x: Any, axis: int, start: int, size: int) -> Any:
    """Spread the elements to every second place from `start`, with zeros between."""
    config = [(0, 0, 0)] * x.aval.ndim
    covered = 2 * x.aval.shape[axis] - 1
    config[axis] = (start, size - start - covered, 1)
    return bind("pad", x, fill((), 0, x.aval.dtype), padding_config=tuple(config))


# ------------------------------------------------------------------------------------------ sort
# sort: order the elements along one dimension; further operands follow the keys.
#
# The first `num_keys` operands are compared, the first one first; all are permuted. Smaller
# elements come first, NaN comes last, -0.0 equals 0.0, False comes before True; complex numbers
# are compared by their real, then their imaginary parts, and those with a NaN in either part come
# last, as in NumPy. Semantics: StableHLO specification, section sort. The derivative permutes the
# tangents in the same way.

_LONG, _MANY = 4, 4096  # fewer are ordered as quickly by merging, or both take microseconds


def _sort_shape(*avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> Any:
    require(
        1 <= num_keys <= len(avals), "sort",
        "num_keys must be from 1 to the number of operands, {}, got {}.", len(avals), num_keys,
    )  # fmt: skip
    shape = avals[0].shape
    require(
        all(a.shape == shape for a in avals), "sort", "all operands must have one shape.",
        got=tuple(avals), error=TypeError,
    )  # fmt: skip
    if not 0 <= dimension < len(shape):
        raise ValueError(f"sort: there is no dimension {dimension} in {avals[0].str_long()}.")
    return avals


def comparable(x: Any) -> list[Any]:
    """Return arrays that NumPy orders as the elements are, the most significant first."""
    dtype = x.dtype
    if dtypes.is_complex(dtype):
        return [x != x, x.real, x.imag]
    if dtypes.is_numpys(dtype):
        return [x]
    return [x.astype(np.float32 if dtypes.is_floating(dtype) else np.int8)]


def _sort_numpy(*xs: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    if len(xs) == 1:
        keys = comparable(xs[0])
        if keys[0] is xs[0]:
            out = np.empty_like(xs[0])
            _sort(xs[0], dimension, out)
            return (out,)
    else:
        keys = [key for x in xs[:num_keys] for key in comparable(x)]
    x = xs[0]
    if num_keys == 1 and x.dtype in (np.int32, np.uint32) and dimension == x.ndim - 1 and (
        _is_ordered_by_vectors(x, dimension)
    ):  # fmt: skip
        return _sort_by_integers(x, xs[1:])
    order = stable_order(keys[-1], dimension)
    for key in keys[-2::-1]:
        order = along(order, stable_order(along(key, order, dimension), dimension), dimension)
    return tuple([along(x, order, dimension) for x in xs])


def stable_order(x: Any, axis: int) -> Any:
    """Return the places of the elements in order, equal ones as they stand: NaN last, -0.0 as 0.0.

    NumPy merges to find stable orders of 32 and 64 bits, without vector loops. A key of 32 bits and
    the place of its element make a number of 64 bits, which NumPy sorts by vector loops: no two are
    equal, so that their order is the stable one. Of keys of 64 bits any order is found first; where
    some are equal, ranks and places are sorted in the same way. Merging is far quicker where runs
    are in order already, so neighbours are compared.
    """
    if not _is_ordered_by_vectors(x, axis):
        return np.argsort(x, axis=axis, kind="stable")
    if axis != x.ndim - 1:
        rows = np.ascontiguousarray(np.moveaxis(x, axis, -1))
        return np.moveaxis(stable_order(rows, x.ndim - 1), -1, axis)
    return _order_of_keys(_rank(x)) if x.dtype.itemsize == 4 else _order_of_wide(x)


def _is_ordered_by_vectors(x: Any, axis: int) -> bool:
    """Return whether keys above their places are sorted sooner than keys are merged."""
    is_long = x.size >= _MANY and _LONG <= x.shape[axis] < 1 << 32
    return x.dtype.itemsize in (4, 8) and is_long and bool(_is_disordered(x, axis))


def _sort_by_integers(x: Any, others: Sequence[Any]) -> tuple[Any, ...]:
    """Sort integers of 32 bits along the last axis, and others as they go.

    The keys are read from above their places, in the place of 1.5 ms to gather a million.
    """
    joined = _with_places(_rank(x))
    joined.sort(axis=-1)
    halves = joined.view(np.uint32).reshape(*x.shape, 2)
    keys = halves[..., int(sys.byteorder == "little")]
    if x.dtype.kind == "i":
        keys = (keys ^ np.uint32(1 << 31)).view(np.int32)
    else:
        keys = keys.copy()
    joined &= np.uint64((1 << 32) - 1)
    order = joined.view(np.int64)
    return keys, *[along(v, order, x.ndim - 1) for v in others]


def _rank(x: Any) -> Any:
    """Return numbers of 32 bits without signs that are ordered as the elements are."""
    if x.dtype.kind == "u":
        return x
    if x.dtype.kind == "f":
        x = total_order_key(np.where(x != x, np.float32(np.nan), x + np.float32(0)))
    return x.view(np.uint32) ^ np.uint32(1 << 31)


def _order_of_keys(keys: Any) -> Any:
    """Return the stable order of numbers of 32 bits along the last axis."""
    joined = _with_places(keys)
    joined.sort(axis=-1)
    joined &= np.uint64((1 << 32) - 1)
    return joined.view(np.int64)


def _with_places(keys: Any) -> Any:
    """Return numbers of 64 bits: those of 32 bits, above their places along the last axis."""
    joined = np.empty(keys.shape, np.uint64)
    halves = joined.view(np.uint32).reshape(*keys.shape, 2)
    is_little = sys.byteorder == "little"
    halves[..., int(is_little)] = keys
    halves[..., int(not is_little)] = np.arange(keys.shape[-1], dtype=np.uint32)
    return joined


def _order_of_wide(x: Any) -> Any:
    """Return the stable order of numbers of 64 bits along the last axis."""
    order = np.argsort(x, axis=-1)
    ordered = np.take_along_axis(x, order, -1)
    left, right = ordered[..., :-1], ordered[..., 1:]
    differs = left != right
    if x.dtype.kind == "f":
        differs &= left == left  # NaN are last, and equal each other here
    if differs.all():
        return order
    ranks = np.zeros(x.shape, np.uint32)
    np.cumsum(differs, axis=-1, out=ranks[..., 1:])
    keys = np.empty_like(ranks)
    np.put_along_axis(keys, order, ranks, -1)
    return _order_of_keys(keys)


def along(x: Any, order: Any, axis: int) -> Any:
    """Return the elements at places along a dimension."""
    if x.ndim == 1:
        return x.take(order, mode="clip")  # "raise" fills a buffer first
    if axis < x.ndim - 1 or not x.flags.c_contiguous:
        return np.take_along_axis(x, order, axis)
    ahead = x.shape[:-1]  # the rows one after the other: half the time of an index for each axis
    return x.take(order + x.shape[-1] * np.arange(math.prod(ahead)).reshape(*ahead, 1))


def _is_disordered(x: Any, axis: int) -> Any:
    """Return whether a quarter of the neighbours are in descending order; of random ones half."""
    ahead = (slice(None),) * axis
    descents = x[(*ahead, slice(1, None))] < x[(*ahead, slice(None, -1))]
    return 4 * np.count_nonzero(descents) > descents.size


def _sort(x: Any, dimension: int, out: Any) -> None:
    """Sort by NumPy's vector loops where equal elements are alike in all their bits."""
    is_float = x.dtype.kind == "f" and x.dtype.itemsize > 2
    np.copyto(out, x)
    if is_float or x.dtype.kind in "iu":
        out.sort(axis=dimension)
        if not is_float or _is_alike(out, dimension):
            return
        np.copyto(out, x)
    out.sort(axis=dimension, kind="stable")


def _is_alike(ordered: Any, dimension: int) -> bool:
    """Return whether no NaN and no -0.0 is among floats that are in order."""
    if not ordered.size:
        return True
    last = ordered.take(-1, axis=dimension)
    if not (last == last).all():
        return False
    if ordered.ndim == 1:
        zero = ordered.dtype.type(0)
        zeros = ordered[ordered.searchsorted(zero) : ordered.searchsorted(zero, "right")]
    else:
        zeros = ordered[ordered == 0]
    return not np.signbit(zeros).any()


def _sort_fill(
    operands: Any, results: Any, *, dimension: int, is_stable: bool, num_keys: int
) -> None:
    if len(operands) == 1 and comparable(operands[0])[0] is operands[0]:
        _sort(operands[0], dimension, results[0])
        return
    found = _sort_numpy(*operands, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
    for result, value in zip(results, found, strict=True):
        np.copyto(result, value)


def _sort_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, dimension: int,
               is_stable: bool, num_keys: int) -> Any:  # fmt: skip
    if _is_ordered_by_packed_keys(b, avals_in, dimension):
        return b.traced(
            lambda *xs: _order_by_packed_keys(xs, dimension, num_keys), operands, avals_in,
            ("sort by packed keys", dimension, num_keys),
        )  # fmt: skip
    scalars = [shaped_array((), a.dtype) for a in avals_in for _ in range(2)]
    flag = shaped_array((), np.dtype(bool))

    def comes_before(inner: Builder, names: Any) -> Any:
        pairs = []
        for k in range(num_keys):
            pairs += _key_texts(inner, names[2 * k], names[2 * k + 1], scalars[2 * k])
        answer = ""
        for x, y, aval in reversed(pairs):
            less = compare_text(inner, "LT", x, y, aval)
            if answer:
                same = compare_text(inner, "EQ", x, y, aval)
                both = inner.same_type_op("stablehlo.and", [same, answer], flag)
                less = inner.same_type_op("stablehlo.or", [less, both], flag)
            answer = less
        return [answer]

    return b.op("stablehlo.sort", operands, avals_in, avals_out,
                f"dimension = {dimension} : i64, is_stable = {'true' if is_stable else 'false'}",
                b.region(scalars, comes_before, [flag]))  # fmt: skip


# XLA's sort for CPUs calls the comparison as a function, but for one array of integers whose
# comparison is "less than": there it is a sort of the C++ library with the comparison inlined.
#
# A key of 32 bits above the place of its element is such an integer, no two are equal, and its
# order is the stable one: sorts of 1,000 float32 take 15 us in the place of 82, those of 1,000
# keys with values 15 and 122. Wider keys and further ones are sorted by first, the last one first.

# They compile in 5 to 20 ms more, so short arrays are compared by the function.

_LEAST_TO_PACK = 128
_MOST_PLACES = 1 << 31
_LEAST_TO_MERGE = 1 << 12  # from here on sorting stably by merging takes half the time


def _is_ordered_by_packed_keys(b: Builder, avals: Sequence[ShapedArray], dimension: int) -> bool:
    aval = avals[0]
    is_simple = len(avals) == 1 and not dtypes.is_inexact(aval.dtype)
    is_fixed = type(aval.size) is int and 0 < aval.shape[dimension] <= _MOST_PLACES
    is_ours = is_fixed and aval.size >= _LEAST_TO_PACK and not is_simple
    return is_ours and b.platform == "cpu" and not is_split(b)


def _order_by_packed_keys(xs: Sequence[Any], dimension: int, num_keys: int) -> list[Any]:
    """Return Arrays in the stable order of the first ones along a dimension."""
    shape = xs[0].aval.shape
    places = bind("iota", dtype=dtypes.int64, shape=shape, dimension=dimension)
    order = None
    for key in reversed([key for x in xs[:num_keys] for key in _keys_of_32_bits(x)]):
        key = key if order is None else take_along(key, order, dimension)
        wide = bind("shift_left", convert(key, dtypes.int64), fill(shape, 32, dtypes.int64))
        (packed,) = sort_p.bind(
            bind("or", wide, places), dimension=dimension, num_keys=1,
            is_stable=shape[dimension] >= _LEAST_TO_MERGE,
        )  # fmt: skip
        low = bind("and", packed, fill(shape, (1 << 32) - 1, dtypes.int64))
        here = convert(low, dtypes.int32)
        order = here if order is None else take_along(order, here, dimension)
    return [take_along(x, order, dimension) for x in xs]


def _keys_of_32_bits(x: Any) -> list[Any]:
    """Return arrays of int32 that are ordered as the elements are, the most significant first."""
    dtype, shape = x.aval.dtype, x.aval.shape
    if dtypes.is_complex(dtype):
        parts = [bind("real", x), bind("imag", x)]
        return [convert(bind("ne", x, x), dtypes.int32),
                *[key for part in parts for key in _keys_of_32_bits(part)]]  # fmt: skip
    if dtypes.is_floating(dtype):
        x = x if dtype == dtypes.float64 else convert(x, dtypes.float32)
        x = _float_key(x)
    elif dtype in (dtypes.uint32, dtypes.uint64):
        bits = dtypes.int32 if dtype == dtypes.uint32 else dtypes.int64
        x = bind("bitcast_convert_type", x, new_dtype=bits)
        x = bind("xor", x, fill(shape, np.iinfo(bits).min, bits))
    if x.aval.dtype != dtypes.int64:
        return [convert(x, dtypes.int32)]
    upper = bind("shift_right_arithmetic", x, fill(shape, 32, dtypes.int64))
    lower = bind("bitcast_convert_type", convert(x, dtypes.uint32), new_dtype=dtypes.int32)
    lower = bind("xor", lower, fill(shape, np.iinfo(np.int32).min, dtypes.int32))
    return [convert(upper, dtypes.int32), lower]


def _float_key(x: Any) -> Any:
    """Return integers that are ordered as floats are: NaN last, -0.0 as 0.0, subnormals as such."""
    bits = dtypes.int32 if x.aval.dtype == dtypes.float32 else dtypes.int64
    shape, top = x.aval.shape, np.iinfo(bits).max
    infinity = int(np.array(np.inf, x.aval.dtype).view(bits))
    number = bind("bitcast_convert_type", x, new_dtype=bits)
    size = bind("and", number, fill(shape, top, bits))
    is_negative = bind("lt", number, fill(shape, 0, bits))
    is_nan = bind("gt", size, fill(shape, infinity, bits))
    signed = select(is_negative, bind("neg", size), size)
    return select(is_nan, fill(shape, top, bits), signed)


def _key_texts(b: Builder, x: str, y: str, aval: Any) -> list[tuple[str, str, Any]]:
    """Return pairs of scalars whose total order is that of x and y."""
    if dtypes.is_complex(aval.dtype):
        part, flag = shaped_array((), dtypes.to_floating_dtype(aval.dtype)), np.dtype(bool)
        of_x, of_y = (compare_text(b, "NE", v, v, aval, "FLOAT") for v in (x, y))
        pairs = [(of_x, of_y, shaped_array((), flag))]
        for op in ("stablehlo.real", "stablehlo.imag"):
            left, right = (b.op(op, [v], [aval], [part])[0] for v in (x, y))
            pairs += _key_texts(b, left, right, part)
        return pairs
    if dtypes.is_floating(aval.dtype):
        return [(_order_text(b, x, aval), _order_text(b, y, aval), aval)]
    return [(x, y, aval)]


def _order_text(b: Builder, x: str, aval: Any) -> str:
    """Make one zero and one NaN of all: the total order tells their signs apart.

    XLA for GPUs knows this form, in which both tests are of the element itself, and has CUB's radix
    sort do it (`sort_rewriter.cc`); any other is a comparison for it, and takes 2.6 times as long.
    """
    flag = shaped_array((), np.dtype(bool))
    zero, nan = b.scalar(0, aval.dtype), b.scalar(np.nan, aval.dtype)
    types = [flag, aval, aval]
    is_zero = compare_text(b, "EQ", x, zero, aval, "FLOAT")
    (kept,) = b.op("stablehlo.select", [is_zero, zero, x], types, [aval])
    is_nan = compare_text(b, "NE", x, x, aval, "FLOAT")
    return b.op("stablehlo.select", [is_nan, nan, kept], types, [aval])[0]


def compare_text(b: Builder, direction: str, x: str, y: str, aval: Any, how: str = "") -> str:
    """Write a comparison of two values of one type; floats are compared in their total order."""
    if not how:
        how = "SIGNED" if dtypes.is_signed_integer(aval.dtype) else "UNSIGNED"
        if dtypes.is_floating(aval.dtype):
            how = "TOTALORDER"
    out = shaped_array(aval.shape, np.dtype(bool))
    (name,) = b.op(
        "stablehlo.compare", [x, y], [aval, aval], [out],
        f"compare_type = #stablehlo<comparison_type {how}>, "
        f"comparison_direction = #stablehlo<comparison_direction {direction}>",
    )  # fmt: skip
    return name


def _sort_host(avals_in: Any, avals_out: Any, *, dimension: int, **_: Any) -> Any:
    """Have NumPy sort, 2 to 150 times as fast as XLA where it is more than entering Python costs.

    One array of 1,024 float32: 37 us and 87; one order of them 47 and 62, of 4,096 90 and 336.
    """
    shape = avals_in[0].shape
    if avals_in[0].size < (1024 if len(avals_in) == 1 else 4096) or shape[dimension] < 4:
        return None
    return without(tuple(range(len(shape))), dimension)


def _sort_jvp(primals: Any, tangents: Any, *, dimension: int, **params: Any) -> Any:
    shape = primals[0].aval.shape
    if all(type(t) is Zero for t in tangents):
        outs = sort_p.bind(*primals, dimension=dimension, **params)
        return outs, tuple([Zero(x.aval) for x in outs])
    places = bind("iota", dtype=index_dtype_for(shape[dimension]), shape=shape,
                  dimension=dimension)  # fmt: skip
    *sorted_, order = sort_p.bind(*primals, places, dimension=dimension, **params)
    dots = [t if type(t) is Zero else take_along(t, order, dimension) for t in tangents]
    return tuple(sorted_), tuple(dots)


def _sort_batch(axis: BatchAxis, operands: Any, dims: Any, *, dimension: int, **params: Any) -> Any:
    d = dims[0]
    xs = operands
    if d is not_mapped or any(other is not_mapped or other != d for other in dims):
        xs = [axis.to_front(x, k) for x, k in zip(operands, dims, strict=True)]
        d = 0
    outs = sort_p.bind(*xs, dimension=dimension + (d <= dimension), **params)
    return outs, (d,) * len(outs)


sort_p: Primitive = Primitive(
    "sort",
    shape=_sort_shape,
    numpy=_sort_numpy,
    stablehlo=upcast(upcast(_sort_stablehlo, TWO_BITS, np.int8), NAN_AS_NEGATIVE_ZERO, np.float32),
    jvp=_sort_jvp,
    transpose=undefined("it is not linear"),
    batch=_sort_batch,
    eager=Eager(costs.nothing, host=_sort_host, fill=_sort_fill),
    sharding=xprim.dimension_names.whole_along("dimension"),
)


# ----------------------------------------------------------------------------------------- top k
# top_k: the k greatest elements along an axis, in descending order, and where they stand.
#
# Floats are compared in their total order: NaN is the greatest (with its sign bit set, as 0/0
# makes it on some processors, the least), 0.0 is above -0.0. Of equal elements the one with the
# lower index comes first. Semantics: CHLO, operation top_k. The derivative reads the tangents at
# the indices.


def _top_k_shape(aval: ShapedArray, *, k: int, axis: int) -> tuple[ShapedArray, ...]:
    require(aval.dtype in REAL | BOOL, "top_k", "does not accept dtype {}.", aval.dtype)
    require_axis("top_k", axis, aval)
    if not 0 <= k <= aval.shape[axis]:
        raise ValueError(
            f"top_k: k must be from 0 to the size of the axis, {aval.shape[axis]}; got {k}."
        )
    if type(aval.shape[axis]) is int and aval.shape[axis] > 1 << 31:
        raise ValueError(
            f"top_k: top_k returns int32 indices, which will overflow for {aval.shape[axis]} "
            "elements."
        )
    shape = (*aval.shape[:axis], k, *aval.shape[axis + 1 :])
    return shaped_array(shape, aval.dtype, aval.weak_type), shaped_array(shape, dtypes.int32)


def _top_k_numpy(x: Any, *, k: int, axis: int) -> Any:
    values = x
    if x.dtype in dtypes.SMALL_FLOATS:  # some have one NaN only, with the bits of -0.0
        values = np.where(np.isnan(x), np.float32(np.nan), x.astype(np.float32))
    key = total_order_key(values) if dtypes.is_floating(x.dtype) else comparable(x)[0]
    # inverting the bits of integers turns their order round, and equal ones stay in place
    order = _first_places(np.invert(key), k, axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int32)


def _first_places(x: Any, k: int, axis: int) -> Any:
    """Return the first places of the stable order of integers or booleans along an axis."""
    size = x.shape[axis]
    if x.dtype.itemsize > 4 or k < 1 or size >= 1 << 32:
        return stable_order(x, axis)[(slice(None),) * axis + (slice(k),)]
    if axis != x.ndim - 1:
        return np.moveaxis(_first_places(np.moveaxis(x, axis, -1), k, x.ndim - 1), -1, axis)
    keys = _rank(x if x.dtype.itemsize == 4 else x.astype(np.int32))
    joined = _with_places(keys)
    if k < size:
        joined.partition(k - 1, axis=-1)
        joined = joined[..., :k]
    joined.sort(axis=-1)
    return (joined & np.uint64((1 << 32) - 1)).view(np.int64)


def _top_k_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, k: int, axis: int
) -> Any:
    (x,), (aval,) = operands, avals_in
    last = aval.ndim - 1
    if axis == last:
        return b.op("chlo.top_k", [x], [aval], avals_out, f"k = {k} : i64")
    swap = list(range(aval.ndim))
    swap[axis], swap[last] = last, axis  # its own inverse
    attribute = f"permutation = array<i64: {', '.join(map(str, swap))}>"

    def swap_aval(a: Any) -> Any:
        return shaped_array(tuple([a.shape[d] for d in swap]), a.dtype)

    moved = b.op("stablehlo.transpose", [x], [aval], [swap_aval(aval)], attribute)
    inner = [swap_aval(a) for a in avals_out]
    found = b.op("chlo.top_k", moved, [swap_aval(aval)], inner, f"k = {k} : i64")
    return [b.op("stablehlo.transpose", [v], [a], [out], attribute)[0]
            for v, a, out in zip(found, inner, avals_out, strict=True)]  # fmt: skip


# XLA's routine for float32 keeps the k greatest as it reads on: that costs k where NumPy selects in
# one time for all k. Other dtypes it sorts by a function that compares.
_ELEMENTS_A_RESULT = 40


def _top_k_host(avals_in: Any, avals_out: Any, *, k: int, axis: int) -> Any:
    (x,) = avals_in
    is_fast = x.dtype == dtypes.float32 and k * _ELEMENTS_A_RESULT < x.shape[axis]
    if k < 1 or x.size < _MANY or x.shape[axis] < _LONG or is_fast:
        return None
    return without(tuple(range(x.ndim)), axis)


def _top_k_jvp(primals: Any, tangents: Any, *, k: int, axis: int) -> Any:
    (x_dot,) = tangents
    values, places = top_k_p.bind(*primals, k=k, axis=axis)
    dot = Zero(values.aval) if type(x_dot) is Zero else take_along(x_dot, places, axis)
    return (values, places), (dot, Zero(places.aval))


def _top_k_batch(batch: Any, operands: Any, dims: Any, *, k: int, axis: int) -> Any:
    (d,) = dims
    return top_k_p.bind(operands[0], k=k, axis=axis + (d <= axis)), (d, d)


top_k_p: Primitive = Primitive(
    "top_k",
    shape=_top_k_shape,
    numpy=_top_k_numpy,
    stablehlo=upcast(
        upcast(_top_k_stablehlo, TWO_BITS + FOUR_BITS, np.int8), dtypes.SMALL_FLOATS, np.float32
    ),
    jvp=_top_k_jvp,
    transpose=undefined("it is not linear"),
    batch=_top_k_batch,
    eager=Eager(costs.nothing, host=_top_k_host),
    sharding=xprim.dimension_names.whole_along("axis"),
)


# ------------------------------------------------------------------------------------- partition
# partition: the elements, or with `places` their indices, with the one at `kth` along an axis where
# sorting puts it, none that is greater before it, and none that is less behind it.
#
# Order among the others is not defined. NumPy selects in a third of the time that sorting takes;
# short axes, and other platforms, sort. The derivative gives each element of the result the tangent
# of the one of equal rank.

_LEAST_TO_SELECT = 512  # elements along the axis


def _partition_shape(aval: ShapedArray, *, kth: int, axis: int, places: bool) -> Any:
    require_axis("partition", axis, aval)
    size = aval.shape[axis]
    if not 0 <= kth < size:
        raise ValueError(f"partition: kth={kth} is out of bounds for an axis of size {size}.")
    return (shaped_array(aval.shape, index_dtype_for(size)) if places else aval,)


def _partition_numpy(x: Any, *, kth: int, axis: int, places: bool) -> Any:
    if x.shape[axis] < _LEAST_TO_SELECT:
        operands = (x, _places_of(x, axis)) if places else (x,)
        return _sort_numpy(*operands, **_stably(axis))[-1:]
    keys = comparable(x)
    key = x if len(keys) > 1 else keys[0]  # NumPy orders complex numbers as they are ordered here
    if key is x and not places:
        return (np.partition(x, kth, axis),)
    order = np.argpartition(key, kth, axis)
    if places:
        return (order.astype(index_dtype_for(x.shape[axis])),)
    return (np.take_along_axis(x, order, axis),)


def _places_of(x: Any, axis: int) -> Any:
    size = x.shape[axis]
    shape = [1] * x.ndim
    shape[axis] = size
    return np.broadcast_to(np.arange(size, dtype=index_dtype_for(size)).reshape(shape), x.shape)


def _partition_fill(operands: Any, results: Any, *, kth: int, axis: int, places: bool) -> None:
    (x,), (out,) = operands, results
    if places or comparable(x)[0] is not x:
        np.copyto(out, _partition_numpy(x, kth=kth, axis=axis, places=places)[0])
        return
    np.copyto(out, x)
    out.partition(kth, axis)


def _partition_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, kth: int, axis: int, places: bool
) -> Any:
    def order(x: Any) -> Any:
        return _order_along(x, axis)[1:] if places else sort_p.bind(x, **_stably(axis))

    return b.traced(order, operands, avals_in, ("partition", axis, places))


def _stably(axis: int) -> dict[str, Any]:
    return {"dimension": axis, "is_stable": True, "num_keys": 1}


def _order_along(x: Any, axis: int) -> Any:
    """Return the sorted elements, and their places."""
    shape = x.aval.shape
    places = bind("iota", dtype=index_dtype_for(shape[axis]), shape=shape, dimension=axis)
    return sort_p.bind(x, places, **_stably(axis))


def _partition_host(avals_in: Any, avals_out: Any, *, axis: int, **_: Any) -> Any:
    (x,) = avals_in
    return without(tuple(range(x.ndim)), axis) if x.shape[axis] >= _LEAST_TO_SELECT else None


def _partition_jvp(primals: Any, tangents: Any, *, axis: int, places: bool, **params: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    outs = partition_p.bind(x, axis=axis, places=places, **params)
    if places or type(x_dot) is Zero:
        return outs, (Zero(outs[0].aval),)
    order = _order_along(x, axis)[1]
    ranks = _order_along(_order_along(outs[0], axis)[1], axis)[1]
    return outs, (take_along(x_dot, take_along(order, ranks, axis), axis),)


def _partition_batch(batch: Any, operands: Any, dims: Any, *, axis: int, **params: Any) -> Any:
    (d,) = dims
    return partition_p.bind(operands[0], axis=axis + (d <= axis), **params), (d,)


partition_p: Primitive = Primitive(
    "partition",
    shape=_partition_shape,
    numpy=_partition_numpy,
    stablehlo=_partition_stablehlo,
    jvp=_partition_jvp,
    transpose=undefined("it is not linear"),
    batch=_partition_batch,
    eager=Eager(costs.nothing, host=_partition_host, fill=_partition_fill),
    sharding=xprim.dimension_names.whole_along("axis"),
)
