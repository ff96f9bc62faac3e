"""Net: second derivatives of solvers, matrix functions and factorisations, in four orders.

Each row is a scalar function of a vector or matrix, smooth at all of its points, regular and
special: equal and nearly equal eigenvalues and singular values, loss of rank, wide, tall, complex
and batched matrices, zero right-hand sides. The second derivative along two directions is taken
forward over forward, forward over reverse, reverse over forward and reverse over reverse, in
float64, and compared with differences of the values; first derivatives likewise.

A NaN where the difference is finite is a failure.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xjit
import xnp
from tests.nets.cells import drawn
from xad import grad, jvp
from xad.ode import odeint
from xad.optimize import minimize
from xnp import lax, linalg
from xnp.lax import linalg as laxlinalg
from xnp.scipy import linalg as slinalg
from xnp.scipy.sparse.linalg import bicgstab, cg, gmres
from xprim import config

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning"),
]

RNG = np.random.default_rng(5)
Q4 = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
WEIGHTS = RNG.normal(size=(4, 4))


I4 = np.eye(4)


def of_values(*values, basis=I4):
    return (basis * np.array(values)) @ basis.T


def of_singular_values(*values, basis=I4):
    return (basis * np.array(values)) @ Q4.T


# --- rows: solvers --------------------------------------------------------------------------------

VECTORS = {"plain": np.array([0.7, -0.4, 1.2]), "a zero": np.array([0.6, 0.0, -0.9])}


def decay(a):
    ys = odeint(lambda y, t, a: -a * y + xnp.sin(t), xnp.ones(3), xnp.array([0.0, 0.4, 1.0]), a,
                rtol=1e-12, atol=1e-12)  # fmt: skip
    return (ys * ys).sum()


def from_start(y0):
    def rates(state, t):
        x, v = state
        return v, -xnp.sin(x)

    xs, _ = odeint(rates, [y0, y0 * y0], xnp.array([0.0, 0.7]), rtol=1e-12, atol=1e-12)
    return (xs[1] ** 3).sum()


def at_times(x):
    t = xnp.array([0.0, 1.0, 2.0]) + 0.2 * x
    ys = odeint(lambda y, t: -y * xnp.cos(t) * y, 1.0 + x[0], t, rtol=1e-12, atol=1e-12)
    return (ys**2).sum()


def system(x):
    return xnp.diag(3.0 + x * x) + 0.3 * xnp.outer(x, x) + xnp.array(RIGHT_PART)


RIGHT_PART = np.array([[0.0, 0.3, 0.1], [0.3, 0.0, -0.2], [0.1, -0.2, 0.0]])


def by_solver(solve, **options):
    def function(x):
        a, b = system(x), x * xnp.array([1.0, 2.0, -1.0])
        solution, _ = solve(lambda v: a @ v, b, tol=1e-14, atol=0.0, **options)
        return (solution**3).sum() + solution[0]

    return function


def by_custom_linear_solve(x):
    a = system(x)
    found = lax.custom_linear_solve(
        lambda v: a @ v, xnp.sin(x), lambda matvec, b: linalg.solve(a, b),
        lambda vecmat, b: linalg.solve(a.T, b),
    )  # fmt: skip
    return (found**2).sum()


def by_root(x):
    def residual(v):
        return v**3 + 2 * v - x

    def newton(f, v):
        for _ in range(40):
            v = v - f(v) / (3 * v * v + 2)
        return v

    def tangent_solve(g, y):
        return y / g(xnp.ones_like(y))

    return (lax.custom_root(residual, 0.3 * x, newton, tangent_solve) ** 2).sum()


def by_minimum(x):
    def gradient(v):
        return 4 * (v - x) ** 3 + 2 * v

    def solve(f, start):
        found = minimize(lambda v: ((v - x) ** 4 + v * v).sum(), start, method="BFGS",
                         options={"gtol": 1e-6})  # fmt: skip
        v = found.x
        for _ in range(20):
            v = v - f(v) / (12 * (v - x) ** 2 + 2)
        return v

    def tangent_solve(g, y):
        return y / g(xnp.ones_like(y))

    return (lax.custom_root(gradient, xnp.zeros_like(x), solve, tangent_solve) ** 2).sum()


SOLVERS: dict[str, Callable[[Any], Any]] = {
    "odeint, argument": decay, "odeint, start": from_start, "odeint, times": at_times,
    "cg": by_solver(cg), "gmres": by_solver(gmres), "bicgstab": by_solver(bicgstab),
    "gmres, incremental": by_solver(gmres, solve_method="incremental"),
    "custom_linear_solve": by_custom_linear_solve, "custom_root": by_root, "minimize": by_minimum,
}  # fmt: skip

# --- rows: matrices -------------------------------------------------------------------------------

B4 = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
SYMMETRIC = {
    "distinct": of_values(0.5, 1.0, 2.0, 3.5, basis=Q4),
    "equal and diagonal": of_values(1.0, 1.0, 2.0, 3.0),
    "equal": of_values(1.0, 1.0, 2.0, 3.0, basis=Q4),
    "three equal": of_values(2.0, 2.0, 2.0, 3.0, basis=Q4),
    "two pairs": of_values(1.0, 1.0, 3.0, 3.0, basis=Q4),
    "identity": np.eye(4),
}
GENERAL = {
    "distinct": of_singular_values(0.5, 1.0, 2.0, 3.5, basis=B4),
    "equal and diagonal": np.diag([1.0, 1.0, 2.0, 3.0]),
    "equal": of_singular_values(1.0, 1.0, 2.0, 3.0, basis=B4),
    "three equal": of_singular_values(2.0, 2.0, 2.0, 3.0, basis=B4),
    "two pairs": of_singular_values(1.0, 1.0, 3.0, 3.0, basis=B4),
    "identity": np.eye(4),
}
# whose two least values are apart from the others
SPLIT = {k: SYMMETRIC[k] for k in SYMMETRIC if k not in ("identity", "three equal")}
UNITARY = np.linalg.qr(RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4)))[0]
LOW = {
    "rank 2": of_singular_values(2.0, 1.0, 0.0, 0.0, basis=B4),
    "rank 3": of_singular_values(2.0, 1.0, 1.0, 0.0, basis=B4),
    "zeros": np.zeros((4, 4)),
}
TALL = {
    "distinct": B4[:, :3] * [1.0, 2.0, 3.0],
    "equal": (B4[:, :3] * [2.0, 2.0, 1.0]) @ np.linalg.qr(Q4[:3, :3])[0],
    "isometry": B4[:, :3],
}


def nuclear_norm(a):
    return linalg.norm(a, "nuc")


def symmetric(function):
    return lambda a: function((a + a.T) / 2)


def hermitian(function):
    """Return a function of Hermitian matrices as one of a symmetric and an antisymmetric part."""
    return lambda a: function((a + a.T) / 2 + 0.3j * (a - a.T) * xnp.array([[1.0]]))


def rebuilt_norm(a):
    u, s, vh = linalg.svd(a, full_matrices=False)
    return linalg.norm((u * s) @ vh)


def polar_factor(a):
    u, _, vh = linalg.svd(a, full_matrices=False)
    return xnp.real((WEIGHTS[: a.shape[0], : a.shape[1]] * (u @ vh)).sum())


def projection(a, least=2):
    _, v = linalg.eigh(a)
    v = v[:, :least]
    return xnp.real((WEIGHTS * (v @ v.conj().T)).sum())


def projection_by_svd(a):
    _, _, vh = linalg.svd(a, full_matrices=False)
    return (WEIGHTS * (vh[2:].T @ vh[2:])).sum()


def norm_of_square(a):
    w, v = linalg.eigh(a)
    return linalg.norm((v * w**2) @ v.conj().T)


def weighted(function):
    return lambda a: (WEIGHTS * xnp.real(function(a))).sum()


# (function, points, orders at points that are not "distinct": 1 where the second derivative of a
# function that is smooth is not determined by what the first derivatives know, and is NaN then)
MATRICES: dict[str, tuple[Callable[[Any], Any], dict[str, Any], int]] = {
    "norm of U S V": (rebuilt_norm, GENERAL, 1),
    "norm of U S V, low rank": (rebuilt_norm, {k: LOW[k] for k in ("rank 2", "rank 3")}, 1),
    "norm of U S V, tall": (rebuilt_norm, TALL, 1),
    "norm of U S V, wide": (lambda a: rebuilt_norm(a.T), TALL, 1),
    "U V": (polar_factor, GENERAL, 2),
    "U V, tall": (polar_factor, TALL, 2),
    "U V, wide": (lambda a: polar_factor(a.T), TALL, 2),
    "U V, complex": (lambda a: polar_factor(a @ xnp.array(UNITARY)), GENERAL, 2),
    "U V, complex and tall": (
        lambda a: polar_factor(a @ xnp.array(UNITARY[:3, :3])), {"isometry": TALL["isometry"]}, 2),
    "nuclear norm": (nuclear_norm, GENERAL, 2),
    "nuclear norm, tall": (nuclear_norm, TALL, 2),
    "nuclear norm, wide": (lambda a: nuclear_norm(a.T), TALL, 2),
    "nuclear norm, complex": (lambda a: nuclear_norm(a @ xnp.array(UNITARY)), GENERAL, 2),
    "norm of V w^2 V": (symmetric(norm_of_square), SYMMETRIC, 1),
    "norm of V w^2 V, complex": (hermitian(norm_of_square), SYMMETRIC, 1),
    "sum of exp(w)": (symmetric(lambda a: xnp.exp(linalg.eigvalsh(a)).sum()), SYMMETRIC, 1),
    "sum of exp(w), complex": (
        hermitian(lambda a: xnp.exp(linalg.eigvalsh(a)).sum()), SYMMETRIC, 1),
    "projection": (symmetric(projection), SPLIT, 2),
    "projection, complex": (hermitian(projection), SPLIT, 2),
    "projection by svd": (projection_by_svd, {k: GENERAL[k] for k in SPLIT}, 2),
    "largest value": (
        symmetric(lambda a: linalg.eigvalsh(a)[-1]),
        {k: SYMMETRIC[k] for k in ("distinct", "equal", "three equal")}, 2),
    "norm 2": (
        lambda a: linalg.norm(a, 2), {k: GENERAL[k] for k in ("distinct", "equal", "three equal")},
        2),
    "expm": (weighted(slinalg.expm), GENERAL | LOW, 2),
    "sqrtm": (weighted(slinalg.sqrtm), SYMMETRIC, 2),
    "matrix_power": (weighted(lambda a: linalg.matrix_power(a, 3)), GENERAL | LOW, 2),
    "inv": (weighted(linalg.inv), GENERAL, 2),
    "pinv": (weighted(linalg.pinv), GENERAL, 2),
    "solve": (lambda a: (linalg.solve(a, xnp.array(B4)) ** 2).sum(), GENERAL, 2),
    "det": (linalg.det, GENERAL | LOW, 2),
    "slogdet": (lambda a: linalg.slogdet(a)[1], GENERAL, 2),
    "cholesky": (symmetric(weighted(linalg.cholesky)), SYMMETRIC, 2),
    "qr": (lambda a: (linalg.qr(a)[1] ** 4).sum(), GENERAL | TALL, 2),
    "lu": (lambda a: (laxlinalg.lu(a)[0] ** 2).sum(),
           {k: GENERAL[k] for k in ("distinct", "equal", "two pairs")}, 2),
    "solve_sylvester": (
        lambda a: (slinalg.solve_sylvester(a, a.T + 5 * xnp.eye(4), xnp.array(WEIGHTS)) ** 2).sum(),
        SYMMETRIC, 2),
}  # fmt: skip

# --- comparing ------------------------------------------------------------------------------------

CELLS = [(f"solver: {name}", point) for name in SOLVERS for point in VECTORS]
CELLS += [(name, point) for name, (_, points, _) in MATRICES.items() for point in points]
ORDERS = ["".join(modes) for modes in itertools.product("fr", repeat=2)]


def row(name, point):
    if name.startswith("solver: "):
        return SOLVERS[name.removeprefix("solver: ")], VECTORS[point], 2
    function, points, order = MATRICES[name]
    return function, points[point], 2 if point == "distinct" else order


def directions(x):
    return np.random.default_rng(7).normal(size=(2, *x.shape))


def derivative(function, mode, direction):
    if mode == "f":
        return lambda x: jvp(function, (x,), (direction,))[1]
    return lambda x: (grad(function)(x) * direction).sum()


def differences(function, x, u, v):
    """Return the first derivative along u and the second along u and v, by Richardson's rule."""

    def first(h):
        return (function(x + h * u) - function(x - h * u)) / (2 * h)

    def second(h):
        plus, minus = u + v, u - v
        same = function(x + h * plus) + function(x - h * plus)
        return (same - function(x + h * minus) - function(x - h * minus)) / (4 * h * h)

    return [(4 * f(h / 2) - f(h)) / 3 for f, h in ((first, 2e-3), (second, 4e-3))]


@pytest.fixture(autouse=True)
def _double():
    with config.enable_x64(True):
        yield


def test_the_size_of_the_net():
    print(f"{len(CELLS)} cells, each with 2 first and {len(ORDERS)} second derivatives")
    assert len(CELLS) >= 120


@pytest.mark.parametrize(("name", "point"), drawn(CELLS, 28))
def test_first_and_second_derivatives_are_those_of_differences(name, point):
    function, x, order = row(name, point)
    u, v = directions(x)
    first, second = [float(d) for d in differences(function, x, u, v)]
    for mode in "fr":
        # the error of the rule of differences is about h^4 = 1e-11 times a fifth derivative, and
        # rounding 1e-15 / h
        found = float(derivative(function, mode, u)(x))
        np.testing.assert_allclose(found, first, rtol=1e-6, atol=1e-6, err_msg=mode)
    for inner, outer in ORDERS:
        found = float(derivative(derivative(function, inner, u), outer, v)(x))
        if order == 1 and np.isnan(found):
            continue
        # h^4 = 3e-10 times a sixth derivative, and rounding 1e-15 / h^2
        np.testing.assert_allclose(found, second, rtol=1e-4, atol=1e-4, err_msg=inner + outer)


@pytest.mark.parametrize(("name", "point"), drawn(CELLS, 3))
def test_compiled_second_derivatives_are_those_of_differences(name, point):
    function, x, order = row(name, point)
    u, v = directions(x)
    second = float(differences(function, x, u, v)[1])
    hessian = xjit.jit(derivative(derivative(function, "r", u), "f", v))
    found = float(hessian(x))
    if order == 1 and np.isnan(found):
        return
    np.testing.assert_allclose(found, second, rtol=1e-4, atol=1e-4)
