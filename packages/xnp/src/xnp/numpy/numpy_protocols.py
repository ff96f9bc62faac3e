"""NumPy's own functions on arrays and tracers: `np.sin(x)` is `xnp.sin(x)`.

NumPy asks its operands before it computes. A universal function asks `__array_ufunc__`, most other
functions ask `__array_function__`; both are answered with the function of the same name here, so
that code written for NumPy differentiates, maps and compiles. What has no such function, and what
asks for something that arrays cannot do (`out=`, `dtype=` of a ufunc, a list changed in place, an
operand of None or text beside an array), is NumPy's: it gets the elements, as `np.asarray` gives
them, and a tracer, which has none, raises.

`np.asarray`, `np.array` and what else makes arrays of anything ask neither and give NumPy's arrays.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from xnp.numpy.creation import asarray
from xprim import Array

__all__: list[str] = []

_CHANGE_THE_FIRST = frozenset({"put", "place", "fill_diagonal", "put_along_axis"})
_ABOUT_NUMPY = frozenset({
    "result_type", "can_cast", "array_repr", "array_str", "save", "savez", "iscomplexobj",
    "isrealobj",
})  # fmt: skip


def array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Answer a universal function of NumPy, or a method of one."""
    if not _are_known(map(type, inputs)):
        return NotImplemented
    ours = _function_of_ufunc(ufunc, method)
    first_is_changed = method == "at"
    if ours is None or first_is_changed or not _takes(ours, kwargs):
        return on_host(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs)
    return _answer(ours, inputs, kwargs)


def array_function(
    self: Any, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
) -> Any:
    """Answer any other function of NumPy that asks."""
    if not all(issubclass(t, Array | np.ndarray) for t in types):
        return NotImplemented
    ours = _function_named(function.__module__, function.__name__)
    changes_numpy = function.__name__ in _CHANGE_THE_FIRST and isinstance(args[0], np.ndarray)
    if ours is None or changes_numpy or not _takes(ours, kwargs):
        return on_host(function, args, kwargs)
    try:
        return _answer(ours, args, kwargs)
    except TypeError:
        if any(map(_is_text_or_none, args)):
            with contextlib.suppress(TypeError, ValueError):  # our error says more
                return on_host(function, args, kwargs)
        raise


def _answer(ours: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a function of ours; where it raises TypeError, once more with lists as arrays.

    NumPy accepts lists of numbers, or of arrays, where our functions accept arrays alone, but not
    everywhere: shapes, axes and the arrays that are joined are lists for both.
    """
    try:
        return ours(*args, **kwargs)
    except TypeError:
        for convert in (_as_arrays, _stacked):
            try:
                listed = [convert(x) for x in args]
                named = {name: convert(x) for name, x in kwargs.items()}
                before, after = [*args, *kwargs.values()], [*listed, *named.values()]
                if any(x is not y for x, y in zip(before, after, strict=True)):
                    return ours(*listed, **named)
            except (TypeError, ValueError):
                pass  # the error of the arguments as they are says more
        raise


def _as_arrays(value: Any) -> Any:
    """Return a list of numbers as an array; in a list of arrays, those that are lists."""
    if type(value) not in (list, tuple) or not value:
        return value
    if any(isinstance(x, Array | np.ndarray) for x in value):
        parts = [_as_arrays(x) for x in value]
        same = all(x is y for x, y in zip(value, parts, strict=True))
        return value if same else type(value)(parts)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # ragged, or with tracers deeper down
        return value
    return array if array.dtype.kind in "biufc" else value


def _stacked(value: Any) -> Any:
    """Return a list of numbers or arrays as an array."""
    return asarray(value) if type(value) in (list, tuple) and value else value


def _is_text_or_none(value: Any) -> bool:
    """Whether NumPy makes an array of objects or text of an operand."""
    if type(value) in (list, tuple):
        return any(map(_is_text_or_none, value))
    return value is None or isinstance(value, str | bytes)


def on_host(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a function of NumPy with elements in place of arrays."""
    return function(*_elements(args), **_elements(kwargs))


def _elements(value: Any) -> Any:
    if isinstance(value, Array):
        return np.asarray(value)
    if type(value) in (list, tuple):
        return type(value)([_elements(x) for x in value])
    if type(value) is dict:
        return {key: _elements(x) for key, x in value.items()}
    return value


def _are_known(types: Iterable[type]) -> bool:
    """Whether no operand has answers of its own that NumPy should ask for."""
    return all(
        issubclass(t, Array | np.ndarray | np.generic)
        or getattr(t, "__array_ufunc__", None) is None
        for t in types
    )


@functools.lru_cache(maxsize=1024)
def _function_of_ufunc(ufunc: Any, method: str) -> Callable[..., Any] | None:
    """Return our form of a ufunc of NumPy; those of others (SciPy's) are none."""
    name: str = ufunc.__name__
    if getattr(np, name, None) is not ufunc:
        return None
    found: Any = getattr(sys.modules["xnp"], name, None)
    answer: Callable[..., Any] | None = (
        found if method == "__call__" else getattr(found, method, None)
    )
    return answer


@functools.lru_cache(maxsize=1024)
def _function_named(module: str, name: str) -> Callable[..., Any] | None:
    """Return our function of the name that a function of NumPy has in its module."""
    if module not in ("numpy", "numpy.linalg", "numpy.fft") or name in _ABOUT_NUMPY:
        return None
    package = sys.modules["xnp"]
    holder: Any = package if module == "numpy" else getattr(package, module.removeprefix("numpy."))
    found = getattr(holder, name, None)
    return found if callable(found) and not isinstance(found, type) else None


def _takes(function: Callable[..., Any], kwargs: dict[str, Any]) -> bool:
    """Whether a function of ours takes these arguments by name."""
    return not kwargs or (kwargs.get("out") is None and kwargs.keys() <= _names(function))


@functools.lru_cache(maxsize=1024)
def _names(function: Callable[..., Any]) -> frozenset[str]:
    """Return the names of a function's parameters."""
    return frozenset(inspect.signature(function).parameters)
