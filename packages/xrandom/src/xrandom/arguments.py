"""The arguments that samplers share: shapes, dtypes and parameters that broadcast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp import lax
from xprim import (
    ELEMENTWISE,
    ConcreteArray,
    Primitive,
    Zero,
    as_array,
    config,
    dtypes,
    source,
    state,
    undefined,
)
from xprim.errors import (
    DiscreteDerivativeError,
    DiscreteDerivativeWarning,
    ShapeError,
    message,
)
from xprim.requirements import require, require_choice, static_shape

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


def _jvp(primals: Any, tangents: Any, *, operation: str, name: str) -> Any:
    (x,), (x_dot,) = primals, tangents
    if type(x_dot) is not Zero:
        _report(operation, name)
    return (x,), (Zero(x_dot.aval),)


discrete_parameter_p: Primitive = Primitive(
    "discrete_parameter",
    shape=lambda x, **_: (x,),
    numpy=lambda x, **_: (x,),
    stablehlo=lambda b, operands, *_, **__: list(operands),
    jvp=_jvp,
    transpose=undefined("the derivative of discrete draws is zero"),
    batch=ELEMENTWISE,
    eager=lambda *_, **__: 0.0,
)
"""The identity with the derivative zero, which it reports: on parameters of discrete samplers."""


def discrete_parameter(x: Any, operation: str, name: str) -> Any:
    """Return a parameter of a discrete sampler; a derivative by it is zero, and is reported.

    Args:
      x: an Array.
      operation: the name of the sampler.
      name: that of the parameter.
    """
    if type(x) is ConcreteArray or not dtypes.is_floating(x.dtype):
        return x
    return discrete_parameter_p.bind(x, operation=operation, name=name)[0]


def _report(operation: str, name: str) -> None:
    """Warn or raise, as `config.discrete_derivatives` says, of the derivative by a parameter."""
    mode = config.values.discrete_derivatives
    if mode == "allow":
        return
    place = state.source or source.capture()

    def text() -> str:
        return message(
            operation, f"the draws are discrete, so the derivative by {name} is zero, which is not "
            "that of an expectation.", where=source.describe(place),
            hint=f"stop_gradient({name}) says that zero is meant;\n"
            f"f(draws) * grad(log_probability)({name}), the score function, has the derivative of "
            "the mean of f as its mean;\n"
            "draws of a continuous relaxation move with their parameters",
        )  # fmt: skip

    source.warn_or_raise(mode, text, DiscreteDerivativeWarning, DiscreteDerivativeError, place)


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


def broadcast_to(x: Any, shape: Shape) -> Any:
    """Broadcast an Array to a shape; rank 0 stays, as elementwise operations repeat it."""
    if x.shape == shape or not x.ndim:
        return x
    lead = len(shape) - x.ndim
    return lax.broadcast_in_dim(x, shape, tuple(range(lead, len(shape))))


def repeat_to(x: Any, shape: Shape) -> Any:
    """Broadcast an Array to a shape, also from rank 0."""
    if x.shape == shape:
        return x
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))


def is_approximate(method: str, operation: str) -> bool:
    """Return whether a method draws samples without a loop; raise where there is none so called."""
    require_choice(operation, "method", method, ("exact", "approximate"))
    return method == "approximate"


def may_exceed(x: Any, bound: float) -> bool:
    """Whether an element of an array is known to exceed a bound, or not known."""
    if type(x) is not ConcreteArray or x.host is None:
        return True
    return not bool((x.host <= np.float64(bound)).all())  # float16 has no number above 65504


def choice_by(mask: Any) -> Callable[..., Any]:
    """Return a function that gives f(k) where a mask holds, else g(k).

    What no element needs is not computed: f without a mask, or where it holds nowhere.
    """
    if mask is None:
        return lambda f, g, k: g(k)
    some = lax.reduce_or(mask, tuple(range(mask.ndim)))
    return lambda f, g, k: lax.cond(some, lambda k: lax.select(mask, f(k), g(k)), g, k)


def wide_integer(exact: Any) -> Any:
    """Return the dtype in which counts of a dtype are added: uint32, or that of 64 bits itself."""
    return exact if dtypes.iinfo(exact).bits == 64 else dtypes.uint32


def sum_of_counts(first: Any, second: Any, about: Any, exact: Any) -> Any:
    """Return a sum of integers, of which floats would not have the last digits.

    Args:
      first: integers of the dtype `wide_integer(exact)`.
      second: smaller integers, as floats; may be negative.
      about: the sum in floats.
      exact: the dtype of the result, which is its largest number where `about` is not below that.
    """
    signed = dtypes.int64 if first.dtype.itemsize == 8 else dtypes.int32
    second = lax.convert_element_type(lax.convert_element_type(second, signed), first.dtype)
    total = lax.convert_element_type(lax.add(first, second), exact)
    limit = int(dtypes.iinfo(exact).max)
    return lax.select(lax.ge(about, float(limit)), lax.full_like(total, limit), total)
