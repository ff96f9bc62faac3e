"""The option dump_ir_to writes the texts of programs to a folder."""

import itertools

import pytest

import xnp
from xjit import jit
from xjit.lowering import compile as program_dumps
from xjit.lowering.compile import dump_ir_modes, dump_ir_to


def f(x):
    return xnp.sin(x) * 2


def files_of(folder, factor, modes="stablehlo"):
    """Return the files of a program that is new to this process, by name without the number."""
    with dump_ir_to(str(folder)), dump_ir_modes(modes):
        jit(lambda x: f(x) * factor)(1.0)
    return {path.name.partition("_")[2]: path.read_text() for path in folder.iterdir()}


def test_the_text_of_a_program_is_written_to_a_folder_that_is_made(tmp_path):
    files = files_of(tmp_path / "a" / "b", 1.25)
    assert list(files) == ["jit__lambda_.mlir"]
    assert "module @jit__lambda_" in files["jit__lambda_.mlir"]
    assert "stablehlo.sine" in files["jit__lambda_.mlir"]


def test_modes_choose_the_forms(tmp_path):
    assert set(files_of(tmp_path / "both", 1.5, "stablehlo,jaxpr")) == {
        "jit__lambda_.mlir", "jit__lambda_.jaxpr.txt",
    }  # fmt: skip
    files = files_of(tmp_path / "one", 1.75, "jaxpr")
    assert "sin a" in files["jit__lambda_.jaxpr.txt"]
    with pytest.raises(TypeError, match=r"dump_ir_modes: the option does not take .*\n.*'hlo'"):
        files_of(tmp_path, 2.0, "hlo")


def test_programs_are_numbered_and_those_of_caches_are_written_too(tmp_path):
    with dump_ir_to(str(tmp_path)):
        jit(lambda x: f(x) - 2.25)(1.0)
        jit(lambda x: (lambda y: f(y) - 2.25)(x))(1.0)
    first, second = sorted(tmp_path.iterdir())
    assert first.read_text() == second.read_text()
    assert int(second.name[2:6]) == int(first.name[2:6]) + 1


def test_nothing_is_written_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jit(lambda x: f(x) * 2.5)(1.0)
    assert not list(tmp_path.iterdir())


def test_programs_of_another_process_are_left_as_they_are(tmp_path, monkeypatch):
    for factor in (2.75, 2.875):  # each process counts from 0
        monkeypatch.setattr(program_dumps, "_numbers", itertools.count())
        files_of(tmp_path, factor)
    assert sorted([path.name[:6] for path in tmp_path.iterdir()]) == ["ir0000", "ir0001"]


def test_a_name_is_cut_to_what_a_file_may_have(tmp_path):
    def g(x):
        return f(x) - 3.25

    g.__name__ = "ä" * 300 + "b" * 300
    with dump_ir_to(str(tmp_path)):
        jit(g)(1.0)
    (path,) = tmp_path.iterdir()
    assert len(path.name.encode()) < 255


def test_a_folder_that_cannot_be_made_is_an_error_that_names_the_option(tmp_path):
    (tmp_path / "file").touch()
    text = r"config.dump_ir_to: the program cannot be written(.|\n)*file: File exists"
    with pytest.raises(OSError, match=text), dump_ir_to(str(tmp_path / "file")):
        jit(lambda x: f(x) - 3.75)(1.0)
