"""Whose lines are shown: those of users, and not those of packages that ask to be left out."""

import sys
import types

import pytest

from xprim import source


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of three modules, of which the inner one is a program to be read."""

    def module(name, folder, **scope):
        found = types.ModuleType(name)
        vars(found).update(scope, __file__=str(folder / "__init__.py"))
        monkeypatch.setitem(sys.modules, name, found)

    def files(**scope):
        module("quiet", tmp_path / "quiet", **scope)
        module("quiet.demo", tmp_path / "quiet" / "demo", __tracebackhide__=False)
        module("quiet.parts", tmp_path / "quiet" / "parts")
        places = ("module.py", "parts/module.py", "demo/module.py")
        return [str(tmp_path / "quiet" / place) for place in places]

    yield files
    source._is_hidden.clear()


def test_a_package_that_says_so_is_hidden_but_not_a_folder_that_says_otherwise(package):
    assert [source.is_hidden(file) for file in package(__tracebackhide__=True)] == [
        True, True, False,
    ]  # fmt: skip


def test_a_package_that_says_nothing_is_shown(package):
    assert not any(source.is_hidden(file) for file in package())


def test_a_folder_of_the_same_name_elsewhere_is_shown(package, tmp_path):
    package(__tracebackhide__=True)
    assert not source.is_hidden(str(tmp_path / "mine" / "quiet" / "module.py"))
    assert not source.is_hidden(str(tmp_path / "mine" / "quiet.py"))
