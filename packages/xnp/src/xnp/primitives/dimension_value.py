"""dimension_value: the number that a symbolic dimension is, as an array.

Its value is known when the program is: it is written as the expression, and read as a constant.
"""

from __future__ import annotations

from typing import Any

from xprim import ZERO, Primitive, dtypes, shaped_array, undefined
from xprim.contracts import Builder

__all__ = ()


def _shape(*, dimension: Any) -> Any:
    return (shaped_array((), dtypes.python_scalar_dtype(int), True),)


def _numpy(*, dimension: Any) -> Any:
    raise TypeError(
        f"dimension_value: the symbolic dimension {dimension} has no value outside of the program "
        "that is exported."
    )


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, dimension: Any) -> Any:
    kind = f"tensor<i{8 * avals_out[0].dtype.itemsize}>"
    return b.op("stablehlo.constant", [], [], avals_out, f"value = dense<{dimension}> : {kind}")


dimension_value_p = Primitive(
    "dimension_value",
    call_like=True,  # what it gives is of one program, and must not be remembered beyond it
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=ZERO,
    transpose=undefined("it has no operands"),
    batch=undefined("it has no operands"),
)
