"""Samples of Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.fft import FftType
from xprim.testing import Sample, Tolerance

__all__ = ()

FLOAT32 = Tolerance(1e-5, 1e-5, "the two libraries order the sums of float32 numbers differently")
FLOAT64 = Tolerance(1e-13, 1e-12, "the two libraries order the sums of float64 numbers differently")


def _real(shape: tuple[int, ...]) -> Any:
    return np.asarray(np.random.default_rng(5).normal(size=shape))


def _complex(shape: tuple[int, ...]) -> Any:
    rng = np.random.default_rng(6)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def _sample(kind: FftType, x: Any, lengths: tuple[int, ...], dtype: Any, note: str = "") -> Sample:
    tolerance = FLOAT32 if np.dtype(dtype).name in ("float32", "complex64") else FLOAT64
    return Sample([x.astype(dtype)], {"fft_type": kind, "fft_lengths": lengths}, tolerance,
                  note=f"{kind.name}{note}")  # fmt: skip


def _all() -> list[Sample]:
    samples = []
    shape: tuple[int, ...]
    for kind in (FftType.FFT, FftType.IFFT):
        for shape, count in (((5,), 1), ((2, 4), 1), ((3, 4), 2), ((2, 2, 3, 2), 3), ((2, 1), 1)):
            samples.append(_sample(kind, _complex(shape), shape[-count:], "complex128"))
        samples.append(_sample(kind, _complex((2, 6)), (6,), "complex64"))
        samples.append(_sample(kind, _complex((0, 3)), (3,), "complex128", "-empty"))
    for shape, count in (((5,), 1), ((2, 4), 1), ((3, 4), 2), ((2, 3, 5), 2), ((2, 2, 2, 3), 3),
                         ((3, 1), 1), ((3, 2), 1), ((0, 4), 1)):  # fmt: skip
        lengths = shape[-count:]
        half = (*shape[:-1], shape[-1] // 2 + 1)
        samples.append(_sample(FftType.RFFT, _real(shape), lengths, "float64"))
        samples.append(
            _sample(FftType.IRFFT, _hermitian(half, shape, count), lengths, "complex128")
        )
    samples.append(_sample(FftType.RFFT, _real((2, 6)), (6,), "float32"))
    samples.append(_sample(FftType.IRFFT, _hermitian((2, 4), (2, 6), 1), (6,), "complex64"))
    return samples


def _hermitian(half: tuple[int, ...], shape: tuple[int, ...], count: int) -> Any:
    # what is not a transform of real numbers is outside of the specification of IRFFT
    if 0 in shape:
        return _complex(half)
    return np.fft.rfftn(_real(shape), axes=tuple(range(-count, 0)))


TABLE: dict[str, list[Sample]] = {"fft": _all()}
