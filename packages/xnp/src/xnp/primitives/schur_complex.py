"""The complex Schur form on the host, by single-shift QR sweeps, one matrix at a time.

The subdiagonal is kept real. Source: LAPACK's `lahqr` of complex matrices, with J. Wilkinson's
shift.

Neighbours: `schur_steps` has what it shares with `schur_real`.
"""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np

from xnp.primitives.reflectors import reflector
from xnp.primitives.schur_steps import EXCEPTIONAL, deflated, size

__all__ = ()


def iterate(h: Any, z: Any, low: int, high: int) -> bool:
    """Bring a Hessenberg matrix to Schur form in place, and say whether that came to an end.

    Args:
      h: the matrix.
      z: what its vectors are multiplied by.
      low: the first row that is not triangular.
      high: the last one.
    """
    for i in range(low + 1, high + 1):
        _make_real(h, z, i, high)

    def sweep(start: int, end: int, sweeps: int) -> None:
        _sweep(h, z, start, end, _shift(h, start, end, sweeps))

    return deflated(h, low, high, 1, sweep, lambda start, end: None)


def _make_real(h: Any, z: Any, i: int, high: int) -> None:
    """Multiply row and column i by a phase that makes the subdiagonal element positive."""
    if h[i, i - 1].imag == 0:
        return
    phase = h[i, i - 1] / size(h[i, i - 1])
    phase = np.conj(phase) / abs(phase)
    h[i, i - 1] = abs(h[i, i - 1])
    h[i, i:] *= phase
    h[: min(high, i + 1) + 1, i] *= np.conj(phase)
    z[:, i] *= np.conj(phase)


def _shift(h: Any, start: int, end: int, sweeps: int) -> complex:
    """Return the eigenvalue of the last two rows that is nearer to the last element."""
    if sweeps % (2 * EXCEPTIONAL) == 0:
        return complex(0.75 * abs(h[end, end - 1].real) + h[end, end])
    if sweeps % EXCEPTIONAL == 0:
        return complex(0.75 * abs(h[start + 1, start].real) + h[start, start])
    t = complex(h[end, end])
    u = cmath.sqrt(complex(h[end - 1, end])) * cmath.sqrt(complex(h[end, end - 1]))
    s = size(u)
    if s == 0:
        return t
    x = (complex(h[end - 1, end - 1]) - t) / 2
    s = max(s, size(x))
    y = s * cmath.sqrt((x / s) ** 2 + (u / s) ** 2)
    if size(x) > 0 and x.real * y.real + x.imag * y.imag < 0:
        y = -y
    shift: complex = t - u * (u / (x + y))
    return shift


def _sweep(h: Any, z: Any, start: int, end: int, shift: complex) -> None:
    """Chase the bulge of one shift from the first row to the last."""
    first, v = _bulge(h, start, end, shift)
    for k in range(first, end):
        if k > first:
            v = h[k : k + 2, k - 1].copy()
        v, tau = reflector(v)
        if k > first:
            h[k, k - 1], h[k + 1, k - 1] = v[0], 0
        v[0] = 1
        block = h[k : k + 2, k:]
        block -= np.outer(np.conj(tau) * v, v.conj() @ block)
        for x in (h[: min(k + 2, end) + 1, k : k + 2], z[:, k : k + 2]):
            x -= np.outer(x @ v, tau * v.conj())
        if k == first and first > start:
            _turn_rest(h, z, first, end, tau)
    _make_last_real(h, z, end)


def _bulge(h: Any, start: int, end: int, shift: complex) -> tuple[int, Any]:
    """Return the row where a sweep begins, and the first column of H - shift there, scaled."""
    eps = np.finfo(h.dtype).eps
    for m in range(end - 1, start - 1, -1):
        v = np.array([h[m, m] - shift, h[m + 1, m].real], h.dtype)
        v /= size(v[0]) + abs(v[1])
        if m == start:
            break
        near = size(v[0]) * (size(h[m, m]) + size(h[m + 1, m + 1]))
        if abs(h[m, m - 1].real) * abs(v[1]) <= eps * near:
            break
    return m, v


def _turn_rest(h: Any, z: Any, m: int, end: int, tau: Any) -> None:
    """Make the subdiagonal real again where a sweep began below the first row of its block."""
    phase = 1 - tau
    phase = phase / abs(phase)
    h[m + 1, m] *= np.conj(phase)
    if m + 2 <= end:
        h[m + 2, m + 1] *= phase
    for j in range(m, end + 1):
        if j == m + 1:
            continue
        h[j, j + 1 :] *= phase
        h[:j, j] *= np.conj(phase)
        z[:, j] *= np.conj(phase)


def _make_last_real(h: Any, z: Any, end: int) -> None:
    last = h[end, end - 1]
    if last.imag == 0:
        return
    h[end, end - 1] = abs(last)
    phase = last / abs(last)
    h[end, end + 1 :] *= np.conj(phase)
    h[:end, end] *= phase
    z[:, end] *= phase
