"""Try everything that a GPU is needed for, in one command: `python -m tools.gpu_check`.

It finds out what is there and runs, on the GPU: samples of all primitives, all functions of linear
algebra, sorts, products, attention, memory, kernels in Triton and CUDA C++, memory shared with what
other libraries are installed, the examples of pages, libraries written for JAX, a sample of the
packages' tests, and, alone at the end, the benchmarks beside JAX where that is installed. It prints
one table, writes one JSON file, and ends with 1 if anything failed. Without a GPU it says so in a
sentence and ends with 0. It needs no network, and a checkout on PYTHONPATH is enough.

Steps run in processes of their own, side by side, since most of their time is that of a compiler.
`--rehearse` runs steps in this process on the CPU with few cells, which tries this file.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import re
import shutil
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
BENCHMARKS = ("gpu_run", "linear_algebra", "dispatch", "eager_small", "compiled_run", "processes")
SECONDS_OF_BENCHMARKS = 110
_OUTCOME = re.compile(r"(PASSED|FAILED|ERROR) +(\S+)")


class Outcome(NamedTuple):
    """What came of a step."""

    step: str
    passed: int
    failures: list[str]
    seconds: float
    note: str = ""


class Run(NamedTuple):
    """What a step is run with: until when, which part of its cells, and where logs go."""

    name: str
    end: float
    rehearse: bool = False
    part: int = 0
    parts: int = 1
    logs: Path | None = None
    progress: Path | None = None

    def share(self, cells: list[Any]) -> list[Any]:
        """Return the cells of this part."""
        return cells[self.part :: self.parts]


class Step(NamedTuple):
    """A step: the function, and the number of processes that its cells are divided among."""

    run: Callable[[Run], Outcome]
    parts: int = 1


Trials = Iterator[tuple[str, Callable[[], Any]]]


def main(argv: list[str] | None = None) -> int:
    """Run the steps; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.gpu_check", description=__doc__)
    parser.add_argument("--rehearse", action="store_true", help="few cells, on the CPU")
    parser.add_argument("--steps", nargs="+", choices=list(STEPS), default=list(STEPS))
    parser.add_argument("--seconds", type=float, default=300, help="for all steps (default: 300)")
    parser.add_argument("--out", type=Path, default=Path("gpu-check.json"), metavar="FILE")
    parser.add_argument(
        "--logs", type=Path, metavar="FOLDER", help="for the logs of tests and benchmarks"
    )
    parser.add_argument("--part", nargs=2, type=int, metavar=("K", "N"), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    start = time.monotonic()
    for folder in [args.out.parent] + ([] if args.logs is None else [args.logs]):
        folder.mkdir(parents=True, exist_ok=True)
    if args.logs is not None:
        args.logs = args.logs.resolve()  # steps run in the folder of the checkout
    if args.part is not None or args.rehearse:
        part, parts = args.part or (0, 1)
        runs = [Run(n, start + args.seconds, args.rehearse, part, parts, args.logs,
                    None if args.rehearse else args.out.with_suffix(".progress"))
                for n in args.steps]  # fmt: skip
        return report([STEPS[run.name].run(run) for run in runs], args.out)
    reason = why_no_gpu()
    if reason is not None:
        print(f"gpu_check: nothing was run: {reason}.")
        return 0
    return report(in_processes(args.steps, args.seconds, args.logs), args.out)


def report(outcomes: list[Outcome], out: Path) -> int:
    """Print the table, write the file, and return the exit status."""
    out.write_text(json.dumps(as_json(outcomes), indent=1) + "\n")
    print(f"{table_of(outcomes)}\nwritten to {out}")
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


def in_processes(names: list[str], seconds: float, logs: Path | None) -> list[Outcome]:
    """Run steps in processes of their own, all but the benchmarks side by side."""
    begin, alone = time.monotonic(), "benchmarks" in names
    together = [name for name in names if name != "benchmarks"]
    reserved = SECONDS_OF_BENCHMARKS if alone else 0
    with tempfile.TemporaryDirectory() as folder:
        started = [
            Part(name, k, STEPS[name].parts, seconds - reserved, Path(folder), logs)
            for name in together for k in range(STEPS[name].parts)
        ]  # fmt: skip
        outcomes = joined([part.outcome() for part in started])
        if alone:
            left = seconds - (time.monotonic() - begin)
            outcomes.append(Part("benchmarks", 0, 1, left, Path(folder), logs).outcome())
            print(line_of(outcomes[-1]), flush=True)
    return outcomes


class Part:
    """A process that runs a part of a step."""

    def __init__(
        self, name: str, part: int, parts: int, seconds: float, folder: Path, logs: Path | None
    ) -> None:
        self.name, self.begin, self.seconds = name, time.monotonic(), seconds
        self.out = folder / f"{name}-{part}.json"
        self.log = (folder / f"{name}-{part}.log").open("w+")
        command = [
            sys.executable, "-m", "tools.gpu_check", "--steps", name, "--out", str(self.out),
            "--part", str(part), str(parts), "--seconds", str(seconds),
        ]  # fmt: skip
        command += ["--logs", str(logs)] if logs else []
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdout=self.log, stderr=self.log
        )

    def outcome(self) -> Outcome:
        """Wait for the process, and return what came of it."""
        left = self.begin + self.seconds + 20 - time.monotonic()
        try:
            self.process.wait(max(left, 1))
            stopped = False
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            stopped = True
        with self.log:
            self.log.seek(0)
            text = self.log.read()
        if self.out.exists():
            return Outcome(**json.loads(self.out.read_text())["steps"][0])
        progress = self.out.with_suffix(".progress")
        if stopped and progress.exists():
            found = Outcome(**json.loads(progress.read_text()))
            return found._replace(note="; ".join([n for n in (found.note, "stopped") if n]))
        failure = f"ended with {self.process.wait()}: {' '.join(text.split())[-300:]}"
        return Outcome(self.name, 0, [failure], time.monotonic() - self.begin)


def joined(parts: list[Outcome]) -> list[Outcome]:
    """Return one outcome for each step."""
    names = list(dict.fromkeys(part.step for part in parts))
    outcomes = []
    for name in names:
        own = [part for part in parts if part.step == name]
        outcomes.append(Outcome(
            name, sum(p.passed for p in own), [f for p in own for f in p.failures],
            max(p.seconds for p in own), "; ".join([p.note for p in own if p.note]),
        ))  # fmt: skip
        print(line_of(outcomes[-1]), flush=True)
    return outcomes


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a process beside others on the GPU."""
    shared = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "3"}
    shared["XSTACK_RETRACES"] = "allow"
    return {**os.environ, **shared, **more}


class SomeFailedError(Exception):
    """Raised by a trial of several cells; lists those that failed."""

    def __init__(self, passed: int, failures: list[str]) -> None:
        super().__init__(f"{len(failures)} failed")
        self.passed, self.failures = passed, failures


def tried(run: Run, trials: Trials) -> Outcome:
    """Run trials until the time is over; write what is known after each, lest the time ends it.

    A trial returns the number of its cells where it has several, a note, or None.
    """
    start, passed, failures, left, notes = time.monotonic(), 0, [], 0, []

    def outcome() -> Outcome:
        remarks = [*notes, *([f"{left} not reached"] if left else [])]
        return Outcome(run.name, passed, failures, time.monotonic() - start, "; ".join(remarks))

    for title, trial in trials:
        if time.monotonic() > run.end:
            left += 1
            continue
        try:
            result = trial()
            passed += result if isinstance(result, int) else 1
            notes += [f"{title}: {result}"] if isinstance(result, str) else []
        except SomeFailedError as error:
            failures += error.failures
            passed += error.passed
        except Exception as error:
            failures.append(_in_a_line(title, error))
        if run.progress is not None:
            run.progress.write_text(json.dumps(outcome()._asdict()))
    return outcome()


def _in_a_line(title: str, error: Exception) -> str:
    return f"{title}: {type(error).__name__}: {' '.join(str(error).split())[:300]}"


# Their factors are unique up to signs; the step `linear-algebra` looks at what they factor.
_FACTORS = frozenset(["eigh", "geqrf", "svd"])
_TOGETHER = 8  # samples of a primitive, compiled as one program
_DEAR = ("hyp", "bessel", "betainc", "gamma", "dawsn", "expint", "zeta", "digamma")


def primitives(run: Run) -> Outcome:
    """Compare each primitive with its NumPy rule on some of its samples, in one program.

    Primitives that take a compiler long come last.
    """

    def compared(primitive: Any, rows: list[Any]) -> int:
        try:
            check_lowering(primitive, *rows)
        except Exception:  # the samples one by one say which
            failures = []
            for row in rows:
                try:
                    check_lowering(primitive, row)
                except Exception as error:
                    cells = [str(x.aval) for x in row.arrays()]
                    failures.append(_in_a_line(f"{primitive.name} of {cells} {row.params}", error))
            raise SomeFailedError(len(rows) - len(failures), failures) from None
        return len(rows)

    names = sorted(set(samples.TABLE) - _FACTORS, key=lambda n: (any(w in n for w in _DEAR), n))
    trials = []
    for name in names[:: 150 if run.rehearse else 1]:
        primitive, table = get_primitive(name), samples.TABLE[name]
        if type(primitive.rules.get("stablehlo")) is not Undefined:
            rows = table[:: max(1, len(table) // _TOGETHER)][:_TOGETHER]
            trials.append((primitive.name, lambda p=primitive, rows=rows: compared(p, rows)))
    return tried(run, iter(run.share(trials)))


def linear_algebra(run: Run) -> Outcome:
    """Compare each function of matrices, compiled, with the same on the CPU."""
    rows = [*gpu_cells.ROWS, *gpu_cells.MADE, *gpu_cells.ALONE, *gpu_cells.CUDA_ALONE]
    cells = [
        cell for cell in gpu_cells.cells_of(rows)
        if cell.dtype in ("float32", "complex64") and max(max(s) for s in cell.shapes) < 100
    ]  # fmt: skip
    if run.rehearse:
        cells = [c for c in cells if not needs_gpu(c)][::500]
    elif "JAX_GPU_MAGMA_PATH" not in os.environ:
        cells = [c for c in cells if dict(c.keywords).get("implementation") != "MAGMA"]

    def compared(cell: gpu_cells.Cell) -> None:
        operands = gpu_cells.operands_of(cell)
        shared = tuple([(k, v) for k, v in cell.keywords if k not in ONLY_ON_GPUS])
        found = xstack.jit(gpu_cells.function_of(xstack, cell))(*operands)
        with xstack.default_device(xstack.devices("cpu")[0]):  # evaluated by LAPACK, not compiled
            plain = gpu_cells.function_of(xstack, cell._replace(keywords=shared))(*operands)
        gpu_cells.check_results(cell, operands, found, plain)

    # adjacent cells differ in shape and dtype: a step of 7 meets every function early
    order = [cell for k in range(7) for cell in cells[k::7]]
    return tried(run, ((c.name, lambda c=c: compared(c)) for c in run.share(order)))


ONLY_ON_GPUS = ("algorithm", "implementation")


def needs_gpu(cell: gpu_cells.Cell) -> bool:
    """Return whether a cell names an algorithm that no CPU has."""
    return any(k in ONLY_ON_GPUS for k, _ in cell.keywords)


def sorts(run: Run) -> Outcome:
    """Look whether CUB sorts."""
    x = xnp.asarray(np.random.default_rng(0).normal(size=100_000).astype(np.float32))
    calls = {"sort": xnp.sort, "argsort": xnp.argsort, "unique": lambda x: xnp.unique(x, size=5)}

    def sorted_by_cub(fun: Callable[..., Any]) -> None:
        compiled = xstack.jit(fun).lower(x).compile()
        np.testing.assert_array_equal(compiled(x), fun(np.asarray(x)))
        if not run.rehearse and "cub" not in compiled.as_text():
            raise AssertionError("the optimised program does not call CUB")

    return tried(run, ((k, lambda f=f: sorted_by_cub(f)) for k, f in calls.items()))


def products(run: Run) -> Outcome:
    """Look how exact products are: float32 unless less is requested."""
    rng = np.random.default_rng(0)
    a, b = [rng.normal(size=(512, 512)).astype(np.float32) for _ in range(2)]
    exact = a.astype(np.float64) @ b.astype(np.float64)

    def error(precision: str | None) -> float:
        found = xstack.jit(lambda a, b: xnp.matmul(a, b, precision=precision))(a, b)
        return float(np.abs(np.asarray(found) - exact).max() / np.abs(exact).max())

    def full() -> str:
        found = error(None)
        assert found < 1e-5, f"relative error {found:.1e}"
        return f"relative error {found:.1e}"

    def less() -> str:
        found = error("tensorfloat32")
        assert run.rehearse or found > 1e-5, "tensorfloat32 is not less exact"
        return f"relative error {found:.1e}"

    return tried(run, iter([("float32", full), ("tensorfloat32", less)]))


def attention(run: Run) -> Outcome:
    """Compare cuDNN's attention and its derivatives with XLA's operations."""
    rng = np.random.default_rng(0)
    size = (1, 128, 2, 16) if run.rehearse else (2, 256, 4, 64)
    q, k, v, ct = [xnp.asarray(rng.normal(size=size), xnp.bfloat16) for _ in range(4)]
    bias = xnp.asarray(rng.normal(size=(1, size[2], size[1], size[1])), xnp.bfloat16)
    mask = xnp.asarray(rng.random((size[0], 1, size[1], size[1])) < 0.7).at[..., 0].set(True)
    lengths = xnp.full(size[0], size[1] // 2, xnp.int32)
    options: dict[str, dict[str, Any]] = {
        "plain": {}, "causal": {"is_causal": True}, "bias": {"bias": bias}, "mask": {"mask": mask},
        "window": {"is_causal": True, "local_window_size": (32, 0)},
        "lengths": {"query_seq_lengths": lengths, "key_value_seq_lengths": lengths},
        "float16": {"dtype": xnp.float16},
    }  # fmt: skip

    def compared(dtype: Any = xnp.bfloat16, **keywords: Any) -> None:
        def results(implementation: str) -> Any:
            def fun(*operands: Any) -> Any:
                return xstack.nn.dot_product_attention(
                    *operands, implementation=implementation, **keywords
                )

            def both(q: Any, k: Any, v: Any, ct: Any) -> Any:
                y, pull = xstack.vjp(fun, q, k, v)
                return [y, *pull(ct)]

            return xstack.jit(both)(*[x.astype(dtype) for x in (q, k, v, ct)])

        rows = size[1] // 2 if "query_seq_lengths" in keywords else None
        found = results("xla" if run.rehearse else "cudnn")
        for x, y in zip(found, results("xla"), strict=True):
            # 8 bits of a fraction, and sums in another order
            np.testing.assert_allclose(
                np.asarray(x, np.float32)[:, :rows], np.asarray(y, np.float32)[:, :rows],
                rtol=0.1, atol=0.06,
            )  # fmt: skip

    return tried(run, ((k, lambda o=o: compared(**o)) for k, o in options.items()))


def memory(run: Run) -> Outcome:
    """Put values into the memory of the host, offload residuals, and run out of memory."""
    place = xstack.sharding.SingleDeviceSharding(xstack.devices()[0])
    host = place if run.rehearse else place.with_memory_kind("pinned_host")

    def state_on_the_host() -> None:
        step = xstack.jit(
            lambda w, m: (w - m, 0.9 * m + w), in_shardings=(place, host),
            out_shardings=(place, host),
        )  # fmt: skip
        w, m = step(xnp.ones(4), xstack.device_put(xnp.ones(4), host))
        np.testing.assert_allclose([w, m], [[0] * 4, [1.9] * 4], rtol=1e-6)
        assert m.sharding.memory_kind == host.memory_kind, m.sharding

    def offloaded() -> str:
        policy = xstack.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[], names_which_can_be_offloaded=["h"],
            offload_src="device", offload_dst="pinned_host",
        )  # fmt: skip

        def loss(x: Any, w: Any) -> Any:
            for _ in range(8):
                x = xstack.ad_checkpoint.checkpoint_name(xnp.tanh(x @ w), "h")
            return (x**2).sum()

        rng = np.random.default_rng(0)
        x, w = [xnp.asarray(rng.normal(size=(8192, 2048)) / 32, xnp.bfloat16),
                xnp.asarray(rng.normal(size=(2048, 2048)) / 32, xnp.bfloat16)]  # fmt: skip
        ways = {
            "on the host": xstack.checkpoint(loss, policy=policy),
            "computed again": xstack.checkpoint(loss), "on the device": loss,
        }  # fmt: skip
        programs = {name: xstack.jit(xstack.grad(fun, (0, 1))).lower(x, w).compile()
                    for name, fun in ways.items()}  # fmt: skip
        *others, plain = [program(x, w)[1].astype("float32") for program in programs.values()]
        for found in others:  # bfloat16 has 8 bits
            np.testing.assert_allclose(found, plain, rtol=0.05, atol=0.02 * float(abs(plain).max()))
        figures = []
        for name, program in programs.items():
            used = program.memory_analysis().temp_size_in_bytes / 2**20
            figures.append(f"{name} {_seconds(program, x, w) * 1e3:.2f} ms, {used:.0f} MiB")
        return "residuals " + "; ".join(figures)

    def counters() -> str:
        stats = xstack.devices()[0].memory_stats()
        assert run.rehearse or stats["bytes_in_use"] > 0
        return (
            "the CPU has none" if run.rehearse else f"limit {stats['bytes_limit'] / 2**30:.0f} GiB"
        )

    def too_much() -> None:
        try:
            xstack.jit(lambda: xnp.ones((1 << 40,)) + 1)().block_until_ready()
            text = "no error"
        except Exception as error:
            text = str(error)
        assert "TiB" in text, text

    trials = {"state on the host": state_on_the_host, "counters": counters}
    if not run.rehearse:
        trials |= {"offloaded residuals": offloaded, "out of memory": too_much}
    return tried(run, iter(trials.items()))


def kernels(run: Run) -> Outcome:
    """Build and run the kernels of the page on kernels of one's own."""
    page = (ROOT / "docs" / "howto" / "gpu_kernels.md").read_text()
    triton_code, ffi_code = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (source,) = re.findall(r"^```cpp\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (command,) = re.findall(r"^```sh\n(nvcc .*?)^```", page, re.MULTILINE | re.DOTALL)
    rng = np.random.default_rng(0)
    x = xnp.asarray(rng.normal(size=(64, 1000)), xnp.float32)
    scale, shift = [xnp.asarray(rng.normal(size=1000), xnp.float32) for _ in range(2)]

    def by_triton() -> str:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "layer_norm.py").write_text(triton_code)  # Triton reads kernels from files
            sys.path.insert(0, folder)
            page = importlib.import_module("layer_norm")

            def results(fun: Callable[..., Any]) -> Any:
                norm = fun(x, scale, shift)
                batched = xstack.vmap(fun, (0, None, None))(x[:, None], scale, shift)
                return norm, batched, xstack.grad(lambda x: (fun(x, scale, shift) ** 2).sum())(x)

            both = [xstack.jit(results, static_argnums=0)(f)
                    for f in (page.layer_norm, page.by_xla)]  # fmt: skip
            bounds = [(1e-4, 1e-5), (1e-4, 1e-5), (1e-2, 1e-2)]  # the derivative is of squares
            for found, expected, (rtol, atol) in zip(*both, bounds, strict=True):
                np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
            large = xnp.asarray(rng.normal(size=(16384, 1024)), xnp.float32)
            one = xnp.ones(1024)
            ours, xla = [_seconds(xstack.jit(f), large, one, one)
                         for f in (page.by_triton, page.by_xla)]  # fmt: skip
            return f"16384x1024 in {ours * 1e6:.0f} us, by XLA {xla * 1e6:.0f}"

    def by_ffi() -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "scale.cu").write_text(source)
            done = subprocess.run(
                ["sh", "-c", command.replace("$(python ", f"$({sys.executable} ")], cwd=folder,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr[-250:]
            code = ffi_code.replace("./scale_cuda.so", f"{folder}/scale_cuda.so")
            exec(compile(code, "gpu_kernels.md", "exec"), {"xstack": xstack})
            fun = xstack.ffi.ffi_call("scale", xstack.ShapeDtypeStruct(x.shape, x.dtype))
            found = xstack.jit(lambda x: fun(x, by=np.float32(3)))(x)
            np.testing.assert_allclose(found, 3 * np.asarray(x), rtol=1e-6)

    trials = {}
    if importlib.util.find_spec("triton") and not run.rehearse:
        trials["Triton"] = by_triton
    if shutil.which("nvcc") and not run.rehearse:
        trials["CUDA C++"] = by_ffi
    return tried(run, iter(trials.items()))


def _seconds(compiled: Callable[..., Any], *operands: Any) -> float:
    """Return the least seconds of a run of a compiled function, ten runs to one wait."""
    xstack.block_until_ready(compiled(*operands))
    times = []
    for _ in range(10):
        start = time.perf_counter()
        for _ in range(10):
            result = compiled(*operands)
        xstack.block_until_ready(result)
        times.append((time.perf_counter() - start) / 10)
    return min(times)


def profiles(run: Run) -> Outcome:
    """Write a trace of a program, and look for its kernels there."""

    def traced() -> str:
        with tempfile.TemporaryDirectory() as folder:
            x = xnp.ones((512, 512))
            program = xstack.jit(lambda x: xnp.sin(x @ x).sum())
            program(x).block_until_ready()
            with xstack.profiler.trace(folder, create_perfetto_trace=True):
                program(x).block_until_ready()
            (file,) = Path(folder).rglob("perfetto_trace.json.gz")
            with gzip.open(file, "rt") as stream:
                events = json.load(stream)["traceEvents"]
        names = {str(event.get("name")) for event in events}
        kernels = [n for n in names if re.search("fusion|gemm|cutlass|cublas|sm90", n)]
        assert run.rehearse or kernels, sorted(names)[:20]
        return f"{len(events)} events, kernels {', '.join(sorted(kernels)[:4])}"

    return tried(run, iter([("trace", traced)]))


def places(run: Run) -> Outcome:
    """Share memory with the libraries that are installed, in both directions."""

    def stated() -> None:
        x = xnp.arange(4.0)
        kind = 1 if run.rehearse else 2
        assert x.__dlpack_device__()[0] == kind, x.__dlpack_device__()
        assert hasattr(x, "__cuda_array_interface__") is not run.rehearse

    def shared(library: str) -> None:
        module, x = importlib.import_module(library), xnp.arange(4.0) + 1
        theirs = module.from_dlpack(x)
        back = xnp.from_dlpack(theirs, copy=False)
        assert back.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
        np.testing.assert_array_equal(back, [1, 2, 3, 4])

    def by_interface() -> None:
        cuda, x = importlib.import_module("numba.cuda"), xnp.arange(4.0) + 1
        np.testing.assert_array_equal(cuda.as_cuda_array(x).copy_to_host(), [1, 2, 3, 4])

    there = [lib for lib in NEIGHBOURS if not run.rehearse and importlib.util.find_spec(lib)]
    trials = [("own device", stated), *[(lib, lambda lib=lib: shared(lib)) for lib in there]]
    if not run.rehearse and importlib.util.find_spec("numba_cuda"):
        trials.append(("numba", by_interface))
    return tried(run, iter(trials))


def pages(run: Run) -> Outcome:
    """Run the examples of the pages."""
    names = ["README.md", "docs/explain/gpus.md"]
    command = [sys.executable, "tools/run_markdown.py", *names]
    return tried(run, iter([(" ".join(names), lambda: started(command, run.end) and None)]))


_AS_JAX = "from xstack import as_jax; as_jax.install(); import {}, jax.numpy; jax.numpy.ones(3) + 1"


def libraries(run: Run) -> Outcome:
    """Import libraries written for JAX with this family in its place."""
    there = [lib for lib in LIBRARIES if importlib.util.find_spec(lib)]
    commands = {lib: [sys.executable, "-c", _AS_JAX.format(lib)] for lib in there}
    return tried(run, ((k, lambda c=c: started(c, run.end) and None) for k, c in commands.items()))


def suites(run: Run) -> Outcome:
    """Run the packages' tests with the GPU as the default device, as many as the time allows."""
    start, platforms = time.monotonic(), "cpu" if run.rehearse else "gpu,cpu"
    folders = [f"packages/{p}/tests" for p in SUITES]
    options = ["-v", "-m", "not fuzz", "--tb=short", "-n", "6", "--sample", "5"]
    options += ["-p", "no:cacheprovider", "-p", "no:benchmark"]
    command = [sys.executable, "-m", "pytest", *folders, *options]
    with tempfile.TemporaryDirectory() as folder:
        path = (run.logs or Path(folder)) / "suites.log"
        with path.open("w") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment(TESTS_PLATFORMS=platforms), stdout=log,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
            try:
                process.wait(max(run.end - time.monotonic() - 10, 1))
                note = ""
            except subprocess.TimeoutExpired:
                process.terminate()
                note = "stopped when the time was over"
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        ends = dict(reversed(_OUTCOME.search(line).groups())
                    for line in path.read_text().splitlines() if _OUTCOME.search(line))  # fmt: skip
    failures = [f"{end} {test}" for test, end in ends.items() if end != "PASSED"]
    passed = len(ends) - len(failures)
    if not ends:
        failures = ["no test was run"]
    return Outcome(run.name, passed, failures, time.monotonic() - start, note)


def benchmarks(run: Run) -> Outcome:
    """Run the groups beside JAX; the figures are in the JSON file."""
    if importlib.util.find_spec("jax") is None:
        return Outcome(run.name, 0, [], 0.0, "JAX is not installed")

    def group(name: str, seconds: float) -> str:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "benchmarks", "--platform", "gpu", "--rounds", "1",
                       "--turns", "4", "--seconds", str(seconds), "--out", folder,
                       "--groups", name]  # fmt: skip
            table = started(command, run.end + 30)
            if run.logs:
                (run.logs / f"benchmarks-{name}.txt").write_text(table)
            figures = json.loads((Path(folder) / "results.json").read_text())["groups"][name]
            return f"{figures['geometric_mean']['jax']:.3f} of JAX"

    def trials() -> Trials:
        for k, name in enumerate(BENCHMARKS):
            # a fair share of what is left; workers take some seconds to start and to compile
            share = (run.end - time.monotonic()) / (len(BENCHMARKS) - k)
            yield name, lambda n=name, seconds=share: group(n, seconds)

    return tried(run, trials())


def started(command: list[str], end: float) -> str:
    """Run a command in the checkout until the time is over; return what it printed."""
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False,
        timeout=max(end - time.monotonic(), 1),
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(f"ended with {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


STEPS = {
    "places": Step(places), "products": Step(products), "sorts": Step(sorts),
    "attention": Step(attention), "memory": Step(memory), "kernels": Step(kernels),
    "profiles": Step(profiles),
    "linear-algebra": Step(linear_algebra, 4), "primitives": Step(primitives, 4),
    "libraries": Step(libraries), "pages": Step(pages), "suites": Step(suites),
    "benchmarks": Step(benchmarks),
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
