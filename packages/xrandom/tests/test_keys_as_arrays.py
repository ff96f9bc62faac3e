"""Keys are arrays: one leaf of their own dtype in a tree, moved about as any, not computed with."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import xnp
import xrandom
import xtree
from packages.xrandom.tests.oracle import assert_equal
from xprim import Array, ShapeDtypeStruct, dtypes, eval_shape, make_jaxpr, typeof

KEYS = xrandom.split(xrandom.key(7), (2, 3))
WORDS = np.asarray(xrandom.key_data(KEYS))


def test_a_key_is_one_leaf_of_a_tree_and_an_array_of_the_dtype_of_keys() -> None:
    (leaf,) = xtree.leaves({"rng": KEYS})
    assert leaf is KEYS
    assert isinstance(leaf, Array)
    assert dtypes.issubdtype(leaf.dtype, dtypes.prng_key)
    assert dtypes.issubdtype(leaf.dtype, dtypes.extended)
    assert not dtypes.issubdtype(leaf.dtype, np.number)
    assert (leaf.shape, leaf.ndim, leaf.size, leaf.itemsize, leaf.nbytes) == ((2, 3), 2, 6, 8, 48)
    assert str(leaf.aval.str_short()) == "key<fry>[2,3]"


def test_keys_print_with_their_dtype_and_words() -> None:
    assert repr(xrandom.key(7)) == "Array([0, 7], shape=(), dtype=key<fry>)"
    assert str(xrandom.key(7)) == repr(xrandom.key(7))
    assert f"{xrandom.key(7)}" == repr(xrandom.key(7))
    assert repr(KEYS[:0]) == "Array([], shape=(0, 3), dtype=key<fry>)"


def test_keys_are_pickled_and_copied_with_their_dtype() -> None:
    for again in (pickle.loads(pickle.dumps(KEYS)), copy.copy(KEYS), copy.deepcopy(KEYS)):
        assert again.dtype is KEYS.dtype
        assert_equal(xrandom.key_data(again), WORDS)


def test_shapes_of_keys_have_their_dtype() -> None:
    struct = eval_shape(lambda k: xrandom.split(k, 5), KEYS[0, 0])
    assert struct == ShapeDtypeStruct((5,), KEYS.dtype)
    assert repr(struct) == "ShapeDtypeStruct(shape=(5,), dtype=key<fry>)"
    again = eval_shape(xrandom.key_data, ShapeDtypeStruct((3,), xrandom.key_dtype()))
    assert (again.shape, again.dtype) == ((3, 2), dtypes.uint32)


def test_jaxprs_show_keys_as_keys() -> None:
    shown = str(make_jaxpr(lambda k: xrandom.split(k)[1])(xrandom.key(0)))
    assert "a:key<fry>[]" in shown
    assert "key<fry>[2] = wrap[dtype=key<fry>]" in shown


@pytest.mark.parametrize(
    "operation",
    [
        lambda k: k + k, lambda k: -k, lambda k: k < k, lambda k: k.sum(), lambda k: k.max(),
        lambda k: k.astype("uint32"), lambda k: k.sort(), lambda k: k[0] @ k[0],
        lambda k: k.argmax(), lambda k: k.cumsum(), lambda k: k.view("uint32"),
        lambda k: bool(k[0, 0]), lambda k: int(k[0, 0]), lambda k: float(k[0, 0]),
        lambda k: k[0, 0].item(), lambda k: k.tolist(), lambda k: k.tobytes(), np.asarray,
        lambda k: np.from_dlpack(k),
    ],
)  # fmt: skip
def test_arithmetic_and_numbers_of_keys_are_refused_by_name(operation) -> None:
    with pytest.raises(TypeError, match=r"^\w+(\.\w+)?: random keys are not numbers"):
        operation(KEYS)


def test_keys_with_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"random keys never promote(.|\n)*hint .*key_data"):
        KEYS + 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(KEYS)


def test_the_type_of_keys_is_that_of_an_array_of_keys():
    keys = xrandom.split(xrandom.key(0), 3)
    assert typeof(keys) is keys.aval and str(typeof(keys)) == "key<fry>[3]"
    assert typeof(keys[0]).shape == () and typeof(xrandom.PRNGKey(0)).dtype == np.uint32
    assert [*make_jaxpr(lambda k: k)(keys).in_avals] == [typeof(keys)]


@pytest.mark.parametrize("equal_nan", [False, True])
def test_array_equal_compares_keys(equal_nan: bool) -> None:
    assert xnp.array_equal(KEYS, KEYS, equal_nan=equal_nan)
    assert not xnp.array_equal(KEYS, KEYS[::-1], equal_nan=equal_nan)
