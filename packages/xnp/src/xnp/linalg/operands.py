"""Operands of the functions of this package: promotion and broadcasting.

Neighbours: every other module of `xnp.linalg`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.primitives.operations import broadcasted, converted
from xprim import as_array, dtypes, promotion
from xprim.errors import ShapeError, message

__all__ = ()


def promoted(name: str, *values: Any, inexact: bool = False) -> list[Any]:
    """Return operands as arrays of one dtype, by the rules of promotion.

    Args:
      name: what errors call the function.
      values: arrays, NumPy arrays, Python scalars.
      inexact: whether integers and booleans become the default float dtype.
    """
    arrays = [as_array(v, what=f"{name}: operand {i}") for i, v in enumerate(values)]
    dtype = promotion.result_type(*arrays)
    if inexact:
        dtype = dtypes.to_inexact_dtype(dtype)
    return [converted(x, dtype) for x in arrays]


def matrix(name: str, value: Any, *, square: bool = False) -> Any:
    """Return one operand as floating matrices, or raise a ValueError."""
    (x,) = promoted(name, value, inexact=True)
    if x.ndim < 2:
        raise ShapeError(message(
            name, "the operand must have at least two dimensions.", got=x.aval.str_long(),
        ))  # fmt: skip
    if square and x.shape[-1] != x.shape[-2]:
        raise ShapeError(message(name, "the matrix must be square.", got=x.aval.str_long()))
    return x


def broadcast_batches(name: str, *arrays: Any, core: Sequence[int]) -> list[Any]:
    """Broadcast the leading dimensions of arrays, whose last `core[i]` ones are their own."""
    batches = [x.shape[: x.ndim - k] for x, k in zip(arrays, core, strict=True)]
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError:
        raise ValueError(message(
            name, "the batch dimensions cannot be broadcast.",
            got=f"{' and '.join(x.aval.str_long() for x in arrays)}",
        )) from None  # fmt: skip
    return [_spread(x, (*batch, *x.shape[x.ndim - k :]))
            for x, k in zip(arrays, core, strict=True)]  # fmt: skip


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    return broadcasted(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))
