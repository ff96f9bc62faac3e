"""Keys that say when two Python functions are the same program.

`function_key(fun)` is equal for functions of equal code, closure, defaults and referenced globals,
so that a cache finds what it knows about a fresh `lambda`, `partial` or closure. Only immutable
values enter by value. A function that can see anything else (a list, an object, its own state
written with `global` or `nonlocal`) may act differently at each call: its key is its identity.

Identities are weak: a key keeps neither functions nor arrays alive, and a dead one equals nothing.

Neighbours: `source` says which packages are the family's own. Of their functions, the standard
library's and NumPy's only the closures enter: their globals are no part of a user's program.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import math
import sys
import types
import weakref
from collections.abc import Callable, Hashable, Iterable
from typing import Any, ClassVar

import numpy as np

from xprim import source
from xprim.array import ConcreteArray

_MAX_DEPTH = 20
_TRUSTED_PACKAGES = frozenset({*sys.stdlib_module_names, "numpy", "ml_dtypes", "jaxlib"})
_VALUE_TYPES = (str, bytes, bool, int, type(None), type(...), np.dtype)
_LASTING = (
    ConcreteArray,
    enum.Enum,
    np.ufunc,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)
# Through these a function reaches what its code does not name.
_REFLECTION = frozenset({"getattr", "globals", "vars", "eval", "exec", "locals", "__import__"})
_WRITES = frozenset(
    [dis.opmap[n] for n in ("STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_NAME") if n in dis.opmap]
)
_STORE_DEREF = dis.opmap["STORE_DEREF"]


class Identity:
    """The identity of an object, as a key that does not keep it alive.

    Args:
      value: the object.
      on_death: called with this key when the object dies.
    """

    __slots__ = ("__weakref__", "_hash", "_ref", "_strong")

    def __init__(self, value: Any) -> None:
        self._hash = id(value)
        try:
            self._ref: Any = weakref.ref(value)
            self._strong = None
        except TypeError:  # builtins and other objects that last
            self._ref = None
            self._strong = value

    @property
    def value(self) -> Any:
        """The object, or None when it has died."""
        return self._strong if self._ref is None else self._ref()

    def when_dead(self, forget: Callable[[], object]) -> None:
        """Call `forget` when the object dies."""
        value = self.value
        if self._ref is not None and value is not None:
            weakref.finalize(value, forget).atexit = False

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not Identity:
            return False
        value = self.value
        return value is not None and value is other.value


_PARTS = "__xstack_parts__"


def describe_function(fun: Callable[..., Any], parts: Callable[[], tuple[Any, ...]]) -> None:
    """Say of a function object that it is made of `parts()`, whatever its closure holds.

    For the functions that transformations return and that keep caches in their closures: what they
    compute depends on the transformed function and the options alone. Parts may be identities.
    """
    # The owner is noted because `functools.wraps` copies attributes to other functions.
    setattr(fun, _PARTS, (weakref.ref(fun), parts))


class _NotByValueError(Exception):
    """Something a function sees has no value that a key could hold."""


def function_key(fun: Callable[..., Any]) -> Hashable:
    """Return a key that is equal for functions that are the same program.

    Args:
      fun: a function, method, `functools.partial`, or any callable.

    Returns:
      A hashable key: by value where all that the function sees is immutable, otherwise an
      `Identity`, or a tuple with one.

    Example:
      >>> keys = [function_key(lambda x: x + 1) for _ in range(2)]
      >>> keys[0] == keys[1]
      True
    """
    try:
        return _Walk().key(fun)
    except _NotByValueError:
        return _by_identity(fun)


def is_by_identity(key: Hashable) -> bool:
    """Return whether a key stands for one function object only."""
    return type(key) is Identity or (
        isinstance(key, tuple) and len(key) == 3 and key[0] == "identical method"
    )


def identities(key: Any) -> Iterable[Identity]:
    """Yield the identities in a key."""
    if type(key) is Identity:
        yield key
    elif type(key) is tuple or type(key) is frozenset:
        for item in key:
            yield from identities(item)


def _by_identity(fun: Any) -> Hashable:
    if isinstance(fun, types.MethodType):  # made anew at each access
        return ("identical method", Identity(fun.__func__), Identity(fun.__self__))
    return Identity(fun)


class _Walk:
    """Walks what a function sees; functions on the way down stand for themselves (recursion)."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}

    def key(self, value: Any) -> Hashable:
        """Return the key of a value that a function sees."""
        kind = type(value)
        if kind in _VALUE_TYPES:
            return (kind, value)
        describe = self._by_kind.get(kind)
        if describe is not None:
            return describe(self, value)
        if isinstance(value, functools.partial):
            return self._partial(value)
        if isinstance(value, types.ModuleType) and _is_trusted(value.__name__):
            return Identity(value)
        if isinstance(value, type):
            if _is_trusted(value.__module__):
                return Identity(value)
            return self._nested(value, self._class)
        if isinstance(value, np.generic):
            return (kind, value.tobytes())
        if isinstance(value, _LASTING):
            return Identity(value)
        raise _NotByValueError

    def _float(self, value: float) -> Hashable:
        return (float, "nan" if math.isnan(value) else value.hex())  # -0.0 is not 0.0

    def _complex(self, value: complex) -> Hashable:
        return (complex, self._float(value.real), self._float(value.imag))

    def _items_of(self, value: Any) -> Hashable:
        kind = type(value)
        return (kind, kind([self.key(v) for v in value]))

    def _plain_function(self, value: types.FunctionType) -> Hashable:
        return self._nested(value, self._function)

    def _method(self, value: types.MethodType) -> Hashable:
        return ("method", self.key(value.__func__), self._self_of(value))

    def _identity(self, value: Identity) -> Hashable:
        return value

    _by_kind: ClassVar[dict[type, Callable[[Any, Any], Hashable]]] = {
        float: _float,
        complex: _complex,
        tuple: _items_of,
        frozenset: _items_of,
        types.FunctionType: _plain_function,
        types.MethodType: _method,
        Identity: _identity,
    }

    def _nested(self, value: Any, describe: Callable[[Any], Hashable]) -> Hashable:
        depth = self._open.get(id(value))
        if depth is not None:  # a function that refers to itself
            return ("again", depth)
        if len(self._open) >= _MAX_DEPTH:
            raise _NotByValueError
        self._open[id(value)] = len(self._open)
        try:
            return describe(value)
        finally:
            del self._open[id(value)]

    def _self_of(self, method: Any) -> Hashable:
        owner = method.__self__
        return self.key(owner) if isinstance(owner, type) else Identity(owner)

    def _partial(self, value: functools.partial[Any]) -> Hashable:
        named = tuple(sorted((k, self.key(v)) for k, v in value.keywords.items())) if all(
            type(k) is str for k in value.keywords) else None  # fmt: skip
        if named is None or vars(value):
            raise _NotByValueError
        return (type(value), self.key(value.func), self.key(tuple(value.args)), named)

    def _function(self, fun: types.FunctionType) -> Hashable:
        own = fun.__dict__.get(_PARTS)
        if own is not None and own[0]() is fun:
            return ("own", self.key(own[1]()))
        code = fun.__code__
        parts: list[Hashable] = [
            "function", code, self.key(fun.__defaults__ or ()),
            self._items(fun.__kwdefaults__ or {}), self._closure(fun),
        ]  # fmt: skip
        if fun.__dict__:
            attributes = {k: v for k, v in fun.__dict__.items() if k not in ("__wrapped__", _PARTS)}
            parts.append(self._items(attributes))
        if not _is_trusted(fun.__module__ or ""):
            parts.append(self._globals(fun))
        return tuple(parts)

    def _closure(self, fun: types.FunctionType) -> Hashable:
        code = fun.__code__
        if fun.__closure__ is None:
            return ()
        written = _written_cells(code)
        cells = []
        for name, cell in zip(code.co_freevars, fun.__closure__, strict=True):
            if name in written:
                raise _NotByValueError
            try:
                cells.append(self.key(cell.cell_contents))
            except ValueError:  # an empty cell
                raise _NotByValueError from None
        return tuple(cells)

    def _globals(self, fun: types.FunctionType) -> Hashable:
        names = _names_used(fun.__code__)
        if names is None:
            raise _NotByValueError
        values = fun.__globals__
        return self._named_values(names, values)

    def _named_values(self, names: frozenset[str], values: Any) -> Hashable:
        found = []
        for name in names:
            if name in values:
                value = values[name]
                if isinstance(value, types.ModuleType) and not _is_trusted(value.__name__):
                    found.append((name, self._module(value, names)))
                else:
                    found.append((name, self.key(value)))
            elif name in _REFLECTION and hasattr(builtins, name):
                raise _NotByValueError
        return frozenset(found)

    def _module(self, module: types.ModuleType, names: frozenset[str]) -> Hashable:
        """Return what a user's module holds under the names that the function uses."""
        return self._nested(
            module, lambda m: ("module", Identity(m), self._named_values(names, vars(m)))
        )

    def _class(self, cls: type) -> Hashable:
        """Return what a user's class holds: its methods may see changing globals, too."""
        found = []
        for base in cls.__mro__:
            if _is_trusted(base.__module__):
                continue
            for name, value in vars(base).items():
                if not (name.startswith("__") and name.endswith("__")) or callable(value):
                    plain = value.__func__ if isinstance(value, staticmethod | classmethod) else (
                        value.fget if isinstance(value, property) else value)  # fmt: skip
                    found.append((name, self.key(plain)))
        return ("class", Identity(cls), frozenset(found))

    def _items(self, values: dict[str, Any]) -> Hashable:
        return frozenset([(name, self.key(value)) for name, value in values.items()])


@functools.lru_cache(maxsize=4096)
def _names_used(code: types.CodeType) -> frozenset[str] | None:
    """Return the global and attribute names in a code object, or None when it writes globals."""
    if _WRITES.intersection(code.co_code[::2]):
        return None
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = _names_used(constant)
            if inner is None:
                return None
            names |= inner
    return frozenset(names)


@functools.lru_cache(maxsize=4096)
def _written_cells(code: types.CodeType) -> frozenset[str]:
    """Return the names of enclosing variables that a code object, or one inside it, assigns."""
    written = {
        i.argval for i in dis.get_instructions(code) if i.opcode == _STORE_DEREF
    } if _STORE_DEREF in code.co_code[::2] else set()  # fmt: skip
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            written |= _written_cells(constant)
    return frozenset(written & set(code.co_freevars))


@functools.lru_cache(maxsize=4096)
def _is_trusted(module_name: str) -> bool:
    """Return whether a module's globals are no part of a user's program."""
    if module_name.partition(".")[0] in _TRUSTED_PACKAGES and module_name != "__main__":
        return True
    module = sys.modules.get(module_name)
    file = getattr(module, "__file__", None)
    return file is not None and source.is_hidden(file)
