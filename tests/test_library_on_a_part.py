"""The library of the page for authors of libraries, on nothing but what its manifest names."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.layers import FLOOR_BY_PACKAGE

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "explain" / "a_library_on_a_part.md").read_text()


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The folder of the library, each block of the page in the file that is named above it."""
    folder = tmp_path_factory.mktemp("descend")
    files = re.findall(r"^`([\w/.]+)`:\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for name, text in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert len(files) == 3
    return folder


def packages_of(manifest):
    """Return the packages of the family that a manifest needs, with those that these need."""
    named = re.findall(r"xstack-(\w+)", " ".join(manifest["project"]["dependencies"]))
    found = set(named)
    for name in named:
        text = (ROOT / "packages" / name / "pyproject.toml").read_text()
        found |= set(re.findall(r'"xstack-(\w+)', text)) & set(FLOOR_BY_PACKAGE)
    return found


def test_it_runs_with_the_packages_of_its_manifest_and_passes_its_test(library):
    manifest = tomllib.loads((library / "pyproject.toml").read_text())
    packages = packages_of(manifest)
    assert packages == {"xtree", "xprim", "xnp", "xad"}
    imported = (library / "src" / "descend" / "__init__.py").read_text()
    assert set(re.findall(r"^(?:import|from) (x\w+)", imported, re.MULTILINE)) <= packages
    code = (
        "import importlib.util, sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name in {sorted({*FLOOR_BY_PACKAGE, 'jaxlib'} - packages)!r}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from descend import minimize\n"
        "import xnp, xtree\n" + (library / "tests" / "test_descend.py").read_text()
    )
    paths = [ROOT / "packages" / p / "src" for p in packages] + [library / "src"]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=library,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
