"""Transfer guards: between CPU devices as they are, to and from the host by a pretence."""

import logging

import numpy as np
import pytest

from xjit import device_get, device_put, devices, jit
from xjit.jaxlib_gateway import buffers
from xjit.jaxlib_gateway.buffers import TransferError
from xnp import lax
from xprim import as_array, config, dtypes, from_numpy


@pytest.fixture(name="away")
def pretend_that_devices_have_their_own_memory(monkeypatch):
    monkeypatch.setattr(buffers, "in_host_memory", lambda device: False)


def narrow(value):
    """Return an array of a dtype that is always read by a copy."""
    return np.full(3, value, dtypes.bfloat16)


def test_a_copy_from_device_to_device_is_refused_unless_it_is_explicit():
    first, second = devices("cpu")[:2]
    x = device_put(np.ones(3), first)
    on_second = jit(lambda v: v + 1, device=second)
    with config.transfer_guard_device_to_device("disallow"):
        with pytest.raises(TransferError, match="an implicit transfer from one device to another"):
            on_second(x)
        assert on_second(device_put(x, second)).device is second
    with (
        config.transfer_guard("disallow_explicit"),
        pytest.raises(TransferError, match="an explicit transfer from one device to another"),
    ):
        device_put(x, second)
    assert on_second(x).device is second


def test_the_error_says_what_moves_where_and_how_to_allow_it():
    first, second = devices("cpu")[:2]
    with config.transfer_guard("disallow"), pytest.raises(TransferError) as e:
        jit(lambda v: v, device=second)(device_put(np.ones(3), first))
    text = str(e.value)
    assert text.startswith("transfer_guard_device_to_device: an implicit transfer")
    assert "float32[3] from" in text and "where the option is 'disallow'" in text
    assert text.endswith("\n  hint      device_put makes a transfer explicit")


@pytest.mark.usefixtures("away")
def test_numpy_arguments_are_implicit_transfers_to_the_device():
    f = jit(lambda x: lax.neg(x))
    with config.transfer_guard_host_to_device("disallow"):
        with pytest.raises(TransferError, match="an implicit transfer from the host to a device"):
            f(np.ones(3))
        with pytest.raises(TransferError, match="float32"):
            f(from_numpy(np.ones(3, np.float32)))
        x = device_put(np.ones(3), devices("cpu")[0])
        np.testing.assert_array_equal(f(x), [-1, -1, -1])
    with config.transfer_guard("disallow_explicit"), pytest.raises(TransferError, match="explicit"):
        device_put(np.ones(3), "cpu")


@pytest.mark.usefixtures("away")
def test_reading_a_result_is_an_implicit_transfer_to_the_host():
    y = jit(lambda x: lax.neg(x))(narrow(1))
    with config.transfer_guard_device_to_host("disallow"):
        with pytest.raises(TransferError, match="an implicit transfer from a device to the host"):
            np.asarray(y)
        np.testing.assert_array_equal(device_get(y), narrow(-1))
        np.testing.assert_array_equal(y, narrow(-1))  # it has been read


@pytest.mark.usefixtures("away")
def test_the_log_levels_log_and_go_on(caplog):
    with caplog.at_level(logging.WARNING, "xjit"), config.transfer_guard_host_to_device("log"):
        device_put(np.ones(2), "cpu")
        assert caplog.text == ""
        jit(lambda x: x)(np.ones(2))
        assert "an implicit transfer from the host to a device: " in caplog.text
    with (
        caplog.at_level(logging.WARNING, "xjit"),
        config.transfer_guard_host_to_device("log_explicit"),
    ):
        device_put(np.ones(2), "cpu")
    assert "an explicit transfer from the host to a device: " in caplog.text


def test_between_host_and_cpu_nothing_is_transferred():
    with config.transfer_guard("disallow_explicit"):
        assert float(jit(lambda x: x + 1)(np.float32(1))) == 2.0
        assert float(as_array(1.0)) == 1.0
