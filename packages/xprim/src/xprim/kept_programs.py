"""Programs of functions, kept for the next call with an equal function and equal types.

A program is kept under the key of all that it depends on, `argument_keys.value_key`, and without
the arrays that its function captured. Those become operands, to which the table refers weakly: they
die with the last function that holds them. Traced values belong to one call, and so do the programs
that captured such.

A function that reaches what may change has no such key. Its programs are its own, and stay as long
as it sees the same. It may change that itself while it is traced, as one does that counts its
traces: what it saw last is what counts.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import xtree
from xprim.avals import ShapedArray
from xprim.function_keys import call_key, identities, identity_key, seen_by, value_key
from xprim.jaxpr import ClosedJaxpr, Jaxpr, holds_arrays
from xprim.refs import BaseRef, RefUse
from xprim.staging import close_over
from xtree.interning import remember
from xtree.records import Record

__all__ = ["Staged", "KeptPrograms", "stage_with_refs"]

__dir__ = __all__.copy


class Staged(Record):
    """A function as a program: the values that it captured go before its other operands."""

    closed: ClosedJaxpr
    captured: Sequence[Any]
    out_tree: Any
    refs: Sequence[RefUse] = ()
    """References that it writes: their values are its last arguments and its last results."""
    read: Sequence[RefUse] = ()
    """References that it only reads: their values are the first that it captured."""

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """The abstract values of the results, without those of references."""
        avals = self.closed.out_avals
        return avals[: len(avals) - len(self.refs)]

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


def stage_with_refs(
    jaxpr: Jaxpr, consts: Sequence[Any], uses: Sequence[RefUse], out_tree: Any
) -> Staged:
    """Return a program that uses references, if any: what it only reads is captured.

    Args:
      jaxpr: the program; its last arguments are the values of references, its last results those
        that it writes.
      consts: its constants.
      uses: how it uses references.
      out_tree: the structure of the result.
    """
    closed, captured = close_over(jaxpr, consts)
    invars, count = closed.jaxpr.invars, len(uses)
    pairs = list(zip(invars[len(invars) - count :], uses, strict=True))
    read = [v for v, use in pairs if not use.is_written]
    written = [v for v, use in pairs if use.is_written]
    opened = closed.jaxpr.replace(invars=[*read, *invars[: len(invars) - count], *written])
    values = [use.before for use in uses if not use.is_written]
    return Staged(
        ClosedJaxpr(opened, closed.consts), [*values, *captured], out_tree,
        tuple([use for use in uses if use.is_written]),
        tuple([use for use in uses if not use.is_written]),
    )  # fmt: skip


class KeptPrograms:
    """A table of programs by their keys.

    Args:
      limit: how many are kept; the table is emptied when there would be more.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept_by_key: dict[Hashable, _Kept] = {}
        self._own_by_function: dict[Hashable, _Own] = {}

    def program_of(
        self, fun: Callable[..., Any], tree: Any, avals: Sequence[Any], stage: Callable[[], Staged],
        statics: Sequence[tuple[Any, Any]] = (),
    ) -> Staged:  # fmt: skip
        """Return the program of a function, staged now unless it is kept.

        Args:
          fun: the function.
          tree: the structure of its traced arguments.
          avals: their abstract values.
          stage: traces it.
          statics: the places of the static values, and the values.
        """
        call = call_key(tree, avals, statics)
        if call is None:
            return stage()
        itself = identity_key(fun)
        own = self._own_by_function.get(itself)
        key = value_key(fun, tree, statics) if own is None else None
        if own is not None:
            kept = own.find(call, seen_by(fun, tree, statics))
        else:
            kept = None if key is None else self._kept_by_key.get((key, *call))
        found = None if kept is None else kept.revive()
        if found is not None:
            return found
        found = stage()
        if found.captured or found.refs:
            return found
        seen = seen_by(fun, tree, statics)
        if key is not None and seen == key:
            return self._keep((key, *call), found)
        return self._keep_own(itself, call, found, seen)

    # No package here calls it: releases 0.2.0 of xnp and xad do, whose range of xprim has this one.
    def get_or_stage(self, key: Hashable, stage: Callable[[], Staged]) -> Staged:
        """Return the program of a key, staged now unless it is kept; None is never a key."""
        kept = None if key is None else self._kept_by_key.get(key)
        found = None if kept is None else kept.revive()
        if found is None:
            found = stage()
            if key is not None and not (found.captured or found.refs):
                found = self._keep(key, found)
        return found

    def _keep(self, key: Any, found: Staged) -> Staged:
        """Keep a program, but not the arrays that its function captured; return how it is kept."""
        known = [identity.value for identity in identities(key[0])]
        if any(isinstance(value, BaseRef) for value in known):  # what it holds changes
            return found
        if known:  # what is captured, or has what is
            found = found.with_arrays_captured()
            if holds_arrays(found.closed):  # in a program inside it
                return found
        remember(self._kept_by_key, key, _Kept(found), self._limit)
        return found

    def _keep_own(self, itself: Hashable, call: Hashable, found: Staged, seen: Hashable) -> Staged:
        """Keep a program of a function that is found by itself alone, as long as it lives."""
        found = found.with_arrays_captured()
        if seen is None or holds_arrays(found.closed):
            return found
        own = self._own_by_function.get(itself)
        if own is None:
            own = remember(self._own_by_function, itself, _Own(), self._limit)
            for part in identities(itself):
                part.when_dead(functools.partial(self._own_by_function.pop, itself, None))
        own.seen = seen
        remember(own.kept_by_call, call, _Kept(found), self._limit)
        return found


class _Own:
    """The programs of one function, and what it saw when the last of them was traced."""

    __slots__ = ("kept_by_call", "seen")

    def __init__(self) -> None:
        self.kept_by_call: dict[Hashable, _Kept] = {}
        self.seen: Hashable = None

    def find(self, call: Hashable, seen: Hashable) -> _Kept | None:
        """Return the program of a call; all go when the function sees something else."""
        if seen != self.seen:
            self.kept_by_call.clear()
        return self.kept_by_call.get(call)


class _Kept:
    """A program of a function; the arrays that it captured are held by the function alone."""

    __slots__ = ("captured", "closed", "out_tree")

    def __init__(self, staged: Staged) -> None:
        self.closed = staged.closed
        self.captured = [weakref.ref(x) for x in staged.captured]
        self.out_tree = staged.out_tree

    def revive(self) -> Staged | None:
        """Return the program for a function that captures the same arrays; None: they are gone."""
        captured = [ref() for ref in self.captured]
        if any(x is None for x in captured):
            return None
        return Staged(self.closed, captured, self.out_tree)
