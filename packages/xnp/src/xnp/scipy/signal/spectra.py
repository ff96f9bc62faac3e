"""Spectra of signals in segments: stft, istft, csd, welch; and detrend.

A signal is cut in segments that overlap, each is freed of its trend, multiplied by a window and
transformed. Sources: P. Welch, The use of the fast Fourier transform for the estimation of power
spectra (1967); D. Griffin and J. Lim, Signal estimation from modified short-time Fourier transform
(1984).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xnp.numpy as xn
from xnp import fft as fourier
from xnp.numpy.promoting import axis_of, inexact
from xnp.scipy.signal.windows import window_of
from xprim import Array, dtypes
from xprim.errors import message
from xprim.sizes import size_of
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["csd", "detrend", "istft", "stft", "welch"]

__dir__ = __all__.copy

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
    if overwrite_data is not None:
        raise ValueError(message(
            "detrend", "arrays do not change.", expected="overwrite_data=None",
        ))  # fmt: skip
    if type not in ("constant", "linear", "c", "l"):
        raise ValueError(message(
            "detrend", "there is no such type.", got=f"{type!r}", expected="'constant' or 'linear'",
        ))  # fmt: skip
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


def _frequencies(fs: Any, size: int, onesided: bool, dtype: Any) -> Any:
    made = fourier.rfftfreq if onesided else fourier.fftfreq
    return made(size).astype(dtype) * xn.asarray(fs).astype(dtype)


def _scale(segments: _Segments, scaling: str, fs: Any, operation: str) -> Any:
    window = segments.window
    with np.errstate(divide="ignore"):  # of no samples per unit of time the density is infinite
        if scaling == "density":
            return 1 / (fs * (window * window).sum())
        if scaling == "spectrum":
            return 1 / window.sum() ** 2
    raise ValueError(message(
        operation, "there is no such scaling.", got=f"{scaling!r}",
        expected="'density' or 'spectrum'",
    ))  # fmt: skip


_EDGES = {"even": "reflect", "odd": "reflect", "constant": "edge", "zeros": "constant"}


def _extended(x: Any, boundary: str, n: int) -> Array:
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
      fs: samples per unit of time.
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
    if boundary is not None and boundary not in _EDGES:
        raise ValueError(message(
            "stft", "there is no such boundary.", got=f"{boundary!r}",
            expected=f"None or one of {tuple(_EDGES)}",
        ))  # fmt: skip
    segments = _Segments("stft", x.shape[-1], window, nperseg, noverlap, nfft)
    if boundary is not None:
        x = _extended(x, boundary, segments.length // 2)
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
      fs: samples per unit of time.
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
    result = _averaged(power, average)
    result = result.real if same else result
    frequencies = _frequencies(fs, segments.fft_size, onesided, x.real.dtype)
    return frequencies, xn.moveaxis(result, -1, axis if result.ndim > 1 else -1)


def _averaged(power: Any, average: str) -> Any:
    if average == "mean":
        return power.mean(-2)
    if average != "median":
        raise ValueError(message(
            "csd", "there is no such average.", got=f"{average!r}", expected="'mean' or 'median'",
        ))  # fmt: skip
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
    if z.ndim < 2 or axis_of(time_axis, z.ndim, "istft") == axis_of(freq_axis, z.ndim, "istft"):
        raise ValueError(message(
            "istft", "takes a dimension of frequencies and one of times.",
            got=f"{z.aval.str_long()}, {freq_axis}, {time_axis}",
        ))  # fmt: skip
    z = xn.moveaxis(z, (time_axis, freq_axis), (-2, -1))
    count, frequencies = z.shape[-2:]
    natural = 2 * (frequencies - 1) if input_onesided else frequencies
    length = natural if nperseg is None else _whole(nperseg)
    size = natural + (length == natural + 1) if nfft is None else _whole(nfft)
    overlap = length // 2 if noverlap is None else _whole(noverlap)
    total = length + (count - 1) * (length - overlap)
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
