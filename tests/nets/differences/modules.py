"""Attributes of modules, the user's and the libraries'. (See `table`.)"""

from __future__ import annotations

import math
import operator
import sys
import types
from typing import Any

import numpy as np

import xstack.numpy as xnp
from tests.nets.differences.table import (
    defined,
    kind,
    remade,
    unseen,
    with_attribute,
)


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
