"""One process of a benchmark: `python -m benchmarks.worker NAMESPACE GROUP`.

NAMESPACE is `xstack`, `jax`, `numpy`, `autograd` or `torch`. The first line printed is a JSON list
of the workloads; then each line read names one, and is answered by its seconds, or by null where
the namespace does not have it.
"""

from __future__ import annotations

import importlib
import json
import sys

from benchmarks.namespaces import load


def main(argv: list[str]) -> int:
    """Time the workloads that are asked for; returns the exit status."""
    name, group = argv
    module = importlib.import_module(f"benchmarks.workloads.{group}")
    measures = module.workloads(load(name))
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a workload prints is not an answer
    print(json.dumps(list(measures)), file=answers, flush=True)
    for line in sys.stdin:
        workload, seconds = line.strip(), None
        try:
            seconds = measures[workload]()
        except Exception as error:  # a missing feature must not hide the other figures
            print(f"{name} {group} {workload}: {type(error).__name__}: {error}", file=sys.stderr)
        print(json.dumps(seconds), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
