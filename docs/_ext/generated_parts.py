"""Fill the generated parts of the pages, so that the reference cannot fall behind the packages.

A comment in a Markdown page is replaced by Markdown before the page is parsed:

- `<!-- reference-of: xad -->`: a section with the public names of the package and of each public
  module below it. A module is public when it declares `__all__`, or its names in a block
  `with namespace(globals()):`, and no part of its name begins with an underscore.
- `<!-- modules-of: xad xbatch -->`: a section for each package: its modules, each with the first
  sentence of its docstring, and a mark when it is public.
- `<!-- namespace-of: xstack -->`: a table of the names that a re-exporting package shows, with
  their homes.
- `<!-- output-of: xprim --kind jvp -->`: what `python -m xprim --kind jvp` prints.
- `<!-- markdown-of: tools/compatibility.py -->`: what that program of the repository prints, which
  is Markdown.
"""

import ast
import importlib
import importlib.util
import inspect
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_PART = re.compile(
    r"^<!-- (reference-of|modules-of|namespace-of|output-of|markdown-of): (.+?) -->$", re.MULTILINE
)
_DECLARES_ALL = re.compile(r"^(?:    )?__all__\b|^with namespace\(", re.MULTILINE)


def reference_of(package: str) -> str:
    """Return the sections of a package's public modules, the package's own first.

    Each object is described once, under the first module that shows it, and named in the others;
    what comes from another package is named with its home.
    """
    modules = list(public_modules(package))
    if not modules:
        raise LookupError(f"{package} declares no public names: it has no __all__")
    described: dict[int, str] = {}
    sections = [_section(package, module, described) for module in modules]
    return "\n".join(section for section in sections if section)


def modules_of(packages: str) -> str:
    """Return a table for each package: its modules in one sentence each."""
    sections = []
    for package in packages.split():
        rows = [f"## `{package}`\n", "| module | public | what it is |", "|---|---|---|"]
        for module, path in _modules(package):
            mark = "x" if _is_public(module, path) else ""
            rows.append(f"| `{module}` | {mark} | {first_sentence(path.read_text())} |")
        sections.append("\n".join(rows))
    return "\n\n".join(sections)


def first_sentence(source: str) -> str:
    """Return the first line of a module's docstring, as a cell of a table."""
    text = ast.get_docstring(ast.parse(source)) or ""
    return text.partition("\n")[0].replace("|", "\\|")


def public_modules(package: str) -> Iterator[str]:
    """Yield the dotted names of the public modules of a package."""
    for module, path in _modules(package):
        if _is_public(module, path):
            yield module


def _modules(package: str) -> Iterator[tuple[str, Path]]:
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).rglob("*.py"), key=lambda p: p.with_suffix("").parts):
            parts = [package, *path.relative_to(folder).with_suffix("").parts]
            if parts[-1] == "__init__":
                parts.pop()
            yield ".".join(parts), path


def _is_public(module: str, path: Path) -> bool:
    is_private = any(part.startswith("_") for part in module.split("."))
    return not is_private and _DECLARES_ALL.search(path.read_text()) is not None


def namespace_of(package: str) -> str:
    """Return a table of the names of a re-exporting package, with their homes."""
    module = importlib.import_module(package)
    rows = [f"| `{package}.{name}` | {_home(getattr(module, name))} |" for name in module.__all__]
    return "\n".join(["| name | is |", "|---|---|", *rows])


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
    "reference-of": reference_of,
    "modules-of": modules_of,
    "namespace-of": namespace_of,
    "output-of": output_of,
    "markdown-of": markdown_of,
}


def fill_page(app: object, docname: str, source: list[str]) -> None:
    """Replace the comments of a page by what they ask for (Sphinx's `source-read` event)."""
    del app, docname
    source[0] = _PART.sub(lambda found: MAKER_BY_PART[found[1]](found[2]), source[0])


def escape_bars(
    app: object, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Keep `|x|` in docstrings from being read as a substitution (`autodoc-process-docstring`)."""
    del app, what, name, obj, options
    for i, line in enumerate(lines):
        outside = line.split("`")
        outside[::2] = [part.replace("|", "\\|") for part in outside[::2]]
        lines[i] = "`".join(outside)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", fill_page)
    app.connect("autodoc-process-docstring", escape_bars)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def names_in(reference: str) -> set[str]:
    """Return the dotted names that a reference, as `reference_of` writes it, shows."""
    described = re.findall(r"^\.\. auto(?:class|function):: (\S+)$", reference, re.MULTILINE)
    mentioned = re.findall(r"`([\w.]+)` \((?:a|from|see) ", reference)
    return {*described, *mentioned}


def _section(package: str, name: str, described: dict[int, str]) -> str:
    module = importlib.import_module(name)
    directives, elsewhere = [], []
    for member in module.__all__:
        value = getattr(module, member)
        whole = f"{name}.{member}"
        home = getattr(value, "__module__", None) or ""
        is_class = inspect.isclass(value)
        if not (is_class or inspect.isroutine(value)):
            elsewhere.append(f"`{whole}` (a {_kind_of(value)})")
        elif id(value) in described:
            elsewhere.append(f"`{whole}` (see `{described[id(value)]}`)")
        elif home.partition(".")[0] != package:
            elsewhere.append(f"`{whole}` (from `{home}`)")
        else:
            described[id(value)] = whole
            kind = "autoclass" if is_class else "autofunction"
            options = "   :members:\n   :show-inheritance:\n" if is_class else ""
            directives.append(f".. {kind}:: {whole}\n{options}")
    if not directives and not elsewhere:
        return ""
    summary = inspect.getdoc(module) or ""
    parts = [f"## `{name}`", f"```text\n{summary}\n```"]
    if directives:
        parts.append("```{eval-rst}\n" + "\n".join(directives) + "```")
    if elsewhere:
        parts.append("Also: " + ", ".join(elsewhere) + ".")
    return "\n\n".join(parts) + "\n"


def _kind_of(value: object) -> str:
    if inspect.ismodule(value):
        return f"module `{value.__name__}`"
    return f"`{type(value).__name__}`"


def _home(value: object) -> str:
    if inspect.ismodule(value):
        return f"the module `{value.__name__}`"
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    return f"`{module}.{name}`" if module and name else f"a `{type(value).__name__}`"
