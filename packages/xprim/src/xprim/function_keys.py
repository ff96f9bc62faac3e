"""Keys of functions: equal keys mean the same program.

A function's key is built from everything its code can reach: code, closures, globals, defaults,
attributes of modules and classes. What is not known to be constant counts by identity, so that a
stale program is never found.
"""

from __future__ import annotations

import builtins
import collections
import dis
import enum
import functools
import itertools
import math
import operator
import os
import sys
import types
import typing
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from types import CodeType
from typing import Any, ClassVar, TypeVar

import ml_dtypes
import numpy as np

import xtree
from xprim import config, source
from xprim.array import ConcreteArray
from xprim.avals import ShapedArray
from xprim.config import state
from xprim.jaxpr import ClosedJaxpr
from xprim.primitive import Primitive
from xprim.refs import BaseRef
from xprim.static_keys import static_key
from xprim.transformed import Transformed
from xtree.errors import shown, with_article
from xtree.interning import is_hashable, remember
from xtree.namespaces import late_import
from xtree.records import Record, has_equality_of_identity

__all__ = [
    "captured_state", "difference", "Identity", "constant_by_attributes", "describe_function",
    "function_key", "identities", "identity_key", "is_by_identity", "why_not_shared",
    "arguments_key", "call_key", "program_key", "seen_by", "value_key",
]  # fmt: skip

__dir__ = __all__.copy

_dataclasses = late_import("dataclasses", "whoever makes one has imported it")


# ------------------------------------------------------------------------------------ code reach
# What a code object can reach by name: globals, enclosing variables, and attributes of modules.
#
# `reach_of(code)` reads the instructions once (it is remembered by code). A `Chain` is a name and
# the attributes that are read from it at once: `np.random.normal` is `("np", "random",
# "normal")`. A name that is used in any other way - passed on, stored, returned - is a chain of
# length one.
#
# What an attribute chain does not show (a module handed to a helper, `getattr`, `globals()`,
# writes to globals) is not guessed at: see `Reach.obstacle` and `function_keys`.

Chain = tuple[str, ...]

_GLOBAL_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_CELL_LOADS = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTE_LOADS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_ATTRIBUTE_WRITES = frozenset({"STORE_ATTR", "DELETE_ATTR"})
# These name something, but reach nothing from outside: locals of a class body, `super().name`.
_HARMLESS = frozenset({"STORE_NAME", "DELETE_NAME", "LOAD_SUPER_ATTR"})
_WRITES = {
    "STORE_GLOBAL": "it writes the global",
    "DELETE_GLOBAL": "it deletes the global",
    "IMPORT_NAME": "it imports",
}
_CELL_WRITES = frozenset({"STORE_DEREF", "DELETE_DEREF"})
_PADDING = frozenset({"EXTENDED_ARG", "CACHE", "NOP"})
# What Python and the standard library keep in a class for themselves: a walk through what is
# reached passes it by.
BOOKKEEPING = frozenset(
    "_abc_impl _field_defaults __abstractmethods__ __annotate__ __annotate_func__ __annotations__ "
    "__annotations_cache__ __dataclass_fields__ __dataclass_params__ __dict__ __doc__ "
    "__firstlineno__ __orig_bases__ __parameters__ __slots__ __static_attributes__ "
    "__type_params__ __weakref__".split()
)
# Attributes through which code reaches what it does not name.
_REFLECTION = (BOOKKEEPING - {"__dict__"}) | frozenset(
    "__builtins__ __closure__ __code__ __getattribute__ __globals__ __subclasses__ "
    "cell_contents cr_frame f_back f_builtins f_globals f_locals gi_frame tb_frame".split()
)
_NAMED_IN_TEXT = tuple(sorted(_REFLECTION))


class Reach(Record):
    """What a code object, and those inside it, can reach.

    Attributes:
      globals: the chains that start at a global or builtin name, sorted.
      cells: the chains that start at an enclosing variable, sorted.
      attributes: the names of all attributes that it reads.
      obstacle: why this is not all that it reaches, or an empty string.
      has_sets: whether it holds sets of constants, which are equal in whatever order they come.
    """

    globals: tuple[Chain, ...]
    cells: tuple[Chain, ...]
    attributes: frozenset[str]
    obstacle: str
    has_sets: bool


@functools.lru_cache(maxsize=4096)
def reach_of(code: CodeType) -> Reach:
    """Return what a code object and those inside it reach.

    Example:
      >>> reach_of((lambda x: np.random.normal() + helper(x)).__code__).globals
      (('helper',), ('np', 'random', 'normal'))
    """
    found = _Scan(code)
    globals_, cells, obstacle = found.globals, found.cells, found.obstacle
    attributes, has_sets = found.attributes, False
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = reach_of(constant)
            globals_ |= set(inner.globals)
            cells |= {chain for chain in inner.cells if chain[0] not in code.co_cellvars}
            attributes |= inner.attributes
            obstacle = obstacle or _obstacle_outside(inner.obstacle, code)
            has_sets = has_sets or inner.has_sets
        elif isinstance(constant, frozenset):
            has_sets = True
        elif isinstance(constant, str):
            obstacle = obstacle or reflection_in(constant)
    return Reach(
        tuple(sorted(globals_)), tuple(sorted(cells)), frozenset(attributes), obstacle, has_sets
    )


def reflection_in(text: str) -> str:
    """Say what a string names that leads code to what it does not name; empty for nothing.

    Example:
      >>> reflection_in("{0.__globals__[scale]}")
      'a string names __globals__'
    """
    if "_" not in text:  # each of the names has one
        return ""
    found = [name for name in _NAMED_IN_TEXT if name in text]
    return f"a string names {found[0]}" if found else ""


def orders_of_sets(code: CodeType) -> tuple[Any, ...]:
    """Return the sets of constants of a code object, and of those inside it, in their orders."""
    return tuple([
        tuple(constant) if isinstance(constant, frozenset) else orders_of_sets(constant)
        for constant in code.co_consts if isinstance(constant, frozenset | CodeType)
    ])  # fmt: skip


_ASSIGNS = "it assigns the enclosing variable "


def _obstacle_outside(obstacle: str, code: CodeType) -> str:
    """Return the obstacle of an inner function, unless it only writes a variable of this one."""
    own = obstacle.startswith(_ASSIGNS) and obstacle[len(_ASSIGNS) :] in code.co_cellvars
    return "" if own else obstacle


class _Scan:
    """One pass over the instructions of one code object."""

    def __init__(self, code: CodeType) -> None:
        self.globals: set[Chain] = set()
        self.cells: set[Chain] = set()
        self.attributes: set[str] = set()
        self.obstacle = ""
        self._outer = frozenset(code.co_freevars)
        named = set()
        instructions = [i for i in dis.get_instructions(code) if i.opname not in _PADDING]
        for position, instruction in enumerate(instructions):
            if instruction.opcode in dis.hasname:
                named.add(str(instruction.argval))
            self._look_at(instructions, position)
        if not named.issuperset(code.co_names):  # an instruction that this module does not know
            self._obstruct(f"it uses names in a way unknown here: {sorted(code.co_names)}")

    def _look_at(self, instructions: list[dis.Instruction], position: int) -> None:
        instruction = instructions[position]
        operation, name = instruction.opname, str(instruction.argval)
        if operation in _GLOBAL_LOADS:
            self.globals.add(self._chain(instructions, position))
        elif operation in _CELL_LOADS:
            if name in self._outer:
                self.cells.add(self._chain(instructions, position))
        elif operation in _ATTRIBUTE_LOADS:
            self.attributes.add(name)
            if name in _REFLECTION:
                self._obstruct(f"it reads {name}")
        elif operation in _WRITES:
            self._obstruct(f"{_WRITES[operation]} {name}")
        elif operation in _CELL_WRITES:
            if name in self._outer:
                self._obstruct(_ASSIGNS + name)
        elif instruction.opcode in dis.hasname and operation not in (
            _HARMLESS | _ATTRIBUTE_WRITES | {"IMPORT_FROM"}
        ):
            self._obstruct(f"it uses {name} by {operation}")

    def _chain(self, instructions: list[dis.Instruction], position: int) -> Chain:
        """Return the name at a position with the attributes that are read from it at once."""
        first = instructions[position]
        chain = [str(first.argval)]
        for following in instructions[position + 1 :]:
            if following.opname in _ATTRIBUTE_LOADS:
                chain.append(str(following.argval))
                continue
            if following.opname in _ATTRIBUTE_WRITES:
                self._obstruct(f"it writes {'.'.join(chain)}.{following.argval}")
            break
        return tuple(chain)

    def _obstruct(self, why: str) -> None:
        self.obstacle = self.obstacle or why


# ------------------------------------------------------------------------------------ identities
# What functions and objects say of themselves to the keys of programs.
#
# An `Identity` is an object as a key that does not keep it alive. `describe_function` is for the
# functions that transformations return, `constant_by_attributes` for classes like theirs.


class Identity:
    """The identity of an object, as a key that does not keep it alive.

    Args:
      value: the object.
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

    @property
    def is_strong(self) -> bool:
        """Whether the object is kept alive after all, because it cannot be referred to weakly."""
        return self._ref is None

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


PARTS = "__xstack_parts__"


def describe_function(fun: Callable[..., Any], parts: Callable[[], tuple[Any, ...]]) -> None:
    """Say of a function object that it is made of `parts()`, whatever its closure holds.

    For the functions that transformations return and that keep caches in their closures: what they
    compute depends on the transformed function and the options alone. Parts may be identities.
    """
    # The owner is noted because `functools.wraps` copies attributes to other functions.
    setattr(fun, PARTS, (weakref.ref(fun), parts))


# Classes whose instances count by what they hold.
classes_of_constants: weakref.WeakSet[type] = weakref.WeakSet((
    type(xtree.Partial(functools.partial(len)).func),  # a partial that is metadata
))  # fmt: skip
_C = TypeVar("_C", bound=type)


def counts_by_attributes(cls: type) -> bool:
    """Return whether instances of a class count by what they hold.

    Fractions do, whose module, 3 ms to import, few programs have.
    """
    return (
        cls in classes_of_constants
        or (issubclass(cls, Record) and cls.__setattr__ is Record.__setattr__)
        or (cls.__module__ == "fractions" and cls.__name__ == "Fraction")
    )  # fmt: skip


def constant_by_attributes(cls: _C) -> _C:
    """Say of a class that what an instance does depends on its attributes alone; return the class.

    Instances then count by what they hold. It does not hold for subclasses.
    """
    classes_of_constants.add(cls)
    return cls


def identities(key: Any) -> Iterable[Identity]:
    """Yield the identities in a key."""
    if type(key) is Identity:
        yield key
    elif type(key) is tuple or type(key) is frozenset:
        for item in key:
            yield from identities(item)


# ---------------------------------------------------------------------------------- library code
# What of the standard library, NumPy and this family is known to be constant.
#
# A program may be shared without looking into `math.sin`, `np.linspace` or `xnp.where`: what they
# compute depends on their arguments alone. That is known of the modules listed here and of
# nothing else: `time`, `os`, `random`, `numpy.random` are like any user's modules, and are looked
# into.
#
# A name can be written, so nothing is believed by name: a module counts when it is the one in
# `sys.modules` *and* its file lies in the folder of the library; a function when its code comes
# from such a file and its globals are those of such a module; a class when its module holds it.

_STANDARD = frozenset(
    "__future__ _abc _bisect _collections _collections_abc _functools _heapq _operator abc bisect "
    "builtins cmath collections contextlib copy dataclasses enum fractions functools heapq "
    "itertools keyword math numbers operator reprlib statistics string textwrap types "
    "typing".split()
)
# Parts of NumPy that hold state or read the world outside.
_IMPURE = tuple(
    "numpy.random numpy.testing numpy.ctypeslib numpy.f2py numpy.distutils numpy._core.arrayprint "
    "numpy._core.memmap numpy._core._ufunc_config numpy._core.printoptions numpy.core "
    "numpy.lib._npyio_impl numpy.lib._datasource numpy.lib._format_impl numpy.lib.npyio".split()
)
_LIBRARY_FOLDERS = tuple(
    os.path.join(os.path.dirname(os.path.abspath(str(module.__file__))), "")
    for module in (np, ml_dtypes)
)


@functools.cache
def _standard_folders() -> tuple[str, ...]:
    """Return the folders of Python's own modules: of those in Python, and of those in C.

    `sysconfig` names them, too, but raises where threads ask it for the first time (Python 3.11).
    """
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    found = [
        os.path.dirname(os.path.abspath(os.__file__)),
        os.path.join(sys.base_exec_prefix, sys.platlibdir, version),
    ]
    return tuple({os.path.join(folder, "") for folder in found})


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: the class was made at run time, its contents may change

# Builtin functions whose value depends on their arguments alone, as they were at import. Without
# those that look up names (`getattr`, `vars`), read the world (`open`, `input`) or run text.
_BUILTINS = {
    id(getattr(builtins, name)): getattr(builtins, name)
    for name in (
        "abs all any anext aiter ascii bin callable chr divmod format hash hex isinstance "
        "issubclass iter len max min next oct ord pow print repr round sorted sum"
    ).split()
}


def is_library_module(module: types.ModuleType) -> bool:
    """Return whether a module is one of those whose functions are known to be constant."""
    name = module.__dict__.get("__name__")
    if type(name) is not str or sys.modules.get(name) is not module:
        return False
    return _is_library_file(name, _origin(module))


def _origin(module: types.ModuleType) -> str:
    contents = module.__dict__
    found = contents.get("__file__") or getattr(contents.get("__spec__"), "origin", None)
    return found if isinstance(found, str) else ""


@functools.lru_cache(maxsize=4096)
def _is_library_file(name: str, origin: str) -> bool:
    """Return whether a module of this name and file is of a library, by what `origin` says."""
    if _is_family_file(origin):
        return True
    root = name.partition(".")[0]
    if root in _STANDARD:
        return origin in ("built-in", "frozen") or _is_standard_file(origin)
    return root in ("numpy", "ml_dtypes") and _is_pure_file(name, origin)


def _is_family_file(origin: str) -> bool:
    return os.path.isabs(origin) and source.is_hidden(origin)


def _is_standard_file(origin: str) -> bool:
    return origin.startswith(_standard_folders()) and "site-packages" not in origin


def _is_pure_file(name: str, origin: str) -> bool:
    impure = any(name == part or name.startswith(part + ".") for part in _IMPURE)
    return origin.startswith(_LIBRARY_FOLDERS) and not impure


def is_library_function(fun: types.FunctionType) -> bool:
    """Return whether the code and the globals of a Python function are a library's own."""
    module = sys.modules.get(fun.__globals__.get("__name__", ""))
    if module is None or module.__dict__ is not fun.__globals__:
        return False
    return _is_library_code(fun.__code__.co_filename) and is_library_module(module)


@functools.lru_cache(maxsize=4096)
def _is_library_code(filename: str) -> bool:
    """Return whether code of this file is a library's, not the user's."""
    if filename.startswith("<"):
        return filename.startswith("<frozen ")
    return (
        _is_family_file(filename)
        or filename.startswith(_LIBRARY_FOLDERS)
        or _is_standard_file(filename)
    )


def is_at_home(value: Any) -> bool:
    """Return whether a library module holds a function or class under its own name."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if not isinstance(module, types.ModuleType) or not is_library_module(module):
        return False
    found: Any = module
    for name in value.__qualname__.split("."):
        found = vars(found).get(name) if isinstance(found, type | types.ModuleType) else None
    return found is value


def is_library_class(cls: type) -> bool:
    """Return whether a class is a library's own, and what it holds known to be constant."""
    if not cls.__flags__ & _HEAP_TYPE:
        return _is_pure_name(cls.__module__)
    return is_at_home(cls)


@functools.lru_cache(maxsize=4096)
def _is_pure_name(module_name: str) -> bool:
    """Return whether classes written in C, whose module's name cannot be written, are constant."""
    root = module_name.partition(".")[0]
    if root in _STANDARD:
        return True
    impure = any(module_name == part or module_name.startswith(part + ".") for part in _IMPURE)
    return root in ("numpy", "ml_dtypes") and not impure


def is_pure_builtin(value: types.BuiltinFunctionType) -> bool:
    """Return whether a function written in C, bound to nothing, depends on its arguments alone."""
    owner = value.__self__
    if owner is builtins:
        return _BUILTINS.get(id(value)) is value
    return (
        isinstance(owner, types.ModuleType)
        and is_library_module(owner)
        and value.__name__ != "fromfile"
        and not value.__name__.startswith("_")  # such read or set the state of NumPy
    )


def is_compiled_ufunc(value: np.ufunc) -> bool:
    """Return whether a ufunc has loops for numbers; `np.frompyfunc` makes one that calls Python."""
    return any(kind not in "O->" for signature in value.types for kind in signature)


# --------------------------------------------------------------------------------- held contents
# What classes, objects and modules hold, as the keys of functions look at it.

# What `enum` keeps in a member for itself.
ENUM_BOOKKEEPING = frozenset("_value_ _name_ _sort_order_ __objclass__".split())
# What a function that stands for another copies from it.
COPIED = frozenset(("__annotations__", "__doc__", "__module__", "__type_params__"))
# Descriptors that hold nothing of their own.
INERT_DESCRIPTORS = (
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    type(vars(collections.namedtuple("_Sample", "field"))["field"]),
)


class NotConstantError(Exception):
    """Something that a function reaches is not known to be constant.

    Args:
      reason: what it is.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []  # from the inside out


class Missing:
    """Stands for what is not there."""


MISSING = Missing()


def is_looked_at(cls: type, name: str, value: Any) -> bool:
    """Return whether an attribute of a user's class is more than bookkeeping."""
    if name in BOOKKEEPING:
        return False
    if isinstance(cls, enum.EnumMeta):
        is_sunder = name[:1] == name[-1:] == "_" and name[:2] != "__"
        return name not in cls.__members__ and (
            not is_sunder or isinstance(value, types.FunctionType)
        )
    return True


# `cls.__name__`, which a metaclass may hide.
name_of = vars(type)["__name__"].__get__


def find_maker(cls: type) -> Any:
    """Return the function of C's that makes instances of a class: what else they hold is hidden."""
    makers = [vars(base).get("__new__") for base in cls.__mro__]
    return next(maker for maker in makers if isinstance(maker, types.BuiltinFunctionType))


def attributes_in_slots(value: Any) -> dict[str, Any]:
    """Return what an object holds in the slots of all its classes, fields or not."""
    slots = [(name, slot) for base in type(value).__mro__ for name, slot in vars(base).items()]
    return {
        f"{slot.__objclass__.__qualname__}.{name}": slot_of(value, slot)
        for name, slot in slots if type(slot) is types.MemberDescriptorType
    }  # fmt: skip


def attributes_in_dict(value: Any) -> dict[str, Any]:
    """Return what an object holds by name, asking nothing of its class, which may raise."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}


def slot_of(value: Any, slot: Any) -> Any:
    """Return what an object holds in a slot, or a mark that it holds nothing there."""
    try:
        return slot.__get__(value)
    except AttributeError:
        return MISSING


def attribute_of_module(module: types.ModuleType, name: str) -> Any:
    """Return an attribute as a module holds it, without computing it.

    Raises:
      NotConstantError: the module computes it.
    """
    if type(module) is not types.ModuleType and not is_library_class(type(module)):
        raise NotConstantError(f"the module {module.__name__} computes its attributes")
    found = vars(module).get(name, MISSING)
    if found is not MISSING:
        return found
    if is_library_module(module):
        return getattr(module, name, MISSING)
    if "__getattr__" in vars(module) or hasattr(types.ModuleType, name):
        raise NotConstantError(f"the module {module.__name__} computes its attribute {name}")
    return MISSING


def attributes_of(fun: Any) -> dict[str, Any]:
    """Return what users set on a function; what it copied from another says nothing of it."""
    return {k: v for k, v in fun.__dict__.items() if k != PARTS and k not in COPIED}


def with_article_of(value: Any) -> str:
    """Return the name of a value's class with its article."""
    return with_article(type(value).__name__)


# -------------------------------------------------------------------------------------- key walk
# The walk through everything that a function reaches, on which the keys of functions rest.
#
# `Walk().key(value)` gives a nested tuple in which each part has the name by which it is reached,
# or raises `NotConstantError` at the first thing that is not known to be constant.

_KEY_WALK_MAX_DEPTH = 40

_ABSENT = "absent"


class Walk:
    """One walk through what a function reaches.

    Functions and classes are numbered as they are met, and stand for themselves when met again, so
    that recursion ends; all is walked in one order, so equal numbers mean the same place.

    Attributes:
      reaches_numpy: whether something of NumPy was met, which may raise or not by `np.errstate`.
    """

    max_visited = 5000  # functions and classes

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

    def key_with_name(self, name: str, value: Any) -> Hashable:
        """Return a name and the key of what it stands for; errors then tell the name."""
        try:
            return (name, self.key(value))
        except NotConstantError as error:
            error.path.append(name)
            raise

    def _visit(self, value: Any, describe: Callable[[Any], Hashable]) -> Hashable:
        """Describe a function or class, or say that it is the n-th that was met."""
        number = self._number_by_id.setdefault(id(value), len(self._number_by_id))
        if number < len(self._keep):
            return ("again", number)
        self._keep.append(value)
        if self._depth >= _KEY_WALK_MAX_DEPTH or number >= self.max_visited:
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
        return self._visit(fun, self._library_wrapper if is_library else self._user_function)

    def _key_of_transformed(self, fun: Transformed) -> Hashable:
        own = fun.__dict__.get(PARTS)
        if own is not None and own[0]() is fun:
            return ("own", self.key(own[1]()))
        return self._of_library(fun) if is_at_home(fun) else self._visit(fun, lambda _: (
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
            tuple([self.key_with_name("a default", v) for v in fun.__defaults__ or ()]),
            tuple([self.key_with_name(f"the default of {k}", v)
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
                found.append(self.key_with_name(f"enclosing variable {name}", value))
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
        return self.key_with_name(f"{what} {'.'.join(chain[:count])}", value)

    def _method(self, value: types.MethodType) -> Hashable:
        return (
            "method",
            self.key(value.__func__),
            self.key_with_name("its object", value.__self__),
        )

    def _builtin(self, value: types.BuiltinFunctionType) -> Hashable:
        owner = value.__self__
        if is_pure_builtin(value):
            return Identity(value)
        if owner is None or isinstance(owner, types.ModuleType):
            return self.refuse(f"{value.__name__} may give something else at each call", value)
        # made anew at each access: "abc".join
        return ("builtin method", value.__name__, self.key_with_name("its object", owner))

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
        if value.node is not None and value.node.type not in _KEY_WALK_CONTAINERS:
            self.key_with_name("its node", value.node.type)
        for child in value.children():
            self._structure(child)
        return Identity(value)

    def _partial(self, value: functools.partial[Any]) -> Hashable:
        if not is_library_class(type(value)):
            return self._instance(value)
        return (
            type(value), self.key_with_name("its function", value.func),
            tuple([self.key_with_name(f"argument {i}", v) for i, v in enumerate(value.args)]),
            tuple([self.key_with_name(f"argument {k}", v) for k, v in value.keywords.items()]),
            tuple([self.key_with_name(f"attribute {k}", v) for k, v in vars(value).items()]),
        )  # fmt: skip

    def _module(self, value: types.ModuleType) -> Hashable:
        name = value.__name__
        return self.refuse(f"the module {name} is used as a value, not by its attributes", value)

    # --- classes and their instances -----------------------------------------------------------

    def _class(self, cls: type) -> Hashable:
        if is_library_class(cls):
            return self._of_library(cls)
        return self._visit(cls, self._user_class)

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
        return [self.key_with_name(f"attribute {k}", v) for k, v in values.items()]

    def _fields(self, cls: type) -> list[Hashable]:
        """Return what `dataclasses.fields` shows of a class."""
        found: list[Hashable] = []
        for name, field in vars(cls).get("__dataclass_fields__", {}).items():
            of_field = [v for v in (field.default, field.default_factory)
                        if v is not _dataclasses.MISSING]  # fmt: skip
            found.append(self.key_with_name(f"field {name}", (*field.metadata.items(), *of_field)))
        return found

    def _registration(self, node: Any) -> list[Hashable]:
        """Return by which functions instances of a class are taken apart and put together."""
        functions = (node.flatten, node.unflatten, node.flatten_with_keys)
        return [self.key_with_name("as a node of trees", function) for function in functions]

    def _static_method(self, value: Any) -> Hashable:
        return (type(value), self.key(value.__func__))

    def _property(self, value: property) -> Hashable:
        return (type(value), self.key(value.fget), self.key(value.fset), self.key(value.fdel))

    def _key_of_cached_property(self, value: functools.cached_property[Any]) -> Hashable:
        return (type(value), self.key(value.func))

    def _member(self, value: enum.Enum) -> Hashable:
        own = {k: v for k, v in vars(value).items() if k not in ENUM_BOOKKEEPING}
        return self._visit(value, lambda _: (
            "member", self.key(type(value)), value._name_,
            self.key_with_name("value", value._value_), *self.attributes(own),
        ))  # fmt: skip

    def _instance(self, value: Any) -> Hashable:
        """Return the key of an object whose class says that it does not change."""
        cls = type(value)
        if cls.__module__ == "dataclasses" and value is _dataclasses._HAS_DEFAULT_FACTORY:
            return self._constant(value)
        if find_maker(cls) is tuple.__new__ and cls.__iter__ is tuple.__iter__:
            own = self.attributes(attributes_in_dict(value))
            return (self.key(cls), *[self.key(v) for v in value], *own)
        if find_maker(cls) is not object.__new__:
            return self.refuse(f"{with_article_of(value)} may change", value)
        held = attributes_in_slots(value) | attributes_in_dict(value)
        if getattr(cls.__dict__.get("__dataclass_params__"), "frozen", False):
            fields = {f.name: getattr(value, f.name, MISSING) for f in _dataclasses.fields(value)}
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
_KEY_WALK_CONTAINERS = (tuple, list, dict, type(None))
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
    Missing: Walk._missing,
    float: Walk._float,
    complex: Walk._complex,
    tuple: Walk._tuple,
    frozenset: Walk._frozenset,
    property: Walk._property,
    functools.cached_property: Walk._key_of_cached_property,
    types.FunctionType: Walk._function,
    Transformed: Walk._key_of_transformed,
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
    (BaseRef, Walk._constant),  # programs take what it holds as an argument
    (np.generic, Walk._scalar),
)


# -------------------------------------------------------------------------------- captured state
# What a function sees, as it is now: to tell later whether, and in what, it has changed.
#
# `captured_state(fun)` is like the function's key, but looks into what is not known to be
# constant as well: lists, dicts, sets, and the attributes of objects that the code reads. It is
# for noticing changes, not for sharing programs: what it cannot look into, it takes to be as it
# was.
#
# `difference(before, after)` names the first thing in which two states, or two keys, differ.

# It runs at each trace, and a method of a test case reaches thousands of functions and lines.
_MAX_ITEMS = 200  # of a container, and containers
_MAX_VALUES = 2000  # of all containers together
_MAX_BYTES = 2**16
_CAPTURED_STATE_MAX_DEPTH = 6


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

    max_visited = 200  # functions and classes

    def __init__(self) -> None:
        super().__init__()
        self._items = self._values = 0
        self._inside = 0
        self._read: set[str] = set()  # the attributes that the code met so far reads

    def refuse(self, reason: str, value: Any) -> Hashable:
        """Look into what is not known to be constant."""
        self._items += 1
        if value is None or self._items > _MAX_ITEMS or self._inside > _CAPTURED_STATE_MAX_DEPTH:
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
            return (
                "contents",
                *[self.key_with_name(_item(k), v) for k, v in self._some(value.items())],
            )
        if isinstance(value, list | tuple | collections.deque):
            items = enumerate(self._some(value))
            return ("contents", *[self.key_with_name(f"[{i}]", v) for i, v in items])
        if isinstance(value, set | frozenset):
            return (
                "contents",
                frozenset(self._some(x for x in value if type(x) in _CAPTURED_STATE_PLAIN)),
            )
        if isinstance(value, np.ndarray) and value.nbytes <= _MAX_BYTES and value.dtype != object:
            return ("elements", value.shape, value.dtype.str, hash(value.tobytes()))
        if isinstance(value, bytearray | memoryview) and len(value) <= _MAX_BYTES:
            return ("elements", len(value), hash(bytes(value)))
        origin = typing.get_origin(value)
        return self._object(value) if origin is None else self.key(origin)

    def _some(self, values: Any) -> list[Any]:
        """Return the first of many values."""
        room = min(_MAX_ITEMS, _MAX_VALUES - self._values)
        found = list(itertools.islice(values, room))
        self._values += len(found)
        return found

    def _object(self, value: Any) -> Hashable:
        if isinstance(value, types.ModuleType):
            return _weakly(value)
        kind = self.key(type(value))  # what its methods read is known after that
        held = attributes_in_dict(value)
        values = {name: slot_of(value, item) for base in type(value).__mro__
                  for name, item in vars(base).items()
                  if type(item) is types.MemberDescriptorType}  # fmt: skip
        values |= held
        read = sorted(self._read.intersection(values))
        found = [self.key_with_name(f".{name}", values[name]) for name in read]
        return ("object", _weakly(value), kind, *found)


_CAPTURED_STATE_PLAIN = frozenset((str, bytes, bool, int, float, type(None)))


def _item(key: Any) -> str:
    return f"[{key!r}]" if type(key) in _CAPTURED_STATE_PLAIN else f"[a {type(key).__name__}]"


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
    return f"{what}: {_describe(before)} became {_describe(after)}"


def _first_unequal(before: Any, after: Any) -> tuple[Any, Any] | None:
    if not (type(before) is type(after) is tuple) or _is_value(before) or _is_value(after):
        return None
    unequal = [(b, a) for b, a in zip(before, after, strict=False) if b != a]
    return unequal[0] if unequal and len(before) == len(after) else None


def _is_named(part: Any) -> bool:
    return type(part) is tuple and len(part) == 2 and type(part[0]) is str


def _is_value(part: Any) -> bool:
    return type(part) is tuple and len(part) == 2 and part[0] in _CAPTURED_STATE_PLAIN


def _describe(part: Any) -> str:
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


# --------------------------------------------------------------------------------- function keys
# Keys that say when two Python functions are the same program.
#
# `function_key(fun)` is equal for two functions only when *everything* that their code can reach
# is known to be constant and equal: code, defaults, enclosing variables, attributes
# (`__wrapped__` too), the globals it names, the attributes it reads of modules, the classes it
# uses, and so on from there. What is not known to be constant (a list, an object, a clock, a
# module passed on) is not guessed at: such a function is known by its identity, and
# `why_not_shared` names what it was.
#
# Keys are made anew at each look-up, so a global that changed gives another key. Identities are
# weak: a key keeps neither functions nor arrays alive, and a dead one equals nothing.


def function_key(fun: Callable[..., Any], also: Iterable[Any] = ()) -> Hashable:
    """Return a key that is equal for functions that are the same program.

    Args:
      fun: a function, method, `functools.partial`, or any callable.
      also: other things that a call of it reaches: static arguments, classes of arguments.

    Returns:
      A hashable key: by value where all that the function reaches is known to be constant,
      otherwise an `Identity`, or a tuple with one.

    Example:
      >>> keys = [function_key(lambda x: x + 1) for _ in range(2)]
      >>> keys[0] == keys[1]
      True
    """
    try:
        walk = Walk()
        key = walk.key(fun)
        if also:
            key = ("with", key, *[walk.key(value) for value in also])
        return ("under", key, *np.geterr().values()) if walk.reaches_numpy else key
    except (NotConstantError, RecursionError):
        return identity_key(fun)


def why_not_shared(fun: Callable[..., Any], also: Iterable[Any] = ()) -> str:
    """Say what a function reaches that is not known to be constant; empty if there is nothing.

    Example:
      >>> seen = []
      >>> why_not_shared(lambda x: seen.append(x))
      'global seen: a list may change'
    """
    try:
        Walk().key((fun, *also))
    except NotConstantError as error:
        return ": ".join([*reversed(error.path), error.reason])
    except RecursionError:
        return "it reaches too much to look at"
    return ""


def is_by_identity(key: Hashable) -> bool:
    """Return whether a key stands for one function object only."""
    return type(key) is Identity or (
        isinstance(key, tuple) and len(key) == 3 and key[0] == "identical method"
    )


def identity_key(fun: Any) -> Hashable:
    """Return the key of one function object, which keeps it not alive."""
    if isinstance(fun, types.MethodType):  # made anew at each access
        return ("identical method", Identity(fun.__func__), Identity(fun.__self__))
    return Identity(fun)


# --------------------------------------------------------------------------------- argument keys
# What a call reaches through its arguments: methods of their classes, functions among them.
#
# A program is found by the structure of the arguments and the static values. The classes of
# pytree nodes and static objects have methods, which may see a global that has changed since;
# functions may be static, or the metadata of a node. `arguments_key` has what of that must be
# equal as well; `program_key` has all that a program depends on, for those who keep programs of
# functions, and `seen_by` what a function that counts as itself alone sees.

_MAX_KEPT = 4096
# By identity: structures with metadata of the user's may be equal without being the same.
_parts_by_id: dict[int, tuple[weakref.ref[Any], tuple[Any, ...]]] = {}


def arguments_key(tree: Any, statics: tuple[Any, ...] = ()) -> Hashable:
    """Return a key of the classes and functions that a call reaches through its arguments.

    Args:
      tree: the structure of the traced arguments.
      statics: the static values.

    Returns:
      None where there is nothing of the kind, the common case; else a key that is equal for
      calls that reach the same, or an object that is equal to nothing else.
    """
    also = _parts(tree, statics)
    if not also:
        return None
    key = function_key(_nothing, also)
    return object() if is_by_identity(key) else key


# Releases 0.2.0 of xnp and xad call it, whose range of xprim has this one; no package here does.
def program_key(
    fun: Callable[..., Any], tree: Any, avals: Sequence[Any],
    statics: Sequence[tuple[Any, Any]] = (),
) -> Hashable:  # fmt: skip
    """Return a key of all that the program of a function depends on.

    Args:
      fun: the function.
      tree: the structure of its traced arguments.
      avals: their abstract values.
      statics: the places of the static values, and the values.

    Returns:
      None where that cannot be told: something that the function reaches may change, or `call_key`
      knows no key. The first part of the key has the identities of what the program depends on, and
      keeps none of it alive.
    """
    call = call_key(tree, avals, statics)
    key = None if call is None else value_key(fun, tree, statics)
    return None if key is None or call is None else (key, *call)


def call_key(
    tree: Any, avals: Sequence[Any], statics: Sequence[tuple[Any, Any]] = ()
) -> tuple[Hashable, ...] | None:
    """Return a key of what a program depends on beside the function, as `program_key` takes it.

    Returns:
      None where a static value has no hash, or axis names are in scope.
    """
    if state.axis_sizes or not all(is_hashable(value) for _, value in statics):
        return None
    fixed = tuple([(place, _key_of_static(value)) for place, value in statics])
    return (tree, tuple(avals), fixed, config.trace_context())


def value_key(
    fun: Callable[..., Any], tree: Any, statics: Sequence[tuple[Any, Any]] = ()
) -> Hashable:
    """Return a function's key, with what a call reaches; None where something may change."""
    key = function_key(fun, _parts(tree, [value for _, value in statics]))
    return None if is_by_identity(key) else key


def seen_by(
    fun: Callable[..., Any], tree: Any, statics: Sequence[tuple[Any, Any]] = ()
) -> Hashable:
    """Return what a call reaches as it is now: `value_key`, or else what can be seen of it.

    Returns:
      None where that is too much to look at.
    """
    key = value_key(fun, tree, statics)
    if key is not None:
        return key
    return captured_state((fun, *_parts(tree, [value for _, value in statics])))


def _key_of_static(value: Any) -> Hashable:
    if value is None or not has_equality_of_identity(type(value)):
        return static_key(value)
    return Identity(value)  # a function that was static dies, and what it captured


def _nothing() -> None:
    """Reach nothing."""


def _parts(tree: Any, statics: Sequence[Any]) -> tuple[Any, ...]:
    """Return the classes and functions that a structure and static values reach."""
    parts = _parts_of(tree)
    return (*parts, *[part for value in statics for part in _parts_of_value(value)])


def _parts_of(tree: Any) -> tuple[Any, ...]:
    entry = _parts_by_id.get(id(tree))
    if entry is not None and entry[0]() is tree:
        return entry[1]
    parts = tuple(_walk(tree))
    remember(_parts_by_id, id(tree), (weakref.ref(tree), parts), _MAX_KEPT)
    return parts


def _walk(tree: xtree.PyTreeDef) -> Iterator[Any]:
    found = tree.node_data()
    if found is None:
        return
    kind, metadata = found
    if kind not in _ARGUMENT_KEYS_CONTAINERS:
        if not is_library_class(kind):
            yield kind
        yield from _parts_of_value(metadata)
    for child in tree.children():
        yield from _walk(child)


def _parts_of_value(value: Any) -> Iterator[Any]:
    kind = type(value)
    if kind in _ARGUMENT_KEYS_PLAIN:
        return
    if isinstance(value, tuple | list | frozenset):
        for item in value:
            yield from _parts_of_value(item)
    elif isinstance(value, dict):
        yield from _parts_of_value(tuple(value.values()))
    if isinstance(value, _FUNCTIONS):
        yield value
    elif is_library_class(kind):
        if callable(value):
            yield value
    else:  # an equality of its own says what counts; without one it is all that the object holds
        own_equality: Any = kind.__eq__
        yield value if own_equality is object.__eq__ else kind


_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial, type, Transformed)
_ARGUMENT_KEYS_CONTAINERS = (tuple, list, dict, type(None))
_ARGUMENT_KEYS_PLAIN = frozenset((str, bytes, bool, int, float, complex, type(None)))
