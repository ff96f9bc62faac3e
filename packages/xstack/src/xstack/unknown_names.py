"""What there is for unknown names: those of other libraries, and modules of JAX not in xstack.

`xstack.tensor`, `xnp.cat`, `random.seed` are words of PyTorch and NumPy, `xstack.zeros` and
`xnp.relu` those of another module of this namespace. Errors about them say the way, before a name
that is only spelt nearly alike, and before the page of what JAX has and this namespace has not.

Imported when such an error is made.
"""

import difflib
import pkgutil

from xtree.errors import message
from xtree.namespaces import import_by_name

__all__ = ()

_OF_JAX = "names of JAX that are not here: see docs/explain/coming_from_jax.md"
_OF_PYTORCH = "see docs/explain/coming_from_pytorch.md"
_KEYS = "there is no hidden state: key = xstack.random.key(0), and a new key for each draw"
_GRADIENTS = "derivatives are of functions: xstack.grad(loss)(params)"
_OPTIMIZERS = "an optimizer is a function of (params, gradients, state): " + _OF_PYTORCH
_TREES = (
    "trees of arrays: xpar.checkpoints.save(directory, step, tree) and restore(directory, tree); "
    "one array: xstack.numpy.save(file, x) and xstack.numpy.load(file)"
)
_MODULES = "a layer is a function of (params, x): " + _OF_PYTORCH

# A word -> how to say it here.
_HERE = {
    "tensor": "xstack.numpy.array(...)", "from_numpy": "xstack.numpy.asarray(x)",
    "Tensor": "the type is xstack.Array; xstack.numpy.array(...) makes one",
    "as_tensor": "xstack.numpy.asarray(x)",
    "matrix": "xstack.numpy.array([[...]]), and @ multiplies",
    "cat": "xstack.numpy.concatenate(arrays, axis=0)",
    "unsqueeze": "xstack.numpy.expand_dims(x, axis)",
    "permute": "xstack.numpy.transpose(x, axes)", "mm": "x @ y", "bmm": "x @ y",
    "chunk": "xstack.numpy.array_split(x, parts)", "topk": "xstack.lax.top_k(x, k)",
    "clamp": "xstack.numpy.clip(x, low, high)", "numel": "x.size",
    "inverse": "xstack.numpy.linalg.inv(x)",
    "Inf": "xstack.numpy.inf", "infty": "xstack.numpy.inf", "NaN": "xstack.numpy.nan",
    "NAN": "xstack.numpy.nan", "float": "xstack.numpy.float32, or Python's float",
    "int": "xstack.numpy.int32, or Python's int", "object": "arrays hold numbers only",
    "str": "arrays hold numbers only",
    "seed": _KEYS, "manual_seed": _KEYS, "set_seed": _KEYS, "default_rng": _KEYS,
    "RandomState": _KEYS, "Generator": _KEYS, "random_sample": _KEYS,
    "randn": "xstack.random.normal(key, shape)", "rand": "xstack.random.uniform(key, shape)",
    "standard_normal": "xstack.random.normal(key, shape)",
    "randperm": "xstack.random.permutation(key, n)",
    "shuffle": "xstack.random.permutation(key, x) returns the shuffled array",
    "no_grad": "nothing to do: `grad` differentiates by the arguments of argnums only; "
               "xstack.lax.stop_gradient(x) stops a gradient",
    "enable_grad": _GRADIENTS, "backward": _GRADIENTS, "autograd": _GRADIENTS,
    "gradient": _GRADIENTS, "gradients": _GRADIENTS, "derivative": _GRADIENTS,
    "GradientTape": _GRADIENTS, "differentiate": _GRADIENTS, "deriv": _GRADIENTS,
    "compile": "xstack.jit(f)", "function": "xstack.jit(f)", "njit": "xstack.jit(f)",
    "optim": _OPTIMIZERS, "optimizers": _OPTIMIZERS, "SGD": _OPTIMIZERS, "Adam": _OPTIMIZERS,
    "Module": _MODULES, "Linear": _MODULES, "Conv2d": _MODULES, "Dense": _MODULES,
    "Sequential": _MODULES, "Parameter": _MODULES, "layers": _MODULES, "Variable": _MODULES,
    "functional": "the functions are in xstack.nn itself: xstack.nn.relu(x)",
    "F": "the functions are in xstack.nn itself: xstack.nn.relu(x)",
    "CrossEntropyLoss": "-(xstack.nn.log_softmax(x) * one_hot).sum(-1).mean()",
    "cross_entropy": "-(xstack.nn.log_softmax(x) * one_hot).sum(-1).mean()",
    "save": _TREES, "load": _TREES, "checkpoints": _TREES, "state_dict": _TREES,
    "load_state_dict": _TREES, "utils": _OF_PYTORCH,
    "DataLoader": "batches are arrays: " + _OF_PYTORCH,
    "device": "xstack.devices()[0], and xstack.device_put(x, device)",
    "print": "xstack.debug.print('x = {}', x), also in compiled functions",
}  # fmt: skip
# What is looked for in other modules of the namespace, the best known first.
_OTHERS = (
    "xstack", "xstack.numpy", "xstack.lax", "xstack.nn", "xstack.random", "xstack.tree",
    "xstack.numpy.linalg", "xstack.numpy.fft", "xstack.scipy.special", "xstack.sharding",
    "xad.sparse", "xstack.scipy.optimize", "xstack.experimental.ode", "xstack.image",
    "xstack.nn.initializers",
)  # fmt: skip


def hint(module: str, name: str, near: str) -> str:
    """Return what an error about an unknown name of a module suggests.

    Args:
      module: the module.
      name: what it does not have.
      near: what is said of a name that is spelt nearly alike; empty where there is none.

    Example:
      >>> hint("xstack", "zeros", "")
      'there is xstack.numpy.zeros'
      >>> hint("xstack", "grad_and_value", "")
      'there is xstack.value_and_grad'
      >>> hint("xstack", "custom_partitioning", "")
      'names of JAX that are not here: see docs/explain/coming_from_jax.md'
    """
    if name in _HERE:
        return _HERE[name]
    for other in _OTHERS:
        if other != module and name in import_by_name(other).__all__:
            return f"there is {other}.{name}"
    if near or "_" not in name:
        return near or _OF_JAX
    words = sorted(name.split("_"))
    for other in (module, *_OTHERS):
        for known in getattr(import_by_name(other), "__all__", ()):
            if sorted(known.split("_")) == words:
                return f"there is {other}.{known}"
    return _OF_JAX


# ------------------------------------------------------------------------------- modules of JAX
# Modules of JAX that xstack does not have: what there is instead, for errors of `xstack.as_jax`.

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
    "lib.xla_bridge": "jax.extend.backend; JAX's own newer versions are without it, too",
    "lib.xla_client": "jaxlib.xla_client; JAX's own newer versions are without it, too",
}  # fmt: skip


def why_not(name: str) -> str:
    """Return the text of the error about a module, or a name of a module, that is not here.

    Args:
      name: from `jax.` on.

    Example:
      >>> print(why_not("jax.experimental.odes"))
      import jax.experimental.odes: xstack does not have this module.
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
    return message(f"import {name}", "xstack does not have this module.", hint=hint)


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
