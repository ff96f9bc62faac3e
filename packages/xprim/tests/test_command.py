"""`python -m xprim`, the sources of lines, and partners on the same floor."""

import os
import subprocess
import sys

import pytest

from packages.xprim.tests import operations
from xprim import __main__ as command, kinds, optional_transforms, source
from xprim.rules import LINEAR


@pytest.fixture(autouse=True)
def _no_other_packages(monkeypatch):
    monkeypatch.setattr(command, "_OWNERS", ("xprim", "no_such_package"))


def test_the_command_prints_every_rule_of_a_primitive(capsys):
    assert command.main(["test_scale"]) == 0
    text = capsys.readouterr().out
    assert "test_scale   defined at" in text and "operations.py" in text
    assert f"jvp        LINEAR: {LINEAR.doc}" in text
    assert "stablehlo  undefined: it is for tests" in text
    assert command.main(["test_scale", "--kind", "shape"]) == 0
    assert "operations.py" in capsys.readouterr().out.splitlines()[1]
    assert command.main(["nothing"]) == 2
    assert "there is no primitive 'nothing'" in capsys.readouterr().err
    assert command.main(["test_scle"]) == 2
    assert "Did you mean 'test_scale'?" in capsys.readouterr().err


def test_the_command_prints_the_matrix(capsys):
    assert command.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["primitive", "shape", "numpy"]
    assert any(line.split()[:2] == ["test_scale", "+"] for line in lines)
    command.main(["--markdown", "--kind", "jvp"])
    assert "| test_scale | . |" in capsys.readouterr().out


def test_missing_and_unusual_rules_are_described():
    scale_p = operations.scale_p
    assert command._where(None, scale_p) == "missing"
    assert command._where(len, scale_p).endswith("len")
    assert command._where(3, scale_p) == "3"
    assert command._mark({}) == ""
    assert operations.scale_p.name in command.describe(operations.scale_p, list(kinds.values()))


def test_the_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "xprim", "custom_jvp_call"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "custom_jvp_call   defined at" in done.stdout


def test_lines_point_at_the_user():
    here = source.capture()
    assert source.describe(here).startswith("test_command.py:")
    assert source.describe(here).endswith("in test_lines_point_at_the_user")
    path, line, name = source.describe_full(here)
    assert path == __file__ and name == "test_lines_point_at_the_user" and line > 1
    assert source.describe(None) == "" and source.describe_full(None) == ("", 0, "")
    assert source.is_hidden(source.__file__) and not source.is_hidden(__file__)
    module_level = compile("import xprim.source as s\nx = s.capture()", "script.py", "exec")
    space = {}
    exec(module_level, space)
    assert source.describe(space["x"]) == "script.py:2"
    assert source.line_of((here[0], 10**6)) == here[0].co_firstlineno


def test_transformations_are_found_where_their_package_is_installed(monkeypatch):
    places = {"getcwd": "os", "absent": "no_such_module"}
    monkeypatch.setattr(optional_transforms, "_MODULE_BY_NAME", places)
    find = optional_transforms.find
    assert find("getcwd") is os.getcwd
    assert find("absent") is None
    places["absent"] = "xprim.source"  # an older version, which has no such function
    assert find("absent") is None
    with pytest.raises(KeyError):
        find("unheard of")
