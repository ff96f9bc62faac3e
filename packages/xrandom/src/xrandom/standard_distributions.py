"""The primitives of the two basic distributions: `random_uniform`, `random_normal`.

    random_uniform[dtype shape partitionable]   words of keys -> u, multiples of epsilon in [0, 1)
    random_normal[dtype shape partitionable]    words of keys -> sqrt(2) erf_inv(2 u - 1)

Random bits become the mantissa of a number in [1, 2), from which 1 is taken. The ends of (-1, 1)
are left out: `2 u - 1` is `2 u + lo`, with `lo` the number above -1.

As primitives they are one step of eager evaluation, and one program where they are compiled. They
depend on keys alone, so there is nothing to differentiate; `uniform` and `normal` scale them.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from xnp import lax
from xprim import (
    ZERO,
    Array,
    Primitive,
    ShapedArray,
    config,
    dimension_names,
    dtypes,
    get_primitive,
    shaped_array,
    undefined,
)
from xrandom.bit_generator import UINT_BY_WIDTH, Shape, host_bits, words_needed
from xrandom.key_primitives import (
    batch_over_keys,
    check_count,
    check_key,
    cost,
    in_programs,
    random_bits_p,
)

__all__ = ()

_ROOT_TWO = math.sqrt(2)


class _Mantissa(NamedTuple):
    """How bits become a number in [1, 2) of a dtype."""

    drawn: int  # bits to draw
    unsigned: np.dtype[Any]  # of the dtype's width
    shift: int  # to the right, to leave as many bits as the mantissa has
    one: int  # the bits of 1.0
    above_minus_one: float
    host: tuple[Any, ...]
    """Arrays of rank 0, with which NumPy is quicker than with scalars: the shift, the bits of 1.0,
    1.0, 2.0, the number above -1 and the root of two."""


@functools.lru_cache(maxsize=64)
def _mantissa(dtype: np.dtype[Any]) -> _Mantissa:
    """Return what is known of the bits of a dtype's numbers."""
    info = dtypes.finfo(dtype)
    width, mantissa = int(info.bits), int(info.nmant)
    if width not in UINT_BY_WIDTH:
        raise ValueError(
            f"uniform: the dtype must have whole bytes, got {dtypes.short_name(dtype)}."
        )
    drawn = 8 if mantissa < 8 else width
    unsigned = UINT_BY_WIDTH[width]
    one = int(np.ones((), dtype).view(unsigned))
    lowest = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)
    shift = drawn - mantissa
    words = [np.array(n, unsigned) for n in (shift, one)]
    numbers = [np.array(x, dtype) for x in (1, 2, lowest, _ROOT_TWO)]
    return _Mantissa(drawn, unsigned, shift, one, float(lowest), (*words, *numbers))


def _shape(key: ShapedArray, *, dtype: np.dtype[Any], shape: Shape, partitionable: bool) -> Any:
    check_key("random_uniform", key)
    out = shaped_array(key.shape[:-1] + shape, dtype)
    size = shaped_array(shape, dtype).size
    check_count("random_uniform", words_needed(_mantissa(dtype).drawn, size), partitionable)
    return (out,)


def _host_uniform(key: Any, dtype: np.dtype[Any], shape: Shape, partitionable: bool) -> Any:
    plan = _mantissa(dtype)
    bits = host_bits(key, plan.drawn, shape, partitionable).astype(plan.unsigned, copy=False)
    shift, one_bits, one = plan.host[:3]
    bits = bits >> shift
    bits |= one_bits
    u = bits.view(dtype)
    u -= one
    return u


def _lax_uniform(key: Any, dtype: np.dtype[Any], shape: Shape, partitionable: bool) -> Any:
    plan = _mantissa(dtype)
    (bits,) = random_bits_p.bind(
        key, bit_width=plan.drawn, shape=shape, partitionable=partitionable
    )
    if bits.dtype != plan.unsigned:
        bits = lax.convert_element_type(bits, plan.unsigned)
    if plan.shift:
        bits = lax.shift_right_logical(bits, plan.shift)
    return lax.sub(lax.bitcast_convert_type(lax.bitwise_or(bits, plan.one), dtype), 1.0)


def _uniform_numpy(key: Any, **params: Any) -> Any:
    return (_host_uniform(key, **params),)


random_uniform_p = Primitive(
    "random_uniform",
    shape=_shape,
    numpy=_uniform_numpy,
    stablehlo=in_programs("random_uniform", _lax_uniform),
    jvp=ZERO,
    transpose=undefined("random draws are not linear in their key"),
    batch=batch_over_keys("random_uniform"),
    cost=cost,
    dimensions=dimension_names.of_last(1),  # those of several keys are those of the results
)


def _normal_numpy(key: Any, *, dtype: np.dtype[Any], **params: Any) -> Any:
    u = _host_uniform(key, dtype, **params)
    two, above_minus_one, root_two = _mantissa(dtype).host[3:]
    u *= two
    u += above_minus_one
    (z,) = get_primitive("erf_inv").rules["numpy"](u)
    return (z * root_two,)


def _lax_normal(key: Any, dtype: np.dtype[Any], shape: Shape, partitionable: bool) -> Any:
    (u,) = random_uniform_p.bind(key, dtype=dtype, shape=shape, partitionable=partitionable)
    symmetric = lax.add(lax.mul(u, 2.0), _mantissa(dtype).above_minus_one)
    return lax.mul(lax.erf_inv(symmetric), _ROOT_TWO)


random_normal_p = Primitive(
    "random_normal",
    shape=_shape,
    numpy=_normal_numpy,
    stablehlo=in_programs("random_normal", _lax_normal),
    jvp=ZERO,
    transpose=undefined("random draws are not linear in their key"),
    batch=batch_over_keys("random_normal"),
    cost=cost,
    dimensions=dimension_names.of_last(1),  # those of several keys are those of the results
)


def raw_uniform(words: Any, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Draw uniformly from the multiples of the dtype's epsilon in [0, 1)."""
    (out,) = random_uniform_p.bind(
        words, dtype=dtype, shape=shape, partitionable=config.values.threefry_partitionable
    )
    return out  # type: ignore[no-any-return]


def raw_normal(words: Any, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Draw standard normal samples."""
    (out,) = random_normal_p.bind(
        words, dtype=dtype, shape=shape, partitionable=config.values.threefry_partitionable
    )
    return out  # type: ignore[no-any-return]
