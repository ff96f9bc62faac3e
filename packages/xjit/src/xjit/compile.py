"""Compile lowered programs, each text once.

What: `executable_for`, and `statistics`, which count programs and seconds.
Idea: executables are found again by a digest of the text without the module's name, the device and
the options, so equal programs of different functions are compiled once. The cache is bounded.
Neighbours: `lowering` makes the texts, `jaxlib_gateway` compiles, `program` runs.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xjit import jaxlib_gateway as gateway
from xjit.cache_memory import Bounded
from xjit.lowering import LoweredProgram
from xjit.mappings import room
from xjit.placement import Placement
from xprim import config, dtypes, shaped_array

logger = logging.getLogger("xjit")

Options = Mapping[str, bool | int | float | str]

_MAX_EXECUTABLES = 2048


@dataclass(slots=True)
class Statistics:
    """What was compiled in this process so far.

    Attributes:
      compiled: programs given to XLA.
      found: programs whose executable was there already, for another function or placement.
      seconds: time spent in XLA.
      text_bytes: length of the texts of the programs given to XLA.
    """

    compiled: int = 0
    found: int = 0
    seconds: float = 0.0
    text_bytes: int = 0


statistics = Statistics()

_executables: Bounded[gateway.Executable] = Bounded(_MAX_EXECUTABLES)
room.when_short(_executables.forget)


def executable_for(
    lowered: LoweredProgram, placement: Placement, options: Options | None = None
) -> gateway.Executable:
    """Return the executable of a program at a placement, compiled now or before.

    Args:
      lowered: the program.
      placement: where it runs.
      options: settings of XLA by name.

    Raises:
      XlaError: XLA does not accept or cannot compile the program.
    """
    if lowered.callbacks:  # the text names them by number only
        return _compiled(lowered, placement, options)
    settings = tuple(sorted((options or {}).items()))
    key = (hashlib.sha256(lowered.body.encode()).digest(), placement.devices,
           placement.num_partitions, placement.is_split, settings)  # fmt: skip
    found = _executables.get(key)
    if found is not None:
        statistics.found += 1
        return found
    found = _compiled(lowered, placement, options)
    _executables.put(key, found)
    return found


def clear_executables() -> None:
    """Forget all executables that no function holds."""
    _executables.clear()


def _compiled(
    lowered: LoweredProgram, placement: Placement, options: Options | None
) -> gateway.Executable:
    text = lowered.text
    if "lapack_" in text:  # the routines must be known before a program with them is loaded
        gateway.register_lapack()
    room.make(text)
    start = time.perf_counter()
    executable = compiler(
        text, placement.devices, num_replicas=placement.num_replicas,
        num_partitions=placement.num_partitions, use_spmd=placement.is_split,
        use_shardy=placement.is_split, free_outputs=_free_outputs(lowered, placement),
        options=options, host_callbacks=lowered.callbacks,
        outputs=[shaped_array(a.shape, dtypes.stored(a.dtype)) for a in lowered.out_avals],
    )  # fmt: skip
    seconds = time.perf_counter() - start
    statistics.compiled += 1
    statistics.seconds += seconds
    statistics.text_bytes += len(text)
    if config.values.log_compiles:
        types = ", ".join([a.str_long() for a in lowered.in_avals])
        logger.warning("compiled %s(%s) in %.3f s", lowered.name, types, seconds)
    return executable


def _free_outputs(lowered: LoweredProgram, placement: Placement) -> list[bool]:
    """Return for each result whether XLA may choose how it lies: where the text says nothing."""
    if not placement.is_split:
        return []
    asked = placement.out_shardings or [None] * len(lowered.out_avals)
    return [sharding is None for sharding in asked]


# What turns text into an executable; a cache on disk puts itself before it.
compiler: Callable[..., gateway.Executable] = gateway.compile_program
