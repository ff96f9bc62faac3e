"""What this machine has for the family, and what is wrong with it: `python -m xstack doctor`.

Each problem is printed with what mends it.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import xjit
from xjit import jaxlib_gateway as gateway
from xjit.cache import inspection
from xprim import config, eager_costs, runtime_options

__all__ = ["facts", "print_environment_info", "problems"]

__dir__ = __all__.copy

_PACKAGES = ("xtree", "xprim", "xnp", "xrandom", "xad", "xbatch", "xjit", "xpar")
_OTHERS = ("jaxlib", "numpy", "ml_dtypes")
_ASKS_FOR_DEVICES = ("XSTACK_PLATFORMS", "XSTACK_NUM_CPU_DEVICES", "XSTACK_NUM_THREADS")
_NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
_PLUGINS = ("jax-cuda13-plugin", "jax-cuda13-pjrt", "jax-cuda12-plugin", "jax-cuda12-pjrt")


def facts() -> list[tuple[str, str]]:
    """Return name and value of what a report of a fault should say.

    Example:
      >>> dict(facts())["python"].count(".")
      2
    """
    names = [*(f"xstack-{name}" for name in _PACKAGES), "xstack", *_OTHERS]
    found = [(name, version) for name in names if (version := _version(name))]
    return [
        ("python", platform.python_version()),
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
        *found,
        ("runtime", gateway.version()),
        *[(name, version) for name in _PLUGINS if (version := _version(name))],
        *[("driver", line) for line in _driver()],
        ("platforms", _report_or_fail(gateway.platforms)[0]),
        ("devices", _report_or_fail(xjit.devices)[0]),
        ("threads of the CPU", _threads()),
        ("large arrays", _pages()),
        ("compilation cache", str(inspection.directory() or "off")),
        ("products of float32", _precision_of_products()),
    ]


def _driver() -> list[str]:
    """Return what NVIDIA's driver says of itself, a line where there is one."""
    return _NVIDIA_DRIVER.read_text().splitlines()[:1] if _NVIDIA_DRIVER.is_file() else []


def _threads() -> str:
    """Return how many threads compiled programs use on the CPU, and what says so."""
    count = runtime_options.num_threads.in_force
    if count is None:
        return "one for each core that the process may use (num_threads is None)"
    return f"{count}, by num_threads, XSTACK_NUM_THREADS or OMP_NUM_THREADS"


def _pages() -> str:
    """Return of which pages the memory of large arrays is, and what makes it faster."""
    given = eager_costs.huge_pages()
    if given == "all" or (given == "those who ask" and eager_costs.malloc_asks_for_huge_pages()):
        return "pages of 2 MB"
    if given == "none":
        return "pages of 4 kB"
    return "pages of 4 kB in compiled programs; GLIBC_TUNABLES=glibc.malloc.hugetlb=1 makes it 2 MB"


def _precision_of_products() -> str:
    """Return how exactly products of float32 are computed where a program does not say."""
    requested = config.values.default_matmul_precision
    if requested is None:
        return "float32 on every platform (default_matmul_precision is None)"
    return f"default_matmul_precision={requested!r}: less than float32 on GPUs, if it names less"


def print_environment_info(return_string: bool = False) -> str | None:
    """Print what a report of a fault should say: versions, the system, the devices.

    Args:
      return_string: whether the text is returned instead.

    Example:
      >>> print_environment_info(return_string=True).split()[0]
      'python:'
    """
    width = max(len(name) for name, _ in facts()) + 1
    text = "".join([f"{name + ':':{width}} {value}\n" for name, value in facts()])
    if return_string:
        return text
    sys.stdout.write(text)
    return None


def problems() -> list[str]:
    """Return what is wrong, each with what mends it; nothing if all is well."""
    _, reason = _report_or_fail(xjit.devices)
    if reason:  # nothing else can be looked at
        requested = [name for name in _ASKS_FOR_DEVICES if os.environ.get(name)]
        mended = f"; unset {' '.join(requested)}" if requested else ""
        return [f"no device can be used: {reason}{mended}"]
    return [*_problems_of_devices(), *_problems_of_plugins(), *_problems_of_the_cache()]


def _report_or_fail(find: Callable[[], Iterable[Any]]) -> tuple[str, str]:
    """Return what there is as text, or else none, with the reason."""
    try:
        return ", ".join(map(str, find())), ""
    except (RuntimeError, ValueError) as error:
        return "none", " ".join(str(error).split())


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return ""


def _problems_of_devices() -> Iterator[str]:
    plugin = gateway.find_gpu_plugin()
    if _NVIDIA_DRIVER.exists() and plugin is None:
        yield (
            "there is a GPU, but no plugin for it: work runs on the CPU; "
            f"pip install 'jax-cuda13-plugin[with-cuda]', for {gateway.version()}"
        )
    chosen = os.environ.get("XSTACK_PLATFORMS", "")
    if plugin is not None and chosen and "gpu" not in chosen and "cuda" not in chosen:
        yield f"there is a plugin for GPUs, but XSTACK_PLATFORMS={chosen} leaves it out; unset it"
    elif plugin is not None and xjit.default_backend() == "cpu":
        yield "the plugin for GPUs is there, but work runs on the CPU: it found no device"


def _problems_of_plugins() -> Iterator[str]:
    """Yield the distributions of a plugin that are not made for this jaxlib."""
    wanted = _version("jaxlib")
    for name in _PLUGINS:
        found = _version(name)
        if found and found.split(".")[:3] != wanted.split(".")[:3]:
            plugin = name.replace("-pjrt", "-plugin")
            yield (
                f"{name} is {found}, and jaxlib {wanted}: programs for the GPU may not run; "
                f"pip install '{plugin}[with-cuda]=={wanted}'"
            )


def _problems_of_the_cache() -> Iterator[str]:
    if inspection.directory() is None:
        yield (
            "the compilation cache is off, or this user has no home directory: each process "
            "compiles anew; unset XSTACK_ENABLE_COMPILATION_CACHE, or name a directory in "
            "XSTACK_COMPILATION_CACHE_DIR"
        )
        return
    yield from inspection.doctor()
