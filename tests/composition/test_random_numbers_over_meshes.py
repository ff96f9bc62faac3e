"""Random keys and numbers over a mesh of eight virtual CPU devices: the same as on one device."""

import numpy as np
import pytest

import xrandom
from xjit import device_put, devices, jit
from xpar import Mesh, NamedSharding, P

N = 8
MESH = Mesh(np.array(devices("cpu")[:N]).reshape(4, 2), ("x", "y"))


def on(*parts):
    return NamedSharding(MESH, P(*parts))


def test_random_keys_are_spread_by_their_own_dimensions():
    keys = xrandom.split(xrandom.key(0), 8)
    x = device_put(keys, on(("x", "y")))
    assert x.shape == (8,) and x.addressable_data(2).shape == (1,)
    np.testing.assert_array_equal(xrandom.key_data(x), xrandom.key_data(keys))
    np.testing.assert_array_equal(
        xrandom.key_data(jit(lambda k: k[::-1], out_shardings=on("y"))(x)),
        xrandom.key_data(keys[::-1]),
    )


@pytest.mark.parametrize("sharding", [on(), on("x"), on("y", "x"), on(None, ("x", "y"))])
@pytest.mark.parametrize("sampler", [xrandom.normal, xrandom.uniform, xrandom.bits])
def test_numbers_do_not_depend_on_how_they_lie(sampler, sharding):
    draw = jit(lambda key: sampler(key, (16, 24)), out_shardings=sharding)
    found = draw(xrandom.key(7))
    assert found.sharding == sharding
    # jit(sampler) on one device gives the same bits; the transforms of them round alike
    np.testing.assert_array_equal(found, jit(lambda key: sampler(key, (16, 24)))(xrandom.key(7)))
