"""Compile NumPy-style programs with XLA.

    jit                     compile a function when it is first called
    device_put, device_get  move arrays
    devices, ...            what this machine has
    stages                  compile ahead of time: jit(f).lower(...).compile()

Importing this lets eager evaluation compile large operations, too, and gives arrays the methods
that concern devices. It starts no device.
"""

import xnp  # noqa: F401 - gives tracers their operators, also where nobody else imports it
from xjit import late_primitives  # noqa: F401 - where they are found
from xjit.array_methods import attach
from xjit.eager_backend import EagerBackend, NoDevices
from xjit.exits import end_threads_at_exit
from xjit.jaxlib_gateway import guard_forks, when_orphaned
from xjit.placement import read_buffer
from xprim import install_backend, register_buffer_reader, source
from xtree.namespaces import namespace

__version__ = "0.2.1"

with namespace(globals(), at_once=True):
    from xjit import stages as stages
    from xjit._devices import (
        Device as Device,
        default_backend as default_backend,
        default_device as default_device,
        device_count as device_count,
        devices as devices,
        local_device_count as local_device_count,
        local_devices as local_devices,
        process_count as process_count,
        process_index as process_index,
        process_indices as process_indices,
        set_num_cpu_devices as set_num_cpu_devices,
    )
    from xjit._jit import jit as jit
    from xjit.clearing import clear_caches as clear_caches
    from xjit.compile import statistics as statistics
    from xjit.eager_backend import compile_and_run as compile_and_run
    from xjit.function_caches import check_captured_values as check_captured_values
    from xjit.jaxlib_gateway import XlaError as XlaError
    from xjit.jit_primitive import jit_p as jit_p
    from xjit.live import live_arrays as live_arrays
    from xjit.lowering import LoweredProgram as LoweredProgram, lower as lower
    from xjit.shardings import (
        Sharding as Sharding,
        SingleDeviceSharding as SingleDeviceSharding,
    )
    from xjit.transfer import (
        block_until_ready as block_until_ready,
        copy_to_host_async as copy_to_host_async,
        device_get as device_get,
        device_put as device_put,
    )

register_buffer_reader(read_buffer)
install_backend(EagerBackend())
when_orphaned(lambda: install_backend(NoDevices()))
guard_forks()
attach()
end_threads_at_exit()

source.hide(__file__)  # errors and equations show the user's lines, not ours
