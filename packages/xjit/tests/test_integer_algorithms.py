"""Algorithms on integers are loops, or few operations: their programs are small for every dtype."""

import re

import numpy as np
import pytest

import xnp
from packages.xjit.tests.new_process import run_in_new_process
from xjit import jit
from xnp import lax
from xprim import config

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
BINARY = {
    "gcd": xnp.gcd, "lcm": xnp.lcm, "power": xnp.power, "floor_divide": xnp.floor_divide,
    "remainder": xnp.remainder, "fmod": xnp.fmod, "divmod": xnp.divmod,
    "left_shift": xnp.left_shift, "right_shift": xnp.right_shift,
}  # fmt: skip
UNARY = {
    "bitwise_count": xnp.bitwise_count, "lax.population_count": lax.population_count,
    "lax.clz": lax.clz, "sqrt": xnp.sqrt, "square": xnp.square, "to the 31st": lambda x: x**31,
    "to the 7th": lambda x: lax.integer_pow(x, 7), "packbits": xnp.packbits,
}  # fmt: skip
MOST_OPERATIONS = 400  # six for each bit of an exponent: 0.2 s of XLA's time


@pytest.fixture(autouse=True)
def _wide():
    with config.enable_x64(True):
        yield


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*BINARY, *UNARY])
def test_the_program_of_an_integer_function_is_small(name, dtype):
    x = xnp.arange(1, 9, dtype=dtype)
    arguments = (x, x) if name in BINARY else (x,)
    text = jit((BINARY | UNARY)[name]).lower(*arguments).as_text()
    assert len(re.findall(r"^%\S+ = ", text, re.MULTILINE)) <= MOST_OPERATIONS


def test_gcd_and_lcm_compile_and_agree_with_numpy_for_all_integer_dtypes():
    run_in_new_process(f"""
        import numpy as np
        import xjit, xnp
        from xprim import config

        with config.enable_x64(True):
            for dtype in {DTYPES}:
                x, y = np.arange(30).astype(dtype), np.arange(60, 90).astype(dtype)[::-1] % 10
                for name in ("gcd", "lcm"):
                    if dtype == "int8" and name == "lcm":
                        x = x % 12
                    found = np.asarray(xjit.jit(getattr(xnp, name))(x, y))
                    assert found.dtype == dtype
                    assert np.array_equal(found, getattr(np, name)(x, y)), (name, dtype)
    """)


@pytest.mark.parametrize("wrap", [jit, lambda f: f], ids=["compiled", "eager"])
def test_gcd_ends_at_the_ends_of_every_dtype(wrap):
    for dtype in DTYPES:
        info = np.iinfo(dtype)
        ends = np.array([info.min, info.min + 1, 0, 1, 6, info.max - 1, info.max], dtype)
        x, y = np.meshgrid(ends, ends)
        found = np.asarray(wrap(xnp.gcd)(x, y))
        assert np.array_equal(found, np.gcd(x, y)), dtype
