"""Single booleans in indices, negative sizes, starts of several dtypes, names of modes.

A single boolean is a vector of one position or of none, of a dimension of its own.
"""

import numpy as np
import pytest

import xnp
from xprim import make_jaxpr
from xprim.errors import ShapeError

X = np.arange(12, dtype=np.float32).reshape(3, 4)
INDICES = [
    False, True, (0, False), (0, slice(2), False), (False, 0), (None, False), (..., False),
    (False, ...), (True, [0, 1]), ([0, 1], True), (True, slice(None), [0, 1]), (True, False),
    ([[0, 1]], True, [0, 1]), ([0], False), (np.array(False), 1), (np.bool_(True), 1),
    (slice(None), True, [1, 2]), (True, None, [0, 2]), (X[0] > 9, False)[1:],
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_a_flag_selects_as_in_numpy(index):
    found = xnp.array(X)[index]
    np.testing.assert_array_equal(found, X[index])
    assert found.shape == X[index].shape
    (traced,) = make_jaxpr(lambda x: x[index])(X).out_avals
    assert traced.shape == X[index].shape


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_elements_at_a_flag_are_written_as_in_numpy(index):
    x, expected, values = xnp.array(X), X.copy(), np.full(X[index].shape, -1, np.float32)
    expected[index] = values
    np.testing.assert_array_equal(x.at[index].set(-1.0), expected)
    np.testing.assert_array_equal(x.at[index].set(values), expected)
    np.testing.assert_array_equal(x.at[index].add(0), X)
    np.testing.assert_array_equal(x.at[index].get(mode="fill"), X[index])
    (traced,) = make_jaxpr(lambda x: x.at[index].multiply(2.0))(X).out_avals
    assert traced.shape == X.shape


def test_a_false_beside_two_positions_does_not_broadcast():
    with pytest.raises(ShapeError, match=r"broadcasting: \(2,\) and \(0,\)"):
        xnp.array(X)[[0, 1], False]


def test_a_mode_of_qr_has_two_names():
    for found, expected in zip(xnp.linalg.qr(X, "full"), xnp.linalg.qr(X, "complete"), strict=True):
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="qr: unknown mode 'economic'"):
        xnp.linalg.qr(X, "economic")


@pytest.mark.parametrize("function", [xnp.broadcast_shapes, xnp.lax.broadcast_shapes])
def test_shapes_with_a_negative_size_do_not_broadcast(function):
    for shapes in ([(-1,)], [(3,), (-1,)], [(-1,), (1,)]):
        with pytest.raises(TypeError, match="broadcast_shapes: a size must not be negative"):
            function(*shapes)
    assert function((3, 1), (4,)) == (3, 4)


def test_starts_that_are_no_integers_are_refused_by_the_name_of_the_function():
    lax, x = xnp.lax, xnp.ones(3)
    calls = {
        "dynamic_slice": [lambda: lax.dynamic_slice(x, (1.0,), (1,)),
                          lambda: lax.dynamic_slice(x, xnp.ones(1), (1,)),
                          lambda: make_jaxpr(lambda i: lax.dynamic_slice(x, (i,), (1,)))(1.0)],
        "dynamic_update_slice": [lambda: lax.dynamic_update_slice(x, x[:1], (1.0,))],
        "dynamic_index_in_dim": [lambda: lax.dynamic_index_in_dim(x, 1.0)],
    }  # fmt: skip
    for name, refused in calls.items():
        for call in refused:
            with pytest.raises(TypeError, match=f"^{name}: a start must be an integer"):
                call()


def test_starts_of_several_dtypes_are_refused():
    lax, wide, narrow = xnp.lax, xnp.int32(1), xnp.uint8(0)
    text = r"must be integers of the same type\.\n +got +int32, uint8"
    with pytest.raises(TypeError, match=f"dynamic_slice: index arguments to dynamic_slice {text}"):
        lax.dynamic_slice(X, (wide, narrow), (1, 1))
    with pytest.raises(TypeError, match=f"index arguments to dynamic_update_slice {text}"):
        make_jaxpr(lambda i, j: lax.dynamic_update_slice(X, X[:1, :1], (i, j)))(wide, narrow)
    for starts in ((0, narrow), (wide, 0), (np.int64(1), wide), (narrow, narrow)):
        assert lax.dynamic_slice(X, starts, (1, 1)).shape == (1, 1)
