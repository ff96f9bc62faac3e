"""The messages about meshes, partition specs and shardings, and of `shard_map`."""

import numpy as np
import pytest

import xstack.numpy as xnp
from tests.errors.refusals import Refusals
from xstack import NamedSharding, P, device_put, devices, jit, lax, make_mesh, shard_map
from xstack.sharding import Mesh

refused = Refusals()

MESH = make_mesh((4, 2), ("x", "y"), devices=devices("cpu")[:8])
HALF = make_mesh((4,), ("x",), devices=devices("cpu")[:4])
ROWS, COLUMNS = NamedSharding(MESH, P("x")), NamedSharding(MESH, P(None, "x"))
ARRAY = np.ones((8, 3), np.float32)


@refused(
    ValueError,
    """
    make_mesh: the shape takes 64 devices.
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
      expected  each axis of a mesh cuts at most one dimension
    """,
)
def an_axis_twice_in_a_spec():
    P("x", "x")


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
      got       size 3 of the shape (8, 3), cut along 'x'
      expected  a multiple of 4
      hint      pad it by 1: xpar.pad_for_sharding(x, sharding) does, and cut the result again
    """,
)
def a_size_that_does_not_divide():
    device_put(ARRAY, COLUMNS)


@refused(
    ValueError,
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
    add_up: the arguments were put on different devices.
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
      got       size 3 of the shape (8, 3), cut along 'x'
      expected  a multiple of 4
      hint      pad it by 1: xpar.pad_for_sharding(x, sharding) does, and cut the result again
    """,
)
def an_argument_that_does_not_divide():
    def double(v):
        return v * 2

    jit(double, in_shardings=COLUMNS)(ARRAY)


@refused(
    RuntimeError,
    """
    Array: this float32[8,3] was donated to <lambda> and has no value any more.
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
    shard_map(mean): result 0 varies over the axis 'x', which its spec does not name.
      got       out_specs PartitionSpec() for float32[] on each device
      where     test_meshes.py:LINE in mean
      hint      psum, pmean or all_gather over 'x' makes it the same for all;
                or name the axis in out_specs; check_vma=False takes the value of one member
    """,
)
def a_missing_collective():
    def mean(v):
        return xnp.mean(v)

    shard_map(mean, mesh=MESH, in_specs=P("x"), out_specs=P())(ARRAY)


@refused(
    NameError,
    """
    psum: the axis name 'z' is not bound here.
      got       axis names in scope: 'x', 'y'
      expected  a name given as axis_name= by an enclosing vmap or pmap, or an axis of
                shard_map
    """,
)
def a_collective_over_an_axis_that_is_not_bound():
    shard_map(lambda v: lax.psum(v, "z"), mesh=MESH, in_specs=P(), out_specs=P())(ARRAY)


@pytest.mark.parametrize("case", refused, ids=str)
def test_the_message_about_meshes_is_complete(case):
    case.check()
