"""Transforms of cosines: `xnp.scipy.fft`.

Each of the four types is a Fourier transform of as many or twice as many elements. Source: J.
Makhoul, A fast cosine transform in one and two dimensions (1980); names and norms are SciPy's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import xnp.numpy as xn
from xnp import fft as fourier, lax
from xnp.numpy.dispatch import axes_of, axis_of, inexact
from xprim import Array, dtypes
from xprim.avals import size_of
from xprim.errors import message
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["dct", "dctn", "idct", "idctn"]

__dir__ = __all__.copy

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def dct(
    x: ArrayLike,
    type: int = 2,  # noqa: A002 - SciPy's name
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
) -> Array:
    """Return the discrete cosine transform along an axis.

        type 1: y_k = x_0 + (-1)^k x_(n-1) + 2 sum_{0 < j < n-1} x_j cos(pi j k / (n - 1))
        type 2: y_k = 2 sum x_j cos(pi k (2j + 1) / (2n))
        type 3: y_k = x_0 + 2 sum_{j > 0} x_j cos(pi (2k + 1) j / (2n))
        type 4: y_k = 2 sum x_j cos(pi (2k + 1) (2j + 1) / (4n))

    Args:
      x: a real array.
      type: 1, 2, 3 or 4.
      n: how many elements are taken; fewer are filled up with zeros. None for all.
      axis: the axis.
      norm: None or "backward" for the sums as above, "forward" for them divided by 2n (type 1:
        2 (n - 1)), "ortho" for an orthonormal transform.

    Differentiable in: x.
    """
    return _transform("dct", x, type, n, axis, norm, norm)


def idct(
    x: ArrayLike,
    type: int = 2,  # noqa: A002 - SciPy's name
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
) -> Array:
    """Return the inverse of `dct`; arguments as of it."""
    opposite = {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)
    return _transform("idct", x, _INVERSE.get(type, type), n, axis, norm, opposite)


def dctn(x: ArrayLike, type: int = 2, s: Sequence[int] | None = None,  # noqa: A002 - SciPy's name
         axes: Sequence[int] | None = None, norm: str | None = None) -> Array:  # fmt: skip
    """Return the discrete cosine transform along axes.

    Args:
      x: a real array.
      type: 1, 2, 3 or 4, as of `dct`.
      s: how many elements are taken along each axis.
      axes: None for all, or, with `s`, for as many of the last ones.
      norm: as of `dct`.
    """
    return _along_axes(dct, "dctn", x, type, s, axes, norm)


def idctn(x: ArrayLike, type: int = 2, s: Sequence[int] | None = None,  # noqa: A002 - SciPy's name
          axes: Sequence[int] | None = None, norm: str | None = None) -> Array:  # fmt: skip
    """Return the inverse of `dctn`; arguments as of it."""
    return _along_axes(idct, "idctn", x, type, s, axes, norm)


def _along_axes(one: Any, operation: str, x: Any, kind: int, s: Any, axes: Any, norm: Any) -> Array:
    (y,) = inexact(operation, x)
    if axes is None:
        axes = range(y.ndim) if s is None else range(y.ndim - len(s), y.ndim)
    found = axes_of(tuple(axes), y.ndim, operation)
    sizes = [None] * len(found) if s is None else list(s)
    if len(sizes) != len(found):
        raise ValueError(message(
            operation, "there must be a size for each axis.", got=f"{s} for axes {found}",
        ))  # fmt: skip
    for axis, size in zip(found, sizes, strict=True):
        y = one(y, kind, size, axis, norm)
    return y


def _transform(operation: str, x: Any, *args: Any) -> Array:
    """Transform an array, or the parts of a complex one."""
    (x,) = inexact(operation, x)
    if not dtypes.is_complex(x.dtype):
        return _transform_real(operation, x, *args)
    return lax.complex(*[_transform_real(operation, part, *args)
                         for part in (xn.real(x), xn.imag(x))])  # fmt: skip


def _transform_real(
    operation: str, x: Any, kind: int, n: int | None, axis: int, norm: Any, scale: Any
) -> Array:
    require_choice(operation, "type", kind, _INVERSE)
    require_choice(operation, "norm", norm, (None, "backward", "forward", "ortho"))
    dim = axis_of(axis, x.ndim, operation)
    x = xn.moveaxis(x, dim, -1)
    size = x.shape[-1] if n is None else size_of(n)
    require(size >= 1 + (kind == 1), operation, "there are too few elements.", got=size)
    x = x[..., :size]
    x = xn.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1])])
    before, after = _orthonormal(kind, size) if scale == "ortho" else (None, None)
    x = x if before is None else x * xn.asarray(before, x.dtype)
    y = _KINDS[kind](x, size)
    if after is not None:
        y = y * xn.asarray(after, x.dtype)
    elif scale == "forward":
        y = y / (2 * (size - 1) if kind == 1 else 2 * size)
    return xn.moveaxis(y.astype(x.dtype), -1, dim)


@functools.lru_cache(64)
def _orthonormal(kind: int, n: int) -> tuple[Any, Any]:
    """Return factors of the elements before and after that make a transform orthonormal."""
    before, after = np.ones(n), np.full(n, math.sqrt(1 / (2 * n)))
    if kind == 1:
        before[[0, -1]] = math.sqrt(2)
        after = np.full(n, math.sqrt(1 / (2 * (n - 1))))
        after[[0, -1]] *= math.sqrt(0.5)
    elif kind == 2:
        after[0] *= math.sqrt(0.5)
    elif kind == 3:
        before[0] = math.sqrt(2)
    return before, after


def _phase(x: Any, angles: Any) -> Any:
    values = np.exp(1j * np.asarray(angles))
    return xn.asarray(values, dtypes.to_complex_dtype(x.dtype))


def _first(x: Any, n: int) -> Any:
    whole = xn.concatenate([x, x[..., -2:0:-1]], -1)
    return fourier.fft(whole)[..., :n].real


def _second(x: Any, n: int) -> Any:
    ordered = xn.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1)
    return 2 * (fourier.fft(ordered) * _phase(x, -np.pi * np.arange(n) / (2 * n))).real


def _third(x: Any, n: int) -> Any:
    back = xn.concatenate([xn.zeros_like(x[..., :1]), x[..., :0:-1]], -1)
    spectrum = (x - 1j * back) * _phase(x, np.pi * np.arange(n) / (2 * n))
    ordered = fourier.ifft(spectrum).real * n
    half = (n + 1) // 2
    whole = xn.zeros_like(x).at[..., ::2].set(ordered[..., :half].astype(x.dtype))
    return whole.at[..., 1::2].set(ordered[..., half:][..., ::-1].astype(x.dtype))


def _fourth(x: Any, n: int) -> Any:
    turned = x * _phase(x, -np.pi * np.arange(n) / (2 * n))
    spectrum = fourier.fft(turned, 2 * n)[..., :n]
    return 2 * (spectrum * _phase(x, -np.pi * (2 * np.arange(n) + 1) / (4 * n))).real


_KINDS = {1: _first, 2: _second, 3: _third, 4: _fourth}


boundaries(globals())
