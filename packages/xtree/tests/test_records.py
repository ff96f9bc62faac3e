"""Records: values with the methods of frozen dataclasses."""

import copy
import inspect
import pickle
from dataclasses import dataclass
from typing import ClassVar

import pytest

import xtree
from xtree.records import Record, set_once


class Point(Record):
    __slots__ = __match_args__ = ("x", "y")

    def __init__(self, x, y=0):
        set_once(self, "x", x)
        set_once(self, "y", y)


class Named(Point):
    __slots__ = ("name",)
    __match_args__ = ("x", "y", "name")

    def __init__(self, x, y, name):
        super().__init__(x, y)
        set_once(self, "name", name)


class Empty(Record):
    __slots__ = ()


def test_records_are_equal_to_those_of_their_class_with_equal_values():
    assert Point(1, 2) == Point(1, 2)
    assert Point(1, 2) != Point(1, 3)
    assert Point(1, 2) != Named(1, 2, "a")
    assert Named(1, 2, "a") != Named(1, 2, "b")
    assert Point(1, 2) != (1, 2)
    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    assert {Point(1), Point(1, 0), Named(1, 0, "a")} == {Point(1), Named(1, 0, "a")}


def test_a_record_of_what_has_no_hash_has_none():
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point([]))


def test_a_record_prints_as_a_dataclass_does():
    @dataclass(frozen=True)
    class Pair:
        x: int
        y: str

    class Two(Record):
        __slots__ = __match_args__ = ("x", "y")

        def __init__(self, x, y):
            set_once(self, "x", x)
            set_once(self, "y", y)

    assert repr(Two(1, "a")) == repr(Pair(1, "a")).replace("Pair", "Two")


@pytest.mark.parametrize("change", [
    lambda p: setattr(p, "x", 3), lambda p: setattr(p, "z", 3), lambda p: delattr(p, "x"),
])  # fmt: skip
def test_a_record_does_not_change(change):
    point = Point(1, 2)
    with pytest.raises(AttributeError, match=r"Point does not change: its attribute '[xz]'"):
        change(point)
    assert point == Point(1, 2)


@pytest.mark.parametrize("record", [
    Point(1, (2,)), Named(1, 2, "a"), Empty(), xtree.SequenceKey(3), xtree.DictKey("a"),
    xtree.GetAttrKey("w"), xtree.FlattenedIndexKey(0),
])  # fmt: skip
def test_a_record_is_copied_and_pickled(record):
    for made in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        assert made == record
        assert type(made) is type(record)
        assert repr(made) == repr(record)


def test_a_record_is_taken_apart_by_patterns():
    match Named(1, 2, "a"):
        case Point(x, y):
            assert (x, y) == (1, 2)
    match Named(1, 2, "a"):
        case Named(_, _, name=name):
            assert name == "a"


def test_keys_of_different_kinds_with_one_value_differ():
    keys = [
        xtree.SequenceKey(0), xtree.DictKey(0), xtree.FlattenedIndexKey(0), xtree.GetAttrKey(0),
    ]  # fmt: skip
    assert len(set(keys)) == 4


class Interval(Record):
    count: ClassVar[int] = 0
    start: float
    stop: float = 1.0

    def __len__(self):
        return int(self.stop - self.start)


def test_annotations_are_the_fields_of_a_record():
    assert Interval.__match_args__ == ("start", "stop")
    assert str(inspect.signature(Interval)).startswith("(start: float, stop: float = 1.0)")
    assert Interval(0.5) == Interval(0.5, stop=1.0) != Interval(0.5, 2.0)
    assert not hasattr(Interval(0), "__dict__")
    assert len(pickle.loads(pickle.dumps(Interval(1, stop=4)))) == 3
    match Interval(1, 2):
        case Interval(start, stop):
            assert (start, stop) == (1, 2)
    with pytest.raises(TypeError, match=r"Interval.__init__\(\) missing 1 required .* 'start'"):
        Interval()


def test_a_record_that_computes_what_it_holds_has_the_fields_as_slots():
    class Sorted(Record):
        items: tuple

        def __init__(self, *items):
            set_once(self, "items", tuple(sorted(items)))

    assert repr(Sorted(3, 1)).endswith("Sorted(items=(1, 3))")
    assert Sorted(3, 1) == Sorted(1, 3)


def test_the_fields_of_a_base_come_first():
    class Weighted(Interval):
        weight: float = 2.0

    class Same(Interval):
        def width(self):
            return self.stop - self.start

    assert repr(Weighted(0, weight=3)).endswith("Weighted(start=0, stop=1.0, weight=3)")
    assert Weighted(0) != Interval(0)
    assert Weighted(0, 1, 2.5) == Weighted(0, 1, 2.5) != Weighted(0, 1)
    assert Same(0, 2).width() == 2
    assert Weighted.__slots__ == ("weight",)
    assert Same.__slots__ == ()
