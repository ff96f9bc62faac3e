"""The platforms that programs run on, for libraries that speak to the runtime themselves.

Neighbours: `_devices` shows their devices.
"""

from __future__ import annotations

from typing import Any

from xjit import jaxlib_gateway as gateway
from xjit.clearing import clear_backends, clear_caches
from xprim.tracebacks import boundaries

__all__ = [
    "backends", "clear_backends", "clear_in_memory_compilation_cache", "get_backend",
    "get_default_device",
]  # fmt: skip

__dir__ = __all__.copy


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


def get_default_device() -> Any:
    """Return the device on which data is put when none is named."""
    return gateway.default_device()


def clear_in_memory_compilation_cache() -> None:
    """Forget all compiled programs of this process; those on disk stay."""
    clear_caches()


boundaries(globals())
