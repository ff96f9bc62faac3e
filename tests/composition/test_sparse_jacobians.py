"""Sparse Jacobians and Hessians beside dense ones: patterns, colourings, products."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import xad
import xbatch
import xjit
import xnp
import xtree
from xad.sparse import (
    SparsityPattern,
    color_columns,
    color_symmetric,
    plan_sparse_hessian,
    plan_sparse_jacobian,
    sparse_hessian,
    sparse_jacobian,
    sparsity,
)
from xnp import lax, nn

RNG = np.random.default_rng(0)
X = xnp.array(RNG.uniform(0.5, 1.5, 12).astype(np.float32))
BANDED = np.triu(np.tril(RNG.uniform(1, 2, (12, 12)), 1), -1).astype(np.float32)


def laplacian(u: Any) -> Any:
    p = xnp.pad(u, 1)
    return 4 * u - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2] + u**3


# {name: (function of a vector, whether the pattern is exact)}
PROGRAMS: dict[str, tuple[Any, bool]] = {
    "elementwise": (lambda x: xnp.sin(x) * x + 1, True),
    "differences": (lambda x: x[1:] * x[:-1], True),
    "roll": (lambda x: xnp.roll(x, 2) - x**2, True),
    "stencil": (lambda x: laplacian(x.reshape(3, 4)), True),
    "strided": (lambda x: x[::3] * x[::-3], True),
    "gathered": (lambda x: x[np.array([5, 0, 5, 11])] ** 2, True),
    "updated": (lambda x: x.at[np.array([1, 7])].set(x[:2] * 3), True),
    "added": (lambda x: (x * x).at[np.array([1, 7, 7])].add(xnp.sin(x[:3])), True),
    "banded product": (lambda x: xnp.tanh(BANDED @ x), True),
    "blocks": (lambda x: xnp.einsum(
        "bij,bj->bi", x[:8].reshape(2, 2, 2), x[8:].reshape(2, 2)), True),
    "sums of rows": (lambda x: (x.reshape(3, 4) ** 2).sum(1), True),
    "centred rows": (lambda x: nn.standardize(x.reshape(3, 4)), True),
    "largest of rows": (lambda x: x.reshape(3, 4).max(0), False),
    "cumulative": (lambda x: xnp.cumsum(x.reshape(3, 4), 1), True),
    "reversed cumulative": (lambda x: lax.cumsum(x, 0, reverse=True), True),
    "windows": (lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (2,), "SAME"), True),
    "where": (lambda x: xnp.where(x > 1, x, x[::-1]), False),
    "rounded": (lambda x: xnp.floor(x) + x, True),
    "scan": (lambda x: lax.scan(lambda c, v: (c * 0.5 + v, c), 0.0, x)[1], True),
    "scan of rows": (lambda x: lax.scan(lambda c, v: (v, c * v), x[:4], x.reshape(3, 4))[1], True),
    "fori": (lambda x: lax.fori_loop(0, 2, lambda i, y: y + xnp.roll(y, 1), x), True),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * x),
                                       (0, x), max_steps=3)[1], True),
    "cond": (lambda x: lax.cond(x.sum() > 3, lambda x: x, lambda x: xnp.roll(x, 1), x), False),
    "jit": (lambda x: xjit.jit(lambda y: y * xnp.roll(y, 1))(x), True),
    "checkpoint": (xad.checkpoint(lambda x: xnp.sin(x[2:])), True),
    "norm": (lambda x: x / xnp.linalg.norm(x), True),
    "sorted": (xnp.sort, False),
    "transformed": (lambda x: xnp.fft.fft(x).real, False),
    "two results": (lambda x: {"a": x[:3] ** 2, "b": x.sum()}, True),
    "constant": (lambda x: np.ones(3, np.float32), True),
    "nothing": (lambda x: x[:0], True),
}  # fmt: skip


def dense(f: Any, x: Any) -> Any:
    def raveled(x: Any) -> Any:
        return xnp.concatenate([xnp.asarray(y).reshape(-1) for y in xtree.leaves(f(x))])

    return np.asarray(xad.jacfwd(raveled)(x)).reshape(-1, x.size)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_sparse_jacobian_is_the_dense_one(name: str) -> None:
    f, is_exact = PROGRAMS[name]
    expected = dense(f, X)
    pattern = sparsity(f, X)
    assert pattern.shape == expected.shape
    assert not (expected != 0)[~pattern.todense()].any()
    if is_exact:
        np.testing.assert_array_equal(pattern.todense(), expected != 0)
    for mode in ("fwd", "rev", "auto"):
        found = sparse_jacobian(f, mode=mode)(X)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.todense(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [
    "elementwise", "differences", "roll", "stencil", "gathered", "updated", "added", "blocks",
    "banded product", "scan", "while", "norm",
])  # fmt: skip
def test_a_sparse_hessian_is_the_dense_one(name: str) -> None:
    def energy(x: Any) -> Any:
        return (xnp.sin(PROGRAMS[name][0](x)) ** 2).sum()

    expected = xad.hessian(energy)(X)
    np.testing.assert_allclose(sparse_hessian(energy)(X).todense(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("side", [40, 316])
def test_the_products_of_a_stencil_do_not_grow_with_the_grid(side: int) -> None:
    u = np.zeros((side, side), np.float32)
    plan = plan_sparse_jacobian(laplacian, u)
    assert plan.num_products <= 8
    rng = np.random.default_rng(1)
    point, direction = rng.normal(size=(2, side, side)).astype(np.float32)
    product = sparse_jacobian(laplacian, plan=plan)(point) @ direction.reshape(-1)
    expected = xad.jvp(laplacian, (point,), (direction,))[1]
    np.testing.assert_allclose(product, expected.reshape(-1), rtol=1e-4, atol=1e-4)


def test_symmetry_saves_products() -> None:
    def energy(u: Any) -> Any:
        return 0.5 * (u * laplacian(u)).sum()

    small = np.zeros((20, 25), np.float32)
    assert plan_sparse_hessian(energy, small).num_products < 8
    assert plan_sparse_hessian(lambda x: (x[0] * x).sum(), X).num_products == 2  # an arrow


@pytest.mark.sampled(every=5, per="symmetric")
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("symmetric", [False, True])
def test_colourings_hold(symmetric: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    matrix = rng.uniform(size=(n, n)) < rng.uniform(0, 0.5)
    if not symmetric:
        colors = color_columns(SparsityPattern(*np.nonzero(matrix), matrix.shape))
        for row in matrix:
            assert len(set(colors[row])) == row.sum()
        return
    matrix |= matrix.T
    colors = color_symmetric(SparsityPattern(*np.nonzero(matrix), matrix.shape))
    near = [set(np.flatnonzero(matrix[i])) - {i} for i in range(n)]
    for a in range(n):
        for b in near[a]:
            assert colors[a] != colors[b]
            for c in near[b] - {a}:
                for d in near[c] - {a, b}:
                    assert len({colors[i] for i in (a, b, c, d)}) > 2


def test_a_plan_is_used_at_any_point_and_under_transformations() -> None:
    def f(x: Any, w: Any) -> Any:
        return w * x[1:] * x[:-1] ** 2

    plan = plan_sparse_jacobian(f, X, 1.0)
    jacobian = sparse_jacobian(f, plan=plan)

    def norm(x: Any, w: Any) -> Any:
        return (jacobian(x, w).data ** 2).sum()

    def dense_norm(x: Any, w: Any) -> Any:
        return (xad.jacfwd(f)(x, w) ** 2).sum()

    for wrap in (lambda g: g, xjit.jit, lambda g: xjit.jit(xad.grad(g)), lambda g: (
        lambda x, w: xad.jvp(g, (x, w), (x, w))[1]
    ), lambda g: (lambda x, w: xbatch.vmap(g, (None, 0))(x, np.float32([w, 2.0])))):  # fmt: skip
        np.testing.assert_allclose(
            wrap(norm)(X, 3.0), wrap(dense_norm)(X, 3.0), rtol=1e-5
        )  # fmt: skip
    np.testing.assert_allclose(
        sparse_jacobian(f, plan=plan, chunk_size=1)(X, 3.0).todense(), xad.jacfwd(f)(X, 3.0),
        rtol=1e-5,
    )  # fmt: skip
    with pytest.raises(ValueError, match="the plan is for arguments of other shapes"):
        jacobian(X[:5], 3.0)


def test_an_argument_is_a_tree_and_any_of_several() -> None:
    def f(w: Any, p: Any) -> Any:
        return p["a"] * w, p["b"][::-1] ** 2

    p = {"a": X[:3], "b": X[3:7]}
    found = sparse_jacobian(f, argnums=1)(2.0, p)
    expected = np.zeros((7, 7))
    expected[:3, :3] = 2 * np.eye(3)
    expected[3:, 3:] = np.diag(2 * X[3:7])[::-1]
    np.testing.assert_allclose(found.todense(), expected, rtol=1e-6)


def test_modes_and_arguments_that_there_are_not() -> None:
    with pytest.raises(ValueError, match="mode must be"):
        plan_sparse_jacobian(lambda x: x, X, mode="both")
    with pytest.raises(ValueError, match="argnums must be the number"):
        sparsity(lambda x: x, X, argnums=1)


def test_a_plan_is_pickled_with_its_parts_in_place() -> None:
    plan = plan_sparse_jacobian(PROGRAMS["differences"][0], X)
    again = pickle.loads(pickle.dumps(plan))
    assert again.mode == plan.mode
    np.testing.assert_array_equal(again.colors, plan.colors)
    np.testing.assert_array_equal(again.pattern.rows, plan.pattern.rows)
