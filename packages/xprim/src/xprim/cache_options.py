"""Options of the cache of compiled programs on disk, under the names they have in JAX.

They are defined here, and read by `xjit`, so that a program can set them before a compiler is
loaded. The defaults are ours: the cache is on, and bounded.
"""

from __future__ import annotations

from typing import Any

from xprim.config import Option, define

__all__ = [
    "XLA_CACHES", "compilation_cache_dir", "compilation_cache_include_metadata_in_key",
    "compilation_cache_max_size", "enable_compilation_cache", "persistent_cache_enable_xla_caches",
    "persistent_cache_min_compile_time_secs", "persistent_cache_min_entry_size_bytes",
    "raise_persistent_cache_errors",
]  # fmt: skip

__dir__ = __all__.copy


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
    "Whether compiled programs are kept on disk for later processes.", kind=bool,
))  # fmt: skip
compilation_cache_dir = define(Option[Any](
    "compilation_cache_dir", None,
    "the directory for compiled programs, a path; None for the user's cache directory",
    validate=_is_path_or_none,
))  # fmt: skip
compilation_cache_max_size = define(Option[int](
    "compilation_cache_max_size", 1 << 30,
    "How many bytes of compiled programs are kept on disk; -1 bounds nothing.", kind=int,
))  # fmt: skip
persistent_cache_min_compile_time_secs = define(Option[Any](
    "persistent_cache_min_compile_time_secs", 0.0,
    "a number: programs that compile in fewer seconds are not kept on disk", validate=_is_number,
))  # fmt: skip
persistent_cache_min_entry_size_bytes = define(Option[int](
    "persistent_cache_min_entry_size_bytes", 0,
    "Smaller compiled programs are not kept on disk.", kind=int,
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
