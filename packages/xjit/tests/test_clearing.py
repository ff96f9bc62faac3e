"""All devices given up, and made anew with other options."""

from packages.xjit.tests.new_process import run_in_new_process

PROGRAM = """
import os
os.environ.pop("XSTACK_NUM_CPU_DEVICES", None)
import numpy as np
import xnp
from xjit import devices, device_put, jit
from xjit.cache.clearing import clear_backends
from xprim import config

f = jit(lambda x: xnp.sin(x) + 1)
x = np.float32([1, 2])
y = f(x)
compiled = f.lower(x).compile()
assert len(devices()) == 1
try:
    config.update("num_cpu_devices", 4)
except RuntimeError:
    print("too late")
clear_backends()
config.update("num_cpu_devices", 4)
assert len(devices()) == 4
for array in (x, y, device_put(x, devices()[2])):
    z = f(array)
    (where,) = z.devices()
    assert where in devices(), where
    np.testing.assert_allclose(z, np.sin(np.asarray(array)) + 1, rtol=1e-6)
np.testing.assert_allclose(compiled(x), np.sin(x) + 1, rtol=1e-6)
print([f"{v:.3f}" for v in (y + y).tolist()])
"""


def test_devices_are_made_anew_and_programs_follow():
    assert run_in_new_process(PROGRAM).splitlines() == ["too late", "['3.683', '3.819']"]
