"""Programs on several devices: `pmap`, and the collectives that combine what devices have.

    pmap          one program on every device, a part of the data on each
    psum, ...     sums, extrema, gathers and permutations over a named axis

The collectives work under `vmap(axis_name=...)` as well, on one device.
"""

from xpar.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pbroadcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
)
from xpar.pmap import pmap
from xpar.pmap_primitive import pmap_p
from xprim import source

__version__ = "0.1.0"

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pbroadcast",
    "pmap",
    "pmap_p",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pswapaxes",
]

source.hide(__file__)  # errors and equations show the user's lines, not ours
