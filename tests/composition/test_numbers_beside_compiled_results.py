"""Functions of a compiled result and a Python number, called as often as it takes to be known."""

import numpy as np
import pytest

import xnp
from xjit import jit

CALLS = {
    "isclose": lambda x: xnp.isclose(x, x, 1e-5),
    "isclose to zeros": lambda x: xnp.isclose(x, xnp.zeros_like(x), 1e-5, 1e-8),
    "allclose": lambda x: xnp.allclose(x, x, 1e-5),
    "where": lambda x: xnp.where(x > 1, x, 0.5),
    "clip": lambda x: xnp.clip(x, 0, 1.5),
    "nan_to_num": lambda x: xnp.nan_to_num(x, nan=2.0),
    "interp": lambda x: xnp.interp(x, xnp.arange(3.0), xnp.arange(3.0), 0.0, 1.0),
    "trapezoid": lambda x: xnp.trapezoid(x, dx=0.5),
    "heaviside": lambda x: xnp.heaviside(x, 0.5),
    "ldexp": lambda x: xnp.ldexp(x, 2),
    "float_power": lambda x: xnp.float_power(x, 2.0),
    "full_like": lambda x: xnp.full_like(x, 3),
    "searchsorted": lambda x: xnp.searchsorted(x, 0.5),
    "quantile": lambda x: xnp.quantile(x, 0.5),
}


@pytest.mark.parametrize("size", [3, 5000, 200_000])
@pytest.mark.parametrize("name", CALLS)
def test_a_number_is_an_operand_beside_a_compiled_result(name, size):
    x = np.linspace(0, 2, size, dtype=np.float32)
    expected = np.asarray(CALLS[name](xnp.array(x)))
    for _ in range(3):
        compiled = jit(lambda a: a * 1.0)(x)
        # XLA may round the last bit of float32 another way: 1.2e-7 relative
        np.testing.assert_allclose(CALLS[name](compiled), expected, rtol=1e-6)
