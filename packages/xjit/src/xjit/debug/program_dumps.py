"""The option `dump_ir_to`: the text of each program that is compiled, in a file of its own.

`XSTACK_DUMP_IR_TO=folder` (or `config.update("dump_ir_to", "folder")`) writes the StableHLO text of
programs there, numbered in the order in which their executables are requested, those found in
caches included. The option `dump_ir_modes` names the forms: `stablehlo`, `jaxpr`, or both.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

from xprim import config

if TYPE_CHECKING:
    from xjit.lowering.modules import LoweredProgram
    from xprim import ClosedJaxpr

__all__ = ["dump_ir_modes", "dump_ir_to"]

__dir__ = __all__.copy

_MODES = ("stablehlo", "jaxpr")

dump_ir_to = config.define(
    config.Option("dump_ir_to", "", "The folder for the texts of compiled programs.", kind=str)
)
dump_ir_modes = config.define(
    config.Option(
        "dump_ir_modes", "stablehlo",
        "In which forms: 'stablehlo', 'jaxpr', or both, separated by a comma.",
        validate=lambda v: isinstance(v, str) and {*v.split(",")} <= {*_MODES},
    )
)  # fmt: skip
_numbers = itertools.count()


def dump(lowered: LoweredProgram, closed: ClosedJaxpr | None) -> None:
    """Write a program to the folder that `dump_ir_to` names; it is made where there is none."""
    folder, modes = Path(dump_ir_to.value), dump_ir_modes.value.split(",")
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.-]", "", lowered.name)
    start = folder / f"ir{next(_numbers):04d}_{name}"
    if "stablehlo" in modes:
        start.with_name(f"{start.name}.mlir").write_text(lowered.text, encoding="utf-8")
    if "jaxpr" in modes and closed is not None:
        start.with_name(f"{start.name}.jaxpr.txt").write_text(str(closed), encoding="utf-8")
