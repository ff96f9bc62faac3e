"""Effects: what an equation does beside computing its results.

A primitive with an `effects` rule says which effects an equation of it has; a call has those of
its program. No equation with an effect is dropped, merged with another or moved past one, and what
would make it happen twice (recomputation under `checkpoint`), or for examples that do not take part
(branches and loops of a batch), is refused, unless the effect is for looking at a program only:
`Effect(exact=False)`, as prints are.

An effect is any hashable object. Equations with an effect happen one after the other, in the order
of the program; those of an `Effect(ordered=False)` each happen, in any order. In a compiled program
an order must be made: a primitive whose `stablehlo` rule passes `builder.order` along has it, and
lowering refuses the effects of any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from xprim.avals import shaped_array
from xtree.records import Record, set_once

__all__ = ()

ORDER = shaped_array((), np.dtype(bool))
"""The abstract value of what ordered effects pass along in a compiled program."""


class Effect(Record):
    """An effect of equations.

    Attributes:
      name: what errors call it.
      ordered: whether equations with it must happen in the order of the program.
      exact: whether it must happen as often as the program says; where it need not, transformations
        may compute its equation again, or for examples of a batch that take no part.
      repeatable: whether computing its equation again for the same operands does nothing more, as a
        check of them; for examples that take no part it is exact all the same.

    Example:
      >>> Effect("log", ordered=False)
      Effect(name='log', ordered=False, exact=True, repeatable=False)
    """

    __slots__ = __match_args__ = ("name", "ordered", "exact", "repeatable")
    name: str
    ordered: bool
    exact: bool
    repeatable: bool

    def __init__(
        self, name: str, ordered: bool = True, exact: bool = True, repeatable: bool = False
    ) -> None:
        set_once(self, "name", name)
        set_once(self, "ordered", ordered)
        set_once(self, "exact", exact)
        set_once(self, "repeatable", repeatable)

    def __str__(self) -> str:
        return self.name


def ordered_effects(effects: Iterable[Any]) -> list[Any]:
    """Return the effects whose equations must happen in order, sorted by their text."""
    found = [e for e in effects if not isinstance(e, Effect) or e.ordered]
    return sorted(found, key=str)


def exact_effects(effects: Iterable[Any]) -> list[Any]:
    """Return the effects whose equations must happen as often as the program says, sorted."""
    found = [e for e in effects if not isinstance(e, Effect) or e.exact]
    return sorted(found, key=str)


def unrepeatable_effects(effects: Iterable[Any]) -> list[Any]:
    """Return the effects whose equations must not be computed again, sorted by their text."""
    return [e for e in exact_effects(effects) if not (isinstance(e, Effect) and e.repeatable)]


def effects_text(effects: Iterable[Any]) -> str:
    """Return the names of effects as errors list them."""
    return ", ".join(sorted(map(str, effects)))
