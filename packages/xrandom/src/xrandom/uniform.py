"""Uniform samples: random mantissas.

Random bits become the mantissa of a number in [1, 2), from which 1 is taken: every multiple of the
dtype's epsilon in [0, 1) is equally likely, and no other value occurs.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from xnp import lax
from xprim import Array, dtypes
from xrandom.arguments import Shape, checked_shape, floating_dtype, parameter, spread
from xrandom.bits import raw_bits
from xrandom.counters import UINT_BY_WIDTH
from xrandom.keys import words_of


def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0
) -> Array:
    """Draw from the uniform distribution on [minval, maxval).

    Args:
      key: a single random key, of either form.
      shape: the shape of the result.
      dtype: a real floating dtype; None takes float32, or float64 with `enable_x64`.
      minval, maxval: the bounds, of shapes that broadcast to `shape`.

    Returns:
      Values `minval + u (maxval - minval)` with `u` a multiple of the dtype's epsilon in [0, 1).
      Rounding can give `maxval` itself where the bounds are close together.

    Differentiable in `minval` and `maxval`.

    Example:
      >>> from xrandom import key, uniform
      >>> u = uniform(key(0), (3,))
      >>> bool((u >= 0).all() and (u < 1).all())
      True
    """
    words = words_of(key, "uniform")
    exact = floating_dtype(dtype, "uniform")
    sizes = checked_shape(shape, "uniform")
    if type(minval) is float and type(maxval) is float:
        return uniform_between(words, sizes, exact, minval, maxval)
    low = parameter(minval, exact, "uniform: minval")
    high = parameter(maxval, exact, "uniform: maxval")
    for name, bound in (("minval", low), ("maxval", high)):
        _check_bound(name, bound.shape, sizes)
    low, high = spread(low, sizes), spread(high, sizes)
    u = unit_interval(words, sizes, exact)
    return lax.max(low, lax.add(lax.mul(u, lax.sub(high, low)), low))


def _check_bound(name: str, shape: Shape, sizes: Shape) -> None:
    try:
        if np.broadcast_shapes(shape, sizes) == sizes:
            return
    except ValueError:
        pass
    raise ValueError(
        f"uniform: {name} must broadcast to the shape of the sample."
        f"\n  got       {name} of shape {shape}\n  expected  a shape that broadcasts to {sizes}"
    )


def unit_interval(words: Any, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Draw uniformly from the multiples of the dtype's epsilon in [0, 1)."""
    width, drawn, shift, one = _mantissa_plan(dtype)
    bits = raw_bits(words, drawn, shape)
    if drawn != width:
        bits = lax.convert_element_type(bits, UINT_BY_WIDTH[width])
    if shift:
        bits = lax.shift_right_logical(bits, shift)
    return lax.sub(lax.bitcast_convert_type(lax.bitwise_or(bits, one), dtype), 1.0)


def uniform_between(
    words: Any, shape: Shape, dtype: np.dtype[Any], minval: float, maxval: float
) -> Array:
    """Draw uniformly between two Python numbers."""
    u = unit_interval(words, shape, dtype)
    if minval == 0.0 and maxval == 1.0:
        return u
    low, span, ordered = _span(dtype, minval, maxval)
    if span != 1.0:
        u = lax.mul(u, span)
    u = lax.add(u, low)
    return u if ordered else lax.max(u, low)  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=64)
def _mantissa_plan(dtype: np.dtype[Any]) -> tuple[int, int, int, int]:
    """Return the dtype's bits, how many to draw, how far to shift them, and the bits of 1.0."""
    info = dtypes.finfo(dtype)
    width, mantissa = int(info.bits), int(info.nmant)
    if width not in UINT_BY_WIDTH:
        raise ValueError(
            f"uniform: the dtype must have whole bytes, got {dtypes.short_name(dtype)}."
        )
    drawn = 8 if mantissa < 8 else width
    unsigned = UINT_BY_WIDTH[width]
    return width, drawn, drawn - mantissa, int(np.ones((), dtype).view(unsigned))


@functools.lru_cache(maxsize=256)
def _span(dtype: np.dtype[Any], minval: float, maxval: float) -> tuple[float, float, bool]:
    """Return the bounds' lower one and difference, rounded to the dtype, and whether it is >= 0."""
    with np.errstate(all="ignore"):
        low, high = np.array(minval).astype(dtype), np.array(maxval).astype(dtype)
        span = high - low
    return float(low), float(span), bool(span >= 0)
