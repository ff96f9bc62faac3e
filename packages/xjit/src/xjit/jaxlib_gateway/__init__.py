"""The gateway to jaxlib: the only folder that imports it.

What: platforms and devices, buffers, executables, and what programs may call, as plain
functions whose behaviour is the same on every supported jaxlib.
Idea: all of jaxlib that is used here is private and moves between its releases; whatever moves
is met in this folder, and its tests run on the oldest and the newest release.
Neighbours: `xjit.devices` shows devices to users; compilation and dispatch build on the rest.
"""

from .runtime import Device, RuntimeFailure, XlaError, fail, version  # isort: skip
from .buffer_pools import BufferPool, PassingSharding, PooledBuffer, buffer_pool
from .buffers import (
    ArrayType,
    Buffer,
    BufferType,
    StackedShards,
    array_type,
    assemble,
    away_from_host,
    block_until_ready,
    copy_to_device,
    copy_to_host_async,
    delete,
    device_of,
    devices_of,
    from_dlpack,
    is_away,
    is_deleted,
    is_ready,
    nbytes_on_device,
    placement,
    placement_of,
    put,
    several_devices,
    shards,
    stacked,
    to_dlpack,
    to_numpy,
    uncommitted,
    unsafe_pointer,
)
from .clients import (
    all_devices,
    canonical_platform,
    client,
    configure_cpu_client,
    default_backend,
    default_device,
    device_fingerprint,
    local_devices,
    platforms,
    set_num_cpu_devices,
)
from .dlpack import dlpack_device
from .executables import Executable, compile_program, deserialize_program
from .foreign import CALLBACK_TARGET, python_callback, register_ffi_target, register_lapack
from .forks import guard_forks, is_orphan, startable, when_orphaned
from .gpu_plugin import GpuPlugin, find_gpu_plugin
from .processes import join_processes, leave_processes
from .sharded_transfer import pooled_shards, put_replicated, put_shards

__all__ = [
    "CALLBACK_TARGET",
    "ArrayType",
    "Buffer",
    "BufferType",
    "BufferPool",
    "PooledBuffer",
    "Device",
    "Executable",
    "GpuPlugin",
    "PassingSharding",
    "RuntimeFailure",
    "StackedShards",
    "XlaError",
    "all_devices",
    "array_type",
    "assemble",
    "away_from_host",
    "block_until_ready",
    "canonical_platform",
    "buffer_pool",
    "client",
    "compile_program",
    "configure_cpu_client",
    "copy_to_device",
    "copy_to_host_async",
    "default_backend",
    "default_device",
    "delete",
    "deserialize_program",
    "device_fingerprint",
    "device_of",
    "devices_of",
    "dlpack_device",
    "fail",
    "find_gpu_plugin",
    "from_dlpack",
    "guard_forks",
    "is_away",
    "is_deleted",
    "is_orphan",
    "is_ready",
    "join_processes",
    "leave_processes",
    "local_devices",
    "nbytes_on_device",
    "pooled_shards",
    "placement",
    "placement_of",
    "platforms",
    "put",
    "put_replicated",
    "put_shards",
    "python_callback",
    "register_ffi_target",
    "register_lapack",
    "set_num_cpu_devices",
    "several_devices",
    "shards",
    "stacked",
    "startable",
    "to_dlpack",
    "to_numpy",
    "uncommitted",
    "unsafe_pointer",
    "version",
    "when_orphaned",
]
