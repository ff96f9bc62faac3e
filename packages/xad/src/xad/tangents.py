"""Tangents and cotangents: their types, zeros, sums, and the symbols of jvp rules.

The tangent of a value of inexact dtype has the same shape and dtype; the tangent of an integer or
boolean is always zero, and shows itself to users as an array of dtype `float0`. Inside the
machinery a tangent known to be zero is a `Zero`; it is made an array only where a rule needs one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xtree
from xnp.lax import add_p, broadcast_in_dim_p, convert_element_type_p
from xprim import (
    LINEAR,
    ZERO,
    Array,
    ConcreteArray,
    LinearIn,
    MultiLinear,
    Primitive,
    ShapedArray,
    Zero,
    as_array,
    dtypes,
    scalar_array,
    state,
)
from xprim.avals import type_of_by_class
from xprim.errors import ShapeError, described, message
from xprim.sharded_types import reshard_as
from xprim.transformed import path_of
from xtree.namespaces import late_import

__all__ = ()

_high_types = late_import("xprim.high_types", "few programs have types of their own")

Tangent = Any  # an Array or a Zero
JvpRule = Callable[..., tuple[Sequence[Any], Sequence[Tangent]]]


def tangent_aval(value: Any) -> ShapedArray:
    """Return the abstract value of the tangents of an array."""
    return value.aval.to_tangent_aval()  # type: ignore[no-any-return]


def is_differentiable(aval: ShapedArray) -> bool:
    """Return whether values of this type have tangents other than zero."""
    return dtypes.is_inexact(aval.dtype)


def instantiate(tangent: Tangent) -> Any:
    """Return a tangent as an array, zeros included."""
    if type(tangent) is not Zero:
        return tangent
    aval = tangent.aval
    zero = scalar_array(0, aval.dtype)
    if not aval.shape:
        array = zero
    else:
        array = broadcast_in_dim_p.bind(zero, shape=aval.shape, broadcast_dimensions=())[0]
    return array if aval.type_sharding is None else reshard_as(array, aval)


def retype_as(tangent: Tangent, aval: ShapedArray) -> Any:
    """Return a tangent as an array that is weakly typed where values of type `aval` are.

    Rules and derived programs keep no account of weak types, so it is looked up at the end, of what
    the user gets: the derivative at a Python number gives way in promotion as the number does.
    """
    array = instantiate(tangent)
    if array.aval.type_sharding is not aval.type_sharding:
        array = reshard_as(array, aval)
    if array.aval.weak_type == aval.weak_type:
        return array
    return convert_element_type_p.bind(array, new_dtype=array.aval.dtype, weak_type=aval.weak_type)[
        0
    ]


def add_tangents(a: Tangent, b: Tangent) -> Tangent:
    """Return the sum of two tangents or cotangents of the same value."""
    if type(a) is Zero:
        return b
    return a if type(b) is Zero else add_p.bind(a, b)[0]


def jvp_rule(primitive: Primitive) -> JvpRule:
    """Return the forward derivative rule of a primitive, symbols resolved."""
    rule = _jvp_rules.get(primitive)
    if rule is None:
        rule = _jvp_rules[primitive] = _resolve(primitive, primitive.rule("jvp"))
    return rule


# The `jvp` rules of primitives, completed for operands without tangents.
_jvp_rules: dict[Primitive, JvpRule] = {}


def _resolve(primitive: Primitive, rule: Any) -> JvpRule:
    if rule is ZERO:
        return _zero_rule(primitive)
    if rule is LINEAR:
        return _linear_rule(primitive)
    if isinstance(rule, LinearIn):
        return _linear_in_rule(primitive, rule.argnums)
    if isinstance(rule, MultiLinear):
        return _multilinear_rule(primitive, rule.argnums)
    return rule  # type: ignore[no-any-return]


def _zeros(outs: Sequence[Any]) -> list[Tangent]:
    return [Zero(tangent_aval(out)) for out in outs]


def _zero_rule(primitive: Primitive) -> JvpRule:
    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        outs = state.trace.process(primitive, tuple(primals), params)
        return outs, _zeros(outs)

    return rule


def _linear_rule(primitive: Primitive) -> JvpRule:
    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        outs = state.trace.process(primitive, tuple(primals), params)
        if not outs or not is_differentiable(outs[0].aval):  # a split of nothing has no parts
            return outs, _zeros(outs)
        return outs, primitive.bind(*[instantiate(t) for t in tangents], **params)

    return rule


def _linear_in_rule(primitive: Primitive, argnums: tuple[int, ...]) -> JvpRule:
    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        outs = state.trace.process(primitive, tuple(primals), params)
        if all(type(tangents[i]) is Zero for i in argnums):
            return outs, _zeros(outs)
        operands = list(primals)
        for i in argnums:
            operands[i] = instantiate(tangents[i])
        return outs, primitive.bind(*operands, **params)

    return rule


def _multilinear_rule(primitive: Primitive, argnums: tuple[int, ...]) -> JvpRule:
    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        outs = state.trace.process(primitive, tuple(primals), params)
        total: Tangent = Zero(tangent_aval(outs[0]))
        for i in argnums:
            if type(tangents[i]) is not Zero:
                operands = (*primals[:i], tangents[i], *primals[i + 1 :])
                term = state.trace.process(primitive, operands, params)[0]
                total = term if type(total) is Zero else add_tangents(total, term)
        return outs, (total,)

    return rule


def float0_zeros(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return the tangent of an integer array: zeros of dtype `float0`."""
    return np.zeros(shape, dtypes.float0)


def zeros_of(aval: ShapedArray) -> Any:
    """Return a zero tangent as users see it: an array, of dtype `float0` for integers."""
    if not is_differentiable(aval):
        return float0_zeros(aval.shape)
    return retype_as(Zero(aval), aval)


def check_tangents(
    tangents: Any, tree: Any, avals: Sequence[ShapedArray], operation: str, what: str = "tangent"
) -> list[Tangent]:
    """Return the leaves of the user's tangents or cotangents, checked against the primals.

    Args:
      tangents: the tree that the user gave.
      tree: the structure it must have.
      avals: the abstract values of the primals.
      operation: the function that errors name.
      what: `tangent` or `cotangent`.
    """
    if type_of_by_class:
        tangents = _high_types.with_all_leaves(tree, tangents)
    leaves, given = xtree.flatten(tangents)
    if given != tree:
        primal = "function's result" if what == "cotangent" else "primals"
        raise ShapeError(message(
            operation,
            f"unexpected tree structure: the {what}s must have the structure of the {primal}.",
            got=f"{given}",
            expected=f"{tree}",
        ))  # fmt: skip
    # a key is not a tangent of a key; as a cotangent, it is not looked at
    lenient = what == "cotangent"
    return [
        x if isinstance(x, Array) and x.aval is a and (lenient or a.physical is None)
        else _check(x, a, i, tree, operation, what)
        for i, (x, a) in enumerate(zip(leaves, avals, strict=True))
    ]  # fmt: skip


def _check(value: Any, aval: ShapedArray, i: int, tree: Any, operation: str, what: str) -> Any:
    if type(value) is Zero:
        return value
    where = path_of(tree, i, " at ")
    if not is_differentiable(aval):
        if getattr(value, "dtype", None) != dtypes.float0:
            _check_of_integers(value, aval, where, operation, what)
        return Zero(aval)
    if isinstance(value, bool | int | float | complex):
        array: Any = _scalar_tangent(value, aval)
    else:
        array = as_array(value, what=f"{operation}: the {what}{where}")
    if array.aval.shape != aval.shape or array.aval.dtype != aval.dtype:
        raise ShapeError(message(
            operation, f"the {what}{where} must have the shape and dtype of its primal.",
            got=array.aval.str_long(), expected=aval.strong().str_long(),
        ))  # fmt: skip
    return array


def _check_of_integers(
    value: Any, aval: ShapedArray, where: str, operation: str, what: str
) -> None:
    """Raise unless a value that is not of dtype float0 may stand for the zero of integers.

    A cotangent may, of any dtype: nothing flows back from a result of integers, and a tree of
    `ones_like(result)` has such leaves. A tangent says how integers change, which they cannot.
    """
    if what == "tangent":
        raise ShapeError(message(
            operation,
            f"the {what}{where} of a value of dtype {aval.dtype.name} must have dtype float0.",
            got=f"{type_text(value)}",
            hint="integers and booleans have zero tangents: np.zeros(shape, float0)",
        ))  # fmt: skip
    array = as_array(value, what=f"{operation}: the {what}{where}")
    if array.aval.shape != aval.shape:
        raise ShapeError(message(
            operation, f"the {what}{where} must have the shape of the result.",
            got=array.aval.str_long(), expected=f"float0[{','.join(map(str, aval.shape))}]",
        ))  # fmt: skip


def _scalar_tangent(value: Any, aval: ShapedArray) -> Array:
    """Return a Python number as the tangent of a primal, where the number fits its dtype."""
    if isinstance(value, complex) and not dtypes.is_complex(aval.dtype):
        return as_array(value)
    array = scalar_array(value, aval.dtype)
    if aval.weak_type and not aval.shape:
        weak = scalar_array(value, aval.dtype, True)
        return weak if weak.aval == aval else ConcreteArray(array.to_host(), aval)
    return array


def type_text(value: Any) -> str:
    """Return what an error says of a value: `float32[3]`, or the name of its Python type."""
    aval = getattr(value, "aval", None)
    if isinstance(aval, ShapedArray):
        return aval.str_long()
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        return described(value)
    return f"{dtype.name if dtype != dtypes.float0 else 'float0'}[{','.join(map(str, shape))}]"
