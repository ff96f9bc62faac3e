"""Random programs as data: what they are, how they run, and what is known about their values.

A program is a list of steps over numbered values: the values of the enclosing program first, then
its arguments, then what its steps give. `evaluate` runs it on Arrays of any kind; `abstract` runs
it on `Value`s, intervals with a bound of the rounding error, which give each comparison its
tolerance and keep discontinuous operations away from values that rounding can move.

Neighbours: `program_operations` and `program_control_flow` have the operations,
`program_strategy` draws programs, `program_checks` compares what transformations make of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

EPS = float(np.finfo(np.float32).eps)
# How far one operation may be from the exact result, on either side of a comparison. XLA's and
# NumPy's elementary functions are within 8 ulp, sums of up to 24 terms within 24.
ULPS = 32
MAX_MAGNITUDE = 1e3
MAX_ERROR = 1e-3


class UnfitError(Exception):
    """An operation does not fit these values: shapes, domain, magnitude or error."""


@dataclass(frozen=True)
class Value:
    """What is known about a value: kind ('f', 'i', 'b'), shape, and for floats interval and error.

    `error` bounds how far two correct float32 evaluations may be apart; 0 says they are equal.
    """

    kind: str
    shape: tuple[int, ...]
    lo: float = 0.0
    hi: float = 0.0
    error: float = 0.0

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def magnitude(self) -> float:
        """The largest absolute value."""
        return max(abs(self.lo), abs(self.hi))

    @property
    def exact(self) -> bool:
        """Whether all evaluations agree bit for bit."""
        return self.error == 0.0

    def of_shape(self, shape: Sequence[int]) -> Value:
        """Return the same knowledge about another shape."""
        return replace(self, shape=tuple(map(int, shape)))

    def with_zero(self) -> Value:
        """Return the value with zero among its elements."""
        return replace(self, lo=min(self.lo, 0.0), hi=max(self.hi, 0.0))

    def union(self, other: Value) -> Value:
        """Return what holds for elements of either value."""
        return replace(
            self,
            lo=min(self.lo, other.lo),
            hi=max(self.hi, other.hi),
            error=max(self.error, other.error),
        )


def rounded(shape: Sequence[int], lo: float, hi: float, error: float, terms: int = 1) -> Value:
    """Return the float value of an operation that rounds, if it is worth having.

    Args:
      shape: of the result.
      lo: the least exact result.
      hi: the greatest exact result.
      error: what the operation makes of the errors of its operands.
      terms: how many roundings of the magnitude there are.

    Raises:
      UnfitError: when magnitude or error grow too large for a comparison to say anything.
    """
    magnitude = max(abs(lo), abs(hi))
    total = error + ULPS * EPS * max(magnitude, 1e-2) * terms
    if not (magnitude <= MAX_MAGNITUDE and total <= MAX_ERROR):
        raise UnfitError
    return Value("f", tuple(map(int, shape)), lo - total, hi + total, total)


@dataclass(frozen=True)
class Step:
    """One operation: its name, the numbers of its operands, and its params."""

    op: str
    operands: tuple[int, ...]
    params: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Program:
    """Steps, and the numbers of the values that are the results."""

    steps: tuple[Step, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A program with what its arguments are: the kinds and shapes, and the seed of the elements."""

    program: Program
    arguments: tuple[tuple[str, tuple[int, ...]], ...]
    seed: int = 0


@dataclass(frozen=True)
class Operation:
    """An operation of random programs.

    Attributes:
      draw: (draw, env) -> (operand numbers, params); raises `UnfitError` when nothing fits.
      abstract: (env, operands, params) -> Values; raises `UnfitError`.
      apply: (run, operands, params) -> Arrays.
      kinked: whether its derivative jumps where operands are equal, zero or whole.
    """

    name: str
    draw: Callable[..., Any]
    abstract: Callable[..., list[Value]]
    apply: Callable[..., Sequence[Any]]
    kinked: bool = False


@dataclass
class Run:
    """The state of one evaluation: the values so far, and the dtype of floats."""

    env: list[Any]
    float_dtype: Any = np.float32

    def inner(self, program: Program, *arguments: Any) -> tuple[Any, ...]:
        """Evaluate a program that sees the values of this one."""
        return evaluate(program, [*self.env, *arguments], self.float_dtype)


operations: dict[str, Operation] = {}
# By itself, for `jit` looks at all that a program reaches: not at how operations are drawn.
apply_by_name: dict[str, Callable[..., Sequence[Any]]] = {}


def register(operation: Operation) -> None:
    """Add an operation that programs may consist of."""
    assert operation.name not in operations
    operations[operation.name] = operation
    apply_by_name[operation.name] = operation.apply


def evaluate(program: Program, env: Sequence[Any], float_dtype: Any) -> tuple[Any, ...]:
    """Run a program on Arrays: what it sees first, then its arguments."""
    run = Run(list(env), float_dtype)
    for step in program.steps:
        operands = [run.env[i] for i in step.operands]
        run.env.extend(apply_by_name[step.op](run, operands, step.params))
    return tuple([run.env[i] for i in program.results])


def abstract(program: Program, env: Sequence[Value]) -> list[Value]:
    """Return what is known about the results of a program."""
    values = list(env)
    for step in program.steps:
        values.extend(abstract_step(step, values))
    return [values[i] for i in program.results]


def abstract_step(step: Step, env: list[Value]) -> list[Value]:
    """Return what is known about the results of a step."""
    return operations[step.op].abstract(env, [env[i] for i in step.operands], step.params)


def all_steps(program: Program) -> list[Step]:
    """Return the steps of a program and of the programs inside it."""
    found: list[Step] = []
    for step in program.steps:
        found.append(step)
        for inner in step.params:
            if isinstance(inner, Program):
                found.extend(all_steps(inner))
    return found


def argument_values(case: Case) -> list[Value]:
    """Return what is known about the arguments of a case."""
    return [Value(kind, shape, -2.0, 2.0) for kind, shape in case.arguments]


def arguments_of(case: Case, example: int = 0) -> list[np.ndarray[Any, Any]]:
    """Return the elements of the arguments; every `example` has others.

    Floats are quarters between -2 and 2 for one example in three (so that ties and zeros occur),
    and uniform there for the others. Integers are small, and extreme ones among them.
    """
    rng = np.random.default_rng([case.seed, example])
    coarse = (case.seed + example) % 3 == 0
    found = []
    for kind, shape in case.arguments:
        if kind == "f":
            x = rng.uniform(-2, 2, shape)
            found.append((np.round(x * 4) / 4 if coarse else x).astype(np.float32))
        elif kind == "b":
            found.append(np.asarray(rng.integers(0, 2, shape).astype(bool)))
        else:
            x = rng.integers(-4, 5, shape)
            extreme = rng.choice([2**31 - 1, -(2**31), 65537], shape)
            found.append(np.where(rng.random(shape) < 0.1, extreme, x).astype(np.int32))
    return found
