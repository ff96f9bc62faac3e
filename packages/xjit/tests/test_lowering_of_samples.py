"""Every primitive's compiled text against its numpy rule, on the samples of the array primitives."""

from __future__ import annotations

import pytest

import xjit  # noqa: F401 - arrays read their buffers through it
from xjit.testing import check_lowering
from xnp.testing import samples
from xprim import Undefined, get_primitive

ROWS = [
    pytest.param(name, sample, id=f"{name}-{sample.label()}")
    for name, rows in sorted(samples.TABLE.items())
    for sample in rows
]


@pytest.mark.parametrize(("name", "sample"), ROWS)
def test_compiled_text_computes_what_the_numpy_rule_does(name, sample):
    primitive = get_primitive(name)
    if isinstance(primitive.rules["stablehlo"], Undefined):
        pytest.skip(primitive.rules["stablehlo"].reason)
    check_lowering(primitive, sample)
