"""First calls: tracing, lowering, compiling and running once."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.timing import best_of_fresh
from benchmarks.workloads import models


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    counter = iter(range(1, 1000))
    x = ns.numpy.asarray(np.ones((8, 32), np.float32))
    deep = models.on_device(ns, models.mlp_params(100))
    blocks = models.on_device(ns, models.transformer_params(2))
    tokens = ns.numpy.asarray(np.ones((16, 64), np.float32))

    def scaled(fun: Any) -> Any:
        factor = 1.0 + next(counter) * 1e-3  # another constant: no cache knows the program
        return ns.grad(lambda p, v: fun(p, v) * factor)

    programs = {
        "jit(grad(mlp100))": (lambda: scaled(models.mlp_loss(ns)), (deep, x)),
        "transformer2 gradient": (lambda: scaled(models.transformer_loss(ns)), (blocks, tokens)),
    }
    measures = {name: _timed(ns, make, args) for name, (make, args) in programs.items()}
    return measures | {"a new shape of mlp2": _new_shape(ns)}


def _new_shape(ns: Any) -> Any:
    """Return what measures the call of a known function with a shape that it has not seen."""
    params = models.on_device(ns, models.mlp_params(2))
    compiled = ns.jit(ns.grad(models.mlp_loss(ns)))
    lengths = iter(range(3, 10_000))

    def measure() -> float:
        def fresh() -> Any:
            x = ns.numpy.asarray(np.ones((next(lengths), 32), np.float32))
            return lambda: ns.wait(compiled(params, x))

        return best_of_fresh(fresh, repetitions=5)

    return measure


def _timed(ns: Any, make: Any, args: Any) -> Any:
    def measure() -> float:
        def fresh() -> Any:
            fun = make()
            salt = object()  # seen by the function: no cache can take it for an earlier one
            compiled = ns.jit(lambda *a: (salt, fun(*a))[1])
            return lambda: ns.wait(compiled(*args))

        return best_of_fresh(fresh, repetitions=2)

    return measure
