"""The messages about operands whose shapes do not go together."""

import pytest

import xstack.numpy as xnp
from tests.errors.refusals import Refusals
from xprim.errors import ArgumentError, AxisError, ShapeError
from xstack import grad, jit, lax, vmap

refused = Refusals()

X3, X4, M23, M45 = xnp.ones(3), xnp.ones(4), xnp.ones((2, 3)), xnp.ones((4, 5))


@refused(
    ShapeError,
    """
    add: incompatible shapes for broadcasting: (3,) and (4,).
      got       float32[3], float32[4]
      expected  sizes that are equal or 1, counted from the last dimension
    """,
    TypeError,
    ValueError,
)
def add():
    X3 + X4


@refused(
    ShapeError,
    """
    add: incompatible shapes for broadcasting: (2,3) and (4,5).
      got       float32[2,3], float32[4,5]
      expected  sizes that are equal or 1, counted from the last dimension
    """,
)
def add_of_arrays_that_share_no_dimension():
    xnp.add(M23, M45)


@refused(
    ShapeError,
    """
    lax.add: the operands' shapes differ.
      got       float32[3], float32[4]
      expected  equal shapes, or rank 0
      hint      xnp.add broadcasts
    """,
)
def lax_add():
    lax.add(X3, X4)


@refused(
    TypeError,
    """
    lax.add: requires arguments to have the same dtypes, got float32, int32.
      hint      convert with lax.convert_element_type, or use xnp.add, which promotes
    """,
)
def lax_add_of_two_dtypes():
    lax.add(X3, X3.astype(int))


@refused(
    ShapeError,
    """
    dot: the contracted dimensions differ: 3 and 4.
      got       x: float32[2,3], y: float32[4,5]
      expected  x.shape[-1] == y.shape[0]
    """,
    TypeError,
)
def dot():
    xnp.dot(M23, M45)


@refused(
    ShapeError,
    """
    dot: the contracted dimensions differ: 3 and 2.
      got       x: float32[2,3], y: float32[2,3]
      expected  x.shape[-1] == y.shape[0]
      hint      y.T has shape [3, 2]
    """,
)
def dot_of_equal_matrices():
    xnp.dot(M23, M23)


@refused(
    ShapeError,
    """
    matmul: the contracted dimensions differ: 3 and 4.
      got       x: float32[2,3], y: float32[4]
      expected  x.shape[-1] == y.shape[0]
    """,
)
def matmul():
    M23 @ X4


@refused(
    ShapeError,
    """
    matmul: the batch dimensions do not broadcast: (2,) and (3,).
      got       x: float32[2,3,4], y: float32[3,4,5]
      expected  all dimensions but the last two equal or 1
    """,
)
def matmul_of_batches():
    xnp.ones((2, 3, 4)) @ xnp.ones((3, 4, 5))


@refused(
    ValueError,
    """
    matmul: the operands must have a dimension at least.
      got       x: float32[2,3], y: float32[]
      hint      write x * y for a factor of rank 0
    """,
)
def matmul_with_a_scalar():
    M23 @ xnp.float32(2.0)


@refused(
    ShapeError,
    """
    concatenate: array 1 does not fit the first one along axis 0.
      got       float32[2,3] and float32[4,5]
      expected  equal shapes but for axis 0
    """,
)
def concatenate():
    xnp.concatenate([M23, M45])


@refused(
    TypeError,
    """
    concatenate: the axis must be an integer, got an array float32[4].
      hint      the arrays go in one sequence: concatenate([x, y])
    """,
)
def concatenate_of_two_arguments():
    xnp.concatenate(X3, X4)


@refused(
    TypeError,
    """
    concatenate: takes a sequence of arrays, got a float.
    """,
)
def concatenate_of_no_sequence():
    xnp.concatenate(3.0)


@refused(
    AxisError,
    """
    concatenate: axis 1 is out of bounds for an array of 1 dimension.
    """,
)
def concatenate_along_an_axis_that_is_not_there():
    xnp.concatenate([X3, X4], axis=1)


@refused(
    ShapeError,
    """
    where: incompatible shapes for broadcasting: (3,) and (3,) and (4,).
      got       bool[3], float32[3], float32[4]
      expected  sizes that are equal or 1, counted from the last dimension
    """,
)
def where():
    xnp.where(X3 > 0, X3, X4)


@refused(
    ShapeError,
    """
    select: the operands' shapes differ.
      got       float32[4], float32[3]
      expected  equal shapes, or rank 0
      hint      xnp.where broadcasts
    """,
)
def select():
    lax.select(X3 > 0, X3, X4)


@refused(
    ShapeError,
    """
    einsum: the dimensions with label 'j' have sizes 3 and 4.
      got       ij: float32[2,3], jk: float32[4,5]
    """,
)
def einsum():
    xnp.einsum("ij,jk->ik", M23, M45)


@refused(
    ValueError,
    """
    einsum: the term 'jk' of 'ij,jk->ik' names 2 dimensions, the operand has 1.
      got       float32[3]
    """,
)
def einsum_of_another_rank():
    xnp.einsum("ij,jk->ik", M23, X3)


@refused(
    ValueError,
    """
    einsum: 'ij,jk->ik' has terms for 2 operands, but 1 came.
    """,
)
def einsum_of_too_few_operands():
    xnp.einsum("ij,jk->ik", M23)


@refused(
    TypeError,
    """
    einsum: behind each operand must stand a list of its labels, which are integers.
      got       an array float32[4,5]
      hint      labels in words go first: einsum('ij,jk->ik', a, b)
    """,
)
def einsum_without_labels():
    xnp.einsum(M23, M45)


@refused(
    ValueError,
    """
    einsum: there may be 52 labels, got 60.
    """,
)
def einsum_of_too_many_labels():
    xnp.einsum(M23, range(60))


@refused(
    ShapeError,
    """
    stack: all arrays must have one shape.
      got       float32[3], float32[4]
      hint      concatenate joins arrays of different lengths along an axis they have
    """,
)
def stack():
    xnp.stack([X3, X4])


@refused(
    ShapeError,
    """
    reshape: cannot reshape array of size 3 into shape (2, 2), of size 4.
      got       float32[3]
      expected  a shape of 3 elements; -1 is the size that is left over
    """,
    TypeError,
)
def reshape():
    X3.reshape(2, 2)


@refused(
    ShapeError,
    """
    reshape: cannot reshape array of size 3 into shape (2, -1).
      got       float32[3]
      expected  a multiple of 2 elements
    """,
)
def reshape_with_a_size_left_over():
    X3.reshape(2, -1)


@refused(
    ShapeError,
    """
    reshape: one dimension can be -1, got the shape (-1, -1).
    """,
)
def reshape_with_two_sizes_left_over():
    M23.reshape(-1, -1)


@refused(
    AxisError,
    """
    sum: axis 2 is out of bounds for an array of 2 dimensions.
    """,
)
def a_reduction_along_an_axis_that_is_not_there():
    M23.sum(axis=2)


@refused(
    ValueError,
    """
    broadcast_to: Incompatible shapes for broadcasting: (3,) and requested shape (2,).
    """,
)
def broadcast_to():
    xnp.broadcast_to(X3, (2,))


@refused(
    ValueError,
    """
    at[]: values of shape (4,) do not broadcast to the shape (2,) that the index names.
    """,
)
def an_update_of_another_shape():
    X3.at[:2].set(X4)


@refused(
    ArgumentError,
    """
    array: the items of a list must all have one shape.
      got       shapes (1,), (2,)
      hint      pad the rows to one length, or keep them as a list
    """,
)
def rows_of_different_lengths():
    xnp.array([[1.0, 2.0], [3.0]])


@refused(
    TypeError,
    """
    zeros: 3 is not a dtype.
      expected  a boolean, integer, floating or complex dtype
      hint      a shape of several dimensions is one tuple: (2, 3)
    """,
)
def a_shape_in_two_arguments():
    xnp.zeros(2, 3)


@refused(
    TypeError,
    """
    zeros: Shapes must be 1D sequences of concrete values of integer type: shape is a float.
    """,
)
def a_shape_that_is_no_integer():
    xnp.zeros(3.0)


@refused(
    TypeError,
    """
    view: 3 is not a dtype.
      expected  a boolean, integer, floating or complex dtype
      hint      view(dtype) looks at the same bytes; reshape(3) gives another shape
    """,
)
def a_shape_that_is_given_to_view():
    X3.view(3)


@refused(
    TypeError,
    """
    array: 'flaot32' is not a dtype.
      expected  a boolean, integer, floating or complex dtype
      hint      did you mean 'float32'?
    """,
)
def a_misspelt_dtype():
    xnp.array([1.0], "flaot32")


@refused(
    ValueError,
    """
    arange: the bounds must be numbers, got an array float32[3].
    """,
)
def a_range_to_an_array():
    xnp.arange(X3)


@refused(
    ValueError,
    """
    histogram: there must be at least one bin.
      got       bins=-1
    """,
)
def a_histogram_of_fewer_than_no_bins():
    xnp.histogram(X3, bins=-1)


@pytest.mark.parametrize("case", refused, ids=str)
def test_the_message_about_shapes_is_complete(case):
    case.check()


@pytest.mark.parametrize(
    "transformed",
    [jit, vmap, lambda f: grad(lambda a, b: f(a, b).sum())],
    ids=["jit", "vmap", "grad"],
)
def test_the_message_is_the_same_under_a_transformation(transformed):
    operands = (X3, X4)
    if transformed is vmap:
        operands = (xnp.stack([X3, X3]), xnp.stack([X4, X4]))
    with pytest.raises(ShapeError) as caught:
        transformed(lambda a, b: a + b)(*operands)
    assert str(caught.value) == refused[0].text
