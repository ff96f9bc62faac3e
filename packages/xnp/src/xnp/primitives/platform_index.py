"""platform_index: the place of the platform in a list, known when a program is lowered.

The operands are there for their place alone. Evaluated, those on an accelerator or a second device
take the operation there, as they take every other; else the platform is that of the default device,
and `cpu` without a compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xprim import EAGER, ZERO, Primitive, dtypes, not_mapped, shaped_array, undefined
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message
from xprim.platform_rules import names_of_platform

__all__ = ()


class NoPlatformError(NotImplementedError, ValueError):
    """No function is given for the platform of a program; caught as JAX's error, too."""


def _place(platform: str, platforms: tuple[str, ...], has_default: bool) -> int:
    for name in names_of_platform(platform):
        if name in platforms:
            return platforms.index(name)
    if has_default:
        return len(platforms)
    raise NoPlatformError(message(
        "platform_dependent", f"there is no function for the platform {platform!r}.",
        got=f"functions for {', '.join(platforms)}", hint="default= serves every other platform",
    ))  # fmt: skip


def _shape(*avals: Any, platforms: tuple[str, ...], has_default: bool) -> Any:
    return (shaped_array((), dtypes.int32),)


def _numpy(*operands: Any, platforms: tuple[str, ...], has_default: bool) -> Any:
    return (np.asarray(_place(EAGER.backend.platform(), platforms, has_default), np.int32),)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
               platforms: tuple[str, ...], has_default: bool) -> Any:  # fmt: skip
    return [b.scalar(_place(b.platform, platforms, has_default), dtypes.int32)]


def _batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    return platform_index_p.bind(*operands, **params), (not_mapped,)


platform_index_p = Primitive(
    "platform_index",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=ZERO,
    transpose=undefined("it is linear in nothing: its operands say where, not what"),
    batch=_batch,
)
