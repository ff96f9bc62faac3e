"""Rules of kind `cost`: by how many nanoseconds a compiled program beats the NumPy rule.

Measured, NumPy 2 against jaxlib 0.12 on two cores, float32, per element: NumPy's vector loops take
0.1-0.5 ns, as XLA's do or less (sin 0.5 against 5 ns, tan 0.4 against 7, sort 90 against 240), so
there XLA only pays by not making the caller wait; the special functions take 70-120 ns against
0.4-10, 16-bit floats 1.4-6 against 0.1-0.3, integer division 5 against 0.2, integer matrix products
0.8 ns a multiply-add against 0.02. Plain arithmetic waits for memory: at 9 million elements NumPy
took 4 ms, XLA 20 ms, most of it for new pages (`eager_costs.new_pages_time`). Figures are powers of
two near those.

A rule may say None, as a primitive without such a rule does: then one pass of a vectorised function
is supposed, 0.25 ns for each element, and 4 ns for floats of 16 bits and fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xprim import ShapedArray, dtypes
from xprim.eager_costs import no_work_of_numpy

__all__ = ()

CostRule = Callable[..., float]
Avals = Sequence[ShapedArray]

view = no_work_of_numpy
"""The rule of operations whose result is a view in NumPy."""

_NARROW = 4.0  # 16-bit floats and the like, which NumPy converts one by one


def nothing(avals_in: Avals, avals_out: Avals, **_params: Any) -> float:
    """Say that NumPy is as fast: its loop is vectorised better."""
    return 0.0


def per_result(nanoseconds: float, narrow: float | None = None) -> CostRule:
    """Return the rule of an operation with work for each element of its results.

    Args:
      nanoseconds: for each element.
      narrow: the same for floats of 16 bits and fewer, where it is more.
    """

    def rule(avals_in: Avals, avals_out: Avals, **_params: Any) -> float:
        return max([
            a.size * (nanoseconds if narrow is None or not _is_narrow(a) else narrow)
            for a in avals_out
        ])  # fmt: skip

    return rule


def _is_narrow(aval: ShapedArray) -> bool:
    return aval.dtype.itemsize < 4 and dtypes.is_inexact(aval.dtype)


def reduction(avals_in: Avals, avals_out: Avals, **_params: Any) -> float:
    """Say what reducing the first operand costs."""
    return avals_in[0].size * 0.5


view = no_work_of_numpy
arithmetic = per_result(1 / 64, _NARROW)
choice = per_result(4.0)
special = per_result(64.0)


def division(avals_in: Avals, avals_out: Avals, **_params: Any) -> float | None:
    """Say what dividing costs: NumPy has no vector loops for integers."""
    return choice(avals_in, avals_out) if dtypes.is_integer(avals_out[0].dtype) else None


_BLAS_DTYPES = frozenset((np.dtype(np.float32), np.dtype(np.float64), *dtypes.COMPLEX))


def product(avals_in: Avals, avals_out: Avals, **_params: Any) -> float:
    """Say what a matrix product or a convolution costs for each of its multiply-adds."""
    a, b, out = avals_in[0], avals_in[1], avals_out[0]
    multiply_adds = math.sqrt(a.size * b.size * out.size)  # (mk)(kn)(mn) = (mkn)^2
    return multiply_adds * (1 / 32 if a.dtype in _BLAS_DTYPES else 2.0)
