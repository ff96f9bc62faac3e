"""`ragged_all_to_all`: members send each other slices of different sizes.

Sizes are values of the program, and what devices exchange must have a shape. So the members say
each other where slices begin, each gets the rows of all, and picks those that are for it: a gather,
whose derivative puts the cotangents back. Costs what `all_gather` of the operand does.

Neighbours: `collectives` has the exchanges of equal pieces that this is made of.
"""

from __future__ import annotations

from typing import Any

import xnp
from xpar.collectives import all_gather, all_to_all
from xpar.named_axes import axis_names, checked_groups, group_size
from xprim import Array, as_array
from xprim.errors import message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, AxisIndexGroups, AxisName

__all__ = ()


@boundary
def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: AxisName,
    axis_index_groups: AxisIndexGroups = None,
) -> Array:
    """Send slices of rows to the members of a named axis, each of a size of its own.

    With K slices and N members the first K / N slices go to member 0, the next to member 1, and so
    on. Slice `i` are the rows of `operand` from `input_offsets[i]` on, `send_sizes[i]` of them; the
    member that gets them writes them over the rows of its `output` from `output_offsets[i]` on.

    Args:
      operand: of shape (rows, ...): what is sent.
      output: of shape (other rows, ...): what stands where nothing is received.
      input_offsets: of shape (K,), integers: where the slices begin in `operand`.
      send_sizes: of shape (K,), integers: the number of rows of each.
      output_offsets: of shape (K,), integers: where each begins in the `output` of its receiver.
      recv_sizes: of shape (K,), integers: the number of rows of what is received, sender by sender;
        the `send_sizes` of the senders.
      axis_name: the name of the axis.
      axis_index_groups: lists of members of equal length that exchange among themselves.

    Returns:
      An array like `output`. Of slices that overlap in it the later one counts.

    Raises:
      NameError: when the name is not bound.
      ValueError: the rows of `operand` and `output` differ in shape, the offsets and sizes in
        length, or K is no multiple of the number of members.
      TypeError: offsets or sizes are no integers.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> i32 = np.int32
      >>> print(vmap(
      ...     lambda *xs: ragged_all_to_all(*xs, axis_name="i"), axis_name="i"
      ... )(i32([[1, 2, 2], [3, 4, 0]]), i32(np.zeros((2, 4))), i32([[0, 1], [0, 1]]),
      ...   i32([[1, 2], [1, 1]]), i32([[0, 0], [1, 2]]), i32([[1, 1], [2, 1]])))
      [[1 3 0 0]
       [2 2 4 0]]

    Differentiable in `operand` and `output`.
    """
    names = axis_names(axis_name)
    groups = checked_groups("ragged_all_to_all", axis_index_groups, names)
    count = group_size(names, groups)
    rows, kept = [as_array(x, what="ragged_all_to_all") for x in (operand, output)]
    tables = [as_array(x, what="ragged_all_to_all")
              for x in (input_offsets, send_sizes, output_offsets, recv_sizes)]  # fmt: skip
    _check(rows, kept, tables, count)
    if not rows.shape[0]:  # nobody has anything to send
        return kept
    exchange: dict[str, Any] = {"axis_index_groups": axis_index_groups, "tiled": True}
    begin_there, begin_here = [
        all_to_all(table, axis_name, 0, 0, **exchange) for table in (tables[0], tables[2])
    ]
    everything = all_gather(rows, axis_name, axis_index_groups=axis_index_groups)
    sizes = tables[3]
    place = xnp.arange(kept.shape[0])[:, None] - begin_here[None, :]  # row of each in each slice
    is_in = (place >= 0) & (place < sizes[None, :])
    last = sizes.shape[0] - 1 - xnp.argmax(is_in[:, ::-1], axis=1)
    sender = last // (sizes.shape[0] // count)
    row = begin_there[last] + xnp.take_along_axis(place, last[:, None], 1)[:, 0]
    received = everything[sender, xnp.clip(row, 0, max(rows.shape[0] - 1, 0))]
    is_sent = is_in.any(1).reshape(-1, *[1] * (kept.ndim - 1))
    found: Array = xnp.where(is_sent, received.astype(kept.dtype), kept)
    return found


def _check(rows: Array, kept: Array, tables: list[Array], count: int) -> None:
    if not rows.ndim or rows.shape[1:] != kept.shape[1:] or rows.dtype != kept.dtype:
        raise ValueError(message(
            "ragged_all_to_all", "operand and output must have rows of one type.",
            got=f"{rows.aval.str_long()} and {kept.aval.str_long()}",
        ))  # fmt: skip
    shapes = [table.shape for table in tables]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1 or shapes[0][0] % count or not shapes[0][0]:
        raise ValueError(message(
            "ragged_all_to_all", "offsets and sizes must have one length, so many for each member.",
            got=f"shapes {', '.join(map(str, shapes))}",
            expected=f"(K,), K a multiple of {count}",
        ))  # fmt: skip
    for table in tables:
        if table.dtype.kind not in "iu":
            raise TypeError(message(
                "ragged_all_to_all", "offsets and sizes are integers.", got=table.aval.str_long()
            ))  # fmt: skip
