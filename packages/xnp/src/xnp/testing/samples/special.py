"""Samples of special functions.

Tolerances: the host computes in float64, XLA in the operands' precision. XLA's own approximations
lose some digits near zeros and for large arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import xnp.lax  # noqa: F401 - defines the primitives
from xnp.testing.samples.elementwise import FLOATS, SMALL_FLOATS, array, unary_samples
from xprim.testing import Sample, Tolerance

__all__ = ()

_REASON = "XLA's approximation in the operands' precision; the host computes in float64"
_BY_DTYPE = {"float32": (1e-4, 1e-5), "float64": (1e-10, 1e-12), "float16": (0.02, 2e-3),
             "bfloat16": (0.1, 1e-2)}  # fmt: skip


def _approximate(dtype: Any) -> Tolerance:
    rtol, atol = _BY_DTYPE.get(np.dtype(dtype).name, (0.3, 0.1))
    return Tolerance(rtol, atol, _REASON)


def _positive(x: Any) -> Any:
    return np.abs(x) + 0.6


def _within_one(x: Any) -> Any:
    return 0.8 * np.tanh(x)


_POINTS = {
    "erf": [0.0, 1e-3, -0.5, 0.99, 1.01, -2.5, 4.0, 6.0, np.inf, -np.inf, np.nan],
    "erfc": [0.0, 1e-3, -0.5, 0.99, 1.01, -2.5, 4.0, 6.0, np.inf, -np.inf, np.nan],
    "erf_inv": [0.0, 1e-3, -0.5, 0.99, -0.75, 0.25, 1.0, -1.0, 1.5, np.nan],
    "lgamma": [0.0, 0.3, 1.0, 2.0, -0.5, -2.3, 7.7, 33.0, -3.0, np.inf, np.nan],
    "digamma": [0.3, 1.0, 2.0, -0.5, -2.3, 7.7, 33.0, -3.0, np.inf, np.nan],
    "bessel_i0": [0.0, 0.3, 1.0, -2.0, 7.9, 8.1, -50.0, np.nan],
    "bessel_i1": [0.0, 0.3, 1.0, -2.0, 7.9, 8.1, -50.0, np.nan],
    "bessel_i0e": [0.0, 0.3, 1.0, -2.0, 7.9, 8.1, -50.0, np.nan],
    "bessel_i1e": [0.0, 0.3, 1.0, -2.0, 7.9, 8.1, -50.0, np.nan],
    "erfcx": [0.0, 1e-3, -0.5, 0.99, 1.01, -2.5, 4.0, 60.0, np.inf, -np.inf, np.nan],
    "ndtr": [0.0, 1e-3, -0.5, 0.99, 1.01, -2.5, 4.0, -6.0, np.inf, -np.inf, np.nan],
    "log_ndtr": [0.0, 1e-3, -0.5, 0.99, 1.01, -2.5, 4.0, -60.0, np.inf, -np.inf, np.nan],
    "ndtri": [0.5, 1e-3, 0.09, 0.11, 0.99, 0.0, 1.0, 1.5, -0.5, np.nan],
    "logit": [0.5, 1e-3, 0.25, 0.75, 0.99, 0.0, 1.0, 1.5, -0.5, np.nan],
    "dawsn": [0.0, 1e-3, -0.5, 0.39, 0.41, -2.5, 15.9, 16.1, np.inf, -np.inf, np.nan],
    "gamma": [0.0, -0.0, 0.3, 1.0, 2.0, -0.5, -2.3, 7.7, 33.0, -3.0, np.inf, -np.inf, np.nan],
    "expi": [0.0, 0.3725, 0.5, -0.5, -2.5, 4.0, 39.9, 40.1, np.inf, -np.inf, np.nan],
    "spence": [0.0, 0.25, 0.5, 1.0, 1.001, 2.5, 40.0, -1.0, np.inf, np.nan],
    "sine_integral": [0.0, 1e-3, -0.5, 3.4, 3.6, -40.0, np.inf, -np.inf, np.nan],
    "cosine_integral": [0.0, 1e-3, -0.5, 3.4, 3.6, 40.0, np.inf, np.nan],
    "fresnel_sine": [0.0, 1e-3, -0.5, 1.5, 1.7, -40.0, np.inf, -np.inf, np.nan],
    "fresnel_cosine": [0.0, 1e-3, -0.5, 1.5, 1.7, -40.0, np.inf, -np.inf, np.nan],
}


def _within_zero_and_one(x: Any) -> Any:
    return 0.5 + 0.4 * np.tanh(x)


_DOMAINS = {
    "erf": lambda x: x, "erfc": lambda x: x, "erf_inv": _within_one, "lgamma": _positive,
    "digamma": _positive, "bessel_i0": _positive, "bessel_i1": _positive,
    "bessel_i0e": _positive, "bessel_i1e": _positive, "gamma": _positive, "expi": _positive,
    "spence": _positive, "cosine_integral": _positive, "ndtri": _within_zero_and_one,
    "logit": _within_zero_and_one,
    **dict.fromkeys(("erfcx", "ndtr", "log_ndtr", "dawsn", "sine_integral", "fresnel_sine",
                     "fresnel_cosine"), lambda x: x),
}  # fmt: skip


def _one_operand(name: str) -> list[Sample]:
    points = _POINTS[name]
    return unary_samples((*FLOATS, *SMALL_FLOATS), _DOMAINS[name], tolerance=_approximate,
                         special=lambda dtype: array(points, dtype))  # fmt: skip


def _many_operands(points: Sequence[tuple[float, ...]], smooth: Sequence[tuple[float, ...]],
                   tangents: tuple[int, ...]) -> list[Sample]:  # fmt: skip
    samples = []
    for dtype in FLOATS:
        for rows, is_smooth in ((points, False), (smooth, np.dtype(dtype).itemsize > 3)):
            operands = [array(column, dtype) for column in zip(*rows, strict=True)]
            samples.append(Sample(operands, {}, _approximate(dtype),
                                  smooth=is_smooth and bool(tangents),
                                  unit_tangents=tangents))  # fmt: skip
    scalars = [array(v, "float32") for v in smooth[0]]
    mixed = [*scalars[:-1], np.resize(array([r[-1] for r in smooth], "float32"), (2, 2))]
    empty = [np.zeros((0,), np.float32)] * len(scalars)
    extra = [Sample(operands, {}, _approximate("float32"), smooth=False)
             for operands in (scalars, mixed, empty)]  # fmt: skip
    return [*samples, *extra]


def _derivatives(points: Sequence[tuple[float, ...]], orders: tuple[int, ...]) -> list[Sample]:
    """Return samples of derivatives in parameters, which are smooth in all operands."""
    params, tolerance = {"orders": orders}, _approximate("float32")
    columns = [array(column, "float32") for column in zip(*points, strict=True)]
    scalars = [array(v, "float16") for v in points[0]]
    empty = [np.zeros((0,), np.float32)] * len(scalars)
    return [Sample(columns, params, tolerance, smooth=True),
            Sample(scalars, params, _approximate("float16"), smooth=False),
            Sample(empty, params, tolerance, smooth=False)]  # fmt: skip


_GAMMA = [(1.0, 2.0), (0.5, 0.25), (3.0, 10.0), (20.0, 19.0), (0.1, 3.0), (30.0, 50.0)]
_GAMMA_EDGES = [(1.0, 0.0), (1.0, np.inf), (-1.0, 1.0), (1.0, -1.0), (np.nan, 1.0), (1.0, np.nan)]
_BETA = [(1.0, 2.0, 0.3), (0.5, 0.5, 0.9), (12.0, 15.0, 0.4), (3.0, 0.7, 0.05)]
_BETA_EDGES = [(1.0, 2.0, 0.0), (1.0, 2.0, 1.0), (1.0, 2.0, 1.5), (-1.0, 2.0, 0.5),
               (1.0, 1.0, np.nan)]  # fmt: skip

_PAIRS = [(1.0, 2.0), (0.5, 0.25), (3.0, 7.5), (12.0, 15.0), (0.1, 3.0)]
_PAIR_EDGES = [(0.0, 1.0), (0.0, 0.0), (1.0, 0.0), (2.0, np.inf), (np.nan, 1.0), (0.0, np.nan)]
_ORDERS = [(1.0, 0.5), (2.0, 0.25), (5.0, 1.5), (3.0, 12.0), (1.0, 2.0)]
_ORDER_EDGES = [(0.0, 0.5), (1.0, 0.0), (2.0, 0.0), (0.5, 1.0), (1.0, np.inf), (1.0, -1.0)]
_CONFLUENT = [(1.0, 2.0, 0.5), (0.5, 1.5, -0.75), (2.0, 3.0, 4.0), (1.5, 4.0, -3.0)]
_GAUSSIAN = [(1.0, 2.0, 3.0, 0.5), (0.5, 0.5, 1.5, -0.75), (1.0, 0.25, 2.0, 0.8)]

TABLE: dict[str, list[Sample]] = {
    **{name: _one_operand(name) for name in _POINTS},
    "polygamma": _many_operands(
        [(0.0, 1.5), (1.0, 0.5), (2.0, 7.0), (0.5, 1.0), (3.0, np.nan)],
        [(1.0, 0.75), (2.0, 1.25), (1.0, 4.0)], (1,)),
    "zeta": _many_operands(
        [(2.0, 1.0), (1.0, 2.0), (0.5, 1.0), (4.0, 0.5), (2.0, np.nan)],
        [(2.0, 1.5), (3.5, 0.75), (2.5, 8.0)], (0, 1)),
    "beta": _many_operands([*_PAIRS, *_PAIR_EDGES], _PAIRS, (0, 1)),
    "betaln": _many_operands([*_PAIRS, *_PAIR_EDGES], _PAIRS, (0, 1)),
    "poch": _many_operands([*_PAIRS, (-3.0, 2.0), (-2.5, 1.5), (0.0, 0.0)], _PAIRS, (0, 1)),
    "xlogy": _many_operands([*_PAIRS, *_PAIR_EDGES], _PAIRS, (0, 1)),
    "xlog1py": _many_operands([*_PAIRS, *_PAIR_EDGES], _PAIRS, (0, 1)),
    "expn": _many_operands([*_ORDERS, *_ORDER_EDGES], _ORDERS, (1,)),
    "owens_t": _many_operands([*_PAIRS, *_PAIR_EDGES, (-1.0, -2.0)], _PAIRS, (0, 1)),
    "hyp1f1": _many_operands(
        [*_CONFLUENT, (0.0, 1.0, 2.0), (1.0, 0.0, 0.5), (1.0, 2.0, np.nan)], _CONFLUENT, (0, 1, 2)),
    "hyp2f1": _many_operands(
        [*_GAUSSIAN, (1.0, 1.0, 3.0, 1.0), (1.0, 1.0, 2.0, 1.0), (1.0, 1.0, 2.0, 1.5)], _GAUSSIAN,
        (3,)),
    "igamma": _many_operands([*_GAMMA, *_GAMMA_EDGES], _GAMMA, (0, 1)),
    "igammac": _many_operands([*_GAMMA, *_GAMMA_EDGES], _GAMMA, (0, 1)),
    "igamma_grad_a": _many_operands([*_GAMMA, *_GAMMA_EDGES], _GAMMA, (1,)),
    "igamma_grad_x": _many_operands([*_GAMMA, *_GAMMA_EDGES], _GAMMA, (0, 1)),
    "random_gamma_grad": _many_operands(_GAMMA, _GAMMA, ()),
    "betainc_grad_x": _many_operands([*_BETA, *_BETA_EDGES], _BETA, (0, 1, 2)),
    "regularized_incomplete_beta": _many_operands([*_BETA, *_BETA_EDGES], _BETA, (0, 1, 2)),
    "hyp1f1_derivative": _derivatives(_CONFLUENT, (1, 0)),
    "hyp2f1_derivative": _derivatives(_GAUSSIAN[:2], (0, 1, 0)),
    "zeta_derivative": _derivatives([(2.0, 1.5), (3.5, 0.75), (2.5, 8.0)], (1,)),
    "regularized_incomplete_beta_derivative": _derivatives(_BETA[:2], (1, 0)),
    "betainc_grad_x_derivative": _derivatives(_BETA[:2], (1, 0, 0)),
}  # fmt: skip
