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
    "two, tall": ((6, 4), [3.0, 1.0, 0.0, 0.0]),
    "one of four": ((4, 4), [3.0, 2.0, 1.0, 0.0]),
}


def _with_values(name, dtype="float64"):
    """Return a matrix with these singular values and any vectors, and directions like it."""
    shape, values = VANISHING[name]
    rng = np.random.default_rng(2)

    def some(*shape):
        x = rng.normal(size=shape)
        return x + 1j * rng.normal(size=shape) if dtype == "complex128" else x

    a = np.zeros(shape, dtype)
    np.fill_diagonal(a, values)
    sides = [np.linalg.qr(some(n, n))[0] for n in shape]
    return sides[0] @ a @ sides[1], some(3, *shape), some(*shape)


def _by_svd(name, a, weights):
    u, s, vh = linalg.svd(a, full_matrices=False)
    if name == "largest value":
        return s[0]
    scale = s[:2] if name == "nearest of rank 2" else 1
    return (weights * ((u[:, :2] * scale) @ vh[:2])).sum().real


def _by_eigh(name, a, weights):
    """Return the same by the Gram matrix, whose other eigenvectors are not used."""
    w, v = linalg.eigh(xnp.conj(a).T @ a)
    if name == "largest value":
        return xnp.sqrt(w[-1])
    scale = xnp.ones(2) if name == "nearest of rank 2" else w[-2:] ** -0.5
    return (weights * (a @ (v[:, -2:] * scale) @ xnp.conj(v[:, -2:]).T)).sum().real


def _along_line(f, a, directions, modes):
    """Return a derivative at 0 of f(a + t0 d0 + t1 d1 + ...) by all of these numbers."""

    def moved(*ts):
        return f(a + sum(t * d for t, d in zip(ts, directions, strict=False)))

    def by_one(g, k, mode):
        def of_others(*ts):
            def of_one(t):
                return g(*ts[:k], t, *ts[k + 1 :])

            return xad.jvp(of_one, (ts[k],), (1.0,))[1] if mode == "f" else xad.grad(of_one)(ts[k])

        return of_others

    for k, mode in enumerate(modes):
        moved = by_one(moved, k, mode)
    return float(moved(*[0.0] * len(modes)))


@pytest.mark.sampled(every=5, per="name")
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("modes", ["f", "r", "fr", "rf", "fff", "rrr", "frf", "rfr"])
@pytest.mark.parametrize("name", VANISHING)
def test_derivatives_by_svd_of_what_does_not_take_the_values_that_vanish(name, modes, dtype):
    a, directions, weights = _with_values(name, dtype)
    for function in ("largest value", "polar factor", "nearest of rank 2"):
        found = _along_line(lambda a, f=function: _by_svd(f, a, weights), a, directions, modes)
        expected = _along_line(lambda a, f=function: _by_eigh(f, a, weights), a, directions,
                               "f" * len(modes))  # fmt: skip
        # eigenvalues of the Gram matrix have errors of eps times the square of 3
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=function)


SELECTING = {
    "slice": lambda s: s[:2],
    "sliced twice": lambda s: s[:3][:-1] if len(s) == 3 else s[:-1][:2],
    "positions": lambda s: s[np.array([0, 1])],
    "truth values": lambda s: s[np.arange(len(s)) < 2],
    "windows": lambda s: xnp.concatenate([lax.dynamic_slice(s, (i,), (1,)) for i in (0, 1)]),
    "where": lambda s: xnp.where(s > 0.5, s, 0.0)[:2],
    "reversed": lambda s: s[::-1][-2:][::-1],
    "overwritten": lambda s: s.at[2:].set(0.0)[:2],
    "largest": lambda s: xnp.stack([s.max(), s[1]]),
    "halves": lambda s: (xnp.split(s, [2])[0] - 2 * s[:2]) / -1.0,
    "sums": lambda s: xnp.cumsum(xnp.stack([s[0], s[1] - s[0]])),
}


@pytest.mark.sampled(every=120)
@pytest.mark.parametrize("run", [lambda f: f, jit, lambda f: lambda t: vmap(f)(t[None])[0]])
@pytest.mark.parametrize("modes", ["rf", "rr", "frf", "rrr"])
@pytest.mark.parametrize("name", ["two of four", "one, tall", "one, wide"])
@pytest.mark.parametrize("way", SELECTING)
def test_derivatives_of_any_order_where_the_values_that_vanish_are_not_read(way, name, modes, run):
    a, directions, weights = _with_values(name)

    def reading(values):
        return (xnp.log(values) * xnp.array([1.0, -2.0])).sum() + values[0] * values[1] ** 2

    def by_svd(t):
        moved = a + t * directions[0]
        u, s, vh = linalg.svd(moved, full_matrices=False)
        chosen = SELECTING[way](s)
        return (weights * ((u[:, :2] * chosen**2) @ vh[:2])).sum() + reading(chosen)

    def by_eigh(t):
        moved = a + t * directions[0]
        w, v = linalg.eigh(moved.T @ moved)
        w, v = w[:-3:-1], v[:, :-3:-1]
        return (weights * (moved @ (v * xnp.sqrt(w)) @ v.T)).sum() + reading(xnp.sqrt(w))

    found, expected = by_svd, by_eigh
    for mode in modes:
        found = _derivative(found, mode)
        expected = _derivative(expected, "f")
    # eigenvalues of the Gram matrix have errors of eps times the square of 3
    np.testing.assert_allclose(run(found)(xnp.array(0.0)), expected(0.0), rtol=1e-8)


def _derivative(f, mode):
    if mode == "f":
        return lambda t: xad.jvp(f, (t,), (xnp.ones_like(t),))[1]
    return xad.grad(f)


@pytest.mark.parametrize("modes", ["rf", "rr", "frf", "rrr"])
@pytest.mark.parametrize("kind", ["eigh", "eigvalsh", "svd, values"])
def test_derivatives_of_functions_of_one_eigenvalue_beside_equal_ones(kind, modes):
    a = np.diag([1.0, 1.0, 1.0, 3.0])
    if kind == "svd, values":
        values = linalg.svdvals
    else:
        values = (lambda a: linalg.eigh(a)[0][::-1]) if kind == "eigh" else linalg.eigvalsh
    direction = RNG.normal(size=(4, 4))
    direction = direction + direction.T

    def largest(t):
        return xnp.exp(xnp.max(values(a + t * direction)))

    def of_series(t):  # of the eigenvalue 3 by perturbation theory, the others are 2 below it
        d = direction
        others = d[3, :3]
        second = (others**2).sum() / 2
        third = (others @ d[:3, :3] @ others) / 4 - d[3, 3] * (others**2).sum() / 4
        return xnp.exp(3 + t * d[3, 3] + t**2 * second + t**3 * third)

    found, expected = largest, of_series
    for mode in modes:
        found, expected = _derivative(found, mode), _derivative(expected, "f")
    np.testing.assert_allclose(found(0.0), expected(0.0), rtol=1e-9)


@pytest.mark.parametrize("modes", ["rf", "rr"])
@pytest.mark.parametrize("reading", [
    lambda s: (s**2).sum(), lambda s: (s[:3] ** 2).sum() + s[3] ** 2,
    lambda s: s[0] + (s[::-1] * s).sum(), lambda s: jit(lambda s: (s**2)[:3].sum())(s),
    lambda s: (s * (s > 0) * s).sum(),  # a product that is 0 by its value
])  # fmt: skip
def test_derivatives_that_read_values_that_vanish_stay_nan(reading, modes):
    a, directions, _ = _with_values("two of four")

    def along(f, mode, direction):
        if mode == "f":
            return lambda a: xad.jvp(f, (a,), (direction,))[1]
        return lambda a: (xad.grad(f)(a) * direction).sum()

    f = along(along(lambda a: reading(linalg.svdvals(a)), modes[0], directions[0]), modes[1],
              directions[1])  # fmt: skip
    assert np.isnan(f(a))


@pytest.mark.sampled(every=2, per="name")
@pytest.mark.parametrize("modes", ["r", "ff", "fr", "rf", "rr", "fff", "rrr"])
@pytest.mark.parametrize("name", ["two of four", "one, tall", "one, wide"])
def test_derivatives_by_svd_that_take_how_values_that_vanish_couple_are_nan(name, modes):
    a, directions, weights = _with_values(name)
    factored = {
        1: lambda u, s, vh: (weights * ((u * s) @ vh)).sum(),  # a itself
        2: lambda u, s, vh: (s**2).sum(),  # the squared norm, whose first derivative is right
        3: lambda u, s, vh: (weights * ((u * s**3) @ vh)).sum(),  # a a^T a
    }
    for order, f in factored.items():
        if order <= len(modes):
            found = _along_line(lambda a, f=f: f(*linalg.svd(a, full_matrices=False)), a,
                                directions, modes)  # fmt: skip
            assert np.isnan(found), order
