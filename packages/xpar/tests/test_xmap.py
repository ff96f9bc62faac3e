"""Named axes: the same program as a batch, over a mesh, and over both, against arrays."""

import numpy as np
import pytest

import xnp
from xbatch import vmap
from xjit import devices, jit
from xnp import lax
from xpar import (
    Mesh,
    NamedSharding,
    P,
    all_gather,
    axis_index,
    axis_size,
    named_shape,
    pmax,
    pmean,
    ppermute,
    psum,
    set_mesh,
    xmap,
)

MESH = Mesh(np.array(devices("cpu")[:8]).reshape(4, 2), ("x", "y"))
RNG = np.random.default_rng(0)
# where the axes `batch` and `model` run; sizes 8 and 4
RESOURCES = [
    {},
    {"batch": "x"},
    {"model": "y"},
    {"batch": "x", "model": "y"},
    {"batch": ("x", "y")},
    {"model": "x"},
]


@pytest.mark.parametrize("resources", RESOURCES, ids=str)
def test_a_product_over_named_axes_is_that_of_matrices(resources):
    a, b = (RNG.normal(size=s).astype(np.float32) for s in ((8, 4, 3), (5, 4)))
    product = xmap(
        lambda row, col: psum(row[None, :] * col[:, None], "model"),
        in_axes=(["batch", "model", ...], {"model": 1}), out_axes={"batch": 1},
        axis_resources=resources, mesh=MESH,
    )  # fmt: skip
    # a sum of 4 float32 terms in another order
    want = np.einsum("bmk,jm->jbk", a, b)
    np.testing.assert_allclose(product(a, b), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jit(product)(a, b), want, rtol=1e-5, atol=1e-6)


COLLECTIVES = {
    "pmean": lambda v: v - pmean(v, "batch"),
    "pmax": lambda v: pmax(v, "batch"),
    "all_gather": lambda v: all_gather(v, "batch") * v[0],
    "axis_index": lambda v: v * axis_index("batch"),
    "axis_size": lambda v: v * axis_size("batch") + psum(1, "batch"),
}


@pytest.mark.parametrize("resources", [{}, {"batch": "x"}, {"batch": ("y", "x")}], ids=str)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_over_a_name_are_the_same_wherever_it_runs(name, resources):
    x = RNG.normal(size=(16, 3)).astype(np.float32)
    member = COLLECTIVES[name]
    got = xmap(member, {"batch": 0}, {0: "batch"}, axis_resources=resources, mesh=MESH)(x)
    want = vmap(member, axis_name="batch")(x)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)  # sums in another order


def test_members_send_to_each_other_where_each_device_has_one():
    ring = [(i, (i + 1) % 4) for i in range(4)]
    x = np.arange(4, dtype=np.float32)
    for resources in ({}, {"ring": "x"}):
        turn = xmap(lambda v: ppermute(v, "ring", ring), ["ring"], ["ring"],
                    axis_resources=resources, mesh=MESH)  # fmt: skip
        np.testing.assert_array_equal(turn(x), np.roll(x, 1))


def test_results_lie_as_their_names_are_cut():
    x = np.ones((8, 4), np.float32)
    with set_mesh(MESH):
        y = xmap(lambda v: v * 2, ["b", "m"], {"m": 0, "b": 1},
                 axis_resources={"b": "x", "m": "y"})(x)  # fmt: skip
    assert y.shape == (4, 8)
    assert y.sharding == NamedSharding(MESH, P("y", "x"))


def test_trees_of_arguments_and_axes_that_no_argument_has():
    params = {"w": RNG.normal(size=(3, 4)).astype(np.float32), "b": np.float32(1)}
    x = RNG.normal(size=(8, 3)).astype(np.float32)
    layer = xmap(
        lambda p, v: {"y": lax.mul(v @ p["w"], 1.0) + p["b"] + axis_index("copies")},
        in_axes=({"w": {"units": 1}, "b": {}}, {"batch": 0}),
        out_axes={"y": ["copies", "batch", "units"]}, axis_sizes={"copies": 2},
        axis_resources={"batch": "x", "copies": "y"}, mesh=MESH,
    )  # fmt: skip
    want = (x @ params["w"] + 1)[None] + np.arange(2)[:, None, None]
    np.testing.assert_allclose(layer(params, x)["y"], want, rtol=1e-5, atol=1e-6)


def test_named_shapes_tell_over_which_axes_a_value_varies():
    seen = []

    def member(x):
        seen.append((named_shape(x), named_shape(psum(x, "b")), x.shape))
        return x

    for resources in ({}, {"b": "x"}):
        xmap(member, ["b", "m", ...], ["b", "m", ...], axis_resources=resources, mesh=MESH)(
            np.ones((8, 2, 3), np.float32)
        )
    assert seen[0] == seen[1] == ({"b": 8, "m": 2}, {"m": 2}, (3,))
    assert named_shape(xnp.ones(3)) == {}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"axis_resources": {"b": "z"}}, "the mesh has no axis 'z', the resource of 'b'"),
        ({"axis_resources": {"b": "x", "m": "x"}}, "'x' of the mesh is the resource of two names"),
        ({"axis_resources": {"c": "x"}}, "the size of the axis 'c' is not known"),
        ({"axis_resources": {"m": "x"}}, r"(?s)'m' does not divide.*size 3, 4 devices"),
        ({"axis_sizes": {"b": 5}}, "the axis 'b' has two sizes: 5 and 8"),
        ({"in_axes": ["b", "b"]}, "in_axes names a dimension or an axis twice"),
        ({"in_axes": {"b": -1}}, "counts dimensions from the first"),
        ({"in_axes": {"b": 2}}, "argument 0 has no dimension 2 for the axis 'b'"),
        ({"in_axes": ({"b": 0}, {"b": 0})}, "not a tree prefix of the arguments"),
        ({"out_axes": {}}, "(?i)out_axes"),
    ],
)
def test_what_does_not_fit_is_refused(options, text):
    given = {"in_axes": ["b", "m"], "out_axes": ["b", "m"], "mesh": MESH} | options
    with pytest.raises((ValueError, TypeError), match=text):
        xmap(lambda v: v, **given)(np.ones((8, 3), np.float32))


def test_resources_need_a_mesh_and_axes_are_said_by_name():
    with pytest.raises(ValueError, match="need a mesh, and none is set"):
        xmap(lambda v: v, ["b"], ["b"], axis_resources={"b": "x"})(np.ones(4))
    with pytest.raises(TypeError, match=r"(?s)in_axes says which dimensions have names.*got +0"):
        xmap(lambda v: v, 0, ["b"])
    with pytest.raises(TypeError, match="positional arguments alone"):
        xmap(lambda v: v, ["b"], ["b"])(v=np.ones(4))


def test_a_call_with_arguments_of_a_known_type_is_not_traced_again():
    seen = []

    def member(v):
        seen.append(v)
        return v * 2

    double = xmap(member, ["batch"], ["batch"], axis_resources={"batch": "x"}, mesh=MESH)
    for _ in range(3):
        np.testing.assert_array_equal(double(np.ones(8, np.float32)), np.full(8, 2))
    assert len(seen) == 1
    assert double(np.ones(4, np.float32)).shape == (4,)
    assert len(seen) == 2


def test_the_mesh_of_a_call_is_the_one_that_is_set_then():
    other = Mesh(np.array(devices("cpu")[:2]), ("x",))
    double = xmap(lambda v: v * 2, ["batch"], ["batch"], axis_resources={"batch": "x"})
    for mesh in (MESH, other, MESH):
        with set_mesh(mesh):
            assert double(np.ones(8, np.float32)).sharding == NamedSharding(mesh, P("x"))
