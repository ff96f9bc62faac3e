"""Ctrl-C in a training loop that donates its parameters.

A `KeyboardInterrupt` may come between the start of an update, which takes the memory of the old
parameters, and the assignment of the new ones: then neither is left. So Ctrl-C is a question here,
which the loop answers when a step is complete and the parameters are whole.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["CtrlC"]

__dir__ = __all__.copy


class CtrlC:
    """Notes Ctrl-C instead of interrupting, for the time of a block; a second one interrupts.

    Attributes:
      pressed: whether it was pressed.

    Example:
      >>> with CtrlC() as ctrl_c:
      ...     for step in range(3):
      ...         if ctrl_c.pressed:
      ...             break
      >>> ctrl_c.pressed
      False
    """

    def __init__(self) -> None:
        self.pressed = False
        self._previous: Any = None

    def __enter__(self) -> CtrlC:
        if threading.current_thread() is threading.main_thread():  # signals come to no other
            self._previous = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True
