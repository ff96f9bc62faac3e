"""The batch rule of elementwise primitives, and what the symbols of batch rules stand for.

Elementwise operations take operands of one shape, and operands of rank 0 that are repeated. On a
batch: operands whose batch dimensions agree are used as they are; otherwise they are moved to one
common position, and only what the primitive's own shape rule would refuse is repeated to the full
shape (an unmapped array beside a mapped one, a mapped scalar beside an array).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xprim import ELEMENTWISE, Primitive, get_primitive, not_mapped, state
from xprim.contracts import BatchAxis

__all__ = ()

# The `batch` rules of primitives, those that are said by a symbol written out.
_rules: dict[Primitive, Callable[..., Any]] = {}


def resolved(primitive: Primitive) -> Callable[..., Any]:
    """Return the batch rule of a primitive, symbols resolved; `MissingRuleError` without one."""
    rule = _rules.get(primitive)
    if rule is None:
        given = primitive.rule("batch")
        rule = elementwise_rule(primitive) if given is ELEMENTWISE else given
        _rules[primitive] = rule
    return rule


def elementwise_rule(primitive: Primitive) -> Callable[..., Any]:
    """Return the batch rule of an elementwise primitive."""

    def rule(axis: BatchAxis, operands: list[Any], dims: list[Any], **params: Any) -> Any:
        dim, rank = not_mapped, -1
        for x, d in zip(operands, dims, strict=True):
            ndim = x.aval.ndim
            if d is not_mapped:
                if ndim:
                    break  # an array that is not mapped
            elif dim is not_mapped:
                dim, rank = d, ndim
            elif d != dim or ndim != rank:
                break
        else:
            results = state.trace.process(primitive, tuple(operands), params)
            return results, (dim,) * len(results)
        operands, dim = _aligned(axis, operands, dims)
        results = state.trace.process(primitive, tuple(operands), params)
        return results, (dim,) * len(results)

    return rule


def _aligned(
    axis: BatchAxis, operands: Sequence[Any], dims: Sequence[Any]
) -> tuple[list[Any], int]:
    """Bring operands to one common batch dimension; return them and it."""
    ranks = [x.aval.ndim - (d is not not_mapped) for x, d in zip(operands, dims, strict=True)]
    rank = max(ranks)
    full = [i for i, r in enumerate(ranks) if r == rank]
    mapped = [i for i in full if dims[i] is not not_mapped]
    dim = dims[mapped[0]] if mapped else 0
    model = mapped[0] if mapped else full[0]
    shape = list(operands[model].aval.shape)
    if not mapped:
        shape.insert(dim, axis.size)
    aligned = [
        _place(axis, x, d, r, dim, tuple(shape))
        for x, d, r in zip(operands, dims, ranks, strict=True)
    ]
    return aligned, dim


def _place(axis: Any, x: Any, d: Any, rank: int, dim: int, shape: tuple[int, ...]) -> Any:
    if d is not_mapped:
        if rank == 0:
            return x
        kept = tuple([i for i in range(len(shape)) if i != dim])
    elif rank == len(shape) - 1:
        return axis.move(x, d, dim)
    else:  # one number for each example
        kept = (dim,)
    return get_primitive("broadcast_in_dim").bind(x, shape=shape, broadcast_dimensions=kept)[0]
