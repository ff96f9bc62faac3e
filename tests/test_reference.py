"""The reference shows every public name: the pages are compared with the packages."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import xstack
from tools.layers import FLOOR_BY_PACKAGE

ROOT = Path(__file__).resolve().parents[1]
_spec = importlib.util.spec_from_file_location(
    "generated_parts", ROOT / "docs" / "_ext" / "generated_parts.py"
)
generated_parts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(generated_parts)

DESCRIBED = [p for p in FLOOR_BY_PACKAGE if p != "xstack"]  # which re-exports


@pytest.fixture(scope="module")
def shown():
    """All dotted names on the reference pages."""
    pages = {}
    for package in DESCRIBED:
        page = (ROOT / "docs" / "reference" / f"{package}.md").read_text()
        assert f"<!-- reference-of: {package} -->" in page
        pages[package] = generated_parts.names_in(generated_parts.reference_of(package))
    return pages


@pytest.mark.parametrize("package", DESCRIBED)
def test_every_name_of_every_public_module_is_on_the_page_of_its_package(package, shown):
    for module in generated_parts.public_modules(package):
        listed = importlib.import_module(module).__all__
        assert len(listed) == len(set(listed)), f"{module} lists a name twice"
        absent = {f"{module}.{name}" for name in listed} - shown[package]
        assert not absent, f"docs/reference/{package}.md does not show {sorted(absent)}"


@pytest.mark.parametrize("name", [
    "xad.testing.check_grads", "xjit.stages.Compiled", "xprim.config.Option",
    "xprim.config.debug_nans", "xprim.errors.ConcretizationTypeError",
])  # fmt: skip
def test_what_users_meet_is_shown(name, shown):
    assert name in shown[name.partition(".")[0]]


def test_every_name_of_the_whole_namespace_has_its_row():
    table = generated_parts.namespace_of("xstack")
    assert set(re.findall(r"^\| `xstack\.(\w+)`", table, re.MULTILINE)) == set(xstack.__all__)


@pytest.mark.parametrize("package", DESCRIBED)
def test_public_functions_and_classes_have_docstrings(package):
    bare = []
    for module in generated_parts.public_modules(package):
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


def test_a_name_that_is_not_shown_is_found():
    page = generated_parts.reference_of("xbatch")
    assert "xbatch.vmap" in generated_parts.names_in(page)
    assert "xbatch.vmap" not in generated_parts.names_in(page.replace(":: xbatch.vmap\n", "\n"))


def test_the_tables_of_the_notes_on_speed_have_a_few_words_a_cell():
    notes = (ROOT / "docs" / "benchmarks" / "notes.md").read_text()
    cells = [c.strip() for row in re.findall(r"^\|.*\|$", notes, re.MULTILINE)
             for c in row.strip("|").split(" | ")]  # fmt: skip
    assert len(cells) > 300
    assert not [c for c in cells if len(c) > 70]
