"""Complex numbers and their parts: complex, real, imag, conj.

Semantics: StableHLO specification, sections complex, real, imag. Derivatives are linear over the
reals: the transposes use that real and imaginary parts are separate real outputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.operations import bind
from xnp.primitives.table import (
    COMPLEX,
    FLOATING,
    Kinds,
    binary,
    elementwise_shape,
    retyped_stablehlo,
    unary,
)
from xprim import LINEAR, Linear, ShapedArray, Zero, dtypes, scalar_array, shaped_array
from xprim.contracts import Builder

__all__ = ()

_F32_F64: Kinds = frozenset([dtypes.float32, dtypes.float64])


def complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the complex dtype whose parts have this dtype."""
    return dtypes.complex64 if dtype == dtypes.float32 else dtypes.complex128


def part_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the parts of complex numbers of this dtype."""
    return dtypes.float32 if dtype == dtypes.complex64 else dtypes.float64


def _complex_numpy(x: Any, y: Any) -> Any:
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), complex_dtype(x.dtype))
    out.real, out.imag = x, y
    return out


def _complex_transpose(ct: Any, x: Any, y: Any) -> Any:
    # <ct, x + iy> is the real part of ct (x + iy): Re(ct) x - Im(ct) y
    return (
        bind("real", ct) if type(x) is Linear else Zero(x.aval),
        bind("neg", bind("imag", ct)) if type(y) is Linear else Zero(y.aval),
    )


def _with_zero(part: Any) -> Any:
    return scalar_array(0.0, part.aval.dtype)


complex_p = binary(
    "complex", _F32_F64, numpy=_complex_numpy, stablehlo=retyped_stablehlo("stablehlo.complex"),
    jvp=(lambda x_dot, z, x, y: bind("complex", x_dot, _with_zero(x_dot)),
         lambda y_dot, z, x, y: bind("complex", _with_zero(y_dot), y_dot)),
    transpose=_complex_transpose, out_dtype=complex_dtype, linearity=LINEAR,
)  # fmt: skip

real_p = unary(
    "real", COMPLEX, numpy=np.real, stablehlo=retyped_stablehlo("stablehlo.real"),
    jvp=lambda x_dot, y, x: bind("real", x_dot),
    linear=lambda ct: bind("complex", ct, _with_zero(ct)), out_dtype=part_dtype,
    cost=costs.nothing,
)  # fmt: skip

imag_p = unary(
    "imag", COMPLEX, numpy=np.imag, stablehlo=retyped_stablehlo("stablehlo.imag"),
    jvp=lambda x_dot, y, x: bind("imag", x_dot),
    linear=lambda ct: bind("complex", _with_zero(ct), bind("neg", ct)), out_dtype=part_dtype,
    cost=costs.nothing,
)  # fmt: skip


# --- conj ---------------------------------------------------------------------------------------

_conj_kinds = elementwise_shape("conj", COMPLEX | _F32_F64)


def _conj_shape(x: ShapedArray, *, input_dtype: Any) -> tuple[ShapedArray, ...]:
    (out,) = _conj_kinds(x)
    if out.dtype in FLOATING:
        out = shaped_array(out.shape, complex_dtype(out.dtype), out.weak_type)
    return (out,)


def _conj_numpy(x: Any, *, input_dtype: Any) -> Any:
    out = np.conjugate(x)
    return out if out.dtype in COMPLEX else out.astype(complex_dtype(out.dtype))


def _conj_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, input_dtype: Any
) -> list[str]:
    (x,), (aval,), (out,) = operands, avals_in, avals_out
    part = shaped_array(out.shape, part_dtype(out.dtype))
    if aval.dtype in FLOATING:
        return _joined(b, x, b.constant(0, part), part, out)
    (re,) = b.op("stablehlo.real", [x], [aval], [part])
    (im,) = b.op("stablehlo.imag", [x], [aval], [part])
    im = b.same_type_op("stablehlo.negate", [im], part)
    return _joined(b, re, im, part, out)


def _joined(b: Builder, re: str, im: str, part: ShapedArray, out: ShapedArray) -> list[str]:
    results: list[str] = b.op("stablehlo.complex", [re, im], [part, part], [out])
    return results


def _conj_transpose(ct: Any, *, input_dtype: Any) -> Any:
    out = bind("conj", ct, input_dtype=ct.aval.dtype)
    return out if input_dtype in COMPLEX else bind("real", out)


conj_p = unary(
    "conj", COMPLEX | _F32_F64, shape=_conj_shape, numpy=_conj_numpy, stablehlo=_conj_stablehlo,
    jvp=lambda x_dot, y, x, *, input_dtype: bind("conj", x_dot, input_dtype=input_dtype),
    linear=_conj_transpose, has_params=True,
)  # fmt: skip
