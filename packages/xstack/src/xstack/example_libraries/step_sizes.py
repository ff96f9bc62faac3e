"""Schedules: functions from the number of a step to its size.

Neighbours: `optimizers` shows these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xnp
from xprim.descriptions import described

__all__ = ()

Schedule = Callable[[Any], Any]


def constant(step_size: Any) -> Schedule:
    """Return the schedule that gives the same size at each step."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Return the schedule step_size * decay_rate ** (i / decay_steps)."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """Return the schedule step_size / (1 + decay_rate * i / decay_steps).

    Args:
      step_size: the first size.
      decay_steps: in how many steps the divisor grows by `decay_rate`.
      decay_rate: by what the divisor grows.
      staircase: whether it grows once in `decay_steps` steps only.
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * xnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0
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

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
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
        raise ValueError(
            "piecewise_constant: takes a vector of boundaries, and of values one more."
            f"\n  got       shapes {boundaries.shape} and {values.shape}"
        )
    return lambda i: values[xnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """Return a schedule as it is, and the constant one of a number."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule  # type: ignore[no-any-return]
    if xnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(
        "make_schedule: a step size is a number or a function of the step."
        f"\n  got       {described(scalar_or_schedule)}"
    )
