"""The primitives that draw from keys: bits, splits, fold_in, uniform and normal samples."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import xprim
from xnp import lax
from xprim import ZERO, Primitive, ShapedArray, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import BatchAxis, Builder, outline
from xprim.errors import message
from xprim.requirements import require
from xprim.static_keys import params_key
from xrandom import bit_generator
from xrandom.bit_generator import MAX_ORIGINAL_WORDS, UINT_BY_WIDTH, Shape, host_bits, words_needed
from xrandom.hashing import MAX_LANES, hash_range_lanes, lanes_of_ones

__all__ = ()


# -------------------------------------------------------------------------------- key primitives
# The primitives that draw from keys: `random_bits`, `random_split`, `random_fold_in`.
#
#     random_bits[bit_width shape partitionable]    uint32[..., n] -> uint[..., *shape]
#     random_split[shape partitionable]             uint32[..., n] -> uint32[..., *shape, n]
#     random_fold_in                                uint32[..., n], uint32[...] -> uint32[..., n]
#
# They work on the words of keys, two, or four of the generator "rbg", which is how they tell them
# apart; leading dimensions of the keys come first in the results, so the batch rule only moves a
# dimension. A draw is one equation of a jaxpr and one step of eager evaluation; compiled programs
# get the operations of `bit_generator`, down to `threefry2x32`.

_NOT_LINEAR = undefined("random draws are not linear in their key")


def check_key(name: str, key: ShapedArray) -> None:
    """Raise for what are not the words of keys."""
    require(
        key.dtype == dtypes.uint32 and key.shape[-1:] in ((2,), (bit_generator.WIDE_KEY,)), name,
        "a key is two uint32 words, and one of rbg four.", got=key, expected="uint32[..., 2]",
        error=TypeError,
    )  # fmt: skip


def check_count(name: str, count: int, partitionable: bool) -> None:
    """Raise for a draw of more words than a key of the original layout has."""
    if not partitionable and count > MAX_ORIGINAL_WORDS:
        raise ValueError(message(
            name, f"the original counter layout has {MAX_ORIGINAL_WORDS} words for a key.",
            got=f"a draw of {count} words",
            hint="set config.threefry_partitionable, or split the key",
        ))  # fmt: skip


def in_programs(name: str, fun: Callable[..., Any], *, several: bool = False) -> Callable[..., Any]:
    """Return the stablehlo rule that writes what a function of Arrays does.

    It is a function of its own: fused with what uses it, a draw would be computed for each use, and
    so would all draws that its key comes from.

    Args:
      name: of the primitive.
      fun: returns an Array, or with `several` a list of them.
      several: whether there are several results.
    """

    def rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any) -> Any:
        key = (name, *params_key(params))

        def results(*xs: Any) -> Any:
            found = fun(*xs, **params)
            return tuple(found) if several else (found,)

        def body(inner: Builder, names: Any) -> Any:
            return inner.traced(results, names, avals_in, key)

        return outline(b, body, operands, avals_in, avals_out, key, name)

    return rule


def batch_over_keys(name: str) -> Callable[..., Any]:
    """Return the batch rule: the batch dimension becomes the keys' first one."""

    def rule(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
        fronts = [axis.to_front(x, d) for x, d in zip(operands, dims, strict=True)]
        return xprim.get_primitive(name).bind(*fronts, **params), (0,)

    return rule


_LARGE = 1 << 19


def cost(avals_in: Any, avals_out: Any, **_params: Any) -> float:
    """Say what compiling a draw saves: 80 ns for each number, where that is worth the while.

    The hash has so many operations that it takes 50 ms and more to compile, so a model of a dozen
    layers of different shapes starts sooner where each draws its weights by NumPy.
    """
    size: int = avals_out[0].size
    return 64.0 * size if size >= _LARGE else 0.0


# --- random_bits -------------------------------------------------------------------------------


def _bits_shape(key: ShapedArray, *, bit_width: int, shape: Shape, partitionable: bool) -> Any:
    check_key("random_bits", key)
    out = shaped_array(key.shape[:-1] + shape, UINT_BY_WIDTH[bit_width])
    size = shaped_array(shape, out.dtype).size
    check_count("random_bits", words_needed(bit_width, size), partitionable)
    return (out,)


def _bits_numpy(key: Any, *, bit_width: int, shape: Shape, partitionable: bool) -> Any:
    return (host_bits(key, bit_width, shape, partitionable),)


random_bits_p = Primitive(
    "random_bits",
    shape=_bits_shape,
    numpy=_bits_numpy,
    stablehlo=in_programs("random_bits", bit_generator.lax_bits),
    jvp=ZERO,
    transpose=_NOT_LINEAR,
    batch=batch_over_keys("random_bits"),
    draws=True,
    eager=cost,
    sharding=dimension_names.of_last(1),  # those of several keys are those of the results
)


# --- random_split ------------------------------------------------------------------------------


def _split_shape(key: ShapedArray, *, shape: Shape, partitionable: bool) -> Any:
    check_key("random_split", key)
    out = shaped_array((*key.shape[:-1], *shape, key.shape[-1]), dtypes.uint32)
    size = shaped_array(shape, dtypes.uint32).size
    check_count("random_split", 2 * size, partitionable)
    return (out,)


def _split_numpy(key: Any, *, shape: Shape, partitionable: bool) -> Any:
    return (bit_generator.host_split(key, shape, partitionable),)


random_split_p = Primitive(
    "random_split",
    shape=_split_shape,
    numpy=_split_numpy,
    stablehlo=in_programs("random_split", bit_generator.lax_split),
    jvp=ZERO,
    transpose=_NOT_LINEAR,
    batch=batch_over_keys("random_split"),
    keys="split",
    eager=cost,
    sharding=dimension_names.of_last(1),  # those of several keys are those of the results
)


# --- random_fold_in ----------------------------------------------------------------------------


def _fold_in_shape(key: ShapedArray, data: ShapedArray) -> Any:
    check_key("random_fold_in", key)
    if data.dtype != dtypes.uint32 or data.shape != key.shape[:-1]:
        raise TypeError(message(
            "random_fold_in", "there must be one uint32 number for each key.",
            got=f"{data.str_long()} for keys {key.str_long()}",
        ))  # fmt: skip
    return (shaped_array(key.shape, dtypes.uint32),)


def _fold_in_numpy(key: Any, data: Any) -> Any:
    return (bit_generator.host_fold_in(key, data),)


random_fold_in_p = Primitive(
    "random_fold_in",
    shape=_fold_in_shape,
    numpy=_fold_in_numpy,
    stablehlo=in_programs("random_fold_in", bit_generator.lax_fold_in),
    jvp=ZERO,
    transpose=_NOT_LINEAR,
    batch=batch_over_keys("random_fold_in"),
    sharding=dimension_names.of_last(1),
)


# ------------------------------------------------------------------------ standard distributions
# The primitives of the two basic distributions: `random_uniform`, `random_normal`.
#
#     random_uniform[dtype shape partitionable]   words of keys -> u, multiples of epsilon in [0,
#     1)
#     random_normal[dtype shape partitionable]    words of keys -> sqrt(2) erf_inv(2 u - 1)
#
# Random bits become the mantissa of a number in [1, 2), from which 1 is taken. The ends of (-1,
# 1) are left out: `2 u - 1` is `2 u + lo`, with `lo` the number above -1.
#
# As primitives they are one step of eager evaluation, and one program where they are compiled.
# They depend on keys alone, so there is nothing to differentiate; `uniform` and `normal` scale
# them.

_ROOT_TWO = math.sqrt(2)


_FRACTION = (1 << 23) - 1  # the bits of the mantissa of a float32


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
            "uniform: the width of the dtype must be a multiple of 8 bits, got "
            f"{dtypes.short_name(dtype)}."
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
    size = math.prod(shape)
    if key.shape == (2,) and partitionable and dtype == np.float32 and 0 < size <= MAX_LANES:
        # a few numbers get their exponent while they are lanes: four calls of NumPy less
        ones = lanes_of_ones(size)
        k0, k1 = key.tolist()
        lanes = hash_range_lanes(k0, k1, size) >> plan.shift
        lanes = lanes & ones * _FRACTION | ones * plan.one
        u = np.frombuffer(lanes.to_bytes(8 * size, "little"), "<f4")[::2].reshape(shape)
        return u - plan.host[2]
    bits = host_bits(key, plan.drawn, shape, partitionable)
    if bits.dtype != plan.unsigned:
        bits = bits.astype(plan.unsigned)
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
    draws=True,
    eager=cost,
    sharding=dimension_names.of_last(1),  # those of several keys are those of the results
)


_erf_inv_of_host = xprim.get_primitive("erf_inv").rules["numpy"]


def _normal_numpy(key: Any, *, dtype: np.dtype[Any], **params: Any) -> Any:
    u = _host_uniform(key, dtype, **params)
    two, above_minus_one, root_two = _mantissa(dtype).host[3:]
    u *= two
    u += above_minus_one
    (z,) = _erf_inv_of_host(u)  # an array of its own
    z *= root_two
    return (z,)


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
    draws=True,
    eager=cost,
    sharding=dimension_names.of_last(1),  # those of several keys are those of the results
)


def raw_uniform(words: Any, shape: Shape, dtype: np.dtype[Any]) -> xprim.Array:
    """Draw uniformly from the multiples of the dtype's epsilon in [0, 1)."""
    (out,) = random_uniform_p.bind(
        words, dtype=dtype, shape=shape, partitionable=xprim.config.values.threefry_partitionable
    )
    return out  # type: ignore[no-any-return]


def raw_normal(words: Any, shape: Shape, dtype: np.dtype[Any]) -> xprim.Array:
    """Draw standard normal samples."""
    (out,) = random_normal_p.bind(
        words, dtype=dtype, shape=shape, partitionable=xprim.config.values.threefry_partitionable
    )
    return out  # type: ignore[no-any-return]
