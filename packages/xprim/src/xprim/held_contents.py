"""What classes, objects and modules hold, as the keys of functions look at it.

Neighbours: `key_walk` walks through what is found here; `library_code` says what a library's is.
"""

from __future__ import annotations

import collections
import enum
import types
from typing import Any

from xprim.code_reach import BOOKKEEPING
from xprim.identities import PARTS
from xprim.library_code import is_library_class, is_library_module
from xtree.errors import with_article

__all__ = ()

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


def made_by(cls: type) -> Any:
    """Return the function of C's that makes instances of a class: what else they hold is hidden."""
    makers = [vars(base).get("__new__") for base in cls.__mro__]
    return next(maker for maker in makers if isinstance(maker, types.BuiltinFunctionType))


def held_in_slots(value: Any) -> dict[str, Any]:
    """Return what an object holds in the slots of all its classes, fields or not."""
    slots = [(name, slot) for base in type(value).__mro__ for name, slot in vars(base).items()]
    return {
        f"{slot.__objclass__.__qualname__}.{name}": slot_of(value, slot)
        for name, slot in slots if type(slot) is types.MemberDescriptorType
    }  # fmt: skip


def held_in_dict(value: Any) -> dict[str, Any]:
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
