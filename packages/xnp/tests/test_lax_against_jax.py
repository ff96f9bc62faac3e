"""What functions of `lax` take and give, row by row beside the oracle: values, dtypes, weak types.

A row is a program of `lax` and its operands. Errors are rows, too: the oracle's class is caught.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from xnp import lax as ours

jax = pytest.importorskip("jax")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3)).astype(np.float32)
Y = RNG.normal(size=(3, 5)).astype(np.float32)
NUMBERS = (((1,), (0,)), ((), ()))
KINDS = ("int8", "uint8", "int32", "float16", ml_dtypes.bfloat16, "float32", "complex64")


def one_of(lax, window, **fields):
    return lax.ScatterDimensionNumbers(
        update_window_dims=window, inserted_window_dims=fields.pop("inserted", (0,)),
        scatter_dims_to_operand_dims=(0,), **fields,
    )  # fmt: skip


def ragged(lax, lhs, rhs, sizes, contracted, batch, ragged_dims, groups):
    numbers = lax.RaggedDotDimensionNumbers((contracted, batch), ragged_dims, groups)
    return lax.ragged_dot_general(lhs, rhs, np.array(sizes, np.int32), numbers)


NO_BATCH = ((), ())
IMAGE = np.arange(9).reshape(1, 1, 3, 3) % 3 == 0
COMPLEX = np.array([1 + 2j, 1 + 1j, 2 - 5j, 9j, 2 + 1j, -1], np.complex64)
UPDATES = np.array([1 + 5j, 0, 3 - 2j], np.complex64)
PROGRAMS = {
    "the greatest complex number so far": lambda lax: lax.cummax(COMPLEX),
    "logarithms of complex sums so far": lambda lax: lax.cumlogsumexp(COMPLEX[:, None] * 3),
    "and from the end": lambda lax: lax.cumlogsumexp(COMPLEX, reverse=True),
    "halves go away from zero": lambda lax: lax.round(
        np.float32([0.5, -0.5, 0.49999997, 2.5, -0.0, 8388607.5, 8388609, -4194303.5, np.inf]),
        lax.RoundingMethod.AWAY_FROM_ZERO),
    "the least, from the end": lambda lax: lax.cummin(COMPLEX, reverse=True),
    "complex updates that are greater": lambda lax: lax.scatter_max(
        COMPLEX, np.array([[0], [2], [0]]), UPDATES, one_of(lax, ())),
    "complex updates that are less": lambda lax: lax.scatter_min(
        COMPLEX, np.array([[0], [2], [9]]), UPDATES, one_of(lax, ())),
    **{f"triangular systems of {kind}": lambda lax, kind=kind: lax.linalg.triangular_solve(
        np.tril(np.ones((2, 3, 3)) + np.eye(3)).astype(kind), np.ones((2, 3, 2), kind),
        left_side=True, lower=True) for kind in (ml_dtypes.bfloat16, "float16", "float32")},
    "integers wrap around": lambda lax: lax.convert_element_type(2**32 + 3, "int32"),
    "negative ones, too": lambda lax: lax.convert_element_type(-1, "uint8"),
    "booleans are convolved": lambda lax: lax.conv(IMAGE, IMAGE[..., :2, :2], (1, 1), "SAME"),
    "patches of booleans": lambda lax: lax.conv_general_dilated_patches(
        IMAGE, (2, 2), (1, 1), "VALID"),
    "sums of weak numbers are weak": lambda lax: lax.reduce(
        lax.broadcast(2, (3,)), 1, lax.add, (0,)),
    "and strong where one is strong": lambda lax: lax.reduce(
        lax.broadcast(2, (3,)), np.int32(1), lax.add, (0,)),
    "no window is read of nothing": lambda lax: lax.gather(
        np.zeros(0, np.float32), np.zeros((0, 1), np.int32),
        lax.GatherDimensionNumbers((), (0,), (0,)), (1,)),
    "a function is applied for each window": lambda lax: lax.scatter_apply(
        X[:, 0], np.array([[0], [2], [0]]), lax.sin, one_of(lax, (1,), inserted=()),
        update_shape=(3, 2)),
    "and once where indices are unique": lambda lax: lax.scatter_apply(
        X[:, 0], np.array([[0], [2]]), lax.sin, one_of(lax, ()), update_shape=(2,)),
    "windows outside are left out": lambda lax: lax.scatter_apply(
        X[:, 0], np.array([[3], [3], [9]]), lax.sin, one_of(lax, ()), update_shape=(3,)),
    "groups of each mapped index": lambda lax: ragged(
        lax, X.reshape(2, 2, 3), Y.reshape(1, 3, 5).repeat(2, 0), [[1, 2], [3, 0]],
        ((2,), (1,)), ((0,), (0,)), (2,), ()),
    "groups of each free index before": lambda lax: ragged(
        lax, X.reshape(2, 2, 3), np.stack([Y, 2 * Y]), [[1, 1], [0, 2]],
        ((2,), (1,)), NO_BATCH, (1,), (0,)),
    "paddings are integers of Python": lambda lax: [
        type(n).__name__ for pair in lax.padtype_to_pads(
            np.array([8, 8]), np.array([3, 3]), np.array([2, 2]), "SAME") for n in pair],
    "squares far from zero": lambda lax: lax.square(np.complex64(
        [complex(np.inf, -1e30), complex(-1e30, -1e30), complex(3, -4), complex(np.inf, 2)])),
    "e^z - 1 on the real axis": lambda lax: lax.expm1(np.complex64([np.inf, 1e30, -0.5])),
}  # fmt: skip


def seen(result):
    if isinstance(result, list):
        return result
    return np.asarray(result), result.weak_type


def assert_same(program):
    got, expected = seen(program(ours)), seen(program(jax.lax))
    if isinstance(expected, list):
        assert got == expected
        return
    assert (got[0].dtype, got[1]) == (expected[0].dtype, expected[1])
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_the_oracle_gives(name):
    assert_same(PROGRAMS[name])


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("rhs", KINDS)
@pytest.mark.parametrize("lhs", KINDS)
def test_products_of_two_dtypes_are_those_of_the_oracle(lhs, rhs):
    x, y = np.abs(8 * X).astype(lhs), np.abs(8 * Y).astype(rhs)
    got, expected = ours.dot(x, y), jax.lax.dot(x, y)
    assert got.dtype == expected.dtype
    # sums of float16 and bfloat16 are rounded once here
    digits = {"float16": 2e-3, "bfloat16": 2e-2}.get(expected.dtype.name, 1e-5)
    np.testing.assert_allclose(np.asarray(got).astype("c16"),
                               np.asarray(expected).astype("c16"), rtol=digits)  # fmt: skip


ERRORS = {
    "no operand": lambda lax: lax.concatenate([], 0),
    "no case": lambda lax: lax.select_n(True),
    "a vector to pad with": lambda lax: lax.pad(X, X[0], [(0, 0, 0), (0, 0, 0)]),
    "too few paddings": lambda lax: lax.pad(X, np.float32(0), [(0, 0, 0)]),
    "an array as a size": lambda lax: lax.reshape(np.ones(3), (np.array([3, 1]),)),
    "batches of different rank": lambda lax: lax.batch_matmul(X, X[None]),
    "a vector to begin with": lambda lax: lax.reduce(X, X[0], lax.add, (0,)),
    "the greatest complex number": lambda lax: lax.top_k(np.ones(3, np.complex64), 1),
    "padding without pairs": lambda lax: lax.conv_general_dilated_patches(
        IMAGE, (2, 2), (1, 1), (3, 3)),
    "windows in no order": lambda lax: lax.scatter(
        np.ones((2, 2)), np.zeros((3, 1), np.int32), np.ones(3),
        one_of(lax, (), inserted=(1, 0))),
    "a dimension that is not there": lambda lax: lax.scatter(
        np.ones((2, 2)), np.zeros((3, 1), np.int32), np.ones((3, 2)),
        one_of(lax, (1,), inserted=(5,))),
    "two ragged dimensions": lambda lax: ragged(
        lax, X, np.stack([Y, Y]), [2, 2], ((1,), (1,)), NO_BATCH, (0, 1), (0,)),
    "groups of other sizes than dimensions": lambda lax: ragged(
        lax, X, np.stack([Y, Y]), [[2, 2]], ((1,), (1,)), NO_BATCH, (0,), (0,)),
    "a group dimension that is contracted": lambda lax: ragged(
        lax, X, np.ones((3, 3, 5), np.float32), [2, 2, 0], ((1,), (1,)), NO_BATCH, (0,), (1,)),
    "more groups than matrices": lambda lax: ragged(
        lax, X, np.stack([Y, Y]), [2, 2, 0], ((1,), (1,)), NO_BATCH, (0,), (0,)),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_of_the_class_that_the_oracle_raises(name):
    with pytest.raises((TypeError, ValueError)) as expected:
        ERRORS[name](jax.lax)
    with pytest.raises(type(expected.value)):
        ERRORS[name](ours)
