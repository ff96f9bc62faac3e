"""Which algorithm computes a factorisation: the arguments of `eig`, `eigh` and `svd`.

The host and the CPU back end have LAPACK alone: QR iteration for `eig` and `eigh`, divide and
conquer for `svd`. GPUs have others. What a platform does not have is refused where a program is
written for it, so that no choice is silently another one.
"""

from __future__ import annotations

import enum
from typing import Any

from xprim import EAGER, ConcreteArray, Primitive, shaped_array
from xprim.errors import message

__all__ = ()


class EigImplementation(enum.Enum):
    """The library that computes `eig`."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """The algorithm of `eigh`."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """The algorithm of `svd`."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def check_choice(operation: str, name: str, chosen: Any, *had: enum.Enum) -> None:
    """Raise unless a choice is None or one of those that can be had.

    Args:
      operation: what errors call the function.
      name: of the argument.
      chosen: what the caller gave.
      *had: the members of an enumeration that can be had.
    """
    kind = type(had[0])
    if chosen is None or chosen in had:
        return
    if not isinstance(chosen, kind):
        raise TypeError(f"{operation}: {name} must be a {kind.__name__} or None, got {chosen!r}.")
    raise ValueError(message(
        operation, f"{chosen} is not available here.",
        expected=f"{' or '.join(map(str, had))}, or None",
    ))  # fmt: skip


def by_compiler(primitive: Primitive, operand: Any, params: dict[str, Any]) -> Any:
    """Have the compiler compute by an algorithm that the host has not, where the operand belongs.

    For `numpy` rules. A program for a CPU refuses what no CPU has.
    """
    x = ConcreteArray(operand, shaped_array(operand.shape, operand.dtype))
    outs = EAGER.backend.evaluate(primitive, (x,), params, primitive.infer((x.aval,), params))
    return tuple([y.to_host() for y in outs])


def is_for_compiler(chosen: Any, *had: enum.Enum) -> bool:
    """Return whether an algorithm is none of those that the host has, and there is a compiler."""
    return chosen is not None and chosen not in had and EAGER.backend.compiles


def given(**params: Any) -> dict[str, Any]:
    """Return the params that are not None: programs show what was asked for alone."""
    return {name: value for name, value in params.items() if value is not None}


def check_magma(operation: str, use_magma: bool | None) -> None:
    """Refuse to use MAGMA, a library for GPUs."""
    if use_magma:
        raise ValueError(f"{operation}: MAGMA is not available here; leave use_magma out.")
