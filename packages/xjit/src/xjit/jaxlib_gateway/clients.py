"""PJRT clients: one for each platform, made on first use.

What: `client`, the number of virtual CPU devices, which platforms there are and which is default.
Idea: importing starts nothing; the first request for a platform makes its client under a lock
and every later one finds it in a dictionary. The CPU client may show several devices, which
share the cores: that is how programs for many devices are tested on one machine.
Neighbours: `gpu_plugin` finds and starts CUDA, `processes` joins several processes;
`xjit.devices` is the public face.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform as machine_facts
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from xprim import device_options
from xprim.descriptions import brief
from xprim.errors import message
from xtree.locks import forkable_rlock

from . import forks
from .gpu_plugin import find_gpu_plugin, make_gpu_client
from .runtime import RuntimeFailure, fail, version, xla_client
from .waits import watched

__all__ = ()

_NAME_BY_ALIAS = {"cpu": "cpu", "gpu": "gpu", "cuda": "gpu"}

MAX_CPU_DEVICES = 4096
"""How many devices the CPU may show: each costs some 0.3 MB and a few threads, used or not."""

_lock = forkable_rlock()
# A client is made when it is first asked for, and once.
_client_by_platform: dict[str, Any] = {}
# The first device of each client.
_default_device_by_platform: dict[str | None, Any] = {}
# Why a platform is not there, which is not tried again.
_failure_by_platform: dict[str, Exception] = {}
# What the client of the CPU is to be made with.
_cpu_settings: dict[str, Any] = {}
_processes: dict[str, Any] = {}  # what clients are told of other processes


def client(platform: str | None = None) -> Any:
    """Return the PJRT client of `platform`, made on the first request.

    Args:
        platform: `"cpu"`, `"gpu"` (or its other name `"cuda"`); by default the default backend.

    Raises:
        ValueError: the name is unknown.
        RuntimeError: the platform's plugin is not installed or its device cannot be used.

    Example:
        >>> client("cpu").platform
        'cpu'
    """
    name = default_backend() if platform is None else canonical_platform(platform)
    found = _client_by_platform.get(name)
    return _make(name) if found is None else found


@functools.cache
def platforms() -> tuple[str, ...]:
    """Return the platforms that may be asked for, the preferred one first, as found at first use.

    The option `platforms`, or else the environment variable `XSTACK_PLATFORMS` (names between
    commas), replaces the list; otherwise it is `gpu`, where the CUDA plugin is installed, and
    `cpu`. No client is made.
    """
    chosen = _chosen_platforms()
    if chosen.strip():
        named = [canonical_platform(name) for name in chosen.split(",") if name.strip()]
        names = tuple(dict.fromkeys(named))
    else:
        names = ("cpu",) if find_gpu_plugin() is None else ("gpu", "cpu")
    for option in (device_options.platforms, device_options.platform_name):
        option.settle("the platforms have been looked up", ",".join(names))
    return names


def _chosen_platforms() -> str:
    options = (device_options.platforms, device_options.platform_name)
    asked = [option.value for option in options if option.value]
    return str(asked[0]) if asked else os.environ.get("XSTACK_PLATFORMS", "")


def default_backend() -> str:
    """Return the platform that is used when none is named.

    It is the first of `platforms()`. A GPU that was not asked for by name and cannot be started
    gives way to the CPU, with one warning.
    """
    first = platforms()[0]
    if first == "cpu" or first in _client_by_platform or _chosen_platforms():
        return first
    with _lock:
        if first not in _failure_by_platform:
            try:
                _make(first)
                return first
            except Exception as error:
                _failure_by_platform[first] = error
                warnings.warn(f"default_backend: the GPU cannot be used: {error}", stacklevel=2)
    return "cpu"


def set_num_cpu_devices(count: int) -> None:
    """Make the CPU client show `count` devices.

    They share the machine's cores and memory. It has to be called before the CPU client is
    first used; the option `num_cpu_devices` and the environment variable `XSTACK_NUM_CPU_DEVICES`
    say the same.

    Raises:
        ValueError: `count` is not an integer from 1 to 4096.
        RuntimeError: the client exists with another number of devices.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_CPU_DEVICES:
        raise _not_a_number_of_devices("set_num_cpu_devices: the number of devices", count)
    with _lock:
        made = _client_by_platform.get("cpu")
        if made is not None and len(made.local_devices()) != count:
            raise RuntimeError(message(
                "set_num_cpu_devices", "the CPU client is already in use.",
                got=f"{count} devices, after a start with {len(made.local_devices())}",
                hint="call it before the first array is made, or set the environment\nvariable "
                "XSTACK_NUM_CPU_DEVICES",
            ))  # fmt: skip
        _cpu_settings["num_devices"] = count


def configure_clients(
    *, distributed_client: Any, node_id: int, num_nodes: int, collectives: Callable[[], Any],
    visible_devices: Sequence[int] = (),
) -> None:  # fmt: skip
    """Have the clients that are still to be made share their devices with other processes.

    Args:
        distributed_client: the runtime's connection to the coordination service.
        node_id: the number of this process.
        num_nodes: how many processes there are.
        collectives: makes what carries values between CPUs.
        visible_devices: the numbers of the GPUs that this process uses; all where none is given.

    Raises:
        RuntimeError: there is a client already.
    """
    with _lock:
        if _client_by_platform:
            raise RuntimeError(message(
                "distributed.initialize", "devices are in use already.",
                got=f"a client of {', '.join(_client_by_platform)}",
                hint="call it before the first array is made",
            ))  # fmt: skip
        _processes.update(
            distributed_client=distributed_client, node_id=node_id, num_nodes=num_nodes,
            collectives=collectives, visible_devices=visible_devices,
        )  # fmt: skip


def forget_clients() -> None:
    """Have the next request for a device make clients anew, as options say by then.

    Raises:
        RuntimeError: other processes share the devices of this one.
    """
    with _lock:
        if _processes:
            raise RuntimeError(message(
                "clear_backends", "other processes share the devices of this one.",
                hint="distributed.shutdown() comes first",
            ))  # fmt: skip
        for known in (_client_by_platform, _default_device_by_platform, _failure_by_platform,
                      _cpu_settings):  # fmt: skip
            known.clear()
        platforms.cache_clear()
        for option in _OPTIONS:
            option.reopen()


_OPTIONS = (device_options.platforms, device_options.platform_name, device_options.num_cpu_devices)


def has_clients() -> bool:
    """Return whether devices are in use."""
    return bool(_client_by_platform)


def canonical_platform(platform: str) -> str:
    """Return `"cpu"` or `"gpu"` for a name or its alias."""
    name = _NAME_BY_ALIAS.get(str(platform).strip().lower())
    if name is None:
        raise RuntimeError(message(
            "devices", f"{platform!r} is not the name of a platform.",
            expected=f"one of {', '.join(_NAME_BY_ALIAS)}",
        ))  # fmt: skip
    return name


_WRITTEN_FOR = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda", "rocm": "rocm", "tpu": "tpu"}


def lowering_platform(platform: str) -> str:
    """Return what programs are written for: `"cpu"`, `"cuda"`, `"rocm"` or `"tpu"`.

    Args:
        platform: one of these, or `"gpu"`, as a device calls its own: here that is CUDA.
    """
    name = str(platform).strip().lower()
    return _WRITTEN_FOR.get(name) or canonical_platform(name)


def device_fingerprint(platform: str | None = None) -> str:
    """Return a text that differs wherever a compiled program of `platform` may not be shared.

    It names the jaxlib and runtime versions, the platform's own version, the kind of its devices,
    their number and the number of processes; for a CPU also its architecture and a digest of
    its features, since compiled code uses what the machine at hand offers.
    """
    found = client(platform)
    local = found.local_devices()
    kinds = sorted({str(device.device_kind) for device in local})
    facts = [version(), found.platform, str(found.platform_version), *kinds]
    facts += [f"{len(local)} of {found.device_count()} devices"]
    if found.platform == "cpu":
        facts += [machine_facts.system(), machine_facts.machine(), _cpu_features()]
    else:
        facts += sorted({str(getattr(device, "compute_capability", "")) for device in local})
    return "; ".join(facts)


def all_devices(platform: str | None = None) -> list[Any]:
    """Return the devices of every process, in the order of their ids."""
    return list(client(platform).devices())


def local_devices(platform: str | None = None) -> list[Any]:
    """Return the devices that this process can place data on."""
    return list(client(platform).local_devices())


def are_local(devices: Sequence[Any]) -> bool:
    """Return whether all of the devices belong to this process."""
    here = devices[0].client.process_index()
    return all(device.process_index == here for device in devices)


def default_device(platform: str | None = None) -> Any:
    """Return the first device of this process, on which data is put when none is named."""
    found = _default_device_by_platform.get(platform)
    if found is None:
        found = _default_device_by_platform[platform] = client(platform).local_devices()[0]
    return found


def _make(name: str) -> Any:
    """Return the client of `name`, making it if no other thread was faster."""
    forks.check()
    with _lock:
        found = _client_by_platform.get(name)
        if found is None:
            forks.in_use[0] = True
            found = _client_by_platform[name] = watched(
                _make_cpu_client if name == "cpu" else lambda: make_gpu_client(_processes)
            )
        return found


def _forget_clients() -> None:
    """Have the next request for a device in a forked child be refused."""
    _client_by_platform.clear()
    _default_device_by_platform.clear()


forks.when_orphaned(_forget_clients)


def _make_cpu_client() -> Any:
    settings = dict(_cpu_settings)
    if "num_devices" not in settings:
        asked = device_options.num_cpu_devices.value
        settings["num_devices"] = _num_devices_from_environment() if asked is None else asked
    if _processes:
        settings |= {k: v for k, v in _processes.items() if k != "visible_devices"}
        settings["collectives"] = settings["collectives"]()
    try:
        made = xla_client.make_cpu_client(**settings)
        device_options.num_cpu_devices.settle("the CPU is in use", len(made.local_devices()))
        return made
    except RuntimeFailure as error:
        fail("client", "the CPU client could not be started", error)


def _num_devices_from_environment() -> int | None:
    """Return the number asked for, or None, with which XLA reads its own XLA_FLAGS (default 1)."""
    text = os.environ.get("XSTACK_NUM_CPU_DEVICES", "").strip()
    if not text:
        return None
    digits = text.lstrip("0") if text.isdecimal() and text.isascii() else ""
    if not 1 <= len(digits) <= len(str(MAX_CPU_DEVICES)) or int(digits) > MAX_CPU_DEVICES:
        raise _not_a_number_of_devices("client: XSTACK_NUM_CPU_DEVICES", text)
    return int(digits)


def _not_a_number_of_devices(what: str, given: Any) -> ValueError:
    return ValueError(
        f"{what} must be a positive integer of at most {MAX_CPU_DEVICES}."
        f"\n  got       {brief(given)}"
    )


@functools.cache
def _cpu_features() -> str:
    """Return the processor's name and a digest of its feature list."""
    lines: Sequence[str] = [machine_facts.processor()]
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        wanted = ("model name", "flags", "Features", "CPU implementer", "CPU part")
        first_processor = cpuinfo.read_text().split("\n\n")[0].splitlines()
        lines = [line for line in first_processor if line.startswith(wanted)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
