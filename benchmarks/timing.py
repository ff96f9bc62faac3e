"""How a callable is timed inside a process: the minimum over repetitions of a mean over a loop."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

Workload = Callable[[], Any]


def best(fun: Workload, *, seconds: float = 0.15, repetitions: int = 7) -> float:
    """Return seconds per call: the best of several loops of about `seconds / repetitions` each."""
    fun()
    number, elapsed = 1, 0.0
    while elapsed < seconds / repetitions:
        start = time.perf_counter()
        for _ in range(number):
            fun()
        elapsed = time.perf_counter() - start
        if elapsed < seconds / repetitions:
            number = max(number * 2, int(number * seconds / repetitions / max(elapsed, 1e-9)))
    loops = [elapsed / number]
    gc.collect()
    gc.disable()
    try:
        for _ in range(repetitions - 1):
            start = time.perf_counter()
            for _ in range(number):
                fun()
            loops.append((time.perf_counter() - start) / number)
    finally:
        gc.enable()
    return min(loops)


def best_of_fresh(make: Callable[[], Workload], *, repetitions: int = 5) -> float:
    """Return the best seconds of a single call, each on a new object that `make` gives untimed."""
    times = []
    for _ in range(repetitions):
        fun = make()
        gc.collect()
        start = time.perf_counter()
        fun()
        times.append(time.perf_counter() - start)
    return min(times)
