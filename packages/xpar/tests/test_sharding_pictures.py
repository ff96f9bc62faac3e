"""Pictures of shardings, compared as text."""

import functools
import io
import re
import sys
import types
from xml.etree import ElementTree

import numpy as np
import pytest

from xjit import device_put, devices, jit
from xjit.stored_programs import serialize
from xnp import lax
from xpar import (
    Mesh,
    NamedSharding,
    P,
    SingleDeviceSharding,
    shard_map,
    with_sharding_constraint,
)
from xpar.sharding_pictures import (
    drawn,
    inspect_array_sharding,
    sharding_picture,
    visualize_array_sharding,
    visualize_sharding,
)

N = 8
HOST = np.arange(32, dtype=np.float32).reshape(8, 4)
MESH = Mesh(np.array(devices("cpu")[:N]).reshape(4, 2), ("x", "y"))


def on(*parts):
    return NamedSharding(MESH, P(*parts))


@pytest.mark.parametrize(
    ("shape", "spec", "expected"),
    [
        ((8,), P("y"), "┌─────────────┬─────────────┐\n│ CPU 0,2,4,6 │ CPU 1,3,5,7 │\n"
                       "└─────────────┴─────────────┘\n"),
        ((8, 4), P("y", None), "┌─────────────┐\n│ CPU 0,2,4,6 │\n├─────────────┤\n"
                               "│ CPU 1,3,5,7 │\n└─────────────┘\n"),
        ((4, 2, 8), P(None, "y", "x"),
         "┌─────┬─────┬─────┬─────┐\n│CPU 0│CPU 2│CPU 4│CPU 6│\n├─────┼─────┼─────┼─────┤\n"
         "│CPU 1│CPU 3│CPU 5│CPU 7│\n└─────┴─────┴─────┴─────┘\n"),
    ],
)  # fmt: skip
def test_pieces_stand_where_they_are_in_the_array(shape, spec, expected, capsys):
    width = 25 if len(shape) == 3 else 80
    visualize_sharding(shape, NamedSharding(MESH, spec), min_width=3, max_width=width)
    assert capsys.readouterr().out == expected


def test_colours_differ_from_piece_to_piece_and_pieces_have_so_many_lines():
    lines = drawn([["a"], ["b"], ["a"]], width=3, height=2, in_colour=True)
    assert len(lines) == 10
    assert lines[2] == "│\x1b[30;42m a \x1b[0m│" and lines[5] == "│\x1b[30;44m b \x1b[0m│"


def test_an_array_is_drawn_without_colours_where_nobody_sees_them(capsys):
    visualize_array_sharding(device_put(np.ones((4, 4)), on("x", "y")))
    assert capsys.readouterr().out.splitlines()[:3] == [
        "┌─────────┬─────────┐", "│  CPU 0  │  CPU 1  │", "├─────────┼─────────┤",
    ]  # fmt: skip


def test_a_sharding_is_handed_to_the_callback():
    seen = []
    inspect_array_sharding(device_put(np.ones(8), on("x")), callback=seen.append)
    assert seen == [on("x")]


def told(program, *args):
    """Return what a program that is given a function to look with tells it, by name."""
    seen = {}

    def look(name, value):
        inspect_array_sharding(value, callback=lambda s: seen.setdefault(name, []).append(s))

    run = jit(functools.partial(program, look))
    for _ in range(2):  # the second call compiles nothing
        run(*args)
    assert all(len(found) == 1 for found in seen.values())
    return {name: found[0] for name, found in seen.items()}


def test_values_inside_a_program_are_told_when_it_is_compiled():
    def program(look, x):
        look("argument", x)
        look("column sums", x.sum(0))
        y = with_sharding_constraint(x * 2, on("y"))
        look("constrained", y)

        def turn(carry, _):
            look("carry", carry)
            return carry + 1, None

        z = lax.scan(turn, x, None, length=2)[0]
        lax.cond(z.sum() > 0, lambda z: look("branch", z.T), lambda z: None, z)

    found = told(program, device_put(HOST, on("x", "y")))
    assert found == {
        "argument": on("x", "y"), "column sums": on("y"), "constrained": on("y"),
        "carry": on("x", "y"), "branch": on("y", "x"),
    }  # fmt: skip


def test_a_member_of_a_mesh_has_its_piece_whole_along_its_axes():
    x = device_put(HOST, on("x", "y"))

    def piece(look, v):
        look("piece", v)
        return v

    for names, spec, expected in [
        (("x", "y"), P("x", "y"), on()), (("x",), P("x"), on(None, "y")),
        (("y",), P(None, "y"), on("x")),
    ]:  # fmt: skip
        found = told(
            lambda look, v, names=names, spec=spec: shard_map(
                functools.partial(piece, look), mesh=MESH, in_specs=spec, out_specs=spec,
                axis_names=names)(v), x)  # fmt: skip
        assert found == {"piece": expected}


def test_several_axes_beside_manual_ones_are_refused():
    mesh = Mesh(MESH.devices.reshape(2, 2, 2), ("a", "b", "c"))

    def look(v):
        inspect_array_sharding(v, callback=print)
        return v

    run = jit(shard_map(look, mesh=mesh, in_specs=P("a"), out_specs=P("a"), axis_names={"a"}))
    text = r"(?s)XLA does not say along which of several axes.*'a'.*hint      look at the value out"
    with pytest.raises(ValueError, match=text):
        run(device_put(HOST, NamedSharding(mesh, P("a"))))


def test_on_one_device_a_value_is_there():
    found = told(lambda look, x: look("sine", lax.sin(x)), np.float32(1))
    assert found == {"sine": SingleDeviceSharding(devices()[0])}


def test_what_a_function_raises_that_is_told_is_raised_by_the_call():
    def stop(sharding):
        raise KeyError(sharding.spec)

    with pytest.raises(KeyError, match="PartitionSpec"):
        jit(lambda v: inspect_array_sharding(v, callback=stop))(device_put(HOST, on("x")))
    with pytest.raises(TypeError, match="inspect_array_sharding: expected a function, got an int"):
        inspect_array_sharding(HOST, callback=3)


def test_a_program_that_tells_python_is_of_its_process():
    compiled = jit(lambda v: inspect_array_sharding(v, callback=print)).lower(HOST).compile()
    with pytest.raises(ValueError, match="a program that calls Python functions cannot be stored"):
        serialize(compiled)


def test_a_traced_value_is_drawn_when_its_program_is_compiled(capsys):
    jit(lambda v: visualize_array_sharding(v.T))(device_put(HOST, on("x", "y")))
    assert capsys.readouterr().out.splitlines()[:2] == [
        "┌─────────┬─────────┬─────────┬─────────┐", "│  CPU 0  │  CPU 2  │  CPU 4  │  CPU 6  │",
    ]  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("has_rich", [True, False])
def test_a_terminal_shows_colours_with_rich_and_without(monkeypatch, has_rich):
    if has_rich:
        pytest.importorskip("rich")
        monkeypatch.setenv("COLORTERM", "truecolor")
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.delenv("NO_COLOR", raising=False)
    else:
        monkeypatch.setitem(sys.modules, "rich.console", None)  # importing it fails
    monkeypatch.setattr(sys, "stdout", Terminal())
    visualize_sharding((8,), on("y"))
    out = sys.stdout.getvalue()
    first = "48;2;166;206;227m" if has_rich else "30;42m"  # the same blue-green as in drawings
    assert first in out
    plain = re.sub(r"\x1b\[[\d;]*m", "", out)
    assert plain.splitlines()[1] == "│ CPU 0,2,4,6 │ CPU 1,3,5,7 │"
    if has_rich:
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setattr(sys, "stdout", Terminal())
        visualize_sharding((8,), on("y"))
        assert "48;" not in sys.stdout.getvalue()


def test_a_notebook_shows_the_drawing(monkeypatch, capsys):
    shown = []
    display = types.SimpleNamespace(display=shown.append)
    shell = types.SimpleNamespace(kernel=None)
    notebook = types.SimpleNamespace(get_ipython=lambda: shell, display=display)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    visualize_array_sharding(device_put(HOST, on("x", "y")))
    assert shown[0].svg().count("<rect") == 8
    assert capsys.readouterr().out == ""


def test_what_cannot_be_drawn_says_why():
    with pytest.raises(TypeError, match="this is not a sharding"):
        visualize_sharding((8,), "x")
    with pytest.raises(ValueError, match="visualize_sharding: dimension 0 does not divide"):
        visualize_sharding((3,), on("x"))


def test_a_picture_is_svg_in_notebooks_and_files_and_text_elsewhere(tmp_path):
    picture = sharding_picture(device_put(np.ones((8, 4), np.float32), on("x", "y")))
    root = ElementTree.fromstring(picture._repr_svg_())
    space = "{http://www.w3.org/2000/svg}"
    assert [t.text for t in root.iter(f"{space}text")] == [f"CPU {i}" for i in range(8)]
    places = {(r.get("x"), r.get("y")) for r in root.iter(f"{space}rect")}
    assert len(places) == 8
    assert len({r.get("fill") for r in root.iter(f"{space}rect")}) == 8
    picture.save(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text() == picture.svg()
    assert str(picture).count("CPU") == 8
    assert str(sharding_picture((8, 4), on("x"))).count("CPU 0,1") == 1
    with pytest.raises(TypeError, match="sharding_picture: this is not a sharding"):
        jit(sharding_picture)(np.ones(4))
    with pytest.raises(ValueError, match="does not divide evenly"):
        sharding_picture((3,), on("x"))
