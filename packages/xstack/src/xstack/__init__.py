"""Composable transformations of NumPy-style programs: the whole family in one namespace.

    import xstack
    import xstack.numpy as xnp

    xstack.grad(f), xstack.vmap(f), xstack.jit(f), xstack.random, xstack.tree, ...

This package holds no array code. A name is looked up in the package that owns it when it is first
used, so `import xstack` costs next to nothing and no compiler is started before it is needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:  # what the names are, for type checkers and editors
    from xad import (
        checkpoint as checkpoint,
    )
    from xad import (
        checkpoint_policies as checkpoint_policies,
    )
    from xad import (
        custom_gradient as custom_gradient,
    )
    from xad import (
        custom_jvp as custom_jvp,
    )
    from xad import (
        custom_vjp as custom_vjp,
    )
    from xad import (
        float0 as float0,
    )
    from xad import (
        grad as grad,
    )
    from xad import (
        hessian as hessian,
    )
    from xad import (
        jacfwd as jacfwd,
    )
    from xad import (
        jacobian as jacobian,
    )
    from xad import (
        jacrev as jacrev,
    )
    from xad import (
        jvp as jvp,
    )
    from xad import (
        linear_transpose as linear_transpose,
    )
    from xad import (
        linearize as linearize,
    )
    from xad import (
        remat as remat,
    )
    from xad import (
        value_and_grad as value_and_grad,
    )
    from xad import (
        vjp as vjp,
    )
    from xbatch import (
        vmap as vmap,
    )
    from xjit import (
        Device as Device,
    )
    from xjit import (
        block_until_ready as block_until_ready,
    )
    from xjit import (
        clear_caches as clear_caches,
    )
    from xjit import (
        copy_to_host_async as copy_to_host_async,
    )
    from xjit import (
        default_backend as default_backend,
    )
    from xjit import (
        device_count as device_count,
    )
    from xjit import (
        device_get as device_get,
    )
    from xjit import (
        device_put as device_put,
    )
    from xjit import (
        devices as devices,
    )
    from xjit import (
        jit as jit,
    )
    from xjit import (
        local_device_count as local_device_count,
    )
    from xjit import (
        local_devices as local_devices,
    )
    from xjit import (
        process_count as process_count,
    )
    from xjit import (
        process_index as process_index,
    )
    from xjit import (
        process_indices as process_indices,
    )
    from xpar import (
        pmap as pmap,
    )
    from xprim import (
        Array as Array,
    )
    from xprim import (
        ShapeDtypeStruct as ShapeDtypeStruct,
    )
    from xprim import (
        closure_convert as closure_convert,
    )
    from xprim import config as config
    from xprim import (
        ensure_compile_time_eval as ensure_compile_time_eval,
    )
    from xprim import (
        eval_shape as eval_shape,
    )
    from xprim import (
        make_jaxpr as make_jaxpr,
    )
    from xprim import (
        named_scope as named_scope,
    )
    from xprim import (
        typeof as typeof,
    )
    from xprim.config import (
        check_tracer_leaks as check_tracer_leaks,
    )
    from xprim.config import (
        debug_infs as debug_infs,
    )
    from xprim.config import (
        debug_key_reuse as debug_key_reuse,
    )
    from xprim.config import (
        debug_nans as debug_nans,
    )
    from xprim.config import (
        default_device as default_device,
    )
    from xprim.config import (
        default_matmul_precision as default_matmul_precision,
    )
    from xprim.config import (
        default_prng_impl as default_prng_impl,
    )
    from xprim.config import (
        disable_jit as disable_jit,
    )
    from xprim.config import (
        enable_checks as enable_checks,
    )
    from xprim.config import (
        enable_x64 as enable_x64,
    )
    from xprim.config import (
        explain_cache_misses as explain_cache_misses,
    )
    from xprim.config import (
        log_compiles as log_compiles,
    )
    from xprim.config import (
        numpy_dtype_promotion as numpy_dtype_promotion,
    )
    from xprim.config import (
        numpy_rank_promotion as numpy_rank_promotion,
    )
    from xprim.config import (
        threefry_partitionable as threefry_partitionable,
    )
    from xprim.config import (
        transfer_guard as transfer_guard,
    )
    from xprim.config import (
        transfer_guard_device_to_device as transfer_guard_device_to_device,
    )
    from xprim.config import (
        transfer_guard_device_to_host as transfer_guard_device_to_host,
    )
    from xprim.config import (
        transfer_guard_host_to_device as transfer_guard_host_to_device,
    )
    from xstack import (
        ad_checkpoint as ad_checkpoint,
    )
    from xstack import (
        custom_batching as custom_batching,
    )
    from xstack import (
        custom_derivatives as custom_derivatives,
    )
    from xstack import (
        dtypes as dtypes,
    )
    from xstack import (
        errors as errors,
    )
    from xstack import (
        lax as lax,
    )
    from xstack import (
        nn as nn,
    )
    from xstack import (
        numpy as numpy,
    )
    from xstack import (
        random as random,
    )
    from xstack import (
        sharding as sharding,
    )
    from xstack import (
        stages as stages,
    )
    from xstack import (
        test_util as test_util,
    )
    from xstack import (
        tree as tree,
    )
    from xstack import (
        tree_util as tree_util,
    )
    from xstack import (
        typing as typing,
    )

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
    if module != "xprim.config":
        importlib.import_module(f"{__name__}.numpy")  # gives arrays and tracers their operators
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_BY_NAME, *_SUBMODULES, "config"})
