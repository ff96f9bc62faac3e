"""Ragged products and patches of convolutions, beside loops of NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from xnp import lax

RNG = np.random.default_rng(3)


def test_each_group_of_rows_meets_its_matrix():
    x, y = RNG.normal(size=(7, 3)).astype("f"), RNG.normal(size=(3, 3, 4)).astype("f")
    for sizes in ([2, 0, 4], [7, 0, 0], [0, 0, 0], [3, 3, 1], [5, 5, 5]):
        expected = np.zeros((7, 4), np.float32)
        ends = np.cumsum(sizes)
        for row in range(7):
            group = np.searchsorted(ends, row, side="right")
            if group < 3:
                expected[row] = x[row] @ y[group]
        got = lax.ragged_dot(x, y, np.array(sizes))
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_a_contracted_ragged_dimension_gives_a_result_for_each_group():
    x, y = RNG.normal(size=(2, 6, 3)).astype("f"), RNG.normal(size=(2, 6, 4)).astype("f")
    numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((0,), (0,))), (1,), ())
    got = lax.ragged_dot_general(x, y, np.array([1, 3, 2]), numbers)
    parts = [slice(0, 1), slice(1, 4), slice(4, 6)]
    expected = np.stack([np.einsum("bkm,bkn->bmn", x[:, p], y[:, p]) for p in parts])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_a_mapped_ragged_dimension_is_a_batch_and_a_free_one_may_be_any():
    x, y = RNG.normal(size=(2, 6, 3)).astype("f"), RNG.normal(size=(2, 3, 4)).astype("f")
    mapped = lax.RaggedDotDimensionNumbers((((2,), (1,)), ((0,), (0,))), (0,), ())
    np.testing.assert_allclose(
        lax.ragged_dot_general(x, y, np.array([1, 1]), mapped), x @ y, rtol=1e-5, atol=1e-6
    )
    free = lax.RaggedDotDimensionNumbers((((2,), (1,)), ((), ())), (1,), (0,))
    got = lax.ragged_dot_general(x, y, np.array([2, 4]), free)
    expected = np.concatenate([x[:, :2] @ y[0], x[:, 2:] @ y[1]], 1)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "numbers", [None, ("NHWC", "HWIO", "NHWC"), ("NHWC", "OHWI", "CNHW"), ("CNHW", "IOHW", "HNWC")]
)
def test_patches_and_local_kernels_are_those_of_the_oracle(numbers):
    jax = pytest.importorskip("jax")
    shape = {"N": 2, "C": 3, "H": 6, "W": 5}
    spec = numbers or ("NCHW", "OIHW", "NCHW")
    x = RNG.normal(size=[shape[c] for c in spec[0]]).astype("f")
    arguments = ((2, 3), (2, 1), [(1, 0), (1, 1)], (1, 1), (1, 1), numbers)
    got = lax.conv_general_dilated_patches(x, *arguments)
    expected = jax.lax.conv_general_dilated_patches(x, *arguments)
    np.testing.assert_array_equal(got, expected)  # products with 1 and 0
    sizes = {"O": 4, "I": 18, "H": 3, "W": 5}
    kernels = RNG.normal(size=[sizes[c] for c in spec[1]]).astype("f")
    window, strides, *rest = arguments
    got = lax.conv_general_dilated_local(x, kernels, strides, rest[0], window, *rest[1:])
    expected = jax.lax.conv_general_dilated_local(x, kernels, strides, rest[0], window, *rest[1:])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_approximate_searches_find_all():
    x = RNG.normal(size=(4, 9)).astype("f")
    values, places = lax.approx_max_k(x, 3)
    np.testing.assert_array_equal(values, -np.sort(-x)[:, :3])
    np.testing.assert_array_equal(places, np.argsort(-x)[:, :3])
    values, places = lax.approx_min_k(x, 2, reduction_dimension=0)
    np.testing.assert_array_equal(values, np.sort(x, 0)[:2])
    assert places.dtype == np.int32


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: lax.approx_max_k(np.arange(3), 1), "takes floats"),
        (lambda: lax.approx_min_k(np.ones(3), 1, recall_target=2.0), "recall_target must be above"),
        (lambda: lax.broadcast_like(np.ones(3), np.ones(2)), "does not broadcast to the shape"),
        (lambda: lax.broadcast_to_rank(np.ones((3, 2)), 1), "more than 1 dimensions"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_named(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_sizes_of_groups_that_do_not_fit_are_named():
    x, y = np.ones((2, 3)), np.ones((2, 3, 1))
    with pytest.raises(TypeError, match="expected rhs group dimension size to be"):
        lax.ragged_dot(x, np.ones((4, 3, 1)), np.array([1, 1]))
    with pytest.raises(TypeError, match="expected group_sizes to have shape"):
        lax.ragged_dot(x, y, np.ones(2))
    with pytest.raises(NotImplementedError, match="group_offset must be None"):
        lax.ragged_dot(x, y, np.array([1, 1]), group_offset=0)


def test_shapes_of_windows_are_those_that_reduce_window_gives():
    for padding in ("SAME", "VALID", ((1, 0), (2, 3))):
        for base, spread in ((None, None), ((2, 1), (1, 2))):
            options = ((2, 3), (1, 2), padding, base, spread)
            got = lax.reduce_window_shape_tuple((5, 7), *options)
            assert got == lax.reduce_window(np.ones((5, 7)), 0.0, lax.add, *options).shape


@pytest.mark.parametrize("shape", [(1000, 2), (3000,), (100,)])
def test_candidates_that_are_not_reduced_are_as_many_as_the_oracle_keeps(shape):
    jax = pytest.importorskip("jax")
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for options in ((1,), (10,), (10, 0.5), (10, 1.0), (50, 0.99, 5000), (2, 0.95, 100_000)):
        k, recall, tuned_for = (*options, *(0.95, -1)[len(options) - 1 :])
        args = (k, 0, recall, tuned_for, False)
        expected = jax.eval_shape(lambda x, args=args: jax.lax.approx_max_k(x, *args), x)
        for found in (lax.approx_max_k(x, *args), lax.approx_min_k(x, *args)):
            assert found[0].shape == found[1].shape == expected[0].shape, args
    ordered = np.asarray(lax.approx_min_k(x, 1, 0, aggregate_to_topk=False)[0])
    np.testing.assert_array_equal(ordered, np.sort(x, 0)[: len(ordered)])
