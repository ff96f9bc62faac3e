"""Calls of compiled functions that do next to nothing.

Host values are new at each call, as batches and step counts are; "Python scalar again" passes the
same few, as a schedule of learning rates does.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from benchmarks.timing import best


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    host = np.ones(8, np.float32)
    x = ns.device_put(host)
    tree = {f"k{i}": x for i in range(100)}
    one = ns.jit(lambda a: a + 1)
    two = ns.jit(lambda a, b: a + b)
    ten = ns.jit(lambda *args: sum(args[1:], args[0]))
    leaves = ns.jit(lambda t: {k: v + 1 for k, v in t.items()})
    static = functools.partial(ns.jit, static_argnums=1)(lambda a, n: a * n)
    layers = {"first": {"w": x, "b": x}, "second": {"w": x, "b": x}}
    of_layers = ns.jit(lambda p, a: p["first"]["w"] + p["second"]["b"] + a)
    with_host = ns.jit(lambda a, b: a + b)
    with_number = ns.jit(lambda a, b: a + b)
    with_rate = ns.jit(lambda a, b: a + b)
    donated = ns.jit(lambda a: a + 1, donate_argnums=0)
    state = {"x": ns.device_put(host)}

    def donate() -> Any:
        state["x"] = donated(state["x"])
        return state["x"]

    batches = itertools.cycle([np.full(8, float(i), np.float32) for i in range(64)])
    rates = itertools.cycle([0.1, 0.03, 0.01, 0.003])
    numbers = itertools.count(1.0, 0.5)
    args = [x] * 10
    calls = {
        "1 array": lambda: one(x),
        "2 arrays": lambda: two(x, x),
        "10 arrays": lambda: ten(*args),
        "dict of 100": lambda: leaves(tree),
        "static": lambda: static(x, 3),
        "layers": lambda: of_layers(layers, x),
        "NumPy argument": lambda: with_host(x, next(batches)),
        "Python scalar": lambda: with_number(x, next(numbers)),
        "Python scalar again": lambda: with_rate(x, next(rates)),
        "donated": donate,
    }
    calls |= _calls_by_name(ns, x) | _calls_of_compiled(ns, x, tree) | _calls_of_methods(ns, x)
    return {name: _timed(ns, call) for name, call in calls.items()}


def _calls_by_name(ns: Any, x: Any) -> dict[str, Any]:
    static = ns.jit(lambda a, n: a * n, static_argnames="n")
    keyword_only = ns.jit(lambda a, *, n, m=2: a * n, static_argnames=("n", "m"))
    keyword = ns.jit(lambda a, b: a + b)
    keywords = ns.jit(lambda **kw: kw["a"] + kw["b"])
    return {
        "static by name": lambda: static(x, n=3),
        "static, keyword only": lambda: keyword_only(x, n=3),
        "keyword": lambda: keyword(x, b=x),
        "keywords alone": lambda: keywords(a=x, b=x),
    }


def _calls_of_compiled(ns: Any, x: Any, tree: Any) -> dict[str, Any]:
    add = ns.jit(lambda a, b: a + b)
    two = add.lower(x, x).compile()
    by_name = add.lower(x, b=x).compile()
    leaves = ns.jit(lambda t: {k: v + 1 for k, v in t.items()}).lower(tree).compile()
    return {
        "compiled": lambda: two(x, x),
        "compiled, keyword": lambda: by_name(x, b=x),
        "compiled, dict of 100": lambda: leaves(tree),
    }


def _calls_of_methods(ns: Any, x: Any) -> dict[str, Any]:
    class Model:
        def step(self, a: Any) -> Any:
            return a + 1

        @functools.partial(ns.jit, static_argnums=0)
        def compiled_step(self, a: Any) -> Any:
            return a + 1

    model = Model()
    step = ns.jit(model.step)
    return {"bound method": lambda: step(x), "method, static self": lambda: model.compiled_step(x)}


def _timed(ns: Any, call: Any) -> Any:
    def measure() -> float:
        ns.wait(call())
        return best(call, seconds=0.1)

    return measure
