"""Clear the caches of programs and of devices; and the clients of the runtime, for libraries."""

from __future__ import annotations

from typing import Any

from xjit import jaxlib_gateway as gateway
from xjit.cache import disk as cache_disk
from xjit.cache.functions import clear_functions
from xjit.dispatch import placement, placement as mesh_placement, placement as replicas
from xjit.lowering.compile import clear_executables
from xprim import config
from xprim.kernels import forget_kernels
from xprim.tracebacks import boundaries

__all__ = [
    "clear_backends", "clear_caches", "backends", "backends_in_use",
    "clear_in_memory_compilation_cache",
    "get_backend", "get_default_device",
]  # fmt: skip

__dir__ = __all__.copy


# -------------------------------------------------------------------------------------- clearing
# Forgetting what is kept of programs, and of devices.

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


# ------------------------------------------------------------------------------- runtime clients
# The platforms that programs run on, for libraries that speak to the runtime themselves.


def get_backend(platform: str | None = None) -> Any:
    """Return the runtime's client of a platform.

    Args:
      platform: `"cpu"` or `"gpu"` (`"cuda"`); by default the default backend.

    Returns:
      jaxlib's object, which has `devices()`, `platform`, `platform_version` and more.

    Example:
      >>> get_backend("cpu").platform
      'cpu'
    """
    return gateway.client(platform)


def backends() -> dict[str, Any]:
    """Return the clients of all platforms that can be used, by their names.

    Example:
      >>> "cpu" in backends()
      True
    """
    gateway.default_backend()
    found = {}
    for name in gateway.platforms():
        try:
            found[name] = gateway.client(name)
        except RuntimeError:  # installed, and no such device
            continue
    return found


def backends_in_use() -> dict[str, Any]:
    """Return the same, or nothing before devices are first used; starts none."""
    return backends() if gateway.has_clients() else {}


def get_default_device() -> Any:
    """Return the device on which data is put when none is named."""
    return gateway.default_device()


def clear_in_memory_compilation_cache() -> None:
    """Forget all compiled programs of this process; those on disk stay."""
    clear_caches()


boundaries(
    globals(),
    names=["backends", "clear_in_memory_compilation_cache", "get_backend", "get_default_device"],
)
