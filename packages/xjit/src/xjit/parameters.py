"""The parameters of fronts: which a call leaves out, by what place it passes one, and their text.

A front takes the parameters of the function it stands for, so what is passed by name and what is
passed by position are one to it, and parameters with defaults may be absent.

Neighbours: `dispatch` looks calls up, `dispatch_code` writes functions from a `Code`.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from xjit.arguments import Signature
from xjit.operands import ABSENT, ARRAY, STATIC

__all__ = ()

Place = int | str
"""Where an argument of a call stands: its position, or its name."""

MAX_PARAMETERS = 32
NO_LEAVES = frozenset((STATIC, ABSENT))


class Absent:
    """The class of `ABSENT_VALUE`, the value of a parameter that a call leaves out."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_ABSENT"  # the name that written functions have for it


ABSENT_VALUE = Absent()


class Code(NamedTuple):
    """What a function is written from.

    Attributes:
      parameters: the text between the parentheses of its head.
      names: of the parameters.
      kinds: of the arguments.
      given: the text of the arguments of the long way.
      order: the numbers of the traced arguments, in the order of their leaves.
      is_front: whether users call it: it looks for specialised functions, and tries what the last
        call found first.
    """

    parameters: str
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    given: str
    order: tuple[int, ...]
    is_front: bool


class FixedParameters:
    """Parameters of which all calls have the same number, as the front of such calls has them.

    Args:
      names: of the front's parameters.
      places: where a call passes what they stand for.
      signature: says which of them are static and which donated.
      text: of the head of the front.
      has_defaults: whether a call may leave some of them out.
    """

    __slots__ = ("_order", "_positions", "donated", "has_defaults", "kinds", "names", "places",
                 "text")  # fmt: skip

    def __init__(
        self, names: Sequence[str], places: Sequence[Place], signature: Signature, *,
        text: str, count: int = 0, has_defaults: bool = False,
    ) -> None:  # fmt: skip
        self.names, self.places = tuple(names), list(places)
        self.kinds = tuple([STATIC if signature.is_static(p, count) else ARRAY for p in places])
        self.donated = frozenset(
            [i for i, p in enumerate(places) if signature.is_donated(p, count)])  # fmt: skip
        self._order = leaf_order(self.places, self.kinds)
        self._positions: dict[Any, int] = {name: i for i, name in enumerate(self.names)}
        self._positions |= {p: i for i, p in enumerate(places) if isinstance(p, str)}
        self.has_defaults = has_defaults
        self.text = text

    def code(self) -> Code:
        """Return what the front is written from."""
        given = given_text(self.names, self.places, self.kinds)
        if self.has_defaults:
            # Not a call with `*`, which takes of the C stack: jitted functions nest deep.
            left = f"_without_absent(({', '.join(self.names)},), {self.places!r}, {self.names!r})"
            given = f"(_given := {left})[0], _given[1]"
        return Code(self.text, self.names, self.kinds, given, self._order, True)

    def takes(self, places: Sequence[Place], kinds: Sequence[str]) -> bool:
        """Return whether the front itself takes such a call.

        That is one of arrays, with leaves in the order it has; a static argument may be absent.
        """
        fits = [kind is own or (kind is ABSENT and own is STATIC)
                for kind, own in zip(kinds, self.kinds, strict=True)]  # fmt: skip
        return all(fits) and leaf_order(places, self.kinds) == self._order

    def bound(
        self, places: Sequence[Place], values: Sequence[Any]
    ) -> tuple[list[Place], Sequence[Any]]:
        """Return place and value of each parameter of a call, `ABSENT_VALUE` for those left out."""
        found: list[Any] = [ABSENT_VALUE] * len(self.names)
        where = list(self.places)
        for place, value in zip(places, values, strict=True):
            i = place if isinstance(place, int) else self._positions[place]
            found[i], where[i] = value, place
        return where, found


def _text(parameters: Sequence[inspect.Parameter]) -> str:
    """Return the parameters of a front, which may each be absent where they have a default."""
    plain = [p.replace(annotation=p.empty) for p in parameters]
    absent = [p if p.default is p.empty else p.replace(default=ABSENT_VALUE) for p in plain]
    return str(inspect.Signature(absent))[1:-1]


def fixed_parameters(
    parameters: Sequence[inspect.Parameter] | None, signature: Signature
) -> FixedParameters | None:
    """Return the parameters, if they are few, none is variable, and a name says what a place does.

    The front passes what it got by name as what stands at its place.
    """
    if parameters is None or not 0 < len(parameters) <= MAX_PARAMETERS:
        return None
    if not all(map(_is_simple, parameters)):
        return None
    for i, p in enumerate(parameters):
        if p.kind is p.POSITIONAL_OR_KEYWORD and (
            signature.is_static(i, 0) != signature.is_static(p.name, 0)
            or signature.is_donated(i, 0) != signature.is_donated(p.name, 0)
        ):
            return None
    return FixedParameters(
        [p.name for p in parameters],
        [p.name if p.kind is p.KEYWORD_ONLY else i for i, p in enumerate(parameters)],
        signature,
        text=_text(parameters),
        has_defaults=any(p.default is not p.empty for p in parameters),
    )


def parameters_of_call(count: int, names: Sequence[str], signature: Signature) -> FixedParameters:
    """Return parameters for calls with `count` positional arguments, and others of these names.

    All are positional ones of the front, in the order of the call.
    """
    own = [f"a{i}" for i in range(count + len(names))]
    places = [*range(count), *names]
    return FixedParameters(own, places, signature, text=", ".join(own), count=count)


def _is_simple(p: inspect.Parameter) -> bool:
    return (
        p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and p.name.isidentifier()
        and not keyword.iskeyword(p.name)
        and not p.name.startswith("_")  # as the names of the front's own do
    )


def parameters_named(
    num_positional: int, names: Iterable[str]
) -> tuple[inspect.Parameter, ...] | None:
    """Return parameters of a function that takes some by position and some by name, if it can."""
    names = sorted(names)
    positional = [f"a{i}" for i in range(num_positional)]
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
        return None
    if not set(names).isdisjoint(positional):
        return None
    kind = inspect.Parameter
    return (*[kind(name, kind.POSITIONAL_ONLY) for name in positional],
            *[kind(name, kind.KEYWORD_ONLY) for name in names])  # fmt: skip


def leaf_order(places: Sequence[Place], kinds: Sequence[str]) -> tuple[int, ...]:
    """Return the traced arguments in the order of their leaves: keywords last, and sorted."""
    traced = [i for i, kind in enumerate(kinds) if kind not in NO_LEAVES]
    return tuple(sorted(traced, key=lambda i: (isinstance(places[i], str), places[i])))


def without_absent(
    values: Sequence[Any], places: Sequence[int | str], names: Sequence[str]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and keyword arguments of a call that left out parameters."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for value, place, name in zip(values, places, names, strict=True):
        if value is ABSENT_VALUE:
            continue
        if place == len(args):
            args.append(value)
        else:
            kwargs[name] = value
    return tuple(args), kwargs


def given_text(names: Sequence[str], places: Sequence[Place], kinds: Sequence[str]) -> str:
    """Return the text of the two arguments of the long way, for variables of these names."""
    present = [
        (n, p) for n, p, kind in zip(names, places, kinds, strict=True) if kind is not ABSENT
    ]
    args = "".join([f"{name}, " for name, place in present if isinstance(place, int)])
    kwargs = ", ".join([f"{p!r}: {name}" for name, p in present if isinstance(p, str)])
    return f"({args}), {{{kwargs}}}"
