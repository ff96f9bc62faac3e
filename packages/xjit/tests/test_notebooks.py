"""What a notebook shows of meshes, shardings, and lowered and compiled functions."""

import re
from types import SimpleNamespace

import numpy as np

import xjit
import xnp
from xjit.sharding.meshes import AbstractMesh, AxisType, Mesh, mesh_html
from xjit.sharding.shardings import NamedSharding, PartitionSpec


def rows_of(html):
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in rows]


def names_of_devices(*shape, names):
    """What stands for a mesh of more devices than there are."""
    devices = np.array([f"<cpu:{i}>" for i in range(np.prod(shape))], object).reshape(shape)
    return SimpleNamespace(
        axis_names=names, axis_types=(AxisType.Auto,) * len(names), devices=devices,
        shape_tuple=tuple(zip(names, shape, strict=True)),
    )  # fmt: skip


def test_a_mesh_is_the_grid_of_its_devices_with_the_names_of_the_axes():
    html = mesh_html(names_of_devices(2, 3, names=("data", "<model>")))
    assert "&#x27;data&#x27;: 2 (Auto)" in html and "<model>" not in html
    head, *rows = rows_of(html)
    assert head == ["data &#8595; &lt;model&gt; &#8594;", "0", "1", "2"]
    assert rows[1] == ["1", *[f"&lt;cpu:{i}&gt;" for i in (3, 4, 5)]]
    row = rows_of(mesh_html(names_of_devices(4, names=("x",))))[1]
    assert row[1:] == [f"&lt;cpu:{i}&gt;" for i in range(4)]
    html = mesh_html(names_of_devices(2, 2, 3, names=("a", "b", "c")))
    assert "the first of 2 planes" in html and len(rows_of(html)) == 3
    assert len(mesh_html(names_of_devices(300, 300, names=("x", "y")))) < 20_000
    here = Mesh(np.array(xjit.devices()[:1]), ("x",))._repr_html_()
    assert rows_of(here)[1][1] == str(xjit.devices()[0])
    assert "<table>" not in AbstractMesh((2,), ("x",))._repr_html_()


def test_a_sharding_says_what_cuts_each_dimension():
    mesh = AbstractMesh((4, 2), ("data", "model"))
    html = NamedSharding(mesh, PartitionSpec("data", None, "model"))._repr_html_()
    assert rows_of(html) == [
        ["dimension", "sharded along", "pieces"],
        ["0", "&#x27;data&#x27;", "4"], ["1", "no axis", "1"], ["2", "&#x27;model&#x27;", "2"],
    ]  # fmt: skip
    both = NamedSharding(mesh, PartitionSpec(("data", "model")))._repr_html_()
    assert rows_of(both)[1] == ["0", "&#x27;data&#x27;, &#x27;model&#x27;", "8"]
    assert "replicated on each device" in NamedSharding(mesh, PartitionSpec())._repr_html_()


def test_a_lowered_and_a_compiled_function_show_their_types_and_fold_their_text():
    @xjit.jit
    def total(x, y):
        return (x @ y).sum(), x

    lowered = total.lower(xnp.ones((2, 3)), xnp.ones(3))
    takes = "<code>float32[2,3]</code>, <code>float32[3]</code>"
    html = lowered._repr_html_()
    assert html.startswith("<div><code>Lowered(total)</code>")
    assert ["takes", takes] in rows_of(html)
    assert ["returns", "<code>float32[]</code>, <code>float32[2,3]</code>"] in rows_of(html)
    assert "<details><summary>StableHLO" in html and "stablehlo.dot_general" in html
    html = lowered.compile()._repr_html_()
    assert ["takes", takes] in rows_of(html) and "<summary>HLO" in html
    assert re.search(r"argument 36\b", html)
    nothing = xjit.jit(lambda: ()).lower()._repr_html_()
    assert ["takes", "nothing"] in rows_of(nothing) and ["returns", "nothing"] in rows_of(nothing)
