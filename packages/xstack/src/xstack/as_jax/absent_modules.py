"""Modules of JAX that are not here: what there is instead, for errors.

Imported when such an error is made.
"""

import difflib
import pkgutil

from xtree.errors import message
from xtree.namespaces import import_by_name

__all__ = ()

_PAGE = "modules and names that are not here: docs/explain/coming_from_jax.md"
_KERNELS = (
    "write the function with jax.numpy, which XLA fuses; jax.ffi.ffi_call calls a kernel of C, "
    "C++ or CUDA (docs/howto/wrap_c.md)"
)
_MLIR = "a lowering rule is text or a function of arrays (jax.interpreters.mlir.lower_fun)"
_CHECKPOINTS = "xpar.checkpoints saves and restores trees of sharded arrays"

# A module below `jax` -> what there is instead.
_INSTEAD = {
    "collect_profile": "jax.profiler.start_trace and stop_trace write a profile",
    "experimental.array_serialization": _CHECKPOINTS,
    "experimental.buffer_callback": "jax.pure_callback, or jax.ffi.ffi_call",
    "experimental.colocated_python": "jax.experimental.io_callback calls Python on this host",
    "experimental.jax2tf": "jax.export writes StableHLO, which TensorFlow's XlaCallModule runs",
    "experimental.key_reuse": "the option jax_debug_key_reuse finds keys that are used twice",
    "experimental.mosaic": _KERNELS,
    "experimental.pallas": _KERNELS,
    "experimental.profiler": "jax.profiler",
    "experimental.rnn": "jax.lax.scan over a cell, which XLA compiles",
    "experimental.roofline": "jax.jit(f).lower(*args).compile().cost_analysis()",
    "experimental.source_mapper": "jax.make_jaxpr(f)(*args).eqns[i].source_info",
    "experimental.transfer": "jax.distributed and jax.device_put",
    "extend.ifrt_programs": "programs of IFRT are those of clusters of TPUs",
    "extend.mlir": _MLIR,
    "extend.pallas": _KERNELS,
    "extend.sharding": "shardings say their `_to_xla_hlo_sharding`",
    "extend.xla": "jax.jit(f).lower(*args).compiler_ir()",
    "interpreters.pxla": "jax.sharding and jax.shard_map",
    "lib": "jax.extend.backend, or jaxlib itself; JAX's own newer versions are without it, too",
}  # fmt: skip


def why_not(name: str) -> str:
    """Return the text of the error about a module, or a name of a module, that is not here.

    Args:
      name: from `jax.` on.

    Example:
      >>> print(why_not("jax.experimental.odes"))
      import jax.experimental.odes: xstack has no such module.
        hint      did you mean jax.experimental.ode?
    """
    parts = name.split(".")
    for end in range(len(parts), 1, -1):
        instead = _INSTEAD.get(".".join(parts[1:end]))
        if instead is not None:
            absent = ".".join(parts[:end])
            what = "this module" if absent == name else absent
            return message(name, f"{what} of JAX is not part of xstack.", hint=instead)
    near = _closest(parts)
    hint = f"did you mean {near}?" if near else _PAGE
    return message(f"import {name}", "xstack has no such module.", hint=hint)


def _closest(parts: list[str]) -> str:
    """Return the module that is spelt nearly as the first one that is not there, or nothing."""
    parent = import_by_name("xstack")
    for at, part in enumerate(parts[1:], 1):
        names = [module.name for module in pkgutil.iter_modules(getattr(parent, "__path__", []))]
        if part in names:
            parent = import_by_name(f"{parent.__name__}.{part}")
            continue
        near = difflib.get_close_matches(part, names, 1)
        return ".".join([*parts[:at], *near]) if near else ""
    return ""
