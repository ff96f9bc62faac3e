"""sort: order the elements along one dimension; further operands follow the keys.

The first `num_keys` operands are compared, the first one first; all are permuted. Smaller elements
come first, NaN comes last, -0.0 equals 0.0, False comes before True; complex numbers are compared
by their real, then their imaginary parts, and those with a NaN in either part come last, as in
NumPy. Semantics: StableHLO specification, section sort.
The derivative permutes the tangents in the same way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.along_axis import take_along
from xnp.primitives.comparison import total_order_key
from xnp.primitives.dimensions import index_dtype_for
from xnp.primitives.operations import bind
from xnp.primitives.upcast_lowering import NAN_AS_NEGATIVE_ZERO, TWO_BITS, upcast
from xprim import (
    Primitive,
    ShapedArray,
    Zero,
    dimension_names,
    dtypes,
    not_mapped,
    shaped_array,
    undefined,
)
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()

_LONG = 4096  # shorter ones are ordered as quickly by merging, or both take microseconds


def _shape(*avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> Any:
    if not 1 <= num_keys <= len(avals):
        raise ValueError(
            f"sort: num_keys must be from 1 to the number of operands, {len(avals)}, "
            f"got {num_keys}."
        )
    shape = avals[0].shape
    if any(a.shape != shape for a in avals):
        raise TypeError(message(
            "sort", "all operands must have one shape.", got=", ".join(a.str_long() for a in avals),
        ))  # fmt: skip
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


def _numpy(*xs: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    if len(xs) == 1:
        keys = comparable(xs[0])
        if keys[0] is xs[0]:
            return (_sorted(xs[0], dimension),)
    else:
        keys = [key for x in xs[:num_keys] for key in comparable(x)]
    if len(keys) == 1:
        order = stable_order(keys[0], dimension)
    else:
        order = np.lexsort(keys[::-1], axis=dimension)
    return tuple([along(x, order, dimension) for x in xs])


def stable_order(x: Any, axis: int) -> Any:
    """Return the places of the elements in order, equal ones as they stand: NaN last, -0.0 as 0.0.

    NumPy orders 16 bits by counting (a radix sort) and 32 bits by merging, which takes twice as
    long where the elements are in no order: two orders by 16 bits, the lower ones first, are the
    same order. Merging is far quicker where runs are in order already, so neighbours are compared.
    """
    if x.dtype.itemsize != 4 or x.shape[axis] < _LONG or not _is_disordered(x, axis):
        return np.argsort(x, axis=axis, kind="stable")
    if x.dtype.kind == "f":
        x = total_order_key(np.where(x != x, np.float32(np.nan), x + np.float32(0)))
    order = np.argsort(x.astype(np.uint16), axis=axis, kind="stable")
    upper = (x >> 16).astype(f"{x.dtype.kind}2")
    return along(order, np.argsort(along(upper, order, axis), axis=axis, kind="stable"), axis)


def along(x: Any, order: Any, axis: int) -> Any:
    """Return the elements at places along a dimension."""
    return x[order] if x.ndim == 1 else np.take_along_axis(x, order, axis)


def _is_disordered(x: Any, axis: int) -> Any:
    """Return whether a quarter of the neighbours are in descending order; of random ones half."""
    ahead = (slice(None),) * axis
    descents = x[(*ahead, slice(1, None))] < x[(*ahead, slice(None, -1))]
    return 4 * np.count_nonzero(descents) > descents.size


def _sorted(x: Any, dimension: int) -> Any:
    """Sort by NumPy's vector loops where equal elements are alike in all their bits.

    The copy comes first: where there is no memory for it, nothing is worth looking at.
    """
    out = x.copy(order="K")
    is_alike = x.dtype.kind in "iu"
    if x.dtype.kind == "f" and x.dtype.itemsize > 2 and x.size:
        total = np.sum(out)  # NaN if there is one, or infinities of both signs
        is_alike = total == total and not np.signbit(out[out == 0]).any()
    out.sort(axis=dimension, kind=None if is_alike else "stable")
    return out


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, dimension: int,
               is_stable: bool, num_keys: int) -> Any:  # fmt: skip
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
        return [(_ordered_text(b, x, aval), _ordered_text(b, y, aval), aval)]
    return [(x, y, aval)]


def _ordered_text(b: Builder, x: str, aval: Any) -> str:
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


def _jvp(primals: Any, tangents: Any, *, dimension: int, **params: Any) -> Any:
    shape = primals[0].aval.shape
    if all(type(t) is Zero for t in tangents):
        outs = sort_p.bind(*primals, dimension=dimension, **params)
        return outs, tuple([Zero(x.aval) for x in outs])
    places = bind("iota", dtype=index_dtype_for(shape[dimension]), shape=shape,
                  dimension=dimension)  # fmt: skip
    *sorted_, order = sort_p.bind(*primals, places, dimension=dimension, **params)
    dots = [t if type(t) is Zero else take_along(t, order, dimension) for t in tangents]
    return tuple(sorted_), tuple(dots)


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, dimension: int, **params: Any) -> Any:
    d = dims[0]
    xs = operands
    if d is not_mapped or any(other is not_mapped or other != d for other in dims):
        xs = [axis.to_front(x, k) for x, k in zip(operands, dims, strict=True)]
        d = 0
    outs = sort_p.bind(*xs, dimension=dimension + (d <= dimension), **params)
    return outs, (d,) * len(outs)


sort_p: Primitive = Primitive(
    "sort",
    shape=_shape,
    numpy=_numpy,
    stablehlo=upcast(upcast(_stablehlo, TWO_BITS, np.int8), NAN_AS_NEGATIVE_ZERO, np.float32),
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=_batch,
    cost=costs.nothing,
    dimensions=dimension_names.whole_along("dimension"),
)
