"""What `help` of a large module shows: one overview of all names, not the help of each."""

import inspect
import pydoc
import re

import pytest

import xnp
import xrandom
import xstack

_WORD = re.compile(r"\w+")
_THEME = re.compile(r"^[A-Z][\w ]+: (?!what)", re.MULTILINE)


def _themes():
    """Return the paragraphs of the overview that list names."""
    paragraphs = inspect.cleandoc(xstack.__doc__).split("\n\n")
    return [p for p in paragraphs if _THEME.match(p)]


def test_the_overview_names_every_public_name_once():
    words = [w for theme in _themes() for w in _WORD.findall(_THEME.sub("", theme))]
    names = [w for w in words if w in dir(xstack)]
    assert sorted(names) == dir(xstack)


def test_help_of_the_namespace_shows_the_overview_and_no_names_help():
    text = pydoc.plain(pydoc.render_doc(xstack))
    assert "value_and_grad" in text
    assert "PACKAGE CONTENTS" in text
    assert "CLASSES" not in text
    assert "FUNCTIONS" not in text
    assert text.count("\n") < 120
    description = text.partition("DESCRIPTION")[2].partition("PACKAGE CONTENTS")[0]
    assert max(map(len, description.split("\n"))) <= 80


LARGE = [
    xstack.numpy, xstack.numpy.linalg, xstack.lax, xstack.random, xstack.nn,
    xnp.numpy, xnp.linalg, xnp.lax, xnp.nn, xrandom,
]  # fmt: skip


@pytest.mark.parametrize("module", LARGE, ids=lambda module: module.__name__)
def test_help_of_a_large_module_names_each_function_once_and_is_short(module):
    text = pydoc.plain(pydoc.render_doc(module))
    assert "CLASSES" not in text
    assert "FUNCTIONS" not in text
    assert text.count("\n") < 180
    lists = [p for p in inspect.getdoc(module).split("\n\n") if _LIST.match(p)]
    words = [w for p in lists for w in _WORD.findall(p.partition(": ")[2])]
    names = [name for name in module.__all__ if not name.endswith(("_p", "__"))]
    names = [name for name in names if not inspect.ismodule(getattr(module, name))]
    assert sorted(word for word in words if word in names) == sorted(names)


_LIST = re.compile(r"[A-Z][\w ,]*: \w+[,.;]")


def test_help_of_arrays_shows_the_overview_of_their_functions():
    text = pydoc.plain(pydoc.render_doc(xnp))
    assert "Making arrays: array, asarray" in text
    assert text.count("\n") < 180


def test_names_are_found_by_all_others_who_ask():
    assert dict(inspect.getmembers(xstack, inspect.isroutine))["grad"] is xstack.grad
    assert "grad" in xstack.__all__
    assert "scale" in pydoc.plain(pydoc.render_doc(xstack.nn.initializers.variance_scaling))
