"""`add.reduce`, `maximum.at`, ...: methods of universal functions, given to `xnp.add` and its kin.

Those are plain functions, which cost less to call than objects; what `universal_functions.ufunc`
offers becomes their attributes. Where a reduction, a running total or a scatter does the same at
once, it is used.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from xnp.numpy import bits, elementary, logic, reductions as r, ufuncs
from xnp.numpy.creation import asarray
from xnp.numpy.running_totals import cumprod, cumsum
from xnp.numpy.universal_functions import ufunc
from xprim import Array

__all__: list[str] = []

_ATTRIBUTES = (
    "nin", "nout", "nargs", "identity", "reduce", "accumulate", "at", "reduceat", "outer",
)  # fmt: skip


def _give_methods(
    function: Callable[..., Any], nin: int = 2, *, identity: Any = None,
    reduce: Callable[..., Any] | None = None, accumulate: Callable[..., Any] | None = None,
    at: str | None = None,
) -> None:  # fmt: skip
    """Make the methods attributes of a function; the keywords say what it has of its own."""
    update = None if at is None else functools.partial(_updated, at)
    methods = ufunc(
        function, nin, 1, identity=identity, call=function, reduce=reduce, accumulate=accumulate,
        at=update,
    )  # fmt: skip
    for name in _ATTRIBUTES:
        setattr(function, name, getattr(methods, name))


def _updated(method: str, a: Any, indices: Any, b: Any) -> Array:
    return getattr(asarray(a).at[indices], method)(b)  # type: ignore[no-any-return]


def _extremum(reduction: Callable[..., Array]) -> Callable[..., Array]:
    def reduce(a: Any, *, axis: Any, dtype: Any, **options: Any) -> Array:
        return reduction(asarray(a, dtype), axis, **options)

    return reduce


def _truth(reduction: Callable[..., Array], joined: Callable[..., Array]) -> Callable[..., Array]:
    def reduce(a: Any, *, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Array:
        total = reduction(asarray(a, dtype), axis, keepdims=keepdims, where=where)
        return total if initial is None else joined(initial, total)

    return reduce


_give_methods(ufuncs.add, identity=0, reduce=r.sum, accumulate=cumsum, at="add")
_give_methods(ufuncs.multiply, identity=1, reduce=r.prod, accumulate=cumprod, at="multiply")
_give_methods(ufuncs.subtract, at="subtract")
_give_methods(ufuncs.negative, 1)
_give_methods(ufuncs.maximum, reduce=_extremum(r.max), at="max")
_give_methods(ufuncs.minimum, reduce=_extremum(r.min), at="min")
_give_methods(elementary.logaddexp, identity=-math.inf)
_give_methods(elementary.logaddexp2, identity=-math.inf)
_give_methods(logic.logical_and, identity=True, reduce=_truth(r.all, logic.logical_and))
_give_methods(logic.logical_or, identity=False, reduce=_truth(r.any, logic.logical_or))
_give_methods(logic.logical_xor, identity=False)
_give_methods(bits.bitwise_and, identity=-1)
_give_methods(bits.bitwise_or, identity=0)
_give_methods(bits.bitwise_xor, identity=0)
