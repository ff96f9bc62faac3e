"""Arrays over eight virtual CPU devices: put there, read, taken apart, made of pieces."""

import itertools

import numpy as np
import pytest

import xnp
from xjit import device_get, device_put, devices, jit
from xjit.dispatch.sharded_arrays import (
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from xjit.dispatch.transfer import _exchange
from xjit.jaxlib_gateway import XlaError, buffers, make_sharding_object, sharded_buffers
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import NamedSharding, P, SingleDeviceSharding
from xprim import as_array
from xprim.errors import UnexpectedTracerError

N = 8
CPUS = np.array(devices("cpu")[:N], dtype=object)
MESH = Mesh(CPUS.reshape(2, 2, 2), ("x", "y", "z"))
SHARDINGS = [
    NamedSharding(MESH, spec)
    for spec in (P(), P("x"), P(None, "y"), P("z", "x"), P(("x", "y", "z")), P("y", ("z", "x")))
]
HOST = np.random.default_rng(0).normal(size=(8, 4, 3)).astype(np.float32)


@pytest.mark.parametrize("sharding", SHARDINGS)
def test_an_array_goes_to_its_devices_and_back(sharding):
    x = device_put(HOST, sharding)
    assert x.sharding == sharding and x.committed and x.devices() == set(CPUS)
    assert x.is_fully_addressable and x.is_fully_replicated == (sharding.spec == P())
    np.testing.assert_array_equal(np.asarray(x), HOST)
    np.testing.assert_array_equal(device_get(x), HOST)
    assert not np.asarray(x).flags.writeable
    for shard in x.addressable_shards:
        assert shard.data.devices() == {shard.device}
        np.testing.assert_array_equal(shard.data, HOST[shard.index])
    assert [s.device for s in x.global_shards] == CPUS.tolist()
    np.testing.assert_array_equal(x.addressable_data(3), x.addressable_shards[3].data)


def unaligned(shape):
    """Return an array whose memory begins where the runtime would not read it in place."""
    memory = np.arange(np.prod(shape) + 1, dtype=np.float32)
    return memory[1:].reshape(shape)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("host", [np.arange(2.0**18, dtype=np.float32).reshape(8, -1, 8),
                                  unaligned((8, 2**12, 8))])  # fmt: skip
@pytest.mark.parametrize("sharding", SHARDINGS)
def test_large_arrays_are_copied_before_device_put_returns_and_move_as_they_were(sharding, host):
    expected = host.copy()
    x = device_put(host, sharding)
    host[...] = 0
    np.testing.assert_array_equal(x, expected)
    there = NamedSharding(MESH, P(None, ("z", "x"), "y"))
    moved, back = device_put(x, there), device_put(device_put(x, there), sharding)
    x.delete()
    for y in (moved, back):
        np.testing.assert_array_equal(y, expected)
        assert all(
            np.array_equal(np.asarray(s.data), expected[s.index]) for s in y.addressable_shards
        )
    host[...] = expected


def test_pieces_that_are_there_already_are_shared():
    big = device_put(np.ones((64, 1024), np.float32), NamedSharding(MESH, P("x")))
    finer = device_put(big, NamedSharding(MESH, P(("x", "y"))))
    assert np.shares_memory(big.addressable_shards[0].data, finer.addressable_shards[0].data)
    columns = device_put(big, NamedSharding(MESH, P(None, "x")))
    assert not np.shares_memory(big.addressable_shards[0].data, columns.addressable_shards[0].data)


def test_copies_of_a_piece_are_counted():
    x = device_put(HOST, NamedSharding(MESH, P("x")))
    assert [s.replica_id for s in x.addressable_shards] == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(("here", "there"), list(itertools.permutations(SHARDINGS, 2)))
def test_every_sharding_can_be_changed_to_every_other(here, there):
    x = device_put(HOST, here)
    moved = device_put(x, there)
    assert moved.sharding == there and x.sharding == here
    np.testing.assert_array_equal(moved, HOST)


SIZES = [(8, 4, 3), (8, 4, 4), (8, 64, 64)]  # the memory of the second one may be read in place


@pytest.mark.sampled(every=3, per="shape")
@pytest.mark.parametrize("sharding", SHARDINGS[1:])
@pytest.mark.parametrize("shape", SIZES)
def test_a_host_array_that_is_cut_may_be_written_at_once(shape, sharding):
    check_that_it_may_be_written(shape, sharding)


@pytest.mark.parametrize("shape", SIZES)
def test_a_host_array_that_is_whole_on_each_device_may_be_written_at_once(shape):
    check_that_it_may_be_written(shape, SHARDINGS[0])


def check_that_it_may_be_written(shape, sharding):
    host = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    expected = host.copy()
    x = device_put(host, sharding)
    y = device_put(device_put(expected.copy(), sharding), SHARDINGS[3])
    host[...] = 0
    for array in (x, y):
        assert all(
            np.array_equal(np.asarray(s.data), expected[s.index]) for s in array.addressable_shards
        )


def test_to_read_an_array_lends_none_of_its_pieces(monkeypatch):
    monkeypatch.setattr(buffers, "pieces_lent", [False])
    monkeypatch.setattr(sharded_buffers, "pieces_lent", buffers.pieces_lent)
    x = device_put(HOST, SHARDINGS[1])
    np.testing.assert_array_equal(device_put(x, SHARDINGS[3]), HOST)
    assert not buffers.pieces_lent[0]
    x.addressable_shards[0].data.delete()
    assert buffers.pieces_lent[0] and x.is_deleted()


def test_devices_exchange_pieces_by_a_program_where_the_host_is_not_to():
    x = device_put(HOST, SHARDINGS[3])
    moved = _exchange(x, SHARDINGS[5])
    assert moved.sharding == SHARDINGS[5]
    np.testing.assert_array_equal(moved, HOST)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "complex64", "int4"]
)
def test_every_kind_of_element_is_spread(dtype):
    host = np.asarray(xnp.arange(16).reshape(8, 2).astype(dtype))
    x = device_put(host, NamedSharding(MESH, P(("x", "y"), "z")))
    np.testing.assert_array_equal(np.asarray(x), host)
    assert x.dtype == host.dtype


@pytest.mark.parametrize("shape", [(), (0, 2), (2, 0), (1, 1)])
def test_empty_and_zero_dimensional_arrays_are_spread(shape):
    spec = P("x") if shape[:1] in ((0,), (2,)) else P()
    x = device_put(np.ones(shape, np.float32), NamedSharding(MESH, spec))
    np.testing.assert_array_equal(np.asarray(x), np.ones(shape))
    assert jit(lambda v: v + 1)(x).shape == shape


def test_strided_and_writeable_host_memory_is_copied():
    host = np.arange(32.0, dtype=np.float32).reshape(4, 8).T
    x = device_put(host, NamedSharding(MESH, P("x", "y")))
    host[...] = -1
    np.testing.assert_array_equal(x, np.arange(32.0).reshape(4, 8).T)


def test_trees_take_trees_of_shardings():
    tree = {"w": HOST, "b": HOST[0]}
    put = device_put(tree, {"w": SHARDINGS[1], "b": SHARDINGS[0]})
    assert put["w"].sharding == SHARDINGS[1] and put["b"].sharding == SHARDINGS[0]
    both = device_put((HOST, [HOST, 1.0]), (SHARDINGS[4], SHARDINGS[0]))
    assert both[0].sharding == SHARDINGS[4] and both[1][1].sharding == SHARDINGS[0]


def test_an_array_comes_back_to_one_device():
    x = device_put(device_put(HOST, SHARDINGS[3]), CPUS[5])
    assert x.sharding == SingleDeviceSharding(CPUS[5])
    np.testing.assert_array_equal(x, HOST)


def test_putting_an_array_where_it_is_shares_it_unless_told():
    x = device_put(HOST, SHARDINGS[1])
    y = device_put(x, NamedSharding(MESH, P("x", None)))
    pointers = [[s.data.unsafe_buffer_pointer() for s in v.addressable_shards] for v in (x, y)]
    assert pointers[0] == pointers[1] and y.sharding.spec == P("x", None)
    z = device_put(x, SHARDINGS[1], may_alias=False)
    assert z.addressable_data(0).unsafe_buffer_pointer() != pointers[0][0]
    np.testing.assert_array_equal(z, HOST)


def test_a_donated_or_deleted_array_says_so():
    x = device_put(HOST, SHARDINGS[1])
    y = device_put(x, SHARDINGS[2], donate=True)
    np.testing.assert_array_equal(y, HOST)
    with pytest.raises(RuntimeError, match=r"float32\[8,4,3\]: it was donated to device_put"):
        x.addressable_shards  # noqa: B018
    y.delete()
    assert y.is_deleted()
    for use in (lambda: y.sharding, lambda: device_put(y, SHARDINGS[0]), lambda: y + 1):
        with pytest.raises(RuntimeError, match=r"Array has been deleted.*it was deleted"):
            use()


def test_src_is_checked():
    x = device_put(HOST, SHARDINGS[1])
    device_put(x, SHARDINGS[2], src=SHARDINGS[1])
    with pytest.raises(ValueError, match="an array is not where src says"):
        device_put(x, SHARDINGS[2], src=SHARDINGS[3])


def test_arrays_are_made_of_what_a_callback_gives_once_for_each_piece():
    asked = []

    def piece(index):
        asked.append(index)
        return HOST[index]

    x = make_array_from_callback(HOST.shape, SHARDINGS[1], piece)
    assert len(asked) == 2 and x.sharding == SHARDINGS[1]
    np.testing.assert_array_equal(x, HOST)
    halves = make_array_from_callback(
        (8,), SHARDINGS[4], lambda i: np.arange(8)[i], dtype="float16"
    )
    assert halves.dtype == np.float16
    with pytest.raises(
        ValueError, match=r"Expected shard shape \(4,.*the single device array shape"
    ):
        make_array_from_callback((8,), SHARDINGS[1], lambda i: np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="does not divide evenly"):
        make_array_from_callback((3,), SHARDINGS[1], lambda i: np.zeros(3, np.float32))


def test_arrays_are_made_of_arrays_on_devices_without_a_copy():
    indices = SHARDINGS[3].devices_indices_map(HOST.shape)
    pieces = [device_put(HOST[i], d) for d, i in reversed(indices.items())]
    x = make_array_from_single_device_arrays(HOST.shape, SHARDINGS[3], pieces)
    np.testing.assert_array_equal(x, HOST)
    for shard, piece in zip(x.addressable_shards, reversed(pieces), strict=True):
        assert shard.data.unsafe_buffer_pointer() == piece.unsafe_buffer_pointer()
    with pytest.raises(ValueError, match="one array on each device"):
        make_array_from_single_device_arrays(HOST.shape, SHARDINGS[3], pieces[1:])
    with pytest.raises(ValueError, match="two arrays are on one device"):
        make_array_from_single_device_arrays(HOST.shape, SHARDINGS[3], [pieces[0]] * 8)
    with pytest.raises(
        ValueError, match=r"Expected shard shape \(4,.*the single device array shape"
    ):
        make_array_from_single_device_arrays((8, 4), SHARDINGS[3], pieces)
    with pytest.raises(ValueError, match="another dtype"):
        make_array_from_single_device_arrays(HOST.shape, SHARDINGS[3], pieces, dtype=np.int32)


def test_arrays_are_made_of_what_this_process_has():
    x = make_array_from_process_local_data(SHARDINGS[5], HOST)
    assert x.sharding == SHARDINGS[5]
    np.testing.assert_array_equal(x, HOST)
    with pytest.raises(
        ValueError, match=r"(?s)not what the devices of this process hold.*\(8, 4\)"
    ):
        make_array_from_process_local_data(SHARDINGS[5], HOST, (8, 4))


def test_an_array_over_devices_has_no_single_address():
    with pytest.raises(ValueError, match="an array over several devices has an address on each"):
        device_put(HOST, SHARDINGS[1]).unsafe_buffer_pointer()


def test_trees_are_made_of_what_this_process_has():
    data = {"a": HOST, "b": [HOST[0], HOST[:, 0]]}
    shared = make_array_from_process_local_data(SHARDINGS[0], data)
    assert shared["b"][1].sharding == SHARDINGS[0]
    np.testing.assert_array_equal(shared["b"][1], HOST[:, 0])
    each = {"a": SHARDINGS[5], "b": SHARDINGS[0]}
    for shapes in (None, {"a": HOST.shape, "b": None}, {"a": None, "b": [(4, 3), (8, 3)]}):
        x = make_array_from_process_local_data(each, data, shapes)
        assert x["a"].sharding == SHARDINGS[5] and x["b"][0].sharding == SHARDINGS[0]
        np.testing.assert_array_equal(x["a"], HOST)
        np.testing.assert_array_equal(x["b"][0], HOST[0])
    with pytest.raises(ValueError, match="b"):
        make_array_from_process_local_data({"a": SHARDINGS[5]}, data)


def test_repr_shows_the_elements_of_an_array_over_devices():
    x = device_put(np.arange(4.0, dtype=np.float32), NamedSharding(MESH, P("x")))
    assert repr(x) == repr(as_array(np.arange(4.0, dtype=np.float32)))


def test_there_is_one_placement_for_equal_shardings():
    same = NamedSharding(Mesh(CPUS.reshape(2, 2, 2), ("x", "y", "z")), P("x"))
    assert make_sharding_object(SHARDINGS[1]) is make_sharding_object(same)


def test_a_partition_spec_needs_a_mesh():
    with pytest.raises(ValueError, match=r"(?s)a partition spec needs a mesh.*set_mesh"):
        device_put(HOST, P("x"))
    with MESH:
        assert device_put(HOST, P("x")).sharding == SHARDINGS[1]


def test_an_array_put_where_it_lies_is_the_same():
    there = device_put(np.arange(8.0), SHARDINGS[1])
    assert device_put(there, SHARDINGS[1]) is there
    assert device_put(there, SHARDINGS[1], may_alias=False) is not there


USES = {
    "an exchange": lambda x: jit(lambda v: v.sum(0))(x),
    "an operation": lambda x: x + 1,
    "an element": lambda x: x[0],
    "its elements": np.asarray,
    "text": repr,
    "another sharding": lambda x: device_put(x, SHARDINGS[2]),
    "one device": lambda x: device_put(x, CPUS[0]),
    "its pieces": lambda x: x.addressable_shards,
    "waiting": lambda x: x.block_until_ready(),
}


@pytest.mark.parametrize("number", [0, 5], ids=["the first", "another"])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_piece_that_is_gone_is_told_before_anything_starts(use, number):
    def shared(v):
        return v.sum(0)

    f = jit(shared)
    for _ in range(2):
        x = device_put(HOST, SHARDINGS[1])
        kept = xnp.array(x.addressable_shards[0].data)
        f(x)  # the second time by the short way
        x.addressable_shards[number].data.delete()
        assert x.is_deleted()
        with pytest.raises(
            XlaError, match=r"memory of this float32\[8,4,3\] was deleted or donated"
        ):
            use(x)
        with pytest.raises(XlaError, match="share the memory of their array"):
            f(x)
        np.testing.assert_array_equal(kept, HOST[:4])
    again = device_put(HOST, SHARDINGS[1])  # the devices are free
    np.testing.assert_allclose(f(again), HOST.sum(0), rtol=1e-5)  # of a sum in another order


def test_arrays_are_made_of_pieces_that_are_there():
    place = NamedSharding(MESH, P())

    def of_callback(x):
        return make_array_from_callback(x.shape, place, lambda index: x[index])

    def of_pieces(x):
        return make_array_from_single_device_arrays(x.shape, place, [x] * MESH.size)

    with pytest.raises(UnexpectedTracerError, match="a piece is traced, and has no place"):
        jit(of_callback)(np.ones(4, np.float32))
    with pytest.raises(ValueError, match="a piece is traced, and has no place"):
        jit(of_pieces)(np.ones(4, np.float32))
    with pytest.raises(TypeError, match=r"(?s)not an array on a device.*a ndarray"):
        of_pieces(np.ones(4, np.float32))
