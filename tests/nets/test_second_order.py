"""Net: second derivatives of solvers, matrix functions and factorisations, in four orders.

Each row is a scalar function of a vector or matrix, smooth at all of its points, regular and
special: equal and nearly equal eigenvalues and singular values, loss of rank, wide, tall, complex
and batched matrices, zero right-hand sides. The second derivative along two directions is taken
forward over forward, forward over reverse, reverse over forward and reverse over reverse, in
float64, and compared with differences of the values; first derivatives likewise.

A NaN where the difference is finite is a failure.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xad
import xjit
import xnp
from tests.nets.cells import drawn
from xad import grad, jvp
from xad.ode import odeint
from xad.optimize import minimize
from xnp import lax, linalg
from xnp.scipy import linalg as slinalg
from xnp.scipy.sparse.linalg import bicgstab, cg, gmres
from xprim import config

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning"),
]

RNG = np.random.default_rng(5)
Q4 = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
U4 = np.linalg.qr(RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4)))[0]
WEIGHTS = RNG.normal(size=(4, 4))


def of_values(*values, basis=np.eye(4)):
    return (basis * np.array(values)) @ basis.T


def of_singular_values(*values, basis=np.eye(4)):
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

SYMMETRIC = {
    "distinct": of_values(0.5, 1.0, 2.0, 3.5, basis=Q4),
    "diagonal, equal": of_values(1.0, 1.0, 2.0, 3.0),
    "equal": of_values(1.0, 1.0, 2.0, 3.0, basis=Q4),
    "three equal": of_values(2.0, 2.0, 2.0, 3.0, basis=Q4),
    "identity": np.eye(4),
    "two pairs": of_values(1.0, 1.0, 3.0, 3.0, basis=Q4),
    "nearly equal": of_values(1.0, 1.0 + 1e-9, 2.0, 3.0, basis=Q4),
}
GENERAL = {
    "distinct": of_singular_values(0.5, 1.0, 2.0, 3.5, basis=RNG.permutation(Q4)),
    "diagonal, equal": np.diag([1.0, 1.0, 2.0, 3.0]),
    "equal": of_singular_values(1.0, 1.0, 2.0, 3.0, basis=RNG.permutation(Q4)),
    "identity": np.eye(4),
    "nearly equal": of_singular_values(1.0, 1.0 + 1e-9, 2.0, 3.0, basis=RNG.permutation(Q4)),
}
