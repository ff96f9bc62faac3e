"""select_n: take each element from one of several cases, by a boolean or an int32 index.

`select_n which case0 case1 ...`: `which` is false or 0 for the first case. Semantics: StableHLO
specification, section select; an index out of range is clamped, as nested selects have it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.choice_text import compared
from xnp.primitives.operations import bind, scalar_like
from xnp.primitives.table import common_dtype, equal_shape, repeated, summed
from xprim import (
    ELEMENTWISE,
    STRUCTURAL,
    Linear,
    NumpyCall,
    Operand,
    Primitive,
    ShapedArray,
    Zero,
    dtypes,
    linear_in,
    scalar_array,
    shaped_array,
    state,
)
from xprim.contracts import Builder
from xprim.errors import message

__all__ = ()


def _shape(which: ShapedArray, *cases: ShapedArray) -> tuple[ShapedArray, ...]:
    if not cases:
        raise ValueError("select_n: needs at least one case.")
    if which.dtype != dtypes.bool_ and which.dtype != dtypes.int32:
        raise TypeError(message(
            "select_n", "which must be a bool or int32 array.", got=which.str_long(),
        ))  # fmt: skip
    if which.dtype == dtypes.bool_ and len(cases) > 2:
        raise TypeError(message(
            "select_n", f"a boolean chooses among two cases, got {len(cases)}.",
            hint="convert which to int32",
        ))  # fmt: skip
    dtype = common_dtype("select_n", cases)
    shape = equal_shape("select_n", cases)
    if which.shape not in ((), shape):
        if shape:
            raise TypeError(message(
                "select_n", "which must be a scalar or have the shape of the cases.",
                got=f"which: {which.str_long()}, cases: {', '.join(c.str_long() for c in cases)}",
            ))  # fmt: skip
        shape = which.shape
    return (shaped_array(shape, dtype, all(c.weak_type for c in cases)),)


def _numpy(which: Any, *cases: Any) -> Any:
    if len(cases) == 1:
        return (np.broadcast_to(cases[0], np.broadcast_shapes(which.shape, cases[0].shape)),)
    if which.dtype.kind == "b":
        return (np.where(which, cases[1], cases[0]),)
    result = cases[-1]
    for i in range(len(cases) - 2, -1, -1):
        result = np.where(which <= i, cases[i], result)
    return (result,)


def _ufunc(avals_in: Any, avals_out: Any) -> NumpyCall | None:
    which, *cases = avals_in
    if len(cases) != 2 or which.dtype != dtypes.bool_:
        return None
    return NumpyCall(np.where, (Operand(0), Operand(2), Operand(1)))


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (out,) = avals_out
    which, *cases = operands
    mask, *case_avals = avals_in
    cases = [b.broadcast(x, a, out.shape) for x, a in zip(cases, case_avals, strict=True)]
    result = cases[-1]
    for i in range(len(cases) - 2, -1, -1):
        predicate, pair = which, [result, cases[i]]
        predicate_aval = shaped_array(mask.shape, dtypes.bool_)
        if mask.dtype != dtypes.bool_:
            predicate = compared(b, "LE", which, b.constant(i, mask), mask)
            pair = [cases[i], result]
        (result,) = b.op("stablehlo.select", [predicate, *pair], [predicate_aval, out, out], [out])
    return [result]


def _jvp(primals: Any, tangents: Any) -> Any:
    which, *cases = primals
    dots = tangents[1:]
    outs = state.trace.process(select_n_p, tuple(primals), {})
    if all(type(d) is Zero for d in dots):
        return outs, (Zero(outs[0].aval),)
    dots = [scalar_like(c, 0) if type(d) is Zero else d for c, d in zip(cases, dots, strict=True)]
    return outs, (repeated(bind("select_n", which, *dots), outs[0].aval.shape),)


def _transpose(cts: Any, which: Any, *cases: Any) -> Any:
    (ct,) = cts
    zero = scalar_array(0, ct.aval.dtype)
    results: list[Any] = [Zero(which.aval)]
    for i, case in enumerate(cases):
        if type(case) is not Linear:
            results.append(Zero(case.aval))
            continue
        parts = [ct if j == i else zero for j in range(len(cases))]
        part = repeated(bind("select_n", which, *parts), ct.aval.shape)
        results.append(part if case.aval.shape == ct.aval.shape else summed(part))
    return tuple(results)


select_n_p = Primitive(
    "select_n",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=_transpose,
    batch=ELEMENTWISE,
    physical=STRUCTURAL,
    ufunc=_ufunc,
    cost=costs.choice,
    linearity=lambda avals, params: linear_in(*range(1, len(avals))),
)
