"""What is read of modules that are imported late exists: type checkers do not see these names."""

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

from xprim import transformed

MODULES = sorted(Path(__file__).parent.parent.glob("packages/*/src/**/*.py"))


def late_modules(tree):
    """Return the modules that a text imports late, by the names that it gives them."""
    found = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id="late_import"), args=[ast.Constant(module), *_]),
            ):
                found[name] = module
    return found


def names_read(text):
    """Return the pairs of a late module and a name that a text reads of it."""
    tree = ast.parse(text)
    late = late_modules(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in late:
                yield late[name], attribute


def absent(pairs):
    """Return the pairs of a module that is installed and a name that it does not have."""
    installed = [p for p in pairs if importlib.util.find_spec(p[0].partition(".")[0]) is not None]
    return [p for p in installed if not hasattr(importlib.import_module(p[0]), p[1])]


def test_modules_that_are_imported_late_have_what_is_read_of_them():
    pairs = {pair for path in MODULES for pair in names_read(path.read_text())}
    assert len(pairs) > 50  # the texts are found
    assert absent(pairs) == []


@pytest.mark.parametrize("name", ["sqrt", "root"])
def test_a_name_that_is_not_there_is_found(name):
    text = f"_late = late_import('math', 'a reason')\ndef f(x):\n    return _late.{name}(x)\n"
    assert absent(names_read(text)) == ([("math", "root")] if name == "root" else [])


def test_functions_that_packages_find_by_name_are_there():
    # `find` returns None for a name that is absent, as in an older release
    assert [name for name in transformed._MODULE_BY_NAME if transformed.find(name) is None] == []
