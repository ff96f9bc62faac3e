"""Where `device=` puts the arrays that creation functions make, on eight virtual devices."""

from __future__ import annotations

import numpy as np
import pytest

import xnp.numpy as xnp
from packages.xjit.tests.new_process import run_in_new_process
from xjit import SingleDeviceSharding, devices, jit
from xnp import fft
from xprim import HOST

pytestmark = pytest.mark.of_the_cpu

CALLS = """
import numpy as np
import xjit
import xnp.numpy as xnp
from xnp import fft
from xnp import lax

devices = xjit.devices()
assert len(devices) == 8
x, host = xnp.array([1.0, 2.0]), np.ones(3, np.float32)
calls = {
    "zeros": lambda d: xnp.zeros(3, device=d),
    "zeros of a shape": lambda d: xnp.zeros((300, 100), device=d),
    "ones": lambda d: xnp.ones((2, 3), device=d),
    "empty": lambda d: xnp.empty(3, device=d),
    "full": lambda d: xnp.full(3, 2.0, device=d),
    "full of an array": lambda d: xnp.full((3, 2), x, device=d),
    "zeros_like": lambda d: xnp.zeros_like(x, device=d),
    "ones_like": lambda d: xnp.ones_like(x, device=d),
    "empty_like": lambda d: xnp.empty_like(x, device=d),
    "full_like": lambda d: xnp.full_like(x, 3, device=d),
    "array of a list": lambda d: xnp.array([1, 2, 3], device=d),
    "array of a NumPy array": lambda d: xnp.array(host, device=d),
    "array of an array": lambda d: xnp.array(x, device=d),
    "asarray": lambda d: xnp.asarray(x, device=d),
    "asarray of a number": lambda d: xnp.asarray(1.5, device=d),
    "arange": lambda d: xnp.arange(5, device=d),
    "arange of many": lambda d: xnp.arange(500000, device=d),
    "linspace": lambda d: xnp.linspace(0, 1, 5, device=d),
    "eye": lambda d: xnp.eye(3, device=d),
    "astype": lambda d: xnp.astype(x, xnp.int32, device=d),
    "from_dlpack": lambda d: xnp.from_dlpack(host, device=d),
}
"""


def test_every_creation_function_puts_its_array_on_the_device_committed():
    program = f"""{CALLS}
    for name, call in calls.items():
        plain = np.asarray(call(None))
        for i in (0, 3, 7):
            for place in (devices[i], xjit.SingleDeviceSharding(devices[i])):
                found = call(place)
                assert (found.device, found.committed) == (devices[i], True), name
                np.testing.assert_array_equal(np.asarray(found), plain, err_msg=name)
                assert found.dtype == call(None).dtype, name
        assert call("cpu").device == devices[0]
        assert (call(devices[3]) * 2).device == devices[3], name
        try:
            call(devices[3]) + call(devices[4])
        except ValueError as error:
            assert "incompatible devices for jitted computation" in str(error), name
        else:
            raise AssertionError(name)
        try:
            call("gpu")
        except RuntimeError as error:
            assert "unknown platform 'gpu'" in str(error), error
            assert "expected  'cpu', a device" in str(error), error
        else:
            raise AssertionError(name)
    print(len(calls))
    """.replace("\n    ", "\n")
    assert run_in_new_process(program, XSTACK_NUM_CPU_DEVICES="8", XSTACK_PLATFORMS="cpu") == "21"


@pytest.mark.parametrize("make", [
    lambda x, d: xnp.zeros(3, device=d),
    lambda x, d: xnp.ones(3, device=d),
    lambda x, d: xnp.full(3, 2.0, device=d),
    lambda x, d: xnp.empty(3, device=d),
    lambda x, d: xnp.zeros_like(x, device=d),
    lambda x, d: xnp.full_like(x, 2.0, device=d),
    lambda x, d: xnp.asarray(x, device=d),
    lambda x, d: xnp.array(x, device=d),
    lambda x, d: xnp.astype(x, int, device=d),
    lambda x, d: fft.fftfreq(3, device=d),
    lambda x, d: fft.rfftfreq(3, device=d),
    lambda x, d: xnp.arange(3, device=d),
    lambda x, d: xnp.linspace(0, 1, 3, device=d),
    lambda x, d: xnp.eye(3, device=d),
])  # fmt: skip
def test_a_device_in_a_program_leaves_a_value_where_that_runs(make):
    x, first, last = xnp.arange(3.0), devices("cpu")[0], devices("cpu")[-1]
    expected = make(x, None)
    for place in (first, last, "cpu", SingleDeviceSharding(first)):
        result = jit(lambda x, place=place: make(x, place))(x)
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected)
        assert result.devices() == {first}  # as of `device_put` in a program
    assert make(x, last).devices() == {last}


def test_an_array_that_was_donated_cannot_be_put_anywhere():
    x = xnp.arange(3.0)
    jit(lambda v: v + 1, donate_argnums=0)(x)
    with pytest.raises(RuntimeError, match="was donated to"):
        xnp.asarray(x, device=devices("cpu")[0])
    assert xnp.zeros_like(x, device=SingleDeviceSharding(devices("cpu")[0])).committed


def test_what_names_no_place_says_so():
    with pytest.raises(TypeError, match="ones: 3 is not a place"):
        xnp.ones(3, device=3)
    with pytest.raises(RuntimeError, match="ones: unknown platform 'abacus'"):
        xnp.ones(3, device="abacus")


def test_without_a_compiler_the_error_names_the_package_that_knows_devices():
    x = xnp.zeros(3)
    assert HOST.device_put(x, "cpu", "zeros") is x
    with pytest.raises(ValueError, match="zeros: there is no device 'gpu'") as e:
        HOST.device_put(x, "gpu", "zeros")
    assert "xstack-xjit" in str(e.value)
