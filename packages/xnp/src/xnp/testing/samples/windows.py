"""Samples of the window operations and of convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import convolution as _rules  # noqa: F401 - defines the primitive
from xnp.primitives.convolution import ConvDimensionNumbers
from xnp.testing.samples.values import COMPLEX, FLOATS, INTEGERS, numbers, small_numbers
from xprim import dtypes, get_primitive
from xprim.testing import EXACT, Sample, Tolerance

__all__ = ()

Shape = tuple[int, ...]
ROUNDED = Tolerance(1e-14, 1e-14, "float64 numbers added in another order")


def _params(window: Shape, strides: Shape = (), padding: Any = (), base: Shape = (),
            dilation: Shape = ()) -> dict[str, Any]:  # fmt: skip
    ones = (1,) * len(window)
    return {
        "window_dimensions": window, "window_strides": strides or ones,
        "padding": padding or ((0, 0),) * len(window), "base_dilation": base or ones,
        "window_dilation": dilation or ones,
    }  # fmt: skip


_PLAIN: list[tuple[Shape, dict[str, Any]]] = [
    ((5,), _params((2,))), ((6,), _params((3,), (2,))), ((4, 5), _params((2, 2), (2, 1))),
    ((5,), _params((3,), (2,), ((1, 1),))), ((4, 5), _params((2, 3), (1, 2), ((0, 1), (2, 1)))),
    ((3,), _params((1,))), ((2, 3, 3), _params((1, 2, 2), (1, 2, 2), ((0, 0), (1, 1), (1, 1)))),
    ((), _params(())), ((0, 3), _params((1, 2))),
]  # fmt: skip
_DILATED: list[tuple[Shape, dict[str, Any]]] = [
    ((5,), _params((2,), (1,), ((1, 1),), (2,), (1,))), ((6,), _params((2,), dilation=(3,))),
    ((3, 4), _params((2, 2), (2, 1), ((1, 0), (0, 2)), (2, 1), (1, 2))),
    ((2,), _params((4,))),
]  # fmt: skip


def _reductions(kinds: Any) -> list[Sample]:
    samples = [Sample([numbers(s)], p, ROUNDED) for s, p in (*_PLAIN, *_DILATED)]
    params = _params((2, 2), (1, 2), ((0, 1), (1, 0)))
    return samples + [
        Sample([small_numbers((3, 4), dtype)], params, smooth=False) for dtype in kinds
    ]


def _gathers() -> list[Sample]:
    return [
        Sample([numbers(s, seed=1), numbers(s)], {"select_prim": get_primitive(name), **p},
               unit_tangents=(0,))
        for s, p in (*_PLAIN, *_DILATED[:3]) for name in ("ge", "le")
    ]  # fmt: skip


def _scatters() -> list[Sample]:
    samples = []
    for shape, params in _PLAIN:
        places = tuple([
            (n + low + high - w) // step + 1
            for n, w, step, (low, high) in zip(shape, params["window_dimensions"],
                                               params["window_strides"], params["padding"],
                                               strict=True)
        ])  # fmt: skip
        kept = {k: params[k] for k in ("window_dimensions", "window_strides", "padding")}
        for name in ("ge", "le"):
            given = {"select_prim": get_primitive(name), **kept}
            samples.append(Sample([numbers(places, seed=1), numbers(shape)], given, ROUNDED,
                                  unit_tangents=(0,)))  # fmt: skip
    return samples


TABLE: dict[str, list[Sample]] = {
    "reduce_window_sum": _reductions((*FLOATS, *INTEGERS, *COMPLEX)),
    "reduce_window_max": _reductions((*FLOATS, *INTEGERS, np.bool_)),
    "reduce_window_min": _reductions((*FLOATS, *INTEGERS, np.bool_)),
    "select_and_gather_add": _gathers(),
    "select_and_scatter_add": _scatters(),
}


# ----------------------------------------------------------------------------------- convolutions

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

TABLE |= {
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
