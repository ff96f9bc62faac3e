"""The namespaces that workloads run against, in one shape: `ns.grad`, `ns.numpy`, `ns.wait`, ..."""

from __future__ import annotations

import importlib
import os
from types import SimpleNamespace
from typing import Any

NO_DISK_CACHES = {
    "XSTACK_ENABLE_COMPILATION_CACHE": "0", "JAX_ENABLE_COMPILATION_CACHE": "false",
}  # fmt: skip
XLA_FLAG = "--xla_force_host_platform_device_count={}"


def load(name: str, *, devices: int = 1) -> Any:
    """Return a namespace by name; `devices` is the number of virtual CPU devices."""
    if name == "numpy":
        return _numpy()
    if name == "autograd":
        return _autograd()
    if name == "torch":
        return _torch()
    if name == "numba":
        importlib.import_module("numba")
        return SimpleNamespace(name="numba", compiles=True, wait=lambda x: x)
    if devices > 1 and name == "jax":
        os.environ["XLA_FLAGS"] = XLA_FLAG.format(devices)
    if devices > 1 and name == "xstack":
        os.environ["XSTACK_NUM_CPU_DEVICES"] = str(devices)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XSTACK_PLATFORMS", "cpu")
    top = importlib.import_module(name)
    parts = ("numpy", "lax", "random", "tree", "nn")
    modules = {}
    for part in parts:
        try:
            modules[part] = importlib.import_module(f"{name}.{part}")
        except ImportError:
            continue
    names = ("grad", "jvp", "vjp", "hessian", "vmap", "jit", "pmap", "make_jaxpr", "value_and_grad",
             "device_put", "checkpoint", "jacfwd")  # fmt: skip
    functions = {n: getattr(top, n) for n in names if _has(top, n)}
    return SimpleNamespace(name=name, compiles=True, wait=_wait, **modules, **functions)


def _has(module: Any, name: str) -> bool:
    try:
        getattr(module, name)
    except (AttributeError, ImportError):
        return False
    return True


def _wait(tree: Any) -> Any:
    """Wait for every array in nested tuples, lists and dicts."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        for item in tree:
            _wait(item)
    elif hasattr(tree, "block_until_ready"):
        tree.block_until_ready()
    return tree


def _numpy() -> Any:
    np = importlib.import_module("numpy")
    return SimpleNamespace(name="numpy", compiles=False, numpy=np, wait=lambda x: x)


def _autograd() -> Any:
    autograd = importlib.import_module("autograd")
    anp = importlib.import_module("autograd.numpy")
    return SimpleNamespace(
        name="autograd", compiles=False, numpy=anp, grad=autograd.grad, hessian=autograd.hessian,
        wait=lambda x: x,
    )  # fmt: skip


def _torch() -> Any:
    torch = importlib.import_module("torch")
    func = importlib.import_module("torch.func")
    shim = SimpleNamespace(
        array=lambda x: torch.as_tensor(x), dot=torch.matmul, tanh=torch.tanh, sum=torch.sum,
        mean=torch.mean, asarray=torch.as_tensor,
    )  # fmt: skip
    return SimpleNamespace(
        name="torch", compiles=False, numpy=shim, grad=func.grad, jvp=func.jvp, vmap=func.vmap,
        hessian=func.hessian, wait=lambda x: x,
    )  # fmt: skip
