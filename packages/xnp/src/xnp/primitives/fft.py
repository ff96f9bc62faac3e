"""fft: discrete Fourier transforms over the last dimensions.

    FFT    X[k] = sum over n of x[n] exp(-2 pi i k n / N)
    IFFT   the inverse, with the factor 1/N
    RFFT   FFT of real input, of which only k = 0 ... N/2 are kept in the last dimension
    IRFFT  the inverse of RFFT, to real output

`fft_lengths` are the lengths N of the transforms. Semantics: StableHLO specification, section fft.
"""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

from xnp.primitives.table import bind, broadcast_to, convert, fill, join, mul
from xprim import LINEAR, Primitive, ShapedArray, dimension_names, dtypes, shaped_array
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()


class FftType(enum.IntEnum):
    """The kinds of Fourier transforms."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def _shape(aval: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> (
    tuple[ShapedArray, ...]
):  # fmt: skip
    wanted = _FLOAT if fft_type == FftType.RFFT else _COMPLEX
    if aval.dtype not in wanted:
        raise TypeError(message(
            "fft", f"{fft_type.name} does not accept dtype {aval.dtype.name}.",
            expected=f"{' or '.join(d.name for d in wanted)}",
        ))  # fmt: skip
    count = len(fft_lengths)
    if not 1 <= count <= 3 or aval.ndim < count:
        raise ValueError(message(
            "fft", "transforms are over the last one, two or three dimensions.",
            got=f"{count} lengths for {aval.str_long()}",
        ))  # fmt: skip
    have = list(fft_lengths)
    if fft_type == FftType.IRFFT:
        have[-1] = have[-1] // 2 + 1
    if tuple(have) != aval.shape[-count:]:
        raise ValueError(message(
            "fft", f"the operand does not fit {fft_type.name} of lengths {fft_lengths}.",
            got=aval.str_long(), expected=f"last dimensions {tuple(have)}",
        ))  # fmt: skip
    shape = [*aval.shape[:-count], *fft_lengths]
    if fft_type == FftType.RFFT:
        shape[-1] = fft_lengths[-1] // 2 + 1
    return (shaped_array(tuple(shape), _result_dtype(aval.dtype, fft_type)),)


_FLOAT = (dtypes.float32, dtypes.float64)
_COMPLEX = (dtypes.complex64, dtypes.complex128)


def _result_dtype(dtype: Any, fft_type: FftType) -> Any:
    if fft_type == FftType.RFFT:
        return _COMPLEX[_FLOAT.index(dtype)]
    return _FLOAT[_COMPLEX.index(dtype)] if fft_type == FftType.IRFFT else dtype


_TRANSFORMS: dict[FftType, Any] = {
    FftType.FFT: np.fft.fftn, FftType.IFFT: np.fft.ifftn, FftType.RFFT: np.fft.rfftn,
    FftType.IRFFT: np.fft.irfftn,
}  # fmt: skip


def _numpy(x: Any, *, fft_type: FftType, fft_lengths: Any) -> Any:
    dtype = _result_dtype(x.dtype, fft_type)
    if x.size == 0 or 0 in fft_lengths:
        shape = list(x.shape[: x.ndim - len(fft_lengths)]) + list(fft_lengths)
        if fft_type == FftType.RFFT:
            shape[-1] = fft_lengths[-1] // 2 + 1
        return (np.zeros(shape, dtype),)
    axes = tuple(range(-len(fft_lengths), 0))
    result = _TRANSFORMS[fft_type](x, s=fft_lengths, axes=axes)
    return (result.astype(dtype, copy=False),)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, fft_type: FftType,
               fft_lengths: Any) -> Any:  # fmt: skip
    if avals_out[0].size == 0 or avals_in[0].size == 0:
        return [b.constant(0, avals_out[0])]
    attributes = (
        f"fft_length = array<i64: {', '.join(map(str, fft_lengths))}>, "
        f"fft_type = #stablehlo<fft_type {fft_type.name}>"
    )
    return b.op("stablehlo.fft", operands, avals_in, avals_out, attributes)


def _transpose(cts: Any, x: Any, *, fft_type: FftType, fft_lengths: Any) -> Any:
    (ct,) = cts
    if fft_type == FftType.RFFT:
        return (_rfft_transpose(ct, x.aval, fft_lengths),)
    if fft_type == FftType.IRFFT:
        return (_irfft_transpose(ct, fft_lengths),)
    return fft_p.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths)  # the matrix is symmetric


def _rfft_transpose(ct: Any, aval: ShapedArray, fft_lengths: Any) -> Any:
    # RFFT drops the upper half of FFT: put zeros there, transform, take the real part
    missing = fft_lengths[-1] - ct.aval.shape[-1]
    shape = (*ct.aval.shape[:-1], missing)
    full = join([ct, fill(shape, 0, ct.aval.dtype)], ct.aval.ndim - 1)
    transformed = fft_p.bind(full, fft_type=FftType.FFT, fft_lengths=fft_lengths)[0]
    return convert(bind("real", transformed), aval.dtype)


def _irfft_transpose(ct: Any, fft_lengths: Any) -> Any:
    # x[m] and its conjugate both enter the result, but for m = 0 and, at even lengths, m = N/2;
    # the cotangent of a complex number is conjugated
    x = fft_p.bind(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths)[0]
    count, dtype, inner = x.aval.shape[-1], x.aval.dtype, 1 / math.prod(fft_lengths)
    ends = 1 + (fft_lengths[-1] % 2 == 0) if count > 1 else 1
    once = [fill((1,), complex(inner), dtype)] * ends
    twice = fill((count - ends,), complex(2 * inner), dtype)
    mask = join([once[0], twice, *once[1:]], 0)
    scaled = mul(x, broadcast_to(mask, x.aval.shape, (x.aval.ndim - 1,)))
    return bind("conj", scaled, input_dtype=x.aval.dtype)


def _batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    x = axis.to_front(operands[0], dims[0])
    return fft_p.bind(x, **params), (0,)


fft_p: Primitive = Primitive(
    "fft",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=LINEAR,
    transpose=_transpose,
    batch=_batch,
    sharding=dimension_names.alike,  # XLA gathers what is sharded along a transform
)
