"""Programs on several devices: `pmap`, and the collectives that combine what devices have.

    pmap          one program on every device, a part of the data on each
    psum, ...     sums, extrema, gathers and permutations over a named axis

The collectives work under `vmap(axis_name=...)` as well, on one device.
"""

from xprim import source
from xtree.namespaces import namespace

__version__ = "0.1.0"

with namespace(globals(), at_once=True):
    from xpar.collectives import (
        all_gather as all_gather,
        all_to_all as all_to_all,
        axis_index as axis_index,
        axis_size as axis_size,
        pbroadcast as pbroadcast,
        pmax as pmax,
        pmean as pmean,
        pmin as pmin,
        ppermute as ppermute,
        pshuffle as pshuffle,
        psum as psum,
        psum_scatter as psum_scatter,
        pswapaxes as pswapaxes,
    )
    from xpar.exchange_collectives import (
        all_gather_p as all_gather_p,
        all_to_all_p as all_to_all_p,
        axis_index_p as axis_index_p,
        ppermute_p as ppermute_p,
    )
    from xpar.pmap import pmap as pmap
    from xpar.pmap_primitive import pmap_p as pmap_p
    from xpar.reduction_collectives import (
        pmax_p as pmax_p,
        pmin_p as pmin_p,
        psum_p as psum_p,
    )

source.hide(__file__)  # errors and equations show the user's lines, not ours
