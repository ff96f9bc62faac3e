"""Operations with strict types, structured control flow, and the collectives.

The collectives come from `xpar`, which is imported when the first of them is used.
"""

import importlib
from typing import Any

import xnp.lax
from xnp.lax import *  # noqa: F403 - the whole public namespace, by its __all__
from xstack import compiler_on_demand

_COLLECTIVES = (
    "all_gather", "all_gather_p", "all_to_all", "all_to_all_p", "axis_index", "axis_index_p",
    "axis_size", "pbroadcast", "pmax", "pmax_p", "pmean", "pmin", "pmin_p", "ppermute",
    "ppermute_p", "pshuffle", "psum", "psum_p", "psum_scatter", "pswapaxes",
)  # fmt: skip

__all__ = [  # noqa: PLE0604 - both are sequences of names
    *(name for name in dir(xnp.lax) if not name.startswith("_")),
    *_COLLECTIVES,
]

compiler_on_demand.install()


def __getattr__(name: str) -> Any:
    if name in _COLLECTIVES:
        return getattr(importlib.import_module("xpar.collectives"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
