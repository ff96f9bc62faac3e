"""What peers call experimental, under their names: `checkify`, `jet`, `ode`, `sparse`, ..."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xjit.callbacks.functions import io_callback as io_callback
    from xstack.experimental import (
        checkify as checkify, compilation_cache as compilation_cache, compute_on as compute_on,
        custom_partitioning as custom_partitioning, hijax as hijax, jet as jet, layout as layout,
        mesh_utils as mesh_utils, multihost_utils as multihost_utils, ode as ode, pjit as pjit,
        random as random, scheduling_groups as scheduling_groups,
        serialize_executable as serialize_executable, shard_map as shard_map, sparse as sparse,
        topologies as topologies, xla_metadata as xla_metadata,
    )  # fmt: skip
