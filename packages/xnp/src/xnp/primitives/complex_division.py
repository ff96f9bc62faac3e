"""Division of complex numbers that leaves the range only where the quotient does.

NumPy and XLA divide as Smith did (Algorithm 116, CACM 1962): with |c| >= |d| the divisor of both
parts is c + d (d / c), which reaches twice the greatest part of the denominator, and the numerators
twice that of the numerator. So operands near the end of the range are divided as quarters, an exact
scale (Baudin and Smith, A robust complex division in Scilab, 2012, section 3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.choice_text import chosen, compared
from xnp.primitives.complex_text import of_parts, parts_of
from xnp.primitives.table import elementwise_stablehlo
from xprim import ShapedArray, dtypes
from xprim.contracts import Builder

__all__ = ()

_QUARTER = 0.25
_divide_stablehlo = elementwise_stablehlo("stablehlo.divide")


def _far(dtype: np.dtype[Any]) -> float:
    """Return from where on a part of a number is far out: a quarter of the greatest number."""
    return float(dtypes.finfo(dtype).max) * _QUARTER


# --- NumPy ----------------------------------------------------------------------------------------


def divided(x: Any, y: Any) -> Any:
    """Divide complex arrays; those where a step overflows once more, as quarters."""
    try:
        with np.errstate(over="raise"):
            return np.true_divide(x, y)
    except FloatingPointError:
        (x, of_x), (y, of_y) = _quartered(x), _quartered(y)
        with np.errstate(over="ignore"):
            return _by_parts(np.true_divide(x, y), of_y / of_x)


def _quartered(z: Any) -> tuple[Any, Any]:
    """Return numbers of which those far out are quarters, and their factors."""
    greatest = np.maximum(np.abs(z.real), np.abs(z.imag))
    factor = np.where(greatest > _far(greatest.dtype), _QUARTER, 1).astype(greatest.dtype)
    return _by_parts(z, factor), factor


def _by_parts(z: Any, factor: Any) -> Any:
    """Return complex numbers times real ones, parts apart: infinity times 0j is NaN."""
    out = np.empty_like(z)
    out.real, out.imag = z.real * factor, z.imag * factor
    return out


# --- StableHLO ------------------------------------------------------------------------------------


def div_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    """Write a division; of complex numbers as quarters where they are far out."""
    (out,) = avals_out
    if not dtypes.is_complex(out.dtype):
        return _divide_stablehlo(b, operands, avals_in, avals_out)
    (x, of_x, part_x), (y, of_y, part_y) = [
        _quartered_text(b, z, aval) for z, aval in zip(operands, avals_in, strict=True)
    ]
    (quotient,) = _divide_stablehlo(b, [x, y], avals_in, avals_out)
    parts, part = parts_of(b, quotient, out)
    (factor,) = _divide_stablehlo(b, [of_y, of_x], [part_y, part_x], [part])
    scaled = [b.same_type_op("stablehlo.multiply", [p, factor], part) for p in parts]
    return [of_parts(b, scaled, part, out)]


def _quartered_text(b: Builder, z: str, aval: ShapedArray) -> tuple[str, str, ShapedArray]:
    parts, part = parts_of(b, z, aval)
    sizes = [b.same_type_op("stablehlo.abs", [p], part) for p in parts]
    greatest = b.same_type_op("stablehlo.maximum", sizes, part)
    is_far = compared(b, "GT", greatest, b.constant(_far(part.dtype), part), part)
    factor = chosen(b, is_far, b.constant(_QUARTER, part), b.constant(1, part), part)
    scaled = [b.same_type_op("stablehlo.multiply", [p, factor], part) for p in parts]
    return of_parts(b, scaled, part, aval), factor, part
