"""Fill the generated parts of the pages, so that the reference cannot fall behind the packages.

A comment in a Markdown page is replaced by Markdown before the page is parsed:

- `<!-- overview-of: namespace -->`: a table of the modules of `xstack` (or of the `packages`), with
  links to the pages of the reference.
- `<!-- names-of: namespace -->`: each name of its modules (or of `xad.sparse xpar.inputs`), by
  subject, with its one line.
- `<!-- pages-of: namespace -->`: those pages, as lines of a toctree.
- `<!-- modules-of: xad xbatch -->`: a section for each package: its modules, each with the first
  sentence of its docstring, and a mark when it is public.
- `<!-- output-of: xprim --kind jvp -->`: what `python -m xprim --kind jvp` prints.
- `<!-- markdown-of: tools/compatibility.py -->`: what that program of the repository prints, which
  is Markdown.
"""

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import reference_index
import reference_pages

_ROOT = Path(__file__).resolve().parents[2]
_PART = re.compile(
    r"^<!-- (overview-of|names-of|pages-of|modules-of|output-of|markdown-of): (.+?) -->$",
    re.MULTILINE,
)
_MARKUP = re.compile(r"(?<!\\)[|*]|(?<=\w)_(?!\w)")


def modules_of(packages: str) -> str:
    """Return a table for each package: its modules in one sentence each."""
    sections = []
    for package in packages.split():
        rows = [f"## `{package}`\n", "| module | public | what it is |", "|---|---|---|"]
        for module, path in reference_index.modules(package):
            mark = "x" if reference_index.is_public(module, path) else ""
            rows.append(f"| `{module}` | {mark} | {first_sentence(path.read_text())} |")
        sections.append("\n".join(rows))
    return "\n\n".join(sections)


def first_sentence(source: str) -> str:
    """Return the first line of a module's docstring, as a cell of a table."""
    text = ast.get_docstring(ast.parse(source)) or ""
    return text.partition("\n")[0].replace("|", "\\|")


def output_of(command: str) -> str:
    """Return what `python -m COMMAND` prints, as a block."""
    return f"```text\n{_printed_by('-m', *shlex.split(command))}\n```"


def markdown_of(program: str) -> str:
    """Return the Markdown that a program of the repository prints."""
    path, *arguments = shlex.split(program)
    return _printed_by(str(_ROOT / path), *arguments)


def _printed_by(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"python {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout.rstrip()


MAKER_BY_PART: dict[str, Callable[[str], str]] = {
    "modules-of": modules_of,
    "overview-of": reference_pages.overview_of,
    "names-of": reference_pages.names_of,
    "pages-of": reference_pages.toctree_of,
    "output-of": output_of,
    "markdown-of": markdown_of,
}


def fill_page(app: object, docname: str, source: list[str]) -> None:
    """Replace the comments of a page by what they ask for (Sphinx's `source-read` event)."""
    del app, docname
    source[0] = _PART.sub(lambda found: MAKER_BY_PART[found[1]](found[2]), source[0])


def escape_text(
    app: object, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Keep `|x|`, `a * b` and `int_x` in docstrings from being read as markup.

    Docstrings are text with code in backticks; examples, from a prompt to the next empty line, stay
    as they are. (Sphinx's `autodoc-process-docstring` event.)
    """
    del app, what, name, obj, options
    in_example = False
    for i, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if not in_example:
            outside = line.split("`")
            outside[::2] = [_MARKUP.sub(r"\\\g<0>", part) for part in outside[::2]]
            lines[i] = "`".join(outside)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", fill_page)
    app.connect("autodoc-process-docstring", escape_text)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
