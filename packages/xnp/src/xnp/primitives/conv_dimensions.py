"""Sizes and paddings of convolutions, along one dimension of space.

Neighbours: `conv_general_dilated` uses them for its rules.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ()


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


def dilated(size: int, dilation: int) -> int:
    """Return the size with `dilation - 1` zeros between neighbours."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def output_size(
    size: int, kernel: int, stride: int, padding: tuple[int, int], lhs_dilation: int,
    rhs_dilation: int,
) -> int:  # fmt: skip
    """Return how many windows fit."""
    padded = max(dilated(size, lhs_dilation) + padding[0] + padding[1], 0)
    window = dilated(kernel, rhs_dilation)
    return 0 if padded == 0 or padded < window else (padded - window) // stride + 1


def input_cotangent_padding(
    size: int, kernel: int, out: int, stride: int, padding: tuple[int, int], lhs_dilation: int,
    rhs_dilation: int,
) -> tuple[int, int]:  # fmt: skip
    """Return the padding of the convolution that gives the cotangent of the input."""
    window, whole = dilated(kernel, rhs_dilation), dilated(size, lhs_dilation)
    before = window - 1 - padding[0]
    return before, whole + window - 1 - dilated(out, stride) - before


def kernel_cotangent_padding(
    size: int, kernel: int, out: int, stride: int, padding: tuple[int, int], lhs_dilation: int,
    rhs_dilation: int,
) -> tuple[int, int]:  # fmt: skip
    """Return the padding of the convolution that gives the cotangent of the kernel."""
    window, whole = dilated(kernel, rhs_dilation), dilated(size, lhs_dilation)
    return padding[0], dilated(out, stride) - whole + window - 1 - padding[0]
