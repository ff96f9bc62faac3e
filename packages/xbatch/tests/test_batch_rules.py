"""Every primitive of the sample tables, on batches against a loop; and that the check can fail."""

import numpy as np
import pytest

from tests.nets.cells import IN_FULL, spread
from xbatch.testing import check_batch
from xnp.testing.samples import TABLE
from xprim import ELEMENTWISE, Primitive, Undefined, get_primitive, undefined
from xprim.testing import Sample


def tried(name):
    """Return the samples that this run tries: `nox -s fuzz` all, another one some of each dtype.

    Elementwise primitives share one rule, which looks at shapes alone: two samples of each.
    """
    rows = TABLE[name]
    if IN_FULL:
        return rows
    if get_primitive(name).rules["batch"] is ELEMENTWISE:
        return [rows[k] for k in spread(name, [None] * len(rows), (len(rows) + 1) // 2)]
    kinds = [tuple([np.asarray(x).dtype for x in row.operands]) for row in rows]
    return [rows[k] for k in spread(name, kinds, 3)]


LONG = ("hyp1f1_derivative", "hyp2f1_derivative")  # elementwise as 60 others, 30 s of compilation


@pytest.mark.fuzz
@pytest.mark.parametrize("name", sorted(TABLE))
def test_batching_equals_a_loop_over_the_examples(name):
    if isinstance(get_primitive(name).rules["batch"], Undefined):
        pytest.skip("the primitive has no batch rule, by decision of its owner")
    if name in LONG and not IN_FULL:
        pytest.skip("its formula is long: `nox -s fuzz` runs it")
    for sample in tried(name):
        check_batch(name, sample)


def _scale_p(name, batch):
    return Primitive(
        name,
        shape=lambda x, y: (x if x.ndim >= y.ndim else y,),
        numpy=lambda x, y: (x * y,),
        stablehlo=undefined("a test"),
        jvp=undefined("a test"),
        transpose=undefined("a test"),
        batch=batch,
    )


SAMPLE = Sample([np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)])


def test_check_batch_finds_a_rule_that_ignores_the_second_dimension():
    wrong = _scale_p("test_wrong_dims", lambda axis, xs, dims: (wrong.bind(*xs), (dims[0],)))
    with pytest.raises((AssertionError, ValueError)):
        check_batch(wrong, SAMPLE)


def test_check_batch_finds_a_rule_that_reports_the_wrong_dimension():
    def rule(axis, xs, dims):
        fronts = [axis.to_front(x, d) for x, d in zip(xs, dims, strict=True)]
        return wrong.bind(*fronts), (1,)

    wrong = _scale_p("test_wrong_place", rule)
    with pytest.raises(AssertionError):
        check_batch(wrong, SAMPLE)


def test_check_batch_accepts_a_right_rule():
    def rule(axis, xs, dims):
        fronts = [axis.to_front(x, d) for x, d in zip(xs, dims, strict=True)]
        return right.bind(*fronts), (0,)

    right = _scale_p("test_right", rule)
    check_batch(right, SAMPLE)
