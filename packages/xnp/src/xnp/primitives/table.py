"""Rows of the tables of primitives: elementwise operations, each with all of its rules.

An elementwise primitive takes operands that all have one shape, but for operands of rank 0, which
stand for an array of that shape filled with one value. All operands have one dtype (`lax` is
strict; the NumPy functions promote first). The derivative is given as a formula for each operand:

    unary    jvp=lambda x_dot, y, x: ...            y is the result
    binary   jvp=(lambda x_dot, z, x, y: ..., lambda y_dot, z, x, y: ...)

and `None` in the pair says that the operation is piecewise constant in that operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from xnp.primitives.accuracy import Accuracy, accuracy_attribute
from xnp.primitives.memory_order import for_memory_order, keep_memory_of_results
from xprim import (
    ELEMENTWISE,
    LINEAR,
    ZERO,
    Linear,
    NumpyCall,
    Primitive,
    ShapedArray,
    Undefined,
    Zero,
    dtypes,
    get_primitive,
    primitive_maker,
    shaped_array,
    state,
    undefined,
)
from xprim.contracts import Builder
from xprim.errors import ShapeError, message

__all__ = ()

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
_LARGE = 1 << 14  # elements: their memory comes from the kernel and goes back to it


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
            raise TypeError(message(
                name, f"does not take operands of dtype {dtype.name}.",
                expected=f"{_KIND_NAMES.get(kinds, 'another dtype')}",
            ))  # fmt: skip
        out = out_dtype(dtype) if callable(out_dtype) else out_dtype
        # a function goes to the dtype of the parts, or of the whole, which is as weak
        weak = all(a.weak_type for a in avals) and (out is None or callable(out_dtype))
        return (shaped_array(shape, dtype if out is None else out, weak),)

    return shape_rule


def common_dtype(name: str, avals: Sequence[ShapedArray]) -> np.dtype[Any]:
    """Return the one dtype of all operands, or raise a TypeError."""
    dtype = avals[0].dtype
    for aval in avals:
        if aval.dtype != dtype:
            raise TypeError(message(
                f"lax.{name}",
                f"requires operands of equal dtypes, got {', '.join(a.dtype.name for a in avals)}.",
                hint=f"convert with lax.convert_element_type, or use {_promoting(name)}, which "
                "promotes",
            ))  # fmt: skip
    return dtype


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
        is_mask = of_masks and out.dtype.kind == "b"
        return [b.same_type_op(of_masks if is_mask else op, operands, out)]

    return stablehlo_rule


def retyped_stablehlo(op: str, attributes: str = "") -> Callable[..., list[str]]:
    """Return the rule of a primitive that is one operation with a result of another dtype."""

    def stablehlo_rule(
        b: Builder, operands: Any, avals_in: Any, avals_out: Any, **_: Any
    ) -> list[str]:
        (out,) = avals_out
        shape = out.shape
        names = [b.broadcast(x, a, shape) for x, a in zip(operands, avals_in, strict=True)]
        types = [shaped_array(shape, a.dtype) for a in avals_in]
        return b.op(op, names, types, avals_out, attributes)

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
        if avals_out[0].size >= _LARGE:
            keep_memory_of_results()
        native = all(a.dtype in kinds for a in (*avals_in, *avals_out))
        return call if native else None

    return {"ufunc": rule}


def _in_memory_order(ufunc: Any, avals: list[ShapedArray], out: ShapedArray) -> Any:
    x, y = avals
    return for_memory_order(ufunc, x, y, out)


def tunable_stablehlo(op: str) -> Callable[..., list[str]]:
    """Return the rule of an operation that may be asked for an accuracy."""

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
        transpose=undefined(_NONLINEAR) if transpose is None else _summed_transpose(transpose),
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
            term = repeated(formula(dot, z, *primals, **params), z.aval.shape)
            total = term if total is None else get_primitive("add").bind(total, term)[0]
        return outs, (Zero(z.aval) if total is None else total,)

    return jvp_rule


def _summed_transpose(rule: Callable[..., Any]) -> Callable[..., Any]:
    def transpose_rule(cts: Any, *operands: Any, **params: Any) -> Any:
        results = rule(cts[0], *operands, **params)
        return tuple([
            r if type(r) is Zero or type(x) is not Linear or r.aval.shape == x.aval.shape
            else summed(r)
            for x, r in zip(operands, results, strict=True)
        ])  # fmt: skip

    return transpose_rule


def repeated(x: Any, shape: tuple[int, ...]) -> Any:
    """Repeat a value of rank 0 to a shape."""
    if x.aval.shape == shape:
        return x
    return get_primitive("broadcast_in_dim").bind(x, shape=shape, broadcast_dimensions=())[0]


def summed(x: Any) -> Any:
    """Sum all elements: what the transpose of repeating a rank-0 value is."""
    return get_primitive("reduce_sum").bind(x, axes=tuple(range(x.aval.ndim)))[0]
