"""The compiled text of every array primitive against its numpy rule, on the samples."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import xjit  # noqa: F401 - arrays read their buffers through it
from tests.nets.cells import COMPILER_OPTIONS, IN_FULL
from xjit.testing import check_lowering, text_of
from xnp.testing import samples
from xprim import ELEMENTWISE, Primitive, Undefined, get_primitive, undefined
from xprim.testing import Sample, Tolerance

# Samples compiled as one program: few enough that a failure is easy to look at.
MAX_SAMPLES = 40
# An ordinary run tries all values of an elementwise primitive of half of the usual dtypes and of a
# sixteenth of the others, those of one dtype joined, and one of its samples in its shape. A text of
# more lines takes XLA half a second for each equation: of such a primitive the values of one of two
# dtypes are joined (`tests/nets` tries its digits in both), and the longest are left out. Of any
# other primitive it tries an eighth of the samples of the usual dtypes, and of an eighth of the
# others, which change from primitive to primitive. `nox -s fuzz` tries all, each in its own shape,
# as users compile; here LLVM does not optimise, which takes a third of the time.
LONG_TEXT = 100
LONGEST = ("hyp2f1_derivative", "regularized_incomplete_beta_derivative")
TRIED_OF_LONG_TEXTS = {"float32", "float64"}
SHAPES_TRIED = 1
STEP = 8
USUAL = {"float32", "float64", "complex64", "int32", "bool", "uint32"}

ROWS = [
    pytest.param(name, rows[i : i + MAX_SAMPLES], id=f"{name}-{i}")
    for name, rows in sorted(samples.TABLE.items())
    for i in range(0, len(rows), MAX_SAMPLES)
]


def tried(primitive: Primitive, rows: Sequence[Sample]) -> Sequence[Sample]:
    """Return what a run tries of some samples."""
    if IN_FULL:
        return rows
    if primitive.rules["batch"] is not ELEMENTWISE:
        return every_eighth(primitive.name, rows)
    groups = groups_of_equal_types(rows)
    if text_of(primitive, rows[0]).count("\n") < LONG_TEXT:
        few = random.Random(primitive.name).sample(groups[0], min(SHAPES_TRIED, len(groups[0])))
        groups = usual_and_some(primitive.name, groups)
        return [*few, *map(joined, groups[len(primitive.name) % min(2, len(groups)) :: 2])]
    real = [group for group in groups if dtypes_of(group) <= TRIED_OF_LONG_TEXTS]
    return [joined(random.Random(primitive.name).choice(real or groups))]


def every_eighth(name: str, rows: Sequence[Sample]) -> list[Sample]:
    """Return an eighth of the samples of usual dtypes, and of an eighth of the other dtypes."""
    groups: dict[Any, list[Sample]] = {}
    for row in rows:
        groups.setdefault(tuple([x.dtype.name for x in row.operands]), []).append(row)
    kept = usual_and_some(name, list(groups.values()))
    parts = [group[min(k % STEP, len(group) - 1) :: STEP] for k, group in enumerate(kept)]
    return [row for part in parts for row in part]


def usual_and_some(name: str, groups: Sequence[list[Sample]]) -> list[list[Sample]]:
    """Return the groups of usual dtypes, and an eighth of the others."""
    usual = [group for group in groups if dtypes_of(group) <= USUAL]
    others = [group for group in groups if not dtypes_of(group) <= USUAL]
    random.Random(name).shuffle(others)
    return [*usual, *others[: -(-len(others) // STEP)]]


def groups_of_equal_types(rows: Sequence[Sample]) -> list[list[Sample]]:
    """Return samples in groups that differ in their values and shapes alone."""
    found: dict[Any, list[Sample]] = {}
    for row in rows:
        kind = tuple([x.dtype for x in row.operands]), frozenset(row.params.items()), row.tolerance
        found.setdefault(kind, []).append(row)
    return list(found.values())


def dtypes_of(group: Sequence[Sample]) -> set[str]:
    return {x.dtype.name for x in group[0].operands}


def joined(rows: Sequence[Sample]) -> Sample:
    """Return one sample of the elements of several of equal types."""
    columns = zip(*[[x.ravel() for x in np.broadcast_arrays(*row.operands)] for row in rows],
                  strict=True)  # fmt: skip
    operands = [np.concatenate(column) for column in columns]
    return Sample(operands, rows[0].params, rows[0].tolerance)


@pytest.mark.fuzz
@pytest.mark.parametrize(("name", "rows"), ROWS)
def test_compiled_text_computes_what_the_numpy_rule_does(name, rows):
    primitive = get_primitive(name)
    if isinstance(primitive.rules["stablehlo"], Undefined):
        pytest.skip(primitive.rules["stablehlo"].reason)
    if name in LONGEST and not IN_FULL:
        pytest.skip("its formula is long: `nox -s fuzz` runs it")
    check_lowering(primitive, *tried(primitive, rows), compiler_options=COMPILER_OPTIONS)


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
