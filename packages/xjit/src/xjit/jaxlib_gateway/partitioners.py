"""Let Python say how an operation is split over devices, while XLA splits the program around it.

What: `ask`, which makes a partitioner known and returns what its custom call carries.
Idea: for a custom call of a target that is made known, XLA's partitioner calls back
with how operands and results lie; it is told how they shall lie, and what each device computes. The
`backend_config` of the call is a number, by which the one who answers is found.
Neighbours: `tiles` reads and writes how arrays lie, `probes` only asks.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Sequence
from typing import Any, Protocol

from .runtime import xla_client
from .tiles import Tiles, hlo_sharding, tiles_of

__all__ = ()

TARGET = "xstack.custom_partitioning"
"""The name by which XLA knows the custom call."""


class Partitioner(Protocol):
    """Who says how an operation is split.

    Attributes:
      count: the number of devices.
      in_ndims: the number of dimensions of each operand.
      out_ndims: that of each result.
    """

    count: int
    in_ndims: list[int]
    out_ndims: list[int]

    def split(
        self, operands: Sequence[Tiles], results: Sequence[Tiles]
    ) -> tuple[str, Sequence[Tiles], Sequence[Tiles]]:
        """Return what each device computes of its pieces, and how operands and results shall lie.

        Args:
          operands: how XLA would have them lie.
          results: likewise.

        Returns:
          A module of StableHLO, and the tiles that it is written for.
        """


# By the numbers in programs; each lives as long as its program.
_known: weakref.WeakValueDictionary[int, Partitioner] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)
_lock = threading.Lock()
_registered: list[bool] = []


def ask(partitioner: Partitioner) -> str:
    """Have XLA ask a partitioner, which must live until its program is compiled.

    Returns:
      The `backend_config` of its custom call.
    """
    with _lock:
        if not _registered:
            xla_client.register_custom_call_partitioner(
                TARGET,
                _as_its_user_has_it,
                _split,
                _whole,
                can_side_effecting_have_replicated_sharding=True,
            )
            _registered.append(True)
        number = next(_numbers)
        _known[number] = partitioner
    return str(number)


def _as_its_user_has_it(sharding: Any, _shape: Any, _config: Any) -> Any:
    return sharding


def _whole(_arg_shapes: Any, _arg_shardings: Any, _shape: Any, _config: Any) -> Any:
    return xla_client.HloSharding.replicate()  # which the rule in the text of the program precedes


def _split(
    _arg_shapes: Any, arg_shardings: Sequence[Any], result_shape: Any, result_sharding: Any,
    config: Any,
) -> tuple[bytes, list[Any], Any]:  # fmt: skip
    partitioner = _known[int(config)]
    parts = result_sharding.tuple_elements() if result_shape.is_tuple() else [result_sharding]
    sides = (arg_shardings, partitioner.in_ndims), (parts, partitioner.out_ndims)
    tiles = [[tiles_of(s.to_proto(), partitioner.count, ndim)
              for s, ndim in zip(side, ndims, strict=True)] for side, ndims in sides]  # fmt: skip
    text, operands, results = partitioner.split(*tiles)
    found = [hlo_sharding(t) for t in results]
    packed = found[0]
    if result_shape.is_tuple():
        packed = xla_client.HloSharding.tuple_sharding(result_shape, found)
    return text.encode(), [hlo_sharding(t) for t in operands], packed
