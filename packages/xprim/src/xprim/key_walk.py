"""The walk through everything that a function reaches, on which the keys of functions rest.

`Walk().key(value)` gives a nested tuple in which each part has the name by which it is reached, or
raises `NotConstantError` at the first thing that is not known to be constant.

Neighbours: `function_keys` is the door; `code_reach` says what code names, `library_code` which
library functions are constant, `identities` what functions say of themselves.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import operator
import types
import typing
from collections.abc import Callable, Hashable
from typing import Any, ClassVar

import numpy as np

import xtree
from xprim.array import ConcreteArray
from xprim.avals import ShapedArray
from xprim.cells import Cell
from xprim.code_reach import Chain, orders_of_sets, reach_of, reflection_in
from xprim.held_contents import (
    COPIED,
    ENUM_BOOKKEEPING,
    INERT_DESCRIPTORS,
    MISSING,
    Missing,
    NotConstantError,
    attribute_of_module,
    attributes_of,
    held_in_dict,
    held_in_slots,
    is_looked_at,
    made_by,
    name_of,
    with_article_of,
)
from xprim.identities import PARTS, Identity, counts_by_attributes
from xprim.jaxpr import ClosedJaxpr
from xprim.library_code import (
    is_at_home,
    is_compiled_ufunc,
    is_library_class,
    is_library_function,
    is_pure_builtin,
)
from xprim.primitive import Primitive
from xprim.transformed import Transformed

__all__ = ()

_MAX_DEPTH = 40
_MAX_VISITED = 5000

_ABSENT = "absent"


class Walk:
    """One walk through what a function reaches.

    Functions and classes are numbered as they are met, and stand for themselves when met again, so
    that recursion ends; all is walked in one order, so equal numbers mean the same place.

    Attributes:
      reaches_numpy: whether something of NumPy was met, which may raise or not by `np.errstate`.
    """

    def __init__(self) -> None:
        self.reaches_numpy = False
        self._number_by_id: dict[int, int] = {}
        self._keep: list[Any] = []  # so that no id is given twice
        self._depth = 0

    def key(self, value: Any) -> Hashable:
        """Return the key of a value that a function reaches.

        Raises:
          NotConstantError: it is not known to be constant.
        """
        describe = self._by_kind.get(type(value))
        if describe is None:
            bases = type(value).__mro__  # an object may say that it is of another class
            describe = next((d for kind, d in self._by_base if kind in bases), Walk._instance)
        return describe(self, value)

    def refuse(self, reason: str, value: Any) -> Hashable:
        """Say that something is not known to be constant."""
        raise NotConstantError(reason)

    def named(self, name: str, value: Any) -> Hashable:
        """Return a name and the key of what it stands for; errors then tell the name."""
        try:
            return (name, self.key(value))
        except NotConstantError as error:
            error.path.append(name)
            raise

    def _visited(self, value: Any, describe: Callable[[Any], Hashable]) -> Hashable:
        """Describe a function or class, or say that it is the n-th that was met."""
        number = self._number_by_id.setdefault(id(value), len(self._number_by_id))
        if number < len(self._keep):
            return ("again", number)
        self._keep.append(value)
        if self._depth >= _MAX_DEPTH or number >= _MAX_VISITED:
            return self.refuse("it reaches too much to look at", value)
        self._depth += 1
        try:
            return describe(value)
        finally:
            self._depth -= 1

    # --- plain values --------------------------------------------------------------------------

    def _plain(self, value: Any) -> Hashable:
        return (type(value), value)

    def _text(self, value: str) -> Hashable:
        reflection = reflection_in(value)
        return self.refuse(reflection, None) if reflection else (str, value)

    def _float(self, value: float) -> Hashable:
        return (float, "nan" if math.isnan(value) else value.hex())  # -0.0 is not 0.0

    def _complex(self, value: complex) -> Hashable:
        return (complex, self._float(value.real), self._float(value.imag))

    def _tuple(self, value: tuple[Any, ...]) -> Hashable:
        return (tuple, *[self.key(v) for v in value])

    def _frozenset(self, value: frozenset[Any]) -> Hashable:
        if not all(
            type(v) in _HAVE_ORDER for v in value
        ):  # walked in no order: numbers would differ
            return self.refuse("a frozenset of more than plain values", value)
        return (frozenset, *[self.key(v) for v in value])  # equal ones may differ in their order

    def _slice(self, value: Any) -> Hashable:
        return (type(value), self.key(value.start), self.key(value.stop), self.key(value.step))

    def _scalar(self, value: np.generic) -> Hashable:
        if not is_library_class(type(value)):
            return self._instance(value)
        if isinstance(value, np.void | np.object_):
            return self.refuse(f"{with_article_of(value)} may change", value)
        self.reaches_numpy = True
        return (type(value), value.dtype.str, value.tobytes())

    def _dtype(self, value: np.dtype[Any]) -> Hashable:
        if value.metadata is not None:
            return self.refuse("a dtype with metadata may change", value)
        return (np.dtype, type(value), value.str if value.names is None else repr(value))

    def _constant(self, value: Any) -> Hashable:
        return Identity(value)

    # --- functions -----------------------------------------------------------------------------

    def _function(self, fun: types.FunctionType) -> Hashable:
        own = fun.__dict__.get(PARTS)
        if own is not None and own[0]() is fun:
            return ("own", self.key(own[1]()))
        is_library = is_library_function(fun)
        if is_library and is_at_home(fun):
            return self._of_library(fun)
        return self._visited(fun, self._library_wrapper if is_library else self._user_function)

    def _transformed(self, fun: Transformed) -> Hashable:
        own = fun.__dict__.get(PARTS)
        if own is not None and own[0]() is fun:
            return ("own", self.key(own[1]()))
        return self._of_library(fun) if is_at_home(fun) else self._visited(fun, lambda _: (
            "transformed", fun.__name__, fun.__qualname__, self.key(fun.__module__),
            self.key(fun.func), *self.attributes(attributes_of(fun)),
        ))  # fmt: skip

    def _of_library(self, value: Any) -> Hashable:
        if value in _ASK_BY_NAME:
            return self.refuse(f"{value.__name__} may give whatever a name leads to", None)
        self.reaches_numpy |= value.__module__[:5] == "numpy"
        return Identity(value)

    def _user_function(self, fun: types.FunctionType) -> Hashable:
        reach = reach_of(fun.__code__)
        if reach.obstacle:
            self.refuse(reach.obstacle, None)
        orders = orders_of_sets(fun.__code__) if reach.has_sets else ()
        reached = (self._globals(fun, reach.globals), self._cells(fun, reach.cells))
        return (*self._own(fun), orders, *reached)

    def _library_wrapper(self, fun: types.FunctionType) -> Hashable:
        """Return the key of a function made inside a library: what it holds may be the user's."""
        return (*self._own(fun), (), (), self._cells(fun, None))

    def _own(self, fun: types.FunctionType) -> tuple[Hashable, ...]:
        return (
            "function", fun.__code__, fun.__name__, fun.__qualname__, self.key(fun.__module__),
            tuple([self.named("a default", v) for v in fun.__defaults__ or ()]),
            tuple([self.named(f"the default of {k}", v)
                   for k, v in sorted((fun.__kwdefaults__ or {}).items())]),
            tuple(self.attributes(attributes_of(fun))),
        )  # fmt: skip

    def _cells(self, fun: types.FunctionType, chains: tuple[Chain, ...] | None) -> Hashable:
        found: list[Hashable] = []
        names = fun.__code__.co_freevars
        for name, cell in zip(names, fun.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                found.append((name, _ABSENT))
                continue
            if chains is None and name == "repr_running":  # guards a `__repr__` against recursion
                continue
            if isinstance(value, types.ModuleType) and chains is not None:
                found += [self.chain(value, chain, "enclosing variable")
                          for chain in chains if chain[0] == name]  # fmt: skip
            else:
                found.append(self.named(f"enclosing variable {name}", value))
        return tuple(found)

    def _globals(self, fun: Any, chains: tuple[Chain, ...]) -> Hashable:
        known: dict[str, Any] = fun.__globals__
        builtin: dict[str, Any] = fun.__builtins__
        found: list[Hashable] = []
        for chain in chains:
            name = chain[0]
            value = known.get(name, MISSING)
            if value is MISSING:
                value = builtin.get(name, MISSING)
            if value is MISSING:  # NameError when it runs, unless it is defined by then
                found.append((name, _ABSENT))
            else:
                found.append(self.chain(value, chain, "global"))
        return tuple(found)

    def chain(self, value: Any, chain: Chain, what: str) -> Hashable:
        """Return the key of what `a.b.c` is, as far as it leads through modules."""
        count = 1
        while isinstance(value, types.ModuleType) and count < len(chain):
            value = attribute_of_module(value, chain[count])
            count += 1
        return self.named(f"{what} {'.'.join(chain[:count])}", value)

    def _method(self, value: types.MethodType) -> Hashable:
        return ("method", self.key(value.__func__), self.named("its object", value.__self__))

    def _builtin(self, value: types.BuiltinFunctionType) -> Hashable:
        owner = value.__self__
        if is_pure_builtin(value):
            return Identity(value)
        if owner is None or isinstance(owner, types.ModuleType):
            return self.refuse(f"{value.__name__} may give something else at each call", value)
        # made anew at each access: "abc".join
        return ("builtin method", value.__name__, self.named("its object", owner))

    def _ufunc(self, value: np.ufunc) -> Hashable:
        if not is_compiled_ufunc(value):
            return self.refuse("a ufunc of Python's may do anything", value)
        self.reaches_numpy = True
        return Identity(value)

    def _dispatcher(self, value: Any) -> Hashable:
        implementation = value._implementation  # a function of Python's, or one written in C
        is_python = isinstance(implementation, types.FunctionType)
        if not (is_python and is_library_function(implementation)):
            self.key(implementation)
        self.reaches_numpy = True
        return Identity(value)

    def _remembering(self, value: Any) -> Hashable:
        """Return the key of a function of `functools.lru_cache`; a user's may hold what was."""
        inner = value.__wrapped__
        if isinstance(inner, types.FunctionType) and is_library_function(inner):
            return Identity(value)
        return self.refuse("functools.lru_cache keeps what was computed before", value)

    def _structure(self, value: xtree.PyTreeDef) -> Hashable:
        if value.node is not None and value.node.type not in _CONTAINERS:
            self.named("its node", value.node.type)
        for child in value.children():
            self._structure(child)
        return Identity(value)

    def _partial(self, value: functools.partial[Any]) -> Hashable:
        if not is_library_class(type(value)):
            return self._instance(value)
        return (
            type(value), self.named("its function", value.func),
            tuple([self.named(f"argument {i}", v) for i, v in enumerate(value.args)]),
            tuple([self.named(f"argument {k}", v) for k, v in value.keywords.items()]),
            tuple([self.named(f"attribute {k}", v) for k, v in vars(value).items()]),
        )  # fmt: skip

    def _module(self, value: types.ModuleType) -> Hashable:
        name = value.__name__
        return self.refuse(f"the module {name} is used as a value, not by its attributes", value)

    # --- classes and their instances -----------------------------------------------------------

    def _class(self, cls: type) -> Hashable:
        if is_library_class(cls):
            return self._of_library(cls)
        return self._visited(cls, self._user_class)

    def _user_class(self, cls: type) -> Hashable:
        """Return what a user's class holds: its methods may see changing globals, too."""
        found: list[Hashable] = [("metaclass", self.key(type(cls)))]
        for base in cls.__mro__:
            found += [Identity(base), name_of(base), base.__qualname__]
            if is_library_class(base):
                continue
            if not base.__flags__ & (1 << 9):
                return self.refuse(f"the class {base.__qualname__} is not known", cls)
            if isinstance(base, enum.EnumMeta):
                found += self.attributes(base.__members__)
            found += self.attributes(
                {k: v for k, v in vars(base).items() if is_looked_at(base, k, v)}
            )
            found += self._fields(base)
        if cls in xtree.default_registry:
            found += self._registration(xtree.default_registry.find(cls))
        return ("class", Identity(cls), tuple(found))

    def attributes(self, values: Any) -> list[Hashable]:
        """Return the keys of named values, in their order."""
        return [self.named(f"attribute {k}", v) for k, v in values.items()]

    def _fields(self, cls: type) -> list[Hashable]:
        """Return what `dataclasses.fields` shows of a class."""
        found: list[Hashable] = []
        for name, field in vars(cls).get("__dataclass_fields__", {}).items():
            of_field = [v for v in (field.default, field.default_factory)
                        if v is not dataclasses.MISSING]  # fmt: skip
            found.append(self.named(f"field {name}", (*field.metadata.items(), *of_field)))
        return found

    def _registration(self, node: Any) -> list[Hashable]:
        """Return by which functions instances of a class are taken apart and put together."""
        functions = (node.flatten, node.unflatten, node.flatten_with_keys)
        return [self.named("as a node of trees", function) for function in functions]

    def _static_method(self, value: Any) -> Hashable:
        return (type(value), self.key(value.__func__))

    def _property(self, value: property) -> Hashable:
        return (type(value), self.key(value.fget), self.key(value.fset), self.key(value.fdel))

    def _cached_property(self, value: functools.cached_property[Any]) -> Hashable:
        return (type(value), self.key(value.func))

    def _member(self, value: enum.Enum) -> Hashable:
        own = {k: v for k, v in vars(value).items() if k not in ENUM_BOOKKEEPING}
        return self._visited(value, lambda _: (
            "member", self.key(type(value)), value._name_, self.named("value", value._value_),
            *self.attributes(own),
        ))  # fmt: skip

    def _instance(self, value: Any) -> Hashable:
        """Return the key of an object whose class says that it does not change."""
        cls = type(value)
        if made_by(cls) is tuple.__new__ and cls.__iter__ is tuple.__iter__:
            own = self.attributes(held_in_dict(value))
            return (self.key(cls), *[self.key(v) for v in value], *own)
        if made_by(cls) is not object.__new__:
            return self.refuse(f"{with_article_of(value)} may change", value)
        held = held_in_slots(value) | held_in_dict(value)
        if getattr(cls.__dict__.get("__dataclass_params__"), "frozen", False):
            fields = {f.name: getattr(value, f.name, MISSING) for f in dataclasses.fields(value)}
            return (self.key(cls), *self.attributes(fields | held))
        if counts_by_attributes(cls):
            shown = {k: v for k, v in held.items() if k not in COPIED}
            return (self.key(cls), *self.attributes(shown))
        return self.refuse(f"{with_article_of(value)} may change", value)

    def _missing(self, value: Any) -> Hashable:
        return _ABSENT

    _by_kind: ClassVar[dict[type, Callable[[Any, Any], Hashable]]]
    _by_base: ClassVar[tuple[tuple[Any, Callable[[Any, Any], Hashable]], ...]]


_HAVE_ORDER = frozenset((str, bytes, bool, int, float, complex, type(None)))
_CONTAINERS = (tuple, list, dict, type(None))
_DISPATCHER = type(np.sum)
# What they give is said by a name that may be made up when they are called, or passed by here.
_ASK_BY_NAME = frozenset((operator.attrgetter, operator.methodcaller, typing.get_type_hints))
Walk._by_kind = {
    **dict.fromkeys((bytes, bool, int, type(None), type(...), type(NotImplemented)), Walk._plain),
    str: Walk._text,
    **dict.fromkeys(INERT_DESCRIPTORS, Walk._constant),
    **dict.fromkeys((slice, range), Walk._slice),
    **dict.fromkeys((staticmethod, classmethod), Walk._static_method),
    ConcreteArray: Walk._constant,
    Primitive: Walk._constant,
    ShapedArray: Walk._constant,
    Identity: lambda walk, value: value,
    ClosedJaxpr: Walk._constant,
    xtree.PyTreeDef: Walk._structure,
    type(functools.lru_cache(len)): Walk._remembering,
    object: Walk._constant,
    type(dataclasses._HAS_DEFAULT_FACTORY): Walk._constant,  # type: ignore[attr-defined]
    Missing: Walk._missing,
    float: Walk._float,
    complex: Walk._complex,
    tuple: Walk._tuple,
    frozenset: Walk._frozenset,
    property: Walk._property,
    functools.cached_property: Walk._cached_property,
    types.FunctionType: Walk._function,
    Transformed: Walk._transformed,
    types.MethodType: Walk._method,
    types.BuiltinFunctionType: Walk._builtin,
    types.MethodWrapperType: Walk._builtin,
    np.ufunc: Walk._ufunc,
    **({} if _DISPATCHER is types.FunctionType else {_DISPATCHER: Walk._dispatcher}),
}
Walk._by_base = (
    (types.DynamicClassAttribute, Walk._property),
    (functools.partial, Walk._partial),
    (enum.Enum, Walk._member),
    (type, Walk._class),
    (types.ModuleType, Walk._module),
    (np.dtype, Walk._dtype),
    (Cell, Walk._constant),  # programs take what it holds as an argument
    (np.generic, Walk._scalar),
)
