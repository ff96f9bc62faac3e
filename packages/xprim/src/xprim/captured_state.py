"""What a function sees, as it is now: to tell later whether, and in what, it has changed.

`captured_state(fun)` is like the function's key, but looks into what is not known to be constant
as well: lists, dicts, sets, and the attributes of objects that the code reads. It is for noticing
changes, not for sharing programs: what it cannot look into, it takes to be as it was.

`difference(before, after)` names the first thing in which two states, or two keys, differ.

Neighbours: `key_walk` is the walk; `jit` compares states before it uses what was traced earlier.
"""

from __future__ import annotations

import collections
import types
import typing
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from xprim.code_reach import Chain, reach_of
from xprim.held_contents import NotConstantError, held_in_dict, slot_of
from xprim.identities import Identity
from xprim.key_walk import Walk
from xtree.errors import shown

__all__ = ["captured_state", "difference"]

__dir__ = __all__.copy

_MAX_ITEMS = 2000
_MAX_BYTES = 2**16
_MAX_DEPTH = 6


def captured_state(fun: Callable[..., Any] | tuple[Any, ...]) -> Hashable:
    """Return what a function, or each of several things, sees, for `difference`.

    Example:
      >>> rates = {"lr": 0.5}
      >>> step = lambda x: x - rates["lr"]
      >>> before = captured_state(step)
      >>> rates["lr"] = 0.25
      >>> difference(before, captured_state(step))
      "global rates ['lr']: 0.5 became 0.25"
    """
    try:
        return _StateWalk().key(fun)
    except (NotConstantError, RecursionError):
        return None


class _StateWalk(Walk):
    """A walk that looks into what may change, up to a number of items."""

    def __init__(self) -> None:
        super().__init__()
        self._items = 0
        self._inside = 0
        self._read: set[str] = set()  # the attributes that the code met so far reads

    def refuse(self, reason: str, value: Any) -> Hashable:
        """Look into what is not known to be constant."""
        self._items += 1
        if value is None or self._items > _MAX_ITEMS or self._inside > _MAX_DEPTH:
            return reason
        self._inside += 1
        try:
            return self._contents(value)
        finally:
            self._inside -= 1

    def chain(self, value: Any, chain: Chain, what: str) -> Hashable:
        """Return what `a.b.c` is; a module that computes it is taken to give the same again."""
        try:
            return super().chain(value, chain, what)
        except NotConstantError:
            return (f"{what} {'.'.join(chain)}", "computed")

    def _user_function(self, fun: types.FunctionType) -> Hashable:
        self._read |= reach_of(fun.__code__).attributes
        return super()._user_function(fun)

    def _contents(self, value: Any) -> Hashable:
        if isinstance(value, dict | types.MappingProxyType):
            return ("contents", *[self.named(_item(k), v) for k, v in self._some(value.items())])
        if isinstance(value, list | tuple | collections.deque):
            items = enumerate(self._some(value))
            return ("contents", *[self.named(f"[{i}]", v) for i, v in items])
        if isinstance(value, set | frozenset):
            return ("contents", frozenset(self._some(x for x in value if type(x) in _PLAIN)))
        if isinstance(value, np.ndarray) and value.nbytes <= _MAX_BYTES and value.dtype != object:
            return ("elements", value.shape, value.dtype.str, hash(value.tobytes()))
        if isinstance(value, bytearray | memoryview) and len(value) <= _MAX_BYTES:
            return ("elements", len(value), hash(bytes(value)))
        origin = typing.get_origin(value)
        return self._object(value) if origin is None else self.key(origin)

    def _some(self, values: Any) -> list[Any]:
        """Return the first of many values."""
        return [x for _, x in zip(range(_MAX_ITEMS), values, strict=False)]

    def _object(self, value: Any) -> Hashable:
        if isinstance(value, types.ModuleType):
            return _weakly(value)
        kind = self.key(type(value))  # what its methods read is known after that
        held = held_in_dict(value)
        values = {name: slot_of(value, item) for base in type(value).__mro__
                  for name, item in vars(base).items()
                  if type(item) is types.MemberDescriptorType}  # fmt: skip
        values |= held
        read = sorted(self._read.intersection(values))
        found = [self.named(f".{name}", values[name]) for name in read]
        return ("object", _weakly(value), kind, *found)


_PLAIN = frozenset((str, bytes, bool, int, float, type(None)))


def _item(key: Any) -> str:
    return f"[{key!r}]" if type(key) in _PLAIN else f"[a {type(key).__name__}]"


def _weakly(value: Any) -> Hashable:
    """Return the identity of an object, which must not be kept alive."""
    identity = Identity(value)
    return (type(value).__qualname__, id(value)) if identity.is_strong else identity


def difference(before: Any, after: Any) -> str:
    """Say in what two states (or keys) differ; empty if they are equal.

    Returns:
      A text as "global scale: 2.0 became 3.0", or what is known of it.
    """
    if before == after:
        return ""
    path: list[str] = []
    while True:
        pair = _first_unequal(before, after)
        if pair is None:
            break
        before, after = pair
        if _is_named(before) and _is_named(after) and before[0] == after[0]:
            path.append(before[0])
            before, after = before[1], after[1]
    what = " ".join(path) or "what it reaches"
    return f"{what}: {_shown(before)} became {_shown(after)}"


def _first_unequal(before: Any, after: Any) -> tuple[Any, Any] | None:
    if not (type(before) is type(after) is tuple) or _is_value(before) or _is_value(after):
        return None
    unequal = [(b, a) for b, a in zip(before, after, strict=False) if b != a]
    return unequal[0] if unequal and len(before) == len(after) else None


def _is_named(part: Any) -> bool:
    return type(part) is tuple and len(part) == 2 and type(part[0]) is str


def _is_value(part: Any) -> bool:
    return type(part) is tuple and len(part) == 2 and part[0] in _PLAIN


def _shown(part: Any) -> str:
    if _is_value(part):
        kind, value = part
        return repr(float.fromhex(value)) if kind is float else shown(value)
    if type(part) is Identity:
        value = part.value
        return "one that is gone" if value is None else f"one {type(value).__name__}"
    if part == "absent":
        return "absent"
    if type(part) is tuple and part and part[0] == "contents":
        return f"{len(part) - 1} items"
    return "what it was" if part is None else "another"
