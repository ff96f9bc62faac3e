"""Where the reference describes what: each public object once, under the path people use.

The modules of the namespace come first (`xstack`, `xstack.numpy`, ...), with their names grouped as
the overview in the module's docstring says; then the packages, with what the namespace does not
show. An object is described under the first path that leads to it; every other path is an alias.

Run `python docs/_ext/reference_index.py` to list the names that no group has.
"""

import ast
import functools
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.layers import FLOOR_BY_PACKAGE  # noqa: E402 - the pages are built from elsewhere

NAMESPACE = "xstack"
MORE = "More"
_GROUPED = (
    "xstack", "xstack.numpy", "xstack.numpy.linalg", "xstack.lax", "xstack.random", "xstack.nn"
)  # fmt: skip
_TITLE = re.compile(r"([A-Z][\w ,]*): ")
PRIMITIVES = "Primitives"
_DECLARES_ALL = re.compile(r"^(?:    )?__all__\b(?! = \(\)$)|^with namespace\(", re.MULTILINE)
# In the order in which a reader looks for them; others follow.
_SYMBOLS = {"ScalarType", "Primitive", "Option"}  # objects that are called, and yet no functions
_FIRST = ("", "numpy", "lax", "random", "nn", "tree", "scipy")


@dataclass(frozen=True, slots=True)
class Entry:
    """A name of a public module: the path, its value, and the path that describes the value."""

    module: str
    name: str
    value: Any
    described_as: str
    is_described_here: bool

    @property
    def path(self) -> str:
        """The dotted path."""
        return f"{self.module}.{self.name}"

    @property
    def kind(self) -> str:
        """How it is described: `class`, `function`, `data` or `module`."""
        if inspect.ismodule(self.value):
            return "module"
        if not is_ours(self.value):
            return "data"
        if inspect.isclass(self.value):
            return "class"
        is_function = inspect.isroutine(self.value) or _is_like_a_function(self.value)
        return "function" if is_function else "data"


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the reference: some names of one module."""

    module: str
    title: str
    entries: list[Entry]
    subpages: list[str] = field(default_factory=list)
    modules_below: list["Page"] = field(default_factory=list)

    @property
    def describes(self) -> list[Entry]:
        """Return the entries that are described on this page."""
        return [entry for entry in self.entries if entry.is_described_here]

    @property
    def file(self) -> str:
        """The name of the page's file, without its ending."""
        if self.title == self.module:
            return self.module
        return f"{self.module}.{re.sub('[^a-z0-9]+', '-', self.title.lower())}"


@functools.cache
def pages() -> list[Page]:
    """Return all pages: those of the namespace, then those of each package.

    An object of a package is described on the page of the submodule that lists it, under the path
    of the package if that has the name, too.
    """
    finder = _Finder()
    found: list[Page] = []
    for module in namespace_modules():
        found += finder.pages_of(module)
    for package in FLOOR_BY_PACKAGE:
        if package == NAMESPACE:
            continue
        finder.see(package)
        below = [m for m in public_modules(package) if m != package]
        subpages = [page for module in below for page in finder.pages_of(module)]
        (first,) = finder.pages_of(package)
        described = [page for page in subpages if page.describes]
        names = [page.file for page in described]
        found += [Page(package, package, first.entries, names, subpages), *described]
    return found


def namespace_modules() -> list[str]:
    """Return the public modules of the namespace, the best known first."""

    def place(module: str) -> tuple[int, str]:
        first = module.removeprefix(NAMESPACE).strip(".").partition(".")[0]
        return (_FIRST.index(first) if first in _FIRST else len(_FIRST), module)

    below = [
        m for m, _ in modules(NAMESPACE) if not m.startswith(f"{NAMESPACE}.demo") and "._" not in m
    ]
    return sorted(
        (m for m in below if getattr(importlib.import_module(m), "__all__", ())), key=place
    )


def public_modules(package: str) -> Iterator[str]:
    """Yield the dotted names of the public modules of a package: those that list their names."""
    for module, path in modules(package):
        if is_public(module, path):
            yield module


def modules(package: str) -> Iterator[tuple[str, Path]]:
    """Yield every module of a package, with its file."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).rglob("*.py"), key=lambda p: p.with_suffix("").parts):
            parts = [package, *path.relative_to(folder).with_suffix("").parts]
            if parts[-1] == "__init__":
                parts.pop()
            yield ".".join(parts), path


def is_public(module: str, path: Path) -> bool:
    """Say whether a module is public: no part of its name is private, and it lists its names."""
    is_private = any(part.startswith("_") for part in module.split("."))
    return not is_private and _DECLARES_ALL.search(_source(path)) is not None


@functools.cache
def groups() -> dict[str, dict[str, list[str]]]:
    """Return the groups of each module that has an overview: names by title."""
    return {module: overview(module) for module in _GROUPED}


def overview(module: str) -> dict[str, list[str]]:
    """Return what the paragraphs `Title: name, name, ...` of a docstring list, by title."""
    found: dict[str, list[str]] = {}
    seen: set[str] = set()
    for paragraph in (inspect.getdoc(importlib.import_module(module)) or "").split("\n\n"):
        names = [n for n in names_listed(module, paragraph) if not _is_module(module, n)]
        title = paragraph.partition(": ")[0]
        if names:
            found.setdefault(title, []).extend([name for name in names if name not in seen])
            seen.update(names)
    return found


def names_listed(module: str, paragraph: str) -> list[str]:
    """Return the public names that a paragraph `Title: name, name, ...` has; none of prose."""
    title = _TITLE.match(paragraph)
    words = re.findall(r"\w+", paragraph[title.end() :]) if title else []
    public = set(importlib.import_module(module).__all__)
    names = [word for word in words if word in public]
    return names if 2 * len(names) > len(words) else []


def grouped(module: str, names: list[str]) -> dict[str, list[str]]:
    """Return the names of a module by the title of their page; modules among them have their own.

    Args:
        module: the dotted name.
        names: its public names.
    """
    titled = groups().get(module)
    if titled is None:
        return {module: names}
    there = set(names)
    found = {title: [n for n in listed if n in there] for title, listed in titled.items()}
    found_names = {name for listed in found.values() for name in listed}
    rest = [n for n in names if n not in found_names and not _is_module(module, n)]
    found[PRIMITIVES] = [name for name in rest if name.endswith("_p")]
    found[MORE] = [name for name in rest if not name.endswith("_p")]
    return {title: listed for title, listed in found.items() if listed}


def _is_module(module: str, name: str) -> bool:
    return inspect.ismodule(getattr(importlib.import_module(module), name, None))


def ungrouped() -> list[str]:
    """Return the paths that no group lists, of modules that have groups."""
    return [entry.path for page in pages() if page.title == MORE for entry in page.entries]


def first_line(value: Any) -> str:
    """Return the first line of the docstring of a value, or nothing where it is its class's."""
    doc = getattr(value, "doc", None) if type(value).__name__ == "Option" else None
    if doc is None and not inspect.isclass(value):
        own = getattr(value, "__doc__", None)
        doc = own if own != getattr(type(value), "__doc__", None) else None
    elif doc is None:
        doc = inspect.getdoc(value)
    return inspect.cleandoc(doc or "").partition("\n")[0]


class _Finder:
    """Finds the pages of modules, and remembers what is described already, and where."""

    def __init__(self) -> None:
        self._path_by_key: dict[tuple[int, str], str] = {}
        self._described: set[tuple[int, str]] = set()

    def see(self, module: str) -> None:
        """Prefer the paths of a module to those of modules that come later."""
        for name in importlib.import_module(module).__all__:
            self._path_of(module, name)

    def pages_of(self, module: str) -> list[Page]:
        """Return the pages of one module, its own first."""
        by_title = grouped(module, list(importlib.import_module(module).__all__))
        pages = [
            Page(module, title, [self._entry(module, name) for name in names])
            for title, names in by_title.items()
        ]
        if list(by_title) != [module]:
            pages.insert(0, Page(module, module, [], [page.file for page in pages]))
        return pages

    def _path_of(self, module: str, name: str) -> tuple[tuple[int, str], str]:
        value = getattr(importlib.import_module(module), name)
        path = f"{module}.{name}"
        is_plain = isinstance(value, str | int | float | complex | tuple | None)
        key = (id(value), path if is_plain else "")  # equal numbers may be one object by accident
        return key, self._path_by_key.setdefault(key, path)

    def _entry(self, module: str, name: str) -> Entry:
        key, path = self._path_of(module, name)
        is_described_here = key not in self._described
        self._described.add(key)
        value = getattr(importlib.import_module(module), name)
        return Entry(module, name, value, path, is_described_here)


def is_ours(value: Any) -> bool:
    """Say whether a value, or its class, comes from a package of the family."""
    home = getattr(value, "__module__", None) or type(value).__module__
    return isinstance(home, str) and home.partition(".")[0] in FLOOR_BY_PACKAGE


def _is_like_a_function(value: Any) -> bool:
    """Say whether an object is called as a function is, and describes itself as one."""
    if not callable(value) or type(value).__name__ in _SYMBOLS or not hasattr(value, "__name__"):
        return False
    return value.__doc__ != type(value).__doc__


@functools.cache
def _source(path: Path) -> str:
    return path.read_text()


def modules_that_hold(package: str, name: str, value: Any) -> list[str]:
    """Return the loaded modules of a package in which a name is a value."""
    loaded = [  # a module that moved is there under its old name, too
        (m, sys.modules[m])
        for m in sorted(sys.modules)
        if m.partition(".")[0] == package and sys.modules[m].__name__ == m
    ]
    return [m for m, module in loaded if vars(module).get(name) is value]


def text_of(module: str) -> str:
    """Return the text of a module, which is empty where it has no file."""
    try:
        return inspect.getsource(importlib.import_module(module))
    except (ImportError, OSError, TypeError):
        return ""


@functools.cache
def places_of(module: str) -> dict[str, tuple[str, int, int]]:
    """Return (what, first line, last line) of each function, class and name that a module sets."""
    found: dict[str, tuple[str, int, int]] = {}
    for prefix, node in _statements(ast.parse(text_of(module))):
        first, last = node.lineno, node.end_lineno or node.lineno
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            what = "class" if isinstance(node, ast.ClassDef) else "def"
            first = min([first, *(d.lineno for d in node.decorator_list)])
            found.setdefault(prefix + node.name, (what, first, last))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            stored = (p for p in ast.walk(node) if isinstance(p, ast.Name))
            for name in (p.id for p in stored if isinstance(p.ctx, ast.Store)):
                found.setdefault(prefix + name, ("other", first, last))
    return found


def _statements(
    holder: ast.Module | ast.ClassDef | ast.If, prefix: str = ""
) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the statements of a module and of its classes, with the dotted path that holds each."""
    for node in holder.body:
        yield prefix, node
        if isinstance(node, ast.ClassDef):
            yield from _statements(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If):
            yield from _statements(node, prefix)


if __name__ == "__main__":
    print("\n".join(ungrouped()) or "every name is in the overview of its module")
