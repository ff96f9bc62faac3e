"""Images of another size: `resize`, `scale_and_translate`.

An image is resampled along each spatial dimension by itself, by a matrix of weights: element o of
the result lies at x = (o + 1/2 - translation) / scale - 1/2 of the input, whose element i counts by
the method's kernel at x - i. The weights of an element are scaled to the sum 1. Where the image
becomes smaller, the kernel is stretched by 1 / scale, so that every element of the input counts:
this is the antialiasing.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

import xnp.numpy as xn
from xnp import lax
from xnp.numpy import abs as absolute, arange, clip, maximum, sinc, sum as summed, take, where
from xnp.numpy.dispatch import array_of, axes_of, cast, computation_dtype, inexact
from xnp.primitives.precision import PrecisionLike
from xprim import Array, dtypes
from xprim.avals import SymbolicSize
from xprim.errors import message
from xprim.requirements import require, require_choice, static_shape
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

__dir__ = __all__.copy


class ResizeMethod(enum.Enum):
    """How an element is computed from its neighbours in the input.

    NEAREST takes the nearest; LINEAR interpolates between two; CUBIC between four by Keys' kernel
    with a = -1/2 (CUBIC_PYTORCH, without antialiasing: a = -3/4, edges repeated); LANCZOS3 and
    LANCZOS5 are windowed sinc functions of these radii; AREA averages what an element covers.
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """Return the method of a name, such as "bilinear" or "lanczos3".

        Raises:
          ValueError: unknown method.
        """
        require_choice("ResizeMethod", "method", s, _METHOD_BY_NAME)
        return _METHOD_BY_NAME[s]


_METHOD_BY_NAME = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


def resize(
    image: ArrayLike, shape: Sequence[int], method: str | ResizeMethod, antialias: bool = True,
    precision: PrecisionLike = lax.Precision.HIGHEST,
) -> Array:  # fmt: skip
    """Return an image of another shape, resampled in the dimensions whose size changes.

    Args:
      image: an array; integers are converted to the default float, except for NEAREST.
      shape: the new shape, of as many dimensions.
      method: a `ResizeMethod` or its name.
      antialias: whether every element of the input counts where the image becomes smaller.
      precision: of the matrix products, as in `xnp.matmul`.

    Returns:
      An array of that shape.

    Raises:
      ValueError: another number of dimensions, an unknown method, something made of nothing.

    Example:
      >>> import xnp
      >>> from xnp import image
      >>> image.resize(xnp.array([[0.0, 2.0]]), (1, 4), "linear")
      Array([[0. , 0.5, 1.5, 2. ]], dtype=float32)

    Differentiable in: image.
    """
    x, sizes, kind = _arguments("resize", image, shape, method)
    changed = [d for d, n in enumerate(sizes) if n != x.aval.shape[d]]
    require(
        not any(not x.aval.shape[d] for d in changed), "resize",
        "there are no elements to be resized.", got=x,
    )  # fmt: skip
    if kind is ResizeMethod.NEAREST:
        for d in changed:
            x = _nearest(x, sizes[d], d)
        nearest: Array = x
        return nearest
    (x,) = inexact("resize", x)
    scales = [sizes[d] / x.aval.shape[d] if sizes[d] else 1.0 for d in changed]
    still = [0.0] * len(changed)
    result: Array = _resample(x, sizes, changed, scales, still, kind, antialias, precision)
    return result


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = lax.Precision.HIGHEST,
) -> Array:
    """Return an image stretched and moved, on a canvas of a given shape.

    The point y of the input, in units of elements from the edge of the first, goes to
    y * scale + translation. What lies outside the input is 0.

    Args:
      image: an array; integers are converted to the default float.
      shape: of the result; dimensions that are not spatial keep their size.
      spatial_dims: the K dimensions to resample.
      scale: K numbers, an array.
      translation: K numbers, an array.
      method: a `ResizeMethod` other than NEAREST, or its name.
      antialias: as for `resize`.
      precision: as for `resize`.

    Returns:
      An array of that shape, of the dtype of the image; integers become floats.

    Raises:
      ValueError: for NEAREST, and for numbers and shapes that do not go together.

    Example:
      >>> import xnp
      >>> from xnp import image
      >>> x = xnp.array([1.0, 2.0, 3.0])
      >>> image.scale_and_translate(x, (4,), (0,), xnp.ones(1), xnp.ones(1), "linear")
      Array([0., 1., 2., 3.], dtype=float32)

    Differentiable in: image, scale and translation.
    """
    x, sizes, kind = _arguments("scale_and_translate", image, shape, method)
    require(
        kind is not ResizeMethod.NEAREST, "scale_and_translate",
        "the nearest element is not defined for every scale.",
        hint="method='linear', or resize(..., 'nearest')",
    )  # fmt: skip
    axes = axes_of(tuple(spatial_dims), x.aval.ndim, "scale_and_translate")
    others = [d for d in range(x.aval.ndim) if d not in axes and sizes[d] != x.aval.shape[d]]
    if others:
        raise ValueError(message(
            "scale_and_translate", "only spatial dimensions change their size.",
            got=f"{x.aval.str_long()} to shape {sizes}, spatial_dims={axes}",
        ))  # fmt: skip
    (x,) = inexact("scale_and_translate", x)
    scales, moves = inexact("scale_and_translate", xn.asarray(scale), xn.asarray(translation))
    dtype = x.aval.dtype
    if scales.aval.dtype == dtypes.float64:
        x = cast(x, dtypes.complex128 if dtypes.is_complex(dtype) else dtypes.float64)
    for name, values in (("scale", scales), ("translation", moves)):
        if values.aval.shape != (len(axes),):
            raise ValueError(message(
                "scale_and_translate", f"{name} must have a number for each spatial dimension.",
                got=values.aval.str_long(), expected=f"shape {(len(axes),)}",
            ))  # fmt: skip
    each = [[values[k] for k in range(len(axes))] for values in (scales, moves)]
    result = _resample(x, sizes, axes, each[0], each[1], kind, antialias, precision)
    in_its_dtype: Array = cast(result, dtype)
    return in_its_dtype


def _arguments(operation: str, image: Any, shape: Any, method: Any) -> Any:
    x = array_of(image, operation)
    sizes = static_shape(shape, operation)
    if len(sizes) != x.aval.ndim:
        raise ValueError(message(
            operation, "shape must have a size for each dimension of the image.",
            got=f"{x.aval.str_long()} to shape {tuple(sizes)}",
        ))  # fmt: skip
    known = method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)
    return x, tuple(sizes), known


def _nearest(x: Array, size: int, dim: int) -> Any:
    """Return the elements whose middles are nearest to those of the result."""
    count = arange if isinstance(size, SymbolicSize) else np.arange
    twice_middles: Any = 2 * count(size) + 1
    return take(x, twice_middles * x.aval.shape[dim] // max(2 * size, 1), dim)


def _resample(
    x: Array, sizes: tuple[int, ...], axes: Sequence[int], scales: Sequence[Any],
    moves: Sequence[Any], method: ResizeMethod, antialias: bool, precision: Any,
) -> Any:  # fmt: skip
    """Multiply each spatial dimension by its matrix of weights."""
    dtype = x.aval.dtype
    x = cast(x, computation_dtype(dtype))
    for d, scale, move in zip(axes, scales, moves, strict=True):
        real = dtypes.finfo(x.aval.dtype).dtype
        factor, shift = [array_of(v, "resize").real.astype(real) for v in (scale, move)]
        weights = _weights(x.aval.shape[d], sizes[d], factor, shift, method, antialias)
        product = xn.tensordot(x, weights.astype(x.aval.dtype), ((d,), (0,)), precision=precision)
        x = xn.moveaxis(product, -1, d)
    return cast(x, dtype)


def _weights(
    size: int, out_size: int, scale: Array, move: Array, method: ResizeMethod, antialias: bool
) -> Any:
    """Return the matrix of what each element of the input gives to each of the result."""
    dtype = scale.aval.dtype
    if method is ResizeMethod.AREA:
        return _overlaps(size, out_size, scale, move)
    stretch = maximum(1 / scale, 1) if antialias else 1.0
    places = (arange(out_size, dtype=dtype) + 0.5 - move) / scale - 0.5
    inside = (places >= -0.5) & (places <= size - 0.5)
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return where(inside, _weights_with_edges(size, places), 0)
    distances = (places - arange(size, dtype=dtype)[:, None]) / stretch
    return where(inside, _with_sum_one(_KERNELS[method](distances)), 0)


def _with_sum_one(weights: Array) -> Any:
    """Scale the weights of each element of the result; those that are all 0 stay so."""
    total = summed(weights, 0, keepdims=True)
    # the sum of a kernel is 1 up to rounding; what is far less than that is nothing but rounding
    is_some = absolute(total) > 1000 * float(dtypes.finfo(dtypes.float32).eps)
    return where(is_some, weights / where(is_some, total, 1), 0)


def _overlaps(size: int, out_size: int, scale: Array, move: Array) -> Any:
    """Return how much of each element of the result lies over each element of the input."""
    dtype = scale.aval.dtype
    edges = (arange(out_size + 1, dtype=dtype) - move) / scale
    low, high = clip(edges[:-1], 0, size), clip(edges[1:], 0, size)
    first = arange(size, dtype=dtype)[:, None]
    return _with_sum_one(maximum(xn.minimum(high, first + 1) - maximum(low, first), 0))


_REACH = 2  # of Keys' kernel


def _weights_with_edges(size: int, places: Array) -> Any:
    """Return Keys' weights where the elements at the edges are repeated beyond them."""
    numbers = arange(-_REACH, size + _REACH, dtype=places.aval.dtype)
    weights = _keys(places - numbers[:, None], -0.75)
    if size == 1:
        return summed(weights, 0, keepdims=True)
    before = summed(weights[: _REACH + 1], 0, keepdims=True)
    behind = summed(weights[-_REACH - 1 :], 0, keepdims=True)
    return xn.concatenate([before, weights[_REACH + 1 : -_REACH - 1], behind])


def _triangle(x: Array) -> Any:
    return maximum(1 - absolute(x), 0)


def _keys(x: Array, a: float = -0.5) -> Any:
    # R. Keys, Cubic convolution interpolation for digital image processing, 1981, equation 15
    x = absolute(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return where(x <= 1, near, where(x < _REACH, far, 0))


def _lanczos3(x: Array) -> Any:
    return where(absolute(x) < 3, sinc(x) * sinc(x / 3), 0)


def _lanczos5(x: Array) -> Any:
    return where(absolute(x) < 5, sinc(x) * sinc(x / 5), 0)


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.CUBIC: _keys,
    ResizeMethod.CUBIC_PYTORCH: _keys,
    ResizeMethod.LANCZOS3: _lanczos3,
    ResizeMethod.LANCZOS5: _lanczos5,
}


boundaries(globals())
