"""`x[ds(start, size)]`: slices of fixed size at starts that may be traced."""

import numpy as np
import pytest

import xnp
import xtree
from xnp.numpy.index_entries import DynamicSlice, ds
from xprim import make_jaxpr
from xprim.errors import ConcretizationTypeError, ShapeError

TABLE = np.arange(24).reshape(4, 6)
LINE = np.arange(10)


def staged(function, *args):
    """Return what the program of a function gives: its arguments are traced."""
    from xprim import eval_jaxpr

    closed = make_jaxpr(function)(*args)
    (out,) = eval_jaxpr(closed.jaxpr, closed.consts, *args)
    return np.asarray(out)


CASES = [
    ("alone", lambda i: (ds(i, 2), slice(None)), lambda i: np.s_[i : i + 2]),
    ("both", lambda i: (ds(i, 2), ds(i, 3)), lambda i: np.s_[i : i + 2, i : i + 3]),
    ("int", lambda i: (1, ds(i, 3)), lambda i: np.s_[1, i : i + 3]),
    ("same", lambda i: (i, ds(i, 3)), lambda i: np.s_[i, i : i + 3]),
    ("array", lambda i: (np.array([0, 2]), ds(i, 3)), lambda i: np.s_[[0, 2], i : i + 3]),
    ("mask", lambda i: (np.array([1, 0, 0, 1], bool), ds(i, 3)), lambda i: np.s_[::3, i : i + 3]),
    ("back", lambda i: (slice(None, None, -1), ds(i, 3)), lambda i: np.s_[::-1, i : i + 3]),
    ("new", lambda i: (None, ds(i, 2)), lambda i: np.s_[None, i : i + 2]),
    ("dots", lambda i: (..., ds(i, 2)), lambda i: np.s_[..., i : i + 2]),
    ("steps", lambda i: (..., ds(i, 2, 3)), lambda i: np.s_[..., i : i + 4 : 3]),
    ("none", lambda i: (ds(i, 0),), lambda i: np.s_[i:i]),
    ("first", lambda i: (ds(3), i), lambda i: np.s_[:3, i]),
]


@pytest.mark.parametrize("case", CASES, ids=[c[0] for c in CASES])
@pytest.mark.parametrize("start", [0, 1, 2])
def test_an_index_with_dynamic_slices_reads_and_writes_what_numpys_slices_do(case, start):
    _, index, plain = case
    x, i = xnp.asarray(TABLE), xnp.asarray(start)
    expected = TABLE[plain(start)]
    assert np.array_equal(x[index(start)], expected)
    assert np.array_equal(x[index(i)], expected)
    assert np.array_equal(staged(lambda i: x[index(i)], i), expected)
    for method, ufunc in (("set", None), ("add", np.add), ("multiply", np.multiply)):
        written = TABLE.copy()
        written[plain(start)] = 7 if ufunc is None else ufunc(expected, 7)
        assert np.array_equal(getattr(x.at[index(start)], method)(7), written)
        assert np.array_equal(getattr(x.at[index(i)], method)(7), written)
        assert np.array_equal(staged(lambda i, m=method: getattr(x.at[index(i)], m)(7), i), written)


@pytest.mark.parametrize(("start", "read", "kept"), [(9, 7, True), (12, 7, True), (-1, 7, True),
                                                     (-3, 7, False), (7, 7, False)])  # fmt: skip
def test_a_slice_that_does_not_fit_is_read_inside_and_not_written(start, read, kept):
    x, i = xnp.asarray(LINE), xnp.asarray(start)
    assert x[ds(i, 3)].tolist() == [read, read + 1, read + 2]
    expected = LINE.copy()
    expected[read : read + 3] = -1
    assert x.at[ds(i, 3)].set(-1).tolist() == (LINE if kept else expected).tolist()
    assert x.at[ds(i, 3)].set(-1, mode="clip").tolist() == expected.tolist()
    filled = x.at[ds(i, 3)].get(mode="fill", fill_value=-5).tolist()
    assert filled == ([-5] * 3 if kept else [7, 8, 9])


def test_known_starts_make_ordinary_slices():
    x = xnp.asarray(LINE)
    assert x[ds(8, 3)].tolist() == [8, 9]
    assert x[ds(np.int64(1), 3, 2)].tolist() == [1, 3, 5]
    assert x[ds(None, 2)].tolist() == [0, 1]
    assert ds(None) == slice(None)
    assert "dynamic" not in str(make_jaxpr(lambda x: x[ds(2, 3)])(x))


def test_references_and_applied_functions_take_dynamic_slices():
    ref = xnp.refs.new_ref(xnp.asarray(LINE))
    ref[ds(xnp.asarray(3), 2)] = xnp.zeros(2, int)
    assert ref[ds(xnp.asarray(2), 4)].tolist() == [2, 0, 0, 5]
    squares = xnp.asarray(LINE).at[ds(xnp.asarray(3), 2)].apply(xnp.square)
    assert squares.tolist() == [0, 1, 2, 9, 16, 5, 6, 7, 8, 9]


def test_a_dynamic_slice_is_a_tree_whose_leaf_is_an_array_that_starts_it():
    leaves, tree = xtree.flatten(ds(xnp.asarray(3), 2))
    assert [int(leaf) for leaf in leaves] == [3]
    assert xnp.asarray(LINE)[xtree.unflatten(tree, [xnp.asarray(5)])].tolist() == [5, 6]
    assert xtree.leaves(ds(3, 2)) == []
    assert isinstance(ds(3, 2), DynamicSlice)


def test_wrong_dynamic_slices_say_why():
    x = xnp.asarray(LINE)
    with pytest.raises(ShapeError, match="takes 12 elements of dimension 0, which has 10"):
        x[ds(xnp.asarray(0), 12)]
    with pytest.raises(ConcretizationTypeError, match="ds: the size is a traced value"):
        make_jaxpr(lambda n: x[ds(0, n)])(3)
    with pytest.raises(ValueError, match="the stride at least 1"):
        ds(0, 3, 0)
    with pytest.raises(TypeError, match="the start must be an integer"):
        ds(xnp.asarray(1.0), 2)
