"""Operations with strict types, structured control flow, and the collectives.

The collectives come from `xpar`, which is imported when the first of them is used; what `xnp.lax`
imports late is imported late here, too.

Collectives: psum, pmean, pmax, pmin, psum_scatter, all_gather, all_to_all,
ragged_all_to_all, ppermute, pshuffle, pswapaxes, pbroadcast, axis_index,
axis_size, with_sharding_constraint, pcast, pvary.

Programs: composite, dce_sink.
"""

from xstack import compiler_on_demand
from xstack.namespaces import namespace

with namespace(globals(), overview="xnp.lax"):
    from xjit.lowering.annotations import composite as composite, dce_sink as dce_sink
    from xnp.lax import *  # noqa: F403 - the whole public namespace
    from xpar import (
        all_gather as all_gather, all_gather_p as all_gather_p, all_to_all as all_to_all,
        all_to_all_p as all_to_all_p, axis_index as axis_index, axis_index_p as axis_index_p,
        axis_size as axis_size, pbroadcast as pbroadcast, pcast as pcast, pmax as pmax,
        pmax_p as pmax_p, pmean as pmean, pmin as pmin, pmin_p as pmin_p, ppermute as ppermute,
        ppermute_p as ppermute_p, pshuffle as pshuffle, psum as psum, psum_p as psum_p,
        psum_scatter as psum_scatter, pswapaxes as pswapaxes, pvary as pvary,
        ragged_all_to_all as ragged_all_to_all, sharding_constraint_p as sharding_constraint_p,
        with_sharding_constraint as with_sharding_constraint,
    )  # fmt: skip
    from xstack.lax import linalg as linalg  # type: ignore[no-redef]

compiler_on_demand.install()
