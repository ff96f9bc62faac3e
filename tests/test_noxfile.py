"""What the file of sessions says to who cannot run them."""

from __future__ import annotations

import functools
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.layers import FLOOR_BY_PACKAGE

ROOT = Path(__file__).resolve().parents[1]
NOXFILE = ROOT / "noxfile.py"


def test_an_older_python_gets_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "tomllib", None)  # as on Python 3.10, which has none
    with pytest.raises(SystemExit) as e:
        exec(compile(NOXFILE.read_text(), str(NOXFILE), "exec"), {"__file__": str(NOXFILE)})
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    said = str(e.value)
    assert said.startswith("xstack needs Python 3.11 or newer, and nox runs here on Python ")
    assert version in said and "\n" not in said


@pytest.mark.parametrize("package", FLOOR_BY_PACKAGE)
def test_the_readme_of_a_package_says_which_folders_to_install(package):
    """They are the package's and its siblings': nothing of ours is looked up in an index."""
    readme = (ROOT / "packages" / package / "README.md").read_text()
    (line,) = re.findall(r"^python3 -m pip install (.*)$", readme, re.MULTILINE)
    manifest = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text())
    needed = re.findall(r"xstack-(\w+)", " ".join(manifest["project"]["dependencies"]))
    folders = [f"./packages/{p}" for p in FLOOR_BY_PACKAGE if p in {*needed, package}]
    whole = "./packages/*" if len(folders) == len(FLOOR_BY_PACKAGE) else " ".join(folders)
    assert line == whole


def test_a_machine_without_uv_is_not_told_so_in_each_session(tmp_path):
    pytest.importorskip("nox")
    code = (
        "import logging, runpy, sys\n"
        f"runpy.run_path({str(NOXFILE)!r})\n"
        "logger = logging.getLogger('nox')\n"
        "logger.addHandler(logging.StreamHandler(sys.stdout))\n"
        "logger.warning('uv binary not found.')\n"
        "logger.warning('something else')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == "something else\n"


class RecordingSession:
    """What a session is asked to install and to run, with nothing done."""

    posargs: tuple[str, ...] = ()

    def __init__(self):
        self.env, self.installed, self.commands = {}, set(), []

    def install(self, *arguments):
        self.installed |= {a for a in arguments if not a.startswith("-")}

    def run(self, *arguments, **_):
        self.commands.append(" ".join(map(str, arguments)))

    def create_tmp(self):
        return "temporary"

    def log(self, *_):
        """Say nothing."""


@functools.cache
def noxfile() -> dict:
    pytest.importorskip("nox")
    return runpy.run_path(str(NOXFILE))  # once: nox warns where a session is registered twice


def record(name: str) -> RecordingSession:
    """Return what the session asks for."""
    session = RecordingSession()
    noxfile()[name].func(session)
    return session


@pytest.mark.parametrize("name", ["tests", "docs", "coverage", "fuzz"])
def test_sessions_that_run_examples_or_tests_install_what_these_import(name):
    """A library that happens to be installed hides one that a session forgets."""
    session = record(name)
    optional = {
        requirement
        for path in (ROOT / "packages").glob("*/pyproject.toml")
        for extra, requirements in tomllib.loads(path.read_text())["project"]
        .get("optional-dependencies", {})
        .items()
        if not extra.startswith(("cuda", "rocm", "triton"))  # of a kind of machine
        for requirement in requirements
        if not requirement.startswith("xstack")
    }
    assert optional  # scikit-learn, matplotlib, rich, safetensors
    assert optional <= session.installed
    assert any("pytest" in command for command in session.commands)


def test_every_library_that_is_imported_when_needed_is_an_extra_of_its_package():
    distribution = {"sklearn": "scikit-learn"}
    seen = set()
    for path in (ROOT / "packages").glob("*/src/**/*.py"):
        late = re.findall(r'late_import\(\s*"(\w+)', path.read_text())
        for imported in {*late} - {*FLOOR_BY_PACKAGE} - sys.stdlib_module_names:
            package = path.relative_to(ROOT / "packages").parts[0]
            manifest = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text())
            project = manifest["project"]
            optional = project.get("optional-dependencies", {}).values()
            extras = [r for extra in optional for r in extra]
            declared = " ".join([*project["dependencies"], *extras])
            if path.is_relative_to(ROOT / "packages/xtree"):
                continue  # the examples of `late_import` itself
            name = distribution.get(imported, imported)
            seen.add(imported)
            assert re.search(rf"\b{name}\b", declared), (path, imported)
    assert {"rich", "safetensors", "sklearn"} <= seen
