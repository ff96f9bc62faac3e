"""The text of calls of LAPACK routines, and of what their results need.

The routines are those that jaxlib registers for the CPU. They want column-major matrices, which the
layouts of operands and results say, and report failure by an integer for each matrix.

Neighbours: `matrices` has the formulas; one module for each factorisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.primitives.choice_text import chosen, compared
from xnp.primitives.complex_text import parts_of
from xnp.primitives.matrices import LETTER
from xprim import ShapedArray, dtypes, shaped_array
from xprim.contracts import Builder
from xprim.errors import MissingRuleError, message

__all__ = ()


def lapack_call(
    b: Any, primitive: str, routine: str, dtype: np.dtype[Any], operands: Sequence[str],
    avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray], config: str = "",
    target: str | None = None,
) -> list[str]:  # fmt: skip
    """Write a call of a LAPACK routine and return the names of its results.

    Args:
      b: the builder.
      primitive: for the error on platforms without LAPACK.
      routine: its name without the letter of the dtype: `potrf`.
      dtype: of the matrices.
      operands: names of the operands.
      avals_in: their abstract values; one at least is a matrix or a batch of them.
      avals_out: those of the results.
      config: the routine's options, as text of MLIR attributes.
      target: the name of the call, where it is not made of the routine's and the dtype's letter.

    Raises:
      MissingRuleError: on another platform than a CPU.
    """
    if b.platform != "cpu":
        raise MissingRuleError(message(
            f"{primitive}", f"is not available in programs for {b.platform}.",
            hint="compute it on the CPU: jit(f, backend='cpu'), or device_put to a CPU",
        ))  # fmt: skip
    batch = max([aval.ndim for aval in avals_in]) - 2
    target = target or f"lapack_{LETTER[dtype]}{routine}_ffi"
    attributes = ", ".join([
        f'call_target_name = "{target}"',
        f"backend_config = {{{config}}}", "api_version = 4 : i32",
        f"operand_layouts = {_layouts(avals_in, batch)}",
        f"result_layouts = {_layouts(avals_out, batch)}",
    ])  # fmt: skip
    result: list[str] = b.op("stablehlo.custom_call", operands, avals_in, avals_out, attributes)
    return result


def _layouts(avals: Sequence[ShapedArray], batch: int) -> str:
    texts = []
    for aval in avals:
        order = list(range(aval.ndim - 1, -1, -1))
        if aval.ndim == batch + 2:
            order[0], order[1] = order[1], order[0]
        inside = f"[{', '.join(map(str, order))}]" if order else ""
        texts.append(f"dense<{inside}> : tensor<{len(order)}xindex>")
    return f"[{', '.join(texts)}]"


def info_aval(batch: tuple[int, ...]) -> ShapedArray:
    """Return the abstract value of the integers that report failure."""
    return shaped_array(batch, dtypes.int32)


def nan_on_failure(
    b: Any, info: str, batch: tuple[int, ...], value: str, aval: ShapedArray, direction: str = "EQ"
) -> str:
    """Write `value`, with NaN in those members of the batch whose `info` is not zero.

    With `direction` GE, only where it is negative.
    """
    flags = info_aval(batch)
    good = compared(b, direction, info, b.full_like(0, flags), flags)
    truth = shaped_array(batch, dtypes.bool_)
    mask = b.broadcast(good, truth, aval.shape, range(len(batch)))
    return chosen(b, mask, value, b.full_like(_nan_of(aval), aval), aval)


def nan_for_infinity(b: Builder, value: str, aval: ShapedArray) -> str:
    """Write `value` with NaN in the place of its infinities."""
    truth = shaped_array(aval.shape, dtypes.bool_)
    parts, part = parts_of(b, value, aval) if dtypes.is_complex(aval.dtype) else ([value], aval)
    finite = [b.op("stablehlo.is_finite", [x], [part], [truth])[0] for x in parts]
    both = finite[0] if len(finite) == 1 else b.same_type_op("stablehlo.and", finite, truth)
    return chosen(b, both, value, b.full_like(_nan_of(aval), aval), aval)


def _nan_of(aval: ShapedArray) -> complex:
    return complex(np.nan, np.nan) if dtypes.is_complex(aval.dtype) else np.nan


def counted(b: Builder, shape: tuple[int, ...], dim: int) -> str:
    """Write the index along a dimension, as int32."""
    aval = shaped_array(shape, dtypes.int32)
    attribute = f"iota_dimension = {dim} : i64"
    return b.op("stablehlo.iota", [], [], [aval], attribute)[0]


def triangle(b: Builder, value: str, aval: ShapedArray, direction: str) -> str:
    """Write the lower (GE) or upper (LE) triangle of matrices, zeros elsewhere."""
    indices = shaped_array(aval.shape, dtypes.int32)
    rows, columns = counted(b, aval.shape, aval.ndim - 2), counted(b, aval.shape, aval.ndim - 1)
    mask = compared(b, direction, rows, columns, indices)
    return chosen(b, mask, value, b.full_like(0, aval), aval)


def corner(b: Builder, value: str, aval: ShapedArray, rows: int, columns: int) -> str:
    """Write the leading rows and columns of matrices."""
    out = shaped_array((*aval.shape[:-2], rows, columns), aval.dtype)
    if out is aval:
        return value
    attributes = (
        f"start_indices = array<i64: {', '.join(['0'] * aval.ndim)}>, "
        f"limit_indices = array<i64: {', '.join(map(str, out.shape))}>, "
        f"strides = array<i64: {', '.join(['1'] * aval.ndim)}>"
    )
    result: str = b.op("stablehlo.slice", [value], [aval], [out], attributes)[0]
    return result
