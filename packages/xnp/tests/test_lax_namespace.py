"""The namespace of `xnp.lax`, and what of it is imported late."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import xnp.lax as lax
import xnp.primitives
from xprim import Primitive, get_primitive

_FRESH = """
import importlib, json, pkgutil, sys
import xnp.lax
from xprim import custom_rules, extended, refs
from xprim.primitive import get_primitive, load_primitives, primitives

modules = sorted(m for m in sys.modules if m.startswith("xnp.primitives."))
early = {p.name for p in primitives()}
found = [get_primitive(name).name for name in xnp.primitives._MODULE_BY_PRIMITIVE]
asked = {p.name for p in primitives()}
load_primitives()
loaded = {p.name for p in primitives()}
for module in pkgutil.iter_modules(xnp.primitives.__path__):
    importlib.import_module(f"xnp.primitives.{module.name}")
late = {p.name for p in primitives()} - early
print(json.dumps([modules, *map(sorted, (late, found, asked - early, loaded - early))]))
"""


@pytest.fixture(scope="module")
def fresh() -> list[list[str]]:
    """What a process sees that imports `xnp.lax` alone."""
    command = [sys.executable, "-c", _FRESH]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_primitives_are_imported_when_they_are_used(fresh):
    loaded = {m.rpartition(".")[2] for m in fresh[0]}
    assert not loaded & {*xnp.primitives._NAMES_BY_MODULE}


def test_a_late_primitive_is_found_by_its_name(fresh):
    _, late, found, asked, _ = fresh
    assert found == late  # the table names every primitive that a program may ask for
    assert asked == late


def test_the_registry_can_be_had_complete(fresh):
    _, late, _, _, loaded = fresh
    assert loaded == late


def test_an_unknown_primitive_is_an_error():
    with pytest.raises(KeyError, match="no primitive is named 'erv'"):
        get_primitive("erv")


@pytest.mark.parametrize("name", lax.__all__)
def test_every_public_name_is_there(name):
    value = getattr(lax, name)
    assert name in dir(lax)
    assert isinstance(value, Primitive) == name.endswith("_p")


def test_names_are_listed_once():
    assert len({*lax.__all__}) == len(lax.__all__)


def test_a_star_import_brings_every_name():
    namespace: dict[str, object] = {}
    exec("from xnp.lax import *", namespace)
    assert {*lax.__all__} <= {*namespace}


@pytest.mark.parametrize("module", sorted(m.name for m in pkgutil.iter_modules(lax.__path__)))
def test_what_a_module_makes_public_is_in_the_namespace(module):
    if module == "linalg":
        return  # a namespace of its own
    names = getattr(importlib.import_module(f"xnp.lax.{module}"), "__all__", ())
    assert not {*names} - {*lax.__all__}
    for name in names:
        assert getattr(lax, name) is getattr(sys.modules[f"xnp.lax.{module}"], name)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'xnp\.lax' has no attribute 'sinus'"):
        lax.sinus  # noqa: B018


def test_a_rule_names_only_primitives_that_there_are():
    text = "".join(path.read_text() for path in Path(xnp.primitives.__path__[0]).glob("*.py"))

    names = {*re.findall(r'\b(?:bind|get_primitive)\("(\w+)"', text)}
    assert "add" in names
    for name in names - {"callback"}:  # the compiler's own, which a lowering rule of `check` needs
        assert get_primitive(name).name == name
