"""The order of dimensions in the memory of buffers, where it is not that of NumPy.

The elements of a buffer may lie in any order of its dimensions, the slowest first: (1, 0) has the
columns of a matrix one after another. Programs are compiled for the orders of their arguments and
results, which their text names (`layout_mode`), and the runtime does not look whether buffers fit:
one in another order would be misread. So the order is a part of the sharding object of a buffer
(`spread_buffers.laid_over`), by which all that is given to programs is compared.

`turned` brings a buffer into another order, by a program on its devices; `lies_in` reads one.

Neighbour: `spread_buffers` has these buffers.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from .array_types import SUB_BYTE_DTYPES, array_type, element_type
from .executables import Executable, compile_program, result_handler

__all__ = ()

Order: TypeAlias = tuple[int, ...] | None

orders_used = [False]
"""Whether anything was ever in another order than that of NumPy; until then nobody need ask."""


def layout_mode(order: Order | str) -> str:
    """Return the attribute of an argument or a result that lies in an order.

    "auto" leaves it to the compiler.
    """
    if order is None or isinstance(order, str):
        return f'mhlo.layout_mode = "{order or "default"}"'
    return f'mhlo.layout_mode = "{{{",".join(map(str, reversed(order)))}}}"'


def orders_of(layouts: Sequence[Any]) -> list[Order]:
    """Return the orders that the runtime's layouts of arguments or results name."""
    orders = [tuple(layout._xla_layout().minor_to_major())[::-1] for layout in layouts]
    return [None if order == tuple(range(len(order))) else order for order in orders]


def turned(buffer: Any, before: Order, where: Any, after: Order, devices: tuple[Any, ...]) -> Any:
    """Return a buffer of the same pieces on the same devices, in another order.

    Args:
      buffer: the buffer.
      before: the order in which it lies.
      where: the sharding object of the other one.
      after: the order in which that one lies.
      devices: which they are.
    """
    kind = buffer.aval
    shape = where.shard_shape(kind.shape)
    program = _turning(shape, kind.dtype, before, after, devices)
    handler = result_handler(array_type(kind.shape, kind.dtype), where)
    return program.start([buffer]).consume_with_handlers([handler])[0]


@functools.lru_cache(maxsize=256)
def _turning(
    shape: tuple[int, ...], dtype: np.dtype[Any], before: Order, after: Order,
    devices: tuple[Any, ...],
) -> Executable:  # fmt: skip
    """Return the program that brings pieces of a type from one order to another."""
    kind = f"tensor<{''.join([f'{n}x' for n in shape])}{element_type(dtype)}>"
    text = (
        "module @turned { func.func public @main("
        f"%0: {kind} {{{layout_mode(before)}}}) -> ({kind} {{{layout_mode(after)}}}) "
        f"{{ return %0 : {kind} }} }}"
    )
    return compile_program(
        text, devices, num_replicas=len(devices), outputs=[array_type(shape, dtype)]
    )


def lies_in(order: Order, host: np.ndarray[Any, Any], platform: str) -> np.ndarray[Any, Any]:
    """Return what was read of a piece as an array with its elements where they belong.

    Memory of the CPU is shown as it is: with the strides of the order by jaxlib 0.12, and as if it
    lay in the order of NumPy by those before, which know no other.

    Args:
      order: in which the piece lies.
      host: what was read.
      platform: of its device.
    """
    if order is None or platform != "cpu" or host.dtype in SUB_BYTE_DTYPES:  # read as values
        return host
    if not host.flags.c_contiguous:
        return host
    raw = host.reshape([host.shape[d] for d in order])
    seen = raw.transpose(np.argsort(order))
    seen.flags.writeable = False
    return seen
