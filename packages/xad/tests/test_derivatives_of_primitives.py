"""The derivative rules of every primitive of the sample tables."""

import pytest

from tests.nets.cells import IN_FULL, spread
from xad.testing import check_derivatives, check_transpose
from xnp.testing.samples import TABLE

# A test of its own for each of 6,500 samples costs more than what it checks.
SAMPLES_IN_A_TEST = 16
PARTS = [
    pytest.param(name, first, id=f"{name}-{first}")
    for name, samples in sorted(TABLE.items())
    for first in range(0, len(samples), SAMPLES_IN_A_TEST)
]


def check_all(check, name, first, every=1):
    """Check one of so many samples of a part, some of each dtype; fail with all that is wrong."""
    wrong = []
    part = TABLE[name][first : first + SAMPLES_IN_A_TEST]
    kinds = [tuple([x.dtype for x in sample.arrays()]) for sample in part]
    for i in spread(f"{name}-{first}", kinds, every):
        sample = part[i]
        try:
            check(name, sample)
        except Exception as error:
            error.add_note(f"at TABLE[{name!r}][{first + i}]: {sample.label()}")
            wrong.append(error)
    if wrong:
        raise ExceptionGroup(f"{check.__name__} of {name}", wrong)


@pytest.mark.fuzz
@pytest.mark.parametrize(("name", "first"), PARTS)
def test_derivative_rules_agree_with_differences_and_with_each_other(name, first):
    if name == "hyp2f1_derivative" and not IN_FULL:
        pytest.skip("its formula is long: `nox -s fuzz` runs it")
    check_all(check_derivatives, name, first, every=1 if IN_FULL else 3)


@pytest.mark.parametrize(("name", "first"), PARTS)
def test_transposes_of_linear_primitives_satisfy_the_inner_product_identity(name, first):
    check_all(check_transpose, name, first)


def test_each_sample_is_in_one_part():
    parts = [(name, i) for name, first in (p.values for p in PARTS)
             for i in range(first, min(first + SAMPLES_IN_A_TEST, len(TABLE[name])))]  # fmt: skip
    assert parts == [(name, i) for name in sorted(TABLE) for i in range(len(TABLE[name]))]
