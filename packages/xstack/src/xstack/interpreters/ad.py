"""Derivatives of primitives whose rules come one by one: the tables, and what fills them.

    primitive_jvps[p] = rule          (primals, tangents, **params) -> (results, tangents)
    primitive_transposes[p] = rule    (cotangents, *operands, **params) -> cotangents

A tangent that is known to be zero is a `Zero`; an operand that a rule is to transpose with respect
to is an `UndefinedPrimal`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from xad import JVPTracer
from xnp import lax
from xprim import Linear as UndefinedPrimal, Zero
from xstack.interpreters.rule_tables import (
    Primitive,
    Rule,
    primitive_jvps,
    primitive_transposes,
)

__all__ = [
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "instantiate_zeros",
    "is_undefined_primal",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]

__dir__ = __all__.copy


def deflinear(primitive: Primitive, transpose_rule: Rule) -> None:
    """Say that a primitive is linear in all of its operands.

    Args:
      primitive: what it is said of.
      transpose_rule: `(cotangent, **params) -> cotangents of the operands`.

    Example:
      >>> import xstack.numpy
      >>> from xstack.extend.core import Primitive
      >>> twice_p = Primitive("twice")
      >>> twice_p.def_impl(lambda x: 2 * x) and None
      >>> deflinear(twice_p, lambda ct: [twice_p.bind(ct)])
      >>> float(primitive_jvps[twice_p]((1.0,), (3.0,))[1])
      6.0
    """

    def transpose(ct: Any, *operands: Any, **params: Any) -> Any:
        return [None] * len(operands) if type(ct) is Zero else transpose_rule(ct, **params)

    deflinear2(primitive, transpose)


def deflinear2(primitive: Primitive, transpose_rule: Rule) -> None:
    """Do as `deflinear` for `(cotangent, *operands, **params) -> cotangents` as the rule.

    Args:
      primitive: what it is said of.
      transpose_rule: is given the operands, `UndefinedPrimal` each, which know their types.

    Example:
      >>> import xstack.numpy
      >>> from xstack.extend.core import Primitive
      >>> total_p = Primitive("total")
      >>> deflinear2(total_p, lambda ct, x: [lax.broadcast(ct, x.aval.shape)])
      >>> total_p in primitive_transposes
      True
    """
    primitive_jvps[primitive] = partial(_linear_jvp, primitive)
    primitive_transposes[primitive] = transpose_rule


def _linear_jvp(primitive: Primitive, primals: Any, tangents: Any, **params: Any) -> Any:
    outs = primitive.bind(*primals, **params)
    if all(type(t) is Zero for t in tangents):
        zeros = [Zero(x.aval.to_tangent_aval()) for x in _as_list(primitive, outs)]
        return outs, zeros if primitive.multiple_results else zeros[0]
    return outs, primitive.bind(*map(instantiate_zeros, tangents), **params)


def defjvp(primitive: Primitive, *rules: Rule | None) -> None:
    """Give for each operand the tangent of the result that its tangent makes.

    Args:
      primitive: of one result.
      rules: `(tangent, *operands, **params) -> tangent of the result`; None where it is zero.

    Example:
      >>> import xstack.numpy
      >>> from xstack.extend.core import Primitive
      >>> square_p = Primitive("my_square")
      >>> square_p.def_impl(lambda x: x * x) and None
      >>> defjvp(square_p, lambda x_dot, x: 2 * x * x_dot)
      >>> [float(x) for x in primitive_jvps[square_p]((3.0,), (1.0,))]
      [9.0, 6.0]
    """
    ignoring = [rule and partial(_without_result, rule) for rule in rules]
    defjvp2(primitive, *ignoring)


def _without_result(rule: Rule, tangent: Any, _result: Any, *operands: Any, **params: Any) -> Any:
    return rule(tangent, *operands, **params)


def defjvp2(primitive: Primitive, *rules: Rule | None) -> None:
    """Do as `defjvp` for rules that take the result, too.

    Args:
      primitive: of one result.
      rules: `(tangent, result, *operands, **params) -> tangent of the result`, or None.

    Example:
      >>> import xstack.numpy
      >>> from xstack.extend.core import Primitive
      >>> grow_p = Primitive("grow")
      >>> grow_p.def_impl(lax.exp) and None
      >>> defjvp2(grow_p, lambda x_dot, y, x: x_dot * y)
      >>> [float(x) for x in primitive_jvps[grow_p]((0.0,), (2.0,))]
      [1.0, 2.0]
    """

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        total: Any = Zero(out.aval.to_tangent_aval())
        for rule, tangent in zip(rules, tangents, strict=True):
            if rule is not None and type(tangent) is not Zero:
                total = add_tangents(total, rule(tangent, out, *primals, **params))
        return out, total

    primitive_jvps[primitive] = jvp


def defbilinear(primitive: Primitive, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Say that a primitive is linear in each of its two operands.

    Args:
      primitive: of one result.
      lhs_rule: `(cotangent, lhs, rhs, **params)` to the cotangent of the first operand, which is an
        `UndefinedPrimal`.
      rhs_rule: the same for the second operand.

    Example:
      >>> import xstack.numpy
      >>> from xstack.extend.core import Primitive
      >>> times_p = Primitive("times")
      >>> times_p.def_impl(lambda x, y: x * y) and None
      >>> defbilinear(times_p, lambda ct, x, y: times_p.bind(ct, y),
      ...             lambda ct, x, y: times_p.bind(x, ct))
      >>> [float(x) for x in primitive_jvps[times_p]((2.0, 3.0), (1.0, 1.0))]
      [6.0, 5.0]
    """

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> Any:
        if type(ct) is Zero:
            return None, None
        if is_undefined_primal(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    defjvp(
        primitive,
        lambda x_dot, x, y, **params: primitive.bind(x_dot, y, **params),
        lambda y_dot, x, y, **params: primitive.bind(x, y_dot, **params),
    )
    primitive_transposes[primitive] = transpose


def is_undefined_primal(x: object) -> bool:
    """Return whether a transpose rule is to give the cotangent of this operand.

    Args:
      x: an operand of a transpose rule.

    Example:
      >>> is_undefined_primal(3.0)
      False
    """
    return type(x) is UndefinedPrimal


def instantiate_zeros(tangent: Any) -> Any:
    """Return a tangent as an array: zeros where it is a `Zero`.

    Args:
      tangent: an array or a `Zero`.

    Example:
      >>> from xstack.core import ShapedArray
      >>> instantiate_zeros(Zero(ShapedArray((2,), "float32")))
      Array([0., 0.], dtype=float32)
    """
    return zeros_like_aval(tangent.aval) if type(tangent) is Zero else tangent


def zeros_like_aval(aval: Any) -> Any:
    """Return zeros of an abstract value.

    Args:
      aval: of numbers or truth values.

    Example:
      >>> from xstack.core import ShapedArray
      >>> zeros_like_aval(ShapedArray((2,), "int32"))
      Array([0, 0], dtype=int32)
    """
    return lax.full(aval.shape, 0, aval.dtype)


def add_tangents(x: Any, y: Any) -> Any:
    """Return the sum of two tangents, either of which may be a `Zero`.

    Args:
      x: an array, or a `Zero`.
      y: the same, of the type of `x`.

    Example:
      >>> import xstack.numpy
      >>> from xprim import ShapedArray, as_array
      >>> add_tangents(Zero(ShapedArray((), "float32")), as_array(2.0)).item()
      2.0
    """
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else lax.add(x, y)


def _as_list(primitive: Primitive, outs: Any) -> Any:
    return outs if primitive.multiple_results else (outs,)
