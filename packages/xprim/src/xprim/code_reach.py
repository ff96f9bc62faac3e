"""What a code object can reach by name: globals, enclosing variables, and attributes of modules.

`reach_of(code)` reads the instructions once (it is remembered by code). A `Chain` is a name and the
attributes that are read from it at once: `np.random.normal` is `("np", "random", "normal")`. A name
that is used in any other way - passed on, stored, returned - is a chain of length one.

What an attribute chain does not show (a module handed to a helper, `getattr`, `globals()`, writes
to globals) is not guessed at: see `Reach.obstacle` and `function_keys`.
"""

from __future__ import annotations

import dis
import functools
import re
from dataclasses import dataclass
from types import CodeType
from typing import Any

__all__ = ()

Chain = tuple[str, ...]

_GLOBAL_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_CELL_LOADS = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTE_LOADS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_ATTRIBUTE_WRITES = frozenset({"STORE_ATTR", "DELETE_ATTR"})
# These name something, but reach nothing from outside: locals of a class body, `super().name`.
_HARMLESS = frozenset({"STORE_NAME", "DELETE_NAME", "LOAD_SUPER_ATTR"})
_WRITES = {
    "STORE_GLOBAL": "it writes the global",
    "DELETE_GLOBAL": "it deletes the global",
    "IMPORT_NAME": "it imports",
}
_CELL_WRITES = frozenset({"STORE_DEREF", "DELETE_DEREF"})
_PADDING = frozenset({"EXTENDED_ARG", "CACHE", "NOP"})
# What Python and the standard library keep in a class for themselves: a walk through what is
# reached passes it by.
BOOKKEEPING = frozenset(
    "_abc_impl _field_defaults __abstractmethods__ __annotate__ __annotate_func__ __annotations__ "
    "__annotations_cache__ __dataclass_fields__ __dataclass_params__ __dict__ __doc__ "
    "__firstlineno__ __orig_bases__ __parameters__ __slots__ __static_attributes__ "
    "__type_params__ __weakref__".split()
)
# Attributes through which code reaches what it does not name.
_REFLECTION = (BOOKKEEPING - {"__dict__"}) | frozenset(
    "__builtins__ __closure__ __code__ __getattribute__ __globals__ __subclasses__ "
    "cell_contents cr_frame f_back f_builtins f_globals f_locals gi_frame tb_frame".split()
)
_NAMED_IN_TEXT = re.compile("|".join(sorted(_REFLECTION)))


@dataclass(frozen=True, slots=True)
class Reach:
    """What a code object, and those inside it, can reach.

    Attributes:
      globals: the chains that start at a global or builtin name, sorted.
      cells: the chains that start at an enclosing variable, sorted.
      attributes: the names of all attributes that it reads.
      obstacle: why this is not all that it reaches, or an empty string.
      has_sets: whether it holds sets of constants, which are equal in whatever order they come.
    """

    globals: tuple[Chain, ...]
    cells: tuple[Chain, ...]
    attributes: frozenset[str]
    obstacle: str
    has_sets: bool


@functools.lru_cache(maxsize=4096)
def reach_of(code: CodeType) -> Reach:
    """Return what a code object and those inside it reach.

    Example:
      >>> reach_of((lambda x: np.random.normal() + helper(x)).__code__).globals
      (('helper',), ('np', 'random', 'normal'))
    """
    found = _Scan(code)
    globals_, cells, obstacle = found.globals, found.cells, found.obstacle
    attributes, has_sets = found.attributes, False
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = reach_of(constant)
            globals_ |= set(inner.globals)
            cells |= {chain for chain in inner.cells if chain[0] not in code.co_cellvars}
            attributes |= inner.attributes
            obstacle = obstacle or _obstacle_outside(inner.obstacle, code)
            has_sets = has_sets or inner.has_sets
        elif isinstance(constant, frozenset):
            has_sets = True
        elif isinstance(constant, str):
            obstacle = obstacle or reflection_in(constant)
    return Reach(
        tuple(sorted(globals_)), tuple(sorted(cells)), frozenset(attributes), obstacle, has_sets
    )


def reflection_in(text: str) -> str:
    """Say what a string names that leads code to what it does not name; empty for nothing.

    Example:
      >>> reflection_in("{0.__globals__[scale]}")
      'a string names __globals__'
    """
    found = _NAMED_IN_TEXT.search(text)
    return f"a string names {found[0]}" if found else ""


def orders_of_sets(code: CodeType) -> tuple[Any, ...]:
    """Return the sets of constants of a code object, and of those inside it, in their orders."""
    return tuple([
        tuple(constant) if isinstance(constant, frozenset) else orders_of_sets(constant)
        for constant in code.co_consts if isinstance(constant, frozenset | CodeType)
    ])  # fmt: skip


_ASSIGNS = "it assigns the enclosing variable "


def _obstacle_outside(obstacle: str, code: CodeType) -> str:
    """Return the obstacle of an inner function, unless it only writes a variable of this one."""
    own = obstacle.startswith(_ASSIGNS) and obstacle[len(_ASSIGNS) :] in code.co_cellvars
    return "" if own else obstacle


class _Scan:
    """One pass over the instructions of one code object."""

    def __init__(self, code: CodeType) -> None:
        self.globals: set[Chain] = set()
        self.cells: set[Chain] = set()
        self.attributes: set[str] = set()
        self.obstacle = ""
        self._outer = frozenset(code.co_freevars)
        named = set()
        instructions = [i for i in dis.get_instructions(code) if i.opname not in _PADDING]
        for position, instruction in enumerate(instructions):
            if instruction.opcode in dis.hasname:
                named.add(str(instruction.argval))
            self._look_at(instructions, position)
        if not named.issuperset(code.co_names):  # an instruction that this module does not know
            self._obstruct(f"it uses names in a way unknown here: {sorted(code.co_names)}")

    def _look_at(self, instructions: list[dis.Instruction], position: int) -> None:
        instruction = instructions[position]
        operation, name = instruction.opname, str(instruction.argval)
        if operation in _GLOBAL_LOADS:
            self.globals.add(self._chain(instructions, position))
        elif operation in _CELL_LOADS:
            if name in self._outer:
                self.cells.add(self._chain(instructions, position))
        elif operation in _ATTRIBUTE_LOADS:
            self.attributes.add(name)
            if name in _REFLECTION:
                self._obstruct(f"it reads {name}")
        elif operation in _WRITES:
            self._obstruct(f"{_WRITES[operation]} {name}")
        elif operation in _CELL_WRITES:
            if name in self._outer:
                self._obstruct(_ASSIGNS + name)
        elif instruction.opcode in dis.hasname and operation not in (
            _HARMLESS | _ATTRIBUTE_WRITES | {"IMPORT_FROM"}
        ):
            self._obstruct(f"it uses {name} by {operation}")

    def _chain(self, instructions: list[dis.Instruction], position: int) -> Chain:
        """Return the name at a position with the attributes that are read from it at once."""
        first = instructions[position]
        chain = [str(first.argval)]
        for following in instructions[position + 1 :]:
            if following.opname in _ATTRIBUTE_LOADS:
                chain.append(str(following.argval))
                continue
            if following.opname in _ATTRIBUTE_WRITES:
                self._obstruct(f"it writes {'.'.join(chain)}.{following.argval}")
            break
        return tuple(chain)

    def _obstruct(self, why: str) -> None:
        self.obstacle = self.obstacle or why
