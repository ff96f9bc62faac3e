"""A compiled while without `jit` runs in rounds, between which it can be interrupted."""

from __future__ import annotations

import numpy as np
import pytest

import xnp
from xjit import statistics
from xnp import lax
from xnp.primitives import while_loop


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("first", "stride"),
    [(0, 1), (7, -1), (-5, 3), (100, -64), (0, 65), (np.uint32(2**32 - 50), 1), (2**31 - 900, 1),
     (np.uint32(30), 2**32 - 2), (0, 0)],
)  # fmt: skip
@pytest.mark.parametrize("steps", [999, 1000, 1001, 4321])
def test_a_long_while_takes_every_step_over_several_rounds(monkeypatch, first, stride, steps):
    monkeypatch.setattr(while_loop, "_WORK_OF_A_ROUND", 4000)  # 1000 steps and fewer
    first = xnp.asarray(first)
    by = xnp.asarray(stride, first.dtype) if stride == 0 else stride

    def run(first):
        return lax.while_loop(
            lambda c: c[1] * 2 < 2 * steps, lambda c: (c[0] + by, c[1] * 1 + 1), (first, 0)
        )

    before = statistics.compiled
    for _ in range(2):
        last, count = run(first)
        with np.errstate(over="ignore"):
            expected = np.asarray(first) + np.asarray(steps * stride).astype(first.dtype)
        assert (int(count), last.tolist()) == (steps, expected.tolist())
    assert statistics.compiled <= before + 1  # equal programs were found
