"""The gateway to jaxlib: the only folder that imports it.

What: platforms and devices, buffers, executables, and what programs may call, as plain
functions whose behaviour is the same on every supported jaxlib.
Idea: all of jaxlib that is used here is private and moves between its releases; whatever moves
is met in this folder, and its tests run on the oldest and the newest release.
"""

from xtree.namespaces import namespace

with namespace(globals(), at_once=True):
    from xjit.jaxlib_gateway.runtime import (
        COPIES_FUNCTIONS_FIRST as COPIES_FUNCTIONS_FIRST,
        DROPS_BARRIERS as DROPS_BARRIERS, FOLDS_DIVISION_BY_ZERO as FOLDS_DIVISION_BY_ZERO,
        HAS_WRONG_WIDE_ATAN as HAS_WRONG_WIDE_ATAN, LIMITS_LOOPS_TO_1_KB as LIMITS_LOOPS_TO_1_KB,
        LOSES_RESULTS_OF_NAN as LOSES_RESULTS_OF_NAN,
        MISREADS_REPEATED_FACTORS as MISREADS_REPEATED_FACTORS, Device as Device,
        RuntimeFailure as RuntimeFailure, SLICES_BEYOND_PIECES as SLICES_BEYOND_PIECES,
        TILES_BY_WAY_OF_STACK as TILES_BY_WAY_OF_STACK, XlaError as XlaError, fail as fail,
        version as version,
    )  # fmt: skip

with namespace(globals(), at_once=True):
    from xjit.jaxlib_gateway.array_types import (
        ArrayType as ArrayType, Tiles as Tiles, array_type as array_type,
        element_type as element_type, hlo_sharding as hlo_sharding, whole as whole,
    )  # fmt: skip
    from xjit.jaxlib_gateway.buffers import (
        Buffer as Buffer, BufferPool as BufferPool, BufferType as BufferType,
        PassingSharding as PassingSharding, PooledBuffer as PooledBuffer,
        StackedShards as StackedShards, assemble as assemble, away_from_host as away_from_host,
        block_until_ready as block_until_ready, buffer_pool as buffer_pool,
        check_all_kept as check_all_kept, check_kept as check_kept,
        copy_to_device as copy_to_device, copy_to_host_async as copy_to_host_async,
        cuda_array_interface as cuda_array_interface, delete as delete, device_of as device_of,
        devices_of as devices_of, dlpack_device as dlpack_device, from_dlpack as from_dlpack,
        in_host_memory as in_host_memory, is_away as is_away, is_deleted as is_deleted,
        dlpack_device_of_capsule as dlpack_device_of_capsule, is_ready as is_ready,
        make_pooled_shards as make_pooled_shards,
        nbytes_on_device as nbytes_on_device, note_devices as note_devices,
        placement as placement, placement_of as placement_of,
        put as put, put_replicated as put_replicated, put_shards as put_shards,
        several_devices as several_devices, shards as shards,
        sharding_of_stack as sharding_of_stack, to_dlpack as to_dlpack, to_numpy as to_numpy,
        sharding_of_uncommitted as sharding_of_uncommitted, unsafe_pointer as unsafe_pointer,
    )  # fmt: skip
    from xjit.jaxlib_gateway.clients import (
        GpuPlugin as GpuPlugin, Member as Member, Watcher as Watcher, all_devices as all_devices,
        are_local as are_local, canonical_platform as canonical_platform, client as client,
        configure_clients as configure_clients, default_backend as default_backend,
        default_device as default_device, device_fingerprint as device_fingerprint,
        explain_failure as explain_failure, find_gpu_plugin as find_gpu_plugin,
        forget_clients as forget_clients, guard_forks as guard_forks, has_clients as has_clients,
        has_wide_registers as has_wide_registers, is_orphan as is_orphan,
        local_devices as local_devices, lowering_platform as lowering_platform,
        platforms as platforms, serve as serve, set_num_cpu_devices as set_num_cpu_devices,
        share_devices as share_devices, startable as startable, until_ready as until_ready,
        watch as watch, wait_watched as wait_watched, when_orphaned as when_orphaned,
    )  # fmt: skip
    from xjit.jaxlib_gateway.executables import (
        CALLBACK_TARGET as CALLBACK_TARGET, EXTRA_OPTIONS as EXTRA_OPTIONS,
        PARTITIONER_TARGET as PARTITIONER_TARGET, PIECES_TARGET as PIECES_TARGET,
        CompilerEffortLevel as CompilerEffortLevel,
        Executable as Executable, MemoryAnalysis as MemoryAnalysis, Order as Order,
        Partitioner as Partitioner, ShardingProbe as ShardingProbe,
        ask_partitioner as ask_partitioner, compile_program as compile_program,
        deserialize_program as deserialize_program, estimate_cost as estimate_cost,
        hlo_computation as hlo_computation, hlo_text as hlo_text, include_dir as include_dir,
        layout_mode as layout_mode, orders_of as orders_of, orders_used as orders_used,
        portable as portable, print_stablehlo as print_stablehlo,
        python_callback as python_callback,
        register_batch_partitionable as register_batch_partitionable,
        register_ffi_target as register_ffi_target, register_ffi_type as register_ffi_type,
        register_lapack as register_lapack, stablehlo_module as stablehlo_module,
        text_of_portable as text_of_portable, reorder as reorder,
    )  # fmt: skip
    from xjit.jaxlib_gateway.host_kernels import (
        HOST_KERNEL as HOST_KERNEL, HOST_KERNEL_DTYPES as HOST_KERNEL_DTYPES,
        LEAST_ELEMENTS as LEAST_ELEMENTS, HostKernel as HostKernel,
        register_host_kernels as register_host_kernels,
    )  # fmt: skip
    from xjit.jaxlib_gateway.sharded_buffers import (
        SpreadOver as SpreadOver, alike as alike, as_spread as as_spread,
        assemble_spread as assemble_spread, make_sharding_object as make_sharding_object,
        order_of as order_of, pieces_by_device as pieces_by_device, put_spread as put_spread,
        respread as respread, sharding_with_layouts as sharding_with_layouts,
    )  # fmt: skip
