"""A first executable that is made quickly, and replaced by the one of full effort later.

What: the option `first_compile_level`; `level_of`, which says for a program whether it has a first
tier; `finish_later`, which compiles in full behind the calls; `finish`, which waits for that.
Idea: an executable of the first tier starts by way of a cell, which is given the full code when it
is there. All who hold it (programs, fronts of functions, kernels) have the full one from then on.
Neighbours: `compile` makes both, `background` has the thread.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from xjit import jaxlib_gateway as gateway
from xjit.background import InTurn, Once
from xjit.lowering import LoweredProgram
from xjit.placement import OneDevice, Placement
from xprim.seldom_options import first_compile_level

__all__ = ["NAME", "finish", "finish_later", "level_of", "split_options"]

__dir__ = __all__.copy

logger = logging.getLogger("xjit")

NAME = first_compile_level.name
_LEVEL = "xla_backend_optimization_level"

_behind = InTurn("xjit compiles in full").end_at_exit()


def split_options(
    options: Mapping[str, Any] | None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of XLA among compiler options, and the others, which are ours.

    Raises:
      TypeError, ValueError: there is no such level.
    """
    of_xla = dict(options or {})
    if NAME not in of_xla:
        return of_xla, {}
    return of_xla, {NAME: first_compile_level.check(of_xla.pop(NAME))}


def level_of(
    lowered: LoweredProgram, placement: Placement, options: Mapping[str, Any] | None,
    own: Mapping[str, Any],
) -> int | None:  # fmt: skip
    """Return at which level a program is compiled first, None for in full at once.

    Args:
      lowered: the program.
      placement: where it runs: on several devices XLA may lay results out otherwise at each level.
      options: the settings of XLA; a level among them is what the user wants for good.
      own: what `split_options` found for this program.
    """
    level = own.get(NAME, first_compile_level.value)
    if level is None or not isinstance(placement, OneDevice) or placement.platform != "cpu":
        return None
    return None if lowered.inspections or _LEVEL in (options or {}) else level


def quick(settings: Mapping[str, Any], level: int) -> dict[str, Any]:
    """Return what the compiler is told of the first tier, from what it is told of the full one."""
    return {**settings, "options": {**(settings["options"] or {}), _LEVEL: level}}


def finish_later(
    first: gateway.Executable, name: str, in_full: Callable[[], gateway.Executable]
) -> None:
    """Have an executable take the code of full effort, as soon as that is there.

    Where it cannot be made the first one stays, and the log says why.

    Args:
      first: what was compiled at a lower level.
      name: of the program.
      in_full: compiles it.
    """
    known = weakref.ref(first)

    def work() -> None:
        executable = known()
        if executable is None:  # nobody holds it any more
            return
        try:
            executable.become(in_full())
        except Exception as error:
            logger.warning(
                "%s stays as it was compiled first, with less effort: %s: %s",
                name, type(error).__name__, error,
            )  # fmt: skip
        executable.pending = None

    first.be_replaceable()
    first.pending = Once(work)
    _behind.add(first.pending)


def finish(executable: gateway.Executable) -> None:
    """Have an executable be the one of full effort, now."""
    pending = executable.pending
    if pending is not None:
        pending()
