"""A million elements under `jit`, beside JAX; beside NumPy and SciPy, which compile nothing."""

from __future__ import annotations

from typing import Any

from benchmarks.timing import best
from benchmarks.workloads import million


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    return {
        name: (lambda fun=fun, args=args: best(
            lambda: ns.wait(fun(*args)), seconds=0.1, repetitions=5))
        for name, (fun, args) in million.workloads(ns, compiled=ns.compiles).items()
    }  # fmt: skip
