"""Alternates worker processes of the namespaces and joins their figures."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

GROUPS = {
    "processes": ("numpy",),
    "eager_small": ("numpy",),
    "eager_large": ("numpy",),
    "uncompiled_derivatives": ("autograd", "torch"),
    "trace_and_lower": (),
    "compilation": (),
    "dispatch": (),
    "compiled_run": (),
    "parallel_run": (),
}
"""The groups, each with the further peers that have something to compare."""

TARGETS = {
    "processes": 0.4, "eager_small": 0.25, "eager_large": 1.0, "uncompiled_derivatives": 0.1,
    "trace_and_lower": 0.15, "compilation": 0.85, "dispatch": 1.0, "compiled_run": 1.0,
    "parallel_run": 1.0,
}  # fmt: skip
"""The geometric mean of the ratios to JAX that each group is to reach."""


@dataclass(slots=True)
class GroupResult:
    """Seconds by namespace and workload, one figure for each round."""

    group: str
    seconds: dict[str, dict[str, list[float]]] = field(default_factory=dict)

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
    group: str, sides: Sequence[str], rounds: int, quick: bool, say: Callable[[str], None]
) -> GroupResult:
    """Run the workers of a group in turn, several rounds of all sides.

    Args:
      group: a key of `GROUPS`.
      sides: the namespaces; one that cannot be imported is left out.
      rounds: how often every side is run.
      quick: whether each measurement is shortened.
      say: gets a line about each worker's trouble.
    """
    result = GroupResult(group)
    present = [s for s in sides if s in ("xstack", "numpy") or _installed(_module(s))]
    for number in range(rounds):
        order = present if number % 2 == 0 else present[::-1]
        for side in order:
            seconds = _worker(_module(side), group, quick, say)
            side_name = result.seconds.setdefault(side, {})
            for workload, value in seconds.items():
                side_name.setdefault(workload, []).append(value)
    return result


def _module(side: str) -> str:
    """Return the module of a side; `jax-again` is JAX once more, to show the noise."""
    return side.removesuffix("-again")


def _installed(name: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _worker(side: str, group: str, quick: bool, say: Callable[[str], None]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.worker", side, group]
    if quick:
        command.append("--quick")
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(), check=False)
    for line in done.stderr.splitlines():
        if ": " in line and line.startswith(side):
            say(line)
    if done.returncode:
        say(f"{side} {group}: exit {done.returncode}: {done.stderr[-500:]}")
        return {}
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _environment() -> dict[str, str]:
    """Return the environment of a worker: on the CPU, without disk caches that one side lacks."""
    # with bytecode cached: packages from an index have it, a checkout gets it on the first run
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return inherited | {"JAX_PLATFORMS": "cpu", "XSTACK_PLATFORMS": "cpu"}
