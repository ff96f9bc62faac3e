"""The primitives that draw from keys: `random_bits`, `random_split`, `random_fold_in`.

    random_bits[bit_width shape partitionable]    uint32[..., n] -> uint[..., *shape]
    random_split[shape partitionable]             uint32[..., n] -> uint32[..., *shape, n]
    random_fold_in                                uint32[..., n], uint32[...] -> uint32[..., n]

They work on the words of keys, two, or four of the generator "rbg", which is how they tell them
apart; leading dimensions of the keys come first in the results, so the batch rule only moves a
dimension. A draw is one equation of a jaxpr and one step of eager evaluation; compiled programs
get the operations of `bit_generator`, down to `threefry2x32`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xprim import (
    ZERO,
    Primitive,
    ShapedArray,
    dimension_names,
    dtypes,
    get_primitive,
    shaped_array,
    undefined,
)
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message
from xrandom.bit_generator import (
    MAX_ORIGINAL_WORDS,
    UINT_BY_WIDTH,
    WIDE_KEY,
    Shape,
    host_bits,
    host_fold_in,
    host_split,
    lax_bits,
    lax_fold_in,
    lax_split,
    words_needed,
)

__all__ = ()

_NOT_LINEAR = undefined("random draws are not linear in their key")


def check_key(name: str, key: ShapedArray) -> None:
    """Raise for what are not the words of keys."""
    if key.dtype != dtypes.uint32 or key.shape[-1:] not in ((2,), (WIDE_KEY,)):
        raise TypeError(message(
            name, "a key is two uint32 words, and one of rbg four.", got=key.str_long(),
            expected="uint32[..., 2]",
        ))  # fmt: skip


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
        key = (name, *params.items())

        def results(*xs: Any) -> Any:
            found = fun(*xs, **params)
            return tuple(found) if several else (found,)

        def body(inner: Builder, names: Any) -> Any:
            return inner.traced(results, names, avals_in, key)

        if not hasattr(b, "outline"):  # xjit before 0.2.1
            return body(b, operands)
        return b.outline(body, operands, avals_in, avals_out, key, name)

    return rule


def batch_over_keys(name: str) -> Callable[..., Any]:
    """Return the batch rule: the batch dimension becomes the keys' first one."""

    def rule(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
        fronts = [axis.to_front(x, d) for x, d in zip(operands, dims, strict=True)]
        return get_primitive(name).bind(*fronts, **params), (0,)

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
    stablehlo=in_programs("random_bits", lax_bits),
    jvp=ZERO,
    transpose=_NOT_LINEAR,
    batch=batch_over_keys("random_bits"),
    cost=cost,
    dimensions=dimension_names.of_last(1),  # those of several keys are those of the results
)


# --- random_split ------------------------------------------------------------------------------


def _split_shape(key: ShapedArray, *, shape: Shape, partitionable: bool) -> Any:
    check_key("random_split", key)
    out = shaped_array((*key.shape[:-1], *shape, key.shape[-1]), dtypes.uint32)
    size = shaped_array(shape, dtypes.uint32).size
    check_count("random_split", 2 * size, partitionable)
    return (out,)


def _split_numpy(key: Any, *, shape: Shape, partitionable: bool) -> Any:
    return (host_split(key, shape, partitionable),)


random_split_p = Primitive(
    "random_split",
    shape=_split_shape,
    numpy=_split_numpy,
    stablehlo=in_programs("random_split", lax_split),
    jvp=ZERO,
    transpose=_NOT_LINEAR,
    batch=batch_over_keys("random_split"),
    cost=cost,
    dimensions=dimension_names.of_last(1),  # those of several keys are those of the results
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
    return (host_fold_in(key, data),)


random_fold_in_p = Primitive(
    "random_fold_in",
    shape=_fold_in_shape,
    numpy=_fold_in_numpy,
    stablehlo=in_programs("random_fold_in", lax_fold_in),
    jvp=ZERO,
    transpose=_NOT_LINEAR,
    batch=batch_over_keys("random_fold_in"),
    dimensions=dimension_names.of_last(1),
)
