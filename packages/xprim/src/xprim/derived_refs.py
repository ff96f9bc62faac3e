"""References that programs derived by rules of users read and write, passed as operands.

The references that a program itself uses are among its arguments and results. A user's rule, of
`custom_vjp` say, runs when its program is differentiated, and may use further references. The
derived program takes their values as its last arguments and returns the written ones as its last
results. A caller that can pass these values derives the program by `derive_with_refs`; the code
that derives it stages with the list that `claim_ref_uses` returns. Without such a caller the values
are constants of a program that is never reused, and a write is an error.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from xprim.config import state

__all__ = [
    "UsedRef",
    "read_refs",
    "claim_ref_uses",
    "derive_once",
    "derive_with_refs",
    "write_back_refs",
]

__dir__ = __all__.copy

T = TypeVar("T")

_NOT_THERE: Any = object()


class RefUse:
    """How a program that is staged uses an outer reference.

    Attributes:
      ref: the reference.
      variable: the argument of the program that is its value at the start.
      before: that value, outside.
      now: the value at this point of the program.
      is_written: whether the program writes it.
    """

    __slots__ = ("before", "ref", "is_written", "now", "variable")

    def __init__(self, ref: Any, variable: Any, before: Any, now: Any) -> None:
        self.ref = ref
        self.variable = variable
        self.before = before
        self.now = now
        self.is_written = False


class UsedRef:
    """A reference that a derived program uses, and whether it writes it."""

    __slots__ = ("ref", "is_written")

    def __init__(self, ref: Any, is_written: bool) -> None:
        self.ref = ref
        self.is_written = is_written


def derive_with_refs(derive: Callable[..., T], *args: Any) -> tuple[T, Sequence[UsedRef]]:
    """Return a derived program, and the references whose values are its last arguments.

    Args:
      derive: a method of a handle that derives one program.
      *args: of that.
    """
    now = state.__dict__
    outer = now["derived_refs"]
    now["derived_refs"] = collector = RefCollector()
    try:
        return derive(*args), collector.found
    finally:
        now["derived_refs"] = outer


def claim_ref_uses() -> list[RefUse] | None:
    """Return the list for the references of a program derived now; None if no caller passes them.

    Programs staged inside of it do not see the list.
    """
    now = state.__dict__
    collector, now["derived_refs"] = now["derived_refs"], None
    return None if collector is None else collector.uses


def read_refs(refs: Sequence[UsedRef]) -> list[Any]:
    """Return the values of references as a program gets them."""
    return [used.ref.value() for used in refs]


def write_back_refs(refs: Sequence[UsedRef], results: Sequence[Any]) -> Sequence[Any]:
    """Write the last results of a program to the references that it writes; return the others."""
    written = [used.ref for used in refs if used.is_written]
    count = len(results) - len(written)
    for ref, value in zip(written, results[count:], strict=True):
        ref.write(value)
    return results[:count]


class RefCollector:
    """The references of a derived program, for the caller of `derive_with_refs`.

    Attributes:
      uses: of the program that is staged.
      found: the references of the program that is returned.
    """

    __slots__ = ("found", "uses")

    def __init__(self) -> None:
        self.uses: list[RefUse] = []
        self.found: Sequence[UsedRef] = ()

    def note_found(self) -> Sequence[UsedRef]:
        """Return the references of the staged program, and forget their values in it."""
        self.found = [UsedRef(use.ref, use.is_written) for use in self.uses]
        self.uses.clear()
        return self.found


def note_constants() -> None:
    """Note that a program has values of references as constants: it is of this moment alone."""
    state.__dict__["constant_refs"] += 1


class WithRefs:
    """A derived program in a memo, with weak references to the `Ref`s that it uses."""

    __slots__ = ("_refs", "derived")

    def __init__(self, derived: Any, refs: Sequence[UsedRef]) -> None:
        self.derived = derived
        self._refs = [(weakref.ref(used.ref), used.is_written) for used in refs]

    def report_to(self, collector: RefCollector | None) -> bool:
        """Give the references to a collector; return whether there is one, and all are alive."""
        refs = [ref() for ref, _ in self._refs]
        if collector is None or any(ref is None for ref in refs):
            return False
        collector.found = [UsedRef(ref, w) for ref, (_, w) in zip(refs, self._refs, strict=True)]
        return True


def derive_once(memo: dict[Any, Any], key: Any, make: Callable[..., T], *args: Any) -> T:
    """Return a program derived from another, from the memo of that one where possible.

    Args:
      memo: of the program.
      key: of what is derived.
      make: makes it.
      *args: of that.
    """
    now = state.__dict__
    collector = now["derived_refs"]
    old = memo.get(key, _NOT_THERE)
    if type(old) is WithRefs:
        if old.report_to(collector):
            return old.derived  # type: ignore[no-any-return]
    elif old is not _NOT_THERE:
        return old  # type: ignore[no-any-return]
    constants = now["constant_refs"]
    made = make(*args)
    found: Sequence[UsedRef] = () if collector is None else collector.note_found()
    if now["constant_refs"] != constants:
        return made
    if not found:
        memo[key] = made
    elif all(used.ref.is_of_evaluation for used in found):
        memo[key] = WithRefs(made, found)
    return made
