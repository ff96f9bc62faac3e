"""Sixteen of an operation in one program, beside JAX: `python -m benchmarks.growth [NAME ...]`.

Each is compiled in a chain and as its gradient, where it has one. Both libraries run in this
process, in turn, and the CPU seconds of all threads count: tracing, lowering and XLA. None is to
be above `LIMIT`. The bytes of the executable, as it is stored, stand beside them.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.namespaces import NO_DISK_CACHES, load

COUNT = 16
LIMIT = 1.1
_UNARY = (
    "sin cos tan tanh exp log1p sqrt sinh arcsin arctan cbrt square sort cumsum cumprod mean std "
    "flip ravel"
)
_SPECIAL = "erf erf_inv lgamma digamma logistic bessel_i0e bessel_i1e"
_SCIPY = "erfc entr exp1 expi gamma i0 i1 log_ndtr logit ndtr ndtri spence"
_WITH_PARAMETERS = {
    "betainc": (2.0, 3.0), "betaln": (2.0,), "expn": (2,), "gammainc": (2.0,), "gammaincc": (2.0,),
    "hyp1f1": (1.5, 2.5), "polygamma": (1,), "xlogy": (2.0,), "zeta": (3.0,),
}  # fmt: skip
_BINARY = "add multiply divide power arctan2 hypot logaddexp remainder maximum matmul"
_LINALG = "inv cholesky qr svd eigh det slogdet pinv"
_DRAWS = (
    "uniform normal bernoulli gumbel exponential laplace truncated_normal gamma poisson permutation"
)
_ACTIVATIONS = "relu gelu softmax log_softmax silu softplus elu selu standardize"


def rows(ns: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield names, and functions from a square matrix to one of its shape."""
    xnp, linalg, random, nn = ns.numpy, ns.numpy.linalg, ns.random, ns.nn
    for name in _UNARY.split():
        yield name, _reshaping(getattr(xnp, name))
    for name in _SPECIAL.split():
        yield f"lax.{name}", getattr(ns.lax, name)
    special = importlib.import_module(f"{ns.name}.scipy.special")
    for name in _SCIPY.split():
        yield f"special.{name}", getattr(special, name)
    for name, parameters in _WITH_PARAMETERS.items():
        yield f"special.{name}", functools.partial(getattr(special, name), *parameters)
    for name in _BINARY.split():
        yield name, _of_two(getattr(xnp, name))
    for name in _LINALG.split():
        yield f"linalg.{name}", _of_a_definite_matrix(ns, getattr(linalg, name))
    yield "linalg.solve", lambda x: linalg.solve(_definite(ns, x), x)
    for name in _ACTIVATIONS.split():
        yield f"nn.{name}", getattr(nn, name)
    for name in _DRAWS.split():
        yield f"random.{name}", _drawing(ns, getattr(random, name), name)
    yield "scan", lambda x: ns.lax.scan(lambda c, row: (c * 0.9 + row, c), x[0], x)[1]
    yield "cond", lambda x: ns.lax.cond(x[0, 0] > 0, xnp.sin, xnp.cos, x)
    yield "while_loop", lambda x: ns.lax.fori_loop(0, 3, lambda i, v: v * 0.5 + 1, x)
    yield "x[idx]", lambda x: x[np.array([3, 1, 2, 0])]
    yield "x.at[idx].add", lambda x: x.at[np.array([1, 2])].add(x[:2])
    yield "concatenate", lambda x: xnp.concatenate([x[1:], x[:1]])
    yield "einsum", lambda x: xnp.einsum("ij,kj->ik", x, x)


def _reshaping(fun: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: fun(x).reshape(-1)[:1] + x


def _of_two(fun: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: fun(x, x.T * 0.5 + 0.1)


def _definite(ns: Any, x: Any) -> Any:
    return x @ x.T * 0.1 + 2 * ns.numpy.eye(x.shape[0], dtype=x.dtype)


def _of_a_definite_matrix(ns: Any, fun: Callable[..., Any]) -> Callable[[Any], Any]:
    def step(x: Any) -> Any:
        found = fun(_definite(ns, x))
        found = tuple(found) if isinstance(found, tuple) else (found,)
        return x + sum([ns.numpy.sum(y) for y in found]) * 0.01

    return step


def _drawing(ns: Any, draw: Callable[..., Any], name: str) -> Callable[[Any], Any]:
    def step(x: Any) -> Any:
        key = ns.random.fold_in(ns.random.PRNGKey(0), (x[0, 0] * 1000).astype("int32"))
        if name in ("gamma", "poisson"):
            return x + draw(key, ns.numpy.abs(x[0, 0]) + 1.0, x.shape)
        if name == "truncated_normal":
            return x + draw(key, -1.0, 1.0, x.shape)
        if name == "permutation":
            return draw(key, x)
        return x + draw(key, shape=x.shape)

    return step


def chained(ns: Any, step: Callable[[Any], Any], kind: str) -> Callable[[Any], Any]:
    """Return the program of `COUNT` steps, or its gradient."""

    def chain(x: Any) -> Any:
        for _ in range(COUNT):
            x = step(x) * 0.5
        return x

    return chain if kind == "chain" else ns.grad(lambda x: ns.numpy.sum(chain(x)))


def seconds_and_bytes(
    ns: Any, step: Callable[[Any], Any], kind: str, turn: int
) -> tuple[float, int]:
    """Return the CPU seconds of all threads until the executable is there, and its bytes."""
    x = ns.numpy.asarray(np.linspace(0.1, 0.9, 16, dtype=np.float32).reshape(4, 4))
    factor = 1 + (turn + 1) * 2.0**-10  # another constant each turn: no table has the program
    fun = chained(ns, lambda x: step(x * factor), kind)
    start = time.process_time()
    compiled = ns.jit(fun).lower(x).compile()
    spent = time.process_time() - start
    return spent, len(compiled.runtime_executable().serialize())


def measure(turns: int, kinds: list[str], names: list[str]) -> Iterator[tuple[float, str]]:
    """Yield the ratio of each row with its line."""
    ours, theirs = load("xstack"), load("jax")
    steps = dict(rows(ours))
    for (name, other), kind in itertools.product(rows(theirs), kinds):
        if names and name not in names:
            continue
        found: list[list[tuple[float, int]]] = [[], []]
        try:
            for turn in range(turns):
                sides = [(0, ours, steps[name]), (1, theirs, other)]
                for k, ns, step in sides if turn % 2 == 0 else sides[::-1]:
                    found[k].append(seconds_and_bytes(ns, step, kind, turn))
        except (TypeError, NotImplementedError, ValueError) as error:  # without a derivative
            print(f"{name}, {kind}: {type(error).__name__}", file=sys.stderr)
            continue
        (x, nbytes), (y, other_bytes) = map(min, found)
        sizes = f"{nbytes / other_bytes:5.2f}  {nbytes >> 10:5} {other_bytes >> 10:5} KiB"
        yield x / y, f"{x / y:5.2f}  {x * 1e3:7.0f} {y * 1e3:7.0f} ms {sizes}  {name}, {kind}"


def main(argv: list[str]) -> int:
    """Print the ratio of each row, then the worst; return whether one is above the limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--turns", type=int, default=3, help="of both sides; the least counts")
    kinds = ["chain", "gradient"]
    parser.add_argument("--kinds", nargs="+", default=kinds, choices=kinds)
    parser.add_argument("names", nargs="*", help="rows (default: all)")
    args = parser.parse_args(argv)
    os.environ.update(NO_DISK_CACHES)  # read when the libraries are imported, or later
    found = []
    for ratio, line in measure(args.turns, args.kinds, args.names):
        found.append((ratio, line))
        print(line, flush=True)
    print("\nthe worst:\n" + "\n".join([line for _, line in sorted(found, reverse=True)[:12]]))
    ratios = [ratio for ratio, _ in found]
    print(f"geometric mean {statistics.geometric_mean(ratios):.2f} of {len(ratios)} rows")
    return int(max(ratios) > LIMIT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
