"""The scripts of the gallery run by themselves, as a reader starts them."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
FOLDER = DOCS / "examples"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "server")


def test_there_are_twelve_and_each_fits_a_page():
    assert len(SCRIPTS) == 12
    for name in SCRIPTS:
        lines = (FOLDER / f"{name}.py").read_text().splitlines()
        code = [line for line in lines if line.strip() and not line.startswith("#")]
        assert 30 <= len(code) <= 120, (name, len(code))


@pytest.mark.sampled(every=12)
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_and_prints_what_it_found(name):
    for library in ("matplotlib", "sklearn"):
        pytest.importorskip(library)
    environment = os.environ | {"MPLBACKEND": "agg", "STEPS": "20", "PYTHONWARNINGS": "error"}
    environment.pop("XSTACK_NUM_CPU_DEVICES", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", FOLDER / f"{name}.py"],
        capture_output=True, text=True, timeout=300, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() and "nan" not in done.stdout.split()
    for found, true in re.findall(r"found ([\d.]+), true ([\d.]+)", done.stdout):
        assert float(found) == pytest.approx(float(true), rel=0.1), done.stdout
    assert "Warning" not in done.stderr and "retrace" not in done.stderr, done.stderr


def test_the_fields_of_a_page_of_the_gallery_stay_first(monkeypatch):
    # reStructuredText shows a field such as `:orphan:` as text where something stands before it
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(sys, "path", list(sys.path))
    keep_links_of_gallery = runpy.run_path(str(DOCS / "conf.py"))["keep_links_of_gallery"]
    for fields in ("", ":orphan:\n\n"):
        source = [f"{fields}Gallery\n=======\n"]
        keep_links_of_gallery(None, "gallery/index", source)
        assert source == [f"{fields}.. autolink-skip:: file\n\nGallery\n=======\n"]


def test_each_script_has_its_place_among_the_pages(monkeypatch):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(sys, "path", list(sys.path))
    place = runpy.run_path(str(DOCS / "conf.py"))["place_in_gallery"]
    assert sorted(place(f"examples/{name}.py") for name in SCRIPTS) == list(range(len(SCRIPTS)))
