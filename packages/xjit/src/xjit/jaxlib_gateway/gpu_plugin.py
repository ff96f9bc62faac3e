"""Find and start the CUDA plugin, without running the plugin's own Python code.

What: `find_gpu_plugin` and `make_gpu_client`.
Idea: the distributions `jax-cuda13-pjrt` and `jax-cuda13-plugin` hold a shared library and the
handlers of its custom calls, but their `initialize()` imports `jax`. So the library is found by
its path and loaded, and the handlers are registered one by one, as that function does it.
NVIDIA's libraries are loaded first: when they come as Python packages no loader path names them.
Source of the order of steps: `jax_plugins/cuda/__init__.py` of the JAX project.
Neighbours: `clients` calls this under its lock.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from xprim.errors import message

from .runtime import RuntimeFailure, fail, xla_client

__all__ = ()

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
            "client", "the platform 'gpu' needs the CUDA plugin, which is not installed.",
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
        options = xla_client.generate_pjrt_gpu_plugin_options()
        if not processes:
            return xla_client.make_c_api_client("cuda", options)
        # Several processes, whose values NCCL carries: untested, as no GPU was at hand.
        options |= {"node_id": processes["node_id"], "num_nodes": processes["num_nodes"]}
        if processes["visible_devices"]:
            options["visible_devices"] = list(processes["visible_devices"])
        return xla_client.make_c_api_client("cuda", options, processes["distributed_client"])
    except RuntimeFailure as error:
        fail("client", "the GPU client could not be started", error)


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
    extension: Any = importlib.import_module(f"{package}.cuda_plugin_extension")
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
    for name in _HANDLER_MODULES:
        module = importlib.import_module(f"jaxlib.{name}")
        for target in getattr(module, "batch_partitionable_targets", list)():
            xla_client.register_custom_call_as_batch_partitionable(target)
        for target, capsule, api_version in module.registrations().get("CUDA", ()):
            xla_client.register_custom_call_target(
                target, capsule, platform="CUDA", api_version=api_version
            )
        # what runs on the host there (`cuhybrid_eig_real`) finds LAPACK, which this loads
        getattr(module, "initialize_hybrid_kernels", list)()
