"""Programs of functions, kept for the next call with an equal function and equal types.

A program is kept under the key of all that it depends on, `argument_keys.program_key`, and without
the arrays that its function captured. Those become operands, to which the table refers weakly: they
die with the last function that holds XX
Neighbours: `staging` makes the programs; `checkpoint` and control flow keep theirs here.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import xtree
from xprim.argument_keys import ProgramKey
from xprim.avals import ShapedArray
from xprim.cells import Cell, CellUse
from xprim.function_keys import Identity, identities, identity_key
from xprim.jaxpr import ClosedJaxpr, holds_arrays
from xtree.bounded import remember

__all__ = ["Staged", "KeptPrograms"]

__dir__ = __all__.copy


@dataclass(frozen=True, slots=True)
class Staged:
    """A function as a program: the values that it captured go before its other operands."""

    closed: ClosedJaxpr
    captured: Sequence[Any]
    out_tree: Any
    cells: Sequence[CellUse] = ()
    """Cells that it writes: their values are its last arguments and its last results."""
    read: Sequence[CellUse] = ()
    """Cells that it only reads: their values are the first that it captured."""

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """The abstract values of the results, without those of cells."""
        avals = self.closed.out_avals
        return avals[: len(avals) - len(self.cells)]

    def result_leaves(self) -> Any:
        """Return the structure of the result with the numbers of its leaves in it."""
        return xtree.unflatten(self.out_tree, range(len(self.out_avals)))

    def with_arrays_captured(self) -> Staged:
        """Return the same with the arrays among its constants as operands that it captured."""
        closed = self.closed
        if not closed.consts:
            return self
        jaxpr = closed.jaxpr
        opened = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
        return Staged(ClosedJaxpr(opened), [*closed.consts, *self.captured], self.out_tree)


class KeptPrograms:
    """A table of programs by their keys.

    Args:
      limit: how many are kept; the table is emptied when there would be more.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept_by_key: dict[ProgramKey, _Kept] = {}

    def get_or_stage(
        self, fun: Callable[..., Any], key_of: Callable[[], ProgramKey | None],
        stage: Callable[[], Staged],
    ) -> Staged:  # fmt: skip
        """Return the program of a function, staged now unless it is kept.

        Args:
          fun: the function.
          key_of: returns the key of its program as things are; None where there is none.
          stage: traces it.
        """
        key = key_of()
        if key is None:
            return stage()
        of_itself = key._replace(fun=identity_key(fun), seen=_CHANGES_ITSELF)
        found = self._kept(key) or self._kept(of_itself)
        if found is not None:
            return found
        found = stage()
        if found.captured or found.cells:
            return found
        return self._keep(key if key_of() == key else of_itself, found, identities(key.fun))

    def _kept(self, key: ProgramKey) -> Staged | None:
        kept = self._kept_by_key.get(key)
        return None if kept is None else kept.staged()

    def _keep(self, key: ProgramKey, found: Staged, reached: Iterable[Identity]) -> Staged:
        """Keep a program, but not the arrays that its function captured; return how it is kept."""
        known = [identity.value for identity in reached]
        if any(isinstance(value, Cell) for value in known):  # what it holds changes
            return found
        if known:  # what is captured, or has what is
            found = found.with_arrays_captured()
            if holds_arrays(found.closed):  # in a program inside it
                return found
        remember(self._kept_by_key, key, _Kept(found), self._limit)
        if key.of_itself:
            for identity in identities(key.fun):
                identity.when_dead(functools.partial(self._kept_by_key.pop, key, None))
        return found


_CHANGES_ITSELF = "what it sees changes while it is traced"


class _Kept:
    """A program of a function; the arrays that it captured are held by the function alone."""

    __slots__ = ("captured", "closed", "out_tree")

    def __init__(self, staged: Staged) -> None:
        self.closed = staged.closed
        self.captured = [weakref.ref(x) for x in staged.captured]
        self.out_tree = staged.out_tree

    def staged(self) -> Staged | None:
        """Return the program for a function that captures the same arrays; None: they are gone."""
        captured = [ref() for ref in self.captured]
        if any(x is None for x in captured):
            return None
        return Staged(self.closed, captured, self.out_tree)
