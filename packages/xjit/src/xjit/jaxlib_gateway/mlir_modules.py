"""Parse StableHLO text into an MLIR module, for the programs that call Python.

What: `parse_module`.
Idea: the runtime takes Python callbacks only with a module, not with text. Nothing else needs
MLIR, so this file is imported on the first such program. A context is made for each parse and
dropped with the module: contexts keep all they have seen.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo

from .runtime import fail

__all__ = ()


def new_context() -> Any:
    """Return a context that knows the dialects of programs.

    It loads each when it is first read: to load all takes four times as long as to read a program.
    """
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    return context


def twelve_weeks_old() -> str:
    """Return the version of StableHLO that every jaxlib of the last twelve weeks reads."""
    weeks = stablehlo.StablehloCompatibilityRequirement.WEEK_12
    return str(stablehlo.get_version_from_compatibility_requirement(weeks))


def parse_module(text: str) -> Any:
    """Return the MLIR module of `text`; raise `XlaError` where it is not StableHLO."""
    try:
        with new_context():
            return ir.Module.parse(text)
    except ir.MLIRError as error:
        fail("compile_program", "XLA refused the program", error)


def print_stablehlo(text: str, debug_info: bool) -> str:
    """Return `text` as MLIR prints it; raise `XlaError` where it is not StableHLO."""
    module = parse_module(text)
    return str(module.operation.get_asm(enable_debug_info=debug_info))
