"""The samples of this package's primitives under the checks of their rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from xprim import state
from xprim.primitive import get_primitive
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


@pytest.mark.parametrize("name", TABLE)
def test_compiled_results_are_those_of_the_numpy_rule(name: str) -> None:
    xjit = pytest.importorskip("xjit")
    primitive = get_primitive(name)
    for i, sample in enumerate(TABLE[name]):
        if i % 3:  # each compilation takes tens of milliseconds; the table is run in full elsewhere
            continue
        params = dict(sample.params)
        compiled = xjit.jit(lambda *xs, params=params: primitive.bind(*xs, **params))
        expected = state.run_quietly(primitive.rule("numpy"), *sample.operands, **params)
        for a, b in zip(compiled(*sample.arrays()), expected, strict=True):
            np.testing.assert_allclose(
                np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64),
                rtol=sample.tolerance.rtol, atol=sample.tolerance.atol,
            )  # fmt: skip


def test_every_primitive_of_this_package_has_samples_or_a_test_of_its_own() -> None:
    import xprim
    import xrandom.gamma_family

    folder = str(Path(xrandom.gamma_family.__file__).parent)
    own = {p.name for p in xprim.primitives() if p.defined_at.startswith(folder)}
    assert own == {*TABLE, xrandom.gamma_family.random_gamma_p.name}
