"""Compiled programs take memory mappings, of which a process has a bounded number."""

import pathlib
import sys

import pytest

import xnp
from xjit import jit
from xjit.cache import memory
from xjit.cache.memory import Room
from xprim.errors import OutOfMemoryError

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="counts mappings as Linux shows them")
PROGRAM = "an operation\n" * 10  # takes 40 mappings at most


def test_programs_are_forgotten_before_mappings_run_short():
    in_use, asked = [300], []
    room = Room(1000, lambda: in_use[0])

    def forget(share):
        asked.append(share)
        in_use[0] -= 200 * share

    room.when_short(forget)
    room.make(PROGRAM)
    assert asked == []
    in_use[0] = 480  # what nobody counted
    for _ in range(12):
        room.make(PROGRAM)
    assert asked == [0.5]
    in_use[0] = 700
    for _ in range(3):
        room.make(PROGRAM)
    assert asked[1:3] == [0.5, 1.0]


def test_where_linux_allows_more_mappings_no_more_programs_are_kept():
    in_use, shares = [40_000], []
    room = Room(1_048_576, lambda: in_use[0])
    room.when_short(shares.append)
    for _ in range(1000):
        room.make(PROGRAM)  # 1,000 of them are 40,000 mappings at most
    # nothing could be forgotten: the table is searched again when as many have been added
    assert shares == [0.5, 1.0]
    in_use[0] = 80_000
    for _ in range(1100):
        room.make(PROGRAM)
    assert shares == [0.5, 1.0] * 2


def test_a_process_whose_programs_are_all_in_use_gets_an_error():
    room = Room(1000, lambda: 950)
    with pytest.raises(OutOfMemoryError, match=r"no room for another program(.|\n)*950 memory map"):
        room.make("an operation\n" * 200)


def test_without_a_bound_nothing_is_counted():
    Room(None, lambda: pytest.fail("counted")).make("an operation\n" * 10**6)


@ON_LINUX
def test_mappings_of_programs_that_are_only_kept_do_not_pile_up(monkeypatch):
    lines = pathlib.Path("/proc/self/maps")
    start = len(lines.read_text().splitlines())
    monkeypatch.setattr(memory.room, "_limit", 2 * (start + 200))
    monkeypatch.setattr(memory.room, "_since", start + 200)

    def program(k):
        return lambda x: [xnp.cumsum(xnp.sort(x * i + k)) for i in range(10)]

    most = 0
    for k in range(12):
        jit(program(k))(xnp.arange(8.0))
        most = max(most, len(lines.read_text().splitlines()))
    assert most < start + 400  # twelve programs would take some 1,200
