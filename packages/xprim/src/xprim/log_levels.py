"""The option `logging_level`: what the packages log, on standard error, from a level on.

The packages log to loggers of their names (`xjit`, `xnp`, ...) and leave levels and handlers to
the program. The option sets both, for a look at what is traced, compiled, found and refused.
"""

from __future__ import annotations

from typing import Any

from xprim import config
from xtree.namespaces import late_import

__all__ = ["logging_level"]

__dir__ = __all__.copy

_logging = late_import("logging", "it takes 5 ms to import, as long as twenty modules of ours")

_PACKAGES = ("xtree", "xprim", "xnp", "xrandom", "xad", "xbatch", "xjit", "xpar", "xstack")
_FORM = "{levelname}:{asctime}:{name}:{lineno}: {message}"


class _LevelOption(config.ProcessOption["str | None"]):
    """The option `logging_level`."""

    __slots__ = ()
    reason = "loggers belong to the process, not to a block of one thread."


class _Loggers:
    """The levels and the handler that the option has set, and what there was before."""

    def __init__(self) -> None:
        self._value: str | None = None
        self._handler: Any = None
        self._level_by_name: dict[str, int] = {}

    def follow(self) -> None:
        """Set levels and the handler as the option says."""
        value = logging_level.value
        if value == self._value:
            return
        for name, level in self._level_by_name.items():
            _logging.getLogger(name).removeHandler(self._handler)
            _logging.getLogger(name).setLevel(level)
        self._level_by_name.clear()
        self._value = value
        if value is None or value == "NOTSET":
            return
        if self._handler is None:
            self._handler = _logging.StreamHandler()
            self._handler.setFormatter(_logging.Formatter(_FORM, style="{"))
        for name in _PACKAGES:
            logger = _logging.getLogger(name)
            self._level_by_name[name] = logger.level
            logger.setLevel(value)
            logger.addHandler(self._handler)


logging_level = config.define(
    _LevelOption(
        "logging_level",
        None,
        "From which level on the loggers of the packages write to standard error; None leaves them "
        "to the program.",
        choices=(None, "NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    )
)
_loggers = _Loggers()
config.when_changed(_loggers.follow)
_loggers.follow()  # the environment may name a level
