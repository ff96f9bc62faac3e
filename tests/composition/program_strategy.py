"""A hypothesis strategy of random programs of up to 30 steps.

Steps are drawn one after the other over what is known of the values so far; a choice that does not
fit (shapes, domain, magnitude) is left out. Choices are ordered so that shrinking goes to few
steps, to the simplest operations, and to the latest values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from tests.composition import program_control_flow, program_operations, program_shapes
from tests.composition.program_data import (
    Case,
    Program,
    Step,
    UnfitError,
    Value,
    abstract_step,
    argument_values,
    operations,
)

MAX_STEPS = 30
MAX_DEPTH = 2

SHAPES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 3), (3, 2), (2,), (2, 2), (1, 3), (2, 1, 2))
_CONTROL = ("jit", "checkpoint", "vmap", "cond", "switch", "scan", "fori_loop", "while_loop")
assert program_operations and program_shapes  # they register the operations

_NAMES = [name for name in operations if name not in _CONTROL] + [
    "add",
    "mul",
    "sub",
    "dot_general",
    "gather",
    "scatter_add",
    "dynamic_slice",
    "concatenate",
    "reduce_sum",
    "reshape",
    "select_n",
] * 3
_NAMES_WITH_PROGRAMS = _NAMES + [*_CONTROL] * 3


class _Building:
    """The state of drawing: how many steps are left, and how deep programs are nested."""

    steps_left = 0
    depth = 0


_building = _Building()


def _draw_steps(draw: Any, env: list[Value], most: int) -> list[Step]:
    names = _NAMES_WITH_PROGRAMS if _building.depth < MAX_DEPTH else _NAMES
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, most))):
        name = draw(st.sampled_from(names))
        if _building.steps_left <= 0:
            break
        try:
            operands, params = operations[name].draw(draw, env)
            step = Step(name, operands, params)
            values = abstract_step(step, env)
        except UnfitError:
            continue
        _building.steps_left -= 1
        steps.append(step)
        env.extend(values)
    return steps


def _inner_program(
    draw: Any, env: Sequence[Value], wanted: Sequence[Callable[[Value], bool] | None]
) -> Program:
    """Draw a program inside another; results for which a test is given pass it."""
    _building.depth += 1
    try:
        values = list(env)
        steps = _draw_steps(draw, values, most=4)
        results = []
        for test in wanted:
            latest = range(len(values) - 1, -1, -1)
            fitting = [i for i in latest if test is None or test(values[i])]
            results.append(fitting[0])  # the argument fits in any case
        return Program(tuple(steps), tuple(results))
    finally:
        _building.depth -= 1


program_control_flow.inner_program.append(_inner_program)

_argument = st.tuples(st.sampled_from("fffib"), st.sampled_from(SHAPES))


@st.composite
def cases(draw: Any, max_steps: int = MAX_STEPS) -> Case:
    """Draw a program with its arguments; its results are the latest values, floats among them."""
    arguments = (
        ("f", draw(st.sampled_from(SHAPES))),
        *draw(st.lists(_argument, max_size=3)),
        ("i", draw(st.sampled_from([(), (3,), (2,)]))),
    )
    seed = draw(st.integers(0, 10**6))
    case = Case(Program((), ()), arguments, seed)
    env = argument_values(case)
    _building.steps_left, _building.depth = max_steps, 0
    steps = _draw_steps(draw, env, most=max_steps)
    latest = list(range(len(env)))[-4:]
    floats = [i for i, v in enumerate(env) if v.kind == "f" and i >= len(arguments)][-2:]
    results = tuple(sorted({*latest, *floats}))
    return Case(Program(tuple(steps), results), arguments, seed)
