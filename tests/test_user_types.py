"""What `tools/user_types.py` hands to the type checkers, which `nox -s types` runs."""

from __future__ import annotations

import subprocess

import pytest

from tools import user_types

PAGE = """A page.

```python
>>> x = 1
>>> for i in range(2):
...     x += i
3
>>> x[0] = 2
Traceback (most recent call last):
TypeError: no
>>> with open("no file"):
...     x = 2
Traceback (most recent call last):
FileNotFoundError: no
```

```text
no program
```

```python
y = 2
```
"""


def test_the_programs_of_a_page_stay_on_their_lines_without_outputs_and_wrong_statements():
    lines = user_types.programs_of(PAGE).split("\n")
    assert lines[3:8] == ["x = 1", "for i in range(2):", "    x += i", "", ""]
    assert lines[21] == "y = 2"
    assert {*lines} == {"", "x = 1", "for i in range(2):", "    x += i", "y = 2"}


def test_the_tutorials_have_programs():
    pages = sorted((user_types.ROOT / "docs" / "tutorials").glob("x*.md"))
    assert len(pages) >= 9
    for page in pages:
        compile(user_types.programs_of(page.read_text()), page.name, "exec")


def test_every_refused_line_is_asked_of_both_checkers(tmp_path, monkeypatch):
    program = tmp_path / "program.py"
    program.write_text("a = 1\nb  # refused\nc  # refused\n")
    assert user_types.refused_lines(program) == {("program.py", 2), ("program.py", 3)}
    monkeypatch.setattr(user_types, "by_mypy", lambda folder: {("program.py", 2)})
    monkeypatch.setattr(user_types, "by_pyright", lambda folder: {("program.py", 1)})
    monkeypatch.setattr(user_types, "_said", {("pyright", "program.py", 1): "no such name"})
    refused = user_types.refused_lines(program)
    assert list(user_types.problems(tmp_path, refused)) == [
        "program.py:3: mypy does not refuse this line",
        "program.py:2: pyright does not refuse this line",
        "program.py:3: pyright does not refuse this line",
        "program.py:1: pyright refuses it: no such name",
    ]


def test_a_checker_that_fails_is_an_error_and_not_a_program_without_errors(tmp_path, monkeypatch):
    def fails(*args: object, **kwargs: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 2, "", "no such option")

    monkeypatch.setattr(subprocess, "run", fails)
    with pytest.raises(RuntimeError, match="mypy failed:\nno such option"):
        user_types.by_mypy(tmp_path)
