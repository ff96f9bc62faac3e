"""How some functions are written as programs, where the plainest form runs much slower.

Counts of operations, which do not depend on the machine: what they gain stands in the notes on
speed (`docs/benchmarks/notes.md`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xjit
import xnp
import xrandom
from xad import grad
from xnp import lax

SQUARE = np.linspace(0.5, 2.0, 64, dtype=np.float32).reshape(8, 8)


def text_of(fun: Callable[..., Any], *args: Any) -> str:
    """Return the StableHLO of a function."""
    return str(xjit.jit(fun).lower(*args).as_text())


def test_argmax_reduces_elements_and_places_apart_where_there_are_many() -> None:
    pairs = text_of(lambda x: xnp.argmax(x, 1), SQUARE)
    assert pairs.count('"stablehlo.reduce"') == 1
    many = text_of(lambda x: xnp.argmax(x, 1), np.zeros((200, 200), np.float32))
    assert "-> (tensor<200xf32>, tensor<200xi32>)" not in many


def test_any_and_all_of_many_are_extremes_of_bytes() -> None:
    for name in ("any", "all"):
        text = text_of(lambda x, name=name: getattr(xnp, name)(x > 0), np.zeros(8192, np.float32))
        assert "(tensor<8192xi8>, tensor<i8>) -> tensor<i8>" in text
        assert text.count('"stablehlo.reduce"') == 1


def test_randint_hashes_with_one_key_at_a_time() -> None:
    text = text_of(lambda key: xrandom.randint(key, (1000,), 0, 10), xrandom.PRNGKey(0))
    assert "tensor<2x1000xui32>" not in text
    assert "tensor<1000xui32>" in text


def test_both_derivatives_of_a_quotient_share_one_division() -> None:
    gradients = grad(lambda x, y: xnp.sum(x / y), argnums=(0, 1))
    assert text_of(gradients, SQUARE, SQUARE).count("stablehlo.divide") == 2


def test_reflecting_pad_copies_slices() -> None:
    text = text_of(lambda x: xnp.pad(x, 3, mode="reflect"), SQUARE)
    assert "gather" not in text
    assert text.count('"stablehlo.reverse"') == 4


def test_take_along_axis_walks_the_other_dimensions_together() -> None:
    text = text_of(
        lambda x, i: xnp.take_along_axis(x, i, axis=1), SQUARE, np.zeros((8, 3), np.int32)
    )
    assert "operand_batching_dims = [0]" in text
    assert "iota" not in text


def test_searchsorted_reads_once_for_each_bit_of_the_size() -> None:
    text = text_of(lambda a, v: xnp.searchsorted(a, v), np.arange(100.0), SQUARE)
    assert text.count('"stablehlo.gather"') == 7


def test_sinc_is_a_series_without_a_sine() -> None:
    assert "stablehlo.sine" not in text_of(xnp.sinc, SQUARE)


def test_sinc_is_exact_to_a_few_ulp_far_from_zero() -> None:
    x = np.array([0.25, 1.5, -2.75, 1000.25, 4.0, 0.0], np.float32)
    exact = np.sinc(x.astype(np.float64))
    np.testing.assert_allclose(xnp.sinc(x), exact, rtol=4e-7, atol=1e-16)
    np.testing.assert_allclose(xjit.jit(xnp.sinc)(x), exact, rtol=4e-7, atol=1e-16)


def test_cumlogsumexp_loops_over_blocks_of_blocks() -> None:
    x = np.sin(np.arange(2 * 1100, dtype=np.float32)).reshape(2, 1100)
    text = text_of(lambda x: lax.cumlogsumexp(x, axis=1), x)
    assert text.count("stablehlo.while") == 3
    assert "reduce_window" not in text
    exact = np.logaddexp.accumulate(x.astype(np.float64), axis=1)
    np.testing.assert_allclose(xjit.jit(lax.cumlogsumexp, static_argnums=1)(x, 1), exact, rtol=2e-6)
    backwards = np.logaddexp.accumulate(x[:, ::-1].astype(np.float64), axis=1)[:, ::-1]
    reverse = xjit.jit(lambda x: lax.cumlogsumexp(x, axis=1, reverse=True))(x)
    np.testing.assert_allclose(reverse, backwards, rtol=2e-6)


def test_the_derivative_of_a_quotient_by_a_smaller_array_divides_what_is_summed() -> None:
    x = np.linspace(0.5, 2.0, 64, dtype=np.float32)

    def weighted(x: Any) -> Any:
        return (x / x.sum() * x).sum()

    text = text_of(grad(weighted), x)
    divisions = [line for line in text.splitlines() if "stablehlo.divide" in line]
    assert len(divisions) == 3  # the quotient, the cotangent, and the one number that is summed
    assert sum("tensor<64xf32>" in line for line in divisions) == 2
    exact = x.astype(np.float64)
    total = exact.sum()
    expected = 2 * exact / total - (exact**2).sum() / total**2
    np.testing.assert_allclose(xjit.jit(grad(weighted))(x), expected, rtol=2e-5)  # sums of 64
