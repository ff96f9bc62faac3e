"""convert_element_type: the same numbers in another dtype.

Semantics: StableHLO specification, section convert, and XLA where that leaves it open: a float
outside the range of an integer dtype becomes the nearest end of it and NaN becomes 0; a complex
number loses its imaginary part, but for bool, which says whether a number is not zero; integers
wrap around.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.choice_text import compared
from xnp.primitives.narrow_dtypes import BYTES
from xnp.primitives.table import COMPLEX, FLOATING, INEXACT, INTEGER
from xprim import ELEMENTWISE, LINEAR, Primitive, ShapedArray, Zero, dtypes, shaped_array, state
from xprim.contracts import Builder
from xprim.errors import message

__all__ = ()

_THROUGH: dict[Any, np.dtype[Any]] = BYTES | dict.fromkeys(dtypes.SMALL_FLOATS, dtypes.float32)


def _shape(x: ShapedArray, *, new_dtype: Any, weak_type: bool) -> tuple[ShapedArray, ...]:
    if dtypes.is_extended(new_dtype):
        raise TypeError(message(
            "convert_element_type", f"numbers do not become {new_dtype.elements}.",
            got=f"{x.str_long()}, to be of dtype {new_dtype.name}",
        ))  # fmt: skip
    if not dtypes.is_supported(new_dtype):
        raise TypeError(f"convert_element_type: there are no arrays of dtype {new_dtype}.")
    return (shaped_array(x.shape, new_dtype, weak_type),)


def _numpy(x: Any, *, new_dtype: Any, weak_type: bool = False) -> Any:
    if x.dtype in COMPLEX and new_dtype not in COMPLEX and new_dtype != dtypes.bool_:
        x = x.real
    if x.dtype in FLOATING and new_dtype in INTEGER:
        return (_saturated(x, new_dtype),)
    if x.dtype in _THROUGH:  # these have no casts to every dtype; nothing is rounded on the way
        x = x.astype(_THROUGH[x.dtype])
    return (x.astype(new_dtype),)


def _saturated(x: Any, dtype: np.dtype[Any]) -> Any:
    """Round towards zero to the range of an integer dtype; NaN becomes 0."""
    limits = dtypes.iinfo(dtype)
    lowest, highest = int(limits.min), int(limits.max)
    if x.dtype.kind == "f" and x.size and x.min() >= lowest and x.max() < highest:
        return x.astype(dtype)  # NaN fails both comparisons, which costs a tenth of what follows
    wide = x.astype(np.float64)
    # float(2**63 - 1) is 2**63, which is out of range: those are set apart and written as such
    above, below = wide >= float(highest), wide <= float(lowest)
    inside = np.where(above | below | np.isnan(wide), 0.0, wide)
    storage = np.uint64 if lowest == 0 else np.int64
    result = np.where(above, storage(highest), inside.astype(storage))
    return np.where(below, storage(lowest), result).astype(dtype)


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, new_dtype: Any, weak_type: bool
) -> list[str]:
    (x,), (aval,) = operands, avals_in
    if new_dtype == dtypes.bool_ and aval.dtype != dtypes.bool_:
        return [compared(b, "NE", x, b.constant(0, aval), aval)]
    if aval.dtype in COMPLEX and new_dtype not in COMPLEX:
        half = dtypes.float32 if aval.dtype.itemsize == 8 else dtypes.float64
        part = shaped_array(aval.shape, half)
        (x,), aval = b.op("stablehlo.real", [x], [aval], [part]), part
    return [b.convert(x, aval, new_dtype)]


def _jvp(primals: Any, tangents: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    (x,), (x_dot,) = primals, tangents
    params = {"new_dtype": new_dtype, "weak_type": weak_type}
    (y,) = state.trace.process(convert_element_type_p, (x,), params)
    if new_dtype not in INEXACT:
        return (y,), (Zero(shaped_array(y.aval.shape, dtypes.float0)),)
    if type(x_dot) is Zero:
        return (y,), (Zero(y.aval.strong()),)
    return (y,), convert_element_type_p.bind(x_dot, new_dtype=new_dtype, weak_type=False)


def _transpose(cts: Any, x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    return convert_element_type_p.bind(cts[0], new_dtype=x.aval.dtype, weak_type=False)


def _linearity(avals: Any, params: Any) -> Any:
    """What is rounded to an integer, or to a truth, is not linear."""
    before, after = avals[0].dtype, params["new_dtype"]
    if dtypes.bool_ in (before, after):
        return None
    return LINEAR if dtypes.is_inexact(after) or not dtypes.is_inexact(before) else None


convert_element_type_p = Primitive(
    "convert_element_type",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=_transpose,
    batch=ELEMENTWISE,
    linearity=_linearity,
)
