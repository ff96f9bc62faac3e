"""The devices of this machine, by JAX's names.

What: `devices`, `local_devices`, their counts, `default_backend`, `default_device` and the
numbers of processes.
Idea: a device is the runtime's own object (`id`, `platform`, `device_kind`, `process_index`,
`memory_stats()`). Asking for devices starts the platform's client, importing this does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from xprim.requirements import require_choice
from xprim.tracebacks import boundaries

from . import jaxlib_gateway as gateway

__all__ = [
    "Device",
    "default_backend",
    "default_device",
    "device_count",
    "devices",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
    "process_indices",
    "set_num_cpu_devices",
]

__dir__ = __all__.copy

if TYPE_CHECKING:
    Device: TypeAlias = Any
else:
    Device = gateway.Device

default_backend = gateway.default_backend
set_num_cpu_devices = gateway.set_num_cpu_devices


def devices(backend: str | None = None) -> list[Device]:
    """Return all devices of a backend, those of other processes included, by their ids.

    Args:
        backend: `"cpu"` or `"gpu"` (`"cuda"`); by default the default backend.

    Raises:
        ValueError: the name is unknown.
        RuntimeError: the backend cannot be used on this machine.

    Example:
        >>> devices("cpu")[0].platform
        'cpu'
    """
    return gateway.all_devices(backend)


def local_devices(
    process_index: int | None = None,
    backend: str | None = None,
    host_id: int | None = None,
) -> list[Device]:
    """Return the devices that belong to one process, by default to this one.

    Args:
        process_index: the number of another process.
        backend: as in `devices`.
        host_id: the older name of `process_index`.

    Raises:
        ValueError: unknown process.
    """
    if process_index is not None and host_id is not None:
        raise ValueError("local_devices: process_index and host_id are one argument; give one.")
    wanted = process_index if process_index is not None else host_id
    if wanted is None:
        return gateway.local_devices(backend)
    require_choice("local_devices", "process", wanted, process_indices(backend))
    return [device for device in devices(backend) if device.process_index == wanted]


def device_count(backend: str | None = None) -> int:
    """Return the number of devices in all processes.

    Example:
        >>> device_count("cpu") == len(devices("cpu"))
        True
    """
    return int(gateway.client(backend).device_count())


def local_device_count(backend: str | None = None) -> int:
    """Return the number of devices of this process."""
    return int(gateway.client(backend).local_device_count())


def default_device(backend: str | None = None) -> Device:
    """Return the device on which data is put when none is named: the first of this process."""
    return gateway.default_device(backend)


def process_index(backend: str | None = None) -> int:
    """Return the number of this process among those that work together, 0 when it is alone."""
    return int(gateway.client(backend).process_index())


def process_count(backend: str | None = None) -> int:
    """Return how many processes have devices of the backend."""
    return len(process_indices(backend))


def process_indices(backend: str | None = None) -> list[int]:
    """Return the numbers of the processes that have devices of the backend, in order."""
    return sorted({int(device.process_index) for device in devices(backend)})


boundaries(globals())
