"""Sorts that compiled CPU programs do by packed keys: the order is that of the NumPy rule."""

from __future__ import annotations

import numpy as np
import pytest

import xnp
from xjit import jit
from xnp import lax
from xprim import config, get_primitive

pytestmark = pytest.mark.of_the_cpu

RNG = np.random.default_rng(0)


def _values(dtype, shape):
    """Return values with many equal ones, and of floats all that is special, NaN of both signs."""
    x = RNG.integers(-9, 9, size=shape) * 0.5
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.integers(-2, 2, size=shape)
    if np.dtype(dtype).kind in "biu":
        span = np.iinfo(dtype) if dtype != "?" else np.array([0, 1])
        x = (
            RNG.choice([np.min(span), np.max(span), 0, 1, 2, 3], size=shape)
            if dtype == "?"
            else (
                RNG.choice(
                    np.array([span.min, span.max, span.max - 1, 0, 1, 2, 3], dtype), size=shape
                )
            )
        )
    x = x.astype(dtype)
    if x.dtype.kind in "fc":
        tiny = np.finfo(x.dtype).smallest_subnormal
        special = (np.nan, -np.nan, -0.0, 0.0, np.inf, -np.inf, tiny, -tiny, 2 * tiny)
        flat = x.reshape(-1)
        for i, value in enumerate(special):
            flat[i :: 2 * len(special) + 3] = value
    return x


DTYPES = ["f4", "f8", "f2", "i1", "i4", "i8", "u1", "u4", "u8", "?", "c8", "c16"]


@pytest.mark.sampled(every=10)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dimension"), [((150,), 0), ((9, 23), 1), ((23, 6), 0)])
def test_order_is_that_of_the_numpy_rule_bit_for_bit(dtype, shape, dimension):
    rule = get_primitive("sort").rule("numpy")
    x, second = _values(dtype, shape), _values("f4", shape)
    places = np.indices(shape)[dimension].astype("i4")
    cases = [((x,), 1), ((x, places), 1), ((second, x, places), 2)]

    def sorts(xs, second, places):
        cases = [((xs,), 1), ((xs, places), 1), ((second, xs, places), 2)]
        return [lax.sort(c, dimension=dimension, num_keys=n) for c, n in cases]

    with config.enable_x64(True):
        found = jit(sorts)(*map(xnp.asarray, (x, second, places)))
        for (operands, num_keys), results in zip(cases, found, strict=True):
            with np.errstate(invalid="ignore"):
                expected = rule(*operands, dimension=dimension, is_stable=True, num_keys=num_keys)
            for a, b in zip(results, expected, strict=True):
                assert np.asarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def test_no_function_compares_floats():
    x = xnp.arange(256.0)
    assert "TOTALORDER" not in jit(xnp.sort).lower(x).as_text()
    traced = jit(xnp.sort).trace(x)
    assert "TOTALORDER" in traced.lower(lowering_platforms=("cuda",)).as_text()
