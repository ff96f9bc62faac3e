"""`hypot` and `abs` of complex numbers to third order, from the least to the greatest numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xnp
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
}  # fmt: skip


def exact(order: str, x: Any, y: Any) -> float:
    """Return a derivative of the length, by hand."""
    with mp.workdps(60):
        x, y = mp.mpf(float(x)), mp.mpf(float(y))
        if order.count("y") > order.count("x"):
            return exact(order.translate(str.maketrans("xy", "yx")), y, x)
        z = mp.sqrt(x * x + y * y)
        return float({
            "": z, "x": x / z, "xx": y * y / z**3, "xy": -x * y / z**3,
            "xxx": -3 * x * y * y / z**5, "xxy": y * (2 * x * x - y * y) / z**5,
        }["".join(sorted(order))])  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_exact_at_all_sizes(name: str, dtype: Any, compiled: bool) -> None:
    info = np.finfo(dtype)
    x, y = [np.array([factor * size for size in SIZES[dtype]], dtype) for factor in (1.3, -0.7)]

    def derivatives(x: Any, y: Any) -> list[Any]:
        found = []
        for order in ORDERS:
            f = FUNCTIONS[name]
            for by in order:
                f = grad(f, "xy".index(by))
            found.append(f(x, y))
        return found

    with config.enable_x64(True):
        results = (jit if compiled else lambda f: f)(vmap(derivatives))(x, y)
    for order, result in zip(ORDERS, results, strict=True):
        with np.errstate(over="ignore"):
            expected = np.array([exact(order, *p) for p in zip(x, y, strict=True)]).astype(dtype)
        # 16 roundings at most, one of them in units of the least number; compiled programs flush
        # a derivative, which is no length, to zero
        flushed = info.tiny if compiled and len(order) > 1 else info.smallest_subnormal
        np.testing.assert_allclose(result, expected, 16 * info.eps, flushed, err_msg=order)
