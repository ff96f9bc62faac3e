"""Integers that a compiler could divide by 0 ahead of time: the process goes on, with NumPy's rule.

XLA of jaxlib 0.10 ends the process there, so each program runs in one of its own.
"""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import numpy as np
import xnp
from xjit import jit
from xnp import lax

x = np.arange(3, dtype=np.int32)
cases = [
    lambda x: lax.div(np.int32(7), np.int32(0)),
    lambda x: lax.rem(np.int32(7), np.int32(0)),
    lambda x: lax.div(np.uint8(7), np.uint8(0)),
    lambda x: lax.rem(np.int8(-7), np.int8(0)),
    lambda x: lax.div(np.int32(7), x * 0),
    lambda x: lax.rem(lax.full((3,), 7, np.int32), x - x),
    lambda x: lax.div(np.arange(3, dtype=np.int16), np.zeros(3, np.int16)),
    lambda x: xnp.floor_divide(7, x * 0),
    lambda x: xnp.remainder(np.int32(7), np.int32(0)),
    lambda x: lax.fori_loop(0, 3, lambda i, s: s + lax.div(np.int32(5), i), np.int32(0)),
    lambda x: lax.div(x, np.int32(2)),
    lambda x: lax.rem(x, np.int32(2)),
    lambda x: lax.div(np.int32(-2**31), np.int32(-1)),
]
for number, f in enumerate(cases):
    found, expected = np.asarray(jit(f)(x)), np.asarray(f(xnp.asarray(x)))
    assert found.dtype == expected.dtype and (found == expected).all(), (number, found, expected)
print("went on")
"""


def test_divisions_by_zero_of_what_is_known_do_not_end_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "went on\n", (done.returncode, done.stderr[-2000:])
