"""The compiler is imported when something is worth it, and does then what was asked for."""

import subprocess
import sys

import pytest

BEGIN = "import sys, xstack.numpy as xnp; from xnp import lax\n"
LOADING = {
    "a long loop": "y = lax.fori_loop(0, 5000, lambda i, x: x + 1, 0); expected = 5000",
    "a long loop without a known end": (
        "y = lax.while_loop(lambda x: x < 5000, lambda x: x + 1, 0); expected = 5000"
    ),
    "a device": "y = xnp.full((), 3, device='cpu'); assert y.committed; expected = 3",
    "a large operation": "y = xnp.exp(xnp.zeros(1 << 22)).sum(); expected = 1 << 22",
    "the platform": "y = lax.platform_dependent(1, cpu=lambda x: x + 1); expected = 2",
    "memory of another library": (
        "import numpy as np; y = xnp.from_dlpack(np.ones(3)).sum(); expected = 3"
    ),
}
SPARING = {
    "a short loop": "y = lax.fori_loop(0, 10, lambda i, x: x + 1, 0); expected = 10",
    "a small operation": "y = xnp.sin(xnp.zeros(3)).sum(); expected = 0",
}


def run(program):
    check = "\nprint('xjit' in sys.modules); assert int(y) == expected, y"
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program + check],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("what", LOADING)
def test_the_compiler_is_imported_for(what):
    assert run(LOADING[what]) == "True"


@pytest.mark.parametrize("what", SPARING)
def test_the_compiler_is_not_imported_for(what):
    assert run(SPARING[what]) == "False"
