"""What the oracle's pages on sharp edges and on frequent questions discuss does the same here."""

from __future__ import annotations

import pytest

from tests.nets.cells import drawn
from tests.nets.documented_examples import differences
from tests.nets.page_programs import PROGRAMS

pytest.importorskip("jax")

# program -> why it prints something else
DELIBERATE = {
    "a global that changes": "a function that is jitted anew reads what its globals are now",
    "an int out of bounds": "an error, where the oracle reads the last element",
    "scan over a pair": "what a step hands on of its carry has the type that the carry comes to",
    "a 64-bit dtype that is asked for": "it is what was asked for, without a flag",
}


@pytest.mark.fuzz
@pytest.mark.parametrize("name", drawn(sorted(PROGRAMS), 5))
def test_a_program_of_a_page_prints_what_the_oracle_prints(name):
    found = list(differences(PROGRAMS[name]))
    assert bool(found) == (name in DELIBERATE), "\n\n".join(map(str, found))


def test_each_deliberate_difference_is_one():
    print(f"{len(PROGRAMS)} programs, {sum(map(len, PROGRAMS.values()))} inputs")
    assert {*DELIBERATE} <= {*PROGRAMS} and len(PROGRAMS) >= 29
