"""The derivative rules of every primitive of the sample tables."""

import pytest

from xad.testing import check_derivatives, check_transpose
from xnp.testing.samples import TABLE

CASES = [
    pytest.param(name, sample, id=f"{name}-{i}-{sample.label()}"[:80])
    for name in sorted(TABLE)
    for i, sample in enumerate(TABLE[name])
]


@pytest.mark.parametrize(("name", "sample"), CASES)
def test_derivative_rules_agree_with_differences_and_with_each_other(name, sample):
    check_derivatives(name, sample)


@pytest.mark.parametrize(("name", "sample"), CASES)
def test_transposes_of_linear_primitives_satisfy_the_inner_product_identity(name, sample):
    check_transpose(name, sample)
