"""The compiled text of every array primitive against its numpy rule, on the samples."""

from __future__ import annotations

import numpy as np
import pytest

import xjit  # noqa: F401 - arrays read their buffers through it
from xjit.testing import check_lowering
from xnp.testing import samples
from xprim import Primitive, Undefined, get_primitive, undefined
from xprim.testing import Sample, Tolerance

# Samples compiled as one program: few enough that a failure is easy to look at.
MAX_SAMPLES = 40

ROWS = [
    pytest.param(name, rows[i : i + MAX_SAMPLES], id=f"{name}-{i}")
    for name, rows in sorted(samples.TABLE.items())
    for i in range(0, len(rows), MAX_SAMPLES)
]


@pytest.mark.parametrize(("name", "rows"), ROWS)
def test_compiled_text_computes_what_the_numpy_rule_does(name, rows):
    primitive = get_primitive(name)
    if isinstance(primitive.rules["stablehlo"], Undefined):
        pytest.skip(primitive.rules["stablehlo"].reason)
    check_lowering(primitive, *rows)


def test_a_wrong_lowering_is_found():
    wrong = Primitive(
        "wrongly_lowered_negation",
        shape=lambda x: (x,),
        numpy=lambda x: (np.negative(x),),
        stablehlo=lambda b, operands, avals_in, avals_out: operands,
        jvp=undefined("it is for this test"),
        transpose=undefined("it is for this test"),
        batch=undefined("it is for this test"),
    )
    check_lowering(wrong, Sample([np.array([np.nan], np.float32)]))
    with pytest.raises(AssertionError, match=r"(?s)1 of 1 elements differ .exact.*0\.0"):
        check_lowering(wrong, Sample([np.array([0.0], np.float32)]))
    with pytest.raises(AssertionError, match="wrongly_lowered_negation, result 0"):
        check_lowering(wrong, Sample([np.array([1.0], np.float32)], tolerance=Tolerance(0.1)))
