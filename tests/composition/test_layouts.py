"""`experimental.layout`: the order of dimensions in memory, inside of programs and around them."""

import numpy as np
import pytest

import xstack.numpy as xnp
from xstack import NamedSharding, P, device_put, devices, grad, jit, jvp, make_mesh, pmap, vmap
from xstack.experimental.layout import Format, Layout, with_layout_constraint
from xstack.sharding import SingleDeviceSharding

X = np.arange(6, dtype=np.float32).reshape(2, 3)
TURNED = Layout((1, 0))


def over(*axes):
    """Return a sharding over a mesh of two devices."""
    return NamedSharding(make_mesh((2,), ("i",)), P(*axes))


def twice(x):
    return with_layout_constraint(x + x, TURNED)


def test_a_constraint_is_obeyed_inside_of_a_program_and_changes_no_value():
    compiled = jit(twice).lower(X).compile()
    assert "f32[2,3]{0,1}" in compiled.as_text()
    assert "f32[2,3]{0,1}" not in jit(lambda x: x + x).lower(X).compile().as_text()
    np.testing.assert_array_equal(compiled(X), 2 * X)
    np.testing.assert_array_equal(twice(X), 2 * X)


def test_a_constraint_is_written_as_by_the_oracle():
    jax = pytest.importorskip("jax")
    oracle = pytest.importorskip("jax.experimental.layout")

    def written(jit, f, layout):
        text = str(jit(lambda x: f(x, layout)).lower(X).compiler_ir("stablehlo"))
        (line,) = [line for line in text.splitlines() if "LayoutConstraint" in line]
        return line.partition("{")[2]

    theirs = written(jax.jit, oracle.with_layout_constraint, oracle.Layout((1, 0)))
    assert written(jit, with_layout_constraint, TURNED) == theirs


def test_a_constraint_is_transformed():
    batch = np.stack([X, X + 1, X - 1], 1)
    np.testing.assert_array_equal(vmap(jit(twice), 1, 1)(batch), 2 * batch)
    text = jit(vmap(twice, 1, 1)).lower(batch).as_text()
    assert "dense<[1, 2, 0]> : tensor<3xindex>" in text  # the fastest first, examples outermost
    np.testing.assert_array_equal(grad(lambda x: (jit(twice)(x) * X).sum())(X), 2 * X)
    np.testing.assert_array_equal(jvp(jit(twice), (X,), (X,))[1], 2 * X)
    np.testing.assert_array_equal(with_layout_constraint({"a": X}, {"a": TURNED})["a"], X)


def test_an_array_says_how_it_lies():
    row_by_row = Layout((0, 1), ())
    x = xnp.asarray(X)
    assert x.format == Format(row_by_row, SingleDeviceSharding(devices()[0]))
    spread = device_put(X, Format(Layout((0, 1)), over("i")))
    assert spread.format == Format(row_by_row, over("i"))
    np.testing.assert_array_equal(spread, X)


def test_a_compiled_program_says_how_its_arguments_and_results_lie():
    here = SingleDeviceSharding(devices()[0])
    compiled = jit(lambda x, y, z: {"a": x.T, "b": y}).lower(X, y=1.0, z=2.0).compile()
    assert compiled.input_shardings == ((here,), {"y": here, "z": None})
    assert compiled.output_shardings == {"a": here, "b": here}
    row_by_row = Format(Layout((0, 1), ()), here)
    scalar = Format(Layout((), ()), here)
    assert compiled.input_formats == ((row_by_row,), {"y": scalar, "z": Format()})
    assert compiled.output_formats == {"a": row_by_row, "b": scalar}
    assert jax_says_the_same(compiled)


def jax_says_the_same(compiled):
    """Whether the oracle, where there is one, has trees of the same structure and layouts."""
    jax = pytest.importorskip("jax")
    theirs = jax.jit(lambda x, y, z: {"a": x.T, "b": y}).lower(X, y=1.0, z=2.0).compile()
    (x,), rest = theirs.input_formats
    (ours,), own = compiled.input_formats
    return rest.keys() == own.keys() and x.layout.major_to_minor == ours.layout.major_to_minor


def test_a_program_over_a_mesh_says_how_they_lie():
    asked = Format(Layout.AUTO, over("i"))
    compiled = jit(lambda x: (x + 1, x.sum()), in_shardings=asked).lower(X).compile()
    assert compiled.input_shardings == ((over("i"),), {})
    first, total = compiled.output_shardings
    results = compiled(X)
    assert (first, total) == (results[0].sharding, results[1].sharding)
    there = jit(lambda x: x, out_shardings=over("i")).lower(X).compile()
    assert there.output_shardings == over("i") == there(X).sharding
    each = pmap(lambda x: x, axis_name="i")
    assert each.lower(X).compile().output_shardings == each(X).sharding
    elsewhere = SingleDeviceSharding(devices()[1])
    moved = jit(lambda x: x, out_shardings=elsewhere).lower(X).compile()
    assert moved.output_shardings == elsewhere == moved(X).sharding


WRONG = {
    "a layout alone": (lambda: Format(TURNED), ValueError, "Format: a layout is of an array on"),
    "no layout": (lambda: Format(3), TypeError, "Format: this is not a layout"),
    "no sharding": (lambda: Format(None, 3), TypeError, "Format: this is not a sharding"),
    "tiles": (
        lambda: device_put(X, Format(Layout((0, 1), ((2, 2),)), over())), ValueError,
        r"(?s)device_put: arrays have no tiles.*tiling=\(\(2, 2\),\)",
    ),
    "a constraint of other rank": (
        lambda: with_layout_constraint(X, Layout((0,))), ValueError,
        "with_layout_constraint: a layout is an order of the dimensions",
    ),
    "a constraint that is none": (
        lambda: with_layout_constraint(X, (1, 0)), ValueError, "prefix and the full tree differ",
    ),
    "a constraint that is a number": (
        lambda: with_layout_constraint(X, 3), ValueError,
        "with_layout_constraint: this is not a layout",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_layouts_are_refused(case):
    make, kind, text = WRONG[case]
    with pytest.raises(kind, match=text):
        make()
