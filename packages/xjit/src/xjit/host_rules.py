"""What a platform has no routine for: the NumPy rule of a primitive, called by the program.

A Python function is of its process, but a rule has a name that every process knows: a program that
is stored says the name and the params in the place of the function's number.
"""

from __future__ import annotations

import ast
import functools
import logging
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xjit.callbacks.primitive import CompiledCallback, callback_p
from xprim import Primitive, ShapedArray, get_primitive
from xtree.records import Record, set_once

if TYPE_CHECKING:
    from xjit.lowering.stablehlo_text import Builder

__all__ = ["HostRule", "is_rule", "named_rules", "numbered_rules", "write_on_host"]

__dir__ = __all__.copy

TARGET = "xstack_host_rule"
_CALL = re.compile(
    r'call_target_name = "xla_ffi_python_[cg]pu_callback"(.*?)backend_config = '
    r"\{index = (\d+) : ui64\}"
)
_CONFIG = re.compile(r'backend_config = \{rule = "(.*?)"\}')
_logger = logging.getLogger("xjit")


class HostRule(Record):
    """The NumPy rule of a primitive with its params, as programs call functions of Python."""

    __slots__ = __match_args__ = ("primitive", "params")
    primitive: Primitive
    params: tuple[tuple[str, Any], ...]

    def __init__(self, primitive: Primitive, params: tuple[tuple[str, Any], ...]) -> None:
        set_once(self, "primitive", primitive)
        set_once(self, "params", params)

    def __call__(
        self, operands: Sequence[np.ndarray[Any, Any]], avals: Sequence[ShapedArray]
    ) -> Sequence[np.ndarray[Any, Any]]:
        """Return the results for arrays on the host."""
        with np.errstate(all="ignore"):  # as eager operations run
            results: Sequence[Any] = self.primitive.rule("numpy")(*operands, **dict(self.params))
        return results

    def __str__(self) -> str:
        return f"the NumPy rule of {self.primitive}"


def write_on_host(
    b: Builder, primitive: Primitive, operands: Sequence[str], avals_in: Sequence[ShapedArray],
    avals_out: Sequence[ShapedArray], params: Mapping[str, Any],
) -> list[str]:  # fmt: skip
    """Write the call of a primitive's NumPy rule and return the names of its results."""
    _say(str(primitive), b.platform)
    host = HostRule(primitive, tuple(sorted(params.items())))
    rule = callback_p.rule("stablehlo")
    return list(rule(b, operands, avals_in, avals_out, host=host, effect=None))


@functools.lru_cache(maxsize=256)
def _say(name: str, platform: str) -> None:
    """Say once for each primitive and platform that the host computes it."""
    _logger.warning(
        "%s: no library of %s has it: the host computes it while the program runs, with copies of "
        "its operands and results (this is said once)", name, platform,
    )  # fmt: skip


def is_rule(function: Any) -> bool:
    """Return whether a function that a program calls is a rule, which every process has."""
    return isinstance(getattr(function, "host", None), HostRule)


def named_rules(text: str, functions: Sequence[Any]) -> str:
    """Return the text of a program to be stored: rules by their names, not by numbers.

    Args:
      text: of the program.
      functions: those that it calls, rules all of them.
    """

    def named(match: re.Match[str]) -> str:
        rule = functions[int(match[2])].host
        told = repr((rule.primitive.name, rule.params)).replace('"', "'")
        return f'call_target_name = "{TARGET}"{match[1]}backend_config = {{rule = "{told}"}}'

    return _CALL.sub(named, text)


def numbered_rules(text: str, platform: str, functions: list[Any]) -> str:
    """Return the text of a stored program with the numbers of its rules in another program.

    Args:
      text: what `named_rules` returned, or MLIR of it.
      platform: what the other program is written for.
      functions: those that it calls; the rules come after them.
    """
    kind = "cpu" if platform == "cpu" else "gpu"
    lines = text.split("\n")
    for i, line in enumerate(lines):
        found = _CONFIG.search(line) if TARGET in line else None
        if found is not None:
            name, params = ast.literal_eval(found[1])
            rule = HostRule(get_primitive(name), params)
            functions.append(CompiledCallback(rule, (), ordered=False))
            config = f"backend_config = {{index = {len(functions) - 1} : ui64}}"
            line = line.replace(TARGET, f"xla_ffi_python_{kind}_callback")
            lines[i] = line.replace(found[0], config)
    return "\n".join(lines)
