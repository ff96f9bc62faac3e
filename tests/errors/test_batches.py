"""The messages of `vmap` and `pmap` about axes, and of collectives outside of their axis."""

import pytest

import xstack.numpy as xnp
from tests.errors.refusals import Refusals
from xstack import jit, lax, pmap, vmap
from xtree.errors import StructureMismatchError

refused = Refusals()

X3, X4, M23 = xnp.ones(3), xnp.ones(4), xnp.ones((2, 3))


@refused(
    ValueError,
    """
    vmap: the axes to map have different sizes: 3 and 4.
      got       a: size 3 along axis 0 of float32[3]
                b: size 4 along axis 0 of float32[4]
      expected  one size along all mapped axes
    """,
)
def batches_of_two_sizes():
    vmap(lambda a, b: a + b)(X3, X4)


@refused(
    ValueError,
    """
    vmap: the axes to map have different sizes: 3 and 4.
      got       params['b']: size 4 along axis 0 of float32[4]
                params['w']: size 3 along axis 0 of float32[3]
                x: size 4 along axis 0 of float32[4]
      expected  one size along all mapped axes
    """,
)
def batches_of_two_sizes_in_a_tree():
    vmap(lambda params, x: params["w"] * x)({"w": X3, "b": X4}, X4)


@refused(
    ValueError,
    """
    vmap: the axes to map have different sizes: 3 and 4.
      got       axis_size=4
                a: size 3 along axis 0 of float32[3]
      expected  one size along all mapped axes
    """,
)
def a_batch_of_another_size_than_axis_size():
    vmap(lambda a: a, axis_size=4)(X3)


@refused(
    ValueError,
    """
    vmap: the argument a has no axis 0.
      got       a: float32[]
      expected  an array with at least 1 dimension
      hint      in_axes=None for an argument that all examples share
    """,
)
def an_argument_without_a_batch():
    vmap(lambda a: a)(1.0)


@refused(
    ValueError,
    """
    vmap: the argument a[0] has no axis 0.
      got       a[0]: float32[]
      expected  an array with at least 1 dimension
      hint      in_axes=None for an argument that all examples share;
                a list or tuple is a tree of arguments: xnp.array(...) makes one array of numbers
    """,
)
def a_list_of_numbers_for_an_array():
    vmap(lambda a: a)([1.0, 2.0])


@refused(
    ValueError,
    """
    vmap: the argument a has no axis 2.
      got       a: float32[2,3]
      expected  an array with at least 3 dimensions
    """,
)
def an_axis_out_of_range():
    vmap(lambda a: a, in_axes=2)(M23)


@refused(
    ValueError,
    """
    vmap: in_axes must have one entry for each positional argument.
      got       1 entry in in_axes=(0,), 2 arguments
    """,
)
def too_few_in_axes():
    vmap(lambda a, b: a, in_axes=(0,))(X3, X3)


@refused(
    StructureMismatchError,
    """
    vmap: in_axes and args differ at [0]: different keys.
      got       args[0]: a dict with the additional keys ['b']
      expected  a dict with the keys ['w'], as in in_axes
    """,
    ValueError,
)
def in_axes_of_another_structure():
    vmap(lambda p: p["w"], in_axes=({"w": 0},))({"w": X3, "b": X3})


@refused(
    TypeError,
    """
    vmap: in_axes must be an int, None, or a tuple with an entry for each argument.
      got       '0'
      hint      a dict gives axes by the names of arguments
    """,
)
def in_axes_that_are_no_integers():
    vmap(lambda a: a, in_axes="0")


@refused(
    ValueError,
    """
    vmap: no argument is mapped, so the number of examples is unknown.
      got       1 array among the arguments, none with an axis in in_axes
      expected  an axis in in_axes that is not None, or axis_size=
    """,
)
def no_argument_mapped():
    vmap(lambda a: a, in_axes=None)(X3)


@refused(
    ValueError,
    """
    vmap: out_axes places the axis of the examples at 2, which the result does not have.
      got       the result: 1 dimension with that of the examples
      expected  an int from -1 to 0
    """,
)
def an_out_axis_out_of_range():
    vmap(lambda a: a, out_axes=2)(X3)


@refused(
    ValueError,
    """
    vmap: out_axes is None for the result, which differs from example to example.
      got       the result: float32[3], mapped along axis 0
      expected  an int in out_axes for results that depend on a mapped argument
    """,
)
def a_mapped_result_without_an_out_axis():
    vmap(lambda a: a, out_axes=None)(X3)


@refused(
    TypeError,
    """
    vmap: the argument mode: a str is not an array.
      got       'sum'
      expected  an Array, a NumPy array or a Python scalar
    """,
)
def an_argument_that_is_no_array():
    vmap(lambda a, mode: a)(X3, "sum")


@refused(
    TypeError,
    """
    vmap: expected a function, got an int.
    """,
)
def vmap_of_no_function():
    vmap(3)


@refused(
    NameError,
    """
    Found an unbound axis name: batch, in psum.
      got       the axis name 'batch' is not bound here; in scope: none
      expected  a name given as axis_name= by an enclosing vmap or pmap, or an axis of
                shard_map
    """,
)
def a_collective_outside_of_its_axis():
    lax.psum(X3, "batch")


@refused(
    NameError,
    """
    Found an unbound axis name: devices, in pmean.
      got       the axis name 'devices' is not bound here; in scope: 'batch'
      expected  a name given as axis_name= by an enclosing vmap or pmap, or an axis of
                shard_map
    """,
)
def a_collective_over_another_axis():
    vmap(lambda a: lax.pmean(a, "devices"), axis_name="batch")(X3)


@refused(
    NameError,
    """
    Found an unbound axis name: batch, in axis_index.
      got       the axis name 'batch' is not bound here; in scope: none
      expected  a name given as axis_name= by an enclosing vmap or pmap, or an axis of
                shard_map
    """,
)
def an_axis_index_inside_jit_alone():
    jit(lambda: lax.axis_index("batch"))()


@refused(
    ValueError,
    """
    pmap(<lambda>): the mapped axis has size 9, but there are only 8 devices.
      hint      XSTACK_NUM_CPU_DEVICES=9 in the environment makes as many virtual CPU devices;
                vmap needs none
    """,
)
def more_shards_than_devices():
    pmap(lambda x: x)(xnp.ones((9, 2)))


@refused(
    ValueError,
    """
    pmap(<lambda>): the mapped axes differ in size.
      got       x: float32[2,2] along axis 0; y: float32[3,2] along axis 0
    """,
)
def shards_of_two_numbers():
    pmap(lambda x, y: x)(xnp.ones((2, 2)), xnp.ones((3, 2)))


@refused(
    ValueError,
    """
    ppermute: each destination must be within the axis of size 2.
      got       destinations [5]
    """,
)
def a_permutation_to_a_member_that_is_not_there():
    pmap(lambda x: lax.ppermute(x, "i", [(0, 5)]), axis_name="i")(xnp.ones(2))


@pytest.mark.parametrize("case", refused, ids=str)
def test_the_message_about_batches_is_complete(case):
    case.check()
