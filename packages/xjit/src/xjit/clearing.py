"""Forgetting what is kept of programs, and of devices."""

from __future__ import annotations

from xjit import cache_disk, jaxlib_gateway as gateway, mesh_placement, placement, replicas
from xjit.compile import clear_executables
from xjit.function_caches import clear_functions
from xprim import config
from xprim.kernels import forget_kernels

__all__ = ["clear_backends", "clear_caches"]

__dir__ = __all__.copy

# Programs of a function that somebody holds are found by the options that they were made under.
device_generation = config.define(
    config.Option(
        "device_generation", 0, "How often clear_backends was called.", kind=int, in_cache_key=True
    )
)


def clear_caches() -> None:
    """Forget all traced and compiled programs that nothing holds any more."""
    clear_functions()
    forget_kernels()
    clear_executables()


def clear_backends() -> None:
    """Give up all devices and forget all programs; the next use starts devices anew.

    So options such as `num_cpu_devices` can be set again. Arrays on the devices of before stay
    readable, and are brought over where they are used.

    Raises:
      RuntimeError: other processes share the devices of this one.

    Example:
      >>> from xjit import devices
      >>> before = devices("cpu")[0]
      >>> clear_backends()
      >>> devices("cpu")[0] is before
      False
    """
    clear_caches()
    gateway.forget_clients()
    for placements in (placement.one_device, mesh_placement.over_mesh, replicas.replicas):
        placements.cache_clear()
    cache_disk.forget_devices()
    device_generation.set(device_generation.value + 1)
