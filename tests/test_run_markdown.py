"""`tools/run_markdown.py`: which blocks of a page run, and how a program of its own is run."""

from __future__ import annotations

from tools import run_markdown

PAGE = """A page.

```python
x = 1
```

<!-- not run: it is a sketch -->
```python
raise SystemExit
```

```python
>>> x + 1
2
```

<!-- run: python {name} -->
```python
print("one")
print(2.5)
```

It prints

```text
one
{printed}
```
"""


def test_blocks_run_in_one_namespace_and_programs_by_their_command(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(name="program.py", printed="2..."))
    assert run_markdown.run_page(page) == (3, 0), capsys.readouterr().out


def test_a_program_that_prints_something_else_has_failed(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(name="program.py", printed="3.5"))
    assert run_markdown.run_page(page) == (3, 1)
    said = capsys.readouterr().out
    assert "page.md:19: python program.py ended with 0, and printed\none\n2.5\n" in said
    assert said.endswith("instead of\none\n3.5\n\n")


def test_a_program_that_fails_has_failed(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- run: python p.py -->\n```python\n1 / 0\n```\n")
    assert run_markdown.run_page(page) == (1, 1)
    assert "ZeroDivisionError" in capsys.readouterr().out


def test_a_block_that_fails_is_named_with_its_line_of_the_page(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```python\n\n1 / 0\n```\n")
    assert run_markdown.run_page(page) == (2, 1)
    assert "page.md:6: this block failed" in capsys.readouterr().out
