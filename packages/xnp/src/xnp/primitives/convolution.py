"""conv_general_dilated: convolutions (correlations) with strides, dilations and groups."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import xprim
from xnp.primitives import costs
from xnp.primitives.dot_general import accumulation_dtype, product_dtype
from xnp.primitives.lowering_text import TWO_BITS, is_split, upcast
from xnp.primitives.precision import (
    DotAlgorithm,
    DotAlgorithmPreset,
    precision_attribute,
    precision_for,
)
from xnp.primitives.table import bind, fill, permute, reshape
from xprim import Linear, Primitive, ShapedArray, Zero, dtypes, not_mapped, shaped_array
from xprim.contracts import BatchAxis, Builder, is_gpu
from xprim.errors import ArgumentError, message
from xprim.requirements import require

__all__ = ()


# ------------------------------------------------------------------------------- conv dimensions
# Sizes and paddings of convolutions, along one dimension of space.


class ConvDimensionNumbers(NamedTuple):
    """The dimensions of the operands and the result of a convolution.

    Attributes:
      lhs_spec: of the input: (batch, features, space...).
      rhs_spec: of the kernel: (out features, in features, space...).
      out_spec: of the output: (batch, features, space...).
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def dilate_size(size: int, dilation: int) -> int:
    """Return the size with `dilation - 1` zeros between neighbours."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def output_size(
    size: int, kernel: int, stride: int, padding: tuple[int, int], lhs_dilation: int,
    rhs_dilation: int,
) -> int:  # fmt: skip
    """Return how many windows fit."""
    padded = max(dilate_size(size, lhs_dilation) + padding[0] + padding[1], 0)
    window = dilate_size(kernel, rhs_dilation)
    return 0 if padded == 0 or padded < window else (padded - window) // stride + 1


def input_cotangent_padding(
    size: int, kernel: int, out: int, stride: int, padding: tuple[int, int], lhs_dilation: int,
    rhs_dilation: int,
) -> tuple[int, int]:  # fmt: skip
    """Return the padding of the convolution that gives the cotangent of the input."""
    window, whole = dilate_size(kernel, rhs_dilation), dilate_size(size, lhs_dilation)
    before = window - 1 - padding[0]
    return before, whole + window - 1 - dilate_size(out, stride) - before


def kernel_cotangent_padding(
    size: int, kernel: int, out: int, stride: int, padding: tuple[int, int], lhs_dilation: int,
    rhs_dilation: int,
) -> tuple[int, int]:  # fmt: skip
    """Return the padding of the convolution that gives the cotangent of the kernel."""
    window, whole = dilate_size(kernel, rhs_dilation), dilate_size(size, lhs_dilation)
    return padding[0], dilate_size(out, stride) - whole + window - 1 - padding[0]


# ----------------------------------------------------------------------------------- conv groups
# Batches and features of convolutions in groups: how they are merged, and moved to one another.


def regroup(x: Any, source: int, target: int, groups: int) -> Any:
    """Move the outer factor `groups` of one dimension to be the outer factor of another one."""
    if groups == 1:
        return x
    shape = list(x.aval.shape)
    split = [*shape[:source], groups, shape[source] // groups, *shape[source + 1 :]]
    at = target + (target > source)
    order = [d for d in range(len(split)) if d != source]
    order.insert(order.index(at), source)
    shape[source] //= groups
    shape[target] *= groups
    return reshape(permute(reshape(x, split), order), shape)


def merge_batch(x: Any, dim: int, groups: int = 1) -> Any:
    """Merge the batch dimension 0 into dimension `dim` (numbered without it), inside of groups."""
    size, *shape = x.aval.shape
    split = (size, *shape[:dim], groups, shape[dim] // groups, *shape[dim + 1 :])
    order = [*range(1, dim + 2), 0, *range(dim + 2, len(split))]
    shape[dim] *= size
    return reshape(permute(reshape(x, split), order), shape)


def split_batch(x: Any, dim: int, size: int, groups: int = 1) -> Any:
    """Undo `_merged`: bring the batch back to dimension 0."""
    shape = list(x.aval.shape)
    shape[dim] //= size
    split = (*shape[:dim], groups, size, shape[dim] // groups, *shape[dim + 1 :])
    order = [dim + 1, *[d for d in range(len(split)) if d != dim + 1]]
    return reshape(permute(reshape(x, split), order), (size, *shape))


# -------------------------------------------------------------------------- conv general dilated
# conv_general_dilated: convolutions (correlations) with strides, dilations and groups.
#
# `dimension_numbers` names the dimensions of input (batch, features, space...), kernel (out
# features, in features, space...) and output (batch, features, space...). `lhs_dilation` puts
# zeros between the input's elements, `rhs_dilation` between the kernel's; `padding` may be
# negative. With `feature_group_count` the features, with `batch_group_count` the batch, fall into
# groups that each have out features of their own.
#
# With NumPy, a strided view of the padded input shows the window of each output element, and one
# matrix product for each group does the rest. Semantics: StableHLO specification, section
# convolution.


def _shape(
    lhs: ShapedArray, rhs: ShapedArray, *, window_strides: Any, padding: Any, lhs_dilation: Any,
    rhs_dilation: Any, dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
    batch_group_count: int, precision: Any, preferred_element_type: Any,
) -> tuple[ShapedArray, ...]:  # fmt: skip
    dtype = product_dtype("conv_general_dilated", lhs.dtype, rhs.dtype, preferred_element_type)
    require(
        not dtypes.is_bool(dtype), "conv_general_dilated", "does not accept dtype bool.",
        error=TypeError,
    )  # fmt: skip
    spec = dimension_numbers
    count = lhs.ndim - 2
    _check_ranks(lhs, rhs, count, (window_strides, padding, lhs_dilation, rhs_dilation))
    batch, features = lhs.shape[spec.lhs_spec[0]], lhs.shape[spec.lhs_spec[1]]
    outputs, inputs = rhs.shape[spec.rhs_spec[0]], rhs.shape[spec.rhs_spec[1]]
    _check_groups(lhs, rhs, (batch, features, outputs, inputs), feature_group_count,
                  batch_group_count)  # fmt: skip
    sizes = [
        output_size(lhs.shape[i], rhs.shape[j], *rest)
        for i, j, *rest in zip(spec.lhs_spec[2:], spec.rhs_spec[2:], window_strides, padding,
                               lhs_dilation, rhs_dilation, strict=True)
    ]  # fmt: skip
    shape = [0] * lhs.ndim
    wanted = (batch // batch_group_count, outputs, *sizes)
    for d, n in zip(spec.out_spec, wanted, strict=True):
        shape[d] = n
    return (shaped_array(tuple(shape), dtype, lhs.weak_type and rhs.weak_type),)


def _check_ranks(lhs: ShapedArray, rhs: ShapedArray, count: int, params: Any) -> None:
    if count < 0 or lhs.ndim != rhs.ndim or any(len(p) != count for p in params):
        raise ValueError(message(
            "conv_general_dilated", "conv_general_dilated lhs and rhs must have the same number of "
            "dimensions, n + 2, and strides, padding and dilations n entries.",
            got=f"lhs: {lhs.str_long()}, rhs: {rhs.str_long()}; "
            f"{', '.join(str(len(p)) for p in params)} entries",
        ))  # fmt: skip
    strides, _, *dilations = params
    if any(s < 1 for s in strides) or any(d < 1 for each in dilations for d in each):
        raise ArgumentError(message(
            "conv_general_dilated", "strides and dilations must be positive.",
            got=f"window_strides={strides}, dilations {dilations[0]} and {dilations[1]}",
        ))  # fmt: skip


def _check_groups(
    lhs: ShapedArray, rhs: ShapedArray, sizes: Any, feature_groups: int, batch_groups: int
) -> None:
    batch, features, outputs, inputs = sizes
    got = f"lhs: {lhs.str_long()}, rhs: {rhs.str_long()}"
    require(
        feature_groups >= 1 and batch_groups >= 1 and min(feature_groups, batch_groups) <= 1,
        "conv_general_dilated",
        "feature_group_count and batch_group_count must be positive, and one of them 1.",
        got=(feature_groups, batch_groups),
    )  # fmt: skip
    if features != inputs * feature_groups:
        raise ValueError(message(
            "conv_general_dilated", f"the input has {features} features, the kernel takes {inputs} "
            f"in each of {feature_groups} groups.", got=got,
            expected="lhs features == rhs input features * feature_group_count",
        ))  # fmt: skip
    if outputs % feature_groups or outputs % batch_groups or batch % batch_groups:
        raise ValueError(message(
            "conv_general_dilated", "out features and batch must be multiples of the number of "
            "groups.", got=got, expected=f"multiples of {max(feature_groups, batch_groups)}",
        ))  # fmt: skip


# ----------------------------------------------------------------------------------------- NumPy


def _numpy(lhs: Any, rhs: Any, *, window_strides: Any, padding: Any, lhs_dilation: Any,
           rhs_dilation: Any, dimension_numbers: Any, feature_group_count: int,
           batch_group_count: int, precision: Any, preferred_element_type: Any) -> Any:  # fmt: skip
    out_dtype = product_dtype("conv_general_dilated", lhs.dtype, rhs.dtype, preferred_element_type)
    total = accumulation_dtype(lhs.dtype, rhs.dtype, out_dtype)
    spec = dimension_numbers
    x = lhs.astype(total, copy=False).transpose(spec.lhs_spec)
    kernel = rhs.astype(total, copy=False).transpose(spec.rhs_spec)
    if _is_of_vectors(x, kernel, window_strides, lhs_dilation, rhs_dilation):
        sums = _correlate(x[0, 0], kernel[0, 0], padding[0])
        row = sums.reshape((1, 1, -1)).transpose(np.argsort(spec.out_spec))
        return (row.astype(out_dtype, copy=False),)
    windows = _windows(x, kernel.shape[2:], window_strides, padding, lhs_dilation, rhs_dilation)
    space = windows.shape[2 : 2 + len(window_strides)]
    (n, c), (o, i) = windows.shape[:2], kernel.shape[:2]
    groups = feature_group_count * batch_group_count
    rows = n // batch_group_count
    axes = len(space)
    # (batch group, batch, feature group, features, space, window) to (group, pixel, weight)
    split = windows.reshape((batch_group_count, rows, feature_group_count, c // feature_group_count,
                             *windows.shape[2:]))  # fmt: skip
    order = (0, 2, 1, *range(4, 4 + axes), 3, *range(4 + axes, 4 + 2 * axes))
    pixels, weights = rows * int(np.prod(space)), i * int(np.prod(kernel.shape[2:]))
    patches = split.transpose(order).reshape((groups, pixels, weights))
    matrix = kernel.reshape((groups, o // groups, weights)).swapaxes(-1, -2)
    result = np.matmul(patches, matrix).reshape((groups, rows, *space, o // groups))
    result = result.transpose((1, 0, result.ndim - 1, *range(2, 2 + axes)))
    result = result.reshape((rows, o, *space)).transpose(np.argsort(spec.out_spec))
    return (result.astype(out_dtype, copy=False),)


def _is_of_vectors(x: Any, kernel: Any, strides: Any, x_dilation: Any, k_dilation: Any) -> bool:
    """Whether one vector meets one kernel at every place: what NumPy has a function for."""
    return (
        x.ndim == 3 and x.shape[:2] == kernel.shape[:2] == (1, 1) and 0 not in kernel.shape
        and (strides, x_dilation, k_dilation) == ((1,), (1,), (1,)) and x.dtype.kind in "fc"
    )  # fmt: skip


def _correlate(x: Any, kernel: Any, padding: Any) -> Any:
    low, high = padding
    padded = np.pad(x[max(-low, 0) : max(x.size + min(high, 0), 0)], (max(low, 0), max(high, 0)))
    if padded.size < kernel.size:
        return np.zeros(0, x.dtype)
    return np.correlate(padded, kernel.conj(), "valid")  # which conjugates it once more


def _windows(x: Any, kernel: Any, strides: Any, padding: Any, x_dilation: Any, k_dilation: Any) -> (
    Any
):  # fmt: skip
    """Return the view (batch, features, *output space, *kernel space) of the padded input."""
    sizes = [dilate_size(s, d) for s, d in zip(x.shape[2:], x_dilation, strict=True)]
    whole = [max(s + lo + hi, 0) for s, (lo, hi) in zip(sizes, padding, strict=True)]
    padded = np.zeros((*x.shape[:2], *whole), x.dtype)
    target, source = [slice(None)] * 2, [slice(None)] * 2
    for n, total, (lo, _), d in zip(x.shape[2:], whole, padding, x_dilation, strict=True):
        first = max(-(lo // d), 0)  # the first element that negative padding does not cut off
        at = lo + first * d
        count = max(min(n - first, len(range(at, total, d))), 0)
        source.append(slice(first, first + count))
        target.append(slice(at, at + count * d, d))
    padded[tuple(target)] = x[tuple(source)]
    out = [output_size(n, k, s, p, dx, dk) for n, k, s, p, dx, dk in zip(
        x.shape[2:], kernel, strides, padding, x_dilation, k_dilation, strict=True)]  # fmt: skip
    steps = padded.strides[2:]
    return np.lib.stride_tricks.as_strided(
        padded, (*x.shape[:2], *out, *kernel),
        (*padded.strides[:2], *[a * b for a, b in zip(steps, strides, strict=True)],
         *[a * b for a, b in zip(steps, k_dilation, strict=True)]), writeable=False,
    )  # fmt: skip


# ------------------------------------------------------------------------------------- StableHLO


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any) -> Any:
    lhs, rhs = avals_in
    (out,) = avals_out
    if out.size == 0 or lhs.size == 0 or rhs.size == 0:
        return [b.constant(0, out)]
    if _pads_first(b, lhs, params):
        operands, lhs, params = _pad(b, operands, lhs, params)
        avals_in = [lhs, rhs]
    elif _is_exchanged(b, lhs, rhs, out, params):
        operands, lhs, params = _pad_behind_barriers(b, operands, lhs, params)
        avals_in = [lhs, rhs]
    total = out.dtype
    is_native = lhs.dtype == rhs.dtype and b.platform != "cpu" and dtypes.is_floating(total)
    if not is_native or dtypes.itemsize_bits(total) <= 8:  # cuDNN refuses most of the latter
        total = accumulation_dtype(lhs.dtype, rhs.dtype, out.dtype)
        if lhs.dtype == rhs.dtype == out.dtype and dtypes.is_integer(out.dtype):
            total = out.dtype
        operands = [b.convert(x, a, total) for x, a in zip(operands, avals_in, strict=True)]
        avals_in = [shaped_array(a.shape, total) for a in avals_in]
    wide = shaped_array(out.shape, total)
    precision = precision_for(b.platform, params["precision"], total)
    attributes = _attributes(**{**params, "precision": precision})
    if dtypes.is_complex(total):
        result = _complex_text(b, operands, avals_in, wide, attributes)
    elif dtypes.is_integer(total) and is_gpu(b.platform):
        result = _integer_text(b, operands, (lhs.dtype, rhs.dtype), avals_in, wide, attributes)
    else:
        (result,) = b.op("stablehlo.convolution", operands, avals_in, [wide], attributes)
    return [b.convert(result, wide, out.dtype)]


_MUCH = 64  # elements of padding


def _pads_first(b: Builder, lhs: ShapedArray, params: Any) -> bool:
    """Return whether a signal of one dimension is padded by an operation of its own.

    XLA for CPUs computes with padding of its own six times as long: 10,000 by 1,000 numbers in full
    take 3.8 ms, and 0.6 once they are padded.
    """
    is_ours = b.platform == "cpu" and lhs.ndim == 3 and type(lhs.size) is int and not is_split(b)
    is_plain = is_ours and params["lhs_dilation"] == (1,) and params["batch_group_count"] == 1
    (low, high), *_ = params["padding"] or [(0, 0)]
    return is_plain and min(low, high) >= 0 and max(low, high) >= _MUCH


def _pad(b: Builder, operands: Any, lhs: ShapedArray, params: Any) -> Any:
    """Write the signal with zeros around; its type and the params without padding."""
    (x, kernel), dim = operands, params["dimension_numbers"][0][2]
    ((low, high),) = params["padding"]
    edges = [
        [low if d == dim else 0 for d in range(3)],
        [high if d == dim else 0 for d in range(3)],
    ]
    shape = tuple([n + a + z for n, a, z in zip(lhs.shape, *edges, strict=True)])
    wide = shaped_array(shape, lhs.dtype)
    texts = [f"edge_padding_{side} = array<i64: {', '.join(map(str, edge))}>"
             for side, edge in zip(("low", "high"), edges, strict=True)]  # fmt: skip
    (x,) = b.op(
        "stablehlo.pad", [x, b.scalar(0, lhs.dtype)], [lhs, shaped_array((), lhs.dtype)], [wide],
        f"{', '.join(texts)}, interior_padding = array<i64: 0, 0, 0>",
    )  # fmt: skip
    return [x, kernel], wide, {**params, "padding": ((0, 0),)}


_LEAST_WORK = 1 << 14  # products, below which padding takes longer than it saves
_MOST_TAPS = 8  # of a kernel, for each element of space: the padded product does more than XLA's


def _is_exchanged(
    b: Builder, lhs: ShapedArray, rhs: ShapedArray, out: ShapedArray, params: Any
) -> bool:
    """Return whether XLA for CPUs exchanges input and kernel, and computes by its slowest way.

    It does where the kernel has more elements in space than the input, 3x3 and 2x2, since there are
    fewer products then. The exchanged convolution reverses its kernel, which no fast routine of
    XLA's knows: (8,2,2,64) by (3,3,64,64) takes 164 us, and 33 as one of an input padded before,
    which compiles in half the time. `SwapConvOperands` of XLA's algebraic simplifier.
    """
    if b.platform != "cpu" or not lhs.dtype == rhs.dtype == out.dtype == np.float32 or is_split(b):
        return False
    if not all(type(a.size) is int for a in (lhs, rhs, out)):
        return False
    if params["feature_group_count"] != 1 or params["batch_group_count"] != 1:
        return False
    taps, elements = _count_in_space(lhs, rhs, params)
    work = out.size * lhs.shape[params["dimension_numbers"].lhs_spec[1]] * elements
    return elements < taps <= _MOST_TAPS * elements and work >= _LEAST_WORK


def _count_in_space(lhs: ShapedArray, rhs: ShapedArray, params: Any) -> tuple[int, int]:
    """Return how many elements of kernel and input in space XLA compares."""
    spec = params["dimension_numbers"]
    taps = elements = 1
    for n, k, stride, pads, l_dilation, r_dilation in zip(
        [lhs.shape[d] for d in spec.lhs_spec[2:]], [rhs.shape[d] for d in spec.rhs_spec[2:]],
        *[params[name] for name in ("window_strides", "padding", "lhs_dilation", "rhs_dilation")],
        strict=True,
    ):  # fmt: skip
        if tuple(pads) == (0, 0) and r_dilation == 1:
            if k == n and l_dilation == stride == 1:
                continue  # a product along this dimension
            if l_dilation == k == stride + 1:
                continue  # groups along this dimension
        taps *= k
        elements *= k if n == stride == l_dilation == r_dilation == 1 else n
    return taps, elements


def _pad_behind_barriers(b: Builder, operands: Any, lhs: ShapedArray, params: Any) -> Any:
    """Write the input with zeros around and between; its type and the params without these.

    Without barriers XLA would fold the padding into the convolution, and exchange its operands. One
    dimension at a time, since LLVM takes three times as long for a kernel that pads two.
    """
    x, kernel = operands
    spec, number = params["dimension_numbers"], shaped_array((), lhs.dtype)
    zero = b.scalar(0, lhs.dtype)
    for dim, pads, dilation in zip(
        spec.lhs_spec[2:], params["padding"], params["lhs_dilation"], strict=True
    ):
        if tuple(pads) == (0, 0) and dilation == 1:
            continue
        texts = []
        for name, n in zip(("edge_padding_low", "edge_padding_high", "interior_padding"),
                           (*pads, dilation - 1), strict=True):  # fmt: skip
            numbers = ", ".join([str(n if d == dim else 0) for d in range(lhs.ndim)])
            texts.append(f"{name} = array<i64: {numbers}>")
        size = sum(pads) + dilate_size(lhs.shape[dim], dilation)
        wide = shaped_array((*lhs.shape[:dim], size, *lhs.shape[dim + 1 :]), lhs.dtype)
        (x,) = b.op("stablehlo.pad", [x, zero], [lhs, number], [wide], ", ".join(texts))
        lhs = wide
        (x,) = b.op("stablehlo.optimization_barrier", [x], [lhs], [lhs])
    count = len(params["padding"])
    return [x, kernel], lhs, {**params, "padding": ((0, 0),) * count, "lhs_dilation": (1,) * count}


def _integer_text(
    b: Builder, operands: Any, given: Any, avals: Any, out: ShapedArray, attributes: str
) -> str:
    """Write a convolution of integers by those of float64, which cuDNN has where it has no others.

    Each operand is a sum of pieces of 16 bits. A sum of products of two pieces is exact up to 2^21
    products, and what is beyond the dtype wraps around in int64, as integers do.

    Args:
      b: the builder.
      operands: names of the operands, converted to the dtype of the result.
      given: the dtypes that they had before: what fits into a piece is one.
      avals: their abstract values.
      out: that of the result.
      attributes: of the convolution.
    """
    count = _count_of_pieces(out.dtype)
    pieces = [
        _pieces(b, x, aval, min(count, _count_of_pieces(dtype)))
        for x, aval, dtype in zip(operands, avals, given, strict=True)
    ]
    halves = [shaped_array(a.shape, dtypes.float64) for a in avals]
    result, total = shaped_array(out.shape, dtypes.float64), shaped_array(out.shape, dtypes.int64)
    terms = []
    for i, x in enumerate(pieces[0]):
        for j, y in enumerate(pieces[1][: count - i]):
            (product,) = b.op("stablehlo.convolution", [x, y], halves, [result], attributes)
            term = b.convert(product, result, dtypes.int64)
            if i + j:
                shift = b.full_like(16 * (i + j), total)
                term = b.same_type_op("stablehlo.shift_left", [term, shift], total)
            terms.append(term)
    term = functools.reduce(lambda x, y: b.same_type_op("stablehlo.add", [x, y], total), terms)
    return b.convert(term, total, out.dtype)


def _count_of_pieces(dtype: np.dtype[Any]) -> int:
    return max(dtypes.iinfo(dtype).bits // 16, 1) if dtypes.is_integer(dtype) else 1


def _pieces(b: Builder, x: str, aval: ShapedArray, count: int) -> list[str]:
    """Write the pieces of 16 bits of integers as float64, the lowest first; the last has a sign."""
    if count == 1:
        return [b.convert(x, aval, dtypes.float64)]
    mask, found = b.full_like((1 << 16) - 1, aval), []
    is_signed = dtypes.is_signed_integer(aval.dtype)
    shift = f"stablehlo.shift_right_{'arithmetic' if is_signed else 'logical'}"
    for place in range(count):
        piece = x
        if place:
            piece = b.same_type_op(shift, [x, b.full_like(16 * place, aval)], aval)
        if place < count - 1:
            piece = b.same_type_op("stablehlo.and", [piece, mask], aval)
        found.append(b.convert(piece, aval, dtypes.float64))
    return found


def _complex_text(b: Builder, operands: Any, avals: Any, out: ShapedArray, attributes: str) -> str:
    """Write (a + ib) * (c + id) by four real convolutions: XLA has no complex ones everywhere."""
    part = np.zeros((), out.dtype).real.dtype
    halves = [shaped_array(a.shape, part) for a in avals]
    real_out = shaped_array(out.shape, part)
    (a, c), (bb, d) = [
        [b.op(f"stablehlo.{name}", [x], [aval], [half])[0]
         for x, aval, half in zip(operands, avals, halves, strict=True)]
        for name in ("real", "imag")
    ]  # fmt: skip

    def product(x: str, y: str) -> str:
        result: str = b.op("stablehlo.convolution", [x, y], halves, [real_out], attributes)[0]
        return result

    re = b.same_type_op("stablehlo.subtract", [product(a, c), product(bb, d)], real_out)
    im = b.same_type_op("stablehlo.add", [product(a, d), product(bb, c)], real_out)
    result: str = b.op("stablehlo.complex", [re, im], [real_out, real_out], [out])[0]
    return result


def _attributes(*, window_strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any,
                dimension_numbers: Any, feature_group_count: int, batch_group_count: int,
                precision: Any, preferred_element_type: Any) -> str:  # fmt: skip
    def integers(values: Any) -> str:
        return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"

    def dimensions(spec: Any, letters: str) -> str:
        names = [""] * len(spec)
        for i, d in enumerate(spec):
            names[d] = letters[i] if i < 2 else str(i - 2)
        return f"[{', '.join(names)}]"

    lhs, rhs, out = dimension_numbers
    pads = ", ".join([f"[{lo}, {hi}]" for lo, hi in padding])
    texts = [
        f"window_strides = {integers(window_strides)}",
        f"padding = dense<{f'[{pads}]' if pads else ''}> : tensor<{len(padding)}x2xi64>",
        f"lhs_dilation = {integers(lhs_dilation)}",
        f"rhs_dilation = {integers(rhs_dilation)}",
        f"dimension_numbers = #stablehlo.conv<{dimensions(lhs, 'bf')}x{dimensions(rhs, 'oi')}->"
        f"{dimensions(out, 'bf')}>",
        f"feature_group_count = {feature_group_count} : i64",
        f"batch_group_count = {batch_group_count} : i64",
        precision_attribute(precision),
    ]
    return ", ".join([t for t in texts if t])


# --------------------------------------------------------------------------- transpose and batch


def _transpose(cts: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    (ct,) = cts
    rule, other, aval = (_lhs_transpose, rhs, lhs.aval) if type(lhs) is Linear else (
        _rhs_transpose, lhs, rhs.aval)  # fmt: skip
    if ct.aval.size == 0 or other.aval.size == 0 or aval.size == 0:
        result = fill(aval.shape, 0, aval.dtype)
    else:
        result = rule(ct, other, aval, **params)
    return (result, Zero(rhs.aval)) if type(lhs) is Linear else (Zero(lhs.aval), result)


def _lhs_transpose(
    ct: Any, rhs: Any, lhs: ShapedArray, *, window_strides: Any, padding: Any, lhs_dilation: Any,
    rhs_dilation: Any, dimension_numbers: Any, feature_group_count: int, batch_group_count: int,
    precision: Any, preferred_element_type: Any,
) -> Any:  # fmt: skip
    # every element of the input meets every element of the kernel at the opposite offset: convolve
    # the cotangent with the kernel reversed in space, in and out features exchanged in each group
    spec = dimension_numbers
    o, i = spec.rhs_spec[:2]
    groups = feature_group_count * batch_group_count
    kernel = regroup(rhs, o, i, groups)
    if spec.rhs_spec[2:]:
        kernel = bind("rev", kernel, dimensions=tuple(spec.rhs_spec[2:]))
    numbers = ConvDimensionNumbers(spec.out_spec, (i, o, *spec.rhs_spec[2:]), spec.lhs_spec)
    pads = tuple([
        input_cotangent_padding(lhs.shape[a], rhs.aval.shape[k], ct.aval.shape[c], *rest)
        for a, k, c, *rest in zip(spec.lhs_spec[2:], spec.rhs_spec[2:], spec.out_spec[2:],
                                  window_strides, padding, lhs_dilation, rhs_dilation, strict=True)
    ])  # fmt: skip
    result = _convolve(
        ct, kernel, lhs.dtype, window_strides=lhs_dilation, padding=pads,
        lhs_dilation=window_strides, rhs_dilation=rhs_dilation, dimension_numbers=numbers,
        feature_group_count=groups, batch_group_count=1, precision=precision,
    )  # fmt: skip
    if batch_group_count > 1:  # the groups of features are groups of the batch
        result = regroup(result, spec.lhs_spec[1], spec.lhs_spec[0], batch_group_count)
    return result


def _rhs_transpose(
    ct: Any, lhs: Any, rhs: ShapedArray, *, window_strides: Any, padding: Any, lhs_dilation: Any,
    rhs_dilation: Any, dimension_numbers: Any, feature_group_count: int, batch_group_count: int,
    precision: Any, preferred_element_type: Any,
) -> Any:  # fmt: skip
    # convolve the input with the cotangent, the batch taking the place of the features summed over
    spec = dimension_numbers
    numbers = ConvDimensionNumbers(*[(d[1], d[0], *d[2:]) for d in
                                     (spec.lhs_spec, spec.out_spec, spec.rhs_spec)])  # fmt: skip
    pads = tuple([
        kernel_cotangent_padding(lhs.aval.shape[a], rhs.shape[k], ct.aval.shape[c], *rest)
        for a, k, c, *rest in zip(spec.lhs_spec[2:], spec.rhs_spec[2:], spec.out_spec[2:],
                                  window_strides, padding, lhs_dilation, rhs_dilation, strict=True)
    ])  # fmt: skip
    return _convolve(
        lhs, ct, rhs.dtype, window_strides=rhs_dilation, padding=pads, lhs_dilation=lhs_dilation,
        rhs_dilation=window_strides, dimension_numbers=numbers,
        feature_group_count=batch_group_count, batch_group_count=feature_group_count,
        precision=precision,
    )  # fmt: skip


def _convolve(lhs: Any, rhs: Any, dtype: Any, *, precision: Any, **params: Any) -> Any:
    if isinstance(precision, DotAlgorithm | DotAlgorithmPreset):
        precision = None
    preferred = None if lhs.aval.dtype == rhs.aval.dtype == dtype else dtype
    return conv_general_dilated_p.bind(
        lhs, rhs, precision=precision, preferred_element_type=preferred, **params
    )[0]


def _batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    lhs, rhs = operands
    spec = params["dimension_numbers"]
    groups = max(params["feature_group_count"], params["batch_group_count"])
    by_batch = params["batch_group_count"] > 1
    bind_conv: Callable[..., Any] = conv_general_dilated_p.bind
    if dims[0] is not not_mapped and dims[1] is not not_mapped:
        lhs, rhs = axis.to_front(lhs, dims[0]), axis.to_front(rhs, dims[1])
        name = "batch_group_count" if by_batch else "feature_group_count"
        params[name] *= axis.size
        lhs = merge_batch(lhs, spec.lhs_spec[0 if by_batch else 1])
        out = bind_conv(lhs, merge_batch(rhs, spec.rhs_spec[0]), **params)[0]
        result = split_batch(out, spec.out_spec[1], axis.size)
    elif dims[1] is not_mapped:
        lhs = axis.to_front(lhs, dims[0])
        lhs = merge_batch(lhs, spec.lhs_spec[0], params["batch_group_count"])
        result = split_batch(bind_conv(lhs, rhs, **params)[0], spec.out_spec[0], axis.size)
    else:
        rhs = merge_batch(axis.to_front(rhs, dims[1]), spec.rhs_spec[0], groups)
        out = bind_conv(lhs, rhs, **params)[0]
        result = split_batch(out, spec.out_spec[1], axis.size, groups)
    return (result,), (0,)


def _dimensions(avals: Any, out: Any, params: Any) -> xprim.dimension_names.Names:
    """Dimensions of space of input and output correspond: neighbours exchange their borders."""
    numbers = params["dimension_numbers"]
    grouped = params["feature_group_count"] > 1 or params["batch_group_count"] > 1
    plain: list[tuple[Any, ...]] = [("batch", "sum"), ("features", "sum"), ("batch", "features")]
    words = [(None, None)] * 3 if grouped else plain
    found = []
    for aval, spec, (first, second) in zip((*avals, out[0]), numbers, words, strict=True):
        names: list[Any] = [None] * aval.ndim
        names[spec[0]], names[spec[1]] = first, second
        if aval is not avals[1]:
            for i, d in enumerate(spec[2:]):
                names[d] = ("space", i)
        found.append(tuple(names))
    return xprim.dimension_names.Names(found[:2], found[2:])


conv_general_dilated_p: Primitive = Primitive(
    "conv_general_dilated",
    shape=_shape,
    numpy=_numpy,
    stablehlo=upcast(_stablehlo, TWO_BITS, np.int8),
    jvp=xprim.multilinear(0, 1),
    transpose=_transpose,
    batch=_batch,
    eager=costs.product,
    sharding=_dimensions,
)
