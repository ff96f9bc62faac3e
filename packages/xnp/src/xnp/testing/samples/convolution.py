"""Samples of convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import convolution as _rules  # noqa: F401 - defines the primitive
from xnp.primitives.convolution import ConvDimensionNumbers
from xprim import dtypes
from xprim.testing import EXACT, Sample, Tolerance

__all__ = ()

FLOAT32 = Tolerance(1e-4, 1e-4, "sums of a few dozen float32 products, in another order")
FLOAT64 = Tolerance(1e-12, 1e-12, "sums of a few dozen float64 products, in another order")
SMALL = Tolerance(0.03, 0.03, "the sum is rounded once to 8 to 11 bits, from sums in float32")


def _values(shape: tuple[int, ...], dtype: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if dtypes.is_integer(np.dtype(dtype)):
        return rng.integers(0, 9, shape).astype(dtype)
    x = np.asarray(rng.normal(size=shape))
    if dtypes.is_complex(np.dtype(dtype)):
        x = x + 1j * np.asarray(rng.normal(size=shape))
    return x.astype(dtype)


def _tolerance(dtype: Any) -> Tolerance:
    if dtypes.is_integer(dtype):
        return EXACT
    name = np.dtype(dtype).name
    return FLOAT64 if name in ("float64", "complex128") else (
        FLOAT32 if name in ("float32", "complex64") else SMALL)  # fmt: skip


def _conv(
    lhs: tuple[int, ...], rhs: tuple[int, ...], note: str, *, dtype: Any = "float64",
    strides: Any = None, padding: Any = None, lhs_dilation: Any = None, rhs_dilation: Any = None,
    features: int = 1, batches: int = 1, numbers: Any = None, preferred: Any = None,
) -> Sample:  # fmt: skip
    n = len(lhs) - 2
    order = tuple(range(n + 2))
    params = {
        "window_strides": strides or (1,) * n, "padding": padding or ((0, 0),) * n,
        "lhs_dilation": lhs_dilation or (1,) * n, "rhs_dilation": rhs_dilation or (1,) * n,
        "dimension_numbers": numbers or ConvDimensionNumbers(order, order, order),
        "feature_group_count": features, "batch_group_count": batches, "precision": None,
        "preferred_element_type": None if preferred is None else np.dtype(preferred),
    }  # fmt: skip
    operands = [_values(lhs, dtype, 1), _values(rhs, dtype, 2)]
    return Sample(operands, params, _tolerance(np.dtype(preferred or dtype)), note=note)


_IMAGES_LAST = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
_ROWS_LAST = ConvDimensionNumbers((0, 2, 1), (2, 1, 0), (0, 2, 1))
_TURNED = ConvDimensionNumbers((2, 0, 3, 1), (1, 3, 2, 0), (3, 2, 0, 1))

TABLE: dict[str, list[Sample]] = {
    "conv_general_dilated": [
        _conv((2, 3, 5, 6), (4, 3, 2, 3), "plain"),
        _conv((2, 3, 7), (4, 3, 3), "one-dimension", padding=((1, 2),)),
        _conv((2, 3), (4, 3), "no-space"),
        _conv((1, 2, 4, 3, 3), (2, 2, 2, 2, 1), "three-dimensions", padding=((1, 0),) * 3),
        _conv((2, 3, 8, 7), (4, 3, 3, 2), "strides", strides=(2, 3), padding=((1, 1), (0, 2))),
        _conv((2, 3, 4, 5), (4, 3, 3, 2), "lhs-dilation", lhs_dilation=(2, 3)),
        _conv((2, 3, 8, 7), (4, 3, 3, 2), "rhs-dilation", rhs_dilation=(2, 3)),
        _conv((2, 3, 6, 7), (4, 3, 3, 2), "both-dilations", lhs_dilation=(2, 1),
              rhs_dilation=(1, 2), strides=(2, 2), padding=((2, 1), (1, 3))),
        _conv((2, 3, 8, 7), (4, 3, 3, 2), "negative-padding", padding=((-1, 2), (-2, -1))),
        _conv((2, 3, 8), (4, 3, 3), "cut-dilated", padding=((-2, -3),), lhs_dilation=(3,)),
        _conv((2, 6, 5, 4), (4, 3, 2, 2), "feature-groups", features=2),
        _conv((2, 4, 5), (8, 1, 2), "depthwise", features=4, strides=(2,), padding=((1, 1),)),
        _conv((6, 3, 5, 4), (4, 3, 2, 2), "batch-groups", batches=2),
        _conv((6, 3, 5), (6, 3, 2), "batch-groups-strides", batches=3, strides=(2,),
              padding=((1, 1),)),
        _conv((2, 5, 6, 3), (2, 3, 3, 4), "channels-last", numbers=_IMAGES_LAST),
        _conv((3, 4, 2, 5), (3, 4, 2, 3), "turned", numbers=_TURNED),
        _conv((1, 5, 1), (3, 1, 1), "one-vector-channels-last", numbers=_ROWS_LAST),
        _conv((1, 1, 5), (1, 1, 3), "one-vector"),
        _conv((2, 3, 2), (4, 3, 5), "kernel-too-large"),
        _conv((0, 3, 5), (4, 3, 2), "no-batch"),
        _conv((2, 0, 5), (4, 0, 2), "no-features"),
        _conv((2, 3, 5), (0, 3, 2), "no-outputs"),
        _conv((2, 3, 9), (4, 3, 2), "loose-strides", strides=(3,)),
        *[_conv((2, 3, 5), (4, 3, 2), "dtypes", dtype=d)
          for d in ("float32", "float16", dtypes.bfloat16, "complex64", "complex128", "int8",
                    "int32", "uint8", "int64")],
        _conv((2, 3, 5), (4, 3, 2), "wide", dtype=dtypes.bfloat16, preferred="float32"),
        _conv((2, 3, 5), (4, 3, 2), "wide", dtype="int8", preferred="int32"),
    ],
}  # fmt: skip
