"""Meshes, partition specs and shardings as values, against plain index arithmetic."""

import copy
import gc
import itertools
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from xjit import device_put, devices, jit
from xjit.jaxlib_gateway import Tiles
from xjit.sharding.meshes import AbstractMesh, AxisType, Mesh, meshes_shaped
from xjit.sharding.shardings import (
    NamedSharding,
    P,
    PartitionSpec,
    SingleDeviceSharding,
    TiledSharding,
    name_tiles,
)

N = 8
CPUS = np.array(devices("cpu")[:N], dtype=object)


@pytest.fixture
def mesh():
    return Mesh(CPUS.reshape(2, 2, 2), ("x", "y", "z"))


def test_a_mesh_tells_its_axes_and_devices():
    mesh = Mesh(CPUS.reshape(4, 2), ("x", "y"))
    assert dict(mesh.shape) == {"x": 4, "y": 2} and mesh.size == 8 and not mesh.empty
    assert mesh.axis_sizes == (4, 2) and mesh.axis_types == (AxisType.Auto,) * 2
    assert mesh.device_ids.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert mesh.local_devices == CPUS.tolist() and not mesh.is_multi_process
    assert repr(mesh) == "Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto))"
    with pytest.raises(ValueError, match="read-only"):
        mesh.devices[0, 0] = None


def test_meshes_are_equal_by_devices_names_and_types():
    one, same = (Mesh(CPUS.reshape(4, 2), ("x", "y")) for _ in range(2))
    assert one == same and hash(one) == hash(same)
    assert one != Mesh(CPUS.reshape(4, 2), ("x", "z"))
    assert one != Mesh(CPUS[::-1].reshape(4, 2), ("x", "y"))
    assert one != Mesh(CPUS.reshape(2, 4), ("x", "y")) and one != "x"
    assert one.abstract_mesh == AbstractMesh((4, 2), ("x", "y"), AxisType.Auto)
    assert pickle.loads(pickle.dumps(one.abstract_mesh)) == one.abstract_mesh


def test_meshes_that_are_made_of_the_same_are_one_object():
    grid = CPUS.reshape(4, 2)
    one = Mesh(grid, ("x", "y"))
    for same in (
        Mesh(grid.copy(), ["x", "y"], AxisType.Auto),
        Mesh(grid.tolist(), ("x", "y"), (AxisType.Auto,) * 2),
        one.update_axis_types({"x": AxisType.Explicit}).update_axis_types({"x": AxisType.Auto}),
        copy.deepcopy(one),
    ):
        assert same is one
    abstract = AbstractMesh([4, 2], ["x", "y"], AxisType.Auto)
    assert abstract is one.abstract_mesh is one.abstract_mesh
    for again in (copy.copy, copy.deepcopy, lambda mesh: pickle.loads(pickle.dumps(mesh))):
        assert again(abstract) is abstract
    assert Mesh(CPUS, (1,)).axis_names[0] is not Mesh(CPUS, (True,)).axis_names[0]


def test_threads_that_make_a_mesh_at_once_get_one_object():
    start = threading.Barrier(8)

    def make(_):
        start.wait()
        return Mesh(CPUS.reshape(2, 4), ("of", "threads"))

    with ThreadPoolExecutor(8) as pool:
        assert len(set(map(id, pool.map(make, range(8))))) == 1


def test_a_mesh_that_nobody_holds_is_forgotten():
    mesh = Mesh(CPUS.reshape(2, 4), ("forgotten", "mesh"))
    seen = weakref.ref(mesh)
    assert meshes_shaped(mesh.shape_tuple) == [mesh]
    del mesh
    gc.collect()
    assert seen() is None and meshes_shaped((("forgotten", 2), ("mesh", 4))) == []


VALUES = (
    Mesh(CPUS, "x"), AbstractMesh((8,), ("x",)), P("x", unreduced={"y"}),
    NamedSharding(Mesh(CPUS, "x"), P("x")), SingleDeviceSharding(CPUS[0]),
    TiledSharding(tuple(CPUS[:1]), Tiles((1,), np.zeros((1, 1), int))),
)  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_meshes_specs_and_shardings_do_not_change(value):
    kind = type(value).__name__
    slots = [name for base in type(value).__mro__ for name in vars(base).get("__slots__", ())]
    for name in (*slots, "new"):
        if name == "__weakref__":
            continue
        with pytest.raises(AttributeError, match=f"{kind} does not change: its attribute '{name}'"):
            setattr(value, name, 1)
        with pytest.raises(AttributeError, match=f"{kind} does not change: its attribute '{name}'"):
            delattr(value, name)


@pytest.mark.parametrize(
    "value",
    [
        P("x", None, ("y", "z")),
        P("x", unreduced={"y"}),
        NamedSharding(AbstractMesh((8,), ("x",)), P("x")),
        NamedSharding(AbstractMesh((8,), ("x",)), P("x"), memory_kind="pinned_host"),
    ],
    ids=repr,
)
def test_specs_and_shardings_without_devices_are_copied_and_pickled(value):
    for again in (copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))):
        assert again(value) == value and hash(again(value)) == hash(value)
        assert repr(again(value)) == repr(value)


def test_a_single_name_may_be_a_string():
    assert Mesh(CPUS, "data").axis_names == ("data",)
    assert Mesh(CPUS[0], "data").size == 1


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((CPUS, ("x", "y")), ValueError, "Mesh: there must be a name for each of 1 axes."),
        ((CPUS.reshape(4, 2), ("x", "x")), ValueError, "Mesh: each axis must have its own name"),
        ((CPUS, ([1],)), TypeError, "Mesh: the names of axes must be hashable."),
        ((CPUS[[0, 0]], ("x",)), ValueError, "Mesh: a device occurs twice."),
        ((np.arange(2), ("x",)), TypeError, "Mesh: its elements must be devices."),
        ((CPUS[:0], ("x",)), ValueError, "Mesh: there must be at least one device."),
        ((CPUS, ("x",), ("Auto",)), TypeError, "Mesh: the types of axes are members of AxisType"),
        ((CPUS, "x", "Auto"), TypeError, "Mesh: the types of axes are members of AxisType"),
        (
            (CPUS, ("x",), (AxisType.Auto,) * 2),
            ValueError,
            "Mesh: axis_types must have an AxisType",
        ),
    ],
)
def test_a_wrong_mesh_says_what_is_wrong(arguments, error, text):
    with pytest.raises(error, match=text):
        Mesh(*arguments)


def test_a_mesh_is_not_pickled_and_says_what_is():
    with pytest.raises(TypeError, match=r"(?s)this Mesh holds devices.*mesh\.abstract_mesh"):
        pickle.dumps(Mesh(CPUS, "x"))


def test_partition_specs_are_sequences_of_canonical_entries():
    spec = P("x", None, ("y", "z"), ("w",), ())
    assert list(spec) == ["x", None, ("y", "z"), "w", None] and len(spec) == 5
    assert spec == ("x", None, ("y", "z"), "w", None) and spec[2] == ("y", "z")
    assert P("x") + P("y") == P("x", "y") and (None,) + P("y") == P(None, "y")
    assert P("x") != P("x", None) and {P("x"): 1}[PartitionSpec("x")] == 1
    assert repr(P("x", None)) == "PartitionSpec('x', None)"
    assert pickle.loads(pickle.dumps(P("x", P.UNCONSTRAINED))) == P("x", P.UNCONSTRAINED)


def test_an_axis_twice_in_a_spec_is_an_error():
    with pytest.raises(ValueError, match="PartitionSpec: the axis name 'x' occurs twice"):
        P("x", ("y", "x"))


def expected_indices(mesh, spec, shape):
    """The place of each device's piece, from the definition: mixed radix over the axes named."""
    found = {}
    for where in itertools.product(*map(range, mesh.axis_sizes)):
        at = dict(zip(mesh.axis_names, where, strict=True))
        index = []
        for dim, size in enumerate(shape):
            part = spec[dim] if dim < len(spec) else None
            names = () if part is None else part if isinstance(part, tuple) else (part,)
            k, count = 0, 1
            for name in names:
                k, count = k * mesh.shape[name] + at[name], count * mesh.shape[name]
            index.append(range(size)[k * size // count : (k + 1) * size // count])
        found[mesh.devices[where]] = index
    return found


SPECS = [
    P(),
    P("x"),
    P(None, "z"),
    P("y", "x"),
    P(("z", "x")),
    P(("x", "y", "z")),
    P("z", ("y", "x")),
]


@pytest.mark.parametrize("spec", SPECS)
def test_each_device_has_the_piece_that_the_spec_says(mesh, spec):
    shape = (8, 4, 3)
    sharding = NamedSharding(mesh, spec)
    found = sharding.devices_indices_map(shape)
    for device, index in expected_indices(mesh, spec, shape).items():
        assert [range(n)[s] for n, s in zip(shape, found[device], strict=True)] == index
    assert sharding.shard_shape(shape) == tuple(map(len, index))
    assert sharding.is_fully_replicated == (spec == P())
    assert sharding.is_fully_addressable and sharding.device_set == set(CPUS)


@pytest.mark.parametrize("spec", SPECS)
def test_tiles_are_read_back_as_the_spec(mesh, spec):
    tiles = NamedSharding(mesh, spec).tiles(3)
    found = name_tiles(mesh, mesh.devices_in_order, Tiles(tiles.counts, tiles.devices))
    assert found == NamedSharding(mesh, spec)


def test_tiles_that_no_spec_names_are_kept_as_they_are(mesh):
    halves = Tiles((2,), np.array([[0, 3, 5, 6], [1, 2, 4, 7]]))
    found = name_tiles(mesh, mesh.devices_in_order, halves)
    assert isinstance(found, TiledSharding) and found.shard_shape((4, 3)) == (2, 3)
    with pytest.raises(ValueError, match=r"(?s)cannot be sharded so.*multiples of \(2,\)"):
        found.shard_shape((3,))


def test_specs_that_cut_alike_are_equivalent(mesh):
    one, other = NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P("x"))
    assert one != other and one.is_equivalent_to(other, 2)
    assert not one.is_equivalent_to(NamedSharding(mesh, P(None, "x")), 2)
    alone = NamedSharding(Mesh(CPUS[:1], "x"), P("x"))
    assert alone.is_equivalent_to(SingleDeviceSharding(CPUS[0]), 2)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda m: NamedSharding(m, P("w")), ValueError, r"(?s)no axis 'w'.*'x', 'y', 'z'"),
        (lambda m: NamedSharding(m, "x"), TypeError, r"(?s)its second argument.*P\('x'\)"),
        (lambda m: NamedSharding(CPUS, P()), TypeError, "its first argument is a mesh"),
        (lambda m: NamedSharding(m, P("x")).shard_shape(()), ValueError, "more entries than the"),
        (
            lambda m: NamedSharding(m, P(("x", "y"))).shard_shape((6, 2)),
            ValueError,
            r"(?s)does not divide evenly.*size 6.*'x' and 'y'.*a multiple of 4.*pad it by 2",
        ),
        (lambda m: NamedSharding(m, P(), memory_kind="tape"), ValueError, "unknown memory kind"),
        (
            lambda m: NamedSharding(m.abstract_mesh, P()).device_set,
            ValueError,
            "an abstract mesh has no devices",
        ),
        (
            lambda m: NamedSharding(m, P("x", "y")).check_compatible_aval((4,)),
            ValueError,
            "sharding: the partition spec has more entries",
        ),
        (lambda m: m.abstract_mesh.devices, ValueError, "AbstractMesh: it has no devices"),
        (lambda m: m.abstract_mesh.__enter__(), ValueError, "use_abstract_mesh"),
        (lambda m: device_put(1.0, "cpu:0"), ValueError, "unknown platform 'cpu:0'"),
        (
            lambda m: jit(lambda x: x, in_shardings="x")(1.0),
            TypeError,
            "unknown platform 'x'",
        ),
        (lambda m: m.devices.__setitem__(0, None), ValueError, "read-only"),
        (lambda m: setattr(m.devices.flags, "writeable", True), ValueError, "cannot set WRITEABLE"),
    ],
)
def test_a_wrong_sharding_says_what_is_wrong(mesh, make, error, text):
    with pytest.raises(error, match=text):
        make(mesh)


def test_the_local_mesh_is_the_block_of_the_devices_of_this_process(mesh, monkeypatch):
    assert mesh.local_mesh is mesh and Mesh(np.empty((), object), []).local_mesh.empty
    own = list(mesh.devices[1].flat)
    monkeypatch.setattr(Mesh, "local_devices", property(lambda _: own))
    local = mesh.local_mesh
    assert local.axis_names == mesh.axis_names and local.axis_sizes[0] == 1
    assert list(local.devices.flat) == own
    own[:] = [mesh.devices[0, 0, 0], mesh.devices[1, 1, 1]]
    with pytest.raises(ValueError, match="not a block of the mesh"):
        _ = mesh.local_mesh


def test_specs_find_their_parts_as_tuples_do():
    spec = P("x", ("y", "z"), None, None)
    assert [spec.index(part) for part in ("x", ("x",), ("y", "z"), None)] == [0, 0, 1, 2]
    assert (spec.count(None), spec.count("y")) == (2, 0)
    with pytest.raises(ValueError, match="not in tuple"):
        spec.index("y")


def test_shardings_over_meshes_without_devices_are_equivalent_by_the_places_of_pieces(mesh):
    bare = AbstractMesh((4, 2), ("x", "y"))
    one, with_devices = NamedSharding(bare, P("x")), NamedSharding(mesh, P(("x", "y")))
    assert one.is_equivalent_to(NamedSharding(bare, P("x", None)), 2)
    assert one.is_equivalent_to(NamedSharding(AbstractMesh((4, 2), ("a", "b")), P("a")), 2)
    assert not one.is_equivalent_to(NamedSharding(bare, P(None, "x")), 2)
    assert not one.is_equivalent_to(NamedSharding(AbstractMesh((4,), ("x",)), P("x")), 2)
    for there in (with_devices, SingleDeviceSharding(CPUS[0])):
        assert not one.is_equivalent_to(there, 2) and not there.is_equivalent_to(one, 2)


@pytest.mark.parametrize("part", [(("x", "y"), "z"), [["x", "y"], ("z",)]])
def test_a_tuple_in_an_entry_of_a_spec_is_refused(part):
    with pytest.raises(ValueError, match=r"(?s)has a tuple in it.*\('x', 'y', 'z'\)"):
        P(part)
