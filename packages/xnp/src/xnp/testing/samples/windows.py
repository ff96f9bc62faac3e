"""Samples of the window operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.lax import windows as _functions  # noqa: F401 - defines the primitives
from xnp.testing.samples.values import COMPLEX, FLOATS, INTEGERS, numbers, small_numbers
from xprim import get_primitive
from xprim.testing import Sample, Tolerance

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
