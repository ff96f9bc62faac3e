"""Where an error leaves one function for the user's code; `boundaries` shows these names.

This module imports no other of the package, so that each may be a boundary.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ()

P = ParamSpec("P")
R = TypeVar("R")

_leaving: list[Callable[[BaseException], None]] = []


def when_leaving(shorten: Callable[[BaseException], None]) -> None:
    """Have a function called with each error that leaves a boundary."""
    _leaving[:] = [shorten]


def leave(error: BaseException) -> None:
    """Say that an error is about to leave the library; to be followed by a bare `raise`."""
    for shorten in _leaving:
        shorten(error)


def boundary(fun: Callable[P, R]) -> Callable[P, R]:
    """Let errors leave a public function without the frames of the library.

    Example:
      >>> @boundary
      ... def apply(fun, x):
      ...     return fun(x)
      >>> apply(abs, -1)
      1
    """

    @functools.wraps(fun)
    def bounded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            leave(error)
            raise

    return bounded
