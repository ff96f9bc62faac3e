"""The messages about meshes, partition specs and shardings, and of `shard_map`."""

import numpy as np
import pytest

import xpar
import xstack.numpy as xnp
from tests.errors.refusals import Refusals
from xjit.jaxlib_gateway import XlaError
from xjit.sharding.layouts import Layout
from xjit.sharding.shardings import NoMeshError
from xstack import (
    NamedSharding,
    P,
    device_put,
    devices,
    jit,
    lax,
    make_array_from_single_device_arrays,
    make_mesh,
    pmap,
    set_mesh,
    shard_map,
    smap,
    vmap,
)
from xstack.sharding import AbstractMesh, AxisType, Mesh, reshard, use_abstract_mesh

refused = Refusals()

MESH = make_mesh((4, 2), ("x", "y"), AxisType.Auto, devices=devices("cpu")[:8])
HALF = make_mesh((4,), ("x",), AxisType.Auto, devices=devices("cpu")[:4])
ROWS, COLUMNS = NamedSharding(MESH, P("x")), NamedSharding(MESH, P(None, "x"))
ARRAY = np.ones((8, 3), np.float32)


@refused(
    ValueError,
    """
    make_mesh: there are too few devices. Number of devices must be >= 64.
      got       8 devices for the shape (64,)
      hint      XSTACK_NUM_CPU_DEVICES=64 in the environment makes as many virtual CPU devices
    """,
)
def a_mesh_of_more_devices_than_there_are():
    make_mesh((64,), ("x",))


@refused(
    ValueError,
    """
    Mesh: a device occurs twice.
      got       cpu:0
    """,
)
def a_mesh_with_a_device_twice():
    Mesh([devices("cpu")[0]] * 2, ("x",))


@refused(
    ValueError,
    """
    NamedSharding: the mesh has no axis 'z'.
      got       PartitionSpec('z') for Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto))
      expected  names among 'x', 'y'
    """,
)
def an_axis_that_the_mesh_does_not_have():
    NamedSharding(MESH, P("z"))


@refused(
    ValueError,
    """
    PartitionSpec: the axis name 'x' occurs twice.
      got       PartitionSpec('x', 'x')
      expected  each axis of a mesh shards at most one dimension
    """,
)
def an_axis_twice_in_a_spec():
    P("x", "x")


@refused(
    TypeError,
    """
    PartitionSpec: unreduced takes a set of axis names.
      got       unreduced='y'
      hint      unreduced={'x'}
    """,
)
def a_spec_of_parts_along_axes_that_are_no_set():
    P("x", unreduced="y")


@refused(
    ValueError,
    """
    NamedSharding: the axis 'x' is of type Auto, and only types say what is a part of a sum.
      got       PartitionSpec(unreduced={'x'}) for Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto))
      hint      make_mesh(..., axis_types=AxisType.Explicit)
    """,
)
def parts_of_a_sum_along_an_axis_of_the_compiler():
    NamedSharding(MESH, P(unreduced={"x"}))


@refused(
    ValueError,
    """
    device_put: the partition spec has more entries than the array has dimensions.
      got       PartitionSpec(None, 'x') for the shape (8,)
      expected  at most 1 entries
    """,
)
def a_spec_longer_than_the_rank():
    device_put(ARRAY[:, 0], COLUMNS)


@refused(
    ValueError,
    """
    device_put: dimension 1 does not divide evenly over the mesh.
      got       size 3 of the shape (8, 3), sharded along 'x'
      expected  a multiple of 4
      hint      pad it by 1: xpar.pad_for_sharding(x, sharding) does, and slice the result
    """,
)
def a_size_that_does_not_divide():
    device_put(ARRAY, COLUMNS)


@refused(
    NoMeshError,
    """
    device_put: a partition spec needs a mesh, and none is set.
      got       PartitionSpec('x')
      hint      give NamedSharding(mesh, spec), or call it inside `with set_mesh(mesh):`
    """,
)
def a_spec_without_a_mesh():
    device_put(ARRAY, P("x"))


@refused(
    ValueError,
    """
    with_sharding_constraint: the axis 'x' is of type Manual inside of shard_map.
      got       PartitionSpec('x')
      expected  other axes of the mesh: each member has its own piece
    """,
)
def a_constraint_along_an_axis_of_members():
    def member(a):
        return lax.with_sharding_constraint(a, ROWS)

    shard_map(member, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(ARRAY)


@refused(
    ValueError,
    """
    shard_map(inner): the axis 'x' is of type Manual already, inside of another shard_map.
      got       axis_names=('x',)
    """,
)
def a_member_of_members_along_the_same_axis():
    def inner(a):
        return a

    def outer(a):
        rest = {"in_specs": P(), "out_specs": P(), "axis_names": {"x"}}
        return shard_map(inner, mesh=MESH, **rest)(a)

    shard_map(outer, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(ARRAY)


@refused(
    ValueError,
    """
    Received incompatible devices for jitted computation: those of the arguments of add_up.
      got       a: float32[8,3] on 8 devices, cpu:0 to cpu:7
                b: float32[8,3] on 4 devices, cpu:0 to cpu:3
      hint      bring them together with device_put(x, device)
    """,
)
def arrays_on_two_meshes():
    def add_up(a, b):
        return a + b

    jit(add_up)(device_put(ARRAY, ROWS), device_put(ARRAY, NamedSharding(HALF, P("x"))))


@refused(
    ValueError,
    """
    jit(double): in_shardings of v: dimension 1 does not divide evenly over the mesh.
      got       size 3 of the shape (8, 3), sharded along 'x'
      expected  a multiple of 4
      hint      pad it by 1: xpar.pad_for_sharding(x, sharding) does, and slice the result
    """,
)
def an_argument_that_does_not_divide():
    def double(v):
        return v * 2

    jit(double, in_shardings=COLUMNS)(ARRAY)


@refused(
    RuntimeError,
    """
    Array has been deleted with shape=float32[8,3]: it was donated to <lambda>.
      hint      use what the call returns, x = f(x), or leave the argument out of donate_argnums
    """,
)
def a_spread_array_that_was_donated():
    x = device_put(ARRAY, ROWS)
    jit(lambda v: v * 2, donate_argnums=0)(x)
    x.addressable_shards  # noqa: B018


@refused(
    ValueError,
    """
    shard_map(mean): result 0 varies over the axis 'x', but out_specs require replication.
      got       out_specs PartitionSpec() for float32[]{V:x} on each device, statically inferred
      where     test_meshes.py:LINE in mean
      hint      psum, pmean or pmax over 'x' makes it the same for all;
                all_gather does with to='invarying'; or name the axis in out_specs;
                check_vma=False takes the value of one member
    """,
)
def a_missing_collective():
    def mean(v):
        return xnp.mean(v)

    shard_map(mean, mesh=MESH, in_specs=P("x"), out_specs=P())(ARRAY)


@refused(
    NameError,
    """
    Found an unbound axis name: z, in psum.
      got       the axis name 'z' is not bound here; in scope: 'x', 'y'
      expected  a name given as axis_name= by an enclosing vmap or pmap, or an axis of
                shard_map
    """,
)
def a_collective_over_an_axis_that_is_not_bound():
    shard_map(lambda v: lax.psum(v, "z"), mesh=MESH, in_specs=P(), out_specs=P())(ARRAY)


@refused(
    TypeError,
    """
    shard_map(<lambda>): types do not say how arguments are sharded along the axis 'x'.
      got       Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto))
      expected  in_specs, or axes of type Explicit
    """,
)
def specs_of_arguments_that_no_type_says():
    shard_map(lambda v: v, mesh=MESH, out_specs=P("x"))(ARRAY)


@refused(
    ValueError,
    """
    use_abstract_mesh: a mesh of 8 devices cannot be one of 4.
      got       AbstractMesh('a': 4, axis_types=(Explicit,))
      expected  axis sizes whose product is 8
    """,
)
def a_mesh_of_fewer_devices_inside_a_program():
    def program(v):
        with use_abstract_mesh(AbstractMesh((4,), ("a",), AxisType.Explicit)):
            return reshard(v, P("a")) * 2

    with set_mesh(MESH):
        jit(program)(device_put(ARRAY, P("x")))


@refused(
    RuntimeError,
    """
    Array has been deleted with shape=float32[8,3]: it was deleted by x.delete().
    """,
)
def a_spread_array_that_was_deleted():
    x = device_put(ARRAY, ROWS)
    x.delete()
    jit(lambda v: v * 2)(x)


@refused(
    XlaError,
    """
    Array: memory of this float32[8,3] was deleted or donated.
      hint      pieces (addressable_shards) share the memory of their array: copy one,
                xnp.array(piece), before either is deleted or donated
    """,
)
def a_shard_that_was_deleted():
    x = device_put(ARRAY, ROWS)
    x.addressable_shards[1].data.delete()
    jit(lambda v: v.sum(0))(x)


@refused(
    ValueError,
    """
    make_array_from_single_device_arrays: there must be one array on each device of the sharding.
      got       arrays on ['cpu:0', 'cpu:1', 'cpu:2']
      expected  ['cpu:0', 'cpu:1', 'cpu:2', 'cpu:3', 'cpu:4', 'cpu:5', 'cpu:6', 'cpu:7']
    """,
)
def an_array_of_fewer_shards_than_the_mesh_has():
    pieces = [device_put(ARRAY[:2], d) for d in devices("cpu")[:3]]
    make_array_from_single_device_arrays((8, 3), ROWS, pieces)


@refused(
    ValueError,
    """
    make_array_from_single_device_arrays: a piece has another shape. Expected shard shape (2, 3) doesn't match the single device array shape (3, 3).
      got       float32[3, 3]
      expected  float32[2, 3]
    """,  # noqa: E501
)
def a_shard_of_another_shape():
    pieces = [device_put(ARRAY[:3], d) for d in devices("cpu")[:8]]
    make_array_from_single_device_arrays((8, 3), ROWS, pieces)


@refused(
    ValueError,
    """
    jit(<lambda>): out_shardings of result 0: dimension 0 does not divide evenly over the mesh.
      got       size 3 of the shape (3, 3), sharded along 'x'
      expected  a multiple of 4
      hint      pad it by 1: xpar.pad_for_sharding(x, sharding) does, and slice the result
    """,
)
def a_result_that_does_not_divide():
    jit(lambda v: v[:3], out_shardings=ROWS)(ARRAY)


@refused(
    ValueError,
    """
    with_sharding_constraint: the partition spec has more entries than the array has dimensions.
      got       PartitionSpec('x') for the shape ()
      expected  at most 0 entries
    """,
)
def a_constraint_longer_than_the_rank():
    jit(lambda v: lax.with_sharding_constraint(v.sum(), ROWS))(ARRAY)


@refused(
    ValueError,
    """
    shard_map(<lambda>): in_specs of v: dimension 1 does not divide evenly over the mesh.
      got       size 3 of the shape (8, 3), sharded along 'x'
      expected  a multiple of 4
      hint      pad it by 1: xpar.pad_for_sharding(x, sharding) does, and slice the result
    """,
)
def a_piece_that_does_not_divide():
    shard_map(lambda v: v, mesh=MESH, in_specs=P(None, "x"), out_specs=P(None, "x"))(ARRAY)


@refused(
    ValueError,
    """
    pmap(<lambda>): the mapped axis has size 64, but there are only 8 devices.
      hint      XSTACK_NUM_CPU_DEVICES=64 in the environment makes as many virtual CPU devices;
                vmap needs none
    """,
)
def more_slices_than_devices():
    pmap(lambda v: v)(np.ones((64, 2), np.float32))


@refused(
    ValueError,
    """
    Mesh: there must be a name for each of 2 axes.
      got       axis_names=('x',) for the shape (4, 2)
    """,
)
def a_mesh_with_too_few_names():
    Mesh(np.array(devices("cpu")[:8]).reshape(4, 2), ("x",))


@refused(
    ValueError,
    """
    Mesh: each axis must have its own name.
      got       axis_names=('x', 'x')
    """,
)
def a_mesh_with_a_name_twice():
    make_mesh((4, 2), ("x", "x"))


@refused(
    ValueError,
    """
    shard_map(<lambda>): in_specs of v: the axis 'y' is not among axis_names.
      got       PartitionSpec('y'), axis_names=('x',)
    """,
)
def an_axis_that_is_not_written_by_hand():
    shard_map(lambda v: v, mesh=MESH, in_specs=P("y"), out_specs=P("y"), axis_names={"x"})(ARRAY)


@refused(
    ValueError,
    """
    shard_map(<lambda>): in_specs must have an entry for each of 2 arguments.
      got       1 entries
    """,
)
def a_tree_of_specs_that_fits_no_arguments():
    shard_map(lambda a, b: a, mesh=MESH, in_specs=(P("x"),), out_specs=P("x"))(ARRAY, ARRAY)


@refused(
    ValueError,
    """
    ppermute: ppermute sources and destinations must be unique.
      got       destinations [1, 1]
    """,
)
def a_permutation_that_names_a_member_twice():
    shard_map(lambda v: lax.ppermute(v, "x", [(0, 1), (2, 1)]), mesh=MESH, in_specs=P("x"),
              out_specs=P("x"))(ARRAY)  # fmt: skip


@refused(
    ValueError,
    """
    pad_for_sharding: the partition spec has more entries than the array has dimensions.
      got       PartitionSpec(None, 'x', 'y') for the shape (8, 3)
      expected  at most 2 entries
    """,
)
def padding_for_a_spec_longer_than_the_rank():
    xpar.pad_for_sharding(ARRAY, NamedSharding(MESH, P(None, "x", "y")))


@refused(
    TypeError,
    """
    smap: it is along one axis.
      got       axis_name=('x', 'y')
      hint      shard_map takes several, in axis_names
    """,
)
def a_map_along_two_axes():
    smap(lambda a: a, in_axes=0, out_axes=0, axis_name=("x", "y"))


@refused(
    ValueError,
    """
    smap: dimensions are counted from the first, as in partition specs.
      got       out_axes with -1
    """,
)
def a_map_whose_dimension_is_counted_from_the_end():
    smap(lambda a: a, in_axes=0, out_axes=-1, axis_name="x")


@refused(
    ValueError,
    """
    shard_map(<lambda>): the context mesh has other axes.
      got       mesh=AbstractMesh('a': 8, axis_types=(Explicit,))
                set: Mesh('x': 4, axis_types=(Auto,))
      hint      make the abstract mesh of it, mesh.abstract_mesh, or set another mesh
    """,
)
def a_map_over_another_mesh_than_the_one_that_is_set():
    far = AbstractMesh((8,), ("a",))
    with set_mesh(HALF):
        shard_map(lambda a: a, mesh=far, in_specs=P("a"), out_specs=P("a"))(ARRAY)


@refused(
    NoMeshError,
    """
    compile: the program is over a mesh without devices.
      got       AbstractMesh('far': 64, axis_types=(Explicit,))
      hint      lower and compile it inside `with set_mesh(mesh):`; export stores it as it is
    """,
)
def a_program_for_devices_that_are_not_here():
    far = AbstractMesh((64,), ("far",))
    f = jit(shard_map(lambda a: a, mesh=far, in_specs=P("far"), out_specs=P("far")))
    f.trace(np.ones(64, np.float32)).lower(lowering_platforms=("cpu",)).compile()


@refused(
    ValueError,
    """
    vmap of shard_map(<lambda>): spmd_axis_name 'x' is used by the function already.
      expected  axes of the mesh that its specs and collectives do not name
      hint      leave spmd_axis_name out
    """,
)
def examples_cut_along_an_axis_that_is_used():
    f = shard_map(lambda a: a, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    vmap(f, spmd_axis_name="x")(ARRAY.T)


@refused(
    ValueError,
    """
    vmap of shard_map(<lambda>): 3 examples do not divide evenly along spmd_axis_name ('y',).
      expected  a multiple of 2
      hint      pad the batch, or leave spmd_axis_name out
    """,
)
def examples_that_do_not_divide():
    f = shard_map(lambda a: a, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    vmap(f, spmd_axis_name="y")(ARRAY.T)


@refused(
    ValueError,
    """
    device_put: the placements are not a tree prefix of the values.
      got       broadcast: the prefix and the full tree differ: different keys.
                  got       the full tree: a dict without the keys ['b'] and with the \
additional keys ['a']
                  expected  a dict with the keys ['b'], as in the prefix
      expected  one place for all, or a tree of places like the tree of arrays
    """,
)
def places_for_another_tree():
    device_put({"a": ARRAY}, {"b": ROWS})


@refused(
    TypeError,
    """
    Layout: major_to_minor is a sequence of the numbers of dimensions.
      got       an int
      hint      Layout((1, 0)) lays columns one by one
    """,
)
def a_layout_of_one_number():
    Layout(3)


@pytest.mark.parametrize("case", refused, ids=str)
def test_the_message_about_meshes_is_complete(case):
    case.check()
