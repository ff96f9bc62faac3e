"""Programs over eight devices print here what they print with JAX, where it is installed."""

import functools
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.composition.programs_of_placements import PROGRAMS, errors_of, library, lines_of

ROOT = Path(__file__).resolve().parents[2]
OF_NEWER_ORACLES = ("meshes_that_are_explicit_or_manual",)


@functools.cache
def printed_by_the_oracle():
    """Return what JAX prints, in a process of its own, since devices are made once in each."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    found = subprocess.run(
        [sys.executable, "-m", "tests.composition.programs_of_placements", "jax"],
        cwd=ROOT, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-2000:]
    return json.loads(found.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_it_prints_with_jax(name):
    ns = library("xstack")
    ns.sharding_errors = errors_of("xstack")
    printed = printed_by_the_oracle()[name]
    if name in OF_NEWER_ORACLES and str(printed).startswith("AttributeError"):
        pytest.skip("the oracle is too old for it")
    assert lines_of(PROGRAMS[name], ns) == printed
