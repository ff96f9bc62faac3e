"""Large operands that lie across each other: strips of columns give what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xnp.numpy as xnp
from xnp.numpy.crosswise import in_strips
from xprim import shaped_array

WIDE = np.arange(600 * 1100, dtype=np.float32).reshape(600, 1100)
TALL = np.arange(1100 * 600, 0, -1, dtype=np.float32).reshape(1100, 600)
STACK = np.arange(3 * 600 * 700, dtype=np.int32).reshape(3, 600, 700)

OPERANDS: dict[str, tuple[Any, Any]] = {
    "one across": (WIDE, TALL.T),
    "the other across": (TALL.T, WIDE),
    "both across": (TALL.T, TALL.T),
    "none across": (WIDE, WIDE),
    "across, and a number": (TALL.T, np.float32(2)),
    "across, and a row": (TALL.T, WIDE[:1]),
    "across, and a column": (TALL.T, WIDE[:, :1]),
    "across, and a vector": (TALL.T, WIDE[0]),
    "a stack across": (STACK, STACK.transpose(0, 2, 1).copy().transpose(0, 2, 1)),
    "reversed columns": (WIDE, TALL.T[:, ::-1]),
    "every second row": (WIDE[::2], TALL.T[::2]),
}


@pytest.mark.parametrize("function", [np.multiply, np.subtract, np.less])
@pytest.mark.parametrize("name", OPERANDS)
def test_strips_give_what_the_function_gives(name: str, function: Any) -> None:
    a, b = OPERANDS[name]
    expected = function(a, b)
    got = in_strips(function, shaped_array(expected.shape, expected.dtype))(a, b)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


CROSSWISE = ("one across", "the other across", "a stack across", "reversed columns",
             "every second row")  # fmt: skip


@pytest.mark.parametrize("name", OPERANDS)
def test_only_matrices_that_lie_across_each_other_are_cut(name: str) -> None:
    count = 0

    def counted(*args: Any, **keywords: Any) -> Any:
        nonlocal count
        count += 1
        return np.add(*args, **keywords)

    a, b = OPERANDS[name]
    in_strips(counted, shaped_array(a.shape, a.dtype))(a, b)
    assert (count > 1) is (name in CROSSWISE)


def test_small_results_are_left_to_the_function() -> None:
    assert in_strips(np.add, shaped_array((600, 400), np.dtype("float32"))) is np.add
    assert in_strips(np.add, shaped_array((9000, 500), np.dtype("float32"))) is np.add
    assert in_strips(np.add, shaped_array((1 << 20,), np.dtype("float32"))) is np.add


def test_operators_of_arrays_use_them() -> None:
    x = xnp.asarray(WIDE[:, :600])
    y = xnp.asarray(WIDE[:, 300:900])
    for _ in range(2):  # the second time by a plan
        np.testing.assert_array_equal(np.asarray(x * y.T), WIDE[:, :600] * WIDE[:, 300:900].T)
        np.testing.assert_array_equal(np.asarray(y > x.T), WIDE[:, 300:900] > WIDE[:, :600].T)
