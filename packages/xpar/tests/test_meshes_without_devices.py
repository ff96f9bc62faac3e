"""`shard_map` over an `AbstractMesh`: the devices are those of the context mesh, or of data."""

import gc

import numpy as np
import pytest

import xnp
from xbatch import vmap
from xjit import device_put, devices, jit
from xjit.sharding.meshes import AbstractMesh, AxisType
from xjit.sharding.shardings import NoMeshError
from xpar import (
    Mesh,
    NamedSharding,
    P,
    make_mesh,
    psum,
    set_mesh,
    shard_map,
    use_abstract_mesh,
    with_sharding_constraint,
)
from xprim import ShapeDtypeStruct, as_array, make_jaxpr

CPUS = np.array(devices("cpu")[:8], dtype=object)
MESH = Mesh(CPUS.reshape(4, 2), ("x", "y"))
BACKWARDS = Mesh(CPUS[::-1].reshape(4, 2), ("x", "y"))
SHAPE = MESH.abstract_mesh
HOST = np.arange(16, dtype=np.float32).reshape(8, 2)
SUMS = HOST.reshape(4, 2, 2).sum(0)


def summed(**options):
    return shard_map(lambda v: psum(v, "x"), mesh=SHAPE, in_specs=P("x"), out_specs=P(), **options)


def test_it_is_traced_with_no_devices_at_all():
    far = AbstractMesh((64,), ("far",))
    f = shard_map(lambda v: psum(v, "far"), mesh=far, in_specs=P("far"), out_specs=P())
    assert jit(f).eval_shape(ShapeDtypeStruct((128, 2), np.float32)).shape == (2, 2)
    assert "AbstractMesh" in str(make_jaxpr(f)(np.ones((128, 2), np.float32)))
    with use_abstract_mesh(far):
        g = shard_map(lambda v: psum(v, "far"), in_specs=P("far"), out_specs=P())
        assert jit(g).eval_shape(ShapeDtypeStruct((128, 2), np.float32)).shape == (2, 2)


@pytest.mark.parametrize("options", [{}, {"axis_names": {"x"}}], ids=["manual", "partly manual"])
@pytest.mark.parametrize("mesh", [MESH, BACKWARDS], ids=["in order", "backwards"])
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["as it is", "jit"])
def test_it_runs_where_its_arguments_lie(wrap, mesh, options):
    got = wrap(summed(**options))(device_put(HOST, NamedSharding(mesh, P("x"))))
    np.testing.assert_array_equal(got, SUMS)
    assert got.sharding.mesh.devices_in_order == mesh.devices_in_order


@pytest.mark.parametrize("options", [{}, {"axis_names": {"x"}}], ids=["manual", "partly manual"])
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["as it is", "jit"])
def test_it_runs_on_the_mesh_that_is_set(wrap, options):
    with set_mesh(BACKWARDS):
        got = wrap(summed(**options))(HOST)
    np.testing.assert_array_equal(got, SUMS)
    assert got.sharding.mesh.devices_in_order == BACKWARDS.devices_in_order


def test_each_call_has_the_devices_of_its_own_arguments():
    f = jit(summed())
    for mesh in (MESH, BACKWARDS, MESH):
        got = f(device_put(HOST, NamedSharding(mesh, P("x"))))
        assert got.sharding.mesh.devices_in_order == mesh.devices_in_order


def test_a_mesh_of_other_axes_is_refused():
    with set_mesh(make_mesh((8,), ("x",))), pytest.raises(ValueError, match="has other axes"):
        summed()(HOST)


@pytest.mark.parametrize("options", [{}, {"axis_names": {"far"}}], ids=["manual", "partly manual"])
def test_it_is_lowered_for_a_platform_that_is_named(options):
    gc.collect()
    far = AbstractMesh((64, 2), ("far", "near"), AxisType.Auto)
    f = jit(
        shard_map(lambda v: psum(v, "far"), mesh=far, in_specs=P("far"), out_specs=P(), **options)
    )
    traced = f.trace(ShapeDtypeStruct((128, 2), np.float32))
    lowered = traced.lower(lowering_platforms=("tpu",))
    text = lowered.as_text()
    assert '<["far"=64, "near"=2]>' in text and "sdy.manual_computation" in text
    with pytest.raises(NoMeshError, match="without devices"):
        lowered.compile()
    with pytest.raises(NoMeshError, match="without devices"):
        traced.lower()
    with pytest.raises(NoMeshError, match="without devices"):
        f(np.ones((128, 2), np.float32))


def test_shardings_over_it_are_lowered_for_a_platform_that_is_named():
    far = AbstractMesh((64, 2), ("far", "near"), AxisType.Auto)
    f = jit(lambda x: x @ x.T, in_shardings=NamedSharding(far, P("far")))
    traced = f.trace(ShapeDtypeStruct((128, 2), np.float32))
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert '[{"far"}, {}]' in text


OTHER_AXES = {
    "names": AbstractMesh((4, 2), ("a", "b"), AxisType.Auto),
    "order": AbstractMesh((2, 4), ("y", "x"), AxisType.Auto),
    "number": AbstractMesh((8,), ("x",), AxisType.Auto),
}
CALLS = {
    "shard_map": lambda mesh, spec: shard_map(
        lambda v: v, mesh=mesh, in_specs=spec, out_specs=spec
    ),
    "with_sharding_constraint": lambda mesh, spec: (
        lambda v: with_sharding_constraint(v, NamedSharding(mesh, spec))
    ),
    "in_shardings": lambda mesh, spec: jit(lambda v: v, in_shardings=NamedSharding(mesh, spec)),
}


@pytest.mark.parametrize("other", OTHER_AXES.values(), ids=OTHER_AXES)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_one_of_other_axes_than_the_mesh_of_the_argument_is_refused(call, other):
    x = device_put(HOST, NamedSharding(MESH, P("x")))
    with pytest.raises(ValueError, match="an abstract mesh has other axes than") as caught:
        call(other, P(other.axis_names[0]))(x)
    assert repr(other) in str(caught.value) and repr(MESH) in str(caught.value)
    np.testing.assert_array_equal(call(SHAPE, P("x"))(x), HOST)


def test_its_axes_are_explicit_if_nothing_is_said_as_those_of_make_mesh():
    assert AbstractMesh((2,), ("x",)).axis_types == (AxisType.Explicit,)


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["as it is", "jit"])
@pytest.mark.parametrize("place", [NamedSharding(MESH, P("x")), devices("cpu")[0], None])
def test_a_constraint_over_one_that_no_argument_fits_is_refused(wrap, place):
    other = AbstractMesh((2,), ("x",), AxisType.Auto)
    x = HOST if place is None else device_put(HOST, place)
    constrain = wrap(lambda v: with_sharding_constraint(v, NamedSharding(other, P("x"))))
    with pytest.raises(ValueError, match="and none has as many as it names") as caught:
        constrain(x)
    assert f"on {8 if isinstance(place, NamedSharding) else 1} devices" in str(caught.value)
    assert "an argument over a mesh of 2 devices" in str(caught.value)


def test_a_constraint_over_one_has_the_devices_of_an_argument_of_its_size():
    x = device_put(HOST, NamedSharding(BACKWARDS, P("x")))
    auto = SHAPE.update(axis_types=AxisType.Auto)
    got = jit(lambda v: with_sharding_constraint(v, NamedSharding(auto, P("y"))) + 1)(x)
    assert got.sharding == NamedSharding(BACKWARDS, P("y"))


def test_shardings_over_it_name_no_memory_of_their_own():
    assert NamedSharding(SHAPE, P("x")).memory_kind is None
    assert NamedSharding(SHAPE, P("x"), memory_kind="pinned_host").memory_kind == "pinned_host"
    assert NamedSharding(MESH, P("x")).memory_kind == "device"


@pytest.mark.parametrize("place", ["device_put", "with_sharding_constraint", "vmap", "jit"])
def test_a_sharding_over_the_abstract_mesh_in_context_has_the_devices_of_the_context_mesh(place):
    abstract = NamedSharding(SHAPE, P("x"))
    by_name = {
        "device_put": lambda x: device_put(x, abstract),
        "with_sharding_constraint": lambda x: with_sharding_constraint(x, abstract),
        "vmap": lambda x: vmap(lambda row: with_sharding_constraint(row, abstract), 1, 1)(x),
        "jit": jit(lambda x: x, out_shardings=abstract),
    }
    for mesh in (MESH, BACKWARDS):
        with set_mesh(mesh):
            got = by_name[place](as_array(HOST))
        assert got.sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2)
    with set_mesh(Mesh(CPUS, "z")), pytest.raises(ValueError, match="abstract mesh has no devices"):
        device_put(HOST, abstract)


@pytest.mark.parametrize("other", [3, AbstractMesh((2,), ("x",))])
@pytest.mark.parametrize("error", [TypeError, ValueError])
def test_what_is_no_mesh_of_devices_cannot_be_set(other, error):
    with pytest.raises(error, match="set_mesh: this is not a mesh"):
        set_mesh(other)


def test_an_array_like_a_description_over_no_devices_is_on_the_default_device():
    sharding = NamedSharding(AbstractMesh((2,), ("x",)), P("x"))
    like = ShapeDtypeStruct((4,), np.float32, sharding=sharding)
    np.testing.assert_array_equal(xnp.zeros_like(like), np.zeros(4))
    np.testing.assert_array_equal(xnp.full_like(like, 2), np.full(4, 2))
