"""Eigenvalues: eig, eigh, and the tridiagonal, Hessenberg and Schur forms.

Complex and real Schur forms are computed on the host by shifted QR sweeps; all others by LAPACK.
"""

from __future__ import annotations

import cmath
import ctypes
import functools
import importlib.util
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives import costs, solvers, table
from xnp.primitives.equal_values import block_values, nan_where, rotations
from xnp.primitives.linear_systems import solve_system, tridiagonal_products
from xnp.primitives.matrices import (
    adjoint,
    as_columns,
    as_rows,
    check_matrix,
    compare_positions,
    complex_dtype,
    conj,
    diagonal,
    eye,
    lower_half,
    matmul,
    matrix_batch,
    mt,
    real,
    real_dtype,
)
from xnp.primitives.qr import host_product, reflector
from xnp.primitives.solvers import EighImplementation, EigImplementation
from xnp.primitives.table import (
    add,
    bind,
    div,
    fill,
    iota,
    join,
    mul,
    scale_by,
    select,
    slice_dim,
    sub,
    sum_axes,
)
from xprim import (
    EAGER,
    Eager,
    Primitive,
    ShapedArray,
    Zero,
    dimension_names,
    dtypes,
    shaped_array,
    undefined,
)
from xprim.contracts import Builder, by_platform, is_gpu
from xprim.errors import MissingRuleError, message
from xprim.requirements import require, require_equal_dtypes

__all__ = ()


# ----------------------------------------------------------------------------------- schur steps
# What the QR iterations of real and complex matrices share, on NumPy arrays of one matrix.
#
# They follow LAPACK's for small matrices step by step (the search for small subdiagonals, the
# shifts and when they are exceptional, the sweeps), so that eigenvalues come in the order in
# which LAPACK finds them. Source: LAPACK Users' Guide, `gees`, `gebal`, `lahqr`; for the test of
# small elements: M. Ahues and F. Tisseur, A new deflation criterion for the QR algorithm (LAPACK
# Working Note 122, 1997).

EXCEPTIONAL = 10  # sweeps without an eigenvalue after which another shift is tried


def size(x: Any) -> Any:
    """Return |re x| + |im x|, LAPACK's measure of complex numbers."""
    return abs(x.real) + abs(x.imag)


def isolate(a: Any) -> tuple[int, int, Any]:
    """Permute rows and columns in place so that eigenvalues that stand alone come to the corners.

    Returns:
      The first and the last index of the block that remains, and the permutation matrix P of
      P^T A P.
    """
    n = a.shape[0]
    p = np.eye(n, dtype=a.dtype)
    low, high = 0, n - 1
    while (j := _row_alone(a, high)) is not None:
        _exchange(a, p, j, high, high + 1, 0)
        if high == 0:
            return 0, 0, p
        high -= 1
    while (j := _column_alone(a, low, high)) is not None:
        _exchange(a, p, j, low, high + 1, low)
        low += 1
    return low, high, p


def _row_alone(a: Any, high: int) -> int | None:
    """Return the last row that is zero beside its diagonal, among the leading ones."""
    for j in range(high, -1, -1):
        if not np.any(np.delete(a[j, : high + 1], j)):
            return j
    return None


def _column_alone(a: Any, low: int, high: int) -> int | None:
    for j in range(low, high + 1):
        if not np.any(np.delete(a[low : high + 1, j], j - low)):
            return j
    return None


def _exchange(a: Any, p: Any, j: int, k: int, rows: int, first: int) -> None:
    if j == k:
        return
    a[:rows, [j, k]] = a[:rows, [k, j]]
    a[[j, k], first:] = a[[k, j], first:]
    p[:, [j, k]] = p[:, [k, j]]


def active_start(h: Any, low: int, high: int, end: int) -> int:
    """Return the first row of the last block, up to `end`, without a small subdiagonal element."""
    info = np.finfo(h.dtype)
    small = info.tiny * ((high - low + 1) / info.eps)
    for k in range(end, low, -1):
        below = abs(h[k, k - 1].real)
        if below <= small:
            return k
        near = size(h[k - 1, k - 1]) + size(h[k, k])
        if near == 0:
            near += abs(h[k - 1, k - 2].real) if k - 2 >= low else 0
            near += abs(h[k + 1, k].real) if k + 1 <= high else 0
        if below <= info.eps * near and _is_small(h, k, info.eps, small):
            return k
    return low


def deflate(
    h: Any, low: int, high: int, rows: int, sweep: Callable[[int, int, int], None],
    finish: Callable[[int, int], None],
) -> bool:  # fmt: skip
    """Sweep over the last block until all are small, and say whether that came to an end.

    Args:
      h: the Hessenberg matrix.
      low: the first row that is not triangular.
      high: the last one.
      rows: of the largest block that is left as it is.
      sweep: called with the first and the last row of a block, and the number of sweeps since the
        last one was split off.
      finish: called with the first and the last row of a block that is left.
    """
    end, sweeps = high, 0
    limit = 30 * max(10, high - low + 1)
    while end >= low:
        start = active_start(h, low, high, end)
        if start > low:
            h[start, start - 1] = 0
        if end - start < rows:
            finish(start, end)
            end, sweeps = start - 1, 0
            continue
        sweeps += 1
        if sweeps > limit:
            return False
        sweep(start, end, sweeps)
    return True


def _is_small(h: Any, k: int, eps: Any, small: Any) -> bool:
    below, above = size(h[k, k - 1]), size(h[k - 1, k])
    own, gap = size(h[k, k]), size(h[k - 1, k - 1] - h[k, k])
    total = max(own, gap) + max(below, above)
    limit = eps * (min(own, gap) * (max(own, gap) / total))
    return bool(min(below, above) * (max(below, above) / total) <= max(small, limit))


# ------------------------------------------------------------------------------------ schur real
# The real Schur form on the host, by double-shift QR sweeps, one matrix at a time.
#
# Source: J. Francis, The QR transformation (1961), in the form of LAPACK's `lahqr`; the standard
# form of blocks is that of `lanv2`: a block of two rows has equal diagonal elements and opposite
# signs beside it.


def iterate_real(h: Any, z: Any, low: int, high: int) -> bool:
    """Bring a Hessenberg matrix to Schur form in place, and say whether that came to an end.

    Args:
      h: the matrix.
      z: what its vectors are multiplied by.
      low: the first row that is not triangular.
      high: the last one.
    """

    def sweep(start: int, end: int, sweeps: int) -> None:
        _schur_real_sweep(h, z, start, end, _shifts(h, start, end, sweeps))

    def finish(start: int, end: int) -> None:
        if start < end:
            _standardise(h, z, start)

    return deflate(h, low, high, 2, sweep, finish)


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


def _schur_real_sweep(
    h: Any, z: Any, start: int, end: int, shifts: tuple[complex, complex]
) -> None:
    """Chase the bulge of one double shift from the first row to the last."""
    first, v = _schur_real_bulge(h, start, end, shifts)
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


def _schur_real_bulge(
    h: Any, start: int, end: int, shifts: tuple[complex, complex]
) -> tuple[int, Any]:
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


# --------------------------------------------------------------------------------- schur complex
# The complex Schur form on the host, by single-shift QR sweeps, one matrix at a time.
#
# The subdiagonal is kept real. Source: LAPACK's `lahqr` of complex matrices, with J. Wilkinson's
# shift.


def iterate_complex(h: Any, z: Any, low: int, high: int) -> bool:
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
        _schur_complex_sweep(h, z, start, end, _shift(h, start, end, sweeps))

    return deflate(h, low, high, 1, sweep, lambda start, end: None)


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


def _schur_complex_sweep(h: Any, z: Any, start: int, end: int, shift: complex) -> None:
    """Chase the bulge of one shift from the first row to the last."""
    first, v = _schur_complex_bulge(h, start, end, shift)
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


def _schur_complex_bulge(h: Any, start: int, end: int, shift: complex) -> tuple[int, Any]:
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


# --------------------------------------------------------------------------------- schur choices
# Which of all Schur forms the results are: the same choice on the host and in programs.
#
# LAPACK leaves to the last rounding errors what phases its vectors have, and which of two forms a
# block of two rows: [[a, b], [c, a]] or [[a, -c], [-b, a]]. Here |b| is the greater one, and the
# first of the large components of each vector is positive. What remains open is the rotation of
# blocks with b = -c, and the order of eigenvalues between which rounding errors decide.

# A component is large from here on, of the greatest: a ratio that no two are likely to have, so
# that rounding errors do not choose another one.
_LARGE = 0.618


def host_choice(t: Any, z: Any) -> tuple[Any, Any]:
    """Choose the form among those of NumPy arrays T and Z, which are equivalent to it."""
    if not t.size:
        return t, z
    if t.dtype.kind != "c":
        below, above = np.tril(t, -1), np.triu(t, 1).swapaxes(-1, -2)
        turned = ((below != 0) & (np.abs(below) > np.abs(above))).astype(t.dtype)
        kept = 1 - turned.sum(-1) - turned.sum(-2)
        swap = (
            turned - turned.swapaxes(-1, -2) + kept[..., None] * np.eye(t.shape[-1], dtype=t.dtype)
        )
        t, z = swap.swapaxes(-1, -2) @ t @ swap, z @ swap
    sizes = np.abs(z)
    first = np.argmax(sizes >= _LARGE * sizes.max(-2, keepdims=True), -2)
    chosen = np.take_along_axis(z, first[..., None, :], -2)[..., 0, :]
    phases = chosen.conj() / np.abs(chosen)
    return t * phases[..., None, :] * phases[..., None].conj(), z * phases[..., None, :]


def choice(t: Any, z: Any) -> list[Any]:
    """Choose the form among those equivalent to T and Z; for programs."""
    if not dtypes.is_complex(t.aval.dtype):
        swap = _exchanges(t)
        t, z = matmul(mt(swap), matmul(t, swap)), matmul(z, swap)
    n = z.aval.shape[-1]
    phases = _phases(z)
    turned = mul(mul(t, as_rows(phases, n)), as_columns(conj(phases), n))
    return [turned, mul(z, as_rows(phases, n))]


def _exchanges(t: Any) -> Any:
    """Return the matrix that turns by a right angle the blocks in which |c| > |b|."""
    shape, dtype = t.aval.shape, t.aval.dtype
    zeros, n = fill(shape, 0, dtype), shape[-1]
    below = select(compare_positions(shape, "gt"), t, zeros)
    above = select(compare_positions(shape, "gt"), mt(t), zeros)
    greater = bind("gt", bind("abs", below), bind("abs", above))
    turned = table.convert(bind("and", greater, bind("ne", below, zeros)), dtype)
    last = len(shape) - 1
    count = add(as_columns(sum_axes(turned, (last,)), n), as_rows(sum_axes(turned, (last - 1,)), n))
    identity = eye(shape, dtype)
    return add(sub(turned, mt(turned)), sub(identity, mul(identity, count)))


def _phases(z: Any) -> Any:
    shape, rows = z.aval.shape, z.aval.ndim - 2
    n = shape[-1]
    sizes = bind("abs", z)
    limit = table.scale_by(bind("reduce_max", sizes, axes=(rows,)), _LARGE)
    places = iota(shape, rows)
    ends = fill(shape, n, dtypes.int32)
    large = select(bind("ge", sizes, as_rows(limit, n)), places, ends)
    is_first = bind("eq", places, as_rows(bind("reduce_min", large, axes=(rows,)), n))
    chosen = sum_axes(select(is_first, z, fill(shape, 0, z.aval.dtype)), (rows,))
    return div(conj(chosen), table.convert(bind("abs", chosen), z.aval.dtype))


# ----------------------------------------------------------------------------------- tridiagonal
# tridiagonal: A = Q T Q^H with a real symmetric tridiagonal T, for Hermitian A and unitary Q.
#
# Only the triangle that `lower` names is read. The results are the matrix with T on its diagonals
# and the vectors of reflectors beyond them (the other triangle is that of A), the diagonal of T,
# the one beside it, and the factors of the reflectors. Source: LAPACK Users' Guide, `sytrd` and
# `hetrd`.


def _tridiagonal_shape(aval: ShapedArray, *, lower: bool) -> tuple[ShapedArray, ...]:
    batch, n, _ = check_matrix("tridiagonal", aval, square=True)
    require(n != 0, "tridiagonal", "the matrix must have a row at least.", got=aval)
    real = real_dtype(aval.dtype)
    return (aval.strong(), shaped_array((*batch, n), real), shaped_array((*batch, n - 1), real),
            shaped_array((*batch, n - 1), aval.dtype))  # fmt: skip


def _tridiagonal_numpy(a: Any, *, lower: bool) -> Any:
    *batch, n, _ = a.shape
    out, taus = np.array(a), np.zeros((*batch, n - 1), a.dtype)
    kept = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
    for i in np.ndindex(*batch):
        if lower:
            _reduce_lower(out[i], taus[i])
        else:  # reversing both orders turns one triangle into the other
            turned = np.array(out[i][::-1, ::-1])
            _reduce_lower(turned, taus[i][::-1])
            out[i] = turned[::-1, ::-1]
    diagonal = np.diagonal(out, 0, -2, -1).real
    beside = np.diagonal(out, -1 if lower else 1, -2, -1).real
    found = (np.where(kept, out, a), diagonal.copy(), beside.copy(), taus)
    return solvers.host_results(a, found, lower) if n > 1 else found


def _reduce_lower(a: Any, taus: Any) -> None:
    n = a.shape[-1]
    half = np.tril(a, -1)
    a[...] = half + half.conj().T + np.diag(np.diagonal(a).real)
    for i in range(n - 1):
        v, tau = reflector(a[i + 1 :, i])
        beta, v[0], taus[i] = v[0], 1, tau
        block = a[i + 1 :, i + 1 :]
        x = tau * (block @ v)
        w = x - (tau * np.vdot(x, v) / 2) * v
        block -= np.outer(v, w.conj()) + np.outer(w, v.conj())
        a[i + 1 :, i] = v
        a[i + 1, i] = beta


def _tridiagonal_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, lower: bool
) -> Any:
    (aval,) = avals_in
    batch = aval.shape[:-2]
    if aval.size == 0:
        return [b.constant(0, x) for x in avals_out]
    results = [*avals_out, solvers.info_aval(batch)]
    if is_gpu(b.platform):
        config = f"lower = {str(lower).lower()}"
        found = solvers.gpu_call(b, "solver_sytrd_ffi", operands, avals_in, results, config, {0: 0})
    else:
        routine = "hetrd" if dtypes.is_complex(aval.dtype) else "sytrd"
        config = f"uplo = {ord('L' if lower else 'U')} : ui8"
        found = solvers.lapack_call(b, routine, aval.dtype, operands, avals_in, results, config)
    *found, info = found
    if aval.shape[-1] == 1:  # nothing is reduced
        return [
            solvers.nan_on_failure(b, info, batch, x, y)
            for x, y in zip(found, avals_out, strict=True)
        ]
    return solvers.write_results(b, operands[0], aval, info, found, avals_out, lower)


tridiagonal_p: Primitive = Primitive(
    "tridiagonal",
    shape=_tridiagonal_shape,
    numpy=_tridiagonal_numpy,
    stablehlo=by_platform("tridiagonal", cpu=_tridiagonal_stablehlo, gpu=_tridiagonal_stablehlo),
    jvp=undefined("the signs of the reflectors are a convention, and break where columns vanish"),
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: tridiagonal_p),
    sharding=dimension_names.of_last(2),
)


# ------------------------------------------------------------------------------------ hessenberg
# hessenberg: A = Q H Q^H with zeros below the first subdiagonal of H, and unitary Q.
#
# The results are H, with the vectors of the reflectors below its subdiagonal, and their factors;
# `householder_product` of the rows from the second on gives Q beside a first row and column of
# the identity. Source: LAPACK Users' Guide, `gehrd`.


def _hessenberg_shape(aval: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, n, _ = check_matrix("hessenberg", aval, square=True)
    return aval.strong(), shaped_array((*batch, max(n - 1, 0)), aval.dtype)


def _hessenberg_numpy(a: Any) -> Any:
    out = np.array(a)
    taus = np.zeros((*a.shape[:-2], max(a.shape[-1] - 1, 0)), a.dtype)
    for i in np.ndindex(a.shape[:-2]):
        reduce_in_place(out[i], taus[i], 0, a.shape[-1] - 1)
    return solvers.host_results(a, (out, taus)) if a.shape[-1] > 1 else (out, taus)


def reduce_in_place(a: Any, taus: Any, low: int, high: int) -> None:
    """Reduce rows and columns `low` to `high` of one matrix, the rest being triangular already."""
    for i in range(low, high):
        v, tau = reflector(a[i + 1 : high + 1, i])
        beta, v[0], taus[i] = v[0], 1, tau
        block = a[: high + 1, i + 1 : high + 1]
        block -= tau * np.outer(block @ v, v.conj())
        block = a[i + 1 : high + 1, i + 1 :]
        block -= np.conj(tau) * np.outer(v, v.conj() @ block)
        a[i + 1 : high + 1, i] = v
        a[i + 1, i] = beta


def _hessenberg_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    (aval,) = avals_in
    batch, n = aval.shape[:-2], aval.shape[-1]
    if aval.size == 0 or n == 1:
        return [operands[0], b.constant(0, avals_out[1])]
    config = f"low = 1 : i32, high = {n} : i32"
    results = [*avals_out, solvers.info_aval(batch)]
    *found, info = solvers.lapack_call(b, "gehrd", aval.dtype, operands, avals_in, results, config)
    return solvers.write_results(b, operands[0], aval, info, found, avals_out)


_host = solvers.on_host(lambda: hessenberg_p)


def _hessenberg_gpu(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    if avals_out[1].size == 0:
        return [operands[0], b.constant(0, avals_out[1])]
    return _host(b, operands, avals_in, avals_out)


hessenberg_p: Primitive = Primitive(
    "hessenberg",
    shape=_hessenberg_shape,
    numpy=_hessenberg_numpy,
    stablehlo=by_platform("hessenberg", cpu=_hessenberg_stablehlo, gpu=_hessenberg_gpu),
    jvp=undefined("the signs of the reflectors are a convention, and break where columns vanish"),
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: hessenberg_p),
    sharding=dimension_names.of_last(2),
)


# ----------------------------------------------------------------------------------------- schur
# schur: A = Z T Z^H with unitary Z and an upper triangular T.
#
# Of a real matrix T is real, and has blocks of two rows on its diagonal, with equal diagonal
# elements, for each pair of complex eigenvalues. With `compute_schur_vectors` the results are T
# and Z, else T. Where the iteration fails, or where the matrix holds infinities or NaN, they are
# NaN.
#
# A Schur form is not unique. The host takes LAPACK's steps, so its eigenvalues come in LAPACK's
# order, as far as rounding errors leave it (for more than 75 rows, where LAPACK shifts by many
# eigenvalues at once, it may be another one). What LAPACK leaves to rounding errors is chosen:
# see `schur_choices`.


def _schur_shape(aval: ShapedArray, *, compute_schur_vectors: bool) -> tuple[ShapedArray, ...]:
    check_matrix("schur", aval, square=True)
    return (aval.strong(),) * (1 + compute_schur_vectors)


def _schur_numpy(a: Any, *, compute_schur_vectors: bool) -> Any:
    forms, vectors = np.array(a), np.empty_like(a)
    for i in np.ndindex(a.shape[:-2]):
        vectors[i] = np.eye(a.shape[-1])
        if not (np.isfinite(a[i]).all() and _decompose(forms[i], vectors[i])):
            forms[i] = vectors[i] = np.nan
    found = host_choice(forms, vectors)
    return found if compute_schur_vectors else found[:1]


def _decompose(t: Any, z: Any) -> bool:
    """Overwrite a matrix by its Schur form, and `z` by the vectors."""
    n = t.shape[0]
    if n == 0:
        return True
    scale = _scale(t)
    t *= scale
    low, high, order = isolate(t)
    taus = np.zeros(n - 1, t.dtype)
    reduce_in_place(t, taus, low, high)
    z[1:, 1:] = host_product(t[1:, :-1], taus, z[1:, 1:], transpose=False)
    t[...] = np.triu(t, -1)
    iterate = iterate_complex if dtypes.is_complex(t.dtype) else iterate_real
    done: bool = iterate(t, z, low, high)
    z[...] = order @ z
    t /= scale
    return done


def _scale(t: Any) -> Any:
    """Return what brings the greatest element to 1 where products would vanish or overflow."""
    info, greatest = np.finfo(t.dtype), np.max(np.abs(t))
    small = np.sqrt(info.tiny) / info.eps
    return 1 / greatest if 0 < greatest < small or greatest > 1 / small else greatest.dtype.type(1)


def _schur_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, compute_schur_vectors: bool
) -> Any:
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, x) for x in avals_out]
    batch = aval.shape[:-2]
    values = shaped_array(aval.shape[:-1], aval.dtype)
    parts = [values] if dtypes.is_complex(aval.dtype) else [values, values]
    config = f"mode = {ord('V')} : ui8, sort = {ord('N')} : ui8"
    found = solvers.lapack_call(
        b, "gees", aval.dtype, operands, avals_in,
        [aval, aval, *parts, solvers.info_aval(batch), solvers.info_aval(batch)], config,
    )  # fmt: skip
    both = b.traced(choice, found[:2], [aval, aval], key="schur")
    wanted = both[: len(avals_out)]
    return solvers.write_results(b, operands[0], aval, found[-1], wanted, avals_out)


def _cost(avals_in: Any, avals_out: Any, **_params: Any) -> float:
    # some 15 microseconds for each of about 3 n steps in each of about 2 n sweeps
    return float(avals_in[0].size * 90_000)


schur_p: Primitive = Primitive(
    "schur",
    shape=_schur_shape,
    numpy=_schur_numpy,
    stablehlo=by_platform("schur", cpu=_schur_stablehlo, gpu=solvers.on_host(lambda: schur_p)),
    jvp=undefined("its vectors have phases, or rotations of blocks, that nothing determines; what "
                  "is made of it, such as scipy.linalg.sqrtm and solve_sylvester, has derivatives"),
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: schur_p),
    eager=_cost,
    sharding=dimension_names.of_last(2),
)  # fmt: skip


# ------------------------------------------------------------------------------------------ eigh
# eigh: eigenvectors V and ascending eigenvalues w of Hermitian matrices, A V = V diag(w).
#
# Only the triangle that `lower` names is read. Where LAPACK fails, the results are NaN. Source of
# the derivative: M. Giles, An extended collection of matrix derivative results for forward and
# reverse mode automatic differentiation (2008), section 3.1; of equal eigenvalues see
# `equal_values`.


def _eigh_shape(
    aval: ShapedArray, *, lower: bool, implementation: EighImplementation | None = None
) -> tuple[ShapedArray, ...]:
    batch, n, _ = check_matrix("eigh", aval, square=True)
    return (shaped_array(aval.shape, aval.dtype),
            shaped_array((*batch, n), real_dtype(aval.dtype)))  # fmt: skip


def _eigh_numpy(a: Any, *, lower: bool, implementation: EighImplementation | None = None) -> Any:
    if solvers.is_for_compiler(implementation, EighImplementation.QR):
        return solvers.by_compiler(eigh_p, a, {"lower": lower, "implementation": implementation})
    solvers.check_choice("eigh", "implementation", implementation, EighImplementation.QR)
    triangle: Any = "L" if lower else "U"
    try:
        w, v = np.linalg.eigh(a, triangle)
        return solvers.host_results(a, (v, w), lower)
    except np.linalg.LinAlgError:
        pass
    v, w = np.full_like(a, np.nan), np.full(a.shape[:-1], np.nan, real_dtype(a.dtype))
    for i in np.ndindex(a.shape[:-2]):
        try:
            w[i], v[i] = np.linalg.eigh(a[i], triangle)
        except np.linalg.LinAlgError:
            continue  # stays NaN
    return solvers.host_results(a, (v, w), lower)


def _eigh_lapack(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, lower: bool,
    implementation: EighImplementation | None = None,
) -> Any:  # fmt: skip
    solvers.check_choice("eigh", "implementation", implementation, EighImplementation.QR)
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, x) for x in avals_out]
    routine = "heevd" if dtypes.is_complex(aval.dtype) else "syevd"
    config = f"mode = {ord('V')} : ui8, uplo = {ord('L' if lower else 'U')} : ui8"
    results = [*avals_out, solvers.info_aval(aval.shape[:-2])]
    *found, info = solvers.lapack_call(b, routine, aval.dtype, operands, [aval], results, config)
    return solvers.write_results(b, operands[0], aval, info, found, avals_out, lower)


_GPU_ALGORITHMS = {None: 0, EighImplementation.QR: 1, EighImplementation.JACOBI: 2}


def _eigh_gpu(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, lower: bool,
    implementation: EighImplementation | None = None,
) -> Any:  # fmt: skip
    known = EighImplementation.QR, EighImplementation.JACOBI
    solvers.check_choice("eigh", "implementation", implementation, *known)
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, x) for x in avals_out]
    number = _GPU_ALGORITHMS[implementation]
    config = f"algorithm = {number} : ui8, lower = {str(lower).lower()}"
    results = [*avals_out, solvers.info_aval(aval.shape[:-2])]
    *found, info = solvers.gpu_call(
        b, "solver_syevd_ffi", operands, [aval], results, config, {0: 0}
    )
    return solvers.write_results(b, operands[0], aval, info, found, avals_out, lower)


def _eigh_jvp(primals: Any, tangents: Any, *, lower: bool, **params: Any) -> Any:
    # with C = V^H dA V:  dw = diag(C),  dV = V X,  X_ij = C_ij / (w_j - w_i)
    (a,), (a_dot,) = primals, tangents
    outs = eigh_p.bind(a, lower=lower, **params)
    v, w = outs
    if type(a_dot) is Zero:
        return outs, tuple([Zero(y.aval) for y in outs])
    whole, change = [_hermitian_part(x, lower) for x in (a, a_dot)]
    c = matmul(adjoint(v), matmul(change, v))
    x, w_dot = rotations(c, block_values(w, v, v, whole))
    return outs, (matmul(v, x), w_dot)


def _hermitian_part(x: Any, lower: bool) -> Any:
    half = lower_half(x if lower else adjoint(x))
    return add(half, adjoint(half))


eigh_p: Primitive = Primitive(
    "eigh",
    shape=_eigh_shape,
    numpy=_eigh_numpy,
    stablehlo=by_platform("eigh", cpu=_eigh_lapack, gpu=_eigh_gpu),
    jvp=_eigh_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: eigh_p),
    sharding=dimension_names.of_last(2),
)


# ------------------------------------------------------------------------------------------- eig
# eig: eigenvalues and eigenvectors of square matrices, A V = V diag(w), U^H A = diag(w) U^H.
#
# The results are complex: w, then the left vectors U, then the right vectors V, as far as
# requested. Vectors have length one, and their largest component is real where LAPACK's is. Where
# LAPACK fails, or where the matrix holds infinities or NaN, the results are NaN. Source of the
# derivative: M. Giles, An extended collection of matrix derivative results (2008), section 3.1:
# dw = diag(V^-1 dA V), and, where it is enabled, dV = V C with C_ij = (V^-1 dA V)_ij / (w_j -
# w_i), up to a change of each vector along itself. That one keeps its length one and its largest
# component real, as LAPACK's normalisation does. The left vectors are the right ones of A^H.


def _eig_shape(aval: ShapedArray, *, compute_left_eigenvectors: bool,
           compute_right_eigenvectors: bool,
           enable_eigvec_derivs: bool,
           implementation: EigImplementation | None = None) -> tuple[ShapedArray, ...]:  # fmt: skip
    batch, n, _ = check_matrix("eig", aval, square=True)
    dtype = complex_dtype(aval.dtype)
    vectors = shaped_array(aval.shape, dtype)
    count = int(compute_left_eigenvectors) + int(compute_right_eigenvectors)
    return (shaped_array((*batch, n), dtype), *[vectors] * count)


def _eig_numpy(a: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
           enable_eigvec_derivs: bool, implementation: EigImplementation | None = None,
           ) -> Any:  # fmt: skip
    # NumPy has these in double precision alone, which finds the eigenvalues in another order.
    is_single = a.size and complex_dtype(a.dtype) == dtypes.complex64
    if (is_single and EAGER.backend.compiles) or solvers.is_for_compiler(
        implementation, EigImplementation.LAPACK
    ):
        params = {
            "compute_left_eigenvectors": compute_left_eigenvectors,
            "compute_right_eigenvectors": compute_right_eigenvectors,
            "enable_eigvec_derivs": enable_eigvec_derivs,
            "implementation": implementation,
        }
        return solvers.by_compiler(eig_p, a, params)  # fmt: skip
    solvers.check_choice("eig", "implementation", implementation, EigImplementation.LAPACK)
    dtype = complex_dtype(a.dtype)
    w = np.full(a.shape[:-1], complex(np.nan, np.nan), dtype)
    left, right = np.full(a.shape, complex(np.nan, np.nan), dtype), None
    right = left.copy()
    for i in np.ndindex(a.shape[:-2]):
        if not (a.shape[-1] and np.isfinite(a[i]).all()):
            continue  # stays NaN
        try:
            if not (compute_left_eigenvectors or compute_right_eigenvectors):
                w[i] = np.linalg.eigvals(a[i])
                continue
            w[i], right[i] = np.linalg.eig(a[i])
            if compute_left_eigenvectors:
                left[i] = _find_left_vectors(right[i])
        except np.linalg.LinAlgError:
            continue  # stays NaN
    wanted = [(left, compute_left_eigenvectors), (right, compute_right_eigenvectors)]
    return (w, *[v for v, requested in wanted if requested])


def _find_left_vectors(right: Any) -> Any:
    """Return the left vectors: the columns of V^-H, of length one, largest component real."""
    left = np.linalg.inv(right).conj().T
    left = left / np.linalg.norm(left, axis=0)
    largest = left[np.argmax(np.abs(left), axis=0), np.arange(left.shape[1])]
    return left * (np.abs(largest) / largest)


def _eig_lapack(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool, enable_eigvec_derivs: bool,
    implementation: EigImplementation | None = None,
) -> Any:  # fmt: skip
    solvers.check_choice("eig", "implementation", implementation, EigImplementation.LAPACK)
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, x) for x in avals_out]
    wanted = compute_left_eigenvectors, compute_right_eigenvectors
    config = ", ".join([
        f"compute_{side} = {ord('V' if requested else 'N')} : ui8"
        for side, requested in zip(("left", "right"), wanted, strict=True)
    ])  # fmt: skip
    found = solvers.lapack_call(
        b, "geev", aval.dtype, operands, [aval], _call_results(aval), config
    )
    return _results(b, found, aval, wanted, avals_out)


def _call_results(aval: ShapedArray) -> list[ShapedArray]:
    """Return the results of a call: the values (real and imaginary parts of a real matrix)."""
    values = shaped_array(aval.shape[:-1], aval.dtype)
    vectors = shaped_array(aval.shape, complex_dtype(aval.dtype))
    parts = [values] if dtypes.is_complex(aval.dtype) else [values, values]
    return [*parts, vectors, vectors, solvers.info_aval(aval.shape[:-2])]


def _results(
    b: Builder, found: list[str], aval: ShapedArray, wanted: tuple[bool, bool], avals_out: Any
) -> list[str]:
    """Write the results of ours from those of a call."""
    *w, left, right, info = found
    if len(w) == 2:
        part = shaped_array(aval.shape[:-1], aval.dtype)
        w = b.op("stablehlo.complex", w, [part, part], avals_out[:1])
    chosen = [*w, *[v for v, requested in zip((left, right), wanted, strict=True) if requested]]
    batch = aval.shape[:-2]
    return [
        solvers.nan_on_failure(b, info, batch, x, y) for x, y in zip(chosen, avals_out, strict=True)
    ]


def _eig_gpu(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool, enable_eigvec_derivs: bool,
    implementation: EigImplementation | None = None,
) -> Any:  # fmt: skip
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, x) for x in avals_out]
    wanted = compute_left_eigenvectors, compute_right_eigenvectors
    if implementation is EigImplementation.CUSOLVER:
        return _cusolver(b, operands, aval, avals_out, wanted)
    # a routine of the plugin's that has LAPACK on the host, or MAGMA, do it
    magma = {None: "auto", EigImplementation.MAGMA: "on"}.get(implementation, "off")
    left, right = [str(requested).lower() for requested in wanted]
    config = f'left = {left}, magma = "{magma}", right = {right}'
    target = f"hybrid_eig_{'comp' if dtypes.is_complex(aval.dtype) else 'real'}"
    found = solvers.gpu_call(b, target, operands, [aval], _call_results(aval), config)
    return _results(b, found, aval, wanted, avals_out)


def _cusolver(
    b: Builder, operands: Any, aval: ShapedArray, avals_out: Any, wanted: tuple[bool, bool]
) -> list[str]:
    """Write the call of cuSOLVER's routine, which knows no left vectors."""
    if b.platform == "rocm" or wanted[0]:
        raise ValueError(message(
            "eig", f"{EigImplementation.CUSOLVER} is not available here.",
            got=f"a program for {b.platform}, compute_left_eigenvectors={wanted[0]}",
            expected="a program for cuda without left eigenvectors",
        ))  # fmt: skip
    batch, values = aval.shape[:-2], avals_out[0]
    config = f"left = false, right = {str(wanted[1]).lower()}"
    results = [aval, values, aval, aval, solvers.info_aval(batch)]
    _, w, _, right, info = solvers.gpu_call(b, "solver_geev_ffi", operands, [aval], results, config)
    found = [w]
    if wanted[1] and dtypes.is_complex(aval.dtype):
        found.append(right)
    elif wanted[1]:
        found += b.traced(_vectors_of_pairs, [w, right], [values, aval], key="vectors of geev")
    return [
        solvers.nan_on_failure(b, info, batch, x, y) for x, y in zip(found, avals_out, strict=True)
    ]


def _vectors_of_pairs(w: Any, packed: Any) -> list[Any]:
    """Return complex vectors of real matrices, as LAPACK's `geev` packs them.

    The two columns of a pair of conjugate values hold the real and the imaginary part of the vector
    of the first of them, whose imaginary part is positive.
    """
    n, last = packed.aval.shape[-1], packed.aval.ndim - 1
    sizes = bind("imag", w)
    none = fill(sizes.aval.shape, 0, sizes.aval.dtype)
    first, second = [as_rows(bind(name, sizes, none), n) for name in ("gt", "lt")]
    zeros = fill(packed.aval.shape, 0, packed.aval.dtype)
    border = slice_dim(zeros, last, 0, 1)
    after = table.join([slice_dim(packed, last, 1, n), border], last)
    before = table.join([border, slice_dim(packed, last, 0, n - 1)], last)
    re = select(second, before, packed)
    im = select(first, after, select(second, bind("neg", packed), zeros))
    return [bind("complex", re, im)]


def _eig_jvp(primals: Any, tangents: Any, *, compute_left_eigenvectors: bool,
         compute_right_eigenvectors: bool, enable_eigvec_derivs: bool, **chosen: Any,
         ) -> Any:  # fmt: skip
    (a,), (a_dot,) = primals, tangents
    params = {"compute_left_eigenvectors": compute_left_eigenvectors,
              "compute_right_eigenvectors": compute_right_eigenvectors,
              "enable_eigvec_derivs": enable_eigvec_derivs, **chosen}  # fmt: skip
    if type(a_dot) is Zero:
        known = eig_p.bind(a, **params)
        return known, tuple([Zero(y.aval) for y in known])
    vectors = compute_left_eigenvectors or compute_right_eigenvectors
    if vectors and not enable_eigvec_derivs:
        raise MissingRuleError(message(
            "eig",
            "the eigenvectors of a general matrix have no derivative: their scale is a convention.",
            hint="enable_eigvec_derivs=True takes LAPACK's; eigvals has one, and eigh for "
            "symmetric matrices",
        ))  # fmt: skip
    # the derivative of the values does not depend on the scale of the vectors that it is made of
    everything = {**params, "compute_left_eigenvectors": compute_left_eigenvectors,
                  "compute_right_eigenvectors": True, "enable_eigvec_derivs": True}  # fmt: skip
    w, *left, v = eig_p.bind(a, **everything)
    a_dot = table.convert(a_dot, v.aval.dtype)
    change = matmul(_inverse_of_vectors(v), matmul(a_dot, v))
    outs, dots = [w], [eigenvalue_tangents_p.bind(change, w, v, a, transposed=False)[0]]
    if compute_left_eigenvectors:
        (u,) = left
        outs.append(u)
        inner = matmul(_inverse_of_vectors(u), matmul(adjoint(a_dot), u))
        dots.append(_vectors_dot(u, conj(w), inner))
    if compute_right_eigenvectors:
        outs.append(v)
        dots.append(_vectors_dot(v, w, change))
    return tuple(outs), tuple(dots)


def _vectors_dot(v: Any, w: Any, change: Any) -> Any:
    """Return the derivative of vectors V, from V^-1 dA V, that keeps their normalisation."""
    n = v.aval.shape[-1]
    gaps = sub(as_rows(w, n), as_columns(w, n))  # w_j - w_i
    own, equal = compare_positions(gaps.aval.shape, "eq"), _are_equal_values(v, w, gaps)
    zeros, ones = table.scalar_like(gaps, 0), table.scalar_like(gaps, 1)
    found = select(equal, zeros, div(change, select(equal, ones, gaps)))
    # which vectors equal values have is open: a turn among them has no derivative
    unknown = nan_where(bind("and", equal, bind("not", own)), change)
    turned = matmul(v, add(found, unknown))
    rows = (v.aval.ndim - 2,)
    along = real(sum_axes(mul(conj(v), turned), rows))
    sizes = real(mul(v, conj(v)))
    largest = bind("eq", sizes, as_rows(bind("reduce_max", sizes, axes=rows), n))
    phases = sum_axes(select(largest, div(turned, select(largest, v, ones)), zeros), rows)
    shift = bind("complex", along, bind("imag", phases))
    return sub(turned, mul(v, as_rows(shift, n)))


# --- eigenvalue_tangents ------------------------------------------------------------------------
# diag(C) for C = V^-1 dA V: how the eigenvalues of A change. Transposed, diag(d) for numbers d.
#
# Where some of them are equal and A changes in a second direction that couples their vectors, the
# tangents of the single values do not tell that of a function of them: it is NaN then.


def _values_shape(
    x: ShapedArray, w: ShapedArray, v: ShapedArray, a: ShapedArray, *, transposed: bool
) -> tuple[ShapedArray, ...]:
    for matrix in (v, a):
        check_matrix("eigenvalue_tangents", matrix, square=True)
    for other in (x, w):
        require_equal_dtypes("eigenvalue_tangents", other, v)
    return (shaped_array((v if transposed else w).shape, w.dtype),)


def _values_numpy(x: Any, w: Any, v: Any, a: Any, *, transposed: bool) -> Any:
    if not transposed:
        return (np.ascontiguousarray(np.diagonal(x, axis1=-2, axis2=-1)),)
    return (x[..., None, :] * np.eye(x.shape[-1], dtype=x.dtype),)


def _values_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, transposed: bool
) -> Any:
    return b.traced(
        lambda x: [_with_rows(x) if transposed else diagonal(x)], operands[:1], avals_in[:1],
        key=("eigenvalue_tangents", transposed),
    )  # fmt: skip


def _with_rows(d: Any) -> Any:
    n = d.aval.shape[-1]
    return mul(eye((*d.aval.shape, n), d.aval.dtype), as_rows(d, n))


def _values_jvp(primals: Any, tangents: Any, *, transposed: bool) -> Any:
    (x, w, v, a), (x_dot, _, _, a_dot) = primals, tangents
    outs = eigenvalue_tangents_p.bind(*primals, transposed=transposed)
    dot: Any = Zero(outs[0].aval)
    if type(x_dot) is not Zero:
        (dot,) = eigenvalue_tangents_p.bind(x_dot, w, v, a, transposed=transposed)
    if type(a_dot) is not Zero:
        n = w.aval.shape[-1]
        gaps = sub(as_rows(w, n), as_columns(w, n))
        off_diagonal = compare_positions(gaps.aval.shape, "ne")
        others = bind("and", _are_equal_values(v, w, gaps), off_diagonal)
        if transposed and type(x_dot) is Zero:  # of a plain sum nothing is unknown
            others = bind("and", others, bind("ne", as_rows(x, n), as_columns(x, n)))
        change = matmul(table.convert(a_dot, v.aval.dtype), v)
        unknown = nan_where(others, matmul(_inverse_of_vectors(v), change))
        if not transposed:
            unknown = sum_axes(mul(x, unknown), (v.aval.ndim - 1,))
        dot = unknown if type(dot) is Zero else add(dot, unknown)
    return outs, (dot,)


def _values_transpose(
    cts: Any, x: Any, w: Any, v: Any, a: Any, *, transposed: bool
) -> tuple[Any, ...]:
    (x_bar,) = eigenvalue_tangents_p.bind(cts[0], w, v, a, transposed=not transposed)
    return x_bar, *[Zero(y.aval) for y in (w, v, a)]


eigenvalue_tangents_p: Primitive = Primitive(
    "eigenvalue_tangents",
    shape=_values_shape,
    numpy=_values_numpy,
    stablehlo=_values_stablehlo,
    jvp=_values_jvp,
    transpose=_values_transpose,
    batch=matrix_batch(lambda: eigenvalue_tangents_p),
    sharding=dimension_names.of_last(2),
)


def _inverse_of_vectors(v: Any) -> Any:
    """Return the inverse of V, NaN where it has none to rounding: such values have no derivative.

    The vectors of a defective matrix, as [[1, 1], [0, 1]], are multiples of each other.
    """
    inverse = solve_system(v, eye(v.aval.shape, v.aval.dtype))
    condition = _condition(bind("stop_gradient", v), bind("stop_gradient", inverse))
    bound = fill(condition.aval.shape, 0.1 / float(dtypes.finfo(condition.aval.dtype).eps),
                   condition.aval.dtype)  # fmt: skip
    shape, last = v.aval.shape, v.aval.ndim - 2
    regular = table.broadcast_to(bind("lt", condition, bound), shape, tuple(range(last)))
    return select(regular, inverse, fill(shape, math.nan, v.aval.dtype))


def _condition(v: Any, inverse: Any) -> Any:
    last = v.aval.ndim - 2
    return mul(*[bind("sqrt", sum_axes(real(mul(x, conj(x))), (last, last + 1)))
                 for x in (v, inverse)])  # fmt: skip


def _are_equal_values(v: Any, w: Any, gaps: Any) -> Any:
    """Return which values are equal to rounding, which vectors near to each other enlarge."""
    w, v, gaps = [bind("stop_gradient", x) for x in (w, v, gaps)]
    condition = _condition(v, solve_system(v, eye(v.aval.shape, v.aval.dtype)))
    last = w.aval.ndim - 1
    unit = float(dtypes.finfo(condition.aval.dtype).eps)
    bound = mul(bind("reduce_max", bind("abs", w), axes=(last,)), scale_by(condition, 8 * unit))
    bound = table.broadcast_to(bound, gaps.aval.shape, tuple(range(last)))
    return bind("not", bind("gt", bind("abs", gaps), bound))


eig_p: Primitive = Primitive(
    "eig",
    shape=_eig_shape,
    numpy=_eig_numpy,
    stablehlo=by_platform("eig", cpu=_eig_lapack, gpu=_eig_gpu),
    jvp=_eig_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: eig_p),
    sharding=dimension_names.of_last(2),
)


# -------------------------------------------------------------------------------- tridiagonal eigen
# eigh_tridiagonal: eigenvalues, and vectors, of real symmetric tridiagonal matrices.
#
# LAPACK has routines for them that take n^2 operations for the values (`sterf`, QR without square
# roots) and, by divide and conquer, not many more for the vectors (`stevd`). Neither NumPy nor
# jaxlib has a function that calls these, but the library of NumPy's own linear algebra holds them,
# and `ctypes` finds them there by name. Where it does not, and in programs for other platforms, the
# matrices are those of `eigh`.

# ----------------------------------------------------------------------------------------- lapack
# Integers are passed as numbers of 64 bits. A library whose integers have 32 reads the first half,
# which on processors that store the lowest byte first is the same number.

_NAMES = ("scipy_{}_64_", "{}_64_", "scipy_{}_", "{}_")  # as builds of NumPy name a routine
_LETTERS = {dtypes.float32: "s", dtypes.float64: "d"}
_LEAST_ON_HOST = 64  # rows: `eigh` decomposes fewer in the time that entering Python takes


@functools.lru_cache(maxsize=4)
def _lapack(routine: str) -> Any:
    """Return a routine of the LAPACK that NumPy is linked with, or None where none is found."""
    module = importlib.util.find_spec("numpy.linalg._umath_linalg")
    if module is None or module.origin is None or sys.byteorder != "little":
        return None
    try:
        library = ctypes.CDLL(module.origin)
    except OSError:
        return None
    found = [getattr(library, name.format(routine), None) for name in _NAMES]
    return next((f for f in found if f is not None), None)


def _integer(value: int) -> Any:
    return ctypes.byref(ctypes.c_int64(value))


def _decompose_tridiagonal(d: Any, e: Any, w: Any, v: Any) -> bool:
    """Fill the values and, unless v is None, the vectors of a matrix; return whether LAPACK did."""
    n, letter = d.shape[0], _LETTERS[d.dtype]
    info, off = ctypes.c_int64(), np.append(e, d.dtype.type(0))
    w[:] = d
    if v is None:
        _lapack(f"{letter}sterf")(_integer(n), w.ctypes, off.ctypes, ctypes.byref(info))
        return not info.value
    columns = np.empty((n, n), d.dtype)  # one after the other, as Fortran has them
    work = np.empty(1 + 4 * n + n * n, d.dtype)
    integers = np.empty(3 + 5 * n, np.int64)
    _lapack(f"{letter}stevd")(
        ctypes.c_char_p(b"V"), _integer(n), w.ctypes, off.ctypes, columns.ctypes, _integer(n),
        work.ctypes, _integer(work.size), integers.ctypes, _integer(integers.size),
        ctypes.byref(info), ctypes.c_size_t(1),
    )  # fmt: skip
    v[...] = columns.T
    return not info.value


# ------------------------------------------------------------------------------- eigh tridiagonal
# eigh_tridiagonal: ascending eigenvalues w and, with `vectors`, the vectors V before them.
#
# The operands are the diagonal, of n elements, and the one beside it, of n - 1. Matrices that hold
# infinities or NaN have NaN, as `eigh` has. The derivatives are those of `eigh`.


def _shape(d: ShapedArray, e: ShapedArray, *, vectors: bool) -> tuple[ShapedArray, ...]:
    n = d.shape[-1] if d.ndim else 0
    require(
        d.dtype in _LETTERS and e.dtype == d.dtype, "eigh_tridiagonal",
        "the diagonals must be float32 or float64, both alike.", got={"d": d, "e": e},
        error=TypeError,
    )  # fmt: skip
    require(
        n > 0 and e.shape == (*d.shape[:-1], n - 1), "eigh_tridiagonal",
        "the diagonals do not fit.", got={"d": d, "e": e},
        expected="shapes (..., n) and (..., n - 1), n at least 1",
    )  # fmt: skip
    return (*[shaped_array((*d.shape, n), d.dtype)] * vectors, d.strong())


def _numpy(d: Any, e: Any, *, vectors: bool) -> Any:
    w = np.empty(d.shape, d.dtype)
    v = np.empty((*d.shape, d.shape[-1]), d.dtype) if vectors else None
    _fill((d, e), (w,) if v is None else (v, w), vectors=vectors)
    return (w,) if v is None else (v, w)


def _fill(operands: Any, results: Any, *, vectors: bool) -> None:
    (d, e), (*v, w) = operands, results
    if _lapack("dsterf") is None:
        found = eigh_p.rule("numpy")(_dense_numpy(d, e), lower=True)
        for result, value in zip(results, found[-len(results) :], strict=True):
            np.copyto(result, value)
        return
    is_finite = np.isfinite(d).all(-1) & np.isfinite(e).all(-1)
    for i in np.ndindex(d.shape[:-1]):
        done = is_finite[i] and _decompose_tridiagonal(
            d[i], e[i], w[i], v[0][i] if vectors else None
        )
        if not done:
            for result in results:
                result[i] = np.nan


def _dense_numpy(d: Any, e: Any) -> Any:
    n = d.shape[-1]
    a, places = np.zeros((*d.shape, n), d.dtype), np.arange(n)
    a[..., places, places] = d
    a[..., places[1:], places[:-1]] = e
    return a


def _tridiagonal_host(avals_in: Any, avals_out: Any, *, vectors: bool) -> Any:
    d, _ = avals_in
    is_long = d.shape[-1] >= _LEAST_ON_HOST and _lapack("dsterf") is not None
    return tuple(range(d.ndim - 1)) if is_long else None


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, vectors: bool) -> Any:
    def decompose(d: Any, e: Any) -> Any:
        return eigh_p.bind(_dense(d, e), lower=True)[not vectors :]

    return b.traced(decompose, operands, avals_in, key=("eigh_tridiagonal", vectors))


def _dense(d: Any, e: Any) -> Any:
    """Return the matrices of diagonals."""
    n = d.aval.shape[-1]
    below, above = _beside(e)
    matrix = fill((*d.aval.shape, n), 0, d.aval.dtype)
    for k, entries in ((-1, below), (0, d), (1, above)):
        at = compare_positions(matrix.aval.shape, "eq", k)
        matrix = select(at, as_columns(entries, n), matrix)
    return matrix


def _beside(e: Any) -> tuple[Any, Any]:
    """Return the diagonals below and above the main one, in each the element of its row."""
    if type(e) is Zero:
        zero = Zero(shaped_array((*e.aval.shape[:-1], e.aval.shape[-1] + 1), e.aval.dtype))
        return zero, zero
    last = e.aval.ndim - 1
    none = fill((*e.aval.shape[:-1], 1), 0, e.aval.dtype)
    return join([none, e], last), join([e, none], last)


def _jvp(primals: Any, tangents: Any, *, vectors: bool) -> Any:
    # with C = V^T dA V:  dw = diag(C),  dV = V X,  X_ij = C_ij / (w_j - w_i)
    (d, e), (d_dot, e_dot) = primals, tangents
    if type(d_dot) is Zero and type(e_dot) is Zero:
        known = eigh_tridiagonal_p.bind(d, e, vectors=vectors)
        return known, tuple([Zero(y.aval) for y in known])
    v, w = eigh_tridiagonal_p.bind(d, e, vectors=True)
    below, above = _beside(e_dot)
    terms = tridiagonal_products((below, d_dot, above), v)
    change = functools.reduce(lambda x, y: bind("add", x, y), terms)
    x, w_dot = rotations(matmul(adjoint(v), change), block_values(w, v, v, _dense(d, e)))
    return (v, w)[not vectors :], (*[matmul(v, x)] * vectors, w_dot)


eigh_tridiagonal_p: Primitive = Primitive(
    "eigh_tridiagonal",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: eigh_tridiagonal_p),
    eager=Eager(costs.nothing, host=_tridiagonal_host, fill=_fill),
    sharding=dimension_names.of_last(1),
)
