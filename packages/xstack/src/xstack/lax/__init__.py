"""Operations with strict types, structured control flow, and the collectives.

The collectives come from `xpar`, which is imported when the first of them is used; what `xnp.lax`
imports late is imported late here, too.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

import xnp.lax
from xstack import compiler_on_demand

if TYPE_CHECKING:
    from xnp.lax import *  # noqa: F403 - the whole public namespace, by its __all__

_COLLECTIVES = (
    "all_gather", "all_gather_p", "all_to_all", "all_to_all_p", "axis_index", "axis_index_p",
    "axis_size", "pbroadcast", "pmax", "pmax_p", "pmean", "pmin", "pmin_p", "ppermute",
    "ppermute_p", "pshuffle", "psum", "psum_p", "psum_scatter", "pswapaxes",
)  # fmt: skip

__all__ = [  # noqa: PLE0604 - both are sequences of names
    *xnp.lax.__all__,
    *_COLLECTIVES,
]

compiler_on_demand.install()


def __getattr__(name: str) -> Any:
    if name == "linalg":
        return importlib.import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__]
        )
    owner = importlib.import_module("xpar.collectives") if name in _COLLECTIVES else xnp.lax
    value = globals()[name] = getattr(owner, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
