"""Memory budgets of checkpoints: which values the forward pass keeps, chosen by bytes and cost.

A program is cut into segments where few bytes are live. Each becomes a checkpoint: its inputs are
stored, and it is computed again when the backward pass comes to it. So the memory of a gradient is

    stored values  +  what the largest segment computes again

and the segments are those for which this is least. What the budget leaves is given to the values
that cost most operations a byte (`xprim.eager_costs`). A scan counts each step: its body is
cut likewise, and what the body stores is stored once a step. A measured choice, where that is too
coarse, divides scans into parts that store different values.

Source of the segments: T. Chen et al., "Training deep nets with sublinear memory cost" (2016); of
the choice inside, a knapsack filled by value per weight (G. B. Dantzig, 1957).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import xprim
from xad._checkpoint import CONTRACTIONS
from xad.tangents import is_differentiable
from xnp.primitives.table import join, reshape, slice_dim
from xprim import ELEMENTWISE, STRUCTURAL, ClosedJaxpr, Equation, Jaxpr, Literal, Var, eval_closed
from xprim.eager_costs import count_equation
from xprim.errors import described, message
from xprim.memory import bytes_of, in_bytes
from xprim.sharded_types import with_dimension
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

    def drop(self, v: Var) -> None:
        """Compute a candidate again."""
        self.kept.remove(v)
        self.stored -= bytes_of(v.aval)
        self.again += bytes_of(v.aval)

    def rate_candidates(self) -> Iterator[_Candidate]:
        """Yield the candidates that are not stored."""
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
                    yield _Candidate(cost / max(bytes_of(v.aval), 1), self, v, eqn.primitive.name)


@dataclass(frozen=True)
class _Candidate:
    """A value that could be stored.

    Attributes:
      rate: the operations a byte that computing it again takes.
      part: where it is.
      v: the value.
      name: of the primitive that makes it.
    """

    rate: float
    part: _Segment
    v: Var
    name: str

    @property
    def nbytes(self) -> int:
        """What storing it takes, in all steps of the loops around."""
        return self.part.rounds * bytes_of(self.v.aval)

    @property
    def is_contraction(self) -> bool:
        """Whether it is in memory anyhow: the compiler fuses no contraction with what reads it."""
        return self.name in CONTRACTIONS

    def is_like(self, other: _Candidate) -> bool:
        """Return whether storing the other one would have the same effect elsewhere."""
        return self.name == other.name and self.v.aval is other.v.aval


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
            [(self.last[v], bytes_of(v.aval)) for v in self._find_made(atom)
             if self.last.get(v, -1) >= atom.stop]
            for atom in atoms
        ]  # fmt: skip
        again = [
            _bytes_of_all(self.residuals.intersection(self._find_made(atom))) for atom in atoms
        ]
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

    def _find_made(self, numbers: range) -> list[Var]:
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


def _analyse(
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
    return _Loop(eqn, _analyse(body, active, residuals_of, steps, slices), carried)


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
    rules = eqn.primitive.rules
    if "uses_all" in rules and rules.get("physical") is STRUCTURAL:
        return True
    is_elementwise = rules.get("batch") is ELEMENTWISE and len(eqn.outputs) == 1
    return is_elementwise and count_equation(eqn) <= eqn.outputs[0].aval.size


# -------------------------------------------------------------------------------------- choosing
# The sizes of segments, and what is stored of each.

Checkpointed = Callable[[ClosedJaxpr, Collection[Var], Sequence[Any]], Sequence[Any]]


def plan_checkpoints(
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

    def analyse(closed: ClosedJaxpr) -> _Program:
        program = _analyse(closed, active, residuals_of)
        _cut_for_least_memory(program)
        return program

    def measure(closed: ClosedJaxpr) -> _Measured:
        found = _Measured(analyse(closed), active, budget, checkpointed)
        found.keep_what_fits()
        return found

    if measured:
        most = _temporaries(closed, active)
        return closed if most <= budget * _MOST else _nearest(closed, budget, measure, most)
    program = analyse(closed)
    _keep_by_estimate(program, budget)
    return _run_in_parts(program, checkpointed)


def _nearest(
    closed: ClosedJaxpr, budget: int, measure: Callable[[ClosedJaxpr], _Measured], most: int
) -> ClosedJaxpr:
    """Return the measured choice that comes nearest, with scans in parts where that is nearer.

    Args:
      closed: the program.
      budget: the bytes.
      measure: makes a choice for a program.
      most: the bytes where nothing is computed again, which may be fewer than those of a choice.
    """
    first = measure(closed)
    found = [first]
    for attempt in range(3):
        if found[-1].is_near or not first.smallest:
            break
        parts_of = first.two_loops(found[-1].least) if attempt else first.turns()
        found.append(measure(_with_scans_in_parts(closed, parts_of)))
    best = min(found, key=_Measured.miss)
    if best.miss()[0]:
        least = in_bytes(min(best.nbytes, most))
        raise ValueError(_too_small(budget, f"{least}, as the compiler counts them"))
    return best.best


class _Measured:
    """A choice of what is stored, corrected by what the compiler gives each gradient.

    A value takes other bytes than its own where storing it changes what the compiler fuses.

    Attributes:
      best: the program that comes nearest to the budget.
      nbytes: its temporaries.
      least: those of the program that stores nothing more than it must.
    """

    def __init__(
        self, program: _Program, active: Sequence[bool], budget: int, checkpointed: Checkpointed
    ) -> None:
        self._program, self._active = program, active
        self._budget, self._checkpointed = budget, checkpointed
        self.best, self.nbytes = self._measure()
        self.least = self.nbytes

    def _measure(self) -> tuple[ClosedJaxpr, int]:
        closed = _run_in_parts(self._program, self._checkpointed)
        return closed, _temporaries(closed, self._active)

    def miss(self) -> tuple[bool, int]:
        """Return how far the best is from the budget; those that fit are before others."""
        return self.nbytes > self._budget * _MOST, abs(self.nbytes - self._budget)

    def keep_what_fits(self) -> None:
        """Store values, as many at a time as seem to fit, until few bytes are left.

        The dearest are first, contractions before others. Of those that do not fit together fewer
        are tried, and one that does not fit by itself is left out with those that are like it.
        At the end those are tried that are larger than what is left: some are in memory anyhow.
        """
        left = sorted(_by_rate(self._program), key=lambda c: not c.is_contraction)
        price, most = 1.0, len(left)
        for _ in range(_MEASUREMENTS - 1):
            room = self._budget - self.nbytes
            left = [c for c in left if c.nbytes <= _DEAREST * room]
            left.sort(key=lambda c: c.nbytes > room)
            if room <= (1 - _LEAST) * self._budget or not left:
                return
            sums = itertools.accumulate([price * c.nbytes for c in left])
            tried = left[: min(max(1, sum([n <= room for n in sums])), most)]
            for c in tried:
                c.part.keep(c.v)
            closed, nbytes = self._measure()
            if nbytes <= self._budget * _MOST:
                self.best, self.nbytes = closed, nbytes
                left, most = left[len(tried) :], len(left)
                continue
            for c in tried:
                c.part.drop(c.v)
            price = max(price, (nbytes - self.nbytes) / sum([c.nbytes for c in tried]))
            most = len(tried) - 1
            if not most:
                left = [c for c in left if not c.is_like(tried[0])]
                price, most = 1.0, len(left)

    @property
    def is_near(self) -> bool:
        """Whether the best is as near to the budget as is looked for."""
        return _LEAST <= self.nbytes / self._budget <= _MOST

    @property
    def smallest(self) -> int:
        """The least bytes of a value that was not stored in any step of a loop, 0 without one."""
        candidates = _by_rate(self._program)
        return min([c.nbytes for c in candidates if c.part.rounds > 1], default=0)

    def turns(self) -> PartsOf:
        """Return turns of steps in one of which a value has about the bytes that may be missed."""
        steps = math.ceil(self.smallest / ((_MOST - _LEAST) * self._budget))
        return partial(_turns_of, min(max(2, steps), _STEPS_A_TURN))

    def two_loops(self, least: int) -> PartsOf:
        """Return two loops, of which one has room for a value beyond the least that is stored."""
        return partial(_two_loops, (self._budget - least) / self.smallest)


# What the temporaries of a measured choice are of the budget, where there is such a choice; how
# often a gradient is compiled to find it; how many steps of a loop are written out for it at most.
_LEAST, _MOST = 0.95, 1.03
_MEASUREMENTS = 10
_STEPS_A_TURN = 8
# How many times more than its temporaries grow a value may take that is tried.
_DEAREST = 4


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


def _keep_by_estimate(program: _Program, budget: int) -> None:
    """Store what fits into a budget by estimated bytes."""
    stored, again = program.total_stored(), _most_again(program)
    if stored + again > budget:
        raise ValueError(_too_small(
            budget, f"{in_bytes(stored + again)}: {in_bytes(stored)} between the parts of "
            f"{program.closed.jaxpr.name or 'the function'}, {in_bytes(again)} for the largest of "
            "them",
        ))  # fmt: skip
    for c in _by_rate(program):
        if stored + again + c.nbytes <= budget:
            is_largest = c.part.again == again
            c.part.keep(c.v)
            stored += c.nbytes
            again = _most_again(program) if is_largest else again


def _too_small(budget: int, least: str) -> str:
    return message(
        "checkpoint", "the budget is less than the gradient takes when all that can be is "
        "computed again.",
        got=in_bytes(budget), expected=f"at least {least}",
        hint="a smaller batch, or chunks of it, takes less",
    )  # fmt: skip


def _by_rate(program: _Program) -> list[_Candidate]:
    """Return the values that could be stored, those that are dear to compute again first."""
    candidates = itertools.chain.from_iterable(
        [part.rate_candidates() for part in program.segments()]
    )
    return sorted(candidates, key=lambda c: -c.rate)


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


# --------------------------------------------------------------------------------- parts of scans
# A scan stores a value in all of its steps or in none. Parts of it have choices of their own: the
# steps of a turn, where a turn is several; or a first and a second loop. The elements of turns need
# no copy; but where the compiler does not keep the steps of a turn one after the other (the CPU of
# jaxlib 0.10.2, which drops barriers), these take more memory than two loops.

Part = tuple[int, int, int]  # the first step, how many turns, and the steps of each
PartsOf = Callable[[int], list[Part]]  # of a number of steps


def _turns_of(count: int, length: int) -> list[Part]:
    """Return turns of a number of steps, or of a few more where none is left over then."""
    divisors = [n for n in range(count, _STEPS_A_TURN + 1) if length % n == 0]
    count = min([*divisors[:1], length] if divisors else [count, length])
    turns, rest = divmod(length, count)
    return [(0, turns, count), (turns * count, 1, rest)][: 2 if rest else 1]


def _two_loops(share: float, length: int) -> list[Part]:
    """Return two loops, of which the first has a share of the steps."""
    first = min(max(1, int(share * length)), length - 1)
    return [(0, first, 1), (first, length - first, 1)] if first else [(0, length, 1)]


class _SplittingTrace(xprim.Trace):
    """Hands every primitive to its parent, scans in parts."""

    __slots__ = ("_parts_of",)

    name = "split"

    def __init__(self, parent: xprim.Trace, parts_of: PartsOf) -> None:
        super().__init__(parent)
        self._parts_of = parts_of

    def process(
        self, primitive: xprim.Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Apply a primitive."""
        assert self.parent is not None
        length = params.get("length")
        if primitive.name != "scan" or not isinstance(length, int) or "num_stops" in params:
            return self.parent.process(primitive, operands, params)
        with xprim.use_trace(self.parent):
            return _scan_parts(operands, self._parts_of(length), **params)


def _with_scans_in_parts(closed: ClosedJaxpr, parts_of: PartsOf) -> ClosedJaxpr:
    """Return the program with its scans divided."""

    def run(*args: Any) -> list[Any]:
        with xprim.use_trace(_SplittingTrace(xprim.state.trace, parts_of)):
            return eval_closed(closed, *args)

    return xprim.trace_to_closed(run, closed.in_avals, name=closed.jaxpr.name)


def _scan_parts(
    operands: Sequence[Any], parts: Sequence[Part], *, jaxpr: ClosedJaxpr, length: int,
    num_consts: int, num_carry: int, reverse: bool, **options: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Bind a scan for each part, and join their ys."""
    known = num_consts + num_carry
    consts, xs = operands[:num_consts], operands[known:]
    carry: Sequence[Any] = operands[num_consts:known]
    ys: Sequence[Any]
    ys_of_parts = []
    for start, turns, steps in parts[::-1] if reverse else parts:
        elements = [slice_dim(x, 0, start, start + turns * steps) for x in xs]
        body = jaxpr
        if steps > 1:
            elements = [reshape(x, (turns, steps, *x.aval.shape[1:])) for x in elements]
            body = jaxpr.derived(_turn, num_consts, num_carry, steps, reverse)
        results = xprim.get_primitive("scan").bind(
            *consts, *carry, *elements, jaxpr=body, length=turns, num_consts=num_consts,
            num_carry=num_carry, reverse=reverse, **options,
        )  # fmt: skip
        carry, ys = results[:num_carry], results[num_carry:]
        if steps > 1:
            ys = [reshape(y, (turns * steps, *y.aval.shape[2:])) for y in ys]
        ys_of_parts.append(ys)
    in_order = ys_of_parts[::-1] if reverse else ys_of_parts
    return (*carry, *[join(ys, 0) for ys in zip(*in_order, strict=True)])


def _turn(
    jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, steps: int, reverse: bool
) -> ClosedJaxpr:
    """Return the body of several steps, which gets their elements and stacks their ys."""
    known = num_consts + num_carry

    def run(*args: Any) -> list[Any]:
        consts, groups = args[:num_consts], args[known:]
        carry: Sequence[Any] = args[num_consts:known]
        ys: list[Sequence[Any]] = [()] * steps
        for i in range(steps - 1, -1, -1) if reverse else range(steps):
            elements = [reshape(slice_dim(x, 0, i, i + 1), x.aval.shape[1:]) for x in groups]
            results = eval_closed(jaxpr, *consts, *carry, *elements)
            carry, ys[i] = results[:num_carry], results[num_carry:]
        rows = [[reshape(y, (1, *y.aval.shape)) for y in each] for each in zip(*ys, strict=True)]
        return [*carry, *[join(each, 0) for each in rows]]

    avals = [with_dimension(a, 0, steps) for a in jaxpr.in_avals[known:]]
    return xprim.trace_to_closed(run, [*jaxpr.in_avals[:known], *avals], name=jaxpr.jaxpr.name)
