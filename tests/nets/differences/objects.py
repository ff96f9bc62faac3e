"""Classes, objects, descriptors, dataclasses, enumerations. (See `table`.)"""

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import typing
from typing import Any

from tests.nets.differences.table import (
    changed_in,
    defined,
    kind,
    pair,
    remade,
    unseen,
    with_attribute,
)


@kind
def a_class_attribute():
    class Config:
        scale = 2.0

    return with_attribute(Config, "def f(x): return x * thing.scale")


@kind
def an_attribute_of_a_base_class():
    class Base:
        scale = 2.0

    class Config(Base):
        pass

    f, _ = defined("def f(x): return x * thing.scale", thing=Config)
    yield remade(f)
    Base.scale = 3.0
    yield remade(f)


@kind
def an_attribute_of_a_metaclass():
    class Meta(type):
        scale = 2.0

    class Config(metaclass=Meta):
        pass

    f, _ = defined("def f(x): return x * thing.scale", thing=Config)
    yield remade(f)
    Meta.scale = 3.0
    yield remade(f)


@kind
def a_dunder_attribute_of_a_class():
    class Config:
        __scale__ = 2.0

    return with_attribute(Config, "def f(x): return x * thing.__scale__", "__scale__")


@kind
def a_private_attribute_of_an_enumeration():
    class Config(enum.Enum):
        A = 1

    type.__setattr__(Config, "_Config__scale", 2.0)
    f, _ = defined("def f(x): return x * thing._Config__scale", thing=Config)
    yield remade(f)
    type.__setattr__(Config, "_Config__scale", 3.0)
    yield remade(f)


@kind
def a_class_that_says_it_is_of_a_library():
    class Config:
        scale = 2.0

    Config.__module__, Config.__qualname__ = "numpy", "ndarray"
    return with_attribute(Config, "def f(x): return x * thing.scale")


@kind
def a_method_of_a_class():
    class Model:
        def scale(self):
            return 2.0

    return with_attribute(Model, "def f(x): return x * thing().scale()", to=lambda self: 3.0)


@kind
def a_global_of_a_method():
    source = "class A:\n def g(self): return scale\ndef f(x): return x * A().g()"
    return changed_in({"scale": 2.0}, source, scale=3.0)


@kind
def a_global_of_a_static_method():
    source = "class A:\n @staticmethod\n def g(): return scale\ndef f(x): return x * A.g()"
    return changed_in({"scale": 2.0}, source, scale=3.0)


@kind
def a_global_of_a_class_method():
    source = "class A:\n @classmethod\n def g(cls): return scale\ndef f(x): return x * A.g()"
    return changed_in({"scale": 2.0}, source, scale=3.0)


@kind
def a_global_of_a_property():
    source = "class A:\n @property\n def g(self): return scale\ndef f(x): return x * A().g"
    return changed_in({"scale": 2.0}, source, scale=3.0)


@kind
def a_global_of_a_cached_property():
    source = (
        "class A:\n @functools.cached_property\n def g(self): return scale\n"
        "def f(x): return x * A().g"
    )
    return changed_in({"scale": 2.0, "functools": functools}, source, scale=3.0)


@kind
def a_global_of_class_getitem():
    source = "class A:\n def __class_getitem__(cls, k): return scale\ndef f(x): return x * A[0]"
    return changed_in({"scale": 2.0}, source, scale=3.0)


@kind
def a_global_of_a_constructor():
    source = "class A:\n def __init__(self): self.n = scale\ndef f(x): return x * A().n"
    return changed_in({"scale": 2.0}, source, scale=3.0)


@kind
def a_global_of_a_property_of_a_metaclass():
    source = (
        "class M(type):\n @property\n def g(cls): return scale\n"
        "class A(metaclass=M): pass\ndef f(x): return x * A.g"
    )
    return changed_in({"scale": 2.0}, source, scale=3.0)


@unseen
def a_descriptor_with_a_state():
    class Descriptor:
        __slots__ = ("value",)

        def __get__(self, instance, owner):
            return self.value

    descriptor = Descriptor()
    descriptor.value = 2.0
    config = type("Config", (), {"scale": descriptor})
    f, _ = defined("def f(x): return x * thing.scale", thing=config)
    yield remade(f)
    descriptor.value = 3.0
    yield remade(f)


@kind
def an_attribute_of_an_object():
    class Model:
        pass

    model = Model()
    model.scale = 2.0
    return with_attribute(model, "def f(x): return x * thing.scale")


@kind
def a_slot_of_an_object():
    class Model:
        __slots__ = ("scale",)

    model = Model()
    model.scale = 2.0
    return with_attribute(model, "def f(x): return x * thing.scale")


@kind
def an_attribute_behind_a_bound_method():
    class Model:
        scale = 2.0

        def apply(self, x):
            return x * self.scale

    model = Model()
    yield lambda: model.apply
    model.scale = 3.0
    yield lambda: model.apply


@kind
def an_attribute_of_an_object_that_is_called():
    class Model:
        scale = 2.0

        def __call__(self, x):
            return x * self.scale

    model = Model()
    yield lambda: model
    model.scale = 3.0
    yield lambda: model


@kind
def two_objects_of_one_class():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        def apply(self, x):
            return x * self.scale

    yield lambda: Model(2.0).apply
    yield lambda: Model(3.0).apply


@kind
def a_field_of_a_frozen_dataclass():
    @dataclasses.dataclass(frozen=True)
    class Config:
        scale: Any

    return pair(lambda c: lambda x: x * c.scale, Config(2.0), Config(3.0))


@kind
def the_type_of_a_field_of_a_frozen_dataclass():
    @dataclasses.dataclass(frozen=True)
    class Config:
        scale: Any

    number = lambda c: 2.0 if type(c.scale) is int else 3.0  # noqa: E731
    return pair(lambda c: lambda x: x * number(c), Config(1), Config(True))


@kind
def a_field_of_a_frozen_dataclass_that_was_written_all_the_same():
    @dataclasses.dataclass(frozen=True)
    class Config:
        scale: float

    config = Config(2.0)
    f, _ = defined("def f(x): return x * config.scale", config=config)
    yield remade(f)
    object.__setattr__(config, "scale", 3.0)
    yield remade(f)


@kind
def a_field_of_a_named_tuple():
    class Point(typing.NamedTuple):
        scale: Any

    number = lambda c: 2.0 if type(c.scale) is int else 3.0  # noqa: E731
    return pair(lambda c: lambda x: x * number(c), Point(1), Point(1.0))


@kind
def a_member_of_an_enumeration():
    scale = enum.Enum("scale", {"TWO": 2.0, "THREE": 3.0})
    return pair(lambda c: lambda x: x * c.value, scale.TWO, scale.THREE)


@kind
def an_attribute_of_a_member():
    class Scale(enum.Enum):
        A = 1

    Scale.A.number = 2.0
    f, _ = defined("def f(x): return x * thing.number", thing=Scale.A)
    yield remade(f)
    Scale.A.number = 3.0
    yield remade(f)


@unseen
def a_value_registered_with_an_abstract_class():
    class Base(abc.ABC):  # noqa: B024 - for its registry
        pass

    class Other:
        pass

    f, _ = defined("def f(x): return x * (3.0 if isinstance(thing, Base) else 2.0)",
                   thing=Other(), Base=Base)  # fmt: skip
    yield remade(f)
    Base.register(Other)
    yield remade(f)
