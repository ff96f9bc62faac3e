"""Discrete Fourier transforms under NumPy's names: `xnp.fft`.

    fft  fft2  fftn      of complex numbers       ifft  ifft2  ifftn      their inverses
    rfft rfft2 rfftn     of real numbers          irfft irfft2 irfftn     their inverses, to real
    hfft ihfft           of signals whose transform is real
    fftfreq rfftfreq fftshift ifftshift           frequencies and their order

Each brings an array to the lengths requested, by zeros or by cutting, transforms the dimensions,
three at a time, and scales. All are differentiable in the array, to any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xnp.lax.convolution import FftType, fft as _transform
from xnp.numpy import dispatch
from xnp.numpy.creation import counting
from xnp.numpy.dispatch import array_of, axes_of, axis_of, cast, dispatch_on, inexact, several_axes
from xnp.numpy.rearranging import roll
from xnp.numpy.shaping import moveaxis
from xnp.placing import on_device
from xnp.primitives.table import bind, scalar_like
from xprim import Array, dtypes, scalar_array
from xprim.errors import ArgumentError, message
from xprim.requirements import require, require_choice, static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DeviceLike, DTypeLike

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

__dir__ = __all__.copy

Shape = Sequence[int]
_FORWARD = (FftType.FFT, FftType.RFFT)
_MOST_AXES = 3  # that one operation transforms
_NORMS = ("backward", "ortho", "forward")


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the discrete Fourier transform along an axis.

    X[k] = sum over m of a[m] exp(-2 pi i k m / n), for k = 0 ... n - 1.

    NumPy's takes `out` as well.

    Args:
      a: an array; floats of 16 bits and integers are transformed in float32.
      n: the length; the axis is cut or filled with zeros to it. None takes that of the axis.
      axis: the dimension to transform.
      norm: "backward" (None, too) divides the inverse by n, "forward" the transform, and "ortho"
        each by sqrt(n).

    Returns:
      An array of complex numbers.

    Raises:
      ValueError: a length below 1, an axis that is not there, another norm.

    Example:
      >>> import xnp
      >>> xnp.fft.fft(xnp.array([1.0, 0.0, -1.0, 0.0]))
      Array([0.+0.j, 2.+0.j, 0.+0.j, 2.+0.j], dtype=complex64)

    Differentiable in: a.
    """
    return _along_one("fft", FftType.FFT, a, n, axis, norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of `fft`.

    Args:
        a: an array; floats of 16 bits and integers are transformed in float32.
        n: the length; the axis is cut or filled with zeros to it. None takes that
            of the axis.
        axis: the dimension to transform.
        norm: as for `fft`.

    Returns:
        An array of complex numbers: complex64, where NumPy has complex128, unless
        `a` has 64 bits.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `n` is negative; `axis` is out of bounds; unknown `norm`.

    Example:
        >>> import xnp
        >>> xnp.fft.ifft(xnp.array([4.0, 0.0, 0.0, 0.0]))
        Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _along_one("ifft", FftType.IFFT, a, n, axis, norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the first n // 2 + 1 elements of the `fft` of real numbers, which say the rest.

    NumPy's takes `out` as well.

    Args:
        a: a real array; floats of 16 bits and integers are transformed in float32.
        n: the length; the axis is cut or filled with zeros to it. None takes that
            of the axis.
        axis: the dimension to transform.
        norm: as for `fft`.

    Returns:
        An array of complex numbers, of n // 2 + 1 elements along the axis.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `n` is negative; `axis` is out of bounds; unknown `norm`.

    Example:
        >>> import xnp
        >>> xnp.fft.rfft(xnp.array([1.0, 0.0, -1.0, 0.0]))
        Array([0.+0.j, 2.+0.j, 0.+0.j], dtype=complex64)
    """
    return _along_one("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of `rfft`, real numbers.

    NumPy's takes `out` as well.

    Args:
        a: an array of n // 2 + 1 elements along the axis.
        n: the length of the result; None takes the even one, 2 (m - 1) for m
            elements.
        axis: the dimension to transform.
        norm: as for `fft`.

    Returns:
        An array of real numbers.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `n` is negative; `axis` is out of bounds; unknown `norm`.

    Example:
        >>> import xnp
        >>> xnp.fft.irfft(xnp.array([0.0, 2.0, 0.0]))
        Array([ 1.,  0., -1.,  0.], dtype=float32)
    """
    return _along_one("irfft", FftType.IRFFT, a, n, axis, norm)


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the real transform of a signal given by its first half: a[-m] is conj(a[m]).

    NumPy's takes `out` as well.

    Args:
        a: an array of n // 2 + 1 elements along the axis.
        n: the length of the result; None takes the even one, 2 (m - 1) for m
            elements.
        axis: the dimension to transform.
        norm: as for `fft`.

    Returns:
        An array of real numbers.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `n` is negative; `axis` is out of bounds; unknown `norm`.

    Example:
        >>> import xnp
        >>> xnp.fft.hfft(xnp.array([0.0, 0.5, 0.0]))
        Array([ 1.,  0., -1.,  0.], dtype=float32)
    """
    x = array_of(a, "hfft")
    flipped = bind("conj", x, input_dtype=x.aval.dtype) if dtypes.is_complex(x.aval.dtype) else x
    return _along_one("hfft", FftType.IRFFT, flipped, n, axis, _exchange(norm, "hfft"))


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of `hfft`: half of a signal whose transform is real.

    NumPy's takes `out` as well.

    Args:
        a: a real array; floats of 16 bits and integers are transformed in float32.
        n: the length; the axis is cut or filled with zeros to it. None takes that
            of the axis.
        axis: the dimension to transform.
        norm: as for `fft`.

    Returns:
        An array of complex numbers, of n // 2 + 1 elements along the axis.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `n` is negative; `axis` is out of bounds; unknown `norm`.

    Example:
        >>> import xnp
        >>> xnp.fft.ihfft(xnp.array([1.0, 0.0, -1.0, 0.0]))
        Array([0. -0.j, 0.5-0.j, 0. -0.j], dtype=complex64)
    """
    x = _along_one("ihfft", FftType.RFFT, a, n, axis, _exchange(norm, "ihfft"))
    return bind("conj", x, input_dtype=x.aval.dtype)


def fftn(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Return the discrete Fourier transform along several axes.

    NumPy's takes `out` as well.

    Args:
      a: an array, as for `fft`.
      s: the lengths, one for each axis; -1 and None leave the axis as it is.
      axes: the dimensions; None takes the last ones, as many as `s` has, or all.
      norm: as for `fft`; n is the product of the lengths.

    Returns:
      An array of complex numbers.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axes` are out of bounds; unknown `norm`.

    Example:
      >>> import xnp
      >>> xnp.fft.fftn(xnp.ones((2, 2)))
      Array([[4.+0.j, 0.+0.j],
             [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _along_several("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Return the inverse of `fftn`.

    NumPy's takes `out` as well.

    Args:
        a: an array, as for `fft`; of `rfft2` and `rfftn` a real one.
        s: the lengths, one for each axis; -1 and None leave the axis as it is. Of
            `irfft2` and `irfftn` the last one is the length of the result there; None
            takes the even one.
        axes: the dimensions; None takes the last ones, as many as `s` has, or all.
        norm: as for `fft`; n is the product of the lengths.

    Returns:
        An array of complex numbers, of `irfft2` and `irfftn` of real ones.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axes` are out of bounds; unknown `norm`.

    Example:
        >>> import xnp
        >>> xnp.fft.ifftn(xnp.ones((2, 2))).real
        Array([[1., 0.],
               [0., 0.]], dtype=float32)
    """
    return _along_several("ifftn", FftType.IFFT, a, s, axes, norm)


def rfftn(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Return the transform of real numbers: `rfft` along the last axis, `fft` along the others.

    NumPy's takes `out` as well.

    Args:
        a: an array, as for `fft`; of `rfft2` and `rfftn` a real one.
        s: the lengths, one for each axis; -1 and None leave the axis as it is. Of
            `irfft2` and `irfftn` the last one is the length of the result there; None
            takes the even one.
        axes: the dimensions; None takes the last ones, as many as `s` has, or all.
        norm: as for `fft`; n is the product of the lengths.

    Returns:
        An array of complex numbers, of `irfft2` and `irfftn` of real ones.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axes` are out of bounds; unknown `norm`.

    Example:
        >>> import xnp
        >>> xnp.fft.rfftn(xnp.ones((2, 2, 4))).shape
        (2, 2, 3)
    """
    return _along_several("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Return the inverse of `rfftn`, real; the last of `s` is the length of the result there.

    NumPy's takes `out` as well.

    Args:
        a: an array, as for `fft`; of `rfft2` and `rfftn` a real one.
        s: the lengths, one for each axis; -1 and None leave the axis as it is. Of
            `irfft2` and `irfftn` the last one is the length of the result there; None
            takes the even one.
        axes: the dimensions; None takes the last ones, as many as `s` has, or all.
        norm: as for `fft`; n is the product of the lengths.

    Returns:
        An array of complex numbers, of `irfft2` and `irfftn` of real ones.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axes` are out of bounds; unknown `norm`.

    Example:
        >>> import xnp
        >>> xnp.fft.irfftn(xnp.ones((2, 2, 3))).shape
        (2, 2, 4)
    """
    return _along_several("irfftn", FftType.IRFFT, a, s, axes, norm)


def fft2(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Return `fftn` along two axes.

    NumPy's takes `out` as well.

    Args:
        a: an array, as for `fft`; of `rfft2` and `rfftn` a real one.
        s: the lengths, one for each axis; -1 and None leave the axis as it is. Of
            `irfft2` and `irfftn` the last one is the length of the result there; None
            takes the even one.
        axes: the dimensions; None takes the last ones, as many as `s` has, or all.
        norm: as for `fft`; n is the product of the lengths.

    Returns:
        An array of complex numbers, of `irfft2` and `irfftn` of real ones.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axes` are out of bounds; unknown `norm`.

    Example:
        >>> import xnp
        >>> xnp.fft.fft2(xnp.ones((2, 2))).real
        Array([[4., 0.],
               [0., 0.]], dtype=float32)
    """
    return _along_two("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Return `ifftn` along two axes.

    NumPy's takes `out` as well.

    Args:
        a: an array, as for `fft`; of `rfft2` and `rfftn` a real one.
        s: the lengths, one for each axis; -1 and None leave the axis as it is. Of
            `irfft2` and `irfftn` the last one is the length of the result there; None
            takes the even one.
        axes: the dimensions; None takes the last ones, as many as `s` has, or all.
        norm: as for `fft`; n is the product of the lengths.

    Returns:
        An array of complex numbers, of `irfft2` and `irfftn` of real ones.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axes` are out of bounds; unknown `norm`.

    Example:
        >>> import xnp
        >>> xnp.fft.ifft2(xnp.ones((2, 2))).real
        Array([[1., 0.],
               [0., 0.]], dtype=float32)
    """
    return _along_two("ifft2", FftType.IFFT, a, s, axes, norm)


def rfft2(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Return `rfftn` along two axes.

    NumPy's takes `out` as well.

    Args:
        a: an array, as for `fft`; of `rfft2` and `rfftn` a real one.
        s: the lengths, one for each axis; -1 and None leave the axis as it is. Of
            `irfft2` and `irfftn` the last one is the length of the result there; None
            takes the even one.
        axes: the dimensions; None takes the last ones, as many as `s` has, or all.
        norm: as for `fft`; n is the product of the lengths.

    Returns:
        An array of complex numbers, of `irfft2` and `irfftn` of real ones.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axes` are out of bounds; unknown `norm`.

    Example:
        >>> import xnp
        >>> xnp.fft.rfft2(xnp.ones((2, 4))).shape
        (2, 3)
    """
    return _along_two("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(
    a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Return `irfftn` along two axes.

    NumPy's takes `out` as well.

    Args:
        a: an array, as for `fft`; of `rfft2` and `rfftn` a real one.
        s: the lengths, one for each axis; -1 and None leave the axis as it is. Of
            `irfft2` and `irfftn` the last one is the length of the result there; None
            takes the even one.
        axes: the dimensions; None takes the last ones, as many as `s` has, or all.
        norm: as for `fft`; n is the product of the lengths.

    Returns:
        An array of complex numbers, of `irfft2` and `irfftn` of real ones.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `axes` are out of bounds; unknown `norm`.

    Example:
        >>> import xnp
        >>> xnp.fft.irfft2(xnp.ones((2, 3))).shape
        (2, 4)
    """
    return _along_two("irfft2", FftType.IRFFT, a, s, axes, norm)


# --- how they are computed ------------------------------------------------------------------------


def _along_one(name: str, kind: FftType, a: Any, n: Any, axis: Any, norm: str | None) -> Array:
    x = array_of(a, name)
    if several_axes(axis):
        where = _qualify(name)
        raise ArgumentError(
            f"{name}: {where} does not support multiple axes. Please use {where}n. "
            f"Got axis = {axis}."
        )
    lengths = None if n is None else (_length(n, name),)
    return _scale(
        x, name, kind, lengths, (axis_of(axis, x.aval.ndim, name),), _check_norm(norm, name)
    )


def _qualify(name: str) -> str:
    return dispatch.qualify(f"fft.{name}", full=True)


def _along_two(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: str | None) -> Array:
    if not (several_axes(axes) and len(axes) == 2):
        raise ArgumentError(f"{name}: {_qualify(name)} only supports 2 axes. Got axes = {axes}.")
    return _along_several(name, kind, a, s, axes, norm)


def _along_several(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: str | None) -> Array:
    x = array_of(a, name)
    if s is not None and axes is None:
        axes = range(-len(s), 0)
    if several_axes(axes):
        found = tuple([axis_of(d, x.aval.ndim, name) for d in axes])
    else:
        found = axes_of(axes, x.aval.ndim, name)
    if len(set(found)) != len(found):
        raise ArgumentError(
            f"{name}: {_qualify(name)} does not support repeated axes. Got axes {list(axes)}."
        )
    if s is not None and len(s) != len(found):
        raise ValueError(message(
            name, "there must be a length for each axis.",
            got=f"s={tuple(s)} and axes={tuple(axes)}",
        ))  # fmt: skip
    lengths = None if s is None else tuple([_length(n, name, -1) for n in s])
    return _scale(x, name, kind, lengths, found, _check_norm(norm, name))


def _length(n: Any, name: str, kept: int | None = None) -> int:
    """Return a length, or -1 for that of the axis, where it may be left."""
    if kept is not None and (n is None or n == kept):
        return kept
    found = static_int(n, name, "the length")
    require(found >= 1, name, "a length must be at least 1, got {}.", found)
    return int(found)


def _check_norm(norm: str | None, name: str) -> str:
    if norm is None:
        return "backward"
    require_choice(name, "norm", norm, _NORMS)
    return norm


def _exchange(norm: str | None, name: str) -> str:
    """Return the norm of a transform that goes the other way."""
    return _NORMS[-1 - _NORMS.index(_check_norm(norm, name))]


@dispatch_on(1)
def _scale(
    x: Array, name: str, kind: FftType, lengths: Any, axes: tuple[int, ...], norm: str
) -> Array:
    """Bring an array to the lengths, transform it along the axes, and scale."""
    require(
        kind != FftType.RFFT or not dtypes.is_complex(x.aval.dtype), name, "takes real numbers.",
        got=x, hint="fft takes complex ones; x.real is the real part", error=TypeError,
    )  # fmt: skip
    (x,) = inexact(name, x)
    if not axes:
        return _without_axes(x, kind)
    x = moveaxis(x, axes, tuple(range(-len(axes), 0)))
    sizes = _sizes(x.aval.shape[-len(axes) :], lengths, kind, name)
    result = _transform_last(_crop_or_pad(x, sizes, kind), kind, sizes)
    factor = _factor(math.prod(sizes), kind in _FORWARD, norm)
    if factor != 1:
        result = bind("mul", result, scalar_like(result, factor))
    return moveaxis(result, tuple(range(-len(axes), 0)), axes)


def _without_axes(x: Array, kind: FftType) -> Array:
    """Return the transform along no axis: the numbers, of transforms of complex ones complex."""
    real = kind in (FftType.RFFT, FftType.IRFFT)
    return x if real else cast(x, dtypes.to_complex_dtype(x.aval.dtype))


def _sizes(shape: tuple[int, ...], lengths: Any, kind: FftType, name: str) -> tuple[int, ...]:
    """Return the lengths of the transforms; those of an array are the default."""
    sizes = list(shape)
    if kind == FftType.IRFFT:
        sizes[-1] = 2 * (sizes[-1] - 1)
    if lengths is not None:
        sizes = [own if n == -1 else n for own, n in zip(sizes, lengths, strict=True)]
    if min(sizes) < 1:
        raise ValueError(message(
            name, "there must be at least one element to transform.", got=f"lengths {tuple(sizes)}",
            hint="n= or s= says the lengths",
        ))  # fmt: skip
    return tuple(sizes)


def _crop_or_pad(x: Array, sizes: tuple[int, ...], kind: FftType) -> Array:
    """Cut the last dimensions or fill them with zeros, to what the transform takes."""
    taken = list(sizes)
    if kind == FftType.IRFFT:
        taken[-1] = taken[-1] // 2 + 1
    shape = x.aval.shape
    first = len(shape) - len(taken)
    if list(shape[first:]) == taken:
        return x
    config = [(0, 0, 0)] * first + [
        (0, n - size, 0) for size, n in zip(shape[first:], taken, strict=True)
    ]
    return bind("pad", x, scalar_array(0, x.aval.dtype), padding_config=tuple(config))


def _transform_last(x: Array, kind: FftType, sizes: tuple[int, ...]) -> Array:
    """Transform the last dimensions, three at a time; a real transform is of the very last ones."""
    if len(sizes) <= _MOST_AXES:
        return _transform(x, kind, sizes)
    others, last = sizes[:-_MOST_AXES], sizes[-_MOST_AXES:]
    if kind in _FORWARD:
        return _among(_transform(x, kind, last), FftType.FFT, others)
    return _transform(_among(x, FftType.IFFT, others), kind, last)


def _among(x: Array, kind: FftType, sizes: tuple[int, ...]) -> Array:
    """Transform the dimensions before the last three."""
    source = tuple(range(-len(sizes) - _MOST_AXES, -_MOST_AXES))
    target = tuple(range(-len(sizes), 0))
    return moveaxis(_transform_last(moveaxis(x, source, target), kind, sizes), target, source)


def _factor(count: int, forward: bool, norm: str) -> float:
    """Return the factor of a norm, beyond 1 / count that inverses have already."""
    if norm == "ortho":
        return 1 / math.sqrt(count) if forward else math.sqrt(count)
    if norm == "forward":
        return 1 / count if forward else float(count)
    return 1.0


# --- frequencies ----------------------------------------------------------------------------------


def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Array:
    """Return the frequencies of the elements of `fft`, in cycles per unit of `d`.

    `d` is real, where NumPy takes complex numbers, too.

    Args:
        n: the length of the transform.
        d: the distance of two samples; a traced scalar, too.
        dtype: of the result, floating; None for the default.
        device: where the result shall be; None for the default.

    Returns:
      [0, 1, ..., n - 1 over 2, - n over 2, ..., -1] / (d n), whole halves.

    Raises:
        TypeError: `dtype` names no dtype.
        ValueError: `n` is negative.

    Example:
      >>> import xnp
      >>> xnp.fft.fftfreq(4, d=0.5)
      Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)
    """
    size = _count(n, "fftfreq")
    numbers = roll(_whole_numbers(size, -(size // 2), dtype, "fftfreq"), -(size // 2))
    return on_device(_per_unit(numbers, size, d, "fftfreq"), device, "fftfreq")


def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Array:
    """Return the frequencies of the elements of `rfft`: [0, 1, ..., n // 2] / (d n).

    `d` is real, where NumPy takes complex numbers, too.

    Args:
        n: the length of the transform.
        d: the distance of two samples; a traced scalar, too.
        dtype: of the result, floating; None for the default.
        device: where the result shall be; None for the default.

    Returns:
      A vector of n // 2 + 1 elements.

    Raises:
        TypeError: `dtype` names no dtype.
        ValueError: `n` is negative.

    Example:
      >>> import xnp
      >>> xnp.fft.rfftfreq(4, d=0.5)
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    size = _count(n, "rfftfreq")
    numbers = _whole_numbers(size // 2 + 1, 0, dtype, "rfftfreq")
    return on_device(_per_unit(numbers, size, d, "rfftfreq"), device, "rfftfreq")


def _count(n: Any, name: str) -> int:
    if isinstance(n, list | tuple):
        raise ArgumentError(f"{name}: The n argument of {_qualify(name)} only "
                             f"takes an int. Got n = {n}.")  # fmt: skip
    size = static_int(n, name, "n")
    require(size >= 1, name, "n must be at least 1, got {}.", size)
    return int(size)


def _whole_numbers(count: int, start: int, dtype: Any, name: str) -> Array:
    """Return `count` whole numbers from `start` on, as floats."""
    kind = dtypes.to_inexact_dtype(dtypes.canonicalize_dtype(float))
    if dtype is not None:
        kind = dtypes.requested_dtype(dtype, name)
    require(
        dtypes.is_inexact(kind), name, "frequencies are of a floating dtype, got {}.", kind.name
    )
    numbers = counting((count,), 0, kind)
    return bind("add", numbers, scalar_like(numbers, start)) if start else numbers


def _per_unit(numbers: Array, size: int, d: Any, name: str) -> Array:
    if isinstance(d, list | tuple):
        raise ArgumentError(f"{name}: The d argument of {_qualify(name)} only "
                             f"takes a single value. Got d = {d}.")  # fmt: skip
    unit = array_of(d, name)
    require(unit.aval.dtype.kind != "c", name, "d must be real.", got=unit, error=TypeError)
    unit = cast(unit, numbers.aval.dtype)
    require(not unit.aval.shape, name, "d must be a scalar, got {}.", unit)
    return bind("div", numbers, bind("mul", unit, scalar_like(unit, size)))


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move the frequency 0 from the front to the middle of the axes; None means all of them.

    Args:
        x: an array.
        axes: an int or a sequence of ints; None for all.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `axes` are out of bounds.

    Example:
      >>> import xnp
      >>> xnp.fft.fftshift(xnp.fft.fftfreq(4))
      Array([-0.5 , -0.25,  0.  ,  0.25], dtype=float32)
    """
    return _shift("fftshift", x, axes, lambda size: size // 2)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Undo `fftshift`, also for odd lengths.

    Args:
        x: an array.
        axes: an int or a sequence of ints; None for all.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `axes` are out of bounds.

    Example:
      >>> import xnp
      >>> xnp.fft.ifftshift(xnp.fft.fftshift(xnp.array([0, 1, 2])))
      Array([0, 1, 2], dtype=int32)
    """
    return _shift("ifftshift", x, axes, lambda size: -(size // 2))


def _shift(name: str, x: Any, axes: Any, shift: Any) -> Array:
    x = array_of(x, name)
    found = axes_of(axes, x.aval.ndim, name)
    return roll(x, tuple([shift(x.aval.shape[k]) for k in found]), found)


boundaries(globals())
