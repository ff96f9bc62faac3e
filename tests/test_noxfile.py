"""What the file of sessions says to who cannot run them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

NOXFILE = Path(__file__).resolve().parents[1] / "noxfile.py"


def test_an_older_python_gets_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "tomllib", None)  # as on Python 3.10, which has none
    with pytest.raises(SystemExit) as e:
        exec(compile(NOXFILE.read_text(), str(NOXFILE), "exec"), {"__file__": str(NOXFILE)})
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    said = str(e.value)
    assert said.startswith("xstack needs Python 3.11 or newer, and nox runs here on Python ")
    assert version in said and "\n" not in said
