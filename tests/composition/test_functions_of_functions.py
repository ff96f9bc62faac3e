"""vectorize, apply_along_axis and fromfunction: what they map, and how often they call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xnp
from xnp.numpy import functional
from xprim import make_jaxpr
from xprim.errors import ConcretizationTypeError


@pytest.fixture(params=["mapped", "one by one"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the package that maps, and as if it were not installed."""
    if request.param == "one by one":
        monkeypatch.setattr(functional, "find", lambda name: None)
    return str(request.param)


def test_leading_dimensions_broadcast_and_results_may_be_trees(way: str) -> None:
    a, b = np.arange(24.0).reshape(4, 1, 2, 3), np.arange(15.0).reshape(5, 3)
    product = xnp.vectorize(lambda m, v: m @ v, signature="(n,m),(m)->(n)")
    np.testing.assert_allclose(product(a, b), np.einsum("aijk,bk->abij", a, b)[:, :, 0])
    both = xnp.vectorize(lambda x, y: (x + y, x * y))
    total, times = both(np.arange(3.0)[:, None], np.arange(2.0))
    np.testing.assert_array_equal(total, np.add.outer(np.arange(3.0), np.arange(2.0)))
    np.testing.assert_array_equal(times, np.multiply.outer(np.arange(3.0), np.arange(2.0)))
    assert xnp.vectorize(lambda x: x[None], signature="()->(k)")(np.zeros((0, 2))).shape == (
        0,
        2,
        1,
    )


def test_a_line_becomes_what_the_function_makes_of_it(way: str) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    for axis in (0, 1, -1):
        for function in (np.diag, np.cumsum, np.sum):
            ours = xnp.apply_along_axis(getattr(xnp, function.__name__), axis, x)
            np.testing.assert_array_equal(ours, np.apply_along_axis(function, axis, x))


def test_fromfunction_maps_over_each_index(way: str) -> None:
    table = xnp.fromfunction(lambda i, j: 10 * i + j, (3, 2), dtype=int)
    np.testing.assert_array_equal(
        table, np.fromfunction(lambda i, j: 10 * i + j, (3, 2), dtype=int)
    )
    stacked = xnp.fromfunction(lambda i: (i + 1) * xnp.arange(3), (2,))
    np.testing.assert_array_equal(stacked, [[0, 1, 2], [0, 2, 4]])
    parts = xnp.fromfunction(lambda i, *, k: {"i": i, "k": i + k}, (2,), k=5)
    assert parts["k"].tolist() == [5.0, 6.0]


def test_a_function_is_called_once_for_all_elements_and_for_each_if_it_asks_for_values() -> None:
    calls = []

    def larger(a: Any, b: Any, by_value: bool) -> Any:
        calls.append(a)
        return max(a, b) if by_value else xnp.maximum(a, b)

    operands = np.arange(5.0), 2.5
    mapped = xnp.vectorize(larger, excluded={2})
    np.testing.assert_array_equal(mapped(*operands, False), np.maximum(*operands))
    assert len(calls) == 1
    np.testing.assert_array_equal(mapped(*operands, True), np.maximum(*operands))
    assert len(calls) == 1 + 1 + 5
    assert len(make_jaxpr(lambda x: mapped(x, 1.0, False))(operands[0]).jaxpr.eqns) == 1
    with pytest.raises(ConcretizationTypeError):
        make_jaxpr(lambda x: mapped(x, 1.0, True))(operands[0])
