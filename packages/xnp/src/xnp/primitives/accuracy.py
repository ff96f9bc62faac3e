"""How accurate a compiled elementary function must be: `exp(x, accuracy=...)`.

XLA may compute functions such as exp by several algorithms. An `AccuracyMode` or a `Tolerance`
chooses among them; it becomes the `result_accuracy` attribute of the StableHLO operation. On the
host, NumPy's function is used whatever is asked: its error is a few ulp, as that of the default.

Neighbours: `table` gives the param to elementary functions (`tunable=True`).
"""

from __future__ import annotations

import enum
from typing import TypeAlias

from xprim.errors import message
from xtree.records import Record, set_once

__all__ = ()


class AccuracyMode(enum.Enum):
    """Which algorithm XLA takes: the usual one, or the most accurate one that it has."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(Record):
    """The error that a compiled elementary function may have; one of the bounds must hold.

    Attributes:
      atol: absolute error.
      rtol: relative error.
      ulps: error in units of the last place.

    Raises:
      ValueError: when a bound is negative, or all are zero.

    Example:
      >>> Tolerance(ulps=4)
      Tolerance(atol=0.0, rtol=0.0, ulps=4)
    """

    __slots__ = __match_args__ = ("atol", "rtol", "ulps")
    atol: float
    rtol: float
    ulps: int

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        if min(atol, rtol, ulps) < 0 or not (atol or rtol or ulps):
            raise ValueError(message(
                "Tolerance", "the bounds must not be negative, and one must be above zero.",
                got=f"atol={atol}, rtol={rtol}, ulps={ulps}",
            ))  # fmt: skip
        set_once(self, "atol", atol)
        set_once(self, "rtol", rtol)
        set_once(self, "ulps", ulps)


Accuracy: TypeAlias = AccuracyMode | Tolerance | None


def accuracy_attribute(accuracy: Accuracy) -> str:
    """Return the `result_accuracy` attribute of an operation, or nothing for the default."""
    if accuracy is None:
        return ""
    if isinstance(accuracy, AccuracyMode):
        mode, bounds = accuracy.name, ""
    else:
        mode = "TOLERANCE"
        bounds = f"atol = {accuracy.atol:e}, rtol = {accuracy.rtol:e}, ulps = {accuracy.ulps}, "
    return (
        f"result_accuracy = #stablehlo.result_accuracy<{bounds}"
        f"mode = #stablehlo.result_accuracy_mode<{mode}>>"
    )
