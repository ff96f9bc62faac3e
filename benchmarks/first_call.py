"""The first call of a whole program: `python -m benchmarks.first_call NAMESPACE PROGRAM`.

Prints one JSON object: processor seconds (all threads, user and system) of this process by stage,
from the import to the result, and the sum of the absolute values of the results.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from benchmarks.namespaces import load
from benchmarks.programs import PROGRAMS


def main(argv: list[str]) -> int:
    """Run one program once, stage by stage; returns the exit status."""
    name, program = argv
    marks = [time.process_time()]
    ns = load(name)
    marks.append(time.process_time())
    fun, arguments = PROGRAMS[program](ns)
    ns.wait(arguments)
    marks.append(time.process_time())
    results = ns.tree.leaves(ns.wait(ns.jit(fun)(*arguments)))
    marks.append(time.process_time())
    stages = ("import", "arguments", "first call")
    seconds = {s: b - a for s, a, b in zip(stages, marks, marks[1:], strict=False)}
    total = sum(float(np.sum(np.abs(np.asarray(each, np.float64)))) for each in results)
    print(json.dumps(seconds | {"process": time.process_time(), "results": total}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
