"""Memory budgets of checkpoints: which values the forward pass keeps, chosen by bytes and cost.

A program is cut into segments where few bytes are live. Each becomes a checkpoint: its inputs are
stored, and it is computed again when the backward pass comes to it. So the memory of a gradient is

    stored values  +  what the largest segment computes again

and the segments are those for which this is least. What the budget leaves is given to the values
that cost most operations a byte (`xprim.eager_costs`). A scan counts each step: its body is
cut likewise, and what the body stores is stored once a step.

Source of the segments: T. Chen et al., "Training deep nets with sublinear memory cost" (2016); of
the choice inside, a knapsack filled by value per weight (G. B. Dantzig, 1957).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import xprim
from xad.tangents import is_differentiable
from xprim import ELEMENTWISE, ClosedJaxpr, Equation, Jaxpr, Literal, Var, eval_closed
from xprim.eager_costs import count_equation
from xprim.errors import described, message
from xprim.memory import bytes_of, in_bytes
from xprim.transformed import find

__all__ = ()

_UNITS = {
    "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip


def parse_budget(budget: Any) -> int:
    """Return the bytes that a number or a text such as "2GB" or "512 MiB" says.

    Raises:
      TypeError: it is neither.
      ValueError: it is not positive, or has an unknown unit.
    """
    if isinstance(budget, bool) or not (isinstance(budget, str) or hasattr(budget, "__index__")):
        raise TypeError(_bad_budget(described(budget)))
    number: Any = budget
    if isinstance(budget, str):
        digits = budget.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
        unit = budget.strip()[len(digits) :].lower()
        try:
            number = float(digits.replace("_", "")) * _UNITS[unit]
        except (ValueError, KeyError):
            raise ValueError(_bad_budget(repr(budget))) from None
    if not 1 <= number < 2**63:
        raise ValueError(_bad_budget(repr(budget)))
    return int(number)


def _bad_budget(got: str) -> str:
    return message(
        "checkpoint", "the budget must be a positive number of bytes.", got=got,
        expected="an integer, or a text with a unit: '2GB', '512 MiB'",
    )  # fmt: skip


# -------------------------------------------------------------------------------------- segments
# The parts of a program: its equations between two cuts, or one scan.


@dataclass(eq=False)
class _Segment:
    """Equations that are computed again together.

    Attributes:
      numbers: of the equations.
      eqns: the equations.
      rounds: how often a gradient runs them: the steps of the scans around.
      stored: bytes of its values that later parts read, and that are stored whatever is chosen.
      candidates: the other values that its derivative reads.
      kept: the values that are stored beside its operands.
      again: bytes of the candidates that are not kept, and of what is there beside them.
    """

    numbers: range
    eqns: Sequence[Equation]
    rounds: int
    stored: int
    candidates: list[Var]
    kept: set[Var]
    again: int

    def keep(self, v: Var) -> None:
        """Store a candidate."""
        self.kept.add(v)
        self.stored += bytes_of(v.aval)
        self.again -= bytes_of(v.aval)

    def rated(self) -> Iterator[tuple[float, _Segment, Var]]:
        """Yield the candidates, each with the operations a byte that computing it again takes."""
        costs: dict[Any, float] = {}
        most = sum(map(count_equation, self.eqns))
        known = {*self.candidates, *self.kept}
        for eqn in self.eqns:
            before = sum([costs.get(x, 0.0) for x in set(eqn.inputs)])
            cost = min(count_equation(eqn) + before, most)  # what two operands share counts once
            for v in eqn.outputs:
                if v not in known:
                    costs[v] = cost
                elif v not in self.kept:
                    yield cost / max(bytes_of(v.aval), 1), self, v


@dataclass(eq=False)
class _Loop:
    """A scan, whose body is cut in its turn.

    Attributes:
      eqn: the scan.
      body: its body.
      carried: bytes of what all steps carry.
    """

    eqn: Equation
    body: _Program
    carried: int


@dataclass(eq=False)
class _Program:
    """A program, the parts that it is cut into, and what is known of its values.

    Attributes:
      closed: the program.
      rounds: how often a gradient runs it.
      residuals: what the values that its derivative reads are made of.
      last: for each value, the number of the last equation that reads it.
      runs: the numbers of its scans, and of the equations between two of them.
      loops: by number, the scans.
      stored: bytes stored beside what parts store: results of scans, what their steps carry.
      slices: bytes of what a step of a scan gets and gives back, with its cotangents.
      parts: in order.
    """

    closed: ClosedJaxpr
    rounds: int
    residuals: set[Var]
    last: dict[Any, int]
    runs: list[range]
    loops: dict[int, _Loop]
    stored: int
    slices: int
    parts: list[_Segment | _Loop]

    def segments(self) -> Iterator[_Segment]:
        """Yield the segments, those of loops inside as well."""
        for part in self.parts:
            if isinstance(part, _Loop):
                yield from part.body.segments()
            else:
                yield part

    def total_stored(self) -> int:
        """Return the bytes that are stored in all."""
        loops = [loop.body.total_stored() for loop in self.loops.values()]
        return (
            self.stored
            + sum(loops)
            + sum([part.stored * part.rounds for part in self.parts if isinstance(part, _Segment)])
        )

    def total_residuals(self) -> int:
        """Return the bytes of residuals, those of one step of each loop."""
        loops = [loop.body.total_residuals() for loop in self.loops.values()]
        return _bytes_of_all(self.residuals) + sum(loops)

    def cut(self, most: int) -> None:
        """Choose segments that compute at most so many bytes again, where cuts allow it."""
        self.parts = []
        for run in self.runs:
            loop = self.loops.get(run.start)
            if loop is not None:
                loop.body.cut(most)
                self.parts.append(loop)
            else:
                self.parts += [self._segment(part) for part in self._cheapest_cuts(run, most)]

    def _segment(self, numbers: range) -> _Segment:
        eqns = self.closed.eqns[numbers.start : numbers.stop]
        made = [v for eqn in eqns for v in eqn.outputs]
        leaving = [v for v in made if self.last.get(v, -1) >= numbers.stop]
        candidates = [v for v in made if v in self.residuals and v not in set(leaving)]
        kept = self.residuals.intersection(leaving)
        again = _bytes_of_all(candidates) + max([bytes_of(v.aval) for v in made]) + self.slices
        return _Segment(numbers, eqns, self.rounds, _bytes_of_all(leaving), candidates, kept, again)

    def _cheapest_cuts(self, run: range, most: int) -> list[range]:
        """Return the segments of a run of equations that store least."""
        atoms = self._atoms(run)
        leaving = [
            [(self.last[v], bytes_of(v.aval)) for v in self._made(atom)
             if self.last.get(v, -1) >= atom.stop]
            for atom in atoms
        ]  # fmt: skip
        again = [_bytes_of_all(self.residuals.intersection(self._made(atom))) for atom in atoms]
        best: list[tuple[float, int]] = [(0.0, 0)]  # what is stored up to an atom; where it begins
        for end in range(1, len(atoms) + 1):
            found, size, stored = (float("inf"), 0), 0, 0
            stop = atoms[end - 1].stop
            for start in range(end - 1, -1, -1):
                size += again[start]
                if size > most and start < end - 1:
                    break
                stored += sum([n for last, n in leaving[start] if last >= stop])
                found = min(found, (best[start][0] + stored, start))
            best.append(found)
        parts, end = [], len(atoms)
        while end:
            start = best[end][1]
            parts.append(range(atoms[start].start, atoms[end - 1].stop))
            end = start
        return parts[::-1]

    def _made(self, numbers: range) -> list[Var]:
        return [v for k in numbers for v in self.closed.eqns[k].outputs]

    def _atoms(self, run: range) -> list[range]:
        """Return the parts of a run between places where fewer bytes are live than around them."""
        live, now = [], 0
        ending: dict[int, int] = {}
        for k in run:
            for v in self.closed.eqns[k].outputs:
                last = self.last.get(v, -1)
                if last > k:
                    now += bytes_of(v.aval)
                    ending[last] = ending.get(last, 0) + bytes_of(v.aval)
            now -= ending.pop(k, 0)
            live.append(now)
        cuts = [
            run.start + k + 1 for k in range(1, len(live) - 1)
            if live[k - 1] >= live[k] <= live[k + 1]
        ]  # fmt: skip
        return [range(a, b) for a, b in itertools.pairwise([run.start, *cuts, run.stop])]


def _bytes_of_all(values: Iterable[Var]) -> int:
    return sum([bytes_of(v.aval) for v in values])


ResidualsOf = Callable[[ClosedJaxpr, Sequence[bool]], set[Var]]


def _analysed(
    closed: ClosedJaxpr, active: Sequence[bool], residuals_of: ResidualsOf, rounds: int = 1,
    slices: int = 0,
) -> _Program:  # fmt: skip
    """Return what is known of a program before it is cut."""
    last: dict[Any, int] = {}
    loops: dict[int, _Loop] = {}
    starts, stored = [0], 0
    for k, eqn in enumerate(closed.eqns):
        last |= dict.fromkeys(eqn.inputs, k)
        if eqn.primitive.name == "scan" and eqn.params["jaxpr"].eqns:
            loops[k] = _loop(eqn, residuals_of, rounds)
            starts += [k, k + 1]
    for k, loop in loops.items():
        stored += loop.carried
        stored += rounds * _bytes_of_all([v for v in loop.eqn.outputs if last.get(v, -1) > k])
    stops = [*starts[1:], len(closed.eqns)]
    runs = [range(a, b) for a, b in zip(starts, stops, strict=True) if a < b]
    residuals = residuals_of(closed, active)
    return _Program(
        closed, rounds, _sources(closed, residuals), last, runs, loops, stored, slices, []
    )


def _loop(eqn: Equation, residuals_of: ResidualsOf, rounds: int) -> _Loop:
    """Return what is known of a scan that is run so often."""
    body, params = eqn.params["jaxpr"], eqn.params
    of_step = body.in_avals[params["num_consts"] :]
    steps = rounds * int(params["length"])
    carried = steps * sum(map(bytes_of, of_step[: params["num_carry"]]))
    active = [is_differentiable(aval) for aval in body.in_avals]
    slices = 2 * sum(map(bytes_of, of_step))
    return _Loop(eqn, _analysed(body, active, residuals_of, steps, slices), carried)


def _sources(closed: ClosedJaxpr, residuals: Iterable[Var]) -> set[Var]:
    """Return what residuals are made of by operations that take no more memory than they do.

    The compiler fuses cheap operations of elements with what reads them, so that their results
    take no memory of their own.
    """
    made = {v for eqn in closed.eqns for v in eqn.outputs}
    found = made.intersection(residuals)
    for eqn in reversed(closed.eqns):
        if found.isdisjoint(eqn.outputs) or not _is_fused(eqn):
            continue
        (v,) = eqn.outputs
        more = made.intersection(eqn.inputs) - found
        if _bytes_of_all(more) <= bytes_of(v.aval):
            found.remove(v)
            found |= more
    return found


def _is_fused(eqn: Equation) -> bool:
    if eqn.primitive.name in _MOVES:
        return True
    is_elementwise = eqn.primitive.rules.get("batch") is ELEMENTWISE and len(eqn.outputs) == 1
    return is_elementwise and count_equation(eqn) <= eqn.outputs[0].aval.size


_MOVES = frozenset(["broadcast_in_dim", "expand_dims", "reshape", "rev", "squeeze", "transpose"])


# -------------------------------------------------------------------------------------- choosing
# The sizes of segments, and what is stored of each.

Checkpointed = Callable[[ClosedJaxpr, Collection[Var], Sequence[Any]], Sequence[Any]]


def planned(
    closed: ClosedJaxpr, active: tuple[bool, ...], budget: int,
    residuals_of: ResidualsOf, checkpointed: Checkpointed, measured: bool,
) -> ClosedJaxpr:  # fmt: skip
    """Return a program whose segments are checkpoints that store what fits into a budget.

    Args:
      closed: the program.
      active: for each argument, whether it is differentiated with respect to.
      budget: bytes for what is stored and what is computed again at a time.
      residuals_of: `residuals_of(program, active)` returns the values that its derivative reads.
      checkpointed: `checkpointed(segment, kept, operands)` runs a checkpoint of a segment that
        keeps some of its values.
      measured: whether gradients are compiled to find the estimate that comes nearest.

    Raises:
      ValueError: no choice of segments fits.
      ImportError: no package compiles.
    """

    def choice(nbytes: int) -> ClosedJaxpr:
        return _planned_by_estimate(closed, active, nbytes, residuals_of, checkpointed)

    if not measured:
        return choice(budget)
    estimate, best = budget, choice(budget)
    program, found = best, dict[int, int]()  # bytes that were measured, by the estimate
    while True:
        found[estimate] = _temporaries(program, active)
        if min(found, key=lambda n: _miss(found[n], budget)) == estimate:
            best = program
        if abs(found[estimate] - budget) <= _NEAR * budget or len(found) == _MEASUREMENTS:
            return best
        estimate = _next_estimate(found, budget)
        try:
            program = choice(estimate)
        except ValueError:  # less than what it takes at least
            return best


def _miss(nbytes: int, budget: int) -> tuple[bool, int]:
    """Return how far a measurement is from the budget; those that fit are before others."""
    return nbytes > budget * (1 + _NEAR), abs(nbytes - budget)


# How often a gradient is compiled, unless it is as near to the budget as this share of it.
_MEASUREMENTS = 4
_NEAR = 0.03


def _next_estimate(found: dict[int, int], budget: int) -> int:
    """Return where a line through measurements on both sides meets the budget, or one through 0."""
    below = max([(n, at) for at, n in found.items() if n <= budget], default=(0, 0))
    above = min([(n, at) for at, n in found.items() if n > budget], default=None)
    if above is None:
        above, below = below, (0, 0)
    (low, at_low), (high, at_high) = below, above
    return int(at_low + (at_high - at_low) * (budget - low) / (high - low))


def _temporaries(program: ClosedJaxpr, active: Sequence[bool]) -> int:
    """Return the bytes that the compiler gives the gradient of a program beyond its operands."""
    jit, vjp = find("jit"), find("vjp")
    if jit is None or vjp is None:
        raise ImportError(message(
            "checkpoint", "measured=True needs the package that compiles.",
            hint="install xstack-xjit",
        ))  # fmt: skip

    def gradient(*args: Any) -> Any:
        def values(*differentiated: Any) -> list[Any]:
            given = iter(differentiated)
            full = [next(given) if a else x for a, x in zip(active, args, strict=True)]
            return [y for y in eval_closed(program, *full) if is_differentiable(y.aval)]

        ys, pull = vjp(values, *itertools.compress(args, active))
        return ys, pull(ys)

    shapes = [xprim.ShapeDtypeStruct(a.shape, a.dtype) for a in program.in_avals]
    return int(jit(gradient).lower(*shapes).compile().memory_analysis().temp_size_in_bytes)


def _planned_by_estimate(
    closed: ClosedJaxpr, active: tuple[bool, ...], budget: int, residuals_of: ResidualsOf,
    checkpointed: Checkpointed,
) -> ClosedJaxpr:  # fmt: skip
    """Return the program for a budget by estimated bytes."""
    program = _analysed(closed, active, residuals_of)
    _cut_for_least_memory(program)
    stored, again = program.total_stored(), _most_again(program)
    if stored + again > budget:
        raise ValueError(message(
            "checkpoint", "the budget is less than the gradient takes when all that can be is "
            "computed again.",
            got=in_bytes(budget),
            expected=f"at least {in_bytes(stored + again)}: {in_bytes(stored)} between the parts "
            f"of {closed.jaxpr.name or 'the function'}, {in_bytes(again)} for the largest of them",
            hint="a smaller batch, or chunks of it, takes less",
        ))  # fmt: skip
    rated = itertools.chain.from_iterable([part.rated() for part in program.segments()])
    for _, part, v in sorted(rated, key=lambda found: -found[0]):
        more = part.rounds * bytes_of(v.aval)
        if stored + again + more <= budget:
            is_largest = part.again == again
            part.keep(v)
            stored += more
            again = _most_again(program) if is_largest else again
    return _run_in_parts(program, checkpointed)


def _most_again(program: _Program) -> int:
    return max([part.again for part in program.segments()], default=0)


def _cut_for_least_memory(program: _Program) -> None:
    """Cut a program where what is stored and the largest segment take least together."""
    program.cut(0)
    size, most = max(_most_again(program), 1), program.total_residuals()
    found: dict[int, int] = {}
    while not found or size < most * _FINENESS:
        program.cut(size)
        found[size] = program.total_stored() + _most_again(program)
        size = int(size * _FINENESS) + 1
    program.cut(min(found, key=lambda n: (found[n], -n)))


# How much larger each size of segments is that is tried than the one before.
_FINENESS = 1.3


def _run_in_parts(program: _Program, checkpointed: Checkpointed) -> ClosedJaxpr:
    """Return the program of checkpoints that was chosen."""
    jaxpr = program.closed.jaxpr

    def run(*args: Any) -> list[Any]:
        outs: Sequence[Any]
        values: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
        values |= zip(jaxpr.constvars, program.closed.consts, strict=True)
        for part in program.parts:
            if isinstance(part, _Loop):
                body = _run_in_parts(part.body, checkpointed)
                eqn = part.eqn.replace(params={**part.eqn.params, "jaxpr": body})
                closed = _program_of([eqn], eqn.outputs)
            else:
                stop = part.numbers.stop
                made = [v for eqn in part.eqns for v in eqn.outputs]
                used = [v for v in made if v in results or program.last.get(v, -1) >= stop]
                closed = _program_of(part.eqns, used)
            operands = [values[v] for v in closed.jaxpr.invars]
            if isinstance(part, _Loop):
                outs = eval_closed(closed, *operands)
            else:
                outs = checkpointed(closed, part.kept, operands)
            values |= zip(closed.jaxpr.outvars, outs, strict=True)
        return [x.value if isinstance(x, Literal) else values[x] for x in jaxpr.outvars]

    results = set(jaxpr.outvars)
    return xprim.trace_to_closed(run, program.closed.in_avals, name=jaxpr.name)


def _program_of(eqns: Sequence[Equation], results: Sequence[Var]) -> ClosedJaxpr:
    """Return equations as a program of what they read."""
    made = {v for eqn in eqns for v in eqn.outputs}
    read = dict.fromkeys([x for eqn in eqns for x in eqn.inputs if isinstance(x, Var)])
    return ClosedJaxpr(Jaxpr([], [v for v in read if v not in made], list(results), list(eqns)))
