"""Docstrings of public functions: none lacks a section, and what is generated runs."""

import doctest
import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import xnp.docstrings
import xnp.fft
import xnp.linalg
import xnp.nn
import xnp.numpy
import xrandom
from tools.docstrings import MODULES, functions_of, lacks

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def families():
    """Yield each family of each table, with the functions of its members by name."""
    for folder, package in [*((f.__path__, f.__name__) for f in (xnp.numpy, xnp.lax, xnp.linalg)),
                            (xrandom.__path__, "xrandom")]:  # fmt: skip
        for info in pkgutil.iter_modules(folder, f"{package}."):
            importlib.import_module(info.name)
    tables = [f"xnp.docstrings.{m.name}" for m in pkgutil.iter_modules(xnp.docstrings.__path__)]
    for module in [*tables, "xrandom.docstrings"]:
        for constant, table in vars(importlib.import_module(module)).items():
            if not constant.isupper() or constant.startswith("_"):
                continue
            loaded = [m for name, m in sys.modules.items() if name != module]
            (home,) = [m for m in loaded if vars(m).get(constant) is table]
            for family in table:
                yield f"{module}.{constant}", family, {n: vars(home)[n] for n in family.examples}


FAMILIES = list(families())
TABLES = sorted({table for table, _, _ in FAMILIES})


@pytest.mark.parametrize("table", TABLES)
def test_the_examples_of_families_print_what_they_say(table, capsys):
    runner, finder = doctest.DocTestRunner(optionflags=FLAGS), doctest.DocTestParser()
    tried = 0
    of_table = [(family, members) for name, family, members in FAMILIES if name == table]
    for family, name, function in [(f, *m) for f, ms in of_table for m in ms.items()]:
        if family.examples[name] is not None:  # those of the code run where it is
            runner.run(finder.get_doctest(inspect.getdoc(function), {}, name, None, None))
        tried += 1
    assert runner.summarize(verbose=False).failed == 0, capsys.readouterr().out
    assert tried > 0


def test_families_describe_the_arguments_that_their_functions_take():
    for table, family, members in FAMILIES:
        described = [text.partition(":")[0].strip("*") for text in family.args]
        for name, function in members.items():
            taken = list(inspect.signature(function).parameters)
            assert not described or taken == described, f"{table}: {name}"
            assert lacks(function) == [], name


@pytest.mark.parametrize("module", MODULES)
def test_every_public_function_says_what_it_takes_what_it_returns_and_shows_it(module):
    lacking = {name: lacks(function) for name, function in functions_of(module)}
    assert {name: parts for name, parts in lacking.items() if parts} == {}


# What NumPy's functions take and none here does: of the layout in memory, of its own classes.
NOT_OF_ARRAYS = {"like", "subok", "casting", "order", "signature", "extobj", "args", "kwargs"}
# They do what NumPy's do, with other names for their first arguments, or for none that are used.
OTHER_NAMES = {"einsum_path", "fromfile", "fromiter", "matrix_rank", "vectorize"}


@pytest.mark.parametrize(
    ("module", "numpy_module"),
    [("xstack.numpy", np), ("xstack.numpy.linalg", np.linalg), ("xstack.numpy.fft", np.fft)],
)
def test_functions_that_take_less_than_numpys_say_so(module, numpy_module):
    silent, count = {}, 0
    for name, function in functions_of(module):
        theirs = getattr(numpy_module, name, None)
        if isinstance(theirs, np.ufunc):
            taken = {"out", "where"}
        else:
            try:
                taken = set(inspect.signature(theirs).parameters)
            except (TypeError, ValueError):  # there is none, or it does not tell
                continue
        absent = taken - set(inspect.signature(function).parameters) - NOT_OF_ARRAYS
        count += 1
        if absent and name not in OTHER_NAMES and "NumPy" not in (inspect.getdoc(function) or ""):
            silent[name] = sorted(absent)
    assert count >= 15
    assert silent == {}


@pytest.mark.parametrize("module", MODULES)
def test_each_section_stands_once_in_the_order_of_all(module):
    order = ["Args", "Returns", "Yields", "Raises", "Example"]
    for name, function in functions_of(module):
        found = re.findall(r"^(\w+):$", inspect.getdoc(function) or "", re.MULTILINE)
        sections = [heading for heading in found if heading in order]
        assert sections == [heading for heading in order if heading in found], name


def test_examples_carry_no_flags_of_doctest():
    """The site prints an example without them, and then finds no such code to link."""
    sources = Path(__file__).parent.parent.glob("packages/*/src/**/*.py")
    assert [p.name for p in sources if "# doctest: +" in p.read_text(encoding="utf-8")] == []


def test_what_a_docstring_lacks_is_found():
    def function(x, y):
        """Add.

        Args:
            x: a number.

        Example:
            >>> 1 + 1
            2
        """

    assert lacks(function) == ["args", "returns", "raises"]
    doc = inspect.cleandoc(function.__doc__).replace("x: a", "x, y: a")
    function.__doc__ = f"{doc}\n\nReturns:\n    Their sum.\n\nRaises:\n    TypeError: for text."
    assert lacks(function) == []
    function.__doc__ = "Add."
    assert lacks(function) == ["args", "returns", "example", "raises"]
