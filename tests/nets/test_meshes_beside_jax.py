"""The page "Meshes beside JAX": each statement is seen in both libraries, and its figures hold."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import xstack
import xstack.numpy
from tests.nets.mesh_programs import ALIKE, INTERNALS, PROGRAMS, are_alike, seen as programs_seen
from tests.nets.mesh_statements import CAUSES, DIFFERENT, MENDED, STATEMENTS
from tests.nets.test_coming_from_jax import seen

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/design/meshes_beside_jax.md"
SHARE = 92  # percent of what is neither text nor internals of JAX, from issue 31


def shown(program, library):
    """Return what is seen of a program; its own errors are the library's, not the table's."""
    return seen(program, library)


@pytest.mark.parametrize("row", DIFFERENT, ids=lambda row: row.name)
def test_a_statement_gives_here_what_the_table_says(row):
    assert shown(row.program, xstack) == repr(row.ours)


@pytest.mark.parametrize("row", DIFFERENT, ids=lambda row: row.name)
def test_the_oracle_gives_what_the_table_says_of_it(row):
    jax = pytest.importorskip("jax", "0.12")
    pytest.importorskip("jax.experimental.multihost_utils")
    assert shown(row.program, jax) == repr(row.theirs)
    assert repr(row.theirs) != repr(row.ours)


@pytest.mark.parametrize(("name", "program", "both"), MENDED, ids=[name for name, *_ in MENDED])
def test_what_was_a_difference_is_none(name, program, both):
    assert shown(program, xstack) == repr(both)


@pytest.mark.parametrize(("name", "program", "both"), MENDED, ids=[name for name, *_ in MENDED])
def test_the_oracle_gives_the_same_as_what_was_mended(name, program, both):
    jax = pytest.importorskip("jax", "0.12")
    pytest.importorskip("jax.experimental.multihost_utils")
    assert shown(program, jax) == repr(both)


def test_the_page_has_the_figures_of_the_table():
    text = PAGE.read_text(encoding="utf-8")
    count = Counter(row.cause for row in DIFFERENT)
    for cause, title in CAUSES.items():
        assert f"## {title} ({count[cause]})" in text
    internals = sum(row.shows_internals for row in DIFFERENT)
    behaviour = STATEMENTS - internals
    same = STATEMENTS - len(DIFFERENT)
    assert f"{STATEMENTS:,} statements" in text and f"{same} give the same" in text
    share = 100 * same / behaviour
    assert f"{same} of {behaviour:,}, {share:.1f}%" in re.sub(r"\s+", " ", text)
    assert share >= SHARE


@pytest.mark.sampled(every=20, per="section")
@pytest.mark.parametrize(
    ("section", "source"),
    [(section, source) for section, sources in PROGRAMS.items() for source in sources],
)
def test_a_program_compares_as_its_section_says(section, source):
    jax = pytest.importorskip("jax", "0.12")
    for name in ("layout", "multihost_utils"):
        pytest.importorskip(f"jax.experimental.{name}")
    theirs, ours = programs_seen(source, jax), programs_seen(source, xstack)
    assert are_alike(theirs, ours) == (section == ALIKE), (theirs, ours)


def test_the_page_has_the_figures_of_the_programs():
    text = PAGE.read_text(encoding="utf-8")
    assert len(PROGRAMS) == 6
    count = sum(map(len, PROGRAMS.values()))
    assert len({source for sources in PROGRAMS.values() for source in sources}) == count
    same, behaviour = len(PROGRAMS[ALIKE]), count - len(PROGRAMS[INTERNALS])
    share = 100 * same / behaviour
    assert f"{same} of {behaviour}, {share:.1f}%" in text and f"{count} programs" in text
    assert share > SHARE
    for section, sources in PROGRAMS.items():
        assert section == ALIKE or f"{section} ({len(sources)})" in text, section
