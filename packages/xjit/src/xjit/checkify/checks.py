"""Checks that programs make: `check`, `debug_check`, `error_if`, `check_error`.

Neighbours: `xnp.primitives.check` has the primitive, `failures` what `checkify` makes of it.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

import xtree
from xjit.checkify.failures import Error
from xjit.format_errors import format_error_like
from xnp import lax
from xprim import Array, as_array, dtypes, get_primitive, source
from xprim.check_sites import CheckSite
from xprim.descriptions import described
from xprim.errors import message
from xprim.extended import unwrap
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike

__all__ = ["check", "check_error", "debug_check", "error_if"]

__dir__ = __all__.copy

T = TypeVar("T")


@boundary
def check(
    pred: ArrayLike, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any
) -> None:
    """Check that something holds.

    Where it does not, the call raises: evaluated at once, and compiled when the program runs. A
    program that is called through `checkify` returns the failure instead.

    Args:
      pred: a boolean, or an array of them that must all hold.
      msg: what the failure says, a format of `str.format`.
      *fmt_args: pytrees of arrays for `{}` and `{0}`.
      debug: whether it is only made under `checkify`.
      **fmt_kwargs: pytrees of arrays for `{name}`.

    Raises:
      CheckError: it does not hold.
      TypeError: `pred` is not boolean, `msg` is no string.
      ValueError: `msg` does not fit its arguments.

    Example:
      >>> from xjit import jit
      >>> @jit
      ... def root(x):
      ...     check(x >= 0, "x must not be negative, got {}", x)
      ...     return x ** 0.5
      >>> root(4.0)
      Array(2., dtype=float32, weak_type=True)
      >>> root(-4.0)
      Traceback (most recent call last):
      xprim.errors.CheckError: x must not be negative, got -4.0 (`check` failed)
      ...
    """
    _check(pred, msg, fmt_args, fmt_kwargs, debug)


@boundary
def debug_check(pred: ArrayLike, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Check that something holds, but only under `checkify`; elsewhere nothing happens.

    Args:
      pred: a boolean.
      msg: what the failure says, a format of `str.format`.
      *fmt_args: pytrees of arrays for `{}` and `{0}`.
      **fmt_kwargs: pytrees of arrays for `{name}`.

    Raises:
      TypeError: the predicate is no boolean, or an array of several.
    """
    found = _boolean(pred, "debug_check")
    if found.aval.ndim:
        raise TypeError(message(
            "debug_check", "the predicate must be one boolean.", got=found.aval.str_long(),
            hint="pred.all() holds where all of them do",
        ))  # fmt: skip
    _check(found, msg, fmt_args, fmt_kwargs, True)


@boundary
def error_if(x: T, pred: ArrayLike, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> T:
    """Return `x`, and raise where a condition holds.

    Args:
      x: anything.
      pred: a boolean, or an array of them of which none may hold.
      msg: what the failure says, a format of `str.format`.
      *fmt_args: pytrees of arrays for `{}` and `{0}`.
      **fmt_kwargs: pytrees of arrays for `{name}`.

    Returns:
      `x` as it is.

    Raises:
      CheckError: the condition holds.

    Example:
      >>> error_if(2.0, False, "not this time")
      2.0
    """
    pred = _boolean(pred, "error_if")
    _check(lax.bitwise_not(pred), msg, fmt_args, fmt_kwargs, False)
    return x


@boundary
def check_error(error: Error) -> None:
    """Raise the failure that an error holds, if there is one, as `check` does.

    Args:
      error: what a function gave that `checkify` returned.

    Example:
      >>> from xjit.checkify import init_error
      >>> check_error(init_error)
    """
    if not isinstance(error, Error):
        raise TypeError(
            message("check_error", "the error must be one of checkify.", got=described(error))
        )
    code, payload = map(as_array, xtree.leaves(error))
    get_primitive("check").bind(
        lax.eq(code, np.int32(0)), code, payload, site=_RaiseAgain("user", ""), batch_ndim=0,
        mapped=(False, False),
    )  # fmt: skip


class _RaiseAgain(CheckSite):
    """The check of an error that a program has already."""

    __slots__ = ()

    def message(
        self, values: Any, index: tuple[int, ...] | None = None,
        outer: tuple[int, ...] | None = None,
    ) -> str:  # fmt: skip
        """Return what the failed checks said."""
        found = Error(*map(np.asarray, values)).texts(is_inner=True)
        where = ", ".join(map(str, (*(outer or ()), *(index or ()))))
        return "\n".join([f"{text} (at mapped index {where})" if where else text for text in found])


def _boolean(pred: Any, operation: str) -> Array:
    found = as_array(pred, what=f"{operation}: the predicate")
    if found.aval.dtype != dtypes.bool_:
        raise TypeError(
            message(operation, "the predicate must be boolean.", got=found.aval.str_long())
        )
    return found


def _check(pred: Any, msg: str, args: Any, kwargs: Any, is_debug: bool) -> None:
    array = _boolean(pred, "check")
    if not isinstance(msg, str):
        raise TypeError(message("check", "the text must be a string.", got=described(msg)))
    leaves, tree = xtree.flatten((args, kwargs))
    values = [as_array(x, what="check: an argument of the text") for x in leaves]
    values = [unwrap(x) if dtypes.is_extended(x.aval.dtype) else x for x in values]
    site = CheckSite("user", msg, tree, source.describe(source.capture()), is_debug)
    try:
        site.message([np.zeros(v.aval.shape, v.aval.dtype) for v in values])
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        raise format_error_like(error)(message(
            "check", "the text does not fit its arguments.",
            got=f"{msg!r}: {type(error).__name__}: {error}",
            hint="write {} or {name} for each argument, braces as {{ }}",
        )) from None  # fmt: skip
    get_primitive("check").bind(
        array, *values, site=site, batch_ndim=0, mapped=(False,) * len(values)
    )
