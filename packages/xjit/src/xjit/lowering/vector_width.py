"""The width of vector registers that XLA compiles CPU programs for.

XLA uses 256 bits of the 512 that newer processors have, since older ones lower their clock where
all are used. Programs of transcendental functions and random bits take half the time with 512;
copies gain nothing, so they are compiled as XLA does.

What: `with_wide_registers`, the settings of XLA for a program by its text and its processor. A
setting of the user, as an option or in `XLA_FLAGS`, goes before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from xjit import jaxlib_gateway as gateway

__all__ = ()

_OPTION = "xla_cpu_prefer_vector_width"
_COMPUTES = re.compile(
    r"\b(?:stablehlo\.(?:exponential|log|logistic|tanh|power|rsqrt|bitcast_convert|xor)|chlo\.)"
)


def with_wide_registers(
    options: Mapping[str, Any] | None, text: str, platform: str
) -> Mapping[str, Any] | None:
    """Return the settings of XLA with which a program uses the registers that suit it.

    Args:
      options: settings of XLA by name.
      text: the StableHLO of the program.
      platform: what it is compiled for.
    """
    if platform != "cpu" or not gateway.has_wide_registers() or not _COMPUTES.search(text):
        return options
    if _OPTION in (options or {}) or _OPTION in os.environ.get("XLA_FLAGS", ""):
        return options
    return {**(options or {}), _OPTION: 512}
