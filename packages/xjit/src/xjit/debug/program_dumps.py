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
from xprim.errors import message

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
        "The forms of the texts: 'stablehlo', 'jaxpr', or both, separated by a comma.",
        validate=lambda v: isinstance(v, str) and {*v.split(",")} <= {*_MODES},
    )
)  # fmt: skip
_numbers = itertools.count()


def dump(lowered: LoweredProgram, closed: ClosedJaxpr | None) -> None:
    """Write a program to the folder that `dump_ir_to` names; it is made where there is none.

    Raises:
      OSError: the folder cannot be made, or a file in it cannot be written.
    """
    folder, modes = Path(dump_ir_to.value), dump_ir_modes.value.split(",")
    text_by_suffix = {}
    if "stablehlo" in modes:
        text_by_suffix["mlir"] = lowered.text
    if "jaxpr" in modes and closed is not None:
        text_by_suffix["jaxpr.txt"] = str(closed)
    name = re.sub(r"[^\w.-]", "", lowered.name, flags=re.ASCII)[:_NAME_LENGTH]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_new(folder, name, text_by_suffix)
    except OSError as error:
        raise OSError(message(
            "config.dump_ir_to", "the program cannot be written to the folder.",
            got=f"{folder}: {error.strerror}", hint="XSTACK_DUMP_IR_TO= writes none",
        )) from error  # fmt: skip


# Names of files have at most 255 bytes, of which numbers and suffixes take up to 30.
_NAME_LENGTH = 200


def _write_new(folder: Path, name: str, text_by_suffix: dict[str, str]) -> None:
    """Write the texts of a program beside those that are there, from other processes, too."""
    for number in _numbers:
        try:
            for suffix, text in text_by_suffix.items():
                path = folder / f"ir{number:04d}_{name}.{suffix}"
                with path.open("x", encoding="utf-8") as file:
                    file.write(text)
        except FileExistsError:
            continue
        return
