"""The numbers that stand in for the variables of symbolic dimensions while a program is traced.

Tracing computes nothing of these sizes. The usual ones are primes, unlike common sizes. What a
number that Python knows is compared with, as in `2.5 < d`, or computed with, as in `d & 64`, shows
when the same function is traced for the smallest ones and for large ones.

Neighbours: `symbolic_dimensions` asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

__all__ = ()

_USUAL = [53, 59, 61, 67, 71, 73, 79]
_LARGE = 0xFFFFE  # even, unlike the others, and with the bits that they have not


def usual(k: int) -> int:
    """Return what stands in for the variable of a number."""
    return _USUAL[k % len(_USUAL)]


def smallest(_k: int) -> int:
    """Return the smallest number there is."""
    return 1


def largest(k: int) -> int:
    """Return a large number."""
    return max(1, _LARGE - 2 * k)


def candidates(now: Collection[int], first_of: Callable[[int], int]) -> Iterator[Sequence[int]]:
    """Return numbers to try: those that the variables have, large ones if wanted, small ones."""
    count = len(now)
    yield list(now)
    if first_of is largest:
        for bits in range(_LARGE.bit_length() - 2, 1, -1):
            for step in (-2, 2):
                yield [max(1, _LARGE % (2 << bits) + k * step) for k in range(count)]
    for attempt in range(1, 400):
        yield [1 + (attempt * (2 * k + 1) + 5 * k) % 400 for k in range(count)]
