"""Errors of formats that do not fit their arguments, as `str.format` classes them.

Neighbours: `debug` and `checkify.checks` look at formats when a program is traced.
"""

from __future__ import annotations

__all__ = ["FormatError", "format_error_like"]

__dir__ = __all__.copy


class FormatError(ValueError):
    """A format does not fit its arguments."""


class _NameError(FormatError, KeyError):
    """A format names what is not given: also the error of `str.format`."""

    __str__ = Exception.__str__


class _PositionError(FormatError, IndexError):
    """A format has a place for what is not given: also the error of `str.format`."""


def format_error_like(error: Exception) -> type[FormatError]:
    """Return the class for what `str.format` raised."""
    return _KINDS.get(type(error), FormatError)


_KINDS: dict[type[Exception], type[FormatError]] = {
    KeyError: _NameError, IndexError: _PositionError,
}  # fmt: skip
