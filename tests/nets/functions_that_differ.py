"""Pairs of functions that differ in one reachable thing: what `test_functions_that_differ` draws.

A kind is a generator. It yields a function that makes a fresh user function, changes one thing that
this function reaches, and yields again; the plain results before and after must differ. Each user
function is of one number `x` and gives `x` times a number, so its derivative shows the thing, too.

Kinds in `NOT_SEEN_IN_ONE_OBJECT` change what no look at a function can see: fresh functions are
traced anew, but a function object that was traced already keeps its program (as in JAX).
"""

from __future__ import annotations

import abc
import builtins
import contextlib
import contextvars
import dataclasses
import enum
import functools
import io
import itertools
import math
import operator
import os
import random
import sys
import threading
import types
import typing
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import xstack
import xstack.numpy as xnp
from xprim import config
from xstack import custom_jvp, custom_vjp, grad, jit, lax, tree_util, vmap

Function = Callable[[Any], Any]
Maker = Callable[[], Function]
Kind = Callable[[], Iterator[Maker]]

KINDS: dict[str, Kind] = {}
NOT_SEEN_IN_ONE_OBJECT: set[str] = set()


def kind(of: Kind) -> Kind:
    """Add a kind to the table."""
    KINDS[of.__name__] = of
    return of


def unseen(of: Kind) -> Kind:
    """Add a kind of which one function object does not show that it changed."""
    NOT_SEEN_IN_ONE_OBJECT.add(of.__name__)
    return kind(of)


def defined(source: str, name: str = "f", **namespace: Any) -> Any:
    """Run source in a namespace of its own and return what it defines, with the namespace."""
    space = {"__name__": "user_module", "xnp": xnp, "np": np, **namespace}
    exec(source, space)
    return space[name], space


def remade(f: Function) -> Maker:
    """Return what makes new function objects of the same code and the same globals."""

    def make() -> Function:
        if not isinstance(f, types.FunctionType):
            return f
        copy = types.FunctionType(
            f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__
        )
        copy.__kwdefaults__ = f.__kwdefaults__
        copy.__dict__.update(f.__dict__)
        return copy

    return make


def changed_in(space: Any, source: str, **changes: Any) -> Iterator[Maker]:
    """Yield the function `f` of a source before and after changes to its globals."""
    f, space = defined(source, **space)
    yield remade(f)
    space.update(changes)
    yield remade(f)


def with_attribute(thing: Any, source: str, name: str = "scale", to: Any = 3.0) -> Iterator[Maker]:
    """Yield the function `f` of a source before and after a change to an attribute of `thing`."""
    f, _ = defined(source, thing=thing)
    yield remade(f)
    setattr(thing, name, to)
    yield remade(f)


def pair(make: Callable[[Any], Function], first: Any = 2.0, second: Any = 3.0) -> Iterator[Maker]:
    """Yield makers of functions of one code for two values."""
    yield lambda: make(first)
    yield lambda: make(second)


# --- code, constants, closures, defaults ---------------------------------------------------------


@kind
def a_constant_in_the_code():
    yield lambda: lambda x: x * 2.0
    yield lambda: lambda x: x * 3.0


@kind
def a_number_in_a_closure():
    return pair(lambda c: lambda x: x * c)


@kind
def the_type_of_a_number_in_a_closure():
    return pair(lambda c: lambda x: x * (2.0 if type(c) is int else 3.0), 1, 1.0)


@kind
def a_boolean_for_a_number():
    return pair(lambda c: lambda x: x * (2.0 if c is True else 3.0), 1, True)


@kind
def the_sign_of_a_zero():
    return pair(lambda c: lambda x: x * math.copysign(2.0, c), 0.0, -0.0)


@kind
def the_sign_of_an_imaginary_zero():
    return pair(lambda c: lambda x: x * math.copysign(2.0, c.imag), 0j, complex(0.0, -0.0))


@kind
def a_number_in_a_nested_tuple():
    return pair(lambda c: lambda x: x * (2.0 if type(c[1][0]) is int else 3.0), (0, (1,)), (0, (1.0,)))


@kind
def a_string():
    return pair(lambda c: lambda x: x * len(c), "ab", "abc")


@kind
def a_string_for_a_member_of_its_enumeration():
    word = enum.StrEnum("word", {"A": "a"})
    return pair(lambda c: lambda x: x * (2.0 if type(c) is str else 3.0), "a", word.A)


@kind
def a_numpy_scalar():
    return pair(lambda c: lambda x: x * float(c), np.float32(2), np.float32(3))


@kind
def the_dtype_of_a_numpy_scalar():
    return pair(lambda c: lambda x: x * c.itemsize, np.float32(1), np.float64(1))


@kind
def an_array_in_a_closure():
    return pair(lambda c: lambda x: x * c, xnp.asarray(2.0), xnp.asarray(3.0))


@kind
def a_numpy_array_in_a_closure():
    return pair(lambda c: lambda x: x * c, np.asarray(2.0, np.float32), np.asarray(3.0, np.float32))


@kind
def an_element_of_a_numpy_array():
    table = np.array([2.0], np.float32)
    make = remade(lambda x: x * float(table[0]))
    yield make
    table[0] = 3.0
    yield make


@kind
def a_slice_in_a_closure():
    return pair(lambda c: lambda x: x * float(sum(range(5)[c])), slice(1, 3), slice(1, 4))


@kind
def a_range_in_a_closure():
    return pair(lambda c: lambda x: x * float(c.stop), range(0, 3, 2), range(0, 4, 2))


@kind
def a_frozenset_in_a_closure():
    return pair(lambda c: lambda x: x * float(max(c)), frozenset([1, 2]), frozenset([1, 3]))


@kind
def a_dtype_in_a_closure():
    return pair(lambda c: lambda x: x * c.itemsize, np.dtype("f4"), np.dtype("f8"))


@kind
def a_default():
    def make(c):
        def f(x, d=c):
            return x * d

        return f

    return pair(make)


@kind
def a_default_that_was_replaced():
    def f(x, d=2.0):
        return x * d

    yield lambda: f
    f.__defaults__ = (3.0,)
    yield lambda: f


@kind
def a_keyword_default():
    def make(c):
        def f(x, *, d=c):
            return x * d

        return f

    return pair(make)


@kind
def a_mutable_default():
    def f(x, d=[2.0]):  # noqa: B006 - what it is about
        return x * d[0]

    yield remade(f)
    f.__defaults__[0][0] = 3.0
    yield remade(f)


@kind
def a_cell_that_was_assigned():
    scale = 2.0

    def make():
        return lambda x: x * scale

    yield make
    scale = 3.0
    yield make


@kind
def a_cell_that_another_function_writes():
    scale = 2.0

    def write():
        nonlocal scale
        scale = 3.0

    f = remade(lambda x: x * scale)
    yield f
    write()
    yield f


@kind
def the_code_of_a_function():
    def f(x):
        return x * 2.0

    yield lambda: f
    f.__code__ = (lambda x: x * 3.0).__code__
    yield lambda: f


# --- globals and what lies behind them -----------------------------------------------------------


@kind
def a_global_number():
    return changed_in({"scale": 2.0}, "def f(x): return x * scale", scale=3.0)


@kind
def a_global_that_was_not_there():
    source = "def f(x):\n try: return x * scale\n except NameError: return x"
    return changed_in({}, source, scale=3.0)


@kind
def a_global_over_a_builtin():
    return changed_in({}, "def f(x): return x * len('ab')", len=lambda x: 3.0)


@kind
def a_builtin_that_was_replaced():
    space = {"__builtins__": {**vars(builtins)}}
    f, space = defined("def f(x): return x * len('ab')", **space)
    yield remade(f)
    space["__builtins__"]["len"] = lambda x: 3.0
    yield remade(f)


@kind
def a_global_list():
    scales = [2.0]
    f, _ = defined("def f(x): return x * scales[0]", scales=scales)
    yield remade(f)
    scales[0] = 3.0
    yield remade(f)


@kind
def a_global_dict():
    config = {"scale": 2.0}
    f, _ = defined("def f(x): return x * config['scale']", config=config)
    yield remade(f)
    config["scale"] = 3.0
    yield remade(f)


@kind
def a_global_of_a_helper():
    source = "def g(x): return x * scale\ndef f(x): return g(x)"
    return changed_in({"scale": 2.0}, source, scale=3.0)


@kind
def a_helper():
    source = "def g(x): return x * 2.0\ndef f(x): return g(x)"
    return changed_in({}, source, g=lambda x: x * 3.0)


@kind
def a_global_of_a_nested_function():
    source = "def f(x):\n def g(y): return y * scale\n return g(x)"
    return changed_in({"scale": 2.0}, source, scale=3.0)


@kind
def a_global_in_a_comprehension():
    return changed_in({"scale": 2.0}, "def f(x): return sum([x * scale for _ in 'a'])", scale=3.0)


@kind
def a_global_of_a_recursive_function():
    source = "def f(x, n=2): return x * scale if n == 0 else f(x, n - 1)"
    return changed_in({"scale": 2.0}, source, scale=3.0)


@kind
def a_global_that_the_function_writes():
    source = "def f(x):\n global n\n n = n + 0.0\n return x * n"
    return changed_in({"n": 2.0}, source, n=3.0)


@unseen
def a_global_read_by_eval():
    return changed_in({"scale": 2.0}, "def f(x): return x * eval('scale')", scale=3.0)


@unseen
def a_global_read_through_globals():
    return changed_in({"scale": 2.0}, "def f(x): return x * globals()['scale']", scale=3.0)


@kind
def two_globals_dicts():
    for scale in (2.0, 3.0):
        f, _ = defined("def f(x): return x * scale", scale=scale)
        yield remade(f)


@kind
def a_function_in_a_function_attribute():
    def f(x):
        return x * f.scale

    f.scale = 2.0
    yield lambda: f
    f.scale = 3.0
    yield lambda: f


@kind
def a_wrapped_function():
    def wrapping(inner):
        @functools.wraps(inner)
        def f(x):
            return f.__wrapped__(x)

        return f

    yield lambda: wrapping(lambda x: x * 2.0)
    yield lambda: wrapping(lambda x: x * 3.0)


@kind
def what_a_wrapper_of_no_closure_wraps():
    source = "def f(x): return f.__wrapped__(x)"
    f, _ = defined(source)
    f.__wrapped__ = lambda x: x * 2.0
    yield lambda: f
    f.__wrapped__ = lambda x: x * 3.0
    yield lambda: f


@kind
def a_global_of_a_wrapper_that_took_its_name_from_a_library():
    space = {"scale": 2.0, "functools": functools}
    source = "@functools.wraps(np.sin)\ndef f(x): return x * scale"
    f, space = defined(source, **space)
    f.__dict__.clear()
    f.__module__ = "numpy"
    yield remade(f)
    space["scale"] = 3.0
    yield remade(f)


@kind
def a_global_of_a_function_that_says_it_is_of_the_standard_library():
    return changed_in({"scale": 2.0, "__name__": "math"}, "def f(x): return x * scale", scale=3.0)


@kind
def a_global_of_a_function_with_the_file_name_of_a_library():
    space: dict[str, Any] = {"__name__": "numpy", "scale": 2.0}
    exec(compile("def f(x): return x * scale", np.__file__, "exec"), space)
    yield remade(space["f"])
    space["scale"] = 3.0
    yield remade(space["f"])


# --- modules -------------------------------------------------------------------------------------


def _module(name: str, **contents: Any) -> types.ModuleType:
    module = types.ModuleType(name)
    vars(module).update(contents)
    return module


@kind
def an_attribute_of_a_module():
    return with_attribute(_module("user_settings", scale=2.0), "def f(x): return x * thing.scale")


@kind
def an_attribute_of_a_module_named_like_one_of_the_standard_library():
    return with_attribute(_module("queue", scale=2.0), "def f(x): return x * thing.scale")


@kind
def an_attribute_of_a_module_named_like_a_builtin_one():
    return with_attribute(_module("math", scale=2.0), "def f(x): return x * thing.scale")


@kind
def a_function_of_a_module_named_like_one_of_the_standard_library():
    module = _module("operator", scale=2.0)
    exec("def scaled(x): return x * scale", vars(module))
    before = sys.modules["operator"]
    f, _ = defined("def f(x): return thing.scaled(x)", thing=module)
    for scale in (2.0, 3.0):
        module.scale = scale
        sys.modules["operator"] = module
        try:
            yield remade(f)
        finally:
            sys.modules["operator"] = before


@kind
def an_attribute_of_a_submodule():
    inner = _module("package.inner", scale=2.0)
    f, _ = defined("def f(x): return x * thing.inner.scale", thing=_module("package", inner=inner))
    yield remade(f)
    inner.scale = 3.0
    yield remade(f)


@unseen
def a_module_handed_to_a_helper():
    module = _module("user_settings", scale=2.0)
    source = "def g(m): return m.scale\ndef f(x): return x * g(thing)"
    return with_attribute(module, source)


@unseen
def a_module_under_another_name():
    module = _module("user_settings", scale=2.0)
    return with_attribute(module, "def f(x):\n m = thing\n return x * m.scale")


@unseen
def a_module_asked_by_attrgetter():
    f, _ = defined("def f(x): return x * get(thing)", get=operator.attrgetter("scale"),
                   thing=_module("user_settings", scale=2.0))  # fmt: skip
    yield remade(f)
    f.__globals__["thing"].scale = 3.0
    yield remade(f)


@unseen
def a_module_asked_by_getattr():
    module = _module("user_settings", scale=2.0)
    return with_attribute(module, "def f(x): return x * getattr(thing, 'sca' + 'le')")


@unseen
def a_module_asked_by_vars():
    module = _module("user_settings", scale=2.0)
    return with_attribute(module, "def f(x): return x * vars(thing)['scale']")


@unseen
def the_dict_of_a_module():
    module = _module("user_settings", scale=2.0)
    return with_attribute(module, "def f(x): return x * thing.__dict__['scale']")


@unseen
def a_module_with_getattr():
    values = {"scale": 2.0}
    module = _module("lazy", __getattr__=lambda name: values[name])
    f, _ = defined("def f(x): return x * thing.scale", thing=module)
    yield remade(f)
    values["scale"] = 3.0
    yield remade(f)


@unseen
def a_module_with_a_property():
    values = [2.0]

    class Module(types.ModuleType):
        scale = property(lambda self: values[0])

    f, _ = defined("def f(x): return x * thing.scale", thing=Module("computed"))
    yield remade(f)
    values[0] = 3.0
    yield remade(f)


@unseen
def a_module_imported_inside():
    name = "user_module_imported_inside"
    f, _ = defined(f"def f(x):\n import {name}\n return x * {name}.scale")
    for scale in (2.0, 3.0):
        sys.modules[name] = _module(name, scale=scale)
        yield remade(f)
    del sys.modules[name]


@unseen
def an_entry_of_sys_modules():
    name = "user_module_in_sys_modules"
    f, _ = defined(f"def f(x): return x * sys.modules[{name!r}].scale", sys=sys)
    for scale in (2.0, 3.0):
        sys.modules[name] = _module(name, scale=scale)
        yield remade(f)
    del sys.modules[name]


def _patched(module: types.ModuleType, name: str, values: tuple[Any, Any], source: str) -> Any:
    before = vars(module).get(name)
    f, _ = defined(source, thing=module)
    try:
        for value in values:
            setattr(module, name, value)
            yield remade(f)
    finally:
        if before is None:
            delattr(module, name)
        else:
            setattr(module, name, before)


@kind
def a_constant_of_numpy_that_was_replaced():
    return _patched(np, "pi", (2.0, 3.0), "def f(x): return x * thing.pi")


@kind
def a_function_of_numpy_that_was_replaced():
    values = (lambda x: 2.0, lambda x: 3.0)
    return _patched(np, "cbrt", values, "def f(x): return x * thing.cbrt(8.0)")


@kind
def a_function_of_math_that_was_replaced():
    values = (math.sin, lambda x: 3.0)
    return _patched(math, "sin", values, "def f(x): return x * thing.sin(8.0)")


@kind
def a_constant_added_to_math():
    return _patched(math, "scale", (2.0, 3.0), "def f(x): return x * thing.scale")


@kind
def a_function_of_this_library_that_was_replaced():
    values = (lambda x: x * 2.0, lambda x: x * 3.0)
    return _patched(xnp, "sin", values, "def f(x): return thing.sin(x)")


@kind
def a_global_behind_a_function_put_into_numpy():
    helper, space = defined("def g(x): return scale", "g", scale=2.0)
    before, np.cbrt = np.cbrt, helper
    f, _ = defined("def f(x): return x * np.cbrt(8.0)")
    try:
        yield remade(f)
        space["scale"] = 3.0
        yield remade(f)
    finally:
        np.cbrt = before


# --- classes, objects, descriptors ---------------------------------------------------------------


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


@unseen
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
    point = typing.NamedTuple("point", [("scale", Any)])
    return pair(lambda c: lambda x: x * (2.0 if type(c.scale) is int else 3.0), point(1), point(1.0))


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


# --- callables that are no plain functions -------------------------------------------------------


@kind
def an_argument_of_a_partial():
    return pair(lambda c: functools.partial(lambda s, x: x * s, c))


@kind
def a_keyword_of_a_partial():
    return pair(lambda c: functools.partial(lambda x, s: x * s, s=c))


@kind
def the_function_of_a_partial():
    yield lambda: functools.partial(lambda x: x * 2.0)
    yield lambda: functools.partial(lambda x: x * 3.0)


@kind
def a_subclass_of_partial():
    class Scaled(functools.partial):
        def __call__(self, x):
            return x * self.scale

    def make(c):
        made = Scaled(abs)
        made.scale = c
        return made

    return pair(make)


@unseen
def the_dict_behind_a_bound_builtin():
    config = {"scale": 2.0}
    f, _ = defined("def f(x): return x * get('scale')", get=config.get)
    yield remade(f)
    config["scale"] = 3.0
    yield remade(f)


@unseen
def the_list_behind_a_method_wrapper():
    scales = [2.0]
    f, _ = defined("def f(x): return x * get(0)", get=scales.__getitem__)
    yield remade(f)
    scales[0] = 3.0
    yield remade(f)


@kind
def the_list_given_to_an_unbound_method():
    scales = [2.0]
    make = lambda: functools.partial(lambda g, s, x: x * g(s, 0), list.__getitem__, scales)  # noqa: E731
    yield make
    scales[0] = 3.0
    yield make


@kind
def the_string_behind_a_bound_builtin():
    return pair(lambda c: lambda x: x * float(c("0")), "{}2".format, "{}3".format)


@unseen
def a_ufunc_made_of_a_function():
    values = [2.0]
    f, _ = defined("def f(x): return x * float(u(0.0))",
                   u=np.frompyfunc(lambda _: values[0], 1, 1))  # fmt: skip
    yield remade(f)
    values[0] = 3.0
    yield remade(f)


@unseen
def a_vectorized_function_of_numpy():
    values = [2.0]
    f, _ = defined("def f(x): return x * float(u(0.0))",
                   u=np.vectorize(lambda _: values[0]))  # fmt: skip
    yield remade(f)
    values[0] = 3.0
    yield remade(f)


@unseen
def a_function_that_remembers():
    @functools.lru_cache
    def scale():
        return values[0]

    values = [2.0]
    f, _ = defined("def f(x): return x * scale()", scale=scale)
    yield remade(f)
    values[0] = 3.0
    scale.cache_clear()
    yield remade(f)


@unseen
def the_registry_of_a_single_dispatch():
    @functools.singledispatch
    def scale(x):
        return 2.0

    f, _ = defined("def f(x): return x * scale(1)", scale=scale)
    yield remade(f)
    scale.register(int, lambda x: 3.0)
    yield remade(f)


@unseen
def a_generator():
    for scale in (2.0, 3.0):
        yield remade(defined("def f(x): return x * next(n)", n=(scale for _ in range(9)))[0])


@kind
def a_context_manager():
    source = (
        "@contextlib.contextmanager\ndef scaled(): yield scale\n"
        "def f(x):\n with scaled() as s: return x * s"
    )
    return changed_in({"scale": 2.0, "contextlib": contextlib}, source, scale=3.0)


# --- the world outside ---------------------------------------------------------------------------


@unseen
def an_environment_variable():
    f, _ = defined("def f(x): return x * float(os.environ['SCALE_OF_THE_NET'])", os=os)
    for scale in ("2.0", "3.0"):
        os.environ["SCALE_OF_THE_NET"] = scale
        yield remade(f)
    del os.environ["SCALE_OF_THE_NET"]


@unseen
def an_environment_variable_by_getenv():
    f, _ = defined("def f(x): return x * float(os.getenv('SCALE_OF_THE_NET'))", os=os)
    for scale in ("2.0", "3.0"):
        os.environ["SCALE_OF_THE_NET"] = scale
        yield remade(f)
    del os.environ["SCALE_OF_THE_NET"]


def _seeded(seed: Callable[[int], Any], source: str, **namespace: Any) -> Iterator[Maker]:
    f, _ = defined(source, **namespace)
    for number in (0, 1):

        def make(number=number):
            seed(number)
            return remade(f)()

        yield make


@unseen
def random_numbers_of_numpy():
    return _seeded(np.random.seed, "def f(x): return x * float(np.random.normal())")


@unseen
def random_numbers_of_numpy_by_name():
    return _seeded(np.random.seed, "def f(x): return x * float(n())", n=np.random.normal)


@unseen
def random_numbers_of_the_standard_library():
    return _seeded(random.seed, "def f(x): return x * random.random()", random=random)


@unseen
def random_numbers_of_the_standard_library_by_name():
    return _seeded(random.seed, "def f(x): return x * gauss()", gauss=lambda: random.gauss(0, 1))


@unseen
def a_generator_of_random_numbers():
    holder = [np.random.default_rng(0)]

    def seed(number):
        holder[0] = np.random.default_rng(number)

    return _seeded(seed, "def f(x): return x * rng[0].normal()", rng=holder)


@unseen
def a_file():
    file = io.StringIO()

    def seed(number):
        file.seek(0)
        file.write(f"{number + 2}.0\n")
        file.seek(0)

    return _seeded(seed, "def f(x): return x * float(file.readline())", file=file)


@unseen
def the_working_directory():
    before = os.getcwd()
    f, _ = defined("def f(x): return x * float(len(os.getcwd()))", os=os)
    yield remade(f)
    os.chdir("/")
    try:
        yield remade(f)
    finally:
        os.chdir(before)


@unseen
def the_options_of_printing():
    f, _ = defined("def f(x): return x * float(np.get_printoptions()['precision'])")
    for precision in (2, 3):
        with np.printoptions(precision=precision):
            yield remade(f)


@unseen
def the_handling_of_floating_point_errors():
    f, _ = defined("def f(x): return x * (2.0 if np.geterr()['over'] == 'warn' else 3.0)")
    yield remade(f)
    with np.errstate(over="ignore"):
        yield remade(f)


@unseen
def a_context_variable():
    variable = contextvars.ContextVar("scale", default=2.0)
    f, _ = defined("def f(x): return x * variable.get()", variable=variable)
    yield remade(f)
    token = variable.set(3.0)
    yield remade(f)
    variable.reset(token)


@unseen
def a_value_of_the_thread():
    local = threading.local()
    local.scale = 2.0
    return with_attribute(local, "def f(x): return x * thing.scale")


@unseen
def what_a_weak_reference_refers_to():
    class Thing:
        pass

    thing = Thing()
    f, _ = defined("def f(x): return x * (3.0 if ref() is None else 2.0)", ref=weakref.ref(thing))
    yield remade(f)
    del thing
    yield remade(f)


@unseen
def an_option_of_this_library():
    f, _ = defined("def f(x): return x * (3.0 if config.log_compiles.value else 2.0)",
                   config=config)  # fmt: skip
    for flag in (False, True):
        with config.log_compiles(flag):
            yield remade(f)


# --- transformed functions -----------------------------------------------------------------------


def _transformed(transform: Callable[[Function], Function]) -> Iterator[Maker]:
    source = "def f(x): return inner(x)"
    for scale in (2.0, 3.0):
        g, _ = defined("def g(x): return x * scale", "g", scale=scale)

        def make(g=g):
            return defined(source, inner=transform(g))[0]

        yield make


@kind
def a_jitted_function_inside():
    return _transformed(jit)


@kind
def a_mapped_function_inside():
    return _transformed(lambda g: lambda x: vmap(g)(xnp.asarray(x)[None])[0])


@kind
def a_mapped_function_by_name():
    return _transformed(lambda g: vmap(g, in_axes=None, axis_size=1, out_axes=None))


@kind
def a_derivative_inside():
    return _transformed(lambda g: lambda x: x * grad(g)(1.0))


@kind
def a_checkpoint_inside():
    return _transformed(xstack.checkpoint)


@kind
def a_custom_jvp_inside():
    def transform(g):
        inner = custom_jvp(g)
        inner.defjvp(lambda p, t: (g(*p), g(*t)))
        return inner

    return _transformed(transform)


@kind
def a_rule_of_a_custom_jvp():
    def make(c):
        inner = custom_jvp(lambda x: x * c)
        inner.defjvp(lambda p, t: (inner(*p), t[0] * c))
        return lambda x: inner(x)

    return pair(make)


@kind
def a_custom_vjp_inside():
    def transform(g):
        inner = custom_vjp(g)
        inner.defvjp(lambda x: (g(x), None), lambda _, ct: (g(ct),))
        return inner

    return _transformed(transform)


@kind
def a_scan_inside():
    return _transformed(lambda g: lambda x: lax.scan(lambda c, _: (g(c), None), x, None, 1)[0])


@kind
def a_partial_of_the_trees():
    return _transformed(lambda g: tree_util.Partial(g))


@kind
def the_axis_of_a_mapped_function():
    table = xnp.arange(4.0).reshape(2, 2)

    def make(axis):
        rows = vmap(lambda r: r[1], in_axes=axis)
        return lambda x: x * rows(table)[0]

    return pair(make, 0, 1)
