"""Arrays of extended dtypes, compiled and mapped over: what is done eagerly is done there, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xnp.numpy as xnp
from packages.xnp.tests.test_extended_dtypes import (
    DTYPES,
    NAMES,
    OPERATIONS,
    WRITTEN,
    _assert_elements,
    _elements,
)
from xad import checkpoint, grad
from xbatch import vmap
from xjit import jit
from xnp import lax

CASES = {
    **{name: (lambda x, f=f: f(xnp, x), lambda n, f=f: f(np, n)) for name, f in OPERATIONS.items()},
    **WRITTEN,
}


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_compiled_operations_move_elements_as_eager_ones_do(name: str, dtype: Any) -> None:
    operation, of_names = CASES[name]
    _assert_elements(jit(operation)(_elements(dtype)), of_names(NAMES), dtype)


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("name", CASES)
def test_mapped_operations_move_the_elements_of_each_example(name: str) -> None:
    operation, of_names = CASES[name]
    dtype, flipped = DTYPES[1], NAMES[::-1]
    x = _elements(dtype)
    found = vmap(operation, 1)(xnp.stack([x, x[::-1]], 1))
    _assert_elements(found, np.stack([of_names(NAMES), of_names(flipped)]), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_beside_numbers_that_are_differentiated(dtype: Any) -> None:
    x = _elements(dtype)

    @checkpoint
    def weight(row: Any, s: Any) -> Any:
        return s * xnp.where(row == x[0], 2.0, 3.0).sum()

    def loss(s: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            total, previous = carry
            same = lax.cond((previous == row).all(), lambda: 10.0, lambda: 100.0)
            return (total + weight(row, s) * same, row), previous

        (total, _), seen = lax.scan(step, (0.0, x[0]), x)
        return total + 0 * (seen == x).sum()

    assert float(loss(1.0)) == 6 * 10 + 9 * 100
    for slope in (grad(loss), jit(grad(loss))):
        assert float(slope(2.0)) == 6 * 10 + 9 * 100


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["evaluated", "compiled"])
def test_branches_of_a_batch_are_given_elements_beside_numbers(wrap: Any, dtype: Any) -> None:
    x, numbers = _elements(dtype), xnp.arange(2.0 * len(NAMES)).reshape(2, -1)

    def example(index: Any, elements: Any, row: Any) -> Any:
        branches = [lambda e, r: (e, r + 1), lambda e, r: (e[::-1], r[::-1])]
        return lax.switch(index, branches, elements, row)

    found, rows = wrap(vmap(example, (0, None, 0)))(xnp.array([1, 0]), x, numbers)
    _assert_elements(found, np.stack([NAMES[::-1], NAMES]), dtype)
    assert rows.tolist() == [numbers[0, ::-1].tolist(), (numbers[1] + 1).tolist()]
