"""The messages about indices, and which indices out of range are refused."""

import numpy as np
import pytest

import xstack.numpy as xnp
from tests.errors.refusals import Refusals
from xstack import config, grad, jit, lax, vmap
from xstack.errors import IndexCheckError, IndexTypeError

refused = Refusals()

X3, M23 = xnp.arange(3.0), xnp.ones((2, 3))


@refused(
    IndexError,
    """
    index: 5 is out of bounds for axis 0 with size 3.
      got       an index into shape (3,)
      expected  an int from -3 to 2
    """,
)
def an_index_out_of_range():
    X3[5]


@refused(
    TypeError,
    """
    insert: obj must be positions, a slice or a mask, got a float.
    """,
)
def an_insertion_at_a_float():
    xnp.insert(X3, 1.0, 5)


@refused(
    TypeError,
    """
    delete: obj must be positions, a slice or a mask, got a list of length 1.
    """,
)
def a_deletion_of_floats():
    xnp.delete(X3, [1.0])


@refused(
    TypeError,
    """
    repeat: repeats must be integers, got a float.
    """,
)
def a_repetition_by_a_float():
    xnp.repeat(X3, 2.0)


@refused(
    TypeError,
    """
    repeat: repeats must be integers, got an array float32[3].
    """,
)
def a_repetition_by_traced_floats():
    jit(lambda n: xnp.repeat(X3, n, total_repeat_length=4))(X3)


@refused(
    IndexError,
    """
    index: -4 is out of bounds for axis 1 with size 3.
      got       an index into shape (2, 3)
      expected  an int from -3 to 2
    """,
)
def a_negative_index_out_of_range_along_the_second_axis():
    M23[0, -4]


@refused(
    IndexError,
    """
    index: 5 is out of bounds for axis 0 with size 3.
      got       an index into shape (3,)
      expected  an int from -3 to 2
    """,
)
def an_index_out_of_range_under_jit():
    jit(lambda x: x[5])(X3)


@refused(
    IndexError,
    """
    index: 5 is out of bounds for axis 0 with size 3.
      got       an index into shape (3,)
      expected  an int from -3 to 2
    """,
)
def an_index_out_of_range_of_an_update():
    X3.at[5].set(1.0)


@refused(
    IndexCheckError,
    """
    index: 7 is out of bounds for axis 1 with size 3.
      got       an index into shape (2, 3)
      expected  positions from -3 to 2
      where     test_indices.py:LINE in a_position_in_an_array_out_of_range
      hint      x.at[...].get(mode="clip") moves positions inside, .set(..., mode="drop") leaves
                them out
    """,
)
def a_position_in_an_array_out_of_range():
    M23[:, xnp.array([0, 7])]


@refused(
    IndexError,
    """
    Too many indices: array is 2-dimensional, but 3 were indexed.
      got       an index into shape (2, 3)
    """,
)
def too_many_indices():
    M23[0, 0, 0]


@refused(
    IndexError,
    """
    index: the boolean index did not match shape (3,) of what it indexes: its own is (2,).
    """,
)
def a_mask_of_another_shape():
    X3[np.array([True, False])]


@refused(
    IndexTypeError,
    """
    Indexer must have integer or boolean type, got indexer with type float.
      expected  ints, slices, None, ..., integer or boolean arrays
    """,
)
def a_float_as_index():
    X3[1.0]


@refused(
    IndexTypeError,
    """
    Indexer must have integer or boolean type, got indexer with type float32[1].
    """,
)
def an_array_of_floats_as_index():
    X3[xnp.array([1.0])]


@refused(
    IndexTypeError,
    """
    Indexer must have integer or boolean type, got indexer with type str.
      expected  ints, slices, None, ..., integer or boolean arrays
    """,
)
def a_string_as_index():
    X3["first"]


@refused(
    TypeError,
    """
    index: a bound of a slice must be an integer, got a float.
    """,
)
def a_slice_up_to_a_float():
    X3[0:1.5]


@refused(
    ValueError,
    """
    index: the step of a slice must not be 0.
    """,
)
def a_slice_in_steps_of_0():
    X3[::0]


@refused(
    IndexError,
    """
    Too many indices: array is 0-dimensional, but 1 were indexed.
      got       an index into shape ()
    """,
)
def an_index_of_a_scalar():
    X3.sum()[0]


@refused(
    IndexError,
    """
    delete: a position is out of bounds for axis 0 with size 3.
      got       9
    """,
)
def a_deleted_element_out_of_range():
    xnp.delete(X3, 9)


@refused(
    IndexError,
    """
    index_in_dim: index 9 is out of bounds for axis 0 of size 3.
    """,
)
def a_static_position_out_of_range():
    lax.index_in_dim(X3, 9)


@refused(
    TypeError,
    """
    slice: the bounds must be within the operand.
      got       starts (0,), limits (9,) for float32[3]
      expected  0 <= start <= limit <= size in each dimension
    """,
)
def a_slice_beyond_the_end():
    lax.slice(X3, (0,), (9,))


@refused(
    TypeError,
    """
    dynamic_slice: the window does not fit into the operand.
      got       a window of shape (9,) in float32[3]
    """,
)
def a_window_larger_than_the_array():
    lax.dynamic_slice(X3, (0,), (9,))


@refused(
    ValueError,
    """
    gather and scatter: unknown mode 'wrap around'.
      expected  'clip', 'fill', 'drop' or 'promise_in_bounds'
    """,
)
def a_mode_that_does_not_exist():
    X3.at[0].set(1.0, mode="wrap around")


@pytest.mark.parametrize("case", refused, ids=str)
def test_the_message_about_an_index_is_complete(case):
    case.check()


@pytest.mark.parametrize(
    "transformed",
    [jit, lambda f: vmap(f, in_axes=None, axis_size=2), grad],
    ids=["jit", "vmap", "grad"],
)
def test_a_static_index_out_of_range_is_refused_under_every_transformation(transformed):
    with pytest.raises(IndexError) as caught:
        transformed(lambda x: x[5])(X3)
    assert str(caught.value) == refused[0].text


def test_index_arrays_out_of_range_are_clamped_when_read_and_left_out_when_written():
    beyond = xnp.array([0, 7])
    with config.index_checks("allow"):
        assert X3[beyond].tolist() == [0.0, 2.0]
        assert X3.at[beyond].set(9.0).tolist() == [9.0, 1.0, 2.0]
    assert jit(lambda i: X3[i])(beyond).tolist() == [0.0, 2.0]
    assert np.isnan(xnp.take(X3, 7))
    assert float(lax.dynamic_index_in_dim(X3, 7, keepdims=False)) == 2.0
