"""Programs on several devices: meshes, `pmap`, and collectives that combine what devices have.

    make_mesh, set_mesh   devices in a grid with named axes
    NamedSharding, P      the sharding of an array on a mesh: `device_put`, `jit` take these
    auto_axes, explicit_axes   whether the compiler chooses it, or types say it
    with_sharding_constraint   how a value inside a program lies
    make_array_from_...   arrays from their pieces
    pmap                  one program on every device, a part of the data on each
    psum, ...             sums, extrema, gathers and permutations over a named axis
    distributed           several processes that work together
    multihost_utils       values that move between them
    checkpoints           trees of arrays that outlive the program
    inputs                batches of a data set, for any number of processes

The collectives work under `vmap(axis_name=...)` as well, on one device.
"""

from xprim import source
from xtree.namespaces import moved_modules, namespace

__version__ = "0.2.1"

# The names that public modules had in release 0.2, by where their contents are now.
moved_modules(__name__, """
        checkpoints: checkpoint_files
        distributed: process_watch program_agreement
        mesh_scopes: axis_scopes
        sharding_pictures: sharding_cells sharding_svg
""")  # fmt: skip

with namespace(globals(), at_once=True):
    from xjit.dispatch.sharded_arrays import (
        Shard as Shard, make_array_from_callback as make_array_from_callback,
        make_array_from_process_local_data as make_array_from_process_local_data,
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )  # fmt: skip
    from xjit.sharding.constraints import (
        sharding_constraint_p as sharding_constraint_p,
        with_sharding_constraint as with_sharding_constraint,
    )
    from xjit.sharding.meshes import (
        AbstractDevice as AbstractDevice, AbstractMesh as AbstractMesh, AxisType as AxisType,
        Mesh as Mesh,
    )  # fmt: skip
    from xjit.sharding.rules import ForbiddenCollectiveError as ForbiddenCollectiveError
    from xjit.sharding.shardings import (
        NamedSharding as NamedSharding, P as P, PartitionSpec as PartitionSpec,
        Sharding as Sharding, SingleDeviceSharding as SingleDeviceSharding,
        make_single_device_sharding as make_single_device_sharding,
    )  # fmt: skip
    from xpar._pmap import pmap as pmap, pmap_p as pmap_p
    from xpar._shard_map import (
        pcast as pcast, pvary as pvary, shard_map as shard_map, shard_map_p as shard_map_p,
    )  # fmt: skip
    from xpar._xmap import named_shape as named_shape, smap as smap, xmap as xmap
    from xpar.collectives import (
        all_gather as all_gather, all_gather_p as all_gather_p, all_to_all as all_to_all,
        all_to_all_p as all_to_all_p, axis_index as axis_index, axis_index_p as axis_index_p,
        axis_size as axis_size, pbroadcast as pbroadcast, pmax as pmax, pmax_p as pmax_p,
        pmean as pmean, pmin as pmin, pmin_p as pmin_p, ppermute as ppermute,
        ppermute_p as ppermute_p, pshuffle as pshuffle, psum as psum, psum_p as psum_p,
        psum_scatter as psum_scatter, pswapaxes as pswapaxes,
        ragged_all_to_all as ragged_all_to_all,
    )  # fmt: skip
    from xpar.communication import (
        assert_no_collectives as assert_no_collectives,
        explain_communication as explain_communication, pad_for_sharding as pad_for_sharding,
    )  # fmt: skip
    from xpar.mesh_scopes import (
        auto_axes as auto_axes, explicit_axes as explicit_axes,
        get_abstract_mesh as get_abstract_mesh, get_mesh as get_mesh, make_mesh as make_mesh,
        no_collectives as no_collectives, reshard as reshard, set_mesh as set_mesh,
        use_abstract_mesh as use_abstract_mesh, use_mesh as use_mesh,
    )  # fmt: skip
    from xpar.sharding_pictures import sharding_picture as sharding_picture
    from xprim.sharded_types import ShardingTypeError as ShardingTypeError

with namespace(globals()):  # the first use imports them
    from xpar import (
        checkpoints as checkpoints, distributed as distributed, inputs as inputs,
        mesh_utils as mesh_utils, multihost_utils as multihost_utils, topologies as topologies,
    )  # fmt: skip

source.hide(__file__)  # errors and equations show the user's lines, not ours
