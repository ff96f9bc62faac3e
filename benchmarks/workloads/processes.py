"""Whole processes: import, first addition, and a small network trained from a cold start.

Each measurement starts new Python processes; the namespace object is only asked for its name.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Any

TRAIN = """
import numpy as np
import {name} as ns, {name}.numpy as xnp, {name}.random as random
def loss(params, x, y):
    h = xnp.tanh(x @ params[0] + params[1])
    return xnp.mean((h @ params[2] + params[3] - y) ** 2)
@ns.jit
def update(params, x, y):
    grads = ns.grad(loss)(params, x, y)
    return [p - 0.1 * g for p, g in zip(params, grads)]
k1, k2, k3 = random.split(random.PRNGKey(0), 3)
params = [random.normal(k1, (8, 32)) * 0.3, xnp.zeros(32)]
params += [random.normal(k2, (32, 1)) * 0.2, xnp.zeros(1)]
x = random.normal(k3, (64, 8))
y = xnp.sum(x, axis=1, keepdims=True)
for _ in range(100):
    params = update(params, x, y)
print(float(loss(params, x, y)))
"""

PROGRAMS = {
    "import": "import {name}, {name}.numpy, {name}.lax, {name}.random",
    "import and first add": "import {name}.numpy as xnp\nx = xnp.ones(3)\nfloat((x + x)[0])",
    "cold start, 100 training steps": TRAIN,
}
NUMPY_PROGRAMS = {"import": "import numpy"}


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    programs = NUMPY_PROGRAMS if ns.name == "numpy" else PROGRAMS
    measures: dict[str, Any] = {
        name: _seconds(code.format(name=ns.name)) for name, code in programs.items()
    }
    if ns.name != "numpy":
        warm = _seconds(TRAIN.format(name=ns.name), warm=True)
        measures["warm start, 100 training steps"] = warm
    measures["import: peak memory (MiB)"] = _peak_memory(programs["import"].format(name=ns.name))
    return measures


def _seconds(code: str, *, warm: bool = False) -> Any:
    """Return what measures a process; `warm` gives it programs that one before it compiled."""

    def measure() -> float:
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | caches_in(folder) if warm else None
            times = []
            for _ in range(3 if warm else 2):
                start = time.perf_counter()
                subprocess.run(
                    [sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL,
                    env=environment,
                )  # fmt: skip
                times.append(time.perf_counter() - start)
        return min(times)

    return measure


def caches_in(folder: str) -> dict[str, str]:
    """Return settings of both libraries for a cache of all compiled programs in a folder."""
    return {
        "XSTACK_ENABLE_COMPILATION_CACHE": "1", "XSTACK_COMPILATION_CACHE_DIR": folder,
        "JAX_ENABLE_COMPILATION_CACHE": "true", "JAX_COMPILATION_CACHE_DIR": folder,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }  # fmt: skip


def _peak_memory(code: str) -> Any:
    # Not `ru_maxrss`, which a new process takes over from the one that starts it.
    tail = "\nprint(int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) / 1024)"

    def measure() -> float:
        out = subprocess.run(
            [sys.executable, "-c", code + tail], check=True, capture_output=True, text=True
        ).stdout
        return float(out.splitlines()[-1])

    return measure
