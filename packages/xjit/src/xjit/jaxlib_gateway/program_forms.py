"""The forms of a program before it is compiled: XLA's own notation, and a module of MLIR.

What: `hlo_computation`, `hlo_text`, `stablehlo_module` and `estimated_cost`; `portable`, which
later releases read, and `text_of_portable`, its way back.
Idea: the portable form is written as of a version of StableHLO that is twelve weeks old, so that a
jaxlib of that age reads it, too, and later ones do for years
(https://github.com/openxla/stablehlo/blob/main/docs/compatibility.md). The runtime compiles it as
it is. What Shardy says of several devices stands in it unchanged.
Neighbours: `executables` compiles programs, and shows them as XLA has optimised them.
"""

from __future__ import annotations

from typing import Any

from jaxlib import _hlo

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


def hlo_text(text: str, *, with_metadata: bool) -> str:
    """Return the program of a StableHLO text in XLA's notation.

    Args:
        text: the program.
        with_metadata: whether operations are shown with their names and lines, where it has such.
    """
    computation = hlo_computation(text)
    if not with_metadata:
        return str(computation.as_hlo_text())
    options = _hlo.HloPrintOptions()
    options.print_metadata = True
    return str(computation.get_hlo_module().to_string(options))


def stablehlo_module(text: str) -> Any:
    """Return the MLIR module of a StableHLO text, with a context of its own.

    Raises:
        XlaError: it is no StableHLO.
    """
    from .mlir_modules import parse_module  # MLIR costs 30 ms

    return parse_module(text)


def portable(text: str) -> bytes:
    """Return the program of a StableHLO text in the portable form.

    Raises:
        XlaError: it is no StableHLO.
    """
    from .mlir_modules import twelve_weeks_old  # MLIR costs 30 ms

    try:
        return bytes(_jax.mlir.serialize_portable_artifact(text, twelve_weeks_old(), True))
    except (RuntimeFailure, ValueError) as error:
        fail("export", "the program has no portable form", error)


def text_of_portable(data: bytes) -> str:
    """Return the StableHLO text of a program in the portable form.

    Raises:
        XlaError: this jaxlib does not read it.
    """
    from .mlir_modules import new_context  # MLIR costs 30 ms

    try:
        with new_context() as context:
            return str(_jax.mlir.deserialize_portable_artifact(data, context))
    except (RuntimeFailure, ValueError) as error:
        fail("export", "this jaxlib does not read the program", error)


def estimated_cost(text: str, platform: str) -> dict[str, float]:
    """Return XLA's estimates for a program before it is compiled, by name, such as `flops`."""
    module = hlo_computation(text).get_hlo_module()
    own = client("cpu" if platform in ("rocm", "tpu") else platform)  # nobody has those here
    return dict(_jax.hlo_module_cost_analysis(own, module))
