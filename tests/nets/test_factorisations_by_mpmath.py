"""Net: derivatives through factorisations, against differences of mpmath's in sixty digits.

Each row is a scalar function of matrices that is smooth at its points, and the same in mpmath, by
other algorithms: its own eigenvalues and exponentials, Newton's iteration for polar factors, normal
equations. Points have distinct, equal and nearly equal eigenvalues or singular values, low rank,
and wide, tall, complex and batched shapes. First and second derivatives in all orders of modes are
compared with central differences of steps of 1e-20, whose error is below 1e-30.

Tolerances are those of float64: 1e-9, and where values lie near to each other, 100 units of
rounding over the gap, once for each order (their vectors turn by 1 / gap, which cancels).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xnp
from tests.nets.cells import drawn
from xad import grad, jvp
from xbatch import vmap
from xnp import linalg
from xnp.scipy import linalg as slinalg
from xprim import config

mp = pytest.importorskip("mpmath").mp

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning"),
]

RNG = np.random.default_rng(17)
Q, P = [np.linalg.qr(RNG.normal(size=(3, 3)))[0] for _ in range(2)]
Z, Y = [np.linalg.qr(RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3)))[0] for _ in range(2)]
WEIGHTS = RNG.normal(size=(4, 4))
NEAR = 1e-4


def symmetric(*values: float, basis: np.ndarray = Q) -> np.ndarray:
    return (basis * np.array(values)) @ basis.conj().T


def general(*values: float, left: np.ndarray = Q, right: np.ndarray = P) -> np.ndarray:
    return (left * np.array(values)) @ right


# (name, matrix, gap: 1 where no two values are near to each other)
SYMMETRIC: dict[str, tuple[np.ndarray, float]] = {
    "distinct": (symmetric(0.5, 1.5, 3.0), 1), "equal": (symmetric(1.0, 1.0, 3.0), 1),
    "all equal": (symmetric(2.0, 2.0, 2.0), 1), "equal, diagonal": (np.diag([1.0, 1.0, 3.0]), 1),
    "nearly equal": (symmetric(1.0, 1.0 + NEAR, 3.0), NEAR),
    "complex": (symmetric(0.5, 1.5, 3.0, basis=Z), 1),
    "complex, equal": (symmetric(1.0, 1.0, 3.0, basis=Z), 1),
}  # fmt: skip
GENERAL: dict[str, tuple[np.ndarray, float]] = {
    "distinct": (general(0.5, 1.5, 3.0), 1), "equal": (general(1.0, 1.0, 3.0), 1),
    "all equal": (general(2.0, 2.0, 2.0), 1), "equal, diagonal": (np.diag([1.0, 1.0, 3.0]), 1),
    "nearly equal": (general(1.0, 1.0 + NEAR, 3.0), NEAR),
    "complex": (general(0.5, 1.5, 3.0, left=Z, right=Y), 1),
    "complex, equal": (general(1.0, 1.0, 3.0, left=Z, right=Y), 1),
}  # fmt: skip
TALL = {
    "tall": (np.vstack([general(0.5, 1.5, 3.0), RNG.normal(size=(1, 3))]), 1.0),
    "tall, equal": (np.vstack([general(1.0, 1.0, 1.0), np.zeros((1, 3))]), 1.0),
    "tall, complex": (np.vstack([general(0.5, 1.5, 3.0, left=Z), 1j * RNG.normal(size=(1, 3))]), 1),
}
WIDE = {name.replace("tall", "wide"): (x.T.copy(), gap) for name, (x, gap) in TALL.items()}
LOW = {
    "rank 2": (general(0.0, 1.5, 3.0), 1.0), "rank 1": (general(0.0, 0.0, 3.0), 1.0),
    "zeros": (np.zeros((3, 3)), 1.0),
}  # fmt: skip

# --- the functions, here and in mpmath ------------------------------------------------------------

Ours = Callable[[Any], Any]


def weights_of(a: Any) -> np.ndarray:
    return WEIGHTS[: a.shape[-2], : a.shape[-1]]


def weighted(function: Ours) -> Ours:
    """Return the real part of a weighted sum of a matrix."""
    return lambda a: (lambda y: xnp.real((weights_of(y) * y).sum()))(function(a))


def mp_weighted(function: Ours) -> Ours:
    def total(a: Any) -> Any:
        y = function(a)
        return mp.re(sum(mp.mpf(float(WEIGHTS[i, j])) * y[i, j]
                         for i in range(y.rows) for j in range(y.cols)))  # fmt: skip

    return total


def hermitian(function: Ours) -> Ours:
    return lambda a: function((a + xnp.conj(a).T) / 2)


def mp_hermitian(function: Ours) -> Ours:
    return lambda a: function((a + a.H) / 2)


def mp_newton(a: Any) -> Any:
    """Return the polar factor of a regular square matrix (Higham, Functions of matrices, 8.3)."""
    for _ in range(200):
        following = (a + (a**-1).H) / 2
        if mp.mnorm(following - a, 1) < mp.mpf(10) ** (5 - mp.dps):
            return following
        a = following
    raise AssertionError("Newton's iteration has not ended")


def mp_root(a: Any) -> Any:
    """Return the square root of a positive matrix (Denman and Beavers 1976)."""
    y, z = a, mp.eye(a.rows)
    for _ in range(200):
        following, z = (y + z**-1) / 2, (z + y**-1) / 2
        if mp.mnorm(following - y, 1) < mp.mpf(10) ** (5 - mp.dps):
            return following
        y = following
    raise AssertionError("the iteration has not ended")


def mp_polar(a: Any) -> Any:
    if a.rows < a.cols:
        return mp_polar(a.H).H
    if a.rows > a.cols:
        return a * mp_root(a.H * a) ** -1
    return mp_newton(a)


def mp_values(a: Any) -> Any:
    return sorted(mp.re(x) for x in mp.eighe(a, eigvals_only=True))


def mp_singular_values(a: Any) -> Any:
    return [mp.sqrt(x) for x in mp_values(a.H * a if a.rows >= a.cols else a * a.H)]


def mp_projection(a: Any) -> Any:
    """Return the projection on the eigenvector of the largest value, by powers."""
    values = mp_values(a)
    shifted = [a - v * mp.eye(a.rows) for v in values[:-1]]
    found = mp.eye(a.rows)
    for s, v in zip(shifted, values[:-1], strict=True):
        found = found * s / (values[-1] - v)
    return found


def mp_pinv(a: Any) -> Any:
    return (a.H * a) ** -1 * a.H if a.rows >= a.cols else a.H * (a * a.H) ** -1


def mp_triangle(a: Any) -> Any:
    """Return R of A = Q R with the signs of LAPACK, from Cholesky's factor of A^H A."""
    r = mp.cholesky(a.H * a).H
    _, ours = np.linalg.qr(np.array(a.tolist(), complex))
    signs = [mp.mpf(-1 if ours[i, i].real < 0 else 1) for i in range(r.rows)]
    return mp.diag(signs) * r


def svd_product(a: Any) -> Any:
    u, _, vh = linalg.svd(a, full_matrices=False)
    return u @ vh


def largest_projection(a: Any) -> Any:
    v = linalg.eigh(a)[1][:, -1:]
    return v @ xnp.conj(v).T


def range_of_one(a: Any) -> Any:
    u = linalg.svd(a, full_matrices=False)[0][:, :1]
    return u @ xnp.conj(u).T


def whitened(a: Any) -> Any:
    """Return A (A^H A)^(-1/2), the whitening of columns, by eigenvalues."""
    w, v = linalg.eigh(xnp.conj(a).T @ a)
    return a @ (v / xnp.sqrt(w)) @ xnp.conj(v).T


def _pairs(points: Any, *others: Any) -> dict[str, tuple[np.ndarray, float]]:
    found = dict(points)
    for other in others:
        found |= other
    return found


def _only(points: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: points[name] for name in names}


# name -> (ours, mpmath's, points, orders)
ROWS: dict[str, tuple[Ours, Ours, dict[str, tuple[np.ndarray, float]], int]] = {
    "largest eigenvalue": (
        hermitian(lambda a: linalg.eigvalsh(a)[-1]), mp_hermitian(lambda a: mp_values(a)[-1]),
        _only(SYMMETRIC, "distinct", "equal", "equal, diagonal", "nearly equal", "complex",
              "complex, equal"), 2),
    "sum of eigenvalues": (
        hermitian(lambda a: linalg.eigvalsh(a).sum()), mp_hermitian(lambda a: sum(mp_values(a))),
        SYMMETRIC, 1),
    "projection": (
        hermitian(weighted(largest_projection)), mp_hermitian(mp_weighted(mp_projection)),
        _only(SYMMETRIC, "distinct", "complex"), 2),
    "range by svd": (
        weighted(range_of_one), mp_weighted(lambda a: mp_projection(a * a.H)),
        _pairs(_only(GENERAL, "distinct", "complex"), _only(LOW, "rank 2", "rank 1"),
               {"rank 1, complex": (general(3.0, 0.0, 0.0, left=Z, right=Y), 1.0),
                "rank 2, complex": (general(3.0, 1.0, 0.0, left=Z, right=Y), 1.0)}), 2),
    "polar factor by svd": (
        weighted(svd_product), mp_weighted(mp_polar), _pairs(GENERAL, TALL, WIDE), 2),
    "polar": (
        weighted(lambda a: slinalg.polar(a)[0]), mp_weighted(mp_polar),
        _only(GENERAL, "distinct", "equal", "all equal", "complex, equal"), 2),
    "nuclear norm": (
        lambda a: linalg.norm(a, "nuc"), lambda a: sum(mp_singular_values(a)),
        _pairs(GENERAL, TALL, WIDE), 2),
    "spectral norm": (
        lambda a: linalg.norm(a, 2), lambda a: mp_singular_values(a)[-1],
        _pairs(_only(GENERAL, "distinct", "equal", "complex", "complex, equal"),
               _only(LOW, "rank 2", "rank 1"), _only(TALL, "tall")), 2),
    "Frobenius norm": (
        linalg.norm, lambda a: mp.sqrt(sum(abs(x) ** 2 for x in a)),
        _pairs(GENERAL, TALL, _only(LOW, "rank 1")), 2),
    "pinv": (weighted(linalg.pinv), mp_weighted(mp_pinv), _pairs(GENERAL, TALL, WIDE), 2),
    "inv": (weighted(linalg.inv), mp_weighted(lambda a: a**-1), GENERAL, 2),
    "det": (lambda a: xnp.real(linalg.det(a)), lambda a: mp.re(mp.det(a)), _pairs(GENERAL, LOW), 2),
    "expm": (weighted(slinalg.expm), mp_weighted(mp.expm), _pairs(GENERAL, LOW), 2),
    "sqrtm": (
        hermitian(weighted(slinalg.sqrtm)), mp_hermitian(mp_weighted(mp_root)),
        SYMMETRIC, 2),
    "matrix_power": (
        weighted(lambda a: linalg.matrix_power(a, 3)), mp_weighted(lambda a: a**3),
        _pairs(GENERAL, LOW), 2),
    "cholesky": (
        hermitian(weighted(linalg.cholesky)), mp_hermitian(mp_weighted(mp.cholesky)), SYMMETRIC, 2),
    "qr": (
        lambda a: (xnp.abs(linalg.qr(a)[1]) ** 4).sum(),
        lambda a: sum(abs(x) ** 4 for x in mp_triangle(a)),
        _pairs(_only(GENERAL, "distinct", "equal", "complex"), TALL), 2),
    "whitening": (
        weighted(whitened), mp_weighted(mp_polar),
        _pairs(_only(GENERAL, "distinct"), _only(TALL, "tall")), 2),
    "eigvals": (
        lambda a: xnp.real((linalg.eigvals(a) ** 3).sum()),
        lambda a: mp.re(sum((a**3)[i, i] for i in range(a.rows))),
        _only(GENERAL, "distinct", "complex"), 2),
    "eigvals, equal": (
        lambda a: xnp.real((linalg.eigvals(a) ** 3).sum()),
        lambda a: mp.re(sum((a**3)[i, i] for i in range(a.rows))),
        {"equal": (P @ np.diag([1.0, 1.0, 3.0]) @ P.T, 1.0)}, 1),
}  # fmt: skip

CELLS = [(name, point) for name, row in ROWS.items() for point in row[2]]
MODES = [*"fr", *map("".join, itertools.product("fr", repeat=2))]


@pytest.fixture(autouse=True)
def _double() -> Any:
    with config.enable_x64(True):
        yield


def matrix(x: np.ndarray) -> Any:
    convert = mp.mpc if np.iscomplexobj(x) else mp.mpf
    return mp.matrix([[convert(v) for v in row] for row in x.tolist()])


def by_mpmath(function: Ours, x: np.ndarray, directions: Any) -> float:
    """Return the derivative along directions by central differences in sixty digits."""
    step, total = mp.mpf(10) ** -20, mp.mpf(0)
    start, moves = matrix(x), [matrix(d) for d in directions]
    for signs in itertools.product((1, -1), repeat=len(moves)):
        moved = start.copy()
        for sign, move in zip(signs, moves, strict=True):
            moved = moved + sign * step * move
        total += np.prod(signs).item() * function(moved)
    return float(total / (2 * step) ** len(moves))


def along(function: Ours, mode: str, direction: np.ndarray) -> Ours:
    if mode == "f":
        return lambda a: jvp(function, (a,), (direction,))[1]
    # of a real function of complex numbers, the gradient g has df = Re(sum g dz)
    return lambda a: xnp.real((grad(function)(a) * direction).sum())


def directions_of(x: np.ndarray) -> list[np.ndarray]:
    rng = np.random.default_rng(23)
    parts = rng.normal(size=(4, *x.shape))
    return [p + 1j * q if np.iscomplexobj(x) else p for p, q in zip(parts[:2], parts[2:],
                                                                    strict=True)]  # fmt: skip


def check(ours: Ours, theirs: Ours, x: np.ndarray, gap: float, orders: int, what: str) -> None:
    directions = directions_of(x)
    with mp.workdps(80):
        expected = [by_mpmath(theirs, x, directions[:k]) for k in range(1, orders + 1)]
    for modes in [m for m in MODES if len(m) <= orders]:
        function = ours
        for mode, direction in zip(modes, directions, strict=False):
            function = along(function, mode, direction)
        found, right = float(function(x)), expected[len(modes) - 1]
        lost = 0.0 if gap == 1 else 100 * float(np.finfo(float).eps) / gap ** len(modes)
        unit = 1e-9 + lost
        assert abs(found - right) <= unit * (1 + abs(right)), (
            f"{what}: {modes}: found {found}, expected {right}"
        )


def test_the_size_of_the_net() -> None:
    print(f"{len(ROWS)} functions in {len(CELLS)} cells, with up to {len(MODES)} derivatives")
    assert len(ROWS) >= 18 and len(CELLS) >= 110


@pytest.mark.parametrize(("name", "point"), drawn(CELLS, 24))
def test_derivatives_through_factorisations_are_those_of_mpmath(name: str, point: str) -> None:
    ours, theirs, points, orders = ROWS[name]
    check(ours, theirs, *points[point], orders, f"{name} at {point}")


@pytest.mark.parametrize("name", drawn(sorted(ROWS), 6))
def test_derivatives_of_a_batch_are_those_of_its_members(name: str) -> None:
    ours, _, points, orders = ROWS[name]
    shape = next(iter(points.values()))[0].shape
    members = [x for x, gap in points.values() if x.shape == shape and gap == 1]
    members = np.stack([x for x in members if np.iscomplexobj(x) == np.iscomplexobj(members[0])])
    u, v = directions_of(members[0])
    function = along(ours, "r", u)
    if orders == 2:
        function = along(function, "f", v)
    found = vmap(function)(members)
    # the same routine for each member; sums of a batch may have another order
    expected = [function(x) for x in members]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_a_derivative_that_is_wrong_is_found() -> None:
    x = SYMMETRIC["equal"][0]
    with pytest.raises(AssertionError, match="planted: ff: found"):
        check(lambda a: linalg.det(a) + 1e-6 * (a - x)[0, 0] ** 2, mp.det, x, 1, 2, "planted")
