"""What an ordinary run leaves out of a wide table, and that it tries some of every group."""

from itertools import pairwise

import pytest

from tests.nets.cells import IN_FULL, spread

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
