"""An array has one answer to where it is, whoever asks, and whoever asks first.

Eight virtual devices stand for a machine with GPUs: all but the first one are played to have memory
that the host cannot read, so that capsules of their buffers say CUDA. A cell is a way to make an
array, and who asks first; then all others ask, and all say the same.
"""

from __future__ import annotations

import copy
import ctypes
import itertools
import pickle

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xjit import jaxlib_gateway as gateway
from xjit.jaxlib_gateway import buffers

DEFAULT, OTHER = 1, 2
CUDA = 2  # kDLCUDA


@pytest.fixture(autouse=True)
def machine_with_gpus(monkeypatch):
    export_capsule = buffers.export_capsule

    def capsule_of_gpu(buffer, stream=None):
        found = export_capsule(buffer, stream)
        number = gateway.device_of(buffer).id
        if number:
            header = buffers._header(found)
            header.device_type, header.device_id = CUDA, number
        return found

    def in_host_memory(device):
        return device.id == 0

    monkeypatch.setattr(buffers, "export_capsule", capsule_of_gpu)
    for module in (buffers, gateway):
        monkeypatch.setattr(module, "in_host_memory", in_host_memory)
    with xstack.default_device(xstack.devices()[DEFAULT]):
        yield


def on(i):
    return xstack.devices()[i]


# Arrays of equal Python numbers may be one array, which lies where it was first asked for.
NUMBERS = itertools.count(0.7310585786300049)
ARRAYS = {
    "made by NumPy": lambda: xnp.arange(4.0) + 1,
    "a Python number": lambda: xnp.asarray(next(NUMBERS)),
    "a result of a program": lambda: xstack.jit(lambda x: x + 1)(xnp.ones(5)),
    "large and eager": lambda: xnp.ones(100_000) * 2.0,
    "put on the other device": lambda: xstack.device_put(np.ones(3, np.float32), on(OTHER)),
    "computed there": lambda: xstack.device_put(np.ones(3, np.float32), on(OTHER)) * 2,
    "made there": lambda: xnp.zeros((2, 3), device=on(OTHER)),
    "put on the CPU": lambda: xstack.device_put(np.ones(3, np.float32), on(0)),
    "a slice": lambda: xnp.arange(10)[2:5], "without elements": lambda: xnp.zeros((0, 3)),
    "truth values": lambda: xnp.arange(3) > 1,
    "a copy": lambda: copy.copy(xstack.device_put(xnp.ones(3), on(OTHER))),
    "a deep copy": lambda: copy.deepcopy([xstack.device_put(xnp.ones(3), on(OTHER))])[0],
    "a pickle": lambda: pickle.loads(pickle.dumps(xnp.arange(4.0))),
    "a piece": lambda: xstack.device_put(xnp.ones(3), on(OTHER)).addressable_data(0),
    "what was read": lambda: read(xstack.jit(lambda x: x + 1)(xnp.ones(5))),
}  # fmt: skip
PLACES = {
    "put on the other device": OTHER, "computed there": OTHER, "made there": OTHER, "a copy": OTHER,
    "a deep copy": OTHER, "a piece": OTHER, "put on the CPU": 0,
}  # fmt: skip


def read(x):
    np.asarray(x)
    return x


def dlpack_number(kind, number):
    """Return the number of the device that a pair of the protocol means here."""
    assert (kind == CUDA) == (number != 0)
    return number


ASKS = {
    "devices": lambda x: [d.id for d in x.devices()],
    "device": lambda x: [x.device.id],
    "sharding": lambda x: [d.id for d in x.sharding.device_set],
    "addressable_data": lambda x: [d.id for d in x.addressable_data(0).devices()],
    "addressable_shards": lambda x: [s.device.id for s in x.addressable_shards],
    "__dlpack_device__": lambda x: [dlpack_number(*x.__dlpack_device__())],
    "__dlpack__": lambda x: [dlpack_number(*buffers.device_of_capsule(x.__dlpack__()))],
    "__cuda_array_interface__": lambda x: [
        number_of_interface(getattr(x, "__cuda_array_interface__", None), x)],
    "unsafe_buffer_pointer": lambda x: [number_of_pointer(x.unsafe_buffer_pointer(), x)],
    "on_device_size_in_bytes": lambda x: [number_of_size(x.on_device_size_in_bytes(), x)],
    "copy": lambda x: [d.id for d in x.copy().devices()],
    "compiled": lambda x: [d.id for d in xstack.jit(lambda x: x * x)(x).devices()],
}  # fmt: skip


def number_of_interface(found, x):
    if found is None:
        return 0
    assert found["shape"] == x.shape and np.dtype(found["typestr"]) == x.dtype
    return number_of_pointer(found["data"][0], x) if x.size else next(iter(x.devices())).id


def number_of_pointer(pointer, x):
    """Return the device whose capsule has this pointer."""
    capsule = x.__dlpack__()
    assert not x.size or pointer == buffers.data_pointer(capsule)
    return buffers.device_of_capsule(capsule)[1]


def number_of_size(size, x):
    assert size == x.nbytes
    return next(iter(x.devices())).id


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("first", ASKS)
def test_every_answer_is_the_same_whoever_asks_first(first):
    for name, make in ARRAYS.items():
        expected = [PLACES.get(name, DEFAULT)]
        x = make()
        committed = x.committed
        assert ASKS[first](x) == expected, (name, first)
        for other, ask in ASKS.items():
            assert ask(x) == expected, (name, first, other)
        assert x.committed is committed, (name, first)


@pytest.mark.parametrize("first", ["__dlpack_device__", "__dlpack__", "unsafe_buffer_pointer"])
def test_what_another_library_was_told_stays_true_when_the_default_device_changes(first):
    x = xnp.arange(4.0)
    assert ASKS[first](x) == [DEFAULT]
    with xstack.default_device(on(0)):
        for other in set(ASKS) - {"copy", "compiled"}:
            assert ASKS[other](x) == [DEFAULT], other


def test_an_array_over_several_devices_is_lent_as_one_says():
    mesh = xstack.make_mesh((2,), ("i",), devices=[on(3), on(4)])
    x = xstack.device_put(xnp.arange(8.0), xstack.NamedSharding(mesh, xstack.P("i")))
    assert {d.id for d in x.devices()} == {3, 4} and not hasattr(x, "__cuda_array_interface__")
    told = x.__dlpack_device__()
    assert told == buffers.device_of_capsule(x.__dlpack__()) == (CUDA, DEFAULT)


def test_a_reader_on_the_host_gets_a_copy_and_one_of_another_device_an_error():
    x = xstack.device_put(np.arange(3, dtype=np.float32), on(OTHER))
    capsule = x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
    assert buffers.device_of_capsule(capsule)[0] == 1
    np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), [0, 1, 2])
    with pytest.raises(BufferError, match="__dlpack__: the memory is on another device"):
        x.__dlpack__(dl_device=(CUDA, 5))
    with pytest.raises(BufferError, match="copy=False"):
        x.__dlpack__(dl_device=(1, 0), copy=False)


def test_a_copy_is_lent_from_the_device_that_it_was_asked_of():
    x = xstack.device_put(np.arange(3, dtype=np.float32), on(OTHER))
    own, other = x.__dlpack__(), x.__dlpack__(copy=True)
    assert buffers.device_of_capsule(other) == (CUDA, OTHER) == x.__dlpack_device__()
    assert buffers.data_pointer(other) != buffers.data_pointer(own)


def test_lent_memory_lives_as_long_as_the_capsule():
    x = xnp.arange(4.0) * 2
    capsule, address = x.__dlpack__(), x.unsafe_buffer_pointer()
    del x
    found = (ctypes.c_float * 4).from_address(address)
    assert list(found) == [0, 2, 4, 6] and capsule is not None


def test_dtypes_without_a_name_in_cuda_have_no_interface():
    assert not hasattr(xnp.ones(3, xnp.bfloat16), "__cuda_array_interface__")
    assert xnp.ones(3, xnp.bfloat16).__dlpack_device__() == (CUDA, DEFAULT)
    with pytest.raises(AttributeError, match="it is not on a GPU"):
        xstack.device_put(xnp.ones(3), on(0)).__cuda_array_interface__  # noqa: B018


def test_programs_that_are_traced_have_no_place():
    def fun(x):
        assert not hasattr(x, "__cuda_array_interface__")
        return x

    xstack.jit(fun)(1.0)
