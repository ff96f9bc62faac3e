"""The recipes of the documentation in several processes; in one process the pages are run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nets.cells import IN_FULL

PAGES = Path(__file__).parents[2] / "docs" / "recipes"
RECIPES = sorted({page.stem for page in PAGES.glob("*.md")} - {"about"})


def program(name):
    """Return the program of a page, for processes that find each other."""
    text = (PAGES / f"{name}.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    start = "import xstack\n\nxstack.distributed.initialize()\n"
    end = "print(xstack.process_count(), xstack.device_count())\n"
    return "\n\n".join([start, *blocks, end])


def test_every_recipe_asserts_what_it_exchanges_and_stands_in_the_overview():
    overview = (PAGES / "about.md").read_text()
    for name in RECIPES:
        assert "assert" in program(name) and "report.collectives" in program(name), name
        assert f"({name}.md)" in overview, name
    assert len(RECIPES) == 7


@pytest.mark.fuzz
@pytest.mark.skipif(not IN_FULL, reason="each starts four processes: some seconds")
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_runs_in_four_processes(name, tmp_path):
    script = tmp_path / f"{name}.py"
    script.write_text(program(name))
    done = subprocess.run(
        [sys.executable, "-m", "xpar", "launch", "-n", "4", "--devices", "2", str(script)],
        check=False, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    # notices of a busy machine, that something takes long, stand between, and end in an empty line
    printed = [line for line in done.stdout.splitlines() if line.endswith(" 4 8")]
    assert sorted(printed) == [f"[{i}] 4 8" for i in range(4)]
