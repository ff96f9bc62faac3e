"""Compilation of programs with many draws: CPU seconds of `lowered.compile()`, all threads.

Small draws of one shape and of many, gradients of networks with dropout, permutations, initial
weights, attention with dropout, and a chain of small linear systems.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

Draw = Callable[[Any, int], Any]


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    key = ns.random.PRNGKey(0)
    counter = iter(range(1, 100_000))
    programs: dict[str, Any] = {
        f"{name}, {k} times": (make(ns), k)
        for name, make, counts in _PROGRAMS
        for k in counts
    }  # fmt: skip

    def timed(program: Draw, k: int) -> Callable[[], float]:
        def measure() -> float:
            factor = np.float32(1 + next(counter) * 1e-4)  # no cache knows such a program
            fun = ns.jit(lambda key: (program(key, k), factor * ns.numpy.sum(key)))
            lowered = fun.lower(key)
            start = time.process_time()
            lowered.compile()
            return time.process_time() - start

        return measure

    return {name: timed(program, k) for name, (program, k) in programs.items()}


def _chain(draw: Callable[[Any, Any, int], Any]) -> Callable[[Any], Draw]:
    """Return what makes a program that splits its key before each of k draws."""

    def make(ns: Any) -> Draw:
        def program(key: Any, k: int) -> list[Any]:
            drawn = []
            for i in range(k):
                key, own = ns.random.split(key)
                drawn.append(draw(ns, own, i))
            return drawn

        return program

    return make


def _initial(name: str) -> Callable[[Any], Draw]:
    def make(ns: Any) -> Draw:
        init = getattr(ns.nn.initializers, name)()

        def program(key: Any, k: int) -> list[Any]:
            return [init(own, (16 + i, 8)) for i, own in enumerate(ns.random.split(key, k))]

        return program

    return make


def _dropout_gradient(ns: Any) -> Draw:
    xnp, width = ns.numpy, 32
    rng = np.random.default_rng(0)

    def program(key: Any, k: int) -> Any:
        weights = [rng.normal(size=(width, width)).astype(np.float32) for _ in range(k)]

        def loss(weights: Any, key: Any) -> Any:
            x = xnp.ones((8, width))
            for w in weights:
                key, own = ns.random.split(key)
                x = xnp.tanh(xnp.dot(x, w))
                x = xnp.where(ns.random.bernoulli(own, 0.9, x.shape), x / 0.9, 0.0)
            return xnp.sum(x * x)

        return ns.grad(loss)(weights, key)

    return program


def _attention_gradient(ns: Any) -> Draw:
    xnp, heads, length, width = ns.numpy, 2, 7, 6

    def program(key: Any, k: int) -> Any:
        def loss(x: Any, key: Any) -> Any:
            for i in range(k):  # each block has a length of its own
                key, own, other = ns.random.split(key, 3)
                scores = xnp.einsum("hqd,hkd->hqk", x, x) / float(np.sqrt(width))
                weights = ns.nn.softmax(scores)
                weights = xnp.where(ns.random.bernoulli(own, 0.9, weights.shape), weights / 0.9, 0)
                x = x + xnp.einsum("hqk,hkd->hqd", weights, x)
                x = xnp.where(ns.random.bernoulli(other, 0.9, x.shape), x / 0.9, 0)
                x = xnp.concatenate([x, x[:, :1] * float(i)], 1)
            return xnp.sum(x * x)

        return ns.grad(loss)(xnp.ones((heads, length, width)), key)

    return program


def _solves(ns: Any) -> Draw:
    def program(key: Any, k: int) -> Any:
        matrix = ns.numpy.eye(16) + 0.01 * ns.numpy.sum(key)
        x = ns.numpy.ones((16, 16))
        for _ in range(k):
            x = ns.numpy.linalg.solve(matrix + x, x)
        return x

    ns.jit(lambda key: program(key, 1)).lower(ns.random.PRNGKey(0)).compile()  # imports LAPACK
    return program


_PROGRAMS: tuple[tuple[str, Callable[[Any], Draw], tuple[int, ...]], ...] = (
    ("uniform((8, 1))", _chain(lambda ns, own, i: ns.random.uniform(own, (8, 1))), (5, 20, 40)),
    ("uniform of many shapes",
     _chain(lambda ns, own, i: ns.random.uniform(own, (3 + i, 2 + i % 4))), (5, 10)),
    ("permutation of 100", _chain(lambda ns, own, i: ns.random.permutation(own, 100)), (5, 20)),
    ("gradient with dropout", _dropout_gradient, (5, 20)),
    ("gradient of attention with dropout", _attention_gradient, (2, 6)),
    ("lecun_normal", _initial("lecun_normal"), (5, 20)),
    ("normal weights", _initial("normal"), (20,)),
    ("linalg.solve of 16x16", _solves, (5, 20)),
)  # fmt: skip
