"""Eager operations on large arrays, and how soon an asynchronous call returns."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.timing import best


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    xnp = ns.numpy
    rng = np.random.default_rng(0)
    big = xnp.asarray(rng.random((3000, 3000)).astype(np.float32))
    table = xnp.asarray(rng.random((10000, 10)).astype(np.float32))
    square = xnp.asarray(rng.random((1000, 1000)).astype(np.float32))

    def f(x: Any) -> Any:
        y1 = x + x * x + 3
        y2 = x * x + x * x.T
        return y1 * y2

    def norm(x: Any) -> Any:
        x = x - x.mean(0)
        return x / x.std(0)

    def until_it_returns() -> float:
        times = []
        for _ in range(20):
            ns.wait(xnp.dot(square, square))
            start = time.perf_counter()
            pending = xnp.dot(square, square)
            times.append(time.perf_counter() - start)
            ns.wait(pending)
        return min(times)

    calls = {
        "f 3000x3000": lambda: ns.wait(f(big)),
        "norm 10000x10": lambda: ns.wait(norm(table)),
        "dot 1000x1000": lambda: ns.wait(xnp.dot(square, square)),
    }
    measures: dict[str, Any] = {
        name: (lambda call=call: best(call, seconds=0.5, repetitions=16))
        for name, call in calls.items()
    }
    measures["dot 1000x1000 returns"] = until_it_returns
    return measures
