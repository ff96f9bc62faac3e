"""Loops without `jit`: the first call of a new program, and later calls of one that ran before."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.timing import best, best_of_fresh

Loop = Callable[[], Any]


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    counter = itertools.count(1)
    measures: dict[str, Any] = {}
    for name, make in _loops(ns).items():

        def first(make: Any = make) -> float:
            # another constant: no cache knows the program
            return best_of_fresh(lambda: _waiting(ns, make(next(counter) * 1e-3)), repetitions=3)

        def later(make: Any = make) -> float:
            return best(_waiting(ns, make(0.0)))

        measures[f"{name}, first"] = first
        measures[f"{name}, later"] = later
    return measures


def _waiting(ns: Any, loop: Loop) -> Loop:
    return lambda: ns.wait(loop())


def _loops(ns: Any) -> dict[str, Callable[[float], Loop]]:
    """Return by name what makes a loop with a constant."""
    lax = ns.lax
    numbers = ns.numpy.asarray(np.linspace(0, 1, 20_000, dtype=np.float32))

    def fori(constant: float) -> Loop:
        def step(i: Any, x: Any) -> Any:
            return x * 0.999 + constant

        return lambda: lax.fori_loop(0, 100_000, step, 1.0)

    def repeat(constant: float) -> Loop:
        def test(carry: Any) -> Any:
            return carry[0] < 100_000

        def step(carry: Any) -> Any:
            return carry[0] + 1, carry[1] * 0.999 + constant

        return lambda: lax.while_loop(test, step, (0, 1.0))

    def mapped(constant: float) -> Loop:
        def one(x: Any) -> Any:
            return ns.numpy.sin(x) + constant

        return lambda: lax.map(one, numbers)

    def prefixes(constant: float) -> Loop:
        return lambda: lax.associative_scan(lambda a, b: a + b + constant, numbers)

    return {
        "fori_loop 100,000": fori, "while_loop 100,000": repeat, "map 20,000": mapped,
        "associative_scan 20,000": prefixes, **_scans(ns, numbers),
    }  # fmt: skip


def _scans(ns: Any, numbers: Any) -> dict[str, Callable[[float], Loop]]:
    start = ns.numpy.asarray(np.ones((32,), np.float32))
    weights = ns.numpy.asarray(np.eye(32, dtype=np.float32) * 0.9)

    def scan(constant: float) -> Loop:
        def step(carry: Any, x: Any) -> Any:
            return carry * 0.9 + x, carry + constant

        return lambda: ns.lax.scan(step, 0.0, numbers)

    def recurrent(constant: float) -> Loop:
        def step(state: Any, x: Any) -> Any:
            return ns.numpy.tanh(weights @ state + x + constant), state.sum()

        return lambda: ns.lax.scan(step, start, numbers[:2000])

    return {"scan 20,000": scan, "scan rnn 2,000": recurrent}
