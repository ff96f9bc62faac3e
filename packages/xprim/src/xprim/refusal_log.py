"""What is said where there is no kernel.

A module of its own, since `logging` takes as long to import as twenty modules of ours: `kernels`
imports it when there is somebody to listen.
"""

from __future__ import annotations

import logging

__all__ = ()

_logger = logging.getLogger("xprim.kernels")


def say(table: str, what: str, reason: str, *, shown: bool) -> None:
    """Log why a table has no kernel for something, as a warning where it is shown."""
    level = logging.WARNING if shown else logging.DEBUG
    _logger.log(level, "%s: no kernel for %s: %s", table, what, reason)
