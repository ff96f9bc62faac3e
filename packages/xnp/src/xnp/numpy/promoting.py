"""Bringing operands together: to Arrays, to one dtype, to shapes that go together.

    x, y = promoted("add", x, y)        one dtype; Python scalars become constants of that dtype
    x, y = broadcast("add", x, y)       one shape, but for operands of rank 0

Constants are converted at once, also while a program is staged, so that it holds literals and not
conversions of literals. Neighbours: `xprim.promotion` has the lattice, `dispatch` skips all this
for small host arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from xnp.primitives.operations import (
    bind as bind,
    broadcasted as broadcasted,
    filled as filled,
    reshaped as reshaped,
    scalar_like as scalar_like,
    selected as selected,
)
from xprim import (
    Array,
    ConcreteArray,
    as_array,
    config,
    dtypes,
    get_primitive,
    promotion,
    scalar_array,
    source,
    state,
)
from xprim.eager import EAGER
from xprim.errors import ArgumentError, AxisError, ShapeError, message
from xprim.static_sizes import static_int
from xprim.strict_options import are_passed_by_caller
from xtree.bounded import remember

__all__ = ()

_SCALARS = frozenset([bool, int, float, complex])
_MAX_SHAPES = 4096
_shapes: dict[tuple[Any, ...], tuple[int, ...]] = {}  # the common shapes of abstract values


def array_of(x: Any, operation: str) -> Array:
    """Return a value as an Array; errors name the operation."""
    return x if isinstance(x, Array) else as_array(x, what=operation)


def elements_now(*arrays: Any) -> list[np.ndarray[Any, Any]] | None:
    """Return the elements of arrays where NumPy may compute with them at once, else None.

    For functions that NumPy has as one loop, and that amount to many primitives.
    """
    if state.trace is not EAGER:
        return None
    found = []
    for x in arrays:
        if type(x) is not ConcreteArray or dtypes.is_extended(x.aval.dtype):
            return None
        if x.buffer is not None and not EAGER.backend.on_host(x):
            return None
        found.append(x.to_host())
    return found


def beside(value: Any, x: Array, operation: str) -> Array:
    """Return a value as an Array; a Python number keeps its digits beside 64-bit floats."""
    is_wide = x.aval.dtype in (dtypes.float64, dtypes.complex128) and not x.aval.weak_type
    if type(value) is float and is_wide:
        return scalar_array(value, dtypes.float64)
    return array_of(value, operation)


def promoted(operation: str, *operands: Any) -> list[Array]:
    """Return the operands as Arrays of the one dtype that they promote to."""
    first = None
    for x in operands:  # the usual case: arrays of one dtype
        if not isinstance(x, Array) or x.aval.weak_type:
            break
        if first is None:
            first = x.aval.dtype
        elif x.aval.dtype is not first:
            break
    else:
        return list(operands)
    metas = []
    arrays: list[Any] = []
    for x in operands:
        kind = type(x)
        if kind in _SCALARS:
            metas.append((dtypes.python_scalar_dtype(kind), kind is not bool))
        else:
            x = array_of(x, operation)
            metas.append((x.aval.dtype, x.aval.weak_type))
        arrays.append(x)
    dtype, weak = _common(operation, metas, arrays)
    try:
        return [
            _scalar(x, dtype, weak) if type(x) in _SCALARS else converted(x, dtype, weak)
            for x in arrays
        ]
    except OverflowError as error:
        problem = str(error).removeprefix("array: ")
        raise OverflowError(f"{operation}: {problem}") from None


def _common(operation: str, metas: list[Any], operands: list[Any]) -> Any:
    try:
        shapes = [() if type(x) in _SCALARS else x.aval.shape for x in operands]
        return promotion.promote(*metas, shapes=shapes)
    except TypeError as error:
        if str(error).startswith("promote:"):
            raise type(error)(operation + str(error).removeprefix("promote")) from None
        raise


def _scalar(value: Any, dtype: Any, weak: bool) -> Array:
    if weak:
        return converted(scalar_array(value), dtype, True)
    return scalar_array(value, dtype)


def inexact(operation: str, *operands: Any) -> list[Array]:
    """Return the operands as Arrays of one floating or complex dtype."""
    arrays = promoted(operation, *operands)
    aval = arrays[0].aval
    if dtypes.is_inexact(aval.dtype):
        return arrays
    dtype = dtypes.to_inexact_dtype(aval.dtype)
    weak = all(x.aval.weak_type for x in arrays)
    return [converted(x, dtype, weak) for x in arrays]


def converted(x: Array, dtype: Any, weak: bool = False) -> Array:
    """Return an Array in a dtype; one that has it stays, even when it is weak."""
    return x if x.aval.dtype == dtype else cast(x, dtype, weak)


def computation_dtype(dtype: Any) -> Any:
    """Return the dtype in which several steps on elements are computed: float32 at least."""
    return dtypes.float32 if dtypes.is_floating(dtype) and dtype.itemsize < 4 else dtype


def wide(x: Array) -> Array:
    """Return an Array for a computation of several steps: floats of fewer bits become float32.

    Between the steps they would lose digits, or overflow: 300 squared is infinite in float16. The
    result is rounded once, with `converted(result, x.aval.dtype, x.aval.weak_type)`.
    """
    return converted(x, computation_dtype(x.aval.dtype), x.aval.weak_type)


def cast(x: Array, dtype: Any, weak: bool = False) -> Array:
    """Return an Array with exactly this dtype and weak type; constants are converted at once."""
    aval = x.aval
    if aval.dtype == dtype and aval.weak_type == weak:
        return x
    params = {"new_dtype": dtype, "weak_type": weak}
    primitive = get_primitive("convert_element_type")
    if type(x) is ConcreteArray:
        results = EAGER.process(primitive, (x,), params)
    else:
        results = primitive.bind(x, **params)
    result: Array = results[0]
    return result


def broadcast(operation: str, *arrays: Any) -> list[Array]:
    """Return the Arrays in their common shape, but for those of rank 0, which stay.

    These are the operands of an elementwise function, whose ranks `numpy_rank_promotion` is about.
    """
    first = arrays[0].aval.shape
    for x in arrays:
        if x.aval.shape != first:
            break
    else:
        return list(arrays)
    avals = tuple([x.aval for x in arrays])
    shape = _shapes.get(avals)
    if shape is None:
        shape = remember(_shapes, avals, common_shape(operation, avals), _MAX_SHAPES)
    if config.values.numpy_rank_promotion != "allow":
        check_ranks(operation, *arrays)
    return [x if not x.aval.shape else broadcasted(x, shape) for x in arrays]


def broadcast_all(operation: str, *arrays: Any) -> list[Array]:
    """Return the Arrays in their common shape, all of them."""
    shape = common_shape(operation, [x.aval for x in arrays])
    return [broadcasted(x, shape) for x in arrays]


def broadcast_checked(operation: str, *arrays: Any) -> list[Array]:
    """Return the Arrays in their common shape, of ranks that `numpy_rank_promotion` lets pass."""
    check_ranks(operation, *arrays)
    return broadcast_all(operation, *arrays)


def check_ranks(
    operation: str, *arrays: Any, core: Sequence[int] = (), made: Sequence[int] = ()
) -> None:
    """Do what `numpy_rank_promotion` says of operands of different rank.

    Where the function is one of vectors or matrices, `core` says how many of the last dimensions of
    each operand are its own: the ranks before them are compared. What of the arrays the function
    has made of an operand, by position, is in `made`: it is none that the caller has passed.
    """
    if config.values.numpy_rank_promotion != "allow":
        shapes = [x.aval.shape for x in arrays]
        own = core or [0] * len(shapes)
        ranks = {len(s) - k for s, k in zip(shapes, own, strict=True) if s}
        _check_ranks(operation, shapes, ranks, [s for i, s in enumerate(shapes) if i not in made])


def chosen(operation: str, mask: Any, new: Any, x: Any) -> Array:
    """Return `new` where a mask of `x` holds and else `x`, which are broadcast with each other."""
    check_ranks(operation, new, x)
    shape = common_shape(operation, [new.aval, x.aval])
    return selected(*[broadcasted(value, shape) for value in (mask, new, x)])


def common_shape(operation: str, avals: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to by NumPy's rules, or raise a ShapeError."""
    shapes = [a.shape for a in avals]
    rank = max([len(s) for s in shapes])
    result = [1] * rank
    for shape in shapes:
        for i, n in enumerate(shape, rank - len(shape)):
            if n == 1 or result[i] == n:
                continue
            if result[i] != 1:
                raise _incompatible(operation, avals)
            result[i] = n
    return tuple(result)


def _incompatible(operation: str, avals: Sequence[Any]) -> ShapeError:
    shapes = " and ".join([str(a.shape).replace(" ", "") for a in avals if a.shape])
    return ShapeError(message(
        operation, f"incompatible shapes for broadcasting: {shapes}.",
        got=", ".join([a.str_long() for a in avals]),
        expected="sizes that are equal or 1, counted from the last dimension",
    ))  # fmt: skip


def _check_ranks(
    operation: str, shapes: Sequence[Any], ranks: set[int], passed: Sequence[Any]
) -> None:
    if len(ranks) < 2 or not are_passed_by_caller([(None, shape) for shape in passed if shape]):
        return
    text = message(
        operation, "operands of different rank would be broadcast: "
        f"{', '.join(map(str, shapes))}.",
        hint="reshape them to one rank, or set numpy_rank_promotion to 'allow'",
    )  # fmt: skip
    if config.values.numpy_rank_promotion == "raise":
        raise ValueError(text)
    warnings.warn(text, stacklevel=source.depth())


def apart(result: Any, *operands: Any) -> Any:
    """Return a result as an array of its own where it is one of the operands themselves.

    A function that finds nothing to do would else give its operand back, and donating or deleting
    the one would take the other. Eager views share memory, so this copies nothing on the host.
    """
    for x in operands:
        if result is x and type(x) is ConcreteArray and state.trace is EAGER:
            return bind("reshape", x, new_sizes=x.aval.shape, dimensions=None)
    return result


def axis_of(axis: Any, ndim: int, operation: str) -> int:
    """Return a dimension counted from the front, or raise NumPy's error for axes.

    That error is a ValueError and an IndexError.
    """
    index = axis if type(axis) is int else static_int(axis, operation, "the axis")
    if -ndim <= index < ndim:
        return int(index) % ndim
    raise AxisError(
        f"{operation}: axis {index} is out of bounds for an array of {ndim} "
        f"dimension{'' if ndim == 1 else 's'}."
    )


def several_axes(axis: Any) -> TypeGuard[Sequence[Any]]:
    """Whether axes are given as a sequence or a NumPy vector, not as one integer."""
    return isinstance(axis, Sequence) or (isinstance(axis, np.ndarray) and axis.ndim == 1)


def axes_of(axis: Any, ndim: int, operation: str) -> tuple[int, ...]:
    """Return distinct dimensions counted from the front, in the order given; None means all."""
    if axis is None:
        return tuple(range(ndim))
    if several_axes(axis):
        axes = tuple([axis_of(a, ndim, operation) for a in axis])
        if len(set(axes)) != len(axes):
            raise ArgumentError(f"{operation}: axes must be distinct, got {axis}.")
        return axes
    return (axis_of(axis, ndim, operation),)
