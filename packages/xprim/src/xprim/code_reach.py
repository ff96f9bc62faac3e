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
from dataclasses import dataclass
from types import CodeType

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
# Attributes through which code reaches what it does not name.
_REFLECTION = frozenset(
    "__annotations__ __builtins__ __closure__ __doc__ __getattribute__ __globals__ __subclasses__ "
    "cell_contents cr_frame f_back f_builtins f_globals f_locals gi_frame tb_frame".split()
)


@dataclass(frozen=True, slots=True)
class Reach:
    """What a code object, and those inside it, can reach.

    Attributes:
      globals: the chains that start at a global or builtin name, sorted.
      cells: the chains that start at an enclosing variable, sorted.
      attributes: the names of all attributes that it reads.
      obstacle: why this is not all that it reaches, or an empty string.
    """

    globals: tuple[Chain, ...]
    cells: tuple[Chain, ...]
    attributes: frozenset[str]
    obstacle: str


@functools.lru_cache(maxsize=4096)
def reach_of(code: CodeType) -> Reach:
    """Return what a code object and those inside it reach.

    Example:
      >>> reach_of((lambda x: np.random.normal() + helper(x)).__code__).globals
      (('helper',), ('np', 'random', 'normal'))
    """
    found = _Scan(code)
    globals_, cells, obstacle = found.globals, found.cells, found.obstacle
    attributes = found.attributes
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = reach_of(constant)
            globals_ |= set(inner.globals)
            cells |= {chain for chain in inner.cells if chain[0] not in code.co_cellvars}
            attributes |= inner.attributes
            obstacle = obstacle or _obstacle_outside(inner.obstacle, code)
    return Reach(tuple(sorted(globals_)), tuple(sorted(cells)), frozenset(attributes), obstacle)


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
