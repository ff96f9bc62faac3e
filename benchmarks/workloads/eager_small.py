"""Eager operations on eight elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.timing import best


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    xnp = ns.numpy
    x = xnp.asarray(np.arange(8, dtype=np.float32))
    y = xnp.asarray(np.ones(8, np.float32))
    m = xnp.asarray(np.ones((16, 16), np.float32))
    idx = np.array([1, 3, 5])
    mask = x > 3
    calls = {
        "x + y": lambda: x + y,
        "x * 2.0": lambda: x * 2.0,
        "sin": lambda: xnp.sin(x),
        "sum": lambda: xnp.sum(x),
        "x[3]": lambda: x[3],
        "x[2:5]": lambda: x[2:5],
        "x[idx]": lambda: x[idx],
        "reshape": lambda: xnp.reshape(x, (2, 4)),
        "T": lambda: m.T,
        "concatenate": lambda: xnp.concatenate([x, y]),
        "where": lambda: xnp.where(mask, x, y),
        "dot 16x16": lambda: xnp.dot(m, m),
        "array([1., 2., 3.])": lambda: xnp.array([1.0, 2.0, 3.0]),
        "zeros": lambda: xnp.zeros(8),
        "asarray": lambda: xnp.asarray(x),
        "np.asarray(x)": lambda: np.asarray(x),
        "float(x[0])": lambda: float(x[0]),
    }
    if ns.name != "numpy":
        tree = {f"k{i}": x for i in range(100)}
        key = ns.random.PRNGKey(0)
        calls |= {
            "x.at[3].set": lambda: x.at[3].set(1.0),
            "random.split": lambda: ns.random.split(key),
            "random.normal": lambda: ns.random.normal(key, (8,)),
            "tree.map 100 leaves": lambda: ns.tree.map(lambda v: v, tree),
            "tree.flatten 100 leaves": lambda: ns.tree.flatten(tree),
        }
    return {name: _timed(ns, call) for name, call in calls.items()}


def _timed(ns: Any, call: Any) -> Any:
    def measure() -> float:
        ns.wait(call())
        return best(call, seconds=0.05)

    return measure
