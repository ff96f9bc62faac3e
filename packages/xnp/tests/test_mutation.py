import numpy as np
import pytest

import xnp


def test_assignments_in_a_block_make_a_new_array():
    x = xnp.arange(6.0).reshape(2, 3)
    with xnp.mutable(x) as y:
        y[0, 1] = 7.0
        y[1] *= 2
        y[..., [0, 2]] -= 1
        assert y[0, 1] == 7.0 and len(y) == 2 and y.shape == (2, 3)
    expected = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(x, expected)
    expected[0, 1] = 7.0
    expected[1] *= 2
    expected[..., [0, 2]] -= 1
    np.testing.assert_array_equal(y.array, expected)
    assert y.dtype == "float32" and repr(y).startswith("mutable(Array([[")


def test_a_block_that_fails_leaves_what_was_written():
    y = xnp.mutable(xnp.zeros(2))

    def write():
        with y:
            y[0] = 1.0
            y[1] = 1 / 0

    with pytest.raises(ZeroDivisionError):
        write()
    np.testing.assert_array_equal(y.array, [1.0, 0.0])


def test_use_outside_of_the_block_says_where_to_look():
    y = xnp.mutable(xnp.zeros(2))
    with pytest.raises(RuntimeError, match="mutable: elements are read and written within"):
        y[0] = 1.0
    with y:
        with pytest.raises(RuntimeError, match="mutable: the array is there after the block"):
            _ = y.array
        with pytest.raises(IndexError):
            y[5] = 1.0
    with pytest.raises(RuntimeError, match="mutable: elements are read and written within"):
        _ = y[0]
    with pytest.raises(RuntimeError, match="a block is entered once"):
        y.__enter__()


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int32])
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_masked_reductions_by_bits_keep_the_dtype(name, dtype):
    x, where = np.array([[3, 1], [2, 5]]).astype(dtype), np.array([[True, False], [True, False]])
    found = getattr(xnp, name).reduce(x, where=where)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, getattr(np, name).reduce(x, where=where))
