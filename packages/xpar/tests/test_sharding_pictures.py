"""Pictures of shardings, compared as text."""

from xml.etree import ElementTree

import numpy as np
import pytest

from xjit import device_put, devices, jit
from xpar import Mesh, NamedSharding, P
from xpar.sharding_pictures import (
    drawn,
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)
from xpar.sharding_svg import sharding_picture

N = 8
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


@pytest.mark.parametrize("look", [
    visualize_array_sharding, lambda v: inspect_array_sharding(v, callback=print)
])  # fmt: skip
def test_a_traced_value_lies_nowhere_yet(look):
    with pytest.raises(TypeError, match=r"(?s)a traced value is on no device yet.*look at the res"):
        jit(look)(np.ones(8))


def test_what_cannot_be_drawn_says_why():
    with pytest.raises(TypeError, match="this is no sharding"):
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
    with pytest.raises(TypeError, match="sharding_picture: this is no sharding"):
        jit(sharding_picture)(np.ones(4))
    with pytest.raises(ValueError, match="does not divide evenly"):
        sharding_picture((3,), on("x"))
