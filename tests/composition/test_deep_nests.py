"""Functions that are compiled within each other, 80 deep: Python's own limit of frames is 1000."""

import numpy as np
import pytest

from packages.xjit.tests.new_process import run_in_new_process

PROGRAM = """
import xstack
from xstack import numpy as xnp

def nest(depth):
    f = xnp.sin
    for _ in range(depth):
        f = xstack.jit(lambda x, g=f: g(x) * 1.0)
    return f

print(%s)
"""
CALLS = {
    "nest(80)(1.0)": np.sin(1),
    "xstack.grad(nest(80))(1.0)": np.cos(1),
    "xstack.jit(xstack.grad(nest(80)))(1.0)": np.cos(1),
    "xstack.grad(xstack.grad(nest(80)))(1.0)": -np.sin(1),
    "xstack.jvp(nest(80), (1.0,), (2.0,))[1]": 2 * np.cos(1),
    "xstack.vmap(nest(80))(xnp.ones(2))[0]": np.sin(1),
    "xstack.vmap(xstack.grad(nest(80)))(xnp.ones(2))[0]": np.cos(1),
    "xstack.hessian(nest(80))(1.0)": -np.sin(1),
}


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize("call", CALLS)
def test_compiled_functions_nest_80_deep(call):
    # In a process of its own: programs that are kept, and the frames of a test, make it another.
    found = float(run_in_new_process(PROGRAM % call))
    assert abs(found - CALLS[call]) < 1e-6  # float32 rounds at 6e-8; factors of one do not
