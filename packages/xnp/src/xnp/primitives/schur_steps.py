"""What the QR iterations of real and complex matrices share, on NumPy arrays of one matrix.

They follow LAPACK's for small matrices step by step (the search for small subdiagonals, the shifts
and when they are exceptional, the sweeps), so that eigenvalues come in the order in which LAPACK
finds them. Source: LAPACK Users' Guide, `gees`, `gebal`, `lahqr`; for the test of small elements:
M. Ahues and F. Tisseur, A new deflation criterion for the QR algorithm (LAPACK Working Note 122,
1997).

Neighbours: `schur_real`, `schur_complex` are the iterations, `schur` the primitive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ()

EXCEPTIONAL = 10  # sweeps without an eigenvalue after which another shift is tried


def size(x: Any) -> Any:
    """Return |re x| + |im x|, LAPACK's measure of complex numbers."""
    return abs(x.real) + abs(x.imag)


def isolated(a: Any) -> tuple[int, int, Any]:
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


def deflated(
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
