"""What a run leaves out of a wide table, and that it tries some of every group."""

import itertools
from itertools import pairwise
from pathlib import Path

import pytest

from tests.nets import cells as of_nets
from tests.nets.cells import IN_FULL, covering, spread

ROOT = Path(__file__).parents[2]

NAMES = ["sin", "cos", "tan"]
NUMBERS = range(6)


@pytest.mark.parametrize("every", [1, 2, 3, 7])
def test_a_sample_is_spread_over_the_groups_and_leaves_none_out(every):
    groups = [name for name in ("a", "b", "c") for _ in range(12)] + ["d"]
    chosen = spread("test", groups, every)
    assert chosen == sorted(set(chosen))
    for group in "abcd":
        cells = [k for k in chosen if groups[k] == group]
        assert len(cells) in {-(-groups.count(group) // every), groups.count(group) // every} - {0}
        assert all(b - a == every for a, b in pairwise(cells))


def test_tests_of_one_table_try_other_cells_of_it():
    tried = {cell for k in range(20) for cell in spread(f"test {k}", [0] * 8, 4)}
    assert tried == set(range(8))


@pytest.mark.parametrize("strength", [1, 2, 3])
def test_a_covering_has_all_combinations_of_some_factors_in_fewer_cells(strength, monkeypatch):
    monkeypatch.setattr(of_nets, "IN_FULL", True)
    every = itertools.product("abcd", "ab", range(5), range(4))
    table = [cell for cell in every if cell[0] != "a" or cell[2] < 2]
    chosen = covering(table, tuple, strength)
    assert len(chosen) < len(table) * {1: 0.1, 2: 0.5, 3: 0.8}[strength]
    assert chosen == [c for c in table if c in chosen]
    for columns in itertools.combinations(range(4), strength):
        found, wanted = [{tuple(c[i] for i in columns) for c in each} for each in (chosen, table)]
        assert found == wanted


def test_each_module_that_the_nightly_number_widens_is_run_by_it():
    """`nox -s fuzz` selects marked tests: a number read by others would never be used."""
    folders = [ROOT / "tests", *ROOT.glob("packages/*/tests")]
    paths = [path for folder in folders for path in folder.rglob("test_*.py")]
    text_of_module = {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}
    wide = [name for name, text in text_of_module.items()
            if "FUZZ_PROGRAMS" in text or "IN_FULL" in text]  # fmt: skip
    assert len(wide) > 20
    marked = [name for name, text in text_of_module.items()
              if "mark.fuzz" in text or "mark.sampled" in text]  # fmt: skip
    assert {*wide} - {*marked} == set()


@pytest.mark.sampled(every=3, per="name")
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("name", NAMES)
def test_a_cell_of_a_table_that_is_sampled(name, number):
    assert name in NAMES
    assert number in NUMBERS


def test_an_ordinary_run_tries_one_of_so_many_cells_of_each_group(request):
    cells = [item.callspec.params["name"] for item in request.session.items
             if item.name.startswith(test_a_cell_of_a_table_that_is_sampled.__name__)]  # fmt: skip
    if set(cells) != set(NAMES) or request.config.getoption("--sample") != 1:
        pytest.skip("this run takes only some of the tests of this file")
    count = len(NUMBERS) if IN_FULL else len(NUMBERS) // 3
    assert sorted(cells) == sorted(NAMES * count)
    assert all(item.get_closest_marker("fuzz") for item in request.session.items
               if item.get_closest_marker("sampled"))  # fmt: skip
