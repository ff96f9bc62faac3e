"""Keys of static values: values that compare equal but act differently have different keys.

`1 == 1.0 == True` and `0.0 == -0.0`, but a program made with one of them is not that of the other.
`static_key` adds to a value what its `==` ignores: the types and the signs of zeros, also in
tuples and their subclasses, frozensets, slices, dataclasses and objects with an equality of their
own. Different keys of two equivalent values cost one trace.
"""

from __future__ import annotations

import datetime
import marshal
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from xtree.records import has_equality_of_identity, is_decimal, unseen_in_attributes

__all__ = ["static_key", "params_key", "plain_key", "are_plain"]

__dir__ = __all__.copy

_TO_THE_TYPE = frozenset((int, bool, str, bytes, type(None), type(...), type))


def static_key(value: Any) -> Hashable:
    """Return a key for a hashable static value.

    Example:
      >>> static_key(1) == static_key(True), static_key((0.0,)) == static_key((-0.0,))
      (False, False)
    """
    kind: Any = type(value)
    if kind in _TO_THE_TYPE:
        return (kind, value)
    if kind is float:
        return (kind, value.hex())
    if kind is tuple:
        return (kind, *[static_key(v) for v in value])
    describe = _description(kind)
    if describe is not None:
        return (kind, describe(value))
    if isinstance(value, np.generic):
        return (kind, value.dtype.str, value.tobytes())
    if isinstance(value, tuple) and kind.__eq__ is tuple.__eq__:
        return (kind, *[static_key(v) for v in value], unseen_in_attributes(value))
    if has_equality_of_identity(kind):
        return (kind, value)
    return (kind, value, unseen_in_attributes(value))


def _description(kind: type) -> Callable[[Any], Hashable] | None:
    """Return what tells apart equal values of a class: of decimals the text, 1.0 or 1.00."""
    return repr if is_decimal(kind) else _by_kind.get(kind)


def params_key(params: dict[str, Any]) -> tuple[Hashable, ...]:
    """Return the params of an equation as parts of a key, in which `0.0` and `-0.0` differ.

    Only numbers and tuples of them are looked into: a param of another type is what its `==` says.

    Example:
      >>> params_key({"axis": 1, "fill": 0.0}) == params_key({"axis": 1, "fill": -0.0})
      False
    """
    if not params:
        return ()
    values = [*params.values()]
    try:
        key = marshal.dumps(values, 2)
    except ValueError:
        pass  # an object, such as a dtype
    else:
        if _BUFFER not in key or are_plain(values):
            return (*params, key)
    return tuple([
        (name, static_key(value)) if type(value) in _LOOKED_INTO else (name, type(value), value)
        for name, value in params.items()
    ])  # fmt: skip


def plain_key(params: dict[str, Any]) -> bytes:
    """Return the types and bits of the params of an equation, in a tenth of the time of a walk.

    Only of values that `are_plain` does it tell all apart: of NumPy's scalars it has no dtype.

    Raises:
      ValueError: a param is an object of another kind, such as a dtype.
    """
    return marshal.dumps(params, 2)  # the version without references, in which equals are equal


def are_plain(values: Iterable[Any]) -> bool:
    """Return whether values are of Python's own types of numbers and text, or tuples of these."""
    return all(type(v) in _PLAIN or (type(v) is tuple and are_plain(v)) for v in values)


_BUFFER = b"s"  # marks what `marshal` writes without its dtype; other bytes may be the same
_PLAIN = frozenset((int, bool, float, complex, str, type(None)))
_LOOKED_INTO = frozenset((float, complex, tuple, np.float64, np.float32))


def _complex(value: complex) -> Hashable:
    return (value.real.hex(), value.imag.hex())


def _bounds(value: Any) -> Hashable:
    return tuple([static_key(v) for v in (value.start, value.stop, value.step)])


def _elements(value: frozenset[Any]) -> Hashable:
    return frozenset([static_key(v) for v in value])


_by_kind: dict[type, Callable[[Any], Hashable]] = {
    complex: _complex,
    slice: _bounds,
    range: _bounds,
    frozenset: _elements,
    np.dtype: lambda value: (value, repr(value.metadata)),
    datetime.datetime: repr,  # equal moments in two time zones are equal
    datetime.time: repr,
}
