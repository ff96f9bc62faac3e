"""Compile NumPy-style programs with XLA.

    jit                     compile a function when it is first called
    device_put, device_get  move arrays
    devices, ...            what this machine has
    stages                  compile ahead of time: jit(f).lower(...).compile()

Importing this lets eager evaluation compile large operations, too, and gives arrays the methods
that concern devices. It starts no device.
"""

import xnp  # noqa: F401 - gives tracers their operators, also where nobody else imports it
from xjit import stages
from xjit.array_methods import attach
from xjit.compile import clear_executables, statistics
from xjit.devices import (
    Device,
    default_backend,
    default_device,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
    set_num_cpu_devices,
)
from xjit.eager_backend import EagerBackend, NoDevices, compile_and_run
from xjit.exits import end_threads_at_exit
from xjit.function_caches import check_captured_values, clear_functions
from xjit.jaxlib_gateway import XlaError, guard_forks, when_orphaned
from xjit.jit import jit
from xjit.jit_primitive import jit_p
from xjit.lowering import LoweredProgram, lower
from xjit.placement import read_buffer
from xjit.shardings import Sharding, SingleDeviceSharding
from xjit.transfer import (
    block_until_ready,
    copy_to_host_async,
    device_get,
    device_put,
)
from xprim import install_backend, register_buffer_reader, source
from xprim.kernels import forget_kernels

register_buffer_reader(read_buffer)
install_backend(EagerBackend())
when_orphaned(lambda: install_backend(NoDevices()))
guard_forks()
attach()
end_threads_at_exit()


def clear_caches() -> None:
    """Forget all traced and compiled programs that nothing holds any more."""
    clear_functions()
    forget_kernels()
    clear_executables()


__version__ = "0.1.0"

__all__ = [
    "Device",
    "LoweredProgram",
    "Sharding",
    "SingleDeviceSharding",
    "XlaError",
    "block_until_ready",
    "check_captured_values",
    "clear_caches",
    "compile_and_run",
    "copy_to_host_async",
    "default_backend",
    "default_device",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "jit",
    "jit_p",
    "local_device_count",
    "local_devices",
    "lower",
    "process_count",
    "process_index",
    "process_indices",
    "set_num_cpu_devices",
    "stages",
    "statistics",
]

source.hide(__file__)  # errors and equations show the user's lines, not ours
