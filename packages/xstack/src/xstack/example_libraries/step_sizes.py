"""Schedules: functions from the number of a step to its size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import xnp
from xprim import Array
from xprim.errors import described, message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike

__all__ = ()

Schedule = Callable[[Any], Any]
StepSize = Any  # a number, or a schedule


@boundary
def constant(step_size: float | Array) -> Schedule:
    """Return the schedule that gives the same size at each step."""
    return boundary(lambda i: step_size)


@boundary
def exponential_decay(
    step_size: float | Array, decay_steps: float | Array, decay_rate: float | Array
) -> Schedule:
    """Return the schedule step_size * decay_rate ** (i / decay_steps)."""
    return boundary(lambda i: step_size * decay_rate ** (i / decay_steps))


@boundary
def inverse_time_decay(
    step_size: float | Array,
    decay_steps: float | Array,
    decay_rate: float | Array,
    staircase: bool = False,
) -> Schedule:
    """Return the schedule step_size / (1 + decay_rate * i / decay_steps).

    Args:
      step_size: the first size.
      decay_steps: in how many steps the divisor grows by `decay_rate`.
      decay_rate: by what the divisor grows.
      staircase: whether it grows once in `decay_steps` steps only.
    """
    if staircase:
        return boundary(lambda i: step_size / (1 + decay_rate * xnp.floor(i / decay_steps)))
    return boundary(lambda i: step_size / (1 + decay_rate * i / decay_steps))


@boundary
def polynomial_decay(
    step_size: float | Array,
    decay_steps: float | Array,
    final_step_size: float | Array,
    power: float | Array = 1.0,
) -> Schedule:
    """Return the schedule from `step_size` to `final_step_size`, reached at `decay_steps`.

    Args:
      step_size: the first size.
      decay_steps: the step that has the last size.
      final_step_size: the last size.
      power: of the part of the way that is left; 1 is a straight line.
    """

    def schedule(step_num: Any) -> Any:
        left = 1 - xnp.minimum(step_num, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return boundary(schedule)


@boundary
def piecewise_constant(
    boundaries: Sequence[int] | ArrayLike, values: Sequence[ArrayLike] | ArrayLike
) -> Schedule:
    """Return the schedule of steps: `values[k]` after `boundaries[k - 1]`, up to `boundaries[k]`.

    Args:
      boundaries: numbers of steps that ascend, a vector.
      values: the sizes between, one more.

    Example:
      >>> schedule = piecewise_constant([10, 20], [1.0, 0.5, 0.1])
      >>> [round(float(schedule(i)), 1) for i in (10, 11, 21)]
      [1.0, 0.5, 0.1]
    """
    boundaries, values = xnp.asarray(boundaries), xnp.asarray(values)
    if boundaries.ndim != 1 or values.shape != (boundaries.size + 1,):
        raise ValueError(message(
            "piecewise_constant", "takes a vector of boundaries, and of values one more.",
            got=f"shapes {boundaries.shape} and {values.shape}",
        ))  # fmt: skip
    return boundary(lambda i: values[xnp.sum(i > boundaries)])


@boundary
def make_schedule(scalar_or_schedule: StepSize) -> Schedule:
    """Return a schedule as it is, and the constant one of a number."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule  # type: ignore[no-any-return]
    if xnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(message(
        "make_schedule", "a step size is a number or a function of the step.",
        got=described(scalar_or_schedule),
    ))  # fmt: skip
