"""Lengths and angles to third order, from the least to the greatest numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xnp
import xtree
from xad import grad
from xbatch import vmap
from xjit import jit
from xnp import lax
from xprim import config

mp = pytest.importorskip("mpmath")

ORDERS = ["", "x", "y", "xx", "xy", "yy", "xxx", "xxy", "xyy", "yyy"]
SIZES = {
    np.float32: [7e-45, 1e-42, 1e-39, 2e-38, 1e-36, 1e-30, 1e-20, 1e-10, 1.0, 1e10, 1e20, 1e38],
    np.float64: [1e-322, 1e-310, 1e-307, 1e-200, 1e-100, 1e-45, 1.0, 1e38, 1e200, 1e308],
}
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "hypot": xnp.hypot, "abs": lambda x, y: abs(lax.complex(x, y)),
    "arctan2": xnp.arctan2, "angle": lambda x, y: xnp.angle(lax.complex(y, x)),
}  # fmt: skip


def exact_angle(order: str, x: Any, y: Any) -> float:
    """Return a derivative of the angle of the point (y, x), by those of log(y + i x)."""
    with mp.workdps(60):
        z = mp.mpc(float(y), float(x))
        n, by_x = len(order), order.count("x")
        found = mp.log(z) if not n else (-1) ** (n - 1) * mp.factorial(n - 1) / z**n
        return float(mp.im(found * mp.mpc(0, 1) ** by_x))


def exact_length(order: str, x: Any, y: Any) -> float:
    """Return a derivative of the length, by hand."""
    with mp.workdps(60):
        x, y = mp.mpf(float(x)), mp.mpf(float(y))
        if order.count("y") > order.count("x"):
            return exact_length(order.translate(str.maketrans("xy", "yx")), y, x)
        z = mp.sqrt(x * x + y * y)
        return float({
            "": z, "x": x / z, "xx": y * y / z**3, "xy": -x * y / z**3,
            "xxx": -3 * x * y * y / z**5, "xxy": y * (2 * x * x - y * y) / z**5,
        }["".join(sorted(order))])  # fmt: skip


@pytest.mark.sampled(every=4)
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_exact_at_all_sizes(name: str, dtype: Any, compiled: bool) -> None:
    x, y = [np.array([factor * size for size in SIZES[dtype]], dtype) for factor in (1.3, -0.7)]
    check(name, x, y, compiled)


@pytest.mark.sampled(every=4)
@pytest.mark.filterwarnings("ignore:(over|under)flow")
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_exact_where_the_sizes_differ(
    name: str, dtype: Any, compiled: bool
) -> None:
    normal = [size for size in SIZES[dtype] if size > np.finfo(dtype).tiny]
    x, y = np.array(list(itertools.product(normal, normal)), dtype).T
    check(name, x * dtype(-1.3), y * dtype(0.7), compiled)


def check(name: str, x: Any, y: Any, compiled: bool) -> None:
    info = np.finfo(x.dtype)

    def derivatives(x: Any, y: Any) -> list[Any]:
        found = []
        for order in ORDERS:
            f = FUNCTIONS[name]
            for by in order:
                f = grad(f, "xy".index(by))
            found.append(f(x, y))
        return found

    is_length = name in ("hypot", "abs")
    exact = exact_length if is_length else exact_angle
    with config.enable_x64(True):
        results = (jit if compiled else lambda f: f)(vmap(derivatives))(x, y)
    for order, result in zip(ORDERS, results, strict=True):
        with np.errstate(over="ignore"):
            expected = np.array([exact(order, *p) for p in zip(x, y, strict=True)]).astype(x.dtype)
        # 16 roundings at most, one of them in units of the least number; compiled programs flush
        # a derivative, which is not a length, to zero
        flushed = info.smallest_subnormal
        if compiled and (order or not is_length):
            flushed = (1 if is_length else 4) * info.tiny  # what is less on the way is flushed, too
        lasting = np.ones(len(x), bool)
        if compiled and not is_length:  # operands that are subnormal count as zeros
            lasting = (np.abs(y) >= info.tiny) & (np.abs(x) >= info.tiny)
        if is_length and len(order) > 1:  # of a product of two ratios some digits must be left
            with np.errstate(all="ignore"):
                lasting &= np.abs(np.log(np.abs(x / y))) < -np.log(info.tiny) / 2.2
        result, expected = result[lasting], expected[lasting]
        np.testing.assert_allclose(result, expected, 16 * info.eps, flushed, err_msg=order)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_angles_beside_infinities_are_constant(compiled: bool) -> None:
    x = np.array([np.inf, -np.inf, 2.0, -2.0, np.inf, np.inf], np.float32)
    y = np.array([2.0, -2.0, np.inf, -np.inf, 0.0, -np.inf], np.float32)

    def derivatives(x: Any, y: Any) -> Any:
        first = grad(xnp.arctan2, (0, 1))
        return first(x, y), [grad(lambda *p, k=k: first(*p)[k], (0, 1))(x, y) for k in (0, 1)]

    found = (jit if compiled else lambda f: f)(vmap(derivatives))(x, y)
    for each in xtree.leaves(found):
        np.testing.assert_array_equal(each, 0.0)
    nan = np.array([np.nan, np.inf, 1.0, np.nan], np.float32)
    for each in xtree.leaves((jit if compiled else lambda f: f)(vmap(derivatives))(nan, nan[::-1])):
        assert np.isnan(each[[0, 3]]).all()
