"""Write the pages of the reference into `docs/reference/api/`, before Sphinx looks for pages.

`reference_index` says what is on which page; here is how it looks: a table of the page's names with
a sentence each, then every object with its parameters. Other paths that lead to an object become
names of the same place, so that they are found, too.
"""

import functools
import importlib
import inspect
import re
import sys
from typing import Any

import reference_index as index
from reference_index import Entry, Page

FOLDER = index.ROOT / "docs" / "reference" / "api"
MANY = 200  # names of a page, from which on they are listed by the pages that describe them
_TITLES = ("| module | what it is | names |", "|---|---|---|")
_TITLES_WITHOUT_NAMES = ("| module | what it is |", "|---|---|")
_DIRECTIVE = {"class": "autoclass", "function": "autofunction"}


def write_pages(app: object) -> None:
    """Write every page that is not there as it should be, and remove the others."""
    del app
    FOLDER.mkdir(exist_ok=True)
    text_by_name = {f"{page.file}.md": page_text(page) for page in index.pages()}
    for path in FOLDER.glob("*.md"):
        if path.name not in text_by_name:
            path.unlink()
    for name, text in text_by_name.items():
        path = FOLDER / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def page_text(page: Page) -> str:
    """Return the Markdown of a page."""
    is_own_page = page.title == page.module
    parts = [f"# `{page.title}`" if is_own_page else f"# {page.title}"]
    if is_own_page:
        parts.append(f"```{{py:module}} {page.module}\n```")
        parts.append(_prose(page.module))
    else:
        parts.append(f"In {{py:mod}}`{page.module}`.")
    parts += _names(page) if is_own_page else [table_of_names(page.entries)]
    if page.modules_below:
        parts.append(_table_of_modules(page))
    elif page.subpages:
        parts.append(list_of_pages(page.module))
    if page.subpages:
        parts.append("\n".join(["```{toctree}", ":hidden:\n", *page.subpages, "```"]))
    parts.append(_descriptions(page))
    return "\n\n".join(part for part in parts if part) + "\n"


def _names(page: Page) -> list[str]:
    """Return the names of a module: in a table, or where they are many by what they are about."""
    entries = _as_introduced(page)
    if len(entries) < MANY:
        return [table_of_names(entries)]
    elsewhere = [e for e in entries if e.kind != "module" and not e.is_described_here]
    found: dict[str, list[Entry]] = {}
    for entry in elsewhere:
        found.setdefault(entry.described_as, []).append(entry)
    groups = [
        (below, [e for it in below.describes for e in found.get(it.described_as, ())])
        for below in index.pages()
    ]
    listed = [
        f"[{below.title}]({below.file}.md)\n: {' '.join(map(_link, some))}"
        for below, some in groups
        if some
    ]
    return [table_of_names([e for e in entries if e not in elsewhere]), "\n\n".join(listed)]


def table_of_names(entries: list[Entry]) -> str:
    """Return a table of names, each with the first line of its docstring."""
    if not entries:
        return ""
    rows = [f"| {_link(entry)} | {_summary(entry)} |" for entry in entries]
    return "\n".join(["| | |", "|---|---|", *rows])


def list_of_pages(module: str) -> str:
    """Return the pages of a module, each with the names that are on it."""
    found = []
    for page in index.pages():
        if page.module == module and page.title != module:
            names = " ".join(_link(entry) for entry in page.entries)
            found.append(f"[{page.title}]({page.file}.md)\n: {names}")
    return "\n\n".join(found)


def toctree_of(which: str) -> str:
    """Return the pages of the `namespace`, or of the `packages`, as lines of a toctree."""
    if which == "packages":
        return "\n".join(f"reference/api/{p}" for p in index.FLOOR_BY_PACKAGE if p != "xstack")
    return "\n".join(f"reference/api/{module}" for module in index.namespace_modules())


def overview_of(which: str) -> str:
    """Return the modules of the namespace with their groups, or the packages, with a sentence."""
    names = index.namespace_modules() if which == "namespace" else list(index.FLOOR_BY_PACKAGE)
    rows = ["| | |", "|---|---|"]
    for name in names:
        if which == "packages" and name == index.NAMESPACE:
            continue
        below = [p for p in index.pages() if p.module == name and p.title != name]
        links = ", ".join(f"[{p.title.lower()}](api/{p.file}.md)" for p in below)
        sentence = _cell((importlib.import_module(name).__doc__ or "").partition("\n")[0])
        rows.append(f"| {{py:mod}}`{name}` | {sentence}{'<br>' + links if links else ''} |")
    return "\n".join(rows)


def names_of(which: str) -> str:
    """Return a section for each module of the `namespace`, or each that is named.

    A section has the names by subject, with one line for each.
    """
    parts = []
    for module in index.namespace_modules() if which == "namespace" else which.split():
        tables = [
            f"### {page.title} ({module})\n\n{table}" if page.title != module else table
            for page in index.pages()
            if page.module == module and (table := table_of_names(page.entries))
        ]
        if tables:
            parts += [f"## `{module}`", *tables]
    return "\n\n".join(parts)


def names_in(text: str) -> set[str]:
    """Return the dotted names that a page describes."""
    directives = (
        r"(?m)^\.\. (?:autoclass|autofunction|py:data|py:module):: (.+(?:\n   [\w.]+$)*)"
        r"(?:\n   :module: (\S+))?"
    )
    return {
        f"{holder}.{name}" if holder else name
        for names, holder in re.findall(directives, text)
        for name in names.split()
    }


def _as_introduced(page: Page) -> list[Entry]:
    """Return the entries of a page: first those that the module's docstring names, in its order."""
    words = re.findall(r"\w+", inspect.getdoc(importlib.import_module(page.module)) or "")
    place = {word: i for i, word in reversed([*enumerate(words)])}
    return sorted(page.entries, key=lambda entry: place.get(entry.name, len(words)))


def _link(entry: Entry) -> str:
    if entry.kind == "module":
        return f"{{py:mod}}`{entry.name} <{entry.value.__name__}>`"
    return f"{{py:obj}}`{entry.name} <{entry.described_as}>`"


def _summary(entry: Entry) -> str:
    if entry.path != entry.described_as and entry.described_as.startswith(f"{entry.module}."):
        return f"The same as `{entry.described_as.rpartition('.')[2]}`."
    return _cell(index.first_line(entry.value)) or _cell(_kind_of(entry.value))


def _cell(text: str) -> str:
    """Return text as Markdown that may stand in a table; code in it is left as it is."""
    parts = text.replace("|", "\\|").split("`")
    parts[::2] = [part.replace("*", "\\*") for part in parts[::2]]
    return "`".join(parts)


def _kind_of(value: Any) -> str:
    if isinstance(value, bool | int | float | complex | str | None):
        return f"`{value!r}`"
    kind = type(value)
    if kind.__module__.partition(".")[0] in index.FLOOR_BY_PACKAGE:
        is_public = not kind.__name__.startswith("_")
        return f"A `{kind.__name__}`." if is_public else index.first_line(kind)
    # more would not fit, and to write a table of samples takes seconds
    is_short = not isinstance(value, dict | list | tuple | set | frozenset) or len(value) < 40
    text = repr(value) if is_short else ""
    if " at 0x" in text:  # an address, which says nothing
        return f"A `{kind.__name__}`." if kind.__module__ == "builtins" else index.first_line(kind)
    return f"`{text}`".replace("\n", " ") if 0 < len(text) < 80 else f"A `{kind.__name__}`."


def _prose(module: str) -> str:
    """Return a module's docstring, which is written as Markdown is, without its lists of names."""
    paragraphs = (inspect.getdoc(importlib.import_module(module)) or "").split("\n\n")
    return "\n\n".join(p for p in paragraphs if not index.names_listed(module, p))


def _table_of_modules(page: Page) -> str:
    is_short = len(page.entries) < MANY
    rows = ["## Its modules\n", *(_TITLES if is_short else _TITLES_WITHOUT_NAMES)]
    for below in page.modules_below:
        module = below.module
        name = f"[`{module}`]({below.file}.md)" if below.describes else f"`{module}`"
        sentence = _cell((importlib.import_module(module).__doc__ or "").partition("\n")[0])
        names = f" {' '.join(map(_link, below.entries))} |" if is_short else ""
        rows.append(f"| {name} | {sentence} |{names}")
    return "\n".join(rows)


def _descriptions(page: Page) -> str:
    """Return the directives that describe the objects of a page, as reStructuredText."""
    directives = [f".. py:currentmodule:: {page.module}\n"]
    symbols: dict[tuple[str, str], list[str]] = {}
    for entry in page.describes:
        holder, _, name = entry.described_as.rpartition(".")
        if entry.kind in _DIRECTIVE:
            options = "   :members:\n   :show-inheritance:\n" if entry.kind == "class" else ""
            directives.append(f".. {_DIRECTIVE[entry.kind]}:: {entry.described_as}\n{options}")
        elif entry.kind == "data":
            summary = index.first_line(entry.value)
            if summary:
                directives.append(_data(holder, [name], summary))
            else:
                symbols.setdefault((holder, _kind_of(entry.value)), []).append(name)
    directives += [_data(holder, names, kind) for (holder, kind), names in symbols.items()]
    return "```{eval-rst}\n" + "\n".join(directives) + "```" if len(directives) > 1 else ""


def _data(module: str, names: list[str], text: str) -> str:
    """Return the directive that describes names of a module which share a text."""
    listed = "\n   ".join(names)
    return f".. py:data:: {listed}\n   :module: {module}\n\n   {_rst(text)}\n"


def _rst(text: str) -> str:
    return re.sub(r"(?<![`\\])([|*])", r"\\\1", text)


def aliases() -> dict[str, list[str]]:
    """Return, for each path that describes an object, the other paths that lead to it."""
    found: dict[str, list[str]] = {}
    for page in index.pages():
        for entry in page.entries:
            if entry.path != entry.described_as:
                found.setdefault(entry.described_as, []).append(entry.path)
    return found


def note_aliases(app: Any, doctree: Any) -> None:
    """Give the place of each object its other names, too (Sphinx's `doctree-read` event)."""
    from sphinx import addnodes  # the tests read this file without Sphinx

    names = aliases()
    domain = app.env.get_domain("py")
    for node in doctree.findall(addnodes.desc_signature):
        kind = node.parent.get("objtype", "function")
        places = [(i, name) for i in node.get("ids", []) for name in names.get(i, [])]
        for identifier, name in places:
            if name not in domain.objects:  # as a class's is that has told its home itself
                is_searched = name.startswith(f"{index.NAMESPACE}.")
                domain.note_object(name, kind, identifier, aliased=not is_searched)
        if node.get("module") and node.get("fullname"):
            home = home_of(None, node["module"], node["fullname"])
            paths = [f"{holder}.{node['fullname']}" for holder in sorted(shown_under(home))]
            node["ids"] += [path for path in paths if path not in node["ids"]]


def shown_under(home: str) -> set[str]:
    """Return the modules under whose names the objects of a module's text are described.

    A page of source links back by one of them, whichever Sphinx met first, so that each object has
    an anchor for all.
    """
    return _holders_by_home().get(home, set())


@functools.cache
def _holders_by_home() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for page in index.pages():
        for entry in page.describes:
            holder, _, name = entry.described_as.rpartition(".")
            if entry.kind in _DIRECTIVE or entry.kind == "data":
                found.setdefault(home_of(None, holder, name), set()).add(holder)
    return found


def home_of(app: object, module: str, name: str) -> str:
    """Return the module whose text defines a name (Sphinx's `viewcode-follow-imported` event)."""
    del app
    first = name.partition(".")[0]
    owner = getattr(importlib.import_module(module), first, None)
    claimed = getattr(owner, "__module__", None) or module
    if claimed.partition(".")[0] not in index.FLOOR_BY_PACKAGE:
        return module  # it is not ours, and has no page of source
    loaded = index.modules_that_hold(claimed.partition(".")[0], first, owner)
    homes = [m for m in [claimed, *loaded] if name in index.places_of(m)]
    return homes[0] if homes else module


def source_of(app: object, module: str) -> tuple[str, dict[str, tuple[str, int, int]]] | None:
    """Return a module's text and where it defines what (`viewcode-find-source` event)."""
    del app
    if module.partition(".")[0] not in index.FLOOR_BY_PACKAGE or module not in sys.modules:
        return None
    return index.text_of(module), index.places_of(module)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("doctree-read", note_aliases)
    app.connect("viewcode-follow-imported", home_of)
    app.connect("viewcode-find-source", source_of)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
