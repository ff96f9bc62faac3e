"""Random numbers from splittable keys: the names of `xrandom`, each taken when it is first used."""

import sys
from typing import TYPE_CHECKING, Any

import xrandom
from xrandom import __all__ as __all__
from xstack import compiler_on_demand

if TYPE_CHECKING:
    from xrandom import *  # noqa: F403 - the whole public namespace, by its __all__

compiler_on_demand.install()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__]
        )
    value = globals()[name] = getattr(xrandom, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
