"""Compile NumPy-style programs with XLA.

    jit                     compile a function when it is first called
    device_put, device_get  move arrays
    devices, ...            what this machine has
    stages                  compile ahead of time: jit(f).lower(...).compile()

Importing this lets eager evaluation compile large operations, too, and gives arrays the methods
that concern devices. It starts no device.
"""

import xnp  # noqa: F401 - gives tracers their operators, also where nothing else imports it
from xjit.dispatch.eager_backend import EagerBackend, NoDevices
from xjit.dispatch.placement import read_buffer
from xjit.dispatch.transfer import attach
from xjit.jaxlib_gateway.clients import end_threads_at_exit
from xjit.jaxlib_gateway import guard_forks, when_orphaned
from xprim import install_backend, register_buffer_reader, source
from xprim.primitive import find_in_modules
from xtree.namespaces import moved_modules, namespace

__version__ = "0.2.1"

# The names that public modules had in release 0.2, by where their contents are now.
moved_modules(__name__, """
        cache.clearing: clearing runtime_clients
        cache.disk: cache_disk cache_files
        cache.memory: locks_by_key
        callbacks.ffi: ffi ffi_primitive
        callbacks.functions: format_errors
        callbacks.primitive: callback_primitive callback_runs
        checkify._checkify: checkify.categories checkify.checks checkify.index_bounds
        checkify.rewriting
        debug.explanations: explanations
        debug.monitoring: monitoring retraces
        debug.profiler: profiler
        dispatch.calls: calls
        dispatch.jit: asked_shardings
        dispatch.placement: laid_placement mesh_placement placement replicas
        dispatch.placement_inference: places_of_calls
        dispatch.program: program
        dispatch.sharded_arrays: sharded_arrays
        dispatch.transfer: device_put_primitive live
        export.exported: export.exported_calls export.modules export.reading
        export.files: export.safety export.several_devices export.tree_forms
        export.symbolic_shapes: export.symbolic_programs
        lowering.annotations: composites
        lowering.compile: background first_tier
        lowering.operation_metadata: memories operation_metadata
        lowering.stablehlo_text: manual_text shardy_text stablehlo_constants symbols
        lowering.unreduced_programs: stacked_parts
        sharding.constraints: sharding_constraint
        sharding.custom_partitioning: custom_partitioning factor_rules
        sharding.inspection: sharding_inspection
        sharding.layouts: layouts
        sharding.meshes: meshes
        sharding.partial_sums: auto_axes partial_sums
        sharding.rules: dimension_names sharding_rules
        sharding.shardings: named_shardings partition_specs places_in_programs shardings
        sharding.typed: axis_modes typed_shardings
        stages: unplaced
        stored_programs: parallel_compilation
""")  # fmt: skip

with namespace(globals(), at_once=True):
    from xjit import stages as stages
    from xjit._devices import (
        Device as Device, default_backend as default_backend, default_device as default_device,
        device_count as device_count, devices as devices, local_device_count as local_device_count,
        local_devices as local_devices, process_count as process_count,
        process_index as process_index, process_indices as process_indices,
        set_num_cpu_devices as set_num_cpu_devices,
    )  # fmt: skip
    from xjit.cache.clearing import clear_caches as clear_caches
    from xjit.cache.functions import check_captured_values as check_captured_values
    from xjit.dispatch.calls import jit_p as jit_p
    from xjit.dispatch.eager_backend import compile_and_run as compile_and_run
    from xjit.dispatch.jit import jit as jit
    from xjit.dispatch.transfer import (
        block_until_ready as block_until_ready, copy_to_host_async as copy_to_host_async,
        device_get as device_get, device_put as device_put, live_arrays as live_arrays,
    )  # fmt: skip
    from xjit.jaxlib_gateway import (
        CompilerEffortLevel as CompilerEffortLevel, XlaError as XlaError,
    )  # fmt: skip
    from xjit.lowering.compile import statistics as statistics
    from xjit.lowering.modules import LoweredProgram as LoweredProgram, lower as lower
    from xjit.sharding.shardings import (
        Sharding as Sharding, SingleDeviceSharding as SingleDeviceSharding,
    )  # fmt: skip

# Primitives that few programs have: their modules are imported when one is looked up by its name.
find_in_modules(
    {
        "call_exported": "xjit.export.exported",
        "callback": "xjit.callbacks.primitive",
        "composite": "xjit.lowering.annotations",
        "custom_partitioning": "xjit.sharding.custom_partitioning",
        "dce_sink": "xjit.lowering.annotations",
        "layout_constraint": "xjit.lowering.annotations",
        "xla_metadata_value": "xjit.lowering.annotations",
    }
)
register_buffer_reader(read_buffer)
install_backend(EagerBackend())
when_orphaned(lambda: install_backend(NoDevices()))
guard_forks()
attach()
end_threads_at_exit()

source.hide(__file__)  # errors and equations show the user's lines, not ours
