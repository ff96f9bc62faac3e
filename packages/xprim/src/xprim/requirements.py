"""Checks of arguments: what an operation requires, and the error where it does not hold.

A check is one call that reads as the sentence it enforces::

    require(x.ndim == 2, "det", "takes matrices.", got=x)
    require_choice("convolve", "mode", mode, ("full", "same", "valid"))

A check that holds formats nothing: values are passed as they are and described when the error is
written, arrays by their type, everything else by its repr. The call itself costs about 0.1 us.
What an eager call of one microsecond checks each time is therefore an `if` with a `raise`, and so
is a check that a type checker has to follow, or whose text needs a computation.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import numpy as np

from xprim.errors import message
from xtree.errors import shown

__all__ = ["require", "require_axis", "require_choice", "require_dtype", "require_equal_dtypes"]

__dir__ = __all__.copy

_NOTHING: Any = object()


def require(
    holds: object,
    operation: str,
    fact: str,
    *parts: Any,
    got: Any = _NOTHING,
    expected: Any = "",
    hint: str = "",
    error: type[Exception] = ValueError,
) -> None:
    """Raise an error unless a condition holds.

    Args:
      holds: the condition; only its truth value is used.
      operation: the public function that checks.
      fact: what is wrong where it does not hold, a sentence with its full stop; with `parts` a
        format of `str.format`.
      *parts: what the format shows: an array as its type, a dtype as its name.
      got: the value at fault, a tuple of arrays, or a dict of several values by name.
      expected: what would have been right, a text or an array of the right type.
      hint: what to write instead, if that is right in all cases.
      error: the class of the error.

    Example:
      >>> require(3 >= 2, "dot", "takes two vectors at least.", got=3)
      >>> require(1 >= 2, "dot", "takes {} vectors at least.", 2, got={"count": 1})
      Traceback (most recent call last):
          ...
      ValueError: dot: takes 2 vectors at least.
        got       count=1
    """
    if not holds:
        raise error(message(
            operation, fact.format(*[_part(x) for x in parts]) if parts else fact,
            got="" if got is _NOTHING else value_text(got),
            expected=expected if isinstance(expected, str) else value_text(expected), hint=hint,
        ))  # fmt: skip


def require_choice(
    operation: str,
    name: str,
    value: Any,
    choices: Iterable[Any],
    *,
    also: str = "",
    error: type[Exception] = ValueError,
) -> None:
    """Raise an error unless an option is one of its choices.

    Args:
      operation: the public function that checks.
      name: what the option is called: `mode`.
      value: what was passed.
      choices: a tuple, dict or set of what may be passed.
      also: what may be passed besides, in words; the caller has accepted it already.
      error: the class of the error.

    Example:
      >>> require_choice("convolve", "mode", "whole", ("full", "same", "valid"))
      Traceback (most recent call last):
          ...
      ValueError: convolve: there is no such mode.
        got       'whole'
        expected  'full', 'same' or 'valid'
    """
    if not _is_among(value, choices):
        *others, last = [*[repr(choice) for choice in choices], *([also] if also else [])]
        expected = f"{', '.join(others)} or {last}" if others else last
        text = message(operation, f"there is no such {name}.", got=shown(value), expected=expected)
        raise error(text)


def _is_among(value: Any, choices: Any) -> bool:
    """Return whether a value is one of the choices: no array is, nor anything unhashable."""
    choices_: Container[Any] = choices
    try:
        return bool(value in choices_)
    except (TypeError, ValueError):  # unhashable; an array, which compares by element
        return False


def require_dtype(operation: str, x: Any, kinds: Container[Any], expected: str = "") -> None:
    """Raise a TypeError unless the dtype of an array or abstract value is among some.

    Example:
      >>> from xprim import dtypes, shaped_array
      >>> require_dtype("fft", shaped_array((3,), dtypes.int32), {dtypes.complex64}, "complex64")
      Traceback (most recent call last):
          ...
      TypeError: fft: does not take operands of dtype int32.
        expected  complex64
    """
    if x.dtype not in kinds:
        text = f"does not take operands of dtype {x.dtype.name}."
        raise TypeError(message(operation, text, expected=expected))


def require_equal_dtypes(operation: str, x: Any, y: Any) -> None:
    """Raise a TypeError unless two arrays or abstract values have one dtype.

    Example:
      >>> from xprim import dtypes, shaped_array
      >>> require_equal_dtypes("solve", *[shaped_array((), d) for d in (dtypes.int8, dtypes.int16)])
      Traceback (most recent call last):
          ...
      TypeError: solve: requires operands of equal dtypes, got int8, int16.
    """
    if x.dtype != y.dtype:
        text = f"requires operands of equal dtypes, got {x.dtype.name}, {y.dtype.name}."
        raise TypeError(message(operation, text))


def require_axis(operation: str, axis: int, x: Any) -> None:
    """Raise a ValueError unless a number names a dimension of an abstract value, from 0 up.

    Example:
      >>> from xprim import dtypes, shaped_array
      >>> require_axis("sort", 1, shaped_array((3,), dtypes.int32))
      Traceback (most recent call last):
          ...
      ValueError: sort: there is no axis 1 in int32[3].
    """
    if not 0 <= axis < len(x.shape):
        raise ValueError(message(operation, f"there is no axis {axis} in {value_text(x)}."))


def value_text(value: Any) -> str:
    """Return how an error shows a value: an array by its type, others by their repr.

    A tuple with arrays shows its members; a dict shows `name: type` for arrays, else `name=repr`.

    Example:
      >>> value_text("full"), value_text({"k": 3}), value_text((1, None))
      ("'full'", 'k=3', '(1, None)')
    """
    if type(value) is tuple and any(_array_text(x) for x in value):
        return ", ".join([value_text(x) for x in value])
    if type(value) is dict:
        return ", ".join(
            [
                f"{name}: {text}" if (text := _array_text(x)) else f"{name}={value_text(x)}"
                for name, x in value.items()
            ]
        )
    return _array_text(value) or (value.name if isinstance(value, np.dtype) else shown(value))


def _part(value: Any) -> Any:
    """Return what a format shows of a value."""
    return _array_text(value) or (value.name if isinstance(value, np.dtype) else value)


def _array_text(value: Any) -> str:
    """Return `float32[3]` for an array or abstract value, and an empty string for others."""
    write = getattr(getattr(value, "aval", value), "str_long", None)
    return "" if write is None or isinstance(value, type) else str(write())
