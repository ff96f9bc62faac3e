from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from xprim.static_keys import static_key


class P(NamedTuple):
    value: Any


@dataclasses.dataclass(frozen=True)
class D:
    value: Any


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    value: Any


class Own:
    """An object with an equality of its own."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


class Word(enum.StrEnum):
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


class Text(str):
    pass


EQUAL_BUT_OTHER: list[list[Any]] = [
    [1, 1.0, True, 1 + 0j, np.int32(1), np.float32(1), np.float64(1), np.True_, Number.ONE],
    [0.0, -0.0, 0, False, complex(0.0, -0.0), complex(0.0, 0.0), np.float32(-0.0), np.float32(0)],
    ["a", Word.A, Text("a")],
    [decimal.Decimal("1.0"), decimal.Decimal("1.00"), 1],
    [range(0, 3, 2), range(0, 4, 2)],
    [
        datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC),
        datetime.datetime(2026, 1, 1, 13, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    ],
]
HOLDERS = [lambda v: v, P, D, Slotted, Own, lambda v: (v, 2), lambda v: frozenset([v]),
           lambda v: P((v,)), lambda v: D(P(v)), lambda v: Own((1, (v,))), lambda v: P(D(v)),
           lambda v: D(frozenset([v]))]  # fmt: skip


@pytest.mark.parametrize("values", EQUAL_BUT_OTHER, ids=str)
@pytest.mark.parametrize("number", range(len(HOLDERS)))
def test_values_that_compare_equal_but_are_not_the_same_have_different_keys(values, number):
    hold = HOLDERS[number]
    for a, b in itertools.combinations(values, 2):
        assert static_key(hold(a)) != static_key(hold(b)), (a, b)
    for value in values:
        assert static_key(hold(value)) == static_key(hold(value))
        assert hash(static_key(hold(value))) == hash(static_key(hold(value)))


def test_a_nan_finds_itself():
    assert static_key(math.nan) == static_key(float("nan"))
    assert static_key(P(math.nan)) == static_key(P(float("nan")))


def test_a_counter_inside_a_static_object_does_not_make_it_another():
    value = Own(1)
    before = static_key(value)
    value.calls = 1
    first = static_key(value)
    value.calls = 2
    assert static_key(value) == first != before


def test_an_equality_that_leaves_something_out_is_kept():
    @dataclasses.dataclass(frozen=True)
    class Config:
        size: int
        label: str = dataclasses.field(compare=False, default="")

    assert static_key(Config(1, "a")) == static_key(Config(1, "b")) != static_key(Config(2, "a"))
