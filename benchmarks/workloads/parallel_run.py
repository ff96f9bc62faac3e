"""Programs over eight virtual CPU devices: calls that do next to nothing, moves, steps."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import namespaces
from benchmarks.timing import best, best_of_fresh
from benchmarks.workloads import models


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name (the namespace is loaded anew, with eight devices)."""
    names = {
        "pmap step over 8": _pmap_step, "sharded jit": _sharded_jit, "shard_map": _shard_map,
        "pmap of results": _pmap_of_results, "pmap of host arrays": _pmap_of_host_arrays,
        "results of pmap into jit": _pmap_into_jit,
        "device_put, other sharding": _device_put(64), "same, 4 MB": _device_put(1024),
        "device_put 4 MB of NumPy, cut by columns": _device_put_columns,
        "data-parallel step": _step("data"), "tensor-parallel step": _step("model"),
    }  # fmt: skip
    measures: dict[str, Any] = {
        name: lambda make=make: _timed(ns.wait, make(_Eight(ns.name)))  # type: ignore[misc]
        for name, make in names.items()
    }
    steps = {"step": _mlp_step, "transformer": _transformer_step}
    for name, make_step in steps.items():
        measures[f"trace and lower sharded {name}"] = lambda make=make_step: best_of_fresh(
            lambda: _lowered(make(_Eight(ns.name), "model"))
        )
    return measures


class _Eight:
    """A namespace with eight devices, and a mesh over them."""

    def __init__(self, name: str) -> None:
        self.ns = namespaces.load(name, devices=8)
        self.top = importlib.import_module(name)
        self.sharding = importlib.import_module(f"{name}.sharding")
        devices = np.array(self.top.devices()).reshape(4, 2)
        self.mesh = self.sharding.Mesh(devices, ("data", "model"))

    def lying(self, *parts: Any) -> Any:
        """Return the sharding of these parts over the mesh."""
        return self.sharding.NamedSharding(self.mesh, self.sharding.PartitionSpec(*parts))

    def rows(self) -> Any:
        """Return a small array, cut along the batch."""
        return self.top.device_put(np.ones((16, 8), np.float32), self.lying("data"))


def _timed(wait: Callable[[Any], Any], call: Callable[[], Any]) -> float:
    wait(call())
    return best(lambda: wait(call()), seconds=0.6, repetitions=20)


def _pmap_step(eight: _Eight) -> Callable[[], Any]:
    ns = eight.ns
    loss, params = models.mlp_loss(ns), models.mlp_params(4)
    stacked = [tuple(np.stack([leaf] * 8) for leaf in layer) for layer in params]
    batch = np.ones((8, 16, 32), np.float32)

    def update(p: Any, x: Any) -> Any:
        grads = ns.lax.pmean(ns.grad(loss)(p, x), "i")
        return ns.tree.map(lambda v, g: v - 0.1 * g, p, grads)

    step = ns.pmap(update, axis_name="i")
    state = step(stacked, batch)
    return lambda: step(state, batch)


def _sharded_jit(eight: _Eight) -> Callable[[], Any]:
    f, x = eight.ns.jit(lambda a: a + 1), eight.rows()
    return lambda: f(x)


def _shard_map(eight: _Eight) -> Callable[[], Any]:
    spec, lax = eight.sharding.PartitionSpec, eight.ns.lax
    f = eight.ns.jit(eight.top.shard_map(
        lambda a: lax.psum(a, "data"), mesh=eight.mesh, in_specs=spec("data"), out_specs=spec()
    ))  # fmt: skip
    x = eight.rows()
    return lambda: f(x)


def _pmap_of_results(eight: _Eight) -> Callable[[], Any]:
    f = eight.ns.pmap(lambda a: a + 1)
    x = f(np.ones((8, 16), np.float32))
    return lambda: f(x)


def _pmap_of_host_arrays(eight: _Eight) -> Callable[[], Any]:
    f, x = eight.ns.pmap(lambda a: a + 1), np.ones((8, 16), np.float32)
    return lambda: f(x)


def _pmap_into_jit(eight: _Eight) -> Callable[[], Any]:
    x = eight.ns.pmap(lambda a: a + 1)(np.ones((8, 16), np.float32))
    f = eight.ns.jit(lambda a: a * 2)
    return lambda: f(x)


def _device_put(size: int) -> Callable[[_Eight], Callable[[], Any]]:
    def make(eight: _Eight) -> Callable[[], Any]:
        put, there = eight.top.device_put, eight.lying(None, "data")
        x = put(np.ones((size, size), np.float32), eight.lying("data"))
        return lambda: put(x, there)

    return make


def _device_put_columns(eight: _Eight) -> Callable[[], Any]:
    put, there = eight.top.device_put, eight.lying(None, "data")
    host = np.ones((1024, 1024), np.float32)
    return lambda: put(host, there)


def _step(axis: str) -> Callable[[_Eight], Callable[[], Any]]:
    """Return the maker of a step whose batch is cut, or also its layers."""

    def make(eight: _Eight) -> Callable[[], Any]:
        step, params, batch = _mlp_step(eight, None if axis == "data" else "model")
        state = step(params, batch)
        return lambda: step(state, batch)

    return make


def _lowered(made: tuple[Any, Any, Any]) -> Callable[[], Any]:
    step, params, batch = made
    return lambda: step.lower(params, batch).as_text()


def _mlp_step(eight: _Eight, axis: str | None) -> tuple[Any, Any, Any]:
    """Return a new compiled step of a multi-layer network, its parameters and a batch."""
    ns, put = eight.ns, eight.top.device_put
    loss = models.mlp_loss(ns)

    def update(p: Any, x: Any) -> Any:
        return ns.tree.map(lambda v, g: v - 0.1 * g, p, ns.grad(loss)(p, x))

    columns = eight.lying(None, axis)
    params = [tuple(put(leaf, columns if leaf.ndim == 2 else eight.lying(axis)) for leaf in layer)
              for layer in models.mlp_params(4)]  # fmt: skip
    batch = put(np.ones((128, 32), np.float32), eight.lying("data"))
    return ns.jit(update), params, batch


def _transformer_step(eight: _Eight, axis: str) -> tuple[Any, Any, Any]:
    """Return a new compiled step of a transformer whose layers are cut, parameters and a batch."""
    ns, put = eight.ns, eight.top.device_put
    loss = models.transformer_loss(ns)

    def mean_loss(p: Any, x: Any) -> Any:
        return ns.vmap(loss, in_axes=(None, 0))(p, x).mean()

    def update(p: Any, x: Any) -> Any:
        return ns.tree.map(lambda v, g: v - 0.1 * g, p, ns.grad(mean_loss)(p, x))

    columns, rows = eight.lying(None, axis), eight.lying(axis)
    params = [
        {
            name: put(leaf, rows if name in ("o", "down") else columns)
            for name, leaf in layer.items()
        }
        for layer in models.transformer_params(12)
    ]
    batch = put(np.ones((8, 16, 64), np.float32), eight.lying("data"))
    return ns.jit(update), params, batch
