"""First calls of whole programs: CPU seconds, all threads, each in a process of its own.

Counted from the call of the compiled function to its result: tracing, lowering, compiling, one run.
A row marked "warm" has the compiled program on disk, from a process before it. `python -m
benchmarks.first_call` runs one of them and also says what imports and arguments take.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from benchmarks.programs import PROGRAMS
from benchmarks.workloads.processes import caches_in


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    rows: dict[str, Any] = {}
    for program in PROGRAMS:
        rows[program] = _first_call(ns.name, program)
        rows[f"{program}, warm"] = _first_call(ns.name, program, warm=True)
    return rows


def _first_call(name: str, program: str, *, warm: bool = False) -> Callable[[], float]:
    command = [sys.executable, "-m", "benchmarks.first_call", name, program]

    def run(environment: dict[str, str] | None = None) -> float:
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        seconds: float = json.loads(done.stdout.splitlines()[-1])["first call"]
        return seconds

    def measure() -> float:
        if not warm:
            return run()
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | caches_in(folder)
            run(environment)
            return min(run(environment) for _ in range(2))

    return measure
