"""Types that are made of several arrays: the names, for libraries that have some beside the rest.

JAX traces values of such types as wholes. Here a class of several arrays is a pytree
(`xstack.tree_util.register_dataclass`), whose leaves are traced; a library may define its types and
operations as for JAX, and an operation that is used says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from xprim import AbstractValue, ShapedArray, Zero
from xstack.absences import hint_for
from xstack.interpreters.ad import instantiate_zeros, is_undefined_primal
from xtree.errors import message
from xtree.namespaces import namespace

__all__ = [
    "AbstractValue",
    "HiPrim",
    "HiType",
    "ShapedArray",
    "Zero",
    "aval_method",
    "aval_property",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]


class HiType:
    """The base of types whose values are made of several arrays."""

    __slots__ = ()


class HiPrim:
    """The base of operations on values of such types.

    Example:
      >>> class Pack(HiPrim):
      ...     pass
      >>> Pack()(1.0, 2.0)
      Traceback (most recent call last):
      TypeError: Pack: operations on types made of several arrays are not traced.
        hint      register the class as a pytree: its leaves are
    """

    def __call__(self, *_operands: Any) -> NoReturn:
        """Refuse: nothing is traced."""
        raise TypeError(message(
            type(self).__name__, "operations on types made of several arrays are not traced.",
            hint="register the class as a pytree: its leaves are",
        ))  # fmt: skip


class aval_property(property):  # noqa: N801 - as property
    """A property of a type that its traced values have, too."""


def aval_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method of a type as one that its traced values have, too.

    Args:
      method: takes the value.

    Example:
      >>> aval_method(len)([1, 2])
      2
    """
    return method


def register_hitype(value_class: type, type_of: Callable[[Any], Any]) -> None:
    """Say what the type of values of a class is.

    Args:
      value_class: the class.
      type_of: gives the `HiType` of a value.

    Example:
      >>> register_hitype(slice, lambda value: HiType())
    """
    _type_of_by_class[value_class] = type_of


# The types of values that users have registered.
_type_of_by_class: dict[type, Callable[[Any], Any]] = {}


namespace(globals(), hint=hint_for).close()
