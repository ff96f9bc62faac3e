"""Fourier transforms: `fft` and its types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xnp.primitives.fft import FftType, fft_p
from xnp.primitives.table import converted
from xprim import Array, as_array, dtypes
from xprim.avals import size_of
from xprim.errors import message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike

__all__ = ["FftType", "fft", "fft_p"]

__dir__ = __all__.copy


@boundary
def fft(x: ArrayLike, fft_type: FftType | str | int, fft_lengths: Sequence[int]) -> Array:
    """Transform the last dimensions of an array.

    Args:
      x: an array; real for RFFT, else it is converted to complex. Dtypes of 16 bits are computed
        in float32.
      fft_type: `FftType.FFT`, `IFFT`, `RFFT` or `IRFFT`, or that name.
      fft_lengths: the lengths of the transforms over the last one to three dimensions; `x` has
        these sizes there (for IRFFT, length // 2 + 1 in the last one).

    Returns:
      The transform: complex, and real for IRFFT. The inverse ones divide by the lengths.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import numpy as np
      >>> np.asarray(fft(np.float32([1, 0, 0, 0]), "FFT", (4,)))
      array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)

    Differentiable in: x.
    Source: StableHLO specification, section fft.
    """
    kind = _kind(fft_type)
    lengths = tuple([size_of(n) for n in fft_lengths])
    operand: Array = as_array(x, what="fft: x")
    dtype = operand.aval.dtype
    if kind == FftType.RFFT:
        if dtypes.is_complex(dtype):
            raise ValueError(message("fft", "RFFT takes real input.", got=operand.aval.str_long()))
        wide = dtypes.float64 if dtypes.to_complex_dtype(dtype) == dtypes.complex128 else (
            dtypes.float32)  # fmt: skip
        operand = converted(operand, wide)
    else:
        operand = converted(operand, dtypes.to_complex_dtype(dtype))
    if not lengths:
        return operand
    result: Array = fft_p.bind(operand, fft_type=kind, fft_lengths=lengths)[0]
    return result


def _kind(fft_type: Any) -> FftType:
    if isinstance(fft_type, str):
        name = fft_type.rsplit(".", 1)[-1].upper()
        if name in FftType.__members__:
            return FftType[name]
    elif isinstance(fft_type, int) and fft_type in list(FftType):
        return FftType(fft_type)
    raise ValueError(message(
        "fft", f"there is no transform {fft_type!r}.", expected=", ".join(FftType.__members__),
    ))  # fmt: skip
