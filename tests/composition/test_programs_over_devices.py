"""Programs over eight devices print here what they print with JAX.

What JAX prints is kept in a table, since its programs take it 15 seconds; `nox -s fuzz` has it
print them again. `python -m tests.composition.test_programs_over_devices` adds the version that is
installed.
"""

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.composition.programs_of_placements import PROGRAMS, errors_of, library, lines_of
from tests.nets.cells import IN_FULL

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("lines_of_placements.json")
LINES = json.loads(TABLE.read_text())
OF_NEWER_ORACLES = ("meshes_that_are_explicit_or_manual",)


def printed_by_the_oracle():
    """Return what JAX prints, in a process of its own, since devices are made once in each."""
    found = subprocess.run(
        [sys.executable, "-m", "tests.composition.programs_of_placements", "jax"],
        cwd=ROOT, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-2000:]
    return json.loads(found.stdout.splitlines()[-1])


def version():
    """Return the version of JAX whose lines are asked for, without its last part."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    return ".".join(importlib.metadata.version("jax").split(".")[:2])


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_it_prints_with_jax(name):
    if version() not in LINES:
        pytest.skip("the table has no lines of this JAX")
    ns = library("xstack")
    ns.sharding_errors = errors_of("xstack")
    printed = LINES[version()][name]
    if name in OF_NEWER_ORACLES and str(printed).startswith("AttributeError"):
        pytest.skip("the oracle is too old for it")
    assert json.loads(json.dumps(lines_of(PROGRAMS[name], ns))) == printed


@pytest.mark.fuzz
@pytest.mark.skipif(not IN_FULL, reason="FUZZ_PROGRAMS is not set")
def test_the_table_holds_what_jax_prints():
    assert printed_by_the_oracle() == LINES.get(version())


if __name__ == "__main__":
    LINES[version()] = printed_by_the_oracle()
    TABLE.write_text(json.dumps(dict(sorted(LINES.items())), indent=1) + "\n")
