"""Sizes, shapes and axes that the user gives: Python integers, or an error that says what to do.

A shape is part of a program, so it must be known while the program is traced. A traced value in its
place is a `ConcretizationTypeError`, anything else that is no integer a `TypeError`.

Neighbours: `trace` has the tracers, `errors` the classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xprim.array import ConcreteArray
from xprim.descriptions import described
from xprim.errors import (
    ArgumentError,
    ConcretizationTypeError,
    TracerIntegerConversionError,
    message,
)
from xprim.sizes import size_of
from xprim.trace import Tracer

__all__ = ["check_sizes", "static_int", "static_shape"]

__dir__ = __all__.copy


def check_sizes(operation: str, shapes: Sequence[Sequence[Any]]) -> None:
    """Raise unless no size in some shapes is negative; of a symbolic one nothing is known."""
    if any(isinstance(n, int) and n < 0 for shape in shapes for n in shape):
        raise ArgumentError(message(
            operation, "a size must not be negative.",
            got=", ".join(str(tuple(shape)) for shape in shapes),
        ))  # fmt: skip


class TracedIntegerError(ConcretizationTypeError, TracerIntegerConversionError):
    """An axis or a size is traced; caught as what `int` of it raises, too, as of JAX."""


def static_int(value: Any, operation: str, what: str = "a dimension") -> int:
    """Return an integer that must be known while tracing.

    Args:
      value: an int, or a NumPy or concrete array of one integer.
      operation: what errors name.
      what: what the integer is to `operation`: `the axis`.

    Example:
      >>> static_int(3, "zeros")
      3
    """
    if isinstance(value, Tracer) and value.concrete() is None:
        raise TracedIntegerError(
            value, operation, f"{what} is a traced value, but it must be known while tracing."
        )
    try:
        return size_of(value)
    except TypeError:
        raise TypeError(
            f"{operation}: {what} must be an integer, got {described(value)}."
        ) from None


def static_shape(shape: Any, operation: str) -> tuple[int, ...]:
    """Return a shape, given as an integer or a sequence of integers, as a tuple.

    Example:
      >>> static_shape(3, "zeros"), static_shape([2, 3], "zeros")
      ((3,), (2, 3))
    """
    if isinstance(shape, Tracer) and shape.concrete() is None:
        raise ConcretizationTypeError(
            shape, operation, "the shape is a traced value, but it must be known while tracing."
        )
    if isinstance(shape, ConcreteArray) and shape.ndim:
        shape = shape.to_host().tolist()
    if hasattr(shape, "__index__") and not getattr(shape, "shape", ()):
        shape = (shape,)
    try:
        sizes = tuple(shape)
    except TypeError:
        sizes = None
    if sizes is None or isinstance(shape, str):
        raise TypeError(
            f"{operation}: the shape must be an integer or a tuple of integers, got "
            f"{described(shape)}."
        )
    return tuple([static_int(n, operation) for n in sizes])
