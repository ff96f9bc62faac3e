from __future__ import annotations

import dataclasses
import functools
import gc
import math
import operator
import os
import random
import sys
import sysconfig
import time
import types
import weakref
from fractions import Fraction

import numpy as np
import pytest

from xprim import Effect, as_array, function_keys
from xprim.function_keys import (
    Identity,
    captured_state,
    describe_function,
    function_key,
    is_by_identity,
    why_not_shared,
)

scale = 2.0
table = [1, 2]


def test_fresh_lambdas_of_equal_code_have_equal_keys():
    keys = [function_key(lambda x: x + 1) for _ in range(2)]
    assert keys[0] == keys[1] and hash(keys[0]) == hash(keys[1])


def test_different_code_gives_different_keys():
    assert function_key(lambda x: x + 1) != function_key(lambda x: x + 2)


def test_constants_of_different_types_do_not_collide():
    def adding(c):
        return lambda x: x + c

    keys = [function_key(adding(c)) for c in (1, 1.0, True, np.float32(1), np.float64(1), 1 + 0j)]
    assert len(set(keys)) == len(keys)


def test_negative_zero_and_zero_differ_and_nan_finds_itself():
    def adding(c):
        return lambda x: x + c

    assert function_key(adding(0.0)) != function_key(adding(-0.0))
    assert function_key(adding(math.nan)) == function_key(adding(float("nan")))
    assert function_key(adding((1, (2.0,)))) != function_key(adding((1, (2,))))


def test_defaults_and_keyword_defaults_are_part_of_the_key():
    def with_default(c):
        def fun(x, d=c, *, e=c):
            return x + d + e

        return fun

    assert function_key(with_default(1)) == function_key(with_default(1))
    assert function_key(with_default(1)) != function_key(with_default(2))


def test_a_referenced_global_is_part_of_the_key():
    namespace = {"__name__": "user_module", "scale": 2.0}
    exec("def fun(x): return x * scale", namespace)
    before = function_key(namespace["fun"])
    assert function_key(namespace["fun"]) == before
    namespace["scale"] = 3.0
    assert function_key(namespace["fun"]) != before


def test_a_global_behind_a_helper_and_a_module_is_part_of_the_key():
    settings = types.ModuleType("user_settings")
    settings.scale = 2.0
    namespace = {"__name__": "user_module", "settings": settings}
    exec(
        "def helper(x): return x * settings.scale\ndef make(): return lambda x: helper(x) + 1",
        namespace,
    )
    before = function_key(namespace["make"]())
    assert function_key(namespace["make"]()) == before
    settings.scale = 3.0
    assert function_key(namespace["make"]()) != before


def test_a_class_attribute_is_part_of_the_key():
    class Config:
        scale = 2.0

    Config.__module__ = "user_module"

    def make():
        return lambda x: x * Config.scale

    before = function_key(make())
    assert function_key(make()) == before
    Config.scale = 3.0
    assert function_key(make()) != before


def test_a_function_that_sees_something_mutable_is_known_by_identity():
    seen = []

    def noting(x):
        seen.append(1)
        return x

    class Model:
        pass

    model = Model()
    for fun in (noting, lambda x: x * model.w, lambda x: table, lambda x: globals()):
        assert is_by_identity(function_key(fun))
        assert function_key(fun) == function_key(fun)


def test_a_function_that_writes_its_own_state_is_known_by_identity():
    count = 0

    def counting(x):
        nonlocal count
        count += 1
        return x

    assert is_by_identity(function_key(counting))
    namespace = {"__name__": "user_module", "n": 0}
    exec("def fun(x):\n global n\n n += 1\n return x", namespace)
    assert is_by_identity(function_key(namespace["fun"]))


def test_partials_are_known_by_function_and_bound_values():
    def fun(x, a, b):
        return x + a + b

    key = function_key(functools.partial(fun, a=1, b=2))
    assert key == function_key(functools.partial(fun, a=1, b=2))
    assert key != function_key(functools.partial(fun, a=1, b=3))
    assert key != function_key(functools.partial(fun, a=1, b=2.0))
    assert is_by_identity(function_key(functools.partial(fun, a=[1])))


def test_bound_methods_of_one_object_are_equal_and_of_two_objects_are_not():
    class Model:
        def __call__(self, x):
            return x

        def apply(self, x):
            return x

    one, two = Model(), Model()
    assert function_key(one.apply) == function_key(one.apply)
    assert function_key(one.apply) != function_key(two.apply)
    assert function_key(one) == function_key(one) != function_key(two)


def test_captured_arrays_are_known_by_identity_and_kept_by_nobody():
    x, y = as_array(np.zeros(3)), as_array(np.zeros(3))

    def adding(c):
        return lambda v: v + c

    key = function_key(adding(x))
    assert key == function_key(adding(x)) != function_key(adding(y))
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None
    assert {key: 1}[key] == 1  # a key whose array died still finds itself


def test_a_dead_identity_equals_no_later_object():
    class Thing:
        pass

    thing = Thing()
    key = Identity(thing)
    assert key == Identity(thing)
    del thing
    gc.collect()
    assert all(key != Identity(other) for other in [Thing() for _ in range(50)])


def test_a_key_does_not_keep_its_function_alive():
    seen = []

    def fun(x):
        return seen

    key, ref = function_key(fun), weakref.ref(fun)
    del fun
    gc.collect()
    assert ref() is None and is_by_identity(key)


def test_recursive_functions_have_keys():
    def make():
        def fun(x, n):
            return x if n == 0 else fun(x, n - 1)

        return fun

    assert function_key(make()) == function_key(make())


def test_a_described_function_is_its_parts_and_a_copy_of_its_attributes_is_not():
    def make(inner):
        cache = {}

        def fun(x):
            return cache

        describe_function(fun, lambda: ("made", inner))
        return fun

    assert function_key(make(abs)) == function_key(make(abs)) != function_key(make(len))

    @functools.wraps(make(abs))
    def other(x):
        return x + 1

    assert function_key(other) != function_key(make(abs))


@functools.lru_cache
def remembered():
    return 2.0


@dataclasses.dataclass(frozen=True)
class Config:
    scale: float


class Computed(types.ModuleType):
    scale = property(lambda self: 2.0)


settings = types.ModuleType("queue")  # not that of the standard library
settings.scale = 2.0
computed = Computed("computed")
lazy = types.ModuleType("lazy")
lazy.__getattr__ = lambda name: 2.0
config = Config(2.0)
rates = {"lr": 0.5}
get = rates.get
doubled = np.frompyfunc(lambda x: 2 * x, 1, 1)

NOT_CONSTANT = [
    (lambda x: x * table[0], "global table: a list may change"),
    (lambda x: x * get("lr"), "global get: its object: a dict may change"),
    (lambda x: doubled(x), "global doubled: a ufunc of Python's may do anything"),
    (lambda x: x * remembered(), "global remembered: functools.lru_cache keeps what was computed"),
    (lambda x: x * np.random.normal(), "global np.random.normal: a "),
    (lambda x: x * random.random(), "global random.random: its object: a Random may change"),
    (lambda x: x * time.time(), "global time.time: time may give something else at each call"),
    (lambda x: x * float(os.environ["X"]), "global os.environ: a _Environ may change"),
    (lambda x: x * computed.scale, "the module computed computes its attributes"),
    (lambda x: x * lazy.scale, "the module lazy computes its attribute scale"),
    (lambda x: x * [settings][0].scale, "the module queue is used as a value"),
    (lambda x: x * operator.attrgetter("scale")(x), "attrgetter may give whatever a name leads to"),
    (lambda x: "{.__globals__}".format(x), "a string names __globals__"),  # noqa: UP032
    (lambda x: x * Config.__slots__, "it reads __slots__"),
    (lambda x: x * settings.__dict__["scale"], "the module queue computes its attribute __dict__"),
    (lambda x: getattr(x, "y" + "z"), "global getattr: getattr may give"),
    (lambda x: x * (lambda: globals())()["scale"], "global globals: globals may give"),
]


@pytest.mark.parametrize(("fun", "reason"), NOT_CONSTANT, ids=[r for _, r in NOT_CONSTANT])
def test_what_is_not_known_to_be_constant_is_named(fun, reason):
    assert is_by_identity(function_key(fun))
    assert reason in why_not_shared(fun)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x * settings.scale,
        lambda x: x * config.scale,
        lambda x: np.linspace(0, 1, 3) + np.sin(x) * np.pi + np.linalg.norm(x),
        lambda x: functools.reduce(operator.add, [x, math.sqrt(2.0)]),
        lambda x: isinstance(x, np.ndarray) and sum(len(c) for c in "abc"),
    ],
)
def test_what_is_known_to_be_constant_shares(fun):
    assert why_not_shared(fun) == ""
    copy = types.FunctionType(fun.__code__, fun.__globals__, fun.__name__)
    assert function_key(fun) == function_key(copy)
    assert not is_by_identity(function_key(fun))


def test_what_a_function_wraps_is_part_of_its_key():
    def make(c):
        @functools.wraps(lambda x: x * c)
        def fun(x):
            return fun.__wrapped__(x)

        return fun

    assert function_key(make(2.0)) == function_key(make(2.0)) != function_key(make(3.0))


@pytest.mark.parametrize("name", ["numpy", "math", "xprim.array", "functools"])
def test_a_module_name_that_was_written_does_not_hide_the_globals(name):
    namespace = {"__name__": name, "scale": 2.0}
    exec("def fun(x): return x * scale", namespace)
    namespace["fun"].__module__ = name
    before = function_key(namespace["fun"])
    namespace["scale"] = 3.0
    assert function_key(namespace["fun"]) != before


def test_an_attribute_of_a_library_that_was_replaced_is_seen(monkeypatch):
    def make():
        return lambda x: np.cbrt(x)

    before = function_key(make())
    monkeypatch.setattr(np, "cbrt", lambda x: 3.0)
    assert function_key(make()) != before


def test_frozen_dataclasses_count_by_their_class_and_fields():
    def make(c):
        return lambda x: x * c.scale

    assert function_key(make(Config(2.0))) == function_key(make(Config(2.0)))
    assert function_key(make(Config(1))) != function_key(make(Config(True)))


class Changing(Effect):
    """A record that changes after all."""

    __setattr__ = object.__setattr__


def test_records_and_fractions_count_by_what_they_hold():
    def key(value):
        return function_key(lambda x: (x, value))

    assert key(Effect("a")) == key(Effect("a")) != key(Effect("b"))
    assert key(Fraction(1, 3)) == key(Fraction(1, 3)) != key(Fraction(2, 3))
    assert key(Changing("a")) != key(Changing("a"))


class Refusing:
    """Stands for a module that is not installed: whatever is asked of it is that error."""

    __slots__ = ("__dict__", "error")

    def __init__(self):
        object.__setattr__(self, "error", 1)

    def __getattribute__(self, name):
        if name == "__class__":
            return type(None)
        raise ModuleNotFoundError(name)


refusing = Refusing()


def test_an_object_that_raises_whatever_it_is_asked_is_looked_at_without_asking():
    def reads(x):
        return x if refusing is None else x + 1

    assert function_key(reads) == function_key(reads)
    assert captured_state(reads) is not None


def test_the_state_of_a_large_table_of_tables_is_looked_at_in_part():
    files = {f"{n}.py": [f"line {k}" for k in range(1000)] for n in range(1000)}
    assert str(captured_state(lambda: files)).count("line ") <= 2000


def test_the_state_of_an_object_with_many_methods_is_looked_at_in_part():
    methods = {f"method{n}": eval(f"lambda self: {n}") for n in range(1000)}
    value = type("Many", (), methods)()
    state = str(captured_state(lambda: value.method0()))
    assert 100 <= state.count("('function'") <= 200


def test_pythons_own_modules_are_found_without_sysconfig():
    """Python 3.11 raises in `sysconfig` where threads ask it for the first time."""
    folders = function_keys._standard_folders()
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    named = [sysconfig.get_path(name, vars=base) for name in ("stdlib", "platstdlib")]
    assert {os.path.join(folder, "") for folder in named} <= {*folders}
    for module in (math, operator):
        assert not hasattr(module, "__file__") or module.__file__.startswith(folders)
