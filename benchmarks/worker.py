"""One process of a benchmark: `python -m benchmarks.worker NAMESPACE GROUP [--quick]`.

NAMESPACE is `xstack`, `jax`, `numpy`, `autograd` or `torch`; the last line printed is a JSON object
of seconds by workload. A workload that a namespace does not have is left out.
"""

from __future__ import annotations

import importlib
import json
import sys

from benchmarks.namespaces import load


def main(argv: list[str]) -> int:
    """Time every workload of a group; returns the exit status."""
    name, group = argv[:2]
    quick = "--quick" in argv
    module = importlib.import_module(f"benchmarks.workloads.{group}")
    namespace = load(name)
    seconds = {}
    for workload, measure in module.workloads(namespace).items():
        try:
            seconds[workload] = measure(quick)
        except Exception as error:  # a missing feature must not hide the other figures
            print(f"{name} {group} {workload}: {type(error).__name__}: {error}", file=sys.stderr)
    print(json.dumps(seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
