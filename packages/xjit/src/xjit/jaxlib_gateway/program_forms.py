"""The forms of a program before it is compiled: XLA's own notation, and a module of MLIR.

What: `hlo_computation`, `stablehlo_module` and `estimated_cost`.
Neighbours: `executables` compiles programs, and shows them as XLA has optimised them.
"""

from __future__ import annotations

from typing import Any

from .clients import client
from .runtime import RuntimeFailure, _jax, fail

__all__ = ()


def hlo_computation(text: str) -> Any:
    """Return the program of a StableHLO text as XLA reads it, before any optimisation.

    Returns:
        jaxlib's `XlaComputation`, which has `as_hlo_text` and `as_serialized_hlo_module_proto`.

    Raises:
        XlaError: it is no StableHLO.
    """
    try:
        return _jax.mlir.mlir_module_to_xla_computation(text, False, False)
    except (RuntimeFailure, ValueError) as error:
        fail("hlo_computation", "XLA refused the program", error)


def stablehlo_module(text: str) -> Any:
    """Return the MLIR module of a StableHLO text, with a context of its own.

    Raises:
        XlaError: it is no StableHLO.
    """
    from .mlir_modules import parse_module  # MLIR costs 30 ms

    return parse_module(text)


def estimated_cost(text: str, platform: str) -> dict[str, float]:
    """Return XLA's estimates for a program before it is compiled, by name, such as `flops`."""
    module = hlo_computation(text).get_hlo_module()
    return dict(_jax.hlo_module_cost_analysis(client(platform), module))
