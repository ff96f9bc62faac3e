"""`debug.find_nan`: run a function once, and say which operation makes its first NaN.

The function is compiled with a check behind each operation, as for `checkify`; the state that the
checks move on holds besides, for each loop around, the number of its step. The first failure stores
these numbers, the index of the NaN and the ranges of the operands. `with_report` gives a program
such checks for the options `debug_nans` and `debug_infs`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import xprim
import xtree
from xjit.checkify import _checkify
from xjit.checkify._checkify import State, is_infinite, moves_elements, no_failure, values_of
from xjit.dispatch.jit import jit
from xnp import lax
from xprim import ClosedJaxpr, Equation, Jaxpr, as_array, dtypes, source, stage
from xprim.calls import Programs
from xprim.jaxpr import interpret
from xprim.requirements import CheckSite
from xprim.rules import BACKWARD
from xprim.strict_options import range_text
from xprim.tracebacks import boundary
from xprim.transformed import as_arrays, check_function
from xtree.records import Record

__all__ = ["FirstNan", "find_nan", "report_of", "with_report"]

__dir__ = __all__.copy


class _Site(CheckSite):
    """An operation whose results are checked.

    Attributes:
      is_backward: whether it belongs to a backward pass.
      operands: the types of its operands of floats.
      shape: of the result.
      is_detailed: whether a failure stores the index and the ranges of operands.
    """

    is_backward: bool = False
    operands: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    is_detailed: bool = False


class FirstNan(Record):
    """The operation that made the first NaN of a call.

    Attributes:
      operation: its primitive; `"argument"` where an argument holds a NaN already.
      where: the user's line.
      is_backward: whether it belongs to the backward pass of a derivative.
      index: of the first NaN in the result; under `vmap` the example's index is part of it.
      shape: of the result.
      steps: for each loop around, from the outermost, the number of the step, from 0.
      operands: the type, least and largest value of each operand of floats; NaN for values that
        were not looked at.
    """

    operation: str
    where: str
    is_backward: bool
    index: tuple[int, ...]
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    operands: tuple[tuple[str, float, float], ...]

    def brief(self) -> str:
        """Return operation, operands, element, pass and steps in one line."""
        operands = [
            kind if math.isnan(low) else f"{kind} {range_text(low, high)}"
            for kind, low, high in self.operands
        ]
        parts = [f"{self.operation}({', '.join(operands)})"]
        if self.index:
            parts.append(f"element {list(self.index)} of shape {list(self.shape)}")
        parts.append(f"in the {'backward' if self.is_backward else 'forward'} pass")
        if self.steps:
            parts.append(f"at step {' of the loop inside step '.join(map(str, self.steps[::-1]))}")
        return ", ".join(parts)

    def __str__(self) -> str:
        lines = [f"{self.operation} makes the first NaN, in the "
                 f"{'backward' if self.is_backward else 'forward'} pass."]  # fmt: skip
        if self.operation == "argument":
            lines = ["an argument holds a NaN."]
        lines += [f"  where     {self.where}"] if self.where else []
        if self.shape:
            lines.append(f"  element   {list(self.index)} of shape {list(self.shape)}")
        if self.steps:
            lines.append(f"  step      {', in the loop inside '.join(map(str, self.steps))}")
        lines += [
            f"  operand   {kind} from {low:g} to {high:g}" for kind, low, high in self.operands
        ]
        return "\n".join(lines)

    __repr__ = __str__


@boundary
def find_nan(f: Callable[..., Any], *args: Any, **kwargs: Any) -> FirstNan | None:
    """Run a function once, compiled with checks, and return what made its first NaN.

    Args:
      f: a function of pytrees of arrays: a loss, its gradient, a batch of either.
      *args: its arguments.
      **kwargs: its keyword arguments.

    Returns:
      The first operation that made a NaN, in the order of the program: its line, whether it is one
      of a backward pass, the index of the NaN, the steps of the loops around, and the ranges of its
      operands. None where there is no NaN.

    Example:
      >>> import numpy as np
      >>> import xnp
      >>> found = find_nan(lambda x: xnp.log(x).sum(), np.float32([1, 2, -3]))
      >>> found.operation, found.index, found.operands
      ('log', (2,), (('float32[3]', -3.0, 2.0),))
    """
    check_function(f, "find_nan", "the function comes first: find_nan(f, *args)")
    leaves, tree = xtree.flatten((args, kwargs))
    operands = as_arrays(leaves, "find_nan", tree)
    closed, _ = stage(f, args, kwargs, operation="find_nan")
    search = _search_of(closed.jaxpr, frozenset(["debug_nans"]), True)

    def check(*values: Any) -> Any:
        return tuple(search.run_checked(closed, values))

    code, payload = map(np.asarray, jit(check)(*operands))
    return _report(int(code), payload) if code else None


def with_report(closed: ClosedJaxpr, options: frozenset[str], is_detailed: bool) -> ClosedJaxpr:
    """Return a program with one more result first: bytes that `report_of` reads.

    Args:
      closed: the program.
      options: `debug_nans`, `debug_infs` or both: what is looked for.
      is_detailed: whether the index and the ranges of operands are stored, which makes every
        operation look at all of its operands.
    """
    return closed.derived(_with_report, options, is_detailed)


def _with_report(closed: ClosedJaxpr, options: frozenset[str], is_detailed: bool) -> ClosedJaxpr:
    def program(*operands: Any) -> list[Any]:
        search = _search_of(closed.jaxpr, options, is_detailed)
        state, outs = search.run(closed, no_failure(search.width), operands)
        code = lax.bitcast_convert_type(state.code, np.uint8)
        return [lax.concatenate([code, state.payload], 0), *outs]

    return ClosedJaxpr(*xprim.trace_to_jaxpr(program, closed.in_avals, name=closed.jaxpr.name))


def report_of(report: np.ndarray[Any, Any], width: int) -> FirstNan | None:
    """Return what the report of a program `with_report` says, those of replicas in turn.

    Args:
      report: the result.
      width: the bytes of it for one replica.
    """
    for own in report.reshape(-1, width):
        code = int(own[:4].view(np.int32)[0])
        if code:
            return _report(code, own[4:])
    return None


def _search_of(jaxpr: Jaxpr, options: frozenset[str], is_detailed: bool) -> _Search:
    levels = _levels(jaxpr)
    width = (_width(jaxpr) if is_detailed else 0) + 8 * levels
    return _Search(options, width, levels, 0, False, False, None, is_detailed)


def _levels(jaxpr: Jaxpr) -> int:
    """Return how many loops are nested, at most."""
    found = [
        _levels(inner) + (_loop_of(eqn) is not None)
        for eqn in jaxpr.eqns for inner in _checkify.programs_of(eqn)
    ]  # fmt: skip
    return max(found, default=0)


def _loop_of(eqn: Equation) -> Programs | None:
    """Return what an equation declares of its programs where rounds pass a carry on."""
    programs: Programs | None = eqn.primitive.rules.get("programs")
    return programs if programs is not None and programs.carry else None


def _width(jaxpr: Jaxpr) -> int:
    """Return the bytes of the index and of the ranges of operands of an operation, at most."""
    of_args = [v.aval for v in jaxpr.invars if dtypes.is_inexact(v.aval.dtype)]
    found = [4 + 8 * bool(of_args)]
    for eqn in jaxpr.eqns:
        found.append(4 + 8 * sum(dtypes.is_inexact(x.aval.dtype) for x in eqn.inputs))
        found += map(_width, _checkify.programs_of(eqn))
    return max(found)


@dataclass(frozen=True, slots=True)
class _Search(_checkify.EnabledChecks):
    """Checks of every result, which count the steps of loops.

    Attributes:
      levels: how many loops are nested, at most; their counters end the payload.
      depth: how many are around.
      counts: whether each run of a program is a step of the innermost.
      is_backward: whether the program is part of a backward pass.
      test: the program that tells whether a loop ends, which is not a step.
      is_detailed: whether a failure stores the index and the ranges of operands.
    """

    levels: int
    depth: int
    counts: bool
    is_backward: bool
    test: ClosedJaxpr | None
    is_detailed: bool

    def run_checked(self, closed: ClosedJaxpr, operands: Sequence[Any]) -> State:
        """Return the state after a call, whose arguments are checked first."""
        state = no_failure(self.width)
        for x in operands:
            if dtypes.is_inexact(x.aval.dtype):
                site = _Site("first_nan", "argument", shape=x.aval.shape, is_detailed=True)
                state = self._check(state, site, x, [])
        return self.run(closed, state, operands)[0]

    def run(
        self, closed: ClosedJaxpr, state: Sequence[Any], operands: Sequence[Any]
    ) -> tuple[State, list[Any]]:
        """Run a program with its checks under the current trace."""
        now = State(*state)

        def check(eqn: Equation, values: Sequence[Any]) -> Sequence[Any]:
            nonlocal now
            now, results = self._run_equation(now, eqn, values)
            return results

        outs = interpret(closed.jaxpr, closed.consts, operands, check)
        is_step = self.counts and closed is not self.test
        return (self._count_step(now) if is_step else now), outs

    def _run_equation(
        self, state: State, eqn: Equation, operands: Sequence[Any]
    ) -> tuple[State, Sequence[Any]]:
        is_backward = self.is_backward or BACKWARD in eqn.name_stack
        rule = _checkify.program_of_rule(eqn)
        if rule is not None:
            return replace(self, counts=False, is_backward=is_backward).run(rule, state, operands)
        if "checked" not in eqn.primitive.rules or eqn.primitive is xprim.get_primitive("check"):
            results = eqn.primitive.evaluate(operands, eqn.params)
            if moves_elements(eqn.primitive):
                return state, results
            given = [x for x in operands if dtypes.is_inexact(x.aval.dtype)]
            kinds = tuple([x.aval.str_long() for x in given])
            where = source.describe(eqn.source)
            for x in results:
                if dtypes.is_inexact(x.aval.dtype):
                    site = _Site(
                        "first_nan", eqn.primitive.name, where=where, is_backward=is_backward,
                        operands=kinds, shape=x.aval.shape, is_detailed=self.is_detailed
                    )  # fmt: skip
                    state = self._check(state, site, x, given)
            return state, results
        loop = _loop_of(eqn)
        inner = replace(
            self, depth=self.depth + (loop is not None), counts=loop is not None,
            is_backward=is_backward, test=eqn.params.get(loop.test) if loop else None,
        )  # fmt: skip
        if loop is not None:
            state = inner._with_counter(state, as_array(np.int32(0)))
        after, results = eqn.primitive.rules["checked"](inner, state, operands, **eqn.params)
        return State(*after), results

    def _check(self, state: State, site: _Site, x: Any, operands: Sequence[Any]) -> State:
        if not x.aval.size:
            return state
        bad = lax.reshape(self._bad(x), (x.aval.size,))
        values = [self._counter(state, level) for level in range(self.depth)]
        if self.is_detailed:
            values.append(lax.argmax(bad, 0, np.int32))
            values += [bound for operand in operands for bound in _range(operand)]
        return state.failing(lax.reduce_or(bad, (0,)), site, values)

    def _bad(self, x: Any) -> Any:
        found = [
            test(x) for option, test in (("debug_nans", _is_nan), ("debug_infs", is_infinite))
            if option in self.kinds
        ]  # fmt: skip
        return functools.reduce(lax.bitwise_or, found)

    def _place(self, level: int) -> int:
        return self.width - 4 * (self.levels - level)

    def _counter(self, state: State, level: int) -> Any:
        at = self._place(level)
        return lax.bitcast_convert_type(lax.slice(state.payload, (at,), (at + 4,)), np.int32)

    def _with_counter(self, state: State, value: Any) -> State:
        """Return the state with the counter of the innermost loop set, unless a check failed."""
        new = lax.bitcast_convert_type(value, np.uint8)
        at = as_array(np.int32(self._place(self.depth - 1)))
        payload = lax.dynamic_update_slice(state.payload, new, (at,))
        had = lax.broadcast(lax.ne(state.code, np.int32(0)), payload.aval.shape)
        return State(state.code, lax.select(had, state.payload, payload))

    def _count_step(self, state: State) -> State:
        step = lax.add(self._counter(state, self.depth - 1), np.int32(1))
        return self._with_counter(state, step)


def _is_nan(x: Any) -> Any:
    return lax.ne(x, x)


def _range(x: Any) -> list[Any]:
    """Return the least and the largest value of an operand as float32, NaN left out."""
    if dtypes.is_complex(x.aval.dtype):
        x = lax.abs(x)
    x = lax.convert_element_type(x, np.float32)
    axes = tuple(range(x.aval.ndim))
    return [
        reduce(lax.select(lax.ne(x, x), lax.full(x.aval.shape, start, np.float32), x), axes)
        for reduce, start in ((lax.reduce_min, np.inf), (lax.reduce_max, -np.inf))
    ]


def _report(code: int, payload: np.ndarray[Any, Any]) -> FirstNan:
    site: Any = _checkify.check_of(code)
    values = values_of(code, payload)
    index: tuple[int, ...] = ()
    bounds: list[Any] = [math.nan] * (2 * len(site.operands))
    if site.is_detailed:
        count = len(values) - 1 - len(bounds)
        values, flat, bounds = values[:count], int(values[count]), values[count + 1 :]
        index = tuple(map(int, np.unravel_index(flat, site.shape))) if site.shape else ()
    ranges = zip(site.operands, map(float, bounds[::2]), map(float, bounds[1::2]), strict=True)
    return FirstNan(site.text, site.where, site.is_backward, index, site.shape,
                    tuple(map(int, values)), tuple(ranges))  # fmt: skip
