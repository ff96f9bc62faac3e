"""Programs in the portable form of StableHLO, and how they become part of another program.

What: `StoredModule`, one program as bytes; `module_text`, the text of what is stored: `main` takes
the kept arguments alone, and large constants are written into it.
Idea: the runtime compiles the portable form as it is, and it is what StableHLO promises to read
for years. A program that calls an exported one holds its functions, under names of their own.

Neighbours: `_export` makes these, `files` stores them, `exported_calls` writes the calls.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xjit import jaxlib_gateway as gateway
from xjit.host_rules import numbered_rules
from xjit.lowering import LoweredProgram
from xjit.shardy_text import declared
from xjit.stablehlo_constants import dense
from xjit.stablehlo_text import Builder, Module, type_text
from xprim import ShapedArray
from xprim.symbolic_dimensions import substituted_text

__all__ = ["StoredModule", "module_text", "stored_module"]

__dir__ = __all__.copy

_SYMBOL = re.compile(r"func\.func (?:public |private )?@([\w$.-]+)")
_MESH = re.compile(r"^ *sdy\.mesh @([\w$.-]+) = (.*)$", re.MULTILINE)
_MAIN_LINE = re.compile(r"func\.func public @main\(.*")
_MAIN = re.compile(r"func\.func public @main\((.*)\) -> \((.*)\) \{$", re.MULTILINE)
# What is said of an argument or a result: where it lies, whether its memory may be taken.
_SAID = re.compile(
    r" \{(?:(?:, )?(?:[\w.]+ = true|sdy\.sharding = #sdy\.sharding<@[\w$.-]+, \[[^]]*\]>))+\}"
)


@dataclass(frozen=True, eq=False)
class StoredModule:
    """One program whose function `main` takes and gives arrays.

    Attributes:
      portable: the program in StableHLO's portable form; one with symbolic dimensions is its text,
        compressed, with `$[2*b]` for a dimension.
      is_symbolic: whether it has symbolic dimensions.
    """

    portable: bytes
    is_symbolic: bool = False

    @functools.cached_property
    def text(self) -> str:
        """The program as StableHLO text."""
        if self.is_symbolic:
            return zlib.decompress(self.portable).decode()
        return gateway.text_of_portable(self.portable)

    def write_call(
        self, builder: Builder, operands: Any, avals_in: Any, avals_out: Any,
        values: Mapping[str, Any],
    ) -> Any:  # fmt: skip
        """Write a call of `main` into another program, which gets the functions when it is first.

        Args:
          builder: writes the other program.
          operands: names of the kept arguments.
          avals_in: their abstract values.
          avals_out: those of the results.
          values: of the variables of symbolic dimensions.

        Returns:
          The names of the results.
        """
        imported = builder.module.imported
        key = (self, *sorted(values.items()))
        if key not in imported:
            text = substituted_text(self.text, values) if self.is_symbolic else self.text
            text = numbered_rules(text, builder.platform, builder.module.callbacks)
            functions = with_meshes_of(builder.module, functions_of(text))
            functions, imported[key] = renamed_functions(builder.module, functions)
            builder.module.functions.append(functions)
        types_in = ", ".join(map(type_text, avals_in))
        types_out = ", ".join(map(type_text, avals_out))
        results = [builder.fresh() for _ in avals_out]
        left = f"{', '.join(results)} = " if results else ""
        called = f"func.call @{imported[key]}({', '.join(operands)})"
        builder.lines.append(f"{left}{called} : ({types_in}) -> ({types_out})")
        return results


def stored_module(text: str, is_symbolic: bool) -> StoredModule:
    """Return the program of a text, to be stored."""
    if is_symbolic:
        return StoredModule(zlib.compress(text.encode()), True)
    return StoredModule(gateway.portable(text))


def functions_of(text: str) -> str:
    """Return the functions of a module's text, without the module around them."""
    return text[text.index("{\n", text.index("module @")) + 2 : text.rindex("}")]


def renamed_functions(module: Module, functions: str) -> tuple[str, str]:
    """Return functions as private ones under names new to a module, and the name of `main`."""
    found = _SYMBOL.findall(functions)
    names = {name: module.symbol(name) for name in found}
    symbols = re.compile(rf"@({'|'.join(map(re.escape, found))})(?![\w$.-])")
    unsaid = _MAIN_LINE.sub(lambda match: _SAID.sub("", match[0]), functions)
    renamed = symbols.sub(lambda match: f"@{names[match[1]]}", unsaid)
    return renamed.replace("func.func public", "func.func private"), names["main"]


def with_meshes_of(module: Module, functions: str) -> str:
    """Return functions that name the meshes of a module, which gets those that it has not."""
    symbols = {name: declared(module, text) for name, text in _MESH.findall(functions)}
    if not symbols:
        return functions
    without = _MESH.sub("", functions)
    names = "|".join(map(re.escape, symbols))
    return re.sub(rf"<@({names})(?=, )", lambda match: f"<@{symbols[match[1]]}", without)


def module_text(lowered: LoweredProgram, in_avals: Any, out_avals: Any) -> str:
    """Return the text of a lowered program with its constants written into it.

    Args:
      lowered: the program.
      in_avals: the abstract values of the kept arguments.
      out_avals: those of the results.
    """
    if not lowered.constants:
        return lowered.text
    module = Module(_no_programs, _no_programs, lowered.platform)
    functions, symbol = renamed_functions(module, lowered.body)
    constants = [x.aval.stored for x in lowered.constants]
    arguments, results = [a.stored for a in in_avals], [a.stored for a in out_avals]
    names = _numbered("c", constants), _numbered("arg", arguments), _numbered("r", results)
    types_in, types_out = _types([*constants, *arguments]), _types(results)
    left, returned = (f"{names[2]} = ", f" {names[2]} : {types_out}") if results else ("", "")
    operands = ", ".join(filter(None, names[:2]))
    given, taken = _MAIN.search(lowered.body).groups()  # type: ignore[union-attr]
    head = given[given.index("%arg0: ") :] if arguments else ""
    lines = [
        *[f"%c{i} = stablehlo.constant {_dense(x)}" for i, x in enumerate(lowered.constants)],
        f"{left}func.call @{symbol}({operands}) : ({types_in}) -> ({types_out})",
        f"return{returned}",
    ]
    main = "\n".join([f"func.func public @main({head}) -> ({taken}) {{", *lines, "}"])
    return f"module @{lowered.name} {{\n{functions}\n{main}\n}}\n"


def _numbered(name: str, avals: list[ShapedArray]) -> str:
    return ", ".join([f"%{name}{i}" for i in range(len(avals))])


def _types(avals: list[ShapedArray]) -> str:
    return ", ".join(map(type_text, avals))


def _dense(array: Any) -> str:
    aval = array.aval.stored
    return dense(array.to_stored(), aval.strong(), type_text(aval.strong()))


def _no_programs(*_: Any) -> Any:
    raise AssertionError("a module of texts alone")
