"""Batches of primitives whose rules come one by one: the tables, and what fills them.

    primitive_batchers[p] = rule          (operands, dims, **params) -> (results, dims)
    axis_primitive_batchers[p] = rule     (size, name, None, operands, dims, **params) -> the same
    fancy_primitive_batchers[p] = rule    (axis, operands, dims, **params) -> the same

A batch dimension is a number, or None where an operand or a result has none; an `axis` has a `size`
and a `name`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from xbatch import register_vmappable, unregister_vmappable
from xnp import lax, numpy as xnumpy
from xprim import as_array
from xprim.errors import message
from xstack.interpreters.rule_tables import (
    Primitive,
    axis_primitive_batchers,
    fancy_primitive_batchers,
    primitive_batchers,
)

__all__ = [
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defvectorized",
    "fancy_primitive_batchers",
    "primitive_batchers",
    "register_vmappable",
    "unregister_vmappable",
]

__dir__ = __all__.copy


def defvectorized(primitive: Primitive) -> None:
    """Say that a primitive acts on each element alone, of one operand or of several alike.

    Args:
      primitive: what it is said of; operands that are batches have one batch dimension.

    Raises:
      ValueError: from `vmap`, when the batch dimensions differ.

    Example:
      >>> from xstack.extend.core import Primitive
      >>> twice_p = Primitive("twice")
      >>> defvectorized(twice_p)
      >>> twice_p in primitive_batchers
      True
    """
    primitive_batchers[primitive] = partial(_vectorize, primitive)


def _vectorize(primitive: Primitive, operands: Any, dims: Any, **params: Any) -> Any:
    if len(set(dims)) != 1:
        raise ValueError(message(
            f"{primitive}", "defvectorized requires one batch dimension of all operands.",
            got=", ".join(map(str, dims)),
            hint="defbroadcasting takes operands with and without one",
        ))  # fmt: skip
    return _with_dims(primitive, primitive.bind(*operands, **params), dims[0])


def defbroadcasting(primitive: Primitive) -> None:
    """Say that a primitive acts on each element alone, and broadcasts dimensions of size 1.

    Args:
      primitive: what it is said of; its operands have the same number of dimensions.

    Example:
      >>> from xstack.extend.core import Primitive
      >>> plus_p = Primitive("plus")
      >>> defbroadcasting(plus_p)
      >>> plus_p in primitive_batchers
      True
    """
    primitive_batchers[primitive] = partial(_broadcasting, primitive)


def _broadcasting(primitive: Primitive, operands: Any, dims: Any, **params: Any) -> Any:
    sizes = {x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None}
    placed = [bdim_at_front(x, d, max(sizes)) for x, d in zip(operands, dims, strict=True)]
    return _with_dims(primitive, primitive.bind(*placed, **params), 0)


def _with_dims(primitive: Primitive, results: Any, dim: Any) -> Any:
    return results, [dim] * len(results) if primitive.multiple_results else dim


def bdim_at_front(x: Any, bdim: int | None, size: int) -> Any:
    """Return an operand with its batch dimension first; one that has none is repeated.

    Args:
      x: an array.
      bdim: its batch dimension, or None.
      size: of the batch.

    Example:
      >>> from xnp import zeros
      >>> bdim_at_front(zeros((2, 3)), 1, 3).shape, bdim_at_front(zeros(2), None, 3).shape
      ((3, 2), (3, 2))
    """
    return broadcast(x, size, 0) if bdim is None else xnumpy.moveaxis(x, bdim, 0)


def broadcast(x: Any, sz: int, axis: int) -> Any:
    """Repeat an array along a new dimension.

    Args:
      x: an array.
      sz: how often.
      axis: the position of the new dimension.

    Example:
      >>> broadcast([1, 2], 3, 1)
      Array([[1, 1, 1],
             [2, 2, 2]], dtype=int32)
    """
    array = as_array(x) if not isinstance(x, list) else xnumpy.asarray(x)
    dims = [d for d in range(array.ndim + 1) if d != axis]
    shape = (*array.shape[:axis], sz, *array.shape[axis:])
    return lax.broadcast_in_dim(array, shape, dims)
