"""The compiled text of every array primitive against its numpy rule, on the samples."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import numpy as np
import pytest

import xjit  # noqa: F401 - arrays read their buffers through it
from xjit.testing import check_lowering, text_of
from xnp.testing import samples
from xprim import ELEMENTWISE, Primitive, Undefined, get_primitive, undefined
from xprim.testing import Sample, Tolerance

# Samples compiled as one program: few enough that a failure is easy to look at.
MAX_SAMPLES = 40
# A text of more lines takes XLA half a second for each equation: of such an elementwise primitive
# an ordinary run joins what has one dtype, and tries few dtypes beside these. `nox -s fuzz` tries
# all, each sample in its own shape.
LONG_TEXT = 100
ALWAYS_TRIED = {"float32", "float64"}
OTHERS_TRIED = 2
IN_FULL = "FUZZ_PROGRAMS" in os.environ

ROWS = [
    pytest.param(name, rows[i : i + MAX_SAMPLES], id=f"{name}-{i}")
    for name, rows in sorted(samples.TABLE.items())
    for i in range(0, len(rows), MAX_SAMPLES)
]


def tried(primitive: Primitive, rows: Sequence[Sample]) -> Sequence[Sample]:
    """Return what a run tries of some samples."""
    is_elementwise = primitive.rules["batch"] is ELEMENTWISE
    if IN_FULL or not is_elementwise or text_of(primitive, rows[0]).count("\n") < LONG_TEXT:
        return rows
    rows_by_dtypes: dict[frozenset[str], list[Sample]] = {}
    for row in rows:
        rows_by_dtypes.setdefault(frozenset(x.dtype.name for x in row.operands), []).append(row)
    others = sorted((kind for kind in rows_by_dtypes if not kind <= ALWAYS_TRIED), key=sorted)
    random.Random(primitive.name).shuffle(others)
    for kind in others[OTHERS_TRIED:]:
        del rows_by_dtypes[kind]
    return [joined(group) for group in rows_by_dtypes.values()]


def joined(rows: Sequence[Sample]) -> Sample:
    """Return one sample of the elements of several, which differ in their values alone."""
    (tolerance,) = {row.tolerance for row in rows}
    assert not any(row.params for row in rows)
    columns = zip(*[[x.ravel() for x in np.broadcast_arrays(*row.operands)] for row in rows],
                  strict=True)  # fmt: skip
    return Sample([np.concatenate(column) for column in columns], tolerance=tolerance)


@pytest.mark.fuzz
@pytest.mark.parametrize(("name", "rows"), ROWS)
def test_compiled_text_computes_what_the_numpy_rule_does(name, rows):
    primitive = get_primitive(name)
    if isinstance(primitive.rules["stablehlo"], Undefined):
        pytest.skip(primitive.rules["stablehlo"].reason)
    check_lowering(primitive, *tried(primitive, rows))


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
