"""Reductions over axes: by one operation (sum, max, and, ...), or by a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xprim
from xnp.primitives import costs, table
from xnp.primitives.lowering_text import WIDER, compare, is_split, upcast
from xnp.primitives.table import NATIVE, add, bind, broadcast_to, join, mul, reshape, slice_dim
from xprim import ZERO, ClosedJaxpr, Primitive, ShapedArray, Zero, dtypes, shaped_array, undefined
from xprim.contracts import BatchAxis, Builder, JVPHandle, is_in_loop, outline
from xprim.errors import MissingRuleError, message
from xprim.jaxpr import interpret
from xprim.requirements import require, require_dtype

__all__ = ["greatest", "least"]

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------ reductions
# Reductions over axes by one operation: sum, product, maximum, minimum, and, or, exclusive or.
#
# `axes` is a sorted tuple of non-negative ints. A reduction over no elements gives the neutral
# element of the operation. Sums and products of floats of 16 bits and fewer are kept in float32
# and rounded once; maxima and minima of numbers that hold a NaN are NaN.
#
# Semantics: StableHLO specification, section reduce.

Init = Callable[[np.dtype[Any]], Any]


def reduction_shape(name: str, kinds: table.Kinds) -> Callable[..., tuple[ShapedArray, ...]]:
    """Return the shape rule of a reduction."""

    def shape_rule(aval: ShapedArray, *, axes: tuple[int, ...]) -> tuple[ShapedArray, ...]:
        require_dtype(name, aval, kinds)
        require(
            len(set(axes)) == len(axes), name, "duplicate value in 'axes' of a reduction: {}.", axes
        )
        require(
            all(0 <= a < aval.ndim for a in axes), name,
            "axes must be within the operand's {} dimensions.", aval.ndim, got=axes,
        )  # fmt: skip
        shape = tuple([n for i, n in enumerate(aval.shape) if i not in axes])
        return (shaped_array(shape, aval.dtype, aval.weak_type),)

    return shape_rule


def total_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which sums and products are kept: at least float32 for floats."""
    if dtype in NATIVE:
        return dtype
    return dtypes.float32 if dtypes.is_floating(dtype) else dtypes.int32


def reduction_stablehlo(
    op: str, init: Init, total: Callable[[Any], Any] = lambda dtype: dtype
) -> Callable[..., Any]:
    """Return the rule of a reduction by one operation, from the dtype's neutral element.

    Args:
      op: the StableHLO operation on two scalars.
      init: from a dtype to the neutral element.
      total: from the operand's dtype to the one that the reduction is kept in.
    """

    def stablehlo_rule(
        b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axes: Any
    ) -> Any:
        (x,), (aval,), (out,) = operands, avals_in, avals_out
        dtype = total(aval.dtype)
        x, scalar = b.convert(x, aval, dtype), shaped_array((), dtype)
        avals = [shaped_array(aval.shape, dtype), scalar]
        wide = shaped_array(out.shape, dtype)
        inside = f": {', '.join(map(str, axes))}" if axes else ""
        (result,) = b.op("stablehlo.reduce", [x, b.scalar(init(dtype), dtype)], avals, [wide],
                         f"dimensions = array<i64{inside}>", reducer(b, op, dtype))  # fmt: skip
        return [b.convert(result, wide, out.dtype)]

    return stablehlo_rule


# XLA for CPUs makes no vector code of a reduction to integers or booleans along the last dimension:
# the least of a million int32 takes 720 us. The same slices combined element by element are vector
# code, and leave a sixteenth to reduce: 60 us; whether any of a million holds 25 us for 100.

_SLICES = 16
_LEAST_TO_SLICE = 4096
_ROWS = 32

# Whether any or all of many booleans hold is known early as a rule: a loop over blocks ends there.
# A million take 0.4 of the time where the first block tells, and the same to the end.
_LEAST_TO_LEAVE = 1 << 17
_MOST_TO_LEAVE = (1 << 31) - (1 << 14)  # places are int32
_BLOCK_OF_TRUTHS = 1 << 14
_MOST_OF_SHORT = 1 << 22  # takes up to 100 us, so the program may be one that runs in its caller


def in_slices(name: str, rule: Callable[..., Any], combine: str, repeats: bool) -> (
    Callable[..., Any]
):  # fmt: skip
    """Return a `stablehlo` rule that first combines slices, on CPUs where that is vector code.

    Args:
      name: of the reduction.
      rule: what writes it otherwise.
      combine: the primitive that combines two arrays.
      repeats: whether a repeated element leaves the result as it is, so that slices may overlap.
    """

    def stablehlo_rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axes: Any) -> (
        Any
    ):  # fmt: skip
        if b.platform != "cpu" or is_split(b) or not _is_sliced(avals_in[0], axes):
            return rule(b, operands, avals_in, avals_out, axes=axes)
        are_truths = dtypes.is_bool(avals_in[0].dtype) and repeats
        if are_truths and avals_out[0].size == 1 and (
            _LEAST_TO_LEAVE <= avals_in[0].size < _MOST_TO_LEAVE
        ):  # fmt: skip
            return _iterate_until_settled(b, name, combine, operands[0], avals_in[0], avals_out[0])
        reduce = _reduce_slices if repeats else _reduce_rows
        if are_truths and not is_in_loop(b):
            reduce = _reduce_bytes
        key = ("in slices", reduce.__name__, name, axes)
        return b.traced(lambda x: (reduce(name, combine, x, axes),), operands, avals_in, key)

    return stablehlo_rule


def _reduce_bytes(name: str, combine: str, x: Any, axes: tuple[int, ...]) -> Any:
    """Reduce booleans as the extremes of bytes, which a library does, without code to compile.

    XLA writes a tree of three kernels for booleans. A loop without calls stays one kernel.
    """
    extreme = "reduce_max" if name == "reduce_or" else "reduce_min"
    found = bind(extreme, table.convert(x, dtypes.int8), axes=axes)
    return table.convert(found, dtypes.bool_)


def _reduce_slices(name: str, combine: str, x: Any, axes: tuple[int, ...]) -> Any:
    """Combine slices, of which the last may overlap the one before, then reduce one slice."""
    first = _first_of_last_run(x.aval.ndim, axes)
    size = math.prod(x.aval.shape[first:])
    width = -(-size // _SLICES)
    x = reshape(x, (*x.aval.shape[:first], size))
    starts = [min(i * width, size - width) for i in range(_SLICES)]
    parts = [slice_dim(x, first, start, start + width) for start in starts]
    while len(parts) > 1:
        parts = [bind(combine, *pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
    return bind(name, parts[0], axes=tuple([d for d in axes if d <= first]))


def _reduce_rows(name: str, combine: str, x: Any, axes: tuple[int, ...]) -> Any:
    """Reduce slices as the rows of a matrix, and the few elements after them apart.

    A million int32 are summed in 60 us for 155; the sum of 16 slices takes more for booleans.
    """
    first = _first_of_last_run(x.aval.ndim, axes)
    before, size = x.aval.shape[:first], math.prod(x.aval.shape[first:])
    width = size // _ROWS
    x = reshape(x, (*before, size))
    matrix = reshape(slice_dim(x, first, 0, _ROWS * width), (*before, _ROWS, width))
    axes = tuple([d for d in axes if d <= first])
    result = bind(name, bind(name, matrix, axes=(first,)), axes=axes)
    if size % _ROWS:
        rest = bind(name, slice_dim(x, first, _ROWS * width, size), axes=axes)
        result = bind(combine, result, rest)
    return result


def _iterate_until_settled(
    b: Builder, name: str, combine: str, x: str, aval: ShapedArray, out: ShapedArray
) -> list[str]:
    """Write whether any or all of many booleans hold, by a loop that ends where it is known."""
    place, truth = shaped_array((), dtypes.int32), shaped_array((), dtypes.bool_)
    block = shaped_array((_BLOCK_OF_TRUTHS,), dtypes.bool_)
    flat, is_any = shaped_array((aval.size,), dtypes.bool_), name == "reduce_or"
    (x,) = b.op("stablehlo.reshape", [x], [aval], [flat])
    carried = [place, truth]  # where the next block starts, and the result of those before

    def reduce_block(part: Any) -> tuple[Any]:
        return (_reduce_slices(name, combine, part, (0,)),)

    def condition(inner: Builder, names: Any) -> list[str]:
        is_left = compare(inner, "LT", names[0], inner.scalar(aval.size, place.dtype), place)
        settled = inner.scalar(is_any, truth.dtype)
        is_open = compare(inner, "NE", names[1], settled, truth)
        return [inner.same_type_op("stablehlo.and", [is_left, is_open], truth)]

    def body(inner: Builder, names: Any) -> list[str]:
        # the last block starts early enough to be full
        (part,) = inner.op("stablehlo.dynamic_slice", [x, names[0]], [flat, place], [block],
                           f"slice_sizes = array<i64: {_BLOCK_OF_TRUTHS}>")  # fmt: skip
        (found,) = inner.traced(reduce_block, [part], [block], ("in slices", name))
        step = inner.scalar(_BLOCK_OF_TRUTHS, place.dtype)
        return [inner.same_type_op("stablehlo.add", [names[0], step], place), found]

    regions = b.regions(b.region(carried, condition, [truth]), b.region(carried, body, carried))
    starts = [b.scalar(0, place.dtype), b.scalar(not is_any, truth.dtype)]
    is_short = aval.size <= _MOST_OF_SHORT
    attributes = 'mhlo.frontend_attributes = {is_short = "true"}' if is_short else ""
    result = b.op("stablehlo.while", starts, carried, carried, attributes, regions)[1]
    return b.op("stablehlo.reshape", [result], [truth], [out])


def _first_of_last_run(ndim: int, axes: tuple[int, ...]) -> int:
    """Return the first of the last dimensions that are all reduced."""
    first = ndim
    while first - 1 in axes:
        first -= 1
    return first


def _is_sliced(aval: ShapedArray, axes: tuple[int, ...]) -> bool:
    is_scalar_code = dtypes.is_bool(aval.dtype) or (
        dtypes.is_integer(aval.dtype) and aval.dtype.itemsize > 1
    )
    if not is_scalar_code or type(aval.size) is not int or aval.size < _LEAST_TO_SLICE:
        return False
    return math.prod(aval.shape[_first_of_last_run(aval.ndim, axes) :]) >= _SLICES**2


def reducer(b: Builder, op: str, dtype: np.dtype[Any]) -> str:
    """Return the region that combines two scalars by one operation, complex extrema among them."""
    if dtypes.is_complex(dtype) and op in _CHOOSERS:
        return _complex_chooser(b, op, shaped_array((), dtype))
    return b.reducer(op, dtype)


_CHOOSERS = {"stablehlo.maximum": "GT", "stablehlo.minimum": "LT"}


def _complex_chooser(b: Builder, op: str, scalar: ShapedArray) -> str:
    """Choose by real parts, then imaginary parts, as NumPy does; the first NaN wins."""
    part = shaped_array((), np.zeros((), scalar.dtype).real.dtype)
    truth = shaped_array((), dtypes.bool_)

    def body(inner: Builder, names: Any) -> Any:
        def compare(direction: str, pair: Any, aval: Any) -> Any:
            attribute = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
            return inner.op("stablehlo.compare", pair, [aval, aval], [truth], attribute)[0]

        def parts(which: str) -> list[str]:
            return [inner.op(f"stablehlo.{which}", [n], [scalar], [part])[0] for n in names]

        re, im = parts("real"), parts("imag")
        better = inner.op(
            "stablehlo.select",
            [compare("EQ", re, part), compare(_CHOOSERS[op], im, part),
             compare(_CHOOSERS[op], re, part)],
            [truth] * 3, [truth],
        )[0]  # fmt: skip
        result = names[1]
        nan_x, nan_y = [compare("NE", [name, name], scalar) for name in names]
        for mask, name in ((better, names[0]), (nan_y, names[1]), (nan_x, names[0])):
            values = [mask, name, result]
            result = inner.op("stablehlo.select", values, [truth, scalar, scalar], [scalar])[0]
        return [result]

    return b.region([scalar, scalar], body, [scalar])


def reduction_batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the batch rule of a reduction: the axes move past the batch dimension."""

    def batch_rule(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
        (x,), (d,) = operands, dims
        moved = tuple([a + (a >= d) for a in params.pop("axes")])
        out = d - sum([a < d for a in moved])
        return primitive().bind(x, axes=moved, **params), (out,)

    return batch_rule


# ----------------------------------------------------------------------------------------- NumPy


_MANY_ROWS = 256


def _sum_numpy(x: Any, *, axes: Any) -> Any:
    dtype = x.dtype
    if dtype in NATIVE:
        if len(axes) < x.ndim and axes and axes[-1] == len(axes) - 1 and x.flags.c_contiguous:
            rows = math.prod(x.shape[: len(axes)])
            if rows >= _MANY_ROWS:
                return (_sum_of_rows(x.reshape(rows, -1)).reshape(x.shape[len(axes) :]),)
        return (np.add.reduce(x, axis=axes, dtype=dtype),)
    total = np.add.reduce(x, axis=axes, dtype=total_dtype(dtype))
    return (np.asarray(total).astype(dtype),)


def _sum_ufunc(avals_in: Any, avals_out: Any, *, axes: Any) -> xprim.NumpyCall | None:
    (aval,) = avals_in
    if len(axes) != aval.ndim or aval.dtype not in NATIVE:  # else the rule may sum in two steps
        return None
    return xprim.NumpyCall(np.add.reduce, (xprim.Operand(0), axes, aval.dtype))


def _sum_of_rows(x: Any) -> Any:
    """Sum a matrix over its rows in two steps of about the square root of their number.

    NumPy adds rows one by one: that loses digits (for 10,000 rows 5e-6 of the sum, in two steps
    3e-7; XLA 9e-8), and takes ten times as long where rows are short.
    """
    rows, columns = x.shape
    block = 1 << (rows.bit_length() // 2)
    whole = rows // block * block
    partial = np.add.reduce(
        x[:whole].reshape(rows // block, block * columns), axis=0, dtype=x.dtype
    )
    total = np.add.reduce(partial.reshape(block, columns), axis=0, dtype=x.dtype)
    if whole < rows:
        total += np.add.reduce(x[whole:], axis=0, dtype=x.dtype)
    return total


def _prod_numpy(x: Any, *, axes: Any) -> Any:
    dtype = x.dtype
    total = np.multiply.reduce(x, axis=axes, dtype=total_dtype(dtype))
    return (total if dtype in NATIVE else np.asarray(total).astype(dtype),)


def _chooser_numpy(ufunc: Any, init: Init) -> Callable[..., Any]:
    def numpy_rule(x: Any, *, axes: Any) -> Any:
        dtype = x.dtype
        if x.size == 0:
            shape = tuple([n for i, n in enumerate(x.shape) if i not in axes])
            return (np.full(shape, init(dtype), dtype),)
        if dtype in NATIVE:
            return (ufunc.reduce(x, axis=axes),)
        return (np.asarray(ufunc.reduce(x.astype(total_dtype(dtype)), axis=axes)).astype(dtype),)

    return numpy_rule


def _bits_numpy(ufunc: Any, init: Init) -> Callable[..., Any]:
    def numpy_rule(x: Any, *, axes: Any) -> Any:
        dtype = x.dtype
        wide = x if dtype in NATIVE else x.astype(np.int32)
        total = np.asarray(ufunc.reduce(wide, axis=axes, dtype=wide.dtype))
        return (total.astype(dtype, copy=False),)

    return numpy_rule


def least(dtype: np.dtype[Any]) -> Any:
    """Return the least value of a dtype, where `max` starts: -inf, or the least integer."""
    return _extreme(dtype, -1)


def greatest(dtype: np.dtype[Any]) -> Any:
    """Return the greatest value of a dtype, where `min` starts: inf, or the greatest integer."""
    return _extreme(dtype, 1)


def _extreme(dtype: np.dtype[Any], sign: int) -> Any:
    if dtypes.is_bool(dtype):
        return sign > 0
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        return int(info.max if sign > 0 else info.min)
    if dtypes.is_complex(dtype):
        return complex(sign * np.inf, sign * np.inf)
    infinity = np.asarray(sign * np.inf).astype(dtype)
    if np.isinf(infinity.astype(np.float32)):
        return infinity[()]
    limits = dtypes.finfo(dtype)  # a dtype without infinity
    return limits.max if sign > 0 else limits.min


def all_ones(dtype: np.dtype[Any]) -> Any:
    """Return the value of a dtype with all bits set, where `and` starts."""
    if dtypes.is_bool(dtype):
        return True
    return -1 if dtypes.is_signed_integer(dtype) else int(dtypes.iinfo(dtype).max)


# ----------------------------------------------------------------------------------- derivatives


def _sum_transpose(cts: Any, x: Any, *, axes: Any) -> Any:
    kept = tuple([i for i in range(x.aval.ndim) if i not in axes])
    return (broadcast_to(cts[0], x.aval.shape, kept),)


def reduce_axis_last(x: Any, axes: tuple[int, ...]) -> Any:
    """Bring the reduced axes to the end, as one."""
    kept = [i for i in range(x.aval.ndim) if i not in axes]
    shape = [x.aval.shape[i] for i in kept]
    count = 1
    for a in axes:
        count *= x.aval.shape[a]
    return reshape(table.permute(x, [*kept, *axes]), [*shape, count])


def neighbours(x: Any) -> tuple[Any, Any, list[Any]]:
    """Split the last axis in elements 0, 2, 4, ... and 1, 3, 5, ... and, when it is odd, a rest.

    Joining the two keeps the elements in order, so the operation need not commute.
    """
    last, n = x.aval.ndim - 1, x.aval.shape[-1]
    paired = n - n % 2
    rest = [slice_dim(x, last, paired, n)] if n % 2 else []
    return slice_dim(x, last, 0, paired, 2), slice_dim(x, last, 1, paired, 2), rest


def _prod_jvp(primals: Any, tangents: Any, *, axes: Any) -> Any:
    # Multiply neighbours, (a, a_dot) (b, b_dot) = (a b, a b_dot + a_dot b), until one element is
    # left: no division, so zeros among the factors are right, at every order of derivative.
    (x,), (x_dot,) = primals, tangents
    outs = reduce_prod_p.bind(x, axes=axes)
    if type(x_dot) is Zero:
        return outs, (Zero(outs[0].aval.strong()),)
    out = outs[0].aval
    x, x_dot = reduce_axis_last(x, axes), reduce_axis_last(x_dot, axes)
    if x.aval.shape[-1] == 0:
        return outs, (table.fill(out.shape, 0, out.dtype),)
    last = x.aval.ndim - 1
    while x.aval.shape[-1] > 1:
        a, b, rest = neighbours(x)
        a_dot, b_dot, rest_dot = neighbours(x_dot)
        x_dot = join([add(mul(a, b_dot), mul(a_dot, b)), *rest_dot], last)
        x = join([mul(a, b), *rest], last)
    return outs, (reshape(x_dot, out.shape),)


def _chooser_jvp(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def jvp_rule(primals: Any, tangents: Any, *, axes: Any) -> Any:
        # elements that tie for the extreme share the derivative equally; so does NaN, which wins
        (x,), (x_dot,) = primals, tangents
        outs = primitive().bind(x, axes=axes)
        y = outs[0]
        if type(x_dot) is Zero or not dtypes.is_inexact(y.aval.dtype):
            return outs, (Zero(y.aval.strong()),)
        if x.aval.size == 0:
            return outs, (table.fill(y.aval.shape, 0, y.aval.dtype),)
        kept = tuple([i for i in range(x.aval.ndim) if i not in axes])
        equal = bind("eq", x, broadcast_to(y, x.aval.shape, kept))
        chosen = bind("or", equal, bind("ne", x, x))
        # selected, not multiplied by 0: elements that are not chosen may have infinite derivatives
        dots = table.select(chosen, x_dot, table.fill(x.aval.shape, 0, x_dot.aval.dtype))
        count = table.sum_axes(table.convert(chosen, y.aval.dtype), axes)
        return outs, (table.div(table.sum_axes(dots, axes), count),)

    return jvp_rule


# --------------------------------------------------------------------------------------- the rows


_NOT_LINEAR = undefined("it is not linear")


@xprim.primitive_maker
def _reduction(
    name: str, kinds: Any, numpy: Any, operation: str, init: Init, jvp: Any,
    transpose: Any = _NOT_LINEAR, total: Callable[[Any], Any] = lambda dtype: dtype,
    ufunc: Any = None, *, combine: str, repeats: bool = False,
) -> Primitive:  # fmt: skip
    """Define a reduction along axes, by the operation of two elements and its neutral element.

    `combine` is the primitive of two arrays; for `repeats` see `in_slices`.
    """
    rule = reduction_stablehlo(operation, init, total)
    primitive = Primitive(
        name,
        shape=reduction_shape(name, kinds),
        numpy=numpy,
        stablehlo=in_slices(name, rule, combine, repeats),
        jvp=jvp,
        transpose=transpose,
        batch=reduction_batch(lambda: primitive),
        eager=xprim.Eager(costs.reduction, ufunc=ufunc),
        sharding=xprim.dimension_names.without("axes"),
    )
    return primitive


@xprim.primitive_maker
def _chooser(name: str, ufunc: Any, init: Init, operation: str, combine: str) -> Primitive:
    jvp = _chooser_jvp(lambda: primitive)
    numpy = _chooser_numpy(ufunc, init)
    primitive = _reduction(
        name, table.ANY, numpy, operation, init, jvp, combine=combine, repeats=True
    )
    return primitive


@xprim.primitive_maker
def _bitwise(
    name: str, ufunc: Any, init: Init, operation: str, combine: str, repeats: bool = True
) -> Primitive:
    no_cotangents = undefined("integers and booleans have no cotangents")
    numpy = _bits_numpy(ufunc, init)
    return _reduction(
        name, table.BITS, numpy, operation, init, ZERO, no_cotangents, combine=combine,
        repeats=repeats
    )  # fmt: skip


reduce_sum_p: Primitive = _reduction(
    "reduce_sum", table.NUMBER, _sum_numpy, "stablehlo.add", lambda dtype: 0, xprim.LINEAR,
    _sum_transpose,
    total_dtype, _sum_ufunc, combine="add",
)  # fmt: skip
reduce_sum_p.define("uses_all", True)
reduce_prod_p: Primitive = _reduction(
    "reduce_prod", table.NUMBER, _prod_numpy, "stablehlo.multiply", lambda dtype: 1, _prod_jvp,
    total=total_dtype, combine="mul",
)  # fmt: skip
reduce_max_p = _chooser("reduce_max", np.maximum, least, "stablehlo.maximum", "max")
reduce_min_p = _chooser("reduce_min", np.minimum, greatest, "stablehlo.minimum", "min")
reduce_and_p = _bitwise("reduce_and", np.bitwise_and, all_ones, "stablehlo.and", "and")
reduce_or_p = _bitwise("reduce_or", np.bitwise_or, lambda dtype: 0, "stablehlo.or", "or")
reduce_xor_p = _bitwise(
    "reduce_xor", np.bitwise_xor, lambda dtype: 0, "stablehlo.xor", "xor", False
)


# ---------------------------------------------------------------------------------------- center
# center: x - mean(x) over axes, and once more, for what the rounding of the mean left.
#
# Linear and symmetric, so it is its own transpose. XLA does not inline it on the CPU: all that
# reads the distances would compute both means again, and what x comes from.


def _center(x: Any, axes: tuple[int, ...]) -> Any:
    shape = x.aval.shape
    kept = tuple([i for i in range(len(shape)) if i not in axes])
    count = table.scalar_like(x, math.prod([shape[a] for a in axes]))
    for _ in range(2):
        x = table.sub(x, broadcast_to(table.div(table.sum_axes(x, axes), count), shape, kept))
    return x


def _center_shape(aval: ShapedArray, *, axes: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    reduction_shape("center", table.INEXACT)(aval, axes=axes)
    return (aval,)


def _center_numpy(x: Any, *, axes: tuple[int, ...]) -> Any:
    found = x.astype(total_dtype(x.dtype), copy=False)
    for _ in range(2 if x.size else 0):
        found = found - found.mean(axes, keepdims=True)
    return (found.astype(x.dtype, copy=False),)


def _center_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axes: tuple[int, ...]
) -> list[str]:
    key = ("center", axes)

    def body(inner: Builder, names: list[str]) -> list[str]:
        return list(inner.traced(lambda x: [_center(x, axes)], names, avals_in, key=key))

    return outline(b, body, operands, avals_in, avals_out, key, "center")


def _center_transpose(cts: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    return center_p.bind(cts[0], axes=axes)


def _center_batch(axis: BatchAxis, operands: Any, dims: Any, *, axes: tuple[int, ...]) -> Any:
    moved = tuple([a + (a >= dims[0]) for a in axes])
    return center_p.bind(*operands, axes=moved), dims


center_p: Primitive = Primitive(
    "center",
    shape=_center_shape,
    numpy=_center_numpy,
    stablehlo=upcast(_center_stablehlo, WIDER, np.float32),
    jvp=xprim.LINEAR,
    transpose=_center_transpose,
    batch=_center_batch,
    eager=xprim.Eager(costs.reduction),
    sharding=xprim.dimension_names.whole_along("axes"),
)


# ---------------------------------------------------------------------------------------- reduce
# reduce: combine the elements along dimensions by a program of the user's.
#
#     computation(accumulators..., elements...) -> accumulators...
#
# It is a jaxpr over scalars. A program of elementwise primitives joins the elements in one order,
# evaluated or compiled: from the left, starting at `init_values`; where there are more than 32,
# each 32 neighbours from the left first, and so on with the results, so that many are joined at
# once. The derivative's program is reduced in the same way, over pairs (x, x_dot).
#
# Any other program must be associative, and `init_values` neutral: compilers choose the order.
#
# Semantics: StableHLO specification, section reduce.


def _shape(*avals: ShapedArray, jaxpr: ClosedJaxpr, dimensions: tuple[int, ...]) -> (
    tuple[ShapedArray, ...]
):  # fmt: skip
    count = len(avals) // 2
    operands = avals[:count]
    shape = operands[0].shape
    require(
        all(a.shape == shape for a in operands), "reduce", "the operands' shapes differ.",
        got=tuple(operands), error=TypeError,
    )  # fmt: skip
    require(
        len(set(dimensions)) == len(dimensions) and all(0 <= d < len(shape) for d in dimensions),
        "reduce", "dimensions must be distinct and within the operands' {} dimensions.", len(shape),
        got=dimensions,
    )  # fmt: skip
    kept = tuple([n for i, n in enumerate(shape) if i not in dimensions])
    return tuple([shaped_array(kept, a.dtype) for a in operands])


def is_elementwise(closed: ClosedJaxpr) -> bool:
    """Return whether a program acts on each element alone, so that arrays can be given to it."""
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive.rules["batch"] is xprim.ELEMENTWISE:
            continue
        inner = eqn.params.get("jaxpr")
        if not (eqn.primitive.name == "jit" and isinstance(inner, ClosedJaxpr)
                and is_elementwise(inner)):  # fmt: skip
            return False
    return all(c.aval.ndim == 0 for c in closed.consts)


def _flat(closed: ClosedJaxpr, operands: Any) -> Any:
    """Run an elementwise program on arrays: inner calls are entered, as they hold scalar types."""
    return interpret(closed.jaxpr, closed.consts, operands, _on_arrays)


def _on_arrays(eqn: xprim.Equation, operands: Sequence[Any]) -> Any:
    if eqn.primitive.rules["batch"] is xprim.ELEMENTWISE:
        return eqn.primitive.bind(*operands, **eqn.params)
    return _flat(eqn.params["jaxpr"], operands)


BLOCK = 32  # elements that are joined from the left before the results are


def reduce_in_order(closed: ClosedJaxpr, operands: Any, inits: Any, dimensions: Any) -> Any:
    """Reduce in terms of the primitives of an elementwise program.

    `inits` may have leading dimensions (of a batch), which are the operands' leading kept ones.
    """
    xs = [reduce_axis_last(x, dimensions) for x in operands]
    shape = xs[0].aval.shape[:-1]
    while xs[0].aval.shape[-1] > BLOCK:
        xs = _join_blocks(closed, xs)
    starts = [broadcast_to(i, shape, tuple(range(i.aval.ndim))) for i in inits]
    return _from_the_left(closed, starts, xs, 0)


def _join_blocks(closed: ClosedJaxpr, xs: Any) -> Any:
    """Join the elements of each block of the last axis; the last block may be smaller."""
    shape, n = xs[0].aval.shape[:-1], xs[0].aval.shape[-1]
    last = len(shape)
    whole = n - n % BLOCK
    blocks = [reshape(slice_dim(x, last, 0, whole), (*shape, whole // BLOCK, BLOCK)) for x in xs]
    joined = [_join_elements(closed, blocks)]
    if whole < n:
        rest = _join_elements(closed, [slice_dim(x, last, whole, n) for x in xs])
        joined.append([reshape(y, (*shape, 1)) for y in rest])
    return [join(list(parts), last) for parts in zip(*joined, strict=True)]


def _join_elements(closed: ClosedJaxpr, xs: Any) -> Any:
    return _from_the_left(closed, [_element(x, 0) for x in xs], xs, 1)


def _from_the_left(closed: ClosedJaxpr, totals: Any, xs: Any, first: int) -> Any:
    """Join totals with the elements along the last axis, one after the other."""
    shape = xs[0].aval.shape[:-1]
    for k in range(first, xs[0].aval.shape[-1]):
        totals = _flat(closed, [*totals, *[_element(x, k) for x in xs]])
        totals = [broadcast_to(y, shape) for y in totals]
    return totals


def _element(x: Any, k: int) -> Any:
    return table.item(x, k, x.aval.ndim - 1)


def _numpy(*arrays: Any, jaxpr: ClosedJaxpr, dimensions: Any) -> Any:
    count = len(arrays) // 2
    operands, inits = arrays[:count], arrays[count:]
    if is_elementwise(jaxpr):
        return tuple(reduce_in_order(jaxpr, operands, inits, dimensions))
    return _one_by_one(jaxpr, [reduce_axis_last(x, dimensions) for x in operands], inits)


def _one_by_one(jaxpr: ClosedJaxpr, xs: Any, inits: Any) -> Any:
    """Reduce the last axis element after element, with a program of any kind."""
    shape, n = xs[0].aval.shape[:-1], xs[0].aval.shape[-1]
    size = xs[0].aval.size // n if n else 0
    rows = [reshape(x, (size * n,)) for x in xs]
    done = []
    for row in range(size):
        totals = list(inits)
        for i in range(row * n, row * n + n):
            elements = [table.item(x, i) for x in rows]
            totals = xprim.eval_closed(jaxpr, *totals, *elements)
        done.append([reshape(t, (1,)) for t in totals])
    if not done:
        return tuple([broadcast_to(i, shape) for i in inits])
    return tuple([reshape(join(column, 0), shape) for column in zip(*done, strict=True)])


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, jaxpr: ClosedJaxpr,
               dimensions: Any) -> Any:  # fmt: skip
    count = len(operands) // 2
    if is_elementwise(jaxpr):
        return b.traced(
            lambda *xs: reduce_in_order(jaxpr, xs[:count], xs[count:], dimensions),
            operands, avals_in, ("reduce", jaxpr, dimensions),
        )  # fmt: skip
    scalars = [shaped_array((), a.dtype) for a in avals_in[:count]]
    region = b.region(
        [*scalars, *scalars], lambda inner, names: inner.inline(jaxpr, names), scalars
    )
    inside = f": {', '.join(map(str, dimensions))}" if dimensions else ""
    return b.op("stablehlo.reduce", operands, avals_in, avals_out,
                f"dimensions = array<i64{inside}>", region)  # fmt: skip


def _jvp(
    handle: JVPHandle, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, dimensions: Any
) -> Any:
    outs = reduce_p.bind(*primals, jaxpr=jaxpr, dimensions=dimensions)
    out_dots = [Zero(handle.tangent_aval(y)) for y in outs]
    if all(type(t) is Zero for t in tangents):
        return outs, tuple(out_dots)
    count = len(outs)
    smooth = [dtypes.is_inexact(y.aval.dtype) for y in outs]
    program, _ = handle.jvp_jaxpr(jaxpr, [*smooth, *smooth], True)
    if not is_elementwise(program):
        raise MissingRuleError(message(
            "reduce",
            "the derivative of this computation is not a program of elementwise operations.",
            hint="write the reduction with lax.scan or lax.associative_scan",
        ))  # fmt: skip
    kept = [i for i, s in enumerate(smooth) if s]
    dots = [handle.instantiate(tangents[i]) for i in kept]
    init_dots = [handle.instantiate(tangents[count + i]) for i in kept]
    arranged = _dual_program(program, count, len(kept))
    results = reduce_in_order(
        arranged, [*primals[:count], *dots], [*primals[count:], *init_dots], dimensions
    )
    for i, dot in zip(kept, results[count:], strict=True):
        out_dots[i] = dot
    return outs, tuple(out_dots)


def _dual_program(program: ClosedJaxpr, count: int, smooth: int) -> ClosedJaxpr:
    """Reorder a derivative's arguments to (totals, their tangents, elements, their tangents)."""
    v = program.jaxpr.invars
    a, b = v[:count], v[count : 2 * count]
    a_dot, b_dot = v[2 * count : 2 * count + smooth], v[2 * count + smooth :]
    return ClosedJaxpr(program.jaxpr.replace(invars=[*a, *a_dot, *b, *b_dot]), program.consts)


def _batch(
    axis: BatchAxis, operands: Any, dims: Any, *, jaxpr: ClosedJaxpr, dimensions: Any
) -> Any:
    count = len(operands) // 2
    xs = [axis.to_front(x, d) for x, d in zip(operands[:count], dims[:count], strict=True)]
    inits, init_dims = operands[count:], dims[count:]
    shifted = tuple([d + 1 for d in dimensions])
    if all(d is xprim.not_mapped for d in init_dims):
        return reduce_p.bind(*xs, *inits, jaxpr=jaxpr, dimensions=shifted), (0,) * count
    if not is_elementwise(jaxpr):
        raise MissingRuleError(message(
            "reduce", "a batch of initial values needs a computation of elementwise operations.",
            hint="write the reduction with lax.scan or lax.associative_scan",
        ))  # fmt: skip
    results = reduce_in_order(jaxpr, xs, inits, shifted)
    return tuple(results), (0,) * count


reduce_p: Primitive = Primitive(
    "reduce",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("a reduction by a program is not linear"),
    batch=_batch,
    call_like=True,
    eager=costs.reduction,
    sharding=xprim.dimension_names.without("dimensions"),
)
