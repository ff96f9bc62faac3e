"""Which dimensions correspond: the rules of products, slices, gather and scatters.

Neighbours: `dot_general`, `gather`, `scatter_family`; `xprim.dimension_names` has what is shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xprim import ShapedArray
from xprim.dimension_names import Names

__all__ = ()

Dims = tuple[Any, ...]


def dot_dimensions(avals: Any, out: Any, params: Any) -> Names:
    """Dimensions that are summed over, and those of batches, have a name on both sides."""
    (lc, rc), (lb, rb) = params["dimension_numbers"]
    left = _of_side("lhs", avals[0].ndim, lc, lb)
    right = _of_side("rhs", avals[1].ndim, rc, rb)
    free = [name for name in (*left, *right) if name[0] in ("lhs", "rhs")]
    return Names([left, right], [(*[("each", i) for i in range(len(lb))], *free)])


def slice_dimensions(avals: Any, out: Any, params: Any) -> Names:
    """Dimensions correspond by number, but one of which a single element is taken is whole."""
    sizes = zip(avals[0].shape, out[0].shape, strict=True)
    kept = [None if m == 1 != n else d for d, (n, m) in enumerate(sizes)]
    return Names([tuple(range(a.ndim)) for a in avals], [tuple(kept)])


def _of_side(side: str, ndim: int, summed: Sequence[int], batch: Sequence[int]) -> Dims:
    names: dict[int, Any] = {d: ("sum", i) for i, d in enumerate(summed)}
    names |= {d: ("each", i) for i, d in enumerate(batch)}
    return tuple([names.get(d, (side, d)) for d in range(ndim)])


def _indexed(
    operand: ShapedArray, indices: ShapedArray, dropped: set[int], sizes: dict[int, int],
    pairs: Any,
) -> tuple[list[Any], list[Any], list[Any]]:  # fmt: skip
    """Return names for an operand read or written at indices, for its windows, and for batches.

    Args:
      operand: its type.
      indices: that of the indices.
      dropped: the dimensions of the operand that no window has.
      sizes: for each dimension of the operand, the size of a window.
      pairs: of dimensions of operand and indices that go together.
    """
    is_full = [sizes[d] == n and d not in dropped for d, n in enumerate(operand.shape)]
    names: list[Any] = [d if full else None for d, full in enumerate(is_full)]
    for d, i in pairs:
        names[d] = ("index", i)
    windows = [names[d] for d in range(operand.ndim) if d not in dropped]
    return names, windows, [("index", d) for d in range(indices.ndim - 1)]


def _laid_out(ndim: int, window_dims: Sequence[int], windows: Dims, batch: Dims) -> Dims:
    """Return the names of an array that has windows in some dimensions and batches in the rest."""
    inside, rest = iter(windows), iter(batch)
    return tuple([next(inside) if d in window_dims else next(rest) for d in range(ndim)])


def gather_dimensions(avals: Any, out: Any, params: Any) -> Names:
    """Windows keep the names of dimensions that they take whole; batches are those of indices."""
    numbers, (operand, indices) = params["dimension_numbers"], avals
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    sizes = dict(enumerate(params["slice_sizes"]))
    names, windows, batch = _indexed(operand, indices, dropped, sizes, pairs)
    result = _laid_out(out[0].ndim, numbers.offset_dims, tuple(windows), tuple(batch))
    return Names([tuple(names), (*batch, None)], [result])


def scatter_dimensions(avals: Any, out: Any, params: Any) -> Names:
    """Windows lie as the dimensions of the operand that they fill; many may meet in one element."""
    numbers, (operand, indices, updates) = params["dimension_numbers"], avals
    dropped = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    pairs = zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    kept = [d for d in range(operand.ndim) if d not in dropped]
    sizes = dict.fromkeys(range(operand.ndim), -1)
    sizes |= zip(kept, [updates.shape[d] for d in numbers.update_window_dims], strict=True)
    names, windows, batch = _indexed(operand, indices, dropped, sizes, pairs)
    batch = [name if name in names else None for name in batch]
    of_updates = _laid_out(updates.ndim, numbers.update_window_dims, tuple(windows), tuple(batch))
    return Names([tuple(names), (*batch, None), of_updates], [tuple(names)])
