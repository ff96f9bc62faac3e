"""The samples of this package's primitives under the checks of their rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from xprim.testing import Sample, check_shape
from xrandom.testing import TABLE

ALL = [
    pytest.param(name, s, id=f"{name}-{i}")
    for name, samples in TABLE.items()
    for i, s in enumerate(samples)
]


@pytest.mark.parametrize(("name", "sample"), ALL)
def test_results_have_the_shape_that_the_shape_rule_says(name: str, sample: Sample) -> None:
    check_shape(name, sample)


def test_every_primitive_of_this_package_has_samples_or_a_test_of_its_own() -> None:
    import xprim
    import xrandom.continuous

    folder = str(Path(xrandom.continuous.__file__).parent)
    own = {p.name for p in xprim.primitives() if p.defined_at.startswith(folder)}
    assert own == {*TABLE, xrandom.continuous.random_gamma_p.name}
