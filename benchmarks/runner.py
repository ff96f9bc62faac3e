"""Alternates worker processes of the namespaces and joins their figures.

The workers of a round live side by side and are asked in turn, a fraction of a second each; when
all workloads were asked for, they are asked for again, several times, and the least of a side
counts. A shared machine changes its speed by a half, from one second to the next or for some
seconds: so both sides see it at its best. The same rounds of workers that ran one after the other
gave ratios of 0.7 to 1.5 for equal work.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.namespaces import NO_DISK_CACHES

GROUPS = {
    "processes": ("numpy",),
    "eager_small": ("numpy",),
    "eager_large": ("numpy",),
    "eager_loops": (),
    "uncompiled_derivatives": ("autograd", "torch"),
    "trace_and_lower": (),
    "compilation": (),
    "random_programs": (),
    "whole_programs": (),
    "dispatch": (),
    "compiled_run": (),
    "parallel_run": (),
    "million_uncompiled": ("numpy",),
    "million_compiled": ("numpy",),
    "compiled_loops": ("numba",),
    "ocean_kernels": ("numpy", "numba"),
    "linear_algebra": (),
    "gpu_run": (),
}
"""The groups, each with the further peers that have something to compare."""

FOR_GPUS = ("linear_algebra", "gpu_run")
"""Groups of sizes for a GPU, which are run where they are named."""

TARGETS = {
    "processes": 0.4, "eager_small": 0.25, "eager_large": 1.0, "eager_loops": 1.0,
    "uncompiled_derivatives": 0.1, "trace_and_lower": 0.15, "compilation": 0.85,
    "random_programs": 0.8, "whole_programs": 0.7,
    "dispatch": 1.0, "compiled_run": 1.0, "parallel_run": 1.0,
    "million_uncompiled": 1.0, "million_compiled": 1.0,
    "compiled_loops": 1.0, "ocean_kernels": 1.0,
    "linear_algebra": 1.0, "gpu_run": 1.0,
}  # fmt: skip
"""The geometric mean of the ratios to JAX that each group is to reach."""


@dataclass(slots=True)
class GroupResult:
    """Seconds by namespace and workload, one figure for each round."""

    group: str
    seconds: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def measure(self, workers: Sequence[Worker], turns: int, end: float = math.inf) -> None:
        """Ask the workers for each workload in turn, and so on; the least that each says counts.

        Nothing is started after `end`, in seconds of `time.monotonic`.
        """
        names = dict.fromkeys(name for worker in workers for name in worker.names)
        found: dict[tuple[str, str], list[float]] = {}
        for turn in range(turns):
            for name, worker in itertools.product(
                names, workers if turn % 2 == 0 else workers[::-1]
            ):
                if time.monotonic() > end:
                    break
                seconds = worker.seconds(name) if name in worker.names else None
                if seconds is not None:
                    found.setdefault((worker.side, name), []).append(seconds)
        for (side, name), figures in found.items():
            self.seconds.setdefault(side, {}).setdefault(name, []).append(min(figures))

    def ratios(self, a: str, b: str) -> dict[str, list[float]]:
        """Return, for each workload of both, seconds a / b of every round."""
        ours, theirs = self.seconds.get(a, {}), self.seconds.get(b, {})
        return {
            name: [x / y for x, y in zip(ours[name], theirs[name], strict=False)]
            for name in ours
            if theirs.get(name)
        }


def geometric_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return statistics.geometric_mean(ratios) if ratios else float("nan")


def run_group(
    group: str, sides: Sequence[str], rounds: int, turns: int, say: Callable[[str], None],
    platform: str = "cpu", seconds: float = math.inf,
) -> GroupResult:  # fmt: skip
    """Run the workers of a group, several rounds of all sides, each round with new processes.

    Args:
      group: a key of `GROUPS`.
      sides: the namespaces; one that cannot be imported is left out.
      rounds: how often every side is run.
      turns: how often a round measures each workload on each side.
      say: gets a line about each worker's trouble.
      platform: `cpu` or `gpu`, where both sides compute.
      seconds: how long the group may take; what was measured until then is the result.
    """
    end = time.monotonic() + seconds
    result = GroupResult(group)
    present = [s for s in sides if s in ("xstack", "numpy") or _installed(_module(s))]
    for number in range(rounds):
        workers = [Worker(side, group, platform) for side in present]
        result.measure(workers if number % 2 == 0 else workers[::-1], turns, end)
        for worker in workers:
            worker.close(say)
    return result


class Worker:
    """A process that measures the workloads of one side when it is asked."""

    def __init__(self, side: str, group: str, platform: str = "cpu") -> None:
        command = [sys.executable, "-m", "benchmarks.worker", _module(side), group]
        self.side = side
        self.group = group
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 (`close` closes it)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
            env=_environment(platform),
        )  # fmt: skip

    @functools.cached_property
    def names(self) -> list[str]:
        """The workloads, which the process prepares while those of other sides start."""
        return self._answer() or []

    def seconds(self, name: str) -> float | None:
        """Return the seconds of a workload, None where it failed."""
        assert self._process.stdin is not None
        try:
            print(name, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            return None
        seconds: float | None = self._answer()
        return seconds

    def close(self, say: Callable[[str], None]) -> None:
        """End the process and say what troubled it."""
        self._process.communicate()
        self._errors.seek(0)
        errors = self._errors.read()
        self._errors.close()
        for line in errors.splitlines():
            if ": " in line and line.startswith(_module(self.side)):
                say(line)
        if self._process.returncode:
            say(f"{self.side} {self.group}: exit {self._process.returncode}: {errors[-500:]}")

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None


def _module(side: str) -> str:
    """Return the module of a side; `jax-again` is JAX once more, to show the noise."""
    return side.removesuffix("-again")


def _installed(name: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _environment(platform: str) -> dict[str, str]:
    """Return the environment of a worker on a platform, without caches that one side lacks."""
    # with bytecode cached: packages from an index have it, a checkout gets it on the first run
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return inherited | PLATFORMS[platform] | NO_DISK_CACHES


PLATFORMS = {
    "cpu": {"JAX_PLATFORMS": "cpu", "XSTACK_PLATFORMS": "cpu"},
    # Products of float32 are float32 on both sides, and the sides share the memory.
    "gpu": {
        "JAX_PLATFORMS": "cuda,cpu", "XSTACK_PLATFORMS": "gpu,cpu",
        "JAX_DEFAULT_MATMUL_PRECISION": "float32", "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    },
}  # fmt: skip
"""The environment of a worker by platform."""
