"""Results are put where `out_sharding=`, `device=` and `src=` say."""

import numpy as np
import pytest

import xnp
from xjit import device_put, devices, jit
from xjit.sharding.shardings import SingleDeviceSharding


def test_out_sharding_and_device_commit_results_to_the_device():
    place = SingleDeviceSharding(devices()[0])
    for result in (
        xnp.zeros(3, out_sharding=place),
        xnp.zeros(3, device=place),
        xnp.lax.full((2,), 1.0, sharding=place),
        xnp.add(1.0, 2.0).reshape(1, out_sharding=place),
    ):
        assert result.sharding == place
        assert result.committed
    assert not device_put(np.ones(2)).committed


def test_one_place_for_a_traced_value_leaves_it_where_its_program_runs():
    place = SingleDeviceSharding(devices()[0])
    result = jit(lambda x: xnp.reshape(x, (2, 2), out_sharding=place))(xnp.ones(4))
    assert result.tolist() == [[1, 1], [1, 1]]
    assert result.devices() == {devices()[0]}


def test_device_put_checks_where_arrays_are():
    device = devices()[0]
    x = device_put(np.ones(3), device)
    assert device_put(x, device, src=SingleDeviceSharding(device)).tolist() == [1, 1, 1]
    if len(devices()) > 1:
        with pytest.raises(ValueError, match="device_put: an array is not where src says"):
            device_put(x, device, src=devices()[1])


def test_commitment_is_kept_beside_the_oracle_whose_shardings_do_not_know_it():
    pytest.importorskip("jax")
    f = jit(lambda x: x + 1)
    assert not f(np.ones(2, np.float32)).committed
    committed = jit(lambda x: x + 1, device=devices("cpu")[0])
    assert committed(np.ones(2, np.float32)).committed
    assert not f(np.ones(2, np.float32)).committed
