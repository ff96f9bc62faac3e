"""`debug_nans` and `debug_infs`: find the operation whose result is not finite.

Where one of the options is set, the results of a program are looked at. For a bad value it runs
once more, with the checks of `debug.find_nan`: they say the operation, the user's line, the pass,
the element, the step of a loop and the ranges of the operands. What may not run twice (its
arguments are donated, it has side effects, other processes take part) has checks from the start,
which name neither element nor ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xjit._devices import process_count
from xjit.dispatch.placement import Placement
from xjit.dispatch.program import Program, program_of
from xprim import ClosedJaxpr, ConcreteArray, config
from xprim.errors import message
from xprim.strict_options import fault_in, results_are_checked
from xtree.namespaces import late_import

__all__ = ()

_nan_search = late_import("xjit.debug.nan_search", "only where an option checks equations")

_values = config.values
_OPTIONS = ("debug_nans", "debug_infs")


def run_with_checks(
    closed: ClosedJaxpr, operands: Sequence[Any], name: str, placement: Placement | None = None,
    options: tuple[tuple[str, Any], ...] = (),
) -> tuple[ConcreteArray, ...]:  # fmt: skip
    """Run a compiled program; its results are looked at where an option asks for that."""
    program = program_of(closed, name, placement, options=options)
    if not results_are_checked():
        return tuple(program.call(operands))
    return tuple(call_and_check(name, program, lambda p: p.call(operands)))


def call_and_check(
    name: str, program: Program, call: Callable[[Program], Sequence[ConcreteArray]]
) -> list[ConcreteArray]:
    """Return the results of a program, none of which holds what the options forbid.

    Args:
      name: of the function.
      program: what runs.
      call: runs the program, or one that gives a report before the results.

    Raises:
      FloatingPointError: a result holds a NaN or an infinity that the options forbid; it names the
        operation that made the first one.
    """
    if _runs_once(program):
        checked = _with_report(program, False)
        report, *rest = call(checked)
        return look_at_results(name, rest, lambda: _find_maker(checked, report))
    results = list(call(program))

    def find_maker() -> tuple[str, str, str]:
        checked = _with_report(program, True)
        return _find_maker(checked, call(checked)[0])

    return look_at_results(name, results, find_maker)


def _runs_once(program: Program) -> bool:
    return bool(program.donated or program.closed.effects) or process_count() > 1


def _with_report(program: Program, is_detailed: bool) -> Program:
    """Return the program whose first result is a report of the first check that failed."""
    options = frozenset([name for name in _OPTIONS if getattr(_values, name)])
    found = program.checked.get(options)
    if found is None:
        closed = _nan_search.with_report(program.closed, options, is_detailed)
        found = program.checked[options] = program.with_result(closed)
    return found


def look_at_results(
    name: str, results: list[ConcreteArray],
    made_by: Callable[[], tuple[str, str, str]] = (
        lambda: ("", "", "in a stored program, which knows no lines")
    ),
) -> list[ConcreteArray]:  # fmt: skip
    """Return the results of a program.

    Args:
      name: of the function.
      results: of its program.
      made_by: gives the operation that made the first bad value, what of it is known, and where.

    Raises:
      FloatingPointError: a result holds a NaN or an infinity that the options forbid.
    """
    found = next((f for x in results if (f := fault_in(x.to_stored()))), "")
    if found:
        operation, got, where = made_by()
        place = f" in {operation}" if operation else ""
        kind = "inf" if "inf" in found else "nan"
        problem = f"{found} was computed: invalid value ({kind}) encountered{place}."
        raise FloatingPointError(message(name, problem, got=got, where=where))
    return results


def _find_maker(checked: Program, report: ConcreteArray) -> tuple[str, str, str]:
    width = checked.closed.out_avals[0].size
    first = _nan_search.report_of(np.asarray(report.to_host()), width)
    if first is None:
        return "", "", "no operation made it: an argument or a constant holds it"
    return first.operation, first.brief(), first.where
