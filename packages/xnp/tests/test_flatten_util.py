"""Trees as vectors."""

from __future__ import annotations

import numpy as np
import pytest

import xnp
import xtree
from xnp.flatten_util import ravel_pytree
from xprim import make_jaxpr

TREE = {"a": np.arange(3, dtype=np.int32), "b": [np.float32(2.5), np.ones((2, 1), np.float16)]}


def test_a_tree_goes_through_one_vector_and_back():
    flat, unravel = ravel_pytree(TREE)
    assert flat.dtype == np.float32
    np.testing.assert_array_equal(flat, [0, 1, 2, 2.5, 1, 1])
    back = unravel(flat + 1)
    np.testing.assert_array_equal(back["a"], [1, 2, 3])
    assert back["a"].dtype == np.int32
    assert back["b"][0].shape == () and float(back["b"][0]) == 3.5
    assert back["b"][1].shape == (2, 1) and back["b"][1].dtype == np.float16


def test_it_is_the_oracles():
    oracle = pytest.importorskip("jax.flatten_util")
    wanted, _ = oracle.ravel_pytree(TREE)
    flat, _ = ravel_pytree(TREE)
    assert flat.dtype == wanted.dtype
    np.testing.assert_array_equal(flat, np.asarray(wanted))


@pytest.mark.parametrize(
    "tree",
    [(1.0, 2.0), (1, 2), (1, 2.0), 2.0, (True, 1), [1.0, np.float32(2)], [2.5, np.float16(1)],
     {"a": 1000, "b": np.int8(3)}],
    ids=str,
)  # fmt: skip
def test_python_numbers_are_of_the_default_dtype_and_weak_alone(tree):
    oracle = pytest.importorskip("jax.flatten_util")
    found, expected = [f(tree) for f in (ravel_pytree, oracle.ravel_pytree)]
    for ours, theirs in [
        (found[0], expected[0]),
        *zip(xtree.leaves(found[1](found[0])), xtree.leaves(expected[1](expected[0])), strict=True),
    ]:
        assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)
        np.testing.assert_array_equal(ours, np.asarray(theirs))


def test_real_leaves_beside_complex_ones_come_back_real():
    tree = [xnp.ones(2), xnp.ones(1, "complex64") * 1j]
    flat, unravel = ravel_pytree(tree)
    assert flat.dtype == np.complex64
    assert [x.dtype for x in unravel(flat)] == [np.float32, np.complex64]


def test_a_tree_without_leaves_is_an_empty_vector():
    flat, unravel = ravel_pytree({"a": None})
    assert flat.shape == (0,) and flat.dtype == np.float32
    assert unravel(flat) == {"a": None}


def test_it_can_be_traced():
    def f(tree):
        flat, unravel = ravel_pytree(tree)
        return unravel(flat * 2)

    assert "concatenate" in str(make_jaxpr(f)(TREE))


def test_another_vector_is_refused():
    flat, unravel = ravel_pytree(TREE)
    with pytest.raises(ValueError, match=r"another shape(.|\n)*got +float32\[2\]"):
        unravel(flat[:2])
    with pytest.raises(TypeError, match="has dtype int32, but expected dtype float32"):
        unravel(flat.astype("int32"))
    with pytest.raises(TypeError, match="ravel_pytree"):
        ravel_pytree({"a": "text"})


def test_a_tree_of_one_dtype_takes_vectors_of_any():
    flat, unravel = ravel_pytree([np.zeros(2, np.float32), np.float32(1)])
    assert [x.dtype for x in unravel(flat < 1)] == [bool, bool]


def test_the_ways_back_to_trees_alike_are_equal():
    one, other = [ravel_pytree({"a": np.ones(2, np.float32), "b": n})[1] for n in (1, 2)]
    assert one == other and hash(one) == hash(other)
    assert one != ravel_pytree({"a": np.ones(3, np.float32), "b": 1})[1]
