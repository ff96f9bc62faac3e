"""Division of complex numbers that leaves the range only where the quotient does.

NumPy and XLA divide as Smith did (Algorithm 116, CACM 1962): with |c| >= |d| the divisor of both
parts is c + d (d / c), which reaches twice the greatest part of the denominator, and the numerators
twice that of the numerator. So where one of the operands is near the end of the range, quarters of
both are divided: an exact scale (after Baudin and Smith, A robust complex division in Scilab, 2012,
section 3, who scale each by itself), and what falls below the range then is nothing beside it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from xnp.primitives.choice_text import chosen, compared
from xnp.primitives.complex_text import of_parts, parts_of
from xnp.primitives.table import elementwise_stablehlo
from xprim import dtypes
from xprim.contracts import Builder

__all__ = ()

_QUARTER = 0.25
_divide = elementwise_stablehlo("stablehlo.divide")


def _far(dtype: np.dtype[Any]) -> float:
    """Return beyond what a part of a number is far out: a quarter of the greatest number."""
    return float(dtypes.finfo(dtype).max) * _QUARTER


# --- NumPy ----------------------------------------------------------------------------------------


def divided(x: Any, y: Any) -> Any:
    """Divide complex arrays; where a step overflows, quarters of those far out."""
    try:
        with np.errstate(over="raise"):
            return np.true_divide(x, y)
    except FloatingPointError:
        parts = np.broadcast_arrays(x.real, x.imag, y.real, y.imag)
        greatest = functools.reduce(np.maximum, map(np.abs, parts))
        factor = np.where(greatest > _far(greatest.dtype), _QUARTER, 1).astype(greatest.dtype)
        with np.errstate(over="ignore"):
            return np.true_divide(_by_parts(x, factor), _by_parts(y, factor))


def _by_parts(z: Any, factor: Any) -> Any:
    """Return complex numbers times real ones, parts apart: infinity times 0j is NaN."""
    out = np.empty(factor.shape, z.dtype)
    out.real, out.imag = z.real * factor, z.imag * factor
    return out


# --- StableHLO ------------------------------------------------------------------------------------


def div_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    """Write a division; of complex numbers, of quarters of those far out."""
    (out,) = avals_out
    if not dtypes.is_complex(out.dtype):
        return _divide(b, operands, avals_in, avals_out)
    x, y = [b.broadcast(z, a, out.shape) for z, a in zip(operands, avals_in, strict=True)]
    (of_x, part), (of_y, _) = parts_of(b, x, out), parts_of(b, y, out)
    sizes = [b.same_type_op("stablehlo.abs", [p], part) for p in (*of_x, *of_y)]
    greatest = sizes[0]
    for size in sizes[1:]:
        greatest = b.same_type_op("stablehlo.maximum", [greatest, size], part)
    is_far = compared(b, "GT", greatest, b.constant(_far(part.dtype), part), part)
    factor = chosen(b, is_far, b.constant(_QUARTER, part), b.constant(1, part), part)
    near = [
        of_parts(b, [b.same_type_op("stablehlo.multiply", [p, factor], part) for p in z], part, out)
        for z in (of_x, of_y)
    ]
    return [b.same_type_op("stablehlo.divide", near, out)]
