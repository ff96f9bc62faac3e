"""The arguments that samplers share: shapes, dtypes and parameters that broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp import lax
from xprim import as_array, config, dtypes
from xprim.errors import ShapeError, message
from xprim.requirements import require, static_shape

__all__ = ()

Shape = tuple[int, ...]


def check_shape(shape: Any, operation: str) -> Shape:
    """Return a shape as a tuple of non-negative ints."""
    sizes = static_shape(shape, operation)
    for n in sizes:
        if n < 0:
            raise ShapeError(f"{operation}: sizes must not be negative, got {sizes}.")
    return sizes


def floating_dtype(dtype: Any, operation: str) -> np.dtype[Any]:
    """Return the dtype of a sample: the default floating dtype for None."""
    if dtype is None:
        return dtypes.float64 if config.values.enable_x64 else dtypes.float32
    exact = dtypes.requested_dtype(dtype, operation)
    require(
        dtypes.is_floating(exact), operation, "the dtype must be a real floating one.",
        got=exact, expected="float32, float64, ...",
    )  # fmt: skip
    return exact  # type: ignore[no-any-return]


def integer_dtype(dtype: Any, operation: str) -> np.dtype[Any]:
    """Return the dtype of an integer sample: the default integer dtype for None."""
    if dtype is None:
        return dtypes.int64 if config.values.enable_x64 else dtypes.int32
    exact = dtypes.requested_dtype(dtype, operation)
    require(
        dtypes.is_integer(exact), operation, "the dtype must be an integer one.", got=exact,
        expected="int32, uint8, ...", error=TypeError,
    )  # fmt: skip
    return exact  # type: ignore[no-any-return]


def parameter(value: Any, dtype: np.dtype[Any], what: str) -> Any:
    """Return a parameter of a distribution as an Array of the dtype of the sample."""
    if isinstance(value, bool | int | float):
        return as_array(float(value) if dtypes.is_floating(dtype) else int(value), dtype)
    array = as_array(value, what=what)
    if array.dtype == dtype:
        return array
    return lax.convert_element_type(array, dtype)


def sample_shape(shape: Any, operation: str, *params: Any) -> Shape:
    """Return the shape of a sample: the given one, or that to which the parameters broadcast.

    Raises:
      ValueError: the parameters do not broadcast to the shape.
    """
    given = [p.shape for p in params]
    if shape is None:
        try:
            return tuple(map(int, np.broadcast_shapes(*given)))
        except ValueError:
            raise ValueError(
                f"{operation}: the parameters' shapes do not broadcast, got "
                f"{', '.join(map(str, given))}."
            ) from None
    wanted = check_shape(shape, operation)
    if not any(given):
        return wanted
    try:
        fits = np.broadcast_shapes(wanted, *given) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(message(
            operation, "the parameters must broadcast to the shape of the sample.",
            got=f"parameters of shapes {', '.join(map(str, given))}",
            expected=f"shapes that broadcast to {wanted}",
        ))  # fmt: skip
    return wanted


def broadcasted(x: Any, shape: Shape) -> Any:
    """Broadcast an Array to a shape; rank 0 stays, as elementwise operations repeat it."""
    if x.shape == shape or not x.ndim:
        return x
    lead = len(shape) - x.ndim
    return lax.broadcast_in_dim(x, shape, tuple(range(lead, len(shape))))


def repeated(x: Any, shape: Shape) -> Any:
    """Broadcast an Array to a shape, also from rank 0."""
    if x.shape == shape:
        return x
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))


def is_approximate(method: str, operation: str) -> bool:
    """Return whether a method draws samples without a loop; raise where there is none so called."""
    require(
        method in ("exact", "approximate"), operation, "there is no method {!r}.", method,
        expected="'exact' or 'approximate'",
    )  # fmt: skip
    return method == "approximate"
