"""Convolutions and spectra of signals: convolve, fftconvolve, stft, istft, csd, welch, detrend."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xnp.numpy as xn
from xnp import fft as fourier, lax
from xnp.numpy.dispatch import array_of, axes_of, axis_of, inexact, promote
from xnp.primitives.precision import PrecisionLike
from xprim import Array, Tracer, dtypes
from xprim.avals import size_of
from xprim.errors import message
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve", "csd", "detrend",
    "istft", "stft", "welch",
]  # fmt: skip

__dir__ = __all__.copy


# --------------------------------------------------------------------------------------- windows
# Windows of spectra, made on the host: by a name, a name with a number, or given as an array.
#
# Sources: F. Harris, On the use of windows for harmonic analysis (1978); A. Nuttall, Some windows
# with very good sidelobe behavior (1981). They are periodic, as spectra need them.

# the coefficients of cos(2 pi k n / N), signs in turn
_COSINES = {
    "boxcar": (1.0,),
    "rectangular": (1.0,),
    "ones": (1.0,),
    "hann": (0.5, 0.5),
    "hanning": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
}


def _tukey(t: Any, n: int, alpha: float) -> Any:
    if alpha <= 0:
        return np.ones(n)
    edge = np.minimum(t, 1 - t) * 2 / min(alpha, 1.0)
    return np.where(edge < 1, 0.5 - 0.5 * np.cos(np.pi * edge), 1.0)


# of t = 0 ... 1 (excluded), the number of elements and a number
_OTHERS: dict[str, Callable[..., Any]] = {
    "bartlett": lambda t, n: 1 - np.abs(2 * t - 1),
    "cosine": lambda t, n: np.sin(np.pi * (t * n + 0.5) / (n + 1)),
    "gaussian": lambda t, n, std: np.exp(-0.5 * ((t - 0.5) * n / std) ** 2),
    "kaiser": lambda t, n, beta: (
        np.i0(beta * np.sqrt(np.maximum(1 - (2 * t - 1) ** 2, 0))) / np.i0(beta)
    ),
    "tukey": _tukey,
}


def window_of(window: Any, n: int, operation: str) -> Any:
    """Return a window of n elements, float64 on the host or an array that was given."""
    if isinstance(window, str | tuple):
        name, *numbers = (window,) if isinstance(window, str) else window
        if n == 1:  # there is nothing to weigh
            return np.ones(1)
        t = np.arange(n) / n
        if name in _COSINES and not numbers:
            terms = [c * (-1) ** k * np.cos(2 * math.pi * k * t)
                     for k, c in enumerate(_COSINES[name])]  # fmt: skip
            return np.sum(terms, axis=0)
        if name in _OTHERS and len(numbers) == _OTHERS[name].__code__.co_argcount - 2:
            return _OTHERS[name](t, n, *numbers)
        raise ValueError(message(
            operation, f"unknown window {window!r}.",
            expected=f"one of {', '.join([*_COSINES, *list(_OTHERS)[:2]])}; ('gaussian', std), "
            "('kaiser', beta), ('tukey', alpha); or an array",
        ))  # fmt: skip
    given = array_of(window, operation)
    if given.ndim != 1 or given.size != n:
        raise ValueError(message(
            operation, "the window does not fit the segments.", got=given.aval.str_long(),
            expected=f"shape ({n},)",
        ))  # fmt: skip
    return given


# ----------------------------------------------------------------------------------- convolution
# Convolutions of signals, directly or by Fourier transforms.
#
# convolve(x, y)[n] = sum_k x[k] y[n - k], correlate(x, y) = convolve(x, conj(y) reversed)

_MODES = ("full", "same", "valid")


def _check_mode(operation: str, mode: str) -> None:
    require_choice(operation, "mode", mode, _MODES)


def _pair(operation: str, in1: Any, in2: Any, mode: str) -> tuple[Array, Array]:
    _check_mode(operation, mode)
    x, y = promote(operation, in1, in2)
    require(
        x.ndim == y.ndim and x.ndim, operation,
        "the signals must have one and the same number of dimensions.", got=(x, y),
    )  # fmt: skip
    require(x.size and y.size, operation, "a signal is empty.", got=(x, y))
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


def _reverse(x: Array) -> Array:
    return lax.rev(x, tuple(range(x.ndim)))


def _convolve(operation: str, x: Array, y: Array, mode: str, precision: Any) -> Array:
    if _is_swapped(operation, x, y, mode):
        x, y = y, x
    pads = {
        "full": [(n - 1, n - 1) for n in y.shape],
        "same": [(n // 2, n - 1 - n // 2) for n in y.shape],
        "valid": [(0, 0)] * x.ndim,
    }[mode]
    return _direct(x, _reverse(y), pads, precision)


def _check_method(operation: str, method: str) -> None:
    require_choice(operation, "method", method, ("auto", "direct", "fft"))


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
    return _convolve("convolve", x, y, mode, precision)


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
    other = xn.conj(_reverse(y))
    if method == "fft":
        return fftconvolve(x, other, mode)
    return _convolve("correlate", x, other, mode, precision)


def _check_two(operation: str, x: Array, y: Array) -> None:
    require(x.ndim == 2 and y.ndim == 2, operation, "takes matrices.", got=(x, y))


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
    require_choice(operation, "boundary", boundary, _BOUNDARIES)
    plain = boundary == "fill" and isinstance(fillvalue, int | float) and fillvalue == 0
    if mode == "valid" or plain:
        return _convolve(operation, x, y, mode, precision)
    around = {"constant_values": fillvalue} if boundary == "fill" else {}
    margins = [(n - 1, n - 1) for n in y.shape]
    padded = xn.pad(x, margins, mode=_BOUNDARIES[boundary], **around)
    full = _direct(padded, _reverse(y), [(0, 0)] * 2, precision)
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
    other = xn.conj(_reverse(y))
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
    require(
        x.ndim == y.ndim, "fftconvolve",
        "the signals must have one and the same number of dimensions.", got=(x, y),
    )  # fmt: skip
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


# --------------------------------------------------------------------------------------- spectra
# Spectra of signals in segments: stft, istft, csd, welch; and detrend.
#
# A signal is cut in segments that overlap, each is freed of its trend, multiplied by a window and
# transformed. Sources: P. Welch, The use of the fast Fourier transform for the estimation of
# power spectra (1967); D. Griffin and J. Lim, Signal estimation from modified short-time Fourier
# transform (1984).

Window = str | tuple[Any, ...] | ArrayLike  # a window's name, that with its parameters, its values
Detrend = str | bool | Callable[..., Any]


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",  # noqa: A002 - SciPy's name
    bp: int | Sequence[int] = 0,
    overwrite_data: None = None,
) -> Array:
    """Return a signal without its mean, or without its straight line of least squares.

    Args:
      data: an array.
      axis: along which the signal goes.
      type: "constant" to take off the mean, "linear" to take off a line.
      bp: for "linear", the places at which lines may break, Python ints.
      overwrite_data: must be None: arrays do not change.
    """
    require(
        overwrite_data is None, "detrend", "arrays do not change.", expected="overwrite_data=None"
    )
    require_choice("detrend", "type", type, ("constant", "linear", "c", "l"))
    (x,) = inexact("detrend", data)
    dim = axis_of(axis, x.ndim, "detrend")
    if type in ("constant", "c"):
        return x - x.mean(dim, keepdims=True)
    x = xn.moveaxis(x, dim, -1)
    size = x.shape[-1]
    breaks = sorted({0, size, *np.atleast_1d(np.asarray(bp)).tolist()})
    if breaks[0] < 0 or breaks[-1] > size:
        raise ValueError(message(
            "detrend", "lines break within the signal.", got=f"bp={bp}, of {size} elements",
        ))  # fmt: skip
    parts = [_without_line(x[..., a:b]) for a, b in itertools.pairwise(breaks)]
    return xn.moveaxis(xn.concatenate(parts, -1) if parts else x, -1, dim)


def _without_line(x: Any) -> Any:
    """Take off the mean, and the projection on the line through 0 in the middle."""
    n = x.shape[-1]
    line = np.arange(n) - (n - 1) / 2
    line = line / max(float(np.sqrt((line**2).sum())), 1e-300)
    unit = xn.asarray(line, x.real.dtype)
    x = x - x.mean(-1, keepdims=True)
    return x - (x * unit).sum(-1, keepdims=True) * unit


class _Segments:
    """How signals are cut: the length of segments, of overlaps and of transforms, the window."""

    def __init__(self, operation: str, size: int, window: Any, nperseg: int | None,
                 noverlap: int | None, nfft: int | None) -> None:  # fmt: skip
        given = None if isinstance(window, str | tuple) else np.shape(window)[-1]
        length = nperseg if nperseg is not None else given if given is not None else 256
        self.length = _whole(length) if given is not None else min(_whole(length), size)
        self.overlap = self.length // 2 if noverlap is None else _whole(noverlap)
        self.fft_size = self.length if nfft is None else _whole(nfft)
        if not 0 < self.length <= min(self.fft_size, size) or not 0 <= self.overlap < self.length:
            raise ValueError(message(
                operation, "the segments do not fit.",
                got=f"nperseg={length}, noverlap={noverlap}, nfft={nfft}, of {size}",
                expected="noverlap < nperseg <= nfft, and a signal of nperseg or more",
            ))  # fmt: skip
        self.step = self.length - self.overlap
        self.window = window_of(window, self.length, operation)

    def of(self, x: Any) -> Any:
        """Return the segments of the last dimension, of shape (..., count, length)."""
        starts = np.arange(0, x.shape[-1] - self.length + 1, self.step)
        return x[..., starts[:, None] + np.arange(self.length)]


def _whole(length: Any) -> int:
    """Return a length, which may be a float without a fraction, such as a time times a rate."""
    return int(length) if isinstance(length, float) and length.is_integer() else size_of(length)


def _spectrum(operation: str, x: Any, segments: _Segments, trend: Any, onesided: bool) -> Any:
    """Return the transforms of the segments, of shape (..., count, frequencies)."""
    parts = segments.of(x)
    if trend:
        parts = trend(parts) if callable(trend) else detrend(parts, -1, trend)
    parts = parts * xn.asarray(segments.window).astype(x.real.dtype)
    return (fourier.rfft if onesided else fourier.fft)(parts, segments.fft_size)


def _check_rate(operation: str, fs: Any) -> None:
    """Refuse 0: each frequency would be 0, and a density of 0 / 0 whatever rounding left."""
    rate = array_of(fs, operation)
    is_real = not dtypes.is_complex(rate.dtype)
    require(
        rate.ndim == 0 and is_real, operation, "fs is not one real number.", got=rate,
        error=TypeError,
    )  # fmt: skip
    is_known = not isinstance(fs, Tracer)
    require(not is_known or np.asarray(fs).all(), operation, "fs must not be 0.", got=fs)


def _frequencies(fs: Any, size: int, onesided: bool, dtype: Any) -> Any:
    made = fourier.rfftfreq if onesided else fourier.fftfreq
    return made(size).astype(dtype) * xn.asarray(fs).astype(dtype)


def _scale(segments: _Segments, scaling: str, fs: Any, operation: str) -> Any:
    window = segments.window
    if scaling == "density":
        return 1 / (fs * (window * window).sum())
    require_choice(operation, "scaling", scaling, ("density", "spectrum"))
    return 1 / window.sum() ** 2


_EDGES = {"even": "reflect", "odd": "reflect", "constant": "edge", "zeros": "constant"}


def _extend(x: Any, boundary: str, n: int) -> Array:
    """Return a signal with n elements more at each end."""
    margins = [(0, 0)] * (x.ndim - 1) + [(n, n)]
    if boundary == "odd":
        return xn.pad(x, margins, mode="reflect", reflect_type="odd")
    return xn.pad(x, margins, mode=_EDGES[boundary])


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Return the short-time Fourier transform of a signal.

    Args:
      x: the signal, real or complex.
      fs: samples per unit of time, one real number, not 0.
      window: a name ("hann", "hamming", "blackman", "boxcar", "bartlett", ...), a name with a
        number (("kaiser", beta), ...), or an array of `nperseg` elements.
      nperseg: the length of segments.
      noverlap: how much they overlap; None for half.
      nfft: the length of transforms, filled up with zeros; None for `nperseg`.
      detrend: False, "constant", "linear", or a function of segments.
      return_onesided: whether real signals give frequencies from 0 on alone.
      boundary: how the signal goes on at its ends: "even", "odd", "constant", "zeros", or None.
      padded: whether zeros fill up the last segment.
      axis: along which the signal goes.

    Returns:
      Frequencies, times of the segments' middles, and transforms, with the frequencies at `axis`
      and the times last.
    """
    (x,) = inexact("stft", x)
    dim = axis_of(axis, x.ndim, "stft")
    rest = x.ndim - 1 - dim
    x = xn.moveaxis(x, dim, -1)
    if boundary is not None:
        require_choice("stft", "boundary", boundary, _EDGES, also="None")
    _check_rate("stft", fs)
    segments = _Segments("stft", x.shape[-1], window, nperseg, noverlap, nfft)
    if boundary is not None:
        x = _extend(x, boundary, segments.length // 2)
    if padded:
        missing = -(x.shape[-1] - segments.length) % segments.step
        x = xn.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    onesided = return_onesided and not dtypes.is_complex(x.dtype)
    spectra = _spectrum("stft", x, segments, detrend, onesided)
    spectra = spectra / xn.asarray(segments.window.sum()).astype(x.real.dtype)
    count = spectra.shape[-2]
    first = 0.0 if boundary is not None else segments.length / 2
    times = (xn.arange(count).astype(x.real.dtype) * segments.step + first) / fs
    frequencies = _frequencies(fs, segments.fft_size, onesided, x.real.dtype)
    spectra = xn.moveaxis(spectra, -1, dim) if rest or x.ndim > 1 else spectra.mT
    return frequencies, times, spectra


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Return frequencies and the cross power spectral density of two signals, by Welch's method.

    Args:
      x: a signal.
      y: another, of as many elements along the axis; None for `x`.
      fs: samples per unit of time, one real number, not 0.
      window: as of `stft`.
      nperseg: the length of segments; None for 256, or that of the window.
      noverlap: as of `stft`.
      nfft: as of `stft`.
      detrend: as of `stft`.
      return_onesided: as of `stft`.
      scaling: "density" for power per frequency, "spectrum" for power.
      axis: along which the signals go.
      average: "mean" or "median" over the segments.
    """
    same = y is None  # not `y is x`, as in SciPy: a dtype does not depend on which object it is
    x, y = inexact("csd", x, x if same else y)
    x, y = [xn.moveaxis(v, axis_of(axis, v.ndim, "csd"), -1) for v in (x, y)]
    if x.shape[-1] != y.shape[-1]:
        longest = max(x.shape[-1], y.shape[-1])
        x, y = [xn.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, longest - v.shape[-1])]) for v in (x, y)]
    _check_rate("csd", fs)
    segments = _Segments("csd", x.shape[-1], window, nperseg, noverlap, nfft)
    onesided = return_onesided and not dtypes.is_complex(x.dtype)
    first = _spectrum("csd", x, segments, detrend, onesided)
    second = first if same else _spectrum("csd", y, segments, detrend, onesided)
    power = xn.conj(first) * second
    power = power * xn.asarray(_scale(segments, scaling, fs, "csd")).astype(x.real.dtype)
    if onesided:  # the other half of the frequencies, but for 0 and, of even lengths, the last one
        factor = np.full(power.shape[-1], 2.0)
        factor[0] = 1
        if segments.fft_size % 2 == 0:
            factor[-1] = 1
        power = power * xn.asarray(factor, x.real.dtype)
    result = _average(power, average)
    result = result.real if same else result
    frequencies = _frequencies(fs, segments.fft_size, onesided, x.real.dtype)
    return frequencies, xn.moveaxis(result, -1, axis if result.ndim > 1 else -1)


def _average(power: Any, average: str) -> Any:
    require_choice("csd", "average", average, ("mean", "median"))
    if average == "mean":
        return power.mean(-2)
    # the median of a chi-squared variable of two degrees by its mean (B. Allen et al., FINDCHIRP)
    count = power.shape[-2]
    even = 2 * np.arange(1, (count - 1) // 2 + 1)
    bias = 1 + float((1 / (even + 1) - 1 / even).sum())
    median = xn.median(power.real, -2) + 1j * xn.median(power.imag, -2)
    return median / bias


def welch(
    x: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, detrend: Detrend = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:  # fmt: skip
    """Return frequencies and the power spectral density of a signal; arguments as of `csd`."""
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling,
               axis, average)  # fmt: skip


def istft(
    Zxx: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True,
    boundary: bool = True, time_axis: int = -1, freq_axis: int = -2,
) -> tuple[Array, Array]:  # fmt: skip
    """Return times and the signal whose short-time transform comes nearest to the one given.

    Args:
      Zxx: the transform, of two dimensions or more.
      fs: as of `stft`, as the following ones, with which the transform was made.
      window: see `fs`.
      nperseg: see `fs`; None for what the frequencies say.
      noverlap: see `fs`.
      nfft: see `fs`.
      input_onesided: whether frequencies go from 0 on alone, and the signal is real.
      boundary: whether the signal was made longer at its ends, which is undone.
      time_axis: the dimension of times.
      freq_axis: the dimension of frequencies.
    """
    (z,) = inexact("istft", xn.asarray(Zxx) + 0j)
    require(
        z.ndim >= 2 and axis_of(time_axis, z.ndim, "istft") != axis_of(freq_axis, z.ndim, "istft"),
        "istft", "takes a dimension of frequencies and one of times.",
        got=(z, freq_axis, time_axis),
    )  # fmt: skip
    z = xn.moveaxis(z, (time_axis, freq_axis), (-2, -1))
    count, frequencies = z.shape[-2:]
    natural = 2 * (frequencies - 1) if input_onesided else frequencies
    length = natural if nperseg is None else _whole(nperseg)
    size = natural + (length == natural + 1) if nfft is None else _whole(nfft)
    overlap = length // 2 if noverlap is None else _whole(noverlap)
    total = length + (count - 1) * (length - overlap)
    _check_rate("istft", fs)
    segments = _Segments("istft", max(total, length), window, length, noverlap, size)
    parts = (fourier.irfft if input_onesided else fourier.ifft)(z, size)[..., :length]
    dtype = parts.real.dtype
    win = xn.asarray(segments.window).astype(dtype)
    places = np.arange(count)[:, None] * segments.step + np.arange(length)
    signal = xn.zeros((*z.shape[:-2], total), parts.dtype)
    signal = signal.at[..., places].add(parts * win * win.sum())
    weight = xn.zeros((total,), dtype).at[places].add(xn.broadcast_to(win * win, places.shape))
    if boundary:
        half = length // 2
        signal, weight = signal[..., half : total - half], weight[half : total - half]
    signal = signal / xn.where(weight > 1e-10, weight, 1)
    times = xn.arange(signal.shape[-1]).astype(dtype) / fs
    return times, signal


boundaries(globals())
