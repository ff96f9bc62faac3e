"""A derivative of a mapped `cond` sees, of each branch, only the examples that take it."""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import lax

X = np.float32([4, -1, 0, 9])


def root_or_product(x, t):
    """Return t sqrt(x) above zero, whose slope at and below zero is not a number, else x t."""
    return lax.cond(x > 0, lambda x, t: t * xnp.sqrt(x), lambda x, t: x * t, x, t)


def slopes(x, t):
    taken = x > 0
    by_x = np.where(taken, t / (2 * np.sqrt(np.where(taken, x, 1))), t)
    return by_x, np.where(taken, np.sqrt(np.abs(x)), x).sum()


def total(x, t):
    return xstack.vmap(root_or_product, (0, None))(x, t).sum()


@pytest.mark.parametrize("wrapped", [lambda f: f, xstack.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("x", [X, -abs(X), abs(X) + 1], ids=["some", "none", "all"])
def test_the_slope_of_a_branch_that_is_not_taken_reaches_nothing(wrapped, x):
    gradient = wrapped(xstack.grad(total, (0, 1)))(x, np.float32(2))
    for found, expected in zip(gradient, slopes(x, 2), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    forward = wrapped(xstack.jacfwd(total, (0, 1)))(x, np.float32(2))
    for found, expected in zip(forward, slopes(x, 2), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("twice", [xstack.jacfwd, xstack.jacrev])
def test_nor_does_its_second_derivative(twice):
    second = twice(xstack.grad(total))(X, np.float32(2))
    expected = np.diag([-2 / 4 * 4**-1.5, 0, 0, -2 / 4 * 9**-1.5])
    np.testing.assert_allclose(second, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("t", [np.float32([1, 2]), np.float32(3)], ids=["mapped", "shared"])
def test_nor_in_a_map_of_a_map(t):
    x = np.stack([X, -abs(X)])  # of the second row no example takes the root

    def sums(x, t):
        return xstack.vmap(total, (0, 0 if t.ndim else None))(x, t).sum()

    by_x, by_t = xstack.grad(sums, (0, 1))(x, t)
    expected = [slopes(row, scale) for row, scale in zip(x, np.broadcast_to(t, 2), strict=True)]
    np.testing.assert_allclose(by_x, [e[0] for e in expected], rtol=1e-6)
    each = np.array([e[1] for e in expected])
    np.testing.assert_allclose(by_t, each if t.ndim else each.sum(), rtol=1e-6)


def test_a_map_of_a_switch_over_three_branches():
    branches = [xnp.log, lambda x: 1 / (x - 1), lambda x: xnp.arccos(x)]
    choice = np.array([0, 1, 2, 0], np.int32)
    x = np.float32([2, 3, 0.5, 1])

    def f(x):
        return xstack.vmap(lambda i, x: lax.switch(i, branches, x))(choice, x).sum()

    expected = [1 / 2, -1 / 4, -1 / np.sqrt(0.75), 1]
    np.testing.assert_allclose(xstack.grad(f)(x), expected, rtol=1e-5)


def test_a_captured_matrix_has_a_derivative_without_nan():
    w = np.float32([[1, 2], [3, 4]])

    def f(w):
        def one(v):
            return lax.cond(v[0] > 0, lambda v: xnp.log(v[0]) * (w @ v), lambda v: v, v)

        return xstack.vmap(one)(np.float32([[1, 2], [-1, 0], [2, 0]])).sum()

    found = xstack.grad(f)(w)
    np.testing.assert_allclose(found, np.log(2) * np.float32([[2, 0], [2, 0]]), rtol=1e-6)


def test_the_transpose_of_a_mapped_cond_of_linear_branches():
    def f(x):
        pred = np.array([True, False])
        return xstack.vmap(lambda p, x: lax.cond(p, lambda x: 2 * x, lambda x: 3 * x, x))(pred, x)

    (found,) = xstack.linear_transpose(f, np.ones(2, np.float32))(np.ones(2, np.float32))
    np.testing.assert_array_equal(found, [2, 3])


def test_what_the_branches_see_costs_nothing_when_nothing_is_differentiated():
    text = xstack.jit(total).lower(X, np.float32(2)).as_text()
    assert "gather" not in text
    assert text.count("stablehlo.select") == 1
