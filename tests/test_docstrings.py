"""Docstrings of public functions: none lacks a section, and what doctest does not find runs."""

import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tools.docstrings import MODULES, functions_of, lacks


def test_the_examples_of_functions_that_are_made_print_what_they_say(capsys):
    """`--doctest-modules` collects what a `def` makes, and none of these."""
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    made = [(name, f) for name, f in functions_of("xstack.numpy") if f.__module__ == "xnp"]
    for name, function in made:
        doc = inspect.getdoc(function) or ""
        runner.run(doctest.DocTestParser().get_doctest(doc, {}, name, None, None))
    assert runner.summarize(verbose=False).failed == 0, capsys.readouterr().out
    assert len(made) > 70


@pytest.mark.parametrize("module", ["xad/src/xad/custom_rules.py", "xpar/src/xpar/_shard_map.py"])
def test_the_examples_of_a_module_that_its_package_imports_run_alone(module):
    """They define primitives, which one process can do once."""
    root = Path(__file__).parent.parent
    command = [sys.executable, "-m", "pytest", "-q", "--doctest-modules", f"packages/{module}"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_function_says_what_it_takes_what_it_returns_and_shows_it(module):
    lacking = {name: lacks(function) for name, function in functions_of(module)}
    assert {name: parts for name, parts in lacking.items() if parts} == {}


@pytest.mark.parametrize("module", MODULES)
def test_the_effect_is_said_of_parameters_by_their_names(module):
    """`x1 + x2`, not `x + y`: a reader of the help looks for what the signature names."""
    misnamed = {}
    for name, function in functions_of(module):
        names = set(inspect.signature(function).parameters)
        if {"x1", "x2"} <= names:
            effect = re.sub(r"`[^`]*`", "", (inspect.getdoc(function) or "").split("\n\n")[0])
            misnamed[name] = set(re.findall(r"(?<![\w.])[xy](?![\w.(])", effect)) - names
    assert {name: letters for name, letters in misnamed.items() if letters} == {}


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
