"""Composable transformations of NumPy-style programs: the whole family in one namespace.

    import xstack
    import xstack.numpy as xnp

    xstack.grad(f), xstack.vmap(f), xstack.jit(f), xstack.random, xstack.tree, ...

This package holds no array code. A name is looked up in the package that owns it when it is first
used, so `import xstack` costs next to nothing and no compiler is started before it is needed.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_NAMES_BY_MODULE = {
    "xprim": (
        "Array", "ShapeDtypeStruct", "closure_convert", "ensure_compile_time_eval", "eval_shape",
        "make_jaxpr", "named_scope", "typeof",
    ),
    "xprim.config": (
        "check_tracer_leaks", "debug_infs", "debug_key_reuse", "debug_nans", "default_device",
        "default_matmul_precision", "default_prng_impl", "disable_jit", "enable_checks",
        "enable_x64", "explain_cache_misses", "log_compiles", "numpy_dtype_promotion",
        "numpy_rank_promotion",
        "threefry_partitionable", "transfer_guard", "transfer_guard_device_to_device",
        "transfer_guard_device_to_host", "transfer_guard_host_to_device",
    ),
    "xad": (
        "checkpoint", "checkpoint_policies", "custom_gradient", "custom_jvp", "custom_vjp",
        "float0", "grad", "hessian", "jacfwd", "jacobian", "jacrev", "jvp", "linear_transpose",
        "linearize", "remat", "value_and_grad", "vjp",
    ),
    "xbatch": ("vmap",),
    "xjit": (
        "Device", "block_until_ready", "clear_caches", "copy_to_host_async", "default_backend",
        "device_count", "device_get", "device_put", "devices", "jit", "local_device_count",
        "local_devices", "process_count", "process_index", "process_indices",
    ),
    "xpar": ("pmap",),
}  # fmt: skip

_SUBMODULES = (
    "ad_checkpoint", "custom_batching", "custom_derivatives", "dtypes", "errors", "lax", "nn",
    "numpy", "random", "sharding", "stages", "test_util", "tree", "tree_util", "typing",
)  # fmt: skip

_MODULE_BY_NAME = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}

__all__ = ["config", *_MODULE_BY_NAME, *_SUBMODULES]  # noqa: PLE0604 - all are names


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "config":
        return importlib.import_module("xprim.config")
    try:
        module = _MODULE_BY_NAME[name]
    except KeyError:
        raise AttributeError(f"module 'xstack' has no attribute {name!r}") from None
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_BY_NAME, *_SUBMODULES, "config"})
