"""Options of devices and of the compilation cache, under the names they have in JAX.

They are defined here, and read by `xjit` when it makes its first client, so that a program can set
them before a compiler is loaded. After that options of devices stay as they are. The environment
variables of their names say the same to a program that sets nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xprim.config import Option, ProcessOption, define
from xprim.errors import message

__all__ = [
    "ALLOCATORS", "cuda_visible_devices", "gpu_allocator", "gpu_memory_fraction",
    "gpu_preallocate", "num_cpu_devices", "num_threads", "platform_name", "platforms",
    "XLA_CACHES", "compilation_cache_dir", "compilation_cache_include_metadata_in_key",
    "compilation_cache_max_size", "enable_compilation_cache",
    "persistent_cache_enable_xla_caches", "persistent_cache_min_compile_time_secs",
    "persistent_cache_min_entry_size_bytes", "raise_persistent_cache_errors",
]  # fmt: skip

__dir__ = __all__.copy


class _OfTheProcess(ProcessOption[Any]):
    """An option that is set once, before devices are used.

    Attributes:
      user: what has read the option and goes by it, in words; None as long as it may be set.
      in_force: what holds since then.
    """

    __slots__ = ("in_force", "user")

    reason = "devices are those of the whole process."
    deadline = ", before the first array is made"

    def __init__(
        self, name: str, doc: str, validate: Callable[[Any], bool], default: Any = None
    ) -> None:
        super().__init__(name, default, doc, validate=validate)
        self.user: str | None = None
        self.in_force: Any = None

    def settle(self, user: str, in_force: Any) -> None:
        """Say that devices are in use, and what holds from now on."""
        self.user, self.in_force = user, in_force

    def reopen(self) -> None:
        """Say that no device is in use any more."""
        self.user = self.in_force = None

    def set(self, value: object) -> None:
        """Set the value, or raise RuntimeError when devices are in use already."""
        if self.user is not None and self.check(value) not in (self.value, self.in_force):
            raise RuntimeError(message(
                "config.update", f"{self.name} is set too late: {self.user}.", got=repr(value),
                expected=repr(self.in_force), hint="set it before the first array is made",
            ))  # fmt: skip
        super().set(value)

    def parse(self, text: str) -> Any:
        """Return the default: the environment is read with the devices."""
        return self.default


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_number_or_none(value: Any) -> bool:
    return value is None or (type(value) is int and value > 0)


def _define(option: _OfTheProcess) -> _OfTheProcess:
    define(option)
    return option


platforms = _define(_OfTheProcess(
    "platforms", "names of platforms between commas, as 'cpu'; None for those there are",
    _is_text_or_none,
))  # fmt: skip
platform_name = _define(_OfTheProcess(
    "platform_name", "the older name of `platforms`, which goes before it",
    _is_text_or_none,
))  # fmt: skip
num_cpu_devices = _define(_OfTheProcess(
    "num_cpu_devices", "how many devices the CPU shows, a positive number; None for one",
    _is_number_or_none,
))  # fmt: skip
num_threads = _define(_OfTheProcess(
    "num_threads", "how many threads compiled programs use on the CPU, a positive number; None for "
    "XSTACK_NUM_THREADS, OMP_NUM_THREADS, or as many as the process may use cores",
    _is_number_or_none,
))  # fmt: skip


ALLOCATORS = ("default", "platform", "bfc", "cuda_async", "vmm")
"""The ways in which XLA allocates memory of a GPU."""


def _is_fraction_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and value is not True and value > 0)


def _is_truth_or_none(value: Any) -> bool:
    return value is None or isinstance(value, bool)


def _is_allocator_or_none(value: Any) -> bool:
    return value is None or value in ALLOCATORS


def _lists_devices(value: Any) -> bool:
    return isinstance(value, str) and (
        value == "all" or all(n.strip().isdecimal() for n in value.split(","))
    )


gpu_memory_fraction = _define(_OfTheProcess(
    "gpu_memory_fraction", "the most of a GPU's memory that is taken, a positive number where 1 is "
    "all; None for XLA_CLIENT_MEM_FRACTION, or XLA's 0.75",
    _is_fraction_or_none,
))  # fmt: skip
gpu_preallocate = _define(_OfTheProcess(
    "gpu_preallocate", "whether all of that is taken at once, a bool; None for "
    "XLA_PYTHON_CLIENT_PREALLOCATE, or no: memory grows on demand",
    _is_truth_or_none,
))  # fmt: skip
gpu_allocator = _define(_OfTheProcess(
    "gpu_allocator", f"how memory of a GPU is allocated, one of {', '.join(ALLOCATORS)}; None for "
    "XLA_PYTHON_CLIENT_ALLOCATOR, or 'default'",
    _is_allocator_or_none,
))  # fmt: skip
cuda_visible_devices = _define(_OfTheProcess(
    "cuda_visible_devices", "numbers of the GPUs that are used, between commas; 'all' for all",
    _lists_devices, "all",
))  # fmt: skip


# ------------------------------------------------------------------- the cache of compiled programs
# The defaults are ours: the cache is on, and bounded.


def _is_path_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


XLA_CACHES = ("xla_gpu_kernel_cache_file", "xla_gpu_per_fusion_autotune_cache_dir")
"""The caches that XLA keeps itself, by the names of its options."""


def _names_caches(value: Any) -> bool:
    if value in (None, "", "none", "all"):
        return True
    return isinstance(value, str) and set(value.split(",")).issubset(XLA_CACHES)


enable_compilation_cache = define(Option[bool](
    "enable_compilation_cache", True,
    "Whether compiled programs are stored on disk for later processes.", kind=bool,
))  # fmt: skip
compilation_cache_dir = define(Option[Any](
    "compilation_cache_dir", None,
    "the directory for compiled programs, a path; None for the user's cache directory",
    validate=_is_path_or_none,
))  # fmt: skip
compilation_cache_max_size = define(Option[int](
    "compilation_cache_max_size", 1 << 30,
    "How many bytes of compiled programs are stored on disk; -1 for no bound.", kind=int,
))  # fmt: skip
persistent_cache_min_compile_time_secs = define(Option[Any](
    "persistent_cache_min_compile_time_secs", 0.0,
    "a number: programs that compile in fewer seconds are not stored on disk", validate=_is_number,
))  # fmt: skip
persistent_cache_min_entry_size_bytes = define(Option[int](
    "persistent_cache_min_entry_size_bytes", 0,
    "Smaller compiled programs are not stored on disk.", kind=int,
))  # fmt: skip
raise_persistent_cache_errors = define(Option[bool](
    "raise_persistent_cache_errors", False,
    "Whether what goes wrong with the cache on disk is raised, and not logged alone.", kind=bool,
))  # fmt: skip
compilation_cache_include_metadata_in_key = define(Option[bool](
    "compilation_cache_include_metadata_in_key", True,
    "Whether programs that name other places of the source (`source_locations`) are others on disk."
    " Without it one may be found whose profile names the places of another, or none.", kind=bool,
))  # fmt: skip
persistent_cache_enable_xla_caches = define(Option[Any](
    "persistent_cache_enable_xla_caches", "none",
    "'none', 'all', or names joined by commas of caches that XLA keeps beside the programs on disk,"
    f" for GPUs alone: {', '.join(XLA_CACHES)}",
    validate=_names_caches,
))  # fmt: skip


# ------------------------------------------------------------------------- options with one value
# What programs written for JAX set to say how something is done that is always done so here: that
# value is taken, and another one is an error that says what there is.


class _AsItIs(ProcessOption[Any]):
    """An option that describes what is not a choice."""

    __slots__ = ()

    reason = "it is one for the process, and has one value."

    def __init__(self, name: str, value: Any, doc: str) -> None:
        super().__init__(name, value, doc, choices=(value,))

    def describe_choices(self) -> str:
        """Return what the option takes, in words."""
        return f"{self.default!r}: {self.doc}"


cpu_collectives_implementation = define(_AsItIs(
    "cpu_collectives_implementation", "gloo", "processes with CPUs exchange arrays by Gloo",
))  # fmt: skip
use_shardy_partitioner = define(_AsItIs(
    "use_shardy_partitioner", True, "Shardy divides programs over the devices of a mesh",
))  # fmt: skip
threefry_gpu_kernel_lowering = define(_AsItIs(
    "threefry_gpu_kernel_lowering", False, "draws are operations that XLA fuses, on GPUs, too",
))  # fmt: skip
