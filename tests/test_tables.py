"""The page of what is remembered, followed by the tool that makes it."""

from pathlib import Path

import pytest

from tools import tables

ROOT = Path(__file__).resolve().parents[1]


def test_every_table_of_the_packages_says_its_reason():
    found = tables.tables()
    assert [f"{t.module}:{t.line}: {t.name}" for t in found if not t.reason] == []
    assert "<!-- markdown-of: tools/tables.py -->" in (ROOT / "docs/design/tables.md").read_text()
    names = {f"{t.module}.{t.name}" for t in found}
    assert {
        "xad._jvp._kernels",
        "xad._linearize._kernels",
        "xad.transpose._kernels",
        "xjit.dispatch.eager_backend._kernels",
        "xjit.lowering.compile._executables",
        "xprim.primitive._registry",
        "xnp.primitives.control_flow._steps",
        "xjit.dispatch.placement.one_device",
    } <= names


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("_kernels = KernelTable('s', uses=3)", ("service", "`KernelTable('s', uses=3)`", "")),
        ("def f():\n    t = k.KernelTable()  # of f", ("service", "`k.KernelTable()`", "Of f")),
        ("a, b = KernelTable('a'), 2", ("service", "`KernelTable('a')`", "")),
        ("# What\n# it is.\n_all: dict[str, int] = {}", ("module", "dictionary", "What it is.")),
        ("_alive = weakref.WeakSet()", ("module", "`weakref.WeakSet()`", "")),
        ("_shapes: Bounded[int] = Bounded(3)", ("module", "`Bounded(3)`", "")),
        ("one = functools.lru_cache(maxsize=7)(One)", ("function", "7 results", "")),
        ("@functools.lru_cache\ndef f(): pass", ("function", "128 results", "")),
        ("@functools.cache\ndef f():\n    'Return it.'", ("function", "all", "Return it.")),
        ("class A:\n    def f(self):\n        self.a = Bounded(2)", ("module", "`Bounded(2)`", "")),
    ],
)  # fmt: skip
def test_a_table_is_found_with_what_it_is_and_the_reason_beside_it(source, expected):
    (found,) = tables.tables_of("m", source)
    assert (found.group, found.form, found.reason) == expected


@pytest.mark.parametrize(
    "source", ["NAMES = {'a': 1}", "def f():\n    found: dict[int, int] = {}", "x = len(())"]
)
def test_what_does_not_outlive_a_call_is_no_table(source):
    assert list(tables.tables_of("m", source)) == []


def test_a_table_without_a_reason_ends_the_program_with_an_error(monkeypatch, capsys):
    silent = list(tables.tables_of("m", "_kernels = KernelTable('sums')"))
    monkeypatch.setattr(tables, "tables", lambda: silent)
    assert tables.main() == 1
    printed = capsys.readouterr()
    assert "| `m._kernels` | `KernelTable('sums')` |  |" in printed.out
    assert printed.err == "m:1: _kernels says no reason\n"
