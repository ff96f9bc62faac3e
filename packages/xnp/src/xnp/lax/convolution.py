"""Convolutions, their result shapes and patches (`conv_general_dilated`, ...), and `fft`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.lax.contractions import dot_general
from xnp.lax.reductions import padtype_to_pads
from xnp.placing import place
from xnp.primitives import convolution
from xnp.primitives.convolution import ConvDimensionNumbers, conv_general_dilated_p, dilate_size
from xnp.primitives.fft import FftType, fft_p
from xnp.primitives.precision import PrecisionLike, normal_precision
from xnp.primitives.table import bind, convert, move_dim, permute
from xprim import Array, as_array, dtypes
from xprim.avals import size_of
from xprim.errors import message
from xprim.requirements import require
from xprim.tracebacks import boundaries, boundary
from xprim.typing import ArrayLike, DTypeLike, ShardingLike

__all__ = [
    "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv",
    "conv_dimension_numbers", "conv_general_dilated", "conv_general_dilated_p",
    "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple",
    "conv_transpose", "conv_transpose_shape_tuple", "conv_with_general_padding",
    "conv_general_dilated_local", "conv_general_dilated_patches", "FftType", "fft", "fft_p",
]  # fmt: skip

__dir__ = __all__.copy

# ----------------------------------------------------------------------------------- convolution
# Convolutions: `conv_general_dilated`, its simpler forms, and the shapes of their results.

ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]
Padding = str | Sequence[tuple[int, int]]

_TRANSPOSE_NUMBERS = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def _check_counts(lhs: Array, rhs: Array, *each: Sequence[int]) -> None:
    """Raise where there is no stride and dilation for each spatial dimension."""
    count = lhs.ndim - 2
    if rhs.ndim != lhs.ndim or any(len(numbers) != count for numbers in each):
        strides, stretch, spread = each
        raise ValueError(message(
            "conv_general_dilated",
            "conv_general_dilated lhs and rhs must have the same number of dimensions."
            if rhs.ndim != lhs.ndim else "conv_general_dilated window and window_strides must have "
            "the same number of dimensions, as the dilations.",
            got=f"window_strides={strides}, lhs_dilation={stretch}, rhs_dilation={spread}",
            expected=f"{count} of each for {lhs.aval.str_long()}",
        ))  # fmt: skip


def conv_general_dilated(
    lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: Padding,
    lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None, feature_group_count: int = 1,
    batch_group_count: int = 1, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None, out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Convolve (correlate) an input with a kernel over n dimensions of space.

    Args:
      lhs: the input, of n + 2 dimensions.
      rhs: the kernel, of n + 2 dimensions. Of two dtypes the wider one holds the result, as for
        `dot_general`; products of booleans are joined by "or".
      window_strides: n steps from one window to the next.
      padding: `"SAME"`, `"SAME_LOWER"`, `"VALID"`, or n pairs (before, after), which may be
        negative.
      lhs_dilation: n factors; d - 1 zeros go between neighbours of the input. None for ones.
      rhs_dilation: the same for the kernel.
      dimension_numbers: three texts such as `("NHWC", "HWIO", "NHWC")` (batch N, features C, out
        features O, in features I, and a letter for each dimension of space), a
        `ConvDimensionNumbers`, or None for `("NCHW", "OIHW", "NCHW")` and its like.
      feature_group_count: into how many groups the features fall.
      batch_group_count: into how many groups the batch falls.
      precision: see `dot_general`.
      preferred_element_type: see `dot_general`.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      The output, laid out as `dimension_numbers` says.

    Raises:
        TypeError: an operand is not an array;
            `preferred_element_type` names no dtype;
            `out_sharding` is not a sharding.
        ValueError: unknown `padding`; unknown `precision`.

    Example:
      >>> import numpy as np
      >>> x, w = np.ones((1, 1, 5), np.float32), np.ones((1, 1, 3), np.float32)
      >>> np.asarray(conv_general_dilated(x, w, (1,), "SAME"))
      array([[[2., 3., 3., 3., 2.]]], dtype=float32)

    Differentiable in: lhs, rhs.
    Source: StableHLO specification, section convolution.
    """
    what = "conv_general_dilated"
    lhs, rhs = as_array(lhs, what=f"{what}: lhs"), as_array(rhs, what=f"{what}: rhs")
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    strides = _integers(window_strides)
    ones = (1,) * (lhs.ndim - 2)
    stretch = ones if lhs_dilation is None else _integers(lhs_dilation)
    spread = ones if rhs_dilation is None else _integers(rhs_dilation)
    if isinstance(padding, str):
        _check_counts(lhs, rhs, strides, stretch, spread)
        sizes = [dilate_size(lhs.shape[d], s)
                 for d, s in zip(numbers.lhs_spec[2:], stretch, strict=True)]  # fmt: skip
        windows = [dilate_size(rhs.shape[d], s)
                   for d, s in zip(numbers.rhs_spec[2:], spread, strict=True)]  # fmt: skip
        padding = padtype_to_pads(sizes, windows, strides, padding)
    if preferred_element_type is not None:
        preferred_element_type = dtypes.requested_dtype(preferred_element_type, what)
    is_truth = dtypes.is_bool(lhs.aval.dtype) and dtypes.is_bool(rhs.aval.dtype)
    if is_truth:  # products are counted, and joined by "or"
        lhs, rhs = convert(lhs, dtypes.int32), convert(rhs, dtypes.int32)
    result: Array = conv_general_dilated_p.bind(
        lhs, rhs, window_strides=strides,
        padding=_pairs(padding),
        lhs_dilation=stretch, rhs_dilation=spread, dimension_numbers=numbers,
        feature_group_count=size_of(feature_group_count),
        batch_group_count=size_of(batch_group_count),
        precision=normal_precision(precision, what), preferred_element_type=preferred_element_type,
    )[0]  # fmt: skip
    if is_truth and preferred_element_type is None:
        result = convert(result, dtypes.bool_)
    return place(result, out_sharding, what)


def _pairs(padding: Any) -> tuple[tuple[int, int], ...]:
    require(
        all(hasattr(pair, "__len__") and len(pair) == 2 for pair in padding),
        "conv_general_dilated",
        "padding argument must be a name, or (before, after) for each dimension of space, got {}.",
        padding,
    )  # fmt: skip
    return tuple([(size_of(low), size_of(high)) for low, high in padding])


def conv(
    lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str,
    precision: PrecisionLike = None, preferred_element_type: DTypeLike = None,
) -> Array:  # fmt: skip
    """Convolve `(N, C, space...)` with `(O, I, space...)`; see `conv_general_dilated`.

    Args:
        lhs: the images, (N, C, space...).
        rhs: the kernels, (O, I, space...), of the same dtype.
        window_strides: the step in each dimension of space.
        padding: "SAME", "VALID" or pairs (low, high).
        precision: how exactly products are computed; None for the default.
        preferred_element_type: the dtype in which sums are kept and returned.

    Returns:
        An array (N, O, space...).

    Raises:
        TypeError: an operand is not an array; `preferred_element_type` names no dtype.
        ValueError: unknown `padding`; unknown `precision`.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.conv(xnp.ones((1, 1, 4, 4)), xnp.ones((1, 1, 3, 3)), (1, 1), 'VALID').shape
        (1, 1, 2, 2)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_with_general_padding(
    lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: Padding,
    lhs_dilation: Sequence[int] | None, rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None, preferred_element_type: DTypeLike = None,
) -> Array:  # fmt: skip
    """Convolve `(N, C, space...)` with `(O, I, space...)`; see `conv_general_dilated`.

    Args:
        lhs: the images, (N, C, space...).
        rhs: the kernels, (O, I, space...), of the same dtype.
        window_strides: the step in each dimension of space.
        padding: "SAME", "VALID" or pairs (low, high).
        lhs_dilation: how far apart the elements of the images are set; None for 1.
        rhs_dilation: and those of the kernels.
        precision: how exactly products are computed; None for the default.
        preferred_element_type: the dtype in which sums are kept and returned.

    Returns:
        An array (N, O, space...).

    Raises:
        TypeError: an operand is not an array; `preferred_element_type` names no dtype.
        ValueError: unknown `padding`; unknown `precision`.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.conv_with_general_padding(xnp.ones((1, 1, 4, 4)), xnp.ones((1, 1, 3, 3)), (1, 1),
        ...     [(1, 1)] * 2, None, None).shape
        (1, 1, 4, 4)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_transpose(
    lhs: ArrayLike, rhs: ArrayLike, strides: Sequence[int], padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None, transpose_kernel: bool = False,
    precision: PrecisionLike = None, preferred_element_type: DTypeLike = None,
    use_consistent_padding: bool = False,
) -> Array:  # fmt: skip
    """Convolve with a fractional stride: the transpose of a convolution, up to its kernel's order.

    Args:
      lhs: the input.
      rhs: the kernel.
      strides: n strides of the convolution that this is the transpose of.
      padding: `"SAME"` or `"VALID"`, as of that convolution, or n pairs.
      rhs_dilation: n factors by which the kernel is spread.
      dimension_numbers: see `conv_general_dilated`; None for features last, `("NHWC", "HWIO",
        "NHWC")` and its like.
      transpose_kernel: whether to reverse the kernel in space and exchange its in and out features,
        which makes this the derivative of a convolution with that kernel.
      precision: see `dot_general`.
      preferred_element_type: see `dot_general`.
      use_consistent_padding: whether pairs too are the padding of that convolution; otherwise they
        are the padding of the input here.

    Returns:
      An array of n + 2 dimensions, in the order that `dimension_numbers` says.

    Raises:
        TypeError: an operand is not an array; `preferred_element_type` names no dtype.
        ValueError: unknown `padding`; unknown `precision`.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> lax.conv_transpose(np.ones((1, 3, 1)), np.ones((2, 1, 1)), (2,), "VALID").shape
      (1, 6, 1)
    """
    lhs = as_array(lhs, what="conv_transpose: lhs")
    rhs = as_array(rhs, what="conv_transpose: rhs")
    if dimension_numbers is None:
        require(
            lhs.ndim in _TRANSPOSE_NUMBERS, "conv_transpose",
            "dimension_numbers must be given for more than three dimensions of space.", got=lhs,
        )  # fmt: skip
        dimension_numbers = _TRANSPOSE_NUMBERS[lhs.ndim]
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    strides = _integers(strides)
    ones = (1,) * (lhs.ndim - 2)
    dilations = ones if rhs_dilation is None else _integers(rhs_dilation)
    sizes = [rhs.shape[d] for d in numbers.rhs_spec[2:]]
    windows = [dilate_size(n, s) for n, s in zip(sizes, dilations, strict=True)]
    pads: Any = padding
    if isinstance(padding, str):
        pads = [_transpose_padding(k, s, padding) for k, s in zip(windows, strides, strict=True)]
    elif use_consistent_padding:
        pads = [(k - 1 - lo, k - 1 - hi) for k, (lo, hi) in zip(windows, padding, strict=True)]
    if transpose_kernel:
        rhs = _transpose_kernel(rhs, numbers)
    return conv_general_dilated(
        lhs, rhs, ones, pads, strides, dilations, numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def _transpose_kernel(rhs: Any, numbers: ConvDimensionNumbers) -> Any:
    """Reverse a kernel in space and exchange its in and out features."""
    o, i, *space = numbers.rhs_spec
    rhs = bind("rev", rhs, dimensions=tuple(space)) if space else rhs
    low, high = min(o, i), max(o, i)
    return move_dim(move_dim(rhs, low, high), high - 1, low)


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Return dimension numbers as numbers, from texts such as `("NHWC", "HWIO", "NHWC")`.

    Args:
        lhs_shape: the shape of the images.
        rhs_shape: the shape of the kernels.
        dimension_numbers: three texts, numbers already, or None for the usual order.

    Returns:
        A `ConvDimensionNumbers`.

    Example:
      >>> conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC"))
      ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    ndim = len(lhs_shape)
    if ndim != len(rhs_shape) or ndim < 2:
        raise TypeError(message(
            "conv_general_dilated",
            "the operands must have the same number of dimensions, at least two.",
            got=f"shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}",
        ))  # fmt: skip
    if dimension_numbers is None:
        order = tuple(range(ndim))
        return ConvDimensionNumbers(order, order, order)
    require(
        isinstance(dimension_numbers, tuple | list) and len(dimension_numbers) == 3
        and all(len(text) == ndim for text in dimension_numbers),
        "conv_general_dilated", "dimension_numbers must be three texts of length {}.", ndim,
        got=dimension_numbers, error=TypeError,
    )  # fmt: skip
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Return the order (N, C, space...), (O, I, space...), (N, C, space...) of texts' dimensions.

    Dimensions of space are in the order of the kernel's text.

    Args:
        dimension_numbers: three texts, such as ("NHWC", "HWIO", "NHWC").

    Returns:
        Three tuples of dimensions.

    Example:
        >>> from xnp import lax
        >>> lax.conv_general_permutations(('NHWC', 'HWIO', 'NHWC'))
        ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lhs, rhs, out = dimension_numbers
    space = [c for c in rhs if c not in "OI"]
    for text, letters in ((lhs, "NC"), (rhs, "OI"), (out, "NC")):
        if sorted(text) != sorted([*letters, *space]) or len(set(text)) != len(text):
            raise TypeError(message(
                "conv_general_dilated", f"the dimension numbers {text!r} do not fit.",
                got=f"{tuple(dimension_numbers)}",
                expected=f"each of {', '.join([*letters, *space])} once",
            ))  # fmt: skip
    return tuple([
        tuple([text.index(c) for c in [*letters, *space]])
        for text, letters in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))
    ])  # fmt: skip


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: str | Sequence[tuple[int, int]],
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """Return the shape of a convolution of `(N, C, space...)` with `(O, I, space...)`.

    Args:
        lhs_shape: the shape of the images.
        rhs_shape: the shape of the kernels.
        strides: the step in each dimension of space.
        pads: "SAME", "VALID" or pairs (low, high).
        batch_group_count: into how many groups the images are split.

    Returns:
        A tuple of sizes.

    Example:
        >>> from xnp import lax
        >>> lax.conv_shape_tuple((1, 3, 4, 4), (8, 3, 3, 3), (1, 1), 'VALID')
        (1, 8, 2, 2)
    """
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(message(
            "conv_shape_tuple", "there must be one pair of pads for each dimension of space.",
            got=f"{len(pads)} pairs for shape {tuple(lhs_shape)}",
        ))  # fmt: skip
    sizes = [convolution.output_size(n, k, s, (p[0], p[1]), 1, 1) for n, k, s, p in zip(
        lhs_shape[2:], rhs_shape[2:], strides, pads, strict=True)]  # fmt: skip
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *sizes)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]], dimension_numbers: Sequence[str],
) -> tuple[int, ...]:  # fmt: skip
    """Return the shape of a convolution whose dimensions are laid out as texts say.

    Args:
        lhs_shape: the shape of the images.
        rhs_shape: the shape of the kernels.
        window_strides: the step in each dimension of space.
        padding: "SAME", "VALID" or pairs (low, high).
        dimension_numbers: three texts, such as ("NHWC", "HWIO", "NHWC").

    Returns:
        A tuple of sizes.

    Raises:
        ValueError: unknown `padding`.

    Example:
        >>> from xnp import lax
        >>> lax.conv_general_shape_tuple((1, 4, 4, 3), (3, 3, 3, 8), (1, 1), 'SAME',
        ...     ('NHWC', 'HWIO', 'NHWC'))
        (1, 4, 4, 8)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple([lhs_shape[d] for d in lhs], [rhs_shape[d] for d in rhs],
                             window_strides, padding)  # fmt: skip
    return tuple([n for _, n in sorted(zip(out, shape, strict=True))])


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]], dimension_numbers: Sequence[str],
) -> tuple[int, ...]:  # fmt: skip
    """Return the shape of `conv_transpose`.

    Args:
        lhs_shape: the shape of the images.
        rhs_shape: the shape of the kernels.
        window_strides: the step in each dimension of space.
        padding: "SAME", "VALID" or pairs (low, high).
        dimension_numbers: three texts, such as ("NHWC", "HWIO", "NHWC").

    Returns:
        A tuple of sizes.

    Raises:
        ValueError: unknown `padding`.

    Example:
        >>> from xnp import lax
        >>> lax.conv_transpose_shape_tuple((1, 4, 4, 3), (3, 3, 3, 8), (2, 2), 'SAME',
        ...     ('NHWC', 'HWIO', 'NHWC'))
        (1, 8, 8, 8)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    kernel, space = [rhs_shape[d] for d in rhs], [lhs_shape[d] for d in lhs[2:]]
    pads = [
        _transpose_padding(k, s, padding) if isinstance(padding, str) else padding[i]
        for i, (k, s) in enumerate(zip(kernel[2:], window_strides, strict=True))
    ]
    each = zip(space, kernel[2:], window_strides, pads, strict=True)
    sizes = [(n - 1) * s - k + 2 + sum(p) for n, k, s, p in each]
    shape = (lhs_shape[lhs[0]], kernel[0], *sizes)
    return tuple([n for _, n in sorted(zip(out, shape, strict=True))])


def _transpose_padding(window: int, stride: int, padding: str) -> tuple[int, int]:
    """Return the padding of the input that makes `conv_transpose` undo a convolution's sizes."""
    if padding == "SAME":
        total = window + stride - 2
        before = window - 1 if stride > window - 1 else math.ceil(total / 2)
    elif padding == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        before = window - 1
    else:
        raise ValueError(message(
            "conv_transpose", f"{padding!r} is not the name of a padding.",
            expected="'SAME' or 'VALID'",
        ))  # fmt: skip
    return before, total - before


def _integers(values: Sequence[int]) -> tuple[int, ...]:
    return tuple([size_of(v) for v in values])


# --------------------------------------------------------------------------------------- patches
# The windows of a convolution as arrays, and convolutions with another kernel at each place.


def conv_general_dilated_patches(
    lhs: ArrayLike, filter_shape: Sequence[int], window_strides: Sequence[int], padding: Padding,
    lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Array:  # fmt: skip
    """Return the elements under each window of a convolution, as features.

    Args:
      lhs: the input, of n + 2 dimensions.
      filter_shape: n sizes of a window.
      window_strides: as for `conv_general_dilated`, and so the others.
      padding: see `window_strides`.
      lhs_dilation: see `window_strides`.
      rhs_dilation: see `window_strides`.
      dimension_numbers: see `window_strides`; the spatial order of its second part is that of
        `filter_shape`.
      precision: see `window_strides`.
      preferred_element_type: see `window_strides`.

    Returns:
      The result of a convolution whose features are the input's ones times the elements of a
      window: for each feature, the elements of the window in row-major order.

    Raises:
        TypeError: `lhs` is not an array; `preferred_element_type` names no dtype.
        ValueError: unknown `padding`; unknown `precision`.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> x = np.arange(4.0, dtype="float32").reshape(1, 1, 4)
      >>> np.asarray(lax.conv_general_dilated_patches(x, (2,), (1,), "VALID"))[0].tolist()
      [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]

    Differentiable in: lhs.
    """
    x = as_array(lhs, what="conv_general_dilated_patches")
    sizes = tuple(filter_shape)
    shape = (1,) * (2 + len(sizes))  # of a kernel: only its number of dimensions counts
    numbers = conv_dimension_numbers(x.aval.shape, shape, dimension_numbers)
    features, count = x.aval.shape[numbers.lhs_spec[1]], math.prod(sizes)
    one_hot = np.tile(np.eye(count).reshape(count, 1, *sizes), (features, 1, *[1] * len(sizes)))
    kernel = np.transpose(one_hot, np.argsort(numbers.rhs_spec)).astype(x.aval.dtype)
    return conv_general_dilated(
        x, kernel, window_strides, padding, lhs_dilation, rhs_dilation, numbers,
        feature_group_count=features, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_general_dilated_local(
    lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: Padding,
    filter_shape: Sequence[int], lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None, precision: PrecisionLike = None,
) -> Array:  # fmt: skip
    """Convolve with a kernel of its own at each place of the result (a locally connected layer).

    Args:
      lhs: the input, of n + 2 dimensions.
      rhs: the kernels, of n + 2 dimensions: its spatial sizes are those of the result, and its
        input features are those of `conv_general_dilated_patches`.
      window_strides: as for `conv_general_dilated`, and so the others.
      padding: see `window_strides`.
      filter_shape: n sizes of a window.
      lhs_dilation: see `window_strides`.
      rhs_dilation: see `window_strides`.
      dimension_numbers: see `window_strides`.
      precision: see `window_strides`.

    Returns:
      An array of n + 2 dimensions in the order that `dimension_numbers` says.

    Raises:
        TypeError: an operand is not an array.
        ValueError: unknown `padding`; unknown `precision`.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> x, kernels = np.ones((1, 1, 4)), np.ones((1, 2, 3))  # three places, two elements at each
      >>> lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (2,)).tolist()
      [[[2.0, 2.0, 2.0]]]

    Differentiable in: lhs, rhs.
    """
    y = as_array(rhs, what="conv_general_dilated_local: rhs")
    numbers = conv_dimension_numbers(
        as_array(lhs, what="conv_general_dilated_local: lhs").aval.shape, y.aval.shape,
        dimension_numbers,
    )  # fmt: skip
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, precision
    )
    batch, feature, *space = numbers.out_spec
    _, in_feature, *kernel_space = numbers.rhs_spec
    product = dot_general(  # the spatial dimensions, then the kernels' features, then the batch
        y, patches, (((in_feature,), (feature,)), (kernel_space, space)), precision=precision
    )
    source = dict(zip((*space, feature, batch), range(len(space) + 2), strict=True))
    result: Array = permute(product, [source[d] for d in range(len(source))])
    return result


# ------------------------------------------------------------------------------- Fourier transforms
# Fourier transforms: `fft` and its types.


@boundary
def fft(x: ArrayLike, fft_type: FftType | str | int, fft_lengths: Sequence[int]) -> Array:
    """Transform the last dimensions of an array.

    Args:
      x: an array; real for RFFT, else it is converted to complex. Dtypes of 16 bits are computed
        in float32.
      fft_type: `FftType.FFT`, `IFFT`, `RFFT` or `IRFFT`, or that name.
      fft_lengths: the lengths of the transforms over the last one to three dimensions; `x` has
        these sizes there (for IRFFT, length // 2 + 1 in the last one).

    Returns:
      The transform: complex, and real for IRFFT. The inverse ones divide by the lengths.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import numpy as np
      >>> np.asarray(fft(np.float32([1, 0, 0, 0]), "FFT", (4,)))
      array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)

    Differentiable in: x.
    Source: StableHLO specification, section fft.
    """
    kind = _kind(fft_type)
    lengths = tuple([size_of(n) for n in fft_lengths])
    operand: Array = as_array(x, what="fft: x")
    dtype = operand.aval.dtype
    if kind == FftType.RFFT:
        if dtypes.is_complex(dtype):
            raise ValueError(message("fft", "RFFT takes real input.", got=operand.aval.str_long()))
        wide = dtypes.float64 if dtypes.to_complex_dtype(dtype) == dtypes.complex128 else (
            dtypes.float32)  # fmt: skip
        operand = convert(operand, wide)
    else:
        operand = convert(operand, dtypes.to_complex_dtype(dtype))
    if not lengths:
        return operand
    result: Array = fft_p.bind(operand, fft_type=kind, fft_lengths=lengths)[0]
    return result


def _kind(fft_type: Any) -> FftType:
    if isinstance(fft_type, str):
        name = fft_type.rsplit(".", 1)[-1].upper()
        if name in FftType.__members__:
            return FftType[name]
    elif isinstance(fft_type, int) and fft_type in list(FftType):
        return FftType(fft_type)
    raise ValueError(message(
        "fft", f"unknown fft_type {fft_type!r}.", expected=", ".join(FftType.__members__),
    ))  # fmt: skip


boundaries(globals())
