"""Derivatives of linear algebra against finite differences, and at singular matrices."""

from __future__ import annotations

import numpy as np
import pytest

import xad
import xnp
from xad import jacfwd, jacrev
from xbatch import vmap
from xjit import jit
from xnp import lax, linalg
from xprim import config

RNG = np.random.default_rng(11)
SQUARE = RNG.normal(size=(2, 4, 4))
TALL = RNG.normal(size=(5, 3))
COMPLEX = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
SYMMETRIC = SQUARE + SQUARE.swapaxes(-1, -2)
POSITIVE = SQUARE @ SQUARE.swapaxes(-1, -2) + np.eye(4)


@pytest.fixture(autouse=True)
def _x64():
    with config.enable_x64(True):
        yield


def _check_gradient(fun, x):
    x = np.asarray(x, np.float64)
    gradient = np.asarray(xad.grad(fun)(x))
    step = 1e-6
    for i in list(np.ndindex(x.shape))[:6]:
        moved = np.zeros_like(x)
        moved[i] = step
        slope = (np.asarray(fun(x + moved)) - np.asarray(fun(x - moved))) / (2 * step)
        np.testing.assert_allclose(gradient[i], slope, rtol=1e-5, atol=1e-6)


def _total(x):
    weights = np.cos(np.arange(x.size)).reshape(x.shape)
    return lax.reduce_sum(lax.mul(x, weights), tuple(range(x.ndim)))


@pytest.mark.parametrize(("name", "x"), [
    ("det", SQUARE[0]), ("inv", SQUARE[0]), ("pinv", TALL), ("cholesky", POSITIVE[0]),
    ("svdvals", TALL), ("matrix_norm", TALL), ("vector_norm", TALL[0]), ("cond", SQUARE[0]),
    ("eigvalsh", SYMMETRIC[0]),
])  # fmt: skip
def test_gradients_agree_with_finite_differences(name, x):
    _check_gradient(lambda v: _total(getattr(linalg, name)(v)), x)


def test_gradients_of_several_results_agree_with_finite_differences():
    b = RNG.normal(size=(4, 2))
    _check_gradient(lambda v: _total(linalg.solve(v, b)), SQUARE[0])
    _check_gradient(lambda v: _total(linalg.solve(SQUARE[0], v)), b)
    _check_gradient(lambda v: linalg.slogdet(v).logabsdet, SQUARE[0])
    _check_gradient(lambda v: linalg.slogdet(v, method="qr").logabsdet, SQUARE[0])
    _check_gradient(lambda v: _total(linalg.qr(v)[1]), TALL)
    _check_gradient(lambda v: _total(linalg.lstsq(v, TALL[:, 0])[0]), TALL)


def test_the_gradient_of_a_determinant_is_right_at_a_singular_matrix():
    found = xad.grad(linalg.det)(np.array([[1.0, 2.0], [2.0, 4.0]]))
    np.testing.assert_array_equal(np.asarray(found), [[4, -2], [-2, 1]])


def test_the_gradient_of_a_norm_is_zero_at_zero():
    np.testing.assert_array_equal(np.asarray(xad.grad(linalg.norm)(np.zeros(3))), np.zeros(3))


def test_a_function_of_singular_vectors_has_a_derivative_although_their_phase_is_free():
    # U S V^H is the matrix itself, so its derivative is the identity

    def rebuilt(z):
        u, s, vh = linalg.svd(z, full_matrices=False)
        scaled = lax.mul(u, lax.convert_element_type(
            lax.broadcast_in_dim(s, u.shape, (1,)), u.dtype))  # fmt: skip
        return linalg.matmul(scaled, vh)

    x_dot = COMPLEX.T + 1
    found = xad.jvp(rebuilt, (COMPLEX,), (x_dot,))[1]
    np.testing.assert_allclose(np.asarray(found), x_dot, atol=1e-9)


def test_a_function_of_hermitian_eigenvectors_has_a_derivative():
    hermitian = COMPLEX + COMPLEX.T.conj()

    def rebuilt(z):
        w, v = linalg.eigh(z)
        wide = lax.convert_element_type(lax.broadcast_in_dim(w, v.shape, (1,)), v.dtype)
        return linalg.matmul(lax.mul(v, wide), lax.conj(linalg.matrix_transpose(v)))

    x_dot = hermitian @ hermitian
    found = xad.jvp(rebuilt, (hermitian,), (x_dot,))[1]
    np.testing.assert_allclose(np.asarray(found), x_dot, atol=1e-8)


@pytest.mark.parametrize("name", ["pinv", "lstsq", "matrix_rank"])
def test_bounds_of_singular_values_may_be_traced(name: str) -> None:
    x = np.diag([3.0, 1.0, 0.5]) + 0.01
    bounds = np.array([1e-3, 0.25, 0.5])

    def run(bound):
        if name == "lstsq":
            return linalg.lstsq(x, x[:, 0] + 1, bound)[0]
        return getattr(linalg, name)(x, rtol=bound)

    expected = np.stack([run(float(b)) for b in bounds])
    np.testing.assert_allclose(np.stack([jit(run)(b) for b in bounds]), expected, rtol=1e-12)
    np.testing.assert_allclose(vmap(run)(bounds), expected, rtol=1e-12)
    if name != "matrix_rank":
        assert len({y.tobytes() for y in expected}) == 3
        slopes = jacfwd(run)(0.25), jacrev(run)(0.25)
        np.testing.assert_array_equal(slopes, np.zeros_like(slopes))


FULL_RANK = {
    "equal": np.eye(3),
    "two equal, turned": np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    @ np.diag([2.0, 2.0, 1.0]),
    "tall, equal": 1.5 * np.eye(4, 3),
    "distinct": np.random.default_rng(6).normal(size=(3, 3)),
}


@pytest.mark.parametrize("name", FULL_RANK)
@pytest.mark.parametrize("modes", ["f", "r", "fr", "rf", "ffr", "frf", "rff", "rrf", "fff"])
def test_the_hermitian_polar_factor_has_derivatives_at_equal_singular_values(name, modes):
    # P P = A^T A has one positive solution, and so has each of its derivatives one
    a = FULL_RANK[name]
    rng = np.random.default_rng(len(modes))
    weights, *directions = [rng.normal(size=s) for s in [(3, 3), *[a.shape] * 3]]

    def derivative(f):
        for mode, v in zip(modes, directions, strict=False):
            f = _along(f, mode, v)
        return f(a)

    def squared(a):
        p = xnp.scipy.linalg.polar(a)[1]
        return (weights * (p @ p)).sum()

    found = derivative(squared)
    expected = derivative(lambda a: (weights * (a.T @ a)).sum())
    np.testing.assert_allclose(found, expected, atol=1e-10)  # cancelling terms of up to 10^4


def _along(f, mode, v):
    if mode == "f":
        return lambda a: xad.jvp(f, (a,), (v,))[1]
    return lambda a: (xad.grad(f)(a) * v).sum()


VANISHING = {
    "two of four": ((4, 4), [3.0, 1.0, 0.0, 0.0]),
    "one, tall": ((5, 3), [3.0, 1.0, 0.0]),
    "one, wide": ((3, 5), [3.0, 1.0, 0.0]),
    "one of four": ((4, 4), [3.0, 2.0, 1.0, 0.0]),
}


def _largest_value_along(name, order):
    """Return a derivative of the largest singular value by svd, and by eigh, which is right."""
    shape, values = VANISHING[name]
    a = np.zeros(shape)
    np.fill_diagonal(a, values)
    directions = np.random.default_rng(2).normal(size=(order, *shape))

    def by_eigh(a):
        return xnp.sqrt(linalg.eigvalsh(a.T @ a)[-1])

    def derivative(f):
        for v in directions:
            f = _along(f, "f", v)
        return float(f(a))

    return derivative(lambda a: linalg.norm(a, 2)), derivative(by_eigh)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", VANISHING)
def test_first_and_second_derivatives_by_svd_are_right_where_values_vanish(name, order):
    found, expected = _largest_value_along(name, order)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("name", VANISHING)
def test_third_derivatives_by_svd_are_wrong_where_the_page_of_sharp_edges_says_so(name):
    # where this fails for others than "one of four", they are mended: the page is to be changed
    found, expected = _largest_value_along(name, 3)
    assert np.allclose(found, expected, rtol=1e-8) == (name == "one of four")
