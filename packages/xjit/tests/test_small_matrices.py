"""Systems of a few rows in compiled CPU programs: arithmetic in the place of calls of LAPACK."""

from __future__ import annotations

import numpy as np
import pytest

import xnp
from xjit import jit
from xnp import lax, linalg
from xprim import config

pytestmark = pytest.mark.of_the_cpu

BATCHES = [(), (128,), (2, 65)]


@pytest.fixture(autouse=True)
def double_precision():
    with config.enable_x64(True):
        yield


def _matrices(*shape, dtype=np.float64):
    rng = np.random.default_rng(shape)
    return rng.standard_normal(shape).astype(dtype)


def _text(fun, *args):
    return jit(fun).lower(*args).as_text()


def _close(found, expected, dtype=np.float64):
    # the same elimination in another order of sums: some units of the last place, times condition
    # numbers below 1e3
    bound = {np.float32: 2e-3, np.float64: 1e-11}[dtype]
    np.testing.assert_allclose(found, expected, rtol=bound, atol=bound)


@pytest.mark.sampled(every=24)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_small_systems_equal_those_of_numpy(n, batch, dtype):
    a, b = _matrices(*batch, n, n, dtype=dtype), _matrices(*batch, n, 2, dtype=dtype)
    _close(jit(linalg.solve)(a, b), np.linalg.solve(a, b), dtype)
    _close(jit(linalg.inv)(a), np.linalg.inv(a), dtype)
    _close(jit(linalg.det)(a), np.linalg.det(a), dtype)
    definite = a @ a.swapaxes(-1, -2) + np.eye(n, dtype=dtype)
    _close(jit(linalg.cholesky)(definite), np.linalg.cholesky(definite), dtype)


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("shape", [
    (128, 2, 2), (128, 3, 3), (128, 4, 4), (2, 65, 3, 2), (128, 2, 3), (128, 4, 3),
])  # fmt: skip
def test_pivots_are_those_of_rows_exchanged_one_by_one(shape):
    a = xnp.asarray(_matrices(*shape))
    for found, expected in zip(jit(lax.linalg.lu)(a), lax.linalg.lu(a), strict=True):
        _close(found, expected)
    equal = xnp.ones(shape)  # of equal entries the first one is the pivot
    for found, expected in zip(jit(lax.linalg.lu)(equal), lax.linalg.lu(equal), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize("number", range(16))
def test_triangles_on_both_sides(number):
    left, lower, transposed, unit = [bool(number >> k & 1) for k in range(4)]
    a = _matrices(128, 3, 3) + 3 * np.eye(3)
    b = _matrices(128, 3, 2) if left else _matrices(128, 2, 3)
    read = np.tril(a) if lower else np.triu(a)
    if unit:
        read = read - read * np.eye(3) + np.eye(3)
    op = read.swapaxes(-1, -2) if transposed else read
    expected = np.linalg.solve(op, b) if left else b @ np.linalg.inv(op)
    _close(jit(lambda a, b: lax.linalg.triangular_solve(
        a, b, left_side=left, lower=lower, transpose_a=transposed, unit_diagonal=unit))(a, b),
        expected)  # fmt: skip


@pytest.mark.parametrize("n", [1, 3])
def test_matrices_without_a_factor_or_an_inverse(n):
    ones = np.tril(np.ones((n, n)))
    for a in (-np.eye(n), np.zeros((n, n)), np.full((n, n), np.nan)):
        found = np.asarray(jit(linalg.cholesky)(np.stack([a, *[np.eye(n)] * 127])))
        np.testing.assert_array_equal(found[0], np.where(ones == 1, np.nan, 0))
        np.testing.assert_array_equal(found[1], np.eye(n))
    assert not np.isfinite(jit(linalg.solve)(np.zeros((n, n)), np.ones((n, 1)))).any()
    assert jit(linalg.det)(np.zeros((n, n))) == 0


def test_where_matrices_are_arithmetic():
    def calls(*shape, step=linalg.inv):
        return "lapack_" in _text(step, xnp.ones(shape))

    assert not calls(3, 3)
    assert calls(3, 3, step=linalg.cholesky)
    assert calls(4, 4)
    assert calls(127, 4, 4)
    assert not calls(128, 4, 4)
    assert not calls(128, 4, 4, step=linalg.cholesky)
    assert calls(128, 5, 5)
    assert not calls(4, 4, step=lambda a: lax.fori_loop(0, 9, lambda i, a: linalg.inv(a), a))
    assert calls(5, 5, step=lambda a: lax.fori_loop(0, 9, lambda i, a: linalg.inv(a), a))


def test_products_of_small_matrices_are_sums_inside_of_loops_alone():
    def products(fun, *shape):
        return _text(fun, xnp.ones(shape)).count("dot_general")

    def loop(a):
        return lax.fori_loop(0, 9, lambda i, x: x @ a, a)

    assert products(lambda a: a @ a, 4, 4) == 1
    assert products(loop, 4, 4) == 0
    assert products(loop, 9, 9) == 1


PRODUCTS = [
    (((1,), (0,)), ((), ()), (3, 4), (4, 5)),
    (((0,), (1,)), ((), ()), (4, 3), (5, 4)),
    (((2,), (1,)), ((0,), (0,)), (2, 3, 4), (2, 4, 5)),
    (((1,), (1,)), ((2,), (0,)), (3, 4, 2), (2, 4, 5)),
    (((0, 2), (1, 0)), ((), ()), (2, 3, 4), (4, 2, 5)),
    (((), ()), ((), ()), (2,), (3,)),
]


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("case", PRODUCTS)
def test_sums_of_products_are_products(case):
    contracted, batch, left, right = case
    a, b = xnp.asarray(_matrices(*left)), xnp.asarray(_matrices(*right))

    def product(a, b):
        return lax.dot_general(a, b, (contracted, batch))

    def twice(a, b):
        return lax.fori_loop(0, 2, lambda i, _: product(a, b + i), product(a, b))

    _close(jit(twice)(a, b), product(a, b + 1))


def test_a_kalman_filter_is_one_kernel_and_right():
    n, m, steps = 4, 2, 30
    a, h = np.eye(n) + 0.1 * np.eye(n, k=m), np.eye(m, n)
    q, r, zs = 0.01 * np.eye(n), 0.1 * np.eye(m), _matrices(steps, m)

    def step(state, z, xp=xnp):
        x, p = state
        x, p = a @ x, a @ p @ a.T + q
        gain = xp.linalg.solve(h @ p @ h.T + r, h @ p).T
        x, p = x + gain @ (z - h @ x), p - gain @ h @ p
        return (x, p), x

    filtered = jit(lambda zs: lax.scan(step, (xnp.zeros(n), xnp.eye(n)), zs)[1])
    state, expected = (np.zeros(n), np.eye(n)), []
    for z in zs:
        state, x = step(state, z, np)
        expected.append(x)
    _close(filtered(xnp.asarray(zs)), np.stack(expected))
    assert "xla_cpu_small_call" in filtered.lower(xnp.asarray(zs)).compile().as_text()
