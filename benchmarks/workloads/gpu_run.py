"""Compiled programs in sizes for a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.timing import best


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    return compiled_together(ns, _array_programs(ns) | _products(ns) | _attention(ns))


def compiled_together(ns: Any, programs: dict[str, Any]) -> dict[str, Callable[[], float]]:
    """Compile programs in threads, since only running them is measured; return the measurements."""
    compiled = {name: ns.jit(fun) for name, (fun, _) in programs.items()}

    def run(name: str) -> Any:
        return ns.wait(compiled[name](*programs[name][1]))

    def prepare(name: str) -> None:
        with contextlib.suppress(Exception):  # the measurement raises it again
            run(name)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(prepare, programs))
    return {name: lambda n=name: best(lambda: run(n), seconds=0.1) for name in programs}


def _array_programs(ns: Any) -> dict[str, Any]:
    xnp, nn = ns.numpy, ns.nn
    rng = np.random.default_rng(0)
    million = xnp.asarray(rng.normal(size=1_000_000).astype(np.float32))
    rows = xnp.asarray(rng.normal(size=(4096, 1024)).astype(np.float32))
    image = xnp.asarray(rng.normal(size=(3000, 3000)).astype(np.float32))
    table = xnp.asarray(rng.random((100_000, 10)).astype(np.float32))
    indices = xnp.asarray(rng.integers(0, 1_000_000, 100_000).astype(np.int32))
    integers = xnp.asarray(rng.integers(0, 1000, 1_000_000).astype(np.int32))
    key = ns.random.PRNGKey(0)

    def norm(x: Any) -> Any:
        x = x - x.mean(0)
        return x / x.std(0)

    return {
        "softmax 4096x1024": (nn.softmax, (rows,)),
        "gradient of softmax": (ns.grad(lambda x: (nn.softmax(x) ** 2).sum()), (rows,)),
        "logsumexp 4096x1024": (lambda x: nn.logsumexp(x, axis=-1), (rows,)),
        "norm 1e5x10": (norm, (table,)),
        "selu 1e6": (nn.selu, (million,)),
        "gelu 4096x1024": (nn.gelu, (rows,)),
        "x*sin(x)+2x 3000x3000": (lambda x: x * xnp.sin(x) + 2 * x, (image,)),
        "sum 3000x3000": (xnp.sum, (image,)),
        "sum of columns": (lambda x: x.sum(0), (image,)),
        "cumsum 1e6": (xnp.cumsum, (million,)),
        "cumsum of rows": (lambda x: xnp.cumsum(x, axis=1), (rows,)),
        "sort 1e6": (xnp.sort, (million,)),
        "sort of rows": (lambda x: xnp.sort(x, axis=1), (rows,)),
        "argsort 1e6": (xnp.argsort, (million,)),
        "sort of integers": (xnp.sort, (integers,)),
        "top_k of rows": (lambda x: ns.lax.top_k(x, 8), (rows,)),
        "unique 1000 of 1e6": (lambda x: xnp.unique(x, size=1000), (integers,)),
        "permutation 1e6": (lambda k: ns.random.permutation(k, 1_000_000), (key,)),
        "argmax of rows": (lambda x: xnp.argmax(x, axis=1), (rows,)),
        "gather 1e5": (lambda x, i: x[i], (million, indices)),
        "scatter-add 1e5": (lambda x, i: x.at[i].add(1.0), (million, indices)),
        "uniform 1e6": (lambda k: ns.random.uniform(k, (1_000_000,)), (key,)),
        "normal 1e6": (lambda k: ns.random.normal(k, (1_000_000,)), (key,)),
        "fft 1e6": (xnp.fft.fft, (million,)),
        "searchsorted 1e5": (xnp.searchsorted, (xnp.sort(million), million[:100_000])),
        "while of 1000": (_relaxed(ns), (million[:16],)),
        "scan of 1000": (
            lambda x: ns.lax.scan(lambda c, r: (0.9 * c + r, c.sum()), x[0], x[:1000])[1], (rows,)
        ),
    }  # fmt: skip


def _relaxed(ns: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        return 0.9 * x + 0.1 / (1.0 + x * x)

    return lambda x: ns.lax.fori_loop(0, 1000, step, x)


def _products(ns: Any) -> dict[str, Any]:
    xnp, lax = ns.numpy, ns.lax
    rng = np.random.default_rng(0)
    a = xnp.asarray(rng.normal(size=(1000, 1000)).astype(np.float32))
    large = xnp.asarray(rng.normal(size=(8192, 8192)), xnp.bfloat16)
    images = xnp.asarray(rng.normal(size=(32, 56, 56, 64)).astype(np.float32))
    filters = xnp.asarray(rng.normal(size=(3, 3, 64, 64)).astype(np.float32))

    def convolved(precision: Any) -> Any:
        return lambda x, k: lax.conv_general_dilated(
            x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), precision=precision
        )

    weights = [xnp.asarray(rng.normal(size=s).astype(np.float32) * 0.05)
               for s in ((784, 512), (512, 512), (512, 10))]  # fmt: skip
    batch = xnp.asarray(rng.normal(size=(512, 784)).astype(np.float32))

    def loss(weights: Any, x: Any) -> Any:
        for w in weights[:-1]:
            x = xnp.tanh(x @ w)
        return ((x @ weights[-1]) ** 2).mean()

    def train_step(weights: Any, x: Any) -> Any:
        return [w - 0.1 * g for w, g in zip(weights, ns.grad(loss)(weights, x), strict=True)]

    fast = lax.Precision.DEFAULT if ns.name == "jax" else "tensorfloat32"
    return {
        "matmul 1000": (lambda a: a @ a, (a,)),
        "matmul 1000 tf32": (lambda a: xnp.matmul(a, a, precision="tensorfloat32"), (a,)),
        "matmul 8192 bf16": (lambda a: a @ a, (large,)),
        "conv2d": (convolved(None), (images, filters)),
        "conv2d tf32": (convolved(fast), (images, filters)),
        "train step of 3 layers": (train_step, (weights, batch)),
    }


def _attention(ns: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    q, k, v = [ns.numpy.asarray(rng.normal(size=(4, 1024, 8, 64)), ns.numpy.bfloat16)
               for _ in range(3)]  # fmt: skip

    def attended(implementation: str) -> Any:
        return lambda q, k, v: ns.nn.dot_product_attention(q, k, v, implementation=implementation)

    def gradient(fun: Any) -> Any:
        return ns.grad(lambda q, k, v: fun(q, k, v).astype("float32").sum(), (0, 1, 2))

    return {
        "attention, XLA": (attended("xla"), (q, k, v)),
        "attention, cuDNN": (attended("cudnn"), (q, k, v)),
        "gradient of attention, XLA": (gradient(attended("xla")), (q, k, v)),
        "gradient of attention, cuDNN": (gradient(attended("cudnn")), (q, k, v)),
    }
