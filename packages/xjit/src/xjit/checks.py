"""`debug_nans` and `debug_infs`: find the operation whose result is not finite.

Where one of the options is set, a program is compiled with a check of each equation, and gives one
result more: the number of the first check that failed, which says the operation and the user's
line. So one run tells where a bad value of its results came from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xjit.dispatch.placement import Placement
from xjit.dispatch.program import Program, program_of
from xprim import ClosedJaxpr, ConcreteArray, config
from xprim.eager import fault_in, results_are_checked
from xprim.errors import message
from xtree.namespaces import late_import

__all__ = ()

_checkify = late_import("xjit.checkify._checkify", "only where an option checks equations")

_values = config.values


def run_with_checks(
    closed: ClosedJaxpr, operands: Sequence[Any], name: str, placement: Placement | None = None
) -> tuple[ConcreteArray, ...]:
    """Run a compiled program; its results are looked at where an option asks for that."""
    program = program_of(closed, name, placement)
    if not results_are_checked():
        return tuple(program.call(operands))
    return tuple(check_results(name, with_checks(program).call(operands)))


def with_checks(program: Program) -> Program:
    """Return the program whose first result is the number of the check that failed, or 0."""
    if program.checked is None:
        wanted = [name for name in ("debug_nans", "debug_infs") if getattr(_values, name)]
        closed = _checkify.with_code(program.closed, frozenset(wanted))
        program.checked = program.with_result(closed)
    return program.checked


def check_results(name: str, results: Sequence[ConcreteArray]) -> list[ConcreteArray]:
    """Return the results of a checked program without the number of what failed.

    Args:
      name: of the function.
      results: of a program `with_checks`.

    Raises:
      FloatingPointError: a result holds a NaN or an infinity that the options forbid; it names the
        operation that made the first one.
    """
    code, *rest = results
    return look_at_results(name, rest, lambda: _place(code))


def look_at_results(
    name: str, results: list[ConcreteArray],
    place: Callable[[], str] = lambda: "in a stored program, which knows no lines",
) -> list[ConcreteArray]:  # fmt: skip
    """Return the results of a program.

    Args:
      name: of the function.
      results: of its program.
      place: says where the first bad value came from.

    Raises:
      FloatingPointError: a result holds a NaN or an infinity that the options forbid.
    """
    found = next((f for x in results if (f := fault_in(x.to_stored()))), "")
    if found:
        raise FloatingPointError(message(name, f"{found} was computed.", where=f"{place()}"))
    return results


def _place(code: ConcreteArray) -> str:
    failed = np.asarray(code.to_host()).ravel()  # of each replica
    failed = failed[failed != 0]
    if not failed.size:
        return "among the arguments already"
    where: str = _checkify.place_of(int(failed[0]))
    return where
