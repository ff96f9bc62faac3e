"""Applying a primitive of real floats to operands as NumPy does: promoted and broadcast.

Neighbours: the modules of `special` and `stats` are written with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xnp.numpy.dispatch import dispatched
from xnp.numpy.promoting import bind, broadcast, inexact
from xprim import Array

__all__ = ()


@dispatched(1)
def _of_one(x: Any, primitive: str, operation: str) -> Array:
    return bind(primitive, *inexact(operation, x))


@dispatched(2)
def _of_two(x: Any, y: Any, primitive: str, operation: str) -> Array:
    return bind(primitive, *broadcast(operation, *inexact(operation, x, y)))


@dispatched(3)
def _of_three(x: Any, y: Any, z: Any, primitive: str, operation: str) -> Array:
    return bind(primitive, *broadcast(operation, *inexact(operation, x, y, z)))


_BY_COUNT: dict[int, Callable[..., Array]] = {1: _of_one, 2: _of_two, 3: _of_three}


def applied(primitive: str, operation: str, *operands: Any) -> Array:
    """Return a primitive's result on one to three operands; errors name the operation."""
    return _BY_COUNT[len(operands)](*operands, primitive, operation)
