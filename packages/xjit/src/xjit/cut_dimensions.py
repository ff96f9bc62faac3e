"""Which dimensions of arrays a program has cut over devices, as far as it says so.

The compiler decides how values in between lie, from what is said of arguments, of results and by
constraints. So rules of text that must know can ask only whether something may be cut.

Neighbours: `lowering` asks once for each program, `stablehlo_text` answers rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xjit.named_shardings import NamedSharding
from xjit.partition_specs import axes_of
from xjit.places_in_programs import places_in
from xjit.shardings import Sharding
from xprim import ClosedJaxpr, ShapedArray

__all__ = ()

Cuts = frozenset[tuple[int, int]]
"""For each dimension that is cut the rank of the array, and the number of the dimension."""


def cuts_of(
    closed: ClosedJaxpr, in_shardings: Sequence[Sharding | None],
    out_shardings: Sequence[Sharding | None],
) -> Cuts:  # fmt: skip
    """Return the dimensions that are cut by what is said of a program and in it."""
    pairs = [*zip(in_shardings, closed.in_avals, strict=False),
             *zip(out_shardings, closed.out_avals, strict=False)]  # fmt: skip
    return frozenset(_cut(pairs)) | cuts_within(closed)


def cuts_within(closed: ClosedJaxpr) -> Cuts:
    """Return the dimensions that equations of a program cut, or those of programs they call."""
    return closed.derived(_cuts_within)


def _cuts_within(closed: ClosedJaxpr) -> Cuts:
    cuts: set[tuple[int, int]] = set()
    for eqn, place in places_in(closed):
        if isinstance(place, ClosedJaxpr):
            cuts |= cuts_within(place)
        elif isinstance(place, Sharding):
            cuts.update(_cut((place, x.aval) for x in eqn.outputs))
    return frozenset(cuts)


def _cut(pairs: Iterable[tuple[Sharding | None, ShapedArray]]) -> Iterator[tuple[int, int]]:
    for sharding, aval in pairs:
        if isinstance(sharding, NamedSharding):
            parts = sharding.spec[: aval.ndim]
            yield from [(aval.ndim, dim) for dim, part in enumerate(parts) if axes_of(part)]
        elif sharding is not None:
            counts = sharding.tiles(aval.ndim).counts
            yield from [(aval.ndim, dim) for dim, count in enumerate(counts) if count > 1]
