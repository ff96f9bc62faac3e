"""`debug_nans` and `debug_infs`: refuse a result that holds a NaN or an infinity.

Evaluation asks here about every result once one of these options was used in the process; before,
it costs two attribute look-ups. So the error names the first operation that made a bad value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xprim import config, dtypes
from xprim.array import ConcreteArray
from xprim.errors import XStackRuntimeError, message
from xprim.seldom_options import no_execution
from xprim.source import capture, describe
from xprim.strict_options import arguments_of_caller
from xprim.thread_state import state

__all__ = ["execution_refused", "fault_in", "results_are_checked"]

__dir__ = __all__.copy

_values, _nans, _infs = config.values, config.debug_nans, config.debug_infs
_INFINITY = "an infinity"


def results_are_checked() -> bool:
    """Return whether an option asks for the result of each operation to be looked at."""
    return (_nans.used or _infs.used) and bool(_values.debug_nans or _values.debug_infs)


def fault_in(x: np.ndarray[Any, Any]) -> str:
    """Return what the options forbid and an array holds: a NaN, an infinity or nothing."""
    if not dtypes.is_inexact(x.dtype):
        return ""
    if _values.debug_nans and np.isnan(x).any():
        return "a NaN"
    if _values.debug_infs and np.isinf(x).any():
        return _INFINITY
    return ""


def check_finite(name: str, operands: Sequence[Any], results: Sequence[Any]) -> None:
    """Raise where a result of an operation holds what the options forbid.

    An infinity is no fault of an operation that was given one: constants such as the one that a
    maximum begins with go through conversions and comparisons. Neither is an array of nothing but
    NaN that the library makes of a constant, to choose it where a function is not defined: what
    counts is whether it is chosen.

    Args:
      name: of the operation.
      operands: concrete arrays.
      results: concrete arrays or ndarrays.

    Raises:
      FloatingPointError: naming the operation, its operands and the user's line.
      XStackRuntimeError: nothing is to be computed.
    """
    if no_execution.value:
        raise execution_refused(name)
    if not results_are_checked():
        return
    for x in results:
        fault = fault_in(_stored(x))
        if fault and not _is_no_fault(name, fault, operands, _stored(x)):
            shapes = ", ".join([x.aval.str_long() for x in operands])
            raise FloatingPointError(message(
                name, f"{fault} was computed.", got=f"{name}({shapes})",
                where=describe(state.source or capture()),
            ))  # fmt: skip


def _is_no_fault(name: str, fault: str, operands: Sequence[Any], result: Any) -> bool:
    given = [_stored(x) for x in operands]
    if fault == _INFINITY:
        return any(map(_is_infinite, given))
    return (
        name != "select_n"
        and any(map(_is_nothing_but_nan, given))
        and _is_nothing_but_nan(result)
        and not any(map(_has_nan, map(_elements, arguments_of_caller())))
    )


def _elements(x: Any) -> Any:
    return _stored(x) if isinstance(x, ConcreteArray | np.ndarray) else np.asarray(x)


def _is_nothing_but_nan(x: Any) -> bool:
    return _has_nan(x) and bool(np.isnan(x).all())


def _has_nan(x: Any) -> bool:
    return dtypes.is_inexact(x.dtype) and bool(np.isnan(x).any())


def execution_refused(name: str) -> XStackRuntimeError:
    """Return the error of a computation where `no_execution` is set."""
    return XStackRuntimeError(message(
        name, "something is computed where config.no_execution is set.",
        where=describe(state.source or capture()),
    ))  # fmt: skip


def _stored(x: Any) -> np.ndarray[Any, Any]:
    return x.to_stored() if isinstance(x, ConcreteArray) else x


def _is_infinite(x: np.ndarray[Any, Any]) -> bool:
    return dtypes.is_inexact(x.dtype) and bool(np.isinf(x).any())
