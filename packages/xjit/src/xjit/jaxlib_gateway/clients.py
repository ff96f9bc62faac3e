"""PJRT clients: one for each platform, made on first use; processes, forks, CUDA."""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib
import importlib.util
import os
import platform as machine_facts
import queue
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar

from xjit.byte_formats import sha256
from xjit.jaxlib_gateway.runtime import RuntimeFailure, XlaError, _jax, fail, version, xla_client
from xprim import eager_costs, runtime_options
from xprim.config import no_more_threads, threads_seen
from xprim.errors import brief, message
from xprim.source import is_hidden
from xtree.interning import forkable_rlock
from xtree.namespaces import import_by_name

__all__ = ()


# ----------------------------------------------------------------------------------------- forks
# After a fork: the child has the memory of its parent, and none of its threads.
#
# The runtime's threads do the work of programs and copies, so whatever needs them in the child
# would wait for ever. `startable` knows all that can start a program; in the child each is made
# to raise. Memory on the host stays readable. A parent that has used no device leaves nothing to
# guard.

in_use = [False]
"""Whether this process has made a client."""

is_orphan = [False]
"""Whether this process was forked from one that had."""

# What starts a program: in a child of a fork all of these refuse.
_startable: weakref.WeakSet[Any] = weakref.WeakSet()
_callbacks: list[Callable[[], None]] = []


def guard_forks() -> None:
    """Have children of this process look after themselves.

    To be called once, when all locks exist: children free them in the order of their making, and
    what is done here takes some.
    """
    if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
        os.register_at_fork(after_in_child=_in_child)


def startable(x: Any) -> None:
    """Note an object whose attribute `start` starts a program."""
    _startable.add(x)


def when_orphaned(callback: Callable[[], None]) -> None:
    """Have `callback` called in a child that cannot use the devices of its parent."""
    _callbacks.append(callback)


def refuse(*_: Any) -> NoReturn:
    """Raise the error for the use of a device in such a child."""
    raise XlaError(message(
        "devices", "this process was forked from one that had used them, and has none.",
        expected="a separate process, or work that NumPy does",
        hint="multiprocessing.get_context('spawn') starts processes that can use devices;\nso does "
        "a fork before the first use of a device",
    ))  # fmt: skip


def check() -> None:
    """Raise where devices are out of reach."""
    if is_orphan[0]:
        refuse()


def _in_child() -> None:
    if not in_use[0]:
        return
    is_orphan[0] = True
    _idle.clear()
    for made in _client_by_platform.values():
        # its destructor would wait, when this process ends, for threads that the parent alone has
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    for x in list(_startable):
        x.start = refuse
    for callback in _callbacks:
        callback()


# ----------------------------------------------------------------------------------------- waits
# Waiting for the runtime while other processes may fail.
#
# The runtime waits in C++ for values of other processes, for ever if one of them has stopped.
# Where processes work together somebody watches them (`watch`): then waiting is asking again and
# again, and the watcher may raise in between.

T = TypeVar("T")


class Watcher(Protocol):
    """Who knows whether the other processes live."""

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Return when `is_done` says so; raise where that will not come."""

    def explain(self, failure: BaseException) -> None:
        """Raise what stands behind a failure of the runtime, or return where nothing is known."""

    def agree(self, text: str, name: str, devices: tuple[Any, ...]) -> None:
        """Raise where other processes compile another program for their part of these devices."""


watch: list[Watcher | None] = [None]
"""Who watches the other processes, if there are any."""


def until_ready(buffer: Any) -> None:
    """Wait until a buffer is computed.

    Raises:
        RuntimeFailure: it was not computed, or is deleted.
    """
    watcher = watch[0]
    if watcher is None or buffer.is_deleted():
        buffer.block_until_ready()
        return
    watcher.wait(buffer.is_ready)
    try:
        buffer.block_until_ready()
    except RuntimeFailure as failure:
        watcher.explain(failure)
        raise


def explain_failure(failure: BaseException) -> None:
    """Raise the failure of another process that stands behind one of the runtime, if it does."""
    watcher = watch[0]
    if watcher is not None:
        watcher.explain(failure)


_PAUSE = 0.002  # seconds from one look at the others to the next


class _Helper:
    """A thread that waits in C++ for other processes in place of one that looks at them."""

    __slots__ = ("answers", "work")

    def __init__(self) -> None:
        self.work: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        name = "xjit: waiting for other processes"
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                self.answers.put((self.work.get()(), None))
            except BaseException as error:
                self.answers.put((None, error))


_idle: list[_Helper] = []


def wait_watched(work: Callable[[], T]) -> T:
    """Return the result of work that waits for other processes in C++."""
    watcher = watch[0]
    if watcher is None:
        return work()
    try:
        helper = _idle.pop()
    except IndexError:
        helper = _Helper()
    helper.work.put(work)
    answers: list[tuple[T, BaseException | None]] = []

    def is_done() -> bool:
        with suppress(queue.Empty):
            answers.append(helper.answers.get(timeout=_PAUSE))
        return bool(answers)

    watcher.wait(is_done)  # where that raises, the helper may wait for ever
    _idle.append(helper)
    ((result, error),) = answers
    if error is not None:
        watcher.explain(error)
        raise error
    return result


# ------------------------------------------------------------------------------------ gpu plugin
# Find and start the CUDA plugin, without running the plugin's own Python code.
#
# What: `find_gpu_plugin` and `make_gpu_client`. Idea: the distributions `jax-cuda13-pjrt` and
# `jax-cuda13-plugin` hold a shared library and the handlers of its custom calls, but their
# `initialize()` imports `jax`. So the library is found by its path and loaded, and the handlers
# are registered one by one, as that function does it. NVIDIA's libraries are loaded first: when
# they come as Python packages no loader path names them. Source of the order of steps:
# `jax_plugins/cuda/__init__.py` of the JAX project.

_CUDA_VERSIONS = ("13", "12")
_HANDLER_MODULES = ("gpu_linalg", "gpu_prng", "gpu_solver", "gpu_sparse")
# In the order in which they depend on one another.
_NVIDIA_LIBRARIES = (
    "libcudart.so.*", "libnvrtc.so.*", "libcublasLt.so.*", "libcublas.so.*", "libnccl.so.*",
    "libcupti.so.*", "libnvJitLink.so.*", "libcusparse.so.*", "libcusolver.so.*",
    "libcufft.so.*", "libnvshmem_host.so.*", "libcudnn.so.*",
)  # fmt: skip


class GpuPlugin(NamedTuple):
    """Where the plugin's library lies and which package holds its custom calls."""

    library: Path
    handlers: str


@functools.cache
def find_gpu_plugin() -> GpuPlugin | None:
    """Return the installed CUDA plugin, the newest version first, or None."""
    for cuda in _CUDA_VERSIONS:
        for folder in _folders_of("jax_plugins"):
            library = folder / f"xla_cuda{cuda}" / "xla_cuda_plugin.so"
            if library.exists():
                return GpuPlugin(library, f"jax_cuda{cuda}_plugin")
    return None


def make_gpu_client(processes: Mapping[str, Any]) -> Any:
    """Start the CUDA plugin and return its client.

    Args:
        processes: what there is to say of other processes, nothing where this one is alone.
    """
    plugin = find_gpu_plugin()
    if plugin is None:
        raise RuntimeError(message(
            "Unknown backend", "the platform 'gpu' needs the CUDA plugin, which is not installed.",
            expected="the distributions jax-cuda13-plugin and jax-cuda13-pjrt, in the\nversion of "
            "jaxlib",
        ))  # fmt: skip
    try:
        if not xla_client.pjrt_plugin_loaded("cuda"):
            _load_nvidia_libraries()
            c_api = xla_client.load_pjrt_plugin_dynamically("cuda", str(plugin.library))
            _register_handlers(plugin.handlers, c_api)
        if not xla_client.pjrt_plugin_initialized("cuda"):
            xla_client.initialize_pjrt_plugin("cuda")
        options = gpu_client_options(processes)
        # Of several processes NCCL carries the values: untested, as no GPU was at hand.
        others = [processes["distributed_client"]] if processes else []
        made = xla_client.make_c_api_client("cuda", options, *others)
    except RuntimeFailure as error:
        fail("client", "the GPU client could not be started", error)
    for option, key in _GPU_OPTIONS.items():
        option.settle("a GPU is in use", options.get(key, option.value))
    return made


# The options of the process, and what the plugin calls them.
_GPU_OPTIONS = {
    runtime_options.gpu_memory_fraction: "memory_fraction",
    runtime_options.gpu_preallocate: "preallocate",
    runtime_options.gpu_allocator: "allocator",
    runtime_options.cuda_visible_devices: "",
}


def gpu_client_options(processes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the CUDA plugin is to make its client with.

    An option of `config` comes before JAX's environment variables (`XLA_CLIENT_MEM_FRACTION` or
    `XLA_PYTHON_CLIENT_MEM_FRACTION`, `XLA_PYTHON_CLIENT_PREALLOCATE`,
    `XLA_PYTHON_CLIENT_ALLOCATOR`, which jaxlib reads). Where neither says so, memory is not taken
    beforehand: XLA's own default is three quarters of it at once.

    Args:
        processes: what there is to say of other processes, nothing where this one is alone.

    Raises:
        ValueError: an environment variable has a value that says nothing.
    """
    try:
        options: dict[str, Any] = xla_client.generate_pjrt_gpu_plugin_options()
    except ValueError as error:
        raise ValueError(message(
            "client", "an environment variable says nothing that a GPU knows.", got=str(error),
            hint="config.update('gpu_memory_fraction', 0.5), 'gpu_preallocate' and 'gpu_allocator' "
            "say the same",
        )) from None  # fmt: skip
    options.setdefault("preallocate", False)
    given = {key: option.value for option, key in _GPU_OPTIONS.items() if key}
    options |= {key: value for key, value in given.items() if value is not None}
    seen = runtime_options.cuda_visible_devices.value
    visible = [] if seen == "all" else [int(number) for number in seen.split(",")]
    if processes:
        options |= {"node_id": processes["node_id"], "num_nodes": processes["num_nodes"]}
        visible = list(processes["visible_devices"]) or visible
    if visible:
        options["visible_devices"] = visible
    return options


def _folders_of(namespace: str) -> list[Path]:
    """Return the folders of a namespace package, without importing any code."""
    found = importlib.util.find_spec(namespace)
    folders = None if found is None else found.submodule_search_locations
    return [Path(folder) for folder in folders or ()]


def _load_nvidia_libraries() -> None:
    folders = [lib for root in _folders_of("nvidia") for lib in root.glob("*/lib")]
    for pattern in _NVIDIA_LIBRARIES:
        for path in sorted(file for folder in folders for file in folder.glob(pattern)):
            try:
                ctypes.CDLL(str(path))
            except OSError:  # another copy on the loader's path may serve; the client will say
                continue


def _register_handlers(package: str, c_api: Any) -> None:
    """Register the typed custom calls that the plugin's own package holds."""
    extension = import_by_name(f"{package}.cuda_plugin_extension")
    register = functools.partial(extension.register_custom_call_target, c_api)
    xla_client.register_custom_call_handler("CUDA", register)
    if hasattr(extension, "ffi_types"):
        register_type = functools.partial(extension.register_custom_type, c_api)
        xla_client.register_custom_type_handler("CUDA", register_type)
        for name, value in extension.ffi_types().items():
            xla_client.register_custom_type(name, value, platform="CUDA")
    handlers = getattr(extension, "ffi_handlers", None) or extension.ffi_registrations
    for name, value in handlers().items():
        xla_client.register_custom_call_target(name, value, platform="CUDA", api_version=1)
    for name, value in import_by_name(f"{package}._triton").registrations().items():
        xla_client.register_custom_call_target(name, value, platform="CUDA", api_version=1)
    for name in _HANDLER_MODULES:
        module = import_by_name(f"jaxlib.{name}")
        for target in getattr(module, "batch_partitionable_targets", list)():
            xla_client.register_custom_call_as_batch_partitionable(target)
        for target, capsule, api_version in module.registrations().get("CUDA", ()):
            xla_client.register_custom_call_target(
                target, capsule, platform="CUDA", api_version=api_version
            )
        # what runs on the host there (`cuhybrid_eig_real`) finds LAPACK, which this loads
        getattr(module, "initialize_hybrid_kernels", list)()


# --------------------------------------------------------------------------------------- clients
# PJRT clients: one for each platform, made on first use.
#
# What: `client`, the number of virtual CPU devices, which platforms there are and which is
# default. Idea: importing starts nothing; the first request for a platform makes its client under
# a lock and every later one finds it in a dictionary. The CPU client may show several devices,
# which share the cores: that is how programs for many devices are tested on one machine.

_NAME_BY_ALIAS = {"cpu": "cpu", "gpu": "gpu", "cuda": "gpu"}

MAX_CPU_DEVICES = 4096
"""How many devices the CPU may show: each costs some 0.3 MB and a few threads, used or not."""

_lock = forkable_rlock()
# A client is made when it is first used, and once.
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
    """Return the platforms that may be used, the preferred one first, as found at first use.

    The option `platforms`, or else the environment variable `XSTACK_PLATFORMS` (names between
    commas), replaces the list; otherwise it is `gpu`, where the CUDA plugin is installed, and
    `cpu`. No client is made.
    """
    chosen = _choose_platforms()
    if chosen.strip():
        named = [canonical_platform(name) for name in chosen.split(",") if name.strip()]
        names = tuple(dict.fromkeys(named))
    else:
        names = ("cpu",) if find_gpu_plugin() is None else ("gpu", "cpu")
    for option in (runtime_options.platforms, runtime_options.platform_name):
        option.settle("the platforms have been looked up", ",".join(names))
    return names


def _choose_platforms() -> str:
    options = (runtime_options.platforms, runtime_options.platform_name)
    chosen = [option.value for option in options if option.value]
    return str(chosen[0]) if chosen else os.environ.get("XSTACK_PLATFORMS", "")


def default_backend() -> str:
    """Return the platform that is used when none is named.

    It is the first of `platforms()`. A GPU that was not chosen by name and cannot be started
    gives way to the CPU, with one warning.
    """
    first = platforms()[0]
    if first == "cpu" or first in _client_by_platform or _choose_platforms():
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


_OPTIONS = (
    runtime_options.platforms, runtime_options.platform_name, runtime_options.num_cpu_devices,
    runtime_options.num_threads, *_GPU_OPTIONS,
)  # fmt: skip


def has_clients() -> bool:
    """Return whether devices are in use."""
    return bool(_client_by_platform)


def canonical_platform(platform: str) -> str:
    """Return `"cpu"` or `"gpu"` for a name or its alias."""
    name = _NAME_BY_ALIAS.get(str(platform).strip().lower())
    if name is None:
        raise RuntimeError(message(
            "Unknown backend", f"{platform!r} is not the name of a platform.",
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
    check()
    with _lock:
        found = _client_by_platform.get(name)
        if found is None:
            in_use[0] = True
            found = _client_by_platform[name] = wait_watched(
                _make_cpu_client if name == "cpu" else lambda: make_gpu_client(_processes)
            )
        return found


def _forget_clients() -> None:
    """Have the next request for a device in a forked child be refused."""
    _client_by_platform.clear()
    _default_device_by_platform.clear()


when_orphaned(_forget_clients)


def _make_cpu_client() -> Any:
    settings = dict(_cpu_settings)
    if "num_devices" not in settings:
        count = runtime_options.num_cpu_devices.value
        settings["num_devices"] = _num_devices_from_environment() if count is None else count
    if _processes:
        settings |= {k: v for k, v in _processes.items() if k != "visible_devices"}
        settings["collectives"] = settings["collectives"]()
    keep_freed_pages()
    try:
        with _thread_count():
            made = xla_client.make_cpu_client(**settings)
        runtime_options.num_cpu_devices.settle("the CPU is in use", len(made.local_devices()))
        return made
    except RuntimeFailure as error:
        fail("client", "the CPU client could not be started", error)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of options in <malloc.h>
_MOST_FROM_HEAP = 32 << 20
_MOST_KEPT = 64 << 20


def keep_freed_pages() -> None:
    """Have glibc keep freed memory from the start as it does after it freed an array of 32 MB.

    Its limits grow with what is freed. Before, it returns all but a few megabytes to the system,
    and the pages of each result are filled with zeros again: 2 us for 4 kB, which can be three
    times the arithmetic. Settings of the user in the environment take precedence.

    Source: mallopt(3), "Dynamic mmap threshold". Reasons: decision 0038.
    """
    if eager_costs.is_malloc_set() or not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return
    mallopt(_MMAP_THRESHOLD, _MOST_FROM_HEAP)
    mallopt(_TRIM_THRESHOLD, _MOST_KEPT)


@contextmanager
def _thread_count() -> Iterator[None]:
    """Have XLA make pools of so many threads as the option `num_threads` or the environment say.

    XLA reads the variable NPROC, and without it counts the cores that the process may use.
    """
    count = runtime_options.num_threads.value or _num_threads_from_environment()
    before = os.environ.get("NPROC")
    if count is not None:
        os.environ["NPROC"] = str(count)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("NPROC", None)
        else:
            os.environ["NPROC"] = before
        runtime_options.num_threads.settle("the CPU is in use", count)


def _num_threads_from_environment() -> int | None:
    text = os.environ.get("XSTACK_NUM_THREADS", "").strip()
    if text and not (text.isdecimal() and int(text)):
        raise ValueError(message(
            "client", "XSTACK_NUM_THREADS must be a positive number.", got=repr(text),
        ))  # fmt: skip
    if not text:  # OpenMP's may be a list with a number for each level
        text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(text) if text.isdecimal() and int(text) else None


def _num_devices_from_environment() -> int | None:
    """Return the number that is set; with None XLA reads its own XLA_FLAGS (default 1)."""
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
    wanted = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    known = _first_processor()
    lines = [line for line in known if line.startswith(wanted)] or known
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


@functools.cache
def has_wide_registers() -> bool:
    """Return whether the processor has vector registers of 512 bits and keeps its clock in them.

    The feature is that of Intel's Ice Lake, AMD's Zen 4 and what came after these.
    """
    flags = [line for line in _first_processor() if line.startswith("flags")]
    return any("avx512_vbmi2" in line.split() for line in flags)


def _first_processor() -> Sequence[str]:
    """Return what Linux says of the first processor, elsewhere its name alone."""
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return [machine_facts.processor()]
    return cpuinfo.read_text().split("\n\n")[0].splitlines()


# ------------------------------------------------------------------------------------- processes
# Several processes that share one set of devices.
#
# What: the coordination service (`serve`), one process's connection to it (`Member`), and what
# has the clients of devices made with it (`share_devices`). Idea: the service holds texts under
# keys, through which all learn of one another's devices; the client of each then knows the
# devices of all, and values travel over TCP (gloo) between CPUs and by NCCL between GPUs. A
# connection that fails ends the process in C++, so whoever connects makes sure that the service
# and the others are there (`xpar.distributed` does).


class Member:
    """The connection of one process to the service.

    Args:
        address: `host:port` of the service.
        process_id: the number of this process, from 0.
        timeout: how long the service may take to answer, in seconds.
        heartbeat_timeout: after how many seconds without a sign the service calls a process dead.

    Raises:
        XlaError: the service refused. Where there is no answer, jaxlib ends the process.
    """

    def __init__(self, address: str, process_id: int, timeout: int, heartbeat_timeout: int) -> None:
        self.client = _jax.get_distributed_runtime_client(
            address, process_id, init_timeout=timeout, heartbeat_timeout=heartbeat_timeout,
            shutdown_timeout=10, use_compression=True,
        )  # fmt: skip
        try:
            self.client.connect()
        except RuntimeFailure as error:
            fail("initialize", f"no connection by way of {address}", error)

    def set(self, key: str, text: str) -> None:
        """Keep a text under a key, in place of what was there."""
        self._ask(self.client.key_value_set, key, text, allow_overwrite=True)

    def set_bytes(self, key: str, data: bytes) -> None:
        """Keep bytes under a key, in place of what was there."""
        self._ask(self.client.key_value_set_bytes, key, data, allow_overwrite=True)

    def get_bytes(self, key: str) -> bytes | None:
        """Return what is kept under a key, None where there is nothing."""
        try:
            found: bytes = self.client.key_value_try_get_bytes(key)
        except RuntimeFailure as error:
            if "NOT_FOUND" in str(error):
                return None
            fail("distributed", "the coordination service did not answer", error)
        return found

    def texts(self, folder: str) -> dict[str, str]:
        """Return what is kept under the keys that begin with `folder/`, by what follows."""
        found = self._ask(self.client.key_value_dir_get, folder)
        return {key.rpartition("/")[2]: text for key, text in found}

    def count(self, key: str) -> int:
        """Add one to the number under a key, and return it."""
        return int(self._ask(self.client.key_value_increment, key, 1))

    def delete(self, key: str) -> None:
        """Forget a key, and all that begin with it and a slash."""
        self._ask(self.client.key_value_delete, key)

    def live(self, process_ids: Sequence[int]) -> dict[int, int]:
        """Wait for the living among these processes to call this, and return which they are.

        Returns:
            For each of them a number that another start of it would not have.
        """
        found: dict[int, int] = self._ask(self.client.get_live_nodes, list(process_ids))
        return found

    def leave(self) -> None:
        """End the connection."""
        self._ask(self.client.shutdown)

    def notice_of_preemption(self) -> Any:
        """Return what has processes agree on a step when one is ended by SIGTERM.

        From then on that signal ends this process no more.
        """
        manager = _jax.create_preemption_sync_manager()
        manager.initialize(self.client)
        return manager

    def _ask(self, method: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except RuntimeFailure as error:
            fail("distributed", "the coordination service did not answer", error)


def serve(address: str, num_processes: int, heartbeat_timeout: int) -> Any:
    """Start the coordination service in this process; it ends when the result is shut down.

    Args:
        address: where it listens, `host:port`.
        num_processes: how many processes there are.
        heartbeat_timeout: after how many seconds without a sign a process counts as dead.

    Raises:
        XlaError: it cannot listen there.
    """
    try:
        return _jax.get_distributed_runtime_service(
            address, num_processes, heartbeat_timeout=heartbeat_timeout, shutdown_timeout=10,
            recoverable=True,  # otherwise the death of one ends all others, without a word
        )  # fmt: skip
    except RuntimeFailure as error:
        fail("initialize", f"the coordination service cannot listen at {address}", error)


def share_devices(
    member: Member, process_id: int, num_processes: int, hostname: str | None = None,
    visible_devices: Sequence[int] = (),
) -> None:  # fmt: skip
    """Have the clients of devices that are made from now on know those of all processes.

    Args:
        member: the connection of this process.
        process_id: its number.
        num_processes: how many there are.
        hostname: the name or address at which the others reach this process, for gloo.
        visible_devices: the numbers of the GPUs that this process uses; all where none is given.

    Raises:
        RuntimeError: devices are in use already.
    """
    configure_clients(
        distributed_client=member.client,
        node_id=process_id,
        num_nodes=num_processes,
        visible_devices=visible_devices,
        collectives=lambda: _jax.make_gloo_tcp_collectives(
            distributed_client=member.client, hostname=hostname
        ),
    )


# ------------------------------------------------------------------------------ exit of the process
# End the daemon threads that use the library before the interpreter ends.
#
# Until Python 3.14 a thread that comes out of the runtime when the interpreter is gone is unwound
# through C++ that allows no unwinding, and the process dies by a signal. So at exit each daemon
# thread that has used the library is ended by a `SystemExit` at its next step, which Python
# does not report; those that are inside the library are waited for, and get another. A thread that
# comes to the library later ends at its first step there.

# A thread may be inside a long program; after this it is left to its fate.
_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.001
# What is between the library and the thread's code may forget the first `SystemExit`.
_ASK_AGAIN_SECONDS = 0.1
# Until then a thread that is outside the library may be on its way into it.
_GRACE_SECONDS = 0.15


def end_threads_at_exit() -> None:
    """Have daemon threads end before the interpreter does; called once."""
    if sys.version_info < (3, 14):  # from there on such threads are stopped where they are
        atexit.register(_end_daemon_threads)


def _end_daemon_threads() -> None:
    no_more_threads.set()
    threads = [t for t in threading.enumerate() if t.daemon and t.ident in threads_seen
               and t is not threading.current_thread()]  # fmt: skip
    start, requests, waited = time.monotonic(), 0, 0.0
    while threads and waited < _PATIENCE_SECONDS:
        if waited >= requests * _ASK_AGAIN_SECONDS:
            requests += 1
            for thread in threads:
                _ask_to_end(thread)
        time.sleep(_PAUSE_SECONDS)
        waited = time.monotonic() - start
        early = waited < _GRACE_SECONDS
        threads = [t for t in threads if t.is_alive() and (early or _is_inside(t))]


def _ask_to_end(thread: threading.Thread) -> None:
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
    )


def _is_inside(thread: threading.Thread) -> bool:
    """Return whether a thread is in a call of the library."""
    frame: FrameType | None = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if is_hidden(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False
