"""Effects: what an equation does beside computing its results.

A primitive with an `effects` rule says which effects an equation of it has; a call has those of
its program. No equation with an effect is dropped, merged with another or moved past one, and what
would make it happen twice (recomputation under `checkpoint`), or for examples that do not take part
(branches and loops of a batch), is refused.

An effect is any hashable object. Equations with an effect happen one after the other, in the order
of the program; those of an `Effect(ordered=False)` each happen, in any order, which is all that
compiled programs can promise: lowering refuses the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect of equations.

    Attributes:
      name: what errors call it.
      ordered: whether equations with it must happen in the order of the program.

    Example:
      >>> Effect("log", ordered=False)
      Effect(name='log', ordered=False)
    """

    name: str
    ordered: bool = True

    def __str__(self) -> str:
        return self.name


def ordered_effects(effects: Iterable[Any]) -> list[Any]:
    """Return the effects whose equations must happen in order, sorted by their text."""
    found = [e for e in effects if not isinstance(e, Effect) or e.ordered]
    return sorted(found, key=str)


def effects_text(effects: Iterable[Any]) -> str:
    """Return the names of effects as errors list them."""
    return ", ".join(sorted(map(str, effects)))
