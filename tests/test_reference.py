"""The reference shows every public name: the pages are compared with the packages."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import xstack
from tools.layers import FLOOR_BY_PACKAGE

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))
import generated_parts  # noqa: E402 - the extensions of the site are not packages
import reference_index  # noqa: E402
import reference_pages  # noqa: E402

sys.path.remove(str(ROOT / "docs" / "_ext"))

PAGES = reference_index.pages()
DESCRIBED = [p for p in FLOOR_BY_PACKAGE if p != "xstack"]  # which re-exports


@pytest.fixture(scope="module")
def texts():
    """The text of every page of the reference, by its file."""
    return {page.file: reference_pages.page_text(page) for page in PAGES}


@pytest.fixture(scope="module")
def shown(texts):
    """All dotted names that the pages describe."""
    return {name for text in texts.values() for name in reference_pages.names_in(text)}


@pytest.mark.parametrize("package", DESCRIBED)
def test_every_name_of_every_public_module_is_described_and_on_the_page_of_its_package(
    package, texts, shown
):
    for module in reference_index.public_modules(package):
        listed = importlib.import_module(module).__all__
        assert len(listed) == len(set(listed)), f"{module} lists a name twice"
        part = _part_of(module, texts[package])
        links = dict(re.findall(r"\{py:\w+\}`(\w+) <([\w.]+)>`", part)) or _entries(module)
        assert set(links) == set(listed), module
        assert set(links.values()) - shown <= set(sys.modules), module


def _entries(module):
    """The names of a module of a large package, whose page has none in the rows of modules."""
    package = next(page for page in PAGES if page.title == module.partition(".")[0])
    assert len(package.entries) >= reference_pages.MANY
    below = next(page for page in package.modules_below if page.module == module)
    return {entry.name: entry.described_as for entry in below.entries}


def _part_of(module, text):
    """What the page of a package says of one module: its row, or the first table."""
    if "." not in module:
        return text.partition("## Its modules")[0]
    (row,) = re.findall(rf"^\| \[?`{re.escape(module)}`.*$", text, re.MULTILINE)
    return row


def test_data_is_described_under_the_module_that_has_it():
    page = next(page for page in PAGES if page.title == "Configuration")
    text = reference_pages.page_text(page)
    assert "\n.. py:data:: enable_x64\n   :module: xstack\n" in text
    assert "xstack.enable_x64" in reference_pages.names_in(text)


def test_every_name_of_the_namespace_is_on_a_page_of_its_module():
    for module in reference_index.namespace_modules():
        on_pages = [e.name for page in PAGES if page.module == module for e in page.entries]
        modules = {n for n in xstack.__all__ if inspect.ismodule(getattr(xstack, n))}
        listed = set(importlib.import_module(module).__all__)
        absent = listed - set(on_pages)
        assert absent <= modules | {"linalg", "lax", "nn", "initializers", "fft"}, module
        assert len(on_pages) == len(set(on_pages)), module


def test_no_object_is_described_twice(texts):
    names = [name for text in texts.values() for name in set(reference_pages.names_in(text))]
    assert not {name for name in names if names.count(name) > 1}


def test_no_page_shows_the_address_of_an_object(texts):
    assert not [file for file, text in texts.items() if " at 0x" in text]


@pytest.mark.parametrize("name", [
    "xstack.grad", "xstack.numpy.sin", "xstack.lax.scan", "xstack.random.normal", "xstack.Array",
    "xstack.test_util.check_grads", "xstack.stages.Compiled", "xstack.enable_x64",
    "xprim.Primitive", "xstack.errors.ConcretizationTypeError", "xprim.config.Option",
])  # fmt: skip
def test_what_users_meet_is_described_under_the_path_they_use(name, shown):
    assert name in shown


def test_the_groups_are_the_overviews_and_what_has_no_group_is_listed():
    for module, titled in reference_index.groups().items():
        listed = [name for names in titled.values() for name in names]
        assert len(listed) == len(set(listed)), f"{module}: a name is in two groups"
        assert len(titled) > 1 and len(set(listed)) > 10, module
    more = [e.path for page in PAGES if page.title == reference_index.MORE for e in page.entries]
    assert reference_index.ungrouped() == more


def test_a_new_name_that_no_group_lists_is_shown_all_the_same():
    grouped = reference_index.grouped("xstack.nn", ["relu", "a_new_name", "a_primitive_p"])
    assert grouped == {
        "Activations": ["relu"], "Primitives": ["a_primitive_p"], "More": ["a_new_name"]
    }  # fmt: skip


def test_the_source_of_a_name_is_found_where_it_is_assigned_or_defined():
    for module, name, home in [
        ("xstack.numpy", "sin", "xnp.numpy.elementary"), ("xstack", "grad", "xad._vjp"),
        ("xstack.numpy", "reshape", "xnp.numpy.shaping"), ("xstack", "Array", "xprim.array"),
    ]:  # fmt: skip
        assert reference_pages.home_of(None, module, name) == home
        text, places = reference_pages.source_of(None, home)
        _, first, last = places[name]
        assert name in "\n".join(text.split("\n")[first - 1 : last])


@pytest.mark.parametrize("package", DESCRIBED)
def test_public_functions_and_classes_have_docstrings(package):
    bare = []
    for module in reference_index.public_modules(package):
        for name in importlib.import_module(module).__all__:
            value = getattr(importlib.import_module(module), name)
            is_ours = (getattr(value, "__module__", None) or "").partition(".")[0] == package
            is_described = inspect.isclass(value) or inspect.isroutine(value)
            if is_ours and is_described and not (value.__doc__ or "").strip():
                bare.append(f"{module}.{name}")
    assert not bare


def test_the_page_of_modules_says_every_module_in_one_sentence():
    page = (ROOT / "docs" / "design" / "modules.md").read_text()
    (packages,) = re.findall(r"^<!-- modules-of: (.+) -->$", page, re.MULTILINE)
    assert packages.split() == list(FLOOR_BY_PACKAGE)
    rows = generated_parts.modules_of(packages).split("\n")
    sentences = {r.split(" | ")[0].strip("| `"): r.split(" | ")[-1] for r in rows if "`" in r}
    for path in ROOT.glob("packages/*/src/**/*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts[3:]
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        sentence = sentences[module].removesuffix(" |")
        assert sentence.endswith((".", ":")), f"{module} begins with no sentence: {sentence!r}"


def test_pages_of_source_find_the_way_back_to_objects_under_several_names():
    assert reference_pages.shown_under("xprim._make_jaxpr") >= {"xprim", "xstack"}
    assert reference_index.places_of("sys") == {}  # which has no text
    assert reference_pages.shown_under("xtree.registry") >= {"xtree", "xtree.registry"}
    assert reference_pages.shown_under("xnp.numpy.scalar_types") >= {"xnp", "xstack.numpy"}  # data


def test_text_is_escaped_and_examples_are_not():
    lines = ["|x| = int_0 a * b, `y * |z|`", "", ">>> x | y * z", "1 * 2", "", "a_, **b**"]
    generated_parts.escape_text(None, "", "", None, None, lines)
    assert lines == [
        r"\|x\| = int_0 a \* b, `y * |z|`", "", ">>> x | y * z", "1 * 2", "", r"a\_, \*\*b\*\*"
    ]  # fmt: skip


def test_a_name_that_is_not_described_is_found(texts):
    text = texts["xstack.batching-and-many-devices"]
    assert "xstack.vmap" in reference_pages.names_in(text)
    assert "xstack.vmap" not in reference_pages.names_in(text.replace(":: xstack.vmap\n", "\n"))


def test_the_tables_of_the_notes_on_speed_have_a_few_words_a_cell():
    notes = (ROOT / "docs" / "benchmarks" / "notes.md").read_text()
    cells = [c.strip() for row in re.findall(r"^\|.*\|$", notes, re.MULTILINE)
             for c in row.strip("|").split(" | ")]  # fmt: skip
    assert len(cells) > 300
    assert not [c for c in cells if len(c) > 70]


@pytest.mark.parametrize("section", ["tutorials", "howto", "recipes", "explain", "design"])
def test_the_first_page_of_a_section_leads_to_each_other_one(section):
    folder = ROOT / "docs" / section
    linked = set(re.findall(r"\((\w+\.md)\)", (folder / "about.md").read_text()))
    assert not {page.name for page in folder.glob("*.md")} - linked - {"about.md"}


def test_every_decision_has_a_number_of_its_own():
    numbers = [int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("*.md")]
    reserved = {13, 14}  # docs/design/about.md
    assert sorted(numbers) == [n for n in range(1, max(numbers) + 1) if n not in reserved]


def test_no_private_module_has_a_page():
    assert not [m for m in reference_index.namespace_modules() if "._" in m]
    assert not [page.file for page in reference_index.pages() if "._" in page.file]
