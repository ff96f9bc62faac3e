"""How gather and scatter address elements: dimension numbers, modes, and checks of bounds."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import xtree
from xnp.primitives.table import bind, reshape, scalar_like
from xprim import EAGER, Array, ConcreteArray, as_array, dtypes, get_primitive, source
from xprim.avals import SymbolicSize
from xprim.config import values as options
from xprim.errors import IndexCheckError, message
from xprim.requirements import CheckSite

__all__ = ()


# ----------------------------------------------------------------------------------- index modes
# How gather and scatter are told where to read and write: dimension numbers and modes.
#
# Names and meanings are those of XLA's gather and scatter and of `jax.lax`. The last dimension of
# the indices always holds one index vector; the other dimensions of the indices are its batch
# dimensions.


class GatherDimensionNumbers(NamedTuple):
    """Which dimension is what in a gather.

    Attributes:
      offset_dims: dimensions of the result that run over a slice, in the operand's order; sorted.
      collapsed_slice_dims: dimensions of the operand whose slices have size 1 and are dropped.
      start_index_map: for each element of an index vector, the operand dimension it indexes.
      operand_batching_dims: dimensions of the operand that walk together with batch dimensions of
        the indices.
      start_indices_batching_dims: those dimensions of the indices.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which dimension is what in a scatter.

    Attributes:
      update_window_dims: dimensions of the updates that run over a window, in the operand's order.
      inserted_window_dims: dimensions of the operand whose windows have size 1 and are left out of
        the updates.
      scatter_dims_to_operand_dims: for each element of an index vector, the operand dimension.
      operand_batching_dims: dimensions of the operand that walk together with batch dimensions of
        the indices.
      scatter_indices_batching_dims: those dimensions of the indices.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


class GatherScatterMode(enum.Enum):
    """What happens to indices that are out of bounds.

    CLIP moves the whole window inside; FILL_OR_DROP reads a fill value (gather) and leaves the
    window out (scatter); PROMISE_IN_BOUNDS says that there are none.
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """Return the mode for a mode or its name; None means `fill` for gather, `drop` for scatter.

        Raises:
          ValueError: for an unknown name.
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        try:
            return _MODE_BY_NAME[mode]
        except (KeyError, TypeError):
            raise ValueError(message(
                "gather and scatter", f"unknown mode {mode!r}.",
                expected="'clip', 'fill', 'drop' or 'promise_in_bounds'",
            )) from None  # fmt: skip

    def __repr__(self) -> str:
        return f"GatherScatterMode.{self.name}"


_MODE_BY_NAME: dict[Any, GatherScatterMode] = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}

CLIP = GatherScatterMode.CLIP
FILL_OR_DROP = GatherScatterMode.FILL_OR_DROP
PROMISE_IN_BOUNDS = GatherScatterMode.PROMISE_IN_BOUNDS


def upper_bounds(
    shape: tuple[int, ...], window: tuple[int, ...], index_map: tuple[int, ...], dtype: Any
) -> np.ndarray[Any, Any]:
    """Return the largest start of a window in each indexed dimension, in the indices' dtype.

    Those of symbolic dimensions are not numbers, and are given as objects.
    """
    if any(isinstance(shape[d], SymbolicSize) for d in index_map):
        return np.array([shape[d] - window[d] for d in index_map], object)
    most = int(np.iinfo(dtype).max)
    return np.array([min(shape[d] - window[d], most) for d in index_map], dtype)


def fill_of(dtype: np.dtype[Any], fill_value: Any) -> Any:
    """Return what is read out of bounds: NaN, the least signed, greatest unsigned integer, True."""
    if fill_value is not None:
        return fill_value
    if dtypes.is_inexact(dtype):
        return float("nan")
    if dtypes.is_bool(dtype):
        return True
    info = dtypes.iinfo(dtype)
    return int(info.min if dtypes.is_signed_integer(dtype) else info.max)


# ---------------------------------------------------------------------------------- index checks
# Positions in arrays that are out of bounds: what `config.index_checks` has done with them.
#
# Positions that are known as the program is written (an array, not a traced value) are compared
# with the bounds at once; others by a check in the program, where "raise" asks for it. Only an
# index without a mode comes here: a mode says what is to happen. Functions that have an answer of
# their own to a position out of bounds (`take` fills in, `dynamic_slice` moves the window inside)
# are checked where "raise" asks for it alone.


class IndexSite(CheckSite):
    """The check of positions in a program, which raises an IndexError."""

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
    known = _positions_if_known(part)
    if known is not None:
        _check_known(known, axis, shape, low, high)
    elif options.index_checks == "raise":
        _check_in_program(part, axis, shape, low, high)


def _positions_if_known(array: Any) -> np.ndarray[Any, Any] | None:
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
    flat = reshape(array, (array.aval.size,))
    ends = dtypes.iinfo(flat.aval.dtype)
    holds = bind("le", flat, scalar_like(flat, min(high, int(ends.max))))
    if not dtypes.is_unsigned_integer(flat.aval.dtype):
        above = bind("ge", flat, scalar_like(flat, max(low, int(ends.min))))
        holds = bind("and", holds, above)
    place = bind("argmin", holds, axes=(0,), index_dtype=dtypes.int32)
    first = reshape(bind("dynamic_slice", flat, place, slice_sizes=(1,)), ())
    site = IndexSite(
        "index",
        f"index: {{}} is out of bounds for axis {axis} with size {size}.\n"
        f"  got       an index into shape {shape}",
        xtree.structure(((0,), {})), source.describe(source.capture()),
    )  # fmt: skip
    get_primitive("check").bind(holds, first, site=site, batch_ndim=0, mapped=(False,))
