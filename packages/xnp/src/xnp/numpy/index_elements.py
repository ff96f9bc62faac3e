"""Indexing of arrays of extended dtypes by numbers and slices, as views of what is kept of them.

`keys[i]`, and so `for k in keys` and `k1, k2 = split(key)`, are as quick as for arrays of numbers.
Anything else goes the way of all primitives (see `xprim.extended`).
"""

from __future__ import annotations

from typing import Any

from xnp.numpy.dispatch import host_aval
from xprim import EAGER, Array, ConcreteArray, from_stored, state

__all__ = ()

_PARTS = frozenset([int, slice])
_SMALL = 4096  # elements; larger arrays may still be in the making


def elements_at(x: Array, index: Any) -> Array | None:
    """Return `x[index]`, or None where it takes more than a view of host memory.

    Numbers and slices name leading dimensions: those of the array are the leading ones of the
    numbers that its elements are made of, too.
    """
    if type(x) is not ConcreteArray or state.__dict__["trace"] is not EAGER:
        return None
    parts = index if type(index) is tuple else (index,)
    aval = x.aval
    if len(parts) > aval.ndim or aval.size > _SMALL or not _PARTS.issuperset(map(type, parts)):
        return None
    if not EAGER.backend.on_host(x):
        return None
    try:
        result = x.to_stored()[(*parts, ...)]
    except (IndexError, TypeError, ValueError):  # said by the way of all primitives
        return None
    ndim = result.ndim - (aval.stored.ndim - aval.ndim)
    return from_stored(result, host_aval(result.shape[:ndim], aval.dtype))
