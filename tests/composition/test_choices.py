"""Choices without replacement: eager, compiled and batched, beside the permutation they begin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xrandom
from xbatch import vmap
from xjit import jit


@pytest.mark.parametrize(("count", "draws"), [(4096, 7), (5000, 1250), (5000, 1251), (100, 3)])
def test_choices_without_replacement_are_the_first_of_a_permutation(count: int, draws: int) -> None:
    key = xrandom.key(3)
    rows = np.arange(2.0 * count, dtype="f4").reshape(count, 2)
    for a in (count, np.arange(count, dtype="i4") * 3, rows):
        expected = np.asarray(xrandom.permutation(xrandom.clone(key), a))[:draws]

        def choose(k: Any, a: Any = a) -> Any:
            return xrandom.choice(k, a, (draws,), replace=False)

        for run in (choose, jit(choose)):
            np.testing.assert_array_equal(run(xrandom.clone(key)), expected)


def test_batched_choices_are_those_of_each_key() -> None:
    keys = xrandom.split(xrandom.key(5), 3)
    found = vmap(lambda k: xrandom.choice(k, 4096, (7,), replace=False))(xrandom.clone(keys))
    for one, k in zip(found, keys, strict=True):
        np.testing.assert_array_equal(one, xrandom.permutation(k, 4096)[:7])
