"""The windows of a convolution as arrays, and convolutions with another kernel at each place.

Neighbours: `convolution` has the convolutions these are made of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xnp.docstrings import complete
from xnp.lax.contractions import dot_general
from xnp.lax.convolution import (
    ConvGeneralDilatedDimensionNumbers,
    Padding,
    conv_dimension_numbers,
    conv_general_dilated,
)
from xnp.primitives.operations import transposed
from xnp.primitives.precision import PrecisionLike
from xprim import Array, as_array
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike

__all__ = ["conv_general_dilated_local", "conv_general_dilated_patches"]

__dir__ = __all__.copy


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
    result: Array = transposed(product, [source[d] for d in range(len(source))])
    return result


complete(globals())
boundaries(globals())
