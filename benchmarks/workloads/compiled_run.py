"""Running compiled programs; the compiler is the same on both sides, the programs need not be."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.timing import best
from benchmarks.workloads import models


def workloads(ns: Any) -> dict[str, Any]:
    """Return the measurements by name."""
    return {
        name: _timed(ns, fun, args)
        for programs in (_array_programs, _model_programs, _masked_programs, _loop_programs)
        for name, (fun, args) in programs(ns).items()
    }


def _array_programs(ns: Any) -> dict[str, Any]:
    xnp = ns.numpy
    rng = np.random.default_rng(0)
    million = xnp.asarray(rng.normal(size=1_000_000).astype(np.float32))
    table = xnp.asarray(rng.random((10000, 10)).astype(np.float32))
    square = xnp.asarray(rng.random((512, 512)).astype(np.float32))
    indices = xnp.asarray(rng.integers(0, 1_000_000, 100_000).astype(np.int32))
    key = ns.random.PRNGKey(0)

    def selu(x: Any) -> Any:
        return 1.05 * xnp.where(x > 0, x, 1.67 * xnp.exp(x) - 1.67)

    def norm(x: Any) -> Any:
        x = x - x.mean(0)
        return x / x.std(0)

    def softmax(x: Any) -> Any:
        shifted = xnp.exp(x - xnp.max(x, axis=-1, keepdims=True))
        return shifted / xnp.sum(shifted, axis=-1, keepdims=True)

    return {
        "selu 1e6": (selu, (million,)),
        "norm": (norm, (table,)),
        "matmul 512": (lambda a: xnp.dot(a, a), (square,)),
        "softmax 512": (softmax, (square,)),
        "cumsum 1e6": (xnp.cumsum, (million,)),
        "sort 1e6": (xnp.sort, (million,)),
        "gather 1e5": (lambda x, i: x[i], (million, indices)),
        "scatter-add 1e5": (lambda x, i: x.at[i].add(1.0), (million, indices)),
        "uniform 1e6": (lambda k: ns.random.uniform(k, (1_000_000,)), (key,)),
        "normal 1e6": (lambda k: ns.random.normal(k, (1_000_000,)), (key,)),
    }


def _model_programs(ns: Any) -> dict[str, Any]:
    x = ns.numpy.asarray(np.ones((128, 32), np.float32))
    mlp = models.on_device(ns, models.mlp_params(4))
    blocks = models.on_device(ns, models.transformer_params(2))
    tokens = ns.numpy.asarray(np.ones((64, 64), np.float32))

    return {
        "mlp step": (_step(ns, models.mlp_loss(ns)), (mlp, x)),
        "transformer step": (_step(ns, models.transformer_loss(ns)), (blocks, tokens)),
    }


def _step(ns: Any, loss: Any, **options: Any) -> Any:
    def update(params: Any, batch: Any) -> Any:
        grads = ns.grad(loss, **options)(params, batch)
        return ns.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    return update


def _masked_programs(ns: Any) -> dict[str, Any]:
    """Return what `zero_absorbing=True` costs, beside operands that JAX's users choose twice."""
    xnp, absorbs = ns.numpy, ns.name == "xstack"
    options: Any = {"zero_absorbing": True} if absorbs else {}
    mlp = models.on_device(ns, models.mlp_params(4))
    batch = xnp.asarray(np.ones((128, 32), np.float32))
    x = xnp.asarray(np.random.default_rng(0).normal(size=1_000_000).astype(np.float32).clip(0))

    def entropy(x: Any) -> Any:
        inside = x > 0
        safe = x if absorbs else xnp.where(inside, x, 1)
        return xnp.where(inside, safe * xnp.log(safe) - xnp.sqrt(safe), x).sum()

    return {
        "masked entropy 1e6, zeros absorbed": (ns.grad(entropy, **options), (x,)),
        "mlp step, zeros absorbed": (_step(ns, models.mlp_loss(ns), **options), (mlp, batch)),
    }


def _loop_programs(ns: Any) -> dict[str, Any]:
    xnp, lax = ns.numpy, ns.lax
    params, xs = models.on_device(ns, models.rnn_arguments(1000))
    start = xnp.asarray(np.linspace(0, 1, 16, dtype=np.float32))
    steps = xnp.asarray(np.int32(100_000))

    def relaxed(x: Any, n: Any) -> Any:
        # each step needs the one before it in floating point: nothing can be left out or folded
        def step(carry: Any) -> Any:
            i, y = carry
            return i + 1, 0.9 * y + 0.1 / (1.0 + y * y)

        return lax.while_loop(lambda carry: carry[0] < n, step, (0, x))[1]

    unroll = "auto" if ns.name == "xstack" else 4  # the fastest of JAX's here

    def filtered(x: Any) -> Any:
        return lax.scan(lambda c, y: (0.9 * c + 0.1 * y, c), 0.0, x, unroll=unroll)[1]

    sequences = models.on_device(ns, models.padded_sequences())
    return {
        "rnn scan of 1000": (models.rnn_loss(ns, 1000), (params, xs)),
        "while of 1e5": (relaxed, (start, steps)),
        "filter of 1e4 scalars": (filtered, (xnp.asarray(np.ones(10_000, np.float32)),)),
        "padded rnn grad": (ns.grad(models.padded_rnn_loss(ns)), (params, *sequences)),
    }


def _timed(ns: Any, fun: Any, args: Any) -> Any:
    compiled = ns.jit(fun)

    def measure() -> float:
        ns.wait(compiled(*args))
        return best(lambda: ns.wait(compiled(*args)), seconds=0.15)

    return measure
