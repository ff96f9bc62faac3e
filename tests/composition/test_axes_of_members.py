"""Explicit axes around and inside of `shard_map`; values that go from one mesh to another."""

import numpy as np
import pytest

import xnp
from xad import grad, hessian, vjp
from xbatch import vmap
from xjit import device_put, devices, jit
from xnp import lax
from xpar import (
    AxisType,
    NamedSharding,
    P,
    auto_axes,
    axis_index,
    make_mesh,
    psum_scatter,
    set_mesh,
    shard_map,
    smap,
)
from xprim import ShapeDtypeStruct, make_jaxpr, typeof

X = np.arange(16, dtype=np.float32).reshape(8, 2)
W = np.arange(4, dtype=np.float32).reshape(2, 2)
PRODUCT = X @ W


def alike(found, wanted):
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)


@pytest.fixture
def mesh():
    found = make_mesh((4, 2), ("x", "y"))
    with set_mesh(found):
        yield found


def test_what_members_close_over_is_whole_along_their_axes(mesh):
    x, w = device_put(X, P("x", None)), device_put(W, P(None, "y"))

    def loss(w, call):
        return (call(lambda a: a @ w)(x) ** 2).sum()

    slope = X.T @ (2 * PRODUCT)
    calls = {
        "[8@x,2]": lambda f: shard_map(f, in_specs=P("x"), out_specs=P("x")),
        "[8@x,2@y]": lambda f: smap(f, in_axes=0, out_axes=0, axis_name="x"),
    }
    for wanted, call in calls.items():
        y = jit(call(lambda a: a @ w))(x)
        assert str(typeof(y)) == f"float32{wanted}"
        alike(y, PRODUCT)
        for through in (lambda f: f, jit):
            found = through(grad(lambda w, call=call: loss(w, call)))(w)
            assert str(typeof(found)) == "float32[2,2@y]"
            alike(found, slope)
        alike(vmap(lambda w, call=call: call(lambda a: a @ w)(x))(xnp.stack([w, w]))[1], PRODUCT)
    seen = []
    y = auto_axes(lambda a: (seen.append(typeof(a @ w)), a @ w)[1], out_sharding=P("x", None))(x)
    assert str(seen[0]) == "float32[8,2]"
    alike(y, PRODUCT)


def test_scattered_sums_of_values_that_other_axes_cut(mesh):
    x = device_put(np.ones((16, 4), np.float32), P("x", "y"))
    f = smap(lambda a: psum_scatter(a, "x", tiled=True), in_axes=0, out_axes=0, axis_name="x")
    assert str(typeof(jit(f)(x))) == "float32[4@x,4@y]"
    alike(f(x), np.full((4, 4), 4))
    alike(grad(lambda x: (f(x) ** 2).sum())(x), np.full((16, 4), 8))


def test_a_member_of_a_member_hands_on_what_is_one_value_along_its_axis(mesh):
    x = device_put(X, P("x", "y"))

    def outer(a):
        return smap(lambda b: b * axis_index("y"), in_axes=1, out_axes=1, axis_name="y")(a)

    alike(jit(smap(outer, in_axes=0, out_axes=0, axis_name="x"))(x), X * [0, 1])
    with pytest.raises(ValueError, match="varies over the axis 'y'"):
        smap(lambda a: a * axis_index("y"), in_axes=1, out_axes=None, axis_name="y")(x)


def test_arrays_of_an_explicit_mesh_that_is_not_set_have_derivatives():
    cut = NamedSharding(make_mesh((2, 3), ("i", "j"), devices=devices("cpu")[:6]), P("i", "j"))
    x = device_put(np.ones((4, 6), np.float32), cut)
    slope = grad(lambda x: (x * x).sum())(x)
    assert slope.sharding == cut
    alike(slope, np.full((4, 6), 2))
    alike(np.asarray(hessian(lambda x: (x**3).sum())(x))[0, 0, 0, 0], 6)
    other = make_mesh((2, 3), ("i", "j"), devices=devices("cpu")[2:8])  # of the same shape
    assert grad(lambda x: x.sum())(x).sharding == cut
    with set_mesh(cut.mesh):
        assert grad(lambda x: x.sum())(x).sharding == cut
    del other


def test_derivatives_go_back_through_any_number_of_meshes():
    x = np.arange(8, dtype=np.float32)
    places = [
        NamedSharding(make_mesh((8,), ("a",), kind), P("a"))
        for kind in (AxisType.Auto, AxisType.Explicit)
    ]  # fmt: skip
    few = NamedSharding(make_mesh((2,), ("b",), devices=devices("cpu")[4:6]), P("b"))
    places += [few, devices("cpu")[3]]

    def chained(x):
        for place in places:
            x = xnp.sin(device_put(x, place))
        return x.sum()

    def plain(x):
        for _ in places:
            x = xnp.sin(x)
        return x.sum()

    for start in (None, *places):
        value = xnp.asarray(x) if start is None else device_put(x, start)
        slope = grad(chained)(value)
        assert slope.devices() == value.devices()
        assert slope.committed == (start is not None)
        alike(slope, grad(plain)(x))
        alike(vmap(grad(chained))(xnp.stack([value] * 2))[1], grad(plain)(x))
    alike(grad(lambda x: grad(chained)(x).sum())(x), grad(lambda x: grad(plain)(x).sum())(x))
    moved, pullback = vjp(lambda x: device_put(x, few), x)
    assert moved.sharding == few
    assert pullback(moved)[0].devices() == xnp.asarray(x).devices()


def test_a_program_says_where_traced_values_are_put(mesh):
    x = ShapeDtypeStruct((8,), np.float32)
    assert "device_put" in str(make_jaxpr(lambda x: device_put(x, P("x")))(x))
    y = jit(lambda x: lax.sin(device_put(x, devices("cpu")[0])))(device_put(X, P("x")))
    alike(y, np.sin(X))
