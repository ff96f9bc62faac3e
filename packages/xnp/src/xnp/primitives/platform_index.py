"""platform_index: the place of the platform in a list, known when a program is lowered.

Evaluated without a compiler, or by one whose default platform is the CPU, the platform is `cpu`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xprim import EAGER, ZERO, Primitive, dtypes, shaped_array, undefined

_ALIASES = {"cuda": ("cuda", "gpu"), "rocm": ("rocm", "gpu")}


def _place(platform: str, platforms: tuple[str, ...], has_default: bool) -> int:
    for name in _ALIASES.get(platform, (platform,)):
        if name in platforms:
            return platforms.index(name)
    if has_default:
        return len(platforms)
    raise ValueError(
        f"platform_dependent: there is no function for the platform {platform!r}."
        f"\n  got       functions for {', '.join(platforms)}"
        "\n  hint      default= serves every other platform"
    )


def _shape(*, platforms: tuple[str, ...], has_default: bool) -> Any:
    return (shaped_array((), dtypes.int32),)


def _numpy(*, platforms: tuple[str, ...], has_default: bool) -> Any:
    platform = getattr(EAGER.backend, "platform", "cpu")
    return (np.asarray(_place(platform, platforms, has_default), np.int32),)


def _stablehlo(b: Any, operands: Any, avals_in: Any, avals_out: Any, *,
               platforms: tuple[str, ...], has_default: bool) -> Any:  # fmt: skip
    return [b.scalar(_place(b.platform, platforms, has_default), dtypes.int32)]


platform_index_p = Primitive(
    "platform_index",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=ZERO,
    transpose=undefined("it has no operands"),
    batch=undefined("it has no operands"),
)
