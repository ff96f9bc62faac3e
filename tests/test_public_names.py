"""Public names stay: each of the kept list resolves through `xstack`, and only when asked for."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import xnp
import xstack
from tests.public_names import grown, kept, missing, resolve

NAMES = kept()


@pytest.mark.parametrize("holder", NAMES)
def test_every_kept_name_resolves(holder):
    absent = missing(holder, NAMES[holder])
    assert not absent, f"{holder} no longer answers to {', '.join(absent)}"


def test_everything_that_the_array_functions_list_can_be_imported_at_once():
    namespace: dict[str, object] = {}
    exec("from xstack.numpy import *", namespace)
    assert namespace["linalg"] is xstack.numpy.linalg and callable(namespace["zeros"])


def test_the_list_is_sorted_and_without_repeats():
    for names in NAMES.values():
        assert names == sorted(set(names))


def test_names_of_modules_are_found_by_dir():
    for holder in ("xstack", "xstack.numpy", "xstack.lax", "xstack.tree", "xstack.errors"):
        private = [n for n in NAMES[holder] if n.startswith("_")]
        assert set(NAMES[holder]) - set(private) <= set(dir(resolve(holder))), holder


def test_a_name_that_goes_away_is_found_and_a_list_only_grows():
    assert missing("xstack.tree", ["map", "no_such_name"]) == ["no_such_name"]
    assert missing("xstack.no_such_module", ["a"]) == ["a"]
    more = grown(
        {"xstack.tree": ["gone"]}, {"xstack.tree": ["map", "no_such_name"], "xstack.x": ["a"]}
    )
    assert more == {"xstack.tree": ["gone", "map"]}


def test_an_unknown_name_is_an_attribute_error_that_names_the_module():
    with pytest.raises(AttributeError, match="module 'xstack' has no attribute 'no_such_name'"):
        xstack.no_such_name  # noqa: B018


def test_a_name_imports_its_own_package_and_no_other():
    code = (
        "import sys, xstack\n"
        "def loaded(): return {m for m in sys.modules if m in ('xad', 'xbatch', 'xjit', 'xpar')}\n"
        "assert loaded() == set(), loaded()\n"
        "xstack.grad\n"
        "assert loaded() == {'xad'}, loaded()\n"
        "xstack.vmap\n"
        "assert loaded() == {'xad', 'xbatch'}, loaded()\n"
        "xstack.jit\n"
        "assert loaded() == {'xad', 'xbatch', 'xjit'}, loaded()\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_what_type_checkers_read_of_the_namespace_is_what_it_looks_up():
    tree = ast.parse(Path(xstack.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    declared = {
        (node.module, alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    looked_up = {(m, n) for m, names in xstack._NAMES_BY_MODULE.items() for n in names}
    assert declared == looked_up | {("xstack", name) for name in xstack._SUBMODULES}


@pytest.mark.parametrize("holder", [xnp.lax, xnp.linalg], ids=["lax", "linalg"])
def test_a_name_that_is_imported_late_is_listed_by_its_module(holder):
    for module, names in holder._LATE.items():
        if module.startswith(holder.__name__):
            assert set(importlib.import_module(module).__all__) == set(names), module
    assert len(holder.__all__) == len(set(holder.__all__))
