"""Positions in arrays that are out of bounds: what `config.index_checks` has done with them.

Positions that are known as the program is written (an array, not a traced value) are compared with
the bounds at once; others by a check in the program, where "raise" asks for it. Only an index
without a mode comes here: a mode says what is to happen. Functions that have an answer of their own
to a position out of bounds (`take` fills in, `dynamic_slice` moves the window inside) are checked
where "raise" asks for it alone.
Neighbours: `xnp.numpy.index_entries` and `xnp.lax.slicing` ask this; `check` is the check in
programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import xtree
from xnp.primitives.operations import bind, reshaped, scalar_like
from xprim import EAGER, Array, ConcreteArray, as_array, dtypes, get_primitive, source
from xprim.check_sites import CheckSite
from xprim.config import values as options
from xprim.errors import IndexCheckError, message
from xprim.sizes import SymbolicSize

__all__ = ()


class IndexSite(CheckSite):
    """The check of positions in a program, which raises an IndexError."""

    __slots__ = ()

    def error(self, values: Sequence[Any], index: tuple[int, ...] | None = None) -> IndexCheckError:
        """Return the exception for the first position out of bounds."""
        return IndexCheckError(self.message(values, index))


def check_positions(part: Any, axis: int, shape: tuple[int, ...]) -> None:
    """Check a part of an index that stands for a dimension, as the option says.

    Raises:
      IndexCheckError: a position in an array is known, and out of bounds.
    """
    if not isinstance(part, Array) or part.aval.dtype == dtypes.bool_:
        return
    wanted, size = options.index_checks, shape[axis]
    if wanted == "allow" or isinstance(size, SymbolicSize) or not size or not part.aval.size:
        return
    _check(part, axis, shape, -size, size - 1)


def check_if_asked(
    part: Any, axis: int, shape: tuple[int, ...], window: int = 1, wraps: bool = True
) -> None:
    """Check where windows begin in a dimension, if programs are to raise.

    Args:
      part: the first positions, integers.
      axis: the dimension.
      shape: of the array.
      window: how many elements there are in a window.
      wraps: whether negative positions count from the end.
    """
    if options.index_checks != "raise":
        return
    size = shape[axis]
    if isinstance(size, SymbolicSize) or not size:
        return
    array = as_array(part)
    if array.aval.size and dtypes.is_integer(array.aval.dtype):
        _check(array, axis, shape, -size if wraps else 0, size - window)


def check_room(columns: Sequence[tuple[int, Any]], shape: tuple[int, ...]) -> None:
    """Refuse to write in a dimension without elements as out of bounds elsewhere.

    Args:
      columns: dimensions, and the positions in them.
      shape: of the array.
    """
    wanted = options.index_checks
    for axis, part in columns:
        refused = wanted == "raise" or (wanted == "known" and isinstance(part, ConcreteArray))
        if refused and part.aval.size and not shape[axis]:
            raise IndexError(f"index: dimension {axis} of shape {shape} has no elements to update.")


def _check(part: Any, axis: int, shape: tuple[int, ...], low: int, high: int) -> None:
    known = _known(part)
    if known is not None:
        _check_known(known, axis, shape, low, high)
    elif options.index_checks == "raise":
        _check_in_program(part, axis, shape, low, high)


def _known(array: Any) -> np.ndarray[Any, Any] | None:
    """Return positions that can be read without a transfer, None for others."""
    if type(array) is not ConcreteArray:
        return None
    if array.buffer is None or EAGER.backend.on_host(array):
        return array.to_host()
    return None


def _check_known(
    positions: np.ndarray[Any, Any], axis: int, shape: tuple[int, ...], low: int, high: int
) -> None:
    size = shape[axis]
    if positions.max() <= high and positions.min() >= low:
        return
    bad = positions[(positions > high) | (positions < low)]
    raise IndexCheckError(message(
        "index", f"{bad[0]} is out of bounds for axis {axis} with size {size}.",
        got=f"an index into shape {shape}", expected=f"positions from {low} to {high}",
        where=source.describe(source.capture()),
        hint='x.at[...].get(mode="clip") moves positions inside, .set(..., mode="drop") leaves\n'
             "them out",
    ))  # fmt: skip


def _check_in_program(array: Any, axis: int, shape: tuple[int, ...], low: int, high: int) -> None:
    size = shape[axis]
    flat = reshaped(array, (array.aval.size,))
    ends = dtypes.iinfo(flat.aval.dtype)
    holds = bind("le", flat, scalar_like(flat, min(high, int(ends.max))))
    if not dtypes.is_unsigned_integer(flat.aval.dtype):
        above = bind("ge", flat, scalar_like(flat, max(low, int(ends.min))))
        holds = bind("and", holds, above)
    place = bind("argmin", holds, axes=(0,), index_dtype=dtypes.int32)
    first = reshaped(bind("dynamic_slice", flat, place, slice_sizes=(1,)), ())
    site = IndexSite(
        "index",
        f"index: {{}} is out of bounds for axis {axis} with size {size}.\n"
        f"  got       an index into shape {shape}",
        xtree.structure(((0,), {})), source.describe(source.capture()),
    )  # fmt: skip
    get_primitive("check").bind(holds, first, site=site, batch_ndim=0, mapped=(False,))
