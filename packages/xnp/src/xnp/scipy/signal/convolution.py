"""Convolutions of signals, directly or by Fourier transforms.

convolve(x, y)[n] = sum_k x[k] y[n - k],    correlate(x, y) = convolve(x, conj(y) reversed)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import xnp.numpy as xn
from xnp import fft as fourier, lax
from xnp.numpy.promoting import axes_of, inexact, promoted
from xnp.primitives.precision import PrecisionLike
from xprim import Array, dtypes
from xprim.errors import message
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]

__dir__ = __all__.copy

_MODES = ("full", "same", "valid")


def _check_mode(operation: str, mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(message(
            operation, "there is no such mode.", got=f"{mode!r}", expected=f"one of {_MODES}",
        ))  # fmt: skip


def _pair(operation: str, in1: Any, in2: Any, mode: str) -> tuple[Array, Array]:
    _check_mode(operation, mode)
    x, y = promoted(operation, in1, in2)
    if x.ndim != y.ndim or not x.ndim:
        raise ValueError(message(
            operation, "the signals must have one and the same number of dimensions.",
            got=f"{x.aval.str_long()}, {y.aval.str_long()}",
        ))  # fmt: skip
    if not x.size or not y.size:
        raise ValueError(message(
            operation, "a signal is empty.", got=f"{x.aval.str_long()}, {y.aval.str_long()}",
        ))  # fmt: skip
    return x, y


def _is_swapped(
    operation: str, x: Array, y: Array, mode: str, dims: Sequence[int] | None = None
) -> bool:
    """Return whether, for "valid", the second signal is the one that holds the other."""
    pairs = [(x.shape[d], y.shape[d]) for d in (range(x.ndim) if dims is None else dims)]
    if mode != "valid" or all(m >= n for m, n in pairs):
        return False
    if all(m <= n for m, n in pairs):
        return True
    raise ValueError(message(
        operation, "for 'valid' one signal must be as large as the other in every dimension.",
        got=f"{x.aval.str_long()}, {y.aval.str_long()}",
    ))  # fmt: skip


def _direct(x: Array, kernel: Array, pads: list[tuple[int, int]], precision: Any) -> Array:
    """Return sums of windows of x times a kernel as it stands."""
    dtype = x.dtype
    wide = dtype if dtypes.is_inexact(dtype) else dtypes.to_inexact_dtype(dtype)
    result = lax.conv_general_dilated(
        x.astype(wide)[None, None], kernel.astype(wide)[None, None], (1,) * x.ndim, pads,
        precision=precision,
    )[0, 0]  # fmt: skip
    return xn.rint(result).astype(dtype) if wide != dtype else result


def _reversed(x: Array) -> Array:
    return lax.rev(x, tuple(range(x.ndim)))


def _convolved(operation: str, x: Array, y: Array, mode: str, precision: Any) -> Array:
    if _is_swapped(operation, x, y, mode):
        x, y = y, x
    pads = {
        "full": [(n - 1, n - 1) for n in y.shape],
        "same": [(n // 2, n - 1 - n // 2) for n in y.shape],
        "valid": [(0, 0)] * x.ndim,
    }[mode]
    return _direct(x, _reversed(y), pads, precision)


def _check_method(operation: str, method: str) -> None:
    if method not in ("auto", "direct", "fft"):
        raise ValueError(message(
            operation, "there is no such method.", got=f"{method!r}",
            expected="'auto', 'direct' or 'fft'",
        ))  # fmt: skip


def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: PrecisionLike = None,
) -> Array:
    """Return the convolution of two signals of as many dimensions.

    Args:
      in1: an array.
      in2: an array.
      mode: "full" for all sums, "same" for those in the middle, as many as `in1` has elements,
        "valid" for those where one signal lies within the other.
      method: "direct" (also "auto"), or "fft" by Fourier transforms.
      precision: how exactly hardware with a choice computes sums; of "direct" alone.
    """
    _check_method("convolve", method)
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    x, y = _pair("convolve", in1, in2, mode)
    return _convolved("convolve", x, y, mode, precision)


def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: PrecisionLike = None,
) -> Array:
    """Return the correlation of two signals, sums of in1[n + k] conj(in2[k]).

    Args:
      in1: an array.
      in2: an array of as many dimensions.
      mode: as of `convolve`.
      method: as of `convolve`.
      precision: as of `convolve`.
    """
    _check_method("correlate", method)
    x, y = _pair("correlate", in1, in2, mode)
    other = xn.conj(_reversed(y))
    if method == "fft":
        return fftconvolve(x, other, mode)
    return _convolved("correlate", x, other, mode, precision)


def _check_two(operation: str, x: Array, y: Array) -> None:
    if x.ndim != 2 or y.ndim != 2:
        raise ValueError(message(
            operation, "takes matrices.", got=f"{x.aval.str_long()}, {y.aval.str_long()}",
        ))  # fmt: skip


_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: PrecisionLike = None,
) -> Array:
    """Return the convolution of two matrices.

    Args:
      in1: a matrix.
      in2: a matrix.
      mode: as of `convolve`.
      boundary: what lies around `in1`: "fill" for `fillvalue`, "wrap" for `in1` again, "symm" for
        its reflection at its edges.
      fillvalue: see `boundary`.
      precision: as of `convolve`.
    """
    x, y = _pair("convolve2d", in1, in2, mode)
    _check_two("convolve2d", x, y)
    return _on_ground("convolve2d", x, y, mode, (boundary, fillvalue), precision)


def _on_ground(
    operation: str, x: Array, y: Array, mode: str, ground: tuple[str, Any], precision: Any
) -> Array:
    boundary, fillvalue = ground
    if boundary not in _BOUNDARIES:
        raise ValueError(message(
            operation, "there is no such boundary.", got=f"{boundary!r}",
            expected=f"one of {tuple(_BOUNDARIES)}",
        ))  # fmt: skip
    plain = boundary == "fill" and isinstance(fillvalue, int | float) and fillvalue == 0
    if mode == "valid" or plain:
        return _convolved(operation, x, y, mode, precision)
    around = {"constant_values": fillvalue} if boundary == "fill" else {}
    margins = [(n - 1, n - 1) for n in y.shape]
    padded = xn.pad(x, margins, mode=_BOUNDARIES[boundary], **around)
    full = _direct(padded, _reversed(y), [(0, 0)] * 2, precision)
    if mode == "full":
        return full
    return _middle(full, x.shape, [(n - 1) // 2 for n in y.shape])


def _middle(x: Array, shape: Sequence[int], starts: Sequence[int]) -> Array:
    result: Array = x[tuple([slice(s, s + m) for s, m in zip(starts, shape, strict=True)])]
    return result


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: PrecisionLike = None,
) -> Array:
    """Return the correlation of two matrices; arguments as of `convolve2d`."""
    x, y = _pair("correlate2d", in1, in2, mode)
    _check_two("correlate2d", x, y)
    other = xn.conj(_reversed(y))
    if mode == "same":  # of an even length the middle of a correlation is one further
        full = _on_ground("correlate2d", x, other, "full", (boundary, fillvalue), precision)
        return _middle(full, x.shape, [n // 2 for n in y.shape])
    return _on_ground("correlate2d", x, other, mode, (boundary, fillvalue), precision)


def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None
) -> Array:
    """Return the convolution of two signals by Fourier transforms.

    Args:
      in1: an array.
      in2: an array of as many dimensions.
      mode: as of `convolve`.
      axes: the dimensions to convolve, None for all; the others are broadcast.
    """
    _check_mode("fftconvolve", mode)
    x, y = inexact("fftconvolve", in1, in2)
    if x.ndim != y.ndim:
        raise ValueError(message(
            "fftconvolve", "the signals must have one and the same number of dimensions.",
            got=f"{x.aval.str_long()}, {y.aval.str_long()}",
        ))  # fmt: skip
    dims = axes_of(axes, x.ndim, "fftconvolve")
    if not dims or not x.size or not y.size:
        return x * y if x.size and y.size else xn.zeros((0,) * x.ndim, x.dtype)
    if mode == "valid" and _is_swapped("fftconvolve", x, y, mode, dims):
        x, y = y, x
    pairs = [(x.shape[d], y.shape[d]) for d in dims]
    whole = _product_of_spectra(x, y, [_good_size(m + n - 1) for m, n in pairs], dims)
    index: list[Any] = [slice(None)] * x.ndim
    for d, (m, n) in zip(dims, pairs, strict=True):
        start, length = {"full": (0, m + n - 1), "same": ((n - 1) // 2, m),
                         "valid": (n - 1, m - n + 1)}[mode]  # fmt: skip
        index[d] = slice(start, start + length)
    result: Array = whole[tuple(index)].astype(x.dtype)
    return result


def _product_of_spectra(x: Any, y: Any, sizes: Any, dims: Any) -> Any:
    if dtypes.is_complex(x.dtype):
        spectra = [fourier.fftn(v, sizes, dims) for v in (x, y)]
        return fourier.ifftn(spectra[0] * spectra[1], sizes, dims)
    spectra = [fourier.rfftn(v, sizes, dims) for v in (x, y)]
    return fourier.irfftn(spectra[0] * spectra[1], sizes, dims)


def _good_size(n: int) -> int:
    """Return the least product of 2, 3 and 5 that is not below n: transforms of it are quick."""
    best = 1 << max(n - 1, 0).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            quotient = math.ceil(n / three)
            best = min(best, three << max(quotient - 1, 0).bit_length())
            three *= 3
        five *= 5
    return best


boundaries(globals())
