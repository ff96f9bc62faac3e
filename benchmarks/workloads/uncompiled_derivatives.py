"""Derivatives without a compiler: every operation runs at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.timing import best
from benchmarks.workloads import models


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    loss = models.mlp_loss(ns)
    x = ns.numpy.asarray(np.ones((8, 32), np.float32))
    point = ns.numpy.asarray(np.linspace(0.5, 1.5, 10).astype(np.float32))
    rosen = models.rosenbrock(ns)
    small, deep = [models.on_device(ns, models.mlp_params(n)) for n in (2, 100)]
    calls = {
        "grad mlp2": lambda: ns.grad(loss)(small, x),
        "grad mlp100": lambda: ns.grad(loss)(deep, x),
        "grad rosenbrock": lambda: ns.grad(rosen)(point),
    }
    if ns.name != "torch":
        calls["hessian rosenbrock"] = lambda: ns.hessian(rosen)(point)
    if hasattr(ns, "jvp"):
        calls["jvp mlp100"] = lambda: ns.jvp(lambda v: loss(deep, v), (x,), (x,))
    if hasattr(ns, "vmap"):
        per_example = ns.vmap(ns.grad(loss), (None, 0))
        calls["vmap(grad) mlp2"] = lambda: per_example(small, x)
        calls["vmap(grad) mlp100"] = lambda: per_example(deep, x)
    return {name: _timed(ns, call) for name, call in calls.items()}


def _timed(ns: Any, call: Any) -> Any:
    def measure() -> float:
        ns.wait(call())
        return best(lambda: ns.wait(call()), seconds=0.3, repetitions=5)

    return measure
