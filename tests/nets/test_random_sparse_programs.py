"""Net: sparse Jacobians and Hessians of random programs beside the dense ones.

A program takes a vector of float64, applies operations that are drawn one by one to values that it
has, and returns two of them. Operations are elementwise, move elements (slices, gathers, updates,
transposes), join them (products with sparse and full matrices, reductions, windows, cumulative
sums), or hold programs of their own (loops, branches, calls, batches, custom rules). The pattern
must cover each element of the dense derivative that is not zero, at two points; the compressed
derivative equals the dense one, in all modes; and patterns must not be much fuller than the
derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xad
import xbatch
import xjit
import xnp
import xtree
from tests.nets.cells import seeds
from xad.sparse import plan_sparse_hessian, plan_sparse_jacobian, sparse_hessian, sparse_jacobian
from xnp import lax
from xprim.config import enable_x64

pytestmark = pytest.mark.fuzz

Rng = np.random.Generator
_PARTS = 4
_TOLERANCE = {"rtol": 1e-9, "atol": 1e-9}  # float64, sums of a few dozen products of order 1


@xad.custom_jvp
def _swish(x: Any) -> Any:
    return x * xnp.tanh(x)


@_swish.defjvp
def _swish_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    t = xnp.tanh(x)
    return x * t, (t + x * (1 - t * t)) * x_dot


@xad.custom_vjp
def _cube(x: Any) -> Any:
    return x**3


_cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x**2 * ct,))


def _scanned(rng: Rng, x: Any) -> Any:
    rows = x.reshape(x.shape[0], -1)
    return lax.scan(lambda c, v: (0.5 * c + xnp.sin(v), c * v), xnp.zeros(rows.shape[1]), rows)[1]


def _branch(rng: Rng, x: Any) -> Any:
    taken = bool(rng.integers(2))
    return lax.cond(taken, xnp.sin, lambda x: xnp.roll(x, 1, 0), x)


def _switched_by_value(rng: Rng, x: Any) -> Any:
    return lax.cond(x.sum() > 0, lambda x: x * x, lambda x: xnp.flip(x, 0), x)


def _bounded_while(rng: Rng, x: Any) -> Any:
    most = int(rng.integers(1, 4))
    return lax.while_loop(
        lambda c: c[0] < most, lambda c: (c[0] + 1, xnp.sin(c[1]) * x), (0, x), max_steps=4
    )[1]


def _gathered(rng: Rng, x: Any) -> Any:
    return x[rng.integers(0, x.shape[0], int(rng.integers(1, 7)))]


def _updated(rng: Rng, x: Any) -> Any:
    place = np.unique(rng.integers(0, x.shape[0], 2))
    new = xnp.sin(x[rng.integers(0, x.shape[0], len(place))])
    ref = x.at[place]
    return [ref.set, ref.add, ref.multiply, ref.max][rng.integers(4)](new)


def _multiplied(rng: Rng, x: Any) -> Any:
    n = x.shape[0]
    matrix = rng.normal(size=(int(rng.integers(1, 6)), n)) / n
    matrix *= rng.uniform(size=matrix.shape) < rng.choice([0.3, 1.0])
    return xnp.tensordot(matrix, x, 1)


def _windows(rng: Rng, x: Any) -> Any:
    flat = x.reshape(-1)
    width = min(int(rng.integers(1, 4)), flat.size)
    reduce = lax.add if rng.integers(2) else lax.max
    start = 0.0 if reduce is lax.add else -np.inf
    return lax.reduce_window(flat, start, reduce, (width,), (int(rng.integers(1, 3)),), "VALID")


def _convolved(rng: Rng, x: Any) -> Any:
    return xnp.convolve(x.reshape(-1), rng.normal(size=int(rng.integers(1, 4))), mode="same")


def _reshaped(rng: Rng, x: Any) -> Any:
    flat = x.reshape(-1)
    rows = int(rng.choice([k for k in range(1, flat.size + 1) if flat.size % k == 0]))
    return flat.reshape(rows, -1)


def _sliced(rng: Rng, x: Any) -> Any:
    start, step = int(rng.integers(0, x.shape[0])), int(rng.choice([-2, -1, 1, 2]))
    return x[start::step]


def _sliced_dynamically(rng: Rng, x: Any) -> Any:
    length = int(rng.integers(1, x.shape[0] + 1))
    return lax.dynamic_slice_in_dim(x, xnp.asarray(int(rng.integers(0, 9))), length)


def _padded(rng: Rng, x: Any) -> Any:
    return xnp.pad(x.reshape(-1), 1, mode=str(rng.choice(["constant", "edge", "reflect", "wrap"])))


def _cumulative(rng: Rng, x: Any) -> Any:
    f = [xnp.cumsum, lambda x, axis: lax.cummax(x, axis), xnp.cumprod][rng.integers(3)]
    return f(x, int(rng.integers(x.ndim)))


def _reduced(rng: Rng, x: Any) -> Any:
    f = [xnp.sum, xnp.prod, xnp.max, xnp.mean, lambda x, axis, **k: xnp.var(x, axis, **k)]
    return f[rng.integers(len(f))](x, axis=int(rng.integers(x.ndim)), keepdims=True)


def _solved(rng: Rng, x: Any) -> Any:
    n = x.shape[0]
    matrix = np.eye(n) * 3 + np.tril(rng.normal(size=(n, n)) / n)
    return xnp.linalg.solve(matrix, x)


ONE: dict[str, Callable[[Rng, Any], Any]] = {
    "sin": lambda rng, x: xnp.sin(x),
    "tanh": lambda rng, x: xnp.tanh(x),
    "square": lambda rng, x: 0.5 * x * x,
    "affine": lambda rng, x: float(rng.normal()) * x + float(rng.normal()),
    "abs": lambda rng, x: abs(x),
    "floor": lambda rng, x: x - 0.1 * xnp.floor(x),
    "stopped": lambda rng, x: x * lax.stop_gradient(xnp.cos(x)),
    "mask": lambda rng, x: xnp.where(x > 0, x, 0.1 * x),
    "constant mask": lambda rng, x: xnp.where(rng.uniform(size=x.shape) < 0.5, x, 1.0),
    "clip": lambda rng, x: xnp.clip(x, -0.5, 0.5),
    "custom_jvp": lambda rng, x: _swish(x),
    "custom_vjp": lambda rng, x: _cube(x) if rng.integers(2) else xnp.sin(_cube(x)),
    "sort": lambda rng, x: xnp.sort(x, axis=0),
    "roll": lambda rng, x: xnp.roll(x, int(rng.integers(-2, 3)), 0),
    "flip": lambda rng, x: xnp.flip(x, int(rng.integers(x.ndim))),
    "transpose": lambda rng, x: x.T,
    "reshape": _reshaped, "slice": _sliced, "dynamic slice": _sliced_dynamically,
    "gather": _gathered, "update": _updated, "pad": _padded, "matrix": _multiplied,
    "windows": _windows, "convolve": _convolved, "cumulative": _cumulative, "reduce": _reduced,
    "solve": _solved,
    "softmax": lambda rng, x: xnp.exp(x) / xnp.exp(x).sum(0),
    "scan": _scanned, "cond": _branch, "cond by value": _switched_by_value, "while": _bounded_while,
    "fori": lambda rng, x: lax.fori_loop(0, 2, lambda i, y: xnp.sin(y) + xnp.roll(y, 1, 0), x),
    "jit": lambda rng, x: xjit.jit(lambda y: y * xnp.roll(y, 1, 0))(x),
    "checkpoint": lambda rng, x: xad.checkpoint(lambda y: xnp.sin(y) * y)(x),
    "vmap": lambda rng, x: xbatch.vmap(lambda row: row * xnp.sin(row).sum())(x),
    "map": lambda rng, x: lax.map(lambda row: row**2, x),
    "repeat": lambda rng, x: xnp.repeat(x, 2, axis=0),
}  # fmt: skip


def _of_one_shape(rng: Rng, x: Any, y: Any) -> tuple[Any, Any]:
    size = min(x.size, y.size)
    return x.reshape(-1)[:size], y.reshape(-1)[-size:]


def _elementwise(rng: Rng, x: Any, y: Any) -> Any:
    x, y = _of_one_shape(rng, x, y)
    return [
        lambda: x * y, lambda: x + y, lambda: x - y, lambda: xnp.maximum(x, y),
        lambda: xnp.arctan2(x, 2 + y * y), lambda: xnp.where(x < y, x, xnp.sin(y)),
        lambda: x / (1 + y * y), lambda: xnp.hypot(x, 1 + y),
    ][rng.integers(8)]()  # fmt: skip


def _joined(rng: Rng, x: Any, y: Any) -> Any:
    x, y = _of_one_shape(rng, x, y)
    return xnp.concatenate([x, y]) if rng.integers(2) else xnp.stack([x, y], int(rng.integers(2)))


def _outer(rng: Rng, x: Any, y: Any) -> Any:
    return xnp.outer(x.reshape(-1)[:4], y.reshape(-1)[:3])


def _contracted(rng: Rng, x: Any, y: Any) -> Any:
    x, y = _of_one_shape(rng, x, y)
    rows = int(rng.choice([k for k in range(1, x.size + 1) if x.size % k == 0]))
    return xnp.einsum("ij,ij->i", x.reshape(rows, -1), y.reshape(rows, -1))


TWO = {"elementwise": _elementwise, "join": _joined, "outer": _outer, "contract": _contracted}


def program(seed: int) -> tuple[Callable[[Any], Any], int]:
    """Return a program, which draws the same operations at each call, and the size of its input."""
    size = int(np.random.default_rng(seed).integers(1, 11))

    def run(x: Any) -> Any:
        rng = np.random.default_rng([seed, 1])
        values = [x]
        for _ in range(int(rng.integers(1, 8))):
            x = values[-1 if rng.uniform() < 0.7 else rng.integers(len(values))]
            if rng.uniform() < 0.3:
                y = values[rng.integers(len(values))]
                new = TWO[str(rng.choice(list(TWO)))](rng, x, y)
            else:
                new = ONE[str(rng.choice(list(ONE)))](rng, x)
            if 0 < new.size <= 30:
                values.append(xnp.atleast_1d(new))
        return values[-1], {"other": values[rng.integers(len(values))]}

    return run, size


def flat(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: xnp.concatenate([xnp.asarray(y).reshape(-1) for y in xtree.leaves(run(x))])


def check(seed: int) -> tuple[int, int]:
    """Compare the derivatives of a program; return elements of the pattern, and those not zero."""
    run, size = program(seed)
    points = np.random.default_rng([seed, 2]).uniform(-1.2, 1.2, (2, size))
    plan = plan_sparse_jacobian(run, points[0])
    pattern = plan.pattern.todense()
    nonzero = np.zeros_like(pattern)
    for k, x in enumerate(points):
        dense = np.asarray(xad.jacfwd(flat(run))(x))
        nonzero |= dense != 0
        assert not (dense != 0)[~pattern].any(), "the pattern lacks elements"
        for mode in ("fwd", "rev") if k else ("auto",):
            own = sparse_jacobian(run, mode=mode) if k else sparse_jacobian(run, plan=plan)
            np.testing.assert_allclose(own(x).todense(), dense, **_TOLERANCE)

    def energy(x: Any) -> Any:
        return (xnp.sin(flat(run)(x)) ** 2).sum()

    plan_of_hessian = plan_sparse_hessian(energy, points[0])
    for x in points:
        expected = np.asarray(xad.hessian(energy)(x))
        assert not (expected != 0)[~plan_of_hessian.pattern.todense()].any(), "Hessian's pattern"
        found = sparse_hessian(energy, plan=plan_of_hessian)(x)
        np.testing.assert_allclose(found.todense(), expected, rtol=1e-8, atol=1e-8)
    return int(pattern.sum()), int(nonzero.sum())


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("part", range(_PARTS))
def test_sparse_derivatives_of_random_programs_are_the_dense_ones(part: int) -> None:
    covered, needed, failures = 0, 0, []
    with enable_x64(True):
        for seed in seeds(range(24), one_of=10, part=part, parts=_PARTS):
            try:
                pattern, nonzero = check(seed)
            except Exception as error:  # collected, with the seed
                failures.append(f"seed {seed}: {type(error).__name__}: {str(error)[:300]}")
                continue
            covered, needed = covered + pattern, needed + nonzero
    assert not failures, "\n".join(failures)
    # 1.23 in the mean of 500 programs: values that choose a branch or an order make the rest
    assert covered < 2 * needed, "patterns are much fuller than the derivatives"
