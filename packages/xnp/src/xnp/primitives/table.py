"""Constructors of elementwise primitives: a row of a table, with all of its rules.

`unary`, `binary` and `nary` make a primitive from its NumPy function, its StableHLO operation and
its formulas. The short forms (`add`, `mul`, `select`, ...) bind primitives in rules that are
formulas; `accuracy` lowers the option of that name, and large operands keep their order in memory
on the host.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from xnp.primitives.lowering_text import known_scalar
from xprim import (
    ELEMENTWISE,
    LINEAR,
    ZERO,
    Array,
    Linear,
    NumpyCall,
    Primitive,
    ShapedArray,
    Undefined,
    Zero,
    as_array,
    config,
    dtypes,
    get_primitive,
    primitive_maker,
    scalar_array,
    shaped_array,
    state,
    undefined,
)
from xprim.contracts import Builder
from xprim.eager_costs import KEPT_WHEN_FREED
from xprim.errors import ShapeError, message
from xprim.requirements import require
from xtree.records import Record, set_once

__all__ = [
    "bind", "reshape", "permute", "move_dim", "broadcast_to", "slice_dim", "join",
    "convert", "in_dtype", "fill", "scalar_like", "add", "sub", "mul", "div", "neg",
    "scale_by", "sum_axes", "select", "counting", "iota", "split_chunks", "join_chunks",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------ operations
# Short forms of binding shape and elementwise primitives, for rules that are formulas.
#
# A formula such as d sqrt(x) = dx / (2 sqrt(x)) reads `mul(x_dot, div(scalar_like(x, 0.5), y))`.
# `xnp.lax` imports the primitives, so their rules cannot import it; these functions look a
# primitive up by its name when they are called, so they work under every trace. They take and
# give single Arrays and check nothing: rules know what they pass.

# The primitives that were requested by name: an import at most for each.
_primitives: dict[str, Primitive] = {}


def bind(name: str, *operands: Any, **params: Any) -> Array:
    """Bind a primitive of one result by its name and return that result."""
    primitive = _primitives.get(name)
    if primitive is None:
        primitive = _primitives[name] = get_primitive(name)
    result: Array = state.__dict__["trace"].process(primitive, operands, params)[0]
    return result


def reshape(x: Array, shape: Sequence[int]) -> Array:
    """Reshape, or return `x` when it has that shape."""
    shape = tuple(shape)
    return x if x.aval.shape == shape else bind("reshape", x, new_sizes=shape, dimensions=None)


def permute(x: Array, permutation: Sequence[int]) -> Array:
    """Permute dimensions: dimension `permutation[i]` of `x` becomes dimension i."""
    permutation = tuple(permutation)
    if permutation == tuple(range(len(permutation))):
        return x
    return bind("transpose", x, permutation=permutation)


def move_dim(x: Array, source: int, target: int) -> Array:
    """Move one dimension to another place."""
    order = [i for i in range(x.aval.ndim) if i != source]
    order.insert(target, source)
    return permute(x, order)


def broadcast_to(x: Array, shape: Sequence[int], dims: Sequence[int] | None = None) -> Array:
    """Repeat `x` to a shape; its dimension i goes to `dims[i]`, without `dims` to the last ones."""
    shape, old = tuple(shape), x.aval.shape
    if old == shape:
        return x
    places = range(len(shape) - len(old), len(shape)) if dims is None else dims
    return bind("broadcast_in_dim", x, shape=shape, broadcast_dimensions=tuple(places))


def slice_dim(x: Array, dim: int, start: int, stop: int, step: int = 1) -> Array:
    """Return `x[..., start:stop:step, ...]` in one dimension."""
    shape = x.aval.shape
    if (start, stop, step) == (0, shape[dim], 1):
        return x
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[dim], limits[dim], strides[dim] = start, stop, step
    return bind("slice", x, start_indices=tuple(starts), limit_indices=tuple(limits),
                strides=None if step == 1 else tuple(strides))  # fmt: skip


def join(xs: Sequence[Array], dim: int) -> Array:
    """Join arrays along a dimension."""
    return xs[0] if len(xs) == 1 else bind("concatenate", *xs, dimension=dim)


def stack_first(xs: Sequence[Array]) -> Array:
    """Join arrays of one shape along a new first dimension."""
    return join([reshape(x, (1, *x.aval.shape)) for x in xs], 0)


def split_chunks(
    xs: Sequence[Array], length: int, size: int
) -> tuple[list[Array], list[list[Array]]]:
    """Return arrays of `length` rows as chunks of `size`, for a loop, and what remains.

    A loop picks chunks by its counter. With a start that is computed from a stored number XLA does
    that arithmetic again for each element of what reads the chunk.

    Returns:
      Each array as chunks along a new first dimension; and none or one list of the arrays' other
      rows, fewer than `size`.
    """
    count, rest = divmod(length, size)
    full = count * size
    chunks = [reshape(slice_dim(x, 0, 0, full), (count, size, *x.aval.shape[1:])) for x in xs]
    return chunks, [[slice_dim(x, 0, full, length) for x in xs]] if rest else []


def join_chunks(stacked: Array, *rest: Array) -> Array:
    """Return the rows of stacked chunks, and of what remained, as one array."""
    count, size, *shape = stacked.aval.shape
    return join([reshape(stacked, (count * size, *shape)), *rest], 0)


def item(x: Array, i: int, dim: int = 0) -> Array:
    """Return element `i` along a dimension, without that dimension."""
    shape = x.aval.shape
    return reshape(slice_dim(x, dim, i, i + 1), (*shape[:dim], *shape[dim + 1 :]))


def convert(x: Array, dtype: np.dtype[Any]) -> Array:
    """Convert to a dtype that is not weak."""
    if x.aval.dtype == dtype and not x.aval.weak_type:
        return x
    return bind("convert_element_type", x, new_dtype=dtype, weak_type=False)


def in_dtype(x: Array, dtype: np.dtype[Any]) -> Array:
    """Convert to a dtype; a weak type is not a reason to convert, as in a tangent."""
    return x if x.aval.dtype == dtype else convert(x, dtype)


def fill(shape: Sequence[int], value: Any, dtype: np.dtype[Any]) -> Array:
    """Return an array filled with a Python scalar."""
    return broadcast_to(scalar_array(value, dtype), shape)


def scalar_like(x: Any, value: Any) -> Array:
    """Return a Python number as a 0-d array of the dtype of `x`, weakly typed as it is."""
    aval = x.aval
    return scalar_array(value, aval.dtype, aval.weak_type)


def add(x: Any, y: Any) -> Array:
    """Return x + y."""
    return bind("add", x, y)


def sub(x: Any, y: Any) -> Array:
    """Return x - y."""
    return bind("sub", x, y)


def mul(x: Any, y: Any) -> Array:
    """Return x * y."""
    return bind("mul", x, y)


def div(x: Any, y: Any) -> Array:
    """Return x / y."""
    return bind("div", x, y)


def neg(x: Any) -> Array:
    """Return -x."""
    return bind("neg", x)


def scale_by(x: Any, factor: Any) -> Array:
    """Return x times a Python number."""
    return bind("mul", x, scalar_array(factor, x.aval.dtype))


def sum_axes(x: Array, axes: Sequence[int]) -> Array:
    """Sum over axes."""
    axes = tuple(axes)
    return bind("reduce_sum", x, axes=axes) if axes else x


def select(mask: Any, on_true: Any, on_false: Any) -> Array:
    """Return `on_true` where the mask holds, else `on_false`; scalars are repeated."""
    return bind("select_n", mask, on_false, on_true)


def select_rows(mask: Any, on_true: Any, on_false: Any) -> Array:
    """Return `on_true` where a mask of its leading dimensions holds, else `on_false`."""
    shape = on_true.aval.shape
    return select(broadcast_to(mask, shape, tuple(range(mask.aval.ndim))), on_true, on_false)


def counting(size: int, dtype: Any) -> Array:
    """Return 0, 1, ..., size - 1."""
    return bind("iota", dtype=np.dtype(dtype), shape=(size,), dimension=0)


def iota(shape: Sequence[int], dim: int) -> Array:
    """Return the index along a dimension, as int32."""
    return bind("iota", dtype=dtypes.int32, shape=tuple(shape), dimension=dim)


# -------------------------------------------------------------------------------------- accuracy
# How accurate a compiled elementary function must be: `exp(x, accuracy=...)`.
#
# XLA may compute functions such as exp by several algorithms. An `AccuracyMode` or a `Tolerance`
# chooses among them; it becomes the `result_accuracy` attribute of the StableHLO operation. On
# the host, NumPy's function is used for any accuracy: its error is a few ulp, as that of the
# default.


class AccuracyMode(enum.Enum):
    """Which algorithm XLA takes: the usual one, or the most accurate one that it has."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(Record):
    """The error that a compiled elementary function may have; one of the bounds must hold.

    Attributes:
      atol: absolute error.
      rtol: relative error.
      ulps: error in units of the last place.

    Raises:
      ValueError: when a bound is negative, or all are zero.

    Example:
      >>> Tolerance(ulps=4)
      Tolerance(atol=0.0, rtol=0.0, ulps=4)
    """

    atol: float
    rtol: float
    ulps: int

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        require(
            min(atol, rtol, ulps) >= 0 and (atol or rtol or ulps), "Tolerance",
            "the bounds must not be negative, and one must be above zero.",
            got={"atol": atol, "rtol": rtol, "ulps": ulps},
        )  # fmt: skip
        set_once(self, "atol", atol)
        set_once(self, "rtol", rtol)
        set_once(self, "ulps", ulps)


Accuracy: TypeAlias = AccuracyMode | Tolerance | None


def accuracy_attribute(accuracy: Accuracy) -> str:
    """Return the `result_accuracy` attribute of an operation, or nothing for the default."""
    if accuracy is None:
        return ""
    if isinstance(accuracy, AccuracyMode):
        mode, bounds = accuracy.name, ""
    else:
        mode = "TOLERANCE"
        bounds = f"atol = {accuracy.atol:e}, rtol = {accuracy.rtol:e}, ulps = {accuracy.ulps}, "
    return (
        f"result_accuracy = #stablehlo.result_accuracy<{bounds}"
        f"mode = #stablehlo.result_accuracy_mode<{mode}>>"
    )


# ---------------------------------------------------------------------------------- memory order
# Elementwise NumPy functions of two large operands, whatever their order in memory.
#
# What makes NumPy wait for memory or for its own loops:
#
# - One operand lies across the other, `x * x.T`: a walk row by row touches a new cache line of
#   `x.T`
#   for each element. In strips of columns the lines of one row are still there for the next: 70 ms
#   become 20 for 3000 x 3000 (XLA, which transposes first, takes 40).
# - A number stands for one operand of `maximum` or `minimum`, whose vector loops take two arrays:
#   it
#   becomes a row of 4096, 0.33 to 0.13 ns for each element.
# - A short row is repeated, `x - x.mean(0)` of 10000 x 10: the inner loop has 10 elements. Many
#   rows
#   of the one operand are one long row, from which the other, repeated as often, is subtracted.
#
# And the memory of results: glibc returns what was freed to the kernel, and the next result of
# that size has its pages made again, 358 faults and 0.5 ms of 0.8 in that example. It goes on to
# keep up to twice the largest block that it saw freed, at most 2 x 32 MiB; so one is freed,
# untouched, when the first kernel for large arrays is made (M_MMAP_THRESHOLD in the manual of
# mallopt). The option `keep_freed_memory` says whether.

_MEMORY_ORDER_LARGE = 1 << 18  # elements: smaller operands that lie across stay in the cache
_STRIP = 512  # columns: as many cache lines of the operand that lies across fit into 32 KiB
_LARGE_TO_REPEAT = 1 << 14  # elements
_SHORT = 64  # elements of a row whose loop costs more than its work
_LONG = 4096
_SLOW_WITH_A_NUMBER = (np.maximum, np.minimum)  # as with a stride of 0: four times as long

Function = Callable[..., Any]

keep_freed_memory = config.define(
    config.Option(
        "keep_freed_memory", True,
        "Whether the C library keeps up to 64 MiB that large arrays gave back, for the next ones.",
        kind=bool,
    )
)  # fmt: skip


@functools.cache
def keep_memory_of_results() -> None:
    """Let the C library keep freed memory, unless the option says no when this is first called."""
    if keep_freed_memory.value:
        np.empty(KEPT_WHEN_FREED, np.uint8)


def for_memory_order(function: Function, x: Any, y: Any, aval: ShapedArray) -> Function:
    """Return a function of two operands that does the same, quickly in any order of memory.

    Args:
      function: a NumPy ufunc.
      x: the first operand, an Array of the shape that the function is for, or a number.
      y: the second.
      aval: the shape and dtype of the result; where it is small, the function itself is returned.
    """
    shape = aval.shape
    if aval.size < _LARGE_TO_REPEAT or not shape:
        return function
    shapes: list[tuple[int, ...]] = [getattr(v, "shape", ()) for v in (x, y)]
    if function in _SLOW_WITH_A_NUMBER and sorted(shapes) == [(), shape]:
        return _with_a_row(function, number_first=not shapes[0])
    if len(shape) < 2:
        return function
    if 1 < shape[-1] <= _SHORT and shape in shapes:
        (row,) = [s for s in shapes if s != shape] or [shape]
        if math.prod(row) == shape[-1] == row[-1]:
            return _with_long_rows(function, shape, row_first=shapes[0] == row)
    if aval.size >= _MEMORY_ORDER_LARGE and shape[-1] > _STRIP and shapes[0] == shapes[1]:
        return _in_strips(function, aval)
    return function


def _with_a_row(function: Function, number_first: bool) -> Function:
    """Return the function for a whole operand and a number, which becomes a row of that number."""

    def run(a: Any, b: Any) -> Any:
        number, whole = (a, b) if number_first else (b, a)
        if not whole.flags.c_contiguous:
            return function(a, b)
        row, flat = np.full(_LONG, number, whole.dtype), whole.reshape(-1)
        out, end = np.empty_like(flat), flat.size - flat.size % _LONG
        rows, rows_out = [v[:end].reshape(-1, _LONG) for v in (flat, out)]
        for part, other, into in ((rows, row, rows_out), (flat[end:], number, out[end:])):
            function(*((other, part) if number_first else (part, other)), out=into)
        return out.reshape(whole.shape)

    return run


def _with_long_rows(function: Function, shape: tuple[int, ...], row_first: bool) -> Function:
    """Return the function for a whole operand and a row of as many elements as its last dimension.

    Args:
      function: a NumPy ufunc.
      shape: of the whole operand, and of the result.
      row_first: whether the row is the first operand.
    """
    count, length = math.prod(shape[:-1]), shape[-1]
    repeats = max(n for n in range(1, _LONG // length + 1) if count % n == 0)
    if repeats < 8:
        return function

    def run(a: Any, b: Any) -> Any:
        row, whole = (a, b) if row_first else (b, a)
        if not whole.flags.c_contiguous:
            return function(a, b)
        long_row = np.empty((repeats, length), row.dtype)
        long_row[...] = row.reshape(length)
        long_row, rows = long_row.reshape(-1), whole.reshape(-1, repeats * length)
        result = function(long_row, rows) if row_first else function(rows, long_row)
        return result.reshape(shape)

    return run


def _in_strips(function: Function, aval: ShapedArray) -> Function:
    """Return the function for two operands of one shape, either of which may lie across."""

    def run(a: Any, b: Any) -> Any:
        if _direction(a) * _direction(b) != -1:
            return function(a, b)
        result = np.empty(aval.shape, aval.dtype)
        for first in range(0, aval.shape[-1], _STRIP):
            strip = np.s_[..., first : first + _STRIP]
            function(a[strip], b[strip], out=result[strip])
        return result

    return run


def _direction(x: np.ndarray[Any, Any]) -> int:
    """Return 1 where rows of a matrix lie together in memory, -1 where columns do, else 0."""
    if 1 in x.shape[-2:]:
        return 0
    between_rows, between_columns = abs(x.strides[-2]), abs(x.strides[-1])
    if not between_rows or not between_columns:  # repeated
        return 0
    return 1 if between_columns < between_rows else -1


# ----------------------------------------------------------------------------------------- table
# Rows of the tables of primitives: elementwise operations, each with all of its rules.
#
# An elementwise primitive takes operands that all have one shape, but for operands of rank 0,
# which stand for an array of that shape filled with one value. All operands have one dtype (`lax`
# is strict; the NumPy functions promote first). The derivative is given as a formula for each
# operand:
#
#     unary    jvp=lambda x_dot, y, x: ...            y is the result
#     binary   jvp=(lambda x_dot, z, x, y: ..., lambda y_dot, z, x, y: ...)
#
# and `None` in the pair says that the operation is piecewise constant in that operand.

Formula = Callable[..., Any]
Kinds = frozenset[np.dtype[Any]]

BOOL: Kinds = frozenset([dtypes.bool_])
INTEGER: Kinds = frozenset((*dtypes.SIGNED, *dtypes.UNSIGNED))
SIGNED: Kinds = frozenset(dtypes.SIGNED)
UNSIGNED: Kinds = frozenset(dtypes.UNSIGNED)
FLOATING: Kinds = frozenset(dtypes.FLOATING)
COMPLEX: Kinds = frozenset(dtypes.COMPLEX)
INEXACT: Kinds = FLOATING | COMPLEX
NUMBER: Kinds = INTEGER | INEXACT
REAL: Kinds = INTEGER | FLOATING
BITS: Kinds = INTEGER | BOOL
ANY: Kinds = NUMBER | BOOL
NATIVE: Kinds = (BITS | INEXACT) - {  # dtypes that NumPy computes with itself
    *dtypes.SMALL_FLOATS, *dtypes.SMALL_INTEGERS, dtypes.bfloat16, dtypes.float16,
}  # fmt: skip

_KIND_NAMES = {
    BOOL: "bool", INTEGER: "an integer dtype", FLOATING: "a real floating dtype",
    COMPLEX: "a complex dtype", INEXACT: "a floating or complex dtype", REAL: "a real number dtype",
    NUMBER: "a number dtype", BITS: "an integer dtype or bool", ANY: "any dtype",
    SIGNED: "a signed integer dtype", UNSIGNED: "an unsigned integer dtype",
}  # fmt: skip

_NONLINEAR = "it is not linear"
_TABLE_LARGE = 1 << 14  # elements: their memory comes from the kernel and goes back to it


def elementwise_shape(
    name: str, kinds: Kinds, out_dtype: np.dtype[Any] | Callable[[Any], Any] | None = None
) -> Callable[..., tuple[ShapedArray, ...]]:
    """Return the shape rule of an elementwise primitive.

    Args:
      name: what errors call the operation.
      kinds: the dtypes it takes.
      out_dtype: the dtype of the result, or a function from the operands' dtype to it; None for the
        same dtype.
    """

    def shape_rule(*avals: ShapedArray, **_params: Any) -> tuple[ShapedArray, ...]:
        dtype, shape = common_dtype(name, avals), equal_shape(name, avals)
        if dtype not in kinds and not dtypes.is_extended(dtype):
            if dtype is dtypes.float0:
                raise _float0_refused(name)
            raise TypeError(message(
                name, f"does not accept dtype {dtype.name}.",
                expected=f"{_KIND_NAMES.get(kinds, 'another dtype')}",
            ))  # fmt: skip
        out = out_dtype(dtype) if callable(out_dtype) else out_dtype
        # a function goes to the dtype of the parts, or of the whole, which is as weak
        weak = all(a.weak_type for a in avals) and (out is None or callable(out_dtype))
        return (shaped_array(shape, dtype if out is None else out, weak),)

    return shape_rule


def kind_rank(dtype: np.dtype[Any]) -> int:
    """Return 0 for boolean, 1 for integer, 2 for floating and 3 for complex dtypes."""
    if dtypes.is_inexact(dtype):
        return 3 if dtypes.is_complex(dtype) else 2
    return int(dtype != dtypes.bool_)


def as_array_of(value: Any, dtype: np.dtype[Any], what: str) -> Array:
    """Return a value as an array, a number of Python in a dtype that holds its kind.

    Raises:
      TypeError: a float for integers, or a complex number for floats: its parts would be lost.
    """
    kind = type(value)
    if (kind is float or kind is complex) and not dtypes.is_complex(dtype):
        own = dtypes.python_scalar_dtype(kind)
        if not dtypes.is_extended(dtype) and kind_rank(own) > kind_rank(dtype):
            raise TypeError(message(
                what, f"{value!r} is not a number of dtype {dtype.name}.",
                hint=f"convert it: xnp.asarray({value!r}).astype('{dtype.name}')",
            ))  # fmt: skip
    return as_array(value, dtype, what=what)


def common_dtype(name: str, avals: Sequence[ShapedArray]) -> np.dtype[Any]:
    """Return the one dtype of all operands, or raise a TypeError."""
    dtype = avals[0].dtype
    for aval in avals:
        if aval.dtype != dtype:
            if dtypes.float0 in (dtype, aval.dtype):
                raise _float0_refused(f"lax.{name}")
            raise TypeError(message(
                f"lax.{name}",
                "requires arguments to have the same dtypes, got "
                f"{', '.join(a.dtype.name for a in avals)}.",
                hint=f"convert with lax.convert_element_type, or use {_promoting(name)}, which "
                "promotes",
            ))  # fmt: skip
    return dtype


def _float0_refused(name: str) -> TypeError:
    return TypeError(message(
        name, "float0s do not support any operations by design.",
        hint="they are the zero tangents of integers and booleans: leave them out",
    ))  # fmt: skip


def equal_shape(name: str, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """Return the one shape of all operands of rank above 0, or raise a ShapeError."""
    shape: tuple[int, ...] = ()
    for aval in avals:
        if aval.shape:
            if shape and aval.shape != shape:
                raise ShapeError(message(
                    f"lax.{name}", "the operands' shapes differ.",
                    got=", ".join(a.str_long() for a in avals), expected="equal shapes, or rank 0",
                    hint=f"{_promoting(name)} broadcasts",
                ))  # fmt: skip
            shape = aval.shape
    return shape


_PROMOTING = {
    "sub": "subtract", "mul": "multiply", "div": "divide", "rem": "remainder", "pow": "power",
    "max": "maximum", "min": "minimum", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
    "gt": "greater", "ge": "greater_equal", "atan2": "arctan2", "select_n": "where",
    "clamp": "clip", "shift_left": "left_shift", "shift_right_arithmetic": "right_shift",
    "add": "add", "nextafter": "nextafter",
}  # fmt: skip


def _promoting(name: str) -> str:
    """Return what to call the function that promotes and broadcasts."""
    return f"xnp.{_PROMOTING[name]}" if name in _PROMOTING else "the xnp function of that name"


def elementwise_stablehlo(op: str, of_masks: str = "") -> Callable[..., list[str]]:
    """Return the rule of a primitive that is one StableHLO operation of one type throughout.

    Args:
      op: the operation.
      of_masks: the operation on booleans, where it is another.
    """

    def stablehlo_rule(
        b: Builder, operands: Any, avals_in: Any, avals_out: Any, **_: Any
    ) -> list[str]:
        (out,) = avals_out
        shape = out.shape
        for a in avals_in:
            if a.shape != shape:
                operands = [b.broadcast(x, a, shape)
                            for x, a in zip(operands, avals_in, strict=True)]  # fmt: skip
                break
        if not shape and op in _EXACT:
            found = _fold_constant(b, _EXACT[op], operands, out)
            if found is not None:
                return [found]
        is_mask = of_masks and out.dtype.kind == "b"
        return [b.same_type_op(of_masks if is_mask else op, operands, out)]

    return stablehlo_rule


_EXACT = {
    "stablehlo.add": np.add, "stablehlo.subtract": np.subtract, "stablehlo.multiply": np.multiply,
}  # fmt: skip


def _fold_constant(b: Builder, function: Any, operands: Any, out: ShapedArray) -> str | None:
    """Return a constant in place of an operation on known numbers, so that rules know it, too.

    Such as the order of the next derivative. Only for results that need no care in a program.
    """
    numbers = [known_scalar(b, x) for x in operands]
    if out.dtype not in (dtypes.float32, dtypes.float64) or any(x is None for x in numbers):
        return None
    with np.errstate(all="ignore"):
        value = function(*numbers)
    is_normal = np.isfinite(value) and abs(value) >= np.finfo(out.dtype).tiny
    return b.scalar(value, out.dtype) if is_normal or value == 0 else None


def retype_stablehlo(op: str) -> Callable[..., list[str]]:
    """Return the rule of a primitive that is one operation with a result of another dtype."""

    def stablehlo_rule(
        b: Builder, operands: Any, avals_in: Any, avals_out: Any, **_: Any
    ) -> list[str]:
        (out,) = avals_out
        shape = out.shape
        names = [b.broadcast(x, a, shape) for x, a in zip(operands, avals_in, strict=True)]
        types = [shaped_array(shape, a.dtype) for a in avals_in]
        return b.op(op, names, types, avals_out)

    return stablehlo_rule


@primitive_maker
def unary(
    name: str,
    kinds: Kinds,
    *,
    numpy: Callable[..., Any],
    stablehlo: str | Callable[..., Any],
    jvp: Formula | Any,
    linear: Formula | None = None,
    out_dtype: np.dtype[Any] | Callable[[Any], Any] | None = None,
    shape: Callable[..., Any] | None = None,
    tunable: bool = False,
    has_params: bool = False,
    ufunc: Any = None,
    **more: Any,
) -> Primitive:
    """Define a primitive of one operand.

    Args:
      name: of the primitive.
      kinds: the dtypes it takes.
      numpy: from an ndarray (and params) to an ndarray.
      stablehlo: the operation's name, or a whole rule.
      jvp: the formula `(x_dot, y, x) -> y_dot`, or a symbol such as `ZERO`.
      linear: for a linear operation, `ct -> cotangent of x`.
      out_dtype: see `elementwise_shape`.
      shape: a whole shape rule, where that of elementwise primitives does not do.
      has_params: whether the `numpy` function takes params.
      tunable: whether there is an optional param `accuracy`, of which only the compiled operation
        takes notice.
      ufunc: see `ufunc_rule`.
      **more: rules of other kinds by name.
    """
    if isinstance(stablehlo, str):
        stablehlo = (tunable_stablehlo if tunable else elementwise_stablehlo)(stablehlo)
    if linear is not None:
        more["linearity"] = LINEAR
    if not _is_symbol(jvp):
        jvp = _unary_jvp(_without_accuracy(jvp) if tunable else jvp, lambda: primitive)
    primitive = Primitive(
        name,
        shape=shape or elementwise_shape(name, kinds, out_dtype),
        numpy=_unary_numpy(numpy, tunable, has_params),
        stablehlo=stablehlo,
        jvp=jvp,
        transpose=undefined(_NONLINEAR) if linear is None else _unary_transpose(linear),
        batch=ELEMENTWISE,
        **more,
        **ufunc_rule(numpy, ufunc),
    )  # fmt: skip
    return primitive


def _unary_numpy(
    numpy: Callable[..., Any], tunable: bool, has_params: bool
) -> Callable[..., tuple[Any]]:
    """Return the plainest rule: each runs at every eager evaluation."""
    if tunable:
        return lambda x, accuracy=None: (numpy(x),)
    if has_params:
        return lambda x, **params: (numpy(x, **params),)
    return lambda x: (numpy(x),)


def ufunc_rule(numpy: Any, ufunc: Any = None, kinds: Kinds = NATIVE) -> dict[str, Any]:
    """Return the `ufunc` rule of an elementwise primitive as a keyword, if it has one.

    Args:
      numpy: what its `numpy` rule calls; where that is a ufunc, it equals the rule for all dtypes.
      ufunc: a ufunc that equals the rule where all dtypes are among `kinds`; or a whole rule.
      kinds: see `ufunc`.
    """
    if isinstance(numpy, np.ufunc):
        ufunc, kinds = numpy, ANY
    if not isinstance(ufunc, np.ufunc):
        return {} if ufunc is None else {"ufunc": ufunc}
    specialize = None if ufunc.nin == 1 else partial(_in_memory_order, ufunc)
    call = NumpyCall(ufunc, specialize=specialize)

    def rule(avals_in: Any, avals_out: Any, **_params: Any) -> NumpyCall | None:
        if avals_out[0].size >= _TABLE_LARGE:
            keep_memory_of_results()
        native = all(a.dtype in kinds for a in (*avals_in, *avals_out))
        return call if native else None

    return {"ufunc": rule}


def _in_memory_order(ufunc: Any, avals: list[ShapedArray], out: ShapedArray) -> Any:
    x, y = avals
    return for_memory_order(ufunc, x, y, out)


def tunable_stablehlo(op: str) -> Callable[..., list[str]]:
    """Return the rule of an operation that takes an accuracy."""

    def stablehlo_rule(
        b: Builder, operands: Any, avals_in: Any, avals_out: Any, accuracy: Accuracy = None
    ) -> list[str]:
        if accuracy is None:
            return [b.same_type_op(op, operands, avals_out[0])]
        attribute = accuracy_attribute(accuracy)
        return b.op(op, operands, avals_in, avals_out, attribute)

    return stablehlo_rule


def _without_accuracy(formula: Formula) -> Formula:
    return lambda x_dot, y, x, accuracy=None: formula(x_dot, y, x)


def _is_symbol(jvp: Any) -> bool:
    return jvp is ZERO or isinstance(jvp, Undefined) or not callable(jvp)


def _unary_jvp(formula: Formula, primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def jvp_rule(primals: Any, tangents: Any, **params: Any) -> Any:
        (x,), (x_dot,) = primals, tangents
        outs = state.trace.process(primitive(), (x,), params)
        if type(x_dot) is Zero:
            return outs, (Zero(outs[0].aval),)
        return outs, (formula(x_dot, outs[0], x, **params),)

    return jvp_rule


def _unary_transpose(linear: Formula) -> Callable[..., Any]:
    def transpose_rule(cts: Any, x: Any, **params: Any) -> Any:
        return (linear(cts[0], **params),)

    return transpose_rule


@primitive_maker
def binary(
    name: str,
    kinds: Kinds,
    *,
    numpy: Callable[[Any, Any], Any],
    stablehlo: str | Callable[..., Any],
    jvp: tuple[Formula | None, Formula | None] | Any,
    transpose: Callable[..., Any] | None = None,
    out_dtype: np.dtype[Any] | Callable[[Any], Any] | None = None,
    ufunc: Any = None,
    ufunc_kinds: Kinds = NATIVE,
    **more: Any,
) -> Primitive:
    """Define a primitive of two operands.

    Args:
      name: of the primitive.
      kinds: the dtypes it takes.
      numpy: from two ndarrays (of equal shapes, or of rank 0) to an ndarray.
      stablehlo: the operation's name, or a whole rule.
      jvp: a formula `(dot, z, x, y) -> z_dot` for each operand, or a symbol such as `ZERO`. A
        formula may return a result of rank 0; it is repeated.
      transpose: a whole rule `(cts, x, y) -> cts`, which may return cotangents of the shape of the
        result: they are summed to the shape of an operand of rank 0.
      out_dtype: see `elementwise_shape`.
      ufunc: see `ufunc_rule`.
      ufunc_kinds: the dtypes for which it equals the rule.
      **more: rules of other kinds by name.
    """
    primitive = Primitive(
        name,
        shape=elementwise_shape(name, kinds, out_dtype),
        numpy=lambda x, y: (numpy(x, y),),
        stablehlo=elementwise_stablehlo(stablehlo) if isinstance(stablehlo, str) else stablehlo,
        jvp=_binary_jvp(jvp, lambda: primitive) if isinstance(jvp, tuple) else jvp,
        transpose=undefined(_NONLINEAR) if transpose is None else _sum_transpose(transpose),
        batch=ELEMENTWISE,
        **more,
        **ufunc_rule(numpy, ufunc, ufunc_kinds),
    )
    return primitive


def _binary_jvp(
    formulas: tuple[Formula | None, ...], primitive: Callable[[], Primitive]
) -> Callable[..., Any]:
    def jvp_rule(primals: Any, tangents: Any, **params: Any) -> Any:
        outs = state.trace.process(primitive(), tuple(primals), params)
        z = outs[0]
        total = None
        for formula, dot in zip(formulas, tangents, strict=True):
            if type(dot) is Zero or formula is None:
                continue
            term = repeat_scalar(formula(dot, z, *primals, **params), z.aval.shape)
            total = term if total is None else get_primitive("add").bind(total, term)[0]
        return outs, (Zero(z.aval) if total is None else total,)

    return jvp_rule


def _sum_transpose(rule: Callable[..., Any]) -> Callable[..., Any]:
    def transpose_rule(cts: Any, *operands: Any, **params: Any) -> Any:
        results = rule(cts[0], *operands, **params)
        return tuple([
            r if type(r) is Zero or type(x) is not Linear or r.aval.shape == x.aval.shape
            else sum_over_all(r)
            for x, r in zip(operands, results, strict=True)
        ])  # fmt: skip

    return transpose_rule


def repeat_scalar(x: Any, shape: tuple[int, ...]) -> Any:
    """Repeat a value of rank 0 to a shape."""
    if x.aval.shape == shape:
        return x
    return get_primitive("broadcast_in_dim").bind(x, shape=shape, broadcast_dimensions=())[0]


def sum_over_all(x: Any) -> Any:
    """Sum all elements: what the transpose of repeating a rank-0 value is."""
    return get_primitive("reduce_sum").bind(x, axes=tuple(range(x.aval.ndim)))[0]


# The names that release 0.2 of xad and xpar import.
reshaped, moved, sliced, concatenated = reshape, move_dim, slice_dim, join
converted, filled, broadcasted, selected = convert, fill, broadcast_to, select
transposed, scaled, summed = permute, scale_by, sum_axes
