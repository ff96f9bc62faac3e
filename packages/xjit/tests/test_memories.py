"""Kinds of memory and places of computation."""

import numpy as np
import pytest

import xnp
from xjit import device_put, devices, jit
from xjit.dispatch.sharded_arrays import (
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from xjit.export import deserialize, export
from xjit.lowering.operation_metadata import Space, compute_on, scheduling_group, xla_metadata_call
from xjit.sharding.meshes import AxisType, Mesh
from xjit.sharding.shardings import NamedSharding, P, SingleDeviceSharding, TiledSharding
from xnp import lax
from xprim import eval_shape, make_jaxpr, typeof

HOST = "pinned_host"
X = np.float32([1, 2, 3])
CPUS = np.array(devices("cpu")[:8], dtype=object)
MESH = Mesh(CPUS, ("x",))
ROW = np.arange(8, dtype=np.float32)


@pytest.mark.parametrize(("compute_type", "written"), [
    ("device_host", '_xla_compute_type = "host"'), ("device", '_xla_compute_type = "dense"'),
    ("gpu_stream:3", '_xla_stream_annotation = "3"'),
])  # fmt: skip
def test_the_compiler_is_told_where_a_function_runs(compute_type, written):
    on = compute_on(lambda x: xnp.sin(x) * 2, compute_type=compute_type,
                    out_memory_spaces=Space.Device)  # fmt: skip
    program = jit(lambda x: on(x) + 1).lower(X)
    assert program.as_text().count(written) == 2  # the sum is not among them
    np.testing.assert_allclose(program.compile()(X), np.sin(X) * 2 + 1, rtol=1e-6)
    np.testing.assert_allclose(on(X), np.sin(X) * 2, rtol=1e-6)


def test_settings_of_a_place_are_written_as_json():
    on = compute_on(compute_type="device_host", compiler_options={"a": [1]})
    assert r'backend_config = "{\22a\22: [1]}"' in jit(on(lambda x: x * 2)).lower(X).as_text()


@pytest.mark.parametrize(("options", "error", "text"), [
    ({"compute_type": "moon"}, ValueError, "unknown compute_type 'moon'"),
    ({"compute_type": 3}, TypeError, "the place is given by its name"),
    ({"compute_type": "device", "out_memory_spaces": (Space.Host,)}, ValueError, "Space.Host"),
])  # fmt: skip
def test_places_that_are_not_there_are_refused(options, error, text):
    with pytest.raises(error, match=text):
        compute_on(lambda x: x, **options)
    with pytest.raises(TypeError, match="expected a function"):
        compute_on(3, compute_type="device")


def kinds(x):
    """Return the kinds of memory that the runtime itself tells of the pieces of an array."""
    pieces = x.buffer._arrays
    told = {shard.data.sharding.memory_kind for shard in x.addressable_shards}
    # the public `sharding` and `memory_kind` are there once JAX is imported, which adds them
    assert told == {piece._sharding._memory_kind or "device" for piece in pieces}
    return told


def test_spaces_are_kinds_of_memory():
    x = xnp.asarray(X)
    tree = device_put({"a": x, "b": X}, {"a": Space.Host, "b": Space.Device})
    assert kinds(tree["a"]) == {"pinned_host"} and tree["b"].sharding.memory_kind == "device"
    assert tree["a"].device == CPUS[0] and tree["a"].devices() == {CPUS[0]}
    back = device_put(tree["a"], Space.Device)
    assert back.sharding.memory_kind == "device"
    assert device_put(tree["a"], Space.Any) is tree["a"]
    np.testing.assert_array_equal(back, X)
    np.testing.assert_array_equal(jit(lambda x: device_put(x * 2, Space.Host))(X), X * 2)
    assert repr(Space.Any) == "MemorySpace.Any"


@pytest.mark.parametrize("kind", ["pinned_host", "unpinned_host", "device"])
def test_arrays_are_in_the_memory_that_their_sharding_names(kind):
    rows = NamedSharding(MESH, P("x"))
    there = rows.with_memory_kind(kind)
    assert there == NamedSharding(MESH, P("x"), memory_kind=kind) == rows.update(memory_kind=kind)
    assert (there == rows) is (kind == "device") is there.is_equivalent_to(rows, 1)
    assert (f"memory_kind={kind!r}" in repr(there)) is (kind != "device")
    made = [
        device_put(ROW, there), device_put(device_put(ROW, rows), there),
        device_put(device_put(ROW), there),
        make_array_from_callback((8,), there, lambda index: ROW[index]),
        make_array_from_single_device_arrays(
            (8,), there, [device_put(ROW[i : i + 1], d) for i, d in enumerate(CPUS)]
        ),
        make_array_from_process_local_data(there, ROW),
    ]  # fmt: skip
    for x in made:
        assert x.sharding == there and kinds(x) == {kind}
        np.testing.assert_array_equal(x, ROW)
        assert device_put(x, there) is x
        again = device_put(x, rows)
        assert again.sharding == rows and kinds(again) == {"device"}
        np.testing.assert_array_equal(again, ROW)


@pytest.mark.parametrize("kind", ["pinned_host", "unpinned_host"])
def test_programs_compute_on_the_device_and_leave_results_where_they_are_asked_for(kind):
    rows = NamedSharding(MESH, P("x"))
    there, alone = rows.with_memory_kind(kind), SingleDeviceSharding(CPUS[0], memory_kind=kind)
    x, y = device_put(ROW, there), device_put(ROW, alone)
    on_rows, on_one = (rows, SingleDeviceSharding(CPUS[0])) if kind != HOST else (there, alone)
    for f in (lambda a: a + 1, jit(lambda a: a + 1), jit(lambda a: a + 1, in_shardings=there)):
        assert f(x).sharding == on_rows
        np.testing.assert_array_equal(f(x), ROW + 1)
    for f in (lambda a: a + 1, jit(lambda a: a + 1)):
        assert f(y).sharding == on_one
        np.testing.assert_array_equal(f(y), ROW + 1)
    assert jit(lambda a: a + 1, in_shardings=rows)(x).sharding == rows
    assert jit(lambda a: a + 1, in_shardings=there)(ROW).sharding == rows
    turned = Mesh(CPUS[::-1], ("x",))
    backwards = NamedSharding(turned, P("x"), memory_kind=kind)
    f = jit(lambda a: (a * 2, a + 1, a - 1), out_shardings=(there, None, backwards))
    for _ in range(3):  # the second call takes the short way, where there is one
        double, more, less = f(ROW)
        assert (double.sharding, more.sharding.memory_kind) == (there, "device")
        assert less.sharding == backwards and kinds(double) == kinds(less) == {kind}
        for got, wanted in ((double, ROW * 2), (more, ROW + 1), (less, ROW - 1)):
            np.testing.assert_array_equal(got, wanted)
    assert f.lower(ROW).compile().output_shardings[0] == there
    one = jit(lambda a: a * 2, out_shardings=alone)(ROW)
    assert one.sharding == alone and kinds(one) == {kind}
    given = device_put(x, rows, donate=True)
    np.testing.assert_array_equal(given, ROW)
    with pytest.raises(RuntimeError, match="donated"):
        x + 1


def _typed_on_host(f, *args):
    """Return results, after a look at their types, their places and those of `make_jaxpr`."""
    results = f(*args)
    types = make_jaxpr(f)(*args).out_avals
    assert [typeof(y) for y in results] == list(types)
    assert [y.sharding.memory_kind for y in results] == [
        HOST if t.memory_space is Space.Host else "device" for t in types
    ]
    return results


AXES = [None, AxisType.Auto, AxisType.Explicit]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("axis", AXES)
def test_types_say_what_is_in_the_memory_of_the_host(axis):
    sharding = SingleDeviceSharding(CPUS[0]) if axis is None else NamedSharding(
        Mesh(CPUS, ("x",), axis_types=(axis,)), P("x"))  # fmt: skip
    x = device_put(np.stack([ROW] * 8), sharding.with_memory_kind(HOST))
    cut = "8@x" if axis is AxisType.Explicit else "8"
    assert typeof(x).memory_space is Space.Host and str(typeof(x)) == f"float32<host>[{cut},8]"
    assert typeof(x).str_short() == f"f32<host>[{cut},8]"
    kinds = {axis: ("x",)} if axis is AxisType.Explicit else {}  # types know no others
    assert typeof(x).str_short(mesh_axis_types=True) == f"f32<host>[{cut},8]({kinds})"
    assert typeof(xnp.ones(3)).memory_space is Space.Device
    assert typeof(x).update(memory_space=Space.Device) is typeof(device_put(x, Space.Device))
    assert typeof(x).update(dtype="int32").memory_space is Space.Host

    def compute(x):
        return (
            x, x + 1, xnp.sin(x) * x, x.sum(), x.sum(0), x.T, x[1], x > 2, x.at[:, 0].set(1.0),
            x.astype("int32"), xnp.where(x > 2, x, 0.0), xnp.concatenate([x, x]),
            lax.cond(x.sum() > 0, lambda y: y + y, lambda y: y, x), xnp.zeros_like(x),
            lax.fori_loop(0, 3, lambda i, y: 2 * y, x), device_put(x, Space.Device) * 2,
        )  # fmt: skip

    expected = compute(np_like := xnp.asarray(np.asarray(x)))
    assert all(typeof(y).memory_space is Space.Device for y in expected) and np_like is not x
    for f in (compute, jit(compute)):
        for got, wanted in zip(_typed_on_host(f, x), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)  # of sums in another order


@pytest.mark.parametrize("axis", AXES)
def test_operands_in_two_memories_are_refused(axis):
    sharding = SingleDeviceSharding(CPUS[0]) if axis is None else NamedSharding(
        Mesh(CPUS, ("x",), axis_types=(axis,)), P("x"))  # fmt: skip
    x, y = device_put(ROW, sharding.with_memory_kind(HOST)), device_put(ROW, sharding)
    for f in (lambda x, y: x + y, jit(lambda x, y: x + y)):
        with pytest.raises(ValueError, match="add: operands are in the memory of the host and in"):
            f(x, y)
    np.testing.assert_array_equal(device_put(x, Space.Device) + y, 2 * ROW)
    assert typeof(x * y.sum()).memory_space is Space.Host  # a scalar agrees with any


def test_shapes_on_the_host_are_places_for_programs_and_arrays():
    x = device_put(ROW, SingleDeviceSharding(CPUS[0]).with_memory_kind(HOST))
    shape = eval_shape(lambda x: x + 1, x)
    double = jit(lambda x: 2 * x)
    asked = jit(lambda x: 2 * x, out_shardings=shape.sharding)
    for y in (double.lower(shape).compile()(x), asked(ROW), device_put(2 * ROW, shape.sharding)):
        np.testing.assert_array_equal(y, 2 * ROW)
        assert y.sharding.memory_kind == HOST


def test_exported_programs_keep_the_memory_of_types():
    rows = NamedSharding(Mesh(CPUS, ("x",), axis_types=(AxisType.Explicit,)), P("x"))
    for sharding in (rows, SingleDeviceSharding(CPUS[0])):
        x = device_put(ROW, sharding.with_memory_kind(HOST))
        stored = export(jit(lambda x: (2 * x, x.sum())))(x).serialize()
        loaded = deserialize(stored)
        assert loaded.in_avals == (typeof(x),)
        for y, aval in zip(loaded.call(x), loaded.out_avals, strict=True):
            assert typeof(y) is aval and y.sharding.memory_kind == HOST
            np.testing.assert_array_equal(y, 2 * ROW if y.ndim else ROW.sum())


def test_memory_that_is_not_there_is_refused_by_name():
    with pytest.raises(ValueError, match="'device', 'pinned_host' or 'unpinned_host'"):
        NamedSharding(MESH, P("x"), memory_kind="tape")
    with pytest.raises(ValueError, match="unknown memory kind 'tape'"):
        SingleDeviceSharding(CPUS[0]).with_memory_kind("tape")
    pieces = TiledSharding(tuple(CPUS), NamedSharding(MESH, P("x")).tiles(1))
    assert pieces.with_memory_kind("device") is pieces
    with pytest.raises(ValueError, match="pieces without names"):
        pieces.with_memory_kind("pinned_host")


def test_groups_of_operations_are_named():
    grouped = scheduling_group("g")(lambda x: x * 2)
    marked = xla_metadata_call(lambda x: grouped(x) + 1, tag=True)
    text = jit(marked).lower(X).as_text()
    assert text.count('scheduling_group = "g"') == 1 and text.count('tag = "true"') == 2
    np.testing.assert_array_equal(jit(marked)(X), X * 2 + 1)
    with pytest.raises(TypeError, match="expected a function"):
        xla_metadata_call(3)
