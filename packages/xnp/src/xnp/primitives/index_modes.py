"""How gather and scatter are told where to read and write: dimension numbers and modes.

Names and meanings are those of XLA's gather and scatter and of `jax.lax`. The last dimension of
the indices always holds one index vector; the other dimensions of the indices are its batch
dimensions. Neighbours: `gather`, `scatter_family`, `gather_plans`.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import numpy as np

from xprim import dtypes
from xprim.errors import message
from xprim.sizes import SymbolicSize

__all__ = ()


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
                "gather and scatter", f"there is no mode {mode!r}.",
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

    Those of symbolic dimensions are no numbers, and are given as objects.
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
