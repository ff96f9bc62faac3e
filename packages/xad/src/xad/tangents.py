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
from xnp import lax
from xprim import (
    LINEAR,
    ZERO,
    LinearIn,
    MultiLinear,
    Primitive,
    ShapedArray,
    Zero,
    as_array,
    dtypes,
)

Tangent = Any  # an Array or a Zero
JvpRule = Callable[..., tuple[Sequence[Any], Sequence[Tangent]]]


def tangent_aval(value: Any) -> ShapedArray:
    """Return the abstract value of the tangents of an array."""
    aval = value.aval
    if dtypes.is_inexact(aval.dtype):
        return aval.strong()  # type: ignore[no-any-return]
    return ShapedArray(aval.shape, dtypes.float0)


def is_differentiable(aval: ShapedArray) -> bool:
    """Return whether values of this type have tangents other than zero."""
    return dtypes.is_inexact(aval.dtype)


def instantiate(tangent: Tangent) -> Any:
    """Return a tangent as an array, zeros included."""
    if type(tangent) is Zero:
        return lax.full(tangent.aval.shape, 0, tangent.aval.dtype)
    return tangent


def added(a: Tangent, b: Tangent) -> Tangent:
    """Return the sum of two tangents or cotangents of the same value."""
    if type(a) is Zero:
        return b
    return a if type(b) is Zero else lax.add(a, b)


def jvp_rule(primitive: Primitive) -> JvpRule:
    """Return the forward derivative rule of a primitive, symbols resolved."""
    rule = _jvp_rules.get(primitive)
    if rule is None:
        rule = _jvp_rules[primitive] = _resolved(primitive, primitive.rule("jvp"))
    return rule


_jvp_rules: dict[Primitive, JvpRule] = {}


def _resolved(primitive: Primitive, rule: Any) -> JvpRule:
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
        outs = primitive.bind(*primals, **params)
        return outs, _zeros(outs)

    return rule


def _linear_rule(primitive: Primitive) -> JvpRule:
    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        outs = primitive.bind(*primals, **params)
        if not is_differentiable(outs[0].aval):
            return outs, _zeros(outs)
        return outs, primitive.bind(*[instantiate(t) for t in tangents], **params)

    return rule


def _linear_in_rule(primitive: Primitive, argnums: tuple[int, ...]) -> JvpRule:
    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        outs = primitive.bind(*primals, **params)
        if all(type(tangents[i]) is Zero for i in argnums):
            return outs, _zeros(outs)
        operands = list(primals)
        for i in argnums:
            operands[i] = instantiate(tangents[i])
        return outs, primitive.bind(*operands, **params)

    return rule


def _multilinear_rule(primitive: Primitive, argnums: tuple[int, ...]) -> JvpRule:
    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        outs = primitive.bind(*primals, **params)
        total: Tangent = Zero(tangent_aval(outs[0]))
        for i in argnums:
            if type(tangents[i]) is not Zero:
                operands = (*primals[:i], tangents[i], *primals[i + 1 :])
                total = added(total, primitive.bind(*operands, **params)[0])
        return outs, (total,)

    return rule


def float0_zeros(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return the tangent of an integer array: zeros of dtype `float0`."""
    return np.zeros(shape, dtypes.float0)


def zeros_of(aval: ShapedArray) -> Any:
    """Return a zero tangent as users see it: an array, of dtype `float0` for integers."""
    if not is_differentiable(aval):
        return float0_zeros(aval.shape)
    return instantiate(Zero(aval.strong()))


def checked_tangents(
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
    if isinstance(tangents, list) and len(tangents) == tree.num_leaves:
        tangents = tuple(tangents) if tree != xtree.structure(tangents) else tangents
    leaves, given = xtree.flatten(tangents)
    if given != tree:
        primal = "function's result" if what == "cotangent" else "primals"
        raise TypeError(
            f"{operation}: the {what}s must have the structure of the {primal}."
            f"\n  got       {given}\n  expected  {tree}"
        )
    return [_checked(x, a, operation, what) for x, a in zip(leaves, avals, strict=True)]


def _checked(value: Any, aval: ShapedArray, operation: str, what: str) -> Any:
    if not is_differentiable(aval):
        if getattr(value, "dtype", None) != dtypes.float0:
            raise TypeError(
                f"{operation}: the {what} of a value of dtype {aval.dtype.name} must have dtype "
                "float0.\n  hint      np.zeros(shape, xad.float0)"
            )
        return Zero(aval)
    if isinstance(value, bool | int | float | complex):
        value = as_array(value, aval.dtype)
    array = as_array(value, what=f"{operation}: a {what}")
    if array.aval.shape != aval.shape or array.aval.dtype != aval.dtype:
        raise TypeError(
            f"{operation}: a {what} must have the shape and dtype of its primal."
            f"\n  got       {array.aval.str_long()}\n  expected  {aval.strong().str_long()}"
        )
    return array
