"""Promotion: the dtype, and whether it is weak, of what operands of several dtypes have in common.

The types form a lattice: an arrow goes from a type to those it may become by itself,
and operands are joined in their least common upper bound. Besides the dtypes there are three weak
types, written `i*`, `f*` and `c*`: those of the Python scalars `int`, `float` and `complex` (and
of what is computed from these alone), which sit below all dtypes of their kind, so that `x + 1.0`
keeps the precision of `x`.

    bool -> i* -> u8 -> u16 -> u32 -> u64 -> f*      and  u8 -> i16, u16 -> i32, u32 -> i64
            i* -> i8 -> i16 -> i32 -> i64 -> f*
    f* -> bf16 -> f32 -> f64 -> c128                 and  f32 -> c64
    f* -> f16  -> f32
    f* -> c*   -> c64 -> c128
    i* -> u1 u2 u4 i1 i2 i4                          and  f* -> each float of 4, 6 and 8 bits;
                                                     from these no arrow goes on

Without `enable_x64` an unsigned 32-bit integer meets a signed one in int32, so that no 64-bit
type appears which no operand had. With `numpy_dtype_promotion` "strict" only the weak types
promote.

Source: the lattice of JAX, https://docs.jax.dev/en/latest/type_promotion.html, which this equals
for every pair.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, overload

from xprim import config, dtypes
from xprim.dtypes import DType, DTypeLike
from xprim.errors import TypePromotionError, message
from xprim.strict_options import are_passed_by_caller
from xtree.boundaries import boundary, leave

__all__ = ["promote", "promote_types", "result_type", "is_weakly_typed", "check_scalar_fits"]

__dir__ = __all__.copy


def promote(
    *operands: tuple[Any, bool], shapes: Sequence[tuple[int, ...]] | None = None
) -> tuple[Any, bool]:
    """Return the dtype and the weakness of the result of an operation that joins its operands.

    Args:
        operands: for each operand its dtype (an object, not a name) and whether it is weak.
        shapes: of the operands, by which a strict option knows those that the caller has passed.

    Returns:
        The dtype and whether it is weak. A join of weak operands alone is weak. bool is never weak.

    Raises:
        TypePromotionError: no type is above all of them.

    Example:
        >>> promote((dtypes.int16, False), (dtypes.float32, True))
        (dtype('float32'), True)
        >>> promote((dtypes.float16, False), (dtypes.float32, True))
        (dtype('float16'), False)
    """
    options = config.values
    try:
        return _promote(options.numpy_dtype_promotion, options.enable_x64, operands)
    except TypePromotionError:
        if _is_held(operands, shapes or [None] * len(operands)):
            raise
    return _promote("standard", options.enable_x64, operands)


def _is_held(operands: Sequence[tuple[Any, bool]], shapes: Sequence[Any]) -> bool:
    """Return whether operands that promote nowhere stay refused, as those of the caller are."""
    if config.values.numpy_dtype_promotion != "strict":
        return True
    return are_passed_by_caller(list(zip(operands, shapes, strict=True)))


@boundary
def promote_types(a: DTypeLike, b: DTypeLike) -> DType:
    """Return the dtype that two dtypes have in common; `int`, `float` and `complex` count as weak.

    Where the result is the type of a Python scalar (`int` with `float`, `int32` with `float`), it
    is the 64-bit dtype that NumPy has for it.

    Args:
        a: a dtype, or `int`, `float` or `complex`.
        b: a dtype, or `int`, `float` or `complex`.

    Returns:
        A NumPy dtype. Of an integer and a floating one it is the floating one, where NumPy may take
        a wider one.

    Raises:
        TypePromotionError: they have none in common.

    Example:
        >>> promote_types("uint8", "int8"), promote_types("float16", int)
        (dtype('int16'), dtype('float16'))
    """
    nodes = frozenset(_node_of_name(x) for x in (a, b))
    mode, x64 = config.values.numpy_dtype_promotion, config.values.enable_x64
    try:
        joined = _least_upper_bound(mode, x64, nodes)
    except TypePromotionError:
        if _is_held([_dtype_and_weakness(x) for x in (a, b)], [None, None]):
            raise
        joined = _least_upper_bound("standard", x64, nodes)
    weak_kind = _PYTHON_TYPE_OF_NODE.get(joined)
    return joined if weak_kind is None else dtypes.DEFAULT_BY_PYTHON_TYPE[weak_kind][True]


@overload
def result_type(*operands: Any, return_weak_type_flag: Literal[False] = False) -> DType: ...
@overload
def result_type(*operands: Any, return_weak_type_flag: Literal[True]) -> tuple[DType, bool]: ...
def result_type(*operands: Any, return_weak_type_flag: bool = False) -> DType | tuple[DType, bool]:
    """Return the dtype in which an operation on these operands takes place.

    Args:
        operands: arrays, traced values, NumPy arrays, Python scalars, dtypes or names of dtypes;
            None stands for the default floating dtype.
        return_weak_type_flag: whether to return the pair of the dtype and its weakness.

    Returns:
        The dtype, or the pair. A weak result has the default dtype of its kind.

    Raises:
        TypePromotionError: the operands have no dtype in common.
        ValueError: there are no operands.

    Example:
        >>> result_type("int8", 3), result_type("int8", 3.0), result_type(3, 3.0)
        (dtype('int8'), dtype('float32'), dtype('float32'))
    """
    try:
        if not operands:
            raise ValueError(message("result_type", "needs at least one operand."))
        dtype, weak = promote(*map(_dtype_and_weakness, operands))
    except Exception as error:
        leave(error)
        raise
    if weak:
        kind = dtypes.python_type_of(dtype)
        dtype = dtypes.python_scalar_dtype(kind) if kind is not None else dtype
    return (dtype, weak) if return_weak_type_flag else dtype


def is_weakly_typed(value: Any) -> bool:
    """Whether a value gives way to dtypes of its kind, as Python numbers do."""
    if type(value) in _WEAK_NODE_OF_PYTHON_TYPE:
        return True
    aval = getattr(value, "aval", None)
    return aval is not None and bool(getattr(aval, "weak_type", False))


def check_scalar_fits(value: Any, dtype: DType, operation: str = "array") -> None:
    """Raise OverflowError if a Python integer cannot be an element of the dtype.

    Integers must lie within the range of an integer dtype, and be a float at all (below about
    1.8e308 in magnitude) for an inexact one, where they are rounded. Other values always pass.

    Example:
        >>> check_scalar_fits(300, dtypes.uint8)
        Traceback (most recent call last):
        OverflowError: array: Python int 300 too large to convert to uint8.
          expected  a value from 0 to 255
          hint      int16 holds it
    """
    if type(value) is not int:
        return
    if dtypes.is_integer(dtype):
        limits = dtypes.iinfo(dtype)
        lowest, highest = int(limits.min), int(limits.max)
        if lowest <= value <= highest:
            return
        hint = _dtype_that_holds(value)
        expected = f"a value from {lowest} to {highest}"
    elif dtypes.is_inexact(dtype):
        try:
            float(value)
            return
        except OverflowError:
            expected, hint = "a magnitude of at most 1.8e308", ""
    else:
        return
    problem = f"Python int {_abbreviate(value)} too large to convert to {dtype.name}."
    raise OverflowError(message(operation, problem, expected=expected, hint=hint))


# --- the lattice --------------------------------------------------------------------------------

# A node is a dtype or the sign of a weak type.
_WEAK_NODE_OF_PYTHON_TYPE: Final[dict[Any, str]] = {int: "i*", float: "f*", complex: "c*"}
_PYTHON_TYPE_OF_NODE: Final[dict[Any, type]] = {"i*": int, "f*": float, "c*": complex}


def _arrows(strict: bool, x64: bool) -> dict[Any, tuple[Any, ...]]:
    """Return, for each node, the nodes directly above it."""
    above: dict[Any, tuple[Any, ...]] = dict.fromkeys(dtypes.ALL, ())
    if strict:
        integers = (*dtypes.UNSIGNED, *dtypes.SIGNED)
        return above | {
            "i*": ("f*", *integers), "f*": ("c*", *dtypes.FLOATING), "c*": dtypes.COMPLEX,
        }  # fmt: skip
    d = dtypes
    return above | {
        d.bool_: ("i*",),
        "i*": (*d.SMALL_INTEGERS, d.uint8, d.int8),
        d.uint8: (d.uint16, d.int16),
        d.uint16: (d.uint32, d.int32),
        d.uint32: (d.uint64, d.int64 if x64 else d.int32),
        d.uint64: ("f*",),
        d.int8: (d.int16,),
        d.int16: (d.int32,),
        d.int32: (d.int64,),
        d.int64: ("f*",),
        "f*": (*d.SMALL_FLOATS, d.bfloat16, d.float16, "c*"),
        d.bfloat16: (d.float32,),
        d.float16: (d.float32,),
        d.float32: (d.float64, d.complex64),
        d.float64: (d.complex128,),
        "c*": (d.complex64,),
        d.complex64: (d.complex128,),
    }


@functools.cache
def _upper_bounds(strict: bool, x64: bool) -> Mapping[Any, frozenset[Any]]:
    """Return, for each node, itself and all nodes above it."""
    arrows = _arrows(strict, x64)
    bounds: dict[Any, frozenset[Any]] = {}

    def bounds_of(node: Any) -> frozenset[Any]:
        if node not in bounds:
            bounds[node] = frozenset({node}).union(*(bounds_of(next_) for next_ in arrows[node]))
        return bounds[node]

    for node in arrows:
        bounds_of(node)
    return bounds


def _least_upper_bound(mode: str, x64: bool, nodes: frozenset[Any]) -> Any:
    strict = mode == "strict"
    bounds = _upper_bounds(strict, x64)
    if any(node not in bounds for node in nodes):
        raise _no_promotion(nodes, strict)
    common = frozenset.intersection(*(bounds[node] for node in nodes))
    least = [node for node in common if common <= bounds[node]]
    if not least:
        raise _no_promotion(nodes, strict)
    return least[0]


@functools.lru_cache(maxsize=8192)
def _promote(mode: str, x64: bool, operands: tuple[tuple[Any, bool], ...]) -> tuple[Any, bool]:
    """Return the dtype and weakness that operands have together."""
    first = operands[0][0]
    weak = all(is_weak for _, is_weak in operands)
    if len(operands) == 1 or (
        all(dtype == first for dtype, _ in operands) and not (weak and mode == "strict")
    ):
        return first, weak and first != dtypes.bool_  # also for dtypes outside the lattice
    if weak and mode != "strict":
        # Joined as dtypes and not as weak types: weak values need not have the default dtype.
        joined = _least_upper_bound(mode, x64, frozenset(dtype for dtype, _ in operands))
    else:
        joined = _least_upper_bound(mode, x64, frozenset(_node(*operand) for operand in operands))
    weak_kind = _PYTHON_TYPE_OF_NODE.get(joined)
    if weak_kind is not None:
        return dtypes.DEFAULT_BY_PYTHON_TYPE[weak_kind][x64], True
    return joined, weak and mode != "strict" and joined != dtypes.bool_


def _node(dtype: Any, weak: bool) -> Any:
    if not weak:
        return dtype
    return _WEAK_NODE_OF_PYTHON_TYPE.get(dtypes.python_type_of(dtype), dtype)


def _node_of_name(x: DTypeLike) -> Any:
    if isinstance(x, type) and x in _WEAK_NODE_OF_PYTHON_TYPE:
        return _WEAK_NODE_OF_PYTHON_TYPE[x]
    return dtypes.requested_dtype(x, "promote_types")


def _dtype_and_weakness(operand: Any) -> tuple[Any, bool]:
    if operand is None:
        return dtypes.python_scalar_dtype(float), False
    if isinstance(operand, type):
        return dtypes.dtype(operand), operand in _WEAK_NODE_OF_PYTHON_TYPE
    return dtypes.dtype(operand), is_weakly_typed(operand)


def _no_promotion(nodes: frozenset[Any], strict: bool) -> TypePromotionError:
    if dtypes.float0 in nodes:
        return TypePromotionError(message(
            "promote", "float0s do not support any operations by design.",
            hint="they are the zero tangents of integers and booleans: leave them out",
        ))  # fmt: skip
    names = sorted(_name(node) for node in nodes)
    hint = "convert one of them first, such as x.astype('float32')"
    reason = ""
    if strict:
        reason = " while numpy_dtype_promotion is 'strict'"
    elif extended := [node for node in nodes if dtypes.is_extended(node)]:
        reason = f", and {extended[0].elements} never promote"
        hint = extended[0].hint
    else:
        hint = (
            "floats of 4, 6, 8 bits and integers of 1, 2, 4 bits never promote by themselves:\n"
            + hint
        )
    problem = f"{' and '.join(names)} have no available implicit dtype promotion path{reason}."
    return TypePromotionError(message("promote", problem, hint=hint))


def _name(node: Any) -> str:
    kind = _PYTHON_TYPE_OF_NODE.get(node)
    return f"Python {kind.__name__}" if kind is not None else str(node.name)


def _dtype_that_holds(value: int) -> str:
    for dtype in (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint64):
        limits = dtypes.iinfo(dtype)
        if int(limits.min) <= value <= int(limits.max):
            return f"{dtype.name} holds it"
    return "a float holds it, rounded: write it with a decimal point"


def _abbreviate(value: int) -> str:
    # Not str(value) at once: Python refuses to print integers of more than 4300 digits.
    return str(value) if abs(value) < 10**40 else f"of {value.bit_length()} bits"
