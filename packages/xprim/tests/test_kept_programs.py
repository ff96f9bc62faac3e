"""The table of programs: what is found again, and what dies."""

from __future__ import annotations

import functools
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import xtree
from packages.xprim.tests.operations import plus_p
from xprim import as_array, close_over, eval_closed, kept_programs, make_jaxpr
from xprim.kept_programs import KeptPrograms, Staged

TREE = xtree.structure((0.0,))


def _staged(fun: Any, x: Any, staged: list[Any]) -> Staged:
    staged.append(fun)
    closed = make_jaxpr(fun)(x)
    return Staged(*close_over(closed.jaxpr, closed.consts), None)


def _called(programs: KeptPrograms, fun: Any, x: Any, staged: list[Any]) -> Any:
    avals = [as_array(x).aval]
    stage = functools.partial(_staged, fun, x, staged)
    found = programs.program_of(fun, TREE, avals, stage)
    return eval_closed(found.closed, *found.captured, as_array(x))[0]


def _adding(captured: Any) -> Any:
    return lambda x: plus_p.bind(x, captured)[0]


def test_equal_functions_that_captured_one_array_share_a_program() -> None:
    programs, staged = KeptPrograms(limit=8), list[Any]()
    first, second = as_array(np.arange(3.0)), as_array(np.arange(3.0) + 1)
    for captured in (first, first, second, first):
        got = _called(programs, _adding(captured), 2.0, staged)
        np.testing.assert_array_equal(np.asarray(got), np.asarray(captured) + 2)
    assert len(staged) == 2


def test_the_array_that_a_function_captured_dies_with_it() -> None:
    programs, staged = KeptPrograms(limit=8), list[Any]()
    captured = as_array(np.arange(3.0))
    alive = weakref.ref(captured)
    _called(programs, _adding(captured), 2.0, staged)
    staged.clear()
    del captured
    gc.collect()
    assert alive() is None


def test_a_function_that_counts_as_itself_is_staged_when_what_it_sees_changes() -> None:
    programs, staged, table = KeptPrograms(limit=8), list[Any](), [1.0]

    def fun(x: Any) -> Any:
        return plus_p.bind(x, as_array(table[0]))[0]

    for number, count in ((1.0, 1), (1.0, 1), (2.0, 2), (2.0, 2), (1.0, 3)):
        table[0] = number
        assert float(_called(programs, fun, 2.0, staged)) == 2.0 + number
        assert len(staged) == count


def test_a_function_that_counts_its_traces_is_staged_once_and_shares_with_no_equal_one() -> None:
    programs, staged, counts = KeptPrograms(limit=8), list[Any](), [0]

    def counting() -> Any:
        def fun(x: Any) -> Any:
            counts[0] += 1
            return plus_p.bind(x, as_array(float(counts[0])))[0]

        return fun

    one, other = counting(), counting()
    got = [float(_called(programs, fun, 2.0, staged)) for fun in (one, one, other, other)]
    assert got == [3.0, 3.0, 4.0, 4.0]


def test_a_function_that_counts_its_traces_is_staged_once_for_each_type() -> None:
    programs, staged, counts = KeptPrograms(limit=8), list[Any](), [0]

    def fun(x: Any) -> Any:
        counts[0] += 1
        return x

    for x in (2.0, 2, np.ones(3), 2.0, 2, np.ones(3)):
        _called(programs, fun, x, staged)
    assert len(staged) == counts[0] == 3


def test_a_function_that_captured_traced_values_is_not_looked_at(monkeypatch: Any) -> None:
    programs, staged, table = KeptPrograms(limit=8), list[Any](), [1.0]
    monkeypatch.setattr(kept_programs, "seen_by", lambda *args: pytest.fail("it was"))

    def outer(y: Any) -> Any:
        return _called(programs, lambda x: plus_p.bind(x, y)[0] if table else x, 2.0, staged)

    make_jaxpr(outer)(1.0)
    assert len(staged) == 1


def test_the_program_of_a_function_that_counts_as_itself_dies_with_it() -> None:
    programs, staged, table = KeptPrograms(limit=8), list[Any](), [1.0]

    def seeing() -> Any:
        return lambda x: plus_p.bind(x, as_array(table[0]))[0]

    for _ in range(3):
        _called(programs, seeing(), 2.0, staged)
    assert len(staged) == 3
    staged.clear()
    gc.collect()
    assert not programs._own_by_function


def test_a_program_without_a_key_is_staged_for_each_call() -> None:
    programs, staged = KeptPrograms(limit=8), list[Any]()
    stage = functools.partial(_staged, lambda x: x, 2.0, staged)
    for _ in range(2):
        programs.get_or_stage(None, stage)
    assert len(staged) == 2


def test_the_table_is_emptied_at_its_limit() -> None:
    programs, staged = KeptPrograms(limit=2), []
    captured = [as_array(np.full(3, n)) for n in range(3)]
    for array in (*captured, captured[2], captured[0]):
        _called(programs, _adding(array), 2, staged)
    assert len(staged) == 4
