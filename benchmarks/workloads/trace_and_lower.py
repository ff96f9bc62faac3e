"""Tracing and lowering to StableHLO; fresh function objects defeat the trace caches."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.timing import best_of_fresh
from benchmarks.workloads import models


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    x = ns.numpy.asarray(np.ones((8, 32), np.float32))
    deep = models.on_device(ns, models.mlp_params(100))
    blocks = models.on_device(ns, models.transformer_params(12))
    tokens = ns.numpy.asarray(np.ones((16, 64), np.float32))
    rnn_params, xs = models.on_device(ns, models.rnn_arguments(100))
    vector = ns.numpy.asarray(np.ones(8, np.float32))

    def hvp(f: Any) -> Any:
        return lambda p, v: ns.jvp(lambda q: ns.grad(f)(q, v), (p,), (p,))[1]

    programs = {
        "mlp100 loss": (lambda: models.mlp_loss(ns), (deep, x)),
        "mlp100 grad": (lambda: ns.grad(models.mlp_loss(ns)), (deep, x)),
        "mlp100 vmap(grad)": (lambda: ns.vmap(ns.grad(models.mlp_loss(ns)), (None, 0)), (deep, x)),
        "mlp100 hvp": (lambda: hvp(models.mlp_loss(ns)), (deep, x)),
        "transformer12 loss": (lambda: models.transformer_loss(ns), (blocks, tokens)),
        "transformer12 grad": (lambda: ns.grad(models.transformer_loss(ns)), (blocks, tokens)),
        "rnn100 scan grad": (lambda: ns.grad(models.rnn_loss(ns, 100)), (rnn_params, xs)),
        "unrolled 2000 operations": (lambda: _unrolled(ns), (vector,)),
        "nested jits": (lambda: _nested(ns), (vector,)),
    }
    return {name: _timed(ns, make, args) for name, (make, args) in programs.items()}


def _unrolled(ns: Any) -> Any:
    def f(x: Any) -> Any:
        for _ in range(1000):
            x = x * 1.5 + x
        return x

    return f


def _nested(ns: Any) -> Any:
    @ns.jit
    def inner(x: Any) -> Any:
        return ns.numpy.sin(x) * 2.0

    @ns.jit
    def middle(x: Any) -> Any:
        for _ in range(10):
            x = inner(x)
        return x

    def outer(x: Any) -> Any:
        for _ in range(10):
            x = middle(x)
        return x

    return outer


def _timed(ns: Any, make: Any, args: Any) -> Any:
    def measure() -> float:
        def fresh() -> Any:
            fun = make()
            salt = object()  # seen by the function: no cache can take it for an earlier one
            compiled = ns.jit(lambda *a: (salt, fun(*a))[1])
            return lambda: compiled.lower(*args)

        return best_of_fresh(fresh, repetitions=3)

    return measure
