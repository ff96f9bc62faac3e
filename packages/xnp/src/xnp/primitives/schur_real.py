"""The real Schur form on the host, by double-shift QR sweeps, one matrix at a time.

Source: J. Francis, The QR transformation (1961), in the form of LAPACK's `lahqr`; the standard form
of blocks is that of `lanv2`: a block of two rows has equal diagonal elements and opposite signs
beside it.

Neighbours: `schur_steps` has what it shares with `schur_complex`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xnp.primitives.reflectors import reflector
from xnp.primitives.schur_steps import EXCEPTIONAL, deflated

__all__ = ()


def iterate(h: Any, z: Any, low: int, high: int) -> bool:
    """Bring a Hessenberg matrix to Schur form in place, and say whether that came to an end.

    Args:
      h: the matrix.
      z: what its vectors are multiplied by.
      low: the first row that is not triangular.
      high: the last one.
    """

    def sweep(start: int, end: int, sweeps: int) -> None:
        _sweep(h, z, start, end, _shifts(h, start, end, sweeps))

    def finish(start: int, end: int) -> None:
        if start < end:
            _standardise(h, z, start)

    return deflated(h, low, high, 2, sweep, finish)


def _shifts(h: Any, start: int, end: int, sweeps: int) -> tuple[complex, complex]:
    """Return the eigenvalues of the last two rows, or a real one of them twice."""
    if sweeps % (2 * EXCEPTIONAL) == 0:
        s = abs(h[end, end - 1]) + abs(h[end - 1, end - 2])
        a, b, c, d = 0.75 * s + h[end, end], -0.4375 * s, s, 0.75 * s + h[end, end]
    elif sweeps % EXCEPTIONAL == 0:
        s = abs(h[start + 1, start]) + abs(h[start + 2, start + 1])
        a, b, c, d = 0.75 * s + h[start, start], -0.4375 * s, s, 0.75 * s + h[start, start]
    else:
        (a, b), (c, d) = h[end - 1 : end + 1, end - 1 : end + 1]
    s = abs(a) + abs(b) + abs(c) + abs(d)
    if s == 0:
        return 0j, 0j
    a, b, c, d = a / s, b / s, c / s, d / s
    mean = (a + d) / 2
    square = (a - mean) * (d - mean) - b * c
    root = math.sqrt(abs(square))
    if square >= 0:
        return complex(mean * s, root * s), complex(mean * s, -root * s)
    first, second = mean + root, mean - root
    nearer = first if abs(first - d) <= abs(second - d) else second
    return complex(nearer * s), complex(nearer * s)


def _sweep(h: Any, z: Any, start: int, end: int, shifts: tuple[complex, complex]) -> None:
    """Chase the bulge of one double shift from the first row to the last."""
    first, v = _bulge(h, start, end, shifts)
    for k in range(first, end):
        count = min(3, end - k + 1)
        if k > first:
            v = h[k : k + count, k - 1].copy()
        v, tau = reflector(v[:count])
        if k > first:
            h[k, k - 1] = v[0]
            h[k + 1 : k + count, k - 1] = 0
        elif first > start:
            h[k, k - 1] *= 1 - tau
        v[0] = 1
        block = h[k : k + count, k:]
        block -= np.outer(tau * v, v @ block)
        for x in (h[: min(k + 3, end) + 1, k : k + count], z[:, k : k + count]):
            x -= np.outer(x @ v, tau * v)


def _bulge(h: Any, start: int, end: int, shifts: tuple[complex, complex]) -> tuple[int, Any]:
    """Return the row where a sweep begins, and the first column of (H - s1)(H - s2) there."""
    s1, s2 = shifts
    eps = np.finfo(h.dtype).eps
    for m in range(end - 2, start - 1, -1):
        scale = abs(h[m, m] - s2.real) + abs(s2.imag) + abs(h[m + 1, m])
        below = h[m + 1, m] / scale
        v = np.array([
            below * h[m, m + 1] + (h[m, m] - s1.real) * ((h[m, m] - s2.real) / scale)
            - s1.imag * (s2.imag / scale),
            below * (h[m, m] + h[m + 1, m + 1] - s1.real - s2.real),
            below * h[m + 2, m + 1],
        ], h.dtype)  # fmt: skip
        v /= np.sum(np.abs(v))
        if m == start:
            break
        near = abs(h[m - 1, m - 1]) + abs(h[m, m]) + abs(h[m + 1, m + 1])
        if abs(h[m, m - 1]) * (abs(v[1]) + abs(v[2])) <= eps * abs(v[0]) * near:
            break
    return m, v


def _standardise(h: Any, z: Any, k: int) -> None:
    """Bring the block at (k, k) to standard form, which splits it where eigenvalues are real."""
    (a, b), (c, d) = h[k : k + 2, k : k + 2].tolist()
    block, cosine, sine = standard_block(a, b, c, d, float(np.finfo(h.dtype).eps))
    h[k : k + 2, k : k + 2] = block
    turn = np.array([[cosine, sine], [-sine, cosine]], h.dtype)
    h[k : k + 2, k + 2 :] = turn @ h[k : k + 2, k + 2 :]
    h[:k, k : k + 2] = h[:k, k : k + 2] @ turn.T
    z[:, k : k + 2] = z[:, k : k + 2] @ turn.T


def standard_block(
    a: float, b: float, c: float, d: float, eps: float
) -> tuple[list[list[float]], float, float]:
    """Return the standard form of [[a, b], [c, d]], and the cosine and sine of the rotation."""
    if c == 0:
        return [[a, b], [c, d]], 1.0, 0.0
    if b == 0:
        return [[d, -c], [0.0, a]], 0.0, 1.0
    if a == d and (b > 0) != (c > 0):
        return [[a, b], [c, d]], 1.0, 0.0
    half = (a - d) / 2
    greatest = max(abs(b), abs(c))
    least = min(abs(b), abs(c)) * math.copysign(1, b) * math.copysign(1, c)
    scale = max(abs(half), greatest)
    z = half / scale * half + greatest / scale * least
    if z < 4 * eps:
        return _equal_diagonal(a, b, c, d)
    z = half + math.copysign(math.sqrt(scale) * math.sqrt(z), half)
    tau = math.hypot(c, z)
    return [[d + z, b - c], [0.0, d - greatest / z * least]], z / tau, c / tau


def _equal_diagonal(
    a: float, b: float, c: float, d: float
) -> tuple[list[list[float]], float, float]:
    """Rotate complex, or nearly equal real, eigenvalues to equal diagonal elements."""
    total, half = b + c, (a - d) / 2
    tau = math.hypot(total, a - d)
    cosine = math.sqrt((1 + abs(total) / tau) / 2)
    sine = -(half / (tau * cosine)) * math.copysign(1, total)
    aa, bb = a * cosine + b * sine, -a * sine + b * cosine
    cc, dd = c * cosine + d * sine, -c * sine + d * cosine
    b, c = bb * cosine + dd * sine, -aa * sine + cc * cosine
    mean = (aa * cosine + cc * sine - bb * sine + dd * cosine) / 2
    if c == 0:
        return [[mean, b], [c, mean]], cosine, sine
    if b == 0:
        return [[mean, -c], [0.0, mean]], -sine, cosine
    if (b > 0) != (c > 0):
        return [[mean, b], [c, mean]], cosine, sine
    above, below = math.sqrt(abs(b)), math.sqrt(abs(c))
    p = math.copysign(above * below, c)
    tau = 1 / math.sqrt(abs(b + c))
    cosine1, sine1 = above * tau, below * tau
    turned = cosine * cosine1 - sine * sine1, cosine * sine1 + sine * cosine1
    return [[mean + p, b - c], [0.0, mean - p]], *turned
