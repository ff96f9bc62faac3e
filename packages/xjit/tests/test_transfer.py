from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from xjit import (
    SingleDeviceSharding,
    block_until_ready,
    copy_to_host_async,
    device_get,
    device_put,
    devices,
    jit,
)
from xnp import lax
from xprim import Array, as_array, config, make_jaxpr


def test_device_put_narrows_and_copies_numpy_input():
    x = np.zeros(1000)
    y = device_put(x)
    x[:] = 1
    assert y.dtype == np.float32 and not np.asarray(y).any()


def test_device_put_commits_only_to_a_named_device():
    cpu = devices("cpu")[0]
    assert not device_put(np.ones(3)).committed
    for place in (cpu, "cpu", SingleDeviceSharding(cpu)):
        x = device_put(np.ones(3), place)
        assert x.committed and x.device is cpu and x.devices() == {cpu}
        assert x.sharding == SingleDeviceSharding(cpu)
    tree = device_put({"a": 1.0, "b": np.ones(2)}, {"a": cpu, "b": None})
    assert tree["a"].committed and not tree["b"].committed


def test_device_get_returns_numpy_arrays():
    f = jit(lambda x: {"y": lax.neg(x)})
    out = device_get((f(np.ones(3)), "text", None))
    assert type(out[0]["y"]) is np.ndarray and out[1:] == ("text", None)


def test_block_until_ready_takes_trees_and_returns_them():
    f = jit(lambda x: {"y": lax.neg(x)})
    out = f(np.ones(3))
    assert block_until_ready(out) is out and out["y"].is_ready()
    assert out["y"].block_until_ready() is out["y"]


def test_a_deleted_array_says_so():
    x = device_put(np.ones(3))
    x.delete()
    assert x.is_deleted()
    for use in (np.asarray, jit(lambda v: v), lambda v: v.block_until_ready(), device_put):
        with pytest.raises(RuntimeError, match="was deleted"):
            use(x)


def test_device_put_donates_when_asked():
    x = jit(lambda v: v)(np.ones(3))
    y = device_put(x, devices("cpu")[0], donate=True)
    np.testing.assert_array_equal(y, np.ones(3))
    assert x.is_deleted()


def test_device_put_of_a_traced_value_does_nothing():
    assert not make_jaxpr(lambda x: device_put(x))(1.0).eqns


def test_arrays_tell_their_memory():
    x = device_put(np.ones(100))
    assert x.on_device_size_in_bytes() >= 400
    assert x.unsafe_buffer_pointer() > 0
    host = as_array(np.ones(3))
    assert host.is_ready() and isinstance(host, Array) and host.device is devices()[0]


TWO_DEVICES = """
import numpy as np
from xjit import devices, device_put, jit
from xnp import lax
a, b = devices("cpu")
f = jit(lambda x, y: lax.add(x, y))
x = np.ones(3, np.float32)
free = device_put(x)
on_a, on_b = device_put(x, a), device_put(x, b)
for _ in range(2):
    assert f(free, free).device is a and not f(free, free).committed
    assert f(on_b, free).device is b and f(free, on_b).committed
    assert f(on_a, free).device is a and f(on_a, free).committed
    assert f(on_b, 1.0).device is b and f(x, on_b).device is b
    assert f(f(on_b, free), on_b).device is b
    assert lax.add(on_b, free).device is b and lax.neg(on_b).committed
    assert jit(lambda x: lax.neg(x), device=b)(on_a).device is b
    assert jit(lambda x: lax.neg(x), out_shardings=b)(free).device is b
    np.testing.assert_array_equal(f(on_b, free), [2, 2, 2])
    try:
        f(on_a, on_b)
    except ValueError as error:
        assert "x: float32[3] on" in str(error) and "y: float32[3] on" in str(error), error
    else:
        raise AssertionError
from xprim import config
with config.default_device(b):
    assert f(x, x).device is b and not f(x, x).committed
"""


@pytest.mark.of_the_cpu
def test_committed_arguments_decide_where_a_call_runs():
    environment = {**os.environ, "XSTACK_NUM_CPU_DEVICES": "2"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", TWO_DEVICES],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_an_array_of_a_number_belongs_to_who_put_it():
    first, second = device_put(2.5), device_put(2.5)
    assert first is not second
    first.delete()
    assert first.is_deleted() and float(second) == 2.5 and float(device_put(2.5)) == 2.5


def test_a_copy_to_the_host_is_asked_of_whatever_has_the_method():
    class Lazy:
        asked = 0

        def copy_to_host_async(self):
            self.asked += 1

    class Broken:
        def copy_to_host_async(self):
            raise AttributeError("of its own")

    lazy = Lazy()
    tree = [object(), 1, None, {"a": lazy, "b": as_array(np.ones(3))}]
    assert copy_to_host_async(tree) is tree
    assert lazy.asked == 1
    traced = []
    make_jaxpr(lambda x: traced.append(copy_to_host_async(x)) or x)(1.0)
    assert len(traced) == 1
    with pytest.raises(AttributeError, match="of its own"):
        copy_to_host_async([Broken()])


@pytest.mark.of_the_cpu
def test_a_python_number_is_on_the_default_device_of_whoever_asks():
    here, there = devices()[:2]
    with config.default_device(there):
        number = as_array(4321)  # one array for all equal numbers
        assert jit(lax.neg)(number).devices() == number.devices() == {there}
    again = as_array(4321)
    assert again.devices() == {here} and again.device is here
    assert again.sharding == SingleDeviceSharding(here)
    assert [s.device for s in again.addressable_shards] == [here]
    assert jit(lax.neg)(again).devices() == {here}
    with config.default_device(there):
        assert again.addressable_shards[0].device is there
    assert device_put(4321, there).devices() == {there}


@pytest.mark.parametrize("ask", ["unsafe_buffer_pointer", "copy_to_host_async"])
def test_a_deleted_array_says_so_whatever_is_asked(ask):
    x = as_array(np.ones(3))
    x.delete()
    with pytest.raises(RuntimeError, match=r"^Array has been deleted with shape=float32\[3\]"):
        getattr(x, ask)()
