"""Arithmetic of 8-bit floats on GPUs: XLA stops at the greatest finite number.

    add, sub, mul, div, integer_pow, square    of float8_e5m2
    dot_general                                of every such type

XLA for NVIDIA's GPUs computes in a wider type and converts back by an instruction that gives the
greatest finite number where there is an infinity or NaN: 57344 + 57344 is 57344 of float8_e5m2, and
products of matrices of float8_e4m3fn end at 448 (jaxlib 0.11.2 on an H200; the CPU's programs and
NumPy give inf and NaN; no issue is known). Around it the wider type is in the text, and
`Builder.convert` writes the conversion back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xprim import Builder, ShapedArray, dtypes

__all__ = ()

_PRODUCT = "dot_general"

SATURATING = frozenset(["add", "sub", "mul", "div", "integer_pow", "square", _PRODUCT])
"""The names of the primitives that are written so in programs for GPUs."""


def write_in_float32(
    name: str, rule: Callable[..., Sequence[str]], b: Builder, operands: Sequence[str],
    avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], **params: Any,
) -> Sequence[str]:  # fmt: skip
    """Write an operation with a result of 8 bits in float32, and convert the result.

    Args:
      name: of the primitive, one of `SATURATING`. Operands of a product stay as they are, since
        the units for matrices have these types and sums in float32.
      rule: writes the operation as it is; the other arguments are its.
      b: the builder.
      operands: the names of the operands.
      avals_in: their types.
      avals_out: the type of the result.
      **params: of the primitive.
    """
    (out,) = avals_out
    is_product = name == _PRODUCT
    if out.dtype != dtypes.float8_e5m2 and not (is_product and _is_narrow_float(out.dtype)):
        return rule(b, operands, avals_in, avals_out, **params)
    wide = out.update(dtype=dtypes.float32)
    if not is_product:
        operands = [b.convert(x, a, wide.dtype) for x, a in zip(operands, avals_in, strict=True)]
        avals_in = [a.update(dtype=wide.dtype) for a in avals_in]
    (found,) = rule(b, operands, avals_in, [wide], **params)
    return [b.convert(found, wide, out.dtype)]


def _is_narrow_float(dtype: Any) -> bool:
    return dtypes.is_floating(dtype) and dtypes.itemsize_bits(dtype) <= 8
