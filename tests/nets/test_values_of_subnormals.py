"""What becomes of subnormal numbers, operation by operation: the table of `subnormals.md`.

Outside of `jit` NumPy computes with them. Compiled for a CPU, operations that compute take a
subnormal operand for zero and give zero for a subnormal result; those that move bits keep them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xjit
import xnp
import xstack
from tests.nets import derivative_rows, derivatives

TINY = np.array([1e-45, 1e-40, -1e-39], np.float32)
NORMAL = np.float32(2.0**-126)  # the least normal number

KEPT: dict[str, Callable[[Any], Any]] = {
    "negative": xnp.negative,
    "abs": xnp.abs,
    "copysign": lambda x: xnp.copysign(x, -1.0),
    "reshape": lambda x: x.reshape(3, 1),
    "concatenate": lambda x: xnp.concatenate([x, x]),
    "take": lambda x: x[np.array([2, 0])],
    "at[].set": lambda x: xnp.zeros(3).at[1:].set(x[:2]),
    "where": lambda x: xnp.where(np.array([True, False, True]), x, x[::-1]),
    "flip": xnp.flip,
    "signbit": xnp.signbit,
    "view": lambda x: x.view("int32"),
    "spacing": xnp.spacing,
    "hypot": lambda x: xnp.hypot(x, 0.0),
    "frexp": lambda x: xnp.stack([part * xnp.float32(1) for part in xnp.frexp(x)]),
}
FLUSHED: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + x,
    "multiply": lambda x: x * np.float32(0.5),
    "divide": lambda x: x / np.float32(2),
    "sqrt": lambda x: xnp.sqrt(xnp.abs(x)),
    "not_equal": lambda x: x != 0,
    "less": lambda x: x < 0,
    "maximum": lambda x: xnp.maximum(x, 0),
    "sign": xnp.sign,
    "sort": xnp.sort,
    "sum": xnp.sum,
    "cumsum": xnp.cumsum,
    "ldexp": lambda x: xnp.ldexp(x, np.int32(1)),
    "power": lambda x: xnp.abs(x) ** xnp.array([0.5, -0.5, 0.3]),
}
PAGE = Path(__file__).parents[2] / "docs/explain/subnormals.md"


def _by_numpy(function: Callable[[Any], Any]) -> Any:
    return np.asarray(function(xnp.array(TINY)))


def _compiled(function: Callable[[Any], Any]) -> Any:
    return np.asarray(xjit.jit(function)(xnp.array(TINY)))


@pytest.mark.parametrize("name", KEPT)
def test_operations_that_move_bits_keep_subnormal_numbers(name: str) -> None:
    np.testing.assert_array_equal(_by_numpy(KEPT[name]), _compiled(KEPT[name]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FLUSHED)
def test_operations_that_compute_take_subnormal_numbers_for_zero_when_compiled(name: str) -> None:
    evaluated, compiled = _by_numpy(FLUSHED[name]), _compiled(FLUSHED[name])
    assert not np.array_equal(evaluated, compiled)
    zeros = np.copysign(np.zeros(3, np.float32), TINY)
    if name != "sort":  # which finds them equal, and leaves them where they are
        np.testing.assert_array_equal(compiled, np.asarray(FLUSHED[name](xnp.array(zeros))))


def test_a_product_of_normal_numbers_that_is_subnormal_is_zero_when_compiled() -> None:
    half = np.float32(0.5)
    assert float(xnp.array(NORMAL) * half) == 2.0**-127
    assert float(xjit.jit(lambda x: x * half)(NORMAL)) == 0


def _is_near(found: Any, *expected: Any) -> Any:
    """Return where a result is near one of others; what is less than a normal number is a zero."""
    return np.any(
        [np.isclose(found, x, rtol=1e-4, atol=NORMAL, equal_nan=True) for x in expected], 0
    )


OTHERS = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 30.0, 0.3, 1e-10, 1e10])
ROWS = [text for text in derivative_rows.elementwise() if "float16" not in text]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sampled(every=25)
@pytest.mark.parametrize("text", ROWS)
def test_compiled_functions_take_a_subnormal_number_as_it_is_or_for_zero(text: str) -> None:
    names = derivatives.used(text, {"x": TINY, "y": TINY})
    if names != ["x"] and names != ["x", "y"]:
        pytest.skip("it is a function of x")
    small = np.float32([1e-45, 4e-45, 1e-42, 1e-40, 6e-39, 1.1e-38])
    columns = [np.concatenate([small, -small])]
    if len(names) == 2:
        one, other = [x.ravel() for x in np.meshgrid(columns[0], OTHERS.astype(np.float32))]
        columns = [np.append(one, other), np.append(other, one)]
    flushed = [np.where(np.abs(x) < NORMAL, np.copysign(np.float32(0), x), x) for x in columns]
    function = derivatives.function_of(xstack, text, names)
    run = xjit.jit(function)
    expected = [[np.asarray(out) for out in function(*map(xnp.array, each))]
                for each in (columns, flushed)]  # fmt: skip
    zeros = run(*map(xnp.array, flushed))
    for size in (columns[0].size, 2048):  # few, and as many as have formulas of ours
        found = run(*[xnp.array(np.resize(x, size)) for x in columns])
        for k, out in enumerate(found):
            part = np.asarray(out)[: columns[0].size]
            near = _is_near(part, expected[0][k], expected[1][k], zeros[k])
            assert near.all(), [x[~near] for x in (*columns, part)]


def test_the_page_names_every_operation_of_the_tables() -> None:
    text = PAGE.read_text()
    assert [n for n in (*KEPT, *FLUSHED) if f"`{n}`" not in text] == []
