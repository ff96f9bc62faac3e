"""The kinds of checks that `checkify` is asked for, as sets to be joined with `|`."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ErrorCategory", "user_checks", "nan_checks", "div_checks", "index_checks", "float_checks",
    "automatic_checks", "all_checks",
]  # fmt: skip

__dir__ = __all__.copy


class ErrorCategory(str):
    """A kind of checks: `user`, `nan`, `div` or `index`."""

    __slots__ = ()


user_checks: Final = frozenset([ErrorCategory("user")])
"""Those that the program makes by `check`."""
nan_checks: Final = frozenset([ErrorCategory("nan")])
"""That no operation gives a NaN."""
div_checks: Final = frozenset([ErrorCategory("div")])
"""That nothing is divided by zero."""
index_checks: Final = frozenset([ErrorCategory("index")])
"""That no array is read or written out of its bounds."""
float_checks: Final = nan_checks | div_checks
automatic_checks: Final = float_checks | index_checks
all_checks: Final = automatic_checks | user_checks
