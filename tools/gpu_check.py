"""Try everything that a GPU is needed for, in one command: `python -m tools.gpu_check`.

It finds out what is there and runs, on the GPU: the samples of all primitives, all of linear
algebra, sorts, products, memory shared with what other libraries are installed, the examples of the
pages, libraries written for JAX, the packages' tests, and the benchmarks beside JAX where that is
installed. It prints one table, writes one JSON file, and ends with 1 if anything failed. Without a
GPU it says so in a sentence and ends with 0. It needs no network, and a checkout on PYTHONPATH is
enough.

`--rehearse` does all in-process steps on the CPU with few cells, which tries this file.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import xstack
import xstack.numpy as xnp
from tests.nets import gpu_cells
from xjit import jaxlib_gateway as gateway
from xjit.testing import check_lowering
from xnp.testing import samples
from xprim import Undefined, get_primitive
from xstack import doctor

ROOT = Path(__file__).resolve().parent.parent
SUITES = ("xprim", "xnp", "xrandom", "xad", "xbatch", "xjit")
LIBRARIES = ("flax", "equinox", "diffrax", "numpyro")
NEIGHBOURS = ("torch", "cupy")
_SUMMARY = re.compile(r"(\d+) (passed|failed|error)")


class Outcome(NamedTuple):
    """What came of a step."""

    step: str
    passed: int
    failures: list[str]
    seconds: float
    note: str = ""


Trials = Iterator[tuple[str, Callable[[], Any]]]


def main(argv: list[str] | None = None) -> int:
    """Run the steps; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.gpu_check", description=__doc__)
    parser.add_argument("--rehearse", action="store_true", help="few cells, on the CPU")
    parser.add_argument("--steps", nargs="+", choices=list(STEPS), default=list(STEPS))
    parser.add_argument("--seconds", type=float, default=300, help="for all steps (default: 300)")
    parser.add_argument("--out", type=Path, default=Path("gpu-check.json"), metavar="FILE")
    args = parser.parse_args(argv)
    reason = None if args.rehearse else why_no_gpu()
    if reason is not None:
        print(f"gpu_check: nothing was run: {reason}.")
        return 0
    end = time.monotonic() + args.seconds
    outcomes = []
    for name in args.steps:
        outcomes.append(STEPS[name](name, end, args.rehearse))
        print(line_of(outcomes[-1]), flush=True)
    args.out.write_text(json.dumps(as_json(outcomes), indent=1) + "\n")
    print(f"\n{table_of(outcomes)}\nwritten to {args.out}")
    return 1 if any(outcome.failures for outcome in outcomes) else 0


def why_no_gpu() -> str | None:
    """Return why there is no GPU to run on, None where there is one."""
    if gateway.find_gpu_plugin() is None:
        return "the plugin for GPUs is not installed (the extra cuda12 or cuda13 of xstack has it)"
    try:
        found = xstack.devices("gpu")
    except RuntimeError as error:
        return "there is no GPU that can be used: " + " ".join(str(error).split())
    return None if found else "the plugin finds no GPU"


def tried(name: str, trials: Trials, end: float) -> Outcome:
    """Run trials until the time is over."""
    start, passed, failures, left = time.monotonic(), 0, [], 0
    for title, run in trials:
        if time.monotonic() > end:
            left += 1
            continue
        try:
            run()
            passed += 1
        except Exception as error:
            said = " ".join(str(error).split())[:300]
            failures.append(f"{title}: {type(error).__name__}: {said}")
    note = f"{left} not reached" if left else ""
    return Outcome(name, passed, failures, time.monotonic() - start, note)


_TOGETHER = 40  # samples compiled as one program


def primitives(name: str, end: float, rehearse: bool) -> Outcome:
    """Compare each primitive with its NumPy rule on its samples; those that fail one by one."""
    start, passed, failures, left = time.monotonic(), 0, [], 0
    for key, table in sorted(samples.TABLE.items())[:: 150 if rehearse else 1]:
        primitive = get_primitive(key)
        if type(primitive.rules.get("stablehlo")) is Undefined:
            continue
        rows = table[:2] if rehearse else table
        for group in [rows[i : i + _TOGETHER] for i in range(0, len(rows), _TOGETHER)]:
            found = tried(name, _together(primitive, group), end)
            if found.failures:
                found = tried(name, _one_by_one(primitive, group), end)
                passed, failures = passed + found.passed, failures + found.failures
            elif found.note:
                left += len(group)
            else:
                passed += len(group)
    note = f"{left} not reached" if left else ""
    return Outcome(name, passed, failures, time.monotonic() - start, note)


def _together(primitive: Any, rows: Any) -> Trials:
    yield primitive.name, lambda: check_lowering(primitive, *rows)


def _one_by_one(primitive: Any, rows: Any) -> Trials:
    for row in rows:
        title = f"{primitive.name} of {[str(x.aval) for x in row.arrays()]} {row.params}"
        yield title, lambda r=row: check_lowering(primitive, r)


def linear_algebra(name: str, end: float, rehearse: bool) -> Outcome:
    """Compare each function of matrices, compiled, with the same on the CPU."""
    rows = [*gpu_cells.ROWS, *gpu_cells.MADE, *gpu_cells.ALONE, *gpu_cells.CUDA_ALONE]
    cells = [c for c in gpu_cells.cells_of(rows) if c.dtype in ("float32", "complex64")]
    if rehearse:
        cells = [c for c in cells if not needs_gpu(c)][::500]

    def compared(cell: gpu_cells.Cell) -> None:
        operands = gpu_cells.operands_of(cell)
        kept = tuple([(k, v) for k, v in cell.keywords if k not in ("algorithm", "implementation")])
        found = xstack.jit(gpu_cells.function_of(xstack, cell))(*operands)
        plain = gpu_cells.function_of(xstack, cell._replace(keywords=kept))
        expected = xstack.jit(plain, backend="cpu")(*operands)
        pairs = zip(xstack.tree.leaves(found), xstack.tree.leaves(expected), strict=True)
        for x, y in pairs:  # of vectors signs and phases are free, so the sizes are compared
            np.testing.assert_allclose(np.abs(x), np.abs(y), rtol=5e-3, atol=5e-3)

    return tried(name, ((c.name, lambda c=c: compared(c)) for c in cells), end)


def needs_gpu(cell: gpu_cells.Cell) -> bool:
    """Return whether a cell asks for an algorithm that no CPU has."""
    return any(k in ("algorithm", "implementation") for k, _ in cell.keywords)


def sorts(name: str, end: float, rehearse: bool) -> Outcome:
    """Look whether CUB sorts."""
    x = xnp.asarray(np.random.default_rng(0).normal(size=100_000).astype(np.float32))
    calls = {"sort": xnp.sort, "argsort": xnp.argsort, "unique": lambda x: xnp.unique(x, size=5)}

    def sorted_by_cub(fun: Callable[..., Any]) -> None:
        compiled = xstack.jit(fun).lower(x).compile()
        np.testing.assert_array_equal(compiled(x), fun(np.asarray(x)))
        if not rehearse and "cub" not in compiled.as_text():
            raise AssertionError("the optimised program does not call CUB")

    return tried(name, ((k, lambda f=f: sorted_by_cub(f)) for k, f in calls.items()), end)


def products(name: str, end: float, rehearse: bool) -> Outcome:
    """Look how exact products are: float32 unless less is asked for."""
    rng = np.random.default_rng(0)
    a, b = [rng.normal(size=(512, 512)).astype(np.float32) for _ in range(2)]
    exact = a.astype(np.float64) @ b.astype(np.float64)

    def error(precision: str | None) -> float:
        found = xstack.jit(lambda a, b: xnp.matmul(a, b, precision=precision))(a, b)
        return float(np.abs(np.asarray(found) - exact).max() / np.abs(exact).max())

    def full() -> None:
        assert error(None) < 1e-5, f"relative error {error(None):.1e}"

    def less() -> None:
        assert rehearse or error("tensorfloat32") > 1e-5, "tensorfloat32 is not less exact"

    return tried(name, iter([("float32", full), ("tensorfloat32", less)]), end)


def places(name: str, end: float, rehearse: bool) -> Outcome:
    """Share memory with the libraries that are installed, in both directions."""

    def told() -> None:
        x = xnp.arange(4.0)
        kind = 1 if rehearse else 2
        assert x.__dlpack_device__()[0] == kind, x.__dlpack_device__()
        assert hasattr(x, "__cuda_array_interface__") is not rehearse

    def shared(library: str) -> None:
        module, x = importlib.import_module(library), xnp.arange(4.0) + 1
        lent = module.from_dlpack(x)
        back = xnp.from_dlpack(lent, copy=False)
        assert back.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
        np.testing.assert_array_equal(back, [1, 2, 3, 4])

    there = [lib for lib in NEIGHBOURS if not rehearse and importlib.util.find_spec(lib)]
    trials = [("what arrays say", told), *[(lib, lambda lib=lib: shared(lib)) for lib in there]]
    return tried(name, iter(trials), end)


def pages(name: str, end: float, rehearse: bool) -> Outcome:
    """Run the examples of the pages."""
    names = ["README.md", "docs/tutorials"]
    command = [sys.executable, "tools/run_markdown.py", *names]
    return tried(name, iter([(n, lambda: started(command, end)) for n in (" ".join(names),)]), end)


_AS_JAX = "from xstack import as_jax; as_jax.install(); import {}, jax.numpy; jax.numpy.ones(3) + 1"


def libraries(name: str, end: float, rehearse: bool) -> Outcome:
    """Import libraries written for JAX with this family in its place."""
    there = [lib for lib in LIBRARIES if importlib.util.find_spec(lib)]
    commands = {lib: [sys.executable, "-c", _AS_JAX.format(lib)] for lib in there}
    return tried(name, ((k, lambda c=c: started(c, end)) for k, c in commands.items()), end)


def suites(name: str, end: float, rehearse: bool) -> Outcome:
    """Run the packages' tests with the GPU as the default device."""
    start, passed, failures = time.monotonic(), 0, []
    seconds = max(end - start - 30, 1)
    folders = [f"packages/{p}/tests" for p in SUITES]
    options = ["-q", "-m", "not fuzz", "--tb=no", "-n", "8"]
    command = [sys.executable, "-m", "pytest", *folders, *options]
    try:
        text = started(command, start + seconds, TESTS_PLATFORMS="gpu,cpu", status=(0, 1))
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return Outcome(name, 0, [str(error)[:300]], time.monotonic() - start)
    counts = {kind: int(n) for n, kind in _SUMMARY.findall(text.strip().splitlines()[-1])}
    passed = counts.get("passed", 0)
    failures = [t for t in text.splitlines() if t.startswith(("FAILED", "ERROR"))]
    return Outcome(name, passed, failures, time.monotonic() - start)


def benchmarks(name: str, end: float, rehearse: bool) -> Outcome:
    """Run the groups beside JAX; the figures are in the JSON file."""
    if importlib.util.find_spec("jax") is None:
        return Outcome(name, 0, [], 0.0, "JAX is not installed")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks", "--quick", "--out", folder, "--groups",
                   "run", "dispatch", "eager"]  # fmt: skip
        found = tried(name, iter([("run dispatch eager", lambda: started(command, end))]), end)
        file = Path(folder) / "results.json"
        means = {} if not file.exists() else {
            group: figures["geometric_mean"]
            for group, figures in json.loads(file.read_text())["groups"].items()
        }  # fmt: skip
    return found._replace(note=json.dumps(means))


def started(command: list[str], end: float, *, status: tuple[int, ...] = (0,), **more: str) -> str:
    """Run a command in the checkout until the time is over; return what it printed."""
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", **more}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        timeout=max(end - time.monotonic(), 1),
    )  # fmt: skip
    if done.returncode not in status:
        raise AssertionError(f"ended with {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


STEPS: dict[str, Callable[[str, float, bool], Outcome]] = {
    "places": places, "products": products, "sorts": sorts, "linear-algebra": linear_algebra,
    "primitives": primitives, "libraries": libraries, "pages": pages, "benchmarks": benchmarks,
    "suites": suites,
}  # fmt: skip


def as_json(outcomes: list[Outcome]) -> dict[str, Any]:
    """Return what is written: the machine and the outcomes."""
    return {"machine": dict(doctor.facts()), "steps": [o._asdict() for o in outcomes]}


def line_of(outcome: Outcome) -> str:
    """Return an outcome as a line."""
    failed = f", {len(outcome.failures)} failed" if outcome.failures else ""
    note = f" ({outcome.note})" if outcome.note else ""
    return f"{outcome.step}: {outcome.passed} passed{failed}, {outcome.seconds:.0f} s{note}"


def table_of(outcomes: list[Outcome]) -> str:
    """Return the outcomes as a Markdown table, and the first failures of each."""
    lines = ["| step | passed | failed | seconds | |", "|---|---|---|---|---|"]
    lines += [f"| {o.step} | {o.passed} | {len(o.failures)} | {o.seconds:.0f} | {o.note} |"
              for o in outcomes]  # fmt: skip
    return "\n".join([*lines, *[f"  {o.step}: {f}" for o in outcomes for f in o.failures[:5]]])


if __name__ == "__main__":
    sys.exit(main())
